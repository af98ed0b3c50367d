//! Everything that reads: messages and what lies in them.

#![no_main]

use abide_cmp::{
    Certificate, CertificationRequest, Draft, InfoTypeAndValue, Leniency, PkiBody, PkiMessage,
    Tolerant, limits,
};
use abide_fuzz::{LENIENT, bounded};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| bounded(|| {
    let strict = PkiMessage::from_der(data);
    let lenient = PkiMessage::from_der_with(data, LENIENT);
    match &lenient {
        Ok(Tolerant { value, tolerations }) => {
            look(value);
            assert!(tolerations.len() <= limits::TOLERATIONS);
            assert!(tolerations.iter().all(|it| it.offset < data.len()));
            assert_eq!(tolerations.is_empty(), strict.is_ok());
        }
        Err(error) => {
            located(error, data);
            assert!(strict.is_err(), "a switch refuses what is strict");
        }
    }
    if let Err(error) = strict {
        located(&error, data);
    }
    if let Err(error) = Certificate::from_der(data) {
        located(&error, data);
    }
    if let Err(error) = CertificationRequest::from_der(data) {
        located(&error, data);
    }
}));

fn look(message: &PkiMessage<'_>) {
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
    // What was tolerated may be written otherwise, but can be written.
    drop(Draft::new(header, &message.body));
}

fn interpret(infos: &[InfoTypeAndValue<'_>]) {
    for info in infos {
        let value = info.value.unwrap_or_default();
        for leniency in [Leniency::STRICT, LENIENT] {
            if let Err(error) = info.interpret_with(leniency) {
                located(&error, value);
            }
        }
    }
}

/// A fault lies inside the input and can be told.
fn located(error: &abide_cmp::Error, input: &[u8]) {
    assert!(error.offset() <= input.len(), "{error}");
    drop(error.to_string());
}
