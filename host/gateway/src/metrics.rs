//! What Prometheus sees. No label is a text of a client, but for the names of the first
//! principals that proved theirs.

use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};

use abide_service::exposition::Form;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::Registry;

use crate::limits;

/// All counters of a gateway.
#[derive(Debug)]
pub(crate) struct Metrics {
    registry: Registry,
    pub(crate) requests: Family<Request, Counter>,
    pub(crate) refused: Family<Why, Counter>,
    pub(crate) request_seconds: Histogram,
    pub(crate) connections: Gauge,
    pub(crate) cut: Family<Why, Counter>,
    pub(crate) pipelined: Counter,
    pub(crate) sandbox_failures: Family<Why, Counter>,
    pub(crate) upstream_requests: Family<UpstreamOutcome, Counter>,
    pub(crate) upstream_seconds: Histogram,
    pub(crate) upstream_up: Family<UpstreamLabel, Gauge>,
    pub(crate) throttling: Counter,
    pub(crate) throttling_learning: Counter,
    principal_throttled: Family<Principal, Counter>,
    principal_remaining: Family<Principal, Gauge>,
    labelled: Mutex<BTreeSet<String>>,
}

/// A request, by the kind of its message and what came of it.
#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(crate) struct Request {
    pub(crate) r#type: &'static str,
    pub(crate) verdict: &'static str,
}

/// A reason.
#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(crate) struct Why {
    pub(crate) reason: &'static str,
}

/// An upstream, by its URL.
#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(crate) struct UpstreamLabel {
    pub(crate) upstream: String,
}

/// What came of a message to an upstream.
#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(crate) struct UpstreamOutcome {
    pub(crate) upstream: String,
    pub(crate) outcome: &'static str,
}

/// A principal, or several together.
#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(crate) struct Principal {
    pub(crate) principal: String,
}

/// From a quarter of a millisecond to two minutes.
fn seconds() -> Histogram {
    Histogram::new(exponential_buckets(0.000_25, 2.0, 20))
}

impl Metrics {
    pub(crate) fn new() -> Self {
        let mut metrics = Metrics {
            registry: Registry::default(),
            requests: Family::default(),
            refused: Family::default(),
            request_seconds: seconds(),
            connections: Gauge::default(),
            cut: Family::default(),
            pipelined: Counter::default(),
            sandbox_failures: Family::default(),
            upstream_requests: Family::default(),
            upstream_seconds: seconds(),
            upstream_up: Family::default(),
            throttling: Counter::default(),
            throttling_learning: Counter::default(),
            principal_throttled: Family::default(),
            principal_remaining: Family::default(),
            labelled: Mutex::default(),
        };
        let it = metrics.registry.sub_registry_with_prefix("abide_gateway");
        it.register(
            "requests",
            "Requests by the type of their message and what came of them",
            metrics.requests.clone(),
        );
        it.register(
            "refused",
            "Requests that were answered here, by reason",
            metrics.refused.clone(),
        );
        it.register(
            "request_seconds",
            "Time from a request's head to its answer",
            metrics.request_seconds.clone(),
        );
        it.register(
            "connections",
            "Open connections of clients",
            metrics.connections.clone(),
        );
        it.register(
            "connections_cut",
            "Connections that the gateway ended, by reason",
            metrics.cut.clone(),
        );
        it.register(
            "pipelined",
            "Requests that came before the one before them was answered",
            metrics.pipelined.clone(),
        );
        it.register(
            "sandbox_failures",
            "Calls of the component that did not return: trap, deadline, memory",
            metrics.sandbox_failures.clone(),
        );
        it.register(
            "upstream_requests",
            "Messages that were sent to a CA, and what came of them",
            metrics.upstream_requests.clone(),
        );
        it.register(
            "upstream_seconds",
            "Time that CAs took",
            metrics.upstream_seconds.clone(),
        );
        it.register(
            "upstream_up",
            "1 where messages are sent, 0 where a CA is left alone",
            metrics.upstream_up.clone(),
        );
        let it = &mut metrics.registry;
        it.register(
            "ratelimit_throttling",
            "Requests over a limit that were refused",
            metrics.throttling.clone(),
        );
        it.register(
            "ratelimit_throttling_learning",
            "Requests over a limit that is only learnt from",
            metrics.throttling_learning.clone(),
        );
        it.register(
            "ratelimit_principal_throttled",
            "Requests over the limit of a principal",
            metrics.principal_throttled.clone(),
        );
        it.register(
            "ratelimit_principal_remaining",
            "Requests that a principal had left when it asked last",
            metrics.principal_remaining.clone(),
        );
        metrics
    }

    /// What a limiter decided about a principal; without a proved name it is one of many.
    pub(crate) fn limited(&self, proved: Option<&str>, over: bool, remaining: u32) {
        let Some(name) = proved else {
            if over {
                let many = Principal {
                    principal: "unauthenticated".to_owned(),
                };
                self.principal_throttled.get_or_create(&many).inc();
            }
            return;
        };
        let label = Principal {
            principal: self.label(name),
        };
        if over {
            self.principal_throttled.get_or_create(&label).inc();
        }
        self.principal_remaining
            .get_or_create(&label)
            .set(remaining.into());
    }

    fn label(&self, name: &str) -> String {
        let mut labelled = self.labelled.lock().unwrap_or_else(PoisonError::into_inner);
        if labelled.contains(name) {
            return name.to_owned();
        }
        if labelled.len() >= limits::LABELLED {
            return "others".to_owned();
        }
        labelled.insert(name.to_owned());
        name.to_owned()
    }

    /// Everything.
    pub(crate) fn text(&self, form: Form) -> String {
        form.text(&self.registry)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_number_of_labels_is_bounded() {
        let metrics = Metrics::new();
        for number in 0..10_000 {
            metrics.limited(Some(&format!("CN={number}")), true, 0);
            metrics.limited(None, true, 0);
        }
        let text = metrics.text(Form::Text);
        let lines = text
            .lines()
            .filter(|line| line.starts_with("ratelimit_principal_throttled_total{"));
        assert_eq!(lines.count(), limits::LABELLED + 2);
        let others = "ratelimit_principal_throttled_total{principal=\"others\"} 9900";
        assert!(text.contains(others), "{text}");
        assert!(
            text.contains("{principal=\"unauthenticated\"} 10000"),
            "{text}"
        );
    }
}
