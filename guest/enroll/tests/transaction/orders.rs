//! Orders that stand: backoff and renewal in virtual time, leases, cancellation, dead letters.
//!
//! Times in comments are worked out by hand from the rules that they follow.

use std::panic::AssertUnwindSafe;

use abide_cmp::BodyType;
use abide_enroll::orders::{self, Issuer, Order, OrderError, Request, Subject, Wish};
use abide_enroll::schedule::{self, Batch, Policies, Ran, TaskKind, Work};
use abide_enroll::{KeyKind, NetworkError, Operation, Response};
use abide_policy::order::OrderState;

use crate::ca::Ca;
use crate::world::{Died, HOUR, MINUTE, SECOND, START_MS, World, body_type};

const DAY: u64 = 24 * HOUR;
/// Of the scheduler.
const LEASE: u64 = MINUTE;

/// A service with one order, if `create` is called once.
pub(crate) struct Service {
    pub(crate) world: World,
    pub(crate) policies: Policies,
    pub(crate) started_ms: u64,
}

impl Service {
    pub(crate) fn new() -> Self {
        Self {
            world: World::new(Operation::P10cr),
            policies: Policies::default(),
            started_ms: START_MS,
        }
    }

    pub(crate) fn issuer(&self) -> Issuer {
        let like = &self.world.enrollment;
        Issuer {
            operation: Operation::Ir,
            updates: false,
            profile: String::new(),
            server: like.server.clone(),
            endpoints: Vec::new(),
            route: String::new(),
            recipient: String::new(),
            credential: like.credential.clone(),
            trusted: like.trusted.clone(),
            out_trusted: Vec::new(),
            untrusted: Vec::new(),
            implicit_confirm: false,
            allow_sha1: false,
            allow: like.allow,
            limits: like.limits,
            registration: None,
        }
    }

    pub(crate) fn wish(&self) -> Wish {
        Wish {
            key: None,
            account: "prod".into(),
            application: "web".into(),
            origin: "api".into(),
            principal: "alice".into(),
            issuer: "ca".into(),
            request: Request::Subject(Subject {
                subject: "CN=device".into(),
                sans: Vec::new(),
                key: KeyKind::EcP256,
                rotate: false,
            }),
            renews: true,
        }
    }

    pub(crate) fn order(&self) -> String {
        let (order, is_new) = orders::create(&self.world, self.wish(), None).expect("an order");
        assert!(is_new);
        order.id
    }

    pub(crate) fn claim(&self, worker: &str) -> Batch {
        schedule::claim(
            &self.world,
            worker,
            100,
            self.started_ms,
            &self.policies,
            None,
        )
        .expect("a claim")
    }

    pub(crate) fn run(&self, work: &Work) -> Ran {
        schedule::run(&self.world, work, Some(&self.issuer()), &self.policies).expect("a task")
    }

    pub(crate) fn get(&self, id: &str) -> Order {
        orders::get(&self.world, id).expect("the order")
    }

    /// Claims what is due now and does it.
    pub(crate) fn work(&self) -> usize {
        let batch = self.claim("w1");
        assert_eq!(batch.dead, [""; 0]);
        for work in &batch.work {
            self.run(work);
        }
        batch.work.len()
    }

    pub(crate) fn now(&self) -> u64 {
        self.world.now_ms.get()
    }

    pub(crate) fn pass(&self, ms: u64) {
        self.world.now_ms.set(self.now() + ms);
    }

    /// Lets time pass from task to task, and does what is due. Returns when each request for a
    /// certificate was sent.
    fn live(&self, until_ms: u64) -> Vec<u64> {
        let mut attempts = Vec::new();
        while self.now() < until_ms {
            let before = self.requests();
            self.work();
            for _ in before..self.requests() {
                attempts.push(self.now());
            }
            let next = self.world.earliest_due("task").unwrap_or(until_ms);
            assert!(next > self.now(), "what is due was left");
            self.world.now_ms.set(next.min(until_ms));
        }
        attempts
    }

    /// Requests for a certificate so far.
    pub(crate) fn requests(&self) -> usize {
        let sent = self.world.sent();
        let irs = sent.iter().filter(|der| body_type(der) == BodyType::Ir);
        irs.count()
    }

    /// The CA refuses the next request.
    fn next_is_refused(&self) {
        self.world.next_says(Ca::refuse);
    }

    /// notBefore and notAfter of what is issued from now on.
    fn issues(&self, from: &str, to: &str) {
        *self.world.ca.validity.borrow_mut() = [from.into(), to.into()];
    }

    pub(crate) fn due(&self, id: &str) -> Option<u64> {
        self.world.stored_entry("task", id)?.envelope.due_ms
    }
}

fn busy(_: &Ca, _: &[u8]) -> Result<Response, NetworkError> {
    Ok(Response {
        status: 503,
        content_type: Some("text/html".into()),
        retry_after: Some(90),
        location: None,
        body: b"<html>later</html>".to_vec(),
    })
}

#[test]
fn an_order_is_issued_and_renewed_after_two_thirds() {
    let service = Service::new();
    // Ninety days from the start of the world on.
    service.issues("260601000000Z", "260830000000Z");
    let id = service.order();
    assert_eq!(service.get(&id).state(), OrderState::NotStarted);
    assert_eq!(service.work(), 1);
    let order = service.get(&id);
    assert_eq!(order.state(), OrderState::Active, "{}", order.reason);
    assert_eq!(order.not_after_ms, Some(START_MS + 90 * DAY));
    assert_eq!(order.renewal_ms, Some(START_MS + 60 * DAY));
    assert_eq!(order.next_attempt_ms(), Some(START_MS + 60 * DAY));
    assert_eq!(service.due(&id), Some(START_MS + 60 * DAY));
    assert_eq!(service.work(), 0);

    service.world.now_ms.set(START_MS + 60 * DAY);
    service.issues("260731000000Z", "261029000000Z");
    let batch = service.claim("w1");
    assert_eq!(batch.work[0].kind, TaskKind::Renew);
    service.run(&batch.work[0]);
    let renewed = service.get(&id);
    assert_eq!(renewed.state(), OrderState::Active);
    assert_ne!(renewed.chain, order.chain);
    assert_eq!(renewed.renewal_ms, Some(START_MS + 120 * DAY));
    assert_eq!(service.world.ca.issued.borrow().len(), 2);
}

#[test]
fn an_order_that_does_not_renew_is_left_alone() {
    let service = Service::new();
    let wish = Wish {
        renews: false,
        ..service.wish()
    };
    let (order, _) = orders::create(&service.world, wish, None).expect("an order");
    service.work();
    let order = service.get(&order.id);
    assert_eq!(order.state(), OrderState::Active);
    assert_eq!(
        (
            order.renewal_ms,
            order.next_attempt_ms(),
            service.due(&order.id)
        ),
        (None, None, None)
    );
}

/// Three failures in a row, by which four hours are to be waited.
fn thrice_failed() -> (Service, String) {
    let service = Service::new();
    let id = service.order();
    for (failures, wait) in [(1, HOUR), (2, 2 * HOUR), (3, 4 * HOUR)] {
        service.next_is_refused();
        assert_eq!(service.work(), 1);
        let order = service.get(&id);
        assert_eq!(order.state(), OrderState::Error);
        assert_eq!(order.issuance_attempts(), Some(failures));
        assert_eq!(order.last_failure_ms(), Some(service.now()));
        assert_eq!(order.next_attempt_ms(), Some(service.now() + wait));
        if failures < 3 {
            service.pass(wait - 1);
            assert_eq!(service.work(), 0, "a millisecond too early");
            service.pass(1);
        }
    }
    (service, id)
}

#[test]
fn the_third_failure_is_waited_out_for_four_hours_and_success_clears_it() {
    let (service, id) = thrice_failed();
    service.pass(4 * HOUR - 1);
    assert_eq!(service.work(), 0);
    service.pass(1);
    assert_eq!(service.work(), 1);
    let order = service.get(&id);
    assert_eq!(order.state(), OrderState::Active);
    assert_eq!(
        (order.issuance_attempts(), order.last_failure_ms()),
        (None, None)
    );
    assert_eq!(order.failure, None);
}

#[test]
fn a_forced_renewal_that_succeeds_clears_the_failures() {
    let (service, id) = thrice_failed();
    service.pass(10 * MINUTE);
    let order =
        orders::renew(&service.world, &id, "bob", &service.policies.retry).expect("renewed");
    assert_eq!(order.issuance_attempts(), Some(3), "only success clears it");
    assert_eq!(order.reason, "renewed by bob");
    assert_eq!(service.work(), 1);
    let order = service.get(&id);
    assert_eq!(order.state(), OrderState::Active);
    assert_eq!(order.issuance_attempts(), None);
}

#[test]
fn a_forced_renewal_that_fails_goes_on_with_eight_hours() {
    let (service, id) = thrice_failed();
    service.pass(10 * MINUTE);
    orders::renew(&service.world, &id, "bob", &service.policies.retry).expect("renewed");
    service.next_is_refused();
    assert_eq!(service.work(), 1);
    let order = service.get(&id);
    assert_eq!(order.issuance_attempts(), Some(4));
    assert_eq!(order.next_attempt_ms(), Some(service.now() + 8 * HOUR));
    let explained = orders::explain(
        &service.world,
        &id,
        &service.policies.retry,
        service.now() + 48 * HOUR,
    )
    .expect("an explanation");
    let (text, at_ms) = explained.steps.last().expect("a step");
    assert!(text.contains("failure 4 in a row (refused)"), "{text}");
    assert_eq!(*at_ms, service.now() + 8 * HOUR);
    // 8 h, then 16 h and 32 h after it, of which the last is beyond two days.
    let times = [8 * HOUR, 24 * HOUR].map(|after| service.now() + after);
    assert_eq!(explained.forecast, times.map(|time| (time, time)));
}

#[test]
fn overdue_orders_are_spread_when_the_service_starts() {
    let mut service = Service::new();
    let ids: Vec<_> = (0..50).map(|_| service.order()).collect();
    for _ in &ids {
        service.next_is_refused();
    }
    assert_eq!(service.work(), 50);
    // Down for a night.
    service.pass(9 * HOUR);
    service.started_ms = service.now();
    let sent = service.world.sent().len();
    let batch = service.claim("w1");
    assert_eq!((batch.work.len(), batch.spread), (0, 50));
    // A tenth of a second for each of fifty.
    let dues: Vec<_> = ids
        .iter()
        .map(|id| service.due(id).expect("a task"))
        .collect();
    assert!(
        dues.iter()
            .all(|due| (service.now()..=service.now() + 5 * SECOND).contains(due))
    );
    assert_eq!(service.world.sent().len(), sent);
    service.pass(5 * SECOND);
    assert_eq!(service.work(), 50);
}

#[test]
fn before_its_time_nothing_runs_after_a_restart() {
    let mut service = Service::new();
    let id = service.order();
    service.next_is_refused();
    service.work();
    service.pass(HOUR - 1);
    service.started_ms = service.now();
    assert_eq!(service.work(), 0);
    service.pass(1);
    assert_eq!(service.work(), 1);
    assert_eq!(service.get(&id).state(), OrderState::Active);
}

#[test]
fn the_same_wish_under_the_same_key_is_the_same_order() {
    let service = Service::new();
    let wish = Wish {
        key: Some("deploy-7".into()),
        ..service.wish()
    };
    let (first, is_new) = orders::create(&service.world, wish.clone(), None).expect("an order");
    assert!(is_new);
    let (second, is_new) = orders::create(&service.world, wish.clone(), None).expect("the order");
    assert_eq!((second.id, is_new), (first.id.clone(), false));
    let other = Wish {
        account: "test".into(),
        ..wish.clone()
    };
    let refused = orders::create(&service.world, other, None).map(|(order, _)| order.id);
    assert_eq!(refused, Err(OrderError::KeyReused(first.id.clone())));
    let of_another = Wish {
        principal: "bob".into(),
        ..wish
    };
    let (theirs, is_new) = orders::create(&service.world, of_another, None).expect("an order");
    assert!(is_new);
    assert_ne!(theirs.id, first.id);
}

#[test]
fn what_cannot_be_served_is_refused_and_nothing_is_stored() {
    let service = Service::new();
    let subject = |subject: &str, sans: Vec<String>| {
        Request::Subject(Subject {
            subject: subject.into(),
            sans,
            key: KeyKind::EcP256,
            rotate: false,
        })
    };
    let with = |request| Wish {
        request,
        ..service.wish()
    };
    for (wish, begin) in [
        (
            with(Request::Csr(vec![0x30; 1 << 20].into())),
            "csr: it has 1048576 octets",
        ),
        (with(Request::Csr(vec![0x30, 0].into())), "csr: "),
        (with(subject("", vec![])), "subject: "),
        (with(subject("no equals sign", vec![])), "subject: "),
        (
            with(subject("CN=a", vec!["DNS:a".into(); 10_000])),
            "sans: there are 10000",
        ),
        (with(subject("CN=a", vec!["IP:nowhere".into()])), "sans: "),
        (
            Wish {
                account: "a\u{1b}[2J".into(),
                ..service.wish()
            },
            "account: it holds a control character",
        ),
        (
            Wish {
                issuer: String::new(),
                ..service.wish()
            },
            "issuer: it is empty",
        ),
    ] {
        match orders::create(&service.world, wish, None) {
            Err(OrderError::Invalid(why)) => assert!(why.starts_with(begin), "{why}"),
            other => panic!("{begin}: {other:?}"),
        }
    }
    assert!(service.world.stored().is_empty());
}

#[test]
fn a_death_at_any_moment_leaves_one_certificate() {
    let moments = {
        let service = Service::new();
        service.order();
        service.world.moments.set(0);
        service.work();
        service.world.moments.get()
    };
    assert!(moments > 20);
    for moment in 0..moments {
        let service = Service::new();
        let id = service.order();
        service.world.moments.set(0);
        service.world.dies_at.set(Some(moment));
        let died = std::panic::catch_unwind(AssertUnwindSafe(|| service.work()))
            .expect_err("a process that dies");
        assert!(died.is::<Died>());
        service.world.dies_at.set(None);
        // The lease of the dead worker is over, and so is a wait for an answer.
        for _ in 0..4 {
            service.pass(LEASE + 5 * MINUTE);
            service.work();
        }
        let order = service.get(&id);
        assert_eq!(
            order.state(),
            OrderState::Active,
            "moment {moment}: {}",
            order.reason
        );
        assert_eq!(service.world.ca.issued.borrow().len(), 1, "moment {moment}");
        assert_eq!(order.issuance_attempts(), None);
    }
}

#[test]
fn who_sleeps_through_a_lease_writes_and_sends_nothing() {
    let service = Service::new();
    let id = service.order();
    let first = service.claim("w1").work;
    assert_eq!(service.claim("w2").work, [], "it is held");
    service.pass(LEASE);
    let second = service.claim("w2").work;
    assert!(second[0].token > first[0].token);
    assert_eq!(second[0].retry_count, 1, "the first worker never came back");
    assert!(matches!(service.run(&first[0]), Ran::Fenced(_)));
    assert_eq!(service.world.sent(), [[0; 0]; 0]);
    assert!(matches!(service.run(&second[0]), Ran::Done(_)));
    // Also after the other one has finished.
    let before = service.get(&id).revision;
    assert!(matches!(service.run(&first[0]), Ran::Fenced(_)));
    assert_eq!(service.get(&id).revision, before);
    assert_eq!(service.world.ca.issued.borrow().len(), 1);
}

#[test]
fn who_sleeps_in_the_middle_of_an_exchange_writes_nothing_after_it() {
    let service = std::rc::Rc::new(Service::new());
    let id = service.order();
    let first = service.claim("w1").work;
    // While the answer is on its way the lease ends, and another worker comes to the end.
    let other = std::rc::Rc::clone(&service);
    service.world.next(move |ca, request| {
        let answer = ca.answer(request);
        other.pass(LEASE);
        let work = other.claim("w2").work;
        assert_eq!(work.len(), 1);
        assert!(matches!(other.run(&work[0]), Ran::Done(_)));
        Ok(crate::world::ok(answer))
    });
    assert!(matches!(service.run(&first[0]), Ran::Fenced(_)));
    let order = service.get(&id);
    assert_eq!(order.state(), OrderState::Active, "{}", order.reason);
    assert_eq!(service.world.ca.issued.borrow().len(), 1);
    assert_eq!(service.world.ca.confirmed.get(), 1);
}

#[test]
fn leases_are_prolonged_and_handed_back() {
    let service = Service::new();
    service.order();
    let work = service.claim("w1").work;
    service.pass(LEASE - 1);
    let scheduler = &service.policies.scheduler;
    assert_eq!(
        schedule::renew(&service.world, work.clone(), scheduler),
        Ok(vec![])
    );
    service.pass(LEASE - 1);
    assert_eq!(service.claim("w2").work, []);
    schedule::release(&service.world, &work).expect("released");
    let theirs = service.claim("w2").work;
    assert_eq!(theirs.len(), 1);
    assert_eq!(theirs[0].retry_count, 0, "it was handed back, not lost");
    let lost = schedule::renew(&service.world, work.clone(), scheduler);
    assert_eq!(lost, Ok(work));
}

#[test]
fn a_task_that_cannot_be_read_is_a_dead_letter_and_blocks_nobody() {
    let service = Service::new();
    let poisoned = service.order();
    let others: Vec<_> = (0..3).map(|_| service.order()).collect();
    service.world.damage("task", &poisoned);
    let batch = service.claim("w1");
    assert_eq!(batch.dead, std::slice::from_ref(&poisoned));
    assert_eq!(batch.work.len(), 3);
    for work in &batch.work {
        service.run(work);
    }
    assert!(
        others
            .iter()
            .all(|id| service.get(id).state() == OrderState::Active)
    );
    let (dead, _) = schedule::tasks(&service.world, true, None, 10).expect("dead letters");
    assert_eq!(dead.len(), 1);
    assert_eq!(dead[0].order, poisoned);
    assert!(dead[0].reason.contains("damaged"), "{}", dead[0].reason);
    assert_eq!(service.get(&poisoned).state(), OrderState::Error);

    let task = schedule::replay(&service.world, &poisoned).expect("replayed");
    assert_eq!(task.retry_count, 0);
    assert_eq!(service.work(), 1);
    assert_eq!(service.get(&poisoned).state(), OrderState::Active);
    let (dead, _) = schedule::tasks(&service.world, true, None, 10).expect("dead letters");
    assert!(dead.is_empty());
}

#[test]
fn a_task_that_kills_its_workers_is_a_dead_letter_in_the_end() {
    let service = Service::new();
    let id = service.order();
    let mut claims = 0;
    loop {
        let batch = service.claim("w1");
        if batch.dead == std::slice::from_ref(&id) {
            break;
        }
        assert_eq!(batch.work.len(), 1);
        claims += 1;
        service.pass(LEASE);
    }
    // Ten retries after the first try.
    assert_eq!(claims, 11);
    let reason = service.get(&id).reason;
    assert!(reason.contains("its worker never came back"), "{reason}");
}

#[test]
fn a_canceled_order_keeps_the_certificate_that_is_under_way() {
    let service = Service::new();
    service.world.ca.patience.set(1);
    let id = service.order();
    service.work();
    assert_eq!(service.get(&id).state(), OrderState::Running);
    let order = orders::cancel(&service.world, &id, "bob", "no longer needed").expect("canceled");
    assert_eq!(order.reason, "canceled by bob: no longer needed");
    let again = orders::cancel(&service.world, &id, "eve", "").expect("canceled already");
    assert_eq!(
        (again.revision, again.reason),
        (order.revision, order.reason)
    );
    service.pass(HOUR / 2);
    service.work();
    let order = service.get(&id);
    assert_eq!(order.state(), OrderState::Canceled);
    assert!(!order.chain.is_empty(), "it was issued, and is not lost");
    assert_eq!(service.world.ca.confirmed.get(), 1);
    assert_eq!(service.due(&id), None);
}

#[test]
fn a_canceled_order_that_was_not_begun_never_is() {
    let service = Service::new();
    let id = service.order();
    orders::cancel(&service.world, &id, "", "").expect("canceled");
    service.pass(DAY);
    assert_eq!(service.work(), 0);
    assert_eq!(service.world.sent(), [[0; 0]; 0]);
    let refused = orders::renew(&service.world, &id, "", &service.policies.retry);
    assert!(matches!(refused, Err(OrderError::State(_))));
}

/// A worker holds the task, and has not begun yet.
#[test]
fn what_a_worker_holds_can_be_canceled_and_renewed() {
    let service = Service::new();
    let id = service.order();
    let work = service.claim("w1").work;
    let order = orders::renew(&service.world, &id, "bob", &service.policies.retry);
    assert_eq!(order.map(|order| order.reason), Ok("renewed by bob".into()));
    let order = orders::cancel(&service.world, &id, "bob", "").expect("canceled");
    assert_eq!(order.state(), OrderState::Canceled);
    assert!(matches!(service.run(&work[0]), Ran::Done(_)));
    assert_eq!(service.get(&id).state(), OrderState::Canceled);
    assert_eq!(service.world.sent(), [[0; 0]; 0]);
    assert_eq!(service.due(&id), None);
}

#[test]
fn an_issuer_that_is_gone_stops_the_order_until_it_is_renewed_by_hand() {
    let service = Service::new();
    let id = service.order();
    let work = service.claim("w1").work;
    let ran = schedule::run(&service.world, &work[0], None, &service.policies).expect("a task");
    assert!(matches!(ran, Ran::Done(_)));
    let order = service.get(&id);
    assert_eq!(order.state(), OrderState::Error);
    assert_eq!(order.reason, "the configuration has no issuer ca");
    assert_eq!((order.next_attempt_ms(), service.due(&id)), (None, None));
    service.pass(30 * DAY);
    assert_eq!(service.work(), 0);
    orders::renew(&service.world, &id, "", &service.policies.retry).expect("renewed");
    assert_eq!(service.work(), 1);
    assert_eq!(service.get(&id).state(), OrderState::Active);
}

#[test]
fn an_endpoint_that_asks_for_less_is_spared_by_all_orders() {
    let service = Service::new();
    let first = service.order();
    service.world.next(busy);
    service.work();
    let order = service.get(&first);
    assert_eq!(
        order.state(),
        OrderState::Running,
        "the same request is sent again"
    );
    assert_eq!(order.issuance_attempts(), None);
    let second = service.order();
    let batch = service.claim("w1");
    assert_eq!(batch.work.len(), 1);
    match service.run(&batch.work[0]) {
        // Ninety seconds, and up to a tenth more by chance.
        Ran::Postponed(at_ms) => {
            let after = at_ms - service.now();
            assert!((90 * SECOND..=99 * SECOND).contains(&after), "{after}");
        }
        other => panic!("{other:?}"),
    }
    assert_eq!(service.world.sent().len(), 1);
    service.pass(100 * SECOND);
    service.work();
    assert_eq!(service.get(&first).state(), OrderState::Active);
    assert_eq!(service.get(&second).state(), OrderState::Active);
}

#[test]
fn a_certificate_of_an_hour_that_fails_once_gets_another_try() {
    let service = Service::new();
    service.issues("260601000000Z", "260601010000Z");
    let id = service.order();
    service.work();
    assert_eq!(service.get(&id).renewal_ms, Some(START_MS + 40 * MINUTE));
    service.pass(40 * MINUTE);
    service.next_is_refused();
    service.work();
    let order = service.get(&id);
    assert_eq!(order.issuance_attempts(), Some(1));
    let next = order.next_attempt_ms().expect("another try");
    assert!(next < START_MS + HOUR, "{}", next - START_MS);
    assert!(!order.chain.is_empty(), "the one in use stays");
    service.issues("260601004000Z", "260601014000Z");
    service.world.now_ms.set(next);
    service.work();
    let order = service.get(&id);
    assert_eq!(order.state(), OrderState::Active);
    assert_eq!(order.not_after_ms, Some(START_MS + 100 * MINUTE));
}

#[test]
fn a_ca_that_issues_expired_certificates_is_asked_by_the_policy() {
    let service = Service::new();
    service.issues("250101000000Z", "250102000000Z");
    let id = service.order();
    // 0, 1, 3, 7, 15, 31, 63, 95, 127 and 159 hours after the first; 191 is the eighth day.
    let attempts = service.live(START_MS + 7 * DAY);
    let hours: Vec<_> = attempts.iter().map(|at| (at - START_MS) / HOUR).collect();
    assert_eq!(hours, [0, 1, 3, 7, 15, 31, 63, 95, 127, 159]);
    let order = service.get(&id);
    assert_eq!(order.state(), OrderState::Error);
    assert_eq!(order.chain.len(), 0);
}

#[test]
fn a_ca_that_is_down_for_two_hours_each_day_is_recovered_from() {
    let service = Service::new();
    // Certificates of 36 hours from 16:00 on, which are renewed after 24 hours.
    service.issues("260531160000Z", "260602040000Z");
    service.order();
    for day in 1..=30 {
        let begin = START_MS + (day - 1) * DAY;
        // Down from 15:30 to 17:30, while the renewal becomes due.
        service.live(begin + 15 * HOUR + 30 * MINUTE);
        let before = service.world.sent().len();
        service.world.is_down.set(true);
        service.live(begin + 17 * HOUR + 30 * MINUTE);
        service.world.is_down.set(false);
        let during = service.world.sent().len() - before;
        // 5, 10, 20, 40, 80 and 160 seconds, then every four minutes for the rest of the hour
        // that a transaction lasts, and that is at most an hour before the end of the outage.
        assert!((1..=32).contains(&during), "day {day}: {during} messages");
        let issued = service.world.ca.issued.borrow().len();
        let date = |day: u64| if day > 30 { 700 + day - 30 } else { 600 + day };
        service.issues(
            &format!("26{:04}160000Z", date(day)),
            &format!("26{:04}040000Z", date(day + 2)),
        );
        // The cap of what is waited after one failure is an hour.
        service.live(begin + 18 * HOUR + 30 * MINUTE);
        let now_issued = service.world.ca.issued.borrow().len();
        assert_eq!(now_issued, issued + 1, "day {day}");
    }
}

#[test]
fn a_fleet_that_comes_back_after_a_failure_of_all_keeps_to_the_budget() {
    const ORDERS: usize = 1000;
    let mut service = Service::new();
    service.world.refuses_all.set(true);
    for _ in 0..ORDERS {
        service.order();
    }
    while service.work() > 0 {}
    assert_eq!(service.world.sent_count(), ORDERS, "a first attempt each");
    // Killed, and started again long after the hour that each of them waits.
    service.pass(3 * HOUR);
    service.started_ms = service.now();
    let begin = service.now();
    let before = service.world.sent_count();
    while service.now() < begin + HOUR {
        let batch = service.claim("w1");
        for work in &batch.work {
            assert!(work.due_ms <= service.now(), "before its time");
            service.run(work);
        }
        // A hundred in the bucket, and one more every six seconds.
        let allowed = 100 + (service.now() - begin) / (6 * SECOND);
        let sent = (service.world.sent_count() - before) as u64;
        assert!(sent <= allowed, "{sent} of {allowed}");
        if batch.next_look_ms > service.now() {
            service.pass(5 * SECOND);
        }
    }
    let sent = service.world.sent_count() - before;
    assert!(sent > 600, "the budget of an hour is used: {sent}");
    let (tasks, _) = schedule::tasks(&service.world, false, None, u32::MAX).expect("tasks");
    assert_eq!(tasks.len(), 500, "a page of them");
    assert_eq!(
        service.world.count_of("task"),
        ORDERS,
        "each order has its next step"
    );
}
