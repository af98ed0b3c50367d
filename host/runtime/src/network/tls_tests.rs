//! TLS: who is trusted, who is not, and that a refusal never looks like a lost answer. The
//! certificates are OpenSSL's.

use std::process::Command;
use std::sync::Arc;

use rustls::crypto::aws_lc_rs::default_provider;
use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig};
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::TlsAcceptor;

use super::http_tests::{Server, Step, ok, request};
use super::{HttpConfig, HttpNetwork, Identity, NetworkConfigError, TlsFile};
use crate::Network;
use crate::wit::network::NetworkError;

/// A root, and certificates under it for a server and a client.
struct Pki(tempfile::TempDir);

impl Pki {
    fn new() -> Self {
        let pki = Pki(tempfile::tempdir().unwrap());
        std::fs::write(pki.0.path().join("san"), "subjectAltName=DNS:localhost").unwrap();
        pki.openssl("req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout root.key -out root.pem -subj /CN=root -days 2");
        for name in ["server", "client"] {
            pki.openssl(&format!("req -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout {name}.key -out {name}.csr -subj /CN={name}"));
            pki.openssl(&format!("x509 -req -in {name}.csr -CA root.pem -CAkey root.key -CAcreateserial -extfile san -days 2 -out {name}.pem"));
        }
        pki
    }

    fn openssl(&self, line: &str) {
        let output = Command::new("openssl")
            .args(line.split_whitespace())
            .current_dir(self.0.path())
            .output()
            .expect("the openssl command");
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "openssl {line}: {said}");
    }

    fn file(&self, name: &str) -> TlsFile {
        let contents = std::fs::read(self.0.path().join(name)).unwrap();
        TlsFile {
            name: name.to_owned(),
            contents: contents.into(),
        }
    }

    /// A server with a certificate under the root, which may want one of the client.
    fn acceptor(&self, wants_client: bool) -> TlsAcceptor {
        let certificate =
            |name: &str| CertificateDer::from_pem_slice(&self.file(name).contents).unwrap();
        let provider = Arc::new(default_provider());
        let builder = ServerConfig::builder_with_provider(provider.clone())
            .with_safe_default_protocol_versions()
            .unwrap();
        let builder = if wants_client {
            let mut roots = RootCertStore::empty();
            roots.add(certificate("root.pem")).unwrap();
            let verifier = WebPkiClientVerifier::builder_with_provider(roots.into(), provider);
            builder.with_client_cert_verifier(verifier.build().unwrap())
        } else {
            builder.with_no_client_auth()
        };
        let key = PrivateKeyDer::from_pem_slice(&self.file("server.key").contents).unwrap();
        let config = builder
            .with_single_cert(vec![certificate("server.pem")], key)
            .unwrap();
        TlsAcceptor::from(Arc::new(config))
    }

    fn trusting(&self) -> HttpConfig {
        HttpConfig {
            trusted: vec![self.file("root.pem")],
            ..HttpConfig::default()
        }
    }
}

fn assert_tls(error: NetworkError, expected: &str) {
    let NetworkError::Tls(text) = error else {
        panic!("{error:?}")
    };
    assert!(text.starts_with("https://localhost:"), "{text}");
    assert!(text.contains(expected), "{text}");
    assert!(!text.contains('\n'), "{text}");
}

#[tokio::test]
async fn a_server_under_the_root_is_trusted() {
    let pki = Pki::new();
    let steps = [Step::Say(ok(b"1")), Step::Say(ok(b"2"))];
    let server = Server::start_with(Some(pki.acceptor(false)), steps).await;
    let network = HttpNetwork::new(pki.trusting()).unwrap();
    for expected in [b"1", b"2"] {
        let response = network.exchange(request(&server.url)).await.unwrap();
        assert_eq!(response.body, expected);
    }
    assert_eq!(server.connections(), [0, 0]);
}

#[tokio::test]
async fn a_server_of_others_gets_nothing() {
    let pki = Pki::new();
    let server = Server::start_with(Some(pki.acceptor(false)), []).await;
    // By other roots, by the machine's, and under another name.
    let network = HttpNetwork::new(Pki::new().trusting()).unwrap();
    let error = network.exchange(request(&server.url)).await.unwrap_err();
    assert_tls(error, "certificate");
    let network = HttpNetwork::new(HttpConfig::default()).unwrap();
    let error = network.exchange(request(&server.url)).await.unwrap_err();
    assert_tls(error, "certificate");
    let network = HttpNetwork::new(pki.trusting()).unwrap();
    let other = server.url.replace("localhost", "127.0.0.1");
    let error = network.exchange(request(&other)).await.unwrap_err();
    assert!(matches!(error, NetworkError::Tls(_)), "{error:?}");
    assert!(server.seen.lock().unwrap().is_empty());
}

#[tokio::test]
async fn a_server_that_wants_a_certificate_gets_one_or_nothing() {
    let pki = Pki::new();
    let steps = [Step::Say(ok(b"1"))];
    let server = Server::start_with(Some(pki.acceptor(true)), steps).await;
    let network = HttpNetwork::new(pki.trusting()).unwrap();
    let error = network.exchange(request(&server.url)).await.unwrap_err();
    assert_tls(error, "CertificateRequired");
    assert!(server.seen.lock().unwrap().is_empty());

    let with_identity = |certificate: &str, key: &str| HttpConfig {
        identity: Some(Identity {
            certificate: pki.file(certificate),
            key: pki.file(key),
        }),
        ..pki.trusting()
    };
    let network = HttpNetwork::new(with_identity("client.pem", "client.key")).unwrap();
    let response = network.exchange(request(&server.url)).await.unwrap();
    assert_eq!(response.body, b"1");

    let error = HttpNetwork::new(with_identity("client.pem", "server.key")).unwrap_err();
    assert!(
        matches!(error, NetworkConfigError::BadIdentity { .. }),
        "{error}"
    );
    let error = HttpNetwork::new(with_identity("client.pem", "client.csr")).unwrap_err();
    let name = "client.csr".to_owned();
    assert_eq!(error, NetworkConfigError::NoKey { name });
}
