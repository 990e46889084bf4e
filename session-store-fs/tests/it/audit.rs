//! The audit log: order, numbers, damage.

use std::fs;
use std::io::Write as _;
use std::path::PathBuf;

use session_core::{AuditEvent, AuditSeq, RunId, SessionStore as _, Timestamp};
use session_store_fs::FsStore;

use crate::{Fixture, key};

fn event(detail: &str) -> AuditEvent {
    let mut event = AuditEvent::new(Timestamp::EPOCH, RunId::new(uuid::Uuid::nil()), "run_finished");
    event.detail = Some(detail.to_owned());
    event
}

async fn append(at: &Fixture, detail: &str) -> u64 {
    at.store.append_audit(&key("a"), &event(detail)).await.unwrap().0
}

/// Numbers and details.
async fn read(at: &Fixture, after: Option<u64>) -> Vec<(u64, String)> {
    let entries = at.store.audit(&key("a"), after.map(AuditSeq)).await.unwrap();
    entries.into_iter().map(|entry| (entry.seq.0, entry.event.detail.unwrap())).collect()
}

fn log(at: &Fixture) -> PathBuf {
    at.path("audit/a@claude.jsonl")
}

fn add_raw(at: &Fixture, bytes: &[u8]) {
    fs::File::options().append(true).open(log(at)).unwrap().write_all(bytes).unwrap();
}

#[tokio::test]
async fn entries_keep_their_order_and_numbers_grow() {
    let at = Fixture::new();
    assert!(read(&at, None).await.is_empty());
    for i in 1..=5 {
        assert_eq!(append(&at, &format!("e{i}")).await, i);
    }
    let all: Vec<_> = (1..=5).map(|i| (i, format!("e{i}"))).collect();
    assert_eq!(read(&at, None).await, all);
    assert_eq!(read(&at, Some(3)).await, all[3..]);
    assert!(read(&at, Some(5)).await.is_empty());
    // Another key has its own numbers; a removed record leaves the log alone.
    assert_eq!(at.store.append_audit(&key("b"), &event("x")).await.unwrap(), AuditSeq(1));
    at.put(&key("a"), "x").await;
    let _ = at.store.remove(&key("a"), &session_core::Guard::Any).await.unwrap();
    assert_eq!(append(&at, "e6").await, 6);
    assert_eq!(FsStore::open(at.dir.path()).unwrap().audit(&key("a"), None).await.unwrap().len(), 6);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn of_racing_writers_none_is_lost() {
    let at = Fixture::new();
    let tasks: Vec<_> = (0..6)
        .map(|writer| {
            let store = FsStore::open(at.dir.path()).unwrap();
            tokio::spawn(async move {
                let mut numbers = Vec::new();
                for i in 0..10 {
                    let event = event(&format!("{writer}-{i}"));
                    numbers.push(store.append_audit(&key("a"), &event).await.unwrap().0);
                }
                assert!(numbers.is_sorted());
                numbers
            })
        })
        .collect();
    let mut numbers = Vec::new();
    for task in tasks {
        numbers.extend(task.await.unwrap());
    }
    numbers.sort_unstable();
    assert_eq!(numbers, (1..=60).collect::<Vec<_>>());
    assert_eq!(read(&at, None).await.iter().map(|(seq, _)| *seq).collect::<Vec<_>>(), numbers);
}

#[tokio::test]
async fn an_entry_cut_off_anywhere_costs_nothing_else() {
    let at = Fixture::new();
    append(&at, "e1").await;
    let one = fs::read(log(&at)).unwrap();
    append(&at, "e2").await;
    let two = fs::read(log(&at)).unwrap();
    for cut in one.len()..two.len() {
        fs::write(log(&at), &two[..cut]).unwrap();
        // Before the repair, and after it.
        let before = read(&at, None).await;
        let seq = append(&at, "e3").await;
        let after = read(&at, None).await;
        let whole = cut == two.len() - 1;
        let e2 = whole.then(|| (2, "e2".to_owned()));
        let expected: Vec<_> = std::iter::once((1, "e1".to_owned())).chain(e2).collect();
        assert_eq!(before, expected, "{cut}");
        assert_eq!(seq, if whole { 3 } else { 2 }, "{cut}");
        assert_eq!(after, [expected, vec![(seq, "e3".to_owned())]].concat(), "{cut}");
    }
}

#[tokio::test]
async fn damaged_lines_are_passed_over_and_numbers_still_grow() {
    let at = Fixture::new();
    append(&at, "e1").await;
    append(&at, "e2").await;
    add_raw(&at, b"garbage\n\xff\xfe\x00\n{\"seq\":\"x\"}\n\n{\"seq\":2}\n");
    assert_eq!(append(&at, "e3").await, 3);
    // Damage longer than the part of the end that is read as a rule.
    add_raw(&at, &vec![b'x'; 300_000]);
    assert_eq!(append(&at, "e4").await, 4);
    add_raw(&at, &[b'\n'; 70_000]);
    assert_eq!(append(&at, "e5").await, 5);
    let details: Vec<_> = read(&at, None).await.into_iter().map(|(_, detail)| detail).collect();
    assert_eq!(details, ["e1", "e2", "e3", "e4", "e5"]);
}

#[tokio::test]
async fn an_entry_longer_than_the_part_that_is_read_counts() {
    let at = Fixture::new();
    assert_eq!(append(&at, "e1").await, 1);
    assert_eq!(append(&at, &"long\n".repeat(50_000)).await, 2);
    assert_eq!(append(&at, "e3").await, 3);
    assert_eq!(read(&at, Some(1)).await.len(), 2);
}
