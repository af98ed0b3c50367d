use alloc::vec::Vec;

use p256::ecdsa::signature::hazmat::PrehashVerifier;
use rsa::traits::SignatureScheme;

use super::{Hash, Unsupported};
use crate::der::{Reader, Writer};
use crate::limits;
use crate::oid::{self, Oid};
use crate::x509::{AlgorithmIdentifier, PublicKeyInfo};

/// A signature algorithm (RFC 9481, 3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SignatureAlgorithm {
    /// RSASSA-PKCS1-v1_5 with this hash.
    RsaPkcs1(Hash),
    /// ECDSA with this hash; the curve is a matter of the key.
    Ecdsa(Hash),
}

impl SignatureAlgorithm {
    /// SHA-1 is left out on purpose: signatures with it prove nothing any more.
    const OIDS: [(Self, Oid<'static>); 8] = [
        (Self::RsaPkcs1(Hash::Sha224), oid::RSA_SHA224),
        (Self::RsaPkcs1(Hash::Sha256), oid::RSA_SHA256),
        (Self::RsaPkcs1(Hash::Sha384), oid::RSA_SHA384),
        (Self::RsaPkcs1(Hash::Sha512), oid::RSA_SHA512),
        (Self::Ecdsa(Hash::Sha224), oid::ECDSA_SHA224),
        (Self::Ecdsa(Hash::Sha256), oid::ECDSA_SHA256),
        (Self::Ecdsa(Hash::Sha384), oid::ECDSA_SHA384),
        (Self::Ecdsa(Hash::Sha512), oid::ECDSA_SHA512),
    ];

    /// Reads the algorithm.
    pub fn from_identifier(identifier: &AlgorithmIdentifier<'_>) -> Result<Self, Unsupported> {
        let known = Self::OIDS.iter().find(|(_, oid)| *oid == identifier.oid);
        let Some(&(algorithm, _)) = known else {
            return Err(Unsupported::algorithm(identifier.oid));
        };
        if !identifier.has_no_parameters() {
            return Err(Unsupported::Parameters(
                "a signature algorithm with parameters",
            ));
        }
        Ok(algorithm)
    }

    /// The algorithm to sign with, given the public half of the key.
    pub fn for_key(key: &PublicKeyInfo<'_>) -> Result<Self, Unsupported> {
        match key.algorithm.oid {
            oid::RSA_ENCRYPTION => Ok(Self::RsaPkcs1(Hash::Sha256)),
            oid::EC_PUBLIC_KEY => match key.curve() {
                Some(oid::P256) => Ok(Self::Ecdsa(Hash::Sha256)),
                Some(oid::P384) => Ok(Self::Ecdsa(Hash::Sha384)),
                Some(curve) => Err(Unsupported::algorithm(curve)),
                None => Err(Unsupported::Parameters("an elliptic curve without a name")),
            },
            other => Err(Unsupported::algorithm(other)),
        }
    }

    /// The identifier: for RSA with NULL, for ECDSA without parameters (RFC 9481, 3).
    pub fn identifier(self) -> AlgorithmIdentifier<'static> {
        let known = Self::OIDS.iter().find(|(algorithm, _)| *algorithm == self);
        let oid = known.map_or(oid::ECDSA_SHA256, |&(_, oid)| oid);
        match self {
            Self::RsaPkcs1(_) => AlgorithmIdentifier::with_null(oid),
            Self::Ecdsa(_) => AlgorithmIdentifier::bare(oid),
        }
    }

    /// The hash of the signature, which is also that of certHash (RFC 9810, 5.3.18).
    pub fn hash(self) -> Hash {
        match self {
            Self::RsaPkcs1(hash) | Self::Ecdsa(hash) => hash,
        }
    }
}

/// The judgement on a signature.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It was made with the private half of the key.
    Valid,
    /// It was not, or is malformed.
    Invalid,
    /// The kind of key is not known to the verifier.
    Unsupported,
}

/// Checks signatures, here or at a host with faster arithmetic.
pub trait SignatureVerifier {
    /// Judges whether `signature` over `data` was made with the private half of `key`.
    fn verify(
        &self,
        algorithm: SignatureAlgorithm,
        key: &PublicKeyInfo<'_>,
        data: &[u8],
        signature: &[u8],
    ) -> Verdict;
}

/// Checks signatures with this crate's own arithmetic.
#[derive(Clone, Copy, Debug, Default)]
pub struct SoftwareVerifier;

impl SignatureVerifier for SoftwareVerifier {
    fn verify(
        &self,
        algorithm: SignatureAlgorithm,
        key: &PublicKeyInfo<'_>,
        data: &[u8],
        signature: &[u8],
    ) -> Verdict {
        let valid = match algorithm {
            SignatureAlgorithm::RsaPkcs1(hash) => rsa_pkcs1(hash, key, data, signature),
            SignatureAlgorithm::Ecdsa(hash) => match key.curve() {
                Some(oid::P256) => p256_ecdsa(&hash.digest(data), key.key, signature),
                Some(oid::P384) => p384_ecdsa(&hash.digest(data), key.key, signature),
                Some(_) => return Verdict::Unsupported,
                None => None,
            },
        };
        if valid.is_some() {
            Verdict::Valid
        } else {
            Verdict::Invalid
        }
    }
}

fn p256_ecdsa(digest: &[u8], key: &[u8], signature: &[u8]) -> Option<()> {
    let key = p256::ecdsa::VerifyingKey::from_sec1_bytes(key).ok()?;
    let signature = p256::ecdsa::Signature::from_der(signature).ok()?;
    key.verify_prehash(&widened::<16>(digest), &signature).ok()
}

fn p384_ecdsa(digest: &[u8], key: &[u8], signature: &[u8]) -> Option<()> {
    let key = p384::ecdsa::VerifyingKey::from_sec1_bytes(key).ok()?;
    let signature = p384::ecdsa::Signature::from_der(signature).ok()?;
    key.verify_prehash(&widened::<24>(digest), &signature).ok()
}

/// A digest of at least `N` octets, which the arithmetic insists on: zeros in front do
/// not change the number that a short digest stands for.
fn widened<const N: usize>(digest: &[u8]) -> Vec<u8> {
    let mut wide = alloc::vec![0; N.saturating_sub(digest.len())];
    wide.extend_from_slice(digest);
    wide
}

fn rsa_pkcs1(hash: Hash, key: &PublicKeyInfo<'_>, data: &[u8], signature: &[u8]) -> Option<()> {
    if key.algorithm.oid != oid::RSA_ENCRYPTION {
        return None;
    }
    let mut reader = Reader::new(key.key);
    let mut fields = reader.sequence().ok()?;
    let number = |fields: &mut Reader<'_>| {
        let octets = fields.any().ok()?.big_integer().ok()?.to_vec();
        (octets.first()? & 0x80 == 0).then_some(octets)
    };
    let modulus = number(&mut fields)?;
    let exponent = number(&mut fields)?;
    if modulus.len() * 8 > limits::RSA_MODULUS_BITS + 8 || exponent.len() > 8 {
        return None;
    }
    let key = rsa::PublicKey::new_with_size_limits(
        rsa::BoxedUint::from_be_slice_vartime(&modulus),
        rsa::BoxedUint::from_be_slice_vartime(&exponent),
        limits::RSA_MODULUS_MIN_BITS..=limits::RSA_MODULUS_BITS,
    )
    .ok()?;
    let scheme = rsa::Pkcs1v15Sign {
        hash_len: Some(hash.output_length()),
        prefix: digest_info_prefix(hash).into_boxed_slice(),
    };
    scheme.verify(&key, &hash.digest(data), signature).ok()
}

/// What stands before the digest in a DigestInfo (RFC 8017, 9.2).
fn digest_info_prefix(hash: Hash) -> Vec<u8> {
    let digest = alloc::vec![0; hash.output_length()];
    let mut der = Writer::encode(|w| {
        w.sequence(|w| {
            AlgorithmIdentifier::with_null(hash.oid()).write(w);
            w.octet_string(&digest);
        });
    });
    der.truncate(der.len() - digest.len());
    der
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_prefix_is_that_of_rfc_8017() {
        // RFC 8017, 9.2, note 1.
        let sha256 = [
            0x30, 0x31, 0x30, 0x0d, 0x06, 0x09, 0x60, 0x86, 0x48, 0x01, 0x65, 0x03, 0x04, 0x02,
            0x01, 0x05, 0x00, 0x04, 0x20,
        ];
        assert_eq!(digest_info_prefix(Hash::Sha256), sha256);
    }
}
