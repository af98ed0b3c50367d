//! Certificate request messages (RFC 4211), whose module has IMPLICIT tags.

use alloc::borrow::Cow;
use alloc::vec::Vec;

use crate::der::{Element, Reader, Writer, tag};
use crate::error::{Context, Result, Rule};
use crate::name::{GeneralName, Name};
use crate::oid::Oid;
use crate::popo::ProofOfPossession;
use crate::time::Time;
use crate::x509::{AlgorithmIdentifier, Extension, read_extension_list};

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
    /// Information for the registration.
    pub reg_info: Vec<AttributeTypeAndValue<'a>>,
}

impl<'a> CertReqMsg<'a> {
    /// A request whose proof is still to be made over [`raw_request`](Self::raw_request).
    pub fn new(request: CertRequest<'a>) -> Self {
        let raw_request = Cow::Owned(Writer::encode(|w| request.write(w)));
        Self {
            request,
            raw_request,
            popo: None,
            reg_info: Vec::new(),
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
        let reg_info = AttributeTypeAndValue::read_optional(&mut fields).at("regInfo")?;
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
            AttributeTypeAndValue::write_optional(w, &self.reg_info);
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
    /// What governs the issuing, such as oldCertID.
    pub controls: Vec<AttributeTypeAndValue<'a>>,
}

impl<'a> CertRequest<'a> {
    pub(crate) fn read(fields: &mut Reader<'a>) -> Result<Self> {
        let request = Self {
            cert_req_id: fields.integer().at("certReqId")?,
            template: CertTemplate::read(fields).at("certTemplate")?,
            controls: AttributeTypeAndValue::read_optional(fields).at("controls")?,
        };
        fields.clone().finish()?;
        Ok(request)
    }

    fn write(&self, writer: &mut Writer) {
        writer.sequence(|w| {
            w.integer(self.cert_req_id);
            self.template.write(w);
            AttributeTypeAndValue::write_optional(w, &self.controls);
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
    /// The identifier octets of the fields, by their numbers.
    const TAGS: [u8; 10] = [0x80, 0x81, 0xa2, 0xa3, 0xa4, 0xa5, 0xa6, 0x87, 0x88, 0xa9];

    /// The version of the certificate: 2 is v3.
    pub fn version(&self) -> Option<i64> {
        match self.other(0)? {
            Other::Version(version) => Some(version),
            _ => None,
        }
    }

    /// The serial number in two's complement.
    pub fn serial_number(&self) -> Option<&'a [u8]> {
        match self.other(1)? {
            Other::SerialNumber(serial) => Some(serial),
            _ => None,
        }
    }

    /// How the certificate is to be signed.
    pub fn signing_alg(&self) -> Option<AlgorithmIdentifier<'a>> {
        match self.other(2)? {
            Other::SigningAlg(algorithm) => Some(algorithm),
            _ => None,
        }
    }

    /// When the certificate is to be valid: notBefore and notAfter.
    pub fn validity(&self) -> Option<(Option<Time>, Option<Time>)> {
        match self.other(4)? {
            Other::Validity(not_before, not_after) => Some((not_before, not_after)),
            _ => None,
        }
    }

    /// One of the fields that are kept as they were read.
    fn other(&self, number: u8) -> Option<Other<'a>> {
        let (_, der) = self.others.iter().find(|(found, _)| *found == number)?;
        let element = Reader::judged(der).any().ok()?;
        Other::read(number, &element).ok()
    }

    pub(crate) fn read(reader: &mut Reader<'a>) -> Result<Self> {
        let mut fields = reader.sequence()?;
        let mut template = Self::default();
        let mut last = None;
        while let Some(found) = fields.peek() {
            let number = found & 0x1f;
            let in_order = last.is_none_or(|last| number > last);
            let known = Self::TAGS.get(usize::from(number)) == Some(&found);
            if !known || !in_order {
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
                    template.extensions =
                        read_extension_list(&mut extensions.contents()).at("extensions")?;
                }
                _ => {
                    let element = fields.any()?;
                    Other::read(number, &element)?;
                    template.others.push((number, element.raw));
                }
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
                .and_then(|der| Reader::judged(der).any().ok().map(|element| element.value))
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

/// A field of a CertTemplate that is kept as it was read.
enum Other<'a> {
    Version(i64),
    SerialNumber(&'a [u8]),
    SigningAlg(AlgorithmIdentifier<'a>),
    Validity(Option<Time>, Option<Time>),
    UniqueId,
}

impl<'a> Other<'a> {
    fn read(number: u8, element: &Element<'a>) -> Result<Self> {
        Ok(match number {
            0 => Self::Version(element.integer().at("version")?),
            1 => Self::SerialNumber(element.big_integer().at("serialNumber")?),
            2 => Self::SigningAlg(
                AlgorithmIdentifier::read_contents(&mut element.contents()).at("signingAlg")?,
            ),
            4 => {
                // OptionalValidity ::= SEQUENCE {
                //     notBefore [0] Time OPTIONAL, notAfter [1] Time OPTIONAL }
                let mut times = element.contents();
                let not_before = times.explicit(0, Time::either).at("validity.notBefore")?;
                let not_after = times.explicit(1, Time::either).at("validity.notAfter")?;
                times.finish().at("validity")?;
                Self::Validity(not_before, not_after)
            }
            _ => {
                element.bits().at("issuerUID or subjectUID")?;
                Self::UniqueId
            }
        })
    }
}

/// A control or a piece of registration information (RFC 4211, 6 and 7).
///
/// ```text
/// AttributeTypeAndValue ::= SEQUENCE { type OBJECT IDENTIFIER, value ANY }
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AttributeTypeAndValue<'a> {
    /// What it is about.
    pub oid: Oid<'a>,
    /// One DER element.
    pub value: &'a [u8],
}

impl<'a> AttributeTypeAndValue<'a> {
    pub(crate) fn read(reader: &mut Reader<'a>) -> Result<Self> {
        let mut fields = reader.sequence()?;
        let attribute = Self {
            oid: fields.oid().at("type")?,
            value: fields.any().at("value")?.raw,
        };
        fields.finish()?;
        Ok(attribute)
    }

    /// Reads `SEQUENCE SIZE (1..MAX) OF AttributeTypeAndValue OPTIONAL`.
    pub(crate) fn read_optional(reader: &mut Reader<'a>) -> Result<Vec<Self>> {
        let Some(element) = reader.optional(tag::SEQUENCE)? else {
            return Ok(Vec::new());
        };
        element.list(Self::read)
    }

    fn write_optional(writer: &mut Writer, attributes: &[Self]) {
        if attributes.is_empty() {
            return;
        }
        writer.sequence(|w| {
            for attribute in attributes {
                w.sequence(|w| {
                    w.oid(attribute.oid);
                    w.raw(attribute.value);
                });
            }
        });
    }
}

/// Names one certificate (RFC 4211, 6.5).
///
/// ```text
/// CertId ::= SEQUENCE { issuer GeneralName, serialNumber INTEGER }
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CertId<'a> {
    /// Who issued it.
    pub issuer: GeneralName<'a>,
    /// Its serial number in two's complement.
    pub serial_number: &'a [u8],
}

impl<'a> CertId<'a> {
    /// Reads the value of an oldCertID control.
    pub fn from_der(der: &'a [u8]) -> Result<Self> {
        let mut reader = Reader::new(der);
        let id = Self::read(&mut reader)?;
        reader.finish()?;
        Ok(id)
    }

    pub(crate) fn read(reader: &mut Reader<'a>) -> Result<Self> {
        let mut fields = reader.sequence()?;
        let issuer = GeneralName::read(&mut fields).at("issuer")?;
        let serial_number = fields
            .element(tag::INTEGER, "an INTEGER")
            .and_then(|serial| serial.big_integer())
            .at("serialNumber")?;
        fields.finish()?;
        Ok(Self {
            issuer,
            serial_number,
        })
    }

    /// Writes it, as the value of an oldCertID control for one.
    pub fn write(&self, writer: &mut Writer) {
        writer.sequence(|w| {
            self.issuer.write(w);
            w.element(tag::INTEGER, self.serial_number);
        });
    }
}
