//! Room in a bucket: window and GCRA against arithmetic by hand and against a log of everything.

use std::collections::VecDeque;

use abide_policy::rate::{
    Algorithm, Bucket, Limit, Mode, Outcome, Overrides, Principal, RateLimit, Taken,
    UnreadableBucket,
};

const NOW: u64 = 1_800_000_000_000;

fn limit(algorithm: Algorithm, capacity: u32, rate_ms: u64) -> Limit {
    Limit {
        algorithm,
        capacity,
        rate_ms,
    }
}

/// How many of so many requests are admitted at a time.
fn burst(bucket: &mut Option<Bucket>, limit: Limit, requests: u32, now: u64) -> u32 {
    let mut admitted = 0;
    for _ in 0..requests {
        let (after, taken) = Bucket::take(*bucket, limit, 1, now);
        *bucket = Some(after);
        admitted += u32::from(taken.admitted);
    }
    admitted
}

fn take(bucket: Option<Bucket>, limit: Limit, cost: u32, now: u64) -> (Option<Bucket>, Taken) {
    let (bucket, taken) = Bucket::take(bucket, limit, cost, now);
    (Some(bucket), taken)
}

#[test]
fn sixty_in_ten_seconds_around_a_boundary() {
    let gcra = limit(Algorithm::Gcra, 60, 10_000);
    let mut bucket = None;
    assert_eq!(burst(&mut bucket, gcra, 60, NOW + 9_900), 60);
    assert_eq!(burst(&mut bucket, gcra, 60, NOW + 10_100), 0);
    // The window that opened at 9.9 s is full as well.
    let window = limit(Algorithm::Window, 60, 10_000);
    let mut bucket = None;
    assert_eq!(burst(&mut bucket, window, 60, NOW + 9_900), 60);
    assert_eq!(burst(&mut bucket, window, 60, NOW + 10_100), 0);
    assert_eq!(burst(&mut bucket, window, 60, NOW + 19_899), 0);
    assert_eq!(burst(&mut bucket, window, 60, NOW + 19_900), 60);
}

/// One request opens the window at zero: 59 at its end and 60 right after it pass.
#[test]
fn a_window_lets_almost_twice_as_many_through_and_gcra_does_not() {
    let admitted = |algorithm| {
        let limit = limit(algorithm, 60, 10_000);
        let mut bucket = None;
        [(1, 0), (60, 9_900), (60, 10_100)]
            .map(|(requests, at)| burst(&mut bucket, limit, requests, NOW + at))
    };
    assert_eq!(admitted(Algorithm::Window), [1, 59, 60]);
    assert_eq!(admitted(Algorithm::Gcra), [1, 59, 0]);
}

#[test]
fn a_thousand_first_requests_at_capacity_one_hundred() {
    for algorithm in [Algorithm::Gcra, Algorithm::Window] {
        let limit = limit(algorithm, 100, 10_000);
        let mut bucket = None;
        let admitted: u32 = (0..1000)
            .map(|n| burst(&mut bucket, limit, 1, NOW + n))
            .sum();
        assert_eq!(admitted, 100, "{algorithm:?}");
    }
}

/// Ten seconds in sixteen slots of 625 ms: a cell taken in the first is free when the eighteenth
/// begins, after 10.625 s.
#[test]
fn remaining_reset_and_retry_by_hand() {
    let start = 625 * 2_880_000_000;
    let gcra = limit(Algorithm::Gcra, 3, 10_000);
    let (bucket, taken) = take(None, gcra, 1, start);
    let first_free = start + 10_625;
    assert_eq!(
        taken,
        Taken {
            admitted: true,
            remaining: 2,
            reset_ms: first_free,
            retry_at_ms: None
        }
    );
    let (bucket, taken) = take(bucket, gcra, 2, start + 5000);
    // 5 s are eight slots.
    assert_eq!((taken.remaining, taken.reset_ms), (0, start + 15_625));
    let refused = |cost, at| take(bucket, gcra, cost, start + at).1;
    assert_eq!(refused(1, 6000).retry_at_ms, Some(first_free));
    assert_eq!(refused(2, 6000).retry_at_ms, Some(start + 15_625));
    assert_eq!(refused(1, 6000).reset_ms, start + 15_625);
    assert!(!refused(1, 10_624).admitted);
    assert!(refused(1, 10_625).admitted);
    assert!(!refused(2, 15_624).admitted);
    assert!(refused(3, 15_625).admitted);

    let window = limit(Algorithm::Window, 3, 10_000);
    let (bucket, taken) = take(None, window, 2, NOW);
    assert_eq!((taken.remaining, taken.reset_ms), (1, NOW + 10_000));
    let (_, taken) = take(bucket, window, 2, NOW + 9_999);
    assert_eq!(
        taken,
        Taken {
            admitted: false,
            remaining: 1,
            reset_ms: NOW + 10_000,
            retry_at_ms: Some(NOW + 10_000)
        }
    );
}

#[test]
fn what_is_refused_is_not_charged() {
    for algorithm in [Algorithm::Gcra, Algorithm::Window] {
        let limit = limit(algorithm, 5, 10_000);
        let (bucket, _) = take(None, limit, 3, NOW);
        let (refused, taken) = take(bucket, limit, 3, NOW + 1);
        assert!(!taken.admitted);
        assert_eq!(taken.remaining, 2);
        let (_, taken) = take(refused, limit, 2, NOW + 2);
        assert!(taken.admitted, "{algorithm:?}");
    }
}

#[test]
fn costs_and_capacities_at_the_edge() {
    for algorithm in [Algorithm::Gcra, Algorithm::Window] {
        // A cost above the capacity needs all of it.
        let five = limit(algorithm, 5, 10_000);
        let (bucket, taken) = take(None, five, u32::MAX, NOW);
        assert_eq!((taken.admitted, taken.remaining), (true, 0));
        assert!(!take(bucket, five, u32::MAX, NOW + 1).1.admitted);
        // Nothing costs nothing.
        assert_eq!(take(None, five, 0, NOW).1.remaining, 4);
        // No capacity: never, and yet there is something to say.
        let none = limit(algorithm, 0, 10_000);
        let (_, taken) = take(None, none, 1, NOW);
        assert!(!taken.admitted);
        assert!(taken.reset_ms > NOW && taken.retry_at_ms > Some(NOW));
    }
}

/// Never more than the capacity within any span, and nothing refused that would still fit into a
/// span longer by two sixteenths.
#[test]
fn gcra_against_a_log_of_everything() {
    for seed in 0..300 {
        let mut random = fastrand::Rng::with_seed(seed);
        let capacity = random.u32(1..40);
        let rate_ms = *random
            .choice(&[1, 7, 16, 100, 999, 1000, 10_000, 61_003])
            .expect("one");
        let gcra = limit(Algorithm::Gcra, capacity, rate_ms);
        let slot = rate_ms.div_ceil(16);
        let mut bucket = None;
        let mut log: VecDeque<(u64, u32)> = VecDeque::new();
        let mut now = NOW + random.u64(0..rate_ms);
        for _ in 0..1500 {
            now += match random.u8(0..4) {
                0 => 0,
                1 => random.u64(0..=rate_ms / 8),
                2 => random.u64(0..=rate_ms / u64::from(capacity)),
                _ => random.u64(0..=2 * slot),
            };
            let cost = random.u32(1..=capacity.min(4));
            let (after, taken) = take(bucket, gcra, cost, now);
            bucket = after;
            let within = |span: u64| -> u32 {
                log.iter()
                    .filter(|(at, _)| now - at <= span)
                    .map(|(_, cost)| cost)
                    .sum()
            };
            if taken.admitted {
                let used = within(rate_ms) + cost;
                assert!(used <= capacity, "seed {seed}: {used} of {capacity}");
                log.push_back((now, cost));
                assert_eq!(taken.retry_at_ms, None);
            } else {
                let used = within(rate_ms + 2 * slot + 16) + cost;
                assert!(used > capacity, "seed {seed}: {used} of {capacity}");
                let retry = taken.retry_at_ms.expect("a time");
                assert!(retry > now);
                assert!(take(bucket, gcra, cost, retry).1.admitted, "seed {seed}");
                assert!(
                    !take(bucket, gcra, cost, retry - 1).1.admitted,
                    "seed {seed}"
                );
            }
            assert!(taken.reset_ms > now);
            let full = take(bucket, gcra, capacity, taken.reset_ms).1;
            assert!(full.admitted, "seed {seed}: not full at its reset");
            while log
                .front()
                .is_some_and(|(at, _)| now - at > 3 * rate_ms + 64)
            {
                log.pop_front();
            }
        }
    }
}

#[test]
fn clocks_that_jump_refuse_nobody_for_long() {
    for algorithm in [Algorithm::Gcra, Algorithm::Window] {
        let limit = limit(algorithm, 2, 10_000);
        let (bucket, _) = take(None, limit, 2, NOW);
        // A little back: still full. Far back: what it holds is not believed.
        assert!(!take(bucket, limit, 1, NOW - 5000).1.admitted);
        assert!(take(bucket, limit, 1, NOW - 3_600_000).1.admitted);
        assert!(take(bucket, limit, 1, NOW + 3_600_000).1.admitted);
        for now in [0, 1, u64::MAX - 1, u64::MAX] {
            let (bucket, _) = take(bucket, limit, 1, now);
            take(bucket, limit, 1, now);
            take(bucket, limit, 1, NOW);
        }
    }
}

#[test]
fn another_limit_carries_over_what_was_used() {
    let ten = limit(Algorithm::Gcra, 10, 10_000);
    let mut bucket = None;
    assert_eq!(burst(&mut bucket, ten, 8, NOW), 8);
    // A capacity that shrinks below what was used leaves nothing, and does not underflow.
    let five = limit(Algorithm::Gcra, 5, 10_000);
    let (_, taken) = take(bucket, five, 1, NOW + 1);
    assert_eq!((taken.admitted, taken.remaining), (false, 0));
    // A longer span keeps them longer, a shorter one forgets them.
    let minute = limit(Algorithm::Gcra, 10, 60_000);
    assert_eq!(burst(&mut bucket.clone(), minute, 10, NOW + 30_000), 2);
    let second = limit(Algorithm::Gcra, 10, 1000);
    assert_eq!(burst(&mut bucket.clone(), second, 10, NOW + 500), 2);
    assert_eq!(burst(&mut bucket.clone(), second, 10, NOW + 2500), 10);
    let window = limit(Algorithm::Window, 10, 10_000);
    assert_eq!(burst(&mut bucket.clone(), window, 10, NOW + 500), 2);
    let mut opened = None;
    assert_eq!(burst(&mut opened, window, 7, NOW), 7);
    assert_eq!(burst(&mut opened, ten, 10, NOW + 500), 3);
}

#[test]
fn a_bucket_is_a_few_octets() {
    let window = Bucket::Window {
        opened_ms: 300,
        used: 5,
    };
    // 300 is 0b10_0101100.
    assert_eq!(window.encode(), [1, 0xac, 0x02, 5]);
    let (bucket, _) = Bucket::take(None, limit(Algorithm::Gcra, 60, 10_000), 1, NOW);
    let octets = bucket.encode();
    assert!(octets.len() <= 32, "{}", octets.len());
    for bucket in [window, bucket] {
        let octets = bucket.encode();
        assert_eq!(Bucket::decode(&octets), Ok(bucket));
        for shorter in 0..octets.len() {
            assert_eq!(Bucket::decode(&octets[..shorter]), Err(UnreadableBucket));
        }
        let longer = [&octets[..], &[0]].concat();
        assert_eq!(Bucket::decode(&longer), Err(UnreadableBucket));
    }
    for wrong in [
        &[][..],
        &[0, 1, 1],
        &[3, 1, 1],
        // Eleven groups, and ten that hold more than 64 bits.
        &[1, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 1, 1],
        &[1, 255, 255, 255, 255, 255, 255, 255, 255, 255, 2, 1],
        // A count above every capacity: 2²⁰ is more than a million.
        &[1, 1, 0x80, 0x80, 0x40],
        // Slots without a width.
        &[2, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0],
    ] {
        assert_eq!(Bucket::decode(wrong), Err(UnreadableBucket), "{wrong:?}");
    }
}

#[test]
fn random_octets_are_no_harm() {
    let mut random = fastrand::Rng::with_seed(11);
    for _ in 0..20_000 {
        let mut octets: Vec<u8> = (0..random.usize(1..40)).map(|_| random.u8(..)).collect();
        octets[0] = random.u8(0..4);
        if let Ok(bucket) = Bucket::decode(&octets) {
            for algorithm in [Algorithm::Gcra, Algorithm::Window] {
                for now in [0, NOW, u64::MAX] {
                    let limit = limit(algorithm, random.u32(..), random.u64(..));
                    Bucket::take(Some(bucket), limit, random.u32(..), now);
                }
            }
        }
    }
}

#[test]
fn a_limiter_decides_with_mode_and_without_a_store() {
    let config = RateLimit {
        enabled: true,
        capacity: 1,
        ..RateLimit::default()
    };
    let learning = config.resolve(&Principal::Anonymous, &Overrides::default());
    let (bucket, first) = learning.decide(None, 1, NOW);
    assert_eq!(
        (first.outcome, first.mode),
        (Outcome::Admitted, Mode::Learning)
    );
    let (bucket, second) = learning.decide(Some(bucket), 1, NOW);
    assert_eq!(second.outcome, Outcome::WouldThrottle);
    assert!(second.outcome.goes_on());
    let enforced = RateLimit {
        learning: false,
        ..config
    }
    .resolve(&Principal::Anonymous, &Overrides::default());
    let (_, third) = enforced.decide(Some(bucket), 1, NOW);
    assert_eq!(third.outcome, Outcome::Throttled);
    assert!(!third.outcome.goes_on());
    let answer = enforced.without_store(NOW);
    assert_eq!(
        (answer.outcome, answer.mode, answer.remaining),
        (Outcome::Admitted, Mode::Learning, 1)
    );
    assert_eq!(answer.reset_ms, NOW + 10_000);
}
