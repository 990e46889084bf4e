//! Opening files and folders that are what they should be: no link is followed, nothing blocks, nothing is
//! readable for others, whatever the umask.

use std::fs::{self, File, Metadata, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};

use session_core::error::{StoreError, StoreErrorKind};

use crate::error::{At, Finding};

/// Why a file could not be opened.
#[derive(Debug)]
pub(crate) enum Unopened {
    /// There is nothing.
    Absent,
    /// There is something else: a link, a pipe, a folder.
    NotAFile(&'static str),
    /// A system call failed.
    Failed(io::Error),
}

impl Unopened {
    /// The error, where nothing at this path means that its folder has gone.
    pub(crate) fn at(self, at: At<'_>, wrong_kind: StoreErrorKind) -> StoreError {
        match self {
            Self::Absent => at.gone(at.path.parent().unwrap_or(at.path)),
            Self::NotAFile(what) => at.error(wrong_kind, Finding::NotAFile(what)),
            Self::Failed(error) => at.io(error),
        }
    }
}

/// Opens a regular file for reading.
pub(crate) fn open_to_read(path: &Path) -> Result<(File, Metadata), Unopened> {
    open(path, OpenOptions::new().read(true))
}

/// Opens or creates a regular file for reading and writing, private to its owner.
pub(crate) fn open_to_write(path: &Path) -> Result<(File, Metadata), Unopened> {
    let (file, metadata) = open(path, OpenOptions::new().read(true).write(true).create(true))?;
    make_private(&file, &metadata).map_err(Unopened::Failed)?;
    Ok((file, metadata))
}

/// Creates a file that was not there, private to its owner.
pub(crate) fn create_new(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    let file = private_options(options.write(true).create_new(true)).open(path)?;
    make_private(&file, &file.metadata()?)?;
    Ok(file)
}

fn open(path: &Path, options: &mut OpenOptions) -> Result<(File, Metadata), Unopened> {
    let file = private_options(options).open(path).map_err(|error| match fs::symlink_metadata(path) {
        _ if error.kind() == io::ErrorKind::NotFound => Unopened::Absent,
        Ok(metadata) if !metadata.is_file() => Unopened::NotAFile(describe(&metadata)),
        _ => Unopened::Failed(error),
    })?;
    let metadata = file.metadata().map_err(Unopened::Failed)?;
    if metadata.is_file() { Ok((file, metadata)) } else { Err(Unopened::NotAFile(describe(&metadata))) }
}

/// What stands there, in words.
pub(crate) fn describe(metadata: &Metadata) -> &'static str {
    if metadata.is_symlink() {
        "a symbolic link"
    } else if metadata.is_dir() {
        "a directory"
    } else if metadata.is_file() {
        "a file"
    } else {
        "a pipe, a socket or a device"
    }
}

/// Without `O_NONBLOCK`, opening a pipe would wait for its other end. (std adds `O_CLOEXEC`.)
#[cfg(unix)]
fn private_options(options: &mut OpenOptions) -> &mut OpenOptions {
    use std::os::unix::fs::OpenOptionsExt as _;

    use rustix::fs::OFlags;
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY;
    options.mode(0o600).custom_flags(flags.bits().cast_signed())
}

#[cfg(not(unix))]
fn private_options(options: &mut OpenOptions) -> &mut OpenOptions {
    options
}

#[cfg(unix)]
fn make_private(file: &File, metadata: &Metadata) -> io::Result<()> {
    use std::os::unix::fs::PermissionsExt as _;
    if metadata.permissions().mode() & 0o7777 == 0o600 {
        return Ok(());
    }
    file.set_permissions(fs::Permissions::from_mode(0o600))
}

#[cfg(not(unix))]
#[expect(clippy::unnecessary_wraps, reason = "fails on Unix")]
const fn make_private(_: &File, _: &Metadata) -> io::Result<()> {
    Ok(())
}

/// Whether the open file still is what the path names.
#[cfg(unix)]
pub(crate) fn still_at(metadata: &Metadata, path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok_and(|there| same(metadata, &there))
}

/// Whether both are of one file.
#[cfg(unix)]
pub(crate) fn same(a: &Metadata, b: &Metadata) -> bool {
    use std::os::unix::fs::MetadataExt as _;
    (a.dev(), a.ino()) == (b.dev(), b.ino())
}

#[cfg(not(unix))]
pub(crate) const fn same(_: &Metadata, _: &Metadata) -> bool {
    true
}

/// An open file cannot be removed or replaced here.
#[cfg(not(unix))]
pub(crate) const fn still_at(_: &Metadata, _: &Path) -> bool {
    true
}

/// A folder of the store, open so that a change of its entries can be made durable.
#[derive(Debug)]
pub(crate) struct Folder {
    path: PathBuf,
    #[cfg(unix)]
    handle: File,
}

impl Folder {
    /// Opens a folder. A link in its place is not followed.
    #[cfg(unix)]
    pub(crate) fn open(operation: &'static str, path: PathBuf) -> Result<Self, StoreError> {
        use std::os::unix::fs::OpenOptionsExt as _;

        use rustix::fs::OFlags;
        let flags = (OFlags::NOFOLLOW | OFlags::DIRECTORY).bits().cast_signed();
        match OpenOptions::new().read(true).custom_flags(flags).open(&path) {
            Ok(handle) => Ok(Self { path, handle }),
            Err(error) => Err(Self::unopened(At::new(operation, &path), error)),
        }
    }

    /// Looks for a folder.
    #[cfg(not(unix))]
    pub(crate) fn open(operation: &'static str, path: PathBuf) -> Result<Self, StoreError> {
        match fs::symlink_metadata(&path) {
            Ok(metadata) if metadata.is_dir() => Ok(Self { path }),
            Ok(_) => Err(Self::unopened(At::new(operation, &path), io::ErrorKind::NotADirectory.into())),
            Err(error) => Err(Self::unopened(At::new(operation, &path), error)),
        }
    }

    fn unopened(at: At<'_>, error: io::Error) -> StoreError {
        match fs::symlink_metadata(at.path) {
            _ if error.kind() == io::ErrorKind::NotFound => at.gone(at.path),
            Ok(metadata) if !metadata.is_dir() => {
                at.error(StoreErrorKind::Other, Finding::NotADirectory(describe(&metadata)))
            }
            _ => at.io(error),
        }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Makes the entries durable, as far as the file system can: some have no such call, and say so.
    #[cfg(unix)]
    pub(crate) fn sync(&self) -> io::Result<()> {
        match self.handle.sync_all() {
            Err(error) if error.kind() == io::ErrorKind::InvalidInput => Ok(()),
            result => result,
        }
    }

    /// There is no such call here.
    #[cfg(not(unix))]
    #[expect(clippy::unnecessary_wraps, clippy::unused_self, reason = "fails on Unix")]
    pub(crate) const fn sync(&self) -> io::Result<()> {
        Ok(())
    }
}
