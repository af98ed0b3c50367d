//! Certificate requests (RFC 4211).

use super::algorithm::{algorithm, public_key};
use super::cms::enveloped_data;
use super::extension::{extension, optional_name};
use super::names::oid;
use super::node::{Node, hex, integer_element, list, object, optional, text};
use super::x509::{any_value, general_name, optional_time};
use crate::crmf::{AttributeTypeAndValue, CertId, CertReqMsg, CertRequest, CertTemplate};
use crate::der::{Element, Reader, tag};
use crate::encrypted::EncryptedKey;
use crate::error::{Context, Result};
use crate::name::GeneralName;
use crate::oid;
use crate::popo::{PopoPrivKey, PoposkInput, ProofOfPossession};
use crate::x509::AlgorithmIdentifier;

pub(super) fn request(message: &CertReqMsg<'_>) -> Node {
    let Node::Object(mut members) = cert_request(&message.request) else {
        return Node::Absent;
    };
    if let Some(proof) = &message.popo {
        members.push(("popo", popo(proof)));
    }
    if !message.reg_info.is_empty() {
        members.push(("regInfo", list(&message.reg_info, attribute)));
    }
    Node::Object(members)
}

pub(super) fn cert_request(request: &CertRequest<'_>) -> Node {
    request_with(request, attribute)
}

fn request_with(
    request: &CertRequest<'_>,
    control: fn(&AttributeTypeAndValue<'_>) -> Node,
) -> Node {
    object([
        ("certReqId", Node::Number(request.cert_req_id)),
        ("certTemplate", cert_template(&request.template)),
        ("controls", list(&request.controls, control)),
    ])
}

/// Reads one CertRequest.
pub(super) fn read_request<'a>(reader: &mut Reader<'a>) -> Result<CertRequest<'a>> {
    CertRequest::read(&mut reader.sequence().at("certRequest")?).at("certRequest")
}

pub(super) fn cert_template(template: &CertTemplate<'_>) -> Node {
    // Fields that the codec keeps as they are, under IMPLICIT tags.
    let field = |wanted: u8, describe: fn(&Element<'_>) -> Result<Node>| {
        let found = template.others.iter().find(|(number, _)| *number == wanted);
        optional(found, |(_, der)| {
            let described = Reader::judged(der)
                .any()
                .and_then(|element| describe(&element));
            described.unwrap_or_else(|_| hex(der))
        })
    };
    let octets = |element: &Element<'_>| Ok(hex(element.value));
    object([
        (
            "version",
            field(0, |element| {
                Ok(match element.value {
                    [number @ 0..=2] => text(alloc::format!("v{}", number + 1)),
                    _ => integer_element(element),
                })
            }),
        ),
        ("serialNumber", field(1, octets)),
        (
            "signingAlg",
            field(2, |element| {
                let identifier = AlgorithmIdentifier::read_contents(&mut element.contents())?;
                Ok(algorithm(&identifier))
            }),
        ),
        ("issuer", optional_name(template.issuer.as_ref())),
        (
            "validity",
            field(4, |element| {
                let mut fields = element.contents();
                let node = object([
                    ("notBefore", optional_time(&mut fields, 0)?),
                    ("notAfter", optional_time(&mut fields, 1)?),
                ]);
                fields.finish()?;
                Ok(node)
            }),
        ),
        ("subject", optional_name(template.subject.as_ref())),
        (
            "publicKey",
            optional(template.public_key.as_deref(), public_key),
        ),
        ("issuerUID", field(7, octets)),
        ("subjectUID", field(8, octets)),
        ("extensions", list(&template.extensions, extension)),
    ])
}

pub(super) fn cert_id(id: &CertId<'_>) -> Node {
    object([
        ("issuer", general_name(&id.issuer)),
        ("serialNumber", hex(id.serial_number)),
    ])
}

/// A control, registration information or keySpec.
pub(super) fn attribute(attribute: &AttributeTypeAndValue<'_>) -> Node {
    let mut reader = Reader::judged(attribute.value);
    let value = match known_attribute(attribute, &mut reader) {
        Ok(Some(value)) if reader.is_empty() => value,
        _ => any_value(attribute.value),
    };
    object([("type", oid(attribute.oid)), ("value", value)])
}

/// An attribute inside the value of another: not looked into, so that nobody can put one
/// into the next without end.
fn plain_attribute(attribute: &AttributeTypeAndValue<'_>) -> Node {
    object([
        ("type", oid(attribute.oid)),
        ("value", any_value(attribute.value)),
    ])
}

fn known_attribute<'a>(
    attribute: &AttributeTypeAndValue<'a>,
    reader: &mut Reader<'a>,
) -> Result<Option<Node>> {
    let utf8 = |reader: &mut Reader<'a>| {
        let element = reader.element(tag::UTF8_STRING, "a UTF8String")?;
        element.utf8().map(text)
    };
    Ok(Some(match attribute.oid {
        oid::REG_CTRL_REG_TOKEN | oid::REG_CTRL_AUTHENTICATOR | oid::REG_INFO_UTF8_PAIRS => {
            utf8(reader)?
        }
        oid::REG_CTRL_PKI_PUBLICATION_INFO => read_publication_info(reader)?,
        oid::REG_CTRL_PKI_ARCHIVE_OPTIONS => archive_options(reader)?,
        oid::REG_CTRL_OLD_CERT_ID => cert_id(&CertId::read(reader)?),
        oid::REG_CTRL_PROTOCOL_ENCR_KEY => public_key(reader.any()?.raw),
        oid::REG_CTRL_ALT_CERT_TEMPLATE => {
            let mut fields = reader.sequence()?;
            let inner = AttributeTypeAndValue {
                oid: fields.oid()?,
                value: fields.any()?.raw,
            };
            fields.finish()?;
            plain_attribute(&inner)
        }
        oid::REG_CTRL_ALG_ID => algorithm(&AlgorithmIdentifier::read(reader)?),
        oid::REG_CTRL_RSA_KEY_LEN => integer_element(&reader.element(tag::INTEGER, "an INTEGER")?),
        oid::REG_INFO_CERT_REQ => request_with(&read_request(reader)?, plain_attribute),
        _ => return Ok(None),
    }))
}

/// PKIPublicationInfo (RFC 4211, 6.3) as one element.
pub(super) fn publication_info(der: &[u8]) -> Node {
    read_publication_info(&mut Reader::judged(der)).unwrap_or_else(|_| hex(der))
}

fn read_publication_info(reader: &mut Reader<'_>) -> Result<Node> {
    let mut fields = reader.sequence()?;
    let action = match fields.integer()? {
        0 => text("dontPublish"),
        1 => text("pleasePublish"),
        other => Node::Number(other),
    };
    let infos = match fields.is_empty() {
        true => Node::Absent,
        false => Node::List(fields.sequence_of(|reader| {
            let mut fields = reader.sequence()?;
            let method = match fields.integer()? {
                0 => text("dontCare"),
                1 => text("x500"),
                2 => text("web"),
                3 => text("ldap"),
                other => Node::Number(other),
            };
            let location = match fields.is_empty() {
                true => Node::Absent,
                false => general_name(&GeneralName::read(&mut fields)?),
            };
            fields.finish()?;
            Ok(object([("pubMethod", method), ("pubLocation", location)]))
        })?),
    };
    fields.finish()?;
    Ok(object([("action", action), ("pubInfos", infos)]))
}

/// PKIArchiveOptions (RFC 4211, 6.4).
fn archive_options(reader: &mut Reader<'_>) -> Result<Node> {
    let element = reader.any()?;
    Ok(match element.tag {
        0xa0 => {
            let mut contents = element.contents();
            let key = EncryptedKey::read(&mut contents)?;
            contents.finish()?;
            object([("encryptedPrivKey", encrypted_key(&key))])
        }
        0x81 | 0xa1 => object([("keyGenParameters", hex(element.value))]),
        0x82 => object([("archiveRemGenPrivKey", Node::Bool(element.value != [0]))]),
        _ => hex(element.raw),
    })
}

fn popo(popo: &ProofOfPossession<'_>) -> Node {
    let (input, algorithm_identifier, signature, key) = match popo {
        ProofOfPossession::RaVerified => (None, None, None, None),
        ProofOfPossession::Signature {
            input,
            algorithm,
            signature,
        } => (input.as_ref(), Some(algorithm), Some(signature), None),
        ProofOfPossession::KeyEncipherment(key) | ProofOfPossession::KeyAgreement(key) => {
            (None, None, None, Some(key))
        }
    };
    object([
        ("type", text(popo.name())),
        ("poposkInput", optional(input, popo_input)),
        (
            "algorithmIdentifier",
            optional(algorithm_identifier, algorithm),
        ),
        ("signature", optional(signature, |signature| hex(signature))),
        ("privateKey", optional(key, private_key)),
    ])
}

fn popo_input(input: &PoposkInput<'_>) -> Node {
    // Without a sender the authInfo is a MAC over the key.
    let mac = match input.sender {
        Some(_) => None,
        None => Reader::judged(input.contents).any().ok(),
    };
    object([
        ("sender", optional(input.sender.as_ref(), general_name)),
        ("publicKeyMAC", optional(mac, |mac| pk_mac(mac.value))),
        ("publicKey", public_key(input.public_key.raw)),
    ])
}

/// The contents of a PKMACValue (RFC 4211, 4.1).
fn pk_mac(contents: &[u8]) -> Node {
    let read = || -> Result<Node> {
        let mut fields = Reader::judged(contents);
        let identifier = AlgorithmIdentifier::read(&mut fields)?;
        let value = fields
            .element(tag::BIT_STRING, "a BIT STRING")?
            .octet_aligned_bits()?;
        fields.finish()?;
        Ok(object([
            ("algId", algorithm(&identifier)),
            ("value", hex(value)),
        ]))
    };
    read().unwrap_or_else(|_| hex(contents))
}

fn private_key(key: &PopoPrivKey<'_>) -> Node {
    let (name, value) = match key {
        PopoPrivKey::ThisMessage(bits) => ("thisMessage", hex(bits)),
        PopoPrivKey::EncrCert => ("encrCert", Node::Absent),
        PopoPrivKey::ChallengeResp => ("challengeResp", Node::Absent),
        PopoPrivKey::DhMac(bits) => ("dhMAC", hex(bits)),
        PopoPrivKey::AgreeMac(contents) => ("agreeMAC", pk_mac(contents)),
        PopoPrivKey::EncryptedKey(data) => ("encryptedKey", enveloped_data(data)),
    };
    object([("type", text(name)), ("value", value)])
}

pub(super) fn encrypted_key(key: &EncryptedKey<'_>) -> Node {
    match key {
        EncryptedKey::EncryptedValue(value) => object([(
            "encryptedValue",
            object([
                (
                    "intendedAlg",
                    optional(value.intended_alg.as_ref(), algorithm),
                ),
                ("symmAlg", optional(value.symm_alg.as_ref(), algorithm)),
                ("encSymmKey", optional(value.enc_symm_key, hex)),
                ("keyAlg", optional(value.key_alg.as_ref(), algorithm)),
                ("valueHint", optional(value.value_hint, hex)),
                ("encValue", hex(value.enc_value)),
            ]),
        )]),
        EncryptedKey::EnvelopedData(data) => object([("envelopedData", enveloped_data(data))]),
    }
}
