//! MACs with a shared secret: the password-based MAC of RFC 9810, PBMAC1 of RFC 8018, plain HMAC, and
//! the KEM-based MAC of RFC 9810, whose secret comes out of a ciphertext.
//!
//! The parameters come out of a message, so they are bounded before anything is computed.

use std::num::NonZeroU32;

use aws_lc_rs::{digest, hkdf, hmac, pbkdf2};
use zeroize::Zeroizing;

use crate::limits;
use crate::wit::keys::{Hash, Kdf, KemBasedMac, KeyError, MacAlgorithm, PasswordBasedMac, Pbmac1};

/// Whether the parameters are within bounds; the number of iterations they ask for.
pub(super) fn check(algorithm: &MacAlgorithm) -> Result<u32, KeyError> {
    match algorithm {
        MacAlgorithm::PasswordBased(parameters) => {
            salt(&parameters.salt)?;
            iterations(parameters.iterations, limits::PBM_ITERATIONS)
        }
        MacAlgorithm::Pbmac1(parameters) => {
            salt(&parameters.salt)?;
            key_length(parameters.key_length)?;
            iterations(parameters.iterations, limits::PBKDF2_ITERATIONS)
        }
        MacAlgorithm::Hmac(_) => Ok(0),
        MacAlgorithm::KemBased(parameters) => {
            key_length(parameters.key_length)?;
            Ok(0)
        }
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
            let key = pbkdf2_key(secret, parameters);
            Ok(sign(parameters.mac, &key, data))
        }
        MacAlgorithm::Hmac(hash) => Ok(sign(*hash, secret, data)),
        MacAlgorithm::KemBased(parameters) => {
            let key = kem_key(secret, parameters)?;
            Ok(sign(parameters.mac, &key, data))
        }
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

fn pbkdf2_key(secret: &[u8], parameters: &Pbmac1) -> Zeroizing<Vec<u8>> {
    let mut key = Zeroizing::new(vec![0; parameters.key_length as usize]);
    let iterations = NonZeroU32::new(parameters.iterations).unwrap_or(NonZeroU32::MIN);
    pbkdf2(
        parameters.prf,
        &parameters.salt,
        iterations,
        secret,
        &mut key,
    );
    key
}

/// PBKDF2 with HMAC (RFC 8018, 5.2).
pub(super) fn pbkdf2(
    prf: Hash,
    salt: &[u8],
    iterations: NonZeroU32,
    secret: &[u8],
    key: &mut [u8],
) {
    let prf = match prf {
        Hash::Sha1 => pbkdf2::PBKDF2_HMAC_SHA1,
        Hash::Sha256 => pbkdf2::PBKDF2_HMAC_SHA256,
        Hash::Sha384 => pbkdf2::PBKDF2_HMAC_SHA384,
        Hash::Sha512 => pbkdf2::PBKDF2_HMAC_SHA512,
        // aws-lc-rs has PBKDF2 with every hash but this.
        Hash::Sha224 => {
            ::pbkdf2::pbkdf2_hmac::<sha2::Sha224>(secret, salt, iterations.get(), key);
            return;
        }
    };
    pbkdf2::derive(prf, iterations, salt, secret, key);
}

/// Whether PBKDF2 may be carried out for a key of a cipher; what it asks for if not.
pub(super) fn check_derivation(octets: &[u8], count: u32) -> Result<(), String> {
    let why = salt(octets).and_then(|()| iterations(count, limits::PBKDF2_ITERATIONS));
    why.map(drop).map_err(|error| match error {
        KeyError::NotFound(why) | KeyError::Unsupported(why) | KeyError::Unavailable(why) => why,
    })
}

/// The key from the secret of a KEM (RFC 9810, 5.1.3.4): HKDF without a salt, or KDF3 of ANSI X9.44,
/// which hashes a counter, the secret and the info.
fn kem_key(secret: &[u8], parameters: &KemBasedMac) -> Result<Zeroizing<Vec<u8>>, KeyError> {
    let length = parameters.key_length as usize;
    let mut key = Zeroizing::new(vec![0; length]);
    match parameters.kdf {
        Kdf::Hkdf(hash) => {
            let algorithm = match hash {
                Hash::Sha256 => hkdf::HKDF_SHA256,
                Hash::Sha384 => hkdf::HKDF_SHA384,
                Hash::Sha512 => hkdf::HKDF_SHA512,
                Hash::Sha1 | Hash::Sha224 => {
                    return Err(KeyError::Unsupported(
                        "HKDF has no name with this hash (RFC 8619)".to_owned(),
                    ));
                }
            };
            hkdf::Salt::none(algorithm)
                .extract(secret)
                .expand(&[&parameters.info], KeyLength(length))
                .and_then(|okm| okm.fill(&mut key))
                .map_err(|_| KeyError::Unavailable("HKDF failed".to_owned()))?;
        }
        Kdf::Kdf3(hash) => {
            let algorithm = digest_algorithm(hash);
            for (block, counter) in key.chunks_mut(algorithm.output_len()).zip(1_u32..) {
                let mut context = digest::Context::new(algorithm);
                context.update(&counter.to_be_bytes());
                context.update(secret);
                context.update(&parameters.info);
                block.copy_from_slice(&context.finish().as_ref()[..block.len()]);
            }
        }
    }
    Ok(key)
}

/// Octets that HKDF is to give.
struct KeyLength(usize);

impl hkdf::KeyType for KeyLength {
    fn len(&self) -> usize {
        self.0
    }
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

pub(super) fn digest_algorithm(hash: Hash) -> &'static digest::Algorithm {
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

fn key_length(octets: u32) -> Result<(), KeyError> {
    if !(1..=limits::DERIVED_KEY).contains(&octets) {
        return Err(KeyError::Unsupported(format!(
            "a derived key of {octets} octets; 1 to {} are accepted",
            limits::DERIVED_KEY
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
