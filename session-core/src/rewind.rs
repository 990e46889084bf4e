//! Going back: what is asked for, what it will do, and what it did.

mod fork;
mod outcome;

use std::path::PathBuf;

use serde::Serialize;

pub use fork::{Cleared, ForkRequest, Forked, Rejoined};
pub use outcome::{ConversationDone, FilesDone, RewindOutcome, Rewound, Unfinished};

use crate::{Change, Checkpoint, CheckpointId, LeftOut, NativeId, RunId, SessionKey, Timestamp};

/// How far back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum RewindTo {
    /// To this checkpoint: one before a run or a rewind, or one that was asked for.
    Checkpoint(CheckpointId),
    /// To before the last so many prompts that were not taken back yet; 1 takes back the last one.
    Turns(u32),
}

/// What goes back.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum RewindMode {
    /// The files of the work tree. The conversation goes on, and does not know.
    Files,
    /// The conversation. The files stay.
    Conversation,
    /// Both.
    #[default]
    Both,
}

impl RewindMode {
    /// Whether files go back.
    #[must_use]
    pub const fn takes_files(self) -> bool {
        matches!(self, Self::Files | Self::Both)
    }

    /// Whether the conversation goes back.
    #[must_use]
    pub const fn takes_conversation(self) -> bool {
        matches!(self, Self::Conversation | Self::Both)
    }

    /// The stable word: `files`, `conversation`, `both`.
    #[must_use]
    pub const fn code(self) -> &'static str {
        match self {
            Self::Files => "files",
            Self::Conversation => "conversation",
            Self::Both => "both",
        }
    }
}

/// What becomes of paths that the prompts changed, and somebody else as well.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Conflicts {
    /// They stay as they are.
    #[default]
    Keep,
    /// They go back, too. What somebody else did to them is in the checkpoint that undoes the rewind.
    Overwrite,
}

/// A wish to go back.
#[derive(Debug, Clone, PartialEq, Eq)]
#[must_use]
pub struct RewindRequest {
    pub(crate) key: SessionKey,
    pub(crate) cwd: PathBuf,
    pub(crate) to: RewindTo,
    pub(crate) mode: RewindMode,
    pub(crate) conflicts: Conflicts,
}

impl RewindRequest {
    /// Takes back the last prompt of a key, in the work tree around this folder: files and conversation, conflicts kept.
    pub fn new(key: SessionKey, cwd: impl Into<PathBuf>) -> Self {
        Self {
            key,
            cwd: cwd.into(),
            to: RewindTo::Turns(1),
            mode: RewindMode::default(),
            conflicts: Conflicts::default(),
        }
    }

    /// How far back; by default, to before the last prompt.
    pub const fn to(mut self, to: RewindTo) -> Self {
        self.to = to;
        self
    }

    /// What goes back; by default, both.
    pub const fn mode(mut self, mode: RewindMode) -> Self {
        self.mode = mode;
        self
    }

    /// What becomes of paths that somebody else changed, too; by default, they stay.
    pub const fn conflicts(mut self, conflicts: Conflicts) -> Self {
        self.conflicts = conflicts;
        self
    }
}

/// A prompt that a checkpoint was taken before.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Prompted {
    /// Its run.
    pub step: RunId,
    /// The checkpoint before it.
    pub checkpoint: CheckpointId,
    /// When that was taken.
    pub at: Timestamp,
    /// The beginning of the prompt.
    pub prompt: Option<String>,
}

/// What a rewind does to the files of a tree. In each change, `before` is what stands there now, and `after` what stood there
/// at the target.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct FilesPlan {
    /// What goes back.
    pub restore: Vec<Change>,
    /// What the prompts changed, and somebody else as well: it stays, or goes back where the request says so.
    pub conflicts: Vec<Change>,
    /// What only somebody else changed, and folders of the prompts that hold such a thing. It stays.
    pub left_alone: Vec<Change>,
    /// Runs and rewinds without a checkpoint at their end, as their runner died or none could be taken: what changed until the
    /// next checkpoint counts as theirs.
    pub unended: Vec<RunId>,
}

/// What a rewind does to the conversation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ConversationPlan {
    /// It was not asked for. The conversation stays as it is.
    NotAsked,
    /// It stands where it stood at the target.
    Unchanged,
    /// A branch is made that holds the first so many prompts of a session, and the next run continues it.
    Branch {
        /// The session, which stays as it is.
        of: NativeId,
        /// Prompts that are kept.
        keep: u64,
    },
    /// Nothing is kept: the next run begins a new session.
    Fresh,
    /// A session of before is in force again, as it is.
    Rebind {
        /// The session.
        session: NativeId,
    },
    /// It cannot go back, for this reason. A rewind that wants it is refused, and nothing is touched.
    Unsupported(String),
}

/// What goes apart, where only one of files and conversation goes back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Apart {
    /// The conversation stays as it is while the files of prompts go back, or come back.
    ConversationStays {
        /// Of the prompts whose files go back, it may still tell of so many: those that it does not hold, as far as anybody can
        /// tell, are not counted. One whose run failed before its session kept it is such a one.
        prompts: usize,
        /// Of the prompts whose files come back, it may not know so many: those that it is known to hold are not counted.
        lacks: usize,
    },
    /// The files still show what prompts did that the conversation does not know any more.
    FilesStay {
        /// So many paths differ from the target.
        paths: usize,
    },
}

/// What a rewind would come to by now.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct RewindPreview {
    /// The checkpoint that it goes back to.
    pub target: Checkpoint,
    /// What goes back.
    pub mode: RewindMode,
    /// What becomes of conflicts.
    pub on_conflicts: Conflicts,
    /// What it does to the files. In mode [`Conversation`](RewindMode::Conversation), what it would do.
    pub files: FilesPlan,
    /// The prompts that are taken back, oldest first.
    pub dropped: Vec<Prompted>,
    /// The prompts that come back, where a rewind is undone, oldest first.
    pub regained: Vec<Prompted>,
    /// What it does to the conversation.
    pub conversation: ConversationPlan,
    /// What goes apart.
    pub apart: Option<Apart>,
    /// What the target, or the present state, does not cover, in the order of paths: it stays as it is.
    pub not_covered: Vec<LeftOut>,
    /// How many there are at least; more than are named where a checkpoint does not name them all.
    pub not_covered_count: u64,
}
