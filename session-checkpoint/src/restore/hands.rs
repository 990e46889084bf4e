//! What putting a tree back asks of a file system. Every system call on the tree goes through here, so that tests can cut it
//! off at any of them, and let any of them fail.
//!
//! A name is that of an entry of the open folder beside it, or `.`; none is followed where it is a link.

use std::ffi::OsStr;
use std::fmt::Debug;
use std::io;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::path::Path;

use rustix::fs::{self, AtFlags, FileType, Mode, OFlags, RenameFlags, Stat};
use rustix::io::Errno;

use super::durable::SyncFn;

/// What is known of something without reading it. Two that are equal are of the same thing, unchanged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Seen {
    pub(super) kind: Kind,
    /// `0o777` and below.
    pub(super) mode: u16,
    pub(super) bytes: u64,
    pub(super) names: u64,
    pub(super) owner: (u32, u32),
    /// Device and inode.
    pub(super) identity: (i128, i128),
    /// When its content and when anything of it changed: seconds and nanoseconds.
    times: [(i128, i128); 2],
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    File,
    Folder,
    Link,
    Other,
}

impl Seen {
    /// Whether it had several names, and nothing else can be seen to have changed but those. To take one of them away touches
    /// the times of all.
    pub(super) fn lost_a_name(&self, now: &Self) -> bool {
        let [changed, _] = self.times;
        let then = Self { names: now.names, times: [changed, now.times[1]], ..*self };
        self.names > 1 && then == *now
    }

    fn of(stat: &Stat) -> Self {
        let kind = match FileType::from_raw_mode(stat.st_mode) {
            FileType::RegularFile => Kind::File,
            FileType::Directory => Kind::Folder,
            FileType::Symlink => Kind::Link,
            _ => Kind::Other,
        };
        let mode = Mode::from_raw_mode(stat.st_mode) & Mode::from_raw_mode(0o777);
        Self {
            kind,
            mode: u16::try_from(mode.as_raw_mode()).expect("nine bits"),
            bytes: u64::try_from(stat.st_size).unwrap_or(0),
            names: u64::try_from(i128::from(stat.st_nlink)).unwrap_or(u64::MAX),
            owner: (stat.st_uid, stat.st_gid),
            identity: (i128::from(stat.st_dev), i128::from(stat.st_ino)),
            times: [
                (i128::from(stat.st_mtime), i128::from(stat.st_mtime_nsec)),
                (i128::from(stat.st_ctime), i128::from(stat.st_ctime_nsec)),
            ],
        }
    }
}

/// A file system, as far as it is needed.
pub(super) trait Hands: Debug + Sync {
    /// How other threads make something durable meanwhile; `None`: they do not.
    fn sync_elsewhere(&self) -> Option<SyncFn>;
    fn open_root(&self, path: &Path) -> io::Result<OwnedFd>;
    /// Opens a folder in a folder.
    fn enter(&self, folder: BorrowedFd<'_>, name: &OsStr) -> io::Result<OwnedFd>;
    fn look(&self, folder: BorrowedFd<'_>, name: &OsStr) -> io::Result<Seen>;
    /// The names in a folder.
    fn names(&self, folder: BorrowedFd<'_>) -> io::Result<Vec<Vec<u8>>>;
    fn target(&self, folder: BorrowedFd<'_>, name: &OsStr) -> io::Result<Vec<u8>>;
    /// Opens what stands there to be read. Nothing is waited for.
    fn open(&self, folder: BorrowedFd<'_>, name: &OsStr) -> io::Result<OwnedFd>;
    fn look_at(&self, file: BorrowedFd<'_>) -> io::Result<Seen>;
    fn read(&self, file: BorrowedFd<'_>, buffer: &mut [u8]) -> io::Result<usize>;
    /// Makes a file for its owner alone, to be written.
    fn make(&self, folder: BorrowedFd<'_>, name: &OsStr) -> io::Result<OwnedFd>;
    fn write(&self, file: BorrowedFd<'_>, bytes: &[u8]) -> io::Result<usize>;
    fn give(&self, file: BorrowedFd<'_>, owner: Option<u32>, group: u32) -> io::Result<()>;
    fn set_mode(&self, file: BorrowedFd<'_>, mode: u16) -> io::Result<()>;
    /// Makes a file with its permissions, or the entries of a folder, durable.
    fn sync(&self, file: BorrowedFd<'_>) -> io::Result<()>;
    /// Makes a folder with these permissions, or with those of them that the process does not hide.
    fn make_folder(&self, folder: BorrowedFd<'_>, name: &OsStr, mode: u16) -> io::Result<()>;
    fn make_link(&self, folder: BorrowedFd<'_>, name: &OsStr, target: &OsStr) -> io::Result<()>;
    /// Sets the permissions of a folder in a folder.
    fn set_folder_mode(&self, folder: BorrowedFd<'_>, name: &OsStr, mode: u16) -> io::Result<()>;
    /// Moves an entry over another, which is there.
    fn replace(&self, folder: BorrowedFd<'_>, from: &OsStr, to: &OsStr) -> io::Result<()>;
    /// Moves an entry to a name that nothing has.
    fn put(&self, folder: BorrowedFd<'_>, from: &OsStr, to: &OsStr) -> io::Result<()>;
    /// Removes a file or a link.
    fn remove(&self, folder: BorrowedFd<'_>, name: &OsStr) -> io::Result<()>;
    /// Removes a folder that is empty.
    fn remove_folder(&self, folder: BorrowedFd<'_>, name: &OsStr) -> io::Result<()>;
}

/// The file system of this machine.
#[derive(Debug)]
pub(super) struct Real;

const FOLDER: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

fn mode(bits: u16) -> Mode {
    Mode::from_raw_mode(bits.into())
}

impl Hands for Real {
    fn sync_elsewhere(&self) -> Option<SyncFn> {
        Some(|file| Ok(fs::fsync(file)?))
    }

    fn open_root(&self, path: &Path) -> io::Result<OwnedFd> {
        Ok(fs::open(path, FOLDER, Mode::empty())?)
    }

    fn enter(&self, folder: BorrowedFd<'_>, name: &OsStr) -> io::Result<OwnedFd> {
        Ok(fs::openat(folder, name, FOLDER, Mode::empty())?)
    }

    fn look(&self, folder: BorrowedFd<'_>, name: &OsStr) -> io::Result<Seen> {
        Ok(Seen::of(&fs::statat(folder, name, AtFlags::SYMLINK_NOFOLLOW)?))
    }

    fn names(&self, folder: BorrowedFd<'_>) -> io::Result<Vec<Vec<u8>>> {
        let mut names = Vec::new();
        for entry in fs::Dir::read_from(folder)? {
            names.push(entry?.file_name().to_bytes().to_owned());
        }
        Ok(names)
    }

    fn target(&self, folder: BorrowedFd<'_>, name: &OsStr) -> io::Result<Vec<u8>> {
        Ok(fs::readlinkat(folder, name, Vec::new())?.into_bytes())
    }

    fn open(&self, folder: BorrowedFd<'_>, name: &OsStr) -> io::Result<OwnedFd> {
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
        Ok(fs::openat(folder, name, flags, Mode::empty())?)
    }

    fn look_at(&self, file: BorrowedFd<'_>) -> io::Result<Seen> {
        Ok(Seen::of(&fs::fstat(file)?))
    }

    fn read(&self, file: BorrowedFd<'_>, buffer: &mut [u8]) -> io::Result<usize> {
        Ok(rustix::io::retry_on_intr(|| rustix::io::read(file, &mut *buffer))?)
    }

    fn make(&self, folder: BorrowedFd<'_>, name: &OsStr) -> io::Result<OwnedFd> {
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        Ok(fs::openat(folder, name, flags, mode(0o600))?)
    }

    fn write(&self, file: BorrowedFd<'_>, bytes: &[u8]) -> io::Result<usize> {
        Ok(rustix::io::retry_on_intr(|| rustix::io::write(file, bytes))?)
    }

    fn give(&self, file: BorrowedFd<'_>, owner: Option<u32>, group: u32) -> io::Result<()> {
        let owner = owner.map(rustix::process::Uid::from_raw);
        Ok(fs::fchown(file, owner, Some(rustix::process::Gid::from_raw(group)))?)
    }

    fn set_mode(&self, file: BorrowedFd<'_>, bits: u16) -> io::Result<()> {
        Ok(fs::fchmod(file, mode(bits))?)
    }

    fn sync(&self, file: BorrowedFd<'_>) -> io::Result<()> {
        Ok(fs::fsync(file)?)
    }

    fn make_folder(&self, folder: BorrowedFd<'_>, name: &OsStr, bits: u16) -> io::Result<()> {
        Ok(fs::mkdirat(folder, name, mode(bits))?)
    }

    fn make_link(&self, folder: BorrowedFd<'_>, name: &OsStr, target: &OsStr) -> io::Result<()> {
        Ok(fs::symlinkat(target, folder, name)?)
    }

    fn set_folder_mode(&self, folder: BorrowedFd<'_>, name: &OsStr, bits: u16) -> io::Result<()> {
        // Permissions cannot be set through a handle that needs none, but through the system's own name for it; and through
        // one that can be read, where it has no such names.
        #[cfg(target_os = "linux")]
        {
            let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            let handle = fs::openat(folder, name, flags, Mode::empty())?;
            let known = format!("/proc/self/fd/{}", std::os::fd::AsRawFd::as_raw_fd(&handle));
            match fs::chmod(known, mode(bits)) {
                Err(Errno::NOENT | Errno::NOTDIR) => {}
                other => return Ok(other?),
            }
        }
        let handle = fs::openat(folder, name, FOLDER, Mode::empty())?;
        Ok(fs::fchmod(handle.as_fd(), mode(bits))?)
    }

    fn replace(&self, folder: BorrowedFd<'_>, from: &OsStr, to: &OsStr) -> io::Result<()> {
        Ok(fs::renameat(folder, from, folder, to)?)
    }

    fn put(&self, folder: BorrowedFd<'_>, from: &OsStr, to: &OsStr) -> io::Result<()> {
        match fs::renameat_with(folder, from, folder, to, RenameFlags::NOREPLACE) {
            // This file system cannot do it as one step.
            Err(Errno::INVAL | Errno::NOSYS | Errno::NOTSUP) => {
                match fs::statat(folder, to, AtFlags::SYMLINK_NOFOLLOW) {
                    Err(Errno::NOENT) => Ok(fs::renameat(folder, from, folder, to)?),
                    Err(error) => Err(error.into()),
                    Ok(_) => Err(Errno::EXIST.into()),
                }
            }
            other => Ok(other?),
        }
    }

    fn remove(&self, folder: BorrowedFd<'_>, name: &OsStr) -> io::Result<()> {
        Ok(fs::unlinkat(folder, name, AtFlags::empty())?)
    }

    fn remove_folder(&self, folder: BorrowedFd<'_>, name: &OsStr) -> io::Result<()> {
        Ok(fs::unlinkat(folder, name, AtFlags::REMOVEDIR)?)
    }
}
