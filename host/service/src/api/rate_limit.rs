//! The limit on requests: what it does to each of them, and /v1/admin/rate-limit, where it is
//! set while the service runs.

use std::sync::Arc;
use std::time::{Duration, UNIX_EPOCH};

use abide_host::wit::admission::Caller;
use abide_host::wit::storage::StorageError;
use axum::Json;
use axum::extract::{Path, Request, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use utoipa::openapi::header::HeaderBuilder;
use utoipa::openapi::schema::{ObjectBuilder, Type};
use utoipa::openapi::{OpenApi, RefOr};

use super::Api;
use super::caller::Admin;
use super::problem::{Kind, Problem, Refusals, unavailable};
use super::read;
use crate::admission::{Set, Setting, Verdict};
use crate::connections::Peer;
use crate::{limits, when};

/// By which a client without credentials names itself.
const APP: &str = "x-ratelimit-app";

/// What is never limited: whoever looks after the service must not be shut out by its clients.
const PROBES: [&str; 3] = ["/healthz", "/readyz", "/metrics"];

/// What every limited answer has.
const HEADERS: [(&str, &str); 4] = [
    (
        "X-RateLimit-Capacity",
        "Requests that the caller has in a span",
    ),
    ("X-RateLimit-Remaining", "Requests that it has left"),
    ("X-RateLimit-Reset", "When it has all of them again"),
    ("X-RateLimit-Learning", "Whether too many are only counted"),
];

/// Limits each request, and tells so on its answer.
pub(super) async fn limited(State(api): State<Arc<Api>>, request: Request, next: Next) -> Response {
    let Some(limiter) = &api.limits else {
        return next.run(request).await;
    };
    if PROBES.contains(&request.uri().path()) {
        return next.run(request).await;
    }
    let (parts, body) = request.into_parts();
    let text = |value: &HeaderValue| value.to_str().ok().map(str::to_owned);
    let caller = Caller {
        authenticated: api.callers.proved(&parts),
        app: parts.headers.get(APP).and_then(text),
        address: parts
            .extensions
            .get::<Peer>()
            .map(|peer| peer.address.to_string()),
    };
    let now_ms = when::now_ms();
    let Some(verdict) = limiter.admit(&caller, 1, now_ms).await else {
        return next.run(Request::from_parts(parts, body)).await;
    };
    let mut response = match verdict.refused {
        true => refusal(&verdict).into_response(),
        false => next.run(Request::from_parts(parts, body)).await,
    };
    tell(response.headers_mut(), &verdict, now_ms);
    response
}

fn refusal(verdict: &Verdict) -> Problem {
    Problem::new(
        Kind::TooMany,
        format!(
            "{} has no request left of its {}",
            verdict.principal, verdict.capacity
        ),
        "wait as long as Retry-After says; X-RateLimit-Remaining tells how many are left",
    )
}

fn tell(headers: &mut HeaderMap, verdict: &Verdict, now_ms: u64) {
    for (name, value) in &verdict.headers {
        if let (Ok(name), Ok(value)) = (name.parse::<HeaderName>(), HeaderValue::from_str(value)) {
            headers.insert(name, value);
        }
    }
    // By the same clock as the reset.
    let date = httpdate::fmt_http_date(UNIX_EPOCH + Duration::from_millis(now_ms));
    if let Ok(date) = HeaderValue::from_str(&date) {
        headers.insert(header::DATE, date);
    }
}

/// The document with the headers that the answers of limited paths may have.
pub(super) fn documented(mut document: OpenApi) -> OpenApi {
    let limited = document
        .paths
        .paths
        .iter_mut()
        .filter(|(path, _)| !PROBES.contains(&path.as_str()));
    for (_, item) in limited {
        let operations = [
            &mut item.get,
            &mut item.put,
            &mut item.post,
            &mut item.delete,
        ];
        for operation in operations.into_iter().flatten() {
            for response in operation.responses.responses.values_mut() {
                let RefOr::T(response) = response else {
                    continue;
                };
                for (name, what) in HEADERS {
                    let text = ObjectBuilder::new().schema_type(Type::String);
                    let header = HeaderBuilder::new()
                        .schema(Some(text))
                        .description(Some(what))
                        .build();
                    response.headers.insert(name.to_owned(), RefOr::T(header));
                }
            }
        }
    }
    document
}

/// How requests are limited.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct RateLimitView {
    /// Whether requests are limited at all, by the configuration of the asked worker.
    pub enabled: bool,
    /// Whether a principal that is in no list is only learnt from.
    pub learning: bool,
    /// The flag that is set here and goes before that of the configuration.
    pub learning_set: Option<LearningView>,
    /// Principals about which something is set here.
    pub principals: Vec<PrincipalView>,
}

/// The flag as it is set.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct LearningView {
    /// Whether a principal that is in no list is only learnt from.
    pub learning: bool,
    /// Who set it.
    pub by: String,
    /// When.
    #[schema(format = DateTime)]
    pub at: String,
}

/// What is set about a principal.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct PrincipalView {
    /// As in the configuration: a name, `app:NAME`, `address:ADDRESS` or `anonymous`.
    pub principal: String,
    /// It is limited even while learning.
    pub enforcing: bool,
    /// It is only learnt from; together with `enforcing` too.
    pub ignoring: bool,
    /// Requests in a span.
    pub capacity: Option<u32>,
    /// The span in seconds.
    pub rate_seconds: Option<u32>,
    /// Who set it.
    pub by: String,
    /// When.
    #[schema(format = DateTime)]
    pub at: String,
}

/// The flag.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct NewLearning {
    /// Whether a principal that is in no list is only learnt from.
    pub learning: bool,
}

/// What is to hold of a principal; all that was set before goes.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct NewSetting {
    /// It is limited even while learning.
    #[serde(default)]
    pub enforcing: bool,
    /// It is only learnt from; together with `enforcing` too.
    #[serde(default)]
    pub ignoring: bool,
    /// Requests in a span; 0 refuses all.
    #[schema(maximum = 1000000)]
    pub capacity: Option<u32>,
    /// The span in seconds.
    #[schema(minimum = 1, maximum = 86400)]
    pub rate_seconds: Option<u32>,
}

/// Look at how requests are limited.
#[utoipa::path(
    get,
    path = "/v1/admin/rate-limit",
    responses(
        (status = 200, description = "What is set", body = RateLimitView),
        Refusals,
    )
)]
pub(crate) async fn settings(
    State(api): State<Arc<Api>>,
    Admin(_): Admin,
) -> Result<Json<RateLimitView>, Problem> {
    api.overrides.read().await.map_err(away)?;
    Ok(Json(view(&api)))
}

/// Set the global flag, in every worker within a second.
#[utoipa::path(
    put,
    path = "/v1/admin/rate-limit/learning",
    request_body = NewLearning,
    responses(
        (status = 200, description = "What is set", body = RateLimitView),
        (status = 400, description = "No JSON", body = Problem,
         content_type = "application/problem+json"),
        (status = 413, description = "Too large", body = Problem,
         content_type = "application/problem+json"),
        (status = 415, description = "Another Content-Type", body = Problem,
         content_type = "application/problem+json"),
        (status = 422, description = "It cannot be set", body = Problem,
         content_type = "application/problem+json"),
        Refusals,
    )
)]
pub(crate) async fn set_learning(
    State(api): State<Arc<Api>>,
    Admin(by): Admin,
    read::Json(new): read::Json<NewLearning>,
) -> Result<Json<RateLimitView>, Problem> {
    let set = api.overrides.set_learning(Some(new.learning), &by);
    set.await.map_err(away)?;
    Ok(Json(view(&api)))
}

/// Follow the flag of the configuration again.
#[utoipa::path(
    delete,
    path = "/v1/admin/rate-limit/learning",
    responses(
        (status = 200, description = "What is set", body = RateLimitView),
        Refusals,
    )
)]
pub(crate) async fn unset_learning(
    State(api): State<Arc<Api>>,
    Admin(by): Admin,
) -> Result<Json<RateLimitView>, Problem> {
    let set = api.overrides.set_learning(None, &by);
    set.await.map_err(away)?;
    Ok(Json(view(&api)))
}

/// Look at what is set about a principal.
#[utoipa::path(
    get,
    path = "/v1/admin/rate-limit/principals/{principal}",
    params(("principal" = String, Path, description = "As in the configuration")),
    responses(
        (status = 200, description = "What is set", body = PrincipalView),
        (status = 404, description = "Nothing is", body = Problem,
         content_type = "application/problem+json"),
        (status = 422, description = "It can be no principal", body = Problem,
         content_type = "application/problem+json"),
        Refusals,
    )
)]
pub(crate) async fn principal(
    State(api): State<Arc<Api>>,
    Admin(_): Admin,
    Path(principal): Path<String>,
) -> Result<Json<PrincipalView>, Problem> {
    check(&principal)?;
    api.overrides.read().await.map_err(away)?;
    let known = api.overrides.principals();
    let found = known.into_iter().find(|(name, _)| *name == principal);
    match found {
        Some((name, set)) => Ok(Json(principal_view(name, set))),
        None => Err(Problem::new(
            Kind::NotFound,
            "nothing is set about this principal",
            "the configuration holds for it; see GET /v1/admin/rate-limit",
        )),
    }
}

/// Set what holds of a principal, in every worker within a second.
#[utoipa::path(
    put,
    path = "/v1/admin/rate-limit/principals/{principal}",
    params(("principal" = String, Path, description = "As in the configuration")),
    request_body = NewSetting,
    responses(
        (status = 200, description = "What is set", body = PrincipalView),
        (status = 400, description = "No JSON", body = Problem,
         content_type = "application/problem+json"),
        (status = 413, description = "Too large", body = Problem,
         content_type = "application/problem+json"),
        (status = 415, description = "Another Content-Type", body = Problem,
         content_type = "application/problem+json"),
        (status = 422, description = "It cannot be set", body = Problem,
         content_type = "application/problem+json"),
        Refusals,
    )
)]
pub(crate) async fn set_principal(
    State(api): State<Arc<Api>>,
    Admin(by): Admin,
    Path(principal): Path<String>,
    read::Json(new): read::Json<NewSetting>,
) -> Result<Json<PrincipalView>, Problem> {
    check(&principal)?;
    if new.ignoring && principal.starts_with("app:") {
        return Err(Problem::invalid(
            "ignoring goes with no name that any client can give itself",
            "authenticate the client, and set it under the name of its token",
        ));
    }
    if new
        .capacity
        .is_some_and(|capacity| capacity > limits::CAPACITY)
    {
        return Err(Problem::invalid(
            "capacity is too large",
            format!("give at most {}", limits::CAPACITY),
        ));
    }
    let spans = 1..=limits::RATE_SECONDS;
    if new
        .rate_seconds
        .is_some_and(|seconds| !spans.contains(&seconds))
    {
        return Err(Problem::invalid(
            "rate_seconds is no span",
            format!("give 1 to {}", limits::RATE_SECONDS),
        ));
    }
    let known = api.overrides.principals();
    if known.len() >= limits::OVERRIDES && !known.iter().any(|(name, _)| *name == principal) {
        return Err(Problem::invalid(
            format!("something is set about {} principals already", known.len()),
            "take something away first, or set it in the configuration",
        ));
    }
    let setting = Setting {
        enforcing: new.enforcing,
        ignoring: new.ignoring,
        capacity: new.capacity,
        rate_seconds: new.rate_seconds,
    };
    if setting.enforcing && setting.ignoring {
        tracing::warn!(
            principal,
            "is set to be enforced and to be ignored: it is only learnt from; take one away"
        );
    }
    let set = api.overrides.set_principal(&principal, Some(&setting), &by);
    set.await.map_err(away)?;
    let set = Set {
        value: setting,
        by,
        at_ms: when::now_ms(),
    };
    Ok(Json(principal_view(principal, set)))
}

/// Follow the configuration about a principal again.
#[utoipa::path(
    delete,
    path = "/v1/admin/rate-limit/principals/{principal}",
    params(("principal" = String, Path, description = "As in the configuration")),
    responses(
        (status = 200, description = "What is set", body = RateLimitView),
        (status = 422, description = "It can be no principal", body = Problem,
         content_type = "application/problem+json"),
        Refusals,
    )
)]
pub(crate) async fn unset_principal(
    State(api): State<Arc<Api>>,
    Admin(by): Admin,
    Path(principal): Path<String>,
) -> Result<Json<RateLimitView>, Problem> {
    check(&principal)?;
    let set = api.overrides.set_principal(&principal, None, &by);
    set.await.map_err(away)?;
    Ok(Json(view(&api)))
}

/// The subject of a certificate is one as well.
fn check(principal: &str) -> Result<(), Problem> {
    if principal.is_empty() {
        return Err(Problem::invalid("principal is empty", "name one"));
    }
    read::sentence("principal", principal)
}

fn view(api: &Api) -> RateLimitView {
    let set = api.overrides.learning();
    let principals = api.overrides.principals();
    RateLimitView {
        enabled: api.limits.is_some(),
        learning: set.as_ref().map_or(api.learning, |set| set.value),
        learning_set: set.map(|set| LearningView {
            learning: set.value,
            by: set.by,
            at: when::utc(set.at_ms),
        }),
        principals: principals
            .into_iter()
            .map(|(name, set)| principal_view(name, set))
            .collect(),
    }
}

fn principal_view(principal: String, set: Set<Setting>) -> PrincipalView {
    PrincipalView {
        principal,
        enforcing: set.value.enforcing,
        ignoring: set.value.ignoring,
        capacity: set.value.capacity,
        rate_seconds: set.value.rate_seconds,
        by: set.by,
        at: when::utc(set.at_ms),
    }
}

fn away(error: StorageError) -> Problem {
    unavailable(format!("the store does not answer: {error:?}"))
}
