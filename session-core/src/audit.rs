//! The audit log: what was decided, and why, in events that only grow.

use serde::{Deserialize, Serialize};

use crate::{NativeId, RunId, Timestamp};

/// The number of an event in the log of its key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct AuditSeq(pub u64);

/// One attempt of a run, as the log keeps it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AttemptNote {
    /// `resume`, `fork`, `fresh` or `fallback`.
    pub attempt: String,
    /// The native id asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub asked: Option<NativeId>,
    /// The native id that the agent named.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seen: Option<NativeId>,
    /// The verdict, in snake case.
    pub verdict: String,
    /// How far it got: `none`, `model_called`, `acted`.
    pub activity: String,
    /// Who ended it, where it did not end by itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_by: Option<String>,
    /// The agent's own words about a failure, word for word, bounded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub said: Option<String>,
}

/// One event. Codes are text, so that a log written by a newer version can still be read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AuditEvent {
    /// When.
    pub at: Timestamp,
    /// In which run, or rewind.
    pub run: RunId,
    /// What: `run_finished`, `run_failed`, `run_refused`, `record_set_aside`, `run_reclaimed`,
    /// `mailbox_closing`, `mailbox_closed`, `session_relocated`, `rewound`, `undone`, `rewind_recovered`, `rewind_unended`, `cleared`,
    /// `rejoined`, `forked`, `summarised`, `compacted`, `handed_over`.
    pub kind: String,
    /// `resumed`, `fresh` or `fell_back`, for runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub route: Option<String>,
    /// The reason's code.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
    /// The binding in force before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<NativeId>,
    /// The binding in force after.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<NativeId>,
    /// A session that was begun and is not known to hold a turn, at the end of a mailbox.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub candidate: Option<NativeId>,
    /// What was tried, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub attempts: Vec<AttemptNote>,
    /// The agent's version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent_version: Option<String>,
    /// More, in words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
}

impl AuditEvent {
    /// An event with nothing but its kind.
    #[must_use]
    pub fn new(at: Timestamp, run: RunId, kind: impl Into<String>) -> Self {
        Self {
            at,
            run,
            kind: kind.into(),
            route: None,
            why: None,
            before: None,
            after: None,
            candidate: None,
            attempts: Vec::new(),
            agent_version: None,
            detail: None,
        }
    }
}

/// An event and its number.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AuditEntry {
    /// The number.
    pub seq: AuditSeq,
    /// The event.
    #[serde(flatten)]
    pub event: AuditEvent,
}
