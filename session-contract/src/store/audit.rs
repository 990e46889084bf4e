//! The audit log of a key (contract 8).

use session_core::{AttemptNote, AuditEvent, AuditSeq, Guard, NativeId, Removed, RunId, Timestamp};

use super::Subject;
use super::stage::{Stage, answer, event, key};

/// The numbers and details of a log, after a number.
async fn read(at: &Stage<'_>, after: Option<AuditSeq>) -> Vec<(AuditSeq, String)> {
    let log = answer(at.store().audit(&key("a"), after).await);
    log.into_iter().map(|entry| (entry.seq, entry.event.detail.unwrap_or_default())).collect()
}

async fn append(at: &Stage<'_>, detail: &str) -> (AuditSeq, String) {
    (answer(at.store().append_audit(&key("a"), &event(detail)).await), detail.to_owned())
}

/// Oldest first, with the numbers that were told, each greater than the one before.
pub(super) fn entries_keep_their_order(subject: &Subject) {
    subject.every(async |at| {
        let mut told = Vec::new();
        // What is equal is not the same; the order is not one of the text.
        for detail in ["9", "1", "5", "5", "", "z", "a", "10", "2", "11", "3", "0"] {
            told.push(append(&at, detail).await);
            assert_eq!(read(&at, None).await, told);
        }
        assert!(told.is_sorted_by(|a, b| a.0 < b.0), "numbers do not grow: {told:?}");
    });
}

/// `after` leaves out what has that number or a lower one, and nothing else.
pub(super) fn entries_are_read_after_a_number(subject: &Subject) {
    subject.every(async |at| {
        let mut told = Vec::new();
        for n in 0..12 {
            told.push(append(&at, &format!("e{n}")).await);
        }
        for n in 0..told.len() {
            assert_eq!(read(&at, Some(told[n].0)).await, told[n + 1..], "after {:?}", told[n].0);
        }
        assert_eq!(read(&at, Some(AuditSeq(u64::MAX))).await, []);
        assert_eq!(read(&at, None).await, told);
    });
}

/// A removal, or a document set aside, leaves the log and its numbers alone.
pub(super) fn a_log_outlives_its_document(subject: &Subject) {
    subject.every(async |at| {
        let (store, key) = (at.store(), key("a"));
        let mut told = vec![append(&at, "before any document").await];
        for round in 0..2 {
            at.put(&key, "x").await;
            told.push(append(&at, "with it").await);
            if round == 0 {
                assert_eq!(answer(store.remove(&key, &Guard::Any).await), Removed::Done);
            } else {
                assert!(answer(store.set_aside(&key, &Guard::Any).await).is_some());
            }
            assert_eq!(read(&at, None).await, told, "in round {round}");
            told.push(append(&at, "after it").await);
        }
        assert_eq!(read(&at, None).await, told);
        assert!(told.is_sorted_by(|a, b| a.0 < b.0), "numbers do not grow: {told:?}");
    });
}

/// Every part of an event comes back as it was: line ends, quotes, controls, what is long, what is no code of today.
pub(super) fn text_in_a_log_is_opaque(subject: &Subject) {
    subject.every(async |at| {
        let texts = [
            "two\nlines\r\n\n",
            "\"quoted\" \\ {\"seq\":1}",
            "\0\u{1}\u{7f}\u{85}\u{2028}\u{feff}",
            "e\u{301}\u{1f600}\u{202e}",
            "",
            " ",
            &"long\n".repeat(40_000),
        ];
        let mut told = Vec::new();
        for (n, text) in texts.iter().enumerate() {
            let millis = [0, 1, -1, 1_700_000_000_999, i64::MAX, i64::MIN, 1_000][n];
            let run = RunId::new(uuid::Uuid::from_u128(u128::MAX - n as u128));
            let mut event = AuditEvent::new(Timestamp::from_millis(millis), run, *text);
            event.detail = Some((*text).to_owned());
            event.why = Some(format!("why {text}"));
            event.before = Some(NativeId::new(*text));
            event.attempts.push(AttemptNote {
                attempt: (*text).to_owned(),
                asked: None,
                seen: Some(NativeId::new("id")),
                verdict: "a_verdict_of_tomorrow".to_owned(),
                activity: String::new(),
                ended_by: None,
                said: Some((*text).to_owned()),
            });
            let seq = answer(at.store().append_audit(&key("a"), &event).await);
            told.push((seq, event));
        }
        let log = answer(at.store().audit(&key("a"), None).await);
        assert_eq!(log.len(), told.len());
        for (entry, (seq, event)) in log.into_iter().zip(told) {
            assert!(entry.event == event, "came back as {:.300}", format!("{:?}", entry.event));
            assert_eq!(entry.seq, seq);
        }
    });
}
