//! Summaries, by text and by the agent, and what is made with them.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use session_core::decide::{Activity, Verdict, Why};
use session_core::error::*;
use session_core::history::{
    Block, Entry, EntryKind, ListQuery, Listing, Located, PageQuery, SessionSource, SessionsQuery,
    TranscriptPage,
};
use session_core::*;

use crate::bench::{Bench, bench, bench_with};
use crate::scripted::*;

fn of_key() -> SummaryRequest {
    SummaryRequest::new(key())
}

/// State dirs of their own, so that a copy can be made.
fn with_dirs(bench: &Bench) {
    *bench.store.dir.lock().unwrap() = Some("/s".into());
    bench.store.dirs_of_keys.store(true, Ordering::Relaxed);
}

async fn kinds(bench: &Bench, key: &SessionKey) -> Vec<String> {
    let log = bench.lifecycle.audit(key, None).await.unwrap();
    log.into_iter().map(|entry| entry.event.kind).collect()
}

#[tokio::test]
async fn a_summary_by_text_runs_and_writes_nothing_but_a_word_in_the_log() {
    let bench = bench();
    for prompt in ["one", "two", "three"] {
        bench.run(prompt).await;
    }
    let before = (bench.record().await, bench.agent.calls().len());
    let summary = bench.lifecycle.summarise(&of_key().steering("Mind the tests")).await.unwrap();
    assert_eq!((summary.turns, summary.span, summary.left_out, summary.cut), (3, (1, 3), 0, false));
    assert_eq!(summary.source, SummarySource::Text);
    // This catalog shows words alone, and that is said.
    assert!(summary.text.contains("which tools were called") && summary.text.contains("Mind the tests"));
    assert!(summary.text.contains("one") && summary.text.contains("three"));
    assert_eq!((bench.record().await, bench.agent.calls().len()), before);
    assert_eq!(kinds(&bench, &key()).await.last().unwrap(), "summarised");
}

#[tokio::test]
async fn what_cannot_be_asked_for_is_refused_by_name() {
    let bench = bench();
    let fails = async |request: SummaryRequest| bench.lifecycle.summarise(&request).await.unwrap_err();
    let none = fails(of_key()).await;
    assert!(matches!(none, SummaryError::Read { source: HandOverError::NoSession { .. }, .. }), "{none:?}");
    bench.run("one").await;
    for bytes in [0, SummaryRequest::MIN_BYTES - 1, SummaryRequest::MAX_BYTES + 1] {
        assert!(matches!(fails(of_key().bytes(bytes)).await, SummaryError::Budget { .. }));
    }
    let long = fails(of_key().bytes(4000).steering("x".repeat(1001))).await;
    assert!(matches!(long, SummaryError::Steering { bytes: 1001, limit: 1000 }), "{long:?}");
    // A catalog without pages cannot tell a part.
    let part = fails(of_key().span(TurnSpan::From(1))).await;
    assert!(matches!(part, SummaryError::Read { source: HandOverError::Catalog(_), .. }), "{part:?}");
}

/// The store said that it failed, and did it all the same.
#[tokio::test]
async fn what_arrived_after_all_is_no_failure() {
    let bench = bench();
    let first = bench.run("one").await.session_id.unwrap();
    bench.store.set(&["save_late"]);
    let compacted = bench.lifecycle.compact(&of_key()).await;
    bench.store.set(&[]);
    assert_eq!(compacted.unwrap().before, first);
    assert_eq!(bench.record().await.past[0].why, "compacted");
}

#[tokio::test]
async fn compacting_leaves_the_conversation_for_one_that_begins_with_its_summary() {
    let bench = bench();
    let first = bench.run("Fix the login bug").await.session_id.unwrap();
    let compacted = bench.lifecycle.compact(&of_key()).await.unwrap();
    assert_eq!(compacted.before, first);
    let record = bench.record().await;
    assert_eq!((record.binding, record.past[0].why.as_str()), (None, "compacted"));
    assert_eq!((&record.past[0].native_id, record.past[0].rejoinable), (&first, true));
    assert_eq!(record.preamble.unwrap().text, compacted.summary.text);
    assert_eq!(kinds(&bench, &key()).await, ["run_finished", "compacted"]);
    // What was before lies untouched.
    assert_eq!(bench.agent.world().sessions[first.as_str()], ["Fix the login bug"]);
    // A second one would lose what waits.
    let again = bench.lifecycle.compact(&of_key()).await.unwrap_err();
    assert!(matches!(again, SummaryError::Pending { .. }), "{again:?}");
    let second = bench.run("two").await;
    assert_ne!(second.session_id, Some(first));
    assert!(bench.lifecycle.compact(&of_key()).await.is_ok(), "the next one may be compacted again");
}

#[tokio::test]
async fn a_conversation_that_was_left_is_not_continued_by_itself() {
    let (bench, here, _) = crate::bench::two_folders().await;
    let there = LlmRequest::new("x").cwd("/w/other").session(SessionRef::new("issue-42", "scripted"));
    // Back in the first folder, its own session goes on; compacted, it does not.
    assert_eq!(bench.run("back").await.session_id, here);
    drop(bench.lifecycle.compact(&of_key()).await.unwrap());
    bench.lifecycle.run(there).await.unwrap();
    assert_ne!(bench.run("here again").await.session_id, here);
}

#[tokio::test]
async fn nothing_changes_where_a_record_may_not_be_written() {
    let bench = bench();
    bench.run("one").await;
    let before = bench.record().await;
    bench.store.set(&["save"]);
    assert!(matches!(bench.lifecycle.compact(&of_key()).await, Err(SummaryError::Store(_))));
    bench.store.set(&["fence"]);
    assert!(matches!(bench.lifecycle.compact(&of_key()).await, Err(SummaryError::Busy { .. })));
    bench.store.set(&[]);
    let held = bench.store.lease(&key(), &bench.host.holder()).await.unwrap();
    assert!(matches!(bench.lifecycle.compact(&of_key()).await, Err(SummaryError::Busy { .. })));
    drop(held);
    assert_eq!(bench.record().await, before);
    bench.agent.will([Act::Hang]);
    crate::keeping::die_in(&bench, request("two"), 2).await;
    assert!(matches!(bench.lifecycle.compact(&of_key()).await, Err(SummaryError::Unsettled { .. })));
}

#[tokio::test]
async fn a_conversation_is_handed_over_to_another_key_and_both_logs_say_so() {
    let bench = bench();
    let other = Scripted::named("other");
    let lifecycle =
        bench.lifecycle.clone().agent(Agent::new(other.clone()).with_catalog(Glass(other.clone())));
    let to = SessionKey::new("issue-42", "other").unwrap();
    bench.run("Fix the login bug").await;
    let before = bench.record().await;
    for _ in 0..2 {
        // The same key may replace what it handed over.
        drop(lifecycle.hand_over_to(&of_key(), &to).await.unwrap());
    }
    assert_eq!(bench.record().await, before, "the original stays");
    assert_eq!(kinds(&bench, &to).await, ["handed_over", "handed_over"]);
    assert_eq!(kinds(&bench, &key()).await.last().unwrap(), "handed_over");
    let told = lifecycle.explain(&to).await.unwrap();
    assert_eq!(told.waiting.as_ref().map(|waiting| &waiting.from), Some(&key()));
    assert!(told.to_string().contains("of text before it, handed over 1970-01-01T00:00:00Z from "), "{told}");
    let third = SessionKey::new("issue-43", "scripted").unwrap();
    let asked = LlmRequest::new("x").cwd("/w/demo").session(SessionRef::new("issue-43", "scripted"));
    lifecycle.run(asked).await.unwrap();
    let taken = lifecycle.hand_over_to(&SummaryRequest::new(third), &to).await.unwrap_err();
    assert!(matches!(taken, SummaryError::Pending { .. }), "{taken:?}");
    let review = LlmRequest::new("Review it").cwd("/w/demo").session(SessionRef::new("issue-42", "other"));
    assert_eq!(lifecycle.run(review).await.unwrap().preamble.as_deref(), Some("handed_over"));
    let prompt = other.world().calls[0].1.clone();
    assert!(prompt.contains("the agent scripted") && prompt.ends_with("\n\nReview it"), "{prompt}");
    let itself = lifecycle.hand_over_to(&of_key(), &key()).await.unwrap_err();
    assert!(matches!(itself, SummaryError::ToItself { .. }), "{itself:?}");
    let nobody = SessionKey::new("issue-42", "nobody").unwrap();
    assert!(lifecycle.hand_over_to(&of_key(), &nobody).await.is_err());
}

#[tokio::test]
async fn an_agent_is_asked_in_a_copy_that_is_gone_afterwards() {
    let bench = bench();
    with_dirs(&bench);
    let first = bench.run("Fix the login bug").await.session_id.unwrap();
    let before = bench.record().await;
    let summary = bench.lifecycle.summarise(&of_key().by(SummaryBy::Agent).steering("tests")).await.unwrap();
    assert!(matches!(summary.source, SummarySource::Agent { used_tools: false, .. }), "{:?}", summary.source);
    assert!(
        summary.text.contains("summarised by that agent") && summary.text.contains("\n\n2\n</"),
        "{}",
        summary.text
    );
    assert_eq!(bench.record().await, before);
    assert_eq!(bench.agent.world().sessions[first.as_str()], ["Fix the login bug"], "the original stays");
    let (asked, question) = bench.agent.world().calls.last().unwrap().clone();
    assert!(matches!(&asked, Asked::Resume(copy) if *copy != first), "{asked:?}");
    assert!(question.contains("<what-matters>\ntests\n</what-matters>"), "{question}");
    let keys = bench.store.list(&ListOptions::default()).await.unwrap();
    assert_eq!(keys.items, [key()]);
}

#[tokio::test]
async fn an_agent_that_fails_is_made_up_for_by_text_with_the_reason() {
    for (act, why) in [
        (Act::Fail(Verdict::RateLimited, Activity::ModelCalled), NotByAgent::Failed(Why::RateLimited)),
        (Act::Fail(Verdict::Missing, Activity::None), NotByAgent::Failed(Why::SessionUnindexed)),
        (Act::FailAfterKeeping(Verdict::TimedOut), NotByAgent::Failed(Why::TimedOut)),
    ] {
        let bench = bench();
        with_dirs(&bench);
        bench.run("Fix the login bug").await;
        let before = bench.record().await;
        bench.agent.will([act]);
        let summary = bench.lifecycle.summarise(&of_key().by(SummaryBy::Agent)).await.unwrap();
        assert_eq!(summary.source, SummarySource::TextInstead(why));
        assert!(summary.text.contains("Fix the login bug"));
        assert_eq!(bench.record().await, before);
        assert_eq!(bench.store.list(&ListOptions::default()).await.unwrap().items, [key()]);
        let log = bench.lifecycle.audit(&key(), None).await.unwrap();
        assert!(
            log.last().unwrap().event.detail.as_ref().unwrap().contains("the agent was asked, and failed")
        );
    }
    // Without state dirs, a copy would show up in lists.
    let bench = bench();
    bench.run("one").await;
    let summary = bench.lifecycle.summarise(&of_key().by(SummaryBy::Agent)).await.unwrap();
    assert_eq!(summary.source, SummarySource::TextInstead(NotByAgent::NoStateDir));
    assert_eq!(bench.agent.calls().len(), 1);
}

#[tokio::test]
async fn what_a_crash_left_of_a_copy_is_in_no_list_and_goes_with_the_next_one() {
    let bench = bench();
    with_dirs(&bench);
    bench.run("one").await;
    let before = bench.record().await;
    bench.agent.will([Act::Hang]);
    {
        let lifecycle = bench.lifecycle.clone();
        let request = of_key().by(SummaryBy::Agent);
        let asking = lifecycle.summarise(&request);
        let death = async {
            while bench.agent.calls().len() < 2 {
                tokio::task::yield_now().await;
            }
        };
        tokio::select! { biased; _ = asking => panic!("it hangs"), () = death => {} }
    }
    let keys = bench.store.list(&ListOptions::default()).await.unwrap().items;
    let copy = keys.iter().find(|of| **of != key()).expect("the copy is left").clone();
    assert_eq!(bench.record().await, before);
    let stolen =
        LlmRequest::new("x").cwd("/w/demo").session(SessionRef::new(copy.mailbox.as_str(), "scripted"));
    let refused = bench.lifecycle.run(stolen).await;
    assert!(matches!(refused, Err(RunError::Request(RequestError::Reserved { .. }))), "{refused:?}");
    let lists = Lists(bench.agent.clone());
    let listing = Lifecycle::new(Arc::new(bench.store.clone()), bench.host.clone())
        .agent(Agent::new(bench.agent.clone()).with_catalog(lists));
    let listed = listing.list(&SessionsQuery::default()).await.unwrap();
    assert!(listed.unlisted.iter().all(|not| not.key.is_none()), "only the key's own dir: {listed:?}");
    let summary = bench.lifecycle.summarise(&of_key().by(SummaryBy::Agent)).await.unwrap();
    assert!(matches!(summary.source, SummarySource::Agent { .. }));
    assert_eq!(bench.store.list(&ListOptions::default()).await.unwrap().items, [key()]);
}

/// Fails for every dir but that of the key and the agent's own place.
#[derive(Debug)]
struct Lists(Scripted);

#[async_trait]
impl SessionCatalog for Lists {
    async fn inspect(&self, query: SessionQuery<'_>) -> Result<Inspection, CatalogError> {
        Glass(self.0.clone()).inspect(query).await
    }
    async fn last_said(&self, query: SessionQuery<'_>, bytes: usize) -> Result<Conversation, CatalogError> {
        Glass(self.0.clone()).last_said(query, bytes).await
    }
    async fn mend(&self, _: SessionQuery<'_>, _: &Inspection, _: Mend) -> Result<bool, CatalogError> {
        Ok(false)
    }
    async fn list(&self, query: &ListQuery) -> Result<Listing, CatalogError> {
        let dir = query.state_dir.clone();
        match dir {
            Some(path) if !path.ends_with("issue-42") => {
                Err(CatalogError { path, source: "a copy was listed".into() })
            }
            _ => Ok(Listing::default()),
        }
    }
}

/// Makes branches in the world, into a dir of their own.
#[derive(Debug)]
struct Branches {
    agent: Scripted,
    refuses: bool,
}

#[async_trait]
impl SessionCatalog for Branches {
    async fn inspect(&self, query: SessionQuery<'_>) -> Result<Inspection, CatalogError> {
        Glass(self.agent.clone()).inspect(query).await
    }
    async fn last_said(&self, query: SessionQuery<'_>, bytes: usize) -> Result<Conversation, CatalogError> {
        Glass(self.agent.clone()).last_said(query, bytes).await
    }
    async fn mend(&self, _: SessionQuery<'_>, _: &Inspection, _: Mend) -> Result<bool, CatalogError> {
        Ok(false)
    }
    async fn page(
        &self,
        id: &NativeId,
        _: &SessionSource,
        _: &PageQuery,
    ) -> Result<TranscriptPage, CatalogError> {
        let prompts = self.agent.world().sessions[id.as_str()].clone();
        let entry = |text| Entry::new(EntryKind::Prompt(vec![Block::Text(text)]));
        let located = |text| Located { entry: entry(text), path: "t".into(), span: None, line: None };
        let entries = prompts.into_iter().map(located).collect();
        Ok(TranscriptPage { entries, before: None, after: None, notices: Vec::new() })
    }
    async fn branch(&self, order: BranchOrder<'_>) -> Result<Branched, CatalogError> {
        if self.refuses {
            return Ok(Branched::Refused(BranchRefusal::SpotGone));
        }
        assert!(order.into.is_some_and(|dir| dir.to_string_lossy().contains("copy-of")), "{:?}", order.into);
        let mut kept = self.agent.world().sessions[order.query.id.as_str()].clone();
        kept.truncate(usize::try_from(order.keep.turns).unwrap());
        let id = NativeId::new(order.seed.to_string());
        self.agent.world().sessions.insert(id.to_string(), kept);
        Ok(Branched::Done(Branch { id, path: "/s/branch".into(), turns: order.keep.turns, bytes: None }))
    }
}

fn branching(refuses: bool) -> (Bench, Lifecycle) {
    let bench = bench_with(Scripted::new(), false);
    with_dirs(&bench);
    let catalog = Branches { agent: bench.agent.clone(), refuses };
    let agent = Agent::new(bench.agent.clone()).with_catalog(catalog);
    let lifecycle = Lifecycle::new(Arc::new(bench.store.clone()), bench.host.clone()).agent(agent);
    (bench, lifecycle)
}

#[tokio::test]
async fn an_agent_sees_no_more_than_the_turns_that_are_to_be_summarised() {
    let (bench, lifecycle) = branching(false);
    for prompt in ["one", "two", "three"] {
        lifecycle.run(request(prompt)).await.unwrap();
    }
    let first = bench.bound().await.unwrap();
    let summary = lifecycle.summarise(&of_key().by(SummaryBy::Agent).span(TurnSpan::UpTo(2))).await.unwrap();
    assert!(matches!(summary.source, SummarySource::Agent { .. }), "{:?}", summary.source);
    // Two turns and the question.
    assert!(
        summary.text.contains("\n\n3\n</") && summary.text.contains("turns 1 to 2 of 3"),
        "{}",
        summary.text
    );
    let (asked, _) = bench.agent.world().calls.last().unwrap().clone();
    assert!(matches!(asked, Asked::Resume(id) if id.as_str() != first));
    assert_eq!(bench.agent.world().sessions[&first].len(), 3);
    assert_eq!(bench.store.list(&ListOptions::default()).await.unwrap().items, [key()]);
    let later = lifecycle.summarise(&of_key().by(SummaryBy::Agent).span(TurnSpan::From(3))).await.unwrap();
    assert!(matches!(later.source, SummarySource::Agent { .. }));
    assert!(bench.agent.world().calls.last().unwrap().1.contains("Leave out the first 2 prompts"));
    let text = lifecycle.summarise(&of_key().span(TurnSpan::From(3))).await.unwrap();
    assert!(text.text.contains("three") && !text.text.contains("two"));
    let none = lifecycle.summarise(&of_key().span(TurnSpan::UpTo(4))).await.unwrap_err();
    assert!(matches!(none, SummaryError::Span { turns: 3, .. }), "{none:?}");
    assert_eq!(none.to_string(), format!("{} has no turn 4; turns: 3", key()));
}

#[tokio::test]
async fn where_no_copy_can_be_made_the_text_says_why() {
    let (bench, lifecycle) = branching(true);
    lifecycle.run(request("one")).await.unwrap();
    let summary = lifecycle.summarise(&of_key().by(SummaryBy::Agent)).await.unwrap();
    let SummarySource::TextInstead(NotByAgent::NoCopy(why)) = &summary.source else { panic!("{summary:?}") };
    assert!(why.contains("does not hold that point"), "{why}");
    assert_eq!(bench.agent.calls().len(), 1);
}

#[tokio::test]
async fn a_summary_under_a_running_key_is_made_without_its_agent() {
    let bench = bench();
    with_dirs(&bench);
    bench.run("one").await;
    let held = bench.store.lease(&key(), &bench.host.holder()).await.unwrap();
    let summary = bench.lifecycle.summarise(&of_key().by(SummaryBy::Agent)).await.unwrap();
    assert_eq!(summary.source, SummarySource::TextInstead(NotByAgent::Busy));
    drop(held);
}
