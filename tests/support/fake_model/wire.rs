//! The wire formats, told apart by the path of a request.

use serde_json::{Value, json};

use super::answer::{self, Answer};
use super::conversation::Conversation;
use super::stream::{Ending, Part};
use super::{anthropic, chat, responses};

/// The format of a request for an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Wire {
    /// Anthropic's Messages.
    Messages,
    /// OpenAI's Responses.
    Responses,
    /// OpenAI's Chat Completions.
    Chat,
}

impl Wire {
    /// The format that is spoken at this path; `None` where the model is not asked to answer.
    pub(super) fn of(path: &str) -> Option<Self> {
        // Agents put what they like before the last part.
        [("/messages", Self::Messages), ("/responses", Self::Responses), ("/chat/completions", Self::Chat)]
            .into_iter()
            .find_map(|(end, wire)| path.ends_with(end).then_some(wire))
    }

    /// Reads the conversation of a request.
    pub(super) fn conversation(self, body: &Value) -> Conversation {
        match self {
            Self::Messages => anthropic::conversation(body),
            Self::Responses => responses::conversation(body),
            Self::Chat => chat::conversation(body),
        }
    }

    /// The answer to this request as one object.
    pub(super) fn whole(self, answer: &Answer, request: &Value) -> Value {
        match self {
            Self::Messages => anthropic::whole(answer),
            Self::Responses => responses::whole(answer, request),
            Self::Chat => chat::whole(answer),
        }
    }

    /// The answer to this request as server-sent events.
    pub(super) fn streamed(self, answer: &Answer, request: &Value, ending: Ending) -> Vec<Part> {
        let parts = match self {
            Self::Messages => anthropic::streamed(answer),
            Self::Responses => responses::streamed(answer, request),
            Self::Chat => chat::streamed(answer, request),
        };
        answer::ended(parts, ending)
    }

    /// The body of an error.
    pub(super) fn error(self, status: u16, message: &str) -> Value {
        match self {
            Self::Messages => anthropic::error(status, message),
            Self::Responses | Self::Chat => openai_error(status, message),
        }
    }
}

/// The body of an error of either of OpenAI's formats.
fn openai_error(status: u16, message: &str) -> Value {
    let (kind, code) = match status {
        401 => ("invalid_request_error", "invalid_api_key"),
        403 => ("invalid_request_error", "permission_denied"),
        404 => ("invalid_request_error", "model_not_found"),
        413 => ("invalid_request_error", "request_too_large"),
        429 => ("requests", "rate_limit_exceeded"),
        500.. => ("server_error", "server_error"),
        _ => ("invalid_request_error", "invalid_value"),
    };
    json!({"error": {"message": message, "type": kind, "param": null, "code": code}})
}

/// The list of models, as the users of every format can read it.
pub(super) fn models() -> Value {
    let ids = ["claude-opus-5-5", "claude-sonnet-4-5", "fake-model"];
    let model = |id: &str| {
        json!({
            "type": "model",
            "object": "model",
            "id": id,
            "display_name": id,
            "created_at": "2025-01-01T00:00:00Z",
            "created": 1_735_689_600,
            "owned_by": "fake",
        })
    };
    json!({
        "object": "list",
        "data": ids.map(model),
        "has_more": false,
        "first_id": ids[0],
        "last_id": ids[ids.len() - 1],
        // Codex wants its own kind of entry, and takes what it knows itself where there is none.
        "models": [],
    })
}

/// The size of any conversation.
pub(super) fn token_count() -> Value {
    json!({"input_tokens": 10})
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_of_the_path_tells_the_format() {
        for (path, wire) in [
            ("/v1/messages", Some(Wire::Messages)),
            ("/v1/responses", Some(Wire::Responses)),
            ("/responses", Some(Wire::Responses)),
            ("/v1/chat/completions", Some(Wire::Chat)),
            ("/v1/messages/count_tokens", None),
            ("/v1/completions", None),
            ("/v1/models", None),
        ] {
            assert_eq!(Wire::of(path), wire, "{path}");
        }
    }

    #[test]
    fn errors_are_those_of_the_format() {
        assert_eq!(Wire::Messages.error(401, "x")["error"]["type"], "authentication_error");
        for wire in [Wire::Responses, Wire::Chat] {
            assert_eq!(wire.error(401, "x")["error"]["code"], "invalid_api_key");
            assert_eq!(wire.error(429, "x")["error"]["code"], "rate_limit_exceeded");
            assert_eq!(wire.error(529, "x")["error"]["type"], "server_error");
            assert_eq!(wire.error(400, "x")["error"]["message"], "x");
        }
    }
}
