//! Certificates that are not taken, and refusals that leave a question open.

use abide_cmp::{BodyType, FailInfo, PkiBody, PkiMessage, PkiStatus, PkiStatusInfo};
use abide_enroll::{FailureClass, NetworkError, Operation, Response};

use crate::ca::{error, granted, response};
use crate::world::{SECOND, World, failed, issued, ok, waits};

/// The root certifies another key than the requested one.
#[test]
fn a_certificate_for_another_key_is_refused_by_cert_conf() {
    let world = World::new(Operation::P10cr);
    world.next_says(|ca, request| {
        let foreign = response(&[granted(-1, &ca.root)]);
        ca.seal(&ca.reply(request), &PkiBody::Cp(foreign))
    });
    world.next_says(|ca, request| ca.seal(&ca.reply(request), &PkiBody::PkiConf));
    let failure = failed(world.begin().expect("a beginning"));
    assert_eq!(failure.class, FailureClass::Security);
    let sent = world.last_sent();
    let message = PkiMessage::from_der(&sent).expect("a PKIMessage");
    let PkiBody::CertConf(statuses) = &message.body else {
        panic!("no certConf");
    };
    let info = statuses[0].status_info.as_ref().expect("a statusInfo");
    assert_eq!(info.status, PkiStatus::Rejection);
    assert_eq!(info.fail_info, Some(FailInfo::INCORRECT_DATA));
}

#[test]
fn a_refused_repetition_is_an_orphan() {
    let world = World::new(Operation::P10cr);
    world.ca.strict.set(true);
    world.next(|ca, request| {
        ca.answer(request);
        Err(NetworkError::Interrupted("reset".into()))
    });
    waits(world.begin().expect("a beginning"));
    let failure = failed(world.step());
    assert_eq!(failure.class, FailureClass::Refused);
    assert_eq!(failure.fail_info, ["transactionIdInUse"]);
    assert!(failure.orphan);
    assert_eq!(world.ca.issued.borrow().len(), 1);
    assert_eq!(world.ca.ids.borrow().len(), 1);
}

/// What was refused before anything else could happen to it is no orphan, even when
/// earlier attempts did not get there.
#[test]
fn a_refusal_after_attempts_that_did_not_arrive_is_no_orphan() {
    let world = World::new(Operation::P10cr);
    for _ in 0..2 {
        world.next(|_, _| Err(NetworkError::Unreachable("refused".into())));
    }
    world.next_says(|ca, request| {
        let status = PkiStatusInfo::rejection(FailInfo::NOT_AUTHORIZED, "no");
        ca.seal(&ca.reply(request), &error(status))
    });
    waits(world.begin().expect("a beginning"));
    waits(world.step());
    assert!(!failed(world.step()).orphan);
}

#[test]
fn an_endpoint_that_cannot_be_used_leaves_an_orphan_only_where_the_ca_knows_of_us() {
    let bad = || Err(NetworkError::BadEndpoint("no such scheme".into()));
    let world = World::new(Operation::P10cr);
    world.next(move |_, _| bad());
    let failure = failed(world.begin().expect("a beginning"));
    assert_eq!(
        (failure.class, failure.orphan),
        (FailureClass::Permanent, false)
    );

    let world = World::new(Operation::P10cr);
    world.ca.patience.set(1);
    waits(world.begin().expect("a beginning"));
    world.next(move |_, _| bad());
    let failure = failed(world.step());
    assert_eq!(
        (failure.class, failure.orphan),
        (FailureClass::Permanent, true)
    );
}

#[test]
fn a_cmp_message_counts_under_any_http_status_and_html_under_none() {
    for status in [200, 400, 404, 500, 503] {
        let world = World::new(Operation::P10cr);
        world.next(move |ca, request| {
            Ok(Response {
                status,
                ..ok(ca.answer(request))
            })
        });
        issued(world.begin().expect("a beginning"));
    }
    let world = World::new(Operation::P10cr);
    world.next(|_, _| {
        Ok(Response {
            content_type: Some("text/html".into()),
            ..ok(b"<html>".to_vec())
        })
    });
    let failure = waits(world.begin().expect("a beginning")).failure;
    assert_eq!(failure.expect("a failure").class, FailureClass::Malformed);
}

/// −1 by the RFC for a p10cr; 0 as widespread CAs send it; nothing else.
#[test]
fn the_cert_req_id_must_be_the_one_of_the_request() {
    let taken = |operation, kind, id| {
        let world = World::new(operation);
        world.next_says(move |ca, request| ca.grant(&ca.reply(request), kind, id));
        let progress = world.begin().expect("a beginning");
        matches!(progress.outcome, abide_enroll::Outcome::Issued(_))
    };
    for (id, p10cr, ir) in [(-1, true, false), (0, true, true), (1, false, false)] {
        assert_eq!(taken(Operation::P10cr, BodyType::Cp, id), p10cr, "{id}");
        assert_eq!(taken(Operation::Ir, BodyType::Ip, id), ir, "{id}");
    }
    assert!(
        !taken(Operation::P10cr, BodyType::Ip, -1),
        "an ip is no answer to p10cr"
    );
    assert!(
        !taken(Operation::Ir, BodyType::Cp, 0),
        "a cp is no answer to ir"
    );
}

/// The CA handed the certificate out in answer to the first poll, which was lost.
#[test]
fn a_refused_repetition_of_a_poll_is_an_orphan() {
    for lost in [true, false] {
        let world = World::new(Operation::P10cr);
        world.ca.patience.set(1);
        waits(world.begin().expect("a beginning"));
        world.next(move |ca, request| match lost {
            true => {
                ca.answer(request);
                Err(NetworkError::Timeout("30 s".into()))
            }
            false => Err(NetworkError::Unreachable("refused".into())),
        });
        waits(world.step());
        world.next_says(|ca, request| {
            let status = PkiStatusInfo::rejection(FailInfo::BAD_REQUEST, "nothing waits");
            ca.seal(&ca.reply(request), &error(status))
        });
        let failure = failed(world.step());
        assert_eq!(failure.class, FailureClass::Refused);
        assert_eq!(failure.orphan, lost);
        assert_eq!(world.ca.issued.borrow().len(), usize::from(lost));
    }
}

/// An answer that is authentic and useless is no progress: the pauses grow all the same.
#[test]
fn an_unreadable_certificate_does_not_make_the_pauses_short_again() {
    let world = World::new(Operation::P10cr);
    for _ in 0..4 {
        world.next_says(|ca, request| {
            let junk = [0x30, 0x03, 0x02, 0x01, 0x05];
            ca.seal(
                &ca.reply(request),
                &PkiBody::Cp(response(&[granted(-1, &junk)])),
            )
        });
    }
    let mut waiting = waits(world.begin().expect("a beginning"));
    for pause in [5, 10, 20] {
        assert_eq!(waiting.until_ms - world.now_ms.get(), pause * SECOND);
        waiting = waits(world.step());
    }
    issued(world.step());
}

/// The first word that there is a delay comes once more, in place of the certificate.
#[test]
fn an_old_waiting_is_no_answer_to_a_poll() {
    for operation in [Operation::P10cr, Operation::Ir] {
        let world = World::new(operation);
        world.ca.patience.set(1);
        waits(world.begin().expect("a beginning"));
        let request = world.last_sent();
        world.next_says(move |ca, poll| {
            ca.answer(poll);
            ca.answer(&request)
        });
        let failure = waits(world.step()).failure.expect("an answer not believed");
        assert_eq!(failure.class, FailureClass::Security);
        let sent = world.sent().len();
        let issued = issued(world.step());
        assert_eq!(world.sent()[sent - 1], world.sent()[sent], "the same poll");
        assert_eq!(issued.chain, *world.ca.issued.borrow());
    }
}
