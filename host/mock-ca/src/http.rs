//! CMP over HTTP (RFC 9811).

use std::sync::{Arc, PoisonError};

use anyhow::bail;
use axum::Router;
use axum::body::Bytes;
use axum::extract::{ConnectInfo, DefaultBodyLimit, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::post;

use crate::ca::chaos::unprotected_error;
use crate::ca::{self, Answered};
use crate::chaos::{Fault, Weather, damage};
use crate::wire::Scissors;
use crate::{Desk, limits};

const PKIXCMP: &str = "application/pkixcmp";

#[derive(Clone, Debug)]
struct Counter {
    desk: Arc<Desk>,
    weather: Arc<Weather>,
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
pub(crate) fn router(desk: Arc<Desk>, path: &str, weather: Weather, log: bool) -> Router {
    let weather = Arc::new(weather);
    let methods = || post(answer).fallback(not_post);
    let mut router = Router::new().route(path, methods());
    let bare = path.trim_end_matches('/');
    if !bare.is_empty() && bare != path {
        router = router.route(bare, methods());
    }
    router
        .layer(DefaultBodyLimit::max(limits::REQUEST))
        .with_state(Counter { desk, weather, log })
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

async fn answer(
    State(counter): State<Counter>,
    ConnectInfo(scissors): ConnectInfo<Scissors>,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
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
    let (fault, bits) = counter.weather.next();
    if let Some(fault) = fault
        && counter.log
    {
        eprintln!("mock CA: this request meets the fault {fault}");
    }
    if let Some(response) = unseen(fault, &body, &scissors) {
        return response;
    }
    // The books are flushed to the disk, which takes its time.
    let desk = Arc::clone(&counter.desk);
    let answered = tokio::task::spawn_blocking(move || {
        let mut desk = desk.lock().unwrap_or_else(PoisonError::into_inner);
        desk.as_mut()
            .map(|ca| ca::now().and_then(|now| ca.handle_faulty(&body, now, fault)))
    })
    .await;
    let (status, octets) = match answered {
        Ok(Some(Ok(answered))) => {
            if counter.log {
                log(&answered);
            }
            return sent(&counter.weather, fault, bits, &scissors, answered.octets).await;
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

/// What comes of a request that the CA does not see.
fn unseen(fault: Option<Fault>, request: &[u8], scissors: &Scissors) -> Option<Response> {
    match fault? {
        Fault::LostRequest => {
            scissors.cut_after(0);
            Some(StatusCode::OK.into_response())
        }
        Fault::Http503 => {
            let wait = [(header::RETRY_AFTER, limits::RETRY_AFTER)];
            Some((StatusCode::SERVICE_UNAVAILABLE, wait, page()).into_response())
        }
        Fault::Html => Some(page().into_response()),
        Fault::UnprotectedError => {
            let error = ca::now()
                .ok()
                .and_then(|now| unprotected_error(request, now))?;
            Some(([(header::CONTENT_TYPE, PKIXCMP)], error).into_response())
        }
        _ => None,
    }
}

/// What the client gets of an answer.
async fn sent(
    weather: &Weather,
    fault: Option<Fault>,
    bits: u64,
    scissors: &Scissors,
    octets: Vec<u8>,
) -> Response {
    let before = weather.stale(&octets);
    let octets = match (fault, before) {
        (Some(Fault::Stale), Some(before)) => before,
        _ => damage(fault, bits, octets),
    };
    match fault {
        Some(Fault::LostResponse) => scissors.cut_after(0),
        Some(Fault::Cut) => scissors.cut_after(octets.len() / 2),
        Some(Fault::Late) => tokio::time::sleep(limits::LATE).await,
        Some(Fault::Http500) => {
            return (StatusCode::INTERNAL_SERVER_ERROR, page()).into_response();
        }
        _ => {}
    }
    ([(header::CONTENT_TYPE, PKIXCMP)], octets).into_response()
}

/// What a proxy or an application server says.
fn page() -> impl IntoResponse {
    let text = "<!DOCTYPE html><title>Oops</title><p>Something went wrong. Try again later.\n";
    ([(header::CONTENT_TYPE, "text/html; charset=utf-8")], text)
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
