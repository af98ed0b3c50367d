//! Protection of messages (RFC 9810, 5.1.3): by a MAC with a shared secret or by a
//! signature.
//!
//! The private half is done elsewhere, by whoever holds the key: this module reads and
//! writes the algorithms, checks what can be checked with public keys, and computes a
//! MAC where the secret is at hand.

mod hash;
mod mac;
mod signature;
mod verify;

pub use hash::Hash;
pub use mac::{MacAlgorithm, constant_time_eq};
pub use signature::{SignatureAlgorithm, SignatureVerifier, SoftwareVerifier, Verdict};
pub use verify::{
    Anchors, ProtectionError, ProtectionKind, Signer, cert_hash, protection_kind, verify_mac,
    verify_signature,
};

use core::fmt;

/// An algorithm or its parameters that are not accepted.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Unsupported {
    /// The object identifier in dotted form, with its name where it is known.
    Algorithm(alloc::string::String),
    /// The parameters of a known algorithm cannot be read.
    Parameters(&'static str),
    /// A parameter beyond its bound in [`crate::limits`].
    Limit {
        /// Which parameter.
        what: &'static str,
        /// What the peer asked for.
        asked: u64,
        /// The bound.
        limit: u64,
    },
}

impl Unsupported {
    pub(crate) fn algorithm(oid: crate::oid::Oid<'_>) -> Self {
        Self::Algorithm(match oid.name() {
            Some(name) => alloc::format!("{name} ({oid})"),
            None => alloc::format!("{oid}"),
        })
    }
}

impl fmt::Display for Unsupported {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Algorithm(algorithm) => write!(f, "the algorithm {algorithm} is not supported"),
            Self::Parameters(what) => f.write_str(what),
            Self::Limit { what, asked, limit } => {
                write!(f, "{what} {asked} is beyond the accepted {limit}")
            }
        }
    }
}

impl core::error::Error for Unsupported {}
