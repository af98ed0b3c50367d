//! The HTTP API under /v1, described by the OpenAPI document that it serves.

mod caller;
mod model;
mod orders;
mod overview;
mod page;
mod probes;
mod problem;
mod rate_limit;
mod read;
mod shards;
mod tasks;
mod zombies;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Instant;

use abide_host::{Enroller, Orders, Schedule, Storage, Zombies};
use axum::Router;
use axum::extract::{MatchedPath, Request, State};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use tokio::sync::Notify;
use utoipa::openapi::security::{Http, HttpAuthScheme, SecurityScheme};
use utoipa::{Modify, OpenApi};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

pub(crate) use caller::Callers;
pub(crate) use problem::{Kind, Problem, unavailable};

use crate::admission::{Gatekeeper, Limits, Overrides};
use crate::limits;
use crate::metrics::{self, Metrics};
use crate::routes::Routes;
use crate::shards::Shards;

/// What every request needs.
pub(crate) struct Api {
    pub(crate) enroller: Enroller,
    pub(crate) orders: Orders,
    pub(crate) schedule: Schedule,
    pub(crate) zombies: Zombies,
    pub(crate) storage: Arc<dyn Storage>,
    pub(crate) policies: Arc<str>,
    pub(crate) issuers: BTreeSet<String>,
    pub(crate) callers: Callers,
    pub(crate) metrics: Arc<Metrics>,
    pub(crate) wake: Arc<Notify>,
    pub(crate) delivers: bool,
    /// The name of this worker.
    pub(crate) worker: String,
    pub(crate) gatekeeper: Gatekeeper,
    /// Absent where requests are not limited.
    pub(crate) limits: Option<Limits>,
    pub(crate) overrides: Arc<Overrides>,
    /// Whether a principal that is in no list is only learnt from, by the configuration.
    pub(crate) learning: bool,
    pub(crate) routes: Arc<Routes>,
    /// Absent where accounts are not divided.
    pub(crate) shards: Option<Arc<Shards>>,
}

#[derive(OpenApi)]
#[openapi(
    info(
        title = "abide",
        description = "Certificates by CMP, obtained and renewed. Times are RFC 3339 in UTC. \
                       Errors are problem details (RFC 9457).",
        license(name = "Apache-2.0 OR MIT"),
    ),
    modifiers(&Security),
    security((), ("bearer" = [])),
)]
struct Document;

struct Security;

impl Modify for Security {
    fn modify(&self, document: &mut utoipa::openapi::OpenApi) {
        let bearer = SecurityScheme::Http(Http::new(HttpAuthScheme::Bearer));
        document
            .components
            .get_or_insert_default()
            .add_security_scheme("bearer", bearer);
    }
}

fn routes() -> OpenApiRouter<Arc<Api>> {
    OpenApiRouter::with_openapi(Document::openapi())
        .routes(routes!(orders::list, orders::create))
        .routes(routes!(orders::get))
        .routes(routes!(orders::renew))
        .routes(routes!(orders::cancel))
        .routes(routes!(orders::certificate))
        .routes(routes!(orders::explain))
        .routes(routes!(tasks::transactions))
        .routes(routes!(tasks::transaction))
        .routes(routes!(tasks::tasks))
        .routes(routes!(tasks::dead_letters))
        .routes(routes!(tasks::replay))
        .routes(routes!(zombies::list))
        .routes(routes!(zombies::hydrate))
        .routes(routes!(zombies::force_cancel))
        .routes(routes!(overview::overview))
        .routes(routes!(shards::workers))
        .routes(routes!(shards::owner))
        .routes(routes!(rate_limit::settings))
        .routes(routes!(
            rate_limit::set_learning,
            rate_limit::unset_learning
        ))
        .routes(routes!(
            rate_limit::principal,
            rate_limit::set_principal,
            rate_limit::unset_principal
        ))
        .routes(routes!(probes::healthz))
        .routes(routes!(probes::readyz))
        .routes(routes!(probes::metrics))
}

/// The OpenAPI document.
pub fn openapi() -> utoipa::openapi::OpenApi {
    rate_limit::documented(routes().split_for_parts().1)
}

/// All routes.
pub(crate) fn router(api: Arc<Api>) -> Router {
    let (router, document) = routes().split_for_parts();
    let document = rate_limit::documented(document)
        .to_json()
        .unwrap_or_default();
    router
        .merge(page::routes())
        .route(
            "/openapi.json",
            axum::routing::get(|| async move {
                let media_type = [(axum::http::header::CONTENT_TYPE, "application/json")];
                (media_type, document)
            }),
        )
        .fallback(nowhere)
        .method_not_allowed_fallback(not_so)
        .layer(axum::middleware::from_fn_with_state(
            api.clone(),
            rate_limit::limited,
        ))
        .layer(axum::middleware::from_fn_with_state(api.clone(), watch))
        .with_state(api)
}

async fn nowhere(request: Request) -> Problem {
    Problem::new(
        Kind::NotFound,
        format!("nothing is at {}", request.uri().path()),
        "see /openapi.json for what there is",
    )
}

async fn not_so(request: Request) -> Problem {
    Problem::new(
        Kind::Method,
        format!(
            "{} does not go with {}",
            request.method(),
            request.uri().path()
        ),
        "see /openapi.json for what goes with it",
    )
}

/// Bounds and counts each request.
async fn watch(State(api): State<Arc<Api>>, request: Request, next: Next) -> Response {
    let began = Instant::now();
    let method = match request.method().as_str() {
        known @ ("GET" | "POST" | "HEAD" | "PUT" | "DELETE" | "PATCH" | "OPTIONS") => known,
        _ => "other",
    }
    .to_owned();
    let route = request
        .extensions()
        .get::<MatchedPath>()
        .map_or("none", MatchedPath::as_str)
        .to_owned();
    let path = request.uri().path().to_owned();
    let response = match tokio::time::timeout(limits::REQUEST_TIME, next.run(request)).await {
        Ok(response) => response,
        Err(_) => Problem::new(
            Kind::Timeout,
            format!("it was not done in {} s", limits::REQUEST_TIME.as_secs()),
            "send the same again; with an idempotency key nothing happens twice",
        )
        .into_response(),
    };
    let status = response.status().as_u16();
    tracing::debug!(method, path, status, "request");
    let label = metrics::Http {
        method,
        route,
        status,
    };
    api.metrics.http.get_or_create(&label).inc();
    api.metrics
        .http_seconds
        .observe(began.elapsed().as_secs_f64());
    response
}
