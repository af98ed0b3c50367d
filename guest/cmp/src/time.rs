//! GeneralizedTime and UTCTime.

use alloc::format;
use alloc::string::String;

use crate::der::{Element, Reader, Writer, tag};
use crate::error::{Error, Result, Rule};

/// A point in time in seconds since 1970-01-01T00:00:00Z, and a fraction of a
/// second down to nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Time {
    unix: i64,
    nanoseconds: u32,
}

impl Time {
    /// From seconds since the Unix epoch.
    pub const fn from_unix(seconds: i64) -> Self {
        Self {
            unix: seconds,
            nanoseconds: 0,
        }
    }

    /// Seconds since the Unix epoch.
    pub const fn unix(self) -> i64 {
        self.unix
    }

    /// Reads a GeneralizedTime in UTC. Fractions of a second, which some peers send
    /// in messageTime, are allowed as DER has them (X.690, 11.7).
    pub fn generalized(reader: &mut Reader<'_>) -> Result<Self> {
        let element = reader.element(tag::GENERALIZED_TIME, "a GeneralizedTime")?;
        Self::from_element(&element, true)
    }

    /// Reads the Time of RFC 5280, 4.1.2.5: UTCTime or GeneralizedTime, without a fraction.
    pub fn either(reader: &mut Reader<'_>) -> Result<Self> {
        let element = match reader.peek() {
            Some(tag::UTC_TIME) => reader.any()?,
            _ => reader.element(tag::GENERALIZED_TIME, "a GeneralizedTime")?,
        };
        Self::from_element(&element, false)
    }

    fn from_element(element: &Element<'_>, may_have_fraction: bool) -> Result<Self> {
        let fault = || Error::new(element.offset, Rule::NotDistinguished("a malformed time"));
        let digits = element.value.strip_suffix(b"Z").ok_or_else(fault)?;
        let (year, rest) = if element.tag == tag::UTC_TIME {
            let (year, rest) = number(digits, 2).ok_or_else(fault)?;
            (if year < 50 { 2000 + year } else { 1900 + year }, rest)
        } else {
            number(digits, 4).ok_or_else(fault)?
        };
        let (month, rest) = number(rest, 2).ok_or_else(fault)?;
        let (day, rest) = number(rest, 2).ok_or_else(fault)?;
        let (hour, rest) = number(rest, 2).ok_or_else(fault)?;
        let (minute, rest) = number(rest, 2).ok_or_else(fault)?;
        let (second, rest) = number(rest, 2).ok_or_else(fault)?;
        let fraction = match rest {
            [] => Some(&[][..]),
            [b'.', fraction @ ..] if element.tag == tag::GENERALIZED_TIME => {
                let digits =
                    (1..=9).contains(&fraction.len()) && fraction.iter().all(u8::is_ascii_digit);
                digits.then_some(fraction)
            }
            _ => None,
        };
        let exists = (1..=12).contains(&month)
            && (1..=days_in(year, month)).contains(&day)
            && hour < 24
            && minute < 60
            && second < 60;
        let Some(fraction) = fraction.filter(|_| exists) else {
            return Err(fault());
        };
        let rule = match fraction.last() {
            Some(_) if !may_have_fraction => Some("a fraction of a second in a certificate's time"),
            Some(b'0') => Some("a fraction of a second that ends with zeros is not DER"),
            _ => None,
        };
        if let Some(rule) = rule {
            element.tolerate(element.value_offset(), Rule::FractionalSeconds(rule))?;
        }
        let days = days_from_epoch(year, month, day);
        let scale = 10u32.pow(9 - fraction.len() as u32);
        let written = fraction
            .iter()
            .fold(0, |sum, &digit| sum * 10 + u32::from(digit - b'0'));
        Ok(Self {
            unix: ((days * 24 + hour) * 60 + minute) * 60 + second,
            nanoseconds: written * scale,
        })
    }

    /// The fields of the calendar: year, month, day, hour, minute, second.
    fn calendar(self) -> (i64, i64, i64, i64, i64, i64) {
        let (days, rest) = (self.unix.div_euclid(86_400), self.unix.rem_euclid(86_400));
        // Howard Hinnant's civil-from-days: years begin in March, so that the leap
        // day is the last of its year.
        let shifted = days + 719_468;
        let era = shifted.div_euclid(146_097);
        let day_of_era = shifted.rem_euclid(146_097);
        let year_of_era =
            (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
        let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
        let month_from_march = (5 * day_of_year + 2) / 153;
        let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
        let month = if month_from_march < 10 {
            month_from_march + 3
        } else {
            month_from_march - 9
        };
        let year = year_of_era + era * 400 + i64::from(month <= 2);
        (year, month, day, rest / 3600, rest / 60 % 60, rest % 60)
    }

    /// As RFC 3339 writes it, in UTC.
    pub fn rfc3339(self) -> String {
        let (year, month, day, hour, minute, second) = self.calendar();
        format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z")
    }

    /// Writes a GeneralizedTime.
    pub(crate) fn write_generalized(self, writer: &mut Writer) {
        let (year, month, day, hour, minute, second) = self.calendar();
        let mut text = format!("{year:04}{month:02}{day:02}{hour:02}{minute:02}{second:02}");
        if self.nanoseconds > 0 {
            let fraction = format!(".{:09}", self.nanoseconds);
            text.push_str(fraction.trim_end_matches('0'));
        }
        text.push('Z');
        writer.element(tag::GENERALIZED_TIME, text.as_bytes());
    }
}

/// A number of exactly `count` digits, and what follows it.
fn number(digits: &[u8], count: usize) -> Option<(i64, &[u8])> {
    let (digits, rest) = digits.split_at_checked(count)?;
    digits.iter().all(u8::is_ascii_digit).then(|| {
        (
            digits
                .iter()
                .fold(0, |sum, &digit| sum * 10 + i64::from(digit - b'0')),
            rest,
        )
    })
}

fn is_leap(year: i64) -> bool {
    year % 4 == 0 && (year % 100 != 0 || year % 400 == 0)
}

fn days_in(year: i64, month: i64) -> i64 {
    match month {
        2 if is_leap(year) => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

fn days_from_epoch(year: i64, month: i64, day: i64) -> i64 {
    let before = |year: i64| year * 365 + year / 4 - year / 100 + year / 400;
    let months: i64 = (1..month).map(|month| days_in(year, month)).sum();
    before(year - 1) - before(1969) + months + day - 1
}

#[cfg(test)]
mod tests {
    use super::*;

    fn generalized(text: &str) -> Result<Time> {
        let der = Writer::encode(|w| w.element(tag::GENERALIZED_TIME, text.as_bytes()));
        Time::generalized(&mut Reader::new(&der))
    }

    // Seconds from `date -u -d … +%s`.
    const KNOWN: [(&str, i64); 6] = [
        ("19700101000000Z", 0),
        ("20000229235959Z", 951_868_799),
        ("20240217171209Z", 1_708_189_929),
        ("20501231235959Z", 2_556_143_999),
        ("19500101000000Z", -631_152_000),
        ("99991231235959Z", 253_402_300_799),
    ];

    #[test]
    fn known_times() {
        for (text, seconds) in KNOWN {
            assert_eq!(
                generalized(text).unwrap(),
                Time::from_unix(seconds),
                "{text}"
            );
            let der = Writer::encode(|w| Time::from_unix(seconds).write_generalized(w));
            assert_eq!(der[2..], *text.as_bytes());
        }
        assert_eq!(
            Time::from_unix(1_708_189_929).rfc3339(),
            "2024-02-17T17:12:09Z"
        );
    }

    #[test]
    fn fractions_come_back_and_nonsense_is_refused() {
        for text in [
            "20240217171209.589Z",
            "20240217171209.05Z",
            "20240217171209.000000001Z",
        ] {
            let time = generalized(text).unwrap();
            assert_eq!(time.unix(), 1_708_189_929);
            assert_eq!(
                Writer::encode(|w| time.write_generalized(w))[2..],
                *text.as_bytes()
            );
        }
        for text in [
            "20240217171209.580Z",
            "20240217171209.0000000001Z",
            "20240217171209.Z",
            "20240217171209",
            "20240217171209+0100",
            "20230229000000Z",
            "20241301000000Z",
            "20240100000000Z",
            "20240217240000Z",
            "20240217171260Z",
            "202402171712Z",
            "2024021717120aZ",
            "",
        ] {
            assert!(generalized(text).is_err(), "{text}");
        }
    }

    #[test]
    fn utc_time_turns_at_1950() {
        let utc = |text: &str| {
            let der = Writer::encode(|w| w.element(tag::UTC_TIME, text.as_bytes()));
            Time::either(&mut Reader::new(&der)).map(Time::rfc3339)
        };
        assert_eq!(utc("500101000000Z").unwrap(), "1950-01-01T00:00:00Z");
        assert_eq!(utc("491231235959Z").unwrap(), "2049-12-31T23:59:59Z");
        assert!(utc("491231235959.5Z").is_err());
    }
}
