//! What a TLS client is made of.

use std::fmt;
use std::sync::Arc;

use rustls::client::WebPkiServerVerifier;
use rustls::crypto::{CryptoProvider, aws_lc_rs};
use rustls::{ClientConfig, ConfigBuilder, RootCertStore, WantsVerifier};
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, PrivateKeyDer};
use rustls_platform_verifier::BuilderVerifierExt;
use zeroize::Zeroizing;

use super::NetworkConfigError;
use crate::error::chain;

/// A file's contents, with the name by which errors call it.
#[derive(Clone)]
pub struct TlsFile {
    /// For messages.
    pub name: String,
    /// PEM or DER.
    pub contents: Zeroizing<Vec<u8>>,
}

impl fmt::Debug for TlsFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("TlsFile").field(&self.name).finish()
    }
}

/// A certificate with its private key, for servers that ask for one.
#[derive(Debug, Clone)]
pub struct Identity {
    /// The certificate, followed by those that lead from it towards a root.
    pub certificate: TlsFile,
    /// Its private key.
    pub key: TlsFile,
}

/// A client that trusts these certificates, or else those of the machine.
pub fn client(
    trusted: &[TlsFile],
    identity: Option<&Identity>,
) -> Result<ClientConfig, NetworkConfigError> {
    let builder = builder()?;
    let builder = if trusted.is_empty() {
        builder
            .with_platform_verifier()
            .map_err(|error| NetworkConfigError::Client {
                reason: format!(
                    "the machine's certificates cannot be read: {}",
                    chain(&error)
                ),
            })?
    } else {
        let roots = Arc::new(roots(trusted)?);
        let verifier = WebPkiServerVerifier::builder_with_provider(roots, provider())
            .build()
            .map_err(|error| NetworkConfigError::Client {
                reason: chain(&error),
            })?;
        builder.with_webpki_verifier(verifier)
    };
    match identity {
        None => Ok(builder.with_no_client_auth()),
        Some(Identity { certificate, key }) => builder
            .with_client_auth_cert(certificates(certificate)?, private_key(key)?)
            .map_err(|error| NetworkConfigError::BadIdentity {
                certificate: certificate.name.clone(),
                key: key.name.clone(),
                reason: chain(&error),
            }),
    }
}

/// A client that trusts nobody, for endpoints without TLS.
pub(crate) fn none() -> Result<ClientConfig, NetworkConfigError> {
    Ok(builder()?
        .with_root_certificates(RootCertStore::empty())
        .with_no_client_auth())
}

fn builder() -> Result<ConfigBuilder<ClientConfig, WantsVerifier>, NetworkConfigError> {
    ClientConfig::builder_with_provider(provider())
        .with_safe_default_protocol_versions()
        .map_err(|error| NetworkConfigError::Client {
            reason: chain(&error),
        })
}

/// Named here instead of installed for the process: an embedder may use another.
fn provider() -> Arc<CryptoProvider> {
    Arc::new(aws_lc_rs::default_provider())
}

fn roots(files: &[TlsFile]) -> Result<RootCertStore, NetworkConfigError> {
    let mut roots = RootCertStore::empty();
    for file in files {
        for certificate in certificates(file)? {
            roots
                .add(certificate)
                .map_err(|error| NetworkConfigError::BadCertificate {
                    name: file.name.clone(),
                    reason: chain(&error),
                })?;
        }
    }
    Ok(roots)
}

fn certificates(file: &TlsFile) -> Result<Vec<CertificateDer<'static>>, NetworkConfigError> {
    let none = || NetworkConfigError::NoCertificate {
        name: file.name.clone(),
    };
    if is_der(&file.contents) {
        return Ok(vec![CertificateDer::from(file.contents.to_vec())]);
    }
    let found = CertificateDer::pem_slice_iter(&file.contents)
        .collect::<Result<Vec<_>, _>>()
        .map_err(|_| none())?;
    if found.is_empty() {
        return Err(none());
    }
    Ok(found)
}

fn private_key(file: &TlsFile) -> Result<PrivateKeyDer<'static>, NetworkConfigError> {
    let key = if is_der(&file.contents) {
        PrivateKeyDer::try_from(file.contents.to_vec()).ok()
    } else {
        PrivateKeyDer::from_pem_slice(&file.contents).ok()
    };
    key.ok_or_else(|| NetworkConfigError::NoKey {
        name: file.name.clone(),
    })
}

/// DER of a certificate or a key begins with the tag of a SEQUENCE, which no text does.
fn is_der(contents: &[u8]) -> bool {
    contents.first() == Some(&0x30)
}
