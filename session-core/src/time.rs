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
            RawTime::Text(text) => {
                // Nearly all times have one form, which is read at once.
                if let Some(millis) = usual(text.as_bytes()) {
                    return Some(Self::from_millis(millis));
                }
                match text.parse::<jiff::Timestamp>() {
                    Ok(time) => return Some(Self(time)),
                    Err(_) => text.parse::<f64>().ok()?,
                }
            }
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

/// Reads `2026-01-05T08:00:00.000Z`, where it is surely a time.
fn usual(text: &[u8]) -> Option<i64> {
    let [
        y1,
        y2,
        y3,
        y4,
        b'-',
        m1,
        m2,
        b'-',
        d1,
        d2,
        b'T',
        h1,
        h2,
        b':',
        n1,
        n2,
        b':',
        s1,
        s2,
        b'.',
        f1,
        f2,
        f3,
        b'Z',
    ] = *text
    else {
        return None;
    };
    let number = |digits: &[u8]| {
        digits
            .iter()
            .try_fold(0_i64, |sum, digit| digit.is_ascii_digit().then(|| sum * 10 + i64::from(digit - b'0')))
    };
    let (year, month, day) = (number(&[y1, y2, y3, y4])?, number(&[m1, m2])?, number(&[d1, d2])?);
    let (hour, minute, second) = (number(&[h1, h2])?, number(&[n1, n2])?, number(&[s1, s2])?);
    // Days that not every month has are left to the calendar.
    let sure = (1970..2200).contains(&year)
        && (1..=12).contains(&month)
        && (1..=28).contains(&day)
        && hour < 24
        && minute < 60
        && second < 60;
    if !sure {
        return None;
    }
    // Days since the epoch, in years that begin with March.
    let (year, month) = if month < 3 { (year - 1, month + 9) } else { (year, month - 3) };
    let days = year * 365 + year / 4 - year / 100 + year / 400 + (153 * month + 2) / 5 + day - 719_469;
    Some((((days * 24 + hour) * 60 + minute) * 60 + second) * 1000 + number(&[f1, f2, f3])?)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_time_of_the_usual_form_is_that_of_the_calendar(
            year in 1969..2202, month in 0..14, day in 0..33, hour in 0..26, minute in 0..62, second in 0..62, milli in 0..1000,
        ) {
            let text = format!("{year}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{milli:03}Z");
            if let Some(millis) = usual(text.as_bytes()) {
                prop_assert_eq!(Ok(millis), text.parse().map(jiff::Timestamp::as_millisecond).map_err(drop));
            }
            if (1970..2200).contains(&year) && (1..=12).contains(&month) && (1..=28).contains(&day) && hour < 24 && minute < 60 && second < 60 {
                prop_assert!(usual(text.as_bytes()).is_some());
            }
        }
    }
}
