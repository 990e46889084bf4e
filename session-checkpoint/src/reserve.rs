//! Room that is set aside: on a full disk, to drop something needs some before it gives any.

use std::fs;
use std::io::{self, Read as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

/// More than the largest part of a [`forget`](crate::forget) by parts takes, with what SQLite needs beside it.
const BYTES: u64 = 4 << 20;
/// It is set aside only where so many times as much is free.
const FREE: u64 = 4;

fn place(folder: &Path) -> PathBuf {
    folder.join("room.reserve")
}

/// Sets it aside in the folder of the databases, unless it is, or the disk has little. To be without is no trouble yet.
pub(crate) fn keep(folder: &Path) {
    let path = place(folder);
    if path.symlink_metadata().is_ok_and(|meta| meta.len() == BYTES) {
        return;
    }
    if let Err(error) = allocate(folder, &path) {
        tracing::debug!(%error, path = %path.display(), "no room is set aside");
        release(folder);
    }
}

fn allocate(folder: &Path, path: &Path) -> io::Result<()> {
    let space = rustix::fs::statvfs(folder)?;
    if space.f_bavail.saturating_mul(space.f_frsize) < FREE * BYTES {
        return Err(io::ErrorKind::StorageFull.into());
    }
    let mut file = fs::OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o600)
        .custom_flags(rustix::fs::OFlags::NOFOLLOW.bits().cast_signed())
        .open(path)?;
    // A hole would keep no room.
    io::copy(&mut io::repeat(0).take(BYTES), &mut file)?;
    Ok(())
}

/// Lets it go. Says whether there was any.
pub(crate) fn release(folder: &Path) -> bool {
    fs::remove_file(place(folder)).is_ok()
}
