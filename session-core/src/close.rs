//! The end of a mailbox.

use std::fmt;

use crate::error::{CheckpointError, StoreError, busy_text};
use crate::{Holder, InvalidName, NativeId, SessionKey};

/// Why a mailbox is closed. A mailbox that is only *blocked* is not closed: it keeps everything, and is just not run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Closing {
    /// The work is done.
    Done,
    /// The work was given up.
    Cancelled,
    /// What it was about is not there any more, such as an issue that was deleted.
    NotFound,
    /// A sweep found it, and it belongs to no mailbox that is alive.
    Orphaned,
    /// It was idle for longer than is kept, or the one that was idle longest where all took too much.
    Expired,
}

impl Closing {
    /// The stable code, as in the audit log.
    #[must_use]
    pub const fn code(self) -> &'static str {
        match self {
            Self::Done => "done",
            Self::Cancelled => "cancelled",
            Self::NotFound => "not_found",
            Self::Orphaned => "orphaned",
            Self::Expired => "expired",
        }
    }

    /// The code of a tombstone in words; a code of a later version as it is.
    pub(crate) fn worded(code: &str) -> String {
        match code {
            "not_found" => "what it was about is not there any more (not_found)".to_owned(),
            "orphaned" => "a sweep found that it belongs to no live mailbox (orphaned)".to_owned(),
            "expired" => "it was idle for longer than is kept, or took too much room (expired)".to_owned(),
            code => code.replace('_', " "),
        }
    }
}

impl fmt::Display for Closing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.code())
    }
}

/// What closing a key came to.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Closed {
    /// The key.
    pub key: SessionKey,
    /// The session that was in force.
    pub session: Option<NativeId>,
    /// A session that was begun and is not known to hold a turn.
    pub candidate: Option<NativeId>,
    /// Processes that a dead runner had left, and that were ended.
    pub ended: u32,
    /// Whether there was a state dir. It is gone, with all that the agent kept in it.
    pub state_removed: bool,
    /// Checkpoints that are gone; zero where there were none. `None`: there is no checkpointer here. What another one keeps of the
    /// key, it still keeps.
    pub checkpoints: Option<u64>,
}

/// A mailbox that is not closed for every agent. Closing it again goes on where this one stopped.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum MailboxNotClosed {
    /// The mailbox's name is none.
    #[error("this is no mailbox")]
    Name(#[source] InvalidName),
    /// It could not be closed for some agents. All others are closed.
    #[error("the mailbox could not be closed for {} of {} agents", others.len() + 1, others.len() + 1 + closed.len())]
    Agents {
        /// What was closed.
        closed: Vec<Closed>,
        /// The first agent's that could not be.
        source: Box<CloseError>,
        /// Those of the others.
        others: Vec<CloseError>,
    },
}

/// A key that could not be closed. Closing it again goes on where this one stopped.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CloseError {
    /// A run, a rewind or the like of the key is under way, or a write of one that was dropped came in between. Nothing was
    /// removed; cancel it, or wait.
    #[error("{}", busy_text(.key, .by.as_ref()))]
    Busy {
        /// The key.
        key: SessionKey,
        /// Who runs it, where the store can tell.
        by: Option<Holder>,
    },
    /// A newer version of this library wrote the record. Nothing was changed; close it with that version.
    #[error("the record of {key} was written by a newer version")]
    Newer {
        /// The key.
        key: SessionKey,
    },
    /// The store failed; what is gone by then is gone, and the audit log says that it is being closed.
    #[error("{key} could not be closed")]
    Store {
        /// The key.
        key: SessionKey,
        /// Why.
        source: StoreError,
    },
    /// Its checkpoints are not known to be gone. The rest is still there, and the audit log says that it is being closed.
    #[error("the checkpoints of {key} could not be forgotten")]
    Checkpoints {
        /// The key.
        key: SessionKey,
        /// Why.
        source: CheckpointError,
    },
}
