//! Errors of going back.

use super::{AgentError, CatalogError, CheckpointError, FolderError, StoreError, busy_text};
use crate::{AgentId, CheckpointId, Holder, NativeId, SessionKey};

/// A rewind, a clear, a rejoin or a fork that was not done. But for [`Checkpoint`](Self::Checkpoint), no file of a tree was touched
/// and no conversation changed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RewindError {
    /// Somebody else has the key: a run, a rewind or the like is under way, or its record changed meanwhile. Cancel it, or wait.
    #[error("{}", busy_text(.key, .by.as_ref()))]
    Busy {
        /// The key.
        key: SessionKey,
        /// Who has it. `None`: the store cannot tell, or he came in between and is gone again.
        by: Option<Holder>,
    },
    /// A run of the key did not end in order, and what it left has to be looked at first: the next run does.
    #[error("a run of {key} did not end in order; run it once more first")]
    Unsettled {
        /// The key.
        key: SessionKey,
    },
    /// Nobody takes checkpoints here.
    #[error("no checkpoints are taken; set a checkpointer first")]
    NoCheckpointer,
    /// The key has no such checkpoint.
    #[error("{key} has no checkpoint {checkpoint}")]
    NoSuchCheckpoint {
        /// The key.
        key: SessionKey,
        /// The checkpoint asked for.
        checkpoint: CheckpointId,
    },
    /// It is one of the end of a run or a rewind.
    #[error("checkpoint {checkpoint} is the end of a step; go back to the beginning of one")]
    NotATarget {
        /// The checkpoint asked for.
        checkpoint: CheckpointId,
    },
    /// It cannot be gone back to, for this reason.
    #[error("checkpoint {checkpoint} is damaged: {why}")]
    Damaged {
        /// The checkpoint asked for.
        checkpoint: CheckpointId,
        /// What ails it.
        why: String,
    },
    /// There are not so many prompts to take back.
    #[error("prompts that can be taken back: {there}; asked for: {asked}")]
    NotSoMany {
        /// How many were asked for.
        asked: u32,
        /// How many there are.
        there: usize,
    },
    /// There is no rewind to undo in this tree.
    #[error("no rewind of {key} can be undone here")]
    NothingToUndo {
        /// The key.
        key: SessionKey,
    },
    /// The checkpoint is one of another tree than that of the folder.
    #[error("the checkpoint is of {checkpoint}, not of {here}")]
    OtherTree {
        /// The checkpoint's tree.
        checkpoint: String,
        /// The tree of the folder.
        here: String,
    },
    /// The folder of a fork belongs to another project. Say yes to it, or fork in a folder of the conversation's own.
    #[error("the conversation is of {began}, and {here} belongs to another project")]
    OtherProject {
        /// The folder of the conversation.
        began: String,
        /// The folder of the fork.
        here: String,
    },
    /// The conversation cannot go back or be forked, for this reason.
    #[error("the conversation cannot be branched: {why}")]
    Unsupported {
        /// The reason.
        why: String,
    },
    /// Nobody registered that agent.
    #[error("no agent {agent} is registered")]
    UnknownAgent {
        /// The agent.
        agent: AgentId,
    },
    /// The key has no conversation.
    #[error("{key} has no session")]
    NoSession {
        /// The key.
        key: SessionKey,
    },
    /// The key's record does not name this session.
    #[error("{key} has no former session {session}")]
    NoSuchSession {
        /// The key.
        key: SessionKey,
        /// The session asked for.
        session: NativeId,
    },
    /// The session cannot be continued any more.
    #[error("session {session} of {key} cannot be rejoined: {why}")]
    NotRejoinable {
        /// The key.
        key: SessionKey,
        /// The session asked for.
        session: NativeId,
        /// Why.
        why: String,
    },
    /// The key that a fork is for has a conversation already.
    #[error("{key} has a session already")]
    Taken {
        /// The key.
        key: SessionKey,
    },
    /// A fork goes to another key of the same agent.
    #[error("{from} cannot be forked into {to}: a fork needs another key of the same agent")]
    NotAForkOf {
        /// The original's key.
        from: SessionKey,
        /// The key of the fork.
        to: SessionKey,
    },
    /// The record cannot be read, for this reason. The next run sets it aside.
    #[error("the record of {key} cannot be read: {why}")]
    RecordUnreadable {
        /// The key.
        key: SessionKey,
        /// The reason.
        why: String,
    },
    /// A newer version of this library wrote the record.
    #[error("the record of {key} was written by a newer version")]
    RecordNewer {
        /// The key.
        key: SessionKey,
    },
    /// The folder cannot be used.
    #[error("the folder cannot be used")]
    Folder(#[source] FolderError),
    /// The agent could not be asked for its version.
    #[error("the agent could not be asked")]
    Agent(#[source] AgentError),
    /// The store failed.
    #[error("the store failed")]
    Store(#[source] StoreError),
    /// The session could not be looked at, or a branch of it not be made.
    #[error("the session could not be branched")]
    Catalog(#[source] CatalogError),
    /// A checkpoint could not be taken, read or gone back to. What was cut off is finished by the next run or rewind in the tree.
    #[error("the checkpoints failed")]
    Checkpoint(#[source] CheckpointError),
}
