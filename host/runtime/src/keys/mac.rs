//! MACs with a shared secret: the password-based MAC of RFC 9810, PBMAC1 of RFC 8018, plain HMAC.
//!
//! The parameters come out of a message, so they are bounded before anything is computed.

use std::num::NonZeroU32;

use aws_lc_rs::{digest, hmac, pbkdf2};
use zeroize::Zeroizing;

use crate::limits;
use crate::wit::keys::{Hash, KeyError, MacAlgorithm, PasswordBasedMac, Pbmac1};

/// Whether the parameters are within bounds; the number of iterations they ask for.
pub(super) fn check(algorithm: &MacAlgorithm) -> Result<u32, KeyError> {
    match algorithm {
        MacAlgorithm::PasswordBased(parameters) => {
            salt(&parameters.salt)?;
            iterations(parameters.iterations, limits::PBM_ITERATIONS)
        }
        MacAlgorithm::Pbmac1(parameters) => {
            salt(&parameters.salt)?;
            if !(1..=limits::DERIVED_KEY).contains(&parameters.key_length) {
                return Err(KeyError::Unsupported(format!(
                    "a derived key of {} octets; 1 to {} are accepted",
                    parameters.key_length,
                    limits::DERIVED_KEY
                )));
            }
            iterations(parameters.iterations, limits::PBKDF2_ITERATIONS)
        }
        MacAlgorithm::Hmac(_) => Ok(0),
    }
}

/// The MAC. The parameters have been checked.
pub(super) fn compute(
    secret: &[u8],
    algorithm: &MacAlgorithm,
    data: &[u8],
) -> Result<Vec<u8>, KeyError> {
    match algorithm {
        MacAlgorithm::PasswordBased(parameters) => {
            let key = password_based_key(secret, parameters);
            Ok(sign(parameters.mac, &key, data))
        }
        MacAlgorithm::Pbmac1(parameters) => {
            let key = pbkdf2_key(secret, parameters)?;
            Ok(sign(parameters.mac, &key, data))
        }
        MacAlgorithm::Hmac(hash) => Ok(sign(*hash, secret, data)),
    }
}

/// BASEKEY of RFC 9810, 5.1.3.1. HMAC takes a key of any length, so K is BASEKEY as it is: nothing
/// is cut off or appended.
fn password_based_key(secret: &[u8], parameters: &PasswordBasedMac) -> Zeroizing<Vec<u8>> {
    let owf = digest_algorithm(parameters.owf);
    let mut first = digest::Context::new(owf);
    first.update(secret);
    first.update(&parameters.salt);
    let mut key = Zeroizing::new(first.finish().as_ref().to_vec());
    for _ in 1..parameters.iterations {
        let next = digest::digest(owf, &key);
        key.copy_from_slice(next.as_ref());
    }
    key
}

fn pbkdf2_key(secret: &[u8], parameters: &Pbmac1) -> Result<Zeroizing<Vec<u8>>, KeyError> {
    let prf = match parameters.prf {
        Hash::Sha1 => pbkdf2::PBKDF2_HMAC_SHA1,
        Hash::Sha256 => pbkdf2::PBKDF2_HMAC_SHA256,
        Hash::Sha384 => pbkdf2::PBKDF2_HMAC_SHA384,
        Hash::Sha512 => pbkdf2::PBKDF2_HMAC_SHA512,
        Hash::Sha224 => {
            return Err(KeyError::Unsupported(
                "PBKDF2 with SHA-224 is not supported".to_owned(),
            ));
        }
    };
    let iterations = NonZeroU32::new(parameters.iterations).unwrap_or(NonZeroU32::MIN);
    let mut key = Zeroizing::new(vec![0; parameters.key_length as usize]);
    pbkdf2::derive(prf, iterations, &parameters.salt, secret, &mut key);
    Ok(key)
}

fn sign(hash: Hash, key: &[u8], data: &[u8]) -> Vec<u8> {
    let algorithm = match hash {
        Hash::Sha1 => hmac::HMAC_SHA1_FOR_LEGACY_USE_ONLY,
        Hash::Sha224 => hmac::HMAC_SHA224,
        Hash::Sha256 => hmac::HMAC_SHA256,
        Hash::Sha384 => hmac::HMAC_SHA384,
        Hash::Sha512 => hmac::HMAC_SHA512,
    };
    let key = hmac::Key::new(algorithm, key);
    hmac::sign(&key, data).as_ref().to_vec()
}

fn digest_algorithm(hash: Hash) -> &'static digest::Algorithm {
    match hash {
        Hash::Sha1 => &digest::SHA1_FOR_LEGACY_USE_ONLY,
        Hash::Sha224 => &digest::SHA224,
        Hash::Sha256 => &digest::SHA256,
        Hash::Sha384 => &digest::SHA384,
        Hash::Sha512 => &digest::SHA512,
    }
}

fn salt(salt: &[u8]) -> Result<(), KeyError> {
    if salt.len() > limits::SALT {
        return Err(KeyError::Unsupported(format!(
            "a salt of {} octets; at most {} are accepted",
            salt.len(),
            limits::SALT
        )));
    }
    Ok(())
}

fn iterations(wanted: u32, most: u32) -> Result<u32, KeyError> {
    if !(1..=most).contains(&wanted) {
        return Err(KeyError::Unsupported(format!(
            "{wanted} iterations; 1 to {most} are accepted"
        )));
    }
    Ok(wanted)
}
