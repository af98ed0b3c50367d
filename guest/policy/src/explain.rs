//! Why an attempt is when it is: the rules that were applied, each with the time before and
//! after it.

use core::fmt;

use crate::failure::Class;
use crate::time::{Span, Utc};

/// One rule that had a say.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Step {
    /// The rule.
    pub rule: Rule,
    /// The time of the next attempt before it, in milliseconds since the epoch.
    pub before_ms: u64,
    /// And after it.
    pub after_ms: u64,
}

/// A rule that decides about the next attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "kebab-case"))]
#[non_exhaustive]
pub enum Rule {
    /// Nothing has failed: there is nothing to wait for.
    NoFailure,
    /// The delay after so many failures in a row.
    Delay {
        /// Consecutive failures.
        attempts: u32,
        /// The class of the last one, where it is known.
        class: Option<Class>,
    },
    /// A failure without a count, from before there was one: the first delay.
    NoCount,
    /// The last failure is recorded in the future: the clock was set back, and it counts as now.
    ClockSetBack {
        /// The recorded time.
        recorded_ms: u64,
    },
    /// Chance within what the jitter allows.
    Jitter,
    /// The certificate in use ends, and attempts have to fit before.
    Expiry {
        /// Its notAfter.
        not_after_ms: u64,
    },
    /// The server said how long to wait.
    Hint {
        /// What it asked for, in seconds.
        asked_s: i64,
        /// What it was granted, in milliseconds.
        granted_ms: u64,
    },
    /// The endpoint asked the fleet for less.
    Throttled,
    /// The retries that the fleet may send to the endpoint are used up.
    Budget,
    /// Stored when the last attempt failed, and never brought forward by a restart.
    Stored,
    /// A stored time further away than any wait may be.
    Longest,
    /// Overdue when the service started, and spread so that not all come at once.
    Spread,
    /// Somebody renewed by hand.
    ByHand,
    /// The request changed in a way that matters.
    Changed,
    /// The certificate is due for renewal.
    Renewal,
    /// The CA named a time for the renewal.
    RenewalWindow,
    /// It succeeded too often in too short a time.
    TooManySuccesses {
        /// Successes within the window.
        successes: u32,
    },
    /// As often as it may fail in a row. It stays in ERROR until it is changed or renewed by
    /// hand.
    MaxAttempts {
        /// Consecutive failures.
        attempts: u32,
    },
    /// It can never work as it is configured. It stays in ERROR until it is changed or renewed
    /// by hand.
    Permanent,
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            rule,
            before_ms,
            after_ms,
        } = *self;
        write!(f, "{rule}")?;
        if after_ms > before_ms {
            write!(
                f,
                ": {} later, {}",
                Span(after_ms - before_ms),
                Utc(after_ms)
            )
        } else if after_ms < before_ms {
            write!(
                f,
                ": {} earlier, {}",
                Span(before_ms - after_ms),
                Utc(after_ms)
            )
        } else {
            write!(f, ": {}", Utc(after_ms))
        }
    }
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::NoFailure => write!(f, "nothing failed"),
            Self::Delay {
                attempts,
                class: None,
            } => write!(f, "failure {attempts} in a row"),
            Self::Delay {
                attempts,
                class: Some(class),
            } => write!(f, "failure {attempts} in a row ({class})"),
            Self::NoCount => write!(f, "a failure without a count, taken as the first"),
            Self::ClockSetBack { recorded_ms } => write!(
                f,
                "the clock was set back: a failure at {} counts as now",
                Utc(recorded_ms)
            ),
            Self::Jitter => write!(f, "jitter"),
            Self::Expiry { not_after_ms } => {
                write!(f, "the certificate ends at {}", Utc(not_after_ms))
            }
            Self::Hint {
                asked_s,
                granted_ms,
            } => write!(
                f,
                "the server asks for {asked_s} s, granted {}",
                Span(granted_ms)
            ),
            Self::Throttled => write!(f, "the endpoint asks for fewer requests"),
            Self::Budget => write!(f, "the retries for this endpoint are used up"),
            Self::Stored => write!(f, "the time that was stored"),
            Self::Longest => write!(f, "no wait is longer than this"),
            Self::Spread => write!(f, "overdue at the start of the service, spread"),
            Self::ByHand => write!(f, "renewed by hand"),
            Self::Changed => write!(f, "the request changed"),
            Self::Renewal => write!(f, "renewal"),
            Self::RenewalWindow => write!(f, "renewal as the CA suggests"),
            Self::TooManySuccesses { successes } => {
                write!(f, "{successes} successes in too short a time")
            }
            Self::MaxAttempts { attempts } => write!(
                f,
                "failure {attempts} in a row is the last: change the order or renew it by hand"
            ),
            Self::Permanent => write!(
                f,
                "it cannot work as it is configured: change the order or renew it by hand"
            ),
        }
    }
}
