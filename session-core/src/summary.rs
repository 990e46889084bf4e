//! Summaries of a conversation: what is asked for, and what comes of it.

mod digest;
mod text;

use std::path::PathBuf;
use std::time::Duration;

use serde::Serialize;

use crate::decide::Why;
use crate::error::SummaryError;
use crate::{AuditSeq, Cancel, Limits, NativeId, SessionKey, Usage, Warning};

pub(crate) use digest::{Digest, PAGE_TURNS};
pub(crate) use text::{Rendered, Told, framed, tell};

/// Which turns of a conversation. A turn is named by the number of its prompt, from 1, as pages of the transcript show them.
/// Where a [`Spot`](crate::Spot) is known, its number of turns is that of the last one before it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum TurnSpan {
    /// All of them.
    #[default]
    Whole,
    /// Those from the first to this one.
    UpTo(u64),
    /// Those from this one to the last.
    From(u64),
}

impl TurnSpan {
    /// The first and the last of them, of so many. `None`: there is none of these.
    #[must_use]
    pub const fn of(self, turns: u64) -> Option<(u64, u64)> {
        match self {
            Self::Whole if turns > 0 => Some((1, turns)),
            Self::UpTo(last) if last > 0 && last <= turns => Some((1, last)),
            Self::From(first) if first > 0 && first <= turns => Some((first, turns)),
            Self::Whole | Self::UpTo(_) | Self::From(_) => None,
        }
    }
}

/// Who makes a summary.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum SummaryBy {
    /// Nobody is asked: it is put together from the transcript, the same every time, and costs no token.
    #[default]
    Text,
    /// The agent is asked in a copy of the conversation, which is removed afterwards. Where that cannot be had, it is made as
    /// [`Text`](Self::Text), and says why.
    ///
    /// The copy lies in a state dir of its own, so that no list shows it, and the conversation itself is not touched, whatever
    /// comes of it. The agent works in the folder of the request, and is told to use no tools. Where its version takes a list of
    /// tools for one run, it is offered none of its own; those of servers that it is set up with nobody can keep from it. Both,
    /// and whether a tool ran, is told in [`SummarySource::Agent`].
    Agent,
}

/// What a summary is to be like.
#[derive(Debug, Clone)]
#[must_use]
pub struct SummaryRequest {
    pub(crate) key: SessionKey,
    pub(crate) cwd: Option<PathBuf>,
    pub(crate) span: TurnSpan,
    pub(crate) bytes: usize,
    pub(crate) steering: Option<String>,
    pub(crate) by: SummaryBy,
    pub(crate) model: Option<String>,
    pub(crate) limits: Limits,
    pub(crate) cancel: Cancel,
}

impl SummaryRequest {
    /// The smallest budget, in bytes: below, a frame that says what it is leaves too little room.
    pub const MIN_BYTES: usize = 2048;
    /// The largest budget, in bytes: the text is kept in the record until a run has passed it on.
    pub const MAX_BYTES: usize = 256 * 1024;
    /// The budget where none is set.
    pub const DEFAULT_BYTES: usize = 16 * 1024;

    /// A summary of all of the conversation in force for a key, put together from its transcript, in at most
    /// [`DEFAULT_BYTES`](Self::DEFAULT_BYTES).
    pub fn new(key: SessionKey) -> Self {
        Self {
            key,
            cwd: None,
            span: TurnSpan::Whole,
            bytes: Self::DEFAULT_BYTES,
            steering: None,
            by: SummaryBy::Text,
            model: None,
            limits: Limits::default().idle(Duration::from_secs(5 * 60)).total(Duration::from_secs(10 * 60)),
            cancel: Cancel::new(),
        }
    }

    /// The folder that the agent is asked in. Without one, the folder of the conversation.
    pub fn cwd(mut self, cwd: impl Into<PathBuf>) -> Self {
        self.cwd = Some(cwd.into());
        self
    }

    /// Which turns.
    pub const fn span(mut self, span: TurnSpan) -> Self {
        self.span = span;
        self
    }

    /// The budget in bytes for all of the text, its frame included: between [`MIN_BYTES`](Self::MIN_BYTES) and
    /// [`MAX_BYTES`](Self::MAX_BYTES).
    pub const fn bytes(mut self, bytes: usize) -> Self {
        self.bytes = bytes;
        self
    }

    /// What matters to whoever will read it, in words: at most a quarter of the budget. An agent is told to heed it; a text
    /// that is put together carries it as a note.
    pub fn steering(mut self, words: impl Into<String>) -> Self {
        self.steering = Some(words.into());
        self
    }

    /// Who makes it.
    pub const fn by(mut self, by: SummaryBy) -> Self {
        self.by = by;
        self
    }

    /// The model that the agent is asked with. Without one, the agent chooses.
    pub fn model(mut self, model: impl Into<String>) -> Self {
        self.model = Some(model.into());
        self
    }

    /// The time limits of asking the agent. Default: 2 minutes to its first output, 5 between two, 10 in all.
    pub fn limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// The handle that ends asking the agent in order.
    pub fn cancel(mut self, cancel: Cancel) -> Self {
        self.cancel = cancel;
        self
    }

    pub(crate) fn check(&self) -> Result<(), SummaryError> {
        let (least, most) = (Self::MIN_BYTES, Self::MAX_BYTES);
        if !(least..=most).contains(&self.bytes) {
            return Err(SummaryError::Budget { bytes: self.bytes, least, most });
        }
        let (bytes, limit) = (self.steering.as_ref().map_or(0, String::len), self.bytes / 4);
        if bytes > limit {
            return Err(SummaryError::Steering { bytes, limit });
        }
        Ok(())
    }
}

/// Who made a summary.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum SummarySource {
    /// It was put together from the transcript, as asked.
    Text,
    /// The agent, in a copy of the conversation.
    Agent {
        /// Tokens that it cost.
        usage: Usage,
        /// What it cost in US dollars, as far as the agent says it.
        cost_usd: Option<f64>,
        /// Whether it was offered no tools of its own; else it was only told to use none.
        without_tools: bool,
        /// Whether a tool ran in it, or may have.
        used_tools: bool,
    },
    /// It was put together from the transcript, as the agent could not be asked.
    TextInstead(NotByAgent),
}

/// Why no agent made the summary.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, thiserror::Error)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum NotByAgent {
    /// The store has no state dirs: the copy would show up in lists.
    #[error("the store has no place for a copy that no list shows")]
    NoStateDir,
    /// Nobody here can make a copy that ends where it should.
    #[error("no copy could be made: {0}")]
    NoCopy(String),
    /// Another one is being made of the conversation, or somebody works on it.
    #[error("another runner works on it")]
    Busy,
    /// The copy could not be continued, or the agent failed.
    #[error("the agent was asked, and failed: {0}")]
    Failed(Why),
    /// The agent, or the store, could not be asked.
    #[error("the agent could not be asked: {0}")]
    NotAsked(String),
    /// It answered nothing.
    #[error("the agent answered nothing")]
    Silent,
}

/// A bounded text that tells of a conversation: delimited, labelled as a record and not as an instruction, and with a word on
/// what it leaves out.
#[derive(Debug, Clone, PartialEq)]
#[must_use]
#[non_exhaustive]
pub struct Summary {
    /// The text. Nothing in it can close its delimiter.
    pub text: String,
    /// Who made it.
    pub source: SummarySource,
    /// The key whose conversation it tells of.
    pub key: SessionKey,
    /// The session that it tells of.
    pub session: NativeId,
    /// Turns in the conversation.
    pub turns: u64,
    /// The first and the last turn that it tells of.
    pub span: (u64, u64),
    /// Turns of these that are not in it. Of what an agent wrote nobody can tell: it had all of them.
    pub left_out: u64,
    /// Whether something in it was cut for its length.
    pub cut: bool,
    /// What did not spoil it: of the copy that the agent was asked in, and of its removal.
    pub warnings: Vec<Warning>,
}

impl Summary {
    /// The prompt with the record before it.
    #[must_use]
    pub fn before(&self, prompt: &str) -> String {
        format!("{}\n\n{prompt}", self.text)
    }
}

/// A conversation that was left for a new one, which begins with its summary at the next run of the key.
#[derive(Debug)]
#[must_use]
#[non_exhaustive]
pub struct Compacted {
    /// The summary. The next run passes it on before its prompt.
    pub summary: Summary,
    /// The session that was in force. It is in the past of the key, and may be joined again.
    pub before: NativeId,
    /// The number of the event in the audit log; `None`: the log could not be written.
    pub audit_seq: Option<AuditSeq>,
}

/// A conversation whose record waits for the next run of another key.
#[derive(Debug)]
#[must_use]
#[non_exhaustive]
pub struct HandedOver {
    /// The summary. The next run of the other key passes it on before its prompt.
    pub summary: Summary,
    /// The other key.
    pub to: SessionKey,
    /// The number of the event in the audit log of the other key; `None`: the log could not be written.
    pub audit_seq: Option<AuditSeq>,
}
