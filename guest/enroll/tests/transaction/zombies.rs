//! Orders that lost their task: found, brought back, ended by force.
//!
//! The cutoff is the ten minutes of Spinnaker's runbook.

use std::panic::AssertUnwindSafe;

use abide_cmp::BodyType;
use abide_enroll::orders::{self, OrderError};
use abide_enroll::schedule::{self, Ran};
use abide_enroll::zombies::{self, Hydrated, Search, Span, Wanted, Zombie};
use abide_policy::order::OrderState;
use abide_policy::zombie::{Refusal, TaskKind};

use crate::orders::Service;
use crate::world::{Died, HOUR, MINUTE, SECOND, START_MS, body_type};

const CUTOFF: u64 = 10 * MINUTE;

fn found(service: &Service) -> Vec<Zombie> {
    let search = Search::default();
    let (found, next) = zombies::find(&service.world, &search, None, None, 100).expect("a search");
    assert_eq!(next, None);
    found
}

fn hydrate(service: &Service, id: &str, dry_run: bool, force: bool) -> Hydrated {
    let wanted = Wanted {
        dry_run,
        force,
        by: "bob",
    };
    zombies::hydrate(&service.world, &Search::default(), id, &wanted).expect("an answer")
}

/// An order that the CA lets wait, which lost its task, and the time of the poll that was due.
fn polling() -> (Service, String, u64) {
    let service = Service::new();
    service.world.ca.patience.set(1);
    let id = service.order();
    service.work();
    let due = service.due(&id).expect("a poll");
    service.world.lose("task", &id);
    (service, id, due)
}

#[test]
fn an_order_that_lost_its_task_is_found_after_the_cutoff_and_not_before() {
    let (service, id, _) = polling();
    service.pass(CUTOFF - 1);
    assert_eq!(found(&service), []);
    service.pass(1);
    let zombies = found(&service);
    assert_eq!(zombies.len(), 1);
    assert_eq!(
        zombies[0].line(),
        format!(
            "Found zombie id={id} account=prod application=web state=RUNNING: no task and no \
             progress for 10 min"
        )
    );
    assert_eq!(zombies[0].last_progress_ms, START_MS);
}

#[test]
fn a_long_quiet_wait_with_a_task_is_no_zombie() {
    let service = Service::new();
    service.world.ca.patience.set(1);
    service.order();
    service.work();
    service.pass(100 * HOUR);
    assert_eq!(found(&service), []);
}

#[test]
fn an_order_that_was_never_begun_and_lost_its_task_is_one() {
    let service = Service::new();
    let id = service.order();
    service.world.lose("task", &id);
    service.pass(CUTOFF);
    assert_eq!(found(&service)[0].state, OrderState::NotStarted);
    let plan = hydrate(&service, &id, false, false);
    assert!(plan.applied);
    assert_eq!(service.work(), 1);
    assert_eq!(service.get(&id).state(), OrderState::Active);
}

#[test]
fn a_renewal_that_lost_its_task_is_one_and_comes_at_its_time() {
    let service = Service::new();
    let id = service.order();
    service.work();
    let renewal = service.get(&id).renewal_ms.expect("a renewal");
    service.world.lose("task", &id);
    service.pass(CUTOFF);
    assert_eq!(found(&service)[0].state, OrderState::Active);
    assert!(hydrate(&service, &id, false, false).applied);
    assert_eq!(service.due(&id), Some(renewal));
}

#[test]
fn an_order_at_rest_needs_no_task() {
    let service = Service::new();
    let id = service.order();
    orders::cancel(&service.world, &id, "", "").expect("canceled");
    service.pass(CUTOFF);
    assert_eq!(found(&service), []);
    let plan = hydrate(&service, &id, false, false).plan;
    assert_eq!(plan.refused, Some(Refusal::AtRest));
}

#[test]
fn a_dry_run_changes_nothing_and_says_what_applying_does() {
    let (service, id, due) = polling();
    service.pass(CUTOFF);
    let before = service.world.stored();
    let dry = hydrate(&service, &id, true, false);
    assert_eq!(service.world.stored(), before);
    assert!(!dry.applied);
    assert!(dry.plan.can_apply);
    let message = dry.plan.actions[0].message.expect("a task");
    assert_eq!(message.kind, TaskKind::Poll);
    assert_eq!(message.retry_at_ms, due.max(service.now()));

    let done = hydrate(&service, &id, false, false);
    assert!(done.applied);
    assert_eq!(done.plan.actions, dry.plan.actions);
    assert_eq!(service.due(&id), Some(message.retry_at_ms));
    assert_eq!(found(&service), []);
}

#[test]
fn applying_twice_runs_once() {
    let (service, id, _) = polling();
    service.pass(CUTOFF);
    assert!(hydrate(&service, &id, false, false).applied);
    let again = hydrate(&service, &id, false, false);
    assert!(!again.applied);
    assert_eq!(again.plan.refused, Some(Refusal::Alive));
    assert_eq!(service.world.count_of("task"), 1);
    service.pass(HOUR / 4);
    service.work();
    assert_eq!(service.get(&id).state(), OrderState::Active);
    assert_eq!(service.world.ca.issued.borrow().len(), 1);
}

#[test]
fn a_request_without_an_answer_is_sent_again_under_its_own_transaction_id() {
    let service = Service::new();
    service.world.next_is_lost();
    let id = service.order();
    service.work();
    service.world.lose("task", &id);
    service.pass(CUTOFF);
    let plan = hydrate(&service, &id, false, false).plan;
    assert_eq!(
        plan.actions[0].message.map(|m| m.kind),
        Some(TaskKind::Resume)
    );
    service.work();
    let sent = service.world.sent();
    assert_eq!(body_type(&sent[0]), BodyType::Ir);
    assert_eq!(sent[1], sent[0], "octet for octet");
    let transaction = service.world.record().id();
    assert_eq!(
        plan.actions[0].context,
        [("transactionID".to_owned(), transaction)]
    );
    assert_eq!(service.get(&id).state(), OrderState::Active);
    assert_eq!(service.world.ca.issued.borrow().len(), 1);
}

#[test]
fn one_part_that_cannot_be_brought_back_leaves_the_whole_order() {
    let (service, id, _) = polling();
    // A poll that could be sent again, beside a dead letter that must not be.
    service.world.next_says(|ca, request| ca.answer(request));
    let other = service.order();
    service.world.damage("task", &other);
    let batch = service.claim("w1");
    assert_eq!(batch.dead, [other]);
    service.pass(CUTOFF);
    let (dead, _) = schedule::tasks(&service.world, true, None, 10).expect("dead letters");
    service.world.rename("dead-letter", &dead[0].order, &id);
    let before = service.world.stored();
    let plan = hydrate(&service, &id, false, false);
    assert_eq!(plan.plan.actions.len(), 2);
    assert!(plan.plan.actions[0].message.is_some());
    assert_eq!(plan.plan.actions[1].message, None);
    assert!(!plan.plan.can_apply);
    assert!(!plan.applied);
    assert_eq!(service.world.stored(), before);
}

#[test]
fn what_cannot_be_read_is_found_and_left() {
    let (service, id, _) = polling();
    service.world.damage("standing-order", &id);
    service.pass(CUTOFF);
    assert_eq!(found(&service)[0].order, id);
    let plan = hydrate(&service, &id, false, false);
    assert!(!plan.plan.can_apply && !plan.applied);
    let text = &plan.plan.actions[0].description;
    assert!(text.contains("cannot be read"), "{text}");
}

#[test]
fn an_order_that_lives_is_refused_unless_it_is_forced() {
    let service = Service::new();
    service.world.ca.patience.set(1);
    let id = service.order();
    service.work();
    let refused = hydrate(&service, &id, false, false);
    assert_eq!(refused.plan.refused, Some(Refusal::Alive));
    let due = service.due(&id);
    let forced = hydrate(&service, &id, false, true);
    assert!(forced.applied);
    assert_eq!(service.due(&id), due, "the CA named that time");
}

#[test]
fn both_ends_of_a_range_belong_to_it() {
    let service = Service::new();
    let mut ids = Vec::new();
    for _ in 0..4 {
        let id = service.order();
        service.world.lose("task", &id);
        ids.push(id);
        service.pass(SECOND);
    }
    service.pass(CUTOFF);
    let span = Span {
        from_ms: START_MS + SECOND,
        to_ms: START_MS + 2 * SECOND,
    };
    let search = Search::default();
    let (found, _) =
        zombies::find(&service.world, &search, Some(span), None, 100).expect("a search");
    let found: Vec<_> = found.into_iter().map(|zombie| zombie.order).collect();
    assert_eq!(found, ids[1..3]);
}

#[test]
fn pages_find_all_of_them() {
    let service = Service::new();
    let ids: Vec<_> = (0..7).map(|_| service.order()).collect();
    for id in ids.iter().step_by(2) {
        service.world.lose("task", id);
    }
    service.pass(CUTOFF);
    let (mut all, mut cursor) = (Vec::new(), None);
    loop {
        let search = Search::default();
        let (page, next) =
            zombies::find(&service.world, &search, None, cursor.as_deref(), 2).expect("a search");
        all.extend(page.into_iter().map(|zombie| zombie.order));
        cursor = next;
        if cursor.is_none() {
            break;
        }
    }
    let mut expected: Vec<_> = ids.iter().step_by(2).cloned().collect();
    expected.sort();
    assert_eq!(all, expected);
}

#[test]
fn force_ends_a_poll_and_declares_its_orphan() {
    let service = Service::new();
    service.world.ca.patience.set(1);
    let id = service.order();
    service.work();
    service.pass(HOUR / 4);
    // A worker is at it, and asleep.
    let held = service.claim("w1").work;
    assert_eq!(held.len(), 1);
    let order = zombies::force_cancel(&service.world, &id, "bob", "stuck").expect("canceled");
    assert_eq!(order.state(), OrderState::Canceled);
    assert_eq!(order.reason, "canceled by force by bob: stuck");
    assert_eq!(service.due(&id), None);
    let sent = service.world.sent().len();
    assert!(matches!(service.run(&held[0]), Ran::Fenced(_)));
    assert_eq!(service.world.sent().len(), sent);
    let record = service.world.record();
    assert!(!record.phase.is_open());
    assert!(record.failure.expect("a failure").orphan);

    let again = zombies::force_cancel(&service.world, &id, "eve", "").expect("canceled already");
    assert_eq!(
        (again.revision, again.reason),
        (order.revision, order.reason)
    );
    service.pass(24 * HOUR);
    assert_eq!(service.work(), 0);
}

#[test]
fn force_keeps_what_is_issued() {
    let service = Service::new();
    service.world.next_is_answered();
    service.world.next_is_lost();
    let id = service.order();
    service.work();
    assert_eq!(
        service.get(&id).state(),
        OrderState::Running,
        "not confirmed yet"
    );
    let order = zombies::force_cancel(&service.world, &id, "", "").expect("canceled");
    assert_eq!(order.state(), OrderState::Canceled);
    assert!(!order.chain.is_empty());
    assert_eq!(order.reason, "canceled by force by hand");
}

#[test]
fn a_death_while_canceling_leaves_all_or_nothing() {
    for moment in 0.. {
        let service = Service::new();
        service.world.ca.patience.set(1);
        let id = service.order();
        service.work();
        service.world.moments.set(0);
        service.world.dies_at.set(Some(moment));
        let result = std::panic::catch_unwind(AssertUnwindSafe(|| {
            zombies::force_cancel(&service.world, &id, "bob", "")
        }));
        service.world.dies_at.set(None);
        let order = service.get(&id);
        let is_open = service.world.record().phase.is_open();
        match order.state() {
            OrderState::Canceled => assert!(!is_open && service.due(&id).is_none()),
            state => {
                assert_eq!(state, OrderState::Running);
                assert!(is_open && service.due(&id).is_some());
            }
        }
        match result {
            Ok(done) => {
                assert_eq!(done.map(|order| order.state()), Ok(OrderState::Canceled));
                assert!(moment > 4);
                return;
            }
            Err(died) => assert!(died.is::<Died>()),
        }
    }
}

#[test]
fn an_order_that_is_not_there_is_not_found() {
    let service = Service::new();
    let wanted = Wanted {
        dry_run: false,
        force: true,
        by: "",
    };
    let search = Search::default();
    assert_eq!(
        zombies::hydrate(&service.world, &search, "none", &wanted),
        Err(OrderError::NotFound)
    );
    let refused = zombies::force_cancel(&service.world, "none", "", "");
    assert!(matches!(refused, Err(OrderError::NotFound)));
}
