//! What a checkpoint covers.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::os::unix::net::UnixListener;

use session_checkpoint::CheckpointLimits;
use session_core::LeftOutWhy;

use crate::support::{World, left_out};

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
