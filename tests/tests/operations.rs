//! Everything that an end entity asks of a CA besides a first certificate: renewal, revocation
//! and information, with `abide mock-ca` and with OpenSSL's server (RFC 9483, 4.1.3, 4.2, 4.3).

use std::fs;

use abide_tests::abide::{Abide, MockCa};
use abide_tests::openssl::{CmpServer, Protection};
use abide_tests::pki::{KeyKind, Pki, openssl};
use abide_tests::process::{Ended, succeed};

struct World {
    dir: tempfile::TempDir,
    ca: MockCa,
    abide: Abide,
}

impl World {
    /// A CA, and a certificate `first.pem` with its key `first.key`.
    fn new(options: &[&str]) -> Self {
        let dir = tempfile::tempdir().expect("a folder for a test");
        let ca = MockCa::start(dir.path(), options);
        let abide = Abide::new(dir.path());
        let world = Self { dir, ca, abide };
        let secret = format!("pass:{}", MockCa::SECRET);
        world.done(&[
            "--cmd",
            "ir",
            "--ref",
            MockCa::REF,
            "--secret",
            &secret,
            "--subject",
            "/CN=device",
            "--sans",
            "device.example",
            "--newkey",
            "first.key",
            "--certout",
            "first.pem",
        ]);
        world
    }

    fn ask(&self, words: &[&str]) -> Ended {
        let trusted = self.ca.root().display().to_string();
        let common = ["--server", self.ca.url(), "--trusted", &trusted];
        self.abide.enroll(common.iter().chain(words))
    }

    fn done(&self, words: &[&str]) -> Ended {
        let ended = self.ask(words);
        assert_eq!(ended.code, Some(0), "{ended:?}, the CA: {}", self.ca.said());
        ended
    }

    fn refused(&self, words: &[&str], reason: &str) {
        let ended = self.ask(words);
        assert_eq!(ended.code, Some(3), "{ended:?}");
        assert!(ended.stderr.contains(reason), "{ended:?}");
    }

    fn serial(&self, certificate: &str) -> String {
        let text = succeed(
            openssl()
                .args(["x509", "-noout", "-serial", "-in"])
                .arg(self.abide.path(certificate)),
        );
        text.trim().trim_start_matches("serial=").to_lowercase()
    }

    fn text(&self, kind: &str, file: &str) -> String {
        succeed(
            openssl()
                .args([kind, "-noout", "-text", "-in"])
                .arg(self.abide.path(file)),
        )
    }

    fn events(&self) -> Vec<String> {
        let events = self.ca.books().into_iter();
        events
            .map(|line| line["event"].as_str().expect("an event").to_owned())
            .collect()
    }
}

const FIRST: [&str; 4] = ["--cert", "first.pem", "--key", "first.key"];

fn words<'w>(parts: &[&[&'w str]]) -> Vec<&'w str> {
    parts.concat()
}

#[test]
fn a_certificate_is_renewed_with_a_new_key_and_with_the_same() {
    let world = World::new(&[]);
    let kur = [
        "--cmd",
        "kur",
        "--newkey",
        "second.key",
        "--certout",
        "second.pem",
    ];
    world.done(&words(&[&kur, &FIRST]));
    let text = world.text("x509", "second.pem");
    assert!(text.contains("DNS:device.example"), "the old names: {text}");
    assert!(text.contains("CN = device"), "the old subject: {text}");
    let same = ["--cmd", "kur", "--certout", "third.pem"];
    let second = ["--cert", "second.pem", "--key", "second.key"];
    world.done(&words(&[&same, &second]));
    assert_ne!(world.serial("second.pem"), world.serial("third.pem"));
    succeed(
        openssl()
            .args(["verify", "-CAfile"])
            .arg(world.ca.root())
            .arg(world.abide.path("third.pem")),
    );
}

#[test]
fn a_kur_without_the_certificate_that_it_renews_is_no_kur() {
    let world = World::new(&[]);
    let secret = format!("pass:{}", MockCa::SECRET);
    let ended = world.ask(&[
        "--cmd",
        "kur",
        "--ref",
        MockCa::REF,
        "--secret",
        &secret,
        "--newkey",
        "second.key",
    ]);
    assert_eq!(ended.code, Some(2), "{ended:?}");
    assert!(ended.stderr.contains("--cert"), "{ended:?}");
}

#[test]
fn what_is_revoked_is_on_the_list_and_signs_nothing_more() {
    let world = World::new(&[]);
    let rr = ["--cmd", "rr", "--revreason", "keyCompromise"];
    world.done(&words(&[&rr, &FIRST]));
    // The same wish again: it is known to be done, and nothing is sent.
    let before = world.events().len();
    world.done(&words(&[&rr, &FIRST, &["--resume"]]));
    assert_eq!(world.events().len(), before);

    let cr = [
        "--cmd",
        "cr",
        "--subject",
        "/CN=device",
        "--newkey",
        "second.key",
    ];
    world.refused(&words(&[&cr, &FIRST]), "certRevoked");

    let secret = format!("pass:{}", MockCa::SECRET);
    let by_secret = ["--ref", MockCa::REF, "--secret", &secret];
    let genm = [
        "--cmd",
        "genm",
        "--infotype",
        "crlStatusList",
        "--crlcert",
        "first.pem",
    ];
    world.done(&words(&[&genm, &by_secret, &["--crlout", "crl.pem"]]));
    let crl = world.text("crl", "crl.pem");
    let serial = world.serial("first.pem").to_uppercase();
    assert!(crl.contains(&format!("Serial Number: {serial}")), "{crl}");
    assert!(crl.contains("Key Compromise"), "{crl}");
    succeed(
        openssl()
            .args(["crl", "-noout", "-CAfile"])
            .arg(world.ca.root())
            .arg("-in")
            .arg(world.abide.path("crl.pem")),
    );
}

#[test]
fn what_is_on_hold_can_be_revived() {
    let world = World::new(&[]);
    world.done(&words(&[
        &["--cmd", "rr", "--revreason", "certificateHold"],
        &FIRST,
    ]));
    world.done(&words(&[
        &["--cmd", "rr", "--revreason", "removeFromCRL"],
        &FIRST,
    ]));
    let cr = [
        "--cmd",
        "cr",
        "--subject",
        "/CN=device",
        "--newkey",
        "second.key",
    ];
    world.done(&words(&[&cr, &FIRST, &["--certout", "second.pem"]]));
    world.refused(
        &words(&[&["--cmd", "rr", "--revreason", "removeFromCRL"], &FIRST]),
        "not on hold",
    );
    let events = world.events();
    let order: Vec<&str> = events
        .iter()
        .map(String::as_str)
        .filter(|event| event.starts_with("rev"))
        .collect();
    assert_eq!(order, ["revoked", "revived"]);
}

#[test]
fn a_pki_tells_what_it_is_asked() {
    let world = World::new(&[]);
    let genm = ["--cmd", "genm", "--infotype"];
    world.done(&words(&[
        &genm,
        &["caCerts", "--cacertsout", "ca.pem"],
        &FIRST,
    ]));
    assert_eq!(
        world.abide.read("ca.pem"),
        fs::read_to_string(world.ca.root()).expect("a root")
    );
    let ended = world.done(&words(&[
        &genm,
        &["rootCaCert", "--oldwithold", "ca.pem", "--output", "json"],
        &FIRST,
    ]));
    assert!(ended.stdout.contains("\"absent\""), "{ended:?}");
    world.done(&words(&[
        &genm,
        &["certReqTemplate", "--valueout", "template.der"],
        &FIRST,
    ]));
    assert!(world.abide.path("template.der").exists());
    world.refused(&words(&[&genm, &["1.2.3.4"], &FIRST]), "badRequest");
}

#[test]
fn every_answer_may_take_its_time() {
    let world = World::new(&["--poll-count", "2", "--check-after", "1"]);
    let kur = [
        "--cmd",
        "kur",
        "--newkey",
        "second.key",
        "--certout",
        "second.pem",
    ];
    world.done(&words(&[&kur, &FIRST]));
    world.done(&words(&[
        &["--cmd", "genm", "--infotype", "caCerts", "--quiet"],
        &FIRST,
    ]));
    world.done(&words(&[&["--cmd", "rr"], &FIRST]));
    let polled = world.events().into_iter().filter(|event| event == "polled");
    assert_eq!(polled.count(), 4, "{:?}", world.events());
    assert!(world.dir.path().exists());
}

/// OpenSSL's server sends the same certificate whatever it is asked for, and revokes no other.
struct OpenSsl {
    pki: Pki,
    abide: Abide,
    _dir: tempfile::TempDir,
}

impl OpenSsl {
    fn new() -> Self {
        let dir = tempfile::tempdir().expect("a folder for a test");
        let pki = Pki::new(dir.path(), KeyKind::P256);
        let key = pki.key("new", KeyKind::P256);
        pki.issue_for_key("new", &key, "/CN=device");
        Self {
            pki,
            abide: Abide::new(dir.path()),
            _dir: dir,
        }
    }

    fn ask(&self, server: &CmpServer, words: &[&str]) -> Ended {
        let common = [
            "--server",
            server.url(),
            "--trusted",
            "root.crt",
            "--untrusted",
            "sub.crt",
        ];
        let ended = self.abide.enroll(common.iter().chain(words));
        assert_eq!(
            ended.code,
            Some(0),
            "{ended:?}, the server: {}",
            server.said()
        );
        ended
    }

    fn verify(&self, certificate: &str) {
        succeed(
            openssl()
                .args(["verify", "-x509_strict", "-CAfile"])
                .arg(self.pki.path("root.crt"))
                .arg("-untrusted")
                .arg(self.pki.path("sub.crt"))
                .arg(self.abide.path(certificate)),
        );
    }
}

const NEW: [&str; 4] = ["--cert", "new.crt", "--key", "new.key"];

#[test]
fn openssl_renews_and_revokes() {
    let world = OpenSsl::new();
    let server = CmpServer::start(&world.pki, Protection::Signature, &["-grant_implicitconf"]);
    for (file, extra, confirmation) in [
        ("explicit.pem", &[][..], "confirmation confirmed"),
        (
            "implicit.pem",
            &["--implicit-confirm"],
            "confirmation implicit",
        ),
    ] {
        let kur = ["--cmd", "kur", "--order", file, "--certout", file];
        let ended = world.ask(&server, &[&kur, &NEW[..], extra].concat());
        assert!(ended.stderr.contains(confirmation), "{ended:?}");
        world.verify(file);
    }
    let rr = ["--cmd", "rr", "--revreason", "superseded"];
    world.ask(&server, &[&rr, &NEW[..]].concat());
    let genm = ["--cmd", "genm", "--infotype", "caCerts"];
    world.ask(&server, &[&genm, &NEW[..]].concat());
}

#[test]
fn openssl_renews_later() {
    let world = OpenSsl::new();
    let polling = ["-poll_count", "2", "-check_after", "1"];
    let server = CmpServer::start(&world.pki, Protection::Signature, &polling);
    let kur = ["--cmd", "kur", "--certout", "renewed.pem"];
    world.ask(&server, &[&kur, &NEW[..]].concat());
    world.verify("renewed.pem");
    assert_eq!(world.abide.transactions()[0]["polls"], 2);
}

#[test]
fn openssl_revokes_and_informs_by_a_mac() {
    let world = OpenSsl::new();
    let server = CmpServer::start::<&str>(&world.pki, Protection::Pbm, &[]);
    let secret = format!("pass:{}", CmpServer::SECRET);
    let credential = ["--ref", CmpServer::REF, "--secret", &secret];
    let rr = ["--cmd", "rr", "--oldcert", "new.crt"];
    world.ask(&server, &[&rr, &credential[..]].concat());
    let genm = ["--cmd", "genm", "--infotype", "caCerts"];
    world.ask(&server, &[&genm, &credential[..]].concat());
}
