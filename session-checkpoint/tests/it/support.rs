//! A tree and a store to play with.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use session_checkpoint::FsCheckpoints;
use session_core::error::CheckpointError;
use session_core::{
    Checkpoint, CheckpointId, Checkpointer as _, Label, LeftOutWhy, Moment, RunId, SessionKey, TakeOrder,
    Timestamp,
};

/// A tree beside the base of a store.
pub(crate) struct World {
    pub(crate) tree: PathBuf,
    pub(crate) base: PathBuf,
    pub(crate) checkpoints: FsCheckpoints,
    _folder: tempfile::TempDir,
}

pub(crate) fn key(mailbox: &str) -> SessionKey {
    SessionKey::new(mailbox, "claude").unwrap()
}

pub(crate) fn label(key: &SessionKey) -> Label {
    let label = Label::new(key.clone(), RunId::new(uuid::Uuid::new_v4()), Moment::Asked);
    Label { prompt: Some("p".to_owned()), ..label }
}

/// Does work that may go to a pool of threads.
pub(crate) fn block<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(future)
}

impl World {
    pub(crate) fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let top = fs::canonicalize(folder.path()).unwrap();
        let (tree, base) = (top.join("tree"), top.join("base"));
        fs::create_dir(&tree).unwrap();
        fs::create_dir(&base).unwrap();
        Self { checkpoints: FsCheckpoints::new(&base), tree, base, _folder: folder }
    }

    /// The same, with a repository made by git in the tree.
    pub(crate) fn with_repository() -> Self {
        let world = Self::new();
        world.git(&["init", "-q", "-b", "main"]);
        world
    }

    pub(crate) fn git(&self, arguments: &[&str]) -> String {
        git(&self.tree, arguments)
    }

    pub(crate) fn write(&self, path: &str, text: impl AsRef<[u8]>) {
        let path = self.tree.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    pub(crate) fn try_take(&self, changed: Option<&[&str]>) -> Result<Checkpoint, CheckpointError> {
        let changed: Option<Vec<PathBuf>> = changed.map(|paths| paths.iter().map(PathBuf::from).collect());
        take(&self.checkpoints, &key("a"), &self.tree, changed.as_deref())
    }

    pub(crate) fn take(&self) -> Checkpoint {
        self.try_take(None).unwrap()
    }

    pub(crate) fn read(&self, checkpoint: &Checkpoint, path: &str) -> Option<Vec<u8>> {
        let path = Path::new(path);
        block(self.checkpoints.read(&checkpoint.label.key, checkpoint.id, path, u64::MAX)).unwrap()
    }

    pub(crate) fn list(&self) -> Vec<Checkpoint> {
        block(self.checkpoints.list(&key("a"))).unwrap()
    }
}

pub(crate) fn take(
    checkpoints: &FsCheckpoints,
    key: &SessionKey,
    folder: &Path,
    changed: Option<&[PathBuf]>,
) -> Result<Checkpoint, CheckpointError> {
    take_at(checkpoints, key, folder, changed, Timestamp::EPOCH)
}

/// The same, by a clock that says this.
pub(crate) fn take_at(
    checkpoints: &FsCheckpoints,
    key: &SessionKey,
    folder: &Path,
    changed: Option<&[PathBuf]>,
    at: Timestamp,
) -> Result<Checkpoint, CheckpointError> {
    let (id, label) = (CheckpointId::new(uuid::Uuid::new_v4()), label(key));
    block(checkpoints.take(&TakeOrder { id, label: &label, at, folder, changed }))
}

pub(crate) fn git(folder: &Path, arguments: &[&str]) -> String {
    let done = Command::new("git")
        .arg("-C")
        .arg(folder)
        .args(["-c", "user.name=x", "-c", "user.email=x@example.org", "-c", "core.excludesFile="])
        .args(arguments)
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .output()
        .unwrap();
    assert!(done.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&done.stderr));
    String::from_utf8(done.stdout).unwrap()
}

/// What is left out, as text.
pub(crate) fn left_out(checkpoint: &Checkpoint) -> Vec<(String, LeftOutWhy)> {
    assert_eq!(checkpoint.left_out_count, checkpoint.left_out.len() as u64);
    checkpoint
        .left_out
        .iter()
        .map(|out| (out.path.as_path().unwrap().display().to_string(), out.why))
        .collect()
}

/// What tells the tree of the latest checkpoint from others.
pub(crate) fn tree_of(base: &Path) -> (Vec<u8>, u16, Vec<u8>) {
    let folder = base.join(".agent-sessions/checkpoints");
    let mut files = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let path = files.find(|path| path.extension().is_some_and(|extension| extension == "db")).unwrap();
    let db = rusqlite::Connection::open(path).unwrap();
    let sql = "SELECT tree, mode, left_out FROM checkpoint ORDER BY number DESC LIMIT 1";
    db.query_row(sql, [], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?))).unwrap()
}
