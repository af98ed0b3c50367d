//! Which worker serves which account: heartbeats in the store, the list of workers that follows
//! from them, and what this worker may do by it.
//!
//! No clock is compared with another: how long a worker has not been heard of is measured by
//! whoever listens, from when it saw the last change of the worker's record.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

use abide_host::wit::placement::{Algorithm, Epoch, Heartbeat, ShardError};
use abide_host::wit::schedule::Share;
use abide_host::wit::storage::{Change, Entry, Envelope, Filter, Put, Removal, StorageError};
use abide_host::{Gate, HostError, ShardView, Storage};
use serde::{Deserialize, Serialize};
use tokio::sync::{Mutex, Notify, watch};
use tracing::{error, info, warn};

use crate::metrics::Metrics;
use crate::{limits, when};

/// The family of heartbeats; the id is the worker's name.
const WORKER: &str = "worker";
/// The family of the list of workers.
const EPOCH: &str = "shard-epoch";
/// The id of its one record.
const ID: &str = "accounts";

/// What makes [`Shards`].
pub(crate) struct Parts {
    pub(crate) gate: Gate,
    pub(crate) storage: Arc<dyn Storage>,
    /// The policy `cache_sharding` as JSON.
    pub(crate) policy: String,
    pub(crate) algorithm: Algorithm,
    pub(crate) heartbeat: Duration,
    pub(crate) worker: String,
    pub(crate) metrics: Arc<Metrics>,
    /// Told when this worker may have got accounts.
    pub(crate) wake: Arc<Notify>,
}

/// The division of accounts as this worker knows it.
pub(crate) struct Shards {
    parts: Parts,
    began: Instant,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// Made with the first list.
    view: Option<Arc<ShardView>>,
    epoch: Option<Epoch>,
    /// Of each worker the version of its heartbeat, and when it was first seen here.
    seen: BTreeMap<String, (u64, u64)>,
    /// Accounts that are others', and until when if that is known; for this epoch.
    foreign: BTreeMap<String, Option<u64>>,
}

/// The list of workers as it is stored.
#[derive(Serialize, Deserialize)]
struct Listed {
    number: u64,
    workers: Vec<String>,
}

/// A worker as people see it.
#[derive(Debug, Clone)]
pub(crate) struct Seen {
    pub(crate) worker: String,
    /// When it said last that it lives, by its own clock.
    pub(crate) heartbeat_ms: Option<u64>,
}

/// Why there was no heartbeat.
#[derive(Debug)]
enum Missed {
    Store(StorageError),
    Sandbox(HostError),
    Policy(String),
}

impl From<StorageError> for Missed {
    fn from(error: StorageError) -> Self {
        Missed::Store(error)
    }
}

impl From<HostError> for Missed {
    fn from(error: HostError) -> Self {
        Missed::Sandbox(error)
    }
}

impl std::fmt::Display for Missed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Missed::Store(error) => write!(f, "the store does not answer: {error:?}"),
            Missed::Sandbox(error) => write!(f, "{error}"),
            Missed::Policy(why) => f.write_str(why),
        }
    }
}

impl Shards {
    pub(crate) fn new(parts: Parts) -> Self {
        Shards {
            parts,
            began: Instant::now(),
            state: Mutex::default(),
        }
    }

    /// Says again and again that this worker lives, until it is told to stop; then it takes
    /// itself off the list. Nothing of this worker may be at work by then.
    pub(crate) async fn run(self: Arc<Self>, mut stop: watch::Receiver<bool>) {
        // Oftener than is asked for: who listens a third of the time apart gives nobody up later
        // than a heartbeat after its time.
        let mut beat = tokio::time::interval(self.parts.heartbeat / 3);
        beat.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        let mut failing = false;
        while !*stop.borrow() {
            tokio::select! {
                _ = stop.changed() => {}
                _ = beat.tick() => match self.beat().await {
                    Ok(()) => failing = false,
                    Err(why) => {
                        if !failing {
                            error!("no heartbeat of this worker: {why}: trying again until it works");
                        }
                        failing = true;
                    }
                },
            }
        }
        if let Err(why) = self.leave().await {
            warn!(
                "this worker could not be taken off the list: {why}; the others wait for its end"
            );
        }
    }

    /// What this worker may claim, with the number of the list it goes by; else why it may claim
    /// nothing.
    pub(crate) async fn share(&self) -> Result<(Share, u64), String> {
        let now_ms = when::now_ms();
        let mut state = self.state.lock().await;
        let (Some(view), Some(epoch)) = (state.view.clone(), &state.epoch) else {
            return Err("the list of workers was not read yet".to_owned());
        };
        let number = epoch.number;
        let standing = view.standing(&self.parts.worker, "", now_ms).await;
        match standing.map_err(|error| error.to_string())? {
            Ok(_) => {}
            Err(ShardError::NoWorkers) => return Err("the list of workers is empty".to_owned()),
            Err(ShardError::UnknownWorker) => {
                return Err("this worker is not in the list of workers".to_owned());
            }
            Err(ShardError::StaleView) => {
                return Err("the list of workers was read too long ago".to_owned());
            }
        }
        let is_others = |until: &mut Option<u64>| until.is_none_or(|until_ms| now_ms < until_ms);
        state.foreign.retain(|_, until| is_others(until));
        let share = Share {
            view: view.share().await.map_err(|error| error.to_string())?,
            excluded: state.foreign.keys().cloned().collect(),
        };
        Ok((share, number))
    }

    /// Accounts that a claim has found to be others', by the list of this number. Returns when
    /// the first of them becomes this worker's, if that is known.
    pub(crate) async fn foreign(
        &self,
        number: u64,
        accounts: Vec<(String, Option<u64>)>,
    ) -> Option<u64> {
        let mut state = self.state.lock().await;
        let is_current = state.epoch.as_ref().map(|epoch| epoch.number) == Some(number);
        if !is_current {
            return None;
        }
        if state.foreign.len() + accounts.len() > limits::FOREIGN_ACCOUNTS {
            state.foreign.clear();
        }
        let first = accounts.iter().filter_map(|(_, until)| *until).min();
        state.foreign.extend(accounts);
        first
    }

    /// The list of workers in the store.
    pub(crate) async fn listed(&self) -> Result<(u64, Vec<Seen>), StorageError> {
        let (epoch, _) = self.epoch().await?;
        let beats = self.beats().await?;
        let mut workers: BTreeSet<&str> = epoch.workers.iter().map(String::as_str).collect();
        workers.extend(beats.iter().map(|beat| beat.envelope.id.as_str()));
        let seen = workers.into_iter().map(|worker| Seen {
            worker: worker.to_owned(),
            heartbeat_ms: beats
                .iter()
                .find(|beat| beat.envelope.id == worker)
                .map(|beat| beat.envelope.updated_ms),
        });
        Ok((epoch.number, seen.collect()))
    }

    /// The owner of an account by the list in the store, and how it comes about.
    pub(crate) async fn owner(
        &self,
        account: &str,
    ) -> Result<(u64, Vec<(String, u64)>), OwnerError> {
        let (epoch, _) = self.epoch().await.map_err(OwnerError::Store)?;
        let explained = self
            .parts
            .gate
            .explain_owner(self.parts.algorithm, account, &epoch.workers)
            .await
            .map_err(OwnerError::Sandbox)?;
        Ok((epoch.number, explained))
    }

    pub(crate) fn algorithm(&self) -> Algorithm {
        self.parts.algorithm
    }

    /// One heartbeat: take the time, report alive, read the list. Where one of them fails there
    /// was none.
    async fn beat(&self) -> Result<(), Missed> {
        let started_ms = when::now_ms();
        self.report(started_ms).await?;
        let mut tries = 0;
        let epoch = loop {
            let beats = self.beats().await?;
            let (current, version) = self.epoch().await?;
            let heard = self.heard(&beats).await;
            let now = self.elapsed_ms();
            let next = self
                .parts
                .gate
                .next_epoch(&self.parts.policy, &current, &heard, now)
                .await?
                .map_err(|mistakes| Missed::Policy(format!("{mistakes:?}")))?;
            let Some(next) = next else { break current };
            let given_up = beats
                .iter()
                .filter(|beat| !next.workers.contains(&beat.envelope.id));
            match self.change(&next, version, given_up).await {
                Ok(()) => {
                    info!(
                        policy = "cache_sharding",
                        epoch = next.number,
                        workers = next.workers.join(", "),
                        "another list of workers"
                    );
                    break next;
                }
                // Another worker was faster, or one that was given up lives.
                Err(StorageError::Conflict(_)) if tries < limits::EPOCH_RACES => tries += 1,
                Err(error) => return Err(error.into()),
            }
        };
        self.know(epoch, started_ms).await
    }

    /// Takes a list over.
    async fn know(&self, epoch: Epoch, started_ms: u64) -> Result<(), Missed> {
        let now_ms = when::now_ms();
        let mut state = self.state.lock().await;
        match &state.view {
            Some(view) => view.read(&epoch, started_ms, now_ms).await?,
            None => {
                let view = self
                    .parts
                    .gate
                    .shard_view(&self.parts.policy, &epoch, started_ms, now_ms)
                    .await?
                    .map_err(|mistakes| Missed::Policy(format!("{mistakes:?}")))?;
                state.view = Some(Arc::new(view));
            }
        }
        let is_new = state.epoch.as_ref() != Some(&epoch);
        if is_new {
            state.foreign.clear();
            let number = i64::try_from(epoch.number).unwrap_or(i64::MAX);
            self.parts.metrics.shard_epoch.set(number);
            let workers = i64::try_from(epoch.workers.len()).unwrap_or(i64::MAX);
            self.parts.metrics.shard_workers.set(workers);
            state.epoch = Some(epoch);
            self.parts.wake.notify_one();
        }
        Ok(())
    }

    async fn report(&self, now_ms: u64) -> Result<(), StorageError> {
        let mut tries = 0;
        loop {
            let before = self.parts.storage.get(WORKER, &self.parts.worker).await?;
            let put = put(
                WORKER,
                &self.parts.worker,
                before.map(|entry| entry.version),
                Vec::new(),
                now_ms,
            );
            match self.parts.storage.commit(vec![put]).await {
                Ok(_) => return Ok(()),
                // It was given up meanwhile, or another one has the same name.
                Err(StorageError::Conflict(_)) if tries < limits::EPOCH_RACES => tries += 1,
                Err(error) => return Err(error),
            }
        }
    }

    async fn beats(&self) -> Result<Vec<Entry>, StorageError> {
        let mut all = Vec::new();
        let mut cursor = None;
        loop {
            let filter = Filter {
                kind: WORKER.to_owned(),
                owner: None,
                account: None,
                state: None,
            };
            let storage = &self.parts.storage;
            let page = storage.list(filter, cursor, limits::MOST_PAGE).await?;
            all.extend(page.entries);
            match page.next {
                Some(next) => cursor = Some(next),
                None => return Ok(all),
            }
        }
    }

    /// The list with the version of its record.
    async fn epoch(&self) -> Result<(Epoch, Option<u64>), StorageError> {
        let none = Epoch {
            number: 0,
            workers: Vec::new(),
        };
        let Some(entry) = self.parts.storage.get(EPOCH, ID).await? else {
            return Ok((none, None));
        };
        let listed: Listed = serde_json::from_slice(&entry.body).map_err(|error| {
            StorageError::Unavailable(format!("the list of workers cannot be read ({error})"))
        })?;
        let epoch = Epoch {
            number: listed.number,
            workers: listed.workers,
        };
        Ok((epoch, Some(entry.version)))
    }

    /// When each worker was last heard of, by this worker's clock, which nobody sets.
    async fn heard(&self, beats: &[Entry]) -> Vec<Heartbeat> {
        let now = self.elapsed_ms();
        let mut state = self.state.lock().await;
        let known = std::mem::take(&mut state.seen);
        for beat in beats {
            let worker = &beat.envelope.id;
            let at = match known.get(worker) {
                Some((version, at)) if *version == beat.version => *at,
                _ => now,
            };
            state.seen.insert(worker.clone(), (beat.version, at));
        }
        let seen = state.seen.iter();
        seen.map(|(worker, (_, at_ms))| Heartbeat {
            worker: worker.clone(),
            at_ms: *at_ms,
        })
        .collect()
    }

    fn elapsed_ms(&self) -> u64 {
        u64::try_from(self.began.elapsed().as_millis()).unwrap_or(u64::MAX)
    }

    /// Writes the next list and takes away whom it gives up, in one commit: who has beaten
    /// meanwhile is not given up.
    async fn change<'e>(
        &self,
        next: &Epoch,
        version: Option<u64>,
        given_up: impl Iterator<Item = &'e Entry>,
    ) -> Result<(), StorageError> {
        let listed = Listed {
            number: next.number,
            workers: next.workers.clone(),
        };
        // A record of texts and numbers always is JSON.
        let body = serde_json::to_vec(&listed).unwrap_or_default();
        let mut changes = vec![put(EPOCH, ID, version, body, when::now_ms())];
        changes.extend(given_up.map(|beat| {
            Change::Delete(Removal {
                kind: WORKER.to_owned(),
                id: beat.envelope.id.clone(),
                expected: beat.version,
            })
        }));
        self.parts.storage.commit(changes).await.map(|_| ())
    }

    /// Off the list at once, so that nobody waits for this worker.
    async fn leave(&self) -> Result<(), Missed> {
        let mut tries = 0;
        loop {
            let storage = &self.parts.storage;
            let own = storage.get(WORKER, &self.parts.worker).await?;
            let (current, version) = self.epoch().await?;
            if !current.workers.contains(&self.parts.worker) {
                return Ok(());
            }
            let next = Epoch {
                number: current.number.saturating_add(1),
                workers: current
                    .workers
                    .into_iter()
                    .filter(|worker| *worker != self.parts.worker)
                    .collect(),
            };
            match self.change(&next, version, own.iter()).await {
                Ok(()) => return Ok(()),
                Err(StorageError::Conflict(_)) if tries < limits::EPOCH_RACES => tries += 1,
                Err(error) => return Err(error.into()),
            }
        }
    }
}

/// Why an owner is not told.
#[derive(Debug)]
pub(crate) enum OwnerError {
    Store(StorageError),
    Sandbox(HostError),
}

fn put(kind: &str, id: &str, expected: Option<u64>, body: Vec<u8>, now_ms: u64) -> Change {
    Change::Put(Put {
        envelope: Envelope {
            kind: kind.to_owned(),
            id: id.to_owned(),
            owner: String::new(),
            account: String::new(),
            state: "live".to_owned(),
            due_ms: None,
            updated_ms: now_ms,
        },
        expected,
        body,
    })
}
