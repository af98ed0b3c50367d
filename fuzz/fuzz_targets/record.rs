//! Stored records that are damaged: an input is laid over a good record of a transaction.

#![no_main]

use std::sync::OnceLock;

use abide_enroll::{Operation, begin, get, list, resume};
use abide_fuzz::bounded;
use abide_fuzz::world::World;
use libfuzzer_sys::fuzz_target;

const KIND: &str = "transaction";

fuzz_target!(|input: (u16, u8, &[u8])| bounded(|| {
    static GOOD: OnceLock<(String, Vec<((String, String), Vec<u8>)>)> = OnceLock::new();
    let (id, records) = GOOD.get_or_init(|| {
        let world = World::new(None);
        let progress = begin(&world, &World::enrollment(Operation::Ir)).expect("a beginning");
        (
            progress.transaction_id,
            world.bodies().into_iter().collect(),
        )
    });
    let world = World::new(None);
    for ((kind, id), body) in records {
        let body = match kind.as_str() {
            KIND => damaged(body, input),
            _ => body.clone(),
        };
        world.replace(kind, id, body);
    }
    let readable = get(&world, id).is_ok();
    assert_eq!(list(&world, None, 10).is_ok(), readable);
    match resume(&world, &World::enrollment(Operation::Ir)) {
        Ok(_) => assert!(readable),
        Err(error) => drop(format!("{error:?}")),
    }
}));

/// The body with some octets from a place on replaced by others.
fn damaged(body: &[u8], (place, removed, added): (u16, u8, &[u8])) -> Vec<u8> {
    let start = usize::from(place) % (body.len() + 1);
    let end = (start + usize::from(removed)).min(body.len());
    [&body[..start], added, &body[end..]].concat()
}
