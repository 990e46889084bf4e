//! What tells a file from another, and from itself as it was.

use std::fs::Metadata;
use std::time::{SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};

/// Which file it is, and in which state. Times are nanoseconds since the epoch.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Stamp {
    pub(crate) device: u64,
    pub(crate) inode: u64,
    pub(crate) size: u64,
    /// When it was written, as it says.
    pub(crate) modified: i64,
    /// When it was written, named or given rights, as the kernel says; zero where there is no such time.
    pub(crate) changed: i64,
}

/// No kernel that counts finer than seconds lets a clock of files stand still for longer.
const TICK: i64 = 50_000_000;
/// The coarsest clock of a file system that is in use.
const COARSE: i64 = 2_000_000_000;
const SECOND: i64 = 1_000_000_000;

impl Stamp {
    #[cfg(unix)]
    pub(crate) fn of(metadata: &Metadata) -> Self {
        use std::os::unix::fs::MetadataExt as _;

        let nanos = |seconds: i64, nanos: i64| seconds.saturating_mul(SECOND).saturating_add(nanos);
        Self {
            device: metadata.dev(),
            inode: metadata.ino(),
            size: metadata.len(),
            modified: nanos(metadata.mtime(), metadata.mtime_nsec()),
            changed: nanos(metadata.ctime(), metadata.ctime_nsec()),
        }
    }

    #[cfg(not(unix))]
    pub(crate) fn of(metadata: &Metadata) -> Self {
        let modified = metadata.modified().unwrap_or(UNIX_EPOCH);
        Self { size: metadata.len(), modified: nanos(modified), ..Self::default() }
    }

    pub(crate) const fn is_same_file(&self, other: &Self) -> bool {
        self.device == other.device && self.inode == other.inode
    }

    /// Whether a file with this stamp, taken at that time or later, may be written again without getting another one: its
    /// last write is no older than a tick of the clock that stamped it.
    pub(crate) const fn is_fresh(&self, taken: i64) -> bool {
        let written = if self.changed == 0 { self.modified } else { self.changed };
        let tick = if written % SECOND == 0 { COARSE } else { TICK };
        written >= taken.saturating_sub(tick)
    }
}

/// The clock that files are stamped by, as far as the file system is one of this machine.
pub(crate) fn now() -> i64 {
    nanos(SystemTime::now())
}

fn nanos(time: SystemTime) -> i64 {
    let after = |time: SystemTime| time.duration_since(UNIX_EPOCH).ok();
    after(time).map_or(0, |since| i64::try_from(since.as_nanos()).unwrap_or(i64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stamp_of_just_now_is_not_trusted() {
        let at = 1_700_000_000_000_000_000;
        let fresh = |changed, modified| Stamp { changed, modified, ..Stamp::default() }.is_fresh(at);
        assert!(fresh(at - 1, 1), "within a tick");
        assert!(fresh(at + SECOND + 1, 1), "a clock that went back");
        assert!(!fresh(at - SECOND - 1, 1), "a fine clock");
        assert!(fresh(at - SECOND, 1), "perhaps a coarse clock");
        assert!(!fresh(at - 3 * SECOND, 1));
        assert!(fresh(0, at - 1) && !fresh(0, 1), "where there is no other time");
        assert!(!fresh(at - 3 * SECOND, at + SECOND), "whoever set the time of writing did it then");
    }
}
