use alloc::borrow::Cow;

use super::{Hash, Policy, Unsupported};
use crate::der::{Reader, Writer};
use crate::error::Result as DerResult;
use crate::limits;
use crate::oid::{self, Oid};
use crate::x509::{AlgorithmIdentifier, PublicKeyInfo};

/// A signature algorithm (RFC 9481, 3, and RFC 9881).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SignatureAlgorithm {
    /// RSASSA-PKCS1-v1_5 with this hash.
    RsaPkcs1(Hash),
    /// RSASSA-PSS with this hash, also in the mask generation (RFC 4055, 3.1).
    RsaPss {
        /// The hash.
        hash: Hash,
        /// Octets of the salt.
        salt_length: u16,
    },
    /// ECDSA with this hash; the curve is a matter of the key.
    Ecdsa(Hash),
    /// Ed25519 (RFC 8410).
    Ed25519,
    /// Ed448 (RFC 8410). No arithmetic for it is built in.
    Ed448,
    /// ML-DSA-44 with an empty context (RFC 9881).
    MlDsa44,
    /// ML-DSA-65 with an empty context (RFC 9881).
    MlDsa65,
    /// ML-DSA-87 with an empty context (RFC 9881).
    MlDsa87,
}

impl SignatureAlgorithm {
    const OIDS: [(Self, Oid<'static>); 15] = [
        (Self::RsaPkcs1(Hash::Sha1), oid::RSA_SHA1),
        (Self::RsaPkcs1(Hash::Sha224), oid::RSA_SHA224),
        (Self::RsaPkcs1(Hash::Sha256), oid::RSA_SHA256),
        (Self::RsaPkcs1(Hash::Sha384), oid::RSA_SHA384),
        (Self::RsaPkcs1(Hash::Sha512), oid::RSA_SHA512),
        (Self::Ecdsa(Hash::Sha1), oid::ECDSA_SHA1),
        (Self::Ecdsa(Hash::Sha224), oid::ECDSA_SHA224),
        (Self::Ecdsa(Hash::Sha256), oid::ECDSA_SHA256),
        (Self::Ecdsa(Hash::Sha384), oid::ECDSA_SHA384),
        (Self::Ecdsa(Hash::Sha512), oid::ECDSA_SHA512),
        (Self::Ed25519, oid::ED25519),
        (Self::Ed448, oid::ED448),
        (Self::MlDsa44, oid::ML_DSA_44),
        (Self::MlDsa65, oid::ML_DSA_65),
        (Self::MlDsa87, oid::ML_DSA_87),
    ];

    /// Reads the algorithm.
    pub fn from_identifier(
        identifier: &AlgorithmIdentifier<'_>,
        policy: Policy,
    ) -> Result<Self, Unsupported> {
        if identifier.oid == oid::RSA_PSS {
            let parameters = identifier.parameters.ok_or(Unsupported::Parameters(
                "id-RSASSA-PSS without its parameters (RFC 4055, 3.1)",
            ))?;
            let (hash, salt_length) = pss_parameters(parameters)?;
            return Ok(Self::RsaPss { hash, salt_length });
        }
        let known = Self::OIDS.iter().find(|(_, oid)| *oid == identifier.oid);
        let Some(&(algorithm, _)) = known else {
            return Err(Unsupported::algorithm(identifier.oid));
        };
        // NULL is tolerated with the algorithms that peers were seen to send it with; the
        // younger ones have always been without (RFC 8410, 3, and RFC 9881, 2).
        let plain = match algorithm {
            Self::RsaPkcs1(_) | Self::Ecdsa(_) => identifier.has_no_parameters(),
            _ => identifier.parameters.is_none(),
        };
        if !plain {
            return Err(Unsupported::Parameters(
                "a signature algorithm with parameters that it does not have",
            ));
        }
        if let Some(hash) = algorithm.hash() {
            policy.admit(hash, identifier.oid)?;
        }
        Ok(algorithm)
    }

    /// The algorithm to sign with, given the public half of the key.
    pub fn for_key(key: &PublicKeyInfo<'_>) -> Result<Self, Unsupported> {
        match key.algorithm.oid {
            oid::RSA_ENCRYPTION => Ok(Self::RsaPkcs1(Hash::Sha256)),
            oid::RSA_PSS => match key.algorithm.parameters {
                Some(parameters) => {
                    let (hash, salt_length) = pss_parameters(parameters)?;
                    Ok(Self::RsaPss { hash, salt_length })
                }
                None => Ok(Self::RsaPss {
                    hash: Hash::Sha256,
                    salt_length: 32,
                }),
            },
            oid::EC_PUBLIC_KEY => match key.curve() {
                Some(oid::P256) => Ok(Self::Ecdsa(Hash::Sha256)),
                Some(oid::P384) => Ok(Self::Ecdsa(Hash::Sha384)),
                Some(oid::P521) => Ok(Self::Ecdsa(Hash::Sha512)),
                Some(curve) => Err(Unsupported::algorithm(curve)),
                None => Err(Unsupported::Parameters("an elliptic curve without a name")),
            },
            oid::ED25519 => Ok(Self::Ed25519),
            oid::ML_DSA_44 => Ok(Self::MlDsa44),
            oid::ML_DSA_65 => Ok(Self::MlDsa65),
            oid::ML_DSA_87 => Ok(Self::MlDsa87),
            other => Err(Unsupported::algorithm(other)),
        }
    }

    /// Its object identifier.
    pub fn oid(self) -> Oid<'static> {
        let known = Self::OIDS.iter().find(|(algorithm, _)| *algorithm == self);
        known.map_or(oid::RSA_PSS, |&(_, oid)| oid)
    }

    /// The DER of its parameters: those of RSASSA-PSS, NULL for the older RSA signatures,
    /// none for all others (RFC 9481, 3, and RFC 9881, 2).
    pub fn parameters(self) -> Option<Cow<'static, [u8]>> {
        match self {
            Self::RsaPss { hash, salt_length } => Some(
                Writer::encode(|w| {
                    let hash_identifier = AlgorithmIdentifier::with_null(hash.oid());
                    w.sequence(|w| {
                        w.explicit(0, |w| hash_identifier.write(w));
                        w.explicit(1, |w| {
                            w.sequence(|w| {
                                w.oid(oid::MGF1);
                                hash_identifier.write(w);
                            });
                        });
                        // DER leaves a DEFAULT out (X.690, 11.5).
                        if salt_length != DEFAULT_SALT {
                            w.explicit(2, |w| w.integer(salt_length.into()));
                        }
                    });
                })
                .into(),
            ),
            Self::RsaPkcs1(_) => Some(Cow::Borrowed(&[0x05, 0x00])),
            _ => None,
        }
    }

    /// The hash of the signature; none for those that hash in their own way.
    pub fn hash(self) -> Option<Hash> {
        match self {
            Self::RsaPkcs1(hash) | Self::Ecdsa(hash) | Self::RsaPss { hash, .. } => Some(hash),
            _ => None,
        }
    }
}

/// saltLength where it is left out (RFC 4055, 3.1).
const DEFAULT_SALT: u16 = 20;

/// Hash and salt length of RSASSA-PSS-params (RFC 4055, 3.1).
///
/// ```text
/// RSASSA-PSS-params ::= SEQUENCE {
///     hashAlgorithm     [0] HashAlgorithm    DEFAULT sha1Identifier,
///     maskGenAlgorithm  [1] MaskGenAlgorithm DEFAULT mgf1SHA1Identifier,
///     saltLength        [2] INTEGER          DEFAULT 20,
///     trailerField      [3] INTEGER          DEFAULT 1 }
/// ```
pub(super) fn pss_parameters(der: &[u8]) -> Result<(Hash, u16), Unsupported> {
    let (hash, mask, salt_length, trailer) = read_pss_parameters(der)
        .map_err(|_| Unsupported::Parameters("the RSASSA-PSS-params cannot be read"))?;
    let hash = match hash {
        Some(hash) => Hash::from_identifier(&hash)?,
        None => Hash::Sha1,
    };
    let mask_hash = match mask {
        Some((mask, _)) if mask != oid::MGF1 => return Err(Unsupported::algorithm(mask)),
        Some((_, hash)) => Hash::from_identifier(&hash)?,
        None => Hash::Sha1,
    };
    if !matches!(hash, Hash::Sha256 | Hash::Sha384 | Hash::Sha512) {
        return Err(Unsupported::Parameters(
            "RSASSA-PSS with a hash other than SHA-256, SHA-384 and SHA-512",
        ));
    }
    if hash != mask_hash {
        return Err(Unsupported::Parameters(
            "RSASSA-PSS whose mask generation has another hash (RFC 4055, 3.1)",
        ));
    }
    if trailer != 1 {
        return Err(Unsupported::Parameters(
            "RSASSA-PSS with a trailerField other than 1 (RFC 4055, 3.1)",
        ));
    }
    match u16::try_from(salt_length) {
        Ok(length) if usize::from(length) <= limits::PSS_SALT => Ok((hash, length)),
        Ok(length) => Err(Unsupported::beyond(
            "a saltLength of",
            length.into(),
            limits::PSS_SALT,
        )),
        Err(_) => Err(Unsupported::Parameters(
            "RSASSA-PSS with a saltLength that no key has room for",
        )),
    }
}

type MaskGeneration<'a> = (Oid<'a>, AlgorithmIdentifier<'a>);

fn read_pss_parameters(
    der: &[u8],
) -> DerResult<(
    Option<AlgorithmIdentifier<'_>>,
    Option<MaskGeneration<'_>>,
    i64,
    i64,
)> {
    let mut reader = Reader::new(der);
    let mut fields = reader.sequence()?;
    reader.finish()?;
    let hash = fields.explicit(0, AlgorithmIdentifier::read)?;
    let mask = fields.explicit(1, |reader| {
        let mut fields = reader.sequence()?;
        let mask = (fields.oid()?, AlgorithmIdentifier::read(&mut fields)?);
        fields.finish()?;
        Ok(mask)
    })?;
    let salt_length = fields.explicit(2, Reader::integer)?;
    let trailer = fields.explicit(3, Reader::integer)?;
    fields.finish()?;
    Ok((
        hash,
        mask,
        salt_length.unwrap_or(DEFAULT_SALT.into()),
        trailer.unwrap_or(1),
    ))
}

/// The judgement on a signature.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It was made with the private half of the key.
    Valid,
    /// It was not, or is malformed.
    Invalid,
    /// The algorithm or the kind of key is not known to the verifier.
    Unsupported,
}

/// Checks signatures, here or at a host with faster arithmetic.
pub trait SignatureVerifier {
    /// Judges whether `signature` over `data` was made with the private half of `key`.
    fn verify(
        &self,
        algorithm: SignatureAlgorithm,
        key: &PublicKeyInfo<'_>,
        data: &[u8],
        signature: &[u8],
    ) -> Verdict;
}
