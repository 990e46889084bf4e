//! The persona of Codex.

use std::path::PathBuf;
use std::process::Output;

use rejoin_test_support::ContextReply;
use serde_json::{Value, json};

use crate::stage::{Stage, json_lines, records, stderr, stdout};

const FRESH: [&str; 4] = ["exec", "--json", "--skip-git-repo-check", "-"];

fn stage(step: &Value) -> Stage {
    let stage =
        Stage::with_script(&json!({"version": "codex-cli 0.171.0", "cases": [{"steps": [{"codex": step}]}]}));
    std::fs::create_dir_all(stage.path("home/.codex")).unwrap();
    stage
}

fn resume(stage: &Stage, id: &str, prompt: &str) -> Output {
    stage.run(&["exec", "--json", "-s", "read-only", "resume", id, "-"], prompt)
}

/// The thread and the context that an answered call tells of.
fn answered(output: &Output) -> (String, ContextReply) {
    assert_eq!(output.status.code(), Some(0), "{}", stderr(output));
    let lines = json_lines(&stdout(output));
    let kinds: Vec<_> = lines.iter().map(|line| line["type"].as_str().unwrap()).collect();
    assert_eq!(kinds, ["thread.started", "turn.started", "item.completed", "turn.completed"]);
    let id = lines[0]["thread_id"].as_str().unwrap().to_owned();
    (id, ContextReply::parse(lines[2]["item"]["text"].as_str().unwrap()).unwrap())
}

fn rollouts(stage: &Stage) -> Vec<PathBuf> {
    let (mut found, mut folders) = (Vec::new(), vec![stage.path("home/.codex/sessions")]);
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
            if entry.path().is_dir() { folders.push(entry.path()) } else { found.push(entry.path()) }
        }
    }
    found
}

#[test]
fn a_session_is_resumed_with_its_context_and_counts_its_tokens_on() {
    let stage = stage(&json!({}));
    let (id, first) = answered(&stage.run(&FRESH, "one"));
    assert_eq!(first.user_turns, 1);
    let second = resume(&stage, &id, "two");
    let expected = ContextReply { user_turns: 2, first: "one".to_owned(), last: "two".to_owned() };
    assert_eq!(answered(&second), (id, expected));
    assert_eq!(json_lines(&stdout(&second))[3]["usage"]["input_tokens"], 200);
    let file = rollouts(&stage).remove(0);
    let ordinals: Vec<_> = records(&file).iter().map(|record| record["ordinal"].as_u64().unwrap()).collect();
    assert_eq!(ordinals, (0..ordinals.len() as u64).collect::<Vec<_>>());
}

#[test]
fn an_unknown_id_is_refused_or_taken_for_a_new_session_by_the_family() {
    let unknown = "11111111-2222-3333-4444-555555555555";
    let refused = resume(&stage(&json!({})), unknown, "two");
    assert_eq!((refused.status.code(), stdout(&refused).as_str()), (Some(1), ""));
    assert!(
        stderr(&refused).contains("no rollout found for thread id 11111111-2222"),
        "{}",
        stderr(&refused)
    );
    for (step, asked) in [(json!({"silent": true}), unknown), (json!({}), "not-a-uuid")] {
        let (id, context) = answered(&resume(&stage(&step), asked, "two"));
        assert_ne!(id, asked);
        assert_eq!(context.user_turns, 1);
    }
}

#[test]
fn a_damaged_file_is_refused_in_the_words_of_the_cli() {
    for (text, words) in [
        (Vec::new(), "is empty"),
        (b"rubbish\n".to_vec(), "failed to read session metadata"),
        (vec![0xff, 0xfe], "did not contain valid UTF-8"),
    ] {
        let stage = stage(&json!({}));
        let (id, _) = answered(&stage.run(&FRESH, "one"));
        std::fs::write(&rollouts(&stage)[0], text).unwrap();
        let refused = resume(&stage, &id, "two");
        assert_eq!(refused.status.code(), Some(1));
        assert!(stderr(&refused).contains(words), "{}", stderr(&refused));
    }
    let stage = stage(&json!({}));
    let (id, _) = answered(&stage.run(&FRESH, "one"));
    let file = &rollouts(&stage)[0];
    let text = std::fs::read_to_string(file).unwrap();
    std::fs::write(file, format!("{text}{}\n", json!({"type": "event_msg", "payload": {}}))).unwrap();
    assert!(stderr(&resume(&stage, &id, "two")).contains("missing an ordinal"));
}

#[test]
fn a_turn_ends_early_or_is_not_kept_where_the_script_says_so() {
    let started = stage(&json!({"stop_after": "started"}));
    assert_eq!(json_lines(&stdout(&started.run(&FRESH, "one"))).len(), 1);
    assert!(rollouts(&started).is_empty());
    let user = stage(&json!({"stop_after": "user"}));
    assert_eq!(json_lines(&stdout(&user.run(&FRESH, "one"))).len(), 2);
    assert_eq!(rollouts(&user).len(), 1);
    let forgets = stage(&json!({"forgets": true}));
    answered(&forgets.run(&FRESH, "one"));
    assert!(rollouts(&forgets).is_empty());
}
