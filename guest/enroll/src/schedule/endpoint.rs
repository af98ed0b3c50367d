//! What the workers share about one CMP endpoint, in the store.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use abide_policy::endpoint::{Cause, EndpointState, Permit};
use abide_policy::random;
use abide_policy::rate::{Bucket, Outcome, Overrides};
use abide_policy::retry::RetryPolicy;
use abide_policy::time::SECOND_MS;
use minicbor::bytes::ByteVec;
use minicbor::{Decode, Encode};

use super::{Policies, octets};
use crate::host::{Change, Entry, Envelope, Event, Filter, Host, Level, Put, StorageError};
use crate::limits;
use crate::orders::OrderError;
use crate::record::{decode, encode};

/// The family of endpoints; the id is the URL.
const ENDPOINT: &str = "endpoint";

#[derive(Clone, Default, PartialEq, Eq, Encode, Decode)]
struct EndpointRecord {
    #[n(0)]
    full_at_ms: u64,
    #[n(1)]
    throttled: u32,
    #[n(2)]
    not_before_ms: u64,
    /// Messages that were sent to it, as the limit on them counts.
    #[n(3)]
    bucket: Option<ByteVec>,
}

/// How an endpoint is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EndpointHealth {
    /// Its URL.
    pub server: String,
    /// Retries that the fleet may send now.
    pub retries_left: u32,
    /// The most of them.
    pub retries: u32,
    /// How often in a row it asked for less.
    pub throttled: u32,
    /// Until when it wants nothing; none when it takes requests.
    pub not_before_ms: Option<u64>,
    /// When any of this changed.
    pub updated_ms: u64,
}

/// Endpoints in the order of their URLs, and where the next ones begin. One that never gave
/// trouble is not among them.
pub fn endpoints(
    host: &dyn Host,
    policy: &RetryPolicy,
    cursor: Option<&str>,
    limit: u32,
) -> Result<(Vec<EndpointHealth>, Option<String>), OrderError> {
    let filter = Filter {
        kind: ENDPOINT.into(),
        ..Filter::default()
    };
    let page = host.list(filter, cursor, limit.clamp(1, limits::PAGE))?;
    let now_ms = host.now_ms();
    let health = |entry: &Entry| {
        let record: EndpointRecord = decode(&entry.body, entry)?;
        let state = record.state();
        Ok(EndpointHealth {
            server: entry.envelope.id.clone(),
            retries_left: state.tokens(&policy.budget, now_ms),
            retries: policy.budget.capacity,
            throttled: state.throttled,
            not_before_ms: Some(state.not_before_ms).filter(|at_ms| *at_ms > now_ms),
            updated_ms: entry.envelope.updated_ms,
        })
    };
    let all: Result<_, OrderError> = page.entries.iter().map(health).collect();
    Ok((all?, page.next))
}

impl EndpointRecord {
    fn state(&self) -> EndpointState {
        EndpointState {
            full_at_ms: self.full_at_ms,
            throttled: self.throttled,
            not_before_ms: self.not_before_ms,
        }
    }

    fn with(self, state: EndpointState) -> Self {
        Self {
            full_at_ms: state.full_at_ms,
            throttled: state.throttled,
            not_before_ms: state.not_before_ms,
            bucket: self.bucket,
        }
    }
}

/// Until when to wait, and why.
pub(super) type Wait = (u64, String);

/// Until when an attempt of `messages` has to wait, and why; none when it may go. What it takes
/// from the limit and from the budget is written in one step, or neither.
pub(super) fn permit(
    host: &dyn Host,
    server: &str,
    policies: &Policies,
    is_retry: bool,
    refusals: u32,
    messages: u32,
) -> Result<Option<Wait>, OrderError> {
    asked(host, server, |record, now_ms| {
        let (roomy, wait) = room(host, server, policies, refusals, messages, record, now_ms);
        if wait.is_some() {
            return (record.clone(), wait);
        }
        let (state, permit) = attempt(host, policies, is_retry, refusals, record.state(), now_ms);
        match permit {
            Permit::Go => (roomy.with(state), None),
            Permit::Wait { until_ms, cause } => {
                let why = match cause {
                    Cause::Budget => "the retries for its endpoint are used up",
                    Cause::Throttled => "its endpoint asked for fewer requests",
                };
                (record.clone().with(state), Some((until_ms, why.into())))
            }
        }
    })
}

/// Until when a transaction under way has to wait for one more message, and why.
pub(super) fn one_more(
    host: &dyn Host,
    server: &str,
    policies: &Policies,
    refusals: u32,
) -> Result<Option<Wait>, OrderError> {
    if !policies.outgoing.enabled {
        return Ok(None);
    }
    asked(host, server, |record, now_ms| {
        room(host, server, policies, refusals, 1, record, now_ms)
    })
}

/// As [`changing`]; who meets too many others at the record waits a moment.
fn asked(
    host: &dyn Host,
    server: &str,
    change: impl Fn(&EndpointRecord, u64) -> (EndpointRecord, Option<Wait>),
) -> Result<Option<Wait>, OrderError> {
    match changing(host, server, change) {
        Err(OrderError::Busy(_)) => {
            let now_ms = host.now_ms();
            let until_ms = random::between(octets(host), now_ms, now_ms + limits::ENDPOINT_BUSY_MS);
            Ok(Some((until_ms, "many ask for its endpoint at once".into())))
        }
        result => result,
    }
}

fn attempt(
    host: &dyn Host,
    policies: &Policies,
    is_retry: bool,
    refusals: u32,
    state: EndpointState,
    now_ms: u64,
) -> (EndpointState, Permit) {
    if is_retry {
        return state.retry(&policies.retry.budget, now_ms, refusals, octets(host));
    }
    // A first attempt takes nothing, but does not come before the endpoint wants it, nor
    // together with all others.
    if state.not_before_ms <= now_ms {
        return (state, Permit::Go);
    }
    let spread = (state.not_before_ms - now_ms) / 10;
    let latest = state.not_before_ms.saturating_add(spread);
    let until_ms = random::between(octets(host), state.not_before_ms, latest);
    let cause = Cause::Throttled;
    (state, Permit::Wait { until_ms, cause })
}

/// Takes so many messages from the limit of an endpoint.
fn room(
    host: &dyn Host,
    server: &str,
    policies: &Policies,
    refusals: u32,
    messages: u32,
    record: &EndpointRecord,
    now_ms: u64,
) -> (EndpointRecord, Option<Wait>) {
    let outgoing = &policies.outgoing;
    if !outgoing.enabled {
        return (record.clone(), None);
    }
    let principal = outgoing.identify(Some(server), None, None);
    let resolved = outgoing.resolve(&principal, &Overrides::default());
    let limit = resolved.limit;
    // Octets that are no bucket stand for a full one: nothing is refused by mistake.
    let bucket = record.bucket.as_ref();
    let bucket = bucket.and_then(|octets| Bucket::decode(octets).ok());
    let messages = messages.min(limit.capacity.max(1));
    let (bucket, answer) = resolved.decide(bucket, messages, now_ms);
    let taken = EndpointRecord {
        bucket: Some(ByteVec::from(bucket.encode())),
        ..record.clone()
    };
    let per = limit.rate_ms / SECOND_MS;
    let limit_words = format!("the limit of {} messages in {per} s", limit.capacity);
    match answer.outcome {
        Outcome::Admitted => (taken, None),
        Outcome::WouldThrottle => {
            host.emit(Event {
                level: Level::Info,
                name: "outgoing-learning",
                text: format!("{server}: {limit_words} is reached; it is only learnt from"),
                transaction_id: String::new(),
            });
            (taken, None)
        }
        Outcome::Throttled => {
            let first_ms = answer.retry_at_ms.unwrap_or(now_ms + limit.rate_ms);
            // Those that wait do not all come back for the one next place.
            let spread = limit
                .rate_ms
                .saturating_mul(u64::from(refusals.min(10)) + 1);
            let latest_ms = first_ms.saturating_add(spread);
            let until_ms = random::between(octets(host), first_ms, latest_ms);
            let why = format!("{limit_words} to its endpoint is reached");
            (record.clone(), Some((until_ms, why)))
        }
    }
}

/// The endpoint did what it was asked.
pub(super) fn succeeded(
    host: &dyn Host,
    server: &str,
    policy: &RetryPolicy,
) -> Result<(), OrderError> {
    changing(host, server, |record, now_ms| {
        let state = record.state();
        // One that nobody has to spare is left alone, so that workers do not meet at its record.
        let is_spared = state.throttled > 0 || state.not_before_ms > 0 || state.full_at_ms > now_ms;
        let state = match is_spared {
            true => state.succeeded(&policy.budget, now_ms),
            false => state,
        };
        (record.clone().with(state), ())
    })
}

/// The endpoint asks for less. Returns until when it wants nothing.
pub(super) fn throttled(
    host: &dyn Host,
    server: &str,
    policy: &RetryPolicy,
    hint_ms: Option<u64>,
) -> Result<u64, OrderError> {
    changing(host, server, |record, now_ms| {
        let throttled = &policy.throttled;
        let state = record
            .state()
            .throttled(throttled, hint_ms, now_ms, octets(host));
        (record.clone().with(state), state.not_before_ms)
    })
}

/// Reads, changes and writes the state of an endpoint, and begins again when another worker was
/// faster.
fn changing<T>(
    host: &dyn Host,
    server: &str,
    change: impl Fn(&EndpointRecord, u64) -> (EndpointRecord, T),
) -> Result<T, OrderError> {
    let mut busy = String::new();
    for _ in 0..limits::ENDPOINT_RACES {
        let now_ms = host.now_ms();
        let entry = host.load(ENDPOINT, server)?;
        let before: EndpointRecord = match &entry {
            Some(entry) => decode(&entry.body, entry)?,
            None => EndpointRecord::default(),
        };
        let (after, result) = change(&before, now_ms);
        if after == before {
            return Ok(result);
        }
        let put = Change::Put(Put {
            envelope: Envelope {
                kind: ENDPOINT.into(),
                id: server.into(),
                owner: String::new(),
                account: String::new(),
                state: String::new(),
                due_ms: None,
                updated_ms: now_ms,
            },
            expected: entry.map(|entry| entry.version),
            body: encode(&after),
        });
        match host.commit(alloc::vec![put]) {
            Ok(_) => return Ok(result),
            Err(StorageError::Conflict(what)) => busy = what,
            Err(error) => return Err(error.into()),
        }
    }
    Err(OrderError::Busy(busy))
}
