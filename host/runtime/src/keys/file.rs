//! Key files: what they may look like, and what is wrong with them.

use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::signature::{ECDSA_P256_SHA256_ASN1_SIGNING, EcdsaKeyPair};
use pkcs8::der::SecretDocument;
use pkcs8::der::pem::{LineEnding, PemLabel};
use pkcs8::{EncryptedPrivateKeyInfoRef, PrivateKeyInfoRef};
use rustls_pki_types::PrivateKeyDer;
use rustls_pki_types::pem::PemObject;
use zeroize::Zeroizing;

use super::private_key::PrivateKey;
use crate::limits;

/// Why a private key was not taken.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum KeyFileError {
    /// There is no key in it.
    #[error("{name} has no private key: it must be PKCS #8, SEC 1 or PKCS #1, in PEM or DER")]
    NoKey {
        /// The key's name.
        name: String,
    },
    /// It is too long for a key.
    #[error(
        "{name} is no key file: it has {length} bytes, a key has at most {}",
        limits::KEY_FILE
    )]
    TooLong {
        /// The key's name.
        name: String,
        /// Its length.
        length: usize,
    },
    /// It is encrypted, and nobody said how to open it.
    #[error("{name} is encrypted: give its passphrase")]
    Encrypted {
        /// The key's name.
        name: String,
    },
    /// The passphrase does not open it.
    #[error("{name} cannot be decrypted with this passphrase")]
    WrongPassphrase {
        /// The key's name.
        name: String,
    },
    /// It is encrypted in a way that is not supported.
    #[error(
        "{name} is encrypted in a way that is not supported: convert it with `openssl pkcs8 -topk8 -v2 aes-256-cbc -v2prf hmacWithSHA256`"
    )]
    UnsupportedEncryption {
        /// The key's name.
        name: String,
    },
    /// It is a key, but not of a kind that can be used.
    #[error(
        "{name} cannot be used: {what}; supported are P-256, P-384, P-521, RSA from 2048 to 8192 bits, Ed25519, ML-DSA, and ML-KEM with its expanded key"
    )]
    Unsupported {
        /// The key's name.
        name: String,
        /// What it is.
        what: String,
    },
    /// The machine could not make one.
    #[error("no key could be generated on this machine")]
    Generation,
}

/// What OpenSSL 1.0 wrote inside a PEM block before there was PKCS #8.
const LEGACY_ENCRYPTION: &str = "Proc-Type: 4,ENCRYPTED";

/// The PEM block of PKCS #8's encrypted form.
const ENCRYPTED_BEGIN: &str = "-----BEGIN ENCRYPTED PRIVATE KEY-----";

/// What DER of every form begins with: the tag of a SEQUENCE, which no text does.
const SEQUENCE: u8 = 0x30;

/// Reads a private key.
pub(super) fn read(
    name: &str,
    contents: &[u8],
    passphrase: Option<&[u8]>,
) -> Result<PrivateKey, KeyFileError> {
    let owned = || name.to_owned();
    if contents.len() > limits::KEY_FILE {
        return Err(KeyFileError::TooLong {
            name: owned(),
            length: contents.len(),
        });
    }
    let no_key = || KeyFileError::NoKey { name: owned() };
    let key = if contents.first() == Some(&SEQUENCE) {
        match EncryptedPrivateKeyInfoRef::try_from(contents) {
            Ok(encrypted) => open(name, &encrypted, passphrase)?,
            Err(_) => PrivateKeyDer::try_from(contents.to_vec()).map_err(|_| no_key())?,
        }
    } else {
        let text = str::from_utf8(contents).map_err(|_| no_key())?;
        if text.contains(LEGACY_ENCRYPTION) {
            return Err(KeyFileError::UnsupportedEncryption { name: owned() });
        }
        match text.find(ENCRYPTED_BEGIN) {
            Some(begin) => {
                let (_, der) = SecretDocument::from_pem(&text[begin..]).map_err(|_| no_key())?;
                match EncryptedPrivateKeyInfoRef::try_from(der.as_bytes()) {
                    Ok(encrypted) => open(name, &encrypted, passphrase)?,
                    Err(_) => return Err(KeyFileError::UnsupportedEncryption { name: owned() }),
                }
            }
            None => PrivateKeyDer::from_pem_slice(contents).map_err(|_| no_key())?,
        }
    };
    PrivateKey::new(name, &Zeroizing::new(key))
}

/// Decrypts PKCS #8.
fn open(
    name: &str,
    encrypted: &EncryptedPrivateKeyInfoRef<'_>,
    passphrase: Option<&[u8]>,
) -> Result<PrivateKeyDer<'static>, KeyFileError> {
    let owned = || name.to_owned();
    let passphrase = passphrase.ok_or_else(|| KeyFileError::Encrypted { name: owned() })?;
    let opened = encrypted.decrypt(passphrase).map_err(|error| match error {
        pkcs8::Error::EncryptedPrivateKey(
            pkcs8::pkcs5::Error::UnsupportedAlgorithm { .. }
            | pkcs8::pkcs5::Error::NoPbes1CryptSupport,
        ) => KeyFileError::UnsupportedEncryption { name: owned() },
        // A wrong passphrase gives bytes that are no key.
        _ => KeyFileError::WrongPassphrase { name: owned() },
    })?;
    Ok(PrivateKeyDer::Pkcs8(opened.as_bytes().to_vec().into()))
}

/// A new P-256 key as PKCS #8 in PEM.
pub fn generate_p256() -> Result<Zeroizing<String>, KeyFileError> {
    let key = EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_ASN1_SIGNING, &SystemRandom::new())
        .map_err(|_| KeyFileError::Generation)?;
    SecretDocument::try_from(key.as_ref())
        .and_then(|key| key.to_pem(PrivateKeyInfoRef::PEM_LABEL, LineEnding::LF))
        .map_err(|_| KeyFileError::Generation)
}
