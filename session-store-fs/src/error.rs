//! Failures as [`StoreError`]s: which kind, which path, and the cause.

use std::io;
use std::path::Path;

use session_core::error::{StoreError, StoreErrorKind};

/// What the store found where it looked, when no system call failed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Finding {
    #[error("it is {0}, not a regular file")]
    NotAFile(&'static str),
    #[error("it is {0}, not a directory")]
    NotADirectory(&'static str),
    #[cfg(unix)]
    #[error("it belongs to user {owner}, this process runs as user {us}")]
    Owner { owner: u32, us: u32 },
    #[error("its format is {0}; this version knows format 1")]
    Format(u64),
    #[error("no lock within {0} seconds; another writer holds it")]
    NoLock(u64),
    #[error("somebody still writes into it")]
    StillWritten,
    #[error("the lease is over; another runner has been granted the key")]
    LeaseOver,
    #[error("the numbers are used up")]
    Exhausted,
    #[error("the task did not run; the runtime is shutting down")]
    NotRun,
}

/// An operation of the port and the path that it is about: enough to make an error of any failure.
#[derive(Debug, Clone, Copy)]
pub(crate) struct At<'a> {
    pub(crate) operation: &'static str,
    pub(crate) path: &'a Path,
}

impl<'a> At<'a> {
    pub(crate) const fn new(operation: &'static str, path: &'a Path) -> Self {
        Self { operation, path }
    }

    /// A failed system call.
    pub(crate) fn io(self, error: io::Error) -> StoreError {
        self.error(kind_of(&error), error)
    }

    /// Something that should not be there, or not be like that.
    pub(crate) fn error(
        self,
        kind: StoreErrorKind,
        source: impl Into<session_core::error::BoxError>,
    ) -> StoreError {
        StoreError::new(kind, self.operation, self.path.display().to_string()).with_source(source)
    }

    /// The store, or the part that holds this path, has vanished: not the same as an empty one.
    pub(crate) fn gone(self, folder: &Path) -> StoreError {
        let cause = io::Error::new(
            io::ErrorKind::NotFound,
            format!("the folder {} is gone; open the store again to make a new one", folder.display()),
        );
        self.error(StoreErrorKind::Unavailable, cause)
    }
}

/// Which kind of trouble a failed system call is.
fn kind_of(error: &io::Error) -> StoreErrorKind {
    use io::ErrorKind as K;
    match error.kind() {
        K::PermissionDenied | K::ReadOnlyFilesystem => StoreErrorKind::PermissionDenied,
        K::NotFound
        | K::StorageFull
        | K::QuotaExceeded
        | K::OutOfMemory
        | K::TimedOut
        | K::ResourceBusy
        | K::StaleNetworkFileHandle => StoreErrorKind::Unavailable,
        _ if out_of_order(error) => StoreErrorKind::Unavailable,
        _ => StoreErrorKind::Other,
    }
}

/// Failures of the device or of a limit, which std has no stable kind for.
#[cfg(unix)]
fn out_of_order(error: &io::Error) -> bool {
    use rustix::io::Errno as E;
    E::from_io_error(error).is_some_and(|errno| {
        [E::IO, E::MFILE, E::NFILE, E::NOMEM, E::NODEV, E::NXIO, E::NOLCK, E::NOTCONN].contains(&errno)
    })
}

#[cfg(not(unix))]
const fn out_of_order(_: &io::Error) -> bool {
    false
}

#[cfg(all(test, unix))]
mod tests {
    use std::error::Error as _;

    use rustix::io::Errno as E;

    use super::*;

    #[test]
    fn system_calls_fail_by_kind_and_name_the_path() {
        for (errno, kind) in [
            (E::ACCESS, StoreErrorKind::PermissionDenied),
            (E::PERM, StoreErrorKind::PermissionDenied),
            (E::ROFS, StoreErrorKind::PermissionDenied),
            (E::NOSPC, StoreErrorKind::Unavailable),
            (E::DQUOT, StoreErrorKind::Unavailable),
            (E::IO, StoreErrorKind::Unavailable),
            (E::MFILE, StoreErrorKind::Unavailable),
            (E::NFILE, StoreErrorKind::Unavailable),
            (E::NOENT, StoreErrorKind::Unavailable),
            (E::NAMETOOLONG, StoreErrorKind::Other),
            (E::LOOP, StoreErrorKind::Other),
        ] {
            let error = At::new("save", Path::new("/base/x")).io(errno.into());
            assert_eq!(error.kind(), kind, "{errno}");
            assert!(error.to_string().ends_with("(save /base/x)"), "{error}");
            assert!(error.source().unwrap().is::<io::Error>());
        }
    }
}
