//! Certificate request messages (RFC 4211), whose module has IMPLICIT tags.

use alloc::borrow::Cow;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

use crate::der::{Reader, Writer, tag};
use crate::error::{Context, Result, Rule};
use crate::name::Name;
use crate::x509::{AlgorithmIdentifier, Extension};

/// One request for a certificate with its proof of possession (RFC 4211, 3).
///
/// ```text
/// CertReqMsg ::= SEQUENCE {
///     certReq   CertRequest,
///     popo      ProofOfPossession  OPTIONAL,
///     regInfo   SEQUENCE SIZE(1..MAX) OF AttributeTypeAndValue OPTIONAL }
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CertReqMsg<'a> {
    /// What is asked for.
    pub request: CertRequest<'a>,
    /// The octets of `request` as they were read or are sent: what a signature proves.
    pub raw_request: Cow<'a, [u8]>,
    /// The proof that the requester holds the private key.
    pub popo: Option<ProofOfPossession<'a>>,
    /// The SEQUENCE of regInfo, if there is one.
    pub reg_info: Option<&'a [u8]>,
}

impl<'a> CertReqMsg<'a> {
    /// A request whose proof is still to be made over [`raw_request`](Self::raw_request).
    pub fn new(request: CertRequest<'a>) -> Self {
        let raw_request = Cow::Owned(Writer::encode(|w| request.write(w)));
        Self {
            request,
            raw_request,
            popo: None,
            reg_info: None,
        }
    }

    pub(crate) fn read(reader: &mut Reader<'a>) -> Result<Self> {
        let mut fields = reader.sequence()?;
        let element = fields
            .element(tag::SEQUENCE, "a CertRequest")
            .at("certReq")?;
        let request = CertRequest::read(&mut element.contents()).at("certReq")?;
        let popo = match fields.peek() {
            Some(tag::SEQUENCE) | None => None,
            Some(_) => Some(ProofOfPossession::read(&mut fields).at("popo")?),
        };
        let reg_info = fields
            .optional(tag::SEQUENCE)
            .at("regInfo")?
            .map(|element| element.raw);
        fields.finish()?;
        Ok(Self {
            request,
            raw_request: Cow::Borrowed(element.raw),
            popo,
            reg_info,
        })
    }

    pub(crate) fn write(&self, writer: &mut Writer) {
        writer.sequence(|w| {
            w.raw(&self.raw_request);
            if let Some(popo) = &self.popo {
                popo.write(w);
            }
            if let Some(reg_info) = self.reg_info {
                w.raw(reg_info);
            }
        });
    }
}

/// What is asked for (RFC 4211, 5).
///
/// ```text
/// CertRequest ::= SEQUENCE {
///     certReqId     INTEGER,
///     certTemplate  CertTemplate,
///     controls      Controls OPTIONAL }
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CertRequest<'a> {
    /// Matches the response to the request; 0 in the Lightweight Profile.
    pub cert_req_id: i64,
    /// The wanted certificate.
    pub template: CertTemplate<'a>,
    /// The SEQUENCE of controls, if there is one.
    pub controls: Option<&'a [u8]>,
}

impl<'a> CertRequest<'a> {
    fn read(fields: &mut Reader<'a>) -> Result<Self> {
        let request = Self {
            cert_req_id: fields.integer().at("certReqId")?,
            template: CertTemplate::read(fields).at("certTemplate")?,
            controls: fields
                .optional(tag::SEQUENCE)
                .at("controls")?
                .map(|element| element.raw),
        };
        fields.clone().finish()?;
        Ok(request)
    }

    fn write(&self, writer: &mut Writer) {
        writer.sequence(|w| {
            w.integer(self.cert_req_id);
            self.template.write(w);
            if let Some(controls) = self.controls {
                w.raw(controls);
            }
        });
    }
}

/// The fields of the wanted certificate that the requester cares about (RFC 4211, 5).
///
/// ```text
/// CertTemplate ::= SEQUENCE {
///     version      [0] Version               OPTIONAL,
///     serialNumber [1] INTEGER               OPTIONAL,
///     signingAlg   [2] AlgorithmIdentifier   OPTIONAL,
///     issuer       [3] Name                  OPTIONAL,
///     validity     [4] OptionalValidity      OPTIONAL,
///     subject      [5] Name                  OPTIONAL,
///     publicKey    [6] SubjectPublicKeyInfo  OPTIONAL,
///     issuerUID    [7] UniqueIdentifier      OPTIONAL,
///     subjectUID   [8] UniqueIdentifier      OPTIONAL,
///     extensions   [9] Extensions            OPTIONAL }
/// ```
///
/// A Name is a CHOICE, so its tags are EXPLICIT even here.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CertTemplate<'a> {
    /// The issuer.
    pub issuer: Option<Name<'a>>,
    /// The subject.
    pub subject: Option<Name<'a>>,
    /// The key to be certified, as DER SubjectPublicKeyInfo.
    pub public_key: Option<Cow<'a, [u8]>>,
    /// The wanted extensions.
    pub extensions: Vec<Extension<'a>>,
    /// version, serialNumber, signingAlg, validity, issuerUID and subjectUID as they were
    /// read: the tag number and the element. A client of the profile sends none of them.
    pub others: Vec<(u8, &'a [u8])>,
}

impl<'a> CertTemplate<'a> {
    fn read(reader: &mut Reader<'a>) -> Result<Self> {
        let mut fields = reader.sequence()?;
        let mut template = Self::default();
        let mut last = None;
        while let Some(found) = fields.peek() {
            let number = found & 0x1f;
            let in_order = last.is_none_or(|last| number > last);
            if found & 0xc0 != 0x80 || number > 9 || !in_order {
                return fields.fault(Rule::UnexpectedTag {
                    expected: "the next CertTemplate field",
                    found,
                });
            }
            last = Some(number);
            match number {
                3 => template.issuer = fields.explicit(3, Name::read).at("issuer")?,
                5 => template.subject = fields.explicit(5, Name::read).at("subject")?,
                6 => {
                    let element = fields.any()?;
                    let mut der = element.raw.to_vec();
                    der[0] = tag::SEQUENCE;
                    template.public_key = Some(Cow::Owned(der));
                }
                9 => {
                    let extensions = fields.any()?;
                    template.extensions = extensions
                        .contents()
                        .collect(Extension::read)
                        .at("extensions")?;
                }
                _ => template.others.push((number, fields.any()?.raw)),
            }
        }
        Ok(template)
    }

    /// Writes the template.
    pub fn write(&self, writer: &mut Writer) {
        let other = |w: &mut Writer, numbers: core::ops::RangeInclusive<u8>| {
            let wanted = self
                .others
                .iter()
                .filter(|(number, _)| numbers.contains(number));
            wanted.for_each(|(_, raw)| w.raw(raw));
        };
        writer.sequence(|w| {
            other(w, 0..=2);
            if let Some(issuer) = &self.issuer {
                w.explicit(3, |w| w.raw(issuer.der()));
            }
            other(w, 4..=4);
            if let Some(subject) = &self.subject {
                w.explicit(5, |w| w.raw(subject.der()));
            }
            if let Some(contents) = self
                .public_key
                .as_deref()
                .and_then(|der| Reader::new(der).any().ok().map(|element| element.value))
            {
                w.element(tag::constructed(6), contents);
            }
            other(w, 7..=8);
            if !self.extensions.is_empty() {
                w.nested(tag::constructed(9), |w| {
                    self.extensions
                        .iter()
                        .for_each(|extension| extension.write(w));
                });
            }
        });
    }
}

/// The proof that the requester holds the private key (RFC 4211, 4).
///
/// ```text
/// ProofOfPossession ::= CHOICE {
///     raVerified      [0] NULL,
///     signature       [1] POPOSigningKey,
///     keyEncipherment [2] POPOPrivKey,
///     keyAgreement    [3] POPOPrivKey }
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ProofOfPossession<'a> {
    /// A registration authority vouches for it.
    RaVerified,
    /// A signature over the CertRequest, without poposkInput.
    Signature {
        /// How it was signed.
        algorithm: AlgorithmIdentifier<'a>,
        /// The signature.
        signature: Cow<'a, [u8]>,
    },
    /// A choice that this crate does not interpret: one DER element.
    Other(&'a [u8]),
}

impl<'a> ProofOfPossession<'a> {
    fn read(reader: &mut Reader<'a>) -> Result<Self> {
        let element = reader.any()?;
        match element.tag {
            0x80 if element.value.is_empty() => Ok(Self::RaVerified),
            0xa1 => {
                let mut fields = element.contents();
                if fields.peek() == Some(tag::constructed(0)) {
                    return Ok(Self::Other(element.raw));
                }
                let algorithm = AlgorithmIdentifier::read(&mut fields).at("algorithmIdentifier")?;
                let signature = fields
                    .element(tag::BIT_STRING, "a BIT STRING")
                    .and_then(|bits| bits.octet_aligned_bits())
                    .at("signature")?;
                fields.finish()?;
                Ok(Self::Signature {
                    algorithm,
                    signature: Cow::Borrowed(signature),
                })
            }
            0xa2 | 0xa3 => Ok(Self::Other(element.raw)),
            found => reader.fault(Rule::UnexpectedTag {
                expected: "a ProofOfPossession",
                found,
            }),
        }
    }

    fn write(&self, writer: &mut Writer) {
        match self {
            Self::RaVerified => writer.element(tag::primitive(0), &[]),
            Self::Signature {
                algorithm,
                signature,
            } => {
                writer.nested(tag::constructed(1), |w| {
                    algorithm.write(w);
                    w.bits(tag::BIT_STRING, signature);
                });
            }
            Self::Other(raw) => writer.raw(raw),
        }
    }
}

/// A subjectAltName made from text (RFC 5280, 4.2.1.6).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SubjectAltName(Vec<u8>);

impl SubjectAltName {
    /// From `DNS:…`, `IP:…`, `URI:…` and `email:…`; a bare word is a DNS name or an
    /// address.
    pub fn parse<T: AsRef<str>>(names: &[T]) -> Result<Self, SubjectAltNameError> {
        let parsed = names
            .iter()
            .map(|name| parse_san(name.as_ref()))
            .collect::<Result<Vec<_>, _>>()?;
        Ok(Self(Writer::encode(|w| {
            w.sequence(|w| {
                parsed
                    .iter()
                    .for_each(|(tag, value)| w.element(*tag, value))
            });
        })))
    }

    /// The extension value.
    pub fn der(&self) -> &[u8] {
        &self.0
    }
}

/// A name that cannot stand in a subjectAltName.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SubjectAltNameError(String);

impl fmt::Display for SubjectAltNameError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "'{}' is none of DNS:NAME, IP:ADDRESS, URI:URI, email:ADDRESS in ASCII",
            self.0
        )
    }
}

impl core::error::Error for SubjectAltNameError {}

fn parse_san(text: &str) -> Result<(u8, Vec<u8>), SubjectAltNameError> {
    let error = || SubjectAltNameError(text.into());
    let (kind, value) = match text.trim().split_once(':') {
        Some((kind @ ("DNS" | "dns" | "IP" | "ip" | "URI" | "uri" | "email"), value)) => {
            (kind, value)
        }
        _ if text.parse::<core::net::IpAddr>().is_ok() => ("IP", text.trim()),
        _ => ("DNS", text.trim()),
    };
    if value.is_empty() || !value.is_ascii() || (kind == "DNS" && value.contains([':', ' ', '/'])) {
        return Err(error());
    }
    match kind {
        "IP" | "ip" => match value.parse().map_err(|_| error())? {
            core::net::IpAddr::V4(address) => Ok((0x87, address.octets().to_vec())),
            core::net::IpAddr::V6(address) => Ok((0x87, address.octets().to_vec())),
        },
        "URI" | "uri" => Ok((0x86, value.as_bytes().to_vec())),
        "email" => Ok((0x81, value.as_bytes().to_vec())),
        _ => Ok((0x82, value.as_bytes().to_vec())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn subject_alt_names() {
        let san = SubjectAltName::parse(&["DNS:a.example", "IP:127.0.0.1", "::1"]).unwrap();
        // Put together by hand: dNSName [2], iPAddress [7] of 4 and of 16 octets.
        let mut expected = alloc::vec![0x30, 0x23, 0x82, 0x09];
        expected.extend_from_slice(b"a.example");
        expected.extend_from_slice(&[0x87, 0x04, 127, 0, 0, 1, 0x87, 0x10]);
        expected.extend_from_slice(&[0; 15]);
        expected.push(1);
        assert_eq!(san.der(), expected);
        for bad in ["IP:x", "", "DNS:", "DNS:ä.example", "foo:bar"] {
            assert!(SubjectAltName::parse(&[bad]).is_err(), "{bad}");
        }
    }
}
