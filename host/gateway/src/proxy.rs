//! One request, from its head to its answer.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use abide_host::HostError;
use abide_host::wit::admission::{Caller, Mode, Outcome};
use abide_host::wit::message::Summary;
use abide_host::wit::placement::Criteria;
use abide_service::input::text::{hex, printable};
use bytes::{Bytes, BytesMut};
use http_body_util::{BodyExt as _, Full};
use hyper::body::{Body as _, Incoming};
use hyper::header::{self, HeaderMap, HeaderName, HeaderValue};
use hyper::http::request;
use hyper::{Method, Request, Response, StatusCode};
use tokio::time::timeout;
use tracing::{info, warn};

use crate::config::ReadyBounds;
use crate::hops::{self, Hops};
use crate::judge::{self, Judge, Proof};
use crate::limiter::{Admission, Limiting};
use crate::metrics::{self, Metrics, UpstreamOutcome, Why};
use crate::refusal::{Errors, Reason, Refusal};
use crate::upstream::{Upstream, Upstreams};
use crate::wire::{Answer, WireError};

/// Everything that serves requests.
#[derive(Debug)]
pub(crate) struct Proxy {
    pub(crate) judge: Judge,
    pub(crate) limiting: Limiting,
    pub(crate) upstreams: Upstreams,
    pub(crate) hops: Hops,
    pub(crate) bounds: ReadyBounds,
    pub(crate) strict_status: bool,
    pub(crate) errors: Errors,
    pub(crate) metrics: Arc<Metrics>,
}

/// Who is at the other end of a connection, as the connection tells.
#[derive(Debug, Clone)]
pub(crate) struct Peer {
    pub(crate) address: IpAddr,
    /// The subject of the client's certificate, which was verified.
    pub(crate) subject: Option<String>,
}

/// What is found out about a request on its way.
#[derive(Debug, Default)]
struct Course {
    client: Option<IpAddr>,
    body: Option<Bytes>,
    summary: Option<Summary>,
    caller: Option<Caller>,
    admission: Option<Admission>,
    upstream: Option<Arc<Upstream>>,
}

/// A name that a client gives itself for the limiter.
const APP: &str = "x-ratelimit-app";

type Reply = Response<Full<Bytes>>;

impl Proxy {
    /// Serves a request. It is always answered.
    pub(crate) async fn serve(&self, request: Request<Incoming>, peer: &Peer) -> Reply {
        let began = Instant::now();
        let now = SystemTime::now();
        let now_ms = now.duration_since(UNIX_EPOCH).map_or(0, |since| {
            u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
        });
        let mut course = Course::default();
        let done = self.pass(request, peer, now_ms, &mut course).await;
        let (mut reply, refusal) = match done {
            Ok(reply) => (reply, None),
            Err(refusal) => (self.refuse(&refusal, &course).await, Some(refusal)),
        };
        if let Some(admission) = &course.admission {
            // The times in the headers are told by the same clock as the date.
            let date = HeaderValue::from_str(&httpdate::fmt_http_date(now));
            reply
                .headers_mut()
                .extend(date.ok().map(|date| (header::DATE, date)));
            for (name, value) in &admission.headers {
                let name = HeaderName::from_bytes(name.as_bytes());
                if let (Ok(name), Ok(value)) = (name, HeaderValue::from_str(value)) {
                    reply.headers_mut().insert(name, value);
                }
            }
        }
        let took = began.elapsed();
        let verdict = refusal
            .as_ref()
            .map_or("forwarded", |refusal| refusal.reason.verdict());
        let kind = course
            .summary
            .as_ref()
            .map_or("none", |summary| judge::name(summary.body));
        self.count(refusal.as_ref(), verdict, kind, took);
        if tracing::enabled!(tracing::Level::INFO) {
            self.log(&course, refusal.as_ref(), &reply, (verdict, kind, took))
                .await;
        }
        reply
    }

    async fn pass(
        &self,
        request: Request<Incoming>,
        peer: &Peer,
        now_ms: u64,
        course: &mut Course,
    ) -> Result<Reply, Refusal> {
        let (head, body) = request.into_parts();
        let client = self.hops.client(peer.address, &head.headers);
        course.client = Some(client);
        let mut caller = Caller {
            authenticated: peer.subject.clone(),
            app: named(&head.headers),
            address: Some(client.to_string()),
        };
        let read = match self.look(&head, &body) {
            Ok(()) => self.receive(body).await,
            Err(refusal) => Err(refusal),
        };
        let body = match read {
            Ok(body) => course.body.insert(body).clone(),
            Err(refusal) => return Err(self.charged(caller, now_ms, course, refusal).await),
        };
        let summary = match self.judge.read(&body).await {
            Ok(Ok(summary)) => summary,
            Ok(Err(refusal)) => {
                return Err(self.charged(caller, now_ms, course, refusal).await);
            }
            Err(error) => {
                let refusal = self.broken(&error);
                return Err(self.charged(caller, now_ms, course, refusal).await);
            }
        };
        let summary = course.summary.insert(summary);
        let proof = match self.judge.prove(&body, summary).await {
            Ok(proof) => proof,
            Err(error) => Proof::Failed(self.broken(&error).text),
        };
        match &proof {
            Proof::Proved(name) => caller.authenticated = Some(name.clone()),
            _ if caller.authenticated.is_none() && caller.app.is_none() => {
                caller.app = judge::claimed(summary);
            }
            _ => {}
        }
        let judged = self.judge.pass(summary, &proof);
        self.admit(caller, now_ms, course).await?;
        judged?;
        self.forward(&head, body, peer, course).await
    }

    /// What can be seen before the body.
    fn look(&self, head: &request::Parts, body: &Incoming) -> Result<(), Refusal> {
        if head.method != Method::POST {
            let text = format!(
                "CMP is sent by POST (RFC 9811, 3.1), not by {}",
                head.method
            );
            return Err(Refusal::new(Reason::Method, cut(text)));
        }
        let kind = head.headers.get(header::CONTENT_TYPE);
        if !kind.is_some_and(is_cmp) {
            let text = "the Content-Type must be application/pkixcmp (RFC 9811, 3.2)";
            return Err(Refusal::new(Reason::ContentType, text));
        }
        let coding = head.headers.get(header::CONTENT_ENCODING);
        if coding.is_some_and(|coding| !coding.as_bytes().eq_ignore_ascii_case(b"identity")) {
            let text = "the message must be sent as it is, without a Content-Encoding";
            return Err(Refusal::new(Reason::ContentEncoding, text));
        }
        if body.size_hint().lower() > u64::try_from(self.bounds.body).unwrap_or(u64::MAX) {
            return Err(self.oversize());
        }
        Ok(())
    }

    fn oversize(&self) -> Refusal {
        let most = self.bounds.body;
        let text = format!("the message is too long: this gateway passes {most} octets at most");
        Refusal::new(Reason::Oversize, text)
    }

    /// The body, within its bounds.
    async fn receive(&self, mut body: Incoming) -> Result<Bytes, Refusal> {
        let most = self.bounds.body;
        let receive = async {
            let mut first = Bytes::new();
            let mut whole: Option<BytesMut> = None;
            while let Some(frame) = body.frame().await {
                let frame = frame.map_err(|error| torn(&error))?;
                let Ok(data) = frame.into_data() else {
                    continue;
                };
                let so_far = whole.as_ref().map_or(first.len(), BytesMut::len);
                if so_far + data.len() > most {
                    return Err(self.oversize());
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
        let patience = self.bounds.body_time;
        timeout(patience, receive).await.unwrap_or_else(|_| {
            let seconds = patience.as_secs();
            let text = format!("the message did not arrive within {seconds} s");
            Err(Refusal::new(Reason::SlowBody, text))
        })
    }

    /// A request that is refused all the same is charged to whoever it comes from.
    async fn charged(
        &self,
        caller: Caller,
        now_ms: u64,
        course: &mut Course,
        refusal: Refusal,
    ) -> Refusal {
        match self.admit(caller, now_ms, course).await {
            Ok(()) => refusal,
            Err(throttled) => throttled,
        }
    }

    async fn admit(&self, caller: Caller, now_ms: u64, course: &mut Course) -> Result<(), Refusal> {
        let caller = course.caller.insert(caller);
        let admission = match self.limiting.admit(caller, 1, now_ms).await {
            Ok(Some(admission)) => course.admission.insert(admission),
            Ok(None) => return Ok(()),
            // Nothing is known, so nobody is refused.
            Err(error) => {
                self.broken(&error);
                return Ok(());
            }
        };
        let answer = admission.answer;
        let over = answer.outcome != Outcome::Admitted;
        self.metrics
            .limited(caller.authenticated.as_deref(), over, answer.remaining);
        match answer.outcome {
            Outcome::Admitted => return Ok(()),
            Outcome::WouldThrottle => {
                self.metrics.throttling_learning.inc();
                return Ok(());
            }
            Outcome::Throttled => self.metrics.throttling.inc(),
        };
        let wait = answer.retry_at_ms.map_or(Duration::ZERO, |at| {
            Duration::from_millis(at.saturating_sub(now_ms))
        });
        let text = format!(
            "too many requests: {} are allowed within a span; come again in {} s",
            answer.capacity,
            wait.as_secs_f32().ceil()
        );
        Err(Refusal::new(Reason::Throttled, text))
    }

    /// Sends a message to the first upstream that takes it.
    async fn forward(
        &self,
        head: &request::Parts,
        body: Bytes,
        peer: &Peer,
        course: &mut Course,
    ) -> Result<Reply, Refusal> {
        let criteria = match self.upstreams.chooses() {
            true => criteria(head, course),
            false => nothing(),
        };
        let candidates = match self.upstreams.for_message(&criteria).await {
            Ok(candidates) => candidates,
            Err(error) => return Err(self.broken(&error)),
        };
        if candidates.is_empty() {
            let text = "no CA is configured for this message; its operator has to add a default";
            return Err(Refusal::new(Reason::NoRoute, text));
        }
        let headers = self.headers(head, peer);
        let mut last = None;
        let mut soonest: Option<Duration> = None;
        for upstream in candidates {
            let leave = match upstream.leave(Instant::now()) {
                Ok(leave) => leave,
                Err(wait) => {
                    soonest = Some(soonest.map_or(wait, |other| other.min(wait)));
                    continue;
                }
            };
            let request = outgoing(&upstream, head, headers.clone(), body.clone());
            let began = Instant::now();
            let result = leave
                .exchange(request, self.bounds.answer_time, self.bounds.response)
                .await;
            self.metrics
                .upstream_seconds
                .observe(began.elapsed().as_secs_f64());
            self.note(&upstream, &result);
            course.upstream = Some(upstream);
            match result {
                Ok(answer) => return incoming(answer),
                // Nobody has seen it: the next one may.
                Err(WireError::NotSent(why)) => last = Some(why),
                Err(WireError::NoAnswer(why)) => {
                    let text = format!(
                        "the CA has not answered ({why}); it may have received the message: \
                         send it again, unchanged, later"
                    );
                    return Err(Refusal::new(Reason::Unanswered, text));
                }
                Err(WireError::TooLong(most)) => {
                    let text = format!("the CA's answer has more than {most} octets");
                    return Err(Refusal::new(Reason::Unusable, text));
                }
            }
        }
        Err(match last {
            Some(why) => {
                let text = format!(
                    "the CA cannot be reached by this gateway ({why}); it has not received the \
                     message: try again later"
                );
                Refusal::new(Reason::Unreachable, text)
            }
            None => {
                let wait = soonest.unwrap_or_default().max(Duration::from_secs(1));
                let text = format!(
                    "the CA does not answer this gateway and is left alone for now; it has not \
                     received the message: come again in {} s",
                    wait.as_secs_f32().ceil()
                );
                Refusal::new(Reason::Unavailable, text).after(Some(wait))
            }
        })
    }

    /// The header fields for the CA: those of the client that are for the other end, too.
    fn headers(&self, head: &request::Parts, peer: &Peer) -> HeaderMap {
        let mut headers = end_to_end(&head.headers);
        for name in [header::HOST, header::CONTENT_LENGTH, header::EXPECT] {
            headers.remove(name);
        }
        headers.remove(APP);
        headers.remove(hops::FORWARDED_FOR);
        if let Some(value) = self.hops.forwarded(peer.address, &head.headers) {
            headers.insert(hops::FORWARDED_FOR, value);
        }
        headers
    }

    fn note(&self, upstream: &Upstream, result: &Result<Answer, WireError>) {
        let outcome = match result {
            Ok(_) => "answered",
            Err(WireError::NotSent(_)) => "unreachable",
            Err(WireError::NoAnswer(_)) => "unanswered",
            Err(WireError::TooLong(_)) => "too-long",
        };
        let label = UpstreamOutcome {
            upstream: upstream.url.clone(),
            outcome,
        };
        self.metrics.upstream_requests.get_or_create(&label).inc();
    }

    /// The sandbox did not return.
    fn broken(&self, error: &HostError) -> Refusal {
        let reason = match error {
            HostError::Trap { .. } => "trap",
            HostError::Deadline { .. } => "deadline",
            HostError::OutOfMemory { .. } => "memory",
            HostError::Exhausted { .. } => "exhausted",
            _ => "other",
        };
        self.metrics
            .sandbox_failures
            .get_or_create(&Why { reason })
            .inc();
        warn!("{error}; the instance is replaced, and the request is answered with an error");
        let text = "this gateway could not read the message, and it has not reached the CA; its \
                    operator finds the reason in the log";
        Refusal::new(Reason::Sandbox, text)
    }

    async fn refuse(&self, refusal: &Refusal, course: &Course) -> Reply {
        let message = self.errors.answer(refusal, course.body.as_deref()).await;
        let mut reply = Response::new(Full::new(message));
        *reply.status_mut() = refusal.status(self.strict_status);
        let headers = reply.headers_mut();
        headers.insert(
            header::CONTENT_TYPE,
            HeaderValue::from_static("application/pkixcmp"),
        );
        if refusal.reason == Reason::Method {
            headers.insert(header::ALLOW, HeaderValue::from_static("POST"));
        }
        if refusal.reason.closes() {
            headers.insert(header::CONNECTION, HeaderValue::from_static("close"));
        }
        if let Some(wait) = refusal.retry_after {
            let seconds = wait.as_millis().div_ceil(1000);
            if let Ok(value) = HeaderValue::try_from(seconds.to_string()) {
                headers.insert(header::RETRY_AFTER, value);
            }
        }
        reply
    }

    fn count(
        &self,
        refusal: Option<&Refusal>,
        verdict: &'static str,
        kind: &'static str,
        took: Duration,
    ) {
        let request = metrics::Request {
            r#type: kind,
            verdict,
        };
        self.metrics.requests.get_or_create(&request).inc();
        self.metrics.request_seconds.observe(took.as_secs_f64());
        if let Some(refusal) = refusal {
            let reason = refusal.reason.name();
            self.metrics.refused.get_or_create(&Why { reason }).inc();
        }
    }

    /// The line of this request in the access log.
    async fn log(
        &self,
        course: &Course,
        refusal: Option<&Refusal>,
        reply: &Reply,
        (verdict, kind, took): (&'static str, &'static str, Duration),
    ) {
        let principal = match &course.caller {
            Some(caller) => match self.limiting.name(caller).await {
                Some(name) => printable(&name),
                None => printable(caller.authenticated.as_deref().unwrap_or_default()),
            },
            None => String::new(),
        };
        let summary = course.summary.as_ref();
        let transaction = summary
            .and_then(|summary| summary.transaction_id.as_deref())
            .map_or_else(String::new, hex);
        let sender = summary.map_or_else(String::new, |summary| printable(&summary.sender));
        let client = course
            .client
            .map_or_else(String::new, |client| client.to_string());
        let learning = course
            .admission
            .as_ref()
            .is_some_and(|admission| admission.answer.mode == Mode::Learning);
        info!(
            client,
            r#type = kind,
            transaction,
            sender,
            principal,
            policy = refusal.map_or("none", |refusal| refusal.reason.policy()),
            verdict,
            reason = refusal.map_or("", |refusal| refusal.reason.name()),
            learning,
            upstream = course
                .upstream
                .as_ref()
                .map_or("", |upstream| &upstream.url),
            status = reply.status().as_u16(),
            ms = took.as_secs_f64() * 1000.0,
            "{}",
            refusal.map_or_else(
                || "forwarded".to_owned(),
                |refusal| printable(&refusal.text)
            ),
        );
    }
}

/// `application/pkixcmp`, with parameters or not, and the name that it had for polls before
/// RFC 6712 (RFC 9811, 4).
fn is_cmp(value: &HeaderValue) -> bool {
    let kind = value.as_bytes().split(|&octet| octet == b';').next();
    let kind = kind.unwrap_or_default().trim_ascii();
    kind.eq_ignore_ascii_case(b"application/pkixcmp")
        || kind.eq_ignore_ascii_case(b"application/pkixcmp-poll")
}

/// The name that a client gives itself. It is no proof of anything.
fn named(headers: &HeaderMap) -> Option<String> {
    let name = headers.get(APP)?.to_str().ok()?;
    (!name.trim_start().starts_with(judge::CLAIMED)).then(|| name.to_owned())
}

/// A body that ended early or is no body.
fn torn(error: &hyper::Error) -> Refusal {
    let mut cause = std::error::Error::source(error);
    while let Some(inner) = cause {
        if let Some(io) = inner.downcast_ref::<std::io::Error>()
            && matches!(
                io.kind(),
                std::io::ErrorKind::InvalidInput | std::io::ErrorKind::InvalidData
            )
        {
            let text = format!("the chunked body cannot be read: {io}");
            return Refusal::new(Reason::BadChunking, text);
        }
        cause = inner.source();
    }
    Refusal::new(Reason::Aborted, "the connection ended within the message")
}

/// What a router may look at.
fn criteria(head: &request::Parts, course: &Course) -> Criteria {
    let summary = course.summary.as_ref();
    let caller = course.caller.as_ref();
    Criteria {
        application: summary.map(|summary| summary.sender.clone()),
        account: label(head.uri.path()).map(str::to_owned),
        user: caller.and_then(|caller| caller.authenticated.clone()),
        execution_type: summary.map(|summary| judge::name(summary.body).to_owned()),
        origin: course.client.map(|client| client.to_string()),
        ..nothing()
    }
}

fn nothing() -> Criteria {
    Criteria {
        application: None,
        account: None,
        user: None,
        cloud_provider: None,
        execution_type: None,
        origin: None,
        location: None,
        user_origin: None,
    }
}

/// The arbitrary label of a path, such as `factory` in `/.well-known/cmp/p/factory/certify`
/// (RFC 9811, 3.4).
fn label(path: &str) -> Option<&str> {
    let mut segments = path.split('/');
    segments.find(|&segment| segment == "p")?;
    segments.next().filter(|label| !label.is_empty())
}

fn outgoing(
    upstream: &Upstream,
    head: &request::Parts,
    mut headers: HeaderMap,
    body: Bytes,
) -> Request<Full<Bytes>> {
    headers.insert(header::HOST, upstream.authority.clone());
    let mut request = Request::new(Full::new(body));
    *request.method_mut() = Method::POST;
    *request.headers_mut() = headers;
    let path = upstream.path.as_ref().or(head.uri.path_and_query());
    if let Some(path) = path {
        *request.uri_mut() = path.clone().into();
    }
    request
}

/// The CA's answer for the client. What is no CMP is not passed on, whatever it is.
fn incoming(answer: Answer) -> Result<Reply, Refusal> {
    let Answer {
        status,
        headers,
        body,
    } = answer;
    let cmp = headers.get(header::CONTENT_TYPE).is_some_and(is_cmp);
    if !cmp && !body.is_empty() {
        let text = format!("the CA's answer is no CMP (HTTP {status}); its operator is to blame");
        let retry = headers
            .get(header::RETRY_AFTER)
            .and_then(|value| value.to_str().ok()?.parse().ok())
            .map(Duration::from_secs);
        let reason = match status {
            StatusCode::SERVICE_UNAVAILABLE | StatusCode::TOO_MANY_REQUESTS => Reason::Unavailable,
            _ => Reason::Unusable,
        };
        return Err(Refusal::new(reason, text).after(retry));
    }
    let mut headers = end_to_end(&headers);
    headers.remove(header::CONTENT_LENGTH);
    let mut reply = Response::new(Full::new(body));
    *reply.status_mut() = status;
    *reply.headers_mut() = headers;
    Ok(reply)
}

/// Fields that are about one connection (RFC 9110, 7.6.1).
const HOP_BY_HOP: [HeaderName; 7] = [
    header::CONNECTION,
    header::PROXY_AUTHENTICATE,
    header::PROXY_AUTHORIZATION,
    header::TE,
    header::TRAILER,
    header::TRANSFER_ENCODING,
    header::UPGRADE,
];

fn end_to_end(headers: &HeaderMap) -> HeaderMap {
    let mut passed = headers.clone();
    for value in headers.get_all(header::CONNECTION) {
        for name in value.to_str().unwrap_or_default().split(',') {
            if let Ok(name) = HeaderName::from_bytes(name.trim().as_bytes()) {
                passed.remove(name);
            }
        }
    }
    for name in &HOP_BY_HOP {
        passed.remove(name);
    }
    passed.remove("keep-alive");
    passed.remove("proxy-connection");
    passed
}

/// A text that repeats something of a client is kept short.
fn cut(mut text: String) -> String {
    text.truncate(text.floor_char_boundary(200));
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_label_of_a_path() {
        assert_eq!(label("/.well-known/cmp/p/factory/certify"), Some("factory"));
        assert_eq!(label("/.well-known/cmp/p/"), None);
        assert_eq!(label("/.well-known/cmp/certify"), None);
    }

    #[test]
    fn fields_of_a_connection_stay_there() {
        let mut headers = HeaderMap::new();
        for (name, value) in [
            ("connection", "close, X-Private"),
            ("x-private", "1"),
            ("keep-alive", "timeout=5"),
            ("te", "trailers"),
            ("user-agent", "a client"),
        ] {
            headers.insert(name, HeaderValue::from_static(value));
        }
        let passed = end_to_end(&headers);
        let names: Vec<&str> = passed.keys().map(HeaderName::as_str).collect();
        assert_eq!(names, ["user-agent"]);
    }

    #[test]
    fn media_types() {
        for (text, expected) in [
            ("application/pkixcmp", true),
            ("Application/PKIXCMP; charset=x", true),
            ("application/pkixcmp-poll", true),
            ("application/pkixcmpx", false),
            ("text/html", false),
        ] {
            assert_eq!(is_cmp(&HeaderValue::from_static(text)), expected, "{text}");
        }
    }
}
