//! Descriptions of what no peer sends in good faith, and of parameters in words.

#![cfg(feature = "describe")]

use abide_cmp::der::{Writer, tag};
use abide_cmp::{Leniency, describe, oid};
use serde_json::Value;

fn described(der: &[u8]) -> Value {
    let text = describe(der, Leniency::STRICT).expect("a structure");
    serde_json::from_str(&text).expect("JSON")
}

/// A pkiconf with what comes after the recipient in its header.
fn message(more: impl FnOnce(&mut Writer)) -> Vec<u8> {
    Writer::encode(|w| {
        w.sequence(|w| {
            w.sequence(|w| {
                w.integer(2);
                w.raw(&[0xa4, 0x02, 0x30, 0x00]);
                w.raw(&[0xa4, 0x02, 0x30, 0x00]);
                more(w);
            });
            w.explicit(19, Writer::null);
        });
    })
}

fn with_algorithm(algorithm: &[u8]) -> Value {
    let der = message(|w| w.explicit(1, |w| w.raw(algorithm)));
    described(&der)["header"]["protectionAlg"].clone()
}

fn algorithm(oid: oid::Oid<'_>, parameters: &[u8]) -> Vec<u8> {
    Writer::encode(|w| {
        w.sequence(|w| {
            w.oid(oid);
            w.raw(parameters);
        });
    })
}

#[test]
fn password_based_parameters_are_shown_whatever_they_ask() {
    let parameters = Writer::encode(|w| {
        w.sequence(|w| {
            w.octet_string(b"salt");
            w.raw(&algorithm(oid::SHA256, &[5, 0]));
            w.integer(i64::from(i32::MAX));
            w.raw(&algorithm(oid::HMAC_SHA256, &[5, 0]));
        });
    });
    let shown = with_algorithm(&algorithm(oid::PASSWORD_BASED_MAC, &parameters));
    assert_eq!(shown["algorithm"], "id-PasswordBasedMac");
    assert_eq!(shown["salt"], "73616c74");
    assert_eq!(shown["iterationCount"], 2_147_483_647);
    assert_eq!(shown["mac"], "id-hmacWithSHA256");
}

#[test]
fn pbmac1_tells_its_key_derivation() {
    // PBMAC1-params with PBKDF2-params (RFC 8018, A.2 and A.5).
    let derivation = Writer::encode(|w| {
        w.sequence(|w| {
            w.octet_string(&[0xaa; 8]);
            w.integer(10_000);
            w.integer(32);
            w.raw(&algorithm(oid::HMAC_SHA512, &[5, 0]));
        });
    });
    let parameters = Writer::encode(|w| {
        w.sequence(|w| {
            w.raw(&algorithm(oid::PBKDF2, &derivation));
            w.raw(&algorithm(oid::HMAC_SHA256, &[5, 0]));
        });
    });
    let shown = with_algorithm(&algorithm(oid::PBMAC1, &parameters));
    let derivation = &shown["keyDerivationFunc"];
    assert_eq!(derivation["algorithm"], "id-PBKDF2");
    assert_eq!(derivation["iterationCount"], 10_000);
    assert_eq!(derivation["keyLength"], 32);
    assert_eq!(derivation["prf"], "id-hmacWithSHA512");
    assert_eq!(shown["messageAuthScheme"], "id-hmacWithSHA256");
}

#[test]
fn pss_and_kem_parameters_are_told() {
    // RSASSA-PSS-params with SHA-256, MGF1 with SHA-256 and a salt of 32 octets
    // (RFC 4055, 3.1), and the defaults where nothing is said.
    let parameters = Writer::encode(|w| {
        w.sequence(|w| {
            w.explicit(0, |w| w.raw(&algorithm(oid::SHA256, &[5, 0])));
            w.explicit(1, |w| {
                w.sequence(|w| {
                    w.raw(&[6, 9, 0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 1, 1, 8]);
                    w.raw(&algorithm(oid::SHA256, &[5, 0]));
                });
            });
            w.explicit(2, |w| w.integer(32));
        });
    });
    let shown = with_algorithm(&algorithm(oid::RSA_PSS, &parameters));
    assert_eq!(shown["hashAlgorithm"], "id-sha256");
    assert_eq!(shown["maskGenAlgorithm"]["hash"], "id-sha256");
    assert_eq!(shown["saltLength"], 32);
    let shown = with_algorithm(&algorithm(oid::RSA_PSS, &[0x30, 0]));
    assert_eq!(
        (&shown["hashAlgorithm"], &shown["saltLength"]),
        (&"id-sha1".into(), &20.into())
    );
    // KemBMParameter (RFC 9810, 5.1.3.4).
    let parameters = Writer::encode(|w| {
        w.sequence(|w| {
            w.raw(&algorithm(oid::SHA256, &[]));
            w.explicit(0, |w| w.octet_string(b"ctx"));
            w.integer(32);
            w.raw(&algorithm(oid::HMAC_SHA256, &[]));
        });
    });
    let shown = with_algorithm(&algorithm(oid::KEM_BASED_MAC, &parameters));
    assert_eq!(shown["kemContext"], "637478");
    assert_eq!(
        (&shown["len"], &shown["mac"]),
        (&32.into(), &"id-hmacWithSHA256".into())
    );
}

/// Whatever is put inside itself ends somewhere, whether a stack is large or small.
#[test]
fn nothing_goes_down_without_end() {
    let mut nested = algorithm(oid::SHA256, &[5, 0]);
    while nested.len() < 30_000 {
        nested = algorithm(oid::SHA256, &nested);
    }
    assert_eq!(with_algorithm(&nested)["algorithm"], "id-sha256");

    let mut inner = message(|_| {});
    while inner.len() < 30_000 {
        let original = inner;
        inner = message(|w| {
            w.explicit(8, |w| {
                w.sequence(|w| {
                    w.sequence(|w| {
                        w.oid(oid::IT_ORIG_PKI_MESSAGE);
                        w.sequence(|w| w.raw(&original));
                    });
                });
            });
        });
    }
    let shown = described(&inner).to_string();
    assert_eq!(shown.matches("id-it-origPKIMessage").count(), 5);

    for control in [oid::REG_INFO_CERT_REQ, oid::REG_CTRL_ALT_CERT_TEMPLATE] {
        let mut value = vec![5, 0];
        while value.len() < 30_000 {
            let inside = value;
            let attribute = Writer::encode(|w| {
                w.sequence(|w| {
                    w.oid(control);
                    w.raw(&inside);
                });
            });
            value = match control == oid::REG_INFO_CERT_REQ {
                false => attribute,
                true => Writer::encode(|w| {
                    w.sequence(|w| {
                        w.integer(0);
                        w.sequence(|_| {});
                        w.sequence(|w| w.raw(&attribute));
                    });
                }),
            };
        }
        let request = Writer::encode(|w| {
            w.sequence(|w| {
                w.integer(0);
                w.sequence(|w| w.raw(&[0xa5, 0x02, 0x30, 0x00]));
                w.sequence(|w| {
                    w.sequence(|w| {
                        w.oid(control);
                        w.raw(&value);
                    });
                });
            });
        });
        assert_eq!(described(&request)["type"], "CertRequest");
    }
}

#[test]
fn a_long_crl_is_counted_and_not_listed_whole() {
    let der = Writer::encode(|w| {
        w.sequence(|w| {
            w.sequence(|w| {
                w.integer(1);
                w.raw(&algorithm(oid::ECDSA_SHA256, &[]));
                w.raw(&[0x30, 0]);
                w.element(tag::UTC_TIME, b"260101000000Z");
                w.sequence(|w| {
                    for serial in 1..=1000 {
                        w.sequence(|w| {
                            w.integer(serial);
                            w.element(tag::UTC_TIME, b"250101000000Z");
                        });
                    }
                });
            });
            w.raw(&algorithm(oid::ECDSA_SHA256, &[]));
            w.bits(tag::BIT_STRING, &[1]);
        });
    });
    let shown = described(&der);
    assert_eq!(shown["revokedCount"], 1000);
    let listed = shown["revokedCertificates"].as_array().expect("entries");
    assert_eq!(listed.len(), 256);
    assert_eq!(listed[255]["userCertificate"], "0100");
    assert_eq!(shown["nextUpdate"], Value::Null);
}

#[test]
fn the_fault_is_that_of_the_type_it_comes_closest_to() {
    let fault = |der: &[u8]| {
        describe(der, Leniency::STRICT)
            .expect_err("broken")
            .to_string()
    };
    // A header whose pvno is 9.
    let mut der = message(|_| {});
    der[6] = 9;
    assert!(
        fault(&der).contains("header.pvno: pvno 9"),
        "{}",
        fault(&der)
    );
    // A certificate whose serial number is missing.
    let signed = Writer::encode(|w| {
        w.sequence(|w| {
            w.sequence(|w| w.explicit(0, |w| w.integer(2)));
            w.raw(&algorithm(oid::ECDSA_SHA256, &[]));
            w.bits(tag::BIT_STRING, &[1]);
        });
    });
    let text = fault(&signed);
    assert!(text.contains("certificate.serialNumber"), "{text}");
    assert_eq!(
        fault(b"<html>"),
        "octet 0: expected a SEQUENCE, found tag 0x3c"
    );
}
