//! How much a tree takes of the disk, whatever an agent made of it.

use std::ffi::OsString;
use std::io;

use session_core::StateSize;

use crate::tree::{Dir, Entry};

/// How many folders may be known and not yet looked into. A tree with more at once is measured in part.
const PENDING: usize = 100_000;

/// A folder on the way down, and those in it that are still to be looked into.
struct Level {
    id: (u64, u64),
    pending: Vec<OsString>,
}

/// What was found so far.
struct Tally {
    size: StateSize,
    device: u64,
    pending: usize,
    limit: usize,
    /// Whether something could not be looked at that nobody had closed.
    failed: bool,
}

impl Tally {
    fn add(&mut self, entry: &Entry) {
        self.size.bytes = self.size.bytes.saturating_add(entry.bytes);
        self.size.changed_at = self.size.changed_at.max(Some(entry.changed_at));
    }

    /// Notes what could not be looked at. What an agent closed is its own doing; of what failed, such as for want of open
    /// files, nobody can tell how old it is.
    fn miss(&mut self, error: &io::Error) {
        self.size.partial = true;
        self.failed |= error.kind() != io::ErrorKind::PermissionDenied;
    }

    const fn done(mut self) -> StateSize {
        if self.failed {
            self.size.changed_at = None;
        }
        self.size
    }

    /// Adds what is in a folder, and says which folders are.
    fn enter(&mut self, dir: &Dir, id: (u64, u64)) -> Level {
        let mut level = Level { id, pending: Vec::new() };
        let names = match dir.names() {
            Ok(names) => names,
            Err(error) => {
                self.miss(&error);
                return level;
            }
        };
        for name in names {
            match name.and_then(|name| Ok((dir.look(&name)?, name))) {
                Ok((Some(entry), name)) => {
                    self.add(&entry);
                    // What is mounted there is not of this tree.
                    if entry.is_dir && entry.id.0 == self.device {
                        if self.pending < self.limit {
                            self.pending += 1;
                            level.pending.push(name);
                        } else {
                            self.size.partial = true;
                        }
                    }
                }
                // It went meanwhile.
                Ok((None, _)) => {}
                Err(error) => {
                    self.miss(&error);
                    break;
                }
            }
        }
        level
    }
}

/// Measures a tree. However deep it is, one folder of it is open at a time.
pub(crate) fn measure(root: Dir) -> io::Result<StateSize> {
    measure_within(root, PENDING)
}

fn measure_within(root: Dir, limit: usize) -> io::Result<StateSize> {
    let entry = root.stat()?;
    let mut tally =
        Tally { size: StateSize::default(), device: entry.id.0, pending: 0, limit, failed: false };
    tally.add(&entry);
    let mut way = vec![tally.enter(&root, entry.id)];
    let mut here = root;
    loop {
        let Some(level) = way.last_mut() else { return Ok(tally.done()) };
        if let Some(name) = level.pending.pop() {
            tally.pending -= 1;
            match here
                .enter(&name)
                .and_then(|inner| inner.map(|inner| Ok((inner.stat()?, inner))).transpose())
            {
                Ok(Some((entry, inner))) => {
                    let below = tally.enter(&inner, entry.id);
                    // Where there is no way further down, there is none back to be found.
                    if !below.pending.is_empty() {
                        way.push(below);
                        here = inner;
                    }
                }
                Ok(None) => {}
                Err(error) => tally.miss(&error),
            }
            continue;
        }
        way.pop();
        let Some(above) = way.last() else { return Ok(tally.done()) };
        // Somebody may have moved it while we were in it: then the rest cannot be found again from here.
        match here.parent().and_then(|parent| Ok((parent.stat()?.id, parent))) {
            Ok((id, parent)) if id == above.id => here = parent,
            Ok(_) => return Ok(tally.done().at_least()),
            Err(error) => {
                tally.miss(&error);
                return Ok(tally.done());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(unix)]
    #[test]
    fn what_could_not_be_looked_at_has_no_age_unless_somebody_closed_it() {
        let dir = tempfile::tempdir().unwrap();
        let entry = Dir::open(dir.path()).unwrap().stat().unwrap();
        let measured = |error: rustix::io::Errno| {
            let size = StateSize::default();
            let mut tally = Tally { size, device: 0, pending: 0, limit: PENDING, failed: false };
            tally.add(&entry);
            tally.miss(&error.into());
            let size = tally.done();
            assert!(size.partial);
            size.changed_at
        };
        assert_eq!(measured(rustix::io::Errno::ACCESS), Some(entry.changed_at));
        assert_eq!((measured(rustix::io::Errno::MFILE), measured(rustix::io::Errno::IO)), (None, None));
    }

    #[test]
    fn of_too_many_folders_a_part_is_measured_and_that_is_said() {
        let dir = tempfile::tempdir().unwrap();
        for name in 0..10 {
            let folder = dir.path().join(name.to_string());
            std::fs::create_dir_all(folder.join("inner")).unwrap();
            std::fs::write(folder.join("file"), vec![1; 1 << 16]).unwrap();
        }
        let size = |limit| measure_within(Dir::open(dir.path()).unwrap(), limit).unwrap();
        let (whole, part) = (size(PENDING), size(3));
        assert!(!whole.partial && part.partial);
        assert!(part.bytes < whole.bytes && part.bytes >= 3 << 16, "{part:?} of {whole:?}");
    }
}
