//! Puts paths of a tree back.

use std::path::{Path, PathBuf};

use session_core::{CheckpointId, Recovered, RestoreOrder, Restored, RunId, SessionKey};

use rusqlite::Connection;

use crate::checkpoints::FsCheckpoints;
use crate::object::Hash;
use crate::place::Tree;
use crate::trouble::{Outcome, Trouble};

/// An order to put some back, owned.
#[derive(Debug)]
pub(crate) struct Wish {
    pub(crate) key: SessionKey,
    pub(crate) step: RunId,
    pub(crate) folder: PathBuf,
    pub(crate) to: CheckpointId,
    pub(crate) from: CheckpointId,
    pub(crate) paths: Vec<PathBuf>,
}

impl Wish {
    pub(crate) fn new(order: &RestoreOrder<'_>) -> Self {
        Self {
            key: order.key.clone(),
            step: order.step,
            folder: order.folder.to_owned(),
            to: order.to,
            from: order.from,
            paths: order.paths.to_vec(),
        }
    }
}

pub(crate) fn restore(_checkpoints: &FsCheckpoints, wish: &Wish) -> Outcome<Restored> {
    Err(Trouble::NotHere(format!("not built: {wish:?}")))
}

pub(crate) fn recover(_checkpoints: &FsCheckpoints, folder: &Path) -> Outcome<Vec<Recovered>> {
    Err(Trouble::NotHere(format!("not built: {}", folder.display())))
}

/// Finishes what was cut off in a tree.
pub(crate) fn recover_tree(_checkpoints: &FsCheckpoints, _tree: &Tree) -> Outcome<Vec<Recovered>> {
    Ok(Vec::new())
}

/// The trees that restores which are under way need.
pub(crate) fn trees_in_use(_db: &Connection) -> Outcome<Vec<Hash>> {
    Ok(Vec::new())
}
