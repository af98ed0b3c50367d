//! Protection of messages (RFC 9810, 5.1.3): by a MAC with a shared secret or by a
//! signature.
//!
//! The private half is done elsewhere, by whoever holds the key: this module reads and
//! writes the algorithms, checks what can be checked with public keys, and computes a
//! MAC where the secret is at hand.
//!
//! # SHA-1
//!
//! Signatures with SHA-1 prove nothing any more and are refused, and so is SHA-1 where a
//! key is derived (the owf of id-PasswordBasedMac, the prf of PBKDF2). HMAC with SHA-1 is
//! not broken, and `openssl cmp` protects with it unless told otherwise: it is accepted as
//! the mac of id-PasswordBasedMac and nowhere else. [`Policy::allow_sha1`] lifts all of
//! this for old peers.

mod cert_hash;
mod hash;
mod kdf;
mod mac;
mod modular;
mod rsa;
mod signature;
mod software;
mod verify;

pub use cert_hash::{CertHash, cert_hash};
pub use hash::Hash;
pub(crate) use kdf::Pbkdf2;
pub use kdf::{Kdf, KemParameters};
pub use mac::{MacAlgorithm, compute_mac, constant_time_eq};
pub use signature::{SignatureAlgorithm, SignatureVerifier, Verdict};
pub use software::SoftwareVerifier;
pub use verify::{
    Anchors, ProtectionError, ProtectionKind, Signer, protection_kind, verify_kem_mac, verify_mac,
    verify_signature,
};

use core::fmt;

use crate::oid::Oid;
use crate::x509::PublicKeyInfo;

/// What is accepted beyond the rule. The default is the rule.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Policy {
    /// SHA-1 in signatures and in the derivation of keys, for peers that know nothing else.
    pub allow_sha1: bool,
}

impl Policy {
    /// Everything that can be checked, SHA-1 included.
    pub const ALLOW_SHA1: Self = Self { allow_sha1: true };

    pub(crate) fn admit(self, hash: Hash, algorithm: Oid<'_>) -> Result<(), Unsupported> {
        if hash == Hash::Sha1 && !self.allow_sha1 {
            return Err(Unsupported::Sha1(named(algorithm)));
        }
        Ok(())
    }
}

/// An algorithm or its parameters that are not accepted.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Unsupported {
    /// The object identifier in dotted form, with its name where it is known.
    Algorithm(alloc::string::String),
    /// An algorithm that relies on SHA-1, which [`Policy::allow_sha1`] would accept.
    Sha1(alloc::string::String),
    /// The parameters of a known algorithm cannot be read, or are not accepted.
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
    pub(crate) fn algorithm(oid: Oid<'_>) -> Self {
        Self::Algorithm(named(oid))
    }

    /// A signature that no verifier at hand can check: for ECDSA it is the curve that is
    /// missing.
    pub(crate) fn signature(algorithm: SignatureAlgorithm, key: &PublicKeyInfo<'_>) -> Self {
        match algorithm {
            SignatureAlgorithm::Ecdsa(_) => {
                Self::algorithm(key.curve().unwrap_or(key.algorithm.oid))
            }
            other => Self::algorithm(other.oid()),
        }
    }

    pub(crate) fn beyond(what: &'static str, asked: usize, limit: usize) -> Self {
        Self::Limit {
            what,
            asked: asked as u64,
            limit: limit as u64,
        }
    }
}

fn named(oid: Oid<'_>) -> alloc::string::String {
    match oid.name() {
        Some(name) => alloc::format!("{name} ({oid})"),
        None => alloc::format!("{oid}"),
    }
}

impl fmt::Display for Unsupported {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Algorithm(algorithm) => write!(f, "the algorithm {algorithm} is not supported"),
            Self::Sha1(algorithm) => write!(
                f,
                "{algorithm} relies on SHA-1, which is refused unless it is allowed \
                 (allow-sha1)"
            ),
            Self::Parameters(what) => f.write_str(what),
            Self::Limit { what, asked, limit } => {
                write!(f, "{what} {asked} is beyond the accepted {limit}")
            }
        }
    }
}

impl core::error::Error for Unsupported {}
