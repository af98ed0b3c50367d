//! What may follow from what: one transaction, as it is durable before and after an
//! answer.

use abide_cmp::FailInfo;
use abide_enroll::{Confirmation, FailureClass, Limits, Operation, Phase, TransactionRecord};

use super::{Checked, Invariant, Since, Weight, When, breach};
use crate::ca::Told;

/// Judges one step of one transaction.
pub(super) fn follows(
    before: &TransactionRecord,
    after: &TransactionRecord,
    since: &Since,
    when: When,
    generation: u32,
    copies: u32,
    limits: &Limits,
) -> Checked {
    let refusing = before.failure.is_some();
    let class = after.failure.as_ref().map(|failure| failure.class);
    let out_of_time = when.now_ms >= before.deadline_ms || before.polls >= limits.maximum_polls;
    let edited = when.generation != generation;
    // Where no answer is needed: an end by time or by a new configuration.
    let given_up = match after.phase {
        Phase::Failed => match class {
            Some(FailureClass::Expired) => out_of_time,
            Some(FailureClass::Permanent) => edited,
            _ => false,
        },
        Phase::Issued => {
            after.confirmation == Confirmation::Unacknowledged && (out_of_time || edited)
        }
        _ => false,
    };
    if after.phase == Phase::Failed && after.failure.as_ref().is_none_or(|f| f.reason.is_empty()) {
        return breach(Invariant::SaysWhy, "no reason");
    }
    let Some(evidence) = &since.evidence else {
        if given_up {
            return Ok(());
        }
        if !after.phase.is_open() {
            return breach(
                Invariant::SaysWhy,
                format!("{:?} as {class:?}", after.phase),
            );
        }
        return match state(before) == state(after) {
            true => Ok(()),
            false => breach(
                Invariant::OnlyProof,
                format!("{:?} became {:?} by itself", before.phase, after.phase),
            ),
        };
    };
    let nothing = evidence.weight == Weight::Nothing || evidence.told == Told::Nonsense;
    if nothing {
        let pends = (before.pending, after.pending) == (true, true);
        if !pends || state(before) != state(after) {
            return breach(
                Invariant::OnlyProof,
                format!("{:?} became {:?}", before.phase, after.phase),
            );
        }
        let reason = after.trouble.as_ref().map_or("", |trouble| &trouble.reason);
        if let Some(word) = evidence.words.iter().find(|word| !reason.contains(**word)) {
            return breach(
                Invariant::TellsTheOperator,
                format!("'{word}' is not in '{reason}'"),
            );
        }
        return Ok(());
    }
    if evidence.weight == Weight::May {
        return Ok(());
    }
    let taken = match &evidence.told {
        Told::Waiting(id, _) => {
            let phase = match before.phase {
                Phase::Confirming => Phase::Confirming,
                _ => Phase::Polling,
            };
            // An error does not take the certReqId from those who are already polling.
            let id = before.cert_req_id.unwrap_or(*id);
            after.phase == phase && after.cert_req_id == Some(id) && !after.pending
        }
        Told::Granted {
            certificate,
            good: true,
            implicit,
        } => {
            let phase = match implicit {
                true => Phase::Issued,
                false => Phase::Confirming,
            };
            after.phase == phase
                && after.failure.is_none()
                && after
                    .chain
                    .first()
                    .is_some_and(|leaf| leaf[..] == certificate[..])
        }
        Told::Granted { implicit, .. } => {
            let phase = match implicit {
                true => Phase::Failed,
                false => Phase::Confirming,
            };
            after.phase == phase && class == Some(FailureClass::Security) && after.chain.is_empty()
        }
        // To a repeated rr the CA says so when the first one did its work.
        Told::Refused(FailInfo::CERT_REVOKED)
            if before.operation == Operation::Rr && after.phase == Phase::Done =>
        {
            after.failure.is_none()
        }
        Told::Refused(FailInfo::CERT_REVOKED)
            if before.operation == Operation::Rr && copies > 1 =>
        {
            false
        }
        Told::Done(information) => {
            after.phase == Phase::Done
                && after.failure.is_none()
                && after.information.as_deref().map(|der| &der[..]) == information.as_deref()
        }
        Told::Refused(fail_info) => {
            let names = fail_info.names();
            after.phase == Phase::Failed
                && class == Some(FailureClass::Refused)
                && after
                    .failure
                    .as_ref()
                    .is_some_and(|f| names.eq(f.fail_info.iter()))
        }
        Told::Confirmed if refusing => {
            after.phase == Phase::Failed && class == Some(FailureClass::Security)
        }
        Told::Confirmed => {
            after.phase == Phase::Issued && after.confirmation == Confirmation::Confirmed
        }
        Told::ConfirmationRefused if refusing => after.phase == Phase::Failed,
        Told::ConfirmationRefused => {
            after.phase == Phase::Issued && after.confirmation == Confirmation::Unacknowledged
        }
        Told::Nonsense => true,
    };
    match taken {
        true => Ok(()),
        false => breach(
            Invariant::TakesTheAnswer,
            format!(
                "{:?} became {:?}, {:?}, after {:?}",
                before.phase, after.phase, after.confirmation, evidence.told
            ),
        ),
    }
}

/// Everything in a record that an answer could change.
fn state(record: &TransactionRecord) -> (Phase, Confirmation, Option<i64>, usize, bool) {
    (
        record.phase,
        record.confirmation,
        record.cert_req_id,
        record.chain.len(),
        record.failure.is_some(),
    )
}

/// RFC 9483, 3.6.4.
pub(super) fn passes(fail_info: FailInfo) -> bool {
    [
        FailInfo::SYSTEM_UNAVAIL,
        FailInfo::SYSTEM_FAILURE,
        FailInfo::TRANSACTION_ID_IN_USE,
    ]
    .contains(&fail_info)
}
