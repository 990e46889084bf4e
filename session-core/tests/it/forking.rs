//! A new conversation in the place of an old one, a second one beside it, and the end of both.

use session_core::decide::{Activity, Verdict, Why};
use session_core::error::RewindError;
use session_core::*;

use crate::scripted::*;
use crate::shelf::*;

fn other() -> SessionKey {
    SessionKey::new("issue-43", "scripted").unwrap()
}

fn fork() -> ForkRequest {
    ForkRequest::new(key(), other(), "/w/demo").named(SessionName::new("second try").unwrap())
}

async fn run_other(yard: &Yard, prompt: &str) -> LlmResult {
    let request = LlmRequest::new(prompt).cwd("/w/demo").session(SessionRef::new("issue-43", "scripted"));
    yard.lifecycle.run(request).await.unwrap()
}

#[tokio::test]
async fn what_was_cleared_can_be_rejoined_and_gone_back_in() {
    let yard = yard();
    assert_eq!(yard.lifecycle.clear(&key()).await.unwrap().session, None);
    let first = yard.run("one +a=1").await.session_id.unwrap();
    let cleared = yard.lifecycle.clear(&key()).await.unwrap();
    assert_eq!(cleared.session, Some(first.clone()));
    let second = yard.run("two +b=2").await;
    assert_eq!(second.route, Route::Fresh(Why::NoPriorSession));
    let second = second.session_id.unwrap();

    let rejoined = yard.lifecycle.rejoin(&key(), &first).await.unwrap();
    assert_eq!((&rejoined.session, &rejoined.set_aside), (&first, &Some(second.clone())));
    let third = yard.run("three").await;
    assert_eq!((third.route, third.session_id, third.text.as_str()), (Route::Resumed, Some(first), "2"));
    let back = yard.lifecycle.rejoin(&key(), &second).await.unwrap();
    assert_eq!(back.session, second);
    let record = yard.lifecycle.record(&key()).await.unwrap().unwrap();
    assert_eq!(record.past.iter().map(|former| former.why.as_str()).collect::<Vec<_>>(), ["set_aside"]);
    let kinds = yard.kinds().await;
    assert_eq!(kinds, ["run_finished", "cleared", "run_finished", "rejoined", "run_finished", "rejoined"]);
    // The prompts of the old conversation can be taken back, too.
    let rewound = yard.lifecycle.rewind(&crate::shelf::back(3)).await.unwrap();
    assert_eq!((rewound.outcome, rewound.conversation), (RewindOutcome::Done, ConversationDone::Fresh));
    assert!(yard.files().is_empty());
}

/// A run in another folder does not bring back what was cleared in this one.
#[tokio::test]
async fn what_was_put_aside_does_not_come_back_by_itself() {
    let yard = yard();
    let other = ("/w/else".into(), folder("/w/else", 9, "/w/else/.git"));
    yard.host.folders.lock().unwrap().extend([other]);
    let first = yard.run("one").await.session_id;
    yard.lifecycle.clear(&key()).await.unwrap();
    yard.lifecycle.run(request("two").cwd("/w/else")).await.unwrap();
    let third = yard.run("three").await;
    assert_ne!(third.session_id, first);
    assert_eq!(third.text, "1");
}

#[tokio::test]
async fn only_what_can_be_continued_is_rejoined() {
    let yard = yard();
    let first = yard.run("one").await.session_id.unwrap();
    let unknown = yard.lifecycle.rejoin(&key(), &first).await.unwrap_err();
    assert!(matches!(unknown, RewindError::NoSuchSession { .. }), "{unknown:?}");
    yard.lifecycle.clear(&key()).await.unwrap();
    yard.agent.world().sessions.remove(first.as_str());
    let gone = yard.lifecycle.rejoin(&key(), &first).await.unwrap_err();
    assert!(matches!(&gone, RewindError::NotRejoinable { session, .. } if *session == first), "{gone:?}");
    assert_eq!(yard.run("two").await.route, Route::Fresh(Why::NoPriorSession));
    let lease = yard.store.inner.lease(&key(), &yard.host.holder()).await.unwrap();
    let busy = yard.lifecycle.clear(&key()).await.unwrap_err();
    assert!(matches!(busy, RewindError::Busy { by: Some(_), .. }), "{busy:?}");
    drop(lease);
    let bound = yard.said().await;
    yard.store.set(&["save"]);
    let failed = yard.lifecycle.clear(&key()).await.unwrap_err();
    assert!(matches!(failed, RewindError::Store(_)), "{failed:?}");
    assert_eq!((yard.said().await, yard.kinds().await.contains(&"cleared".to_owned())), (bound, true));
}

#[tokio::test]
async fn a_fork_goes_on_beside_its_original() {
    let yard = yard();
    let first = yard.run("one").await;
    let original = first.session_id.unwrap();
    let second = yard.run("two").await.checkpoint;
    let forked = yard.lifecycle.fork(&fork()).await.unwrap();
    assert_eq!((&forked.of, forked.kept), (&original, 2));
    assert_ne!(forked.session, original);
    let in_fork = run_other(&yard, "three").await;
    assert_eq!((in_fork.route, in_fork.text.as_str()), (Route::Resumed, "3"));
    assert_eq!(
        (in_fork.session_id, in_fork.name.as_deref()),
        (Some(forked.session.clone()), Some("second try"))
    );
    // The session's counter goes on in its copy: a run costs what it costs.
    assert_eq!(in_fork.cost_usd, Some(0.5));
    assert_eq!(yard.said().await, ["one", "two"], "the original stays");
    assert_eq!(yard.run("three of mine").await.session_id, Some(original.clone()));
    let record = yard.lifecycle.record(&other()).await.unwrap().unwrap();
    assert_eq!(record.binding.unwrap().forked_from, Some(original));

    let taken = yard.lifecycle.fork(&fork()).await.unwrap_err();
    assert!(matches!(&taken, RewindError::Taken { key } if *key == other()), "{taken:?}");
    // Also where its session is lost: the key's own runs say so.
    yard.agent.world().sessions.remove(forked.session.as_str());
    assert!(matches!(yard.lifecycle.fork(&fork()).await, Err(RewindError::Taken { .. })));
    let third = SessionKey::new("a", "scripted").unwrap();
    let request = ForkRequest::new(key(), third.clone(), "/w/demo").at(second.unwrap());
    assert_eq!(yard.lifecycle.fork(&request).await.unwrap().kept, 1);
    let fourth = SessionKey::new("b", "scripted").unwrap();
    let request = ForkRequest::new(key(), fourth.clone(), "/w/demo").at(first.checkpoint.unwrap());
    let nothing = yard.lifecycle.fork(&request).await.unwrap_err();
    assert!(matches!(nothing, RewindError::NoSession { .. }), "{nothing:?}");
    // A checkpoint of another key is none.
    let request = ForkRequest::new(third, fourth, "/w/demo").at(second.unwrap());
    let none = yard.lifecycle.fork(&request).await.unwrap_err();
    assert!(matches!(none, RewindError::NoSuchCheckpoint { .. }), "{none:?}");
}

#[tokio::test]
async fn a_fork_without_a_key_is_a_session_that_no_record_holds() {
    let yard = yard();
    yard.run("one").await;
    let original = yard.run("two").await.session_id.unwrap();
    let before = yard.lifecycle.record(&key()).await.unwrap();
    let forked = yard.lifecycle.fork(&ForkRequest::without_key(key(), "/w/demo")).await.unwrap();
    assert_eq!((&forked.of, forked.kept), (&original, 2));
    assert!(yard.agent.world().sessions.contains_key(forked.session.as_str()));
    assert_eq!(yard.lifecycle.record(&key()).await.unwrap(), before);
    assert_eq!(yard.lifecycle.record(&other()).await.unwrap(), None);
    assert_eq!(yard.kinds().await.last().unwrap(), "forked", "the original's log tells of it");
    let told = yard.lifecycle.explain(&key()).await.unwrap().to_string();
    assert!(told.contains(&format!("into {}, which has no key", forked.session)), "{told}");
    assert_eq!(yard.run("three").await.session_id, Some(original));
    let nobody = ForkRequest::without_key(other(), "/w/demo");
    assert!(matches!(yard.lifecycle.fork(&nobody).await, Err(RewindError::NoSession { .. })));
}

/// The first prompt of a run that began as a copy is taken back to the copy, not to nothing.
#[tokio::test]
async fn a_run_that_began_as_a_fork_goes_back_to_what_the_original_held() {
    let yard = yard();
    yard.run("one").await;
    let original = yard.run("two").await.session_id;
    let fork = LlmRequest::new("three").cwd("/w/demo").session(SessionRef::new("issue-43", "scripted"));
    let fork = fork.fork_of(SessionRef::new("issue-42", "scripted"));
    let copy = yard.lifecycle.run(fork).await.unwrap();
    assert_eq!((copy.route, copy.text.as_str()), (Route::Forked, "3"));
    let back = RewindRequest::new(other(), "/w/demo");
    let rewound = yard.lifecycle.rewind(&back).await.unwrap();
    let session = rewound.session_after.unwrap();
    assert_eq!(
        rewound.conversation,
        ConversationDone::Branched { session, of: copy.session_id.unwrap(), kept: 2 }
    );
    assert_eq!(run_other(&yard, "three again").await.text, "3");
    assert_eq!(yard.run("three of mine").await.session_id, original);
}

#[tokio::test]
async fn a_fork_that_cannot_be_made_leaves_nothing() {
    let yard = yard();
    let nothing = yard.lifecycle.fork(&fork()).await.unwrap_err();
    assert!(matches!(nothing, RewindError::NoSession { .. }), "{nothing:?}");
    yard.run("one").await;
    let same = ForkRequest::new(key(), key(), "/w/demo");
    assert!(matches!(yard.lifecycle.fork(&same).await, Err(RewindError::NotAForkOf { .. })));
    let across = ForkRequest::new(key(), SessionKey::new("issue-43", "another").unwrap(), "/w/demo");
    assert!(matches!(yard.lifecycle.fork(&across).await, Err(RewindError::NotAForkOf { .. })));
    for held in [key(), other()] {
        let lease = yard.store.inner.lease(&held, &yard.host.holder()).await.unwrap();
        let busy = yard.lifecycle.fork(&fork()).await.unwrap_err();
        assert!(matches!(&busy, RewindError::Busy { key, .. } if *key == held), "{busy:?}");
        drop(lease);
    }
    yard.store.set(&["save"]);
    let failed = yard.lifecycle.fork(&fork()).await.unwrap_err();
    assert!(matches!(failed, RewindError::Store(_)), "{failed:?}");
    assert_eq!(yard.agent.world().sessions.len(), 1, "the branch is gone");
    yard.store.set(&[]);
    // One that holds less than it was asked for is none.
    yard.agent.world().branches_short = true;
    let short = yard.lifecycle.fork(&fork()).await.unwrap_err();
    assert!(
        matches!(&short, RewindError::Unsupported { why } if why.contains("holds 0 prompts, not 1")),
        "{short:?}"
    );
    assert_eq!(yard.agent.world().sessions.len(), 1, "the short branch is gone");
    yard.agent.world().no_branch = Some(BranchRefusal::Growing);
    let refused = yard.lifecycle.fork(&fork()).await.unwrap_err();
    assert!(matches!(&refused, RewindError::Unsupported { why } if why.contains("writes")), "{refused:?}");
    assert_eq!(yard.lifecycle.record(&other()).await.unwrap(), None);
}

#[tokio::test]
async fn a_closed_key_has_no_checkpoints_and_one_that_kept_them_is_not_closed() {
    let yard = yard();
    yard.run("one").await;
    run_other(&yard, "one").await;
    yard.shelf.inner().fail = vec!["forget"];
    let failed = yard.lifecycle.close(&key(), Closing::Done).await.unwrap_err();
    assert!(matches!(failed, CloseError::Checkpoints { .. }), "{failed:?}");
    assert!(yard.lifecycle.record(&key()).await.unwrap().is_some());
    yard.shelf.inner().fail.clear();
    let closed = yard.lifecycle.close(&key(), Closing::Done).await.unwrap();
    assert_eq!(closed.checkpoints, Some(2));
    for unknown in [&["ever_leased"][..], &[]] {
        yard.store.set(unknown);
        let nobody = SessionKey::new("x", "scripted").unwrap();
        let nothing = yard.lifecycle.close(&nobody, Closing::Done).await.unwrap();
        assert_eq!(nothing.checkpoints, Some(0));
    }
    assert!(yard.lifecycle.checkpoints(&key()).await.unwrap().is_empty());
    assert_eq!(yard.lifecycle.checkpoints(&other()).await.unwrap().len(), 2, "those of another key stay");
    let kinds = yard.kinds().await;
    assert_eq!(kinds, ["run_finished", "mailbox_closing", "mailbox_closing", "mailbox_closed"]);

    yard.shelf.inner().fail = vec!["forget"];
    let sweep = Sweep::new(Live::of(["none"]).unwrap()).grace(std::time::Duration::ZERO);
    yard.host.millis.fetch_add(1000, std::sync::atomic::Ordering::SeqCst);
    let report = yard.lifecycle.sweep(&sweep).await.unwrap();
    assert!(matches!(report.swept[0].outcome, SweepOutcome::NotForgotten(_)), "{report:?}");
    yard.shelf.inner().fail.clear();
    let report = yard.lifecycle.sweep(&sweep).await.unwrap();
    assert_eq!(report.failures().count(), 0);
    assert!(yard.shelf.inner().kept.is_empty());
}

/// A wish of the caller makes no session better than it was.
#[tokio::test]
async fn a_session_that_is_put_aside_and_rejoined_keeps_its_failed_resumes() {
    let yard = yard();
    let session = yard.run("one").await.session_id.unwrap();
    for _ in 0..3 {
        yard.agent.will([Act::Fail(Verdict::Crashed, Activity::None)]);
        yard.lifecycle.run(request("x").resume(ResumePolicy::Require)).await.unwrap_err();
    }
    let row = yard.lifecycle.record(&key()).await.unwrap().unwrap().failed_resumes;
    assert!(row > 0);
    let cleared = yard.lifecycle.clear(&key()).await.unwrap();
    assert_eq!(cleared.session.as_ref(), Some(&session));
    assert_eq!(yard.lifecycle.record(&key()).await.unwrap().unwrap().failed_resumes, 0);
    let rejoined = yard.lifecycle.rejoin(&key(), &session).await.unwrap();
    assert_eq!(yard.lifecycle.record(&key()).await.unwrap().unwrap().failed_resumes, row);
    let why = Why::ResumeKeepsFailing;
    assert_eq!(rejoined.warnings, [Warning::BeginsAnew(why.code().to_owned())]);
    assert_eq!(yard.run("two").await.resume_fallback, Some(why));
}

#[tokio::test]
async fn a_session_that_cannot_be_continued_is_made_no_better_by_going_there_again() {
    let poisoned = async || {
        let yard = yard();
        yard.run("one").await;
        yard.agent.will([Act::FailAfterKeeping(Verdict::ContextOverflow)]);
        yard.lifecycle.run(request("two")).await.unwrap_err();
        yard
    };
    let gives_up = async |yard: &Yard, key: SessionKey| {
        let session = SessionRef::new(key.mailbox.as_str(), "scripted");
        yard.lifecycle.run(request("three").session(session)).await.unwrap().resume_fallback
    };
    let yard = poisoned().await;
    let session = yard.lifecycle.clear(&key()).await.unwrap().session.unwrap();
    let rejoined = yard.lifecycle.rejoin(&key(), &session).await.unwrap();
    let [Warning::BeginsAnew(_)] = &*rejoined.warnings else { panic!("{:?}", rejoined.warnings) };
    assert_eq!(gives_up(&yard, key()).await, Some(Why::LastRunPoisoned), "rejoined");

    let yard = poisoned().await;
    let rewound = yard.lifecycle.rewind(&back(1)).await.unwrap();
    assert_eq!((rewound.outcome, yard.said().await.len()), (RewindOutcome::Done, 1));
    assert_eq!(rewound.warnings, []);
    assert_eq!(yard.undo().await.warnings, rejoined.warnings);
    assert_eq!(gives_up(&yard, key()).await, Some(Why::LastRunPoisoned), "undone");

    let yard = poisoned().await;
    assert_eq!(yard.lifecycle.fork(&fork()).await.unwrap().warnings, rejoined.warnings);
    assert_eq!(gives_up(&yard, other()).await, Some(Why::LastRunPoisoned), "forked as a whole");

    // What is cut off before that may be as good as ever.
    let yard = poisoned().await;
    let second = yard.lifecycle.checkpoints(&key()).await.unwrap()[2].id;
    let _ = yard.lifecycle.fork(&fork().at(second)).await.unwrap();
    assert_eq!(gives_up(&yard, other()).await, None, "forked before");
    let _ = yard.lifecycle.rewind(&back(1)).await.unwrap();
    assert_eq!(gives_up(&yard, key()).await, None, "rewound");
}

/// It was found in another folder than that of the session in force.
#[tokio::test]
async fn a_session_of_the_past_that_cannot_be_continued_stays_so_too() {
    let (bench, here, _) = crate::bench::two_folders().await;
    bench.agent.will([Act::FailAfterKeeping(Verdict::ContextOverflow)]);
    bench.fails("too long").await;
    let _ = bench.lifecycle.rejoin(&key(), &here.unwrap()).await.unwrap();
    assert_eq!(bench.run("three").await.resume_fallback, Some(Why::LastRunPoisoned));
}

/// A run that died was adding to a copy of the session; whether that takes its place, the next run finds out.
#[tokio::test]
async fn what_is_unsettled_is_not_forked() {
    async fn dies(yard: &Yard, is_there: impl Fn(&SessionRecord) -> bool) {
        yard.run("one +a=1").await;
        yard.agent.will([Act::Hang]);
        let mut run = Box::pin(yard.lifecycle.run(request("two +a=2")));
        while !yard.lifecycle.record(&key()).await.unwrap().is_some_and(|record| is_there(&record)) {
            let poll = std::future::poll_fn(|context| std::task::Poll::Ready(run.as_mut().poll(context)));
            assert!(poll.await.is_pending());
        }
    }
    let is_unsettled = async |yard: &Yard| match yard.lifecycle.fork(&fork()).await {
        Err(RewindError::Unsettled { key: of }) => of == key(),
        _ => false,
    };
    let named = yard();
    dies(&named, |record| record.in_flight.is_some()).await;
    assert!(is_unsettled(&named).await, "its processes may still run");

    let mut agent = Scripted::new();
    agent.capabilities.id_on_resume = IdOnResume::Replaced;
    let yard = yard_with(agent);
    dies(&yard, |record| record.candidate.is_some()).await;
    let _ = yard.lifecycle.rewind(&back(1).mode(RewindMode::Files)).await.unwrap();
    let record = yard.lifecycle.record(&key()).await.unwrap().unwrap();
    assert!(record.in_flight.is_none() && record.candidate.is_some(), "{record:?}");
    assert!(is_unsettled(&yard).await, "nobody knows which session goes on");
    assert_eq!(yard.lifecycle.record(&other()).await.unwrap(), None);
    yard.run("three").await;
    assert_eq!(yard.lifecycle.fork(&fork()).await.unwrap().kept, 3);
}

/// A state without a record is the only thing that leads to its checkpoints.
#[tokio::test]
async fn a_leftover_goes_after_its_checkpoints_and_with_nobody_in_between() {
    let yard = yard();
    yard.run("one").await;
    let record = yard.store.inner.load(&key()).await.unwrap().unwrap().document;
    assert_eq!(yard.store.inner.remove(&key(), &Guard::Any).await.unwrap(), Removed::Done);
    let mut leftover = Leftover::new(LeftoverKind::State, "state/issue-42/scripted");
    (leftover.key, leftover.last_used) = (Some(key()), Some(yard.host.now()));
    *yard.store.leftovers.lock().unwrap() = vec![leftover];
    yard.host.millis.fetch_add(1000, std::sync::atomic::Ordering::SeqCst);
    // Whoever is alive by the list, the leftover is of nobody.
    let sweep = async || {
        let sweep = Sweep::new(Live::of(["issue-42"]).unwrap()).grace(std::time::Duration::ZERO);
        yard.lifecycle.sweep(&sweep).await.unwrap().swept.pop().unwrap().outcome
    };
    let lease = yard.store.inner.lease(&key(), &yard.host.holder()).await.unwrap();
    assert!(matches!(sweep().await, SweepOutcome::Busy { by: Some(_) }));
    drop(lease);
    assert!(matches!(yard.store.inner.save(&key(), &record, &Guard::Absent, None).await, Ok(Saved::Done(_))));
    assert!(matches!(sweep().await, SweepOutcome::Changed), "somebody took it up since");
    assert_eq!(yard.store.inner.remove(&key(), &Guard::Any).await.unwrap(), Removed::Done);
    *yard.store.changed_at.lock().unwrap() = Some(yard.host.now());
    assert!(matches!(sweep().await, SweepOutcome::Changed), "somebody wrote into it since");
    assert_eq!(yard.shelf.inner().kept.len(), 2, "nothing was forgotten");
    *yard.store.changed_at.lock().unwrap() = None;
    yard.shelf.inner().fail = vec!["forget"];
    assert!(matches!(sweep().await, SweepOutcome::NotForgotten(_)));
    assert!(yard.store.disposed.lock().unwrap().is_empty(), "it is found again");
    yard.shelf.inner().fail.clear();
    assert!(matches!(sweep().await, SweepOutcome::Removed));
    assert_eq!((yard.shelf.inner().kept.len(), yard.store.disposed.lock().unwrap().len()), (0, 1));
}
