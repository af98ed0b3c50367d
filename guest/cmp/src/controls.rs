//! Controls and registration information (RFC 4211, 6 and 7; RFC 9810, 5.3.19.16), interpreted
//! on request.

use alloc::vec::Vec;

use crate::crmf::{AttributeTypeAndValue, CertId, CertRequest};
use crate::der::{Reader, tag};
use crate::encrypted::EncryptedKey;
use crate::error::{Context, Error, Result, Rule};
use crate::leniency::{Leniency, Tolerant, read_with};
use crate::name::GeneralName;
use crate::oid;
use crate::x509::{AlgorithmIdentifier, PublicKeyInfo};

/// The value of a control or of a piece of registration information, by its type.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Control<'a> {
    /// regToken: one-time information that the CA gave out (RFC 4211, 6.1).
    RegToken(&'a str),
    /// authenticator: what the CA asks for again and again (RFC 4211, 6.2).
    Authenticator(&'a str),
    /// pkiPublicationInfo (RFC 4211, 6.3).
    PublicationInfo(PkiPublicationInfo<'a>),
    /// pkiArchiveOptions (RFC 4211, 6.4).
    ArchiveOptions(PkiArchiveOptions<'a>),
    /// oldCertID: the certificate to be updated (RFC 4211, 6.5).
    OldCertId(CertId<'a>),
    /// protocolEncrKey: what the CA is to encrypt its answer with (RFC 4211, 6.6).
    ProtocolEncrKey(PublicKeyInfo<'a>),
    /// altCertTemplate: a template for another kind of certificate (RFC 9810, 5.2.1).
    AltCertTemplate(AttributeTypeAndValue<'a>),
    /// algId: a kind of key that the CA accepts (RFC 9810, 5.3.19.16).
    AlgId(AlgorithmIdentifier<'a>),
    /// rsaKeyLen: a length of RSA keys that the CA accepts, in bits (RFC 9810, 5.3.19.16).
    RsaKeyLen(i64),
    /// utf8Pairs: `name?value%name?value%` (RFC 4211, 7.1).
    Utf8Pairs(&'a str),
    /// certReq: the request as it was before an RA changed it (RFC 4211, 7.2).
    CertReq(CertRequest<'a>),
    /// A type that is not known: its DER.
    Other(&'a [u8]),
}

impl<'a> AttributeTypeAndValue<'a> {
    /// Interprets the value. Offsets in an error count from the start of the value.
    pub fn interpret(&self) -> Result<Control<'a>> {
        Ok(self.interpret_with(Leniency::STRICT)?.value)
    }

    /// Like [`interpret`](Self::interpret), accepting some deviations from DER.
    pub fn interpret_with(&self, leniency: Leniency) -> Result<Tolerant<Control<'a>>> {
        read_with(self.value, leniency, |reader| self.read_value(reader))
    }

    fn read_value(&self, reader: &mut Reader<'a>) -> Result<Control<'a>> {
        Ok(match self.oid {
            oid::REG_CTRL_REG_TOKEN => Control::RegToken(utf8(reader)?),
            oid::REG_CTRL_AUTHENTICATOR => Control::Authenticator(utf8(reader)?),
            oid::REG_CTRL_PKI_PUBLICATION_INFO => {
                Control::PublicationInfo(PkiPublicationInfo::read(reader)?)
            }
            oid::REG_CTRL_PKI_ARCHIVE_OPTIONS => {
                Control::ArchiveOptions(PkiArchiveOptions::read(reader)?)
            }
            oid::REG_CTRL_OLD_CERT_ID => Control::OldCertId(CertId::read(reader)?),
            oid::REG_CTRL_PROTOCOL_ENCR_KEY => {
                Control::ProtocolEncrKey(PublicKeyInfo::read(reader)?)
            }
            oid::REG_CTRL_ALT_CERT_TEMPLATE => Control::AltCertTemplate(Self::read(reader)?),
            oid::REG_CTRL_ALG_ID => Control::AlgId(AlgorithmIdentifier::read(reader)?),
            oid::REG_CTRL_RSA_KEY_LEN => {
                let at = reader.offset();
                match reader.integer()? {
                    bits @ 1.. => Control::RsaKeyLen(bits),
                    _ => return Err(Error::new(at, Rule::Content("an rsaKeyLen below 1"))),
                }
            }
            oid::REG_INFO_UTF8_PAIRS => Control::Utf8Pairs(utf8(reader)?),
            oid::REG_INFO_CERT_REQ => Control::CertReq(CertRequest::read(&mut reader.sequence()?)?),
            _ => Control::Other(reader.any()?.raw),
        })
    }
}

fn utf8<'a>(reader: &mut Reader<'a>) -> Result<&'a str> {
    reader.element(tag::UTF8_STRING, "a UTF8String")?.utf8()
}

/// Whether and where a certificate is to be published (RFC 4211, 6.3).
///
/// ```text
/// PKIPublicationInfo ::= SEQUENCE {
///     action    INTEGER { dontPublish (0), pleasePublish (1) },
///     pubInfos  SEQUENCE SIZE (1..MAX) OF SinglePubInfo OPTIONAL }
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PkiPublicationInfo<'a> {
    /// pleasePublish.
    pub publish: bool,
    /// Where. Empty means wherever the CA likes.
    pub places: Vec<SinglePubInfo<'a>>,
}

impl<'a> PkiPublicationInfo<'a> {
    /// Reads one PKIPublicationInfo and nothing after it.
    pub fn from_der(der: &'a [u8]) -> Result<Self> {
        let mut reader = Reader::new(der);
        let info = Self::read(&mut reader)?;
        reader.finish()?;
        Ok(info)
    }

    fn read(reader: &mut Reader<'a>) -> Result<Self> {
        let mut fields = reader.sequence()?;
        let publish = match fields.integer().at("action")? {
            0 => false,
            1 => true,
            _ => {
                let rule = Rule::Content("an action other than dontPublish and pleasePublish");
                return fields.fault(rule).at("action");
            }
        };
        let places = match fields.optional(tag::SEQUENCE).at("pubInfos")? {
            Some(list) => list.list(SinglePubInfo::read).at("pubInfos")?,
            None => Vec::new(),
        };
        fields.finish()?;
        Ok(Self { publish, places })
    }
}

/// One place to publish a certificate (RFC 4211, 6.3).
///
/// ```text
/// SinglePubInfo ::= SEQUENCE {
///     pubMethod    INTEGER { dontCare (0), x500 (1), web (2), ldap (3) },
///     pubLocation  GeneralName OPTIONAL }
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SinglePubInfo<'a> {
    /// How.
    pub method: PubMethod,
    /// Where.
    pub location: Option<GeneralName<'a>>,
}

/// How a certificate is published (RFC 4211, 6.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names are those of the production above")]
pub enum PubMethod {
    DontCare,
    X500,
    Web,
    Ldap,
}

impl<'a> SinglePubInfo<'a> {
    fn read(reader: &mut Reader<'a>) -> Result<Self> {
        let mut fields = reader.sequence()?;
        let method = match fields.integer().at("pubMethod")? {
            0 => PubMethod::DontCare,
            1 => PubMethod::X500,
            2 => PubMethod::Web,
            3 => PubMethod::Ldap,
            _ => {
                let rule = Rule::Content("a pubMethod outside 0 to 3");
                return fields.fault(rule).at("pubMethod");
            }
        };
        let location = match fields.is_empty() {
            true => None,
            false => Some(GeneralName::read(&mut fields).at("pubLocation")?),
        };
        fields.finish()?;
        Ok(Self { method, location })
    }
}

/// How the CA is to keep the private key (RFC 4211, 6.4).
///
/// ```text
/// PKIArchiveOptions ::= CHOICE {
///     encryptedPrivKey     [0] EncryptedKey,
///     keyGenParameters     [1] OCTET STRING,
///     archiveRemGenPrivKey [2] BOOLEAN }
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PkiArchiveOptions<'a> {
    /// The key itself, encrypted.
    EncryptedPrivKey(EncryptedKey<'a>),
    /// What it can be made from again.
    KeyGenParameters(&'a [u8]),
    /// Whether a key that the CA makes is to be kept.
    ArchiveRemGenPrivKey(bool),
}

impl<'a> PkiArchiveOptions<'a> {
    fn read(reader: &mut Reader<'a>) -> Result<Self> {
        // EncryptedKey is a CHOICE, so its tag is EXPLICIT even here.
        if let Some(key) = reader
            .explicit(0, EncryptedKey::read)
            .at("encryptedPrivKey")?
        {
            return Ok(Self::EncryptedPrivKey(key));
        }
        let element = reader.any()?;
        match (element.tag, element.value) {
            (0x81, octets) => Ok(Self::KeyGenParameters(octets)),
            (0x82, [0x00]) => Ok(Self::ArchiveRemGenPrivKey(false)),
            (0x82, [0xff]) => Ok(Self::ArchiveRemGenPrivKey(true)),
            (0x82, _) => {
                let rule = Rule::NotDistinguished("a BOOLEAN other than 00 and FF");
                Err(Error::new(element.offset, rule)).at("archiveRemGenPrivKey")
            }
            (found, _) => {
                let expected = "a PKIArchiveOptions";
                Err(Error::new(
                    element.offset,
                    Rule::UnexpectedTag { expected, found },
                ))
            }
        }
    }
}
