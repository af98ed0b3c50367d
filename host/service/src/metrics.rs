//! What Prometheus sees. Every label has few values: none comes from a client or a CA.

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::Registry;

/// The media type of [`Metrics::text`].
pub(crate) const MEDIA_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// All counters of a process.
#[derive(Debug)]
pub(crate) struct Metrics {
    registry: Registry,
    pub(crate) orders: Family<State, Gauge>,
    pub(crate) orders_uncounted: Gauge,
    pub(crate) runs: Family<Run, Counter>,
    pub(crate) run_seconds: Family<Kind, Histogram>,
    pub(crate) claims: Family<Outcome, Counter>,
    pub(crate) running: Gauge,
    pub(crate) spread: Counter,
    pub(crate) dead: Counter,
    pub(crate) leases_lost: Counter,
    pub(crate) transactions: Family<Outcome, Counter>,
    pub(crate) orphans: Counter,
    pub(crate) deliveries: Family<Outcome, Counter>,
    pub(crate) http: Family<Http, Counter>,
    pub(crate) http_seconds: Histogram,
    pub(crate) connections: Gauge,
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
            registry: Registry::with_prefix("abide"),
            orders: Family::default(),
            orders_uncounted: Gauge::default(),
            runs: Family::default(),
            run_seconds: Family::new_with_constructor(seconds),
            claims: Family::default(),
            running: Gauge::default(),
            spread: Counter::default(),
            dead: Counter::default(),
            leases_lost: Counter::default(),
            transactions: Family::default(),
            orphans: Counter::default(),
            deliveries: Family::default(),
            http: Family::default(),
            http_seconds: seconds(),
            connections: Gauge::default(),
        };
        let it = &mut metrics.registry;
        it.register("orders", "Orders by state", metrics.orders.clone());
        it.register(
            "orders_uncounted",
            "1 when there are too many orders to count them by state",
            metrics.orders_uncounted.clone(),
        );
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

    /// Everything in the text format of OpenMetrics.
    pub(crate) fn text(&self) -> String {
        let mut text = String::new();
        // A String takes all.
        let _ = encode(&mut text, &self.registry);
        text
    }
}
