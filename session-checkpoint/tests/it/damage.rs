//! What is damaged stops nothing else, and is told.

use std::fs;
use std::path::PathBuf;

use rusqlite::Connection;
use session_core::error::CheckpointErrorKind;
use session_core::{Checkpoint, Checkpointer as _, Health};

use crate::support::{World, block, git, key, take};

fn databases(world: &World) -> Vec<PathBuf> {
    let files = fs::read_dir(world.base.join(".agent-sessions/checkpoints")).unwrap();
    let mut paths: Vec<_> = files.map(|entry| entry.unwrap().path()).collect();
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "db"));
    paths.sort();
    paths
}

fn database(world: &World) -> Connection {
    Connection::open(&databases(world)[0]).unwrap()
}

fn healths(world: &World) -> Vec<bool> {
    world.list().iter().map(|checkpoint| checkpoint.health == Health::Whole).collect()
}

fn check(world: &World, checkpoint: &Checkpoint) -> bool {
    block(world.checkpoints.check(&key("a"), checkpoint.id)).unwrap() == Health::Whole
}

/// Writes other bytes over the one object that has these.
fn spoil(world: &World, text: &[u8]) {
    let sql = "UPDATE object SET data = ?2 WHERE data = ?1";
    assert_eq!(database(world).execute(sql, [text, &b"spoilt"[..]]).unwrap(), 1);
}

#[test]
fn a_checkpoint_with_a_damaged_top_is_listed_as_such_and_stops_no_other() {
    let world = World::new();
    world.write("x", "1");
    let first = world.take();
    world.write("x", "2");
    world.take();
    let sql = "UPDATE object SET data = substr(data, 2) WHERE hash = (SELECT tree FROM checkpoint WHERE number = 2)";
    assert_eq!(database(&world).execute(sql, []).unwrap(), 1);
    assert_eq!(healths(&world), [true, false]);
    assert_eq!(world.read(&first, "x").unwrap(), b"1");
    // The tree is still as it was then, so the next one puts it again.
    let third = world.take();
    assert_eq!(world.read(&third, "x").unwrap(), b"2");
    assert_eq!(healths(&world), [true, true, true]);
}

#[test]
fn damage_of_content_is_found_by_a_check_and_healed_by_the_next_checkpoint() {
    let world = World::new();
    world.write("d/x", "content");
    world.write("d/y", "other");
    let first = world.take();
    assert!(check(&world, &first));
    spoil(&world, b"content");
    assert_eq!(healths(&world), [true], "a list looks at the top alone");
    let read = || block(world.checkpoints.read(&key("a"), first.id, "d/x".as_ref(), 9));
    assert_eq!(read().unwrap_err().kind(), CheckpointErrorKind::Corrupt);
    assert!(!check(&world, &first));
    let second = world.take();
    assert!(check(&world, &second) && check(&world, &first));
    assert_eq!(read().unwrap().unwrap(), b"content");
}

#[test]
fn known_paths_do_not_build_on_what_is_damaged() {
    let world = World::new();
    world.write("d/e/x", "content");
    world.write("d/y", "other");
    world.take();
    let sql = "DELETE FROM object WHERE kind = 2 AND hash <> (SELECT tree FROM checkpoint)";
    assert_eq!(database(&world).execute(sql, []).unwrap(), 2);
    world.write("d/e/x", "CONTENT");
    let second = world.try_take(Some(&["d/e/x"])).unwrap();
    assert!(check(&world, &second));
    assert_eq!(world.read(&second, "d/y").unwrap(), b"other");
}

#[test]
fn a_row_that_cannot_be_read_is_listed_as_damaged() {
    let world = World::new();
    world.write("x", "1");
    let first = world.take();
    world.take();
    for column in ["label", "left_out", "tree", "root", "at"] {
        let sql = format!("UPDATE checkpoint SET {column} = 'no' WHERE number = 1");
        let db = database(&world);
        db.execute_batch("CREATE TEMP TABLE kept AS SELECT * FROM checkpoint").unwrap();
        db.execute(&sql, []).unwrap();
        let list = world.list();
        assert_eq!(list.len(), 2, "{column}");
        if column != "root" {
            let health = &list.iter().find(|one| one.id == first.id).unwrap().health;
            assert_ne!(health, &Health::Whole, "{column}");
        }
        db.execute_batch("DELETE FROM checkpoint; INSERT INTO checkpoint SELECT * FROM kept").unwrap();
    }
    assert_eq!(healths(&world), [true, true]);
}

#[test]
fn a_damaged_database_stops_no_other_and_is_set_aside_by_the_next_checkpoint() {
    for half in [false, true] {
        let world = World::with_repository();
        world.write("other/x", "o");
        git(&world.tree.join("other"), &["init", "-q"]);
        world.write("x", "1");
        let first = world.take();
        let path = databases(&world)[0].clone();
        let other = take(&world.checkpoints, &key("a"), &world.tree.join("other"), None).unwrap();
        // Nothing is left in the log beside it.
        Connection::open(&path).unwrap().execute_batch("PRAGMA wal_checkpoint(TRUNCATE)").unwrap();
        let bytes = fs::read(&path).unwrap();
        fs::remove_file(&path).unwrap();
        fs::write(&path, if half { bytes[..5000].to_vec() } else { vec![b'x'; 5000] }).unwrap();

        assert_eq!(world.list(), std::slice::from_ref(&other));
        let error = block(world.checkpoints.read(&key("a"), first.id, "x".as_ref(), 9)).unwrap_err();
        assert_eq!(error.kind(), CheckpointErrorKind::Corrupt, "{error}");
        let next = world.take();
        assert_eq!(world.read(&next, "x").unwrap(), b"1");
        assert_eq!(world.list().len(), 2);
        let which = [next.id];
        let forget = block(world.checkpoints.forget(&key("a"), session_core::Forget::These(&which)));
        assert!(forget.is_err(), "it may be in the one that was set aside, too");
        assert_eq!(world.list(), [other]);
        // To end a key does not wait for somebody to mend a disk.
        let all = block(world.checkpoints.forget(&key("a"), session_core::Forget::All)).unwrap();
        assert_eq!((all.checkpoints, all.unread), (1, 1));
        assert_eq!(world.list(), []);
    }
}

#[test]
fn a_half_written_checkpoint_is_never_the_newest() {
    let world = World::new();
    world.write("x", "1");
    let first = world.take();
    // What a take that was killed leaves: content, and no row.
    let db = database(&world);
    db.execute("INSERT INTO object (hash, kind, data) VALUES (zeroblob(32), 0, zeroblob(100000))", [])
        .unwrap();
    assert_eq!(world.list(), std::slice::from_ref(&first));
    world.write("x", "2");
    let second = world.take();
    let dropped =
        block(world.checkpoints.forget(&key("a"), session_core::Forget::These(&[second.id]))).unwrap();
    assert_eq!(dropped.checkpoints, 1);
    assert!(dropped.bytes >= 100_000, "leftovers go with the next that is dropped");
    assert_eq!(world.list(), [first]);
}
