use alloc::vec::Vec;

use sha2::Digest;

use super::Unsupported;
use crate::limits;
use crate::oid::{self, Oid};
use crate::x509::AlgorithmIdentifier;

/// A hash function (RFC 9481, 2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "each is the hash function of that name")]
pub enum Hash {
    Sha1,
    Sha224,
    Sha256,
    Sha384,
    Sha512,
}

impl Hash {
    const OIDS: [(Self, Oid<'static>); 5] = [
        (Self::Sha1, oid::SHA1),
        (Self::Sha224, oid::SHA224),
        (Self::Sha256, oid::SHA256),
        (Self::Sha384, oid::SHA384),
        (Self::Sha512, oid::SHA512),
    ];

    const HMACS: [(Self, Oid<'static>); 6] = [
        (Self::Sha1, oid::HMAC_SHA1),
        (Self::Sha224, oid::HMAC_SHA224),
        (Self::Sha256, oid::HMAC_SHA256),
        (Self::Sha384, oid::HMAC_SHA384),
        (Self::Sha512, oid::HMAC_SHA512),
        // The name under which OpenSSL and RFC 4210 know HMAC with SHA-1.
        (Self::Sha1, oid::HMAC_SHA1_IPSEC),
    ];

    /// The hash function of this name.
    pub fn from_oid(oid: Oid<'_>) -> Option<Self> {
        Self::OIDS
            .iter()
            .find(|(_, known)| *known == oid)
            .map(|&(hash, _)| hash)
    }

    /// The hash function of the HMAC of this name.
    pub fn from_hmac_oid(oid: Oid<'_>) -> Option<Self> {
        Self::HMACS
            .iter()
            .find(|(_, known)| *known == oid)
            .map(|&(hash, _)| hash)
    }

    /// The hash function an identifier names, whose parameters are absent or NULL
    /// (RFC 5754, 2).
    pub fn from_identifier(identifier: &AlgorithmIdentifier<'_>) -> Result<Self, Unsupported> {
        let hash = Self::from_oid(identifier.oid);
        let hash = hash.ok_or_else(|| Unsupported::algorithm(identifier.oid))?;
        if !identifier.has_no_parameters() {
            return Err(Unsupported::Parameters("a hash function with parameters"));
        }
        Ok(hash)
    }

    /// The hash function of the HMAC an identifier names, whose parameters are absent or
    /// NULL.
    pub fn from_hmac_identifier(identifier: &AlgorithmIdentifier<'_>) -> Result<Self, Unsupported> {
        let hash = Self::from_hmac_oid(identifier.oid);
        let hash = hash.ok_or_else(|| Unsupported::algorithm(identifier.oid))?;
        if !identifier.has_no_parameters() {
            return Err(Unsupported::Parameters("an HMAC with parameters"));
        }
        Ok(hash)
    }

    /// What one application costs, in those of SHA-256.
    pub(super) fn cost(self) -> u32 {
        match self {
            Self::Sha1 | Self::Sha224 | Self::Sha256 => 1,
            Self::Sha384 | Self::Sha512 => limits::WIDE_HASH_COST,
        }
    }

    /// Its object identifier.
    pub fn oid(self) -> Oid<'static> {
        Self::OIDS[self as usize].1
    }

    /// The object identifier of its HMAC.
    pub fn hmac_oid(self) -> Oid<'static> {
        Self::HMACS[self as usize].1
    }

    /// Its identifier, without parameters (RFC 5754, 2).
    pub fn identifier(self) -> AlgorithmIdentifier<'static> {
        AlgorithmIdentifier::bare(self.oid())
    }

    /// Octets of a digest.
    pub fn output_length(self) -> usize {
        match self {
            Self::Sha1 => 20,
            Self::Sha224 => 28,
            Self::Sha256 => 32,
            Self::Sha384 => 48,
            Self::Sha512 => 64,
        }
    }

    /// The digest of `data`.
    pub fn digest(self, data: &[u8]) -> Vec<u8> {
        match self {
            Self::Sha1 => sha1::Sha1::digest(data).to_vec(),
            Self::Sha224 => sha2::Sha224::digest(data).to_vec(),
            Self::Sha256 => sha2::Sha256::digest(data).to_vec(),
            Self::Sha384 => sha2::Sha384::digest(data).to_vec(),
            Self::Sha512 => sha2::Sha512::digest(data).to_vec(),
        }
    }

    /// The digest of the digest, over and over: as many as `times`, which is at least 1. It
    /// stays in place, because there can be a hundred thousand.
    pub(crate) fn repeated(self, data: &[u8], times: u32) -> Vec<u8> {
        fn run<D: Digest>(data: &[u8], times: u32) -> Vec<u8> {
            let mut digest = D::digest(data);
            for _ in 1..times {
                digest = D::digest(&digest);
            }
            digest.to_vec()
        }
        match self {
            Self::Sha1 => run::<sha1::Sha1>(data, times),
            Self::Sha224 => run::<sha2::Sha224>(data, times),
            Self::Sha256 => run::<sha2::Sha256>(data, times),
            Self::Sha384 => run::<sha2::Sha384>(data, times),
            Self::Sha512 => run::<sha2::Sha512>(data, times),
        }
    }
}
