//! Times as people read them: in UTC, and as the distance from now.

use std::time::{SystemTime, UNIX_EPOCH};

const MINUTE: u64 = 60;
const HOUR: u64 = 60 * MINUTE;
const DAY: u64 = 24 * HOUR;
/// From 0000-03-01, where the calendar's arithmetic begins.
const DAYS_TO_EPOCH: u64 = 719_468;

/// Milliseconds since the Unix epoch; zero on a clock that stands before it.
pub fn now_ms() -> u64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |age| u64::try_from(age.as_millis()).unwrap_or(u64::MAX))
}

/// A time as RFC 3339 in UTC, to the second.
pub fn utc(ms: u64) -> String {
    let seconds = ms / 1000;
    let (year, month, day) = civil(seconds / DAY);
    let (hour, minute, second) = (
        seconds % DAY / HOUR,
        seconds % HOUR / MINUTE,
        seconds % MINUTE,
    );
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z")
}

/// The day of a Gregorian date from 1970 on: the reverse of [`civil`].
fn days(year: u64, month: u64, day: u64) -> u64 {
    let (year, shifted_month) = match month {
        1 | 2 => (year - 1, month + 9),
        _ => (year, month - 3),
    };
    let before = year * 365 + year / 4 - year / 100 + year / 400;
    before + (153 * shifted_month + 2) / 5 + day - 1 - DAYS_TO_EPOCH
}

/// The Gregorian date of a day counted from 1970-01-01. Years are counted from
/// March, so that the leap day is the last of its year.
fn civil(days: u64) -> (u64, u64, u64) {
    const DAYS_PER_ERA: u64 = 146_097;
    let days = days + DAYS_TO_EPOCH;
    let (era, day_of_era) = (days / DAYS_PER_ERA, days % DAYS_PER_ERA);
    let year_of_era =
        (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted_month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * shifted_month + 2) / 5 + 1;
    let month = if shifted_month < 10 {
        shifted_month + 3
    } else {
        shifted_month - 9
    };
    let year = era * 400 + year_of_era + u64::from(month <= 2);
    (year, month, day)
}

/// Milliseconds since the Unix epoch of a time as RFC 3339 has it in UTC, with or without a
/// fraction; none for what is no such time or lies before the epoch.
pub fn from_rfc3339(text: &str) -> Option<u64> {
    let (date, time) = text.strip_suffix('Z')?.split_once('T')?;
    let (time, fraction) = time.split_once('.').unwrap_or((time, ""));
    let numbers = |text: &str, separator| -> Option<[u64; 3]> {
        let mut parts = text.split(separator).map(|part| match part.len() {
            2 | 4 if part.bytes().all(|c| c.is_ascii_digit()) => part.parse().ok(),
            _ => None,
        });
        let numbers = [parts.next()??, parts.next()??, parts.next()??];
        parts.next().is_none().then_some(numbers)
    };
    let [year, month, day] = numbers(date, '-')?;
    let [hour, minute, second] = numbers(time, ':')?;
    let exists = (1970..=9999).contains(&year)
        && (1..=12).contains(&month)
        && (1..=31).contains(&day)
        && hour < 24
        && minute < 60
        && second < 60
        && fraction.bytes().all(|c| c.is_ascii_digit());
    if !exists {
        return None;
    }
    let days = days(year, month, day);
    if civil(days) != (year, month, day) {
        return None;
    }
    Some((days * DAY + hour * HOUR + minute * MINUTE + second) * 1000)
}

/// How far a time is from now: `in 5 s`, `2 h 5 min ago`, `now`. What lies ahead
/// is rounded up, what lies behind down, so that no wait ends before it says.
pub fn distance(now_ms: u64, at_ms: u64) -> String {
    if at_ms > now_ms {
        return format!("in {}", span((at_ms - now_ms).div_ceil(1000)));
    }
    match (now_ms - at_ms) / 1000 {
        0 => "now".into(),
        seconds => format!("{} ago", span(seconds)),
    }
}

/// A length of time in its two largest units.
pub fn span(seconds: u64) -> String {
    let (large, large_unit, small, small_unit) = match seconds {
        0..MINUTE => return format!("{seconds} s"),
        MINUTE..HOUR => (seconds / MINUTE, "min", seconds % MINUTE, "s"),
        HOUR..DAY => (seconds / HOUR, "h", seconds % HOUR / MINUTE, "min"),
        _ => (seconds / DAY, "d", seconds % DAY / HOUR, "h"),
    };
    match small {
        0 => format!("{large} {large_unit}"),
        _ => format!("{large} {large_unit} {small} {small_unit}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Expected values from `date -u -d @N`.
    #[test]
    fn times_are_utc() {
        let cases = [
            (0, "1970-01-01T00:00:00Z"),
            (951_782_399, "2000-02-28T23:59:59Z"),
            (951_782_400, "2000-02-29T00:00:00Z"),
            (1_709_164_800, "2024-02-29T00:00:00Z"),
            (1_735_689_599, "2024-12-31T23:59:59Z"),
            (4_107_542_400, "2100-03-01T00:00:00Z"),
            (253_402_300_799, "9999-12-31T23:59:59Z"),
        ];
        for (seconds, text) in cases {
            assert_eq!(utc(seconds * 1000), text);
        }
    }

    /// Expected values from `date -u -d … +%s`.
    #[test]
    fn times_are_read_back() {
        let cases = [
            ("1970-01-01T00:00:00Z", 0),
            ("2024-02-29T00:00:00Z", 1_709_164_800),
            ("2024-02-17T17:12:09.589Z", 1_708_189_929),
            ("9999-12-31T23:59:59Z", 253_402_300_799),
        ];
        for (text, seconds) in cases {
            assert_eq!(from_rfc3339(text), Some(seconds * 1000), "{text}");
        }
        for text in [
            "",
            "2024-02-30T00:00:00Z",
            "1969-12-31T23:59:59Z",
            "2024-02-17 17:12:09Z",
            "2024-02-17T17:12:09",
            "2024-02-17T17:12Z",
            "2024-02-17T17:12:09.xZ",
        ] {
            assert_eq!(from_rfc3339(text), None, "{text}");
        }
    }

    #[test]
    fn the_farthest_time_does_not_overflow() {
        assert!(utc(u64::MAX).starts_with("584556019-"));
        assert!(distance(0, u64::MAX).starts_with("in 213503982334 d"));
    }

    #[test]
    fn distances_read_in_two_units() {
        let now = 1_000_000_000_000;
        let cases: [(i64, &str); 12] = [
            (0, "now"),
            (-999, "now"),
            (1, "in 1 s"),
            (4_001, "in 5 s"),
            (60_000, "in 1 min"),
            (150_000, "in 2 min 30 s"),
            (3_600_000, "in 1 h"),
            (11_100_000, "in 3 h 5 min"),
            (187_200_000, "in 2 d 4 h"),
            (-12_900, "12 s ago"),
            (-86_400_000, "1 d ago"),
            (-90_000, "1 min 30 s ago"),
        ];
        for (offset, text) in cases {
            assert_eq!(distance(now, now.checked_add_signed(offset).unwrap()), text);
        }
    }
}
