//! The committed messages and what their makers say about them.

use std::fs;
use std::path::{Path, PathBuf};

/// What the protection of a message is checked with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Key {
    /// There is no protection, or none that could be checked.
    None,
    /// A shared secret.
    Secret(Vec<u8>),
    /// What a KEM gave both sides.
    Kem(Vec<u8>),
    /// The DER of a trust anchor.
    Anchor(Vec<u8>),
}

/// How the check is to end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Expected {
    Valid,
    Unprotected,
    /// By an algorithm that is to be refused.
    Refused,
}

/// A message by another implementation.
#[derive(Clone, Debug)]
pub(crate) struct Vector {
    pub(crate) file: String,
    pub(crate) body: String,
    pub(crate) protection: String,
    pub(crate) key: Key,
    pub(crate) expected: Expected,
    pub(crate) popo: String,
    /// Names of fields and the values that were put in.
    pub(crate) known: Vec<(String, String)>,
    pub(crate) der: Vec<u8>,
}

/// All of them, in the order of the index.
pub(crate) fn vectors() -> Vec<Vector> {
    let index = fs::read_to_string(folder().join("INDEX.tsv")).expect("the index");
    let mut lines = index.lines();
    assert_eq!(
        lines.next(),
        Some("file\tmaker\tbody\tprotection\tkey\tverdict\tpopo\tknown")
    );
    lines.map(vector).collect()
}

/// A file of the PKI.
pub(crate) fn pki(file: &str) -> Vec<u8> {
    read(&folder().join("pki").join(file))
}

/// The names of all files with messages.
pub(crate) fn files() -> Vec<String> {
    let entries = fs::read_dir(folder().join("messages")).expect("the messages");
    let mut names: Vec<String> = entries
        .map(|entry| entry.expect("a file").file_name())
        .map(|name| name.into_string().expect("UTF-8"))
        .collect();
    names.sort();
    names
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/vectors")
}

fn read(path: &Path) -> Vec<u8> {
    fs::read(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn vector(line: &str) -> Vector {
    let fields: Vec<&str> = line.split('\t').collect();
    let &[file, _maker, body, protection, key, verdict, popo, known] = &fields[..] else {
        panic!("not 8 columns: {line}")
    };
    let key = match key.split_once(':') {
        None if key == "-" => Key::None,
        Some(("secret", text)) => Key::Secret(text.as_bytes().to_vec()),
        Some(("kem", hex)) => Key::Kem(octets(hex)),
        Some(("anchor", file)) => Key::Anchor(pki(file)),
        _ => panic!("{file}: unknown key {key}"),
    };
    let expected = match verdict {
        "valid" => Expected::Valid,
        "unprotected" => Expected::Unprotected,
        "refused" => Expected::Refused,
        _ => panic!("{file}: unknown verdict {verdict}"),
    };
    let known = known.split(';').map(|entry| {
        let (name, value) = entry.split_once('=').expect("name=value");
        (name.to_owned(), value.to_owned())
    });
    Vector {
        file: file.to_owned(),
        body: body.to_owned(),
        protection: protection.to_owned(),
        key,
        expected,
        popo: popo.to_owned(),
        known: known.collect(),
        der: read(&folder().join("messages").join(file)),
    }
}

/// Hexadecimal digits to octets.
fn octets(hex: &str) -> Vec<u8> {
    (0..hex.len())
        .step_by(2)
        .map(|at| u8::from_str_radix(&hex[at..at + 2], 16).expect("hexadecimal digits"))
        .collect()
}
