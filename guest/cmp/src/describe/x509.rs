//! Certificates, PKCS #10 requests, names, and values of any type.

use alloc::vec::Vec;

use super::Scope;
use super::algorithm::{algorithm, public_key};
use super::extension::extension;
use super::names::oid;
use super::node::{Node, hex, integer_element, list, object, optional, text};
use crate::der::{Reader, tag};
use crate::error::Result;
use crate::name::GeneralName;
use crate::oid;
use crate::protection::Hash;
use crate::x509::{Certificate, CertificationRequest};

pub(super) fn general_name(name: &GeneralName<'_>) -> Node {
    if name.is_null() {
        text("NULL-DN")
    } else {
        text(name)
    }
}

/// A certificate that came as an element and may be of any quality.
pub(super) fn any_certificate(der: &[u8], scope: Scope<'_>) -> Node {
    match Certificate::from_der_with(der, scope.leniency) {
        Ok(certificate) => self::certificate(&certificate.value),
        Err(error) => object([
            ("unreadable", Node::Bool(true)),
            ("reason", text(error)),
            ("der", hex(der)),
        ]),
    }
}

pub(super) fn certificate(certificate: &Certificate<'_>) -> Node {
    object([
        ("version", version(certificate.tbs)),
        ("serialNumber", hex(certificate.serial)),
        ("issuer", text(&certificate.issuer)),
        ("notBefore", text(certificate.not_before.rfc3339())),
        ("notAfter", text(certificate.not_after.rfc3339())),
        ("subject", text(&certificate.subject)),
        (
            "subjectPublicKeyInfo",
            public_key(certificate.public_key.raw),
        ),
        ("extensions", list(&certificate.extensions, extension)),
        (
            "signatureAlgorithm",
            algorithm(&certificate.signature_algorithm),
        ),
        ("sha256", hex(&Hash::Sha256.digest(certificate.raw))),
    ])
}

/// The version of a TBSCertificate that was read before.
fn version(tbs: &[u8]) -> Node {
    let read =
        || -> Result<Option<i64>> { Reader::judged(tbs).sequence()?.explicit(0, Reader::integer) };
    text(match read() {
        Ok(Some(2)) => "v3",
        Ok(Some(1)) => "v2",
        _ => "v1",
    })
}

pub(super) fn certification_request(request: &CertificationRequest<'_>) -> Node {
    let attributes = attributes(request.info).unwrap_or_default();
    object([
        ("subject", text(&request.subject)),
        ("subjectPKInfo", public_key(request.public_key.raw)),
        ("extensions", list(&request.extensions, extension)),
        ("attributes", Node::List(attributes)),
        (
            "signatureAlgorithm",
            algorithm(&request.signature_algorithm),
        ),
        ("signature", hex(request.signature)),
    ])
}

/// The attributes of a CertificationRequestInfo but for extensionRequest.
fn attributes(info: &[u8]) -> Result<Vec<Node>> {
    let mut fields = Reader::judged(info).sequence()?;
    for _ in 0..3 {
        fields.any()?;
    }
    let mut attributes = Vec::new();
    fields.any()?.contents().collect(|reader| {
        let mut attribute = reader.sequence()?;
        let kind = attribute.oid()?;
        let values = attribute
            .element(tag::SET, "a SET")?
            .contents()
            .collect(|reader| Ok(any_value(reader.any()?.raw)))?;
        if kind != oid::EXTENSION_REQUEST {
            let members = [("type", oid(kind)), ("values", Node::List(values))];
            attributes.push(object(members));
        }
        Ok(())
    })?;
    Ok(attributes)
}

/// A value whose type is not known here: a simple one under the name of its ASN.1 type,
/// another one as its DER in hexadecimal.
pub(super) fn any_value(der: &[u8]) -> Node {
    let mut reader = Reader::judged(der);
    let Ok(element) = reader.any() else {
        return hex(der);
    };
    let content = || core::str::from_utf8(element.value).ok().map(text);
    let (kind, value) = match element.tag {
        tag::UTF8_STRING => ("UTF8String", content()),
        tag::PRINTABLE_STRING => ("PrintableString", content()),
        tag::IA5_STRING => ("IA5String", content()),
        tag::OCTET_STRING => ("OCTET STRING", Some(hex(element.value))),
        tag::INTEGER => ("INTEGER", Some(integer_element(&element))),
        tag::OID => ("OBJECT IDENTIFIER", Reader::judged(der).oid().ok().map(oid)),
        tag::BOOLEAN => (
            "BOOLEAN",
            Reader::judged(der).boolean().ok().map(Node::Bool),
        ),
        tag::GENERALIZED_TIME => (
            "GeneralizedTime",
            crate::Time::either(&mut Reader::judged(der))
                .ok()
                .map(|time| text(time.rfc3339())),
        ),
        tag::NULL if element.value.is_empty() => ("NULL", Some(text(""))),
        _ => ("", None),
    };
    match value {
        Some(value) => object([(kind, value)]),
        None => hex(der),
    }
}

/// GeneralNames under a tag that stands for the SEQUENCE.
pub(super) fn general_names(reader: &mut Reader<'_>) -> Result<Node> {
    let names = reader.collect(GeneralName::read)?;
    Ok(list(&names, general_name))
}

/// A DistributionPointName (RFC 5280, 4.2.1.13) as one element.
pub(super) fn distribution_point_name(der: &[u8]) -> Node {
    let read = || -> Result<Node> {
        let element = Reader::judged(der).any()?;
        let mut contents = element.contents();
        Ok(match element.tag {
            0xa0 => object([("fullName", general_names(&mut contents)?)]),
            _ => {
                let mut attributes = Vec::new();
                contents.collect(|reader| {
                    let mut fields = reader.sequence()?;
                    let members = [
                        ("type", oid(fields.oid()?)),
                        ("value", any_value(fields.any()?.raw)),
                    ];
                    attributes.push(object(members));
                    Ok(())
                })?;
                object([("nameRelativeToCRLIssuer", Node::List(attributes))])
            }
        })
    };
    read().unwrap_or_else(|_| hex(der))
}

/// An optional Time.
pub(super) fn optional_time(reader: &mut Reader<'_>, number: u8) -> Result<Node> {
    // Time is a CHOICE, so its tag is EXPLICIT.
    let time = reader.explicit(number, crate::Time::either)?;
    Ok(optional(time, |time| text(time.rfc3339())))
}
