//! Orders that nobody works on any more: found, brought back, or ended by force.
//!
//! What counts as one, and what brings it back, is decided by [`abide_policy::zombie`]; here it
//! is read from the store and written to it. An order and its task change in one commit, so that
//! asking twice runs once.

use alloc::collections::BTreeSet;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec;
use alloc::vec::Vec;

use abide_policy::mistake::Mistakes;
use abide_policy::order::OrderState;
use abide_policy::zombie::{
    self, Found, Health, Hydration, Position, Suspect, TaskKind as Deed, ZombieCheck,
};
use serde::Deserialize;

use crate::driver::{self, Error, Outcome, Progress};
use crate::host::{Change, Entry, Filter, Host, Lease, Level};
use crate::limits;
use crate::orders::{self, Order, OrderError, STANDING_ORDER};
use crate::record::Phase;
use crate::schedule::task::{DEAD_LETTER, DeadLetter, TASK, TaskKind, TaskRecord};

/// What the search needs of the policies of a service.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct Search {
    /// What counts as a zombie.
    pub zombie_check: ZombieCheck,
    /// Whether buffered orders are looked after.
    qos: Qos,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
struct Qos {
    promotion: Promotion,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(default)]
struct Promotion {
    enabled: bool,
}

impl Default for Promotion {
    fn default() -> Self {
        let enabled = abide_policy::qos::Promotion::default().enabled;
        Self { enabled }
    }
}

impl Search {
    /// Reads it from the JSON of all policies.
    pub fn from_json(text: &str) -> Result<Self, OrderError> {
        if text.len() > limits::POLICIES {
            return Err(OrderError::Invalid(format!(
                "the policies have {} octets, {} are allowed",
                text.len(),
                limits::POLICIES
            )));
        }
        let search: Self = serde_json::from_str(text)
            .map_err(|error| OrderError::Invalid(format!("the policies: {error}")))?;
        let mut found = Mistakes::default();
        found.field("zombie_check", &search.zombie_check);
        match found.first() {
            None => Ok(search),
            Some(mistake) => Err(OrderError::Invalid(format!("the policies: {mistake}"))),
        }
    }
}

/// An order that needs a task and has none, for longer than the cutoff.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Zombie {
    /// The order's id.
    pub order: String,
    /// Its account.
    pub account: String,
    /// Its application; empty when the order cannot be read.
    pub application: String,
    /// Its state.
    pub state: OrderState,
    /// One line: why it stands where it stands.
    pub reason: String,
    /// When it was accepted; when it changed last, if it cannot be read.
    pub created_ms: u64,
    /// When anything about it was stored last.
    pub last_progress_ms: u64,
    /// So long ago that is, in milliseconds.
    pub age_ms: u64,
}

/// A range of times at which orders were accepted; both ends belong to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// Milliseconds since the Unix epoch.
    pub from_ms: u64,
    /// Milliseconds since the Unix epoch.
    pub to_ms: u64,
}

/// What hydrating an order came to, or would.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hydrated {
    /// The order's id.
    pub order: String,
    /// Its account.
    pub account: String,
    /// Its application.
    pub application: String,
    /// Its issuer.
    pub issuer: String,
    /// When it was accepted.
    pub created_ms: u64,
    /// What is to be done, and whether it can be.
    pub plan: Hydration,
    /// Whether it was done just now.
    pub applied: bool,
}

/// How hydrating is asked for.
#[derive(Clone, Debug)]
pub struct Wanted<'w> {
    /// Only say what would be done.
    pub dry_run: bool,
    /// Also for an order that seems alive.
    pub force: bool,
    /// Who asks; for the history.
    pub by: &'w str,
}

/// Zombies among the next `limit` orders after `cursor`, in the order of their ids, and where the
/// next ones begin. A page without zombies may have others behind it.
pub fn find(
    host: &dyn Host,
    search: &Search,
    accepted: Option<Span>,
    cursor: Option<&str>,
    limit: u32,
) -> Result<(Vec<Zombie>, Option<String>), OrderError> {
    let filter = Filter {
        kind: STANDING_ORDER.into(),
        ..Filter::default()
    };
    let page = host.list(filter, cursor, limit.clamp(1, limits::PAGE))?;
    let Some(last) = page.entries.last().map(|entry| entry.envelope.id.clone()) else {
        return Ok((Vec::new(), None));
    };
    let mut looked_after = ids(host, TASK, cursor, &last)?;
    looked_after.append(&mut ids(host, DEAD_LETTER, cursor, &last)?);
    let now_ms = host.now_ms();
    let mut found = Vec::new();
    for entry in page.entries {
        let has_task = looked_after.contains(&entry.envelope.id);
        let Health::Zombie(_) = search.judge(&entry, has_task, None, now_ms) else {
            continue;
        };
        let zombie = Zombie::of(&entry, now_ms);
        if accepted
            .is_some_and(|span| !zombie::in_range(zombie.created_ms, span.from_ms, span.to_ms))
        {
            continue;
        }
        // The listings are not of one moment.
        if host.load(TASK, &zombie.order)?.is_none()
            && host
                .load(STANDING_ORDER, &zombie.order)?
                .is_some_and(|now| now.version == entry.version)
        {
            found.push(zombie);
        }
    }
    Ok((found, page.next))
}

/// What would bring an order back, and unless it is a dry run, does it.
pub fn hydrate(
    host: &dyn Host,
    search: &Search,
    id: &str,
    wanted: &Wanted<'_>,
) -> Result<Hydrated, OrderError> {
    orders::check_text("by", wanted.by)?;
    let mut busy = String::new();
    for _ in 0..limits::RACES {
        match try_hydrate(host, search, id, wanted) {
            Err(OrderError::Busy(what)) => busy = what,
            result => return result,
        }
    }
    Err(OrderError::Busy(busy))
}

/// Ends an order whatever holds it: its tasks go, a worker that is at it finds every write
/// refused, and an open transaction ends as a declared orphan. What is issued stays. Doing it
/// again changes nothing.
pub fn force_cancel(host: &dyn Host, id: &str, by: &str, why: &str) -> Result<Order, OrderError> {
    orders::check_text("by", by)?;
    orders::check_text("why", why)?;
    orders::changing(host, id, |mut order, version, task| {
        let now_ms = host.now_ms();
        let by = if by.is_empty() { "hand" } else { by };
        let mut reason = format!("canceled by force by {by}");
        if !why.is_empty() {
            reason = format!("{reason}: {why}");
        }
        let ended = match driver::abandoned(host, id, &reason) {
            Ok(ended) => ended,
            // It ends all the same; what cannot be read stays for whoever can.
            Err(Error::Unreadable(what)) => {
                reason = format!("{reason}; its transaction was left as it is: {what}");
                None
            }
            Err(Error::Storage(why)) => return Err(OrderError::Storage(why)),
            Err(error) => return Err(OrderError::Busy(format!("{error:?}"))),
        };
        let dead = host.load(DEAD_LETTER, id)?;
        if order.state() == OrderState::Canceled
            && task.is_none()
            && dead.is_none()
            && ended.is_none()
        {
            return Ok((order, None));
        }
        let mut changes = Vec::new();
        if let Some((progress, writes)) = ended {
            if let Outcome::Issued(issued) = &progress.outcome {
                let _ = order.take_certificate(issued);
            }
            order.transaction_id = Some(progress.transaction_id.clone());
            order.settled = Some(progress.transaction_id);
            changes.extend(writes);
        }
        order.attempt = None;
        order.goes_on_ms = None;
        order.renewal_ms = None;
        order.set_state(OrderState::Canceled, reason.clone());
        order.note(now_ms, reason);
        changes.push(order.put(Some(version), now_ms));
        if let Some(task) = &task {
            changes.extend(guard(task));
            changes.push(orders::delete(TASK, id, task.version));
        }
        if let Some(dead) = dead {
            changes.push(orders::delete(DEAD_LETTER, id, dead.version));
        }
        Ok((order, Some(changes)))
    })
}

fn try_hydrate(
    host: &dyn Host,
    search: &Search,
    id: &str,
    wanted: &Wanted<'_>,
) -> Result<Hydrated, OrderError> {
    let entry = host.load(STANDING_ORDER, id)?.ok_or(OrderError::NotFound)?;
    let task = host.load(TASK, id)?;
    let dead = host.load(DEAD_LETTER, id)?;
    let now_ms = host.now_ms();
    let order = Order::read(&entry);
    let last = match &order {
        Ok(order) => last(host, order)?,
        Err(_) => Last::Unreadable,
    };
    let dead = dead
        .as_ref()
        .map(|entry| DeadLetter::read(entry).map_or_else(|error| error.0, |dead| dead.reason));
    let mut positions = vec![position(order.as_ref().ok(), &last)];
    positions.extend(dead.as_deref().map(|reason| Position::Dead { reason }));
    let held = task.as_ref().and_then(|task| task.lease.as_ref());
    let health = search.suspect(&entry, task.is_some(), held.map(|lease| lease.until_ms));
    let request = zombie::Request {
        dry_run: wanted.dry_run,
        force: wanted.force,
    };
    let plan = search
        .zombie_check
        .hydrate(&health, &positions, request, now_ms);
    let mut hydrated = Hydrated {
        order: id.into(),
        account: entry.envelope.account.clone(),
        application: String::new(),
        issuer: String::new(),
        created_ms: entry.envelope.updated_ms,
        applied: false,
        plan,
    };
    let Ok(mut order) = order else {
        return Ok(hydrated);
    };
    hydrated.application.clone_from(&order.wish.application);
    hydrated.issuer.clone_from(&order.wish.issuer);
    hydrated.created_ms = order.created_ms;
    let message = hydrated.plan.actions.first().and_then(|a| a.message);
    let Some(message) = message.filter(|_| hydrated.plan.applies()) else {
        return Ok(hydrated);
    };
    let by = if wanted.by.is_empty() {
        "hand"
    } else {
        wanted.by
    };
    let did = &hydrated.plan.actions[0].description;
    order.note(now_ms, format!("hydrated by {by}: {did}"));
    if order.state() == OrderState::Buffered {
        order.set_state(OrderState::NotStarted, format!("hydrated by {by}"));
    }
    let kind = match message.kind {
        Deed::Start if !order.chain.is_empty() => TaskKind::Renew,
        Deed::Start if order.failure.is_some() => TaskKind::Retry,
        Deed::Start => TaskKind::Start,
        Deed::Resume | Deed::Poll | Deed::Confirm | Deed::Check => TaskKind::Resume,
    };
    let mut changes: Vec<Change> = task.iter().filter_map(guard).collect();
    let next = TaskRecord::new(kind, &order.wish.issuer);
    let before = task.map(|task| task.version);
    changes.push(order.put(Some(entry.version), now_ms));
    changes.push(next.put(&order, message.retry_at_ms, before, now_ms));
    host.commit(changes)?;
    orders::tell(host, Level::Warn, "order-hydrated", &order);
    hydrated.applied = true;
    Ok(hydrated)
}

/// The last transaction of an order, as far as the order does not know of its end.
enum Last {
    None,
    Unsettled(Progress),
    Unreadable,
}

fn last(host: &dyn Host, order: &Order) -> Result<Last, OrderError> {
    match driver::last(host, &order.id) {
        Ok(Some(progress)) if Some(&progress.transaction_id) != order.settled.as_ref() => {
            Ok(Last::Unsettled(progress))
        }
        Ok(_) => Ok(Last::None),
        Err(Error::Unreadable(_)) => Ok(Last::Unreadable),
        Err(Error::Storage(why)) => Err(OrderError::Storage(why)),
        Err(error) => Err(OrderError::Busy(format!("{error:?}"))),
    }
}

/// Where an order stands.
fn position<'p>(order: Option<&Order>, last: &'p Last) -> Position<'p> {
    match (order, last) {
        (None, _) | (_, Last::Unreadable) => Position::Unreadable,
        (Some(_), Last::Unsettled(progress)) => {
            let transaction_id = &*progress.transaction_id;
            match (progress.phase, &progress.outcome) {
                (Phase::Enrolling, _) => Position::Enrolling { transaction_id },
                (Phase::Polling, Outcome::Waiting(waiting)) => Position::Polling {
                    transaction_id,
                    poll_at_ms: waiting.until_ms,
                },
                (Phase::Confirming, _) => Position::Confirming { transaction_id },
                _ => Position::Ended { transaction_id },
            }
        }
        (Some(order), Last::None) => match (order.state(), order.next_attempt_ms()) {
            (OrderState::Active | OrderState::Error, Some(at_ms)) => Position::Awaiting { at_ms },
            _ => Position::NotBegun,
        },
    }
}

/// The ids of the records of a kind after `cursor`, up to `to`.
fn ids(
    host: &dyn Host,
    kind: &str,
    cursor: Option<&str>,
    to: &str,
) -> Result<BTreeSet<String>, OrderError> {
    let mut ids = BTreeSet::new();
    let mut cursor = cursor.map(String::from);
    loop {
        let filter = Filter {
            kind: kind.into(),
            ..Filter::default()
        };
        let page = host.list(filter, cursor.as_deref(), limits::PAGE)?;
        let is_past = page
            .entries
            .last()
            .is_none_or(|entry| *entry.envelope.id > *to);
        ids.extend(page.entries.into_iter().map(|entry| entry.envelope.id));
        cursor = page.next;
        if is_past || cursor.is_none() {
            return Ok(ids);
        }
    }
}

/// The guard under which a record that is held may be written.
fn guard(entry: &Entry) -> Option<Change> {
    let held = entry.lease.as_ref()?;
    Some(Change::Guard(Lease {
        kind: entry.envelope.kind.clone(),
        id: entry.envelope.id.clone(),
        token: held.token,
    }))
}

impl Search {
    fn suspect(&self, entry: &Entry, has_task: bool, leased_until_ms: Option<u64>) -> Suspect {
        let order = Order::read(entry);
        let state = OrderState::parse(&entry.envelope.state);
        Suspect {
            state: state.unwrap_or(OrderState::Error),
            last_progress_ms: entry.envelope.updated_ms,
            has_task,
            leased_until_ms,
            // What cannot be read may wait for something.
            is_awaited: order
                .as_ref()
                .map_or(true, |order| order.next_attempt_ms().is_some()),
            is_promoted: self.qos.promotion.enabled,
        }
    }

    fn judge(&self, entry: &Entry, has_task: bool, held: Option<u64>, now_ms: u64) -> Health {
        let suspect = self.suspect(entry, has_task, held);
        self.zombie_check.judge(&suspect, now_ms)
    }
}

impl Zombie {
    fn of(entry: &Entry, now_ms: u64) -> Self {
        let envelope = &entry.envelope;
        let order = Order::read(entry);
        let (application, reason, created_ms) = match order {
            Ok(order) => (order.wish.application, order.reason, order.created_ms),
            Err(error) => (String::new(), error.0, envelope.updated_ms),
        };
        Self {
            order: envelope.id.clone(),
            account: envelope.account.clone(),
            application,
            state: OrderState::parse(&envelope.state).unwrap_or(OrderState::Error),
            reason,
            created_ms,
            last_progress_ms: envelope.updated_ms,
            age_ms: now_ms.saturating_sub(envelope.updated_ms),
        }
    }

    /// The line for the log, in the words of Spinnaker's runbook.
    pub fn line(&self) -> String {
        Found {
            id: &self.order,
            account: &self.account,
            application: &self.application,
            state: self.state,
            age_ms: self.age_ms,
        }
        .to_string()
    }
}
