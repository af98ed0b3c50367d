//! Private keys that this host makes, one file for each in a directory of their own.

use std::collections::BTreeMap;
use std::fmt;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use aws_lc_rs::encoding::{AsDer, Pkcs8V1Der};
use aws_lc_rs::rand::{self, SystemRandom};
use aws_lc_rs::rsa::KeySize;
use aws_lc_rs::signature::{
    ECDSA_P256_SHA256_ASN1_SIGNING, ECDSA_P384_SHA384_ASN1_SIGNING, ECDSA_P521_SHA512_ASN1_SIGNING,
    EcdsaKeyPair, EcdsaSigningAlgorithm, Ed25519KeyPair, RsaKeyPair,
};
use pkcs8::der::oid::ObjectIdentifier;
use pkcs8::der::pem::{LineEnding, PemLabel};
use pkcs8::der::{Decode, SecretDocument};
use pkcs8::spki::SubjectPublicKeyInfoRef;
use pkcs8::{PrivateKeyInfoRef, der};
use zeroize::Zeroizing;

use super::file;
use super::private_key::PrivateKey;
use crate::limits;
use crate::wit::keys::{HandlingError, KeyKind};

/// A directory of keys, each as PKCS #8 in PEM under its name, for its owner only.
pub(super) struct Made {
    directory: PathBuf,
    /// Those that were used, so that no signature waits for a disk.
    known: Mutex<BTreeMap<String, Arc<PrivateKey>>>,
}

impl fmt::Debug for Made {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Made").field(&self.directory).finish()
    }
}

impl Made {
    /// Makes the directory if it is not there.
    pub(super) fn new(directory: &Path) -> io::Result<Self> {
        fs::DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(directory)?;
        Ok(Self {
            directory: directory.to_owned(),
            known: Mutex::default(),
        })
    }

    /// The key of that name, if it was made; an error is in words.
    pub(super) fn key(&self, name: &str) -> Result<Option<Arc<PrivateKey>>, String> {
        if let Some(key) = self.known().get(name) {
            return Ok(Some(key.clone()));
        }
        let Some(path) = self.path(name) else {
            return Ok(None);
        };
        let told = |why: &dyn fmt::Display| format!("{}: {why}", path.display());
        let contents = match read(&path) {
            Ok(contents) => contents,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(told(&error)),
        };
        let key = file::read(name, &contents, None).map_err(|error| told(&error))?;
        let key = Arc::new(key);
        let mut known = self.known();
        if known.len() >= limits::MADE_KEYS {
            known.clear();
        }
        known.insert(name.to_owned(), key.clone());
        Ok(Some(key))
    }

    /// Makes a key unless there is one, and gives its SubjectPublicKeyInfo.
    pub(super) fn make(&self, name: &str, kind: KeyKind) -> Result<Vec<u8>, HandlingError> {
        let Some(path) = self.path(name) else {
            return Err(HandlingError::Refused(format!(
                "{name:?} is no name for a key: letters, digits, dots, hyphens and underscores \
                 are possible, and no dot in front"
            )));
        };
        if self
            .key(name)
            .map_err(HandlingError::Unavailable)?
            .is_none()
        {
            let pem = generate(kind).ok_or_else(|| {
                HandlingError::Unavailable("no key could be generated on this machine".into())
            })?;
            self.keep(&path, &pem).map_err(|error| {
                HandlingError::Unavailable(format!("{}: {error}", path.display()))
            })?;
        }
        // Read back in either case: of two who made it at once, one was first.
        let key = self.key(name).map_err(HandlingError::Unavailable)?;
        let key = key.ok_or_else(|| {
            HandlingError::Unavailable(format!("{} is gone again", path.display()))
        })?;
        if kind_of(key.spki()) != Some(kind) {
            return Err(HandlingError::Refused(format!(
                "{} has a key of another kind, which is not replaced",
                path.display()
            )));
        }
        Ok(key.spki().to_vec())
    }

    /// Writes a file under its name in one step, and leaves one that is there.
    fn keep(&self, path: &Path, pem: &str) -> io::Result<()> {
        let mut suffix = [0; 8];
        rand::fill(&mut suffix).map_err(|_| io::Error::other("no random bytes"))?;
        let suffix = u64::from_be_bytes(suffix);
        let draft = self.directory.join(format!(".{suffix:016x}"));
        let mut file = OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(&draft)?;
        let kept = file
            .write_all(pem.as_bytes())
            .and_then(|()| file.sync_all())
            // Unlike a rename, a link does not replace.
            .and_then(|()| match fs::hard_link(&draft, path) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
                result => result,
            });
        fs::remove_file(&draft)?;
        kept?;
        File::open(&self.directory)?.sync_all()
    }

    /// The file of a name, if it can be one.
    fn path(&self, name: &str) -> Option<PathBuf> {
        let may_be = |octet: u8| octet.is_ascii_alphanumeric() || b"._-".contains(&octet);
        let is_name = !name.is_empty()
            && name.len() <= limits::KEY_NAME
            && !name.starts_with('.')
            && name.bytes().all(may_be);
        is_name.then(|| self.directory.join(format!("{name}.pem")))
    }

    fn known(&self) -> MutexGuard<'_, BTreeMap<String, Arc<PrivateKey>>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn read(path: &Path) -> io::Result<Zeroizing<Vec<u8>>> {
    fs::read(path).map(Zeroizing::new)
}

/// A new key as PKCS #8 in PEM.
fn generate(kind: KeyKind) -> Option<Zeroizing<String>> {
    let random = SystemRandom::new();
    let ec = |algorithm: &'static EcdsaSigningAlgorithm| {
        let key = EcdsaKeyPair::generate_pkcs8(algorithm, &random).ok()?;
        Some(Zeroizing::new(key.as_ref().to_vec()))
    };
    let rsa = |size| {
        let key = RsaKeyPair::generate(size).ok()?;
        let der: Pkcs8V1Der<'_> = key.as_der().ok()?;
        Some(Zeroizing::new(der.as_ref().to_vec()))
    };
    let der = match kind {
        KeyKind::EcP256 => ec(&ECDSA_P256_SHA256_ASN1_SIGNING),
        KeyKind::EcP384 => ec(&ECDSA_P384_SHA384_ASN1_SIGNING),
        KeyKind::EcP521 => ec(&ECDSA_P521_SHA512_ASN1_SIGNING),
        KeyKind::Rsa2048 => rsa(KeySize::Rsa2048),
        KeyKind::Rsa3072 => rsa(KeySize::Rsa3072),
        KeyKind::Rsa4096 => rsa(KeySize::Rsa4096),
        KeyKind::Ed25519 => {
            let key = Ed25519KeyPair::generate_pkcs8v1(&random).ok()?;
            Some(Zeroizing::new(key.as_ref().to_vec()))
        }
    }?;
    SecretDocument::try_from(der.as_slice())
        .and_then(|key| key.to_pem(PrivateKeyInfoRef::PEM_LABEL, LineEnding::LF))
        .ok()
}

/// The kind of a public key.
fn kind_of(spki: &[u8]) -> Option<KeyKind> {
    const EC: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.2.840.10045.2.1");
    const RSA: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.2.840.113549.1.1.1");
    const ED25519: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.3.101.112");
    let info = SubjectPublicKeyInfoRef::from_der(spki).ok()?;
    match info.algorithm.oid {
        EC => match info.algorithm.parameters_oid().ok()?.to_string().as_str() {
            "1.2.840.10045.3.1.7" => Some(KeyKind::EcP256),
            "1.3.132.0.34" => Some(KeyKind::EcP384),
            "1.3.132.0.35" => Some(KeyKind::EcP521),
            _ => None,
        },
        RSA => {
            // SEQUENCE { modulus, publicExponent }, of which the first says the size.
            let key = der::asn1::AnyRef::from_der(info.subject_public_key.raw_bytes()).ok()?;
            let modulus = der::asn1::UintRef::from_der(first(key.value())?).ok()?;
            match modulus.as_bytes().len() {
                256 => Some(KeyKind::Rsa2048),
                384 => Some(KeyKind::Rsa3072),
                512 => Some(KeyKind::Rsa4096),
                _ => None,
            }
        }
        ED25519 => Some(KeyKind::Ed25519),
        _ => None,
    }
}

/// The first element of a sequence's contents.
fn first(contents: &[u8]) -> Option<&[u8]> {
    let (element, _) = der::asn1::AnyRef::from_der_partial(contents).ok()?;
    let end =
        element.value().as_ptr() as usize - contents.as_ptr() as usize + element.value().len();
    contents.get(..end)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;
    use crate::Keys;
    use crate::keys::FileKeys;
    use crate::keys::verify::verify;
    use crate::wit::keys::{KeyError, SignatureAlgorithm, Verdict};

    const KINDS: [(KeyKind, SignatureAlgorithm); 7] = [
        (KeyKind::EcP256, SignatureAlgorithm::EcdsaSha256),
        (KeyKind::EcP384, SignatureAlgorithm::EcdsaSha384),
        (KeyKind::EcP521, SignatureAlgorithm::EcdsaSha512),
        (KeyKind::Rsa2048, SignatureAlgorithm::RsaPkcs1Sha256),
        (KeyKind::Rsa3072, SignatureAlgorithm::RsaPkcs1Sha256),
        (KeyKind::Rsa4096, SignatureAlgorithm::RsaPkcs1Sha256),
        (KeyKind::Ed25519, SignatureAlgorithm::Ed25519),
    ];

    fn keys(directory: &Path) -> FileKeys {
        let mut keys = FileKeys::new();
        keys.keep_made_keys_in(&directory.join("keys")).unwrap();
        keys
    }

    #[tokio::test]
    async fn a_key_of_each_kind_signs_also_after_a_restart() {
        let directory = tempfile::tempdir().unwrap();
        for (number, (kind, algorithm)) in KINDS.into_iter().enumerate() {
            let name = format!("order-{number}");
            let spki = keys(directory.path()).generate(&name, kind).await.unwrap();
            let later = keys(directory.path());
            assert_eq!(later.generate(&name, kind).await.unwrap(), spki);
            assert_eq!(later.public_key(&name).await.unwrap(), spki);
            let signature = later
                .sign(&name, algorithm, b"data".to_vec())
                .await
                .unwrap();
            assert_eq!(
                verify(algorithm, &spki, b"data", &signature),
                Verdict::Valid
            );
        }
    }

    #[tokio::test]
    async fn a_made_key_is_for_its_owner_only_and_never_replaced() {
        let directory = tempfile::tempdir().unwrap();
        let keys = keys(directory.path());
        keys.generate("a", KeyKind::EcP256).await.unwrap();
        let made = directory.path().join("keys");
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode(&made), 0o700);
        assert_eq!(mode(&made.join("a.pem")), 0o600);
        assert_eq!(fs::read_dir(&made).unwrap().count(), 1, "no draft is left");
        let before = fs::read(made.join("a.pem")).unwrap();
        let refused = keys.generate("a", KeyKind::EcP384).await;
        assert!(
            matches!(refused, Err(HandlingError::Refused(_))),
            "{refused:?}"
        );
        assert_eq!(fs::read(made.join("a.pem")).unwrap(), before);
    }

    #[tokio::test]
    async fn a_name_leads_nowhere_else() {
        let directory = tempfile::tempdir().unwrap();
        let keys = keys(directory.path());
        let long = "a".repeat(300);
        for name in ["", ".", "..", ".a", "../a", "a/b", "/a", "a\0", "ä", &long] {
            let refused = keys.generate(name, KeyKind::EcP256).await;
            assert!(
                matches!(refused, Err(HandlingError::Refused(_))),
                "{name:?}"
            );
            let found = keys.public_key(name).await;
            assert!(matches!(found, Err(KeyError::NotFound(_))), "{name:?}");
        }
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 1);
        assert_eq!(
            fs::read_dir(directory.path().join("keys")).unwrap().count(),
            0
        );
    }

    #[tokio::test]
    async fn a_damaged_key_is_told_from_an_absent_one() {
        let directory = tempfile::tempdir().unwrap();
        let keys = keys(directory.path());
        fs::write(directory.path().join("keys/a.pem"), "nothing").unwrap();
        let refused = keys.generate("a", KeyKind::EcP256).await;
        assert!(
            matches!(refused, Err(HandlingError::Unavailable(_))),
            "{refused:?}"
        );
        let unusable = keys.public_key("a").await;
        assert!(
            matches!(unusable, Err(KeyError::Unavailable(_))),
            "{unusable:?}"
        );
    }
}
