//! Orders that nobody works on any more, and how they are brought back.
//!
//! A zombie needs a task and has neither a task nor a live lease, for longer than a cutoff. Since
//! a change of state and the next task are one write, there should be none; a store restored from
//! an old backup, or a fault of ours, makes them all the same.
//!
//! Hydrating gives a zombie the task that its stored position asks for. It never enrolls anew: a
//! request that was sent without an answer goes on under its own transactionID.

use alloc::borrow::ToOwned;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

use crate::limits::MAX_DELAY_MS;
use crate::mistake::{Check, Mistakes};
use crate::order::OrderState;
use crate::time::{MINUTE_MS, Span, Utc};

/// The configuration of the search, Spinnaker's `zombieCheck`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(default, deny_unknown_fields))]
pub struct ZombieCheck {
    /// Whether they are searched for. Default on: here it is cheap.
    pub enabled: bool,
    /// Time without progress after which an order counts as one, in milliseconds. Default
    /// 10 min, as Spinnaker's runbook has it.
    pub cutoff_ms: u64,
}

/// What is known about an order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Suspect {
    /// Its state.
    pub state: OrderState,
    /// When anything about it was stored last, in milliseconds since the epoch. Not when it was
    /// made: an old order may be well.
    pub last_progress_ms: u64,
    /// Whether it has a task, whenever that is due. A long quiet wait is no fault.
    pub has_task: bool,
    /// Until when a worker holds it.
    pub leased_until_ms: Option<u64>,
    /// Whether a renewal or another attempt is to come at a stored time.
    pub is_awaited: bool,
    /// Whether a promoter looks after buffered orders.
    pub is_promoted: bool,
}

/// How an order is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Health {
    /// It needs no task.
    AtRest,
    /// It has one.
    HasTask,
    /// A worker holds it until this time.
    Held(u64),
    /// It has none, but only since a moment, in milliseconds.
    Young(u64),
    /// It is a zombie; so long it had no progress, in milliseconds.
    Zombie(u64),
}

/// The log line about a zombie.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Found<'a> {
    /// The order's id.
    pub id: &'a str,
    /// Its account.
    pub account: &'a str,
    /// Its application.
    pub application: &'a str,
    /// Its state.
    pub state: OrderState,
    /// So long it had no progress, in milliseconds.
    pub age_ms: u64,
}

/// Where an order stands, as far as it is stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Position<'a> {
    /// No transaction was begun.
    NotBegun,
    /// A request is stored, and may have been sent; there is no answer.
    Enrolling {
        /// Its transactionID in hexadecimal.
        transaction_id: &'a str,
    },
    /// The CA was asked to be polled.
    Polling {
        /// Its transactionID in hexadecimal.
        transaction_id: &'a str,
        /// The time that it named, in milliseconds since the epoch.
        poll_at_ms: u64,
    },
    /// A chain is stored and not yet confirmed.
    Confirming {
        /// Its transactionID in hexadecimal.
        transaction_id: &'a str,
    },
    /// A transaction has ended, and the order does not know yet.
    Ended {
        /// Its transactionID in hexadecimal.
        transaction_id: &'a str,
    },
    /// The order waits for a renewal or another attempt.
    Awaiting {
        /// When, in milliseconds since the epoch.
        at_ms: u64,
    },
    /// Its task failed too often, and was put aside.
    Dead {
        /// Why.
        reason: &'a str,
    },
    /// What is stored cannot be read.
    Unreadable,
}

/// What a task does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "kebab-case"))]
pub enum TaskKind {
    /// Begins a transaction.
    Start,
    /// Sends the stored request again.
    Resume,
    /// Sends pollReq.
    Poll,
    /// Sends certConf.
    Confirm,
    /// Looks what became of a transaction and tells the order.
    Check,
}

/// What hydrating would do, or why it cannot.
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Action {
    /// In one line.
    pub description: String,
    /// The task that it makes; none if it cannot be done.
    pub message: Option<Message>,
    /// What it rests on: names and values.
    pub context: Vec<(String, String)>,
}

/// A task to be made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Message {
    /// What it does.
    pub kind: TaskKind,
    /// When it is due, in milliseconds since the epoch.
    pub retry_at_ms: u64,
}

/// How somebody asks for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Request {
    /// Only say what would be done. Default.
    pub dry_run: bool,
    /// Also for an order that seems alive.
    pub force: bool,
}

/// Why an order is left alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "kebab-case"))]
pub enum Refusal {
    /// It needs no task.
    AtRest,
    /// It has a task, a worker, or had progress just now: force it if you know better.
    Alive,
}

/// What hydrating one order does.
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Hydration {
    /// Whether it was only asked what would be done.
    pub dry_run: bool,
    /// What there is to do, one for each part of the order.
    pub actions: Vec<Action>,
    /// Whether all of it can be done. One part that cannot leaves the whole order as it is.
    pub can_apply: bool,
    /// Why the order is left alone, if it is.
    pub refused: Option<Refusal>,
}

impl ZombieCheck {
    /// How an order is at `now_ms`.
    pub fn judge(&self, order: &Suspect, now_ms: u64) -> Health {
        if !order.state.needs_task(order.is_awaited, order.is_promoted) {
            return Health::AtRest;
        }
        if order.has_task {
            return Health::HasTask;
        }
        if let Some(until) = order.leased_until_ms.filter(|until| *until > now_ms) {
            return Health::Held(until);
        }
        // A clock that was set back makes it younger, never older.
        let age_ms = now_ms.saturating_sub(order.last_progress_ms);
        if age_ms < self.cutoff_ms {
            Health::Young(age_ms)
        } else {
            Health::Zombie(age_ms)
        }
    }

    /// What hydrating an order at these positions does. Give one for each part of the order that
    /// is not finished.
    ///
    /// The caller stores the tasks only if [`Hydration::applies`], in the same write in which it
    /// sees again that there are none: asking twice makes one task, because the order has one
    /// the second time, and is alive.
    pub fn hydrate(
        &self,
        order: &Suspect,
        positions: &[Position<'_>],
        request: Request,
        now_ms: u64,
    ) -> Hydration {
        let refused = match self.judge(order, now_ms) {
            Health::AtRest => Some(Refusal::AtRest),
            Health::HasTask | Health::Held(_) | Health::Young(_) => {
                (!request.force).then_some(Refusal::Alive)
            }
            Health::Zombie(_) => None,
        };
        let actions: Vec<Action> = if refused.is_none() {
            positions
                .iter()
                .map(|position| position.action(now_ms))
                .collect()
        } else {
            Vec::new()
        };
        let can_apply =
            !actions.is_empty() && actions.iter().all(|action| action.message.is_some());
        Hydration {
            dry_run: request.dry_run,
            actions,
            can_apply,
            refused,
        }
    }
}

impl Hydration {
    /// Whether the tasks are to be stored now.
    pub fn applies(&self) -> bool {
        !self.dry_run && self.can_apply && self.refused.is_none()
    }
}

/// Whether an order that was made at `made_ms` falls into a range; both ends belong to it.
pub fn in_range(made_ms: u64, from_ms: u64, to_ms: u64) -> bool {
    (from_ms..=to_ms).contains(&made_ms)
}

impl Position<'_> {
    fn action(&self, now_ms: u64) -> Action {
        let named = |id: &str| Vec::from([("transactionID".to_owned(), id.to_owned())]);
        let (description, kind, retry_at_ms, context) = match *self {
            Self::NotBegun => (
                "No transaction was begun: begin one",
                TaskKind::Start,
                now_ms,
                Vec::new(),
            ),
            Self::Enrolling { transaction_id } => (
                "The request has no answer: send it again under its own transactionID",
                TaskKind::Resume,
                now_ms,
                named(transaction_id),
            ),
            Self::Polling {
                transaction_id,
                poll_at_ms,
            } => {
                let mut context = named(transaction_id);
                context.push(("pollAt".to_owned(), format!("{}", Utc(poll_at_ms))));
                (
                    "The CA asked to be polled: poll it",
                    TaskKind::Poll,
                    poll_at_ms.max(now_ms),
                    context,
                )
            }
            Self::Confirming { transaction_id } => (
                "The chain is stored and not confirmed: confirm it",
                TaskKind::Confirm,
                now_ms,
                named(transaction_id),
            ),
            Self::Ended { transaction_id } => (
                "The transaction has ended: tell the order",
                TaskKind::Check,
                now_ms,
                named(transaction_id),
            ),
            Self::Awaiting { at_ms } => (
                "The next attempt has a time and no task: give it one",
                TaskKind::Start,
                at_ms.max(now_ms),
                Vec::from([("nextAttemptAt".to_owned(), format!("{}", Utc(at_ms)))]),
            ),
            Self::Dead { reason } => {
                let description = "Its task is a dead letter: mend the cause and replay that";
                return Action {
                    description: description.to_owned(),
                    message: None,
                    context: Vec::from([("deadLetter".to_owned(), reason.to_owned())]),
                };
            }
            Self::Unreadable => {
                let description = "What is stored cannot be read: it can only be canceled, or \
                                   read by the version of abide that wrote it";
                return Action {
                    description: description.to_owned(),
                    message: None,
                    context: Vec::new(),
                };
            }
        };
        Action {
            description: description.to_owned(),
            message: Some(Message { kind, retry_at_ms }),
            context,
        }
    }
}

impl Default for Request {
    fn default() -> Self {
        Self {
            dry_run: true,
            force: false,
        }
    }
}

impl fmt::Display for Found<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "Found zombie id={} account={} application={} state={}: no task and no progress for {}",
            self.id,
            self.account,
            self.application,
            self.state,
            Span(self.age_ms)
        )
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::AtRest => "the order needs no task",
            Self::Alive => {
                "the order has a task, a worker or recent progress: nothing is done unless forced"
            }
        })
    }
}

impl Default for ZombieCheck {
    fn default() -> Self {
        Self {
            enabled: true,
            cutoff_ms: 10 * MINUTE_MS,
        }
    }
}

impl Check for ZombieCheck {
    fn check(&self, found: &mut Mistakes) {
        found.range("cutoff_ms", self.cutoff_ms, 1000..=MAX_DELAY_MS, "ms");
    }
}
