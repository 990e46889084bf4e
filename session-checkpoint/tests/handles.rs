//! A process that may open few files at once: a test of its own, as the limit is the whole process's.

#![cfg(unix)]
#![expect(clippy::unwrap_used, reason = "the helpers of tests may panic as the tests do")]

use std::fs;
use std::path::{Path, PathBuf};

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use session_checkpoint::FsCheckpoints;
use session_core::{
    Checkpoint, CheckpointId, Checkpointer as _, Label, Moment, RestoreOrder, RunId, SessionKey, TakeOrder,
    Timestamp,
};

/// Fewer than the folders of the tree, than those above the deepest file, and than the files that are made before they are put.
const HANDLES: u64 = 40;
const FOLDERS: usize = 60;
const DEPTH: usize = 100;

fn block<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(future)
}

fn take(checkpoints: &FsCheckpoints, key: &SessionKey, folder: &Path) -> Checkpoint {
    let id = CheckpointId::new(uuid::Uuid::new_v4());
    let label = Label::new(key.clone(), RunId::new(uuid::Uuid::new_v4()), Moment::Asked);
    let order = TakeOrder { id, label: &label, at: Timestamp::EPOCH, folder, changed: None };
    block(checkpoints.take(&order)).unwrap()
}

/// Files that stay with another content, one that goes, and one far down.
fn files(tree: &Path) -> Vec<PathBuf> {
    let deep = (0..DEPTH).fold(tree.join("deep"), |path, _| path.join("d"));
    let wide = (0..FOLDERS).flat_map(|n| ["a", "b"].map(|name| tree.join(format!("w{n}")).join(name)));
    wide.chain([deep.join("f")]).collect()
}

#[test]
fn few_handles_are_enough_to_put_a_wide_and_deep_tree_back() {
    let home = tempfile::tempdir().unwrap();
    let tree = home.path().canonicalize().unwrap().join("tree");
    let files = files(&tree);
    let write = |text: &str| {
        for file in &files {
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(file, text).unwrap();
        }
    };
    write("before");
    let checkpoints = FsCheckpoints::new(home.path().join("base"));
    let key = SessionKey::new("a", "claude").unwrap();
    let most = getrlimit(Resource::Nofile).maximum;
    setrlimit(Resource::Nofile, Rlimit { current: Some(HANDLES), maximum: most }).unwrap();

    let to = take(&checkpoints, &key, &tree).id;
    write("after");
    let gone: Vec<_> = files.iter().map(|file| file.with_extension("new")).collect();
    for file in &gone {
        fs::write(file, "new").unwrap();
    }
    let from = take(&checkpoints, &key, &tree).id;
    let changes = block(checkpoints.diff(&key, from, to)).unwrap();
    let paths: Vec<_> = changes.into_iter().map(|change| change.path).collect();
    assert_eq!(paths.len(), 2 * files.len());
    let step = RunId::new(uuid::Uuid::nil());
    let order = RestoreOrder { key: &key, step, folder: &tree, to, from, paths: &paths };
    let restored = block(checkpoints.restore(&order)).unwrap();
    assert!(restored.left.is_empty(), "{:?}", restored.left);
    for file in &files {
        assert_eq!(fs::read(file).unwrap(), b"before", "{}", file.display());
    }
    assert!(gone.iter().all(|file| !file.exists()));
}
