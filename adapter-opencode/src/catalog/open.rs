//! Folders and files that the agent can write: no link is followed, no pipe waited for, nothing read without end.

#![expect(clippy::disallowed_types, reason = "this room does I/O, on the pool for blocking work")]

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{self, Read as _};
use std::path::{Component, Path};

/// What stands in a place.
#[derive(Debug)]
pub(super) enum Opened<T> {
    Nothing,
    /// A link, or something of another kind; or a file that is too long.
    Unusable,
    There(T),
}

/// A folder below which no link is followed.
#[derive(Debug)]
pub(super) struct Folder {
    #[cfg(unix)]
    handle: File,
    #[cfg(not(unix))]
    path: std::path::PathBuf,
}

impl Folder {
    /// Opens a folder that the agent cannot replace, and from there on the ones that it can.
    pub(super) fn open(trusted: &Path, below: &Path) -> io::Result<Opened<Self>> {
        let mut folder = Self::root(trusted)?;
        for component in below.components() {
            let Opened::There(outer) = folder else { break };
            folder = match component {
                Component::Normal(name) => match name.to_str() {
                    Some(name) => outer.folder(name)?,
                    None => Opened::Unusable,
                },
                _ => Opened::Unusable,
            };
        }
        Ok(folder)
    }

    /// The last names in it that have this end, without it, in their order.
    pub(super) fn names(&self, end: &str, most: usize) -> io::Result<Vec<String>> {
        let mut last = BTreeSet::new();
        self.each_name(&mut |name| {
            if let Some(name) = name.strip_suffix(end) {
                last.insert(name.to_owned());
            }
            if last.len() > most {
                last.pop_first();
            }
        })?;
        Ok(last.into_iter().collect())
    }

    /// Reads a file to its end, if that is not too far.
    pub(super) fn read(&self, name: &str, limit: u64) -> io::Result<Opened<Vec<u8>>> {
        let file = match self.file(name)? {
            Opened::Nothing => return Ok(Opened::Nothing),
            Opened::Unusable => return Ok(Opened::Unusable),
            Opened::There(file) => file,
        };
        let metadata = file.metadata()?;
        if !metadata.is_file() || metadata.len() > limit {
            return Ok(Opened::Unusable);
        }
        let mut data = Vec::new();
        // It may grow meanwhile.
        file.take(limit + 1).read_to_end(&mut data)?;
        Ok(if data.len() as u64 > limit { Opened::Unusable } else { Opened::There(data) })
    }
}

#[cfg(unix)]
mod system {
    use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags, openat, statat};
    use rustix::io::Errno;

    use super::*;

    const COMMON: OFlags =
        OFlags::RDONLY.union(OFlags::NONBLOCK).union(OFlags::NOCTTY).union(OFlags::CLOEXEC);

    impl Folder {
        pub(super) fn root(path: &Path) -> io::Result<Opened<Self>> {
            opened(rustix::fs::open(path, COMMON | OFlags::DIRECTORY, Mode::empty()))
                .map(|opened| opened.map(|handle| Self { handle }))
        }

        /// A folder in this one.
        pub(in super::super) fn folder(&self, name: &str) -> io::Result<Opened<Self>> {
            if !is_plain(name) {
                return Ok(Opened::Unusable);
            }
            let flags = COMMON | OFlags::DIRECTORY | OFlags::NOFOLLOW;
            opened(openat(&self.handle, name, flags, Mode::empty()))
                .map(|opened| opened.map(|handle| Self { handle }))
        }

        pub(super) fn file(&self, name: &str) -> io::Result<Opened<File>> {
            if !is_plain(name) {
                return Ok(Opened::Unusable);
            }
            // The kind first: opening a device may have an effect.
            match statat(&self.handle, name, AtFlags::SYMLINK_NOFOLLOW) {
                Ok(stat) if FileType::from_raw_mode(stat.st_mode).is_file() => {}
                Ok(_) => return Ok(Opened::Unusable),
                Err(Errno::NOENT) => return Ok(Opened::Nothing),
                Err(error) => return Err(error.into()),
            }
            opened(openat(&self.handle, name, COMMON | OFlags::NOFOLLOW, Mode::empty()))
        }

        pub(super) fn each_name(&self, each: &mut dyn FnMut(&str)) -> io::Result<()> {
            for entry in Dir::read_from(&self.handle)? {
                if let Ok(name) = entry?.file_name().to_str() {
                    each(name);
                }
            }
            Ok(())
        }
    }

    fn opened(result: Result<std::os::fd::OwnedFd, Errno>) -> io::Result<Opened<File>> {
        match result {
            Ok(handle) => Ok(Opened::There(handle.into())),
            Err(Errno::NOENT) => Ok(Opened::Nothing),
            Err(Errno::LOOP | Errno::NOTDIR) => Ok(Opened::Unusable),
            Err(error) => Err(error.into()),
        }
    }
}

#[cfg(not(unix))]
mod system {
    use super::*;

    impl Folder {
        pub(super) fn root(path: &Path) -> io::Result<Opened<Self>> {
            kind(path.metadata(), std::fs::Metadata::is_dir)
                .map(|opened| opened.map(|()| Self { path: path.to_owned() }))
        }

        /// A folder in this one.
        pub(in super::super) fn folder(&self, name: &str) -> io::Result<Opened<Self>> {
            let path = self.path.join(name);
            if !is_plain(name) {
                return Ok(Opened::Unusable);
            }
            kind(path.symlink_metadata(), std::fs::Metadata::is_dir)
                .map(|opened| opened.map(|()| Self { path }))
        }

        pub(super) fn file(&self, name: &str) -> io::Result<Opened<File>> {
            let path = self.path.join(name);
            if !is_plain(name) {
                return Ok(Opened::Unusable);
            }
            match kind(path.symlink_metadata(), std::fs::Metadata::is_file)? {
                Opened::There(()) => File::open(path).map(Opened::There),
                Opened::Nothing => Ok(Opened::Nothing),
                Opened::Unusable => Ok(Opened::Unusable),
            }
        }

        pub(super) fn each_name(&self, each: &mut dyn FnMut(&str)) -> io::Result<()> {
            for entry in std::fs::read_dir(&self.path)? {
                if let Some(name) = entry?.file_name().to_str() {
                    each(name);
                }
            }
            Ok(())
        }
    }

    fn kind(
        looked: io::Result<std::fs::Metadata>,
        is_wanted: fn(&std::fs::Metadata) -> bool,
    ) -> io::Result<Opened<()>> {
        match looked {
            Ok(metadata) if is_wanted(&metadata) => Ok(Opened::There(())),
            Ok(_) => Ok(Opened::Unusable),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Opened::Nothing),
            Err(error) => Err(error),
        }
    }
}

impl<T> Opened<T> {
    fn map<U>(self, with: impl FnOnce(T) -> U) -> Opened<U> {
        match self {
            Self::Nothing => Opened::Nothing,
            Self::Unusable => Opened::Unusable,
            Self::There(there) => Opened::There(with(there)),
        }
    }
}

/// Whether the name leads to something in the folder itself.
fn is_plain(name: &str) -> bool {
    let mut components = Path::new(name).components();
    matches!((components.next(), components.next()), (Some(Component::Normal(part)), None) if part == name)
}
