//! Where and up to where checkpoints are taken.

use std::fs;
use std::path::Path;

use session_checkpoint::{CheckpointLimits, FsCheckpoints};
use session_core::LeftOutWhy;
use session_core::error::{CheckpointError, CheckpointErrorKind};

use crate::support::{World, block, git, key, left_out, take};
use session_core::Checkpointer as _;

fn limited(world: &World, change: impl FnOnce(&mut CheckpointLimits)) -> FsCheckpoints {
    let mut limits = CheckpointLimits::default();
    change(&mut limits);
    world.checkpoints.clone().limits(limits)
}

/// What is said and how much was written when no checkpoint was taken.
fn refused(world: &World, checkpoints: &FsCheckpoints, kind: CheckpointErrorKind) -> String {
    let error: CheckpointError = take(checkpoints, &key("a"), &world.tree, None).unwrap_err();
    assert_eq!(error.kind(), kind, "{error}");
    assert!(world.list().is_empty());
    error.to_string()
}

#[test]
fn a_tree_over_a_limit_is_refused_before_its_content_is_written() {
    let world = World::new();
    for n in 0..30 {
        world.write(&format!("d{}/{n}", n % 3), vec![b'x'; 100_000]);
    }
    let no_room = CheckpointErrorKind::NoRoom;
    let files = limited(&world, |limits| limits.files = 29);
    assert!(refused(&world, &files, no_room).contains("more than 29 files; ignore some"));
    let bytes = limited(&world, |limits| limits.tree_bytes = 2_999_999);
    assert!(refused(&world, &bytes, no_room).contains("have 3000000 bytes, more than 2999999"));
    let free = limited(&world, |limits| limits.free_bytes = u64::MAX);
    assert!(refused(&world, &free, no_room).contains("it takes 3000000 bytes"));
    let written = fs::read_dir(world.base.join(".agent-sessions/checkpoints")).unwrap();
    let written: u64 = written.map(|entry| entry.unwrap().metadata().unwrap().len()).sum();
    assert!(written < 400_000, "{written}");
    let enough = limited(&world, |limits| (limits.files, limits.tree_bytes) = (30, 3_000_000));
    take(&enough, &key("a"), &world.tree, None).unwrap();
    // Known paths are counted together with what is there.
    world.write("more", "x");
    let error = take(&enough, &key("a"), &world.tree, Some(&["more".into()])).unwrap_err();
    assert_eq!(error.kind(), no_room);
    assert_eq!(world.list().len(), 1);
}

#[test]
fn swallowing_a_disk_is_not_possible() {
    let world = World::new();
    world.write("small", "x");
    let sparse = fs::File::create(world.tree.join("sparse")).unwrap();
    sparse.set_len(3 << 30).unwrap();
    let taken = world.take();
    let expected = [("sparse".to_owned(), LeftOutWhy::TooLarge { bytes: 3 << 30 })];
    assert_eq!(left_out(&taken), expected);
    assert_eq!((taken.files, taken.bytes), (1, 1));
}

/// A checkpoint names no more than so many of what it leaves out; all that stood there is told all the same.
#[test]
fn all_that_is_left_out_by_now_is_told_however_many() {
    let world = World::new();
    let names = 0..session_core::Checkpoint::LEFT_OUT_SHOWN + 10;
    names.clone().for_each(|n| world.write(&format!("d/{n}"), "x"));
    let checkpoints = limited(&world, |limits| limits.file_bytes = 1);
    let first = take(&checkpoints, &key("a"), &world.tree, None).unwrap();
    names.clone().for_each(|n| world.write(&format!("d/{n}"), "xx"));
    world.write("d/new", "xx");
    let second = take(&checkpoints, &key("a"), &world.tree, None).unwrap();
    assert_eq!(second.left_out.len(), session_core::Checkpoint::LEFT_OUT_SHOWN);
    let hidden = block(checkpoints.hidden(&key("a"), first.id, second.id)).unwrap();
    assert_eq!(hidden.len(), names.len());
    assert!(hidden.is_sorted() && !hidden.contains(&"d/new".into()));
}

#[test]
fn none_is_taken_of_a_root_a_home_or_the_store() {
    let world = World::with_repository();
    let not_here = |folder: &Path, checkpoints: &FsCheckpoints| {
        let error = block(checkpoints.root_of(folder)).unwrap_err();
        assert_eq!(error.kind(), CheckpointErrorKind::NotHere, "{error}");
        assert_eq!(
            take(checkpoints, &key("a"), folder, None).unwrap_err().kind(),
            CheckpointErrorKind::NotHere
        );
    };
    not_here(Path::new("/"), &world.checkpoints);
    not_here(&world.tree, &world.checkpoints.clone().home(&world.tree));
    world.write("people/me/x", "x");
    // A repository around a home takes it in.
    not_here(&world.tree.join("people"), &world.checkpoints.clone().home(world.tree.join("people/me")));
    world.take();
    not_here(&world.base.join(".agent-sessions/checkpoints"), &world.checkpoints);

    // A project in a home has checkpoints, though the home has none.
    let home = world.checkpoints.clone().home(world.tree.join("people"));
    git(&world.tree.join("people/me"), &["init", "-q"]);
    assert_eq!(block(home.root_of(&world.tree.join("people/me"))).unwrap(), world.tree.join("people/me"));
}

#[test]
fn the_store_itself_is_left_out() {
    let mut world = World::new();
    world.checkpoints = FsCheckpoints::new(&world.tree);
    world.write("x", "x");
    world.take();
    let taken = world.take();
    assert_eq!(left_out(&taken), [(".agent-sessions".to_owned(), LeftOutWhy::Ours)]);
    assert_eq!(taken.files, 1);
}
