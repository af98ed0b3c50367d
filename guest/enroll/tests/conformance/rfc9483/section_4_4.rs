//! Delayed delivery.

use abide_cmp::{FailInfo, PkiBody, PkiMessage, PkiStatus, PkiStatusInfo};
use abide_enroll::{Confirmation, FailureClass, Operation, Phase};

use super::super::peer::{Answer, rep, signed_answer, signing_world, under_secret, world};
use crate::ca::{answered, error, granted, poll_rep, response, waiting};
use crate::faults::{changes_nothing, poll_ids, state};
use crate::world::{LIMITS, SECOND, World, issued, waits};

#[test]
fn a_response_with_waiting_is_polled_for_with_its_id_and_an_error_with_minus_1() {
    for (operation, body, id) in [
        (Operation::Ir, Some(0), 0),
        (Operation::Cr, Some(0), 0),
        (Operation::P10cr, Some(-1), -1),
        // As NCM and EJBCA have it; then that is what is asked for.
        (Operation::P10cr, Some(0), 0),
        (Operation::Cr, None, -1),
    ] {
        let world = world(operation);
        world.next_says(move |_, request| {
            let body = match body {
                Some(id) => rep(operation, response(&[waiting(id)])),
                None => error(PkiStatusInfo::new(PkiStatus::Waiting)),
            };
            Answer::under_secret(request).with(&body)
        });
        assert_eq!(waits(world.begin().expect("a beginning")).failure, None);
        world.next_is_lost();
        waits(world.step());
        assert_eq!(poll_ids(&world.last_sent()), [id], "{operation:?}");
    }
}

#[test]
fn fail_info_is_absent_with_waiting() {
    let status = || PkiStatusInfo {
        fail_info: Some(FailInfo::SYSTEM_UNAVAIL),
        ..PkiStatusInfo::new(PkiStatus::Waiting)
    };
    for in_error in [true, false] {
        let world = world(Operation::Cr);
        world.next_is_lost();
        waits(world.begin().expect("a beginning"));
        let before = state(&world.record());
        world.next_says(move |_, request| {
            let body = match in_error {
                true => error(status()),
                false => PkiBody::Cp(response(&[answered(0, status())])),
            };
            Answer::under_secret(request).with(&body)
        });
        let failure = waits(world.step()).failure.expect("a failure");
        assert_eq!(failure.class, FailureClass::Malformed);
        assert!(failure.reason.contains("failInfo"), "{failure:?}");
        assert_eq!(state(&world.record()), before);
    }
}

#[test]
fn poll_rep_has_one_entry_with_the_id_of_poll_req() {
    for entries in [&[][..], &[(0, 20)], &[(7, 20)], &[(-1, 20), (-1, 20)]] {
        changes_nothing(
            Phase::Polling,
            FailureClass::Malformed,
            &["pollRep"],
            move |_, request| Answer::under_secret(request).with(&poll_rep(entries)),
        );
    }
}

#[test]
fn check_after_is_waited_for_within_the_bounds_of_the_configuration() {
    for (check_after, wait) in [
        (i64::MIN, LIMITS.minimum_poll_interval_ms),
        (0, LIMITS.minimum_poll_interval_ms),
        (9, LIMITS.minimum_poll_interval_ms),
        (11, 11 * SECOND),
        (241, LIMITS.maximum_poll_interval_ms),
        (i64::MAX, LIMITS.maximum_poll_interval_ms),
    ] {
        let world = World::new(Operation::P10cr);
        world.ca.patience.set(1);
        waits(world.begin().expect("a beginning"));
        world.next_says(move |_, request| {
            Answer::under_secret(request).with(&poll_rep(&[(-1, check_after)]))
        });
        let until = waits(world.step()).until_ms;
        assert_eq!(until - world.now_ms.get(), wait, "{check_after}");
        // Nothing is sent before its time.
        let sent = world.sent().len();
        world.now_ms.set(until - 1);
        waits(world.resume().expect("an open transaction"));
        assert_eq!(world.sent().len(), sent);
        world.now_ms.set(until);
        issued(world.resume().expect("an end"));
    }
}

#[test]
fn a_delay_may_be_said_again_and_the_final_answer_is_any_other() {
    let world = world(Operation::Cr);
    let says_waiting = |_: &crate::ca::Ca, request: &[u8]| {
        let waiting = PkiStatusInfo::new(PkiStatus::Waiting);
        Answer::under_secret(request).with(&error(waiting))
    };
    world.next_says(says_waiting);
    waits(world.begin().expect("a beginning"));
    world.next_says(says_waiting);
    assert_eq!(waits(world.step()).failure, None);
    world.next_says(|_, request| Answer::under_secret(request).with(&poll_rep(&[(-1, 20)])));
    assert_eq!(waits(world.step()).failure, None);
    world.next_says(|ca, request| {
        let certificate = ca.issue();
        let content = response(&[granted(0, &certificate)]);
        Answer::under_secret(request).with(&PkiBody::Cp(content))
    });
    world.next_says(under_secret);
    issued(world.step());
    assert_eq!(
        world.sent_types(),
        ["cr", "pollReq", "pollReq", "pollReq", "certConf"]
    );
}

/// A rejection in place of the certificate ends it (RFC 9483, 3.6.2: also while polling).
#[test]
fn a_rejection_while_polling_ends_the_operation() {
    let world = world(Operation::Cr);
    world.next_says(|_, request| {
        Answer::under_secret(request).with(&PkiBody::Cp(response(&[waiting(0)])))
    });
    waits(world.begin().expect("a beginning"));
    world.next_says(|_, request| {
        let status = PkiStatusInfo::rejection(FailInfo::NOT_AUTHORIZED, "the officer says no");
        let content = response(&[answered(0, status)]);
        Answer::under_secret(request).with(&PkiBody::Cp(content))
    });
    let failure = crate::world::failed(world.step());
    assert_eq!(failure.class, FailureClass::Refused);
    assert_eq!(failure.fail_info, ["notAuthorized"]);
}

#[test]
fn pki_conf_is_delayed_by_an_error_with_waiting_and_polled_for_with_minus_1() {
    let world = signing_world(Operation::Kur);
    world.next_says(signed_answer);
    world.next_says(|ca, request| {
        let waiting = PkiStatusInfo::new(PkiStatus::Waiting);
        Answer::signed(ca, request).with(&error(waiting))
    });
    waits(world.begin().expect("a beginning"));
    assert_eq!(world.record().phase, Phase::Confirming);
    world.next_says(|ca, request| Answer::signed(ca, request).with(&PkiBody::PkiConf));
    let issued = issued(world.step());
    assert_eq!(issued.confirmation, Confirmation::Confirmed);
    assert_eq!(poll_ids(&world.last_sent()), [-1]);
}

/// RFC 9483, 3.1: pollReq answers the message before it.
#[test]
fn poll_req_echoes_the_nonce_of_the_answer_before() {
    let world = world(Operation::Cr);
    for nonce in [0xa1, 0xa2] {
        world.next_says(move |_, request| {
            let answer = Answer {
                sender_nonce: Some(vec![nonce; 16]),
                ..Answer::under_secret(request)
            };
            match nonce {
                0xa1 => answer.with(&PkiBody::Cp(response(&[waiting(0)]))),
                _ => answer.with(&poll_rep(&[(0, 20)])),
            }
        });
    }
    waits(world.begin().expect("a beginning"));
    waits(world.step());
    world.next_is_lost();
    waits(world.step());
    let nonces: Vec<_> = world
        .sent()
        .iter()
        .map(|octets| {
            let message = PkiMessage::from_der(octets).expect("a PKIMessage");
            message.header.recip_nonce.map(<[u8]>::to_vec)
        })
        .collect();
    assert_eq!(nonces, [None, Some(vec![0xa1; 16]), Some(vec![0xa2; 16])]);
}
