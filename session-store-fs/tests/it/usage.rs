//! How much a state dir takes, whatever an agent made of it.

use std::fs::{self, File};
use std::os::unix::fs::{MetadataExt as _, symlink};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use session_core::error::StoreErrorKind;
use session_core::{SessionStore as _, StateSize};

use crate::{Fixture, key, kind_at};

async fn size(at: &Fixture) -> StateSize {
    at.store.state_size(&key("a")).await.unwrap().unwrap()
}

#[tokio::test]
async fn a_file_takes_its_blocks_and_a_hole_none() {
    let at = Fixture::new();
    assert_eq!(at.store.state_size(&key("a")).await.unwrap(), None);
    let dir = at.store.state_dir(&key("a")).await.unwrap().unwrap();
    let empty = size(&at).await;
    File::create(dir.join("hole")).unwrap().set_len(10 << 30).unwrap();
    let with_hole = size(&at).await;
    assert!(with_hole.bytes - empty.bytes < 1 << 20, "10 GB of nothing take {}", with_hole.bytes);
    fs::write(dir.join("full"), vec![1; 1 << 20]).unwrap();
    let full = size(&at).await;
    let blocks = fs::metadata(dir.join("full")).unwrap().blocks() * 512;
    assert_eq!(full.bytes - with_hole.bytes, blocks);
    assert!(full.changed_at > None && !full.partial);
    // One file with two names is one file.
    fs::create_dir(dir.join("folder")).unwrap();
    let before = size(&at).await;
    fs::hard_link(dir.join("full"), dir.join("folder/again")).unwrap();
    assert_eq!(size(&at).await.bytes, before.bytes);
}

#[tokio::test]
async fn what_links_and_pipes_lead_to_is_not_counted() {
    let (at, outside) = (Fixture::new(), tempfile::tempdir().unwrap());
    fs::write(outside.path().join("large"), vec![1; 4 << 20]).unwrap();
    let dir = at.store.state_dir(&key("a")).await.unwrap().unwrap();
    symlink(outside.path(), dir.join("folder")).unwrap();
    symlink(outside.path().join("large"), dir.join("file")).unwrap();
    symlink(&dir, dir.join("loop")).unwrap();
    assert!(Command::new("mkfifo").arg(dir.join("pipe")).status().unwrap().success());
    let found = size(&at).await;
    assert!(found.bytes < 1 << 20 && !found.partial, "{found:?}");
    // A link in its place is no state dir, at either level.
    fs::remove_dir_all(&dir).unwrap();
    symlink(outside.path(), &dir).unwrap();
    assert_eq!(kind_at(at.store.state_size(&key("a")).await, "state/a/claude"), StoreErrorKind::Other);
    fs::remove_dir_all(at.path("state/a")).unwrap();
    fs::create_dir(outside.path().join("claude")).unwrap();
    symlink(outside.path(), at.path("state/a")).unwrap();
    assert_eq!(kind_at(at.store.state_size(&key("a")).await, "state/a"), StoreErrorKind::Other);
}

/// Deeper than there can be open files, and than a path can be long.
#[tokio::test]
async fn a_deep_tree_is_measured_to_its_end() {
    let at = Fixture::new();
    let dir = at.store.state_dir(&key("a")).await.unwrap().unwrap();
    crate::make_deep(&dir, 3000, &vec![1; 1 << 20]);
    fs::create_dir(dir.join("beside")).unwrap();
    fs::write(dir.join("beside/file"), vec![1; 1 << 20]).unwrap();
    let found = size(&at).await;
    assert!(found.bytes >= 2 << 20 && !found.partial, "{found:?}");
    assert!(crate::state::remove(&at, &key("a")).await.unwrap());
}

/// A tree that changes under it is measured as it is found: without an error, and to an end.
#[tokio::test(flavor = "multi_thread")]
async fn a_tree_that_changes_is_measured_as_it_is_found() {
    let at = Fixture::new();
    let dir = at.store.state_dir(&key("a")).await.unwrap().unwrap();
    for name in 0..50 {
        fs::create_dir_all(dir.join(format!("{name}/x/y/z"))).unwrap();
    }
    let stop = Arc::new(AtomicBool::new(false));
    let (stopped, busy) = (stop.clone(), dir.clone());
    let writer = std::thread::spawn(move || {
        while !stopped.load(Ordering::SeqCst) {
            for name in 0..50 {
                let (here, there) = (busy.join(name.to_string()), busy.join("0/x/moved"));
                drop(fs::rename(here.join("x"), &there));
                drop(fs::write(here.join("file"), "x"));
                drop(fs::rename(&there, here.join("x")));
                drop(fs::remove_file(here.join("file")));
            }
        }
    });
    for _ in 0..200 {
        assert!(size(&at).await.bytes < 1 << 30);
    }
    stop.store(true, Ordering::SeqCst);
    writer.join().unwrap();
}
