//! The types of the contract and those of the native machine, which say the same.

use abide_cmp::protection::{Hash, MacAlgorithm, Verdict};
use abide_enroll as native;
use abide_host::wit::{keys, network, storage, telemetry, transactions as wit};

pub(crate) fn to_enrollment(given: &native::Enrollment) -> wit::Enrollment {
    let given = given.clone();
    wit::Enrollment {
        order: given.order,
        account: given.account,
        operation: match given.operation {
            native::Operation::Ir => wit::Operation::Ir,
            native::Operation::Cr => wit::Operation::Cr,
            native::Operation::P10cr => wit::Operation::P10cr,
            native::Operation::Kur => wit::Operation::Kur,
            native::Operation::Rr => wit::Operation::Rr,
            native::Operation::Genm => wit::Operation::Genm,
        },
        want: match given.want {
            native::Want::Csr(der) => wit::Want::Csr(der),
            native::Want::Template(template) => wit::Want::Template(to_template(template)),
            native::Want::Generated(wanted) => wit::Want::Generated(wit::Generated {
                template: to_template(wanted.template),
                algorithm: wanted.algorithm,
            }),
            native::Want::Revocation(revocation) => wit::Want::Revocation(wit::Revocation {
                certificate: match revocation.certificate {
                    native::Revoked::Certificate(der) => wit::Revoked::Certificate(der),
                    native::Revoked::Number(issuer, serial) => {
                        wit::Revoked::Number((issuer, serial))
                    }
                },
                reason: revocation.reason,
            }),
            native::Want::Information(question) => wit::Want::Information(match question {
                native::Information::CaCerts => wit::Information::CaCerts,
                native::Information::RootCaUpdate(old) => wit::Information::RootCaUpdate(old),
                native::Information::CertReqTemplate => wit::Information::CertReqTemplate,
                native::Information::Crl(of) => wit::Information::Crl(of),
                native::Information::Other(info_type, value) => {
                    wit::Information::Other((info_type, value))
                }
            }),
        },
        profile: given.profile,
        server: given.server,
        recipient: given.recipient,
        credential: match given.credential {
            native::Credential::Secret(secret) => wit::Credential::Secret(wit::SharedSecret {
                reference: secret.reference,
                key: secret.key,
                iterations: secret.iterations,
                mac: match secret.mac {
                    native::MacKind::Pbm => wit::MacKind::Pbm,
                    native::MacKind::Pbmac1 => wit::MacKind::Pbmac1,
                },
            }),
            native::Credential::Certificate(own) => {
                wit::Credential::Certificate(to_certificate_credential(own))
            }
        },
        trusted: given.trusted,
        out_trusted: given.out_trusted,
        untrusted: given.untrusted,
        implicit_confirm: given.implicit_confirm,
        allow_sha1: given.allow_sha1,
        allow: to_deviations(given.allow),
        limits: wit::Limits {
            maximum_duration_ms: given.limits.maximum_duration_ms,
            minimum_poll_interval_ms: given.limits.minimum_poll_interval_ms,
            maximum_poll_interval_ms: given.limits.maximum_poll_interval_ms,
            maximum_polls: given.limits.maximum_polls,
            request_timeout_ms: given.limits.request_timeout_ms,
        },
        registration: given.registration.map(|given| wit::Registration {
            ra_verified: given.ra_verified,
            added_protection: given.added_protection.map(to_certificate_credential),
        }),
    }
}

fn to_template(template: native::Template) -> wit::Template {
    wit::Template {
        subject: template.subject,
        sans: template.sans,
        key: template.key,
    }
}

fn to_certificate_credential(own: native::CertificateCredential) -> wit::CertificateCredential {
    wit::CertificateCredential {
        certificate: own.certificate,
        chain: own.chain,
        key: own.key,
    }
}

fn to_deviations(given: native::Deviations) -> wit::Deviations {
    let mut deviations = wit::Deviations::empty();
    for deviation in native::Deviation::ALL {
        if given.allow(deviation) {
            deviations |= match deviation {
                native::Deviation::SignedAnswerToMac => wit::Deviations::SIGNED_ANSWER_TO_MAC,
                native::Deviation::CaWithoutDigitalSignature => {
                    wit::Deviations::CA_WITHOUT_DIGITAL_SIGNATURE
                }
                native::Deviation::SenderKidEchoed => wit::Deviations::SENDER_KID_ECHOED,
                native::Deviation::FractionalSeconds => wit::Deviations::FRACTIONAL_SECONDS,
                native::Deviation::EmptyLists => wit::Deviations::EMPTY_LISTS,
            };
        }
    }
    deviations
}

pub(crate) fn from_progress(progress: wit::Progress) -> native::Progress {
    native::Progress {
        transaction_id: progress.transaction_id,
        phase: match progress.phase {
            wit::Phase::Enrolling => native::Phase::Enrolling,
            wit::Phase::Polling => native::Phase::Polling,
            wit::Phase::Confirming => native::Phase::Confirming,
            wit::Phase::Issued => native::Phase::Issued,
            wit::Phase::Failed => native::Phase::Failed,
            wit::Phase::Done => native::Phase::Done,
        },
        outcome: match progress.outcome {
            wit::Outcome::Issued(issued) => native::Outcome::Issued(native::Issued {
                chain: issued.chain,
                ca_pubs: issued.ca_pubs,
                confirmation: match issued.confirmation {
                    wit::Confirmation::Open => native::Confirmation::Open,
                    wit::Confirmation::Confirmed => native::Confirmation::Confirmed,
                    wit::Confirmation::Implicit => native::Confirmation::Implicit,
                    wit::Confirmation::Unacknowledged => native::Confirmation::Unacknowledged,
                },
                note: issued.note,
            }),
            wit::Outcome::Waiting(waiting) => native::Outcome::Waiting(native::Waiting {
                until_ms: waiting.until_ms,
                reason: waiting.reason,
                failure: waiting.failure.map(from_failure),
            }),
            wit::Outcome::Failed(failure) => native::Outcome::Failed(from_failure(failure)),
            wit::Outcome::Done(done) => native::Outcome::Done(native::Done {
                answer: done.answer.map(from_answer),
                note: done.note,
            }),
        },
    }
}

fn from_answer(answer: wit::Answer) -> native::Answer {
    match answer {
        wit::Answer::Absent => native::Answer::Absent,
        wit::Answer::Certificates(list) => native::Answer::Certificates(list),
        wit::Answer::RootCaKeyUpdate(update) => native::Answer::RootCaKeyUpdate {
            new_with_new: update.new_with_new,
            new_with_old: update.new_with_old,
            old_with_new: update.old_with_new,
        },
        wit::Answer::Crls(list) => native::Answer::Crls(list),
        wit::Answer::Other(der) => native::Answer::Other(der),
    }
}

fn from_failure(failure: wit::Failure) -> native::Failure {
    native::Failure {
        class: match failure.class {
            wit::FailureClass::Transient => native::FailureClass::Transient,
            wit::FailureClass::Refused => native::FailureClass::Refused,
            wit::FailureClass::Security => native::FailureClass::Security,
            wit::FailureClass::Malformed => native::FailureClass::Malformed,
            wit::FailureClass::Permanent => native::FailureClass::Permanent,
            wit::FailureClass::Expired => native::FailureClass::Expired,
        },
        fault: match failure.fault {
            wit::Fault::Peer => native::Fault::Peer,
            wit::Fault::Configuration => native::Fault::Configuration,
            wit::Fault::Host => native::Fault::Host,
            wit::Fault::Internal => native::Fault::Internal,
        },
        reason: failure.reason,
        advice: failure.advice,
        fail_info: failure.fail_info,
        orphan: failure.orphan,
        throttled: failure.throttled,
    }
}

pub(crate) fn from_error(error: wit::TransactionError) -> native::Error {
    match error {
        wit::TransactionError::Invalid(why) => native::Error::Invalid(why),
        wit::TransactionError::InProgress(id) => native::Error::InProgress(id),
        wit::TransactionError::NotFound => native::Error::NotFound,
        wit::TransactionError::Busy(what) => native::Error::Busy(what),
        wit::TransactionError::Storage(why) => native::Error::Storage(why),
        wit::TransactionError::Key(why) => native::Error::Key(why),
        wit::TransactionError::Unreadable(why) => native::Error::Unreadable(why),
    }
}

pub(crate) fn from_change(change: storage::Change) -> native::Change {
    let storage::Change::Put(put) = change else {
        unreachable!("an enrollment deletes nothing and has no lease");
    };
    let envelope = put.envelope;
    native::Change::Put(native::Put {
        envelope: native::Envelope {
            kind: envelope.kind,
            id: envelope.id,
            owner: envelope.owner,
            account: envelope.account,
            state: envelope.state,
            due_ms: envelope.due_ms,
            updated_ms: envelope.updated_ms,
        },
        expected: put.expected,
        body: put.body,
    })
}

pub(crate) fn to_entry(entry: native::Entry) -> storage::Entry {
    let envelope = entry.envelope;
    storage::Entry {
        envelope: storage::Envelope {
            kind: envelope.kind,
            id: envelope.id,
            owner: envelope.owner,
            account: envelope.account,
            state: envelope.state,
            due_ms: envelope.due_ms,
            updated_ms: envelope.updated_ms,
        },
        version: entry.version,
        body: entry.body,
        lease: None,
    }
}

pub(crate) fn to_storage_error(error: native::StorageError) -> storage::StorageError {
    match error {
        native::StorageError::Conflict(what) => storage::StorageError::Conflict(what),
        native::StorageError::Fenced(what) => storage::StorageError::Fenced(what),
        native::StorageError::Unavailable(why) => storage::StorageError::Unavailable(why),
    }
}

pub(crate) fn to_response(response: native::Response) -> network::Response {
    network::Response {
        status: response.status,
        content_type: response.content_type,
        retry_after: response.retry_after,
        location: response.location,
        body: response.body,
    }
}

pub(crate) fn to_network_error(error: native::NetworkError) -> network::NetworkError {
    match error {
        native::NetworkError::BadEndpoint(why) => network::NetworkError::BadEndpoint(why),
        native::NetworkError::Unreachable(why) => network::NetworkError::Unreachable(why),
        native::NetworkError::Tls(why) => network::NetworkError::Tls(why),
        native::NetworkError::Timeout(why) => network::NetworkError::Timeout(why),
        native::NetworkError::Interrupted(why) => network::NetworkError::Interrupted(why),
        native::NetworkError::TooLarge(limit) => network::NetworkError::TooLarge(limit),
    }
}

pub(crate) fn to_verdict(verdict: Verdict) -> keys::Verdict {
    match verdict {
        Verdict::Valid => keys::Verdict::Valid,
        Verdict::Invalid => keys::Verdict::Invalid,
        Verdict::Unsupported => keys::Verdict::Unsupported,
    }
}

/// DER of the parameters of a MAC algorithm.
pub(crate) fn mac_parameters(algorithm: &keys::MacAlgorithm) -> Vec<u8> {
    let keys::MacAlgorithm::PasswordBased(given) = algorithm else {
        unreachable!("the simulated world has this one only");
    };
    MacAlgorithm::PasswordBased {
        salt: &given.salt,
        owf: hash(given.owf),
        iterations: given.iterations,
        mac: hash(given.mac),
    }
    .parameters()
}

fn hash(hash: keys::Hash) -> Hash {
    match hash {
        keys::Hash::Sha1 => Hash::Sha1,
        keys::Hash::Sha224 => Hash::Sha224,
        keys::Hash::Sha256 => Hash::Sha256,
        keys::Hash::Sha384 => Hash::Sha384,
        keys::Hash::Sha512 => Hash::Sha512,
    }
}

/// Names of events are few and stay for the life of the process.
pub(crate) fn from_event(event: telemetry::Event) -> native::Event {
    native::Event {
        level: match event.level {
            telemetry::Level::Debug => native::Level::Debug,
            telemetry::Level::Info => native::Level::Info,
            telemetry::Level::Warn => native::Level::Warn,
            telemetry::Level::Error => native::Level::Error,
        },
        name: interned(event.name),
        text: event.text,
        transaction_id: event.transaction_id,
    }
}

fn interned(name: String) -> &'static str {
    use std::collections::BTreeSet;
    use std::sync::{Mutex, PoisonError};
    static NAMES: Mutex<BTreeSet<&'static str>> = Mutex::new(BTreeSet::new());
    let mut names = NAMES.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(known) = names.get(name.as_str()) {
        return known;
    }
    let name: &'static str = name.leak();
    names.insert(name);
    name
}
