//! Repeated requests, restarts, and books that balance.

use std::time::Duration;

use abide_cmp::PkiBody;
use abide_mock_ca::Repeat;
use abide_mock_ca::books::Event;

use crate::NEW_KEY;
use crate::http::post;
use crate::wire::{self, Message};
use crate::world::{self, World};

fn enroll(world: &World) {
    let words = [&["-cmd", "ir"][..], &NEW_KEY].concat();
    world.request(&world::with_secret(&words)).unwrap();
}

#[test]
fn a_repeat_gets_the_same_octets_and_no_line_in_the_books() {
    let mut world = World::new(|_| ());
    enroll(&world);
    let books = world.books();
    for _ in 0..2 {
        for number in ["1", "2"] {
            let answer = post(&world, &world.bytes(&format!("req{number}.der")));
            assert_eq!(answer, world.bytes(&format!("rsp{number}.der")));
        }
        assert_eq!(world.books(), books);
        // Another process would know as much.
        world.stop();
        world.start();
    }
}

#[test]
fn a_strict_ca_refuses_repeats() {
    let world = World::new(|options| options.repeat = Repeat::Refuse);
    enroll(&world);
    for (request, fail_info) in [
        ("req1.der", "transactionIdInUse"),
        ("req2.der", "certConfirmed"),
    ] {
        let answer = Message::read(&post(&world, &world.bytes(request)));
        assert_eq!(
            (answer.kind, answer.fail_info.as_str()),
            ("error", fail_info)
        );
    }
    let expected = [
        "ir issued",
        "ir confirmed",
        "ir refused",
        "certConf refused",
    ];
    assert_eq!(world::events(&world.books()), expected);
}

#[test]
fn another_request_under_the_same_id_is_refused() {
    let world = World::new(|_| ());
    enroll(&world);
    let other = wire::changed(&world.bytes("req1.der"), |header, _| {
        header.sender_nonce = Some(&[1; 16]);
    });
    let answer = Message::read(&post(&world, &other));
    assert_eq!(
        (answer.kind, answer.fail_info.as_str()),
        ("error", "transactionIdInUse")
    );
}

#[test]
fn confirmations_that_do_not_fit() {
    let world = World::new(|_| ());
    enroll(&world);
    let confirmation = world.bytes("req2.der");
    let fail_info = |message: &[u8]| Message::read(&post(&world, message)).fail_info;
    let again = wire::changed(&confirmation, |header, _| {
        header.sender_nonce = Some(&[2; 16])
    });
    assert_eq!(fail_info(&again), "certConfirmed");

    // A transaction of its own that is not confirmed yet.
    let ir = wire::changed(&world.bytes("req1.der"), |header, _| {
        header.transaction_id = Some(&[3; 16]);
    });
    let ip = post(&world, &ir);
    let foreign = wire::changed(&confirmation, |header, _| {
        header.transaction_id = Some(&[3; 16])
    });
    assert_eq!(fail_info(&foreign), "badRecipientNonce");
    let foreign = wire::as_next(&foreign, &ip, &[4; 16]);
    assert_eq!(
        fail_info(&foreign),
        "badCertId",
        "the hash is that of another certificate"
    );
    let unknown = wire::changed(&confirmation, |header, _| {
        header.transaction_id = Some(&[5; 16])
    });
    assert_eq!(fail_info(&unknown), "badRequest");
    let odd = wire::changed(&foreign, |_, body| {
        let PkiBody::CertConf(statuses) = body else {
            panic!("{body:?}")
        };
        statuses[0].cert_req_id = 1;
    });
    assert_eq!(fail_info(&odd), "badRequest");
    let odd = wire::changed(&foreign, |_, body| {
        let PkiBody::CertConf(statuses) = body else {
            panic!("{body:?}")
        };
        statuses.clear();
    });
    assert_eq!(fail_info(&odd), "badRequest");
    // Still open: the right hash is accepted.
    let issued: Vec<_> = world
        .books()
        .into_iter()
        .filter_map(|entry| match entry.event {
            Event::Issued { sha256, .. } => Some(sha256),
            _ => None,
        })
        .collect();
    let sha256 = issued.last().unwrap();
    let hash: Vec<u8> = (0..32)
        .map(|at| u8::from_str_radix(&sha256[2 * at..2 * at + 2], 16).unwrap())
        .collect();
    let right = wire::changed(&foreign, |_, body| {
        let PkiBody::CertConf(statuses) = body else {
            panic!("{body:?}")
        };
        statuses[0].cert_hash = &hash;
    });
    assert_eq!(Message::read(&post(&world, &right)).kind, "pkiconf");
}

#[test]
fn waiting_goes_on_after_a_restart_and_early_polls_do_not_count() {
    let mut world = World::new(|options| {
        options.poll_count = 2;
        options.check_after = 5;
    });
    // The client gives up after one second, in the midst of its wait.
    let words = [&["-cmd", "ir"][..], &NEW_KEY, &["-total_timeout", "1"]].concat();
    assert!(world.request(&world::with_secret(&words)).is_err());
    let (poll, answer) = (world.bytes("req2.der"), world.bytes("rsp2.der"));
    assert_eq!(Message::read(&answer).check_after, Some(5));
    let stale = wire::changed(&poll, |header, _| header.sender_nonce = Some(&[1; 16]));
    let stale = Message::read(&post(&world, &stale));
    assert_eq!(
        (stale.kind, stale.fail_info.as_str()),
        ("error", "badRecipientNonce")
    );

    let poll = wire::as_next(&poll, &answer, &[2; 16]);
    let answer = post(&world, &poll);
    let early = Message::read(&answer).check_after.unwrap();
    assert!((1..=5).contains(&early), "{early}");
    let books = world.books();
    let expected = ["ir waiting", "ir polled", "pollReq refused", "ir polled"];
    assert_eq!(world::events(&books), expected);
    assert_eq!(
        books[1].event, books[3].event,
        "the early one changes nothing"
    );

    world.stop();
    world.start();
    std::thread::sleep(Duration::from_secs(early.try_into().unwrap()));
    let poll = wire::as_next(&poll, &answer, &[3; 16]);
    let ip = post(&world, &poll);
    let delivery = Message::read(&ip);
    assert_eq!(
        (delivery.kind, delivery.status.as_str()),
        ("ip", "accepted")
    );
    let begin = Message::read(&world.bytes("req1.der"));
    assert_eq!(delivery.transaction_id, begin.transaction_id);
    assert_eq!(delivery.recip_nonce, [3; 16]);
    assert_eq!(post(&world, &poll), ip);
    assert_eq!(world::events(&world.books()[4..]), ["ir issued"]);
}

#[test]
fn a_restart_keeps_the_identity_and_a_second_folder_has_its_own() {
    let mut world = World::new(|_| ());
    let (url, root) = (world.url().to_string(), world.root_pem().to_string());
    assert!(
        url.starts_with("http://127.0.0.1:") && url.ends_with("/pkix/"),
        "{url}"
    );
    let dir = world.ca_dir();
    for key in ["root.key.pem", "signer.key.pem"] {
        assert_eq!(world::mode(&dir.join(key)), 0o600);
    }
    world.openssl(&[
        "verify",
        "-x509_strict",
        "-CAfile",
        world::ROOT,
        "../ca/signer.pem",
    ]);
    let text = world.openssl(&["x509", "-in", world::ROOT, "-noout", "-text"]);
    for part in [
        "CA:TRUE",
        "Certificate Sign, CRL Sign",
        "Subject Key Identifier",
    ] {
        assert!(text.contains(part), "{text}");
    }
    enroll(&world);
    world.stop();
    world.start();
    assert_eq!(world.root_pem(), root);
    enroll(&world);
    world.openssl(&["verify", "-CAfile", world::ROOT, "new.pem"]);
    let issued = ["ir issued", "ir confirmed"].repeat(2);
    assert_eq!(world::events(&world.books()), issued);

    assert_ne!(World::new(|_| ()).root_pem(), root);
}

#[test]
fn a_lost_root_is_not_replaced_in_silence() {
    let mut world = World::new(|_| ());
    enroll(&world);
    world.stop();
    std::fs::remove_file(world.ca_dir().join("root.pem")).unwrap();
    let bound = abide_mock_ca::MockCa::bind(world.options());
    let error = world.runtime().block_on(bound).unwrap_err();
    assert!(error.to_string().contains("root.pem is missing"), "{error}");
}

#[test]
fn many_at_once_and_every_one_is_in_the_books() {
    const CLIENTS: u8 = 24;
    let world = World::new(|options| options.implicit_confirm = true);
    enroll(&world);
    let ir = world.bytes("req1.der");
    let requests: Vec<_> = (0..CLIENTS)
        .map(|client| {
            let id = [100 + client; 16];
            wire::changed(&ir, |header, _| header.transaction_id = Some(&id))
        })
        .collect();
    std::thread::scope(|scope| {
        for request in &requests {
            // Each is sent twice, as by a client that lost patience.
            scope.spawn(|| post(&world, request));
            scope.spawn(|| post(&world, request));
        }
    });
    let books = world.books();
    let mut issued: Vec<_> = books[2..]
        .iter()
        .map(|entry| entry.transaction_id.clone())
        .collect();
    issued.sort();
    let mut expected: Vec<_> = (0..CLIENTS)
        .map(|client| format!("{:02x}", 100 + client).repeat(16))
        .collect();
    expected.sort();
    assert_eq!(issued, expected);
    assert_eq!(
        world::events(&books[2..]),
        vec!["ir issued"; CLIENTS.into()]
    );
}
