//! Why what an agent stored could not be read.

use std::io;
use std::path::Path;

use session_core::error::{BoxError, CatalogError};

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
            Ailment::System(error) => Self::Other(error.into()),
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
        Ailment::from(error).into()
    }
}

impl DatabaseError {
    /// The error of a look at this path.
    pub(super) fn at(self, path: &Path) -> CatalogError {
        failed(path, self)
    }
}
