//! Which sessions belong to a list of some folders.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use session_core::history::{Scope, SessionEntry};

/// A scope as real paths, and what is known of folders already.
#[derive(Debug)]
pub(crate) struct Scoped {
    scope: Scope,
    known: HashMap<PathBuf, bool>,
}

impl Scoped {
    pub(crate) fn new(scope: &Scope) -> Self {
        Self { scope: scope.map(real), known: HashMap::new() }
    }

    /// Whether the session began in one of the folders, or was last in one.
    pub(crate) fn holds(&mut self, entry: &SessionEntry) -> bool {
        self.scope == Scope::All
            || [&entry.cwd, &entry.last_cwd].into_iter().flatten().any(|folder| self.holds_folder(folder))
    }

    pub(crate) fn holds_folder(&mut self, folder: &Path) -> bool {
        if let Some(holds) = self.known.get(folder) {
            return *holds;
        }
        let holds = self.scope.holds(&real(folder));
        self.known.insert(folder.to_owned(), holds);
        holds
    }
}

/// The path with all links followed as far as it is there, and as written from there on.
pub(crate) fn real(path: &Path) -> PathBuf {
    if !path.is_absolute() {
        return path.to_owned();
    }
    for there in path.ancestors() {
        if let (Ok(real), Ok(gone)) = (there.canonicalize(), path.strip_prefix(there)) {
            // Joined with nothing, a path would get a slash at its end.
            return if gone.as_os_str().is_empty() { real } else { real.join(gone) };
        }
    }
    path.to_owned()
}
