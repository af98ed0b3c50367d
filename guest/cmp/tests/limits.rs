//! Input made to cost as much as it can: refused at a bound, or read in little time.

use abide_cmp::der::{Writer, tag};
use abide_cmp::{Certificate, Name, PkiMessage, Rule, limits, oid};

/// An RDN of many attributes would be compared with another in the square of their number.
#[test]
fn attributes_of_an_rdn() {
    let name = |attributes: usize| {
        Writer::encode(|w| {
            w.sequence(|w| {
                w.nested(tag::SET, |w| {
                    for _ in 0..attributes {
                        w.sequence(|w| {
                            w.oid(oid::AT_COMMON_NAME);
                            w.utf8("a");
                        });
                    }
                });
            });
        })
    };
    Name::from_der(&name(limits::RDN_ATTRIBUTES)).expect("a name");
    let der = name(limits::RDN_ATTRIBUTES + 1);
    let error = Name::from_der(&der).expect_err("too many");
    assert!(matches!(error.rule(), Rule::Limit { limit, .. } if *limit == limits::RDN_ATTRIBUTES));
}

/// Each extension is compared with those before it.
#[test]
fn extensions_of_a_request() {
    let request = |extensions: usize| {
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
                                w.sequence(|w| {
                                    w.nested(tag::constructed(9), |w| {
                                        for number in 0..extensions {
                                            let arc = u8::try_from(number).expect("an arc");
                                            w.sequence(|w| {
                                                w.element(tag::OID, &[0x2a, arc]);
                                                w.octet_string(&[]);
                                            });
                                        }
                                    });
                                });
                            });
                        });
                    });
                });
            });
        })
    };
    PkiMessage::from_der(&request(limits::EXTENSIONS)).expect("a message");
    let der = request(limits::EXTENSIONS + 1);
    let error = PkiMessage::from_der(&der).expect_err("too many");
    assert_eq!(error.path(), "body.ir.certReq.certTemplate.extensions");
}

#[test]
fn length_of_a_message() {
    let long = vec![0x30; limits::MESSAGE + 1];
    let error = PkiMessage::from_der(&long).expect_err("too long");
    assert!(matches!(error.rule(), Rule::Limit { limit, .. } if *limit == limits::MESSAGE));
    Certificate::from_der(&long[..3]).expect_err("no certificate");
}
