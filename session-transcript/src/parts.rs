//! Sessions whose history lies in more than one file.

use std::path::{Path, PathBuf};

use session_core::history::SessionRoot;
use session_core::{NativeId, TranscriptFormat};

use crate::find::packed_twin;
use crate::walk::{Seen, Walk};

/// Where files of sessions lie.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Files<'a> {
    pub(crate) format: &'a dyn TranscriptFormat,
    pub(crate) roots: &'a [SessionRoot],
    /// The state dir, as a real path.
    pub(crate) state_dir: Option<&'a Path>,
    /// How many entries of folders are looked at.
    pub(crate) limit: usize,
}

impl Files<'_> {
    /// The file that another one says it goes on from: by its session, or by the segment that it is.
    pub(crate) fn find(&self, id: &NativeId) -> Option<PathBuf> {
        let walk = Walk {
            format: self.format,
            state_dir: self.state_dir,
            sidechains: true,
            only: Some(id),
            limit: self.limit,
        };
        let files = walk.run(self.roots).files;
        best(self.format, files.iter().filter(|seen| is_part(self.format, seen, id)))
            .map(|seen| seen.path.clone())
    }
}

pub(crate) fn segment(format: &dyn TranscriptFormat, path: &Path) -> Option<NativeId> {
    format.segment(path.file_name()?.to_str()?)
}

/// Whether it is that segment, or the first file of that session.
fn is_part(format: &dyn TranscriptFormat, seen: &Seen, id: &NativeId) -> bool {
    segment(format, &seen.path).map_or(seen.file.id == *id, |segment| segment == *id)
}

/// The newest one; of one and the same file, the one that is not packed.
fn best<'a>(format: &dyn TranscriptFormat, files: impl Iterator<Item = &'a Seen>) -> Option<&'a Seen> {
    files.reduce(|best, other| match packed_twin(format, &best.path, &other.path) {
        Some(crate::find::Twin::First) => other,
        Some(crate::find::Twin::Second) => best,
        None if other.stamp.modified > best.stamp.modified => other,
        None => best,
    })
}
