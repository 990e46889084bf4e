//! Kept trees that no file system can have held, and paths that lead out of a tree.

use std::path::{Path, PathBuf};

use rusqlite::params;
use session_core::CheckpointId;

use super::world::World;
use crate::database;
use crate::node::{Entry, Folder, What};
use crate::object::{self, Hash, Kind};
use crate::restore::hands::Real;
use crate::restore::journal::{Begun, Side, begin};
use crate::restore::walk::{Blocked, Walker};
use crate::seen::{Seen, SeenEntry, SeenKind};

const FILE: What = What::File { mode: 0o644, bytes: 0, content: Hash([0; 32]) };

fn folder(entries: &[(&[u8], What)]) -> Folder {
    let entries = entries.iter().map(|(name, what)| Entry { name: name.to_vec(), what: *what });
    Folder { entries: entries.collect() }
}

fn is_read(entries: &[(&[u8], What)]) -> bool {
    Folder::decoded(&folder(entries).encoded().1).is_ok()
}

#[test]
fn a_folder_with_names_or_permissions_that_none_has_is_damaged() {
    assert!(is_read(&[(b"...", FILE), (b"a", FILE), (b"b", FILE)]));
    for name in [&b""[..], b".", b"..", b"a/b", b"/", b"/etc", b"a\0b"] {
        assert!(!is_read(&[(name, FILE)]), "{name:?}");
    }
    assert!(!is_read(&[(b"b", FILE), (b"a", FILE)]), "without order");
    assert!(!is_read(&[(b"a", FILE), (b"a", FILE)]), "twice");
    let set_user = What::File { mode: 0o4755, bytes: 0, content: Hash([0; 32]) };
    let sticky = What::Folder { mode: 0o1777, list: Hash([0; 32]), files: 0, bytes: 0 };
    assert!(!is_read(&[(b"a", set_user)]) && !is_read(&[(b"a", sticky)]));
}

#[test]
fn sums_that_lie_are_no_overflow() {
    let lie = What::Folder { mode: 0o755, list: Hash([0; 32]), files: u64::MAX, bytes: u64::MAX };
    assert_eq!(folder(&[(b"a", lie), (b"b", lie)]).sums(), (u64::MAX, u64::MAX));
}

#[test]
fn what_was_seen_under_a_name_that_none_has_was_not_seen() {
    let kind = SeenKind::Other;
    let seen = |names: &[&'static [u8]]| {
        let entries = names.iter().map(|name| SeenEntry { name, kind }).collect();
        let (list, rules) = (Hash([0; 32]), [0; 32]);
        Seen { dev: 1, stamp: None, rules, ignoring: false, list, files: 0, bytes: 0, entries }.encoded()
    };
    assert!(Seen::decoded(&seen(&[b"a", b"b"])).is_some());
    for names in [&[&b".."[..]][..], &[b"../a"], &[b"b", b"a"], &[b"a", b"a"]] {
        assert!(Seen::decoded(&seen(names)).is_none(), "{names:?}");
    }
}

#[test]
fn no_path_leads_out_of_a_tree() {
    let world = World::new();
    let mut walker = Walker::new(&Real, &world.root).unwrap();
    assert!(walker.folder(Path::new("")).is_ok());
    for path in ["..", "/", "/dev", "a/../..", "./.."] {
        assert!(matches!(walker.folder(Path::new(path)), Err(Blocked::NoFolder)), "{path}");
    }
}

#[test]
fn a_noted_restore_of_paths_outside_touches_nothing_there() {
    let world = World::new();
    let outside = world.home.path().join("outside");
    std::fs::create_dir(&outside).unwrap();
    let db = world.checkpoints.open(&world.tree).unwrap();
    let (list, data) = folder(&[]).encoded();
    object::put(&db, Kind::Folder, list, &data).unwrap();
    let wish = world.wish(
        CheckpointId::new(uuid::Uuid::from_u128(1)),
        CheckpointId::new(uuid::Uuid::from_u128(2)),
        &[],
    );
    let side = |id| Side { id, tree: list, mode: 0o755 };
    let paths = [PathBuf::from("../outside/x"), outside.canonicalize().unwrap().join("y")];
    let begun = Begun::new(&wish.key, wish.step, side(wish.to), side(wish.from), &paths);
    let row = begin(&db, &world.root, &begun).unwrap();
    for number in 0..2 {
        std::fs::write(outside.join(format!(".rejoin-restore-{}-{row}-{number}", wish.step)), "mine")
            .unwrap();
    }
    let recovered = world.recover_by(&Real).unwrap();
    assert_eq!(recovered[0].restored.left.len(), 2);
    assert_eq!(std::fs::read_dir(&outside).unwrap().count(), 2);
    assert_eq!(world.rows(), 0);
}

#[test]
fn a_checkpoint_or_a_noted_restore_with_a_mode_that_none_has_is_damaged() {
    let world = World::new();
    let id = world.keep(&super::model::model(&[]));
    let db = world.checkpoints.open(&world.tree).unwrap();
    db.execute("UPDATE checkpoint SET mode = ?1", params![0o4755]).unwrap();
    assert!(database::kept(&db, &super::world::key(), id).unwrap_err().is_damage());

    let side = |mode| Side { id, tree: Hash([0; 32]), mode };
    let step = world.wish(id, id, &[]).step;
    begin(&db, &world.root, &Begun::new(&super::world::key(), step, side(0o755), side(0o2755), &[])).unwrap();
    assert!(world.recover_by(&Real).unwrap_err().is_damage());
}

#[test]
fn a_tree_deeper_than_a_stack_is_compared() {
    let world = World::new();
    let empty = world.keep(&super::model::model(&[]));
    let deep = world.keep(&super::model::model(&[]));
    let db = world.checkpoints.open(&world.tree).unwrap();
    let mut what = FILE;
    for _ in 0..2_000 {
        let (list, data) = folder(&[(b"d", what)]).encoded();
        object::put(&db, Kind::Folder, list, &data).unwrap();
        what = What::Folder { mode: 0o755, list, files: 1, bytes: 0 };
    }
    let What::Folder { list, .. } = what else { unreachable!("it was just made") };
    let sql = "UPDATE checkpoint SET tree = ?1 WHERE id = ?2";
    db.execute(sql, params![list.0.as_slice(), deep.as_bytes().as_slice()]).unwrap();
    assert_eq!(world.diff(empty, deep).unwrap().len(), 2_000);
    assert_eq!(world.diff(deep, empty).unwrap().len(), 2_000);
}
