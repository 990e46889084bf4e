//! Opening a store.

use std::fs;

use session_core::error::StoreErrorKind;
use session_core::{SessionStore as _, StoreReach};
use session_store_fs::FsStore;

use crate::{Fixture, key, kind_at};

#[test]
fn a_new_store_has_its_folders_and_says_what_it_can() {
    let at = Fixture::new();
    assert_eq!(fs::read_to_string(at.path("version.json")).unwrap(), "{\"store\":1}\n");
    for folder in ["records", "audit", "locks", "state", "quarantine"] {
        assert!(at.path(folder).is_dir(), "{folder}");
    }
    assert_eq!(at.store.root(), at.dir.path().join(".agent-sessions"));
    let can = at.store.capabilities();
    assert_eq!((can.reach, can.durable, can.state_dirs), (StoreReach::Host, true, true));
    assert!(format!("{:?}", at.store).contains(".agent-sessions"));
}

#[test]
fn a_missing_base_is_not_an_empty_store() {
    let dir = tempfile::tempdir().unwrap();
    let opened = FsStore::open(dir.path().join("missing"));
    assert_eq!(kind_at(opened, "missing"), StoreErrorKind::Unavailable);
    assert!(!dir.path().join("missing").exists());
    fs::write(dir.path().join("file"), "").unwrap();
    assert_eq!(kind_at(FsStore::open(dir.path().join("file")), "file"), StoreErrorKind::Other);
}

#[cfg(unix)]
#[test]
fn a_base_is_reached_through_links_that_lead_somewhere() {
    use std::os::unix::fs::symlink;
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name);
    fs::create_dir(at("folder")).unwrap();
    symlink(at("folder"), at("link")).unwrap();
    assert_eq!(FsStore::open(at("link")).unwrap().root(), at("link/.agent-sessions"));
    assert!(at("folder/.agent-sessions/records").is_dir());
    symlink(at("nowhere"), at("dangling")).unwrap();
    assert_eq!(kind_at(FsStore::open(at("dangling")), "dangling"), StoreErrorKind::Unavailable);
    assert!(!at("nowhere").exists(), "nothing is made behind a link");
    symlink(at("loop"), at("loop")).unwrap();
    assert_eq!(kind_at(FsStore::open(at("loop")), "loop"), StoreErrorKind::Other);
}

#[test]
fn a_newer_store_is_left_alone() {
    for (content, kind) in [
        ("{\"store\":2}", StoreErrorKind::Newer),
        ("{\"store\":99,\"more\":[1]}", StoreErrorKind::Newer),
        ("{\"store\":0}", StoreErrorKind::Corrupt),
        ("{\"store\":", StoreErrorKind::Corrupt),
        ("", StoreErrorKind::Corrupt),
    ] {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().join(".agent-sessions");
        fs::create_dir(&root).unwrap();
        fs::write(root.join("version.json"), content).unwrap();
        assert_eq!(kind_at(FsStore::open(dir.path()), "version.json"), kind, "{content}");
        assert_eq!(fs::read_to_string(root.join("version.json")).unwrap(), content);
        assert_eq!(fs::read_dir(&root).unwrap().count(), 1, "nothing was made in it");
    }
}

#[tokio::test]
async fn a_store_that_vanished_is_unavailable_and_is_made_anew_by_open_alone() {
    let at = Fixture::new();
    at.put(&key("a"), "x").await;
    fs::remove_dir_all(at.store.root()).unwrap();
    let unavailable = StoreErrorKind::Unavailable;
    let (key, holder) = (key("a"), crate::holder(1));
    assert_eq!(at.get(&key).await, Err(unavailable));
    let saved = at.store.save(&key, &crate::doc("x"), &session_core::Guard::Any, None).await;
    assert_eq!(kind_at(saved, "locks"), unavailable);
    assert_eq!(kind_at(at.store.list(&Default::default()).await, "records"), unavailable);
    assert_eq!(kind_at(at.store.audit(&key, None).await, "audit"), unavailable);
    assert_eq!(kind_at(at.store.lease(&key, &holder).await, "locks"), unavailable);
    assert_eq!(kind_at(at.store.state_dir(&key).await, "state"), unavailable);
    assert!(!at.store.root().exists());
    FsStore::open(at.dir.path()).unwrap();
    assert_eq!(at.get(&key).await, Ok(None));
}

#[cfg(unix)]
#[test]
fn folders_that_are_too_open_are_closed() {
    use std::os::unix::fs::PermissionsExt as _;
    let at = Fixture::new();
    for folder in ["", "records", "state"] {
        fs::set_permissions(at.path(folder), fs::Permissions::from_mode(0o777)).unwrap();
    }
    FsStore::open(at.dir.path()).unwrap();
    for folder in ["", "records", "state"] {
        let mode = fs::metadata(at.path(folder)).unwrap().permissions().mode() & 0o7777;
        assert_eq!(mode, 0o700, "{folder}");
    }
}
