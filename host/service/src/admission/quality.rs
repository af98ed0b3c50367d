//! New orders pass quality of service: what is decided is stored with the order, in one commit.

use std::sync::Arc;
use std::time::Instant;

use abide_host::wit::admission::{Admitted, Arrival, Criticality, Verdict, Vote};
use abide_host::wit::orders::{Admission, Order, State, Wish};
use abide_host::wit::storage::StorageError;
use abide_host::{Orders, Quality, Storage};
use tokio::sync::Mutex;
use tracing::info;

use crate::api::{Problem, unavailable};
use crate::metrics::{Learning, Metrics};
use crate::{limits, when, words};

/// The family of orders in the store.
const ORDERS: &str = "standing-order";

/// Decides about new orders.
pub(crate) struct Gatekeeper {
    pub(crate) quality: Arc<Quality>,
    pub(crate) orders: Orders,
    pub(crate) storage: Arc<dyn Storage>,
    pub(crate) metrics: Arc<Metrics>,
    /// Whether anybody is asked at all.
    pub(crate) enabled: bool,
    /// Two orders do not take the same place: they are counted and stored one after the other.
    /// Several workers on one store may be beside the threshold by as many as they are.
    pub(crate) turn: Mutex<()>,
}

/// What is known about a new order beside its wish.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Arriving {
    /// Whether a person waits for it.
    pub(crate) by_hand: bool,
    pub(crate) criticality: Criticality,
}

/// How many orders are in a state.
pub(crate) async fn counted(storage: &dyn Storage, state: State) -> Result<u64, StorageError> {
    let count = storage.count_state(ORDERS, words::state(state), limits::COUNTED_STATE);
    Ok(count.await?.into())
}

/// How many orders are active: let through and not come to an end yet.
pub(super) async fn active(storage: &dyn Storage) -> Result<u64, StorageError> {
    let waiting = counted(storage, State::NotStarted).await?;
    Ok(waiting + counted(storage, State::Running).await?)
}

/// An order of which nothing is known, to ask how things stand.
pub(super) fn anybody() -> Arrival {
    Arrival {
        origin: String::new(),
        by_hand: false,
        criticality: Criticality::Medium,
        not_after_ms: None,
    }
}

impl Gatekeeper {
    /// Accepts a wish: started or buffered. `false` when its order stood already.
    pub(crate) async fn create(
        &self,
        wish: &Wish,
        arriving: Arriving,
    ) -> Result<(Order, bool), Problem> {
        if !self.enabled {
            return Ok(self.orders.create(wish, None).await?);
        }
        let _turn = self.turn.lock().await;
        let began = Instant::now();
        let active = active(&*self.storage).await.map_err(away)?;
        let arrival = Arrival {
            origin: wish.origin.clone(),
            by_hand: arriving.by_hand,
            criticality: arriving.criticality,
            not_after_ms: None,
        };
        let admitted = self.quality.admit(&arrival, active, when::now_ms()).await?;
        self.metrics
            .qos_actuator
            .observe(began.elapsed().as_secs_f64());
        self.metrics
            .qos_buffering
            .set(i64::from(!admitted.votes.is_empty()));
        let admission = admission(&admitted);
        let (order, is_new) = self.orders.create(wish, Some(&admission)).await?;
        if is_new {
            self.tell(&order, &admitted);
        }
        Ok((order, is_new))
    }

    fn tell(&self, order: &Order, admitted: &Admitted) {
        for vote in &admitted.votes {
            info!(
                order = order.id,
                policy = vote.policy,
                verdict = verdict(vote.verdict),
                force = vote.force,
                reason = vote.reason,
                "quality of service: a vote"
            );
        }
        info!(
            order = order.id,
            verdict = if admitted.buffered {
                "BUFFER"
            } else {
                "ENQUEUE"
            },
            learning = admitted.learning,
            would_buffer = admitted.would_buffer,
            reason = admitted.reason,
            "quality of service: decided"
        );
        let label = Learning {
            learning: learning(admitted.learning),
        };
        let counter = match admitted.would_buffer {
            true => &self.metrics.qos_buffered,
            false => &self.metrics.qos_enqueued,
        };
        counter.get_or_create(&label).inc();
    }
}

/// A label's value.
pub(super) fn learning(learning: bool) -> &'static str {
    match learning {
        true => "true",
        false => "false",
    }
}

fn away(error: StorageError) -> Problem {
    unavailable(format!("the store does not answer: {error:?}"))
}

/// What is stored with the order.
fn admission(admitted: &Admitted) -> Admission {
    let mut notes: Vec<String> = admitted.votes.iter().map(line).collect();
    let outcome = match (admitted.buffered, admitted.would_buffer) {
        (true, _) => "buffered",
        (false, true) => "started, and would be buffered were this not learning mode",
        (false, false) => "started",
    };
    notes.push(format!(
        "quality of service: {outcome}: {}",
        admitted.reason
    ));
    Admission {
        buffered: admitted.buffered,
        reason: admitted.reason.clone(),
        notes,
    }
}

fn line(vote: &Vote) -> String {
    let force = if vote.force { ", forced" } else { "" };
    format!(
        "quality of service: {} votes {}{force}: {}",
        vote.policy,
        verdict(vote.verdict),
        vote.reason
    )
}

fn verdict(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Enqueue => "ENQUEUE",
        Verdict::Buffer => "BUFFER",
        Verdict::Abstain => "ABSTAIN",
    }
}
