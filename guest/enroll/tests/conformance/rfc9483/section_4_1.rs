//! Enrolling: the requests, the responses, and their confirmation.

use abide_cmp::der::Writer;
use abide_cmp::protection::{
    Hash, SignatureAlgorithm, SignatureVerifier, SoftwareVerifier, Verdict,
};
use abide_cmp::{
    CertId, CertOrEncCert, CertRepMessage, CertReqMsg, CertResponse, CertifiedKeyPair,
    EncryptedKey, EncryptedValue, FailInfo, GeneralName, PkiBody, PkiMessage, PkiStatus,
    PkiStatusInfo, ProofOfPossession, PublicKeyInfo, oid,
};
use abide_enroll::{Confirmation, FailureClass, Operation, Phase, Want};

use super::super::peer::{
    Answer, answers_well, own_certificate, read, rep, sent, signing_world, under_secret, world,
};
use crate::ca::{answered, granted, name, response};
use crate::faults::state;
use crate::world::{World, issued, waits};

const BY_CRMF: [Operation; 3] = [Operation::Ir, Operation::Cr, Operation::Kur];

fn request(world: &World, judge: impl Fn(&CertReqMsg<'_>)) {
    let octets = world.sent()[0].clone();
    let message = PkiMessage::from_der(&octets).expect("a PKIMessage");
    let (PkiBody::Ir(requests) | PkiBody::Cr(requests) | PkiBody::Kur(requests)) = &message.body
    else {
        panic!("no request by CRMF");
    };
    assert_eq!(requests.len(), 1, "a sequence of one CertReqMsg");
    judge(&requests[0]);
}

/// RFC 9483, 4.1.1.
#[test]
fn a_request_has_one_cert_req_msg_with_cert_req_id_0_subject_and_public_key() {
    for operation in BY_CRMF {
        let world = signing_world(operation);
        answers_well(&world);
        issued(world.begin().expect("a beginning"));
        request(&world, |message| {
            assert_eq!(message.request.cert_req_id, 0);
            let template = &message.request.template;
            assert_eq!(template.version(), None);
            assert_eq!(template.subject, Some(name("CN=device")));
            assert_eq!(template.public_key.as_deref(), Some(world.ca.wanted()));
            assert!(template.others.is_empty(), "nothing else is asked for");
        });
    }
}

#[test]
fn popo_is_a_signature_over_cert_req_by_the_new_key_without_poposk_input() {
    for operation in BY_CRMF {
        let world = signing_world(operation);
        answers_well(&world);
        issued(world.begin().expect("a beginning"));
        request(&world, |message| {
            let Some(ProofOfPossession::Signature {
                input,
                algorithm,
                signature,
            }) = &message.popo
            else {
                panic!("no signature");
            };
            assert_eq!(*input, None);
            assert_eq!(algorithm.oid, oid::ECDSA_SHA256);
            let key = PublicKeyInfo::from_der(world.ca.wanted()).expect("a key");
            let algorithm = SignatureAlgorithm::for_key(&key).expect("P-256");
            let part = &message.raw_request;
            let verdict = SoftwareVerifier.verify(algorithm, &key, part, signature);
            assert_eq!(verdict, Verdict::Valid);
        });
    }
}

#[test]
fn a_name_in_the_subject_alt_name_alone_leaves_the_null_dn_as_subject() {
    let mut world = world(Operation::Ir);
    if let Want::Template(template) = &mut world.enrollment.want {
        template.subject = "/".into();
        template.sans = vec!["DNS:a.example".into()];
    }
    answers_well(&world);
    issued(world.begin().expect("a beginning"));
    request(&world, |message| {
        let template = &message.request.template;
        assert_eq!(template.subject, Some(abide_cmp::Name::NULL));
        let [san] = template.extensions.as_slice() else {
            panic!("not one extension");
        };
        assert_eq!(san.oid, oid::SUBJECT_ALT_NAME);
        // GeneralNames with one dNSName [2] (RFC 5280, 4.2.1.6).
        assert_eq!(san.value, b"\x30\x0b\x82\x09a.example");
        assert!(san.critical);
    });
}

/// RFC 9483, 4.1.3.
#[test]
fn kur_is_signed_by_the_certificate_that_it_names_in_old_cert_id() {
    let world = signing_world(Operation::Kur);
    answers_well(&world);
    issued(world.begin().expect("a beginning"));
    let own = own_certificate(&world.ca);
    request(&world, |message| {
        let [control] = message.request.controls.as_slice() else {
            panic!("not one control");
        };
        assert_eq!(control.oid, oid::REG_CTRL_OLD_CERT_ID);
        let expected = CertId {
            issuer: GeneralName::Directory(name("CN=Root")),
            serial_number: &[70],
        };
        assert_eq!(control.value, Writer::encode(|w| expected.write(w)));
    });
    sent(&world, |_, message| assert_eq!(message.extra_certs[0], own));
}

#[test]
fn kur_without_a_subject_keeps_that_of_the_old_certificate() {
    let mut world = signing_world(Operation::Kur);
    if let Want::Template(template) = &mut world.enrollment.want {
        template.subject.clear();
    }
    answers_well(&world);
    issued(world.begin().expect("a beginning"));
    request(&world, |message| {
        let subject = message.request.template.subject.clone();
        assert_eq!(subject, Some(name("CN=device,O=Us")));
    });
}

/// RFC 9483, 4.1.4.
#[test]
fn p10cr_carries_the_request_as_it_was_given() {
    let world = world(Operation::P10cr);
    answers_well(&world);
    issued(world.begin().expect("a beginning"));
    let Want::Csr(csr) = &world.enrollment.want else {
        panic!("no request");
    };
    let octets = world.sent()[0].clone();
    let message = PkiMessage::from_der(&octets).expect("a PKIMessage");
    // [4] EXPLICIT (RFC 9810, 5.1.2).
    let body = Writer::encode(|w| w.explicit(4, |w| w.raw(csr)));
    assert_eq!(message.raw_body(), body);
}

/// A response that must change nothing: the reason has these words, and a good answer to the
/// same octets is taken after it.
fn changes_nothing(
    operation: Operation,
    words: &str,
    make: impl Fn(&[u8]) -> CertRepMessage<'_> + 'static,
) {
    let world = world(operation);
    assert_ne!(operation, Operation::Kur, "it would be signed");
    world.next_is_lost();
    waits(world.begin().expect("a beginning"));
    let before = state(&world.record());
    world.next_says(move |ca, request| {
        Answer::under_secret(request).with(&rep(operation, make(&ca.root)))
    });
    let failure = waits(world.step()).failure.expect("a failure");
    assert_eq!(failure.class, FailureClass::Malformed, "{failure:?}");
    assert!(failure.reason.contains(words), "{failure:?}");
    assert_eq!(state(&world.record()), before);
    answers_well(&world);
    issued(world.step());
}

#[test]
fn a_response_has_exactly_one_cert_response() {
    for operation in [Operation::Ir, Operation::Cr, Operation::P10cr] {
        changes_nothing(operation, "exactly one CertResponse", |_| response(&[]));
        changes_nothing(operation, "exactly one CertResponse", |root| {
            response(&[granted(0, root), granted(0, root)])
        });
    }
}

#[test]
fn cert_req_id_of_the_response_is_0_or_minus_1_for_p10cr() {
    for id in [-1, 1, 7] {
        changes_nothing(Operation::Cr, "certReqId", move |root| {
            response(&[granted(id, root)])
        });
    }
    for id in [-2, 1] {
        changes_nothing(Operation::P10cr, "certReqId", move |root| {
            response(&[granted(id, root)])
        });
    }
}

/// Nokia's NCM and EJBCA send 0. What they sent is what they get back.
#[test]
fn cert_req_id_0_is_taken_for_p10cr_and_confirmed_as_0() {
    for id in [-1, 0] {
        let world = world(Operation::P10cr);
        world.next_says(move |ca, request| {
            let certificate = ca.issue();
            let content = response(&[granted(id, &certificate)]);
            Answer::under_secret(request).with(&PkiBody::Cp(content))
        });
        world.next_says(under_secret);
        issued(world.begin().expect("a beginning"));
        let octets = world.last_sent();
        let message = PkiMessage::from_der(&octets).expect("a PKIMessage");
        let PkiBody::CertConf(statuses) = &message.body else {
            panic!("no certConf");
        };
        assert_eq!(statuses[0].cert_req_id, id);
    }
}

fn with_status<'a>(status: PkiStatusInfo<'a>, certificate: Option<&'a [u8]>) -> CertResponse<'a> {
    CertResponse {
        certified_key_pair: certificate.and_then(|der| granted(0, der).certified_key_pair),
        ..answered(0, status)
    }
}

#[test]
fn status_of_the_response_is_accepted_granted_with_mods_rejection_or_waiting() {
    for status in [
        PkiStatus::RevocationWarning,
        PkiStatus::RevocationNotification,
        PkiStatus::KeyUpdateWarning,
    ] {
        changes_nothing(Operation::Cr, "status", move |root| {
            response(&[with_status(PkiStatusInfo::new(status), Some(root))])
        });
    }
}

#[test]
fn fail_info_is_absent_with_accepted_and_granted_with_mods() {
    for status in [PkiStatus::Accepted, PkiStatus::GrantedWithMods] {
        for fail_info in [FailInfo::NONE, FailInfo::BAD_POP] {
            changes_nothing(Operation::Cr, "failInfo", move |root| {
                let status = PkiStatusInfo {
                    fail_info: Some(fail_info),
                    ..PkiStatusInfo::new(status)
                };
                response(&[with_status(status, Some(root))])
            });
        }
    }
}

#[test]
fn a_certificate_is_there_with_accepted_and_granted_with_mods() {
    for status in [PkiStatus::Accepted, PkiStatus::GrantedWithMods] {
        changes_nothing(Operation::Cr, "certifiedKeyPair", move |_| {
            response(&[with_status(PkiStatusInfo::new(status), None)])
        });
    }
}

#[test]
fn a_certificate_is_absent_with_rejection_and_waiting() {
    changes_nothing(Operation::Cr, "certifiedKeyPair", |root| {
        let status = PkiStatusInfo::rejection(FailInfo::BAD_POP, "no");
        response(&[with_status(status, Some(root))])
    });
    changes_nothing(Operation::Cr, "certifiedKeyPair", |root| {
        let status = PkiStatusInfo::new(PkiStatus::Waiting);
        response(&[with_status(status, Some(root))])
    });
}

#[test]
fn the_certificate_comes_in_clear() {
    const SECRET: EncryptedValue<'_> = EncryptedValue {
        intended_alg: None,
        symm_alg: None,
        enc_symm_key: None,
        key_alg: None,
        value_hint: None,
        enc_value: &[1, 2, 3],
    };
    changes_nothing(Operation::Cr, "encrypted", |_| {
        let pair = CertifiedKeyPair {
            cert_or_enc_cert: CertOrEncCert::EncryptedCert(EncryptedKey::EncryptedValue(SECRET)),
            private_key: None,
            publication_info: None,
        };
        let status = PkiStatusInfo::new(PkiStatus::Accepted);
        response(&[CertResponse {
            certified_key_pair: Some(pair),
            ..answered(0, status)
        }])
    });
    // And no key beside it that nobody asked for.
    changes_nothing(Operation::Cr, "private key", |root| {
        let mut response_ = granted(0, root);
        if let Some(pair) = &mut response_.certified_key_pair {
            pair.private_key = Some(EncryptedKey::EncryptedValue(SECRET));
        }
        response(&[response_])
    });
}

#[test]
fn the_certificate_must_be_one() {
    changes_nothing(Operation::Cr, "certificate", |_| {
        response(&[granted(0, &[0x30, 0x03, 0x02, 0x01, 0x05])])
    });
}

#[test]
fn granted_with_mods_is_taken_and_told() {
    let world = world(Operation::Cr);
    world.next_says(|ca, request| {
        let certificate = ca.issue();
        let status = PkiStatusInfo {
            status_string: Some(abide_cmp::PkiFreeText::new("shorter than you asked for")),
            ..PkiStatusInfo::new(PkiStatus::GrantedWithMods)
        };
        let content = response(&[with_status(status, Some(&certificate))]);
        Answer::under_secret(request).with(&PkiBody::Cp(content))
    });
    world.next_says(under_secret);
    let issued = issued(world.begin().expect("a beginning"));
    for words in ["grantedWithMods", "shorter than you asked for"] {
        assert!(issued.note.contains(words), "{issued:?}");
    }
}

/// RFC 9483, 4.1.1 to 4.1.3; RFC 9810, 5.3.2 on whom to believe.
#[test]
fn ca_pubs_is_for_ip_and_for_cp_to_a_p10cr_under_a_secret_and_elsewhere_means_nothing() {
    for (operation, signs, kept) in [
        (Operation::Ir, false, true),
        (Operation::P10cr, false, true),
        (Operation::Cr, false, false),
        (Operation::Ir, true, false),
        (Operation::Kur, true, false),
    ] {
        let world = match signs {
            true => signing_world(operation),
            false => world(operation),
        };
        world.next_says(move |ca, request| {
            let certificate = ca.issue();
            let id = if operation == Operation::P10cr { -1 } else { 0 };
            let content = CertRepMessage {
                ca_pubs: vec![&ca.root],
                ..response(&[granted(id, &certificate)])
            };
            let answer = match signs {
                true => Answer::signed(ca, request),
                false => Answer::under_secret(request),
            };
            answer.with(&rep(operation, content))
        });
        answers_well(&world);
        let issued = issued(world.begin().expect("a beginning"));
        assert_eq!(issued.ca_pubs.len(), usize::from(kept), "{operation:?}");
    }
}

/// RFC 9483, 4.1.1: hash by the algorithm of the certificate's signature, here ECDSA with
/// SHA-256; nothing that is not needed.
#[test]
fn cert_conf_has_one_cert_status_with_the_hash_of_the_certificate() {
    for operation in [Operation::Ir, Operation::Cr, Operation::Kur] {
        let world = signing_world(operation);
        answers_well(&world);
        issued(world.begin().expect("a beginning"));
        let octets = world.last_sent();
        let message = PkiMessage::from_der(&octets).expect("a PKIMessage");
        let PkiBody::CertConf(statuses) = &message.body else {
            panic!("no certConf");
        };
        let [status] = statuses.as_slice() else {
            panic!("not one CertStatus");
        };
        let hash = Hash::Sha256.digest(&world.ca.issued.borrow()[0]);
        assert_eq!(status.cert_hash, hash);
        assert_eq!(status.cert_req_id, 0);
        // Absent means accepted.
        assert_eq!(status.status_info, None);
        assert_eq!(status.hash_alg, None);
    }
}

#[test]
fn pki_conf_has_null_as_content() {
    let world = world(Operation::Cr);
    world.next_says(under_secret);
    world.next_says(|_, request| {
        let answer = Answer {
            // [19] NULL, and an empty SEQUENCE in its place.
            swaps: vec![(vec![0x05, 0x00], vec![0x30, 0x00])],
            ..Answer::under_secret(request)
        };
        answer.with(&PkiBody::PkiConf)
    });
    let failure = waits(world.begin().expect("a beginning")).failure;
    let failure = failure.expect("a failure that is waited out");
    assert_eq!(failure.class, FailureClass::Malformed);
    assert_eq!(world.record().phase, Phase::Confirming);
    world.next_says(under_secret);
    let issued = issued(world.step());
    assert_eq!(issued.confirmation, Confirmation::Confirmed);
}

/// The certificate of what comes is judged before it is kept: key, validity, path.
#[test]
fn the_new_certificate_is_for_the_requested_key_and_under_a_trusted_root() {
    let world = world(Operation::Cr);
    answers_well(&world);
    let issued = issued(world.begin().expect("a beginning"));
    let leaf = read(&issued.chain[0]);
    assert_eq!(leaf.public_key.raw, world.ca.wanted());
    for other_root in [false, true] {
        let world = super::super::peer::world(Operation::Cr);
        world.next_says(move |ca, request| {
            let other = crate::ca::Ca::with_key(ca.wanted().to_vec(), [8; 32]);
            let certificate = if other_root {
                other.issue()
            } else {
                ca.root.clone()
            };
            let content = response(&[granted(0, &certificate)]);
            Answer::under_secret(request).with(&PkiBody::Cp(content))
        });
        world.next_says(under_secret);
        let failure = crate::world::failed(world.begin().expect("a beginning"));
        assert_eq!(failure.class, FailureClass::Security);
        assert_eq!(world.sent_types(), ["cr", "certConf"]);
    }
}
