//! Extensions of certificates, CRLs and CRL entries (RFC 5280, 4.2, 5.2 and 5.3).

use alloc::string::String;

use super::names::oid;
use super::node::{Node, bit_names, hex, integer_element, list, object, optional, text};
use super::x509::{any_value, distribution_point_name, general_name, general_names};
use crate::der::{Element, Reader, tag};
use crate::error::{Result, Rule};
use crate::name::{GeneralName, Name};
use crate::oid;
use crate::time::Time;
use crate::x509::Extension;

pub(super) fn extension(extension: &Extension<'_>) -> Node {
    let mut reader = Reader::judged(extension.value);
    let value = match value(extension, &mut reader) {
        Ok(Some(value)) if reader.is_empty() => value,
        Ok(None) => any_value(extension.value),
        _ => hex(extension.value),
    };
    let critical = match extension.critical {
        true => Node::Bool(true),
        false => Node::Absent,
    };
    object([
        ("extnID", oid(extension.oid)),
        ("critical", critical),
        ("extnValue", value),
    ])
}

const KEY_USAGE: [&str; 9] = [
    "digitalSignature",
    "nonRepudiation",
    "keyEncipherment",
    "dataEncipherment",
    "keyAgreement",
    "keyCertSign",
    "cRLSign",
    "encipherOnly",
    "decipherOnly",
];

const REASON_FLAGS: [&str; 9] = [
    "unused",
    "keyCompromise",
    "cACompromise",
    "affiliationChanged",
    "superseded",
    "cessationOfOperation",
    "certificateHold",
    "privilegeWithdrawn",
    "aACompromise",
];

/// The value in words, if its type is known. Extensions that only this module knows are
/// told by their dotted form.
fn value(extension: &Extension<'_>, reader: &mut Reader<'_>) -> Result<Option<Node>> {
    let known = match extension.oid {
        oid::KEY_USAGE => bits(&reader.any()?, &KEY_USAGE)?,
        oid::EXTENDED_KEY_USAGE => {
            let purposes = reader.sequence_of(Reader::oid)?;
            list(&purposes, |purpose| oid(*purpose))
        }
        oid::SUBJECT_ALT_NAME => general_names(&mut reader.sequence()?)?,
        oid::BASIC_CONSTRAINTS => basic_constraints(reader)?,
        oid::NAME_CONSTRAINTS => name_constraints(reader)?,
        oid::SUBJECT_KEY_IDENTIFIER => hex(reader.octet_string()?.value),
        oid::AUTHORITY_KEY_IDENTIFIER => authority_key_identifier(reader)?,
        oid::CRL_DISTRIBUTION_POINTS => distribution_points(reader)?,
        oid::CERTIFICATE_POLICIES => policies(reader)?,
        other => return by_dotted_form(&alloc::format!("{other}"), reader),
    };
    Ok(Some(known))
}

fn by_dotted_form(dotted: &str, reader: &mut Reader<'_>) -> Result<Option<Node>> {
    Ok(Some(match dotted {
        // issuerAltName, certificateIssuer.
        "2.5.29.18" | "2.5.29.29" => general_names(&mut reader.sequence()?)?,
        // cRLNumber, deltaCRLIndicator, inhibitAnyPolicy.
        "2.5.29.20" | "2.5.29.27" | "2.5.29.54" => {
            integer_element(&reader.element(tag::INTEGER, "an INTEGER")?)
        }
        "2.5.29.21" => reason(reader)?,
        // invalidityDate.
        "2.5.29.24" => text(Time::generalized(reader)?.rfc3339()),
        "2.5.29.28" => issuing_distribution_point(reader)?,
        "2.5.29.33" => policy_mappings(reader)?,
        "2.5.29.36" => {
            let mut fields = reader.sequence()?;
            let node = object([
                ("requireExplicitPolicy", optional_integer(&mut fields, 0)?),
                ("inhibitPolicyMapping", optional_integer(&mut fields, 1)?),
            ]);
            fields.finish()?;
            node
        }
        // freshestCRL.
        "2.5.29.46" => distribution_points(reader)?,
        // authorityInfoAccess, subjectInfoAccess.
        "1.3.6.1.5.5.7.1.1" | "1.3.6.1.5.5.7.1.11" => {
            let accesses = reader.sequence_of(|reader| {
                let mut fields = reader.sequence()?;
                let node = object([
                    ("accessMethod", oid(fields.oid()?)),
                    (
                        "accessLocation",
                        general_name(&GeneralName::read(&mut fields)?),
                    ),
                ]);
                fields.finish()?;
                Ok(node)
            })?;
            Node::List(accesses)
        }
        // id-pkix-ocsp-nocheck.
        "1.3.6.1.5.5.7.48.1.5" => any_value(reader.any()?.raw),
        _ => return Ok(None),
    }))
}

fn bits(element: &Element<'_>, names: &[&str]) -> Result<Node> {
    Ok(bit_names(element.bits()?.1, names))
}

fn optional_integer(fields: &mut Reader<'_>, number: u8) -> Result<Node> {
    let element = fields.optional(tag::primitive(number))?;
    Ok(optional(element, |element| integer_element(&element)))
}

fn optional_names(fields: &mut Reader<'_>, number: u8) -> Result<Node> {
    match fields.optional(tag::constructed(number))? {
        Some(element) => general_names(&mut element.contents()),
        None => Ok(Node::Absent),
    }
}

fn basic_constraints(reader: &mut Reader<'_>) -> Result<Node> {
    let mut fields = reader.sequence()?;
    let is_ca = match fields.peek() {
        Some(tag::BOOLEAN) => fields.boolean()?,
        _ => false,
    };
    let length = fields.optional(tag::INTEGER)?;
    fields.finish()?;
    Ok(object([
        ("cA", Node::Bool(is_ca)),
        (
            "pathLenConstraint",
            optional(length, |element| integer_element(&element)),
        ),
    ]))
}

fn name_constraints(reader: &mut Reader<'_>) -> Result<Node> {
    let mut fields = reader.sequence()?;
    let mut subtrees = |number| -> Result<Node> {
        let Some(element) = fields.optional(tag::constructed(number))? else {
            return Ok(Node::Absent);
        };
        let bases = element.contents().collect(|reader| {
            let mut subtree = reader.sequence()?;
            let base = GeneralName::read(&mut subtree)?;
            Ok(match &base {
                GeneralName::Other([0x87, _, range @ ..]) => text(address_range(range)),
                name => general_name(name),
            })
        })?;
        Ok(Node::List(bases))
    };
    let node = object([
        ("permittedSubtrees", subtrees(0)?),
        ("excludedSubtrees", subtrees(1)?),
    ]);
    fields.finish()?;
    Ok(node)
}

/// An address and its mask (RFC 5280, 4.2.1.10).
fn address_range(range: &[u8]) -> String {
    use core::net::{Ipv4Addr, Ipv6Addr};
    let four = |octets: &[u8]| <[u8; 4]>::try_from(octets).map(Ipv4Addr::from);
    let sixteen = |octets: &[u8]| <[u8; 16]>::try_from(octets).map(Ipv6Addr::from);
    let (address, mask) = range.split_at(range.len() / 2);
    match (four(address), four(mask), sixteen(address), sixteen(mask)) {
        (Ok(address), Ok(mask), ..) => alloc::format!("IP:{address}/{mask}"),
        (.., Ok(address), Ok(mask)) => alloc::format!("IP:{address}/{mask}"),
        _ => "IP:malformed".into(),
    }
}

fn authority_key_identifier(reader: &mut Reader<'_>) -> Result<Node> {
    let mut fields = reader.sequence()?;
    let identifier = fields.optional(tag::primitive(0))?;
    let issuer = optional_names(&mut fields, 1)?;
    let serial = fields.optional(tag::primitive(2))?;
    fields.finish()?;
    Ok(object([
        ("keyIdentifier", optional(identifier, |e| hex(e.value))),
        ("authorityCertIssuer", issuer),
        (
            "authorityCertSerialNumber",
            optional(serial, |e| hex(e.value)),
        ),
    ]))
}

fn optional_point_name(fields: &mut Reader<'_>) -> Result<Node> {
    let name = fields.explicit(0, |reader| Ok(distribution_point_name(reader.any()?.raw)))?;
    Ok(optional(name, |name| name))
}

fn optional_reasons(fields: &mut Reader<'_>, number: u8) -> Result<Node> {
    match fields.optional(tag::primitive(number))? {
        Some(element) => bits(&element, &REASON_FLAGS),
        None => Ok(Node::Absent),
    }
}

fn distribution_points(reader: &mut Reader<'_>) -> Result<Node> {
    let points = reader.sequence_of(|reader| {
        let mut fields = reader.sequence()?;
        let node = object([
            ("distributionPoint", optional_point_name(&mut fields)?),
            ("reasons", optional_reasons(&mut fields, 1)?),
            ("cRLIssuer", optional_names(&mut fields, 2)?),
        ]);
        fields.finish()?;
        Ok(node)
    })?;
    Ok(Node::List(points))
}

fn issuing_distribution_point(reader: &mut Reader<'_>) -> Result<Node> {
    let mut fields = reader.sequence()?;
    let point = optional_point_name(&mut fields)?;
    let flag = |fields: &mut Reader<'_>, number| -> Result<Node> {
        Ok(match fields.optional(tag::primitive(number))? {
            Some(element) => Node::Bool(element.value != [0]),
            None => Node::Absent,
        })
    };
    let node = object([
        ("distributionPoint", point),
        ("onlyContainsUserCerts", flag(&mut fields, 1)?),
        ("onlyContainsCACerts", flag(&mut fields, 2)?),
        ("onlySomeReasons", optional_reasons(&mut fields, 3)?),
        ("indirectCRL", flag(&mut fields, 4)?),
        ("onlyContainsAttributeCerts", flag(&mut fields, 5)?),
    ]);
    fields.finish()?;
    Ok(node)
}

fn policies(reader: &mut Reader<'_>) -> Result<Node> {
    let policies = reader.sequence_of(|reader| {
        let mut fields = reader.sequence()?;
        let identifier = oid(fields.oid()?);
        let qualifiers = match fields.is_empty() {
            true => Node::Absent,
            false => Node::List(fields.sequence_of(qualifier)?),
        };
        fields.finish()?;
        Ok(object([
            ("policyIdentifier", identifier),
            ("policyQualifiers", qualifiers),
        ]))
    })?;
    Ok(Node::List(policies))
}

fn qualifier(reader: &mut Reader<'_>) -> Result<Node> {
    let mut fields = reader.sequence()?;
    let kind = fields.oid()?;
    let value = fields.any()?;
    fields.finish()?;
    let shown = match value.tag {
        tag::IA5_STRING => text(value.utf8()?),
        _ => any_value(value.raw),
    };
    Ok(object([
        ("policyQualifierId", oid(kind)),
        ("qualifier", shown),
    ]))
}

fn policy_mappings(reader: &mut Reader<'_>) -> Result<Node> {
    let mappings = reader.sequence_of(|reader| {
        let mut fields = reader.sequence()?;
        let node = object([
            ("issuerDomainPolicy", oid(fields.oid()?)),
            ("subjectDomainPolicy", oid(fields.oid()?)),
        ]);
        fields.finish()?;
        Ok(node)
    })?;
    Ok(Node::List(mappings))
}

/// CRLReason (RFC 5280, 5.3.1).
pub(super) fn reason(reader: &mut Reader<'_>) -> Result<Node> {
    const NAMES: [&str; 11] = [
        "unspecified",
        "keyCompromise",
        "cACompromise",
        "affiliationChanged",
        "superseded",
        "cessationOfOperation",
        "certificateHold",
        "value 7",
        "removeFromCRL",
        "privilegeWithdrawn",
        "aACompromise",
    ];
    let element = reader.element(tag::ENUMERATED, "a CRLReason")?;
    match NAMES.get(usize::try_from(element.integer()?).unwrap_or(usize::MAX)) {
        Some(name) => Ok(text(name)),
        None => reader.fault(Rule::Content("a CRLReason outside 0 to 10")),
    }
}

/// An optional Name under an EXPLICIT tag.
pub(super) fn optional_name(name: Option<&Name<'_>>) -> Node {
    optional(name, |name| match name.is_null() {
        true => text("NULL-DN"),
        false => text(name),
    })
}
