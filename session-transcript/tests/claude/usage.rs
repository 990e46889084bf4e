//! Tokens, each reply once.

use serde_json::{Value, json};
use session_core::Usage;
use session_transcript::Bill;

use crate::lines::{read, reply, text, user};

fn said(id: &str, message: &str, request: Option<&str>, output: u64) -> Value {
    let mut line = reply(id, None);
    line["message"]["id"] = json!(message);
    line["requestId"] = json!(request);
    line["message"]["usage"] = json!({
        "input_tokens": 3, "cache_creation_input_tokens": 5, "cache_read_input_tokens": 7, "output_tokens": output,
        "cache_creation": {"output_tokens": 999}, "iterations": [{"input_tokens": 999}],
    });
    line
}

fn tokens(replies: u64, output: u64) -> Usage {
    let input = 3 * replies;
    Usage {
        input_tokens: input,
        cache_write_tokens: 5 * replies,
        cache_read_tokens: 7 * replies,
        output_tokens: output,
    }
}

#[test]
fn several_lines_of_a_reply_count_once_with_the_last_word() {
    let lines = [said("1", "m", Some("r"), 4), said("2", "m", Some("r"), 2), said("3", "m", Some("r"), 120)];
    assert_eq!(read(&text(&lines)).counts().usage, tokens(1, 120));
    assert_eq!(read(&text(&lines[..2])).counts().usage, tokens(1, 2));
}

#[test]
fn requests_of_one_message_id_are_replies_of_their_own_and_a_missing_request_is_one() {
    let lines = [
        said("1", "m", Some("r"), 1),
        said("2", "m", Some("s"), 10),
        said("3", "m", None, 100),
        said("4", "m", None, 100),
    ];
    let counts = read(&text(&lines)).counts();
    assert_eq!((counts.usage, counts.replies), (tokens(3, 111), 3));
}

#[test]
fn what_is_written_again_later_does_not_take_the_last_word_back() {
    let lines = [
        said("1", "m", Some("r"), 120),
        said("2", "n", Some("r"), 5),
        said("3", "m", Some("r"), 1),
        said("4", "m", Some("r"), 2),
    ];
    assert_eq!(read(&text(&lines)).counts().usage, tokens(2, 125));
}

#[test]
fn what_a_fork_copied_is_paid_for_once_and_not_by_the_fork() {
    let own = [said("1", "m", Some("r"), 120), said("2", "n", Some("s"), 30)];
    let mut fork = vec![said("1", "m", Some("r"), 2), said("3", "o", Some("t"), 9)];
    fork[0]["forkedFrom"] = json!({"sessionId": "33333333-1111-4111-8111-111111111111", "messageUuid": "x"});
    let (own, forked) = (read(&text(&own)), read(&text(&fork)));
    assert_eq!((forked.counts().usage, forked.counts().usage_new), (tokens(2, 11), tokens(1, 9)));
    for order in [[&own, &forked], [&forked, &own]] {
        let mut bill = Bill::default();
        order.into_iter().for_each(|file| bill.add(file));
        // The fork may hold only the beginning of a reply.
        assert_eq!(bill.usage(), tokens(3, 159));
    }
    fork[0].as_object_mut().unwrap().remove("forkedFrom");
    fork[0]["requestSessionId"] = json!("33333333-1111-4111-8111-111111111111");
    assert_eq!(read(&text(&fork)).counts().usage_new, tokens(1, 9));
}

#[test]
fn helpers_are_billed_apart() {
    let mut helper = said("2", "n", Some("s"), 30);
    helper["isSidechain"] = json!(true);
    let counts = read(&text(&[said("1", "m", Some("r"), 120), helper])).counts();
    assert_eq!((counts.usage, counts.usage_of_sidechains), (tokens(1, 120), tokens(1, 30)));
    assert_eq!((counts.messages, counts.replies), (1, 1));
}

#[test]
fn what_the_agent_wrote_in_place_of_a_reply_costs_nothing() {
    let mut line = said("1", "m", Some("r"), 120);
    line["message"]["model"] = json!("<synthetic>");
    let counts = read(&text(&[user("u", None, "x"), line])).counts();
    assert_eq!((counts.usage, counts.replies), (Usage::default(), 0));
}

#[test]
fn absurd_numbers_do_not_run_over() {
    let lines = [said("1", "m", Some("r"), u64::MAX), said("2", "n", Some("r"), u64::MAX)];
    assert_eq!(read(&text(&lines)).counts().usage.output_tokens, u64::MAX);
}
