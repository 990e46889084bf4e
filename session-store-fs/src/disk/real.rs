//! The disk of this machine.

use std::fs::{self, File, FileType, Metadata, OpenOptions, TryLockError};
use std::io;
use std::path::Path;

use super::{Access, Disk, DiskFile, DiskFolder, Entries, Entry, Kind, Meta};

#[derive(Debug)]
pub(super) struct Real {
    boot: Option<String>,
}

impl Real {
    pub(super) fn new() -> Self {
        // Linux alone has it, as a random UUID: the first half of it is enough.
        let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").ok();
        Self { boot: boot.and_then(|boot| boot.get(..18).map(str::to_owned)) }
    }
}

impl Disk for Real {
    fn open(&self, path: &Path, access: Access) -> io::Result<Box<dyn DiskFile>> {
        let mut options = OpenOptions::new();
        match access {
            Access::Read => options.read(true),
            Access::Write => options.read(true).write(true).create(true),
            Access::New => options.write(true).create_new(true),
        };
        let file = private(&mut options).open(path)?;
        Ok(Box::new(file))
    }

    fn open_folder(&self, path: &Path) -> io::Result<Box<dyn DiskFolder>> {
        imp::open_folder(path)
    }

    fn open_base(&self, path: &Path) -> io::Result<Box<dyn DiskFolder>> {
        imp::open_base(path)
    }

    fn look(&self, path: &Path) -> io::Result<Meta> {
        path.symlink_metadata().map(|metadata| meta(&metadata))
    }

    fn is_folder(&self, path: &Path) -> bool {
        path.is_dir()
    }

    fn entries(&self, folder: &Path) -> io::Result<Entries> {
        let told =
            |entry: fs::DirEntry| Ok(Entry { name: entry.file_name(), kind: kind(entry.file_type()?) });
        let there = move |entry: io::Result<fs::DirEntry>| match entry.and_then(told) {
            // Removed since the folder was read.
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            entry => Some(entry),
        };
        Ok(Box::new(fs::read_dir(folder)?.filter_map(there)))
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        fs::rename(from, to)
    }

    fn remove_file(&self, path: &Path) -> io::Result<()> {
        fs::remove_file(path)
    }

    fn boot(&self) -> Option<&str> {
        self.boot.as_deref()
    }
}

impl DiskFile for File {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        imp::read_at(self, buffer, offset)
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<usize> {
        imp::write_at(self, bytes, offset)
    }

    fn set_len(&self, length: u64) -> io::Result<()> {
        Self::set_len(self, length)
    }

    fn sync_data(&self) -> io::Result<()> {
        Self::sync_data(self)
    }

    fn sync_all(&self) -> io::Result<()> {
        Self::sync_all(self)
    }

    fn meta(&self) -> io::Result<Meta> {
        self.metadata().map(|metadata| meta(&metadata))
    }

    fn make_private(&self) -> io::Result<()> {
        imp::make_private(self)
    }

    fn try_lock(&self) -> io::Result<bool> {
        match Self::try_lock(self) {
            Ok(()) => Ok(true),
            Err(TryLockError::WouldBlock) => Ok(false),
            Err(TryLockError::Error(error)) => Err(error),
        }
    }

    fn unlock(&self) -> io::Result<()> {
        Self::unlock(self)
    }
}

fn kind(found: FileType) -> Kind {
    if found.is_file() {
        Kind::File
    } else if found.is_dir() {
        Kind::Folder
    } else if found.is_symlink() {
        Kind::Link
    } else {
        Kind::Other
    }
}

fn meta(metadata: &Metadata) -> Meta {
    Meta {
        kind: kind(metadata.file_type()),
        length: metadata.len(),
        modified: metadata.modified().ok(),
        #[cfg(unix)]
        unix: imp::unix(metadata),
    }
}

/// Without `O_NONBLOCK`, opening a pipe would wait for its other end. (std adds `O_CLOEXEC`.)
#[cfg(unix)]
fn private(options: &mut OpenOptions) -> &mut OpenOptions {
    use std::os::unix::fs::OpenOptionsExt as _;

    use rustix::fs::OFlags;
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY;
    options.mode(0o600).custom_flags(flags.bits().cast_signed())
}

#[cfg(not(unix))]
fn private(options: &mut OpenOptions) -> &mut OpenOptions {
    options
}

#[cfg(unix)]
mod imp {
    use std::fs::{File, Metadata, Permissions};
    use std::io;
    use std::os::unix::fs::{FileExt as _, MetadataExt as _, PermissionsExt as _};
    use std::path::Path;

    use rustix::fs::{Mode, OFlags};
    use rustix::io::Errno;

    use super::super::{DiskFolder, Meta, Unix};

    const FOLDER: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);

    #[derive(Debug)]
    struct Folder(File);

    pub(super) fn open_folder(path: &Path) -> io::Result<Box<dyn DiskFolder>> {
        folder(rustix::fs::open(path, FOLDER | OFlags::NOFOLLOW, Mode::empty()))
    }

    pub(super) fn open_base(path: &Path) -> io::Result<Box<dyn DiskFolder>> {
        folder(rustix::fs::open(path, FOLDER, Mode::empty()))
    }

    fn folder(opened: Result<std::os::fd::OwnedFd, Errno>) -> io::Result<Box<dyn DiskFolder>> {
        Ok(Box::new(Folder(opened?.into())))
    }

    impl DiskFolder for Folder {
        fn make(&self, name: &str) -> io::Result<bool> {
            match rustix::fs::mkdirat(&self.0, name, Mode::RWXU) {
                Ok(()) => Ok(true),
                Err(Errno::EXIST) => Ok(false),
                Err(error) => Err(error.into()),
            }
        }

        fn enter(&self, name: &str) -> io::Result<Box<dyn DiskFolder>> {
            folder(rustix::fs::openat(&self.0, name, FOLDER | OFlags::NOFOLLOW, Mode::empty()))
        }

        fn meta(&self) -> io::Result<Meta> {
            self.0.metadata().map(|metadata| super::meta(&metadata))
        }

        fn make_private(&self) -> io::Result<()> {
            self.0.set_permissions(Permissions::from_mode(0o700))
        }

        fn sync(&self) -> io::Result<()> {
            self.0.sync_all()
        }
    }

    pub(super) fn unix(metadata: &Metadata) -> Unix {
        Unix {
            mode: metadata.mode() & 0o7777,
            owner: metadata.uid(),
            links: metadata.nlink(),
            identity: (metadata.dev(), metadata.ino()),
        }
    }

    pub(super) fn read_at(file: &File, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        file.read_at(buffer, offset)
    }

    pub(super) fn write_at(file: &File, bytes: &[u8], offset: u64) -> io::Result<usize> {
        file.write_at(bytes, offset)
    }

    pub(super) fn make_private(file: &File) -> io::Result<()> {
        file.set_permissions(Permissions::from_mode(0o600))
    }
}

/// Only that there is a directory can be said here; its access list is inherited from the base.
#[cfg(not(unix))]
mod imp {
    use std::fs::{self, File};
    use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
    use std::path::{Path, PathBuf};

    use super::super::{DiskFolder, Meta};

    #[derive(Debug)]
    struct Folder(PathBuf);

    pub(super) fn open_folder(path: &Path) -> io::Result<Box<dyn DiskFolder>> {
        if fs::symlink_metadata(path)?.is_dir() {
            Ok(Box::new(Folder(path.to_owned())))
        } else {
            Err(io::ErrorKind::NotADirectory.into())
        }
    }

    pub(super) fn open_base(path: &Path) -> io::Result<Box<dyn DiskFolder>> {
        fs::metadata(path)?;
        Ok(Box::new(Folder(path.to_owned())))
    }

    impl DiskFolder for Folder {
        fn make(&self, name: &str) -> io::Result<bool> {
            match fs::create_dir(self.0.join(name)) {
                Ok(()) => Ok(true),
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(false),
                Err(error) => Err(error),
            }
        }

        fn enter(&self, name: &str) -> io::Result<Box<dyn DiskFolder>> {
            open_folder(&self.0.join(name))
        }

        fn meta(&self) -> io::Result<Meta> {
            fs::metadata(&self.0).map(|metadata| super::meta(&metadata))
        }

        fn make_private(&self) -> io::Result<()> {
            Ok(())
        }

        /// There is no such call here.
        fn sync(&self) -> io::Result<()> {
            Ok(())
        }
    }

    pub(super) fn read_at(mut file: &File, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        file.seek(SeekFrom::Start(offset))?;
        file.read(buffer)
    }

    pub(super) fn write_at(mut file: &File, bytes: &[u8], offset: u64) -> io::Result<usize> {
        file.seek(SeekFrom::Start(offset))?;
        file.write(bytes)
    }

    #[expect(clippy::unnecessary_wraps, reason = "fails on Unix")]
    pub(super) const fn make_private(_: &File) -> io::Result<()> {
        Ok(())
    }
}
