//! The gateway between the client of `openssl cmp` and its server.

use abide_tests::abide::Abide;
use abide_tests::gateway::{Gateway, Tap};
use abide_tests::openssl::{CmpServer, Protection, certificates, cmp_client};
use abide_tests::pki::{KeyKind, Pki};
use abide_tests::process::Ended;
use tempfile::TempDir;

const SUBJECT: &str = "/O=abide tests/CN=new";

/// client – tap – gateway – tap – server.
struct Line {
    _dir: TempDir,
    pki: Pki,
    server: CmpServer,
    outer: Tap,
    inner: Tap,
    gateway: Gateway,
}

impl Line {
    fn new(protection: Protection, server: &[&str], options: &[&str]) -> Self {
        let dir = tempfile::tempdir().expect("a folder for a test");
        let pki = Pki::new(&dir.path().join("pki"), KeyKind::P256);
        pki.issue_for_key("new", &pki.key("new", KeyKind::P256), SUBJECT);
        let server = CmpServer::start(&pki, protection, server);
        let address = server
            .url()
            .strip_prefix("http://")
            .and_then(|rest| rest.strip_suffix("/pkix/"));
        let inner = Tap::before(address.and_then(|it| it.parse().ok()).expect("an address"));
        let upstream = format!("http://{}/pkix/", inner.address());
        let abide = Abide::new(dir.path());
        let gateway = Gateway::start(&abide, &[&["--upstream", &upstream], options].concat());
        let outer = Tap::before(gateway.address());
        Self {
            _dir: dir,
            pki,
            server,
            outer,
            inner,
            gateway,
        }
    }

    fn run(&self, command: &str, credential: &[&str], extra: &[&str]) -> Ended {
        let server = format!("http://{}/pkix/", self.outer.address());
        let mut words = vec!["-cmd", command, "-server", &server];
        words.extend(["-recipient", "/CN=any", "-trusted", "root.crt"]);
        words.extend(["-untrusted", "sub.crt", "-certout", "got.pem"]);
        words.extend(match command {
            "p10cr" => &["-csr", "new.csr"][..],
            "rr" => &["-oldcert", "new.crt"],
            "genm" => &["-infotype", "signKeyPairTypes"],
            "kur" => &["-newkey", "new.key"],
            _ => &["-newkey", "new.key", "-subject", SUBJECT],
        });
        words.extend(credential);
        words.extend(extra);
        cmp_client(&self.pki, words)
    }

    /// Nothing on either side of the gateway was altered, lost or added.
    fn check_octets(&self, messages: usize) {
        let [asked, answered] = self.outer.bodies();
        let [passed, given] = self.inner.bodies();
        assert_eq!(asked.len(), messages);
        assert_eq!(asked, passed);
        assert_eq!(answered, given);
        for body in asked.iter().chain(&answered) {
            abide_cmp::PkiMessage::from_der(body).expect("a CMP message");
        }
    }
}

const SECRET: [&str; 4] = [
    "-ref",
    CmpServer::REF,
    "-secret",
    "pass:a secret of sufficient length",
];

/// The server renews and revokes only the certificate that it issues.
const CERTIFICATE: [&str; 6] = [
    "-cert",
    "new.crt",
    "-key",
    "new.key",
    "-extracerts",
    "sub.crt",
];

/// Each enrollment is two messages and their answers, the others are one.
#[test]
fn every_operation_passes_octet_for_octet() {
    let line = Line::new(Protection::Signature, &[], &["--require-protection"]);
    let mut messages = 0;
    for (command, count) in [
        ("ir", 2),
        ("cr", 2),
        ("kur", 2),
        ("p10cr", 2),
        ("rr", 1),
        ("genm", 1),
    ] {
        let ended = line.run(command, &CERTIFICATE, &[]);
        assert_eq!(
            ended.code,
            Some(0),
            "{command}: {ended:?}\nthe server: {}\nthe gateway: {}",
            line.server.said(),
            line.gateway.said()
        );
        if count == 2 {
            let sent = certificates(&line.pki.path("new.crt"));
            assert_eq!(certificates(&line.pki.path("got.pem")), sent, "{command}");
        }
        messages += count;
        line.check_octets(messages);
    }
    let types: Vec<String> = line
        .gateway
        .log()
        .iter()
        .map(|line| line["type"].as_str().unwrap_or_default().to_owned())
        .collect();
    assert_eq!(
        types,
        [
            "ir", "certConf", "cr", "certConf", "kur", "certConf", "p10cr", "certConf", "rr",
            "genm"
        ]
    );
}

#[test]
fn a_shared_secret_passes_and_is_verified_where_it_is_known() {
    let secret = format!("{}=pass:{}", CmpServer::REF, CmpServer::SECRET);
    let options = ["--require-verified", "--secret", &secret];
    let line = Line::new(
        Protection::Pbm,
        &["-poll_count", "2", "-check_after", "1"],
        &options,
    );
    let ended = line.run("ir", &SECRET, &[]);
    assert_eq!(ended.code, Some(0), "{ended:?}\n{}", line.gateway.said());
    // The request, two polls and the confirmation.
    line.check_octets(4);
    for entry in line.gateway.log() {
        assert_eq!(entry["principal"], "ref:client", "{entry}");
        assert_eq!(entry["verdict"], "forwarded", "{entry}");
    }
    // With another secret nothing reaches the server.
    let wrong = ["-ref", CmpServer::REF, "-secret", "pass:not the one"];
    let ended = line.run("ir", &wrong, &["-unprotected_errors"]);
    assert_eq!(ended.code, Some(1), "{ended:?}");
    let [passed, _] = line.inner.bodies();
    assert_eq!(passed.len(), 4);
    assert!(ended.stdout.contains("badMessageCheck"), "{ended:?}");
}

/// What the gateway says itself is read by the client: status, failInfo and text.
#[test]
fn the_client_reads_the_gateways_own_errors() {
    let options = ["--require-protection", "--allow", "ir,cr,kur,certConf"];
    let line = Line::new(Protection::Pbm, &["-accept_unprotected"], &options);
    for (command, credential, extra, fail_info, words) in [
        (
            "p10cr",
            &SECRET[..],
            &[][..],
            "badRequest",
            "passes no messages of the type p10cr",
        ),
        (
            "ir",
            &[],
            &["-unprotected_requests"],
            "badMessageCheck",
            "without protection",
        ),
    ] {
        let extra = [&["-unprotected_errors"], extra].concat();
        let ended = line.run(command, credential, &extra);
        assert_eq!(ended.code, Some(1), "{command}: {ended:?}");
        for text in ["rejection", fail_info, words] {
            assert!(ended.stdout.contains(text), "{command}: {text}: {ended:?}");
        }
    }
    let [passed, _] = line.inner.bodies();
    assert_eq!(passed.len(), 0);
}
