//! Who the CA is: its root and the certificate that signs its messages.

use std::path::Path;

use abide_cmp::{Certificate, Name};
use anyhow::{Context, anyhow, bail};
use p256::SecretKey;
use p256::ecdsa::signature::Signer;
use p256::ecdsa::{DerSignature, SigningKey};
use p256::pkcs8::{DecodePrivateKey, EncodePrivateKey, LineEnding};
use x509_cert::der::{DecodePem, Encode, EncodePem};

use crate::issue::{self, Purpose};
use crate::{files, limits, random};

/// The file of the root certificate. It is written last, so that it stands for a whole
/// identity.
const ROOT: &str = "root.pem";
const ROOT_KEY: &str = "root.key.pem";
const SIGNER: &str = "signer.pem";
const SIGNER_KEY: &str = "signer.key.pem";

const KGA: &str = "kga.pem";
const KGA_KEY: &str = "kga.key.pem";

const ROOT_NAME: &str = "abide mock CA";
const SIGNER_NAME: &str = "abide mock CA CMP signer";
const KGA_NAME: &str = "abide mock CA key generation";

/// The identities of a CA.
#[derive(Debug)]
pub(crate) struct Authority {
    /// Issues certificates.
    pub(crate) root: Identity,
    /// Signs messages.
    pub(crate) signer: Identity,
    /// Signs private keys that are made for clients.
    pub(crate) kga: Identity,
}

/// A certificate and its key.
pub(crate) struct Identity {
    /// The certificate as DER.
    pub(crate) certificate: Vec<u8>,
    /// Its subject.
    pub(crate) subject: Name<'static>,
    /// Its subjectKeyIdentifier.
    pub(crate) key_id: Vec<u8>,
    key: SigningKey,
}

impl std::fmt::Debug for Identity {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Identity({})", self.subject)
    }
}

impl Authority {
    /// Whether a folder holds a CA.
    pub(crate) fn exists(dir: &Path) -> bool {
        dir.join(ROOT).exists()
    }

    /// Reads the CA of a folder.
    pub(crate) fn load(dir: &Path, now: abide_cmp::Time) -> anyhow::Result<Self> {
        let root = Identity::load(&dir.join(ROOT), &dir.join(ROOT_KEY))?;
        Ok(Self {
            signer: Identity::load(&dir.join(SIGNER), &dir.join(SIGNER_KEY))?,
            // Older folders have none.
            kga: match dir.join(KGA).exists() {
                true => Identity::load(&dir.join(KGA), &dir.join(KGA_KEY))?,
                false => kga(dir, &root, now)?,
            },
            root,
        })
    }

    /// Makes a new CA and writes it down.
    pub(crate) fn create(dir: &Path, now: abide_cmp::Time) -> anyhow::Result<Self> {
        let root_key = new_key()?;
        let name = Name::common_name(ROOT_NAME);
        let plan = issue::Plan {
            issuer: &name,
            subject: &name,
            key: issue::public_key(&root_key)?,
            purpose: Purpose::Root,
            now,
            validity: limits::CA_VALIDITY,
        };
        let root = Identity::new(plan.certificate(&root_key)?, root_key)?;

        let signer_key = new_key()?;
        let plan = issue::Plan {
            issuer: &root.subject,
            subject: &Name::common_name(SIGNER_NAME),
            key: issue::public_key(&signer_key)?,
            purpose: Purpose::MessageSigner,
            now,
            validity: limits::CA_VALIDITY,
        };
        let signer = Identity::new(plan.certificate(&root.key)?, signer_key)?;

        signer.store_key(&dir.join(SIGNER_KEY))?;
        root.store_key(&dir.join(ROOT_KEY))?;
        let kga = kga(dir, &root, now)?;
        files::write(&dir.join(SIGNER), signer.pem()?.as_bytes(), files::PUBLIC)?;
        files::write(&dir.join(ROOT), root.pem()?.as_bytes(), files::PUBLIC)?;
        Ok(Self { root, signer, kga })
    }
}

/// Makes a key generation authority and writes it down.
fn kga(dir: &Path, root: &Identity, now: abide_cmp::Time) -> anyhow::Result<Identity> {
    let key = new_key()?;
    let plan = issue::Plan {
        issuer: &root.subject,
        subject: &Name::common_name(KGA_NAME),
        key: issue::public_key(&key)?,
        purpose: Purpose::KeyGenerator,
        now,
        validity: limits::CA_VALIDITY,
    };
    let kga = Identity::new(plan.certificate(&root.key)?, key)?;
    kga.store_key(&dir.join(KGA_KEY))?;
    files::write(&dir.join(KGA), kga.pem()?.as_bytes(), files::PUBLIC)?;
    Ok(kga)
}

impl Identity {
    fn new(certificate: Vec<u8>, key: SigningKey) -> anyhow::Result<Self> {
        let read = Certificate::from_der(&certificate).context("the certificate is damaged")?;
        let Some(key_id) = read.subject_key_identifier() else {
            bail!("the certificate has no subjectKeyIdentifier");
        };
        if read.public_key.raw != issue::public_key(&key)? {
            bail!("the key does not belong to the certificate");
        }
        let (subject, key_id) = (read.subject.clone().into_owned(), key_id.to_vec());
        Ok(Self {
            certificate,
            subject,
            key_id,
            key,
        })
    }

    fn load(certificate: &Path, key: &Path) -> anyhow::Result<Self> {
        let unusable = |path: &Path| {
            format!(
                "{} cannot be used; name a new folder for the CA",
                path.display()
            )
        };
        let parsed = x509_cert::Certificate::from_pem(files::read(certificate)?)
            .and_then(|parsed| parsed.to_der())
            .with_context(|| unusable(certificate))?;
        let secret = SecretKey::from_pkcs8_pem(&files::read(key)?)
            .map_err(|error| anyhow!("{error}"))
            .with_context(|| unusable(key))?;
        Self::new(parsed, secret.into()).with_context(|| unusable(certificate))
    }

    fn store_key(&self, path: &Path) -> anyhow::Result<()> {
        let pem = SecretKey::from(&self.key)
            .to_pkcs8_pem(LineEnding::LF)
            .map_err(|error| anyhow!("the new key cannot be encoded: {error}"))?;
        files::write(path, pem.as_bytes(), files::PRIVATE)
    }

    /// The certificate as PEM.
    pub(crate) fn pem(&self) -> anyhow::Result<String> {
        use x509_cert::der::Decode;
        x509_cert::Certificate::from_der(&self.certificate)
            .and_then(|certificate| certificate.to_pem(LineEnding::LF))
            .context("the certificate cannot be encoded")
    }

    /// A signature, ECDSA with SHA-256.
    pub(crate) fn sign(&self, data: &[u8]) -> Vec<u8> {
        let signature: DerSignature = self.key.sign(data);
        signature.as_bytes().to_vec()
    }

    /// The key, for issuing.
    pub(crate) fn key(&self) -> &SigningKey {
        &self.key
    }
}

fn new_key() -> anyhow::Result<SigningKey> {
    for _ in 0..limits::KEY_DRAWS {
        if let Ok(key) = SigningKey::from_slice(&random::octets::<32>()?) {
            return Ok(key);
        }
    }
    bail!("the random numbers of this machine do not make a key")
}
