//! What a format tells of a file and of one line of it, cheaply: enough for lists, counts and totals.

use std::borrow::Cow;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::listing::{Ancestor, SessionKind, TitleSource};
use crate::{NativeId, Timestamp, Usage};

/// A folder that holds session files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionRoot {
    /// The folder.
    pub folder: PathBuf,
    /// How many folders at the most lie between it and a file.
    pub depth: u8,
    /// Whether the agent keeps there what was archived.
    pub archived: bool,
}

/// What a file below a root is, by its path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionFile {
    /// The session's id.
    pub id: NativeId,
    /// What it is.
    pub kind: FileKind,
    /// Whether it is packed.
    pub packed: bool,
}

/// What a session file is, as far as its place tells.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum FileKind {
    /// A session's own file.
    Session,
    /// A helper's, beside that of its session.
    Sidechain,
}

/// Where the history of a file begins, if not in the file itself.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct HistoryBase {
    /// The session that holds it, or [a segment](crate::TranscriptFormat::segment) of one.
    pub id: NativeId,
    /// How many bytes of that file, unpacked, belong to it; `None`: it is not told, so all of them.
    pub end: Option<u64>,
}

/// What a folder below a root holds, as far as its name tells.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum FolderKind {
    /// Perhaps sessions.
    #[default]
    Sessions,
    /// Files of helpers alone.
    Sidechains,
    /// Nothing of these: it is not entered.
    Other,
}

/// A record's own id, as a number: the bits of a UUID, or a hash of something else.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RecordId(pub u128);

/// A time as it was written.
#[derive(Debug, Clone, PartialEq)]
pub enum RawTime<'a> {
    /// As text.
    Text(Cow<'a, str>),
    /// As a number: seconds or milliseconds since the epoch.
    Number(f64),
}

/// What one line is, in short. What is borrowed lies in the line.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct LineFacts<'a> {
    /// What it is.
    pub role: LineRole<'a>,
    /// The time noted in it.
    pub time: Option<RawTime<'a>>,
    /// The folder noted in it.
    pub cwd: Option<Cow<'a, str>>,
    /// The git branch noted in it.
    pub branch: Option<Cow<'a, str>>,
    /// Its own id.
    pub id: Option<RecordId>,
    /// The record that it follows; of a boundary, none.
    pub parent: Option<RecordId>,
    /// The record before a boundary.
    pub logical_parent: Option<RecordId>,
    /// Whether it belongs to a helper.
    pub sidechain: bool,
    /// Whether the agent wrote it and does not show it.
    pub meta: bool,
    /// Whether it was copied from another session by a fork.
    pub copied: bool,
    /// The session that it was copied from, where the line tells.
    pub origin: Option<Cow<'a, str>>,
    /// What kind of session the line says that it is in, where it tells.
    pub kind: Option<SessionKind>,
    /// A number that a record shares with every copy of it under another id: of its role, its time and its content. `None`
    /// where it has no time, or is no message.
    pub print: Option<u64>,
    /// What the agent's counter of costs shows, in US dollars.
    pub running_cost: Option<f64>,
    /// Of a boundary: whether it says what was kept beside the summary.
    pub anchored: bool,
}

/// What a line is.
#[derive(Debug, Clone, Default, PartialEq)]
#[non_exhaustive]
pub enum LineRole<'a> {
    /// The session's own header.
    Header {
        /// The id that it names.
        id: Option<Cow<'a, str>>,
        /// The session that it comes from.
        parent: Option<Ancestor>,
        /// Of which kind the session is.
        kind: SessionKind,
    },
    /// What somebody typed. Of a command of the agent's own, its name.
    Prompt {
        /// The words; empty where it has none, as with an image alone. Of many words, those that it begins with are
        /// enough: as many bytes as [`SessionEntry::PROMPT`](super::SessionEntry::PROMPT).
        text: Cow<'a, str>,
        /// Whether it is a command, not words.
        command: bool,
        /// Whether it was typed while the agent was at work.
        queued: bool,
    },
    /// A part of a reply.
    Reply {
        /// The reply that it is a part of, and the request that it answers: what is counted once.
        reply: Option<RecordId>,
        /// Its tokens as far as they are known in this line; of several lines of a reply, the largest count.
        usage: Option<Usage>,
        /// The model.
        model: Option<Cow<'a, str>>,
    },
    /// What a tool returned, or another line of the user's side that nobody typed.
    Returned,
    /// Where the conversation was compacted: what the model sees begins after it.
    Boundary,
    /// The summary that stands for what was compacted.
    CompactSummary,
    /// A title.
    Title {
        /// Who gave it.
        source: TitleSource,
        /// The words; empty where it was taken back.
        text: Cow<'a, str>,
    },
    /// The last prompt, as the agent notes it.
    LastPrompt(Cow<'a, str>),
    /// The tokens of the session up to here, or since the last [`CountsAnew`](Self::CountsAnew).
    RunningTotal(Usage),
    /// The agent begins to count its tokens anew: the totals that follow leave out what was counted before.
    CountsAnew,
    /// A turn of the conversation was taken back: this many.
    RolledBack(u64),
    /// The model of the replies that follow.
    Model(Cow<'a, str>),
    /// Belongs to the format, and is nothing of these.
    #[default]
    Other,
}

impl RawTime<'_> {
    /// The point in time. `None`: it is none. Numbers above 10¹¹ are milliseconds, others seconds.
    #[must_use]
    pub fn read(&self) -> Option<Timestamp> {
        Timestamp::from_raw(self)
    }
}
