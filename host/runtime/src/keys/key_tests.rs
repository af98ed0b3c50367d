//! Keys against OpenSSL's command line, MACs against RFCs, OpenSSL and Python.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use zeroize::Zeroizing;

use super::{FileKeys, KeyFileError};
use crate::Keys;
use crate::wit::keys::{
    Hash, KeyError, MacAlgorithm, PasswordBasedMac, Pbmac1, SignatureAlgorithm, Verdict,
};

const DATA: &[u8] = b"PKIHeader and PKIBody";

/// A directory in which OpenSSL works.
struct OpenSsl(tempfile::TempDir);

impl OpenSsl {
    fn new() -> Self {
        OpenSsl(tempfile::tempdir().unwrap())
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn read(&self, name: &str) -> Vec<u8> {
        fs::read(self.path(name)).unwrap()
    }

    fn write(&self, name: &str, contents: &[u8]) {
        fs::write(self.path(name), contents).unwrap()
    }

    /// Runs a command line without quoting; whether it succeeded, and what it said.
    fn try_run(&self, line: &str) -> (bool, String) {
        let output = Command::new("openssl")
            .args(line.split_whitespace())
            .current_dir(self.0.path())
            .output()
            .expect("the openssl command");
        let said = [output.stdout, output.stderr].concat();
        let said = String::from_utf8_lossy(&said).into_owned();
        (output.status.success(), said)
    }

    fn run(&self, line: &str) -> String {
        let (success, said) = self.try_run(line);
        assert!(success, "openssl {line}: {said}");
        said
    }

    /// Takes a key file in.
    fn keys(&self, file: &str) -> FileKeys {
        let mut keys = FileKeys::new();
        keys.add_private_key(file, &self.read(file), None).unwrap();
        keys
    }
}

/// How each kind of key is made, and with what OpenSSL verifies its signatures.
const KINDS: &[(&str, &[(SignatureAlgorithm, &str)])] = &[
    (
        "genpkey -algorithm EC -pkeyopt ec_paramgen_curve:P-256",
        &[(SignatureAlgorithm::EcdsaSha256, "-sha256")],
    ),
    (
        "genpkey -algorithm EC -pkeyopt ec_paramgen_curve:P-384",
        &[(SignatureAlgorithm::EcdsaSha384, "-sha384")],
    ),
    (
        "genpkey -algorithm EC -pkeyopt ec_paramgen_curve:P-521",
        &[
            (SignatureAlgorithm::EcdsaSha224, "-sha224"),
            (SignatureAlgorithm::EcdsaSha256, "-sha256"),
            (SignatureAlgorithm::EcdsaSha384, "-sha384"),
            (SignatureAlgorithm::EcdsaSha512, "-sha512"),
        ],
    ),
    (
        "genpkey -algorithm RSA -pkeyopt rsa_keygen_bits:2048",
        &[
            (SignatureAlgorithm::RsaPkcs1Sha256, "-sha256"),
            (SignatureAlgorithm::RsaPkcs1Sha384, "-sha384"),
            (SignatureAlgorithm::RsaPkcs1Sha512, "-sha512"),
            (
                SignatureAlgorithm::RsaPssSha256,
                "-sha256 -sigopt rsa_padding_mode:pss -sigopt rsa_pss_saltlen:digest",
            ),
            (
                SignatureAlgorithm::RsaPssSha384,
                "-sha384 -sigopt rsa_padding_mode:pss -sigopt rsa_pss_saltlen:digest",
            ),
            (
                SignatureAlgorithm::RsaPssSha512,
                "-sha512 -sigopt rsa_padding_mode:pss -sigopt rsa_pss_saltlen:digest",
            ),
        ],
    ),
];

#[tokio::test]
async fn openssl_verifies_our_signatures_and_we_verify_its() {
    let openssl = OpenSsl::new();
    openssl.write("data", DATA);
    for (kind, algorithms) in KINDS {
        openssl.run(&format!("{kind} -out key.pem"));
        openssl.run("pkey -in key.pem -pubout -outform DER -out spki.der");
        openssl.run("pkey -in key.pem -pubout -out public.pem");
        let keys = openssl.keys("key.pem");
        let spki = openssl.read("spki.der");
        assert_eq!(keys.public_key("key.pem").await.unwrap(), spki);
        for (algorithm, options) in *algorithms {
            let signature = keys.sign("key.pem", *algorithm, DATA.to_vec()).await;
            openssl.write("ours", &signature.unwrap());
            openssl.run(&format!(
                "dgst {options} -verify public.pem -signature ours data"
            ));
            openssl.run(&format!("dgst {options} -sign key.pem -out theirs data"));
            let verify = async |data: &[u8], signature: Vec<u8>| {
                keys.verify(*algorithm, spki.clone(), data.to_vec(), signature)
                    .await
            };
            let theirs = openssl.read("theirs");
            assert_eq!(verify(DATA, theirs.clone()).await, Verdict::Valid);
            assert_eq!(verify(b"other", theirs.clone()).await, Verdict::Invalid);
            assert_eq!(verify(DATA, Vec::new()).await, Verdict::Invalid);
            let mut damaged = theirs;
            *damaged.last_mut().unwrap() ^= 1;
            assert_eq!(verify(DATA, damaged).await, Verdict::Invalid);
        }
    }
}

#[tokio::test]
async fn ed25519_works_both_ways() {
    let openssl = OpenSsl::new();
    openssl.write("data", DATA);
    openssl.run("genpkey -algorithm ED25519 -out key.pem");
    openssl.run("pkey -in key.pem -pubout -outform DER -out spki.der");
    let keys = openssl.keys("key.pem");
    let spki = openssl.read("spki.der");
    assert_eq!(keys.public_key("key.pem").await.unwrap(), spki);
    let algorithm = SignatureAlgorithm::Ed25519;
    let signature = keys.sign("key.pem", algorithm, DATA.to_vec()).await;
    // Ed25519 is deterministic (RFC 8032, 5.1.6): both must give the same.
    openssl.run("pkeyutl -sign -inkey key.pem -rawin -in data -out theirs");
    assert_eq!(signature.unwrap(), openssl.read("theirs"));
    let verdict = keys
        .verify(algorithm, spki, DATA.to_vec(), openssl.read("theirs"))
        .await;
    assert_eq!(verdict, Verdict::Valid);
}

#[tokio::test]
async fn hashes_of_other_curves_are_verified_and_the_rest_is_left_to_the_guest() {
    let openssl = OpenSsl::new();
    openssl.write("data", DATA);
    let keys = FileKeys::new();
    for curve in ["P-256", "P-384"] {
        openssl.run(&format!(
            "genpkey -algorithm EC -pkeyopt ec_paramgen_curve:{curve} -out key.pem"
        ));
        openssl.run("pkey -in key.pem -pubout -outform DER -out spki.der");
        for (algorithm, hash, expected) in [
            (SignatureAlgorithm::EcdsaSha256, "sha256", Verdict::Valid),
            (SignatureAlgorithm::EcdsaSha384, "sha384", Verdict::Valid),
            (SignatureAlgorithm::EcdsaSha512, "sha512", Verdict::Valid),
            (
                SignatureAlgorithm::EcdsaSha224,
                "sha224",
                Verdict::Unsupported,
            ),
            (SignatureAlgorithm::EcdsaSha1, "sha1", Verdict::Unsupported),
        ] {
            openssl.run(&format!("dgst -{hash} -sign key.pem -out signature data"));
            let verdict = keys
                .verify(
                    algorithm,
                    openssl.read("spki.der"),
                    DATA.to_vec(),
                    openssl.read("signature"),
                )
                .await;
            assert_eq!(verdict, expected, "{curve} {hash}");
        }
    }
    let verdict = keys
        .verify(
            SignatureAlgorithm::EcdsaSha256,
            vec![0x30, 0],
            vec![],
            vec![],
        )
        .await;
    assert_eq!(verdict, Verdict::Unsupported);
}

#[tokio::test]
async fn every_form_of_a_key_is_the_same_key() {
    let openssl = OpenSsl::new();
    openssl.run("ecparam -name prime256v1 -genkey -out ec.sec1.pem");
    assert!(
        String::from_utf8(openssl.read("ec.sec1.pem"))
            .unwrap()
            .contains("EC PARAMETERS")
    );
    openssl.run("ec -in ec.sec1.pem -outform DER -out ec.sec1.der");
    openssl.run("pkcs8 -topk8 -nocrypt -in ec.sec1.pem -out ec.pkcs8.pem");
    openssl.run("pkcs8 -topk8 -nocrypt -in ec.sec1.pem -outform DER -out ec.pkcs8.der");
    openssl.run("genrsa -traditional -out rsa.pkcs1.pem 3072");
    openssl.run("rsa -in rsa.pkcs1.pem -traditional -outform DER -out rsa.pkcs1.der");
    openssl.run("pkcs8 -topk8 -nocrypt -in rsa.pkcs1.pem -out rsa.pkcs8.pem");
    openssl.run("pkcs8 -topk8 -nocrypt -in rsa.pkcs1.pem -outform DER -out rsa.pkcs8.der");
    for (first, others) in [
        (
            "ec.sec1.pem",
            ["ec.sec1.der", "ec.pkcs8.pem", "ec.pkcs8.der"],
        ),
        (
            "rsa.pkcs1.pem",
            ["rsa.pkcs1.der", "rsa.pkcs8.pem", "rsa.pkcs8.der"],
        ),
    ] {
        openssl.run(&format!(
            "pkey -in {first} -pubout -outform DER -out spki.der"
        ));
        for file in [&[first], others.as_slice()].concat() {
            let spki = openssl.keys(file).public_key(file).await.unwrap();
            assert_eq!(spki, openssl.read("spki.der"), "{file}");
        }
    }
}

#[tokio::test]
async fn encrypted_keys_open_with_their_passphrase_only() {
    let openssl = OpenSsl::new();
    openssl.run("genpkey -algorithm EC -pkeyopt ec_paramgen_curve:P-256 -out plain.pem");
    openssl.run("pkcs8 -topk8 -in plain.pem -passout pass:open -out key.pem");
    openssl.run("pkcs8 -topk8 -in plain.pem -passout pass:open -outform DER -out key.der");
    openssl.run("pkcs8 -topk8 -in plain.pem -passout pass:open -scrypt -out scrypt.pem");
    openssl.run("ec -in plain.pem -aes128 -passout pass:open -out legacy.pem");
    let add = |file: &str, passphrase: Option<&[u8]>| {
        let mut keys = FileKeys::new();
        keys.add_private_key(file, &openssl.read(file), passphrase)
            .map(|()| keys)
    };
    let expected = openssl.keys("plain.pem").public_key("plain.pem").await;
    for file in ["key.pem", "key.der", "scrypt.pem"] {
        let name = || file.to_owned();
        let keys = add(file, Some(b"open")).unwrap();
        assert_eq!(keys.public_key(file).await, expected);
        let error = add(file, None).unwrap_err();
        assert_eq!(error, KeyFileError::Encrypted { name: name() });
        let error = add(file, Some(b"closed")).unwrap_err();
        assert_eq!(error, KeyFileError::WrongPassphrase { name: name() });
    }
    let error = add("legacy.pem", Some(b"open")).unwrap_err();
    let name = "legacy.pem".to_owned();
    assert_eq!(error, KeyFileError::UnsupportedEncryption { name });
}

#[test]
fn what_is_no_key_is_refused_by_name() {
    let openssl = OpenSsl::new();
    openssl.run("genpkey -algorithm EC -pkeyopt ec_paramgen_curve:P-256 -out key.pem");
    openssl.run("pkey -in key.pem -pubout -out public.pem");
    openssl.run("genpkey -algorithm EC -pkeyopt ec_paramgen_curve:secp256k1 -out k1.pem");
    openssl.run("genpkey -algorithm ED448 -out ed448.pem");
    openssl.run("genpkey -algorithm RSA -pkeyopt rsa_keygen_bits:1024 -out weak.pem");
    openssl.write("text", b"no key at all");
    openssl.write("empty", b"");
    openssl.write("binary", &[0xff; 100]);
    openssl.write("der", &[0x30, 0x03, 0x02, 0x01, 0x00]);
    let half = openssl.read("key.pem");
    openssl.write("half.pem", &half[..half.len() / 2]);
    for file in ["public.pem", "text", "empty", "binary", "half.pem"] {
        let error = FileKeys::new()
            .add_private_key(file, &openssl.read(file), None)
            .unwrap_err();
        let name = file.to_owned();
        assert_eq!(error, KeyFileError::NoKey { name });
    }
    for file in ["k1.pem", "ed448.pem", "weak.pem", "der"] {
        let error = FileKeys::new()
            .add_private_key(file, &openssl.read(file), None)
            .unwrap_err();
        assert!(matches!(error, KeyFileError::Unsupported { .. }), "{error}");
        assert!(error.to_string().starts_with(file));
    }
}

#[tokio::test]
async fn a_generated_key_is_one_that_openssl_reads() {
    let openssl = OpenSsl::new();
    let pem = FileKeys::generate_p256().unwrap();
    assert_ne!(*pem, *FileKeys::generate_p256().unwrap());
    openssl.write("key.pem", pem.as_bytes());
    let said = openssl.run("pkey -in key.pem -noout -text -check");
    assert!(said.contains("prime256v1"), "{said}");
    openssl.run("pkey -in key.pem -pubout -outform DER -out spki.der");
    let spki = openssl.keys("key.pem").public_key("key.pem").await.unwrap();
    assert_eq!(spki, openssl.read("spki.der"));
}

#[tokio::test]
async fn a_key_does_only_what_it_can() {
    let openssl = OpenSsl::new();
    openssl.run("genpkey -algorithm EC -pkeyopt ec_paramgen_curve:P-256 -out key.pem");
    let mut keys = openssl.keys("key.pem");
    keys.add_secret("secret", Zeroizing::new(b"abide-secret".to_vec()));
    keys.add_secret("empty", Zeroizing::new(Vec::new()));
    let error = keys
        .sign("key.pem", SignatureAlgorithm::RsaPssSha256, Vec::new())
        .await
        .unwrap_err();
    let text = "key.pem is a P-256 key and cannot sign with RsaPssSha256";
    assert_eq!(error, KeyError::Unsupported(text.to_owned()));
    for name in ["secret", "nobody"] {
        let error = keys.public_key(name).await.unwrap_err();
        assert!(matches!(error, KeyError::NotFound(text) if text.contains(name)));
    }
    let hmac = || MacAlgorithm::Hmac(Hash::Sha256);
    for name in ["key.pem", "nobody"] {
        let error = keys.mac(name, hmac(), Vec::new()).await.unwrap_err();
        assert!(matches!(error, KeyError::NotFound(text) if text.contains(name)));
    }
    let error = keys.mac("empty", hmac(), Vec::new()).await.unwrap_err();
    assert!(matches!(error, KeyError::Unavailable(_)));
}

#[test]
fn nothing_secret_is_printed() {
    let openssl = OpenSsl::new();
    openssl.run("genpkey -algorithm EC -pkeyopt ec_paramgen_curve:P-256 -out key.pem");
    let mut keys = openssl.keys("key.pem");
    keys.add_secret("the name", Zeroizing::new(b"Qq".to_vec()));
    let printed = format!("{keys:?}");
    let expected = concat!(
        r#"FileKeys { secrets: ["the name"], private: {"key.pem": a P-256 key}, "#,
        "public: [], places: {} }"
    );
    assert_eq!(printed, expected);
}

fn hex(text: &str) -> Vec<u8> {
    text.as_bytes()
        .chunks(2)
        .map(|pair| u8::from_str_radix(str::from_utf8(pair).unwrap(), 16).unwrap())
        .collect()
}

async fn mac(secret: &[u8], algorithm: MacAlgorithm, data: &[u8]) -> Result<Vec<u8>, KeyError> {
    let mut keys = FileKeys::new();
    keys.add_secret("secret", Zeroizing::new(secret.to_vec()));
    keys.mac("secret", algorithm, data.to_vec()).await
}

fn pbm(owf: Hash, iterations: u32, mac: Hash) -> MacAlgorithm {
    MacAlgorithm::PasswordBased(PasswordBasedMac {
        owf,
        salt: (0..16).collect(),
        iterations,
        mac,
    })
}

fn pbmac1(prf: Hash, salt: &[u8], iterations: u32, key_length: u32, mac: Hash) -> MacAlgorithm {
    MacAlgorithm::Pbmac1(Pbmac1 {
        prf,
        salt: salt.to_vec(),
        iterations,
        key_length,
        mac,
    })
}

/// Expected values from Python: `k = hashlib.new(owf, secret + salt).digest()`, hashed again
/// until `iterations` are done, then `hmac.new(k, data, mac)`.
#[tokio::test]
async fn the_password_based_mac_is_that_of_the_rfc() {
    for (owf, iterations, with, expected) in [
        (
            Hash::Sha256,
            500,
            Hash::Sha256,
            "834e3498fcba9a2783ce8ba9ad363a5d7d4bfd8c6bd447c730d38829449c9907",
        ),
        (
            Hash::Sha256,
            500,
            Hash::Sha1,
            "2b2a1afd262b934163161214f27e4c6f6db8b946",
        ),
        (
            Hash::Sha1,
            100,
            Hash::Sha1,
            "a7dd9de2edc399cdd1cd6d03cab2be0ddd980723",
        ),
        (
            Hash::Sha512,
            1000,
            Hash::Sha256,
            "481720990eab80f5a3d2efee07a49c9848f850c1c6bc33357f01a620a68ac33e",
        ),
    ] {
        let made = mac(b"abide-secret", pbm(owf, iterations, with), DATA).await;
        assert_eq!(made.unwrap(), hex(expected), "{owf:?} {with:?}");
    }
}

/// HMAC: RFC 4231, test cases 2 and 6; RFC 2202, test case 2.
#[tokio::test]
async fn hmac_is_that_of_the_rfcs() {
    let case = async |hash, key: &[u8], data: &str, expected: &str| {
        let made = mac(key, MacAlgorithm::Hmac(hash), data.as_bytes()).await;
        assert_eq!(made.unwrap(), hex(expected), "{hash:?}");
    };
    let short = "what do ya want for nothing?";
    let long = "Test Using Larger Than Block-Size Key - Hash Key First";
    case(
        Hash::Sha1,
        b"Jefe",
        short,
        "effcdf6ae5eb2fa2d27416d5f184df9c259a7c79",
    )
    .await;
    case(
        Hash::Sha224,
        b"Jefe",
        short,
        "a30e01098bc6dbbf45690f3a7e9e6d0f8bbea2a39e6148008fd05e44",
    )
    .await;
    case(
        Hash::Sha256,
        b"Jefe",
        short,
        "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843",
    )
    .await;
    case(
        Hash::Sha256,
        &[0xaa; 131],
        long,
        "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54",
    )
    .await;
}

/// PBMAC1 has no vectors of its own outside of PKCS #12: OpenSSL derives the key and makes the MAC.
#[tokio::test]
async fn pbmac1_is_what_openssl_makes_of_its_parts() {
    let openssl = OpenSsl::new();
    openssl.write("data", DATA);
    for (name, prf, iterations, length, mac_name, with) in [
        ("SHA256", Hash::Sha256, 1000, 32, "sha256", Hash::Sha256),
        ("SHA1", Hash::Sha1, 2048, 20, "sha512", Hash::Sha512),
        ("SHA224", Hash::Sha224, 2048, 40, "sha224", Hash::Sha224),
        ("SHA512", Hash::Sha512, 20_000, 64, "sha384", Hash::Sha384),
    ] {
        let key = openssl.run(&format!(
            "kdf -keylen {length} -kdfopt digest:{name} -kdfopt pass:abide-secret \
             -kdfopt hexsalt:0001020304050607 -kdfopt iter:{iterations} PBKDF2"
        ));
        let key = key.trim().replace(':', "");
        openssl.run(&format!(
            "dgst -{mac_name} -mac HMAC -macopt hexkey:{key} -binary -out mac data"
        ));
        let salt: Vec<u8> = (0..8).collect();
        let algorithm = pbmac1(prf, &salt, iterations, length, with);
        let made = mac(b"abide-secret", algorithm, DATA).await.unwrap();
        assert_eq!(made, openssl.read("mac"), "{name}");
    }
}

#[tokio::test]
async fn parameters_beyond_bounds_are_refused_at_once() {
    let begin = std::time::Instant::now();
    for algorithm in [
        pbm(Hash::Sha256, 0, Hash::Sha256),
        pbm(Hash::Sha256, 100_001, Hash::Sha256),
        pbm(Hash::Sha256, u32::MAX, Hash::Sha256),
        pbmac1(Hash::Sha256, b"salt", u32::MAX, 32, Hash::Sha256),
        pbmac1(Hash::Sha256, b"salt", 0, 32, Hash::Sha256),
        pbmac1(Hash::Sha256, b"salt", 1000, 0, Hash::Sha256),
        pbmac1(Hash::Sha256, b"salt", 1000, u32::MAX, Hash::Sha256),
        pbmac1(Hash::Sha256, &[0; 257], 1000, 32, Hash::Sha256),
    ] {
        let described = format!("{algorithm:?}");
        let error = mac(b"abide-secret", algorithm, DATA).await.unwrap_err();
        assert!(matches!(error, KeyError::Unsupported(_)), "{described}");
    }
    assert!(begin.elapsed() < std::time::Duration::from_secs(1));
}

#[tokio::test]
async fn fingerprints_change_with_the_key_and_the_salt() {
    let openssl = OpenSsl::new();
    openssl.run("genpkey -algorithm EC -pkeyopt ec_paramgen_curve:P-256 -out key.pem");
    openssl.run("pkey -in key.pem -pubout -outform DER -out spki.der");
    let mut keys = openssl.keys("key.pem");
    keys.add_secret("secret", Zeroizing::new(b"abide-secret".to_vec()));
    keys.add_secret("other", Zeroizing::new(b"abide-secreu".to_vec()));
    keys.add_secret("same", Zeroizing::new(b"abide-secret".to_vec()));
    let of = async |name: &str, salt: &[u8]| keys.fingerprint(name, salt.to_vec()).await.unwrap();

    openssl.write(
        "salted",
        &[b"salt", openssl.read("spki.der").as_slice()].concat(),
    );
    openssl.run("dgst -sha256 -binary -out hash salted");
    assert_eq!(of("key.pem", b"salt").await, openssl.read("hash"));
    let key = openssl.run(
        "kdf -keylen 32 -kdfopt digest:SHA256 -kdfopt pass:abide-secret -kdfopt salt:salt \
         -kdfopt iter:1000 PBKDF2",
    );
    let expected = hex(&key.trim().replace(':', ""));
    assert_eq!(of("secret", b"salt").await, expected);
    assert_eq!(of("same", b"salt").await, expected);
    assert_ne!(of("other", b"salt").await, expected);
    assert_ne!(of("secret", b"tlas").await, expected);
}
