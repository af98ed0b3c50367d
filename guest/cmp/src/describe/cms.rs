//! EnvelopedData (RFC 5652, 6): who gets a secret, and how.

use super::algorithm::algorithm;
use super::names::oid;
use super::node::{Node, hex, integer_element, object, optional, text};
use crate::der::{Element, Reader, tag};
use crate::encrypted::EnvelopedData;
use crate::error::Result;
use crate::name::Name;
use crate::x509::AlgorithmIdentifier;

/// id-ori-kem (RFC 9629, 3).
const ORI_KEM: &str = "1.2.840.113549.1.9.16.13.3";

pub(super) fn enveloped_data(data: &EnvelopedData<'_>) -> Node {
    let (recipients, content) = details(data.contents).unwrap_or((Node::Absent, Node::Absent));
    object([
        ("version", Node::Number(data.version)),
        ("recipientInfos", recipients),
        ("contentType", oid(data.content_type)),
        (
            "contentEncryptionAlgorithm",
            algorithm(&data.content_encryption),
        ),
        ("encryptedContent", content),
    ])
}

/// The recipientInfos and the encryptedContent. They were read once before.
fn details(contents: &[u8]) -> Result<(Node, Node)> {
    let mut fields = Reader::judged(contents);
    fields.integer()?;
    fields.optional(tag::constructed(0))?;
    let recipients = fields
        .element(tag::SET, "a SET")?
        .contents()
        .collect(|reader| Ok(recipient(&reader.any()?)))?;
    let mut content = fields.sequence()?;
    content.any()?;
    content.any()?;
    let encrypted = content.optional(tag::primitive(0))?;
    let encrypted = optional(encrypted, |element| hex(element.value));
    Ok((Node::List(recipients), encrypted))
}

fn recipient(element: &Element<'_>) -> Node {
    let (kind, read): (_, fn(&mut Reader<'_>) -> Result<Node>) = match element.tag {
        tag::SEQUENCE => ("ktri", key_transport),
        0xa1 => ("kari", key_agreement),
        0xa2 => ("kekri", key_encryption_key),
        0xa3 => ("pwri", password),
        _ => ("ori", other),
    };
    let mut fields = element.contents();
    match read(&mut fields) {
        Ok(Node::Object(mut members)) if fields.is_empty() => {
            members.insert(0, ("type", text(kind)));
            Node::Object(members)
        }
        _ => object([("type", text(kind)), ("value", hex(element.value))]),
    }
}

fn identifier(fields: &mut Reader<'_>) -> Result<Node> {
    Ok(algorithm(&AlgorithmIdentifier::read(fields)?))
}

fn version(fields: &mut Reader<'_>) -> Result<Node> {
    Ok(Node::Number(fields.integer()?))
}

fn octets(fields: &mut Reader<'_>) -> Result<Node> {
    Ok(hex(fields.octet_string()?.value))
}

/// RecipientIdentifier or KeyAgreeRecipientIdentifier: an issuer with a serial number, or a
/// key identifier under `[0]`.
fn recipient_identifier(fields: &mut Reader<'_>) -> Result<Node> {
    let element = fields.any()?;
    let mut contents = element.contents();
    Ok(match element.tag {
        tag::SEQUENCE => {
            let issuer = Name::read(&mut contents)?;
            let serial = contents.element(tag::INTEGER, "an INTEGER")?;
            contents.finish()?;
            object([
                ("issuer", text(&issuer)),
                ("serialNumber", hex(serial.value)),
            ])
        }
        0x80 => object([("subjectKeyIdentifier", hex(element.value))]),
        _ => object([("rKeyId", octets(&mut contents)?)]),
    })
}

fn key_transport(fields: &mut Reader<'_>) -> Result<Node> {
    Ok(object([
        ("version", version(fields)?),
        ("rid", recipient_identifier(fields)?),
        ("keyEncryptionAlgorithm", identifier(fields)?),
        ("encryptedKey", octets(fields)?),
    ]))
}

fn key_agreement(fields: &mut Reader<'_>) -> Result<Node> {
    let version = version(fields)?;
    let originator = fields.explicit(0, originator)?;
    let ukm = fields.explicit(1, octets)?;
    let algorithm = identifier(fields)?;
    let keys = fields.sequence_of(|reader| {
        let mut key = reader.sequence()?;
        let node = object([
            ("rid", recipient_identifier(&mut key)?),
            ("encryptedKey", octets(&mut key)?),
        ]);
        key.finish()?;
        Ok(node)
    })?;
    Ok(object([
        ("version", version),
        ("originator", optional(originator, |node| node)),
        ("ukm", optional(ukm, |node| node)),
        ("keyEncryptionAlgorithm", algorithm),
        ("recipientEncryptedKeys", Node::List(keys)),
    ]))
}

/// OriginatorIdentifierOrKey: a certificate, or the ephemeral public key under `[1]`.
fn originator(reader: &mut Reader<'_>) -> Result<Node> {
    let Some(key) = reader.optional(tag::constructed(1))? else {
        return recipient_identifier(reader);
    };
    let mut fields = key.contents();
    let kind = identifier(&mut fields)?;
    let bits = fields.element(tag::BIT_STRING, "a BIT STRING")?.bits()?.1;
    fields.finish()?;
    Ok(object([("algorithm", kind), ("publicKey", hex(bits))]))
}

fn key_encryption_key(fields: &mut Reader<'_>) -> Result<Node> {
    let version = version(fields)?;
    let mut key = fields.sequence()?;
    let identifier_of_key = octets(&mut key)?;
    Ok(object([
        ("version", version),
        ("keyIdentifier", identifier_of_key),
        ("keyEncryptionAlgorithm", identifier(fields)?),
        ("encryptedKey", octets(fields)?),
    ]))
}

fn password(fields: &mut Reader<'_>) -> Result<Node> {
    let version = version(fields)?;
    let derivation = match fields.optional(tag::constructed(0))? {
        Some(element) => algorithm(&AlgorithmIdentifier::read_contents(
            &mut element.contents(),
        )?),
        None => Node::Absent,
    };
    Ok(object([
        ("version", version),
        ("keyDerivationAlgorithm", derivation),
        ("keyEncryptionAlgorithm", identifier(fields)?),
        ("encryptedKey", octets(fields)?),
    ]))
}

/// OtherRecipientInfo; a KEMRecipientInfo in words (RFC 9629, 3).
fn other(fields: &mut Reader<'_>) -> Result<Node> {
    let kind = fields.oid()?;
    let value = fields.any()?;
    let described = match alloc::format!("{kind}") == ORI_KEM {
        true => kem(&mut value.contents()).unwrap_or_else(|_| hex(value.raw)),
        false => hex(value.raw),
    };
    Ok(object([("oriType", oid(kind)), ("oriValue", described)]))
}

fn kem(fields: &mut Reader<'_>) -> Result<Node> {
    let version = version(fields)?;
    let rid = recipient_identifier(fields)?;
    let kem = identifier(fields)?;
    let ciphertext = octets(fields)?;
    let kdf = identifier(fields)?;
    let length = integer_element(&fields.element(tag::INTEGER, "an INTEGER")?);
    let ukm = fields.explicit(0, octets)?;
    Ok(object([
        ("version", version),
        ("rid", rid),
        ("kem", kem),
        ("kemct", ciphertext),
        ("kdf", kdf),
        ("kekLength", length),
        ("ukm", optional(ukm, |node| node)),
        ("wrap", identifier(fields)?),
        ("encryptedKey", octets(fields)?),
    ]))
}
