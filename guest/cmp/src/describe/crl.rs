//! CRLs (RFC 5280, 5.1), read as far as they are shown.

use alloc::vec::Vec;

use super::Scope;
use super::algorithm::algorithm;
use super::extension::extension;
use super::node::{Node, hex, list, object, optional, text};
use crate::der::{Reader, tag};
use crate::error::{Context, Result, Rule};
use crate::leniency::read_with;
use crate::limits;
use crate::name::Name;
use crate::protection::Hash;
use crate::time::Time;
use crate::x509::{AlgorithmIdentifier, Extension, read_extensions};

/// A CRL.
///
/// ```text
/// CertificateList ::= SEQUENCE {
///     tbsCertList         TBSCertList,
///     signatureAlgorithm  AlgorithmIdentifier,
///     signatureValue      BIT STRING }
/// TBSCertList ::= SEQUENCE {
///     version                 Version OPTIONAL,
///     signature               AlgorithmIdentifier,
///     issuer                  Name,
///     thisUpdate              Time,
///     nextUpdate              Time OPTIONAL,
///     revokedCertificates     SEQUENCE OF SEQUENCE { … } OPTIONAL,
///     crlExtensions       [0] Extensions OPTIONAL }
/// ```
pub(super) struct CertificateList<'a> {
    raw: &'a [u8],
    version: i64,
    issuer: Name<'a>,
    this_update: Time,
    next_update: Option<Time>,
    /// All of them.
    count: usize,
    /// The first [`limits::CRL_ENTRIES`].
    revoked: Vec<Revoked<'a>>,
    extensions: Vec<Extension<'a>>,
    signature_algorithm: AlgorithmIdentifier<'a>,
}

/// ```text
/// SEQUENCE {
///     userCertificate     CertificateSerialNumber,
///     revocationDate      Time,
///     crlEntryExtensions  Extensions OPTIONAL }
/// ```
struct Revoked<'a> {
    serial: &'a [u8],
    date: Time,
    extensions: Vec<Extension<'a>>,
}

impl<'a> CertificateList<'a> {
    pub(super) fn read(reader: &mut Reader<'a>) -> Result<Self> {
        let whole = reader.element(tag::SEQUENCE, "a CertificateList")?;
        let mut outer = whole.contents();
        let mut fields = outer.sequence().at("tbsCertList")?;
        let version = match fields.peek() {
            Some(tag::INTEGER) => fields.integer().at("version")?,
            _ => 0,
        };
        AlgorithmIdentifier::read(&mut fields).at("signature")?;
        let issuer = Name::read(&mut fields).at("issuer")?;
        let this_update = Time::either(&mut fields).at("thisUpdate")?;
        let next_update = match fields.peek() {
            Some(tag::UTC_TIME | tag::GENERALIZED_TIME) => {
                Some(Time::either(&mut fields).at("nextUpdate")?)
            }
            _ => None,
        };
        let (mut count, mut revoked) = (0, Vec::new());
        if let Some(entries) = fields.optional(tag::SEQUENCE)? {
            let mut entries = entries.contents();
            while !entries.is_empty() {
                let entry = Revoked::read(&mut entries).at("revokedCertificates")?;
                if revoked.len() < limits::CRL_ENTRIES {
                    revoked.push(entry);
                }
                count += 1;
            }
        }
        let extensions = fields
            .explicit(0, read_extensions)
            .at("crlExtensions")?
            .unwrap_or_default();
        fields.finish()?;
        let signature_algorithm = AlgorithmIdentifier::read(&mut outer).at("signatureAlgorithm")?;
        outer
            .element(tag::BIT_STRING, "a BIT STRING")
            .at("signatureValue")?;
        outer.finish()?;
        Ok(Self {
            raw: whole.raw,
            version,
            issuer,
            this_update,
            next_update,
            count,
            revoked,
            extensions,
            signature_algorithm,
        })
    }
}

impl<'a> Revoked<'a> {
    fn read(reader: &mut Reader<'a>) -> Result<Self> {
        let mut fields = reader.sequence()?;
        let serial = fields
            .element(tag::INTEGER, "an INTEGER")
            .and_then(|serial| serial.big_integer())
            .at("userCertificate")?;
        let date = Time::either(&mut fields).at("revocationDate")?;
        let extensions = match fields.is_empty() {
            true => Vec::new(),
            false => read_extensions(&mut fields).at("crlEntryExtensions")?,
        };
        match fields.is_empty() {
            true => Ok(Self {
                serial,
                date,
                extensions,
            }),
            false => fields.fault(Rule::TrailingOctets),
        }
    }
}

/// A CRL that came as an element and may be of any quality.
pub(super) fn any_crl(der: &[u8], scope: Scope<'_>) -> Node {
    match read_with(der, scope.leniency, CertificateList::read) {
        Ok(list) => describe(&list.value),
        Err(error) => object([
            ("unreadable", Node::Bool(true)),
            ("reason", text(error)),
            ("der", hex(der)),
        ]),
    }
}

pub(super) fn describe(crl: &CertificateList<'_>) -> Node {
    object([
        ("version", text(if crl.version == 1 { "v2" } else { "v1" })),
        ("issuer", text(&crl.issuer)),
        ("thisUpdate", text(crl.this_update.rfc3339())),
        (
            "nextUpdate",
            optional(crl.next_update, |time| text(time.rfc3339())),
        ),
        (
            "revokedCount",
            Node::Number(i64::try_from(crl.count).unwrap_or(i64::MAX)),
        ),
        ("revokedCertificates", list(&crl.revoked, revoked)),
        ("crlExtensions", list(&crl.extensions, extension)),
        ("signatureAlgorithm", algorithm(&crl.signature_algorithm)),
        ("sha256", hex(&Hash::Sha256.digest(crl.raw))),
    ])
}

fn revoked(entry: &Revoked<'_>) -> Node {
    object([
        ("userCertificate", hex(entry.serial)),
        ("revocationDate", text(entry.date.rfc3339())),
        ("crlEntryExtensions", list(&entry.extensions, extension)),
    ])
}
