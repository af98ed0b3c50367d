//! HTTP against a small server that does one thing after the other on a real socket.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant, SystemTime};

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;

use super::{HttpConfig, HttpNetwork, NetworkConfigError, TlsFile, retry_after};
use crate::Network;
use crate::wit::network::{NetworkError, Request, Response};

/// What the server does with a request.
pub(super) enum Step {
    /// Sends these bytes and goes on with the connection.
    Say(Vec<u8>),
    /// Sends these bytes and closes.
    SayAndClose(Vec<u8>),
    /// Never answers.
    Silence,
}

/// A server on loopback.
pub(super) struct Server {
    pub(super) url: String,
    /// Each request as it came, with the number of its connection.
    pub(super) seen: Arc<Mutex<Vec<(usize, String)>>>,
}

impl Server {
    async fn start(steps: impl IntoIterator<Item = Step>) -> Server {
        Server::start_with(None, steps).await
    }

    /// With TLS under the name `localhost`, if there is an acceptor.
    pub(super) async fn start_with(
        tls: Option<TlsAcceptor>,
        steps: impl IntoIterator<Item = Step>,
    ) -> Server {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let base = match tls {
            None => format!("http://{address}"),
            Some(_) => format!("https://localhost:{}", address.port()),
        };
        let seen = Arc::new(Mutex::new(Vec::new()));
        let steps = Arc::new(Mutex::new(steps.into_iter().collect::<VecDeque<_>>()));
        let heard = seen.clone();
        tokio::spawn(async move {
            for number in 0.. {
                let (stream, _) = listener.accept().await.unwrap();
                let (tls, steps, heard) = (tls.clone(), steps.clone(), heard.clone());
                tokio::spawn(async move {
                    match tls {
                        None => serve(stream, number, steps, heard).await,
                        Some(tls) => {
                            if let Ok(stream) = tls.accept(stream).await {
                                serve(stream, number, steps, heard).await;
                            }
                        }
                    }
                });
            }
        });
        Server {
            url: format!("{base}/pkix/"),
            seen,
        }
    }

    pub(super) fn connections(&self) -> Vec<usize> {
        self.seen.lock().unwrap().iter().map(|(n, _)| *n).collect()
    }
}

async fn serve(
    mut stream: impl AsyncRead + AsyncWrite + Unpin,
    number: usize,
    steps: Arc<Mutex<VecDeque<Step>>>,
    seen: Arc<Mutex<Vec<(usize, String)>>>,
) {
    let mut pending = Vec::new();
    loop {
        let request = loop {
            if let Some(request) = whole_request(&mut pending) {
                break request;
            }
            if stream.read_buf(&mut pending).await.unwrap_or(0) == 0 {
                return;
            }
        };
        seen.lock().unwrap().push((number, request));
        let step = steps.lock().unwrap().pop_front();
        match step {
            Some(Step::Say(bytes)) => {
                stream.write_all(&bytes).await.unwrap();
                stream.flush().await.unwrap();
            }
            Some(Step::SayAndClose(bytes)) => {
                // The client may have had enough before the end.
                let _ = stream.write_all(&bytes).await;
                return;
            }
            Some(Step::Silence) | None => std::future::pending().await,
        }
    }
}

/// The first whole request of what has come.
fn whole_request(pending: &mut Vec<u8>) -> Option<String> {
    let text = String::from_utf8_lossy(pending).into_owned();
    let (head, _) = text.split_once("\r\n\r\n")?;
    let length: usize = head.lines().find_map(|line| {
        line.to_lowercase()
            .strip_prefix("content-length: ")?
            .parse()
            .ok()
    })?;
    let end = head.len() + 4 + length;
    if pending.len() < end {
        return None;
    }
    let request = pending.drain(..end).collect::<Vec<_>>();
    Some(String::from_utf8_lossy(&request).into_owned())
}

fn answer(status: &str, headers: &str, body: &[u8]) -> Vec<u8> {
    let head = format!(
        "HTTP/1.1 {status}\r\ncontent-length: {}\r\n{headers}\r\n",
        body.len()
    );
    [head.as_bytes(), body].concat()
}

pub(super) fn ok(body: &[u8]) -> Vec<u8> {
    answer("200 OK", "content-type: application/pkixcmp\r\n", body)
}

fn network() -> HttpNetwork {
    HttpNetwork::new(HttpConfig::default()).unwrap()
}

pub(super) fn request(url: &str) -> Request {
    Request {
        endpoint: url.to_owned(),
        message: b"message".to_vec(),
        timeout_ms: 5000,
        response_limit: 100_000,
    }
}

async fn exchange(url: &str) -> Result<Response, NetworkError> {
    network().exchange(request(url)).await
}

#[tokio::test]
async fn a_message_is_posted_and_its_answer_returned() {
    let server = Server::start([Step::Say(ok(b"answer"))]).await;
    let response = exchange(&server.url).await.unwrap();
    let expected = Response {
        status: 200,
        content_type: Some("application/pkixcmp".to_owned()),
        retry_after: None,
        location: None,
        body: b"answer".to_vec(),
    };
    assert_eq!(response, expected);
    let seen = server.seen.lock().unwrap();
    let request = seen[0].1.to_lowercase();
    assert!(request.starts_with("post /pkix/ http/1.1\r\n"), "{request}");
    assert!(request.ends_with("\r\n\r\nmessage"), "{request}");
    for header in [
        "content-type: application/pkixcmp",
        "accept: application/pkixcmp",
        "connection: keep-alive",
        "content-length: 7",
    ] {
        let count = request.matches(&format!("\r\n{header}\r\n")).count();
        assert_eq!(count, 1, "{header} in {request}");
    }
    assert!(!request.contains("transfer-encoding"), "{request}");
}

#[tokio::test]
async fn every_status_is_an_answer_and_redirects_are_not_followed() {
    let moved = answer("302 Found", "location: http://127.0.0.1:1/\r\n", b"");
    let html = answer("404 Not Found", "content-type: text/html\r\n", b"<html>");
    let busy = answer("503 Busy", "retry-after: 120\r\n", b"later");
    let server = Server::start([moved, html, busy].map(Step::Say)).await;
    let network = network();
    let response = network.exchange(request(&server.url)).await.unwrap();
    assert_eq!(response.status, 302);
    assert_eq!(response.location.as_deref(), Some("http://127.0.0.1:1/"));
    let response = network.exchange(request(&server.url)).await.unwrap();
    assert_eq!(response.status, 404);
    assert_eq!(response.content_type.as_deref(), Some("text/html"));
    assert_eq!(response.body, b"<html>");
    let response = network.exchange(request(&server.url)).await.unwrap();
    assert_eq!((response.status, response.retry_after), (503, Some(120)));
    // All over one connection.
    assert_eq!(server.connections(), [0, 0, 0]);
}

#[tokio::test]
async fn a_connection_that_was_closed_while_idle_is_replaced() {
    let server = Server::start([
        Step::SayAndClose(ok(b"1")),
        Step::SayAndClose(ok(b"2")),
        Step::Say(ok(b"3")),
    ])
    .await;
    let network = network();
    for expected in [b"1", b"2", b"3"] {
        let response = network.exchange(request(&server.url)).await.unwrap();
        assert_eq!(response.body, expected);
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    assert_eq!(server.connections(), [0, 1, 2]);
}

#[tokio::test]
async fn a_request_that_was_sent_is_not_sent_again() {
    // On a fresh connection, and on one that was used before.
    let server = Server::start([
        Step::SayAndClose(Vec::new()),
        Step::Say(ok(b"1")),
        Step::SayAndClose(Vec::new()),
        Step::SayAndClose(b"HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\nhalf".to_vec()),
    ])
    .await;
    let network = network();
    let error = network.exchange(request(&server.url)).await.unwrap_err();
    assert!(matches!(error, NetworkError::Interrupted(_)), "{error:?}");
    network.exchange(request(&server.url)).await.unwrap();
    for _ in 0..2 {
        let error = network.exchange(request(&server.url)).await.unwrap_err();
        let NetworkError::Interrupted(text) = error else {
            panic!("{error:?}")
        };
        assert!(text.starts_with(&server.url), "{text}");
        assert!(!text.contains('\n'), "{text}");
    }
    assert_eq!(server.connections(), [0, 1, 1, 2]);
}

#[tokio::test]
async fn a_large_answer_is_cut_off() {
    let announced = b"HTTP/1.1 200 OK\r\ncontent-length: 20000000\r\n\r\n".to_vec();
    // 20 MB in chunks, without a length.
    let mut chunked = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n".to_vec();
    for _ in 0..20 {
        chunked.extend_from_slice(b"f4240\r\n");
        chunked.resize(chunked.len() + 1_000_000, b'x');
        chunked.extend_from_slice(b"\r\n");
    }
    chunked.extend_from_slice(b"0\r\n\r\n");
    for bytes in [announced, chunked] {
        let server = Server::start([Step::SayAndClose(bytes)]).await;
        let error = exchange(&server.url).await.unwrap_err();
        assert_eq!(error, NetworkError::TooLarge(100_000));
    }
    let server = Server::start([Step::Say(ok(&vec![7; 100_000]))]).await;
    let response = exchange(&server.url).await.unwrap();
    assert_eq!(response.body, vec![7; 100_000]);
}

#[tokio::test]
async fn silence_ends_with_the_time() {
    let half = b"HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\nhalf".to_vec();
    for step in [Step::Silence, Step::Say(half)] {
        let server = Server::start([step]).await;
        let mut request = request(&server.url);
        request.timeout_ms = 200;
        let begin = Instant::now();
        let error = network().exchange(request).await.unwrap_err();
        let NetworkError::Timeout(text) = error else {
            panic!("{error:?}")
        };
        assert!(text.starts_with(&server.url), "{text}");
        assert!(begin.elapsed() >= Duration::from_millis(200));
        assert!(begin.elapsed() < Duration::from_secs(4));
    }
}

#[tokio::test]
async fn what_is_no_http_is_interrupted() {
    let server = Server::start([Step::SayAndClose(vec![0x30, 0x82, 0x01, 0x00])]).await;
    let error = exchange(&server.url).await.unwrap_err();
    assert!(matches!(error, NetworkError::Interrupted(_)), "{error:?}");
}

#[tokio::test]
async fn nobody_there_is_unreachable() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let refused = format!("http://{}/", listener.local_addr().unwrap());
    drop(listener);
    // The top-level domain that never exists (RFC 6761, 6.4).
    for url in [refused.as_str(), "http://ca.invalid/pkix/"] {
        let error = exchange(url).await.unwrap_err();
        let NetworkError::Unreachable(text) = error else {
            panic!("{error:?}")
        };
        assert!(text.starts_with(url), "{text}");
        assert!(!text.contains('\n'), "{text}");
    }
    let error = exchange(&refused).await.unwrap_err();
    assert!(format!("{error:?}").contains("refused"), "{error:?}");
}

#[tokio::test]
async fn urls_that_cannot_be_used_are_named() {
    for (url, expected) in [
        ("ca.example", "ca.example: "),
        ("ftp://ca.example/", "ftp://ca.example/: the URL must begin"),
        ("", ": "),
        ("http://", "http://: "),
    ] {
        let error = exchange(url).await.unwrap_err();
        let NetworkError::BadEndpoint(text) = error else {
            panic!("{url}: {error:?}")
        };
        assert!(text.starts_with(expected), "{text}");
    }
    let error = exchange("http://me:secret@ca.example/").await.unwrap_err();
    let NetworkError::BadEndpoint(text) = error else {
        panic!("{error:?}")
    };
    assert!(!text.contains("secret"), "{text}");
}

#[tokio::test]
async fn https_to_a_plain_server_is_a_tls_failure() {
    let server = Server::start([]).await;
    // The server waits for the end of a request; this closes the connection instead.
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("https://{}/", listener.local_addr().unwrap());
    tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        stream
            .write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n")
            .await
            .unwrap();
        let _ = stream.read(&mut [0; 1000]).await;
    });
    let error = exchange(&url).await.unwrap_err();
    assert!(matches!(error, NetworkError::Tls(_)), "{error:?}");
    assert_eq!(server.connections(), [0; 0]);
}

#[test]
fn tls_files_without_certificates_are_named() {
    let file = |contents: &[u8]| TlsFile {
        name: "roots.pem".to_owned(),
        contents: contents.to_vec().into(),
    };
    for contents in [&b""[..], b"text", b"-----BEGIN CERTIFICATE-----\nAAAA"] {
        let error = HttpNetwork::new(HttpConfig {
            trusted: vec![file(contents)],
            ..HttpConfig::default()
        })
        .unwrap_err();
        let name = "roots.pem".to_owned();
        assert_eq!(error, NetworkConfigError::NoCertificate { name });
    }
    let error = HttpNetwork::new(HttpConfig {
        trusted: vec![file(&[0x30, 0])],
        ..HttpConfig::default()
    })
    .unwrap_err();
    assert!(
        matches!(error, NetworkConfigError::BadCertificate { .. }),
        "{error}"
    );
}

#[test]
fn retry_after_is_seconds_or_a_date() {
    // RFC 9110, 10.2.3 gives both as examples; the date is 946 684 799 seconds after the epoch
    // (`date -d 'Fri, 31 Dec 1999 23:59:59 GMT' +%s`).
    let at = SystemTime::UNIX_EPOCH + Duration::from_secs(946_684_799);
    let before = at - Duration::from_millis(89_500);
    let date = "Fri, 31 Dec 1999 23:59:59 GMT";
    assert_eq!(retry_after("120", at), Some(120));
    assert_eq!(retry_after(" 0 ", at), Some(0));
    assert_eq!(retry_after(date, before), Some(90));
    assert_eq!(retry_after(date, at), Some(0));
    assert_eq!(retry_after(date, at + Duration::from_secs(10)), Some(0));
    assert_eq!(retry_after("99999999999999999999999", at), Some(u64::MAX));
    for nonsense in ["", "soon", "-1", "1.5", "Fri, 31 Foo 1999"] {
        assert_eq!(retry_after(nonsense, at), None, "{nonsense}");
    }
}
