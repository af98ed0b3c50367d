use alloc::string::String;
use alloc::vec::Vec;

use abide_enroll as enroll;

use crate::Component;
use crate::bindings::exports::abide::cmp::transactions as wit;
use crate::host::Imports;

impl wit::Guest for Component {
    fn begin(enrollment: wit::Enrollment) -> Result<wit::Progress, wit::TransactionError> {
        enroll::begin(&Imports, &from_enrollment(enrollment))
            .map(to_progress)
            .map_err(to_error)
    }

    fn begin_after(
        enrollment: wit::Enrollment,
        last: Option<String>,
    ) -> Result<wit::Progress, wit::TransactionError> {
        enroll::begin_after(&Imports, &from_enrollment(enrollment), last.as_deref())
            .map(to_progress)
            .map_err(to_error)
    }

    fn resume(enrollment: wit::Enrollment) -> Result<wit::Progress, wit::TransactionError> {
        enroll::resume(&Imports, &from_enrollment(enrollment))
            .map(to_progress)
            .map_err(to_error)
    }

    fn get(transaction_id: String) -> Result<wit::Transaction, wit::TransactionError> {
        enroll::get(&Imports, &transaction_id)
            .map(to_transaction)
            .map_err(to_error)
    }

    fn list(
        cursor: Option<String>,
        limit: u32,
    ) -> Result<(Vec<wit::Transaction>, Option<String>), wit::TransactionError> {
        let (records, next) = enroll::list(&Imports, cursor.as_deref(), limit).map_err(to_error)?;
        Ok((records.into_iter().map(to_transaction).collect(), next))
    }
}

pub(crate) fn allowed(given: wit::Deviations) -> enroll::Deviations {
    let switch = |deviation| match deviation {
        enroll::Deviation::SignedAnswerToMac => wit::Deviations::SIGNED_ANSWER_TO_MAC,
        enroll::Deviation::CaWithoutDigitalSignature => {
            wit::Deviations::CA_WITHOUT_DIGITAL_SIGNATURE
        }
        enroll::Deviation::SenderKidEchoed => wit::Deviations::SENDER_KID_ECHOED,
        enroll::Deviation::FractionalSeconds => wit::Deviations::FRACTIONAL_SECONDS,
        enroll::Deviation::EmptyLists => wit::Deviations::EMPTY_LISTS,
    };
    enroll::Deviation::ALL
        .into_iter()
        .filter(|&deviation| given.contains(switch(deviation)))
        .collect()
}

fn from_enrollment(given: wit::Enrollment) -> enroll::Enrollment {
    enroll::Enrollment {
        order: given.order,
        account: given.account,
        operation: from_operation(given.operation),
        want: match given.want {
            wit::Want::Csr(der) => enroll::Want::Csr(der),
            wit::Want::Template(template) => enroll::Want::Template(from_template(template)),
            wit::Want::Generated(wanted) => enroll::Want::Generated(enroll::Generated {
                template: from_template(wanted.template),
                algorithm: wanted.algorithm,
            }),
            wit::Want::Revocation(revocation) => enroll::Want::Revocation(enroll::Revocation {
                certificate: match revocation.certificate {
                    wit::Revoked::Certificate(der) => enroll::Revoked::Certificate(der),
                    wit::Revoked::Number((issuer, serial)) => {
                        enroll::Revoked::Number(issuer, serial)
                    }
                },
                reason: revocation.reason,
            }),
            wit::Want::Information(question) => enroll::Want::Information(match question {
                wit::Information::CaCerts => enroll::Information::CaCerts,
                wit::Information::RootCaUpdate(old) => enroll::Information::RootCaUpdate(old),
                wit::Information::CertReqTemplate => enroll::Information::CertReqTemplate,
                wit::Information::Crl(of) => enroll::Information::Crl(of),
                wit::Information::Other((info_type, value)) => {
                    enroll::Information::Other(info_type, value)
                }
            }),
        },
        profile: given.profile,
        server: given.server,
        recipient: given.recipient,
        credential: from_credential(given.credential),
        trusted: given.trusted,
        out_trusted: given.out_trusted,
        untrusted: given.untrusted,
        implicit_confirm: given.implicit_confirm,
        allow_sha1: given.allow_sha1,
        allow: allowed(given.allow),
        limits: from_limits(given.limits),
        registration: given.registration.map(from_registration),
    }
}

pub(crate) fn from_operation(operation: wit::Operation) -> enroll::Operation {
    match operation {
        wit::Operation::Ir => enroll::Operation::Ir,
        wit::Operation::Cr => enroll::Operation::Cr,
        wit::Operation::P10cr => enroll::Operation::P10cr,
        wit::Operation::Kur => enroll::Operation::Kur,
        wit::Operation::Rr => enroll::Operation::Rr,
        wit::Operation::Genm => enroll::Operation::Genm,
    }
}

pub(crate) fn from_credential(credential: wit::Credential) -> enroll::Credential {
    match credential {
        wit::Credential::Secret(secret) => enroll::Credential::Secret(enroll::SharedSecret {
            reference: secret.reference,
            key: secret.key,
            iterations: secret.iterations,
            mac: match secret.mac {
                wit::MacKind::Pbm => enroll::MacKind::Pbm,
                wit::MacKind::Pbmac1 => enroll::MacKind::Pbmac1,
            },
        }),
        wit::Credential::Certificate(own) => {
            enroll::Credential::Certificate(from_certificate_credential(own))
        }
    }
}

pub(crate) fn from_limits(limits: wit::Limits) -> enroll::Limits {
    enroll::Limits {
        maximum_duration_ms: limits.maximum_duration_ms,
        minimum_poll_interval_ms: limits.minimum_poll_interval_ms,
        maximum_poll_interval_ms: limits.maximum_poll_interval_ms,
        maximum_polls: limits.maximum_polls,
        request_timeout_ms: limits.request_timeout_ms,
    }
}

pub(crate) fn from_registration(given: wit::Registration) -> enroll::Registration {
    enroll::Registration {
        ra_verified: given.ra_verified,
        added_protection: given.added_protection.map(from_certificate_credential),
    }
}

fn from_template(template: wit::Template) -> enroll::Template {
    enroll::Template {
        subject: template.subject,
        sans: template.sans,
        key: template.key,
    }
}

pub(crate) fn from_certificate_credential(
    own: wit::CertificateCredential,
) -> enroll::CertificateCredential {
    enroll::CertificateCredential {
        certificate: own.certificate,
        chain: own.chain,
        key: own.key,
    }
}

fn to_progress(progress: enroll::Progress) -> wit::Progress {
    wit::Progress {
        transaction_id: progress.transaction_id,
        phase: to_phase(progress.phase),
        outcome: match progress.outcome {
            enroll::Outcome::Issued(issued) => wit::Outcome::Issued(wit::Issued {
                chain: issued.chain,
                ca_pubs: issued.ca_pubs,
                confirmation: to_confirmation(issued.confirmation),
                note: issued.note,
            }),
            enroll::Outcome::Waiting(waiting) => wit::Outcome::Waiting(wit::Waiting {
                until_ms: waiting.until_ms,
                reason: waiting.reason,
                failure: waiting.failure.map(to_failure),
            }),
            enroll::Outcome::Failed(failure) => wit::Outcome::Failed(to_failure(failure)),
            enroll::Outcome::Done(done) => wit::Outcome::Done(wit::Done {
                answer: done.answer.map(to_answer),
                note: done.note,
            }),
        },
    }
}

fn to_answer(answer: enroll::Answer) -> wit::Answer {
    match answer {
        enroll::Answer::Absent => wit::Answer::Absent,
        enroll::Answer::Certificates(list) => wit::Answer::Certificates(list),
        enroll::Answer::RootCaKeyUpdate {
            new_with_new,
            new_with_old,
            old_with_new,
        } => wit::Answer::RootCaKeyUpdate(wit::RootCaKeyUpdate {
            new_with_new,
            new_with_old,
            old_with_new,
        }),
        enroll::Answer::Crls(list) => wit::Answer::Crls(list),
        enroll::Answer::Other(der) => wit::Answer::Other(der),
    }
}

fn to_transaction(record: enroll::TransactionRecord) -> wit::Transaction {
    wit::Transaction {
        transaction_id: record.id(),
        due_ms: record.due_ms(),
        order: record.order,
        account: record.account,
        operation: match record.operation {
            enroll::Operation::Ir => wit::Operation::Ir,
            enroll::Operation::Cr => wit::Operation::Cr,
            enroll::Operation::P10cr => wit::Operation::P10cr,
            enroll::Operation::Kur => wit::Operation::Kur,
            enroll::Operation::Rr => wit::Operation::Rr,
            enroll::Operation::Genm => wit::Operation::Genm,
        },
        server: record.server,
        phase: to_phase(record.phase),
        started_ms: record.started_ms,
        deadline_ms: record.deadline_ms,
        updated_ms: record.updated_ms,
        polls: record.polls,
        cert_req_id: record.cert_req_id,
        csr_digest: hex(&record.csr_digest),
        issuer_digest: hex(&record.issuer_digest),
        configuration_digest: hex(&record.configuration_digest),
        confirmation: to_confirmation(record.confirmation),
        chain: record.chain.into_iter().map(Vec::from).collect(),
        failure: record.failure.or(record.trouble).map(to_failure),
        history: record.history.into_iter().map(to_history_entry).collect(),
    }
}

pub(crate) fn to_history_entry(line: enroll::HistoryEntry) -> wit::HistoryEntry {
    wit::HistoryEntry {
        at_ms: line.at_ms,
        text: line.text,
    }
}

fn hex(octets: &[u8]) -> String {
    octets
        .iter()
        .map(|octet| alloc::format!("{octet:02x}"))
        .collect()
}

fn to_phase(phase: enroll::Phase) -> wit::Phase {
    match phase {
        enroll::Phase::Enrolling => wit::Phase::Enrolling,
        enroll::Phase::Polling => wit::Phase::Polling,
        enroll::Phase::Confirming => wit::Phase::Confirming,
        enroll::Phase::Issued => wit::Phase::Issued,
        enroll::Phase::Failed => wit::Phase::Failed,
        enroll::Phase::Done => wit::Phase::Done,
    }
}

fn to_confirmation(confirmation: enroll::Confirmation) -> wit::Confirmation {
    match confirmation {
        enroll::Confirmation::Open => wit::Confirmation::Open,
        enroll::Confirmation::Confirmed => wit::Confirmation::Confirmed,
        enroll::Confirmation::Implicit => wit::Confirmation::Implicit,
        enroll::Confirmation::Unacknowledged => wit::Confirmation::Unacknowledged,
    }
}

pub(crate) fn to_failure(failure: enroll::Failure) -> wit::Failure {
    wit::Failure {
        class: match failure.class {
            enroll::FailureClass::Transient => wit::FailureClass::Transient,
            enroll::FailureClass::Refused => wit::FailureClass::Refused,
            enroll::FailureClass::Security => wit::FailureClass::Security,
            enroll::FailureClass::Malformed => wit::FailureClass::Malformed,
            enroll::FailureClass::Permanent => wit::FailureClass::Permanent,
            enroll::FailureClass::Expired => wit::FailureClass::Expired,
        },
        fault: match failure.fault {
            enroll::Fault::Peer => wit::Fault::Peer,
            enroll::Fault::Configuration => wit::Fault::Configuration,
            enroll::Fault::Host => wit::Fault::Host,
            enroll::Fault::Internal => wit::Fault::Internal,
        },
        reason: failure.reason,
        advice: failure.advice,
        fail_info: failure.fail_info,
        orphan: failure.orphan,
        throttled: failure.throttled,
    }
}

fn to_error(error: enroll::Error) -> wit::TransactionError {
    match error {
        enroll::Error::Invalid(why) => wit::TransactionError::Invalid(why),
        enroll::Error::InProgress(id) => wit::TransactionError::InProgress(id),
        enroll::Error::NotFound => wit::TransactionError::NotFound,
        enroll::Error::Busy(what) => wit::TransactionError::Busy(what),
        enroll::Error::Storage(why) => wit::TransactionError::Storage(why),
        enroll::Error::Key(why) => wit::TransactionError::Key(why),
        enroll::Error::Unreadable(why) => wit::TransactionError::Unreadable(why),
    }
}
