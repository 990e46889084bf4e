//! An agent that answers, or dies, in another conversation than the one that it was to continue.

use session_core::decide::{Verdict, Why};
use session_core::*;

use crate::bench::*;
use crate::scripted::*;

const FOREIGN: &str = "99999999-9999-4999-8999-999999999999";

fn copying() -> Bench {
    let mut agent = Scripted::new();
    agent.capabilities.id_on_resume = IdOnResume::Replaced;
    bench_with(agent, true)
}

/// A run whose runner dies while the agent's next call goes on.
async fn dies(bench: &Bench, request: LlmRequest) {
    let calls = bench.agent.calls().len();
    let run = bench.lifecycle.run(request);
    let death = async {
        while bench.agent.calls().len() == calls {
            tokio::task::yield_now().await;
        }
        for _ in 0..50 {
            tokio::task::yield_now().await;
        }
    };
    tokio::select! { _ = run => unreachable!("the agent hangs"), () = death => {} }
}

#[tokio::test]
async fn a_session_of_one_turn_is_not_taken_for_the_copy_of_another() {
    let bench = copying();
    let first = bench.run("one").await.session_id.unwrap();
    bench.agent.will([Act::Elsewhere(FOREIGN)]);
    let second = bench.run("two").await;
    assert_eq!((second.resumed, second.route), (false, Route::FellBack(Why::SessionReplaced)));
    bench.run("three").await;
    assert!(matches!(bench.agent.calls().last(), Some(Asked::Resume(id)) if *id == first));
}

#[tokio::test]
async fn a_failure_in_another_session_does_not_bind_it() {
    let bench = copying();
    let first = bench.run("one").await.session_id.unwrap();
    bench.agent.will([Act::FailElsewhere(Verdict::RateLimited, FOREIGN)]);
    bench.fails("two").await;
    assert_eq!(bench.bound().await, Some(first.to_string()));
}

#[tokio::test]
async fn a_runner_that_dies_in_what_is_no_copy_keeps_the_session() {
    let bench = copying();
    bench.run("one").await;
    let second = bench.run("two").await.session_id.unwrap();
    bench.agent.will([Act::HangElsewhere(FOREIGN)]);
    dies(&bench, request("three")).await;
    let next = bench.run("four").await;
    assert_eq!((next.route, next.text.as_str()), (Route::Resumed, "3"));
    assert!(matches!(bench.agent.calls().last(), Some(Asked::Resume(id)) if *id == second));
}

#[tokio::test]
async fn a_runner_that_dies_in_a_copy_leaves_the_copy() {
    let bench = copying();
    bench.run("one").await;
    bench.agent.will([Act::Hang]);
    dies(&bench, request("two")).await;
    assert_eq!(bench.run("three").await.text, "3", "one, two and three");
}

#[tokio::test]
async fn what_may_be_no_copy_does_not_take_the_place_of_an_original_that_is_lost() {
    let bench = copying();
    let first = bench.run("one").await.session_id.unwrap();
    bench.agent.will([Act::HangElsewhere(FOREIGN)]);
    dies(&bench, request("two")).await;
    bench.lose(first.as_str());
    assert_eq!(bench.run("three").await.route, Route::FellBack(Why::SessionMissing));
}

/// Two mailboxes: what an agent says it is in, in the place of one's session, may be the other's.
#[tokio::test]
async fn the_session_of_another_mailbox_is_not_found_again_by_its_folder() {
    let (bench, here, _) = two_folders().await;
    let other = LlmRequest::new("other").cwd("/w/demo").session(SessionRef::new("issue-7", "scripted"));
    let foreign = bench.lifecycle.run(other).await.unwrap().session_id.unwrap();
    let name: &'static str = Box::leak(foreign.to_string().into_boxed_str());
    bench.agent.will([Act::HangElsewhere(name)]);
    dies(&bench, request("again")).await;
    bench.lose(here.unwrap().as_str());
    bench.run("next").await;
    let asked = bench.agent.calls();
    let entered = asked.iter().any(|asked| matches!(asked, Asked::Resume(id) if *id == foreign));
    assert!(!entered, "{asked:?}");
}
