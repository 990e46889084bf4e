//! The wire format of Anthropic's Messages.

use serde_json::{Value, json};
use uuid::Uuid;

use super::conversation::Conversation;
use super::directives::Usage;
use super::stream::Part;

/// The path of a request for an answer.
pub(super) const MESSAGES: &str = "/v1/messages";
/// The path of a request for the size of a conversation.
pub(super) const COUNT_TOKENS: &str = "/v1/messages/count_tokens";
/// The path of the list of models.
pub(super) const MODELS: &str = "/v1/models";

/// What the model says.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Content {
    Text(String),
    Tool(String, Value),
}

/// Reads the conversation of a request.
pub(super) fn conversation(body: &Value) -> Conversation {
    let mut conversation = Conversation::default();
    for message in body["messages"].as_array().into_iter().flatten() {
        if message["role"] != "user" {
            continue;
        }
        match &message["content"] {
            Value::String(text) => conversation.user_said([text.as_str()]),
            Value::Array(blocks) if blocks.iter().any(|block| block["type"] == "tool_result") => {
                conversation.after_tool_result = true;
            }
            Value::Array(blocks) => {
                let texts = blocks.iter().filter(|block| block["type"] == "text");
                conversation.user_said(texts.filter_map(|block| block["text"].as_str()));
            }
            _ => {}
        }
    }
    conversation
}

/// One answer in both of its forms.
#[derive(Debug)]
pub(super) struct Message {
    id: String,
    model: String,
    content: Content,
    usage: Usage,
}

impl Message {
    pub(super) fn new(model: &str, content: Content, usage: Usage) -> Self {
        Self { id: format!("msg_{}", Uuid::new_v4().simple()), model: model.to_owned(), content, usage }
    }

    fn stop_reason(&self) -> &'static str {
        match self.content {
            Content::Text(_) => "end_turn",
            Content::Tool(..) => "tool_use",
        }
    }

    fn usage(&self) -> Value {
        json!({
            "input_tokens": self.usage.input,
            "output_tokens": self.usage.output,
            "cache_creation_input_tokens": self.usage.cache_write,
            "cache_read_input_tokens": self.usage.cache_read,
        })
    }

    fn block(&self) -> Value {
        match &self.content {
            Content::Text(text) => json!({"type": "text", "text": text}),
            Content::Tool(name, input) => json!({
                "type": "tool_use",
                "id": format!("toolu_{}", self.id),
                "name": name,
                "input": input,
            }),
        }
    }

    /// The answer as one object.
    pub(super) fn whole(&self) -> Value {
        json!({
            "id": self.id,
            "type": "message",
            "role": "assistant",
            "model": self.model,
            "content": [self.block()],
            "stop_reason": self.stop_reason(),
            "stop_sequence": null,
            "usage": self.usage(),
        })
    }

    /// The answer as server-sent events, or what there is of it when the connection breaks.
    pub(super) fn streamed(&self, breaks_off: bool) -> Vec<Part> {
        let mut started = self.whole();
        started["content"] = json!([]);
        started["stop_reason"] = Value::Null;
        let start = event(&json!({"type": "message_start", "message": started}));
        if breaks_off {
            return vec![start, Part::Flush, Part::Break];
        }
        let mut empty = self.block();
        let delta = match &self.content {
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
            start,
            event(&json!({"type": "content_block_start", "index": 0, "content_block": empty})),
            event(&json!({"type": "content_block_delta", "index": 0, "delta": delta})),
            event(&json!({"type": "content_block_stop", "index": 0})),
            event(&json!({
                "type": "message_delta",
                "delta": {"stop_reason": self.stop_reason(), "stop_sequence": null},
                "usage": self.usage(),
            })),
            event(&json!({"type": "message_stop"})),
        ]
    }
}

fn event(data: &Value) -> Part {
    let name = data["type"].as_str().unwrap_or_default();
    Part::Bytes(format!("event: {name}\ndata: {data}\n\n").into())
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

/// The size of any conversation.
pub(super) fn token_count() -> Value {
    json!({"input_tokens": 10})
}

/// The list of models.
pub(super) fn models() -> Value {
    let ids = ["claude-opus-5-5", "claude-sonnet-4-5", "fake-model"];
    let data: Vec<_> = ids
        .iter()
        .map(
            |id| json!({"type": "model", "id": id, "display_name": id, "created_at": "2025-01-01T00:00:00Z"}),
        )
        .collect();
    json!({"data": data, "has_more": false, "first_id": ids[0], "last_id": ids[ids.len() - 1]})
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
