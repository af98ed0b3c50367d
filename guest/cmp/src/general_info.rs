//! InfoTypeAndValue (RFC 9810, 5.3.19).

use alloc::vec::Vec;

use crate::announcement::{RootCaKeyUpdateContent, certificate};
use crate::cert_rep::read_certificates;
use crate::crmf::{AttributeTypeAndValue, CertTemplate};
use crate::der::{Element, Reader, Writer, tag};
use crate::encrypted::EncryptedKey;
use crate::error::{Context, Result, Rule};
use crate::leniency::{Leniency, Tolerant, read_with};
use crate::message::read_nested;
use crate::name::GeneralName;
use crate::oid::{self, Oid};
use crate::revocation::read_crls;
use crate::status::PkiFreeText;
use crate::time::Time;
use crate::x509::AlgorithmIdentifier;

/// A piece of information of a named type.
///
/// ```text
/// InfoTypeAndValue ::= SEQUENCE {
///     infoType   INFO-TYPE-AND-VALUE.&id({SupportedInfoSet}),
///     infoValue  INFO-TYPE-AND-VALUE.&Type({SupportedInfoSet}{@infoType}) OPTIONAL }
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InfoTypeAndValue<'a> {
    /// What kind of information it is.
    pub info_type: Oid<'a>,
    /// One DER element, if there is a value.
    pub value: Option<&'a [u8]>,
}

impl<'a> InfoTypeAndValue<'a> {
    /// `implicitConfirm`, whose value is NULL (RFC 9810, 5.1.1.1).
    pub const IMPLICIT_CONFIRM: InfoTypeAndValue<'static> = InfoTypeAndValue {
        info_type: oid::IT_IMPLICIT_CONFIRM,
        value: Some(&[0x05, 0x00]),
    };

    pub(crate) fn read(reader: &mut Reader<'a>) -> Result<Self> {
        let mut contents = reader.sequence()?;
        let info_type = contents.oid()?;
        let value = match contents.is_empty() {
            true => None,
            false => Some(contents.any()?).map(|element: Element<'a>| element.raw),
        };
        contents.finish()?;
        Ok(Self { info_type, value })
    }

    pub(crate) fn write(&self, writer: &mut Writer) {
        writer.sequence(|w| {
            w.oid(self.info_type);
            if let Some(value) = self.value {
                w.raw(value);
            }
        });
    }

    /// Reads one and nothing after it.
    pub fn from_der(der: &'a [u8]) -> Result<Self> {
        let mut reader = Reader::new(der);
        let info = Self::read(&mut reader)?;
        reader.finish()?;
        Ok(info)
    }

    /// Its DER.
    pub fn to_der(&self) -> Vec<u8> {
        Writer::encode(|w| self.write(w))
    }

    /// Interprets the value. Offsets in an error count from the start of the value.
    pub fn interpret(&self) -> Result<InfoValue<'a>> {
        Ok(self.interpret_with(Leniency::STRICT)?.value)
    }

    /// Like [`interpret`](Self::interpret), accepting some deviations from DER.
    pub fn interpret_with(&self, leniency: Leniency) -> Result<Tolerant<InfoValue<'a>>> {
        match self.value {
            Some(value) => read_with(value, leniency, |reader| {
                InfoValue::read(self.info_type, reader)
            }),
            None => Ok(Tolerant {
                value: InfoValue::Absent,
                tolerations: Vec::new(),
            }),
        }
    }
}

/// The value of an InfoTypeAndValue, by its type (RFC 9810, 5.3.19 and 5.1.1).
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum InfoValue<'a> {
    /// Without a value, as many requests are.
    Absent,
    /// implicitConfirm.
    ImplicitConfirm,
    /// confirmWaitTime: until then the CA waits for certConf.
    ConfirmWaitTime(Time),
    /// certProfile, suppLangTags: texts.
    Texts(PkiFreeText<'a>),
    /// origPKIMessage: each the DER of a PKIMessage.
    Messages(Vec<&'a [u8]>),
    /// signKeyPairTypes, encKeyPairTypes.
    Algorithms(Vec<AlgorithmIdentifier<'a>>),
    /// preferredSymmAlg, keyPairParamRep.
    Algorithm(AlgorithmIdentifier<'a>),
    /// unsupportedOIDs.
    Oids(Vec<Oid<'a>>),
    /// keyPairParamReq.
    Oid(Oid<'a>),
    /// caProtEncCert, rootCaCert: one DER element that is a SEQUENCE.
    Certificate(&'a [u8]),
    /// caCerts.
    Certificates(Vec<&'a [u8]>),
    /// currentCRL, crls: each one DER element that is a SEQUENCE.
    Crls(Vec<&'a [u8]>),
    /// revPassphrase.
    RevPassphrase(EncryptedKey<'a>),
    /// rootCaKeyUpdate.
    RootCaKeyUpdate(RootCaKeyUpdateContent<'a>),
    /// certReqTemplate.
    CertReqTemplate {
        /// Prefilled fields.
        template: CertTemplate<'a>,
        /// Acceptable kinds of keys.
        key_spec: Vec<AttributeTypeAndValue<'a>>,
    },
    /// crlStatusList.
    CrlStatusList(Vec<CrlStatus<'a>>),
    /// KemCiphertextInfo (RFC 9810, 5.1.1.5).
    KemCiphertext {
        /// The mechanism.
        kem: AlgorithmIdentifier<'a>,
        /// What Encapsulate gave.
        ciphertext: &'a [u8],
    },
    /// A type that is not known: its DER.
    Other(&'a [u8]),
}

impl<'a> InfoValue<'a> {
    fn read(info_type: Oid<'a>, reader: &mut Reader<'a>) -> Result<Self> {
        Ok(match info_type {
            oid::IT_IMPLICIT_CONFIRM => {
                reader.element(tag::NULL, "NULL")?.contents().finish()?;
                Self::ImplicitConfirm
            }
            oid::IT_CONFIRM_WAIT_TIME => Self::ConfirmWaitTime(Time::generalized(reader)?),
            oid::IT_CERT_PROFILE | oid::IT_SUPP_LANG_TAGS => {
                Self::Texts(PkiFreeText::read(reader)?)
            }
            oid::IT_ORIG_PKI_MESSAGE => Self::Messages(read_nested(reader, 1)?),
            oid::IT_SIGN_KEY_PAIR_TYPES | oid::IT_ENC_KEY_PAIR_TYPES => {
                Self::Algorithms(reader.sequence_of(AlgorithmIdentifier::read)?)
            }
            oid::IT_PREFERRED_SYMM_ALG | oid::IT_KEY_PAIR_PARAM_REP => {
                Self::Algorithm(AlgorithmIdentifier::read(reader)?)
            }
            oid::IT_UNSUPPORTED_OIDS => Self::Oids(reader.sequence_of(Reader::oid)?),
            oid::IT_KEY_PAIR_PARAM_REQ => Self::Oid(reader.oid()?),
            oid::IT_CA_PROT_ENC_CERT | oid::IT_ROOT_CA_CERT => {
                Self::Certificate(certificate(reader)?)
            }
            oid::IT_CA_CERTS => Self::Certificates(read_certificates(reader)?),
            oid::IT_CURRENT_CRL => Self::Crls(alloc::vec![
                reader.element(tag::SEQUENCE, "a CertificateList")?.raw
            ]),
            oid::IT_CRLS => Self::Crls(read_crls(reader)?),
            oid::IT_REV_PASSPHRASE => Self::RevPassphrase(EncryptedKey::read(reader)?),
            oid::IT_ROOT_CA_KEY_UPDATE => {
                Self::RootCaKeyUpdate(RootCaKeyUpdateContent::read(reader)?)
            }
            oid::IT_CERT_REQ_TEMPLATE => {
                let mut fields = reader.sequence()?;
                let template = CertTemplate::read(&mut fields).at("certTemplate")?;
                let key_spec = AttributeTypeAndValue::read_optional(&mut fields).at("keySpec")?;
                fields.finish()?;
                Self::CertReqTemplate { template, key_spec }
            }
            oid::IT_CRL_STATUS_LIST => Self::CrlStatusList(reader.sequence_of(CrlStatus::read)?),
            oid::IT_KEM_CIPHERTEXT_INFO => {
                let mut fields = reader.sequence()?;
                let kem = AlgorithmIdentifier::read(&mut fields).at("kem")?;
                let ciphertext = fields.octet_string().at("ct")?.value;
                fields.finish()?;
                Self::KemCiphertext { kem, ciphertext }
            }
            _ => Self::Other(reader.any()?.raw),
        })
    }
}

/// Which CRL is at hand, and from when (RFC 9810, 5.3.19.17).
///
/// ```text
/// CRLStatus ::= SEQUENCE { source CRLSource, thisUpdate Time OPTIONAL }
/// CRLSource ::= CHOICE { dpn [0] DistributionPointName, issuer [1] GeneralNames }
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CrlStatus<'a> {
    /// Where the CRL comes from.
    pub source: CrlSource<'a>,
    /// thisUpdate of the CRL at hand.
    pub this_update: Option<Time>,
}

/// Where a CRL comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CrlSource<'a> {
    /// fullName of a distribution point.
    FullName(Vec<GeneralName<'a>>),
    /// nameRelativeToCRLIssuer of a distribution point: one DER element.
    NameRelativeToIssuer(&'a [u8]),
    /// The issuer of the CRL.
    Issuer(Vec<GeneralName<'a>>),
}

impl<'a> CrlStatus<'a> {
    fn read(reader: &mut Reader<'a>) -> Result<Self> {
        let mut fields = reader.sequence()?;
        // DistributionPointName is a CHOICE with IMPLICIT tags (RFC 5280, 4.2.1.13).
        let point = fields.explicit(0, |reader| {
            let element = reader.any()?;
            match element.tag {
                0xa0 => Ok(CrlSource::FullName(
                    element.contents().collect(GeneralName::read)?,
                )),
                0xa1 => Ok(CrlSource::NameRelativeToIssuer(element.raw)),
                found => {
                    let expected = "a DistributionPointName";
                    reader.fault(Rule::UnexpectedTag { expected, found })
                }
            }
        });
        let source = match point.at("source.dpn")? {
            Some(source) => source,
            None => {
                let issuer = fields
                    .explicit(1, |reader| reader.sequence()?.collect(GeneralName::read))
                    .at("source.issuer")?;
                match issuer {
                    Some(names) => CrlSource::Issuer(names),
                    None => return fields.fault(Rule::Missing("a CRLSource")).at("source"),
                }
            }
        };
        let this_update = match fields.is_empty() {
            true => None,
            false => Some(Time::either(&mut fields).at("thisUpdate")?),
        };
        fields.finish()?;
        Ok(Self {
            source,
            this_update,
        })
    }
}
