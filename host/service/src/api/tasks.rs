//! Transactions, tasks and dead letters.

use std::sync::Arc;

use abide_host::OrderCallError;
use abide_host::wit::orders::OrderError;
use axum::Json;
use axum::extract::{Path, State};

use super::Api;
use super::caller::{Admin, Reader};
use super::model::{PageQuery, TaskPage, TaskView, TransactionPage, TransactionView};
use super::problem::{Kind, Problem, Refusals};
use super::read::{self, Query};

/// Look at transactions.
#[utoipa::path(
    get,
    path = "/v1/transactions",
    params(PageQuery),
    responses(
        (status = 200, description = "Some transactions", body = TransactionPage),
        (status = 422, description = "The query cannot be served", body = Problem,
         content_type = "application/problem+json"),
        Refusals,
    )
)]
pub(crate) async fn transactions(
    State(api): State<Arc<Api>>,
    _: Reader,
    Query(query): Query<PageQuery>,
) -> Result<Json<TransactionPage>, Problem> {
    let limit = page(&query)?;
    let (all, next) = api.enroller.list(query.cursor.as_deref(), limit).await?;
    Ok(Json(TransactionPage {
        items: all.into_iter().map(TransactionView::from).collect(),
        next,
    }))
}

/// Look at one transaction.
#[utoipa::path(
    get,
    path = "/v1/transactions/{id}",
    params(("id" = String, Path, description = "transactionID in hexadecimal")),
    responses(
        (status = 200, description = "The transaction", body = TransactionView),
        (status = 404, description = "There is none", body = Problem,
         content_type = "application/problem+json"),
        Refusals,
    )
)]
pub(crate) async fn transaction(
    State(api): State<Arc<Api>>,
    _: Reader,
    Path(id): Path<String>,
) -> Result<Json<TransactionView>, Problem> {
    read::id(&id, "transaction")?;
    Ok(Json(api.enroller.get(&id).await?.into()))
}

/// Look at tasks: what is to be done, and when.
#[utoipa::path(
    get,
    path = "/v1/tasks",
    params(PageQuery),
    responses(
        (status = 200, description = "Some tasks", body = TaskPage),
        (status = 422, description = "The query cannot be served", body = Problem,
         content_type = "application/problem+json"),
        Refusals,
    )
)]
pub(crate) async fn tasks(
    State(api): State<Arc<Api>>,
    _: Reader,
    Query(query): Query<PageQuery>,
) -> Result<Json<TaskPage>, Problem> {
    some(&api, false, query).await
}

/// Look at dead letters: tasks that failed too often for reasons of our own.
#[utoipa::path(
    get,
    path = "/v1/dead-letters",
    params(PageQuery),
    responses(
        (status = 200, description = "Some dead letters", body = TaskPage),
        (status = 422, description = "The query cannot be served", body = Problem,
         content_type = "application/problem+json"),
        Refusals,
    )
)]
pub(crate) async fn dead_letters(
    State(api): State<Arc<Api>>,
    _: Reader,
    Query(query): Query<PageQuery>,
) -> Result<Json<TaskPage>, Problem> {
    some(&api, true, query).await
}

/// Make a dead letter a task again, due at once.
#[utoipa::path(
    post,
    path = "/v1/dead-letters/{order}/replay",
    params(("order" = String, Path, description = "The order")),
    responses(
        (status = 200, description = "The task", body = TaskView),
        (status = 404, description = "There is no dead letter", body = Problem,
         content_type = "application/problem+json"),
        (status = 409, description = "The order's state does not allow it", body = Problem,
         content_type = "application/problem+json"),
        Refusals,
    )
)]
pub(crate) async fn replay(
    State(api): State<Arc<Api>>,
    Admin(_): Admin,
    Path(order): Path<String>,
) -> Result<Json<TaskView>, Problem> {
    read::id(&order, "dead letter")?;
    let task = match api.schedule.replay(&order).await {
        Err(OrderCallError::Order(OrderError::NotFound)) => {
            return Err(Problem::new(
                Kind::NotFound,
                "this order has no dead letter",
                "look for it among all dead letters: GET /v1/dead-letters",
            ));
        }
        replayed => replayed?,
    };
    api.wake.notify_one();
    Ok(Json(task.into()))
}

async fn some(api: &Api, dead: bool, query: PageQuery) -> Result<Json<TaskPage>, Problem> {
    let limit = page(&query)?;
    let (tasks, next) = api
        .schedule
        .tasks(dead, query.cursor.as_deref(), limit)
        .await?;
    Ok(Json(TaskPage {
        items: tasks.into_iter().map(TaskView::from).collect(),
        next,
    }))
}

fn page(query: &PageQuery) -> Result<u32, Problem> {
    read::cursor(query.cursor.as_deref())?;
    read::page(query.limit)
}
