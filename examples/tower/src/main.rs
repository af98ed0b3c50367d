//! A tower layer in front of a service that speaks CMP: what is no message never gets there, and
//! nobody asks too often. Everything that reads a message runs in the sandbox.
//! `example-tower 127.0.0.1:8080` serves.

use std::collections::HashMap;
use std::future::Future;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::{SystemTime, UNIX_EPOCH};

use abide_host::wit::admission::{Caller, Outcome};
use abide_host::wit::message::Leniency;
use abide_host::{Gate, HostError, Limiter, Runtime, RuntimeConfig};
use axum::body::Body;
use axum::http::{HeaderMap, Request, Response, StatusCode};
use axum::{Router, routing::post};
use http_body_util::{BodyExt, Limited};
use tower::{Layer, Service};

/// Octets of a message.
const LARGEST: usize = 64 << 10;

/// Requests of each sender in ten seconds; the names that senders give themselves are no proof.
const POLICY: &str = r#"{"enabled":true,"learning":false,"capacity":5,"rate_seconds":10}"#;

/// Puts a gate before a service.
#[derive(Clone)]
struct GateLayer {
    gate: Gate,
    limiter: Arc<Limiter>,
}

/// A service with a gate before it.
#[derive(Clone)]
struct Gated<S> {
    layer: GateLayer,
    inner: S,
}

impl<S> Layer<S> for GateLayer {
    type Service = Gated<S>;

    fn layer(&self, inner: S) -> Gated<S> {
        let layer = self.clone();
        Gated { layer, inner }
    }
}

impl<S> Service<Request<Body>> for Gated<S>
where
    S: Service<Request<Body>, Response = Response<Body>> + Clone + Send + 'static,
    S::Future: Send,
{
    type Response = Response<Body>;
    type Error = S::Error;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, S::Error>> + Send>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let layer = self.layer.clone();
        let clone = self.inner.clone();
        let mut inner = std::mem::replace(&mut self.inner, clone);
        Box::pin(async move {
            let (head, body) = request.into_parts();
            let Ok(body) = Limited::new(body, LARGEST).collect().await else {
                return Ok(refused(StatusCode::PAYLOAD_TOO_LARGE, "too large".into()));
            };
            let body = body.to_bytes();
            let headers = match layer.judge(&body).await {
                Ok(Ok(headers)) => headers,
                Ok(Err(answer)) => return Ok(*answer),
                Err(error) => {
                    let text = format!("the sandbox failed: {error}");
                    return Ok(refused(StatusCode::INTERNAL_SERVER_ERROR, text));
                }
            };
            let request = Request::from_parts(head, Body::from(body));
            let mut answer = inner.call(request).await?;
            add(&mut answer, headers);
            Ok(answer)
        })
    }
}

/// The headers of the answer, or all of it.
type Verdict = Result<Vec<(String, String)>, Box<Response<Body>>>;

impl GateLayer {
    async fn judge(&self, message: &[u8]) -> Result<Verdict, HostError> {
        let summary = match self.gate.decode(message, Leniency::empty()).await? {
            Ok(summary) => summary,
            Err(error) => {
                let (offset, rule) = (error.offset, error.rule);
                let text = format!("no CMP message: at octet {offset}: {rule}");
                return Ok(Err(Box::new(refused(StatusCode::BAD_REQUEST, text))));
            }
        };
        let caller = Caller {
            authenticated: None,
            app: Some(summary.sender),
            address: None,
        };
        let now = SystemTime::now().duration_since(UNIX_EPOCH);
        let now_ms = now.map_or(0, |age| age.as_millis() as u64);
        let answer = self.limiter.admit(&caller, None, 1, now_ms).await?;
        let headers = self.limiter.headers(answer, now_ms).await?;
        if answer.outcome == Outcome::Throttled {
            let mut answer = refused(StatusCode::TOO_MANY_REQUESTS, "too often".into());
            add(&mut answer, headers);
            return Ok(Err(Box::new(answer)));
        }
        Ok(Ok(headers))
    }
}

fn refused(status: StatusCode, text: String) -> Response<Body> {
    let mut answer = Response::new(Body::from(text));
    *answer.status_mut() = status;
    answer
}

fn add(answer: &mut Response<Body>, headers: Vec<(String, String)>) {
    let headers: HashMap<_, _> = headers.into_iter().collect();
    let headers = HeaderMap::try_from(&headers).unwrap_or_default();
    answer.headers_mut().extend(headers);
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let listen = std::env::args()
        .nth(1)
        .ok_or("usage: example-tower ADDRESS")?;
    let gate = Runtime::new(RuntimeConfig::default())?.gate();
    let limiter = gate.limiter(POLICY).await?;
    let limiter = Arc::new(limiter.map_err(|mistakes| format!("{mistakes:?}"))?);
    let passed = async |body: bytes::Bytes| format!("{} octets passed", body.len());
    let router = Router::new()
        .fallback(post(passed))
        .layer(GateLayer { gate, limiter });
    let listener = tokio::net::TcpListener::bind(listen.parse::<SocketAddr>()?).await?;
    println!("http://{}", listener.local_addr()?);
    axum::serve(listener, router).await?;
    Ok(())
}
