//! One process, or one call, puts a work tree back at a time.

use std::fs::{File, OpenOptions, TryLockError};
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;
use std::{process, thread};

use sha2::{Digest as _, Sha256};

use crate::trouble::{Outcome, Trouble};

/// So often it is tried, with such pauses: who only asks has it for microseconds, who puts a tree back mostly for less than ten
/// seconds.
const TRIES: u32 = if cfg!(test) { 10 } else { 5000 };
const PAUSE: Duration = Duration::from_millis(2);

/// The lock of a work tree. The kernel releases it when the process ends.
#[derive(Debug)]
pub(super) struct Lock {
    file: File,
    owner: u32,
}

impl Lock {
    /// Takes the lock of the work tree with this top, beside the lock file of its repository: others of the same repository are
    /// not kept waiting.
    pub(super) fn of(repository: &Path, root: &Path) -> Outcome<Self> {
        let path = path_of(repository, root);
        let file = OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o600)
            .custom_flags(rustix::fs::OFlags::NOFOLLOW.bits().cast_signed())
            .open(&path)
            .map_err(Trouble::io(&path))?;
        for _ in 0..TRIES {
            match file.try_lock() {
                Ok(()) => return Ok(Self { file, owner: process::id() }),
                // It may be somebody who only asks.
                Err(TryLockError::WouldBlock) => thread::sleep(PAUSE),
                Err(TryLockError::Error(error)) => return Err(Trouble::io(path)(error)),
            }
        }
        Err(Trouble::Busy)
    }

    /// Whether somebody has it.
    pub(super) fn is_held(repository: &Path, root: &Path) -> Outcome<bool> {
        let path = path_of(repository, root);
        let file = match File::open(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
            file => file.map_err(Trouble::io(&path))?,
        };
        match file.try_lock_shared() {
            Ok(()) => file.unlock().map(|()| false).map_err(Trouble::io(path)),
            Err(TryLockError::WouldBlock) => Ok(true),
            Err(TryLockError::Error(error)) => Err(Trouble::io(path)(error)),
        }
    }
}

fn path_of(repository: &Path, root: &Path) -> PathBuf {
    let hash = Sha256::digest(root.as_os_str().as_bytes());
    let name: String = hash[..8].iter().map(|byte| format!("{byte:02x}")).collect();
    repository.with_extension(format!("{name}.lock"))
}

impl Drop for Lock {
    fn drop(&mut self) {
        // A child that was just forked has the same open file, so closing it here may not be enough; and its copy is not its
        // own to unlock.
        if self.owner == process::id() {
            drop(self.file.unlock());
        }
    }
}
