//! Titles that lie in a file beside the sessions. It is read for every list, so that what is added to it is seen: it is small.

use std::collections::HashMap;
use std::io::{self, BufReader, Read as _, Seek as _, SeekFrom};
use std::path::Path;

use session_core::history::{Notice, SessionEntry, Title};
use session_core::{NativeId, TranscriptFormat};

use crate::find::{Found, open};
use crate::fold::cut;
use crate::lines::{Line, each_line};
use crate::walk::notice;

/// How much of its end is read: half a million titles.
const READ: u64 = 64 << 20;

/// The longest line; a title is no book.
const LONGEST: usize = 64 << 10;

#[derive(Debug, Default)]
pub(crate) struct Titles(HashMap<NativeId, Title>);

impl Titles {
    /// Reads the file, if the format has one. `state_dir` as it was asked for, and as a real path.
    pub(crate) fn read(
        format: &dyn TranscriptFormat,
        state_dir: Option<&Path>,
        real: Option<&Path>,
        notices: &mut Vec<Notice>,
    ) -> Self {
        let Some(path) = format.titles(state_dir) else { return Self::default() };
        let read = match open(&path, real) {
            Ok(Found::File(_, file)) => Self::of(format, file),
            Ok(Found::Nothing) => Ok(Self::default()),
            Ok(Found::Unusable(_)) => Err(io::Error::other("it may not be read")),
            Err(error) => Err(io::Error::other(error.source)),
        };
        read.unwrap_or_else(|error| {
            notices.push(notice(&path, &error));
            Self::default()
        })
    }

    fn of(format: &dyn TranscriptFormat, mut file: std::fs::File) -> io::Result<Self> {
        let mut titles = HashMap::new();
        let size = file.metadata()?.len();
        let from = size.saturating_sub(READ);
        file.seek(SeekFrom::Start(from))?;
        // What the reading begins with may be half a line: it is no record then.
        each_line(BufReader::new(file.take(READ)), LONGEST, &mut |line| {
            if let Line::Ended(line) | Line::Last(line) = line
                && let Some((id, title)) = format.title(line)
            {
                titles.insert(id, title);
            }
        })?;
        Ok(Self(titles))
    }

    /// The title that a session has there, if it was not taken back.
    pub(crate) fn get(&self, id: &NativeId) -> Option<&Title> {
        self.0.get(id).filter(|title| !title.text.is_empty())
    }

    /// Gives a session the title that it has there, as far as a list shows it.
    pub(crate) fn give(&self, entry: &mut SessionEntry) {
        if let Some(title) = self.0.get(&entry.id) {
            let shown = Title { text: cut(&title.text).to_owned(), source: title.source };
            entry.title = Some(shown).filter(|title| !title.text.is_empty());
        }
    }
}
