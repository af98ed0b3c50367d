//! The world: machines that work on orders over one store, a network, a CA and a clock,
//! all moved one step at a time by one seed.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;
use std::sync::OnceLock;

use abide_cmp::protection::Verdict;
use abide_enroll::{Credential, Enrollment, Error, Outcome, Phase, StorageError};

use crate::ca::{Ca, Fixed};
use crate::call::{Answer, Call, Import, Returned, Step, Verb};
use crate::checker::{Breach, Checker, Invariant, Since, When};
use crate::crypto;
use crate::fault::{Fault, Place, Plan};
use crate::network::Network;
use crate::scenario::{DAY, HOUR, MINUTE, SECOND, Setting};
use crate::store::Store;
use crate::wish::{enrollment, new_key, own_credential, secret};

/// 2026-06-01T00:00:00Z, from `date -u -d 2026-06-01 +%s`.
const START_MS: u64 = 1_780_272_000_000;
/// Steps after which no more faults strike.
const CALM_AFTER: u64 = 4_000;
/// Steps in which a world comes to its end.
const STEPS: u64 = 40_000;
/// Transactions for one order before its operator gives up.
const ATTEMPTS: u32 = 4;

/// What became of a world that kept every rule.
#[derive(Clone, Copy, Debug, Default)]
pub struct Tally {
    /// Steps: imports asked for and imports answered.
    pub steps: u64,
    /// Orders that ended with a certificate.
    pub issued: u64,
    /// Orders that ended without one, and said why.
    pub failed: u64,
    /// Transactions that were declared orphans.
    pub orphans: u64,
    /// Faults that struck.
    pub faults: u64,
}

/// A rule that was broken, and when.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// The rule.
    pub breach: Breach,
    /// The step.
    pub step: u64,
    /// What happened until then; empty unless it was asked for.
    pub trace: Vec<String>,
}

enum Work {
    Idle,
    Asked(Import),
    Answered(Answer),
}

struct Worker {
    call: Option<Call>,
    work: Work,
    verb: Verb,
    order: usize,
    generation: u32,
    credential: usize,
    offset_ms: i64,
    since: Since,
    /// Whether the call has sent anything.
    traffic: bool,
    /// The transaction and the chain that were there when the call began.
    known: Option<(String, Vec<Vec<u8>>)>,
}

/// What the operator of an order knows.
struct Order {
    enrollment: Rc<Enrollment>,
    generation: u32,
    credential: usize,
    due_ms: u64,
    attempts: u32,
    chain: Option<Vec<Vec<u8>>>,
    asked_again: bool,
    closed: bool,
    /// Whether the last transaction is to be followed by another.
    again: bool,
    /// The ended transaction that the operator has heard of.
    heard_of: Option<String>,
}

/// One world.
pub struct World {
    rng: fastrand::Rng,
    plan: Plan,
    now_ms: u64,
    workers: Vec<Worker>,
    /// The worker whose turn it is.
    turn: usize,
    /// A worker that is called in, and the order it is called in for: it keeps the turn.
    guest: Option<(usize, usize)>,
    orders: Vec<Order>,
    store: Store,
    network: Network,
    ca: Ca,
    checker: Checker,
    opportunity: u64,
    /// Where faults could have struck, when somebody wants to know.
    places: Option<Vec<(u64, Place)>>,
    tally: Tally,
    trace: Option<Vec<String>>,
}

impl World {
    /// A world that is about to begin. Everything in it follows from its arguments.
    pub fn new(setting: &Setting, plan: Plan, mut rng: fastrand::Rng, trace: bool) -> Self {
        static FIXED: OnceLock<Fixed> = OnceLock::new();
        let fixed = FIXED.get_or_init(Fixed::new).clone();
        let secret = secret(&mut rng);
        let wanted = (0..setting.orders)
            .map(|order| crypto::public_key(&new_key(order)))
            .collect();
        let mut checker = Checker::new(setting.orders, setting.limits);
        checker.keep_secret(secret.clone());
        let orders = (0..setting.orders)
            .map(|order| Order {
                enrollment: Rc::new(enrollment(setting, &fixed, order)),
                generation: 0,
                credential: 0,
                due_ms: START_MS,
                attempts: 0,
                chain: None,
                asked_again: false,
                closed: false,
                again: true,
                heard_of: None,
            })
            .collect();
        let workers = (0..setting.workers)
            .map(|_| Worker {
                call: None,
                work: Work::Idle,
                verb: Verb::Resume,
                order: 0,
                generation: 0,
                credential: 0,
                offset_ms: 0,
                since: Since::default(),
                traffic: false,
                known: None,
            })
            .collect();
        Self {
            ca: Ca::new(setting, fixed, secret, wanted),
            rng,
            plan,
            now_ms: START_MS,
            workers,
            turn: 0,
            guest: None,
            orders,
            store: Store::default(),
            network: Network::default(),
            checker,
            opportunity: 0,
            places: None,
            tally: Tally::default(),
            trace: trace.then(Vec::new),
        }
    }

    /// Lets the world run to its end and tells where faults could have struck.
    pub fn survey(mut self) -> Result<Vec<(u64, Place)>, Violation> {
        self.places = Some(Vec::new());
        self.finish()?;
        Ok(self.places.unwrap_or_default())
    }

    /// Lets the world run to its end.
    pub fn run(mut self) -> Result<Tally, Violation> {
        self.finish()?;
        Ok(self.tally)
    }

    /// Like [`run`](Self::run), and tells everything that happened.
    pub fn tell(mut self) -> Result<(Tally, Vec<String>), Violation> {
        self.finish()?;
        Ok((self.tally, self.trace.unwrap_or_default()))
    }

    /// Like [`run`](Self::run), and tells whether every fault of the script struck.
    pub fn run_script(mut self) -> Result<(Tally, bool), Violation> {
        self.finish()?;
        Ok((self.tally, self.plan.is_over()))
    }

    fn finish(&mut self) -> Result<(), Violation> {
        let steps = AssertUnwindSafe(|| {
            while self.step()? {}
            Ok(())
        });
        let ended = catch_unwind(steps).unwrap_or_else(|cause| {
            let words = cause.downcast_ref::<String>().map(String::as_str);
            let words = words.or(cause.downcast_ref::<&str>().copied());
            Err(Breach::new(
                Invariant::NoPanic,
                words.unwrap_or("without words"),
            ))
        });
        ended.map_err(|breach| Violation {
            breach,
            step: self.tally.steps,
            trace: self.trace.take().unwrap_or_default(),
        })?;
        for order in &self.orders {
            match order.chain {
                Some(_) => self.tally.issued += 1,
                None => self.tally.failed += 1,
            }
        }
        Ok(())
    }

    fn note(&mut self, line: impl FnOnce(&Self) -> String) {
        let Some(mut trace) = self.trace.take() else {
            return;
        };
        let time = (self.now_ms - START_MS) as f64 / SECOND as f64;
        trace.push(format!(
            "{:>6} {time:>10.3} s  {}",
            self.tally.steps,
            line(self)
        ));
        self.trace = Some(trace);
    }

    /// One step of one machine, or the next moment at which there is one.
    fn step(&mut self) -> Result<bool, Breach> {
        self.tally.steps += 1;
        if self.tally.steps == CALM_AFTER {
            self.plan.end();
        }
        if self.tally.steps > STEPS {
            return Err(Breach::new(Invariant::Ends, "it goes on and on"));
        }
        self.choose_turn();
        let turn = self.turn;
        match std::mem::replace(&mut self.workers[turn].work, Work::Idle) {
            Work::Idle => {
                if !self.start_call()? {
                    return Ok(false);
                }
            }
            Work::Asked(import) => self.perform(import)?,
            Work::Answered(answer) => {
                let call = self.workers[turn].call.as_mut().expect("a call under way");
                let step = call.go_on(answer);
                self.stepped(step)?;
            }
        }
        self.checker.on_state(&mut self.ca)?;
        Ok(true)
    }

    fn choose_turn(&mut self) {
        if let Some((guest, _)) = self.guest {
            self.turn = guest;
            return;
        }
        // In a script only the first machine works unless another one is called.
        if let Plan::Script(_) = self.plan
            && self.tally.steps < CALM_AFTER
        {
            self.turn = 0;
            return;
        }
        if self.workers.len() > 1 && self.rng.u8(..4) == 0 {
            self.turn = self.rng.usize(..self.workers.len());
        }
        let busy = |worker: &Worker| !matches!(worker.work, Work::Idle);
        if !busy(&self.workers[self.turn])
            && self.due_order().is_none()
            && let Some(other) = self.workers.iter().position(busy)
        {
            self.turn = other;
        }
    }

    fn due_order(&self) -> Option<usize> {
        (0..self.orders.len())
            .filter(|&order| self.wants_call(order) && self.orders[order].due_ms <= self.now_ms)
            .min_by_key(|&order| self.orders[order].due_ms)
    }

    fn wants_call(&self, order: usize) -> bool {
        let order = &self.orders[order];
        !order.closed && (order.chain.is_none() || !order.asked_again)
    }

    /// An idle machine looks for something to do. False when there is nothing ever more.
    fn start_call(&mut self) -> Result<bool, Breach> {
        let order = match (self.guest, self.due_order()) {
            (Some((_, order)), _) => order,
            (None, Some(order)) => order,
            (None, None) => return self.pass_time(),
        };
        let turn = self.turn;
        if let Some(fault) = self.strike(&[Place::Call]) {
            self.edit(order, fault);
        }
        self.hear(order);
        if self.orders[order].closed {
            self.guest = None;
            return Ok(true);
        }
        let open = self
            .checker
            .latest(order)
            .is_some_and(|record| record.phase.is_open());
        // Somebody who does not know better begins where something is open already.
        let hasty = open && self.workers.len() > 1 && self.rng.u8(..8) == 0;
        let verb = match (self.orders[order].again && !open) || hasty {
            true => Verb::Begin,
            false => Verb::Resume,
        };
        self.checker.on_call(order, verb, turn);
        let generation = self.orders[order].generation;
        let latest = self.checker.latest(order);
        let issued = latest.filter(|record| record.phase == Phase::Issued);
        let known = issued.map(|record| {
            let chain = record.chain.iter().map(|der| der.to_vec()).collect();
            (record.id(), chain)
        });
        self.note(|_| format!("machine {turn}: {verb:?} of order {order}"));
        // Until the call tells more, others keep away for a while, or do not.
        let races = !matches!(self.plan, Plan::Script(_)) && self.rng.u8(..8) == 0;
        self.orders[order].due_ms = self.now_ms + if races { 0 } else { MINUTE };
        let (call, step) = Call::start(verb, Rc::clone(&self.orders[order].enrollment));
        let worker = &mut self.workers[turn];
        worker.call = Some(call);
        worker.verb = verb;
        worker.order = order;
        worker.generation = generation;
        worker.credential = self.orders[order].credential;
        worker.since = Since::default();
        worker.traffic = false;
        worker.known = known;
        self.stepped(step)?;
        Ok(true)
    }

    fn pass_time(&mut self) -> Result<bool, Breach> {
        let orders = (0..self.orders.len()).filter(|&order| self.wants_call(order));
        let due = orders.map(|order| self.orders[order].due_ms).min();
        let Some(next) = due.into_iter().chain(self.network.next_ms()).min() else {
            return Ok(false);
        };
        self.advance(next.max(self.now_ms))?;
        Ok(true)
    }

    fn advance(&mut self, to_ms: u64) -> Result<(), Breach> {
        self.now_ms = to_ms;
        self.network.advance(to_ms, &mut self.ca)
    }

    fn strike(&mut self, places: &[Place]) -> Option<Fault> {
        let opportunity = self.opportunity;
        self.opportunity += 1;
        if let Some(survey) = &mut self.places {
            survey.extend(places.iter().map(|&place| (opportunity, place)));
        }
        let fault = self.plan.strike(opportunity, places, &mut self.rng)?;
        self.tally.faults += 1;
        self.note(|world| format!("fault {} at {}", fault.name(), world.opportunity - 1));
        Some(fault)
    }

    fn edit(&mut self, order: usize, fault: Fault) {
        let own = &mut self.orders[order];
        let mut enrollment = Enrollment::clone(&own.enrollment);
        match fault {
            Fault::CredentialRotated => {
                let secret = secret(&mut self.rng);
                self.checker.keep_secret(secret.clone());
                self.ca.secrets.push(secret);
                let generation = self.ca.secrets.len() - 1;
                own.credential = generation;
                if let Credential::Certificate(credential) = &mut enrollment.credential {
                    *credential = own_credential(generation);
                }
                if let Credential::Secret(secret) = &mut enrollment.credential {
                    secret.key = format!("secret {generation}");
                }
            }
            Fault::ServerEdited => enrollment.server.push_str("new/"),
            _ => {
                let another = crypto::certificate(
                    "another root",
                    u64::from(own.generation) + 2,
                    &crypto::name(crypto::CA),
                    &crypto::public_key("another root"),
                    crypto::VALID,
                    true,
                );
                enrollment.trusted.push(another);
            }
        }
        own.generation += 1;
        own.enrollment = Rc::new(enrollment);
    }

    fn stepped(&mut self, step: Step) -> Result<(), Breach> {
        let turn = self.turn;
        match step {
            Step::Asks(import) => {
                self.workers[turn].work = Work::Asked(import);
                Ok(())
            }
            Step::Returns(returned) => {
                self.workers[turn].call = None;
                self.returned(returned)
            }
        }
    }

    fn clock(&self) -> u64 {
        self.now_ms
            .saturating_add_signed(self.workers[self.turn].offset_ms)
    }

    fn when(&self) -> When {
        When {
            now_ms: self.clock(),
            generation: self.workers[self.turn].generation,
            worker: self.turn,
        }
    }

    fn perform(&mut self, import: Import) -> Result<(), Breach> {
        let turn = self.turn;
        let places: &[Place] = match &import {
            Import::Load { .. } => &[Place::Import, Place::Load],
            Import::Commit(_) => &[Place::Import, Place::Commit],
            Import::Exchange { .. } => &[Place::Import, Place::Exchange],
            Import::Now => &[Place::Import, Place::Clock],
            _ => &[Place::Import],
        };
        let fault = self.strike(places);
        match fault {
            Some(Fault::CrashBefore) => {
                self.die();
                return Ok(());
            }
            Some(Fault::Stall) => self.advance(self.now_ms + 10 * MINUTE)?,
            Some(Fault::AnotherMachine) if self.guest.is_none() && self.workers.len() > 1 => {
                // The import is asked for again when the other one is through.
                let other = (0..self.workers.len())
                    .find(|&other| other != turn && matches!(self.workers[other].work, Work::Idle));
                if let Some(other) = other {
                    self.guest = Some((other, self.workers[turn].order));
                    self.workers[turn].work = Work::Asked(import);
                    return Ok(());
                }
            }
            Some(Fault::ClockBack) => {
                self.checker.clocks_differ = true;
                self.workers[turn].offset_ms -= DAY as i64;
            }
            Some(Fault::ClockForth) => {
                self.checker.clocks_differ = true;
                self.workers[turn].offset_ms += HOUR as i64;
            }
            _ => {}
        }
        let name = import.name();
        let Some(answer) = self.answer(import, fault)? else {
            self.die();
            return Ok(());
        };
        self.note(|_| format!("machine {turn}: {name}{}", shown(&answer)));
        match fault {
            Some(Fault::CrashAfter) => self.die(),
            _ => self.workers[turn].work = Work::Answered(answer),
        }
        Ok(())
    }

    /// What the host answers; none when the machine dies over it.
    fn answer(&mut self, import: Import, fault: Option<Fault>) -> Result<Option<Answer>, Breach> {
        let credential = self.workers[self.turn].credential;
        Ok(Some(match import {
            Import::Now => Answer::Now(self.clock()),
            Import::Random(count) => Answer::Octets(
                std::iter::repeat_with(|| self.rng.u8(..))
                    .take(count)
                    .collect(),
            ),
            Import::Load { .. } if fault == Some(Fault::LoadFails) => Answer::Entry(Err(
                StorageError::Unavailable("no route to the store".into()),
            )),
            Import::Load { kind, id } => Answer::Entry(Ok(self.store.load(&kind, &id))),
            Import::Commit(changes) => return self.commit(&changes, fault),
            Import::Exchange {
                endpoint: _,
                message,
                timeout_ms,
            } => self.exchange(&message, timeout_ms, fault)?,
            Import::PublicKey(key) => Answer::Octets(crypto::public_key(&key)),
            Import::Sign { key, data } => {
                Answer::Octets(crypto::signature(&crypto::public_key(&key), &data))
            }
            Import::Mac {
                parameters, data, ..
            } => Answer::Octets(crypto::mac(
                &self.ca.secrets[credential],
                &parameters,
                &data,
            )),
            Import::Verify {
                public_key,
                data,
                signature,
            } => Answer::Verdict(match crypto::signature(&public_key, &data) == signature {
                true => Verdict::Valid,
                false => Verdict::Invalid,
            }),
            Import::Fingerprint { salt, .. } => {
                Answer::Octets(crypto::fingerprint(&self.ca.secrets[credential], &salt))
            }
            Import::Emit(event) => {
                self.checker.on_event(&event)?;
                self.note(|world| {
                    format!(
                        "machine {}: says {}: {}",
                        world.turn, event.name, event.text
                    )
                });
                Answer::Done
            }
        }))
    }

    fn commit(
        &mut self,
        changes: &[abide_enroll::Change],
        fault: Option<Fault>,
    ) -> Result<Option<Answer>, Breach> {
        let unavailable = || StorageError::Unavailable("the disk is full".into());
        match fault {
            Some(Fault::StoreFails) => return Ok(Some(Answer::Versions(Err(unavailable())))),
            Some(Fault::StoreConflict) => {
                let conflict = StorageError::Conflict("somebody".into());
                return Ok(Some(Answer::Versions(Err(conflict))));
            }
            Some(Fault::StoreSlow) => self.advance(self.now_ms + MINUTE)?,
            _ => {}
        }
        let written = match fault {
            Some(Fault::TornHead) => &changes[..1],
            Some(Fault::TornTail) => &changes[changes.len() - 1..],
            _ => changes,
        };
        let versions = self.store.commit(written);
        let torn = written.len() < changes.len() && versions.is_ok();
        self.checker.torn |= torn;
        if versions.is_ok() {
            let when = self.when();
            let worker = &mut self.workers[self.turn];
            let since = std::mem::take(&mut worker.since);
            let order = worker.order;
            self.checker.on_commit(order, written, &since, when)?;
            self.note(|world| {
                let record = world.checker.latest(order);
                format!("durable: {:?}", record.map(|record| record.phase))
            });
        }
        Ok(match fault {
            _ if torn => None,
            Some(Fault::StoreUnsure) => Some(Answer::Versions(Err(unavailable()))),
            _ => Some(Answer::Versions(versions)),
        })
    }

    fn exchange(
        &mut self,
        message: &[u8],
        timeout_ms: u64,
        fault: Option<Fault>,
    ) -> Result<Answer, Breach> {
        let when = self.when();
        let worker = &mut self.workers[self.turn];
        self.checker
            .on_send(worker.order, message, &worker.since, when)?;
        worker.since.sent = true;
        worker.traffic = true;
        let exchanged = self.network.exchange(
            &mut self.ca,
            message,
            fault,
            self.now_ms,
            timeout_ms,
            &mut self.rng,
        )?;
        self.advance(self.now_ms + exchanged.took_ms)?;
        self.note(|_| format!("told {:?}", exchanged.evidence));
        let told_ms = self.clock();
        let since = &mut self.workers[self.turn].since;
        since.evidence = Some(exchanged.evidence);
        since.told_ms = told_ms;
        Ok(Answer::Response(exchanged.response))
    }

    /// The process of the machine whose turn it is dies.
    fn die(&mut self) {
        let turn = self.turn;
        self.note(|_| format!("machine {turn}: dies"));
        let worker = &mut self.workers[turn];
        worker.call = None;
        worker.work = Work::Idle;
        let order = worker.order;
        self.guest = self.guest.filter(|&(guest, _)| guest != turn);
        self.orders[order].due_ms = self.now_ms + SECOND;
    }

    fn returned(&mut self, returned: Returned) -> Result<(), Breach> {
        let turn = self.turn;
        self.guest = self.guest.filter(|&(guest, _)| guest != turn);
        self.note(|_| {
            let words = match &returned {
                Ok(progress) => format!("{:?}", progress.phase),
                Err(error) => format!("{error:?}"),
            };
            format!("machine {turn}: returns {words}")
        });
        let when = self.when();
        let worker = &self.workers[turn];
        let (verb, at) = (worker.verb, worker.order);
        self.checker.on_return(
            verb,
            at,
            &returned,
            worker.known.as_ref(),
            worker.traffic,
            when,
        )?;
        let offset_ms = worker.offset_ms;
        self.hear(at);
        let order = &mut self.orders[at];
        match returned {
            Ok(progress) => match progress.outcome {
                Outcome::Issued(issued) => {
                    order.asked_again = order.chain.is_some();
                    order.chain = Some(issued.chain);
                    order.due_ms = self.now_ms;
                }
                Outcome::Waiting(waiting) => {
                    order.due_ms = waiting.until_ms.saturating_add_signed(-offset_ms);
                }
                Outcome::Failed(_) | Outcome::Done(_) => {}
            },
            Err(Error::NotFound) => {
                // Another wish for the same order may have failed since.
                order.asked_again = order.chain.is_some();
                order.due_ms = self.now_ms + SECOND;
            }
            Err(Error::Unreadable(_)) if self.checker.torn => order.closed = true,
            Err(Error::InProgress(_) | Error::Busy(_) | Error::Storage(_)) => {
                order.due_ms = self.now_ms + SECOND;
            }
            Err(error) => {
                return Err(Breach::new(Invariant::Ends, format!("{error:?}")));
            }
        }
        Ok(())
    }

    /// The operator looks at the store, and decides about a transaction that has ended.
    fn hear(&mut self, at: usize) {
        use abide_enroll::FailureClass::{Expired, Permanent, Security};
        let Some(record) = self
            .checker
            .latest(at)
            .filter(|record| !record.phase.is_open())
        else {
            return;
        };
        let order = &mut self.orders[at];
        if order.heard_of.as_ref() == Some(&record.id()) {
            return;
        }
        order.heard_of = Some(record.id());
        order.again = false;
        order.due_ms = self.now_ms;
        let Some(failure) = record
            .failure
            .as_ref()
            .filter(|_| record.phase == Phase::Failed)
        else {
            return;
        };
        self.tally.orphans += u64::from(failure.orphan);
        let another = failure.passes()
            || failure.orphan
            || matches!(failure.class, Expired | Permanent | Security);
        order.attempts += 1;
        order.again = another && order.attempts < ATTEMPTS;
        order.closed = !order.again;
        order.due_ms = self.now_ms + MINUTE;
    }
}

fn shown(answer: &Answer) -> String {
    match answer {
        Answer::Entry(Ok(entry)) => match entry {
            Some(entry) => format!(": {}, version {}", entry.envelope.state, entry.version),
            None => ": nothing".into(),
        },
        Answer::Entry(Err(error)) | Answer::Versions(Err(error)) => format!(": {error:?}"),
        Answer::Versions(Ok(versions)) => format!(": versions {versions:?}"),
        Answer::Response(Ok(response)) => {
            format!(
                ": HTTP {} with {} octets",
                response.status,
                response.body.len()
            )
        }
        Answer::Response(Err(error)) => format!(": {error:?}"),
        Answer::Verdict(verdict) => format!(": {verdict:?}"),
        Answer::Now(_) | Answer::Octets(_) | Answer::Done => String::new(),
    }
}
