//! The audit log of a key: one entry a line, only ever added to.

use std::io::{self, BufRead as _, BufReader};
use std::path::{Path, PathBuf};

use serde::Deserialize;
use session_core::error::{StoreError, StoreErrorKind};
use session_core::{AuditEntry, AuditEvent, AuditSeq};

use crate::disk::{Disk, DiskFile};
use crate::error::{At, Finding};
use crate::files::{self, Folder, Stream, Unopened};

/// How much of the end is read to find the last number. More is read only where this holds no whole entry.
const TAIL: u64 = 4 * 1024;

#[derive(Deserialize)]
struct Numbered {
    seq: AuditSeq,
}

/// Adds an entry. The caller holds the key's write lock. After `Ok`, the entry survives a crash.
pub(crate) fn append(
    disk: &dyn Disk,
    path: &Path,
    folder: PathBuf,
    event: &AuditEvent,
) -> Result<AuditSeq, StoreError> {
    let at = At::new("append_audit", path);
    let (file, meta) =
        files::open_to_write(disk, path).map_err(|unopened| unopened.at(at, StoreErrorKind::Other))?;
    let length = meta.length;
    let end = find_end(&*file, length).map_err(|error| at.io(error))?;
    let Some(number) = end.last.0.checked_add(1) else {
        return Err(at.error(StoreErrorKind::Corrupt, Finding::Exhausted));
    };
    let seq = AuditSeq(number);
    let entry = AuditEntry { seq, event: event.clone() };
    let mut line = serde_json::to_vec(&entry).map_err(|error| at.error(StoreErrorKind::Other, error))?;
    line.push(b'\n');
    if end.torn {
        tracing::warn!(path = %path.display(), "the last entry was cut off; it is ended and left as it is");
        line.insert(0, b'\n');
    }
    if length == 0 {
        // Before the first entry: a log with entries is one that is durable, whoever made it and died meanwhile.
        Folder::open(disk, at.operation, folder)?.sync().map_err(|error| at.io(error))?;
    }
    if let Err(error) = add(&*file, length, &line) {
        // Half an entry helps nobody. Where even this fails, the next writer ends the line.
        drop(file.set_len(length));
        return Err(at.io(error));
    }
    Ok(seq)
}

fn add(file: &dyn DiskFile, length: u64, line: &[u8]) -> io::Result<()> {
    files::write(file, line, length)?;
    file.sync_data()
}

/// How a log ends.
struct End {
    /// The highest number found near the end; zero where there is none.
    last: AuditSeq,
    /// Whether the last line has no end.
    torn: bool,
}

fn find_end(file: &dyn DiskFile, length: u64) -> io::Result<End> {
    let mut window = TAIL;
    loop {
        let from = length.saturating_sub(window);
        let tail = files::read(file, from, length - from)?;
        // The first part of a window may be the end of a line; it is no entry then, and does not parse.
        let numbers = tail.split(|b| *b == b'\n').filter_map(|line| serde_json::from_slice(line).ok());
        let last = numbers.map(|Numbered { seq }| seq).max();
        let torn = tail.last().is_some_and(|last| *last != b'\n');
        match last {
            Some(last) => return Ok(End { last, torn }),
            None if from == 0 => return Ok(End { last: AuditSeq(0), torn }),
            None => window = window.saturating_mul(8),
        }
    }
}

/// Reads the entries after a number, oldest first. Damaged lines are passed over.
pub(crate) fn read(
    disk: &dyn Disk,
    path: &Path,
    folder: &Path,
    after: Option<AuditSeq>,
) -> Result<Vec<AuditEntry>, StoreError> {
    let at = At::new("audit", path);
    let file = match files::open_to_read(disk, path) {
        Ok((file, _)) => file,
        Err(Unopened::Absent) if disk.is_folder(folder) => return Ok(Vec::new()),
        Err(unopened) => return Err(unopened.at(at, StoreErrorKind::Other)),
    };
    let mut reader = BufReader::new(Stream::new(file));
    let mut entries = Vec::new();
    let mut line = Vec::new();
    loop {
        line.clear();
        if reader.read_until(b'\n', &mut line).map_err(|error| at.io(error))? == 0 {
            return Ok(entries);
        }
        match serde_json::from_slice::<AuditEntry>(&line) {
            Ok(entry) if Some(entry.seq) > after => entries.push(entry),
            Ok(_) => {}
            // The end of a line may be on its way, and an empty one is what a repair leaves.
            Err(_) if line == b"\n" || line.last() != Some(&b'\n') => {}
            Err(error) => {
                tracing::warn!(path = %path.display(), %error, "an unreadable audit entry is passed over");
            }
        }
    }
}
