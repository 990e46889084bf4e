//! The fake model over the network.

use std::io::{BufRead, BufReader, Write};
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::time::Duration;

use flate2::Compression;
use flate2::write::GzEncoder;
use rejoin_test_support::ContextReply;
use rejoin_test_support::fake_model::{FakeModel, FakeModelOptions, TooFewCalls};
use serde_json::{Value, json};

use crate::http::{Response, ask, post, send, tools};

const LONG: Duration = Duration::from_secs(30);

fn text(response: &Response) -> String {
    response.json()["content"][0]["text"].as_str().unwrap().to_owned()
}

fn context(response: &Response) -> ContextReply {
    ContextReply::parse(&text(response)).unwrap()
}

#[test]
fn the_answer_tells_what_the_model_was_told() {
    let model = FakeModel::start();
    let response = ask(&model, &["one", "two"], false);
    assert_eq!(response.status, 200);
    let expected = ContextReply { user_turns: 2, first: "one".to_owned(), last: "two".to_owned() };
    assert_eq!(context(&response), expected);
    assert_eq!(
        response.json()["usage"],
        json!({"input_tokens": 100, "output_tokens": 20, "cache_creation_input_tokens": 7, "cache_read_input_tokens": 3})
    );
    let requests = model.requests();
    assert_eq!(requests.len(), 1);
    assert!(requests[0].model_call && !requests[0].stream && !requests[0].last_is_tool_result);
    assert_eq!(requests[0].path, "/v1/messages");
    assert_eq!(requests[0].model.as_deref(), Some("m"));
    assert_eq!(requests[0].user_texts, ["one", "two"]);
}

#[test]
fn a_stream_is_the_same_answer_in_events() {
    let model = FakeModel::start();
    let response = ask(&model, &["x [[say hello]] [[usage 1 2 3 4]]"], true);
    let events = response.events();
    let types: Vec<_> = events.iter().map(|event| event["type"].as_str().unwrap()).collect();
    let expected = [
        "message_start",
        "content_block_start",
        "content_block_delta",
        "content_block_stop",
        "message_delta",
        "message_stop",
    ];
    assert_eq!(types, expected);
    assert_eq!(events[0]["message"]["content"], json!([]));
    assert_eq!(events[2]["delta"]["text"], "hello");
    assert_eq!(events[4]["usage"]["cache_read_input_tokens"], 4);
    assert_eq!(events[4]["delta"]["stop_reason"], "end_turn");
}

#[test]
fn only_questions_to_the_model_are_counted() {
    let model = FakeModel::start();
    let counted = post(&model, "/v1/messages/count_tokens", &json!({"messages": []}));
    assert_eq!(counted.json(), json!({"input_tokens": 10}));
    assert_eq!(send(&model, "HEAD", "/", "", b"").status, 200);
    assert_eq!(send(&model, "GET", "/nothing", "", b"").status, 404);
    assert_eq!(send(&model, "GET", "/v1/messages", "", b"").json()["type"], "error");
    assert!(send(&model, "GET", "/v1/models", "", b"").json()["data"][0]["id"].is_string());
    assert_eq!(post(&model, "/api/event_logging/batch", &json!({})).json(), json!({}));
    assert_eq!(model.model_calls(), 0);
    assert_eq!(model.requests().len(), 6);
    assert!(model.requests().iter().all(|request| !request.model_call));
    model.clear();
    assert_eq!(model.requests(), []);
}

#[test]
fn bodies_may_be_large_compressed_or_in_chunks() {
    let model = FakeModel::start();
    let long = "x".repeat(3 * 1024 * 1024);
    assert_eq!(context(&ask(&model, &["one", &long], false)).user_turns, 2);

    let body = json!({"messages": [{"role": "user", "content": "packed"}]}).to_string();
    let mut packer = GzEncoder::new(Vec::new(), Compression::default());
    packer.write_all(body.as_bytes()).unwrap();
    let packed = packer.finish().unwrap();
    let headers = format!("content-encoding: gzip\r\ncontent-length: {}\r\n", packed.len());
    assert_eq!(context(&send(&model, "POST", "/v1/messages", &headers, &packed)).first, "packed");

    let (start, end) = body.split_at(10);
    let chunks = format!("{:x}\r\n{start}\r\n{:x}\r\n{end}\r\n0\r\n\r\n", start.len(), end.len());
    let headers = "transfer-encoding: chunked\r\n";
    assert_eq!(context(&send(&model, "POST", "/v1/messages", headers, chunks.as_bytes())).first, "packed");

    assert_eq!(send(&model, "POST", "/v1/messages", "content-length: 1\r\n", b"{").status, 400);
}

#[test]
fn a_tool_is_used_once() {
    let model = FakeModel::start();
    let prompt = json!({"role": "user", "content": "[[tool Bash {\"command\": \"ls\"}]]"});
    let ask =
        |messages: &Value| post(&model, "/v1/messages", &json!({"messages": messages, "tools": tools()}));
    let used = ask(&json!([prompt])).json();
    assert_eq!(used["stop_reason"], "tool_use");
    assert_eq!(used["content"][0]["name"], "Bash");
    assert_eq!(used["content"][0]["input"], json!({"command": "ls"}));
    let result = json!({"role": "user", "content": [
        {"type": "tool_result", "tool_use_id": used["content"][0]["id"], "content": "files"},
    ]});
    let answer = ask(&json!([prompt, {"role": "assistant", "content": used["content"]}, result]));
    assert_eq!(context(&answer).user_turns, 1);
    assert!(model.requests()[1].last_is_tool_result);
}

#[test]
fn errors_come_as_the_prompt_asks() {
    let model = FakeModel::start();
    let refused = ask(&model, &["[[status 529]]"], true);
    assert_eq!(refused.status, 529);
    assert_eq!(refused.json()["error"]["type"], "overloaded_error");
    assert_eq!(ask(&model, &["[[status 529]]"], true).status, 529);
    assert_eq!(ask(&model, &["[[status 429 once]]"], false).status, 429);
    assert_eq!(ask(&model, &["[[status 429 once]]"], false).status, 200);
    assert_eq!(ask(&model, &["other [[status 429 once]]"], false).status, 429);
}

#[test]
fn a_side_request_is_answered_whatever_the_prompt_asks() {
    let model = FakeModel::start();
    let prompt = "title of: [[hold it]] [[status 529]] [[tool Bash {}]] [[drop]]";
    let body = json!({"stream": true, "messages": [{"role": "user", "content": prompt}]});
    let response = post(&model, "/v1/messages", &body);
    assert_eq!((response.status, response.events().len()), (200, 6));
    assert!(!model.requests()[0].is_turn());
}

#[test]
fn a_stream_breaks_off_after_its_start() {
    let model = FakeModel::start();
    let response = ask(&model, &["[[drop]]"], true);
    assert_eq!(response.events().len(), 1);
    assert!(!response.body.ends_with("0\r\n\r\n"));
    assert_eq!(context(&ask(&model, &["[[drop]]"], false)).user_turns, 1);

    let cut = ask(&model, &["[[cut]]"], true);
    assert_eq!(cut.events().len(), 1);
    assert!(cut.body.ends_with("0\r\n\r\n"), "it ends in order");
}

#[test]
fn an_answer_is_held_until_it_is_released() {
    let model = FakeModel::start();
    let (answered, answers) = mpsc::channel();
    std::thread::scope(|scope| {
        scope.spawn(|| answered.send(ask(&model, &["[[hold gate]]"], false).status).unwrap());
        model.wait_for_calls_blocking(1, LONG).unwrap();
        // A request after the held one is answered before it.
        assert_eq!(ask(&model, &["quick"], false).status, 200);
        assert_eq!(answers.try_recv(), Err(mpsc::TryRecvError::Empty));
        model.release("gate");
        assert_eq!(answers.recv_timeout(LONG), Ok(200));
    });
    let waited = model.wait_for_calls_blocking(3, Duration::ZERO);
    assert_eq!(waited, Err(TooFewCalls { wanted: 3, seen: 2 }));
}

#[tokio::test]
async fn calls_can_be_waited_for_in_a_runtime() {
    let model = FakeModel::start();
    // The server does not need this runtime, so blocking it does no harm.
    assert_eq!(ask(&model, &["[[delay 1]]"], false).status, 200);
    model.wait_for_calls(1, LONG).await.unwrap();
}

#[test]
fn a_dropped_server_ends_its_connections() {
    // A port that the system gives to nobody by itself: of another one, a server may begin at once on the same.
    let at = |port| FakeModel::start_with(&FakeModelOptions { port, log: None }).ok();
    let model = (20_000..30_000).find_map(at).unwrap();
    let url = model.url();
    let address = url.strip_prefix("http://").unwrap();
    let mut stream = std::net::TcpStream::connect(address).unwrap();
    let body = r#"{"messages":[{"role":"user","content":"[[hold forever]]"}],"tools":[{"name":"x"}]}"#;
    write!(stream, "POST /v1/messages HTTP/1.1\r\nhost: x\r\ncontent-length: {}\r\n\r\n{body}", body.len())
        .unwrap();
    model.wait_for_calls_blocking(1, LONG).unwrap();
    drop(model);
    let mut line = String::new();
    let read = BufReader::new(stream).read_line(&mut line);
    assert!(matches!(read, Ok(0) | Err(_)), "{line}");
    assert!(std::net::TcpStream::connect(address).is_err());
}

#[test]
fn requests_are_logged_to_a_file() {
    let dir = tempfile::tempdir().unwrap();
    let log = dir.path().join("requests.jsonl");
    let model = FakeModel::start_with(&FakeModelOptions { port: 0, log: Some(log.clone()) }).unwrap();
    ask(&model, &["one"], true);
    let line: Value = serde_json::from_str(&std::fs::read_to_string(log).unwrap()).unwrap();
    assert_eq!(line, serde_json::to_value(&model.requests()[0]).unwrap());
    assert_eq!(line["model_call"], true);
}

#[test]
fn the_program_says_where_it_serves() {
    let mut program = Command::new(env!("CARGO_BIN_EXE_fake-model"))
        .args(["--port", "0"])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(program.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let url: Value = serde_json::from_str(&line).unwrap();
    let address = url["url"].as_str().unwrap().strip_prefix("http://").unwrap().to_owned();
    let connected = std::net::TcpStream::connect(address);
    program.kill().unwrap();
    program.wait().unwrap();
    connected.unwrap();

    let refused = Command::new(env!("CARGO_BIN_EXE_fake-model")).arg("--prot").output().unwrap();
    assert_eq!(refused.status.code(), Some(2));
}
