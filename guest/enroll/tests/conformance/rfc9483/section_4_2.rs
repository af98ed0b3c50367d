//! Revoking.

use abide_cmp::{
    CertId, FailInfo, GeneralName, PkiBody, PkiMessage, PkiStatus, PkiStatusInfo, RevRepContent,
    oid,
};
use abide_enroll::{FailureClass, Operation, Outcome, Phase};

use super::super::peer::{
    Answer, answers_well, own_certificate, rp, signing_world, under_secret, world,
};
use crate::ca::{error, name, poll_rep};
use crate::faults::state;
use crate::world::{failed, waits};

#[test]
fn rr_names_one_certificate_by_issuer_and_serial_number_and_one_reason() {
    let world = signing_world(Operation::Rr);
    answers_well(&world);
    let progress = world.begin().expect("a beginning");
    assert_eq!(progress.phase, Phase::Done);
    let octets = world.last_sent();
    let message = PkiMessage::from_der(&octets).expect("a PKIMessage");
    let PkiBody::Rr(details) = &message.body else {
        panic!("no rr");
    };
    let [details] = details.as_slice() else {
        panic!("not one RevDetails");
    };
    assert_eq!(details.cert_details.issuer, Some(name("CN=Root")));
    assert_eq!(details.cert_details.serial_number(), Some(&[70][..]));
    let [reason] = details.crl_entry_details.as_slice() else {
        panic!("not one extension");
    };
    assert_eq!(reason.oid, oid::CRL_REASON);
    // keyCompromise (1) as an ENUMERATED (RFC 5280, 5.3.1).
    assert_eq!(reason.value, [0x0a, 0x01, 0x01]);
    // It is signed by the certificate that is revoked.
    assert_eq!(message.extra_certs[0], own_certificate(&world.ca));
}

/// An rp that must change nothing; a good one is taken after it.
fn changes_nothing(words: &str, make: impl Fn() -> RevRepContent<'static> + 'static) {
    let world = world(Operation::Rr);
    world.next_is_lost();
    waits(world.begin().expect("a beginning"));
    let before = state(&world.record());
    world.next_says(move |_, request| Answer::under_secret(request).with(&PkiBody::Rp(make())));
    let failure = waits(world.step()).failure.expect("a failure");
    assert_eq!(failure.class, FailureClass::Malformed);
    assert!(failure.reason.contains(words), "{failure:?}");
    assert_eq!(state(&world.record()), before);
    world.next_says(under_secret);
    assert_eq!(world.step().phase, Phase::Done);
}

fn content(statuses: &[PkiStatusInfo<'static>]) -> RevRepContent<'static> {
    RevRepContent {
        status: statuses.to_vec(),
        rev_certs: Vec::new(),
        crls: Vec::new(),
    }
}

#[test]
fn rp_has_exactly_one_status() {
    let accepted = PkiStatusInfo::new(PkiStatus::Accepted);
    changes_nothing("exactly one status", move || {
        content(&[accepted.clone(), accepted.clone()])
    });
}

#[test]
fn status_of_rp_is_accepted_or_rejection() {
    for status in [PkiStatus::Waiting, PkiStatus::KeyUpdateWarning] {
        changes_nothing("RFC 9483, 4.", move || {
            content(&[PkiStatusInfo::new(status)])
        });
    }
    let world = world(Operation::Rr);
    world.next_says(|_, request| {
        let status = PkiStatusInfo::rejection(FailInfo::BAD_CERT_ID, "never heard of it");
        Answer::under_secret(request).with(&rp(status))
    });
    let failure = failed(world.begin().expect("a beginning"));
    assert_eq!(failure.class, FailureClass::Refused);
    assert_eq!(failure.fail_info, ["badCertId"]);
}

/// RFC 9810, 5.2.3 has more words for what was done.
#[test]
fn other_statuses_of_rp_that_say_it_is_done_are_taken_and_told() {
    for status in [
        PkiStatus::GrantedWithMods,
        PkiStatus::RevocationWarning,
        PkiStatus::RevocationNotification,
    ] {
        let world = world(Operation::Rr);
        world.next_says(move |_, request| {
            Answer::under_secret(request).with(&rp(PkiStatusInfo::new(status)))
        });
        match world.begin().expect("a beginning").outcome {
            Outcome::Done(done) => assert!(done.note.contains(status.name()), "{done:?}"),
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn fail_info_of_rp_is_absent_with_accepted() {
    changes_nothing("failInfo", || {
        content(&[PkiStatusInfo {
            fail_info: Some(FailInfo::CERT_REVOKED),
            ..PkiStatusInfo::new(PkiStatus::Accepted)
        }])
    });
}

/// RFC 9810, 5.3.10: revCerts tells for which certificate the status is.
#[test]
fn rp_that_names_a_certificate_names_the_one_that_was_asked_for() {
    let about = |issuer: &'static str, serial: &'static [u8]| RevRepContent {
        rev_certs: vec![CertId {
            issuer: GeneralName::Directory(name(issuer)),
            serial_number: serial,
        }],
        ..content(&[PkiStatusInfo::new(PkiStatus::Accepted)])
    };
    changes_nothing("another certificate", move || about("CN=Root", &[71]));
    changes_nothing("another certificate", move || about("CN=Other", &[70]));
    let world = world(Operation::Rr);
    world.next_says(move |_, request| {
        let body = PkiBody::Rp(about("CN=Root", &[70]));
        Answer::under_secret(request).with(&body)
    });
    assert_eq!(world.begin().expect("a beginning").phase, Phase::Done);
}

/// EJBCA has been seen to turn the names round.
#[test]
fn rp_may_name_the_issuer_in_reverse_order() {
    use abide_enroll::{Revocation, Revoked, Want};
    let mut world = world(Operation::Rr);
    world.enrollment.want = Want::Revocation(Revocation {
        certificate: Revoked::Number("CN=CA,O=X,C=FI".into(), vec![9]),
        reason: 0,
    });
    world.next_says(|_, request| {
        let rev_certs = vec![CertId {
            issuer: GeneralName::Directory(name("C=FI,O=X,CN=CA")),
            serial_number: &[9],
        }];
        let body = PkiBody::Rp(RevRepContent {
            rev_certs,
            ..content(&[PkiStatusInfo::new(PkiStatus::Accepted)])
        });
        Answer::under_secret(request).with(&body)
    });
    assert_eq!(world.begin().expect("a beginning").phase, Phase::Done);
}

/// RFC 9483, 3.6.4: certRevoked says that it is revoked already; after a repetition that is
/// the work of the first copy.
#[test]
fn cert_revoked_is_a_refusal_at_first_and_success_after_a_repetition() {
    for repeated in [false, true] {
        let world = world(Operation::Rr);
        if repeated {
            world.next_is_lost();
        }
        world.next_says(|_, request| {
            let status = PkiStatusInfo::rejection(FailInfo::CERT_REVOKED, "it is");
            Answer::under_secret(request).with(&rp(status))
        });
        let mut progress = world.begin().expect("a beginning");
        if repeated {
            progress = world.step();
        }
        let expected = if repeated { Phase::Done } else { Phase::Failed };
        assert_eq!(progress.phase, expected);
    }
}

/// RFC 9483, 4.4: rr has no answer of its own that could say so.
#[test]
fn rp_is_delayed_by_an_error_with_waiting_and_polled_for_with_minus_1() {
    let world = world(Operation::Rr);
    world.next_says(|_, request| {
        let waiting = PkiStatusInfo::new(PkiStatus::Waiting);
        Answer::under_secret(request).with(&error(waiting))
    });
    waits(world.begin().expect("a beginning"));
    world.next_says(|_, request| Answer::under_secret(request).with(&poll_rep(&[(-1, 20)])));
    assert_eq!(waits(world.step()).failure, None);
    assert_eq!(crate::faults::poll_ids(&world.last_sent()), [-1]);
    world.next_says(|_, request| {
        Answer::under_secret(request).with(&rp(PkiStatusInfo::new(PkiStatus::Accepted)))
    });
    assert_eq!(world.step().phase, Phase::Done);
    assert_eq!(world.sent_types(), ["rr", "pollReq", "pollReq"]);
}
