//! The client of `openssl cmp` enrolls at `abide mock-ca`, and the CA's books know of
//! every certificate exactly once.

use std::path::Path;
use std::process::Command;

use abide_tests::abide::MockCa;
use abide_tests::openssl::{certificates, cmp_client, verify_chain};
use abide_tests::pki::{KeyKind, Pki};
use abide_tests::process::succeed;
use serde_json::Value;
use tempfile::TempDir;

const SUBJECT: &str = "/O=abide tests/CN=new";

/// Both ways to protect a request, for every kind of request and confirmation.
const CASES: [(&str, bool); 6] = [
    ("ir", false),
    ("ir", true),
    ("cr", false),
    ("cr", true),
    ("p10cr", false),
    ("p10cr", true),
];

/// A CA, and a client with a key to be certified.
struct World {
    _dir: TempDir,
    ca: MockCa,
    pki: Pki,
}

impl World {
    fn new(kind: KeyKind, options: &[&str]) -> Self {
        let dir = tempfile::tempdir().expect("a folder for a test");
        let pki = Pki::new(&dir.path().join("pki"), kind);
        pki.csr("new", &pki.key("new", kind), SUBJECT);
        let ca = MockCa::start(dir.path(), options);
        Self { _dir: dir, ca, pki }
    }

    /// Enrolls and returns the certificate's file.
    fn enroll(&self, case: &str, operation: &str, implicit: bool, credential: &[&str]) -> String {
        let certificate = format!("{case}.pem");
        let root = self.ca.root().display().to_string();
        let mut words = vec!["-cmd", operation, "-server", self.ca.url()];
        words.extend(["-recipient", "/CN=any", "-trusted", &root]);
        words.extend(["-certout", &certificate]);
        match operation {
            "p10cr" => words.extend(["-csr", "new.csr"]),
            _ => words.extend(["-newkey", "new.key", "-subject", SUBJECT]),
        }
        if implicit {
            words.push("-implicit_confirm");
        }
        words.extend(credential);
        let ended = cmp_client(&self.pki, words);
        let said = self.ca.said();
        assert_eq!(ended.code, Some(0), "{case}: {ended:?}\nthe CA:\n{said}");
        let path = self.pki.path(&certificate);
        verify_chain(&path, self.ca.root());
        assert_eq!(certificates(&path).len(), 1, "{case}");
        assert_eq!(public_key(&path), self.key(), "{case}");
        certificate
    }

    /// The public half of the key to be certified.
    fn key(&self) -> String {
        succeed(
            Command::new("openssl")
                .args(["pkey", "-pubout", "-in"])
                .arg(self.pki.path("new.key")),
        )
    }

    /// The lines of the books for the transaction in which a certificate was issued.
    fn books_of(&self, certificate: &str) -> Vec<Value> {
        let sha256 = fingerprint(&self.pki.path(certificate));
        let books = self.ca.books();
        let issued: Vec<&Value> = books
            .iter()
            .filter(|line| line["sha256"] == sha256)
            .collect();
        let [issued] = issued[..] else {
            panic!("{certificate} is {} times in {books:?}", issued.len());
        };
        let id = issued["transactionID"].clone();
        books
            .into_iter()
            .filter(|line| line["transactionID"] == id)
            .collect()
    }

    fn check_books(&self, case: &str, operation: &str, certificate: &str, events: &[&str]) {
        let lines = self.books_of(certificate);
        let found: Vec<&Value> = lines.iter().map(|line| &line["event"]).collect();
        assert_eq!(found, events, "{case}");
        for line in &lines {
            assert_eq!(line["operation"], operation, "{case}");
        }
        let waived = !events.contains(&"confirmed");
        let issued = lines.iter().find(|line| line["event"] == "issued");
        assert_eq!(
            issued.expect("a certificate")["implicitConfirm"],
            waived,
            "{case}"
        );
    }

    /// Every operation with one credential, each confirmed in both ways.
    fn every_operation(&self, protection: &str, credential: &[&str]) {
        for (operation, implicit) in CASES {
            let case = format!("{protection}-{operation}-{implicit}");
            let certificate = self.enroll(&case, operation, implicit, credential);
            let events: &[&str] = if implicit {
                &["issued"]
            } else {
                &["issued", "confirmed"]
            };
            self.check_books(&case, operation, &certificate, events);
        }
    }

    fn issued(&self) -> usize {
        let books = self.ca.books();
        books
            .iter()
            .filter(|line| line["event"] == "issued")
            .count()
    }
}

fn public_key(certificate: &Path) -> String {
    succeed(
        Command::new("openssl")
            .args(["x509", "-noout", "-pubkey", "-in"])
            .arg(certificate),
    )
}

/// The certificate's SHA-256 in lowercase hexadecimal, in openssl's eyes.
fn fingerprint(certificate: &Path) -> String {
    let line = succeed(
        Command::new("openssl")
            .args(["x509", "-noout", "-fingerprint", "-sha256", "-in"])
            .arg(certificate),
    );
    let (_, digits) = line.trim().split_once('=').expect("NAME=DIGITS");
    digits.replace(':', "").to_lowercase()
}

fn secret() -> [String; 4] {
    let secret = format!("pass:{}", MockCa::SECRET);
    ["-ref".into(), MockCa::REF.into(), "-secret".into(), secret]
}

fn borrowed(words: &[String]) -> Vec<&str> {
    words.iter().map(String::as_str).collect()
}

#[test]
fn with_a_shared_secret() {
    let world = World::new(KeyKind::P256, &["--implicit-confirm"]);
    world.every_operation("pbm", &borrowed(&secret()));
    assert_eq!(world.issued(), CASES.len());
}

#[test]
fn with_a_certificate_that_a_secret_has_obtained() {
    for kind in KeyKind::ALL {
        let world = World::new(kind, &["--implicit-confirm"]);
        let first = world.enroll("first", "ir", false, &borrowed(&secret()));
        let credential = ["-cert", &first, "-key", "new.key"];
        world.every_operation(&format!("{kind:?}"), &credential);
        assert_eq!(world.issued(), 1 + CASES.len(), "{kind:?}");
    }
}

#[test]
fn with_polling() {
    let world = World::new(
        KeyKind::P256,
        &[
            "--implicit-confirm",
            "--poll-count",
            "2",
            "--check-after",
            "1",
        ],
    );
    for (operation, implicit, events) in [
        (
            "ir",
            false,
            &["waiting", "polled", "issued", "confirmed"][..],
        ),
        ("p10cr", true, &["waiting", "polled", "issued"][..]),
    ] {
        let certificate = world.enroll(operation, operation, implicit, &borrowed(&secret()));
        world.check_books(operation, operation, &certificate, events);
    }
    assert_eq!(world.issued(), 2);
}

#[test]
fn a_confirmation_that_is_not_waived_is_expected() {
    let world = World::new(KeyKind::P256, &[]);
    let certificate = world.enroll("asked", "ir", true, &borrowed(&secret()));
    world.check_books("asked", "ir", &certificate, &["issued", "confirmed"]);
}

#[test]
fn a_wrong_secret_gets_nothing() {
    let world = World::new(KeyKind::P256, &[]);
    let words = ["-cmd", "p10cr", "-csr", "new.csr", "-certout", "none.pem"];
    let words = words.into_iter().chain(["-server", world.ca.url()]);
    let ended = cmp_client(
        &world.pki,
        words.chain(["-ref", MockCa::REF, "-secret", "pass:of the client alone"]),
    );
    assert_ne!(ended.code, Some(0), "{ended:?}");
    assert!(!world.pki.path("none.pem").exists());
    assert_eq!(world.issued(), 0);
}
