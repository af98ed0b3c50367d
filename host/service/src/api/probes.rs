//! What orchestrators and Prometheus ask. None of it needs a caller: it names nobody.

use std::sync::{Arc, PoisonError};
use std::time::Instant;

use abide_host::wit::storage::Filter;
use axum::Json;
use axum::extract::State;
use axum::http::header;
use axum::response::{IntoResponse, Response};

use super::Api;
use super::model::Health;
use super::problem::{Problem, unavailable};
use crate::metrics::{self, State as Label};
use crate::{limits, words};

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
    responses((status = 200, description = "The text format of OpenMetrics", body = String,
               content_type = "application/openmetrics-text"))
)]
pub(crate) async fn metrics(State(api): State<Arc<Api>>) -> Response {
    if is_old(&api) {
        count_orders(&api).await;
    }
    let media_type = [(header::CONTENT_TYPE, metrics::MEDIA_TYPE)];
    (media_type, api.metrics.text()).into_response()
}

/// Whether the orders are to be counted again; whoever is told so does it.
fn is_old(api: &Api) -> bool {
    let mut counted = api.counted.lock().unwrap_or_else(PoisonError::into_inner);
    if counted.is_some_and(|counted| counted.elapsed() < limits::COUNT_AGE) {
        return false;
    }
    *counted = Some(Instant::now());
    true
}

/// Counts orders by their states. A store has no count of them, so that this reads them all, up
/// to a bound; when it fails, the last count stands.
async fn count_orders(api: &Api) {
    let mut counts = words::STATES.map(|state| (words::state(state), 0i64));
    let mut cursor = None;
    let mut total = 0;
    loop {
        let filter = Filter {
            kind: ORDERS.to_owned(),
            owner: None,
            account: None,
            state: None,
        };
        let Ok(page) = api.storage.list(filter, cursor, limits::MOST_PAGE).await else {
            return;
        };
        for entry in &page.entries {
            for (state, count) in &mut counts {
                *count += i64::from(*state == entry.envelope.state);
            }
        }
        total += page.entries.len();
        if total > limits::COUNTED_ORDERS {
            api.metrics.orders.clear();
            api.metrics.orders_uncounted.set(1);
            return;
        }
        match page.next {
            Some(next) => cursor = Some(next),
            None => break,
        }
    }
    api.metrics.orders_uncounted.set(0);
    for (state, count) in counts {
        api.metrics
            .orders
            .get_or_create(&Label { state })
            .set(count);
    }
}
