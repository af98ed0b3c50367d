//! The worker: claims what is due, runs it, prolongs what takes long, and hands back what it
//! cannot finish.
//!
//! When and what is decided in the component; here are the clock and the number of hands. A task
//! whose call fails without an answer is left to the end of its lease: the next one who gets it
//! reads in the store how far it came.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use abide_host::wit::orders::{Order, OrderError, State};
use abide_host::wit::schedule::{Ran, TaskKind, Work};
use abide_host::{OrderCallError, Schedule};
use tokio::sync::{Notify, watch};
use tokio::task::JoinSet;
use tracing::{debug, error, info, warn};

use crate::delivery::Delivery;
use crate::metrics::{Kind, Metrics, Outcome, Run};
use crate::routes::Routes;
use crate::shards::Shards;
use crate::when;
use crate::{limits, words};

/// Everything that a worker needs.
pub(crate) struct Worker {
    pub(crate) schedule: Schedule,
    pub(crate) routes: Arc<Routes>,
    /// Absent where every worker serves every account.
    pub(crate) shards: Option<Arc<Shards>>,
    /// The policies as the component wants them.
    pub(crate) policies: Arc<str>,
    pub(crate) name: String,
    pub(crate) concurrency: u32,
    /// The time of a lease.
    pub(crate) lease: Duration,
    pub(crate) drain: Duration,
    /// Told when something became due out of turn.
    pub(crate) wake: Arc<Notify>,
    pub(crate) metrics: Arc<Metrics>,
    pub(crate) delivery: Option<Arc<Delivery>>,
}

/// A run that has ended.
struct Ended {
    work: Work,
    took: Duration,
    result: Result<Ran, OrderCallError>,
}

/// What is going on.
struct Desk {
    started_ms: u64,
    running: JoinSet<Ended>,
    /// By fencing token, which no two claims share.
    held: BTreeMap<u64, Work>,
    next_look_ms: u64,
    last_claim: Option<Instant>,
    away: Away,
    /// Why this worker may serve no account, if it was told.
    idle: Option<String>,
}

/// A store that does not answer: said once, not with every try.
#[derive(Default)]
struct Away {
    since: Option<Instant>,
    wait: Duration,
}

impl Worker {
    /// Works until it is told to stop; then what runs may go on for a while, and the rest is
    /// handed back.
    pub(crate) async fn run(self, mut stop: watch::Receiver<bool>) {
        let mut desk = Desk {
            started_ms: when::now_ms(),
            running: JoinSet::new(),
            held: BTreeMap::new(),
            next_look_ms: 0,
            last_claim: None,
            away: Away::default(),
            idle: None,
        };
        let mut prolong = tokio::time::interval(self.lease / 3);
        prolong.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        info!(
            worker = self.name,
            tasks = self.concurrency,
            "the worker looks for tasks"
        );
        while !*stop.borrow() {
            let free = self.free(&desk);
            let look = tokio::time::sleep(until_look(&desk));
            tokio::select! {
                _ = stop.changed() => {}
                () = self.wake.notified() => desk.next_look_ms = 0,
                Some(ended) = desk.running.join_next() => self.ended(&mut desk, ended),
                _ = prolong.tick() => self.prolong(&mut desk).await,
                () = look, if free > 0 => self.claim(&mut desk, free).await,
            }
        }
        self.stop(desk, prolong).await;
    }

    fn free(&self, desk: &Desk) -> u32 {
        let running = u32::try_from(desk.running.len()).unwrap_or(u32::MAX);
        self.concurrency.saturating_sub(running)
    }

    async fn claim(&self, desk: &mut Desk, free: u32) {
        desk.last_claim = Some(Instant::now());
        let (share, number) = match &self.shards {
            None => (None, 0),
            Some(shards) => match shards.share().await {
                Ok((share, number)) => {
                    if desk.idle.take().is_some() {
                        info!("this worker serves accounts again");
                    }
                    (Some(share), number)
                }
                Err(why) => return self.idle(desk, why),
            },
        };
        let claimed = self
            .schedule
            .claim(
                &self.name,
                free,
                desk.started_ms,
                &self.policies,
                share.as_ref(),
            )
            .await;
        let now_ms = when::now_ms();
        let batch = match claimed {
            Ok(batch) => batch,
            Err(error) => {
                self.count_claim("failed");
                let wait = desk.away.failed(&error);
                desk.next_look_ms = now_ms.saturating_add(millis(wait));
                return;
            }
        };
        desk.away.answered();
        self.count_claim(if batch.work.is_empty() {
            "empty"
        } else {
            "tasks"
        });
        let longest = now_ms.saturating_add(millis(limits::LONGEST_SLEEP));
        desk.next_look_ms = batch.next_look_ms.min(longest);
        if let Some(shards) = &self.shards
            && !batch.foreign.is_empty()
            && let Some(mine_ms) = shards.foreign(number, batch.foreign).await
        {
            desk.next_look_ms = desk.next_look_ms.min(mine_ms);
        }
        if batch.spread > 0 {
            info!(tasks = batch.spread, "overdue tasks are spread");
            self.metrics.spread.inc_by(batch.spread.into());
        }
        for order in &batch.dead {
            error!(
                order,
                "its task is a dead letter now: see `abide tasks dead`"
            );
            self.metrics.dead.inc();
        }
        for work in batch.work {
            self.begin(desk, work);
        }
    }

    /// Claims nothing for now; said once for each reason.
    fn idle(&self, desk: &mut Desk, why: String) {
        desk.next_look_ms = when::now_ms().saturating_add(millis(limits::NO_SHARE));
        if desk.idle.as_ref() != Some(&why) {
            warn!("this worker serves no account: {why}; it looks again every second");
        }
        desk.idle = Some(why);
    }

    fn begin(&self, desk: &mut Desk, work: Work) {
        debug!(
            order = work.order,
            kind = kind(work.kind),
            token = work.token,
            "task begins"
        );
        desk.held.insert(work.token, work.clone());
        self.metrics.running.inc();
        let schedule = self.schedule.clone();
        let routes = self.routes.clone();
        let policies = self.policies.clone();
        desk.running.spawn(async move {
            let began = Instant::now();
            let result = match routes.of(&work).await {
                Ok(issuer) => schedule.run(&work, issuer.as_deref(), &policies).await,
                Err(error) => Err(error),
            };
            Ended {
                work,
                took: began.elapsed(),
                result,
            }
        });
    }

    fn ended(&self, desk: &mut Desk, ended: Result<Ended, tokio::task::JoinError>) {
        self.metrics.running.dec();
        let Ended { work, took, result } = match ended {
            Ok(ended) => ended,
            // Its lease runs out by itself, though it is prolonged until then.
            Err(error) => return error!(%error, "a task was lost; please report this"),
        };
        desk.held.remove(&work.token);
        let label = kind(work.kind);
        let (outcome, again_ms) = match result {
            Ok(Ran::Done(order)) => {
                self.tell_of(&order, took);
                let next = [order.next_attempt_ms, order.renewal_ms];
                (outcome_of(&order), next.into_iter().flatten().min())
            }
            Ok(Ran::Postponed(at_ms)) => ("postponed", Some(at_ms)),
            Ok(Ran::Fenced(what)) => {
                warn!(
                    order = work.order,
                    what, "another worker has it: nothing was written"
                );
                self.metrics.leases_lost.inc();
                ("fenced", None)
            }
            Ok(Ran::Failed((reason, Some(at_ms)))) => {
                let at = when::utc(at_ms);
                warn!(
                    order = work.order,
                    at, "the task failed and is tried again: {reason}"
                );
                ("failed", Some(at_ms))
            }
            Ok(Ran::Failed((reason, None))) => {
                error!(
                    order = work.order,
                    "the task is a dead letter now: {reason}"
                );
                self.metrics.dead.inc();
                ("dead", None)
            }
            Err(error) => {
                error!(
                    order = work.order,
                    "the task broke off, and is free for all when its lease is over: {error}"
                );
                ("broken", None)
            }
        };
        let run = Run {
            kind: label,
            outcome,
        };
        self.metrics.runs.get_or_create(&run).inc();
        self.metrics
            .run_seconds
            .get_or_create(&Kind { kind: label })
            .observe(took.as_secs_f64());
        if let Some(at_ms) = again_ms {
            desk.next_look_ms = desk.next_look_ms.min(at_ms);
        }
    }

    /// What became of an order: for the log, the counters, and whoever waits for certificates.
    fn tell_of(&self, order: &Order, took: Duration) {
        let state = words::state(order.state);
        // What it means was told by the component.
        debug!(order = order.id, state, took_ms = millis(took), "task ends");
        match (&order.failure, order.state) {
            (Some(failure), State::Error | State::Active) => {
                let outcome = words::class(failure.class);
                self.metrics
                    .transactions
                    .get_or_create(&Outcome { outcome })
                    .inc();
                if failure.orphan {
                    self.metrics.orphans.inc();
                }
            }
            (None, State::Active) => {
                let outcome = "issued";
                self.metrics
                    .transactions
                    .get_or_create(&Outcome { outcome })
                    .inc();
            }
            _ => {}
        }
        if let Some(delivery) = &self.delivery
            && order.state == State::Active
            && order.failure.is_none()
        {
            delivery.wanted(order.id.clone());
        }
    }

    async fn prolong(&self, desk: &mut Desk) {
        if desk.held.is_empty() {
            return;
        }
        let held: Vec<Work> = desk.held.values().cloned().collect();
        match self.schedule.renew(&held, &self.policies).await {
            Ok(lost) => {
                for work in lost {
                    // Its run goes on until it wants to write, and is refused then.
                    warn!(order = work.order, "another worker has taken it over");
                    desk.held.remove(&work.token);
                }
            }
            Err(error) => {
                desk.away.failed(&error);
            }
        }
    }

    async fn stop(&self, mut desk: Desk, mut prolong: tokio::time::Interval) {
        let tasks = desk.running.len();
        if tasks > 0 {
            let seconds = self.drain.as_secs();
            info!(tasks, seconds, "waiting for what runs");
        }
        let end = tokio::time::sleep(self.drain);
        tokio::pin!(end);
        loop {
            tokio::select! {
                () = &mut end => break,
                ended = desk.running.join_next() => match ended {
                    Some(ended) => self.ended(&mut desk, ended),
                    None => break,
                },
                _ = prolong.tick() => self.prolong(&mut desk).await,
            }
        }
        // Calls that are given up write nothing more; everything they sent was stored before.
        desk.running.shutdown().await;
        let held: Vec<Work> = desk.held.into_values().collect();
        if held.is_empty() {
            return;
        }
        match self.schedule.release(&held).await {
            Ok(()) => info!(tasks = held.len(), "tasks were handed back"),
            Err(error) => warn!(
                tasks = held.len(),
                "tasks could not be handed back; they are free when their leases are over: {error}"
            ),
        }
    }

    fn count_claim(&self, outcome: &'static str) {
        self.metrics
            .claims
            .get_or_create(&Outcome { outcome })
            .inc();
    }
}

impl Away {
    /// Something failed: says so the first time, and how long to wait.
    fn failed(&mut self, error: &OrderCallError) -> Duration {
        let (first, longest) = limits::STORE_AWAY;
        self.wait = match self.since {
            None => {
                self.since = Some(Instant::now());
                error!("{}: trying again until it works", error);
                first
            }
            Some(_) => (self.wait * 2).min(longest),
        };
        if !matches!(
            error,
            OrderCallError::Order(OrderError::Storage(_) | OrderError::Busy(_))
        ) {
            debug!("{error}");
        }
        self.wait
    }

    fn answered(&mut self) {
        if let Some(since) = self.since.take() {
            let away = when::span(since.elapsed().as_secs());
            info!("it works again, after {away}");
        }
    }
}

fn until_look(desk: &Desk) -> Duration {
    let look = Duration::from_millis(desk.next_look_ms.saturating_sub(when::now_ms()));
    let gap = desk.last_claim.map_or(Duration::ZERO, |last| {
        limits::CLAIM_GAP.saturating_sub(last.elapsed())
    });
    look.max(gap)
}

fn outcome_of(order: &Order) -> &'static str {
    match (order.state, &order.failure) {
        (State::Active, None) => "issued",
        (State::Running, _) => "waiting",
        (State::Error | State::Active, Some(_)) => "refused",
        (State::Canceled, _) => "canceled",
        _ => "done",
    }
}

pub(crate) fn kind(kind: TaskKind) -> &'static str {
    words::task_kind(kind)
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
