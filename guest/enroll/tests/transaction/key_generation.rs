//! Central key generation (RFC 9483, 4.1.6): the private key is at the host before anything
//! else happens, and nowhere else. The keys and envelopes are OpenSSL's.

use abide_cmp::{
    CertifiedKeyPair, EncryptedKey, EncryptedValue, PVNO_3, PkiBody, PkiMessage, PkiStatus,
};
use abide_enroll::{
    Error, FailureClass, Generated, HandlingError, Operation, Phase, Template, Want,
};

use crate::ca::{Ca, granted, response};
use crate::crashes::{next_process, one_process};
use crate::world::{World, failed, issued};

macro_rules! file {
    ($name:literal) => {
        include_bytes!(concat!("../../../cmp/tests/cms/", $name)).as_slice()
    };
}

/// 2030-01-01T00:00:00Z, from `date -u -d 2030-01-01 +%s`.
const NOW_MS: u64 = 1_893_456_000_000;

/// An end entity without a key, and a CA that certifies the one of OpenSSL's envelopes.
fn world() -> World {
    let mut world = World::new(Operation::Ir);
    world.ca = Ca::new(file!("new.spki").to_vec());
    *world.ca.envelope.borrow_mut() = Some(file!("pwri.der").to_vec());
    *world.opens_to.borrow_mut() = Ok(file!("signed.der").to_vec());
    world.now_ms.set(NOW_MS);
    world.enrollment.want = Want::Generated(Generated {
        template: Template {
            subject: "CN=device".into(),
            sans: Vec::new(),
            key: "new".into(),
        },
        algorithm: None,
    });
    world.enrollment.trusted = vec![world.ca.root.clone(), file!("root.crt").to_vec()];
    // OpenSSL's PBKDF2 is by HMAC with SHA-1.
    world.enrollment.allow_sha1 = true;
    world
}

/// The end of a world whose answer is refused: the CA is told, and no key is kept.
fn is_refused(world: &World, words: &str) {
    let failure = failed(world.begin().expect("a beginning"));
    assert_eq!(failure.class, FailureClass::Security, "{failure:?}");
    assert!(failure.reason.contains(words), "{failure:?}");
    assert_eq!(world.sent_types(), ["ir", "certConf"]);
    let sent = world.last_sent();
    let message = PkiMessage::from_der(&sent).expect("a PKIMessage");
    let PkiBody::CertConf(statuses) = &message.body else {
        panic!("no certConf");
    };
    let info = statuses[0].status_info.as_ref().expect("a statusInfo");
    assert_eq!(info.status, PkiStatus::Rejection);
    assert!(world.installed.borrow().is_none());
}

/// The answer to the first request is as usual, but for its private key.
fn with_key(world: &World, key: Option<EncryptedKey<'static>>) {
    world.next_says(move |ca, request| {
        let new = ca.issue();
        let mut granted = granted(0, &new);
        let pair = granted.certified_key_pair.take().expect("a pair");
        granted.certified_key_pair = Some(CertifiedKeyPair {
            private_key: key.clone(),
            ..pair
        });
        ca.seal(&ca.reply(request), &PkiBody::Ip(response(&[granted])))
    });
}

#[test]
fn the_request_has_no_key_no_proof_and_pvno_3() {
    let world = world();
    issued(world.begin().expect("a beginning"));
    let sent = world.sent();
    assert_eq!(world.sent_types(), ["ir", "certConf"]);
    for der in &sent {
        let message = PkiMessage::from_der(der).expect("a PKIMessage");
        assert_eq!(message.header.pvno, PVNO_3);
    }
    let message = PkiMessage::from_der(&sent[0]).expect("a PKIMessage");
    let PkiBody::Ir(requests) = &message.body else {
        panic!("no ir");
    };
    assert!(requests[0].popo.is_none());
    assert!(requests[0].request.template.public_key.is_none());
    let private = world.installed.borrow().clone().expect("a private key").0;
    // The one OneAsymmetricKey of the package.
    assert_eq!(private, file!("one.der")[3..]);
}

#[test]
fn a_preferred_kind_of_key_has_no_bits() {
    let mut world = world();
    // SEQUENCE { id-Ed25519 }
    let algorithm = vec![0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70];
    if let Want::Generated(wanted) = &mut world.enrollment.want {
        wanted.algorithm = Some(algorithm.clone());
    }
    issued(world.begin().expect("a beginning"));
    let sent = world.sent();
    let message = PkiMessage::from_der(&sent[0]).expect("a PKIMessage");
    let PkiBody::Ir(requests) = &message.body else {
        panic!("no ir");
    };
    let key = requests[0].request.template.public_key.as_deref();
    let by_hand = [&[0x30, 10], &algorithm[..], &[0x03, 0x01, 0x00]].concat();
    assert_eq!(key, Some(&by_hand[..]));
    assert!(requests[0].popo.is_none());
}

#[test]
fn wherever_it_dies_the_key_is_there_before_the_chain() {
    let world_of = |dies_at| {
        let world = world();
        world.dies_at.set(dies_at);
        world
    };
    let whole = world_of(None);
    issued(one_process(&whole).expect("nobody dies"));
    let moments = whole.moments.get();
    assert!(moments > 40, "{moments}");
    // The 32 octets of the private key in the ECPrivateKey.
    let secret = &file!("sec1.der")[7..39];
    let never_stored = |world: &World| {
        let stored = world.stored();
        assert!(!stored.windows(secret.len()).any(|octets| octets == secret));
    };
    never_stored(&whole);
    for moment in 0..moments {
        let world = world_of(Some(moment));
        assert!(one_process(&world).is_none(), "it lived past {moment}");
        never_stored(&world);
        world.dies_at.set(None);
        let (records, _) = abide_enroll::list(&world, None, 10).expect("a listing");
        let has_chain = records.iter().any(|record| !record.chain.is_empty());
        assert!(!has_chain || world.installed.borrow().is_some(), "{moment}");
        issued(next_process(&world));
        assert!(world.installed.borrow().is_some(), "died at {moment}");
        assert_eq!(world.ca.issued.borrow().len(), 1, "died at {moment}");
        assert_eq!(world.ca.confirmed.get(), 1, "died at {moment}");
        never_stored(&world);
    }
}

#[test]
fn a_host_that_cannot_keep_the_key_now_gets_it_again() {
    let world = world();
    *world.installs.borrow_mut() = Err(HandlingError::Unavailable("the disk is full".into()));
    let error = world.begin().expect_err("an error of the host");
    assert_eq!(error, Error::Storage("the disk is full".into()));
    assert_eq!(world.record().phase, Phase::Enrolling);
    assert!(world.record().chain.is_empty());
    *world.installs.borrow_mut() = Ok(());
    issued(world.resume().expect("a transaction to go on with"));
    assert_eq!(world.sent_types(), ["ir", "ir", "certConf"]);
    assert_eq!(world.ca.issued.borrow().len(), 1);
}

#[test]
fn a_key_that_cannot_be_taken_out_refuses_the_certificate() {
    let world = world();
    *world.opens_to.borrow_mut() = Err(HandlingError::Refused("not for us".into()));
    is_refused(&world, "not for us");

    let world = self::world();
    *world.installs.borrow_mut() = Err(HandlingError::Refused("another key".into()));
    is_refused(&world, "another key");
}

#[test]
fn an_encrypted_value_is_told_by_its_name() {
    let world = world();
    let value = EncryptedValue {
        intended_alg: None,
        symm_alg: None,
        enc_symm_key: None,
        key_alg: None,
        value_hint: None,
        enc_value: &[1, 2, 3],
    };
    with_key(&world, Some(EncryptedKey::EncryptedValue(value)));
    is_refused(&world, "EncryptedValue");
}

#[test]
fn a_certificate_without_its_key_is_refused() {
    let world = world();
    with_key(&world, None);
    is_refused(&world, "without the private key");
}

#[test]
fn a_key_that_is_not_that_of_the_certificate_is_refused() {
    let mut world = world();
    let other = World::new(Operation::Ir);
    world.ca = Ca::new(other.ca.wanted().to_vec());
    *world.ca.envelope.borrow_mut() = Some(file!("pwri.der").to_vec());
    is_refused(&world, "not that of the certificate");
}

#[test]
fn who_signs_the_key_must_be_a_key_generation_authority_under_an_anchor() {
    let world = world();
    *world.opens_to.borrow_mut() = Ok(file!("signed-wrong-purpose.der").to_vec());
    is_refused(&world, "id-kp-cmKGA");

    let mut world = self::world();
    world.enrollment.trusted = vec![world.ca.root.clone()];
    is_refused(&world, "not trusted");
}

#[test]
fn what_rests_on_sha1_is_not_opened_unless_that_is_allowed() {
    let mut world = world();
    world.enrollment.allow_sha1 = false;
    is_refused(&world, "SHA-1");
}

/// What OpenSSL 4.0 sends.
#[test]
fn a_key_without_its_package_is_taken_and_noted() {
    let world = world();
    *world.opens_to.borrow_mut() = Ok(file!("signed-bare.der").to_vec());
    let issued = issued(world.begin().expect("a beginning"));
    assert!(issued.note.contains("AsymmetricKeyPackage"), "{issued:?}");
    let private = world.installed.borrow().clone().expect("a private key").0;
    assert_eq!(private, file!("sec1.der"));
}
