//! Links, pipes and folders in places that are ours: not followed, not waited for, not taken for something else.

use std::fs;
use std::os::unix::fs::symlink;
use std::os::unix::net::UnixListener;
use std::path::Path;

use session_core::error::StoreErrorKind;
use session_core::{
    AuditEvent, Guard, LeftoverKind, LeftoverOptions, Live, RunId, SessionStore as _, Timestamp,
};
use session_store_fs::FsStore;

use crate::{Fixture, doc, holder, key, kind_at};

/// What cannot be looked at is not called missing: a log goes only where nothing else of its key is left.
#[tokio::test]
async fn the_log_of_a_state_dir_that_cannot_be_looked_at_is_no_leftover() {
    let at = Fixture::new();
    let event = AuditEvent::new(Timestamp::EPOCH, RunId::new(uuid::Uuid::nil()), "run_finished");
    for mailbox in ["hidden", "gone"] {
        at.store.append_audit(&key(mailbox), &event).await.unwrap();
    }
    plant("loop", &at.path("state/hidden"), Path::new(""));
    let found = at.store.leftovers(&LeftoverOptions::new(Live::none()).logs(true)).await.unwrap();
    let logs = found.iter().filter(|found| found.kind == LeftoverKind::Log).map(|found| &*found.name);
    assert_eq!(logs.collect::<Vec<_>>(), ["audit/gone@claude.jsonl"]);
}

const KINDS: [&str; 6] = ["link to a file", "link to nothing", "loop", "pipe", "socket", "folder"];

/// Puts something there that is no regular file. `outside` is what must not be touched.
fn plant(kind: &str, path: &Path, outside: &Path) {
    match kind {
        "link to a file" => symlink(outside, path).unwrap(),
        "link to nothing" => symlink(outside.with_file_name("nothing"), path).unwrap(),
        "loop" => symlink(path, path).unwrap(),
        "pipe" => {
            let made = std::process::Command::new("mkfifo").arg(path).status().unwrap();
            assert!(made.success());
        }
        "socket" => drop(UnixListener::bind(path).unwrap()),
        _ => fs::create_dir(path).unwrap(),
    }
}

struct Outside {
    dir: tempfile::TempDir,
}

impl Outside {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("secret"), "secret").unwrap();
        Self { dir }
    }

    fn file(&self) -> std::path::PathBuf {
        self.dir.path().join("secret")
    }

    fn assert_untouched(&self) {
        assert_eq!(fs::read_to_string(self.file()).unwrap(), "secret");
        assert_eq!(fs::read_dir(self.dir.path()).unwrap().count(), 1);
    }
}

#[tokio::test]
async fn in_place_of_a_record_they_are_corrupt_and_can_be_set_aside() {
    for kind in KINDS {
        let (at, outside) = (Fixture::new(), Outside::new());
        let path = at.path("records/a@claude.json");
        plant(kind, &path, &outside.file());
        let (store, key, corrupt) = (&at.store, key("a"), StoreErrorKind::Corrupt);
        assert_eq!(kind_at(store.load(&key).await, "a@claude.json"), corrupt, "{kind}");
        assert_eq!(
            kind_at(store.save(&key, &doc("x"), &Guard::Any, None).await, "a@claude.json"),
            corrupt,
            "{kind}"
        );
        assert_eq!(kind_at(store.remove(&key, &Guard::Any).await, "a@claude.json"), corrupt, "{kind}");
        assert!(store.list(&Default::default()).await.unwrap().items.is_empty(), "{kind}");
        let aside = store.set_aside(&key, &session_core::Guard::Any).await.unwrap().unwrap();
        assert!(fs::symlink_metadata(aside).is_ok() && fs::symlink_metadata(&path).is_err(), "{kind}");
        at.put(&key, "new").await;
        outside.assert_untouched();
    }
}

#[tokio::test]
async fn in_place_of_a_lock_or_a_log_they_are_errors() {
    for kind in KINDS {
        let (at, outside) = (Fixture::new(), Outside::new());
        let (store, other) = (&at.store, StoreErrorKind::Other);
        let event = AuditEvent::new(Timestamp::EPOCH, RunId::new(uuid::Uuid::nil()), "run_finished");
        plant(kind, &at.path("locks/a@claude.lock"), &outside.file());
        plant(kind, &at.path("locks/b@claude.write"), &outside.file());
        plant(kind, &at.path("audit/c@claude.jsonl"), &outside.file());
        assert_eq!(kind_at(store.lease(&key("a"), &holder(1)).await, "a@claude.lock"), other, "{kind}");
        let saved = store.save(&key("b"), &doc("x"), &Guard::Any, None).await;
        assert_eq!(kind_at(saved, "b@claude.write"), other, "{kind}");
        assert_eq!(kind_at(store.append_audit(&key("c"), &event).await, "c@claude.jsonl"), other, "{kind}");
        assert_eq!(kind_at(store.audit(&key("c"), None).await, "c@claude.jsonl"), other, "{kind}");
        outside.assert_untouched();
    }
}

#[tokio::test]
async fn a_link_at_any_level_of_a_state_dir_is_not_followed() {
    for level in ["state", "state/a", "state/a/claude"] {
        for kind in ["folder", "file", "nothing"] {
            let (at, outside) = (Fixture::new(), Outside::new());
            let path = at.path(level);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            drop(fs::remove_dir(&path));
            let target = match kind {
                "folder" => outside.dir.path().to_owned(),
                "file" => outside.file(),
                _ => outside.dir.path().join("nothing"),
            };
            symlink(target, &path).unwrap();
            let dir = at.store.state_dir(&key("a")).await;
            assert_eq!(kind_at(dir, path.to_str().unwrap()), StoreErrorKind::Other, "{level}: {kind}");
            outside.assert_untouched();
        }
    }
}

#[tokio::test]
async fn a_file_in_place_of_a_state_dir_is_an_error() {
    let at = Fixture::new();
    fs::write(at.path("state/a"), "").unwrap();
    assert_eq!(kind_at(at.store.state_dir(&key("a")).await, "state/a"), StoreErrorKind::Other);
}

#[tokio::test]
async fn a_link_in_place_of_a_folder_of_the_store_is_not_followed() {
    for folder in ["", "records", "audit", "locks", "state", "quarantine"] {
        let (at, outside) = (Fixture::new(), Outside::new());
        let path = if folder.is_empty() { at.store.root().to_owned() } else { at.path(folder) };
        fs::remove_dir_all(&path).unwrap();
        symlink(outside.dir.path(), &path).unwrap();
        let opened = FsStore::open(at.dir.path());
        assert_eq!(kind_at(opened, path.to_str().unwrap()), StoreErrorKind::Other, "{folder}");
        outside.assert_untouched();
    }
    // Also when it is exchanged while the store is open.
    let (at, outside) = (Fixture::new(), Outside::new());
    fs::remove_dir_all(at.path("records")).unwrap();
    symlink(outside.dir.path(), at.path("records")).unwrap();
    let saved = at.store.save(&key("a"), &doc("x"), &Guard::Any, None).await;
    assert_eq!(kind_at(saved, "records"), StoreErrorKind::Other);
    outside.assert_untouched();
}

#[tokio::test]
async fn the_base_may_be_reached_through_a_link() {
    let at = Fixture::new();
    at.put(&key("a"), "x").await;
    let elsewhere = tempfile::tempdir().unwrap();
    symlink(at.dir.path(), elsewhere.path().join("link")).unwrap();
    let store = FsStore::open(elsewhere.path().join("link")).unwrap();
    assert!(store.load(&key("a")).await.unwrap().is_some());
    assert!(store.state_dir(&key("a")).await.unwrap().unwrap().is_dir());
}

#[tokio::test]
async fn a_leftover_that_is_a_link_is_left() {
    let (at, outside) = (Fixture::new(), Outside::new());
    let link = at.path("records/.tmp-0123456789abcdef0123456789abcdef");
    symlink(outside.file(), &link).unwrap();
    let old = std::time::SystemTime::now() - std::time::Duration::from_secs(9999);
    fs::File::options().write(true).open(outside.file()).unwrap().set_modified(old).unwrap();
    at.put(&key("a"), "x").await;
    assert!(link.is_symlink());
    outside.assert_untouched();
}
