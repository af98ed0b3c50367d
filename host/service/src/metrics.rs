//! What Prometheus sees. Every label has few values: none comes from a client or a CA.

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::Registry;

use crate::exposition::Form;

/// All counters of a process.
#[derive(Debug)]
pub(crate) struct Metrics {
    registry: Registry,
    pub(crate) orders: Family<State, Gauge>,
    pub(crate) runs: Family<Run, Counter>,
    pub(crate) run_seconds: Family<Kind, Histogram>,
    pub(crate) claims: Family<Outcome, Counter>,
    pub(crate) running: Gauge,
    pub(crate) spread: Counter,
    pub(crate) dead: Counter,
    pub(crate) leases_lost: Counter,
    pub(crate) transactions: Family<Outcome, Counter>,
    pub(crate) orphans: Counter,
    pub(crate) tasks: Gauge,
    pub(crate) tasks_due: Gauge,
    pub(crate) zombies: Gauge,
    pub(crate) zombies_found: Counter,
    pub(crate) deliveries: Family<Outcome, Counter>,
    pub(crate) http: Family<Http, Counter>,
    pub(crate) http_seconds: Histogram,
    pub(crate) connections: Gauge,
    pub(crate) throttling: Counter,
    pub(crate) throttling_learning: Counter,
    pub(crate) principal_throttled: Family<Principal, Counter>,
    pub(crate) principal_remaining: Family<Principal, Gauge>,
    pub(crate) qos_buffered: Family<Learning, Counter>,
    pub(crate) qos_enqueued: Family<Learning, Counter>,
    pub(crate) qos_actuator: Histogram,
    pub(crate) qos_promoter: Histogram,
    pub(crate) qos_promoted: Counter,
    pub(crate) qos_buffering: Gauge,
    pub(crate) shard_workers: Gauge,
    pub(crate) shard_epoch: Gauge,
}

/// The state of an order.
#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(crate) struct State {
    pub(crate) state: &'static str,
}

/// A kind of task.
#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(crate) struct Kind {
    pub(crate) kind: &'static str,
}

/// A task, and what came of it.
#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(crate) struct Run {
    pub(crate) kind: &'static str,
    pub(crate) outcome: &'static str,
}

/// What came of something.
#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(crate) struct Outcome {
    pub(crate) outcome: &'static str,
}

/// Whoever has a limit of its own: only so many have metrics of their own.
#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(crate) struct Principal {
    pub(crate) principal: String,
}

/// Whether something was only learnt from.
#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(crate) struct Learning {
    pub(crate) learning: &'static str,
}

/// A request to the API. The route is the pattern, not the path.
#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(crate) struct Http {
    pub(crate) method: String,
    pub(crate) route: String,
    pub(crate) status: u16,
}

/// From a millisecond to two minutes: an exchange with a CA may take its whole timeout.
fn seconds() -> Histogram {
    Histogram::new(exponential_buckets(0.001, 2.0, 18))
}

impl Metrics {
    pub(crate) fn new() -> Self {
        let mut metrics = Metrics {
            registry: Registry::default(),
            orders: Family::default(),
            runs: Family::default(),
            run_seconds: Family::new_with_constructor(seconds),
            claims: Family::default(),
            running: Gauge::default(),
            spread: Counter::default(),
            dead: Counter::default(),
            leases_lost: Counter::default(),
            transactions: Family::default(),
            orphans: Counter::default(),
            tasks: Gauge::default(),
            tasks_due: Gauge::default(),
            zombies: Gauge::default(),
            zombies_found: Counter::default(),
            deliveries: Family::default(),
            http: Family::default(),
            http_seconds: seconds(),
            connections: Gauge::default(),
            throttling: Counter::default(),
            throttling_learning: Counter::default(),
            principal_throttled: Family::default(),
            principal_remaining: Family::default(),
            qos_buffered: Family::default(),
            qos_enqueued: Family::default(),
            qos_actuator: seconds(),
            qos_promoter: seconds(),
            qos_promoted: Counter::default(),
            qos_buffering: Gauge::default(),
            shard_workers: Gauge::default(),
            shard_epoch: Gauge::default(),
        };
        metrics.register_admission();
        let it = metrics.registry.sub_registry_with_prefix("abide");
        it.register("orders", "Orders by state", metrics.orders.clone());
        it.register("task_runs", "Tasks that were run", metrics.runs.clone());
        it.register(
            "task_run_seconds",
            "Time that tasks took",
            metrics.run_seconds.clone(),
        );
        it.register("task_claims", "Looks for due tasks", metrics.claims.clone());
        it.register("tasks_running", "Tasks at work", metrics.running.clone());
        it.register(
            "tasks_spread",
            "Overdue tasks that were spread at the start",
            metrics.spread.clone(),
        );
        it.register(
            "dead_letters",
            "Tasks that became dead letters",
            metrics.dead.clone(),
        );
        it.register(
            "leases_lost",
            "Leases that another worker has taken over",
            metrics.leases_lost.clone(),
        );
        it.register(
            "transactions",
            "Ends of issuances: issued, or the class of the failure",
            metrics.transactions.clone(),
        );
        it.register(
            "orphans",
            "Certificates that a CA may have issued and that never arrived",
            metrics.orphans.clone(),
        );
        it.register(
            "tasks",
            "Tasks in the store, counted up to a bound",
            metrics.tasks.clone(),
        );
        it.register(
            "tasks_due",
            "Tasks whose time has come and that nobody holds, counted up to a bound",
            metrics.tasks_due.clone(),
        );
        it.register(
            "zombies",
            "Orders that need a task and have none, at the last search",
            metrics.zombies.clone(),
        );
        it.register(
            "zombies_found",
            "Orders that became zombies",
            metrics.zombies_found.clone(),
        );
        it.register(
            "deliveries",
            "Certificates delivered to files and hooks",
            metrics.deliveries.clone(),
        );
        it.register("http_requests", "Requests to the API", metrics.http.clone());
        it.register(
            "http_request_seconds",
            "Time that requests to the API took",
            metrics.http_seconds.clone(),
        );
        it.register(
            "http_connections",
            "Open connections to the API",
            metrics.connections.clone(),
        );
        metrics
    }

    /// Those that Spinnaker has too, by their names there in the spelling of Prometheus.
    fn register_admission(&mut self) {
        let it = self.registry.sub_registry_with_prefix("ratelimit");
        it.register(
            "throttling",
            "Requests that were refused",
            self.throttling.clone(),
        );
        it.register(
            "throttling_learning",
            "Requests that would have been refused",
            self.throttling_learning.clone(),
        );
        it.register(
            "principal_throttled",
            "Requests of a principal that were refused",
            self.principal_throttled.clone(),
        );
        it.register(
            "principal_remaining",
            "Requests that a principal has left",
            self.principal_remaining.clone(),
        );
        let it = self.registry.sub_registry_with_prefix("qos");
        it.register(
            "executions_buffered",
            "New orders that were buffered, or would be",
            self.qos_buffered.clone(),
        );
        it.register(
            "executions_enqueued",
            "New orders that were started",
            self.qos_enqueued.clone(),
        );
        it.register(
            "actuator_elapsed_seconds",
            "Seconds that deciding about a new order took",
            self.qos_actuator.clone(),
        );
        it.register(
            "promoter_elapsed_seconds",
            "Seconds that choosing among buffered orders took",
            self.qos_promoter.clone(),
        );
        it.register(
            "promoter_executions_promoted",
            "Buffered orders that were started",
            self.qos_promoted.clone(),
        );
        it.register(
            "buffering",
            "1 while new orders are put to the policies",
            self.qos_buffering.clone(),
        );
        let it = self.registry.sub_registry_with_prefix("abide");
        it.register(
            "shard_workers",
            "Workers among which accounts are divided",
            self.shard_workers.clone(),
        );
        it.register(
            "shard_epoch",
            "The number of the list of workers that this one goes by",
            self.shard_epoch.clone(),
        );
    }

    /// Everything.
    pub(crate) fn text(&self, form: Form) -> String {
        form.text(&self.registry)
    }
}
