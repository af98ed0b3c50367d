//! Keys and secrets that were read from files, the environment or a prompt, held in memory.
//!
//! aws-lc-rs does the arithmetic. Secrets are wiped when they are dropped, and no `Debug` shows
//! them.

mod envelope;
mod file;
#[cfg(test)]
mod kem_tests;
#[cfg(test)]
mod key_tests;
mod mac;
mod made;
mod ml_kem;
mod place;
mod private_key;
mod verify;

use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::num::NonZeroU32;
use std::path::Path;
use std::sync::Arc;

use async_trait::async_trait;
use aws_lc_rs::{digest, pbkdf2};
use zeroize::Zeroizing;

use crate::wit::keys::{
    Enveloped, HandlingError, KeyError, KeyKind, KeyManagement, MacAlgorithm, SignatureAlgorithm,
    Verdict,
};
use crate::{Keys, limits};

use envelope::With;
pub use file::{KeyFileError, generate_p256};
use made::Made;
use place::Place;
use private_key::PrivateKey;

/// Private keys and shared secrets by name. A name may be used for one of each.
#[derive(Default)]
pub struct FileKeys {
    secrets: BTreeMap<String, Arc<Zeroizing<Vec<u8>>>>,
    private: BTreeMap<String, Arc<PrivateKey>>,
    public: BTreeMap<String, Vec<u8>>,
    places: BTreeMap<String, Arc<Place>>,
    made: Option<Arc<Made>>,
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

    /// Adds the public half of a key whose private half is elsewhere, as DER
    /// SubjectPublicKeyInfo; one of the same name is replaced. It can be certified where
    /// somebody vouches for its holder, and nothing else.
    pub fn add_public_key(&mut self, name: impl Into<String>, spki: Vec<u8>) {
        self.public.insert(name.into(), spki);
    }

    /// Makes a place for a private key that the PKI will make. When it comes, `keep` gets it as
    /// PKCS #8 in PEM, encrypted where there is a passphrase: it makes it durable before it
    /// returns, or says why it cannot, and runs where it may block. A key that comes again
    /// replaces what is there.
    pub fn add_place(
        &mut self,
        name: impl Into<String>,
        passphrase: Option<Zeroizing<Vec<u8>>>,
        keep: impl Fn(&str) -> Result<(), String> + Send + Sync + 'static,
    ) {
        let place = Place::new(passphrase, Box::new(keep));
        self.places.insert(name.into(), Arc::new(place));
    }

    /// Keys that are asked for are made, and kept in this directory as PKCS #8 in PEM, for its
    /// owner only and not encrypted. Those that were made before are found there.
    pub fn keep_made_keys_in(&mut self, directory: &Path) -> io::Result<()> {
        self.made = Some(Arc::new(Made::new(directory)?));
        Ok(())
    }

    /// A new P-256 key as PKCS #8 in PEM, for a file that is still to be written.
    pub fn generate_p256() -> Result<Zeroizing<String>, KeyFileError> {
        generate_p256()
    }

    fn private(&self, name: &str) -> Result<Arc<PrivateKey>, KeyError> {
        let place = self.places.get(name);
        if let Some(key) = place.and_then(|place| place.key()) {
            return Ok(key);
        }
        if let Some(key) = self.private.get(name) {
            return Ok(key.clone());
        }
        let made = self.made.as_ref().map(|made| made.key(name));
        let made = made.transpose().map_err(KeyError::Unavailable)?;
        made.flatten().ok_or_else(|| {
            KeyError::NotFound(if self.secrets.contains_key(name) {
                format!("{name} is a shared secret, not a private key")
            } else if self.public.contains_key(name) {
                format!("of {name} only the public half was given to this process")
            } else if place.is_some() {
                format!("{name} has not come yet, or is no longer where it was put")
            } else {
                format!("no private key {name} was given to this process")
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
            .field("public", &self.public.keys())
            .field("places", &self.places)
            .finish()
    }
}

#[async_trait]
impl Keys for FileKeys {
    async fn public_key(&self, key: &str) -> Result<Vec<u8>, KeyError> {
        if let Some(spki) = self.public.get(key) {
            return Ok(spki.clone());
        }
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
        if let Ok(private) = self.private(key) {
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

    async fn open(&self, key: &str, enveloped: Enveloped) -> Result<Vec<u8>, HandlingError> {
        let absent = |error| match error {
            KeyError::NotFound(why) | KeyError::Unsupported(why) | KeyError::Unavailable(why) => {
                HandlingError::Unavailable(why)
            }
        };
        let KeyManagement::Password(password) = &enveloped.management else {
            let private = self.private(key).map_err(absent)?;
            return envelope::open(key, &With::Private(&private), &enveloped);
        };
        let secret = self.secret(key).map_err(absent)?.clone();
        if password.iterations <= limits::INLINE_ITERATIONS {
            return envelope::open(key, &With::Secret(&secret), &enveloped);
        }
        let key = key.to_owned();
        tokio::task::spawn_blocking(move || {
            envelope::open(&key, &With::Secret(&secret), &enveloped)
        })
        .await
        .unwrap_or_else(|error| Err(HandlingError::Unavailable(error.to_string())))
    }

    async fn install(
        &self,
        key: &str,
        private_key: Vec<u8>,
        public_key: Vec<u8>,
    ) -> Result<(), HandlingError> {
        let private_key = Zeroizing::new(private_key);
        let place = self.places.get(key).cloned().ok_or_else(|| {
            HandlingError::Unavailable(format!("this process has no place for {key}"))
        })?;
        let key = key.to_owned();
        tokio::task::spawn_blocking(move || place.install(&key, &private_key, &public_key))
            .await
            .unwrap_or_else(|error| Err(HandlingError::Unavailable(error.to_string())))
    }

    async fn generate(&self, key: &str, kind: KeyKind) -> Result<Vec<u8>, HandlingError> {
        let made = self.made.clone().ok_or_else(|| {
            HandlingError::Refused("this process has no directory for keys that it makes".into())
        })?;
        let key = key.to_owned();
        // RSA takes its time, and so does a disk.
        tokio::task::spawn_blocking(move || made.make(&key, kind))
            .await
            .unwrap_or_else(|error| Err(HandlingError::Unavailable(error.to_string())))
    }
}
