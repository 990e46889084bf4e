#![doc = include_str!("../README.md")]

mod agent;
mod audit;
mod branch;
mod cancel;
mod catalog;
mod checkpoint;
mod claim;
mod close;
pub mod codec;
mod conversation;
pub mod decide;
mod dialect;
pub mod error;
mod event;
mod evidence;
mod explain;
mod format;
pub mod history;
mod host;
mod ids;
mod leftover;
mod lenient;
mod lifecycle;
mod memory;
mod mounts;
mod preamble;
mod record;
mod relocation;
mod report;
mod request;
mod resolution;
mod result;
mod rewind;
mod seed;
mod settings;
mod store;
mod store_arc;
mod summary;
mod sweep;
mod time;
mod usage;

pub use agent::{
    Agent, AgentAdapter, AgentCapabilities, AgentRetention, ForkSupport, IdOnResume, Installation, Mode,
    ReachCapability, Turn, TurnRecipe, TurnReport, Version,
};
pub use async_trait::async_trait;
pub use audit::{AttemptNote, AuditEntry, AuditEvent, AuditSeq};
pub use branch::{Branch, BranchOrder, BranchRefusal, Branched, Carried, Heir, Seam, Seed, Spot};
pub use cancel::Cancel;
pub use catalog::{Inspection, Mend, Presence, SessionCatalog, SessionQuery};
pub use checkpoint::{
    Change, Checkpoint, CheckpointId, Checkpointer, Dropped, Forget, Health, Label, LeftOut, LeftOutWhy,
    LeftPath, LeftWhy, Moment, Node, NodeKind, Recovered, RestoreOrder, Restored, TakeOrder,
};
pub use claim::Claim;
pub use close::{CloseError, Closed, Closing, MailboxNotClosed};
pub use conversation::{Conversation, HandOver, Said, Speaker};
pub use dialect::{CliDialect, CommandSpec, Decoder, Ended, EnvChange, EnvMap, Link, Program, StateLayout};
pub use event::{AgentEvent, EventSink, Final, NoSink};
pub use evidence::{Asked, EndedBy, Evidence, Exit, Observation};
pub use explain::{Bound, Explanation, Waiting};
pub use format::{Below, LiveSession, Places, RecordFacts, RecordKind, TranscriptFormat};
pub use host::{Folder, FolderId, Holder, Host, PathText, Place, Repository, WorkTree};
pub use ids::{AgentId, InvalidName, MailboxId, NativeId, RunId, SessionKey, SessionName};
pub use leftover::{
    Disposed, InvalidLive, Leftover, LeftoverKind, LeftoverOptions, Live, StateSize, Tombstone,
};
pub use lenient::without_lone_surrogates;
pub use lifecycle::Lifecycle;
pub use memory::MemoryStore;
pub use mounts::{Content, Mount, MountPlan, Purpose};
pub use preamble::{GivenTo, Preamble};
pub use record::{Binding, Candidate, Former, InFlight, LastRun, Mark, Phase, Rewinding, SessionRecord};
pub use relocation::{Foreseen, Refusal, RelocateOrder, Relocated, Relocation, RelocationOutcome, Way};
pub use request::{Limits, LlmRequest, ResumePolicy, SessionRef};
pub use resolution::{
    Answer, Hit, Located, Look, NoRoster, NotResumed, Proposal, Roster, Running, Seek, Vanished, Wanted,
};
pub use result::{FailedRun, LlmResult, Recorded, Route, Warning};
pub use rewind::{
    Apart, Cleared, Conflicts, ConversationDone, ConversationPlan, FilesDone, FilesPlan, ForkRequest, Forked,
    Prompted, Rejoined, RewindMode, RewindOutcome, RewindPreview, RewindRequest, RewindTo, Rewound,
    Unfinished,
};
pub use seed::{
    KeptSeed, NotRestored, NotRestoredWhy, Recipe, RecipePart, RecipeSeed, ResumeMode, SeedError,
};
pub use settings::{InvalidSetting, RESUME_SETTING, ResumeSetting};
pub use store::{
    Document, Guard, Lease, LeaseOutcome, ListOptions, Page, Removed, Revision, Saved, SessionStore,
    StoreCapabilities, StoreReach, Stored,
};
pub use summary::{
    Compacted, HandedOver, NotByAgent, Summary, SummaryBy, SummaryRequest, SummarySource, TurnSpan,
};
pub use sweep::{Falling, Retention, Sweep, SweepOutcome, SweepReason, SweepReport, Swept};
pub use time::Timestamp;
pub use usage::{Counters, FigureScope, FigureSource, Totals, Usage, cost_of_run, usage_of_run};
