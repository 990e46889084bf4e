//! What a rewind did.

use std::path::PathBuf;

use crate::{
    Apart, AuditSeq, Checkpoint, CheckpointId, ConversationPlan, LeftPath, NativeId, Prompted, Recorded,
    RunId, Warning,
};

/// How far a rewind came.
#[derive(Debug, Clone, PartialEq, Eq)]
#[must_use]
pub enum RewindOutcome {
    /// All that was asked for went back.
    Done,
    /// A part of it did not, for these reasons.
    Partial(Vec<Unfinished>),
}

impl RewindOutcome {
    /// Done, where nothing is left.
    pub(crate) fn of(left: Vec<Unfinished>) -> Self {
        if left.is_empty() { Self::Done } else { Self::Partial(left) }
    }
}

/// Something that did not go back.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Unfinished {
    /// Somebody else changed these paths, too, and the request keeps them.
    Conflicts(Vec<PathBuf>),
    /// These paths could not be put back.
    Paths(Vec<LeftPath>),
    /// Putting the files back was cut off, for this reason; the next run or rewind in the tree finishes it.
    CutOff(String),
    /// The conversation stays as it was, as the record could not be written.
    Conversation,
}

/// What was done to the files.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct FilesDone {
    /// The paths that are as at the target now.
    pub restored: Vec<PathBuf>,
    /// The paths that could not be put back, and why.
    pub left: Vec<LeftPath>,
    /// The paths that somebody else changed, too, and that stayed.
    pub conflicts: Vec<PathBuf>,
    /// The paths that only somebody else changed, and folders that hold such a one. They stayed.
    pub left_alone: Vec<PathBuf>,
    /// Runs and rewinds without a checkpoint at their end: what changed until the next one counts as theirs.
    pub unended: Vec<RunId>,
}

/// What was done to the conversation.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum ConversationDone {
    /// Nothing: it was not asked for, or stood there already.
    Stays,
    /// The session that the next run continues is a branch of another one.
    Branched {
        /// The branch.
        session: NativeId,
        /// The original, which can be rejoined.
        of: NativeId,
        /// Prompts in it.
        kept: u64,
    },
    /// The next run begins a new session.
    Fresh,
    /// A session of before is in force again.
    Rebound {
        /// The session.
        session: NativeId,
    },
    /// It stays as it was, as the record could not be written; this was to be done.
    NotRecorded(ConversationPlan),
}

/// What a rewind came to.
#[derive(Debug)]
#[must_use]
#[non_exhaustive]
pub struct Rewound {
    /// How far it came.
    pub outcome: RewindOutcome,
    /// The checkpoint that was gone back to.
    pub target: Checkpoint,
    /// What was done to the files.
    pub files: FilesDone,
    /// What was done to the conversation.
    pub conversation: ConversationDone,
    /// The prompts that were taken back, oldest first.
    pub dropped: Vec<Prompted>,
    /// The prompts that came back, where a rewind was undone, oldest first.
    pub regained: Vec<Prompted>,
    /// What went apart.
    pub apart: Option<Apart>,
    /// The checkpoint that was taken before: to go back to it undoes this rewind.
    pub undo: CheckpointId,
    /// The session in force before.
    pub session_before: Option<NativeId>,
    /// The session in force now.
    pub session_after: Option<NativeId>,
    /// Whether the record is as it should be.
    pub recorded: Recorded,
    /// The number of the event in the audit log.
    pub audit_seq: Option<AuditSeq>,
    /// The rewind's id.
    pub step: RunId,
    /// What did not spoil it.
    pub warnings: Vec<Warning>,
}
