//! The fake model's two formats of OpenAI over the network.

use rejoin_test_support::ContextReply;
use rejoin_test_support::fake_model::FakeModel;
use serde_json::{Value, json};

use crate::http::{Response, post, send};

/// Asks in the format of Responses.
fn respond(model: &FakeModel, texts: &[&str], stream: bool) -> Response {
    let input: Vec<_> = texts
        .iter()
        .map(|text| json!({"type": "message", "role": "user", "content": [{"type": "input_text", "text": text}]}))
        .collect();
    let tools = json!([{"type": "function", "name": "shell"}]);
    post(model, "/v1/responses", &json!({"model": "m", "stream": stream, "input": input, "tools": tools}))
}

/// Asks in the format of Chat Completions.
fn chat(model: &FakeModel, texts: &[&str], stream: bool) -> Response {
    let messages: Vec<_> = texts.iter().map(|text| json!({"role": "user", "content": text})).collect();
    let tools = json!([{"type": "function", "function": {"name": "bash"}}]);
    let mut body = json!({"model": "m", "stream": stream, "messages": messages, "tools": tools});
    if stream {
        body["stream_options"] = json!({"include_usage": true});
    }
    post(model, "/v1/chat/completions", &body)
}

fn types(events: &[Value]) -> Vec<&str> {
    events.iter().map(|event| event["type"].as_str().unwrap()).collect()
}

#[test]
fn the_answer_tells_what_the_model_was_told() {
    let model = FakeModel::start();
    let expected = ContextReply { user_turns: 2, first: "one".to_owned(), last: "two".to_owned() };

    let answer = respond(&model, &["one", "two"], false).json();
    let text = answer["output"][0]["content"][0]["text"].as_str().unwrap();
    assert_eq!(ContextReply::parse(text), Some(expected.clone()));
    assert_eq!(answer["status"], "completed");
    assert_eq!(
        (&answer["usage"]["input_tokens"], &answer["usage"]["output_tokens"]),
        (&json!(103), &json!(20))
    );
    assert_eq!(answer["usage"]["input_tokens_details"]["cached_tokens"], 3);

    let answer = chat(&model, &["one", "two"], false).json();
    let text = answer["choices"][0]["message"]["content"].as_str().unwrap();
    assert_eq!(ContextReply::parse(text), Some(expected));
    assert_eq!(answer["choices"][0]["finish_reason"], "stop");
    assert_eq!(
        (&answer["usage"]["prompt_tokens"], &answer["usage"]["completion_tokens"]),
        (&json!(103), &json!(20))
    );
    assert_eq!(answer["usage"]["prompt_tokens_details"]["cached_tokens"], 3);

    for request in model.requests() {
        assert!(request.is_turn() && !request.stream && !request.last_is_tool_result);
        assert_eq!(request.user_texts, ["one", "two"]);
    }
}

#[test]
fn a_stream_of_responses_is_the_same_answer_in_events() {
    let model = FakeModel::start();
    let events = respond(&model, &["[[say hello]] [[usage 1 2 3 4]]"], true).events();
    let expected = [
        "response.created",
        "response.output_item.added",
        "response.content_part.added",
        "response.output_text.delta",
        "response.output_text.done",
        "response.content_part.done",
        "response.output_item.done",
        "response.completed",
    ];
    assert_eq!(types(&events), expected);
    assert!(events.iter().enumerate().all(|(number, event)| event["sequence_number"] == number));
    assert_eq!(events[0]["response"]["output"], json!([]));
    assert_eq!(events[3]["delta"], "hello");
    assert_eq!(events[3]["item_id"], events[6]["item"]["id"]);
    assert_eq!(events[6]["item"]["content"][0]["text"], "hello");
    let usage = &events[7]["response"]["usage"];
    assert_eq!((&usage["input_tokens"], &usage["total_tokens"]), (&json!(8), &json!(10)));
    assert_eq!(usage["input_tokens_details"], json!({"cached_tokens": 4, "cache_write_tokens": 3}));
}

#[test]
fn a_stream_of_chat_is_the_same_answer_in_pieces() {
    let model = FakeModel::start();
    let response = chat(&model, &["[[say hello]] [[usage 1 2 3 4]]"], true);
    let events = response.events();
    assert!(response.body.contains("data: [DONE]"));
    assert!(events.iter().all(|event| event["object"] == "chat.completion.chunk"));
    assert_eq!(events[1]["choices"][0]["delta"]["content"], "hello");
    assert_eq!(events[2]["choices"][0]["finish_reason"], "stop");
    assert_eq!(events[3]["choices"], json!([]));
    assert_eq!(
        (&events[3]["usage"]["prompt_tokens"], &events[3]["usage"]["total_tokens"]),
        (&json!(8), &json!(10))
    );

    // Who does not ask for the tokens is not told.
    let body = json!({"stream": true, "messages": [{"role": "user", "content": "x"}]});
    let events = post(&model, "/v1/chat/completions", &body).events();
    assert_eq!(events.len(), 3);
}

#[test]
fn a_tool_is_used_once() {
    let model = FakeModel::start();
    let prompt = "[[tool shell {\"command\": [\"ls\"]}]]";
    let events = respond(&model, &[prompt], true).events();
    let call = &events[events.len() - 2]["item"];
    assert_eq!((&call["type"], &call["name"]), (&json!("function_call"), &json!("shell")));
    assert_eq!(call["arguments"], r#"{"command":["ls"]}"#);
    let input = json!([
        {"type": "message", "role": "user", "content": prompt},
        call,
        {"type": "function_call_output", "call_id": call["call_id"], "output": "files"},
    ]);
    let tools = json!([{"type": "function", "name": "shell"}]);
    let answer = post(&model, "/v1/responses", &json!({"input": input, "tools": tools})).json();
    assert_eq!(answer["output"][0]["type"], "message");

    let used = chat(&model, &[prompt], false).json();
    let message = &used["choices"][0]["message"];
    assert_eq!(used["choices"][0]["finish_reason"], "tool_calls");
    assert_eq!(
        message["tool_calls"][0]["function"],
        json!({"name": "shell", "arguments": r#"{"command":["ls"]}"#})
    );
    let messages = json!([
        {"role": "user", "content": prompt},
        message,
        {"role": "tool", "tool_call_id": message["tool_calls"][0]["id"], "content": "files"},
    ]);
    let answer = post(&model, "/v1/chat/completions", &json!({"messages": messages, "tools": tools})).json();
    assert_eq!(answer["choices"][0]["finish_reason"], "stop");
}

#[test]
fn errors_come_as_the_prompt_or_the_test_asks() {
    let model = FakeModel::start();
    for ask in [respond, chat] {
        let refused = ask(&model, &["[[status 401]]"], true);
        assert_eq!(
            (refused.status, refused.json()["error"]["code"].clone()),
            (401, json!("invalid_api_key"))
        );
        model.refuse(Some(529));
        assert_eq!(ask(&model, &["one"], true).status, 529);
        model.refuse(None);
        assert_eq!(ask(&model, &["one"], false).status, 200);
    }
    assert_eq!(send(&model, "POST", "/v1/responses", "content-length: 1\r\n", b"{").status, 400);
}

#[test]
fn a_stream_breaks_off_or_ends_after_its_start() {
    let model = FakeModel::start();
    for ask in [respond, chat] {
        let broken = ask(&model, &["[[drop]]"], true);
        assert_eq!(broken.events().len(), 1);
        assert!(!broken.body.ends_with("0\r\n\r\n"));
        let cut = ask(&model, &["[[cut]]"], true);
        assert_eq!(cut.events().len(), 1);
        assert!(cut.body.ends_with("0\r\n\r\n"));
    }
}

#[test]
fn a_request_without_tools_is_no_turn() {
    let model = FakeModel::start();
    post(&model, "/v1/responses", &json!({"input": "sum it up"}));
    post(&model, "/v1/chat/completions", &json!({"messages": [{"role": "user", "content": "a title"}]}));
    assert_eq!(send(&model, "GET", "/v1/models?client_version=1", "", b"").json()["models"], json!([]));
    assert_eq!(model.model_calls(), 2);
    assert!(model.requests().iter().all(|request| !request.is_turn()));
}
