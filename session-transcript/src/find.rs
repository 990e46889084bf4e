//! Where the file is, without ever waiting for a pipe or following a link to something else than a file.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use session_core::error::CatalogError;
use session_core::{Below, Places, SessionQuery, TranscriptFormat};

use crate::catalog::failed;

/// What lies at the places.
#[derive(Debug)]
pub(crate) enum Found {
    Nothing,
    /// Something that is no file, or that may not be read.
    Unusable(PathBuf),
    File(PathBuf, File),
}

/// Looks at the exact places, then below the folders to search, at so many entries in all.
pub(crate) fn find(
    format: &dyn TranscriptFormat,
    query: &SessionQuery<'_>,
    places: &Places,
    entries: usize,
) -> Result<Found, CatalogError> {
    for path in &places.exact {
        match open(path, query.state_dir)? {
            Found::Nothing => {}
            found => return Ok(found),
        }
    }
    let mut best = Best { file: None, unusable: None, entries };
    for at in &places.below {
        below(format, query, at, &mut best)?;
    }
    Ok(match (best.file, best.unusable) {
        (Some((_, path, file)), _) => Found::File(path, file),
        (None, Some(path)) => Found::Unusable(path),
        (None, None) => Found::Nothing,
    })
}

/// Not being allowed to look is an answer: the agents cannot read it either, and say that there is no session.
pub(crate) fn is_denied(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::PermissionDenied
}

pub(crate) fn is_absent(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory | io::ErrorKind::InvalidFilename
    )
}

/// Why a folder that cannot be looked into is worth a word: not where it is not there, and no link stands in its place or above.
/// A file in the place of a folder is no folder that is not there.
pub(crate) fn why_unseen(folder: &Path, error: &io::Error) -> Option<String> {
    if !matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::InvalidFilename) {
        return Some(error.to_string());
    }
    let there = folder.ancestors().find_map(|above| Some((above, above.symlink_metadata().ok()?)));
    let (link, _) = there.filter(|(_, metadata)| metadata.is_symlink())?;
    Some(format!("{} is a link that leads nowhere", link.display()))
}

/// Links are followed in the agent's own place, as the agents do. A state dir is written by the agent and all that it runs:
/// there, a link that leads out of it may lead into another mailbox.
pub(crate) fn open(path: &Path, state_dir: Option<&Path>) -> Result<Found, CatalogError> {
    // The kind first: opening a device may have an effect.
    let opened = fs::metadata(path).and_then(|metadata| {
        if !metadata.is_file() {
            return Ok(None);
        }
        let file = options().open(path)?;
        // Again, of what was really opened.
        let opened = file.metadata()?;
        let inside = match state_dir {
            Some(dir) => is_inside(&opened, path, dir)?,
            None => true,
        };
        Ok((opened.is_file() && inside).then_some(file))
    });
    match opened {
        Ok(Some(file)) => Ok(Found::File(path.to_owned(), file)),
        Ok(None) => Ok(Found::Unusable(path.to_owned())),
        Err(error) if is_absent(&error) => Ok(Found::Nothing),
        Err(error) if is_denied(&error) || is_loop(&error) => Ok(Found::Unusable(path.to_owned())),
        Err(error) => Err(failed(path, error)),
    }
}

/// Whether the path, with all links followed, is in the folder, and what was opened is still what is there.
pub(crate) fn is_inside(opened: &fs::Metadata, path: &Path, folder: &Path) -> io::Result<bool> {
    let real = path.canonicalize()?;
    Ok(real.starts_with(folder.canonicalize()?) && is_same(opened, &real.symlink_metadata()?))
}

#[cfg(unix)]
pub(crate) fn is_same(one: &fs::Metadata, other: &fs::Metadata) -> bool {
    use std::os::unix::fs::MetadataExt as _;

    (one.dev(), one.ino()) == (other.dev(), other.ino())
}

/// There is no number to compare.
#[cfg(not(unix))]
pub(crate) const fn is_same(_: &fs::Metadata, _: &fs::Metadata) -> bool {
    true
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

#[cfg(unix)]
pub(crate) fn options() -> OpenOptions {
    use std::os::unix::fs::OpenOptionsExt;

    let mut options = File::options();
    // A pipe that took the file's place meanwhile must not make us wait.
    let flags = rustix::fs::OFlags::NONBLOCK | rustix::fs::OFlags::NOCTTY;
    options.read(true).custom_flags(flags.bits().cast_signed());
    options
}

#[cfg(not(unix))]
pub(crate) fn options() -> OpenOptions {
    let mut options = File::options();
    options.read(true);
    options
}

/// Searches a folder for files that are the session's; the newest counts. In a state dir, no link to a folder is entered: it
/// may lead back, and each would double what there is to search.
fn below(
    format: &dyn TranscriptFormat,
    query: &SessionQuery<'_>,
    at: &Below,
    best: &mut Best,
) -> Result<(), CatalogError> {
    let folder = &at.folder;
    let children = match fs::read_dir(folder) {
        Ok(children) => children,
        Err(error) if is_absent(&error) => return Ok(()),
        // A folder that may not be entered may hold anything: that says nothing of this session.
        Err(error) if is_denied(&error) || is_loop(&error) => {
            best.unusable.get_or_insert_with(|| folder.clone());
            return Ok(());
        }
        Err(error) => return Err(failed(folder, error)),
    };
    for child in children {
        let child = child.map_err(|error| failed(folder, error))?;
        // What was not looked at may hold the session.
        let Some(left) = best.entries.checked_sub(1) else {
            best.unusable.get_or_insert_with(|| folder.clone());
            return Ok(());
        };
        best.entries = left;
        if let Some(depth) = at.depth.checked_sub(1) {
            // A link to a folder is one, as it is for the agents; what is no folder holds nothing.
            let is_link = child.file_type().is_ok_and(|kind| kind.is_symlink());
            if child.path().metadata().is_ok_and(|metadata| metadata.is_dir()) {
                if is_link && query.state_dir.is_some() {
                    best.unusable.get_or_insert(child.path());
                } else {
                    below(format, query, &Below { folder: child.path(), depth }, best)?;
                }
            }
        } else if child.file_name().to_str().is_some_and(|name| format.is_file_of(name, query)) {
            match open(&child.path(), query.state_dir)? {
                Found::Nothing => {}
                Found::Unusable(path) => {
                    best.unusable.get_or_insert(path);
                }
                Found::File(path, file) => {
                    let written = file.metadata().and_then(|metadata| metadata.modified());
                    let written = written.unwrap_or(SystemTime::UNIX_EPOCH);
                    best.take(format, written, path, file);
                }
            }
        }
    }
    Ok(())
}

impl Best {
    /// The newest is the best; but of a file and the same one packed, the one that is not.
    fn take(&mut self, format: &dyn TranscriptFormat, written: SystemTime, path: PathBuf, file: File) {
        let Some((newest, best, _)) = &self.file else {
            self.file = Some((written, path, file));
            return;
        };
        let newer = written.max(*newest);
        match packed_twin(format, best, &path) {
            Some(Twin::First) => self.file = Some((newer, path, file)),
            Some(Twin::Second) => {}
            None if written > *newest => self.file = Some((written, path, file)),
            None => {}
        }
    }
}

/// Which of two files is the packed one, where they are the same but for that.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Twin {
    First,
    Second,
}

/// Whether two files are one and the same session file, packed and not: their names begin alike up to where one says that
/// it is packed.
pub(crate) fn packed_twin(format: &dyn TranscriptFormat, one: &Path, other: &Path) -> Option<Twin> {
    let name = |path: &Path| path.file_name().and_then(|name| name.to_str()).map(str::to_owned);
    let (first, second) = (name(one)?, name(other)?);
    let begins = |packed: &str, plain: &str| {
        format.is_packed(packed) && !format.is_packed(plain) && packed.strip_prefix(plain).is_some()
    };
    if begins(&first, &second) {
        Some(Twin::First)
    } else if begins(&second, &first) {
        Some(Twin::Second)
    } else {
        None
    }
}

/// The best of what a search found.
#[derive(Debug)]
struct Best {
    file: Option<(SystemTime, PathBuf, File)>,
    unusable: Option<PathBuf>,
    /// How many entries may still be looked at.
    entries: usize,
}
