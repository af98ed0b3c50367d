//! Where the outer fields of a structure stand in the input.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use super::detect::Kind;
use super::node::{Node, object, text};
use crate::body::BodyType;
use crate::der::{Element, Reader, tag};

/// The fields of the two outermost levels in their order, each with the octets from the
/// start of the input to its tag, and its length with tag and length octets. Fields of
/// messages inside messages are not listed.
pub(super) fn offsets(kind: Kind, input: &[u8]) -> Node {
    let mut places = Places(Vec::new());
    let Ok(outer) = Reader::judged(input).any() else {
        return Node::List(places.0);
    };
    let contents = outer.contents();
    match kind {
        Kind::PkiMessage => places.message(contents),
        Kind::PkiMessages => places.all(contents, "messages"),
        Kind::CertReqMessages => places.all(contents, "requests"),
        Kind::Certificate => places.signed(contents, "tbsCertificate", certificate_field),
        Kind::CertificationRequest => {
            places.signed(contents, "certificationRequestInfo", request_field)
        }
        Kind::CertificateList => places.signed(contents, "tbsCertList", list_field),
        Kind::CertReqMsg => places.request(contents),
        Kind::CertRequest => places.by_order(contents, &["certReqId", "certTemplate", "controls"]),
        Kind::CertTemplate => {
            for element in elements(contents) {
                let name = TEMPLATE.get(usize::from(element.tag & 0x1f));
                places.add(name.copied().unwrap_or_default(), &element);
            }
        }
    }
    Node::List(places.0)
}

const HEADER: [&str; 9] = [
    "messageTime",
    "protectionAlg",
    "senderKID",
    "recipKID",
    "transactionID",
    "senderNonce",
    "recipNonce",
    "freeText",
    "generalInfo",
];

const TEMPLATE: [&str; 10] = [
    "version",
    "serialNumber",
    "signingAlg",
    "issuer",
    "validity",
    "subject",
    "publicKey",
    "issuerUID",
    "subjectUID",
    "extensions",
];

/// A number of octets.
pub(super) fn number(octets: usize) -> Node {
    Node::Number(i64::try_from(octets).unwrap_or(i64::MAX))
}

struct Places(Vec<Node>);

impl Places {
    fn add(&mut self, field: impl Into<String>, element: &Element<'_>) {
        self.0.push(object([
            ("field", text(field.into())),
            ("offset", number(element.offset)),
            ("length", number(element.raw.len())),
        ]));
    }

    fn all(&mut self, contents: Reader<'_>, name: &str) {
        for (index, element) in elements(contents).enumerate() {
            self.add(format!("{name}[{index}]"), &element);
        }
    }

    fn by_order(&mut self, contents: Reader<'_>, names: &[&str]) {
        for (name, element) in names.iter().zip(elements(contents)) {
            self.add(*name, &element);
        }
    }

    fn message(&mut self, contents: Reader<'_>) {
        for (index, element) in elements(contents).enumerate() {
            match (index, element.tag) {
                (0, _) => {
                    self.add("header", &element);
                    for (index, field) in elements(element.contents()).enumerate() {
                        let tagged = HEADER.get(usize::from(field.tag & 0x1f));
                        let name = match (index, tagged) {
                            (0, _) => "pvno",
                            (1, _) => "sender",
                            (2, _) => "recipient",
                            (_, Some(name)) => name,
                            (_, None) => continue,
                        };
                        self.add(format!("header.{name}"), &field);
                    }
                }
                (1, body) => {
                    let name = BodyType::from_number(body & 0x1f).map_or("", BodyType::name);
                    self.add(format!("body.{name}"), &element);
                }
                (_, 0xa0) => self.add("protection", &element),
                _ => {
                    self.add("extraCerts", &element);
                    if let Ok(certificates) = element.contents().sequence() {
                        self.all(certificates, "extraCerts");
                    }
                }
            }
        }
    }

    fn request(&mut self, contents: Reader<'_>) {
        for (index, element) in elements(contents).enumerate() {
            match (index, element.tag) {
                (0, _) => self.add("certReq", &element),
                (_, tag::SEQUENCE) => self.add("regInfo", &element),
                _ => self.add("popo", &element),
            }
        }
    }

    /// `SEQUENCE { to be signed, signatureAlgorithm, signature }`.
    fn signed(
        &mut self,
        contents: Reader<'_>,
        inner: &str,
        name: fn(&mut usize, u8) -> &'static str,
    ) {
        for (index, element) in elements(contents).enumerate() {
            match index {
                0 => {
                    self.add(inner, &element);
                    let mut position = 0;
                    for field in elements(element.contents()) {
                        let name = name(&mut position, field.tag);
                        self.add(format!("{inner}.{name}"), &field);
                    }
                }
                1 => self.add("signatureAlgorithm", &element),
                _ => self.add("signature", &element),
            }
        }
    }
}

/// The elements of a structure that was read before. A bound is not needed: who describes
/// a structure has read it within its limits.
fn elements<'a>(mut contents: Reader<'a>) -> impl Iterator<Item = Element<'a>> {
    core::iter::from_fn(move || contents.any().ok())
}

/// The next of the fields that are always there, and the optional ones by their tags.
fn next(position: &mut usize, names: &[&'static str]) -> &'static str {
    *position += 1;
    names.get(*position - 1).copied().unwrap_or_default()
}

fn certificate_field(position: &mut usize, tag: u8) -> &'static str {
    match tag {
        0xa0 => "version",
        0x81 => "issuerUniqueID",
        0x82 => "subjectUniqueID",
        0xa3 => "extensions",
        _ => next(
            position,
            &[
                "serialNumber",
                "signature",
                "issuer",
                "validity",
                "subject",
                "subjectPublicKeyInfo",
            ],
        ),
    }
}

fn request_field(position: &mut usize, _: u8) -> &'static str {
    next(
        position,
        &["version", "subject", "subjectPKInfo", "attributes"],
    )
}

fn list_field(position: &mut usize, tag: u8) -> &'static str {
    match (*position, tag) {
        (0, tag::INTEGER) => "version",
        (_, 0xa0) => "crlExtensions",
        (3, tag::UTC_TIME | tag::GENERALIZED_TIME) => "nextUpdate",
        _ => next(
            position,
            &["signature", "issuer", "thisUpdate", "revokedCertificates"],
        ),
    }
}
