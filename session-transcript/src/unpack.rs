//! Plain files in the place of packed ones.

use std::ffi::OsStr;
use std::fs::{self, File, Metadata};
use std::io::{self, Seek as _, Write as _};
use std::path::Path;

use session_core::TranscriptFormat;
use tempfile::NamedTempFile;

use crate::find::options;
use crate::mend::{no_links, sync_folder};
use crate::packed::{Content, is_packed};
use crate::relocate::same;
use crate::stamp::Stamp;

/// Unpacks a session file to a place beside which nothing else is touched: for an agent of a version that reads no packed
/// ones. The new file is there whole, on the disk, or not at all; the packed one stays. Says how many bytes it holds.
///
/// # Errors
/// When a file is there already, or the packed one is none, is damaged or cut off, is written to meanwhile, or holds more
/// than 4 GiB; then nothing was written.
pub fn unpack_to(packed: &Path, plain: &Path) -> io::Result<u64> {
    let source = Source::open(packed)?;
    let copy = source.copy(plain, &mut |_| Ok(()))?;
    if !source.is_unchanged() {
        return Err(io::Error::other("the packed file was written to meanwhile"));
    }
    name(copy.file, plain)?;
    Ok(copy.bytes)
}

/// Puts a plain file in the place of a packed one that has the size that was seen, and says whether it did.
pub(crate) fn unpack(format: &dyn TranscriptFormat, packed: &Path, bytes: u64) -> io::Result<bool> {
    let is_named =
        |path: &Path| path.file_name().and_then(OsStr::to_str).is_some_and(|it| format.is_packed(it));
    if !is_named(packed) || is_named(&packed.with_extension("")) || !is_packed(packed)? {
        return Ok(false);
    }
    in_place_of(packed, bytes, &mut |_| Ok(()))
}

/// What has been done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Step {
    /// The copy is on the disk, under a name that no agent knows.
    Written,
    /// It holds what the packed file unpacks to.
    Compared,
    /// It has its name, on the disk: from here on, it is the session's file.
    Named,
    /// The packed one is gone.
    Removed,
}

/// Called after each step.
type Watch<'w> = &'w mut dyn FnMut(Step) -> io::Result<()>;

/// The packed file goes last, once the plain one is on the disk and was compared: whoever is killed leaves at least one of
/// them, whole. Where both are left, they hold the same, and the plain one counts.
fn in_place_of(packed: &Path, bytes: u64, watch: Watch<'_>) -> io::Result<bool> {
    let plain = packed.with_extension("");
    let source = Source::open(packed)?;
    if source.stamp.size != bytes {
        return Ok(false);
    }
    let copy = source.copy(&plain, watch)?;
    if !source.is_unchanged() {
        return Ok(false);
    }
    let named = name(copy.file, &plain)?;
    let done = watch(Step::Named);
    // Once it is gone, the plain one is all there is.
    if packed.symlink_metadata().is_ok() {
        if done.is_err() || !source.is_unchanged() {
            // What is packed is newer: an older file may not stand before it.
            take_back(&named, &plain)?;
            return done.map(|()| false);
        }
        fs::remove_file(packed)?;
        sync_folder(parent(packed)?)?;
    }
    watch(Step::Removed)?;
    Ok(true)
}

/// A packed file, as it was when it was opened.
#[derive(Debug)]
struct Source<'p> {
    path: &'p Path,
    file: File,
    metadata: Metadata,
    stamp: Stamp,
}

/// What it holds, on the disk, and how much that is.
#[derive(Debug)]
struct Copy {
    file: NamedTempFile,
    bytes: u64,
}

impl<'p> Source<'p> {
    fn open(path: &'p Path) -> io::Result<Self> {
        let file = no_links(&mut options()).open(path)?;
        let metadata = file.metadata()?;
        if !metadata.is_file() {
            return Err(io::Error::other("not a regular file"));
        }
        let stamp = Stamp::of(&metadata);
        Ok(Self { path, file, metadata, stamp })
    }

    /// Whether its name leads to the same file still, which nobody wrote to.
    fn is_unchanged(&self) -> bool {
        self.path.symlink_metadata().is_ok_and(|now| Stamp::of(&now) == self.stamp)
    }

    fn content(&self) -> io::Result<Content<File>> {
        let content = Content::of(self.file.try_clone()?)?;
        if content.is_packed() { Ok(content) } else { Err(damaged("it is not packed")) }
    }

    /// Unpacks it to a file in the folder of that one, and reads that again.
    fn copy(&self, plain: &Path, watch: Watch<'_>) -> io::Result<Copy> {
        let mut content = self.content()?;
        let mut file = tempfile::Builder::new().prefix(".unpack-").tempfile_in(parent(plain)?)?;
        let bytes = io::copy(&mut content, file.as_file_mut())?;
        if content.is_in_part() {
            return Err(damaged("it cannot be unpacked whole"));
        }
        file.as_file_mut().flush()?;
        file.as_file().set_permissions(self.metadata.permissions())?;
        if let Ok(written) = self.metadata.modified() {
            // Lists go by it.
            file.as_file().set_modified(written)?;
        }
        file.as_file().sync_all()?;
        watch(Step::Written)?;
        file.as_file_mut().rewind()?;
        let mut content = self.content()?;
        if !same(&mut content, file.as_file_mut())? || content.is_in_part() {
            return Err(damaged("what was unpacked is not what it holds"));
        }
        watch(Step::Compared)?;
        Ok(Copy { file, bytes })
    }
}

fn damaged(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what)
}

fn parent(path: &Path) -> io::Result<&Path> {
    path.parent().ok_or_else(|| io::Error::other("a file without a folder"))
}

/// Gives it its name, never over another one, and says which file that is.
fn name(file: NamedTempFile, plain: &Path) -> io::Result<Stamp> {
    let file = file.persist_noclobber(plain).map_err(|error| error.error)?;
    sync_folder(parent(plain)?)?;
    Ok(Stamp::of(&file.metadata()?))
}

/// Removes it again, where it is still what was named.
fn take_back(named: &Stamp, plain: &Path) -> io::Result<()> {
    if Stamp::of(&plain.symlink_metadata()?) == *named {
        fs::remove_file(plain)?;
        sync_folder(parent(plain)?)?;
    }
    Ok(())
}

#[cfg(test)]
#[path = "unpack_tests.rs"]
mod tests;
