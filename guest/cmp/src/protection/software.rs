use alloc::vec::Vec;

use p256::ecdsa::signature::hazmat::PrehashVerifier;

use super::{SignatureAlgorithm, SignatureVerifier, Verdict, rsa};
use crate::oid;
#[cfg(feature = "all-algorithms")]
use crate::x509::AlgorithmIdentifier;
use crate::x509::PublicKeyInfo;

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
            SignatureAlgorithm::RsaPkcs1(hash) => rsa::pkcs1(hash, key, data, signature),
            #[cfg(feature = "all-algorithms")]
            SignatureAlgorithm::RsaPss { hash, salt_length } => {
                rsa::pss(hash, salt_length, key, data, signature)
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
