use alloc::vec::Vec;

use super::{Hash, Policy, SignatureAlgorithm};
use crate::x509::Certificate;

/// certHash of a certConf (RFC 9810, 5.3.18).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CertHash {
    /// The hash function.
    pub hash: Hash,
    /// The digest of the certificate.
    pub value: Vec<u8>,
    /// Whether the certificate's signature algorithm leaves the hash open, so that hashAlg
    /// must name it, which takes pvno 3.
    pub needs_hash_alg: bool,
}

/// certHash of a certificate: with the hash of its signature algorithm, or where RFC 9481, 3.3
/// names another for it, with that. Where there is neither, as for ML-DSA, with SHA-512 and
/// hashAlg. That is so for Ed448 as well, whose SHAKE256 is not built in, and for every
/// algorithm that is not known: a certificate can be refused by certConf whatever signed it.
pub fn cert_hash(certificate: &Certificate<'_>) -> CertHash {
    let algorithm =
        SignatureAlgorithm::from_identifier(&certificate.signature_algorithm, Policy::ALLOW_SHA1);
    let implied = match algorithm {
        Ok(SignatureAlgorithm::Ed25519) => Some(Hash::Sha512),
        Ok(algorithm) => algorithm.hash(),
        Err(_) => None,
    };
    let hash = implied.unwrap_or(Hash::Sha512);
    CertHash {
        hash,
        value: hash.digest(certificate.raw),
        needs_hash_alg: implied.is_none(),
    }
}
