//! Leases within one process.

use std::fs;

use session_core::{Guard, Holder, Lease, LeaseOutcome, Saved, SessionStore as _};
use session_store_fs::FsStore;

use crate::{Fixture, holder, key};

async fn take(store: &FsStore, mailbox: &str, pid: u32) -> Result<Lease, Option<Holder>> {
    match store.lease(&key(mailbox), &holder(pid)).await.unwrap() {
        LeaseOutcome::Held(lease) => Ok(lease),
        LeaseOutcome::Busy { by } => Err(by),
    }
}

#[tokio::test]
async fn two_handles_exclude_each_other() {
    let at = Fixture::new();
    let other = FsStore::open(at.dir.path()).unwrap();
    let lease = take(&at.store, "a", 1).await.unwrap();
    assert_eq!(lease.fence(), 1);
    for store in [&at.store, &other] {
        assert_eq!(take(store, "a", 2).await.unwrap_err(), Some(holder(1)));
    }
    // Another key is free, and who holds the lease can save.
    assert_eq!(take(&other, "b", 2).await.unwrap().fence(), 1);
    at.put(&key("a"), "x").await;
    drop(lease);
    let lease = take(&other, "a", 2).await.unwrap();
    assert_eq!(lease.fence(), 2);
    assert_eq!(take(&at.store, "a", 1).await.unwrap_err(), Some(holder(2)));
}

#[tokio::test]
async fn whether_a_key_was_ever_leased_is_told_without_a_trace() {
    let at = Fixture::new();
    assert!(!at.store.was_leased(&key("a")).await.unwrap());
    assert_eq!(fs::read_dir(at.path("locks")).unwrap().count(), 0, "to ask leaves nothing");
    let lease = take(&at.store, "a", 1).await.unwrap();
    assert!(at.store.was_leased(&key("a")).await.unwrap());
    drop(lease);
    assert!(at.store.was_leased(&key("a")).await.unwrap());
    assert!(!at.store.was_leased(&key("b")).await.unwrap());
}

#[tokio::test]
async fn numbers_grow_with_every_grant() {
    let at = Fixture::new();
    for fence in 1..=20 {
        let store = FsStore::open(at.dir.path()).unwrap();
        assert_eq!(take(&store, "a", 1).await.unwrap().fence(), fence);
    }
    assert!(at.path("locks/a@claude.lock").exists(), "the file stays in place");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn of_racing_runners_one_gets_each_number() {
    let at = Fixture::new();
    let tasks: Vec<_> = (0..8)
        .map(|i| {
            let store = FsStore::open(at.dir.path()).unwrap();
            tokio::spawn(async move {
                let mut fences = Vec::new();
                while fences.len() < 5 {
                    match take(&store, "a", i).await {
                        Ok(lease) => fences.push(lease.fence()),
                        Err(_) => tokio::task::yield_now().await,
                    }
                }
                fences
            })
        })
        .collect();
    let mut fences = Vec::new();
    for task in tasks {
        fences.extend(task.await.unwrap());
    }
    fences.sort_unstable();
    assert_eq!(fences, (1..=40).collect::<Vec<_>>());
}

#[tokio::test]
async fn a_damaged_lock_file_still_excludes() {
    let at = Fixture::new();
    drop(take(&at.store, "a", 1).await.unwrap());
    drop(take(&at.store, "a", 1).await.unwrap());
    let path = at.path("locks/a@claude.lock");
    // The half of the last grant is lost: its number may be granted again, the one before may not.
    let mut content = fs::read(&path).unwrap();
    content[..100].fill(0);
    fs::write(&path, &content).unwrap();
    let lease = take(&at.store, "a", 1).await.unwrap();
    assert_eq!(lease.fence(), 2);
    fs::write(&path, "garbage").unwrap();
    assert_eq!(take(&at.store, "a", 2).await.unwrap_err(), None);
    drop(lease);
    assert_eq!(take(&at.store, "a", 2).await.unwrap().fence(), 1);
    fs::write(&path, "").unwrap();
    assert_eq!(take(&at.store, "a", 2).await.unwrap().fence(), 1);
}

#[tokio::test]
async fn a_dropped_question_leaves_no_lease() {
    let at = Fixture::new();
    let (key, who) = (key("a"), holder(1));
    for _ in 0..20 {
        let mut question = at.store.lease(&key, &who);
        std::future::poll_fn(|context| {
            let _ = question.as_mut().poll(context);
            std::task::Poll::Ready(())
        })
        .await;
        drop(question);
    }
    // Each task is bound to end, and takes its lease with it.
    while take(&at.store, "a", 2).await.is_err() {
        tokio::task::yield_now().await;
    }
}

/// What is removed from `locks/` costs nobody the order of the numbers: the record has the last one that mattered.
#[tokio::test]
async fn without_a_lock_file_numbers_go_on_after_the_record() {
    let at = Fixture::new();
    for _ in 0..4 {
        drop(take(&at.store, "a", 1).await.unwrap());
    }
    let lease = take(&at.store, "a", 1).await.unwrap();
    let saved = at.store.save(&key("a"), &crate::doc("x"), &Guard::Any, Some(&lease)).await;
    crate::done(saved);
    assert_eq!(lease.fence(), 5);
    drop(lease);
    fs::remove_file(at.path("locks/a@claude.lock")).unwrap();
    let lease = take(&at.store, "a", 1).await.unwrap();
    assert_eq!(lease.fence(), 6);
    // Who writes without a lease takes the number along.
    at.put(&key("a"), "y").await;
    drop(lease);
    fs::write(at.path("locks/a@claude.lock"), "garbage").unwrap();
    assert_eq!(take(&at.store, "a", 1).await.unwrap().fence(), 6);
}

/// Somebody removed the lock file of a runner, and another one has the key: both hold a lock of the kernel, one may write.
#[tokio::test]
async fn who_was_robbed_of_the_lock_file_writes_nothing() {
    let at = Fixture::new();
    let (any, lock) = (Guard::Any, at.path("locks/a@claude.lock"));
    let robbed = take(&at.store, "a", 1).await.unwrap();
    fs::remove_file(&lock).unwrap();
    // Nobody else was granted the key: it still is the last grant.
    crate::done(at.store.save(&key("a"), &crate::doc("one"), &any, Some(&robbed)).await);
    let successor = take(&at.store, "a", 2).await.unwrap();
    let late = at.store.save(&key("a"), &crate::doc("late"), &any, Some(&robbed)).await.unwrap();
    assert_eq!(late, Saved::Fenced { latest: successor.fence() });
    crate::done(at.store.save(&key("a"), &crate::doc("two"), &any, Some(&successor)).await);

    // Also where both were granted the same number, as nothing was written in between.
    let robbed = take(&at.store, "b", 1).await.unwrap();
    fs::remove_file(at.path("locks/b@claude.lock")).unwrap();
    let successor = take(&at.store, "b", 2).await.unwrap();
    assert_eq!(robbed.fence(), successor.fence());
    let late = at.store.save(&key("b"), &crate::doc("late"), &any, Some(&robbed)).await.unwrap();
    assert!(matches!(late, Saved::Fenced { .. }), "{late:?}");
    crate::done(at.store.save(&key("b"), &crate::doc("two"), &any, Some(&successor)).await);
}

/// After a crash of the machine, the lock file may be an older one; the record has the number that has to stay below.
#[tokio::test]
async fn an_older_lock_file_of_an_earlier_start_of_the_machine_is_not_trusted() {
    let at = Fixture::new();
    let lock = at.path("locks/a@claude.lock");
    drop(take(&at.store, "a", 1).await.unwrap());
    let earlier = fs::read_to_string(&lock).unwrap();
    for _ in 0..4 {
        drop(take(&at.store, "a", 1).await.unwrap());
    }
    let lease = take(&at.store, "a", 1).await.unwrap();
    crate::done(at.store.save(&key("a"), &crate::doc("x"), &Guard::Any, Some(&lease)).await);
    assert_eq!(lease.fence(), 6);
    drop(lease);
    let boot = earlier.split("\"boot\":\"").nth(1).map(|rest| rest[..18].to_owned());
    let earlier = boot.map_or(earlier.clone(), |boot| earlier.replace(&boot, &"0".repeat(18)));
    fs::write(&lock, earlier).unwrap();
    assert_eq!(take(&at.store, "a", 1).await.unwrap().fence(), 7);
}

/// A number that was altered by damage stops nobody who has the kernel's lock, and is not counted on from where nobody got to.
#[tokio::test]
async fn a_damaged_number_stops_nobody() {
    let at = Fixture::new();
    let any = Guard::Any;
    let damage = |number: u64| {
        let path = at.path("records/a@claude.json");
        let text = fs::read_to_string(&path).unwrap();
        let (before, rest) = text.split_once("\"fence\":").unwrap();
        let rest = rest.trim_start_matches(|c: char| c.is_ascii_digit());
        fs::write(path, format!("{before}\"fence\":{number}{rest}")).unwrap();
    };
    let first = take(&at.store, "a", 1).await.unwrap();
    crate::done(at.store.save(&key("a"), &crate::doc("x"), &any, Some(&first)).await);
    damage(9000);
    crate::done(at.store.save(&key("a"), &crate::doc("y"), &any, Some(&first)).await);
    damage(u64::MAX);
    drop(first);
    fs::remove_file(at.path("locks/a@claude.lock")).unwrap();
    let next = take(&at.store, "a", 2).await.unwrap();
    crate::done(at.store.save(&key("a"), &crate::doc("z"), &any, Some(&next)).await);
    fs::write(at.path("locks/b@claude.lock"), format!("{{\"fence\":{}}}\n", u64::MAX)).unwrap();
    assert_eq!(take(&at.store, "b", 1).await.unwrap().fence(), 1);
}

/// Whoever lost the key does not take its state away, either.
#[tokio::test]
async fn who_was_robbed_of_the_lock_file_removes_no_state() {
    let at = Fixture::new();
    let robbed = take(&at.store, "a", 1).await.unwrap();
    let dir = at.store.state_dir(&key("a")).await.unwrap().unwrap();
    fs::remove_file(at.path("locks/a@claude.lock")).unwrap();
    let successor = take(&at.store, "a", 2).await.unwrap();
    let refused = at.store.remove_state(&key("a"), &robbed).await;
    assert_eq!(crate::kind_at(refused, "a@claude.lock"), session_core::error::StoreErrorKind::Unavailable);
    assert!(dir.is_dir());
    assert!(at.store.remove_state(&key("a"), &successor).await.unwrap());
}

/// BR-127, BR-157: a file is no lock; whoever it names, dead or alive and somebody else, keeps nobody out.
#[tokio::test]
async fn a_lock_file_that_names_a_process_keeps_nobody_out() {
    let at = Fixture::new();
    let ours = std::process::id();
    for (fence, pid) in [(1, u32::MAX), (2, 1), (3, ours), (4, 0)] {
        let other = FsStore::open(at.dir.path()).unwrap();
        let lease = take(&other, "a", pid).await.unwrap();
        assert_eq!(lease.fence(), fence);
        drop(lease);
        let left = fs::read_to_string(at.path("locks/a@claude.lock")).unwrap();
        assert!(left.contains(&format!("\"pid\":{pid}")), "{left}");
    }
    assert_eq!(take(&at.store, "a", ours).await.unwrap().fence(), 5);
}
