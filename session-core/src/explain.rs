//! Why the last run of a key went as it did, in plain words and as data.

use std::fmt;

use serde::Serialize;

use crate::decide::Why;
use crate::{
    AttemptNote, AuditEntry, Closing, Former, NativeId, Preamble, SessionKey, SessionRecord, Timestamp,
};

/// What is known of a key: its session, its last run and what was tried in it, and the sessions before. `Display` says it
/// in plain words; `Serialize` gives the same to a program.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Explanation {
    /// The key.
    pub key: SessionKey,
    /// The label of the first run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The session in force.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session: Option<Bound>,
    /// The last event of a run in the audit log, refused and failed ones included.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_run: Option<AuditEntry>,
    /// What was done to the conversation after that run, without one, oldest first: rewinds, forks, relocations and the like.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub since: Vec<AuditEntry>,
    /// A text that goes before the next prompt.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub waiting: Option<Waiting>,
    /// The event of its end, where it was closed, or is being closed, and was not run since.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub closed: Option<AuditEntry>,
    /// A run that has begun and, as far as the record knows, has not ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub in_flight_since: Option<Timestamp>,
    /// A rewind that puts files back and, as far as the record knows, did not come to the conversation.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rewinding_since: Option<Timestamp>,
    /// Resumes of the session in a row that failed.
    pub failed_resumes: u32,
    /// The sessions before, newest first.
    pub past: Vec<Former>,
}

/// The session in force.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Bound {
    /// The agent's id.
    pub native_id: NativeId,
    /// When a run last continued it.
    pub used_at: Timestamp,
    /// The agent's version at that run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent_version: Option<String>,
    /// Why it will not be continued, as a code.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub poisoned: Option<String>,
}

/// A text that goes before the next prompt.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Waiting {
    /// What put it there, as a code: `compacted` or `handed_over`.
    pub why: String,
    /// The key whose conversation it tells of.
    pub from: SessionKey,
    /// The session that it tells of.
    pub session: NativeId,
    /// Since when.
    pub at: Timestamp,
    /// How long it is.
    pub bytes: usize,
}

impl Waiting {
    fn of(preamble: Preamble) -> Self {
        let Preamble { why, from, session, at, text, .. } = preamble;
        Self { why, from, session, at, bytes: text.len() }
    }
}

impl Explanation {
    /// From the record and the audit log of a key.
    #[must_use]
    pub fn of(key: SessionKey, record: Option<SessionRecord>, audit: Vec<AuditEntry>) -> Self {
        let is_run =
            |entry: &AuditEntry| entry.event.kind.starts_with("run_f") || entry.event.kind == "run_refused";
        let is_end = |entry: &AuditEntry| entry.event.kind.starts_with("mailbox_clos");
        let last = audit.iter().rev().find(|entry| is_run(entry) || is_end(entry));
        // A record that was made since tells of a run that has not ended: it is open again.
        let reopened = |end: &AuditEntry| {
            record
                .as_ref()
                .is_some_and(|record| end.event.kind == "mailbox_closed" || record.created_at > end.event.at)
        };
        let closed = last.filter(|entry| is_end(entry) && !reopened(entry)).cloned();
        let run = audit.iter().rposition(is_run);
        let is_since = |entry: &AuditEntry| done_since(&entry.event.kind).is_some();
        let since =
            audit.iter().skip(run.map_or(0, |at| at + 1)).filter(|entry| is_since(entry)).cloned().collect();
        let last_run = run.and_then(|at| audit.into_iter().nth(at));
        let Some(record) = record else {
            return Self {
                key,
                name: None,
                session: None,
                last_run,
                since,
                waiting: None,
                closed,
                in_flight_since: None,
                rewinding_since: None,
                failed_resumes: 0,
                past: Vec::new(),
            };
        };
        let mut past = record.past;
        past.reverse();
        Self {
            key,
            name: record.name,
            session: record.binding.map(|binding| Bound {
                native_id: binding.native_id,
                used_at: binding.used_at,
                agent_version: binding.agent_version,
                poisoned: binding.poisoned,
            }),
            last_run,
            since,
            waiting: record.preamble.map(Waiting::of),
            closed,
            in_flight_since: record.in_flight.map(|in_flight| in_flight.since),
            rewinding_since: record.rewinding.map(|rewinding| rewinding.since),
            failed_resumes: record.failed_resumes,
            past,
        }
    }
}

impl fmt::Display for Explanation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.key)?;
        if let Some(name) = &self.name {
            write!(f, " ({name})")?;
        }
        match &self.session {
            None => write!(f, "\nNo session is bound; the next run starts a new one.")?,
            Some(bound) => {
                write!(f, "\nThe session in force is {}, last used {}", bound.native_id, bound.used_at)?;
                if let Some(version) = &bound.agent_version {
                    write!(f, " by version {version}")?;
                }
                write!(f, ".")?;
                if let Some(code) = &bound.poisoned {
                    write!(f, " It will not be continued: {}.", worded(code))?;
                }
            }
        }
        if let Some(AuditEntry { event, .. }) = &self.closed {
            let word = if event.kind == "mailbox_closed" { "was closed" } else { "began to be closed" };
            let why = event.detail.as_deref().map_or_else(|| "no reason".to_owned(), Closing::worded);
            write!(f, "\nIt {word} {}: {why}.", event.at)?;
            if let Some(candidate) = &event.candidate {
                write!(f, " The session {candidate} had just begun.")?;
            }
        }
        if let Some(since) = self.in_flight_since {
            write!(
                f,
                "\nA run has been under way since {since}, or its runner died; the next run will look."
            )?;
        }
        if let Some(since) = self.rewinding_since {
            write!(
                f,
                "\nA rewind has been under way since {since}, or was cut off before the conversation went back; the next run will say so."
            )?;
        }
        match &self.last_run {
            None => write!(f, "\nNo run is in the log.")?,
            Some(entry) => {
                let event = &entry.event;
                write!(f, "\nThe last run, {}, ", event.at)?;
                match (event.kind.as_str(), event.route.as_deref()) {
                    ("run_refused", _) => write!(f, "was refused")?,
                    ("run_failed", _) => write!(f, "failed")?,
                    (_, Some("resumed")) => write!(f, "continued the session")?,
                    (_, Some("forked")) => write!(f, "began as a copy of another session")?,
                    (_, Some("fell_back")) => write!(f, "fell back to a new session")?,
                    _ => write!(f, "started a new session")?,
                }
                if let Some(code) = &event.why {
                    write!(f, ": {}", worded(code))?;
                }
                write!(f, ".")?;
                for (at, attempt) in event.attempts.iter().enumerate() {
                    write!(f, "\n  {}. {}", at + 1, AttemptWords(attempt))?;
                }
                if let Some(detail) = &event.detail {
                    write!(f, "\n  {detail}")?;
                }
                if event.before != event.after {
                    let (before, after) = (shown(event.before.as_ref()), shown(event.after.as_ref()));
                    write!(f, "\n  In force before: {before}; after: {after}.")?;
                }
            }
        }
        for AuditEntry { event, .. } in &self.since {
            write!(f, "\nAfter that, {}: {}", event.at, done_since(&event.kind).unwrap_or(&event.kind))?;
            match &event.detail {
                Some(detail) => write!(f, ", {detail}.")?,
                None => write!(f, ".")?,
            }
        }
        if let Some(Waiting { why, from, session, at, bytes }) = &self.waiting {
            let why = why.replace('_', " ");
            write!(
                f,
                "\nThe next prompt goes with {bytes} bytes of text before it, {why} {at} from {session} of {from}."
            )?;
        }
        if self.failed_resumes > 0 {
            write!(f, "\nFailed resumes in a row, up to the last run: {}.", self.failed_resumes)?;
        }
        for former in &self.past {
            let again = if former.rejoinable { "may be joined again" } else { "is gone" };
            write!(
                f,
                "\nBefore: {}, left {} ({}); it {again}.",
                former.native_id,
                former.at,
                worded(&former.why)
            )?;
        }
        Ok(())
    }
}

/// In words, what is done to a conversation without a run; `None`: the event is another.
fn done_since(kind: &str) -> Option<&'static str> {
    Some(match kind {
        "rewound" => "it went back",
        "undone" => "a rewind was undone",
        "rewind_unended" => "a rewind was cut off",
        "rewind_recovered" => "a rewind that was cut off was finished",
        "cleared" => "a new conversation was begun",
        "rejoined" => "a session of before was put in force again",
        "forked" => "a fork was made",
        "compacted" => "it was compacted",
        "handed_over" => "it was handed over",
        "session_relocated" => "its session was relocated",
        _ => return None,
    })
}

/// A reason in words with its code; a code of a later version as it is.
fn worded(code: &str) -> String {
    Why::from_code(code).map_or_else(|| code.replace('_', " "), |why| format!("{why} ({code})"))
}

fn shown(id: Option<&NativeId>) -> String {
    id.map_or_else(|| "none".to_owned(), ToString::to_string)
}

struct AttemptWords<'a>(&'a AttemptNote);

impl fmt::Display for AttemptWords<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let note = self.0;
        write!(f, "{}", note.attempt)?;
        if let Some(asked) = &note.asked {
            let joint = if matches!(note.attempt.as_str(), "resume" | "fork") { "of" } else { "as" };
            write!(f, " {joint} {asked}")?;
        }
        write!(f, ": {}", note.verdict.replace('_', " "))?;
        match note.activity.as_str() {
            "none" => write!(f, ", before the model was called")?,
            "acted" => write!(f, ", after a tool had run")?,
            _ => {}
        }
        if let Some(by) = &note.ended_by {
            write!(f, ", ended by {}", by.replace('_', " "))?;
        }
        if let Some(said) = &note.said {
            write!(f, "; the agent said: {}", crate::evidence::head(said.trim(), 300))?;
        }
        Ok(())
    }
}
