//! `abide inspect` on real files: what `openssl` makes, what goes over the wire, and what is
//! neither.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use abide_cmp::Leniency;
use abide_tests::abide::Abide;
use abide_tests::pki::{KeyKind, Pki, openssl};
use abide_tests::process::{Ended, succeed};
use boon::{Compiler, SchemaIndex, Schemas};
use serde_json::Value;
use tempfile::TempDir;

const SCHEMA: &str = include_str!("../../host/cli/src/inspect/schema.json");
const SECRET: &str = "sEcret-0123456789";

/// A PKI, and messages of `openssl cmp` with its mock server: `mac.ir`, `mac.ip` and
/// `signed.ir`, `signed.ip`, with their confirmations `….certConf` and `….pkiconf`.
struct World {
    _dir: TempDir,
    pki: Pki,
    abide: Abide,
}

impl World {
    fn new() -> Self {
        let dir = tempfile::tempdir().expect("a folder for a test");
        let pki = Pki::new(&dir.path().join("pki"), KeyKind::P256);
        pki.issue_for_key("new", &pki.key("new", KeyKind::P256), "/CN=new");
        let abide = Abide::new(dir.path());
        Self {
            _dir: dir,
            pki,
            abide,
        }
    }

    /// Lets `openssl cmp` enroll with itself and keep the messages.
    fn enroll(&self, name: &str, protection: &[&str]) {
        let messages = |ends: [&str; 2]| ends.map(|end| format!("{name}.{end}")).join(" ");
        succeed(
            openssl()
                .current_dir(self.pki.path(""))
                .args([
                    "cmp",
                    "-config",
                    "",
                    "-batch",
                    "-cmd",
                    "ir",
                    "-use_mock_srv",
                ])
                .args(["-newkey", "new.key", "-subject", "/CN=new"])
                .args(["-trusted", "root.crt", "-certout", "out.pem"])
                .args(["-srv_trusted", "root.crt", "-srv_untrusted", "sub.crt"])
                .args(["-rsp_cert", "new.crt", "-rsp_extracerts", "sub.crt"])
                .args(["-out_trusted", "root.crt", "-untrusted", "sub.crt"])
                .args(["-reqout", &messages(["ir", "certConf"])])
                .args(["-rspout", &messages(["ip", "pkiconf"])])
                .args(protection),
        );
    }

    fn enroll_with_mac(&self) {
        let secret = format!("pass:{SECRET}");
        self.enroll(
            "mac",
            &[
                "-ref",
                "client",
                "-secret",
                &secret,
                "-srv_ref",
                "server",
                "-srv_secret",
                &secret,
            ],
        );
    }

    fn enroll_with_signature(&self) {
        self.enroll(
            "signed",
            &[
                "-cert",
                "client.crt",
                "-key",
                "client.key",
                "-srv_cert",
                "server.crt",
                "-srv_key",
                "server.key",
            ],
        );
    }

    /// A CRL of the root, `root.crl`, with one revoked certificate.
    fn revoke(&self) -> PathBuf {
        let config = "[ca]\ndefault_ca = d\n[d]\ndatabase = index.txt\ndefault_md = sha256\n\
                      crlnumber = number\ncrl_extensions = e\n[e]\nauthorityKeyIdentifier = keyid\n";
        fs::write(self.pki.path("ca.cnf"), config).expect("a configuration");
        fs::write(self.pki.path("number"), "0A\n").expect("a number");
        let entry = "R\t491231235959Z\t260102030405Z,keyCompromise\t4D5E\tunknown\t/CN=lost\n";
        fs::write(self.pki.path("index.txt"), entry).expect("an index");
        succeed(
            openssl()
                .current_dir(self.pki.path(""))
                .args(["ca", "-gencrl", "-config", "ca.cnf", "-crldays", "7"])
                .args([
                    "-keyfile", "root.key", "-cert", "root.crt", "-out", "root.crl",
                ]),
        );
        self.pki.path("root.crl")
    }

    fn file(&self, name: &str) -> String {
        self.pki.path(name).display().to_string()
    }

    fn write(&self, name: &str, content: &[u8]) -> String {
        fs::write(self.pki.path(name), content).expect("a file for a test");
        self.file(name)
    }

    fn inspect(&self, words: &[&str]) -> Ended {
        self.abide.run(["inspect"].iter().chain(words))
    }

    /// What `--output json` says, which the schema knows, with the exit code.
    fn json(&self, words: &[&str]) -> (Option<i32>, Value) {
        let ended = self.inspect(&[words, &["--output", "json"]].concat());
        let value = serde_json::from_str(&ended.stdout)
            .unwrap_or_else(|error| panic!("{error}: {ended:?}"));
        check(&value, "the program's output");
        (ended.code, value)
    }
}

/// Fails unless the schema knows the value.
fn check(value: &Value, what: &str) {
    static SCHEMAS: OnceLock<(Schemas, SchemaIndex)> = OnceLock::new();
    let (schemas, index) = SCHEMAS.get_or_init(|| {
        let schema = serde_json::from_str(SCHEMA).expect("the schema is JSON");
        let (mut schemas, mut compiler) = (Schemas::new(), Compiler::new());
        let place = "https://abide.invalid/inspect.json";
        compiler.add_resource(place, schema).expect("a schema");
        let index = compiler.compile(place, &mut schemas).expect("a schema");
        (schemas, index)
    });
    if let Err(faults) = schemas.validate(value, *index) {
        panic!("{what}: {faults:#}\n{value:#}");
    }
}

#[test]
fn a_certificate_is_shown_in_full() {
    let world = World::new();
    let certificate = world.file("sub.crt");
    let ended = world.inspect(&[&certificate]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let fingerprint = succeed(
        openssl()
            .args([
                "x509",
                "-noout",
                "-fingerprint",
                "-sha256",
                "-serial",
                "-in",
            ])
            .arg(&certificate),
    );
    let (_, fingerprint) = fingerprint
        .split_once("ingerprint=")
        .expect("a fingerprint");
    let (fingerprint, serial) = fingerprint.split_once("serial=").expect("a serial number");
    let fingerprint = fingerprint.trim().replace(':', "").to_lowercase();
    for line in [
        "type: Certificate",
        "version: v3",
        "issuer: O=abide tests,CN=Root",
        "subject: O=abide tests,CN=Sub CA",
        "subjectPublicKeyInfo: id-ecPublicKey",
        "  curve: secp256r1",
        "  size: 256",
        "  - id-ce-basicConstraints (critical)\n    cA: true",
        "  - id-ce-keyUsage (critical): keyCertSign, cRLSign",
        "signatureAlgorithm: ecdsa-with-SHA256",
        &format!("sha256: {fingerprint}"),
    ] {
        assert!(ended.stdout.contains(line), "{line}: {}", ended.stdout);
    }
    let (_, value) = world.json(&[&certificate]);
    assert_eq!(value["type"], "Certificate");
    let shown = value["serialNumber"].as_str().expect("a serial number");
    let serial = serial.trim().to_lowercase();
    assert_eq!(shown.trim_start_matches("00"), serial);
    // 30 82 len len, so the part that is signed begins at octet 4; asn1parse says the same.
    let first = &value["offsets"][0];
    let signed_part = succeed(openssl().args(["asn1parse", "-in"]).arg(&certificate));
    let second_line = signed_part.lines().nth(1).expect("a second line");
    let (offset, _) = second_line.trim().split_once(':').expect("an offset");
    assert_eq!(first["field"], "tbsCertificate");
    assert_eq!(first["offset"].to_string(), offset);
}

#[test]
fn requests_and_crls_are_told_apart() {
    let world = World::new();
    let (code, csr) = world.json(&[&world.file("new.csr"), "--type", "csr"]);
    assert_eq!(code, Some(0));
    assert_eq!(csr["type"], "CertificationRequest");
    assert_eq!(csr["subject"], "CN=new");
    let crl = world.revoke().display().to_string();
    let (code, value) = world.json(&[&crl]);
    assert_eq!(code, Some(0));
    assert_eq!(value["type"], "CertificateList");
    assert_eq!(value["issuer"], "O=abide tests,CN=Root");
    assert_eq!(value["revokedCount"], 1);
    let entry = &value["revokedCertificates"][0];
    assert_eq!(entry["userCertificate"], "4d5e");
    assert_eq!(entry["revocationDate"], "2026-01-02T03:04:05Z");
    assert_eq!(entry["crlEntryExtensions"][0]["extnValue"], "keyCompromise");
    let number = value["crlExtensions"]
        .as_array()
        .and_then(|list| list.iter().find(|e| e["extnID"] == "id-ce-cRLNumber"));
    assert_eq!(number.expect("a number")["extnValue"], 10);
    let ended = world.inspect(&[&crl, "--type", "Certificate"]);
    assert_eq!(ended.code, Some(2), "{ended:?}");
    assert!(
        ended.stderr.contains("of the type CertificateList"),
        "{}",
        ended.stderr
    );
}

#[test]
fn every_form_shows_the_same() {
    let world = World::new();
    let pem = fs::read_to_string(world.pki.path("root.crt")).expect("a certificate");
    let der = abide_tests::pem_to_der(&pem);
    let hex: String = der.iter().map(|octet| format!("{octet:02X} ")).collect();
    let base64: String = pem
        .lines()
        .filter(|line| !line.starts_with("---"))
        .collect();
    let (_, expected) = world.json(&[&world.file("root.crt")]);
    for (name, content) in [
        ("cert.der", &der[..]),
        ("cert.hex", hex.as_bytes()),
        ("cert.b64", base64.as_bytes()),
        (
            "cert.txt",
            pem.replace("CERTIFICATE", "ANYTHING").as_bytes(),
        ),
    ] {
        let (code, value) = world.json(&[&world.write(name, content)]);
        assert_eq!(code, Some(0), "{name}");
        assert_eq!(value, expected, "{name}");
    }
}

#[test]
fn several_inputs_are_shown_in_their_order() {
    let world = World::new();
    let read = |name| fs::read_to_string(world.pki.path(name)).expect("a certificate");
    let chain = read("sub.crt") + &read("root.crt");
    let chain = world.write("chain.pem", chain.as_bytes());
    let bad = world.write("bad.der", &[0x30, 0x03, 0x02, 0x01, 0x05]);
    let (code, value) = world.json(&[&chain, &bad, &world.file("new.csr")]);
    assert_eq!(code, Some(2), "the one that cannot be shown");
    let list = value.as_array().expect("a list");
    let types: Vec<_> = list.iter().map(|entry| entry["type"].as_str()).collect();
    let certificate = Some("Certificate");
    assert_eq!(
        types,
        [certificate, certificate, None, Some("CertificationRequest")]
    );
    assert_eq!(list[0]["subject"], "O=abide tests,CN=Sub CA");
    assert!(
        list[1]["source"]
            .as_str()
            .is_some_and(|s| s.ends_with(", CERTIFICATE"))
    );
    assert_eq!(list[2]["exitCode"], 2);
    let ended = world.inspect(&[&chain]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert_eq!(ended.stdout.matches("\ntype: Certificate").count(), 2);
    assert!(ended.stdout.starts_with("== "), "{}", ended.stdout);
}

#[test]
fn a_mac_is_verified_and_rules_are_told() {
    let world = World::new();
    world.enroll_with_mac();
    let good = format!("pass:{SECRET}");
    let message = world.file("mac.ir");
    let words = [&message[..], "--verify", "--secret", &good];
    let (code, value) = world.json(&words);
    assert_eq!(code, Some(0));
    assert_eq!(value["header"]["pvno"], 2);
    assert_eq!(value["header"]["senderKIDText"], "client");
    assert_eq!(value["body"]["type"], "ir");
    assert_eq!(value["verification"]["valid"], true);
    // openssl's client takes 500 iterations and HMAC with SHA-1.
    let iterations = &value["header"]["protectionAlg"]["iterationCount"];
    assert_eq!(*iterations, 500);
    let found = |section: &str| {
        value["findings"]
            .as_array()
            .is_some_and(|list| list.iter().any(|finding| finding["section"] == section))
    };
    assert!(
        found("RFC 9045, 4.3") && found("RFC 9481, 6.1"),
        "{value:#}"
    );
    let ended = world.inspect(&words);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert!(ended.stdout.contains("(RFC 9045, 4.3)"), "{}", ended.stdout);

    let ended = world.inspect(&[&message, "--verify", "--secret", "pass:other"]);
    assert_eq!(ended.code, Some(5), "{ended:?}");
    assert!(
        ended.stdout.contains("section: RFC 9810, 5.1.3"),
        "{}",
        ended.stdout
    );
    let (code, value) = world.json(&[&message, "--verify", "--secret", "pass:other"]);
    assert_eq!(code, Some(5));
    assert_eq!(value["verification"]["valid"], false);
}

#[test]
fn a_signature_is_traced_to_the_root() {
    let world = World::new();
    world.enroll_with_signature();
    let root = world.file("root.crt");
    for (file, signer) in [
        ("signed.ir", "O=abide tests,CN=Client"),
        ("signed.ip", "O=abide tests,CN=Server"),
        ("signed.certConf", "O=abide tests,CN=Client"),
        ("signed.pkiconf", "O=abide tests,CN=Server"),
    ] {
        let (code, value) = world.json(&[&world.file(file), "--verify", "--trusted", &root]);
        assert_eq!(code, Some(0), "{file}: {value:#}");
        assert_eq!(value["verification"]["signer"], signer, "{file}");
        // A good peer's messages break nothing that must be.
        let violations = value["findings"].as_array().map(|list| {
            let must = list
                .iter()
                .filter(|finding| finding["weight"] == "violation");
            must.cloned().collect::<Vec<_>>()
        });
        assert_eq!(violations, Some(vec![]), "{file}");
    }
    world.pki.root("other", "/CN=Other");
    let other = world.file("other.crt");
    let ended = world.inspect(&[&world.file("signed.ir"), "--verify", "--trusted", &other]);
    assert_eq!(ended.code, Some(5), "{ended:?}");
    let ended = world.inspect(&[&root, "--verify", "--trusted", &root]);
    assert_eq!(
        ended.code,
        Some(2),
        "a certificate has no protection: {ended:?}"
    );
}

#[test]
fn broken_rules_change_the_exit_code_only_where_asked() {
    let world = World::new();
    world.enroll_with_mac();
    // The MAC goes, its algorithm stays: `A0` is the tag of protection in the outermost
    // SEQUENCE, and what follows it are extraCerts, which this message has none of.
    let mut message = fs::read(world.pki.path("mac.certConf")).expect("a message");
    let mac = message.len() - 25;
    assert_eq!(message[mac..mac + 4], [0xa0, 0x17, 0x03, 0x15]);
    message.truncate(mac);
    let length = u8::try_from(message.len() - 3).expect("a short message");
    assert_eq!(message[1], 0x81);
    message[2] = length;
    let file = world.write("unprotected.der", &message);
    let ended = world.inspect(&[&file]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let line = "violation header.protectionAlg: protectionAlg is absent where protection is \
                (RFC 9810, 5.1.1; badMessageCheck)";
    assert!(ended.stdout.contains(line), "{}", ended.stdout);
    let ended = world.inspect(&[&file, "--strict"]);
    assert_eq!(ended.code, Some(7), "{ended:?}");
    assert!(ended.stderr.contains("breaks a MUST"), "{}", ended.stderr);
}

#[test]
fn garbage_gets_one_line() {
    let world = World::new();
    world.enroll_with_mac();
    let message = fs::read(world.pki.path("mac.ir")).expect("a message");
    let truncated = &message[..message.len() - 5];
    let mut wrong_pvno = message.clone();
    let pvno = wrong_pvno
        .windows(3)
        .position(|octets| octets == [2, 1, 2])
        .expect("pvno");
    wrong_pvno[pvno + 2] = 9;
    let mut fault_in_certificate = abide_tests::pem_to_der(
        &fs::read_to_string(world.pki.path("root.crt")).expect("a certificate"),
    );
    // version [0] of the TBSCertificate: v3 becomes a version that is none.
    let version = fault_in_certificate
        .windows(5)
        .position(|octets| octets == [0xa0, 3, 2, 1, 2])
        .expect("a version");
    fault_in_certificate[version + 4] = 7;
    let cases: [(&str, &[u8], &str); 8] = [
        (
            "page.html",
            b"<html>no</html>",
            "at octet 0: expected a SEQUENCE, found tag 0x3c",
        ),
        ("text", b"hello, world", "at octet 0"),
        (
            "zeros",
            &[0; 64],
            "no CMP message, certificate, request or CRL: at octet 0",
        ),
        ("cut", truncated, "at octet 0: the input ends"),
        ("pvno", &wrong_pvno, "header.pvno: pvno 9 is not supported"),
        ("cert", &fault_in_certificate, "no certificate: at octet"),
        (
            "block.pem",
            b"-----BEGIN X-----\n!\n-----END X-----\n",
            "line 2",
        ),
        ("none.pem", b"-----BEGIN X-----\nMAA=\n", "line 1"),
    ];
    for (name, content, reason) in cases {
        let file = world.write(name, content);
        let ended = world.inspect(&[&file]);
        assert_eq!(ended.code, Some(2), "{name}: {ended:?}");
        assert_eq!(ended.stdout, "", "{name}");
        assert_eq!(ended.stderr.lines().count(), 1, "{name}: {}", ended.stderr);
        assert!(ended.stderr.contains(reason), "{name}: {}", ended.stderr);
        assert!(ended.stderr.contains(name), "{name}: {}", ended.stderr);
    }
    let ended = world.inspect(&[&world.file("new.key")]);
    assert!(ended.stderr.contains("holds a private key"), "{ended:?}");
    let ended = world.inspect(&[&world.write("empty", b"")]);
    assert_eq!(ended.code, Some(2), "{ended:?}");
}

#[test]
fn a_leniency_is_asked_for_and_reported() {
    let world = World::new();
    world.enroll_with_mac();
    // The length of the header in one octet more than needed.
    let mut message = fs::read(world.pki.path("mac.pkiconf")).expect("a message");
    assert_eq!(message[..2], [0x30, 0x81], "a message beyond 127 octets");
    assert_eq!(message[3..5], [0x30, 0x81], "a header beyond 127 octets");
    message.splice(4..5, [0x82, 0x00]);
    message[2] += 1;
    let file = world.write("long.der", &message);
    let ended = world.inspect(&[&file]);
    assert_eq!(ended.code, Some(2), "{ended:?}");
    assert!(
        ended.stderr.contains("at octet 3, header"),
        "{}",
        ended.stderr
    );
    let allowed = [
        &file[..],
        "--allow",
        "fractional-seconds,non-minimal-lengths",
    ];
    let (code, value) = world.json(&allowed);
    assert_eq!(code, Some(0));
    let tolerated = &value["tolerated"][0];
    assert_eq!(tolerated["leniency"], "non-minimal-lengths");
    assert_eq!(
        (&tolerated["offset"], &tolerated["path"]),
        (&3.into(), &"header".into())
    );
}

#[test]
fn the_schema_is_printed() {
    let world = World::new();
    let ended = world.inspect(&["--schema"]);
    assert_eq!((ended.code, &ended.stdout[..]), (Some(0), SCHEMA));
}

/// The vectors of the codec, and every readable file of the corpus where that is at hand,
/// with all leniencies and with none.
#[test]
fn what_is_described_fits_the_schema() {
    let lenient = Leniency {
        non_minimal_lengths: true,
        fractional_seconds: true,
        explicit_ra_verified: true,
        empty_lists: true,
    };
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut folders = vec![
        here.join("../guest/cmp/tests/vectors"),
        here.join("../../shared/corpus"),
    ];
    let mut described = 0;
    while let Some(folder) = folders.pop() {
        let Ok(entries) = fs::read_dir(&folder) else {
            continue;
        };
        for entry in entries {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            let octets = fs::read(&path).expect("a file");
            for leniency in [Leniency::STRICT, lenient] {
                if let Ok(text) = abide_cmp::describe(&octets, leniency) {
                    let value = serde_json::from_str(&text).expect("JSON");
                    check(&value, &path.display().to_string());
                    described += 1;
                }
            }
        }
    }
    assert!(described > 100, "only {described}");
}
