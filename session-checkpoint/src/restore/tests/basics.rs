//! One thing at a time.

use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};

use session_core::{LeftOutWhy, LeftWhy};

use super::model::{Model, Thing, differing, file, link, model};
use super::world::{World, left};

fn folder(mode: u16) -> Thing {
    Thing::Folder(mode)
}

/// Puts a tree that is as `from` back to `to`, after `meanwhile` was done to it.
fn play(from: &Model, to: &Model, meanwhile: impl FnOnce(&Path)) -> (World, session_core::Restored) {
    let world = World::new();
    let (a, b) = (world.keep(from), world.keep(to));
    world.build(from);
    meanwhile(&world.root);
    let restored = world.restore(a, b, &differing(from, to));
    assert_eq!(world.rows(), 0);
    (world, restored)
}

fn whole(from: &Model, to: &Model) {
    for (from, to) in [(from, to), (to, from)] {
        let (world, restored) = play(from, to, |_| {});
        assert_eq!(left(&restored), []);
        assert_eq!(restored.done, differing(from, to));
        assert_eq!(world.read(), *to);
    }
}

#[test]
fn everything_turns_into_everything() {
    let things = [
        vec![],
        vec![("x", file(0o644, "one"))],
        vec![("x", file(0o600, "two"))],
        vec![("x", file(0o755, "two"))],
        vec![("x", file(0o644, ""))],
        vec![("x", link("y"))],
        vec![("x", link("/nowhere"))],
        vec![("x", folder(0o755))],
        vec![("x", folder(0o700)), ("x/y", file(0o644, "one")), ("x/z", link("y"))],
        vec![("x", folder(0o555)), ("x/y", folder(0o500)), ("x/y/z", file(0o400, "three"))],
        vec![("x", folder(0o000)), ("x/y", link("z")), ("x/z", folder(0o070))],
    ];
    let world = World::new();
    let models: Vec<Model> = things.iter().map(|things| model(things)).collect();
    let kept: Vec<_> = models.iter().map(|model| world.keep(model)).collect();
    for (from, a) in models.iter().zip(&kept) {
        for (to, b) in models.iter().zip(&kept) {
            world.build(from);
            let paths = differing(from, to);
            let changes = world.diff(*a, *b).unwrap();
            assert_eq!(changes.into_iter().map(|change| change.path).collect::<Vec<_>>(), paths);
            let restored = world.restore(*a, *b, &paths);
            assert_eq!((left(&restored), &restored.done), (vec![], &paths));
            assert_eq!(world.read(), *to);
        }
    }
}

#[test]
fn the_top_gets_its_permissions() {
    let (mut from, mut to) = (model(&[("a", file(0o644, "1"))]), model(&[]));
    to.insert(PathBuf::new(), folder(0o750));
    whole(&from, &to);
    from.insert(PathBuf::new(), folder(0o555));
    to.insert(PathBuf::new(), folder(0o555));
    whole(&from, &to);
}

#[test]
fn long_content_comes_in_pieces() {
    let long = |seed: u8, length: usize| {
        Thing::File(0o640, (0..length).map(|at| (at / 1000) as u8 ^ seed).collect())
    };
    let piece = crate::object::PIECE;
    for length in [piece - 1, piece, piece + 1, 3 * piece + 17] {
        whole(&model(&[("a", long(0, length))]), &model(&[("a", long(1, length))]));
    }
}

#[test]
fn what_was_changed_meanwhile_stays() {
    let from = model(&[("a", file(0o644, "now")), ("b", file(0o644, "now")), ("d", file(0o644, "d"))]);
    let to = model(&[("a", file(0o644, "then")), ("b", file(0o644, "then")), ("c", file(0o644, "then"))]);
    let (world, restored) = play(&from, &to, |root| {
        fs::write(root.join("a"), "NOW").unwrap();
        fs::write(root.join("c"), "new").unwrap();
        fs::set_permissions(root.join("d"), fs::Permissions::from_mode(0o600)).unwrap();
    });
    let changed = || LeftWhy::ChangedMeanwhile;
    let paths = ["a", "c", "d"].map(|path| (Path::new(path), changed()));
    assert_eq!(left(&restored), paths);
    assert_eq!(restored.done, [PathBuf::from("b")]);
    let expected = model(&[
        ("a", file(0o644, "NOW")),
        ("b", file(0o644, "then")),
        ("c", file(0o644, "new")),
        ("d", file(0o600, "d")),
    ]);
    assert_eq!(world.read(), expected);
}

#[test]
fn what_is_put_back_already_is_done() {
    let (from, to) = (model(&[("a", file(0o644, "now"))]), model(&[("b", file(0o644, "then"))]));
    let (world, restored) = play(&from, &to, |root| {
        fs::remove_file(root.join("a")).unwrap();
        fs::write(root.join("b"), "then").unwrap();
        fs::set_permissions(root.join("b"), fs::Permissions::from_mode(0o644)).unwrap();
    });
    assert_eq!(restored.done, differing(&from, &to));
    assert_eq!(world.read(), to);
}

#[test]
fn a_folder_that_holds_something_new_stays() {
    let from = model(&[("d", folder(0o500)), ("d/a", file(0o644, "a"))]);
    let (world, restored) = play(&from, &model(&[]), |root| {
        fs::write(root.join("d/mine"), "mine").unwrap();
        fs::set_permissions(root.join("d/mine"), fs::Permissions::from_mode(0o644)).unwrap();
    });
    assert_eq!(left(&restored), [(Path::new("d"), LeftWhy::NotEmpty)]);
    assert_eq!(world.read(), model(&[("d", folder(0o500)), ("d/mine", file(0o644, "mine"))]));
}

#[test]
fn nothing_is_reached_through_a_link() {
    let from = model(&[("d", folder(0o755)), ("d/a", file(0o644, "now"))]);
    let to = model(&[("d", folder(0o755)), ("d/a", file(0o644, "then"))]);
    let (world, restored) = play(&from, &to, |root| {
        fs::rename(root.join("d"), root.with_file_name("outside")).unwrap();
        symlink("../outside", root.join("d")).unwrap();
    });
    assert_eq!(left(&restored), [(Path::new("d/a"), LeftWhy::InTheWay)]);
    assert_eq!(fs::read(world.root.with_file_name("outside").join("a")).unwrap(), b"now");
}

#[test]
fn a_pipe_stops_nothing() {
    let (from, to) = (model(&[("a", file(0o644, "now"))]), model(&[("a", file(0o644, "then"))]));
    let pipe = model(&[("a", Thing::Special)]);
    let (world, restored) = play(&from, &to, |root| super::model::build(root, &pipe));
    assert_eq!(left(&restored), [(Path::new("a"), LeftWhy::ChangedMeanwhile)]);
    assert_eq!(world.read(), pipe);
}

#[test]
fn another_name_of_a_file_keeps_what_it_had() {
    let from = model(&[("a", file(0o644, "now")), ("b", file(0o644, "same"))]);
    let to = model(&[("a", file(0o644, "then")), ("b", file(0o755, "same"))]);
    let (world, restored) = play(&from, &to, |root| {
        for name in ["a", "b"] {
            fs::hard_link(root.join(name), root.with_file_name(name)).unwrap();
        }
    });
    assert_eq!(restored.left, []);
    assert_eq!(world.read(), to);
    assert_eq!(fs::read(world.root.with_file_name("a")).unwrap(), b"now");
    assert_eq!(fs::metadata(world.root.with_file_name("b")).unwrap().mode() & 0o777, 0o644);
}

#[test]
fn bits_beside_the_permissions_are_not_set() {
    let (from, to) = (model(&[("a", file(0o755, "now"))]), model(&[("a", file(0o755, "then"))]));
    let (world, restored) = play(&from, &to, |root| {
        fs::set_permissions(root.join("a"), fs::Permissions::from_mode(0o4755)).unwrap();
    });
    assert_eq!(restored.left, []);
    assert_eq!(world.read(), to);
}

#[test]
fn what_was_left_out_then_is_not_removed() {
    let now = model(&[("d", folder(0o755)), ("d/secret", file(0o600, "key")), ("x", file(0o644, "x"))]);
    let then = model(&[]);
    let world = World::new();
    let left_out = (b"d".to_vec(), LeftOutWhy::Ignored);
    let (a, b) = (world.keep(&now), world.keep_without(&then, vec![left_out]));
    world.build(&now);
    let told: Vec<PathBuf> = world.diff(b, a).unwrap().into_iter().map(|change| change.path).collect();
    assert_eq!(told, [PathBuf::from("x")]);
    let restored = world.restore(a, b, &differing(&now, &then));
    let not_covered = ["d", "d/secret"].map(|path| (Path::new(path), LeftWhy::NotCovered));
    assert_eq!(left(&restored), not_covered);
    assert_eq!(restored.done, [PathBuf::from("x")]);
}

#[test]
fn damaged_content_is_told_and_the_path_stays() {
    let (from, to) =
        (model(&[("a", file(0o644, "now")), ("b", file(0o644, "b"))]), model(&[("a", file(0o644, "then"))]));
    let world = World::new();
    let (a, b) = (world.keep(&from), world.keep(&to));
    world.build(&from);
    let db = world.checkpoints.open(&world.tree).unwrap();
    db.execute("UPDATE object SET data = x'7468616e' WHERE data = ?1", [b"then".as_slice()]).unwrap();
    let restored = world.restore(a, b, &differing(&from, &to));
    assert_eq!(left(&restored), [(Path::new("a"), LeftWhy::Damaged)]);
    assert_eq!(world.read(), model(&[("a", file(0o644, "now"))]));
}

#[test]
fn paths_that_lead_out_are_refused() {
    let (from, to) = (model(&[]), model(&[]));
    let world = World::new();
    let (a, b) = (world.keep(&from), world.keep(&to));
    world.build(&from);
    fs::write(world.home.path().join("x"), "x").unwrap();
    let paths = ["../x", "/etc/hosts", "a/../../x"].map(PathBuf::from);
    let restored = world.restore(a, b, &paths);
    assert_eq!(restored.left.len(), 3);
    assert!(world.home.path().join("x").exists());
}

#[test]
fn while_one_puts_back_another_is_told_so() {
    let world = World::new();
    let id = world.keep(&model(&[]));
    world.build(&model(&[]));
    let path = world.checkpoints.path(&world.tree, "lock");
    let lock = crate::restore::lock::Lock::of(&path, &world.root).unwrap();
    let busy = world.restore_by(&crate::restore::Real, id, id, &[]);
    assert!(matches!(busy, Err(crate::trouble::Trouble::Busy)), "{busy:?}");
    assert!(crate::restore::recover(&world.checkpoints, &world.root).unwrap().is_empty());
    assert!(matches!(world.recover_by(&crate::restore::Real), Err(crate::trouble::Trouble::Busy)));
    drop(lock);
    world.restore(id, id, &[]);
    assert_eq!(world.recover_by(&crate::restore::Real).unwrap(), []);
}

#[test]
fn what_nobody_waits_for_is_not_begun() {
    let (from, to) = (model(&[("a", file(0o644, "now"))]), model(&[]));
    let mut world = World::new();
    let (a, b) = (world.keep(&from), world.keep(&to));
    world.build(&from);
    let wish = world.wish(a, b, &differing(&from, &to));
    world.waiting = std::sync::Arc::new(());
    assert!(crate::restore::restore(&world.checkpoints, &wish).is_err());
    assert_eq!(world.read(), from);
}

#[test]
fn a_path_that_is_in_neither_is_done_where_nothing_stands() {
    let tree = model(&[("a", file(0o644, "a"))]);
    let world = World::new();
    let (a, b) = (world.keep(&tree), world.keep(&model(&[])));
    world.build(&model(&[("b", file(0o644, "mine"))]));
    let restored = world.restore(b, a, &["b", "c", "d/e"].map(PathBuf::from));
    assert_eq!(left(&restored), [(Path::new("b"), LeftWhy::ChangedMeanwhile)]);
    assert_eq!(restored.done, ["c", "d/e"].map(PathBuf::from));
}

/// On a file system that folds letter case, a name that is spelt in another way is another's.
#[test]
fn a_name_in_another_spelling_is_left() {
    let play = |from: &[(&str, Thing)], to: &[(&str, Thing)], now: &[(&str, Thing)]| {
        let (from, to) = (model(from), model(to));
        let world = World::new();
        let (a, b) = (world.keep(&from), world.keep(&to));
        world.build(&model(now));
        let hands = super::faulty::Faulty::folding();
        let restored = world.restore_by(&hands, a, b, &differing(&from, &to)).unwrap();
        (world.read(), restored)
    };
    let (one, two) = (file(0o644, "one"), file(0o644, "two"));
    // An agent gave it another spelling, which is taken back.
    let (now, restored) = play(&[("read", one.clone())], &[("Read", one.clone())], &[("read", one.clone())]);
    assert_eq!((now, restored.left), (model(&[("Read", one.clone())]), vec![]));
    // Somebody else did so meanwhile.
    let other = [("READ", one.clone())];
    for to in [vec![("read", two.clone())], vec![], vec![("read", folder(0o755))]] {
        let (now, restored) = play(&[("read", one.clone())], &to, &other);
        assert_eq!(left(&restored), [(Path::new("read"), LeftWhy::Folded)], "{to:?}");
        assert_eq!(now, model(&other), "{to:?}");
    }
    let (now, restored) = play(&[], &[("read", one.clone())], &other);
    assert_eq!(left(&restored), [(Path::new("read"), LeftWhy::Folded)]);
    assert_eq!(now, model(&other));
    // Folders, too.
    let (now, restored) = play(&[("d", folder(0o755))], &[("d", folder(0o700))], &[("D", folder(0o755))]);
    assert_eq!(left(&restored), [(Path::new("d"), LeftWhy::Folded)]);
    assert_eq!(now, model(&[("D", folder(0o755))]));
}

/// Somebody changes a file at any moment but the last: what they wrote is there in the end.
#[test]
fn what_is_changed_between_two_looks_stays() {
    let from = model(&[("a", file(0o644, "now")), ("b", file(0o644, "now"))]);
    let to = model(&[("a", file(0o644, "then"))]);
    let world = World::new();
    let (a, b) = (world.keep(&from), world.keep(&to));
    let paths = differing(&from, &to);
    world.build(&from);
    let hands = super::faulty::Faulty::new(super::faulty::Fault::Never);
    world.restore_by(&hands, a, b, &paths).unwrap();
    let calls = hands.calls.into_inner().unwrap();
    for (name, last) in [("a", "replace a"), ("b", "remove b")] {
        let last = calls.iter().position(|call| call == last).unwrap();
        for at in 0..last {
            world.build(&from);
            let meanwhile: fn(&Path) = match name {
                "a" => |root| fs::write(root.join("a"), "mine").unwrap(),
                _ => |root| fs::write(root.join("b"), "mine").unwrap(),
            };
            let hands = super::faulty::Faulty::beside(&world.root, at, meanwhile);
            let restored = world.restore_by(&hands, a, b, &paths).unwrap();
            assert_eq!(left(&restored), [(Path::new(name), LeftWhy::ChangedMeanwhile)], "{name} at {at}");
            assert_eq!(fs::read(world.root.join(name)).unwrap(), b"mine", "{name} at {at}");
        }
    }
}

#[test]
fn nothing_unfinished_stays_in_a_folder_that_is_moved_meanwhile() {
    let names = ["d", "d/a", "e", "e/b"];
    let state = |text| {
        let (d, a, e, b) = (folder(0o755), file(0o644, text), folder(0o755), file(0o644, text));
        model(&[("d", d), ("d/a", a), ("e", e), ("e/b", b)])
    };
    let (from, to) = (state("now"), state("then"));
    let world = World::new();
    let (a, b) = (world.keep(&from), world.keep(&to));
    let paths = names.map(PathBuf::from).to_vec();
    world.build(&from);
    let hands = super::faulty::Faulty::new(super::faulty::Fault::Never);
    world.restore_by(&hands, a, b, &paths).unwrap();
    for at in 0..hands.count() {
        world.build(&from);
        let meanwhile: fn(&Path) = |root| {
            fs::rename(root.join("d"), root.join("moved")).unwrap();
            std::os::unix::fs::symlink("e", root.join("d")).unwrap();
            fs::write(root.join("moved/a"), "mine").unwrap();
        };
        let hands = super::faulty::Faulty::beside(&world.root, at, meanwhile);
        drop(world.restore_by(&hands, a, b, &paths).unwrap());
        let unfinished = |path: &PathBuf| path.to_string_lossy().contains(".rejoin-restore");
        let left: Vec<PathBuf> = world.read().into_keys().filter(unfinished).collect();
        assert!(left.is_empty(), "at {at}: {left:?}");
    }
}

#[test]
fn commits_are_waited_for_again_after_a_restore() {
    let (from, to) = (model(&[("x", file(0o644, "one"))]), model(&[("x", file(0o644, "two"))]));
    let (world, _) = play(&from, &to, |_| {});
    let db = world.checkpoints.open(&world.tree).unwrap();
    let level = || db.pragma_query_value(None, "synchronous", |row| row.get::<_, i64>(0)).unwrap();
    assert_eq!(level(), 2);
    let failed: crate::trouble::Outcome<()> = crate::database::soon(&db, || {
        assert_eq!(level(), 1);
        Err(crate::trouble::Trouble::NotFound)
    });
    assert!(failed.is_err());
    assert_eq!(level(), 2);
}
