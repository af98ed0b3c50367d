//! What a fleet shares about one CMP endpoint: its retry budget, and until when it asked for
//! less.
//!
//! The budget is a bucket of tokens. A retry takes one, a success gives one back, and a trickle
//! refills it with time. While the CA answers, retries are paid for by what they achieve; while
//! it is down, the whole fleet together sends what the bucket held and then the trickle. A first
//! attempt takes nothing.
//!
//! The state belongs into the store beside the endpoint, written with compare-and-swap: two
//! workers that take the same token make one too many.

use crate::limits::{MAX_BUDGET, MAX_DELAY_MS, MIN_BASE_MS};
use crate::mistake::{Check, Mistakes};
use crate::random::{self, Octets};
use crate::strategy::Strategy;
use crate::time::{HOUR_MS, SECOND_MS};

/// How many retries a fleet may send to one endpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(default, deny_unknown_fields))]
pub struct Budget {
    /// Retries in a full bucket. Default 100: AWS SDKs hold 500 tokens and take 5 for a retry.
    pub capacity: u32,
    /// Time in which one token comes back by itself, in milliseconds. Default 6 s, which lets
    /// through 600 retries an hour to a CA that is down.
    pub refill_ms: u64,
    /// The shortest span over which refused retries are spread, in milliseconds. It doubles with
    /// each refusal of the same retry. Default 10 s.
    pub spread_ms: u64,
    /// The longest such span, in milliseconds. Default one hour: so much may recovery take.
    pub spread_cap_ms: u64,
}

/// What is stored about one endpoint. A new one is [`EndpointState::default`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct EndpointState {
    /// When the bucket will be full again, in milliseconds since the epoch; in the past, it is.
    pub full_at_ms: u64,
    /// How often in a row the endpoint asked for less.
    pub throttled: u32,
    /// Nothing is sent before this time, in milliseconds since the epoch.
    pub not_before_ms: u64,
}

/// Whether a retry may be sent now.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Permit {
    /// At once; its token is taken.
    Go,
    /// Not before this time, in milliseconds since the epoch. Nothing was taken, so it has to
    /// ask again then.
    Wait {
        /// When to ask again.
        until_ms: u64,
        /// Why.
        cause: Cause,
    },
}

/// Why a retry has to wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Cause {
    /// The fleet's retries are used up.
    Budget,
    /// The endpoint asked for less.
    Throttled,
}

impl EndpointState {
    /// Whole tokens in the bucket at `now_ms`.
    pub fn tokens(&self, budget: &Budget, now_ms: u64) -> u32 {
        let missing = (self.full_at(budget, now_ms) - now_ms).div_ceil(budget.refill());
        // At most as many are missing as there may be.
        budget.capacity.saturating_sub(missing as u32)
    }

    /// Asks for one retry at `now_ms`. `refusals` says how often this same retry was refused
    /// before.
    pub fn retry(
        self,
        budget: &Budget,
        now_ms: u64,
        refusals: u32,
        random: Octets,
    ) -> (Self, Permit) {
        if self.not_before_ms > now_ms {
            let until_ms = self.not_before_ms;
            let cause = Cause::Throttled;
            return (self, Permit::Wait { until_ms, cause });
        }
        let full_at_ms = self.full_at(budget, now_ms).saturating_add(budget.refill());
        let earliest = full_at_ms.saturating_sub(budget.full());
        if earliest <= now_ms && budget.capacity > 0 {
            let taken = Self { full_at_ms, ..self };
            return (taken, Permit::Go);
        }
        // All the refused would otherwise come back for the same token.
        let factor = 1_u64.checked_shl(refusals).unwrap_or(u64::MAX);
        let spread = budget
            .spread_ms
            .saturating_mul(factor)
            .min(budget.spread_cap_ms.min(MAX_DELAY_MS));
        let until_ms = random::between(random, earliest, earliest.saturating_add(spread));
        let cause = Cause::Budget;
        (self, Permit::Wait { until_ms, cause })
    }

    /// The endpoint did what it was asked: one token comes back, and nothing it said about
    /// coming less holds any longer.
    pub fn succeeded(self, budget: &Budget, now_ms: u64) -> Self {
        let full_at_ms = self.full_at(budget, now_ms).saturating_sub(budget.refill());
        Self {
            full_at_ms,
            throttled: 0,
            not_before_ms: 0,
        }
    }

    /// The endpoint asks for less: nothing is sent for as long as `hint_ms` says (already within
    /// its bounds), at least for what the strategy says after so many times in a row.
    ///
    /// Answers to requests that were on their way when the first of them was refused count as
    /// one with it, or a fleet would jump to the cap at once.
    pub fn throttled(
        self,
        strategy: &Strategy,
        hint_ms: Option<u64>,
        now_ms: u64,
        random: Octets,
    ) -> Self {
        let is_waiting = self.not_before_ms > now_ms;
        let throttled = if is_waiting {
            self.throttled.max(1)
        } else {
            self.throttled.saturating_add(1)
        };
        let own_ms = strategy.delay(Some(throttled.into()), None, random);
        let asked = now_ms.saturating_add(hint_ms.unwrap_or(0));
        let until = if is_waiting {
            asked
        } else {
            asked.max(now_ms.saturating_add(own_ms))
        };
        Self {
            throttled,
            not_before_ms: until.max(self.not_before_ms),
            ..self
        }
    }

    /// When the bucket is full again: now or later, but not later than if it were empty now,
    /// which only a clock that was set back can claim.
    fn full_at(&self, budget: &Budget, now_ms: u64) -> u64 {
        let latest = now_ms.saturating_add(budget.full());
        self.full_at_ms.clamp(now_ms, latest)
    }
}

impl Budget {
    fn refill(&self) -> u64 {
        self.refill_ms.clamp(MIN_BASE_MS, MAX_DELAY_MS)
    }

    /// From empty to full. Below 2⁶², a product of 42 and 20 bits.
    fn full(&self) -> u64 {
        self.refill() * u64::from(self.capacity.min(MAX_BUDGET))
    }
}

impl Default for Budget {
    fn default() -> Self {
        Self {
            capacity: 100,
            refill_ms: 6 * SECOND_MS,
            spread_ms: 10 * SECOND_MS,
            spread_cap_ms: HOUR_MS,
        }
    }
}

impl Check for Budget {
    fn check(&self, found: &mut Mistakes) {
        found.range(
            "capacity",
            self.capacity.into(),
            1..=u64::from(MAX_BUDGET),
            "retries",
        );
        found.range(
            "refill_ms",
            self.refill_ms,
            MIN_BASE_MS..=MAX_DELAY_MS,
            "ms",
        );
        found.range("spread_ms", self.spread_ms, 0..=MAX_DELAY_MS, "ms");
        found.range("spread_cap_ms", self.spread_cap_ms, 0..=MAX_DELAY_MS, "ms");
        found.at_least(
            "spread_cap_ms",
            self.spread_cap_ms,
            "spread_ms",
            self.spread_ms,
        );
    }
}
