//! What a TLS server is made of.

use std::path::Path;
use std::sync::Arc;

use rustls::{RootCertStore, ServerConfig};
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, PrivateKeyDer};
use zeroize::Zeroizing;

use crate::config::Tls;
use crate::input::{files, pem};

/// What is asked of clients where there are trust anchors for them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Clients {
    /// Who shows no certificate may have another proof.
    MayShowOne,
    /// Who shows none is not let in.
    MustShowOne,
}

/// The field of [`Tls`] with a dot before it, or nothing, and what is wrong with it.
pub type Problem = (&'static str, String);

/// A server for HTTP/1.1, from files whose paths are relative to a folder.
pub fn server(folder: &Path, given: &Tls, clients: Clients) -> Result<Arc<ServerConfig>, Problem> {
    let chain: Vec<CertificateDer<'static>> =
        pem::certificates("the file", &folder.join(&given.certificate))
            .map_err(|error| (".certificate", error.message))?
            .into_iter()
            .map(CertificateDer::from)
            .collect();
    let key = files::read("the file", &folder.join(&given.key))
        .map(Zeroizing::new)
        .map_err(|error| (".key", error.message))?;
    let key = PrivateKeyDer::from_pem_slice(&key).map_err(|_| {
        let what = "has no private key that TLS can use: give an unencrypted key in PEM";
        (".key", what.to_owned())
    })?;
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let builder = ServerConfig::builder_with_provider(provider.clone())
        .with_safe_default_protocol_versions()
        .map_err(|error| ("", error.to_string()))?;
    let builder = if given.client_ca.is_empty() {
        builder.with_no_client_auth()
    } else {
        let mut roots = RootCertStore::empty();
        for file in &given.client_ca {
            let wrong = |problem: String| (".client_ca", problem);
            let anchors = pem::certificates("the file", &folder.join(file))
                .map_err(|error| wrong(error.message))?;
            for anchor in anchors {
                roots
                    .add(CertificateDer::from(anchor))
                    .map_err(|error| wrong(format!("{}: {error}", file.display())))?;
            }
        }
        let verifier =
            rustls::server::WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider);
        let verifier = match clients {
            Clients::MayShowOne => verifier.allow_unauthenticated(),
            Clients::MustShowOne => verifier,
        };
        let verifier = verifier
            .build()
            .map_err(|error| (".client_ca", error.to_string()))?;
        builder.with_client_cert_verifier(verifier)
    };
    let mut tls = builder
        .with_single_cert(chain, key)
        .map_err(|error| (".key", format!("does not go with `certificate`: {error}")))?;
    tls.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(Arc::new(tls))
}
