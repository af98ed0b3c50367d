//! Backoff: any configuration, any stored counter, any time.

#![no_main]

use abide_fuzz::bounded;
use abide_policy::backoff::{Decision, Exponential, Failures};
use libfuzzer_sys::fuzz_target;

fuzz_target!(
    |input: (u64, u32, u64, Option<i64>, Option<u64>, u64)| bounded(|| {
        let (base_ms, factor_percent, cap_ms, attempts, last_failure_ms, now_ms) = input;
        let policy = match Exponential::new(base_ms, factor_percent, cap_ms) {
            Ok(policy) => policy,
            Err(error) => return drop(error.to_string()),
        };
        let delay = policy.delay(attempts);
        assert!((base_ms..=cap_ms).contains(&delay));
        let later = attempts.unwrap_or(1).saturating_add(1);
        assert!(policy.delay(Some(later)) >= delay, "not monotone");
        let failures = Failures {
            attempts,
            last_failure_ms,
        };
        if let Decision::WaitUntil(until) = policy.next_attempt(failures, now_ms) {
            assert!(last_failure_ms.is_some());
            // At the end of time `until` is now.
            assert!(until >= now_ms && until - now_ms <= cap_ms);
        }
    })
);
