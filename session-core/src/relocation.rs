//! Relocation: having a session be found in another folder.

use std::path::{Path, PathBuf};

use serde::Serialize;

use crate::SessionQuery;
use crate::error::HistoryError;
use crate::history::ListedSession;

/// How a session gets to another folder.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Way {
    /// Nothing is to be done: the version finds it from there.
    Nothing,
    /// Its file, and what lies beside it, is moved.
    Move,
    /// They are copied. The original stays, and goes its own way.
    Copy,
}

/// An order to a catalog to relocate a session.
#[derive(Debug, Clone, Copy)]
pub struct RelocateOrder<'a> {
    /// The session, and the folder and version that it is to be found from.
    pub query: SessionQuery<'a>,
    /// Its file.
    pub from: &'a Path,
    /// The size that its file had at an earlier look: one that differs by now has a writer.
    pub bytes: u64,
    /// How.
    pub way: Way,
}

/// Why a session was not relocated. Nothing was changed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Refusal {
    /// A process of the agent has it open.
    Live {
        /// The process.
        pid: u32,
    },
    /// Its file changed between two looks: somebody writes to it.
    Growing,
    /// Another session's file has its place there, or another state of this one's.
    TargetDiffers {
        /// The file.
        path: PathBuf,
    },
    /// It is packed, and the version that is to read it may not be able to.
    Packed,
    /// It is reached through a link, is no file, or has another name: under that, it may be another's.
    NotPlain,
    /// A run of its key is under way.
    Busy,
    /// The record of its key cannot be read, for this reason: its new folder could not be noted.
    RecordUnreadable(String),
    /// Nobody here can, for this reason.
    Unsupported(String),
}

/// What a relocation came to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Relocated {
    /// Nothing had to be done.
    NothingToDo,
    /// The version finds it from there; the record of its key says now that it is there, so that later runs go on there.
    Noted,
    /// It is there, with the same content, from an earlier time. Nothing was changed.
    Already {
        /// Its file.
        path: PathBuf,
    },
    /// It is there now, and was found there.
    Done {
        /// Where its file was.
        from: PathBuf,
        /// Where it is: there too, where it is the session's own note of its folder that was changed.
        to: PathBuf,
        /// How.
        way: Way,
        /// Records in it, before and after.
        records: u64,
        /// What lies beside the old place, belongs to the folder and to no session, and was left there.
        left: Vec<PathBuf>,
        /// Whether a file stands at the old place again: somebody goes on writing there, and the session is split.
        split: bool,
    },
    /// It was not relocated.
    Refused(Refusal),
}

/// What a relocation would come to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Foreseen {
    /// Nothing has to be done.
    NothingToDo,
    /// The version finds it from there; the record of its key would say that it is there.
    Noted,
    /// It is there already, with the same content.
    Already {
        /// Its file.
        path: PathBuf,
    },
    /// It would be done in this way.
    Done {
        /// How.
        way: Way,
    },
    /// It would not be relocated.
    Refused(Refusal),
}

/// A wish to relocate a session.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Relocation {
    /// The session, as it was found.
    pub session: ListedSession,
    /// The folder that it is to be continued in.
    pub to: PathBuf,
    /// How; `None`: as the installed version needs it, at most moved.
    pub way: Option<Way>,
}

impl Relocation {
    /// A wish to have a session in a folder.
    pub fn new(session: ListedSession, to: impl Into<PathBuf>) -> Self {
        Self { session, to: to.into(), way: None }
    }

    /// Chooses how.
    #[must_use]
    pub const fn way(mut self, way: Way) -> Self {
        self.way = Some(way);
        self
    }
}

/// What relocating one of several sessions came to.
#[derive(Debug)]
pub struct RelocationOutcome {
    /// The session, as it was listed.
    pub session: ListedSession,
    /// What it came to.
    pub outcome: Result<Relocated, HistoryError>,
}
