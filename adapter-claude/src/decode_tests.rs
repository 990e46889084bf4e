use proptest::prelude::*;
use session_core::Asked;

use super::*;

const S1: &str = "11111111-1111-4111-8111-111111111111";
const S2: &str = "22222222-1111-4111-8111-111111111111";

fn events(mode: Mode<'_>, lines: &[&str]) -> Vec<String> {
    let mut decoder = ClaudeDecoder::new(mode);
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

const FRESH: Mode<'static> = Mode::Fresh { id: None };

fn init(id: &str) -> String {
    format!(r#"{{"type":"system","subtype":"init","session_id":"{id}"}}"#)
}

#[test]
fn a_session_is_named_by_init_lines_only() {
    let hook = format!(r#"{{"type":"system","subtype":"hook_started","session_id":"{S2}"}}"#);
    let prose = format!(
        r#"{{"type":"assistant","session_id":"{S2}","message":{{"content":[{{"type":"text","text":"session_id {S2}"}}]}}}}"#
    );
    let failed = format!(
        r#"{{"type":"result","subtype":"error_during_execution","is_error":true,"num_turns":0,"session_id":"{S2}"}}"#
    );
    let seen = events(FRESH, &[&hook, &init(S1), &prose, &failed]);
    let named: Vec<_> = seen.iter().filter(|event| event.starts_with("Session")).collect();
    assert_eq!(named, [&format!("Session {{ id: {S1:?} }}")]);
}

#[test]
fn a_later_init_counts() {
    let observation = {
        let lines =
            [init(S1), r#"{"type":"conversation_reset","new_conversation_id":"x"}"#.to_owned(), init(S2)];
        decode_for_tests(&Asked::Fresh(None), lines.join("\n").as_bytes())
    };
    assert_eq!(observation.session, Some(NativeId::new(S2)));
}

#[test]
fn another_id_than_the_expected_one_waits_for_the_turn_to_go_on() {
    let id = NativeId::new(S1);
    let mode = Mode::Resume { id: &id };
    assert_eq!(events(mode, &[&init(S1)]), [format!("Session {{ id: {S1:?} }}"), "ModelCalled".to_owned()]);
    assert_eq!(events(mode, &[&init(S2)]), ["ModelCalled"]);
    let answer = r#"{"type":"assistant","message":{"content":[{"type":"text","text":"a"}]}}"#;
    assert_eq!(
        events(mode, &[&init(S2), answer]),
        ["ModelCalled".to_owned(), format!("Session {{ id: {S2:?} }}"), "Text(\"a\")".to_owned()]
    );
}

#[test]
fn an_init_after_a_failed_resume_names_nothing() {
    let id = NativeId::new(S1);
    let failed = r#"{"type":"result","subtype":"error_during_execution","is_error":true,"num_turns":0}"#;
    assert_eq!(
        events(Mode::Resume { id: &id }, &[failed, &init(S2)]),
        ["Finished error_during_execution", "ModelCalled"]
    );
}

#[test]
fn tools_count_wherever_they_run_and_text_only_in_the_main_conversation() {
    let sub = r#"{"type":"assistant","parent_tool_use_id":"t1","message":{"content":[{"type":"text","text":"sub"},{"type":"tool_use","id":"t2","name":"Bash","input":{}}]}}"#;
    let delta = r#"{"type":"stream_event","parent_tool_use_id":null,"event":{"type":"content_block_delta","delta":{"type":"text_delta","text":"pi"}}}"#;
    let sub_delta = delta.replace("null", "\"t1\"");
    assert_eq!(
        events(FRESH, &[sub, delta, &sub_delta]),
        [
            "ModelCalled",
            r#"Other { kind: "subagent_text" }"#,
            r#"ToolStarted { id: "t2", name: "Bash" }"#,
            r#"TextDelta("pi")"#,
            r#"Other { kind: "stream_event" }"#
        ]
    );
}

#[test]
fn what_a_compaction_or_a_replay_prints_again_is_no_answer() {
    let boundary = r#"{"type":"system","subtype":"compact_boundary","compact_metadata":{"preserved_messages":{"all_uuids":["u1"]}}}"#;
    let kept = r#"{"type":"assistant","uuid":"u1","message":{"content":[{"type":"text","text":"old"}]}}"#;
    let replay = r#"{"type":"assistant","isReplay":true,"message":{"content":[{"type":"tool_use","id":"t","name":"Bash"}]}}"#;
    let result =
        r#"{"type":"user","isReplay":true,"message":{"content":[{"type":"tool_result","tool_use_id":"t"}]}}"#;
    let new = r#"{"type":"assistant","uuid":"u2","message":{"content":[{"type":"text","text":"new"}]}}"#;
    let seen = events(FRESH, &[boundary, kept, replay, result, new]);
    assert_eq!(seen.last().unwrap(), "Text(\"new\")");
    assert!(seen.iter().all(|event| !event.contains("old") && !event.contains("Tool")), "{seen:?}");
}

#[test]
fn a_made_up_answer_is_trouble() {
    let line = r#"{"type":"assistant","error":"rate_limit","api_error_status":429,"message":{"model":"<synthetic>","content":[{"type":"text","text":"no"}]}}"#;
    assert_eq!(
        events(FRESH, &[line])[1..],
        [r#"Trouble { code: "rate_limit", status: Some(429), text: "no" }"#]
    );
}

#[test]
fn a_field_of_another_type_does_not_lose_the_line() {
    let line = r#"{"type":"result","subtype":"success","is_error":false,"result":"ok","num_turns":"one","usage":[],"errors":{}}"#;
    assert_eq!(events(FRESH, &[line]), ["ModelCalled", "Finished success"]);
    let text = r#"{"type":"assistant","uuid":5,"message":{"content":[{"type":"text","text":"a"}]}}"#;
    assert_eq!(events(FRESH, &[text]), ["ModelCalled", "Text(\"a\")"]);
    let twice = r#"{"type":"assistant","type":"assistant","message":{"content":"bare"}}"#;
    assert_eq!(events(FRESH, &[twice]), ["ModelCalled", "Text(\"bare\")"]);
}

#[test]
fn a_lone_surrogate_is_replaced_and_the_rest_is_kept() {
    let line = r#"{"type":"assistant","message":{"content":[{"type":"text","text":"a \ud83d b"}]}}"#;
    let seen = events(FRESH, &[line]);
    assert!(seen[1].starts_with("Text(\"a \u{fffd}") && seen[1].ends_with(" b\")"), "{seen:?}");
}

#[test]
fn text_without_escapes_is_borrowed() {
    let line = br#"{"type":"assistant","message":{"content":[{"type":"text","text":"plain"}]}}"#;
    let parsed = parse(line).unwrap();
    let block = &parsed.message.as_ref().unwrap().content.0[0];
    assert!(matches!(block.text.as_ref().unwrap().0, Cow::Borrowed("plain")));
}

#[test]
fn what_is_no_event_is_noise_and_what_is_unknown_is_other() {
    assert_eq!(
        events(FRESH, &["", "  ", "hello", "[1]", "{}", "{", r#"{"type":"new_thing"}"#]),
        [
            r#"Noise { line: "hello" }"#,
            r#"Noise { line: "[1]" }"#,
            r#"Noise { line: "{}" }"#,
            r#"Noise { line: "{" }"#,
            r#"Other { kind: "new_thing" }"#
        ]
    );
}

fn any_line() -> impl Strategy<Value = Vec<u8>> {
    let real = prop::sample::select(vec![
        init(S1),
        init(S2),
        r#"{"type":"assistant","message":{"content":[{"type":"text","text":"a"}]}}"#.to_owned(),
        r#"{"type":"user","message":{"content":[{"type":"tool_result","tool_use_id":"t"}]}}"#.to_owned(),
        r#"{"type":"result","subtype":"error_during_execution","is_error":true,"num_turns":0}"#.to_owned(),
        r#"{"type":"system","subtype":"api_retry","attempt":1,"error_status":529}"#.to_owned(),
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
        let id = NativeId::new(S1);
        let mut decoder = ClaudeDecoder::new(Mode::Resume { id: &id });
        let mut observation = session_core::Observation::default();
        for line in &lines {
            decoder.line(line, &mut |event| observation.observe(event));
        }
        // Once a tool was heard of, nothing takes that back.
        let tool = lines.iter().any(|line| line.starts_with(br#"{"type":"user","message":{"content":[{"type":"tool_result","tool_use_id":"t"}]}}"#));
        prop_assert!(!tool || observation.acted);
    }

    #[test]
    fn lines_without_meaning_change_nothing(lines in prop::collection::vec(any_line(), 0..12), at in any::<prop::sample::Index>()) {
        let id = NativeId::new(S1);
        let asked = Asked::Resume(id);
        let lines: Vec<_> = lines.into_iter().filter(|line| !line.contains(&b'\n')).collect();
        let plain = decode_for_tests(&asked, &lines.join(&b'\n'));
        let mut more = lines;
        more.insert(at.index(more.len() + 1), br#"{"type":"keep_alive"}"#.to_vec());
        more.insert(0, Vec::new());
        let mut padded = decode_for_tests(&asked, &more.join(&b'\n'));
        padded.events -= 1;
        prop_assert_eq!(plain, padded);
    }
}

/// Nothing but the init line says so, and that line can be lost: whatever belongs to a turn shows that the model was
/// called, so that the prompt is not run again.
#[test]
fn whatever_belongs_to_a_turn_shows_that_the_model_was_called() {
    let lines = [
        r#"{"type":"assistant","message":{"content":[{"type":"thinking","thinking":"hm"}]}}"#,
        r#"{"type":"assistant","parent_tool_use_id":"t","message":{"content":[{"type":"text","text":"sub"}]}}"#,
        r#"{"type":"stream_event","event":{"type":"message_start"}}"#,
        r#"{"type":"stream_event","event":{"delta":{"type":"thinking_delta","thinking":"hm"}}}"#,
        r#"{"type":"system","subtype":"status","status":"requesting"}"#,
        r#"{"type":"system","subtype":"compact_boundary"}"#,
        r#"{"type":"user","message":{"content":"[Request interrupted by user]"}}"#,
    ];
    let id = NativeId::new(S1);
    for line in lines {
        assert_eq!(events(Mode::Resume { id: &id }, &[line])[0], "ModelCalled", "{line}");
    }
    for kind in ["mcp_tool_use", "server_tool_use", "web_search_tool_result"] {
        let line =
            format!(r#"{{"type":"assistant","message":{{"content":[{{"type":"{kind}","id":"t"}}]}}}}"#);
        assert!(events(FRESH, &[&line])[1].starts_with("Tool"), "{kind}");
    }
}

#[test]
fn a_success_names_its_session_where_the_init_line_was_lost() {
    let end = |subtype: &str, error: bool| {
        format!(
            r#"{{"type":"result","subtype":"{subtype}","is_error":{error},"session_id":"{S1}","num_turns":1}}"#
        )
    };
    assert_eq!(events(FRESH, &[&end("success", false)])[1], format!("Session {{ id: {S1:?} }}"));
    assert_eq!(events(FRESH, &[&init(S1), &end("success", false)]).len(), 3, "once is enough");
    for end in [end("success", true), end("error_during_execution", true)] {
        assert!(events(FRESH, &[&end]).iter().all(|event| !event.starts_with("Session")), "{end}");
    }
}
