//! Algorithms with their parameters, and public keys.

use super::names::oid;
use super::node::{Node, hex, integer_element, object, optional, text};
use crate::der::{Reader, tag};
use crate::error::Result;
use crate::limits;
use crate::oid;
use crate::x509::{AlgorithmIdentifier, PublicKeyInfo};

/// The name alone where there are no parameters or NULL; else an object with the
/// parameters in words, or as hexadecimal where they are not known.
pub(super) fn algorithm(identifier: &AlgorithmIdentifier<'_>) -> Node {
    within(identifier, limits::ALGORITHMS)
}

/// `depth` more algorithms may lie inside.
fn within(identifier: &AlgorithmIdentifier<'_>, depth: usize) -> Node {
    let Some(der) = identifier.parameters.filter(|der| *der != [0x05, 0x00]) else {
        return oid(identifier.oid);
    };
    let name = oid(identifier.oid);
    let mut reader = Reader::judged(der);
    let known = depth.checked_sub(1).map(|depth| match identifier.oid {
        oid::PASSWORD_BASED_MAC => pbm(&mut reader, depth),
        oid::DH_BASED_MAC => dhbm(&mut reader, depth),
        oid::PBMAC1 => pbmac1(&mut reader, depth),
        oid::KEM_BASED_MAC => kem_mac(&mut reader, depth),
        oid::RSA_PSS => pss(&mut reader, depth),
        oid::PBKDF2 => pbkdf2(&mut reader, depth),
        _ => other(&mut reader, depth),
    });
    match known {
        Some(Ok(Node::Object(mut members))) if reader.is_empty() => {
            members.insert(0, ("algorithm", name));
            Node::Object(members)
        }
        _ => object([("algorithm", name), ("parameters", hex(der))]),
    }
}

fn identifier(reader: &mut Reader<'_>, depth: usize) -> Result<Node> {
    Ok(within(&AlgorithmIdentifier::read(reader)?, depth))
}

fn number(reader: &mut Reader<'_>) -> Result<Node> {
    Ok(integer_element(
        &reader.element(tag::INTEGER, "an INTEGER")?,
    ))
}

/// PBMParameter (RFC 9810, 5.1.3.1).
fn pbm(reader: &mut Reader<'_>, depth: usize) -> Result<Node> {
    let mut fields = reader.sequence()?;
    let node = object([
        ("salt", hex(fields.octet_string()?.value)),
        ("owf", identifier(&mut fields, depth)?),
        ("iterationCount", number(&mut fields)?),
        ("mac", identifier(&mut fields, depth)?),
    ]);
    fields.finish()?;
    Ok(node)
}

/// DHBMParameter (RFC 9810, 5.1.3.2).
fn dhbm(reader: &mut Reader<'_>, depth: usize) -> Result<Node> {
    let mut fields = reader.sequence()?;
    let node = object([
        ("owf", identifier(&mut fields, depth)?),
        ("mac", identifier(&mut fields, depth)?),
    ]);
    fields.finish()?;
    Ok(node)
}

/// PBMAC1-params (RFC 8018, A.5).
fn pbmac1(reader: &mut Reader<'_>, depth: usize) -> Result<Node> {
    let mut fields = reader.sequence()?;
    let node = object([
        ("keyDerivationFunc", identifier(&mut fields, depth)?),
        ("messageAuthScheme", identifier(&mut fields, depth)?),
    ]);
    fields.finish()?;
    Ok(node)
}

/// PBKDF2-params (RFC 8018, A.2). The PRF is HMAC with SHA-1 where none is named.
fn pbkdf2(reader: &mut Reader<'_>, depth: usize) -> Result<Node> {
    let mut fields = reader.sequence()?;
    let salt = fields.octet_string()?.value;
    let iterations = number(&mut fields)?;
    let key_length = match fields.peek() {
        Some(tag::INTEGER) => number(&mut fields)?,
        _ => Node::Absent,
    };
    let prf = match fields.is_empty() {
        true => oid(oid::HMAC_SHA1),
        false => identifier(&mut fields, depth)?,
    };
    fields.finish()?;
    Ok(object([
        ("salt", hex(salt)),
        ("iterationCount", iterations),
        ("keyLength", key_length),
        ("prf", prf),
    ]))
}

/// KemBMParameter (RFC 9810, 5.1.3.4).
fn kem_mac(reader: &mut Reader<'_>, depth: usize) -> Result<Node> {
    let mut fields = reader.sequence()?;
    let kdf = identifier(&mut fields, depth)?;
    let context = fields.explicit(0, |reader| Ok(hex(reader.octet_string()?.value)))?;
    let node = object([
        ("kdf", kdf),
        ("kemContext", optional(context, |context| context)),
        ("len", number(&mut fields)?),
        ("mac", identifier(&mut fields, depth)?),
    ]);
    fields.finish()?;
    Ok(node)
}

/// RSASSA-PSS-params (RFC 4055, 3.1), with the defaults where fields are absent.
fn pss(reader: &mut Reader<'_>, depth: usize) -> Result<Node> {
    let mut fields = reader.sequence()?;
    let hash = fields.explicit(0, |reader| identifier(reader, depth))?;
    let mask = fields.explicit(1, |reader| {
        let mgf = AlgorithmIdentifier::read(reader)?;
        let hash = match mgf.parameters {
            Some(der) => identifier(&mut Reader::judged(der), depth)?,
            None => Node::Absent,
        };
        Ok(object([("algorithm", oid(mgf.oid)), ("hash", hash)]))
    })?;
    let salt = fields.explicit(2, number)?;
    fields.explicit(3, number)?;
    fields.finish()?;
    Ok(object([
        ("hashAlgorithm", hash.unwrap_or_else(|| oid(oid::SHA1))),
        (
            "maskGenAlgorithm",
            mask.unwrap_or_else(|| {
                object([("algorithm", text("id-mgf1")), ("hash", oid(oid::SHA1))])
            }),
        ),
        ("saltLength", salt.unwrap_or(Node::Number(20))),
    ]))
}

/// Parameters that say what they are: an IV, a curve, another algorithm.
fn other(reader: &mut Reader<'_>, depth: usize) -> Result<Node> {
    let parameters = match reader.peek() {
        Some(tag::OID) => oid(reader.oid()?),
        Some(tag::OCTET_STRING) => hex(reader.octet_string()?.value),
        Some(tag::INTEGER) => number(reader)?,
        _ => identifier(reader, depth)?,
    };
    Ok(object([("parameters", parameters)]))
}

/// A SubjectPublicKeyInfo: kind, curve, size in bits where that is a measure, and the key.
pub(super) fn public_key(der: &[u8]) -> Node {
    let Ok(key) = PublicKeyInfo::from_der(der) else {
        return hex(der);
    };
    object([
        ("algorithm", oid(key.algorithm.oid)),
        ("curve", optional(key.curve(), oid)),
        ("size", optional(size(&key), Node::Number)),
        ("subjectPublicKey", hex(key.key)),
    ])
}

/// Bits of the modulus or of the field.
fn size(key: &PublicKeyInfo<'_>) -> Option<i64> {
    match key.algorithm.oid {
        oid::RSA_ENCRYPTION | oid::RSA_PSS => {
            let mut fields = Reader::judged(key.key).sequence().ok()?;
            let modulus = fields.any().ok()?.big_integer().ok()?;
            let significant = match modulus {
                [0, rest @ ..] => rest,
                all => all,
            };
            let zeros = significant.first()?.leading_zeros();
            i64::try_from(significant.len() * 8)
                .ok()?
                .checked_sub(zeros.into())
        }
        oid::EC_PUBLIC_KEY => match key.curve()? {
            oid::P256 => Some(256),
            oid::P384 => Some(384),
            oid::P521 => Some(521),
            _ => None,
        },
        _ => None,
    }
}
