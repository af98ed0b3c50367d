//! Which of the orders that wait are started.

use alloc::borrow::ToOwned;
use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use crate::limits::{MAX_ACTIVE, MAX_CHAIN, MAX_DELAY_MS};
use crate::mistake::{Check, Mistakes};
use crate::time::{SECOND_MS, Span};

/// Who is let out, and how often one looks.
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(default, deny_unknown_fields))]
pub struct Promotion {
    /// Whether anybody is let out at all. Default on.
    pub enabled: bool,
    /// Time between two looks, in milliseconds. Default 5000.
    pub promote_interval_ms: u64,
    /// Who chooses, in order. Default: [`PromotionPolicy::Naive`] with one.
    pub policies: Vec<PromotionPolicy>,
}

/// One that chooses: each takes the candidates that the one before left, in their order.
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "kebab-case"))]
pub enum PromotionPolicy {
    /// The first so many.
    Naive {
        /// How many. Default 1.
        size: u32,
    },
    /// As many as fit until the threshold is reached. After that none, until the active orders
    /// are down to `resume_at`.
    ClosedLoop {
        /// As many active orders as there may be.
        threshold: u32,
        /// As few as there must be before it starts again.
        resume_at: u32,
    },
    /// Puts them into an order in which each account has its turn: those with fewer active
    /// orders first, and within an account the oldest. Chooses nobody by itself.
    FairShare,
    /// Whoever waited longer, whatever the others say, but not all at once.
    LongestWait {
        /// The longest wait, in milliseconds.
        most_ms: u64,
        /// How many in one look.
        size: u32,
    },
}

/// An order that waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Candidate<'a> {
    /// Its id, which decides between two of the same age.
    pub id: &'a str,
    /// Its account.
    pub account: &'a str,
    /// Since when it waits, in milliseconds since the epoch.
    pub since_ms: u64,
}

/// What is remembered from one look to the next.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct PromotionState {
    /// The closed loop has reached its threshold and waits for room.
    pub closed: bool,
}

/// What one policy did, for the log.
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Ruling {
    /// Which.
    pub policy: String,
    /// Candidates it left; `None` if it abstained.
    pub left: Option<u64>,
    /// Why, for a person.
    pub reason: String,
}

/// Who is started.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Promoted {
    /// Positions in the list of candidates, in the order in which to start them.
    pub chosen: Vec<usize>,
    /// What each policy did, in order.
    pub rulings: Vec<Ruling>,
}

impl Promotion {
    /// Chooses among those that wait.
    ///
    /// `active` says how many orders are active, of each account and altogether. Whoever is not
    /// chosen by any policy stays: if all of them abstain, nobody is released.
    pub fn promote(
        &self,
        state: PromotionState,
        candidates: &[Candidate<'_>],
        active_by_account: &BTreeMap<&str, u64>,
        active: u64,
        now_ms: u64,
    ) -> (PromotionState, Promoted) {
        let mut round = Round {
            candidates,
            now_ms,
            pool: (0..candidates.len()).collect(),
            forced: Vec::new(),
            limited: false,
            rulings: Vec::new(),
        };
        if !self.enabled {
            round.rule("promoter", None, "promotion is off".to_owned());
            return (state, round.end());
        }
        // The oldest first, whatever order the store gave.
        round
            .pool
            .sort_by_key(|index| (candidates[*index].since_ms, candidates[*index].id));
        let mut state = state;
        for policy in &self.policies {
            match *policy {
                PromotionPolicy::Naive { size: 0 } => {
                    round.rule("naive", None, "its size is zero".to_owned());
                }
                PromotionPolicy::Naive { size } => {
                    let reason = format!("at most {size} in one look");
                    round.limit("naive", size.into(), reason);
                }
                PromotionPolicy::ClosedLoop {
                    threshold,
                    resume_at,
                } => {
                    if active >= threshold.into() {
                        state.closed = true;
                    } else if active <= resume_at.into() {
                        state.closed = false;
                    }
                    let (room, reason) = if state.closed {
                        let reason =
                            format!("{active} active orders: none until {resume_at} are left");
                        (0, reason)
                    } else {
                        let room = u64::from(threshold).saturating_sub(active);
                        (
                            room,
                            format!("{active} active orders leave room for {room}"),
                        )
                    };
                    round.limit("closed-loop", room, reason);
                }
                PromotionPolicy::FairShare => round.take_turns(active_by_account),
                PromotionPolicy::LongestWait { most_ms, size } => {
                    round.force_oldest(most_ms, size);
                }
            }
        }
        (state, round.end())
    }

    /// Whether it ever releases anybody.
    pub(super) fn releases(&self) -> bool {
        self.enabled
            && self.policies.iter().any(|policy| match policy {
                PromotionPolicy::Naive { size } => *size > 0,
                PromotionPolicy::ClosedLoop { threshold, .. } => *threshold > 0,
                PromotionPolicy::FairShare => false,
                PromotionPolicy::LongestWait { size, .. } => *size > 0,
            })
    }
}

/// One look under way.
struct Round<'a> {
    candidates: &'a [Candidate<'a>],
    now_ms: u64,
    /// Positions of those still in play.
    pool: Vec<usize>,
    /// Those who are started whatever else is said.
    forced: Vec<usize>,
    /// Whether any policy has said how many.
    limited: bool,
    rulings: Vec<Ruling>,
}

impl Round<'_> {
    fn rule(&mut self, policy: &str, left: Option<usize>, reason: String) {
        self.rulings.push(Ruling {
            policy: policy.to_owned(),
            left: left.map(|left| left as u64),
            reason,
        });
    }

    fn limit(&mut self, policy: &str, most: u64, reason: String) {
        self.limited = true;
        self.pool
            .truncate(usize::try_from(most).unwrap_or(usize::MAX));
        self.rule(policy, Some(self.pool.len()), reason);
    }

    /// Each candidate's turn is the number of orders that its account has running or that stand
    /// before it in the same account.
    fn take_turns(&mut self, active_by_account: &BTreeMap<&str, u64>) {
        let mut taken: BTreeMap<&str, u64> = BTreeMap::new();
        let mut turns: Vec<(u64, usize)> = Vec::with_capacity(self.pool.len());
        for index in &self.pool {
            let account = self.candidates[*index].account;
            let turn = taken
                .entry(account)
                .or_insert_with(|| active_by_account.get(account).copied().unwrap_or(0));
            turns.push((*turn, *index));
            *turn = turn.saturating_add(1);
        }
        // Stable, so that age decides between accounts at the same turn.
        turns.sort_by_key(|(turn, _)| *turn);
        self.pool = turns.into_iter().map(|(_, index)| index).collect();
        let reason = format!("{} accounts take turns", taken.len());
        self.rule("fair-share", None, reason);
    }

    fn force_oldest(&mut self, most_ms: u64, size: u32) {
        let mut waiting: Vec<usize> = (0..self.candidates.len())
            .filter(|index| {
                let since_ms = self.candidates[*index].since_ms;
                self.now_ms.saturating_sub(since_ms) >= most_ms && !self.forced.contains(index)
            })
            .collect();
        waiting.sort_by_key(|index| (self.candidates[*index].since_ms, self.candidates[*index].id));
        let late = waiting.len();
        waiting.truncate(size as usize);
        let reason = format!(
            "{late} waited {} or longer, {} of them go",
            Span(most_ms),
            waiting.len()
        );
        self.forced.append(&mut waiting);
        self.rule("longest-wait", Some(self.forced.len()), reason);
    }

    fn end(self) -> Promoted {
        let mut chosen = self.forced;
        if self.limited {
            let forced = chosen.len();
            for index in self.pool {
                if !chosen[..forced].contains(&index) {
                    chosen.push(index);
                }
            }
        }
        Promoted {
            chosen,
            rulings: self.rulings,
        }
    }
}

impl Default for Promotion {
    fn default() -> Self {
        Self {
            enabled: true,
            promote_interval_ms: 5 * SECOND_MS,
            policies: Vec::from([PromotionPolicy::Naive { size: 1 }]),
        }
    }
}

impl Check for Promotion {
    fn check(&self, found: &mut Mistakes) {
        found.range(
            "promote_interval_ms",
            self.promote_interval_ms,
            100..=MAX_DELAY_MS,
            "ms",
        );
        found.list("policies", &self.policies, MAX_CHAIN);
    }
}

impl Check for PromotionPolicy {
    fn check(&self, found: &mut Mistakes) {
        let orders = 0..=u64::from(MAX_ACTIVE);
        match *self {
            Self::Naive { size } => {
                found.range("naive.size", size.into(), orders, "orders");
            }
            Self::ClosedLoop {
                threshold,
                resume_at,
            } => {
                found.range("closed-loop.threshold", threshold.into(), orders, "orders");
                if resume_at >= threshold {
                    found.report(
                        "closed-loop.resume_at",
                        crate::mistake::Problem::NotBelow {
                            given: resume_at.into(),
                            other: "threshold",
                            bound: threshold.into(),
                        },
                    );
                }
            }
            Self::FairShare => {}
            Self::LongestWait { most_ms, size } => {
                found.range("longest-wait.most_ms", most_ms, 1..=MAX_DELAY_MS, "ms");
                found.range(
                    "longest-wait.size",
                    size.into(),
                    1..=*orders.end(),
                    "orders",
                );
            }
        }
    }
}
