//! The CA against a client that is not ours: `openssl cmp` of Debian. What it sends is
//! kept, so that it can be sent again, and changed.

mod http;
mod openssl;
mod refusals;
mod repeats;
mod wire;
mod world;

use abide_mock_ca::books::Event;
use world::World;

/// Runs an enrollment with a shared secret and checks what came of it.
fn enroll_with_secret(world: &World, command: &str, more: &[&str]) {
    let mut words = vec!["-cmd", command];
    words.extend(["-ref", world::REFERENCE, "-secret", "pass:trial-secret"]);
    words.extend(more);
    world.request(&words).unwrap();
    check_certificate(world, "new.pem", "new.key", "device-1");
}

/// The certificate is for the key and the names that were asked for, and openssl finds a
/// path to the root.
fn check_certificate(world: &World, certificate: &str, key: &str, common_name: &str) {
    world.openssl(&[
        "verify",
        "-x509_strict",
        "-CAfile",
        world::ROOT,
        certificate,
    ]);
    for purpose in ["sslserver", "sslclient"] {
        world.openssl(&[
            "verify",
            "-purpose",
            purpose,
            "-CAfile",
            world::ROOT,
            certificate,
        ]);
    }
    let certified = world.openssl(&["x509", "-in", certificate, "-noout", "-pubkey"]);
    assert_eq!(certified, world.openssl(&["pkey", "-in", key, "-pubout"]));
    let subject = world.openssl(&["x509", "-in", certificate, "-noout", "-subject"]);
    assert_eq!(subject.trim(), format!("subject=CN = {common_name}"));
    let names = [
        "x509",
        "-in",
        certificate,
        "-noout",
        "-ext",
        "subjectAltName",
    ];
    assert!(
        world
            .openssl(&names)
            .contains("DNS:device-1.example, IP Address:192.0.2.7")
    );
}

const NEW_KEY: [&str; 6] = [
    "-newkey",
    "new.key",
    "-subject",
    "/CN=device-1",
    "-sans",
    "device-1.example 192.0.2.7",
];

#[test]
fn ir_with_a_secret_and_an_explicit_confirmation() {
    let world = World::new(|_| ());
    let more = [&NEW_KEY[..], &["-cacertsout", "anchors.pem"]].concat();
    enroll_with_secret(&world, "ir", &more);
    // caPubs is the root and nothing else.
    let anchors = world.openssl(&["x509", "-in", "anchors.pem", "-outform", "PEM"]);
    assert_eq!(anchors, world.root_pem());
    assert_eq!(
        world
            .read("anchors.pem")
            .matches("BEGIN CERTIFICATE")
            .count(),
        1
    );

    let books = world.books();
    assert_eq!(world::events(&books), ["ir issued", "ir confirmed"]);
    let Event::Issued {
        subject,
        serial,
        sha256,
        implicit_confirm,
    } = &books[0].event
    else {
        panic!("{:?}", books[0]);
    };
    assert_eq!(
        (subject.as_str(), *implicit_confirm),
        ("CN=device-1", false)
    );
    let openssl = world.openssl(&["x509", "-in", "new.pem", "-noout", "-serial"]);
    assert_eq!(openssl.trim().to_lowercase(), format!("serial={serial}"));
    assert_eq!(serial.len(), 32);
    let openssl = world.openssl(&[
        "x509",
        "-in",
        "new.pem",
        "-noout",
        "-fingerprint",
        "-sha256",
    ]);
    let fingerprint = openssl.trim().replace(':', "").to_lowercase();
    assert_eq!(fingerprint, format!("sha256 fingerprint={sha256}"));
}

#[test]
fn implicit_confirmation_is_granted_to_who_asks_where_it_is_allowed() {
    let world = World::new(|options| options.implicit_confirm = true);
    let more = [&NEW_KEY[..], &["-implicit_confirm"]].concat();
    enroll_with_secret(&world, "ir", &more);
    assert_eq!(world::events(&world.books()), ["ir issued"]);

    enroll_with_secret(&world, "ir", &NEW_KEY);
    assert_eq!(
        world::events(&world.books()),
        ["ir issued", "ir issued", "ir confirmed"]
    );
}

#[test]
fn implicit_confirmation_is_not_granted_where_it_is_not_allowed() {
    let world = World::new(|_| ());
    let more = [&NEW_KEY[..], &["-implicit_confirm"]].concat();
    enroll_with_secret(&world, "cr", &more);
    assert_eq!(world::events(&world.books()), ["cr issued", "cr confirmed"]);
}

#[test]
fn p10cr_with_a_secret() {
    let world = World::new(|_| ());
    world.make_csr();
    enroll_with_secret(&world, "p10cr", &["-csr", "new.csr"]);
    assert_eq!(
        world::events(&world.books()),
        ["p10cr issued", "p10cr confirmed"]
    );
}

#[test]
fn ir_cr_and_p10cr_with_a_certificate() {
    let world = World::new(|_| ());
    enroll_with_secret(&world, "ir", &NEW_KEY);
    world.rename("new.pem", "old.pem");
    world.rename("new.key", "old.key");
    world.make_key("new.key", "EC", "ec_paramgen_curve:P-256");
    world.make_csr();
    let own = [
        "-cert",
        "old.pem",
        "-key",
        "old.key",
        "-trusted",
        world::ROOT,
    ];
    for command in ["ir", "cr", "p10cr"] {
        let wanted: &[&str] = if command == "p10cr" {
            &["-csr", "new.csr"]
        } else {
            &NEW_KEY
        };
        let words = [&["-cmd", command][..], &own, wanted].concat();
        world.request(&words).unwrap();
        check_certificate(&world, "new.pem", "new.key", "device-1");
        let delivery = wire::Message::read(&world.bytes("rsp1.der"));
        assert_eq!(delivery.ca_pubs, 0, "trust anchors come with a secret only");
        assert_eq!(delivery.extra_certs, 2);
    }
    let expected = [
        "ir issued",
        "ir confirmed",
        "ir issued",
        "ir confirmed",
        "cr issued",
        "cr confirmed",
        "p10cr issued",
        "p10cr confirmed",
    ];
    assert_eq!(world::events(&world.books()), expected);
}

#[test]
fn other_kinds_of_keys() {
    for (algorithm, parameter) in [
        ("RSA", "rsa_keygen_bits:2048"),
        ("EC", "ec_paramgen_curve:P-384"),
    ] {
        let world = World::new(|_| ());
        world.make_key("new.key", algorithm, parameter);
        enroll_with_secret(&world, "ir", &NEW_KEY);
        world.rename("new.pem", "old.pem");
        let own = [
            "-cert",
            "old.pem",
            "-key",
            "new.key",
            "-trusted",
            world::ROOT,
        ];
        world
            .request(&[&["-cmd", "cr"][..], &own, &NEW_KEY].concat())
            .unwrap();
        check_certificate(&world, "new.pem", "new.key", "device-1");
    }
}

#[test]
fn polling_counts_the_answers_without_a_certificate() {
    // The mock server of openssl, asked to poll three times, sends ip, pollRep, pollRep
    // and then the certificate.
    let world = World::new(|options| {
        options.poll_count = 2;
        options.check_after = 1;
    });
    world.make_csr();
    for command in ["ir", "cr", "p10cr"] {
        let wanted: &[&str] = if command == "p10cr" {
            &["-csr", "new.csr"]
        } else {
            &NEW_KEY
        };
        let before = world.books().len();
        enroll_with_secret(&world, command, wanted);
        let events = world::events(&world.books()[before..]);
        let expected = ["waiting", "polled", "issued", "confirmed"];
        assert_eq!(events, expected.map(|event| format!("{command} {event}")));
    }
}

#[test]
fn one_poll_is_one_answer() {
    let world = World::new(|options| options.poll_count = 1);
    enroll_with_secret(&world, "ir", &NEW_KEY);
    assert_eq!(
        world::events(&world.books()),
        ["ir waiting", "ir issued", "ir confirmed"]
    );
}

#[test]
fn the_answer_to_p10cr_carries_the_id_that_is_wanted() {
    for id in [-1, 0] {
        let world = World::new(|options| options.p10cr_cert_req_id = id);
        world.make_csr();
        // The client of OpenSSL 3.0 takes either and repeats it in certConf.
        enroll_with_secret(&world, "p10cr", &["-csr", "new.csr"]);
        assert_eq!(
            wire::Message::read(&world.bytes("rsp1.der")).cert_req_id,
            Some(id)
        );
    }
}

#[test]
fn what_was_not_granted_is_said() {
    let world = World::new(|_| ());
    let words = [&["-cmd", "ir"][..], &NEW_KEY, &["-days", "3"]].concat();
    world.request(&world::with_secret(&words)).unwrap();
    assert_eq!(
        wire::Message::read(&world.bytes("rsp1.der")).status,
        "grantedWithMods"
    );
    // Still valid after 89 days of its 90.
    world.openssl(&["x509", "-in", "new.pem", "-noout", "-checkend", "7689600"]);
}
