//! The rules between failed issuances: the three flows of cert-manager's design, its upgrade
//! rule, and what abide adds, against arithmetic by hand.

use abide_policy::backoff::Decision as Due;
use abide_policy::explain::Rule;
use abide_policy::failure::Class;
use abide_policy::mistake::Check;
use abide_policy::renewal::Validity;
use abide_policy::retry::{Attempts, Failure, Next, Resend, RetryPolicy, Spread};
use abide_policy::strategy::{Jitter, Strategy};
use abide_policy::time::{DAY_MS, HOUR_MS, MINUTE_MS};

const NOW: u64 = 1_800_000_000_000;
const LOWEST: [u8; 8] = [0; 8];
const MIDDLE: [u8; 8] = [0x80, 0, 0, 0, 0, 0, 0, 0];
const HIGHEST: [u8; 8] = [0xff; 8];

fn policy() -> RetryPolicy {
    RetryPolicy::default()
}

fn failed_twice() -> Attempts {
    Attempts {
        issuance_attempts: Some(2),
        last_failure_ms: Some(NOW - 2 * HOUR_MS),
        ..Attempts::default()
    }
}

fn ninety_days(from_ms: u64) -> Validity {
    Validity {
        not_before_ms: from_ms,
        not_after_ms: from_ms + 90 * DAY_MS,
    }
}

fn fail(state: Attempts, class: Class, now_ms: u64) -> (Attempts, Next) {
    let (state, decision) = policy().failed(state, Failure::of(class), now_ms, MIDDLE);
    (state, decision.next)
}

#[test]
fn third_failure_then_success() {
    let (state, next) = fail(failed_twice(), Class::Refused, NOW);
    assert_eq!(state.issuance_attempts, Some(3));
    assert_eq!(state.last_failure_ms, Some(NOW));
    assert_eq!(next, Next::At(NOW + 4 * HOUR_MS));
    assert_eq!(
        state.due(NOW + 4 * HOUR_MS - 1),
        Some(Due::WaitUntil(NOW + 4 * HOUR_MS))
    );
    assert_eq!(state.due(NOW + 4 * HOUR_MS), Some(Due::Due));

    let issued = ninety_days(NOW + 4 * HOUR_MS);
    let (state, decision) = policy().succeeded(state, issued, None, issued.not_before_ms, MIDDLE);
    assert_eq!(state.issuance_attempts, None);
    assert_eq!(state.last_failure_ms, None);
    assert_eq!(state.last_class, None);
    assert_eq!(decision.next, Next::At(NOW + 4 * HOUR_MS + 60 * DAY_MS));
    assert!(!decision.alarm);
}

#[test]
fn third_failure_then_a_renewal_by_hand_that_succeeds() {
    let (state, _) = fail(failed_twice(), Class::Refused, NOW);
    let renewed_at = NOW + 5 * MINUTE_MS;
    let (state, decision) = policy().renewed_by_hand(state, renewed_at);
    assert_eq!(decision.next, Next::At(renewed_at));
    assert_eq!(state.due(renewed_at), Some(Due::Due));
    assert_eq!(state.issuance_attempts, Some(3));
    assert_eq!(state.last_failure_ms, Some(NOW));

    let issued = ninety_days(renewed_at);
    let (state, decision) = policy().succeeded(state, issued, None, renewed_at, MIDDLE);
    assert_eq!(state.failures(), Default::default());
    assert_eq!(decision.next, Next::At(renewed_at + 60 * DAY_MS));
}

#[test]
fn third_failure_then_a_renewal_by_hand_that_fails() {
    let (state, _) = fail(failed_twice(), Class::Refused, NOW);
    let renewed_at = NOW + 5 * MINUTE_MS;
    let (state, _) = policy().renewed_by_hand(state, renewed_at);
    let failed_at = renewed_at + 1000;
    let (state, next) = fail(state, Class::Refused, failed_at);
    assert_eq!(state.issuance_attempts, Some(4));
    assert_eq!(state.last_failure_ms, Some(failed_at));
    assert_eq!(next, Next::At(failed_at + 8 * HOUR_MS));
}

#[test]
fn a_changed_request_goes_at_once_and_keeps_the_count() {
    let (state, _) = fail(failed_twice(), Class::Refused, NOW);
    let (state, decision) = policy().request_changed(state, NOW + 1);
    assert_eq!(decision.next, Next::At(NOW + 1));
    assert_eq!(state.issuance_attempts, Some(3));
    let step = decision.steps[0];
    assert_eq!(
        (step.rule, step.before_ms, step.after_ms),
        (Rule::Changed, NOW + 4 * HOUR_MS, NOW + 1)
    );
}

#[test]
fn upgrade_without_a_count_waits_for_the_base() {
    for attempts in [None, Some(0), Some(-3)] {
        let state = Attempts {
            issuance_attempts: attempts,
            last_failure_ms: Some(NOW - 10 * MINUTE_MS),
            ..Attempts::default()
        };
        let (state, decision) = policy().restarted(state, 1, NOW, HIGHEST);
        assert_eq!(decision.next, Next::At(NOW + 50 * MINUTE_MS));
        assert_eq!(decision.steps[0].rule, Rule::NoCount);
        // Its next failure is the first that is counted.
        let (state, next) = fail(state, Class::Refused, NOW + 50 * MINUTE_MS);
        assert_eq!(state.issuance_attempts, Some(1));
        assert_eq!(next, Next::At(NOW + 110 * MINUTE_MS));
    }
}

#[test]
fn a_restart_never_brings_a_stored_time_forward() {
    // With jitter the stored time is not what the formula says.
    let state = Attempts {
        next_attempt_ms: Some(NOW + 5 * HOUR_MS),
        issuance_attempts: Some(3),
        last_failure_ms: Some(NOW),
        ..Attempts::default()
    };
    let (state, decision) = policy().restarted(state, 10_000, NOW + HOUR_MS, LOWEST);
    assert_eq!(decision.next, Next::At(NOW + 5 * HOUR_MS));
    assert_eq!(state.next_attempt_ms, Some(NOW + 5 * HOUR_MS));
    let rules: Vec<Rule> = decision.steps.iter().map(|step| step.rule).collect();
    let delay = Rule::Delay {
        attempts: 3,
        class: None,
    };
    assert_eq!(rules, [delay, Rule::Stored]);
}

#[test]
fn overdue_attempts_are_spread_at_a_restart() {
    let overdue = || Attempts {
        issuance_attempts: Some(1),
        last_failure_ms: Some(NOW - 2 * HOUR_MS),
        next_attempt_ms: Some(NOW - HOUR_MS),
        ..Attempts::default()
    };
    let at = |count, random| policy().restarted(overdue(), count, NOW, random).1.next;
    // 100 ms each: one second for ten, ten minutes at most.
    assert_eq!(at(10, LOWEST), Next::At(NOW));
    assert_eq!(at(10, MIDDLE), Next::At(NOW + 500));
    assert_eq!(at(10, HIGHEST), Next::At(NOW + 1000));
    assert_eq!(at(10_000, HIGHEST), Next::At(NOW + 600_000));
    assert_eq!(at(u64::MAX, HIGHEST), Next::At(NOW + 600_000));
    assert_eq!(at(0, HIGHEST), Next::At(NOW));
}

#[test]
fn a_clock_set_back_never_waits_longer_than_any_wait_may_be() {
    let state = Attempts {
        issuance_attempts: Some(2),
        last_failure_ms: Some(NOW + 400 * DAY_MS),
        last_class: Some(Class::Refused),
        next_attempt_ms: Some(NOW + 400 * DAY_MS + 2 * HOUR_MS),
        ..Attempts::default()
    };
    let (_, decision) = policy().restarted(state, 1, NOW, LOWEST);
    assert_eq!(decision.next, Next::At(NOW + 32 * HOUR_MS));
    let last = decision.steps.last().map(|step| step.rule);
    assert_eq!(last, Some(Rule::Longest));
    // Without a stored time the delay counts from now.
    let state = Attempts {
        issuance_attempts: Some(2),
        last_failure_ms: Some(NOW + 400 * DAY_MS),
        ..Attempts::default()
    };
    let (_, decision) = policy().restarted(state, 1, NOW, LOWEST);
    assert_eq!(decision.next, Next::At(NOW + 2 * HOUR_MS));
    // A renewal in years is no wait after a failure.
    let state = Attempts {
        next_attempt_ms: Some(NOW + 4000 * DAY_MS),
        ..Attempts::default()
    };
    let (_, decision) = policy().restarted(state, 1, NOW, LOWEST);
    assert_eq!(decision.next, Next::At(NOW + 4000 * DAY_MS));
}

#[test]
fn an_order_that_was_never_attempted_is_due() {
    let state = Attempts::default();
    assert_eq!(state.due(0), Some(Due::Due));
    let (_, decision) = policy().restarted(state, 0, NOW, HIGHEST);
    assert_eq!(decision.next, Next::At(NOW));
    // Whatever the count says: without a time there is no wait.
    let state = Attempts {
        issuance_attempts: Some(40),
        ..Attempts::default()
    };
    let explained = policy().explain(&state, NOW);
    assert_eq!(explained.next, Next::At(NOW));
    assert_eq!(explained.steps[0].rule, Rule::NoFailure);
}

#[test]
fn a_ca_that_is_always_wrong_sees_ten_requests_in_seven_days() {
    for class in [Class::Security, Class::Refused] {
        let mut state = Attempts::default();
        let mut now = NOW;
        let mut hours = Vec::new();
        while now <= NOW + 7 * DAY_MS {
            hours.push((now - NOW) / HOUR_MS);
            let (after, decision) = policy().failed(state, Failure::of(class), now, MIDDLE);
            assert_eq!(decision.alarm, class == Class::Security);
            let Next::At(next) = decision.next else {
                panic!("it stopped");
            };
            (state, now) = (after, next);
        }
        assert_eq!(hours, [0, 1, 3, 7, 15, 31, 63, 95, 127, 159]);
    }
}

#[test]
fn throttling_is_not_counted_on_the_order() {
    let failure = Failure {
        endpoint_not_before_ms: NOW + 100_000,
        ..Failure::of(Class::Throttled)
    };
    let (state, decision) = policy().failed(failed_twice(), failure, NOW, HIGHEST);
    assert_eq!(state.issuance_attempts, Some(2));
    assert_eq!(state.last_failure_ms, Some(NOW - 2 * HOUR_MS));
    // A tenth of the wait is spread.
    assert_eq!(decision.next, Next::At(NOW + 110_000));
    let (_, decision) = policy().failed(failed_twice(), failure, NOW, LOWEST);
    assert_eq!(decision.next, Next::At(NOW + 100_000));
}

#[test]
fn a_hint_makes_it_later_and_never_earlier() {
    let hinted = |hint_s| {
        let failure = Failure {
            hint_s: Some(hint_s),
            ..Failure::of(Class::Refused)
        };
        policy().failed(failed_twice(), failure, NOW, MIDDLE).1.next
    };
    for shorter in [i64::MIN, -1, 0, 1, 4 * 3600] {
        assert_eq!(hinted(shorter), Next::At(NOW + 4 * HOUR_MS));
    }
    assert_eq!(hinted(5 * 3600), Next::At(NOW + 5 * HOUR_MS));
    for longest in [86_400, 86_401, 1 << 31, i64::MAX] {
        assert_eq!(hinted(longest), Next::At(NOW + 24 * HOUR_MS));
    }
}

#[test]
fn hints_are_kept_within_their_bounds() {
    let hints = policy().hints;
    assert_eq!(hints.grant(0), 1000);
    assert_eq!(hints.grant(-1), 1000);
    assert_eq!(hints.grant(i64::MIN), 1000);
    assert_eq!(hints.grant(7), 7000);
    assert_eq!(hints.grant(1 << 31), DAY_MS);
    assert_eq!(hints.grant(i64::MAX), DAY_MS);
}

#[test]
fn permanent_failures_and_the_last_attempt_stop() {
    let (state, decision) =
        policy().failed(failed_twice(), Failure::of(Class::Permanent), NOW, MIDDLE);
    assert_eq!(decision.next, Next::Stopped);
    assert!(decision.alarm && state.stopped);
    assert_eq!(state.due(u64::MAX), None);
    assert_eq!(policy().explain(&state, NOW).steps[0].rule, Rule::Permanent);
    let (state, decision) = policy().restarted(state, 1, NOW + DAY_MS, MIDDLE);
    assert_eq!(decision.next, Next::Stopped);
    let (state, decision) = policy().renewed_by_hand(state, NOW + DAY_MS);
    assert_eq!(decision.next, Next::At(NOW + DAY_MS));
    assert_eq!(state.due(NOW + DAY_MS), Some(Due::Due));

    let thrice = RetryPolicy {
        max_attempts: Some(3),
        ..policy()
    };
    let refused = Failure::of(Class::Refused);
    let (state, decision) = thrice.failed(failed_twice(), refused, NOW, MIDDLE);
    assert_eq!(decision.next, Next::Stopped);
    assert_eq!(
        thrice.explain(&state, NOW).steps[0].rule,
        Rule::MaxAttempts { attempts: 3 }
    );
    let throttled = Failure::of(Class::Throttled);
    let (_, decision) = thrice.failed(failed_twice(), throttled, NOW, MIDDLE);
    assert_eq!(decision.next, Next::At(NOW));
}

/// A certificate of an hour that fails at two thirds has twenty minutes left: a third of them.
#[test]
fn a_certificate_of_an_hour_gets_another_try() {
    let in_use = Validity {
        not_before_ms: NOW - 40 * MINUTE_MS,
        not_after_ms: NOW + 20 * MINUTE_MS,
    };
    let failure = Failure {
        in_use: Some(in_use),
        ..Failure::of(Class::Transient)
    };
    let mut now = NOW;
    let mut state = Attempts::default();
    let mut tries = Vec::new();
    loop {
        let (after, decision) = policy().failed(state, failure, now, MIDDLE);
        let Next::At(next) = decision.next else {
            panic!("it stopped");
        };
        if next >= in_use.not_after_ms {
            // No time is left, and the ordinary delay holds again.
            assert_eq!(next, now + after_delay(tries.len()));
            break;
        }
        tries.push((next - NOW) / 1000);
        (state, now) = (after, next);
    }
    // 1200 s are left: 400; then 800/3 = 266.6 further on, 533.3/3 = 177.7, and so on until the
    // gap of a minute.
    assert_eq!(tries[..3], [400, 666, 844]);
    assert!(tries.windows(2).all(|pair| pair[1] - pair[0] >= 59));
    assert_eq!(tries.len(), 7);
}

fn after_delay(failures_before: usize) -> u64 {
    HOUR_MS << failures_before.min(5)
}

#[test]
fn a_long_certificate_hurries_only_at_its_end() {
    let failing = |attempts: i64, left_hours: u64| {
        let not_after_ms = NOW + left_hours * HOUR_MS;
        let state = Attempts {
            issuance_attempts: Some(attempts - 1),
            ..Attempts::default()
        };
        let failure = Failure {
            in_use: Some(Validity {
                not_before_ms: not_after_ms - 90 * DAY_MS,
                not_after_ms,
            }),
            ..Failure::of(Class::Refused)
        };
        match policy().failed(state, failure, NOW, MIDDLE).1.next {
            Next::At(next) => (next - NOW) / MINUTE_MS,
            Next::Stopped => panic!("it stopped"),
        }
    };
    assert_eq!(failing(1, 720), 60);
    assert_eq!(failing(6, 720), 32 * 60);
    // 32 h and another 32 h do not fit into 60 h: a third of them.
    assert_eq!(failing(6, 65), 32 * 60);
    assert_eq!(failing(6, 60), 20 * 60);
    // Not closer together than the first delay.
    assert_eq!(failing(6, 2), 60);
    assert_eq!(failing(6, 1), 32 * 60);
}

#[test]
fn expiry_never_overrides_what_the_server_asks_for() {
    let failure = Failure {
        hint_s: Some(3600),
        in_use: Some(Validity {
            not_before_ms: NOW - 40 * MINUTE_MS,
            not_after_ms: NOW + 20 * MINUTE_MS,
        }),
        ..Failure::of(Class::Refused)
    };
    let (_, decision) = policy().failed(Attempts::default(), failure, NOW, MIDDLE);
    assert_eq!(decision.next, Next::At(NOW + HOUR_MS));
    let texts: Vec<String> = decision.steps.iter().map(ToString::to_string).collect();
    // 1 800 000 000 is 2027-01-15T08:00:00Z.
    assert_eq!(
        texts,
        [
            "failure 1 in a row (refused): 1 h later, 2027-01-15T09:00:00Z",
            "the certificate ends at 2027-01-15T08:20:00Z: 53 min 20 s earlier, \
             2027-01-15T08:06:40Z",
            "the server asks for 3600 s, granted 1 h: 53 min 20 s later, 2027-01-15T09:00:00Z",
        ]
    );
}

#[test]
fn resending_inside_a_transaction_ends_with_its_deadline() {
    let deadline = NOW + 10 * MINUTE_MS;
    let resend = |resends, hint| policy().resend(resends, hint, deadline, NOW, MIDDLE);
    assert_eq!(resend(1, None), Resend::At(NOW + 5000));
    assert_eq!(resend(2, None), Resend::At(NOW + 10_000));
    assert_eq!(resend(u32::MAX, None), Resend::At(NOW + 300_000));
    assert_eq!(resend(1, Some(60)), Resend::At(NOW + 60_000));
    assert_eq!(resend(1, Some(599)), Resend::At(NOW + 599_000));
    assert_eq!(resend(1, Some(600)), Resend::TooLate);
    assert_eq!(
        policy().resend(1, Some(i64::MAX), u64::MAX, u64::MAX - 1, HIGHEST),
        Resend::TooLate
    );
}

#[test]
fn a_guard_stops_success_that_does_not_last() {
    let expired = Validity {
        not_before_ms: NOW - DAY_MS,
        not_after_ms: NOW,
    };
    let mut state = Attempts::default();
    let mut now = NOW;
    let mut requests = 0;
    while now < NOW + 7 * DAY_MS {
        requests += 1;
        let (after, decision) = policy().succeeded(state, expired, None, now, MIDDLE);
        let Next::At(next) = decision.next else {
            panic!("it stopped");
        };
        assert_eq!(decision.alarm, next > now);
        // The renewal is overdue at once; a step of the scheduler takes a second.
        (state, now) = (after, next.max(now + 1000));
    }
    // At most 51 in any 24 hours.
    assert!((7 * 50..=7 * 51 + 1).contains(&requests), "{requests}");
}

#[test]
fn the_longest_wait_is_the_longest_of_all() {
    assert_eq!(policy().longest_wait(), 32 * HOUR_MS);
    let short = RetryPolicy {
        issuance: Strategy {
            base_ms: 1000,
            cap_ms: 4000,
            ..Strategy::default()
        },
        ..policy()
    };
    assert_eq!(short.longest_wait(), 24 * HOUR_MS);
}

#[test]
fn jitter_is_told_and_remembered() {
    let jittery = RetryPolicy {
        issuance: Strategy {
            jitter: Jitter::Decorrelated,
            ..Strategy::default()
        },
        ..policy()
    };
    let refused = Failure::of(Class::Refused);
    let (state, decision) = jittery.failed(Attempts::default(), refused, NOW, HIGHEST);
    assert_eq!(decision.next, Next::At(NOW + 3 * HOUR_MS));
    assert_eq!(decision.steps.len(), 2);
    let (_, decision) = jittery.failed(state, refused, NOW, HIGHEST);
    assert_eq!(decision.next, Next::At(NOW + 9 * HOUR_MS));
}

#[test]
fn the_reason_stays_with_the_time() {
    let failure = Failure {
        hint_s: Some(5 * 3600),
        ..Failure::of(Class::Refused)
    };
    let (state, _) = policy().failed(failed_twice(), failure, NOW, MIDDLE);
    let hint = Rule::Hint {
        asked_s: 5 * 3600,
        granted_ms: 5 * HOUR_MS,
    };
    assert_eq!(state.because, Some(hint));
    // An hour later, after a restart: the delay of four hours, and what the server asked for.
    let (state, _) = policy().restarted(state, 1, NOW + HOUR_MS, MIDDLE);
    assert_eq!(state.because, Some(hint));
    let explained = policy().explain(&state, NOW + HOUR_MS);
    let words: Vec<String> = explained.steps.iter().map(ToString::to_string).collect();
    assert_eq!(
        words,
        [
            "failure 3 in a row (refused): 4 h later, 2027-01-15T12:00:00Z",
            "the server asks for 18000 s, granted 5 h: 1 h later, 2027-01-15T13:00:00Z",
        ]
    );
    let (state, _) = policy().succeeded(state, ninety_days(NOW), None, NOW, MIDDLE);
    assert_eq!(state.because, Some(Rule::Renewal));
    let explained = policy().explain(&state, NOW + DAY_MS);
    assert_eq!(explained.steps.len(), 1);
    assert_eq!(
        explained.steps[0].to_string(),
        "renewal: 59 d later, 2027-03-16T08:00:00Z"
    );
}

#[test]
fn a_forecast_has_both_ends_of_chance() {
    let (state, _) = fail(Attempts::default(), Class::Refused, NOW);
    let hours = |policy: &RetryPolicy, state: &Attempts| -> Vec<(u64, u64)> {
        policy
            .forecast(state, None, NOW, NOW + 48 * HOUR_MS)
            .into_iter()
            .map(|(from, to)| ((from - NOW) / HOUR_MS, (to - NOW) / HOUR_MS))
            .collect()
    };
    assert_eq!(
        hours(&policy(), &state),
        [(1, 1), (3, 3), (7, 7), (15, 15), (31, 31)]
    );
    let jittery = RetryPolicy {
        issuance: Strategy {
            jitter: Jitter::Percent(50),
            ..Strategy::default()
        },
        ..policy()
    };
    // From 1 h: +1..3, +2..6, +4..12, +8..24, +16..32. The sixth may come after 32 h, or not
    // before the plot ends, and the seventh just then.
    assert_eq!(
        hours(&jittery, &state),
        [
            (1, 1),
            (2, 4),
            (4, 10),
            (8, 22),
            (16, 46),
            (32, 48),
            (48, 48)
        ]
    );
    let full = RetryPolicy {
        issuance: Strategy {
            jitter: Jitter::Full,
            ..Strategy::default()
        },
        ..policy()
    };
    assert_eq!(hours(&full, &state).len(), 1000);
    let (stopped, _) = fail(state, Class::Permanent, NOW);
    assert_eq!(hours(&policy(), &stopped), []);
}

/// A month of a CA that is down from two to four each night, certificates of nine hours, and a cap
/// of half an hour with a tenth of jitter: each night ends within 33 minutes, and no certificate
/// ends before its successor is there.
#[test]
fn a_ca_that_is_down_each_night() {
    let policy = RetryPolicy {
        issuance: Strategy {
            base_ms: 5 * MINUTE_MS,
            cap_ms: 30 * MINUTE_MS,
            jitter: Jitter::Percent(10),
            ..Strategy::default()
        },
        ..policy()
    };
    for seed in 0..40 {
        let mut random = fastrand::Rng::with_seed(seed);
        let start = NOW + random.u64(0..9 * HOUR_MS);
        let lasting = |from| Validity {
            not_before_ms: from,
            not_after_ms: from + 9 * HOUR_MS,
        };
        let mut in_use = lasting(start);
        let mut now = start;
        let mut state = Attempts::default();
        while now < start + 30 * DAY_MS {
            let of_day = now % DAY_MS;
            let is_down = (2 * HOUR_MS..4 * HOUR_MS).contains(&of_day);
            let octets = random.u64(..).to_be_bytes();
            let (after, decision) = if is_down {
                let failure = Failure {
                    in_use: Some(in_use),
                    ..Failure::of(Class::Transient)
                };
                policy.failed(state, failure, now, octets)
            } else {
                if state.last_failure_ms.is_some() {
                    assert!(of_day <= 4 * HOUR_MS + 33 * MINUTE_MS, "seed {seed}");
                }
                assert!(now < in_use.not_after_ms, "seed {seed}: it ended");
                in_use = lasting(now);
                policy.succeeded(state, in_use, None, now, octets)
            };
            let Next::At(next) = decision.next else {
                panic!("it stopped");
            };
            (state, now) = (after, next);
        }
    }
}

#[test]
fn nothing_overflows_at_the_end_of_time() {
    let state = Attempts {
        issuance_attempts: Some(i64::MAX),
        last_failure_ms: Some(u64::MAX),
        next_attempt_ms: Some(u64::MAX),
        successes_ms: vec![u64::MAX; 3],
        ..Attempts::default()
    };
    let failure = Failure {
        hint_s: Some(i64::MAX),
        endpoint_not_before_ms: u64::MAX,
        in_use: Some(Validity {
            not_before_ms: u64::MAX,
            not_after_ms: 0,
        }),
        ..Failure::of(Class::Refused)
    };
    for now in [0, 1, u64::MAX - 1, u64::MAX] {
        for random in [LOWEST, HIGHEST] {
            let (after, decision) = policy().failed(state.clone(), failure, now, random);
            assert_eq!(after.issuance_attempts, Some(i64::MAX));
            let Next::At(next) = decision.next else {
                panic!("it stopped");
            };
            assert!(next >= now && next - now <= 32 * HOUR_MS);
            policy().restarted(state.clone(), u64::MAX, now, random);
            policy().succeeded(state.clone(), failure.in_use.unwrap(), None, now, random);
        }
    }
}

#[test]
fn mistakes_have_their_path() {
    let wrong = RetryPolicy {
        max_attempts: Some(0),
        restart: Spread {
            each_ms: u64::MAX,
            most_ms: 0,
        },
        issuance: Strategy {
            base_ms: 0,
            ..Strategy::default()
        },
        ..policy()
    };
    let paths: Vec<String> = wrong.mistakes().into_iter().map(|m| m.path).collect();
    assert_eq!(
        paths,
        ["issuance.base_ms", "max_attempts", "restart.each_ms"]
    );
    assert_eq!(policy().mistakes(), []);
}
