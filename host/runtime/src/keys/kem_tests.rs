//! ML-KEM keys and the MAC that rests on them, against OpenSSL 4.0.3. In `testdata`, made by it:
//!
//! * `ml-kem-512.pem`: `genpkey -algorithm ML-KEM-512 -pkeyopt hexseed:…`, the seed being
//!   00 01 … 1f twice,
//! * `ml-kem-512-expanded.der`: the same with `-provparam ml-kem.output_formats=priv-only`,
//! * `ml-kem-512.ciphertext`: `pkeyutl -encap` with its public half.

use super::FileKeys;
use crate::Keys;
use crate::wit::keys::{Hash, Kdf, KemBasedMac, KeyError, MacAlgorithm, SignatureAlgorithm};

const PEM: &[u8] = include_bytes!("testdata/ml-kem-512.pem");
const EXPANDED: &[u8] = include_bytes!("testdata/ml-kem-512-expanded.der");
const CIPHERTEXT: &[u8] = include_bytes!("testdata/ml-kem-512.ciphertext");

fn keys() -> FileKeys {
    let mut keys = FileKeys::new();
    keys.add_private_key("both", PEM, None).unwrap();
    keys.add_private_key("expanded", EXPANDED, None).unwrap();
    keys
}

fn hex(octets: &[u8]) -> String {
    octets.iter().map(|octet| format!("{octet:02x}")).collect()
}

fn algorithm(ciphertext: &[u8], kdf: Kdf, key_length: u32) -> MacAlgorithm {
    MacAlgorithm::KemBased(KemBasedMac {
        ciphertext: ciphertext.to_vec(),
        kdf,
        info: b"abide".to_vec(),
        key_length,
        mac: Hash::Sha256,
    })
}

async fn mac(key: &str, algorithm: MacAlgorithm) -> Result<String, KeyError> {
    let made = keys().mac(key, algorithm, b"data".to_vec()).await;
    made.map(|octets| hex(&octets))
}

#[tokio::test]
async fn both_forms_are_the_key_that_openssl_made() {
    for name in ["both", "expanded"] {
        let spki = keys().public_key(name).await.unwrap();
        let digest = aws_lc_rs::digest::digest(&aws_lc_rs::digest::SHA256, &spki);
        assert_eq!(
            hex(digest.as_ref()),
            "0e3c8b89b54202d2545f7aba2e2aaa3cffa7b6191919ad738fab35b4f313cf71",
            "{name}"
        );
    }
}

#[tokio::test]
async fn the_mac_is_what_openssl_makes_of_the_shared_secret() {
    // The secret of pkeyutl -encap was bf06d667a24e35fc4e687ee366cfd486126b13cc1249ef01115a12c1b5bd48ed.
    // kdf -keylen 32 -kdfopt digest:SHA256 -kdfopt hexkey:… -kdfopt info:abide HKDF, then
    // dgst -sha256 -mac HMAC over "data".
    let hkdf = || algorithm(CIPHERTEXT, Kdf::Hkdf(Hash::Sha256), 32);
    let expected = "b3af93137f0994be839d4084556f0525f32e58866df0552e6cad8ab67e6f6fc0";
    assert_eq!(mac("both", hkdf()).await.unwrap(), expected);
    assert_eq!(mac("expanded", hkdf()).await.unwrap(), expected);
    // The first 40 octets of SHA-256 over 00000001, secret, info and over 00000002, secret, info.
    let kdf3 = algorithm(CIPHERTEXT, Kdf::Kdf3(Hash::Sha256), 40);
    assert_eq!(
        mac("both", kdf3).await.unwrap(),
        "905a6167d3271f602bf55071035fbf1b57d0483952891509b65a185f1e308623"
    );
}

#[tokio::test]
async fn what_does_not_fit_is_refused() {
    let hkdf = |ciphertext: &[u8], length| algorithm(ciphertext, Kdf::Hkdf(Hash::Sha256), length);
    for algorithm in [
        hkdf(&CIPHERTEXT[1..], 32),
        hkdf(&[], 32),
        hkdf(CIPHERTEXT, 0),
        hkdf(CIPHERTEXT, u32::MAX),
        self::algorithm(CIPHERTEXT, Kdf::Hkdf(Hash::Sha224), 32),
    ] {
        let error = mac("both", algorithm).await.unwrap_err();
        assert!(matches!(error, KeyError::Unsupported(_)), "{error:?}");
    }
    // A changed ciphertext gives another secret, as FIPS 203 has it.
    let mut changed = CIPHERTEXT.to_vec();
    changed[0] ^= 1;
    let other = mac("both", hkdf(&changed, 32)).await.unwrap();
    assert_ne!(other, mac("both", hkdf(CIPHERTEXT, 32)).await.unwrap());

    let error = mac("nobody", hkdf(CIPHERTEXT, 32)).await.unwrap_err();
    assert!(matches!(error, KeyError::NotFound(_)));
    let error = keys()
        .sign("both", SignatureAlgorithm::Ed25519, Vec::new())
        .await
        .unwrap_err();
    assert_eq!(
        error,
        KeyError::Unsupported("both is an ML-KEM key and cannot sign with Ed25519".to_owned())
    );
    let mut keys = FileKeys::new();
    let p256 = FileKeys::generate_p256().unwrap();
    keys.add_private_key("p256", p256.as_bytes(), None).unwrap();
    let made = keys.mac("p256", hkdf(CIPHERTEXT, 32), Vec::new()).await;
    assert!(matches!(made, Err(KeyError::Unsupported(_))));
}
