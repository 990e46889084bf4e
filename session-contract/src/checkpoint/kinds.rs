//! Modes, links, and paths at which something else stands by now.

use std::fs;

use super::Subject;
use super::stage::{Stage, key};
use super::tree::{assert_told, everything, sure};
use super::work::Work;

/// Files of these modes: one to run, one that is private, one for all.
fn of_modes(at: &Stage<'_>) -> Work {
    let work = at.work();
    for (path, mode) in [("run.sh", 0o755), ("key.txt", 0o600), ("doc.md", 0o644), ("fixed", 0o400)] {
        work.write(path, path);
        work.chmod(path, mode);
    }
    work.folder("open");
    work.folder("closed");
    work.chmod("open", 0o755);
    work.chmod("closed", 0o700);
    work
}

/// Permissions come back with the content and without it (BR-081).
pub(super) fn modes_come_back(subject: &Subject) {
    subject.every(async |at| {
        let (work, key) = (of_modes(&at), key("a"));
        let first = at.take(&work, &key).await;
        // By mode alone.
        for path in ["run.sh", "key.txt", "fixed", "open"] {
            work.chmod(path, if path == "open" { 0o700 } else { 0o644 });
        }
        work.chmod("closed", 0o755);
        at.back(&key, &work, &first).await;
        // With another content, and from nothing.
        for path in ["run.sh", "key.txt", "doc.md"] {
            work.write(path, "another");
            work.chmod(path, 0o666);
        }
        work.remove("fixed");
        work.remove("closed");
        work.remove("open");
        at.back(&key, &work, &first).await;
        for (path, mode) in [("run.sh", 0o755), ("key.txt", 0o600), ("doc.md", 0o644), ("closed", 0o700)] {
            assert_eq!(work.mode(path), mode, "{path}");
        }
    });
}

/// A difference of mode alone is one, and is told as such.
pub(super) fn a_change_of_mode_is_told(subject: &Subject) {
    subject.every(async |at| {
        let (work, key) = (of_modes(&at), key("a"));
        let first = at.take(&work, &key).await;
        work.chmod("key.txt", 0o644);
        work.chmod("closed", 0o755);
        let second = at.take(&work, &key).await;
        let changes = at.diff(&key, &first, &second).await;
        assert_told(&changes, &first.tree, &second.tree);
        assert_eq!(changes.len(), 2);
        assert!(changes.iter().all(session_core::Change::is_mode_only), "{changes:?}");
    });
}

/// Bits beside the permissions are neither kept nor set.
pub(super) fn setuid_stays_off(subject: &Subject) {
    subject.every(async |at| {
        let (work, key) = (at.work(), key("a"));
        work.write("tool", "#!/bin/sh\n");
        work.chmod("tool", 0o6755);
        let first = at.take(&work, &key).await;
        work.write("tool", "another");
        work.chmod("tool", 0o644);
        at.back(&key, &work, &first).await;
        assert_eq!(work.mode("tool"), 0o755);
        work.remove("tool");
        at.back(&key, &work, &first).await;
        assert_eq!(work.mode("tool"), 0o755);
    });
}

/// A link is a link, wherever it leads; nothing is read or written where it leads to.
pub(super) fn links_come_back_as_links(subject: &Subject) {
    subject.every(async |at| {
        let (work, key, outside) = (at.work(), key("a"), at.ground("outside"));
        sure(fs::create_dir(&outside), &outside);
        sure(fs::write(outside.join("file"), "not of the tree"), &outside);
        work.write("src/file", "of the tree");
        work.link("file", "src/file");
        work.link("folder", "src");
        work.link("dangling", "no/where");
        work.link("itself", "itself");
        work.link("absolute", outside.join("file"));
        work.link("outside", "../outside");
        let before = everything(&outside);
        let first = at.take(&work, &key).await;
        assert_eq!(at.read(&key, &first, "outside/file").await, None, "what a link leads to is covered");
        assert_eq!(at.read(&key, &first, "outside").await.as_deref(), Some(&b"../outside"[..]));
        assert_eq!(first.checkpoint.files, 7);
        let links = ["file", "folder", "dangling", "itself", "absolute", "outside"];
        for link in links {
            work.remove(link);
        }
        at.back(&key, &work, &first).await;
        // A link to something else, a file, a folder in its place.
        for (n, link) in links.iter().enumerate() {
            work.remove(link);
            match n % 3 {
                0 => work.link(link, "src/file"),
                1 => work.write(link, "a file"),
                _ => work.write(format!("{link}/file"), "in a folder"),
            }
        }
        let second = at.back(&key, &work, &first).await;
        at.back(&key, &work, &second).await;
        at.back(&key, &work, &first).await;
        assert!(everything(&outside) == before, "something was written where a link leads to");
    });
}

/// A file, a folder, a link: any of them may stand where another one stood.
pub(super) fn what_stands_at_a_path_changes_its_kind(subject: &Subject) {
    subject.every(async |at| {
        let (work, key) = (at.work(), key("a"));
        let kinds: [fn(&Work, &str); 5] = [
            |work, path| work.write(path, "a file"),
            |work, path| work.write(format!("{path}/in/it"), "a folder"),
            |work, path| work.link(path, "keep"),
            |work, path| work.folder(path),
            |_, _| {},
        ];
        work.write("keep", "kept");
        let path = |n: usize, m: usize| format!("{n}{m}");
        for (n, before) in kinds.iter().enumerate() {
            (0..kinds.len()).for_each(|m| before(&work, &path(n, m)));
        }
        let first = at.take(&work, &key).await;
        for n in 0..kinds.len() {
            for (m, after) in kinds.iter().enumerate() {
                if work.there(path(n, m)) {
                    work.remove(path(n, m));
                }
                after(&work, &path(n, m));
            }
        }
        let second = at.back(&key, &work, &first).await;
        at.back(&key, &work, &second).await;
    });
}
