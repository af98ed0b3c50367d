//! Every operation at a CA that loses, damages and forges answers by a seed: in the end the
//! wish is fulfilled, and nobody has more than that. A run that gives up for now is followed
//! by another one with `--resume`, as a person or a timer would do it.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use abide_tests::abide::{Abide, MockCa};
use abide_tests::each;
use abide_tests::openssl::verify_chain;
use abide_tests::process::Ended;
use serde_json::Value;

/// One wish meets one or two faults; the last test has each of them.
const SEEDS: [u64; 3] = [1, 2, 3];
/// Runs of one wish. More than five in a row go wrong once in a thousand wishes.
const RUNS: usize = 12;

const OPERATIONS: [(&str, &[&str]); 6] = [
    ("ir", &["--subject", "/CN=device", "--newkey", "new.key"]),
    ("cr", &["--subject", "/CN=device", "--newkey", "new.key"]),
    ("p10cr", &["--csr", "device.csr"]),
    ("kur", &["--newkey", "new.key"]),
    ("rr", &["--revreason", "superseded"]),
    ("genm", &["--infotype", "caCerts", "--cacertsout", "ca.pem"]),
];

fn enroll(abide: &Abide, ca: &MockCa, words: &[&str]) -> Ended {
    let root = ca.root().display().to_string();
    let common = ["--server", ca.url(), "--trusted", &root, "--quiet"];
    abide.enroll(common.iter().chain(words))
}

/// A certificate from a CA that behaves; the same one is not to behave any more after that.
fn first_certificate(dir: &Path, abide: &Abide) {
    let mut ca = MockCa::start(dir, &[]);
    let secret = format!("pass:{}", MockCa::SECRET);
    let first = ["--subject", "/CN=device", "--newkey", "own.key"];
    let credential = ["--ref", MockCa::REF, "--secret", &secret];
    let words = ["--cmd", "ir", "--certout", "own.pem"];
    let ended = enroll(abide, &ca, &[&words[..], &first, &credential].concat());
    assert_eq!(ended.code, Some(0), "{ended:?}");
    ca.kill();
}

/// Whose transactions these are, by how they ended.
fn ids(transactions: &[Value], ended: impl Fn(&Value) -> bool) -> BTreeSet<String> {
    transactions
        .iter()
        .filter(|one| ended(one))
        .map(|one| one["transactionID"].as_str().expect("an id").to_owned())
        .collect()
}

fn fulfilled_in_the_end(operation: &str, request: &[&str], seed: u64) {
    let dir = tempfile::tempdir().expect("a folder for a test");
    let abide = Abide::new(dir.path());
    first_certificate(dir.path(), &abide);
    let key = abide_tests::pki::Pki::new(&dir.path().join("pki"), abide_tests::pki::KeyKind::P256);
    let csr = key.csr("device", &key.path("client.key"), "/CN=device");
    fs::copy(csr, abide.path("device.csr")).expect("a request");
    fs::remove_file(abide.store()).expect("the store of the first certificate");

    let ca = MockCa::start(dir.path(), &["--chaos", &seed.to_string()]);
    let own = ["--cert", "own.pem", "--key", "own.key", "--resume"];
    let cmd = ["--cmd", operation];
    let files: &[&str] = match operation {
        "rr" | "genm" => &[],
        _ => &["--certout", "cert.pem", "--chainout", "chain.pem"],
    };
    let words = [&cmd[..], request, &own, files].concat();
    let mut runs = Vec::new();
    while runs.len() < RUNS {
        let ended = enroll(&abide, &ca, &words);
        let code = ended.code;
        runs.push(ended);
        match code {
            Some(0) => break,
            // Refused, unreachable, not to be believed, waiting, no CMP.
            Some(3..=7) => {}
            _ => break,
        }
    }
    let case = format!(
        "{operation} with seed {seed}: {runs:#?}, the CA: {}",
        ca.said()
    );
    assert_eq!(runs.last().and_then(|ended| ended.code), Some(0), "{case}");

    let stored = abide.transactions();
    let done = ids(&stored, |one| {
        one["phase"] == "issued" || one["phase"] == "done"
    });
    let orphans = ids(&stored, |one| one["failure"]["orphan"] == true);
    let failed = ids(&stored, |one| one["phase"] == "failed");
    assert_eq!(done.len(), 1, "{case}");
    assert_eq!(done.len() + failed.len(), stored.len(), "{case}");
    // The first certificate is of another store.
    let booked: Vec<String> = ca
        .books()
        .iter()
        .filter(|entry| entry["event"] == "issued")
        .map(|entry| entry["transactionID"].as_str().expect("an id").to_owned())
        .skip(1)
        .collect();
    let issued: BTreeSet<String> = booked.iter().cloned().collect();
    assert_eq!(
        issued.len(),
        booked.len(),
        "twice under one transactionID: {case}"
    );
    match operation {
        "rr" | "genm" => assert!(issued.is_empty(), "{case}"),
        _ => {
            assert!(done.is_subset(&issued), "{case}");
            assert!(issued.is_subset(&(&done | &orphans)), "{case}");
            verify_chain(&abide.path("chain.pem"), ca.root());
        }
    }
    if operation == "rr" {
        let revoked = ca
            .books()
            .iter()
            .filter(|e| e["event"] == "revoked")
            .count();
        assert_eq!(revoked, 1, "{case}");
    }
}

#[test]
fn every_operation_is_fulfilled_in_the_end() {
    let cases: Vec<_> = OPERATIONS
        .iter()
        .flat_map(|operation| SEEDS.map(|seed| (operation, seed)))
        .collect();
    each(&cases, |((operation, request), seed)| {
        fulfilled_in_the_end(operation, request, *seed);
    });
}

/// One fault at every request: what the client makes of each.
#[test]
fn each_fault_is_told_for_what_it_is() {
    let dir = tempfile::tempdir().expect("a folder for a test");
    let listed = Abide::new(dir.path()).run(["mock-ca", "--list-faults"]);
    assert_eq!(listed.code, Some(0), "{listed:?}");
    let names: BTreeSet<&str> = listed
        .stdout
        .lines()
        .filter_map(|line| line.split_whitespace().next())
        .collect();
    let expected: [(&str, &[i32], &str); 15] = [
        ("lost-request", &[4], "connection"),
        ("lost-response", &[4], "connection"),
        ("cut", &[4], "connection"),
        ("late", &[0], ""),
        ("duplicate", &[0], ""),
        ("stale", &[5], "recipNonce is not that of our request"),
        ("http-503", &[4], "HTTP 503"),
        ("http-500", &[4], "HTTP 500"),
        ("html", &[7], "text/html"),
        ("truncated", &[7], "no PKIMessage"),
        // Of a certificate that is not needed, of a protected part, or of a length.
        ("bit-flipped", &[0, 5, 7], ""),
        (
            "unprotected-error",
            &[5],
            "it says, unauthenticated: rejection, badRequest",
        ),
        ("wrong-nonce", &[5], "recipNonce is not that of our request"),
        ("transaction-id-in-use", &[3], "transactionIdInUse"),
        ("waiting", &[0], ""),
    ];
    assert_eq!(names, expected.iter().map(|(name, ..)| *name).collect());
    each(&expected, |(fault, codes, words)| {
        let dir = tempfile::tempdir().expect("a folder for a test");
        let abide = Abide::new(dir.path());
        let always = format!("{fault}=1");
        let ca = MockCa::start(dir.path(), &["--fault", &always]);
        let secret = format!("pass:{}", MockCa::SECRET);
        let ir = [
            "--cmd",
            "ir",
            "--subject",
            "/CN=device",
            "--newkey",
            "new.key",
        ];
        let credential = ["--ref", MockCa::REF, "--secret", &secret];
        let times = ["--unreachable-timeout", "0"];
        let ended = enroll(&abide, &ca, &[&ir[..], &credential, &times].concat());
        let code = ended.code.expect("an exit code");
        assert!(codes.contains(&code), "{fault}: {ended:?}");
        assert!(ended.stderr.contains(words), "{fault}: {ended:?}");
    });
}
