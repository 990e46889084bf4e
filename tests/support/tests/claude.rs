//! The persona of Claude Code.

use std::process::Output;

use rejoin_test_support::ContextReply;
use rejoin_test_support::fake_agent::project_folder_name;
use serde_json::{Value, json};

use crate::stage::{Stage, json_lines, records, run, stderr, stdout};

const ONE: &str = "11111111-1111-4111-8111-111111111111";
const TWO: &str = "22222222-2222-4222-8222-222222222222";
const STREAM: [&str; 4] = ["-p", "--output-format", "stream-json", "--verbose"];

fn stage(step: &Value) -> Stage {
    Stage::with_steps(&json!([{"claude": step}]))
}

fn call(stage: &Stage, args: &[&str], prompt: &str) -> Output {
    stage.run(&[&STREAM, args].concat(), prompt)
}

fn transcript(stage: &Stage, id: &str) -> std::path::PathBuf {
    let project = stage.path("project").canonicalize().unwrap();
    let folder = project_folder_name(project.to_str().unwrap());
    stage.path("home/.claude/projects").join(folder).join(format!("{id}.jsonl"))
}

fn lines(output: &Output) -> Vec<Value> {
    json_lines(&stdout(output))
}

fn types(lines: &[Value]) -> Vec<&str> {
    lines.iter().map(|line| line["type"].as_str().unwrap()).collect()
}

/// The last line of an answered call, and the context it tells of.
fn result(output: &Output) -> (Value, Option<ContextReply>) {
    assert_eq!(output.status.code(), Some(0), "{}", stderr(output));
    let result = lines(output).pop().unwrap();
    assert_eq!(result["subtype"], "success");
    let context = ContextReply::parse(result["result"].as_str().unwrap());
    (result, context)
}

fn turns(output: &Output) -> usize {
    result(output).1.unwrap().user_turns
}

#[test]
fn a_session_is_resumed_with_its_context() {
    let stage = stage(&json!({}));
    let fresh = call(&stage, &["--session-id", ONE, "--name", "issue-42"], "first turn");
    assert_eq!(types(&lines(&fresh)), ["system", "system", "assistant", "result"]);
    assert_eq!(lines(&fresh)[1]["subtype"], "init");
    assert_eq!(lines(&fresh)[1]["session_id"], ONE);
    let (end, context) = result(&fresh);
    assert_eq!(context.unwrap().user_turns, 1);
    assert_eq!((&end["num_turns"], &end["total_cost_usd"]), (&json!(1), &json!(0.01)));

    let (end, context) = result(&call(&stage, &["--resume", ONE], "second turn"));
    let expected =
        ContextReply { user_turns: 2, first: "first turn".to_owned(), last: "second turn".to_owned() };
    assert_eq!(context, Some(expected));
    assert_eq!((&end["num_turns"], &end["total_cost_usd"]), (&json!(1), &json!(0.02)));
    assert_eq!(end["modelUsage"]["claude-opus-5-5"]["inputTokens"], 200);

    let records = records(&transcript(&stage, ONE));
    let chain: Vec<_> = records.iter().filter(|record| record["uuid"].is_string()).collect();
    assert_eq!(chain.len(), 4);
    assert_eq!(chain[0]["parentUuid"], Value::Null);
    assert!(chain.windows(2).all(|pair| pair[1]["parentUuid"] == pair[0]["uuid"]));
    assert!(chain.iter().all(|record| record["sessionId"] == ONE && record["version"] == "2.1.332"));
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        let mode = std::fs::metadata(transcript(&stage, ONE)).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
    }
}

/// The call fails as a resume that found nothing, and says so on both outputs.
fn assert_failed_resume(output: &Output, id: Option<&str>, error: &str) {
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(stderr(output), format!("{error}\n"));
    let lines = lines(output);
    assert_eq!(lines.len(), 1);
    assert_eq!(lines[0]["subtype"], "error_during_execution");
    assert_eq!(lines[0]["errors"], json!([error]));
    assert_eq!((&lines[0]["num_turns"], &lines[0]["is_error"]), (&json!(0), &json!(true)));
    if let Some(id) = id {
        assert_eq!(lines[0]["session_id"], id);
    } else {
        assert_ne!(lines[0]["session_id"], ONE);
    }
}

#[test]
fn a_resume_without_a_session_fails() {
    let stage = stage(&json!({}));
    let missing = format!("No conversation found with session ID: {ONE}");
    assert_failed_resume(&call(&stage, &["--resume", ONE], "x"), Some(ONE), &missing);
    assert_failed_resume(&call(&stage, &["--resume", ONE, "--fork-session"], "x"), None, &missing);

    let path = transcript(&stage, ONE);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    for content in ["", "garbage\nmore\n"] {
        std::fs::write(&path, content).unwrap();
        assert_failed_resume(&call(&stage, &["--resume", ONE], "x"), Some(ONE), &missing);
    }
    std::fs::remove_file(&path).unwrap();
    std::fs::create_dir(&path).unwrap();
    let folder = "Failed to resume session: EISDIR: illegal operation on a directory, read";
    assert_failed_resume(&call(&stage, &["--resume", ONE], "x"), Some(ONE), folder);

    let output = call(&stage, &["--resume", "nope"], "x");
    let no_title = "Provided value \"nope\" is not a UUID and does not match any session title.";
    assert!(stderr(&output).trim_end().ends_with(no_title));
    assert_failed_resume(&output, None, stderr(&output).trim_end());
}

#[test]
fn mistakes_of_the_caller_are_refused_without_a_line() {
    let stage = stage(&json!({}));
    result(&call(&stage, &["--session-id", ONE], "x"));
    for (args, prompt, error) in [
        (
            &["--session-id", ONE][..],
            "x",
            "Error: Session ID 11111111-1111-4111-8111-111111111111 is already in use.\n",
        ),
        (&["--session-id", "issue-42"], "x", "Error: Invalid session ID. Must be a valid UUID.\n"),
        (
            &["--session-id", TWO, "--resume", ONE],
            "x",
            "Error: --session-id with --continue or --resume also needs --fork-session.\n",
        ),
        (
            &["--session-id", TWO],
            "",
            "Error: Input must be provided either through stdin or as a prompt argument when using --print\n",
        ),
    ] {
        let output = call(&stage, args, prompt);
        assert_eq!(
            (output.status.code(), stdout(&output), stderr(&output)),
            (Some(1), String::new(), error.to_owned())
        );
    }
    let output = stage.run(&["-p", "--output-format", "stream-json"], "x");
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).contains("requires --verbose"));
}

#[test]
fn a_fork_has_the_history_and_leaves_its_parent_alone() {
    let stage = stage(&json!({}));
    call(&stage, &["--session-id", ONE], "first");
    let before = records(&transcript(&stage, ONE));
    let fork = call(&stage, &["--resume", ONE, "--fork-session", "--session-id", TWO], "forked");
    assert_eq!(turns(&fork), 2);
    assert_eq!(result(&fork).0["session_id"], TWO);
    assert_eq!(records(&transcript(&stage, ONE)), before);
    assert!(records(&transcript(&stage, TWO)).iter().all(|record| record["sessionId"] == TWO));
    assert_eq!(turns(&call(&stage, &["--resume", TWO], "again")), 3);
}

#[test]
fn an_old_release_replaces_the_id_at_every_resume() {
    let stage = stage(&json!({"replace_id": true}));
    call(&stage, &["--session-id", ONE], "first");
    let (end, context) = result(&call(&stage, &["--resume", ONE], "second"));
    assert_eq!(context.unwrap().user_turns, 2);
    let new = end["session_id"].as_str().unwrap();
    assert_ne!(new, ONE);
    assert_eq!(turns(&call(&stage, &["--resume", new], "third")), 3);
}

#[test]
fn a_session_of_another_folder_is_found_only_by_new_releases() {
    let stage = stage(&json!({}));
    call(&stage, &["--session-id", ONE], "first");
    let original = records(&transcript(&stage, ONE)).len();
    let elsewhere = |stage: &Stage| {
        let mut command = stage.command(&[&STREAM[..], &["--resume", ONE]].concat());
        command.current_dir(stage.path("."));
        run(command, "moved")
    };
    assert_eq!(turns(&elsewhere(&stage)), 2);
    assert!(records(&transcript(&stage, ONE)).len() > original);

    stage.change_script(&json!({"cases": [{"steps": [{"claude": {"lookup": "cwd"}}]}]}));
    let missing = format!("No conversation found with session ID: {ONE}");
    assert_failed_resume(&elsewhere(&stage), Some(ONE), &missing);
}

#[test]
fn a_turn_can_end_early() {
    for (stop, kinds, saved) in
        [("init", &["system"][..], 0), ("user", &["system"], 1), ("assistant", &["system", "assistant"], 2)]
    {
        let stage = Stage::with_steps(&json!([{"claude": {"stop_after": stop}}, {"exit": 3}]));
        let output = call(&stage, &["--session-id", ONE], "x");
        assert_eq!(output.status.code(), Some(3));
        assert_eq!(types(&lines(&output)), kinds);
        let path = transcript(&stage, ONE);
        let chained = if path.exists() { records(&path) } else { Vec::new() };
        assert_eq!(chained.iter().filter(|record| record["uuid"].is_string()).count(), saved);
        // What is saved can be resumed.
        stage.change_script(&json!({"cases": [{"steps": [{"claude": {}}]}]}));
        let resumed = call(&stage, &["--resume", ONE], "y");
        assert_eq!(resumed.status.success(), saved > 0);
    }
}

#[test]
fn a_tool_and_an_answer_can_be_chosen() {
    let tool = json!({"name": "Bash", "input": {"command": "ls"}});
    let stage = stage(&json!({"tool": tool, "say": "turn {{turns}} of {{sid}}: {{prompt}}"}));
    let output = call(&stage, &["--session-id", ONE], "go");
    assert_eq!(types(&lines(&output)), ["system", "assistant", "user", "assistant", "result"]);
    let (end, _) = result(&output);
    assert_eq!(end["result"], format!("turn 1 of {ONE}: go"));
    assert_eq!(end["num_turns"], 2);
    assert_eq!(result(&call(&stage, &["--resume", ONE], "go")).0["result"], format!("turn 2 of {ONE}: go"));
}

#[test]
fn a_turn_can_be_answered_and_not_saved() {
    let stage = stage(&json!({}));
    call(&stage, &["--session-id", ONE], "first");
    let before = records(&transcript(&stage, ONE));
    assert_eq!(turns(&call(&stage, &["--resume", ONE, "--no-session-persistence"], "x")), 2);
    stage.change_script(&json!({"cases": [{"steps": [{"claude": {"persist": false}}]}]}));
    assert_eq!(turns(&call(&stage, &["--resume", ONE], "x")), 2);
    assert_eq!(records(&transcript(&stage, ONE)), before);
}

#[test]
fn other_formats_have_only_the_answer() {
    let stage = stage(&json!({"say": "hello"}));
    assert_eq!(stdout(&stage.run(&["-p"], "x")), "hello\n");
    let json = lines(&stage.run(&["-p", "--output-format", "json"], "x"));
    assert_eq!((json.len(), &json[0]["result"]), (1, &json!("hello")));
    let all = lines(&stage.run(&["-p", "--output-format", "json", "--verbose"], "x"));
    assert_eq!(types(all[0].as_array().unwrap()), ["system", "assistant", "result"]);
    let failed = stage.run(&["-p", "--resume", ONE], "x");
    assert_eq!((failed.status.code(), stdout(&failed)), (Some(1), String::new()));
}
