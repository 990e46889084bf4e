use std::path::Path;

use proptest::prelude::*;
use serde_json::json;

use super::*;

#[expect(clippy::disallowed_methods, reason = "tests read session files")]
fn entries(file: &str) -> Vec<Entry> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("session-files").join(file);
    let text = std::fs::read_to_string(path).unwrap();
    text.lines().map(|line| entry(line.as_bytes()).expect(line)).collect()
}

fn of(kind: &str, payload: &Value) -> EntryKind {
    let line = json!({"type": kind, "payload": payload}).to_string();
    entry(line.as_bytes()).unwrap().kind
}

/// Session files of the real programs.
#[test]
fn every_record_of_a_real_file_is_known_and_has_its_time() {
    for file in [
        "0.63.0/fresh-resume.jsonl",
        "0.98.0/tool-edit.jsonl",
        "0.130.0/rollback.jsonl",
        "0.171.0/fresh-resume.jsonl",
        "0.171.0/fork.jsonl",
        "0.171.0/revert-segment.jsonl",
        "0.171.0/compaction.jsonl",
        "0.171.0/sigint-model-thinking.jsonl",
    ] {
        for entry in entries(file) {
            assert!(!matches!(entry.kind, EntryKind::Unknown { .. }), "{file}: {entry:?}");
            assert!(entry.time.is_some(), "{file}: {entry:?}");
        }
    }
}

#[test]
fn a_talk_with_a_tool_is_told_once() {
    let told: Vec<_> = entries("0.98.0/tool-edit.jsonl")
        .into_iter()
        .filter_map(|entry| match entry.kind {
            EntryKind::Prompt(blocks) => Some(("prompt", blocks)),
            EntryKind::Reply(blocks) => Some(("reply", blocks)),
            EntryKind::Returned(blocks) => Some(("returned", blocks)),
            _ => None,
        })
        .collect();
    let kinds: Vec<_> = told.iter().map(|(kind, _)| *kind).collect();
    assert_eq!(kinds, ["prompt", "reply", "returned", "reply"]);
    let (Block::ToolCall { id, name, input }, Block::ToolResult { id: of, text, failed }) =
        (&told[1].1[0], &told[2].1[0])
    else {
        panic!("{told:?}")
    };
    assert_eq!((id, name.as_str(), *failed), (of, "exec_command", false));
    assert!(input["cmd"].is_string() && text.starts_with("Success."), "{input} {text:?}");
}

#[test]
fn what_tools_return_is_text_in_each_of_its_shapes() {
    let rows = [
        (json!("plain"), "plain", false),
        (json!("{\"output\":\"o\",\"metadata\":{\"exit_code\":0}}"), "o", false),
        (json!("{\"output\":\"o\",\"metadata\":{\"exit_code\":2}}"), "o", true),
        (json!("{\"output\":\"o\"}"), "{\"output\":\"o\"}", false),
        (json!({"content": "c", "success": false}), "c", true),
        (json!([{"type": "input_text", "text": "a"}, {"type": "input_image"}]), "a", false),
        (json!(7), "", false),
    ];
    for (output, text, failed) in rows {
        let payload = json!({"type": "function_call_output", "call_id": "c", "output": output});
        let expected = Block::ToolResult { id: "c".to_owned(), text: text.to_owned(), failed };
        assert_eq!(of("response_item", &payload), EntryKind::Returned(vec![expected]), "{output}");
    }
}

#[test]
fn what_comes_with_words_is_kept() {
    let prompt =
        json!({"type": "user_message", "message": "see", "images": ["data:…"], "local_images": ["/a.png"]});
    let EntryKind::Prompt(blocks) = of("event_msg", &prompt) else { panic!("no prompt") };
    assert_eq!((blocks.len(), &blocks[0]), (3, &Block::Text("see".to_owned())));
    let item = json!({"type": "UserMessage", "content": [{"type": "local_image", "path": "/a"}, {"type": "skill", "name": "s"}]});
    let EntryKind::Prompt(blocks) = of("event_msg", &json!({"type": "item_completed", "item": item})) else {
        panic!("no prompt")
    };
    assert!(matches!(blocks.as_slice(), [Block::Attachment { .. }, Block::Other(_)]), "{blocks:?}");
    let thought =
        json!({"type": "reasoning", "summary": [{"type": "summary_text", "text": "hm"}], "content": null});
    assert_eq!(of("response_item", &thought), EntryKind::Reply(vec![Block::Thinking("hm".to_owned())]));
    assert_eq!(of("compacted", &json!({"message": "sum"})), EntryKind::CompactSummary("sum".to_owned()));
    assert_eq!(of("compacted", &json!({"message": ""})), EntryKind::Boundary);
}

#[test]
fn what_nobody_knows_survives() {
    for (kind, payload, name) in [
        ("brand_new", json!({"a": 1}), "brand_new"),
        ("event_msg", json!({"type": "brand_new", "a": 1}), "brand_new"),
        ("response_item", json!({"type": "brand_new", "a": 1}), "brand_new"),
        ("event_msg", json!(7), ""),
    ] {
        let EntryKind::Unknown { name: found, record } = of(kind, &payload) else { panic!("{payload}") };
        assert_eq!((found.as_str(), &record["payload"]), (name, &payload));
    }
}

/// As a tree, such a line takes many times its size.
#[test]
fn a_line_of_very_many_values_stays_the_text_that_it_is() {
    let payload = json!({"type": "function_call_output", "call_id": "c", "output": vec![0; 100_000]});
    let EntryKind::Unknown { name, record } = of("response_item", &payload) else { panic!() };
    assert!(name.is_empty() && record.as_str().is_some_and(|text| text.len() > 200_000));
    // Commas in a text are no values.
    let text = "\\\"a,{[".repeat(100_000);
    let payload = json!({"type": "function_call_output", "call_id": "c", "output": text});
    let id = "c".to_owned();
    let expected = EntryKind::Returned(vec![Block::ToolResult { id, text, failed: false }]);
    assert_eq!(of("response_item", &payload), expected);
    let prompt = json!({"type": "user_message", "message": "hi", "x": vec![0; 100_000]});
    assert_eq!(of("event_msg", &prompt), EntryKind::Prompt(vec![Block::Text("hi".to_owned())]));
}

#[test]
fn what_the_agent_puts_in_begins_no_turn() {
    let line = r#"{"type":"event_msg","payload":{"type":"user_message","message":"<environment_context>"}}"#;
    let found = entry(line.as_bytes()).unwrap();
    assert!(found.meta && !found.begins_turn(), "{found:?}");
    let model = entry(br#"{"type":"turn_context","payload":{"model":"m","turn_id":"t"}}"#).unwrap();
    assert_eq!((model.model.as_deref(), model.id.as_deref()), (Some("m"), Some("t")));
}

proptest! {
    #[test]
    fn any_bytes_are_read(line in prop::collection::vec(any::<u8>(), 0..200)) {
        let _ = entry(&line);
    }
}
