use abide_policy::backoff as policy;

use crate::Component;
use crate::bindings::exports::abide::cmp::backoff::{
    Decision, Exponential, Failures, Guest, PolicyError,
};

impl Guest for Component {
    fn default_policy() -> Exponential {
        let policy = policy::Exponential::default();
        Exponential {
            base_ms: policy.base_ms(),
            factor_percent: policy.factor_percent(),
            cap_ms: policy.cap_ms(),
        }
    }

    fn delay(policy: Exponential, attempts: Option<i64>) -> Result<u64, PolicyError> {
        Ok(checked(policy)?.delay(attempts))
    }

    fn next_attempt(
        policy: Exponential,
        failures: Failures,
        now_ms: u64,
    ) -> Result<Decision, PolicyError> {
        let failures = policy::Failures {
            attempts: failures.attempts,
            last_failure_ms: failures.last_failure_ms,
        };
        Ok(match checked(policy)?.next_attempt(failures, now_ms) {
            policy::Decision::Due => Decision::Due,
            policy::Decision::WaitUntil(time) => Decision::WaitUntil(time),
        })
    }
}

fn checked(given: Exponential) -> Result<policy::Exponential, PolicyError> {
    policy::Exponential::new(given.base_ms, given.factor_percent, given.cap_ms).map_err(|error| {
        match error {
            policy::PolicyError::BaseOutOfRange(base) => PolicyError::BaseOutOfRange(base),
            policy::PolicyError::FactorOutOfRange(factor) => PolicyError::FactorOutOfRange(factor),
            policy::PolicyError::CapOutOfRange(cap) => PolicyError::CapOutOfRange(cap),
        }
    })
}
