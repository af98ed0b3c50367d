//! The protection of the vectors: it holds, it does not hold for another key, and no octet that
//! it covers can be changed.

use abide_cmp::protection::{
    Anchors, Policy, ProtectionError, SoftwareVerifier, verify_kem_mac, verify_mac,
    verify_signature,
};
use abide_cmp::{Certificate, PkiMessage, Time};

use crate::index::{Expected, Key, Vector, pki, vectors};

/// 2027-01-01T00:00:00Z, within the validity of every certificate.
const NOW: i64 = 1_798_761_600;

/// What a changed octet is combined with: the lowest bit, the highest, and all of them.
const PATTERNS: [u8; 3] = [0x01, 0x80, 0xff];

/// Signatures whose arithmetic is not built in: their vectors are for hosts that have it.
const FOREIGN: &[&str] = if cfg!(feature = "all-algorithms") {
    &["Ed448"]
} else {
    &["Ed448", "Ed25519", "ML-DSA", "ECDSA P-521"]
};

#[derive(Debug, PartialEq, Eq)]
enum Fault {
    /// It cannot be read.
    Undecodable,
    /// It is not to be believed.
    Protection(ProtectionError),
}

fn judge(der: &[u8], key: &Key) -> Result<(), Fault> {
    let message = PkiMessage::from_der(der).map_err(|_| Fault::Undecodable)?;
    let policy = Policy::ALLOW_SHA1;
    let outcome = match key {
        Key::Secret(secret) => verify_mac(&message, policy, |mac, data| {
            Ok::<_, ProtectionError>(mac.compute(secret, data))
        }),
        Key::Kem(secret) => verify_kem_mac(&message, policy, |mac, data| {
            Ok::<_, ProtectionError>(mac.compute(secret, data))
        }),
        Key::Anchor(anchor) => {
            let anchor = Certificate::from_der(anchor).expect("an anchor");
            let mut anchors = Anchors::new(std::slice::from_ref(&anchor), Time::from_unix(NOW));
            anchors.policy = policy;
            verify_signature(&message, anchors, &SoftwareVerifier).map(drop)
        }
        // Whatever the key, it must not come to that.
        Key::None => verify_mac(&message, policy, |_, _| {
            panic!("a MAC is made under an algorithm that is to be refused")
        }),
    };
    outcome.map_err(Fault::Protection)
}

fn is_unsupported(outcome: &Result<(), Fault>) -> bool {
    matches!(
        outcome,
        Err(Fault::Protection(ProtectionError::Unsupported(_)))
    )
}

#[test]
fn every_protection_gets_its_verdict() {
    for vector in vectors() {
        let outcome = judge(&vector.der, &vector.key);
        let right = match vector.expected {
            Expected::Valid if is_foreign(&vector) => is_unsupported(&outcome),
            Expected::Valid => outcome == Ok(()),
            Expected::Unprotected => {
                outcome == Err(Fault::Protection(ProtectionError::Unprotected))
            }
            Expected::Refused => is_unsupported(&outcome),
        };
        assert!(right, "{}: {outcome:?}", vector.file);
    }
}

#[test]
fn no_protection_holds_for_another_key() {
    let stranger = Key::Anchor(pki("stranger.der"));
    for vector in verified() {
        let wrong = match &vector.key {
            Key::Anchor(_) => stranger.clone(),
            Key::Secret(secret) => Key::Secret([secret, &b"!"[..]].concat()),
            Key::Kem(secret) => Key::Kem(secret.iter().map(|octet| octet ^ 1).collect()),
            Key::None => continue,
        };
        let outcome = judge(&vector.der, &wrong);
        let right = match vector.key {
            Key::Anchor(_) => matches!(
                outcome,
                Err(Fault::Protection(ProtectionError::Untrusted(_)))
            ),
            _ => outcome == Err(Fault::Protection(ProtectionError::WrongMac)),
        };
        assert!(right, "{}: {outcome:?}", vector.file);
    }
}

/// A secret that is guessed is not what a KEM gives, and the other way round.
#[test]
fn secrets_of_one_kind_are_not_taken_for_the_other() {
    let mut seen = 0;
    for vector in verified() {
        let other = match &vector.key {
            Key::Secret(secret) => Key::Kem(secret.clone()),
            Key::Kem(secret) => Key::Secret(secret.clone()),
            _ => continue,
        };
        let outcome = judge(&vector.der, &other);
        let expected = Err(Fault::Protection(ProtectionError::WrongKind));
        assert_eq!(outcome, expected, "{}", vector.file);
        seen += 1;
    }
    assert!(seen > 90, "{seen} messages only");
}

#[test]
fn no_octet_under_a_mac_can_be_changed() {
    mutate(|vector| !matches!(vector.key, Key::Anchor(_)), true);
}

#[test]
fn no_octet_under_an_ecdsa_signature_can_be_changed() {
    mutate(|vector| vector.protection.starts_with("ECDSA"), false);
}

#[test]
fn no_octet_under_an_rsa_signature_can_be_changed() {
    mutate(|vector| vector.protection.starts_with("RSA"), false);
}

#[cfg(feature = "all-algorithms")]
#[test]
fn no_octet_under_another_signature_can_be_changed() {
    let others = |vector: &Vector| {
        let known = ["ECDSA", "RSA"];
        matches!(vector.key, Key::Anchor(_))
            && !known.iter().any(|name| vector.protection.starts_with(name))
    };
    mutate(others, false);
}

/// The vectors whose protection is found to hold.
fn verified() -> impl Iterator<Item = Vector> {
    vectors()
        .into_iter()
        .filter(|vector| vector.expected == Expected::Valid && !is_foreign(vector))
}

fn is_foreign(vector: &Vector) -> bool {
    let protection = &vector.protection;
    FOREIGN.iter().any(|name| protection.starts_with(name))
}

/// Changes every octet of header and body: with every pattern where that is cheap, else with
/// one of them in turn. Of the bits of the protection, which may be thousands of octets, some
/// hundred are changed.
fn mutate(chosen: impl Fn(&Vector) -> bool, every_pattern: bool) {
    let mut seen = 0;
    for vector in verified().filter(|vector| chosen(vector)) {
        seen += 1;
        assert_eq!(judge(&vector.der, &vector.key), Ok(()), "{}", vector.file);
        let message = PkiMessage::from_der(&vector.der).expect("a message");
        let bits = message.protection.expect("bits");
        // Header and body are what is protected, without the SEQUENCE around them.
        let protected = message.protected_part();
        let contents = match protected[1] {
            short @ 0..0x80 => usize::from(short),
            long => protected.len() - 2 - usize::from(long & 0x7f),
        };
        let covered = &protected[protected.len() - contents..];
        let start = find(&vector.der, covered);
        let end = start + covered.len();
        let bits_start = end + find(&vector.der[end..], bits);
        let step = bits.len().div_ceil(100);
        let positions = (start..end).chain((bits_start..bits_start + bits.len()).step_by(step));

        let mut changed = vector.der.clone();
        for position in positions {
            for (turn, pattern) in PATTERNS.into_iter().enumerate() {
                if !every_pattern && turn != position % PATTERNS.len() {
                    continue;
                }
                changed[position] ^= pattern;
                assert!(
                    judge(&changed, &vector.key).is_err(),
                    "{}: octet {position} is changed by {pattern:#04x} and nobody notices",
                    vector.file
                );
                changed[position] ^= pattern;
            }
        }
        assert_eq!(changed, vector.der);
    }
    assert!(seen >= 5, "{seen} messages only");
}

fn find(text: &[u8], part: &[u8]) -> usize {
    text.windows(part.len())
        .position(|window| window == part)
        .expect("it is in there")
}
