//! Requests, controls and registration information, octet for octet after the productions of
//! RFC 4211 and RFC 9810.

use abide_cmp::der::Writer;
use abide_cmp::{
    AttributeTypeAndValue, Control, Draft, PkMacValue, PkiArchiveOptions, PkiBody, PkiMessage,
    PoposkInput, ProofOfPossession, PubMethod, Result, oid,
};

fn interpret<'a>(oid: oid::Oid<'a>, value: &'a [u8]) -> Option<Control<'a>> {
    AttributeTypeAndValue { oid, value }.interpret().ok()
}

#[test]
fn texts() {
    let text = [0x0c, 0x02, b'a', b'b'];
    assert_eq!(
        interpret(oid::REG_CTRL_REG_TOKEN, &text),
        Some(Control::RegToken("ab"))
    );
    assert_eq!(
        interpret(oid::REG_CTRL_AUTHENTICATOR, &text),
        Some(Control::Authenticator("ab"))
    );
    assert_eq!(
        interpret(oid::REG_INFO_UTF8_PAIRS, &text),
        Some(Control::Utf8Pairs("ab"))
    );
    for wrong in [
        &[0x13, 0x01, b'a'][..],
        &[0x0c, 0x01, 0xff],
        &[0x0c, 0x00, 0x05, 0x00],
    ] {
        assert_eq!(interpret(oid::REG_CTRL_REG_TOKEN, wrong), None);
    }
}

#[test]
fn publication() {
    let read = |value: &'static [u8]| interpret(oid::REG_CTRL_PKI_PUBLICATION_INFO, value);
    let Some(Control::PublicationInfo(info)) = read(&[0x30, 0x03, 2, 1, 0]) else {
        panic!("dontPublish")
    };
    assert!(!info.publish && info.places.is_empty());
    // pleasePublish: web at the URI "u", and by LDAP.
    let Some(Control::PublicationInfo(info)) = read(&[
        0x30, 0x12, 2, 1, 1, 0x30, 0x0d, 0x30, 0x06, 2, 1, 2, 0x86, 1, b'u', 0x30, 0x03, 2, 1, 3,
    ]) else {
        panic!("pleasePublish")
    };
    assert!(info.publish);
    assert_eq!(info.places[0].method, PubMethod::Web);
    let location = info.places[0].location.as_ref().map(ToString::to_string);
    assert_eq!(location.as_deref(), Some("URI:u"));
    assert_eq!(
        (info.places[1].method, &info.places[1].location),
        (PubMethod::Ldap, &None)
    );
    for wrong in [
        &[0x30, 0x03, 2, 1, 2][..],
        &[0x30, 0x05, 2, 1, 1, 0x30, 0x00],
        &[0x30, 0x0a, 2, 1, 1, 0x30, 0x05, 0x30, 0x03, 2, 1, 4],
        &[0x30, 0x00],
    ] {
        assert_eq!(read(wrong), None);
    }
}

#[test]
fn archiving() {
    let read = |value: &'static [u8]| match interpret(oid::REG_CTRL_PKI_ARCHIVE_OPTIONS, value) {
        Some(Control::ArchiveOptions(options)) => Some(options),
        _ => None,
    };
    use PkiArchiveOptions::{ArchiveRemGenPrivKey, EncryptedPrivKey, KeyGenParameters};
    assert_eq!(read(&[0x82, 1, 0xff]), Some(ArchiveRemGenPrivKey(true)));
    assert_eq!(read(&[0x82, 1, 0x00]), Some(ArchiveRemGenPrivKey(false)));
    assert_eq!(read(&[0x82, 1, 0x01]), None);
    assert_eq!(read(&[0x81, 1, 9]), Some(KeyGenParameters(&[9])));
    // [0] EXPLICIT around an EncryptedValue with encValue alone.
    let key = read(&[0xa0, 0x06, 0x30, 0x04, 0x03, 0x02, 0x00, 0x55]);
    assert!(matches!(key, Some(EncryptedPrivKey(_))), "{key:?}");
    assert_eq!(read(&[0x83, 1, 9]), None);
}

#[test]
fn certificates_keys_and_requests() {
    // issuer NULL-DN, serialNumber 7.
    let id = [0x30, 0x07, 0xa4, 0x02, 0x30, 0x00, 2, 1, 7];
    let Some(Control::OldCertId(id)) = interpret(oid::REG_CTRL_OLD_CERT_ID, &id) else {
        panic!("oldCertID")
    };
    assert_eq!((id.issuer.is_null(), id.serial_number), (true, &[7][..]));
    // 1.2 and a key of one octet.
    let key = [0x30, 0x09, 0x30, 0x03, 0x06, 1, 0x2a, 0x03, 2, 0, 5];
    let Some(Control::ProtocolEncrKey(key)) = interpret(oid::REG_CTRL_PROTOCOL_ENCR_KEY, &key)
    else {
        panic!("protocolEncrKey")
    };
    assert_eq!(key.key, [5]);
    let template = [0x30, 0x05, 0x06, 1, 0x2a, 0x05, 0x00];
    let Some(Control::AltCertTemplate(template)) =
        interpret(oid::REG_CTRL_ALT_CERT_TEMPLATE, &template)
    else {
        panic!("altCertTemplate")
    };
    assert_eq!(
        (template.oid.to_string().as_str(), template.value),
        ("1.2", &[5, 0][..])
    );
    let request = [0x30, 0x05, 2, 1, 9, 0x30, 0x00];
    let Some(Control::CertReq(request)) = interpret(oid::REG_INFO_CERT_REQ, &request) else {
        panic!("certReq")
    };
    assert_eq!(request.cert_req_id, 9);
}

#[test]
fn kinds_of_keys() {
    let algorithm = [0x30, 0x03, 0x06, 1, 0x2a];
    let Some(Control::AlgId(algorithm)) = interpret(oid::REG_CTRL_ALG_ID, &algorithm) else {
        panic!("algId")
    };
    assert_eq!(algorithm.oid.to_string(), "1.2");
    let length = interpret(oid::REG_CTRL_RSA_KEY_LEN, &[2, 2, 0x08, 0x00]);
    assert_eq!(length, Some(Control::RsaKeyLen(2048)));
    assert_eq!(interpret(oid::REG_CTRL_RSA_KEY_LEN, &[2, 1, 0]), None);
    assert_eq!(
        interpret(oid::SHA256, &[5, 0]),
        Some(Control::Other(&[5, 0]))
    );
}

/// An ir of one request.
fn ir(template: &[u8], popo: &[u8]) -> Vec<u8> {
    Writer::encode(|w| {
        w.sequence(|w| {
            w.raw(&[
                0x30, 0x0b, 2, 1, 2, 0xa4, 0x02, 0x30, 0x00, 0xa4, 0x02, 0x30, 0x00,
            ]);
            w.explicit(0, |w| {
                w.sequence(|w| {
                    w.sequence(|w| {
                        w.sequence(|w| {
                            w.integer(0);
                            w.sequence(|w| w.raw(template));
                        });
                        w.raw(popo);
                    });
                });
            });
        });
    })
}

fn written_back(message: &PkiMessage<'_>) -> Vec<u8> {
    Draft::new(&message.header, &message.body).finish::<&[u8]>(None, &[])
}

#[test]
fn fields_of_a_template() {
    let mut template = vec![0x80, 1, 2, 0x81, 2, 0x00, 0x99, 0xa2, 3, 0x06, 1, 0x2a];
    template.extend([0xa4, 0x22, 0xa0, 0x0f, 0x17, 0x0d]);
    template.extend(b"300101000000Z");
    template.extend([0xa1, 0x0f, 0x17, 0x0d]);
    template.extend(b"491231235959Z");
    template.extend([0x87, 2, 0, 1, 0x88, 2, 0, 2]);
    let der = ir(&template, &[]);
    let message = PkiMessage::from_der(&der).expect("a message");
    let PkiBody::Ir(requests) = &message.body else {
        panic!("{:?}", message.body)
    };
    let read = &requests[0].request.template;
    assert_eq!(read.version(), Some(2));
    assert_eq!(read.serial_number(), Some(&[0x00, 0x99][..]));
    assert_eq!(
        read.signing_alg().map(|a| a.oid.to_string()).as_deref(),
        Some("1.2")
    );
    let (not_before, not_after) = read.validity().expect("validity");
    assert_eq!(
        not_before.map(|t| t.rfc3339()).as_deref(),
        Some("2030-01-01T00:00:00Z")
    );
    assert_eq!(
        not_after.map(|t| t.rfc3339()).as_deref(),
        Some("2049-12-31T23:59:59Z")
    );
    assert_eq!(written_back(&message), der);

    let wrong: [(&[u8], &str); 8] = [
        (&[0x80, 0], "version"),
        (&[0xa0, 3, 2, 1, 2], ""),
        (&[0x81, 2, 0, 0x7f], "serialNumber"),
        (&[0xa2, 2, 5, 0], "signingAlg"),
        (&[0xa4, 5, 0xa0, 3, 0x17, 1, b'Z'], "validity.notBefore"),
        (&[0x87, 0], "issuerUID or subjectUID"),
        (&[0x86, 0], ""),
        (&[0x81, 1, 7, 0x80, 1, 2], ""),
    ];
    for (template, field) in wrong {
        let error = PkiMessage::from_der(&ir(template, &[]))
            .map(|_| ())
            .expect_err(field);
        let path = error.path();
        let rest = path
            .strip_prefix("body.ir.certReq.certTemplate")
            .expect(&path);
        assert_eq!(rest.trim_start_matches('.'), field);
    }
}

#[test]
fn a_signature_over_a_key_that_a_mac_vouches_for() {
    // algId 1.2 and a value of one octet; then a key.
    let input = [
        0x30, 0x09, 0x30, 3, 6, 1, 0x2a, 3, 2, 0, 0xaa, 0x30, 0x09, 0x30, 3, 6, 1, 0x2a, 3, 2, 0, 5,
    ];
    let popo = Writer::encode(|w| {
        w.explicit(1, |w| {
            w.explicit(0, |w| w.raw(&input));
            w.raw(&[0x30, 3, 6, 1, 0x2a, 3, 2, 0, 0x77]);
        });
    });
    let der = ir(&[], &popo);
    let message = PkiMessage::from_der(&der).expect("a message");
    let PkiBody::Ir(requests) = &message.body else {
        panic!("{:?}", message.body)
    };
    let Some(ProofOfPossession::Signature {
        input:
            Some(PoposkInput {
                sender: None,
                public_key_mac: Some(mac),
                public_key,
                ..
            }),
        ..
    }) = &requests[0].popo
    else {
        panic!("{:?}", requests[0].popo)
    };
    assert_eq!((mac.value, public_key.key), (&[0xaa][..], &[5][..]));
    assert_eq!(written_back(&message), der);

    let mac: Result<PkMacValue<'_>> = PkMacValue::from_contents(&input[2..11]);
    assert_eq!(mac.expect("a PKMACValue").value, [0xaa]);
    PkMacValue::from_contents(&input[2..10]).expect_err("half of one");
}
