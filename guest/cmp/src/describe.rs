//! A message as JSON in the words of the RFC.

use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::fmt::Write as _;

use serde::{Serialize, Serializer};

use crate::body::{CertOrEncCert, CertResponse, CertStatus, ErrorMsgContent, PkiBody, PollRep};
use crate::crmf::{CertReqMsg, ProofOfPossession};
use crate::error::Result;
use crate::general_info::InfoTypeAndValue;
use crate::header::PkiHeader;
use crate::message::PkiMessage;
use crate::name::GeneralName;
use crate::oid::Oid;
use crate::protection::{MacAlgorithm, ProtectionKind, protection_kind};
use crate::status::{PkiFreeText, PkiStatusInfo};
use crate::x509::{
    AlgorithmIdentifier, Certificate, CertificationRequest, Extension, PublicKeyInfo,
};

/// Describes one DER PKIMessage as JSON. Members keep the order of the ASN.1; octets are
/// lowercase hexadecimal, times are RFC 3339.
pub fn describe(der: &[u8]) -> Result<String> {
    let message = PkiMessage::from_der(der)?;
    let kind = match protection_kind(&message) {
        ProtectionKind::None => "none",
        ProtectionKind::Mac => "mac",
        ProtectionKind::Signature => "signature",
        ProtectionKind::Unknown => "unknown",
    };
    let described = object([
        ("header", header(&message.header)),
        ("body", body(&message.body)),
        (
            "protection",
            object([
                ("kind", text(kind)),
                ("value", optional(message.protection, |bits| hex(bits))),
            ]),
        ),
        (
            "extraCerts",
            list(&message.extra_certs, |der| certificate(der)),
        ),
    ]);
    Ok(serde_json::to_string(&described).unwrap_or_default())
}

/// A JSON value whose members keep their order.
enum Node {
    Absent,
    Text(String),
    Number(i64),
    Bool(bool),
    List(Vec<Node>),
    Object(Vec<(&'static str, Node)>),
}

impl Serialize for Node {
    fn serialize<S: Serializer>(&self, serializer: S) -> core::result::Result<S::Ok, S::Error> {
        match self {
            Self::Absent => serializer.serialize_unit(),
            Self::Text(text) => serializer.serialize_str(text),
            Self::Number(number) => serializer.serialize_i64(*number),
            Self::Bool(value) => serializer.serialize_bool(*value),
            Self::List(items) => serializer.collect_seq(items),
            Self::Object(members) => {
                serializer.collect_map(members.iter().map(|(name, value)| (*name, value)))
            }
        }
    }
}

/// An object without the members that are absent or empty lists.
fn object<const N: usize>(members: [(&'static str, Node); N]) -> Node {
    let present = |(_, value): &(_, Node)| match value {
        Node::Absent => false,
        Node::List(items) => !items.is_empty(),
        _ => true,
    };
    Node::Object(members.into_iter().filter(present).collect())
}

fn text(value: impl ToString) -> Node {
    Node::Text(value.to_string())
}

fn hex(octets: &[u8]) -> Node {
    let mut out = String::with_capacity(octets.len() * 2);
    for octet in octets {
        let _ = write!(out, "{octet:02x}");
    }
    Node::Text(out)
}

fn optional<T>(value: Option<T>, describe: impl FnOnce(T) -> Node) -> Node {
    value.map_or(Node::Absent, describe)
}

fn list<T>(items: &[T], describe: impl FnMut(&T) -> Node) -> Node {
    Node::List(items.iter().map(describe).collect())
}

fn oid(oid: Oid<'_>) -> Node {
    match oid.name() {
        Some(name) => text(name),
        None => text(oid),
    }
}

fn free_text(value: &PkiFreeText<'_>) -> Node {
    list(&value.0, |line| text(line))
}

fn general_name(name: &GeneralName<'_>) -> Node {
    if name.is_null() {
        text("NULL-DN")
    } else {
        text(name)
    }
}

fn header(header: &PkiHeader<'_>) -> Node {
    object([
        ("pvno", Node::Number(header.pvno.into())),
        ("sender", general_name(&header.sender)),
        ("recipient", general_name(&header.recipient)),
        (
            "messageTime",
            optional(header.message_time, |time| text(time.rfc3339())),
        ),
        (
            "protectionAlg",
            optional(header.protection_alg.as_ref(), protection_algorithm),
        ),
        ("senderKID", optional(header.sender_kid, hex)),
        ("recipKID", optional(header.recip_kid, hex)),
        ("transactionID", optional(header.transaction_id, hex)),
        ("senderNonce", optional(header.sender_nonce, hex)),
        ("recipNonce", optional(header.recip_nonce, hex)),
        ("freeText", optional(header.free_text.as_ref(), free_text)),
        ("generalInfo", list(&header.general_info, info)),
    ])
}

fn info(info: &InfoTypeAndValue<'_>) -> Node {
    object([
        ("infoType", oid(info.info_type)),
        ("infoValue", optional(info.value, hex)),
    ])
}

fn protection_algorithm(identifier: &AlgorithmIdentifier<'_>) -> Node {
    match MacAlgorithm::from_identifier(identifier) {
        Ok(MacAlgorithm::PasswordBased {
            salt,
            owf,
            iterations,
            mac,
        }) => object([
            ("algorithm", oid(identifier.oid)),
            ("salt", hex(salt)),
            ("owf", oid(owf.oid())),
            ("iterationCount", Node::Number(iterations.into())),
            ("mac", oid(mac.hmac_oid())),
        ]),
        Err(_) => algorithm(identifier),
    }
}

fn algorithm(identifier: &AlgorithmIdentifier<'_>) -> Node {
    let parameters = identifier.parameters.filter(|der| *der != [0x05, 0x00]);
    match parameters {
        None => oid(identifier.oid),
        Some(der) => object([("algorithm", oid(identifier.oid)), ("parameters", hex(der))]),
    }
}

fn body(body: &PkiBody<'_>) -> Node {
    let name = body.body_type().name();
    let content = match body {
        PkiBody::Ir(requests) | PkiBody::Cr(requests) => list(requests, request),
        PkiBody::Ip(response) | PkiBody::Cp(response) => object([
            ("caPubs", list(&response.ca_pubs, |der| certificate(der))),
            ("response", list(&response.responses, cert_response)),
        ]),
        PkiBody::P10cr(request) => certification_request(request),
        PkiBody::CertConf(statuses) => list(statuses, cert_status),
        PkiBody::PkiConf => Node::Absent,
        PkiBody::PollReq(ids) => list(ids, |id| object([("certReqId", Node::Number(*id))])),
        PkiBody::PollRep(entries) => list(entries, poll_rep),
        PkiBody::Error(content) => error(content),
        PkiBody::Other(_, der) => object([("der", hex(der))]),
    };
    object([("type", text(name)), ("content", content)])
}

fn request(message: &CertReqMsg<'_>) -> Node {
    let template = &message.request.template;
    let popo = message.popo.as_ref().map(|popo| match popo {
        ProofOfPossession::RaVerified => object([("type", text("raVerified"))]),
        ProofOfPossession::Signature {
            algorithm: identifier,
            signature,
        } => object([
            ("type", text("signature")),
            ("algorithmIdentifier", algorithm(identifier)),
            ("signature", hex(signature)),
        ]),
        ProofOfPossession::Other(der) => object([("type", text("other")), ("der", hex(der))]),
    });
    object([
        ("certReqId", Node::Number(message.request.cert_req_id)),
        (
            "certTemplate",
            object([
                ("issuer", optional(template.issuer.as_ref(), text)),
                ("subject", optional(template.subject.as_ref(), text)),
                (
                    "publicKey",
                    optional(template.public_key.as_deref(), public_key),
                ),
                ("extensions", list(&template.extensions, extension)),
            ]),
        ),
        ("controls", optional(message.request.controls, hex)),
        ("popo", optional(popo, |node| node)),
        ("regInfo", optional(message.reg_info, hex)),
    ])
}

fn cert_response(response: &CertResponse<'_>) -> Node {
    let pair = response.certified_key_pair.as_ref().map(|pair| {
        let (clear, encrypted) = match pair.cert_or_enc_cert {
            CertOrEncCert::Certificate(der) => (certificate(der), Node::Absent),
            CertOrEncCert::EncryptedCert(der) => (Node::Absent, hex(der)),
        };
        object([
            ("certificate", clear),
            ("encryptedCert", encrypted),
            ("privateKey", optional(pair.private_key, hex)),
            ("publicationInfo", optional(pair.publication_info, hex)),
        ])
    });
    object([
        ("certReqId", Node::Number(response.cert_req_id)),
        ("status", status(&response.status)),
        ("certifiedKeyPair", optional(pair, |node| node)),
        ("rspInfo", optional(response.rsp_info, hex)),
    ])
}

fn status(info: &PkiStatusInfo<'_>) -> Node {
    let fail_info: Vec<_> = info
        .fail_info
        .into_iter()
        .flat_map(|set| set.names())
        .collect();
    object([
        ("status", text(info.status.name())),
        (
            "statusString",
            optional(info.status_string.as_ref(), free_text),
        ),
        ("failInfo", list(&fail_info, |name| text(name))),
    ])
}

fn cert_status(entry: &CertStatus<'_>) -> Node {
    object([
        ("certHash", hex(entry.cert_hash)),
        ("certReqId", Node::Number(entry.cert_req_id)),
        ("statusInfo", optional(entry.status_info.as_ref(), status)),
        ("hashAlg", optional(entry.hash_alg.as_ref(), algorithm)),
    ])
}

fn poll_rep(entry: &PollRep<'_>) -> Node {
    object([
        ("certReqId", Node::Number(entry.cert_req_id)),
        ("checkAfter", Node::Number(entry.check_after)),
        ("reason", optional(entry.reason.as_ref(), free_text)),
    ])
}

fn error(content: &ErrorMsgContent<'_>) -> Node {
    object([
        ("pKIStatusInfo", status(&content.status)),
        ("errorCode", optional(content.error_code, hex)),
        (
            "errorDetails",
            optional(content.error_details.as_ref(), free_text),
        ),
    ])
}

fn certificate(der: &[u8]) -> Node {
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

fn certification_request(request: &CertificationRequest<'_>) -> Node {
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

fn public_key(der: &[u8]) -> Node {
    let Ok(key) = PublicKeyInfo::from_der(der) else {
        return hex(der);
    };
    object([
        ("algorithm", oid(key.algorithm.oid)),
        ("curve", optional(key.curve(), oid)),
        ("subjectPublicKey", hex(key.key)),
    ])
}

fn extension(extension: &Extension<'_>) -> Node {
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
