//! A transaction with a hostile CA that knows the secret.

#![no_main]

use abide_enroll::{Operation, Outcome, begin, get, limits, resume};
use abide_fuzz::bounded;
use abide_fuzz::world::World;
use libfuzzer_sys::fuzz_target;

/// Calls after the first one. What is left open then only polls.
const CALLS: usize = 4;

fuzz_target!(|data: &[u8]| bounded(|| {
    for operation in [Operation::Ir, Operation::Cr] {
        let world = World::new(Some(data));
        let enrollment = World::enrollment(operation);
        let Ok(mut progress) = begin(&world, &enrollment) else {
            continue;
        };
        for call in 1..=CALLS {
            assert!(world.sent.get() <= call * limits::MESSAGES_PER_CALL);
            let Outcome::Waiting(waiting) = &progress.outcome else {
                break;
            };
            assert!(waiting.until_ms >= world.now_ms.get());
            world.now_ms.set(waiting.until_ms);
            match resume(&world, &enrollment) {
                Ok(next) => progress = next,
                Err(error) => return drop(format!("{error:?}")),
            }
        }
        get(&world, &progress.transaction_id).expect("what was written can be read");
    }
}));
