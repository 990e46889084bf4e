//! What ignore rules leave out, beside what git says.

use std::collections::BTreeSet;
use std::fs;

use session_core::{
    Checkpoint, CheckpointId, Checkpointer as _, Label, LeftOutWhy, Moment, RunId, TakeOrder, Timestamp,
};

use crate::support::{World, block, git, key, left_out};

/// The topmost paths that are left out as ignored.
fn ignored(world: &World) -> BTreeSet<String> {
    let out = left_out(&world.take());
    out.into_iter().filter(|(_, why)| *why == LeftOutWhy::Ignored).map(|(path, _)| path).collect()
}

#[test]
fn the_same_is_ignored_as_by_git() {
    let world = World::with_repository();
    world.write(
        ".gitignore",
        "target/\n*.log\n!keep.log\n/only_top\r\n# note\n\\#odd\nbuild/**/*.o\ndoc/*.txt\n\nspace\\ \n{a,b}.c\n[xy]z\nfoo/\nst?r\n**/deep/er\n",
    );
    world.write("sub/.gitignore", "!a.log\nlocal\n");
    world.write(".git/info/exclude", "excluded\n!x.late\n");
    world.write("late/.gitignore", "*.late\n");
    for path in [
        "target/debug/x",
        "a.log",
        "keep.log",
        "only_top",
        "sub/only_top",
        "#odd",
        "build/a/b/c.o",
        "build/c.o",
        "doc/a.txt",
        "doc/b/a.txt",
        "space ",
        "a.c",
        "b.c",
        "{a,b}.c",
        "xz",
        "az",
        "foo",
        "q/foo/x",
        "star",
        "st/r",
        "q/deep/er/y",
        "deep/er",
        "sub/a.log",
        "sub/b.log",
        "sub/local/x",
        "local",
        "excluded/x",
        "q/excluded",
        "late/x.late",
        "late/y.late",
        "x.late",
        // So that no folder is left out just because all in it is.
        "build/f",
        "build/a/f",
        "build/a/b/f",
        "deep/f",
        "q/f",
        "q/deep/f",
    ] {
        world.write(path, "x");
    }
    let listed = world.git(&["ls-files", "-z", "-o", "-i", "--exclude-standard", "--directory"]);
    let expected: BTreeSet<String> =
        listed.split_terminator('\0').map(|path| path.trim_end_matches('/').to_owned()).collect();
    assert!(expected.len() > 15, "{expected:?}");
    assert_eq!(ignored(&world), expected);
    assert_eq!(ignored(&world), expected, "when nothing changed");
    let mut world = world;
    world.checkpoints = world.checkpoints.with_ignored(true);
    assert!(ignored(&world).is_empty());
    assert_eq!(world.read(&world.take(), "target/debug/x").unwrap(), b"x");
}

#[test]
fn what_git_tracks_is_covered_though_a_rule_names_it() {
    for version in ["2", "4"] {
        let world = World::with_repository();
        world.write(".gitignore", "out/\n*.bin\n");
        world.write("out/kept/a", "a");
        world.write("out/kept/b", "b");
        world.write("out/other", "c");
        world.write("x.bin", "x");
        world.write("y.bin", "y");
        assert_eq!(ignored(&world), ["out", "x.bin", "y.bin"].map(str::to_owned).into());
        world.git(&["update-index", "--index-version", version]);
        world.git(&["add", "-f", "out/kept/a", "x.bin"]);
        let expected = ["out/kept/b", "out/other", "y.bin"].map(str::to_owned);
        assert_eq!(ignored(&world), expected.into());
        let taken = world.take();
        assert_eq!(world.read(&taken, "out/kept/a").unwrap(), b"a");
        assert_eq!(world.read(&taken, "out/kept/b"), None);
        world.write("out/kept/a", "A");
        let taken = world.try_take(Some(&["out/kept/a", "out/kept/b"])).unwrap();
        assert_eq!(world.read(&taken, "out/kept/a").unwrap(), b"A");
        assert_eq!(world.read(&taken, "out/kept/b"), None);
        world.git(&["rm", "-q", "-f", "--cached", "out/kept/a"]);
        assert_eq!(ignored(&world), ["out", "y.bin"].map(str::to_owned).into());
    }
}

#[test]
fn each_repository_has_its_own_rules() {
    let world = World::with_repository();
    world.write(".gitignore", "*.tmp\nignored_repo/\n");
    world.write("nested/a.tmp", "x");
    world.write("nested/a.own", "x");
    world.write("nested/a.excluded", "x");
    world.write("nested/.gitignore", "*.own\n");
    world.write("ignored_repo/a", "x");
    for repository in ["nested", "ignored_repo"] {
        crate::support::git(&world.tree.join(repository), &["init", "-q"]);
    }
    world.write("nested/.git/info/exclude", "*.excluded\n");
    let expected = ["ignored_repo", "nested/a.excluded", "nested/a.own"].map(str::to_owned);
    assert_eq!(ignored(&world), expected.into());
}

#[test]
fn rules_count_without_a_repository_and_change_with_their_files() {
    let world = World::new();
    world.write("a/x", "x");
    world.write("b/x", "x");
    assert_eq!(ignored(&world), BTreeSet::new());
    world.write(".gitignore", "x\n");
    assert_eq!(ignored(&world), ["a/x", "b/x"].map(str::to_owned).into());
    world.write("b/.gitignore", "!x\n");
    assert_eq!(ignored(&world), ["a/x"].map(str::to_owned).into());
    fs::remove_file(world.tree.join(".gitignore")).unwrap();
    let taken = world.try_take(Some(&[".gitignore"])).unwrap();
    assert_eq!(taken.left_out_count, 0);
    assert_eq!(world.read(&taken, "a/x").unwrap(), b"x");
}

#[test]
fn a_rule_that_a_prompt_makes_hides_nothing_of_what_it_does() {
    let world = World::new();
    world.write("a", "one");
    world.write("sub/deep/s", "one");
    let step = |moment, step: u128, back_to, changed: Option<&[std::path::PathBuf]>| {
        let step = RunId::new(uuid::Uuid::from_u128(step));
        let label = Label { back_to, ..Label::new(key("a"), step, moment) };
        let id = CheckpointId::new(uuid::Uuid::new_v4());
        let order = TakeOrder { id, label: &label, at: Timestamp::EPOCH, folder: &world.tree, changed };
        block(world.checkpoints.take(&order)).unwrap()
    };
    let named = |taken: &Checkpoint| left_out(taken).into_iter().map(|(path, _)| path).collect::<Vec<_>>();
    let first = step(Moment::BeforeRun, 1, None, None);
    for (path, text) in
        [(".gitignore", "*\n"), ("a", "two"), ("sub/deep/s", "two"), ("sub/new", "n"), ("new", "n")]
    {
        world.write(path, text);
    }
    let after = step(Moment::AfterRun, 1, None, None);
    assert_eq!(named(&after), ["new", "sub/new"]);
    for path in ["a", "sub/deep/s"] {
        assert_eq!(world.read(&after, path).unwrap(), b"two");
    }
    let changed = ["a", "sub/deep/s", "sub/new", "new"].map(Into::into);
    let known = step(Moment::AfterRun, 1, None, Some(&changed));
    assert_eq!(named(&known), ["new", "sub/new"], "where paths are known");
    for end in [after.id, known.id] {
        let changes = block(world.checkpoints.diff(&key("a"), first.id, end)).unwrap();
        let changes: Vec<_> = changes.iter().map(|change| change.path.to_str().unwrap()).collect();
        assert_eq!(changes, [".gitignore", "a", "sub/deep/s"]);
    }
    // The rule holds for what comes then.
    assert_eq!(named(&step(Moment::BeforeRun, 2, None, None)), ["a", "new", "sub"]);
    assert_eq!(named(&step(Moment::AfterRun, 2, None, None)), ["a", "new", "sub"]);
    let before = step(Moment::BeforeRewind, 3, Some(first.id), None);
    assert_eq!(world.read(&before, "a").unwrap(), b"two");
    for end in [Moment::AfterRewind, Moment::Asked] {
        assert_eq!(named(&step(end, 3, None, None)), ["new", "sub/new"]);
    }
    assert_eq!(named(&step(Moment::Asked, 5, None, None)), ["a", "new", "sub"]);
    // Another key's checkpoint says nothing.
    let stranger = CheckpointId::new(uuid::Uuid::from_u128(9));
    assert_eq!(named(&step(Moment::BeforeRewind, 4, Some(stranger), None)), ["a", "new", "sub"]);
}

/// Anybody who writes into the tree may write rules; what they take of memory has an end.
#[test]
fn a_list_that_would_take_too_much_memory_is_not_read() {
    let world = World::new();
    // Each takes half of what there is, and a bit more.
    let costly = |names: &str| format!("{}*\n{names}\n", "x".repeat(140 << 10));
    world.write(".gitignore", costly("top"));
    world.write("d/.gitignore", costly("mine"));
    world.write("d/e/.gitignore", "mine\n*.log\n");
    world.write("f/.gitignore", costly("mine"));
    let many: String = (0..8_000).map(|n| format!("longer-name-{n}\n*.e{n}\n")).collect();
    world.write("g/.gitignore", many + &"#*".repeat(200 << 10));
    world.write("h/.gitignore", costly(&costly("mine")));
    // Small, but slow for every path.
    world.write("i/.gitignore", format!("{}mine\n", format!("{}\n", "*a".repeat(100)).repeat(20)));
    world.write("j/.gitignore", format!("{}mine\n", "**/*.x*\n".repeat(1000)));
    for path in [
        "top",
        "d/top",
        "d/mine",
        "d/e/mine",
        "d/e/a.log",
        "f/mine",
        "g/longer-name-7999",
        "g/a.e7999",
        "h/mine",
        "i/mine",
        "j/mine",
    ] {
        world.write(path, "x");
    }
    let out: Vec<_> = left_out(&world.take()).into_iter().map(|(path, _)| path).collect();
    assert_eq!(out, ["d/e/a.log", "d/e/mine", "d/top", "g/a.e7999", "g/longer-name-7999", "j/mine", "top"]);
    // In a repository of its own, too.
    git(&world.tree.join("d"), &["init", "-q"]);
    world.write("d/.git/info/exclude", costly("mine"));
    let out: Vec<_> = left_out(&world.take()).into_iter().map(|(path, _)| path).collect();
    let rest = ["d/e/a.log", "d/e/mine", "g/a.e7999", "g/longer-name-7999", "j/mine", "top"];
    assert_eq!(out[0], "d/.git");
    assert_eq!(out[1..], rest);
}
