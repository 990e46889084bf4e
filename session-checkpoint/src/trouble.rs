//! What goes wrong inside, and what it is called outside.

use std::io;
use std::path::{Path, PathBuf};

use session_core::error::{CheckpointError, CheckpointErrorKind};

/// Something that went wrong.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Trouble {
    /// The database said so.
    #[error("the database of the checkpoints failed")]
    Database(#[from] rusqlite::Error),
    /// A file of the tree, or of the store.
    #[error("{}", path.display())]
    Io { path: PathBuf, source: io::Error },
    /// What is kept is not what its hash says, or cannot be read.
    #[error("what is kept is damaged: {0}")]
    Damaged(String),
    /// A newer version wrote it.
    #[error("it is in format {0}")]
    Newer(i64),
    /// There is no such checkpoint.
    #[error("there is no such checkpoint")]
    NotFound,
    /// The checkpoint is of another tree than the one it is asked for.
    #[error("it is of another tree")]
    AnotherTree,
    /// The tree, or the room that is left, is over a limit.
    #[error("{0}")]
    NoRoom(String),
    /// Nothing is taken here.
    #[error("{0}")]
    NotHere(String),
    /// Somebody else is at work on the tree.
    #[error("another process puts the tree back")]
    Busy,
    /// It was begun.
    #[error("it was begun")]
    CutOff(#[source] Box<Self>),
}

pub(crate) type Outcome<T> = Result<T, Trouble>;

impl Trouble {
    pub(crate) fn io(path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> Self {
        let path = path.into();
        move |source| Self::Io { path, source }
    }

    /// Whether the database itself is no whole one.
    pub(crate) fn is_corrupt(&self) -> bool {
        use rusqlite::ErrorCode::{DatabaseCorrupt, NotADatabase};
        let Self::Database(error) = self else { return false };
        matches!(error.sqlite_error_code(), Some(DatabaseCorrupt | NotADatabase))
    }

    /// Whether what is kept is at fault, and asking again would not help.
    pub(crate) fn is_damage(&self) -> bool {
        self.kind() == CheckpointErrorKind::Corrupt
    }

    /// Whether the disk has too little room.
    pub(crate) fn is_no_room(&self) -> bool {
        self.kind() == CheckpointErrorKind::NoRoom
    }

    fn kind(&self) -> CheckpointErrorKind {
        use rusqlite::ErrorCode;
        match self {
            // The file that the processes of a database share cannot grow.
            Self::Database(error)
                if error
                    .sqlite_error()
                    .is_some_and(|error| error.extended_code == rusqlite::ffi::SQLITE_IOERR_SHMSIZE) =>
            {
                CheckpointErrorKind::NoRoom
            }
            Self::Database(error) => match error.sqlite_error_code() {
                Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => CheckpointErrorKind::Corrupt,
                Some(ErrorCode::DiskFull) => CheckpointErrorKind::NoRoom,
                Some(ErrorCode::PermissionDenied | ErrorCode::ReadOnly) => {
                    CheckpointErrorKind::PermissionDenied
                }
                Some(
                    ErrorCode::DatabaseBusy
                    | ErrorCode::DatabaseLocked
                    | ErrorCode::CannotOpen
                    | ErrorCode::SystemIoFailure,
                ) => CheckpointErrorKind::Unavailable,
                _ => CheckpointErrorKind::Other,
            },
            Self::Io { source, .. } => match source.kind() {
                io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => {
                    CheckpointErrorKind::PermissionDenied
                }
                io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => CheckpointErrorKind::NoRoom,
                _ => CheckpointErrorKind::Other,
            },
            Self::Damaged(_) => CheckpointErrorKind::Corrupt,
            Self::Newer(_) => CheckpointErrorKind::Newer,
            Self::NotFound | Self::AnotherTree => CheckpointErrorKind::NotFound,
            Self::NoRoom(_) => CheckpointErrorKind::NoRoom,
            Self::NotHere(_) => CheckpointErrorKind::NotHere,
            Self::Busy => CheckpointErrorKind::Unavailable,
            Self::CutOff(_) => CheckpointErrorKind::CutOff,
        }
    }

    /// As the port tells it: in this operation, on this path.
    pub(crate) fn at(self, operation: &'static str, path: &Path) -> CheckpointError {
        let error = CheckpointError::new(self.kind(), operation, path);
        match self {
            Self::NotFound => error,
            Self::AnotherTree => error.with_detail(self.to_string()),
            Self::NoRoom(detail) | Self::NotHere(detail) => error.with_detail(detail),
            other => error.with_source(other),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io;

    use session_core::error::CheckpointErrorKind;

    use super::Trouble;

    #[test]
    fn a_store_that_cannot_be_written_is_told_alike_whatever_keeps_it() {
        for kind in [io::ErrorKind::PermissionDenied, io::ErrorKind::ReadOnlyFilesystem] {
            assert_eq!(Trouble::io("x")(kind.into()).kind(), CheckpointErrorKind::PermissionDenied);
        }
        for kind in [io::ErrorKind::StorageFull, io::ErrorKind::QuotaExceeded] {
            assert_eq!(Trouble::io("x")(kind.into()).kind(), CheckpointErrorKind::NoRoom);
        }
    }
}
