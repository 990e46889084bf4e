//! A folder of its own for everything that a subject keeps.

use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use tempfile::TempDir;

/// A place for one walk or case: a folder that is there when it is asked for, and gone afterwards. Opening twice in one
/// scratch is opening again.
#[derive(Debug, Default)]
pub struct Scratch {
    dir: OnceLock<TempDir>,
    /// The folder of another process, which is its owner.
    borrowed: Option<PathBuf>,
}

impl Scratch {
    pub(crate) fn new() -> Self {
        Self::default()
    }

    pub(crate) fn of_another_process(dir: PathBuf) -> Self {
        Self { borrowed: Some(dir), ..Self::default() }
    }

    /// The folder.
    ///
    /// # Panics
    /// Where it cannot be made.
    #[must_use]
    pub fn dir(&self) -> &Path {
        if let Some(borrowed) = &self.borrowed {
            return borrowed;
        }
        self.dir.get_or_init(|| TempDir::new().unwrap_or_else(|error| panic!("no scratch: {error}"))).path()
    }
}
