use serde_json::{Value, json};

use super::*;

fn read(record: &Value) -> Entry {
    entry(record.to_string().as_bytes()).unwrap_or_else(|| panic!("no record: {record}"))
}

fn kind(record: &Value) -> EntryKind {
    read(record).kind
}

fn user(content: &Value) -> Value {
    json!({"type": "user", "uuid": "u1", "parentUuid": null, "sessionId": "s", "isSidechain": false,
        "timestamp": "2026-05-08T18:29:33.262Z", "message": {"role": "user", "content": content}})
}

fn with(mut record: Value, key: &str, value: Value) -> Value {
    record[key] = value;
    record
}

fn text(text: &str) -> Vec<Block> {
    vec![Block::Text(text.to_owned())]
}

#[test]
fn what_somebody_typed_is_a_prompt() {
    for (content, expected) in [
        (json!("hello"), "hello"),
        (json!([{"type": "text", "text": "hello"}]), "hello"),
        (
            json!("left\u{2028}right\u{85}end \u{1f680} \"quoted\"\n"),
            "left\u{2028}right\u{85}end \u{1f680} \"quoted\"\n",
        ),
        (
            json!(
                "<command-name>/model</command-name>\n <command-message>model</command-message>\n<command-args>opus</command-args>"
            ),
            "/model opus",
        ),
        (json!("<command-message>init</command-message>\n<command-name>/init</command-name>"), "/init"),
        (json!("<bash-input>ls</bash-input>"), "!ls"),
    ] {
        let entry = read(&user(&content));
        assert_eq!(entry.kind, EntryKind::Prompt(text(expected)), "{content}");
        assert!(entry.begins_turn());
        assert_eq!((entry.id.as_deref(), entry.parent), (Some("u1"), None));
        assert_eq!(entry.time.unwrap().as_millis(), 1_778_264_973_262);
    }
    let side = read(&with(user(&json!("hello")), "isSidechain", json!(true)));
    assert!(matches!(side.kind, EntryKind::Prompt(_)) && !side.begins_turn());
    let image =
        json!([{"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AAAA"}}]);
    let expected = vec![Block::Attachment { media: "image/png".to_owned() }];
    assert_eq!(kind(&user(&image)), EntryKind::Prompt(expected));
}

#[test]
fn what_the_agent_writes_on_the_users_side_is_none() {
    for written in [
        "<local-command-stdout>Set model</local-command-stdout>",
        "<local-command-caveat>Caveat</local-command-caveat>",
        "<bash-stdout>a</bash-stdout>",
        "[Request interrupted by user]",
        "[Request interrupted by user for tool use]",
    ] {
        assert_eq!(kind(&user(&json!(written))), EntryKind::Returned(text(written)));
    }
    let meta = read(&with(user(&json!("Continue from where you left off.")), "isMeta", json!(true)));
    assert!(meta.meta && matches!(meta.kind, EntryKind::Returned(_)));
    let summary = with(user(&json!("This session is being continued")), "isCompactSummary", json!(true));
    assert_eq!(kind(&summary), EntryKind::CompactSummary("This session is being continued".to_owned()));
    for (content, said) in [
        (json!("done"), "done"),
        (json!([{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]), "a\nb"),
        (json!([{"type": "image", "source": {"data": "AAAA"}}]), ""),
        (json!(null), ""),
    ] {
        let block =
            json!([{"type": "tool_result", "tool_use_id": "t1", "content": content, "is_error": true}]);
        let result = Block::ToolResult { id: "t1".to_owned(), text: said.to_owned(), failed: true };
        assert_eq!(kind(&user(&block)), EntryKind::Returned(vec![result]), "{content}");
    }
}

#[test]
fn a_reply_has_its_blocks_its_model_and_its_tokens() {
    let record = json!({"type": "assistant", "uuid": "u2", "parentUuid": "u1", "sessionId": "s", "message": {
    "id": "msg_1", "model": "claude-x", "role": "assistant",
    "usage": {"input_tokens": 1, "output_tokens": 2, "cache_read_input_tokens": 3, "cache_creation_input_tokens": 4,
        "cache_creation": {"input_tokens": 9}},
    "content": [
        {"type": "thinking", "thinking": "hm", "signature": "x"},
        {"type": "text", "text": "so"},
        {"type": "tool_use", "id": "t1", "name": "Bash", "input": {"command": "ls", "type": "text"}},
        {"type": "new_thing", "x": [1]},
        {"type": "text"},
        "bare",
    ]}});
    let entry = read(&record);
    assert_eq!((entry.reply.as_deref(), entry.model.as_deref()), (Some("msg_1"), Some("claude-x")));
    assert_eq!(
        entry.usage,
        Some(session_core::Usage {
            input_tokens: 1,
            output_tokens: 2,
            cache_read_tokens: 3,
            cache_write_tokens: 4
        })
    );
    let EntryKind::Reply(blocks) = entry.kind else { panic!("{:?}", entry.kind) };
    assert_eq!(
        blocks,
        [
            Block::Thinking("hm".to_owned()),
            Block::Text("so".to_owned()),
            Block::ToolCall {
                id: "t1".to_owned(),
                name: "Bash".to_owned(),
                input: json!({"command": "ls", "type": "text"})
            },
            Block::Other(json!({"type": "new_thing", "x": [1]})),
            Block::Other(json!({"type": "text"})),
            Block::Other(json!("bare")),
        ]
    );
    let error = with(record, "isApiErrorMessage", json!(true));
    let error = with(error, "message", json!({"model": "<synthetic>", "content": "API Error"}));
    assert_eq!((read(&error).model, read(&error).kind), (None, EntryKind::Reply(text("API Error"))));
}

#[test]
fn what_lies_only_on_the_disk_is_known() {
    for name in NOTES {
        assert_eq!(kind(&json!({"type": name, "sessionId": "s"})), EntryKind::Note((*name).to_owned()));
    }
    let given = EntryKind::Title { source: TitleSource::Given, text: "é".to_owned() };
    assert_eq!(kind(&json!({"type": "custom-title", "customTitle": "é", "sessionId": "s"})), given);
    let made = EntryKind::Title { source: TitleSource::Agent, text: "t".to_owned() };
    assert_eq!(kind(&json!({"type": "ai-title", "aiTitle": "t", "sessionId": "s"})), made);
    let summed = EntryKind::Title { source: TitleSource::Summary, text: "t".to_owned() };
    assert_eq!(kind(&json!({"type": "summary", "summary": "t", "leafUuid": "x"})), summed);
    let boundary = json!({"type": "system", "subtype": "compact_boundary", "uuid": "b", "parentUuid": null,
        "logicalParentUuid": "u", "content": "Conversation compacted"});
    assert_eq!(kind(&boundary), EntryKind::Boundary);
    assert_eq!(kind(&json!({"type": "system", "subtype": "x"})), EntryKind::Note("system/x".to_owned()));
    // A snapshot names a message, and has no id of its own.
    let snapshot =
        json!({"type": "file-history-snapshot", "messageId": "u1", "snapshot": {"messageId": "u1"}});
    assert_eq!(read(&snapshot).id, None);
    let skills = json!({"type": "attachment", "uuid": "a", "attachment": {"type": "skill_listing"}});
    assert_eq!(kind(&skills), EntryKind::Note("attachment/skill_listing".to_owned()));
}

#[test]
fn a_prompt_typed_meanwhile_begins_no_turn() {
    let queued = json!({"type": "attachment", "uuid": "a", "sessionId": "s",
        "attachment": {"type": "queued_command", "prompt": "and this", "commandMode": "prompt"}});
    let entry = read(&queued);
    assert_eq!(entry.kind, EntryKind::Prompt(text("and this")));
    assert!(entry.queued && !entry.begins_turn());
    let other = json!({"type": "attachment", "attachment": {"type": "queued_command", "prompt": "x",
        "commandMode": "task-notification"}});
    assert_eq!(kind(&other), EntryKind::Note("attachment/queued_command".to_owned()));
}

#[test]
fn a_line_that_the_program_prints_is_no_record_of_a_file() {
    let printed = json!({"type": "assistant", "session_id": "s", "uuid": "u",
        "message": {"id": "m", "content": [{"type": "text", "text": "hi"}]}});
    assert_eq!(entry(printed.to_string().as_bytes()), None);
    assert!(matches!(kind(&with(printed, "sessionId", json!("s"))), EntryKind::Reply(_)));
}

#[test]
fn what_nobody_knows_survives_as_it_was() {
    for record in [
        json!({"type": "from-the-future", "deep": {"a": [1, null, "x"]}}),
        json!({"type": "user", "sessionId": "s"}),
        json!({"type": "assistant", "message": "no longer an object"}),
    ] {
        let name = record["type"].as_str().unwrap().to_owned();
        assert_eq!(kind(&record), EntryKind::Unknown { name, record: record.clone() });
    }
}

#[test]
fn a_field_of_another_type_loses_only_itself() {
    let mut record = user(&json!("hello"));
    for (key, value) in [("uuid", json!(7)), ("timestamp", json!({"x": 1})), ("isMeta", json!("yes"))] {
        record[key] = value;
    }
    record["isSidechain"] = json!(null);
    let entry = read(&record);
    assert_eq!((entry.id.clone(), entry.time), (None, None));
    assert_eq!(entry.kind, EntryKind::Prompt(text("hello")));
    assert!(entry.begins_turn());
}

#[test]
fn a_tree_that_would_not_fit_stays_the_text_that_it_is() {
    let flat = format!("[{}0]", "0,".repeat(1 << 20));
    let line = format!("{{\"type\":\"new\",\"x\":{flat}}}");
    let EntryKind::Unknown { record, .. } = entry(line.as_bytes()).unwrap().kind else { panic!() };
    assert_eq!(record, Value::String(line));
    let deep = format!("{{\"type\":\"new\",\"x\":{}1{}}}", "[".repeat(400), "]".repeat(400));
    let EntryKind::Unknown { record, .. } = entry(deep.as_bytes()).unwrap().kind else { panic!() };
    assert_eq!(record, Value::String(deep));
}

#[test]
fn blocks_may_lie_in_each_other_as_deep_as_they_like() {
    let inner = r#"{"type":"tool_result","tool_use_id":"t","content":["#.repeat(100_000);
    let line = format!("{{\"type\":\"user\",\"message\":{{\"content\":[{inner}{}]}}}}", "]}".repeat(100_000));
    assert!(matches!(entry(line.as_bytes()).unwrap().kind, EntryKind::Returned(_)));
}

#[test]
fn what_is_cut_or_no_json_is_no_record() {
    let whole = user(&json!([{"type": "text", "text": "a \"b\" \\ é"}])).to_string();
    for end in 0..whole.len() {
        assert_eq!(entry(&whole.as_bytes()[..end]), None, "{end}");
    }
    for line in ["", "[]", "{}", "null", "{\"type\":7}", "{\"type\":\"user\"} {}", "\0\0{\"type\":\"mode\"}"]
    {
        assert_eq!(entry(line.as_bytes()), None, "{line:?}");
    }
    assert!(entry(b"{\"type\":\"mode\",\"x\":\"a\0\"}").is_none());
    assert!(entry(b"{\"type\":\"mode\"}\r").is_some());
    // Half of a surrogate pair, and bytes that are no UTF-8.
    let half = br#"{"type":"user","message":{"content":"a\ud83d"}}"#;
    assert_eq!(entry(half).unwrap().kind, EntryKind::Prompt(text("a\u{fffd}")));
    let bytes = b"{\"type\":\"user\",\"message\":{\"content\":\"a\xff\"}}";
    assert_eq!(entry(bytes).unwrap().kind, EntryKind::Prompt(text("a\u{fffd}")));
}
