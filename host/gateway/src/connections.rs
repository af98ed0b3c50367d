//! Sockets: a bounded number of connections, each bounded in time, over TLS or not, closed in
//! good order at the end.

use std::collections::HashMap;
use std::convert::Infallible;
use std::net::{IpAddr, Ipv6Addr};
use std::pin::pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use hyper::Request;
use hyper::body::Incoming;
use hyper::header::{self, HeaderValue};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, watch as signal};
use tokio::time::timeout;
use tokio_rustls::TlsAcceptor;
use tracing::{debug, warn};
use x509_cert::der::Decode;

use crate::config::ReadyBounds;
use crate::limits;
use crate::metrics::{Metrics, Why};
use crate::proxy::{Peer, Proxy};
use crate::watch::{Connection, Cut, Watched};

/// A listener with what its connections need.
pub(crate) struct Doors {
    pub(crate) listener: TcpListener,
    pub(crate) tls: Option<Arc<rustls::ServerConfig>>,
    pub(crate) proxy: Arc<Proxy>,
    pub(crate) drain: Duration,
}

impl Doors {
    /// Serves until it is told to stop, then lets running requests end, for as long as `drain`.
    pub(crate) async fn serve(self, mut stop: signal::Receiver<bool>) {
        let bounds = self.proxy.bounds;
        let places = Arc::new(Semaphore::new(bounds.connections as usize));
        let crowd = Arc::new(Crowd::default());
        let acceptor = self.tls.map(TlsAcceptor::from);
        loop {
            // A place first: who has none waits in the kernel's queue, not here.
            let place = tokio::select! {
                place = places.clone().acquire_owned() => place,
                _ = stop.changed() => break,
            };
            let Ok(place) = place else { break };
            let accepted = tokio::select! {
                accepted = self.listener.accept() => accepted,
                _ = stop.changed() => break,
            };
            let (stream, address) = match accepted {
                Ok(accepted) => accepted,
                Err(error) => {
                    // The listener is well, and others may close some.
                    warn!("a connection cannot be accepted: {error}");
                    tokio::time::sleep(limits::ACCEPT_GAP).await;
                    continue;
                }
            };
            let address = address.ip().to_canonical();
            let metrics = self.proxy.metrics.clone();
            let Some(seat) = crowd.seat(address, bounds.connections_per_address) else {
                cut(&metrics, "per-address");
                debug!(%address, "too many connections from one address");
                continue;
            };
            // Answers are written at once: nothing is gained by waiting for more.
            let _ = stream.set_nodelay(true);
            let (acceptor, proxy, stop) = (acceptor.clone(), self.proxy.clone(), stop.clone());
            tokio::spawn(async move {
                metrics.connections.inc();
                let peer = Peer {
                    address,
                    subject: None,
                };
                if let Err(why) = converse(stream, acceptor, peer, &proxy, bounds, stop).await {
                    debug!(%address, "connection: {why}");
                }
                metrics.connections.dec();
                drop((seat, place));
            });
        }
        drop(self.listener);
        let all = places.acquire_many(bounds.connections);
        if timeout(self.drain, all).await.is_err() {
            warn!("requests that took too long are given up");
        }
    }
}

fn cut(metrics: &Metrics, reason: &'static str) {
    metrics.cut.get_or_create(&Why { reason }).inc();
}

async fn converse(
    stream: TcpStream,
    acceptor: Option<TlsAcceptor>,
    mut peer: Peer,
    proxy: &Proxy,
    bounds: ReadyBounds,
    stop: signal::Receiver<bool>,
) -> Result<(), String> {
    let Some(acceptor) = acceptor else {
        return speak(stream, peer, proxy, bounds, stop).await;
    };
    let shaken = timeout(limits::HANDSHAKE_TIME, acceptor.accept(stream)).await;
    let stream = match shaken {
        Ok(Ok(stream)) => stream,
        Ok(Err(error)) => {
            cut(&proxy.metrics, "tls");
            return Err(format!("TLS: {error}"));
        }
        Err(_) => {
            cut(&proxy.metrics, "slow-tls");
            return Err("the TLS handshake took too long".to_owned());
        }
    };
    let (_, session) = stream.get_ref();
    peer.subject = session
        .peer_certificates()
        .and_then(|chain| chain.first())
        .and_then(|leaf| x509_cert::Certificate::from_der(leaf).ok())
        .map(|leaf| leaf.tbs_certificate().subject().to_string())
        .filter(|subject| !subject.is_empty());
    speak(stream, peer, proxy, bounds, stop).await
}

async fn speak(
    stream: impl AsyncRead + AsyncWrite + Unpin + Send,
    peer: Peer,
    proxy: &Proxy,
    bounds: ReadyBounds,
    mut stop: signal::Receiver<bool>,
) -> Result<(), String> {
    let connection = Connection::default();
    let watched = Watched::new(stream, &connection, bounds.patience);
    let service = service_fn(|request: Request<Incoming>| {
        let (pipelined, number) = connection.begin();
        if pipelined {
            proxy.metrics.pipelined.inc();
        }
        let (peer, connection) = (&peer, &connection);
        async move {
            let mut reply = proxy.serve(request, peer).await;
            if number >= limits::REQUESTS_PER_CONNECTION {
                let close = HeaderValue::from_static("close");
                reply.headers_mut().insert(header::CONNECTION, close);
            }
            connection.end();
            Ok::<_, Infallible>(reply)
        }
    });
    let served = http1::Builder::new()
        .timer(TokioTimer::new())
        // `Watched` has the clocks, and tells which of them it was.
        .header_read_timeout(None)
        .max_buf_size(limits::HEAD)
        .serve_connection(TokioIo::new(watched), service);
    let mut served = pin!(served);
    let done = tokio::select! {
        done = served.as_mut() => done,
        _ = stop.changed() => {
            served.as_mut().graceful_shutdown();
            served.await
        }
    };
    if let Some(why) = connection.cut() {
        let reason = match why {
            Cut::Idle => "idle",
            Cut::SlowHead => "slow-head",
            Cut::SlowReader => "slow-reader",
        };
        cut(&proxy.metrics, reason);
    } else if done.as_ref().is_err_and(hyper::Error::is_parse) {
        cut(&proxy.metrics, "bad-head");
    }
    done.map_err(|error| error.to_string())
}

/// How many connections each address has.
#[derive(Debug, Default)]
struct Crowd(Mutex<HashMap<IpAddr, u32>>);

/// One of them.
#[derive(Debug)]
struct Seat {
    crowd: Arc<Crowd>,
    address: IpAddr,
}

impl Crowd {
    fn seat(self: &Arc<Self>, address: IpAddr, most: u32) -> Option<Seat> {
        let address = network(address);
        let mut crowd = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let taken = crowd.entry(address).or_default();
        if *taken >= most {
            return None;
        }
        *taken += 1;
        Some(Seat {
            crowd: self.clone(),
            address,
        })
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        let mut crowd = self.crowd.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(taken) = crowd.get_mut(&self.address) {
            *taken -= 1;
            if *taken == 0 {
                crowd.remove(&self.address);
            }
        }
    }
}

/// Whoever has one address of an IPv6 /64 has them all.
fn network(address: IpAddr) -> IpAddr {
    match address {
        IpAddr::V6(address) => IpAddr::V6(Ipv6Addr::from_bits(address.to_bits() >> 64 << 64)),
        address => address,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seats_of_one_address_are_bounded_and_come_back() {
        let crowd = Arc::new(Crowd::default());
        let one: IpAddr = "2001:db8::1".parse().expect("an address");
        let neighbour: IpAddr = "2001:db8::ffff".parse().expect("an address");
        let other: IpAddr = "192.0.2.1".parse().expect("an address");
        let first = crowd.seat(one, 2).expect("a seat");
        let _second = crowd.seat(neighbour, 2).expect("a seat");
        assert!(crowd.seat(one, 2).is_none());
        let _third = crowd.seat(other, 2).expect("a seat for somebody else");
        drop(first);
        assert!(crowd.seat(one, 2).is_some());
        assert_eq!(crowd.0.lock().expect("no panic").len(), 2);
    }
}
