//! Points and spans of time as people and protocols write them.
//!
//! Every time in this crate is in milliseconds since the Unix epoch, in UTC and without leap
//! seconds, every span in milliseconds. The types here only show them.

use core::fmt;

/// One second.
pub const SECOND_MS: u64 = 1000;
/// One minute.
pub const MINUTE_MS: u64 = 60 * SECOND_MS;
/// One hour.
pub const HOUR_MS: u64 = 60 * MINUTE_MS;
/// One day of 24 hours.
pub const DAY_MS: u64 = 24 * HOUR_MS;

/// A point in time as RFC 3339 has it, to the second: `2026-11-30T18:05:22Z`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Utc(pub u64);

/// A span in its two largest units, rounded down: `3 h 12 min`, `2 d 4 h`, `45 s`, `350 ms`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Span(pub u64);

/// A point in time as HTTP writes it (IMF-fixdate, RFC 9110, 5.6.7), to the second.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct HttpDate(pub u64);

impl fmt::Display for Utc {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let date = Date::of(self.0);
        let (hour, minute, second) = clock(self.0);
        let Date {
            year, month, day, ..
        } = date;
        write!(
            f,
            "{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z"
        )
    }
}

impl fmt::Display for HttpDate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let date = Date::of(self.0);
        let (hour, minute, second) = clock(self.0);
        let weekday = WEEKDAYS[date.weekday];
        let month = MONTHS[date.month as usize - 1];
        let Date { year, day, .. } = date;
        write!(
            f,
            "{weekday}, {day:02} {month} {year:04} {hour:02}:{minute:02}:{second:02} GMT"
        )
    }
}

impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0 < SECOND_MS {
            return write!(f, "{} ms", self.0);
        }
        let units = [
            (DAY_MS, "d"),
            (HOUR_MS, "h"),
            (MINUTE_MS, "min"),
            (SECOND_MS, "s"),
        ];
        // The last unit is one second, which the span reaches.
        let first = units
            .iter()
            .position(|(unit, _)| self.0 >= *unit)
            .unwrap_or(units.len() - 1);
        let (unit, name) = units[first];
        write!(f, "{} {name}", self.0 / unit)?;
        if let Some((smaller, name)) = units.get(first + 1) {
            let rest = self.0 % unit / smaller;
            if rest > 0 {
                write!(f, " {rest} {name}")?;
            }
        }
        Ok(())
    }
}

struct Date {
    year: u64,
    month: u64,
    day: u64,
    /// 0 is Sunday.
    weekday: usize,
}

impl Date {
    /// The proleptic Gregorian date. Years are counted from March here, so that the leap day is
    /// a year's last; 719 468 days lie between 0000-03-01 and the epoch.
    fn of(ms: u64) -> Self {
        let days = ms / DAY_MS;
        let shifted = days + 719_468;
        let (era, day_of_era) = (shifted / 146_097, shifted % 146_097);
        let year_of_era =
            (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
        let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
        let from_march = (5 * day_of_year + 2) / 153;
        let month = if from_march < 10 {
            from_march + 3
        } else {
            from_march - 9
        };
        Self {
            year: era * 400 + year_of_era + u64::from(month <= 2),
            month,
            day: day_of_year - (153 * from_march + 2) / 5 + 1,
            weekday: ((days + 4) % 7) as usize,
        }
    }
}

fn clock(ms: u64) -> (u64, u64, u64) {
    let of_day = ms % DAY_MS;
    (
        of_day / HOUR_MS,
        of_day % HOUR_MS / MINUTE_MS,
        of_day % MINUTE_MS / SECOND_MS,
    )
}

const WEEKDAYS: [&str; 7] = ["Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"];
const MONTHS: [&str; 12] = [
    "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
];
