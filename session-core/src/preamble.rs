//! A text that waits in a record to go before the next prompt.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::{NativeId, SessionKey, Timestamp};

/// A session that was given a preamble, as far as it got.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct GivenTo {
    /// The session.
    pub session: NativeId,
    /// Prompts in it before that one; `None`: nobody could tell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turns_before: Option<u64>,
}

/// A text that goes before the prompt of the next run of a key, until a conversation that is in force holds it.
///
/// It is in the record before the run, and each session that gets it is noted before the agent starts, or as soon as the agent
/// names it. After a crash, the next run looks whether that session has grown since: if so it holds the text already, else it
/// gets it again. So it is neither lost nor told twice; only where nobody can look at session files, a conversation that
/// went on may be told twice.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Preamble {
    /// The text.
    pub text: String,
    /// What put it here, as a code: `compacted` or `handed_over`.
    pub why: String,
    /// The key whose conversation it tells of.
    pub from: SessionKey,
    /// The session that it tells of.
    pub session: NativeId,
    /// When.
    pub at: Timestamp,
    /// The sessions that were given it and are not known to hold it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub given: Vec<GivenTo>,
    /// Fields of later versions.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

impl Preamble {
    /// So many sessions are noted.
    pub(crate) const GIVEN_LIMIT: usize = 8;

    /// Whether it is this text, whoever was given it since.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        (&self.from, &self.session, self.at, &self.text)
            == (&other.from, &other.session, other.at, &other.text)
    }

    /// What is noted of a session.
    pub(crate) fn given_to(&self, session: &NativeId) -> Option<&GivenTo> {
        self.given.iter().find(|given| given.session == *session)
    }

    /// Notes that a session gets it.
    pub(crate) fn give(&mut self, session: &NativeId, turns_before: Option<u64>) {
        self.given.retain(|given| given.session != *session);
        self.given.push(GivenTo { session: session.clone(), turns_before });
        let excess = self.given.len().saturating_sub(Self::GIVEN_LIMIT);
        self.given.drain(..excess);
    }

    /// The prompt with the text before it.
    pub(crate) fn before(&self, prompt: &str) -> String {
        format!("{}\n\n{prompt}", self.text)
    }
}
