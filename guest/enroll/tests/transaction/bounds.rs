//! Ends: the deadline, the number of polls, a changed configuration, a clock set back.

use abide_enroll::{Confirmation, Credential, Error, FailureClass, NetworkError, Operation, Phase};

use crate::ca::poll_rep;
use crate::world::{HOUR, LIMITS, SECOND, START_MS, World, failed, issued, waits};

#[test]
fn the_deadline_leaves_an_orphan_where_the_ca_may_have_issued() {
    for lost in [true, false] {
        let world = World::new(Operation::P10cr);
        world.next(move |_, _| {
            Err(match lost {
                true => NetworkError::Timeout("30 s".into()),
                false => NetworkError::Unreachable("refused".into()),
            })
        });
        waits(world.begin().expect("a beginning"));
        world.now_ms.set(START_MS + HOUR);
        let failure = failed(world.resume().expect("an end"));
        assert_eq!(failure.class, FailureClass::Expired);
        assert_eq!(failure.orphan, lost);
        assert_eq!(world.sent().len(), 1, "nothing is sent after the deadline");
        assert_eq!(world.resume().expect_err("it is over"), Error::NotFound);
    }
}

#[test]
fn the_deadline_while_polling_leaves_an_orphan() {
    let world = World::new(Operation::P10cr);
    world.ca.patience.set(2);
    waits(world.begin().expect("a beginning"));
    world.now_ms.set(START_MS + HOUR);
    let failure = failed(world.resume().expect("an end"));
    assert_eq!(failure.class, FailureClass::Expired);
    assert!(failure.orphan);
}

#[test]
fn the_deadline_while_confirming_keeps_the_chain() {
    let world = World::new(Operation::P10cr);
    world.next_is_answered();
    world.next_is_lost();
    waits(world.begin().expect("a beginning"));
    world.now_ms.set(START_MS + HOUR);
    let kept = issued(world.resume().expect("the chain"));
    assert_eq!(kept.confirmation, Confirmation::Unacknowledged);
    assert_eq!(kept.chain, *world.ca.issued.borrow());
}

#[test]
fn no_wait_is_longer_than_the_deadline() {
    let world = World::new(Operation::P10cr);
    world.ca.patience.set(2);
    waits(world.begin().expect("a beginning"));
    world.now_ms.set(START_MS + HOUR - SECOND);
    world.next_says(|ca, request| ca.seal(&ca.reply(request), &poll_rep(&[(-1, 200)])));
    let waiting = waits(world.resume().expect("an open transaction"));
    assert_eq!(waiting.until_ms, START_MS + HOUR);
}

#[test]
fn so_many_polls_and_no_more() {
    let world = World::new(Operation::P10cr);
    world.ca.patience.set(100);
    waits(world.begin().expect("a beginning"));
    let failure = failed(world.to_the_end());
    assert_eq!(failure.class, FailureClass::Expired);
    assert!(failure.orphan);
    let polls = world
        .sent_types()
        .iter()
        .filter(|&&name| name == "pollReq")
        .count();
    assert_eq!(polls, LIMITS.maximum_polls as usize);
}

#[test]
fn nothing_is_sent_before_its_time() {
    let world = World::new(Operation::P10cr);
    world.ca.patience.set(1);
    let due = waits(world.begin().expect("a beginning")).until_ms;
    for now in [START_MS, START_MS + 1, due - 1] {
        world.now_ms.set(now);
        assert_eq!(waits(world.resume().expect("an open one")).until_ms, due);
        assert_eq!(world.sent_types(), ["p10cr"]);
    }
    world.now_ms.set(due);
    issued(world.resume().expect("the chain"));
}

#[test]
fn a_clock_that_is_set_back_makes_no_wait_longer() {
    let world = World::new(Operation::P10cr);
    world.ca.patience.set(1);
    waits(world.begin().expect("a beginning"));
    world.now_ms.set(START_MS - 24 * HOUR);
    issued(world.resume().expect("the chain"));
}

fn ends_unsent(world: &World) {
    let (sent, due) = (world.sent().len(), world.record().due_ms());
    world.now_ms.set(due.expect("an open transaction"));
    let failure = failed(world.resume().expect("an end"));
    assert_eq!(failure.class, FailureClass::Permanent);
    assert!(failure.orphan);
    assert_eq!(world.sent().len(), sent);
}

#[test]
fn another_secret_ends_an_open_transaction_before_it_is_used_on_a_message() {
    let world = World::new(Operation::P10cr);
    world.ca.patience.set(1);
    waits(world.begin().expect("a beginning"));
    world.secret.replace(b"another".to_vec());
    ends_unsent(&world);
}

#[test]
fn other_trusted_certificates_end_an_open_transaction() {
    let mut world = World::new(Operation::P10cr);
    world.ca.patience.set(1);
    waits(world.begin().expect("a beginning"));
    world.enrollment.trusted.clear();
    ends_unsent(&world);
}

#[test]
fn the_same_certificates_in_another_order_end_nothing() {
    let mut world = World::new(Operation::P10cr);
    let other = world.ca.issue();
    world.ca.issued.borrow_mut().clear();
    world.enrollment.trusted.push(other);
    world.ca.patience.set(1);
    waits(world.begin().expect("a beginning"));
    world.enrollment.trusted.reverse();
    issued(world.step());
}

/// The chain has been validated; what has changed since matters to the next order.
#[test]
fn a_changed_credential_while_confirming_keeps_the_chain() {
    let world = World::new(Operation::P10cr);
    world.next_is_answered();
    world.next_is_lost();
    waits(world.begin().expect("a beginning"));
    world.secret.replace(b"another".to_vec());
    let kept = issued(world.step());
    assert_eq!(kept.chain, *world.ca.issued.borrow());
    assert_eq!(world.sent_types(), ["p10cr", "certConf"]);
}

#[test]
fn an_issued_chain_is_returned_without_traffic_and_without_a_credential() {
    for operation in [Operation::P10cr, Operation::Ir] {
        let mut world = World::new(operation);
        let chain = issued(world.begin().expect("a beginning")).chain;
        let (sent, used) = (world.sent(), world.key_uses.get());
        if let Credential::Secret(secret) = &mut world.enrollment.credential {
            secret.key = "gone".into();
        }
        assert_eq!(issued(world.resume().expect("the chain")).chain, chain);
        assert_eq!(world.sent(), sent);
        assert_eq!(world.key_uses.get(), used);
        assert_eq!(world.record().phase, Phase::Issued);
    }
}
