//! The conversation that is followed.

use serde_json::{Value, json};
use session_core::history::NoticeKind;

use crate::lines::{boundary, notices, read, record, reply, snapshot, text, user};

fn at(mut line: Value, second: u32) -> Value {
    line["timestamp"] = json!(format!("2026-03-01T10:00:{second:02}.000Z"));
    line
}

#[test]
fn a_parent_that_was_never_written_is_bridged_by_the_line_before_and_told() {
    let lines = [
        user("u1", None, "a"),
        reply("u2", Some("u1")),
        user("u3", Some("uX"), "b"),
        reply("u4", Some("u3")),
    ];
    let summary = read(&text(&lines));
    assert_eq!((summary.counts().messages, summary.counts().prompts), (4, 2));
    let offset = text(&lines[..2]).len() as u64;
    assert_eq!(notices(&summary), [(offset, NoticeKind::LinkMissing)]);
}

#[test]
fn the_message_id_of_a_snapshot_is_no_id_of_a_record() {
    let lines = [
        user("u1", None, "a"),
        reply("u2", Some("u1")),
        user("u3", Some("u2"), "b"),
        snapshot("u1"),
        snapshot("u3"),
        reply("u4", Some("u3")),
    ];
    let summary = read(&text(&lines));
    assert_eq!((summary.counts().messages, summary.counts().prompts), (4, 2));
    assert_eq!(notices(&summary), []);
}

#[test]
fn a_line_that_stands_twice_counts_once_and_one_that_differs_counts_and_is_told() {
    let (one, two) = (at(user("u1", None, "a"), 1), at(user("u2", Some("u1"), "b"), 2));
    let twice = read(&text(&[one.clone(), two.clone(), two.clone()]));
    assert_eq!((twice.counts().messages, twice.counts().prompts, notices(&twice)), (2, 2, vec![]));
    let other = at(user("u2", Some("u1"), "something else"), 2);
    let other = read(&text(&[one, two, other]));
    assert_eq!(other.counts().prompts, 3);
    assert_eq!(
        notices(&other).iter().map(|(_, kind)| kind.clone()).collect::<Vec<_>>(),
        [NoticeKind::SameId]
    );
}

#[test]
fn what_a_second_compaction_writes_again_counts_once() {
    let mut lines = Vec::new();
    let turn = |prefix: &str, number: u32, parent: Option<String>| {
        let id = format!("{prefix}{number}");
        // Prompts and replies in turn.
        let mut line = if number % 2 == 1 {
            user(&id, parent.as_deref(), &format!("t{number}"))
        } else {
            reply(&id, parent.as_deref())
        };
        if number.is_multiple_of(2) {
            line["message"]["id"] = json!(format!("msg_{number}"));
            line["requestId"] = json!(format!("req_{number}"));
        }
        at(line, number)
    };
    for number in 1..=6 {
        lines.push(turn("u", number, (number > 1).then(|| format!("u{}", number - 1))));
    }
    lines.push(at(boundary("b1", "u6"), 7));
    for number in 7..=9 {
        lines.push(turn(
            "u",
            number,
            Some(if number == 7 { "b1".into() } else { format!("u{}", number - 1) }),
        ));
    }
    let before = read(&text(&lines)).counts();
    assert_eq!((before.prompts, before.messages, before.all_messages, before.replies), (5, 3, 9, 4));
    for number in 1..=6 {
        lines.push(turn("v", number, (number > 1).then(|| format!("v{}", number - 1))));
    }
    let copied = read(&text(&lines)).counts();
    assert_eq!((copied.prompts, copied.messages, copied.all_messages), (5, 3, 9));
    assert_eq!((copied.replies, copied.usage), (4, before.usage));
    lines.push(at(boundary("b2", "v6"), 20));
    lines.push(at(user("u10", Some("v6"), "next"), 21));
    lines.push(at(reply("u11", Some("u10")), 22));
    let summary = read(&text(&lines));
    let counts = summary.counts();
    assert_eq!((counts.prompts, counts.messages, counts.all_messages, counts.compactions), (6, 2, 11, 2));
    assert_eq!(notices(&summary), []);
}

#[test]
fn results_of_tools_that_were_called_side_by_side_are_all_on_the_way() {
    let call = |id: &str, parent: &str| {
        let mut line = reply(id, Some(parent));
        (line["message"]["id"], line["requestId"]) = (json!("msg_1"), json!("req_1"));
        line
    };
    let result = |id: &str, parent: &str| {
        let content = json!([{"type": "tool_result", "tool_use_id": "t", "content": "out"}]);
        record("user", id, Some(parent), json!({"message": {"role": "user", "content": content}}))
    };
    let mut lines = vec![user("u1", None, "a"), call("a1", "u1"), call("a2", "a1"), call("a3", "a2")];
    lines.extend([result("r1", "a1"), result("r2", "a2"), result("r3", "a3"), reply("b", Some("r3"))]);
    let counts = read(&text(&lines)).counts();
    assert_eq!((counts.messages, counts.replies, counts.prompts), (8, 2, 1));
    // Also where they come in between.
    let mixed =
        [user("u1", None, "a"), call("a1", "u1"), result("r1", "a1"), call("a2", "a1"), result("r2", "a2")];
    assert_eq!(read(&text(&mixed)).counts().messages, 5);
}

#[test]
fn a_branch_that_was_left_does_not_count_as_messages_and_does_as_prompts() {
    let lines = [
        user("u1", None, "a"),
        reply("a1", Some("u1")),
        user("u2", Some("a1"), "wrong"),
        reply("a2", Some("u2")),
        user("u3", Some("a1"), "better"),
        reply("a3", Some("u3")),
    ];
    let counts = read(&text(&lines)).counts();
    assert_eq!((counts.messages, counts.prompts, counts.replies), (4, 3, 3));
}

#[test]
fn a_boundary_without_anchors_and_with_a_missing_parent_ends_nothing() {
    let mut bare = record("system", "b1", None, json!({"subtype": "compact_boundary"}));
    bare["compactMetadata"] = json!({"trigger": "auto"});
    let mut lines = vec![user("u1", None, "a"), reply("a1", Some("u1")), bare];
    let mut summary = user("s", Some("b1"), "This session is being continued");
    summary["isCompactSummary"] = json!(true);
    lines.extend([summary, user("u2", Some("s"), "b")]);
    let counts = read(&text(&lines)).counts();
    assert_eq!((counts.messages, counts.all_messages, counts.prompts, counts.compactions), (2, 4, 2, 1));
    lines[2] = boundary("b1", "nowhere");
    let summary = read(&text(&lines));
    assert_eq!(summary.counts().all_messages, 4);
    assert_eq!(notices(&summary).len(), 1);
}
