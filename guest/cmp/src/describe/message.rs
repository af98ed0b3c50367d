//! PKIMessage and PKIHeader.

use super::Scope;
use super::algorithm::algorithm;
use super::body::body;
use super::info::info;
use super::node::{Node, hex, list, object, optional, readable, text};
use super::x509::{any_certificate, general_name};
use crate::header::PkiHeader;
use crate::message::PkiMessage;
use crate::protection::{ProtectionKind, protection_kind};
use crate::status::PkiFreeText;

pub(super) fn message(message: &PkiMessage<'_>, scope: Scope<'_>) -> Node {
    let protection = protection_kind(message);
    let kind = match protection {
        ProtectionKind::None => "none",
        ProtectionKind::Mac => "mac",
        ProtectionKind::Signature => "signature",
        ProtectionKind::Unknown => "unknown",
    };
    object([
        ("header", header(&message.header, protection, scope)),
        ("body", body(&message.body, scope)),
        (
            "protection",
            object([
                ("kind", text(kind)),
                ("value", optional(message.protection, hex)),
            ]),
        ),
        (
            "extraCerts",
            list(&message.extra_certs, |der| any_certificate(der, scope)),
        ),
    ])
}

/// A message inside a message. It was read with the one around it.
pub(super) fn nested(der: &[u8], scope: Scope<'_>) -> Node {
    let Some(scope) = scope.inside() else {
        return hex(der);
    };
    match PkiMessage::from_der_with(der, scope.leniency) {
        Ok(inner) => message(&inner.value, scope),
        Err(_) => hex(der),
    }
}

pub(super) fn free_text(value: &PkiFreeText<'_>) -> Node {
    list(&value.0, |line| Node::Text(line.as_ref().into()))
}

fn header(header: &PkiHeader<'_>, protection: ProtectionKind, scope: Scope<'_>) -> Node {
    // With a shared secret the key identifier is the name of the secret (RFC 9483, 3.1).
    let reference = header
        .sender_kid
        .filter(|_| protection == ProtectionKind::Mac)
        .and_then(readable);
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
            optional(header.protection_alg.as_ref(), algorithm),
        ),
        ("senderKID", optional(header.sender_kid, hex)),
        ("senderKIDText", optional(reference, text)),
        ("recipKID", optional(header.recip_kid, hex)),
        ("transactionID", optional(header.transaction_id, hex)),
        ("senderNonce", optional(header.sender_nonce, hex)),
        ("recipNonce", optional(header.recip_nonce, hex)),
        ("freeText", optional(header.free_text.as_ref(), free_text)),
        (
            "generalInfo",
            list(&header.general_info, |one| info(one, scope)),
        ),
    ])
}
