//! The six imports as the machine's `Host`.

use alloc::string::{String, ToString};
use alloc::vec::Vec;

use abide_cmp::protection::{Hash, MacAlgorithm, SignatureAlgorithm, Verdict};
use abide_enroll as enroll;

use crate::bindings::abide::cmp::{keys, network, storage, telemetry};
use crate::bindings::wasi::clocks::wall_clock;
use crate::bindings::wasi::random::random;

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
        let changes: Vec<_> = changes
            .into_iter()
            .map(|enroll::Change::Put(put)| {
                storage::Change::Put(storage::Put {
                    envelope: to_envelope(put.envelope),
                    expected: put.expected,
                    body: put.body,
                })
            })
            .collect();
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
            account: None,
            state: None,
        };
        let page = storage::list(&filter, cursor, limit).map_err(from_storage_error)?;
        Ok(enroll::Page {
            entries: page.entries.into_iter().map(from_entry).collect(),
            next: page.next,
        })
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
        let algorithm = match *algorithm {
            MacAlgorithm::PasswordBased {
                salt,
                owf,
                iterations,
                mac,
            } => keys::MacAlgorithm::PasswordBased(keys::PasswordBasedMac {
                owf: to_hash(owf),
                salt: salt.to_vec(),
                iterations,
                mac: to_hash(mac),
            }),
            MacAlgorithm::Pbmac1 {
                salt,
                iterations,
                key_length,
                prf,
                mac,
            } => keys::MacAlgorithm::Pbmac1(keys::Pbmac1 {
                prf: to_hash(prf),
                salt: salt.to_vec(),
                iterations,
                key_length: key_length as u32,
                mac: to_hash(mac),
            }),
            MacAlgorithm::Hmac(hash) => keys::MacAlgorithm::Hmac(to_hash(hash)),
            _ => return Err(enroll::KeyError("a MAC without a name in WIT".to_string())),
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
        let Some(algorithm) = to_signature_algorithm(algorithm) else {
            return Verdict::Unsupported;
        };
        match keys::verify(algorithm, public_key, data, signature) {
            keys::Verdict::Valid => Verdict::Valid,
            keys::Verdict::Invalid => Verdict::Invalid,
            keys::Verdict::Unsupported => Verdict::Unsupported,
        }
    }

    fn fingerprint(&self, key: &str, salt: &[u8]) -> Result<Vec<u8>, enroll::KeyError> {
        keys::fingerprint(key, salt).map_err(from_key_error)
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
    }
}

fn from_storage_error(error: storage::StorageError) -> enroll::StorageError {
    use enroll::StorageError as To;
    match error {
        storage::StorageError::Conflict(what) | storage::StorageError::Fenced(what) => {
            To::Conflict(what)
        }
        storage::StorageError::TooLarge(limit) => To::Unavailable(alloc::format!(
            "a record is larger than the store's {limit} bytes"
        )),
        storage::StorageError::Unavailable(why) => To::Unavailable(why),
    }
}

fn from_key_error(error: keys::KeyError) -> enroll::KeyError {
    let text: String = match error {
        keys::KeyError::NotFound(why)
        | keys::KeyError::Unsupported(why)
        | keys::KeyError::Unavailable(why) => why,
    };
    enroll::KeyError(text)
}

fn to_hash(hash: Hash) -> keys::Hash {
    match hash {
        Hash::Sha1 => keys::Hash::Sha1,
        Hash::Sha224 => keys::Hash::Sha224,
        Hash::Sha256 => keys::Hash::Sha256,
        Hash::Sha384 => keys::Hash::Sha384,
        Hash::Sha512 => keys::Hash::Sha512,
    }
}

fn to_signature_algorithm(algorithm: SignatureAlgorithm) -> Option<keys::SignatureAlgorithm> {
    use keys::SignatureAlgorithm as To;
    Some(match algorithm {
        SignatureAlgorithm::RsaPkcs1(Hash::Sha1) => To::RsaPkcs1Sha1,
        SignatureAlgorithm::RsaPkcs1(Hash::Sha224) => To::RsaPkcs1Sha224,
        SignatureAlgorithm::RsaPkcs1(Hash::Sha256) => To::RsaPkcs1Sha256,
        SignatureAlgorithm::RsaPkcs1(Hash::Sha384) => To::RsaPkcs1Sha384,
        SignatureAlgorithm::RsaPkcs1(Hash::Sha512) => To::RsaPkcs1Sha512,
        SignatureAlgorithm::RsaPss { hash, salt_length }
            if usize::from(salt_length) != hash.output_length() =>
        {
            return None;
        }
        SignatureAlgorithm::RsaPss { hash, .. } => match hash {
            Hash::Sha256 => To::RsaPssSha256,
            Hash::Sha384 => To::RsaPssSha384,
            Hash::Sha512 => To::RsaPssSha512,
            Hash::Sha1 | Hash::Sha224 => return None,
        },
        SignatureAlgorithm::Ecdsa(Hash::Sha1) => To::EcdsaSha1,
        SignatureAlgorithm::Ecdsa(Hash::Sha224) => To::EcdsaSha224,
        SignatureAlgorithm::Ecdsa(Hash::Sha256) => To::EcdsaSha256,
        SignatureAlgorithm::Ecdsa(Hash::Sha384) => To::EcdsaSha384,
        SignatureAlgorithm::Ecdsa(Hash::Sha512) => To::EcdsaSha512,
        SignatureAlgorithm::Ed25519 => To::Ed25519,
        SignatureAlgorithm::Ed448 => To::Ed448,
        SignatureAlgorithm::MlDsa44 => To::MlDsa44,
        SignatureAlgorithm::MlDsa65 => To::MlDsa65,
        SignatureAlgorithm::MlDsa87 => To::MlDsa87,
        _ => return None,
    })
}
