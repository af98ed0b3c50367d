//! Keys and secrets that were read from files, the environment or a prompt, held in memory.
//!
//! aws-lc-rs does the arithmetic. Secrets are wiped when they are dropped, and no `Debug` shows
//! them.

mod file;
#[cfg(test)]
mod kem_tests;
#[cfg(test)]
mod key_tests;
mod mac;
mod ml_kem;
mod private_key;
mod verify;

use std::collections::BTreeMap;
use std::fmt;
use std::num::NonZeroU32;
use std::sync::Arc;

use async_trait::async_trait;
use aws_lc_rs::{digest, pbkdf2};
use zeroize::Zeroizing;

use crate::wit::keys::{KeyError, MacAlgorithm, SignatureAlgorithm, Verdict};
use crate::{Keys, limits};

pub use file::{KeyFileError, generate_p256};
use private_key::PrivateKey;

/// Private keys and shared secrets by name. A name may be used for one of each.
#[derive(Default)]
pub struct FileKeys {
    secrets: BTreeMap<String, Arc<Zeroizing<Vec<u8>>>>,
    private: BTreeMap<String, Arc<PrivateKey>>,
}

impl FileKeys {
    /// No keys at all.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a shared secret; one of the same name is replaced.
    pub fn add_secret(&mut self, name: impl Into<String>, secret: Zeroizing<Vec<u8>>) {
        self.secrets.insert(name.into(), Arc::new(secret));
    }

    /// Reads and adds a private key; one of the same name is replaced. Errors call it by its name,
    /// which is best that of its file.
    ///
    /// PEM or DER of PKCS #8 (also encrypted, by PBES2), SEC 1 or PKCS #1; P-256, P-384, P-521,
    /// RSA from 2048 to 8192 bits, Ed25519, ML-DSA, and to decapsulate ML-KEM.
    pub fn add_private_key(
        &mut self,
        name: impl Into<String>,
        contents: &[u8],
        passphrase: Option<&[u8]>,
    ) -> Result<(), KeyFileError> {
        let name = name.into();
        let key = file::read(&name, contents, passphrase)?;
        self.private.insert(name, Arc::new(key));
        Ok(())
    }

    /// A new P-256 key as PKCS #8 in PEM, for a file that is still to be written.
    pub fn generate_p256() -> Result<Zeroizing<String>, KeyFileError> {
        generate_p256()
    }

    fn private(&self, name: &str) -> Result<&Arc<PrivateKey>, KeyError> {
        self.private.get(name).ok_or_else(|| {
            KeyError::NotFound(match self.secrets.contains_key(name) {
                true => format!("{name} is a shared secret, not a private key"),
                false => format!("no private key {name} was given to this process"),
            })
        })
    }

    fn secret(&self, name: &str) -> Result<&Arc<Zeroizing<Vec<u8>>>, KeyError> {
        let secret = self.secrets.get(name).ok_or_else(|| {
            KeyError::NotFound(match self.private.contains_key(name) {
                true => format!("{name} is a private key, not a shared secret"),
                false => format!("no shared secret {name} was given to this process"),
            })
        })?;
        if secret.is_empty() {
            return Err(KeyError::Unavailable(format!(
                "the shared secret {name} is empty"
            )));
        }
        Ok(secret)
    }
}

impl fmt::Debug for FileKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FileKeys")
            .field("secrets", &self.secrets.keys())
            .field("private", &self.private)
            .finish()
    }
}

#[async_trait]
impl Keys for FileKeys {
    async fn public_key(&self, key: &str) -> Result<Vec<u8>, KeyError> {
        Ok(self.private(key)?.spki().to_vec())
    }

    async fn sign(
        &self,
        key: &str,
        algorithm: SignatureAlgorithm,
        data: Vec<u8>,
    ) -> Result<Vec<u8>, KeyError> {
        self.private(key)?.sign(key, algorithm, &data)
    }

    async fn mac(
        &self,
        key: &str,
        algorithm: MacAlgorithm,
        data: Vec<u8>,
    ) -> Result<Vec<u8>, KeyError> {
        if let MacAlgorithm::KemBased(parameters) = &algorithm {
            mac::check(&algorithm)?;
            let secret = self
                .private(key)?
                .decapsulate(key, &parameters.ciphertext)?;
            return mac::compute(secret.as_ref(), &algorithm, &data);
        }
        let secret = self.secret(key)?.clone();
        let iterations = mac::check(&algorithm)?;
        if iterations <= limits::INLINE_ITERATIONS {
            return mac::compute(&secret, &algorithm, &data);
        }
        tokio::task::spawn_blocking(move || mac::compute(&secret, &algorithm, &data))
            .await
            .unwrap_or_else(|error| Err(KeyError::Unavailable(error.to_string())))
    }

    async fn verify(
        &self,
        algorithm: SignatureAlgorithm,
        public_key: Vec<u8>,
        data: Vec<u8>,
        signature: Vec<u8>,
    ) -> Verdict {
        verify::verify(algorithm, &public_key, &data, &signature)
    }

    async fn fingerprint(&self, key: &str, salt: Vec<u8>) -> Result<Vec<u8>, KeyError> {
        if let Some(private) = self.private.get(key) {
            let mut hash = digest::Context::new(&digest::SHA256);
            hash.update(&salt);
            hash.update(private.spki());
            return Ok(hash.finish().as_ref().to_vec());
        }
        // A secret may be a password: a plain hash of it could be searched by whoever reads the
        // store.
        let mut fingerprint = vec![0; digest::SHA256_OUTPUT_LEN];
        let iterations = NonZeroU32::new(limits::FINGERPRINT_ITERATIONS).unwrap_or(NonZeroU32::MIN);
        pbkdf2::derive(
            pbkdf2::PBKDF2_HMAC_SHA256,
            iterations,
            &salt,
            self.secret(key)?,
            &mut fingerprint,
        );
        Ok(fingerprint)
    }
}
