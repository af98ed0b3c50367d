//! Everything that reads: messages and what lies in them.

#![no_main]

use abide_cmp::{Certificate, CertificationRequest, InfoTypeAndValue, PkiBody, PkiMessage};
use abide_fuzz::bounded;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| bounded(|| {
    decode(data);
    if let Err(error) = Certificate::from_der(data) {
        located(&error, data);
    }
    if let Err(error) = CertificationRequest::from_der(data) {
        located(&error, data);
    }
}));

fn decode(data: &[u8]) {
    let message = match PkiMessage::from_der(data) {
        Ok(message) => message,
        Err(error) => return located(&error, data),
    };
    let header = &message.header;
    interpret(&header.general_info);
    header.implicit_confirm();
    header.confirm_wait_time();
    if let (Some(sender), Some(recipient)) =
        (header.sender.directory(), header.recipient.directory())
    {
        assert!(sender.matches(sender));
        assert_eq!(sender.matches(recipient), recipient.matches(sender));
        assert_eq!(
            sender.matches_reversed(recipient),
            recipient.matches_reversed(sender)
        );
    }
    match &message.body {
        PkiBody::Genm(infos) | PkiBody::Genp(infos) => interpret(infos),
        PkiBody::Error(error) => drop(error.status.summary()),
        _ => {}
    }
}

fn interpret(infos: &[InfoTypeAndValue<'_>]) {
    for info in infos {
        if let Err(error) = info.interpret() {
            located(&error, info.value.unwrap_or_default());
        }
    }
}

/// A fault lies inside the input and can be told.
fn located(error: &abide_cmp::Error, input: &[u8]) {
    assert!(error.offset() <= input.len(), "{error}");
    drop(error.to_string());
}
