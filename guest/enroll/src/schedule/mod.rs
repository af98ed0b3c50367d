//! The tasks of orders, which several workers share through one store.
//!
//! [`claim`] takes what is due under leases, [`run`] does one task, [`renew`] prolongs, and
//! [`release`] hands back. A state and the task that follows it are one write, under the guard
//! of the lease: whoever sleeps through a lease finds every write refused.
//!
//! | timer | when it is set | when it rings |
//! |---|---|---|
//! | due of a task | with every change of its order | `claim` of any worker |
//! | lease | `claim`, `renew` | another worker may claim it |
//! | `next_look_ms` | each `claim` | the host calls `claim` again |

mod endpoint;
mod fence;
mod run;
pub(crate) mod task;

use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec;
use alloc::vec::Vec;

use abide_policy::mistake::Mistakes;
use abide_policy::order::OrderState;
use abide_policy::random::Octets;
use abide_policy::rate::RateLimit;
use abide_policy::retry::RetryPolicy;
use abide_policy::schedule::{Death, Look, Scheduler};
use abide_policy::shard::{Sharding, Standing, View};

pub use endpoint::{EndpointHealth, endpoints};
pub use run::{Ran, run};
use serde::Deserialize;
use task::{DEAD_LETTER, DeadLetter, TASK, TaskRecord, dead, kind_of};
pub use task::{Task, TaskKind};

use crate::host::{Change, Claim, Claimed, Entry, Event, Filter, Host, Lease, Level, StorageError};
use crate::limits;
use crate::orders::{self, OrderError};

/// The policies that a worker follows.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct Policies {
    /// Attempts of orders.
    pub retry: RetryPolicy,
    /// Workers and their tasks.
    pub scheduler: Scheduler,
    /// What is sent to each CMP endpoint.
    pub outgoing: RateLimit,
}

impl Policies {
    /// Reads them from JSON, in which other policies may stand beside them.
    pub fn from_json(text: &str) -> Result<Self, OrderError> {
        if text.len() > limits::POLICIES {
            return Err(OrderError::Invalid(format!(
                "the policies have {} octets, {} are allowed",
                text.len(),
                limits::POLICIES
            )));
        }
        let policies: Self = serde_json::from_str(text)
            .map_err(|error| OrderError::Invalid(format!("the policies: {error}")))?;
        let mut found = Mistakes::default();
        found.field("retry", &policies.retry);
        found.field("scheduler", &policies.scheduler);
        found.field("outgoing", &policies.outgoing);
        match found.first() {
            None => Ok(policies),
            Some(mistake) => Err(OrderError::Invalid(format!("the policies: {mistake}"))),
        }
    }
}

/// A task that this worker holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Work {
    /// Its order.
    pub order: String,
    /// The issuer of its order.
    pub issuer: String,
    /// The account of its order.
    pub account: String,
    /// What it does.
    pub kind: TaskKind,
    /// The fencing token.
    pub token: u64,
    /// When it was to be done.
    pub due_ms: u64,
    /// How often it failed for reasons of our own, or its worker never came back.
    pub retry_count: u32,
}

impl Work {
    pub(crate) fn lease(&self) -> Lease {
        Lease {
            kind: TASK.into(),
            id: self.order.clone(),
            token: self.token,
        }
    }
}

/// What came of a claim.
#[derive(Clone, Debug, Default)]
pub struct Batch {
    /// The longest due first.
    pub work: Vec<Work>,
    /// When to claim again.
    pub next_look_ms: u64,
    /// The orders whose tasks went to the dead letters.
    pub dead: Vec<String>,
    /// Tasks that were overdue when the worker started and are spread from now on.
    pub spread: u32,
    /// Accounts that are not this worker's and whose tasks were handed back, each with the time
    /// when it will be, if that is known.
    pub foreign: Vec<(String, Option<u64>)>,
}

/// Which accounts a worker serves.
#[derive(Clone, Debug)]
pub struct Share {
    policy: Sharding,
    view: View,
    /// Accounts that were found to be others'.
    excluded: Vec<String>,
}

impl Share {
    /// From the policy and the view as the host keeps them.
    pub fn from_json(text: &str, excluded: Vec<String>) -> Result<Self, OrderError> {
        if text.len() > limits::VIEW {
            return Err(OrderError::Invalid(format!(
                "the view has {} octets, {} are allowed",
                text.len(),
                limits::VIEW
            )));
        }
        let (policy, view) = serde_json::from_str(text)
            .map_err(|error| OrderError::Invalid(format!("the view: {error}")))?;
        Ok(Self {
            policy,
            view,
            excluded,
        })
    }

    /// None when the account is this worker's; else when it will be, if that is known.
    fn foreign(&self, worker: &str, account: &str, now_ms: u64) -> Option<Option<u64>> {
        match self.view.standing(&self.policy, worker, account, now_ms) {
            Ok(Standing::Owner) => None,
            Ok(Standing::Waiting(until_ms)) => Some(Some(until_ms)),
            // A view that says nothing is one to act on nothing by.
            Ok(Standing::NotOwner) | Err(_) => Some(None),
        }
    }
}

/// Claims what is due, `free` tasks at most.
///
/// What was due before this worker started at `started_ms` is overdue because nobody was there:
/// it is spread, so that a fleet that comes back does not ask for everything at once. With a share
/// tasks of accounts that are others' are handed back before anything is done about them.
pub fn claim(
    host: &dyn Host,
    worker: &str,
    free: u32,
    started_ms: u64,
    policies: &Policies,
    share: Option<&Share>,
) -> Result<Batch, OrderError> {
    if worker.is_empty() || worker.len() > limits::WORKER {
        return Err(OrderError::Invalid(format!(
            "the name of a worker has 1 to {} octets",
            limits::WORKER
        )));
    }
    let now_ms = host.now_ms();
    let scheduler = &policies.scheduler;
    let asked = scheduler.ask(free);
    let mut batch = Batch::default();
    let mut excluded = share.map_or_else(Vec::new, |share| share.excluded.clone());
    let mut rounds = 0;
    let (claimed, mine, next_due_ms) = loop {
        let claims = host.claim_due(Claim {
            kind: TASK.into(),
            holder: worker.into(),
            now_ms,
            until_ms: now_ms.saturating_add(scheduler.lease_ms()),
            limit: asked,
            excluded: excluded.clone(),
        })?;
        let claimed = u32::try_from(claims.claimed.len()).unwrap_or(u32::MAX);
        let next_due_ms = claims.next_due_ms;
        let Some(share) = share else {
            break (claimed, claims.claimed, next_due_ms);
        };
        let known = batch.foreign.len();
        let mine = only_mine(host, worker, share, claims.claimed, &mut batch, now_ms)?;
        excluded.extend(
            batch.foreign[known..]
                .iter()
                .map(|(account, _)| account.clone()),
        );
        rounds += 1;
        let is_fruitless = claimed > 0 && mine.is_empty() && batch.foreign.len() > known;
        if !is_fruitless || rounds == limits::SHARD_ROUNDS {
            break (claimed, mine, next_due_ms);
        }
    };
    let mut overdue = Vec::new();
    for claimed in mine {
        match TaskRecord::read(&claimed.entry) {
            Err(error) => {
                bury(host, &claimed.entry, claimed.token, error.0)?;
                batch.dead.push(claimed.entry.envelope.id);
            }
            Ok(mut task) => {
                task.retry_count = task.retry_count.saturating_add(claimed.lost);
                let due_ms = claimed.entry.envelope.due_ms.unwrap_or(now_ms);
                if claimed.lost > 0 && task.retry_count > scheduler.retries {
                    let why = Death::WorkerLost(task.retry_count).to_string();
                    bury(host, &claimed.entry, claimed.token, why)?;
                    batch.dead.push(claimed.entry.envelope.id);
                } else if due_ms < started_ms {
                    overdue.push((claimed, task));
                } else {
                    batch.work.push(Work {
                        order: claimed.entry.envelope.id,
                        issuer: task.issuer,
                        account: claimed.entry.envelope.account,
                        kind: task.kind,
                        token: claimed.token,
                        due_ms,
                        retry_count: task.retry_count,
                    });
                }
            }
        }
    }
    if !overdue.is_empty() {
        batch.spread = spread(host, overdue, &policies.retry, now_ms)?;
    }
    let look = scheduler.next_look(claimed, asked, next_due_ms, now_ms, octets(host));
    batch.next_look_ms = match look {
        Look::AtOnce => now_ms,
        Look::At(at_ms) => at_ms,
    };
    Ok(batch)
}

/// Those of this worker's accounts; the rest is handed back, and its accounts are told.
fn only_mine(
    host: &dyn Host,
    worker: &str,
    share: &Share,
    claimed: Vec<Claimed>,
    batch: &mut Batch,
    now_ms: u64,
) -> Result<Vec<Claimed>, OrderError> {
    let mut known: BTreeMap<String, bool> = BTreeMap::new();
    let mut mine = Vec::with_capacity(claimed.len());
    let mut leases = Vec::new();
    for claimed in claimed {
        let envelope = &claimed.entry.envelope;
        let is_mine = match known.get(&envelope.account) {
            Some(is_mine) => *is_mine,
            None => {
                let foreign = share.foreign(worker, &envelope.account, now_ms);
                if let Some(until_ms) = foreign {
                    batch.foreign.push((envelope.account.clone(), until_ms));
                }
                known.insert(envelope.account.clone(), foreign.is_none());
                foreign.is_none()
            }
        };
        if is_mine {
            mine.push(claimed);
        } else {
            leases.push(Lease {
                kind: TASK.into(),
                id: envelope.id.clone(),
                token: claimed.token,
            });
        }
    }
    if !leases.is_empty() {
        host.release(leases)?;
    }
    Ok(mine)
}

/// Prolongs leases. Returns the work whose lease is lost.
pub fn renew(
    host: &dyn Host,
    work: Vec<Work>,
    scheduler: &Scheduler,
) -> Result<Vec<Work>, OrderError> {
    let until_ms = host.now_ms().saturating_add(scheduler.lease_ms());
    let lost = host.renew(work.iter().map(Work::lease).collect(), until_ms)?;
    Ok(work
        .into_iter()
        .filter(|work| lost.contains(&work.lease()))
        .collect())
}

/// Hands tasks back as they were.
pub fn release(host: &dyn Host, work: &[Work]) -> Result<(), OrderError> {
    Ok(host.release(work.iter().map(Work::lease).collect())?)
}

/// Tasks, or dead letters, in the order of their orders' ids, and where the next ones begin.
pub fn tasks(
    host: &dyn Host,
    dead: bool,
    cursor: Option<&str>,
    limit: u32,
) -> Result<(Vec<Task>, Option<String>), OrderError> {
    let filter = Filter {
        kind: if dead { DEAD_LETTER } else { TASK }.into(),
        ..Filter::default()
    };
    let page = host.list(filter, cursor, limit.clamp(1, limits::PAGE))?;
    Ok((page.entries.into_iter().map(Task::of).collect(), page.next))
}

/// A dead letter becomes a task again, due at once and with a clean count. One that could not
/// be read becomes one that goes on with whatever its order was about.
pub fn replay(host: &dyn Host, order: &str) -> Result<Task, OrderError> {
    let entry = host.load(DEAD_LETTER, order)?.ok_or(OrderError::NotFound)?;
    let (standing, _) = orders::load(host, order)?;
    let letter = DeadLetter::read(&entry)?;
    let kind = match letter.task(&entry) {
        Ok(task) => task.kind,
        Err(_) => kind_of(&entry.envelope.state),
    };
    let now_ms = host.now_ms();
    let task = TaskRecord::new(kind, &standing.wish.issuer);
    host.commit(vec![
        task.put(&standing, now_ms, None, now_ms),
        orders::delete(DEAD_LETTER, order, entry.version),
    ])?;
    let entry = host.load(TASK, order)?.ok_or(OrderError::NotFound)?;
    Ok(Task::of(entry))
}

/// Eight random octets, for one choice.
fn octets(host: &dyn Host) -> Octets {
    let mut octets = Octets::default();
    let random = host.random(octets.len());
    for (octet, random) in octets.iter_mut().zip(random) {
        *octet = random;
    }
    octets
}

/// Moves overdue tasks into the future, one more than the other.
fn spread(
    host: &dyn Host,
    overdue: Vec<(Claimed, TaskRecord)>,
    policy: &RetryPolicy,
    now_ms: u64,
) -> Result<u32, OrderError> {
    let (_, waiting) = host.count(TASK, now_ms, limits::OVERDUE)?;
    let all = u64::from(waiting) + overdue.len() as u64;
    let mut moved = 0;
    for some in overdue.chunks(limits::SPREAD) {
        moved += spread_together(host, some, policy, all, now_ms)?;
    }
    Ok(moved)
}

/// Moves some of them in one commit.
fn spread_together(
    host: &dyn Host,
    overdue: &[(Claimed, TaskRecord)],
    policy: &RetryPolicy,
    all: u64,
    now_ms: u64,
) -> Result<u32, OrderError> {
    let mut changes = Vec::with_capacity(overdue.len() * 2);
    let mut leases = Vec::with_capacity(overdue.len());
    for (claimed, task) in overdue {
        let envelope = &claimed.entry.envelope;
        let due_ms = policy.restart.over(all, now_ms, octets(host));
        let lease = Lease {
            kind: TASK.into(),
            id: envelope.id.clone(),
            token: claimed.token,
        };
        leases.push(lease.clone());
        changes.push(Change::Guard(lease));
        changes.push(task.put_for(
            &envelope.id,
            &envelope.account,
            due_ms,
            Some(claimed.entry.version),
            now_ms,
        ));
    }
    match host.commit(changes) {
        Ok(_) => Ok(leases.len() as u32),
        // Somebody changed one of them meanwhile: all of them are due again at once.
        Err(StorageError::Conflict(_) | StorageError::Fenced(_)) => {
            host.release(leases)?;
            Ok(0)
        }
        Err(error) => Err(error.into()),
    }
}

/// A task goes to the dead letters; its order tells why, if it can be read.
fn bury(host: &dyn Host, entry: &Entry, token: u64, why: String) -> Result<(), OrderError> {
    let now_ms = host.now_ms();
    let id = &entry.envelope.id;
    let before = host.load(DEAD_LETTER, id)?.map(|dead| dead.version);
    let mut changes = vec![
        Change::Guard(Lease {
            kind: TASK.into(),
            id: id.clone(),
            token,
        }),
        orders::delete(TASK, id, entry.version),
        dead(entry, why.clone()).put(&entry.envelope, before, now_ms),
    ];
    if let Ok((mut order, version)) = orders::load(host, id)
        && order.state() != OrderState::Canceled
    {
        let reason = format!("its task is a dead letter: {why}");
        order.set_state(OrderState::Error, reason.clone());
        order.note(now_ms, reason);
        changes.push(order.put(Some(version), now_ms));
    }
    match host.commit(changes) {
        Ok(_) => {}
        // Whoever was faster holds the task or changed the order; it is claimed again.
        Err(StorageError::Conflict(_) | StorageError::Fenced(_)) => return Ok(()),
        Err(error) => return Err(error.into()),
    }
    host.emit(Event {
        level: Level::Error,
        name: "task-dead",
        text: format!("the task of the order {id} is a dead letter: {why}; replay it when mended"),
        transaction_id: String::new(),
    });
    Ok(())
}
