//! One test for each rule, named by its RFC and section: a message that keeps all rules is
//! changed to break one, and exactly that one is found.

use alloc::boxed::Box;
use alloc::vec;
use alloc::vec::Vec;

use super::{Rule, check, laws};
use crate::body::{BodyType, PkiBody};
use crate::der::{Integer, Writer, tag};
use crate::encrypted::EncryptedKey;
use crate::general_info::InfoTypeAndValue;
use crate::header::PkiHeader;
use crate::leniency::Leniency;
use crate::message::{Draft, PkiMessage};
use crate::name::{GeneralName, Name};
use crate::oid::{self, Oid};
use crate::popo::{PopoPrivKey, PoposkInput, ProofOfPossession};
use crate::status::{FailInfo, PkiStatus, PkiStatusInfo};
use crate::time::Time;
use crate::x509::{AlgorithmIdentifier, PublicKeyInfo};

type Message = PkiMessage<'static>;

fn keep(octets: Vec<u8>) -> &'static [u8] {
    Box::leak(octets.into_boxed_slice())
}

fn name(text: &str) -> Name<'static> {
    Name::parse(text).expect("a name")
}

/// A SubjectPublicKeyInfo: an RSA key whose modulus has so many octets.
fn rsa_key(octets: usize) -> &'static [u8] {
    let key = Writer::encode(|w| {
        w.sequence(|w| {
            w.element(tag::INTEGER, &[&[0][..], &vec![0xff; octets]].concat());
            w.integer(65_537);
        });
    });
    keep(Writer::encode(|w| {
        w.sequence(|w| {
            AlgorithmIdentifier::with_null(oid::RSA_ENCRYPTION).write(w);
            w.bits(tag::BIT_STRING, &key);
        });
    }))
}

/// A SubjectPublicKeyInfo on P-256, with or without the key.
fn ec_key(point: &[u8]) -> &'static [u8] {
    keep(Writer::encode(|w| {
        w.sequence(|w| {
            w.sequence(|w| {
                w.oid(oid::EC_PUBLIC_KEY);
                w.oid(oid::P256);
            });
            w.bits(tag::BIT_STRING, point);
        });
    }))
}

struct Wanted {
    subject: &'static str,
    key: &'static [u8],
    key_identifier: Option<&'static [u8]>,
    key_usage: Option<u8>,
    purpose: Option<&'static [u8]>,
}

impl Wanted {
    fn signer() -> Self {
        Self {
            subject: "/CN=device",
            key: ec_key(&[4; 65]),
            key_identifier: Some(&KID),
            key_usage: Some(0x80),
            purpose: None,
        }
    }

    fn certificate(self) -> &'static [u8] {
        let extension = |w: &mut Writer, oid: Oid<'_>, value: &[u8]| {
            w.sequence(|w| {
                w.oid(oid);
                w.octet_string(value);
            });
        };
        let algorithm = AlgorithmIdentifier::bare(oid::ECDSA_SHA256);
        keep(Writer::encode(|w| {
            w.sequence(|w| {
                w.sequence(|w| {
                    w.explicit(0, |w| w.integer(2));
                    w.integer(77);
                    algorithm.write(w);
                    w.raw(name("/CN=issuer").der());
                    w.sequence(|w| {
                        w.element(tag::UTC_TIME, b"240101000000Z");
                        w.element(tag::UTC_TIME, b"340101000000Z");
                    });
                    w.raw(name(self.subject).der());
                    w.raw(self.key);
                    w.explicit(3, |w| {
                        w.sequence(|w| {
                            if let Some(kid) = self.key_identifier {
                                let value = Writer::encode(|w| w.octet_string(kid));
                                extension(w, oid::SUBJECT_KEY_IDENTIFIER, &value);
                            }
                            if let Some(bits) = self.key_usage {
                                extension(w, oid::KEY_USAGE, &[3, 2, 0, bits]);
                            }
                            if let Some(purpose) = self.purpose {
                                let oid = Oid::from_content(purpose).expect("an OID");
                                let value = Writer::encode(|w| w.sequence(|w| w.oid(oid)));
                                extension(w, oid::EXTENDED_KEY_USAGE, &value);
                            }
                        });
                    });
                });
                algorithm.write(w);
                w.bits(tag::BIT_STRING, &[1]);
            });
        }))
    }
}

const KID: [u8; 20] = [0xab; 20];
const NONCE: [u8; 16] = [5; 16];
/// id-signedData.
const SIGNED_DATA: [u8; 11] = [6, 9, 0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 1, 7, 2];

/// A message with this content, signed and with every field of the header in order.
fn signed(body: BodyType, content: impl FnOnce(&mut Writer)) -> Message {
    let sender = || GeneralName::Directory(name("/CN=device"));
    let mut header = PkiHeader::new(sender(), sender());
    header.message_time = Some(Time::from_unix(1_700_000_000));
    header.protection_alg = Some(AlgorithmIdentifier::bare(oid::ECDSA_SHA256));
    header.sender_kid = Some(&KID);
    header.transaction_id = Some(&[7; 16]);
    header.sender_nonce = Some(&NONCE);
    header.recip_nonce = (!super::opens(body)).then_some(&NONCE[..]);
    let shell = Draft::new(&header, &PkiBody::PkiConf).finish(
        Some(&[1]),
        &[
            Wanted::signer().certificate(),
            Wanted {
                subject: "/CN=issuer",
                key_identifier: None,
                ..Wanted::signer()
            }
            .certificate(),
        ],
    );
    let mut message = PkiMessage::from_der(keep(shell)).expect("a message");
    let body = Writer::encode(|w| w.explicit(body as u8, content));
    let element = crate::der::Reader::new(keep(body)).any().expect("a body");
    message.body = PkiBody::read(&element, 0).expect("a body");
    message
}

/// The same protected by a MAC under the secret of this name.
fn with_mac(mut message: Message) -> Message {
    message.header.sender_kid = Some(b"device");
    message.extra_certs.clear();
    message.header.protection_alg = Some(pbm(16, 10_000, oid::SHA256, oid::HMAC_SHA256));
    message
}

fn pbm(salt: usize, iterations: i64, owf: Oid<'_>, mac: Oid<'_>) -> AlgorithmIdentifier<'static> {
    let parameters = Writer::encode(|w| {
        w.sequence(|w| {
            w.octet_string(&vec![1; salt]);
            AlgorithmIdentifier::bare(owf).write(w);
            w.integer(iterations);
            AlgorithmIdentifier::bare(mac).write(w);
        });
    });
    AlgorithmIdentifier {
        oid: oid::PASSWORD_BASED_MAC,
        parameters: Some(keep(parameters)),
    }
}

fn write_request(w: &mut Writer, controls: bool) {
    w.sequence(|w| {
        w.sequence(|w| {
            w.integer(0);
            w.sequence(|w| {
                w.explicit(5, |w| w.raw(name("/CN=new").der()));
                let key = ec_key(&[4; 65]);
                w.element(tag::constructed(6), &key[2..]);
            });
            if controls {
                w.sequence(|w| {
                    w.sequence(|w| {
                        w.oid(oid::REG_CTRL_OLD_CERT_ID);
                        w.sequence(|w| {
                            w.explicit(4, |w| w.raw(name("/CN=issuer").der()));
                            w.integer(77);
                        });
                    });
                });
            }
        });
        w.nested(tag::constructed(1), |w| {
            AlgorithmIdentifier::bare(oid::ECDSA_SHA256).write(w);
            w.bits(tag::BIT_STRING, &[1]);
        });
    });
}

fn ir() -> Message {
    signed(BodyType::Ir, |w| w.sequence(|w| write_request(w, false)))
}

fn kur() -> Message {
    signed(BodyType::Kur, |w| w.sequence(|w| write_request(w, true)))
}

fn p10cr() -> Message {
    signed(BodyType::P10cr, |w| {
        w.sequence(|w| {
            w.sequence(|w| {
                w.integer(0);
                w.raw(name("/CN=new").der());
                w.raw(ec_key(&[4; 65]));
                w.nested(tag::constructed(0), |_| {});
            });
            AlgorithmIdentifier::bare(oid::ECDSA_SHA256).write(w);
            w.bits(tag::BIT_STRING, &[1]);
        });
    })
}

fn response(body: BodyType) -> Message {
    let certificate = Wanted::signer().certificate();
    let mut message = signed(body, |w| {
        w.sequence(|w| {
            if body == BodyType::Ip {
                w.explicit(1, |w| w.sequence(|w| w.raw(certificate)));
            }
            w.sequence(|w| {
                w.sequence(|w| {
                    w.integer(0);
                    w.sequence(|w| w.integer(0));
                    w.sequence(|w| w.explicit(0, |w| w.raw(certificate)));
                });
            });
        });
    });
    message.header.general_info = vec![InfoTypeAndValue::IMPLICIT_CONFIRM];
    message
}

fn ip() -> Message {
    response(BodyType::Ip)
}

fn cp() -> Message {
    response(BodyType::Cp)
}

fn cert_conf() -> Message {
    signed(BodyType::CertConf, |w| {
        w.sequence(|w| {
            w.sequence(|w| {
                w.octet_string(&[1; 32]);
                w.integer(0);
                w.sequence(|w| w.integer(0));
            });
        });
    })
}

fn rr() -> Message {
    signed(BodyType::Rr, |w| {
        w.sequence(|w| {
            w.sequence(|w| {
                // serialNumber [1] 77 and issuer [3]; id-ce-cRLReasons with keyCompromise.
                w.sequence(|w| {
                    w.raw(&[0x81, 1, 77]);
                    w.explicit(3, |w| w.raw(name("/CN=issuer").der()));
                });
                w.sequence(|w| {
                    w.sequence(|w| {
                        w.raw(&[6, 3, 0x55, 0x1d, 0x15]);
                        w.octet_string(&[0x0a, 1, 1]);
                    });
                });
            });
        });
    })
}

fn rp() -> Message {
    signed(BodyType::Rp, |w| {
        w.sequence(|w| w.sequence(|w| w.sequence(|w| w.integer(0))))
    })
}

fn general(body: BodyType, oid: Oid<'_>, value: Option<&[u8]>) -> Message {
    signed(body, |w| {
        w.sequence(|w| {
            w.sequence(|w| {
                w.oid(oid);
                if let Some(value) = value {
                    w.raw(value);
                }
            });
        });
    })
}

fn genm() -> Message {
    general(BodyType::Genm, oid::IT_CA_CERTS, None)
}

fn error() -> Message {
    signed(BodyType::Error, |w| {
        w.sequence(|w| w.sequence(|w| w.integer(2)))
    })
}

fn poll_req() -> Message {
    signed(BodyType::PollReq, |w| {
        w.sequence(|w| w.sequence(|w| w.integer(0)))
    })
}

fn poll_rep() -> Message {
    signed(BodyType::PollRep, |w| {
        w.sequence(|w| {
            w.sequence(|w| {
                w.integer(0);
                w.integer(60);
            });
        });
    })
}

fn pki_conf() -> Message {
    signed(BodyType::PkiConf, Writer::null)
}

fn general_info(message: &mut Message, info_type: Oid<'static>, value: Vec<u8>) {
    message.header.general_info.push(InfoTypeAndValue {
        info_type,
        value: Some(keep(value)),
    });
}

fn time() -> Vec<u8> {
    Writer::encode(|w| w.element(tag::GENERALIZED_TIME, b"20240217171209Z"))
}

fn texts(texts: &[&str]) -> Vec<u8> {
    Writer::encode(|w| w.sequence(|w| texts.iter().for_each(|text| w.utf8(text))))
}

fn enveloped(recipients: usize) -> EncryptedKey<'static> {
    let der = Writer::encode(|w| {
        w.nested(tag::constructed(0), |w| {
            w.integer(2);
            w.nested(tag::SET, |w| {
                (0..recipients).for_each(|_| w.sequence(|w| w.integer(0)));
            });
            w.sequence(|w| {
                w.raw(&SIGNED_DATA);
                AlgorithmIdentifier::bare(oid::SHA256).write(w);
            });
        });
    });
    EncryptedKey::read(&mut crate::der::Reader::new(keep(der))).expect("an EncryptedKey")
}

/// What of a message a test changes.
macro_rules! part {
    ($message:ident, Requests) => {
        match &mut $message.body {
            PkiBody::Ir(list) | PkiBody::Kur(list) => list,
            _ => panic!("no request"),
        }
    };
    ($message:ident, Responses) => {
        match &mut $message.body {
            PkiBody::Ip(content) | PkiBody::Cp(content) => &mut content.responses,
            _ => panic!("no response"),
        }
    };
    ($message:ident, $body:ident) => {
        match &mut $message.body {
            PkiBody::$body(content) => content,
            _ => panic!("another body"),
        }
    };
}

macro_rules! cases {
    ($($test:ident = $rule:ident, $good:expr, |$message:ident| $change:expr;)+) => {
        $(
            #[test]
            fn $test() {
                breaks(&laws::$rule, $good, |$message| { $change; });
            }
        )+
        const COVERED: &[&Rule] = &[$(&laws::$rule),+];
    };
}

fn found(message: &Message) -> Vec<&'static str> {
    check(message, Leniency::STRICT)
        .iter()
        .map(|finding| finding.rule.text)
        .collect()
}

fn breaks(rule: &'static Rule, mut message: Message, change: impl FnOnce(&mut Message)) {
    assert_eq!(found(&message), [""; 0], "before the change");
    change(&mut message);
    assert_eq!(found(&message), [rule.text]);
}

#[test]
fn every_rule_has_its_test() {
    for rule in laws::ALL {
        assert!(COVERED.contains(rule), "{}", rule.text);
    }
    assert!(
        laws::ALL
            .iter()
            .all(|rule| rule.section.starts_with("RFC "))
    );
}

#[test]
fn messages_inside_messages_are_judged_too() {
    let mut inner = ir();
    inner.header.transaction_id = None;
    let draft = Draft::new(&inner.header, &inner.body);
    let der = keep(draft.finish(inner.protection, &inner.extra_certs));
    let outer = signed(BodyType::Nested, |w| w.sequence(|w| w.raw(der)));
    let findings = check(&outer, Leniency::STRICT);
    assert_eq!(findings.len(), 1);
    assert_eq!(findings[0].path, "body.nested[0].header.transactionID");
}

#[test]
fn findings_have_an_end() {
    let mut message = poll_req();
    message.body = PkiBody::PollReq(vec![5; 1000]);
    assert_eq!(
        check(&message, Leniency::STRICT).len(),
        crate::limits::FINDINGS
    );
}

cases! {
    rfc_9483_3_1_pvno_too_low = PVNO_TOO_LOW, cert_conf(), |m| {
        part!(m, CertConf)[0].hash_alg = Some(AlgorithmIdentifier::bare(oid::SHA256))
    };
    rfc_9810_7_pvno_too_high = PVNO_TOO_HIGH, ir(), |m| m.header.pvno = 3;
    rfc_9810_5_1_1_sender_unnamed = SENDER_UNNAMED, error(), |m| {
        m.header.sender = GeneralName::Directory(Name::NULL);
        m.header.sender_kid = None;
        m.header.protection_alg = Some(AlgorithmIdentifier::bare(oid::KEM_BASED_MAC))
    };
    rfc_9483_3_1_sender_of_mac = SENDER_OF_MAC, with_mac(ir()), |m| {
        m.header.sender = GeneralName::Directory(name("/O=device"))
    };
    rfc_9483_3_1_sender_kid_of_mac = SENDER_KID_OF_MAC, with_mac(ir()), |m| {
        m.header.sender_kid = Some(b"other")
    };
    rfc_9810_5_1_1_sender_kid = SENDER_KID_MISSING, cert_conf(), |m| {
        m.extra_certs.clear();
        m.header.sender_kid = None
    };
    rfc_9483_3_5_transaction_id = TRANSACTION_ID_MISSING, pki_conf(), |m| {
        m.header.transaction_id = None
    };
    rfc_9483_3_1_transaction_id = TRANSACTION_ID_LENGTH, ir(), |m| {
        m.header.transaction_id = Some(&[7; 15])
    };
    rfc_9483_3_5_sender_nonce = SENDER_NONCE_MISSING, ir(), |m| m.header.sender_nonce = None;
    rfc_9483_3_5_sender_nonce_length = SENDER_NONCE_SHORT, ir(), |m| {
        m.header.sender_nonce = Some(&NONCE[1..])
    };
    rfc_9483_3_5_recip_nonce = RECIP_NONCE_MISSING, ip(), |m| m.header.recip_nonce = None;
    rfc_9483_3_1_recip_nonce = RECIP_NONCE_EARLY, ir(), |m| m.header.recip_nonce = Some(&NONCE);
    rfc_9483_3_1_implicit_confirm_value = IMPLICIT_CONFIRM_VALUE, ir(), |m| {
        general_info(m, oid::IT_IMPLICIT_CONFIRM, vec![1, 1, 0xff])
    };
    rfc_9483_3_1_implicit_confirm_place = IMPLICIT_CONFIRM_PLACE, cert_conf(), |m| {
        general_info(m, oid::IT_IMPLICIT_CONFIRM, vec![5, 0])
    };
    rfc_9483_3_1_confirm_wait_time_value = CONFIRM_WAIT_TIME_VALUE, cp(), |m| {
        m.header.general_info.clear();
        general_info(m, oid::IT_CONFIRM_WAIT_TIME, vec![2, 1, 60])
    };
    rfc_9483_3_1_confirm_wait_time_implicit = CONFIRM_WAIT_TIME_IMPLICIT, cp(), |m| {
        general_info(m, oid::IT_CONFIRM_WAIT_TIME, time())
    };
    rfc_9483_4_1_1_confirm_wait_time = CONFIRM_WAIT_TIME_MISSING, cp(), |m| {
        m.header.general_info.clear()
    };
    rfc_9483_3_1_message_time = MESSAGE_TIME_MISSING, cp(), |m| {
        m.header.general_info.clear();
        general_info(m, oid::IT_CONFIRM_WAIT_TIME, time());
        m.header.message_time = None
    };
    rfc_9483_3_1_cert_profile_value = CERT_PROFILE_VALUE, ir(), |m| {
        general_info(m, oid::IT_CERT_PROFILE, texts(&["a", "b"]))
    };
    rfc_9483_3_1_cert_profile_place = CERT_PROFILE_PLACE, genm(), |m| {
        general_info(m, oid::IT_CERT_PROFILE, texts(&["a"]))
    };
    rfc_9810_5_1_1_3_orig_pki_message = ORIG_PKI_MESSAGE, ir(), |m| {
        general_info(m, oid::IT_ORIG_PKI_MESSAGE, vec![0x30, 4, 0x30, 0, 0x30, 0])
    };
    rfc_9810_5_1_1_algorithm_alone = ALGORITHM_ALONE, ir(), |m| m.protection = None;
    rfc_9810_5_1_1_protection_alone = PROTECTION_ALONE, ir(), |m| m.header.protection_alg = None;
    rfc_9483_3_5_unprotected = UNPROTECTED, ir(), |m| {
        m.protection = None;
        m.header.protection_alg = None
    };
    rfc_9483_3_6_4_unprotected = UNPROTECTED_ERROR, error(), |m| {
        m.protection = None;
        m.header.protection_alg = None
    };
    rfc_9483_3_3_extra_certs = EXTRA_CERTS_MISSING, ir(), |m| m.extra_certs.clear();
    rfc_9483_3_3_signer = SIGNER_MISSING, ir(), |m| m.extra_certs = vec![m.extra_certs[1]];
    rfc_9483_3_3_signer_first = SIGNER_NOT_FIRST, ir(), |m| m.extra_certs.reverse();
    rfc_9483_3_5_sender = SENDER_NOT_SUBJECT, ir(), |m| {
        m.header.sender = GeneralName::Directory(name("/CN=somebody"))
    };
    rfc_9483_3_1_sender_kid = SENDER_KID_ABSENT, ir(), |m| m.header.sender_kid = None;
    rfc_9483_3_5_sender_kid = SENDER_KID_OTHER, ir(), |m| m.header.sender_kid = Some(&[1; 20]);
    rfc_9483_3_5_key_usage = SIGNER_KEY_USAGE, ir(), |m| {
        m.extra_certs = vec![Wanted { key_usage: Some(0x20), ..Wanted::signer() }.certificate()]
    };
    rfc_9483_3_1_protection_alg = SIGNER_KEY, ir(), |m| {
        m.header.protection_alg = Some(AlgorithmIdentifier::with_null(oid::RSA_SHA256))
    };
    rfc_9481_7_rsa_key = SIGNER_KEY_WEAK, ir(), |m| {
        m.header.protection_alg = Some(AlgorithmIdentifier::with_null(oid::RSA_SHA256));
        m.extra_certs = vec![Wanted { key: rsa_key(128), ..Wanted::signer() }.certificate()]
    };
    rfc_9481_7_1_weak = WEAK_SIGNATURE, ir(), |m| {
        m.header.protection_alg = Some(AlgorithmIdentifier::bare(oid::ECDSA_SHA1))
    };
    rfc_9810_5_1_3_1_parameters = PBM_PARAMETERS, with_mac(ir()), |m| {
        m.header.protection_alg = Some(AlgorithmIdentifier::with_null(oid::PASSWORD_BASED_MAC))
    };
    rfc_4211_4_4_salt = PBM_SALT, with_mac(ir()), |m| {
        m.header.protection_alg = Some(pbm(7, 10_000, oid::SHA256, oid::HMAC_SHA256))
    };
    rfc_9045_4_3_few_iterations = PBM_ITERATIONS_FEW, with_mac(ir()), |m| {
        m.header.protection_alg = Some(pbm(16, 99, oid::SHA256, oid::HMAC_SHA256))
    };
    rfc_9045_4_3_iterations = PBM_ITERATIONS_ADVICE, with_mac(ir()), |m| {
        m.header.protection_alg = Some(pbm(16, 9_999, oid::SHA256, oid::HMAC_SHA256))
    };
    rfc_9481_6_1_sha1 = PBM_HASH, with_mac(ir()), |m| {
        m.header.protection_alg = Some(pbm(16, 10_000, oid::SHA256, oid::HMAC_SHA1_IPSEC))
    };
    rfc_9483_4_1_1_one_request = ONE_REQUEST, ir(), |m| {
        let requests = part!(m, Requests);
        requests.push(requests[0].clone())
    };
    rfc_9483_4_1_1_request_id = REQUEST_ID, ir(), |m| part!(m, Requests)[0].request.cert_req_id = 1;
    rfc_9483_4_1_1_template_version = TEMPLATE_VERSION, ir(), |m| {
        part!(m, Requests)[0].request.template.others.push((0, &[0x80, 1, 0]))
    };
    rfc_9483_4_1_1_template_subject = TEMPLATE_SUBJECT, ir(), |m| {
        part!(m, Requests)[0].request.template.subject = Some(Name::NULL)
    };
    rfc_4211_5_template_fields = TEMPLATE_FIELDS, ir(), |m| {
        part!(m, Requests)[0].request.template.others.push((1, &[0x81, 1, 5]))
    };
    rfc_9483_4_1_1_popo = POPO_MISSING, ir(), |m| part!(m, Requests)[0].popo = None;
    rfc_9483_4_1_1_popo_of_central_key = POPO_NEEDLESS, ir(), |m| {
        part!(m, Requests)[0].request.template.public_key = Some(ec_key(&[]).into())
    };
    rfc_9483_4_1_1_popo_input = POPO_INPUT, ir(), |m| {
        let public_key = PublicKeyInfo::from_der(ec_key(&[4; 65])).expect("a key");
        let Some(ProofOfPossession::Signature { input, .. }) = &mut part!(m, Requests)[0].popo
        else { panic!("no signature") };
        *input = Some(PoposkInput { contents: &[], sender: None, public_key_mac: None, public_key })
    };
    rfc_9483_4_1_1_popo_algorithm = POPO_ALGORITHM, ir(), |m| {
        part!(m, Requests)[0].popo = Some(ProofOfPossession::Signature {
            input: None,
            algorithm: AlgorithmIdentifier::with_null(oid::RSA_SHA256),
            signature: vec![1].into(),
        })
    };
    rfc_9483_4_1_1_popo_signature = POPO_SIGNATURE, ir(), |m| {
        let proof = ProofOfPossession::KeyAgreement(PopoPrivKey::EncrCert);
        part!(m, Requests)[0].popo = Some(proof)
    };
    rfc_9810_5_2_8_4_ra_verified = POPO_RA_VERIFIED, ir(), |m| {
        part!(m, Requests)[0].popo = Some(ProofOfPossession::RaVerified)
    };
    rfc_9483_4_1_3_signed = KUR_SIGNED, kur(), |m| *m = with_mac(m.clone());
    rfc_9483_4_1_3_old_cert_id = KUR_OLD_CERT_ID, kur(), |m| {
        part!(m, Requests)[0].request.controls.clear()
    };
    rfc_9483_4_1_3_other_cert = KUR_OTHER_CERT, kur(), |m| {
        let id = Writer::encode(|w| w.sequence(|w| {
            w.explicit(4, |w| w.raw(name("/CN=issuer").der()));
            w.integer(78);
        }));
        part!(m, Requests)[0].request.controls[0].value = keep(id)
    };
    rfc_9483_4_1_4_subject = P10CR_SUBJECT, p10cr(), |m| part!(m, P10cr).subject = Name::NULL;
    rfc_9483_4_1_4_algorithm = P10CR_ALGORITHM, p10cr(), |m| {
        part!(m, P10cr).signature_algorithm = AlgorithmIdentifier::with_null(oid::RSA_SHA256)
    };
    rfc_9483_4_1_2_ca_pubs = CA_PUBS_PLACE, cp(), |m| {
        part!(m, Cp).ca_pubs = vec![m.extra_certs[0]]
    };
    rfc_9483_4_1_1_ca_pubs = CA_PUBS_ALONE, ip(), |m| {
        let response = &mut part!(m, Responses)[0];
        response.certified_key_pair = None;
        response.status = PkiStatusInfo::new(PkiStatus::Rejection)
    };
    rfc_9483_4_1_1_one_response = ONE_RESPONSE, cp(), |m| {
        let responses = part!(m, Responses);
        responses.push(responses[0].clone())
    };
    rfc_9483_4_1_1_response_id = RESPONSE_ID, ip(), |m| part!(m, Responses)[0].cert_req_id = -1;
    rfc_9483_4_1_1_response_status = RESPONSE_STATUS, cp(), |m| {
        part!(m, Responses)[0].status.status = PkiStatus::KeyUpdateWarning
    };
    rfc_9483_4_1_1_fail_info = FAIL_INFO_ON_SUCCESS, cp(), |m| {
        part!(m, Responses)[0].status.fail_info = Some(FailInfo::BAD_ALG)
    };
    rfc_9483_4_4_fail_info = FAIL_INFO_ON_WAITING, error(), |m| {
        let status = &mut part!(m, Error).status;
        status.status = PkiStatus::Waiting;
        status.fail_info = Some(FailInfo::SYSTEM_UNAVAIL)
    };
    rfc_9483_4_1_1_certificate = CERTIFICATE_MISSING, cp(), |m| {
        part!(m, Responses)[0].certified_key_pair = None
    };
    rfc_9483_4_1_1_no_certificate = CERTIFICATE_NEEDLESS, cp(), |m| {
        part!(m, Responses)[0].status.status = PkiStatus::Waiting
    };
    rfc_9483_4_1_1_certificate_in_clear = CERTIFICATE_ENCRYPTED, cp(), |m| {
        m.header.pvno = 3;
        let pair = part!(m, Responses)[0].certified_key_pair.as_mut().expect("a pair");
        pair.cert_or_enc_cert = crate::CertOrEncCert::EncryptedCert(enveloped(1))
    };
    rfc_9483_4_1_6_private_key = PRIVATE_KEY_FORM, cp(), |m| {
        m.header.pvno = 3;
        let pair = part!(m, Responses)[0].certified_key_pair.as_mut().expect("a pair");
        pair.private_key = Some(enveloped(2))
    };
    rfc_9483_3_3_chain = CHAIN_MISSING, with_mac_and_chain(cp()), |m| m.extra_certs.clear();
    rfc_9483_4_1_1_one_cert_status = ONE_CERT_STATUS, cert_conf(), |m| part!(m, CertConf).clear();
    rfc_9483_4_1_1_cert_status_id = CERT_STATUS_ID, cert_conf(), |m| {
        part!(m, CertConf)[0].cert_req_id = 1
    };
    rfc_9483_4_1_1_cert_status = CERT_STATUS_STATUS, cert_conf(), |m| {
        part!(m, CertConf)[0].status_info = Some(PkiStatusInfo::new(PkiStatus::GrantedWithMods))
    };
    rfc_9483_4_1_1_cert_status_fail_info = CERT_STATUS_FAIL_INFO, cert_conf(), |m| {
        let info = part!(m, CertConf)[0].status_info.as_mut().expect("statusInfo");
        info.fail_info = Some(FailInfo::BAD_ALG)
    };
    rfc_9483_4_1_1_cert_hash = CERT_HASH_LENGTH, cert_conf(), |m| {
        m.header.pvno = 3;
        part!(m, CertConf)[0].hash_alg = Some(AlgorithmIdentifier::bare(oid::SHA512))
    };
    rfc_9483_4_2_one_revocation = ONE_REVOCATION, rr(), |m| {
        let details = part!(m, Rr);
        details.push(details[0].clone())
    };
    rfc_9483_4_2_name = REVOCATION_NAME, rr(), |m| part!(m, Rr)[0].cert_details.issuer = None;
    rfc_9483_4_2_reason = REVOCATION_REASON, rr(), |m| part!(m, Rr)[0].crl_entry_details.clear();
    rfc_9483_4_2_signed = REVOCATION_SIGNED, rr(), |m| *m = with_mac(m.clone());
    rfc_9483_4_2_one_status = ONE_REVOCATION_STATUS, rp(), |m| {
        let status = &mut part!(m, Rp).status;
        status.push(status[0].clone())
    };
    rfc_9483_4_2_status = REVOCATION_STATUS, rp(), |m| {
        part!(m, Rp).status[0].status = PkiStatus::RevocationNotification
    };
    rfc_9483_4_2_fail_info = REVOCATION_FAIL_INFO, rp(), |m| {
        part!(m, Rp).status[0].fail_info = Some(FailInfo::BAD_CERT_ID)
    };
    rfc_9483_4_3_one_info = ONE_INFO, genm(), |m| {
        let infos = part!(m, Genm);
        infos.push(infos[0])
    };
    rfc_9483_4_3_no_value = GENM_VALUE_NEEDLESS, genm(), |m| {
        part!(m, Genm)[0].value = Some(&[5, 0])
    };
    rfc_9483_4_3_4_value = GENM_VALUE_MISSING, genm(), |m| {
        part!(m, Genm)[0].info_type = oid::IT_CRL_STATUS_LIST
    };
    rfc_9483_4_3_3_no_key = TEMPLATE_WITH_KEY, genp_template(&[]), |m| {
        *m = genp_template(ec_key(&[4; 65]))
    };
    rfc_9483_3_6_4_status = ERROR_STATUS, error(), |m| {
        part!(m, Error).status.status = PkiStatus::Accepted
    };
    rfc_9483_4_4_one_poll = ONE_POLL, poll_req(), |m| part!(m, PollReq).push(0);
    rfc_9483_4_4_poll_id = POLL_ID, poll_rep(), |m| part!(m, PollRep)[0].cert_req_id = 2;
    rfc_9483_4_4_check_after = CHECK_AFTER, poll_rep(), |m| {
        part!(m, PollRep)[0].check_after = Integer::from(-1)
    };
}

fn with_mac_and_chain(message: Message) -> Message {
    let chain = vec![message.extra_certs[1]];
    let mut message = with_mac(message);
    message.extra_certs = chain;
    message
}

/// A genp with a certReqTemplate that has this publicKey.
fn genp_template(key: &[u8]) -> Message {
    let template = Writer::encode(|w| {
        w.sequence(|w| {
            w.sequence(|w| {
                if let Some(contents) = key.get(2..) {
                    w.element(tag::constructed(6), contents);
                }
            });
        });
    });
    general(BodyType::Genp, oid::IT_CERT_REQ_TEMPLATE, Some(&template))
}
