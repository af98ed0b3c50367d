//! A message as JSON in the words of the RFC.

mod body;
mod info;
mod node;
mod x509;

use alloc::string::String;

use self::node::{Node, hex, list, object, optional, text};
use self::x509::{algorithm, certificate, general_name, oid};
use crate::error::Result;
use crate::header::PkiHeader;
use crate::leniency::Leniency;
use crate::message::PkiMessage;
use crate::protection::{MacAlgorithm, ProtectionKind, protection_kind};
use crate::status::PkiFreeText;
use crate::x509::AlgorithmIdentifier;

/// Describes one DER PKIMessage as JSON. Members keep the order of the ASN.1; octets are
/// lowercase hexadecimal, times are RFC 3339.
pub fn describe(der: &[u8], leniency: Leniency) -> Result<String> {
    let message = PkiMessage::from_der_with(der, leniency)?;
    Ok(serde_json::to_string(&pki_message(&message.value)).unwrap_or_default())
}

fn pki_message(message: &PkiMessage<'_>) -> Node {
    let kind = match protection_kind(message) {
        ProtectionKind::None => "none",
        ProtectionKind::Mac => "mac",
        ProtectionKind::Signature => "signature",
        ProtectionKind::Unknown => "unknown",
    };
    object([
        ("header", header(&message.header)),
        ("body", body::body(&message.body)),
        (
            "protection",
            object([
                ("kind", text(kind)),
                ("value", optional(message.protection, hex)),
            ]),
        ),
        (
            "extraCerts",
            list(&message.extra_certs, |der| certificate(der)),
        ),
    ])
}

/// A message inside a message. It was read with the one around it.
fn nested(der: &[u8]) -> Node {
    match PkiMessage::from_der(der) {
        Ok(message) => pki_message(&message),
        Err(_) => hex(der),
    }
}

fn free_text(value: &PkiFreeText<'_>) -> Node {
    list(&value.0, |line| text(line))
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
        ("generalInfo", list(&header.general_info, info::info)),
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
