//! A CMP transaction (RFC 9810, 9483) as a state machine that survives the death of
//! its host at any point.
//!
//! The rules everything here obeys:
//!
//! * Whatever is needed to go on is stored **before** a message is sent. A lost write
//!   means that the message is not sent.
//! * A message that is sent again is the same octet for octet, under the same
//!   transactionID. A lost answer is never met with a second enrollment.
//! * An order has at most one open transaction.
//! * A private key that the PKI made is at the host before the chain is stored.
//! * A validated chain is stored before certConf is sent and never thrown away after.
//! * An answer that is not authenticated changes nothing but what the operator is told.
//!
//! [`begin`] and [`resume`] do all that can be done now and return; where time must
//! pass, they say until when. Time, randomness and I/O come in through [`Host`].
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod certificate;
mod deviations;
mod driver;
mod enrollment;
mod failure;
mod host;
mod information;
mod key_generation;
pub mod limits;
mod machine;
mod mutation;
pub mod orders;
mod plan;
mod profile;
mod record;
mod registration;
mod reply;
mod request;
mod revocation;
pub mod schedule;
pub mod zombies;

pub use deviations::{Deviation, Deviations};
pub use driver::{
    Done, Error, Issued, Outcome, Progress, Waiting, begin, begin_after, get, list, resume,
};
pub use enrollment::{
    CertificateCredential, Credential, Enrollment, Generated, Information, Limits, MacKind,
    Operation, Registration, Revocation, Revoked, SharedSecret, Template, Want,
};
pub use failure::{Failure, FailureClass, Fault};
pub use host::{
    Change, Claim, Claimed, Claims, Entry, Envelope, Event, Filter, HandlingError, Holding, Host,
    KeyError, KeyKind, Lease, Level, NetworkError, Page, Put, Removal, Response, StorageError,
};
pub use information::Answer;
#[cfg(feature = "mutations")]
pub use mutation::Mutation;
pub use record::{Confirmation, HistoryEntry, Phase, TransactionRecord};
