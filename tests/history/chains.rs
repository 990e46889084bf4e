//! How records follow each other, and what the model sees of them.

use rejoin::core::history::{NoticeKind, PageQuery, TranscriptPage};
use serde_json::{Value, json};

use crate::desk::{Desk, boundary, call, returned, said, summary, texts, user, uuid};

/// Two views: what was said, all of it, and what the model would be shown.
#[test]
fn a_parent_that_was_never_written_cuts_nothing_off() {
    let desk = Desk::of(&[
        user("u1", None, "one"),
        said("u2", "u1", "two"),
        user("u3", Some("x9"), "three"),
        said("u4", "u3", "four"),
    ]);
    assert_eq!(texts(&desk.last(9)), ["one", "two", "three", "four"]);
    let restored = desk.restored();
    assert_eq!((restored.turns, restored.all_messages), (2, 4));
    assert!(restored.notices.iter().any(|notice| notice.kind == NoticeKind::LinkMissing), "{restored:?}");
}

#[test]
fn a_snapshot_that_names_a_message_is_not_the_message() {
    let snapshot = |of| json!({"type": "file-history-snapshot", "messageId": uuid(of), "snapshot": {"messageId": uuid(of)}});
    let desk = Desk::of(&[
        user("u1", None, "one"),
        said("u2", "u1", "two"),
        user("u3", Some("u2"), "three"),
        snapshot("u1"),
        snapshot("u3"),
    ]);
    assert_eq!(texts(&desk.last(9)), ["one", "two", "three"]);
    let restored = desk.restored();
    assert_eq!((restored.turns, restored.all_messages, restored.notices), (2, 3, vec![]));
}

/// Two turns, a compaction, a third turn, the first two once more under ids of their own, another compaction, a fourth turn.
fn compacted_twice() -> Vec<Value> {
    let mut lines = vec![
        user("u1", None, "1"),
        said("a2", "u1", "2"),
        user("u3", Some("a2"), "3"),
        said("a4", "u3", "4"),
    ];
    lines.push(boundary("b1", "a4", json!({"trigger": "manual"})));
    lines.extend([summary("s5", "b1", "so far"), user("u7", Some("s5"), "7"), said("a8", "u7", "8")]);
    // The same again, under ids of their own.
    lines.extend([
        user("v1", Some("a8"), "1"),
        said("w2", "v1", "2"),
        user("v3", Some("w2"), "3"),
        said("w4", "v3", "4"),
    ]);
    for (copy, of) in [(9, "a2"), (11, "a4")] {
        lines[copy]["message"]["id"] = json!(format!("msg_{of}"));
    }
    lines.push(boundary("b2", "w4", json!({"trigger": "manual"})));
    lines.extend([summary("s9", "b2", "all of it"), user("u10", Some("s9"), "10"), said("a11", "u10", "11")]);
    lines
}

#[test]
fn what_a_second_compaction_writes_again_counts_once() {
    let desk = Desk::of(&compacted_twice());
    let once = ["1", "2", "3", "4", "boundary", "summary", "7", "8", "boundary", "summary", "10", "11"];
    assert_eq!(texts(&desk.last(9)), once);
    let restored = desk.restored();
    assert_eq!(restored.turns, 4, "{restored:?}");
    assert_eq!(restored.usage.output_tokens, 4);
    assert_eq!(restored.live_messages, 3);
    let boundaries: Vec<_> =
        restored.boundaries.iter().map(|it| (it.turns_before, it.summary.as_deref())).collect();
    assert_eq!(boundaries, [(2, Some("so far")), (3, Some("all of it"))]);
}

/// Where a session stood before a prompt is where a branch of it stands, whatever a compaction wrote again since.
#[test]
fn a_branch_of_what_was_compacted_twice_is_what_it_was_then() {
    let lines = compacted_twice();
    let (desk, copies) = (Desk::of(&lines), 8);
    // After each turn, within and after what was written again.
    for until in [2, 4, copies, copies + 2, lines.len() - 2, lines.len()] {
        let then = Desk::of(&lines[..until]);
        let branch = desk.branch(&then.spot());
        assert_eq!(texts(&branch.last(9)), texts(&then.last(9)), "{until}");
        let (is, was) = (branch.restored(), then.restored());
        assert_eq!((is.turns, is.live_messages), (was.turns, was.live_messages), "{until}");
        assert_eq!(branch.spot().turns, then.spot().turns, "{until}");
    }
}

/// Too long for a look at all of it, and read in pages of any size, from both ends.
#[test]
fn pages_leave_out_what_was_written_again_however_far_back_it_stands() {
    let at = |number: u64| format!("2026-05-08T18:{:02}:{:02}.000Z", number / 60, number % 60);
    let turn = |prefix: &str, number: u64| {
        let (name, answer) = (format!("{prefix}u{number}"), format!("{prefix}a{number}"));
        let long = format!("answer {number} {}", "x".repeat(500));
        let mut lines = [user(&name, None, &format!("prompt {number}")), said(&answer, &name, &long)];
        for (line, second) in lines.iter_mut().zip([2 * number, 2 * number + 1]) {
            line["timestamp"] = json!(at(second));
        }
        lines[1]["message"]["id"] = json!(format!("msg_{number}"));
        lines
    };
    let compacted = |number: u64| {
        let name = format!("b{number}");
        let mut lines = [
            boundary(&name, "", json!({"trigger": "manual"})),
            summary(&format!("s{number}"), &name, "so far"),
        ];
        lines.iter_mut().for_each(|line| line["timestamp"] = json!(at(2 * number + 1)));
        lines
    };
    let mut lines: Vec<_> = (0..400).flat_map(|number| turn("", number)).collect();
    lines.extend(compacted(399));
    lines.extend((400..420).flat_map(|number| turn("", number)));
    lines.extend((0..400).flat_map(|number| turn("v", number)));
    lines.extend(compacted(419));
    lines.extend((420..425).flat_map(|number| turn("", number)));
    lines.extend((0..420).flat_map(|number| turn("w", number)));
    lines.extend(compacted(424));
    lines.extend((425..430).flat_map(|number| turn("", number)));
    let desk = Desk::of(&lines);
    let expected: Vec<_> = (0..430).map(|number| format!("prompt {number}")).collect();
    let prompts = |page: &TranscriptPage| {
        texts(page).into_iter().filter(|text| text.starts_with("prompt")).collect::<Vec<_>>()
    };
    for turns in [50, 1000] {
        let mut page = desk.last(turns);
        let mut all = prompts(&page);
        assert_eq!(all.len(), turns.min(430));
        while let Some(cursor) = page.before {
            page = desk.page(&PageQuery::Before { cursor, turns });
            all = [prompts(&page), all].concat();
        }
        assert!(all == expected, "{turns}: {all:?}");
    }
    let (mut after, mut forth) = (desk.last(429).before, Vec::new());
    while let Some(cursor) = after.take() {
        let page = desk.page(&PageQuery::After { cursor, records: 90 });
        forth.extend(prompts(&page));
        after = page.after.filter(|_| !page.entries.is_empty());
    }
    assert!(forth == expected[1..], "{forth:?}");
}

#[test]
fn a_line_that_stands_twice_is_one_and_another_with_its_id_is_another() {
    let lines = [
        user("u1", None, "one"),
        said("a2", "u1", "two"),
        said("a2", "u1", "two"),
        user("u3", Some("a2"), "three"),
        user("u3", Some("a2"), "another"),
    ];
    let desk = Desk::of(&lines);
    assert_eq!(texts(&desk.last(9)), ["one", "two", "three", "another"]);
    let cursor = desk.last(2).before.unwrap();
    assert_eq!(texts(&desk.page(&PageQuery::After { cursor, records: 9 })), ["three", "another"]);
    // A prompt that stands twice does not fill a page of one turn, nor begin two.
    let twice = Desk::of(&[lines[0].clone(), lines[0].clone(), lines[1].clone()]);
    let page = twice.last(1);
    assert_eq!((texts(&page), page.before), (vec!["one".to_owned(), "two".to_owned()], None));
    let restored = desk.restored();
    assert_eq!((restored.turns, restored.notices[0].kind.clone()), (3, NoticeKind::SameId));
}

#[test]
fn a_boundary_without_anchors_is_told_and_the_talk_is_whole() {
    let lines = |metadata| {
        vec![
            user("u1", None, "one"),
            said("a2", "u1", "two"),
            boundary("b1", "a2", metadata),
            summary("s3", "b1", "so far"),
            user("u4", Some("s3"), "four"),
            said("a5", "u4", "five"),
        ]
    };
    for (metadata, anchored) in [
        (json!({"trigger": "auto", "preTokens": 10, "postTokens": 2}), false),
        (json!(null), false),
        (
            json!({"trigger": "auto", "preservedSegment": {"headUuid": "h", "anchorUuid": "a", "tailUuid": "t"}}),
            true,
        ),
    ] {
        let desk = Desk::of(&lines(metadata.clone()));
        assert_eq!(texts(&desk.last(9)), ["one", "two", "boundary", "summary", "four", "five"]);
        let restored = desk.restored();
        let [boundary] = &restored.boundaries[..] else { panic!("{restored:?}") };
        assert_eq!((boundary.anchored, boundary.turns_before), (anchored, 1), "{metadata}");
        assert_eq!(boundary.summary.as_deref(), Some("so far"));
        assert_eq!(boundary.time.unwrap().as_millis(), 1_778_265_000_000);
        let page = desk.last(9);
        assert_eq!(boundary.span, page.entries[2].span);
        // Both readings: what follows the boundary, and everything.
        assert_eq!((restored.live_messages, restored.all_messages), (3, 5));
    }
}

#[test]
fn calls_without_a_result_are_open_in_the_last_turn_alone() {
    let mut lines = vec![user("u1", None, "one"), call("a2", "u1", "t1")];
    let open =
        |desk: Desk| -> Vec<String> { desk.restored().open_calls.into_iter().map(|call| call.id).collect() };
    assert_eq!(open(Desk::of(&lines)), ["t1"]);
    lines.extend([call("a3", "u1", "t2"), returned("r4", "a2", "t1")]);
    assert_eq!(open(Desk::of(&lines)), ["t2"]);
    let mut answered = lines.clone();
    answered.push(returned("r5", "a3", "t2"));
    assert_eq!(open(Desk::of(&answered)), [""; 0]);
    lines.extend([user("u6", Some("r4"), "go on"), said("a7", "u6", "so")]);
    assert_eq!(open(Desk::of(&lines)), [""; 0]);
}
