//! Dropping checkpoints takes nothing from those that are kept.

use std::fs;
use std::num::NonZeroU32;

use session_core::{
    CheckpointId, Checkpointer as _, Forget, Health, Label, Moment, RunId, TakeOrder, Timestamp,
};

use crate::support::{World, block, key, take};

#[test]
fn what_is_dropped_makes_room_and_what_is_kept_stays_whole() {
    let world = World::new();
    let shared: Vec<u8> = (0..3 << 20).map(|n: u32| (n >> 18) as u8).collect();
    world.write("shared", &shared);
    world.write("d/old", vec![2; 1 << 20]);
    let first = world.take();
    fs::remove_file(world.tree.join("d/old")).unwrap();
    world.write("d/new", "new");
    let second = world.take();
    let other = take(&world.checkpoints, &key("b"), &world.tree, None).unwrap();
    let size = || -> u64 {
        let db = fs::read_dir(world.base.join(".agent-sessions/checkpoints")).unwrap();
        let path =
            db.map(|entry| entry.unwrap().path()).find(|path| path.extension().unwrap() == "db").unwrap();
        rusqlite::Connection::open(&path).unwrap().execute_batch("PRAGMA wal_checkpoint(TRUNCATE)").unwrap();
        path.metadata().unwrap().len()
    };
    let before = size();
    let forget = |key: &str, which: Forget<'_>| {
        block(world.checkpoints.forget(&crate::support::key(key), which)).unwrap()
    };
    assert_eq!(forget("b", Forget::These(&[first.id])).checkpoints, 0, "a key drops its own alone");
    let dropped = forget("a", Forget::These(&[first.id, first.id]));
    assert_eq!(dropped.checkpoints, 1);
    assert!((1 << 20..(1 << 20) + 1000).contains(&dropped.bytes), "{}", dropped.bytes);
    assert!(before - size() >= 1 << 20, "the file shrinks");
    assert_eq!(world.list(), std::slice::from_ref(&second));
    assert_eq!(block(world.checkpoints.check(&key("a"), second.id)).unwrap(), Health::Whole);
    assert_eq!(world.read(&second, "shared").unwrap(), shared);
    assert_eq!(forget("a", Forget::All).checkpoints, 1);
    assert_eq!(block(world.checkpoints.check(&key("b"), other.id)).unwrap(), Health::Whole);
    let dropped = forget("b", Forget::All);
    assert!(dropped.bytes > 3 << 20);
    // What was seen of the tree speaks of nothing that is gone.
    let again = world.take();
    assert_eq!(block(world.checkpoints.check(&key("a"), again.id)).unwrap(), Health::Whole);
}

#[test]
fn only_the_latest_are_kept_where_that_is_asked_for() {
    let mut world = World::new();
    world.checkpoints = world.checkpoints.keep_latest(NonZeroU32::new(2).unwrap());
    let other = take(&world.checkpoints, &key("b"), &world.tree, None).unwrap();
    let mut taken = Vec::new();
    for n in 0..80 {
        world.write("x", format!("{n}"));
        taken.push(world.take());
    }
    assert!(world.list() == taken[78..]);
    assert_eq!(world.read(&taken[78], "x").unwrap(), b"78");
    assert_eq!(block(world.checkpoints.list(&key("b"))).unwrap(), [other]);
    assert_eq!(block(world.checkpoints.check(&key("a"), taken[79].id)).unwrap(), Health::Whole);
    let path = fs::read_dir(world.base.join(".agent-sessions/checkpoints")).unwrap();
    let path =
        path.map(|entry| entry.unwrap().path()).find(|path| path.extension().unwrap() == "db").unwrap();
    let db = rusqlite::Connection::open(path).unwrap();
    let objects: i64 = db.query_row("SELECT count(*) FROM object", [], |row| row.get(0)).unwrap();
    assert!(objects < 80, "{objects}: what was dropped is collected now and then");
}

/// The oldest one that is kept can be gone back to, and looked at.
#[test]
fn what_one_is_compared_with_is_not_dropped_for_it() {
    let mut world = World::new();
    world.checkpoints = world.checkpoints.keep_latest(NonZeroU32::new(2).unwrap());
    let step = |moment, back_to| {
        let step = RunId::new(uuid::Uuid::nil());
        let label = Label { back_to, ..Label::new(key("a"), step, moment) };
        let id = CheckpointId::new(uuid::Uuid::new_v4());
        let (at, folder) = (Timestamp::EPOCH, &*world.tree);
        block(world.checkpoints.take(&TakeOrder { id, label: &label, at, folder, changed: None })).unwrap()
    };
    let (first, end) = (step(Moment::BeforeRun, None), step(Moment::AfterRun, None));
    let look = step(Moment::Asked, Some(first.id));
    assert!(world.list() == [first.clone(), end.clone(), look.clone()]);
    block(world.checkpoints.forget(&key("a"), Forget::These(&[look.id]))).unwrap();
    let before = step(Moment::BeforeRewind, Some(first.id));
    assert!(world.list() == [first, end, before.clone()]);
    let after = step(Moment::AfterRewind, None);
    assert!(world.list() == [before, after], "then the older ones go");
}

#[test]
fn a_checkpoint_is_taken_though_what_others_left_cannot_be_dropped() {
    let mut world = World::new();
    world.checkpoints = world.checkpoints.keep_latest(NonZeroU32::MIN);
    world.take();
    let path = fs::read_dir(world.base.join(".agent-sessions/checkpoints")).unwrap();
    let path =
        path.map(|entry| entry.unwrap().path()).find(|path| path.extension().unwrap() == "db").unwrap();
    // Nobody can tell what a restore of another tree needs that cannot be read.
    let db = rusqlite::Connection::open(path).unwrap();
    db.execute("INSERT INTO restore (root, data) VALUES (x'00', x'00')", []).unwrap();
    for n in 0..40 {
        world.write("x", format!("{n}"));
        let taken = world.try_take(None).unwrap();
        assert_eq!(world.list(), [taken]);
    }
    let dropped: i64 = db.query_row("SELECT dropped FROM state", [], |row| row.get(0)).unwrap();
    assert_eq!(dropped, 40, "they wait for a later one");
}

/// Who dropped it found no room to take its content away, and no checkpoint is taken any more.
#[test]
fn what_could_not_go_with_its_checkpoint_goes_with_the_next_order_to_drop() {
    let world = World::new();
    world.write("x", vec![1; 1000]);
    world.take();
    let path = fs::read_dir(world.base.join(".agent-sessions/checkpoints")).unwrap();
    let path =
        path.map(|entry| entry.unwrap().path()).find(|path| path.extension().unwrap() == "db").unwrap();
    let db = rusqlite::Connection::open(path).unwrap();
    db.execute_batch("DELETE FROM checkpoint; UPDATE state SET dropped = 32").unwrap();
    let forget = || block(world.checkpoints.forget(&key("a"), Forget::All)).unwrap();
    let dropped = forget();
    assert!(dropped.checkpoints == 0 && dropped.bytes >= 1000, "{dropped:?}");
    assert_eq!(db.query_row("SELECT count(*) FROM object", [], |row| row.get::<_, i64>(0)).unwrap(), 0);
    // What cannot be told keeps nobody from closing a key.
    db.execute_batch("INSERT INTO restore (root, data) VALUES (x'00', x'00'); UPDATE state SET dropped = 32")
        .unwrap();
    assert_eq!(forget().bytes, 0);
}
