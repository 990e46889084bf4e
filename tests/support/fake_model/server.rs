//! The HTTP side: reads requests, obeys directives, answers.

use std::io::Read;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use axum::Router;
use axum::body::Bytes;
use axum::extract::{DefaultBodyLimit, State};
use axum::http::{HeaderMap, Method, StatusCode, Uri, header};
use axum::response::{IntoResponse, Response};
use axum::serve::ListenerExt;
use flate2::read::MultiGzDecoder;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::time::{sleep, timeout};

use super::answer::{Answer, Content};
use super::conversation::Conversation;
use super::directives::{Directives, PATIENCE};
use super::log::{ModelRequest, Shared};
use super::stream;
use super::wire::{self, Wire};
use crate::ContextReply;

/// Conversations grow large; this is twice what the real service takes.
const MAX_BODY: usize = 64 * 1024 * 1024;

/// Serves until the future is dropped.
pub(super) async fn serve(listener: TcpListener, shared: Arc<Shared>) -> std::io::Result<()> {
    let router = Router::new().fallback(handle).layer(DefaultBodyLimit::max(MAX_BODY)).with_state(shared);
    // Without a delay for small packets: streams are many of them.
    let listener = listener.tap_io(|stream| {
        let _ = stream.set_nodelay(true);
    });
    axum::serve(listener, router).await
}

/// How many tools a request offers: in a list of their own, or as an item of the conversation (Codex 0.171, with the
/// models that it knows).
fn offered(body: &Value) -> usize {
    let count = |tools: &Value| tools.as_array().map_or(0, Vec::len);
    let items = body["input"].as_array().into_iter().flatten();
    let added = items.filter(|item| item["type"] == "additional_tools").map(|item| count(&item["tools"]));
    count(&body["tools"]) + added.sum::<usize>()
}

async fn handle(
    State(shared): State<Arc<Shared>>,
    method: Method,
    uri: Uri,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    let json = unpacked(&headers, &body).and_then(|body| serde_json::from_slice::<Value>(&body).ok());
    let path = uri.path();
    let wire = Wire::of(path).unwrap_or(Wire::Messages);
    let conversation = json.as_ref().map(|body| wire.conversation(body)).unwrap_or_default();
    let model_call = method == Method::POST && Wire::of(path).is_some();
    let body = json.as_ref().unwrap_or(&Value::Null);
    let request = ModelRequest {
        method: method.to_string(),
        path: path.to_owned(),
        model_call,
        model: body["model"].as_str().map(str::to_owned),
        stream: body["stream"] == true,
        user_texts: conversation.user_texts.clone(),
        last_is_tool_result: conversation.after_tool_result,
        system: body.get("system").map(ToString::to_string).unwrap_or_default(),
        tools: offered(body),
        body: json.as_ref().map(Value::to_string).unwrap_or_default(),
    };
    // What the prompt asks for is for the turn: a request for its title quotes it.
    let asked = if request.is_turn() { conversation.last() } else { "" };
    let directives = Directives::parse(asked);
    shared.note(request);
    if model_call {
        return match (&json, shared.refusal.load(Ordering::SeqCst)) {
            (None, _) => failure(wire, 400, "the body is no JSON"),
            (_, 0) => answer(&shared, wire, body, &conversation, &directives).await,
            (_, status) => failure(wire, status, "the test asked for this error"),
        };
    }
    match method {
        Method::GET if path.ends_with("/models") => json_response(200, &wire::models()),
        Method::HEAD => StatusCode::OK.into_response(),
        Method::POST if path.ends_with("/count_tokens") => json_response(200, &wire::token_count()),
        // Telemetry and the like: agents do not expect anything.
        Method::POST => json_response(200, &json!({})),
        _ => failure(wire, 404, "there is nothing here"),
    }
}

async fn answer(
    shared: &Shared,
    wire: Wire,
    body: &Value,
    conversation: &Conversation,
    directives: &Directives,
) -> Response {
    if let Some(delay) = directives.delay {
        sleep(delay).await;
    }
    if let Some(name) = &directives.hold {
        let mut released = shared.released.subscribe();
        // A test that forgets about it gets its answer late, but gets it.
        let _ = timeout(PATIENCE, released.wait_for(|names| names.contains(name))).await;
    }
    if let Some(status) = directives.status
        && (!status.once || shared.refuses_first(conversation.last()))
    {
        return failure(wire, status.code, "the prompt asked for this error");
    }
    let answer = Answer::new(
        body["model"].as_str().unwrap_or("fake-model"),
        content(directives, conversation),
        directives.usage,
    );
    if body["stream"] == true {
        let parts = wire.streamed(&answer, body, directives.ending());
        return ([(header::CONTENT_TYPE, "text/event-stream")], stream::body(parts)).into_response();
    }
    json_response(200, &wire.whole(&answer, body))
}

/// What the model says. The result of a tool is answered with text, or the agent would never end.
fn content(directives: &Directives, conversation: &Conversation) -> Content {
    match (&directives.tool, &directives.say) {
        (Some((name, input)), _) if !conversation.after_tool_result => {
            Content::Tool(name.clone(), input.clone())
        }
        (_, Some(say)) => Content::Text(say.clone()),
        _ => Content::Text(ContextReply::of(&conversation.user_texts).to_text()),
    }
}

/// The body as it was before the agent compressed it; `None` when it cannot be unpacked.
fn unpacked(headers: &HeaderMap, body: &Bytes) -> Option<Bytes> {
    if headers.get(header::CONTENT_ENCODING).is_none_or(|encoding| encoding != "gzip") {
        return Some(body.clone());
    }
    let mut plain = Vec::new();
    let limit = u64::try_from(MAX_BODY).unwrap_or(u64::MAX);
    MultiGzDecoder::new(&body[..]).take(limit).read_to_end(&mut plain).ok()?;
    Some(plain.into())
}

fn failure(wire: Wire, status: u16, message: &str) -> Response {
    json_response(status, &wire.error(status, message))
}

fn json_response(status: u16, body: &Value) -> Response {
    // 529 has no name of its own, but is a valid number.
    let status = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    (status, [(header::CONTENT_TYPE, "application/json")], body.to_string()).into_response()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tools_are_offered_in_either_way() {
        assert_eq!(offered(&json!({"tools": [{}, {}], "input": "hi"})), 2);
        let items = json!([{"type": "additional_tools", "tools": [{}]}, {"type": "message", "role": "user"}]);
        assert_eq!(offered(&json!({"input": items})), 1);
        assert_eq!(offered(&json!({"input": [{"type": "message"}]})), 0);
        assert_eq!(offered(&Value::Null), 0);
    }
}
