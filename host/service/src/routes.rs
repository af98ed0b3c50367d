//! The CMP endpoint of an order, where an issuer has several.

use std::borrow::Cow;
use std::collections::BTreeMap;

use abide_host::wit::orders::{OrderError, Wish};
use abide_host::wit::placement::{Considered, Criteria};
use abide_host::wit::policy::Mistake;
use abide_host::wit::schedule::{Issuer, Work};
use abide_host::{Gate, HostError, OrderCallError, Orders, Router};
use tracing::info;

/// The issuers, and the routers of those with several endpoints.
pub(crate) struct Routes {
    issuers: BTreeMap<String, Issuer>,
    routers: BTreeMap<String, Router>,
    orders: Orders,
}

/// What is known about the order of a wish.
fn criteria(wish: &Wish) -> Criteria {
    let known = |text: &String| (!text.is_empty()).then(|| text.clone());
    Criteria {
        application: known(&wish.application),
        account: known(&wish.account),
        user: known(&wish.principal),
        cloud_provider: None,
        execution_type: None,
        origin: known(&wish.origin),
        location: None,
        user_origin: None,
    }
}

impl Routes {
    /// Compiles the routing of each issuer that has several endpoints, as JSON by its name.
    pub(crate) async fn new(
        gate: &Gate,
        issuers: BTreeMap<String, Issuer>,
        routings: BTreeMap<String, String>,
        orders: Orders,
    ) -> Result<Result<Self, Vec<Mistake>>, HostError> {
        let mut routers = BTreeMap::new();
        for (name, routing) in routings {
            match gate.router(&routing).await? {
                Ok(router) => routers.insert(name, router),
                Err(mistakes) => return Ok(Err(mistakes)),
            };
        }
        Ok(Ok(Routes {
            issuers,
            routers,
            orders,
        }))
    }

    /// The issuer of a task, at the endpoint that a new transaction would have.
    pub(crate) async fn of(&self, work: &Work) -> Result<Option<Cow<'_, Issuer>>, OrderCallError> {
        let Some(issuer) = self.issuers.get(&work.issuer) else {
            return Ok(None);
        };
        let Some(router) = self.routers.get(&work.issuer) else {
            return Ok(Some(Cow::Borrowed(issuer)));
        };
        let wish = match self.orders.get(&work.order).await {
            Ok(order) => order.wish,
            // What becomes of a task without a readable order is decided in its run.
            Err(OrderCallError::Order(OrderError::NotFound | OrderError::Unreadable(_))) => {
                return Ok(Some(Cow::Borrowed(issuer)));
            }
            Err(error) => return Err(error),
        };
        let criteria = criteria(&wish);
        let mut issuer = issuer.clone();
        match router.route(&criteria).await? {
            Some(route) => {
                info!(
                    order = work.order,
                    policy = "selector",
                    verdict = route.url,
                    entry = route.entry,
                    reason = route.why,
                    "endpoint of a new transaction"
                );
                issuer.route = format!("{}: {}", route.entry, route.why);
                issuer.server = route.url;
            }
            None => {
                let considered = router.explain(&criteria).await?;
                let lines = considered
                    .iter()
                    .map(|entry| format!("{}: {}", entry.entry, entry.why));
                issuer.route = lines.collect::<Vec<_>>().join("; ");
                issuer.server.clear();
            }
        }
        Ok(Some(Cow::Owned(issuer)))
    }

    /// The endpoints as a new transaction of a wish would consider them; none where the issuer
    /// has but one.
    pub(crate) async fn explain(&self, wish: &Wish) -> Result<Vec<Considered>, HostError> {
        match self.routers.get(&wish.issuer) {
            Some(router) => router.explain(&criteria(wish)).await,
            None => Ok(Vec::new()),
        }
    }
}
