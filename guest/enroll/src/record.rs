//! What is stored. Bodies are CBOR behind one octet of schema version; fields are
//! numbered, so that older records stay readable when fields are added.

use alloc::string::String;
use alloc::vec::Vec;

use minicbor::bytes::ByteVec;
use minicbor::{Decode, Encode};

use crate::enrollment::Operation;
use crate::failure::Failure;
use crate::host::{Change, Entry, Envelope, Put};
use crate::limits;

/// The family of transactions.
pub(crate) const TRANSACTION: &str = "transaction";
/// The family of orders.
pub(crate) const ORDER: &str = "order";

/// The schema that is written. A record with a higher one comes from a newer abide.
const SCHEMA: u8 = 1;

/// Where a transaction stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode)]
#[cbor(index_only)]
pub enum Phase {
    /// The request is being sent or its answer awaited.
    #[n(0)]
    Enrolling,
    /// The CA asked for patience.
    #[n(1)]
    Polling,
    /// A verdict on a certificate is being sent or its acknowledgement awaited.
    #[n(2)]
    Confirming,
    /// The chain is stored; nothing is left to do.
    #[n(3)]
    Issued,
    /// There will be no certificate; the failure says why.
    #[n(4)]
    Failed,
    /// Revoked, or answered; there is no certificate to it.
    #[n(5)]
    Done,
}

impl Phase {
    /// One lowercase word.
    pub fn name(self) -> &'static str {
        match self {
            Self::Enrolling => "enrolling",
            Self::Polling => "polling",
            Self::Confirming => "confirming",
            Self::Issued => "issued",
            Self::Failed => "failed",
            Self::Done => "done",
        }
    }

    /// Whether something is left to do.
    pub fn is_open(self) -> bool {
        !matches!(self, Self::Issued | Self::Failed | Self::Done)
    }
}

/// How the CA took the confirmation of a stored certificate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode)]
#[cbor(index_only)]
pub enum Confirmation {
    /// Not settled yet.
    #[n(0)]
    Open,
    /// pkiConf, or certConfirmed for a repeated certConf.
    #[n(1)]
    Confirmed,
    /// The CA granted implicit confirmation.
    #[n(2)]
    Implicit,
    /// The certificate is kept, but the CA never acknowledged.
    #[n(3)]
    Unacknowledged,
}

/// One line of a transaction's history.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct HistoryEntry {
    /// Milliseconds since the Unix epoch.
    #[n(0)]
    pub at_ms: u64,
    /// One line.
    #[n(1)]
    pub text: String,
}

/// A transaction, as much of it as is needed to go on after a crash.
#[derive(Clone, Debug, Encode, Decode)]
#[expect(
    missing_docs,
    reason = "documented by the WIT record of the same fields, or below"
)]
pub struct TransactionRecord {
    #[n(0)]
    pub transaction_id: ByteVec,
    #[n(1)]
    pub order: String,
    #[n(2)]
    pub account: String,
    #[n(3)]
    pub operation: Operation,
    #[n(4)]
    pub server: String,
    #[n(5)]
    pub phase: Phase,
    #[n(6)]
    pub started_ms: u64,
    #[n(7)]
    pub deadline_ms: u64,
    #[n(8)]
    pub updated_ms: u64,
    #[n(9)]
    pub csr_digest: ByteVec,
    #[n(10)]
    pub issuer_digest: ByteVec,
    #[n(11)]
    pub configuration_digest: ByteVec,
    /// The exact octets of the last message, for sending again.
    #[n(12)]
    pub last_request: ByteVec,
    /// Whether `last_request` still waits for its answer.
    #[n(13)]
    pub pending: bool,
    /// When to send again or to poll; none means at once.
    #[n(14)]
    pub next_ms: Option<u64>,
    /// senderNonce of `last_request`.
    #[n(15)]
    pub last_nonce: ByteVec,
    /// senderNonce of the request whose answer is delayed (RFC 9483, 4.4).
    #[n(16)]
    pub request_nonce: ByteVec,
    /// senderNonce of the CA's last message, to be echoed.
    #[n(17)]
    pub recip_nonce: Option<ByteVec>,
    /// sender of the CA's last message, DER GeneralName content of a directoryName.
    #[n(18)]
    pub peer_name: Option<ByteVec>,
    /// The certReqId that is polled for; set while the CA says waiting.
    #[n(19)]
    pub cert_req_id: Option<i64>,
    /// The signer of the CA's messages, kept for those that bring no certificate.
    #[n(20)]
    pub response_signer: Option<ByteVec>,
    #[n(21)]
    pub polls: u32,
    /// Consecutive transmissions of `last_request` that brought no usable answer.
    #[n(22)]
    pub resends: u32,
    /// Whether `last_request` may have reached the CA.
    #[n(23)]
    pub maybe_delivered: bool,
    /// Leaf first; empty until the certificate is validated.
    #[n(24)]
    pub chain: Vec<ByteVec>,
    #[n(25)]
    pub ca_pubs: Vec<ByteVec>,
    #[n(26)]
    pub confirmation: Confirmation,
    /// What the person should know about an issued certificate.
    #[n(27)]
    pub note: String,
    /// In Failed, why. In Confirming, why the certificate is being refused.
    #[n(28)]
    pub failure: Option<Failure>,
    /// The last thing that went wrong while the transaction is open.
    #[n(29)]
    pub trouble: Option<Failure>,
    #[n(30)]
    pub history: Vec<HistoryEntry>,
    /// Transmissions of `last_request` that may have reached the CA. After more than one, a
    /// refusal does not tell what became of the first.
    #[n(31)]
    pub deliveries: u32,
    /// DER InfoTypeAndValue of a genp.
    #[n(32)]
    pub information: Option<ByteVec>,
    /// The version that the CA asked for by unsupportedVersion (RFC 9810, 7).
    #[n(40)]
    pub pvno: Option<u8>,
    /// The deviations that were allowed when the last answer was judged.
    #[n(41)]
    pub allowed: Option<u8>,
}

impl TransactionRecord {
    /// The transactionID in lowercase hexadecimal.
    pub fn id(&self) -> String {
        hex(&self.transaction_id)
    }

    /// Whether the CA has certainly never heard of this transaction.
    pub(crate) fn never_left(&self) -> bool {
        self.phase == Phase::Enrolling && self.deliveries == 0
    }

    /// When something is to be done next; none when it has ended.
    pub fn due_ms(&self) -> Option<u64> {
        self.phase
            .is_open()
            .then(|| self.next_ms.unwrap_or(self.updated_ms))
    }

    /// Adds a line, and drops one from the middle when there are too many.
    pub(crate) fn note_history(&mut self, now_ms: u64, text: impl Into<String>) {
        if self.history.len() >= limits::HISTORY {
            self.history.remove(limits::HISTORY_HEAD);
        }
        self.history.push(HistoryEntry {
            at_ms: now_ms,
            text: text.into(),
        });
    }

    pub(crate) fn put(&self, expected: Option<u64>) -> Change {
        Change::Put(Put {
            envelope: Envelope {
                kind: TRANSACTION.into(),
                id: self.id(),
                owner: self.order.clone(),
                account: self.account.clone(),
                state: self.phase.name().into(),
                due_ms: self.due_ms(),
                updated_ms: self.updated_ms,
            },
            expected,
            body: encode(self),
        })
    }

    /// Reads a stored transaction.
    pub fn read(entry: &Entry) -> Result<Self, crate::Error> {
        Ok(Self::from_entry(entry)?)
    }

    pub(crate) fn from_entry(entry: &Entry) -> Result<Self, Unreadable> {
        decode(&entry.body, entry)
    }
}

/// An order, as far as a single enrollment needs one: which transaction serves it.
#[derive(Clone, Debug, Encode, Decode)]
pub(crate) struct OrderRecord {
    #[n(0)]
    pub(crate) transaction_id: ByteVec,
}

impl OrderRecord {
    pub(crate) fn put(&self, order: &TransactionRecord, expected: Option<u64>) -> Change {
        Change::Put(Put {
            envelope: Envelope {
                kind: ORDER.into(),
                id: order.order.clone(),
                owner: String::new(),
                account: order.account.clone(),
                state: order.phase.name().into(),
                due_ms: None,
                updated_ms: order.updated_ms,
            },
            expected,
            body: encode(self),
        })
    }

    pub(crate) fn from_entry(entry: &Entry) -> Result<Self, Unreadable> {
        decode(&entry.body, entry)
    }
}

/// A stored record that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Unreadable(pub(crate) String);

pub(crate) fn encode<T: Encode<()>>(value: &T) -> Vec<u8> {
    let mut body = alloc::vec![SCHEMA];
    match minicbor::encode(value, &mut body) {
        Ok(()) => body,
        Err(_) => unreachable!("a Vec takes every octet and no field has an encoder that fails"),
    }
}

pub(crate) fn decode<'b, T: Decode<'b, ()>>(
    body: &'b [u8],
    entry: &Entry,
) -> Result<T, Unreadable> {
    let what = alloc::format!("the {} {}", entry.envelope.kind, entry.envelope.id);
    match body.split_first() {
        Some((&SCHEMA, rest)) => minicbor::decode(rest)
            .map_err(|error| Unreadable(alloc::format!("{what} is damaged: {error}"))),
        Some((&schema, _)) if schema > SCHEMA => Err(Unreadable(alloc::format!(
            "{what} was written by a newer abide (schema {schema}, this one reads up to {SCHEMA})"
        ))),
        _ => Err(Unreadable(alloc::format!(
            "{what} is damaged: it has no schema"
        ))),
    }
}

/// Lowercase hexadecimal.
pub(crate) fn hex(octets: &[u8]) -> String {
    use core::fmt::Write as _;
    let mut text = String::with_capacity(octets.len() * 2);
    for octet in octets {
        let _ = write!(text, "{octet:02x}");
    }
    text
}
