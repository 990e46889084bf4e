//! Scripts and their steps.

use rejoin_test_support::fake_agent::{BROKEN_SCRIPT, leading_args, read_calls};
use serde_json::json;

use crate::stage::{Stage, run, stderr, stdout};

#[test]
fn the_version_is_a_probe_and_not_a_call() {
    let stage = Stage::with_script(&json!({
        "version": "2.0.14 (Claude Code)",
        "cases": [{"when": {"nth": 1}, "steps": [{"stdout": "first"}]}],
    }));
    assert_eq!(stdout(&stage.run(&["--version"], "")), "2.0.14 (Claude Code)\n");
    assert_eq!(stdout(&stage.run(&["--version", "x"], "")), "first");
}

#[test]
fn the_first_case_that_matches_is_played() {
    let stage = Stage::with_script(&json!({"cases": [
        {"when": {"nth": 2}, "steps": [{"stdout": "second"}]},
        {"when": {"has": ["--resume"], "lacks": ["--fork-session"]}, "steps": [{"stdout": "resume"}]},
        {"when": {"prompt": "please"}, "steps": [{"stdout": "asked"}]},
        {"steps": [{"stdout": "any"}]},
    ]}));
    let says = |args: &[&str], stdin| stdout(&stage.run(args, stdin));
    assert_eq!(says(&["--resume", "x"], ""), "resume");
    assert_eq!(says(&["--resume", "x"], ""), "second");
    assert_eq!(says(&["--resume", "x", "--fork-session"], ""), "any");
    assert_eq!(says(&[], "yes please"), "asked");
    assert_eq!(says(&["--", "please"], ""), "asked");
}

#[test]
fn a_call_without_a_case_and_a_broken_script_are_told() {
    let stage = Stage::with_script(&json!({"cases": [{"when": {"nth": 9}, "steps": []}]}));
    let output = stage.run(&["-p"], "");
    assert_eq!(output.status.code(), Some(i32::from(BROKEN_SCRIPT)));
    assert!(stderr(&output).contains("no case for call 1"), "{}", stderr(&output));

    stage.change_script(&json!({"cases": [], "colour": 1}));
    let output = stage.run(&["-p"], "");
    assert_eq!(output.status.code(), Some(i32::from(BROKEN_SCRIPT)));
    assert!(stderr(&output).contains("colour"), "{}", stderr(&output));
}

#[test]
fn every_call_is_logged_as_it_was_made() {
    let stage = Stage::with_script(&json!({"log": "DIR/calls.jsonl", "cases": [{"steps": []}]}));
    let mut command = stage.command(&["-p", "--", "two words"]);
    command.env("NAME", "välue");
    run(command, "line\n\"ü\"\n");
    stage.run(&["--version"], "");
    let calls = read_calls(&stage.path("calls.jsonl")).unwrap();
    assert_eq!(calls.len(), 2);
    assert_eq!(calls[0].argv, ["-p", "--", "two words"]);
    assert_eq!(calls[0].stdin, "line\n\"ü\"\n");
    assert_eq!(calls[0].env["NAME"], "välue");
    assert_eq!(calls[0].cwd, stage.path("project").canonicalize().unwrap());
    assert_ne!(calls[0].pid, calls[1].pid);
    assert_eq!(calls[1].argv, ["--version"]);
}

#[test]
fn a_script_can_leave_standard_input_alone() {
    let stage = Stage::with_script(&json!({"stdin": "ignore", "cases": [{"steps": [{"stdout": "done"}]}]}));
    let mut child = stage.command(&["-p"]).spawn().unwrap();
    // Held open until the agent is over.
    let stdin = child.stdin.take();
    assert_eq!(stdout(&child.wait_with_output().unwrap()), "done");
    drop(stdin);
}

#[test]
fn output_is_written_as_the_steps_say() {
    let stage = Stage::with_steps(&json!([
        {"stdout": "{{sid}} in {{cwd}}\n"},
        {"stdout_bytes": [255, 0, 10]},
        {"stdout_repeat": {"text": "ab", "times": 100_001}},
        {"stdout_repeat": {"text": "", "times": 5}},
        {"stdout_file": "DIR/script.json"},
        {"stdout_lines": "DIR/script.json"},
        {"slowly": {"text": "slow", "chunk": 3}},
        {"stderr": "bad {{prompt}}"},
        {"stderr_repeat": {"text": "!", "times": 3}},
        {"exit": 9},
        {"stdout": "never"},
    ]));
    let output = stage.run(&["--resume", "abc"], "things");
    let mut expected =
        format!("abc in {}\n", stage.path("project").canonicalize().unwrap().display()).into_bytes();
    expected.extend([255, 0, 10]);
    expected.extend("ab".repeat(100_001).bytes());
    expected.extend(stage.read("script.json").repeat(2).bytes());
    expected.extend(b"slow");
    assert!(output.stdout == expected, "{} bytes, not {}", output.stdout.len(), expected.len());
    assert_eq!(stderr(&output), "bad things!!!");
    assert_eq!(output.status.code(), Some(9));
}

#[test]
fn a_line_keeps_its_keys_in_order_and_escapes_what_it_expands() {
    let stage = Stage::with_steps(&json!([]));
    let script = r#"{"cases": [{"steps": [{"line": {
        "z": "{{prompt}}",
        "a": [1.50, {"s": "{{sid}}"}]
    }}]}]}"#;
    std::fs::write(stage.path("script.json"), script).unwrap();
    let output = stage.run(&["--session-id", "id"], "say \"hi\"\n");
    assert_eq!(stdout(&output), "{\"z\":\"say \\\"hi\\\"\\n\",\"a\":[1.50,{\"s\":\"id\"}]}\n");
}

#[test]
fn files_are_changed_as_the_steps_say() {
    let stage = Stage::with_steps(&json!([
        {"create": {"path": "DIR/a", "text": "0123456789"}},
        {"append": {"path": "DIR/a", "text": "{{prompt}}"}},
        {"truncate": {"path": "DIR/a", "drop_bytes": 1}},
        {"create": {"path": "DIR/b", "text": "0123456789"}},
        {"truncate": {"path": "DIR/b", "keep_bytes": 4}},
        {"truncate": {"path": "DIR/b", "keep_bytes": 400}},
        {"touch": "DIR/c"},
        {"wait_for_file": "DIR/c"},
        {"remove": "DIR/c"},
        {"remove": "DIR/c"},
        {"sleep_ms": 0},
    ]));
    let output = stage.run(&[], "xyz");
    assert!(output.status.success(), "{}", stderr(&output));
    assert_eq!(stage.read("a"), "0123456789xy");
    assert_eq!(stage.read("b"), "0123");
    assert!(!stage.path("c").exists());
}

#[test]
fn a_program_is_only_an_agent_when_it_is_asked() {
    let args = |list: &[&str]| list.iter().map(std::ffi::OsString::from).collect::<Vec<_>>();
    let main = |list: &[&str]| rejoin_test_support::fake_agent::main_with(args(list).into_iter());
    assert!(main(&[]).is_none());
    assert!(main(&["--version"]).is_none());
    assert!(main(&["run", "--fake-agent"]).is_none());
    assert!(main(&["--fake-agent"]).is_some());
    assert_eq!(leading_args("a/b".as_ref()), ["--fake-agent", "a/b"]);
}
