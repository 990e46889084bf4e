//! Reads databases of the agent without leaving anything beside them.
//!
//! A database with a log (WAL) is opened by SQLite with two files beside it, which it makes where they are missing, and
//! then leaves there. Without a log there is nothing to be found in them: such a database is read as one that does not
//! change, and read once more, in the common way, where it did change meanwhile.

use std::io::Read as _;
use std::path::Path;
use std::time::Instant;

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
    let with_log = has_log_format(&real)?;
    let log = beside(&real, "-wal");
    let has_log = || log.symlink_metadata().is_ok();
    if with_log && cfg!(unix) {
        let before = Stamp::of(&real)?;
        if !has_log() {
            let opened = connect(&real, Way::Unchanging, until).map_err(Ailment::from);
            let done = opened.map_err(E::from).and_then(|connection| work(&connection));
            if !has_log() && Stamp::of(&real)? == before {
                return done.map(Some);
            }
        }
    }
    let connection = connect(&real, Way::Reading, until).map_err(Ailment::from)?;
    if with_log {
        // Without a log, a view held for long would be in the way of writers.
        connection.execute_batch("BEGIN").map_err(Ailment::from)?;
    }
    work(&connection).map(Some)
}

/// What tells that a file was written to.
#[derive(PartialEq)]
struct Stamp {
    bytes: u64,
    written: Option<std::time::SystemTime>,
    #[cfg(unix)]
    file: (u64, u64),
    #[cfg(unix)]
    changed: (i64, i64),
}

impl Stamp {
    fn of(path: &Path) -> Result<Self, Ailment> {
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
}

/// Whether the database keeps a log, by bytes 18 and 19 of its header.
#[expect(clippy::disallowed_types, reason = "this room does I/O, on the pool for blocking work")]
fn has_log_format(path: &Path) -> Result<bool, Ailment> {
    let mut header = Vec::with_capacity(20);
    std::fs::File::open(path)?.take(20).read_to_end(&mut header)?;
    Ok(header.get(18..20) == Some(&[2, 2]))
}
