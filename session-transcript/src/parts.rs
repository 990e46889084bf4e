//! Sessions whose history lies in more than one file.

use std::collections::HashMap;
use std::io::{self, BufRead as _, BufReader, Read as _};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use session_core::history::{HistoryBase, SessionRoot};
use session_core::{NativeId, TranscriptFormat};

use crate::find::{Found, open, packed_twin};
use crate::lines::LINE_LIMIT;
use crate::opened::Opened;
use crate::packed::Content;
use crate::page::Forwards;
use crate::walk::{Seen, Walk};

/// More files that go on from each other are a circle.
pub(crate) const DEEPEST: usize = 256;

/// Where files of sessions lie.
#[derive(Debug)]
pub(crate) struct Files<'a> {
    pub(crate) format: &'a dyn TranscriptFormat,
    roots: &'a [SessionRoot],
    /// The state dir, as a real path.
    pub(crate) state_dir: Option<&'a Path>,
    /// How many entries of folders are looked at.
    limit: usize,
    /// The first file of every session, and every segment; looked for when it is asked for.
    known: OnceLock<HashMap<NativeId, PathBuf>>,
}

impl<'a> Files<'a> {
    pub(crate) const fn new(
        format: &'a dyn TranscriptFormat,
        roots: &'a [SessionRoot],
        state_dir: Option<&'a Path>,
        limit: usize,
    ) -> Self {
        Self { format, roots, state_dir, limit, known: OnceLock::new() }
    }

    /// The file that another one says it goes on from.
    pub(crate) fn base(&self, base: &HistoryBase) -> Option<&Path> {
        self.known.get_or_init(|| self.all()).get(&base.id).map(PathBuf::as_path)
    }

    fn all(&self) -> HashMap<NativeId, PathBuf> {
        let Self { format, state_dir, limit, .. } = *self;
        let walk = Walk { format, state_dir, sidechains: true, only: None, names: &[], limit, plain: None };
        let mut files = walk.run(self.roots).files;
        // The newest one of an id stays; of one and the same file, the one that is not packed.
        files.sort_by_key(|seen| (!seen.file.packed, seen.stamp.modified));
        let id = |seen: &Seen| segment(format, &seen.path).unwrap_or_else(|| seen.file.id.clone());
        files.into_iter().map(|seen| (id(&seen), seen.path)).collect()
    }
}

/// The segment's id, where the name tells one.
pub(crate) fn segment(format: &dyn TranscriptFormat, path: &Path) -> Option<NativeId> {
    format.segment(path.file_name()?.to_str()?)
}

/// Where the history of a file begins, if not in itself: its first line tells.
pub(crate) fn base_of(format: &dyn TranscriptFormat, opened: &Opened) -> io::Result<Option<HistoryBase>> {
    let mut lines = Forwards::new(&opened.file, 0, opened.size, LINE_LIMIT);
    Ok(lines.next()?.and_then(|line| format.base(line.text?)))
}

/// The first line of a file, packed or not. `None`: it is not there, or too long.
pub(crate) fn header(path: &Path, state_dir: Option<&Path>) -> io::Result<Option<Vec<u8>>> {
    let Found::File(_, file) = open(path, state_dir).map_err(|error| io::Error::other(error.source))? else {
        return Ok(None);
    };
    let mut line = Vec::new();
    let file = BufReader::new(Content::of(file)?);
    file.take(LINE_LIMIT as u64).read_until(b'\n', &mut line)?;
    Ok((line.len() < LINE_LIMIT).then_some(line))
}

/// Gives files that have the name of a segment, and hold the whole of a session, the id of that one.
pub(crate) fn tell_apart(files: &Files<'_>, seen: &mut [Seen]) {
    for seen in seen {
        let Some(id) = seen.segment.clone() else { continue };
        // One that cannot be read stays what its name says.
        let header = header(&seen.path, files.state_dir).ok().flatten();
        if header.is_some_and(|header| files.format.base(&header).is_none()) {
            seen.file.id = id;
        }
    }
}

/// Whether both hold parts of one session, or the same part.
pub(crate) fn belong_together(format: &dyn TranscriptFormat, one: &Seen, other: &Seen) -> bool {
    let is_segment = |seen: &Seen| segment(format, &seen.path).is_some_and(|segment| segment != seen.file.id);
    is_segment(one) || is_segment(other) || packed_twin(format, &one.path, &other.path).is_some()
}
