//! Ten faults that CMP clients are known for.

use abide_cmp::der::Integer;
use abide_cmp::{BodyType, FailInfo, PkiBody, PkiMessage, PkiStatus, PkiStatusInfo, PollRep};
use abide_enroll::{Confirmation, FailureClass, Operation, Phase, TransactionRecord};

use crate::ca::{Ca, Reply, answered, error, granted, poll_rep, response, waiting};
use crate::world::{LIMITS, MINUTE, SECOND, START_MS, World, body_type, failed, issued, ok, waits};

/// A world whose client waits in this phase, its last message sent and lost.
pub(crate) fn lost_in(phase: Phase) -> World {
    let world = World::new(Operation::P10cr);
    if phase == Phase::Polling {
        world.ca.patience.set(2);
    }
    if phase != Phase::Enrolling {
        world.next_is_answered();
    }
    world.next_is_lost();
    waits(world.begin().expect("a beginning"));
    if phase == Phase::Polling {
        waits(world.step());
    }
    assert_eq!(world.record().phase, phase);
    world
}

/// Everything in a record that an answer could change.
pub(crate) fn state(record: &TransactionRecord) -> impl PartialEq + std::fmt::Debug + use<> {
    let chain: Vec<Vec<u8>> = record.chain.iter().map(|der| der.to_vec()).collect();
    (
        (record.phase, record.confirmation, record.cert_req_id),
        (record.last_request.to_vec(), record.last_nonce.to_vec()),
        record.recip_nonce.as_ref().map(|nonce| nonce.to_vec()),
        record.peer_name.as_ref().map(|name| name.to_vec()),
        (record.polls, chain),
    )
}

/// An answer that must change nothing: its reason is told, the same octets go out again,
/// and an honest answer to them is still good.
pub(crate) fn changes_nothing(
    phase: Phase,
    class: FailureClass,
    words: &[&str],
    answer: impl Fn(&Ca, &[u8]) -> Vec<u8> + 'static,
) {
    let world = lost_in(phase);
    let before = state(&world.record());
    world.next_says(answer);
    let failure = waits(world.step())
        .failure
        .expect("a failure that is waited out");
    assert_eq!(failure.class, class, "{failure:?}");
    for word in words {
        assert!(failure.reason.contains(word), "{phase:?}: {failure:?}");
    }
    assert_eq!(state(&world.record()), before);
    let sent = world.sent();
    waits_or_ends(&world);
    let repeated = &world.sent()[sent.len()];
    let from = sent.len() - 2;
    assert!(sent[from..].iter().all(|octets| octets == repeated));
    let issued = issued(world.to_the_end());
    assert_eq!(issued.chain, *world.ca.issued.borrow());
}

fn waits_or_ends(world: &World) {
    let due = world.record().due_ms().expect("an open transaction");
    world.now_ms.set(due);
    world.resume().expect("a transaction to go on with");
}

#[test]
fn fault_01_after_a_delayed_enrollment_a_lost_cert_conf_is_resumed_with_cert_conf() {
    let world = World::new(Operation::P10cr);
    world.ca.patience.set(1);
    waits(world.begin().expect("a beginning"));
    world.next_is_answered();
    world.next_is_lost();
    waits(world.step());
    assert_eq!(world.sent_types(), ["p10cr", "pollReq", "certConf"]);
    assert_eq!(world.record().phase, Phase::Confirming);

    let issued = issued(world.step());
    assert_eq!(
        world.sent_types(),
        ["p10cr", "pollReq", "certConf", "certConf"]
    );
    assert_eq!(world.sent()[2], world.sent()[3]);
    assert_eq!(issued.confirmation, Confirmation::Confirmed);
    assert_eq!(issued.chain, *world.ca.issued.borrow());
}

#[test]
fn fault_02_cert_confirmed_in_answer_to_a_repeated_cert_conf_is_success() {
    let world = lost_in(Phase::Confirming);
    world.next_says(|ca, request| {
        let status = PkiStatusInfo::rejection(FailInfo::CERT_CONFIRMED, "it was");
        ca.seal(&ca.reply(request), &error(status))
    });
    let issued = issued(world.step());
    assert_eq!(issued.confirmation, Confirmation::Confirmed);
    assert_eq!(issued.chain, *world.ca.issued.borrow());
}

#[test]
fn fault_03_a_permanent_error_while_confirming_keeps_the_validated_chain() {
    let world = World::new(Operation::P10cr);
    world.next_is_answered();
    world.next_says(|ca, request| {
        let status = PkiStatusInfo::rejection(FailInfo::BAD_REQUEST, "out of turn");
        ca.seal(&ca.reply(request), &error(status))
    });
    let kept = issued(world.begin().expect("a beginning"));
    assert_eq!(kept.confirmation, Confirmation::Unacknowledged);
    assert_eq!(kept.chain, *world.ca.issued.borrow());
    assert!(kept.note.contains("out of turn"), "{kept:?}");
    assert_eq!(issued(world.resume().expect("the chain")).chain, kept.chain);
}

#[test]
fn fault_03_nor_does_an_endpoint_that_cannot_be_used_any_more() {
    let world = World::new(Operation::P10cr);
    world.next_is_answered();
    world.next(|_, _| Err(abide_enroll::NetworkError::BadEndpoint("forbidden".into())));
    let kept = issued(world.begin().expect("a beginning"));
    assert_eq!(kept.confirmation, Confirmation::Unacknowledged);
    assert_eq!(kept.chain, *world.ca.issued.borrow());
    assert!(kept.note.contains("forbidden"), "{kept:?}");
}

pub(crate) fn poll_ids(octets: &[u8]) -> Vec<i64> {
    let message = PkiMessage::from_der(octets).expect("a PKIMessage");
    match message.body {
        PkiBody::PollReq(ids) => ids,
        other => panic!("no pollReq but {}", other.body_type().name()),
    }
}

fn says_waiting(ca: &Ca, request: &[u8]) -> Vec<u8> {
    let status = PkiStatusInfo::new(PkiStatus::Waiting);
    ca.seal(&ca.reply(request), &error(status))
}

#[test]
fn fault_04_an_error_waiting_is_polled_for_with_minus_one() {
    for (operation, answer, id) in [
        (Operation::P10cr, BodyType::Cp, -1),
        (Operation::Ir, BodyType::Ip, 0),
    ] {
        let world = World::new(operation);
        world.next_says(says_waiting);
        waits(world.begin().expect("a beginning"));
        world.next_says(|ca, request| ca.seal(&ca.reply(request), &poll_rep(&[(-1, 20)])));
        waits(world.step());
        assert_eq!(poll_ids(&world.last_sent()), [-1]);
        // What comes in the end is what would have come at once.
        world.next_says(move |ca, request| ca.grant(&ca.reply(request), answer, id));
        issued(world.step());
    }
}

/// The id of a delayed enrollment is of no use any more once there is a certificate.
#[test]
fn fault_04_a_cert_conf_that_has_to_wait_is_polled_for_with_minus_one() {
    for patience in [0, 1] {
        let world = World::new(Operation::Ir);
        world.ca.patience.set(patience);
        for _ in 0..=patience {
            world.next_is_answered();
        }
        world.next_says(says_waiting);
        waits(world.begin().expect("a beginning"));
        if patience > 0 {
            waits(world.step());
        }
        assert_eq!(world.record().phase, Phase::Confirming);
        world.next_says(|ca, request| ca.seal(&ca.reply(request), &PkiBody::PkiConf));
        let issued = issued(world.step());
        assert_eq!(poll_ids(&world.last_sent()), [-1]);
        assert_eq!(issued.confirmation, Confirmation::Confirmed);
    }
}

#[test]
fn fault_04_a_waiting_response_is_polled_for_with_the_id_it_carried() {
    for (operation, id) in [
        (Operation::P10cr, -1),
        (Operation::P10cr, 0),
        (Operation::Ir, 0),
    ] {
        let world = World::new(operation);
        world.next_says(move |ca, request| {
            let content = response(&[waiting(id)]);
            let body = match body_type(request) {
                BodyType::Ir => PkiBody::Ip(content),
                _ => PkiBody::Cp(content),
            };
            ca.seal(&ca.reply(request), &body)
        });
        waits(world.begin().expect("a beginning"));
        world.next_is_lost();
        waits(world.step());
        assert_eq!(poll_ids(&world.last_sent()), [id], "{operation:?}");
    }
}

#[test]
fn fault_05_only_passing_refusals_are_followed_by_a_new_transaction() {
    // RFC 9483, 3.6.4.
    let anew = "begin anew after some time (RFC 9483, 3.6.4)";
    let in_use = "the CA may have issued a certificate that never arrived: look for the \
                  transactionID at the CA and revoke it, then enroll anew";
    let correct = "correct the request or ask the CA's operator, then begin anew";
    for (fail_info, name, advice) in [
        (FailInfo::SYSTEM_UNAVAIL, "systemUnavail", anew),
        (FailInfo::SYSTEM_FAILURE, "systemFailure", anew),
        (
            FailInfo::TRANSACTION_ID_IN_USE,
            "transactionIdInUse",
            in_use,
        ),
        (FailInfo::BAD_POP, "badPOP", correct),
        (FailInfo::BAD_CERT_TEMPLATE, "badCertTemplate", correct),
        (FailInfo::NOT_AUTHORIZED, "notAuthorized", correct),
        (FailInfo::BAD_REQUEST, "badRequest", correct),
        (FailInfo::BAD_MESSAGE_CHECK, "badMessageCheck", correct),
    ] {
        for in_response in [false, true] {
            let world = World::new(Operation::P10cr);
            world.next_says(move |ca, request| {
                let status = PkiStatusInfo::rejection(fail_info, "no");
                let body = match in_response {
                    true => PkiBody::Cp(response(&[answered(-1, status)])),
                    false => error(status),
                };
                ca.seal(&ca.reply(request), &body)
            });
            let failure = failed(world.begin().expect("a beginning"));
            assert_eq!(failure.class, FailureClass::Refused);
            assert_eq!(failure.fail_info, [name]);
            assert_eq!(failure.advice, advice, "{name}");
            assert_eq!(failure.passes(), advice != correct, "{name}");
            // It was asked once and refused; but what is in use is our own transaction.
            assert_eq!(failure.orphan, advice == in_use, "{name}");
        }
    }
}

/// A pollRep whose checkAfter is any INTEGER, given by its octets.
fn poll_rep_after(check_after: &[u8]) -> PkiBody<'_> {
    PkiBody::PollRep(vec![PollRep {
        cert_req_id: -1,
        check_after: Integer::from_octets(check_after).expect("an INTEGER in DER"),
        reason: None,
    }])
}

#[test]
fn fault_06_any_check_after_is_clamped() {
    let (least, most) = (
        LIMITS.minimum_poll_interval_ms,
        LIMITS.maximum_poll_interval_ms,
    );
    let cases: [(&[u8], u64); 12] = [
        (&[0x00], least),
        (&[0xff], least),
        (&[0x80, 0, 0, 0], least),
        (&[0x80, 0, 0, 0, 0, 0, 0, 0], least),
        (&[0xff, 0x7f, 0, 0, 0, 0, 0, 0, 0, 0], least),
        (&[0x09], least),
        (&[0x0b], 11 * SECOND),
        (&[0x00, 0xf0], 4 * MINUTE),
        (&[0x00, 0xf1], most),
        (&[0x00, 0x80, 0, 0, 0], most),
        (&[0x00, 0x80, 0, 0, 0, 0, 0, 0, 0], most),
        (&[0x01, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0], most),
    ];
    for (check_after, wait) in cases {
        let world = World::new(Operation::P10cr);
        world.ca.patience.set(2);
        waits(world.begin().expect("a beginning"));
        world.next_says(move |ca, request| {
            ca.seal(&ca.reply(request), &poll_rep_after(check_after))
        });
        let waiting = waits(world.step());
        assert_eq!(waiting.failure, None, "{check_after:x?}");
        let waited = waiting.until_ms - world.now_ms.get();
        assert_eq!(waited, wait, "{check_after:x?}");
        // No loop, however often it is called before its time.
        let sent = world.sent().len();
        for _ in 0..100 {
            waits(world.resume().expect("an open transaction"));
        }
        assert_eq!(world.sent().len(), sent);
    }
}

#[test]
fn fault_07_a_cp_with_two_responses_changes_no_state() {
    for phase in [Phase::Enrolling, Phase::Polling] {
        changes_nothing(
            phase,
            FailureClass::Malformed,
            &["CertResponse"],
            |ca, request| {
                // Not in the books: it is no certificate that the client could take.
                let certificate = ca.root.clone();
                let both = [granted(-1, &certificate), granted(0, &certificate)];
                ca.seal(&ca.reply(request), &PkiBody::Cp(response(&both)))
            },
        );
    }
}

#[test]
fn fault_07_a_poll_rep_without_one_entry_or_with_two_is_refused() {
    for entries in [
        &[][..],
        &[(-1, 20), (-1, 20)],
        &[(-1, 20), (0, 20)],
        &[(0, 20)],
    ] {
        let words = &["pollRep"];
        changes_nothing(
            Phase::Polling,
            FailureClass::Malformed,
            words,
            move |ca, request| ca.seal(&ca.reply(request), &poll_rep(entries)),
        );
    }
}

#[test]
fn fault_08_an_unreadable_certificate_that_is_not_needed_sinks_nothing() {
    let world = World::new(Operation::P10cr);
    world.next_says(|ca, request| {
        let (nonsense, new) = (vec![0x30, 0x03, 0x02, 0x01, 0x05], ca.issue());
        let mut reply = ca.reply(request);
        reply.extra_certs = vec![nonsense.clone(), ca.root.clone(), nonsense.clone()];
        let mut content = response(&[granted(-1, &new)]);
        content.ca_pubs = vec![&nonsense, &ca.root];
        ca.seal(&reply, &PkiBody::Cp(content))
    });
    let issued = issued(world.begin().expect("a beginning"));
    assert_eq!(issued.chain, *world.ca.issued.borrow());
    assert_eq!(issued.ca_pubs, std::slice::from_ref(&world.ca.root));
}

#[test]
fn fault_09_an_error_that_cannot_be_believed_changes_no_state_and_is_told() {
    let spoil: [fn(&mut Reply); 4] = [
        |reply| reply.protected = false,
        |reply| reply.transaction_id = Some(vec![1; 16]),
        |reply| reply.recip_nonce = Some(vec![2; 16]),
        |reply| reply.recip_nonce = None,
    ];
    for phase in [Phase::Enrolling, Phase::Polling, Phase::Confirming] {
        for spoil in spoil {
            let words = &["unauthenticated", "badRequest", "go away"];
            changes_nothing(phase, FailureClass::Security, words, move |ca, request| {
                let mut reply = ca.reply(request);
                spoil(&mut reply);
                let status = PkiStatusInfo::rejection(FailInfo::BAD_REQUEST, "go away");
                ca.seal(&reply, &error(status))
            });
        }
    }
}

#[test]
fn fault_09_nor_does_any_message_under_another_secret() {
    changes_nothing(
        Phase::Enrolling,
        FailureClass::Security,
        &["MAC"],
        |ca, request| {
            let mut forged = ca.seal(&ca.reply(request), &PkiBody::Cp(response(&[waiting(-1)])));
            // The last octet of a message without extraCerts is one of its MAC.
            *forged.last_mut().expect("a MAC") ^= 1;
            forged
        },
    );
}

#[test]
fn fault_10_a_pvno_1_answer_is_not_taken_and_the_reason_is_shown() {
    for phase in [Phase::Enrolling, Phase::Polling, Phase::Confirming] {
        changes_nothing(
            phase,
            FailureClass::Malformed,
            &["pvno 1"],
            |ca, request| {
                let mut reply = ca.reply(request);
                reply.pvno = 1;
                let status =
                    PkiStatusInfo::rejection(FailInfo::UNSUPPORTED_VERSION, "2 is too new");
                ca.seal(&reply, &error(status))
            },
        );
    }
}

#[test]
fn fault_10_the_reason_is_shown_whatever_http_says() {
    let world = World::new(Operation::P10cr);
    world.next(|ca, request| {
        let mut reply = ca.reply(request);
        reply.pvno = 1;
        let status = PkiStatusInfo::rejection(FailInfo::UNSUPPORTED_VERSION, "2 is too new");
        let body = ca.seal(&reply, &error(status));
        Ok(abide_enroll::Response {
            status: 400,
            ..ok(body)
        })
    });
    let failure = waits(world.begin().expect("a beginning")).failure;
    let failure = failure.expect("a failure that is waited out");
    assert!(failure.reason.contains("pvno 1"), "{failure:?}");
}

#[test]
fn fault_10_pvno_3_is_understood() {
    let world = World::new(Operation::P10cr);
    let version_3 = |ca: &Ca, request: &[u8]| Reply {
        pvno: 3,
        ..ca.reply(request)
    };
    world.next_says(move |ca, request| ca.grant(&version_3(ca, request), BodyType::Cp, -1));
    world.next_says(move |ca, request| ca.seal(&version_3(ca, request), &PkiBody::PkiConf));
    issued(world.begin().expect("a beginning"));
    assert_eq!(world.now_ms.get(), START_MS, "nothing had to be waited for");
}
