//! The orchestration over a scripted agent: each route, and what is bound afterwards.

use std::sync::atomic::Ordering;

use session_core::decide::{Activity, Verdict, Why};
use session_core::*;

use crate::bench::*;
use crate::scripted::*;

#[tokio::test]
async fn the_second_run_continues_the_first() {
    let bench = bench();
    let first = bench.run("one").await;
    assert_eq!(
        (first.route, first.resumed, first.resume_fallback),
        (Route::Fresh(Why::NoPriorSession), false, None)
    );
    let second = bench.run("two").await;
    assert_eq!((second.route, second.resumed, second.resume_fallback), (Route::Resumed, true, None));
    assert_eq!(second.text, "2");
    assert_eq!(second.session_id, first.session_id);
    assert!(second.recorded.is_saved());
    assert_eq!(second.audit_seq, Some(AuditSeq(2)));
    // The counter stands at 1.0 after the second run; each run cost 0.5.
    assert_eq!((second.cost_usd, second.totals.cost_usd, second.totals.runs), (Some(0.5), 1.0, 2));
    assert_eq!(bench.record().await.name.as_deref(), Some("agent/issue-42"));
}

#[tokio::test]
async fn a_chosen_id_has_the_shape_of_the_agents_ids() {
    let agent = Scripted::new();
    agent.world().shape = Some(|random| NativeId::new(random.replace('-', "_")));
    let bench = bench_with(agent, true);
    let id = bench.run("one").await.session_id.unwrap();
    assert!(id.as_str().contains('_') && !id.as_str().contains('-'), "{id}");
    assert_eq!(bench.run("two").await.session_id, Some(id));
}

#[tokio::test]
async fn a_lost_session_is_seen_before_the_run_and_costs_one_attempt() {
    let bench = bench();
    let first = bench.run("one").await.session_id.unwrap();
    bench.lose(first.as_str());
    let second = bench.run("two").await;
    assert_eq!(second.route, Route::FellBack(Why::SessionMissing));
    assert_eq!(second.resume_fallback, Some(Why::SessionMissing));
    assert_eq!(second.attempts.len(), 1);
    assert_ne!(second.session_id, Some(first.clone()));
    let record = bench.record().await;
    assert_eq!((record.past[0].native_id.clone(), record.past[0].rejoinable), (first, false));
    assert_eq!(bench.run("three").await.route, Route::Resumed);
}

#[tokio::test]
async fn without_a_catalog_the_failed_resume_tells_and_one_fallback_follows() {
    let bench = bench_with(Scripted::new(), false);
    let first = bench.run("one").await.session_id.unwrap();
    bench.lose(first.as_str());
    let mut seen = Vec::new();
    let mut sink = |event: &AgentEvent<'_>| {
        if let AgentEvent::FellBack { why } = event {
            seen.push(*why);
        }
    };
    let second = bench.lifecycle.run_with(request("two"), &mut sink).await.unwrap();
    assert_eq!(seen, [Why::SessionMissing]);
    assert_eq!(second.route, Route::FellBack(Why::SessionMissing));
    let verdicts: Vec<_> = second.attempts.iter().map(|a| (a.attempt.as_str(), a.verdict.as_str())).collect();
    assert_eq!(verdicts, [("resume", "missing"), ("fallback", "completed")]);
    let bound = bench.bound().await;
    assert_eq!(bound, second.session_id.map(|id| id.to_string()));
    // Runs after it resume the fresh one: the failed id is never stored again (BR-001).
    assert_eq!(bench.run("three").await.route, Route::Resumed);
    assert_eq!(bench.bound().await, bound);
}

#[tokio::test]
async fn trouble_of_the_run_keeps_the_binding_and_never_falls_back() {
    for verdict in [
        Verdict::Unauthenticated,
        Verdict::RateLimited,
        Verdict::Transient,
        Verdict::TimedOut,
        Verdict::Cancelled,
        Verdict::Misconfigured,
        Verdict::LimitReached,
    ] {
        for activity in [Activity::None, Activity::ModelCalled, Activity::Acted] {
            let bench = bench();
            let first = bench.run("one").await.session_id.unwrap();
            bench.agent.will([Act::Fail(verdict, activity)]);
            let (why, run) = bench.fails("two").await;
            assert_eq!(run.attempts.len(), 1, "{verdict:?}");
            assert_eq!(run.session_id, Some(first.clone()), "{verdict:?} {why}");
            assert_eq!(bench.run("three").await.session_id, Some(first), "{verdict:?}");
        }
    }
}

#[tokio::test]
async fn a_busy_session_is_waited_for_and_then_left_alone() {
    let bench = bench();
    let first = bench.run("one").await.session_id.unwrap();
    bench.agent.will(std::iter::repeat_n(Act::Fail(Verdict::Busy, Activity::None), 2));
    assert_eq!(bench.run("two").await.route, Route::Resumed);

    bench.agent.will(std::iter::repeat_n(Act::Fail(Verdict::Busy, Activity::None), 1000));
    let start = bench.host.millis.load(Ordering::SeqCst);
    // As soon as it runs fresh, the script must not be in the way.
    let agent = bench.agent.clone();
    let mut sink = move |event: &AgentEvent<'_>| {
        if matches!(event, AgentEvent::FellBack { .. }) {
            agent.world().acts.clear();
        }
    };
    let aside = bench.lifecycle.run_with(request("three"), &mut sink).await.unwrap();
    let waited = bench.host.millis.load(Ordering::SeqCst) - start;
    assert_eq!(aside.route, Route::FellBack(Why::SessionBusy));
    assert!((19_900..20_001).contains(&waited), "{waited}");
    assert_eq!(bench.bound().await, Some(first.to_string()), "busy never replaces the binding");
    assert!(
        bench.record().await.past.iter().any(|former| Some(&former.native_id) == aside.session_id.as_ref())
    );
    assert_eq!(bench.run("four").await.session_id, Some(first));
}

#[tokio::test]
async fn an_unknown_failure_is_tried_fresh_and_acquitted_when_that_fails_alike() {
    let bench = bench();
    let first = bench.run("one").await.session_id.unwrap();
    bench
        .agent
        .will([Act::Fail(Verdict::Unknown, Activity::None), Act::Fail(Verdict::Unknown, Activity::None)]);
    let (_, run) = bench.fails("two").await;
    assert_eq!(run.attempts.len(), 2);
    assert_eq!(bench.bound().await, Some(first.to_string()), "acquitted");

    bench.agent.will([Act::Fail(Verdict::Unknown, Activity::None), Act::Work]);
    let third = bench.run("three").await;
    assert_eq!(third.route, Route::FellBack(Why::ResumeUnrecognisedFailure));
    assert_eq!(bench.bound().await, third.session_id.map(|id| id.to_string()), "the trial worked");
    let record = bench.record().await;
    assert!(record.past.iter().any(|former| former.native_id == first && former.rejoinable));
}

#[tokio::test]
async fn once_the_model_was_called_the_prompt_is_never_run_twice() {
    for verdict in Verdict::ALL.iter().filter(|verdict| **verdict != Verdict::Completed) {
        for activity in [Activity::ModelCalled, Activity::Acted] {
            let bench = bench();
            bench.run("one").await;
            bench.agent.will([Act::Fail(*verdict, activity)]);
            let (_, run) = bench.fails("two").await;
            assert_eq!(run.attempts.len(), 1, "{verdict:?} after {activity:?}");
        }
    }
}

#[tokio::test]
async fn a_session_that_the_provider_refuses_is_left_by_the_next_run() {
    let bench = bench();
    let first = bench.run("one").await.session_id.unwrap();
    bench.agent.will([Act::Fail(Verdict::Incompatible, Activity::ModelCalled)]);
    let (why, _) = bench.fails("two").await;
    assert_eq!(why, Why::SessionIncompatible);
    let third = bench.run("three").await;
    assert_eq!(third.route, Route::FellBack(Why::LastRunPoisoned));
    assert!(bench.record().await.past.iter().any(|former| former.native_id == first && former.rejoinable));
}

#[tokio::test]
async fn a_version_that_copies_on_resume_is_followed_from_id_to_id() {
    for catalog in [true, false] {
        let mut agent = Scripted::new();
        agent.capabilities.id_on_resume = IdOnResume::Replaced;
        let bench = bench_with(agent, catalog);
        let first = bench.run("one").await.session_id;
        let second = bench.run("two").await;
        let third = bench.run("three").await;
        assert_eq!((second.route, third.route), (Route::Resumed, Route::Resumed));
        assert_eq!(third.text, "3", "the third run knows the second turn");
        let record = bench.record().await;
        let past: Vec<_> = record.past.iter().map(|former| Some(former.native_id.clone())).collect();
        assert_eq!(past, [first, second.session_id]);
    }
}

#[tokio::test]
async fn an_agent_that_chooses_its_own_id_is_saved_when_it_names_it() {
    let mut agent = Scripted::new();
    agent.capabilities.caller_chosen_id = false;
    let bench = bench_with(agent, true);
    bench.agent.will([Act::Hang]);
    let lifecycle = bench.lifecycle.clone();
    let hanging = tokio::spawn(async move { lifecycle.run(request("one")).await.map(drop) });
    // The runner dies in mid-turn, once the id is saved.
    while bench.lifecycle.record(&key()).await.unwrap().is_none_or(|record| record.candidate.is_none()) {
        tokio::task::yield_now().await;
    }
    hanging.abort();
    assert!(hanging.await.unwrap_err().is_cancelled());
    let next = bench.run("two").await;
    assert_eq!((next.route, next.text.as_str()), (Route::Resumed, "2"));
    assert_eq!(bench.agent.world().reaped.len(), 1, "what the dead runner left was ended");
    assert!(next.warnings.contains(&Warning::Reclaimed(1)));
}

#[tokio::test]
async fn a_runner_that_dies_in_mid_turn_loses_nothing() {
    let bench = bench();
    let first = bench.run("one").await.session_id.unwrap();
    bench.agent.will([Act::Hang]);
    {
        let hanging = bench.lifecycle.run(request("two"));
        let timeout = async {
            while bench.agent.calls().len() < 2 {
                tokio::task::yield_now().await;
            }
        };
        tokio::select! { _ = hanging => unreachable!(), () = timeout => {} }
    }
    let third = bench.run("three").await;
    assert_eq!((third.session_id, third.text.as_str()), (Some(first), "3"));
}

#[tokio::test]
async fn a_fresh_session_that_was_never_kept_is_not_called_lost() {
    let bench = bench();
    bench.agent.will([Act::Fail(Verdict::Crashed, Activity::ModelCalled)]);
    bench.fails("one").await;
    assert_eq!(bench.run("two").await.route, Route::FellBack(Why::SessionNotStarted));
}

#[tokio::test]
async fn a_failed_first_run_that_was_kept_is_resumed() {
    let bench = bench();
    bench.agent.will([Act::FailAfterKeeping(Verdict::RateLimited)]);
    let (why, run) = bench.fails("one").await;
    assert_eq!(why, Why::RateLimited);
    assert!(run.session_id.is_some(), "its transcript holds a turn (BR-033)");
    assert_eq!(bench.run("two").await.route, Route::Resumed);
}

#[tokio::test]
async fn a_turn_that_was_not_kept_is_reported_and_confirms_nothing() {
    let bench = bench();
    bench.agent.will([Act::Forget]);
    let first = bench.run("one").await;
    assert!(first.warnings.contains(&Warning::NotPersisted));
    assert_eq!(bench.bound().await, None);
}

/// Nobody can look: a session that was started and never confirmed is tried, and trouble of the run does not
/// take it away.
#[tokio::test]
async fn an_unconfirmed_session_survives_trouble_that_is_not_its_own() {
    let bench = bench_with(Scripted::new(), false);
    bench.agent.will([Act::FailAfterKeeping(Verdict::Crashed)]);
    bench.fails("one").await;
    let candidate = bench.record().await.candidate.unwrap().binding.native_id;
    for verdict in [Verdict::RateLimited, Verdict::Unauthenticated] {
        bench.agent.will([Act::Fail(verdict, Activity::None)]);
        bench.fails("two").await;
    }
    let third = bench.run("three").await;
    assert_eq!((third.route, third.session_id), (Route::Resumed, Some(candidate)));
    assert_eq!(third.text, "2", "the first prompt is still known");
}

/// An agent that dies before it names its session, but after it kept a turn of it.
#[tokio::test]
async fn a_session_that_was_kept_without_a_word_is_found() {
    let bench = bench();
    bench.agent.will([Act::KeepInSilence]);
    let (_, run) = bench.fails("one").await;
    assert!(run.session_id.is_some());
    assert_eq!(bench.run("two").await.text, "2");
}
