//! What can be read is written as it was.

#![no_main]

use abide_cmp::{Draft, PkiMessage};
use abide_fuzz::bounded;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| bounded(|| {
    let Ok(message) = PkiMessage::from_der(data) else {
        return;
    };
    let draft = Draft::new(&message.header, &message.body);
    assert!(
        draft.protected_part() == message.protected_part(),
        "header or body changed"
    );
    let written = draft.finish(message.protection, &message.extra_certs);
    assert!(written == data, "the message changed");
}));
