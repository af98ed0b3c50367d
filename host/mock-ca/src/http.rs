//! CMP over HTTP (RFC 9811).

use std::sync::{Arc, PoisonError};

use anyhow::bail;
use axum::Router;
use axum::body::Bytes;
use axum::extract::{DefaultBodyLimit, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::post;

use crate::ca::{self, Answered};
use crate::{Desk, limits};

const PKIXCMP: &str = "application/pkixcmp";

#[derive(Clone, Debug)]
struct Counter {
    desk: Arc<Desk>,
    log: bool,
}

/// Whether a path can be served.
pub(crate) fn check_path(path: &str) -> anyhow::Result<()> {
    let plain = |c: char| c.is_ascii_alphanumeric() || "/-._~".contains(c);
    if !path.starts_with('/') || !path.chars().all(plain) {
        bail!("the path '{path}' is not one like /pkix/: a slash, then letters, digits and -._~/");
    }
    Ok(())
}

/// Answers POST at `path`, with and without its trailing slash.
pub(crate) fn router(desk: Arc<Desk>, path: &str, log: bool) -> Router {
    let methods = || post(answer).fallback(not_post);
    let mut router = Router::new().route(path, methods());
    let bare = path.trim_end_matches('/');
    if !bare.is_empty() && bare != path {
        router = router.route(bare, methods());
    }
    router
        .layer(DefaultBodyLimit::max(limits::REQUEST))
        .with_state(Counter { desk, log })
}

async fn not_post() -> Response {
    let text = "This is a CMP server: POST an application/pkixcmp message.\n";
    (
        StatusCode::METHOD_NOT_ALLOWED,
        [(header::ALLOW, "POST")],
        text,
    )
        .into_response()
}

async fn answer(State(counter): State<Counter>, headers: HeaderMap, body: Bytes) -> Response {
    let content_type = headers
        .get(header::CONTENT_TYPE)
        .and_then(|value| value.to_str().ok());
    let essence = content_type
        .and_then(|value| value.split(';').next())
        .unwrap_or_default()
        .trim();
    if !essence.eq_ignore_ascii_case(PKIXCMP) {
        let text = format!("The content type is '{essence}' instead of {PKIXCMP}.\n");
        return (StatusCode::UNSUPPORTED_MEDIA_TYPE, text).into_response();
    }
    // The books are flushed to the disk, which takes its time.
    let desk = Arc::clone(&counter.desk);
    let answered = tokio::task::spawn_blocking(move || {
        let mut desk = desk.lock().unwrap_or_else(PoisonError::into_inner);
        desk.as_mut()
            .map(|ca| ca::now().and_then(|now| ca.handle(&body, now)))
    })
    .await;
    let (status, octets) = match answered {
        Ok(Some(Ok(answered))) => {
            if counter.log {
                log(&answered);
            }
            let headers = [(header::CONTENT_TYPE, PKIXCMP)];
            return (StatusCode::OK, headers, answered.octets).into_response();
        }
        Ok(Some(Err(error))) => (StatusCode::INTERNAL_SERVER_ERROR, format!("{error:#}\n")),
        Ok(None) => (
            StatusCode::SERVICE_UNAVAILABLE,
            "The CA is closed.\n".into(),
        ),
        Err(_) => (
            StatusCode::INTERNAL_SERVER_ERROR,
            "The CA stumbled over this.\n".into(),
        ),
    };
    if counter.log {
        eprintln!("mock CA: {status}: {}", octets.trim_end());
    }
    (status, [(header::CONNECTION, "close")], octets).into_response()
}

fn log(answered: &Answered) {
    let time = ca::now().map(|now| now.rfc3339()).unwrap_or_default();
    let id = answered
        .transaction
        .get(..2 * limits::LOGGED_ID)
        .unwrap_or("-");
    // The verdict may repeat what a client wrote.
    let verdict: String = answered
        .verdict
        .chars()
        .map(|c| if c.is_control() { '?' } else { c })
        .collect();
    eprintln!("{time} {} {id} {verdict}", answered.kind);
}
