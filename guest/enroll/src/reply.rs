//! What comes back: from an HTTP answer to a message that may be believed.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use abide_cmp::protection::{
    self, Anchors, ProtectionError, ProtectionKind, verify_mac, verify_signature,
};
use abide_cmp::{Certificate, PkiBody, PkiMessage, PkiStatus, Time};
use abide_policy::failure::Class;

use crate::deviations::{self, Deviation, Deviations};
use crate::driver::Error;
use crate::enrollment::Credential;
use crate::failure::{Failure, FailureClass, Fault};
use crate::host::{Host, HostVerifier, NetworkError, Response};
use crate::limits;
use crate::mutation::Mutation;
use crate::plan::Plan;
use crate::record::TransactionRecord;
use crate::registration;

/// An attempt that brought no message, and when the server would like the next one.
#[derive(Debug)]
pub(crate) struct NoMessage {
    pub(crate) failure: Failure,
    pub(crate) retry_after_s: Option<u64>,
    /// The request certainly did not arrive.
    pub(crate) not_delivered: bool,
}

/// Says what a network error means.
pub(crate) fn network_failure(server: &str, error: NetworkError) -> NoMessage {
    use FailureClass::{Malformed, Permanent, Transient};
    let (class, fault, text, advice, not_delivered) = match error {
        NetworkError::BadEndpoint(why) => (
            Permanent,
            Fault::Configuration,
            why,
            "correct the URL",
            true,
        ),
        NetworkError::Unreachable(why) => (
            Transient,
            Fault::Peer,
            why,
            "check that the server runs there and that the way to it is open",
            true,
        ),
        NetworkError::Tls(why) => (
            Transient,
            Fault::Peer,
            why,
            "check the server's TLS certificate and the TLS trust that is configured",
            true,
        ),
        NetworkError::Timeout(why) => (
            Transient,
            Fault::Peer,
            why,
            "the same request is sent again; allow more time for an answer if the CA is slow",
            false,
        ),
        NetworkError::Interrupted(why) => (
            Transient,
            Fault::Peer,
            why,
            "the same request is sent again; look at the server's log if it goes on",
            false,
        ),
        NetworkError::TooLarge(limit) => (
            Malformed,
            Fault::Peer,
            format!("the answer is longer than {limit} bytes"),
            "check that this is the URL of a CMP server",
            false,
        ),
    };
    let reason = if text.contains(server) {
        text
    } else {
        format!("{server}: {text}")
    };
    NoMessage {
        failure: Failure::new(class, fault, reason, advice),
        retry_after_s: None,
        not_delivered,
    }
}

/// The content types under which a PKIMessage may come (RFC 9811, 3.2 and 3.4).
fn is_cmp(content_type: Option<&str>) -> bool {
    let Some(content_type) = content_type else {
        return true;
    };
    let essence = content_type.split(';').next().unwrap_or_default().trim();
    ["application/pkixcmp", "application/pkixcmp-poll"]
        .iter()
        .any(|accepted| essence.eq_ignore_ascii_case(accepted))
}

/// Finds the message in an HTTP answer of whatever status (RFC 9811, 3.1). Without one,
/// says what the answer means instead.
pub(crate) fn message_in<'r>(
    plan: &Plan<'_>,
    response: &'r Response,
) -> Result<PkiMessage<'r>, NoMessage> {
    let server = plan.enrollment.server.as_str();
    let status = response.status;
    let content_type = response.content_type.as_deref();
    let none = |class, fault, what: String, advice: &str| NoMessage {
        failure: Failure::new(class, fault, format!("{server}: {what}"), advice),
        retry_after_s: response.retry_after,
        not_delivered: false,
    };
    let may_carry = matches!(status, 200..=299 | 400..=599);
    let mut undecodable = None;
    if may_carry && is_cmp(content_type) && !response.body.is_empty() {
        match PkiMessage::from_der_with(&response.body, plan.enrollment.allow.leniency()) {
            Ok(read) if read.value.header.pvno != 3 || !Mutation::Pvno3Refused.is_on() => {
                return Ok(read.value);
            }
            Ok(_) => {}
            Err(_) if Mutation::UnreadableAnswerUntold.is_on() => {}
            Err(error) => undecodable = Some(error),
        }
    }
    let would_read = undecodable
        .as_ref()
        .and_then(|error| error.rule().deviation())
        .and_then(deviations::of_encoding);
    if let (Some(option), Some(error)) = (would_read, &undecodable) {
        return Err(none(
            FailureClass::Malformed,
            Fault::Peer,
            format!("the answer is no PKIMessage: {error}"),
            &allowing(option),
        ));
    }
    let without_message = match &undecodable {
        Some(error) => format!("HTTP {status} without a CMP message ({error})"),
        None => format!("HTTP {status} without a CMP message"),
    };
    Err(match status {
        300..=399 => {
            let target = response.location.as_deref().unwrap_or("nowhere");
            none(
                FailureClass::Malformed,
                Fault::Peer,
                format!("HTTP {status} redirects to {}", shown(target)),
                "redirects are not followed; if that is the CA, give its URL as the server",
            )
        }
        408 | 425 | 429 | 500..=599 => {
            let mut passing = none(
                FailureClass::Transient,
                Fault::Peer,
                without_message,
                "the same request is sent again; look at the server's log if it goes on",
            );
            passing.failure.throttled =
                Class::of_http(status, response.retry_after.is_some()) == Class::Throttled;
            passing
        }
        400..=499 => none(
            FailureClass::Malformed,
            Fault::Peer,
            without_message,
            "check the path of the URL and whether this client may use it",
        ),
        _ => {
            let what = match (undecodable, content_type) {
                (Some(error), _) => format!("the answer is no PKIMessage: {error}"),
                (None, _) if response.body.is_empty() => {
                    format!("HTTP {status} with an empty body")
                }
                (None, Some(other)) => {
                    format!(
                        "HTTP {status} with '{}' in place of application/pkixcmp",
                        shown(other)
                    )
                }
                (None, None) => format!("HTTP {status} without a PKIMessage"),
            };
            none(
                FailureClass::Malformed,
                Fault::Peer,
                what,
                "check that this is the URL of a CMP server",
            )
        }
    })
}

/// Checks that a message answers the last request and is protected by whom it should
/// (RFC 9483, 3.5). On success the message may change the transaction's state. The
/// signer's certificate is returned to be kept.
pub(crate) fn check(
    plan: &Plan<'_>,
    host: &dyn Host,
    record: &TransactionRecord,
    message: &PkiMessage<'_>,
    now_ms: u64,
) -> Result<Result<Option<Vec<u8>>, Failure>, Error> {
    if Mutation::UnprotectedErrorBelieved.is_on()
        && matches!(message.body, PkiBody::Error(_))
        && message.protection.is_none()
    {
        return Ok(Ok(None));
    }
    let failure = match addressed(record, message) {
        Ok(()) => match authenticated(plan, host, record, message, now_ms)? {
            Ok(signer) => return Ok(Ok(signer)),
            Err(failure) => failure,
        },
        Err(failure) => failure,
    };
    Ok(Err(with_peer_words(failure, message)))
}

/// Whether the message belongs to this transaction and answers its last request, or the
/// one whose answer is delayed.
fn addressed(record: &TransactionRecord, message: &PkiMessage<'_>) -> Result<(), Failure> {
    if Mutation::MisaddressedErrorBelieved.is_on() && matches!(message.body, PkiBody::Error(_)) {
        return Ok(());
    }
    let header = &message.header;
    let fault = |what: &str, rule: &str| {
        Err(Failure::new(
            FailureClass::Security,
            Fault::Peer,
            format!("{}: {what} ({rule})", record.server),
            "nothing was believed; if it goes on, something between here and the CA mixes up \
             or replays answers",
        ))
    };
    if header.transaction_id != Some(&record.transaction_id[..]) {
        return fault("the answer is for another transactionID", "RFC 9483, 3.5");
    }
    // What was delayed may echo the request that it answers in the end (RFC 9483, 4.4). The
    // first word that it is delayed did so too: once more, that is an old answer, and to
    // believe it would drop what the CA has said to the poll.
    let delayed = record.cert_req_id.is_some() && !says_waiting(&message.body);
    let answered = header.recip_nonce.is_some_and(|nonce| {
        nonce == &record.last_nonce[..] || (delayed && nonce == &record.request_nonce[..])
    });
    if !answered {
        return fault(
            "the answer's recipNonce is not that of our request",
            "RFC 9483, 3.5",
        );
    }
    if header
        .sender_nonce
        .is_none_or(|nonce| nonce.len() < limits::NONCE)
    {
        return fault(
            "the answer's senderNonce has fewer than 16 octets",
            "RFC 9483, 3.5",
        );
    }
    Ok(())
}

fn says_waiting(body: &PkiBody<'_>) -> bool {
    match body {
        PkiBody::Error(content) => content.status.status == PkiStatus::Waiting,
        PkiBody::Ip(answer) | PkiBody::Cp(answer) | PkiBody::Kup(answer) => {
            let mut responses = answer.responses.iter();
            responses.any(|response| response.status.status == PkiStatus::Waiting)
        }
        _ => false,
    }
}

fn authenticated(
    plan: &Plan<'_>,
    host: &dyn Host,
    record: &TransactionRecord,
    message: &PkiMessage<'_>,
    now_ms: u64,
) -> Result<Result<Option<Vec<u8>>, Failure>, Error> {
    let fault = |class, what: String, advice: &str| {
        Ok(Err(Failure::new(
            class,
            Fault::Peer,
            format!("{}: {what}", record.server),
            advice,
        )))
    };
    let security = FailureClass::Security;
    match (
        protection::protection_kind(message),
        &plan.enrollment.credential,
    ) {
        (ProtectionKind::Mac, Credential::Secret(secret)) => {
            let checked = verify_mac(message, plan.policy(), |algorithm, data| {
                host.mac(&secret.key, algorithm, data)
                    .map_err(|e| MacFailure::Key(e.0))
            });
            match checked {
                Ok(()) => Ok(Ok(None)),
                Err(MacFailure::Key(why)) => Err(Error::Key(why)),
                Err(MacFailure::Protection(why)) => fault(
                    security,
                    why.to_string(),
                    "compare the secret and its reference with those of the CA",
                ),
            }
        }
        (ProtectionKind::Mac, Credential::Certificate(_)) => fault(
            security,
            "the answer to a signed request is protected by a MAC (RFC 9483, 3.5)".into(),
            "ask the CA's operator to sign its answers",
        ),
        (ProtectionKind::Signature, credential) => {
            let signed = signed(plan, host, record, message, now_ms);
            // Who cannot believe the signature around a request knows nobody's secret.
            let to_mac = matches!(credential, Credential::Secret(_))
                && !registration::adds_protection(plan.enrollment)
                && !plan.enrollment.allow.allow(Deviation::SignedAnswerToMac);
            match signed {
                Ok(_) if to_mac => fault(
                    security,
                    "the answer to a request under a MAC is signed (RFC 9483, 4.1.5)".into(),
                    &allowing(Deviation::SignedAnswerToMac),
                ),
                Ok(signer) => Ok(Ok(signer)),
                Err((why, Some(option))) => fault(security, why.to_string(), &allowing(option)),
                Err((why, None)) => fault(
                    security,
                    why.to_string(),
                    "if this is the right CA, trust the root of its CMP signer",
                ),
            }
        }
        (ProtectionKind::None, _) => fault(
            security,
            "the answer is not protected".into(),
            "nothing was believed; the CA's operator can protect its answers, errors included",
        ),
        (ProtectionKind::Unknown, _) => {
            let algorithm = message.header.protection_alg.map(|alg| alg.oid.to_string());
            let what = match algorithm {
                Some(oid) => format!("the answer is protected by an unknown algorithm ({oid})"),
                None => ProtectionError::Incomplete.to_string(),
            };
            fault(
                security,
                what,
                "ask the CA's operator for an algorithm of RFC 9481",
            )
        }
    }
}

/// Traces a signature to a trusted certificate. Where an option would have accepted it, the
/// option is told.
fn signed(
    plan: &Plan<'_>,
    host: &dyn Host,
    record: &TransactionRecord,
    message: &PkiMessage<'_>,
    now_ms: u64,
) -> Result<Option<Vec<u8>>, (ProtectionError, Option<Deviation>)> {
    let mut untrusted = plan.untrusted.clone();
    // A confirmation may leave its signer out (RFC 9483, 3.3).
    if let Some(cached) = record.response_signer.as_deref() {
        untrusted.extend(Certificate::from_der(cached));
    }
    let now = Time::from_unix((now_ms / 1000) as i64);
    let own_kid = plan.sender_kid();
    let verify = |allow: Deviations| {
        let anchors = Anchors {
            untrusted: &untrusted,
            policy: plan.policy(),
            ca_may_sign: allow.allow(Deviation::CaWithoutDigitalSignature),
            echoed_kid: own_kid.filter(|_| allow.allow(Deviation::SenderKidEchoed)),
            ..Anchors::new(&plan.trusted, now)
        };
        verify_signature(message, anchors, &HostVerifier(host))
    };
    let allow = plan.enrollment.allow;
    let why = match verify(allow) {
        Ok(signer) => return Ok(signer.path.first().map(|signer| signer.raw.to_vec())),
        Err(why) => why,
    };
    let echoed = own_kid.is_some() && message.header.sender_kid == own_kid;
    let option = match &why {
        ProtectionError::KeyUsage { .. } => Some(Deviation::CaWithoutDigitalSignature),
        ProtectionError::NoSignerCertificate { .. } if echoed => Some(Deviation::SenderKidEchoed),
        _ => None,
    };
    // What would be refused all the same is no advice.
    let helps = |option: &Deviation| match verify(allow.with(*option)) {
        Ok(_) => true,
        Err(other) => matches!(other, ProtectionError::KeyUsage { .. }) && other != why,
    };
    Err((why.clone(), option.filter(helps)))
}

/// How an option is given.
fn allowing(option: Deviation) -> String {
    format!(
        "ask the CA's operator to follow the rule; if that cannot be, allow {} and go on with \
         this transaction",
        option.name()
    )
}

enum MacFailure {
    Key(String),
    Protection(ProtectionError),
}

impl From<ProtectionError> for MacFailure {
    fn from(error: ProtectionError) -> Self {
        Self::Protection(error)
    }
}

/// Adds what a refusal says although it is not believed: it often tells the person what
/// is wrong.
fn with_peer_words(mut failure: Failure, message: &PkiMessage<'_>) -> Failure {
    if Mutation::UnprovenWordsUntold.is_on() {
        return failure;
    }
    let (status, details) = match &message.body {
        PkiBody::Error(content) => (Some(&content.status), content.error_details.as_ref()),
        PkiBody::Ip(answer) | PkiBody::Cp(answer) | PkiBody::Kup(answer) => {
            let mut statuses = answer.responses.iter().map(|response| &response.status);
            (statuses.find(|s| s.status == PkiStatus::Rejection), None)
        }
        PkiBody::Rp(answer) => {
            let mut statuses = answer.status.iter();
            (statuses.find(|s| s.status == PkiStatus::Rejection), None)
        }
        _ => (None, None),
    };
    if let Some(status) = status {
        failure.reason.push_str("; it says, unauthenticated: ");
        failure.reason.push_str(&shown(&status.summary()));
        if let Some(details) = details {
            failure.reason.push_str("; ");
            failure.reason.push_str(&shown(&details.joined()));
        }
    }
    failure
}

/// A peer's words, safe for one line on a terminal and bounded.
pub(crate) fn shown(text: &str) -> String {
    let mut line: String = text
        .chars()
        .take(limits::PEER_TEXT)
        .map(|c| if c.is_control() { ' ' } else { c })
        .collect();
    if text.chars().nth(limits::PEER_TEXT).is_some() {
        line.push('…');
    }
    line
}
