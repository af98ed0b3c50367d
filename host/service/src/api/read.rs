//! What clients send, read and bounded. Nothing of it goes further before it was looked at here.

use std::sync::Arc;

use axum::body::to_bytes;
use axum::extract::{FromRequest, FromRequestParts, Request};
use axum::http::header;
use axum::http::request::Parts;
use serde::de::DeserializeOwned;
use serde_json::error::Category;

use super::Api;
use super::problem::{Kind, Problem};
use crate::limits;

/// A JSON body.
#[derive(Debug)]
pub(crate) struct Json<T>(pub(crate) T);

impl<T: DeserializeOwned> FromRequest<Arc<Api>> for Json<T> {
    type Rejection = Problem;

    async fn from_request(request: Request, _: &Arc<Api>) -> Result<Self, Problem> {
        // A page in a browser can send other types without being asked, this one it cannot.
        if !is_json(request.headers()) {
            return Err(Problem::new(
                Kind::MediaType,
                "the Content-Type is not application/json",
                "send JSON, with curl by --json",
            ));
        }
        parse(&body(request).await?).map(Json)
    }
}

/// A JSON body that may be absent.
#[derive(Debug)]
pub(crate) struct MaybeJson<T>(pub(crate) T);

impl<T: DeserializeOwned + Default> FromRequest<Arc<Api>> for MaybeJson<T> {
    type Rejection = Problem;

    async fn from_request(request: Request, api: &Arc<Api>) -> Result<Self, Problem> {
        if request.headers().contains_key(header::CONTENT_TYPE) {
            let Json(value) = Json::from_request(request, api).await?;
            return Ok(MaybeJson(value));
        }
        match body(request).await?.as_slice() {
            [] => Ok(MaybeJson(T::default())),
            some => parse(some).map(MaybeJson),
        }
    }
}

/// A query.
#[derive(Debug)]
pub(crate) struct Query<T>(pub(crate) T);

impl<T: DeserializeOwned> FromRequestParts<Arc<Api>> for Query<T> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &Arc<Api>) -> Result<Self, Problem> {
        axum::extract::Query::try_from_uri(&parts.uri)
            .map(|axum::extract::Query(query)| Query(query))
            .map_err(|error| {
                Problem::invalid(
                    format!("the query cannot be read: {}", error.body_text()),
                    "see /openapi.json for its fields",
                )
            })
    }
}

fn is_json(headers: &axum::http::HeaderMap) -> bool {
    let given = headers.get(header::CONTENT_TYPE);
    let given = given
        .and_then(|value| value.to_str().ok())
        .unwrap_or_default();
    let essence = given.split(';').next().unwrap_or_default().trim();
    essence.eq_ignore_ascii_case("application/json")
}

async fn body(request: Request) -> Result<Vec<u8>, Problem> {
    let too_large = || {
        Problem::new(
            Kind::TooLarge,
            format!("the body has more than {} bytes", limits::BODY),
            "send less; a request for a certificate takes some thousand bytes",
        )
    };
    let length = request.headers().get(header::CONTENT_LENGTH);
    let length = length.and_then(|value| value.to_str().ok()?.parse::<usize>().ok());
    if length.is_some_and(|length| length > limits::BODY) {
        return Err(too_large());
    }
    match to_bytes(request.into_body(), limits::BODY).await {
        Ok(bytes) => Ok(bytes.to_vec()),
        Err(error) => Err(match is_length_limit(&error) {
            true => too_large(),
            false => Problem::new(
                Kind::Malformed,
                format!("the body broke off ({error})"),
                "send it again",
            ),
        }),
    }
}

fn is_length_limit(error: &axum::Error) -> bool {
    let mut cause: Option<&(dyn std::error::Error + 'static)> = Some(error);
    while let Some(error) = cause {
        if error.to_string().contains("length limit") {
            return true;
        }
        cause = error.source();
    }
    false
}

fn parse<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, Problem> {
    serde_json::from_slice(bytes).map_err(|error| match error.classify() {
        Category::Data => Problem::invalid(
            format!("the body does not have the right form: {error}"),
            "see /openapi.json for its fields",
        ),
        _ => Problem::new(
            Kind::Malformed,
            format!("the body is no JSON: {error}"),
            "send JSON",
        ),
    })
}

/// A name that a client chose: it ends in logs, tables and file names.
pub(crate) fn name(field: &str, text: &str) -> Result<(), Problem> {
    if text.len() > limits::NAME {
        return Err(Problem::invalid(
            format!("{field} has {} bytes", text.len()),
            format!("give at most {}", limits::NAME),
        ));
    }
    let plain = |c: char| c.is_ascii_alphanumeric() || "._:@/+-".contains(c);
    match text.chars().find(|&c| !plain(c)) {
        Some(wrong) => Err(Problem::invalid(
            format!("{field} contains {wrong:?}"),
            "use letters, digits and ._:@/+-",
        )),
        None => Ok(()),
    }
}

/// A sentence for people.
pub(crate) fn sentence(field: &str, text: &str) -> Result<(), Problem> {
    if text.len() > limits::SENTENCE {
        return Err(Problem::invalid(
            format!("{field} has {} bytes", text.len()),
            format!("give at most {}", limits::SENTENCE),
        ));
    }
    match text.chars().find(|c| c.is_control()) {
        Some(wrong) => Err(Problem::invalid(
            format!("{field} contains the control character {wrong:?}"),
            "give one line of text",
        )),
        None => Ok(()),
    }
}

/// The entries on a page.
pub(crate) fn page(limit: Option<u32>) -> Result<u32, Problem> {
    match limit {
        None => Ok(limits::PAGE),
        Some(limit @ 1..=limits::MOST_PAGE) => Ok(limit),
        Some(limit) => Err(Problem::invalid(
            format!("limit is {limit}"),
            format!("give 1 to {}", limits::MOST_PAGE),
        )),
    }
}

/// Where a page begins.
pub(crate) fn cursor(cursor: Option<&str>) -> Result<(), Problem> {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_=.:/+".contains(c);
    match cursor {
        Some(text) if text.len() > limits::CURSOR || !text.chars().all(plain) => {
            Err(Problem::invalid(
                "cursor is none",
                "give `next` of the page before, or nothing",
            ))
        }
        _ => Ok(()),
    }
}

/// An id in a path. What cannot be one does not exist.
pub(crate) fn id(text: &str, what: &str) -> Result<(), Problem> {
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    if !text.is_empty() && text.len() <= limits::NAME && text.chars().all(plain) {
        return Ok(());
    }
    Err(Problem::new(
        Kind::NotFound,
        format!("there is no {what} of this id: an id has letters, digits and dashes"),
        format!("take the id from a list of {what}s"),
    ))
}
