//! Errors, one level each: `Display` says what failed, `source()` why.

mod checkpoint;
mod history;
mod rewind;
mod summary;

use std::fmt;
use std::path::PathBuf;

use crate::decide::Why;
pub use crate::report::Report;
use crate::{AgentId, FailedRun, Holder, InvalidName, SeedError, SessionKey};
pub use checkpoint::{CheckpointError, CheckpointErrorKind};
pub use history::{CatalogError, HandOverError, HistoryError};
pub use rewind::RewindError;
pub use summary::SummaryError;

/// Any cause.
pub type BoxError = Box<dyn std::error::Error + Send + Sync + 'static>;

/// What kind of trouble a store has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum StoreErrorKind {
    /// It cannot be reached, or is out of space.
    Unavailable,
    /// It is not allowed.
    PermissionDenied,
    /// What it holds cannot be read.
    Corrupt,
    /// It was written by a newer version of the store.
    Newer,
    /// It cannot do that.
    Unsupported,
    /// Anything else.
    Other,
}

/// A question that a store could not answer.
#[derive(Debug)]
pub struct StoreError {
    kind: StoreErrorKind,
    operation: &'static str,
    what: String,
    source: Option<BoxError>,
}

impl StoreError {
    /// An error of this kind in this operation (`load`, `save`, …) about this thing (a path, a key).
    pub fn new(kind: StoreErrorKind, operation: &'static str, what: impl Into<String>) -> Self {
        Self { kind, operation, what: what.into(), source: None }
    }

    /// Adds the cause.
    #[must_use]
    pub fn with_source(mut self, source: impl Into<BoxError>) -> Self {
        self.source = Some(source.into());
        self
    }

    /// What kind of trouble it is.
    #[must_use]
    pub const fn kind(&self) -> StoreErrorKind {
        self.kind
    }
}

impl fmt::Display for StoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = match self.kind {
            StoreErrorKind::Unavailable => "the store is unavailable",
            StoreErrorKind::PermissionDenied => "the store is not accessible; check owner and mode",
            StoreErrorKind::Corrupt => "the store holds something unreadable",
            StoreErrorKind::Newer => "the store was written by a newer version; upgrade this one",
            StoreErrorKind::Unsupported => "the store cannot do that",
            StoreErrorKind::Other => "the store failed",
        };
        write!(f, "{kind} ({} {})", self.operation, self.what)
    }
}

impl std::error::Error for StoreError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.source.as_deref().map(|source| source as _)
    }
}

/// What kind of trouble an agent has that could not be run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum AgentErrorKind {
    /// The program is not there.
    NotFound,
    /// The program is there, but is not a program that can be executed.
    NotExecutable,
    /// The version probe failed: not the program it should be.
    Probe,
    /// The turn cannot be asked of this version.
    Command,
    /// The process could not be started.
    Spawn,
    /// The state dir could not be prepared.
    State,
    /// No sandbox could be planned, or none be put around the run.
    Sandbox,
    /// Anything else.
    Other,
}

/// An agent that could not be run. Nothing was started.
#[derive(Debug)]
pub struct AgentError {
    kind: AgentErrorKind,
    agent: AgentId,
    what: String,
    source: Option<BoxError>,
}

impl AgentError {
    /// An error of this kind, of this agent, about this thing (a path, a command).
    pub fn new(kind: AgentErrorKind, agent: AgentId, what: impl Into<String>) -> Self {
        Self { kind, agent, what: what.into(), source: None }
    }

    /// Adds the cause.
    #[must_use]
    pub fn with_source(mut self, source: impl Into<BoxError>) -> Self {
        self.source = Some(source.into());
        self
    }

    /// What kind of trouble it is.
    #[must_use]
    pub const fn kind(&self) -> AgentErrorKind {
        self.kind
    }
}

impl fmt::Display for AgentError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (agent, what) = (&self.agent, &self.what);
        match self.kind {
            AgentErrorKind::NotFound => write!(f, "{agent}: no program {what}; install it or set its path"),
            AgentErrorKind::NotExecutable => write!(f, "{agent}: {what} cannot be executed"),
            AgentErrorKind::Probe => write!(f, "{agent}: {what} does not answer as {agent} does"),
            AgentErrorKind::Command => write!(f, "{agent}: the turn cannot be asked for: {what}"),
            AgentErrorKind::Spawn => write!(f, "{agent}: {what} could not be started"),
            AgentErrorKind::State => write!(f, "{agent}: the state dir {what} could not be prepared"),
            AgentErrorKind::Sandbox => write!(f, "{agent}: no sandbox can be put around {what}"),
            AgentErrorKind::Other => write!(f, "{agent}: {what}"),
        }
    }
}

impl std::error::Error for AgentError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.source.as_deref().map(|source| source as _)
    }
}

/// A turn that a dialect cannot put into a command.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CommandError {
    /// The prompt is larger than this version takes.
    #[error(
        "the prompt has {length} bytes, this version takes {limit}; put it into a file and name the file"
    )]
    PromptTooLarge {
        /// Its length in bytes.
        length: usize,
        /// The limit in bytes.
        limit: usize,
    },
    /// The id cannot be passed safely.
    #[error("{id:?} is not an id of this agent")]
    Id {
        /// The id.
        id: String,
    },
    /// This version cannot do it.
    #[error("version {version} cannot {what}")]
    Unsupported {
        /// The version.
        version: String,
        /// What was asked.
        what: &'static str,
    },
}

/// A folder that a run cannot work in.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FolderError {
    /// It is not there.
    #[error("the folder {path} does not exist")]
    Missing {
        /// The path given.
        path: PathBuf,
    },
    /// It is no folder.
    #[error("{path} is not a folder")]
    NotAFolder {
        /// The path given.
        path: PathBuf,
    },
    /// It cannot be entered or read.
    #[error("the folder {path} cannot be used")]
    Unusable {
        /// The path given.
        path: PathBuf,
        /// Why.
        source: BoxError,
    },
}

/// A request that cannot be run as it is. Nothing was started, nothing was written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RequestError {
    /// There is nothing to say.
    #[error("the prompt is empty")]
    EmptyPrompt,
    /// The prompt cannot reach the agent as it is.
    #[error("the prompt holds a NUL character at byte {at}")]
    PromptWithNul {
        /// Where.
        at: usize,
    },
    /// No mailbox.
    #[error("the request names no session; give it one with LlmRequest::session")]
    NoSession,
    /// No folder.
    #[error("the request names no folder; give it one with LlmRequest::cwd")]
    NoFolder,
    /// A name that is not valid.
    #[error("the session cannot be named like that")]
    Name(#[source] InvalidName),
    /// The model's name cannot be one argument.
    #[error("{model:?} is not a model's name")]
    Model {
        /// The text given.
        model: String,
    },
    /// Nobody registered that agent.
    #[error("no agent {agent} is registered; known are: {known}")]
    UnknownAgent {
        /// The agent asked for.
        agent: AgentId,
        /// Those registered.
        known: String,
    },
    /// The mailbox is one that is kept for copies of a moment.
    #[error("the mailbox {mailbox:?} is reserved")]
    Reserved {
        /// The mailbox.
        mailbox: String,
    },
    /// The seed is too large.
    #[error("the recipe's seed cannot be kept")]
    Seed(#[source] SeedError),
    /// A recipe was to be run again, and nobody gave one.
    #[error("{key} has no recipe to run again")]
    NoSeed {
        /// The key.
        key: SessionKey,
    },
    /// A recipe was to be run again, which goes against what else the request says.
    #[error("a recipe cannot be run again {against}")]
    Rerun {
        /// What it goes against, in words.
        against: &'static str,
    },
    /// The folder cannot be used.
    #[error("the run cannot work in its folder")]
    Folder(#[source] FolderError),
    /// The session to fork is of another agent.
    #[error("a session of {from} cannot be forked for {to}")]
    ForkAcrossAgents {
        /// The agent of the original.
        from: AgentId,
        /// The agent of the request.
        to: AgentId,
    },
}

/// Why a run has no result.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RunError {
    /// The request cannot be run as it is. Nothing was started.
    #[error("the request cannot be run")]
    Request(#[source] RequestError),
    /// Another runner has the key. No prompt was given to the agent; at the most, a session was asked for that was not there.
    #[error("another runner works on {key}{}; wait for it or try again later", by_text(.by.as_ref()))]
    Busy {
        /// The key.
        key: SessionKey,
        /// Who runs it, where the store can tell.
        by: Option<Holder>,
    },
    /// The caller cancelled before anything was started.
    #[error("the run was cancelled before anything was started")]
    Cancelled,
    /// The policy wanted a resume or nothing. Nothing was started.
    #[error("no resume, and a fresh run is not wanted: {why}")]
    Refused {
        /// Why there is no resume.
        why: Why,
    },
    /// The agent could not be run. Nothing was started; only where it vanished between a resume and its fallback,
    /// the failed resume was, and the audit log tells of it.
    #[error("the agent could not be run")]
    Agent(#[source] AgentError),
    /// The store failed where a run cannot do without it: the key's state dir, or the session to fork. Nothing
    /// was started.
    #[error("the store failed where the run cannot do without it")]
    Store(#[source] StoreError),
    /// The agent was run, and failed. What it did is in the report; the session is kept as the report says.
    #[error("{why}{}", said_text(run))]
    Failed {
        /// The reason.
        why: Why,
        /// Everything the run came to.
        run: Box<FailedRun>,
    },
}

impl RunError {
    /// The reason, where there is one.
    #[must_use]
    pub const fn why(&self) -> Option<Why> {
        match self {
            Self::Refused { why } | Self::Failed { why, .. } => Some(*why),
            Self::Cancelled => Some(Why::Cancelled),
            Self::Request(_) | Self::Busy { .. } | Self::Agent(_) | Self::Store(_) => None,
        }
    }
}

fn said_text(run: &FailedRun) -> String {
    let said = run.attempts.last().and_then(|attempt| attempt.said.as_deref());
    said.map(|said| format!("; the agent said: {}", crate::evidence::head(said.trim(), 300)))
        .unwrap_or_default()
}

/// An error with everything that caused it, on one line: `Display` of an error says one level only.
///
/// ```
/// use session_core::error::{Chain, RequestError, RunError};
///
/// let error = RunError::Request(RequestError::EmptyPrompt);
/// assert_eq!(Chain(&error).to_string(), "the request cannot be run: the prompt is empty");
/// ```
#[derive(Debug, Clone, Copy)]
pub struct Chain<'a>(pub &'a (dyn std::error::Error + 'static));

impl fmt::Display for Chain<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)?;
        let mut source = self.0.source();
        while let Some(cause) = source {
            write!(f, ": {cause}")?;
            source = cause.source();
        }
        Ok(())
    }
}

fn by_text(by: Option<&Holder>) -> String {
    by.map(|holder| format!(" ({holder})")).unwrap_or_default()
}

/// Who has a key that somebody else wants. Where nobody is named, he may have come in between and be gone again.
pub(crate) fn busy_text(key: &SessionKey, by: Option<&Holder>) -> String {
    match by {
        Some(by) => format!("{key} is in use by {by}"),
        None => format!("{key} is in use, or somebody wrote its record meanwhile"),
    }
}
