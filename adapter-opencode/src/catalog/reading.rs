//! Reads databases of the agent without leaving anything beside them.
//!
//! A database with a log (WAL) is opened by SQLite with two files beside it, which it makes where they are missing, and
//! then leaves there. Where neither a log nor a journal lies beside a database, there is nothing to be found in them: it
//! is read as one that does not change, and read once more, in the common way, where it did change meanwhile.
//!
//! SQLite alone opens these files: the system takes all locks of a process from a file when the process closes it, by
//! whatever handle, and so the locks of a connection that the caller holds.

use std::path::Path;
use std::time::{Duration, Instant, SystemTime};

use rusqlite::Connection;

use super::connect::{Way, beside, check, connect};
use super::database::Ailment;

/// Does some reading on a database, in one view of it. `None`: there is nothing, or nothing in it.
pub(super) fn read<T, E: From<Ailment>>(
    path: &Path,
    state: Option<&Path>,
    until: Instant,
    work: impl Fn(&Connection) -> Result<T, E>,
) -> Result<Option<T>, E> {
    let Some(real) = check(path, state)? else { return Ok(None) };
    let is_idle =
        || ["-wal", "-journal"].iter().all(|suffix| beside(&real, suffix).symlink_metadata().is_err());
    if cfg!(unix) && is_idle() {
        let before = Stamp::settled(&real)?;
        let opened = connect(&real, Way::Unchanging, until).map_err(Ailment::from);
        let done = opened.map_err(E::from).and_then(|connection| work(&connection));
        if is_idle() && Stamp::of(&real)? == before {
            return done.map(Some);
        }
    }
    let connection = connect(&real, Way::Reading, until).map_err(Ailment::from)?;
    let journal: String =
        connection.query_row("PRAGMA journal_mode", [], |row| row.get(0)).map_err(Ailment::from)?;
    if journal == "wal" {
        // Without a log, a view held for long would be in the way of writers.
        connection.execute_batch("BEGIN").map_err(Ailment::from)?;
    }
    work(&connection).map(Some)
}

/// How coarse the clock of a file system may be: a second write within that time leaves the stamp of the first.
const TICK: Duration = Duration::from_millis(20);

/// What tells that a file was written to.
#[derive(PartialEq)]
pub(super) struct Stamp {
    bytes: u64,
    written: Option<SystemTime>,
    #[cfg(unix)]
    file: (u64, u64),
    #[cfg(unix)]
    changed: (i64, i64),
}

impl Stamp {
    pub(super) fn of(path: &Path) -> Result<Self, Ailment> {
        #[cfg(unix)]
        use std::os::unix::fs::MetadataExt as _;
        let metadata = path.symlink_metadata()?;
        Ok(Self {
            bytes: metadata.len(),
            written: metadata.modified().ok(),
            #[cfg(unix)]
            file: (metadata.dev(), metadata.ino()),
            #[cfg(unix)]
            changed: (metadata.ctime(), metadata.ctime_nsec()),
        })
    }

    /// The stamp of a log, of its content alone: SQLite sets its owner anew whenever root opens it.
    pub(super) fn of_log(path: &Path) -> Result<Self, Ailment> {
        Ok(Self {
            #[cfg(unix)]
            changed: (0, 0),
            ..Self::of(path)?
        })
    }

    /// The stamp at a time when a write would leave another one: right after one, the clock has to go on first.
    fn settled(path: &Path) -> Result<Self, Ailment> {
        let age =
            |stamp: &Self| stamp.written.and_then(|written| SystemTime::now().duration_since(written).ok());
        let stamp = Self::of(path)?;
        let Some(left) = age(&stamp).and_then(|age| TICK.checked_sub(age)) else { return Ok(stamp) };
        std::thread::sleep(left);
        Self::of(path)
    }
}

#[cfg(all(test, unix))]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt as _;

    use super::Stamp;

    #[test]
    fn the_stamp_of_a_log_is_of_its_content() {
        let folder = tempfile::tempdir().unwrap();
        let log = folder.path().join("log");
        fs::write(&log, "one").unwrap();
        // What changes anything but its content changes the time of that alone.
        let moved = || {
            fs::rename(&log, folder.path().join("other")).unwrap();
            fs::rename(folder.path().join("other"), &log).unwrap();
            fs::set_permissions(&log, fs::Permissions::from_mode(0o600)).unwrap();
        };
        let of_file = || Stamp::of(&log).ok().unwrap();
        let of_log = || Stamp::of_log(&log).ok().unwrap();
        let before = (of_file(), of_log());
        while of_file() == before.0 {
            moved();
        }
        assert!(of_log() == before.1);
        fs::write(&log, "one and more").unwrap();
        assert!(of_log() != before.1);
    }
}
