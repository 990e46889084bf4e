//! Locks that the kernel releases: one for a write, one for a run (the lease).
//!
//! A lock is one of an open file, so two handles exclude each other within one process as well. It is released
//! by an explicit call, not by closing alone: a child process that was just forked has the same open file
//! until it executes its program.

use std::fs::{File, Metadata, TryLockError};
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use session_core::error::{StoreError, StoreErrorKind};
use session_core::{Holder, Lease, LeaseOutcome};

use crate::error::{At, Finding};
use crate::files::{self, Unopened};

/// A write takes milliseconds; who holds its lock for longer than this is stopped or stuck.
const PATIENCE: Duration = Duration::from_secs(10);

/// A grant is written into one half of the lock file, the next one into the other half. A write that was cut
/// off can then not take the number before it away.
const SLOT: usize = 1024;

/// A locked file, and which one it was when it was locked.
#[derive(Debug)]
pub(crate) struct Locked(File, Metadata);

impl Drop for Locked {
    fn drop(&mut self) {
        // Closing the file releases it as well; there is nobody to tell of a failure.
        drop(self.0.unlock());
    }
}

enum Attempt {
    Locked(Locked),
    HeldBy(File),
}

fn attempt(at: At<'_>) -> Result<Attempt, StoreError> {
    loop {
        let (file, metadata) =
            files::open_to_write(at.path).map_err(|unopened| unopened.at(at, StoreErrorKind::Other))?;
        match file.try_lock() {
            // Someone may have removed the file in between; a lock on it would exclude nobody.
            Ok(()) if files::still_at(&metadata, at.path) => {
                return Ok(Attempt::Locked(Locked(file, metadata)));
            }
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Ok(Attempt::HeldBy(file)),
            Err(TryLockError::Error(error)) => return Err(at.io(error)),
        }
    }
}

/// Takes the lock of a write, waiting a bounded time. There is no wait without end in the kernel: a writer
/// that was stopped must not stop all others for good.
pub(crate) fn for_write(operation: &'static str, path: &Path) -> Result<Locked, StoreError> {
    let at = At::new(operation, path);
    let start = Instant::now();
    let mut pause = Duration::from_micros(100);
    loop {
        if let Attempt::Locked(locked) = attempt(at)? {
            return Ok(locked);
        }
        if start.elapsed() > PATIENCE {
            return Err(at.error(StoreErrorKind::Unavailable, Finding::NoLock(PATIENCE.as_secs())));
        }
        thread::sleep(pause);
        pause = (pause * 2).min(Duration::from_millis(5));
    }
}

/// One grant, as the lock file keeps it.
#[derive(Debug, Serialize, Deserialize)]
struct Grant {
    /// As it comes: who cannot be read does not hide the number.
    #[serde(default)]
    holder: Option<serde_json::Value>,
    fence: u64,
}

/// Takes the lease, without waiting. A crash of the machine may take the number of a grant away, and every holder with it:
/// what has to be greater then is the number that a record was `written` under, and no more.
pub(crate) fn lease(
    path: &Path,
    holder: &Holder,
    written: impl FnOnce() -> u64,
) -> Result<LeaseOutcome, StoreError> {
    let at = At::new("lease", path);
    let mut locked = match attempt(at)? {
        Attempt::Locked(locked) => locked,
        Attempt::HeldBy(mut file) => {
            // A hint, read while the holder may be writing it.
            let last = read(&mut file).ok().and_then(|content| last_grant(&content));
            let by = last.and_then(|grant| serde_json::from_value(grant.holder?).ok());
            return Ok(LeaseOutcome::Busy { by });
        }
    };
    let content = read(&mut locked.0).map_err(|error| at.io(error))?;
    let last = last_grant(&content).map_or(0, |grant| grant.fence);
    if last == 0 && !content.is_empty() {
        tracing::warn!(path = %path.display(), "the lock file holds no readable number; counting anew");
    }
    let next = last.max(written()).checked_add(1);
    let fence = next.ok_or_else(|| at.error(StoreErrorKind::Corrupt, Finding::Exhausted))?;
    write(&mut locked.0, holder, fence, content.len()).map_err(|error| at.io(error))?;
    Ok(LeaseOutcome::Held(Lease::new(fence, locked)))
}

/// The number of a later grant than this lease, where there is one: by the lock file, by what the record was `written` under,
/// or because another file stands in the place of the one that was locked, after somebody removed it.
pub(crate) fn later_grant(
    operation: &'static str,
    path: &Path,
    lease: &Lease,
    written: u64,
) -> Result<Option<u64>, StoreError> {
    let at = At::new(operation, path);
    let (mut file, there) = match files::open_to_read(path) {
        Ok(opened) => opened,
        Err(Unopened::Absent) => return Ok((lease.fence() < written).then_some(written)),
        Err(unopened) => return Err(unopened.at(at, StoreErrorKind::Other)),
    };
    let content = read(&mut file).map_err(|error| at.io(error))?;
    let latest = last_grant(&content).map_or(0, |grant| grant.fence).max(written);
    let another = lease.guard::<Locked>().is_some_and(|Locked(_, locked)| !files::same(locked, &there));
    Ok((another || lease.fence() < latest).then_some(latest))
}

fn read(file: &mut File) -> io::Result<Vec<u8>> {
    let mut content = Vec::new();
    file.seek(SeekFrom::Start(0))?;
    file.take(2 * SLOT as u64).read_to_end(&mut content)?;
    Ok(content)
}

/// The grant with the highest number among what can be read, whether a half is whole or a line is.
fn last_grant(content: &[u8]) -> Option<Grant> {
    let halves = content.chunks(SLOT);
    let lines = content.split(|b| *b == b'\n');
    halves
        .chain(lines)
        .filter_map(|part| serde_json::from_slice::<Grant>(part).ok())
        .max_by_key(|grant| grant.fence)
}

fn write(file: &mut File, holder: &Holder, fence: u64, length: usize) -> io::Result<()> {
    let whole = Grant { holder: Some(serde_json::to_value(holder)?), fence };
    let line = match serde_json::to_vec(&whole)? {
        line if line.len() < SLOT => line,
        // A host name beyond all limits is worth less than the number.
        _ => serde_json::to_vec(&Grant { holder: None, fence })?,
    };
    let slot = |mut line: Vec<u8>| {
        line.resize(SLOT - 1, b' ');
        line.push(b'\n');
        line
    };
    let half = usize::from(fence % 2 == 1);
    if half == 1 && length < SLOT {
        // A new file gets both halves at once; from then on, a grant needs no space on the disk.
        file.seek(SeekFrom::Start(0))?;
        file.write_all(&slot(Vec::new()))?;
    }
    file.seek(SeekFrom::Start((half * SLOT) as u64))?;
    file.write_all(&slot(line))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn holder(host: &str) -> Holder {
        Holder { host: host.to_owned(), pid: 7, since: None }
    }

    fn grant(file: &mut File, fence: u64, host: &str) {
        let length = read(file).unwrap().len();
        write(file, &holder(host), fence, length).unwrap();
    }

    #[test]
    fn a_grant_cut_off_anywhere_keeps_the_number_before_it() {
        let mut file = tempfile::tempfile().unwrap();
        for fence in 1..=6 {
            grant(&mut file, fence, "a");
        }
        let before = read(&mut file).unwrap();
        grant(&mut file, 7, "b");
        let after = read(&mut file).unwrap();
        assert_eq!(after.len(), 2 * SLOT);
        let half = before.iter().zip(&after).position(|(old, new)| old != new).unwrap() / SLOT * SLOT;
        for cut in half..half + SLOT {
            // The first bytes arrived, the rest of that half is old, or zeros.
            let mut torn = [&after[..cut], &before[cut..]].concat();
            let fence = last_grant(&torn).unwrap().fence;
            assert!(fence == 6 || fence == 7, "{cut}: {fence}");
            torn[cut..half + SLOT].fill(0);
            assert!(last_grant(&torn).unwrap().fence >= 6, "{cut}");
        }
    }

    #[test]
    fn what_can_be_read_of_a_strange_file_counts() {
        for (content, fence) in [
            (&b""[..], None),
            (b"garbage", None),
            (b"{\"fence\":9}", Some(9)),
            (b"{\"holder\":\"who\",\"fence\":9}\n{\"fence\":12", Some(9)),
            (b"{\"fence\":3}\n\x00\xff\n{\"fence\":8}\n", Some(8)),
        ] {
            assert_eq!(last_grant(content).map(|grant| grant.fence), fence);
        }
        // A short file, such as one made by hand, keeps its number across the next two grants.
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(b"{\"fence\":9}\n").unwrap();
        for fence in 10..13 {
            assert_eq!(last_grant(&read(&mut file).unwrap()).unwrap().fence, fence - 1);
            grant(&mut file, fence, "a");
        }
    }

    #[test]
    fn an_endless_host_name_costs_the_name_only() {
        let mut file = tempfile::tempfile().unwrap();
        grant(&mut file, 1, &"h".repeat(5000));
        let last = last_grant(&read(&mut file).unwrap()).unwrap();
        assert_eq!((last.fence, last.holder.is_none()), (1, true));
    }
}
