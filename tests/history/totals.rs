//! Totals that the agent itself counts.

use std::fs;

use rejoin::NativeId;
use rejoin::adapters::CodexTranscripts;
use rejoin::core::history::{ListQuery, SessionSource};
use rejoin::core::{EnvMap, SessionCatalog as _, Usage};
use rejoin::transcript::FileCatalog;
use serde_json::{Value, json};

use crate::desk::jsonl;

const ID: &str = "019b8d2b-b6f8-713f-b434-8bd03b8dece5";

fn event(payload: Value) -> Value {
    json!({"timestamp": "2026-05-08T18:29:00.000Z", "type": "event_msg", "payload": payload})
}

/// A total, after so many replies.
fn total(replies: u64) -> Value {
    let total = json!({"input_tokens": 103 * replies, "cached_input_tokens": 3 * replies, "output_tokens": 20 * replies});
    event(json!({"type": "token_count", "info": {"total_token_usage": total}}))
}

fn nothing_yet() -> Value {
    event(json!({"type": "token_count", "info": null}))
}

/// The tokens of a session with these records in it: restored, and as listed.
fn usage(records: &[Value]) -> (Usage, Option<Usage>) {
    let state = tempfile::tempdir().unwrap();
    let path = state.path().join(format!("sessions/2026/05/08/rollout-2026-05-08T18-29-00-{ID}.jsonl"));
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    let header = json!({"id": ID, "timestamp": "2026-05-08T18:29:00.000Z", "cwd": "/w", "originator": "codex_exec",
        "cli_version": "0.63.0", "source": "exec"});
    let header = json!({"timestamp": "2026-05-08T18:29:00.000Z", "type": "session_meta", "payload": header});
    let prompt = event(json!({"type": "user_message", "message": "hi"}));
    fs::write(&path, jsonl(&[&[header, prompt], records].concat())).unwrap();
    let catalog = FileCatalog::new(CodexTranscripts::new(EnvMap::new()));
    let source = SessionSource { path, state_dir: Some(state.path().to_owned()) };
    let query = ListQuery { state_dir: source.state_dir.clone(), ..ListQuery::default() };
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let restored = runtime.block_on(catalog.restore(&NativeId::new(ID), &source)).unwrap();
    assert_eq!(restored.usage, restored.usage_with_copied);
    let listing = runtime.block_on(catalog.list(&query)).unwrap();
    (restored.usage, listing.sessions[0].usage)
}

/// Codex before 0.80 counts anew in every process, later versions go on with what the file tells.
#[test]
fn what_was_counted_before_the_agent_began_anew_stays() {
    for (records, replies) in [
        (vec![nothing_yet(), total(1), total(2)], 2),
        (vec![nothing_yet(), total(1), total(1), total(2)], 2),
        (vec![nothing_yet(), total(1), nothing_yet(), total(1)], 2),
        (vec![nothing_yet(), total(3), nothing_yet(), total(1), total(2)], 5),
        (vec![nothing_yet(), total(1), nothing_yet(), nothing_yet(), total(1), nothing_yet(), total(1)], 3),
        // One of each: what is newer goes on with what the older one counted last.
        (vec![nothing_yet(), total(1), nothing_yet(), total(1), total(1), total(2)], 3),
        (vec![nothing_yet(), total(2), nothing_yet()], 2),
        (vec![nothing_yet()], 0),
    ] {
        let expected = Usage {
            input_tokens: 100 * replies,
            output_tokens: 20 * replies,
            cache_read_tokens: 3 * replies,
            cache_write_tokens: 0,
        };
        assert_eq!(usage(&records), (expected, Some(expected)), "{records:?}");
    }
}
