//! A second conversation beside the first one, and a new one in its place.

use std::path::PathBuf;

use crate::{AuditSeq, CheckpointId, NativeId, SessionKey, SessionName, Warning};

/// A wish for a second conversation that begins as a copy of the first one.
#[derive(Debug, Clone, PartialEq, Eq)]
#[must_use]
pub struct ForkRequest {
    pub(crate) from: SessionKey,
    pub(crate) to: Option<SessionKey>,
    pub(crate) at: Option<CheckpointId>,
    pub(crate) cwd: PathBuf,
    pub(crate) name: Option<SessionName>,
    pub(crate) enter_project: bool,
}

impl ForkRequest {
    /// Forks the whole conversation of a key into another key of the same agent, to be continued in this folder.
    pub fn new(from: SessionKey, to: SessionKey, cwd: impl Into<PathBuf>) -> Self {
        Self { from, to: Some(to), at: None, cwd: cwd.into(), name: None, enter_project: false }
    }

    /// Forks the whole conversation of a key into a session that no key has, in the agent's own place: for somebody who goes on
    /// with it by the agent itself. No record holds it, no close or sweep removes it; lists tell where it comes from by what its
    /// own file names. Of opencode it is [unsupported](crate::error::RewindError::Unsupported): in its own place its program
    /// alone makes sessions.
    pub fn without_key(from: SessionKey, cwd: impl Into<PathBuf>) -> Self {
        Self { from, to: None, at: None, cwd: cwd.into(), name: None, enter_project: false }
    }

    /// Keeps no more than there was at a checkpoint of the original's key.
    pub const fn at(mut self, checkpoint: CheckpointId) -> Self {
        self.at = Some(checkpoint);
        self
    }

    /// Says yes to continuing the conversation in a folder of another project.
    pub const fn enter_other_project(mut self, yes: bool) -> Self {
        self.enter_project = yes;
        self
    }

    /// Names the new conversation for people, in the record of its key. Without a key, nothing keeps the name.
    pub fn named(mut self, name: SessionName) -> Self {
        self.name = Some(name);
        self
    }
}

/// A fork that was made.
#[derive(Debug, Clone, PartialEq, Eq)]
#[must_use]
#[non_exhaustive]
pub struct Forked {
    /// The session of the new key, or of none.
    pub session: NativeId,
    /// The original, which stays in force in its own key.
    pub of: NativeId,
    /// Prompts in both.
    pub kept: u64,
    /// The number of the event in the new key's audit log; where it has none, in that of the original's key.
    pub audit_seq: Option<AuditSeq>,
    /// What did not spoil it.
    pub warnings: Vec<Warning>,
}

/// A conversation that was put aside for a new one.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Cleared {
    /// The session that was in force; it can be rejoined. `None`: there was none; a summary of one before that still waited for
    /// the next run is dropped.
    pub session: Option<NativeId>,
    /// The number of the event in the audit log.
    pub audit_seq: Option<AuditSeq>,
    /// What did not spoil it.
    pub warnings: Vec<Warning>,
}

/// A conversation of before that is in force again.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Rejoined {
    /// The session.
    pub session: NativeId,
    /// The one that was in force; it can be rejoined.
    pub set_aside: Option<NativeId>,
    /// The number of the event in the audit log.
    pub audit_seq: Option<AuditSeq>,
    /// What did not spoil it.
    pub warnings: Vec<Warning>,
}
