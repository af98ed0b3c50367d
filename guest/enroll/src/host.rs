//! What the machine needs from outside: storage, network, keys, time, randomness, and
//! somebody to tell.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use abide_cmp::PublicKeyInfo;
use abide_cmp::cms;
use abide_cmp::protection::{
    MacAlgorithm, SignatureAlgorithm, SignatureVerifier, SoftwareVerifier, Verdict,
};
use minicbor::{Decode, Encode};

/// What the host may index and show of a record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Envelope {
    /// The family of the record.
    pub kind: String,
    /// Unique within its kind.
    pub id: String,
    /// The record that owns this one; empty when none does.
    pub owner: String,
    /// The account; may be empty.
    pub account: String,
    /// One word for people and filters.
    pub state: String,
    /// When something is to be done next.
    pub due_ms: Option<u64>,
    /// When the record last changed.
    pub updated_ms: u64,
}

/// A stored record.
#[derive(Clone, Debug)]
pub struct Entry {
    /// What the host may see.
    pub envelope: Envelope,
    /// Grows with every write.
    pub version: u64,
    /// What only the guest reads.
    pub body: Vec<u8>,
    /// Its last lease, unless released or ended by a write; it may be over.
    pub lease: Option<Holding>,
}

/// Who holds a record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Holding {
    /// Who claimed it.
    pub holder: String,
    /// The fencing token.
    pub token: u64,
    /// When others may claim it.
    pub until_ms: u64,
}

/// A claim on a record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lease {
    /// The family of the record.
    pub kind: String,
    /// Unique within its kind.
    pub id: String,
    /// The fencing token: greater than that of every claim before.
    pub token: u64,
}

/// What is to be claimed: records that are due, the longest due first.
#[derive(Clone, Debug)]
pub struct Claim {
    /// The family.
    pub kind: String,
    /// Who claims.
    pub holder: String,
    /// What is due at this time.
    pub now_ms: u64,
    /// When the leases are over.
    pub until_ms: u64,
    /// The most records.
    pub limit: u32,
    /// Accounts whose records are left out.
    pub excluded: Vec<String>,
}

/// A record under a new lease.
#[derive(Clone, Debug)]
pub struct Claimed {
    /// The record.
    pub entry: Entry,
    /// The fencing token.
    pub token: u64,
    /// How many leases in a row ended by time alone.
    pub lost: u32,
}

/// What was claimed.
#[derive(Clone, Debug, Default)]
pub struct Claims {
    /// The longest due first.
    pub claimed: Vec<Claimed>,
    /// When the next record of the kind is due.
    pub next_due_ms: Option<u64>,
}

/// One record to be written.
#[derive(Clone, Debug)]
pub struct Put {
    /// What the host may see.
    pub envelope: Envelope,
    /// The version that was read; none when the record must not exist yet.
    pub expected: Option<u64>,
    /// What only the guest reads.
    pub body: Vec<u8>,
}

/// One part of a commit.
#[derive(Clone, Debug)]
pub enum Change {
    /// Write a record.
    Put(Put),
    /// Remove a record.
    Delete(Removal),
    /// Write nothing at all unless this lease still holds.
    Guard(Lease),
}

/// One record to be removed.
#[derive(Clone, Debug)]
pub struct Removal {
    /// The family of the record.
    pub kind: String,
    /// Unique within its kind.
    pub id: String,
    /// The version that was read.
    pub expected: u64,
}

/// Which records are wanted.
#[derive(Clone, Debug, Default)]
pub struct Filter {
    /// The family.
    pub kind: String,
    /// Only those that this record owns.
    pub owner: Option<String>,
    /// Only those of this account.
    pub account: Option<String>,
    /// Only those in this state.
    pub state: Option<String>,
}

/// One page of a listing.
#[derive(Clone, Debug, Default)]
pub struct Page {
    /// In the order of their ids.
    pub entries: Vec<Entry>,
    /// Where the next page starts.
    pub next: Option<String>,
}

/// Why nothing was read or written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StorageError {
    /// Another writer was faster.
    Conflict(String),
    /// The lease under which this was written is over.
    Fenced(String),
    /// Anything else, in words.
    Unavailable(String),
}

/// An HTTP answer.
#[derive(Clone, Debug)]
pub struct Response {
    /// The status code.
    pub status: u16,
    /// `Content-Type`.
    pub content_type: Option<String>,
    /// `Retry-After` in seconds from now.
    pub retry_after: Option<u64>,
    /// `Location`.
    pub location: Option<String>,
    /// The body.
    pub body: Vec<u8>,
}

/// Why there is no answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NetworkError {
    /// The URL cannot be used.
    BadEndpoint(String),
    /// Certainly not delivered.
    Unreachable(String),
    /// Certainly not delivered.
    Tls(String),
    /// May have been delivered.
    Timeout(String),
    /// May have been delivered.
    Interrupted(String),
    /// The answer was longer than this.
    TooLarge(u64),
}

/// Why a key could not be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyError(pub String);

/// Why an envelope was not opened, or a private key not kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HandlingError {
    /// It never will be: it is not for this key, damaged, or not what it is said to be.
    Refused(String),
    /// Not now.
    Unavailable(String),
}

/// A kind of key pair.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode)]
#[cbor(index_only)]
#[expect(missing_docs, reason = "the names say it")]
pub enum KeyKind {
    #[n(0)]
    EcP256,
    #[n(1)]
    EcP384,
    #[n(2)]
    EcP521,
    #[n(3)]
    Rsa2048,
    #[n(4)]
    Rsa3072,
    #[n(5)]
    Rsa4096,
    #[n(6)]
    Ed25519,
}

/// How loud an event is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names say it")]
pub enum Level {
    Debug,
    Info,
    Warn,
    Error,
}

/// One thing that happened.
#[derive(Clone, Debug)]
pub struct Event {
    /// How loud it is.
    pub level: Level,
    /// A stable word.
    pub name: &'static str,
    /// One line for people.
    pub text: String,
    /// The transaction in hexadecimal.
    pub transaction_id: String,
}

/// The world outside.
pub trait Host {
    /// Milliseconds since the Unix epoch.
    fn now_ms(&self) -> u64;
    /// Unpredictable octets.
    fn random(&self, count: usize) -> Vec<u8>;

    /// The record, if there is one.
    fn load(&self, kind: &str, id: &str) -> Result<Option<Entry>, StorageError>;
    /// All changes or none, durable on return; the new version of each.
    fn commit(&self, changes: Vec<Change>) -> Result<Vec<u64>, StorageError>;
    /// Some records after `cursor`.
    fn list(&self, filter: Filter, cursor: Option<&str>, limit: u32) -> Result<Page, StorageError>;

    /// Claims what is due, in one step with all other claims.
    fn claim_due(&self, _claim: Claim) -> Result<Claims, StorageError> {
        Err(no_claims())
    }
    /// Prolongs leases; gives those that are lost.
    fn renew(&self, _leases: Vec<Lease>, _until_ms: u64) -> Result<Vec<Lease>, StorageError> {
        Err(no_claims())
    }
    /// Hands records back.
    fn release(&self, _leases: Vec<Lease>) -> Result<(), StorageError> {
        Err(no_claims())
    }
    /// How many records of a kind there are, and how many of them are due; both at most
    /// `limit`.
    fn count(&self, _kind: &str, _now_ms: u64, _limit: u32) -> Result<(u32, u32), StorageError> {
        Err(no_claims())
    }

    /// Sends a message and waits for the answer.
    fn exchange(
        &self,
        endpoint: &str,
        message: &[u8],
        timeout_ms: u64,
        response_limit: u32,
    ) -> Result<Response, NetworkError>;

    /// The DER SubjectPublicKeyInfo of a private key.
    fn public_key(&self, key: &str) -> Result<Vec<u8>, KeyError>;
    /// A signature over `data`.
    fn sign(
        &self,
        key: &str,
        algorithm: SignatureAlgorithm,
        data: &[u8],
    ) -> Result<Vec<u8>, KeyError>;
    /// A MAC over `data`.
    fn mac(
        &self,
        key: &str,
        algorithm: &MacAlgorithm<'_>,
        data: &[u8],
    ) -> Result<Vec<u8>, KeyError>;
    /// The host's judgement on a signature.
    fn verify(
        &self,
        algorithm: SignatureAlgorithm,
        public_key: &[u8],
        data: &[u8],
        signature: &[u8],
    ) -> Verdict;
    /// What is in an envelope for a private key or a shared secret.
    fn open(&self, key: &str, _envelope: &cms::Envelope<'_>) -> Result<Vec<u8>, HandlingError> {
        Err(HandlingError::Refused(format!(
            "this host opens nothing with {key}"
        )))
    }
    /// Keeps a private key that the PKI made, DER of OneAsymmetricKey, ECPrivateKey or
    /// RSAPrivateKey, which must be that of the SubjectPublicKeyInfo. Durable on return; a key
    /// of that name is replaced.
    fn install(
        &self,
        key: &str,
        _private_key: &[u8],
        _public_key: &[u8],
    ) -> Result<(), HandlingError> {
        Err(HandlingError::Refused(format!(
            "this host keeps no key under the name {key}"
        )))
    }
    /// Makes a key pair, unless there is one of that name and kind, and gives its DER
    /// SubjectPublicKeyInfo. Durable on return.
    fn generate(&self, key: &str, _kind: KeyKind) -> Result<Vec<u8>, HandlingError> {
        Err(HandlingError::Refused(format!(
            "this host makes no keys, such as {key}"
        )))
    }
    /// Octets that change when the key changes and tell nothing else.
    fn fingerprint(&self, key: &str, salt: &[u8]) -> Result<Vec<u8>, KeyError>;

    /// Tells the operator.
    fn emit(&self, event: Event);
}

fn no_claims() -> StorageError {
    StorageError::Unavailable("this host keeps no tasks".into())
}

/// Verifies at the host, and here what the host does not know.
pub(crate) struct HostVerifier<'h>(pub(crate) &'h dyn Host);

impl SignatureVerifier for HostVerifier<'_> {
    fn verify(
        &self,
        algorithm: SignatureAlgorithm,
        key: &PublicKeyInfo<'_>,
        data: &[u8],
        signature: &[u8],
    ) -> Verdict {
        match self.0.verify(algorithm, key.raw, data, signature) {
            Verdict::Unsupported => SoftwareVerifier.verify(algorithm, key, data, signature),
            verdict => verdict,
        }
    }
}
