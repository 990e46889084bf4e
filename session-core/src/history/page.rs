//! Pages of a transcript, from its end to its beginning.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::entry::Entry;
use super::listing::Notice;

/// Where a record lies in its file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Span {
    /// Its first byte; in a packed file, of what it unpacks to.
    pub offset: u64,
    /// How many bytes, without the end of the line.
    pub bytes: u64,
}

/// A record and where it comes from.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Located {
    /// The record.
    pub entry: Entry,
    /// The file that it lies in.
    pub path: PathBuf,
    /// Where in the file; `None`: it is a row of a database.
    pub span: Option<Span>,
    /// The number of its line, from 1, where the file was read from its beginning.
    pub line: Option<u64>,
}

/// A place between two records of a transcript. To be handed back as it is: it is of no meaning to others, and one that
/// does not fit the file any more is told so.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Cursor(pub String);

/// Which records to read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PageQuery {
    /// The last so many turns.
    Last {
        /// How many.
        turns: usize,
    },
    /// So many turns before a place.
    Before {
        /// The place.
        cursor: Cursor,
        /// How many.
        turns: usize,
    },
    /// What was added since: at most so many records.
    After {
        /// The place.
        cursor: Cursor,
        /// How many records.
        records: usize,
    },
}

/// Records of a transcript, oldest first. What the agent wrote a second time, as a compaction may, is left out.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TranscriptPage {
    /// The records.
    pub entries: Vec<Located>,
    /// The place before the first of them; `None`: nothing is before them.
    pub before: Option<Cursor>,
    /// The place behind the last of them: what is added later comes after it.
    pub after: Option<Cursor>,
    /// What was left out or put right.
    pub notices: Vec<Notice>,
}
