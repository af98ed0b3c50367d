//! What is stored of an order.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use abide_cmp::Certificate;
use abide_policy::order::OrderState;
use abide_policy::renewal::Validity;
use abide_policy::retry::Attempts;
use minicbor::bytes::ByteVec;
use minicbor::{Decode, Encode};

use crate::driver::Issued;
use crate::failure::Failure;
use crate::host::{Change, Entry, Envelope, KeyKind, Put};
use crate::limits;
use crate::record::{HistoryEntry, Unreadable, decode, encode};

/// The family of orders that stand: what a single enrollment calls an order is only the link
/// from one of these to its transaction.
pub(crate) const STANDING_ORDER: &str = "standing-order";
/// The family of the names that clients gave their wishes.
pub(crate) const CLIENT_KEY: &str = "client-key";

/// What is to be certified.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub enum Request {
    /// A DER CertificationRequest.
    #[n(0)]
    Csr(#[n(0)] ByteVec),
    /// A name, and a key that the host makes.
    #[n(1)]
    Subject(#[n(0)] Subject),
}

/// A name, and a key that the host makes.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct Subject {
    /// The subject as text.
    #[n(0)]
    pub subject: String,
    /// Subject alternative names as text.
    #[n(1)]
    pub sans: Vec<String>,
    /// The kind of key.
    #[n(2)]
    pub key: KeyKind,
    /// Whether each certificate gets a new key.
    #[n(3)]
    pub rotate: bool,
}

/// A wish for a certificate.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct Wish {
    /// Chosen by the client, and unique for its principal.
    #[n(0)]
    pub key: Option<String>,
    /// The account; may be empty.
    #[n(1)]
    pub account: String,
    /// The application; may be empty.
    #[n(2)]
    pub application: String,
    /// Where it comes from; may be empty.
    #[n(3)]
    pub origin: String,
    /// Who is authenticated; may be empty.
    #[n(4)]
    pub principal: String,
    /// The name of the issuer in the configuration.
    #[n(5)]
    pub issuer: String,
    /// What is to be certified.
    #[n(6)]
    pub request: Request,
    /// Whether a certificate that nears its end is followed by another one.
    #[n(7)]
    pub renews: bool,
}

/// The attempt that is under way: what must not change while its transaction is open.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub(crate) struct Attempt {
    /// The name of the key that is certified; none for a CSR.
    #[n(0)]
    pub(crate) key: Option<String>,
    /// Whether it is a kur under the certificate in use.
    #[n(1)]
    pub(crate) updates: bool,
    /// Its endpoint; none where the issuer has but one.
    #[n(2)]
    pub(crate) server: Option<String>,
}

/// An order.
#[derive(Clone, Debug, Encode, Decode)]
pub struct Order {
    /// Its id.
    #[n(0)]
    pub id: String,
    /// What is wished for.
    #[n(1)]
    pub wish: Wish,
    /// As [`OrderState`] has it.
    #[n(2)]
    pub(crate) state: String,
    /// One line: why it stands where it stands.
    #[n(3)]
    pub reason: String,
    /// Grows with every change.
    #[n(4)]
    pub revision: u64,
    /// When it was accepted.
    #[n(5)]
    pub created_ms: u64,
    /// When it changed last.
    #[n(6)]
    pub updated_ms: u64,
    /// The policy's state, as JSON.
    #[n(7)]
    pub(crate) attempts: String,
    /// When the certificate is to be renewed.
    #[n(8)]
    pub renewal_ms: Option<u64>,
    /// The last failure; none once a certificate was issued.
    #[n(9)]
    pub failure: Option<Failure>,
    /// The newest certificate, leaf first.
    #[n(10)]
    pub chain: Vec<ByteVec>,
    /// Its notBefore.
    #[n(11)]
    pub not_before_ms: Option<u64>,
    /// Its notAfter.
    #[n(12)]
    pub not_after_ms: Option<u64>,
    /// The host's name of its key.
    #[n(13)]
    pub key_name: Option<String>,
    /// How many certificates were issued.
    #[n(14)]
    pub(crate) issued: u32,
    /// The last transaction.
    #[n(15)]
    pub transaction_id: Option<String>,
    /// The last transaction whose end is part of this record.
    #[n(16)]
    pub(crate) settled: Option<String>,
    /// The attempt that is under way.
    #[n(17)]
    pub(crate) attempt: Option<Attempt>,
    /// While it is running: when it goes on.
    #[n(18)]
    pub(crate) goes_on_ms: Option<u64>,
    /// What was decided, oldest first.
    #[n(19)]
    pub history: Vec<HistoryEntry>,
}

impl Order {
    /// Where it stands.
    pub fn state(&self) -> OrderState {
        OrderState::parse(&self.state).unwrap_or(OrderState::Error)
    }

    /// When the next attempt may start, or the one under way goes on.
    pub fn next_attempt_ms(&self) -> Option<u64> {
        match self.state() {
            OrderState::Running => self.goes_on_ms,
            OrderState::Canceled => None,
            _ => self.attempts().next_attempt_ms,
        }
    }

    /// Consecutive failed issuances.
    pub fn issuance_attempts(&self) -> Option<u32> {
        let attempts = self.attempts().issuance_attempts?;
        Some(u32::try_from(attempts.max(0)).unwrap_or(u32::MAX))
    }

    /// When the last one failed.
    pub fn last_failure_ms(&self) -> Option<u64> {
        self.attempts().last_failure_ms
    }

    /// What the policy knows. It was written by [`Order::set_attempts`]; `read` refuses what
    /// was not.
    pub(crate) fn attempts(&self) -> Attempts {
        serde_json::from_str(&self.attempts).unwrap_or_default()
    }

    pub(crate) fn set_attempts(&mut self, attempts: &Attempts) {
        self.attempts = to_json(attempts);
    }

    /// The validity of the certificate in use.
    pub(crate) fn in_use(&self) -> Option<Validity> {
        Some(Validity {
            not_before_ms: self.not_before_ms?,
            not_after_ms: self.not_after_ms?,
        })
    }

    pub(crate) fn set_state(&mut self, state: OrderState, reason: impl Into<String>) {
        self.state = state.as_str().into();
        self.reason = reason.into();
    }

    /// The certificate that a transaction brought is the newest one.
    pub(crate) fn take_certificate(&mut self, issued: &Issued) -> Validity {
        let validity = validity(&issued.chain);
        self.chain = issued.chain.iter().cloned().map(ByteVec::from).collect();
        self.not_before_ms = Some(validity.not_before_ms);
        self.not_after_ms = Some(validity.not_after_ms);
        self.key_name = self.attempt.take().and_then(|attempt| attempt.key);
        self.issued = self.issued.saturating_add(1);
        self.failure = None;
        validity
    }

    /// Adds a line, and drops one from the middle when there are too many.
    pub(crate) fn note(&mut self, now_ms: u64, text: impl Into<String>) {
        if self.history.len() >= limits::HISTORY {
            self.history.remove(limits::HISTORY_HEAD);
        }
        self.history.push(HistoryEntry {
            at_ms: now_ms,
            text: text.into(),
        });
    }

    /// Writes the next revision.
    pub(crate) fn put(&mut self, expected: Option<u64>, now_ms: u64) -> Change {
        self.revision += 1;
        self.updated_ms = now_ms;
        Change::Put(Put {
            envelope: Envelope {
                kind: STANDING_ORDER.into(),
                id: self.id.clone(),
                owner: self.wish.principal.clone(),
                account: self.wish.account.clone(),
                state: self.state.clone(),
                due_ms: None,
                updated_ms: now_ms,
            },
            expected,
            body: encode(self),
        })
    }

    pub(crate) fn read(entry: &Entry) -> Result<Self, Unreadable> {
        let order: Self = decode(&entry.body, entry)?;
        let what = format!("the order {}", order.id);
        if OrderState::parse(&order.state).is_none() {
            return Err(Unreadable(format!("{what} is in no known state")));
        }
        // A count of failures that cannot be read must never pass for none.
        if let Err(error) = serde_json::from_str::<Attempts>(&order.attempts) {
            return Err(Unreadable(format!("{what}: its attempts: {error}")));
        }
        Ok(order)
    }
}

/// The validity of the leaf. One that cannot be read was never accepted.
fn validity(chain: &[Vec<u8>]) -> Validity {
    let leaf = chain
        .first()
        .and_then(|der| Certificate::from_der(der).ok());
    let ms = |seconds: i64| u64::try_from(seconds).unwrap_or(0).saturating_mul(1000);
    match leaf {
        Some(leaf) => Validity {
            not_before_ms: ms(leaf.not_before.unix()),
            not_after_ms: ms(leaf.not_after.unix()),
        },
        None => Validity {
            not_before_ms: 0,
            not_after_ms: 0,
        },
    }
}

pub(crate) fn to_json(attempts: &Attempts) -> String {
    match serde_json::to_string(attempts) {
        Ok(text) => text,
        Err(_) => unreachable!("a String takes every octet, and every key is text"),
    }
}

/// The name that a client gave its wish.
#[derive(Clone, Debug, Encode, Decode)]
pub(crate) struct ClientKey {
    /// Its order.
    #[n(0)]
    pub(crate) order: String,
    /// SHA-256 over the wish.
    #[n(1)]
    pub(crate) digest: ByteVec,
}

impl ClientKey {
    pub(crate) fn put(&self, id: String, now_ms: u64) -> Change {
        Change::Put(Put {
            envelope: Envelope {
                kind: CLIENT_KEY.into(),
                id,
                owner: self.order.clone(),
                account: String::new(),
                state: String::new(),
                due_ms: None,
                updated_ms: now_ms,
            },
            expected: None,
            body: encode(self),
        })
    }

    pub(crate) fn read(entry: &Entry) -> Result<Self, Unreadable> {
        decode(&entry.body, entry)
    }
}
