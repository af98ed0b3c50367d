//! InfoTypeAndValue.

use super::Scope;
use super::algorithm::algorithm;
use super::body::root_ca_key_update;
use super::crl::any_crl;
use super::crmf::{attribute, cert_template, encrypted_key};
use super::message::{free_text, nested};
use super::names::oid;
use super::node::{Node, hex, list, object, optional, text};
use super::x509::{any_certificate, any_value, distribution_point_name, general_name};
use crate::general_info::{CrlSource, CrlStatus, InfoTypeAndValue, InfoValue};

pub(super) fn info(info: &InfoTypeAndValue<'_>, scope: Scope<'_>) -> Node {
    // A value that breaks its type's rules is shown as it is.
    let value = match info.interpret_with(scope.leniency) {
        Ok(value) => info_value(&value.value, scope),
        Err(_) => optional(info.value, any_value),
    };
    object([("infoType", oid(info.info_type)), ("infoValue", value)])
}

fn info_value(value: &InfoValue<'_>, scope: Scope<'_>) -> Node {
    match value {
        InfoValue::Absent | InfoValue::ImplicitConfirm => Node::Absent,
        InfoValue::ConfirmWaitTime(time) => text(time.rfc3339()),
        InfoValue::Texts(texts) => free_text(texts),
        InfoValue::Messages(messages) => list(messages, |der| nested(der, scope)),
        InfoValue::Algorithms(algorithms) => list(algorithms, algorithm),
        InfoValue::Algorithm(one) => algorithm(one),
        InfoValue::Oids(oids) => list(oids, |one| oid(*one)),
        InfoValue::Oid(one) => oid(*one),
        InfoValue::Certificate(der) => any_certificate(der, scope),
        InfoValue::Certificates(ders) => list(ders, |der| any_certificate(der, scope)),
        InfoValue::Crls(ders) => list(ders, |der| any_crl(der, scope)),
        InfoValue::RevPassphrase(key) => encrypted_key(key),
        InfoValue::RootCaKeyUpdate(content) => root_ca_key_update(content, scope),
        InfoValue::CertReqTemplate { template, key_spec } => object([
            ("certTemplate", cert_template(template)),
            ("keySpec", list(key_spec, attribute)),
        ]),
        InfoValue::CrlStatusList(list_of) => list(list_of, crl_status),
        InfoValue::KemCiphertext { kem, ciphertext } => {
            object([("kem", algorithm(kem)), ("ct", hex(ciphertext))])
        }
        InfoValue::Other(der) => any_value(der),
    }
}

fn crl_status(status: &CrlStatus<'_>) -> Node {
    let source = match &status.source {
        CrlSource::FullName(names) => object([("fullName", list(names, general_name))]),
        CrlSource::NameRelativeToIssuer(der) => distribution_point_name(der),
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
