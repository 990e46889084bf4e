//! Room that is set aside: on a full disk, to drop something needs some before it gives any.

use std::fs;
use std::io::{self, Write as _};
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
    file.write_all(&noise())
}

/// A hole would keep no room, nor what a file system makes small.
fn noise() -> Vec<u8> {
    let mut state = 1_u64;
    let words = (0..BYTES / 8).flat_map(|_| {
        // xorshift64
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state.to_le_bytes()
    });
    words.collect()
}

/// Lets it go. Says whether there was any.
pub(crate) fn release(folder: &Path) -> bool {
    fs::remove_file(place(folder)).is_ok()
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    #[test]
    fn nothing_of_it_comes_twice() {
        let noise = super::noise();
        assert_eq!(noise.len() as u64, super::BYTES);
        let words: HashSet<&[u8]> = noise.chunks(8).collect();
        assert_eq!(words.len(), noise.len() / 8);
    }
}
