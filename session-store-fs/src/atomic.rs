//! Replacing a file as one step that survives a crash, and cleaning up after writers who did not.

use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use uuid::Uuid;

use crate::files::{self, Folder};

const TEMPORARY: &str = ".tmp-";

/// A temporary file older than this has no writer any more.
const STALE: Duration = Duration::from_secs(60 * 60);

/// 32 hexadecimal digits that nobody can foresee.
pub(crate) fn unique() -> String {
    Uuid::new_v4().simple().to_string()
}

/// Puts the content at a path of this folder. After `Ok`, it is there also after a crash; before that, the old
/// content or the new one, whole.
pub(crate) fn replace(folder: &Folder, target: &Path, content: &[u8]) -> io::Result<()> {
    let temporary = Temporary(Some(folder.path().join(format!("{TEMPORARY}{}", unique()))));
    let path = temporary.path();
    let mut file = files::create_new(path)?;
    file.write_all(content)?;
    file.sync_all()?;
    drop(file);
    fs::rename(path, target)?;
    temporary.arrived();
    folder.sync()
}

/// A file that is removed unless it arrives at its target.
struct Temporary(Option<PathBuf>);

impl Temporary {
    fn path(&self) -> &Path {
        self.0.as_deref().unwrap_or(Path::new(""))
    }

    fn arrived(mut self) {
        self.0 = None;
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        if let Some(path) = &self.0 {
            // What stays is ignored by all readers, and swept up later.
            drop(fs::remove_file(path));
        }
    }
}

/// Removes the temporary files of writers that died: only regular files whose names are of our making.
/// Failing to do so harms nothing.
pub(crate) fn sweep(folder: &Folder) {
    let Ok(entries) = fs::read_dir(folder.path()) else { return };
    for entry in entries.flatten() {
        let name = entry.file_name();
        let Some(nonce) = name.to_str().and_then(|name| name.strip_prefix(TEMPORARY)) else { continue };
        if nonce.len() != 32 || !nonce.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f')) {
            continue;
        }
        // The metadata of an entry is that of a link itself, not of what it points at.
        let Ok(metadata) = entry.metadata() else { continue };
        let age = metadata.modified().ok().and_then(|time| SystemTime::now().duration_since(time).ok());
        if metadata.is_file() && age.is_some_and(|age| age > STALE) {
            let removed = fs::remove_file(entry.path()).is_ok();
            tracing::debug!(path = %entry.path().display(), removed, "a writer died and left a file");
        }
    }
}
