//! Faults of the environment: modes under any umask, a full disk, no file descriptors, no permission.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, chown};
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::Command;

use libtest_mimic::Trial;
use session_core::{Document, Guard, SessionStore as _};
use session_store_fs::FsStore;

use crate::parent::{Running, key, now, trial};

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        trial("modes_do_not_depend_on_the_umask", modes),
        trial("a_full_disk_is_an_error_and_the_old_document_stays", full_disk),
        trial("no_file_descriptor_is_not_absence", no_files),
        trial("no_permission_is_neither_absence_nor_damage", denied),
        trial("a_store_of_another_user_is_refused", other_user),
    ]
}

fn modes() {
    for umask in ["000", "022", "077", "177", "277"] {
        let dir = tempfile::tempdir().unwrap();
        let lines =
            Running::through_shell(&format!("umask {umask}; exec \"$@\""), "modes", dir.path()).rest();
        assert!(lines.len() > 10, "{lines:?}");
        for line in lines {
            assert!(line.starts_with("dir 700 ") || line.starts_with("file 600 "), "umask {umask}: {line}");
        }
    }
}

/// Mounts in a name space of the child, so that nothing is left mounted.
fn full_disk() {
    let dir = tempfile::tempdir().unwrap();
    let unshare = |options: &str| {
        let mut command = Command::new("unshare");
        command.args(options.split(' ')).args(["sh", "-c"]);
        command.arg("mount -t tmpfs -o size=64k none \"$1\" && shift && exec \"$@\"").arg("sh");
        command.arg(dir.path());
        command
    };
    let works =
        |options: &&str| unshare(options).arg("true").output().is_ok_and(|output| output.status.success());
    let Some(options) = ["--mount", "--user --map-root-user --mount"].into_iter().find(works) else {
        return full_device(dir.path());
    };
    let mut command = unshare(options);
    command.arg(std::env::current_exe().unwrap()).args(["child", "full"]).arg(dir.path());
    assert_eq!(Running::spawn(&mut command).rest(), ["done"]);
    assert!(!dir.path().join(".agent-sessions").exists(), "it ran on a file system of its own");
}

/// Where nothing can be mounted: a limit on the length of files does for a disk that is full half way.
#[expect(clippy::print_stderr, reason = "whoever reads the outcome should know what it stands on")]
fn full_device(base: &Path) {
    eprintln!("note: no file system can be mounted here; a limit of file length stands in for a full disk");
    let store = FsStore::open(base).unwrap();
    let _ = now(store.save(&key("a"), &Document::new(b"old".to_vec()), &Guard::Any, None)).unwrap();
    let limited = "trap '' XFSZ; ulimit -f 8; exec \"$@\"";
    assert_eq!(Running::through_shell(limited, "limited", base).rest(), ["done"]);
    assert_eq!(now(store.load(&key("a"))).unwrap().unwrap().document.as_bytes(), b"old");
}

fn no_files() {
    let dir = tempfile::tempdir().unwrap();
    let lines = Running::through_shell("ulimit -n 40; exec \"$@\"", "no_files", dir.path()).rest();
    assert_eq!(lines, ["done"]);
}

/// The mode keeps out everyone but root, so root looks as somebody else.
fn as_somebody_else(base: &Path) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["child", "denied"]).arg(base);
    if rustix::process::geteuid().is_root() {
        command.uid(NOBODY).gid(NOBODY);
    }
    command
}

const NOBODY: u32 = 65534;

fn give_away(path: &Path) {
    chown(path, Some(NOBODY), Some(NOBODY)).unwrap();
    if path.is_dir() {
        fs::read_dir(path).unwrap().for_each(|entry| give_away(&entry.unwrap().path()));
    }
}

fn denied() {
    let dir = tempfile::tempdir().unwrap();
    let store = FsStore::open(dir.path()).unwrap();
    let _ = now(store.save(&key("a"), &Document::new(vec![]), &Guard::Any, None)).unwrap();
    let record = store.root().join("records/a@claude.json");
    if rustix::process::geteuid().is_root() {
        give_away(dir.path());
        chown(&record, Some(0), Some(0)).unwrap();
    } else {
        fs::set_permissions(&record, fs::Permissions::from_mode(0o0)).unwrap();
    }
    let lines = Running::spawn(&mut as_somebody_else(dir.path())).rest();
    assert_eq!(lines, ["PermissionDenied absent 0"]);
}

fn other_user() {
    let dir = tempfile::tempdir().unwrap();
    if rustix::process::geteuid().is_root() {
        // Root could enter, but would leave files behind that the owner cannot read.
        FsStore::open(dir.path()).unwrap();
        give_away(&dir.path().join(".agent-sessions"));
        let error = FsStore::open(dir.path()).unwrap_err();
        assert_eq!(error.kind(), session_core::error::StoreErrorKind::PermissionDenied, "{error}");
    } else {
        fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o500)).unwrap();
        let lines = Running::spawn(&mut as_somebody_else(dir.path())).rest();
        fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o700)).unwrap();
        assert_eq!(lines, ["open PermissionDenied"]);
    }
}
