//! Files that are not quite what they should be.

use rejoin::core::history::{EntryKind, NoticeKind, TranscriptPage};
use serde_json::{Value, json};

use crate::desk::{Desk, jsonl, said, texts, user};

fn notices(page: &TranscriptPage) -> Vec<(u64, NoticeKind)> {
    page.notices.iter().map(|notice| (notice.offset.unwrap(), notice.kind.clone())).collect()
}

fn good(count: usize) -> Vec<Value> {
    let mut lines: Vec<_> = (0..count)
        .map(|at| said(&format!("a{at}"), &format!("a{}", at.saturating_sub(1)), &format!("answer {at}")))
        .collect();
    lines[0]["parentUuid"] = json!(null);
    lines
}

#[test]
fn half_a_record_with_a_whole_one_behind_it_costs_nothing_else() {
    let head = jsonl(&good(40));
    let glued = format!("{{\"type\":\"pr-link\",\"sessionId\":\"S1\",\"prNu{}\n", user("u1", None, "glued"));
    let desk = Desk::new(format!("{head}{glued}{}", jsonl(&good(59))));
    let page = desk.last(usize::MAX);
    assert_eq!(page.entries.len(), 100);
    assert_eq!(notices(&page), [(head.len() as u64, NoticeKind::Recovered)]);
    assert_eq!(texts(&page)[40], "glued");
    assert_eq!(texts(&desk.last(1)).len(), 60);
    let restored = desk.restored();
    assert_eq!((restored.turns, restored.notices), (1, page.notices));
}

#[test]
fn nul_bytes_take_nothing_with_them() {
    let half = jsonl(&good(20));
    let (few, many) = ("\0".repeat(300), "\0".repeat(1200));
    let at = half.len() as u64;
    for (text, entries, notice) in [
        (format!("{half}{few}\n{half}"), 40, NoticeKind::SkippedLine),
        (format!("{half}{many}"), 20, NoticeKind::TornTail),
        (format!("{half}{few}{}\n", user("u1", None, "behind")), 21, NoticeKind::Recovered),
    ] {
        let desk = Desk::new(text);
        let page = desk.last(usize::MAX);
        assert_eq!((page.entries.len(), notices(&page)), (entries, vec![(at, notice.clone())]));
        assert_eq!(desk.restored().notices, page.notices, "{notice:?}");
    }
}

#[test]
fn separators_of_other_readers_end_no_line() {
    let text = "left\u{2028}right\u{85}end\u{2029}.";
    let lines = [user("u1", None, text), said("a2", "u1", "with \r inside")];
    let desk = Desk::new(jsonl(&lines).replace('\n', "\r\n"));
    let page = desk.last(5);
    assert_eq!((texts(&page), page.notices), (vec![text.to_owned(), "with \r inside".to_owned()], vec![]));
}

/// A field that changed its type, records that nobody knows, and such without what they always had.
#[test]
fn what_another_version_wrote_is_read() {
    let mut changed = user("u1", None, "hi");
    changed["isMeta"] = json!("no");
    changed["timestamp"] = json!(17);
    let desk =
        Desk::of(&[changed, json!({"type": "new", "x": 1}), json!({"type": "user"}), said("a2", "u1", "ho")]);
    let page = desk.last(5);
    assert_eq!((texts(&page), page.notices), (vec!["hi".to_owned(), "ho".to_owned()], vec![]));
    let unknown = EntryKind::Unknown { name: "new".to_owned(), record: json!({"type": "new", "x": 1}) };
    assert_eq!(page.entries[1].entry.kind, unknown);
}

/// The same exchange as the file and the program's output have it.
#[test]
fn lines_of_the_programs_output_are_no_records() {
    let printed = json!({"type": "assistant", "session_id": "s", "uuid": "x",
        "message": {"id": "m", "role": "assistant", "content": [{"type": "text", "text": "ho"}]}});
    let known = [
        "queue-operation",
        "attachment",
        "last-prompt",
        "pr-link",
        "ai-title",
        "mode",
        "permission-mode",
        "file-history-snapshot",
    ];
    let mut lines = vec![user("u1", None, "hi"), said("a2", "u1", "ho"), printed];
    lines.extend(known.map(|kind| json!({"type": kind, "sessionId": "s"})));
    let page = Desk::of(&lines).last(5);
    assert_eq!(texts(&page), ["hi", "ho"]);
    assert_eq!(page.entries.len(), 2 + known.len());
    let kinds: Vec<_> = page.notices.iter().map(|notice| notice.kind.clone()).collect();
    assert_eq!(kinds, [NoticeKind::SkippedLine]);
    assert!(!page.entries.iter().any(|it| matches!(it.entry.kind, EntryKind::Unknown { .. })));
}
