//! What every received message must be.

use abide_cmp::{FailInfo, InfoTypeAndValue, Name, PkiBody, PkiStatus, PkiStatusInfo, oid};
use abide_enroll::{Deviation, Deviations, FailureClass, Operation, Phase};

use super::super::peer::{
    Answer, CERT_AND_CRL_SIGN, OWN_KID, SIGNER_KID, Says, answers_well, fitting, rp,
    signed_changes_nothing, signing_world,
};
use crate::ca::{Ca, error, granted, name, poll_rep, response};
use crate::faults::changes_nothing;
use crate::world::{World, issued, waits};

const PHASES: [Phase; 3] = [Phase::Enrolling, Phase::Polling, Phase::Confirming];

/// Makes the body of an answer.
type Body = fn(&Ca) -> PkiBody<'_>;

#[test]
fn what_is_no_pki_message_changes_nothing() {
    for phase in PHASES {
        for octets in [&b"x"[..], &[0x30, 0x00], &[0x30, 0x82, 0xff, 0xff]] {
            let words = &["no PKIMessage"];
            changes_nothing(phase, FailureClass::Malformed, words, move |_, _| {
                octets.to_vec()
            });
        }
        // A whole message and an octet after it.
        changes_nothing(
            phase,
            FailureClass::Malformed,
            &["octets follow"],
            |_, request| {
                let mut octets = Answer::under_secret(request).with(&PkiBody::PkiConf);
                octets.push(0);
                octets
            },
        );
    }
}

#[test]
fn pvno_is_2_or_3() {
    for pvno in [0, 1, 4, 127] {
        changes_nothing(
            Phase::Enrolling,
            FailureClass::Malformed,
            &["pvno"],
            move |_, request| {
                let answer = Answer {
                    pvno,
                    ..Answer::under_secret(request)
                };
                answer.with(&PkiBody::PkiConf)
            },
        );
    }
}

#[test]
fn transaction_id_is_there_and_ours() {
    let spoil: [fn(&mut Vec<u8>) -> bool; 4] = [
        |_| false,
        |id| {
            id[15] ^= 1;
            true
        },
        |id| {
            id.truncate(8);
            true
        },
        |id| {
            id.push(0);
            true
        },
    ];
    for phase in PHASES {
        for spoil in spoil {
            changes_nothing(
                phase,
                FailureClass::Security,
                &["transactionID"],
                move |_, request| {
                    let mut answer = Answer::under_secret(request);
                    let mut id = answer.transaction_id.take().expect("an id");
                    answer.transaction_id = spoil(&mut id).then_some(id);
                    answer.with(&PkiBody::PkiConf)
                },
            );
        }
    }
}

#[test]
fn the_body_must_be_allowed_in_this_state() {
    let bodies: [(&str, Body); 6] = [
        ("ip", |ca| PkiBody::Ip(response(&[granted(0, &ca.root)]))),
        ("kup", |ca| PkiBody::Kup(response(&[granted(0, &ca.root)]))),
        ("rp", |_| rp(PkiStatusInfo::new(PkiStatus::Accepted))),
        ("genp", |_| {
            PkiBody::Genp(vec![InfoTypeAndValue {
                info_type: oid::IT_CA_CERTS,
                value: None,
            }])
        }),
        ("certConf", |_| PkiBody::CertConf(Vec::new())),
        ("pollReq", |_| PkiBody::PollReq(vec![-1])),
    ];
    for phase in PHASES {
        for (words, body) in bodies {
            changes_nothing(
                phase,
                FailureClass::Malformed,
                &[words, "no answer in this state"],
                move |ca, request| Answer::under_secret(request).with(&body(ca)),
            );
        }
    }
    // These have their time.
    let early: [(Phase, &str, Body); 4] = [
        (Phase::Enrolling, "pkiconf", |_| PkiBody::PkiConf),
        (Phase::Polling, "pkiconf", |_| PkiBody::PkiConf),
        (Phase::Enrolling, "pollRep", |_| poll_rep(&[(-1, 20)])),
        (Phase::Confirming, "cp", |ca| {
            PkiBody::Cp(response(&[granted(-1, &ca.root)]))
        }),
    ];
    for (phase, words, body) in early {
        changes_nothing(
            phase,
            FailureClass::Malformed,
            &[words],
            move |ca, request| Answer::under_secret(request).with(&body(ca)),
        );
    }
}

#[test]
fn sender_nonce_is_there_and_has_at_least_128_bits() {
    for length in [None, Some(0), Some(1), Some(15)] {
        for phase in PHASES {
            changes_nothing(
                phase,
                FailureClass::Security,
                &["senderNonce"],
                move |_, request| {
                    let answer = Answer {
                        sender_nonce: length.map(|length| vec![3; length]),
                        ..Answer::under_secret(request)
                    };
                    answer.with(&PkiBody::PkiConf)
                },
            );
        }
    }
    for length in [16, 64] {
        let world = super::super::peer::world(Operation::Cr);
        world.next_says(move |ca, request| {
            let answer = Answer {
                sender_nonce: Some(vec![3; length]),
                ..Answer::under_secret(request)
            };
            fitting(ca, request, &answer)
        });
        world.next_says(super::super::peer::under_secret);
        issued(world.begin().expect("a beginning"));
    }
}

#[test]
fn recip_nonce_is_there_and_the_nonce_of_our_last_request() {
    let spoil: [fn(&mut Vec<u8>) -> bool; 3] = [
        |_| false,
        |nonce| {
            nonce[0] ^= 1;
            true
        },
        |nonce| {
            nonce.truncate(8);
            true
        },
    ];
    for phase in PHASES {
        for spoil in spoil {
            changes_nothing(
                phase,
                FailureClass::Security,
                &["recipNonce"],
                move |_, request| {
                    let mut answer = Answer::under_secret(request);
                    let mut nonce = answer.recip_nonce.take().expect("a nonce");
                    answer.recip_nonce = spoil(&mut nonce).then_some(nonce);
                    answer.with(&PkiBody::PkiConf)
                },
            );
        }
    }
}

/// RFC 9483, 4.4; Siemens' RA does so.
#[test]
fn recip_nonce_of_a_delayed_answer_may_be_that_of_the_delayed_request() {
    let world = World::new(Operation::P10cr);
    world.ca.patience.set(1);
    waits(world.begin().expect("a beginning"));
    let first = world.last_sent();
    world.next_says(move |ca, poll| {
        let answer = Answer {
            recip_nonce: Answer::under_secret(&first).recip_nonce,
            ..Answer::under_secret(poll)
        };
        let certificate = ca.issue();
        answer.with(&PkiBody::Cp(response(&[granted(-1, &certificate)])))
    });
    issued(world.step());

    // But only while something is delayed.
    let world = World::new(Operation::P10cr);
    world.next_is_answered();
    world.next_is_lost();
    waits(world.begin().expect("a beginning"));
    let first = world.sent()[0].clone();
    world.next_says(move |_, request| {
        let answer = Answer {
            recip_nonce: Answer::under_secret(&first).recip_nonce,
            ..Answer::under_secret(request)
        };
        let status = PkiStatusInfo::rejection(FailInfo::BAD_REQUEST, "old");
        answer.with(&error(status))
    });
    let failure = waits(world.step()).failure.expect("not believed");
    assert_eq!(failure.class, FailureClass::Security);
}

/// A cp that looks good, for the root's own key.
fn cp(ca: &Ca, answer: &Answer) -> Vec<u8> {
    answer.with(&PkiBody::Cp(response(&[granted(0, &ca.root)])))
}

#[test]
fn sender_kid_must_be_that_of_the_signer() {
    let world = signing_world(Operation::Cr);
    let (reason, advice) = signed_changes_nothing(&world, |ca, request| {
        let answer = Answer {
            sender_kid: Some(vec![0x99; 20]),
            ..Answer::signed(ca, request)
        };
        cp(ca, &answer)
    });
    assert!(reason.contains("no certificate of its sender"), "{reason}");
    assert!(!advice.contains("sender-kid-echoed"), "{advice}");
}

#[test]
fn our_own_sender_kid_sent_back_is_borne_where_allowed() {
    let echoed = |ca: &Ca, request: &[u8]| Answer {
        sender_kid: Some(OWN_KID.to_vec()),
        ..Answer::signed(ca, request)
    };
    let world = signing_world(Operation::Cr);
    let (_, advice) =
        signed_changes_nothing(&world, move |ca, request| cp(ca, &echoed(ca, request)));
    assert!(advice.contains("sender-kid-echoed"), "{advice}");

    let mut world = signing_world(Operation::Cr);
    world.enrollment.allow = Deviations::NONE.with(Deviation::SenderKidEchoed);
    for _ in 0..2 {
        world.next_says(move |ca, request| fitting(ca, request, &echoed(ca, request)));
    }
    issued(world.begin().expect("a beginning"));
}

#[test]
fn sender_must_be_the_subject_of_the_signer() {
    let mut world = signing_world(Operation::Cr);
    world.enrollment.allow = Deviation::ALL.into_iter().collect();
    let (reason, _) = signed_changes_nothing(&world, |ca, request| {
        let answer = Answer {
            sender: name("CN=CA,O=CMP"),
            ..Answer::signed(ca, request)
        };
        cp(ca, &answer)
    });
    assert!(reason.contains("no certificate of its sender"), "{reason}");
}

/// RFC 9810, 5.1.1.
#[test]
fn a_sender_that_is_the_null_dn_is_told_by_sender_kid() {
    let world = signing_world(Operation::Cr);
    world.next_says(|ca, request| {
        let answer = Answer {
            sender: Name::NULL,
            ..Answer::signed(ca, request)
        };
        fitting(ca, request, &answer)
    });
    answers_well(&world);
    issued(world.begin().expect("a beginning"));

    let world = signing_world(Operation::Cr);
    signed_changes_nothing(&world, |ca, request| {
        let answer = Answer {
            sender: Name::NULL,
            sender_kid: None,
            ..Answer::signed(ca, request)
        };
        cp(ca, &answer)
    });
}

#[test]
fn the_signer_must_be_traced_to_a_trusted_certificate() {
    let mut world = signing_world(Operation::Cr);
    world.enrollment.allow = Deviation::ALL.into_iter().collect();
    let (reason, _) = signed_changes_nothing(&world, |ca, request| {
        let other = Ca::with_key(ca.wanted().to_vec(), [8; 32]);
        let answer = Answer::signed(&other, request);
        cp(&other, &answer)
    });
    assert!(reason.contains("not trusted"), "{reason}");
}

#[test]
fn the_certificate_of_the_signer_must_be_valid_now() {
    let world = signing_world(Operation::Cr);
    let (reason, _) = signed_changes_nothing(&world, |ca, request| {
        let says = Says {
            not_after: b"260531235959Z",
            ..Says::end_entity("CN=CMP", SIGNER_KID)
        };
        cp(ca, &Answer::signed_as(ca, request, says))
    });
    assert!(reason.contains("2026-05-31"), "{reason}");
}

/// keyUsage that is there has digitalSignature; one that is not there forbids nothing.
#[test]
fn the_key_of_the_signer_must_be_for_digital_signatures() {
    // keyAgreement.
    const KEY_AGREEMENT: u8 = 0x08;
    let with = |key_usage| Says {
        key_usage,
        ..Says::end_entity("CN=CMP", SIGNER_KID)
    };
    for key_usage in [KEY_AGREEMENT, CERT_AND_CRL_SIGN] {
        let mut world = signing_world(Operation::Cr);
        // No CA: the option is not for it.
        world.enrollment.allow = Deviation::ALL.into_iter().collect();
        let (reason, advice) = signed_changes_nothing(&world, move |ca, request| {
            cp(ca, &Answer::signed_as(ca, request, with(Some(key_usage))))
        });
        assert!(reason.contains("digitalSignature"), "{reason}");
        assert!(!advice.contains("ca-without"), "{advice}");
    }
    let world = signing_world(Operation::Cr);
    world.next_says(move |ca, request| {
        fitting(ca, request, &Answer::signed_as(ca, request, with(None)))
    });
    answers_well(&world);
    issued(world.begin().expect("a beginning"));
}

/// Nokia's NCM and Insta Certifier sign with such a CA certificate.
#[test]
fn a_ca_that_may_only_sign_certificates_is_borne_where_allowed() {
    const CA: Says<'_> = Says {
        key_usage: Some(CERT_AND_CRL_SIGN),
        is_ca: true,
        ..Says::end_entity("CN=Sub", SIGNER_KID)
    };
    let world = signing_world(Operation::Cr);
    let (reason, advice) = signed_changes_nothing(&world, |ca, request| {
        cp(ca, &Answer::signed_as(ca, request, CA))
    });
    assert!(reason.contains("digitalSignature"), "{reason}");
    assert!(advice.contains("ca-without-digital-signature"), "{advice}");

    let mut world = signing_world(Operation::Cr);
    world.enrollment.allow = Deviations::NONE.with(Deviation::CaWithoutDigitalSignature);
    for _ in 0..2 {
        world.next_says(|ca, request| fitting(ca, request, &Answer::signed_as(ca, request, CA)));
    }
    issued(world.begin().expect("a beginning"));
}
