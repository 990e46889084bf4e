//! What a good session survives: failed runs of other kinds, kills at every step, other folders, other versions.

use session_core::decide::{Activity, Verdict, Why};
use session_core::error::RunError;
use session_core::*;

use crate::bench::*;
use crate::scripted::*;

const OTHER: &str = "99999999-9999-4999-8999-999999999999";

fn add_folder(bench: &Bench, path: &str, inode: u64, repository: &str) {
    bench.host.folders.lock().unwrap().insert(path.into(), folder(path, inode, repository));
}

/// Runs a request whose runner dies when the agent was started so often and nothing moves any more.
pub(crate) async fn die_in(bench: &Bench, request: LlmRequest, calls: usize) {
    let run = bench.lifecycle.run(request);
    let death = async {
        while bench.agent.calls().len() < calls {
            tokio::task::yield_now().await;
        }
        // The store and the host of these tests never wait: what can happen has happened after a few turns.
        for _ in 0..50 {
            tokio::task::yield_now().await;
        }
    };
    tokio::select! { _ = run => unreachable!("the agent hangs"), () = death => {} }
}

#[tokio::test]
async fn a_failed_fresh_run_takes_no_good_session_away() {
    for (policy, cwd) in [(ResumePolicy::Never, "/w/demo"), (ResumePolicy::Prefer, "/w/other")] {
        for act in
            [Act::FailAfterKeeping(Verdict::Unauthenticated), Act::Fail(Verdict::RateLimited, Activity::None)]
        {
            for catalog in [true, false] {
                let bench = bench_with(Scripted::new(), catalog);
                add_folder(&bench, "/w/other", 3, "/w/other/.git");
                let first = bench.run("one").await.session_id;
                bench.agent.will([act.clone()]);
                bench.lifecycle.run(request("two").resume(policy).cwd(cwd)).await.unwrap_err();
                assert_eq!(bench.bound().await, first.as_ref().map(ToString::to_string));
                let third = bench.run("three").await;
                assert_eq!(
                    (third.route, third.session_id),
                    (Route::Resumed, first),
                    "{policy:?} {act:?} {catalog}"
                );
            }
        }
    }
}

#[tokio::test]
async fn an_answer_from_another_conversation_stands_aside_and_under_require_fails() {
    for policy in [ResumePolicy::Prefer, ResumePolicy::Require] {
        let bench = bench();
        let first = bench.run("one").await.session_id;
        bench.agent.will([Act::Elsewhere(OTHER)]);
        match (policy, bench.lifecycle.run(request("two").resume(policy)).await) {
            (ResumePolicy::Require, Err(error)) => assert_eq!(error.why(), Some(Why::SessionReplaced)),
            (_, Ok(result)) => {
                assert_eq!((result.resumed, result.route), (false, Route::FellBack(Why::SessionReplaced)));
            }
            (_, Err(error)) => panic!("{error}"),
        }
        assert_eq!(bench.bound().await, first.as_ref().map(ToString::to_string));
        assert!(
            bench.record().await.past.iter().any(|former| former.native_id.as_str() == OTHER)
                || policy == ResumePolicy::Require
        );
        assert_eq!(bench.run("three").await.session_id, first);
    }
}

#[tokio::test]
async fn a_runner_that_dies_after_a_foreign_id_keeps_the_session() {
    let bench = bench();
    let first = bench.run("one").await.session_id;
    bench.agent.will([Act::HangElsewhere(OTHER)]);
    die_in(&bench, request("two"), 2).await;
    let third = bench.run("three").await;
    assert_eq!((third.route, third.session_id), (Route::Resumed, first));
}

#[tokio::test]
async fn a_runner_that_dies_in_a_trial_or_a_fresh_run_keeps_the_session() {
    for (acts, policy, calls) in [
        (vec![Act::Fail(Verdict::Unknown, Activity::None), Act::Hang], ResumePolicy::Prefer, 3),
        (vec![Act::Hang], ResumePolicy::Never, 2),
    ] {
        let bench = bench();
        let first = bench.run("one").await.session_id;
        bench.agent.will(acts);
        die_in(&bench, request("two").resume(policy), calls).await;
        let third = bench.run("three").await;
        assert_eq!((third.route, third.session_id), (Route::Resumed, first));
    }
}

/// The session was condemned before the runner died: then the new one is what there is.
#[tokio::test]
async fn a_runner_that_dies_in_the_place_of_a_lost_session_leaves_the_new_one() {
    let bench = bench();
    let first = bench.run("one").await.session_id.unwrap();
    bench.lose(first.as_str());
    bench.agent.will([Act::Hang]);
    die_in(&bench, request("two"), 2).await;
    let third = bench.run("three").await;
    assert_eq!((third.route, third.text.as_str()), (Route::Resumed, "2"));
}

async fn busy_until_fallback(bench: &Bench, then: Option<Act>) -> impl FnMut(&AgentEvent<'_>) + Send + use<> {
    bench.agent.will(std::iter::repeat_n(Act::Fail(Verdict::Busy, Activity::None), 1000));
    let agent = bench.agent.clone();
    move |event: &AgentEvent<'_>| {
        if matches!(event, AgentEvent::FellBack { .. }) {
            agent.world().acts.clear();
            agent.will(then.clone());
        }
    }
}

#[tokio::test]
async fn an_unconfirmed_session_that_is_busy_is_kept() {
    let bench = bench_with(Scripted::new(), false);
    bench.agent.will([Act::FailAfterKeeping(Verdict::Crashed)]);
    bench.fails("one").await;
    let mut sink = busy_until_fallback(&bench, None).await;
    let aside = bench.lifecycle.run_with(request("two"), &mut sink).await.unwrap();
    assert_eq!(aside.route, Route::FellBack(Why::SessionBusy));
    let third = bench.run("three").await;
    assert_eq!((third.route, third.text.as_str()), (Route::Resumed, "2"));
    assert_ne!(third.session_id, aside.session_id);
}

#[tokio::test]
async fn a_fresh_start_is_never_reported_as_a_resume() {
    let bench = bench_with(Scripted::new(), false);
    bench.agent.will([Act::FailAfterKeeping(Verdict::Crashed)]);
    bench.fails("one").await;
    let mut sink = busy_until_fallback(&bench, Some(Act::Hang)).await;
    {
        let run = bench.lifecycle.run_with(request("two"), &mut sink);
        let death = async {
            while !matches!(bench.agent.calls().get(2..).and_then(<[Asked]>::last), Some(Asked::Fresh(_))) {
                tokio::task::yield_now().await;
            }
        };
        tokio::select! { _ = run => unreachable!(), () = death => {} }
    }
    let third = bench.run("three").await;
    let was_fresh = matches!(bench.agent.calls().last(), Some(Asked::Fresh(_)));
    assert_eq!(third.resumed, !was_fresh);
}

#[tokio::test]
async fn a_fork_whose_runner_died_is_forked_again() {
    let bench = bench();
    bench.run("one").await;
    let key = SessionKey::new("issue-42-b", "scripted").unwrap();
    let fork = |prompt: &str| {
        LlmRequest::new(prompt)
            .cwd("/w/demo")
            .session(SessionRef::new("issue-42-b", "scripted"))
            .fork_of(SessionRef::new("issue-42", "scripted"))
    };
    bench.agent.will([Act::Hang]);
    die_in(&bench, fork("two"), 2).await;
    let copy = bench.lifecycle.record(&key).await.unwrap().unwrap().candidate.unwrap().binding.native_id;
    bench.lose(copy.as_str());
    let again = bench.lifecycle.run(fork("three")).await.unwrap();
    assert_eq!((again.route, again.text.as_str()), (Route::Forked, "2"));
    // With resuming switched off there is nothing that could be copied, and an empty start is not what was asked.
    let off = bench.lifecycle.clone().resume_setting(ResumeSetting::new().project(Some(false)));
    let other = fork("four").session(SessionRef::new("issue-42-c", "scripted"));
    assert!(matches!(off.run(other).await, Err(RunError::Refused { why: Why::ResumeDisabled })));
}

#[tokio::test]
async fn crashes_in_the_middle_of_work_are_no_failed_resumes() {
    let bench = bench();
    let first = bench.run("one").await.session_id;
    for _ in 0..4 {
        bench.agent.will([Act::Fail(Verdict::Crashed, Activity::Acted)]);
        bench.fails("two").await;
    }
    let last = bench.run("three").await;
    assert_eq!((last.route, last.session_id), (Route::Resumed, first));
}

#[tokio::test]
async fn what_the_model_said_it_was_called_for() {
    let bench = bench();
    bench.run("one").await;
    bench.agent.will([Act::TextThenCrash]);
    bench.fails("two").await;
    let times = bench.agent.world().calls.iter().filter(|(_, prompt)| prompt == "two").count();
    assert_eq!(times, 1, "the prompt is never run twice");
}

#[tokio::test]
async fn a_fallback_that_cannot_be_started_is_told_with_what_came_before() {
    let bench = bench_with(Scripted::new(), false);
    let first = bench.run("one").await.session_id.unwrap();
    bench.lose(first.as_str());
    bench.agent.will([Act::Fail(Verdict::Missing, Activity::None), Act::CannotStart]);
    assert!(matches!(bench.lifecycle.run(request("two")).await, Err(RunError::Agent(_))));
    let log = bench.lifecycle.audit(&key(), None).await.unwrap();
    let event = &log.last().unwrap().event;
    assert_eq!((event.attempts.len(), event.why.as_deref()), (1, Some("session_missing")));
    assert_eq!(bench.bound().await, Some(first.to_string()));
}

#[tokio::test]
async fn a_failure_that_costs_nothing_does_not_set_the_counter_back() {
    let bench = bench();
    bench.run("one").await;
    bench.run("two").await;
    bench.agent.will([Act::FailAtCost(Verdict::Misconfigured, 0.0)]);
    bench.fails("three").await;
    assert_eq!(bench.run("four").await.cost_usd, Some(0.5));
}

#[tokio::test]
async fn absurd_costs_do_not_make_the_record_unreadable() {
    let bench = bench();
    let first = bench.run("one").await.session_id;
    for cost in [1.7e308, f64::INFINITY, f64::NAN, 1.7e308] {
        bench.agent.will([Act::FailAtCost(Verdict::RateLimited, cost)]);
        bench.fails("two").await;
    }
    let last = bench.run("three").await;
    assert_eq!((last.route, last.session_id), (Route::Resumed, first));
    assert!(last.totals.cost_usd.is_finite());
}

#[tokio::test]
async fn a_mailbox_that_goes_to_and_fro_has_its_conversation_in_each_folder() {
    let mut agent = Scripted::new();
    agent.capabilities.resume_reach = ReachCapability::SameFolder;
    let bench = bench_with(agent, true);
    add_folder(&bench, "/w/tree", 2, "/w/demo/.git");
    add_folder(&bench, "/w/other", 3, "/w/other/.git");
    let folders = ["/w/demo", "/w/tree", "/w/other"];
    let mut sessions = Vec::new();
    for cwd in folders {
        sessions.push(bench.lifecycle.run(request("one").cwd(cwd)).await.unwrap().session_id);
    }
    for turns in 2..4 {
        for (cwd, session) in folders.iter().zip(&sessions) {
            let run = bench.lifecycle.run(request("more").cwd(*cwd)).await.unwrap();
            assert_eq!((run.route, &run.session_id), (Route::Resumed, session), "{cwd}");
            assert_eq!((run.text, run.cost_usd.is_some_and(|cost| cost > 0.0)), (turns.to_string(), true));
        }
    }
    assert_eq!(bench.record().await.past.len(), 2, "each session stands in one place");
}

#[tokio::test]
async fn a_version_that_cannot_resume_for_a_day_costs_nothing() {
    let bench = bench();
    let first = bench.run("one").await.session_id;
    let mut older = bench.agent.clone();
    older.capabilities.headless_resume = false;
    let downgraded =
        bench.lifecycle.clone().agent(Agent::new(older).with_catalog(Glass(bench.agent.clone())));
    let second = downgraded.run(request("two")).await.unwrap();
    assert_eq!(second.route, Route::FellBack(Why::VersionCannotResume));
    assert_eq!(bench.run("three").await.session_id, first);
}

/// What a dropped run was still writing arrives after the next run read the record.
#[tokio::test]
async fn a_late_write_of_a_dropped_run_is_taken_in() {
    let bench = bench();
    let first = bench.run("one").await.session_id;
    let mut late = bench.record().await;
    late.name = Some("written late".to_owned());
    bench.store.late(codec::encode(&late));
    let second = bench.run("two").await;
    assert_eq!((second.route, second.session_id), (Route::Resumed, first));
    assert!(second.recorded.is_saved());
    assert_eq!(second.name.as_deref(), Some("written late"));
    assert_eq!(bench.agent.calls().len(), 2, "nothing was started twice");
}

/// A disk that is full for a moment at the start does not cost the session of a run that went well.
#[tokio::test]
async fn a_write_that_failed_at_the_start_is_tried_again_at_the_end() {
    let bench = bench();
    bench.store.set(&["save"]);
    let store = bench.store.clone();
    let mut sink = move |event: &AgentEvent<'_>| {
        if matches!(event, AgentEvent::Session { .. }) {
            store.set(&[]);
        }
    };
    let first = bench.lifecycle.run_with(request("one"), &mut sink).await.unwrap();
    assert!(first.recorded.is_saved(), "{:?}", first.recorded);
    assert_eq!(bench.run("two").await.session_id, first.session_id);
}
