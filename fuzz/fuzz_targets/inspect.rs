//! What is shown to people.

#![no_main]

use abide_fuzz::bounded;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| bounded(|| {
    let _ = abide_cmp::describe(data);
}));
