//! Errors, told and received.

use abide_cmp::{
    ErrorMsgContent, FailInfo, InfoTypeAndValue, PkiBody, PkiFreeText, PkiMessage, PkiStatus,
    PkiStatusInfo, oid,
};
use abide_enroll::{FailureClass, Operation, Phase};

use super::super::peer::{
    Answer, By, answers_well, rep, rp, signed_changes_nothing, signing_world, under_secret, world,
};
use crate::ca::{Ca, answered, error, granted, response};
use crate::world::{World, failed, issued, waits};

/// Makes an odd answer to a request.
type Odd = fn(&Ca, &[u8]) -> Vec<u8>;

/// The root certifies another key than the requested one.
fn foreign(ca: &Ca, request: &[u8], operation: Operation, implicit: bool) -> Vec<u8> {
    let mut answer = Answer::under_secret(request);
    if implicit {
        let granted = (oid::IT_IMPLICIT_CONFIRM, Some(vec![0x05, 0x00]));
        answer.general_info.push(granted);
    }
    answer.with(&rep(operation, response(&[granted(0, &ca.root)])))
}

/// RFC 9483, 3.6.1.
#[test]
fn a_certificate_that_is_refused_is_told_by_cert_conf_and_pki_conf_is_awaited() {
    let world = world(Operation::Cr);
    world.next_says(|ca, request| foreign(ca, request, Operation::Cr, false));
    world.next_is_lost();
    let waiting = waits(world.begin().expect("a beginning"));
    assert!(waiting.failure.is_some(), "the certConf goes out again");
    world.next_says(under_secret);
    let failure = failed(world.step());
    assert_eq!(failure.class, FailureClass::Security);
    assert!(!failure.orphan, "the CA knows of it");
    let sent = world.sent();
    assert_eq!(world.sent_types(), ["cr", "certConf", "certConf"]);
    assert_eq!(sent[1], sent[2]);
    let message = PkiMessage::from_der(&sent[1]).expect("a PKIMessage");
    let PkiBody::CertConf(statuses) = &message.body else {
        panic!("no certConf");
    };
    let info = statuses[0].status_info.as_ref().expect("a statusInfo");
    assert_eq!(info.status, PkiStatus::Rejection);
    assert!(info.fail_info.is_some() && info.status_string.is_some());
}

#[test]
fn a_certificate_that_is_refused_under_implicit_confirm_is_a_failure_here_alone() {
    let mut world = world(Operation::Cr);
    world.enrollment.implicit_confirm = true;
    world.next_says(|ca, request| foreign(ca, request, Operation::Cr, true));
    let failure = failed(world.begin().expect("a beginning"));
    assert_eq!(failure.class, FailureClass::Security);
    assert!(failure.orphan, "the CA takes it for good");
    assert_eq!(world.sent_types(), ["cr"]);
}

/// Whatever is answered, no message goes out but those of an end entity.
#[test]
fn no_error_is_ever_sent() {
    let odd: [Odd; 7] = [
        |_, _| b"nonsense".to_vec(),
        |ca, request| foreign(ca, request, Operation::Cr, false),
        |_, request| Answer::under_secret(request).with(&PkiBody::PkiConf),
        |_, request| {
            let status = PkiStatusInfo::rejection(FailInfo::BAD_POP, "no");
            Answer::under_secret(request).with(&error(status))
        },
        |_, request| {
            let answer = Answer {
                by: By::Nobody,
                ..Answer::under_secret(request)
            };
            answer.with(&PkiBody::PkiConf)
        },
        |_, request| {
            let answer = Answer {
                pvno: 1,
                ..Answer::under_secret(request)
            };
            answer.with(&PkiBody::PkiConf)
        },
        |_, request| {
            let info = InfoTypeAndValue::IMPLICIT_CONFIRM;
            Answer::under_secret(request).with(&PkiBody::Genp(vec![info]))
        },
    ];
    for answer in odd {
        let world = world(Operation::Cr);
        for _ in 0..12 {
            world.next_says(answer);
        }
        world.begin().expect("a beginning");
        for _ in 0..2 {
            if world.record().phase.is_open() {
                world.step();
            }
        }
        for sent in world.sent_types() {
            assert!(["cr", "certConf"].contains(&sent), "{sent}");
        }
    }
}

/// RFC 9483, 3.6.4.
#[test]
fn an_error_ends_the_operation_and_all_it_says_is_told() {
    for operation in [Operation::Cr, Operation::Rr, Operation::Genm] {
        let world = world(operation);
        world.next_says(|_, request| {
            let fail_info = FailInfo::BAD_POP.union(FailInfo::BAD_CERT_TEMPLATE);
            let content = ErrorMsgContent {
                error_code: Some(&[0x2a]),
                error_details: Some(PkiFreeText::new("look at the manual")),
                ..ErrorMsgContent::new(PkiStatusInfo::rejection(fail_info, "bad curve"))
            };
            Answer::under_secret(request).with(&PkiBody::Error(content))
        });
        let failure = failed(world.begin().expect("a beginning"));
        assert_eq!(failure.class, FailureClass::Refused);
        assert_eq!(failure.fail_info, ["badPOP", "badCertTemplate"]);
        for words in ["bad curve", "look at the manual"] {
            assert!(failure.reason.contains(words), "{failure:?}");
        }
        assert_eq!(world.sent().len(), 1);
    }
}

#[test]
fn an_error_with_another_status_than_rejection_is_an_error_still() {
    for status in [PkiStatus::Accepted, PkiStatus::GrantedWithMods] {
        let world = world(Operation::Cr);
        world.next_says(move |_, request| {
            Answer::under_secret(request).with(&error(PkiStatusInfo::new(status)))
        });
        let failure = failed(world.begin().expect("a beginning"));
        assert_eq!(failure.class, FailureClass::Refused);
    }
}

/// The exception of RFC 9483, 3.6.4 is for people: nobody vouches for what it says.
#[test]
fn an_unprotected_error_is_shown_and_changes_nothing() {
    let world = signing_world(Operation::Cr);
    let (reason, _) = signed_changes_nothing(&world, |_, request| {
        let answer = Answer {
            by: By::Nobody,
            ..Answer::under_secret(request)
        };
        let status = PkiStatusInfo::rejection(FailInfo::NOT_AUTHORIZED, "who are you");
        answer.with(&error(status))
    });
    for words in ["unauthenticated", "notAuthorized", "who are you"] {
        assert!(reason.contains(words), "{reason}");
    }
}

/// RFC 9483, 3.6.4: a new transaction may follow these, and no other refusal.
#[test]
fn system_unavail_and_system_failure_invite_a_new_transaction_later() {
    for (fail_info, passes) in [
        (FailInfo::SYSTEM_UNAVAIL, true),
        (FailInfo::SYSTEM_FAILURE, true),
        (FailInfo::TRANSACTION_ID_IN_USE, true),
        (FailInfo::BAD_CERT_ID, false),
        (FailInfo::CERT_REVOKED, false),
        (FailInfo::NOT_AUTHORIZED, false),
    ] {
        let world = world(Operation::Cr);
        world.next_says(move |_, request| {
            let status = PkiStatusInfo::rejection(fail_info, "no");
            Answer::under_secret(request).with(&error(status))
        });
        assert_eq!(failed(world.begin().expect("a beginning")).passes(), passes);
        let first = world.record().id();
        // What follows is another transaction.
        answers_well(&world);
        let progress = world.begin().expect("another beginning");
        assert_ne!(progress.transaction_id, first);
        issued(progress);
    }
}

/// RFC 9483, 3.6.2 and 4.1.1.
#[test]
fn a_rejection_ends_the_operation_without_cert_conf() {
    for operation in [
        Operation::Ir,
        Operation::Cr,
        Operation::P10cr,
        Operation::Rr,
    ] {
        let world = world(operation);
        world.next_says(move |_, request| {
            let status = PkiStatusInfo::rejection(FailInfo::BAD_CERT_TEMPLATE, "too long");
            let id = if operation == Operation::P10cr { -1 } else { 0 };
            let body = match operation {
                Operation::Rr => rp(status),
                _ => rep(operation, response(&[answered(id, status)])),
            };
            Answer::under_secret(request).with(&body)
        });
        let failure = failed(world.begin().expect("a beginning"));
        assert_eq!(failure.class, FailureClass::Refused);
        assert_eq!(failure.fail_info, ["badCertTemplate"]);
        assert!(failure.reason.contains("too long"), "{failure:?}");
        assert!(!failure.orphan);
        assert_eq!(world.sent().len(), 1);
    }
}

/// The chain was validated and stored before: RFC 9483, 3.6.1 ends the operation, not the
/// certificate.
#[test]
fn an_error_to_cert_conf_does_not_take_the_certificate_away() {
    let world = World::new(Operation::P10cr);
    world.next_is_answered();
    world.next_says(|_, request| {
        let status = PkiStatusInfo::rejection(FailInfo::BAD_CERT_ID, "which one");
        Answer::under_secret(request).with(&error(status))
    });
    let kept = issued(world.begin().expect("a beginning"));
    assert!(kept.note.contains("which one"), "{kept:?}");
    assert_eq!(kept.chain, *world.ca.issued.borrow());
    assert_eq!(world.record().phase, Phase::Issued);
}
