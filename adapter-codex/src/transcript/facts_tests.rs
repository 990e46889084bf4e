use proptest::prelude::*;
use serde_json::{Value, json};
use session_core::Usage;

use super::*;
use crate::transcript::glance::glance;

const ONE: &str = "01a227c8-c852-73b0-9992-9153893082ac";
const TWO: &str = "01a227c8-bd64-7d52-b5a1-a368308c0dfa";
const THREE: &str = "01a227c8-dcee-79b1-bb0a-1c1e33ef2a55";

fn line(kind: &str, payload: &Value) -> Vec<u8> {
    let record = json!({"timestamp": "2026-03-01T10:00:00Z", "type": kind, "payload": payload});
    record.to_string().into_bytes()
}

fn role(kind: &str, payload: &Value) -> LineRole<'static> {
    facts(Vec::leak(line(kind, payload))).unwrap().role
}

fn event(payload: &Value) -> LineRole<'static> {
    role("event_msg", payload)
}

fn header(payload: &Value) -> (Option<String>, Option<Ancestor>, SessionKind) {
    match role("session_meta", payload) {
        LineRole::Header { id, parent, kind } => (id.map(Cow::into_owned), parent, kind),
        other => panic!("{other:?}"),
    }
}

fn ancestor(id: &str, descent: Descent) -> Option<Ancestor> {
    Some(Ancestor { id: NativeId::new(id), descent })
}

#[test]
fn a_header_tells_who_began_the_session() {
    let spawn = json!({"subagent": {"thread_spawn": {"parent_thread_id": TWO, "depth": 1}}});
    let rows = [
        (json!({"source": "exec"}), None, SessionKind::Headless),
        (json!({"source": "mcp"}), None, SessionKind::Headless),
        (json!({"source": "cli"}), None, SessionKind::Main),
        (json!({"source": "vscode", "thread_source": "user"}), None, SessionKind::Main),
        (json!({}), None, SessionKind::Main),
        (json!({"source": null}), None, SessionKind::Main),
        (json!({"source": {"custom": "x"}}), None, SessionKind::Main),
        (json!({"source": spawn}), ancestor(TWO, Descent::Spawned), SessionKind::Sidechain),
        (json!({"source": {"subagent": "review"}}), None, SessionKind::Sidechain),
        (
            json!({"source": {"subagent": "review"}, "parent_thread_id": TWO}),
            ancestor(TWO, Descent::Spawned),
            SessionKind::Sidechain,
        ),
        (
            json!({"source": "exec", "thread_source": "subagent", "forked_from_id": TWO}),
            ancestor(TWO, Descent::Spawned),
            SessionKind::Sidechain,
        ),
        (json!({"source": "cli", "forked_from_id": TWO}), ancestor(TWO, Descent::Forked), SessionKind::Main),
        (
            json!({"history_base": {"thread_id": THREE, "end_ordinal_exclusive": 3}}),
            ancestor(THREE, Descent::Forked),
            SessionKind::Main,
        ),
        // After a revert, it goes on from itself.
        (json!({"history_base": {"thread_id": ONE}}), None, SessionKind::Main),
        (json!({"forked_from_id": "../x"}), None, SessionKind::Main),
    ];
    for (mut payload, parent, kind) in rows {
        payload["id"] = json!(ONE);
        assert_eq!(header(&payload), (Some(ONE.to_owned()), parent, kind), "{payload}");
    }
}

#[test]
fn a_field_of_another_type_costs_that_field_alone() {
    for odd in ["cwd", "git", "forked_from_id", "history_mode", "message", "item", "info", "model"] {
        for value in [json!(7), json!(["x"]), json!({"a": [1]}), json!(true), json!("text")] {
            let mut payload = json!({"id": ONE, "source": "exec"});
            payload[odd] = value.clone();
            let (id, _, kind) = header(&payload);
            assert_eq!((id.as_deref(), kind), (Some(ONE), SessionKind::Headless), "{odd}: {value}");
        }
    }
    let payload = json!({"id": ONE, "source": [1, "exec"], "cwd": "/w"});
    let line = line("session_meta", &payload);
    assert_eq!(facts(&line).unwrap().cwd.as_deref(), Some("/w"));
}

#[test]
fn folders_are_those_of_headers_and_turns_and_the_branch_is_that_of_the_beginning() {
    let meta =
        line("session_meta", &json!({"id": ONE, "cwd": "/a", "git": {"branch": "b", "commit_hash": "c"}}));
    let found = facts(&meta).unwrap();
    assert_eq!((found.cwd.as_deref(), found.branch.as_deref()), (Some("/a"), Some("b")));
    let turn = line("turn_context", &json!({"cwd": "/b", "model": "m"}));
    let found = facts(&turn).unwrap();
    assert_eq!((found.cwd.as_deref(), found.branch), (Some("/b"), None));
    assert_eq!(found.role, LineRole::Model("m".into()));
    let other = line("response_item", &json!({"type": "function_call", "cwd": "/c", "model": "x"}));
    assert_eq!(facts(&other).unwrap().cwd, None);
}

#[test]
fn a_prompt_is_what_somebody_typed() {
    let typed = |text: &str| event(&json!({"type": "user_message", "message": text}));
    for text in ["hi", "  a <environment_context>", "", "# AGENTS.md is missing"] {
        assert!(matches!(typed(text), LineRole::Prompt { text: found, .. } if found == text), "{text:?}");
    }
    for text in [
        "<environment_context>\n<cwd>/w</cwd>",
        "# AGENTS.md instructions for /w",
        "<turn_aborted>x",
        "\n<user_instructions>",
    ] {
        assert_eq!(typed(text), LineRole::Returned, "{text:?}");
        let line = line("event_msg", &json!({"type": "user_message", "message": text}));
        assert!(facts(&line).unwrap().meta, "{text:?}");
    }
    let blocks = json!([{"type": "text", "text": "a"}, {"type": "image"}, {"type": "text", "text": "b"}]);
    let item = json!({"type": "item_completed", "item": {"type": "UserMessage", "content": blocks}});
    assert!(matches!(event(&item), LineRole::Prompt { text, .. } if text == "a\nb"));
    // What goes to the model is no prompt.
    let sent = json!({"type": "message", "role": "user", "content": [{"type": "input_text", "text": "x"}]});
    assert_eq!(role("response_item", &sent), LineRole::Other);
}

#[test]
fn replies_totals_and_what_was_taken_back_are_told() {
    let reply = LineRole::Reply { reply: None, usage: None, model: None };
    assert_eq!(event(&json!({"type": "agent_message", "message": "x"})), reply);
    let item = json!({"type": "item_completed", "item": {"type": "AgentMessage", "content": []}});
    assert_eq!(event(&item), reply);
    let total = json!({"input_tokens": 100, "cached_input_tokens": 30, "cache_write_input_tokens": 10, "output_tokens": 7});
    let usage = Usage { input_tokens: 60, output_tokens: 7, cache_read_tokens: 30, cache_write_tokens: 10 };
    let count = json!({"type": "token_count", "info": {"total_token_usage": total, "last_token_usage": {}}});
    assert_eq!(event(&count), LineRole::RunningTotal(usage));
    assert_eq!(event(&json!({"type": "token_count", "info": null})), LineRole::CountsAnew);
    let record = json!({"thread_token_usage": total, "usage": {}});
    assert_eq!(role("token_usage_record", &record), LineRole::RunningTotal(usage));
    assert_eq!(event(&json!({"type": "thread_rolled_back", "num_turns": 2})), LineRole::RolledBack(2));
    assert_eq!(role("compacted", &json!({"message": "sum"})), LineRole::Boundary);
    for other in ["task_started", "turn_aborted", "context_compacted", "brand_new"] {
        assert_eq!(event(&json!({"type": other})), LineRole::Other, "{other}");
    }
}

#[test]
fn a_time_is_a_time_and_everything_else_is_unknown() {
    let at = |time: &str| {
        let line = format!(r#"{{"timestamp":{time},"type":"event_msg","payload":{{}}}}"#);
        facts(line.as_bytes()).unwrap().time.and_then(|time| time.read()).map(|time| time.to_string())
    };
    for (time, expected) in [
        ("\"2026-03-01T10:00:00Z\"", "2026-03-01T10:00:00Z"),
        ("\"2026-03-01T10:00:00+08:00\"", "2026-03-01T02:00:00Z"),
        ("1772359200", "2026-03-01T10:00:00Z"),
        ("1772359200000", "2026-03-01T10:00:00Z"),
        ("\"1772359200\"", "2026-03-01T10:00:00Z"),
    ] {
        assert_eq!(at(time).as_deref(), Some(expected), "{time}");
    }
    for time in ["null", "\"yesterday\"", "-1", "9e18", "true", "[1]", "{\"a\":1}", "\"\"", "1e999"] {
        let line = format!(r#"{{"timestamp":{time},"type":"event_msg","payload":{{}}}}"#);
        let read = facts(line.as_bytes()).and_then(|facts| facts.time).and_then(|time| time.read());
        assert_eq!(read, None, "{time}");
    }
    assert_eq!(facts(br#"{"type":"event_msg"}"#).unwrap().time, None);
}

#[test]
fn a_base_is_where_the_history_begins() {
    let payload = json!({"id": ONE, "history_base": {"thread_id": TWO, "end_byte_offset": 42}});
    let found = base(&line("session_meta", &payload)).unwrap();
    assert_eq!(found, HistoryBase { id: NativeId::new(TWO), end: Some(42) });
    let odd = base(&line("session_meta", &json!({"history_base": 7})));
    assert_eq!(odd, Some(HistoryBase { id: NativeId::new(""), end: None }), "it begins elsewhere");
    for none in [line("session_meta", &json!({"id": ONE})), line("event_msg", &payload), b"x".to_vec()] {
        assert_eq!(base(&none), None);
    }
}

#[test]
fn a_line_of_the_index_names_a_session() {
    let named = |text: &str| title(text.as_bytes());
    let (id, found) =
        named(&format!(r#"{{"id":"{ONE}","thread_name":" a \u2028b ","updated_at":"x"}}"#)).unwrap();
    assert_eq!((id.as_str(), found.text.as_str(), found.source), (ONE, "a \u{2028}b", TitleSource::Given));
    let again = named(&format!(r#"{{"id":"{ONE}","thread_name":""}}"#)).unwrap();
    assert_eq!(again.1.text, "", "it was taken back");
    for none in ["", "{}", r#"{"id":"x","thread_name":"a"}"#, &format!(r#"{{"id":"{ONE}","thread_name":7}}"#)]
    {
        assert_eq!(named(none), None, "{none}");
    }
}

/// A line of what goes to the model is not looked at again, so what it is glued to must not be missed.
#[test]
fn a_glance_takes_no_line_for_one_record_that_is_none_or_more() {
    let items = [
        json!({"type": "message", "role": "user", "content": [{"type": "input_text", "text": "a}}"}]}),
        json!({"type": "function_call_output", "call_id": "c", "output": {"content": "x", "meta": {"a": {}}}}),
        json!({"type": "function_call", "arguments": "{\"timestamp\":\"2026-01-01\",\"a\":{}}"}),
    ];
    let event = line("event_msg", &json!({"type": "user_message", "message": "hi"}));
    for payload in items {
        let payload = payload.to_string();
        for number in ["", "\"ordinal\":7,"] {
            let text = format!(
                r#"{{"timestamp":"2026-03-01T10:00:00Z",{number}"type":"response_item","payload":{payload}}}"#
            );
            let whole = text.as_bytes();
            let glanced = glance(whole).expect("it is whole");
            assert_eq!((glanced.time, glanced.role), (facts(whole).unwrap().time, LineRole::Other), "{text}");
            assert!(glance(format!("{text}\r").as_bytes()).is_some(), "{text}");
            for glued in [[whole, &event[..]].concat(), [&event[..], whole].concat(), [whole, whole].concat()]
            {
                assert_eq!(
                    (glance(&glued), facts(&glued)),
                    (None, None),
                    "{}",
                    String::from_utf8_lossy(&glued)
                );
            }
            for end in 1..whole.len() {
                let torn = &whole[..end];
                let behind = [torn, &event[..]].concat();
                assert_eq!(
                    (glance(&behind), facts(&behind)),
                    (None, None),
                    "{}",
                    String::from_utf8_lossy(&behind)
                );
                // It is no record, and is taken for one only where it ends as one does: what follows tells nothing then.
                let taken = glance(torn).is_some();
                assert!(!taken || torn.ends_with(b"}}"), "{}", String::from_utf8_lossy(torn));
                assert_eq!(facts(torn), None);
            }
            assert_eq!(glance(&[whole, &[0; 9]].concat()), None);
        }
    }
}

proptest! {
    #[test]
    fn any_bytes_are_read(line in prop::collection::vec(any::<u8>(), 0..200)) {
        let _ = (facts(&line), base(&line), title(&line));
    }

    /// Whatever stands in a payload, a line that is an object with a type is a record.
    #[test]
    fn any_payload_is_a_record(key in "type|cwd|id|source|git|item|info|message|num_turns|history_base", value in "null|7|-1|\"x\"|\\[\\]|\\[1\\]|\\{\\}|\\{\"a\":\\[\\{\\}\\]\\}|true|1e9") {
        let line = format!(r#"{{"timestamp":"2026-03-01T10:00:00Z","type":"session_meta","payload":{{"{key}":{value}}}}}"#);
        prop_assert!(facts(line.as_bytes()).is_some(), "{line}");
    }
}
