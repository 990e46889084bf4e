//! State dirs.

use session_core::error::StoreError;
use session_core::{Holder, LeaseOutcome, SessionKey, SessionStore as _};

use crate::{Fixture, key};

/// Removes a state dir, under a lease.
pub(crate) async fn remove(at: &Fixture, key: &SessionKey) -> Result<bool, StoreError> {
    let holder = Holder { host: "here".to_owned(), pid: 1, since: None };
    match at.store.lease(key, &holder).await.unwrap() {
        LeaseOutcome::Held(lease) => at.store.remove_state(key, &lease).await,
        LeaseOutcome::Busy { by } => panic!("{by:?}"),
    }
}

#[tokio::test]
async fn every_key_has_a_state_dir_of_its_own() {
    let at = Fixture::new();
    let mut dirs = std::collections::BTreeSet::new();
    let keys = [
        key("issue-42"),
        SessionKey::new("issue-42", "codex").unwrap(),
        key("a/b"),
        key("a-b"),
        key(".."),
        key("../../etc"),
        key("A"),
        key("a"),
        SessionKey::new("a", "..").unwrap(),
        key(&"x".repeat(1024)),
    ];
    for key in &keys {
        let dir = at.store.state_dir(key).await.unwrap().unwrap();
        assert!(dir.is_dir() && dir.is_absolute());
        // Exactly two levels below `state`, whatever the names hold.
        assert_eq!(dir.parent().unwrap().parent().unwrap(), at.path("state"));
        assert_eq!(
            dir.canonicalize().unwrap(),
            at.path("state").canonicalize().unwrap().join(dir.strip_prefix(at.path("state")).unwrap())
        );
        assert!(dirs.insert(dir), "{key}");
    }
    assert_eq!(dirs.first().unwrap().file_name().unwrap().len(), 6);
    let dir = at.store.state_dir(&keys[0]).await.unwrap().unwrap();
    assert_eq!(dir, at.path("state/issue-42/claude"));
}

#[tokio::test]
async fn what_lies_in_a_state_dir_stays() {
    let at = Fixture::new();
    let dir = at.store.state_dir(&key("a")).await.unwrap().unwrap();
    std::fs::write(dir.join("session"), "x").unwrap();
    at.put(&key("a"), "x").await;
    let _ = at.store.remove(&key("a"), &session_core::Guard::Any).await.unwrap();
    let again = at.store.state_dir(&key("a")).await.unwrap().unwrap();
    assert_eq!(std::fs::read_to_string(again.join("session")).unwrap(), "x");
}

#[cfg(unix)]
#[tokio::test]
async fn a_state_dir_is_private_at_every_level() {
    use std::fs;
    use std::os::unix::fs::PermissionsExt as _;
    let at = Fixture::new();
    for round in 0..2 {
        let dir = at.store.state_dir(&key("a")).await.unwrap().unwrap();
        for level in [dir.as_path(), dir.parent().unwrap()] {
            let mode = fs::metadata(level).unwrap().permissions().mode() & 0o7777;
            assert_eq!(mode, 0o700, "{} in round {round}", level.display());
            fs::set_permissions(level, fs::Permissions::from_mode(0o755)).unwrap();
        }
    }
}

#[tokio::test]
async fn a_state_dir_is_removed_with_all_that_is_in_it_and_nothing_else_is() {
    let at = Fixture::new();
    let (one, agent, other) = (key("a"), SessionKey::new("a", "codex").unwrap(), key("b"));
    for key in [&one, &agent, &other] {
        let dir = at.store.state_dir(key).await.unwrap().unwrap();
        std::fs::create_dir_all(dir.join("deep/er")).unwrap();
        std::fs::write(dir.join("deep/er/file"), "x").unwrap();
    }
    assert!(remove(&at, &one).await.unwrap());
    assert!(!remove(&at, &one).await.unwrap(), "there is nothing any more");
    assert!(!at.path("state/a/claude").exists());
    for kept in ["state/a/codex/deep/er/file", "state/b/claude/deep/er/file"] {
        assert!(at.path(kept).is_file(), "{kept}");
    }
    assert!(remove(&at, &agent).await.unwrap());
    let left: Vec<_> =
        std::fs::read_dir(at.path("state")).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(left, ["b"], "neither an empty folder nor what was being removed");
    let dir = at.store.state_dir(&one).await.unwrap().unwrap();
    assert_eq!(std::fs::read_dir(dir).unwrap().count(), 0, "it begins anew");
}

#[cfg(unix)]
#[tokio::test]
async fn a_removal_follows_no_link() {
    use std::os::unix::fs::symlink;

    let at = Fixture::new();
    let outside = at.path("outside");
    std::fs::create_dir_all(outside.join("folder")).unwrap();
    std::fs::write(outside.join("folder/precious"), "x").unwrap();
    let precious = || std::fs::read_to_string(outside.join("folder/precious")).unwrap();
    let dir = at.store.state_dir(&key("a")).await.unwrap().unwrap();
    symlink(&outside, dir.join("in it")).unwrap();
    assert!(remove(&at, &key("a")).await.unwrap());
    assert_eq!(precious(), "x");
    // In its place.
    std::fs::create_dir_all(at.path("state/a")).unwrap();
    symlink(outside.join("folder"), at.path("state/a/claude")).unwrap();
    assert!(remove(&at, &key("a")).await.unwrap());
    assert_eq!(precious(), "x");
    assert!(!at.path("state/a").exists());
    // In the place of the mailbox's folder: nothing of it is ours.
    symlink(&outside, at.path("state/a")).unwrap();
    std::fs::create_dir(outside.join("claude")).unwrap();
    remove(&at, &key("a")).await.unwrap_err();
    assert!(outside.join("claude").is_dir());
}

#[tokio::test]
async fn a_removal_that_was_cut_off_is_finished_by_the_next() {
    let at = Fixture::new();
    at.store.state_dir(&key("a")).await.unwrap();
    let cut_off = at.path("state/.gone-00000000000000000000000000000000");
    std::fs::create_dir_all(cut_off.join("deep")).unwrap();
    assert!(!remove(&at, &key("b")).await.unwrap());
    assert!(!cut_off.exists() && at.path("state/a/claude").is_dir());
}

/// Folders that nobody may enter or write, and more levels than there can be open files.
#[tokio::test]
async fn a_removal_gets_through_whatever_an_agent_made() {
    use std::os::unix::fs::PermissionsExt as _;

    let at = Fixture::new();
    let dir = at.store.state_dir(&key("a")).await.unwrap().unwrap();
    for (name, mode) in [("closed", 0o000), ("read-only", 0o555)] {
        std::fs::create_dir_all(dir.join(name).join("inner")).unwrap();
        std::fs::write(dir.join(name).join("inner/file"), "x").unwrap();
        std::fs::set_permissions(dir.join(name), std::fs::Permissions::from_mode(mode)).unwrap();
    }
    crate::make_deep(&dir, 3000, b"x");
    std::fs::set_permissions(&dir, std::fs::Permissions::from_mode(0o500)).unwrap();
    assert!(remove(&at, &key("a")).await.unwrap());
    assert_eq!(std::fs::read_dir(at.path("state")).unwrap().count(), 0);
}

#[tokio::test]
async fn a_dropped_removal_keeps_the_lease_until_it_is_done() {
    let at = Fixture::new();
    at.store.state_dir(&key("a")).await.unwrap();
    let holder = Holder { host: "here".to_owned(), pid: 1, since: None };
    let LeaseOutcome::Held(lease) = at.store.lease(&key("a"), &holder).await.unwrap() else { panic!("free") };
    let mut removal = Box::pin({
        let (store, lease) = (at.store.clone(), lease.clone());
        async move { store.remove_state(&key("a"), &lease).await }
    });
    // It has begun, and is dropped, and so is the caller's lease.
    assert!(poll_once(&mut removal).is_pending());
    drop((removal, lease));
    loop {
        match at.store.lease(&key("a"), &holder).await.unwrap() {
            LeaseOutcome::Held(_) => {
                break assert!(!at.path("state/a").exists(), "leased while it was there");
            }
            LeaseOutcome::Busy { .. } => {}
        }
        tokio::task::yield_now().await;
    }
}

fn poll_once<F: Future + Unpin>(future: &mut F) -> std::task::Poll<F::Output> {
    let mut context = std::task::Context::from_waker(std::task::Waker::noop());
    std::pin::Pin::new(future).poll(&mut context)
}
