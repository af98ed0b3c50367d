//! PKIMessage (RFC 9810, 5.1).

use alloc::vec::Vec;

use crate::body::PkiBody;
use crate::cert_rep::{read_certificates, write_certificates};
use crate::der::{Reader, Writer, tag};
use crate::error::{Context, Error, Result, Rule};
use crate::header::PkiHeader;
use crate::leniency::{Leniency, Tolerant, read_with};
use crate::limits;

/// A message as it was received (RFC 9810, 5.1).
///
/// ```text
/// PKIMessage ::= SEQUENCE {
///     header          PKIHeader,
///     body            PKIBody,
///     protection  [0] PKIProtection OPTIONAL,
///     extraCerts  [1] SEQUENCE SIZE (1..MAX) OF CMPCertificate OPTIONAL }
/// ```
#[derive(Clone, Debug)]
pub struct PkiMessage<'a> {
    /// Who speaks to whom in which transaction.
    pub header: PkiHeader<'a>,
    /// What is said.
    pub body: PkiBody<'a>,
    /// The bits of the protection.
    pub protection: Option<&'a [u8]>,
    /// Certificates that help to verify, each one DER element that is a SEQUENCE.
    pub extra_certs: Vec<&'a [u8]>,
    raw_header: &'a [u8],
    raw_body: &'a [u8],
}

impl<'a> PkiMessage<'a> {
    /// Reads one message in strict DER and nothing after it.
    pub fn from_der(der: &'a [u8]) -> Result<Self> {
        check_length(der)?;
        let mut reader = Reader::new(der);
        let message = Self::read(&mut reader, 0)?;
        reader.finish()?;
        Ok(message)
    }

    /// Like [`from_der`](Self::from_der), accepting and reporting some deviations from DER.
    pub fn from_der_with(der: &'a [u8], leniency: Leniency) -> Result<Tolerant<Self>> {
        check_length(der)?;
        read_with(der, leniency, |reader| Self::read(reader, 0))
    }

    /// Reads one message. `depth` counts the messages around it.
    pub(crate) fn read(reader: &mut Reader<'a>, depth: usize) -> Result<Self> {
        let mut fields = reader.sequence()?;
        let raw_header = fields.element(tag::SEQUENCE, "a PKIHeader").at("header")?;
        let header = PkiHeader::read(&raw_header).at("header")?;
        if fields.is_empty() {
            return fields.fault(Rule::Missing("a PKIBody")).at("body");
        }
        let raw_body = fields.any().at("body")?;
        let body = PkiBody::read(&raw_body, depth).at("body")?;
        let protection = fields
            .explicit(0, |reader| {
                reader
                    .element(tag::BIT_STRING, "a BIT STRING")?
                    .octet_aligned_bits()
            })
            .at("protection")?;
        let extra_certs = fields
            .explicit(1, |reader| read_certificates(reader))
            .at("extraCerts")?;
        fields.finish()?;
        Ok(Self {
            header,
            body,
            protection,
            extra_certs: extra_certs.unwrap_or_default(),
            raw_header: raw_header.raw,
            raw_body: raw_body.raw,
        })
    }

    /// The header as it was received.
    pub fn raw_header(&self) -> &'a [u8] {
        self.raw_header
    }

    /// The body as it was received, with the tag that tells its type.
    pub fn raw_body(&self) -> &'a [u8] {
        self.raw_body
    }

    /// What the protection covers (RFC 9810, 5.1.3): header and body as received.
    ///
    /// ```text
    /// ProtectedPart ::= SEQUENCE { header PKIHeader, body PKIBody }
    /// ```
    pub fn protected_part(&self) -> Vec<u8> {
        protected_part(self.raw_header, self.raw_body)
    }
}

fn check_length(der: &[u8]) -> Result<()> {
    if der.len() <= limits::MESSAGE {
        return Ok(());
    }
    let rule = Rule::Limit {
        what: "octets of a message",
        limit: limits::MESSAGE,
    };
    Err(Error::new(0, rule))
}

/// A message that is being made: header and body are written, the protection is not.
#[derive(Debug)]
pub struct Draft {
    header: Vec<u8>,
    body: Vec<u8>,
}

impl Draft {
    /// Writes header and body. The header already names the protection algorithm,
    /// because the protection covers that too.
    pub fn new(header: &PkiHeader<'_>, body: &PkiBody<'_>) -> Self {
        Self {
            header: Writer::encode(|w| header.write(w)),
            body: Writer::encode(|w| body.write(w)),
        }
    }

    /// What the protection is to cover.
    pub fn protected_part(&self) -> Vec<u8> {
        protected_part(&self.header, &self.body)
    }

    /// The whole message.
    pub fn finish<C: AsRef<[u8]>>(self, protection: Option<&[u8]>, extra_certs: &[C]) -> Vec<u8> {
        Writer::encode(|w| {
            w.sequence(|w| {
                w.raw(&self.header);
                w.raw(&self.body);
                if let Some(bits) = protection {
                    w.explicit(0, |w| w.bits(tag::BIT_STRING, bits));
                }
                if !extra_certs.is_empty() {
                    w.explicit(1, |w| write_certificates(w, extra_certs));
                }
            });
        })
    }
}

fn protected_part(header: &[u8], body: &[u8]) -> Vec<u8> {
    Writer::encode(|w| {
        w.sequence(|w| {
            w.raw(header);
            w.raw(body);
        });
    })
}

/// Reads PKIMessages inside a message and gives them back as they are (RFC 9810, 5.1.3.5).
///
/// ```text
/// PKIMessages ::= SEQUENCE SIZE (1..MAX) OF PKIMessage
/// ```
pub(crate) fn read_nested<'a>(reader: &mut Reader<'a>, depth: usize) -> Result<Vec<&'a [u8]>> {
    if depth == limits::NESTING {
        let rule = Rule::Limit {
            what: "messages inside each other",
            limit: limits::NESTING,
        };
        return reader.fault(rule);
    }
    let mut contents = reader.sequence()?;
    let messages = contents.collect(|reader| {
        let start = reader.rest();
        PkiMessage::read(reader, depth + 1)?;
        Ok(&start[..start.len() - reader.rest().len()])
    })?;
    if messages.is_empty() {
        return contents.fault(Rule::Content("PKIMessages without a message"));
    }
    Ok(messages)
}
