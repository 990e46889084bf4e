//! A tree on the disk, and a checkpointer.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use rusqlite::TransactionBehavior;
use session_core::{
    Change, Checkpoint, CheckpointId, Label, LeftOutWhy, LeftWhy, Moment, PathText, Recovered, Restored,
    RunId, SessionKey, Timestamp,
};

use super::model::{self, Model};
use crate::checkpoints::FsCheckpoints;
use crate::database::{self, Kept};
use crate::diff;
use crate::place::Tree;
use crate::restore::hands::{Hands, Real};
use crate::restore::{Wish, journal, recover_by, restore_by};
use crate::trouble::Outcome;

pub(super) fn key() -> SessionKey {
    SessionKey::new("issue-42", "claude").unwrap()
}

#[derive(Debug)]
pub(super) struct World {
    pub(super) home: tempfile::TempDir,
    pub(super) root: PathBuf,
    pub(super) tree: Tree,
    pub(super) checkpoints: FsCheckpoints,
    pub(super) waiting: Arc<()>,
}

impl World {
    /// A world whose tree is not made yet.
    pub(super) fn new() -> Self {
        // Where there is room in memory, the many databases need not wait for a disk.
        let home = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap();
        let root = home.path().canonicalize().unwrap().join("tree");
        std::fs::create_dir(&root).unwrap();
        let tree = Tree::around(&root).unwrap();
        let checkpoints = FsCheckpoints::new(home.path().join("base"));
        Self { home, root, tree, checkpoints, waiting: Arc::new(()) }
    }

    /// Keeps a tree that is not on the disk.
    pub(super) fn keep(&self, model: &Model) -> CheckpointId {
        self.keep_without(model, Vec::new())
    }

    pub(super) fn keep_without(&self, model: &Model, left_out: Vec<(Vec<u8>, LeftOutWhy)>) -> CheckpointId {
        let mut db = self.checkpoints.open(&self.tree).unwrap();
        let transaction = db.transaction_with_behavior(TransactionBehavior::Immediate).unwrap();
        let (tree, mode) = model::keep(&transaction, model);
        let id = CheckpointId::new(uuid::Uuid::new_v4());
        let (step, moment) = (RunId::new(uuid::Uuid::nil()), Moment::Asked);
        let label = Label::new(key(), step, moment);
        let mut checkpoint = Checkpoint::new(id, label, Timestamp::from_millis(0), PathText::new(&self.root));
        database::show_left_out(&mut checkpoint, &left_out);
        let root = std::os::unix::ffi::OsStrExt::as_bytes(self.root.as_os_str()).to_owned();
        database::keep(&transaction, &Kept { checkpoint, root, tree, mode, left_out, rules: [0; 32] })
            .unwrap();
        transaction.commit().unwrap();
        id
    }

    pub(super) fn build(&self, model: &Model) {
        model::build(&self.root, model);
    }

    pub(super) fn read(&self) -> Model {
        model::read(&self.root)
    }

    pub(super) fn diff(&self, from: CheckpointId, to: CheckpointId) -> Outcome<Vec<Change>> {
        let db = self.checkpoints.open(&self.tree)?;
        let kept = |id| database::kept(&db, &key(), id).unwrap().unwrap();
        diff::between(&db, &kept(from), &kept(to))
    }

    pub(super) fn wish(&self, from: CheckpointId, to: CheckpointId, paths: &[PathBuf]) -> Wish {
        let step = RunId::new(uuid::Uuid::from_u128(7));
        let waiting = Arc::downgrade(&self.waiting);
        Wish { key: key(), step, folder: self.root.clone(), to, from, paths: paths.to_vec(), waiting }
    }

    pub(super) fn restore(&self, from: CheckpointId, to: CheckpointId, paths: &[PathBuf]) -> Restored {
        self.restore_by(&Real, from, to, paths).unwrap()
    }

    pub(super) fn restore_by(
        &self,
        hands: &dyn Hands,
        from: CheckpointId,
        to: CheckpointId,
        paths: &[PathBuf],
    ) -> Outcome<Restored> {
        restore_by(hands, &self.checkpoints, &self.wish(from, to, paths))
    }

    pub(super) fn recover_by(&self, hands: &dyn Hands) -> Outcome<Vec<Recovered>> {
        recover_by(hands, &self.checkpoints, &self.tree)
    }

    pub(super) fn notes(&self) -> Vec<Note> {
        let db = self.checkpoints.open(&self.tree).unwrap();
        let mut select = db.prepare("SELECT id, root, data FROM restore ORDER BY id").unwrap();
        let rows = select.query_map([], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?))).unwrap();
        rows.map(Result::unwrap).collect()
    }

    /// Makes these the notes that there are.
    pub(super) fn set_notes(&self, notes: &[Note]) {
        let db = self.checkpoints.open(&self.tree).unwrap();
        db.execute("DELETE FROM restore", []).unwrap();
        for note in notes {
            db.execute("INSERT INTO restore (id, root, data) VALUES (?1, ?2, ?3)", note.clone()).unwrap();
        }
    }

    /// How many restores were begun and not ended.
    pub(super) fn rows(&self) -> usize {
        journal::all(&self.checkpoints.open(&self.tree).unwrap(), &self.root).unwrap().len()
    }
}

/// The note of a restore that was begun, as it is kept.
pub(super) type Note = (i64, Vec<u8>, Vec<u8>);

pub(super) fn left(restored: &Restored) -> Vec<(&Path, LeftWhy)> {
    restored.left.iter().map(|left| (left.path.as_path(), left.why.clone())).collect()
}
