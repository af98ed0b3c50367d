//! Orders: wishes for certificates that are served for as long as they stand.
//!
//! An order and its next task are written in one commit, so no order is left without a next
//! step. What serves an order is in [`crate::schedule`]; here is what people do with one.

mod issuer;
mod record;

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec;
use alloc::vec::Vec;
use core::cell::Cell;

use abide_cmp::protection::Hash;
use abide_cmp::{CertificationRequest, Name, SubjectAltName};
use abide_policy::order::OrderState;
use abide_policy::retry::{Attempts, RetryPolicy};
use minicbor::bytes::ByteVec;

pub use issuer::Issuer;
pub(crate) use issuer::{attempt, enrollment};
pub(crate) use record::STANDING_ORDER;
use record::{CLIENT_KEY, ClientKey};
pub use record::{Order, Request, Subject, Wish};

use crate::host::{Change, Entry, Event, Filter, Host, Level, Removal, StorageError};
use crate::limits;
use crate::record::{Unreadable, encode, hex};
use crate::schedule::task::{DEAD_LETTER, TASK, TaskKind, TaskRecord};

/// Why nothing was done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OrderError {
    /// What was given cannot be served.
    Invalid(String),
    /// There is no such order.
    NotFound,
    /// The key stands for another wish: that of this order.
    KeyReused(String),
    /// The order is in a state that does not allow it.
    State(String),
    /// Others were at work on it at the same time.
    Busy(String),
    /// The store.
    Storage(String),
    /// A key or secret.
    Key(String),
    /// A stored record cannot be read.
    Unreadable(String),
}

impl From<StorageError> for OrderError {
    fn from(error: StorageError) -> Self {
        match error {
            StorageError::Conflict(what) | StorageError::Fenced(what) => Self::Busy(what),
            StorageError::Unavailable(why) => Self::Storage(why),
        }
    }
}

impl From<Unreadable> for OrderError {
    fn from(error: Unreadable) -> Self {
        Self::Unreadable(error.0)
    }
}

/// Which orders are wanted.
#[derive(Clone, Debug, Default)]
pub struct OrderFilter {
    /// Only those of this account.
    pub account: Option<String>,
    /// Only those in this state.
    pub state: Option<OrderState>,
    /// Only those of this principal.
    pub principal: Option<String>,
}

/// What quality of service has decided about a wish.
#[derive(Clone, Debug, Default)]
pub struct Admission {
    /// The order waits for the promoter.
    pub buffered: bool,
    /// One line.
    pub reason: String,
    /// Lines for the history.
    pub notes: Vec<String>,
}

/// Why the next attempt is when it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Explanation {
    /// Each rule that had a say, in one line, with the time after it.
    pub steps: Vec<(String, u64)>,
    /// The attempts that follow while each of them fails: the earliest and the latest time of
    /// each.
    pub forecast: Vec<(u64, u64)>,
}

/// Accepts a wish with its first task, unless it is to wait: then there is none until it is
/// promoted. The same wish under the same key is the order that stands already, and then the
/// second value is false.
pub fn create(
    host: &dyn Host,
    wish: Wish,
    admission: Option<&Admission>,
) -> Result<(Order, bool), OrderError> {
    check(&wish)?;
    check_admission(admission)?;
    let buffered = admission.is_some_and(|admission| admission.buffered);
    let now_ms = host.now_ms();
    let key = wish.key.as_ref().map(|key| {
        let principal = (wish.principal.len() as u64).to_be_bytes();
        let text = [&principal[..], wish.principal.as_bytes(), key.as_bytes()].concat();
        hex(&Hash::Sha256.digest(&text))
    });
    let digest = Hash::Sha256.digest(&encode(&wish));
    if let Some(id) = &key
        && let Some(order) = standing(host, id, &digest)?
    {
        return Ok((order, false));
    }
    let mut order = Order {
        id: new_id(host, now_ms),
        wish,
        state: OrderState::NotStarted.as_str().into(),
        reason: "accepted".into(),
        revision: 0,
        created_ms: now_ms,
        updated_ms: now_ms,
        attempts: String::new(),
        renewal_ms: None,
        failure: None,
        chain: Vec::new(),
        not_before_ms: None,
        not_after_ms: None,
        key_name: None,
        issued: 0,
        transaction_id: None,
        settled: None,
        attempt: None,
        goes_on_ms: None,
        history: Vec::new(),
    };
    order.set_attempts(&Attempts {
        next_attempt_ms: (!buffered).then_some(now_ms),
        ..Attempts::default()
    });
    order.note(
        now_ms,
        format!("accepted for the issuer {}", order.wish.issuer),
    );
    for note in admission.into_iter().flat_map(|admission| &admission.notes) {
        order.note(now_ms, note.clone());
    }
    if let Some(admission) = admission.filter(|admission| admission.buffered) {
        let reason = format!("waits for the promoter: {}", admission.reason);
        order.set_state(OrderState::Buffered, reason);
    }
    let mut changes = vec![order.put(None, now_ms)];
    if !buffered {
        let task = TaskRecord::new(TaskKind::Start, &order.wish.issuer);
        changes.push(task.put(&order, now_ms, None, now_ms));
    }
    if let Some(id) = &key {
        let key = ClientKey {
            order: order.id.clone(),
            digest: ByteVec::from(digest.to_vec()),
        };
        changes.push(key.put(id.clone(), now_ms));
    }
    match (host.commit(changes), &key) {
        (Ok(_), _) => {}
        // Somebody else came with the same key.
        (Err(StorageError::Conflict(what)), Some(id)) => {
            return match standing(host, id, &digest)? {
                Some(order) => Ok((order, false)),
                None => Err(OrderError::Busy(what)),
            };
        }
        (Err(error), _) => return Err(error.into()),
    }
    tell(host, Level::Info, "order-accepted", &order);
    Ok((order, true))
}

/// A buffered order starts: its state and its task are one commit, so that a death in between
/// leaves an order that is promoted later, or one that is. False when it is not buffered any
/// more, such as when another worker was faster; then nothing was changed.
pub fn promote(host: &dyn Host, id: &str, why: &str) -> Result<(Order, bool), OrderError> {
    check_line("why", why)?;
    let promoted = Cell::new(false);
    let order = changing(host, id, |mut order, version, task| {
        let is_buffered = order.state() == OrderState::Buffered;
        promoted.set(is_buffered);
        if !is_buffered {
            return Ok((order, None));
        }
        let now_ms = host.now_ms();
        let attempts = Attempts {
            next_attempt_ms: Some(now_ms),
            ..order.attempts()
        };
        order.set_attempts(&attempts);
        order.set_state(OrderState::NotStarted, format!("promoted: {why}"));
        order.note(now_ms, format!("promoted: {why}"));
        let next = TaskRecord::new(TaskKind::Start, &order.wish.issuer);
        let before = task.map(|entry| entry.version);
        let changes = vec![
            order.put(Some(version), now_ms),
            next.put(&order, now_ms, before, now_ms),
        ];
        Ok((order, Some(changes)))
    })?;
    Ok((order, promoted.get()))
}

/// One order.
pub fn get(host: &dyn Host, id: &str) -> Result<Order, OrderError> {
    load(host, id).map(|(order, _)| order)
}

/// Some orders in the order of their ids, and where the next ones begin.
pub fn list(
    host: &dyn Host,
    filter: OrderFilter,
    cursor: Option<&str>,
    limit: u32,
) -> Result<(Vec<Order>, Option<String>), OrderError> {
    let filter = Filter {
        kind: STANDING_ORDER.into(),
        owner: filter.principal,
        account: filter.account,
        state: filter.state.map(|state| state.as_str().into()),
    };
    let page = host.list(filter, cursor, limit.clamp(1, limits::PAGE))?;
    let orders = page
        .entries
        .iter()
        .map(Order::read)
        .collect::<Result<_, _>>()?;
    Ok((orders, page.next))
}

/// Another certificate at once. The count of failures stays.
pub fn renew(
    host: &dyn Host,
    id: &str,
    by: &str,
    policy: &RetryPolicy,
) -> Result<Order, OrderError> {
    check_text("by", by)?;
    changing(host, id, |mut order, version, task| {
        match order.state() {
            OrderState::Running => return Ok((order, None)),
            OrderState::Canceled => {
                return Err(OrderError::State("it is canceled: order anew".into()));
            }
            OrderState::Buffered => {
                return Err(OrderError::State(
                    "it is buffered, and starts when it is promoted".into(),
                ));
            }
            OrderState::NotStarted | OrderState::Active | OrderState::Error => {}
        }
        let now_ms = host.now_ms();
        let (attempts, _) = policy.renewed_by_hand(order.attempts(), now_ms);
        order.set_attempts(&attempts);
        let by = if by.is_empty() { "hand" } else { by };
        order.reason = format!("renewed by {by}");
        order.note(now_ms, format!("renewed by {by}"));
        let mut changes = vec![order.put(Some(version), now_ms)];
        let kind = match order.chain.is_empty() {
            true if order.failure.is_none() => TaskKind::Start,
            true => TaskKind::Retry,
            false => TaskKind::Renew,
        };
        // A worker that holds the task reads the order once more before it does anything.
        if task.as_ref().is_none_or(|entry| entry.lease.is_none()) {
            let next = TaskRecord::new(kind, &order.wish.issuer);
            let before = task.map(|entry| entry.version);
            changes.push(next.put(&order, now_ms, before, now_ms));
        }
        // What it died of is for the new task to find out.
        if let Some(dead) = host.load(DEAD_LETTER, id)? {
            changes.push(delete(DEAD_LETTER, id, dead.version));
        }
        Ok((order, Some(changes)))
    })
}

/// Ends an order. Its certificate stays, and a transaction under way is left to its end.
pub fn cancel(host: &dyn Host, id: &str, by: &str, why: &str) -> Result<Order, OrderError> {
    check_text("by", by)?;
    check_text("why", why)?;
    changing(host, id, |mut order, version, task| {
        if order.state() == OrderState::Canceled {
            return Ok((order, None));
        }
        let now_ms = host.now_ms();
        let running = order.state() == OrderState::Running;
        let mut reason = format!("canceled by {}", if by.is_empty() { "hand" } else { by });
        if !why.is_empty() {
            reason = format!("{reason}: {why}");
        }
        order.set_state(OrderState::Canceled, reason.clone());
        order.renewal_ms = None;
        order.note(now_ms, reason);
        let mut changes = vec![order.put(Some(version), now_ms)];
        // The task of a transaction under way brings it to its end, and a worker that holds one
        // drops it.
        if let Some(task) = task.filter(|task| !running && task.lease.is_none()) {
            changes.push(delete(TASK, id, task.version));
        }
        Ok((order, Some(changes)))
    })
}

/// Why the next attempt is when it is, and what would come after it until `until_ms`.
pub fn explain(
    host: &dyn Host,
    id: &str,
    policy: &RetryPolicy,
    until_ms: u64,
) -> Result<Explanation, OrderError> {
    let order = get(host, id)?;
    let now_ms = host.now_ms();
    let attempts = order.attempts();
    let decision = policy.explain(&attempts, now_ms);
    Ok(Explanation {
        steps: decision
            .steps
            .iter()
            .map(|step| (step.to_string(), step.after_ms))
            .collect(),
        forecast: match order.state() {
            OrderState::Canceled => Vec::new(),
            _ => policy.forecast(&attempts, order.in_use(), now_ms, until_ms),
        },
    })
}

/// An order and its version.
pub(crate) fn load(host: &dyn Host, id: &str) -> Result<(Order, u64), OrderError> {
    let entry = host.load(STANDING_ORDER, id)?.ok_or(OrderError::NotFound)?;
    Ok((Order::read(&entry)?, entry.version))
}

pub(crate) fn tell(host: &dyn Host, level: Level, name: &'static str, order: &Order) {
    host.emit(Event {
        level,
        name,
        text: format!("order {} ({}): {}", order.id, order.state(), order.reason),
        transaction_id: order.transaction_id.clone().unwrap_or_default(),
    });
}

pub(crate) fn delete(kind: &str, id: &str, expected: u64) -> Change {
    Change::Delete(Removal {
        kind: kind.into(),
        id: id.into(),
        expected,
    })
}

/// Reads an order and its task, changes them, and begins again when somebody else was faster.
/// A change without writes is none.
pub(crate) fn changing(
    host: &dyn Host,
    id: &str,
    change: impl Fn(Order, u64, Option<Entry>) -> Result<(Order, Option<Vec<Change>>), OrderError>,
) -> Result<Order, OrderError> {
    let mut busy = String::new();
    for _ in 0..limits::RACES {
        let (order, version) = load(host, id)?;
        let (order, changes) = change(order, version, host.load(TASK, id)?)?;
        let Some(changes) = changes else {
            return Ok(order);
        };
        match host.commit(changes) {
            Ok(_) => {
                tell(host, Level::Info, "order-changed", &order);
                return Ok(order);
            }
            Err(StorageError::Conflict(what)) => busy = what,
            Err(error) => return Err(error.into()),
        }
    }
    Err(OrderError::Busy(busy))
}

/// The order that stands under a key, if the wish is the same.
fn standing(host: &dyn Host, key: &str, digest: &[u8]) -> Result<Option<Order>, OrderError> {
    let Some(entry) = host.load(CLIENT_KEY, key)? else {
        return Ok(None);
    };
    let found = ClientKey::read(&entry)?;
    if found.digest[..] != *digest {
        return Err(OrderError::KeyReused(found.order));
    }
    get(host, &found.order).map(Some)
}

/// A UUID of version 7 (RFC 9562, 5.7): ids sort by the time they were made.
fn new_id(host: &dyn Host, now_ms: u64) -> String {
    let mut octets = [0; 16];
    octets[..6].copy_from_slice(&now_ms.to_be_bytes()[2..]);
    for (octet, random) in octets[6..].iter_mut().zip(host.random(10)) {
        *octet = random;
    }
    octets[6] = 0x70 | (octets[6] & 0x0f);
    octets[8] = 0x80 | (octets[8] & 0x3f);
    let digits = hex(&octets);
    [
        &digits[..8],
        &digits[8..12],
        &digits[12..16],
        &digits[16..20],
        &digits[20..],
    ]
    .join("-")
}

/// Whether a wish can be served at all.
fn check(wish: &Wish) -> Result<(), OrderError> {
    for (name, text) in [
        ("key", wish.key.as_deref().unwrap_or_default()),
        ("account", &wish.account),
        ("application", &wish.application),
        ("origin", &wish.origin),
        ("principal", &wish.principal),
        ("issuer", &wish.issuer),
    ] {
        check_text(name, text)?;
    }
    if wish.key.as_ref().is_some_and(String::is_empty) {
        return Err(OrderError::Invalid("key: it is empty".into()));
    }
    if wish.issuer.is_empty() {
        return Err(OrderError::Invalid("issuer: it is empty".into()));
    }
    match &wish.request {
        Request::Csr(der) => {
            if der.len() > limits::CSR {
                return Err(OrderError::Invalid(format!(
                    "csr: it has {} octets, {} are allowed",
                    der.len(),
                    limits::CSR
                )));
            }
            CertificationRequest::from_der(der)
                .map_err(|error| OrderError::Invalid(format!("csr: {error}")))?;
        }
        Request::Subject(subject) => check_subject(subject)?,
    }
    Ok(())
}

fn check_subject(subject: &Subject) -> Result<(), OrderError> {
    if subject.subject.len() > limits::SUBJECT {
        return Err(OrderError::Invalid(format!(
            "subject: it has {} octets, {} are allowed",
            subject.subject.len(),
            limits::SUBJECT
        )));
    }
    if subject.sans.len() > limits::SANS {
        return Err(OrderError::Invalid(format!(
            "sans: there are {}, {} are allowed",
            subject.sans.len(),
            limits::SANS
        )));
    }
    for san in &subject.sans {
        check_text("sans", san)?;
    }
    if subject.subject.trim().is_empty() && subject.sans.is_empty() {
        return Err(OrderError::Invalid(
            "subject: a certificate without a subject needs names in sans".into(),
        ));
    }
    if !subject.subject.trim().is_empty() {
        Name::parse(&subject.subject)
            .map_err(|error| OrderError::Invalid(format!("subject: {error}")))?;
    }
    if !subject.sans.is_empty() {
        SubjectAltName::parse(&subject.sans)
            .map_err(|error| OrderError::Invalid(format!("sans: {error}")))?;
    }
    Ok(())
}

fn check_admission(admission: Option<&Admission>) -> Result<(), OrderError> {
    let Some(admission) = admission else {
        return Ok(());
    };
    check_line("reason", &admission.reason)?;
    if admission.notes.len() > limits::NOTES {
        return Err(OrderError::Invalid(format!(
            "notes: there are {}, {} are allowed",
            admission.notes.len(),
            limits::NOTES
        )));
    }
    admission
        .notes
        .iter()
        .try_for_each(|note| check_line("notes", note))
}

/// A line of a history.
fn check_line(name: &str, text: &str) -> Result<(), OrderError> {
    if text.len() > limits::NOTE {
        return Err(OrderError::Invalid(format!(
            "{name}: it has {} octets, {} are allowed",
            text.len(),
            limits::NOTE
        )));
    }
    if text.chars().any(char::is_control) {
        return Err(OrderError::Invalid(format!(
            "{name}: it holds a control character"
        )));
    }
    Ok(())
}

pub(crate) fn check_text(name: &str, text: &str) -> Result<(), OrderError> {
    if text.len() > limits::NAME {
        return Err(OrderError::Invalid(format!(
            "{name}: it has {} octets, {} are allowed",
            text.len(),
            limits::NAME
        )));
    }
    // They end in logs, tables and file names.
    if text.chars().any(char::is_control) {
        return Err(OrderError::Invalid(format!(
            "{name}: it holds a control character"
        )));
    }
    Ok(())
}
