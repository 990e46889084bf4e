//! A checkpoint covers every file, folder and link of the tree, by whatever made them (contract 1).

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use session_core::PathText;

use super::Subject;
use super::stage::{Stage, answer, assert_all_done, key, label, owned};
use super::work::Work;

/// A tree of all that there is in one.
pub(super) fn rich(at: &Stage<'_>) -> Work {
    let work = at.work();
    work.write("a.txt", "a\n");
    work.write("empty", "");
    work.write("src/main.rs", "fn main() {}\n");
    work.write("src/deep/er/file", [0, 159, 146, 150, 10, 0]);
    work.write("large", "0123456789abcdef".repeat(5_000));
    work.write("run.sh", "#!/bin/sh\n");
    work.write("key.txt", "secret\n");
    work.write("fixed", "read only\n");
    work.folder("nothing/in/it");
    work.folder("private");
    work.write("private/of mine", "x");
    work.link("to file", "a.txt");
    work.link("to folder", "src");
    work.link("to nothing", "no/where");
    for (path, mode) in
        [("a.txt", 0o644), ("run.sh", 0o755), ("key.txt", 0o600), ("fixed", 0o400), ("private", 0o700)]
    {
        work.chmod(path, mode);
    }
    work
}

/// Whatever happens to a tree, all of it comes back, and what is new goes.
pub(super) fn a_tree_comes_back(subject: &Subject) {
    subject.every(async |at| {
        let (work, key) = (rich(&at), key("a"));
        let first = at.take(&work, &key).await;
        for path in ["a.txt", "empty", "src", "large", "nothing", "private", "to file", "to nothing"] {
            work.remove(path);
        }
        work.append("run.sh", b"echo\n");
        work.write("new/er/one", "new");
        work.write("src", "a file by now");
        at.back(&key, &work, &first).await;
        // And from nothing at all.
        for path in first.tree.0.keys().filter(|path| path.components().count() == 1) {
            work.remove(path);
        }
        at.back(&key, &work, &first).await;
    });
}

/// It says what it is: when, of what, how much, and all that it was told.
pub(super) fn a_checkpoint_tells_its_tree(subject: &Subject) {
    subject.every(async |at| {
        let (work, key) = (rich(&at), key("a"));
        let taken = at.take(&work, &key).await;
        let listed = at.list(&key).await;
        assert_eq!(listed, std::slice::from_ref(&taken.checkpoint), "the list tells what taking told");
        let told = &taken.checkpoint;
        assert_eq!((told.files, told.bytes), taken.tree.counts(), "files and bytes");
        assert_eq!(told.root, PathText::new(&work.0));
        assert_eq!(told.health, session_core::Health::Whole);
        assert!(told.left_out_count >= told.left_out.len() as u64);
        let label = label(&key);
        let order = session_core::TakeOrder {
            id: super::stage::new_id(),
            label: &label,
            at: at.now(),
            folder: &work.at("src"),
            changed: None,
        };
        let second = answer(at.engine().take(&order).await);
        assert_eq!((&second.label, second.at), (&label, order.at));
        assert_eq!(second.root, PathText::new(&work.0), "of a folder of the tree, the tree is covered");
        assert_eq!((second.files, second.bytes), taken.tree.counts());
    });
}

/// What a shell did is taken back as anything else is (BR-079).
pub(super) fn shell_edits_are_taken_back(subject: &Subject) {
    subject.every(async |at| {
        let (work, key) = (at.work(), key("a"));
        work.write("a.txt", "one\ntwo\n");
        work.write("c.txt", "c\n");
        work.write("old/name", "n\n");
        let before = at.take(&work, &key).await;
        let script = "sed 's/one/1/' a.txt >t && mv t a.txt && printf b >b.txt && rm c.txt && \
                      mv old new && chmod 600 new/name && ln -s a.txt link && ln a.txt hard";
        assert!(work.shell(script, &[]), "the shell did not do it");
        let paths = ["a.txt", "b.txt", "c.txt", "hard", "link", "new", "new/name", "old", "old/name"];
        assert_eq!(work.tree().differing(&before.tree), owned(&paths));
        at.back(&key, &work, &before).await;
        assert_eq!(work.bytes("a.txt").as_deref(), Some(&b"one\ntwo\n"[..]));
        assert_eq!((work.there("b.txt"), work.there("c.txt")), (false, true));
    });
}

/// A folder counts, also where nothing is in it.
pub(super) fn an_empty_folder_comes_back(subject: &Subject) {
    subject.every(async |at| {
        let (work, key) = (at.work(), key("a"));
        work.folder("a/b");
        work.folder("c");
        let first = at.take(&work, &key).await;
        work.remove("a");
        work.remove("c");
        let second = at.back(&key, &work, &first).await;
        let paths = first.tree.differing(&second.tree);
        let restored = at.restore(&key, &work, (&second, &first), &paths).await;
        assert_all_done(&restored, &paths);
        work.tree().assert_is(&second.tree, "after the folders went again");
    });
}

/// Names are bytes: none is an option, a pattern, a line, or text.
pub(super) fn names_of_any_bytes_come_back(subject: &Subject) {
    subject.every(async |at| {
        let (work, key) = (at.work(), key("a"));
        let long = "l".repeat(255);
        let names = [
            "-rf",
            "--",
            "new\nline",
            "tab\tand \"quotes\" 'too'",
            " ",
            "...",
            "*",
            "[a]",
            "!a",
            "#a",
            ":(top)a",
            "a\\b",
            "same",
            "SAME",
            "e\u{301}",
            "\u{e9}",
            "\u{1f600}",
            &long,
        ];
        let mut names: Vec<PathBuf> = owned(&names);
        names.push(PathBuf::from(OsStr::from_bytes(b"\xff\xfe")));
        for (n, name) in names.iter().enumerate() {
            // A file system may know no such name.
            drop(std::fs::write(work.at(name), format!("{n}")));
            drop(std::fs::create_dir(work.at("under")));
            drop(std::fs::create_dir(work.at("under").join(name)));
            drop(std::fs::write(work.at("under").join(name).join(name), format!("{n}\n")));
        }
        let first = at.take(&work, &key).await;
        assert!(first.tree.0.len() > 30, "{} names are known here", first.tree.0.len());
        for path in first.tree.0.keys().filter(|path| path.components().count() == 1) {
            work.remove(path);
        }
        let second = at.back(&key, &work, &first).await;
        let changes = at.diff(&key, &second, &first).await;
        super::tree::assert_told(&changes, &second.tree, &first.tree);
    });
}

/// A change counts that leaves size and time as they were; where that may be missed, what is kept is one state or the other.
pub(super) fn a_backdated_change_is_seen(subject: &Subject) {
    subject.every(async |at| {
        let (work, key) = (at.work(), key("a"));
        work.write("a", "content of a");
        work.write("b", "b");
        let first = at.take(&work, &key).await;
        work.backdated("a");
        let second = at.take(&work, &key).await;
        if at.subject.sees_backdated {
            let changes = at.diff(&key, &first, &second).await;
            super::tree::assert_told(&changes, &first.tree, &second.tree);
            at.back(&key, &work, &first).await;
            return;
        }
        let read = at.read(&key, &second, "a").await;
        let known = [&b"content of a"[..], b"CONTENT\0OF\0A"];
        assert!(read.as_deref().is_some_and(|read| known.contains(&read)), "{read:?}");
        work.append("a", b"!");
        let third = at.take(&work, &key).await;
        assert_eq!(at.read(&key, &third, "a").await.as_deref(), Some(&b"CONTENT\0OF\0A!"[..]));
    });
}

/// Who knows what may have changed gets the same checkpoint by it; a folder stands for all below it.
pub(super) fn known_changes_are_enough(subject: &Subject) {
    subject.every(async |at| {
        let (work, key) = (rich(&at), key("a"));
        // Nothing was taken before: what changed since then is not known, whoever says so.
        let first = answer(at.try_take(&work, &key, Some(&[])).await);
        work.append("a.txt", b"more");
        work.remove("src/deep");
        work.write("src/new/er", "new");
        work.remove("to file");
        work.write("to file/by now", "a folder");
        let known = owned(&["a.txt", "src", "to file", "not/there", "run.sh"]);
        let second = answer(at.try_take(&work, &key, Some(&known)).await);
        super::tree::assert_told(&at.diff(&key, &first, &second).await, &first.tree, &second.tree);
        assert_eq!((second.checkpoint.files, second.checkpoint.bytes), second.tree.counts());
        let third = answer(at.try_take(&work, &key, Some(&[])).await);
        assert_eq!(at.diff(&key, &second, &third).await, []);
        work.remove("src");
        let gone = [PathBuf::from("src/main.rs"), PathBuf::from("src")];
        let fourth = answer(at.try_take(&work, &key, Some(&gone)).await);
        super::tree::assert_told(&at.diff(&key, &third, &fourth).await, &third.tree, &fourth.tree);
        at.back(&key, &work, &first).await;
        assert_eq!(at.read(&key, &first, "src/main.rs").await.as_deref(), Some(&b"fn main() {}\n"[..]));
        assert!(work.there(Path::new("src/deep/er/file")));
    });
}
