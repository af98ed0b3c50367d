//! Times as RFC 9110 and the calendar have them.

use abide_policy::time::{HttpDate, Span, Utc};

#[test]
fn known_days() {
    let days: [(u64, &str, &str); 6] = [
        (0, "1970-01-01T00:00:00Z", "Thu, 01 Jan 1970 00:00:00 GMT"),
        // The example of RFC 9110, 5.6.7.
        (
            784_111_777,
            "1994-11-06T08:49:37Z",
            "Sun, 06 Nov 1994 08:49:37 GMT",
        ),
        (
            951_782_400,
            "2000-02-29T00:00:00Z",
            "Tue, 29 Feb 2000 00:00:00 GMT",
        ),
        (
            951_868_800,
            "2000-03-01T00:00:00Z",
            "Wed, 01 Mar 2000 00:00:00 GMT",
        ),
        // 2100 is no leap year.
        (
            4_107_542_399,
            "2100-02-28T23:59:59Z",
            "Sun, 28 Feb 2100 23:59:59 GMT",
        ),
        (
            4_107_542_400,
            "2100-03-01T00:00:00Z",
            "Mon, 01 Mar 2100 00:00:00 GMT",
        ),
    ];
    for (seconds, utc, http) in days {
        assert_eq!(Utc(seconds * 1000 + 999).to_string(), utc);
        assert_eq!(HttpDate(seconds * 1000).to_string(), http);
    }
}

#[test]
fn every_day_follows_the_one_before() {
    let mut expected = (1970, 1, 1);
    for day in 0..366 * 450 {
        let (year, month, date) = expected;
        let text = format!("{year:04}-{month:02}-{date:02}T00:00:00Z");
        assert_eq!(Utc(day * 86_400_000).to_string(), text);
        let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
        let last = match month {
            2 if leap => 29,
            2 => 28,
            4 | 6 | 9 | 11 => 30,
            _ => 31,
        };
        expected = match (month, date) {
            (12, 31) => (year + 1, 1, 1),
            (_, date) if date == last => (year, month + 1, 1),
            _ => (year, month, date + 1),
        };
    }
}

#[test]
fn the_end_of_time_can_be_written() {
    // 2⁶⁴ − 1 ms are 213 503 982 334 days, 14 h 25 min 51 s.
    assert!(Utc(u64::MAX).to_string().ends_with("T14:25:51Z"));
    assert!(HttpDate(u64::MAX).to_string().ends_with(" 14:25:51 GMT"));
}

#[test]
fn spans_have_two_units() {
    let spans = [
        (0, "0 ms"),
        (999, "999 ms"),
        (1000, "1 s"),
        (61_000, "1 min 1 s"),
        (400_000, "6 min 40 s"),
        (3_600_000, "1 h"),
        (11_520_000, "3 h 12 min"),
        (115_200_000, "1 d 8 h"),
        (86_400_000 + 59_000, "1 d"),
    ];
    for (ms, text) in spans {
        assert_eq!(Span(ms).to_string(), text);
    }
    assert_eq!(Span(u64::MAX).to_string(), "213503982334 d 14 h");
}
