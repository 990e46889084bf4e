use proptest::prelude::*;

use super::*;

const ID: &str = "01a227c8-c852-73b0-9992-9153893082ac";

fn line(kind: &str, payload: &str) -> String {
    format!("{{\"timestamp\":\"2026-03-01T10:00:00.000Z\",\"type\":\"{kind}\",\"payload\":{payload}}}")
}

/// Without what need not be told of a part.
fn told(facts: Option<LineFacts<'_>>) -> Option<LineFacts<'_>> {
    let mut facts = facts?;
    if matches!(facts.role, LineRole::RunningTotal(_) | LineRole::CountsAnew) {
        facts.role = LineRole::Other;
    }
    Some(facts)
}

#[track_caller]
fn same(line: &str) {
    let line = line.as_bytes();
    assert_eq!(told(glance(line)), told(facts(line)), "{}", line.escape_ascii());
}

fn is_quick(line: &str) -> bool {
    quick(line.as_bytes()).is_some()
}

#[test]
fn a_header_tells_the_same_without_what_is_long_in_it() {
    let long = "x\\\"cwd\\\":\\\"/no\\\",\\\\".repeat(1000);
    let rows = [
        format!(
            r#"{{"id":"{ID}","cwd":"/a","source":"exec","base_instructions":{{"text":"{long}"}},"git":{{"branch":"b"}}}}"#
        ),
        format!(
            r#"{{"base_instructions":"{long}","id":"{ID}","cwd":"/a\\n","dynamic_tools":[{{"cwd":"/no"}}]}}"#
        ),
        format!(
            r#"{{"instructions":null,"id":"{ID}","source":{{"subagent":{{"thread_spawn":{{"parent_thread_id":"{ID}"}}}}}}}}"#
        ),
        r#"{"instructions":"x"}"#.to_owned(),
    ];
    for payload in rows {
        let line = line("session_meta", &payload);
        assert!(is_quick(&line), "{payload}");
        same(&line);
    }
}

#[test]
fn what_a_list_does_not_show_is_stepped_over() {
    for payload in [
        r#"{"type":"token_count","info":{"total_token_usage":{"input_tokens":5}}}"#,
        r#"{"type":"token_count","info":null}"#,
        r#"{"turn_id":"x","type":"task_complete","last_agent_message":"\"type\":\"user_message\""}"#,
        r#"{"type":"exec_command_end","parsed":[{"type":"user_message","message":"no"}],"n":-1.5e3}"#,
        r#"{"type":"agent_message","message":"a }} \\"}"#,
    ] {
        let line = line("event_msg", payload);
        assert!(is_quick(&line), "{payload}");
        same(&line);
    }
}

#[test]
fn plain_prompts_and_turns_are_read_at_a_glance() {
    for (kind, payload) in [
        ("event_msg", r#"{"type":"user_message","message":"hü <a>","images":[]}"#),
        ("event_msg", r#"{"images":[],"message":"","type":"user_message"}"#),
        ("turn_context", r#"{"turn_id":"t","cwd":"/a","model":"m","sandbox":{"cwd":"/no"}}"#),
        ("turn_context", r#"{"cwd":"","model":""}"#),
    ] {
        let line = line(kind, payload);
        assert!(is_quick(&line), "{payload}");
        same(&line);
    }
    for (kind, payload) in [
        ("event_msg", r#"{"type":"user_message","message":"a\nb"}"#),
        ("event_msg", r#"{"type":"user_message","message":"<environment_context>x"}"#),
        ("event_msg", r#"{"type":"user_message","message":"a","message":"b"}"#),
        ("event_msg", r#"{"type":"user_message","message":"a","item":{"type":"UserMessage","content":[]}}"#),
        ("event_msg", r#"{"type":"user_message","message":["a"]}"#),
        ("turn_context", r#"{"cwd":"/a\u0041","model":"m"}"#),
        ("turn_context", r#"{"cwd":"/a","cwd":"/b","model":"m"}"#),
        ("turn_context", r#"{"cwd":7,"model":"m"}"#),
        ("turn_context", r#"{"cwd":"/a"}"#),
    ] {
        let line = line(kind, payload);
        assert!(!is_quick(&line), "{payload}");
        same(&line);
    }
}

#[test]
fn a_line_that_is_not_as_the_agent_writes_it_is_read_in_full() {
    let prompt = line("event_msg", r#"{"type":"user_message","message":"hi"}"#);
    let count = line("event_msg", r#"{"type":"token_count","info":null}"#);
    let header = line("session_meta", r#"{"id":"a","base_instructions":"x"}"#);
    for line in [
        prompt.clone(),
        // Keys that stand twice.
        line("event_msg", r#"{"type":"token_count","type":"user_message","message":"hi"}"#),
        count.replace("}}", "},\"type\":\"session_meta\"}"),
        header.replace("}}", "},\"payload\":{\"id\":\"b\"}}"),
        line("session_meta", r#"{"id":"a","base_instructions":"x","id":"b"}"#),
        // Escapes in keys and names.
        line("event_msg", r#"{"ty\u0070e":"user_message","type":"token_count","message":"hi"}"#),
        line("event_msg", r#"{"type":"user_messag\u0065","message":"hi"}"#),
        line("session_meta", r#"{"base_instructions":"x","\u0069d":"b"}"#),
        // Space.
        line("event_msg", r#"{"type": "token_count","info":null}"#),
        // Cut off, and glued together.
        count[..count.len() - 1].to_owned(),
        count[..count.len() - 2].to_owned(),
        header[..header.len() - 4].to_owned(),
        format!("{count}{prompt}"),
        format!("{}{prompt}", &count[..count.len() - 2]),
        format!("{header}{prompt}"),
        // Of other types.
        line("event_msg", r#"{"type":7,"message":"hi"}"#),
        line("event_msg", r#"{"message":"hi"}"#),
        line("event_msg", "{}"),
        line("event_msg", "7"),
        line("session_meta", "null"),
    ] {
        same(&line);
    }
}

proptest! {
    #[test]
    fn members_in_any_order_tell_the_same(
        kind in "event_msg|session_meta|turn_context|compacted",
        members in prop::collection::vec(
            ("type|cwd|id|source|git|item|info|message|instructions|base_instructions|n",
             "null|7|-1\\.5|\"x\"|\"user_message\"|\"token_count\"|\"agent_message\"|\"a\\\\\"\\}\\}\"|\\[\\]|\\[1,\"\\]\"\\]|\\{\\}|\\{\"type\":\"user_message\"\\}|true"),
            0..6,
        ),
    ) {
        let members: Vec<String> = members.iter().map(|(key, value)| format!("\"{key}\":{value}")).collect();
        let line = line(&kind, &format!("{{{}}}", members.join(",")));
        same(&line);
    }

    #[test]
    fn no_bytes_are_too_much(cut in 0_usize..200, bytes in prop::collection::vec(any::<u8>(), 0..40)) {
        let line = line("event_msg", r#"{"type":"task_complete","a":[{"b":"c"}],"message":"hi"}"#);
        let mut line = line.into_bytes();
        line.truncate(cut);
        line.extend(bytes);
        let _total = glance(&line);
    }
}
