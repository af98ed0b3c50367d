//! InfoTypeAndValue.

use super::body::root_ca_key_update;
use super::node::{Node, hex, list, object, optional, text};
use super::x509::{
    algorithm, attribute, cert_template, certificate, encrypted_key, general_name, oid,
};
use super::{free_text, nested};
use crate::general_info::{CrlSource, CrlStatus, InfoTypeAndValue, InfoValue};

pub(super) fn info(info: &InfoTypeAndValue<'_>) -> Node {
    // A value that breaks its type's rules is shown as it is.
    let value = match info.interpret() {
        Ok(value) => info_value(&value),
        Err(_) => optional(info.value, hex),
    };
    object([("infoType", oid(info.info_type)), ("infoValue", value)])
}

fn info_value(value: &InfoValue<'_>) -> Node {
    match value {
        InfoValue::Absent | InfoValue::ImplicitConfirm => Node::Absent,
        InfoValue::ConfirmWaitTime(time) => text(time.rfc3339()),
        InfoValue::Texts(texts) => free_text(texts),
        InfoValue::Messages(messages) => list(messages, |der| nested(der)),
        InfoValue::Algorithms(algorithms) => list(algorithms, algorithm),
        InfoValue::Algorithm(one) => algorithm(one),
        InfoValue::Oids(oids) => list(oids, |one| oid(*one)),
        InfoValue::Oid(one) => oid(*one),
        InfoValue::Certificate(der) => certificate(der),
        InfoValue::Certificates(ders) => list(ders, |der| certificate(der)),
        InfoValue::Crls(ders) => list(ders, |der| hex(der)),
        InfoValue::RevPassphrase(key) => encrypted_key(key),
        InfoValue::RootCaKeyUpdate(content) => root_ca_key_update(content),
        InfoValue::CertReqTemplate { template, key_spec } => object([
            ("certTemplate", cert_template(template)),
            ("keySpec", list(key_spec, attribute)),
        ]),
        InfoValue::CrlStatusList(list_of) => list(list_of, crl_status),
        InfoValue::KemCiphertext { kem, ciphertext } => {
            object([("kem", algorithm(kem)), ("ct", hex(ciphertext))])
        }
        InfoValue::Other(der) => hex(der),
    }
}

fn crl_status(status: &CrlStatus<'_>) -> Node {
    let source = match &status.source {
        CrlSource::FullName(names) => object([("fullName", list(names, general_name))]),
        CrlSource::NameRelativeToIssuer(der) => object([("nameRelativeToCRLIssuer", hex(der))]),
        CrlSource::Issuer(names) => object([("issuer", list(names, general_name))]),
    };
    object([
        ("source", source),
        (
            "thisUpdate",
            optional(status.this_update, |time| text(time.rfc3339())),
        ),
    ])
}
