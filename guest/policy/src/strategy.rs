//! How long to wait after the n-th failure: growth, cap and jitter as data.

use crate::backoff::Exponential;
use crate::limits::{
    MAX_DELAY_MS, MAX_FACTOR_PERCENT, MAX_JITTER_PERCENT, MIN_BASE_MS, MIN_FACTOR_PERCENT,
};
use crate::mistake::{Check, Mistakes};
use crate::random::{self, Octets};
use crate::time::{HOUR_MS, MINUTE_MS, SECOND_MS};

/// A delay that grows with each failure, up to a cap.
///
/// The default is cert-manager's between failed issuances: one hour, doubling, at most 32 hours,
/// without jitter (cert-manager, design 20220118).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(default, deny_unknown_fields))]
pub struct Strategy {
    /// The delay after the first failure, in milliseconds.
    pub base_ms: u64,
    /// How it grows.
    pub growth: Growth,
    /// The longest delay, in milliseconds.
    pub cap_ms: u64,
    /// What chance does to it.
    pub jitter: Jitter,
}

/// How the delay grows from one failure to the next.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "kebab-case"))]
pub enum Growth {
    /// Not at all: the base each time.
    Constant,
    /// By the same step each time.
    Linear {
        /// In milliseconds.
        step_ms: u64,
    },
    /// By a factor each time: [`Exponential`].
    Exponential {
        /// In percent: 200 doubles.
        factor_percent: u32,
    },
}

/// What chance does to a delay `d`. It never gets above the cap.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "kebab-case"))]
pub enum Jitter {
    /// Nothing.
    None,
    /// Anything from zero to `d`. The widest spread, and the only choice besides `equal` that
    /// may fall below the base.
    Full,
    /// Half of `d`, and anything up to the other half. May fall below the base.
    Equal,
    /// Anything from the base to three times the delay before, whatever the growth says.
    Decorrelated,
    /// Up to this many percent of `d` to both sides, but not below the base.
    Percent(u32),
}

impl Strategy {
    /// The short tier for passing faults inside one transaction: five seconds, doubling, at most
    /// five minutes.
    pub const fn transient() -> Self {
        Self {
            base_ms: 5 * SECOND_MS,
            growth: Growth::Exponential {
                factor_percent: 200,
            },
            cap_ms: 5 * MINUTE_MS,
            jitter: Jitter::None,
        }
    }

    /// For an endpoint that asks for less, when it does not say until when: thirty seconds,
    /// doubling, at most an hour. Counted per endpoint and not per order, so that a fleet backs
    /// off as one.
    pub const fn throttled() -> Self {
        Self {
            base_ms: 30 * SECOND_MS,
            growth: Growth::Exponential {
                factor_percent: 200,
            },
            cap_ms: HOUR_MS,
            jitter: Jitter::None,
        }
    }

    /// The delay after `attempts` consecutive failures before chance comes in, in milliseconds;
    /// base ≤ delay ≤ cap. No count, zero and less are taken as the first failure.
    pub fn plain(&self, attempts: Option<i64>) -> u64 {
        let (base_ms, cap_ms) = self.bounds();
        match self.growth {
            Growth::Constant => base_ms,
            Growth::Linear { step_ms } => {
                // At least zero after the saturating step.
                let steps = attempts.unwrap_or(1).max(1).saturating_sub(1) as u64;
                base_ms
                    .saturating_add(step_ms.saturating_mul(steps))
                    .min(cap_ms)
            }
            Growth::Exponential { factor_percent } => {
                let factor_percent = factor_percent.clamp(MIN_FACTOR_PERCENT, MAX_FACTOR_PERCENT);
                Exponential::new(base_ms, factor_percent, cap_ms)
                    .map_or(cap_ms, |exponential| exponential.delay(attempts))
            }
        }
    }

    /// The shortest and the longest delay that chance can make of it. `previous_ms` is the delay
    /// before, if there was one.
    pub fn range(&self, attempts: Option<i64>, previous_ms: Option<u64>) -> (u64, u64) {
        let (base_ms, cap_ms) = self.bounds();
        let plain = self.plain(attempts);
        match self.jitter {
            Jitter::None => (plain, plain),
            Jitter::Full => (0, plain),
            Jitter::Equal => (plain - plain / 2, plain),
            Jitter::Decorrelated => {
                let previous = previous_ms.unwrap_or(base_ms).clamp(base_ms, cap_ms);
                (base_ms, previous.saturating_mul(3).min(cap_ms))
            }
            Jitter::Percent(percent) => {
                let percent = u64::from(percent.min(MAX_JITTER_PERCENT));
                // A delay is below 2⁴² and a percentage at most 100.
                let deviation = plain * percent / 100;
                (
                    (plain - deviation).max(base_ms),
                    (plain + deviation).min(cap_ms),
                )
            }
        }
    }

    /// The delay after `attempts` consecutive failures, in milliseconds.
    pub fn delay(&self, attempts: Option<i64>, previous_ms: Option<u64>, random: Octets) -> u64 {
        let (shortest, longest) = self.range(attempts, previous_ms);
        random::between(random, shortest, longest)
    }

    /// Base and cap, made to fit each other whatever the data says.
    fn bounds(&self) -> (u64, u64) {
        let base_ms = self.base_ms.clamp(MIN_BASE_MS, MAX_DELAY_MS);
        (base_ms, self.cap_ms.clamp(base_ms, MAX_DELAY_MS))
    }
}

impl Default for Strategy {
    fn default() -> Self {
        let exponential = Exponential::default();
        Self {
            base_ms: exponential.base_ms(),
            growth: Growth::Exponential {
                factor_percent: exponential.factor_percent(),
            },
            cap_ms: exponential.cap_ms(),
            jitter: Jitter::None,
        }
    }
}

impl Check for Strategy {
    fn check(&self, found: &mut Mistakes) {
        found.range("base_ms", self.base_ms, MIN_BASE_MS..=MAX_DELAY_MS, "ms");
        match self.growth {
            Growth::Constant => {}
            Growth::Linear { step_ms } => {
                found.range("growth.linear.step_ms", step_ms, 0..=MAX_DELAY_MS, "ms");
            }
            Growth::Exponential { factor_percent } => found.range(
                "growth.exponential.factor_percent",
                factor_percent.into(),
                u64::from(MIN_FACTOR_PERCENT)..=u64::from(MAX_FACTOR_PERCENT),
                "percent",
            ),
        }
        found.range("cap_ms", self.cap_ms, MIN_BASE_MS..=MAX_DELAY_MS, "ms");
        found.at_least("cap_ms", self.cap_ms, "base_ms", self.base_ms);
        if let Jitter::Percent(percent) = self.jitter {
            found.range(
                "jitter.percent",
                percent.into(),
                0..=u64::from(MAX_JITTER_PERCENT),
                "percent",
            );
        }
    }
}
