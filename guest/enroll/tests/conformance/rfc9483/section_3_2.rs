//! Protection.

use abide_cmp::der::{Writer, tag};
use abide_cmp::protection::{ProtectionKind, protection_kind};
use abide_cmp::{PkiBody, PkiStatus, PkiStatusInfo, oid};
use abide_enroll::{Confirmation, Deviation, Deviations, FailureClass, Operation, Phase};

use super::super::peer::{
    Answer, By, answers_well, fitting, sent, signed_answer, signed_changes_nothing, signing_world,
    under_secret, world,
};
use crate::ca::{granted, poll_rep, response};
use crate::faults::changes_nothing;
use crate::world::{World, issued, waits};

/// What answers in these phases, apart from its protection.
fn body(phase: Phase, certificate: &[u8]) -> PkiBody<'_> {
    match phase {
        Phase::Enrolling => PkiBody::Cp(response(&[granted(-1, certificate)])),
        Phase::Polling => poll_rep(&[(-1, 20)]),
        _ => PkiBody::PkiConf,
    }
}

#[test]
fn an_unprotected_answer_is_not_believed() {
    for phase in [Phase::Enrolling, Phase::Polling, Phase::Confirming] {
        changes_nothing(
            phase,
            FailureClass::Security,
            &["not protected"],
            move |ca, request| {
                let answer = Answer {
                    by: By::Nobody,
                    ..Answer::under_secret(request)
                };
                answer.with(&body(phase, &ca.root))
            },
        );
    }
    let world = signing_world(Operation::Cr);
    let (reason, _) = signed_changes_nothing(&world, |_, request| {
        let answer = Answer {
            by: By::Nobody,
            ..Answer::under_secret(request)
        };
        answer.with(&PkiBody::PkiConf)
    });
    assert!(reason.contains("not protected"), "{reason}");
}

#[test]
fn protection_that_does_not_fit_is_not_believed() {
    for phase in [Phase::Enrolling, Phase::Polling, Phase::Confirming] {
        changes_nothing(
            phase,
            FailureClass::Security,
            &["MAC"],
            move |ca, request| {
                let mut octets = Answer::under_secret(request).with(&body(phase, &ca.root));
                // Without extraCerts, the message ends with the MAC.
                *octets.last_mut().expect("octets") ^= 1;
                octets
            },
        );
    }
    // A signature by another key of the same name.
    let world = signing_world(Operation::Cr);
    let (reason, _) = signed_changes_nothing(&world, |ca, request| {
        let other = p256::ecdsa::SigningKey::from_slice(&[44; 32]).expect("a private key");
        let answer = Answer {
            by: By::Key(Box::new(other)),
            ..Answer::signed(ca, request)
        };
        answer.with(&PkiBody::Cp(response(&[granted(0, &ca.root)])))
    });
    assert!(reason.contains("signature does not fit"), "{reason}");
}

/// RFC 9810, 5.1.1: one is there where the other is.
#[test]
fn protection_and_its_algorithm_come_together() {
    // The [1] with the algorithm, as the signed answer below has it.
    let algorithm = Writer::encode(|w| {
        w.explicit(1, |w| w.sequence(|w| w.oid(oid::ECDSA_SHA256)));
    });
    let world = signing_world(Operation::Cr);
    let (reason, _) = signed_changes_nothing(&world, move |ca, request| {
        let answer = Answer {
            swaps: vec![(algorithm.clone(), Vec::new())],
            ..Answer::signed(ca, request)
        };
        answer.with(&PkiBody::Cp(response(&[granted(0, &ca.root)])))
    });
    assert!(reason.contains("without the other"), "{reason}");
    let world = signing_world(Operation::Cr);
    let (reason, _) = signed_changes_nothing(&world, |ca, request| {
        let signed = Answer::signed(ca, request);
        let whole = signed.with(&PkiBody::Cp(response(&[granted(0, &ca.root)])));
        let message = abide_cmp::PkiMessage::from_der(&whole).expect("a PKIMessage");
        super::super::peer::together(&message.protected_part(), None, &signed.extra_certs)
    });
    assert!(reason.contains("without the other"), "{reason}");
}

#[test]
fn an_algorithm_that_is_not_known_is_not_believed() {
    let world = signing_world(Operation::Cr);
    let (reason, advice) = signed_changes_nothing(&world, |ca, request| {
        // 1.2.3.4 in place of ecdsa-with-SHA256.
        let known = Writer::encode(|w| w.oid(oid::ECDSA_SHA256));
        let unknown = Writer::encode(|w| w.element(tag::OID, &[0x2a, 0x03, 0x04]));
        let answer = Answer {
            swaps: vec![(known, unknown)],
            ..Answer::signed(ca, request)
        };
        answer.with(&PkiBody::PkiConf)
    });
    assert!(reason.contains("1.2.3.4"), "{reason}");
    assert!(advice.contains("RFC 9481"), "{advice}");
}

#[test]
fn a_signed_request_is_not_answered_by_a_mac() {
    let world = signing_world(Operation::Cr);
    let (reason, _) = signed_changes_nothing(&world, under_secret);
    assert!(reason.contains("MAC"), "{reason}");
}

/// RFC 9483, 4.1.5. EJBCA signs its answers unless it is told otherwise.
#[test]
fn a_request_under_a_mac_is_not_answered_by_a_signature_unless_allowed() {
    let mut world = world(Operation::Cr);
    world.next_says(signed_answer);
    let waiting = waits(world.begin().expect("a beginning"));
    let failure = waiting.failure.expect("a failure that is waited out");
    assert_eq!(failure.class, FailureClass::Security);
    assert!(
        failure.advice.contains("signed-answer-to-mac"),
        "{failure:?}"
    );
    assert_eq!(world.record().phase, Phase::Enrolling);
    assert!(world.record().response_signer.is_none());

    // Without a change, it is waited.
    let sent = world.sent().len();
    waits(world.resume().expect("an open transaction"));
    assert_eq!(world.sent().len(), sent);

    // What the advice says can be done, and the same request is gone on with at once.
    world.enrollment.allow = Deviations::NONE.with(Deviation::SignedAnswerToMac);
    world.next_says(signed_answer);
    world.next_says(signed_answer);
    let issued = issued(world.resume().expect("an end"));
    assert_eq!(issued.confirmation, Confirmation::Confirmed);
    assert_eq!(world.sent()[0], world.sent()[1]);

    // The option does not make anybody's signature good.
    let mut world = super::super::peer::world(Operation::Cr);
    world.enrollment.allow = Deviations::NONE.with(Deviation::SignedAnswerToMac);
    world.enrollment.trusted.clear();
    world.next_says(signed_answer);
    let failure = waits(world.begin().expect("a beginning")).failure;
    assert_eq!(failure.expect("a failure").class, FailureClass::Security);
}

/// RFC 9483, 4.1.1 and 4.4: certConf and pollReq too, and never by the new certificate.
#[test]
fn every_message_is_protected_by_the_credential_of_the_first() {
    for (of_world, kind) in [
        (world as fn(Operation) -> World, ProtectionKind::Mac),
        (signing_world, ProtectionKind::Signature),
    ] {
        let world = of_world(Operation::Cr);
        world.next_says(move |ca, request| {
            let answer = match kind {
                ProtectionKind::Mac => Answer::under_secret(request),
                _ => Answer::signed(ca, request),
            };
            let waiting = PkiStatusInfo::new(PkiStatus::Waiting);
            answer.with(&crate::ca::error(waiting))
        });
        waits(world.begin().expect("a beginning"));
        world.next_says(move |ca, request| {
            let answer = match kind {
                ProtectionKind::Mac => Answer::under_secret(request),
                _ => Answer::signed(ca, request),
            };
            answer.with(&PkiBody::Cp(response(&[granted(0, &ca.issue())])))
        });
        answers_well(&world);
        issued(world.step());
        assert_eq!(world.sent_types(), ["cr", "pollReq", "certConf"]);
        sent(&world, |_, message| {
            assert_eq!(protection_kind(message), kind);
            if kind == ProtectionKind::Signature {
                let own = super::super::peer::own_certificate(&world.ca);
                assert_eq!(message.extra_certs, [&own[..]]);
            }
        });
    }
}

/// Policy: an RA may speak after the CA, and weeks of waiting may see a new certificate.
#[test]
fn a_later_answer_may_have_another_signer_under_a_trusted_root() {
    let world = signing_world(Operation::Cr);
    world.next_says(signed_answer);
    world.next_says(|ca, request| {
        let says = super::super::peer::Says::end_entity("CN=RA", &[0x77; 20]);
        fitting(ca, request, &Answer::signed_as(ca, request, says))
    });
    issued(world.begin().expect("a beginning"));
}
