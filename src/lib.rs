#![cfg_attr(all(feature = "adapter-claude", feature = "session-store-fs"), doc = include_str!("../README.md"))]
#![cfg_attr(
    not(all(feature = "adapter-claude", feature = "session-store-fs")),
    doc = "One continuous memory per piece of work for coding-agent CLIs."
)]
#![cfg_attr(docsrs, feature(doc_cfg))]

#[cfg(all(unix, feature = "session-checkpoint"))]
mod checkpoints;
#[cfg(feature = "adapter-claude")]
mod claude;
#[cfg(feature = "adapter-codex")]
mod codex;
#[cfg(feature = "adapter-opencode")]
mod opencode;
#[cfg(feature = "session-process")]
mod resolution;
#[cfg(feature = "session-process")]
mod rewind;
#[cfg(feature = "session-process")]
mod sessions;

#[cfg(feature = "session-process")]
pub use sessions::{Sessions, SessionsBuilder};

#[cfg(all(unix, feature = "session-checkpoint"))]
pub use checkpoints::checkpoints;

pub use session_core::decide::{Sign, Why, Workdir};
pub use session_core::error::{self, RunError};
pub use session_core::history;
pub use session_core::{
    Agent, AgentCapabilities, AgentEvent, AgentId, Answer, AttemptNote, AuditEntry, AuditEvent, AuditSeq,
    Cancel, CloseError, Closed, Closing, Compacted, EventSink, Evidence, Explanation, FailedRun, Falling,
    FigureSource, Foreseen, HandOver, HandedOver, Hit, Holder, InvalidLive, Limits, Live, LlmRequest,
    LlmResult, Located, Look, MailboxId, MailboxNotClosed, MountPlan, NativeId, NoSink, NotByAgent,
    NotRestored, NotRestoredWhy, NotResumed, Program, Proposal, RESUME_SETTING, Recipe, RecipePart,
    RecipeSeed, Recorded, Refusal, Relocated, Relocation, RelocationOutcome, ResumeMode, ResumePolicy,
    ResumeSetting, Retention, Route, RunId, Seek, SessionKey, SessionName, SessionRecord, SessionRef,
    SessionStore, StateSize, Summary, SummaryBy, SummaryRequest, SummarySource, Sweep, SweepOutcome,
    SweepReason, SweepReport, Swept, Totals, TurnSpan, Usage, Vanished, Wanted, Warning, Way, WorkTree,
};
pub use session_core::{
    Apart, Change, Checkpoint, CheckpointId, Checkpointer, Cleared, Conflicts, ConversationDone,
    ConversationPlan, FilesDone, FilesPlan, ForkRequest, Forked, Health, Label, LeftOut, LeftOutWhy,
    LeftPath, LeftWhy, Moment, Node, NodeKind, PathText, Prompted, Rejoined, RewindMode, RewindOutcome,
    RewindPreview, RewindRequest, RewindTo, Rewound, Spot, Unfinished,
};

/// For authors of stores and adapters: the ports, the decisions, the pure orchestration.
pub use session_core as core;

/// The agents, one a feature.
pub mod adapters {
    #[cfg(feature = "adapter-claude")]
    pub use crate::claude::{Claude, claude};
    #[cfg(feature = "adapter-claude")]
    pub use adapter_claude::{ClaudeDialect, ClaudeOptions, ClaudeTranscripts};

    #[cfg(feature = "adapter-codex")]
    pub use crate::codex::{Codex, codex};
    #[cfg(feature = "adapter-opencode")]
    pub use crate::opencode::{Opencode, opencode};
    #[cfg(feature = "adapter-codex")]
    pub use adapter_codex::{CodexDialect, CodexOptions, CodexProvider, CodexTranscripts, SandboxMode};
    #[cfg(feature = "adapter-opencode")]
    pub use adapter_opencode::{
        DatabaseError as OpencodeDatabaseError, OpencodeCatalog, OpencodeDialect, OpencodeOptions,
    };
}

/// The stores, one a feature, and the one in memory.
pub mod stores {
    pub use session_core::MemoryStore;
    #[cfg(feature = "session-store-fs")]
    pub use session_store_fs::FsStore;
}

/// Checkpoints of work trees.
#[cfg(all(unix, feature = "session-checkpoint"))]
pub mod checkpoint {
    pub use session_checkpoint::{CheckpointLimits, FsCheckpoints};
}

/// Running agents as child processes.
#[cfg(feature = "session-process")]
pub mod process {
    pub use session_process::error;
    pub use session_process::{
        Bubblewrap, CliAgent, Environment, Invocation, Launcher, SystemHost, take_over,
    };
}

/// Reading the session files of agents.
#[cfg(feature = "session-transcript")]
pub mod transcript {
    pub use session_transcript::{FileCatalog, Follow, Followed};
}

/// What the guides show is compiled with the tests.
#[cfg(all(
    doctest,
    feature = "adapter-claude",
    feature = "adapter-codex",
    feature = "adapter-opencode",
    feature = "session-checkpoint",
    feature = "session-store-fs"
))]
mod guides {
    #[doc = include_str!("../docs/guides/mailbox.md")]
    mod mailbox {}
    #[doc = include_str!("../docs/guides/resume-paths.md")]
    mod resume_paths {}
    #[doc = include_str!("../docs/guides/rewind.md")]
    mod rewind {}
    #[doc = include_str!("../docs/guides/sandboxes.md")]
    mod sandboxes {}
}
