//! What can be had of a line that does not fit as a whole: bytes that are not UTF-8, half a surrogate pair, a field
//! of another type.

use std::borrow::Cow;

use serde_json::Value;

use super::{Block, Content, Delta, Line, Message, More, RateLimit, StreamEvent, Text, Tokens};

/// Reads what fits. `None`: it is no JSON.
pub(super) fn line(line: &[u8]) -> Option<Line<'static>> {
    let text = pair_surrogates(&String::from_utf8_lossy(line));
    Some(fitting(&serde_json::from_str(&text).ok()?))
}

/// Replaces escaped halves of surrogate pairs, which JavaScript writes when it cuts a text, by the replacement
/// character.
fn pair_surrogates(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('\\') {
        let (before, escape) = rest.split_at(at);
        out.push_str(before);
        let length = match (unit(escape), escape.get(6..).and_then(unit)) {
            (Some(0xD800..=0xDBFF), Some(0xDC00..=0xDFFF)) => 12,
            (Some(0xD800..=0xDFFF), _) => {
                out.push_str("\\ufffd");
                rest = &escape[6..];
                continue;
            }
            // An escape is a backslash and one more character.
            _ => escape.char_indices().nth(2).map_or(escape.len(), |(end, _)| end),
        };
        out.push_str(&escape[..length]);
        rest = &escape[length..];
    }
    out.push_str(rest);
    out
}

/// The UTF-16 unit of a `\uXXXX` at the start.
fn unit(escape: &str) -> Option<u16> {
    u16::from_str_radix(escape.strip_prefix("\\u")?.get(..4)?, 16).ok()
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

#[cfg(test)]
mod tests {
    use super::pair_surrogates;

    #[test]
    fn only_halves_are_replaced() {
        for (text, expected) in [
            (r"plain é 😀", r"plain é 😀"),
            (r"\ud83d\ude00", r"\ud83d\ude00"),
            (r"a\ud83d b", r"a\ufffd b"),
            (r"\ude00\ud83d", r"\ufffd\ufffd"),
            (r"\ud83d\ud83d\ude00", r"\ufffd\ud83d\ude00"),
            (r"\\ud83d", r"\\ud83d"),
            (r"\n\u00e9\", r"\n\u00e9\"),
            (r"\é", r"\é"),
            (r"\ud8", r"\ud8"),
        ] {
            assert_eq!(pair_surrogates(text), expected, "{text}");
        }
    }
}
