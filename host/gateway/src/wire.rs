//! Connections to one CA: kept, and each used by one request at a time.
//!
//! A request is written once. Only where it is certain that nothing of it was sent may it go over
//! another connection, or to another CA: who has seen a request may have issued a certificate.

use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use futures_util::FutureExt as _;
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper::client::conn::http1::{self, SendRequest};
use hyper::header::HeaderMap;
use hyper::{Request, StatusCode};
use hyper_util::rt::TokioIo;
use rustls_pki_types::ServerName;
use tokio::net::TcpStream;
use tokio::time::{Instant, timeout, timeout_at};
use tokio_rustls::TlsConnector;

use crate::limits;

/// Where a CA is, and the connections to it.
pub(crate) struct Wires {
    host: String,
    port: u16,
    tls: Option<(TlsConnector, ServerName<'static>)>,
    kept: Mutex<Vec<Wire>>,
}

/// One connection. It is driven by whoever uses it, so no other task has to be woken for it.
struct Wire {
    sender: SendRequest<Full<Bytes>>,
    /// `None` when it has ended.
    driver: Option<Driver>,
    used: Instant,
}

type Driver = Pin<Box<dyn Future<Output = hyper::Result<()>> + Send>>;

/// A whole answer.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
}

/// Why there is no answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum WireError {
    /// Nothing of the request was sent.
    NotSent(String),
    /// It was sent, or may have been, and no answer came.
    NoAnswer(String),
    /// The answer has more octets than are taken.
    TooLong(usize),
}

impl Wires {
    pub(crate) fn new(host: String, port: u16, tls: Option<Arc<rustls::ClientConfig>>) -> Self {
        let name = ServerName::try_from(host.clone());
        let tls = tls.and_then(|config| Some((TlsConnector::from(config), name.ok()?)));
        Wires {
            host,
            port,
            tls,
            kept: Mutex::default(),
        }
    }

    /// Sends one request and takes its whole answer.
    pub(crate) async fn exchange(
        &self,
        mut request: Request<Full<Bytes>>,
        patience: Duration,
        most: usize,
    ) -> Result<Answer, WireError> {
        let until = Instant::now() + patience;
        loop {
            let (mut wire, fresh) = match self.take() {
                Some(wire) => (wire, false),
                None => (self.connect().await?, true),
            };
            let response = match timeout_at(until, wire.send(request)).await {
                Err(_) => return Err(no_answer_within(patience)),
                Ok(Ok(response)) => response,
                Ok(Err(mut error)) => match (error.take_message(), fresh) {
                    // The CA had closed a kept connection: nobody has seen the request.
                    (Some(back), false) => {
                        request = back;
                        continue;
                    }
                    (Some(_), true) => {
                        let why = reason(&error.into_error());
                        return Err(WireError::NotSent(why));
                    }
                    (None, _) => {
                        let why = reason(&error.into_error());
                        return Err(WireError::NoAnswer(why));
                    }
                },
            };
            let (head, body) = response.into_parts();
            let body = match timeout_at(until, wire.receive(body, most)).await {
                Err(_) => return Err(no_answer_within(patience)),
                Ok(body) => body?,
            };
            if wire.is_free() {
                self.keep(wire);
            }
            return Ok(Answer {
                status: head.status,
                headers: head.headers,
                body,
            });
        }
    }

    /// The connection that was used last and still lives.
    fn take(&self) -> Option<Wire> {
        loop {
            let mut wire = self.kept().pop()?;
            let ended = wire
                .driver
                .as_mut()
                .is_none_or(|driver| driver.now_or_never().is_some());
            if !ended && wire.used.elapsed() < limits::KEPT_TIME && wire.sender.is_ready() {
                return Some(wire);
            }
        }
    }

    fn keep(&self, mut wire: Wire) {
        wire.used = Instant::now();
        let mut kept = self.kept();
        if kept.len() < limits::KEPT {
            kept.push(wire);
        }
    }

    /// Closes connections that nobody has used for a while.
    pub(crate) fn sweep(&self) {
        self.kept()
            .retain(|wire| wire.used.elapsed() < limits::KEPT_TIME);
    }

    fn kept(&self) -> MutexGuard<'_, Vec<Wire>> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn connect(&self) -> Result<Wire, WireError> {
        match timeout(limits::CONNECT_TIME, self.connected()).await {
            Ok(Ok(wire)) => Ok(wire),
            Ok(Err(why)) => Err(WireError::NotSent(why)),
            Err(_) => Err(WireError::NotSent(format!(
                "no connection within {} s",
                limits::CONNECT_TIME.as_secs()
            ))),
        }
    }

    async fn connected(&self) -> Result<Wire, String> {
        let stream = TcpStream::connect((self.host.as_str(), self.port))
            .await
            .map_err(|error| error.to_string())?;
        // Messages are written at once: nothing is gained by waiting for more.
        let _ = stream.set_nodelay(true);
        match &self.tls {
            None => wire(stream).await,
            Some((connector, name)) => {
                let stream = connector
                    .connect(name.clone(), stream)
                    .await
                    .map_err(|error| format!("TLS: {error}"))?;
                wire(stream).await
            }
        }
    }
}

impl std::fmt::Debug for Wires {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Wires")
            .field("host", &self.host)
            .field("port", &self.port)
            .finish_non_exhaustive()
    }
}

async fn wire<S>(stream: S) -> Result<Wire, String>
where
    S: tokio::io::AsyncRead + tokio::io::AsyncWrite + Unpin + Send + 'static,
{
    let (sender, connection) = http1::Builder::new()
        .max_buf_size(limits::HEAD)
        .handshake(TokioIo::new(stream))
        .await
        .map_err(|error| reason(&error))?;
    Ok(Wire {
        sender,
        driver: Some(Box::pin(connection)),
        used: Instant::now(),
    })
}

type Sent =
    Result<hyper::Response<Incoming>, hyper::client::conn::TrySendError<Request<Full<Bytes>>>>;

impl Wire {
    async fn send(&mut self, request: Request<Full<Bytes>>) -> Sent {
        let sent = self.sender.try_send_request(request);
        drive(&mut self.driver, sent).await
    }

    async fn receive(&mut self, mut body: Incoming, most: usize) -> Result<Bytes, WireError> {
        let receive = async move {
            let mut first = Bytes::new();
            let mut whole: Option<BytesMut> = None;
            while let Some(frame) = body.frame().await {
                let frame = frame.map_err(|error| WireError::NoAnswer(reason(&error)))?;
                let Ok(data) = frame.into_data() else {
                    continue;
                };
                let so_far = whole.as_ref().map_or(first.len(), BytesMut::len);
                if so_far + data.len() > most {
                    return Err(WireError::TooLong(most));
                }
                match &mut whole {
                    None if first.is_empty() => first = data,
                    None => {
                        let mut both = BytesMut::from(first.as_ref());
                        both.extend_from_slice(&data);
                        whole = Some(both);
                    }
                    Some(whole) => whole.extend_from_slice(&data),
                }
            }
            Ok(whole.map_or(first, BytesMut::freeze))
        };
        drive(&mut self.driver, receive).await
    }

    /// Whether it can be used for another request at once: one that would have to be waited for
    /// is not worth it.
    fn is_free(&mut self) -> bool {
        let Wire { sender, driver, .. } = self;
        let ready = drive(driver, sender.ready()).now_or_never();
        driver.is_some() && matches!(ready, Some(Ok(())))
    }
}

/// Does something while the connection moves.
async fn drive<T>(driver: &mut Option<Driver>, what: impl Future<Output = T>) -> T {
    let mut what = pin!(what);
    poll_fn(|cx| {
        if let Some(connection) = driver
            && connection.as_mut().poll(cx).is_ready()
        {
            *driver = None;
        }
        what.as_mut().poll(cx)
    })
    .await
}

fn no_answer_within(patience: Duration) -> WireError {
    WireError::NoAnswer(format!("no answer within {} s", patience.as_secs()))
}

/// An error with its causes, in one line.
fn reason(error: &hyper::Error) -> String {
    let mut text = error.to_string();
    let mut cause = std::error::Error::source(error);
    while let Some(error) = cause {
        text.push_str(": ");
        text.push_str(&error.to_string());
        cause = error.source();
    }
    text
}
