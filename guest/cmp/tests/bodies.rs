//! Bodies that no peer at hand sends, put together element by element after the productions
//! of RFC 9810, RFC 4211 and RFC 5652: each is read, its fields looked at, and written back.

use abide_cmp::der::{Writer, tag};
use abide_cmp::{
    BodyType, CaKeyUpdContent, CertOrEncCert, Context, Draft, EncryptedKey, InfoTypeAndValue,
    InfoValue, PkiBody, PkiMessage, PkiStatus, PopoPrivKey, ProofOfPossession, RecipientKind, oid,
};

/// What stands in for a certificate or CRL where only its tag matters.
const CERTIFICATE: [u8; 5] = [0x30, 0x03, 0x02, 0x01, 0x07];

fn header(w: &mut Writer) {
    w.sequence(|w| {
        w.integer(3);
        w.raw(&[0xa4, 0x02, 0x30, 0x00]);
        w.raw(&[0xa4, 0x02, 0x30, 0x00]);
        w.explicit(4, |w| w.octet_string(&[7; 16]));
    });
}

/// An unprotected message with the content of a body.
fn message(body: BodyType, content: impl FnOnce(&mut Writer)) -> Vec<u8> {
    Writer::encode(|w| {
        w.sequence(|w| {
            header(w);
            w.explicit(body as u8, content);
        });
    })
}

/// Reads a message, lets its body be looked at, and writes it back; then the same for the
/// message with each single bit flipped, as far as it can still be read.
fn check(der: &[u8], body: BodyType, look: impl FnOnce(&PkiBody<'_>)) {
    let message = match PkiMessage::from_der(der) {
        Ok(message) => message,
        Err(error) => panic!("{}: {error}", body.name()),
    };
    assert_eq!(message.body.body_type(), body);
    look(&message.body);
    assert!(comes_back(der), "{} changed when written back", body.name());
    for bit in 0..der.len() * 8 {
        let mut changed = der.to_vec();
        changed[bit / 8] ^= 1 << (bit % 8);
        assert!(
            comes_back(&changed),
            "{} with bit {bit} flipped",
            body.name()
        );
    }
    for length in 0..der.len() {
        PkiMessage::from_der(&der[..length]).expect_err("half a message");
    }
}

/// Whether what can be read is written as it was; what cannot says where.
fn comes_back(der: &[u8]) -> bool {
    match PkiMessage::from_der(der) {
        Ok(message) => {
            let draft = Draft::new(&message.header, &message.body);
            draft.finish(message.protection, &message.extra_certs) == der
        }
        Err(error) => error.offset() <= der.len(),
    }
}

fn enveloped_data(w: &mut Writer, outer: u8) {
    w.nested(outer, |w| {
        w.integer(2);
        w.nested(tag::SET, |w| {
            w.sequence(|w| w.integer(0));
            w.nested(tag::constructed(1), |w| w.integer(3));
            w.nested(tag::constructed(3), |w| w.integer(0));
        });
        w.sequence(|w| {
            // id-signedData.
            w.raw(&[
                0x06, 0x09, 0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x07, 0x02,
            ]);
            w.sequence(|w| w.oid(oid::SHA256));
            w.element(tag::primitive(0), &[1, 2, 3]);
        });
    });
}

fn cert_id(w: &mut Writer, serial: i64) {
    w.sequence(|w| {
        w.raw(&[0xa4, 0x02, 0x30, 0x00]);
        w.integer(serial);
    });
}

#[test]
fn challenges_of_both_versions() {
    let der = message(BodyType::Popdecc, |w| {
        w.sequence(|w| {
            w.sequence(|w| {
                w.sequence(|w| w.oid(oid::SHA256));
                w.octet_string(b"witness");
                w.octet_string(b"challenge");
            });
            w.sequence(|w| {
                w.octet_string(b"another");
                w.octet_string(b"");
                w.explicit(0, |w| enveloped_data(w, tag::SEQUENCE));
            });
        });
    });
    check(&der, BodyType::Popdecc, |body| {
        let PkiBody::Popdecc(challenges) = body else {
            panic!()
        };
        assert_eq!(challenges[0].witness, b"witness");
        assert!(challenges[0].owf.is_some() && challenges[0].encrypted_rand.is_none());
        let rand = challenges[1]
            .encrypted_rand
            .as_ref()
            .expect("encryptedRand");
        use RecipientKind::{KeyAgreement, KeyTransport, Password};
        assert_eq!(rand.recipients, [KeyTransport, KeyAgreement, Password]);
    });
    let der = message(BodyType::Popdecr, |w| {
        w.sequence(|w| {
            w.integer(5);
            // 2⁶⁴: more than the machine's integers hold.
            w.element(tag::INTEGER, &[1, 0, 0, 0, 0, 0, 0, 0, 0]);
        });
    });
    check(&der, BodyType::Popdecr, |body| {
        let PkiBody::Popdecr(numbers) = body else {
            panic!()
        };
        assert_eq!(*numbers, [&[5][..], &[1, 0, 0, 0, 0, 0, 0, 0, 0]]);
    });
}

fn request(w: &mut Writer, popo: impl FnOnce(&mut Writer)) {
    w.sequence(|w| {
        w.sequence(|w| {
            w.sequence(|w| {
                w.integer(0);
                // subject [5] is EXPLICIT, because a Name is a CHOICE.
                w.sequence(|w| w.raw(&[0xa5, 0x02, 0x30, 0x00]));
                w.sequence(|w| {
                    w.sequence(|w| {
                        w.oid(oid::REG_CTRL_OLD_CERT_ID);
                        cert_id(w, 77);
                    });
                });
            });
            popo(w);
        });
    });
}

#[test]
fn requests_with_every_proof_of_possession() {
    type Proof = (fn(&mut Writer), fn(&ProofOfPossession<'_>) -> bool);
    let proofs: [Proof; 7] = [
        (
            |w| w.raw(&[0x80, 0x00]),
            |p| matches!(p, ProofOfPossession::RaVerified),
        ),
        (
            |w| w.raw(&[0xa2, 0x03, 0x81, 0x01, 0x00]),
            |p| matches!(p, ProofOfPossession::KeyEncipherment(PopoPrivKey::EncrCert)),
        ),
        (
            |w| w.raw(&[0xa3, 0x03, 0x81, 0x01, 0x01]),
            |p| {
                matches!(
                    p,
                    ProofOfPossession::KeyAgreement(PopoPrivKey::ChallengeResp)
                )
            },
        ),
        (
            |w| w.raw(&[0xa2, 0x04, 0x80, 0x02, 0x00, 0xaa]),
            |p| {
                matches!(
                    p,
                    ProofOfPossession::KeyEncipherment(PopoPrivKey::ThisMessage([0xaa]))
                )
            },
        ),
        (
            |w| w.raw(&[0xa3, 0x04, 0x82, 0x02, 0x00, 0xbb]),
            |p| {
                matches!(
                    p,
                    ProofOfPossession::KeyAgreement(PopoPrivKey::DhMac([0xbb]))
                )
            },
        ),
        (
            |w| w.raw(&[0xa3, 0x0b, 0xa3, 0x09, 0x30, 3, 6, 1, 0x2a, 3, 2, 0, 0xaa]),
            |p| {
                matches!(
                    p,
                    ProofOfPossession::KeyAgreement(PopoPrivKey::AgreeMac([
                        0x30, 3, 6, 1, 0x2a, 3, 2, 0, 0xaa
                    ]))
                )
            },
        ),
        (
            |w| w.explicit(2, |w| enveloped_data(w, tag::constructed(4))),
            |p| {
                matches!(
                    p,
                    ProofOfPossession::KeyEncipherment(PopoPrivKey::EncryptedKey(_))
                )
            },
        ),
    ];
    for body in [
        BodyType::Ir,
        BodyType::Cr,
        BodyType::Kur,
        BodyType::Krr,
        BodyType::Ccr,
    ] {
        for (write, is_it) in &proofs {
            let der = message(body, |w| request(w, write));
            check(&der, body, |content| {
                let (PkiBody::Ir(requests)
                | PkiBody::Cr(requests)
                | PkiBody::Kur(requests)
                | PkiBody::Krr(requests)
                | PkiBody::Ccr(requests)) = content
                else {
                    panic!()
                };
                let popo = requests[0].popo.as_ref().expect("popo");
                assert!(is_it(popo), "{popo:?}");
                assert_eq!(
                    requests[0].request.controls[0].oid,
                    oid::REG_CTRL_OLD_CERT_ID
                );
            });
        }
    }
}

#[test]
fn responses_with_keys_in_both_forms() {
    let pair = |w: &mut Writer, enveloped: bool| {
        w.sequence(|w| {
            w.explicit(0, |w| w.raw(&CERTIFICATE));
            w.explicit(0, |w| match enveloped {
                true => enveloped_data(w, tag::constructed(0)),
                // EncryptedValue with symmAlg [1], encSymmKey [2] and encValue.
                false => w.sequence(|w| {
                    w.nested(tag::constructed(1), |w| w.oid(oid::SHA256));
                    w.bits(tag::primitive(2), &[9]);
                    w.bits(tag::BIT_STRING, &[8]);
                }),
            });
        });
    };
    for enveloped in [false, true] {
        for body in [BodyType::Ip, BodyType::Cp, BodyType::Kup, BodyType::Ccp] {
            let der = message(body, |w| {
                w.sequence(|w| {
                    w.explicit(1, |w| w.sequence(|w| w.raw(&CERTIFICATE)));
                    w.sequence(|w| {
                        w.sequence(|w| {
                            w.integer(0);
                            w.sequence(|w| w.integer(0));
                            pair(w, enveloped);
                        });
                    });
                });
            });
            check(&der, body, |content| {
                let (PkiBody::Ip(content)
                | PkiBody::Cp(content)
                | PkiBody::Kup(content)
                | PkiBody::Ccp(content)) = content
                else {
                    panic!()
                };
                let pair = content.responses[0]
                    .certified_key_pair
                    .as_ref()
                    .expect("a pair");
                assert_eq!(
                    pair.cert_or_enc_cert,
                    CertOrEncCert::Certificate(&CERTIFICATE)
                );
                let key = pair.private_key.as_ref().expect("a key");
                assert_eq!(matches!(key, EncryptedKey::EnvelopedData(_)), enveloped);
            });
        }
        let der = message(BodyType::Krp, |w| {
            w.sequence(|w| {
                w.sequence(|w| w.integer(0));
                w.explicit(0, |w| w.raw(&CERTIFICATE));
                w.explicit(1, |w| w.sequence(|w| w.raw(&CERTIFICATE)));
                w.explicit(2, |w| w.sequence(|w| pair(w, enveloped)));
            });
        });
        check(&der, BodyType::Krp, |content| {
            let PkiBody::Krp(content) = content else {
                panic!()
            };
            assert_eq!(content.new_sig_cert, Some(&CERTIFICATE[..]));
            assert_eq!(
                (content.ca_certs.len(), content.key_pair_hist.len()),
                (1, 1)
            );
        });
    }
}

#[test]
fn revocations() {
    let der = message(BodyType::Rr, |w| {
        w.sequence(|w| {
            w.sequence(|w| {
                // serialNumber [1] 77 and issuer [3].
                w.sequence(|w| w.raw(&[0x81, 0x01, 0x4d, 0xa3, 0x02, 0x30, 0x00]));
                w.sequence(|w| {
                    w.sequence(|w| {
                        // id-ce-cRLReasons: keyCompromise.
                        w.raw(&[0x06, 0x03, 0x55, 0x1d, 0x15]);
                        w.octet_string(&[0x0a, 0x01, 0x01]);
                    });
                });
            });
        });
    });
    check(&der, BodyType::Rr, |body| {
        let PkiBody::Rr(details) = body else { panic!() };
        assert_eq!(
            details[0].cert_details.others,
            [(1, &[0x81, 0x01, 0x4d][..])]
        );
        assert_eq!(details[0].crl_entry_details[0].value, [0x0a, 0x01, 0x01]);
    });
    let der = message(BodyType::Rp, |w| {
        w.sequence(|w| {
            w.sequence(|w| w.sequence(|w| w.integer(5)));
            w.explicit(0, |w| w.sequence(|w| cert_id(w, 77)));
            w.explicit(1, |w| w.sequence(|w| w.raw(&CERTIFICATE)));
        });
    });
    check(&der, BodyType::Rp, |body| {
        let PkiBody::Rp(content) = body else { panic!() };
        assert_eq!(content.status[0].status, PkiStatus::RevocationNotification);
        assert_eq!(content.rev_certs[0].serial_number, [77]);
        assert_eq!(content.crls, [&CERTIFICATE[..]]);
    });
    let der = message(BodyType::Rann, |w| {
        w.sequence(|w| {
            w.integer(4);
            cert_id(w, 77);
            w.element(tag::GENERALIZED_TIME, b"20240217171209Z");
            w.element(tag::GENERALIZED_TIME, b"20240217171208Z");
        });
    });
    check(&der, BodyType::Rann, |body| {
        let PkiBody::Rann(content) = body else {
            panic!()
        };
        assert_eq!(content.will_be_revoked_at.unix(), 1_708_189_929);
        assert_eq!(content.bad_since_date.unix(), 1_708_189_928);
    });
}

#[test]
fn announcements() {
    let der = message(BodyType::Ckuann, |w| {
        w.sequence(|w| (0..3).for_each(|_| w.raw(&CERTIFICATE)));
    });
    check(&der, BodyType::Ckuann, |body| {
        assert!(matches!(body, PkiBody::Ckuann(CaKeyUpdContent::V2 { .. })));
    });
    let der = message(BodyType::Ckuann, |w| {
        w.explicit(0, |w| {
            w.sequence(|w| {
                w.raw(&CERTIFICATE);
                w.explicit(1, |w| w.raw(&CERTIFICATE));
            });
        });
    });
    check(&der, BodyType::Ckuann, |body| {
        let PkiBody::Ckuann(CaKeyUpdContent::V3(content)) = body else {
            panic!()
        };
        assert!(content.new_with_old.is_none() && content.old_with_new.is_some());
    });
    let der = message(BodyType::Cann, |w| w.raw(&CERTIFICATE));
    check(&der, BodyType::Cann, |body| {
        assert_eq!(*body, PkiBody::Cann(&CERTIFICATE))
    });
    let der = message(BodyType::Crlann, |w| w.sequence(|w| w.raw(&CERTIFICATE)));
    check(&der, BodyType::Crlann, |body| {
        assert_eq!(*body, PkiBody::Crlann(vec![&CERTIFICATE]));
    });
}

#[test]
fn nesting_has_an_end() {
    let mut der = message(BodyType::PkiConf, Writer::null);
    for depth in 1..=4 {
        let inner = der;
        der = message(BodyType::Nested, |w| w.sequence(|w| w.raw(&inner)));
        check(&der, BodyType::Nested, |body| {
            assert_eq!(*body, PkiBody::Nested(vec![&inner]), "depth {depth}");
        });
    }
    let der = message(BodyType::Nested, |w| w.sequence(|w| w.raw(&der)));
    let error = PkiMessage::from_der(&der).expect_err("five deep");
    assert!(error.to_string().contains("more than 4"), "{error}");
    let none = message(BodyType::Nested, |w| w.sequence(|_| {}));
    assert!(
        PkiMessage::from_der(&none).is_err(),
        "PKIMessages without a message"
    );
}

#[test]
fn information_is_interpreted_by_its_type() {
    let texts = Writer::encode(|w| w.sequence(|w| w.utf8("profile")));
    let certificates = Writer::encode(|w| w.sequence(|w| w.raw(&CERTIFICATE)));
    let kem = Writer::encode(|w| {
        w.sequence(|w| {
            w.sequence(|w| w.oid(oid::SHA256));
            w.octet_string(b"ct");
        });
    });
    let status = Writer::encode(|w| {
        w.sequence(|w| {
            w.sequence(|w| {
                w.explicit(1, |w| w.sequence(|w| w.raw(&[0xa4, 0x02, 0x30, 0x00])));
                w.element(tag::UTC_TIME, b"240217171209Z");
            });
        });
    });
    type IsIt = fn(&InfoValue<'_>) -> bool;
    let values: [(InfoTypeAndValue<'_>, IsIt); 6] = [
        (InfoTypeAndValue::IMPLICIT_CONFIRM, |v| {
            *v == InfoValue::ImplicitConfirm
        }),
        (
            InfoTypeAndValue {
                info_type: oid::IT_CERT_PROFILE,
                value: Some(&texts),
            },
            |v| matches!(v, InfoValue::Texts(texts) if texts.joined() == "profile"),
        ),
        (
            InfoTypeAndValue {
                info_type: oid::IT_CA_CERTS,
                value: Some(&certificates),
            },
            |v| matches!(v, InfoValue::Certificates(list) if list.len() == 1),
        ),
        (
            InfoTypeAndValue {
                info_type: oid::IT_KEM_CIPHERTEXT_INFO,
                value: Some(&kem),
            },
            |v| {
                matches!(
                    v,
                    InfoValue::KemCiphertext {
                        ciphertext: b"ct",
                        ..
                    }
                )
            },
        ),
        (
            InfoTypeAndValue {
                info_type: oid::IT_CRL_STATUS_LIST,
                value: Some(&status),
            },
            |v| matches!(v, InfoValue::CrlStatusList(list) if list[0].this_update.is_some()),
        ),
        (
            InfoTypeAndValue {
                info_type: oid::IT_ROOT_CA_CERT,
                value: None,
            },
            |v| *v == InfoValue::Absent,
        ),
    ];
    for (info, is_it) in &values {
        let value = info.interpret().expect("a value of its type");
        assert!(is_it(&value), "{:?}: {value:?}", info.info_type);
    }
    let wrong = InfoTypeAndValue {
        info_type: oid::IT_CONFIRM_WAIT_TIME,
        value: Some(&texts),
    };
    wrong
        .interpret()
        .at("generalInfo")
        .expect_err("a time that is a text");
}
