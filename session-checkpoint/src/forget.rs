//! Drops checkpoints, and what no other one needs.

use session_core::{CheckpointId, Dropped, Forget, SessionKey};

use crate::checkpoints::FsCheckpoints;
use crate::trouble::{Outcome, Trouble};

/// An order to drop some, owned.
#[derive(Debug)]
pub(crate) struct Wish {
    pub(crate) key: SessionKey,
    /// `None`: all.
    pub(crate) these: Option<Vec<CheckpointId>>,
}

impl Wish {
    pub(crate) fn new(key: &SessionKey, which: Forget<'_>) -> Self {
        let these = match which {
            Forget::These(these) => Some(these.to_vec()),
            _ => None,
        };
        Self { key: key.clone(), these }
    }
}

pub(crate) fn forget(_checkpoints: &FsCheckpoints, wish: &Wish) -> Outcome<Dropped> {
    Err(Trouble::NotHere(format!("not built: {wish:?}")))
}
