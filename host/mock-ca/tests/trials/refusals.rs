//! Requests that must not get a certificate.

use abide_cmp::{FailInfo, GeneralName, InfoTypeAndValue, PkiBody};
use abide_mock_ca::MockCa;
use abide_mock_ca::books::Event;

use crate::NEW_KEY;
use crate::http::post;
use crate::wire::{self, Message};
use crate::world::{self, World};

/// Runs `openssl cmp`, which must fail, and returns what the books say about it. No
/// certificate may have been issued.
fn refused(world: &World, words: &[&str]) -> String {
    let failure = world.request(words);
    assert!(
        failure.is_err(),
        "openssl cmp {} succeeded",
        words.join(" ")
    );
    let books = world.books();
    assert!(
        !books
            .iter()
            .any(|entry| matches!(entry.event, Event::Issued { .. })),
        "{books:?}"
    );
    world::last_refusal(&books)
}

#[test]
fn who_is_not_known() {
    let world = World::new(|_| ());
    let ir = [&["-cmd", "ir"][..], &NEW_KEY].concat();
    let wrong_secret = [
        &ir[..],
        &["-ref", world::REFERENCE, "-secret", "pass:wrong"],
    ]
    .concat();
    let wrong_name = [&ir[..], &["-ref", "nobody", "-secret", "pass:trial-secret"]].concat();
    let unprotected = [&ir[..], &["-unprotected_requests"]].concat();
    for (words, text) in [
        (wrong_secret, "the MAC does not fit"),
        (
            wrong_name,
            "no secret is known under the reference 'nobody'",
        ),
        (unprotected, "the request is not protected"),
    ] {
        let reason = refused(&world, &words);
        assert!(reason.starts_with("badMessageCheck: "), "{reason}");
        assert!(reason.contains(text), "{reason}");
        // Whoever trusts the root can believe the refusal.
        let answer = world.bytes("rsp1.der");
        assert_eq!(Message::read(&answer).kind, "error");
        assert!(wire::is_signed_by_ca(&world, &answer));
    }
}

#[test]
fn a_stranger_with_a_certificate_and_a_ca_that_trusts_them() {
    let mut world = World::new(|_| ());
    world.make_key("stranger.key", "EC", "ec_paramgen_curve:P-256");
    world.write("req.cnf", "[req]\ndistinguished_name = none\n[none]\n");
    world.openssl(&[
        "req",
        "-x509",
        "-config",
        "req.cnf",
        "-key",
        "stranger.key",
        "-subj",
        "/CN=stranger",
        "-addext",
        "keyUsage=digitalSignature",
        "-out",
        "stranger.pem",
    ]);
    let own = [
        "-cert",
        "stranger.pem",
        "-key",
        "stranger.key",
        "-trusted",
        world::ROOT,
    ];
    let words = [&["-cmd", "ir"][..], &NEW_KEY, &own].concat();
    let reason = refused(&world, &words);
    assert!(
        reason.starts_with("badMessageCheck signerNotTrusted: "),
        "{reason}"
    );

    world.openssl(&[
        "x509",
        "-in",
        "stranger.pem",
        "-outform",
        "DER",
        "-out",
        "stranger.der",
    ]);
    let stranger = world.bytes("stranger.der");
    world.change(|options| options.trusted = vec![stranger]);
    world.request(&words).unwrap();
    assert_eq!(
        world::events(&world.books()[1..]),
        ["ir issued", "ir confirmed"]
    );
}

#[test]
fn keys_that_are_not_proved_to_be_held() {
    let world = World::new(|_| ());
    for (popo, text) in [("0", "raVerified"), ("-1", "does not prove possession")] {
        let words = [&["-cmd", "ir"][..], &NEW_KEY, &["-popo", popo]].concat();
        let reason = refused(&world, &world::with_secret(&words));
        assert!(reason.starts_with("badPOP: "), "{reason}");
        assert!(reason.contains(text), "{reason}");
        let answer = Message::read(&world.bytes("rsp1.der"));
        let said = (
            answer.kind,
            answer.status.as_str(),
            answer.fail_info.as_str(),
        );
        assert_eq!(said, ("ip", "rejection", "badPOP"));
    }
}

#[test]
fn a_kind_of_key_that_is_not_known() {
    let world = World::new(|_| ());
    world.make_key("new.key", "EC", "ec_paramgen_curve:secp256k1");
    let words = [&["-cmd", "ir"][..], &NEW_KEY].concat();
    let reason = refused(&world, &world::with_secret(&words));
    assert!(reason.starts_with("badAlg: "), "{reason}");
}

#[test]
fn a_csr_whose_signature_is_wrong() {
    let world = World::new(|_| ());
    world.make_csr();
    world.openssl(&[
        "req", "-in", "new.csr", "-outform", "DER", "-out", "csr.der",
    ]);
    let mut csr = world.bytes("csr.der");
    // The last octet belongs to the number s of the signature.
    *csr.last_mut().unwrap() ^= 1;
    world.write("csr.der", csr);
    let reason = refused(
        &world,
        &world::with_secret(&["-cmd", "p10cr", "-csr", "csr.der"]),
    );
    assert!(reason.starts_with("badPOP: "), "{reason}");
    assert_eq!(Message::read(&world.bytes("rsp1.der")).kind, "cp");
}

#[test]
fn what_this_ca_does_not_do() {
    let world = World::new(|_| ());
    let reason = refused(&world, &world::with_secret(&["-cmd", "genm"]));
    assert!(
        reason.starts_with("badRequest: ") && reason.contains("one question"),
        "{reason}"
    );
    let answer = Message::read(&world.bytes("rsp1.der"));
    assert_eq!(
        (answer.kind, answer.extra_certs),
        ("error", 0),
        "protected by the MAC"
    );
}

#[test]
fn a_certificate_that_the_client_rejects() {
    let world = World::new(|_| ());
    // The client will not find a path to a root that is not the CA's.
    world.write("req.cnf", "[req]\ndistinguished_name = none\n[none]\n");
    world.openssl(&[
        "req",
        "-x509",
        "-config",
        "req.cnf",
        "-key",
        "new.key",
        "-subj",
        "/CN=other",
        "-out",
        "other.pem",
    ]);
    let words = [
        &["-cmd", "ir"][..],
        &NEW_KEY,
        &["-out_trusted", "other.pem"],
    ]
    .concat();
    assert!(world.request(&world::with_secret(&words)).is_err());
    assert_eq!(world::events(&world.books()), ["ir issued", "ir rejected"]);
    assert_eq!(Message::read(&world.bytes("rsp2.der")).kind, "pkiconf");
}

#[test]
fn headers_against_the_rules() {
    let world = World::new(|_| ());
    let words = [&["-cmd", "ir"][..], &NEW_KEY].concat();
    world.request(&world::with_secret(&words)).unwrap();
    let ir = world.bytes("req1.der");
    let fail_info = |message: &[u8]| {
        let answer = Message::read(&post(&world, message));
        assert_eq!(answer.kind, "error");
        answer.fail_info
    };
    let short_id = wire::changed(&ir, |header, _| header.transaction_id = Some(b"short"));
    assert_eq!(fail_info(&short_id), "badDataFormat");
    let no_id = wire::changed(&ir, |header, _| header.transaction_id = None);
    assert_eq!(fail_info(&no_id), "badDataFormat");
    let no_nonce = wire::changed(&ir, |header, _| {
        header.transaction_id = Some(&[9; 16]);
        header.sender_nonce = None;
    });
    assert_eq!(fail_info(&no_nonce), "badSenderNonce");
    let mut old = ir.clone();
    // pvno is the first field of the header, right after two SEQUENCEs with long lengths.
    let pvno = old
        .windows(3)
        .position(|octets| octets == [2, 1, 2])
        .unwrap()
        + 2;
    old[pvno] = 1;
    assert_eq!(fail_info(&old), "unsupportedVersion");
    assert_eq!(world::events(&world.books()[2..]).len(), 4);
}

#[test]
fn the_answer_keeps_to_the_header_rules() {
    let world = World::new(|options| options.implicit_confirm = true);
    let words = [&["-cmd", "ir"][..], &NEW_KEY].concat();
    world.request(&world::with_secret(&words)).unwrap();
    let nonce = [7; 16];
    let ir = wire::changed(&world.bytes("req1.der"), |header, _| {
        header.pvno = 3;
        header.transaction_id = Some(&[8; 16]);
        header.sender_nonce = Some(&[7; 16]);
        header.general_info = vec![InfoTypeAndValue::IMPLICIT_CONFIRM];
    });
    let answer = post(&world, &ir);
    let (request, answer) = (
        abide_cmp::PkiMessage::from_der(&ir).unwrap(),
        abide_cmp::PkiMessage::from_der(&answer).unwrap(),
    );
    assert_eq!(answer.header.pvno, 3);
    assert_eq!(answer.header.recipient, request.header.sender);
    assert_eq!(answer.header.transaction_id, Some(&[8; 16][..]));
    assert_eq!(answer.header.recip_nonce, Some(&nonce[..]));
    assert_eq!(answer.header.sender_nonce.unwrap().len(), 16);
    assert_ne!(answer.header.sender_nonce, Some(&nonce[..]));
    assert_eq!(answer.header.sender_kid, Some(world::REFERENCE.as_bytes()));
    assert!(answer.header.message_time.is_some());
    assert!(answer.header.implicit_confirm());
    let GeneralName::Directory(sender) = &answer.header.sender else {
        panic!("{:?}", answer.header.sender)
    };
    let subject = world.openssl(&["x509", "-in", world::ROOT, "-noout", "-subject"]);
    assert_eq!(
        subject.trim(),
        format!("subject={sender}").replace("CN=", "CN = ")
    );
    let PkiBody::Ip(content) = &answer.body else {
        panic!("{:?}", answer.body)
    };
    assert!(
        !content.responses[0]
            .status
            .fail_info
            .unwrap_or_default()
            .intersects(FailInfo::BAD_ALG)
    );
}

#[test]
fn only_loopback_and_plain_paths() {
    let world = World::new(|_| ());
    for change in [
        |options: &mut abide_mock_ca::Options| options.listen = "0.0.0.0:0".parse().unwrap(),
        |options: &mut abide_mock_ca::Options| options.path = "pkix".into(),
        |options: &mut abide_mock_ca::Options| options.path = "/{id}/".into(),
        |options: &mut abide_mock_ca::Options| options.trusted = vec![vec![1]],
        // The folder is in use.
        |_: &mut abide_mock_ca::Options| (),
    ] {
        let mut options = world.options();
        change(&mut options);
        assert!(world.runtime().block_on(MockCa::bind(options)).is_err());
    }
}
