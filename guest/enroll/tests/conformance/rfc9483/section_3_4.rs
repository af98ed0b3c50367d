//! What must be at hand before the first message.

use abide_cmp::Certificate;
use abide_enroll::{CertificateCredential, Credential, Error, Operation};

use super::super::peer::{OWN_KID, Says, certificate, signer_key, signing_world, world};
use crate::ca::public_key;
use crate::world::World;

/// Nothing is stored and nothing is sent.
fn is_refused(world: &World, words: &str) {
    match world.begin() {
        Err(Error::Invalid(why)) => assert!(why.contains(words), "{why}"),
        other => panic!("no refusal: {other:?}"),
    }
    assert!(world.sent().is_empty());
    assert_eq!(world.resume().expect_err("nothing"), Error::NotFound);
}

#[test]
fn signatures_need_a_trust_anchor_for_the_answers() {
    let mut world = signing_world(Operation::Cr);
    world.enrollment.trusted.clear();
    is_refused(&world, "trusted certificate");
}

#[test]
fn the_own_certificate_must_be_for_the_own_key() {
    let mut world = signing_world(Operation::Cr);
    let says = Says::end_entity("CN=device", OWN_KID);
    let foreign = certificate(&world.ca.key, says, &public_key(&signer_key()));
    assert!(Certificate::from_der(&foreign).is_ok());
    world.enrollment.credential = Credential::Certificate(CertificateCredential {
        certificate: foreign,
        chain: Vec::new(),
        key: "own".into(),
    });
    is_refused(&world, "private key does not belong");
}

#[test]
fn a_shared_secret_needs_a_name() {
    let mut world = world(Operation::Cr);
    if let Credential::Secret(secret) = &mut world.enrollment.credential {
        secret.reference.clear();
    }
    is_refused(&world, "reference");
}

#[test]
fn the_address_of_the_server_must_be_known() {
    let mut world = world(Operation::Cr);
    world.enrollment.server = "ca.example".into();
    is_refused(&world, "URL");
}
