//! When a certificate is renewed, and how failures make haste when it nears its end.

use crate::limits::{MAX_DELAY_MS, MAX_EXPIRY_TRIES, MAX_FRACTION};
use crate::mistake::{Check, Mistakes, Problem};
use crate::random::{self, Octets};
use crate::time::MINUTE_MS;

/// The validity of a certificate, in milliseconds since the epoch, both ends included.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Validity {
    /// notBefore.
    pub not_before_ms: u64,
    /// notAfter.
    pub not_after_ms: u64,
}

/// A window in which a CA would like a certificate to be renewed, as ACME Renewal Information
/// (RFC 9773, 4.1) has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Window {
    /// Its start, in milliseconds since the epoch.
    pub start_ms: u64,
    /// Its end.
    pub end_ms: u64,
}

/// When a certificate is renewed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(default, deny_unknown_fields))]
pub struct Renewal {
    /// The part of the lifetime after which it is renewed: `[2, 3]` is two thirds, the default
    /// and cert-manager's.
    pub after: (u32, u32),
    /// So long before notAfter instead, in milliseconds; where that is the whole lifetime or
    /// more, `after` holds.
    pub before_ms: Option<u64>,
    /// Up to so many percent of the lifetime earlier, by chance, so that certificates of one day
    /// do not come back on one day. Default 0.
    pub spread_percent: u32,
}

/// How a certificate that still lives hastens the next attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(default, deny_unknown_fields))]
pub struct ExpiryClamp {
    /// Attempts that have to fit before notAfter. Default 2; 0 turns it off.
    pub tries: u32,
    /// The shortest wait it may ask for, in milliseconds. Default one minute, which is for a
    /// certificate of an hour; one that lives longer waits longer, see [`ExpiryClamp::hasten`].
    pub gap_ms: u64,
}

impl Validity {
    /// From notBefore to notAfter, in milliseconds; zero for a certificate that never was valid.
    pub fn lifetime_ms(&self) -> u64 {
        self.not_after_ms.saturating_sub(self.not_before_ms)
    }
}

impl Renewal {
    /// When to renew a certificate, in milliseconds since the epoch.
    ///
    /// A usable window of the CA decides, with a moment in it chosen by chance (RFC 9773, 4.2).
    /// A window is of no use if it ends before it starts, or starts when the certificate is no
    /// longer valid. The part of a window after notAfter is cut off.
    pub fn at(&self, validity: Validity, window: Option<Window>, random: Octets) -> u64 {
        if let Some(window) = window.filter(|window| window.is_usable(validity)) {
            return random::between(
                random,
                window.start_ms,
                window.end_ms.min(validity.not_after_ms),
            );
        }
        let lifetime = validity.lifetime_ms();
        let after = self
            .before_ms
            .and_then(|before| lifetime.checked_sub(before))
            .filter(|after| *after > 0)
            .unwrap_or_else(|| self.part_of(lifetime));
        let percent = u128::from(self.spread_percent.min(100));
        let earlier = (u128::from(lifetime) * percent / 100) as u64;
        let latest = validity.not_before_ms.saturating_add(after);
        random::between(
            random,
            latest.saturating_sub(earlier).max(validity.not_before_ms),
            latest,
        )
    }

    fn part_of(&self, lifetime: u64) -> u64 {
        let (parts, whole) = self.after;
        let whole = whole.max(1);
        // A part of the whole, so that it is at most the lifetime.
        (u128::from(lifetime) * u128::from(parts.min(whole)) / u128::from(whole)) as u64
    }
}

impl Window {
    fn is_usable(&self, validity: Validity) -> bool {
        self.start_ms <= self.end_ms && self.start_ms < validity.not_after_ms
    }
}

impl ExpiryClamp {
    /// The wait from `now_ms` on that leaves room for enough attempts before notAfter, if
    /// `wait_ms` followed by `next_wait_ms` does not.
    ///
    /// What is left is cut into equal parts, one more than attempts. Each further failure cuts
    /// again, so that attempts come closer together towards the end, but never closer than the
    /// gap: a sixtieth of the lifetime, at most `base_ms`, the delay after a first failure, and
    /// at least `gap_ms`. `None` means that there is room enough, or no time for another attempt.
    pub fn hasten(
        &self,
        validity: Validity,
        now_ms: u64,
        wait_ms: u64,
        next_wait_ms: u64,
        base_ms: u64,
    ) -> Option<u64> {
        let left = validity.not_after_ms.checked_sub(now_ms)?;
        let further = u64::from(self.tries.min(MAX_EXPIRY_TRIES).checked_sub(1)?);
        let needed = wait_ms.saturating_add(next_wait_ms.saturating_mul(further));
        if needed < left {
            return None;
        }
        let gap = (validity.lifetime_ms() / 60).min(base_ms);
        let gap = gap.max(self.gap_ms).max(1);
        let hastened = (left / (further + 2)).max(gap);
        (hastened < wait_ms && hastened < left).then_some(hastened)
    }
}

impl Default for Renewal {
    fn default() -> Self {
        Self {
            after: (2, 3),
            before_ms: None,
            spread_percent: 0,
        }
    }
}

impl Default for ExpiryClamp {
    fn default() -> Self {
        Self {
            tries: 2,
            gap_ms: MINUTE_MS,
        }
    }
}

impl Check for Renewal {
    fn check(&self, found: &mut Mistakes) {
        let (parts, whole) = self.after;
        found.range("after[0]", parts.into(), 1..=MAX_FRACTION, "parts");
        found.range("after[1]", whole.into(), 1..=MAX_FRACTION, "parts");
        if parts >= whole {
            found.report(
                "after[0]",
                Problem::NotBelow {
                    given: parts.into(),
                    other: "after[1]",
                    bound: whole.into(),
                },
            );
        }
        if let Some(before_ms) = self.before_ms {
            found.range("before_ms", before_ms, 1..=MAX_DELAY_MS, "ms");
        }
        found.range(
            "spread_percent",
            self.spread_percent.into(),
            0..=50,
            "percent",
        );
    }
}

impl Check for ExpiryClamp {
    fn check(&self, found: &mut Mistakes) {
        found.range(
            "tries",
            self.tries.into(),
            0..=u64::from(MAX_EXPIRY_TRIES),
            "attempts",
        );
        found.range("gap_ms", self.gap_ms, 1..=MAX_DELAY_MS, "ms");
    }
}
