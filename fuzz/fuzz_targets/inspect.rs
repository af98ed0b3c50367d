//! What is shown to people.

#![no_main]

use abide_cmp::{Leniency, PkiMessage, describe, limits, rules};
use abide_fuzz::{LENIENT, bounded};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| bounded(|| {
    for leniency in [Leniency::STRICT, LENIENT] {
        if let Err(error) = describe(data, leniency) {
            assert!(error.offset() <= data.len(), "{error}");
            drop(error.to_string());
        }
        let Ok(message) = PkiMessage::from_der_with(data, leniency) else {
            continue;
        };
        let findings = rules::check(&message.value, leniency);
        assert!(findings.len() <= limits::FINDINGS);
        findings
            .iter()
            .for_each(|finding| drop(finding.to_string()));
    }
}));
