//! The wire format of OpenAI's Responses.

use serde_json::{Value, json};

use super::answer::{Answer, Content, event};
use super::conversation::{Conversation, texts};
use super::directives::Usage;
use super::stream::Part;

/// Reads the conversation of a request.
pub(super) fn conversation(body: &Value) -> Conversation {
    let mut conversation = Conversation::default();
    if let Some(text) = body["input"].as_str() {
        conversation.user_said([text]);
    }
    for item in body["input"].as_array().into_iter().flatten() {
        match item["type"].as_str().unwrap_or("message") {
            "message" if item["role"] == "user" => conversation.user_said(texts(&item["content"])),
            kind if kind.ends_with("_call_output") => conversation.after_tool_result = true,
            _ => {}
        }
    }
    conversation
}

/// The tokens as this format reports them: those of the cache are a part of the input.
fn usage(answer: &Answer) -> Value {
    let usage = answer.usage.unwrap_or(Usage { input: 100, output: 20, cache_write: 0, cache_read: 3 });
    let input = usage.input + usage.cache_read + usage.cache_write;
    json!({
        "input_tokens": input,
        "input_tokens_details": {
            "cached_tokens": usage.cache_read,
            "cache_write_tokens": usage.cache_write,
        },
        "output_tokens": usage.output,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": input + usage.output,
    })
}

/// What was said, as an item of the conversation.
fn item(answer: &Answer, request: &Value) -> Value {
    let id = &answer.id;
    match &answer.content {
        Content::Text(text) => json!({
            "type": "message",
            "id": format!("msg_{id}"),
            "role": "assistant",
            "status": "completed",
            "content": [part(text)],
        }),
        Content::Tool(name, input) if is_freeform(request, name) => json!({
            "type": "custom_tool_call",
            "id": format!("ctc_{id}"),
            "call_id": format!("call_{id}"),
            "name": name,
            "input": input["input"],
            "status": "completed",
        }),
        Content::Tool(name, input) => json!({
            "type": "function_call",
            "id": format!("fc_{id}"),
            "call_id": format!("call_{id}"),
            "name": name,
            "arguments": input.to_string(),
            "status": "completed",
        }),
    }
}

fn part(text: &str) -> Value {
    json!({"type": "output_text", "text": text, "annotations": []})
}

/// Whether the request offers this tool as one that takes plain text; a prompt gives that as `{"input": "…"}`.
fn is_freeform(request: &Value, name: &str) -> bool {
    let tools = request["tools"].as_array().into_iter().flatten();
    tools.into_iter().any(|tool| tool["name"] == name && tool["type"] == "custom")
}

/// The answer as one object.
pub(super) fn whole(answer: &Answer, request: &Value) -> Value {
    json!({
        "id": format!("resp_{}", answer.id),
        "object": "response",
        "created_at": 1_735_689_600,
        "model": answer.model,
        "status": "completed",
        "output": [item(answer, request)],
        "usage": usage(answer),
        "error": null,
        "incomplete_details": null,
        "parallel_tool_calls": true,
        "tools": [],
    })
}

/// The answer as server-sent events.
pub(super) fn streamed(answer: &Answer, request: &Value) -> Vec<Part> {
    let whole = whole(answer, request);
    let item = &whole["output"][0];
    let mut started = whole.clone();
    started["status"] = json!("in_progress");
    started["output"] = json!([]);
    started["usage"] = Value::Null;
    let mut begun = item.clone();
    begun["status"] = json!("in_progress");
    let within = json!({"item_id": item["id"], "output_index": 0});
    let said = match (&answer.content, item["type"].as_str()) {
        (Content::Text(text), _) => {
            begun["content"] = json!([]);
            vec![
                ("content_part.added", json!({"content_index": 0, "part": part("")})),
                ("output_text.delta", json!({"content_index": 0, "delta": text})),
                ("output_text.done", json!({"content_index": 0, "text": text})),
                ("content_part.done", json!({"content_index": 0, "part": part(text)})),
            ]
        }
        (Content::Tool(..), Some("custom_tool_call")) => {
            begun["input"] = json!("");
            vec![
                ("custom_tool_call_input.delta", json!({"delta": item["input"]})),
                ("custom_tool_call_input.done", json!({"input": item["input"]})),
            ]
        }
        (Content::Tool(..), _) => {
            begun["arguments"] = json!("");
            vec![
                ("function_call_arguments.delta", json!({"delta": item["arguments"]})),
                ("function_call_arguments.done", json!({"arguments": item["arguments"]})),
            ]
        }
    };
    let mut events = vec![
        ("created", json!({"response": started})),
        ("output_item.added", json!({"output_index": 0, "item": begun})),
    ];
    events.extend(said.into_iter().map(|(name, data)| (name, joined(data, &within))));
    events.push(("output_item.done", json!({"output_index": 0, "item": item})));
    events.push(("completed", json!({"response": whole})));
    let numbered = |(number, (name, data)): (usize, (&str, Value))| {
        event(&joined(data, &json!({"type": format!("response.{name}"), "sequence_number": number})))
    };
    events.into_iter().enumerate().map(numbered).collect()
}

/// The object with the fields of another one added.
fn joined(mut object: Value, more: &Value) -> Value {
    let fields = object.as_object_mut().expect("only objects are joined");
    fields.extend(more.as_object().expect("only objects are joined").clone());
    object
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_conversation_is_what_the_user_wrote() {
        let text = |role: &str, text: &str| json!({"type": "message", "role": role, "content": [{"type": "input_text", "text": text}]});
        let body = json!({"instructions": "not said", "input": [
            text("developer", "not said"),
            text("user", "# AGENTS.md instructions for /p\n\n<INSTRUCTIONS>\nx\n</INSTRUCTIONS>"),
            text("user", "<environment_context>x</environment_context>"),
            text("user", "one"),
            text("assistant", "answer"),
            text("user", "<turn_aborted>\nx\n</turn_aborted>"),
            {"role": "user", "content": "two"},
            {"type": "function_call", "call_id": "c", "name": "n", "arguments": "{}"},
            {"type": "function_call_output", "call_id": "c", "output": "done"},
        ]});
        let found = conversation(&body);
        assert_eq!(found.user_texts, ["one", "two"]);
        assert!(found.after_tool_result);
        assert_eq!(conversation(&json!({"input": "one"})).user_texts, ["one"]);
        let custom = json!({"input": [{"type": "custom_tool_call_output", "call_id": "c", "output": "x"}]});
        assert!(conversation(&custom).after_tool_result);
    }

    #[test]
    fn a_body_without_input_is_an_empty_conversation() {
        assert_eq!(conversation(&json!({})), Conversation::default());
        assert_eq!(conversation(&Value::Null), Conversation::default());
    }

    #[test]
    fn a_tool_is_called_in_the_way_it_is_offered() {
        let request = json!({"tools": [
            {"type": "custom", "name": "apply_patch"},
            {"type": "function", "name": "shell"},
            {"type": "web_search"},
        ]});
        let call = |name: &str, input: Value| {
            item(&Answer::new("m", Content::Tool(name.to_owned(), input), None), &request)
        };
        let patch = call("apply_patch", json!({"input": "*** Begin"}));
        assert_eq!((&patch["type"], &patch["input"]), (&json!("custom_tool_call"), &json!("*** Begin")));
        let shell = call("shell", json!({"command": ["ls"]}));
        assert_eq!(shell["type"], "function_call");
        assert_eq!(shell["arguments"], r#"{"command":["ls"]}"#);
    }
}
