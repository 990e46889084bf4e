//! Looks at a tree through handles of its folders: a link is never followed, a pipe or device never opened.

use std::ffi::OsStr;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use rustix::fs::{AtFlags, CWD, Dir, FileType, Mode, OFlags, Stat};
use serde::{Deserialize, Serialize};

/// What tells that a file, link or folder is what it was, without reading it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Stamp {
    ino: u64,
    pub(crate) size: u64,
    /// Nanoseconds since the epoch.
    mtime: i64,
    /// Set by the kernel alone, so that a modification time that was set back gives nothing away.
    ctime: i64,
    mode: u32,
}

impl Stamp {
    /// Permissions: `0o777` and below.
    pub(crate) const fn mode(&self) -> u16 {
        (self.mode & 0o777) as u16
    }

    /// Whether it is older than this moment, so that what changed since would have another.
    pub(crate) fn is_before(&self, moment: Moment) -> bool {
        // Some file systems count in seconds, or two.
        let coarse = self.mtime % SECOND == 0 && self.ctime % SECOND == 0;
        let margin = if coarse { 3 * SECOND } else { MARGIN };
        self.mtime.max(self.ctime) < moment.0.saturating_sub(margin)
    }
}

const SECOND: i64 = 1_000_000_000;
/// The kernel's clock for files moves in steps of up to 10 ms.
const MARGIN: i64 = 50_000_000;

/// A moment, in nanoseconds since the epoch.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Moment(i64);

impl Moment {
    pub(crate) fn now() -> Self {
        let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
        Self(i64::try_from(since.as_nanos()).unwrap_or(i64::MAX))
    }
}

/// What stands under a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Sort {
    File,
    Link,
    Folder,
    /// A socket, a pipe, a device.
    Special,
}

/// What was seen at a look.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Look {
    pub(crate) dev: u64,
    pub(crate) ino: u64,
    pub(crate) sort: Sort,
    pub(crate) stamp: Stamp,
}

#[expect(clippy::unnecessary_cast, reason = "the types of the fields differ between systems")]
impl From<Stat> for Look {
    fn from(stat: Stat) -> Self {
        let sort = match FileType::from_raw_mode(stat.st_mode) {
            FileType::RegularFile => Sort::File,
            FileType::Symlink => Sort::Link,
            FileType::Directory => Sort::Folder,
            _ => Sort::Special,
        };
        let nanos = |seconds: i64, nanos: i64| seconds.saturating_mul(SECOND).saturating_add(nanos);
        let stamp = Stamp {
            ino: stat.st_ino as u64,
            size: stat.st_size as u64,
            mtime: nanos(stat.st_mtime as i64, stat.st_mtime_nsec as i64),
            ctime: nanos(stat.st_ctime as i64, stat.st_ctime_nsec as i64),
            mode: stat.st_mode as u32,
        };
        Self { dev: stat.st_dev as u64, ino: stat.st_ino as u64, sort, stamp }
    }
}

/// Looks at what stands under a name of a folder.
pub(crate) fn look(folder: impl AsFd, name: &[u8]) -> io::Result<Look> {
    Ok(rustix::fs::statat(folder, name, AtFlags::SYMLINK_NOFOLLOW)?.into())
}

/// Looks at what is open.
pub(crate) fn look_at(handle: impl AsFd) -> io::Result<Look> {
    Ok(rustix::fs::fstat(handle)?.into())
}

const FOLDER: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);
const FILE: OFlags = OFlags::RDONLY
    .union(OFlags::NOFOLLOW)
    .union(OFlags::NONBLOCK)
    .union(OFlags::NOCTTY)
    .union(OFlags::CLOEXEC);

/// Opens the top of a tree, by a real path.
pub(crate) fn top(root: &Path) -> io::Result<OwnedFd> {
    Ok(rustix::fs::openat(CWD, root, FOLDER, Mode::empty())?)
}

/// Opens a folder in a folder.
pub(crate) fn folder(parent: impl AsFd, name: &[u8]) -> io::Result<OwnedFd> {
    Ok(rustix::fs::openat(parent, name, FOLDER, Mode::empty())?)
}

/// Opens a folder below the top of a tree, step by step. The empty path is the top.
pub(crate) fn below(top: impl AsFd, path: &[u8]) -> io::Result<OwnedFd> {
    let mut names = path.split(|byte| *byte == b'/');
    let first = names.next().filter(|name| !name.is_empty()).unwrap_or(b".");
    let mut open = folder(top, first)?;
    for name in names {
        open = folder(&open, name)?;
    }
    Ok(open)
}

/// Opens a file in a folder for reading; never waits for a pipe.
pub(crate) fn file(parent: impl AsFd, name: &[u8]) -> io::Result<std::fs::File> {
    Ok(rustix::fs::openat(parent, name, FILE, Mode::empty())?.into())
}

/// Where a link leads.
pub(crate) fn target(parent: impl AsFd, name: &[u8]) -> io::Result<Vec<u8>> {
    Ok(rustix::fs::readlinkat(parent, name, Vec::new())?.into_bytes())
}

/// The names in a folder, in the order of their bytes.
pub(crate) fn names(folder: impl AsFd) -> io::Result<Vec<Vec<u8>>> {
    let mut names = Vec::new();
    // Opened anew, by its name in itself, it would have to be one that may be entered.
    for entry in Dir::new(folder.as_fd().try_clone_to_owned()?)? {
        let entry = entry?;
        let name = entry.file_name().to_bytes();
        if !matches!(name, b"." | b"..") {
            names.push(name.to_vec());
        }
    }
    Ok(in_order(names))
}

/// Names in the order of their bytes, each once: one that was removed and made again while they were listed may have come twice.
fn in_order(mut names: Vec<Vec<u8>>) -> Vec<Vec<u8>> {
    names.sort_unstable();
    names.dedup();
    names
}

/// Whether something is mounted right at a name of a folder. `None`: this system does not tell.
pub(crate) fn is_mounted(folder: impl AsFd, name: &[u8]) -> Option<bool> {
    #[cfg(target_os = "linux")]
    {
        use rustix::fs::{StatxAttributes, StatxFlags};
        let seen = rustix::fs::statx(folder, name, AtFlags::SYMLINK_NOFOLLOW, StatxFlags::empty()).ok()?;
        let tells = seen.stx_attributes_mask.contains(StatxAttributes::MOUNT_ROOT);
        tells.then(|| seen.stx_attributes.contains(StatxAttributes::MOUNT_ROOT))
    }
    #[cfg(not(target_os = "linux"))]
    {
        let _ = (folder, name);
        None
    }
}

/// A name within a folder, both as bytes.
pub(crate) fn join(folder: &[u8], name: &[u8]) -> Vec<u8> {
    let mut path = Vec::with_capacity(folder.len() + 1 + name.len());
    path.extend_from_slice(folder);
    if !folder.is_empty() {
        path.push(b'/');
    }
    path.extend_from_slice(name);
    path
}

/// Bytes as a path.
pub(crate) fn path(bytes: &[u8]) -> &Path {
    Path::new(OsStr::from_bytes(bytes))
}

#[cfg(test)]
mod tests {
    use super::{MARGIN, Moment, SECOND, Stamp, in_order};

    #[test]
    fn a_name_that_is_listed_twice_is_one_name() {
        let listed = [&b"b"[..], b"a", b"b", b"\xff"].map(<[u8]>::to_vec).to_vec();
        assert_eq!(in_order(listed), [&b"a"[..], b"b", b"\xff"]);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn what_is_mounted_at_a_name_is_told() {
        let top = super::top(std::path::Path::new("/")).unwrap();
        assert_eq!(super::is_mounted(&top, b"proc"), Some(true));
        assert_eq!(super::is_mounted(&top, b"no such name"), None);
        let proc = super::folder(&top, b"proc").unwrap();
        assert_eq!(super::is_mounted(&proc, b"version"), Some(false));
    }

    #[test]
    fn only_a_stamp_that_a_later_change_would_not_have_is_trusted() {
        let stamp = |mtime, ctime| Stamp { ino: 1, size: 1, mtime, ctime, mode: 0o100_644 };
        let seen = 1_000 * SECOND + 7;
        let before = |mtime, ctime| stamp(mtime, ctime).is_before(Moment(seen));
        assert!(before(seen - MARGIN - 1, seen - MARGIN - 1));
        assert!(!before(seen - MARGIN, 1), "by the time of its content");
        assert!(!before(1, seen - MARGIN), "by the time of any change, though its content claims to be old");
        assert!(!before(seen + SECOND, 1), "of the future");
        assert!(!before(998 * SECOND, 998 * SECOND), "a clock that counts in seconds may not have moved");
        assert!(before(997 * SECOND, 997 * SECOND));
    }
}
