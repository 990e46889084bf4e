//! A text that waits in a record: the conversation that goes on holds it once, whatever died in between.

use session_core::decide::{Activity, Verdict};
use session_core::*;

use crate::bench::{Bench, bench, bench_with};
use crate::keeping::die_in;
use crate::scripted::*;

const MARK: &str = "<earlier-conversation";

/// How often the conversation in force holds the text.
async fn times_told(bench: &Bench) -> usize {
    let bound = bench.bound().await.unwrap();
    bench.agent.world().sessions[&bound].iter().filter(|prompt| prompt.starts_with(MARK)).count()
}

async fn compacted(bench: &Bench) {
    bench.run("Fix the login bug").await;
    drop(bench.lifecycle.compact(&SummaryRequest::new(key())).await.unwrap());
}

/// The key has a conversation already, and is handed the one of another mailbox.
async fn handed_over(bench: &Bench) {
    let other = SessionKey::new("issue-41", "scripted").unwrap();
    let there = request("Fix the login bug").session(SessionRef::new("issue-41", "scripted"));
    bench.lifecycle.run(there).await.unwrap();
    bench.run("own work").await;
    drop(bench.lifecycle.hand_over_to(&SummaryRequest::new(other), &key()).await.unwrap());
}

const WAYS: usize = 11;

/// One way in which a run can end.
async fn goes(bench: &Bench, way: usize) {
    let act = match way {
        // Without a script, the agent is honest about what it has.
        0 => return drop(bench.lifecycle.run(request("next")).await),
        1 => Act::Hang,
        2 => Act::Fail(Verdict::Crashed, Activity::None),
        3 => Act::Fail(Verdict::Transient, Activity::ModelCalled),
        4 => Act::Fail(Verdict::Missing, Activity::None),
        5 => Act::FailAfterKeeping(Verdict::Crashed),
        6 => Act::KeepInSilence,
        7 => Act::CannotStart,
        8 => Act::Forget,
        9 => Act::Elsewhere("eeeeeeee-0000-4000-8000-000000000001"),
        _ => Act::FailAfterKeeping(Verdict::TimedOut),
    };
    let dies = matches!(act, Act::Hang);
    bench.agent.will([act]);
    if dies {
        let calls = bench.agent.calls().len() + 1;
        die_in(bench, request("next"), calls).await;
    } else {
        drop(bench.lifecycle.run(request("next")).await);
    }
    bench.agent.world().acts.clear();
}

/// Lets two runs end like this, then others well, until the text is settled: then the conversation in force holds it.
async fn until_settled(bench: &Bench, ways: [usize; 2]) -> usize {
    for way in ways.into_iter().chain([0; 4]) {
        goes(bench, way).await;
        if bench.record().await.preamble.is_none() {
            return times_told(bench).await;
        }
    }
    panic!("it is never settled: {ways:?}")
}

#[tokio::test]
async fn it_is_told_once_however_runs_end_before_it_is_settled() {
    for (first, second) in (0..WAYS).flat_map(|first| (0..WAYS).map(move |second| (first, second))) {
        for compacts in [true, false] {
            let bench = bench();
            if compacts {
                compacted(&bench).await;
            } else {
                handed_over(&bench).await;
            }
            assert_eq!(until_settled(&bench, [first, second]).await, 1, "{first} {second} {compacts}");
        }
    }
}

#[tokio::test]
async fn where_nobody_can_look_it_is_never_lost() {
    for (first, second) in (0..WAYS).flat_map(|first| (0..WAYS).map(move |second| (first, second))) {
        // What a blind one says it did, and did not, nobody can tell.
        if first == 8 || second == 8 {
            continue;
        }
        for compacts in [true, false] {
            // A script would have an agent go on with a session that is not there.
            if compacts && second != 0 {
                continue;
            }
            let bench = bench();
            if compacts {
                compacted(&bench).await;
            } else {
                handed_over(&bench).await;
            }
            let blind = Lifecycle::new(std::sync::Arc::new(bench.store.clone()), bench.host.clone())
                .agent(Agent::new(bench.agent.clone()));
            let bench = Bench { lifecycle: blind, ..bench };
            let told = until_settled(&bench, [first, second]).await;
            assert!(told >= 1, "{first} {second} {compacts}");
        }
    }
}

#[tokio::test]
async fn the_result_tells_what_went_before_the_prompt() {
    let bench = bench();
    compacted(&bench).await;
    let told = bench.run("two").await;
    assert_eq!(told.preamble.as_deref(), Some("compacted"));
    let prompt = bench.agent.world().calls.last().unwrap().1.clone();
    assert!(prompt.starts_with(MARK) && prompt.ends_with("\n\ntwo") && prompt.contains("Fix the login bug"));
    let next = bench.run("three").await;
    assert_eq!((next.preamble, next.resumed), (None, true));
    assert_eq!(bench.agent.world().calls.last().unwrap().1, "three");
}

#[tokio::test]
async fn a_prompt_that_leaves_no_room_goes_alone_and_the_text_waits() {
    let mut agent = Scripted::new();
    agent.capabilities.prompt_limit = Some(300);
    let bench = bench_with(agent, true);
    compacted(&bench).await;
    let alone = bench.run(&"x".repeat(290)).await;
    assert_eq!((alone.preamble, &alone.warnings[..]), (None, &[Warning::PreambleHeldBack][..]));
    assert!(bench.record().await.preamble.is_some());
}

#[tokio::test]
async fn a_session_that_cannot_go_on_does_not_use_it_up() {
    let bench = bench();
    handed_over(&bench).await;
    bench.agent.will([Act::FailAfterKeeping(Verdict::ContextOverflow)]);
    bench.fails("two").await;
    let fresh = bench.run("three").await;
    assert_eq!(fresh.preamble.as_deref(), Some("handed_over"));
    assert_eq!((times_told(&bench).await, bench.record().await.preamble), (1, None));
}
