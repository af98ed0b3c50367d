//! What can be read is written as it was.

#![no_main]

use abide_cmp::{Draft, Leniency, Parts, PkiMessage};
use abide_fuzz::{LENIENT, bounded};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| bounded(|| {
    let Ok(message) = PkiMessage::from_der(data) else {
        return tolerated(data);
    };
    let draft = Draft::new(&message.header, &message.body);
    assert!(
        draft.protected_part() == message.protected_part(),
        "header or body changed"
    );
    let written = draft.finish(message.protection, &message.extra_certs);
    assert!(written == data, "the message changed");
    let parts = Parts::split(data, Leniency::STRICT).expect("parts of a message");
    let written = parts.value.encode().expect("parts of a message");
    assert!(written == data, "the message changed between its parts");
}));

/// What is only read leniently has parts too. Those that are written are strict.
fn tolerated(data: &[u8]) {
    let Ok(parts) = Parts::split(data, LENIENT) else {
        return;
    };
    if let Ok(written) = parts.value.encode() {
        PkiMessage::from_der(&written).expect("what is written is strict");
    }
}
