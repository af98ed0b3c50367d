//! Errors as RFC 9457 has them: a stable type, what happened, and what to do.

use abide_host::wit::orders::OrderError;
use abide_host::wit::transactions::TransactionError;
use abide_host::{CallError, HostError, OrderCallError};
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use utoipa::{IntoResponses, ToSchema};

/// The media type of a problem.
pub(crate) const MEDIA_TYPE: &str = "application/problem+json";

/// Why a request was not served (RFC 9457).
#[derive(Debug, Clone, Serialize, ToSchema)]
pub(crate) struct Problem {
    /// A stable name: urn:abide:problem:…
    #[serde(rename = "type")]
    #[schema(rename = "type", example = "urn:abide:problem:invalid")]
    kind: String,
    /// The type in words.
    title: &'static str,
    /// The HTTP status.
    #[schema(minimum = 400, maximum = 599)]
    status: u16,
    /// What happened this time.
    detail: String,
    /// What to do about it.
    action: String,
}

/// The kinds of problems; each has one status.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Malformed,
    Unauthenticated,
    Forbidden,
    NotFound,
    Method,
    KeyReused,
    State,
    TooLarge,
    MediaType,
    Invalid,
    TooMany,
    Internal,
    Busy,
    Unavailable,
    Timeout,
}

impl Kind {
    fn about(self) -> (StatusCode, &'static str, &'static str) {
        match self {
            Kind::Malformed => (
                StatusCode::BAD_REQUEST,
                "malformed",
                "The request cannot be read",
            ),
            Kind::Unauthenticated => (
                StatusCode::UNAUTHORIZED,
                "unauthenticated",
                "Nobody is known by these credentials",
            ),
            Kind::Forbidden => (
                StatusCode::FORBIDDEN,
                "forbidden",
                "The caller may not do this",
            ),
            Kind::NotFound => (StatusCode::NOT_FOUND, "not-found", "There is no such thing"),
            Kind::Method => (
                StatusCode::METHOD_NOT_ALLOWED,
                "method-not-allowed",
                "This cannot be done with it",
            ),
            Kind::KeyReused => (
                StatusCode::CONFLICT,
                "key-reused",
                "The idempotency key stands for another wish",
            ),
            Kind::State => (
                StatusCode::CONFLICT,
                "state",
                "Its state does not allow this",
            ),
            Kind::TooLarge => (
                StatusCode::PAYLOAD_TOO_LARGE,
                "too-large",
                "The request is too large",
            ),
            Kind::MediaType => (
                StatusCode::UNSUPPORTED_MEDIA_TYPE,
                "media-type",
                "The body must be JSON",
            ),
            Kind::Invalid => (
                StatusCode::UNPROCESSABLE_ENTITY,
                "invalid",
                "The request cannot be served as it is",
            ),
            Kind::TooMany => (
                StatusCode::TOO_MANY_REQUESTS,
                "too-many",
                "The caller has no request left",
            ),
            Kind::Internal => (
                StatusCode::INTERNAL_SERVER_ERROR,
                "internal",
                "abide failed",
            ),
            Kind::Busy => (
                StatusCode::SERVICE_UNAVAILABLE,
                "busy",
                "Others are at work on it at this moment",
            ),
            Kind::Unavailable => (
                StatusCode::SERVICE_UNAVAILABLE,
                "unavailable",
                "The service cannot do its work now",
            ),
            Kind::Timeout => (
                StatusCode::SERVICE_UNAVAILABLE,
                "timeout",
                "The request took too long",
            ),
        }
    }
}

impl Problem {
    pub(crate) fn new(kind: Kind, detail: impl Into<String>, action: impl Into<String>) -> Self {
        let (status, name, title) = kind.about();
        Problem {
            kind: format!("urn:abide:problem:{name}"),
            title,
            status: status.as_u16(),
            detail: detail.into(),
            action: action.into(),
        }
    }

    /// What was given is wrong.
    pub(crate) fn invalid(detail: impl Into<String>, action: impl Into<String>) -> Self {
        Problem::new(Kind::Invalid, detail, action)
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let status = StatusCode::from_u16(self.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        // A record of texts always is JSON.
        let body = serde_json::to_vec(&self).unwrap_or_default();
        let mut response = (status, body).into_response();
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(MEDIA_TYPE));
        match status {
            StatusCode::UNAUTHORIZED => {
                headers.insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
            }
            StatusCode::SERVICE_UNAVAILABLE => {
                headers.insert(header::RETRY_AFTER, HeaderValue::from_static("5"));
            }
            _ => {}
        }
        response
    }
}

impl From<HostError> for Problem {
    fn from(error: HostError) -> Self {
        tracing::error!("{error}");
        Problem::new(
            Kind::Internal,
            error.to_string(),
            "report it with the log of the service",
        )
    }
}

impl From<OrderCallError> for Problem {
    fn from(error: OrderCallError) -> Self {
        let error = match error {
            OrderCallError::Order(error) => error,
            OrderCallError::Host(error) => return error.into(),
            other => {
                return Problem::new(Kind::Internal, other.to_string(), "report it");
            }
        };
        match error {
            OrderError::Invalid(why) => Problem::invalid(why, "mend the request and send it again"),
            OrderError::NotFound => Problem::new(
                Kind::NotFound,
                "there is no order of this id",
                "look for it among all orders: GET /v1/orders",
            ),
            OrderError::KeyReused(id) => Problem::new(
                Kind::KeyReused,
                format!("the key belongs to order {id}, which is for something else"),
                "send the same wish as before, or another key",
            ),
            OrderError::State(why) => {
                Problem::new(Kind::State, why, "look at the order: GET /v1/orders/{id}")
            }
            OrderError::Busy(what) => Problem::new(Kind::Busy, what, "send the same again"),
            OrderError::Storage(why) => unavailable(why),
            OrderError::Key(why) => Problem::new(
                Kind::Unavailable,
                format!("a key cannot be used: {why}"),
                "look at the keys of the service",
            ),
            OrderError::Unreadable(why) => unreadable(why),
        }
    }
}

impl From<CallError> for Problem {
    fn from(error: CallError) -> Self {
        let error = match error {
            CallError::Transaction(error) => error,
            CallError::Host(error) => return error.into(),
            other => {
                return Problem::new(Kind::Internal, other.to_string(), "report it");
            }
        };
        match error {
            TransactionError::NotFound => Problem::new(
                Kind::NotFound,
                "there is no transaction of this id",
                "look for it among all transactions: GET /v1/transactions",
            ),
            TransactionError::Invalid(why) => Problem::invalid(why, "mend the request"),
            TransactionError::Storage(why) => unavailable(why),
            TransactionError::Unreadable(why) => unreadable(why),
            TransactionError::Busy(what) | TransactionError::InProgress(what) => {
                Problem::new(Kind::Busy, what, "send the same again")
            }
            TransactionError::Key(why) => Problem::new(
                Kind::Unavailable,
                format!("a key cannot be used: {why}"),
                "look at the keys of the service",
            ),
        }
    }
}

pub(crate) fn unavailable(why: impl Into<String>) -> Problem {
    Problem::new(
        Kind::Unavailable,
        why,
        "send the same again in a moment; nothing was lost",
    )
}

fn unreadable(why: String) -> Problem {
    tracing::error!("a stored record cannot be read: {why}");
    Problem::new(
        Kind::Internal,
        format!("a stored record cannot be read: {why}"),
        "use the version of abide that wrote it, or a later one",
    )
}

/// What every call with a caller may answer.
#[derive(IntoResponses)]
#[expect(dead_code, reason = "it describes answers and is none")]
pub(crate) enum Refusals {
    /// Nobody is known by these credentials
    #[response(status = 401, content_type = "application/problem+json")]
    Unauthenticated(Problem),
    /// The caller may not do this
    #[response(status = 403, content_type = "application/problem+json")]
    Forbidden(Problem),
    /// The caller has no request left; `Retry-After` says when it will
    #[response(status = 429, content_type = "application/problem+json")]
    TooMany(Problem),
    /// abide failed
    #[response(status = 500, content_type = "application/problem+json")]
    Internal(Problem),
    /// The service cannot do its work now
    #[response(status = 503, content_type = "application/problem+json")]
    Unavailable(Problem),
}
