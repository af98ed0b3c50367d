//! /v1/shards: which worker serves which account.

use std::sync::Arc;

use abide_host::wit::placement::Algorithm;
use axum::Json;
use axum::extract::State;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use super::Api;
use super::caller::Reader;
use super::problem::{Kind, Problem, Refusals, unavailable};
use super::read::{self, Query};
use crate::shards::{OwnerError, Shards};
use crate::when;

/// The workers among which accounts are divided.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ShardsView {
    /// rendezvous or modulo.
    pub placement: &'static str,
    /// The number of the list.
    pub epoch: u64,
    /// In the order of their names.
    pub workers: Vec<WorkerView>,
}

/// A worker.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct WorkerView {
    /// Its name.
    pub worker: String,
    /// When it said last that it lives, by its own clock.
    #[schema(format = DateTime)]
    pub heartbeat: Option<String>,
}

/// Who serves an account.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct OwnerView {
    /// The account.
    pub account: String,
    /// The worker; none while there are no workers.
    pub owner: Option<String>,
    /// The number of the list.
    pub epoch: u64,
    /// All workers with what speaks for them, the owner first.
    pub because: Vec<ClaimView>,
}

/// What speaks for a worker.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ClaimView {
    /// The worker.
    pub worker: String,
    /// Its weight (rendezvous), or its place in the list (modulo).
    pub number: u64,
}

/// Which account is meant.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct OwnerQuery {
    /// The account.
    pub account: String,
}

/// Look at the workers among which accounts are divided.
#[utoipa::path(
    get,
    path = "/v1/shards",
    responses(
        (status = 200, description = "The workers", body = ShardsView),
        (status = 404, description = "Accounts are not divided", body = Problem,
         content_type = "application/problem+json"),
        Refusals,
    )
)]
pub(crate) async fn workers(
    State(api): State<Arc<Api>>,
    _: Reader,
) -> Result<Json<ShardsView>, Problem> {
    let shards = divided(&api)?;
    let (epoch, workers) = shards
        .listed()
        .await
        .map_err(|error| unavailable(format!("the store does not answer: {error:?}")))?;
    Ok(Json(ShardsView {
        placement: match shards.algorithm() {
            Algorithm::Modulo => "modulo",
            Algorithm::Rendezvous => "rendezvous",
        },
        epoch,
        workers: workers
            .into_iter()
            .map(|seen| WorkerView {
                worker: seen.worker,
                heartbeat: seen.heartbeat_ms.map(when::utc),
            })
            .collect(),
    }))
}

/// Look at which worker serves an account.
#[utoipa::path(
    get,
    path = "/v1/shards/owner",
    params(OwnerQuery),
    responses(
        (status = 200, description = "The owner", body = OwnerView),
        (status = 404, description = "Accounts are not divided", body = Problem,
         content_type = "application/problem+json"),
        (status = 422, description = "The query cannot be served", body = Problem,
         content_type = "application/problem+json"),
        Refusals,
    )
)]
pub(crate) async fn owner(
    State(api): State<Arc<Api>>,
    _: Reader,
    Query(query): Query<OwnerQuery>,
) -> Result<Json<OwnerView>, Problem> {
    read::name("account", &query.account)?;
    let shards = divided(&api)?;
    let (epoch, explained) = shards
        .owner(&query.account)
        .await
        .map_err(|error| match error {
            OwnerError::Store(error) => {
                unavailable(format!("the store does not answer: {error:?}"))
            }
            OwnerError::Sandbox(error) => error.into(),
        })?;
    Ok(Json(OwnerView {
        owner: explained.first().map(|(worker, _)| worker.clone()),
        account: query.account,
        epoch,
        because: explained
            .into_iter()
            .map(|(worker, number)| ClaimView { worker, number })
            .collect(),
    }))
}

fn divided(api: &Api) -> Result<&Shards, Problem> {
    api.shards.as_deref().ok_or_else(|| {
        Problem::new(
            Kind::NotFound,
            "accounts are not divided: every worker serves all of them",
            "set cache_sharding.enabled in the configuration of every worker",
        )
    })
}
