//! Orders that wait, endpoints with a limit or a choice, and workers that share accounts out.

use abide_enroll::orders::{self, Admission, Issuer, OrderError};
use abide_enroll::schedule::{self, Ran, Share};
use abide_policy::order::OrderState;
use abide_policy::rate::RateLimit;
use abide_policy::shard::{Epoch, Sharding, View};

use crate::orders::Service;
use crate::world::SECOND;

fn buffered(service: &Service) -> String {
    let admission = Admission {
        buffered: true,
        reason: "101 active orders are more than 100".into(),
        notes: vec!["naive votes BUFFER".into()],
    };
    let created = orders::create(&service.world, service.wish(), Some(&admission));
    created.expect("an order").0.id
}

#[test]
fn who_waits_has_no_task_until_it_is_promoted_once() {
    let service = Service::new();
    let id = buffered(&service);
    let order = service.get(&id);
    assert_eq!(order.state(), OrderState::Buffered);
    assert_eq!(order.next_attempt_ms(), None);
    assert!(
        order
            .history
            .iter()
            .any(|line| line.text == "naive votes BUFFER")
    );
    assert_eq!(service.work(), 0);
    let renewed = orders::renew(&service.world, &id, "ops", &service.policies.retry);
    assert!(matches!(renewed, Err(OrderError::State(_))), "{renewed:?}");

    service.pass(5 * SECOND);
    let promote = || orders::promote(&service.world, &id, "the oldest").expect("an order");
    let (order, first) = promote();
    assert_eq!((order.state(), first), (OrderState::NotStarted, true));
    let (order, second) = promote();
    assert_eq!((order.state(), second), (OrderState::NotStarted, false));
    assert_eq!(service.work(), 1);
    assert_eq!(service.get(&id).state(), OrderState::Active);
    assert!(!promote().1);
    assert_eq!(service.requests(), 1);
}

#[test]
fn a_promotion_and_a_cancellation_do_not_both_win() {
    let service = Service::new();
    let id = buffered(&service);
    orders::cancel(&service.world, &id, "ops", "").expect("an order");
    let (order, promoted) = orders::promote(&service.world, &id, "").expect("an order");
    assert_eq!((order.state(), promoted), (OrderState::Canceled, false));
    assert_eq!(service.work(), 0);
}

#[test]
fn lines_of_a_history_are_bounded() {
    let service = Service::new();
    for (reason, notes) in [
        ("x".repeat(1025), vec![]),
        ("two\nlines".to_owned(), vec![]),
        (String::new(), vec![String::new(); 41]),
        (String::new(), vec!["x".repeat(1025)]),
    ] {
        let admission = Admission {
            buffered: true,
            reason,
            notes,
        };
        let refused = orders::create(&service.world, service.wish(), Some(&admission));
        assert!(
            matches!(refused, Err(OrderError::Invalid(_))),
            "{refused:?}"
        );
    }
}

/// Two messages in ten seconds: a request and its confirmation. The next order waits for both to
/// be given back, ten seconds by GCRA.
#[test]
fn an_endpoint_without_room_postpones_and_changes_nothing_else() {
    let mut service = Service::new();
    service.policies.outgoing = RateLimit {
        enabled: true,
        learning: false,
        capacity: 2,
        rate_seconds: 10,
        ..RateLimit::default()
    };
    let first = service.order();
    assert_eq!(service.work(), 1);
    assert_eq!(service.get(&first).state(), OrderState::Active);
    let second = service.order();
    let batch = service.claim("w1");
    let Ran::Postponed(until_ms) = service.run(&batch.work[0]) else {
        panic!("there was no room");
    };
    let soon = service.now() + 10 * SECOND;
    assert!(
        (soon..=soon + 10 * SECOND).contains(&until_ms),
        "{until_ms}"
    );
    let order = service.get(&second);
    assert_eq!(order.state(), OrderState::NotStarted);
    assert_eq!(order.issuance_attempts(), None);
    let line = &order.history.last().expect("a line").text;
    assert!(line.contains("the limit of 2 messages in 10 s"), "{line}");
    assert_eq!(service.requests(), 1);
    service.pass(until_ms - service.now());
    assert_eq!(service.work(), 1);
    assert_eq!(service.get(&second).state(), OrderState::Active);

    // Learnt from, nobody waits.
    service.policies.outgoing.learning = true;
    let third = service.order();
    service.work();
    assert_eq!(service.get(&third).state(), OrderState::Active);
}

#[test]
fn without_an_endpoint_an_order_stops() {
    let service = Service::new();
    let id = service.order();
    let nowhere = Issuer {
        server: String::new(),
        endpoints: vec!["http://ca.example/".into()],
        route: "endpoints[0]: account \"prod\" does not match".into(),
        ..service.issuer()
    };
    let batch = service.claim("w1");
    let ran = schedule::run(
        &service.world,
        &batch.work[0],
        Some(&nowhere),
        &service.policies,
    );
    assert!(matches!(ran, Ok(Ran::Done(_))), "{ran:?}");
    let order = service.get(&id);
    assert_eq!(order.state(), OrderState::Error);
    assert_eq!(order.next_attempt_ms(), None);
    assert!(order.reason.contains("does not match"), "{}", order.reason);
    assert_eq!(service.requests(), 0);
}

/// What a worker knows that has read a list of these workers long enough ago to act by it.
fn view(service: &Service, workers: &[&str]) -> String {
    let policy = Sharding {
        enabled: true,
        ..Sharding::default()
    };
    let epoch = Epoch {
        number: 1,
        workers: workers.iter().map(|&worker| worker.to_owned()).collect(),
    };
    let long_ago = service.now() - 120 * SECOND;
    let view = View::first(epoch.clone(), long_ago, long_ago);
    let now_ms = service.now();
    let view = view.read(&policy, epoch, now_ms, now_ms);
    serde_json::to_string(&(policy, view)).expect("JSON")
}

#[test]
fn a_worker_claims_what_is_its_own() {
    let service = Service::new();
    for number in 0..20 {
        let wish = orders::Wish {
            account: format!("account-{number}"),
            ..service.wish()
        };
        orders::create(&service.world, wish, None).expect("an order");
    }
    let claim = |worker: &str, excluded: Vec<String>| {
        let share = view(&service, &["w1", "w2"]);
        let share = Share::from_json(&share, excluded).expect("a view");
        let (policies, started_ms) = (&service.policies, service.started_ms);
        schedule::claim(
            &service.world,
            worker,
            100,
            started_ms,
            policies,
            Some(&share),
        )
        .expect("a claim")
    };
    // Who is not in the list has nothing.
    let stranger = claim("w3", Vec::new());
    assert_eq!((stranger.work.len(), stranger.foreign.len()), (0, 20));
    let first = claim("w1", Vec::new());
    assert_eq!(first.work.len() + first.foreign.len(), 20);
    assert!(!first.work.is_empty() && !first.foreign.is_empty());
    let others: Vec<String> = first
        .foreign
        .iter()
        .map(|(account, _)| account.clone())
        .collect();
    assert!(
        first
            .work
            .iter()
            .all(|work| !others.contains(&work.account))
    );
    // What it knows it does not touch again.
    let again = claim("w1", others.clone());
    assert_eq!((again.work.len(), again.foreign.len()), (0, 0));
    let second = claim("w2", Vec::new());
    let mut accounts: Vec<String> = second
        .work
        .iter()
        .map(|work| work.account.clone())
        .collect();
    accounts.sort();
    let mut others = others;
    others.sort();
    assert_eq!(accounts, others, "each account has one");
    let garbage = Share::from_json("[]", Vec::new());
    assert!(matches!(garbage, Err(OrderError::Invalid(_))));
}
