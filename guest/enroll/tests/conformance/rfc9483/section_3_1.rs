//! The header.

use abide_cmp::der::{Writer, tag};
use abide_cmp::{
    FailInfo, GeneralName, InfoTypeAndValue, Name, PkiMessage, PkiStatus, PkiStatusInfo, Time, oid,
};
use abide_enroll::{
    Confirmation, Deviation, Deviations, FailureClass, Information, Operation, Phase, Want,
};

use super::super::peer::{
    Answer, By, OWN_KID, SIGNER_KID, Says, answers_well, fitting, sent, signing_world, start,
    under_secret, world,
};
use crate::ca::{REFERENCE, error, name, poll_rep};
use crate::faults::changes_nothing;
use crate::world::{SECOND, START_MS, World, failed, issued, waits};

const ALL: [Operation; 6] = [
    Operation::Ir,
    Operation::Cr,
    Operation::P10cr,
    Operation::Kur,
    Operation::Rr,
    Operation::Genm,
];

/// All operations with each protection they can have, gone through to a good end.
fn through(judge: impl Fn(&World, usize, &PkiMessage<'_>)) {
    for operation in ALL {
        for world in [world(operation), signing_world(operation)] {
            answers_well(&world);
            let progress = world.begin().expect("a beginning");
            assert!(!progress.phase.is_open(), "{progress:?}");
            sent(&world, |index, message| judge(&world, index, message));
        }
    }
}

#[test]
fn pvno_is_2_where_nothing_newer_is_needed() {
    through(|_, _, message| assert_eq!(message.header.pvno, 2));
}

#[test]
fn sender_is_the_subject_of_the_own_certificate_and_sender_kid_its_key_identifier() {
    let world = signing_world(Operation::Cr);
    answers_well(&world);
    issued(world.begin().expect("a beginning"));
    sent(&world, |_, message| {
        let expected = GeneralName::Directory(name("CN=device,O=Us"));
        assert_eq!(message.header.sender, expected);
        assert_eq!(message.header.sender_kid, Some(OWN_KID));
    });
}

#[test]
fn with_a_mac_sender_names_the_secret_as_common_name_and_so_does_sender_kid() {
    let world = world(Operation::Cr);
    answers_well(&world);
    issued(world.begin().expect("a beginning"));
    sent(&world, |_, message| {
        let expected = GeneralName::Directory(name("CN=device"));
        assert_eq!(message.header.sender, expected);
        assert_eq!(message.header.sender_kid, Some(REFERENCE));
    });
}

#[test]
fn recipient_is_the_ca_that_was_given_or_the_null_dn() {
    for (given, expected) in [("", Name::NULL), ("CN=CA", name("CN=CA"))] {
        let mut world = world(Operation::Cr);
        world.enrollment.recipient = given.into();
        world.next_is_lost();
        waits(world.begin().expect("a beginning"));
        sent(&world, |_, message| {
            let recipient = GeneralName::Directory(expected.clone());
            assert_eq!(message.header.recipient, recipient);
        });
    }
}

#[test]
fn recipient_of_later_messages_is_the_sender_of_the_answer() {
    let world = world(Operation::Cr);
    world.next_says(|ca, request| {
        let answer = Answer {
            sender: name("CN=RA,O=Between"),
            ..Answer::under_secret(request)
        };
        fitting(ca, request, &answer)
    });
    world.next_is_lost();
    waits(world.begin().expect("a beginning"));
    sent(&world, |index, message| {
        let expected = [Name::NULL, name("CN=RA,O=Between")][index].clone();
        assert_eq!(message.header.recipient, GeneralName::Directory(expected));
    });
}

#[test]
fn message_time_is_the_time_at_which_the_message_was_made() {
    let world = world(Operation::Cr);
    world.next(|_, _| Err(abide_enroll::NetworkError::Unreachable("refused".into())));
    waits(world.begin().expect("a beginning"));
    answers_well(&world);
    issued(world.step());
    let later = (world.now_ms.get() - START_MS) / SECOND;
    assert!(later > 0);
    let confirmed = Time::from_unix(start().unix() + later as i64);
    sent(&world, |index, message| {
        // The second is the first again, octet for octet.
        let made = [start(), start(), confirmed][index];
        assert_eq!(message.header.message_time, Some(made));
    });
}

#[test]
fn transaction_id_is_128_bits_drawn_anew_and_the_same_in_all_messages() {
    let mut ids = std::collections::BTreeSet::new();
    let world = World::new(Operation::P10cr);
    for _ in 0..2 {
        world.ca.patience.set(1);
        let due = waits(world.begin().expect("a beginning")).until_ms;
        world.now_ms.set(due);
        issued(world.resume().expect("an end"));
        world.ca.confirmed.set(0);
        world.ca.issued.borrow_mut().clear();
        let messages = world.sent();
        let from = messages.len() - 3;
        let of_this: std::collections::BTreeSet<_> = messages[from..]
            .iter()
            .map(|octets| {
                let message = PkiMessage::from_der(octets).expect("a PKIMessage");
                message.header.transaction_id.expect("an id").to_vec()
            })
            .collect();
        assert_eq!(of_this.len(), 1);
        ids.extend(of_this);
    }
    assert_eq!(ids.len(), 2);
    assert!(ids.iter().all(|id| id.len() == 16));
}

#[test]
fn sender_nonce_is_128_bits_drawn_anew_for_every_message() {
    let world = World::new(Operation::P10cr);
    world.ca.patience.set(2);
    waits(world.begin().expect("a beginning"));
    waits(world.step());
    issued(world.step());
    let nonces: std::collections::BTreeSet<_> = world
        .sent()
        .iter()
        .map(|octets| {
            let message = PkiMessage::from_der(octets).expect("a PKIMessage");
            let nonce = message.header.sender_nonce.expect("a nonce").to_vec();
            assert_eq!(nonce.len(), 16);
            nonce
        })
        .collect();
    assert_eq!(nonces.len(), 4, "p10cr, two pollReq, certConf");
}

#[test]
fn recip_nonce_is_absent_at_first_and_then_the_nonce_of_the_answer_before() {
    let world = world(Operation::Cr);
    world.next_says(|ca, request| {
        let answer = Answer {
            sender_nonce: Some(vec![0xab; 16]),
            ..Answer::under_secret(request)
        };
        fitting(ca, request, &answer)
    });
    world.next_says(under_secret);
    issued(world.begin().expect("a beginning"));
    sent(&world, |index, message| {
        let expected = [None, Some(&[0xab; 16][..])][index];
        assert_eq!(message.header.recip_nonce, expected);
    });
}

#[test]
fn implicit_confirm_is_asked_for_as_null_and_in_requests_for_certificates_only() {
    for operation in ALL {
        let mut world = world(operation);
        world.enrollment.implicit_confirm = true;
        answers_well(&world);
        world.begin().expect("a beginning");
        sent(&world, |index, message| {
            let infos = &message.header.general_info;
            let asks = index == 0 && operation.enrolls();
            let expected = InfoTypeAndValue {
                info_type: oid::IT_IMPLICIT_CONFIRM,
                value: Some(&[0x05, 0x00]),
            };
            assert_eq!(infos.as_slice(), vec![expected; usize::from(asks)]);
        });
    }
}

#[test]
fn cert_profile_is_one_utf8_string_and_in_requests_for_certificates_or_templates_only() {
    let profile = [0x30, 0x05, 0x0c, 0x03, b't', b'l', b's'];
    for operation in ALL {
        let mut world = world(operation);
        world.enrollment.profile = "tls".into();
        if operation == Operation::Genm {
            world.enrollment.want = Want::Information(Information::CertReqTemplate);
        }
        answers_well(&world);
        world.begin().expect("a beginning");
        sent(&world, |index, message| {
            let infos = &message.header.general_info;
            let tells = index == 0 && operation != Operation::Rr;
            let expected = InfoTypeAndValue {
                info_type: oid::IT_CERT_PROFILE,
                value: Some(&profile),
            };
            assert_eq!(infos.as_slice(), vec![expected; usize::from(tells)]);
        });
    }
    // caCerts is no request for a template.
    let mut world = world(Operation::Genm);
    world.enrollment.profile = "tls".into();
    answers_well(&world);
    world.begin().expect("a beginning");
    sent(&world, |_, message| {
        assert_eq!(message.header.general_info, []);
    });
}

/// RFC 9810, 7 asks for the version of the request; OpenSSL answers a certConf with pvno 3
/// by a pkiConf with pvno 2.
#[test]
fn an_answer_may_have_the_other_pvno() {
    let world = world(Operation::Cr);
    world.next_says(|ca, request| {
        let answer = Answer {
            pvno: 3,
            ..Answer::under_secret(request)
        };
        fitting(ca, request, &answer)
    });
    world.next_says(under_secret);
    issued(world.begin().expect("a beginning"));
}

fn unsupported_version(request: &[u8], pvno: u8, by: By) -> Vec<u8> {
    let answer = Answer {
        pvno,
        by,
        ..Answer::under_secret(request)
    };
    let status = PkiStatusInfo::rejection(FailInfo::UNSUPPORTED_VERSION, "not this one");
    answer.with(&error(status))
}

/// RFC 9810, 7.
#[test]
fn unsupported_version_is_followed_by_the_request_in_that_version() {
    for operation in [Operation::Cr, Operation::Genm] {
        let world = world(operation);
        world.next_says(|_, request| unsupported_version(request, 3, By::Secret));
        answers_well(&world);
        let progress = world.begin().expect("a beginning");
        assert!(!progress.phase.is_open(), "{progress:?}");
        assert_ne!(progress.phase, Phase::Failed);
        let ids: Vec<_> = world
            .sent()
            .iter()
            .map(|octets| {
                let message = PkiMessage::from_der(octets).expect("a PKIMessage");
                message.header.transaction_id.map(<[u8]>::to_vec)
            })
            .collect();
        assert!(ids.windows(2).all(|two| two[0] == two[1]));
        sent(&world, |index, message| {
            let header = &message.header;
            assert_eq!(header.pvno, if index == 0 { 2 } else { 3 });
            // What is asked anew is a first message again.
            assert_eq!(header.recip_nonce.is_none(), index < 2);
        });
    }
}

#[test]
fn unsupported_version_a_second_time_or_for_an_older_version_is_a_refusal() {
    for versions in [&[3, 3][..], &[2]] {
        let world = world(Operation::Cr);
        for &pvno in versions {
            world.next_says(move |_, request| unsupported_version(request, pvno, By::Secret));
        }
        let failure = failed(world.begin().expect("a beginning"));
        assert_eq!(failure.class, FailureClass::Refused);
        assert_eq!(failure.fail_info, ["unsupportedVersion"]);
        assert!(!failure.orphan && !failure.passes());
        assert_eq!(world.sent().len(), versions.len());
    }
}

#[test]
fn unsupported_version_without_protection_is_told_and_changes_nothing() {
    let words = &["unsupportedVersion", "unauthenticated"];
    changes_nothing(
        Phase::Enrolling,
        FailureClass::Security,
        words,
        |_, request| unsupported_version(request, 3, By::Nobody),
    );
}

#[test]
fn the_recipient_of_an_answer_decides_nothing() {
    for recipient in [Name::NULL, name("CN=somebody else")] {
        let world = world(Operation::Cr);
        world.next_says(move |ca, request| {
            let answer = Answer {
                recipient: recipient.clone(),
                ..Answer::under_secret(request)
            };
            fitting(ca, request, &answer)
        });
        world.next_says(under_secret);
        issued(world.begin().expect("a beginning"));
    }
}

#[test]
fn unknown_general_info_and_free_text_decide_nothing() {
    // 1.2.3.4 in X.690, 8.19.
    let unknown = oid::Oid::from_content(&[0x2a, 0x03, 0x04]).expect("an identifier");
    let world = world(Operation::Cr);
    world.next_says(move |ca, request| {
        let answer = Answer {
            general_info: vec![(unknown, None), (unknown, Some(vec![0x02, 0x01, 0x05]))],
            free_text: Some("rejected, revoked, whatever"),
            ..Answer::under_secret(request)
        };
        fitting(ca, request, &answer)
    });
    world.next_says(under_secret);
    issued(world.begin().expect("a beginning"));
}

#[test]
fn with_a_mac_the_names_of_the_sender_decide_nothing() {
    for (sender, kid) in [
        (Name::NULL, None),
        (name("CN=who"), Some(b"other".to_vec())),
        (name("CN=device"), Some(Vec::new())),
    ] {
        let world = world(Operation::Cr);
        world.next_says(move |ca, request| {
            let answer = Answer {
                sender: sender.clone(),
                sender_kid: kid.clone(),
                ..Answer::under_secret(request)
            };
            fitting(ca, request, &answer)
        });
        world.next_says(under_secret);
        issued(world.begin().expect("a beginning"));
    }
}

/// EJBCA has been seen to turn the names round.
#[test]
fn a_sender_with_its_names_in_reverse_order_is_known() {
    let world = signing_world(Operation::Cr);
    world.next_says(|ca, request| {
        let says = Says::end_entity("CN=CMP,O=CA,C=FI", SIGNER_KID);
        let answer = Answer {
            sender: name("C=FI,O=CA,CN=CMP"),
            ..Answer::signed_as(ca, request, says)
        };
        fitting(ca, request, &answer)
    });
    answers_well(&world);
    issued(world.begin().expect("a beginning"));
}

const NULL: [u8; 2] = [0x05, 0x00];

/// Goes through an ip with this generalInfo; the number of messages and the confirmation.
fn with_info(
    asked: bool,
    info: Vec<(oid::Oid<'static>, Option<Vec<u8>>)>,
) -> (usize, Confirmation) {
    let mut world = world(Operation::Ir);
    world.enrollment.implicit_confirm = asked;
    world.next_says(move |ca, request| {
        let answer = Answer {
            general_info: info.clone(),
            message_time: Some(start()),
            ..Answer::under_secret(request)
        };
        fitting(ca, request, &answer)
    });
    world.next_says(under_secret);
    let issued = issued(world.begin().expect("a beginning"));
    (world.sent().len(), issued.confirmation)
}

#[test]
fn implicit_confirm_that_is_granted_needs_no_cert_conf() {
    let granted = vec![(oid::IT_IMPLICIT_CONFIRM, Some(NULL.to_vec()))];
    assert_eq!(with_info(true, granted), (1, Confirmation::Implicit));
    assert_eq!(with_info(true, Vec::new()), (2, Confirmation::Confirmed));
}

#[test]
fn implicit_confirm_that_was_not_asked_for_is_not_used() {
    let granted = vec![(oid::IT_IMPLICIT_CONFIRM, Some(NULL.to_vec()))];
    assert_eq!(with_info(false, granted), (2, Confirmation::Confirmed));
}

#[test]
fn implicit_confirm_with_another_value_than_null_is_not_used() {
    for value in [None, Some(vec![0x02, 0x01, 0x00]), Some(vec![0x30, 0x00])] {
        let odd = vec![(oid::IT_IMPLICIT_CONFIRM, value)];
        assert_eq!(with_info(true, odd), (2, Confirmation::Confirmed));
    }
}

fn wait_time() -> Vec<u8> {
    Writer::encode(|w| w.element(tag::GENERALIZED_TIME, b"20260601000500Z"))
}

#[test]
fn implicit_confirm_beside_confirm_wait_time_is_not_used() {
    let both = vec![
        (oid::IT_IMPLICIT_CONFIRM, Some(NULL.to_vec())),
        (oid::IT_CONFIRM_WAIT_TIME, Some(wait_time())),
    ];
    assert_eq!(with_info(true, both), (2, Confirmation::Confirmed));
}

#[test]
fn implicit_confirm_in_another_answer_than_ip_cp_kup_means_nothing() {
    let mut world = World::new(Operation::P10cr);
    world.enrollment.implicit_confirm = true;
    world.ca.patience.set(2);
    waits(world.begin().expect("a beginning"));
    world.next_says(|_, request| {
        let answer = Answer {
            general_info: vec![(oid::IT_IMPLICIT_CONFIRM, Some(NULL.to_vec()))],
            ..Answer::under_secret(request)
        };
        answer.with(&poll_rep(&[(-1, 20)]))
    });
    waits(world.step());
    world.ca.patience.set(1);
    let issued = issued(world.step());
    assert_eq!(issued.confirmation, Confirmation::Confirmed);
    assert_eq!(world.sent_types().last(), Some(&"certConf"));
}

#[test]
fn the_time_until_which_the_ca_waits_for_cert_conf_is_in_the_history() {
    let world = world(Operation::Ir);
    world.next_says(|ca, request| {
        let answer = Answer {
            general_info: vec![(oid::IT_CONFIRM_WAIT_TIME, Some(wait_time()))],
            message_time: Some(start()),
            ..Answer::under_secret(request)
        };
        fitting(ca, request, &answer)
    });
    world.next_is_lost();
    waits(world.begin().expect("a beginning"));
    assert_eq!(world.sent_types(), ["ir", "certConf"], "without delay");
    let history = world.record().history;
    let told = |line: &abide_enroll::HistoryEntry| line.text.contains("2026-06-01T00:05:00Z");
    assert!(history.iter().any(told), "{history:?}");
}

/// Policy (RFC 9483, 3.5): nonces guard against old answers, so that a clock decides nothing.
#[test]
fn a_message_time_far_from_our_clock_is_told_and_decides_nothing() {
    for (away, told) in [
        (0, None),
        (-299, None),
        (301, Some("301 s ahead of ours")),
        (-86_400, Some("86400 s behind ours")),
    ] {
        let world = world(Operation::Cr);
        world.next_says(move |ca, request| {
            let answer = Answer {
                message_time: Some(Time::from_unix(start().unix() + away)),
                ..Answer::under_secret(request)
            };
            fitting(ca, request, &answer)
        });
        world.next_says(under_secret);
        issued(world.begin().expect("a beginning"));
        let history = world.record().history;
        let line = history.iter().find(|line| line.text.contains("clock"));
        match told {
            None => assert!(line.is_none(), "{line:?}"),
            Some(words) => assert!(line.is_some_and(|line| line.text.contains(words))),
        }
    }
}

/// Fractions are legal in DER unless they end with zeros (X.690, 11.7.3).
#[test]
fn fractions_of_a_second_are_read_and_those_with_zeros_where_allowed() {
    let with_time = |time: &'static [u8]| {
        move |_: &crate::ca::Ca, request: &[u8]| {
            let answer = Answer {
                message_time: Some(start()),
                ..Answer::under_secret(request)
            };
            let [plain, other] = [&b"20260601000000Z"[..], time]
                .map(|time| Writer::encode(|w| w.element(tag::GENERALIZED_TIME, time)));
            let answer = Answer {
                swaps: vec![(plain, other)],
                ..answer
            };
            answer.with(&error(PkiStatusInfo::new(PkiStatus::Waiting)))
        }
    };
    for (time, allowed, taken) in [
        (&b"20260601000000.589Z"[..], false, true),
        (b"20260601000000.500Z", false, false),
        (b"20260601000000.500Z", true, true),
    ] {
        let mut world = world(Operation::Cr);
        if allowed {
            world.enrollment.allow = Deviations::NONE.with(Deviation::FractionalSeconds);
        }
        world.next_says(with_time(time));
        let waiting = waits(world.begin().expect("a beginning"));
        assert_eq!(waiting.failure.is_none(), taken, "{waiting:?}");
        if let Some(failure) = waiting.failure {
            assert_eq!(failure.class, FailureClass::Malformed);
            assert!(failure.advice.contains("fractional-seconds"), "{failure:?}");
        }
    }
}
