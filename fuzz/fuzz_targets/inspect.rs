//! What is shown to people.

#![no_main]

use abide_fuzz::bounded;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| bounded(|| {
    let leniency = abide_cmp::Leniency::STRICT;
    let _ = abide_cmp::describe(data, leniency);
    if let Ok(message) = abide_cmp::PkiMessage::from_der(data) {
        let _ = abide_cmp::rules::check(&message, leniency);
    }
}));
