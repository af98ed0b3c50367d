use alloc::vec::Vec;

use super::CmsError;
use crate::der::{Element, Reader, Writer, tag};
use crate::encrypted::EnvelopedData;
use crate::error::{Context, Result as DerResult};
use crate::name::Name;
use crate::oid::{self, Oid};
use crate::protection::{Hash, Pbkdf2, Policy, Unsupported};
use crate::x509::{AlgorithmIdentifier, Certificate};

/// AES by the length of its key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "each is AES with a key of that many bits")]
pub enum Aes {
    Aes128,
    Aes192,
    Aes256,
}

impl Aes {
    /// Octets of its key.
    pub fn key_length(self) -> usize {
        match self {
            Self::Aes128 => 16,
            Self::Aes192 => 24,
            Self::Aes256 => 32,
        }
    }

    /// AES in CBC mode and its initialization vector (RFC 3565, 4.1).
    fn cbc<'a>(identifier: &AlgorithmIdentifier<'a>) -> Result<(Self, &'a [u8]), Unsupported> {
        let aes = match identifier.oid {
            oid::AES128_CBC => Self::Aes128,
            oid::AES192_CBC => Self::Aes192,
            oid::AES256_CBC => Self::Aes256,
            other => return Err(Unsupported::algorithm(other)),
        };
        let mut reader = Reader::new(identifier.parameters.unwrap_or_default());
        match (reader.octet_string(), reader.finish()) {
            (Ok(iv), Ok(())) if iv.value.len() == BLOCK => Ok((aes, iv.value)),
            _ => Err(Unsupported::Parameters(
                "AES in CBC mode without an initialization vector of 16 octets",
            )),
        }
    }

    /// AES as a wrap of keys, whose parameters are absent (RFC 3565, 4.2).
    fn wrap(identifier: &AlgorithmIdentifier<'_>) -> Result<Self, Unsupported> {
        let aes = match identifier.oid {
            oid::AES128_WRAP => Self::Aes128,
            oid::AES192_WRAP => Self::Aes192,
            oid::AES256_WRAP => Self::Aes256,
            other => return Err(Unsupported::algorithm(other)),
        };
        if !identifier.has_no_parameters() {
            return Err(Unsupported::Parameters("an AES key wrap with parameters"));
        }
        Ok(aes)
    }
}

/// Octets of a block of AES.
const BLOCK: usize = 16;

/// How the content-encryption key is kept from all but the recipient.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KeyManagement<'a> {
    /// RSAES-PKCS1-v1_5 (RFC 9483, 4.1.6.1).
    RsaPkcs1,
    /// RSAES-OAEP with this hash, also in the mask generation, and no label (RFC 9483, 4.1.6.1).
    RsaOaep(Hash),
    /// ECDH on the curve of the recipient's key, the KDF of ANSI X9.63 and a key wrap
    /// (RFC 9483, 4.1.6.2, and RFC 5753).
    Ecdh {
        /// The originator's point, uncompressed.
        point: Vec<u8>,
        /// The hash of the KDF.
        kdf: Hash,
        /// The DER of ECC-CMS-SharedInfo (RFC 5753, 7.2).
        info: Vec<u8>,
        /// How the key is wrapped.
        wrap: Aes,
    },
    /// PBKDF2 of the shared secret and a key wrap (RFC 9483, 4.1.6.3).
    Password {
        /// The hash of its HMAC.
        prf: Hash,
        /// The salt.
        salt: &'a [u8],
        /// The iterations.
        iterations: u32,
        /// How the key is wrapped.
        wrap: PasswordWrap<'a>,
    },
}

/// How a key is wrapped with one that is derived from a password.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PasswordWrap<'a> {
    /// AES key wrap, as RFC 9481, 4.3 has it.
    Aes(Aes),
    /// id-alg-PWRI-KEK (RFC 3211, 2.3), as Bouncy Castle and OpenSSL have it.
    PwriKek {
        /// AES in CBC mode.
        cipher: Aes,
        /// Its initialization vector, 16 octets.
        iv: &'a [u8],
    },
}

/// For whom something was encrypted.
#[derive(Clone, Copy, Debug)]
pub enum Recipient<'r, 'a> {
    /// The holder of the key of this certificate. The others may be those of a static key of
    /// the originator.
    Certificate(&'r Certificate<'a>, &'r [Certificate<'a>]),
    /// Who knows the shared secret.
    Secret,
}

/// What is to be decrypted, and how: parameters that were read and bounded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Envelope<'a> {
    /// How to get at the content-encryption key.
    pub management: KeyManagement<'a>,
    /// The encrypted content-encryption key.
    pub encrypted_key: &'a [u8],
    /// The content is encrypted by this in CBC mode, with the padding of RFC 5652, 6.3.
    pub cipher: Aes,
    /// The initialization vector of the content, 16 octets.
    pub iv: &'a [u8],
    /// The encrypted content.
    pub content: &'a [u8],
}

impl<'a> Envelope<'a> {
    /// Reads what is there for a recipient. There must be one RecipientInfo (RFC 9483, 4.1.6),
    /// of the kind that the recipient can open, and it must name their certificate.
    pub fn new(
        data: &EnvelopedData<'a>,
        recipient: Recipient<'_, '_>,
        policy: Policy,
    ) -> Result<Self, CmsError> {
        if ![oid::CMS_SIGNED_DATA, oid::CMS_DATA].contains(&data.content_type) {
            return Err(CmsError::Rule(
                "what is encrypted is no SignedData (RFC 9483, 4.1.6)",
            ));
        }
        let mut fields = Reader::judged(data.contents);
        fields.integer()?;
        fields.optional(tag::constructed(0))?;
        let mut infos = fields.element(tag::SET, "a SET")?.contents();
        let info = infos.any()?;
        if !infos.is_empty() {
            return Err(CmsError::Rule(
                "it is for more than one recipient (RFC 9483, 4.1.6)",
            ));
        }
        let mut content = fields.sequence()?;
        content.any()?;
        content.any()?;
        let content = content
            .optional(tag::primitive(0))?
            .ok_or(CmsError::Rule("it brings no encryptedContent"))?;
        let (cipher, iv) = Aes::cbc(&data.content_encryption)?;
        let (management, encrypted_key) = match (info.tag, recipient) {
            (tag::SEQUENCE, Recipient::Certificate(own, _)) => key_transport(&info, own)?,
            (0xa1, Recipient::Certificate(own, others)) => {
                key_agreement(&info, own, others, policy)?
            }
            (0xa3, Recipient::Secret) => password(&info, policy)?,
            (tag::SEQUENCE | 0xa1, Recipient::Secret) => {
                return Err(CmsError::Rule(
                    "it is for the holder of a certificate, and the request was protected by a \
                     shared secret (RFC 9483, 4.1.6)",
                ));
            }
            (0xa3, Recipient::Certificate(..)) => {
                return Err(CmsError::Rule(
                    "it is for who knows a password, and the request was signed \
                     (RFC 9483, 4.1.6)",
                ));
            }
            _ => {
                return Err(CmsError::Rule(
                    "its recipient is neither ktri nor kari nor pwri (RFC 9483, 4.1.6)",
                ));
            }
        };
        Ok(Self {
            management,
            encrypted_key,
            cipher,
            iv,
            content: content.value,
        })
    }
}

const NOT_OURS: CmsError =
    CmsError::Rule("it is for another certificate than the one that signed the request");

/// ```text
/// KeyTransRecipientInfo ::= SEQUENCE {
///     version                 CMSVersion,
///     rid                     RecipientIdentifier,
///     keyEncryptionAlgorithm  AlgorithmIdentifier,
///     encryptedKey            OCTET STRING }
/// ```
fn key_transport<'a>(
    info: &Element<'a>,
    own: &Certificate<'_>,
) -> Result<(KeyManagement<'a>, &'a [u8]), CmsError> {
    let mut fields = info.contents();
    fields.integer().at("version")?;
    let named = EntityIdentifier::read(&fields.any()?).at("rid")?;
    let algorithm = AlgorithmIdentifier::read(&mut fields).at("keyEncryptionAlgorithm")?;
    let key = fields.octet_string().at("encryptedKey")?.value;
    fields.finish()?;
    if !named.is(own) {
        return Err(NOT_OURS);
    }
    let management = match algorithm.oid {
        oid::RSA_ENCRYPTION if algorithm.has_no_parameters() => KeyManagement::RsaPkcs1,
        oid::RSAES_OAEP => KeyManagement::RsaOaep(oaep_hash(&algorithm)?),
        other => return Err(Unsupported::algorithm(other).into()),
    };
    Ok((management, key))
}

/// The hash of RSAES-OAEP-params (RFC 4055, 4.1). SHA-1 is not weak in this place.
///
/// ```text
/// RSAES-OAEP-params ::= SEQUENCE {
///     hashFunc     [0] AlgorithmIdentifier DEFAULT sha1Identifier,
///     maskGenFunc  [1] AlgorithmIdentifier DEFAULT mgf1SHA1Identifier,
///     pSourceFunc  [2] AlgorithmIdentifier DEFAULT pSpecifiedEmptyIdentifier }
/// ```
fn oaep_hash(identifier: &AlgorithmIdentifier<'_>) -> Result<Hash, Unsupported> {
    let Some(der) = identifier.parameters else {
        return Ok(Hash::Sha1);
    };
    let read = || -> DerResult<_> {
        let mut reader = Reader::new(der);
        let mut fields = reader.sequence()?;
        reader.finish()?;
        let hash = fields.explicit(0, AlgorithmIdentifier::read)?;
        let mask = fields.explicit(1, AlgorithmIdentifier::read)?;
        let source = fields.explicit(2, AlgorithmIdentifier::read)?;
        fields.finish()?;
        Ok((hash, mask, source))
    };
    let malformed = |_| Unsupported::Parameters("the RSAES-OAEP-params cannot be read");
    let (hash, mask, source) = read().map_err(malformed)?;
    let hash = match hash {
        Some(hash) => Hash::from_identifier(&hash)?,
        None => Hash::Sha1,
    };
    let mask_hash = match mask {
        Some(mask) if mask.oid != oid::MGF1 => return Err(Unsupported::algorithm(mask.oid)),
        Some(mask) => {
            let hash = AlgorithmIdentifier::from_der(mask.parameters.unwrap_or_default());
            Hash::from_identifier(&hash.map_err(malformed)?)?
        }
        None => Hash::Sha1,
    };
    if hash != mask_hash || hash == Hash::Sha224 {
        return Err(Unsupported::Parameters(
            "RSAES-OAEP with two hashes, or one other than SHA-1, SHA-256, SHA-384 and SHA-512",
        ));
    }
    let empty = |source: AlgorithmIdentifier<'_>| {
        source.oid == oid::P_SPECIFIED && source.parameters == Some(&[0x04, 0x00])
    };
    if !source.is_none_or(empty) {
        return Err(Unsupported::Parameters("RSAES-OAEP with a label"));
    }
    Ok(hash)
}

/// ```text
/// KeyAgreeRecipientInfo ::= SEQUENCE {
///     version                 CMSVersion,
///     originator          [0] EXPLICIT OriginatorIdentifierOrKey,
///     ukm                 [1] EXPLICIT OCTET STRING OPTIONAL,
///     keyEncryptionAlgorithm  AlgorithmIdentifier,
///     recipientEncryptedKeys  SEQUENCE OF RecipientEncryptedKey }
/// RecipientEncryptedKey ::= SEQUENCE {
///     rid           KeyAgreeRecipientIdentifier,
///     encryptedKey  OCTET STRING }
/// ```
fn key_agreement<'a>(
    info: &Element<'a>,
    own: &Certificate<'_>,
    others: &[Certificate<'_>],
    policy: Policy,
) -> Result<(KeyManagement<'a>, &'a [u8]), CmsError> {
    let mut fields = info.contents();
    fields.integer().at("version")?;
    let originator = fields
        .explicit(0, Reader::any)
        .at("originator")?
        .ok_or(CmsError::Rule("the key agreement has no originator"))?;
    let ukm = fields.explicit(1, Reader::octet_string).at("ukm")?;
    let algorithm = AlgorithmIdentifier::read(&mut fields).at("keyEncryptionAlgorithm")?;
    let mut keys = fields.sequence().at("recipientEncryptedKeys")?;
    fields.finish()?;
    let mut key = keys.sequence().at("recipientEncryptedKeys")?;
    if !keys.is_empty() {
        return Err(CmsError::Rule(
            "it is for more than one recipient (RFC 9483, 4.1.6.2)",
        ));
    }
    let named = EntityIdentifier::read(&key.any()?).at("rid")?;
    let encrypted = key.octet_string().at("encryptedKey")?.value;
    key.finish()?;
    if !named.is(own) {
        return Err(NOT_OURS);
    }
    let kdf = match algorithm.oid {
        oid::ECDH_STD_SHA1 => Hash::Sha1,
        oid::ECDH_STD_SHA224 => Hash::Sha224,
        oid::ECDH_STD_SHA256 => Hash::Sha256,
        oid::ECDH_STD_SHA384 => Hash::Sha384,
        oid::ECDH_STD_SHA512 => Hash::Sha512,
        other => return Err(Unsupported::algorithm(other).into()),
    };
    policy.admit(kdf, algorithm.oid)?;
    let wrap_der = algorithm.parameters.unwrap_or_default();
    let wrap = AlgorithmIdentifier::from_der(wrap_der).map_err(|_| {
        Unsupported::Parameters("a key agreement that does not name its key wrap (RFC 5753, 7.1.4)")
    })?;
    let wrap = Aes::wrap(&wrap)?;
    let point = originator_point(&originator, own, others)?;
    let management = KeyManagement::Ecdh {
        point,
        kdf,
        info: shared_info(wrap_der, ukm.map(|ukm| ukm.value), wrap),
        wrap,
    };
    Ok((management, encrypted))
}

/// The originator's public key, which lies on the curve of the recipient's.
///
/// ```text
/// OriginatorIdentifierOrKey ::= CHOICE {
///     issuerAndSerialNumber     IssuerAndSerialNumber,
///     subjectKeyIdentifier  [0] SubjectKeyIdentifier,
///     originatorKey         [1] OriginatorPublicKey }
/// OriginatorPublicKey ::= SEQUENCE { algorithm AlgorithmIdentifier, publicKey BIT STRING }
/// ```
fn originator_point(
    originator: &Element<'_>,
    own: &Certificate<'_>,
    others: &[Certificate<'_>],
) -> Result<Vec<u8>, CmsError> {
    let curve = own.public_key.curve();
    let (its_curve, point) = if originator.tag == tag::constructed(1) {
        let mut fields = originator.contents();
        let algorithm = AlgorithmIdentifier::read(&mut fields).at("originatorKey")?;
        let point = fields
            .element(tag::BIT_STRING, "a BIT STRING")
            .and_then(|bits| bits.octet_aligned_bits())
            .at("originatorKey")?;
        fields.finish()?;
        if algorithm.oid != oid::EC_PUBLIC_KEY {
            return Err(Unsupported::algorithm(algorithm.oid).into());
        }
        // The curve is that of the recipient where it is left out (RFC 5753, 3.1.1).
        let its_curve = match algorithm.has_no_parameters() {
            true => curve,
            false => named_curve(algorithm.parameters.unwrap_or_default()),
        };
        (its_curve, point)
    } else {
        let named = EntityIdentifier::read(originator).at("originator")?;
        let found = others.iter().find(|certificate| named.is(certificate));
        let key = found.map(|certificate| certificate.public_key);
        let key = key.ok_or(CmsError::Rule(
            "the message brings no certificate of the originator of the key agreement",
        ))?;
        (key.curve(), key.key)
    };
    let fits = curve.is_some() && its_curve == curve;
    if !fits || point.first() != Some(&0x04) || point.len() != own.public_key.key.len() {
        return Err(CmsError::Rule(
            "the key agreement is on another curve than the key of the request's signer",
        ));
    }
    Ok(point.to_vec())
}

fn named_curve(parameters: &[u8]) -> Option<Oid<'_>> {
    Reader::new(parameters).oid().ok()
}

/// What goes into the KDF besides the shared secret (RFC 5753, 7.2).
///
/// ```text
/// ECC-CMS-SharedInfo ::= SEQUENCE {
///     keyInfo          AlgorithmIdentifier,
///     entityUInfo  [0] EXPLICIT OCTET STRING OPTIONAL,
///     suppPubInfo  [2] EXPLICIT OCTET STRING }
/// ```
fn shared_info(wrap_der: &[u8], ukm: Option<&[u8]>, wrap: Aes) -> Vec<u8> {
    let bits = (wrap.key_length() as u32 * 8).to_be_bytes();
    Writer::encode(|w| {
        w.sequence(|w| {
            w.raw(wrap_der);
            if let Some(ukm) = ukm {
                w.explicit(0, |w| w.octet_string(ukm));
            }
            w.explicit(2, |w| w.octet_string(&bits));
        });
    })
}

/// ```text
/// PasswordRecipientInfo ::= SEQUENCE {
///     version                     CMSVersion,
///     keyDerivationAlgorithm  [0] AlgorithmIdentifier OPTIONAL,
///     keyEncryptionAlgorithm      AlgorithmIdentifier,
///     encryptedKey                OCTET STRING }
/// ```
fn password<'a>(
    info: &Element<'a>,
    policy: Policy,
) -> Result<(KeyManagement<'a>, &'a [u8]), CmsError> {
    let mut fields = info.contents();
    fields.integer().at("version")?;
    let derivation = fields
        .optional(tag::constructed(0))
        .at("keyDerivationAlgorithm")?
        .ok_or(CmsError::Rule(
            "the password is used without a keyDerivationAlgorithm (RFC 9483, 4.1.6.3)",
        ))?;
    let derivation = AlgorithmIdentifier::read_contents(&mut derivation.contents())
        .at("keyDerivationAlgorithm")?;
    let algorithm = AlgorithmIdentifier::read(&mut fields).at("keyEncryptionAlgorithm")?;
    let key = fields.octet_string().at("encryptedKey")?.value;
    fields.finish()?;
    let wrap = match algorithm.oid {
        oid::PWRI_KEK => {
            let malformed = Unsupported::Parameters("id-alg-PWRI-KEK without its cipher");
            let cipher = AlgorithmIdentifier::from_der(algorithm.parameters.unwrap_or_default());
            let (cipher, iv) = Aes::cbc(&cipher.map_err(|_| malformed)?)?;
            PasswordWrap::PwriKek { cipher, iv }
        }
        _ => PasswordWrap::Aes(Aes::wrap(&algorithm)?),
    };
    let (PasswordWrap::Aes(aes) | PasswordWrap::PwriKek { cipher: aes, .. }) = wrap;
    let length = aes.key_length();
    let pbkdf2 = Pbkdf2::from_identifier(&derivation, policy)?;
    if pbkdf2
        .key_length
        .is_some_and(|given| given != length as i64)
    {
        return Err(Unsupported::Parameters(
            "PBKDF2 for a key of another length than the key wrap has",
        )
        .into());
    }
    let management = KeyManagement::Password {
        prf: pbkdf2.prf,
        salt: pbkdf2.salt,
        iterations: pbkdf2.iterations(length)?,
        wrap,
    };
    Ok((management, key))
}

/// Names a certificate (RFC 5652, 5.3, 6.2.1 and 6.2.2).
///
/// ```text
/// CHOICE {
///     issuerAndSerialNumber     IssuerAndSerialNumber,
///     subjectKeyIdentifier  [0] SubjectKeyIdentifier,      -- of a signer, or in a ktri
///     rKeyId                [0] RecipientKeyIdentifier }   -- in a kari
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum EntityIdentifier<'a> {
    /// By issuer and serial number, in two's complement.
    Number(Name<'a>, &'a [u8]),
    /// By subjectKeyIdentifier.
    Key(&'a [u8]),
}

impl<'a> EntityIdentifier<'a> {
    pub(super) fn read(element: &Element<'a>) -> DerResult<Self> {
        let mut contents = element.contents();
        match element.tag {
            tag::SEQUENCE => {
                let issuer = Name::read(&mut contents)?;
                let serial = contents.element(tag::INTEGER, "an INTEGER")?;
                contents.finish()?;
                Ok(Self::Number(issuer, serial.big_integer()?))
            }
            0x80 => Ok(Self::Key(element.identifier()?)),
            // The date and the other attribute help nobody who has one key of that name.
            0xa0 => Ok(Self::Key(contents.octet_string()?.identifier()?)),
            found => Err(crate::Error::new(
                element.offset,
                crate::Rule::UnexpectedTag {
                    expected: "an IssuerAndSerialNumber or a key identifier",
                    found,
                },
            )),
        }
    }

    /// Whether it names this certificate.
    pub(super) fn is(&self, certificate: &Certificate<'_>) -> bool {
        match self {
            Self::Number(issuer, serial) => {
                *serial == certificate.serial && issuer.matches(&certificate.issuer)
            }
            Self::Key(identifier) => certificate.subject_key_identifier() == Some(identifier),
        }
    }
}
