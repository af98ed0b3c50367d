//! The six imports as the machine's `Host`.

use alloc::string::ToString;
use alloc::vec::Vec;

use abide_cmp::cms::Envelope;
use abide_cmp::protection::{MacAlgorithm, SignatureAlgorithm, Verdict};
use abide_enroll as enroll;

use crate::bindings::abide::cmp::{keys, network, storage, telemetry};
use crate::bindings::wasi::clocks::wall_clock;
use crate::bindings::wasi::random::random;
use crate::keys::{text, to_enveloped, to_mac_algorithm, to_signature_algorithm, verify};

/// The world outside, as far as the imports reach.
pub(crate) struct Imports;

impl enroll::Host for Imports {
    fn now_ms(&self) -> u64 {
        let now = wall_clock::now();
        now.seconds
            .saturating_mul(1000)
            .saturating_add(u64::from(now.nanoseconds / 1_000_000))
    }

    fn random(&self, count: usize) -> Vec<u8> {
        random::get_random_bytes(count as u64)
    }

    fn load(&self, kind: &str, id: &str) -> Result<Option<enroll::Entry>, enroll::StorageError> {
        storage::get(kind, id)
            .map(|entry| entry.map(from_entry))
            .map_err(from_storage_error)
    }

    fn commit(&self, changes: Vec<enroll::Change>) -> Result<Vec<u64>, enroll::StorageError> {
        let changes: Vec<_> = changes.into_iter().map(to_change).collect();
        storage::commit(&changes).map_err(from_storage_error)
    }

    fn list(
        &self,
        filter: enroll::Filter,
        cursor: Option<&str>,
        limit: u32,
    ) -> Result<enroll::Page, enroll::StorageError> {
        let filter = storage::Filter {
            kind: filter.kind,
            owner: filter.owner,
            account: filter.account,
            state: filter.state,
        };
        let page = storage::list(&filter, cursor, limit).map_err(from_storage_error)?;
        Ok(enroll::Page {
            entries: page.entries.into_iter().map(from_entry).collect(),
            next: page.next,
        })
    }

    fn claim_due(&self, claim: enroll::Claim) -> Result<enroll::Claims, enroll::StorageError> {
        let claims = storage::claim_due(&storage::Claim {
            kind: claim.kind,
            holder: claim.holder,
            now_ms: claim.now_ms,
            until_ms: claim.until_ms,
            limit: claim.limit,
            excluded: claim.excluded,
        })
        .map_err(from_storage_error)?;
        Ok(enroll::Claims {
            claimed: claims
                .claimed
                .into_iter()
                .map(|claimed| enroll::Claimed {
                    entry: from_entry(claimed.entry),
                    token: claimed.token,
                    lost: claimed.lost,
                })
                .collect(),
            next_due_ms: claims.next_due_ms,
        })
    }

    fn renew(
        &self,
        leases: Vec<enroll::Lease>,
        until_ms: u64,
    ) -> Result<Vec<enroll::Lease>, enroll::StorageError> {
        let leases: Vec<_> = leases.into_iter().map(to_lease).collect();
        let lost = storage::renew(&leases, until_ms).map_err(from_storage_error)?;
        Ok(lost
            .into_iter()
            .map(|lease| enroll::Lease {
                kind: lease.kind,
                id: lease.id,
                token: lease.token,
            })
            .collect())
    }

    fn release(&self, leases: Vec<enroll::Lease>) -> Result<(), enroll::StorageError> {
        let leases: Vec<_> = leases.into_iter().map(to_lease).collect();
        storage::release(&leases).map_err(from_storage_error)
    }

    fn count(
        &self,
        kind: &str,
        now_ms: u64,
        limit: u32,
    ) -> Result<(u32, u32), enroll::StorageError> {
        storage::count(kind, now_ms, limit).map_err(from_storage_error)
    }

    fn exchange(
        &self,
        endpoint: &str,
        message: &[u8],
        timeout_ms: u64,
        response_limit: u32,
    ) -> Result<enroll::Response, enroll::NetworkError> {
        use enroll::NetworkError as To;
        use network::NetworkError as From;
        let request = network::Request {
            endpoint: endpoint.to_string(),
            message: message.to_vec(),
            timeout_ms,
            response_limit,
        };
        let response = network::exchange(&request).map_err(|error| match error {
            From::BadEndpoint(why) => To::BadEndpoint(why),
            From::Unreachable(why) => To::Unreachable(why),
            From::Tls(why) => To::Tls(why),
            From::Timeout(why) => To::Timeout(why),
            From::Interrupted(why) => To::Interrupted(why),
            From::TooLarge(limit) => To::TooLarge(limit),
        })?;
        Ok(enroll::Response {
            status: response.status,
            content_type: response.content_type,
            retry_after: response.retry_after,
            location: response.location,
            body: response.body,
        })
    }

    fn public_key(&self, key: &str) -> Result<Vec<u8>, enroll::KeyError> {
        keys::public_key(key).map_err(from_key_error)
    }

    fn sign(
        &self,
        key: &str,
        algorithm: SignatureAlgorithm,
        data: &[u8],
    ) -> Result<Vec<u8>, enroll::KeyError> {
        match to_signature_algorithm(algorithm) {
            Some(algorithm) => keys::sign(key, algorithm, data).map_err(from_key_error),
            None => Err(enroll::KeyError(
                "an algorithm without a name in WIT".to_string(),
            )),
        }
    }

    fn mac(
        &self,
        key: &str,
        algorithm: &MacAlgorithm<'_>,
        data: &[u8],
    ) -> Result<Vec<u8>, enroll::KeyError> {
        let Some(algorithm) = to_mac_algorithm(algorithm) else {
            return Err(enroll::KeyError("a MAC without a name in WIT".to_string()));
        };
        keys::mac(key, &algorithm, data).map_err(from_key_error)
    }

    fn verify(
        &self,
        algorithm: SignatureAlgorithm,
        public_key: &[u8],
        data: &[u8],
        signature: &[u8],
    ) -> Verdict {
        verify(algorithm, public_key, data, signature)
    }

    fn fingerprint(&self, key: &str, salt: &[u8]) -> Result<Vec<u8>, enroll::KeyError> {
        keys::fingerprint(key, salt).map_err(from_key_error)
    }

    fn open(&self, key: &str, envelope: &Envelope<'_>) -> Result<Vec<u8>, enroll::HandlingError> {
        keys::open(key, &to_enveloped(envelope)).map_err(from_handling_error)
    }

    fn install(
        &self,
        key: &str,
        private_key: &[u8],
        public_key: &[u8],
    ) -> Result<(), enroll::HandlingError> {
        keys::install(key, private_key, public_key).map_err(from_handling_error)
    }

    fn generate(&self, key: &str, kind: enroll::KeyKind) -> Result<Vec<u8>, enroll::HandlingError> {
        keys::generate(key, to_key_kind(kind)).map_err(from_handling_error)
    }

    fn emit(&self, event: enroll::Event) {
        telemetry::emit(&telemetry::Event {
            level: match event.level {
                enroll::Level::Debug => telemetry::Level::Debug,
                enroll::Level::Info => telemetry::Level::Info,
                enroll::Level::Warn => telemetry::Level::Warn,
                enroll::Level::Error => telemetry::Level::Error,
            },
            name: event.name.to_string(),
            text: event.text,
            transaction_id: event.transaction_id,
        });
    }
}

fn to_change(change: enroll::Change) -> storage::Change {
    match change {
        enroll::Change::Put(put) => storage::Change::Put(storage::Put {
            envelope: to_envelope(put.envelope),
            expected: put.expected,
            body: put.body,
        }),
        enroll::Change::Delete(removal) => storage::Change::Delete(storage::Removal {
            kind: removal.kind,
            id: removal.id,
            expected: removal.expected,
        }),
        enroll::Change::Guard(lease) => storage::Change::Guard(to_lease(lease)),
    }
}

fn to_lease(lease: enroll::Lease) -> storage::Lease {
    storage::Lease {
        kind: lease.kind,
        id: lease.id,
        token: lease.token,
    }
}

pub(crate) fn to_key_kind(kind: enroll::KeyKind) -> keys::KeyKind {
    match kind {
        enroll::KeyKind::EcP256 => keys::KeyKind::EcP256,
        enroll::KeyKind::EcP384 => keys::KeyKind::EcP384,
        enroll::KeyKind::EcP521 => keys::KeyKind::EcP521,
        enroll::KeyKind::Rsa2048 => keys::KeyKind::Rsa2048,
        enroll::KeyKind::Rsa3072 => keys::KeyKind::Rsa3072,
        enroll::KeyKind::Rsa4096 => keys::KeyKind::Rsa4096,
        enroll::KeyKind::Ed25519 => keys::KeyKind::Ed25519,
    }
}

fn to_envelope(envelope: enroll::Envelope) -> storage::Envelope {
    storage::Envelope {
        kind: envelope.kind,
        id: envelope.id,
        owner: envelope.owner,
        account: envelope.account,
        state: envelope.state,
        due_ms: envelope.due_ms,
        updated_ms: envelope.updated_ms,
    }
}

fn from_entry(entry: storage::Entry) -> enroll::Entry {
    let envelope = entry.envelope;
    enroll::Entry {
        envelope: enroll::Envelope {
            kind: envelope.kind,
            id: envelope.id,
            owner: envelope.owner,
            account: envelope.account,
            state: envelope.state,
            due_ms: envelope.due_ms,
            updated_ms: envelope.updated_ms,
        },
        version: entry.version,
        body: entry.body,
        lease: entry.lease.map(|lease| enroll::Holding {
            holder: lease.holder,
            token: lease.token,
            until_ms: lease.until_ms,
        }),
    }
}

fn from_storage_error(error: storage::StorageError) -> enroll::StorageError {
    use enroll::StorageError as To;
    match error {
        storage::StorageError::Conflict(what) => To::Conflict(what),
        storage::StorageError::Fenced(what) => To::Fenced(what),
        storage::StorageError::TooLarge(limit) => To::Unavailable(alloc::format!(
            "a record is larger than the store's {limit} bytes"
        )),
        storage::StorageError::Unavailable(why) => To::Unavailable(why),
    }
}

fn from_key_error(error: keys::KeyError) -> enroll::KeyError {
    enroll::KeyError(text(error))
}

fn from_handling_error(error: keys::HandlingError) -> enroll::HandlingError {
    use enroll::HandlingError as To;
    match error {
        keys::HandlingError::Refused(why) => To::Refused(why),
        keys::HandlingError::Unavailable(why) => To::Unavailable(why),
    }
}
