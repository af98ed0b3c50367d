//! A guard against success that does not last.
//!
//! A CA whose certificates are due again as soon as they arrive makes an order succeed for ever,
//! and no backoff between failures ever sees it.

use alloc::vec::Vec;

use crate::limits::{MAX_DELAY_MS, MAX_SUCCESSES};
use crate::mistake::{Check, Mistakes};
use crate::time::DAY_MS;

/// How often one order may succeed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(default, deny_unknown_fields))]
pub struct SuccessGuard {
    /// Successes within the window that are still believed. Default 50, which lets a certificate
    /// of 45 minutes be renewed at two thirds of its life all day. 0 turns the guard off.
    pub most: u32,
    /// The window, in milliseconds. Default 24 h.
    pub window_ms: u64,
}

impl SuccessGuard {
    /// Records a success at `now_ms` and says until when the guard holds the order back, if it
    /// trips: more than `most` successes within the window, this one included.
    ///
    /// `successes_ms` are the earlier ones that may still count, oldest first. At most
    /// [`MAX_SUCCESSES`] are kept.
    pub fn record(&self, mut successes_ms: Vec<u64>, now_ms: u64) -> (Vec<u64>, Option<u64>) {
        let most = self.most.min(MAX_SUCCESSES) as usize;
        if most == 0 {
            return (Vec::new(), None);
        }
        // What seems to lie in the future is from a clock that was set back: it counts as now.
        for success in &mut successes_ms {
            *success = (*success).min(now_ms);
        }
        successes_ms.retain(|success| now_ms - success < self.window_ms);
        successes_ms.push(now_ms);
        let surplus = successes_ms.len().saturating_sub(most + 1);
        successes_ms.drain(..surplus);
        let until = (successes_ms.len() > most)
            .then(|| successes_ms[0].saturating_add(self.window_ms))
            .filter(|until| *until > now_ms);
        (successes_ms, until)
    }
}

impl Default for SuccessGuard {
    fn default() -> Self {
        Self {
            most: 50,
            window_ms: DAY_MS,
        }
    }
}

impl Check for SuccessGuard {
    fn check(&self, found: &mut Mistakes) {
        found.range(
            "most",
            self.most.into(),
            0..=u64::from(MAX_SUCCESSES),
            "successes",
        );
        found.range("window_ms", self.window_ms, 1..=MAX_DELAY_MS, "ms");
    }
}
