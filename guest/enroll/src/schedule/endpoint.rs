//! What the workers share about one CMP endpoint, in the store.

use alloc::string::String;

use abide_policy::endpoint::{Cause, EndpointState, Permit};
use abide_policy::random;
use abide_policy::retry::RetryPolicy;
use minicbor::{Decode, Encode};

use super::octets;
use crate::host::{Change, Envelope, Host, Put, StorageError};
use crate::limits;
use crate::orders::OrderError;
use crate::record::{decode, encode};

/// The family of endpoints; the id is the URL.
const ENDPOINT: &str = "endpoint";

#[derive(Encode, Decode)]
struct EndpointRecord {
    #[n(0)]
    full_at_ms: u64,
    #[n(1)]
    throttled: u32,
    #[n(2)]
    not_before_ms: u64,
}

/// Until when an attempt has to wait, and why; none when it may go.
pub(super) fn permit(
    host: &dyn Host,
    server: &str,
    policy: &RetryPolicy,
    is_retry: bool,
    refusals: u32,
) -> Result<Option<(u64, &'static str)>, OrderError> {
    let permit = changing(host, server, |state, now_ms| {
        if is_retry {
            return state.retry(&policy.budget, now_ms, refusals, octets(host));
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
    })?;
    Ok(match permit {
        Permit::Go => None,
        Permit::Wait { until_ms, cause } => Some((
            until_ms,
            match cause {
                Cause::Budget => "the retries for its endpoint are used up",
                Cause::Throttled => "its endpoint asked for fewer requests",
            },
        )),
    })
}

/// The endpoint did what it was asked.
pub(super) fn succeeded(
    host: &dyn Host,
    server: &str,
    policy: &RetryPolicy,
) -> Result<(), OrderError> {
    changing(host, server, |state, now_ms| {
        // One that nobody has to spare is left alone, so that workers do not meet at its record.
        let is_spared = state.throttled > 0 || state.not_before_ms > 0 || state.full_at_ms > now_ms;
        match is_spared {
            true => (state.succeeded(&policy.budget, now_ms), ()),
            false => (state, ()),
        }
    })
}

/// The endpoint asks for less. Returns until when it wants nothing.
pub(super) fn throttled(
    host: &dyn Host,
    server: &str,
    policy: &RetryPolicy,
    hint_ms: Option<u64>,
) -> Result<u64, OrderError> {
    changing(host, server, |state, now_ms| {
        let state = state.throttled(&policy.throttled, hint_ms, now_ms, octets(host));
        (state, state.not_before_ms)
    })
}

/// Reads, changes and writes the state of an endpoint, and begins again when another worker was
/// faster.
fn changing<T>(
    host: &dyn Host,
    server: &str,
    change: impl Fn(EndpointState, u64) -> (EndpointState, T),
) -> Result<T, OrderError> {
    let mut busy = String::new();
    for _ in 0..limits::ENDPOINT_RACES {
        let now_ms = host.now_ms();
        let entry = host.load(ENDPOINT, server)?;
        let before = match &entry {
            Some(entry) => {
                let record: EndpointRecord = decode(&entry.body, entry)?;
                EndpointState {
                    full_at_ms: record.full_at_ms,
                    throttled: record.throttled,
                    not_before_ms: record.not_before_ms,
                }
            }
            None => EndpointState::default(),
        };
        let (after, result) = change(before, now_ms);
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
            body: encode(&EndpointRecord {
                full_at_ms: after.full_at_ms,
                throttled: after.throttled,
                not_before_ms: after.not_before_ms,
            }),
        });
        match host.commit(alloc::vec![put]) {
            Ok(_) => return Ok(result),
            Err(StorageError::Conflict(what)) => busy = what,
            Err(error) => return Err(error.into()),
        }
    }
    Err(OrderError::Busy(busy))
}
