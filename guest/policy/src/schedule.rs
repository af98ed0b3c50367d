//! The arithmetic of a scheduler that several workers share: when to look, what to claim, under
//! which lease, and when a task has failed too often.
//!
//! A task is claimed under a lease with a fencing token. Each claim of a task gets a token that
//! is greater than every one before, and every write for the task carries its token: a worker
//! that slept through its lease finds its writes refused once another has claimed the task. The
//! lease only says when that may happen; the token is what makes it safe.

use core::fmt;

use crate::limits::{MAX_BATCH, MAX_DELAY_MS, MAX_DITHER_PERCENT, MAX_RETRIES};
use crate::mistake::{Check, Mistakes};
use crate::random::{self, Octets};
use crate::strategy::{Growth, Jitter, Strategy};
use crate::time::{HOUR_MS, SECOND_MS};

/// How workers look for tasks that are due.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(default, deny_unknown_fields))]
pub struct Scheduler {
    /// Time between two looks, in seconds. Default 15 (Barbican's scheduler).
    pub schedule_period_seconds: u64,
    /// How far chance moves the next look, in percent to each side, so that workers do not meet.
    /// Default 20.
    pub dither_percent: u32,
    /// How long a claim holds unless it is renewed, in seconds. Default 60.
    pub retry_lock_timeout_seconds: u64,
    /// Tasks in one claim. Default 100.
    pub batch: u32,
    /// How often a task may fail before it becomes a dead letter. Default 10.
    pub retries: u32,
    /// The wait after a task failed for a reason of our own, such as a store that was away.
    /// Default 15 s, doubling, at most an hour, ± 20 %. It has nothing to do with the backoff
    /// of an order, whose failures are no failures of its task.
    pub retry: Strategy,
}

/// A claim on a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Lease {
    /// Greater with every claim of the task.
    pub token: u64,
    /// When another worker may claim it, in milliseconds since the epoch.
    pub until_ms: u64,
}

/// What a task carries from claim to claim.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct TaskState {
    /// Not before this time, in milliseconds since the epoch.
    pub retry_at_ms: u64,
    /// How often it failed or its worker never came back.
    pub retry_count: u32,
    /// The claim that holds or held, if it was ever claimed and neither finished nor released.
    pub lease: Option<Lease>,
    /// The greatest token it was ever claimed with.
    pub last_token: u64,
}

/// Whether a task may be claimed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Claim {
    /// It is yours under this lease.
    Yours(Lease),
    /// It is not due before this time.
    NotDue(u64),
    /// Another worker holds it until this time.
    Held(u64),
    /// It failed too often: it belongs among the dead letters.
    Dead(Death),
}

/// Why a task is a dead letter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "kebab-case"))]
pub enum Death {
    /// It failed so many times.
    Failed(u32),
    /// It failed so many times, the last time without a word: its worker never came back.
    WorkerLost(u32),
    /// Its tokens are used up, which takes 2⁶⁴ claims or a broken store.
    TokensUsedUp,
}

/// What becomes of a task that failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    /// It is tried again at its new `retry_at_ms`.
    Again,
    /// It belongs among the dead letters, from where it can be replayed.
    Dead(Death),
}

/// A write under a token that is no longer the task's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fenced {
    /// The token of the write.
    pub given: u64,
    /// The task's token, if somebody holds it.
    pub held: Option<u64>,
}

/// What to do after a claim.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Look {
    /// Look again at once: there was more than fitted into the batch.
    AtOnce,
    /// Look again at this time, in milliseconds since the epoch.
    At(u64),
}

impl Scheduler {
    /// When to look again after a claim of `claimed` tasks that could have been `asked`.
    ///
    /// A full batch is followed by the next one at once, so that many due tasks do not take as
    /// many periods. Otherwise the period, dithered to both sides, or earlier if a task is due
    /// earlier: `next_due_ms` is the earliest `retry_at_ms` of those that nobody holds.
    pub fn next_look(
        &self,
        claimed: u32,
        asked: u32,
        next_due_ms: Option<u64>,
        now_ms: u64,
        random: Octets,
    ) -> Look {
        if asked > 0 && claimed >= asked {
            return Look::AtOnce;
        }
        let period = self.period_ms();
        let dither = period * u64::from(self.dither_percent.min(MAX_DITHER_PERCENT)) / 100;
        let wait = random::between(random, period - dither, period + dither);
        let regular = now_ms.saturating_add(wait.max(1));
        // What is due already is not claimable for a reason that a busy loop would not mend.
        match next_due_ms {
            Some(due) if due > now_ms => Look::At(regular.min(due)),
            _ => Look::At(regular),
        }
    }

    /// How many tasks to ask for, with so many places free.
    pub fn ask(&self, free: u32) -> u32 {
        self.batch.clamp(1, MAX_BATCH).min(free)
    }

    /// Claims a task at `now_ms`.
    ///
    /// A lease that ran out means that its worker never came back, which counts as a failure: a
    /// task that kills its worker would otherwise go on killing for ever.
    pub fn claim(&self, task: TaskState, now_ms: u64) -> (TaskState, Claim) {
        if let Some(lease) = task.lease
            && self.holds(lease, now_ms)
        {
            return (task, Claim::Held(lease.until_ms));
        }
        if task.retry_at_ms > now_ms {
            return (task, Claim::NotDue(task.retry_at_ms));
        }
        let lost = task.lease.is_some();
        let retry_count = task.retry_count.saturating_add(lost.into());
        let task = TaskState {
            retry_count,
            lease: None,
            ..task
        };
        if lost && retry_count > self.retries {
            return (task, Claim::Dead(Death::WorkerLost(retry_count)));
        }
        let Some(token) = task.last_token.checked_add(1) else {
            return (task, Claim::Dead(Death::TokensUsedUp));
        };
        let lease = Lease {
            token,
            until_ms: now_ms.saturating_add(self.lease_ms()),
        };
        let task = TaskState {
            lease: Some(lease),
            last_token: token,
            ..task
        };
        (task, Claim::Yours(lease))
    }

    /// Prolongs a lease, also one that ran out if nobody else has claimed the task since.
    pub fn renew(&self, task: TaskState, token: u64, now_ms: u64) -> Result<TaskState, Fenced> {
        task.check(token)?;
        let lease = Lease {
            token,
            until_ms: now_ms.saturating_add(self.lease_ms()),
        };
        Ok(TaskState {
            lease: Some(lease),
            ..task
        })
    }

    /// Hands a task back as it was, when a worker stops in good order.
    pub fn release(&self, task: TaskState, token: u64) -> Result<TaskState, Fenced> {
        task.check(token)?;
        Ok(TaskState {
            lease: None,
            ..task
        })
    }

    /// A task failed for a reason of our own: again later, or never.
    pub fn failed(
        &self,
        task: TaskState,
        token: u64,
        now_ms: u64,
        random: Octets,
    ) -> Result<(TaskState, Fate), Fenced> {
        task.check(token)?;
        let retry_count = task.retry_count.saturating_add(1);
        let wait = self.retry.delay(Some(retry_count.into()), None, random);
        let task = TaskState {
            retry_at_ms: now_ms.saturating_add(wait),
            retry_count,
            lease: None,
            ..task
        };
        let fate = if retry_count > self.retries {
            Fate::Dead(Death::Failed(retry_count))
        } else {
            Fate::Again
        };
        Ok((task, fate))
    }

    /// A dead letter is tried again, with a clean count. Its tokens go on, so that whoever held
    /// it before it died stays fenced out.
    pub fn replay(&self, task: TaskState, now_ms: u64) -> TaskState {
        TaskState {
            retry_at_ms: now_ms,
            retry_count: 0,
            lease: None,
            ..task
        }
    }

    /// Whether a lease keeps others away.
    ///
    /// One that reaches further than two whole leases into the future was made by a clock that
    /// has been set back since; it counts as run out, because the token keeps its holder from
    /// writing. One lease more than the own is left for workers whose clocks differ.
    fn holds(&self, lease: Lease, now_ms: u64) -> bool {
        let latest = now_ms.saturating_add(self.lease_ms().saturating_mul(2));
        now_ms < lease.until_ms && lease.until_ms <= latest
    }

    fn period_ms(&self) -> u64 {
        self.schedule_period_seconds
            .saturating_mul(SECOND_MS)
            .clamp(1, MAX_DELAY_MS)
    }

    /// How long a claim holds, in milliseconds.
    pub fn lease_ms(&self) -> u64 {
        self.retry_lock_timeout_seconds
            .saturating_mul(SECOND_MS)
            .clamp(1, MAX_DELAY_MS)
    }
}

impl TaskState {
    /// A task that was never claimed.
    pub fn at(retry_at_ms: u64) -> Self {
        Self {
            retry_at_ms,
            ..Self::default()
        }
    }

    /// The task is done, and its order goes on with a task of the same kind at `retry_at_ms`: a
    /// clean count, and tokens that go on.
    pub fn followed_by(self, token: u64, retry_at_ms: u64) -> Result<Self, Fenced> {
        self.check(token)?;
        Ok(Self {
            retry_at_ms,
            last_token: self.last_token,
            ..Self::default()
        })
    }

    /// Whether a write under this token is the holder's. It is refused if another worker claimed
    /// the task since, or if the task was released or has died. A lease that ran out unnoticed
    /// harms nothing.
    pub fn check(&self, token: u64) -> Result<(), Fenced> {
        let held = self.lease.map(|lease| lease.token);
        if held == Some(token) {
            Ok(())
        } else {
            Err(Fenced { given: token, held })
        }
    }
}

impl fmt::Display for Fenced {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let given = self.given;
        match self.held {
            Some(held) => write!(
                f,
                "another worker holds the task with token {held}: nothing is written under \
                 token {given}"
            ),
            None => write!(
                f,
                "nobody holds the task any longer: nothing is written under token {given}"
            ),
        }
    }
}

impl core::error::Error for Fenced {}

impl fmt::Display for Death {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Failed(times) => write!(f, "it failed {times} times"),
            Self::WorkerLost(times) => write!(
                f,
                "it failed {times} times, the last time its worker never came back"
            ),
            Self::TokensUsedUp => write!(f, "its fencing tokens are used up"),
        }
    }
}

impl Default for Scheduler {
    fn default() -> Self {
        Self {
            schedule_period_seconds: 15,
            dither_percent: 20,
            retry_lock_timeout_seconds: 60,
            batch: 100,
            retries: 10,
            retry: Strategy {
                base_ms: 15 * SECOND_MS,
                growth: Growth::Exponential {
                    factor_percent: 200,
                },
                cap_ms: HOUR_MS,
                jitter: Jitter::Percent(20),
            },
        }
    }
}

impl Check for Scheduler {
    fn check(&self, found: &mut Mistakes) {
        let day = 24 * HOUR_MS / SECOND_MS;
        found.range(
            "schedule_period_seconds",
            self.schedule_period_seconds,
            1..=day,
            "s",
        );
        found.range(
            "dither_percent",
            self.dither_percent.into(),
            0..=u64::from(MAX_DITHER_PERCENT),
            "percent",
        );
        found.range(
            "retry_lock_timeout_seconds",
            self.retry_lock_timeout_seconds,
            1..=day,
            "s",
        );
        found.range(
            "batch",
            self.batch.into(),
            1..=u64::from(MAX_BATCH),
            "tasks",
        );
        found.range(
            "retries",
            self.retries.into(),
            1..=u64::from(MAX_RETRIES),
            "retries",
        );
        found.field("retry", &self.retry);
    }
}
