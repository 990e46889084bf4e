//! What of a conversation's state can be had back from its files.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::listing::{Notice, Title};
use super::page::Span;
use crate::{Timestamp, Usage};

/// A compaction.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Boundary {
    /// Where it lies; `None`: in a file that this one goes on from, or in a database.
    pub span: Option<Span>,
    /// When.
    pub time: Option<Timestamp>,
    /// Turns before it, from the beginning.
    pub turns_before: u64,
    /// The summary that stands for them.
    pub summary: Option<String>,
    /// Whether it says what was kept beside the summary. Where it does not, what the model sees is uncertain.
    pub anchored: bool,
}

/// A call of a tool that has no result: the turn was cut.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OpenCall {
    /// The call's id.
    pub id: String,
    /// The tool.
    pub name: String,
}

/// What can be had back of a session.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Restored {
    /// Its title.
    pub title: Option<Title>,
    /// Its compactions, oldest first.
    pub boundaries: Vec<Boundary>,
    /// Turns in the conversation.
    pub turns: u64,
    /// Messages that the model still sees; those before the last boundary are not among them.
    pub live_messages: u64,
    /// Messages on the way that is still followed, compactions bridged.
    pub all_messages: u64,
    /// Tokens, each reply once, without what a fork copied.
    pub usage: Usage,
    /// Tokens with what a fork copied.
    pub usage_with_copied: Usage,
    /// Tokens of its helpers.
    pub usage_of_sidechains: Usage,
    /// Cost in US dollars, where the agent noted it.
    pub cost_usd: Option<f64>,
    /// Calls without a result, at the end.
    pub open_calls: Vec<OpenCall>,
    /// The model of the last reply.
    pub model: Option<String>,
    /// The folder that it was last in.
    pub cwd: Option<PathBuf>,
    /// The git branch that it was last on.
    pub branch: Option<String>,
    /// What was left out or put right.
    pub notices: Vec<Notice>,
}
