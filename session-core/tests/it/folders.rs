//! A mailbox in several folders: each conversation has its place, and what befalls one says nothing of another.

use std::sync::atomic::Ordering;
use std::time::Duration;

use session_core::decide::{Activity, Verdict, Why};
use session_core::error::RunError;
use session_core::*;

use crate::bench::*;
use crate::scripted::*;

const FOREIGN: &str = "99999999-9999-4999-8999-999999999999";

#[tokio::test]
async fn a_session_that_is_refused_condemns_none_of_another_folder() {
    let refused = Act::Fail(Verdict::Incompatible, Activity::None);
    for (acts, works) in
        [(vec![refused.clone()], true), (vec![refused, Act::FailAfterKeeping(Verdict::RateLimited)], false)]
    {
        let (bench, here, there) = two_folders().await;
        bench.agent.will(acts);
        let run = bench.lifecycle.run(request("again")).await;
        assert_eq!(run.is_ok(), works);
        let back = bench.lifecycle.run(request("there again").cwd("/w/other")).await.unwrap();
        assert_eq!((back.route, &back.session_id), (Route::Resumed, &there), "works: {works}");
        if works {
            let third = bench.run("and here").await;
            assert_eq!(third.route, Route::Resumed, "the one that came in its place");
            assert_ne!(third.session_id, here);
        }
    }
}

#[tokio::test]
async fn what_stands_aside_never_takes_the_place_of_the_conversation() {
    for act in [Act::Fail(Verdict::Busy, Activity::None), Act::Elsewhere(FOREIGN)] {
        let (bench, here, _) = two_folders().await;
        bench.agent.will([act.clone()]);
        let mut limits = Limits::default();
        limits.busy = Duration::ZERO;
        let aside = bench.lifecycle.run(request("aside").limits(limits)).await.unwrap();
        assert!(!aside.resumed, "{act:?}");
        let back = bench.run("back").await;
        assert_eq!((back.route, back.session_id), (Route::Resumed, here), "{act:?}");
    }
}

#[tokio::test]
async fn a_session_that_cannot_be_continued_is_not_found_again_by_its_folder() {
    let (bench, here, _) = two_folders().await;
    bench.agent.will([Act::Fail(Verdict::ContextOverflow, Activity::ModelCalled)]);
    bench.fails("too long").await;
    let next = bench.run("next").await;
    assert_ne!(next.session_id, here);

    let bench = bench_with(Scripted::new(), true);
    let other = ("/w/other".into(), folder("/w/other", 3, "/w/other/.git"));
    bench.host.folders.lock().unwrap().extend([other]);
    let here = bench.run("here").await.session_id;
    bench.agent.will([Act::Fail(Verdict::ContextOverflow, Activity::ModelCalled)]);
    bench.fails("too long").await;
    bench.lifecycle.run(request("there").cwd("/w/other")).await.unwrap();
    assert_ne!(bench.run("back").await.session_id, here);
}

#[tokio::test]
async fn the_age_of_a_session_is_that_of_its_last_use() {
    let (bench, here, _) = two_folders().await;
    let limited = bench.lifecycle.clone().max_session_age(Duration::from_secs(100));
    for _ in 0..2 {
        bench.host.millis.fetch_add(90_000, Ordering::SeqCst);
        limited.run(request("there").cwd("/w/other")).await.unwrap();
    }
    let back = limited.run(request("back")).await.unwrap();
    assert!(!back.resumed);
    assert_ne!(back.session_id, here);
}

/// Agents read a session whole: what is too large for one is the caller's to say.
#[tokio::test]
async fn a_session_over_the_limit_of_size_stands_aside_and_says_so() {
    let bench = bench_with(Scripted::new(), true);
    let id = bench.run("one").await.session_id;
    let roomy = bench.lifecycle.clone().max_session_bytes(4);
    assert_eq!(roomy.run(request("two")).await.unwrap().session_id, id);
    let tight = bench.lifecycle.clone().max_session_bytes(4);
    let refused = tight.run(request("no").resume(ResumePolicy::Require)).await;
    let Err(RunError::Refused { why, .. }) = &refused else { panic!("{refused:?}") };
    assert_eq!(*why, Why::TooLarge);
    let fresh = tight.run(request("three")).await.unwrap();
    assert_eq!((fresh.route, fresh.session_id == id), (Route::FellBack(Why::TooLarge), false));
}

#[tokio::test]
async fn the_cost_of_a_failure_is_counted_where_it_was_made() {
    let (bench, ..) = two_folders().await;
    let before = bench.agent.world().counter;
    bench.agent.will([Act::FailAtCost(Verdict::RateLimited, before + 0.4)]);
    bench.fails("costly").await;
    bench.agent.world().counter = before + 0.4;
    let next = bench.run("next").await;
    assert_eq!(next.cost_usd, Some(0.5));
}

#[tokio::test]
async fn an_id_of_another_shape_is_no_resume() {
    let bench = bench();
    let first = bench.run("one").await.session_id;
    bench.agent.will([Act::Elsewhere("short")]);
    let second = bench.run("two").await;
    assert_eq!((second.resumed, second.route), (false, Route::FellBack(Why::SessionReplaced)));
    assert_eq!(bench.run("three").await.session_id, first);
}

#[tokio::test]
async fn under_require_a_row_of_failures_leaves_a_try() {
    let bench = bench();
    bench.run("one").await;
    let require = || request("two").resume(ResumePolicy::Require);
    bench.agent.will([Act::Fail(Verdict::Crashed, Activity::None), Act::Elsewhere(FOREIGN)]);
    bench.agent.will([Act::Fail(Verdict::Crashed, Activity::None)]);
    for _ in 0..3 {
        bench.lifecycle.run(require()).await.unwrap_err();
    }
    assert_eq!(bench.record().await.failed_resumes, 3);
    assert_eq!(bench.lifecycle.run(require()).await.unwrap_err().why(), Some(Why::ResumeKeepsFailing));
    assert!(bench.lifecycle.run(require()).await.unwrap().resumed);
}

#[tokio::test]
async fn a_fork_never_enters_its_original() {
    for hangs in [false, true] {
        let mut agent = Scripted::new();
        agent.capabilities.fork = ForkSupport::AgentChoosesId;
        let bench = bench_with(agent, true);
        let source = bench.run("one").await.session_id.unwrap();
        let name: &'static str = Box::leak(source.to_string().into_boxed_str());
        let fork = LlmRequest::new("fork")
            .cwd("/w/demo")
            .session(SessionRef::new("issue-43", "scripted"))
            .fork_of(SessionRef::new("issue-42", "scripted"));
        if hangs {
            bench.agent.will([Act::HangElsewhere(name)]);
            let run = bench.lifecycle.run(fork);
            let death = async {
                while bench.agent.calls().len() < 2 {
                    tokio::task::yield_now().await;
                }
                for _ in 0..50 {
                    tokio::task::yield_now().await;
                }
            };
            tokio::select! { _ = run => unreachable!("the agent hangs"), () = death => {} }
        } else {
            bench.agent.will([Act::Elsewhere(name)]);
            let error = bench.lifecycle.run(fork).await.unwrap_err();
            assert_eq!(error.why(), Some(Why::SessionReplaced));
        }
        let key = SessionKey::new("issue-43", "scripted").unwrap();
        let record = bench.lifecycle.record(&key).await.unwrap().unwrap();
        let text = String::from_utf8(codec::encode(&record).as_bytes().to_vec()).unwrap();
        assert!(!text.contains(&format!("\"native_id\": \"{source}\"")), "{text}");
    }
}

#[tokio::test]
async fn where_nobody_can_look_each_folder_has_its_conversation_too() {
    let bench = bench_with(Scripted::new(), false);
    let other = ("/w/other".into(), folder("/w/other", 3, "/w/other/.git"));
    bench.host.folders.lock().unwrap().extend([other]);
    let here = bench.run("here").await.session_id.unwrap();
    let there = bench.lifecycle.run(request("there").cwd("/w/other")).await.unwrap().session_id;
    let back = bench.run("back").await;
    assert_eq!((back.route, back.session_id.as_ref()), (Route::Resumed, Some(&here)));
    let again = bench.lifecycle.run(request("again").cwd("/w/other")).await.unwrap();
    assert_eq!((again.route, &again.session_id), (Route::Resumed, &there));
    // The agent tells that one is lost, and the other is left alone.
    bench.lose(here.as_str());
    let anew = bench.run("anew").await;
    assert_eq!((anew.route, anew.attempts.len()), (Route::FellBack(Why::SessionMissing), 2));
    assert_eq!(bench.lifecycle.run(request("there").cwd("/w/other")).await.unwrap().session_id, there);
    assert_eq!(bench.run("and here").await.session_id, anew.session_id);
}
