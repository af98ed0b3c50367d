//! What is not stored is not sent, and what is sent again is the same.

use abide_enroll::{Error, FailureClass, NetworkError, Operation, Outcome, Phase, Response};

use crate::world::{SECOND, START_MS, World, issued, ok, waits};

#[test]
fn an_enrollment_that_cannot_be_stored_is_not_sent() {
    let world = World::new(Operation::P10cr);
    world.store_fails.set(true);
    let error = world.begin().expect_err("no store, no transaction");
    assert_eq!(error, Error::Storage("the disk is full".into()));
    assert!(world.sent().is_empty());
    world.store_fails.set(false);
    assert_eq!(
        world.resume().expect_err("nothing is stored"),
        Error::NotFound
    );
}

#[test]
fn a_repetition_that_cannot_be_stored_is_not_sent() {
    let world = World::new(Operation::P10cr);
    world.next_is_lost();
    let waiting = waits(world.begin().expect("a beginning"));
    world.now_ms.set(waiting.until_ms);
    world.store_fails.set(true);
    world.resume().expect_err("no store, no message");
    assert_eq!(world.sent_types(), ["p10cr"]);
}

#[test]
fn a_poll_that_cannot_be_stored_is_not_sent() {
    let world = World::new(Operation::P10cr);
    world.ca.patience.set(1);
    let waiting = waits(world.begin().expect("a beginning"));
    world.now_ms.set(waiting.until_ms);
    world.store_fails.set(true);
    world.resume().expect_err("no store, no message");
    assert_eq!(world.sent_types(), ["p10cr"]);
    world.store_fails.set(false);
    issued(world.to_the_end());
    assert_eq!(world.sent_types(), ["p10cr", "pollReq", "certConf"]);
}

/// The certificate came, but nobody could keep it: it is fetched again.
#[test]
fn a_chain_that_cannot_be_stored_is_not_confirmed() {
    let world = World::new(Operation::P10cr);
    world.next_is_lost();
    waits(world.begin().expect("a beginning"));
    let due = world.record().due_ms().expect("an open transaction");
    world.now_ms.set(due);
    let store_fails = world.store_fails.clone();
    world.next_says(move |ca, request| {
        store_fails.set(true);
        ca.answer(request)
    });
    world.resume().expect_err("no store, no certConf");
    assert_eq!(world.sent_types(), ["p10cr", "p10cr"]);
    assert_eq!(world.record().phase, Phase::Enrolling);

    world.store_fails.set(false);
    issued(world.to_the_end());
    assert_eq!(world.sent_types(), ["p10cr", "p10cr", "p10cr", "certConf"]);
    assert_eq!(world.ca.issued.borrow().len(), 1);
}

#[test]
fn passing_faults_double_the_wait_up_to_five_minutes_and_repeat_the_same_octets() {
    let faults: [fn() -> Result<Response, NetworkError>; 5] = [
        || Err(NetworkError::Unreachable("refused".into())),
        || Err(NetworkError::Timeout("30 s".into())),
        || Err(NetworkError::Interrupted("reset".into())),
        || Err(NetworkError::Tls("handshake".into())),
        || {
            Ok(Response {
                status: 503,
                content_type: Some("text/html".into()),
                ..ok(b"<html>".to_vec())
            })
        },
    ];
    for fault in faults {
        let world = World::new(Operation::P10cr);
        let mut progress = None;
        let mut waited = Vec::new();
        for _ in 0..8 {
            world.next(move |_, _| fault());
            let waiting = waits(match progress.take() {
                None => world.begin().expect("a beginning"),
                Some(()) => world.step(),
            });
            let failure = waiting.failure.expect("a failure that is waited out");
            assert_eq!(failure.class, FailureClass::Transient, "{failure:?}");
            waited.push((waiting.until_ms - world.now_ms.get()) / SECOND);
            progress = Some(());
        }
        assert_eq!(waited, [5, 10, 20, 40, 80, 160, 300, 300]);
        issued(world.step());
        let sent = world.sent();
        assert_eq!(sent.len(), 8 + 2);
        assert!(sent[..9].iter().all(|octets| *octets == sent[0]));
    }
}

#[test]
fn retry_after_is_heeded_within_the_bounds_for_polls() {
    for (asked, waited) in [(1, 10), (60, 60), (u64::MAX, 240)] {
        let world = World::new(Operation::P10cr);
        world.next(move |_, _| {
            Ok(Response {
                status: 503,
                content_type: None,
                retry_after: Some(asked),
                ..ok(Vec::new())
            })
        });
        let waiting = waits(world.begin().expect("a beginning"));
        assert_eq!(waiting.until_ms, START_MS + waited * SECOND, "{asked}");
    }
}

#[test]
fn an_answer_begins_the_doubling_anew() {
    let world = World::new(Operation::P10cr);
    world.ca.patience.set(2);
    world.next_is_lost();
    world.next_is_lost();
    world.next_is_answered();
    world.next_is_lost();
    waits(world.begin().expect("a beginning"));
    waits(world.step());
    waits(world.step());
    let waiting = waits(world.step());
    assert_eq!(world.sent_types(), ["p10cr", "p10cr", "p10cr", "pollReq"]);
    assert_eq!(waiting.until_ms, world.now_ms.get() + 5 * SECOND);
}

/// It certainly never arrived, so there is nothing to be careful about.
#[test]
fn begin_goes_on_with_a_request_that_never_left() {
    let world = World::new(Operation::P10cr);
    world.next(|_, _| Err(NetworkError::Unreachable("refused".into())));
    let first = world.begin().expect("a beginning");
    world.now_ms.set(START_MS + 5 * SECOND);
    let second = world.begin().expect("the same transaction");
    assert_eq!(first.transaction_id, second.transaction_id);
    assert!(matches!(second.outcome, Outcome::Issued(_)));
    assert_eq!(world.sent()[0], world.sent()[1]);
}

#[test]
fn begin_names_an_open_transaction_and_leaves_it_alone() {
    let world = World::new(Operation::P10cr);
    world.next_is_lost();
    let first = world.begin().expect("a beginning");
    world.now_ms.set(START_MS + 5 * SECOND);
    let error = world.begin().expect_err("it may have arrived");
    assert_eq!(error, Error::InProgress(first.transaction_id));
    assert_eq!(world.sent().len(), 1);
}
