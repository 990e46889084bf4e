//! Looking into folders that somebody else writes: what is entered cannot be exchanged on the way, and no link is followed.

use std::io;
use std::path::Path;

use session_core::Timestamp;

pub(crate) use imp::{Dir, look, open_up};

/// What is known of an entry without opening it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Entry {
    pub(crate) is_dir: bool,
    pub(crate) is_file: bool,
    /// Whether it belongs to the user whom this process runs as.
    pub(crate) is_ours: bool,
    /// Bytes of the disk, its share of them where it has several names.
    pub(crate) bytes: u64,
    pub(crate) changed_at: Timestamp,
    /// When it, its name among that, was last changed, where the system tells; nobody can set that.
    pub(crate) touched_at: Timestamp,
    /// What makes it itself.
    pub(crate) id: (u64, u64),
}

/// Opens the folder that these names lead to from a base, which may be reached through links. `None`: there is none, or
/// something else.
pub(crate) fn below(base: &Path, names: &[&str]) -> io::Result<Option<Dir>> {
    let mut dir = Dir::open(base)?;
    for name in names {
        match dir.enter(name.as_ref())? {
            Some(inner) => dir = inner,
            None => return Ok(None),
        }
    }
    Ok(Some(dir))
}

#[cfg(unix)]
mod imp {
    use std::ffi::{OsStr, OsString};
    use std::io;
    use std::os::fd::OwnedFd;
    use std::os::unix::ffi::OsStrExt as _;
    use std::path::Path;

    use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags, Stat};
    use rustix::io::Errno;
    use session_core::Timestamp;

    use super::Entry;

    const DIRECTORY: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);

    /// An open folder.
    pub(crate) struct Dir(OwnedFd);

    impl Dir {
        pub(crate) fn open(path: &Path) -> io::Result<Self> {
            Ok(Self(rustix::fs::open(path, DIRECTORY, Mode::empty())?))
        }

        /// A folder in it. `None`: there is none, or something else.
        pub(crate) fn enter(&self, name: &OsStr) -> io::Result<Option<Self>> {
            match rustix::fs::openat(&self.0, name, DIRECTORY | OFlags::NOFOLLOW, Mode::empty()) {
                Ok(inner) => Ok(Some(Self(inner))),
                Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP | Errno::MLINK) => Ok(None),
                Err(error) => Err(error.into()),
            }
        }

        /// The folder that it lies in now.
        pub(crate) fn parent(&self) -> io::Result<Self> {
            Ok(Self(rustix::fs::openat(&self.0, "..", DIRECTORY, Mode::empty())?))
        }

        pub(crate) fn stat(&self) -> io::Result<Entry> {
            Ok(entry(&rustix::fs::fstat(&self.0)?))
        }

        /// The names in it, as they come.
        pub(crate) fn names(&self) -> io::Result<impl Iterator<Item = io::Result<OsString>>> {
            let entries = rustix::fs::Dir::read_from(&self.0)?;
            Ok(entries.filter_map(|entry| match entry {
                Ok(entry) => {
                    let name = entry.file_name().to_bytes();
                    (name != b"." && name != b"..").then(|| Ok(OsStr::from_bytes(name).to_owned()))
                }
                Err(error) => Some(Err(error.into())),
            }))
        }

        /// What an entry is. `None`: it is gone.
        pub(crate) fn look(&self, name: &OsStr) -> io::Result<Option<Entry>> {
            found(rustix::fs::statat(&self.0, name, AtFlags::SYMLINK_NOFOLLOW))
        }
    }

    /// Lets us into a folder that an agent closed. Where that fails, what comes next says so.
    pub(crate) fn open_up(folder: &Path) {
        drop(Closed::find(folder).and_then(|closed| closed.open_up()));
    }

    /// A folder that may be closed to us. What is put in its place meanwhile, such as a link to another, is not touched.
    #[cfg(any(target_os = "linux", target_os = "android"))]
    struct Closed(OwnedFd);

    #[cfg(any(target_os = "linux", target_os = "android"))]
    impl Closed {
        fn find(folder: &Path) -> io::Result<Self> {
            let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            Ok(Self(rustix::fs::open(folder, flags, Mode::empty())?))
        }

        /// The mode of what is open by its place alone can be set under this name only.
        fn open_up(&self) -> io::Result<()> {
            use std::os::fd::AsRawFd as _;

            let name = format!("/proc/self/fd/{}", self.0.as_raw_fd());
            Ok(rustix::fs::chmod(name, Mode::RWXU)?)
        }
    }

    #[cfg(not(any(target_os = "linux", target_os = "android")))]
    struct Closed(std::path::PathBuf);

    #[cfg(not(any(target_os = "linux", target_os = "android")))]
    impl Closed {
        fn find(folder: &Path) -> io::Result<Self> {
            let is_dir = look(folder)?.is_some_and(|entry| entry.is_dir);
            if is_dir { Ok(Self(folder.to_owned())) } else { Err(io::ErrorKind::NotADirectory.into()) }
        }

        fn open_up(&self) -> io::Result<()> {
            Ok(rustix::fs::chmodat(CWD, &self.0, Mode::RWXU, AtFlags::SYMLINK_NOFOLLOW)?)
        }
    }

    /// What lies at a path.
    pub(crate) fn look(path: &Path) -> io::Result<Option<Entry>> {
        found(rustix::fs::statat(CWD, path, AtFlags::SYMLINK_NOFOLLOW))
    }

    fn found(stat: rustix::io::Result<Stat>) -> io::Result<Option<Entry>> {
        match stat {
            Ok(stat) => Ok(Some(entry(&stat))),
            Err(Errno::NOENT | Errno::NOTDIR) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    fn euid() -> u32 {
        rustix::process::geteuid().as_raw()
    }

    /// The numbers have other types on other systems.
    fn number(value: impl TryInto<u64>) -> u64 {
        value.try_into().unwrap_or_default()
    }

    fn signed(value: impl TryInto<i64>) -> i64 {
        value.try_into().unwrap_or_default()
    }

    fn entry(stat: &Stat) -> Entry {
        let kind = FileType::from_raw_mode(stat.st_mode);
        let is_dir = kind == FileType::Directory;
        let names = if is_dir { 1 } else { number(stat.st_nlink).max(1) };
        let time = |seconds: i64, nanos: i64| {
            Timestamp::from_millis(seconds.saturating_mul(1000).saturating_add(nanos / 1_000_000))
        };
        Entry {
            is_dir,
            is_file: kind == FileType::RegularFile,
            is_ours: stat.st_uid == euid(),
            // Blocks are of 512 bytes, whatever those of the file system are.
            bytes: number(stat.st_blocks).saturating_mul(512) / names,
            changed_at: time(signed(stat.st_mtime), signed(stat.st_mtime_nsec)),
            touched_at: time(signed(stat.st_ctime), signed(stat.st_ctime_nsec)),
            id: (number(stat.st_dev), number(stat.st_ino)),
        }
    }

    #[cfg(test)]
    mod tests {
        use std::fs::{self, Permissions};
        use std::os::unix::fs::{PermissionsExt as _, symlink};

        use super::*;

        fn mode(path: &Path) -> u32 {
            fs::metadata(path).unwrap().permissions().mode() & 0o7777
        }

        #[test]
        fn what_is_put_in_the_place_of_a_closed_folder_keeps_its_mode() {
            let dir = tempfile::tempdir().unwrap();
            let [inside, moved, outside] = ["inside", "moved", "outside"].map(|name| dir.path().join(name));
            for (folder, mode) in [(&inside, 0o500), (&outside, 0o755)] {
                fs::create_dir(folder).unwrap();
                fs::set_permissions(folder, Permissions::from_mode(mode)).unwrap();
            }
            let closed = Closed::find(&inside).unwrap();
            fs::rename(&inside, &moved).unwrap();
            symlink(&outside, &inside).unwrap();
            drop(closed.open_up());
            open_up(&inside);
            assert_eq!(mode(&outside), 0o755, "nothing outside is touched");
            #[cfg(any(target_os = "linux", target_os = "android"))]
            assert_eq!(mode(&moved), 0o700, "what was found is opened, wherever it is now");
        }
    }
}

#[cfg(not(unix))]
mod imp {
    use std::ffi::{OsStr, OsString};
    use std::path::{Path, PathBuf};
    use std::time::UNIX_EPOCH;
    use std::{fs, io};

    use session_core::Timestamp;

    use super::Entry;

    /// A folder by its path.
    pub(crate) struct Dir(PathBuf);

    impl Dir {
        pub(crate) fn open(path: &Path) -> io::Result<Self> {
            fs::metadata(path).map(|_| Self(path.to_owned()))
        }

        pub(crate) fn enter(&self, name: &OsStr) -> io::Result<Option<Self>> {
            let is_dir = self.look(name)?.is_some_and(|entry| entry.is_dir);
            Ok(is_dir.then(|| Self(self.0.join(name))))
        }

        pub(crate) fn parent(&self) -> io::Result<Self> {
            let parent = self.0.parent().ok_or(io::ErrorKind::NotFound)?;
            Ok(Self(parent.to_owned()))
        }

        pub(crate) fn stat(&self) -> io::Result<Entry> {
            look(&self.0)?.ok_or_else(|| io::ErrorKind::NotFound.into())
        }

        pub(crate) fn names(&self) -> io::Result<impl Iterator<Item = io::Result<OsString>>> {
            Ok(fs::read_dir(&self.0)?.map(|entry| entry.map(|entry| entry.file_name())))
        }

        pub(crate) fn look(&self, name: &OsStr) -> io::Result<Option<Entry>> {
            look(&self.0.join(name))
        }
    }

    pub(crate) const fn open_up(_: &Path) {}

    /// What lies at a path. Owner and blocks are not told here.
    pub(crate) fn look(path: &Path) -> io::Result<Option<Entry>> {
        let metadata = match fs::symlink_metadata(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            metadata => metadata?,
        };
        let since = metadata.modified()?.duration_since(UNIX_EPOCH).unwrap_or_default();
        let changed_at = Timestamp::EPOCH.plus(since);
        Ok(Some(Entry {
            is_dir: metadata.is_dir(),
            is_file: metadata.is_file(),
            is_ours: true,
            bytes: if metadata.is_file() { metadata.len() } else { 0 },
            changed_at,
            touched_at: changed_at,
            id: (0, 0),
        }))
    }
}
