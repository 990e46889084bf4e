//! Recorded runs, played again.

use std::os::unix::process::ExitStatusExt as _;
use std::process::{Command, ExitStatus};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::stage::{Stage, run, stderr, stdout};

/// A stage whose agent plays a run that was recorded with this end.
fn recorded(exit: &Value, ended_by: &Value) -> Stage {
    let stage = Stage::with_steps(&json!([{"fixture": {"folder": "DIR/fixture", "ready": "DIR/ready"}}]));
    let meta = json!({
        "version": "1", "asked": {"fresh": null}, "exit": exit, "ended_by": ended_by, "args": ["run", "--x"],
        "verdict": "Unknown", "activity": "None", "session": null,
    });
    std::fs::create_dir(stage.path("fixture")).unwrap();
    std::fs::write(stage.path("fixture/meta.json"), meta.to_string()).unwrap();
    std::fs::write(stage.path("fixture/stdout.jsonl"), "{\"a\":1}\n{{sid}}").unwrap();
    std::fs::write(stage.path("fixture/stderr.txt"), "words").unwrap();
    stage
}

/// Asks the agent to end when it has written all, and says how it ended.
fn ended(stage: &Stage) -> ExitStatus {
    let mut command = stage.command(&["run"]);
    let mut child = command.stdin(std::process::Stdio::null()).spawn().unwrap();
    let start = Instant::now();
    while !stage.path("ready").exists() {
        assert!(start.elapsed() < Duration::from_secs(30));
        std::thread::sleep(Duration::from_millis(2));
    }
    assert!(child.try_wait().unwrap().is_none(), "it waits to be ended");
    assert!(Command::new("kill").arg(child.id().to_string()).status().unwrap().success());
    child.wait().unwrap()
}

#[test]
fn a_run_is_played_as_it_was() {
    let stage = recorded(&json!({"code": 7}), &json!(null));
    let output = stage.run(&["run", "--other"], "prompt");
    assert_eq!((stdout(&output).as_str(), stderr(&output).as_str()), ("{\"a\":1}\n{{sid}}", "words"));
    assert_eq!(output.status.code(), Some(7));
    for signal in [9, 15, 2] {
        let stage = recorded(&json!({"signal": signal}), &json!(null));
        assert_eq!(run(stage.command(&["run"]), "").status.signal(), Some(signal));
    }
}

#[test]
fn another_command_than_the_recorded_one_prepares_it() {
    let stage = recorded(&json!({"code": 7}), &json!(null));
    let output = stage.run(&["import", "file"], "");
    assert_eq!((stdout(&output).as_str(), output.status.code()), ("", Some(0)));
}

#[test]
fn a_run_that_was_ended_waits_for_that() {
    assert_eq!(ended(&recorded(&json!({"code": 143}), &json!("cancel"))).code(), Some(143));
    assert_eq!(ended(&recorded(&json!({"signal": 15}), &json!("cancel"))).signal(), Some(15));
    assert_eq!(ended(&recorded(&json!({"signal": 9}), &json!("idle_limit"))).signal(), Some(9));
}

#[test]
fn a_fixture_that_is_broken_is_told() {
    let stage = recorded(&json!("unknown"), &json!(null));
    let output = stage.run(&["run"], "");
    assert!(stderr(&output).contains("nobody knows how it ended"), "{}", stderr(&output));
    std::fs::remove_file(stage.path("fixture/meta.json")).unwrap();
    assert!(stderr(&stage.run(&["run"], "")).contains("meta.json"));
}
