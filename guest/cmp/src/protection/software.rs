use alloc::vec::Vec;

use p256::ecdsa::signature::hazmat::PrehashVerifier;
use rsa::traits::SignatureScheme;

use super::{Hash, SignatureAlgorithm, SignatureVerifier, Verdict};
use crate::der::{Reader, Writer, tag};
use crate::limits;
use crate::oid;
use crate::x509::{AlgorithmIdentifier, PublicKeyInfo};

/// Checks signatures with this crate's own arithmetic: RSA PKCS#1, P-256 and P-384, and with
/// the feature `all-algorithms` RSA-PSS, P-521, Ed25519 and ML-DSA.
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
            #[cfg(feature = "all-algorithms")]
            SignatureAlgorithm::RsaPss { hash, salt_length } => {
                rsa_pss(hash, salt_length, key, data, signature)
            }
            SignatureAlgorithm::Ecdsa(hash) => match key.curve() {
                Some(oid::P256) => p256_ecdsa(&hash.digest(data), key.key, signature),
                Some(oid::P384) => p384_ecdsa(&hash.digest(data), key.key, signature),
                #[cfg(feature = "all-algorithms")]
                Some(oid::P521) => p521_ecdsa(&hash.digest(data), key.key, signature),
                Some(_) => return Verdict::Unsupported,
                None => None,
            },
            #[cfg(feature = "all-algorithms")]
            SignatureAlgorithm::Ed25519 => ed25519(key, data, signature),
            #[cfg(feature = "all-algorithms")]
            SignatureAlgorithm::MlDsa44 => {
                ml_dsa::<ml_dsa::MlDsa44>(oid::ML_DSA_44, key, data, signature)
            }
            #[cfg(feature = "all-algorithms")]
            SignatureAlgorithm::MlDsa65 => {
                ml_dsa::<ml_dsa::MlDsa65>(oid::ML_DSA_65, key, data, signature)
            }
            #[cfg(feature = "all-algorithms")]
            SignatureAlgorithm::MlDsa87 => {
                ml_dsa::<ml_dsa::MlDsa87>(oid::ML_DSA_87, key, data, signature)
            }
            _ => return Verdict::Unsupported,
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

#[cfg(feature = "all-algorithms")]
fn p521_ecdsa(digest: &[u8], key: &[u8], signature: &[u8]) -> Option<()> {
    let key = p521::ecdsa::VerifyingKey::from_sec1_bytes(key).ok()?;
    let signature = p521::ecdsa::Signature::from_der(signature).ok()?;
    key.verify_prehash(&widened::<33>(digest), &signature).ok()
}

/// A digest of at least `N` octets, which the arithmetic insists on: zeros in front do
/// not change the number that a short digest stands for.
fn widened<const N: usize>(digest: &[u8]) -> Vec<u8> {
    let mut wide = alloc::vec![0; N.saturating_sub(digest.len())];
    wide.extend_from_slice(digest);
    wide
}

#[cfg(feature = "all-algorithms")]
fn ed25519(key: &PublicKeyInfo<'_>, data: &[u8], signature: &[u8]) -> Option<()> {
    use p256::ecdsa::signature::Verifier;

    if key.algorithm != AlgorithmIdentifier::bare(oid::ED25519) {
        return None;
    }
    let point: &[u8; 32] = key.key.try_into().ok()?;
    if !is_canonical_point(point) {
        return None;
    }
    let key = ed25519_dalek::VerifyingKey::from_bytes(point).ok()?;
    let signature = ed25519_dalek::Signature::from_slice(signature).ok()?;
    key.verify(data, &signature).ok()
}

/// Whether a point is encoded as decoding demands (RFC 8032, 5.1.3), which the arithmetic
/// does not insist on: y is below the prime 2^255 - 19, and where x is 0, y being 1 or -1,
/// there is no sign.
#[cfg(feature = "all-algorithms")]
fn is_canonical_point(point: &[u8; 32]) -> bool {
    let [first, middle @ .., last] = point;
    let (sign, top) = (last & 0x80 != 0, last & 0x7f);
    let all = |octet: u8| middle.iter().all(|other| *other == octet);
    match *first {
        0xed.. if top == 0x7f && all(0xff) => false,
        0xec if top == 0x7f && all(0xff) => !sign,
        0x01 if top == 0 && all(0) => !sign,
        _ => true,
    }
}

#[cfg(feature = "all-algorithms")]
fn ml_dsa<P: ml_dsa::MlDsaParams>(
    oid: oid::Oid<'_>,
    key: &PublicKeyInfo<'_>,
    data: &[u8],
    signature: &[u8],
) -> Option<()> {
    if key.algorithm != AlgorithmIdentifier::bare(oid) {
        return None;
    }
    let key = ml_dsa::EncodedVerifyingKey::<P>::try_from(key.key).ok()?;
    let signature = ml_dsa::Signature::<P>::try_from(signature).ok()?;
    ml_dsa::VerifyingKey::<P>::decode(&key)
        .verify_with_context(data, &[], &signature)
        .then_some(())
}

fn rsa_pkcs1(hash: Hash, key: &PublicKeyInfo<'_>, data: &[u8], signature: &[u8]) -> Option<()> {
    if key.algorithm.oid != oid::RSA_ENCRYPTION || !key.algorithm.has_no_parameters() {
        return None;
    }
    let scheme = rsa::Pkcs1v15Sign {
        hash_len: Some(hash.output_length()),
        prefix: digest_info_prefix(hash).into_boxed_slice(),
    };
    scheme
        .verify(&rsa_key(key.key)?, &hash.digest(data), signature)
        .ok()
}

#[cfg(feature = "all-algorithms")]
fn rsa_pss(
    hash: Hash,
    salt_length: u16,
    key: &PublicKeyInfo<'_>,
    data: &[u8],
    signature: &[u8],
) -> Option<()> {
    use rsa::pss::Pss;

    match key.algorithm.oid {
        oid::RSA_ENCRYPTION if key.algorithm.has_no_parameters() => {}
        // The parameters of a key restrict what it signs with (RFC 4055, 3.3).
        oid::RSA_PSS => {
            if let Some(parameters) = key.algorithm.parameters {
                let (required, least_salt) = super::signature::pss_parameters(parameters).ok()?;
                if required != hash || salt_length < least_salt {
                    return None;
                }
            }
        }
        _ => return None,
    }
    let key = rsa_key(key.key)?;
    let digest = hash.digest(data);
    let salt = usize::from(salt_length);
    match hash {
        Hash::Sha256 => Pss::<sha2::Sha256>::new_with_salt(salt).verify(&key, &digest, signature),
        Hash::Sha384 => Pss::<sha2::Sha384>::new_with_salt(salt).verify(&key, &digest, signature),
        Hash::Sha512 => Pss::<sha2::Sha512>::new_with_salt(salt).verify(&key, &digest, signature),
        // Read from no identifier.
        Hash::Sha1 | Hash::Sha224 => return None,
    }
    .ok()
}

/// Reads an RSAPublicKey (RFC 8017, A.1.1).
fn rsa_key(der: &[u8]) -> Option<rsa::PublicKey> {
    let mut reader = Reader::new(der);
    let mut fields = reader.sequence().ok()?;
    reader.finish().ok()?;
    let number = |fields: &mut Reader<'_>| {
        let octets = fields
            .element(tag::INTEGER, "an INTEGER")
            .ok()?
            .big_integer()
            .ok()?
            .to_vec();
        (octets.first()? & 0x80 == 0).then_some(octets)
    };
    let modulus = number(&mut fields)?;
    let exponent = number(&mut fields)?;
    fields.finish().ok()?;
    if modulus.len() * 8 > limits::RSA_MODULUS_BITS + 8 || exponent.len() > 8 {
        return None;
    }
    rsa::PublicKey::new_with_size_limits(
        rsa::BoxedUint::from_be_slice_vartime(&modulus),
        rsa::BoxedUint::from_be_slice_vartime(&exponent),
        limits::RSA_MODULUS_MIN_BITS..=limits::RSA_MODULUS_BITS,
    )
    .ok()
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
