//! Another process, which is stopped in the middle of a file: the program of the tests once more, with one test of it.
//!
//! A limit on the size of files stops it, so that what it had written by then, and for whom, can be looked at in peace.

use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use session_core::{CheckpointId, RestoreOrder};

use super::Subject;
use super::stage::{Stage, Taken, answer, key, step};
use super::tree::sure;
use super::work::Work;
use crate::Scratch;

/// Tells a process that it is the other one, and where its order is written.
const ORDER: &str = "REJOIN_CONTRACT_RESTORE";
/// No file may be larger: 1 or 2 MiB, as the shell counts.
const LIMITED: &str = "umask 0; ulimit -c 0; ulimit -f 2048; exec \"$@\"";
/// Files are made for their owner alone.
const MASKED: &str = "umask 077; exec \"$@\"";
/// What only its owner may read.
const SECRET: &[u8] = b"a secret of three MiB\n";

/// Plays the other process, where this is it: puts everything back that differs.
fn play(subject: &Subject) -> bool {
    let Some(order) = std::env::var_os(ORDER).map(PathBuf::from) else { return false };
    let text = sure(fs::read_to_string(&order), &order);
    let mut lines = text.lines();
    let mut line = || lines.next().unwrap_or_default();
    let (scratch, folder) = (PathBuf::from(line()), PathBuf::from(line()));
    let mut id = || CheckpointId::parse(line()).unwrap_or_else(|| panic!("no id in {text:?}"));
    let (to, from) = (id(), id());
    Subject::runtime().block_on(async {
        let (scratch, grounds) = (Scratch::of_another_process(scratch), Scratch::new());
        let (at, key) = (subject.stage_in(scratch, grounds).await, key("a"));
        let changes = answer(at.engine().diff(&key, from, to).await);
        let paths: Vec<PathBuf> = changes.into_iter().map(|change| change.path).collect();
        let order = RestoreOrder { key: &key, step: step(), folder: &folder, to, from, paths: &paths };
        drop(at.engine().restore(&order).await);
    });
    true
}

/// Puts a tree back, in another process if there is one. Whether that came to its end.
async fn elsewhere(at: &Stage<'_>, under: &str, work: &Work, (to, from): (&Taken, &Taken)) -> bool {
    let Some(test) = &at.subject.process else {
        let paths = from.tree.differing(&to.tree);
        at.restore(&key("a"), work, (to, from), &paths).await;
        return true;
    };
    let program = std::env::current_exe().unwrap_or_else(|error| panic!("no program: {error}"));
    let (order, scratch) = (at.ground("order"), at.scratch().dir().display());
    let text = format!("{scratch}\n{}\n{}\n{}\n", work.0.display(), to.id, from.id);
    sure(fs::write(&order, text), &order);
    let mut command = Command::new("sh");
    command.args(["-c", under, "sh"]).arg(program).args([test, "--exact"]).env(ORDER, &order);
    let status = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).status();
    sure(status, Path::new("sh")).success()
}

/// The files that hold a part of the secret, and who may read them.
fn secrets(folder: &Path, found: &mut Vec<(PathBuf, u32)>) {
    for entry in sure(fs::read_dir(folder), folder) {
        let path = sure(entry, folder).path();
        let metadata = sure(fs::symlink_metadata(&path), &path);
        if metadata.is_dir() {
            secrets(&path, found);
        } else if metadata.is_file() && sure(fs::read(&path), &path).starts_with(SECRET) {
            found.push((path, metadata.mode() & 0o777));
        }
    }
}

/// What only its owner may read is nobody else's on the way, either: also where the process is stopped in the middle of it,
/// and has a umask that keeps nobody out (BR-081).
pub(super) fn a_private_file_is_private_at_every_moment(subject: &Subject) {
    if play(subject) {
        return;
    }
    subject.every(async |at| {
        let (work, key) = (at.work(), key("a"));
        let bytes = if at.subject.process.is_some() { 3 << 20 } else { 3 << 10 };
        work.write("folder/secret", SECRET.repeat(bytes / SECRET.len()));
        work.chmod("folder/secret", 0o600);
        let first = at.take(&work, &key).await;
        work.write("folder/secret", "open to all");
        work.chmod("folder/secret", 0o644);
        let second = at.take(&work, &key).await;
        let ended = elsewhere(&at, LIMITED, &work, (&first, &second)).await;
        let mut found = Vec::new();
        secrets(&work.0, &mut found);
        assert!(found.iter().all(|(_, mode)| mode & 0o077 == 0), "open to others: {found:?}");
        // It is ended, or there was nothing of it.
        answer(at.engine().recover(&work.0).await);
        let third = at.take(&work, &key).await;
        let wanted = if ended || third.tree == first.tree { &first } else { &second };
        third.tree.assert_is(&wanted.tree, "after the process was stopped");
        at.back(&key, &work, &first).await;
        at.back(&key, &work, &second).await;
    });
}

/// The umask of the process has no say in what comes back (BR-081).
pub(super) fn modes_come_back_under_any_umask(subject: &Subject) {
    subject.every(async |at| {
        let (work, key) = (at.work(), key("a"));
        let files = [("run.sh", 0o755), ("key.txt", 0o600), ("doc.md", 0o644), ("all", 0o666)];
        for (path, mode) in files {
            work.write(path, path);
            work.chmod(path, mode);
        }
        work.folder("open");
        work.chmod("open", 0o777);
        let first = at.take(&work, &key).await;
        for (path, _) in files {
            work.remove(path);
        }
        work.remove("open");
        let second = at.take(&work, &key).await;
        assert!(elsewhere(&at, MASKED, &work, (&first, &second)).await, "it did not come to its end");
        work.tree().assert_is(&first.tree, "after a restore under another umask");
    });
}
