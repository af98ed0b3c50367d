//! Buckets in a store of records: in memory, in a file, or on a PostgreSQL server. They are read,
//! taken from in the sandbox, and written if nobody else has written meanwhile.

use std::collections::HashMap;
use std::fmt;
use std::hash::{BuildHasher, RandomState};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use async_trait::async_trait;

use super::{Ask, Counters, CountersError, Setting, Took, nothing};
use crate::Storage;
use crate::admission::Limiter;
use crate::limits;
use crate::wit::admission::Overrides;
use crate::wit::storage::{Change, Claim, Envelope, Filter, Lease, Put, Removal, StorageError};

/// The family of buckets.
const BUCKET: &str = "bucket";
/// The family of settings.
const SETTING: &str = "limit-setting";

/// Callers of one process that take from one bucket do so one after the other; those of different
/// ones seldom wait for each other.
const LANES: usize = 64;

/// Buckets in a store of records.
pub struct StoredCounters {
    storage: Arc<dyn Storage>,
    limiter: Arc<Limiter>,
    lanes: [tokio::sync::Mutex<()>; LANES],
    hasher: RandomState,
    settings: Mutex<Option<(Instant, Arc<Settings>)>>,
    swept: Mutex<Instant>,
}

/// What is set, by the names of the callers.
#[derive(Debug, Default)]
struct Settings {
    learning: Option<String>,
    callers: HashMap<String, Overrides>,
}

impl Settings {
    fn of(&mut self, name: String) -> &mut Overrides {
        self.callers.entry(name).or_insert_with(nothing)
    }
}

impl StoredCounters {
    /// Counters in a store, with the arithmetic of a limiter.
    pub fn new(storage: Arc<dyn Storage>, limiter: Arc<Limiter>) -> Self {
        Self {
            storage,
            limiter,
            lanes: std::array::from_fn(|_| tokio::sync::Mutex::new(())),
            hasher: RandomState::new(),
            settings: Mutex::new(None),
            swept: Mutex::new(Instant::now()),
        }
    }

    /// What is set, as it was a moment ago.
    async fn current(&self) -> Result<Arc<Settings>, CountersError> {
        let known = lock(&self.settings).clone();
        if let Some((read, settings)) = known
            && read.elapsed() < limits::COUNTERS_SETTINGS_AGE
        {
            return Ok(settings);
        }
        let mut settings = Settings::default();
        for setting in self.settings().await? {
            match setting {
                Setting::Learning(value) => settings.learning = Some(value),
                Setting::Enforcing(name) => settings.of(name).enforcing = true,
                Setting::Ignoring(name) => settings.of(name).ignoring = true,
                Setting::Capacity(name, value) => settings.of(name).capacity = Some(value),
                Setting::RateSeconds(name, value) => settings.of(name).rate_seconds = Some(value),
            }
        }
        let settings = Arc::new(settings);
        *lock(&self.settings) = Some((Instant::now(), settings.clone()));
        Ok(settings)
    }

    /// Forgets buckets of which nothing counts any longer, now and then.
    async fn sweep(&self, now_ms: u64) -> Result<(), StorageError> {
        {
            let mut swept = lock(&self.swept);
            if swept.elapsed() < limits::COUNTERS_SWEEP {
                return Ok(());
            }
            *swept = Instant::now();
        }
        loop {
            let claims = self
                .storage
                .claim_due(Claim {
                    kind: BUCKET.to_owned(),
                    holder: "sweep".to_owned(),
                    now_ms,
                    until_ms: now_ms.saturating_add(60_000),
                    limit: limits::COUNTERS_SWEPT,
                    excluded: Vec::new(),
                })
                .await?;
            let many = claims.claimed.len() >= limits::COUNTERS_SWEPT as usize;
            for claimed in claims.claimed {
                let id = claimed.entry.envelope.id;
                let changes = vec![
                    Change::Guard(Lease {
                        kind: BUCKET.to_owned(),
                        id: id.clone(),
                        token: claimed.token,
                    }),
                    Change::Delete(Removal {
                        kind: BUCKET.to_owned(),
                        id,
                        expected: claimed.entry.version,
                    }),
                ];
                match self.storage.commit(changes).await {
                    // It was used again meanwhile.
                    Ok(_) | Err(StorageError::Conflict(_) | StorageError::Fenced(_)) => {}
                    Err(error) => return Err(error),
                }
            }
            if !many {
                return Ok(());
            }
        }
    }

    async fn change(&self, setting: &Setting, there: bool) -> Result<(), CountersError> {
        let (id, value) = name(setting);
        for _ in 0..limits::COUNTERS_RACES {
            let found = self.storage.get(SETTING, &id).await.map_err(failed)?;
            let expected = found.map(|entry| entry.version);
            let change = match (there, expected) {
                (false, None) => return Ok(()),
                (false, Some(expected)) => Change::Delete(Removal {
                    kind: SETTING.to_owned(),
                    id: id.clone(),
                    expected,
                }),
                (true, expected) => Change::Put(Put {
                    envelope: Envelope {
                        kind: SETTING.to_owned(),
                        id: id.clone(),
                        owner: String::new(),
                        account: String::new(),
                        state: value.clone(),
                        due_ms: None,
                        updated_ms: 0,
                    },
                    expected,
                    body: Vec::new(),
                }),
            };
            match self.storage.commit(vec![change]).await {
                Ok(_) => {
                    *lock(&self.settings) = None;
                    return Ok(());
                }
                Err(StorageError::Conflict(_)) => {}
                Err(error) => return Err(failed(error)),
            }
        }
        Err(CountersError(format!(
            "others change {id} at the same time: try again"
        )))
    }
}

impl fmt::Debug for StoredCounters {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StoredCounters").finish_non_exhaustive()
    }
}

#[async_trait]
impl Counters for StoredCounters {
    async fn take(&self, ask: &Ask<'_>) -> Result<Took, CountersError> {
        let settings = self.current().await?;
        let mut set = settings
            .callers
            .get(ask.name)
            .cloned()
            .unwrap_or_else(nothing);
        set.learning.clone_from(&settings.learning);
        if set != *ask.believed {
            return Ok(Took::Set(set));
        }
        let lane = self.hasher.hash_one(ask.key) % LANES as u64;
        let _lane = self.lanes[usize::try_from(lane).unwrap_or_default()]
            .lock()
            .await;
        for _ in 0..limits::COUNTERS_RACES {
            let found = self.storage.get(BUCKET, ask.key).await.map_err(failed)?;
            let octets = found.as_ref().map(|entry| entry.body.as_slice());
            let take = async |octets| {
                self.limiter
                    .take(octets, ask.limit, ask.cost, ask.now_ms)
                    .await
                    .map_err(|error| CountersError(error.to_string()))
            };
            let taken = match take(octets).await? {
                Some(taken) => Some(taken),
                // What is no bucket counts as none.
                None => take(None).await?,
            };
            let Some((body, taken)) = taken else {
                return Err(CountersError("an empty bucket cannot be read".to_owned()));
            };
            let mut changes = Vec::new();
            if let Some(held) = found.as_ref().and_then(|entry| entry.lease.as_ref()) {
                changes.push(Change::Guard(Lease {
                    kind: BUCKET.to_owned(),
                    id: ask.key.to_owned(),
                    token: held.token,
                }));
            }
            changes.push(Change::Put(Put {
                envelope: Envelope {
                    kind: BUCKET.to_owned(),
                    id: ask.key.to_owned(),
                    owner: String::new(),
                    account: String::new(),
                    state: String::new(),
                    due_ms: Some(taken.forget_at_ms),
                    updated_ms: ask.now_ms,
                },
                expected: found.map(|entry| entry.version),
                body,
            }));
            match self.storage.commit(changes).await {
                Ok(_) => {
                    self.sweep(ask.now_ms).await.map_err(failed)?;
                    return Ok(Took::Taken(taken));
                }
                // Another process was faster.
                Err(StorageError::Conflict(_) | StorageError::Fenced(_)) => {}
                Err(error) => return Err(failed(error)),
            }
        }
        Err(CountersError(
            "other processes take from the same bucket all the time".to_owned(),
        ))
    }

    async fn settings(&self) -> Result<Vec<Setting>, CountersError> {
        let mut all = Vec::new();
        let mut cursor = None;
        loop {
            let filter = Filter {
                kind: SETTING.to_owned(),
                owner: None,
                account: None,
                state: None,
            };
            let page = self
                .storage
                .list(filter, cursor, limits::COUNTERS_SWEPT)
                .await
                .map_err(failed)?;
            all.extend(
                page.entries
                    .into_iter()
                    .filter_map(|entry| setting(&entry.envelope.id, entry.envelope.state)),
            );
            cursor = page.next;
            if cursor.is_none() || all.len() >= limits::COUNTERS_BELIEVED {
                all.sort();
                return Ok(all);
            }
        }
    }

    async fn set(&self, setting: &Setting) -> Result<(), CountersError> {
        self.change(setting, true).await
    }

    async fn unset(&self, setting: &Setting) -> Result<(), CountersError> {
        self.change(setting, false).await
    }
}

/// The id and the value of a setting's record.
fn name(setting: &Setting) -> (String, String) {
    match setting {
        Setting::Learning(value) => ("learning".to_owned(), value.clone()),
        Setting::Enforcing(name) => (format!("enforcing:{name}"), String::new()),
        Setting::Ignoring(name) => (format!("ignoring:{name}"), String::new()),
        Setting::Capacity(name, value) => (format!("capacity:{name}"), value.clone()),
        Setting::RateSeconds(name, value) => (format!("rateSeconds:{name}"), value.clone()),
    }
}

fn setting(id: &str, value: String) -> Option<Setting> {
    if id == "learning" {
        return Some(Setting::Learning(value));
    }
    let (kind, name) = id.split_once(':')?;
    let name = name.to_owned();
    match kind {
        "enforcing" => Some(Setting::Enforcing(name)),
        "ignoring" => Some(Setting::Ignoring(name)),
        "capacity" => Some(Setting::Capacity(name, value)),
        "rateSeconds" => Some(Setting::RateSeconds(name, value)),
        _ => None,
    }
}

fn failed(error: StorageError) -> CountersError {
    CountersError(match error {
        StorageError::Unavailable(why) => why,
        other => format!("{other:?}"),
    })
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
