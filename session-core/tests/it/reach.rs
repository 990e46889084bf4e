//! Sessions that are as good as ever and out of reach for now, and what agents count over resumes.

use std::sync::{Arc, Mutex};

use session_core::decide::{Activity, Verdict, Why};
use session_core::*;

use crate::altered::{altered, in_the_dark};
use crate::bench::{bench, bench_with};
use crate::scripted::*;

#[tokio::test]
async fn a_session_out_of_reach_keeps_its_binding() {
    for (verdict, why) in [
        // The file is there: the agent has lost its way to it.
        (Verdict::Missing, Why::SessionUnindexed),
        (Verdict::Unindexed, Why::SessionUnindexed),
        (Verdict::Archived, Why::SessionArchived),
        (Verdict::ProviderChanged, Why::ProviderDiffers),
    ] {
        let bench = bench();
        let first = bench.run("one").await.session_id;
        bench.agent.will([Act::Fail(verdict, Activity::None)]);
        let aside = bench.run("two").await;
        assert_eq!(aside.route, Route::FellBack(why), "{verdict:?}");
        assert_ne!(aside.session_id, first);
        assert_eq!(bench.bound().await, first.as_ref().map(ToString::to_string), "{verdict:?}");
        let back = bench.run("three").await;
        assert_eq!((back.route, back.session_id), (Route::Resumed, first), "{verdict:?}");
    }
}

#[tokio::test]
async fn a_session_that_nobody_sees_is_missing_when_the_agent_says_so() {
    let bench = bench_with(Scripted::new(), false);
    bench.run("one").await;
    bench.agent.will([Act::Fail(Verdict::Missing, Activity::None)]);
    assert_eq!(bench.run("two").await.route, Route::FellBack(Why::SessionMissing));
    assert_eq!(bench.run("three").await.route, Route::Resumed);
}

#[tokio::test]
async fn what_cannot_be_looked_at_is_not_missing_because_the_agent_says_so() {
    let bench = bench();
    let first = bench.run("one").await.session_id;
    bench.agent.will([Act::Fail(Verdict::Missing, Activity::None)]);
    let aside = in_the_dark(&bench).run(request("two")).await.unwrap();
    assert_eq!(aside.route, Route::FellBack(Why::SessionUnindexed));
    let back = bench.run("three").await;
    assert_eq!((back.route, back.session_id), (Route::Resumed, first));
}

#[tokio::test]
async fn a_session_that_stays_out_of_reach_is_given_up_after_three_tries() {
    let bench = bench();
    let first = bench.run("one").await.session_id;
    for prompt in ["two", "three", "four"] {
        bench.agent.will([Act::Fail(Verdict::Unindexed, Activity::None)]);
        assert_eq!(bench.run(prompt).await.route, Route::FellBack(Why::SessionUnindexed));
    }
    let given_up = bench.run("five").await;
    assert_eq!(given_up.route, Route::FellBack(Why::ResumeKeepsFailing));
    let next = bench.run("six").await;
    assert_eq!((next.route, next.session_id), (Route::Resumed, given_up.session_id));
    let past = bench.record().await.past;
    assert!(past.iter().any(|former| Some(&former.native_id) == first.as_ref() && former.rejoinable));
}

#[tokio::test]
async fn an_older_version_does_not_touch_the_session_of_a_newer_one() {
    let bench = bench();
    let first = bench.run("one").await.session_id;
    let which = Arc::new(Mutex::new(first.clone()));
    // What is installed is 1.2.3.
    let newer = altered(&bench, &which, |look| look.needs_version = Some([1, 2, 4]));
    let aside = newer.run(request("two")).await.unwrap();
    assert_eq!(aside.route, Route::FellBack(Why::VersionCannotResume));
    let same = altered(&bench, &which, |look| look.needs_version = Some([1, 2, 3]));
    let back = same.run(request("three")).await.unwrap();
    assert_eq!((back.route, back.session_id), (Route::Resumed, first));
}

#[tokio::test]
async fn holes_in_the_history_are_said() {
    let bench = bench();
    let which = Arc::new(Mutex::new(bench.run("one").await.session_id));
    let holed = altered(&bench, &which, |look| (look.skipped_lines, look.missing_records) = (2, 3));
    let result = holed.run(request("two")).await.unwrap();
    assert_eq!((result.route, result.warnings), (Route::Resumed, vec![Warning::Holes(5)]));
}

#[tokio::test]
async fn tokens_that_an_agent_counts_over_its_resumes_are_of_the_run() {
    let mut agent = Scripted::new();
    agent.capabilities.usage_scope = FigureScope::Session;
    let bench = bench_with(agent, true);
    for runs in 1..=3 {
        let result = bench.run("again").await;
        assert_eq!((result.usage.input_tokens, result.usage.output_tokens), (10, 1));
        assert_eq!(result.totals.usage.input_tokens, 10 * runs);
    }
    // A failure shows no figure of the session.
    bench.agent.will([Act::FailAtCost(Verdict::Transient, 0.0)]);
    bench.fails("again").await;
    assert_eq!(bench.run("again").await.usage.input_tokens, 10);
    // A fork goes on from its original's figures.
    let fork = LlmRequest::new("fork")
        .cwd("/w/demo")
        .session(SessionRef::new("issue-43", "scripted"))
        .fork_of(SessionRef::new("issue-42", "scripted"));
    assert_eq!(bench.lifecycle.run(fork).await.unwrap().usage.input_tokens, 10);
}

/// An agent that did not find the session, and began another without a word.
#[tokio::test]
async fn tokens_of_another_conversation_are_all_of_the_run() {
    let mut agent = Scripted::new();
    agent.capabilities.usage_scope = FigureScope::Session;
    let bench = bench_with(agent, true);
    bench.run("one").await;
    bench.agent.will([Act::Elsewhere("99999999-9999-4999-8999-999999999999")]);
    let other = bench.run("two").await;
    assert_eq!((other.route, other.usage.input_tokens), (Route::FellBack(Why::SessionReplaced), 20));
    let back = bench.run("three").await;
    assert_eq!((back.route, back.usage.input_tokens), (Route::Resumed, 10));
    assert_eq!(back.totals.usage.input_tokens, 40);
}

/// A newer version goes on counting where an older one began anew in every process.
#[tokio::test]
async fn tokens_are_of_the_run_where_a_newer_version_counts_on() {
    let bench = bench();
    assert_eq!(bench.run("one").await.usage.input_tokens, 10);
    let mut newer = bench.agent.clone();
    newer.capabilities.usage_scope = FigureScope::Session;
    let agent = Agent::new(newer.clone()).with_catalog(Glass(newer));
    let newer = bench.lifecycle.clone().agent(agent);
    assert_eq!(newer.run(request("two")).await.unwrap().usage.input_tokens, 10);
}

#[tokio::test]
async fn forks_that_failed_are_not_held_against_the_session_of_the_key() {
    let bench = bench();
    bench.run("original").await;
    let own = |prompt: &str| {
        LlmRequest::new(prompt).cwd("/w/demo").session(SessionRef::new("issue-43", "scripted"))
    };
    for _ in 0..3 {
        bench.agent.will([Act::Fail(Verdict::Missing, Activity::None)]);
        let fork = own("fork").fork_of(SessionRef::new("issue-42", "scripted"));
        bench.lifecycle.run(fork).await.unwrap_err();
    }
    let first = bench.lifecycle.run(own("one")).await.unwrap();
    assert_eq!(first.route, Route::Fresh(Why::NoPriorSession));
    let second = bench.lifecycle.run(own("two")).await.unwrap();
    assert_eq!((second.route, second.session_id), (Route::Resumed, first.session_id));
}

#[tokio::test]
async fn a_fork_that_is_refused_skips_nothing_of_the_session_of_the_key() {
    let bench = bench();
    bench.run("original").await;
    for prompt in ["two", "three", "four"] {
        bench.agent.will([Act::Elsewhere("99999999-9999-4999-8999-999999999999")]);
        assert_eq!(bench.run(prompt).await.route, Route::FellBack(Why::SessionReplaced));
    }
    let own = |prompt: &str| {
        LlmRequest::new(prompt).cwd("/w/demo").session(SessionRef::new("issue-43", "scripted"))
    };
    let fork = own("fork").fork_of(SessionRef::new("issue-42", "scripted"));
    let refused = bench.lifecycle.run(fork).await;
    assert!(matches!(refused, Err(error::RunError::Refused { why: Why::ResumeKeepsFailing })), "{refused:?}");
    let first = bench.lifecycle.run(own("one")).await.unwrap();
    bench.agent.will([Act::Elsewhere("88888888-8888-4888-8888-888888888888")]);
    bench.lifecycle.run(own("two")).await.unwrap();
    let third = bench.lifecycle.run(own("three")).await.unwrap();
    assert_eq!(
        (third.route, third.session_id),
        (Route::Resumed, first.session_id),
        "one failure is not three"
    );
}

/// Nothing, and nothing but zeros, is no figure where a model was called.
#[tokio::test]
async fn a_figure_says_where_it_comes_from() {
    let bench = bench();
    assert_eq!(bench.run("one").await.usage_source, FigureSource::Reported);
    for (act, source) in [
        (Act::Fail(Verdict::Transient, Activity::None), FigureSource::Reported),
        (Act::Fail(Verdict::Transient, Activity::ModelCalled), FigureSource::Unknown),
        (Act::FailAtZeros(Verdict::Transient), FigureSource::Unknown),
    ] {
        bench.agent.will([act]);
        let (_, failed) = bench.fails("two").await;
        assert_eq!((failed.usage_source, failed.usage, failed.cost_usd), (source, Usage::default(), None));
    }
    let next = bench.run("three").await;
    assert_eq!((next.usage_source, next.totals.usage.input_tokens), (FigureSource::Reported, 20));
}
