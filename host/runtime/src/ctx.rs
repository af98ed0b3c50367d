//! The imports of the world `enroller`, for the linker of any embedder:
//!
//! ```no_run
//! # use abide_host::{AbideView, Ctx, Services};
//! struct MyData { abide: Ctx }
//! impl AbideView for MyData { fn abide(&mut self) -> &mut Ctx { &mut self.abide } }
//!
//! # fn example(engine: &wasmtime::Engine, services: Services) -> wasmtime::Result<()> {
//! let mut linker = wasmtime::component::Linker::<MyData>::new(engine);
//! abide_host::add_to_linker(&mut linker)?;
//! let store = wasmtime::Store::new(engine, MyData { abide: Ctx::new(services) });
//! # Ok(())
//! # }
//! ```
//!
//! Every number that comes from the guest is clamped here, so no implementation of a service has
//! to trust it.

use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use aws_lc_rs::rand::{SecureRandom, SystemRandom};
use wasmtime::component::{HasData, Linker};

use crate::error::one_line;
use crate::limits;
use crate::wit::enroller::wasi::{clocks::wall_clock, random::random};
use crate::wit::{keys, network, storage, telemetry};
use crate::{Keys, Services};

/// The state behind the imports.
#[derive(Debug)]
pub struct Ctx {
    services: Services,
    random: SystemRandom,
}

impl Ctx {
    /// Imports that are served by `services`.
    pub fn new(services: Services) -> Self {
        Ctx {
            services,
            random: SystemRandom::new(),
        }
    }
}

/// A store's data that has a [`Ctx`] in it.
pub trait AbideView: Send {
    /// The state behind the imports.
    fn abide(&mut self) -> &mut Ctx;
}

/// The latest time a store can keep, with room for a lease: stores count in signed integers.
const LATEST_MS: u64 = i64::MAX as u64 - limits::LEASE_MS;

/// Adds the six imports of the world `enroller` to a linker, and nothing else.
pub fn add_to_linker<T: AbideView + 'static>(linker: &mut Linker<T>) -> wasmtime::Result<()> {
    storage::add_to_linker::<T, HasCtx>(linker, T::abide)?;
    network::add_to_linker::<T, HasCtx>(linker, T::abide)?;
    keys::add_to_linker::<T, HasKeys>(linker, |data| &mut data.abide().services.keys)?;
    telemetry::add_to_linker::<T, HasCtx>(linker, T::abide)?;
    wall_clock::add_to_linker::<T, HasCtx>(linker, T::abide)?;
    random::add_to_linker::<T, HasCtx>(linker, T::abide)
}

/// The import of the world `verifier`.
pub(crate) struct HasKeys;

impl HasData for HasKeys {
    type Data<'a> = &'a mut Arc<dyn Keys>;
}

struct HasCtx;

impl HasData for HasCtx {
    type Data<'a> = &'a mut Ctx;
}

impl storage::Host for Ctx {
    async fn get(
        &mut self,
        kind: String,
        id: String,
    ) -> wasmtime::Result<Result<Option<storage::Entry>, storage::StorageError>> {
        Ok(self.services.storage.get(&kind, &id).await)
    }

    async fn commit(
        &mut self,
        changes: Vec<storage::Change>,
    ) -> wasmtime::Result<Result<Vec<u64>, storage::StorageError>> {
        Ok(self.services.storage.commit(changes).await)
    }

    async fn list(
        &mut self,
        filter: storage::Filter,
        cursor: Option<String>,
        limit: u32,
    ) -> wasmtime::Result<Result<storage::Page, storage::StorageError>> {
        let limit = limit.min(limits::PAGE_RECORDS);
        Ok(self.services.storage.list(filter, cursor, limit).await)
    }

    async fn claim_due(
        &mut self,
        mut claim: storage::Claim,
    ) -> wasmtime::Result<Result<storage::Claims, storage::StorageError>> {
        claim.limit = claim.limit.min(limits::CLAIM_RECORDS);
        claim.excluded.truncate(limits::CLAIM_EXCLUDED);
        claim.now_ms = claim.now_ms.min(LATEST_MS);
        let latest = claim.now_ms.saturating_add(limits::LEASE_MS);
        claim.until_ms = claim.until_ms.clamp(claim.now_ms, latest);
        Ok(self.services.storage.claim_due(claim).await)
    }

    async fn renew(
        &mut self,
        leases: Vec<storage::Lease>,
        until_ms: u64,
    ) -> wasmtime::Result<Result<Vec<storage::Lease>, storage::StorageError>> {
        let until_ms = until_ms.min(LATEST_MS);
        Ok(self.services.storage.renew(leases, until_ms).await)
    }

    async fn release(
        &mut self,
        leases: Vec<storage::Lease>,
    ) -> wasmtime::Result<Result<(), storage::StorageError>> {
        Ok(self.services.storage.release(leases).await)
    }

    async fn count(
        &mut self,
        kind: String,
        now_ms: u64,
        limit: u32,
    ) -> wasmtime::Result<Result<(u32, u32), storage::StorageError>> {
        let limit = limit.min(limits::COUNT_RECORDS);
        let now_ms = now_ms.min(LATEST_MS);
        Ok(self.services.storage.count(&kind, now_ms, limit).await)
    }
}

impl network::Host for Ctx {
    async fn exchange(
        &mut self,
        mut request: network::Request,
    ) -> wasmtime::Result<Result<network::Response, network::NetworkError>> {
        let longest = u64::try_from(limits::EXCHANGE_TIME.as_millis()).unwrap_or(u64::MAX);
        request.timeout_ms = request.timeout_ms.clamp(1, longest);
        request.response_limit = request.response_limit.min(limits::RESPONSE_BYTES);
        Ok(self.services.network.exchange(request).await)
    }
}

impl keys::Host for Arc<dyn Keys> {
    async fn public_key(
        &mut self,
        key: String,
    ) -> wasmtime::Result<Result<Vec<u8>, keys::KeyError>> {
        Ok((**self).public_key(&key).await)
    }

    async fn sign(
        &mut self,
        key: String,
        algorithm: keys::SignatureAlgorithm,
        data: Vec<u8>,
    ) -> wasmtime::Result<Result<Vec<u8>, keys::KeyError>> {
        Ok((**self).sign(&key, algorithm, data).await)
    }

    async fn mac(
        &mut self,
        key: String,
        algorithm: keys::MacAlgorithm,
        data: Vec<u8>,
    ) -> wasmtime::Result<Result<Vec<u8>, keys::KeyError>> {
        Ok((**self).mac(&key, algorithm, data).await)
    }

    async fn verify(
        &mut self,
        algorithm: keys::SignatureAlgorithm,
        public_key: Vec<u8>,
        data: Vec<u8>,
        signature: Vec<u8>,
    ) -> wasmtime::Result<keys::Verdict> {
        Ok((**self)
            .verify(algorithm, public_key, data, signature)
            .await)
    }

    async fn fingerprint(
        &mut self,
        key: String,
        salt: Vec<u8>,
    ) -> wasmtime::Result<Result<Vec<u8>, keys::KeyError>> {
        Ok((**self).fingerprint(&key, salt).await)
    }

    async fn open(
        &mut self,
        key: String,
        enveloped: keys::Enveloped,
    ) -> wasmtime::Result<Result<Vec<u8>, keys::HandlingError>> {
        Ok((**self).open(&key, enveloped).await)
    }

    async fn install(
        &mut self,
        key: String,
        private_key: Vec<u8>,
        public_key: Vec<u8>,
    ) -> wasmtime::Result<Result<(), keys::HandlingError>> {
        Ok((**self).install(&key, private_key, public_key).await)
    }

    async fn generate(
        &mut self,
        key: String,
        kind: keys::KeyKind,
    ) -> wasmtime::Result<Result<Vec<u8>, keys::HandlingError>> {
        Ok((**self).generate(&key, kind).await)
    }
}

impl telemetry::Host for Ctx {
    fn emit(&mut self, mut event: telemetry::Event) -> wasmtime::Result<()> {
        // The text may quote a peer, and it ends on somebody's terminal.
        event.text = one_line(cut(&event.text, limits::EVENT_TEXT));
        event.name = one_line(cut(&event.name, limits::EVENT_TEXT));
        event.transaction_id = one_line(cut(&event.transaction_id, limits::EVENT_TEXT));
        self.services.telemetry.emit(event);
        Ok(())
    }
}

impl wall_clock::Host for Ctx {
    fn now(&mut self) -> wasmtime::Result<wall_clock::Datetime> {
        // A clock before 1970 cannot be expressed; every certificate is then not yet valid, which
        // is what a person with such a clock has to be told anyway.
        let now = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap_or(Duration::ZERO);
        Ok(wall_clock::Datetime {
            seconds: now.as_secs(),
            nanoseconds: now.subsec_nanos(),
        })
    }

    fn resolution(&mut self) -> wasmtime::Result<wall_clock::Datetime> {
        Ok(wall_clock::Datetime {
            seconds: 0,
            nanoseconds: 1,
        })
    }
}

impl random::Host for Ctx {
    fn get_random_bytes(&mut self, len: u64) -> wasmtime::Result<Vec<u8>> {
        // The interface has no error: what cannot be served ends the call.
        if len > limits::RANDOM_BYTES {
            wasmtime::bail!(
                "{len} random bytes at once, {} are allowed",
                limits::RANDOM_BYTES
            );
        }
        let mut bytes = vec![0; usize::try_from(len)?];
        self.random
            .fill(&mut bytes)
            .map_err(|_| wasmtime::format_err!("the machine gives no random bytes"))?;
        Ok(bytes)
    }

    fn get_random_u64(&mut self) -> wasmtime::Result<u64> {
        let mut bytes = [0; 8];
        self.random
            .fill(&mut bytes)
            .map_err(|_| wasmtime::format_err!("the machine gives no random bytes"))?;
        Ok(u64::from_ne_bytes(bytes))
    }
}

/// The longest beginning of at most `limit` bytes that ends between two characters.
fn cut(text: &str, limit: usize) -> &str {
    &text[..text.floor_char_boundary(limit)]
}
