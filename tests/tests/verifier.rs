//! The world `verifier`: with the host's keys it comes to the verdicts of the gate, and what it
//! reaches of the host is those keys.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use abide_host::wit::message::{Anchors, Leniency, Options, Trust, VerifyError};
use abide_host::{FileKeys, Gate, Keys, Runtime, RuntimeConfig, Verifier};
use wit_parser::decoding::{DecodedWasm, decode};

const KEY: &str = "shared";

fn options() -> Options {
    Options {
        leniency: Leniency::empty(),
        allow_sha1: true,
    }
}

fn component() -> Vec<u8> {
    // Cargo gives tests a folder of their own in its target folder.
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).with_file_name("component");
    let path = path.join("abide-verifier.wasm");
    fs::read(&path).unwrap_or_else(|error| {
        panic!(
            "{}: {error}; `cargo xtask component` makes it",
            path.display()
        )
    })
}

fn vectors() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../guest/cmp/tests/vectors")
}

/// A message of another implementation, valid by what is named last.
struct Vector {
    name: String,
    der: Vec<u8>,
    key: Key,
}

enum Key {
    Secret(Vec<u8>),
    Anchor(Vec<u8>),
}

fn valid() -> Vec<Vector> {
    let index = fs::read_to_string(vectors().join("INDEX.tsv")).expect("the index");
    let read = |file: &str| fs::read(vectors().join(file)).expect("a vector");
    let lines = index.lines().filter_map(|line| {
        let fields: Vec<&str> = line.split('\t').collect();
        let key = match fields[4].split_once(':')? {
            ("secret", text) => Key::Secret(text.into()),
            ("anchor", file) => Key::Anchor(read(&format!("pki/{file}"))),
            _ => return None,
        };
        Some(Vector {
            name: fields[0].to_owned(),
            der: read(&format!("messages/{}", fields[0])),
            key,
        })
    });
    lines.collect()
}

fn anchors(root: &[u8]) -> Trust {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    Trust::Anchors(Anchors {
        certificates: vec![root.to_vec()],
        untrusted: Vec::new(),
        at: since.expect("a time after 1970").as_secs() as i64,
        role: None,
    })
}

fn runtime() -> Runtime {
    Runtime::new(RuntimeConfig::default()).expect("a runtime")
}

fn verifier(runtime: &Runtime, keys: impl Keys + 'static) -> Verifier {
    runtime.verifier_from(component(), Arc::new(keys))
}

fn with_secret(secret: &[u8]) -> FileKeys {
    let mut keys = FileKeys::new();
    keys.add_secret(KEY, secret.to_vec().into());
    keys
}

/// The same message with one bit of its header turned: in the middle of the first 100 octets.
fn turned(der: &[u8]) -> Vec<u8> {
    let mut der = der.to_vec();
    der[50] ^= 1;
    der
}

#[test]
fn its_only_import_is_keys() {
    let DecodedWasm::Component(resolve, world) = decode(&component()).expect("a component") else {
        panic!("a WIT package in place of a component");
    };
    let imports: Vec<_> = resolve.worlds[world]
        .imports
        .keys()
        .map(|key| resolve.name_world_key(key))
        .collect();
    assert_eq!(imports, ["abide:cmp/keys@0.1.0"]);
}

#[tokio::test]
async fn verdicts_are_those_of_the_gate() {
    let runtime = runtime();
    let gate = runtime.gate();
    let mut keys = FileKeys::new();
    let vectors = valid();
    // Each secret under its own text.
    for vector in &vectors {
        if let Key::Secret(secret) = &vector.key {
            let name = String::from_utf8_lossy(secret);
            keys.add_secret(name, secret.clone().into());
        }
    }
    let verifier = verifier(&runtime, keys);
    let mut seen = [0, 0];
    for vector in &vectors {
        let (inside, outside) = match &vector.key {
            Key::Secret(secret) => (
                Trust::Secret(secret.clone()),
                Trust::Key(String::from_utf8_lossy(secret).into_owned()),
            ),
            Key::Anchor(root) => (anchors(root), anchors(root)),
        };
        seen[usize::from(matches!(vector.key, Key::Anchor(_)))] += 1;
        let good = both(&gate, &verifier, &vector.der, &inside, &outside).await;
        // Only what this build knows can be valid in either.
        if let Err(why) = &good {
            assert!(
                matches!(why, VerifyError::Unsupported(_)),
                "{}: {why:?}",
                vector.name
            );
        }
        let bad = both(&gate, &verifier, &turned(&vector.der), &inside, &outside).await;
        assert!(bad.is_err(), "{} with a bit turned", vector.name);
    }
    assert!(seen.iter().all(|&count| count > 20), "{seen:?}");
}

/// The one verdict of both.
async fn both(
    gate: &Gate,
    verifier: &Verifier,
    der: &[u8],
    inside: &Trust,
    outside: &Trust,
) -> Result<(), VerifyError> {
    let alone = gate.verify(der, inside, options()).await.expect("no trap");
    let with_keys = verifier
        .verify(der, outside, options())
        .await
        .expect("no trap");
    assert_eq!(alone, with_keys);
    alone.map(drop)
}

#[tokio::test]
async fn a_key_that_is_not_there_is_named() {
    let runtime = runtime();
    let message = valid().remove(0).der;
    let trust = Trust::Key("nobody's".to_owned());
    let alone = runtime.gate().verify(&message, &trust, options()).await;
    let with_keys = verifier(&runtime, FileKeys::new())
        .verify(&message, &trust, options())
        .await;
    for verdict in [alone, with_keys] {
        let Err(VerifyError::Unsupported(why)) = verdict.expect("no trap") else {
            panic!("verified with a key that nobody has");
        };
        assert!(why.contains("nobody's"), "{why}");
    }
}

#[tokio::test]
async fn the_wrong_secret_outside_is_refused() {
    let runtime = runtime();
    let vectors = valid();
    let vector = vectors
        .iter()
        .find(|vector| matches!(vector.key, Key::Secret(_)))
        .expect("a MAC");
    let verdict = verifier(&runtime, with_secret(b"another secret"))
        .verify(&vector.der, &Trust::Key(KEY.to_owned()), options())
        .await
        .expect("no trap");
    assert!(
        matches!(verdict, Err(VerifyError::BadProtection(_))),
        "{verdict:?}"
    );
}
