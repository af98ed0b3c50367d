//! What an operator wants to see first.

use std::collections::BTreeMap;
use std::sync::Arc;

use abide_host::wit::schedule::EndpointHealth;
use axum::Json;
use axum::extract::State;
use serde::Serialize;
use utoipa::ToSchema;

use super::Api;
use super::caller::Reader;
use super::probes;
use super::problem::{Problem, unavailable};
use crate::{limits, when};

/// How the service is.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Overview {
    /// The service's clock.
    #[schema(format = DateTime)]
    now: String,
    /// The name of the worker that answers.
    worker: String,
    /// The version of abide.
    version: &'static str,
    /// Orders by state, counted up to a bound.
    orders: BTreeMap<&'static str, u64>,
    tasks: TaskCounts,
    /// Tasks that failed too often, counted up to a bound.
    dead_letters: u32,
    /// Orders that need a task and have none, at this worker's last search.
    zombies: i64,
    /// Endpoints that gave trouble at some time.
    endpoints: Vec<EndpointView>,
}

/// What is to be done.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct TaskCounts {
    /// All of them, counted up to a bound.
    total: u32,
    /// Those whose time has come, and that nobody holds.
    due: u32,
}

/// What all workers share about one endpoint.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct EndpointView {
    /// Its URL.
    server: String,
    /// Retries that the fleet may send now.
    retries_left: u32,
    /// The most of them.
    retries: u32,
    /// How often in a row it asked for less.
    throttled: u32,
    /// Until when it wants nothing; absent when it takes requests.
    #[schema(format = DateTime)]
    not_before: Option<String>,
    /// When any of this changed.
    #[schema(format = DateTime)]
    updated: String,
}

/// See how the service is.
#[utoipa::path(
    get,
    path = "/v1/overview",
    responses(
        (status = 200, description = "How it is", body = Overview),
        super::problem::Refusals,
    )
)]
pub(crate) async fn overview(
    State(api): State<Arc<Api>>,
    _: Reader,
) -> Result<Json<Overview>, Problem> {
    let now_ms = when::now_ms();
    let away = |error| unavailable(format!("the store does not answer: {error:?}"));
    let count = |kind| api.storage.count(kind, now_ms, limits::COUNTED);
    let (total, due) = count("task").await.map_err(away)?;
    let (dead_letters, _) = count("dead-letter").await.map_err(away)?;
    let (endpoints, _) = api
        .schedule
        .endpoints(&api.policies, None, limits::MOST_PAGE)
        .await?;
    Ok(Json(Overview {
        now: when::utc(now_ms),
        worker: api.worker.clone(),
        version: env!("CARGO_PKG_VERSION"),
        orders: probes::orders_by_state(&api).await.map_err(away)?,
        tasks: TaskCounts { total, due },
        dead_letters,
        zombies: api.metrics.zombies.get(),
        endpoints: endpoints.into_iter().map(EndpointView::from).collect(),
    }))
}

impl From<EndpointHealth> for EndpointView {
    fn from(health: EndpointHealth) -> Self {
        EndpointView {
            server: health.server,
            retries_left: health.retries_left,
            retries: health.retries,
            throttled: health.throttled,
            not_before: health.not_before_ms.map(when::utc),
            updated: when::utc(health.updated_ms),
        }
    }
}
