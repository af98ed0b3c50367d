//! What orchestrators and Prometheus ask. None of it needs a caller: it names nobody.

use std::collections::BTreeMap;
use std::sync::Arc;

use abide_host::wit::storage::StorageError;
use axum::Json;
use axum::extract::State;
use axum::http::{HeaderMap, header};
use axum::response::{IntoResponse, Response};

use super::Api;
use super::model::Health;
use super::problem::{Problem, unavailable};
use crate::exposition::Form;
use crate::metrics::State as Label;
use crate::{limits, when, words};

/// The family of orders in the store.
const ORDERS: &str = "standing-order";

/// Whether the process lives.
#[utoipa::path(
    get,
    path = "/healthz",
    responses((status = 200, description = "It lives", body = Health))
)]
pub(crate) async fn healthz() -> Json<Health> {
    Json(Health { status: "ok" })
}

/// Whether it can do its work: the store answers.
#[utoipa::path(
    get,
    path = "/readyz",
    responses(
        (status = 200, description = "It can", body = Health),
        (status = 503, description = "It cannot", body = Problem,
         content_type = "application/problem+json"),
    )
)]
pub(crate) async fn readyz(State(api): State<Arc<Api>>) -> Result<Json<Health>, Problem> {
    match api.storage.get(ORDERS, "ready").await {
        Ok(_) => Ok(Json(Health { status: "ok" })),
        Err(error) => Err(unavailable(format!("the store does not answer: {error:?}"))),
    }
}

/// Counters for Prometheus.
#[utoipa::path(
    get,
    path = "/metrics",
    responses((status = 200, description = "The text format of Prometheus, or OpenMetrics for \
                                            who accepts it", content(
        (String = "text/plain"),
        (String = "application/openmetrics-text"),
    )))
)]
pub(crate) async fn metrics(State(api): State<Arc<Api>>, headers: HeaderMap) -> Response {
    // When the store does not answer, the last counts stand.
    for (state, count) in orders_by_state(&api).await.unwrap_or_default() {
        let count = i64::try_from(count).unwrap_or(i64::MAX);
        api.metrics
            .orders
            .get_or_create(&Label { state })
            .set(count);
    }
    let tasks = api.storage.count("task", when::now_ms(), limits::COUNTED);
    if let Ok((total, due)) = tasks.await {
        api.metrics.tasks.set(total.into());
        api.metrics.tasks_due.set(due.into());
    }
    let accept = headers.get(header::ACCEPT);
    let form = Form::wanted(accept.and_then(|accept| accept.to_str().ok()));
    let media_type = [(header::CONTENT_TYPE, form.media_type())];
    (media_type, api.metrics.text(form)).into_response()
}

/// Orders by state, up to a bound for each.
pub(super) async fn orders_by_state(
    api: &Api,
) -> Result<BTreeMap<&'static str, u64>, StorageError> {
    let mut counts = BTreeMap::new();
    for state in words::STATES {
        let word = words::state(state);
        let count = api.storage.count_state(ORDERS, word, limits::COUNTED);
        counts.insert(word, count.await?.into());
    }
    Ok(counts)
}
