//! What becomes of processes: limits, leftovers, pipes.

use std::time::Duration;

use rejoin::{Limits, Route, Why};
use serde_json::json;

use crate::stage::*;

fn limits(set: impl Fn(&mut Limits)) -> Limits {
    let mut limits = Limits::default();
    limits.grace = Duration::from_millis(200);
    set(&mut limits);
    limits
}

/// BR-041: children that left the group, or ignore TERM, are gone after the run.
#[tokio::test]
async fn nothing_outlives_a_run() {
    let stage = Stage::new();
    let child = |own_session: bool| json!({ "child": { "seconds": 1000, "own_session": own_session, "ignore_term": true, "pid_file": stage.path("pid") } });
    stage.script(&json!([{ "steps": [child(true), child(false), { "claude": {} }] }]));
    let request = stage.request("x").limits(limits(|_| ()));
    let result = stage.lifecycle().run(request).await.unwrap();
    assert!(result.warnings.contains(&rejoin::Warning::LeftoversEnded(2)), "{:?}", result.warnings);
    assert_eq!(processes_with(&stage.path("home").display().to_string()), 0);
}

/// BR-011 (b): silence is told apart from an end without a result, and the limits from each other.
#[tokio::test]
async fn limits_end_a_run_and_keep_the_session() {
    let short = Duration::from_millis(400);
    let cases = [
        (json!([{ "sleep_ms": 60_000 }]), limits(|limits| limits.start = short), "start_limit"),
        (
            json!([{ "claude": { "stop_after": "assistant" } }, { "sleep_ms": 60_000 }]),
            limits(|limits| limits.idle = short),
            "idle_limit",
        ),
        (
            json!([{ "claude": { "stop_after": "assistant" } }, { "slowly": { "text": "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx", "pause_ms": 200 } }]),
            limits(|limits| limits.total = short),
            "total_limit",
        ),
    ];
    for (steps, limits, expected) in cases {
        let stage = Stage::new();
        let first = stage.run("one").await.session_id.unwrap();
        stage.script(&json!([{ "steps": steps }]));
        let (why, run) = stage.fails(stage.request("two").limits(limits)).await;
        assert_eq!((why, run.attempts.len()), (Why::TimedOut, 1), "{expected}");
        assert_eq!(run.attempts[0].ended_by.as_deref(), Some(expected));
        assert_eq!(run.session_id, Some(first));
        assert_eq!(processes_with(&stage.path("home").display().to_string()), 0);
    }
}

#[tokio::test]
async fn a_cli_that_lingers_after_its_result_is_ended_and_the_result_stands() {
    let stage = Stage::new();
    stage.script(&json!([{ "steps": [{ "ignore_term": true }, { "claude": {} }, { "sleep_ms": 60_000 }] }]));
    let limits = limits(|limits| limits.linger = Duration::from_millis(200));
    let result = stage.lifecycle().run(stage.request("one").limits(limits)).await.unwrap();
    assert!(result.warnings.contains(&rejoin::Warning::Lingered), "{:?}", result.warnings);
    stage.script(&json!([works()]));
    assert_eq!(stage.run("two").await.route, Route::Resumed);
}

/// BR-045 and BR-105: characters split over reads, line separators inside of strings, no last line end.
#[tokio::test]
async fn text_arrives_as_it_was_written() {
    let text = format!("left\u{2028}right\u{85}end {}", "한글 中文 😀 ".repeat(200));
    let stage = Stage::new();
    let end = json!({ "type": "result", "subtype": "success", "is_error": false, "session_id": "{{sid}}", "result": text, "num_turns": 1 });
    let init = json!({ "type": "system", "subtype": "init", "session_id": "{{sid}}", "cwd": "/w" });
    stage.script(&json!([{ "steps": [{ "slowly": { "text": format!("{init}\r\n{end}"), "chunk": 1 } }] }]));
    assert_eq!(stage.run("x").await.text, text);
}

#[tokio::test]
async fn full_pipes_and_noise_do_not_stop_a_run() {
    let stage = Stage::new();
    let flood = json!({ "text": "x".repeat(1000) + "\n", "times": 5000 });
    let init = json!({ "type": "system", "subtype": "init", "session_id": "{{sid}}", "cwd": "/w" });
    let end = json!({ "type": "result", "subtype": "success", "is_error": false, "session_id": "{{sid}}", "result": "done" });
    let steps =
        json!([{ "stderr_repeat": flood }, { "stdout_repeat": flood }, { "line": init }, { "line": end }]);
    let script =
        json!({ "stdin": "ignore", "log": stage.path("calls.jsonl"), "cases": [{ "steps": steps }] });
    std::fs::write(stage.path("script.json"), script.to_string()).unwrap();
    let prompt = "p".repeat(1 << 20);
    let result = stage.run(&prompt).await;
    assert_eq!(result.route, Route::Fresh(Why::NoPriorSession));
}

/// BR-015: a CLI that reads stdin to its end gets an end.
#[tokio::test]
async fn stdin_is_closed() {
    let stage = Stage::new();
    stage.run("x").await;
    assert!(!stage.calls()[0].stdin.is_empty());
}

/// A runner that is dropped in mid-turn leaves no process, and the next run goes on.
#[tokio::test]
async fn dropping_a_run_ends_it_and_loses_nothing() {
    let stage = Stage::new();
    let first = stage.run("one").await.session_id.unwrap();
    let reached = stage.path("reached");
    stage.script(&json!([{ "steps": [
        { "claude": { "stop_after": "assistant" } },
        { "child": { "seconds": 1000, "own_session": true, "pid_file": stage.path("pid") } },
        { "touch": reached },
        { "sleep_ms": 60_000 }
    ] }]));
    {
        let lifecycle = stage.lifecycle();
        let run = lifecycle.run(stage.request("two"));
        let seen = async {
            while !reached.exists() {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        tokio::select! { _ = run => unreachable!(), () = seen => {} }
    }
    // They have been killed; the kernel may still be at it.
    let gone = async {
        while processes_with(&stage.path("home").display().to_string()) > 0 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(10), gone).await.unwrap();
    stage.script(&json!([works()]));
    let third = stage.run("three").await;
    assert_eq!((third.route, third.session_id), (Route::Resumed, Some(first)));
}

/// Also the question for the version, and whatever else comes before the agent, ends when the caller cancels.
#[tokio::test]
async fn cancelling_does_not_wait_for_a_program_that_hangs_when_asked_for_its_version() {
    let stage = Stage::new();
    let script = stage.path("hangs.sh");
    std::fs::write(&script, format!("touch {}; exec sleep 1000", stage.path("asked").display())).unwrap();
    let program = rejoin::core::Program::new("/bin/sh").leading_arg(&script);
    let lifecycle = stage.lifecycle_of(program, stage.environment());
    let cancel = rejoin::Cancel::new();
    let run = tokio::spawn({
        let request = stage.request("x").cancel(cancel.clone());
        async move { lifecycle.run(request).await }
    });
    while !stage.path("asked").exists() {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    cancel.cancel();
    assert!(matches!(run.await.unwrap(), Err(rejoin::RunError::Cancelled)));
}
