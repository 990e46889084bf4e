//! Going back where something fails, dies, or is not there.

use std::path::Path;

use session_core::decide::Verdict;
use session_core::error::{RewindError, RunError};
use session_core::*;

use crate::scripted::*;
use crate::shelf::*;

#[tokio::test]
async fn a_failed_run_has_its_end_and_one_that_never_started_has_no_checkpoint() {
    let yard = yard();
    yard.agent.will([Act::Fail(Verdict::Crashed, session_core::decide::Activity::Acted)]);
    let failed = yard.lifecycle.run(request("one +a=1")).await;
    let Err(RunError::Failed { run, .. }) = failed else { panic!("{failed:?}") };
    assert!(run.checkpoint.is_some());
    assert_eq!(yard.moments().await, [Moment::BeforeRun, Moment::AfterRun]);
    yard.agent.will([Act::CannotStart]);
    let failed = yard.lifecycle.run(request("two")).await;
    assert!(matches!(failed, Err(RunError::Agent(_))), "{failed:?}");
    assert_eq!(yard.moments().await, [Moment::BeforeRun, Moment::AfterRun]);
}

#[tokio::test]
async fn a_checkpoint_that_cannot_be_taken_never_spoils_a_run() {
    let yard = yard();
    yard.shelf.inner().fail = vec!["take", "recover"];
    let result = yard.run("one +a=1").await;
    assert_eq!((result.text.as_str(), result.checkpoint), ("1", None));
    assert!(matches!(result.warnings.as_slice(), [Warning::NotCheckpointed(_)]), "{:?}", result.warnings);
    let error = yard.lifecycle.rewind(&back(1)).await.unwrap_err();
    assert!(matches!(error, RewindError::Checkpoint(_)), "{error:?}");
}

#[tokio::test]
async fn what_fails_before_anything_was_touched_leaves_no_trace() {
    let yard = yard();
    yard.run("one +a=1").await;
    let session = yard.run("two +a=2").await.session_id;
    for operation in ["list", "diff", "hidden", "restore", "take"] {
        yard.shelf.inner().fail = vec![operation];
        let error = yard.lifecycle.rewind(&back(1)).await.unwrap_err();
        assert!(matches!(error, RewindError::Checkpoint(_)), "{operation}: {error:?}");
        yard.shelf.inner().fail.clear();
        assert_eq!((yard.files(), yard.moments().await.len()), (vec!["a=2".to_owned()], 4), "{operation}");
        assert_eq!(yard.agent.world().sessions.len(), 1, "{operation}: the branch is gone");
        assert_eq!(yard.kinds().await.len(), 2, "{operation}");
    }
    assert_eq!(yard.run("three").await.session_id, session);
}

/// Each run is a process of its own; then the checkpoints cannot be taken once.
#[tokio::test]
async fn br_139_an_early_checkpoint_gives_its_own_content_or_an_honest_failure() {
    let yard = yard();
    let first = yard.run("one +a=1").await.checkpoint.unwrap();
    let second = yard.run("two +a=2").await.checkpoint.unwrap();
    // A new process: nothing but the store and the checkpoints is left.
    let editor = Editor { scripted: yard.agent.clone(), shelf: yard.shelf.clone() };
    let anew = Lifecycle::new(std::sync::Arc::new(yard.store.clone()), yard.host.clone())
        .agent(Agent::new(editor).with_catalog(Glass(yard.agent.clone())))
        .checkpointer(std::sync::Arc::new(yard.shelf.clone()));
    let third = anew.run(request("three +a=3")).await.unwrap().checkpoint.unwrap();
    assert!(first != second && second != third && first != third);
    yard.shelf.inner().fail = vec!["take"];
    let unmarked = anew.run(request("four +a=4")).await.unwrap();
    assert!(matches!(unmarked.warnings.as_slice(), [Warning::NotCheckpointed(_)]), "{:?}", unmarked.warnings);
    let to = |id| RewindRequest::new(key(), "/w/demo").to(RewindTo::Checkpoint(id));
    let error = anew.rewind(&to(second)).await.unwrap_err();
    assert!(matches!(error, RewindError::Checkpoint(_)), "{error:?}");
    assert_eq!(yard.files(), ["a=4"]);
    yard.shelf.inner().fail.clear();
    assert!(anew.run(request("five +b=5")).await.unwrap().checkpoint.is_some(), "it heals");
    // What the run without a checkpoint changed is nobody's: kept, and told.
    let kept = anew.rewind(&to(second)).await.unwrap();
    assert_eq!(kept.outcome, RewindOutcome::Partial(vec![Unfinished::Conflicts(vec!["a".into()])]));
    let done = anew.rewind(&to(second).conflicts(Conflicts::Overwrite)).await.unwrap();
    assert_eq!((done.outcome, yard.files()), (RewindOutcome::Done, vec!["a=1".to_owned()]));
    let nobody = CheckpointId::new(uuid::Uuid::max());
    let error = anew.rewind(&to(nobody)).await.unwrap_err();
    assert!(
        matches!(error, RewindError::NoSuchCheckpoint { checkpoint, .. } if checkpoint == nobody),
        "{error:?}"
    );
}

#[tokio::test]
async fn a_runner_that_died_is_ended_and_its_prompt_can_be_taken_back() {
    let yard = yard();
    yard.run("one +a=1").await;
    yard.agent.will([Act::Hang]);
    {
        let mut run = Box::pin(yard.lifecycle.run(request("two +a=2 +b=2")));
        while yard.agent.calls().len() < 2 {
            assert!(
                std::future::poll_fn(|context| std::task::Poll::Ready(run.as_mut().poll(context)))
                    .await
                    .is_pending()
            );
        }
        // A run that is under way is in the way.
        let busy = yard.lifecycle.rewind(&back(1)).await.unwrap_err();
        assert!(matches!(busy, RewindError::Busy { by: Some(_), .. }), "{busy:?}");
        let busy = yard.lifecycle.foresee_rewind(&back(1)).await.unwrap_err();
        assert!(matches!(busy, RewindError::Busy { .. }), "{busy:?}");
    }
    let run = yard.lifecycle.record(&key()).await.unwrap().unwrap().in_flight.unwrap().run;
    let preview = yard.lifecycle.foresee_rewind(&back(1)).await.unwrap();
    assert_eq!(preview.files.unended, [run]);
    assert!(yard.agent.world().reaped.is_empty());
    let rewound = yard.lifecycle.rewind(&back(1)).await.unwrap();
    assert_eq!((rewound.outcome, yard.files()), (RewindOutcome::Done, vec!["a=1".to_owned()]));
    assert_eq!(yard.agent.world().reaped, [run]);
    assert_eq!(yard.said().await, ["one +a=1"]);
    assert_eq!(yard.lifecycle.record(&key()).await.unwrap().unwrap().in_flight, None);
    assert_eq!(yard.run("three").await.route, Route::Resumed);
}

#[tokio::test]
async fn a_rewind_that_was_cut_off_is_finished_at_once_or_by_the_next_run() {
    let yard = yard();
    yard.run("one +a=1 +b=1").await;
    yard.run("two +a=2 +b=2").await;
    yard.shelf.inner().cut = Some(1);
    let rewound = yard.lifecycle.rewind(&back(1)).await.unwrap();
    assert_eq!((rewound.outcome, yard.files()), (RewindOutcome::Done, vec!["a=1".to_owned(), "b=1".into()]));

    yard.run("three +a=3 +b=3").await;
    (yard.shelf.inner().cut, yard.shelf.inner().dies) = (Some(1), true);
    let rewound = yard.lifecycle.rewind(&back(1)).await.unwrap();
    assert!(
        matches!(&rewound.outcome, RewindOutcome::Partial(left) if matches!(&**left, [Unfinished::CutOff(_)]))
    );
    assert!(matches!(rewound.warnings.as_slice(), [Warning::NotCheckpointed(_)]), "{:?}", rewound.warnings);
    assert_eq!(yard.files(), ["a=1", "b=3"]);
    yard.shelf.inner().fail.clear();
    let next = yard.run("four +c=4").await;
    assert_eq!(next.warnings, [Warning::RewindRecovered(2)]);
    assert_eq!(yard.files(), ["a=1", "b=1", "c=4"]);
    assert_eq!(yard.said().await, ["one +a=1 +b=1", "four +c=4"]);
    let log = yard.lifecycle.audit(&key(), None).await.unwrap();
    let of =
        |kind: &str| log.iter().filter(|one| one.event.kind == kind).map(|one| one.event.run).next_back();
    assert_eq!((of("rewind_recovered"), of("rewound")), (Some(rewound.step), Some(rewound.step)));
    // Its prompt is taken back with the conversation, whoever finished the files.
    let meant = yard.lifecycle.foresee_rewind(&back(2)).await.unwrap().dropped;
    let meant: Vec<_> = meant.iter().filter_map(|one| one.prompt.as_deref()).collect();
    assert_eq!(meant, ["one +a=1 +b=1", "four +c=4"]);
    // What was finished later is the rewind's own work, and goes back with it.
    assert_eq!(
        (yard.undo().await.outcome, yard.files()),
        (RewindOutcome::Done, vec!["a=3".to_owned(), "b=3".into()])
    );
}

fn unended(rewound: &Rewound) -> Warning {
    Warning::RewindUnended(rewound.undo)
}

#[tokio::test]
async fn where_the_record_cannot_be_written_the_conversation_stays_and_that_is_told() {
    let yard = yard();
    yard.run("one +a=1").await;
    let second = yard.run("two +a=2").await.session_id;
    yard.store.set(&["save"]);
    let error = yard.lifecycle.rewind(&back(1)).await.unwrap_err();
    assert!(matches!(error, RewindError::Store(_)), "{error:?}");
    assert_eq!(
        (yard.files(), yard.moments().await.len()),
        (vec!["a=2".to_owned()], 4),
        "nothing was touched"
    );
    assert_eq!(yard.agent.world().sessions.len(), 1, "the branch is gone");
    yard.store.set_after(1, &["save"]);
    let rewound = yard.lifecycle.rewind(&back(1)).await.unwrap();
    assert_eq!(rewound.outcome, RewindOutcome::Partial(vec![Unfinished::Conversation]));
    assert!(matches!(rewound.recorded, Recorded::Failed(_)));
    assert!(matches!(rewound.conversation, ConversationDone::NotRecorded(ConversationPlan::Branch { .. })));
    assert_eq!((rewound.session_after.clone(), yard.files()), (second.clone(), vec!["a=1".to_owned()]));
    assert_eq!(yard.agent.world().sessions.len(), 1, "the branch is gone");
    yard.store.set(&[]);
    let undone = yard.undo().await;
    assert_eq!((undone.outcome, &undone.warnings[..]), (RewindOutcome::Done, &[unended(&rewound)][..]));
    assert_eq!((yard.files(), yard.run("three").await.session_id), (vec!["a=2".to_owned()], second));
}

/// The prompt is in the conversation still: who asks again means it, and no earlier one.
#[tokio::test]
async fn a_conversation_that_stays_as_its_record_could_not_be_written_goes_back_when_asked_again() {
    let yard = yard();
    yard.run("one +a=1").await;
    yard.run("two +a=2 +b=2").await;
    yard.store.set_after(1, &["save"]);
    let rewound = yard.lifecycle.rewind(&back(1)).await.unwrap();
    assert_eq!(rewound.outcome, RewindOutcome::Partial(vec![Unfinished::Conversation]));
    yard.store.set(&[]);
    yard.by_hand("+b=mine");
    let again = yard.lifecycle.rewind(&back(1)).await.unwrap();
    let dropped: Vec<_> = again.dropped.iter().filter_map(|one| one.prompt.as_deref()).collect();
    assert_eq!(dropped, ["two +a=2 +b=2"]);
    assert_eq!(yard.said().await, ["one +a=1"]);
    // The files of the first try have their end: what came after it is somebody else's.
    assert_eq!((again.files.unended.len(), yard.files()), (0, vec!["a=1".to_owned(), "b=mine".into()]));
}

/// No difference tells of what is left out by now, be it a folder with all that is in it.
#[tokio::test]
async fn what_of_the_target_is_left_out_by_now_is_told_as_left() {
    let yard = yard();
    yard.run("one +a=1 +d/x=1 +e=1").await;
    yard.run("two +a=2 -d -e").await;
    let out = |path: &str, why| LeftOut { path: PathText::new(Path::new(path)), why };
    let too_large = LeftOutWhy::TooLarge { bytes: 1 << 40 };
    yard.shelf.inner().left_out =
        vec![out("d", LeftOutWhy::Special), out("e", too_large), out("new", LeftOutWhy::Unreadable)];
    let rewound = yard.lifecycle.rewind(&back(1)).await.unwrap();
    let left = |path: &str| LeftPath { path: path.into(), why: LeftWhy::NotCovered };
    assert_eq!(rewound.outcome, RewindOutcome::Partial(vec![Unfinished::Paths(vec![left("d"), left("e")])]));
    assert_eq!((yard.files(), rewound.files.left.len()), (vec!["a=1".to_owned()], 2));
    let _ = yard.undo().await;
    let talk = yard.lifecycle.rewind(&back(1).mode(RewindMode::Conversation)).await.unwrap();
    assert_eq!(talk.outcome, RewindOutcome::Done);
}

#[tokio::test]
async fn who_lost_the_key_meanwhile_says_what_holds() {
    let yard = yard();
    yard.run("one +a=1").await;
    let session = yard.run("two +a=2").await.session_id;
    yard.store.set(&["fence"]);
    let busy = yard.lifecycle.rewind(&back(1)).await.unwrap_err();
    assert!(matches!(busy, RewindError::Busy { by: None, .. }), "{busy:?}");
    assert_eq!(
        (yard.files(), yard.moments().await.len()),
        (vec!["a=2".to_owned()], 4),
        "nothing was touched"
    );
    yard.store.set_after(1, &["fence", "append_audit"]);
    let rewound = yard.lifecycle.rewind(&back(1)).await.unwrap();
    yard.store.set(&[]);
    assert!(matches!(rewound.recorded, Recorded::LostLease));
    assert_eq!(rewound.outcome, RewindOutcome::Partial(vec![Unfinished::Conversation]));
    assert_eq!((rewound.session_after.clone(), yard.agent.world().sessions.len()), (session, 1));
    assert!(matches!(rewound.warnings.as_slice(), [Warning::AuditFailed(_)]), "{:?}", rewound.warnings);
    // The tree is another runner's by now: no checkpoint of ours claims to be the end.
    assert_eq!(yard.moments().await.last(), Some(&Moment::BeforeRewind));
    // Who asks again means the same prompt.
    let again = yard.lifecycle.rewind(&back(1)).await.unwrap();
    let dropped: Vec<_> = again.dropped.iter().map(|prompted| prompted.prompt.as_deref()).collect();
    assert_eq!((again.outcome, dropped), (RewindOutcome::Done, vec![Some("two +a=2")]));
    assert_eq!(again.warnings, [unended(&rewound)]);
    assert_eq!((yard.files(), yard.said().await), (vec!["a=1".to_owned()], vec!["one +a=1".to_owned()]));
}

/// The copy that a dead runner's agent went on in would take the place of the session in force at the next run.
#[tokio::test]
async fn what_a_dead_runner_began_beside_the_session_is_taken_back_with_its_prompt() {
    let mut agent = Scripted::new();
    agent.capabilities.id_on_resume = IdOnResume::Replaced;
    let yard = yard_with(agent);
    yard.run("one +a=1").await;
    yard.agent.will([Act::Hang]);
    {
        let mut run = Box::pin(yard.lifecycle.run(request("two +a=2")));
        // Until what the agent named was saved.
        while yard.lifecycle.record(&key()).await.unwrap().is_none_or(|record| record.candidate.is_none()) {
            let poll = std::future::poll_fn(|context| std::task::Poll::Ready(run.as_mut().poll(context)));
            assert!(poll.await.is_pending());
        }
    }
    let begun = yard.lifecycle.record(&key()).await.unwrap().unwrap().candidate.unwrap().binding.native_id;
    let rewound = yard.lifecycle.rewind(&back(1)).await.unwrap();
    assert_eq!((rewound.outcome, yard.files()), (RewindOutcome::Done, vec!["a=1".to_owned()]));
    let past = yard.lifecycle.record(&key()).await.unwrap().unwrap().past;
    assert!(past.iter().any(|former| former.native_id == begun && former.rejoinable), "{past:?}");
    yard.run("three").await;
    assert_eq!(yard.said().await, ["one +a=1", "three"]);
}

/// The store said that it failed, and did it all the same: the branch is what the record leads to, and stays.
#[tokio::test]
async fn a_write_that_arrived_after_all_counts() {
    let yard = yard();
    yard.run("one +a=1").await;
    yard.run("two +a=2").await;
    yard.store.set(&["save_late"]);
    let rewound = yard.lifecycle.rewind(&back(1)).await.unwrap();
    yard.store.set(&[]);
    assert_eq!((rewound.outcome, rewound.recorded.is_saved()), (RewindOutcome::Done, true));
    assert_eq!(yard.said().await, ["one +a=1"]);
}

#[tokio::test]
async fn what_cannot_be_gone_back_to_is_told_by_its_kind() {
    let yard = yard();
    let error = yard.lifecycle.rewind(&back(1)).await.unwrap_err();
    assert!(matches!(error, RewindError::NotSoMany { asked: 1, there: 0 }), "{error:?}");
    assert_eq!(error.to_string(), "prompts that can be taken back: 0; asked for: 1");
    assert!(matches!(
        yard.lifecycle.undo(&key(), Path::new("/w/demo")).await,
        Err(RewindError::NothingToUndo { .. })
    ));
    yard.run("one").await;
    let error = yard.lifecycle.rewind(&back(0)).await.unwrap_err();
    assert!(matches!(error, RewindError::NotSoMany { asked: 0, there: 1 }), "{error:?}");
    let end = yard.lifecycle.checkpoints(&key()).await.unwrap()[1].id;
    let error = yard.lifecycle.rewind(&back(1).to(RewindTo::Checkpoint(end))).await.unwrap_err();
    assert!(matches!(error, RewindError::NotATarget { .. }), "{error:?}");
    let elsewhere = RewindRequest::new(key(), "/w/other");
    let error = yard.lifecycle.rewind(&elsewhere).await.unwrap_err();
    assert!(matches!(error, RewindError::OtherTree { .. }), "{error:?}");
    yard.shelf.inner().kept[0].0.health = Health::Damaged("a pack is gone".into());
    let error = yard.lifecycle.rewind(&back(1)).await.unwrap_err();
    assert!(matches!(error, RewindError::Damaged { .. }), "{error:?}");
    assert!(matches!(
        crate::bench::bench().lifecycle.rewind(&back(1)).await,
        Err(RewindError::NoCheckpointer)
    ));
    let nobody = RewindRequest::new(SessionKey::new("issue-42", "nobody").unwrap(), "/w/demo");
    assert!(matches!(yard.lifecycle.rewind(&nobody).await, Err(RewindError::UnknownAgent { .. })));
}

/// Only so many checkpoints are kept, or somebody dropped one: what was taken back by it does not count again.
#[tokio::test]
async fn what_was_taken_back_stays_so_where_the_target_is_dropped() {
    let yard = yard();
    for prompt in ["one +a=1", "two +a=2", "three +a=3"] {
        yard.run(prompt).await;
    }
    let rewound = yard.lifecycle.rewind(&back(2)).await.unwrap();
    assert_eq!(yard.files(), ["a=1"]);
    yard.run("four +b=4").await;
    let target = rewound.target.id;
    yard.shelf.inner().kept.retain(|(kept, _)| kept.id != target);
    let error = yard.lifecycle.rewind(&back(2)).await.unwrap_err();
    assert!(matches!(error, RewindError::NotSoMany { asked: 2, there: 1 }), "{error:?}");
    assert_eq!(yard.lifecycle.rewind(&back(1)).await.unwrap().outcome, RewindOutcome::Done);
    assert_eq!(yard.files(), ["a=1"]);
}
