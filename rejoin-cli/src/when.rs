//! Times: for people as an age, for programs as RFC 3339 in UTC (which `Timestamp` writes by itself).

use std::time::{Duration, SystemTime};

use rejoin::core::Timestamp;

/// The present.
pub(crate) fn now() -> Timestamp {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    Timestamp::from_millis(i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
}

/// How long ago, in at most four columns: `now`, `5m`, `3h`, `2d`, `7w`, `3y`. A time that lies ahead is `now`.
pub(crate) fn ago(then: Timestamp, now: Timestamp) -> String {
    const MINUTE: u64 = 60;
    const HOUR: u64 = 60 * MINUTE;
    const DAY: u64 = 24 * HOUR;
    let seconds = now.since(then).as_secs();
    if seconds < MINUTE {
        return "now".to_owned();
    }
    let (number, unit) = match () {
        () if seconds < HOUR => (seconds / MINUTE, 'm'),
        () if seconds < DAY => (seconds / HOUR, 'h'),
        () if seconds < 14 * DAY => (seconds / DAY, 'd'),
        () if seconds < 365 * DAY => (seconds / (7 * DAY), 'w'),
        () => (seconds / (365 * DAY), 'y'),
    };
    format!("{number}{unit}")
}

/// Reads a duration such as `90s`, `15m`, `6h`, `7d`; a number alone is seconds.
pub(crate) fn duration(text: &str) -> Result<Duration, String> {
    let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(end);
    let factor = match unit {
        "" | "s" => 1,
        "m" => 60,
        "h" => 60 * 60,
        "d" => 24 * 60 * 60,
        _ => return Err(format!("{unit:?} is no unit of time; known are s, m, h, d")),
    };
    let number: u64 = number.parse().map_err(|_| "it does not begin with a number".to_owned())?;
    number.checked_mul(factor).map(Duration::from_secs).ok_or_else(|| "it is too long".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_age_is_told_in_its_largest_unit() {
        let now = Timestamp::from_millis(1_800_000_000_000);
        let ago = |seconds: i64| super::ago(Timestamp::from_millis(now.as_millis() - seconds * 1000), now);
        assert_eq!([ago(-5), ago(0), ago(59)], ["now", "now", "now"]);
        assert_eq!([ago(60), ago(3599), ago(3600), ago(86_399)], ["1m", "59m", "1h", "23h"]);
        assert_eq!([ago(86_400), ago(14 * 86_400), ago(400 * 86_400)], ["1d", "2w", "1y"]);
    }

    #[test]
    fn a_duration_has_a_unit_or_is_in_seconds() {
        assert_eq!(duration("90").unwrap(), Duration::from_secs(90));
        assert_eq!(duration("2h").unwrap(), Duration::from_secs(7200));
        for bad in ["", "h", "2w", "-1", "99999999999999999999d", "18446744073709551615d"] {
            assert!(duration(bad).is_err(), "{bad}");
        }
    }
}
