//! What a checkpoint covers.

use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};
use std::os::unix::net::UnixListener;
use std::path::Path;

use session_checkpoint::CheckpointLimits;
use session_core::error::CheckpointErrorKind;
use session_core::{Checkpoint, Checkpointer as _, Forget, LeftOutWhy, SessionKey, Timestamp};

use crate::support::{World, block, key, left_out, take, take_at, tree_of};

#[test]
fn all_of_a_tree_is_covered_and_what_is_not_is_named() {
    let mut world = World::with_repository();
    let mut limits = CheckpointLimits::default();
    limits.file_bytes = 3 << 20;
    world.checkpoints = world.checkpoints.limits(limits);
    world.write("a/b.txt", "text");
    world.write("empty", "");
    let long: Vec<u8> = (0..(2 << 20) + 7).map(|n: u32| (n % 251) as u8).collect();
    world.write("a/long", &long);
    world.write("a/exact", &long[..1 << 20]);
    world.write("large", vec![0; (3 << 20) + 1]);
    world.write("nested/.git/HEAD", "ref: x");
    world.write("nested/f", "n");
    fs::create_dir(world.tree.join("hollow")).unwrap();
    symlink("/etc/passwd", world.tree.join("link")).unwrap();
    symlink("a", world.tree.join("to_a")).unwrap();
    let _socket = UnixListener::bind(world.tree.join("socket")).unwrap();
    rustix::fs::mknodat(
        rustix::fs::CWD,
        world.tree.join("pipe"),
        rustix::fs::FileType::Fifo,
        0o600.into(),
        0,
    )
    .unwrap();

    let first = world.take();
    assert_eq!(first.files, 7);
    assert_eq!(first.bytes, 4 + long.len() as u64 + (1 << 20) + 1);
    assert_eq!(world.read(&first, "a/b.txt").unwrap(), b"text");
    assert_eq!(world.read(&first, "a/long").unwrap(), long);
    assert_eq!(world.read(&first, "a/exact").unwrap(), &long[..1 << 20]);
    assert_eq!(world.read(&first, "empty").unwrap(), b"");
    assert_eq!(world.read(&first, "link").unwrap(), b"/etc/passwd");
    assert_eq!(world.read(&first, "to_a/b.txt"), None);
    let out = |path: &str, why| (path.to_owned(), why);
    let expected = [
        out(".git", LeftOutWhy::GitDir),
        out("large", LeftOutWhy::TooLarge { bytes: (3 << 20) + 1 }),
        out("nested/.git", LeftOutWhy::GitDir),
        out("pipe", LeftOutWhy::Special),
        out("socket", LeftOutWhy::Special),
    ];
    assert_eq!(left_out(&first), expected);

    world.write("a/b.txt", "TEXT");
    fs::remove_file(world.tree.join("empty")).unwrap();
    fs::set_permissions(world.tree.join("nested"), fs::Permissions::from_mode(0o750)).unwrap();
    let second = world.take();
    assert_eq!(world.read(&second, "a/b.txt").unwrap(), b"TEXT");
    assert_eq!(world.read(&second, "empty"), None);
    assert_eq!(world.read(&second, "nested/f").unwrap(), b"n");
    assert_eq!(world.read(&first, "a/b.txt").unwrap(), b"text");
    assert_eq!(left_out(&second), expected);
    assert_eq!(world.list(), [first, second]);
}

#[test]
fn names_modes_and_depths_of_any_kind_are_covered() {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt as _;
    use std::path::PathBuf;

    let world = World::new();
    let odd = OsStr::from_bytes(b"odd\xFF\n name");
    fs::create_dir(world.tree.join(odd)).unwrap();
    fs::write(world.tree.join(odd).join(odd), "odd").unwrap();
    world.write("program", "x");
    fs::set_permissions(world.tree.join("program"), fs::Permissions::from_mode(0o6751)).unwrap();
    // Deeper than handles are kept open, and than a tree of the usual kind.
    let deep: PathBuf = std::iter::repeat_n("d", 400).collect();
    fs::create_dir_all(world.tree.join(&deep)).unwrap();
    fs::write(world.tree.join(&deep).join("f"), "deep").unwrap();
    let taken = world.take();
    assert_eq!((taken.files, taken.left_out_count), (3, 0));
    let read = |taken: &Checkpoint, path: PathBuf| {
        block(world.checkpoints.read(&key("a"), taken.id, &path, 9)).unwrap().unwrap()
    };
    assert_eq!(read(&taken, PathBuf::from(odd).join(odd)), b"odd");
    assert_eq!(read(&taken, deep.join("f")), b"deep");
    let before = tree_of(&world.base);

    // A bit beside the permissions is no difference, a permission is one.
    fs::set_permissions(world.tree.join("program"), fs::Permissions::from_mode(0o751)).unwrap();
    world.take();
    assert_eq!(tree_of(&world.base), before);
    fs::set_permissions(world.tree.join("program"), fs::Permissions::from_mode(0o750)).unwrap();
    world.take();
    assert_ne!(tree_of(&world.base), before);

    fs::write(world.tree.join(&deep).join("f"), "DEEP").unwrap();
    let known = [deep.join("f"), PathBuf::from(odd)];
    let taken = take(&world.checkpoints, &key("a"), &world.tree, Some(&known)).unwrap();
    assert_eq!(read(&taken, deep.join("f")), b"DEEP");
}

/// Everything below a folder, with content, mode and times.
fn picture(folder: &Path) -> Vec<String> {
    let mut all = Vec::new();
    let mut todo = vec![folder.to_owned()];
    while let Some(path) = todo.pop() {
        let meta = path.symlink_metadata().unwrap();
        let text = if meta.is_file() { fs::read(&path).unwrap() } else { Vec::new() };
        all.push(format!(
            "{path:?} {:o} {}.{} {}.{} {text:?}",
            meta.mode(),
            meta.mtime(),
            meta.mtime_nsec(),
            meta.ctime(),
            meta.ctime_nsec()
        ));
        if meta.is_dir() {
            todo.extend(fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().path()));
        }
    }
    all.sort();
    all
}

#[test]
fn neither_the_tree_nor_its_repository_is_touched() {
    let world = World::with_repository();
    world.write("a", "staged");
    world.write("b", "b");
    world.git(&["add", "a"]);
    world.git(&["commit", "-q", "-m", "one"]);
    world.write("a", "changed");
    world.git(&["stash"]);
    world.write("a", "changed again");
    world.write(".git/hooks/post-index-change", "#!/bin/sh\ntouch ran\n");
    world.git(&["config", "filter.x.clean", "touch ran"]);
    world.write(".gitattributes", "* filter=x\n");
    let before = picture(&world.tree);
    let taken = world.take();
    world.try_take(Some(&["a", ".git/index", "gone"])).unwrap();
    block(world.checkpoints.check(&key("a"), taken.id)).unwrap();
    block(world.checkpoints.forget(&key("a"), Forget::All)).unwrap();
    assert_eq!(picture(&world.tree), before);
}

#[test]
fn work_trees_of_a_repository_share_what_they_hold_and_no_checkpoint() {
    let world = World::with_repository();
    world.write("large", (0..1 << 20).map(|n: u32| (n >> 8) as u8).collect::<Vec<_>>());
    world.write("own", "main");
    world.git(&["add", "-A"]);
    world.git(&["commit", "-q", "-m", "one"]);
    let linked = world.base.join("linked");
    world.git(&["worktree", "add", "-q", linked.to_str().unwrap()]);
    fs::write(linked.join("own"), "linked").unwrap();
    let first = world.take();
    let second = take(&world.checkpoints, &key("b"), &linked, None).unwrap();
    let store = fs::read_dir(world.base.join(".agent-sessions/checkpoints")).unwrap();
    let store: Vec<_> = store.map(|entry| entry.unwrap().path()).collect();
    let databases = store.iter().filter(|path| path.extension().unwrap() == "db").count();
    assert_eq!(databases, 1, "{store:?}");
    let held = store.iter().filter(|path| !path.ends_with("room.reserve"));
    assert!(held.map(|path| path.metadata().unwrap().len()).sum::<u64>() < 3 << 20, "content is kept once");
    assert_eq!(first.root.as_path().unwrap(), world.tree);
    assert_eq!(second.root.as_path().unwrap(), linked);
    let read = |key: &SessionKey, id| block(world.checkpoints.read(key, id, Path::new("own"), 9));
    assert_eq!(read(&key("b"), second.id).unwrap().unwrap(), b"linked");
    // What another key's checkpoints hold is not to be had, even by one who knows their ids.
    let stranger = read(&key("b"), first.id).unwrap_err();
    assert_eq!(stranger.kind(), CheckpointErrorKind::NotFound);
    // What is known to have changed here says nothing of there.
    fs::write(linked.join("new"), "new").unwrap();
    let third = take(&world.checkpoints, &key("a"), &world.tree, Some(&["own".into()])).unwrap();
    assert_eq!(third.files, 2);
}

#[test]
fn a_planted_pipe_in_a_repository_holds_nobody_up() {
    let world = World::with_repository();
    for name in [".git/commondir", ".git/info/exclude", ".git/index", ".gitignore"] {
        let path = world.tree.join(name);
        drop(fs::remove_file(&path));
        rustix::fs::mknodat(rustix::fs::CWD, &path, rustix::fs::FileType::Fifo, 0o600.into(), 0).unwrap();
    }
    world.write("sub/.gitignore", "x");
    world.write("sub/x", "x");
    let taken = world.take();
    let expected =
        [(".git", LeftOutWhy::GitDir), (".gitignore", LeftOutWhy::Special), ("sub/x", LeftOutWhy::Ignored)];
    assert_eq!(left_out(&taken), expected.map(|(path, why)| (path.to_owned(), why)));
}

#[test]
fn checkpoints_are_listed_in_the_order_in_which_they_were_taken_though_the_clock_was_set_back() {
    let world = World::new();
    let taken = [5000, 3000, 4000].map(|at| {
        world.write("f", at.to_string());
        let at = Timestamp::from_millis(at);
        take_at(&world.checkpoints, &key("a"), &world.tree, None, at).unwrap()
    });
    assert_eq!(world.list(), taken);
    // The clock alone tells those of two repositories apart.
    let other = world.tree.parent().unwrap().join("other");
    fs::create_dir(&other).unwrap();
    let earlier = take_at(&world.checkpoints, &key("a"), &other, None, Timestamp::from_millis(4500)).unwrap();
    assert_eq!(world.list()[0], earlier);
}
