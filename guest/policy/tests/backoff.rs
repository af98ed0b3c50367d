//! The delay calculator against the table of the policy and against arithmetic done elsewhere:
//! by hand, or with exact fractions of big integers.

use abide_policy::backoff::{Decision, Exponential, Failures, PolicyError};

const SECOND_MS: u64 = 1000;
const MINUTE_MS: u64 = 60_000;
const HOUR_MS: u64 = 3_600_000;
/// 36 525 days of 86 400 000 ms.
const CENTURY_MS: u64 = 3_155_760_000_000;

fn policy(base_ms: u64, factor_percent: u32, cap_ms: u64) -> Exponential {
    Exponential::new(base_ms, factor_percent, cap_ms).expect("a policy within its bounds")
}

fn failed(attempts: i64, last_failure_ms: u64) -> Failures {
    Failures {
        attempts: Some(attempts),
        last_failure_ms: Some(last_failure_ms),
    }
}

#[test]
fn default_policy_follows_the_table() {
    let hours: Vec<u64> = (1..=10)
        .map(|attempts| Exponential::default().delay(Some(attempts)) / HOUR_MS)
        .collect();
    assert_eq!(hours, [1, 2, 4, 8, 16, 32, 32, 32, 32, 32]);
    assert_eq!(Exponential::default().delay(Some(6)), 115_200_000);
}

#[test]
fn transient_tier_doubles_from_five_seconds_to_five_minutes() {
    let seconds: Vec<u64> = (1..=9)
        .map(|n| Exponential::transient().delay(Some(n)) / SECOND_MS)
        .collect();
    assert_eq!(seconds, [5, 10, 20, 40, 80, 160, 300, 300, 300]);
}

#[test]
fn built_in_policies_are_within_the_bounds() {
    for built_in in [Exponential::default(), Exponential::transient()] {
        let again = Exponential::new(
            built_in.base_ms(),
            built_in.factor_percent(),
            built_in.cap_ms(),
        );
        assert_eq!(again, Ok(built_in));
    }
    let transient = Exponential::transient();
    assert_eq!(
        (transient.base_ms(), transient.cap_ms()),
        (5 * SECOND_MS, 5 * MINUTE_MS)
    );
}

#[test]
fn missing_zero_and_negative_counts_wait_for_the_base() {
    for base in [1, 7, HOUR_MS, CENTURY_MS] {
        let policy = policy(base, 200, CENTURY_MS);
        for attempts in [None, Some(0), Some(1), Some(-1), Some(i64::MIN)] {
            assert_eq!(
                policy.delay(attempts),
                base,
                "base {base}, attempts {attempts:?}"
            );
        }
    }
}

/// Doubling is a shift, and 128 bits hold every shift below: a base has 42 bits at most, and from
/// 64 failures on even one millisecond is beyond any cap.
fn doubled(base: u64, attempts: i64, cap: u64) -> u64 {
    let growths = (attempts.max(1) - 1).min(64) as u32;
    (u128::from(base) << growths).min(u128::from(cap)) as u64
}

#[test]
fn saturates_for_every_count_and_base() {
    let counts = [
        0,
        1,
        2,
        6,
        7,
        36,
        40,
        62,
        63,
        64,
        65,
        i64::from(i32::MAX),
        i64::from(u32::MAX),
        i64::MAX - 1,
        i64::MAX,
    ];
    let bases = [
        1,
        2,
        3,
        999,
        SECOND_MS,
        HOUR_MS,
        24 * HOUR_MS,
        CENTURY_MS / 2,
        CENTURY_MS - 1,
        CENTURY_MS,
    ];
    for base in bases {
        for cap in [base, (base * 32).min(CENTURY_MS), CENTURY_MS] {
            for attempts in counts {
                assert_eq!(
                    policy(base, 200, cap).delay(Some(attempts)),
                    doubled(base, attempts, cap),
                    "base {base}, cap {cap}, attempts {attempts}"
                );
            }
        }
    }
}

#[test]
fn some_doublings_by_hand() {
    let century = policy(1, 200, CENTURY_MS);
    assert_eq!(century.delay(Some(36)), 34_359_738_368);
    assert_eq!(century.delay(Some(40)), 549_755_813_888);
    assert_eq!(century.delay(Some(42)), 2_199_023_255_552);
    assert_eq!(century.delay(Some(43)), CENTURY_MS);
    assert_eq!(century.delay(Some(i64::from(u32::MAX))), CENTURY_MS);
}

/// A count of failures and the delay in milliseconds after it.
type Delay = (i64, u64);

/// Values from exact fractions of big integers, rounded down.
#[test]
fn growth_by_percent_is_exact_to_the_millisecond() {
    let expected: [(u64, u32, &[Delay]); 6] = [
        // One percent on one millisecond must not stand still: 1.01^69 = 1.987, 1.01^70 = 2.007.
        (
            1,
            101,
            &[
                (70, 1),
                (71, 2),
                (233, 10),
                (1000, 20_751),
                (2000, 434_936_836),
                (2893, 3_143_496_487_431),
                (2894, CENTURY_MS),
            ],
        ),
        (
            1,
            150,
            &[
                (2, 1),
                (3, 2),
                (4, 3),
                (10, 38),
                (20, 2216),
                (40, 7_371_554),
                (71, 2_120_255_184_830),
                (72, CENTURY_MS),
            ],
        ),
        (
            1000,
            110,
            &[
                (2, 1100),
                (3, 1210),
                (4, 1331),
                (5, 1464),
                (10, 2357),
                (50, 106_718),
            ],
        ),
        (7, 133, &[(2, 9), (3, 12), (10, 91), (60, 142_018_478)]),
        (
            HOUR_MS,
            125,
            &[
                (2, 4_500_000),
                (5, 8_789_062),
                (10, 26_822_090),
                (30, 2_326_445_472),
            ],
        ),
        (
            1,
            100_000,
            &[
                (2, 1000),
                (3, 1_000_000),
                (5, 1_000_000_000_000),
                (6, CENTURY_MS),
            ],
        ),
    ];
    for (base, factor, delays) in expected {
        let policy = policy(base, factor, CENTURY_MS);
        for &(attempts, delay) in delays {
            assert_eq!(
                policy.delay(Some(attempts)),
                delay,
                "base {base}, factor {factor} %, attempts {attempts}"
            );
        }
    }
}

#[test]
fn a_factor_of_one_hundred_is_a_constant_delay() {
    let policy = policy(90_000, 100, CENTURY_MS);
    for attempts in [1, 2, 1000, i64::from(u32::MAX), i64::MAX] {
        assert_eq!(policy.delay(Some(attempts)), 90_000);
    }
}

#[test]
fn delays_never_shrink_and_stay_between_base_and_cap() {
    for factor in [
        100, 101, 102, 103, 110, 133, 150, 199, 200, 201, 250, 1000, 31_416, 100_000,
    ] {
        for base in [1, 2, 3, 97, SECOND_MS, HOUR_MS, CENTURY_MS - 1] {
            for cap in [base, (base * 10).min(CENTURY_MS), CENTURY_MS] {
                let policy = policy(base, factor, cap);
                let mut before = policy.delay(None);
                assert_eq!(before, base);
                // 61 keeps the steps odd against every factor and passes 2 894 failures.
                for attempts in (1..120).chain((120..3100).step_by(61)) {
                    let delay = policy.delay(Some(attempts));
                    assert!(
                        before <= delay && delay <= cap,
                        "{policy:?}: {delay} ms at {attempts} after {before} ms"
                    );
                    before = delay;
                }
                let reached = if factor == 100 { base } else { cap };
                assert_eq!(before, reached, "{policy:?}");
            }
        }
    }
}

#[test]
fn without_a_recorded_failure_an_attempt_is_due() {
    for attempts in [None, Some(0), Some(1), Some(40), Some(i64::MAX)] {
        let failures = Failures {
            attempts,
            last_failure_ms: None,
        };
        for now in [0, 1, HOUR_MS, u64::MAX] {
            assert_eq!(
                Exponential::default().next_attempt(failures, now),
                Decision::Due
            );
        }
    }
    assert_eq!(
        Exponential::default().next_attempt(Failures::default(), 0),
        Decision::Due
    );
}

#[test]
fn due_exactly_when_the_delay_has_passed() {
    let failed_at = 1_700_000_000_000;
    for (attempts, hours) in [
        (0, 1),
        (1, 1),
        (2, 2),
        (5, 16),
        (6, 32),
        (7, 32),
        (1000, 32),
    ] {
        let due_at = failed_at + hours * HOUR_MS;
        let failures = failed(attempts, failed_at);
        let next = |now| Exponential::default().next_attempt(failures, now);
        assert_eq!(next(failed_at), Decision::WaitUntil(due_at));
        assert_eq!(next(due_at - 1), Decision::WaitUntil(due_at));
        assert_eq!(next(due_at), Decision::Due);
        assert_eq!(next(due_at + 1), Decision::Due);
    }
}

#[test]
fn a_failure_without_a_count_waits_for_the_base() {
    let failures = Failures {
        attempts: None,
        last_failure_ms: Some(5 * HOUR_MS),
    };
    let next = |now| Exponential::default().next_attempt(failures, now);
    assert_eq!(next(6 * HOUR_MS - 1), Decision::WaitUntil(6 * HOUR_MS));
    assert_eq!(next(6 * HOUR_MS), Decision::Due);
}

#[test]
fn a_clock_that_was_set_back_never_waits_longer_than_the_delay() {
    let now = 1_700_000_000_000;
    for future in [now + 1, now + 33 * HOUR_MS, now + 10 * CENTURY_MS, u64::MAX] {
        assert_eq!(
            Exponential::default().next_attempt(failed(2, future), now),
            Decision::WaitUntil(now + 2 * HOUR_MS)
        );
        assert_eq!(
            Exponential::default().next_attempt(failed(i64::MAX, future), now),
            Decision::WaitUntil(now + 32 * HOUR_MS)
        );
    }
}

#[test]
fn the_end_of_time_is_not_crossed() {
    assert_eq!(
        policy(CENTURY_MS, 200, CENTURY_MS).next_attempt(failed(1, u64::MAX), u64::MAX - 5),
        Decision::WaitUntil(u64::MAX)
    );
}

#[test]
fn a_policy_out_of_bounds_is_not_built() {
    let cases = [
        (0, 200, 1, PolicyError::BaseOutOfRange(0)),
        (
            CENTURY_MS + 1,
            200,
            u64::MAX,
            PolicyError::BaseOutOfRange(CENTURY_MS + 1),
        ),
        (
            u64::MAX,
            200,
            u64::MAX,
            PolicyError::BaseOutOfRange(u64::MAX),
        ),
        (1, 0, 1, PolicyError::FactorOutOfRange(0)),
        (1, 99, 1, PolicyError::FactorOutOfRange(99)),
        (1, 100_001, 1, PolicyError::FactorOutOfRange(100_001)),
        (1, u32::MAX, 1, PolicyError::FactorOutOfRange(u32::MAX)),
        (1000, 200, 999, PolicyError::CapOutOfRange(999)),
        (1, 200, 0, PolicyError::CapOutOfRange(0)),
        (
            1,
            200,
            CENTURY_MS + 1,
            PolicyError::CapOutOfRange(CENTURY_MS + 1),
        ),
        (1, 200, u64::MAX, PolicyError::CapOutOfRange(u64::MAX)),
    ];
    for (base, factor, cap, error) in cases {
        assert_eq!(Exponential::new(base, factor, cap), Err(error));
    }
    for (base, factor, cap) in [(1, 100, 1), (CENTURY_MS, 100_000, CENTURY_MS)] {
        assert!(Exponential::new(base, factor, cap).is_ok());
    }
}

#[test]
fn an_error_names_the_value_and_the_bound() {
    let text = PolicyError::CapOutOfRange(999).to_string();
    assert!(
        text.contains("999 ms") && text.contains("3155760000000"),
        "{text}"
    );
    let text = PolicyError::FactorOutOfRange(99).to_string();
    assert!(
        text.contains("99 percent") && text.contains("100000"),
        "{text}"
    );
    let text = PolicyError::BaseOutOfRange(0).to_string();
    assert!(
        text.contains("0 ms") && text.contains("3155760000000"),
        "{text}"
    );
}
