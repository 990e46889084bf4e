//! How the command ends: exit codes, and errors with the code that they end it with.

use std::error::Error;
use std::process::ExitCode;

use rejoin::error::{Chain, HistoryError};
use serde::{Serialize, Serializer};

/// The exit codes. The README has the same table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Exit {
    /// It was done.
    Ok,
    /// It failed.
    Failed,
    /// It was called wrongly.
    Usage,
    /// There is no such session, mailbox or key.
    NotFound,
    /// More than one session is meant.
    Ambiguous,
    /// The session belongs to another project, and nobody said yes.
    OtherProject,
    /// Somebody else works on it.
    Busy,
    /// No resume, and a fresh run was not wanted.
    Refused,
    /// The agent is not installed, or cannot be run.
    NoAgent,
    /// It was ended from outside, or the picker was left without a choice.
    Cancelled,
    /// A signal with this number ended it.
    Signal(u8),
}

impl Exit {
    pub(crate) const fn number(self) -> u8 {
        match self {
            Self::Ok => 0,
            Self::Failed => 1,
            Self::Usage => 2,
            Self::NotFound => 3,
            Self::Ambiguous => 4,
            Self::OtherProject => 5,
            Self::Busy => 6,
            Self::Refused => 7,
            Self::NoAgent => 8,
            Self::Cancelled => 130,
            // As shells say it.
            Self::Signal(number) => 128_u8.saturating_add(number),
        }
    }
}

impl Serialize for Exit {
    /// Its name; whichever signal it was, the number tells.
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(match self {
            Self::Ok => "ok",
            Self::Failed => "failed",
            Self::Usage => "usage",
            Self::NotFound => "not_found",
            Self::Ambiguous => "ambiguous",
            Self::OtherProject => "other_project",
            Self::Busy => "busy",
            Self::Refused => "refused",
            Self::NoAgent => "no_agent",
            Self::Cancelled | Self::Signal(_) => "cancelled",
        })
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit.number())
    }
}

/// Why the command did not do what was asked.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) exit: Exit,
    /// What is said about it; nothing where there is nobody to say it to.
    pub(crate) message: String,
    /// What could have been meant, as ids.
    pub(crate) candidates: Vec<String>,
    /// Whether the document of the command was written already, and tells of the failure.
    pub(crate) told: bool,
}

impl Failure {
    pub(crate) fn new(exit: Exit, message: impl Into<String>) -> Self {
        Self { exit, message: message.into(), candidates: Vec::new(), told: false }
    }

    /// An error with everything that caused it.
    pub(crate) fn caused(exit: Exit, error: &(dyn Error + 'static)) -> Self {
        Self::new(exit, Chain(error).to_string())
    }

    pub(crate) fn failed(error: &(dyn Error + 'static)) -> Self {
        Self::caused(Exit::Failed, error)
    }

    /// A session that could not be found, read or relocated.
    pub(crate) fn history(error: &HistoryError) -> Self {
        let exit = match error {
            HistoryError::Agent(_) => Exit::NoAgent,
            HistoryError::Folder(_) => Exit::NotFound,
            HistoryError::Busy { .. } => Exit::Busy,
            _ => Exit::Failed,
        };
        Self::caused(exit, error)
    }

    pub(crate) fn usage(message: impl Into<String>) -> Self {
        Self::new(Exit::Usage, message)
    }

    /// The reader of the output went away: that is its good right.
    pub(crate) const fn gone() -> Self {
        Self { exit: Exit::Ok, message: String::new(), candidates: Vec::new(), told: true }
    }

    pub(crate) fn with_candidates(mut self, candidates: Vec<String>) -> Self {
        self.candidates = candidates;
        self
    }

    /// The failure is part of what was written.
    pub(crate) fn told(self) -> Self {
        self.told_in(true)
    }

    /// The failure is part of the document, where one was written.
    pub(crate) fn told_in(mut self, json: bool) -> Self {
        self.told = json;
        self
    }
}
