//! The user's own repository is no place of a checkpointer, and neither is the tree (contract 2).

use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use session_core::Forget;

use super::Subject;
use super::covers::rich;
use super::stage::{Stage, answer, key, kind};
use super::tree::{everything, sure};
use super::work::Work;

/// The top is that of the repository around a folder, the nearest one; without a repository, the folder is its own.
pub(super) fn the_top_of_a_tree_is_found(subject: &Subject) {
    subject.every(async |at| {
        let work = at.work();
        work.folder("src/deep");
        let nested = Work::repository(work.at("src/nested"));
        nested.folder("deep");
        let linked = work.linked(at.ground("linked"));
        linked.folder("src");
        let plain = Work::plain(at.ground("plain"));
        plain.folder("below");
        let tops = [
            (work.0.clone(), &work.0),
            (work.at("src/deep"), &work.0),
            (nested.at("deep"), &nested.0),
            (nested.0.clone(), &nested.0),
            (linked.at("src"), &linked.0),
            (linked.0.clone(), &linked.0),
            (plain.0.clone(), &plain.0),
            (plain.at("below"), &plain.at("below")),
        ];
        for (folder, top) in tops {
            let found = answer(at.engine().root_of(&folder).await);
            assert_eq!(found, *top, "of {}", folder.display());
        }
        kind(at.engine().root_of(&work.at("not/there")).await);
    });
}

/// A repository with all that git may start by itself: hooks, a filter, a monitor. Each would leave a mark.
fn with_traps(at: &Stage<'_>) -> Work {
    let work = rich(at);
    work.remove(".git");
    work.git(&["init", "-q", "-b", "main", "--template="]);
    work.git(&["add", "-A"]);
    work.git(&["commit", "-q", "-m", "one"]);
    work.append("a.txt", b"stashed");
    work.git(&["stash", "-q"]);
    let mark = at.ground("ran");
    let trap = format!("touch '{}'; cat", mark.display());
    work.write(".gitattributes", "* filter=trap diff=trap merge=trap\n");
    for name in ["pre-commit", "post-checkout", "post-index-change", "reference-transaction", "pre-auto-gc"] {
        work.write(format!(".git/hooks/{name}"), format!("#!/bin/sh\n{trap}\n"));
        work.chmod(format!(".git/hooks/{name}"), 0o755);
    }
    work.write("monitor", format!("#!/bin/sh\n{trap}\n"));
    work.chmod("monitor", 0o755);
    let monitor = work.at("monitor");
    for (name, value) in [
        ("filter.trap.clean", trap.as_str()),
        ("filter.trap.smudge", &trap),
        ("filter.trap.process", &trap),
        ("diff.trap.textconv", &trap),
        ("core.fsmonitor", &monitor.to_string_lossy()),
        ("core.pager", &trap),
        ("core.autocrlf", "true"),
    ] {
        work.git(&["config", name, value]);
    }
    assert!(!mark.exists(), "the suite itself ran into a trap");
    work
}

/// Does everything once that does not write in the tree.
async fn look(at: &Stage<'_>, work: &Work) {
    let key = key("a");
    let first = at.take(work, &key).await;
    let second = at.take(work, &key).await;
    at.diff(&key, &first, &second).await;
    at.read(&key, &first, "a.txt").await;
    at.list(&key).await;
    answer(at.engine().recover(&work.0).await);
    answer(at.engine().forget(&key, Forget::These(&[second.id])).await);
    answer(at.engine().forget(&key, Forget::All).await);
}

/// Taking, listing, reading, comparing and forgetting write nothing in the tree: no file, no time of one.
pub(super) fn nothing_is_written_by_looking(subject: &Subject) {
    subject.every(async |at| {
        let work = rich(&at);
        let (before, marks) = (everything(&work.0), work.marks());
        look(&at, &work).await;
        assert!(everything(&work.0) == before, "the tree is not as it was");
        assert_eq!(work.marks(), marks, "the tree is not as it was");
    });
}

/// `.git` is byte for byte as it was, also after a restore: refs, index, stash, objects, settings.
pub(super) fn the_repository_is_as_it_was(subject: &Subject) {
    subject.every(async |at| {
        let (work, key) = (with_traps(&at), key("a"));
        let before = everything(&work.at(".git"));
        look(&at, &work).await;
        assert!(everything(&work.at(".git")) == before, "looking wrote in .git");
        let first = at.take(&work, &key).await;
        work.write("a.txt", "changed\r\n");
        work.remove("src");
        work.write("new", "new");
        at.back(&key, &work, &first).await;
        assert!(everything(&work.at(".git")) == before, "a restore wrote in .git");
    });
}

/// None of the programs is started that git would start: not by a checkpoint, not by going back.
pub(super) fn hooks_and_filters_do_not_run(subject: &Subject) {
    subject.every(async |at| {
        let (work, key) = (with_traps(&at), key("a"));
        look(&at, &work).await;
        let first = at.take(&work, &key).await;
        work.write("a.txt", "changed\r\n");
        work.remove("large");
        let second = at.back(&key, &work, &first).await;
        at.back(&key, &work, &second).await;
        assert!(!at.ground("ran").exists(), "a program of the repository ran");
    });
}

/// What the store keeps is for its owner alone, whatever the modes of the files that it is made of.
pub(super) fn the_store_is_private(subject: &Subject) {
    subject.every(async |at| {
        let (work, key) = (rich(&at), key("a"));
        at.take(&work, &key).await;
        let top = at.scratch().dir();
        let mut files = 0;
        let mut folders = vec![top.to_owned()];
        while let Some(folder) = folders.pop() {
            for entry in sure(fs::read_dir(&folder), &folder) {
                let path = sure(entry, &folder).path();
                let metadata = sure(fs::symlink_metadata(&path), &path);
                let closed = |path: &Path| fs::symlink_metadata(path).is_ok_and(|m| m.mode() & 0o077 == 0);
                if metadata.is_dir() {
                    folders.push(path);
                } else if metadata.is_file() {
                    files += 1;
                    // The scratch is the suite's, and is no part of what the store does.
                    let closed = path.ancestors().take_while(|above| *above != top).any(closed);
                    assert!(closed, "{} is open to others", path.display());
                }
            }
        }
        assert!(files > 0, "nothing is kept in the scratch");
    });
}
