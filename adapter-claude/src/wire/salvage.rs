//! What can be had of a line that does not fit as a whole: bytes that are not UTF-8, half a surrogate pair, a field
//! of another type.

use std::borrow::Cow;

use serde_json::Value;
use session_core::without_lone_surrogates;

use super::{Block, Content, Delta, Line, Message, More, RateLimit, StreamEvent, Text, Tokens};

/// Reads what fits. `None`: it is no JSON.
pub(super) fn line(line: &[u8]) -> Option<Line<'static>> {
    let text = without_lone_surrogates(&String::from_utf8_lossy(line));
    Some(fitting(&serde_json::from_str(&text).ok()?))
}

/// What fits of the tree.
fn fitting(value: &Value) -> Line<'static> {
    let text = |value: &Value, key: &str| value[key].as_str().map(|text| Text(Cow::Owned(text.to_owned())));
    let status = |key: &str| value[key].as_u64().and_then(|status| u16::try_from(status).ok());
    let message = value["message"].is_object().then(|| {
        let message = &value["message"];
        let content = match &message["content"] {
            Value::Array(blocks) => Content(
                blocks
                    .iter()
                    .map(|block| Block {
                        kind: text(block, "type"),
                        text: text(block, "text"),
                        id: text(block, "id"),
                        name: text(block, "name"),
                        tool_use_id: text(block, "tool_use_id"),
                        is_error: block["is_error"].as_bool(),
                    })
                    .collect(),
            ),
            _ => text(message, "content").map(Content::text).unwrap_or_default(),
        };
        Message { model: text(message, "model"), content }
    });
    let delta = &value["event"]["delta"];
    let errors = value["errors"].as_array().map(|errors| {
        errors
            .iter()
            .map(|error| Text(Cow::Owned(error.as_str().map_or_else(|| error.to_string(), str::to_owned))))
            .collect()
    });
    let tokens = |key: &str| value["usage"][key].as_u64();
    Line {
        kind: text(value, "type"),
        parent_tool_use_id: text(value, "parent_tool_use_id"),
        uuid: text(value, "uuid"),
        is_replay: value["isReplay"].as_bool(),
        error: text(value, "error").or_else(|| text(&value["error"], "type")),
        api_error_status: status("api_error_status"),
        message,
        event: Some(StreamEvent {
            delta: Some(Delta { kind: text(delta, "type"), text: text(delta, "text") }),
        }),
        more: Some(Box::new(More {
            subtype: text(value, "subtype"),
            session_id: text(value, "session_id"),
            compact_metadata: None,
            rate_limit_info: Some(RateLimit { status: text(&value["rate_limit_info"], "status") }),
            attempt: value["attempt"].as_u64(),
            error_status: status("error_status"),
            is_error: value["is_error"].as_bool(),
            num_turns: value["num_turns"].as_u64(),
            duration_api_ms: value["duration_api_ms"].as_f64(),
            total_cost_usd: value["total_cost_usd"].as_f64(),
            terminal_reason: text(value, "terminal_reason"),
            result: text(value, "result"),
            errors,
            usage: Some(Tokens {
                input_tokens: tokens("input_tokens"),
                output_tokens: tokens("output_tokens"),
                cache_read_input_tokens: tokens("cache_read_input_tokens"),
                cache_creation_input_tokens: tokens("cache_creation_input_tokens"),
            }),
        })),
    }
}
