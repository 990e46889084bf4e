//! Opening files and folders that are what they should be: no link is followed, nothing blocks, nothing is
//! readable for others, whatever the umask. And reading and writing them to the end.

use std::io;
use std::path::{Path, PathBuf};

use session_core::error::{StoreError, StoreErrorKind};

use crate::disk::{Access, Disk, DiskFile, DiskFolder, Kind, Meta};
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
pub(crate) fn open_to_read(disk: &dyn Disk, path: &Path) -> Result<(Box<dyn DiskFile>, Meta), Unopened> {
    open(disk, path, Access::Read)
}

/// Opens or creates a regular file for reading and writing, private to its owner.
pub(crate) fn open_to_write(disk: &dyn Disk, path: &Path) -> Result<(Box<dyn DiskFile>, Meta), Unopened> {
    let file = reach(disk, path, Access::Write)?;
    let meta = writable(&*file)?;
    Ok((file, meta))
}

/// Opens or creates a file whose lock is wanted. Only what has the lock is looked at: see [`writable`].
pub(crate) fn open_to_lock(disk: &dyn Disk, path: &Path) -> Result<Box<dyn DiskFile>, Unopened> {
    reach(disk, path, Access::Write)
}

/// What this file is: a regular one, and private to its owner from now on.
pub(crate) fn writable(file: &dyn DiskFile) -> Result<Meta, Unopened> {
    let meta = regular(file)?;
    make_private(file, &meta).map_err(Unopened::Failed)?;
    Ok(meta)
}

/// Creates a file that was not there, private to its owner.
pub(crate) fn create_new(disk: &dyn Disk, path: &Path) -> io::Result<Box<dyn DiskFile>> {
    let file = disk.open(path, Access::New)?;
    make_private(&*file, &file.meta()?)?;
    Ok(file)
}

fn open(disk: &dyn Disk, path: &Path, access: Access) -> Result<(Box<dyn DiskFile>, Meta), Unopened> {
    let file = reach(disk, path, access)?;
    let meta = regular(&*file)?;
    Ok((file, meta))
}

fn reach(disk: &dyn Disk, path: &Path, access: Access) -> Result<Box<dyn DiskFile>, Unopened> {
    disk.open(path, access).map_err(|error| match disk.look(path) {
        _ if error.kind() == io::ErrorKind::NotFound => Unopened::Absent,
        Ok(meta) if meta.kind != Kind::File => Unopened::NotAFile(meta.kind.describe()),
        _ => Unopened::Failed(error),
    })
}

fn regular(file: &dyn DiskFile) -> Result<Meta, Unopened> {
    let meta = file.meta().map_err(Unopened::Failed)?;
    if meta.kind == Kind::File { Ok(meta) } else { Err(Unopened::NotAFile(meta.kind.describe())) }
}

/// A umask may have taken rights away, or somebody given some.
fn make_private(file: &dyn DiskFile, meta: &Meta) -> io::Result<()> {
    #[cfg(unix)]
    if meta.unix.mode == 0o600 {
        return Ok(());
    }
    #[cfg(not(unix))]
    let _ = meta;
    file.make_private()
}

/// Whether the open file still has a name.
#[cfg(unix)]
pub(crate) const fn is_named(meta: &Meta) -> bool {
    meta.unix.links > 0
}

/// An open file cannot be removed or replaced here.
#[cfg(not(unix))]
pub(crate) const fn is_named(_: &Meta) -> bool {
    true
}

/// Whether both are of one file.
#[cfg(unix)]
pub(crate) fn same(a: &Meta, b: &Meta) -> bool {
    a.unix.identity == b.unix.identity
}

#[cfg(not(unix))]
pub(crate) const fn same(_: &Meta, _: &Meta) -> bool {
    true
}

/// Reads this part of a file, or as much of it as is there.
pub(crate) fn read(file: &dyn DiskFile, from: u64, length: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    read_on(file, &mut bytes, from, length)?;
    Ok(bytes)
}

/// Adds this part of a file to what was read of it before.
pub(crate) fn read_on(file: &dyn DiskFile, bytes: &mut Vec<u8>, from: u64, length: u64) -> io::Result<()> {
    let old = bytes.len();
    let wanted = usize::try_from(length).map_err(|_| io::ErrorKind::OutOfMemory)?;
    bytes.try_reserve_exact(wanted)?;
    bytes.resize(old + wanted, 0);
    let mut done = 0;
    while done < wanted {
        match file.read_at(&mut bytes[old + done..], from + done as u64) {
            Ok(0) => break,
            Ok(count) => done += count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    bytes.truncate(old + done);
    Ok(())
}

/// Writes all of this to a place in a file.
pub(crate) fn write(file: &dyn DiskFile, mut bytes: &[u8], mut offset: u64) -> io::Result<()> {
    while !bytes.is_empty() {
        match file.write_at(bytes, offset) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(count) => {
                bytes = &bytes[count..];
                offset += count as u64;
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// A file as a stream, from its beginning.
#[derive(Debug)]
pub(crate) struct Stream {
    file: Box<dyn DiskFile>,
    offset: u64,
}

impl Stream {
    pub(crate) fn new(file: Box<dyn DiskFile>) -> Self {
        Self { file, offset: 0 }
    }
}

impl io::Read for Stream {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.file.read_at(buffer, self.offset)?;
        self.offset += count as u64;
        Ok(count)
    }
}

/// A folder of the store, open so that a change of its entries can be made durable.
#[derive(Debug)]
pub(crate) struct Folder {
    path: PathBuf,
    handle: Box<dyn DiskFolder>,
}

impl Folder {
    /// Opens a folder. A link in its place is not followed.
    pub(crate) fn open(disk: &dyn Disk, operation: &'static str, path: PathBuf) -> Result<Self, StoreError> {
        let at = At::new(operation, &path);
        let handle = disk.open_folder(&path).map_err(|error| match disk.look(&path) {
            _ if error.kind() == io::ErrorKind::NotFound => at.gone(&path),
            Ok(meta) if meta.kind != Kind::Folder => {
                at.error(StoreErrorKind::Other, Finding::NotADirectory(meta.kind.describe()))
            }
            _ => at.io(error),
        })?;
        Ok(Self { path, handle })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Makes the entries durable, as far as the file system can.
    pub(crate) fn sync(&self) -> io::Result<()> {
        sync(&*self.handle)
    }
}

/// Some file systems cannot make entries durable, and say so.
pub(crate) fn sync(folder: &dyn DiskFolder) -> io::Result<()> {
    match folder.sync() {
        Err(error) if error.kind() == io::ErrorKind::InvalidInput => Ok(()),
        result => result,
    }
}
