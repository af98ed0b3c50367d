//! The parts of X.509 (RFC 5280) and PKCS #10 (RFC 2986) that CMP rests on, read in
//! place.

use alloc::vec::Vec;
use core::fmt;

use crate::der::{Reader, Writer, tag};
use crate::error::{Context, Error, Result, Rule};
use crate::leniency::{Leniency, Tolerant, read_with};
use crate::limits;
use crate::name::{GeneralName, Name};
use crate::oid::{self, Oid};
use crate::time::Time;

/// An algorithm and its parameters.
///
/// ```text
/// AlgorithmIdentifier ::= SEQUENCE {
///     algorithm   OBJECT IDENTIFIER,
///     parameters  ANY DEFINED BY algorithm OPTIONAL }
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AlgorithmIdentifier<'a> {
    /// The algorithm.
    pub oid: Oid<'a>,
    /// One DER element, if there are parameters.
    pub parameters: Option<&'a [u8]>,
}

impl<'a> AlgorithmIdentifier<'a> {
    /// An algorithm without parameters.
    pub const fn bare(oid: Oid<'a>) -> Self {
        Self {
            oid,
            parameters: None,
        }
    }

    /// An algorithm whose parameters are NULL.
    pub const fn with_null(oid: Oid<'a>) -> Self {
        Self {
            oid,
            parameters: Some(&[0x05, 0x00]),
        }
    }

    /// Whether the parameters are absent or NULL.
    pub fn has_no_parameters(&self) -> bool {
        matches!(self.parameters, None | Some([0x05, 0x00]))
    }

    /// Reads one AlgorithmIdentifier and nothing after it.
    pub fn from_der(der: &'a [u8]) -> Result<Self> {
        let mut reader = Reader::new(der);
        let algorithm = Self::read(&mut reader)?;
        reader.finish()?;
        Ok(algorithm)
    }

    pub(crate) fn read(reader: &mut Reader<'a>) -> Result<Self> {
        Self::read_contents(&mut reader.sequence()?)
    }

    /// Reads what is inside the SEQUENCE, for fields whose tag stands in its place.
    pub(crate) fn read_contents(contents: &mut Reader<'a>) -> Result<Self> {
        let oid = contents.oid()?;
        let parameters = if contents.is_empty() {
            None
        } else {
            Some(contents.any()?.raw)
        };
        contents.clone().finish()?;
        Ok(Self { oid, parameters })
    }

    pub(crate) fn write(&self, writer: &mut Writer) {
        writer.sequence(|w| self.write_contents(w));
    }

    pub(crate) fn write_contents(&self, writer: &mut Writer) {
        writer.oid(self.oid);
        if let Some(parameters) = self.parameters {
            writer.raw(parameters);
        }
    }
}

/// SubjectPublicKeyInfo (RFC 5280, 4.1.2.7).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PublicKeyInfo<'a> {
    /// The whole structure.
    pub raw: &'a [u8],
    /// What kind of key it is.
    pub algorithm: AlgorithmIdentifier<'a>,
    /// The key.
    pub key: &'a [u8],
}

impl<'a> PublicKeyInfo<'a> {
    /// Reads one SubjectPublicKeyInfo and nothing after it.
    pub fn from_der(der: &'a [u8]) -> Result<Self> {
        let mut reader = Reader::new(der);
        let key = Self::read(&mut reader)?;
        reader.finish()?;
        Ok(key)
    }

    pub(crate) fn read(reader: &mut Reader<'a>) -> Result<Self> {
        let element = reader.element(tag::SEQUENCE, "a SubjectPublicKeyInfo")?;
        let mut contents = element.contents();
        let algorithm = AlgorithmIdentifier::read(&mut contents).at("algorithm")?;
        let key = contents
            .element(tag::BIT_STRING, "a BIT STRING")
            .and_then(|bits| bits.octet_aligned_bits())
            .at("subjectPublicKey")?;
        contents.finish()?;
        Ok(Self {
            raw: element.raw,
            algorithm,
            key,
        })
    }

    /// The named curve of an elliptic-curve key.
    pub fn curve(&self) -> Option<Oid<'a>> {
        if self.algorithm.oid != oid::EC_PUBLIC_KEY {
            return None;
        }
        Reader::new(self.algorithm.parameters?).oid().ok()
    }
}

/// A certificate extension (RFC 5280, 4.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extension<'a> {
    /// What it is about.
    pub oid: Oid<'a>,
    /// Whether it must be understood.
    pub critical: bool,
    /// The DER inside the OCTET STRING.
    pub value: &'a [u8],
}

impl<'a> Extension<'a> {
    /// Reads one extension.
    pub fn read(reader: &mut Reader<'a>) -> Result<Self> {
        let mut contents = reader.sequence()?;
        let oid = contents.oid().at("extnID")?;
        let critical = match contents.peek() {
            Some(tag::BOOLEAN) => {
                if !contents.boolean().at("critical")? {
                    return contents.fault(Rule::NotDistinguished("a DEFAULT that is written out"));
                }
                true
            }
            _ => false,
        };
        let value = contents.octet_string().at("extnValue")?.value;
        contents.finish()?;
        Ok(Self {
            oid,
            critical,
            value,
        })
    }

    pub(crate) fn write(&self, writer: &mut Writer) {
        writer.sequence(|w| {
            w.oid(self.oid);
            if self.critical {
                w.element(tag::BOOLEAN, &[0xff]);
            }
            w.octet_string(self.value);
        });
    }
}

/// A certificate, read in place (RFC 5280, 4.1).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Certificate<'a> {
    /// The whole certificate.
    pub raw: &'a [u8],
    /// The part that is signed.
    pub tbs: &'a [u8],
    /// The serial number in two's complement.
    pub serial: &'a [u8],
    /// Who signed it.
    pub issuer: Name<'a>,
    /// The first second in which it is valid.
    pub not_before: Time,
    /// The last second in which it is valid.
    pub not_after: Time,
    /// Whose key it certifies.
    pub subject: Name<'a>,
    /// The key it certifies.
    pub public_key: PublicKeyInfo<'a>,
    /// Its extensions.
    pub extensions: Vec<Extension<'a>>,
    /// How it is signed.
    pub signature_algorithm: AlgorithmIdentifier<'a>,
    /// The signature.
    pub signature: &'a [u8],
}

impl<'a> Certificate<'a> {
    /// Reads one certificate and nothing after it.
    pub fn from_der(der: &'a [u8]) -> Result<Self> {
        let mut reader = Reader::new(der);
        let certificate = Self::read(&mut reader).at("certificate")?;
        reader.finish()?;
        Ok(certificate)
    }

    /// Like [`from_der`](Self::from_der), accepting some deviations from DER.
    pub fn from_der_with(der: &'a [u8], leniency: Leniency) -> Result<Tolerant<Self>> {
        read_with(der, leniency, |reader| Self::read(reader).at("certificate"))
    }

    pub(crate) fn read(reader: &mut Reader<'a>) -> Result<Self> {
        let whole = reader.element(tag::SEQUENCE, "a Certificate")?;
        let mut outer = whole.contents();
        let tbs = outer.element(tag::SEQUENCE, "a TBSCertificate")?;
        let mut fields = tbs.contents();
        let version = fields
            .explicit(0, Reader::integer)
            .at("version")?
            .unwrap_or(0);
        if !(0..=2).contains(&version) {
            return fields
                .fault(Rule::Content("a certificate version above 3"))
                .at("version");
        }
        let serial = fields
            .element(tag::INTEGER, "an INTEGER")
            .and_then(|serial| serial.big_integer())
            .at("serialNumber")?;
        let inner_algorithm = AlgorithmIdentifier::read(&mut fields).at("signature")?;
        let issuer = Name::read(&mut fields).at("issuer")?;
        let mut validity = fields.sequence().at("validity")?;
        let not_before = Time::either(&mut validity).at("validity.notBefore")?;
        let not_after = Time::either(&mut validity).at("validity.notAfter")?;
        validity.finish().at("validity")?;
        let subject = Name::read(&mut fields).at("subject")?;
        let public_key = PublicKeyInfo::read(&mut fields).at("subjectPublicKeyInfo")?;
        fields.optional(tag::primitive(1)).at("issuerUniqueID")?;
        fields.optional(tag::primitive(2)).at("subjectUniqueID")?;
        let extensions = fields
            .explicit(3, read_extensions)
            .at("extensions")?
            .unwrap_or_default();
        fields.finish()?;

        let at = outer.offset();
        let signature_algorithm = AlgorithmIdentifier::read(&mut outer).at("signatureAlgorithm")?;
        if inner_algorithm != signature_algorithm {
            let rule = "signature and signatureAlgorithm differ (RFC 5280, 4.1.1.2)";
            return Err(Error::new(at, Rule::Content(rule))).at("signatureAlgorithm");
        }
        let signature = outer
            .element(tag::BIT_STRING, "a BIT STRING")
            .and_then(|bits| bits.octet_aligned_bits())
            .at("signatureValue")?;
        outer.finish()?;
        Ok(Self {
            raw: whole.raw,
            tbs: tbs.raw,
            serial,
            issuer,
            not_before,
            not_after,
            subject,
            public_key,
            extensions,
            signature_algorithm,
            signature,
        })
    }

    /// The extension of this kind.
    pub fn extension(&self, oid: Oid<'_>) -> Option<&Extension<'a>> {
        self.extensions
            .iter()
            .find(|extension| extension.oid == oid)
    }

    /// subjectKeyIdentifier (RFC 5280, 4.2.1.2).
    pub fn subject_key_identifier(&self) -> Option<&'a [u8]> {
        let extension = self.extension(oid::SUBJECT_KEY_IDENTIFIER)?;
        Reader::new(extension.value)
            .octet_string()
            .ok()
            .map(|octets| octets.value)
    }

    /// The keyIdentifier of authorityKeyIdentifier (RFC 5280, 4.2.1.1).
    pub fn authority_key_identifier(&self) -> Option<&'a [u8]> {
        let extension = self.extension(oid::AUTHORITY_KEY_IDENTIFIER)?;
        let mut contents = Reader::new(extension.value).sequence().ok()?;
        contents
            .optional(tag::primitive(0))
            .ok()?
            .map(|octets| octets.value)
    }

    /// What the certificate authorises its holder to be in CMP: the purposes of
    /// extKeyUsage that say so (RFC 9810, 4.5). One that cannot be read authorises nothing.
    pub fn roles(&self) -> Vec<Role> {
        let Some(extension) = self.extension(oid::EXTENDED_KEY_USAGE) else {
            return Vec::new();
        };
        let mut reader = Reader::new(extension.value);
        let purposes = reader
            .sequence()
            .and_then(|mut purposes| purposes.collect(Reader::oid));
        let purposes = match (purposes, reader.finish()) {
            (Ok(purposes), Ok(())) => purposes,
            _ => return Vec::new(),
        };
        Role::ALL
            .into_iter()
            .filter(|role| purposes.contains(&role.oid()))
            .collect()
    }

    /// Whether subject and issuer are the same name.
    pub fn is_self_issued(&self) -> bool {
        self.subject.matches(&self.issuer)
    }
}

/// What a certificate can authorise its holder to be (RFC 9810, 4.5).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// A certification authority.
    CmcCa,
    /// A registration authority.
    CmcRa,
    /// An authority that generates keys for others.
    CmKga,
}

impl Role {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::CmcCa, Self::CmcRa, Self::CmKga];

    /// The purpose in extKeyUsage.
    pub fn oid(self) -> Oid<'static> {
        match self {
            Self::CmcCa => oid::KP_CMC_CA,
            Self::CmcRa => oid::KP_CMC_RA,
            Self::CmKga => oid::KP_CM_KGA,
        }
    }

    /// The name of the purpose in the RFCs.
    pub fn name(self) -> &'static str {
        match self {
            Self::CmcCa => "id-kp-cmcCA",
            Self::CmcRa => "id-kp-cmcRA",
            Self::CmKga => "id-kp-cmKGA",
        }
    }
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::CmcCa => "certification authority",
            Self::CmcRa => "registration authority",
            Self::CmKga => "key generation authority",
        })
    }
}

/// Reads Extensions (RFC 5280, 4.1.2.9).
pub(crate) fn read_extensions<'a>(reader: &mut Reader<'a>) -> Result<Vec<Extension<'a>>> {
    read_extension_list(&mut reader.sequence()?)
}

/// Reads what is inside Extensions, for fields whose tag stands in place of the SEQUENCE.
pub(crate) fn read_extension_list<'a>(contents: &mut Reader<'a>) -> Result<Vec<Extension<'a>>> {
    let start = contents.offset();
    let extensions = contents.collect_up_to(limits::EXTENSIONS, "extensions", Extension::read)?;
    let repeated = extensions
        .iter()
        .enumerate()
        .any(|(index, extension)| extensions[..index].iter().any(|e| e.oid == extension.oid));
    if repeated {
        return Err(Error::new(
            start,
            Rule::Content("an extension occurs twice (RFC 5280, 4.2)"),
        ));
    }
    Ok(extensions)
}

/// Writes Extensions under a tag.
pub(crate) fn write_extensions(writer: &mut Writer, tag: u8, extensions: &[Extension<'_>]) {
    writer.nested(tag, |w| {
        extensions.iter().for_each(|extension| extension.write(w))
    });
}

/// A PKCS #10 request, read in place (RFC 2986, 4.2).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CertificationRequest<'a> {
    /// The whole request.
    pub raw: &'a [u8],
    /// The part that is signed.
    pub info: &'a [u8],
    /// Whose certificate is wanted.
    pub subject: Name<'a>,
    /// The key to be certified.
    pub public_key: PublicKeyInfo<'a>,
    /// The extensions of the extensionRequest attribute (RFC 2985, 5.4.2).
    pub extensions: Vec<Extension<'a>>,
    /// How it is signed.
    pub signature_algorithm: AlgorithmIdentifier<'a>,
    /// The signature, the proof of possession.
    pub signature: &'a [u8],
}

impl<'a> CertificationRequest<'a> {
    /// Reads one request and nothing after it.
    pub fn from_der(der: &'a [u8]) -> Result<Self> {
        let mut reader = Reader::new(der);
        let request = Self::read(&mut reader).at("certificationRequest")?;
        reader.finish()?;
        Ok(request)
    }

    /// Like [`from_der`](Self::from_der), accepting some deviations from DER.
    pub fn from_der_with(der: &'a [u8], leniency: Leniency) -> Result<Tolerant<Self>> {
        read_with(der, leniency, |reader| {
            Self::read(reader).at("certificationRequest")
        })
    }

    pub(crate) fn read(reader: &mut Reader<'a>) -> Result<Self> {
        let whole = reader.element(tag::SEQUENCE, "a CertificationRequest")?;
        let mut outer = whole.contents();
        let info = outer.element(tag::SEQUENCE, "a CertificationRequestInfo")?;
        let mut fields = info.contents();
        if fields.integer().at("version")? != 0 {
            return fields
                .fault(Rule::Content("a request version other than 1"))
                .at("version");
        }
        let subject = Name::read(&mut fields).at("subject")?;
        let public_key = PublicKeyInfo::read(&mut fields).at("subjectPKInfo")?;
        let attributes = fields
            .element(tag::constructed(0), "the attributes [0]")
            .at("attributes")?;
        fields.finish()?;
        let extensions = requested_extensions(&mut attributes.contents()).at("attributes")?;

        let signature_algorithm = AlgorithmIdentifier::read(&mut outer).at("signatureAlgorithm")?;
        let signature = outer
            .element(tag::BIT_STRING, "a BIT STRING")
            .and_then(|bits| bits.octet_aligned_bits())
            .at("signature")?;
        outer.finish()?;
        Ok(Self {
            raw: whole.raw,
            info: info.raw,
            subject,
            public_key,
            extensions,
            signature_algorithm,
            signature,
        })
    }
}

fn requested_extensions<'a>(attributes: &mut Reader<'a>) -> Result<Vec<Extension<'a>>> {
    let mut extensions = Vec::new();
    attributes.collect(|reader| {
        let mut attribute = reader.sequence()?;
        let kind = attribute.oid()?;
        let values = attribute.element(tag::SET, "a SET")?;
        attribute.finish()?;
        if kind == oid::EXTENSION_REQUEST {
            let mut values = values.contents();
            extensions = read_extensions(&mut values)?;
            values.finish()?;
        }
        Ok(())
    })?;
    Ok(extensions)
}

/// Reads the GeneralNames inside a subjectAltName.
pub(crate) fn general_names(value: &[u8]) -> Result<Vec<GeneralName<'_>>> {
    let mut reader = Reader::new(value);
    let names = reader.sequence()?.collect(GeneralName::read)?;
    reader.finish()?;
    Ok(names)
}
