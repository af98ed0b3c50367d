//! Whether a new order starts or waits.

use alloc::borrow::ToOwned;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use super::Promotion;
use crate::limits::{MAX_ACTIVE, MAX_CHAIN, MAX_DELAY_MS, MAX_LISTED, MAX_NAME};
use crate::mistake::{Check, Mistakes, Problem};
use crate::time::Span;

/// The configuration of quality of service.
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(default, deny_unknown_fields))]
pub struct Qos {
    /// Whether new orders are looked at. Default off. Has no say over promotion.
    pub enabled: bool,
    /// Whether what would be buffered is started all the same, and only counted. Default on. Has
    /// no say over promotion.
    pub learning_mode: bool,
    /// What says that too much is going on. Default: more than 100 active orders.
    pub supplier: Supplier,
    /// Who votes, in order. Default: [`BufferPolicy::Interactive`] for one order made by hand,
    /// then [`BufferPolicy::Naive`].
    pub buffer: Vec<BufferPolicy>,
    /// Who is let out again.
    pub promotion: Promotion,
}

/// What says that too much is going on: the state of buffering.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "kebab-case"))]
pub enum Supplier {
    /// More active orders than the threshold.
    ActiveExecutions {
        /// Strictly more than this. Default 100.
        threshold: u32,
    },
    /// Whatever the operator says.
    KillSwitch {
        /// Whether to buffer.
        enabled: bool,
    },
}

/// One voter.
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "kebab-case"))]
pub enum BufferPolicy {
    /// Buffers everything.
    Naive,
    /// Forces what a person is waiting for: an order by hand, of one of these origins.
    Interactive {
        /// The origins, such as `cli`, `ui` or `deck`.
        origins: Vec<String>,
    },
    /// Forces the renewal of a certificate that ends soon: no certificate is lost to a queue.
    Expiring {
        /// How soon, in milliseconds.
        within_ms: u64,
    },
    /// Buffers orders below a criticality and lets the others through.
    ByCriticality {
        /// The least criticality that is started.
        least: Criticality,
    },
}

/// How much an order matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "kebab-case"))]
pub enum Criticality {
    /// It can wait.
    Low,
    /// Nothing was said.
    #[default]
    Medium,
    /// It should not wait.
    High,
}

/// What is known about a new order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Arrival<'a> {
    /// Where it comes from.
    pub origin: &'a str,
    /// Whether a person made it by hand, rather than a rule or a renewal.
    pub by_hand: bool,
    /// How much it matters.
    pub criticality: Criticality,
    /// When the certificate that it replaces ends, in milliseconds since the epoch.
    pub not_after_ms: Option<u64>,
}

/// What a voter wants.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "UPPERCASE"))]
pub enum Verdict {
    /// Start it.
    Enqueue,
    /// Let it wait.
    Buffer,
    /// No opinion.
    Abstain,
}

/// One vote.
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Vote {
    /// Whose.
    pub policy: String,
    /// What it wants.
    pub verdict: Verdict,
    /// Whether it outweighs all others.
    pub force: bool,
    /// Why, for a person.
    pub reason: String,
}

/// What becomes of a new order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "UPPERCASE"))]
pub enum Decided {
    /// It is started: NOT_STARTED, with its task.
    Enqueued,
    /// It waits for the promoter.
    Buffered,
}

/// What was decided about a new order.
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Admission {
    /// What becomes of it.
    pub decided: Decided,
    /// What would become of it outside of learning mode: what metrics count.
    pub would_be: Decided,
    /// Whether this was learning mode.
    pub learning: bool,
    /// Why, in one line: it is logged and kept on the order.
    pub reason: String,
    /// All votes, in order; none if nobody was asked.
    pub votes: Vec<Vote>,
}

impl Supplier {
    /// Whether too much is going on, and why.
    pub fn is_buffering(&self, active: u64) -> (bool, String) {
        match *self {
            Self::ActiveExecutions { threshold } => {
                let buffering = active > u64::from(threshold);
                let compared = if buffering { "more than" } else { "not above" };
                let reason = format!("{active} active orders are {compared} {threshold}");
                (buffering, reason)
            }
            Self::KillSwitch { enabled } => {
                let position = if enabled { "on" } else { "off" };
                (enabled, format!("the kill switch is {position}"))
            }
        }
    }

    fn can_buffer(&self) -> bool {
        !matches!(self, Self::KillSwitch { enabled: false })
    }
}

impl BufferPolicy {
    /// The name it goes by in logs and reasons.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Naive => "naive",
            Self::Interactive { .. } => "interactive",
            Self::Expiring { .. } => "expiring",
            Self::ByCriticality { .. } => "by-criticality",
        }
    }

    fn vote(&self, arrival: &Arrival<'_>, now_ms: u64) -> Vote {
        let (verdict, force, reason) = match self {
            Self::Naive => (
                Verdict::Buffer,
                false,
                "everything is buffered while buffering is on".to_owned(),
            ),
            Self::Interactive { origins } => {
                let origin = arrival.origin;
                let known = origins.iter().any(|name| name.eq_ignore_ascii_case(origin));
                if arrival.by_hand && known {
                    let reason = format!("somebody waits for it at {origin}");
                    (Verdict::Enqueue, true, reason)
                } else {
                    let reason = "nobody waits for it".to_owned();
                    (Verdict::Abstain, false, reason)
                }
            }
            Self::Expiring { within_ms } => match arrival.not_after_ms {
                Some(not_after) if not_after <= now_ms => (
                    Verdict::Enqueue,
                    true,
                    "its certificate has ended".to_owned(),
                ),
                Some(not_after) if not_after - now_ms <= *within_ms => (
                    Verdict::Enqueue,
                    true,
                    format!("its certificate ends in {}", Span(not_after - now_ms)),
                ),
                _ => (
                    Verdict::Abstain,
                    false,
                    format!("no certificate of it ends within {}", Span(*within_ms)),
                ),
            },
            Self::ByCriticality { least } => {
                let given = arrival.criticality;
                if given < *least {
                    let reason = format!("its criticality {given:?} is below {least:?}");
                    (Verdict::Buffer, false, reason)
                } else {
                    let reason = format!("its criticality is {given:?}");
                    (Verdict::Enqueue, false, reason)
                }
            }
        };
        Vote {
            policy: self.name().to_owned(),
            verdict,
            force,
            reason,
        }
    }
}

impl Qos {
    /// Whether a new order starts or waits, with so many active ones.
    pub fn admit(&self, arrival: &Arrival<'_>, active: u64, now_ms: u64) -> Admission {
        let through = |reason| Admission {
            decided: Decided::Enqueued,
            would_be: Decided::Enqueued,
            learning: self.learning_mode,
            reason,
            votes: Vec::new(),
        };
        if !self.enabled {
            return through("quality of service is off".to_owned());
        }
        let (buffering, state) = self.supplier.is_buffering(active);
        if !buffering {
            return through(state);
        }
        let votes: Vec<Vote> = self
            .buffer
            .iter()
            .map(|policy| policy.vote(arrival, now_ms))
            .collect();
        let (would_be, why) = count(&votes);
        Admission {
            decided: if self.learning_mode {
                Decided::Enqueued
            } else {
                would_be
            },
            would_be,
            learning: self.learning_mode,
            reason: format!("{state}; {why}"),
            votes,
        }
    }

    /// Refuses a start at which orders could stay buffered for ever: nobody promotes, and either
    /// something is buffered already or something may be. `None` means that it may start.
    pub fn stuck(&self, buffered: u64) -> Option<Problem> {
        if self.promotion.releases() {
            return None;
        }
        let may_buffer = self.enabled
            && !self.learning_mode
            && self.supplier.can_buffer()
            && self.buffer.iter().any(|policy| {
                matches!(
                    policy,
                    BufferPolicy::Naive | BufferPolicy::ByCriticality { .. }
                )
            });
        if may_buffer {
            return Some(Problem::Conflict(
                "nothing would ever release a buffered order: turn promotion on, with a policy \
                 that promotes, or turn quality of service off",
            ));
        }
        (buffered > 0).then_some(Problem::Conflict(
            "orders are buffered and nothing would ever release them: turn promotion on, with a \
             policy that promotes, until none is left",
        ))
    }
}

/// The first forced vote wins; otherwise one for buffering does; otherwise it is started.
fn count(votes: &[Vote]) -> (Decided, String) {
    let forced = votes
        .iter()
        .find(|vote| vote.force && vote.verdict != Verdict::Abstain);
    let decisive = forced
        .or_else(|| votes.iter().find(|vote| vote.verdict == Verdict::Buffer))
        .or_else(|| votes.iter().find(|vote| vote.verdict == Verdict::Enqueue));
    let Some(vote) = decisive else {
        return (Decided::Enqueued, "no policy has an opinion".to_owned());
    };
    let decided = if vote.verdict == Verdict::Buffer {
        Decided::Buffered
    } else {
        Decided::Enqueued
    };
    let forces = if vote.force { ", forced" } else { "" };
    (decided, format!("{}{forces}: {}", vote.policy, vote.reason))
}

impl Default for Supplier {
    fn default() -> Self {
        Self::ActiveExecutions { threshold: 100 }
    }
}

impl Default for Qos {
    fn default() -> Self {
        Self {
            enabled: false,
            learning_mode: true,
            supplier: Supplier::default(),
            buffer: Vec::from([
                BufferPolicy::Interactive {
                    origins: Vec::from(["cli".to_owned(), "ui".to_owned(), "deck".to_owned()]),
                },
                BufferPolicy::Naive,
            ]),
            promotion: Promotion::default(),
        }
    }
}

impl Check for Qos {
    fn check(&self, found: &mut Mistakes) {
        if let Supplier::ActiveExecutions { threshold } = self.supplier {
            found.range(
                "supplier.active-executions.threshold",
                threshold.into(),
                0..=u64::from(MAX_ACTIVE),
                "orders",
            );
        }
        found.list("buffer", &self.buffer, MAX_CHAIN);
        found.field("promotion", &self.promotion);
        if let Some(problem) = self.stuck(0) {
            found.report("promotion.enabled", problem);
        }
    }
}

impl Check for BufferPolicy {
    fn check(&self, found: &mut Mistakes) {
        match self {
            Self::Naive | Self::ByCriticality { .. } => {}
            Self::Interactive { origins } => {
                if origins.is_empty() {
                    found.report("interactive.origins", Problem::Empty);
                }
                found.length("interactive.origins", origins.len(), MAX_LISTED);
                for (index, origin) in origins.iter().enumerate() {
                    let at = format!("interactive.origins[{index}]");
                    if origin.is_empty() {
                        found.report(&at, Problem::Empty);
                    }
                    found.length(&at, origin.len(), MAX_NAME);
                }
            }
            Self::Expiring { within_ms } => {
                found.range("expiring.within_ms", *within_ms, 1..=MAX_DELAY_MS, "ms");
            }
        }
    }
}
