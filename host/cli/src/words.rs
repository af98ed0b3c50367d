//! The contract's enumerations in the words that people and scripts read.

use abide_host::wit::transactions::{Confirmation, Failure, FailureClass, Fault, Operation, Phase};
use serde_json::{Value, json};

pub(crate) fn operation(operation: Operation) -> &'static str {
    match operation {
        Operation::Ir => "ir",
        Operation::Cr => "cr",
        Operation::P10cr => "p10cr",
        Operation::Kur => "kur",
        Operation::Rr => "rr",
        Operation::Genm => "genm",
    }
}

pub(crate) fn phase(phase: Phase) -> &'static str {
    match phase {
        Phase::Enrolling => "enrolling",
        Phase::Polling => "polling",
        Phase::Confirming => "confirming",
        Phase::Issued => "issued",
        Phase::Failed => "failed",
        Phase::Done => "done",
    }
}

pub(crate) fn confirmation(confirmation: Confirmation) -> &'static str {
    match confirmation {
        Confirmation::Open => "open",
        Confirmation::Confirmed => "confirmed",
        Confirmation::Implicit => "implicit",
        Confirmation::Unacknowledged => "unacknowledged",
    }
}

pub(crate) fn class(class: FailureClass) -> &'static str {
    match class {
        FailureClass::Transient => "transient",
        FailureClass::Refused => "refused",
        FailureClass::Security => "security",
        FailureClass::Malformed => "malformed",
        FailureClass::Permanent => "permanent",
        FailureClass::Expired => "expired",
    }
}

pub(crate) fn fault(fault: Fault) -> &'static str {
    match fault {
        Fault::Peer => "peer",
        Fault::Configuration => "configuration",
        Fault::Host => "host",
        Fault::Internal => "internal",
    }
}

/// A failure as one line: what happened, what the CA said, what to do.
pub(crate) fn failure_line(failure: &Failure) -> String {
    let mut line = failure.reason.clone();
    let unsaid: Vec<&str> = failure
        .fail_info
        .iter()
        .map(String::as_str)
        .filter(|bit| !failure.reason.contains(bit))
        .collect();
    if !unsaid.is_empty() {
        line.push_str(&format!(" (failInfo: {})", unsaid.join(", ")));
    }
    if failure.orphan {
        line.push_str("; the CA may have issued a certificate that never arrived");
    }
    if !failure.advice.is_empty() {
        line.push_str(&format!("; {}", failure.advice));
    }
    line
}

/// A failure as JSON.
pub(crate) fn failure_json(failure: &Failure) -> Value {
    json!({
        "class": class(failure.class),
        "fault": fault(failure.fault),
        "reason": failure.reason,
        "advice": failure.advice,
        "failInfo": failure.fail_info,
        "orphan": failure.orphan,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_is_one_line_that_repeats_nothing() {
        let mut failure = Failure {
            class: FailureClass::Refused,
            fault: Fault::Peer,
            reason: "http://ca/ refused the request: badPOP".into(),
            advice: "sign the request with its own key".into(),
            fail_info: vec!["badPOP".into()],
            orphan: false,
        };
        assert_eq!(
            failure_line(&failure),
            "http://ca/ refused the request: badPOP; sign the request with its own key"
        );
        failure.reason = "refused".into();
        failure.advice.clear();
        failure.orphan = true;
        assert_eq!(
            failure_line(&failure),
            "refused (failInfo: badPOP); the CA may have issued a certificate that never arrived"
        );
    }
}
