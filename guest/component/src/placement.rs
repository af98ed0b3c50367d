use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::cell::RefCell;

use abide_policy::selector::{self, ClassConfig, Criteria, Routing, Selector};
use abide_policy::shard::{self, Heartbeat, Placement, ShardError, Sharding, Standing};

use crate::Component;
use crate::bindings::exports::abide::cmp::placement as wit;
use crate::policy::{parsed, reported, whole};

impl wit::Guest for Component {
    type Router = Router;
    type View = View;

    fn from_class(config: String) -> Result<String, Vec<wit::Mistake>> {
        let config: ClassConfig =
            serde_json::from_str(&config).map_err(|error| whole(error.to_string()))?;
        let selector = Selector::from_class(&config).map_err(|error| whole(error.to_string()))?;
        serde_json::to_string(&selector).map_err(|error| whole(error.to_string()))
    }

    fn next_epoch(
        policy: String,
        current: wit::Epoch,
        heartbeats: Vec<wit::Heartbeat>,
        now_ms: u64,
    ) -> Result<Option<wit::Epoch>, Vec<wit::Mistake>> {
        let policy: Sharding = parsed(&policy)?;
        let heartbeats: Vec<Heartbeat<'_>> = heartbeats
            .iter()
            .map(|beat| Heartbeat {
                worker: &beat.worker,
                at_ms: beat.at_ms,
            })
            .collect();
        let live = policy.live(&heartbeats, now_ms);
        let next = policy.next_epoch(&epoch(current), &live);
        Ok(next.map(|epoch| wit::Epoch {
            number: epoch.number,
            workers: epoch.workers,
        }))
    }

    fn owner(algorithm: wit::Algorithm, account: String, workers: Vec<String>) -> Option<String> {
        let owner = placement(algorithm).owner(&account, &workers);
        owner.map(ToString::to_string)
    }

    fn explain_owner(
        algorithm: wit::Algorithm,
        account: String,
        workers: Vec<String>,
    ) -> Vec<(String, u64)> {
        let explained = placement(algorithm).explain(&account, &workers);
        let named = explained.into_iter();
        named
            .map(|(worker, weight)| (worker.to_string(), weight))
            .collect()
    }

    fn moves(
        algorithm: wit::Algorithm,
        accounts: Vec<String>,
        before: Vec<String>,
        after: Vec<String>,
    ) -> Vec<wit::Move> {
        let accounts: Vec<&str> = accounts.iter().map(String::as_str).collect();
        let moves = placement(algorithm).moves(&accounts, &before, &after);
        moves
            .into_iter()
            .map(|moved| wit::Move {
                account: moved.account.to_string(),
                from: moved.from.map(ToString::to_string),
                to: moved.to.map(ToString::to_string),
            })
            .collect()
    }
}

/// The resource `router`.
pub(crate) struct Router(selector::Router);

impl wit::GuestRouter for Router {
    fn create(routing: String) -> Result<wit::Router, Vec<wit::Mistake>> {
        let routing: Routing = parsed(&routing)?;
        let router = routing.compile().map_err(reported)?;
        Ok(wit::Router::new(Self(router)))
    }

    fn route(&self, given: wit::Criteria) -> Option<wit::Route> {
        let route = self.0.route(&criteria(&given)).ok()?;
        Some(wit::Route {
            url: route.url.to_string(),
            entry: route.entry.to_string(),
            why: route.why,
        })
    }

    fn explain(&self, given: wit::Criteria) -> Vec<wit::Considered> {
        let considered = self.0.explain(&criteria(&given));
        considered
            .into_iter()
            .map(|entry| wit::Considered {
                url: entry.url.to_string(),
                entry: entry.entry.to_string(),
                priority: entry.priority,
                matches: entry.matches,
                why: entry.why,
            })
            .collect()
    }

    fn lint(&self) -> Vec<wit::Mistake> {
        let findings = self.0.lint();
        findings
            .into_iter()
            .map(|finding| wit::Mistake {
                problem: finding.fault.to_string(),
                path: finding.path,
            })
            .collect()
    }
}

/// The resource `view`.
pub(crate) struct View {
    policy: Sharding,
    /// Taken out and put back by each reading.
    view: RefCell<shard::View>,
}

impl wit::GuestView for View {
    fn create(
        policy: String,
        first: wit::Epoch,
        started_ms: u64,
        now_ms: u64,
    ) -> Result<wit::View, Vec<wit::Mistake>> {
        let policy: Sharding = parsed(&policy)?;
        let view = shard::View::first(epoch(first), started_ms, now_ms);
        Ok(wit::View::new(Self {
            policy,
            view: RefCell::new(view),
        }))
    }

    fn read(&self, next: wit::Epoch, started_ms: u64, now_ms: u64) {
        let mut view = self.view.borrow_mut();
        let known = view.clone();
        *view = known.read(&self.policy, epoch(next), started_ms, now_ms);
    }

    fn standing(
        &self,
        worker: String,
        account: String,
        now_ms: u64,
    ) -> Result<wit::Standing, wit::ShardError> {
        let view = self.view.borrow();
        match view.standing(&self.policy, &worker, &account, now_ms) {
            Ok(Standing::Owner) => Ok(wit::Standing::Owner),
            Ok(Standing::NotOwner) => Ok(wit::Standing::NotOwner),
            Ok(Standing::Waiting(until_ms)) => Ok(wit::Standing::Waiting(until_ms)),
            Err(ShardError::NoWorkers) => Err(wit::ShardError::NoWorkers),
            Err(ShardError::UnknownWorker) => Err(wit::ShardError::UnknownWorker),
            Err(ShardError::StaleView) => Err(wit::ShardError::StaleView),
        }
    }

    fn share(&self) -> String {
        let share = (&self.policy, &*self.view.borrow());
        match serde_json::to_string(&share) {
            Ok(text) => text,
            Err(_) => unreachable!("a String takes every octet, and nothing in it is a map"),
        }
    }
}

fn criteria(given: &wit::Criteria) -> Criteria<'_> {
    Criteria {
        application: given.application.as_deref(),
        account: given.account.as_deref(),
        user: given.user.as_deref(),
        cloud_provider: given.cloud_provider.as_deref(),
        execution_type: given.execution_type.as_deref(),
        origin: given.origin.as_deref(),
        location: given.location.as_deref(),
        user_origin: given.user_origin.as_deref(),
    }
}

fn placement(algorithm: wit::Algorithm) -> Placement {
    match algorithm {
        wit::Algorithm::Modulo => Placement::Modulo,
        wit::Algorithm::Rendezvous => Placement::Rendezvous,
    }
}

fn epoch(epoch: wit::Epoch) -> shard::Epoch {
    shard::Epoch {
        number: epoch.number,
        workers: epoch.workers,
    }
}
