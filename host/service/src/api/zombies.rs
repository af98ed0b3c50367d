//! Orders that nobody works on any more: seen, hydrated, or ended by force.

use std::collections::BTreeMap;
use std::sync::Arc;

use abide_host::wit::zombies::{Action, Deed, Hydrated, Refusal, Span, Zombie};
use axum::Json;
use axum::extract::State;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use super::Api;
use super::caller::{Admin, Reader};
use super::model::{OrderView, StateWord};
use super::problem::Problem;
use super::read::{self, Query};
use crate::{limits, when};

/// Which page, and of which orders.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct ZombieQuery {
    /// `next` of the page before.
    cursor: Option<String>,
    /// Orders to look at for a page, 1 to 200; 50 when absent.
    #[param(minimum = 1, maximum = 200)]
    limit: Option<u32>,
}

/// What is to be hydrated: one order, or those that were accepted in a range of times.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
#[into_params(parameter_in = Query)]
pub(crate) struct HydrateQuery {
    /// An order.
    execution_id: Option<String>,
    /// The first time, RFC 3339 in UTC or milliseconds since the epoch. It belongs to the range.
    from: Option<String>,
    /// The last time. It belongs to the range.
    to: Option<String>,
    /// Only say what would be done; true when absent.
    dry_run: Option<bool>,
    /// Also an order that seems alive; false when absent, and for one order only.
    force: Option<bool>,
}

/// What is to be ended.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
#[into_params(parameter_in = Query)]
pub(crate) struct ForceCancelQuery {
    /// The order.
    execution_id: String,
    /// One line for the history.
    reason: Option<String>,
}

/// Some zombies.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ZombiePage {
    /// They, in the order of their ids.
    items: Vec<ZombieView>,
    /// The cursor of the next page; absent on the last one. A page without zombies may have
    /// others behind it.
    next: Option<String>,
}

/// An order that needs a task and has none.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ZombieView {
    /// The order.
    order: String,
    /// For whom it is.
    account: String,
    /// What it is for.
    application: String,
    /// Where it stands.
    state: StateWord,
    /// Why it stands there.
    reason: String,
    /// When it was accepted.
    #[schema(format = DateTime)]
    created: String,
    /// When anything about it was stored last.
    #[schema(format = DateTime)]
    last_progress: String,
    /// So long ago that is.
    age_seconds: u64,
}

/// What hydrating came to, or would.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct HydrationView {
    /// Whether nothing was done.
    dry_run: bool,
    /// By the ids of the orders.
    executions: BTreeMap<String, ExecutionView>,
    /// Whether there are more in the range than one answer tells: ask again.
    more: bool,
}

/// One order.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ExecutionView {
    /// When it was accepted, in milliseconds since the epoch.
    start_time: u64,
    /// What there is to do, one for each part of it.
    actions: Vec<ActionView>,
    /// Whether all of it can be done; if not, the order is left as it is.
    can_apply: bool,
    /// Whether it was done just now.
    applied: bool,
    /// Why the order is left alone, if it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    refused: Option<&'static str>,
}

/// One part.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ActionView {
    /// In one line.
    description: String,
    /// The task that it makes; absent if it cannot be done.
    #[serde(skip_serializing_if = "Option::is_none")]
    message: Option<MessageView>,
    /// What it rests on.
    context: BTreeMap<String, String>,
}

/// A task.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct MessageView {
    /// What it does: `start`, `resume`, `poll`, `confirm` or `check`.
    kind: &'static str,
    /// The order.
    execution_id: String,
    /// What the order is for.
    application: String,
    /// For whom it is.
    account: String,
    /// Its issuer.
    issuer: String,
    /// When it is due.
    #[schema(format = DateTime)]
    retry_at: String,
}

/// Look at zombies: orders that need a task and have had none for longer than the cutoff.
#[utoipa::path(
    get,
    path = "/v1/zombies",
    params(ZombieQuery),
    responses(
        (status = 200, description = "Some zombies", body = ZombiePage),
        (status = 422, description = "The query cannot be served", body = Problem,
         content_type = "application/problem+json"),
        super::problem::Refusals,
    )
)]
pub(crate) async fn list(
    State(api): State<Arc<Api>>,
    _: Reader,
    Query(query): Query<ZombieQuery>,
) -> Result<Json<ZombiePage>, Problem> {
    read::cursor(query.cursor.as_deref())?;
    let limit = read::page(query.limit)?;
    let (found, next) = api
        .zombies
        .find(&api.policies, None, query.cursor.as_deref(), limit)
        .await?;
    Ok(Json(ZombiePage {
        items: found.into_iter().map(ZombieView::from).collect(),
        next,
    }))
}

/// Give zombies the tasks that their stored positions ask for. A dry run unless `dryRun=false`.
#[utoipa::path(
    post,
    path = "/v1/admin/queue/hydrate",
    params(HydrateQuery),
    responses(
        (status = 200, description = "What was done, or would be", body = HydrationView),
        (status = 404, description = "There is no such order", body = Problem,
         content_type = "application/problem+json"),
        (status = 422, description = "The query cannot be served", body = Problem,
         content_type = "application/problem+json"),
        super::problem::Refusals,
    )
)]
pub(crate) async fn hydrate(
    State(api): State<Arc<Api>>,
    Admin(by): Admin,
    Query(query): Query<HydrateQuery>,
) -> Result<Json<HydrationView>, Problem> {
    let dry_run = query.dry_run.unwrap_or(true);
    let force = query.force.unwrap_or(false);
    let mut executions = BTreeMap::new();
    let mut more = false;
    match (&query.execution_id, span(&query)?) {
        (Some(id), None) => {
            read::id(id, "order")?;
            let hydrated = one(&api, id, dry_run, force, &by).await?;
            executions.insert(id.clone(), hydrated);
        }
        (None, Some(_)) if force => {
            return Err(Problem::invalid(
                "force goes with one order only",
                "name it by executionId",
            ));
        }
        (None, Some(span)) => {
            let (orders, are_more) = in_span(&api, span).await?;
            more = are_more;
            for id in orders {
                let hydrated = one(&api, &id, dry_run, false, &by).await?;
                executions.insert(id, hydrated);
            }
        }
        (Some(_), Some(_)) | (None, None) => {
            return Err(Problem::invalid(
                "the query names neither one order nor one range of times",
                "give executionId, or from and to",
            ));
        }
    }
    if executions.values().any(|one| one.applied) {
        api.wake.notify_one();
    }
    Ok(Json(HydrationView {
        dry_run,
        executions,
        more,
    }))
}

/// End an order whatever holds it. Doing it again changes nothing.
#[utoipa::path(
    put,
    path = "/v1/admin/force-cancel",
    params(ForceCancelQuery),
    responses(
        (status = 200, description = "The order", body = OrderView),
        (status = 404, description = "There is no such order", body = Problem,
         content_type = "application/problem+json"),
        (status = 422, description = "The query cannot be served", body = Problem,
         content_type = "application/problem+json"),
        super::problem::Refusals,
    )
)]
pub(crate) async fn force_cancel(
    State(api): State<Arc<Api>>,
    Admin(by): Admin,
    Query(query): Query<ForceCancelQuery>,
) -> Result<Json<OrderView>, Problem> {
    read::id(&query.execution_id, "order")?;
    let why = query.reason.unwrap_or_default();
    read::sentence("reason", &why)?;
    let order = api
        .zombies
        .force_cancel(&query.execution_id, &by, &why)
        .await?;
    api.wake.notify_one();
    Ok(Json(order.into()))
}

async fn one(
    api: &Api,
    id: &str,
    dry_run: bool,
    force: bool,
    by: &str,
) -> Result<ExecutionView, Problem> {
    let hydrated = api
        .zombies
        .hydrate(&api.policies, id, dry_run, force, by)
        .await?;
    Ok(hydrated.into())
}

/// The zombies of a range, and whether there are more than one answer tells.
async fn in_span(api: &Api, span: Span) -> Result<(Vec<String>, bool), Problem> {
    let mut orders = Vec::new();
    let mut cursor: Option<String> = None;
    loop {
        let (found, next) = api
            .zombies
            .find(
                &api.policies,
                Some(span),
                cursor.as_deref(),
                limits::MOST_PAGE,
            )
            .await?;
        orders.extend(found.into_iter().map(|zombie| zombie.order));
        if orders.len() > limits::HYDRATED {
            orders.truncate(limits::HYDRATED);
            return Ok((orders, true));
        }
        match next {
            Some(next) => cursor = Some(next),
            None => return Ok((orders, false)),
        }
    }
}

fn span(query: &HydrateQuery) -> Result<Option<Span>, Problem> {
    let (from, to) = match (&query.from, &query.to) {
        (None, None) => return Ok(None),
        (Some(from), Some(to)) => (time("from", from)?, time("to", to)?),
        _ => {
            return Err(Problem::invalid(
                "a range of times has two ends",
                "give both from and to",
            ));
        }
    };
    if from > to {
        return Err(Problem::invalid(
            "from is later than to",
            "give the earlier time first",
        ));
    }
    Ok(Some(Span {
        from_ms: from,
        to_ms: to,
    }))
}

fn time(name: &str, text: &str) -> Result<u64, Problem> {
    let number = text.bytes().all(|c| c.is_ascii_digit());
    let ms = match number {
        true => text.parse().ok(),
        false => when::from_rfc3339(text),
    };
    ms.ok_or_else(|| {
        Problem::invalid(
            format!("{name} is no time"),
            "give one as 2026-06-01T00:00:00Z, or milliseconds since the epoch",
        )
    })
}

impl From<Zombie> for ZombieView {
    fn from(zombie: Zombie) -> Self {
        ZombieView {
            order: zombie.order,
            account: zombie.account,
            application: zombie.application,
            state: zombie.state.into(),
            reason: zombie.reason,
            created: when::utc(zombie.created_ms),
            last_progress: when::utc(zombie.last_progress_ms),
            age_seconds: zombie.age_ms / 1000,
        }
    }
}

impl From<Hydrated> for ExecutionView {
    fn from(hydrated: Hydrated) -> Self {
        let Hydrated {
            order,
            account,
            application,
            issuer,
            ..
        } = hydrated;
        let message = |action: &Action| {
            let message = action.message?;
            Some(MessageView {
                kind: match message.deed {
                    Deed::Start => "start",
                    Deed::Resume => "resume",
                    Deed::Poll => "poll",
                    Deed::Confirm => "confirm",
                    Deed::Check => "check",
                },
                execution_id: order.clone(),
                application: application.clone(),
                account: account.clone(),
                issuer: issuer.clone(),
                retry_at: when::utc(message.retry_at_ms),
            })
        };
        let actions = hydrated.actions.into_iter().map(|action| ActionView {
            message: message(&action),
            description: action.description,
            context: action.context.into_iter().collect(),
        });
        ExecutionView {
            start_time: hydrated.created_ms,
            actions: actions.collect(),
            can_apply: hydrated.can_apply,
            applied: hydrated.applied,
            refused: hydrated.refused.map(|refusal| match refusal {
                Refusal::AtRest => "it needs no task",
                Refusal::Alive => "it has a task, a worker, or had progress just now; see force",
            }),
        }
    }
}
