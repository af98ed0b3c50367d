//! Private keys that the PKI makes: read, compared with their public half, and handed to who
//! keeps them.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use aws_lc_rs::rand;
use pkcs8::der::asn1::OctetStringRef;
use pkcs8::der::pem::{LineEnding, PemLabel};
use pkcs8::der::{Decode, Encode, SecretDocument};
use pkcs8::pkcs5::pbes2;
use pkcs8::spki::SubjectPublicKeyInfoRef;
use pkcs8::{EncryptedPrivateKeyInfoRef, PrivateKeyInfoRef};
use rustls_pki_types::PrivateKeyDer;
use zeroize::Zeroizing;

use super::private_key::PrivateKey;
use crate::limits;
use crate::wit::keys::HandlingError;

/// Makes a PEM file durable, or says why not.
type Keep = dyn Fn(&str) -> Result<(), String> + Send + Sync;

/// Where a private key goes that is still to come.
pub(super) struct Place {
    passphrase: Option<Zeroizing<Vec<u8>>>,
    keep: Box<Keep>,
    key: Mutex<Option<Arc<PrivateKey>>>,
}

impl fmt::Debug for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Place").field("key", &self.key()).finish()
    }
}

impl Place {
    pub(super) fn new(passphrase: Option<Zeroizing<Vec<u8>>>, keep: Box<Keep>) -> Self {
        Self {
            passphrase,
            keep,
            key: Mutex::new(None),
        }
    }

    /// The key, once it came.
    pub(super) fn key(&self) -> Option<Arc<PrivateKey>> {
        self.key
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    /// Takes a key. The name is for the error.
    pub(super) fn install(
        &self,
        name: &str,
        private_key: &[u8],
        public_key: &[u8],
    ) -> Result<(), HandlingError> {
        let refused = |why: &str| HandlingError::Refused(why.to_owned());
        if private_key.len() > limits::KEY_FILE {
            return Err(refused("it is longer than any private key"));
        }
        let pkcs8 = to_pkcs8(private_key, public_key)
            .ok_or_else(|| refused("it is neither PKCS #8 nor of the form of RSA and EC keys"))?;
        let der = PrivateKeyDer::Pkcs8(pkcs8.as_slice().into());
        let key = PrivateKey::new("it", &der)
            .map_err(|error| HandlingError::Refused(error.to_string()))?;
        if key.spki() != public_key {
            return Err(refused("it is not that of the certificate"));
        }
        let pem = self
            .pem(&pkcs8)
            .ok_or_else(|| HandlingError::Unavailable(format!("{name} cannot be encoded")))?;
        (self.keep)(&pem).map_err(HandlingError::Unavailable)?;
        *self.key.lock().unwrap_or_else(PoisonError::into_inner) = Some(Arc::new(key));
        Ok(())
    }

    /// PKCS #8 in PEM, encrypted by PBES2 where there is a passphrase.
    fn pem(&self, pkcs8: &[u8]) -> Option<Zeroizing<String>> {
        let info = PrivateKeyInfoRef::try_from(pkcs8).ok()?;
        let Some(passphrase) = &self.passphrase else {
            let der = SecretDocument::encode_msg(&info).ok()?;
            return der
                .to_pem(PrivateKeyInfoRef::PEM_LABEL, LineEnding::LF)
                .ok();
        };
        let (mut salt, mut iv) = ([0; 16], [0; 16]);
        rand::fill(&mut salt).ok()?;
        rand::fill(&mut iv).ok()?;
        let parameters = pbes2::Parameters::generate_pbkdf2_sha256_aes256cbc(
            limits::KEY_FILE_ITERATIONS,
            &salt,
            iv,
        );
        let der = info
            .encrypt_with_params(parameters.ok()?, passphrase)
            .ok()?;
        der.to_pem(EncryptedPrivateKeyInfoRef::PEM_LABEL, LineEnding::LF)
            .ok()
    }
}

/// PKCS #8 of version 1, the only one that every reader knows: without the public key that a
/// OneAsymmetricKey of version 2 carries, and with the algorithm that the older forms lack.
fn to_pkcs8(private_key: &[u8], public_key: &[u8]) -> Option<Zeroizing<Vec<u8>>> {
    let info = match PrivateKeyInfoRef::try_from(private_key) {
        Ok(info) => PrivateKeyInfoRef::new(info.algorithm, info.private_key),
        Err(_) => {
            let public = SubjectPublicKeyInfoRef::from_der(public_key).ok()?;
            let private = OctetStringRef::new(private_key).ok()?;
            PrivateKeyInfoRef::new(public.algorithm, private)
        }
    };
    Some(Zeroizing::new(info.to_der().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::keys::{FileKeys, KeyFileError};

    macro_rules! file {
        ($name:literal) => {
            include_bytes!(concat!("../../../../guest/cmp/tests/cms/", $name)).as_slice()
        };
    }

    /// A place, and what was last kept in it.
    fn place(passphrase: Option<&str>) -> (Place, Arc<Mutex<String>>) {
        let kept = Arc::new(Mutex::new(String::new()));
        let keeper = kept.clone();
        let passphrase = passphrase.map(|text| Zeroizing::new(text.as_bytes().to_vec()));
        let keep = move |pem: &str| {
            *keeper.lock().unwrap() = pem.to_owned();
            Ok(())
        };
        (Place::new(passphrase, Box::new(keep)), kept)
    }

    /// The key is OpenSSL's: in a OneAsymmetricKey of version 2, as ECPrivateKey, as PKCS #8.
    #[test]
    fn a_key_is_kept_in_the_form_that_everybody_reads() {
        for der in [&file!("one.der")[3..], file!("sec1.der"), file!("new.key")] {
            let (place, kept) = place(None);
            place.install("it", der, file!("new.spki")).unwrap();
            assert_eq!(place.key().unwrap().spki(), file!("new.spki"));
            let kept = kept.lock().unwrap().clone();
            let (label, document) = SecretDocument::from_pem(&kept).unwrap();
            assert_eq!(label, "PRIVATE KEY");
            // SEQUENCE { INTEGER 0, … }: PKCS #8 of version 1.
            let der = document.as_bytes();
            assert!(der[2..].starts_with(&[2, 1, 0]) || der[3..].starts_with(&[2, 1, 0]));
        }
    }

    #[test]
    fn a_passphrase_encrypts_what_is_kept() {
        let (place, kept) = place(Some("open sesame"));
        place
            .install("it", file!("sec1.der"), file!("new.spki"))
            .unwrap();
        let kept = kept.lock().unwrap().clone();
        let mut keys = FileKeys::new();
        keys.add_private_key("k", kept.as_bytes(), Some(b"open sesame"))
            .unwrap();
        let wrong = keys.add_private_key("k", kept.as_bytes(), Some(b"another"));
        let name = "k".to_owned();
        assert_eq!(wrong, Err(KeyFileError::WrongPassphrase { name }));
    }

    #[test]
    fn a_key_of_another_certificate_is_not_kept() {
        let (place, kept) = place(None);
        for der in [file!("ec.key"), file!("rsa.key"), file!("new.spki"), b""] {
            let refused = place.install("it", der, file!("new.spki"));
            assert!(
                matches!(refused, Err(HandlingError::Refused(_))),
                "{refused:?}"
            );
        }
        assert!(kept.lock().unwrap().is_empty() && place.key().is_none());
    }

    #[test]
    fn what_cannot_be_kept_now_may_come_again() {
        let full = |_: &str| Err("the disk is full".to_owned());
        let place = Place::new(None, Box::new(full));
        let error = place.install("it", file!("sec1.der"), file!("new.spki"));
        let full = HandlingError::Unavailable("the disk is full".to_owned());
        assert_eq!(error, Err(full));
        assert!(place.key().is_none());
    }
}
