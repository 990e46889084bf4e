//! What a checkpoint leaves out it names, and nobody touches it (contract 1, R17).

use std::fs::{self, File};
use std::os::unix::net::UnixListener;
use std::path::Path;

use session_core::error::CheckpointErrorKind;
use session_core::{LeftOutWhy, PathText};

use super::Subject;
use super::stage::{Taken, answer, key, kind, label, new_id};
use super::tree::sure;

/// Why a path is left out: by its own name, or by that of a folder above it.
fn why(taken: &Taken, path: &str) -> Option<LeftOutWhy> {
    let names = |left: &&session_core::LeftOut| {
        Path::new(path).ancestors().any(|above| above != Path::new("") && PathText::new(above) == left.path)
    };
    taken.checkpoint.left_out.iter().find(names).map(|left| left.why)
}

/// Sockets and pipes are named, and stop nobody: nothing opens them (BR-135).
pub(super) fn what_is_no_file_is_named(subject: &Subject) {
    subject.every(async |at| {
        let (work, key) = (at.work(), key("a"));
        work.write("a", "a");
        work.folder("run");
        assert!(work.shell("mkfifo run/pipe", &[]), "no pipe");
        let socket = work.at("socket");
        let _listens = sure(UnixListener::bind(&socket), &socket);
        let first = at.take(&work, &key).await;
        for path in ["run/pipe", "socket"] {
            assert_eq!(why(&first, path), Some(LeftOutWhy::Special), "{path}");
        }
        assert!(first.checkpoint.left_out_count >= 2);
        assert_eq!(first.checkpoint.files, 1);
        work.write("a", "b");
        let second = at.take(&work, &key).await;
        super::tree::assert_told(&at.diff(&key, &first, &second).await, &first.tree, &second.tree);
        at.back(&key, &work, &first).await;
        assert!(work.there("run/pipe") && work.there("socket"), "what is not covered is gone");
    });
}

/// A file over the limit is named with its size, costs nothing, and is not touched (BR-135).
pub(super) fn what_is_too_large_is_named(subject: &Subject) {
    subject.every(async |at| {
        let (work, key) = (at.work(), key("a"));
        work.write("small", "small");
        let Some(limit) = at.subject.file_limit else {
            // No limit is claimed: nothing is called too large.
            work.write("large", "x".repeat(1 << 20));
            let first = at.take(&work, &key).await;
            assert_eq!(why(&first, "large"), None);
            work.remove("large");
            at.back(&key, &work, &first).await;
            return;
        };
        let bytes = (3 << 30).max(limit + 1);
        let sparse = sure(File::create(work.at("large")), Path::new("large"));
        sure(sparse.set_len(bytes), Path::new("large"));
        let sparse = sure(File::create(work.at("just")), Path::new("just"));
        sure(sparse.set_len(limit + 1), Path::new("just"));
        // The reader of the suite would read them.
        let (large, just) = (at.ground("large"), at.ground("just"));
        let label = label(&key);
        let order = session_core::TakeOrder {
            id: new_id(),
            label: &label,
            at: at.now(),
            folder: &work.0,
            changed: None,
        };
        let checkpoint = answer(at.engine().take(&order).await);
        sure(fs::rename(work.at("large"), &large), &large);
        sure(fs::rename(work.at("just"), &just), &just);
        let first = Taken { id: checkpoint.id, tree: work.tree(), checkpoint };
        assert_eq!(why(&first, "large"), Some(LeftOutWhy::TooLarge { bytes }));
        assert_eq!(why(&first, "just"), Some(LeftOutWhy::TooLarge { bytes: limit + 1 }));
        assert_eq!((first.checkpoint.files, first.checkpoint.bytes), (1, 5));
        assert_eq!(at.read(&key, &first, "large").await, None);
        work.write("small", "changed");
        at.back(&key, &work, &first).await;
    });
}

/// What may not be read is named, and the rest is covered. Whoever may read all leaves nothing out for that.
pub(super) fn what_may_not_be_read_is_named(subject: &Subject) {
    subject.every(async |at| {
        let (work, key) = (at.work(), key("a"));
        work.write("a", "a");
        work.write("closed", "closed");
        work.chmod("closed", 0);
        let may = File::open(work.at("closed")).is_ok();
        let first = at.take(&work, &key).await;
        assert_eq!(why(&first, "closed"), (!may).then_some(LeftOutWhy::Unreadable));
        assert_eq!(first.checkpoint.files, if may { 2 } else { 1 });
        work.write("a", "b");
        if may {
            work.chmod("closed", 0o644);
        }
        at.back(&key, &work, &first).await;
        assert_eq!(work.mode("closed"), 0);
    });
}

/// What stood where something stands by now that is not covered is told, file, link or folder, and nothing else.
pub(super) fn what_is_left_out_by_now_is_told(subject: &Subject) {
    subject.every(async |at| {
        let (work, key) = (at.work(), key("a"));
        for path in ["a", "folder/in/it", "folder/x", "gone", "stays/x"] {
            work.write(path, path);
        }
        work.link("link", "a");
        assert!(work.shell("mkfifo pipe", &[]), "no pipe");
        let first = at.take(&work, &key).await;
        for path in ["a", "folder", "gone", "link"] {
            work.remove(path);
        }
        assert!(work.shell("mkfifo a folder link new stays/new", &[]), "no pipe");
        let second = at.take(&work, &key).await;
        let told = answer(at.engine().hidden(&key, first.id, second.id).await);
        assert_eq!(told, ["a", "folder", "link"].map(Path::new));
        for (of, by) in [(&second, &first), (&first, &first), (&second, &second)] {
            assert!(answer(at.engine().hidden(&key, of.id, by.id).await).is_empty());
        }
        let unknown = at.engine().hidden(&key, first.id, new_id()).await;
        assert_eq!(kind(unknown), CheckpointErrorKind::NotFound);
    });
}

/// What an ignore rule names is covered, or named and left alone; what git tracks is covered, whatever the rules.
pub(super) fn what_is_ignored_is_named(subject: &Subject) {
    subject.every(async |at| {
        let (work, key) = (at.work(), key("a"));
        work.write(".gitignore", "ignored.txt\nbuild/\n*.log\n");
        work.write("a", "a");
        work.write("ignored.txt", "i");
        work.write("build/out/it", "o");
        work.write("tracked.log", "t");
        work.git(&["add", "-f", "tracked.log"]);
        let first = at.take(&work, &key).await;
        let covered = at.subject.covers_ignored;
        for (path, kept) in [("ignored.txt", covered), ("build/out/it", covered), ("tracked.log", true)] {
            let wanted = (!kept).then_some(LeftOutWhy::Ignored);
            assert_eq!(why(&first, path), wanted, "{path}");
            assert_eq!(at.read(&key, &first, path).await.is_some(), kept, "{path}");
        }
        for path in ["ignored.txt", "build/out/it", "tracked.log", "a"] {
            work.write(path, "changed");
        }
        let second = at.take(&work, &key).await;
        let left = |path: &Path| !covered && (path.starts_with("build") || path == Path::new("ignored.txt"));
        let (old, new) = (first.tree.without(left), second.tree.without(left));
        super::tree::assert_told(&at.diff(&key, &second, &first).await, &new, &old);
        let paths = new.differing(&old);
        let restored = at.restore(&key, &work, (&first, &second), &paths).await;
        super::stage::assert_all_done(&restored, &paths);
        work.tree().without(left).assert_is(&old, "after going back");
        let ignored = if covered { "i" } else { "changed" };
        assert_eq!(work.bytes("ignored.txt").as_deref(), Some(ignored.as_bytes()));
    });
}

/// The files of a repository in the tree are covered as others are; its `.git`, folder or file, is named and not touched.
pub(super) fn a_nested_repository_is_covered(subject: &Subject) {
    subject.every(async |at| {
        let (work, key) = (at.work(), key("a"));
        let nested = super::work::Work::repository(work.at("nested/one"));
        nested.write("inside", "inside");
        work.write("module/inside", "inside");
        work.write("module/.git", "gitdir: ../.git/modules/module\n");
        work.write("a", "a");
        let first = at.take(&work, &key).await;
        for path in ["nested/one/.git", "module/.git"] {
            assert_eq!(why(&first, path), Some(LeftOutWhy::GitDir), "{path}");
        }
        assert_eq!(first.checkpoint.files, 3);
        nested.write("inside", "changed");
        nested.write("new", "new");
        work.remove("module/inside");
        nested.write(".git/HEAD", "ref: refs/heads/other\n");
        work.write("module/.git", "gitdir: elsewhere\n");
        let second = at.back(&key, &work, &first).await;
        assert_eq!(nested.bytes(".git/HEAD").as_deref(), Some(&b"ref: refs/heads/other\n"[..]));
        assert_eq!(work.bytes("module/.git").as_deref(), Some(&b"gitdir: elsewhere\n"[..]));
        // Whatever is asked for, and whatever the answer is.
        let paths = super::stage::owned(&["nested/one/.git/HEAD", "nested/one/.git", "module/.git"]);
        let (key, step) = (&key, super::stage::step());
        let (to, from) = (first.id, second.id);
        let order = session_core::RestoreOrder { key, step, folder: &work.0, to, from, paths: &paths };
        drop(at.engine().restore(&order).await);
        assert_eq!(nested.bytes(".git/HEAD").as_deref(), Some(&b"ref: refs/heads/other\n"[..]));
        assert!(work.there("module/.git"));
    });
}

/// A store within the tree is not covered: the tree is refused for it, or it is named.
pub(super) fn the_store_is_not_covered(subject: &Subject) {
    subject.every(async |at| {
        let key = key("a");
        let folder = sure(fs::canonicalize(at.scratch().dir()), at.scratch().dir());
        let tree = super::work::Work::plain(folder.clone());
        tree.write("beside the store", "x");
        let label = label(&key);
        for _ in 0..2 {
            let order = session_core::TakeOrder {
                id: new_id(),
                label: &label,
                at: at.now(),
                folder: &folder,
                changed: None,
            };
            match at.engine().take(&order).await {
                Err(error) => {
                    assert_eq!(error.kind(), CheckpointErrorKind::NotHere, "{error}");
                    assert_eq!(at.list(&key).await, []);
                }
                Ok(taken) => {
                    let ours = taken.left_out.iter().any(|left| left.why == LeftOutWhy::Ours);
                    assert!(ours, "the store is not named: {:?}", taken.left_out);
                    assert_eq!(taken.files, 1, "the store is covered by itself");
                }
            }
        }
    });
}

/// No checkpoint is taken of `/`, nor of a home (BR-135).
pub(super) fn a_home_is_refused(subject: &Subject) {
    subject.every(async |at| {
        let home = match &at.subject.home {
            Some(home) => Some(home(at.scratch().dir())),
            None => std::env::home_dir(),
        };
        let home = home.and_then(|home| {
            drop(fs::create_dir_all(&home));
            fs::canonicalize(home).ok()
        });
        let label = label(&key("a"));
        for folder in home.iter().map(AsRef::as_ref).chain([Path::new("/")]) {
            // Asked first: whoever takes a home for a tree is not told to read all of it.
            assert_eq!(kind(at.engine().root_of(folder).await), CheckpointErrorKind::NotHere, "{folder:?}");
            let order =
                session_core::TakeOrder { id: new_id(), label: &label, at: at.now(), folder, changed: None };
            assert_eq!(kind(at.engine().take(&order).await), CheckpointErrorKind::NotHere, "{folder:?}");
        }
        assert_eq!(at.list(&key("a")).await, []);
    });
}
