//! As much of an HTTP client as the tests need.

use std::io::{Read, Write};
use std::net::TcpStream;

use rejoin_test_support::fake_model::FakeModel;
use serde_json::{Value, json};

/// A response; its body is as it came over the wire, in chunks if it was sent so.
pub(crate) struct Response {
    pub(crate) status: u16,
    pub(crate) body: String,
}

impl Response {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap()
    }

    /// The data of a stream of events, whose types must agree with their names where they have some.
    pub(crate) fn events(&self) -> Vec<Value> {
        let mut name = "";
        let mut events = Vec::new();
        for line in self.body.lines() {
            if let Some(event) = line.strip_prefix("event: ") {
                name = event;
            } else if let Some(data) = line.strip_prefix("data: ").filter(|data| *data != "[DONE]") {
                let data: Value = serde_json::from_str(data).unwrap();
                assert_eq!(data["type"].as_str().unwrap_or_default(), name);
                events.push(data);
            }
        }
        events
    }
}

/// Sends a request and reads all there is of the response.
pub(crate) fn send(model: &FakeModel, method: &str, path: &str, headers: &str, body: &[u8]) -> Response {
    let address = model.url();
    let address = address.strip_prefix("http://").unwrap();
    let mut stream = TcpStream::connect(address).unwrap();
    let head = format!("{method} {path} HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\n{headers}\r\n");
    stream.write_all(head.as_bytes()).unwrap();
    stream.write_all(body).unwrap();
    let mut raw = Vec::new();
    // A broken connection is a short response.
    let _ = stream.read_to_end(&mut raw);
    let text = String::from_utf8(raw).unwrap();
    let (head, body) = text.split_once("\r\n\r\n").unwrap_or((&text, ""));
    let status = head.split(' ').nth(1).map_or(0, |status| status.parse().unwrap());
    Response { status, body: body.to_owned() }
}

pub(crate) fn post(model: &FakeModel, path: &str, body: &Value) -> Response {
    let body = body.to_string();
    let headers = format!("content-type: application/json\r\ncontent-length: {}\r\n", body.len());
    send(model, "POST", path, &headers, body.as_bytes())
}

/// What makes a request a turn: a tool that the agent offers.
pub(crate) fn tools() -> Value {
    json!([{"name": "Bash"}])
}

/// Asks the model with what the user said so far.
pub(crate) fn ask(model: &FakeModel, texts: &[&str], stream: bool) -> Response {
    let messages: Vec<_> = texts.iter().map(|text| json!({"role": "user", "content": text})).collect();
    let body = json!({"model": "m", "stream": stream, "messages": messages, "tools": tools()});
    post(model, "/v1/messages?beta=true", &body)
}
