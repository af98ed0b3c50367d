//! What is believed of an answer: caPubs, SHA-1, and the hash of a certConf.

use abide_cmp::protection::Hash;
use abide_cmp::{BodyType, PkiBody, PkiMessage, PkiStatus, oid};
use abide_enroll::{Deviation, Deviations, FailureClass, Operation};

use crate::ca::{Ca, Reply, granted, response};
use crate::world::{World, failed, issued, waits};

/// How a CA puts its answer together.
type Seal = fn(&Ca, &Reply, &PkiBody<'_>) -> Vec<u8>;

/// A world whose CA delivers a certificate of another CA, with the root of that as caPubs.
fn with_foreign_root(seal: Seal) -> World {
    let world = World::new(Operation::Ir);
    let wanted = world.ca.wanted().to_vec();
    world.next_says(move |ca, request| {
        let other = Ca::with_key(wanted.clone(), [8; 32]);
        let new = other.issue();
        let mut content = response(&[granted(0, &new)]);
        content.ca_pubs = vec![&other.root];
        seal(ca, &ca.reply(request), &PkiBody::Ip(content))
    });
    world.next_says(|ca, request| ca.seal(&ca.reply(request), &PkiBody::PkiConf));
    world
}

fn is_refused(world: &World) {
    let failure = failed(world.begin().expect("a beginning"));
    assert_eq!(failure.class, FailureClass::Security, "{failure:?}");
    let sent = world.last_sent();
    let message = PkiMessage::from_der(&sent).expect("a PKIMessage");
    let PkiBody::CertConf(statuses) = &message.body else {
        panic!("no certConf");
    };
    let info = statuses[0].status_info.as_ref().expect("a statusInfo");
    assert_eq!(info.status, PkiStatus::Rejection);
}

#[test]
fn ca_pubs_are_trusted_where_the_shared_secret_protects_them() {
    let mut world = with_foreign_root(Ca::seal);
    world.enrollment.trusted.clear();
    let issued = issued(world.begin().expect("a beginning"));
    assert_eq!(issued.ca_pubs.len(), 1);
    assert_eq!(issued.note, "");
}

/// RFC 9810, 5.3.2: a signature says who the CA is, not what roots may be installed.
#[test]
fn ca_pubs_are_not_trusted_where_a_signature_protects_them() {
    let mut world = with_foreign_root(Ca::seal_by_signature);
    world.enrollment.allow = Deviations::NONE.with(Deviation::SignedAnswerToMac);
    is_refused(&world);
}

#[test]
fn ca_pubs_do_not_widen_what_was_configured_for_the_certificate() {
    let mut world = with_foreign_root(Ca::seal);
    world.enrollment.out_trusted = vec![world.ca.root.clone()];
    is_refused(&world);
}

/// A certificate whose signature algorithm names no hash is confirmed, or here refused, with
/// SHA-512 and hashAlg, for which pvno is 3 (RFC 9810, 5.3.18 and 7).
#[test]
fn a_hash_that_nothing_implies_is_named() {
    let world = World::new(Operation::Ir);
    let unnamed = |ca: &Ca| {
        // ecdsa-with-SHA256 becomes 1.2.840.10045.4.3.7, which nobody assigned.
        let known = oid::ECDSA_SHA256.content();
        let mut new = ca.issue();
        for at in 0..new.len() - known.len() {
            if &new[at..at + known.len()] == known {
                new[at + known.len() - 1] = 7;
            }
        }
        new
    };
    world.next_says(move |ca, request| {
        let new = unnamed(ca);
        let content = response(&[granted(0, &new)]);
        ca.seal(&ca.reply(request), &PkiBody::Ip(content))
    });
    world.next_says(|ca, request| ca.seal(&ca.reply(request), &PkiBody::PkiConf));
    failed(world.begin().expect("a beginning"));
    let sent = world.last_sent();
    let message = PkiMessage::from_der(&sent).expect("a PKIMessage");
    assert_eq!(message.header.pvno, 3);
    let PkiBody::CertConf(statuses) = &message.body else {
        panic!("no certConf");
    };
    let expected = Hash::Sha512.digest(&unnamed(&Ca::new(world.ca.wanted().to_vec())));
    assert_eq!(statuses[0].cert_hash, expected);
    assert_eq!(statuses[0].hash_alg, Some(Hash::Sha512.identifier()));

    // What is implied is not named, and the version is the usual one.
    let world = World::new(Operation::Ir);
    issued(world.begin().expect("a beginning"));
    let sent = world.last_sent();
    let message = PkiMessage::from_der(&sent).expect("a PKIMessage");
    assert_eq!(message.body.body_type(), BodyType::CertConf);
    assert_eq!(message.header.pvno, 2);
}

#[test]
fn sha_1_derives_a_key_only_where_it_is_allowed() {
    let spoilt = |allowed| {
        let mut world = World::new(Operation::Ir);
        world.enrollment.allow_sha1 = allowed;
        world.next_says(|ca, request| {
            let new = ca.issue();
            let content = response(&[granted(0, &new)]);
            ca.seal_with(&ca.reply(request), &PkiBody::Ip(content), Hash::Sha1)
        });
        world
    };
    issued(spoilt(true).begin().expect("a beginning"));
    let waiting = waits(spoilt(false).begin().expect("a beginning"));
    assert!(waiting.reason.contains("allow-sha1"), "{}", waiting.reason);
}
