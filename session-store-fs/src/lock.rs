//! Locks that the kernel releases: one for a write, one for a run (the lease).
//!
//! A lock is one of an open file, so two handles exclude each other within one process as well. It is released
//! by an explicit call, not by closing alone: a child process that was just forked has the same open file
//! until it executes its program.

use std::io;
use std::path::Path;
use std::time::{Duration, Instant};
use std::{process, thread};

use serde::{Deserialize, Serialize};
use session_core::error::{StoreError, StoreErrorKind};
use session_core::{Holder, Lease, LeaseOutcome};

use crate::disk::{Disk, DiskFile, Meta};
use crate::error::{At, Finding};
use crate::files::{self, Unopened};
use crate::record::HIGHEST_GRANT;

/// A write takes milliseconds; who holds its lock for longer than this is stopped or stuck.
const PATIENCE: Duration = Duration::from_secs(10);

/// A grant is written into one half of the lock file, the next one into the other half. A write that was cut
/// off can then not take the number before it away.
const SLOT: usize = 512;

/// A locked file, which one it was when it was locked, and the process that locked it.
#[derive(Debug)]
pub(crate) struct Locked {
    file: Box<dyn DiskFile>,
    meta: Meta,
    owner: u32,
}

impl Locked {
    fn new(file: Box<dyn DiskFile>, meta: Meta) -> Self {
        Self { file, meta, owner: process::id() }
    }
}

impl Drop for Locked {
    fn drop(&mut self) {
        // A child process that was forked and executes nothing may drop its copy: the lock is still its parent's.
        if self.owner == process::id() {
            // Closing the file releases it as well; there is nobody to tell of a failure.
            drop(self.file.unlock());
        }
    }
}

enum Attempt {
    Locked(Locked),
    HeldBy(Box<dyn DiskFile>),
}

fn attempt(disk: &dyn Disk, at: At<'_>) -> Result<Attempt, StoreError> {
    loop {
        let unopened = |unopened: Unopened| unopened.at(at, StoreErrorKind::Other);
        let file = files::open_to_lock(disk, at.path).map_err(unopened)?;
        if !file.try_lock().map_err(|error| at.io(error))? {
            return Ok(Attempt::HeldBy(file));
        }
        let meta = files::writable(&*file).map_err(unopened)?;
        let locked = Locked::new(file, meta);
        // Someone may have removed the file in between; a lock on it would exclude nobody.
        if files::is_named(&meta) {
            return Ok(Attempt::Locked(locked));
        }
    }
}

/// Takes the lock of a write, waiting a bounded time. There is no wait without end in the kernel: a writer
/// that was stopped must not stop all others for good.
pub(crate) fn for_write(disk: &dyn Disk, operation: &'static str, path: &Path) -> Result<Locked, StoreError> {
    let at = At::new(operation, path);
    let start = Instant::now();
    let mut pause = Duration::from_micros(100);
    loop {
        if let Attempt::Locked(locked) = attempt(disk, at)? {
            return Ok(locked);
        }
        if start.elapsed() > PATIENCE {
            return Err(at.error(StoreErrorKind::Unavailable, Finding::NoLock(PATIENCE.as_secs())));
        }
        thread::sleep(pause);
        pause = (pause * 2).min(Duration::from_millis(5));
    }
}

/// The number of a grant, as the lock file keeps it. Who was granted it stands on the next line.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
struct Grant<'a> {
    fence: u64,
    /// Since which start of the machine the file is as it was written.
    #[serde(borrow, default)]
    boot: Option<&'a str>,
}

/// Takes the lease, without waiting. A crash of the machine may take the number of a grant away, and every holder with it:
/// what has to be smaller then is the number that a record was `written` under, which is looked for only where there may have
/// been one.
pub(crate) fn lease(
    disk: &dyn Disk,
    path: &Path,
    holder: &Holder,
    written: impl FnOnce() -> Result<u64, StoreError>,
) -> Result<LeaseOutcome, StoreError> {
    let at = At::new("lease", path);
    let locked = match attempt(disk, at)? {
        Attempt::Locked(locked) => locked,
        Attempt::HeldBy(file) => {
            // A hint, read while the holder may be writing it.
            let by = read(&*file).ok().and_then(|content| last_holder(&content));
            return Ok(LeaseOutcome::Busy { by });
        }
    };
    let content = read(&*locked.file).map_err(|error| at.io(error))?;
    let last = last_grant(&content);
    if last.fence == 0 && !content.is_empty() {
        tracing::warn!(path = %path.display(), "the lock file holds no readable number; counting anew");
    }
    let as_it_was = last.boot.is_some() && last.boot == disk.boot();
    let latest = if as_it_was { last.fence } else { last.fence.max(written()?) };
    let next = latest.checked_add(1);
    let fence = next.ok_or_else(|| at.error(StoreErrorKind::Corrupt, Finding::Exhausted))?;
    let grant = Grant { fence, boot: disk.boot() };
    write(&*locked.file, grant, holder, content.len()).map_err(|error| at.io(error))?;
    Ok(LeaseOutcome::Held(Lease::new(fence, locked)))
}

/// The number of a later grant than this lease, where there is one. A lease whose own file still stands in its place is the
/// last one: the kernel says so. Where somebody put another file there, or the lease is of somewhere else, the numbers decide,
/// that of the file and the one that the record was `written` under.
pub(crate) fn later_grant(
    disk: &dyn Disk,
    operation: &'static str,
    path: &Path,
    lease: &Lease,
    written: u64,
) -> Result<Option<u64>, StoreError> {
    let at = At::new(operation, path);
    let own = lease.guard::<Locked>();
    let there = match disk.look(path) {
        Ok(there) => Some(there),
        Err(error) if error.kind() == io::ErrorKind::NotFound => None,
        Err(error) => return Err(at.io(error)),
    };
    let another = match (own, &there) {
        (Some(Locked { meta, .. }), Some(there)) if files::same(meta, there) => return Ok(None),
        (Some(_), Some(_)) => true,
        (None, _) | (_, None) => false,
    };
    let told = match files::open_to_read(disk, path) {
        Ok((file, _)) => last_grant(&read(&*file).map_err(|error| at.io(error))?).fence,
        Err(Unopened::Absent) => 0,
        Err(unopened) => return Err(unopened.at(at, StoreErrorKind::Other)),
    };
    let latest = told.max(written);
    Ok((another || lease.fence() < latest).then_some(latest))
}

fn read(file: &dyn DiskFile) -> io::Result<Vec<u8>> {
    files::read(file, 0, 2 * SLOT as u64)
}

/// The last grant among what can be read; number zero where there is none.
fn last_grant(content: &[u8]) -> Grant<'_> {
    last(content).map(|(grant, _)| grant).unwrap_or_default()
}

/// Who was granted the lease last, where that can be read.
fn last_holder(content: &[u8]) -> Option<Holder> {
    let (_, rest) = last(content)?;
    serde_json::from_slice(lines(rest).next()?).ok()
}

/// The grant with the highest number of those that can be read, and what follows its line: of halves, or of any lines where
/// no half can be read.
fn last(content: &[u8]) -> Option<(Grant<'_>, &[u8])> {
    let read = |part| {
        let line = lines(part).next()?;
        let grant: Grant<'_> =
            serde_json::from_slice(line).ok().filter(|grant: &Grant<'_>| grant.fence <= HIGHEST_GRANT)?;
        Some((grant, &part[(line.len() + 1).min(part.len())..]))
    };
    let number = |(grant, _): &(Grant<'_>, &[u8])| grant.fence;
    let halves = content.chunks(SLOT).filter_map(read).max_by_key(number);
    halves.or_else(|| lines(content).filter_map(read).max_by_key(number))
}

fn lines(content: &[u8]) -> impl Iterator<Item = &[u8]> {
    content.split(|byte| *byte == b'\n')
}

fn write(file: &dyn DiskFile, grant: Grant<'_>, holder: &Holder, length: usize) -> io::Result<()> {
    let mut half = Vec::with_capacity(SLOT);
    serde_json::to_writer(&mut half, &grant)?;
    half.push(b'\n');
    let whole = half.len();
    serde_json::to_writer(&mut half, holder)?;
    if half.len() + 2 > SLOT {
        // A host name beyond all limits is worth less than the number.
        half.truncate(whole);
    }
    let odd = grant.fence % 2 == 1;
    if odd && length < SLOT {
        // A new file gets both halves at once; from then on, a grant needs no space on the disk.
        files::write(file, &filled(Vec::new()), 0)?;
    }
    files::write(file, &filled(half), if odd { SLOT as u64 } else { 0 })
}

/// Lines that fill a half.
fn filled(mut lines: Vec<u8>) -> Vec<u8> {
    lines.push(b'\n');
    lines.resize(SLOT - 1, b' ');
    lines.push(b'\n');
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    fn holder(host: &str) -> Holder {
        Holder { host: host.to_owned(), pid: 7, since: None }
    }

    fn grant(file: &dyn DiskFile, fence: u64, host: &str) {
        let length = read(file).unwrap().len();
        write(file, Grant { fence, boot: None }, &holder(host), length).unwrap();
    }

    #[test]
    fn a_copy_in_a_forked_child_releases_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("lock");
        let open = || std::fs::File::options().create(true).append(true).open(&path).unwrap();
        let locked = |owner: u32| {
            let file = open();
            assert!(DiskFile::try_lock(&file).unwrap());
            let copy = file.try_clone().unwrap();
            let meta = DiskFile::meta(&copy).unwrap();
            (file, Locked { owner, file: Box::new(copy), meta })
        };
        let (file, of_the_child) = locked(process::id() + 1);
        drop(of_the_child);
        assert!(!DiskFile::try_lock(&open()).unwrap(), "the parent's file is open and locked");
        drop(file);
        let (_file, own) = locked(process::id());
        drop(own);
        assert!(DiskFile::try_lock(&open()).unwrap(), "one's own is released, whoever has it open");
    }

    #[test]
    fn a_grant_cut_off_anywhere_keeps_the_number_before_it() {
        let file = &tempfile::tempfile().unwrap();
        for fence in 1..=6 {
            grant(file, fence, "a");
        }
        let before = read(file).unwrap();
        grant(file, 7, "b");
        let after = read(file).unwrap();
        assert_eq!(after.len(), 2 * SLOT);
        let half = before.iter().zip(&after).position(|(old, new)| old != new).unwrap() / SLOT * SLOT;
        for cut in half..half + SLOT {
            // The first bytes arrived, the rest of that half is old, or zeros.
            let mut torn = [&after[..cut], &before[cut..]].concat();
            let fence = last_grant(&torn).fence;
            assert!(fence == 6 || fence == 7, "{cut}: {fence}");
            torn[cut..half + SLOT].fill(0);
            assert!(last_grant(&torn).fence >= 6, "{cut}");
        }
    }

    #[test]
    fn what_can_be_read_of_a_strange_file_counts() {
        for (content, fence) in [
            (&b""[..], 0),
            (b"garbage", 0),
            (b"{\"fence\":9}", 9),
            (b"{\"holder\":\"who\",\"fence\":9}\n{\"fence\":12", 9),
            (b"\n\x00\xff\n{\"fence\":3}\n{\"fence\":8}\n", 8),
        ] {
            assert_eq!(last_grant(content).fence, fence);
        }
        // A short file, such as one made by hand, keeps its number across the next two grants.
        let file = &tempfile::tempfile().unwrap();
        files::write(file, b"{\"fence\":9}\n", 0).unwrap();
        for fence in 10..13 {
            assert_eq!(last_grant(&read(file).unwrap()).fence, fence - 1);
            grant(file, fence, "a");
        }
    }

    #[test]
    fn an_endless_host_name_costs_the_name_only() {
        let file = &tempfile::tempfile().unwrap();
        grant(file, 1, &"h".repeat(5000));
        let content = read(file).unwrap();
        assert_eq!((last_grant(&content).fence, last_holder(&content)), (1, None));
        grant(file, 2, "a");
        assert_eq!(last_holder(&read(file).unwrap()), Some(holder("a")));
        grant(file, 3, &"h".repeat(5000));
        assert_eq!(last_holder(&read(file).unwrap()), None, "not the one before");
    }
}
