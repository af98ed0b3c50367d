//! Metrics and probes, on an address of their own.

use std::convert::Infallible;
use std::sync::Arc;

use abide_service::exposition::Form;
use bytes::Bytes;
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::header::{self, HeaderValue};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::TcpListener;
use tokio::sync::{Semaphore, watch};
use tokio::time::timeout;

use crate::limits;
use crate::metrics::UpstreamLabel;
use crate::proxy::Proxy;

/// Serves until it is dropped.
pub(crate) async fn serve(listener: TcpListener, proxy: Arc<Proxy>, stop: watch::Receiver<bool>) {
    let (time, most) = limits::ADMIN;
    let places = Arc::new(Semaphore::new(most));
    while let Ok(place) = places.clone().acquire_owned().await {
        let Ok((stream, _)) = listener.accept().await else {
            tokio::time::sleep(limits::ACCEPT_GAP).await;
            continue;
        };
        let (proxy, stop) = (proxy.clone(), stop.clone());
        tokio::spawn(async move {
            let service = service_fn(|request: Request<Incoming>| {
                let answer = answer(&request, &proxy, *stop.borrow());
                async move { Ok::<_, Infallible>(answer) }
            });
            let served = http1::Builder::new()
                .timer(TokioTimer::new())
                .keep_alive(false)
                .serve_connection(TokioIo::new(stream), service);
            // Whoever is cut off here asks again.
            let _ = timeout(time, served).await;
            drop(place);
        });
    }
}

fn answer(request: &Request<Incoming>, proxy: &Proxy, stopping: bool) -> Response<Full<Bytes>> {
    if request.method() != Method::GET {
        return text(StatusCode::METHOD_NOT_ALLOWED, "only GET\n".to_owned());
    }
    match request.uri().path() {
        "/healthz" => text(StatusCode::OK, "ok\n".to_owned()),
        "/readyz" => ready(proxy, stopping),
        "/metrics" => {
            for upstream in proxy.upstreams.all() {
                let label = UpstreamLabel {
                    upstream: upstream.url.clone(),
                };
                let up = i64::from(upstream.state().is_ok());
                proxy.metrics.upstream_up.get_or_create(&label).set(up);
            }
            let accept = request.headers().get(header::ACCEPT);
            let form = Form::wanted(accept.and_then(|accept| accept.to_str().ok()));
            let mut answer = text(StatusCode::OK, proxy.metrics.text(form));
            answer.headers_mut().insert(
                header::CONTENT_TYPE,
                HeaderValue::from_static(form.media_type()),
            );
            answer
        }
        _ => text(
            StatusCode::NOT_FOUND,
            "here are /metrics, /healthz and /readyz\n".to_owned(),
        ),
    }
}

/// Ready is who can pass a message to at least one CA.
fn ready(proxy: &Proxy, stopping: bool) -> Response<Full<Bytes>> {
    let mut lines = String::new();
    let mut some = false;
    for upstream in proxy.upstreams.all() {
        let line = match upstream.state() {
            Ok(()) => {
                some = true;
                format!("{}: ok\n", upstream.url)
            }
            Err(why) => format!("{}: left alone: {why}\n", upstream.url),
        };
        lines.push_str(&line);
    }
    if stopping {
        lines.push_str("stopping\n");
    }
    let status = match some && !stopping {
        true => StatusCode::OK,
        false => StatusCode::SERVICE_UNAVAILABLE,
    };
    text(status, lines)
}

fn text(status: StatusCode, body: String) -> Response<Full<Bytes>> {
    let mut answer = Response::new(Full::new(Bytes::from(body)));
    *answer.status_mut() = status;
    answer.headers_mut().insert(
        header::CONTENT_TYPE,
        HeaderValue::from_static("text/plain; charset=utf-8"),
    );
    answer
}
