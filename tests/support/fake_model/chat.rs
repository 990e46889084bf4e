//! The wire format of OpenAI's Chat Completions.

use serde_json::{Value, json};

use super::answer::{Answer, Content, event};
use super::conversation::{Conversation, texts};
use super::directives::Usage;
use super::stream::Part;

/// Reads the conversation of a request.
pub(super) fn conversation(body: &Value) -> Conversation {
    let mut conversation = Conversation::default();
    for message in body["messages"].as_array().into_iter().flatten() {
        match message["role"].as_str() {
            Some("user") => conversation.user_said(texts(&message["content"])),
            Some("tool" | "function") => conversation.after_tool_result = true,
            _ => {}
        }
    }
    conversation
}

/// The tokens as this format reports them: those of the cache are a part of the prompt, and what was written to it
/// is not told.
fn usage(answer: &Answer) -> Value {
    let usage = answer.usage.unwrap_or(Usage { input: 100, output: 20, cache_write: 0, cache_read: 3 });
    let prompt = usage.input + usage.cache_read + usage.cache_write;
    json!({
        "prompt_tokens": prompt,
        "completion_tokens": usage.output,
        "total_tokens": prompt + usage.output,
        "prompt_tokens_details": {"cached_tokens": usage.cache_read},
    })
}

/// What both forms of the answer begin with.
fn head(answer: &Answer, object: &str) -> Value {
    json!({
        "id": format!("chatcmpl-{}", answer.id),
        "object": object,
        "created": 1_735_689_600,
        "model": answer.model,
    })
}

/// The answer, or all of it in one piece of a stream.
fn said(answer: &Answer) -> Value {
    match &answer.content {
        Content::Text(text) => json!({"role": "assistant", "content": text}),
        Content::Tool(name, input) => json!({
            "role": "assistant",
            "content": null,
            "tool_calls": [{
                "index": 0,
                "id": format!("call_{}", answer.id),
                "type": "function",
                "function": {"name": name, "arguments": input.to_string()},
            }],
        }),
    }
}

fn finish_reason(answer: &Answer) -> &'static str {
    match answer.content {
        Content::Text(_) => "stop",
        Content::Tool(..) => "tool_calls",
    }
}

/// The answer as one object.
pub(super) fn whole(answer: &Answer) -> Value {
    let mut whole = head(answer, "chat.completion");
    whole["choices"] = json!([{"index": 0, "message": said(answer), "finish_reason": finish_reason(answer)}]);
    whole["usage"] = usage(answer);
    whole
}

/// The answer as server-sent events. The tokens are told to those who ask for them.
pub(super) fn streamed(answer: &Answer, request: &Value) -> Vec<Part> {
    let chunk = |delta: Value, finish: Option<&str>| {
        let mut chunk = head(answer, "chat.completion.chunk");
        chunk["choices"] = json!([{"index": 0, "delta": delta, "finish_reason": finish}]);
        event(&chunk)
    };
    let mut parts = vec![
        chunk(json!({"role": "assistant", "content": ""}), None),
        chunk(said(answer), None),
        chunk(json!({}), Some(finish_reason(answer))),
    ];
    if request["stream_options"]["include_usage"] == true {
        let mut last = head(answer, "chat.completion.chunk");
        last["choices"] = json!([]);
        last["usage"] = usage(answer);
        parts.push(event(&last));
    }
    parts.push(Part::Bytes("data: [DONE]\n\n".into()));
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_conversation_is_what_the_user_wrote() {
        let body = json!({"messages": [
            {"role": "system", "content": "not said"},
            {"role": "user", "content": "one"},
            {"role": "assistant", "content": "answer"},
            {"role": "user", "content": [
                {"type": "text", "text": "<system-reminder>x</system-reminder>"},
                {"type": "text", "text": "two"},
                {"type": "image_url", "image_url": {"url": "x"}},
            ]},
            {"role": "assistant", "content": null, "tool_calls": []},
            {"role": "tool", "tool_call_id": "c", "content": "done"},
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
}
