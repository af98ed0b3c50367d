//! Growth, cap and jitter against arithmetic by hand.

use abide_policy::backoff::Exponential;
use abide_policy::mistake::Check;
use abide_policy::random;
use abide_policy::strategy::{Growth, Jitter, Strategy};
use abide_policy::time::HOUR_MS;

const CENTURY_MS: u64 = 3_155_760_000_000;
const LOWEST: [u8; 8] = [0; 8];
const MIDDLE: [u8; 8] = [0x80, 0, 0, 0, 0, 0, 0, 0];
const HIGHEST: [u8; 8] = [0xff; 8];

fn linear(base_ms: u64, step_ms: u64, cap_ms: u64) -> Strategy {
    Strategy {
        base_ms,
        growth: Growth::Linear { step_ms },
        cap_ms,
        jitter: Jitter::None,
    }
}

fn jittered(jitter: Jitter) -> Strategy {
    Strategy {
        jitter,
        ..Strategy::default()
    }
}

#[test]
fn choices_cover_the_range_evenly() {
    assert_eq!(random::between(LOWEST, 3, 9), 3);
    assert_eq!(random::between(HIGHEST, 3, 9), 9);
    // Half of seven is three and a half.
    assert_eq!(random::between(MIDDLE, 3, 9), 6);
    assert_eq!(random::between(MIDDLE, 9, 3), 9);
    assert_eq!(random::between(HIGHEST, 0, u64::MAX), u64::MAX);
    assert_eq!(random::between(MIDDLE, 0, u64::MAX), 1 << 63);
    assert_eq!(random::between(HIGHEST, u64::MAX, u64::MAX), u64::MAX);
    // The 256 values of the first octet fall into four quarters of 64 each.
    let mut quarters = [0; 4];
    for first in 0..=255 {
        quarters[random::between([first, 0, 0, 0, 0, 0, 0, 0], 0, 3) as usize] += 1;
    }
    assert_eq!(quarters, [64; 4]);
}

#[test]
fn the_default_is_cert_managers() {
    let hours: Vec<u64> = (1..=8)
        .map(|n| Strategy::default().delay(Some(n), None, HIGHEST) / HOUR_MS)
        .collect();
    assert_eq!(hours, [1, 2, 4, 8, 16, 32, 32, 32]);
    for attempts in [None, Some(0), Some(-7), Some(1), Some(9), Some(i64::MAX)] {
        assert_eq!(
            Strategy::default().plain(attempts),
            Exponential::default().delay(attempts)
        );
        assert_eq!(
            Strategy::transient().plain(attempts),
            Exponential::transient().delay(attempts)
        );
    }
}

#[test]
fn linear_growth_adds_a_step() {
    let strategy = linear(1000, 500, 3000);
    let delays: Vec<u64> = (1..=7).map(|n| strategy.plain(Some(n))).collect();
    assert_eq!(delays, [1000, 1500, 2000, 2500, 3000, 3000, 3000]);
    assert_eq!(strategy.plain(None), 1000);
    assert_eq!(strategy.plain(Some(i64::MIN)), 1000);
    assert_eq!(
        linear(1, CENTURY_MS, CENTURY_MS).plain(Some(i64::MAX)),
        CENTURY_MS
    );
}

#[test]
fn constant_growth_stays() {
    let strategy = Strategy {
        growth: Growth::Constant,
        ..Strategy::default()
    };
    for attempts in [None, Some(1), Some(2), Some(i64::MAX)] {
        assert_eq!(strategy.plain(attempts), HOUR_MS);
    }
}

/// The third failure: a plain delay of four hours.
#[test]
fn jitter_by_hand() {
    let minutes = |jitter, previous, random| {
        jittered(jitter).delay(Some(3), previous, random) / (HOUR_MS / 60)
    };
    for random in [LOWEST, MIDDLE, HIGHEST] {
        assert_eq!(minutes(Jitter::None, None, random), 240);
    }
    assert_eq!(minutes(Jitter::Full, None, LOWEST), 0);
    assert_eq!(minutes(Jitter::Full, None, MIDDLE), 120);
    assert_eq!(minutes(Jitter::Full, None, HIGHEST), 240);
    assert_eq!(minutes(Jitter::Equal, None, LOWEST), 120);
    assert_eq!(minutes(Jitter::Equal, None, MIDDLE), 180);
    assert_eq!(minutes(Jitter::Equal, None, HIGHEST), 240);
    assert_eq!(minutes(Jitter::Percent(20), None, LOWEST), 192);
    assert_eq!(minutes(Jitter::Percent(20), None, MIDDLE), 240);
    assert_eq!(minutes(Jitter::Percent(20), None, HIGHEST), 288);
    // From the base of one hour to three times the two hours before.
    let two_hours = Some(2 * HOUR_MS);
    assert_eq!(minutes(Jitter::Decorrelated, two_hours, LOWEST), 60);
    assert_eq!(minutes(Jitter::Decorrelated, two_hours, MIDDLE), 210);
    assert_eq!(minutes(Jitter::Decorrelated, two_hours, HIGHEST), 360);
    assert_eq!(minutes(Jitter::Decorrelated, None, HIGHEST), 180);
}

#[test]
fn jitter_keeps_to_cap_and_base() {
    let percent = jittered(Jitter::Percent(50));
    assert_eq!(percent.range(Some(1), None), (HOUR_MS, HOUR_MS * 3 / 2));
    assert_eq!(percent.range(Some(6), None), (16 * HOUR_MS, 32 * HOUR_MS));
    let decorrelated = jittered(Jitter::Decorrelated);
    for previous in [0, 1, 31 * HOUR_MS, u64::MAX] {
        let (low, high) = decorrelated.range(Some(1), Some(previous));
        assert!(HOUR_MS <= low && low <= high && high <= 32 * HOUR_MS);
    }
}

#[test]
fn no_strategy_leaves_its_bounds() {
    let numbers = [0, 1, 1000, HOUR_MS, CENTURY_MS, u64::MAX];
    let jitters = [
        Jitter::None,
        Jitter::Full,
        Jitter::Equal,
        Jitter::Decorrelated,
        Jitter::Percent(0),
        Jitter::Percent(u32::MAX),
    ];
    let growths = [
        Growth::Constant,
        Growth::Linear { step_ms: u64::MAX },
        Growth::Exponential { factor_percent: 0 },
        Growth::Exponential {
            factor_percent: u32::MAX,
        },
    ];
    for base_ms in numbers {
        for cap_ms in numbers {
            for (jitter, growth) in jitters.iter().flat_map(|j| growths.map(|g| (*j, g))) {
                let strategy = Strategy {
                    base_ms,
                    growth,
                    cap_ms,
                    jitter,
                };
                for attempts in [None, Some(1), Some(5), Some(i64::MAX)] {
                    for random in [LOWEST, MIDDLE, HIGHEST] {
                        let delay = strategy.delay(attempts, Some(base_ms), random);
                        let cap = cap_ms.max(base_ms).clamp(1, CENTURY_MS);
                        assert!(delay <= cap, "{strategy:?} {attempts:?}: {delay}");
                        let may_be_short = matches!(jitter, Jitter::Full | Jitter::Equal);
                        let base = base_ms.clamp(1, CENTURY_MS);
                        assert!(may_be_short || delay >= base, "{strategy:?}: {delay}");
                    }
                }
            }
        }
    }
}

#[test]
fn mistakes_are_named_by_path() {
    let wrong = Strategy {
        base_ms: 2000,
        growth: Growth::Exponential { factor_percent: 99 },
        cap_ms: 1000,
        jitter: Jitter::Percent(101),
    };
    let texts: Vec<String> = wrong.mistakes().iter().map(ToString::to_string).collect();
    assert_eq!(
        texts,
        [
            "growth.exponential.factor_percent: 99 percent: give 100 to 100000",
            "cap_ms: 1000 is below base_ms: give 2000 or more",
            "jitter.percent: 101 percent: give 0 to 100",
        ]
    );
    for good in [
        Strategy::default(),
        Strategy::transient(),
        Strategy::throttled(),
    ] {
        assert_eq!(good.mistakes(), []);
    }
}
