//! Deviations from DER: refused by default, accepted under their own switch and no other,
//! reported with their place, and kept as octets.

use abide_cmp::der::{Writer, tag};
use abide_cmp::{
    Certificate, Deviation, Draft, Leniency, PkiBody, PkiMessage, ProofOfPossession, Rule,
    Toleration, limits, oid,
};

const LENGTHS: Leniency = Leniency {
    non_minimal_lengths: true,
    ..Leniency::STRICT
};
const FRACTIONS: Leniency = Leniency {
    fractional_seconds: true,
    ..Leniency::STRICT
};
const RA_VERIFIED: Leniency = Leniency {
    explicit_ra_verified: true,
    ..Leniency::STRICT
};
const EMPTY_LISTS: Leniency = Leniency {
    empty_lists: true,
    ..Leniency::STRICT
};
const SWITCHES: [(Deviation, Leniency); 4] = [
    (Deviation::EmptyList, EMPTY_LISTS),
    (Deviation::NonMinimalLength, LENGTHS),
    (Deviation::FractionalSeconds, FRACTIONS),
    (Deviation::ExplicitRaVerified, RA_VERIFIED),
];

/// A SEQUENCE around parts.
fn sequence(parts: &[&[u8]]) -> Vec<u8> {
    Writer::encode(|w| w.sequence(|w| parts.iter().for_each(|part| w.raw(part))))
}

/// pvno 3, the NULL-DN twice, and more.
fn header(more: &[u8]) -> Vec<u8> {
    sequence(&[
        &[0x02, 0x01, 0x03],
        &[0xa4, 0x02, 0x30, 0x00],
        &[0xa4, 0x02, 0x30, 0x00],
        more,
    ])
}

const PKI_CONF: [u8; 4] = [0xb3, 0x02, 0x05, 0x00];

/// The message is refused without the switch and read with it; gives back the report.
fn accepted_only_with(which: Deviation, der: &[u8]) -> Vec<Toleration> {
    let fault = PkiMessage::from_der(der).expect_err("strict by default");
    assert_eq!(fault.rule().deviation(), Some(which));
    let mut report = Vec::new();
    for (deviation, leniency) in SWITCHES {
        match PkiMessage::from_der_with(der, leniency) {
            Ok(read) => {
                assert_eq!(deviation, which);
                report = read.tolerations;
            }
            Err(error) => {
                assert_ne!(deviation, which);
                assert_eq!(error, fault);
            }
        }
    }
    assert_eq!(report[0].offset, fault.offset());
    assert_eq!(report[0].path, fault.path());
    report
}

#[test]
fn strict_messages_need_no_toleration() {
    let der = sequence(&[&header(&[]), &PKI_CONF]);
    for (_, leniency) in SWITCHES {
        let read = PkiMessage::from_der_with(&der, leniency).expect("strict DER");
        assert_eq!(read.tolerations, []);
    }
}

#[test]
fn a_length_in_more_octets_than_needed() {
    // Octets 0 to 3 are the two outer headers, 4 to 6 pvno, 7 to 10 the sender.
    let head = sequence(&[
        &[0x02, 0x01, 0x03],
        &[0xa4, 0x02, 0x30, 0x00],
        &[0xa4, 0x81, 0x02, 0x30, 0x00],
    ]);
    let der = sequence(&[&head, &PKI_CONF]);
    let report = accepted_only_with(Deviation::NonMinimalLength, &der);
    let expected = Toleration {
        which: Deviation::NonMinimalLength,
        offset: 11,
        path: "header.recipient".into(),
    };
    assert_eq!(report, [expected]);

    let message = PkiMessage::from_der_with(&der, LENGTHS)
        .expect("tolerated")
        .value;
    // As received, not as it would be in DER: the one is 13 octets of fields, the other 12.
    assert_eq!(message.protected_part(), der);
    let rewritten = Draft::new(&message.header, &message.body).finish::<&[u8]>(None, &[]);
    assert_eq!(rewritten, sequence(&[&header(&[]), &PKI_CONF]));
}

/// Each element of the message with one needless octet in its length.
fn lengthened(der: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    let mut rest = der;
    while let [tag, length, contents @ ..] = rest {
        let (value, after) = contents.split_at(usize::from(*length));
        let value = match tag & 0x20 {
            0 => value.to_vec(),
            _ => lengthened(value),
        };
        out.extend([
            *tag,
            0x82,
            0,
            u8::try_from(value.len()).expect("a short message"),
        ]);
        out.extend(value);
        rest = after;
    }
    out
}

#[test]
fn every_length_of_a_message_is_reported_once() {
    let time = [&[0xa0, 0x11, 0x18, 0x0f][..], b"20240217171209Z"].concat();
    let der = sequence(&[&header(&time), &PKI_CONF]);
    let long = lengthened(&der);
    let read = PkiMessage::from_der_with(&long, LENGTHS).expect("tolerated");
    // Message, header, pvno, two general names and two names, [0] and the time in it, the
    // body and its NULL.
    assert_eq!(read.tolerations.len(), 11);
    assert!(
        read.tolerations
            .windows(2)
            .all(|pair| pair[0].offset < pair[1].offset)
    );
    assert_eq!(read.tolerations[2].path, "header.pvno");
    assert_eq!(read.tolerations[8].path, "header.messageTime");
    assert_eq!(read.tolerations[10].path, "body.pkiconf");
    assert!(read.value.header.sender.is_null() || read.value.header.sender.to_string().is_empty());
}

#[test]
fn names_are_the_same_however_their_lengths_are_written() {
    let name = |long: bool| {
        let attribute: &[u8] = match long {
            false => &[0x30, 0x08, 0x06, 0x03, 0x55, 0x04, 0x03, 0x0c, 0x01, b'a'],
            true => &[
                0x30, 0x81, 0x08, 0x06, 0x03, 0x55, 0x04, 0x03, 0x0c, 0x01, b'a',
            ],
        };
        Writer::encode(|w| {
            w.explicit(4, |w| w.sequence(|w| w.element(tag::SET, attribute)));
        })
    };
    let der = |long| {
        let name = name(long);
        sequence(&[&sequence(&[&[2, 1, 2], &name, &name]), &PKI_CONF])
    };
    let (short, long) = (der(false), der(true));
    let strict = PkiMessage::from_der(&short).expect("strict DER");
    let tolerant = PkiMessage::from_der_with(&long, LENGTHS)
        .expect("tolerated")
        .value;
    assert_eq!(tolerant.header.sender.to_string(), "CN=a");
    let (one, other) = (
        strict.header.sender.directory(),
        tolerant.header.sender.directory(),
    );
    assert!(one.expect("a name").matches(other.expect("a name")));
}

#[test]
fn the_report_has_an_end_and_the_reading_goes_on() {
    // An empty SEQUENCE with a length of two octets stands for a certificate.
    let certificates = [0x30, 0x81, 0x00].repeat(200);
    let extra = Writer::encode(|w| w.explicit(1, |w| w.sequence(|w| w.raw(&certificates))));
    let der = sequence(&[&header(&[]), &PKI_CONF, &extra]);
    let report = accepted_only_with(Deviation::NonMinimalLength, &der);
    assert_eq!(report.len(), limits::TOLERATIONS);
    let read = PkiMessage::from_der_with(&der, LENGTHS).expect("tolerated");
    assert_eq!(read.value.extra_certs.len(), 200);
    // What has no switch on is refused behind the last listed one too.
    let wrong = [&certificates[..], &[0x02, 0x01, 0x00]].concat();
    let extra = Writer::encode(|w| w.explicit(1, |w| w.sequence(|w| w.raw(&wrong))));
    let der = sequence(&[&header(&[]), &PKI_CONF, &extra]);
    PkiMessage::from_der_with(&der, LENGTHS).expect_err("an INTEGER is no certificate");
}

#[test]
fn fractions_of_a_second_in_the_header() {
    let with_time = |text: &[u8]| {
        let time = Writer::encode(|w| w.explicit(0, |w| w.element(tag::GENERALIZED_TIME, text)));
        sequence(&[&header(&time), &PKI_CONF])
    };
    // X.690, 11.7.5 has this one as an example of what is allowed.
    PkiMessage::from_der(&with_time(b"19920722132100.3Z")).expect("DER");
    // And this one of what is not; seconds from `date -u -d … +%s`.
    let der = with_time(b"19920722132100.30Z");
    let report = accepted_only_with(Deviation::FractionalSeconds, &der);
    assert_eq!(report.len(), 1);
    assert_eq!(report[0].path, "header.messageTime");
    let message = PkiMessage::from_der_with(&der, FRACTIONS)
        .expect("tolerated")
        .value;
    let time = message.header.message_time.expect("messageTime");
    assert_eq!(time.unix(), 711_811_260);
    let rewritten = Draft::new(&message.header, &message.body).finish::<&[u8]>(None, &[]);
    assert_eq!(rewritten, with_time(b"19920722132100.3Z"));
    // What is no time at all has no switch.
    for text in [
        &b"19920722132100.Z"[..],
        b"19920722132100,3Z",
        b"19920722132100.0000000000Z",
    ] {
        let der = with_time(text);
        let error = PkiMessage::from_der_with(&der, FRACTIONS).expect_err("no time");
        assert!(matches!(error.rule(), Rule::NotDistinguished(_)), "{error}");
    }
}

#[test]
fn two_deviations_of_one_element_need_both_switches() {
    let mut time = vec![0xa0, 0x15, 0x18, 0x81, 0x12];
    time.extend(b"19920722132100.30Z");
    let der = sequence(&[&header(&time), &PKI_CONF]);
    for leniency in [LENGTHS, FRACTIONS, RA_VERIFIED] {
        PkiMessage::from_der_with(&der, leniency).expect_err("one switch of two");
    }
    let both = Leniency {
        fractional_seconds: true,
        ..LENGTHS
    };
    let report = PkiMessage::from_der_with(&der, both)
        .expect("tolerated")
        .tolerations;
    let found: Vec<_> = report.iter().map(|t| (t.which, t.offset)).collect();
    // 4 octets of headers, 3 + 4 + 4 of fields, 2 of [0]; the value comes 3 later.
    let expected = [
        (Deviation::NonMinimalLength, 17),
        (Deviation::FractionalSeconds, 20),
    ];
    assert_eq!(found, expected);
}

#[test]
fn ra_verified_with_an_explicit_tag() {
    let request = |popo: &[u8]| {
        let message = sequence(&[&sequence(&[&[2, 1, 0], &[0x30, 0x00]]), popo]);
        let body = Writer::encode(|w| w.explicit(0, |w| w.sequence(|w| w.raw(&message))));
        sequence(&[&header(&[]), &body])
    };
    let der = request(&[0xa0, 0x02, 0x05, 0x00]);
    let report = accepted_only_with(Deviation::ExplicitRaVerified, &der);
    assert_eq!(report.len(), 1);
    assert_eq!(report[0].path, "body.ir.popo");
    let message = PkiMessage::from_der_with(&der, RA_VERIFIED)
        .expect("tolerated")
        .value;
    let PkiBody::Ir(requests) = &message.body else {
        panic!("{:?}", message.body)
    };
    assert_eq!(requests[0].popo, Some(ProofOfPossession::RaVerified));
    let rewritten = Draft::new(&message.header, &message.body).finish::<&[u8]>(None, &[]);
    assert_eq!(rewritten, request(&[0x80, 0x00]));
    for other in [
        &[0xa0, 0x00][..],
        &[0xa0, 0x02, 0x05, 0x01],
        &[0x80, 0x01, 0x00],
    ] {
        PkiMessage::from_der_with(&request(other), RA_VERIFIED).expect_err("no raVerified");
    }
}

#[test]
fn an_empty_list_in_an_optional_field() {
    // 4 octets of headers and 11 of fields come before [8].
    let empty = header(&[0xa8, 0x02, 0x30, 0x00]);
    let der = sequence(&[&empty, &PKI_CONF]);
    let report = accepted_only_with(Deviation::EmptyList, &der);
    assert_eq!(report.len(), 1);
    assert_eq!(
        (report[0].offset, report[0].path.as_str()),
        (18, "header.generalInfo")
    );
    let message = PkiMessage::from_der_with(&der, EMPTY_LISTS)
        .expect("tolerated")
        .value;
    assert_eq!(message.protected_part(), der);
    let rewritten = Draft::new(&message.header, &message.body).finish::<&[u8]>(None, &[]);
    assert_eq!(rewritten, sequence(&[&header(&[]), &PKI_CONF]));

    let der = sequence(&[&empty, &PKI_CONF, &[0xa1, 0x02, 0x30, 0x00]]);
    let report = PkiMessage::from_der_with(&der, EMPTY_LISTS).expect("tolerated");
    assert_eq!(report.tolerations.len(), 2);
    assert_eq!(report.tolerations[1].path, "extraCerts");
    // The element behind an empty list is judged by itself.
    let body = [0xb3, 0x81, 0x02, 0x05, 0x00];
    PkiMessage::from_der_with(&sequence(&[&empty, &body]), EMPTY_LISTS).expect_err("a length");
}

/// A certificate of nobody, valid until `not_after`.
fn certificate(not_after: &[u8]) -> Vec<u8> {
    Writer::encode(|w| {
        let algorithm = |w: &mut Writer| w.sequence(|w| w.oid(oid::ECDSA_SHA256));
        w.sequence(|w| {
            w.sequence(|w| {
                w.integer(1);
                algorithm(w);
                w.sequence(|_| {});
                w.sequence(|w| {
                    w.element(tag::UTC_TIME, b"200101000000Z");
                    w.element(tag::GENERALIZED_TIME, not_after);
                });
                w.sequence(|_| {});
                w.sequence(|w| {
                    w.sequence(|w| w.oid(oid::ED25519));
                    w.bits(tag::BIT_STRING, &[7; 32]);
                });
            });
            algorithm(w);
            w.bits(tag::BIT_STRING, &[1, 2, 3]);
        });
    })
}

#[test]
fn certificates_have_whole_seconds() {
    Certificate::from_der(&certificate(b"20501231235959Z")).expect("a certificate");
    let der = certificate(b"20501231235959.5Z");
    let fault = Certificate::from_der(&der).expect_err("RFC 5280, 4.1.2.5.2");
    assert_eq!(fault.rule().deviation(), Some(Deviation::FractionalSeconds));
    assert_eq!(fault.path(), "certificate.validity.notAfter");
    Certificate::from_der_with(&der, LENGTHS).expect_err("another switch");
    let read = Certificate::from_der_with(&der, FRACTIONS).expect("tolerated");
    assert_eq!(read.tolerations.len(), 1);
    assert_eq!(read.value.not_after.unix(), 2_556_143_999);
    assert_eq!(read.value.raw, der);
}
