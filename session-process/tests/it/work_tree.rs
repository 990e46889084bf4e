//! Which project a work tree belongs to, against the real git.

use std::fs;
use std::path::{Path, PathBuf};

use session_core::decide::Workdir;
use session_core::{Host, Repository, WorkTree};
use session_process::SystemHost;

use crate::folder::{git, repository};

async fn look(path: &Path) -> WorkTree {
    SystemHost::new().work_tree(path).await.expect("a folder that can be used")
}

fn of(tree: &WorkTree) -> &Repository {
    tree.folder.repository.as_ref().expect("a repository")
}

fn base() -> (tempfile::TempDir, PathBuf) {
    let temp = tempfile::tempdir().expect("a folder");
    let base = temp.path().canonicalize().expect("its real path");
    (temp, base)
}

#[tokio::test]
async fn clones_of_one_project_are_known_by_remote_and_root_commits() {
    let (_temp, base) = base();
    let (main, clone, other) = (base.join("main"), base.join("clone"), base.join("other"));
    repository(&main);
    git(&main, &["remote", "add", "origin", "git@Example.org:o/r.git"]);
    git(&base, &["clone", "-q", main.to_str().unwrap(), clone.to_str().unwrap()]);
    git(&clone, &["remote", "set-url", "origin", "https://me:secret@example.org/o/r"]);
    git(&clone, &["commit", "-q", "--allow-empty", "-m", "second"]);
    let (here, there) = (look(&clone).await, look(&main).await);
    assert_eq!(of(&here).remote.as_deref(), Some("example.org/o/r"), "and no password");
    assert_eq!(of(&here).remote, of(&there).remote);
    assert_eq!((of(&here).roots.len(), &of(&here).roots), (1, &of(&there).roots));
    assert_eq!(here.folder.kinship_to(&there.folder, true), Workdir::OtherProject, "two that are there");
    assert_eq!(here.folder.kinship_to(&there.folder, false), Workdir::Moved, "the other one is gone");
    // Another history under the same remote is another project.
    repository(&other);
    git(&other, &["commit", "-q", "--amend", "--allow-empty", "-m", "another first"]);
    git(&other, &["remote", "add", "origin", "https://example.org/o/r"]);
    let other = look(&other).await;
    assert_eq!(other.folder.kinship_to(&there.folder, false), Workdir::OtherProject);
}

#[tokio::test]
async fn the_work_trees_of_a_repository_are_listed_also_those_that_are_gone() {
    let (_temp, base) = base();
    let (main, live, gone) = (base.join("main"), base.join("live"), base.join("gone"));
    repository(&main);
    for tree in [&live, &gone] {
        git(&main, &["worktree", "add", "-q", tree.to_str().unwrap()]);
    }
    fs::remove_dir_all(&gone).unwrap();
    for from in [&main, &live] {
        let tree = look(from).await;
        assert_eq!(tree.trees, [gone.clone(), live.clone(), main.clone()]);
        assert!(tree.scope().holds(&gone.join("deep")) && !tree.scope().holds(&base));
    }
    let moved = base.join("moved");
    git(&main, &["worktree", "move", live.to_str().unwrap(), moved.to_str().unwrap()]);
    assert!(look(&main).await.trees.contains(&moved), "git knows where it went");
    assert_eq!(look(&base).await.trees, [base], "no repository");
}

/// What an agent may have written into a repository starts nothing, and holds nobody up.
#[tokio::test]
async fn nothing_that_lies_in_a_repository_is_run() {
    let (_temp, base) = base();
    let (main, trap) = (base.join("main"), base.join("trap"));
    repository(&main);
    let script = base.join("script");
    fs::write(&script, format!("#!/bin/sh\ntouch '{}'\n", trap.display())).unwrap();
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    fs::set_permissions(&script, mode).unwrap();
    let script = script.to_str().unwrap();
    for name in ["core.fsmonitor", "core.pager", "core.sshCommand", "core.editor", "pager.rev-list"] {
        git(&main, &["config", name, script]);
    }
    git(&main, &["config", "alias.rev-list", &format!("!{script}")]);
    git(&main, &["config", "remote.origin.url", &format!("ext::{script}")]);
    git(&main, &["config", "remote.origin.promisor", "true"]);
    git(&main, &["config", "extensions.partialClone", "origin"]);
    assert_eq!(of(&look(&main).await).roots.len(), 1);
    // The one commit is missing, and would have to be fetched.
    for folder in ["objects", "refs"] {
        for path in files(&main.join(".git").join(folder)) {
            if folder == "objects" {
                fs::remove_file(path).unwrap();
            }
        }
    }
    let tree = look(&main).await;
    assert_eq!((of(&tree).roots.len(), &of(&tree).remote), (0, &None));
    assert!(!trap.exists(), "something was run");
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let children = fs::read_dir(folder).expect("a folder").map(|child| child.expect("a child").path());
    children.flat_map(|path| if path.is_dir() { files(&path) } else { vec![path] }).collect()
}

#[tokio::test]
async fn a_history_that_was_cut_and_a_repository_without_a_commit_have_no_root() {
    let (_temp, base) = base();
    let (main, shallow, empty) = (base.join("main"), base.join("shallow"), base.join("empty"));
    repository(&main);
    git(&main, &["commit", "-q", "--allow-empty", "-m", "second"]);
    let url = format!("file://{}", main.display());
    git(&base, &["clone", "-q", "--depth", "1", &url, shallow.to_str().unwrap()]);
    assert!(of(&look(&shallow).await).roots.is_empty(), "where it was cut is no root");
    fs::create_dir(&empty).unwrap();
    git(&empty, &["init", "-q"]);
    assert!(of(&look(&empty).await).roots.is_empty());
}
