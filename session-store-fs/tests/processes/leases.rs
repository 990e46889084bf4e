//! Leases between processes.

use libtest_mimic::Trial;
use session_core::{Holder, Lease, LeaseOutcome, SessionStore as _};
use session_store_fs::FsStore;

use crate::parent::{Running, key, now, trial};

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        trial("lease_excludes_other_processes", excludes),
        trial("lease_ends_with_a_killed_process", ends_with_a_killed_process),
        trial("lease_is_not_inherited", is_not_inherited),
    ]
}

fn take(store: &FsStore) -> Result<Lease, Option<Holder>> {
    let us = Holder { host: "parent".to_owned(), pid: std::process::id(), since: None };
    match now(store.lease(&key("a"), &us)).unwrap() {
        LeaseOutcome::Held(lease) => Ok(lease),
        LeaseOutcome::Busy { by } => Err(by),
    }
}

fn excludes() {
    let dir = tempfile::tempdir().unwrap();
    let store = FsStore::open(dir.path()).unwrap();
    let mut child = Running::start("lease", dir.path());
    assert_eq!(child.line(), "held 1");
    let by = take(&store).unwrap_err().unwrap();
    assert_eq!((by.host.as_str(), by.pid), ("child", child.child.id()));
    child.end();

    let lease = take(&store).unwrap();
    assert_eq!(lease.fence(), 2);
    assert_eq!(Running::start("lease", dir.path()).line(), format!("busy {}", std::process::id()));
    drop(lease);
    assert_eq!(Running::start("lease", dir.path()).line(), "held 3");
}

fn ends_with_a_killed_process() {
    let dir = tempfile::tempdir().unwrap();
    let store = FsStore::open(dir.path()).unwrap();
    for round in 0..5 {
        let mut child = Running::start("lease", dir.path());
        assert_eq!(child.line(), format!("held {}", 2 * round + 1));
        assert!(take(&store).is_err());
        child.kill();
        assert_eq!(take(&store).unwrap().fence(), 2 * round + 2);
    }
}

fn is_not_inherited() {
    let dir = tempfile::tempdir().unwrap();
    let store = FsStore::open(dir.path()).unwrap();
    let mut child = Running::start("lease_and_spawn", dir.path());
    let line = child.line();
    let grandchild = line.strip_prefix("held 1 ").unwrap().parse().unwrap();
    let grandchild = rustix::process::Pid::from_raw(grandchild).unwrap();
    child.kill();
    let alive = rustix::process::test_kill_process(grandchild).is_ok();
    let lease = take(&store);
    let killed = rustix::process::kill_process(grandchild, rustix::process::Signal::KILL);
    assert!(alive && killed.is_ok(), "the grandchild proves nothing when it has ended");
    assert_eq!(lease.unwrap().fence(), 2);
}
