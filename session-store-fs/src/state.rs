//! Private directories, made without following a link below the caller's base.

use std::path::{Path, PathBuf};

use session_core::error::{StoreError, StoreErrorKind};

use crate::error::{At, Finding};

/// Makes these directories below `base`, one within the other, private and ours, and says the path of the
/// last. `base` itself is the caller's: it must be there, and may be reached through links.
pub(crate) fn private_dir(
    operation: &'static str,
    base: &Path,
    names: &[&str],
) -> Result<PathBuf, StoreError> {
    let mut path = base.to_owned();
    let mut level = imp::Level::base(At::new(operation, base))?;
    for name in names {
        path.push(name);
        level = level.enter(At::new(operation, &path), name)?;
    }
    Ok(path)
}

#[cfg(unix)]
mod imp {
    use std::os::fd::OwnedFd;

    use rustix::fs::{Mode, OFlags};
    use rustix::io::Errno;

    use super::{At, Finding, StoreError, StoreErrorKind};

    /// An open directory. What is entered from it cannot be exchanged on the way.
    pub(super) struct Level(OwnedFd);

    const DIRECTORY: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);

    impl Level {
        pub(super) fn base(at: At<'_>) -> Result<Self, StoreError> {
            rustix::fs::open(at.path, DIRECTORY, Mode::empty()).map(Self).map_err(|error| at.io(error.into()))
        }

        pub(super) fn enter(&self, at: At<'_>, name: &str) -> Result<Self, StoreError> {
            let failed = |error: Errno| at.io(error.into());
            let created = match rustix::fs::mkdirat(&self.0, name, Mode::RWXU) {
                Ok(()) => true,
                Err(Errno::EXIST) => false,
                Err(error) => return Err(failed(error)),
            };
            let inner = match rustix::fs::openat(&self.0, name, DIRECTORY | OFlags::NOFOLLOW, Mode::empty()) {
                Ok(inner) => inner,
                // Which of the two a link gives differs from system to system.
                Err(Errno::LOOP | Errno::NOTDIR | Errno::MLINK) => {
                    let what = at
                        .path
                        .symlink_metadata()
                        .map_or("something else", |metadata| crate::files::describe(&metadata));
                    return Err(at.error(StoreErrorKind::Other, Finding::NotADirectory(what)));
                }
                Err(error) => return Err(failed(error)),
            };
            let stat = rustix::fs::fstat(&inner).map_err(failed)?;
            let us = rustix::process::geteuid().as_raw();
            if stat.st_uid != us {
                let finding = Finding::Owner { owner: stat.st_uid, us };
                return Err(at.error(StoreErrorKind::PermissionDenied, finding));
            }
            if Mode::from_raw_mode(stat.st_mode) != Mode::RWXU {
                rustix::fs::fchmod(&inner, Mode::RWXU).map_err(failed)?;
            }
            if created {
                match rustix::fs::fsync(&self.0) {
                    Ok(()) | Err(Errno::INVAL) => {}
                    Err(error) => return Err(failed(error)),
                }
            }
            Ok(Self(inner))
        }
    }
}

#[cfg(not(unix))]
mod imp {
    use std::{fs, io};

    use super::{At, Finding, StoreError, StoreErrorKind};

    /// Only that there is a directory can be said here; its access list is inherited from the base.
    pub(super) struct Level;

    impl Level {
        pub(super) fn base(at: At<'_>) -> Result<Self, StoreError> {
            fs::metadata(at.path).map(|_| Self).map_err(|error| at.io(error))
        }

        pub(super) fn enter(&self, at: At<'_>, _: &str) -> Result<Self, StoreError> {
            match fs::create_dir(at.path) {
                Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(at.io(error)),
                _ => {}
            }
            let metadata = fs::symlink_metadata(at.path).map_err(|error| at.io(error))?;
            if metadata.is_dir() {
                return Ok(Self);
            }
            let what = crate::files::describe(&metadata);
            Err(at.error(StoreErrorKind::Other, Finding::NotADirectory(what)))
        }
    }
}
