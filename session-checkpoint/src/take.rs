//! Takes a checkpoint.

use std::path::PathBuf;

use session_core::{Checkpoint, CheckpointId, Label, TakeOrder, Timestamp};

use crate::checkpoints::FsCheckpoints;
use crate::place::Tree;
use crate::trouble::{Outcome, Trouble};

/// An order to take one, owned.
#[derive(Debug)]
pub(crate) struct Wish {
    pub(crate) id: CheckpointId,
    pub(crate) label: Label,
    pub(crate) at: Timestamp,
    pub(crate) folder: PathBuf,
    pub(crate) changed: Option<Vec<PathBuf>>,
}

impl Wish {
    pub(crate) fn new(order: &TakeOrder<'_>) -> Self {
        Self {
            id: order.id,
            label: order.label.clone(),
            at: order.at,
            folder: order.folder.to_owned(),
            changed: order.changed.map(<[PathBuf]>::to_vec),
        }
    }
}

/// Whether checkpoints are taken of a tree.
pub(crate) fn allow(_checkpoints: &FsCheckpoints, _tree: &Tree) -> Outcome<()> {
    Ok(())
}

pub(crate) fn take(_checkpoints: &FsCheckpoints, wish: &Wish) -> Outcome<Checkpoint> {
    Err(Trouble::NotHere(format!("not built: {wish:?}")))
}
