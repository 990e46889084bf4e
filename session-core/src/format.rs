//! The pure format of an agent's session files, which is plugged into an implementation of
//! [`SessionCatalog`](crate::SessionCatalog).

use std::fmt::Debug;
use std::path::{Path, PathBuf};

use crate::branch::{Carried, Heir, Seam, Seed};
use crate::history::{Entry, FolderKind, HistoryBase, LineFacts, SessionFile, SessionRoot, Title};
use crate::{NativeId, Said, SessionQuery};

/// Where a session's file may lie, best first.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Places {
    /// Exact paths.
    pub exact: Vec<PathBuf>,
    /// Folders to search where there is nothing at those; of several files, the newest counts.
    pub below: Vec<Below>,
}

/// A folder to search for the files that [`TranscriptFormat::is_file_of`] accepts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Below {
    /// The folder.
    pub folder: PathBuf,
    /// How many folders lie between it and the file.
    pub depth: u8,
}

/// A process of the agent that has a session open, as the agent notes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LiveSession {
    /// The session.
    pub id: NativeId,
    /// The process.
    pub pid: u32,
    /// When it started, in the units of the system that tells one process from a later one of the same number.
    pub started: Option<String>,
}

/// One record of a session file, as far as an inspection needs it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecordFacts {
    /// What it is.
    pub kind: RecordKind,
    /// The folder noted in it.
    pub cwd: Option<PathBuf>,
    /// The agent's own number of the record, where the format has one.
    pub number: Option<u64>,
    /// The oldest version of the agent that may continue a session with this record.
    pub needs_version: Option<[u64; 3]>,
    /// Whether the conversation begins in another file, which this one goes on from.
    pub inherits: bool,
}

impl RecordFacts {
    /// A record of which nothing else is known.
    #[must_use]
    pub const fn new(kind: RecordKind) -> Self {
        Self { kind, cwd: None, number: None, needs_version: None, inherits: false }
    }
}

/// What a record is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum RecordKind {
    /// A prompt of the main conversation.
    Prompt,
    /// A part of an answer of the main conversation.
    Answer,
    /// Anything else that belongs to the format.
    Other,
}

/// The format of an agent's session files. Pure: paths in, bytes in, facts out.
pub trait TranscriptFormat: Debug + Send + Sync + 'static {
    /// Where the session's file may lie; no place at all where nobody can tell, as without a home. Then a look fails, and
    /// the session is not called missing.
    fn places(&self, query: &SessionQuery<'_>) -> Places;

    /// Whether a file of this name, found below a folder to search, is the session's.
    fn is_file_of(&self, name: &str, query: &SessionQuery<'_>) -> bool;

    /// Whether a file of this name is packed. What really is, its first bytes tell; of two files whose names differ in this
    /// alone, the one that is not packed is valid.
    fn is_packed(&self, _name: &str) -> bool {
        false
    }

    /// The oldest version of the agent that reads packed files.
    fn unpacks_since(&self) -> Option<[u64; 3]> {
        None
    }

    /// To be raised with every change of what this format makes of a file, so that no index keeps what an older one made.
    fn revision(&self) -> u32 {
        0
    }

    /// The agent's own place, as it is now set; `None` where nobody can tell.
    fn home(&self) -> Option<PathBuf> {
        None
    }

    /// The agent's own place, where somebody named it and did not leave it to the default. Where that is not there, sessions
    /// are missing; a default that is not there was never used.
    fn named_home(&self) -> Option<PathBuf> {
        None
    }

    /// The folders that hold sessions: in a state dir, or in the agent's own place. None at all where nobody can tell.
    fn roots(&self, _state_dir: Option<&Path>) -> Vec<SessionRoot> {
        Vec::new()
    }

    /// The places, there or not, in which sessions of this work folder are filed. None at all: they are not filed by folder,
    /// or nobody can tell.
    fn filed_in(&self, _cwd: &Path, _state_dir: Option<&Path>) -> Vec<PathBuf> {
        Vec::new()
    }

    /// Whether a folder whose sessions are filed in this place may be this one or lie below it, by the names alone: for a
    /// search for that folder.
    fn may_lie_in(&self, _folder: &Path, _place: &Path) -> bool {
        false
    }

    /// What a file is, by its path below a root. `None`: no session's.
    fn session_file(&self, _below: &Path) -> Option<SessionFile> {
        None
    }

    /// Of a file of this name that may hold a later part of a session alone, the part's own id. Where it has no
    /// [base](Self::base), it is a session of its own, with that id.
    fn segment(&self, _name: &str) -> Option<NativeId> {
        None
    }

    /// Where the history begins that the file of this header goes on from. `None`: in the file itself. Total over all
    /// bytes.
    fn base(&self, _header: &[u8]) -> Option<HistoryBase> {
        None
    }

    /// The file beside the sessions that holds titles, one a line; of several for a session, the last is valid.
    fn titles(&self, _state_dir: Option<&Path>) -> Option<PathBuf> {
        None
    }

    /// What a line of [that file](Self::titles) says: a session and its title, empty where it was taken back. `None`: it is
    /// no record of it. Total over all bytes.
    fn title(&self, _line: &[u8]) -> Option<(NativeId, Title)> {
        None
    }

    /// What a folder holds, by its path below a root.
    fn folder(&self, _below: &Path) -> FolderKind {
        FolderKind::Sessions
    }

    /// The names that a session's file can have, where they follow from its id alone; none: a search has to look at
    /// every name.
    fn file_names(&self, _id: &NativeId) -> Vec<String> {
        Vec::new()
    }

    /// The folder in which the helpers of a session have files of their own, by the path of the session's file.
    fn helpers(&self, _path: &Path) -> Option<PathBuf> {
        None
    }

    /// A text that is in every line that holds a title which stands for the session, and in few others: so that titles are
    /// found without a look at every line.
    fn title_mark(&self) -> Option<&str> {
        None
    }

    /// Whether a line of a session's file can hold a title which stands for the session. Where all titles are
    /// [elsewhere](Self::titles), a list reads fewer lines.
    fn has_title_lines(&self) -> bool {
        true
    }

    /// What a line is, in short. `None`: it is no record of this format. Total over all bytes, and cheap: it is called for
    /// every line of every session.
    fn facts<'a>(&self, _line: &'a [u8]) -> Option<LineFacts<'a>> {
        None
    }

    /// The same of a line of a file that is read in part, as for a quick list: a line that tells nothing but its time may be
    /// taken for a record by how it begins and ends, and what the agent counts need not be told.
    fn glance<'a>(&self, line: &'a [u8]) -> Option<LineFacts<'a>> {
        self.facts(line)
    }

    /// What a line is, in full. `None`: it is no record of this format. Total over all bytes.
    fn entry(&self, _line: &[u8]) -> Option<Entry> {
        None
    }

    /// What lies beside a session's file and belongs to it, there or not.
    fn belongings(&self, _file: &Path) -> Vec<PathBuf> {
        Vec::new()
    }

    /// What lies beside a session's file, there or not, and belongs to all sessions of the folder.
    fn shared(&self, _file: &Path) -> Vec<PathBuf> {
        Vec::new()
    }

    /// The id of a new session. `None`: sessions of this format are not made from here.
    fn new_id(&self, _seed: &Seed) -> Option<NativeId> {
        None
    }

    /// Where the file of a new session belongs. `None`: nobody can tell.
    fn new_path(&self, query: &SessionQuery<'_>, _seed: &Seed) -> Option<PathBuf> {
        self.places(query).exact.into_iter().next()
    }

    /// How a record stands between two turns. Total over all bytes.
    fn seam(&self, _line: &[u8]) -> Seam {
        Seam::Within
    }

    /// What becomes of a record in a branch. Total over all bytes: what is no record stays as it is.
    fn carried(&self, _line: &[u8], _heir: &Heir<'_>) -> Carried {
        Carried::AsItIs
    }

    /// What lies beside a session's file and goes with a branch of it: from where, there or not, and to where.
    fn heirlooms(&self, file: &Path, branch: &Path) -> Vec<(PathBuf, PathBuf)> {
        self.belongings(file).into_iter().zip(self.belongings(branch)).collect()
    }

    /// The folder in which the agent notes which processes have which session open.
    fn live_folder(&self, _state_dir: Option<&Path>) -> Option<PathBuf> {
        None
    }

    /// What such a note tells. `None`: it is none. Total over all bytes.
    fn live(&self, _note: &[u8]) -> Option<LiveSession> {
        None
    }

    /// Reads one line. `None`: it is no record of this format. Total over all bytes.
    fn record(&self, line: &[u8]) -> Option<RecordFacts>;

    /// What a line says in the main conversation. `None`: nothing, or nothing in words. Total over all bytes.
    fn said(&self, line: &[u8]) -> Option<Said>;

    /// The record of this line with that number. `None`: it cannot have one.
    fn numbered(&self, line: &[u8], number: u64) -> Option<Vec<u8>>;

    /// Where a file of the archive belongs. `None`: this path is not in the archive.
    fn unarchived(&self, path: &Path) -> Option<PathBuf>;
}
