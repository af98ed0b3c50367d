//! abide enrolls at the server of `openssl cmp`, which sends `new.crt` whatever it is
//! asked for: what lands on the disk can be compared with it octet for octet.

use std::fs;
use std::net::{Ipv4Addr, SocketAddr};

use abide_tests::abide::Abide;
use abide_tests::openssl::{CmpServer, Protection, certificates, verify_chain};
use abide_tests::pki::{KeyKind, Pki};
use abide_tests::process::Ended;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::net::TcpSocket;

const SUBJECT: &str = "/O=abide tests/CN=new";
const OPERATIONS: [&str; 3] = ["ir", "cr", "p10cr"];

/// A PKI, and the key that is to be certified.
struct World {
    dir: TempDir,
    pki: Pki,
}

impl World {
    fn new(kind: KeyKind) -> Self {
        let dir = tempfile::tempdir().expect("a folder for a test");
        let pki = Pki::new(&dir.path().join("pki"), kind);
        pki.issue_for_key("new", &pki.key("new", kind), SUBJECT);
        Self { dir, pki }
    }

    /// A client in a folder of its own.
    fn client(&self, name: &str) -> Client<'_> {
        let dir = self.dir.path().join(name);
        fs::create_dir(&dir).expect("a folder for a client");
        Client {
            pki: &self.pki,
            abide: Abide::new(&dir),
        }
    }
}

struct Client<'a> {
    pki: &'a Pki,
    abide: Abide,
}

/// How an enrollment ended, with its JSON.
struct Told {
    ended: Ended,
    json: Value,
}

impl Client<'_> {
    /// `abide enroll` with everything but the credential.
    fn words(&self, operation: &str, url: &str) -> Vec<String> {
        let file = |name: &str| self.pki.path(name).display().to_string();
        let mut words = vec!["--cmd".into(), operation.into()];
        words.extend(["--server".into(), url.into()]);
        match operation {
            "p10cr" => words.extend(["--csr".into(), file("new.csr")]),
            _ => {
                words.extend(["--newkey".into(), file("new.key")]);
                words.extend(["--subject".into(), SUBJECT.into()]);
            }
        }
        words.extend(["--trusted".into(), file("root.crt")]);
        words.extend(
            [
                ["--certout", "cert.pem"],
                ["--chainout", "chain.pem"],
                ["--cacertsout", "ca.pem"],
                ["--output", "json"],
            ]
            .concat()
            .into_iter()
            .map(str::to_owned),
        );
        words
    }

    fn run(&self, words: Vec<String>, credential: &[String], extra: &[&str]) -> Told {
        let extra = extra.iter().map(|word| (*word).to_owned());
        let words = words.into_iter().chain(credential.iter().cloned());
        let ended = self.abide.enroll(words.chain(extra));
        let json: Value = serde_json::from_str(&ended.stdout)
            .unwrap_or_else(|error| panic!("{error} in {ended:?}"));
        assert_eq!(
            json["exitCode"].as_i64(),
            ended.code.map(i64::from),
            "{ended:?}"
        );
        Told { ended, json }
    }

    /// Enrolls with a shared secret.
    fn enroll(&self, operation: &str, url: &str, extra: &[&str]) -> Told {
        self.run(self.words(operation, url), &secret(), extra)
    }

    /// Enrolls with a certificate.
    fn enroll_signed(&self, operation: &str, url: &str, extra: &[&str]) -> Told {
        self.run(self.words(operation, url), &self.certificate(), extra)
    }

    /// The options of a client that signs.
    fn certificate(&self) -> Vec<String> {
        let file = |name: &str| self.pki.path(name).display().to_string();
        [
            ["--cert".into(), file("client.crt")],
            ["--key".into(), file("client.key")],
            ["--extracerts".into(), file("sub.crt")],
        ]
        .concat()
    }

    /// The files are what the server has sent, and openssl believes them.
    fn check_files(&self, case: &str) {
        let sent = certificates(&self.pki.path("new.crt"));
        let sub = certificates(&self.pki.path("sub.crt"));
        let got = |name| certificates(&self.abide.path(name));
        assert_eq!(got("cert.pem"), sent, "{case}");
        assert_eq!(got("chain.pem"), [sent, sub].concat(), "{case}");
        verify_chain(&self.abide.path("chain.pem"), &self.pki.path("root.crt"));
    }

    fn has_no_certificate(&self) -> bool {
        let absent = |name| !self.abide.path(name).exists();
        absent("cert.pem") && absent("chain.pem") && absent("ca.pem")
    }

    /// The phases of the transactions in the store.
    fn phases(&self) -> Vec<Value> {
        let transactions = self.abide.transactions();
        transactions
            .iter()
            .map(|one| one["phase"].clone())
            .collect()
    }
}

impl Told {
    fn check_issued(&self, confirmation: &str, case: &str) {
        assert_eq!(self.ended.code, Some(0), "{case}: {:?}", self.ended);
        assert_eq!(self.json["status"], "issued", "{case}");
        assert_eq!(self.json["confirmation"], confirmation, "{case}");
    }

    fn says(&self, text: &str) -> bool {
        self.ended.stderr.contains(text)
    }
}

fn secret() -> [String; 4] {
    let secret = format!("pass:{}", CmpServer::SECRET);
    [
        "--ref".into(),
        CmpServer::REF.into(),
        "--secret".into(),
        secret,
    ]
}

/// Requests the server has seen: certConf and pollReq are requests of their own.
fn requests(server: &CmpServer) -> usize {
    server.said().matches("Received request").count()
}

/// Every operation, with and without confirmation, at one server: it waives the
/// confirmation for those who ask it to.
fn every_operation(kind: KeyKind, protection: Protection) {
    let world = World::new(kind);
    let server = CmpServer::start(&world.pki, protection, &["-grant_implicitconf"]);
    for operation in OPERATIONS {
        for (confirmation, extra, expected_requests) in [
            ("confirmed", &[][..], 2),
            ("implicit", &["--implicit-confirm"][..], 1),
        ] {
            let case = format!("{operation}-{protection:?}-{kind:?}-{confirmation}");
            let before = requests(&server);
            let client = world.client(&case);
            let told = match protection {
                Protection::Pbm => client.enroll(operation, server.url(), extra),
                Protection::Signature => client.enroll_signed(operation, server.url(), extra),
            };
            told.check_issued(confirmation, &case);
            client.check_files(&case);
            assert_eq!(client.phases(), ["issued"], "{case}");
            assert_eq!(requests(&server) - before, expected_requests, "{case}");
        }
    }
}

#[test]
fn with_a_shared_secret() {
    every_operation(KeyKind::P256, Protection::Pbm);
}

#[test]
fn with_a_p256_certificate() {
    every_operation(KeyKind::P256, Protection::Signature);
}

#[test]
fn with_a_p384_certificate() {
    every_operation(KeyKind::P384, Protection::Signature);
}

#[test]
fn with_an_rsa_certificate() {
    every_operation(KeyKind::Rsa2048, Protection::Signature);
}

#[test]
fn ca_certificates_of_an_ip_are_kept() {
    let world = World::new(KeyKind::P256);
    let server = CmpServer::start(&world.pki, Protection::Pbm, &[""; 0]);
    let client = world.client("client");
    let told = client.enroll("ir", server.url(), &[]);
    told.check_issued("confirmed", "ir");
    let root = certificates(&world.pki.path("root.crt"));
    assert_eq!(certificates(&client.abide.path("ca.pem")), root);
}

/// The server keeps what it knows of a poll with the TCP connection.
#[test]
fn polling_stays_on_its_connection() {
    let world = World::new(KeyKind::P256);
    let polling = ["-poll_count", "2", "-check_after", "1"];
    for (operation, protection) in [("p10cr", Protection::Pbm), ("ir", Protection::Signature)] {
        let server = CmpServer::start(&world.pki, protection, &polling);
        let client = world.client(operation);
        let told = match protection {
            Protection::Pbm => client.enroll(operation, server.url(), &[]),
            Protection::Signature => client.enroll_signed(operation, server.url(), &[]),
        };
        told.check_issued("confirmed", operation);
        client.check_files(operation);
        assert_eq!(client.abide.transactions()[0]["polls"], 2, "{operation}");
        // The request, two polls and the confirmation.
        assert_eq!(requests(&server), 4, "{operation}");
    }
}

#[test]
fn a_confirmation_that_is_not_waived_is_sent() {
    let world = World::new(KeyKind::P256);
    let server = CmpServer::start(&world.pki, Protection::Pbm, &[""; 0]);
    let client = world.client("client");
    let told = client.enroll("p10cr", server.url(), &["--implicit-confirm"]);
    told.check_issued("confirmed", "not granted");
    assert_eq!(requests(&server), 2);
}

#[test]
fn a_refusal_is_told_in_the_servers_words() {
    let world = World::new(KeyKind::P256);
    let rejection = ["-pkistatus", "2", "-statusstring", "not today"];
    for (case, options, fail_info, words) in [
        (
            "badPOP",
            &["-failure", "9"][..],
            json!(["badPOP"]),
            "not today",
        ),
        (
            "two bits",
            &["-failurebits", "67108866"],
            json!(["badMessageCheck", "duplicateCertReq"]),
            "not today",
        ),
        (
            "error message",
            &["-send_error"],
            json!(["badRequest"]),
            "error processing message",
        ),
    ] {
        let server = CmpServer::start(
            &world.pki,
            Protection::Pbm,
            &[&rejection[..], options].concat(),
        );
        let client = world.client(case);
        let told = client.enroll("ir", server.url(), &["--quiet"]);
        assert_eq!(told.ended.code, Some(3), "{case}: {:?}", told.ended);
        assert_eq!(told.json["status"], "failed", "{case}");
        assert_eq!(told.json["failInfo"], fail_info, "{case}");
        assert!(told.says(words), "{case}: {:?}", told.ended);
        assert!(told.says(server.url()), "{case}: {:?}", told.ended);
        assert!(!told.says("unauthenticated"), "{case}: {:?}", told.ended);
        assert!(client.has_no_certificate(), "{case}");
        assert_eq!(client.phases(), ["failed"], "{case}");
        // Nothing was issued that could be confirmed.
        assert_eq!(requests(&server), 1, "{case}");
    }
}

#[test]
fn a_server_that_is_not_there_is_named() {
    let world = World::new(KeyKind::P256);
    // Bound and not listening: the port is nobody else's, and refuses.
    let socket = TcpSocket::new_v4().expect("a socket");
    let loopback = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    socket.bind(loopback).expect("a free port");
    let address = socket.local_addr().expect("its address");
    let url = format!("http://{address}/pkix/");
    let client = world.client("client");
    let told = client.enroll("ir", &url, &["--quiet", "--unreachable-timeout", "0"]);
    assert_eq!(told.ended.code, Some(4), "{:?}", told.ended);
    let errors = told
        .ended
        .stderr
        .lines()
        .filter(|l| l.starts_with("abide: "));
    let errors: Vec<&str> = errors.collect();
    assert_eq!(errors.len(), 1, "{:?}", told.ended);
    assert!(errors[0].contains(&url), "{:?}", told.ended);
    assert_eq!(told.json["status"], "waiting");
    assert_eq!(client.phases(), ["enrolling"]);
    assert!(client.has_no_certificate());
}

/// What is not protected by the server's credential ends the command, is believed in
/// nothing, and leaves the transaction open for a better answer.
#[test]
fn an_answer_that_proves_nothing_is_not_believed() {
    let world = World::new(KeyKind::P256);
    for (case, options, words) in [
        (
            "unprotected",
            &["-send_unprotected"][..],
            "is not protected",
        ),
        (
            "unprotected rejection",
            &[
                "-send_unprot_err",
                "-pkistatus",
                "2",
                "-statusstring",
                "not today",
            ],
            "it says, unauthenticated: rejection: not today",
        ),
        (
            "unprotected error",
            &["-send_unprot_err", "-send_error"],
            "it says, unauthenticated: rejection, badRequest: error processing message",
        ),
        (
            "another secret",
            &["-srv_secret", "pass:of the server alone"],
            "it says, unauthenticated: rejection, badRequest: wrong pbm value",
        ),
    ] {
        let server = CmpServer::start(&world.pki, Protection::Pbm, options);
        let client = world.client(case);
        let told = client.enroll("ir", server.url(), &["--quiet"]);
        check_not_believed(case, &client, &told);
        assert!(told.says(words), "{case}: {:?}", told.ended);
        assert!(told.says(server.url()), "{case}: {:?}", told.ended);
    }
}

fn check_not_believed(case: &str, client: &Client<'_>, told: &Told) {
    assert_eq!(told.ended.code, Some(5), "{case}: {:?}", told.ended);
    assert_eq!(told.json["status"], "waiting", "{case}");
    assert_eq!(told.json["failureClass"], "security", "{case}");
    assert!(client.has_no_certificate(), "{case}");
    assert_eq!(client.phases(), ["enrolling"], "{case}");
}

#[test]
fn a_signer_below_another_root_is_not_trusted() {
    let world = World::new(KeyKind::P256);
    // Of the same name: only the key tells the two apart.
    world.pki.root("other", "/O=abide tests/CN=Root");
    let server = CmpServer::start(&world.pki, Protection::Signature, &[""; 0]);
    let client = world.client("client");
    let mut words = client.words("ir", server.url());
    for word in &mut words {
        *word = word.replace("root.crt", "other.crt");
    }
    let told = client.run(words, &client.certificate(), &["--quiet"]);
    check_not_believed("another root", &client, &told);
    assert!(told.says(server.url()), "{:?}", told.ended);
}

/// A server without the secret that lets the MAC pass unchecked and signs its answers: anybody
/// with a certificate below the root could. The advice names the option for a CA that does so
/// by design, and the same transaction goes on with it.
#[test]
fn a_signed_answer_to_a_mac_is_accepted_where_allowed() {
    let world = World::new(KeyKind::P256);
    let server = CmpServer::start(&world.pki, Protection::Signature, &["-accept_unprotected"]);
    let client = world.client("client");
    let refused = client.enroll("p10cr", server.url(), &["--quiet"]);
    check_not_believed("not allowed", &client, &refused);
    let advice = refused.json["advice"].as_str().unwrap_or_default();
    assert!(advice.contains("signed-answer-to-mac"), "{advice}");
    let allowed = ["--resume", "--allow", "signed-answer-to-mac"];
    let told = client.enroll("p10cr", server.url(), &allowed);
    told.check_issued("confirmed", "MAC and signature");
    client.check_files("MAC and signature");
    assert_eq!(told.json["transactionID"], refused.json["transactionID"]);
}

#[test]
fn a_certificate_for_another_key_is_rejected() {
    let world = World::new(KeyKind::P256);
    let key = world.pki.key("foreign", KeyKind::P256);
    world.pki.issue_for_key("foreign", &key, SUBJECT);
    let server = CmpServer::start(&world.pki, Protection::Pbm, &["-rsp_cert", "foreign.crt"]);
    let client = world.client("client");
    let told = client.enroll("p10cr", server.url(), &["--quiet"]);
    assert_eq!(told.ended.code, Some(5), "{:?}", told.ended);
    assert_eq!(told.json["status"], "failed");
    assert_eq!(told.json["orphan"], false);
    assert!(client.has_no_certificate());
    assert_eq!(client.phases(), ["failed"]);
    server.wait_for("certificate rejected by client");
}

#[test]
fn one_store_serves_many_runs() {
    let world = World::new(KeyKind::P256);
    let server = CmpServer::start(&world.pki, Protection::Pbm, &[""; 0]);
    let client = world.client("client");
    let first = client.enroll("p10cr", server.url(), &[]);
    first.check_issued("confirmed", "the first run");
    fs::remove_file(client.abide.path("cert.pem")).expect("the certificate was there");

    let resumed = client.enroll("p10cr", server.url(), &["--resume"]);
    resumed.check_issued("confirmed", "the resumed run");
    client.check_files("the resumed run");
    assert_eq!(resumed.json["transactionID"], first.json["transactionID"]);
    assert_eq!(requests(&server), 2, "the CA is not asked again");

    let other = client.enroll("ir", server.url(), &[]);
    other.check_issued("confirmed", "another wish");
    let again = client.enroll("p10cr", server.url(), &[]);
    again.check_issued("confirmed", "the same wish anew");
    assert_ne!(again.json["transactionID"], first.json["transactionID"]);
    assert_eq!(client.phases(), ["issued", "issued", "issued"]);
}
