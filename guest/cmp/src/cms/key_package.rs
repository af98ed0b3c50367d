use super::CmsError;
use crate::der::{Reader, tag};
use crate::error::{Context, Result as DerResult};
use crate::oid::{self, Oid};
use crate::x509::{AlgorithmIdentifier, PublicKeyInfo};

/// A private key as it came: DER of OneAsymmetricKey, or what OpenSSL sends in its place.
///
/// ```text
/// AsymmetricKeyPackage ::= SEQUENCE SIZE (1..MAX) OF OneAsymmetricKey
/// OneAsymmetricKey ::= SEQUENCE {
///     version              INTEGER { v1(0), v2(1) },
///     privateKeyAlgorithm  AlgorithmIdentifier,
///     privateKey           OCTET STRING,
///     attributes       [0] SET OF Attribute OPTIONAL,
///     publicKey        [1] BIT STRING OPTIONAL }
/// ```
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct NewKey<'a> {
    /// OneAsymmetricKey (RFC 5958, 2) where it was packaged, else ECPrivateKey (RFC 5915, 3) or
    /// RSAPrivateKey (RFC 8017, A.1.2) or PrivateKeyInfo.
    pub der: &'a [u8],
    algorithm: Option<AlgorithmIdentifier<'a>>,
    public_key: Option<&'a [u8]>,
}

/// What a person may see of it.
impl core::fmt::Debug for NewKey<'_> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("NewKey")
            .field("algorithm", &self.algorithm)
            .finish_non_exhaustive()
    }
}

impl<'a> NewKey<'a> {
    /// Reads the content of a signature. There must be one key in it (RFC 9483, 4.1.6).
    pub(super) fn read(content_type: Oid<'_>, content: &'a [u8]) -> Result<Self, CmsError> {
        match content_type {
            oid::CMS_KEY_PACKAGE => {
                let mut reader = Reader::new(content);
                let mut keys = reader.sequence().at("AsymmetricKeyPackage")?;
                reader.finish()?;
                let key = Self::one(&mut keys).at("AsymmetricKeyPackage")?;
                if !keys.is_empty() {
                    return Err(CmsError::Rule(
                        "it brings more than one private key (RFC 9483, 4.1.6)",
                    ));
                }
                Ok(key)
            }
            oid::CMS_DATA => {
                let mut reader = Reader::new(content);
                reader.sequence().at("PrivateKey")?;
                reader.finish()?;
                Ok(Self {
                    der: content,
                    algorithm: None,
                    public_key: None,
                })
            }
            _ => Err(CmsError::Rule(
                "what is signed is no AsymmetricKeyPackage (RFC 9483, 4.1.6)",
            )),
        }
    }

    fn one(keys: &mut Reader<'a>) -> DerResult<Self> {
        let element = keys.element(tag::SEQUENCE, "a OneAsymmetricKey")?;
        let mut fields = element.contents();
        let version = fields.integer().at("version")?;
        if !(0..=1).contains(&version) {
            return fields.fault(crate::Rule::Version(version)).at("version");
        }
        let algorithm = AlgorithmIdentifier::read(&mut fields).at("privateKeyAlgorithm")?;
        fields.octet_string().at("privateKey")?;
        fields.optional(tag::constructed(0)).at("attributes")?;
        let public_key = match fields.optional(tag::primitive(1)).at("publicKey")? {
            Some(bits) => Some(bits.octet_aligned_bits().at("publicKey")?),
            None => None,
        };
        fields.finish()?;
        Ok(Self {
            der: element.raw,
            algorithm: Some(algorithm),
            public_key,
        })
    }

    /// Whether it came in an AsymmetricKeyPackage, as RFC 9483, 4.1.6 asks for.
    pub fn is_packaged(&self) -> bool {
        self.algorithm.is_some()
    }

    /// Whether it claims to be the private half of this key. That it is can tell only who
    /// computes with it.
    pub fn claims(&self, key: &PublicKeyInfo<'_>) -> bool {
        self.algorithm
            .is_none_or(|own| own.oid == key.algorithm.oid)
            && self.public_key.is_none_or(|own| own == key.key)
    }
}
