use abide_cmp::protection::{Anchors, ProtectionError, Signer, verify_signature};
use abide_cmp::{
    AlgorithmIdentifier, Certificate, Draft, GeneralName, Name, PkiBody, PkiHeader, PkiMessage,
    Role, oid,
};

use crate::certificates::*;

/// A pkiConf from this sender, signed with this key.
fn message(sender: &str, sender_kid: Option<&[u8]>, key: &str, extra_certs: &[Vec<u8>]) -> Vec<u8> {
    let name = |text: &str| GeneralName::Directory(Name::parse(text).expect("a name"));
    let mut header = PkiHeader::new(name(sender), name("/"));
    header.sender_kid = sender_kid;
    header.protection_alg = Some(AlgorithmIdentifier::bare(oid::ED25519));
    Draft::new(&header, &PkiBody::PkiConf).finish(Some(key.as_bytes()), extra_certs)
}

fn check(
    message: &[u8],
    trusted: &[Vec<u8>],
    untrusted: &[Vec<u8>],
    role: Option<Role>,
) -> Result<(String, Vec<Role>), ProtectionError> {
    let read = |ders: &[Vec<u8>]| -> Vec<Certificate<'static>> {
        let read = |der: &Vec<u8>| Certificate::from_der(der.clone().leak());
        ders.iter()
            .map(|der| read(der).expect("a certificate"))
            .collect()
    };
    let (trusted, untrusted) = (read(trusted), read(untrusted));
    let anchors = Anchors {
        untrusted: &untrusted,
        role,
        ..Anchors::new(&trusted, now())
    };
    let message = PkiMessage::from_der(message.to_vec().leak()).expect("a message");
    let described = |signer: Signer<'_>| {
        let certificate = signer.certificate().expect("a certificate");
        (certificate.subject.to_string(), signer.roles())
    };
    verify_signature(&message, anchors, &Tally::default()).map(described)
}

fn root() -> Vec<Vec<u8>> {
    vec![ca("root", "root").der()]
}

#[test]
fn the_signer_is_found_in_any_place() {
    let signer = end("signer", "sub").der();
    let sub = ca("sub", "root").der();
    let stranger = end("stranger", "root").der();
    for extra_certs in [
        vec![signer.clone(), sub.clone()],
        vec![sub.clone(), stranger.clone(), signer.clone()],
    ] {
        let message = message("/CN=signer", None, "signer", &extra_certs);
        let found = check(&message, &root(), &[], None);
        assert_eq!(found, Ok(("CN=signer".to_owned(), vec![])));
    }
    // A confirmation may leave both out (RFC 9483, 3.3): they were sent before.
    let confirmation = message("/CN=signer", None, "signer", &[]);
    assert!(check(&confirmation, &root(), &[sub, signer], None).is_ok());
    assert!(matches!(
        check(&confirmation, &root(), &[], None),
        Err(ProtectionError::NoSignerCertificate { .. })
    ));
    // The anchor itself may sign; it issues, but is free to sign too without a keyUsage.
    let anchor = ca("root", "root").without(oid::KEY_USAGE).der();
    let message = message("/CN=root", None, "root", &[]);
    assert!(check(&message, &[anchor], &[], None).is_ok());
}

#[test]
fn the_sender_is_the_subject_in_either_order_or_nameless_with_an_identifier() {
    let mut signer = end("signer", "root").with(subject_key(&[5]));
    "/O=A/CN=signer".clone_into(&mut signer.subject);
    let extra_certs = [signer.der()];
    for (sender, kid, expected) in [
        ("/O=A/CN=signer", None, true),
        ("/CN=signer/O=A", None, true),
        ("/O=A/CN=signer", Some(&[5][..]), true),
        ("/O=A/CN=signer", Some(&[6][..]), false),
        ("/", Some(&[5][..]), true),
        ("/", Some(&[6][..]), false),
        ("/", None, false),
        ("/O=A", None, false),
        ("/CN=other/O=A", None, false),
    ] {
        let message = message(sender, kid, "signer", &extra_certs);
        let found = check(&message, &root(), &[], None);
        assert_eq!(found.is_ok(), expected, "{sender} {kid:?} {found:?}");
        if let Err(error) = found {
            assert!(
                matches!(error, ProtectionError::NoSignerCertificate { .. }),
                "{error}"
            );
        }
    }
}

#[test]
fn a_key_for_other_things_does_not_sign_messages() {
    for (usage, expected) in [(0x80, true), (0x20, false), (0x04, false)] {
        let signer = end("signer", "root").with(key_usage(usage)).der();
        let message = message("/CN=signer", None, "signer", &[signer]);
        let found = check(&message, &root(), &[], None);
        assert_eq!(found.is_ok(), expected, "{usage:#x}");
        if let Err(error) = found {
            assert!(matches!(error, ProtectionError::KeyUsage { .. }), "{error}");
        }
    }
}

#[test]
fn a_role_is_that_of_the_certificate() {
    let signer = end("signer", "root").with(purposes(&[oid::KP_CMC_RA, oid::KP_CM_KGA]));
    let message = |signer: &Template| message("/CN=signer", None, "signer", &[signer.der()]);
    let (_, roles) = check(&message(&signer), &root(), &[], None).expect("a signer");
    assert_eq!(roles, [Role::CmcRa, Role::CmKga]);
    assert!(check(&message(&signer), &root(), &[], Some(Role::CmcRa)).is_ok());
    let plain = end("signer", "root");
    let damaged = plain
        .clone()
        .with((oid::EXTENDED_KEY_USAGE, false, vec![0x05, 0x00]));
    for signer in [signer, plain, damaged] {
        let error = check(&message(&signer), &root(), &[], Some(Role::CmcCa));
        let error = error.expect_err("the role is missing");
        assert!(
            matches!(
                error,
                ProtectionError::Role {
                    role: Role::CmcCa,
                    ..
                }
            ),
            "{error}"
        );
    }
    // 1.3.6.1.5.5.7.3.27, .28 and .32 (RFC 6402, 2.10; RFC 9810, 4.5).
    let dotted = Role::ALL.map(|role| role.oid().to_string());
    assert_eq!(
        dotted,
        [
            "1.3.6.1.5.5.7.3.27",
            "1.3.6.1.5.5.7.3.28",
            "1.3.6.1.5.5.7.3.32"
        ]
    );
}

#[test]
fn the_most_telling_reason_is_given() {
    let signer = end("signer", "root").der();
    let forged = message(
        "/CN=signer",
        None,
        "another key",
        std::slice::from_ref(&signer),
    );
    assert!(matches!(
        check(&forged, &root(), &[], None),
        Err(ProtectionError::WrongSignature { .. })
    ));
    let message = message("/CN=signer", None, "signer", &[signer]);
    let others = [ca("other", "other").der()];
    assert!(matches!(
        check(&message, &others, &[], None),
        Err(ProtectionError::Untrusted(_))
    ));
}
