//! Signatures of others, checked with what aws-lc-rs knows; the rest is left to the component.

use aws_lc_rs::signature::{
    ECDSA_P256_SHA256_ASN1, ECDSA_P256_SHA384_ASN1, ECDSA_P256_SHA512_ASN1, ECDSA_P384_SHA256_ASN1,
    ECDSA_P384_SHA384_ASN1, ECDSA_P384_SHA512_ASN1, ECDSA_P521_SHA224_ASN1, ECDSA_P521_SHA256_ASN1,
    ECDSA_P521_SHA384_ASN1, ECDSA_P521_SHA512_ASN1, ED25519, ML_DSA_44, ML_DSA_65, ML_DSA_87,
    ParsedPublicKey, RSA_PKCS1_2048_8192_SHA256, RSA_PKCS1_2048_8192_SHA384,
    RSA_PKCS1_2048_8192_SHA512, RSA_PSS_2048_8192_SHA256, RSA_PSS_2048_8192_SHA384,
    RSA_PSS_2048_8192_SHA512, VerificationAlgorithm,
};

use pkcs8::{ObjectIdentifier, SubjectPublicKeyInfoRef};

use crate::wit::keys::{SignatureAlgorithm, Verdict};

/// rsaEncryption (RFC 3279, 2.3.1).
const RSA_ENCRYPTION: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.2.840.113549.1.1.1");

/// id-ecPublicKey (RFC 5480, 2.1.1).
const EC_PUBLIC_KEY: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.2.840.10045.2.1");

/// The algorithms that can be meant. ECDSA's name does not tell the curve; the key does, by being
/// readable for one of them only.
fn candidates(algorithm: SignatureAlgorithm) -> &'static [&'static dyn VerificationAlgorithm] {
    match algorithm {
        SignatureAlgorithm::EcdsaSha224 => &[&ECDSA_P521_SHA224_ASN1],
        SignatureAlgorithm::EcdsaSha256 => &[
            &ECDSA_P256_SHA256_ASN1,
            &ECDSA_P384_SHA256_ASN1,
            &ECDSA_P521_SHA256_ASN1,
        ],
        SignatureAlgorithm::EcdsaSha384 => &[
            &ECDSA_P256_SHA384_ASN1,
            &ECDSA_P384_SHA384_ASN1,
            &ECDSA_P521_SHA384_ASN1,
        ],
        SignatureAlgorithm::EcdsaSha512 => &[
            &ECDSA_P256_SHA512_ASN1,
            &ECDSA_P384_SHA512_ASN1,
            &ECDSA_P521_SHA512_ASN1,
        ],
        SignatureAlgorithm::RsaPkcs1Sha256 => &[&RSA_PKCS1_2048_8192_SHA256],
        SignatureAlgorithm::RsaPkcs1Sha384 => &[&RSA_PKCS1_2048_8192_SHA384],
        SignatureAlgorithm::RsaPkcs1Sha512 => &[&RSA_PKCS1_2048_8192_SHA512],
        SignatureAlgorithm::RsaPssSha256 => &[&RSA_PSS_2048_8192_SHA256],
        SignatureAlgorithm::RsaPssSha384 => &[&RSA_PSS_2048_8192_SHA384],
        SignatureAlgorithm::RsaPssSha512 => &[&RSA_PSS_2048_8192_SHA512],
        SignatureAlgorithm::Ed25519 => &[&ED25519],
        SignatureAlgorithm::MlDsa44 => &[&ML_DSA_44],
        SignatureAlgorithm::MlDsa65 => &[&ML_DSA_65],
        SignatureAlgorithm::MlDsa87 => &[&ML_DSA_87],
        // Whether SHA-1 is good enough is the component's decision, and so is its arithmetic.
        SignatureAlgorithm::EcdsaSha1
        | SignatureAlgorithm::RsaPkcs1Sha1
        | SignatureAlgorithm::RsaPkcs1Sha224
        | SignatureAlgorithm::Ed448 => &[],
    }
}

/// Verifies with a DER SubjectPublicKeyInfo.
pub(super) fn verify(
    algorithm: SignatureAlgorithm,
    spki: &[u8],
    data: &[u8],
    signature: &[u8],
) -> Verdict {
    if algorithm == SignatureAlgorithm::Ed25519 && !is_canonical_ed25519(spki) {
        return Verdict::Invalid;
    }
    if is_malformed(spki) {
        return Verdict::Invalid;
    }
    let key = candidates(algorithm)
        .iter()
        .find_map(|candidate| ParsedPublicKey::new(*candidate, spki).ok());
    match key {
        None => Verdict::Unsupported,
        Some(key) => match key.verify_sig(data, signature) {
            Ok(()) => Verdict::Valid,
            Err(_) => Verdict::Invalid,
        },
    }
}

/// Whether a key is in a form that aws-lc takes and the standards do not: a hybrid point (RFC 5480,
/// 2.2), or RSA with parameters other than NULL (RFC 3279, 2.3.1).
fn is_malformed(spki: &[u8]) -> bool {
    let Ok(key) = SubjectPublicKeyInfoRef::try_from(spki) else {
        return false;
    };
    match key.algorithm.oid {
        EC_PUBLIC_KEY => matches!(key.subject_public_key.raw_bytes(), [0x06 | 0x07, ..]),
        RSA_ENCRYPTION => key
            .algorithm
            .parameters
            .is_some_and(|given| !given.is_null()),
        _ => false,
    }
}

/// Whether the point that ends the key is encoded as decoding demands (RFC 8032, 5.1.3), which aws-lc
/// does not insist on: y is below the prime 2^255 - 19, and where x is 0, y being 1 or -1, there is no
/// sign. What is no Ed25519 key is found out by the reader.
fn is_canonical_ed25519(spki: &[u8]) -> bool {
    let Some([first, middle @ .., last]) = spki.last_chunk::<32>() else {
        return true;
    };
    let (sign, top) = (last & 0x80 != 0, last & 0x7f);
    let all = |octet: u8| middle.iter().all(|other| *other == octet);
    match *first {
        0xed.. if top == 0x7f && all(0xff) => false,
        0xec if top == 0x7f && all(0xff) => !sign,
        0x01 if top == 0 && all(0) => !sign,
        _ => true,
    }
}
