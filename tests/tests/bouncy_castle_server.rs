//! Everything that an end entity asks of a CA, with a CA on Bouncy Castle: an implementation
//! that shares nothing with abide and nothing with OpenSSL, refuses every repetition, and lets
//! its clients wait for whatever a behaviour in its URL names.

use std::fs;
use std::path::{Path, PathBuf};

use abide_cmp::BodyType;
use abide_tests::abide::Abide;
use abide_tests::bouncy_castle::{CmpServer, Entry};
use abide_tests::each;
use abide_tests::openssl::{certificates, verify_chain};
use abide_tests::pki::{KeyKind, Pki, openssl};
use abide_tests::process::{Ended, Process, succeed};
use abide_tests::proxy::{Proxy, Stage, Treatment};
use serde_json::Value;
use tempfile::TempDir;

/// The CA answers at once.
const AT_ONCE: &str = "";
/// A request waits for two polls, its confirmation for one.
const DELAYED: &str = "polls=2/confPolls=1/checkAfter=1";
/// Waiting is said by an error, and polled for with −1.
const DELAYED_BY_ERROR: &str = "polls=1/by=error";
const IMPLICIT: &str = "implicit=true";

/// How requests are protected.
#[derive(Clone, Copy, Debug)]
enum Protection {
    Pbm,
    Pbmac1,
    Signature,
}

struct World {
    dir: TempDir,
    pki: Pki,
    ca: CmpServer,
}

impl World {
    fn new(kind: KeyKind) -> Self {
        let dir = tempfile::tempdir().expect("a folder for a test");
        let pki = Pki::new(&dir.path().join("pki"), kind);
        pki.csr("device", &pki.key("device", kind), "/CN=device");
        let ca = CmpServer::start(&pki, &dir.path().join("ca"));
        Self { dir, pki, ca }
    }

    /// A client in a folder of its own.
    fn client(&self, name: &str) -> Client<'_> {
        let dir = self.dir.path().join(name);
        fs::create_dir(&dir).expect("a folder for a client");
        Client {
            world: self,
            abide: Abide::new(&dir),
        }
    }

    fn file(&self, name: &str) -> String {
        text(&self.pki.path(name))
    }

    /// What the CA has issued in a transaction.
    fn issued(&self, transaction_id: &Value) -> Entry {
        let mut issued = self.ca.booked("issued");
        issued.retain(|entry| entry.transaction_id == *transaction_id);
        assert_eq!(issued.len(), 1, "{transaction_id}: {:?}", self.ca.said());
        issued.remove(0)
    }

    fn crl_text(&self, crl: &Path) -> String {
        succeed(
            openssl()
                .args(["crl", "-noout", "-text", "-CAfile"])
                .arg(self.pki.path("sub.crt"))
                .arg("-in")
                .arg(crl),
        )
    }
}

struct Client<'a> {
    world: &'a World,
    abide: Abide,
}

impl Client<'_> {
    fn credential(&self, protection: Protection) -> Vec<String> {
        let secret = format!("pass:{}", CmpServer::SECRET);
        match protection {
            Protection::Pbm => words(&["--ref", CmpServer::REF, "--secret", &secret]),
            Protection::Pbmac1 => words(&[
                "--mac",
                "pbmac1",
                "--ref",
                CmpServer::REF,
                "--secret",
                &secret,
            ]),
            Protection::Signature => words(&[
                "--cert",
                &self.world.file("client.crt"),
                "--key",
                &self.world.file("client.key"),
                "--extracerts",
                &self.world.file("sub.crt"),
            ]),
        }
    }

    /// Runs `abide enroll` and returns what it printed.
    fn run(&self, behaviour: &str, parts: &[&[String]]) -> (Ended, Value) {
        let mut all = words(&["--server", &self.world.ca.url(behaviour), "--trusted"]);
        all.push(self.world.file("root.crt"));
        all.extend(words(&["--output", "json"]));
        all.extend(parts.iter().flat_map(|part| part.iter().cloned()));
        let ended = self.abide.enroll(all);
        let json = serde_json::from_str(&ended.stdout)
            .unwrap_or_else(|error| panic!("{error} in {ended:?}"));
        (ended, json)
    }

    fn done(&self, behaviour: &str, parts: &[&[String]]) -> Value {
        let (ended, json) = self.run(behaviour, parts);
        let ca = self.world.ca.said();
        assert_eq!(ended.code, Some(0), "{ended:?}, the CA: {ca}");
        json
    }

    /// Enrolls, and checks that what arrived is what the CA has issued and openssl believes.
    fn enrolls(&self, behaviour: &str, operation: &str, protection: Protection, extra: &[&str]) {
        let case = format!("{operation}, {protection:?}, '{behaviour}'");
        let mut request = words(&["--cmd", operation]);
        match operation {
            "p10cr" => request.extend(["--csr".into(), self.world.file("device.csr")]),
            "kur" => request.extend(words(&["--newkey", "new.key"])),
            _ => request.extend(words(&[
                "--subject",
                "/CN=device",
                "--sans",
                "device.example",
                "--newkey",
                "new.key",
            ])),
        }
        request.extend(words(&["--certout", "cert.pem", "--chainout", "chain.pem"]));
        let json = self.done(
            behaviour,
            &[&request, &self.credential(protection), &words(extra)],
        );
        assert_eq!(json["status"], "issued", "{case}");
        let confirmation = match extra {
            [] => "confirmed",
            _ => "implicit",
        };
        assert_eq!(json["confirmation"], confirmation, "{case}");
        let issued = self.world.issued(&json["transactionID"]);
        assert_eq!(issued.operation, operation, "{case}");
        let got = certificates(&self.abide.path("cert.pem"));
        assert_eq!(
            got.as_slice(),
            std::slice::from_ref(&issued.certificate),
            "{case}"
        );
        verify_chain(
            &self.abide.path("chain.pem"),
            &self.world.pki.path("root.crt"),
        );
        let booked = |event| {
            let books = self.world.ca.booked(event);
            books.iter().any(|entry| entry.serial == issued.serial)
        };
        assert_eq!(booked("confirmed"), extra.is_empty(), "{case}");
        assert_eq!(booked("waiting"), behaviour.contains("polls="), "{case}");
    }

    fn serial(&self, certificate: &str) -> String {
        let text = succeed(
            openssl()
                .args(["x509", "-noout", "-serial", "-in"])
                .arg(self.abide.path(certificate)),
        );
        text.trim().trim_start_matches("serial=").to_owned()
    }
}

fn words(words: &[&str]) -> Vec<String> {
    words.iter().map(|&word| word.to_owned()).collect()
}

fn text(path: &Path) -> String {
    path.to_str().expect("a path in UTF-8").to_owned()
}

type Manner = (&'static str, &'static [&'static str]);

const MANNERS: [Manner; 4] = [
    (AT_ONCE, &[]),
    (DELAYED, &[]),
    (DELAYED_BY_ERROR, &[]),
    (IMPLICIT, &["--implicit-confirm"]),
];

/// Every operation with these protections and in these manners, at one CA.
fn every_operation(kind: KeyKind, wanted: &[(Protection, &[Manner])]) {
    let world = World::new(kind);
    let mut cases = Vec::new();
    for &(protection, manners) in wanted {
        // A MAC cannot tell which certificate is to be renewed (RFC 9483, 4.1.3).
        let operations = match protection {
            Protection::Signature => &["ir", "cr", "p10cr", "kur"][..],
            _ => &["ir", "cr", "p10cr"],
        };
        for operation in operations {
            cases.extend(manners.iter().map(|manner| (operation, protection, manner)));
        }
    }
    let numbered: Vec<_> = cases.iter().enumerate().collect();
    each(
        &numbered,
        |(index, (operation, protection, (behaviour, extra)))| {
            let client = world.client(&index.to_string());
            client.enrolls(behaviour, operation, *protection, extra);
        },
    );
    assert_eq!(world.ca.booked("issued").len(), cases.len());
    assert_eq!(world.ca.booked("early"), [], "nobody polled before time");
}

#[test]
fn every_operation_with_a_mac() {
    every_operation(
        KeyKind::P256,
        &[
            (Protection::Pbm, &MANNERS),
            (Protection::Pbmac1, &MANNERS[..2]),
        ],
    );
}

#[test]
fn every_operation_with_a_signature() {
    every_operation(KeyKind::P256, &[(Protection::Signature, &MANNERS)]);
}

/// RFC 9810, 7: an answer in the newer version is understood, whatever was asked in.
#[test]
fn every_operation_with_rsa_and_answers_of_pvno_3() {
    let manner: Manner = ("pvno=3/polls=1/confPolls=1", &[]);
    every_operation(KeyKind::Rsa2048, &[(Protection::Signature, &[manner])]);
}

#[test]
fn what_is_revoked_is_on_the_list() {
    let world = World::new(KeyKind::P256);
    // Signed by the certificate itself, or asked for by who knows the secret; at once or later.
    let own = words(&["--cert", "cert.pem", "--key", "new.key"]);
    let cases = [
        (AT_ONCE, true, "keyCompromise", "Key Compromise"),
        (
            DELAYED,
            true,
            "cessationOfOperation",
            "Cessation Of Operation",
        ),
        (DELAYED, false, "superseded", "Superseded"),
    ];
    each(&cases, |&(behaviour, signed, reason, listed)| {
        let client = world.client(reason);
        client.enrolls(AT_ONCE, "ir", Protection::Pbm, &[]);
        let secret = client.credential(Protection::Pbm);
        let rr = words(&["--cmd", "rr", "--revreason", reason]);
        let named = words(&["--oldcert", "cert.pem"]);
        let chain = [words(&["--extracerts"]), vec![world.file("sub.crt")]].concat();
        match signed {
            true => client.done(behaviour, &[&rr, &own, &chain]),
            false => client.done(behaviour, &[&rr, &named, &secret]),
        };
        let serial = client.serial("cert.pem");
        let genm = words(&[
            "--cmd",
            "genm",
            "--infotype",
            "crlStatusList",
            "--crlcert",
            "cert.pem",
            "--crlout",
            "crl.pem",
        ]);
        client.done(behaviour, &[&genm, &secret]);
        for crl in [client.abide.path("crl.pem"), world.ca.crl()] {
            let text = world.crl_text(&crl);
            let entry = text
                .split("Serial Number: ")
                .find(|entry| entry.starts_with(&serial));
            assert!(entry.is_some_and(|entry| entry.contains(listed)), "{text}");
        }
        check_revoked(&world, &client.abide.path("cert.pem"));
        // What is revoked is not revoked again, and signs nothing more.
        let again = words(&["--order", "again"]);
        let (ended, _) = client.run(AT_ONCE, &[&rr, &named, &secret, &again]);
        assert_eq!(ended.code, Some(3), "{ended:?}");
        assert!(ended.stderr.contains("certRevoked"), "{ended:?}");
        let kur = words(&["--cmd", "kur", "--newkey", "next.key"]);
        let (ended, _) = client.run(AT_ONCE, &[&kur, &own, &chain]);
        assert_eq!(ended.code, Some(3), "{ended:?}");
        assert!(ended.stderr.contains("certRevoked"), "{ended:?}");
    });
    assert_eq!(world.ca.booked("revoked").len(), cases.len());
}

/// `openssl verify` finds the certificate on the server's list.
fn check_revoked(world: &World, certificate: &Path) {
    let ended = Process::start(
        openssl()
            .args(["verify", "-crl_check", "-CAfile"])
            .arg(world.pki.path("root.crt"))
            .arg("-untrusted")
            .arg(world.pki.path("sub.crt"))
            .arg("-CRLfile")
            .arg(world.ca.crl())
            .arg(certificate),
    )
    .end();
    assert_ne!(ended.code, Some(0), "{ended:?}");
    assert!(ended.stderr.contains("certificate revoked"), "{ended:?}");
}

#[test]
fn what_is_on_hold_can_be_revived() {
    let world = World::new(KeyKind::P256);
    let client = world.client("client");
    client.enrolls(AT_ONCE, "cr", Protection::Pbm, &[]);
    let own = words(&["--cert", "cert.pem", "--key", "new.key", "--extracerts"]);
    let own = [own, vec![world.file("sub.crt")]].concat();
    for reason in ["certificateHold", "removeFromCRL"] {
        let rr = words(&["--cmd", "rr", "--revreason", reason]);
        client.done(AT_ONCE, &[&rr, &own]);
    }
    let text = world.crl_text(&world.ca.crl());
    assert!(text.contains("No Revoked Certificates"), "{text}");
    let kur = words(&["--cmd", "kur", "--newkey", "next.key"]);
    client.done(AT_ONCE, &[&kur, &own]);
}

#[test]
fn a_pki_tells_what_it_is_asked() {
    let world = World::new(KeyKind::P256);
    let cases = [
        (AT_ONCE, Protection::Pbm),
        (AT_ONCE, Protection::Pbmac1),
        (DELAYED, Protection::Signature),
    ];
    each(&cases, |&(behaviour, protection)| {
        let client = world.client(&format!("{protection:?}"));
        let credential = client.credential(protection);
        let ask = |infotype: &str, extra: &[&str]| {
            let genm = words(&["--cmd", "genm", "--infotype", infotype]);
            client.done(behaviour, &[&genm, &credential, &words(extra)])
        };
        ask("caCerts", &["--cacertsout", "ca.pem"]);
        let both = ["sub.crt", "root.crt"].map(|name| certificates(&world.pki.path(name)));
        assert_eq!(certificates(&client.abide.path("ca.pem")), both.concat());

        let files = ["--newwithnew", "nn.pem", "--newwithold", "no.pem"];
        let old = [
            "--oldwithold",
            &world.file("root.crt"),
            "--oldwithnew",
            "on.pem",
        ];
        ask("rootCaCert", &[&old[..], &files].concat());
        // The new key under the old root, and what stood under the old root under the new one.
        for (anchor, helper, leaf) in [
            (
                world.pki.path("root.crt"),
                None,
                client.abide.path("no.pem"),
            ),
            (
                client.abide.path("nn.pem"),
                None,
                client.abide.path("on.pem"),
            ),
            (
                client.abide.path("nn.pem"),
                Some(client.abide.path("on.pem")),
                world.pki.path("sub.crt"),
            ),
        ] {
            check_under(&anchor, helper, &leaf);
        }

        ask("certReqTemplate", &["--valueout", "template.der"]);
        let said = succeed(
            openssl()
                .args(["asn1parse", "-inform", "DER", "-in"])
                .arg(client.abide.path("template.der")),
        );
        assert!(said.contains("prime256v1"), "{said}");
    });
    let client = world.client("a question too many");
    let genm = words(&["--cmd", "genm", "--infotype", "1.2.3.4"]);
    let (ended, _) = client.run(AT_ONCE, &[&genm, &client.credential(Protection::Pbm)]);
    assert_eq!(ended.code, Some(3), "{ended:?}");
    assert!(
        ended.stderr.contains("knows nothing of 1.2.3.4"),
        "{ended:?}"
    );
}

/// A CA certificate under an anchor of the same name, so told apart by its key.
fn check_under(anchor: &Path, helper: Option<PathBuf>, leaf: &Path) {
    let mut verify = openssl();
    verify
        .args(["verify", "-no-CApath", "-partial_chain", "-CAfile"])
        .arg(anchor);
    if let Some(helper) = helper {
        verify.arg("-untrusted").arg(helper);
    }
    succeed(verify.arg(leaf));
}

/// What a CA has issued before it died, it delivers after.
#[test]
fn the_ca_goes_on_from_its_books_after_it_was_killed() {
    let mut world = World::new(KeyKind::P256);
    let request = words(&["--cmd", "p10cr", "--certout", "cert.pem", "--csr"]);
    let request = [request, vec![world.file("device.csr")]].concat();
    let client = world.client("client");
    let abide = client.abide.clone();
    let credential = client.credential(Protection::Pbm);
    let (ended, json) = client.run(
        "polls=1",
        &[&request, &credential, &words(&["--max-wait", "0"])],
    );
    assert_eq!(ended.code, Some(6), "{ended:?}");
    drop(client);
    world.ca.kill_and_start(&world.pki);
    let client = Client {
        world: &world,
        abide,
    };
    let resumed = client.done("polls=1", &[&request, &credential, &words(&["--resume"])]);
    assert_eq!(resumed["transactionID"], json["transactionID"]);
    let issued = world.issued(&json["transactionID"]);
    assert_eq!(
        certificates(&client.abide.path("cert.pem")),
        [issued.certificate]
    );
    assert_eq!(world.ca.booked("confirmed").len(), 1);
}

/// The CA has issued and the answer is lost. It knows transactions and no messages, so what comes
/// again is refused under its protection, and the certificate that nobody has is named.
#[test]
fn a_refused_repetition_leaves_an_orphan() {
    let world = World::new(KeyKind::P256);
    let proxy = Proxy::new(&world.ca.url(AT_ONCE));
    let client = world.client("client");
    let mut all = words(&["--cmd", "p10cr", "--server", &proxy.url(), "--trusted"]);
    all.extend([world.file("root.crt"), "--csr".into()]);
    all.extend([world.file("device.csr"), "--resume".into()]);
    all.extend(client.credential(Protection::Pbm));
    all.extend(words(&["--output", "json", "--certout", "cert.pem"]));
    let start = || Process::start(&mut client.abide.enroll_command(&all));
    proxy.treat(BodyType::P10cr, Treatment::HoldAnswer);
    let mut killed = start();
    proxy.wait_for(BodyType::P10cr, Stage::Answered, 1);
    killed.kill();
    proxy.release();

    let ended = start().end();
    assert_eq!(ended.code, Some(3), "{ended:?}");
    let json: Value = serde_json::from_str(&ended.stdout).expect("JSON");
    assert_eq!(json["failInfo"][0], "transactionIdInUse", "{json}");
    assert_eq!(json["orphan"], true, "{json}");
    let orphan = world.issued(&json["transactionID"]);

    let ended = start().end();
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let json: Value = serde_json::from_str(&ended.stdout).expect("JSON");
    let own = world.issued(&json["transactionID"]);
    assert_ne!(own.serial, orphan.serial);
    let got = certificates(&client.abide.path("cert.pem"));
    assert_eq!(got, [own.certificate]);
}
