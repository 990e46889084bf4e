//! Reads databases of the agent without leaving anything beside them.
//!
//! A database with a log (WAL) is opened by SQLite with two files beside it, which it makes where they are missing, and
//! then leaves there. Without a log there is nothing to be found in them: such a database is read as one that does not
//! change, and read once more, in the common way, where it did change meanwhile.

use std::io::{self, Read as _};
use std::path::Path;
use std::time::Instant;

use rusqlite::Connection;
use session_core::error::{BoxError, CatalogError};

use super::super::connect::{self, Way, beside};
use super::super::database::Ailment;
use super::super::failed;

/// Why a database of the agent could not be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DatabaseError {
    /// Another process holds its lock, as while it migrates, for longer than is waited for. Worth another try.
    #[error("it is busy: another process holds its lock")]
    Busy,
    /// It is no database, or its pages are damaged.
    #[error("it is damaged")]
    Damaged,
    /// It may not be read, or is no file.
    #[error("it may not be read")]
    Denied,
    /// Its tables are not those that are known.
    #[error("its tables are not known")]
    UnknownTables,
    /// There is more in it than is read in the time that there is.
    #[error("there is more in it than can be read")]
    TooMuch,
    /// The place does not fit the session any more.
    #[error("the place in it is not there any more")]
    PlaceGone,
    /// The session is not in it.
    #[error("the session is not in it")]
    SessionGone,
    /// SQLite or the system failed.
    #[error("it could not be read")]
    Other(#[source] BoxError),
}

impl From<Ailment> for DatabaseError {
    fn from(ailment: Ailment) -> Self {
        use rusqlite::ErrorCode::{DatabaseBusy, DatabaseLocked};
        match ailment {
            Ailment::Damaged => Self::Damaged,
            Ailment::Denied => Self::Denied,
            Ailment::Unknown => Self::UnknownTables,
            Ailment::Endless => Self::TooMuch,
            Ailment::Other(error) => match error.sqlite_error_code() {
                Some(DatabaseBusy | DatabaseLocked) => Self::Busy,
                _ => Self::Other(error.into()),
            },
        }
    }
}

impl From<rusqlite::Error> for DatabaseError {
    fn from(error: rusqlite::Error) -> Self {
        Ailment::from(error).into()
    }
}

impl From<io::Error> for DatabaseError {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::PermissionDenied => Self::Denied,
            _ => Self::Other(error.into()),
        }
    }
}

impl DatabaseError {
    /// The error of a look at this path.
    pub(super) fn at(self, path: &Path) -> CatalogError {
        failed(path, self)
    }
}

/// Does some reading on a database, in one view of it. `None`: there is nothing, or nothing in it.
pub(super) fn read<T>(
    path: &Path,
    state: Option<&Path>,
    until: Instant,
    work: impl Fn(&Connection) -> Result<T, DatabaseError>,
) -> Result<Option<T>, DatabaseError> {
    let real = match connect::check(path, state) {
        Ok(None) => return Ok(None),
        Ok(Some(real)) => real,
        Err(Ok(ailment)) => return Err(ailment.into()),
        Err(Err(error)) => return Err(DatabaseError::Other(error.source)),
    };
    let with_log = has_log_format(&real)?;
    let log = beside(&real, "-wal");
    let has_log = || log.symlink_metadata().is_ok();
    if with_log && cfg!(unix) {
        let before = Stamp::of(&real)?;
        if !has_log() {
            let done = connect::connect(&real, Way::Unchanging, until)
                .map_err(DatabaseError::from)
                .and_then(|connection| work(&connection));
            if !has_log() && Stamp::of(&real)? == before {
                return done.map(Some);
            }
        }
    }
    let connection = connect::connect(&real, Way::Reading, until)?;
    if with_log {
        // Without a log, a view held for long would be in the way of writers.
        connection.execute_batch("BEGIN")?;
    }
    work(&connection).map(Some)
}

/// What tells that a file was written to.
#[derive(PartialEq)]
struct Stamp {
    bytes: u64,
    written: Option<std::time::SystemTime>,
    #[cfg(unix)]
    file: (u64, u64),
    #[cfg(unix)]
    changed: (i64, i64),
}

impl Stamp {
    fn of(path: &Path) -> io::Result<Self> {
        #[cfg(unix)]
        use std::os::unix::fs::MetadataExt as _;
        let metadata = path.symlink_metadata()?;
        Ok(Self {
            bytes: metadata.len(),
            written: metadata.modified().ok(),
            #[cfg(unix)]
            file: (metadata.dev(), metadata.ino()),
            #[cfg(unix)]
            changed: (metadata.ctime(), metadata.ctime_nsec()),
        })
    }
}

/// Whether the database keeps a log, by bytes 18 and 19 of its header.
#[expect(clippy::disallowed_types, reason = "this room does I/O, on the pool for blocking work")]
fn has_log_format(path: &Path) -> Result<bool, DatabaseError> {
    let mut header = Vec::with_capacity(20);
    std::fs::File::open(path)?.take(20).read_to_end(&mut header)?;
    Ok(header.get(18..20) == Some(&[2, 2]))
}
