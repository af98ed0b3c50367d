//! Who may still ask. Everything that counts requests is behind [`Limiting::admit`].

use std::sync::Arc;
use std::time::Duration;

use abide_host::counters::{self, SharedLimiter, Turned};
use abide_host::limits::COUNTERS_PATIENCE;
use abide_host::wit::admission::{Answer, Caller};
use abide_host::wit::policy::Mistake;
use abide_host::{Gate, HostError, Limiter};
use serde_json::{Map, Value};
use tracing::{info, warn};

/// A limiter, or none.
#[derive(Debug)]
pub(crate) enum Limiting {
    /// Everybody may ask.
    Nothing,
    /// Requests are counted in this process.
    Alone(Arc<Limiter>),
    /// They are counted in a store, together with those of others.
    Shared(Arc<Limiter>, SharedLimiter),
}

/// What was decided about a request.
#[derive(Debug)]
pub(crate) struct Admission {
    pub(crate) answer: Answer,
    /// They go onto the answer, whatever it is.
    pub(crate) headers: Vec<(String, String)>,
}

impl Limiting {
    /// From the section `rate_limit`. Absent or not `enabled`, nothing is limited.
    pub(crate) async fn new(
        gate: &Gate,
        policy: Option<&Map<String, Value>>,
    ) -> Result<Result<Self, Vec<Mistake>>, HostError> {
        let enabled = |policy: &&Map<String, Value>| policy.get("enabled") == Some(&true.into());
        let Some(policy) = policy.filter(enabled) else {
            return Ok(Ok(Limiting::Nothing));
        };
        let policy = Value::Object(policy.clone()).to_string();
        let made = gate.limiter(&policy).await?;
        Ok(made.map(|limiter| Limiting::Alone(Arc::new(limiter))))
    }

    /// The same, with the counters at this address.
    pub(crate) async fn sharing(
        self,
        address: &str,
        patience: Option<Duration>,
    ) -> Result<Self, counters::CountersError> {
        match self {
            Limiting::Alone(limiter) => {
                let counters = counters::open(address, &limiter).await?;
                let patience = patience.unwrap_or(COUNTERS_PATIENCE);
                let shared = SharedLimiter::new(limiter.clone(), counters, patience);
                Ok(Limiting::Shared(limiter, shared))
            }
            other => Ok(other),
        }
    }

    /// Decides about one request that costs so much; `None` where nothing is limited.
    pub(crate) async fn admit(
        &self,
        caller: &Caller,
        cost: u32,
        now_ms: u64,
    ) -> Result<Option<Admission>, HostError> {
        match self {
            Limiting::Nothing => Ok(None),
            Limiting::Alone(limiter) => {
                let answer = limiter.admit(caller, None, cost, now_ms).await?;
                let headers = limiter.headers(answer, now_ms).await?;
                Ok(Some(Admission { answer, headers }))
            }
            Limiting::Shared(_, shared) => {
                let done = shared.admit(caller, cost, now_ms).await?;
                match done.turned {
                    Some(turned @ Turned::Away(_)) => warn!("{turned}"),
                    Some(turned @ Turned::Back) => info!("{turned}"),
                    None => {}
                }
                for warning in &done.warnings {
                    warn!(
                        principal = done.principal,
                        "a setting is not followed: {warning}"
                    );
                }
                let (answer, headers) = (done.answer, done.headers);
                Ok(Some(Admission { answer, headers }))
            }
        }
    }

    /// How a caller is called in the configuration, in logs and in metrics.
    pub(crate) async fn name(&self, caller: &Caller) -> Option<String> {
        match self {
            Limiting::Nothing => None,
            Limiting::Alone(limiter) | Limiting::Shared(limiter, _) => {
                limiter.name(caller).await.ok()
            }
        }
    }
}
