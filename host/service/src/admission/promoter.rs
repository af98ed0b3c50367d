//! The promoter: every few seconds it lets some of the buffered orders start.
//!
//! Of several workers on one store one promotes at a time: a record in the store says when it is
//! time again, and whoever holds its lease does it. A promotion is one commit of an order and its
//! task, compared with the versions that were read, so that even two promoters start nothing twice.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use abide_host::wit::admission::{Candidate, Promoted};
use abide_host::wit::orders::State;
use abide_host::wit::storage::{
    Change, Claim, Claimed, Envelope, Filter, Lease, Put, StorageError,
};
use abide_host::{Orders, Quality, Storage};
use tokio::sync::{Notify, watch};
use tracing::{debug, error, info};

use super::quality::{active, anybody};
use crate::metrics::Metrics;
use crate::{limits, when, words};

/// The family of its one record.
const KIND: &str = "promotion";
/// The id of that record.
const ID: &str = "qos";
/// The family of orders in the store.
const ORDERS: &str = "standing-order";

/// Lets buffered orders start.
pub(crate) struct Promoter {
    pub(crate) orders: Orders,
    pub(crate) storage: Arc<dyn Storage>,
    pub(crate) quality: Arc<Quality>,
    pub(crate) worker: String,
    /// Time between two looks.
    pub(crate) interval: Duration,
    /// Whether a policy asks what each account has running.
    pub(crate) fair: bool,
    pub(crate) metrics: Arc<Metrics>,
    /// Told when an order starts.
    pub(crate) wake: Arc<Notify>,
}

impl Promoter {
    /// Promotes until it is told to stop.
    pub(crate) async fn run(self, mut stop: watch::Receiver<bool>) {
        let mut wait = Duration::ZERO;
        let mut failing = false;
        while !*stop.borrow() {
            tokio::select! {
                _ = stop.changed() => {}
                () = tokio::time::sleep(wait) => {
                    wait = match self.look().await {
                        Ok(wait) => {
                            failing = false;
                            wait
                        }
                        Err(why) => {
                            if !failing {
                                error!("no buffered order is promoted: {why}: trying again until it works");
                            }
                            failing = true;
                            self.interval.max(limits::STORE_AWAY.0)
                        }
                    };
                }
            }
        }
    }

    /// Promotes if it is time and nobody else does; returns how long to wait.
    async fn look(&self) -> Result<Duration, String> {
        let now_ms = when::now_ms();
        let lease = limits::PROMOTION_LEASE;
        let claims = self
            .storage
            .claim_due(Claim {
                kind: KIND.to_owned(),
                holder: self.worker.clone(),
                now_ms,
                until_ms: now_ms.saturating_add(millis(lease)),
                limit: 1,
                excluded: Vec::new(),
            })
            .await
            .map_err(|error| told(&error))?;
        let Some(claimed) = claims.claimed.into_iter().next() else {
            let Some(next_ms) = claims.next_due_ms else {
                self.begin(now_ms).await?;
                return Ok(Duration::ZERO);
            };
            let wait = Duration::from_millis(next_ms.saturating_sub(now_ms));
            if wait > self.interval {
                self.bring_forward(now_ms).await?;
            }
            return Ok(wait.min(self.interval));
        };
        let promoted = self.promote(now_ms).await;
        // Also after a failure: the next look is at its time, not at the end of a lease.
        self.end(&claimed, now_ms).await?;
        promoted?;
        Ok(self.interval)
    }

    /// The first promoter on a store makes the record, for a look after the interval.
    async fn begin(&self, now_ms: u64) -> Result<(), String> {
        let due_ms = now_ms.saturating_add(millis(self.interval));
        match self.storage.commit(vec![put(now_ms, due_ms, None)]).await {
            // Another one was faster.
            Ok(_) | Err(StorageError::Conflict(_)) => Ok(()),
            Err(error) => Err(told(&error)),
        }
    }

    /// The time of the next look may be from a configuration with longer intervals.
    async fn bring_forward(&self, now_ms: u64) -> Result<(), String> {
        let entry = self.storage.get(KIND, ID).await;
        let Some(entry) = entry.map_err(|error| told(&error))? else {
            return Ok(());
        };
        if entry.lease.is_some() {
            return Ok(());
        }
        let due_ms = now_ms.saturating_add(millis(self.interval));
        let put = put(now_ms, due_ms, Some(entry.version));
        match self.storage.commit(vec![put]).await {
            Ok(_) | Err(StorageError::Conflict(_)) => Ok(()),
            Err(error) => Err(told(&error)),
        }
    }

    async fn end(&self, claimed: &Claimed, began_ms: u64) -> Result<(), String> {
        let guard = Change::Guard(Lease {
            kind: KIND.to_owned(),
            id: ID.to_owned(),
            token: claimed.token,
        });
        let due_ms = began_ms.saturating_add(millis(self.interval));
        let put = put(when::now_ms(), due_ms, Some(claimed.entry.version));
        match self.storage.commit(vec![guard, put]).await {
            Ok(_) | Err(StorageError::Conflict(_) | StorageError::Fenced(_)) => Ok(()),
            Err(error) => Err(told(&error)),
        }
    }

    async fn promote(&self, now_ms: u64) -> Result<(), String> {
        let candidates = self.listed(State::Buffered).await?;
        let active = active(&*self.storage).await.map_err(|error| told(&error))?;
        let state = self.quality.admit(&anybody(), active, now_ms).await;
        let state = state.map_err(|error| error.to_string())?;
        self.metrics
            .qos_buffering
            .set(i64::from(!state.votes.is_empty()));
        if candidates.is_empty() {
            return Ok(());
        }
        let by_account = match self.fair {
            true => self.active_by_account().await?,
            false => Vec::new(),
        };
        let began = Instant::now();
        let promoted = self
            .quality
            .promote(&candidates, &by_account, active, now_ms)
            .await
            .map_err(|error| error.to_string())?;
        self.metrics
            .qos_promoter
            .observe(began.elapsed().as_secs_f64());
        self.tell(&promoted, candidates.len());
        let why = words_of(&promoted);
        let mut number = 0;
        let chosen = promoted.chosen.iter().take(limits::PROMOTED);
        for candidate in chosen.filter_map(|&index| candidates.get(index as usize)) {
            match self.orders.promote(&candidate.id, &why).await {
                Ok((_, true)) => {
                    number += 1;
                    info!(order = candidate.id, reason = why, "promoted");
                    self.metrics.qos_promoted.inc();
                    self.wake.notify_one();
                }
                // Somebody was faster, or it was canceled.
                Ok((_, false)) => {}
                Err(error) => return Err(format!("after {number} of them: {error}")),
            }
        }
        Ok(())
    }

    fn tell(&self, promoted: &Promoted, waiting: usize) {
        for ruling in &promoted.rulings {
            let (policy, left, reason) = (&ruling.policy, ruling.left, &ruling.reason);
            match promoted.chosen.is_empty() {
                true => debug!(policy, left, reason, waiting, "promotion: a ruling"),
                false => info!(policy, left, reason, waiting, "promotion: a ruling"),
            }
        }
    }

    /// The oldest orders in a state, up to a bound. Ids are in the order of their age.
    async fn listed(&self, state: State) -> Result<Vec<Candidate>, String> {
        let mut found = Vec::new();
        let mut cursor = None;
        while found.len() < limits::CANDIDATES {
            let filter = Filter {
                kind: ORDERS.to_owned(),
                owner: None,
                account: None,
                state: Some(words::state(state).to_owned()),
            };
            let page = self
                .storage
                .list(filter, cursor, limits::MOST_PAGE)
                .await
                .map_err(|error| told(&error))?;
            found.extend(page.entries.into_iter().map(|entry| Candidate {
                id: entry.envelope.id,
                account: entry.envelope.account,
                since_ms: entry.envelope.updated_ms,
            }));
            match page.next {
                Some(next) => cursor = Some(next),
                None => break,
            }
        }
        Ok(found)
    }

    async fn active_by_account(&self) -> Result<Vec<(String, u64)>, String> {
        let mut accounts: BTreeMap<String, u64> = BTreeMap::new();
        for state in [State::NotStarted, State::Running] {
            for order in self.listed(state).await? {
                *accounts.entry(order.account).or_default() += 1;
            }
        }
        Ok(accounts.into_iter().collect())
    }
}

/// Why somebody was chosen, in one line.
fn words_of(promoted: &Promoted) -> String {
    let rulings = promoted.rulings.iter();
    let lines: Vec<String> = rulings
        .map(|ruling| format!("{}: {}", ruling.policy, ruling.reason))
        .collect();
    let mut line = lines.join("; ");
    let mut end = line.len().min(limits::SENTENCE);
    while !line.is_char_boundary(end) {
        end -= 1;
    }
    line.truncate(end);
    line
}

fn put(now_ms: u64, due_ms: u64, expected: Option<u64>) -> Change {
    Change::Put(Put {
        envelope: Envelope {
            kind: KIND.to_owned(),
            id: ID.to_owned(),
            owner: String::new(),
            account: String::new(),
            state: "waiting".to_owned(),
            due_ms: Some(due_ms),
            updated_ms: now_ms,
        },
        expected,
        body: Vec::new(),
    })
}

fn told(error: &StorageError) -> String {
    format!("the store does not answer: {error:?}")
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
