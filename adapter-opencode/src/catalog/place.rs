//! Gives a database the name of the session in it.

use std::io;
use std::path::Path;

use session_core::error::CatalogError;

use super::connect::{beside, open_for_writing};
use super::{Asked, failed, find, is_missing};

/// What the files of a database end with, itself last: what is left of one must not be taken for another's.
const SUFFIXES: [&str; 4] = ["-wal", "-shm", "-journal", ""];

/// Moves the database of the session to `to`, where it still holds what was seen, in one step: what lies in its log is
/// written into it first. What stands at `to` without the session is set aside.
pub(super) fn put(asked: &Asked, from: &Path, bytes: u64, to: &Path) -> Result<bool, CatalogError> {
    let unchanged = || {
        let found = find(asked)?;
        Ok(found.is_some_and(|found| {
            found.look.misplaced && found.look.bytes == bytes && found.look.path.as_deref() == Some(from)
        }))
    };
    if from == to || !unchanged()? || !write_log(asked, from)? || !unchanged()? {
        return Ok(false);
    }
    // A look leaves an index of the log behind, which means nothing without the log.
    drop_log_files(from).map_err(|error| failed(from, error))?;
    set_aside(to).map_err(|error| failed(to, error))?;
    std::fs::rename(from, to).map_err(|error| failed(from, error))?;
    // The new name first: a database with two is found, one with none is not.
    for path in [to, from] {
        sync_folder_of(path).map_err(|error| failed(path, error))?;
    }
    Ok(true)
}

/// Gives a database that is damaged, and in the way of a new session, another name beside its old one.
pub(super) fn take_away(asked: &Asked, path: &Path) -> Result<bool, CatalogError> {
    let found = find(asked)?;
    let still = found.is_some_and(|found| found.look.in_the_way && found.look.path.as_deref() == Some(path));
    if still {
        set_aside(path).map_err(|error| failed(path, error))?;
    }
    Ok(still)
}

/// Writes the log into the database. `false`: somebody else uses it.
fn write_log(asked: &Asked, path: &Path) -> Result<bool, CatalogError> {
    let connection = open_for_writing(path, asked.state.as_deref(), asked.until())?;
    let Some(connection) = connection else { return Ok(false) };
    let write = || -> Result<bool, rusqlite::Error> {
        let busy: i64 = connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |row| row.get(0))?;
        // Without a log of its own it can be moved alone. It has one again as soon as the agent opens it.
        let mode: String = match busy {
            0 => connection.query_row("PRAGMA journal_mode = DELETE", [], |row| row.get(0))?,
            _ => return Ok(false),
        };
        Ok(mode == "delete")
    };
    write().map_err(|error| failed(path, error))
}

/// Removes an empty log and its index.
fn drop_log_files(path: &Path) -> io::Result<()> {
    let log = beside(path, "-wal");
    if log.symlink_metadata().is_ok_and(|metadata| metadata.len() > 0) {
        return Err(io::Error::other("the log is not empty"));
    }
    for file in [log, beside(path, "-shm")] {
        match std::fs::remove_file(file) {
            Err(error) if !is_missing(&error) => return Err(error),
            _ => {}
        }
    }
    Ok(())
}

/// Renames what stands there, with its log, to a name that is free.
fn set_aside(path: &Path) -> io::Result<()> {
    let files = SUFFIXES.map(|suffix| beside(path, suffix));
    if files.iter().all(|file| file.symlink_metadata().is_err()) {
        return Ok(());
    }
    let free =
        (1_u32..).map(|n| beside(path, &format!(".aside-{n}"))).find(|path| path.symlink_metadata().is_err());
    let free = free.unwrap_or_else(|| beside(path, ".aside"));
    for suffix in SUFFIXES {
        match std::fs::rename(beside(path, suffix), beside(&free, suffix)) {
            Err(error) if !is_missing(&error) => return Err(error),
            _ => {}
        }
    }
    sync_folder_of(path)
}

/// A renamed file is durable when its folder is.
#[cfg(unix)]
#[expect(clippy::disallowed_types, reason = "this room does I/O, on the pool for blocking work")]
pub(super) fn sync_folder_of(path: &Path) -> io::Result<()> {
    let folder = path.parent().ok_or_else(|| io::Error::other("a file without a folder"))?;
    std::fs::File::open(folder)?.sync_all()
}

#[cfg(not(unix))]
#[expect(clippy::unnecessary_wraps, reason = "the same face on every system")]
pub(super) fn sync_folder_of(_: &Path) -> io::Result<()> {
    Ok(())
}
