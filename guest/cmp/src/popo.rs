//! Proof of possession of a private key (RFC 4211, 4), whose module has IMPLICIT tags.

use alloc::borrow::Cow;

use crate::der::{Element, Reader, Writer, tag};
use crate::encrypted::EnvelopedData;
use crate::error::{Context, Result, Rule};
use crate::name::GeneralName;
use crate::x509::{AlgorithmIdentifier, PublicKeyInfo};

/// The proof that the requester holds the private key (RFC 4211, 4).
///
/// ```text
/// ProofOfPossession ::= CHOICE {
///     raVerified      [0] NULL,
///     signature       [1] POPOSigningKey,
///     keyEncipherment [2] POPOPrivKey,
///     keyAgreement    [3] POPOPrivKey }
/// POPOSigningKey ::= SEQUENCE {
///     poposkInput         [0] POPOSigningKeyInput OPTIONAL,
///     algorithmIdentifier     AlgorithmIdentifier,
///     signature               BIT STRING }
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ProofOfPossession<'a> {
    /// A registration authority vouches for it.
    RaVerified,
    /// A signature over the CertRequest, or over `input` where that is given.
    Signature {
        /// What is signed where the CertRequest has no subject or no public key.
        input: Option<PoposkInput<'a>>,
        /// How it was signed.
        algorithm: AlgorithmIdentifier<'a>,
        /// The signature.
        signature: Cow<'a, [u8]>,
    },
    /// For keys that encrypt.
    KeyEncipherment(PopoPrivKey<'a>),
    /// For keys that agree.
    KeyAgreement(PopoPrivKey<'a>),
}

/// What a proof of possession signs where the request lacks a name (RFC 4211, 4.1).
///
/// ```text
/// POPOSigningKeyInput ::= SEQUENCE {
///     authInfo CHOICE { sender [0] GeneralName, publicKeyMAC PKMACValue },
///     publicKey SubjectPublicKeyInfo }
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PoposkInput<'a> {
    /// The contents of the SEQUENCE as they were read: signed under a SEQUENCE tag.
    pub contents: &'a [u8],
    /// Who asks, where it is not a MAC that tells.
    pub sender: Option<GeneralName<'a>>,
    /// The MAC over the key, where there is no sender.
    pub public_key_mac: Option<PkMacValue<'a>>,
    /// The key that is proved.
    pub public_key: PublicKeyInfo<'a>,
}

/// A MAC and how it was made (RFC 4211, 4.1).
///
/// ```text
/// PKMACValue ::= SEQUENCE { algId AlgorithmIdentifier, value BIT STRING }
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PkMacValue<'a> {
    /// How it was made.
    pub algorithm: AlgorithmIdentifier<'a>,
    /// The MAC.
    pub value: &'a [u8],
}

impl<'a> PkMacValue<'a> {
    fn read(reader: &mut Reader<'a>) -> Result<Self> {
        Self::read_contents(&mut reader.sequence()?)
    }

    fn read_contents(fields: &mut Reader<'a>) -> Result<Self> {
        let algorithm = AlgorithmIdentifier::read(fields).at("algId")?;
        let value = fields
            .element(tag::BIT_STRING, "a BIT STRING")
            .and_then(|bits| bits.octet_aligned_bits())
            .at("value")?;
        fields.clone().finish()?;
        Ok(Self { algorithm, value })
    }

    /// From the contents of [`PopoPrivKey::AgreeMac`].
    pub fn from_contents(contents: &'a [u8]) -> Result<Self> {
        Self::read_contents(&mut Reader::new(contents))
    }
}

/// How the possession of a key that cannot sign is proved (RFC 4211, 4.2 and 4.3).
///
/// ```text
/// POPOPrivKey ::= CHOICE {
///     thisMessage       [0] BIT STRING,   -- deprecated
///     subsequentMessage [1] SubsequentMessage,
///     dhMAC             [2] BIT STRING,   -- deprecated
///     agreeMAC          [3] PKMACValue,
///     encryptedKey      [4] EnvelopedData }
/// SubsequentMessage ::= INTEGER { encrCert (0), challengeResp (1) }
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PopoPrivKey<'a> {
    /// The private key itself, encrypted.
    ThisMessage(&'a [u8]),
    /// The certificate will come encrypted.
    EncrCert,
    /// A challenge will be answered.
    ChallengeResp,
    /// A MAC under a key from Diffie-Hellman.
    DhMac(&'a [u8]),
    /// The contents of a PKMACValue, for [`PkMacValue::from_contents`].
    AgreeMac(&'a [u8]),
    /// The private key itself, for the CA.
    EncryptedKey(EnvelopedData<'a>),
}

impl<'a> ProofOfPossession<'a> {
    pub(crate) fn read(reader: &mut Reader<'a>) -> Result<Self> {
        let element = reader.any()?;
        match element.tag {
            0x80 if element.value.is_empty() => Ok(Self::RaVerified),
            0xa0 if element.value == [0x05, 0x00] => {
                element.tolerate(element.value_offset(), Rule::ExplicitRaVerified)?;
                Ok(Self::RaVerified)
            }
            0xa1 => {
                let mut fields = element.contents();
                let input = match fields.optional(tag::constructed(0)).at("poposkInput")? {
                    Some(element) => Some(PoposkInput::read(&element).at("poposkInput")?),
                    None => None,
                };
                let algorithm = AlgorithmIdentifier::read(&mut fields).at("algorithmIdentifier")?;
                let signature = fields
                    .element(tag::BIT_STRING, "a BIT STRING")
                    .and_then(|bits| bits.octet_aligned_bits())
                    .at("signature")?;
                fields.finish()?;
                Ok(Self::Signature {
                    input,
                    algorithm,
                    signature: Cow::Borrowed(signature),
                })
            }
            0xa2 => Ok(Self::KeyEncipherment(PopoPrivKey::read(
                &mut element.contents(),
            )?)),
            0xa3 => Ok(Self::KeyAgreement(PopoPrivKey::read(
                &mut element.contents(),
            )?)),
            found => Err(crate::Error::new(
                element.offset,
                Rule::UnexpectedTag {
                    expected: "a ProofOfPossession",
                    found,
                },
            )),
        }
    }

    pub(crate) fn write(&self, writer: &mut Writer) {
        match self {
            Self::RaVerified => writer.element(tag::primitive(0), &[]),
            Self::Signature {
                input,
                algorithm,
                signature,
            } => {
                writer.nested(tag::constructed(1), |w| {
                    if let Some(input) = input {
                        w.element(tag::constructed(0), input.contents);
                    }
                    algorithm.write(w);
                    w.bits(tag::BIT_STRING, signature);
                });
            }
            // A CHOICE inside a tag is EXPLICIT.
            Self::KeyEncipherment(key) => writer.explicit(2, |w| key.write(w)),
            Self::KeyAgreement(key) => writer.explicit(3, |w| key.write(w)),
        }
    }

    /// The name of the alternative.
    pub fn name(&self) -> &'static str {
        match self {
            Self::RaVerified => "raVerified",
            Self::Signature { .. } => "signature",
            Self::KeyEncipherment(_) => "keyEncipherment",
            Self::KeyAgreement(_) => "keyAgreement",
        }
    }
}

impl<'a> PoposkInput<'a> {
    fn read(element: &Element<'a>) -> Result<Self> {
        let mut fields = element.contents();
        let sender = fields.explicit(0, GeneralName::read).at("sender")?;
        let public_key_mac = match sender {
            Some(_) => None,
            None => Some(PkMacValue::read(&mut fields).at("publicKeyMAC")?),
        };
        let public_key = PublicKeyInfo::read(&mut fields).at("publicKey")?;
        fields.finish()?;
        Ok(Self {
            contents: element.value,
            sender,
            public_key_mac,
            public_key,
        })
    }

    /// The octets that the signature covers: the DER of the POPOSigningKeyInput.
    pub fn signed(&self) -> alloc::vec::Vec<u8> {
        Writer::encode(|w| w.element(tag::SEQUENCE, self.contents))
    }
}

impl<'a> PopoPrivKey<'a> {
    fn read(reader: &mut Reader<'a>) -> Result<Self> {
        let element = reader.any()?;
        let fault = |rule| Err(crate::Error::new(element.offset, rule));
        let key = match element.tag {
            0x80 => Self::ThisMessage(element.octet_aligned_bits().at("thisMessage")?),
            0x81 => match element.integer().at("subsequentMessage")? {
                0 => Self::EncrCert,
                1 => Self::ChallengeResp,
                _ => return fault(Rule::Content("a SubsequentMessage other than 0 and 1")),
            },
            0x82 => Self::DhMac(element.octet_aligned_bits().at("dhMAC")?),
            0xa3 => {
                PkMacValue::read_contents(&mut element.contents()).at("agreeMAC")?;
                Self::AgreeMac(element.value)
            }
            0xa4 => Self::EncryptedKey(EnvelopedData::read(&element).at("encryptedKey")?),
            found => {
                return fault(Rule::UnexpectedTag {
                    expected: "a POPOPrivKey",
                    found,
                });
            }
        };
        reader.clone().finish()?;
        Ok(key)
    }

    fn write(&self, writer: &mut Writer) {
        match self {
            Self::ThisMessage(bits) => writer.bits(tag::primitive(0), bits),
            Self::EncrCert => writer.element(tag::primitive(1), &[0]),
            Self::ChallengeResp => writer.element(tag::primitive(1), &[1]),
            Self::DhMac(bits) => writer.bits(tag::primitive(2), bits),
            Self::AgreeMac(contents) => writer.element(tag::constructed(3), contents),
            Self::EncryptedKey(data) => data.write(writer, tag::constructed(4)),
        }
    }
}
