//! Buckets of a rate limit that several processes share, and what operators set while they run.
//!
//! The limit of a caller and the words of the answer come from the sandbox; here it is asked what
//! is left, in one step with everybody else. A store that does not answer in time knows nothing, so
//! nothing is refused: the limiter is learning until it is back.

mod redis;
mod stored;

use std::collections::HashMap;
use std::fmt;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use async_trait::async_trait;

pub use self::redis::RedisCounters;
pub use self::stored::StoredCounters;
use crate::admission::Limiter;
use crate::error::HostError;
use crate::storage::{OpenError, PostgresConfig, PostgresStorage, SqliteStorage};
use crate::wit::admission::{Answer, Caller, Limit, Overrides, Placed, Taken};
use crate::{Storage, limits};

/// What is set while limiters run: the keys of Spinnaker's Redis.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Setting {
    /// `rateLimit:learning`: `true` or `false`, for all.
    Learning(String),
    /// A member of the set `rateLimit:enforcing`.
    Enforcing(String),
    /// A member of the set `rateLimit:ignoring`.
    Ignoring(String),
    /// `rateLimit:capacity:NAME`: requests within the span.
    Capacity(String, String),
    /// `rateLimit:rateSeconds:NAME`: the span in seconds.
    RateSeconds(String, String),
}

/// A request, and what is believed to be set about who sends it.
#[derive(Debug, Clone)]
pub struct Ask<'a> {
    /// The caller, as its settings name it.
    pub name: &'a str,
    /// The key of its bucket.
    pub key: &'a str,
    /// Under which limit.
    pub limit: Limit,
    /// What is believed to be set.
    pub believed: &'a Overrides,
    /// How much it takes, at least one.
    pub cost: u32,
    /// Milliseconds since the epoch, by the caller's clock. A store with a clock of its own goes
    /// by that, and answers in terms of this.
    pub now_ms: u64,
}

/// What a store says.
#[derive(Debug, Clone)]
pub enum Took {
    /// It was taken, or there was no room.
    Taken(Taken),
    /// Nothing was taken, because this is set and not what was believed.
    Set(Overrides),
}

/// A store does not answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct CountersError(pub String);

/// A store of buckets. Several processes may use one at the same time.
#[async_trait]
pub trait Counters: fmt::Debug + Send + Sync {
    /// Takes from a bucket, in one step with all others.
    async fn take(&self, ask: &Ask<'_>) -> Result<Took, CountersError>;

    /// Everything that is set.
    async fn settings(&self) -> Result<Vec<Setting>, CountersError>;

    /// Sets something; all limiters follow within a second.
    async fn set(&self, setting: &Setting) -> Result<(), CountersError>;

    /// Takes it back; the value of a setting does not matter.
    async fn unset(&self, setting: &Setting) -> Result<(), CountersError>;
}

/// Opens the store of counters at an address: `redis://HOST:PORT`, `postgresql://…` or
/// `sqlite:PATH`. A Redis server need not be there yet; the others must.
pub async fn open(
    address: &str,
    limiter: &Arc<Limiter>,
) -> Result<Arc<dyn Counters>, CountersError> {
    if address.starts_with("redis://") {
        return Ok(Arc::new(RedisCounters::new(address)?));
    }
    let failed = |error: OpenError| CountersError(error.to_string());
    let storage: Arc<dyn Storage> = if let Some(path) = address.strip_prefix("sqlite:") {
        let path = PathBuf::from(path);
        let opened = tokio::task::spawn_blocking(move || SqliteStorage::open(&path)).await;
        let opened = opened.map_err(|error| CountersError(error.to_string()))?;
        Arc::new(opened.map_err(failed)?)
    } else if address.starts_with("postgres://") || address.starts_with("postgresql://") {
        let config = PostgresConfig::new(address);
        Arc::new(PostgresStorage::open(&config).await.map_err(failed)?)
    } else {
        return Err(CountersError(
            "this is no address of counters: give redis://HOST:PORT, postgresql://… or \
             sqlite:PATH"
                .to_owned(),
        ));
    };
    Ok(Arc::new(StoredCounters::new(storage, limiter.clone())))
}

/// What came of a request.
#[derive(Debug, Clone)]
pub struct Admission {
    /// Who asked, as configuration, logs and metrics name it.
    pub principal: String,
    /// The decision.
    pub answer: Answer,
    /// The headers of the answer.
    pub headers: Vec<(String, String)>,
    /// What is wrong with the settings that were looked at, one line each.
    pub warnings: Vec<String>,
    /// Whether the store was asked; without its word the limiter is learning.
    pub is_shared: bool,
    /// Something for the log: the store has just gone away, or is back.
    pub turned: Option<Turned>,
}

/// What has become of the store of a limiter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Turned {
    /// It does not answer, for this reason: learning, nothing is refused.
    Away(String),
    /// It answers again: enforcing what is to be enforced.
    Back,
}

impl fmt::Display for Turned {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Away(why) => write!(
                f,
                "the store of the rate limit is away: nothing is refused until it is back ({why})"
            ),
            Self::Back => f.write_str("the store of the rate limit is back: limits are enforced"),
        }
    }
}

/// A limiter whose buckets others share.
#[derive(Debug)]
pub struct SharedLimiter {
    limiter: Arc<Limiter>,
    counters: Arc<dyn Counters>,
    patience: Duration,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// `rateLimit:learning`, as it was last seen.
    learning: Option<String>,
    /// What else is set about callers, as it was last seen; those with nothing are not here.
    believed: HashMap<String, Overrides>,
    away: Option<Away>,
}

/// A store that did not answer.
#[derive(Debug, Clone)]
struct Away {
    why: String,
    wait: Duration,
    again: Instant,
}

impl SharedLimiter {
    /// A limiter over the buckets in a store, which waits for it for so long at most;
    /// [`limits::COUNTERS_PATIENCE`] is usual.
    pub fn new(limiter: Arc<Limiter>, counters: Arc<dyn Counters>, patience: Duration) -> Self {
        Self {
            limiter,
            counters,
            patience,
            state: Mutex::default(),
        }
    }

    /// The store.
    pub fn counters(&self) -> &Arc<dyn Counters> {
        &self.counters
    }

    /// Why the store is not asked now, if it is away.
    pub fn away(&self) -> Option<String> {
        self.with(|state| state.away.as_ref().map(|away| away.why.clone()))
    }

    /// Decides about one request, which takes `cost` if there is room.
    pub async fn admit(
        &self,
        caller: &Caller,
        cost: u32,
        now_ms: u64,
    ) -> Result<Admission, HostError> {
        let mut believed = self.believed(caller).await?;
        let mut turned = None;
        // What is set may change once more between two questions, but not for ever.
        for _ in 0..limits::COUNTERS_RACES {
            let placed = self.limiter.place(caller, Some(&believed), now_ms).await?;
            let ask = Ask {
                name: &placed.principal,
                key: &placed.key,
                limit: placed.limit,
                believed: &believed,
                cost,
                now_ms,
            };
            let (took, turn) = self.ask(&ask).await;
            turned = turn.or(turned);
            let taken = match took {
                Some(Took::Set(set)) => {
                    self.believe(&placed.principal, &set);
                    believed = set;
                    continue;
                }
                Some(Took::Taken(taken)) => Some(taken),
                None => None,
            };
            return self.decided(placed, taken, turned, now_ms).await;
        }
        let placed = self.limiter.place(caller, Some(&believed), now_ms).await?;
        self.decided(placed, None, turned, now_ms).await
    }

    async fn decided(
        &self,
        placed: Placed,
        taken: Option<Taken>,
        turned: Option<Turned>,
        now_ms: u64,
    ) -> Result<Admission, HostError> {
        let (limit, mode) = (placed.limit, placed.mode);
        let answer = self.limiter.answer_of(limit, mode, taken, now_ms).await?;
        Ok(Admission {
            principal: placed.principal,
            headers: self.limiter.headers(answer, now_ms).await?,
            answer,
            warnings: placed.warnings,
            is_shared: taken.is_some(),
            turned,
        })
    }

    /// What the store says; nothing while it is away.
    async fn ask(&self, ask: &Ask<'_>) -> (Option<Took>, Option<Turned>) {
        let now = Instant::now();
        let may = self.with(|state| match &mut state.away {
            Some(away) if away.again > now => false,
            Some(away) => {
                // One asks whether it is back; the others do not wait for the answer.
                away.again = now + away.wait;
                true
            }
            None => true,
        });
        if !may {
            return (None, None);
        }
        let answer = match tokio::time::timeout(self.patience, self.counters.take(ask)).await {
            Ok(answer) => answer,
            Err(_) => Err(CountersError(format!(
                "it did not answer in {} ms",
                self.patience.as_millis()
            ))),
        };
        self.with(|state| match answer {
            Ok(took) => {
                let was_away = state.away.take().is_some();
                (Some(took), was_away.then_some(Turned::Back))
            }
            Err(error) => {
                let (first, longest) = limits::COUNTERS_AWAY;
                let before = state.away.as_ref();
                let turned = before.is_none().then(|| Turned::Away(error.0.clone()));
                let wait = before.map_or(first, |away| (away.wait * 2).min(longest));
                state.away = Some(Away {
                    why: error.0,
                    wait,
                    again: Instant::now() + wait,
                });
                (None, turned)
            }
        })
    }

    async fn believed(&self, caller: &Caller) -> Result<Overrides, HostError> {
        let (learning, is_empty) =
            self.with(|state| (state.learning.clone(), state.believed.is_empty()));
        let mut believed = match is_empty {
            true => nothing(),
            false => {
                let name = self.limiter.name(caller).await?;
                let known = self.with(|state| state.believed.get(&name).cloned());
                known.unwrap_or_else(nothing)
            }
        };
        believed.learning = learning;
        Ok(believed)
    }

    fn believe(&self, name: &str, set: &Overrides) {
        self.with(|state| {
            state.learning.clone_from(&set.learning);
            let own = Overrides {
                learning: None,
                ..set.clone()
            };
            if own == nothing() {
                state.believed.remove(name);
                return;
            }
            // They are learnt anew, one question each.
            if state.believed.len() >= limits::COUNTERS_BELIEVED {
                state.believed.clear();
            }
            state.believed.insert(name.to_owned(), own);
        });
    }

    fn with<T>(&self, work: impl FnOnce(&mut State) -> T) -> T {
        work(&mut self.state.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// When nothing is set.
fn nothing() -> Overrides {
    Overrides {
        learning: None,
        enforcing: false,
        ignoring: false,
        capacity: None,
        rate_seconds: None,
    }
}
