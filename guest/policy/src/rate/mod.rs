//! Limits on how often somebody may ask, as Spinnaker's API rate limiter has them, and how often
//! a fleet may ask a CA.
//!
//! A request has a [`Principal`]; configuration and what operators set at run time give that
//! principal a [`Limit`] and say whether it is enforced or only learnt from; its [`Bucket`] says
//! whether there is room. Keep to this order:
//!
//! 1. [`RateLimit::identify`] names the principal;
//! 2. [`RateLimit::resolve`] finds its limit and mode;
//! 3. [`Resolved::decide`] takes from its bucket, in one atomic step of the store;
//! 4. [`Answer::headers`] go onto the answer, whatever it is.
//!
//! Where the store is away or what it holds is unreadable, [`Resolved::without_store`] stands in
//! for the third: a request is let through and learnt from, never refused by mistake.

mod bucket;
mod dynamic;
mod headers;
mod principal;
mod table;

pub use bucket::{Algorithm, Bucket, Limit, Taken, UnreadableBucket};
pub use dynamic::{Key, Mode, Overrides, Resolved, Source, Warning};
pub use headers::Headers;
pub use principal::Principal;
pub use table::{Placed, Table};

use alloc::string::String;
use alloc::vec::Vec;

use crate::limits::{MAX_CAPACITY, MAX_LISTED, MAX_NAME, MAX_PRINCIPALS, MAX_RATE_SECONDS};
use crate::mistake::{Check, Mistakes, Problem};

/// The configuration of a limiter, with the names of Spinnaker's `rateLimit` block in snake case.
///
/// A principal is named as in the seed's files: the authenticated name, or `anonymous`. A client
/// that named itself is `app:NAME`, an address `address:ADDRESS`, with an IPv6 address as its
/// /64, such as `address:2001:db8::`.
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(default, deny_unknown_fields))]
pub struct RateLimit {
    /// Whether there is a limiter at all. Default off. The caller asks this first.
    pub enabled: bool,
    /// Whether a principal that is in no list is only learnt from. Default on.
    pub learning: bool,
    /// How requests are counted. Default [`Algorithm::Gcra`].
    pub algorithm: Algorithm,
    /// The span in which `capacity` requests are allowed, in seconds. Default 10.
    #[cfg_attr(feature = "serde", serde(alias = "rateSeconds"))]
    pub rate_seconds: u32,
    /// Requests allowed in that span. Default 60; 0 refuses all.
    pub capacity: u32,
    /// Other capacities for some.
    #[cfg_attr(feature = "serde", serde(alias = "capacityByPrincipal"))]
    pub capacity_by_principal: Vec<Override>,
    /// Other spans for some.
    #[cfg_attr(feature = "serde", serde(alias = "rateSecondsByPrincipal"))]
    pub rate_seconds_by_principal: Vec<Override>,
    /// Principals that are limited even while learning.
    pub enforcing: Vec<String>,
    /// Principals that are only learnt from, always.
    pub ignoring: Vec<String>,
    /// Whether callers without a name are told apart by their address instead of sharing the
    /// bucket of `anonymous`. Default off, as in Spinnaker.
    pub by_address: bool,
    /// Principals with a bucket of their own at a time. Default 100 000; those beyond share one.
    pub most_principals: u32,
    /// Names chosen by clients with a bucket of their own at a time. Default 1000; those beyond
    /// share the bucket of `anonymous`.
    pub most_apps: u32,
}

/// A number for one principal instead of the general one.
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(deny_unknown_fields))]
pub struct Override {
    /// Who.
    pub principal: String,
    /// The number.
    #[cfg_attr(feature = "serde", serde(rename = "override"))]
    pub value: u32,
}

/// What was decided about a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Answer {
    /// Whether it goes on.
    pub outcome: Outcome,
    /// Whether the limit is enforced.
    pub mode: Mode,
    /// Requests allowed within the span.
    pub capacity: u32,
    /// Requests left.
    pub remaining: u32,
    /// When the bucket is full again, in milliseconds since the epoch; always in the future.
    pub reset_ms: u64,
    /// When a request like this one would be admitted, if there was no room for it.
    pub retry_at_ms: Option<u64>,
}

/// Whether a request goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "kebab-case"))]
pub enum Outcome {
    /// There was room for it.
    Admitted,
    /// There was none, but it goes on: counts as `rateLimit.throttlingLearning`.
    WouldThrottle,
    /// There was none: 429, and it counts as `rateLimit.throttling`.
    Throttled,
}

impl Outcome {
    /// Whether the request goes on.
    pub fn goes_on(self) -> bool {
        self != Self::Throttled
    }
}

impl Resolved {
    /// Takes `cost` from a bucket, a new one where there is none.
    ///
    /// What is refused is not charged, whether enforced or learnt from. The new bucket goes back
    /// into the store in the same step, or two requests may take the same place.
    pub fn decide(&self, bucket: Option<Bucket>, cost: u32, now_ms: u64) -> (Bucket, Answer) {
        let (bucket, taken) = Bucket::take(bucket, self.limit, cost, now_ms);
        (bucket, self.answer(taken))
    }

    /// The answer when a bucket has been asked.
    pub fn answer(&self, taken: Taken) -> Answer {
        let outcome = match (taken.admitted, self.mode) {
            (true, _) => Outcome::Admitted,
            (false, Mode::Learning) => Outcome::WouldThrottle,
            (false, Mode::Enforced) => Outcome::Throttled,
        };
        Answer {
            outcome,
            mode: self.mode,
            capacity: self.limit.capacity,
            remaining: taken.remaining,
            reset_ms: taken.reset_ms,
            retry_at_ms: taken.retry_at_ms,
        }
    }

    /// The answer when the store is away: nothing is known, so nothing is refused.
    pub fn without_store(&self, now_ms: u64) -> Answer {
        Answer {
            outcome: Outcome::Admitted,
            mode: Mode::Learning,
            capacity: self.limit.capacity,
            remaining: self.limit.capacity,
            reset_ms: now_ms.saturating_add(self.limit.rate_ms.max(1)),
            retry_at_ms: None,
        }
    }
}

impl Default for RateLimit {
    fn default() -> Self {
        Self {
            enabled: false,
            learning: true,
            algorithm: Algorithm::Gcra,
            rate_seconds: 10,
            capacity: 60,
            capacity_by_principal: Vec::new(),
            rate_seconds_by_principal: Vec::new(),
            enforcing: Vec::new(),
            ignoring: Vec::new(),
            by_address: false,
            most_principals: 100_000,
            most_apps: 1000,
        }
    }
}

impl Check for RateLimit {
    fn check(&self, found: &mut Mistakes) {
        let seconds = 1..=u64::from(MAX_RATE_SECONDS);
        let requests = 0..=u64::from(MAX_CAPACITY);
        found.range(
            "rate_seconds",
            self.rate_seconds.into(),
            seconds.clone(),
            "s",
        );
        found.range(
            "capacity",
            self.capacity.into(),
            requests.clone(),
            "requests",
        );
        let overrides = [
            (
                "capacity_by_principal",
                &self.capacity_by_principal,
                requests,
                "requests",
            ),
            (
                "rate_seconds_by_principal",
                &self.rate_seconds_by_principal,
                seconds,
                "s",
            ),
        ];
        for (list, entries, range, unit) in overrides {
            found.length(list, entries.len(), MAX_LISTED);
            for (index, entry) in entries.iter().enumerate() {
                let at = |field| alloc::format!("{list}[{index}].{field}");
                check_name(found, &at("principal"), &entry.principal);
                found.range(&at("override"), entry.value.into(), range.clone(), unit);
                if entries[..index]
                    .iter()
                    .any(|earlier| earlier.principal == entry.principal)
                {
                    found.report(&at("principal"), Problem::Repeated(entry.principal.clone()));
                }
            }
        }
        for (list, names) in [("enforcing", &self.enforcing), ("ignoring", &self.ignoring)] {
            found.length(list, names.len(), MAX_LISTED);
            for (index, name) in names.iter().enumerate() {
                check_name(found, &alloc::format!("{list}[{index}]"), name);
            }
        }
        for (index, name) in self.ignoring.iter().enumerate() {
            let at = alloc::format!("ignoring[{index}]");
            if principal::is_app(name) {
                found.report(
                    &at,
                    Problem::Conflict(
                        "is a name that any client can give itself, which may not lift its limit: \
                         authenticate the client",
                    ),
                );
            }
        }
        found.range(
            "most_principals",
            self.most_principals.into(),
            1..=u64::from(MAX_PRINCIPALS),
            "principals",
        );
        found.range(
            "most_apps",
            self.most_apps.into(),
            0..=u64::from(MAX_PRINCIPALS),
            "names",
        );
    }
}

fn check_name(found: &mut Mistakes, at: &str, name: &str) {
    if name.is_empty() {
        found.report(at, Problem::Empty);
    }
    found.length(at, name.len(), MAX_NAME);
}
