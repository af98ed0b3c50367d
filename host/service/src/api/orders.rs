//! /v1/orders.

use std::sync::Arc;

use abide_host::wit::keys::KeyKind;
use abide_host::wit::orders::{Order, OrderFilter, Request, Subject, Wish};
use axum::extract::{Path, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};

use super::Api;
use super::caller::{Reader, Writer};
use super::model::{
    Cancellation, ExplainQuery, ExplanationView, NewOrder, OrderPage, OrderQuery, OrderView,
    request_from_text,
};
use super::problem::{Kind, Problem, Refusals};
use super::read::{self, Json, MaybeJson, Query};
use crate::admission::Arriving;
use crate::delivery::Delivery;
use crate::input::{names, pem};
use crate::{limits, when};

/// The header that does what `key` does.
const IDEMPOTENCY_KEY: &str = "idempotency-key";

/// Ask for a certificate.
///
/// The same wish under the same key is the same order, however often it is sent.
#[utoipa::path(
    post,
    path = "/v1/orders",
    request_body = NewOrder,
    params(("Idempotency-Key" = Option<String>, Header, description = "As `key` in the body")),
    responses(
        (status = 201, description = "The order is new", body = OrderView,
         headers(("Location" = String, description = "Its path"))),
        (status = 200, description = "The order stood already", body = OrderView),
        (status = 400, description = "No JSON", body = Problem,
         content_type = "application/problem+json"),
        (status = 409, description = "The key stands for another wish", body = Problem,
         content_type = "application/problem+json"),
        (status = 413, description = "Too large", body = Problem,
         content_type = "application/problem+json"),
        (status = 415, description = "Another Content-Type", body = Problem,
         content_type = "application/problem+json"),
        (status = 422, description = "It cannot be served", body = Problem,
         content_type = "application/problem+json"),
        Refusals,
    )
)]
pub(crate) async fn create(
    State(api): State<Arc<Api>>,
    Writer(principal): Writer,
    headers: HeaderMap,
    Json(order): Json<NewOrder>,
) -> Result<Response, Problem> {
    let arriving = Arriving {
        by_hand: order.by_hand.unwrap_or(false),
        criticality: order.criticality.unwrap_or_default().into(),
    };
    let wish = wish(&api, principal, &headers, order)?;
    let (order, new) = api.gatekeeper.create(&wish, arriving).await?;
    let status = match new {
        true => {
            api.wake.notify_one();
            StatusCode::CREATED
        }
        false => StatusCode::OK,
    };
    let location = format!("/v1/orders/{}", order.id);
    let body = axum::Json(OrderView::from(order));
    Ok((status, [(header::LOCATION, location)], body).into_response())
}

/// Look at orders.
#[utoipa::path(
    get,
    path = "/v1/orders",
    params(OrderQuery),
    responses(
        (status = 200, description = "Some orders", body = OrderPage),
        (status = 422, description = "The query cannot be served", body = Problem,
         content_type = "application/problem+json"),
        Refusals,
    )
)]
pub(crate) async fn list(
    State(api): State<Arc<Api>>,
    _: Reader,
    Query(query): Query<OrderQuery>,
) -> Result<axum::Json<OrderPage>, Problem> {
    read::name("account", query.account.as_deref().unwrap_or_default())?;
    // A client's certificate may have a name with other letters.
    read::sentence("principal", query.principal.as_deref().unwrap_or_default())?;
    read::cursor(query.cursor.as_deref())?;
    let limit = read::page(query.limit)?;
    let filter = OrderFilter {
        account: query.account,
        state: query.state.map(Into::into),
        principal: query.principal,
    };
    let (orders, next) = api
        .orders
        .list(&filter, query.cursor.as_deref(), limit)
        .await?;
    Ok(axum::Json(OrderPage {
        items: orders.into_iter().map(OrderView::from).collect(),
        next,
    }))
}

/// Look at one order.
#[utoipa::path(
    get,
    path = "/v1/orders/{id}",
    params(("id" = String, Path, description = "The order")),
    responses(
        (status = 200, description = "The order", body = OrderView),
        (status = 404, description = "There is none", body = Problem,
         content_type = "application/problem+json"),
        Refusals,
    )
)]
pub(crate) async fn get(
    State(api): State<Arc<Api>>,
    _: Reader,
    Path(id): Path<String>,
) -> Result<axum::Json<OrderView>, Problem> {
    read::id(&id, "order")?;
    let mut view = OrderView::from(api.orders.get(&id).await?);
    if api.delivers {
        let seen = Delivery::of(&*api.storage, &id).await;
        view.delivery = seen.map(Into::into);
    }
    Ok(axum::Json(view))
}

/// Ask for another certificate at once.
///
/// The count of failures stays. An order that is being served stays as it is.
#[utoipa::path(
    post,
    path = "/v1/orders/{id}/renew",
    params(("id" = String, Path, description = "The order")),
    responses(
        (status = 200, description = "The order", body = OrderView),
        (status = 404, description = "There is none", body = Problem,
         content_type = "application/problem+json"),
        (status = 409, description = "Its state does not allow it", body = Problem,
         content_type = "application/problem+json"),
        Refusals,
    )
)]
pub(crate) async fn renew(
    State(api): State<Arc<Api>>,
    Writer(principal): Writer,
    Path(id): Path<String>,
) -> Result<axum::Json<OrderView>, Problem> {
    read::id(&id, "order")?;
    let order = api.orders.renew(&id, &principal, &api.policies).await?;
    api.wake.notify_one();
    Ok(axum::Json(order.into()))
}

/// End an order; its certificate stays.
#[utoipa::path(
    post,
    path = "/v1/orders/{id}/cancel",
    params(("id" = String, Path, description = "The order")),
    request_body = Option<Cancellation>,
    responses(
        (status = 200, description = "The order", body = OrderView),
        (status = 400, description = "No JSON", body = Problem,
         content_type = "application/problem+json"),
        (status = 404, description = "There is none", body = Problem,
         content_type = "application/problem+json"),
        (status = 413, description = "Too large", body = Problem,
         content_type = "application/problem+json"),
        (status = 415, description = "Another Content-Type", body = Problem,
         content_type = "application/problem+json"),
        (status = 422, description = "It cannot be served", body = Problem,
         content_type = "application/problem+json"),
        Refusals,
    )
)]
pub(crate) async fn cancel(
    State(api): State<Arc<Api>>,
    Writer(principal): Writer,
    Path(id): Path<String>,
    MaybeJson(cancellation): MaybeJson<Cancellation>,
) -> Result<axum::Json<OrderView>, Problem> {
    read::id(&id, "order")?;
    read::sentence("why", &cancellation.why)?;
    let order = api
        .orders
        .cancel(&id, &principal, &cancellation.why)
        .await?;
    Ok(axum::Json(order.into()))
}

/// The newest certificate and its chain, leaf first.
#[utoipa::path(
    get,
    path = "/v1/orders/{id}/certificate",
    params(("id" = String, Path, description = "The order")),
    responses(
        (status = 200, description = "PEM", body = String,
         content_type = "application/pem-certificate-chain"),
        (status = 404, description = "There is no order, or no certificate yet", body = Problem,
         content_type = "application/problem+json"),
        Refusals,
    )
)]
pub(crate) async fn certificate(
    State(api): State<Arc<Api>>,
    _: Reader,
    Path(id): Path<String>,
) -> Result<Response, Problem> {
    read::id(&id, "order")?;
    let order = api.orders.get(&id).await?;
    if order.chain.is_empty() {
        return Err(Problem::new(
            Kind::NotFound,
            format!("the order has no certificate yet: {}", order.reason),
            match order.next_attempt_ms {
                Some(at) => format!(
                    "the next attempt is due {} ({})",
                    when::utc(at),
                    when::distance(when::now_ms(), at)
                ),
                None => format!("look at the order: GET /v1/orders/{id}"),
            },
        ));
    }
    // RFC 8555, 9.1.
    let media_type = [(header::CONTENT_TYPE, "application/pem-certificate-chain")];
    Ok((media_type, pem::encode_certificates(&order.chain)).into_response())
}

/// Why the next attempt is when it is, and what would follow.
#[utoipa::path(
    get,
    path = "/v1/orders/{id}/explain",
    params(("id" = String, Path, description = "The order"), ExplainQuery),
    responses(
        (status = 200, description = "Rules and forecast", body = ExplanationView),
        (status = 404, description = "There is no order", body = Problem,
         content_type = "application/problem+json"),
        (status = 422, description = "The query cannot be served", body = Problem,
         content_type = "application/problem+json"),
        Refusals,
    )
)]
pub(crate) async fn explain(
    State(api): State<Arc<Api>>,
    _: Reader,
    Path(id): Path<String>,
    Query(query): Query<ExplainQuery>,
) -> Result<axum::Json<ExplanationView>, Problem> {
    const HOUR_MS: u64 = 3_600_000;
    read::id(&id, "order")?;
    let hours = u64::from(query.hours.unwrap_or(48));
    if hours == 0 || hours * HOUR_MS > limits::FORECAST_MS {
        return Err(Problem::invalid(
            format!("hours is {hours}"),
            format!("give 1 to {}", limits::FORECAST_MS / HOUR_MS),
        ));
    }
    let until_ms = when::now_ms().saturating_add(hours * HOUR_MS);
    let order: Order = api.orders.get(&id).await?;
    let explanation = api.orders.explain(&id, &api.policies, until_ms).await?;
    let considered = api.routes.explain(&order.wish).await?;
    Ok(axum::Json(ExplanationView::new(
        &order,
        explanation,
        considered,
    )))
}

/// From the body to a wish; everything that can be known to be wrong is found here.
fn wish(
    api: &Api,
    principal: String,
    headers: &HeaderMap,
    order: NewOrder,
) -> Result<Wish, Problem> {
    let origin = order.origin.as_deref().unwrap_or("api");
    for (field, text) in [
        ("account", order.account.as_str()),
        ("application", &order.application),
        ("origin", origin),
    ] {
        read::name(field, text)?;
    }
    let key = key(headers, order.key.as_deref())?;
    let issuer = issuer(api, order.issuer.as_deref())?;
    let request = request(&order)?;
    Ok(Wish {
        key,
        origin: origin.to_owned(),
        account: order.account,
        application: order.application,
        principal,
        issuer,
        request,
        renews: order.renews.unwrap_or(true),
    })
}

fn key(headers: &HeaderMap, body: Option<&str>) -> Result<Option<String>, Problem> {
    let header = match headers.get(IDEMPOTENCY_KEY) {
        None => None,
        Some(value) => Some(value.to_str().map_err(|_| {
            Problem::invalid(
                "Idempotency-Key is no text",
                "use letters, digits and ._:@/+-",
            )
        })?),
    };
    let key = match (header, body) {
        (Some(header), Some(body)) if header != body => {
            return Err(Problem::invalid(
                "Idempotency-Key and `key` say different things",
                "give one of them",
            ));
        }
        (header, body) => header.or(body),
    };
    let Some(key) = key else {
        return Ok(None);
    };
    read::name("key", key)?;
    if key.is_empty() {
        return Err(Problem::invalid(
            "key is empty",
            "leave it out, or give one",
        ));
    }
    Ok(Some(key.to_owned()))
}

fn issuer(api: &Api, given: Option<&str>) -> Result<String, Problem> {
    let known = || {
        let names: Vec<&str> = api.issuers.iter().map(String::as_str).collect();
        format!("give one of: {}", names.join(", "))
    };
    match given {
        Some(name) if api.issuers.contains(name) => Ok(name.to_owned()),
        Some(_) => Err(Problem::invalid("there is no issuer of this name", known())),
        None => match (api.issuers.first(), api.issuers.len()) {
            (Some(only), 1) => Ok(only.clone()),
            _ => Err(Problem::invalid("issuer is missing", known())),
        },
    }
}

fn request(order: &NewOrder) -> Result<Request, Problem> {
    let invalid = |detail: String, action: &str| Err(Problem::invalid(detail, action));
    if let Some(csr) = &order.csr {
        if order.subject.is_some() || !order.sans.is_empty() || order.key_kind.is_some() {
            return invalid(
                "csr says what subject, sans and key_kind say".to_owned(),
                "give either csr or the others",
            );
        }
        let der = match request_from_text(csr) {
            Ok(der) => der,
            Err(why) => {
                return invalid(
                    format!("csr cannot be read: {why}"),
                    "give a PKCS #10 request in PEM, or its DER in base64",
                );
            }
        };
        if der.len() > limits::CSR {
            return Err(Problem::invalid(
                format!("csr has {} bytes", der.len()),
                format!("give at most {}", limits::CSR),
            ));
        }
        return Ok(Request::Csr(der));
    }
    if order.sans.len() > limits::SANS {
        return Err(Problem::invalid(
            format!("sans has {} names", order.sans.len()),
            format!("give at most {}", limits::SANS),
        ));
    }
    let subject = order.subject.as_deref().unwrap_or_default();
    if subject.is_empty() && order.sans.is_empty() {
        return invalid(
            "nothing says what is to be certified".to_owned(),
            "give csr, or subject, or sans",
        );
    }
    if subject.len() > limits::SUBJECT {
        return Err(Problem::invalid(
            format!("subject has {} bytes", subject.len()),
            format!("give at most {}", limits::SUBJECT),
        ));
    }
    read::sentence("subject", subject)?;
    if !subject.is_empty()
        && let Err(why) = names::distinguished_name(subject)
    {
        return invalid(format!("subject: {why}"), "write it as /CN=…/O=…");
    }
    let mut sans = Vec::with_capacity(order.sans.len());
    for (index, san) in order.sans.iter().enumerate() {
        if san.len() > limits::SAN {
            return Err(Problem::invalid(
                format!("sans[{index}] has {} bytes", san.len()),
                format!("give at most {}", limits::SAN),
            ));
        }
        match names::one_alternative_name(san) {
            Ok(san) => sans.push(san),
            Err(why) => {
                return invalid(
                    format!("sans[{index}]: {why}"),
                    "write it as DNS:…, IP:…, URI:… or email:…",
                );
            }
        }
    }
    Ok(Request::Subject(Subject {
        subject: subject.to_owned(),
        sans,
        key: order.key_kind.map_or(KeyKind::EcP256, Into::into),
        rotate: order.rotate.unwrap_or(true),
    }))
}
