//! What a folder is, against the real git.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use session_core::decide::Workdir;
use session_core::error::FolderError;
use session_core::{Folder, Host};
use session_process::SystemHost;

pub(crate) fn git(folder: &Path, args: &[&str]) {
    let mut command = Command::new("git");
    command.current_dir(folder).args(["-c", "protocol.file.allow=always"]).args(args);
    for (name, value) in [("GIT_CONFIG_GLOBAL", "/dev/null"), ("GIT_CONFIG_NOSYSTEM", "1")] {
        command.env(name, value);
    }
    for role in ["AUTHOR", "COMMITTER"] {
        command.env(format!("GIT_{role}_NAME"), "a").env(format!("GIT_{role}_EMAIL"), "a@example.org");
    }
    let output = command.output().expect("git runs");
    assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
}

pub(crate) fn repository(folder: &Path) {
    fs::create_dir_all(folder).expect("a folder");
    git(folder, &["init", "-q"]);
    git(folder, &["commit", "-q", "--allow-empty", "-m", "first"]);
}

async fn look(path: &Path) -> Folder {
    SystemHost::new().folder(path).await.expect("a folder that can be used")
}

fn common_dir(folder: &Folder) -> &Path {
    let repository = folder.repository.as_ref().expect("a repository");
    repository.common_dir.as_path().expect("a path in Unicode")
}

#[tokio::test]
async fn work_trees_of_one_repository_share_its_common_directory() {
    let temp = tempfile::tempdir().unwrap();
    let base = temp.path().canonicalize().unwrap();
    let (main, linked) = (base.join("main"), base.join("linked"));
    repository(&main);
    git(&main, &["worktree", "add", "-q", linked.to_str().unwrap()]);
    fs::create_dir_all(linked.join("deep/down")).unwrap();

    let here = look(&main).await;
    let there = look(&linked.join("deep/down")).await;
    assert_eq!(common_dir(&here), main.join(".git"));
    assert_eq!(common_dir(&there), main.join(".git"));
    assert!(here.repository.as_ref().unwrap().id.is_some());
    assert_eq!(here.repository, there.repository);
    assert_eq!(there.relation_to(&here, true), Workdir::SameRepository);
    assert_eq!(there.relation_to(&here, false), Workdir::Gone);
}

#[tokio::test]
async fn a_submodule_is_a_repository_of_its_own() {
    let temp = tempfile::tempdir().unwrap();
    let base = temp.path().canonicalize().unwrap();
    let (outer, inner) = (base.join("outer"), base.join("inner"));
    repository(&outer);
    repository(&inner);
    git(&outer, &["submodule", "add", "-q", inner.to_str().unwrap(), "sub"]);
    let sub = look(&outer.join("sub")).await;
    assert_eq!(common_dir(&sub), outer.join(".git/modules/sub"));
    assert_eq!(sub.relation_to(&look(&outer).await, true), Workdir::OtherProject);
}

#[tokio::test]
async fn a_folder_that_was_moved_or_is_reached_by_a_link_is_itself() {
    let temp = tempfile::tempdir().unwrap();
    let base = temp.path().canonicalize().unwrap();
    let (old, new, link) = (base.join("old"), base.join("new"), base.join("link"));
    repository(&old);
    let before = look(&old).await;
    symlink(&old, &link).unwrap();
    let linked = look(&link).await;
    assert_eq!(linked, before);
    fs::rename(&old, &new).unwrap();
    let after = look(&new).await;
    assert_ne!(after.path, before.path);
    assert!(after.id.is_some());
    assert_eq!(after.id, before.id);
    assert_eq!(after.relation_to(&before, false), Workdir::Moved);
    // Another folder in the old place is another one, whatever its inode.
    fs::create_dir(&old).unwrap();
    assert_ne!(look(&old).await.id, before.id);
}

#[tokio::test]
async fn a_repository_that_makes_no_sense_is_none() {
    let temp = tempfile::tempdir().unwrap();
    let base = temp.path().canonicalize().unwrap();
    repository(&base);
    let at = |name: &str| {
        let folder = base.join(name);
        fs::create_dir(&folder).unwrap();
        folder
    };
    // An empty directory of that name is no repository, and hides none.
    let empty = at("empty");
    fs::create_dir(empty.join(".git")).unwrap();
    assert_eq!(common_dir(&look(&empty).await), base.join(".git"));
    for (name, text) in [
        ("garbled", b"\xff\xfe\0garbled".as_slice()),
        ("nowhere", b"gitdir: /no/such/place\n"),
        ("nothing", b"gitdir: \n"),
        ("void", b""),
        ("nul", b"gitdir: a\0b\n"),
    ] {
        let folder = at(name);
        fs::write(folder.join(".git"), text).unwrap();
        assert_eq!(look(&folder).await.repository, None, "{name}");
    }
    let outside = tempfile::tempdir().unwrap();
    assert_eq!(look(outside.path()).await.repository, None);
}

#[tokio::test]
async fn a_folder_that_cannot_be_used_says_why() {
    let temp = tempfile::tempdir().unwrap();
    let file = temp.path().join("file");
    fs::write(&file, "").unwrap();
    let host = SystemHost::new();
    for path in [temp.path().join("none"), file.join("below"), "".into()] {
        let error = host.folder(&path).await.unwrap_err();
        assert!(matches!(&error, FolderError::Missing { path: named } if *named == path), "{error:?}");
    }
    assert!(matches!(host.folder(&file).await, Err(FolderError::NotAFolder { .. })));
    let ring = temp.path().join("ring");
    symlink(&ring, &ring).unwrap();
    assert!(matches!(host.folder(&ring).await, Err(FolderError::Unusable { .. })));
}

#[tokio::test]
async fn the_machine_knows_time_and_name() {
    let host = SystemHost::new();
    let before = host.now();
    host.sleep(Duration::from_millis(2)).await;
    assert!(host.now().since(before) >= Duration::from_millis(1));
    let holder = host.holder();
    assert_eq!(holder.pid, std::process::id());
    assert!(!holder.host.is_empty());
    assert_ne!(host.random_id(), host.random_id());
    assert_eq!(host.random_id().get_version_num(), 4);
}
