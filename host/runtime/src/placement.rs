//! Endpoints of orders and workers of accounts, chosen in the sandbox.

use crate::error::HostError;
use crate::gate::Gate;
use crate::resident::Resident;
use crate::wit::placement::{
    Algorithm, Considered, Criteria, Epoch, Heartbeat, Move, Route, ShardError, Standing,
};
use crate::wit::policy::Mistake;

/// The endpoints of an issuer.
#[derive(Debug)]
pub struct Router(Resident);

/// What one worker knows of the list of workers.
///
/// If a call fails, the next one finds a view that knows what this one was made with: it is old,
/// and stands for nothing until it has read the list again.
#[derive(Debug)]
pub struct ShardView(Resident);

impl Gate {
    /// A router from JSON with `endpoints` and `dynamic_endpoints`.
    pub async fn router(&self, routing: &str) -> Result<Result<Router, Vec<Mistake>>, HostError> {
        let routing = routing.to_owned();
        let resident = self.resident(Box::new(move |store, gate| {
            let routers = gate.abide_cmp_placement().router();
            routers.call_create(store, &routing)
        }));
        Ok(resident.await?.map(Router))
    }

    /// The selector that a class of Spinnaker with its fields means, from JSON to JSON.
    pub async fn selector_from_class(
        &self,
        config: &str,
    ) -> Result<Result<String, Vec<Mistake>>, HostError> {
        self.call(|store, gate| {
            let placement = gate.abide_cmp_placement();
            placement.call_from_class(store, config)
        })
        .await
    }

    /// A view from the JSON of the policy `cache_sharding` and the list as it was read first: by a
    /// heartbeat that began at `started_ms` and had read it at `now_ms`.
    pub async fn shard_view(
        &self,
        policy: &str,
        epoch: &Epoch,
        started_ms: u64,
        now_ms: u64,
    ) -> Result<Result<ShardView, Vec<Mistake>>, HostError> {
        let (policy, epoch) = (policy.to_owned(), epoch.clone());
        let resident = self.resident(Box::new(move |store, gate| {
            let views = gate.abide_cmp_placement().view();
            views.call_create(store, &policy, &epoch, started_ms, now_ms)
        }));
        Ok(resident.await?.map(ShardView))
    }

    /// The list that has to follow the current one, when other workers live than it says.
    pub async fn next_epoch(
        &self,
        policy: &str,
        current: &Epoch,
        heartbeats: &[Heartbeat],
        now_ms: u64,
    ) -> Result<Result<Option<Epoch>, Vec<Mistake>>, HostError> {
        self.call(|store, gate| {
            let placement = gate.abide_cmp_placement();
            placement.call_next_epoch(store, policy, current, heartbeats, now_ms)
        })
        .await
    }

    /// The owner of an account; nobody without workers.
    pub async fn owner(
        &self,
        algorithm: Algorithm,
        account: &str,
        workers: &[String],
    ) -> Result<Option<String>, HostError> {
        self.call(|store, gate| {
            let placement = gate.abide_cmp_placement();
            placement.call_owner(store, algorithm, account, workers)
        })
        .await
    }

    /// Each worker with its position or weight, the owner first.
    pub async fn explain_owner(
        &self,
        algorithm: Algorithm,
        account: &str,
        workers: &[String],
    ) -> Result<Vec<(String, u64)>, HostError> {
        self.call(|store, gate| {
            let placement = gate.abide_cmp_placement();
            placement.call_explain_owner(store, algorithm, account, workers)
        })
        .await
    }

    /// The accounts that change hands when one list of workers follows another.
    pub async fn moves(
        &self,
        algorithm: Algorithm,
        accounts: &[String],
        before: &[String],
        after: &[String],
    ) -> Result<Vec<Move>, HostError> {
        self.call(|store, gate| {
            let placement = gate.abide_cmp_placement();
            placement.call_moves(store, algorithm, accounts, before, after)
        })
        .await
    }
}

impl Router {
    /// Where an order goes; `None` when no entry matches and there is no default.
    pub async fn route(&self, criteria: &Criteria) -> Result<Option<Route>, HostError> {
        self.0
            .call(|store, gate, router| {
                let routers = gate.abide_cmp_placement().router();
                routers.call_route(store, router, criteria)
            })
            .await
    }

    /// Every entry with its judgement, in the order in which they are considered.
    pub async fn explain(&self, criteria: &Criteria) -> Result<Vec<Considered>, HostError> {
        self.0
            .call(|store, gate, router| {
                let routers = gate.abide_cmp_placement().router();
                routers.call_explain(store, router, criteria)
            })
            .await
    }

    /// What is allowed but hardly meant.
    pub async fn lint(&self) -> Result<Vec<Mistake>, HostError> {
        self.0
            .call(|store, gate, router| {
                let routers = gate.abide_cmp_placement().router();
                routers.call_lint(store, router)
            })
            .await
    }
}

impl ShardView {
    /// A later heartbeat has read this list.
    pub async fn read(&self, epoch: &Epoch, started_ms: u64, now_ms: u64) -> Result<(), HostError> {
        self.0
            .call(|store, gate, view| {
                let views = gate.abide_cmp_placement().view();
                views.call_read(store, view, epoch, started_ms, now_ms)
            })
            .await
    }

    /// The whole view as text, for [`crate::Schedule::claim`].
    pub async fn share(&self) -> Result<String, HostError> {
        self.0
            .call(|store, gate, view| {
                let views = gate.abide_cmp_placement().view();
                views.call_share(store, view)
            })
            .await
    }

    /// Whether a worker may act for an account.
    pub async fn standing(
        &self,
        worker: &str,
        account: &str,
        now_ms: u64,
    ) -> Result<Result<Standing, ShardError>, HostError> {
        self.0
            .call(|store, gate, view| {
                let views = gate.abide_cmp_placement().view();
                views.call_standing(store, view, worker, account, now_ms)
            })
            .await
    }
}
