//! What crashes leave in a file.

use serde_json::json;
use session_core::history::NoticeKind;

use crate::lines::{entry, notices, read, reply, snapshot, text, user, uuid};

/// So many good lines, every one after the one before.
fn good(from: usize, to: usize) -> Vec<u8> {
    let lines: Vec<_> = (from..to)
        .map(|at| {
            let parent = at.checked_sub(1).map(|before| format!("u{before}"));
            let mut line = user(&format!("u{at}"), parent.as_deref(), &format!("turn {at}"));
            line["timestamp"] = json!(format!("2026-03-01T10:00:{:02}.000Z", at % 60));
            line
        })
        .collect();
    text(&lines)
}

#[test]
fn a_record_glued_to_half_of_another_is_recovered_with_one_notice() {
    let half = br#"{"type":"pr-link","sessionId":"S1","prNu"#;
    let before = good(0, 40);
    let file = [&before[..], half, &good(40, 100)].concat();
    let summary = read(&file);
    assert_eq!((summary.counts().prompts, summary.counts().messages), (100, 100));
    assert_eq!((summary.counts().skipped, summary.counts().lines), (1, 100));
    assert_eq!(notices(&summary), [(before.len() as u64, NoticeKind::Recovered)]);
}

#[test]
fn half_a_record_that_ends_in_a_text_swallows_nothing_of_the_next() {
    for half in [
        r#"{"type":"user","message":{"role":"user","content":"half of a te"#,
        r#"{"type":"user","mes"#,
        "{",
        "xx",
    ] {
        let file = [half.as_bytes(), &good(0, 3)].concat();
        assert_eq!((read(&file).counts().prompts, read(&file).counts().skipped), (3, 1), "{half}");
    }
}

#[test]
fn a_run_of_nuls_is_left_out_wherever_it_is() {
    let (before, nuls) = (good(0, 20), vec![0; 300]);
    let line = [&before[..], &nuls, b"\n", &good(20, 40)].concat();
    assert_eq!(read(&line).counts().prompts, 40);
    assert_eq!(notices(&read(&line)), [(before.len() as u64, NoticeKind::SkippedLine)]);

    let tail = [&before[..], &[0; 1200]].concat();
    assert_eq!((read(&tail).counts().prompts, read(&tail).counts().skipped), (20, 0));
    assert_eq!(notices(&read(&tail)), [(before.len() as u64, NoticeKind::TornTail)]);

    let glued = [&before[..], &nuls, &good(20, 40)].concat();
    assert_eq!(read(&glued).counts().prompts, 40);
    assert_eq!(notices(&read(&glued)), [(before.len() as u64, NoticeKind::Recovered)]);
}

#[test]
fn nuls_inside_of_a_record_make_it_none() {
    let mut file = good(0, 3);
    let at = file.len() - 60;
    file[at..at + 4].fill(0);
    assert_eq!((read(&file).counts().prompts, read(&file).counts().skipped), (2, 1));
}

#[test]
fn lines_end_at_newlines_only_and_may_end_in_crlf() {
    let lines = [user("u1", None, "left\u{2028}right\u{85}end\rhere")];
    let crlf: Vec<u8> = format!("{}\r\n\r\n \n", lines[0]).into_bytes();
    let summary = read(&crlf);
    assert_eq!((summary.counts().prompts, summary.counts().skipped, summary.counts().lines), (1, 0, 3));
    assert_eq!(entry(&lines).first_prompt.as_deref(), Some("left\u{2028}right\u{85}end\rhere"));
}

#[test]
fn a_last_line_that_is_cut_off_is_told_and_one_without_an_end_is_taken() {
    let whole = good(0, 2);
    let open = &whole[..whole.len() - 1];
    let (torn, end) = (read(&open[..open.len() - 1]), read(open));
    assert_eq!((end.counts().prompts, end.counts().lines, notices(&end)), (2, 2, vec![]));
    assert_eq!(
        (torn.counts().prompts, torn.counts().lines, torn.counts().bytes),
        (1, 2, open.len() as u64 - 1)
    );
    assert_eq!(notices(&torn).len(), 1);
}

#[test]
fn a_line_over_the_limit_is_left_out_and_the_rest_is_read() {
    let long = format!("{{\"type\":\"user\",\"x\":\"{}\"}}\n", "y".repeat(33 << 20));
    let before = good(0, 1);
    let file = [&before[..], long.as_bytes(), &good(1, 3)].concat();
    let summary = read(&file);
    assert_eq!((summary.counts().prompts, summary.counts().lines, summary.counts().skipped), (3, 4, 1));
    assert_eq!(notices(&summary), [(before.len() as u64, NoticeKind::LineTooLong)]);
    assert_eq!(summary.counts().bytes, file.len() as u64);
}

#[test]
fn fields_that_are_not_what_they_were_cost_nothing_but_themselves() {
    let mut odd = user("u1", None, "still here");
    odd["cwd"] = json!(7);
    odd["isSidechain"] = json!("no");
    odd["timestamp"] = json!({"at": 1});
    odd["brandNew"] = json!([[{"a": "\\\""}], null, 1e9]);
    let unknown = json!({"type": "never-seen", "payload": {"type": "user"}});
    let entry = entry(&[odd, unknown, json!({"type": "user", "uuid": uuid("x")})]);
    assert_eq!((entry.turns, entry.skipped_lines, entry.cwd), (Some(1), 0, None));
}

#[test]
fn kinds_that_exist_on_disk_only_are_no_damage() {
    let mut lines = vec![snapshot("u1"), user("u1", None, "hello"), reply("a1", Some("u1"))];
    for kind in
        ["queue-operation", "attachment", "last-prompt", "pr-link", "ai-title", "mode", "permission-mode"]
    {
        lines.push(json!({"type": kind, "sessionId": "s"}));
    }
    let summary = read(&text(&lines));
    assert_eq!((summary.counts().messages, summary.counts().skipped), (2, 0));
    // Events of the stream are no records of the file, though they look alike.
    let stream = json!({"type": "assistant", "session_id": "s", "message": {"id": "m", "content": []}});
    assert_eq!(read(&text(&[stream])).counts().skipped, 0);
}

#[test]
fn times_that_are_none_are_unknown() {
    let at = |time: serde_json::Value| {
        let mut line = user("u1", None, "x");
        line["timestamp"] = time;
        entry(&[line]).updated.map(|time| time.to_string())
    };
    let noon = Some("2026-03-01T10:00:00Z".to_owned());
    assert_eq!(at(json!("2026-03-01T10:00:00Z")), noon);
    assert_eq!(at(json!("2026-03-01T10:00:00.000Z")), noon);
    assert_eq!(at(json!("2026-03-01T10:00:00+08:00")), Some("2026-03-01T02:00:00Z".to_owned()));
    assert_eq!(at(json!(1_772_359_200)), noon);
    assert_eq!(at(json!(1_772_359_200_000_u64)), noon);
    assert_eq!(at(json!("1772359200")), noon);
    for none in [json!(null), json!("yesterday"), json!(-1), json!(9e18), json!("2026-13-01T10:00:00.000Z")] {
        assert_eq!(at(none.clone()), None, "{none}");
    }
    // As written, whatever the clock says.
    assert_eq!(at(json!("2999-02-28T10:00:00.000Z")).as_deref(), Some("2999-02-28T10:00:00Z"));
    assert_eq!(at(json!("2028-02-29T23:59:59.999Z")).as_deref(), Some("2028-02-29T23:59:59.999Z"));
}
