//! Writers in several processes, and writers that are killed.

use std::process::Command;

use libtest_mimic::Trial;
use session_core::{Document, Guard, SessionStore as _};
use session_store_fs::FsStore;

use crate::child::event;
use crate::parent::{Running, key, now, trial};

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        trial("no_increment_of_racing_processes_is_lost", races),
        trial("a_killed_writer_leaves_a_whole_record_and_no_lock", killed),
    ]
}

fn races() {
    const PROCESSES: u64 = 4;
    const TIMES: u64 = 15;
    let dir = tempfile::tempdir().unwrap();
    let store = FsStore::open(dir.path()).unwrap();
    let _ = now(store.save(&key("count"), &Document::new(b"0".to_vec()), &Guard::Absent, None)).unwrap();
    let children: Vec<_> = (0..PROCESSES)
        .map(|_| {
            let mut command = Command::new(std::env::current_exe().unwrap());
            command.args(["child", "increments"]).arg(dir.path()).arg(TIMES.to_string());
            Running::spawn(&mut command)
        })
        .collect();
    children.into_iter().for_each(Running::end);
    let stored = now(store.load(&key("count"))).unwrap().unwrap();
    assert_eq!(stored.document.as_bytes(), (PROCESSES * TIMES).to_string().as_bytes());
    let numbers: Vec<_> = now(store.audit(&key("count"), None)).unwrap().iter().map(|e| e.seq.0).collect();
    assert!(numbers.len() as u64 >= PROCESSES * TIMES);
    assert_eq!(numbers, (1..=numbers.len() as u64).collect::<Vec<_>>());
}

fn killed() {
    let dir = tempfile::tempdir().unwrap();
    let store = FsStore::open(dir.path()).unwrap();
    let mut acknowledged = (0, 0);
    for round in 0..30_u64 {
        let mut child = Running::start("write_for_ever", dir.path());
        for _ in 0..=round % 7 {
            let line = child.line();
            let (length, seq) = line.split_once(' ').unwrap();
            acknowledged = (length.parse().unwrap(), seq.parse().unwrap());
        }
        // Somewhere in the next writes, another place each time.
        (0..round * 5_000).for_each(|i| {
            std::hint::black_box(i);
        });
        child.kill();
        let stored = now(store.load(&key("a"))).unwrap().unwrap();
        assert!(stored.document.as_bytes().len() >= acknowledged.0, "an acknowledged record is lost");
        let entries = now(store.audit(&key("a"), None)).unwrap();
        assert!(entries.last().unwrap().seq.0 >= acknowledged.1, "an acknowledged entry is lost");
        assert!(entries.is_sorted_by_key(|entry| entry.seq));
        // Nobody has to clean up before the next writer.
        let next = now(store.append_audit(&key("a"), &event())).unwrap();
        assert!(next > entries.last().unwrap().seq);
    }
}
