//! One private key and what it can sign.

use std::fmt;

use aws_lc_rs::agreement;
use aws_lc_rs::encoding::{AsBigEndian, AsDer, EcPrivateKeyBin, Pkcs8V1Der};
use aws_lc_rs::kem::{Ciphertext, DecapsulationKey, SharedSecret};
use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::rsa::{
    self, OAEP_SHA1_MGF1SHA1, OAEP_SHA256_MGF1SHA256, OAEP_SHA384_MGF1SHA384,
    OAEP_SHA512_MGF1SHA512, OaepPrivateDecryptingKey, Pkcs1PrivateDecryptingKey,
    PrivateDecryptingKey,
};
use aws_lc_rs::signature::{
    ECDSA_P256_SHA256_ASN1_SIGNING, ECDSA_P384_SHA384_ASN1_SIGNING, ECDSA_P521_SHA224_ASN1_SIGNING,
    ECDSA_P521_SHA256_ASN1_SIGNING, ECDSA_P521_SHA384_ASN1_SIGNING, ECDSA_P521_SHA512_ASN1_SIGNING,
    EcdsaKeyPair, EcdsaSigningAlgorithm, Ed25519KeyPair, KeyPair, ML_DSA_44_SIGNING,
    ML_DSA_65_SIGNING, ML_DSA_87_SIGNING, PqdsaKeyPair, PqdsaSigningAlgorithm, RSA_PKCS1_SHA256,
    RSA_PKCS1_SHA384, RSA_PKCS1_SHA512, RSA_PSS_SHA256, RSA_PSS_SHA384, RSA_PSS_SHA512,
    RsaEncoding,
};
use pkcs8::{ObjectIdentifier, PrivateKeyInfoRef};
use rustls_pki_types::PrivateKeyDer;
use zeroize::Zeroizing;

use super::{KeyFileError, ml_kem};
use crate::wit::keys::{HandlingError, Hash, KeyError, SignatureAlgorithm};

const EC_PUBLIC_KEY: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.2.840.10045.2.1");
const RSA_ENCRYPTION: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.2.840.113549.1.1.1");
const ED25519: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.3.101.112");

/// A SubjectPublicKeyInfo of Ed25519 up to the key's 32 octets (RFC 8410, 4).
const ED25519_SPKI: [u8; 12] = [
    0x30, 0x2a, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x03, 0x21, 0x00,
];

/// aws-lc-rs ties a curve to the hashes it signs with. The first of a curve is the usual one.
const P256: &[(SignatureAlgorithm, &EcdsaSigningAlgorithm)] = &[(
    SignatureAlgorithm::EcdsaSha256,
    &ECDSA_P256_SHA256_ASN1_SIGNING,
)];
const P384: &[(SignatureAlgorithm, &EcdsaSigningAlgorithm)] = &[(
    SignatureAlgorithm::EcdsaSha384,
    &ECDSA_P384_SHA384_ASN1_SIGNING,
)];
const P521: &[(SignatureAlgorithm, &EcdsaSigningAlgorithm)] = &[
    (
        SignatureAlgorithm::EcdsaSha512,
        &ECDSA_P521_SHA512_ASN1_SIGNING,
    ),
    (
        SignatureAlgorithm::EcdsaSha384,
        &ECDSA_P521_SHA384_ASN1_SIGNING,
    ),
    (
        SignatureAlgorithm::EcdsaSha256,
        &ECDSA_P521_SHA256_ASN1_SIGNING,
    ),
    (
        SignatureAlgorithm::EcdsaSha224,
        &ECDSA_P521_SHA224_ASN1_SIGNING,
    ),
];

/// The hashes of the three curves.
const CURVES: [&[(SignatureAlgorithm, &EcdsaSigningAlgorithm)]; 3] = [P256, P384, P521];

/// The names of ML-DSA in PKCS #8 (RFC 9881, 2) and here.
const ML_DSA: [(ObjectIdentifier, SignatureAlgorithm, &PqdsaSigningAlgorithm); 3] = [
    (
        ObjectIdentifier::new_unwrap("2.16.840.1.101.3.4.3.17"),
        SignatureAlgorithm::MlDsa44,
        &ML_DSA_44_SIGNING,
    ),
    (
        ObjectIdentifier::new_unwrap("2.16.840.1.101.3.4.3.18"),
        SignatureAlgorithm::MlDsa65,
        &ML_DSA_65_SIGNING,
    ),
    (
        ObjectIdentifier::new_unwrap("2.16.840.1.101.3.4.3.19"),
        SignatureAlgorithm::MlDsa87,
        &ML_DSA_87_SIGNING,
    ),
];

/// A private key that is ready to sign, or to decapsulate.
pub(super) struct PrivateKey {
    pair: Pair,
    spki: Vec<u8>,
}

enum Pair {
    /// One pair for each hash the curve signs with.
    Ec(Vec<(SignatureAlgorithm, EcdsaKeyPair)>),
    Rsa(rsa::KeyPair),
    Ed25519(Ed25519KeyPair),
    MlDsa(SignatureAlgorithm, PqdsaKeyPair),
    MlKem(DecapsulationKey),
}

impl PrivateKey {
    /// Takes a key in one of the three plain forms.
    pub(super) fn new(name: &str, key: &PrivateKeyDer<'_>) -> Result<Self, KeyFileError> {
        let unsupported = |what: String| KeyFileError::Unsupported {
            name: name.to_owned(),
            what,
        };
        let (pair, spki) = match key {
            PrivateKeyDer::Sec1(key) => ec(key.secret_sec1_der()),
            PrivateKeyDer::Pkcs1(key) => rsa(rsa::KeyPair::from_der(key.secret_pkcs1_der()).ok()),
            PrivateKeyDer::Pkcs8(key) => {
                let der = key.secret_pkcs8_der();
                let info = PrivateKeyInfoRef::try_from(der).map_err(|_| KeyFileError::NoKey {
                    name: name.to_owned(),
                })?;
                match info.algorithm.oid {
                    EC_PUBLIC_KEY => ec(der),
                    RSA_ENCRYPTION => rsa(rsa::KeyPair::from_pkcs8(der).ok()),
                    ED25519 => ed25519(der),
                    kem if ml_kem::is_ml_kem(kem) => {
                        let key = ml_kem::read(kem, info.private_key.as_bytes());
                        let (key, spki) = key.ok_or_else(|| {
                            unsupported("it lacks the expanded form of its key".to_owned())
                        })?;
                        return Ok(PrivateKey {
                            pair: Pair::MlKem(key),
                            spki,
                        });
                    }
                    dsa if ML_DSA.iter().any(|(oid, ..)| *oid == dsa) => ml_dsa(dsa, der),
                    other => return Err(unsupported(format!("its algorithm is {other}"))),
                }
            }
            _ => None,
        }
        .ok_or_else(|| {
            unsupported("it is damaged, or its curve or length is another".to_owned())
        })?;
        Ok(PrivateKey { pair, spki })
    }

    /// The DER SubjectPublicKeyInfo.
    pub(super) fn spki(&self) -> &[u8] {
        &self.spki
    }

    /// A signature over `data`. The name is for the error.
    pub(super) fn sign(
        &self,
        name: &str,
        algorithm: SignatureAlgorithm,
        data: &[u8],
    ) -> Result<Vec<u8>, KeyError> {
        let random = SystemRandom::new();
        let failed = |_| KeyError::Unavailable(format!("{name} failed to sign"));
        match &self.pair {
            Pair::Ec(pairs) => {
                let pair = pairs.iter().find(|(able, _)| *able == algorithm);
                if let Some((_, pair)) = pair {
                    let signature = pair.sign(&random, data).map_err(failed)?;
                    return Ok(signature.as_ref().to_vec());
                }
            }
            Pair::Rsa(pair) => {
                if let Some(encoding) = rsa_encoding(algorithm) {
                    let mut signature = vec![0; pair.public_modulus_len()];
                    pair.sign(encoding, &random, data, &mut signature)
                        .map_err(failed)?;
                    return Ok(signature);
                }
            }
            Pair::Ed25519(pair) => {
                if algorithm == SignatureAlgorithm::Ed25519 {
                    let signature = pair.try_sign(data).map_err(failed)?;
                    return Ok(signature.as_ref().to_vec());
                }
            }
            Pair::MlDsa(able, pair) => {
                if algorithm == *able {
                    let mut signature = vec![0; pair.algorithm().signature_len()];
                    pair.sign(data, &mut signature).map_err(failed)?;
                    return Ok(signature);
                }
            }
            Pair::MlKem(_) => {}
        }
        let algorithm = format!("{algorithm:?}");
        let algorithm = algorithm.trim_start_matches("SignatureAlgorithm::");
        Err(KeyError::Unsupported(format!(
            "{name} is {self:?} and cannot sign with {algorithm}"
        )))
    }
}

impl PrivateKey {
    /// The shared secret in a ciphertext. The name is for the error.
    pub(super) fn decapsulate(
        &self,
        name: &str,
        ciphertext: &[u8],
    ) -> Result<SharedSecret, KeyError> {
        let Pair::MlKem(key) = &self.pair else {
            return Err(KeyError::Unsupported(format!(
                "{name} is {self:?} and cannot decapsulate"
            )));
        };
        key.decapsulate(Ciphertext::from(ciphertext)).map_err(|_| {
            KeyError::Unsupported(format!("the ciphertext is not for a key like {name}"))
        })
    }
}

/// What encrypts for it.
impl PrivateKey {
    /// What RSAES-PKCS1-v1_5 encrypted; none where it does not decrypt. The name is for the
    /// error.
    pub(super) fn decrypt_pkcs1(
        &self,
        name: &str,
        ciphertext: &[u8],
    ) -> Result<Option<Zeroizing<Vec<u8>>>, HandlingError> {
        let key = Pkcs1PrivateDecryptingKey::new(self.decrypting(name)?);
        Ok(key.ok().and_then(|key| {
            let mut plain = Zeroizing::new(vec![0; key.min_output_size()]);
            let length = key.decrypt(ciphertext, &mut plain).ok()?.len();
            plain.truncate(length);
            Some(plain)
        }))
    }

    /// What RSAES-OAEP encrypted; none where it does not decrypt. The name is for the error.
    pub(super) fn decrypt_oaep(
        &self,
        name: &str,
        hash: Hash,
        ciphertext: &[u8],
    ) -> Result<Option<Zeroizing<Vec<u8>>>, HandlingError> {
        let algorithm = match hash {
            Hash::Sha1 => &OAEP_SHA1_MGF1SHA1,
            Hash::Sha256 => &OAEP_SHA256_MGF1SHA256,
            Hash::Sha384 => &OAEP_SHA384_MGF1SHA384,
            Hash::Sha512 => &OAEP_SHA512_MGF1SHA512,
            Hash::Sha224 => {
                return Err(HandlingError::Refused(
                    "RSAES-OAEP with SHA-224 is not supported".to_owned(),
                ));
            }
        };
        let key = OaepPrivateDecryptingKey::new(self.decrypting(name)?);
        Ok(key.ok().and_then(|key| {
            let mut plain = Zeroizing::new(vec![0; key.min_output_size()]);
            let length = key
                .decrypt(algorithm, ciphertext, &mut plain, None)
                .ok()?
                .len();
            plain.truncate(length);
            Some(plain)
        }))
    }

    fn decrypting(&self, name: &str) -> Result<PrivateDecryptingKey, HandlingError> {
        let Pair::Rsa(pair) = &self.pair else {
            return Err(HandlingError::Refused(format!(
                "it is encrypted for an RSA key, and {name} is {self:?}"
            )));
        };
        let unusable = |_| HandlingError::Unavailable(format!("{name} cannot be used to decrypt"));
        let der: Pkcs8V1Der<'_> = pair.as_der().map_err(|_| unusable(()))?;
        PrivateDecryptingKey::from_pkcs8(der.as_ref()).map_err(|_| unusable(()))
    }

    /// What `derive` makes of the shared secret of ECDH with a point on the key's curve; none
    /// where it is no such point. The name is for the error.
    pub(super) fn agree<R>(
        &self,
        name: &str,
        point: &[u8],
        derive: impl FnOnce(&[u8]) -> R,
    ) -> Result<Option<R>, HandlingError> {
        let Pair::Ec(pairs) = &self.pair else {
            return Err(HandlingError::Refused(format!(
                "it is encrypted for a key of an elliptic curve, and {name} is {self:?}"
            )));
        };
        let algorithm = match pairs.first() {
            Some((SignatureAlgorithm::EcdsaSha256, _)) => &agreement::ECDH_P256,
            Some((SignatureAlgorithm::EcdsaSha384, _)) => &agreement::ECDH_P384,
            _ => &agreement::ECDH_P521,
        };
        let own = pairs.first().and_then(|(_, pair)| {
            let number: EcPrivateKeyBin<'_> = pair.private_key().as_be_bytes().ok()?;
            agreement::PrivateKey::from_private_key(algorithm, number.as_ref()).ok()
        });
        let own = own.ok_or_else(|| {
            HandlingError::Unavailable(format!("{name} cannot be used to agree on a key"))
        })?;
        let peer = agreement::UnparsedPublicKey::new(algorithm, point);
        Ok(agreement::agree(&own, peer, (), |secret| Ok(derive(secret))).ok())
    }
}

/// What it is, and nothing of its secret.
impl fmt::Debug for PrivateKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.pair {
            Pair::Ec(pairs) => match pairs.first() {
                Some((SignatureAlgorithm::EcdsaSha256, _)) => f.write_str("a P-256 key"),
                Some((SignatureAlgorithm::EcdsaSha384, _)) => f.write_str("a P-384 key"),
                _ => f.write_str("a P-521 key"),
            },
            Pair::Rsa(pair) => write!(f, "an RSA key of {} bits", pair.public_modulus_len() * 8),
            Pair::Ed25519(_) => f.write_str("an Ed25519 key"),
            Pair::MlDsa(SignatureAlgorithm::MlDsa44, _) => f.write_str("an ML-DSA-44 key"),
            Pair::MlDsa(SignatureAlgorithm::MlDsa65, _) => f.write_str("an ML-DSA-65 key"),
            Pair::MlDsa(..) => f.write_str("an ML-DSA-87 key"),
            Pair::MlKem(_) => f.write_str("an ML-KEM key"),
        }
    }
}

fn ec(der: &[u8]) -> Option<(Pair, Vec<u8>)> {
    // The reader refuses a key of another curve than the one it is told, in both forms.
    let pairs = CURVES.iter().find_map(|curve| {
        curve
            .iter()
            .map(|(name, algorithm)| {
                let pair = EcdsaKeyPair::from_private_key_der(algorithm, der).ok()?;
                Some((*name, pair))
            })
            .collect::<Option<Vec<_>>>()
    })?;
    let spki = pairs.first()?.1.public_key().as_der().ok()?;
    let spki = spki.as_ref().to_vec();
    Some((Pair::Ec(pairs), spki))
}

fn rsa(pair: Option<rsa::KeyPair>) -> Option<(Pair, Vec<u8>)> {
    let pair = pair?;
    let spki = pair.public_key().as_der().ok()?.as_ref().to_vec();
    Some((Pair::Rsa(pair), spki))
}

fn ed25519(der: &[u8]) -> Option<(Pair, Vec<u8>)> {
    let pair = Ed25519KeyPair::from_pkcs8(der).ok()?;
    let mut spki = ED25519_SPKI.to_vec();
    spki.extend_from_slice(pair.public_key().as_ref());
    Some((Pair::Ed25519(pair), spki))
}

fn ml_dsa(oid: ObjectIdentifier, der: &[u8]) -> Option<(Pair, Vec<u8>)> {
    let &(_, name, algorithm) = ML_DSA.iter().find(|(known, ..)| *known == oid)?;
    let pair = PqdsaKeyPair::from_pkcs8(algorithm, der).ok()?;
    let spki = pair.public_key().as_der().ok()?.as_ref().to_vec();
    Some((Pair::MlDsa(name, pair), spki))
}

fn rsa_encoding(algorithm: SignatureAlgorithm) -> Option<&'static dyn RsaEncoding> {
    Some(match algorithm {
        SignatureAlgorithm::RsaPkcs1Sha256 => &RSA_PKCS1_SHA256,
        SignatureAlgorithm::RsaPkcs1Sha384 => &RSA_PKCS1_SHA384,
        SignatureAlgorithm::RsaPkcs1Sha512 => &RSA_PKCS1_SHA512,
        SignatureAlgorithm::RsaPssSha256 => &RSA_PSS_SHA256,
        SignatureAlgorithm::RsaPssSha384 => &RSA_PSS_SHA384,
        SignatureAlgorithm::RsaPssSha512 => &RSA_PSS_SHA512,
        _ => return None,
    })
}
