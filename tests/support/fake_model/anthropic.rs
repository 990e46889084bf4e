//! The wire format of Anthropic's Messages.

use serde_json::{Value, json};
use uuid::Uuid;

use super::answer::{Answer, Content, event};
use super::conversation::{Conversation, texts};
use super::directives::Usage;
use super::stream::Part;

/// Reads the conversation of a request.
pub(super) fn conversation(body: &Value) -> Conversation {
    let mut conversation = Conversation::default();
    for message in body["messages"].as_array().into_iter().flatten() {
        if message["role"] != "user" {
            continue;
        }
        match &message["content"] {
            Value::Array(blocks) if blocks.iter().any(|block| block["type"] == "tool_result") => {
                conversation.after_tool_result = true;
            }
            content => conversation.user_said(texts(content)),
        }
    }
    conversation
}

/// The tokens as this format reports them.
fn usage(answer: &Answer) -> Value {
    let usage = answer.usage.unwrap_or(Usage { input: 100, output: 20, cache_write: 7, cache_read: 3 });
    json!({
        "input_tokens": usage.input,
        "output_tokens": usage.output,
        "cache_creation_input_tokens": usage.cache_write,
        "cache_read_input_tokens": usage.cache_read,
    })
}

fn stop_reason(answer: &Answer) -> &'static str {
    match answer.content {
        Content::Text(_) => "end_turn",
        Content::Tool(..) => "tool_use",
    }
}

fn block(answer: &Answer) -> Value {
    match &answer.content {
        Content::Text(text) => json!({"type": "text", "text": text}),
        Content::Tool(name, input) => json!({
            "type": "tool_use",
            "id": format!("toolu_{}", answer.id),
            "name": name,
            "input": input,
        }),
    }
}

/// The answer as one object.
pub(super) fn whole(answer: &Answer) -> Value {
    json!({
        "id": format!("msg_{}", answer.id),
        "type": "message",
        "role": "assistant",
        "model": answer.model,
        "content": [block(answer)],
        "stop_reason": stop_reason(answer),
        "stop_sequence": null,
        "usage": usage(answer),
    })
}

/// The answer as server-sent events.
pub(super) fn streamed(answer: &Answer) -> Vec<Part> {
    let mut started = whole(answer);
    started["content"] = json!([]);
    started["stop_reason"] = Value::Null;
    let mut empty = block(answer);
    let delta = match &answer.content {
        Content::Text(text) => {
            empty["text"] = json!("");
            json!({"type": "text_delta", "text": text})
        }
        Content::Tool(_, input) => {
            empty["input"] = json!({});
            json!({"type": "input_json_delta", "partial_json": input.to_string()})
        }
    };
    vec![
        event(&json!({"type": "message_start", "message": started})),
        event(&json!({"type": "content_block_start", "index": 0, "content_block": empty})),
        event(&json!({"type": "content_block_delta", "index": 0, "delta": delta})),
        event(&json!({"type": "content_block_stop", "index": 0})),
        event(&json!({
            "type": "message_delta",
            "delta": {"stop_reason": stop_reason(answer), "stop_sequence": null},
            "usage": usage(answer),
        })),
        event(&json!({"type": "message_stop"})),
    ]
}

/// The body of an error.
pub(super) fn error(status: u16, message: &str) -> Value {
    let kind = match status {
        401 => "authentication_error",
        402 => "billing_error",
        403 => "permission_error",
        404 => "not_found_error",
        413 => "request_too_large",
        429 => "rate_limit_error",
        504 => "timeout_error",
        529 => "overloaded_error",
        500.. => "api_error",
        _ => "invalid_request_error",
    };
    json!({
        "type": "error",
        "error": {"type": kind, "message": message},
        "request_id": format!("req_{}", Uuid::new_v4().simple()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_conversation_is_what_the_user_wrote() {
        let body = json!({"messages": [
            {"role": "user", "content": [
                {"type": "text", "text": "<system-reminder>x</system-reminder>"},
                {"type": "text", "text": "one"},
            ]},
            {"role": "assistant", "content": "answer"},
            {"role": "user", "content": "two"},
            {"role": "assistant", "content": [{"type": "tool_use", "id": "t", "name": "n", "input": {}}]},
            {"role": "user", "content": [
                {"type": "tool_result", "tool_use_id": "t", "content": "done"},
                {"type": "text", "text": "not said"},
            ]},
            {"role": "system", "content": "not said"},
        ]});
        let conversation = conversation(&body);
        assert_eq!(conversation.user_texts, ["one", "two"]);
        assert!(conversation.after_tool_result);
    }

    #[test]
    fn a_body_without_messages_is_an_empty_conversation() {
        assert_eq!(conversation(&json!({})), Conversation::default());
        assert_eq!(conversation(&Value::Null), Conversation::default());
    }

    #[test]
    fn errors_have_the_type_of_their_status() {
        for (status, kind) in [
            (400, "invalid_request_error"),
            (401, "authentication_error"),
            (429, "rate_limit_error"),
            (500, "api_error"),
            (503, "api_error"),
            (529, "overloaded_error"),
        ] {
            assert_eq!(error(status, "x")["error"]["type"], kind);
        }
    }
}
