//! extraCerts.

use abide_cmp::{PkiBody, PkiStatus, PkiStatusInfo};
use abide_enroll::{
    CertificateCredential, Confirmation, Credential, Deviation, Deviations, FailureClass, Operation,
};
use p256::ecdsa::SigningKey;

use super::super::peer::{
    Answer, By, CERT_AND_CRL_SIGN, OWN_KID, SIGNER_KID, Says, answers_well, certificate, fitting,
    sent, signed_changes_nothing, signer_key, signing_world, together, under_secret, world,
};
use crate::ca::{error, granted, name, poll_rep, public_key, response};
use crate::world::{issued, waits};

/// A CA between the root and the signer.
fn between() -> (SigningKey, Says<'static>) {
    let key = SigningKey::from_slice(&[45; 32]).expect("a private key");
    let says = Says {
        serial: 71,
        key_usage: Some(CERT_AND_CRL_SIGN),
        is_ca: true,
        ..Says::end_entity("CN=Sub", &[0x5b; 20])
    };
    (key, says)
}

#[test]
fn a_signed_request_brings_its_certificate_first_and_then_the_chain() {
    let mut world = signing_world(Operation::Cr);
    let (key, says) = between();
    let sub = certificate(&world.ca.key, says, &public_key(&key));
    let own = Says {
        issuer: "CN=Sub",
        ..Says::end_entity("CN=device,O=Us", OWN_KID)
    };
    let own = certificate(&key, own, world.ca.wanted());
    world.enrollment.credential = Credential::Certificate(CertificateCredential {
        certificate: own.clone(),
        chain: vec![sub.clone()],
        key: "own".into(),
    });
    answers_well(&world);
    issued(world.begin().expect("a beginning"));
    sent(&world, |_, message| {
        assert_eq!(message.extra_certs, [&own[..], &sub[..]]);
    });
}

/// RFC 9483, 4.1.5.
#[test]
fn a_request_under_a_mac_brings_no_certificates() {
    let world = world(Operation::Cr);
    answers_well(&world);
    issued(world.begin().expect("a beginning"));
    sent(&world, |_, message| assert!(message.extra_certs.is_empty()));
}

/// A signer below a CA below the root, and other certificates among them.
#[test]
fn certificates_are_taken_in_any_order_with_others_among_them() {
    for turned in 0..4 {
        let world = signing_world(Operation::Cr);
        for _ in 0..2 {
            world.next_says(move |ca, request| {
                let (key, says) = between();
                let sub = certificate(&ca.key, says, &public_key(&key));
                let says = Says {
                    issuer: "CN=Sub",
                    ..Says::end_entity("CN=CMP", SIGNER_KID)
                };
                let signer = certificate(&key, says, &public_key(&signer_key()));
                let other = certificate(
                    &ca.key,
                    Says::end_entity("CN=CMP", &[0x52; 20]),
                    &public_key(&key),
                );
                let mut extra_certs = vec![signer, sub, ca.root.clone(), other];
                extra_certs.rotate_left(turned);
                let answer = Answer {
                    sender: name("CN=CMP"),
                    sender_kid: Some(SIGNER_KID.to_vec()),
                    extra_certs,
                    by: By::Key(Box::new(signer_key())),
                    ..Answer::under_secret(request)
                };
                fitting(ca, request, &answer)
            });
        }
        issued(world.begin().expect("a beginning"));
    }
}

/// Nokia's NCM sends pkiConf without extraCerts and senderKID.
#[test]
fn pki_conf_and_poll_rep_may_leave_the_certificate_of_the_signer_out() {
    for kid in [None, Some(SIGNER_KID.to_vec())] {
        let world = signing_world(Operation::Cr);
        world.next_says(|ca, request| {
            let waiting = PkiStatusInfo::new(PkiStatus::Waiting);
            Answer::signed(ca, request).with(&error(waiting))
        });
        waits(world.begin().expect("a beginning"));
        let without = move |ca: &crate::ca::Ca, request: &[u8]| Answer {
            extra_certs: Vec::new(),
            sender_kid: kid.clone(),
            ..Answer::signed(ca, request)
        };
        let first = without.clone();
        world.next_says(move |ca, request| first(ca, request).with(&poll_rep(&[(-1, 20)])));
        assert_eq!(waits(world.step()).failure, None);
        world.next_says(|ca, request| {
            let certificate = ca.issue();
            let content = response(&[granted(0, &certificate)]);
            Answer::signed(ca, request).with(&PkiBody::Cp(content))
        });
        world.next_says(move |ca, request| without(ca, request).with(&PkiBody::PkiConf));
        let issued = issued(world.step());
        assert_eq!(issued.confirmation, Confirmation::Confirmed);
    }
}

#[test]
fn the_first_answer_needs_the_certificate_of_its_signer() {
    let world = signing_world(Operation::Cr);
    let (reason, _) = signed_changes_nothing(&world, |ca, request| {
        let answer = Answer {
            extra_certs: Vec::new(),
            ..Answer::signed(ca, request)
        };
        answer.with(&PkiBody::Cp(response(&[granted(0, &ca.root)])))
    });
    assert!(reason.contains("no certificate of its sender"), "{reason}");

    // It may come from the configuration.
    let mut world = signing_world(Operation::Cr);
    let says = Says::end_entity("CN=CMP,O=CA", SIGNER_KID);
    let signer = certificate(&world.ca.key, says, &public_key(&signer_key()));
    world.enrollment.untrusted.push(signer);
    for _ in 0..2 {
        world.next_says(|ca, request| {
            let answer = Answer {
                extra_certs: Vec::new(),
                ..Answer::signed(ca, request)
            };
            fitting(ca, request, &answer)
        });
    }
    issued(world.begin().expect("a beginning"));
}

#[test]
fn a_self_signed_certificate_is_not_trusted_for_being_there() {
    let world = signing_world(Operation::Cr);
    let (reason, advice) = signed_changes_nothing(&world, |_, request| {
        let key = signer_key();
        let says = Says {
            issuer: "CN=CMP",
            is_ca: true,
            key_usage: None,
            ..Says::end_entity("CN=CMP", SIGNER_KID)
        };
        let answer = Answer {
            sender: name("CN=CMP"),
            sender_kid: Some(SIGNER_KID.to_vec()),
            extra_certs: vec![certificate(&key, says, &public_key(&key))],
            by: By::Key(Box::new(key)),
            ..Answer::under_secret(request)
        };
        answer.with(&PkiBody::PkiConf)
    });
    assert!(reason.contains("not trusted"), "{reason}");
    assert!(advice.contains("trust the root"), "{advice}");
}

/// RFC 9810, 5.1: SIZE (1..MAX).
#[test]
fn extra_certs_without_a_certificate_are_read_where_allowed() {
    let empty = |request: &[u8]| {
        let whole =
            Answer::under_secret(request).with(&error(PkiStatusInfo::new(PkiStatus::Waiting)));
        let message = abide_cmp::PkiMessage::from_der(&whole).expect("a PKIMessage");
        let whole = together(&message.protected_part(), message.protection, &[]);
        // [1] with an empty SEQUENCE at the end of the outer one, whose length has two octets.
        assert_eq!(whole[1], 0x81, "one octet of length");
        let mut octets = vec![0x30, 0x81, whole[2] + 4];
        octets.extend_from_slice(&whole[3..]);
        octets.extend_from_slice(&[0xa1, 0x02, 0x30, 0x00]);
        octets
    };
    for allowed in [false, true] {
        let mut world = world(Operation::Cr);
        if allowed {
            world.enrollment.allow = Deviations::NONE.with(Deviation::EmptyLists);
        }
        world.next_says(move |_, request| empty(request));
        let waiting = waits(world.begin().expect("a beginning"));
        assert_eq!(waiting.failure.is_none(), allowed, "{waiting:?}");
        if let Some(failure) = waiting.failure {
            assert_eq!(failure.class, FailureClass::Malformed);
            assert!(failure.advice.contains("empty-lists"), "{failure:?}");
            world.next_says(under_secret);
            world.next_says(under_secret);
            issued(world.step());
        }
    }
}
