//! What the component may do to the world: four traits, one for each interface it imports.

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;

use crate::wit::{keys, network, storage, telemetry};

/// Records that outlive the process. See the WIT interface `storage` for what each call promises.
#[async_trait]
pub trait Storage: Send + Sync {
    /// The record, if there is one.
    async fn get(
        &self,
        kind: &str,
        id: &str,
    ) -> Result<Option<storage::Entry>, storage::StorageError>;

    /// All changes or none, durable on return.
    async fn commit(
        &self,
        changes: Vec<storage::Change>,
    ) -> Result<Vec<u64>, storage::StorageError>;

    /// One page, in the order of the ids.
    async fn list(
        &self,
        filter: storage::Filter,
        cursor: Option<String>,
        limit: u32,
    ) -> Result<storage::Page, storage::StorageError>;

    /// Claims what is due, in one step with all other claims; durable on return.
    async fn claim_due(
        &self,
        claim: storage::Claim,
    ) -> Result<storage::Claims, storage::StorageError>;

    /// Prolongs leases; gives those that are lost.
    async fn renew(
        &self,
        leases: Vec<storage::Lease>,
        until_ms: u64,
    ) -> Result<Vec<storage::Lease>, storage::StorageError>;

    /// Hands records back, each due at the time it was.
    async fn release(&self, leases: Vec<storage::Lease>) -> Result<(), storage::StorageError>;

    /// How many records of a kind there are, and how many of them are due and not leased; both
    /// at most `limit`.
    async fn count(
        &self,
        kind: &str,
        now_ms: u64,
        limit: u32,
    ) -> Result<(u32, u32), storage::StorageError>;

    /// How many records of a kind are in a state, at most `limit`. It is cheap: an index leads to
    /// them.
    async fn count_state(
        &self,
        kind: &str,
        state: &str,
        limit: u32,
    ) -> Result<u32, storage::StorageError>;
}

/// The way to the CA.
#[async_trait]
pub trait Network: Send + Sync {
    /// Sends a message and waits for the answer.
    async fn exchange(
        &self,
        request: network::Request,
    ) -> Result<network::Response, network::NetworkError>;
}

/// Private keys and shared secrets, by name.
#[async_trait]
pub trait Keys: Send + Sync {
    /// The DER SubjectPublicKeyInfo of a private key.
    async fn public_key(&self, key: &str) -> Result<Vec<u8>, keys::KeyError>;

    /// A signature over `data`.
    async fn sign(
        &self,
        key: &str,
        algorithm: keys::SignatureAlgorithm,
        data: Vec<u8>,
    ) -> Result<Vec<u8>, keys::KeyError>;

    /// A MAC over `data`.
    async fn mac(
        &self,
        key: &str,
        algorithm: keys::MacAlgorithm,
        data: Vec<u8>,
    ) -> Result<Vec<u8>, keys::KeyError>;

    /// A judgement on a signature.
    async fn verify(
        &self,
        algorithm: keys::SignatureAlgorithm,
        public_key: Vec<u8>,
        data: Vec<u8>,
        signature: Vec<u8>,
    ) -> keys::Verdict;

    /// 32 octets that change with the key and tell nothing else.
    async fn fingerprint(&self, key: &str, salt: Vec<u8>) -> Result<Vec<u8>, keys::KeyError>;

    /// What is in an envelope for a private key or a shared secret.
    async fn open(
        &self,
        key: &str,
        enveloped: keys::Enveloped,
    ) -> Result<Vec<u8>, keys::HandlingError>;

    /// Keeps a private key that the PKI made; durable on return. It must be the private half of
    /// the DER SubjectPublicKeyInfo, and replaces another one of that name.
    async fn install(
        &self,
        key: &str,
        private_key: Vec<u8>,
        public_key: Vec<u8>,
    ) -> Result<(), keys::HandlingError>;

    /// Makes a key pair, unless there is one of that name and kind, and gives its DER
    /// SubjectPublicKeyInfo; durable on return.
    async fn generate(
        &self,
        key: &str,
        kind: keys::KeyKind,
    ) -> Result<Vec<u8>, keys::HandlingError>;
}

/// Where events go. Called while the component runs: it must not block.
pub trait Telemetry: Send + Sync {
    /// Takes one event.
    fn emit(&self, event: telemetry::Event);
}

/// A closure is all it takes to listen.
impl<F: Fn(telemetry::Event) + Send + Sync> Telemetry for F {
    fn emit(&self, event: telemetry::Event) {
        self(event)
    }
}

/// Forgets every event.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoTelemetry;

impl Telemetry for NoTelemetry {
    fn emit(&self, _: telemetry::Event) {}
}

/// All the power an enroller gets. The clock and the randomness are the machine's.
#[derive(Clone)]
pub struct Services {
    /// Where transactions are kept.
    pub storage: Arc<dyn Storage>,
    /// The way to the CA.
    pub network: Arc<dyn Network>,
    /// Private keys and shared secrets.
    pub keys: Arc<dyn Keys>,
    /// Where events go.
    pub telemetry: Arc<dyn Telemetry>,
}

impl fmt::Debug for Services {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Services").finish_non_exhaustive()
    }
}
