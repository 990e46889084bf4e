//! The session that a fork copies, where it lies in another state dir.

use std::path::Path;

use session_core::{Mount, Purpose};

/// More parts than any agent keeps of one session; what another agent made there may be without end.
const PARTS: usize = 8;

/// The session's file and what lies beside it under its name, such as the log of a database, to be read. What is a link is
/// left out: it could lead to anything.
pub(crate) fn mounts(file: &Path) -> Vec<Mount> {
    let shown = |path: &Path| Mount::read_only(path, Purpose::Original);
    let mut mounts = vec![shown(file)];
    let (Some(folder), Some(name)) = (file.parent(), file.file_stem()) else { return mounts };
    let parts = folder.read_dir().into_iter().flatten().flatten().filter(|entry| {
        let is_part = entry.file_name().as_encoded_bytes().starts_with(name.as_encoded_bytes());
        is_part && entry.file_type().is_ok_and(|kind| kind.is_file() || kind.is_dir()) && entry.path() != file
    });
    mounts.extend(parts.take(PARTS).map(|entry| shown(&entry.path()).optional()));
    mounts
}
