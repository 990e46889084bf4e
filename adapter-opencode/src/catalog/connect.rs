//! Opens databases that the agent can write: no link of its making is followed, no pipe waited for, and no query runs
//! without end.

use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rusqlite::config::DbConfig;
use rusqlite::limits::Limit;
use rusqlite::{Connection, OpenFlags};
use session_core::error::CatalogError;

use super::database::Ailment;
use super::{failed, is_missing};

/// How long a lock is waited for.
const PATIENCE: Duration = Duration::from_secs(2);

/// The longest value that is read, in bytes, so that memory stays bounded. A part may hold a file that was attached.
const LONGEST_VALUE: i32 = 128 << 20;

/// After how many steps of SQLite's machine the clock is looked at: some microseconds.
const STEPS: i32 = 1000;

/// How a database is opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Way {
    /// For reading.
    Reading,
    /// For reading, as one that nobody writes to: no lock is taken, and no file made beside it. Who asks makes sure.
    Unchanging,
    /// For reading and writing.
    Writing,
}

/// Looks whether a database can be opened, and where it really lies. `None`: there is nothing, or nothing in it.
pub(super) fn check(path: &Path, state: Option<&Path>) -> Result<Option<PathBuf>, Ailment> {
    let looked = real(path, state).and_then(|real| Ok((real.symlink_metadata()?, real)));
    let (metadata, real) = match looked {
        Err(error) if is_missing(&error) => return Ok(None),
        looked => looked?,
    };
    if !metadata.is_file() {
        return Err(Ailment::Denied);
    }
    // The agent makes its tables in an empty file.
    if metadata.len() == 0 {
        return Ok(None);
    }
    for suffix in ["-wal", "-shm", "-journal"] {
        if beside(&real, suffix).symlink_metadata().is_ok_and(|metadata| !metadata.is_file()) {
            return Err(Ailment::Denied);
        }
    }
    Ok(Some(real))
}

/// Opens a database of a state dir for writing. `None`: it has a journal. Nobody makes one in a database with a log,
/// and what it says would be done, to whatever file it names.
pub(super) fn open_for_writing(
    path: &Path,
    state: Option<&Path>,
    until: Instant,
) -> Result<Option<Connection>, CatalogError> {
    let real = real(path, state).map_err(|error| failed(path, error))?;
    if beside(&real, "-journal").symlink_metadata().is_ok() {
        return Ok(None);
    }
    let opened = connect(&real, Way::Writing, until);
    opened.map(Some).map_err(|error| failed(path, error))
}

pub(super) fn connect(real: &Path, way: Way, until: Instant) -> Result<Connection, rusqlite::Error> {
    let common = OpenFlags::SQLITE_OPEN_NO_MUTEX | OpenFlags::SQLITE_OPEN_NOFOLLOW;
    let read_only = common | OpenFlags::SQLITE_OPEN_READ_ONLY;
    let mut connection = match way {
        Way::Reading => Connection::open_with_flags(real, read_only)?,
        Way::Unchanging => {
            Connection::open_with_flags(unchanging(real), read_only | OpenFlags::SQLITE_OPEN_URI)?
        }
        Way::Writing => Connection::open_with_flags(real, common | OpenFlags::SQLITE_OPEN_READ_WRITE)?,
    };
    connection.busy_timeout(PATIENCE)?;
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_TRUSTED_SCHEMA, false)?;
    connection.set_limit(Limit::SQLITE_LIMIT_LENGTH, LONGEST_VALUE)?;
    connection.progress_handler(STEPS, Some(move || Instant::now() >= until))?;
    Ok(connection)
}

/// The address of a database that nobody writes to.
fn unchanging(real: &Path) -> String {
    let mut uri = String::from("file:");
    for byte in real.as_os_str().as_encoded_bytes() {
        match byte {
            b'/' | b'-' | b'.' | b'_' => uri.push(char::from(*byte)),
            byte if byte.is_ascii_alphanumeric() => uri.push(char::from(*byte)),
            byte => uri.push_str(&format!("%{byte:02x}")),
        }
    }
    uri.push_str("?immutable=1");
    uri
}

/// The path without the links that may lead there: those to the state dir, which the agent cannot replace, or all in the
/// user's own place.
fn real(path: &Path, state: Option<&Path>) -> io::Result<PathBuf> {
    if cfg!(not(unix)) {
        return Ok(path.to_owned());
    }
    match state {
        None => path.canonicalize(),
        Some(state) => {
            let below = path.strip_prefix(state).map_err(io::Error::other)?;
            Ok(state.canonicalize()?.join(below))
        }
    }
}

/// A file of the database beside it.
pub(super) fn beside(path: &Path, suffix: &str) -> PathBuf {
    let mut name: OsString = path.as_os_str().to_owned();
    name.push(suffix);
    PathBuf::from(name)
}
