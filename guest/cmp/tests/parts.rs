//! Messages taken apart and put together: nothing is lost, and nothing slips in.

use abide_cmp::der::{Writer, tag};
use abide_cmp::{BodyType, HeaderParts, Leniency, Parts, PkiMessage, Rule};

const NULL_DN: [u8; 4] = [0xa4, 0x02, 0x30, 0x00];

/// A pkiConf with every field of the header, written octet by octet.
fn full() -> Vec<u8> {
    let mut header = vec![0x02, 0x01, 0x02];
    header.extend(NULL_DN);
    header.extend([0x82, 0x01, b'r']);
    header.extend([0xa0, 0x11, 0x18, 0x0f]);
    header.extend(b"20240217171209Z");
    header.extend([0xa1, 0x05, 0x30, 0x03, 0x06, 0x01, 0x2a]);
    for (number, octet) in [(2, 0x22), (3, 0x33), (4, 0x44), (5, 0x55), (6, 0x66)] {
        header.extend([0xa0 | number, 0x03, 0x04, 0x01, octet]);
    }
    header.extend([0xa7, 0x08, 0x30, 0x06, 0x0c, 0x01, b'a', 0x0c, 0x01, b'b']);
    header.extend([0xa8, 0x07, 0x30, 0x05, 0x30, 0x03, 0x06, 0x01, 0x2a]);
    let mut message = vec![0x30, u8::try_from(header.len()).expect("short")];
    message.extend(header);
    message.extend([0xb3, 0x02, 0x05, 0x00]);
    message.extend([0xa0, 0x04, 0x03, 0x02, 0x00, 0x99]);
    message.extend([0xa1, 0x06, 0x30, 0x04, 0x30, 0x00, 0x30, 0x00]);
    let mut der = vec![0x30, u8::try_from(message.len()).expect("short")];
    der.extend(message);
    der
}

fn expected() -> Parts<'static> {
    Parts {
        header: HeaderParts {
            pvno: 2,
            sender: &NULL_DN,
            recipient: &[0x82, 0x01, b'r'],
            message_time: Some("20240217171209Z"),
            protection_alg: Some(&[0x30, 0x03, 0x06, 0x01, 0x2a]),
            sender_kid: Some(&[0x22]),
            recip_kid: Some(&[0x33]),
            transaction_id: Some(&[0x44]),
            sender_nonce: Some(&[0x55]),
            recip_nonce: Some(&[0x66]),
            free_text: vec!["a", "b"],
            general_info: vec![&[0x30, 0x03, 0x06, 0x01, 0x2a]],
        },
        body: BodyType::PkiConf,
        content: &[0x05, 0x00],
        protection: Some(&[0x99]),
        extra_certs: vec![&[0x30, 0x00], &[0x30, 0x00]],
    }
}

#[test]
fn every_part_comes_out_and_goes_back() {
    let der = full();
    let parts = Parts::split(&der, Leniency::STRICT).expect("a message");
    assert_eq!(parts.value, expected());
    assert_eq!(parts.value.encode().expect("a message"), der);

    let bare = Parts {
        header: HeaderParts {
            message_time: None,
            protection_alg: None,
            sender_kid: None,
            recip_kid: None,
            transaction_id: None,
            sender_nonce: None,
            recip_nonce: None,
            free_text: Vec::new(),
            general_info: Vec::new(),
            ..expected().header
        },
        protection: None,
        extra_certs: Vec::new(),
        ..expected()
    };
    let der = bare.encode().expect("a message");
    assert_eq!(
        Parts::split(&der, Leniency::STRICT)
            .expect("a message")
            .value,
        bare
    );
}

#[test]
fn what_would_not_decode_is_refused_at_its_place() {
    let refused = |change: fn(&mut Parts<'static>)| {
        let mut parts = expected();
        change(&mut parts);
        let error = parts.encode().expect_err("a fault");
        (error.path(), error.rule().clone())
    };
    let (path, rule) = refused(|parts| parts.header.pvno = 1);
    assert_eq!((path.as_str(), rule), ("header.pvno", Rule::Version(1)));
    type Damage = fn(&mut Parts<'static>);
    let paths: [(Damage, &str); 9] = [
        (
            |parts| parts.header.message_time = Some("today"),
            "header.messageTime",
        ),
        (
            |parts| parts.header.message_time = Some("20240217171209.50Z"),
            "header.messageTime",
        ),
        (
            |parts| parts.header.protection_alg = Some(&[5, 0]),
            "header.protectionAlg",
        ),
        (
            |parts| parts.header.transaction_id = Some(&[0; 65]),
            "header.transactionID",
        ),
        (
            |parts| parts.header.general_info = vec![&[0x30, 0]],
            "header.generalInfo",
        ),
        (|parts| parts.content = &[0x30, 0], "body.pkiconf"),
        (|parts| parts.content = &[], "body.pkiconf"),
        (
            |parts| parts.extra_certs = vec![&[0x02, 0x01, 0]],
            "extraCerts",
        ),
        (|parts| parts.header.sender = &[], "header.sender"),
    ];
    for (change, expected) in paths {
        assert_eq!(refused(change).0, expected);
    }
}

/// Two elements in the place of one would be read as two fields.
#[test]
fn a_part_is_one_element() {
    let two: &[u8] = &[0xa4, 0x02, 0x30, 0x00, 0xa4, 0x02, 0x30, 0x00];
    let mut parts = expected();
    parts.header.sender = two;
    parts.header.recipient = &[];
    assert_eq!(parts.encode().expect_err("two").path(), "header.sender");

    let mut parts = expected();
    parts.extra_certs = vec![&[0x30, 0x00, 0x30, 0x00]];
    assert_eq!(parts.encode().expect_err("two").path(), "extraCerts");

    let mut parts = expected();
    parts.header.protection_alg = Some(&[0x30, 0x03, 0x06, 0x01, 0x2a, 0x05, 0x00]);
    assert_eq!(
        parts.encode().expect_err("two").path(),
        "header.protectionAlg"
    );
}

#[test]
fn a_tolerated_message_is_split_as_it_was_received() {
    let leniency = Leniency {
        non_minimal_lengths: true,
        ..Leniency::STRICT
    };
    let der = Writer::encode(|w| {
        w.sequence(|w| {
            w.sequence(|w| {
                w.integer(2);
                w.raw(&[0xa4, 0x81, 0x02, 0x30, 0x00]);
                w.raw(&NULL_DN);
            });
            w.explicit(19, |w| w.element(tag::NULL, &[]));
        });
    });
    let split = Parts::split(&der, leniency).expect("tolerated");
    assert_eq!(split.tolerations.len(), 1);
    assert_eq!(split.value.header.sender, [0xa4, 0x81, 0x02, 0x30, 0x00]);
    // And what was tolerated is not sent on.
    let error = split.value.encode().expect_err("not DER");
    assert_eq!(error.path(), "header.sender");
    PkiMessage::from_der_with(&der, leniency).expect("tolerated");
}
