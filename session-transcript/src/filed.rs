//! The folder that a place of sessions is of, by its name alone: where a file was moved, nothing in it tells of that folder.

use std::fs;
use std::path::{Path, PathBuf};

use session_core::TranscriptFormat;
use session_core::history::SessionSource;

/// More entries than the folders on the way to a project hold.
const ENTRIES: usize = 100_000;

/// The one folder that is there and whose sessions are filed where this file lies. Several folders may have one place: then
/// nobody can tell. Links are not followed, as the agents file by real paths.
pub(crate) fn folder_of(format: &dyn TranscriptFormat, source: &SessionSource) -> Option<PathBuf> {
    let place = source.path.parent()?;
    // A format that cannot tell goes nowhere.
    let root = place.ancestors().last()?;
    let mut search = Search { format, source, place, entries: ENTRIES, found: Vec::new() };
    search.walk(root)?;
    match &mut *search.found {
        [one] => Some(std::mem::take(one)),
        _ => None,
    }
}

struct Search<'a> {
    format: &'a dyn TranscriptFormat,
    source: &'a SessionSource,
    place: &'a Path,
    /// How many may still be looked at.
    entries: usize,
    found: Vec<PathBuf>,
}

impl Search<'_> {
    /// `None`: not all could be looked at, or it is of no use to look on.
    fn walk(&mut self, folder: &Path) -> Option<()> {
        if !self.format.may_lie_in(folder, self.place) {
            return Some(());
        }
        let state_dir = self.source.state_dir.as_deref();
        if self.format.filed_in(folder, state_dir).iter().any(|filed| filed == self.place) {
            self.found.push(folder.to_owned());
        }
        if self.found.len() > 1 {
            return None;
        }
        // What may not be listed is left out: a work folder in it may be told by its record, not by this.
        for child in fs::read_dir(folder).into_iter().flatten().flatten() {
            self.entries = self.entries.checked_sub(1)?;
            if child.file_type().is_ok_and(|kind| kind.is_dir()) {
                self.walk(&child.path())?;
            }
        }
        Some(())
    }
}

#[cfg(test)]
#[path = "filed_tests.rs"]
mod tests;
