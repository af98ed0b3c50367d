//! A host whose every write holds only as long as the lease of a task.

use alloc::string::String;
use alloc::vec::Vec;
use core::cell::Cell;

use abide_cmp::cms;
use abide_cmp::protection::{MacAlgorithm, SignatureAlgorithm, Verdict};

use crate::host::{
    Change, Entry, Event, Filter, HandlingError, Host, KeyError, KeyKind, Lease, NetworkError,
    Page, Response, StorageError,
};

/// Puts the guard of a lease into each commit. A worker that slept through its lease so writes
/// nothing any more, whatever it was about to write, and sends nothing, since a message is
/// stored before it is sent.
pub(crate) struct Fence<'h> {
    host: &'h dyn Host,
    lease: Lease,
    broken: Cell<bool>,
}

impl<'h> Fence<'h> {
    pub(crate) fn new(host: &'h dyn Host, lease: Lease) -> Self {
        Self {
            host,
            lease,
            broken: Cell::new(false),
        }
    }

    /// Whether a write was refused because somebody else holds the task.
    pub(crate) fn is_broken(&self) -> bool {
        self.broken.get()
    }

    pub(crate) fn lease(&self) -> &Lease {
        &self.lease
    }
}

impl Host for Fence<'_> {
    fn commit(&self, mut changes: Vec<Change>) -> Result<Vec<u64>, StorageError> {
        // First, because whoever lost the lease mostly lost a race for a record too, and the
        // lease is what it has to hear of.
        changes.insert(0, Change::Guard(self.lease.clone()));
        let mut result = self.host.commit(changes);
        match &mut result {
            Ok(versions) if !versions.is_empty() => {
                versions.remove(0);
            }
            Ok(_) => {}
            Err(StorageError::Fenced(_)) => self.broken.set(true),
            Err(_) => {}
        }
        result
    }

    fn now_ms(&self) -> u64 {
        self.host.now_ms()
    }
    fn random(&self, count: usize) -> Vec<u8> {
        self.host.random(count)
    }
    fn load(&self, kind: &str, id: &str) -> Result<Option<Entry>, StorageError> {
        self.host.load(kind, id)
    }
    fn list(&self, filter: Filter, cursor: Option<&str>, limit: u32) -> Result<Page, StorageError> {
        self.host.list(filter, cursor, limit)
    }
    fn exchange(
        &self,
        endpoint: &str,
        message: &[u8],
        timeout_ms: u64,
        response_limit: u32,
    ) -> Result<Response, NetworkError> {
        self.host
            .exchange(endpoint, message, timeout_ms, response_limit)
    }
    fn public_key(&self, key: &str) -> Result<Vec<u8>, KeyError> {
        self.host.public_key(key)
    }
    fn sign(
        &self,
        key: &str,
        algorithm: SignatureAlgorithm,
        data: &[u8],
    ) -> Result<Vec<u8>, KeyError> {
        self.host.sign(key, algorithm, data)
    }
    fn mac(
        &self,
        key: &str,
        algorithm: &MacAlgorithm<'_>,
        data: &[u8],
    ) -> Result<Vec<u8>, KeyError> {
        self.host.mac(key, algorithm, data)
    }
    fn verify(
        &self,
        algorithm: SignatureAlgorithm,
        public_key: &[u8],
        data: &[u8],
        signature: &[u8],
    ) -> Verdict {
        self.host.verify(algorithm, public_key, data, signature)
    }
    fn open(&self, key: &str, envelope: &cms::Envelope<'_>) -> Result<Vec<u8>, HandlingError> {
        self.host.open(key, envelope)
    }
    fn install(
        &self,
        key: &str,
        private_key: &[u8],
        public_key: &[u8],
    ) -> Result<(), HandlingError> {
        self.host.install(key, private_key, public_key)
    }
    fn generate(&self, key: &str, kind: KeyKind) -> Result<Vec<u8>, HandlingError> {
        self.host.generate(key, kind)
    }
    fn fingerprint(&self, key: &str, salt: &[u8]) -> Result<Vec<u8>, KeyError> {
        self.host.fingerprint(key, salt)
    }
    fn emit(&self, event: Event) {
        self.host.emit(event);
    }
}

/// Why a task was left alone.
pub(crate) fn overtaken(fence: &Fence<'_>) -> String {
    alloc::format!(
        "another worker holds the task of the order {}: nothing is written under token {}",
        fence.lease.id,
        fence.lease.token
    )
}
