//! Exponential backoff between failed issuances.
//!
//! # Arithmetic
//!
//! The delay after `n` consecutive failures is `base × (factor / 100)^(n − 1)` milliseconds, not
//! above the cap and rounded down. It is computed in integers only, because floating point may
//! differ from one host to the next.
//!
//! The running value is an unsigned fixed-point number of 64 integer and 64 fraction bits. Each
//! failure multiplies it by the factor in percent and divides by 100, rounding down. This has
//! these consequences:
//!
//! * No overflow: before a multiplication the value is below a cap of less than 2⁴² ms, so that it
//!   has at most 106 bits, and a factor has at most 17.
//! * No standstill: the smallest value is 2⁶⁴ units, of which even one percent is far more than
//!   the unit lost by rounding. In whole milliseconds `1 × 1.01` would stay 1 for ever.
//! * Monotone in attempts, base, factor and cap, because each step is.
//! * Exact as long as the true value is whole; otherwise less than 2⁻¹⁶ ms is lost before the
//!   final rounding, even at the slowest growth.
//! * Bounded work: a value that reaches the cap ends the computation, and the slowest growth, one
//!   percent, takes 2 893 steps from one millisecond to 100 years. A factor of 100 takes none.
//!   The number of attempts only ever shortens this.

use core::fmt;

use crate::limits::{MAX_DELAY_MS, MAX_FACTOR_PERCENT, MIN_BASE_MS, MIN_FACTOR_PERCENT};

/// Exponential backoff: a first delay that grows by a factor with each failure, up to a cap.
///
/// A value of this type is always valid:
/// `1 ms ≤ base ≤ cap ≤ 100 years` and `100 ≤ factor ≤ 100 000` percent.
///
/// ```
/// use abide_policy::backoff::Exponential;
///
/// const HOUR_MS: u64 = 3_600_000;
/// let policy = Exponential::default();
/// assert_eq!(policy.delay(Some(1)), HOUR_MS);
/// assert_eq!(policy.delay(Some(4)), 8 * HOUR_MS);
/// assert_eq!(policy.delay(Some(40)), 32 * HOUR_MS);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Exponential {
    base_ms: u64,
    factor_percent: u32,
    cap_ms: u64,
}

/// The failures of an order so far, as they are stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Failures {
    /// Consecutive failed issuances. Absent on records older than the counter.
    pub attempts: Option<i64>,
    /// When the last one failed, in milliseconds since the Unix epoch.
    pub last_failure_ms: Option<u64>,
}

/// Whether an attempt may be made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Decision {
    /// At once.
    Due,
    /// Not before this time, in milliseconds since the Unix epoch.
    WaitUntil(u64),
}

/// What is wrong with a policy; each case carries the value that was given.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum PolicyError {
    /// The base is zero or above [`MAX_DELAY_MS`].
    BaseOutOfRange(u64),
    /// The factor is below [`MIN_FACTOR_PERCENT`] or above [`MAX_FACTOR_PERCENT`].
    FactorOutOfRange(u32),
    /// The cap is below the base or above [`MAX_DELAY_MS`].
    CapOutOfRange(u64),
}

impl Exponential {
    /// Builds a policy, or says which of the three numbers cannot be.
    pub const fn new(base_ms: u64, factor_percent: u32, cap_ms: u64) -> Result<Self, PolicyError> {
        if base_ms < MIN_BASE_MS || base_ms > MAX_DELAY_MS {
            return Err(PolicyError::BaseOutOfRange(base_ms));
        }
        if factor_percent < MIN_FACTOR_PERCENT || factor_percent > MAX_FACTOR_PERCENT {
            return Err(PolicyError::FactorOutOfRange(factor_percent));
        }
        if cap_ms < base_ms || cap_ms > MAX_DELAY_MS {
            return Err(PolicyError::CapOutOfRange(cap_ms));
        }
        Ok(Self {
            base_ms,
            factor_percent,
            cap_ms,
        })
    }

    /// The short tier for passing faults inside one transaction (no connection, a timeout, a busy
    /// server): five seconds, doubling, at most five minutes.
    ///
    /// Short, because the same request is sent again and costs the CA next to nothing; the
    /// transaction's deadline bounds it.
    pub const fn transient() -> Self {
        Self {
            base_ms: 5 * SECOND_MS,
            factor_percent: 200,
            cap_ms: 5 * MINUTE_MS,
        }
    }

    /// The delay after the first failure, in milliseconds.
    pub const fn base_ms(&self) -> u64 {
        self.base_ms
    }

    /// Growth per failure in percent: 200 doubles.
    pub const fn factor_percent(&self) -> u32 {
        self.factor_percent
    }

    /// The longest delay, in milliseconds.
    pub const fn cap_ms(&self) -> u64 {
        self.cap_ms
    }

    /// The delay in milliseconds after `attempts` consecutive failures; base ≤ delay ≤ cap.
    ///
    /// No count, zero and negative counts are taken as the first failure: records written before
    /// the counter existed must wait too, or an upgrade would start all of them at once.
    pub fn delay(&self, attempts: Option<i64>) -> u64 {
        let growths = attempts.unwrap_or(1).saturating_sub(1);
        if self.factor_percent == MIN_FACTOR_PERCENT {
            return self.base_ms;
        }
        let cap = u128::from(self.cap_ms) << FRACTION_BITS;
        let mut value = u128::from(self.base_ms) << FRACTION_BITS;
        let mut done = 0;
        while done < growths && value < cap {
            value = value * u128::from(self.factor_percent) / 100;
            done += 1;
        }
        // At most the cap, hence below 2⁴² once the fraction is gone.
        (value.min(cap) >> FRACTION_BITS) as u64
    }

    /// Whether the next attempt is due at `now_ms`.
    ///
    /// Without a recorded failure it always is. A failure in the future means that the clock was
    /// set back; it counts as now, so that the wait never exceeds the cap.
    pub fn next_attempt(&self, failures: Failures, now_ms: u64) -> Decision {
        let Some(last_failure_ms) = failures.last_failure_ms else {
            return Decision::Due;
        };
        let failed_ms = last_failure_ms.min(now_ms);
        let delay = self.delay(failures.attempts);
        if now_ms - failed_ms >= delay {
            Decision::Due
        } else {
            Decision::WaitUntil(failed_ms.saturating_add(delay))
        }
    }
}

/// cert-manager's policy between failed issuances: one hour, doubling, at most 32 hours.
impl Default for Exponential {
    fn default() -> Self {
        Self {
            base_ms: HOUR_MS,
            factor_percent: 200,
            cap_ms: 32 * HOUR_MS,
        }
    }
}

impl fmt::Display for PolicyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::BaseOutOfRange(given) => write!(
                f,
                "backoff base of {given} ms: give {MIN_BASE_MS} to {MAX_DELAY_MS} ms (100 years)"
            ),
            Self::FactorOutOfRange(given) => write!(
                f,
                "backoff factor of {given} percent: give {MIN_FACTOR_PERCENT} (constant) to \
                 {MAX_FACTOR_PERCENT}, 200 doubles"
            ),
            Self::CapOutOfRange(given) => write!(
                f,
                "backoff cap of {given} ms: give the base or more, at most {MAX_DELAY_MS} ms \
                 (100 years)"
            ),
        }
    }
}

impl core::error::Error for PolicyError {}

/// Fraction bits of the running value; see the module's notes for why 64 fit.
const FRACTION_BITS: u32 = 64;

const SECOND_MS: u64 = 1000;
const MINUTE_MS: u64 = 60 * SECOND_MS;
const HOUR_MS: u64 = 60 * MINUTE_MS;
