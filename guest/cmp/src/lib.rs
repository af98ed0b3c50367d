//! Certificate Management Protocol messages (RFC 9810) under the rules of the
//! Lightweight CMP Profile (RFC 9483): decode, encode, protection and
//! certificate paths.
//!
//! The crate is the part of abide that reads hostile bytes. It does no I/O, has no
//! clock and no randomness, and allocates in proportion to its input only. Decoded
//! types borrow from the message, and the octets of header and body are kept as they
//! were received, because protection covers exactly those (RFC 9483, 3.5).
//!
//! * [`PkiMessage`] is where reading and writing begins.
//! * [`protection`] makes and checks MACs and signatures.
//! * [`path`] traces a certificate to a trust anchor.
//! * [`limits`] names every bound on what a peer can send.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod body;
mod crmf;
pub mod der;
#[cfg(feature = "describe")]
mod describe;
mod error;
mod general_info;
mod header;
pub mod limits;
mod message;
mod name;
pub mod oid;
pub mod path;
pub mod protection;
mod status;
mod time;
mod x509;

pub use body::{
    BodyType, CertOrEncCert, CertRepMessage, CertResponse, CertStatus, CertifiedKeyPair,
    ErrorMsgContent, PkiBody, PollRep, PollRepContent,
};
pub use crmf::{
    CertReqMsg, CertRequest, CertTemplate, ProofOfPossession, SubjectAltName, SubjectAltNameError,
};
#[cfg(feature = "describe")]
pub use describe::describe;
pub use error::{Context, Error, Result, Rule};
pub use general_info::InfoTypeAndValue;
pub use header::{PVNO_2, PkiHeader};
pub use message::{Draft, PkiMessage};
pub use name::{GeneralName, Name, NameError};
pub use status::{FailInfo, PkiFreeText, PkiStatus, PkiStatusInfo};
pub use time::Time;
pub use x509::{AlgorithmIdentifier, Certificate, CertificationRequest, Extension, PublicKeyInfo};
