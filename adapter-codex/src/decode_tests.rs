use std::borrow::Cow;

use proptest::prelude::*;

use super::*;

const S1: &str = "01a227c3-e394-7433-81c9-11184db5edac";
const S2: &str = "01a227c8-bd64-7d52-b5a1-a368308c0dfa";

fn events(lines: &[&str]) -> Vec<String> {
    let mut decoder = CodexDecoder::default();
    let mut events = Vec::new();
    for line in lines {
        decoder.line(line.as_bytes(), &mut |event| {
            events.push(match event {
                AgentEvent::Finished(end) => format!("Finished {}", end.kind),
                event => format!("{event:?}"),
            });
        });
    }
    events
}

fn started(id: &str) -> String {
    format!(r#"{{"type":"thread.started","thread_id":"{id}"}}"#)
}

fn item(event: &str, item: &str) -> String {
    format!(r#"{{"type":"item.{event}","item":{item}}}"#)
}

#[test]
fn the_session_is_named_before_the_model_is_called() {
    assert_eq!(events(&[&started(S1)]), [format!("Session {{ id: {S1:?} }}"), "ModelCalled".to_owned()]);
    assert_eq!(events(&[r#"{"type":"thread.started"}"#]), ["ModelCalled"]);
}

/// The first line is the only one that names the session.
#[test]
fn a_mark_before_the_first_line_does_not_hide_it() {
    let marked = format!("\u{feff}{}", started(S1));
    assert_eq!(events(&[&marked])[0], format!("Session {{ id: {S1:?} }}"));
}

#[test]
fn nothing_else_names_a_session() {
    let lines = [
        format!(r#"{{"type":"turn.started","thread_id":"{S2}"}}"#),
        item(
            "completed",
            &format!(r#"{{"id":"i","type":"collab_tool_call","receiver_thread_ids":["{S2}"]}}"#),
        ),
        item("completed", &format!(r#"{{"id":"i","type":"agent_message","text":"thread_id {S2}"}}"#)),
    ];
    for line in lines {
        assert!(events(&[&line]).iter().all(|event| !event.starts_with("Session")), "{line}");
    }
}

#[test]
fn a_turn_is_read_from_beginning_to_end() {
    let lines = [
        started(S1),
        r#"{"type":"turn.started"}"#.to_owned(),
        item("started", r#"{"id":"item_0","type":"command_execution","status":"in_progress"}"#),
        item("updated", r#"{"id":"item_0","type":"command_execution","status":"in_progress"}"#),
        item("completed", r#"{"id":"item_0","type":"command_execution","exit_code":1,"status":"failed"}"#),
        item("completed", r#"{"id":"item_1","type":"file_change","status":"completed"}"#),
        item("completed", r#"{"id":"item_2","type":"reasoning","text":"hm"}"#),
        item("completed", r#"{"id":"item_3","type":"agent_message","text":"done"}"#),
        r#"{"type":"turn.completed","usage":{"input_tokens":1}}"#.to_owned(),
    ];
    let lines: Vec<_> = lines.iter().map(String::as_str).collect();
    assert_eq!(
        events(&lines)[2..],
        [
            r#"Other { kind: "turn.started" }"#,
            r#"ToolStarted { id: "item_0", name: "command_execution" }"#,
            r#"Other { kind: "command_execution" }"#,
            r#"ToolFinished { id: "item_0", is_error: true }"#,
            r#"ToolStarted { id: "item_1", name: "file_change" }"#,
            r#"ToolFinished { id: "item_1", is_error: false }"#,
            r#"Other { kind: "reasoning" }"#,
            r#"Text("done")"#,
            "Finished turn.completed",
        ]
    );
}

#[test]
fn the_last_message_is_the_answer() {
    let one = item("completed", r#"{"type":"agent_message","text":"one"}"#);
    let two = item("completed", r#"{"type":"agent_message","text":"two"}"#);
    let lines = [started(S1), one, two, r#"{"type":"turn.completed"}"#.to_owned()].join("\n");
    let end = decode_for_tests(lines.as_bytes()).end.unwrap();
    assert_eq!((end.text.as_str(), end.is_error), ("two", false));
    let failed = lines.replace(r#"{"type":"turn.completed"}"#, r#"{"type":"turn.failed"}"#);
    let end = decode_for_tests(failed.as_bytes()).end.unwrap();
    assert_eq!((end.text.as_str(), end.is_error, end.errors.len()), ("", true, 1));
}

#[test]
fn tokens_of_a_cache_are_counted_once() {
    let line = r#"{"type":"turn.completed","usage":{"input_tokens":203,"cached_input_tokens":6,"cache_write_input_tokens":7,"output_tokens":40,"reasoning_output_tokens":9}}"#;
    let usage = decode_for_tests(line.as_bytes()).end.unwrap().usage;
    let found = (usage.input_tokens, usage.cache_read_tokens, usage.cache_write_tokens, usage.output_tokens);
    assert_eq!(found, (190, 6, 7, 40));
    let odd = r#"{"type":"turn.completed","usage":{"input_tokens":1,"cached_input_tokens":6}}"#;
    assert_eq!(decode_for_tests(odd.as_bytes()).end.unwrap().usage.input_tokens, 0);
}

#[test]
fn a_try_that_failed_is_not_the_end() {
    let error = |text: &str| format!(r#"{{"type":"error","message":"{text}"}}"#);
    assert_eq!(
        events(&[
            &error("Reconnecting... 2/5 (unexpected status 503 Service Unavailable: x)"),
            &error("Reconnecting... 3/5"),
            &error("Reconnecting... waiting for network (Connection failed: error sending request)"),
            &error("exceeded retry limit, last status: 429 Too Many Requests"),
        ]),
        [
            "ModelCalled",
            "Retrying { attempt: 2, status: Some(503) }",
            "Retrying { attempt: 3, status: None }",
            "Retrying { attempt: 3, status: None }",
            r#"Trouble { code: "error", status: Some(429), text: "exceeded retry limit, last status: 429 Too Many Requests" }"#,
        ]
    );
}

#[test]
fn a_warning_says_nothing_unless_nothing_was_kept() {
    let warning = item("completed", r#"{"type":"error","message":"Model metadata for `x` not found."}"#);
    assert_eq!(events(&[&warning]), [r#"Other { kind: "warning" }"#]);
    let unsaved = item(
        "completed",
        r#"{"type":"error","message":"Failed to save the conversation transcript; Codex will continue retrying."}"#,
    );
    let trouble = decode_for_tests(unsaved.as_bytes()).trouble.unwrap();
    assert_eq!(trouble.0, UNSAVED);
}

/// What a version of tomorrow does may have changed something: a prompt is then not run again.
#[test]
fn an_unknown_item_counts_as_a_tool() {
    let line = item("started", r#"{"id":"i","type":"brain_surgery"}"#);
    assert!(decode_for_tests(line.as_bytes()).acted);
    for kind in NO_TOOLS {
        let line = item("completed", &format!(r#"{{"id":"i","type":"{kind}"}}"#));
        assert!(!decode_for_tests(line.as_bytes()).acted, "{kind}");
    }
}

/// The first lines can be lost: whatever belongs to a turn shows that the model was called.
#[test]
fn whatever_belongs_to_a_turn_shows_that_the_model_was_called() {
    for line in [
        r#"{"type":"turn.started"}"#.to_owned(),
        r#"{"type":"turn.completed"}"#.to_owned(),
        r#"{"type":"turn.failed"}"#.to_owned(),
        r#"{"type":"error","message":"x"}"#.to_owned(),
        item("started", r#"{"type":"todo_list"}"#),
        item("completed", r#"{"type":"reasoning"}"#),
        item("completed", r#"{"type":"agent_message","text":"x"}"#),
        item("started", r#"{"type":"web_search"}"#),
    ] {
        assert_eq!(events(&[&line])[0], "ModelCalled", "{line}");
    }
}

#[test]
fn what_is_no_event_is_noise_and_what_is_unknown_is_other() {
    assert_eq!(
        events(&[
            "",
            "  ",
            "hello",
            "[1]",
            "{}",
            "{",
            r#"{"type":"new_thing"}"#,
            r#"{"type":"item.started"}"#
        ]),
        [
            r#"Noise { line: "hello" }"#,
            r#"Noise { line: "[1]" }"#,
            r#"Noise { line: "{}" }"#,
            r#"Noise { line: "{" }"#,
            r#"Other { kind: "new_thing" }"#,
            r#"Other { kind: "item.started" }"#,
        ]
    );
}

#[test]
fn a_field_of_another_type_costs_that_field_alone() {
    let line = r#"{"type":"item.completed","thread_id":7,"item":{"id":1,"type":"agent_message","text":"a"}}"#;
    assert_eq!(events(&[line]), ["ModelCalled", r#"Text("a")"#]);
    let line = r#"{"type":"turn.failed","error":"plain words"}"#;
    assert_eq!(decode_for_tests(line.as_bytes()).end.unwrap().errors, ["plain words"]);
    let line = r#"{"type":"turn.completed","usage":{"input_tokens":-1,"output_tokens":2}}"#;
    assert_eq!(decode_for_tests(line.as_bytes()).end.unwrap().usage.output_tokens, 2);
    let twice = r#"{"type":"x","type":"turn.started"}"#;
    assert_eq!(events(&[twice])[0], "ModelCalled");
}

#[test]
fn bytes_that_are_no_text_are_replaced_and_the_rest_is_kept() {
    let line = item("completed", r#"{"type":"agent_message","text":"a \ud83d b"}"#);
    assert!(events(&[&line])[1].contains('\u{fffd}'));
    let mut line = item("completed", r#"{"type":"agent_message","text":"a ? b"}"#).into_bytes();
    let at = line.iter().position(|byte| *byte == b'?').unwrap();
    line[at] = 0xff;
    assert_eq!(decode_for_tests(&line).partial_text, "a \u{fffd} b");
}

#[test]
fn text_without_escapes_is_borrowed() {
    let line = br#"{"type":"item.completed","item":{"type":"agent_message","text":"plain"}}"#;
    let parsed = parse(line).unwrap();
    let text = parsed.item.as_ref().unwrap().text.as_ref().unwrap();
    assert!(matches!(text.0, Cow::Borrowed("plain")));
}

fn any_line() -> impl Strategy<Value = Vec<u8>> {
    let real = prop::sample::select(vec![
        started(S1),
        started(S2),
        r#"{"type":"turn.started"}"#.to_owned(),
        r#"{"type":"error","message":"Reconnecting... 1/5"}"#.to_owned(),
        r#"{"type":"turn.failed","error":{"message":"unexpected status 401"}}"#.to_owned(),
        item("completed", r#"{"id":"item_3","type":"agent_message","text":"done"}"#),
        item("started", r#"{"id":"t","type":"command_execution"}"#),
    ])
    .prop_map(String::into_bytes);
    let bent = (real.clone(), any::<prop::sample::Index>(), any::<u8>()).prop_map(|(mut line, at, byte)| {
        let at = at.index(line.len());
        line[at] = byte;
        line
    });
    prop_oneof![real, bent, prop::collection::vec(any::<u8>(), 0..80)]
}

proptest! {
    #[test]
    fn any_bytes_are_read(lines in prop::collection::vec(any_line(), 0..12)) {
        let lines: Vec<_> = lines.into_iter().filter(|line| !line.contains(&b'\n')).collect();
        let observation = decode_for_tests(&lines.join(&b'\n'));
        let tool = lines.iter().any(|line| *line == item("started", r#"{"id":"t","type":"command_execution"}"#).as_bytes());
        prop_assert!(!tool || observation.acted);
        let named = lines.iter().any(|line| *line == started(S1).as_bytes() || *line == started(S2).as_bytes());
        prop_assert!(!named || observation.session.is_some());
    }

    #[test]
    fn lines_without_meaning_change_nothing(lines in prop::collection::vec(any_line(), 0..12), at in any::<prop::sample::Index>()) {
        let lines: Vec<_> = lines.into_iter().filter(|line| !line.contains(&b'\n')).collect();
        let plain = decode_for_tests(&lines.join(&b'\n'));
        let mut more = lines;
        more.insert(at.index(more.len() + 1), br#"{"type":"keep_alive"}"#.to_vec());
        more.insert(0, Vec::new());
        let mut padded = decode_for_tests(&more.join(&b'\n'));
        padded.events -= 1;
        prop_assert_eq!(plain, padded);
    }
}
