//! ML-KEM private keys in PKCS #8 (RFC 9935, 6).

use aws_lc_rs::kem::{self, DecapsulationKey, ML_KEM_512, ML_KEM_768, ML_KEM_1024};
use pkcs8::ObjectIdentifier;
use pkcs8::der::asn1::{AnyRef, BitStringRef, OctetStringRef};
use pkcs8::der::{Decode, Encode, Reader, Tag, Tagged};
use pkcs8::spki::{AlgorithmIdentifierRef, SubjectPublicKeyInfo};

/// A parameter set: its name in certificates, that of the library, and where the public
/// key begins in the private one (FIPS 203, algorithm 16: after 384 octets for each row).
type Kind = (
    ObjectIdentifier,
    &'static kem::Algorithm<kem::AlgorithmId>,
    usize,
);

const KINDS: [Kind; 3] = [
    (
        ObjectIdentifier::new_unwrap("2.16.840.1.101.3.4.4.1"),
        &ML_KEM_512,
        384 * 2,
    ),
    (
        ObjectIdentifier::new_unwrap("2.16.840.1.101.3.4.4.2"),
        &ML_KEM_768,
        384 * 3,
    ),
    (
        ObjectIdentifier::new_unwrap("2.16.840.1.101.3.4.4.3"),
        &ML_KEM_1024,
        384 * 4,
    ),
];

/// Octets of the hash of the public key and of the value for implicit rejection, which
/// end a private key.
const TAIL: usize = 64;

/// Whether an algorithm is ML-KEM.
pub(super) fn is_ml_kem(oid: ObjectIdentifier) -> bool {
    KINDS.iter().any(|(known, ..)| *known == oid)
}

/// The key in the contents of PKCS #8's privateKey, and its SubjectPublicKeyInfo. None for
/// what is no such key, and for a seed without the expanded key.
pub(super) fn read(oid: ObjectIdentifier, der: &[u8]) -> Option<(DecapsulationKey, Vec<u8>)> {
    let &(_, algorithm, begin) = KINDS.iter().find(|(known, ..)| *known == oid)?;
    let expanded = expanded(der)?;
    let key = DecapsulationKey::new(algorithm, expanded).ok()?;
    let public = expanded.get(begin..expanded.len().checked_sub(TAIL)?)?;
    let spki = SubjectPublicKeyInfo {
        algorithm: AlgorithmIdentifierRef {
            oid,
            parameters: None,
        },
        subject_public_key: BitStringRef::from_bytes(public).ok()?,
    };
    Some((key, spki.to_der().ok()?))
}

/// ```text
/// CHOICE {
///     seed         [0] OCTET STRING,
///     expandedKey      OCTET STRING,
///     both             SEQUENCE { seed OCTET STRING, expandedKey OCTET STRING } }
/// ```
fn expanded(der: &[u8]) -> Option<&[u8]> {
    let choice = AnyRef::from_der(der).ok()?;
    let expanded = match choice.tag() {
        Tag::OctetString => <&OctetStringRef>::try_from(choice).ok()?,
        Tag::Sequence => choice
            .sequence(|fields| {
                let _seed: &OctetStringRef = fields.decode()?;
                fields.decode()
            })
            .ok()?,
        _ => return None,
    };
    Some(expanded.as_bytes())
}
