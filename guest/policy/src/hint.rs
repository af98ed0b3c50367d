//! What a server says about when to come back.

use crate::limits::{MAX_DELAY_MS, MIN_BASE_MS};
use crate::mistake::{Check, Mistakes};
use crate::time::{DAY_MS, SECOND_MS};

/// Bounds on what a server may ask for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(default, deny_unknown_fields))]
pub struct HintBounds {
    /// The shortest wait, in milliseconds, whatever the server says: no busy loop. Default 1 s
    ///.
    pub min_ms: u64,
    /// The longest wait, in milliseconds: no server silences a client for good. Default 24 h.
    pub max_ms: u64,
}

impl HintBounds {
    /// The wait for a checkAfter or `Retry-After` of so many seconds, in milliseconds. Negative
    /// numbers are the shortest wait, and no number overflows.
    pub fn grant(&self, seconds: i64) -> u64 {
        let asked_ms = u64::try_from(seconds)
            .unwrap_or(0)
            .saturating_mul(SECOND_MS);
        let min_ms = self.min_ms.max(MIN_BASE_MS);
        asked_ms.clamp(min_ms, self.max_ms.max(min_ms))
    }
}

impl Default for HintBounds {
    fn default() -> Self {
        Self {
            min_ms: SECOND_MS,
            max_ms: DAY_MS,
        }
    }
}

impl Check for HintBounds {
    fn check(&self, found: &mut Mistakes) {
        found.range("min_ms", self.min_ms, MIN_BASE_MS..=MAX_DELAY_MS, "ms");
        found.range("max_ms", self.max_ms, MIN_BASE_MS..=MAX_DELAY_MS, "ms");
        found.at_least("max_ms", self.max_ms, "min_ms", self.min_ms);
    }
}
