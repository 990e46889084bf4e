//! Gives a database the name of the session in it.

use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};

use rusqlite::{Connection, OpenFlags};
use session_core::error::CatalogError;

use super::{Asked, failed, find, is_missing};

/// Moves the database of the session to `to`, where it still holds what was seen, in one step: what lies in its log is
/// written into it first. What stands at `to` without the session is set aside.
pub(super) fn put(asked: &Asked, from: &Path, bytes: u64, to: &Path) -> Result<bool, CatalogError> {
    let unchanged = || {
        let found = find(asked)?;
        Ok(found.is_some_and(|found| {
            !found.is_here && found.look.bytes == bytes && found.look.path.as_deref() == Some(from)
        }))
    };
    if from == to || !unchanged()? || !write_log(from).map_err(|error| failed(from, error))? || !unchanged()?
    {
        return Ok(false);
    }
    // A look leaves an index of the log behind, which means nothing without the log.
    drop_log_files(from).map_err(|error| failed(from, error))?;
    set_aside(to).map_err(|error| failed(to, error))?;
    std::fs::rename(from, to).map_err(|error| failed(from, error))?;
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
fn write_log(path: &Path) -> Result<bool, rusqlite::Error> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags)?;
    let busy: i64 = connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |row| row.get(0))?;
    // Without a log of its own it can be moved alone. It has one again as soon as the agent opens it.
    let mode: String = match busy {
        0 => connection.query_row("PRAGMA journal_mode = DELETE", [], |row| row.get(0))?,
        _ => return Ok(false),
    };
    Ok(mode == "delete")
}

fn beside(path: &Path, suffix: &str) -> PathBuf {
    let mut name: OsString = path.as_os_str().to_owned();
    name.push(suffix);
    PathBuf::from(name)
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
    let files = ["-wal", "-shm", ""].map(|suffix| beside(path, suffix));
    if files.iter().all(|file| file.symlink_metadata().is_err()) {
        return Ok(());
    }
    let free =
        (1_u32..).map(|n| beside(path, &format!(".aside-{n}"))).find(|path| path.symlink_metadata().is_err());
    let free = free.unwrap_or_else(|| beside(path, ".aside"));
    for suffix in ["-wal", "-shm", ""] {
        match std::fs::rename(beside(path, suffix), beside(&free, suffix)) {
            Err(error) if !is_missing(&error) => return Err(error),
            _ => {}
        }
    }
    Ok(())
}

#[cfg(test)]
pub(super) fn beside_for_tests(path: &Path, suffix: &str) -> PathBuf {
    beside(path, suffix)
}
