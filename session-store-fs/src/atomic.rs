//! Replacing a file as one step that survives a crash, and cleaning up after writers who did not.

use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use uuid::Uuid;

use crate::disk::{Disk, Entry, Kind};
use crate::files::{self, Folder};

const TEMPORARY: &str = ".tmp-";

/// A temporary file older than this has no writer any more.
pub(crate) const STALE: Duration = Duration::from_secs(60 * 60);

/// 32 hexadecimal digits that nobody can foresee.
pub(crate) fn unique() -> String {
    Uuid::new_v4().simple().to_string()
}

/// Puts the content at a path of this folder. After `Ok`, it is there also after a crash; before that, the old
/// content or the new one, whole.
pub(crate) fn replace(disk: &dyn Disk, folder: &Folder, target: &Path, content: &[u8]) -> io::Result<()> {
    let temporary = Temporary { disk, path: Some(folder.path().join(format!("{TEMPORARY}{}", unique()))) };
    let path = temporary.path();
    let file = files::create_new(disk, path)?;
    files::write(&*file, content, 0)?;
    file.sync_all()?;
    drop(file);
    disk.rename(path, target)?;
    temporary.arrived();
    folder.sync()
}

/// A file that is removed unless it arrives at its target.
struct Temporary<'a> {
    disk: &'a dyn Disk,
    path: Option<PathBuf>,
}

impl Temporary<'_> {
    fn path(&self) -> &Path {
        self.path.as_deref().unwrap_or(Path::new(""))
    }

    fn arrived(mut self) {
        self.path = None;
    }
}

impl Drop for Temporary<'_> {
    fn drop(&mut self) {
        if let Some(path) = &self.path {
            // What stays is ignored by all readers, and swept up later.
            drop(self.disk.remove_file(path));
        }
    }
}

/// Whether a name is one that a temporary file of ours bears.
pub(crate) fn is_temporary(name: &str) -> bool {
    name.strip_prefix(TEMPORARY).is_some_and(crate::names::is_hash)
}

/// Removes the temporary files of writers that died: only regular files whose names are of our making.
/// Failing to do so harms nothing.
pub(crate) fn sweep(disk: &dyn Disk, folder: &Path) {
    let Ok(entries) = disk.entries(folder) else { return };
    for Entry { name, .. } in entries.flatten() {
        if !name.to_str().is_some_and(is_temporary) {
            continue;
        }
        let path = folder.join(&name);
        let Ok(meta) = disk.look(&path) else { continue };
        let age = meta.modified.and_then(|time| SystemTime::now().duration_since(time).ok());
        if meta.kind == Kind::File && age.is_some_and(|age| age > STALE) {
            let removed = disk.remove_file(&path).is_ok();
            tracing::debug!(path = %path.display(), removed, "a writer died and left a file");
        }
    }
}
