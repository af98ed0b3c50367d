//! The retry budget of a fleet and an endpoint that asks for less.

use abide_policy::endpoint::{Budget, Cause, EndpointState, Permit};
use abide_policy::failure::Class;
use abide_policy::strategy::Strategy;

const NOW: u64 = 1_800_000_000_000;
const LOWEST: [u8; 8] = [0; 8];
const HIGHEST: [u8; 8] = [0xff; 8];

/// Three retries, and one more each ten seconds.
fn budget() -> Budget {
    Budget {
        capacity: 3,
        refill_ms: 10_000,
        spread_ms: 1000,
        spread_cap_ms: 4000,
    }
}

fn retry(state: EndpointState, now: u64) -> (EndpointState, Permit) {
    state.retry(&budget(), now, 0, LOWEST)
}

fn waiting(until_ms: u64) -> Permit {
    Permit::Wait {
        until_ms,
        cause: Cause::Budget,
    }
}

#[test]
fn a_bucket_holds_its_capacity_and_a_trickle_fills_it() {
    let mut state = EndpointState::default();
    assert_eq!(state.tokens(&budget(), NOW), 3);
    for left in [2, 1, 0] {
        let (after, permit) = retry(state, NOW);
        assert_eq!(permit, Permit::Go);
        assert_eq!(after.tokens(&budget(), NOW), left);
        state = after;
    }
    let (after, permit) = retry(state, NOW);
    assert_eq!((after, permit), (state, waiting(NOW + 10_000)));
    assert_eq!(retry(state, NOW + 9999).1, waiting(NOW + 10_000));
    let (state, permit) = retry(state, NOW + 10_000);
    assert_eq!(permit, Permit::Go);
    assert_eq!(retry(state, NOW + 10_000).1, waiting(NOW + 20_000));
    assert_eq!(state.tokens(&budget(), NOW + 30_000), 2);
    assert_eq!(state.tokens(&budget(), NOW + 40_000), 3);
    assert_eq!(state.tokens(&budget(), u64::MAX), 3);
}

#[test]
fn a_success_gives_one_back_but_never_more_than_fit() {
    let mut state = EndpointState::default();
    for _ in 0..3 {
        state = retry(state, NOW).0;
    }
    state = state.succeeded(&budget(), NOW);
    assert_eq!(state.tokens(&budget(), NOW), 1);
    for _ in 0..10 {
        state = state.succeeded(&budget(), NOW);
    }
    assert_eq!(state.tokens(&budget(), NOW), 3);
}

#[test]
fn refused_retries_are_spread_wider_each_time() {
    let mut state = EndpointState::default();
    for _ in 0..3 {
        state = retry(state, NOW).0;
    }
    let until = |refusals, random| match state.retry(&budget(), NOW, refusals, random).1 {
        Permit::Wait { until_ms, .. } => until_ms - NOW,
        Permit::Go => panic!("a token too many"),
    };
    assert_eq!(until(0, LOWEST), 10_000);
    assert_eq!(until(0, HIGHEST), 11_000);
    assert_eq!(until(1, HIGHEST), 12_000);
    assert_eq!(until(2, HIGHEST), 14_000);
    for refusals in [3, 63, 64, u32::MAX] {
        assert_eq!(until(refusals, HIGHEST), 14_000);
    }
}

#[test]
fn a_clock_set_back_costs_no_more_than_an_empty_bucket() {
    let state = EndpointState {
        full_at_ms: NOW + 1_000_000_000,
        ..EndpointState::default()
    };
    assert_eq!(state.tokens(&budget(), NOW), 0);
    assert_eq!(retry(state, NOW).1, waiting(NOW + 10_000));
}

/// A CA that is down and ten thousand orders that want it, for a day: it sees the bucket and the
/// trickle, and the trickle is used.
#[test]
fn a_fleet_sends_no_more_than_the_budget() {
    let budget = Budget::default();
    let mut random = fastrand::Rng::with_seed(5);
    let mut state = EndpointState::default();
    let mut waiting: std::collections::BTreeSet<(u64, u32)> =
        (0..10_000).map(|order| (NOW, order)).collect();
    let mut refusals = vec![0; 10_000];
    let mut sent = 0_u64;
    let day = 24 * 3_600_000;
    while let Some((now, order)) = waiting.pop_first() {
        if now >= NOW + day {
            break;
        }
        let octets = random.u64(..).to_be_bytes();
        let (after, permit) = state.retry(&budget, now, refusals[order as usize], octets);
        state = after;
        match permit {
            Permit::Go => {
                sent += 1;
                assert!(sent <= 100 + (now - NOW) / 6000);
                refusals[order as usize] = 0;
                waiting.insert((now + 3_600_000, order));
            }
            Permit::Wait { until_ms, .. } => {
                assert!(until_ms > now && until_ms <= now + 6000 + 3_600_000);
                refusals[order as usize] += 1;
                waiting.insert((until_ms, order));
            }
        }
    }
    assert!(sent > 14_000, "{sent} of 14 500");
}

#[test]
fn throttling_counts_once_for_what_was_on_its_way() {
    let strategy = Strategy::throttled();
    let ask = |state: EndpointState, hint, now| state.throttled(&strategy, hint, now, LOWEST);
    let state = ask(EndpointState::default(), None, NOW);
    assert_eq!((state.throttled, state.not_before_ms), (1, NOW + 30_000));
    // Nineteen more answers to requests already sent.
    let again = (0..19).fold(state, |state, _| ask(state, None, NOW + 1000));
    assert_eq!(again, state);
    let later = ask(state, None, NOW + 30_000);
    assert_eq!((later.throttled, later.not_before_ms), (2, NOW + 90_000));
    // The server's word counts if it is longer, whenever it comes.
    let told = ask(state, Some(120_000), NOW + 1000);
    assert_eq!((told.throttled, told.not_before_ms), (1, NOW + 121_000));
    assert_eq!(
        told.retry(&budget(), NOW + 2000, 0, HIGHEST).1,
        Permit::Wait {
            until_ms: NOW + 121_000,
            cause: Cause::Throttled
        }
    );
    let well = told.succeeded(&budget(), NOW + 2000);
    assert_eq!((well.throttled, well.not_before_ms), (0, 0));
}

#[test]
fn classes_of_http_answers_and_rejections() {
    for (status, plain, with_retry_after) in [
        (408, Class::Transient, Class::Throttled),
        (425, Class::Transient, Class::Throttled),
        (429, Class::Throttled, Class::Throttled),
        (500, Class::Transient, Class::Throttled),
        (502, Class::Transient, Class::Throttled),
        (503, Class::Throttled, Class::Throttled),
        (504, Class::Transient, Class::Throttled),
        (301, Class::Refused, Class::Refused),
        (401, Class::Refused, Class::Refused),
        (404, Class::Refused, Class::Refused),
    ] {
        assert_eq!(Class::of_http(status, false), plain, "{status}");
        assert_eq!(Class::of_http(status, true), with_retry_after, "{status}");
    }
    // badRequest is bit 2, badPOP 9, badCertTemplate 19, notAuthorized 23, systemUnavail 24.
    for bit in [2, 9, 19, 23] {
        assert_eq!(Class::of_rejection(1 << bit), Class::Refused);
    }
    assert_eq!(Class::of_rejection(1 << 24), Class::Throttled);
    assert_eq!(Class::of_rejection(0), Class::Refused);
}
