//! What the store remembers for a key.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::{
    CheckpointId, Counters, Folder, KeptSeed, NativeId, PathText, Preamble, RecipeSeed, RunId, SessionKey,
    Timestamp, Totals,
};

/// How sure a binding is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Phase {
    /// About to start, or an id was seen; it is not known that the agent kept a turn.
    Pending,
    /// The agent kept a turn.
    Confirmed,
    /// Not to be continued.
    Closed,
}

/// One native session and what is known of it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Binding {
    /// The agent's id.
    pub native_id: NativeId,
    /// How sure it is.
    pub phase: Phase,
    /// The folder where the session began.
    pub began_in: Folder,
    /// The agent's own place that it lies in, where it is in no state dir and that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub home: Option<PathText>,
    /// The folder that it was relocated to since.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lives_in: Option<Folder>,
    /// The agent's version at its last run.
    #[serde(default)]
    pub agent_version: Option<String>,
    /// When it began.
    pub created_at: Timestamp,
    /// When a run last continued it.
    pub used_at: Timestamp,
    /// The agent's running figures at the end of the last run.
    #[serde(default, skip_serializing_if = "Counters::is_empty")]
    pub counters: Counters,
    /// The session that it is a copy of, under whatever key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub forked_from: Option<NativeId>,
    /// A run found that it cannot be continued; the reason's code.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub poisoned: Option<String>,
    /// Fields of later versions.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

impl Binding {
    /// The folder that it is continued in.
    #[must_use]
    pub const fn folder(&self) -> &Folder {
        match &self.lives_in {
            Some(folder) => folder,
            None => &self.began_in,
        }
    }
}

/// A session that was started and is not yet known to hold a turn.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Candidate {
    /// The session.
    pub binding: Binding,
    /// Whether it takes the place of the binding in force once it holds a turn; otherwise it stands beside it.
    pub replaces: bool,
    /// Why the binding in force was not resumed, as a code.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
    /// The session that was to be continued, where the agent named this one in its place.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instead_of: Option<NativeId>,
    /// Fields of later versions.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

/// A session that was bound, or stood beside the binding, before.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Former {
    /// The agent's id.
    pub native_id: NativeId,
    /// Why it is no longer in force, as a code; for a new id of the same conversation, `id_changed`; by a wish of the caller,
    /// `rewound`, `undone`, `cleared` or `set_aside`.
    pub why: String,
    /// When that was.
    pub at: Timestamp,
    /// When a run last continued it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub used_at: Option<Timestamp>,
    /// Whether the agent may still have it.
    pub rejoinable: bool,
    /// Resumes of it in a row that failed.
    #[serde(default)]
    pub failed_resumes: u32,
    /// Where it began.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub began_in: Option<Folder>,
    /// The folder that it was relocated to since.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lives_in: Option<Folder>,
    /// The agent's own place that it lies in, where it is in no state dir and that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub home: Option<PathText>,
    /// The agent's running figures at the end of its last run.
    #[serde(default, skip_serializing_if = "Counters::is_empty")]
    pub counters: Counters,
    /// When it began, where that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub created_at: Option<Timestamp>,
    /// The session that it is a copy of, under whatever key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub forked_from: Option<NativeId>,
    /// A run found that it cannot be continued; the reason's code. It stays so where it is in force again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub poisoned: Option<String>,
    /// Fields of later versions.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

impl Former {
    /// The folder that it is continued in, where that is known.
    #[must_use]
    pub const fn folder(&self) -> Option<&Folder> {
        match &self.lives_in {
            Some(folder) => Some(folder),
            None => self.began_in.as_ref(),
        }
    }
}

/// A run that has begun and has not ended, as far as the record knows.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct InFlight {
    /// The run; its processes carry this mark.
    pub run: RunId,
    /// When it began.
    pub since: Timestamp,
    /// Fields of later versions.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

/// A rewind whose conversation goes back after its files, from before the first file until both went back. What is found of one
/// was cut off in between: some files, or all, are as before the prompts, and the conversation is as it was.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rewinding {
    /// The rewind.
    pub step: RunId,
    /// When it began.
    pub since: Timestamp,
    /// The checkpoint before it: to go back to it undoes what it did.
    pub undo: CheckpointId,
    /// Fields of later versions.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

/// The agent's running figures when a run began.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Mark {
    /// The run.
    pub run: RunId,
    /// The figures.
    pub counters: Counters,
    /// Fields of later versions.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

/// How the last run went.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LastRun {
    /// The run.
    pub run: RunId,
    /// When it ended.
    pub at: Timestamp,
    /// `resumed`, `fresh` or `fell_back`.
    pub route: String,
    /// The reason's code.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
    /// Whether it had a result.
    pub ok: bool,
    /// Fields of later versions.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

/// The record of a key.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SessionRecord {
    /// The key, as a check against misplaced documents.
    pub key: SessionKey,
    /// The label of the first run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The binding in force.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub binding: Option<Binding>,
    /// A session that may become the binding.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub candidate: Option<Candidate>,
    /// The sessions before, oldest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub past: Vec<Former>,
    /// The running figures that runs began with, oldest first, for a branch that ends before one of them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub marks: Vec<Mark>,
    /// Resumes of the binding in a row that failed.
    #[serde(default)]
    pub failed_resumes: u32,
    /// What all runs of the key came to.
    #[serde(default)]
    pub totals: Totals,
    /// A run that has not ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub in_flight: Option<InFlight>,
    /// A rewind that is at its files, or was cut off before the conversation went back, too.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rewinding: Option<Rewinding>,
    /// Rewinds that came to their end and may have no checkpoint there that says so, oldest first: their prompts are taken back.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub went_back: Vec<RunId>,
    /// How the last run went.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_run: Option<LastRun>,
    /// A text that waits to go before the next prompt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub preamble: Option<Preamble>,
    /// What the conversation was begun from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seed: Option<KeptSeed>,
    /// When the record was first written.
    pub created_at: Timestamp,
    /// When it was last written.
    pub updated_at: Timestamp,
    /// Fields of later versions.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

impl SessionRecord {
    /// How many former sessions are kept, and how many marks and rewinds.
    pub const PAST_LIMIT: usize = 64;

    /// An empty record.
    #[must_use]
    pub fn new(key: SessionKey, now: Timestamp) -> Self {
        Self {
            key,
            name: None,
            binding: None,
            candidate: None,
            past: Vec::new(),
            marks: Vec::new(),
            failed_resumes: 0,
            totals: Totals::default(),
            in_flight: None,
            rewinding: None,
            went_back: Vec::new(),
            last_run: None,
            preamble: None,
            seed: None,
            created_at: now,
            updated_at: now,
            extra: Map::new(),
        }
    }

    /// The last use of the key that the record proves.
    #[must_use]
    pub fn last_use(&self) -> Timestamp {
        let used = self.binding.as_ref().map(|binding| binding.used_at);
        let (ended, began) =
            (self.last_run.as_ref().map(|run| run.at), self.in_flight.as_ref().map(|run| run.since));
        [used, ended, began].into_iter().flatten().fold(self.updated_at, Timestamp::max)
    }

    /// Notes the running figures that a run begins with.
    pub(crate) fn mark(&mut self, run: RunId, counters: Counters) {
        if !counters.is_empty() && self.marks.last().is_none_or(|last| last.run != run) {
            self.marks.push(Mark { run, counters, extra: Map::new() });
            let excess = self.marks.len().saturating_sub(Self::PAST_LIMIT);
            self.marks.drain(..excess);
        }
    }

    /// The running figures that a run began with, where that is known.
    pub(crate) fn counters_before(&self, run: RunId) -> Option<Counters> {
        self.marks.iter().rev().find(|mark| mark.run == run).map(|mark| mark.counters)
    }

    /// The recipe that the conversation was begun from, where this version can read it.
    #[must_use]
    pub fn recipe(&self) -> Option<&RecipeSeed> {
        match &self.seed {
            Some(KeptSeed::Known(seed)) => Some(seed),
            Some(KeptSeed::Later(_)) | None => None,
        }
    }

    /// Moves a session to the past.
    pub fn retire(&mut self, binding: &Binding, why: &str, at: Timestamp, rejoinable: bool) {
        self.past.push(Former {
            native_id: binding.native_id.clone(),
            why: why.to_owned(),
            at,
            used_at: Some(binding.used_at),
            rejoinable,
            failed_resumes: 0,
            began_in: Some(binding.began_in.clone()),
            lives_in: binding.lives_in.clone(),
            home: binding.home.clone(),
            counters: binding.counters,
            created_at: Some(binding.created_at),
            forked_from: binding.forked_from.clone(),
            poisoned: binding.poisoned.clone(),
            extra: Map::new(),
        });
        let excess = self.past.len().saturating_sub(Self::PAST_LIMIT);
        self.past.drain(..excess);
    }
}
