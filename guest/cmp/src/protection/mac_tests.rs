use alloc::string::String;
use alloc::vec::Vec;

use super::super::Kdf;
use super::*;

fn hex(octets: &[u8]) -> String {
    octets.iter().map(|o| alloc::format!("{o:02x}")).collect()
}

fn unhex(text: &str) -> Vec<u8> {
    let digits: Vec<u8> = text
        .chars()
        .filter(|c| !c.is_whitespace())
        .map(|c| c.to_digit(16).unwrap() as u8)
        .collect();
    digits
        .chunks(2)
        .map(|pair| pair[0] << 4 | pair[1])
        .collect()
}

fn read<'a>(
    oid: oid::Oid<'a>,
    parameters: &'a [u8],
    policy: Policy,
) -> Result<MacAlgorithm<'a>, Unsupported> {
    let identifier = AlgorithmIdentifier {
        oid,
        parameters: Some(parameters),
    };
    MacAlgorithm::read(&identifier, Some(&[7; 16]), policy)
}

fn pbm(iterations: i64, salt: &[u8], owf: oid::Oid<'_>, mac: oid::Oid<'_>) -> Vec<u8> {
    Writer::encode(|w| {
        w.sequence(|w| {
            w.octet_string(salt);
            AlgorithmIdentifier::bare(owf).write(w);
            w.integer(iterations);
            AlgorithmIdentifier::bare(mac).write(w);
        });
    })
}

/// PBMAC1-params as a peer writes them; `prf` is left out where it is none.
fn pbmac1_der(
    iterations: i64,
    salt: &[u8],
    key_length: Option<i64>,
    prf: Option<oid::Oid<'_>>,
    mac: oid::Oid<'_>,
) -> Vec<u8> {
    Writer::encode(|w| {
        w.sequence(|w| {
            w.sequence(|w| {
                w.oid(oid::PBKDF2);
                w.sequence(|w| {
                    w.octet_string(salt);
                    w.integer(iterations);
                    if let Some(length) = key_length {
                        w.integer(length);
                    }
                    if let Some(prf) = prf {
                        AlgorithmIdentifier::with_null(prf).write(w);
                    }
                });
            });
            AlgorithmIdentifier::with_null(mac).write(w);
        });
    })
}

#[test]
fn hmac_is_that_of_rfc_4231() {
    // RFC 4231, 4.3: key "Jefe".
    let data = b"what do ya want for nothing?";
    for (hash, expected) in [
        (
            Hash::Sha224,
            "a30e01098bc6dbbf45690f3a7e9e6d0f8bbea2a39e6148008fd05e44",
        ),
        (
            Hash::Sha256,
            "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843",
        ),
    ] {
        assert_eq!(
            hex(&MacAlgorithm::Hmac(hash).compute(b"Jefe", data)),
            expected
        );
    }
}

#[test]
fn pbkdf2_is_that_of_rfc_6070_and_7914() {
    // RFC 6070, 2: the fifth.
    let key = pbkdf2(
        Hash::Sha1,
        b"passwordPASSWORDpassword",
        b"saltSALTsaltSALTsaltSALTsaltSALTsalt",
        4096,
        25,
    );
    assert_eq!(
        hex(&key),
        "3d2eec4fe41c849b80c8d83662c0e44a8b291a964cf2f07038"
    );
    // RFC 7914, 11: the first.
    let key = pbkdf2(Hash::Sha256, b"passwd", b"salt", 1, 64);
    assert_eq!(
        hex(&key),
        "55ac046e56e3089fec1691c22544b605f94185216dde0465e68b9d57c20dacbc\
         49ca9cccf179b645991664b39d77ef317c71b845b1e30bd509112041d3a19783"
    );
}

#[test]
fn hkdf_is_that_of_rfc_5869() {
    // RFC 5869, A.3: no salt and no info.
    let key = Kdf::Hkdf(Hash::Sha256).derive(&[0x0b; 22], &[], 42);
    assert_eq!(
        hex(&key),
        "8da4e775a563c18f715f802a063c5a31b8a11f5c5ee1879ec3454e5f3c738d2d9d201395faa4b61a96c8"
    );
}

#[test]
fn kdf3_hashes_counter_secret_and_info() {
    // By hand, from its definition: SHA-256 of 00000001 and "abc", as `printf
    // '\0\0\0\1abc' | sha256sum` and the same with \2 give them.
    let key = Kdf::Kdf3(Hash::Sha256).derive(b"ab", b"c", 40);
    assert_eq!(hex(&key), KDF3_ABC);
}

const KDF3_ABC: &str =
    "f9c4a2ab4de81ade0bbf55389f4a5002ad85ee56ce51f84f159a1e32a72924113dc693fb05f87048";

#[test]
fn a_bomb_is_refused_before_anything_is_derived() {
    // Nothing is derived while an algorithm is read, and without an algorithm nothing can
    // be: that it cannot be read is all there is to show.
    let (owf, mac) = (oid::SHA256, oid::HMAC_SHA256);
    let policy = Policy::default();
    assert!(
        read(
            oid::PASSWORD_BASED_MAC,
            &pbm(500, &[1; 16], owf, mac),
            policy
        )
        .is_ok()
    );
    for iterations in [i64::from(i32::MAX), i64::MAX, 100_001, 99, 0, -1, i64::MIN] {
        let parameters = pbm(iterations, &[1; 16], owf, mac);
        let read = read(oid::PASSWORD_BASED_MAC, &parameters, policy);
        assert!(read.is_err(), "{iterations}");
    }
    // SHA-512 takes twice as long.
    for (iterations, accepted) in [(50_000, true), (50_001, false)] {
        let parameters = pbm(iterations, &[1; 16], oid::SHA512, oid::HMAC_SHA512);
        let read = read(oid::PASSWORD_BASED_MAC, &parameters, policy);
        assert_eq!(read.is_ok(), accepted, "{iterations}");
    }
    let parameters = pbm(500, &[1; 129], owf, mac);
    assert!(read(oid::PASSWORD_BASED_MAC, &parameters, policy).is_err());

    let good = (2048, 16, Some(32));
    let bad = [
        (i64::from(i32::MAX), 16, Some(32)),
        (i64::MAX, 16, Some(32)),
        (99, 16, Some(32)),
        (-1, 16, Some(32)),
        (2048, 129, Some(32)),
        (2048, 16, Some(1)),
        (2048, 16, Some(19)),
        (2048, 16, Some(0)),
        (2048, 16, Some(-1)),
        (2048, 16, Some(129)),
        (2048, 16, Some(i64::MAX)),
        // Four blocks of SHA-256, each of which takes all iterations.
        (25_001, 16, Some(128)),
    ];
    let der = |(iterations, salt, length): (i64, usize, Option<i64>)| {
        pbmac1_der(iterations, &alloc::vec![1; salt], length, Some(mac), mac)
    };
    assert!(read(oid::PBMAC1, &der(good), policy).is_ok());
    assert!(read(oid::PBMAC1, &der((25_000, 16, Some(128))), policy).is_ok());
    for case in bad {
        assert!(read(oid::PBMAC1, &der(case), policy).is_err(), "{case:?}");
    }
}

#[test]
fn pbmac1_is_that_of_openssl() {
    // prf HMAC-SHA-512, salt 0102…08, 2048 iterations, 24 octets, HMAC-SHA-256 over "data":
    // openssl kdf -keylen 24 -kdfopt digest:SHA512 -kdfopt pass:secret
    //   -kdfopt hexsalt:0102030405060708 -kdfopt iter:2048 PBKDF2
    // printf data | openssl dgst -sha256 -mac HMAC -macopt hexkey:…
    let salt = [1, 2, 3, 4, 5, 6, 7, 8];
    let parameters = pbmac1_der(
        2048,
        &salt,
        Some(24),
        Some(oid::HMAC_SHA512),
        oid::HMAC_SHA256,
    );
    let algorithm = read(oid::PBMAC1, &parameters, Policy::default()).unwrap();
    assert_eq!(
        hex(&algorithm.compute(b"secret", b"data")),
        "cff5c70087af7572aff352c7cef45118258cf0da72be9ba573c0488163d6b059"
    );
    assert_eq!(algorithm.parameters(), parameters);
}

#[test]
fn the_key_of_pbmac1_is_as_long_as_its_mac_unless_said_otherwise() {
    let prf = Some(oid::HMAC_SHA256);
    let parameters = pbmac1_der(2048, &[1; 8], None, prf, oid::HMAC_SHA512);
    let MacAlgorithm::Pbmac1 { key_length, .. } =
        read(oid::PBMAC1, &parameters, Policy::default()).unwrap()
    else {
        panic!("another algorithm")
    };
    assert_eq!(key_length, 64);
}

#[test]
fn sha_1_is_for_the_mac_of_pbm_and_else_for_who_allows_it() {
    let strict = Policy::default();
    let parameters = pbm(500, &[1; 16], oid::SHA256, oid::HMAC_SHA1_IPSEC);
    assert!(read(oid::PASSWORD_BASED_MAC, &parameters, strict).is_ok());
    let refused = [
        (
            oid::PASSWORD_BASED_MAC,
            pbm(500, &[1; 16], oid::SHA1, oid::HMAC_SHA256),
        ),
        (
            oid::PBMAC1,
            pbmac1_der(2048, &[1; 8], Some(32), None, oid::HMAC_SHA256),
        ),
        (
            oid::PBMAC1,
            pbmac1_der(
                2048,
                &[1; 8],
                Some(32),
                Some(oid::HMAC_SHA256),
                oid::HMAC_SHA1,
            ),
        ),
        (oid::HMAC_SHA1, alloc::vec![0x05, 0x00]),
    ];
    for (oid, parameters) in refused {
        let error = read(oid, &parameters, strict).unwrap_err();
        assert!(matches!(error, Unsupported::Sha1(_)), "{oid}: {error}");
        assert!(read(oid, &parameters, Policy::ALLOW_SHA1).is_ok(), "{oid}");
    }
}

#[test]
fn what_is_not_done_is_named() {
    let none = Policy::default();
    for (oid, words) in [
        (oid::DH_BASED_MAC, "Diffie-Hellman"),
        (oid::KMAC128, "id-KMAC128"),
        (oid::AES256_GMAC, "id-aes256-GMAC"),
    ] {
        let identifier = AlgorithmIdentifier::bare(oid);
        assert!(MacAlgorithm::is_mac(&identifier), "{oid}");
        let error = MacAlgorithm::from_identifier(&identifier, none);
        let text = alloc::format!("{}", error.unwrap_err());
        let missing = alloc::format!("{oid}: {text}");
        assert!(
            text.contains(words) || text.contains("without its parameters"),
            "{missing}"
        );
    }
}

#[test]
fn a_key_of_a_kem_is_bound_to_its_transaction() {
    // KemOtherInfo by hand: SEQUENCE { SEQUENCE { "CMP-KEM" }, OCTET STRING, [0] OCTET STRING }
    let parameters = KemParameters {
        kdf: Kdf::Hkdf(Hash::Sha256),
        context: Some(&[9]),
        key_length: 32,
        mac: Hash::Sha256,
    };
    assert_eq!(
        parameters.other_info(&[0xaa, 0xbb]),
        unhex("3014 3009 0c07434d502d4b454d 0402aabb a003040109")
    );
    let der = Writer::encode(|w| parameters.write(w));
    // kdf id-alg-hkdf-with-sha256, kemContext 09, len 32, mac hmacWithSHA256 NULL.
    assert_eq!(
        der,
        unhex(
            "3025 300d 060b2a864886f70d010910031c a003040109 020120 \
             300c 06082a864886f70d0209 0500"
        )
    );
    let read = read(oid::KEM_BASED_MAC, &der, Policy::default()).unwrap();
    assert_eq!(
        read,
        MacAlgorithm::KemBased {
            parameters,
            transaction_id: &[7; 16],
        }
    );
    let identifier = AlgorithmIdentifier {
        oid: oid::KEM_BASED_MAC,
        parameters: Some(&der),
    };
    assert!(MacAlgorithm::from_identifier(&identifier, Policy::default()).is_err());
    // The protected part of a message whose names have the tag of the transactionID.
    let part = Writer::encode(|w| {
        w.sequence(|w| {
            w.sequence(|w| {
                w.integer(3);
                w.explicit(4, |w| w.sequence(|_| ()));
                w.explicit(4, |w| w.sequence(|_| ()));
                w.explicit(4, |w| w.octet_string(&[7; 16]));
            });
            w.explicit(19, Writer::null);
        });
    });
    assert_eq!(
        compute_mac(&identifier, Policy::default(), b"shared", &part).unwrap(),
        read.compute(b"shared", &part)
    );
}

#[test]
fn unequal_is_unequal() {
    assert!(constant_time_eq(&[1, 2], &[1, 2]));
    assert!(!constant_time_eq(&[1, 2], &[1, 3]));
    assert!(!constant_time_eq(&[1, 2], &[1]));
    assert!(constant_time_eq(&[], &[]));
}
