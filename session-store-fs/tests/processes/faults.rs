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
        trial("a_read_only_file_system_is_read_and_says_that_it_cannot_be_written", read_only)
            .with_ignored_flag(on_a_disk_of_its_own(&std::env::temp_dir(), "true").is_none()),
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

/// A shell with a small file system of its own at a folder, and a line that it runs there, with this program as `$2`. It is
/// mounted in a name space of the child, so that nothing is left mounted. `None` where nothing can be mounted.
fn on_a_disk_of_its_own(folder: &Path, line: &str) -> Option<Command> {
    let shell = |options: &str, line: &str| {
        let mut command = Command::new("unshare");
        command.args(options.split(' ')).args(["sh", "-e", "-c"]);
        command.arg(format!("mount -t tmpfs -o size=64k none \"$1\"; {line}")).arg("sh");
        command.arg(folder).arg(std::env::current_exe().unwrap());
        command
    };
    let works = |options: &&str| shell(options, "true").output().is_ok_and(|output| output.status.success());
    let options = ["--mount", "--user --map-root-user --mount"].into_iter().find(works)?;
    Some(shell(options, line))
}

fn full_disk() {
    let dir = tempfile::tempdir().unwrap();
    let Some(mut command) = on_a_disk_of_its_own(dir.path(), "exec \"$2\" child full \"$1\"") else {
        return full_device(dir.path());
    };
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

fn read_only() {
    let dir = tempfile::tempdir().unwrap();
    let line = "\"$2\" child fill \"$1\"; mount -o remount,ro \"$1\"; exec \"$2\" child read_only \"$1\"";
    let mut command = on_a_disk_of_its_own(dir.path(), line).expect("ignored where nothing can be mounted");
    assert_eq!(Running::spawn(&mut command).rest(), ["done"]);
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
    assert_eq!(lines, ["PermissionDenied absent 1"]);
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
