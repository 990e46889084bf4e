//! Points in time, as the store and the audit log write them.

use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// A point in time, written as RFC 3339 in UTC. Comes from [`Host::now`](crate::Host::now), never from a clock
/// read in the core.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Timestamp(jiff::Timestamp);

impl Timestamp {
    /// The Unix epoch.
    pub const EPOCH: Self = Self(jiff::Timestamp::UNIX_EPOCH);

    /// From milliseconds since the epoch; what lies outside of the years −9999 to 9999 is moved to the nearest end.
    #[must_use]
    pub fn from_millis(millis: i64) -> Self {
        let end = if millis < 0 { jiff::Timestamp::MIN } else { jiff::Timestamp::MAX };
        Self(jiff::Timestamp::from_millisecond(millis).unwrap_or(end))
    }

    /// Milliseconds since the epoch.
    #[must_use]
    pub fn as_millis(self) -> i64 {
        self.0.as_millisecond()
    }

    /// How long ago `earlier` was; zero when it lies ahead, as after a clock step.
    #[must_use]
    pub fn since(self, earlier: Self) -> Duration {
        self.0.duration_since(earlier.0).try_into().unwrap_or_default()
    }

    /// So much later; at most the last point in time that there is.
    #[must_use]
    pub fn plus(self, duration: Duration) -> Self {
        let millis = i64::try_from(duration.as_millis()).unwrap_or(i64::MAX);
        Self::from_millis(self.as_millis().saturating_add(millis))
    }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Debug for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
