//! The port to an agent's session files, and the pure format that is plugged into its implementation.

use std::fmt::Debug;
use std::path::{Path, PathBuf};

use async_trait::async_trait;

use crate::error::CatalogError;
use crate::{NativeId, Version};

/// Which session to look at.
#[derive(Debug, Clone, Copy)]
pub struct SessionQuery<'a> {
    /// The session.
    pub id: &'a NativeId,
    /// The folder that the agent would be started in, as a real path.
    pub cwd: &'a Path,
    /// The key's state dir; `None`: the agent's own place.
    pub state_dir: Option<&'a Path>,
    /// The agent's version.
    pub version: Option<&'a Version>,
}

/// Whether a session can be continued, as far as its file tells.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Presence {
    /// It holds at least one turn.
    Present,
    /// There is no file.
    Missing,
    /// There is a file without a turn.
    Empty,
    /// There is a file that is no conversation.
    Damaged,
    /// There is something that may not be read, or is no file.
    Unreadable,
}

/// What a look at a session's file showed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Inspection {
    /// The sum of it.
    pub presence: Presence,
    /// Where it lies.
    pub path: Option<PathBuf>,
    /// Prompts in it.
    pub user_turns: u64,
    /// Answers in it, in records.
    pub answers: u64,
    /// Its size in bytes.
    pub bytes: u64,
    /// The folder of its first record.
    pub began_in: Option<PathBuf>,
    /// Whether its last line is cut off. The agents leave such a line out.
    pub torn_tail: bool,
    /// Whether its last line has no end, cut off or not: what is appended next would be glued to it.
    pub open_tail: bool,
    /// Lines that are no records.
    pub skipped_lines: u64,
}

impl Inspection {
    /// A look that found no file.
    pub const MISSING: Self = Self {
        presence: Presence::Missing,
        path: None,
        user_turns: 0,
        answers: 0,
        bytes: 0,
        began_in: None,
        torn_tail: false,
        open_tail: false,
        skipped_lines: 0,
    };
}

/// Looks at the session files of one agent.
#[async_trait]
pub trait SessionCatalog: Debug + Send + Sync + 'static {
    /// Looks whether the session is there and what it holds: cheap enough for before and after every run.
    ///
    /// # Errors
    /// [`CatalogError`] when nobody can look; then nothing is known about the session.
    async fn inspect(&self, query: SessionQuery<'_>) -> Result<Inspection, CatalogError>;

    /// Gives a last line without an end its end, so that what the agent appends next is not glued to it, and says
    /// whether it did. Only a file that still has this many bytes: one that grew has a writer. Writes nothing else,
    /// and never through a link.
    ///
    /// # Errors
    /// [`CatalogError`] when it could not be done; then nothing was written.
    async fn end_last_line(&self, path: &Path, bytes: u64) -> Result<bool, CatalogError>;
}

/// Where a session's file may lie, best first.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Places {
    /// Exact paths.
    pub exact: Vec<PathBuf>,
    /// Folders of which any child folder may hold the file, with the file's name.
    pub in_children_of: Option<(PathBuf, String)>,
}

/// One record of a session file, as far as an inspection needs it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecordFacts {
    /// What it is.
    pub kind: RecordKind,
    /// The folder noted in it.
    pub cwd: Option<PathBuf>,
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
    /// Where the session's file may lie.
    fn places(&self, query: &SessionQuery<'_>) -> Places;

    /// Reads one line. `None`: it is no record of this format. Total over all bytes.
    fn record(&self, line: &[u8]) -> Option<RecordFacts>;
}
