//! Messages that other implementations made, committed with the scripts that had them made:
//! each is read, its values are those that were put in, it is written back octet for octet,
//! its protection holds, and no octet of it can be changed.

mod facts;
mod index;
mod protection;

use std::collections::BTreeSet;

use abide_cmp::{Draft, PkiMessage};

use facts::fact;
use index::{Expected, Key, Vector, files, vectors};

fn read(vector: &Vector) -> PkiMessage<'_> {
    match PkiMessage::from_der(&vector.der) {
        Ok(message) => message,
        Err(error) => panic!("{}: {error}", vector.file),
    }
}

#[test]
fn the_index_names_every_message() {
    let mut listed: Vec<String> = vectors().into_iter().map(|vector| vector.file).collect();
    listed.sort();
    assert_eq!(listed, files());
}

/// The productions of RFC 9810, 5.1.2, RFC 4211, 4, and RFC 9481, 3 and 6.
#[test]
fn every_body_proof_and_protection_is_covered() {
    let vectors = vectors();
    let bodies: BTreeSet<u8> = vectors
        .iter()
        .map(|vector| read(vector).body.body_type() as u8)
        .collect();
    assert!(bodies.into_iter().eq(0..=26), "a body has no vector");
    for popo in [
        "raVerified",
        "signature",
        "signature poskInput",
        "keyEncipherment thisMessage",
        "keyEncipherment encrCert",
        "keyEncipherment challengeResp",
        "keyEncipherment encryptedKey",
        "keyAgreement thisMessage",
        "keyAgreement encrCert",
        "keyAgreement challengeResp",
        "keyAgreement dhMAC",
        "keyAgreement agreeMAC",
        "keyAgreement encryptedKey",
    ] {
        let there = vectors.iter().any(|vector| vector.popo == popo);
        assert!(there, "no vector with the proof {popo}");
    }
    for protection in [
        "PBM SHA-1",
        "PBM SHA-224",
        "PBM SHA-256",
        "PBM SHA-384",
        "PBM SHA-512",
        "PBMAC1 HMAC-SHA256 HMAC-SHA256",
        "PBMAC1 HMAC-SHA512 HMAC-SHA256",
        "HMAC",
        "KEM ML-KEM-512",
        "KEM ML-KEM-768",
        "KEM ML-KEM-1024",
        "DHBasedMac",
        "RSA PKCS#1 SHA-256",
        "RSA PKCS#1 SHA-384",
        "RSA PKCS#1 SHA-512",
        "RSA-PSS SHA-256",
        "RSA-PSS SHA-384",
        "RSA-PSS SHA-512",
        "ECDSA P-256",
        "ECDSA P-384",
        "ECDSA P-521",
        "Ed25519",
        "Ed448",
        "ML-DSA-44",
        "ML-DSA-65",
        "ML-DSA-87",
        "none",
    ] {
        let there = vectors
            .iter()
            .any(|vector| vector.protection.starts_with(protection));
        assert!(there, "no vector with the protection {protection}");
    }
}

#[test]
fn every_message_holds_what_its_maker_put_in() {
    let vectors = vectors();
    let mut compared = 0;
    let mut differences = Vec::new();
    for vector in &vectors {
        let message = read(vector);
        let mut compare = |name: &str, found: String, known: &str| {
            compared += 1;
            if found != known {
                differences.push(format!("{}: {name} is {found}, not {known}", vector.file));
            }
        };
        compare(
            "body",
            message.body.body_type().name().to_owned(),
            &vector.body,
        );
        compare("popo", facts::popo(&message.body), &vector.popo);
        let protected = vector.expected != Expected::Unprotected;
        compare(
            "protected",
            message.protection.is_some().to_string(),
            &protected.to_string(),
        );
        assert_eq!(vector.key != Key::None, vector.expected == Expected::Valid);
        for (name, value) in &vector.known {
            if name != "follows" {
                compare(name, fact(&message, name), value);
                continue;
            }
            let before = vectors.iter().find(|v| v.file == *value).expect("it");
            for (name, theirs) in [
                ("transactionID", "transactionID"),
                ("recipNonce", "senderNonce"),
            ] {
                compare(name, fact(&message, name), &fact(&read(before), theirs));
            }
        }
    }
    assert!(differences.is_empty(), "{}", differences.join("\n"));
    assert!(compared > 1000, "{compared} values only");
}

#[test]
fn every_message_is_written_back_octet_for_octet() {
    for vector in vectors() {
        let message = read(&vector);
        let draft = Draft::new(&message.header, &message.body);
        assert!(
            draft.finish(message.protection, &message.extra_certs) == vector.der,
            "{} changed when written back",
            vector.file
        );
    }
}

#[test]
fn every_value_of_general_information_is_of_its_type() {
    let mut seen = 0;
    for vector in vectors() {
        let message = read(&vector);
        let infos = facts::infos(&message.body);
        for info in message.header.general_info.iter().chain(infos) {
            if let Err(error) = info.interpret() {
                panic!("{}: {}: {error}", vector.file, info.info_type);
            }
            seen += 1;
        }
    }
    assert!(seen > 40, "{seen} values only");
}

/// The description is for people: what can be asked of it here is that it shows the identifiers
/// that the maker chose.
#[cfg(feature = "describe")]
#[test]
fn every_message_is_described() {
    for vector in vectors() {
        let text =
            abide_cmp::describe(&vector.der, abide_cmp::Leniency::STRICT).expect("a description");
        for (name, value) in &vector.known {
            if ["transactionID", "senderNonce", "senderKID", "certHash"].contains(&name.as_str()) {
                assert!(text.contains(value), "{}: {name} is not shown", vector.file);
            }
        }
    }
}
