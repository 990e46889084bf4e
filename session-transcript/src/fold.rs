//! What is known of a session file so far: a fold over its lines, which goes on where it stopped.

use std::io::{self, Read};
use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use session_core::TranscriptFormat;
use session_core::history::{SessionEntry, SessionFile, SessionSource};

/// What was read of a file, summed up.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Digest {
    /// How many bytes were folded: up to the end of the last whole line.
    pub(crate) folded: u64,
    /// Whether all lines before `folded` were.
    pub(crate) whole: bool,
    /// Prompts that were typed.
    pub(crate) turns: u64,
}

/// Whether a fold could go on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Folded {
    /// All was folded.
    Done,
    /// What was added goes back further than is remembered: the file has to be folded anew, from its beginning.
    Anew,
}

impl Digest {
    /// Folds what comes after [`folded`](Self::folded) bytes; `input` begins there and ends where the file did when it was
    /// opened.
    pub(crate) fn fold(&mut self, _format: &dyn TranscriptFormat, _input: impl Read) -> io::Result<Folded> {
        Ok(Folded::Done)
    }

    /// Folds the beginning and the end of a file alone, where the rest is not worth the time.
    pub(crate) fn glance(_format: &dyn TranscriptFormat, _head: &[u8], _tail: &[u8]) -> Self {
        Self::default()
    }

    /// What a list shows of it.
    pub(crate) fn entry(&self, file: &SessionFile, source: SessionSource) -> SessionEntry {
        let mut entry = SessionEntry::new(file.id.clone(), source);
        entry.exact = self.whole;
        entry.turns = self.whole.then_some(self.turns);
        entry
    }

    /// The folders that it names, for a list of one folder.
    pub(crate) fn folders(&self) -> impl Iterator<Item = &PathBuf> {
        std::iter::empty()
    }
}
