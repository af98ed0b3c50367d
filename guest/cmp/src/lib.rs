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
//! * [`rules`] judges what the grammar of a message cannot say.
//! * [`cms`] opens what a private key comes in.
//! * [`path`] traces a certificate to a trust anchor.
//! * [`limits`] names every bound on what a peer can send.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod announcement;
mod body;
mod cert_rep;
pub mod cms;
mod confirm;
mod controls;
mod crmf;
pub mod der;
#[cfg(feature = "describe")]
mod describe;
mod encrypted;
mod error;
mod general_info;
mod header;
mod leniency;
pub mod limits;
mod message;
mod name;
pub mod oid;
mod parts;
pub mod path;
mod pop;
mod popo;
pub mod protection;
mod revocation;
pub mod rules;
mod san;
mod status;
mod time;
mod x509;

pub use announcement::{CaKeyUpdContent, KeyRecRepContent, RootCaKeyUpdateContent};
pub use body::{BodyType, PkiBody};
pub use cert_rep::{CertOrEncCert, CertRepMessage, CertResponse, CertifiedKeyPair};
pub use confirm::{CertStatus, ErrorMsgContent, PollRep, PollRepContent};
pub use controls::{Control, PkiArchiveOptions, PkiPublicationInfo, PubMethod, SinglePubInfo};
pub use crmf::{AttributeTypeAndValue, CertId, CertReqMsg, CertRequest, CertTemplate};
#[cfg(feature = "describe")]
pub use describe::describe;
pub use encrypted::{EncryptedKey, EncryptedValue, EnvelopedData, RecipientKind};
pub use error::{Context, Error, Result, Rule};
pub use general_info::{CrlSource, CrlStatus, InfoTypeAndValue, InfoValue};
pub use header::{PVNO_2, PVNO_3, PkiHeader};
pub use leniency::{Deviation, Leniency, Tolerant, Toleration};
pub use message::{Draft, PkiMessage};
pub use name::{GeneralName, Name, NameError};
pub use parts::{HeaderParts, Parts};
pub use pop::Challenge;
pub use popo::{PkMacValue, PopoPrivKey, PoposkInput, ProofOfPossession};
pub use revocation::{RevAnnContent, RevDetails, RevRepContent};
pub use san::{SubjectAltName, SubjectAltNameError};
pub use status::{FailInfo, PkiFreeText, PkiStatus, PkiStatusInfo};
pub use time::Time;
pub use x509::{
    AlgorithmIdentifier, Certificate, CertificationRequest, Extension, PublicKeyInfo, Role,
};
