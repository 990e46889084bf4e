//! Points in time, as the store and the audit log write them.

use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::history::RawTime;

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

    /// Reads a time as an agent wrote it: RFC 3339 with any offset, or a number of seconds or milliseconds since the
    /// epoch, which may stand in a text. `None`: it is no time between 2001 and 2100.
    pub(crate) fn from_raw(raw: &RawTime<'_>) -> Option<Self> {
        let number = match raw {
            RawTime::Number(number) => *number,
            RawTime::Text(text) => match text.parse::<jiff::Timestamp>() {
                Ok(time) => return Some(Self(time)),
                Err(_) => text.parse::<f64>().ok()?,
            },
        };
        let millis = if number.abs() >= 1e11 { number } else { number * 1e3 };
        // Agents are younger than that, and a number that says otherwise counts something else.
        let known = (9.8e11..4.1e12).contains(&millis);
        #[expect(clippy::cast_possible_truncation, reason = "it is in the range that was looked at")]
        known.then(|| Self::from_millis(millis as i64))
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
