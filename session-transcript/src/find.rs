//! Where the file is, without ever waiting for a pipe or following a link to something else than a file.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use session_core::Places;
use session_core::error::CatalogError;

use crate::catalog::failed;

/// What lies at the places.
#[derive(Debug)]
pub(crate) enum Found {
    Nothing,
    /// Something that is no file, or that may not be read.
    Unusable(PathBuf),
    File(PathBuf, File),
}

/// Looks at the exact places, then at the children of the folder.
pub(crate) fn find(places: &Places) -> Result<Found, CatalogError> {
    for path in &places.exact {
        match open(path)? {
            Found::Nothing => {}
            found => return Ok(found),
        }
    }
    match &places.in_children_of {
        Some((folder, name)) => among_children(folder, name),
        None => Ok(Found::Nothing),
    }
}

/// Not being allowed to look is an answer: the agents cannot read it either, and say that there is no session.
pub(crate) fn is_denied(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::PermissionDenied
}

fn is_absent(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory | io::ErrorKind::InvalidFilename
    )
}

fn open(path: &Path) -> Result<Found, CatalogError> {
    // The kind first: opening a device may have an effect.
    let opened = fs::metadata(path).and_then(|metadata| {
        if !metadata.is_file() {
            return Ok(None);
        }
        let file = options().open(path)?;
        // Again, of what was really opened.
        Ok(file.metadata()?.is_file().then_some(file))
    });
    match opened {
        Ok(Some(file)) => Ok(Found::File(path.to_owned(), file)),
        Ok(None) => Ok(Found::Unusable(path.to_owned())),
        Err(error) if is_absent(&error) => Ok(Found::Nothing),
        Err(error) if is_denied(&error) || is_loop(&error) => Ok(Found::Unusable(path.to_owned())),
        Err(error) => Err(failed(path, error)),
    }
}

/// Links that lead to each other.
#[cfg(unix)]
fn is_loop(error: &io::Error) -> bool {
    error.raw_os_error() == Some(rustix::io::Errno::LOOP.raw_os_error())
}

#[cfg(not(unix))]
const fn is_loop(_: &io::Error) -> bool {
    false
}

/// Writes a line end behind a last line that has none, and says whether it did. A link is never written through:
/// the agent may have put it there.
pub(crate) fn end_last_line(path: &Path, bytes: u64) -> io::Result<bool> {
    if !fs::symlink_metadata(path)?.is_file() {
        return Err(io::Error::other("not a regular file"));
    }
    let mut file = no_links(options().append(true)).open(path)?;
    let metadata = file.metadata()?;
    if !metadata.is_file() {
        return Err(io::Error::other("not a regular file"));
    }
    if metadata.len() == 0 || metadata.len() != bytes {
        return Ok(false);
    }
    let mut last = [0];
    file.seek(SeekFrom::End(-1))?;
    file.read_exact(&mut last)?;
    if last == *b"\n" {
        return Ok(false);
    }
    file.write_all(b"\n")?;
    Ok(true)
}

#[cfg(unix)]
fn no_links(options: &mut OpenOptions) -> &mut OpenOptions {
    use std::os::unix::fs::OpenOptionsExt;

    let flags = rustix::fs::OFlags::NONBLOCK | rustix::fs::OFlags::NOCTTY | rustix::fs::OFlags::NOFOLLOW;
    options.custom_flags(flags.bits().cast_signed())
}

#[cfg(not(unix))]
const fn no_links(options: &mut OpenOptions) -> &mut OpenOptions {
    options
}

#[cfg(unix)]
fn options() -> OpenOptions {
    use std::os::unix::fs::OpenOptionsExt;

    let mut options = File::options();
    // A pipe that took the file's place meanwhile must not make us wait.
    let flags = rustix::fs::OFlags::NONBLOCK | rustix::fs::OFlags::NOCTTY;
    options.read(true).custom_flags(flags.bits().cast_signed());
    options
}

#[cfg(not(unix))]
fn options() -> OpenOptions {
    let mut options = File::options();
    options.read(true);
    options
}

fn among_children(folder: &Path, name: &str) -> Result<Found, CatalogError> {
    let children = match fs::read_dir(folder) {
        Ok(children) => children,
        Err(error) if is_absent(&error) => return Ok(Found::Nothing),
        Err(error) if is_denied(&error) => return Ok(Found::Unusable(folder.to_owned())),
        Err(error) => return Err(failed(folder, error)),
    };
    let mut best: Option<(SystemTime, PathBuf, File)> = None;
    let mut unusable = None;
    for child in children {
        let path = child.map_err(|error| failed(folder, error))?.path().join(name);
        match open(&path)? {
            Found::Nothing => {}
            Found::Unusable(path) => {
                // A folder that may not be entered may hold anything: that says nothing of this session.
                if fs::symlink_metadata(&path).is_ok() {
                    unusable = Some(path);
                }
            }
            Found::File(path, file) => {
                let written = file.metadata().and_then(|metadata| metadata.modified());
                let written = written.unwrap_or(SystemTime::UNIX_EPOCH);
                if best.as_ref().is_none_or(|(newest, ..)| written > *newest) {
                    best = Some((written, path, file));
                }
            }
        }
    }
    Ok(match (best, unusable) {
        (Some((_, path, file)), _) => Found::File(path, file),
        (None, Some(path)) => Found::Unusable(path),
        (None, None) => Found::Nothing,
    })
}
