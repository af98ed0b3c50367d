//! A certificate for a key of each kind from `abide mock-ca`, and another one in a
//! transaction that the key itself protects.

use std::fs;

use abide_tests::abide::{Abide, MockCa};
use abide_tests::openssl::Tool;

/// PKCS #8 of ML-DSA-65 with the seed 00 01 … 1f (RFC 9881, appendix C).
fn ml_dsa_65() -> Vec<u8> {
    let mut der = vec![
        0x30, 0x34, 0x02, 0x01, 0x00, 0x30, 0x0b, 0x06, 0x09, 0x60, 0x86, 0x48, 0x01, 0x65, 0x03,
        0x04, 0x03, 0x12, 0x04, 0x22, 0x80, 0x20,
    ];
    der.extend(0..0x20);
    der
}

#[test]
fn a_key_of_each_kind_is_certified_and_protects_messages() {
    let dir = tempfile::tempdir().expect("a folder for a test");
    let ca = MockCa::start(dir.path(), &[]);
    let abide = Abide::new(dir.path());
    let openssl = Tool::new();
    let secret = format!("pass:{}", MockCa::SECRET);
    let trusted = ca.root().display().to_string();
    for (kind, options) in [
        ("p384", Some("EC -pkeyopt ec_paramgen_curve:P-384")),
        ("p521", Some("EC -pkeyopt ec_paramgen_curve:P-521")),
        ("rsa", Some("RSA -pkeyopt rsa_keygen_bits:3072")),
        ("ed25519", Some("ED25519")),
        ("mldsa65", None),
    ] {
        let key = abide.path(&format!("{kind}.key"));
        match options {
            Some(options) => {
                openssl.run(&format!("genpkey -algorithm {options} -out key.pem"));
                fs::write(&key, openssl.read("key.pem")).expect("a key file");
            }
            None => fs::write(&key, ml_dsa_65()).expect("a key file"),
        }
        let (key, subject) = (format!("{kind}.key"), format!("/CN={kind}"));
        let first = format!("{kind}.pem");
        let common = [
            "--server",
            ca.url(),
            "--trusted",
            &trusted,
            "--subject",
            &subject,
        ];
        let enroll = |words: &[&str]| {
            let ended = abide.enroll(common.iter().chain(words));
            assert_eq!(
                ended.code,
                Some(0),
                "{kind}: {ended:?}, the CA: {}",
                ca.said()
            );
        };
        enroll(&[
            "--cmd",
            "ir",
            "--ref",
            MockCa::REF,
            "--secret",
            &secret,
            "--newkey",
            &key,
            "--certout",
            &first,
        ]);
        let fresh = format!("{kind}-2.key");
        let second = format!("{kind}-2.pem");
        enroll(&[
            "--cmd",
            "cr",
            "--cert",
            &first,
            "--key",
            &key,
            "--newkey",
            &fresh,
            "--certout",
            &second,
        ]);
        assert_ne!(abide.read(&first), abide.read(&second), "{kind}");
    }
    let issued = ca
        .books()
        .into_iter()
        .filter(|line| line["event"] == "confirmed");
    assert_eq!(issued.count(), 10, "{:?}", ca.books());
}
