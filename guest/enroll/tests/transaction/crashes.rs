//! The process dies at every moment of a whole exchange, before and after each call of
//! its host, and another one goes on.

use std::panic::{AssertUnwindSafe, catch_unwind};

use abide_enroll::{Confirmation, Error, Operation, Outcome, Phase, Progress};

use crate::world::{Died, World, issued};

/// An enrollment in one process, until it ends or dies.
pub(crate) fn one_process(world: &World) -> Option<Progress> {
    let work = || match world.begin() {
        Ok(_) => world.to_the_end(),
        Err(error) => panic!("it did not begin: {error:?}"),
    };
    match catch_unwind(AssertUnwindSafe(work)) {
        Ok(progress) => Some(progress),
        Err(cause) if cause.is::<Died>() => None,
        Err(cause) => std::panic::resume_unwind(cause),
    }
}

/// The process after the one that died: `--resume`, which begins where there is nothing.
pub(crate) fn next_process(world: &World) -> Progress {
    world.dies_at.set(None);
    let progress = match world.resume() {
        Err(Error::NotFound) => {
            assert!(world.sent().is_empty(), "something was sent and not stored");
            world.begin()
        }
        other => other,
    };
    let progress = progress.expect("a transaction to go on with");
    match progress.outcome {
        Outcome::Waiting(_) => world.to_the_end(),
        _ => progress,
    }
}

fn world(operation: Operation, dies_at: Option<u32>) -> World {
    let world = World::new(operation);
    world.ca.patience.set(2);
    world.dies_at.set(dies_at);
    world
}

/// How many moments there are, and that nothing goes wrong when nobody dies.
fn moments(operation: Operation) -> u32 {
    let world = world(operation, None);
    issued(one_process(&world).expect("nobody dies"));
    world.moments.get()
}

fn each_message_is_one(world: &World) {
    let sent = world.sent();
    for kind in ["p10cr", "ir", "certConf"] {
        let types = world.sent_types();
        let mut same = sent.iter().zip(&types).filter(|(_, name)| **name == kind);
        if let Some((first, _)) = same.next() {
            assert!(
                same.all(|(octets, _)| octets == first),
                "two kinds of {kind}"
            );
        }
    }
}

fn dies_everywhere(operation: Operation) {
    let moments = moments(operation);
    assert!(moments > 50, "{moments}");
    for moment in 0..moments {
        let world = world(operation, Some(moment));
        assert!(one_process(&world).is_none(), "it lived past {moment}");
        let issued = issued(next_process(&world));
        assert_eq!(world.ca.ids.borrow().len(), 1, "died at {moment}");
        assert_eq!(world.ca.issued.borrow().len(), 1, "died at {moment}");
        assert_eq!(world.ca.confirmed.get(), 1, "died at {moment}");
        assert_eq!(issued.chain, *world.ca.issued.borrow());
        assert_eq!(issued.confirmation, Confirmation::Confirmed);
        each_message_is_one(&world);
    }
}

#[test]
fn a_p10cr_ends_issued_wherever_it_dies() {
    dies_everywhere(Operation::P10cr);
}

#[test]
fn an_ir_ends_issued_wherever_it_dies() {
    dies_everywhere(Operation::Ir);
}

/// At a CA that refuses what it has seen, the end is the certificate or an orphan; what
/// it never is, is a second request.
#[test]
fn at_a_strict_ca_the_end_is_the_certificate_or_an_orphan() {
    let (mut certificates, mut orphans) = (0, 0);
    for moment in 0..moments(Operation::P10cr) {
        let world = world(Operation::P10cr, Some(moment));
        world.ca.strict.set(true);
        assert!(one_process(&world).is_none(), "it lived past {moment}");
        let progress = next_process(&world);
        match progress.outcome {
            Outcome::Issued(issued) => {
                certificates += 1;
                assert_eq!(issued.chain, *world.ca.issued.borrow());
            }
            Outcome::Failed(failure) => {
                orphans += 1;
                assert!(failure.orphan, "died at {moment}: {failure:?}");
            }
            other => panic!("died at {moment}: {other:?}"),
        }
        assert_eq!(world.ca.ids.borrow().len(), 1, "died at {moment}");
        assert!(world.ca.issued.borrow().len() <= 1, "died at {moment}");
        each_message_is_one(&world);
    }
    assert!(
        certificates > 0 && orphans > 0,
        "{certificates} and {orphans}"
    );
}

/// A process that dies again and again, a little later each time, gets there too.
#[test]
fn a_process_that_keeps_dying_ends_issued() {
    let world = world(Operation::P10cr, None);
    let mut lived = 0;
    for life in 5.. {
        world.dies_at.set(Some(world.moments.get() + life));
        let work = || match world.resume() {
            Err(Error::NotFound) => world.begin().map(|_| world.to_the_end()),
            Ok(_) => Ok(world.to_the_end()),
            Err(error) => Err(error),
        };
        match catch_unwind(AssertUnwindSafe(work)) {
            Ok(progress) => {
                assert_eq!(progress.expect("a store").phase, Phase::Issued);
                break;
            }
            Err(cause) => assert!(cause.is::<Died>()),
        }
        lived += 1;
    }
    assert!(lived > 3, "it hardly died");
    assert_eq!(world.ca.ids.borrow().len(), 1);
    assert_eq!(world.ca.issued.borrow().len(), 1);
}
