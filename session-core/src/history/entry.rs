//! One record of a transcript, in full.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::listing::TitleSource;
use crate::{Timestamp, Usage};

/// A part of a message.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Block {
    /// Words.
    Text(String),
    /// What the model thought.
    Thinking(String),
    /// A tool that the model called.
    ToolCall {
        /// The call's id.
        id: String,
        /// The tool.
        name: String,
        /// What it was called with.
        input: Value,
    },
    /// What a tool returned.
    ToolResult {
        /// The call's id.
        id: String,
        /// Its words.
        text: String,
        /// Whether it failed.
        failed: bool,
    },
    /// An image or a document, without its bytes.
    Attachment {
        /// What kind, as the agent says.
        media: String,
    },
    /// Anything else, as it was written.
    Other(Value),
}

/// What a record is.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum EntryKind {
    /// A prompt that somebody typed.
    Prompt(Vec<Block>),
    /// A reply of the agent, or a part of one.
    Reply(Vec<Block>),
    /// What tools returned.
    Returned(Vec<Block>),
    /// Where the conversation was compacted.
    Boundary,
    /// The summary that stands for what was compacted.
    CompactSummary(String),
    /// A title.
    Title {
        /// Who gave it.
        source: TitleSource,
        /// The words.
        text: String,
    },
    /// A note of the agent that is known and is no part of the talk; by its name in the format.
    Note(String),
    /// A record of a kind that nobody here knows, by its name, as it was written.
    Unknown {
        /// What the format calls it.
        name: String,
        /// All of it.
        record: Value,
    },
}

/// One record of a transcript.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Entry {
    /// What it is.
    pub kind: EntryKind,
    /// The agent's own id of the record.
    pub id: Option<String>,
    /// The record that it follows.
    pub parent: Option<String>,
    /// When, in UTC; `None` where it is not told, or is no time.
    pub time: Option<Timestamp>,
    /// The reply that it is a part of.
    pub reply: Option<String>,
    /// The model.
    pub model: Option<String>,
    /// Tokens of the reply, as far as known in this record.
    pub usage: Option<Usage>,
    /// Whether it belongs to a helper.
    pub sidechain: bool,
    /// Whether the agent wrote it and does not show it.
    pub meta: bool,
    /// Whether it was typed while the agent was at work: it belongs to the turn that was going on.
    pub queued: bool,
}

impl Entry {
    /// An entry of which nothing else is known.
    #[must_use]
    pub const fn new(kind: EntryKind) -> Self {
        Self {
            kind,
            id: None,
            parent: None,
            time: None,
            reply: None,
            model: None,
            usage: None,
            sidechain: false,
            meta: false,
            queued: false,
        }
    }

    /// Whether a turn of the main conversation begins with it.
    #[must_use]
    pub const fn begins_turn(&self) -> bool {
        matches!(self.kind, EntryKind::Prompt(_)) && !self.sidechain && !self.meta && !self.queued
    }
}
