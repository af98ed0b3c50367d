//! EncryptedKey (RFC 9810, 5.2.2): a secret on its way to one recipient.

use crate::der::{Element, Reader, Writer, tag};
use crate::error::{Context, Result, Rule};
use crate::oid::Oid;
use crate::x509::AlgorithmIdentifier;

/// A secret on its way to one recipient.
///
/// ```text
/// EncryptedKey ::= CHOICE {
///     encryptedValue     EncryptedValue,   -- deprecated
///     envelopedData  [0] EnvelopedData }
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EncryptedKey<'a> {
    /// The form of RFC 4211, for pvno 2.
    EncryptedValue(EncryptedValue<'a>),
    /// The form of CMS, for pvno 3.
    EnvelopedData(EnvelopedData<'a>),
}

impl<'a> EncryptedKey<'a> {
    pub(crate) fn read(reader: &mut Reader<'a>) -> Result<Self> {
        // The CRMF module has IMPLICIT tags: [0] stands in place of the SEQUENCE.
        match reader.optional(tag::constructed(0))? {
            Some(element) => Ok(Self::EnvelopedData(
                EnvelopedData::read(&element).at("envelopedData")?,
            )),
            None => Ok(Self::EncryptedValue(
                EncryptedValue::read(reader).at("encryptedValue")?,
            )),
        }
    }

    pub(crate) fn write(&self, writer: &mut Writer) {
        match self {
            Self::EncryptedValue(value) => value.write(writer),
            Self::EnvelopedData(data) => data.write(writer, tag::constructed(0)),
        }
    }
}

/// An encrypted value in the form of RFC 4211, 2.1, deprecated since RFC 9480.
///
/// ```text
/// EncryptedValue ::= SEQUENCE {
///     intendedAlg [0] AlgorithmIdentifier OPTIONAL,
///     symmAlg     [1] AlgorithmIdentifier OPTIONAL,
///     encSymmKey  [2] BIT STRING          OPTIONAL,
///     keyAlg      [3] AlgorithmIdentifier OPTIONAL,
///     valueHint   [4] OCTET STRING        OPTIONAL,
///     encValue        BIT STRING }
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the fields are those of the production above")]
pub struct EncryptedValue<'a> {
    pub intended_alg: Option<AlgorithmIdentifier<'a>>,
    pub symm_alg: Option<AlgorithmIdentifier<'a>>,
    pub enc_symm_key: Option<&'a [u8]>,
    pub key_alg: Option<AlgorithmIdentifier<'a>>,
    pub value_hint: Option<&'a [u8]>,
    pub enc_value: &'a [u8],
}

impl<'a> EncryptedValue<'a> {
    fn read(reader: &mut Reader<'a>) -> Result<Self> {
        let mut fields = reader.sequence()?;
        let algorithm = |fields: &mut Reader<'a>, number| {
            let element = fields.optional(tag::constructed(number))?;
            element
                .map(|e| AlgorithmIdentifier::read_contents(&mut e.contents()))
                .transpose()
        };
        let intended_alg = algorithm(&mut fields, 0).at("intendedAlg")?;
        let symm_alg = algorithm(&mut fields, 1).at("symmAlg")?;
        let enc_symm_key = match fields.optional(tag::primitive(2)).at("encSymmKey")? {
            Some(bits) => Some(bits.octet_aligned_bits().at("encSymmKey")?),
            None => None,
        };
        let key_alg = algorithm(&mut fields, 3).at("keyAlg")?;
        let value_hint = fields
            .optional(tag::primitive(4))
            .at("valueHint")?
            .map(|hint| hint.value);
        let enc_value = fields
            .element(tag::BIT_STRING, "a BIT STRING")
            .and_then(|bits| bits.octet_aligned_bits())
            .at("encValue")?;
        fields.finish()?;
        Ok(Self {
            intended_alg,
            symm_alg,
            enc_symm_key,
            key_alg,
            value_hint,
            enc_value,
        })
    }

    fn write(&self, writer: &mut Writer) {
        let algorithm = |w: &mut Writer, number, alg: &Option<AlgorithmIdentifier<'_>>| {
            if let Some(alg) = alg {
                w.nested(tag::constructed(number), |w| alg.write_contents(w));
            }
        };
        writer.sequence(|w| {
            algorithm(w, 0, &self.intended_alg);
            algorithm(w, 1, &self.symm_alg);
            if let Some(key) = self.enc_symm_key {
                w.bits(tag::primitive(2), key);
            }
            algorithm(w, 3, &self.key_alg);
            if let Some(hint) = self.value_hint {
                w.element(tag::primitive(4), hint);
            }
            w.bits(tag::BIT_STRING, self.enc_value);
        });
    }
}

/// EnvelopedData (RFC 5652, 6.1), read as far as a recipient is chosen by.
///
/// ```text
/// EnvelopedData ::= SEQUENCE {
///     version               CMSVersion,
///     originatorInfo    [0] OriginatorInfo        OPTIONAL,
///     recipientInfos        SET SIZE (1..MAX) OF RecipientInfo,
///     encryptedContentInfo  EncryptedContentInfo,
///     unprotectedAttrs  [1] SET SIZE (1..MAX) OF Attribute OPTIONAL }
/// EncryptedContentInfo ::= SEQUENCE {
///     contentType                 OBJECT IDENTIFIER,
///     contentEncryptionAlgorithm  AlgorithmIdentifier,
///     encryptedContent        [0] OCTET STRING OPTIONAL }
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EnvelopedData<'a> {
    /// Everything inside the outer tag, for the crates that decrypt.
    pub contents: &'a [u8],
    /// The version of the syntax.
    pub version: i64,
    /// How each recipient gets the key.
    pub recipients: alloc::vec::Vec<RecipientKind>,
    /// What is inside once it is decrypted.
    pub content_type: Oid<'a>,
    /// How it is encrypted.
    pub content_encryption: AlgorithmIdentifier<'a>,
}

/// The alternatives of RecipientInfo (RFC 5652, 6.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RecipientKind {
    /// `ktri`.
    KeyTransport,
    /// `kari [1]`.
    KeyAgreement,
    /// `kekri [2]`.
    KeyEncryptionKey,
    /// `pwri [3]`.
    Password,
    /// `ori [4]`, with which RFC 9629 carries a KEM.
    Other,
}

impl RecipientKind {
    /// The name in the production.
    pub fn name(self) -> &'static str {
        match self {
            Self::KeyTransport => "ktri",
            Self::KeyAgreement => "kari",
            Self::KeyEncryptionKey => "kekri",
            Self::Password => "pwri",
            Self::Other => "ori",
        }
    }
}

impl<'a> EnvelopedData<'a> {
    /// Reads one EnvelopedData under its own tag and nothing after it.
    pub fn from_der(der: &'a [u8]) -> Result<Self> {
        let mut reader = Reader::new(der);
        let element = reader.element(tag::SEQUENCE, "an EnvelopedData")?;
        reader.finish()?;
        Self::read(&element)
    }

    pub(crate) fn read(element: &Element<'a>) -> Result<Self> {
        let mut fields = element.contents();
        let version = fields.integer().at("version")?;
        fields.optional(tag::constructed(0)).at("originatorInfo")?;
        let mut infos = fields
            .element(tag::SET, "a SET")
            .at("recipientInfos")?
            .contents();
        let recipients = infos
            .collect(|reader| {
                let info = reader.any()?;
                Ok(match info.tag {
                    tag::SEQUENCE => RecipientKind::KeyTransport,
                    0xa1 => RecipientKind::KeyAgreement,
                    0xa2 => RecipientKind::KeyEncryptionKey,
                    0xa3 => RecipientKind::Password,
                    0xa4 => RecipientKind::Other,
                    found => {
                        let expected = "a RecipientInfo";
                        return reader.fault(Rule::UnexpectedTag { expected, found });
                    }
                })
            })
            .at("recipientInfos")?;
        if recipients.is_empty() {
            return infos
                .fault(Rule::Content("no RecipientInfo"))
                .at("recipientInfos");
        }
        let mut content = fields.sequence().at("encryptedContentInfo")?;
        let content_type = content.oid().at("encryptedContentInfo.contentType")?;
        let content_encryption = AlgorithmIdentifier::read(&mut content)
            .at("encryptedContentInfo.contentEncryptionAlgorithm")?;
        content
            .optional(tag::primitive(0))
            .at("encryptedContentInfo.encryptedContent")?;
        content.finish().at("encryptedContentInfo")?;
        fields
            .optional(tag::constructed(1))
            .at("unprotectedAttrs")?;
        fields.finish()?;
        Ok(Self {
            contents: element.value,
            version,
            recipients,
            content_type,
            content_encryption,
        })
    }

    pub(crate) fn write(&self, writer: &mut Writer, tag: u8) {
        writer.element(tag, self.contents);
    }
}
