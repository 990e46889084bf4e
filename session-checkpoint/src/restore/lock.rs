//! One process, or one call, puts a work tree back at a time.

use std::fs::{File, OpenOptions, TryLockError};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;
use std::process;

use sha2::{Digest as _, Sha256};

use crate::trouble::{Outcome, Trouble};

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
        let hash = Sha256::digest(root.as_os_str().as_bytes());
        let name: String = hash[..8].iter().map(|byte| format!("{byte:02x}")).collect();
        let path = repository.with_extension(format!("{name}.lock"));
        let file = OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o600)
            .custom_flags(rustix::fs::OFlags::NOFOLLOW.bits().cast_signed())
            .open(&path)
            .map_err(Trouble::io(&path))?;
        match file.try_lock() {
            Ok(()) => Ok(Self { file, owner: process::id() }),
            Err(TryLockError::WouldBlock) => Err(Trouble::Busy),
            Err(TryLockError::Error(error)) => Err(Trouble::io(path)(error)),
        }
    }
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
