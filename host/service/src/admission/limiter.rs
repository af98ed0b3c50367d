//! The limit on requests to this service. Where requests are counted is known to this file alone.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};

use abide_host::wit::admission::{Answer, Caller, Mode, Outcome};
use abide_host::{HostError, Limiter};
use tracing::{error, info, warn};

use super::Overrides;
use crate::limits;
use crate::metrics::{Metrics, Principal};

/// The limiter of the API. Requests are counted in the memory of this process.
pub(crate) struct Limits {
    limiter: Limiter,
    overrides: Arc<Overrides>,
    metrics: Arc<Metrics>,
    /// Principals with metrics of their own.
    named: Mutex<BTreeSet<String>>,
}

/// What was decided about a request.
#[derive(Debug, Clone)]
pub(crate) struct Verdict {
    /// Whether it is refused: 429.
    pub(crate) refused: bool,
    /// Whose limit it is.
    pub(crate) principal: String,
    /// Requests allowed in the span.
    pub(crate) capacity: u32,
    /// The headers that go onto the answer.
    pub(crate) headers: Vec<(String, String)>,
}

impl Limits {
    pub(crate) fn new(limiter: Limiter, overrides: Arc<Overrides>, metrics: Arc<Metrics>) -> Self {
        Limits {
            limiter,
            overrides,
            metrics,
            named: Mutex::default(),
        }
    }

    /// Decides about one request that takes `cost`. A limiter that fails refuses nobody.
    pub(crate) async fn admit(&self, caller: &Caller, cost: u32, now_ms: u64) -> Option<Verdict> {
        match self.decide(caller, cost, now_ms).await {
            Ok(verdict) => Some(verdict),
            Err(error) => {
                error!("the limiter failed, and the request goes on: {error}");
                None
            }
        }
    }

    async fn decide(&self, caller: &Caller, cost: u32, now_ms: u64) -> Result<Verdict, HostError> {
        let principal = self.limiter.name(caller).await?;
        let answer = match self.overrides.of(&principal) {
            Some(overrides) => {
                let limiter = &self.limiter;
                let overrides = Some(&overrides);
                limiter.admit(caller, overrides, cost, now_ms).await?
            }
            // What operators have set is not known: nobody is refused by mistake.
            None => {
                let placed = self.limiter.place(caller, None, now_ms).await?;
                let limit = placed.limit;
                self.limiter
                    .answer_of(limit, Mode::Learning, None, now_ms)
                    .await?
            }
        };
        self.tell(&principal, &answer);
        Ok(Verdict {
            refused: answer.outcome == Outcome::Throttled,
            capacity: answer.capacity,
            headers: self.limiter.headers(answer, now_ms).await?,
            principal,
        })
    }

    fn tell(&self, principal: &str, answer: &Answer) {
        let label = Principal {
            principal: self.label(principal),
        };
        let metrics = &self.metrics;
        match answer.outcome {
            Outcome::Admitted => {}
            Outcome::WouldThrottle => {
                info!(
                    policy = "rate_limit",
                    principal,
                    verdict = "would throttle",
                    reason = "no request is left, and the limit is only learnt from",
                    "rate limit"
                );
                metrics.throttling_learning.inc();
            }
            Outcome::Throttled => {
                warn!(
                    policy = "rate_limit",
                    principal,
                    verdict = "throttled",
                    reason = format!("no request of {} is left", answer.capacity),
                    "rate limit"
                );
                metrics.throttling.inc();
                metrics.principal_throttled.get_or_create(&label).inc();
            }
        }
        metrics
            .principal_remaining
            .get_or_create(&label)
            .set(answer.remaining.into());
    }

    /// The name of a principal in the metrics: the first ones have their own.
    fn label(&self, principal: &str) -> String {
        let mut named = self.named.lock().unwrap_or_else(PoisonError::into_inner);
        if named.contains(principal) {
            return principal.to_owned();
        }
        if named.len() >= limits::METRIC_PRINCIPALS {
            return "others".to_owned();
        }
        named.insert(principal.to_owned());
        principal.to_owned()
    }
}
