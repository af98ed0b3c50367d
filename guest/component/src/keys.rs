//! The types of the import `keys`.

use alloc::string::String;

#[cfg(feature = "enroller")]
use abide_cmp::cms::{Aes, Envelope, KeyManagement, PasswordWrap};
use abide_cmp::protection::{Hash, MacAlgorithm, SignatureAlgorithm, Verdict};

use crate::bindings::abide::cmp::keys;

/// The host's judgement on a signature.
pub(crate) fn verify(
    algorithm: SignatureAlgorithm,
    public_key: &[u8],
    data: &[u8],
    signature: &[u8],
) -> Verdict {
    let Some(algorithm) = to_signature_algorithm(algorithm) else {
        return Verdict::Unsupported;
    };
    match keys::verify(algorithm, public_key, data, signature) {
        keys::Verdict::Valid => Verdict::Valid,
        keys::Verdict::Invalid => Verdict::Invalid,
        keys::Verdict::Unsupported => Verdict::Unsupported,
    }
}

/// What the host says about a key that it does not use.
pub(crate) fn text(error: keys::KeyError) -> String {
    match error {
        keys::KeyError::NotFound(why)
        | keys::KeyError::Unsupported(why)
        | keys::KeyError::Unavailable(why) => why,
    }
}

/// None for one without a name in WIT.
pub(crate) fn to_mac_algorithm(algorithm: &MacAlgorithm<'_>) -> Option<keys::MacAlgorithm> {
    Some(match *algorithm {
        MacAlgorithm::PasswordBased {
            salt,
            owf,
            iterations,
            mac,
        } => keys::MacAlgorithm::PasswordBased(keys::PasswordBasedMac {
            owf: to_hash(owf),
            salt: salt.to_vec(),
            iterations,
            mac: to_hash(mac),
        }),
        MacAlgorithm::Pbmac1 {
            salt,
            iterations,
            key_length,
            prf,
            mac,
        } => keys::MacAlgorithm::Pbmac1(keys::Pbmac1 {
            prf: to_hash(prf),
            salt: salt.to_vec(),
            iterations,
            key_length: key_length as u32,
            mac: to_hash(mac),
        }),
        MacAlgorithm::Hmac(hash) => keys::MacAlgorithm::Hmac(to_hash(hash)),
        _ => return None,
    })
}

#[cfg(feature = "enroller")]
pub(crate) fn to_enveloped(envelope: &Envelope<'_>) -> keys::Enveloped {
    use keys::KeyManagement as To;
    keys::Enveloped {
        management: match &envelope.management {
            KeyManagement::RsaPkcs1 => To::RsaPkcs1,
            KeyManagement::RsaOaep(hash) => To::RsaOaep(to_hash(*hash)),
            KeyManagement::Ecdh {
                point,
                kdf,
                info,
                wrap,
            } => To::Ecdh(keys::KeyAgreement {
                point: point.clone(),
                kdf: to_hash(*kdf),
                info: info.clone(),
                wrap: to_aes(*wrap),
            }),
            KeyManagement::Password {
                prf,
                salt,
                iterations,
                wrap,
            } => To::Password(keys::PasswordEncryption {
                prf: to_hash(*prf),
                salt: salt.to_vec(),
                iterations: *iterations,
                wrap: match wrap {
                    PasswordWrap::Aes(aes) => keys::PasswordWrap::Aes(to_aes(*aes)),
                    PasswordWrap::PwriKek { cipher, iv } => {
                        keys::PasswordWrap::PwriKek((to_aes(*cipher), iv.to_vec()))
                    }
                },
            }),
        },
        encrypted_key: envelope.encrypted_key.to_vec(),
        cipher: to_aes(envelope.cipher),
        iv: envelope.iv.to_vec(),
        content: envelope.content.to_vec(),
    }
}

#[cfg(feature = "enroller")]
fn to_aes(aes: Aes) -> keys::Aes {
    match aes {
        Aes::Aes128 => keys::Aes::Aes128,
        Aes::Aes192 => keys::Aes::Aes192,
        Aes::Aes256 => keys::Aes::Aes256,
    }
}

fn to_hash(hash: Hash) -> keys::Hash {
    match hash {
        Hash::Sha1 => keys::Hash::Sha1,
        Hash::Sha224 => keys::Hash::Sha224,
        Hash::Sha256 => keys::Hash::Sha256,
        Hash::Sha384 => keys::Hash::Sha384,
        Hash::Sha512 => keys::Hash::Sha512,
    }
}

/// None for one without a name in WIT.
pub(crate) fn to_signature_algorithm(
    algorithm: SignatureAlgorithm,
) -> Option<keys::SignatureAlgorithm> {
    use keys::SignatureAlgorithm as To;
    Some(match algorithm {
        SignatureAlgorithm::RsaPkcs1(Hash::Sha1) => To::RsaPkcs1Sha1,
        SignatureAlgorithm::RsaPkcs1(Hash::Sha224) => To::RsaPkcs1Sha224,
        SignatureAlgorithm::RsaPkcs1(Hash::Sha256) => To::RsaPkcs1Sha256,
        SignatureAlgorithm::RsaPkcs1(Hash::Sha384) => To::RsaPkcs1Sha384,
        SignatureAlgorithm::RsaPkcs1(Hash::Sha512) => To::RsaPkcs1Sha512,
        SignatureAlgorithm::RsaPss { hash, salt_length }
            if usize::from(salt_length) != hash.output_length() =>
        {
            return None;
        }
        SignatureAlgorithm::RsaPss { hash, .. } => match hash {
            Hash::Sha256 => To::RsaPssSha256,
            Hash::Sha384 => To::RsaPssSha384,
            Hash::Sha512 => To::RsaPssSha512,
            Hash::Sha1 | Hash::Sha224 => return None,
        },
        SignatureAlgorithm::Ecdsa(Hash::Sha1) => To::EcdsaSha1,
        SignatureAlgorithm::Ecdsa(Hash::Sha224) => To::EcdsaSha224,
        SignatureAlgorithm::Ecdsa(Hash::Sha256) => To::EcdsaSha256,
        SignatureAlgorithm::Ecdsa(Hash::Sha384) => To::EcdsaSha384,
        SignatureAlgorithm::Ecdsa(Hash::Sha512) => To::EcdsaSha512,
        SignatureAlgorithm::Ed25519 => To::Ed25519,
        SignatureAlgorithm::Ed448 => To::Ed448,
        SignatureAlgorithm::MlDsa44 => To::MlDsa44,
        SignatureAlgorithm::MlDsa65 => To::MlDsa65,
        SignatureAlgorithm::MlDsa87 => To::MlDsa87,
        _ => return None,
    })
}
