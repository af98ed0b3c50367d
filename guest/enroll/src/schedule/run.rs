//! Does one task: begins or goes on with the transaction of an order, and writes what came of it
//! together with the task that follows.

use alloc::boxed::Box;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use abide_policy::failure::Class;
use abide_policy::order::OrderState;
use abide_policy::retry::{self, Next};
use abide_policy::schedule::{self, Fate, TaskState};
use abide_policy::time::Utc;

use super::fence::{Fence, overtaken};
use super::task::{TASK, TaskKind, TaskRecord};
use super::{Policies, Work, bury, endpoint, octets};
use crate::driver::{self, Error, Issued, Outcome, Progress, Waiting};
use crate::failure::{Failure, FailureClass, Fault};
use crate::host::{Change, Entry, HandlingError, Host, Level, StorageError};
use crate::limits;
use crate::orders::{self, Issuer, Order, OrderError, Request};

/// What came of a task.
#[derive(Clone, Debug)]
pub enum Ran {
    /// The order as it is stored now.
    Done(Box<Order>),
    /// Not begun: again then.
    Postponed(u64),
    /// Another worker has it: nothing was written.
    Fenced(String),
    /// It failed for a reason of our own, and is tried again then, or is a dead letter.
    Failed(String, Option<u64>),
}

/// Does one task under its lease. Without an issuer, because the configuration has none of that
/// name, the order stops.
pub fn run(
    host: &dyn Host,
    work: &Work,
    issuer: Option<&Issuer>,
    policies: &Policies,
) -> Result<Ran, OrderError> {
    let fence = Fence::new(host, work.lease());
    let mut busy = String::new();
    for _ in 0..limits::RACES {
        let result = match Run::load(&fence, work, policies) {
            Ok(Some(run)) => run.go(issuer),
            Ok(None) => return Ok(Ran::Fenced(overtaken(&fence))),
            Err(error) => Err(error),
        };
        match result {
            Err(_) if fence.is_broken() => return Ok(Ran::Fenced(overtaken(&fence))),
            // A person has changed the order meanwhile: what it is now decides.
            Err(OrderError::Busy(what)) => busy = what,
            result => return result,
        }
    }
    Err(OrderError::Busy(busy))
}

/// A task at work.
struct Run<'r> {
    host: &'r Fence<'r>,
    policies: &'r Policies,
    work: &'r Work,
    entry: Entry,
    task: TaskRecord,
}

/// What a transaction came to, as far as the order minds.
enum Came {
    Issued(Issued),
    Waiting(Waiting),
    Failed(Failure),
    /// It was ended because the configuration is no longer what it began with.
    Changed,
}

/// The task that follows.
type Follow = Option<(TaskKind, u64)>;

impl<'r> Run<'r> {
    /// None when the task is no longer this worker's.
    fn load(
        host: &'r Fence<'r>,
        work: &'r Work,
        policies: &'r Policies,
    ) -> Result<Option<Self>, OrderError> {
        let Some(entry) = host.load(TASK, &work.order)? else {
            return Ok(None);
        };
        let token = entry.lease.as_ref().map(|lease| lease.token);
        if token != Some(host.lease().token) {
            return Ok(None);
        }
        let task = TaskRecord::read(&entry)?;
        Ok(Some(Self {
            host,
            policies,
            work,
            entry,
            task,
        }))
    }

    fn go(self, issuer: Option<&Issuer>) -> Result<Ran, OrderError> {
        let order = match orders::load(self.host, &self.work.order) {
            Ok((order, version)) => (order, version),
            Err(OrderError::NotFound) => {
                self.host.commit(alloc::vec![self.drop_task()])?;
                return Ok(Ran::Failed("its order is gone".into(), None));
            }
            Err(OrderError::Unreadable(why)) => return self.trouble(None, why),
            Err(error) => return Err(error),
        };
        let last = match driver::last(self.host, &order.0.id) {
            Ok(last) => last,
            Err(error) => return self.stumble(order, error, issuer),
        };
        let last_id = last.as_ref().map(|last| last.transaction_id.clone());
        let unsettled = last.filter(|last| Some(&last.transaction_id) != order.0.settled.as_ref());
        let canceled = order.0.state() == OrderState::Canceled;
        match (unsettled, issuer) {
            (Some(open), Some(issuer)) if open.phase.is_open() => self.go_on(order, issuer),
            (Some(ended), _) if !ended.phase.is_open() => {
                let issuer = issuer.map(|issuer| issuer.at(order.0.attempt.as_ref()));
                let server = issuer.as_ref().map(|issuer| issuer.server.as_str());
                self.settle(order, ended, false, server)
            }
            (None, _) if canceled => self.write(order, |order, _| (order, None)),
            (_, None) => {
                let why = format!("the configuration has no issuer {}", self.work.issuer);
                self.stop(order, why)
            }
            (_, Some(issuer)) => self.begin(order, issuer, last_id.as_deref()),
        }
    }

    /// A new attempt, if it may be made now.
    fn begin(
        self,
        (mut order, version): (Order, u64),
        issuer: &Issuer,
        last: Option<&str>,
    ) -> Result<Ran, OrderError> {
        let now_ms = self.host.now_ms();
        let attempts = order.attempts();
        let policy = &self.policies.retry;
        match policy.explain(&attempts, now_ms).next {
            Next::Stopped => return self.write((order, version), |order, _| (order, None)),
            Next::At(at_ms) if at_ms > now_ms => {
                return self.postpone((order, version), at_ms, "it is not due yet");
            }
            Next::At(_) => {}
        }
        if issuer.server.is_empty() {
            let name = &self.work.issuer;
            let why = format!(
                "no endpoint of the issuer {name} is for it: {}",
                issuer.route
            );
            return self.stop((order, version), why);
        }
        let is_retry =
            attempts.issuance_attempts.is_some() || attempts.last_class == Some(Class::Throttled);
        let refusals = self.task.refusals;
        // The request and its confirmation.
        let messages = if issuer.implicit_confirm { 1 } else { 2 };
        let wait = endpoint::permit(
            self.host,
            &issuer.server,
            self.policies,
            is_retry,
            refusals,
            messages,
        )?;
        if let Some((until_ms, why)) = wait {
            return self.postpone((order, version), until_ms, &why);
        }
        let attempt = orders::attempt(&order, issuer, now_ms);
        if let (Some(key), Request::Subject(subject)) = (&attempt.key, &order.wish.request) {
            match self.host.generate(key, subject.key) {
                Ok(_) => {}
                Err(HandlingError::Refused(why)) => {
                    return self.stop((order, version), format!("no key was made: {why}"));
                }
                Err(HandlingError::Unavailable(why)) => {
                    return self.trouble(Some((order, version)), why);
                }
            }
        }
        let enrollment = orders::enrollment(&order, &attempt, issuer);
        let text = format!(
            "{} to {}{}{}",
            enrollment.operation.name(),
            issuer.server,
            match issuer.route.as_str() {
                "" => String::new(),
                route => format!(" ({route})"),
            },
            match order.issuance_attempts() {
                Some(failures) => format!(", after {failures} failed"),
                None => String::new(),
            }
        );
        order.attempt = Some(attempt);
        order.goes_on_ms = Some(now_ms);
        order.set_state(OrderState::Running, text.clone());
        order.note(now_ms, text);
        let put = order.put(Some(version), now_ms);
        let version = match self.host.commit(alloc::vec![put]) {
            Ok(versions) => versions.first().copied().unwrap_or_default(),
            Err(error) => return Err(error.into()),
        };
        match driver::begin_after(self.host, &enrollment, last) {
            Ok(progress) => self.settle((order, version), progress, false, Some(&issuer.server)),
            Err(error) => self.stumble((order, version), error, Some(issuer)),
        }
    }

    /// The transaction under way goes on.
    fn go_on(self, order: (Order, u64), issuer: &Issuer) -> Result<Ran, OrderError> {
        let issuer = &*issuer.at(order.0.attempt.as_ref());
        let refusals = self.task.refusals;
        let wait = endpoint::one_more(self.host, &issuer.server, self.policies, refusals)?;
        if let Some((until_ms, why)) = wait {
            return self.postpone(order, until_ms, &why);
        }
        let attempt = match &order.0.attempt {
            Some(attempt) => attempt.clone(),
            None => orders::attempt(&order.0, issuer, self.host.now_ms()),
        };
        let enrollment = orders::enrollment(&order.0, &attempt, issuer);
        match driver::go_on(self.host, &enrollment) {
            Ok((progress, changed)) => self.settle(order, progress, changed, Some(&issuer.server)),
            Err(error) => self.stumble(order, error, Some(issuer)),
        }
    }

    /// Writes what a transaction came to.
    fn settle(
        self,
        order: (Order, u64),
        progress: Progress,
        changed: bool,
        server: Option<&str>,
    ) -> Result<Ran, OrderError> {
        let id = progress.transaction_id;
        let result = match progress.outcome {
            _ if changed => Came::Changed,
            Outcome::Issued(issued) => Came::Issued(issued),
            Outcome::Waiting(waiting) => Came::Waiting(waiting),
            Outcome::Failed(failure) => Came::Failed(failure),
            Outcome::Done(_) => Came::Failed(Failure::new(
                FailureClass::Permanent,
                Fault::Internal,
                "the transaction ended without a certificate and without a failure",
                "report this as a defect of abide",
            )),
        };
        let endpoint_not_before_ms = self.tell_endpoint(&result, server)?;
        let random = octets(self.host);
        self.write(order, |mut order, now_ms| {
            order.transaction_id = Some(id.clone());
            if !matches!(result, Came::Waiting(_)) {
                order.settled = Some(id.clone());
                order.attempt = order.attempt.filter(|_| matches!(result, Came::Issued(_)));
                order.goes_on_ms = None;
            }
            match &result {
                Came::Waiting(waiting) => wait(order, waiting),
                Came::Issued(issued) => self.issued(order, issued, now_ms, random),
                Came::Changed => self.changed(order, now_ms),
                Came::Failed(failure) => {
                    self.failed(order, failure, endpoint_not_before_ms, now_ms, random)
                }
            }
        })
    }

    /// What the endpoint said goes to its record first: all workers mind it. Returns until when
    /// it wants nothing.
    fn tell_endpoint(&self, result: &Came, server: Option<&str>) -> Result<u64, OrderError> {
        let Some(server) = server else {
            return Ok(0);
        };
        let policy = &self.policies.retry;
        let told = match result {
            Came::Issued(_) => endpoint::succeeded(self.host, server, policy).map(|()| 0),
            Came::Failed(failure) if failure.throttled => {
                endpoint::throttled(self.host, server, policy, None)
            }
            Came::Waiting(Waiting {
                until_ms,
                failure: Some(failure),
                ..
            }) if failure.throttled => {
                let hint_ms = until_ms.saturating_sub(self.host.now_ms());
                endpoint::throttled(self.host, server, policy, Some(hint_ms))
            }
            _ => Ok(0),
        };
        match told {
            // What came of the transaction is worth more than the endpoint's record.
            Err(OrderError::Busy(_)) if !self.host.is_broken() => Ok(0),
            told => told,
        }
    }

    fn issued(
        &self,
        mut order: Order,
        issued: &Issued,
        now_ms: u64,
        random: [u8; 8],
    ) -> (Order, Follow) {
        let validity = order.take_certificate(issued);
        let policy = &self.policies.retry;
        let (mut attempts, decision) =
            policy.succeeded(order.attempts(), validity, None, now_ms, random);
        let canceled = order.state() == OrderState::Canceled;
        let follow = match decision.next {
            Next::At(at_ms) if order.wish.renews && !canceled => Some((TaskKind::Renew, at_ms)),
            _ => None,
        };
        order.renewal_ms = follow.map(|(_, at_ms)| at_ms);
        if follow.is_none() {
            attempts.next_attempt_ms = None;
        }
        order.set_attempts(&attempts);
        let mut text = format!("issued, valid until {}", Utc(validity.not_after_ms));
        if !issued.note.is_empty() {
            text = format!("{text}; {}", issued.note);
        }
        if let (Some(step), Some(_)) = (decision.steps.last(), follow) {
            text = format!("{text}; {step}");
        }
        order.note(now_ms, text.clone());
        if !canceled {
            order.set_state(OrderState::Active, text);
        }
        let level = if decision.alarm {
            Level::Warn
        } else {
            Level::Info
        };
        orders::tell(self.host, level, "order-issued", &order);
        (order, follow)
    }

    fn failed(
        &self,
        mut order: Order,
        failure: &Failure,
        endpoint_not_before_ms: u64,
        now_ms: u64,
        random: [u8; 8],
    ) -> (Order, Follow) {
        let policy = &self.policies.retry;
        let class = class(failure);
        let about = retry::Failure {
            class,
            hint_s: None,
            endpoint_not_before_ms,
            in_use: order.in_use(),
        };
        let (attempts, decision) = policy.failed(order.attempts(), about, now_ms, random);
        order.set_attempts(&attempts);
        order.failure = Some(failure.clone());
        let mut text = format!("failed ({class}): {}", failure.reason);
        if let Some(step) = decision.steps.last() {
            text = format!("{text}; next: {step}");
        }
        order.note(now_ms, text);
        if order.state() == OrderState::Canceled {
            return (order, None);
        }
        order.set_state(OrderState::Error, failure.reason.clone());
        let level = if decision.alarm {
            Level::Error
        } else {
            Level::Warn
        };
        orders::tell(self.host, level, "order-failed", &order);
        let follow = match decision.next {
            Next::At(at_ms) => Some((TaskKind::Retry, at_ms)),
            Next::Stopped => None,
        };
        (order, follow)
    }

    fn changed(&self, mut order: Order, now_ms: u64) -> (Order, Follow) {
        let (attempts, _) = self
            .policies
            .retry
            .request_changed(order.attempts(), now_ms);
        order.set_attempts(&attempts);
        order.note(now_ms, "the configuration changed: begun anew");
        if order.state() == OrderState::Canceled {
            return (order, None);
        }
        order.set_state(
            OrderState::NotStarted,
            "the configuration changed: begun anew",
        );
        let kind = match order.chain.is_empty() {
            true => TaskKind::Start,
            false => TaskKind::Renew,
        };
        (order, Some((kind, now_ms)))
    }

    /// The order stops: it cannot work as it is configured.
    fn stop(self, order: (Order, u64), why: String) -> Result<Ran, OrderError> {
        let failure = Failure::new(
            FailureClass::Permanent,
            Fault::Configuration,
            why,
            "mend the configuration, then renew the order by hand",
        );
        let random = octets(self.host);
        self.write(order, |order, now_ms| {
            self.failed(order, &failure, 0, now_ms, random)
        })
    }

    /// The transaction could not be begun, or not gone on with.
    fn stumble(
        self,
        order: (Order, u64),
        error: Error,
        issuer: Option<&Issuer>,
    ) -> Result<Ran, OrderError> {
        match error {
            Error::Storage(why) => Err(OrderError::Storage(why)),
            Error::Invalid(why) => {
                let server = issuer.map_or("", |issuer| issuer.server.as_str());
                self.stop(order, format!("{server}: {why}"))
            }
            Error::Busy(_) if self.host.is_broken() => Ok(Ran::Fenced(overtaken(self.host))),
            Error::Busy(what) | Error::InProgress(what) => self.trouble(
                Some(order),
                format!("somebody else is at work on it: {what}"),
            ),
            Error::NotFound => self.trouble(Some(order), "its transaction is gone".into()),
            Error::Key(why) | Error::Unreadable(why) => self.trouble(Some(order), why),
        }
    }

    /// A failure of our own: the task is tried again, or a dead letter. The order's count of
    /// failures stays.
    fn trouble(self, order: Option<(Order, u64)>, why: String) -> Result<Ran, OrderError> {
        let now_ms = self.host.now_ms();
        let token = self.work.token;
        let state = TaskState {
            retry_at_ms: self.work.due_ms,
            retry_count: self.work.retry_count,
            lease: Some(schedule::Lease {
                token,
                until_ms: now_ms,
            }),
            last_token: token,
        };
        let scheduler = &self.policies.scheduler;
        let Ok((state, fate)) = scheduler.failed(state, token, now_ms, octets(self.host)) else {
            return Ok(Ran::Fenced(overtaken(self.host)));
        };
        if let Fate::Dead(death) = fate {
            let reason = format!("{death}: {why}");
            bury(self.host, &self.entry, token, reason.clone())?;
            return Ok(Ran::Failed(reason, None));
        }
        let task = TaskRecord {
            retry_count: state.retry_count,
            reason: why.clone(),
            ..self.task.clone()
        };
        let envelope = &self.entry.envelope;
        let mut changes = alloc::vec![task.put_for(
            &envelope.id,
            &envelope.account,
            state.retry_at_ms,
            Some(self.entry.version),
            now_ms,
        )];
        if let Some((mut order, version)) = order {
            order.reason = why.clone();
            order.note(now_ms, format!("no way on for now: {why}"));
            if order.state() == OrderState::Running {
                order.goes_on_ms = Some(state.retry_at_ms);
            }
            changes.push(order.put(Some(version), now_ms));
        }
        self.host.commit(changes)?;
        Ok(Ran::Failed(why, Some(state.retry_at_ms)))
    }

    /// Not now, for no failure of the order.
    fn postpone(self, order: (Order, u64), until_ms: u64, why: &str) -> Result<Ran, OrderError> {
        let now_ms = self.host.now_ms();
        let (mut order, version) = order;
        if order.state() == OrderState::Running {
            order.goes_on_ms = Some(until_ms);
        } else {
            let mut attempts = order.attempts();
            attempts.next_attempt_ms = Some(until_ms);
            order.set_attempts(&attempts);
        }
        order.note(now_ms, format!("postponed to {}: {why}", Utc(until_ms)));
        let task = TaskRecord {
            refusals: self.task.refusals.saturating_add(1),
            ..self.task.clone()
        };
        let changes = alloc::vec![
            order.put(Some(version), now_ms),
            task.put(&order, until_ms, Some(self.entry.version), now_ms),
        ];
        self.host.commit(changes)?;
        Ok(Ran::Postponed(until_ms))
    }

    /// Writes the order as `change` makes it, with the task that follows. When somebody else has
    /// changed the order meanwhile, such as a person who cancels it, the change is put to that.
    fn write(
        &self,
        (order, version): (Order, u64),
        change: impl Fn(Order, u64) -> (Order, Follow),
    ) -> Result<Ran, OrderError> {
        let mut before = (order, version);
        let mut busy = String::new();
        for _ in 0..limits::RACES {
            let now_ms = self.host.now_ms();
            let (mut order, follow) = change(before.0, now_ms);
            let mut changes: Vec<Change> = alloc::vec![order.put(Some(before.1), now_ms)];
            changes.push(match follow {
                Some((kind, due_ms)) => {
                    let task = TaskRecord::new(kind, &order.wish.issuer);
                    task.put(&order, due_ms, Some(self.entry.version), now_ms)
                }
                None => self.drop_task(),
            });
            match self.host.commit(changes) {
                Ok(_) => return Ok(Ran::Done(Box::new(order))),
                Err(StorageError::Conflict(what)) => busy = what,
                Err(error) => return Err(error.into()),
            }
            before = orders::load(self.host, &self.work.order)?;
        }
        Err(OrderError::Busy(busy))
    }

    fn drop_task(&self) -> Change {
        orders::delete(TASK, &self.work.order, self.entry.version)
    }
}

/// The CA wants patience, or the same octets are sent again.
fn wait(mut order: Order, waiting: &Waiting) -> (Order, Follow) {
    order.goes_on_ms = Some(waiting.until_ms);
    order.failure = waiting.failure.clone();
    if order.state() != OrderState::Canceled {
        order.set_state(OrderState::Running, waiting.reason.clone());
    }
    (order, Some((TaskKind::Resume, waiting.until_ms)))
}

/// The class of a failure that ended a transaction.
fn class(failure: &Failure) -> Class {
    if failure.throttled {
        return Class::Throttled;
    }
    match failure.class {
        FailureClass::Transient | FailureClass::Expired => Class::Transient,
        FailureClass::Refused | FailureClass::Malformed => Class::Refused,
        FailureClass::Security => Class::Security,
        FailureClass::Permanent => Class::Permanent,
    }
}
