//! The contract's enumerations in the words that people and scripts read.

use abide_host::wit::orders::State;
use abide_host::wit::schedule::TaskKind;
use abide_host::wit::transactions::{Confirmation, Failure, FailureClass, Fault, Operation, Phase};
use serde_json::{Value, json};

/// A command of CMP.
pub fn operation(operation: Operation) -> &'static str {
    match operation {
        Operation::Ir => "ir",
        Operation::Cr => "cr",
        Operation::P10cr => "p10cr",
        Operation::Kur => "kur",
        Operation::Rr => "rr",
        Operation::Genm => "genm",
    }
}

/// The phase of a transaction.
pub fn phase(phase: Phase) -> &'static str {
    match phase {
        Phase::Enrolling => "enrolling",
        Phase::Polling => "polling",
        Phase::Confirming => "confirming",
        Phase::Issued => "issued",
        Phase::Failed => "failed",
        Phase::Done => "done",
    }
}

/// How the CA took the confirmation.
pub fn confirmation(confirmation: Confirmation) -> &'static str {
    match confirmation {
        Confirmation::Open => "open",
        Confirmation::Confirmed => "confirmed",
        Confirmation::Implicit => "implicit",
        Confirmation::Unacknowledged => "unacknowledged",
    }
}

/// The class of a failure.
pub fn class(class: FailureClass) -> &'static str {
    match class {
        FailureClass::Transient => "transient",
        FailureClass::Refused => "refused",
        FailureClass::Security => "security",
        FailureClass::Malformed => "malformed",
        FailureClass::Permanent => "permanent",
        FailureClass::Expired => "expired",
    }
}

/// Who has to act on a failure.
pub fn fault(fault: Fault) -> &'static str {
    match fault {
        Fault::Peer => "peer",
        Fault::Configuration => "configuration",
        Fault::Host => "host",
        Fault::Internal => "internal",
    }
}

/// The state of an order, as Barbican and cert-manager's users know such words.
pub fn state(state: State) -> &'static str {
    match state {
        State::NotStarted => "NOT_STARTED",
        State::Buffered => "BUFFERED",
        State::Running => "RUNNING",
        State::Active => "ACTIVE",
        State::Error => "ERROR",
        State::Canceled => "CANCELED",
    }
}

/// Every state.
pub const STATES: [State; 6] = [
    State::NotStarted,
    State::Buffered,
    State::Running,
    State::Active,
    State::Error,
    State::Canceled,
];

/// What a task does.
pub fn task_kind(kind: TaskKind) -> &'static str {
    match kind {
        TaskKind::Start => "start",
        TaskKind::Retry => "retry",
        TaskKind::Renew => "renew",
        TaskKind::Resume => "resume",
    }
}

/// A failure as one line: what happened, what the CA said, what to do.
pub fn failure_line(failure: &Failure) -> String {
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
pub fn failure_json(failure: &Failure) -> Value {
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
            throttled: false,
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
