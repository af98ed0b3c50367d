//! What a registration authority does: raVerified, and protection added by a nested message
//! (RFC 9483, 5.2).

use abide_cmp::protection::{Anchors, SoftwareVerifier, verify_signature};
use abide_cmp::{
    Certificate, Draft, FailInfo, GeneralName, Name, PkiBody, PkiHeader, PkiMessage, PkiStatusInfo,
    ProofOfPossession, Time,
};
use abide_enroll::{CertificateCredential, Credential, Error, Operation, Registration};

use crate::ca::{Ca, error};
use crate::world::{START_MS, World, failed, issued};

fn credential(world: &World) -> CertificateCredential {
    CertificateCredential {
        certificate: world.ca.issue(),
        chain: Vec::new(),
        key: "ra".into(),
    }
}

/// A world whose RA adds its protection; the certificate it does that with is not in the books.
fn adding() -> World {
    let mut world = World::new(Operation::Ir);
    let added = credential(&world);
    world.ca.issued.borrow_mut().clear();
    world.enrollment.registration = Some(Registration {
        ra_verified: false,
        added_protection: Some(added),
    });
    world
}

/// The request inside a nested message, whose protection is checked on the way.
fn inside(root: &[u8], octets: &[u8]) -> Vec<u8> {
    let outer = PkiMessage::from_der(octets).expect("a PKIMessage");
    let trusted = [Certificate::from_der(root).expect("a certificate")];
    let now = Time::from_unix((START_MS / 1000) as i64);
    verify_signature(&outer, Anchors::new(&trusted, now), &SoftwareVerifier)
        .expect("the signature of the RA");
    let PkiBody::Nested(messages) = &outer.body else {
        panic!("no nested message");
    };
    let [inner] = messages[..] else {
        panic!("{} messages", messages.len());
    };
    let request = PkiMessage::from_der(inner).expect("a PKIMessage");
    // RFC 9483, 5.2.2.1: both are copied.
    assert_eq!(outer.header.transaction_id, request.header.transaction_id);
    assert_eq!(outer.header.sender_nonce, request.header.sender_nonce);
    assert_eq!(outer.header.recip_nonce, None);
    inner.to_vec()
}

#[test]
fn a_request_is_wrapped_and_what_follows_is_not() {
    let world = adding();
    world.next_says(|ca, octets| ca.answer(&inside(&ca.root, octets)));
    issued(world.begin().expect("a beginning"));
    assert_eq!(world.sent_types(), ["nested", "certConf"]);
}

#[test]
fn a_lost_nested_message_is_sent_again_octet_for_octet() {
    let world = adding();
    world.next_is_lost();
    world.next_says(|ca, octets| ca.answer(&inside(&ca.root, octets)));
    world.begin().expect("a beginning");
    issued(world.to_the_end());
    let sent = world.sent();
    assert_eq!(world.sent_types(), ["nested", "nested", "certConf"]);
    assert_eq!(sent[0], sent[1]);
}

/// Its MAC was never looked at, so that the refusal cannot have one.
#[test]
fn a_nested_message_may_be_refused_by_a_signature() {
    let world = adding();
    world.next_says(|ca, octets| {
        let refusal = PkiStatusInfo::rejection(FailInfo::NOT_AUTHORIZED, "no RA of ours");
        ca.seal_by_signature(&ca.reply(octets), &error(refusal))
    });
    let failure = failed(world.begin().expect("a beginning"));
    assert_eq!(failure.fail_info, ["notAuthorized"]);
}

/// The answer of an honest CA inside a message that nobody protects.
fn nested_answer(ca: &Ca, octets: &[u8]) -> Vec<u8> {
    let answer = ca.answer(&inside(&ca.root, octets));
    let name = GeneralName::Directory(Name::NULL);
    let header = PkiHeader::new(name.clone(), name);
    let body = PkiBody::Nested(vec![&answer]);
    Draft::new(&header, &body).finish::<Vec<u8>>(None, &[])
}

#[test]
fn a_nested_answer_counts_for_what_is_in_it() {
    let world = adding();
    world.next_says(nested_answer);
    issued(world.begin().expect("a beginning"));
}

#[test]
fn a_nested_answer_is_none_where_no_protection_was_added() {
    let world = World::new(Operation::Ir);
    world.next_says(|ca, octets| {
        let answer = ca.answer(octets);
        let name = GeneralName::Directory(Name::NULL);
        let header = PkiHeader::new(name.clone(), name);
        let body = PkiBody::Nested(vec![&answer]);
        Draft::new(&header, &body).finish::<Vec<u8>>(None, &[])
    });
    world.begin().expect("a beginning");
    assert!(world.record().trouble.is_some());
    assert!(world.record().chain.is_empty());
}

#[test]
fn ra_verified_takes_the_place_of_a_signature() {
    let mut world = World::new(Operation::Cr);
    world.enrollment.credential = Credential::Certificate(credential(&world));
    world.enrollment.registration = Some(Registration {
        ra_verified: true,
        added_protection: None,
    });
    world.next_is_lost();
    world.begin().expect("a beginning");
    let sent = world.last_sent();
    let message = PkiMessage::from_der(&sent).expect("a PKIMessage");
    let PkiBody::Cr(requests) = &message.body else {
        panic!("no cr");
    };
    assert_eq!(requests[0].popo, Some(ProofOfPossession::RaVerified));
    assert!(requests[0].request.template.public_key.is_some());
    // Only the protection of the message was signed.
    assert_eq!(world.key_uses.get(), 2, "one fingerprint and one signature");
}

#[test]
fn ra_verified_is_not_for_who_has_only_a_secret_nor_for_other_requests() {
    let registration = Some(Registration {
        ra_verified: true,
        added_protection: None,
    });
    let mut world = World::new(Operation::Ir);
    world.enrollment.registration = registration.clone();
    let refused = |world: &World, words: &str| match world.begin() {
        Err(Error::Invalid(why)) => assert!(why.contains(words), "{why}"),
        other => panic!("{other:?}"),
    };
    refused(&world, "registration authority");
    let mut world = World::new(Operation::P10cr);
    world.enrollment.credential = Credential::Certificate(credential(&world));
    world.enrollment.registration = registration;
    refused(&world, "ir and cr");
    assert!(world.sent().is_empty());
}

#[test]
fn a_transaction_ends_when_the_ra_is_another() {
    let mut world = adding();
    world.next_is_lost();
    world.begin().expect("a beginning");
    world.enrollment.registration = None;
    let progress = world.resume().expect("a transaction to go on with");
    let failure = failed(progress);
    assert!(failure.reason.contains("credential"), "{failure:?}");
}
