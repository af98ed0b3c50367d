//! Certificates, requests, names and algorithms.

use super::node::{Node, hex, list, object, optional, text};
use crate::crmf::{AttributeTypeAndValue, CertId, CertTemplate};
use crate::encrypted::EncryptedKey;
use crate::name::GeneralName;
use crate::oid::Oid;
use crate::x509::{
    AlgorithmIdentifier, Certificate, CertificationRequest, Extension, PublicKeyInfo,
};

pub(super) fn oid(oid: Oid<'_>) -> Node {
    match oid.name() {
        Some(name) => text(name),
        None => text(oid),
    }
}

pub(super) fn general_name(name: &GeneralName<'_>) -> Node {
    if name.is_null() {
        text("NULL-DN")
    } else {
        text(name)
    }
}

pub(super) fn algorithm(identifier: &AlgorithmIdentifier<'_>) -> Node {
    let parameters = identifier.parameters.filter(|der| *der != [0x05, 0x00]);
    match parameters {
        None => oid(identifier.oid),
        Some(der) => object([("algorithm", oid(identifier.oid)), ("parameters", hex(der))]),
    }
}

pub(super) fn cert_template(template: &CertTemplate<'_>) -> Node {
    let number = |wanted| {
        let found = template.others.iter().find(|(number, _)| *number == wanted);
        optional(found, |(_, der)| hex(der))
    };
    object([
        ("version", number(0)),
        ("serialNumber", number(1)),
        ("signingAlg", number(2)),
        ("issuer", optional(template.issuer.as_ref(), text)),
        ("validity", number(4)),
        ("subject", optional(template.subject.as_ref(), text)),
        (
            "publicKey",
            optional(template.public_key.as_deref(), public_key),
        ),
        ("issuerUID", number(7)),
        ("subjectUID", number(8)),
        ("extensions", list(&template.extensions, extension)),
    ])
}

pub(super) fn cert_id(id: &CertId<'_>) -> Node {
    object([
        ("issuer", general_name(&id.issuer)),
        ("serialNumber", hex(id.serial_number)),
    ])
}

pub(super) fn attribute(attribute: &AttributeTypeAndValue<'_>) -> Node {
    let old_cert_id = match attribute.oid == crate::oid::REG_CTRL_OLD_CERT_ID {
        true => CertId::from_der(attribute.value).ok(),
        false => None,
    };
    object([
        ("type", oid(attribute.oid)),
        (
            "value",
            match &old_cert_id {
                Some(id) => cert_id(id),
                None => hex(attribute.value),
            },
        ),
    ])
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

pub(super) fn enveloped_data(data: &crate::encrypted::EnvelopedData<'_>) -> Node {
    object([
        ("version", Node::Number(data.version)),
        (
            "recipientInfos",
            list(&data.recipients, |kind| text(kind.name())),
        ),
        ("contentType", oid(data.content_type)),
        (
            "contentEncryptionAlgorithm",
            algorithm(&data.content_encryption),
        ),
    ])
}

pub(super) fn certificate(der: &[u8]) -> Node {
    let Ok(certificate) = Certificate::from_der(der) else {
        return object([("unreadable", Node::Bool(true)), ("der", hex(der))]);
    };
    object([
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
    ])
}

pub(super) fn certification_request(request: &CertificationRequest<'_>) -> Node {
    object([
        ("subject", text(&request.subject)),
        ("subjectPKInfo", public_key(request.public_key.raw)),
        ("extensions", list(&request.extensions, extension)),
        (
            "signatureAlgorithm",
            algorithm(&request.signature_algorithm),
        ),
        ("signature", hex(request.signature)),
    ])
}

pub(super) fn public_key(der: &[u8]) -> Node {
    let Ok(key) = PublicKeyInfo::from_der(der) else {
        return hex(der);
    };
    object([
        ("algorithm", oid(key.algorithm.oid)),
        ("curve", optional(key.curve(), oid)),
        ("subjectPublicKey", hex(key.key)),
    ])
}

pub(super) fn extension(extension: &Extension<'_>) -> Node {
    let names = match extension.oid == crate::oid::SUBJECT_ALT_NAME {
        true => crate::x509::general_names(extension.value).ok(),
        false => None,
    };
    object([
        ("extnID", oid(extension.oid)),
        (
            "critical",
            if extension.critical {
                Node::Bool(true)
            } else {
                Node::Absent
            },
        ),
        (
            "extnValue",
            match names {
                Some(names) => list(&names, |name| text(name)),
                None => hex(extension.value),
            },
        ),
    ])
}
