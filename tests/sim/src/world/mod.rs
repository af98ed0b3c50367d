//! The world: machines that work on orders over one store, a network, a CA and a clock,
//! all moved one step at a time by one seed.

mod host;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;
use std::sync::{Arc, OnceLock};

use abide_enroll::{Answer as Told, Credential, Enrollment, Error, Outcome};

use crate::ca::{Ca, Fixed};
use crate::call::{Answer, Call, Import, Machine, Native, Returned, Step, Verb};
use crate::checker::{Breach, Checker, Got, Invariant, Since};
use crate::crypto;
use crate::fault::{Fault, Place, Plan};
use crate::network::Network;
use crate::scenario::{Kind, MINUTE, SECOND, Setting};
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
    /// Orders that ended with what was asked for.
    pub served: u64,
    /// Orders that ended without it, and said why.
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
    call: Option<Box<dyn Call>>,
    work: Work,
    verb: Verb,
    order: usize,
    generation: u32,
    credential: usize,
    offset_ms: i64,
    since: Since,
    /// The transaction and its result that were there when the call began.
    known: Option<(String, Got)>,
}

/// What the operator of an order knows.
struct Order {
    enrollment: Rc<Enrollment>,
    generation: u32,
    credential: usize,
    due_ms: u64,
    attempts: u32,
    got: Option<Got>,
    asked_again: bool,
    closed: bool,
    /// Whether the last transaction is to be followed by another.
    again: bool,
    /// The ended transaction that the operator has heard of.
    heard_of: Option<String>,
}

/// One world.
pub struct World {
    machine: Rc<dyn Machine>,
    rng: fastrand::Rng,
    plan: Plan,
    now_ms: u64,
    workers: Vec<Worker>,
    /// The worker whose turn it is.
    turn: usize,
    /// A worker that is called in, and the order it is called in for: it keeps the turn.
    guest: Option<(usize, usize)>,
    orders: Vec<Order>,
    conditional: bool,
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
        static FIXED: OnceLock<Arc<Fixed>> = OnceLock::new();
        let fixed = Arc::clone(FIXED.get_or_init(Fixed::new));
        let secret = secret(&mut rng);
        let wanted = (0..setting.orders)
            .map(|order| crypto::public_key(&new_key(order)))
            .collect();
        let mut checker = Checker::new(
            setting.orders,
            setting.limits,
            (setting.scenario.kind == Kind::Genm)
                .then(|| Told::Certificates(vec![fixed.root.clone()])),
        );
        checker.keep_secret(secret.clone());
        let orders = (0..setting.orders)
            .map(|order| Order {
                enrollment: Rc::new(enrollment(setting, &fixed, order)),
                generation: 0,
                credential: 0,
                due_ms: START_MS,
                attempts: 0,
                got: None,
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
                known: None,
            })
            .collect();
        Self {
            machine: Rc::new(Native),
            ca: Ca::new(setting, fixed, secret, wanted),
            rng,
            plan,
            now_ms: START_MS,
            workers,
            turn: 0,
            guest: None,
            orders,
            conditional: setting.conditional,
            store: Store::default(),
            network: Network::default(),
            checker,
            opportunity: 0,
            places: None,
            tally: Tally::default(),
            trace: trace.then(Vec::new),
        }
    }

    /// The same with another form of the machine.
    pub fn with(self, machine: Rc<dyn Machine>) -> Self {
        Self { machine, ..self }
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
            match order.got {
                Some(_) => self.tally.served += 1,
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
        !order.closed && (order.got.is_none() || !order.asked_again)
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
        let last = self.checker.latest(order).map(|record| record.id());
        let verb = match (self.orders[order].again && !open) || hasty {
            true if self.conditional => Verb::BeginAfter(last),
            true => Verb::Begin,
            false => Verb::Resume,
        };
        self.checker.on_call(order, &verb, turn);
        let generation = self.orders[order].generation;
        let known = self.checker.got(order);
        self.note(|_| format!("machine {turn}: {verb:?} of order {order}"));
        // Until the call tells more, others keep away for a while, or do not.
        let races = !matches!(self.plan, Plan::Script(_)) && self.rng.u8(..8) == 0;
        self.orders[order].due_ms = self.now_ms + if races { 0 } else { MINUTE };
        let enrollment = Rc::clone(&self.orders[order].enrollment);
        let (call, step) = self.machine.start(&verb, enrollment);
        let worker = &mut self.workers[turn];
        worker.call = Some(call);
        worker.verb = verb;
        worker.order = order;
        worker.generation = generation;
        worker.credential = self.orders[order].credential;
        worker.since = Since::default();
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
        let at = worker.order;
        self.checker.on_return(
            &worker.verb,
            at,
            &returned,
            worker.known.as_ref(),
            &worker.since,
            when,
        )?;
        let offset_ms = worker.offset_ms;
        self.hear(at);
        let order = &mut self.orders[at];
        match returned {
            Ok(progress) => {
                if let Some(got) = Got::of(&progress.outcome) {
                    order.asked_again = order.got.is_some();
                    order.got = Some(got);
                    order.due_ms = self.now_ms;
                }
                if let Outcome::Waiting(waiting) = progress.outcome {
                    order.due_ms = waiting.until_ms.saturating_add_signed(-offset_ms);
                }
            }
            Err(Error::NotFound) => {
                // Another wish for the same order may have failed since.
                order.asked_again = order.got.is_some();
                order.due_ms = self.now_ms + SECOND;
            }
            Err(Error::Unreadable(_)) if self.checker.torn => order.closed = true,
            Err(Error::InProgress(_) | Error::Busy(_) | Error::Storage(_) | Error::Key(_)) => {
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
            .filter(|_| record.phase == abide_enroll::Phase::Failed)
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
