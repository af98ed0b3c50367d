//! The host's verdict on a signature and the component's are the same: on signatures of
//! `openssl` and of the host, on what is left of them after changes, and on the forgeries
//! about which implementations are known to differ.

use std::fs;
use std::path::Path;

use abide_cmp::protection::{
    self, Anchors, Hash, ProtectionKind, SignatureAlgorithm, SignatureVerifier, SoftwareVerifier,
    Verdict,
};
use abide_cmp::{Certificate, PkiMessage, PublicKeyInfo, Time};
use abide_host::wit::keys;
use abide_host::{FileKeys, Keys};
use abide_tests::openssl::Tool;

const DATA: &[u8] = b"SEQUENCE { header, body }";

/// Asks both and insists that they agree where both have an opinion.
struct Both {
    keys: FileKeys,
    runtime: tokio::runtime::Runtime,
}

impl Both {
    fn new() -> Self {
        Self {
            keys: FileKeys::new(),
            runtime: tokio::runtime::Builder::new_current_thread()
                .build()
                .expect("a runtime"),
        }
    }

    fn host(
        &self,
        algorithm: SignatureAlgorithm,
        key: &[u8],
        data: &[u8],
        signature: &[u8],
    ) -> Verdict {
        let Some(algorithm) = host_name(algorithm) else {
            return Verdict::Unsupported;
        };
        let verdict = self
            .keys
            .verify(algorithm, key.to_vec(), data.to_vec(), signature.to_vec());
        match self.runtime.block_on(verdict) {
            keys::Verdict::Valid => Verdict::Valid,
            keys::Verdict::Invalid => Verdict::Invalid,
            keys::Verdict::Unsupported => Verdict::Unsupported,
        }
    }

    /// The common verdict with a key that may be damaged.
    fn verdict(
        &self,
        algorithm: SignatureAlgorithm,
        key: &[u8],
        data: &[u8],
        signature: &[u8],
    ) -> Verdict {
        match PublicKeyInfo::from_der(key) {
            Ok(key) => self.verify(algorithm, &key, data, signature),
            Err(_) => match self.host(algorithm, key, data, signature) {
                Verdict::Valid => panic!("the host takes a key that cannot be read: {key:02x?}"),
                _ => Verdict::Invalid,
            },
        }
    }

    fn sign(&self, algorithm: SignatureAlgorithm, key: &str, data: &[u8]) -> Vec<u8> {
        let algorithm = host_name(algorithm).expect("an algorithm of the host");
        self.runtime
            .block_on(self.keys.sign(key, algorithm, data.to_vec()))
            .expect("a signature")
    }

    fn public_key(&self, key: &str) -> Vec<u8> {
        self.runtime
            .block_on(self.keys.public_key(key))
            .expect("a public key")
    }
}

impl SignatureVerifier for Both {
    fn verify(
        &self,
        algorithm: SignatureAlgorithm,
        key: &PublicKeyInfo<'_>,
        data: &[u8],
        signature: &[u8],
    ) -> Verdict {
        let host = self.host(algorithm, key.raw, data, signature);
        let guest = SoftwareVerifier.verify(algorithm, key, data, signature);
        if host != Verdict::Unsupported && guest != Verdict::Unsupported {
            assert_eq!(
                host, guest,
                "host and guest differ about {algorithm:?}: key {:02x?}, signature {signature:02x?}",
                key.raw
            );
        }
        guest
    }
}

fn host_name(algorithm: SignatureAlgorithm) -> Option<keys::SignatureAlgorithm> {
    use SignatureAlgorithm as Of;
    use keys::SignatureAlgorithm as To;
    Some(match algorithm {
        Of::RsaPkcs1(Hash::Sha256) => To::RsaPkcs1Sha256,
        Of::RsaPkcs1(Hash::Sha384) => To::RsaPkcs1Sha384,
        Of::RsaPkcs1(Hash::Sha512) => To::RsaPkcs1Sha512,
        Of::RsaPss { hash, salt_length } => match (hash, salt_length) {
            (Hash::Sha256, 32) => To::RsaPssSha256,
            (Hash::Sha384, 48) => To::RsaPssSha384,
            (Hash::Sha512, 64) => To::RsaPssSha512,
            _ => return None,
        },
        Of::Ecdsa(Hash::Sha224) => To::EcdsaSha224,
        Of::Ecdsa(Hash::Sha256) => To::EcdsaSha256,
        Of::Ecdsa(Hash::Sha384) => To::EcdsaSha384,
        Of::Ecdsa(Hash::Sha512) => To::EcdsaSha512,
        Of::Ed25519 => To::Ed25519,
        Of::MlDsa44 => To::MlDsa44,
        Of::MlDsa65 => To::MlDsa65,
        Of::MlDsa87 => To::MlDsa87,
        _ => return None,
    })
}

/// PKCS #8 of ML-DSA with the seed 00 01 … 1f (RFC 9881, appendix C), the last octet of
/// whose object identifier is the parameter set.
fn ml_dsa_key(parameter_set: u8) -> Vec<u8> {
    let mut der = vec![
        0x30,
        0x34,
        0x02,
        0x01,
        0x00,
        0x30,
        0x0b,
        0x06,
        0x09,
        0x60,
        0x86,
        0x48,
        0x01,
        0x65,
        0x03,
        0x04,
        0x03,
        parameter_set,
        0x04,
        0x22,
        0x80,
        0x20,
    ];
    der.extend(0..0x20);
    der
}

/// A key of each kind at the host, and what it signs with.
fn every_kind(both: &mut Both, openssl: &Tool) -> Vec<(&'static str, SignatureAlgorithm)> {
    let pss = |hash, salt_length| SignatureAlgorithm::RsaPss { hash, salt_length };
    let generated: [(&str, &str, &[SignatureAlgorithm]); 5] = [
        (
            "P-256",
            "EC -pkeyopt ec_paramgen_curve:P-256",
            &[SignatureAlgorithm::Ecdsa(Hash::Sha256)],
        ),
        (
            "P-384",
            "EC -pkeyopt ec_paramgen_curve:P-384",
            &[SignatureAlgorithm::Ecdsa(Hash::Sha384)],
        ),
        (
            "P-521",
            "EC -pkeyopt ec_paramgen_curve:P-521",
            &[
                SignatureAlgorithm::Ecdsa(Hash::Sha224),
                SignatureAlgorithm::Ecdsa(Hash::Sha256),
                SignatureAlgorithm::Ecdsa(Hash::Sha512),
            ],
        ),
        (
            "RSA",
            "RSA -pkeyopt rsa_keygen_bits:2048",
            &[
                SignatureAlgorithm::RsaPkcs1(Hash::Sha256),
                SignatureAlgorithm::RsaPkcs1(Hash::Sha384),
                SignatureAlgorithm::RsaPkcs1(Hash::Sha512),
                pss(Hash::Sha256, 32),
                pss(Hash::Sha384, 48),
                pss(Hash::Sha512, 64),
            ],
        ),
        ("Ed25519", "ED25519", &[SignatureAlgorithm::Ed25519]),
    ];
    let mut kinds = Vec::new();
    for (name, options, algorithms) in generated {
        openssl.run(&format!("genpkey -algorithm {options} -out key.pem"));
        both.keys
            .add_private_key(name, &openssl.read("key.pem"), None)
            .expect("a key of openssl");
        kinds.extend(algorithms.iter().map(|algorithm| (name, *algorithm)));
    }
    for (name, set, algorithm) in [
        ("ML-DSA-44", 0x11, SignatureAlgorithm::MlDsa44),
        ("ML-DSA-65", 0x12, SignatureAlgorithm::MlDsa65),
        ("ML-DSA-87", 0x13, SignatureAlgorithm::MlDsa87),
    ] {
        both.keys
            .add_private_key(name, &ml_dsa_key(set), None)
            .expect("a key from a seed");
        kinds.push((name, algorithm));
    }
    kinds
}

/// Changes one bit in every `stride` bits, which must share no factor with 8 so that every
/// position in an octet has its turn.
fn flipped(octets: &[u8], stride: usize) -> impl Iterator<Item = Vec<u8>> {
    (0..octets.len() * 8).step_by(stride).map(|bit| {
        let mut changed = octets.to_vec();
        changed[bit / 8] ^= 1 << (bit % 8);
        changed
    })
}

#[test]
fn a_signature_is_valid_and_none_of_its_changes_is() {
    let mut both = Both::new();
    let openssl = Tool::new();
    for (name, algorithm) in every_kind(&mut both, &openssl) {
        let key = both.public_key(name);
        let signature = both.sign(algorithm, name, DATA);
        let verdict = |key: &[u8], data: &[u8], signature: &[u8]| {
            both.verdict(algorithm, key, data, signature)
        };
        assert_eq!(verdict(&key, DATA, &signature), Verdict::Valid, "{name}");
        let stride = if signature.len() > 1000 { 997 } else { 11 };
        for changed in flipped(&signature, stride) {
            assert_ne!(verdict(&key, DATA, &changed), Verdict::Valid, "{name}");
        }
        for changed in flipped(&key, stride) {
            assert_ne!(
                verdict(&changed, DATA, &signature),
                Verdict::Valid,
                "{name}: {changed:02x?} of {key:02x?}"
            );
        }
        for changed in flipped(DATA, 37) {
            assert_ne!(
                verdict(&key, &changed, &signature),
                Verdict::Valid,
                "{name}"
            );
        }
        let (shorter, longer) = (&signature[1..], [&[0], &signature[..]].concat());
        let padded = [&signature[..], &[0]].concat();
        let cut = &signature[..signature.len() - 1];
        for other in [shorter, &longer, &padded, cut, &[]] {
            assert_eq!(verdict(&key, DATA, other), Verdict::Invalid, "{name}");
        }
    }
}

#[test]
fn public_keys_of_ml_dsa_are_those_of_openssl() {
    // openssl 4.0.3: genpkey -algorithm ML-DSA-44 -pkeyopt hexseed:000102…1f, then
    // pkey -pubout -outform DER | sha256sum; and so on.
    let expected = [
        "837832708c5236d951581f1fddf2b79991b3424a0486d16da1ddad0fd69701be",
        "b8b62131bfbe84433efb2273d7f5b87f7a22854a2cfd366fc2aead86d837c52d",
        "07e57c4f14dbad1267f621ec3777b4e2e6c4fbc4c22fbb87510ff8e0b3c6a642",
    ];
    for (set, expected) in (0x11..).zip(expected) {
        let mut both = Both::new();
        both.keys
            .add_private_key("key", &ml_dsa_key(set), None)
            .expect("a key from a seed");
        let digest = Hash::Sha256.digest(&both.public_key("key"));
        let digest: String = digest.iter().map(|octet| format!("{octet:02x}")).collect();
        assert_eq!(digest, expected);
    }
}

/// An INTEGER of DER.
fn integer(octets: &[u8]) -> Vec<u8> {
    let significant = octets.iter().position(|octet| *octet != 0);
    let octets = &octets[significant.unwrap_or(octets.len() - 1)..];
    let sign: &[u8] = if octets[0] & 0x80 != 0 { &[0] } else { &[] };
    tlv(0x02, &[sign, octets].concat())
}

fn tlv(tag: u8, value: &[u8]) -> Vec<u8> {
    let length = u8::try_from(value.len()).expect("a short element");
    assert!(length < 0x80);
    [&[tag, length], value].concat()
}

/// The order of the base point of P-256 (FIPS 186-4, D.1.2.3).
const P256_ORDER: [u8; 32] = [
    0xff, 0xff, 0xff, 0xff, 0x00, 0x00, 0x00, 0x00, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff,
    0xbc, 0xe6, 0xfa, 0xad, 0xa7, 0x17, 0x9e, 0x84, 0xf3, 0xb9, 0xca, 0xc2, 0xfc, 0x63, 0x25, 0x51,
];

/// The difference of two numbers of the same length, most significant octet first.
fn minus(left: &[u8], right: &[u8]) -> Vec<u8> {
    let mut borrow = 0_i16;
    let mut difference = vec![0; left.len()];
    for index in (0..left.len()).rev() {
        let step = i16::from(left[index]) - i16::from(right[index]) - borrow;
        borrow = i16::from(step < 0);
        difference[index] = step.rem_euclid(256) as u8;
    }
    assert_eq!(borrow, 0, "a negative difference");
    difference
}

/// The sum, and what does not fit.
fn plus(left: &[u8], right: &[u8]) -> (Vec<u8>, bool) {
    let mut carry = 0_u16;
    let mut sum = vec![0; left.len()];
    for index in (0..left.len()).rev() {
        let step = u16::from(left[index]) + u16::from(right[index]) + carry;
        sum[index] = step as u8;
        carry = step >> 8;
    }
    (sum, carry != 0)
}

#[test]
fn ecdsa_is_strict_about_der_and_range_and_not_about_the_half() {
    let mut both = Both::new();
    let openssl = Tool::new();
    every_kind(&mut both, &openssl);
    let algorithm = SignatureAlgorithm::Ecdsa(Hash::Sha256);
    let key = both.public_key("P-256");
    let signature = both.sign(algorithm, "P-256", DATA);
    let verdict = |signature: &[u8]| both.verdict(algorithm, &key, DATA, signature);

    let r_end = 4 + usize::from(signature[3]);
    let number = |octets: &[u8]| {
        let mut number = vec![0; 32_usize.saturating_sub(octets.len())];
        number.extend_from_slice(&octets[octets.len().saturating_sub(32)..]);
        number
    };
    let r = number(&signature[4..r_end]);
    let s = number(&signature[r_end + 2..]);
    let made = |r: &[u8], s: &[u8]| tlv(0x30, &[r, s].concat());
    assert_eq!(made(&integer(&r), &integer(&s)), signature);

    // SEC 1, 4.1.4 takes s and n − s alike.
    let other_half = minus(&P256_ORDER, &s);
    let same = made(&integer(&r), &integer(&other_half));
    assert_eq!(verdict(&same), Verdict::Valid);

    let (r, s) = (integer(&r), integer(&s));
    let zero = integer(&[0]);
    let order = integer(&P256_ORDER);
    let long_r = tlv(0x02, &[&[0], &r[2..]].concat());
    let negative = tlv(0x02, &[0xff]);
    let length = [&[0x30, 0x81, signature[1]], &signature[2..]].concat();
    let indefinite = [&[0x30, 0x80], &signature[2..], &[0, 0]].concat();
    let third = tlv(0x30, &[&r[..], &s, &zero].concat());
    for wrong in [
        made(&zero, &s),
        made(&r, &zero),
        made(&zero, &zero),
        made(&order, &s),
        made(&r, &order),
        made(&long_r, &s),
        made(&negative, &s),
        made(&r, &negative),
        made(&s, &r),
        length,
        indefinite,
        third,
        tlv(0x31, &signature[2..]),
    ] {
        assert_eq!(verdict(&wrong), Verdict::Invalid, "{wrong:02x?}");
    }
}

#[test]
fn points_are_on_the_curve_in_an_encoding_of_rfc_5480() {
    let mut both = Both::new();
    let openssl = Tool::new();
    for (curve, algorithm, size) in [
        ("P-256", SignatureAlgorithm::Ecdsa(Hash::Sha256), 32),
        ("P-384", SignatureAlgorithm::Ecdsa(Hash::Sha384), 48),
        ("P-521", SignatureAlgorithm::Ecdsa(Hash::Sha512), 66),
    ] {
        openssl.run(&format!(
            "genpkey -algorithm EC -pkeyopt ec_paramgen_curve:{curve} -out key.pem"
        ));
        both.keys
            .add_private_key(curve, &openssl.read("key.pem"), None)
            .expect("a key of openssl");
        let signature = both.sign(algorithm, curve, DATA);
        let key = both.public_key(curve);
        let verdict = |key: &[u8]| both.verdict(algorithm, key, DATA, &signature);
        openssl.run("pkey -in key.pem -pubout -outform DER -ec_conv_form compressed -out public");
        let compressed = openssl.read("public");
        assert!(compressed.len() + size <= key.len());
        assert_eq!(verdict(&compressed), Verdict::Valid, "{curve}");

        let point = key.len() - 2 * size - 1;
        assert_eq!(key[point], 0x04);
        for form in [0x00, 0x05, 0x06, 0x07] {
            let mut other = key.clone();
            other[point] = form;
            assert_ne!(verdict(&other), Verdict::Valid, "{curve} {form}");
        }
        let mut zero = key.clone();
        zero[point + 1..].fill(0);
        let mut all = key.clone();
        all[point + 1..].fill(0xff);
        for other in [zero, all] {
            assert_ne!(verdict(&other), Verdict::Valid, "{curve}");
        }
    }
}

#[test]
fn rsa_signatures_are_as_long_as_the_modulus_and_below_it() {
    let mut both = Both::new();
    let openssl = Tool::new();
    every_kind(&mut both, &openssl);
    let key = both.public_key("RSA");
    // SubjectPublicKeyInfo of RSA with 2048 bits and exponent 65537: the modulus stands
    // before 02 03 01 00 01.
    let modulus = &key[key.len() - 5 - 256..key.len() - 5];
    for algorithm in [
        SignatureAlgorithm::RsaPkcs1(Hash::Sha256),
        SignatureAlgorithm::RsaPss {
            hash: Hash::Sha256,
            salt_length: 32,
        },
    ] {
        let mut beyond = 0;
        let mut with_zero = 0;
        for round in 0_u16..2000 {
            let data = round.to_be_bytes();
            let signature = both.sign(algorithm, "RSA", &data);
            // The same number modulo n (RFC 8017, 8.1.2 and 8.2.2: out of range).
            let (sum, carried) = plus(&signature, modulus);
            if !carried && beyond < 3 {
                let verdict = both.verdict(algorithm, &key, &data, &sum);
                assert_eq!(verdict, Verdict::Invalid);
                beyond += 1;
            }
            // The same number without its zero in front.
            if signature[0] == 0 {
                assert_eq!(
                    both.verdict(algorithm, &key, &data, &signature),
                    Verdict::Valid
                );
                assert_eq!(
                    both.verdict(algorithm, &key, &data, &signature[1..]),
                    Verdict::Invalid
                );
                with_zero += 1;
            }
            if beyond == 3 && with_zero > 0 {
                break;
            }
        }
        assert!(with_zero > 0, "no signature began with a zero");
        let one = [&[0; 255][..], &[1]].concat();
        for number in [&[0; 256][..], modulus, &one] {
            let verdict = both.verdict(algorithm, &key, DATA, number);
            assert_eq!(verdict, Verdict::Invalid);
        }
    }
}

#[test]
fn the_salt_of_pss_is_as_long_as_it_says() {
    let openssl = Tool::new();
    let both = Both::new();
    openssl.write("data", DATA);
    openssl.run("genpkey -algorithm RSA -pkeyopt rsa_keygen_bits:2048 -out key.pem");
    openssl.run("pkey -in key.pem -pubout -outform DER -out public");
    let key = openssl.read("public");
    for salt in [0_u16, 20, 31, 32, 33, 64, 222] {
        openssl.run(&format!(
            "dgst -sha256 -sigopt rsa_padding_mode:pss -sigopt rsa_pss_saltlen:{salt} \
             -sign key.pem -out signature data"
        ));
        let signature = openssl.read("signature");
        for claimed in [0, 20, 31, 32, 33, 64, 222, 223, 1024] {
            let algorithm = SignatureAlgorithm::RsaPss {
                hash: Hash::Sha256,
                salt_length: claimed,
            };
            let expected = match claimed == salt {
                true => Verdict::Valid,
                false => Verdict::Invalid,
            };
            assert_eq!(
                both.verdict(algorithm, &key, DATA, &signature),
                expected,
                "{salt} {claimed}"
            );
        }
        // The mask generation must use the same hash.
        let algorithm = SignatureAlgorithm::RsaPss {
            hash: Hash::Sha384,
            salt_length: 48,
        };
        let verdict = both.verdict(algorithm, &key, DATA, &signature);
        assert_eq!(verdict, Verdict::Invalid);
    }
}

/// SubjectPublicKeyInfo of Ed25519 (RFC 8410, 4).
fn ed25519_key(point: &[u8; 32]) -> Vec<u8> {
    let mut key = vec![
        0x30, 0x2a, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x03, 0x21, 0x00,
    ];
    key.extend_from_slice(point);
    key
}

#[test]
fn ed25519_is_that_of_rfc_8032() {
    let mut both = Both::new();
    let openssl = Tool::new();
    every_kind(&mut both, &openssl);
    let algorithm = SignatureAlgorithm::Ed25519;

    // RFC 8032, 7.1, test 2.
    let key = ed25519_key(&unhex(
        "3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c",
    ));
    let signature: [u8; 64] = unhex(
        "92a009a9f0d4cab8720e820b5f642540a2b27b5416503f8fb3762223ebdb69da\
         085ac1e43e15996e458f3613d0f11d8c387b2eaeb4302aeeb00d291612bb0c00",
    );
    let verdict = both.verdict(algorithm, &key, &[0x72], &signature);
    assert_eq!(verdict, Verdict::Valid);

    // S and S + L are the same scalar; only the first is in range (RFC 8032, 5.1.7). L is
    // 2^252 + 27742317777372353535851937790883648493, here least significant octet first.
    let order: [u8; 32] = unhex("edd3f55c1a631258d69cf7a2def9de1400000000000000000000000000000010");
    let reversed = |octets: &[u8]| octets.iter().rev().copied().collect::<Vec<_>>();
    let (sum, carried) = plus(&reversed(&signature[32..]), &reversed(&order));
    assert!(!carried);
    let beyond = [&signature[..32], &reversed(&sum)].concat();
    let verdict = both.verdict(algorithm, &key, &[0x72], &beyond);
    assert_eq!(verdict, Verdict::Invalid);

    // The neutral point (0, 1) as key and R with S = 0 satisfies the equation for every
    // message. Odd as it is, RFC 8032 has nothing against it; only its one encoding counts
    // (5.1.3): y below 2^255 - 19, and no sign where x is 0.
    let neutral: [u8; 32] =
        unhex("0100000000000000000000000000000000000000000000000000000000000000");
    let beyond_prime: [u8; 32] =
        unhex("eeffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f");
    let signed: [u8; 32] =
        unhex("0100000000000000000000000000000000000000000000000000000000000080");
    for (key, r, expected) in [
        (neutral, neutral, Verdict::Valid),
        (beyond_prime, neutral, Verdict::Invalid),
        (signed, neutral, Verdict::Invalid),
        (neutral, beyond_prime, Verdict::Invalid),
        (neutral, signed, Verdict::Invalid),
    ] {
        let signature = [&r[..], &[0; 32]].concat();
        let verdict = both.verdict(algorithm, &ed25519_key(&key), DATA, &signature);
        assert_eq!(verdict, expected, "key {key:02x?}, R {r:02x?}");
    }
}

fn unhex<const N: usize>(text: &str) -> [u8; N] {
    assert_eq!(text.len(), 2 * N);
    std::array::from_fn(|index| {
        u8::from_str_radix(&text[2 * index..2 * index + 2], 16).expect("hexadecimal digits")
    })
}

/// Over the messages of other implementations, where a corpus lies beside the project.
#[test]
fn every_signature_of_the_corpus_has_one_verdict() {
    let both = Both::new();
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared/corpus");
    let mut judged = 0;
    for peer in [
        "openssl30",
        "openssl40",
        "bc172",
        "siemens-mockca",
        "siemens-ra",
    ] {
        let Ok(entries) = fs::read_dir(corpus.join(peer)) else {
            continue;
        };
        for entry in entries {
            let path = entry.expect("a readable corpus").path();
            if path.extension().is_none_or(|extension| extension != "der") {
                continue;
            }
            let octets = fs::read(&path).expect("a readable message");
            let Ok(message) = PkiMessage::from_der(&octets) else {
                continue;
            };
            if protection::protection_kind(&message) != ProtectionKind::Signature {
                continue;
            }
            let certificates: Vec<_> = message
                .extra_certs
                .iter()
                .filter_map(|der| Certificate::from_der(der).ok())
                .collect();
            // Whoever is trusted, every signature on the way is looked at.
            let Some(now) = certificates.first().map(|first| first.not_before.unix()) else {
                continue;
            };
            let anchors = Anchors::new(&certificates, Time::from_unix(now + 60));
            if protection::verify_signature(&message, anchors, &both).is_ok() {
                judged += 1;
            }
            for subject in &certificates {
                let algorithm = SignatureAlgorithm::from_identifier(
                    &subject.signature_algorithm,
                    Default::default(),
                );
                let Ok(algorithm) = algorithm else { continue };
                for issuer in &certificates {
                    both.verify(
                        algorithm,
                        &issuer.public_key,
                        subject.tbs,
                        subject.signature,
                    );
                }
            }
        }
    }
    assert!(
        !corpus.exists() || judged > 300,
        "only {judged} were judged"
    );
}

/// EMSA-PKCS1-v1_5 (RFC 8017, 9.2) of SHA-256 in `length` octets, as the RFC has it.
fn pkcs1_encoding(digest: &[u8], length: usize) -> Vec<u8> {
    let info = [
        0x30, 0x31, 0x30, 0x0d, 0x06, 0x09, 0x60, 0x86, 0x48, 0x01, 0x65, 0x03, 0x04, 0x02, 0x01,
        0x05, 0x00, 0x04, 0x20,
    ];
    let padding = vec![0xff; length - 3 - info.len() - digest.len()];
    [&[0, 1][..], &padding, &[0], &info, digest].concat()
}

#[test]
fn rsa_encodings_are_judged_whole() {
    let both = Both::new();
    let openssl = Tool::new();
    let algorithm = SignatureAlgorithm::RsaPkcs1(Hash::Sha256);
    // The sizes in use, one that fills no limb, and the small exponent under which a forger needs
    // no key if any octet of the encoding is left unread (RFC 8017, 8.2.2 and CVE-2006-4339).
    for (bits, exponent) in [
        (2048, 65537),
        (2048, 3),
        (2056, 65537),
        (2112, 17),
        (3072, 65537),
        (4096, 3),
    ] {
        let name = format!("RSA {bits} {exponent}");
        openssl.run(&format!(
            "genpkey -algorithm RSA -pkeyopt rsa_keygen_bits:{bits} \
             -pkeyopt rsa_keygen_pubexp:{exponent} -out key.pem"
        ));
        openssl.run("pkey -in key.pem -pubout -outform DER -out public");
        let key = openssl.read("public");
        let verdict = |encoding: &[u8]| {
            openssl.write("encoding", encoding);
            // Without padding, to decrypt is the bare operation with the private key.
            openssl.run(
                "pkeyutl -decrypt -inkey key.pem -pkeyopt rsa_padding_mode:none -in encoding \
                 -out signature",
            );
            both.verdict(algorithm, &key, DATA, &openssl.read("signature"))
        };
        let digest = Hash::Sha256.digest(DATA);
        let length = bits / 8;
        let good = pkcs1_encoding(&digest, length);
        assert_eq!(verdict(&good), Verdict::Valid, "{name}");

        let with = |at: usize, octet: u8| {
            let mut other = good.clone();
            other[at] = octet;
            other
        };
        let separator = length - 19 - 32 - 1;
        // The parameters of the hash left out, with the lengths that follow from it.
        let mut without_null = vec![0xff];
        without_null.extend_from_slice(&good);
        let null = without_null.len() - 32 - 2 - 2;
        without_null.drain(null..null + 2);
        without_null.insert(2, 0xff);
        without_null[..3].copy_from_slice(&[0, 1, 0xff]);
        without_null[null - 13] -= 2;
        without_null[null - 11] -= 2;
        // Ended early, with octets behind that the forger is free to choose.
        let mut early = [&good[..10], &good[separator..]].concat();
        early.resize(length, 0x55);
        for wrong in [
            with(1, 0),
            with(1, 2),
            with(2, 0xfe),
            with(separator - 1, 0),
            with(separator, 0xff),
            with(separator, 1),
            with(separator + 1, 0x31),
            with(length - 33, 0x21),
            with(length - 1, !good[length - 1]),
            without_null,
            early,
            pkcs1_encoding(&Hash::Sha256.digest(b"other data"), length),
        ] {
            assert_eq!(wrong.len(), length);
            assert_eq!(verdict(&wrong), Verdict::Invalid, "{name}: {wrong:02x?}");
        }
    }
}

#[test]
fn rsa_keys_are_odd_and_of_a_size_that_is_believed() {
    let mut both = Both::new();
    let openssl = Tool::new();
    every_kind(&mut both, &openssl);
    let algorithm = SignatureAlgorithm::RsaPkcs1(Hash::Sha256);
    let signature = both.sign(algorithm, "RSA", DATA);
    let key = both.public_key("RSA");
    assert_eq!(
        both.verdict(algorithm, &key, DATA, &signature),
        Verdict::Valid
    );
    let end = key.len();
    let with = |at: usize, octet: u8| {
        let mut other = key.clone();
        other[at] = octet;
        other
    };
    for (what, wrong) in [
        ("an even modulus", with(end - 6, key[end - 6] & !1)),
        ("an even exponent", with(end - 1, 0)),
        ("a negative exponent", with(end - 3, 0x81)),
        (
            "a modulus of 2047 bits",
            with(end - 5 - 256, key[end - 5 - 256] & 0x7f),
        ),
        ("a negative modulus", with(end - 5 - 257, 0xff)),
    ] {
        let verdict = both.verdict(algorithm, &wrong, DATA, &signature);
        assert_ne!(verdict, Verdict::Valid, "{what}");
    }
    openssl.run("genpkey -algorithm RSA -pkeyopt rsa_keygen_bits:1024 -out weak.pem");
    openssl.run("pkey -in weak.pem -pubout -outform DER -out weak");
    openssl.write("data", DATA);
    openssl.run("dgst -sha256 -sign weak.pem -out signature data");
    let verdict = both.verdict(
        algorithm,
        &openssl.read("weak"),
        DATA,
        &openssl.read("signature"),
    );
    assert_ne!(verdict, Verdict::Valid, "1024 bits");
}
