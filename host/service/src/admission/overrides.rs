//! What operators set about limits while the service runs. It is kept in the store, where every
//! worker looks twice a second.

use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Instant;

use abide_host::Storage;
use abide_host::wit::admission;
use abide_host::wit::storage::{Change, Entry, Envelope, Filter, Put, Removal, StorageError};
use serde::{Deserialize, Serialize};
use tokio::sync::watch;
use tracing::{error, info, warn};

use crate::{limits, when};

/// The family of its records: the flag, and one for each principal.
const KIND: &str = "rate-limit";
/// The id of the record of the global flag.
const LEARNING: &str = "learning";
/// How the ids of principals' records begin.
const PRINCIPAL: &str = "principal:";

/// All settings, as they were read last.
pub(crate) struct Overrides {
    storage: Arc<dyn Storage>,
    known: RwLock<Known>,
}

/// What is set about one principal.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Setting {
    /// It is limited even while learning.
    #[serde(default)]
    pub(crate) enforcing: bool,
    /// It is only learnt from.
    #[serde(default)]
    pub(crate) ignoring: bool,
    /// Requests in a span.
    pub(crate) capacity: Option<u32>,
    /// The span.
    pub(crate) rate_seconds: Option<u32>,
}

/// A setting with who made it, and when.
#[derive(Debug, Clone)]
pub(crate) struct Set<T> {
    pub(crate) value: T,
    pub(crate) by: String,
    pub(crate) at_ms: u64,
}

#[derive(Default)]
struct Known {
    learning: Option<Set<bool>>,
    principals: BTreeMap<String, Set<Setting>>,
    /// When the store told them.
    read: Option<Instant>,
}

/// What is changed.
enum Subject<'a> {
    Learning,
    Principal(&'a str),
}

impl Subject<'_> {
    fn id(&self) -> String {
        match self {
            Subject::Learning => LEARNING.to_owned(),
            Subject::Principal(name) => format!("{PRINCIPAL}{name}"),
        }
    }
}

impl Overrides {
    pub(crate) fn new(storage: Arc<dyn Storage>) -> Self {
        Overrides {
            storage,
            known: RwLock::default(),
        }
    }

    /// Reads them again and again until it is told to stop.
    pub(crate) async fn run(self: Arc<Self>, mut stop: watch::Receiver<bool>) {
        let mut look = tokio::time::interval(limits::OVERRIDES_LOOK);
        look.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        let mut failing = false;
        while !*stop.borrow() {
            tokio::select! {
                _ = stop.changed() => {}
                _ = look.tick() => match self.read().await {
                    Ok(()) => {
                        if failing {
                            info!("limits on requests are followed again");
                        }
                        failing = false;
                    }
                    Err(error) => {
                        if !failing {
                            error!(
                                "what is set about limits cannot be read ({error:?}): limits are \
                                 only learnt from until it works"
                            );
                        }
                        failing = true;
                    }
                },
            }
        }
    }

    /// What is set about a principal; nothing when it is not known because the store is away.
    pub(crate) fn of(&self, principal: &str) -> Option<admission::Overrides> {
        let known = self.known.read().unwrap_or_else(PoisonError::into_inner);
        let fresh = known
            .read
            .is_some_and(|at| at.elapsed() < limits::OVERRIDES_AGE);
        if !fresh {
            return None;
        }
        let setting = known.principals.get(principal).map(|set| &set.value);
        let number = |value: Option<u32>| value.map(|number| number.to_string());
        Some(admission::Overrides {
            learning: known.learning.as_ref().map(|set| set.value.to_string()),
            enforcing: setting.is_some_and(|setting| setting.enforcing),
            ignoring: setting.is_some_and(|setting| setting.ignoring),
            capacity: number(setting.and_then(|setting| setting.capacity)),
            rate_seconds: number(setting.and_then(|setting| setting.rate_seconds)),
        })
    }

    /// The flag, if it is set.
    pub(crate) fn learning(&self) -> Option<Set<bool>> {
        let known = self.known.read().unwrap_or_else(PoisonError::into_inner);
        known.learning.clone()
    }

    /// All principals about which something is set.
    pub(crate) fn principals(&self) -> Vec<(String, Set<Setting>)> {
        let known = self.known.read().unwrap_or_else(PoisonError::into_inner);
        let principals = known.principals.iter();
        principals
            .map(|(name, set)| (name.clone(), set.clone()))
            .collect()
    }

    /// Sets the flag, or takes it away.
    pub(crate) async fn set_learning(
        &self,
        value: Option<bool>,
        by: &str,
    ) -> Result<(), StorageError> {
        let value = value.map(|value| value.to_string().into_bytes());
        self.write(&Subject::Learning, value, by).await
    }

    /// Sets what is special about a principal, or takes it away.
    pub(crate) async fn set_principal(
        &self,
        name: &str,
        value: Option<&Setting>,
        by: &str,
    ) -> Result<(), StorageError> {
        // A record of texts and numbers always is JSON.
        let value = value.map(|value| serde_json::to_vec(value).unwrap_or_default());
        self.write(&Subject::Principal(name), value, by).await
    }

    /// The last one wins; this worker follows it at once, the others with their next look.
    async fn write(
        &self,
        subject: &Subject<'_>,
        value: Option<Vec<u8>>,
        by: &str,
    ) -> Result<(), StorageError> {
        let id = subject.id();
        let mut tries = 0;
        loop {
            let before = self.storage.get(KIND, &id).await?;
            let expected = before.map(|entry| entry.version);
            let change = match (&value, expected) {
                (None, None) => break,
                (None, Some(expected)) => Change::Delete(Removal {
                    kind: KIND.to_owned(),
                    id: id.clone(),
                    expected,
                }),
                (Some(body), expected) => Change::Put(Put {
                    envelope: Envelope {
                        kind: KIND.to_owned(),
                        id: id.clone(),
                        owner: by.to_owned(),
                        account: String::new(),
                        state: "set".to_owned(),
                        due_ms: None,
                        updated_ms: when::now_ms(),
                    },
                    expected,
                    body: body.clone(),
                }),
            };
            tries += 1;
            match self.storage.commit(vec![change]).await {
                Ok(_) => break,
                Err(StorageError::Conflict(_)) if tries < limits::OVERRIDES_RACES => {}
                Err(error) => return Err(error),
            }
        }
        let what = match value {
            Some(_) => "set",
            None => "taken away",
        };
        info!(
            policy = "rate_limit",
            setting = id,
            by,
            "a setting was {what}"
        );
        self.read().await
    }

    pub(crate) async fn read(&self) -> Result<(), StorageError> {
        let began = Instant::now();
        let mut known = Known {
            read: Some(began),
            ..Known::default()
        };
        let mut cursor = None;
        loop {
            let filter = Filter {
                kind: KIND.to_owned(),
                owner: None,
                account: None,
                state: None,
            };
            let page = self.storage.list(filter, cursor, limits::MOST_PAGE).await?;
            for entry in page.entries {
                known.take(entry);
            }
            match page.next {
                Some(next) if known.principals.len() < limits::OVERRIDES => cursor = Some(next),
                _ => break,
            }
        }
        let mut place = self.known.write().unwrap_or_else(PoisonError::into_inner);
        // Of two readings the one that began later has seen more.
        if place.read.is_none_or(|read| read <= began) {
            *place = known;
        }
        Ok(())
    }
}

impl Known {
    fn take(&mut self, entry: Entry) {
        let envelope = entry.envelope;
        let (by, at_ms) = (envelope.owner, envelope.updated_ms);
        let garbage = |error: serde_json::Error| {
            warn!(
                "the setting {} of the limits cannot be read ({error}) and is not followed: set \
                 it anew or delete it",
                envelope.id
            );
        };
        if envelope.id == LEARNING {
            match serde_json::from_slice(&entry.body) {
                Ok(value) => self.learning = Some(Set { value, by, at_ms }),
                Err(error) => garbage(error),
            }
        } else if let Some(name) = envelope.id.strip_prefix(PRINCIPAL) {
            match serde_json::from_slice(&entry.body) {
                Ok(value) => {
                    let set = Set { value, by, at_ms };
                    self.principals.insert(name.to_owned(), set);
                }
                Err(error) => garbage(error),
            }
        }
    }
}
