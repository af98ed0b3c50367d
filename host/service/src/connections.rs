//! Sockets: a bounded number of connections, bounded in time and size, over TLS or not, closed
//! in good order at the end.

use std::net::IpAddr;
use std::net::SocketAddr;
use std::sync::Arc;

use axum::Router;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulShutdown;
use hyper_util::service::TowerToHyperService;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, watch};
use tokio_rustls::TlsAcceptor;
use tracing::{debug, warn};
use x509_cert::der::Decode;

use crate::limits;
use crate::metrics::Metrics;

/// Who is at the other end, as the connection tells.
#[derive(Debug, Clone)]
pub(crate) struct Peer {
    /// The subject of the client's certificate, which was verified.
    pub(crate) subject: Option<String>,
    /// Where it calls from.
    pub(crate) address: IpAddr,
}

/// Serves until it is told to stop, then lets running requests end.
pub(crate) async fn serve(
    listener: TcpListener,
    tls: Option<Arc<rustls::ServerConfig>>,
    router: Router,
    metrics: Arc<Metrics>,
    mut stop: watch::Receiver<bool>,
) {
    let places = Arc::new(Semaphore::new(limits::CONNECTIONS));
    let graceful = Arc::new(GracefulShutdown::new());
    let acceptor = tls.map(TlsAcceptor::from);
    loop {
        // A place first: who has none waits in the kernel's queue, not here.
        let place = tokio::select! {
            place = places.clone().acquire_owned() => place,
            _ = stop.changed() => break,
        };
        let Ok(place) = place else { break };
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            _ = stop.changed() => break,
        };
        let (stream, address) = match accepted {
            Ok(accepted) => accepted,
            Err(error) => {
                // Out of descriptors, mostly: the listener is well and others may close some.
                warn!("a connection cannot be accepted: {error}");
                tokio::time::sleep(limits::CLAIM_GAP).await;
                continue;
            }
        };
        let acceptor = acceptor.clone();
        let router = router.clone();
        let metrics = metrics.clone();
        let watcher = graceful.watcher();
        tokio::spawn(async move {
            metrics.connections.inc();
            let done = match acceptor {
                Some(acceptor) => secure(stream, address.ip(), acceptor, router, watcher).await,
                None => {
                    let peer = Peer {
                        subject: None,
                        address: address.ip(),
                    };
                    speak(stream, peer, router, watcher).await
                }
            };
            if let Err(why) = done {
                debug!(%address, "connection: {why}");
            }
            metrics.connections.dec();
            drop(place);
        });
    }
    drop(listener);
    if let Ok(graceful) = Arc::try_unwrap(graceful) {
        graceful.shutdown().await;
    }
}

type Watcher = hyper_util::server::graceful::Watcher;

async fn secure(
    stream: TcpStream,
    address: IpAddr,
    acceptor: TlsAcceptor,
    router: Router,
    watcher: Watcher,
) -> Result<(), String> {
    let stream = tokio::time::timeout(limits::HANDSHAKE_TIME, acceptor.accept(stream))
        .await
        .map_err(|_| "the TLS handshake took too long".to_owned())?
        .map_err(|error| format!("TLS: {error}"))?;
    let (_, session) = stream.get_ref();
    let subject = session
        .peer_certificates()
        .and_then(|chain| chain.first())
        .and_then(|leaf| x509_cert::Certificate::from_der(leaf).ok())
        .map(|leaf| leaf.tbs_certificate().subject().to_string());
    speak(stream, Peer { subject, address }, router, watcher).await
}

async fn speak(
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    peer: Peer,
    router: Router,
    watcher: Watcher,
) -> Result<(), String> {
    let router = router.layer(axum::Extension(peer));
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(limits::HEADER_TIME)
        .max_buf_size(limits::HEADERS)
        .serve_connection(TokioIo::new(stream), TowerToHyperService::new(router));
    watcher
        .watch(connection)
        .await
        .map_err(|error| error.to_string())
}

/// Binds a port.
pub(crate) async fn bind(address: SocketAddr) -> std::io::Result<TcpListener> {
    TcpListener::bind(address).await
}
