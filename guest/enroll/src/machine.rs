//! The transitions. Each takes the record by value and gives the next one; what it
//! returns is stored before anything else happens.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use abide_cmp::protection::{ProtectionKind, cert_hash, protection_kind};
use abide_cmp::{
    CertOrEncCert, CertRepMessage, CertResponse, Certificate, ErrorMsgContent, FailInfo, PkiBody,
    PkiFreeText, PkiMessage, PkiStatus, PkiStatusInfo, PollRep, Time,
};
use abide_policy::backoff::Exponential;
use minicbor::bytes::ByteVec;

use crate::certificate::{Evidence, Judgement, judge};
use crate::driver::Error;
use crate::enrollment::{Limits, Operation};
use crate::failure::{Failure, FailureClass, Fault};
use crate::host::{Host, HostVerifier};
use crate::key_generation;
use crate::mutation::Mutation;
use crate::plan::{Plan, Request};
use crate::profile;
use crate::record::{Confirmation, Phase, TransactionRecord};
use crate::reply::{NoMessage, shown};
use crate::request;
use crate::revocation::Verdict;

/// Takes an authenticated answer to the last request.
pub(crate) fn handle_message(
    plan: &Plan<'_>,
    host: &dyn Host,
    mut record: TransactionRecord,
    message: &PkiMessage<'_>,
    signer: Option<Vec<u8>>,
    now_ms: u64,
) -> Result<TransactionRecord, Error> {
    let limits = &plan.enrollment.limits;
    let before = record.clone();
    let header = &message.header;
    record.recip_nonce = header
        .sender_nonce
        .map(|nonce| ByteVec::from(nonce.to_vec()));
    if let Some(name) = header.sender.directory().filter(|name| !name.is_null()) {
        record.peer_name = Some(ByteVec::from(name.der().to_vec()));
    }
    if let Some(signer) = signer {
        record.response_signer = Some(ByteVec::from(signer));
    }
    if before.recip_nonce.is_none() {
        let skew = profile::clock_skew(header.message_time, now_ms);
        skew.into_iter()
            .for_each(|line| record.note_history(now_ms, line));
    }
    record.trouble = None;
    record.resends = 0;

    let polling = record.cert_req_id.is_some();
    let confirming = record.phase == Phase::Confirming;
    let contradiction = profile::fault(plan, message);
    let unexpected = match (&message.body, plan.enrollment.operation) {
        _ if contradiction.is_some() => contradiction.unwrap_or_default(),
        (PkiBody::Ip(response), Operation::Ir)
        | (PkiBody::Cp(response), Operation::Cr | Operation::P10cr)
        | (PkiBody::Kup(response), Operation::Kur)
            if !confirming =>
        {
            match single_response(plan, &record, response) {
                Ok(response) => {
                    return take_response(plan, host, before, record, message, response, now_ms);
                }
                Err(why) => why.into(),
            }
        }
        (PkiBody::Rp(content), Operation::Rr) => match &plan.request {
            Request::Revocation(request) => match request.judge(content, record.deliveries > 1) {
                Verdict::Done(note) => {
                    return Ok(done(record, request.done(), note, None, now_ms));
                }
                Verdict::Refused => return Ok(refused(record, &content.status[0], now_ms)),
                Verdict::Unusable(why) => why.into(),
            },
            _ => "an rp answers an rr".into(),
        },
        (PkiBody::Genp(content), Operation::Genm) => match &plan.request {
            Request::Information(request) => {
                let now = Time::from_unix((now_ms / 1000) as i64);
                match request.judge(content, now, plan.policy(), &HostVerifier(host)) {
                    Ok((information, note)) => {
                        return Ok(done(record, "answered", note, Some(information), now_ms));
                    }
                    Err(why) => why,
                }
            }
            _ => "a genp answers a genm".into(),
        },
        (PkiBody::PollRep(entries), _) if polling => match single_poll_rep(&record, entries) {
            Ok(entry) => {
                let reason = entry
                    .reason
                    .as_ref()
                    .map(PkiFreeText::joined)
                    .unwrap_or_default();
                return Ok(wait(
                    record,
                    limits,
                    Some(entry.check_after.saturating()),
                    &reason,
                    now_ms,
                ));
            }
            Err(why) => why.into(),
        },
        (PkiBody::Error(content), _) if content.status.status == PkiStatus::Waiting => {
            // RFC 9483, 4.4: an error with status waiting is polled for with −1.
            let id = match Mutation::ErrorWaitingPolledWithZero.is_on() {
                true => 0,
                false => -1,
            };
            record.cert_req_id.get_or_insert(id);
            if !confirming {
                record.phase = Phase::Polling;
            }
            let reason = content
                .status
                .status_string
                .as_ref()
                .map(PkiFreeText::joined);
            return Ok(wait(
                record,
                limits,
                None,
                &reason.unwrap_or_default(),
                now_ms,
            ));
        }
        (PkiBody::Error(content), _) if confirming => {
            return Ok(confirmation_refused(record, content, now_ms));
        }
        (PkiBody::Error(content), _) if profile::wants_newer(&record, header.pvno, content) => {
            return retry_with(plan, host, record, header.pvno, now_ms);
        }
        (PkiBody::Error(content), _) => {
            let status = error_status(content);
            if let Request::Revocation(request) = &plan.request
                && let Some(note) = request.done_before(&status, record.deliveries > 1)
            {
                return Ok(done(record, request.done(), note.into(), None, now_ms));
            }
            return Ok(refused(record, &status, now_ms));
        }
        (PkiBody::PkiConf, _) if confirming => return Ok(acknowledged(record, now_ms)),
        (body, _) => format!("a {} is no answer in this state", body.body_type().name()),
    };
    let failure = Failure::new(
        FailureClass::Malformed,
        Fault::Peer,
        format!("{}: {unexpected}", before.server),
        "nothing was changed; the request is repeated; show this to the CA's operator",
    );
    let trouble = NoMessage {
        failure,
        retry_after_s: None,
        not_delivered: false,
    };
    Ok(handle_trouble(before, limits, trouble, now_ms))
}

/// Makes the first request anew in another version, once. The CA has not looked at the
/// first, so that nothing is open under the transactionID.
fn retry_with(
    plan: &Plan<'_>,
    host: &dyn Host,
    mut record: TransactionRecord,
    pvno: u8,
    now_ms: u64,
) -> Result<TransactionRecord, Error> {
    record.pvno = Some(pvno);
    // It is a first message again (RFC 9483, 3.1).
    record.recip_nonce = None;
    record.note_history(
        now_ms,
        format!(
            "the CA asks for pvno {pvno}; {} made anew",
            record.operation.name()
        ),
    );
    request::enroll(plan, host, &mut record, now_ms)?;
    record.updated_ms = now_ms;
    Ok(record)
}

/// Takes an attempt that brought nothing to believe: the state stays, the same octets are
/// sent again later.
pub(crate) fn handle_trouble(
    mut record: TransactionRecord,
    limits: &Limits,
    trouble: NoMessage,
    now_ms: u64,
) -> TransactionRecord {
    let NoMessage {
        failure,
        retry_after_s,
        not_delivered,
    } = trouble;
    if failure.class == FailureClass::Permanent {
        return fail_for_good(record, failure, now_ms);
    }
    record.resends = record.resends.saturating_add(1);
    let own = Exponential::transient().delay(Some(record.resends.into()));
    let hint = retry_after_s.map_or(0, |seconds| {
        seconds.saturating_mul(1000).clamp(
            limits.minimum_poll_interval_ms,
            limits.maximum_poll_interval_ms,
        )
    });
    record.next_ms = Some(now_ms.saturating_add(own.max(hint)));
    record.updated_ms = now_ms;
    record.note_history(
        now_ms,
        match not_delivered {
            true => format!("not sent: {}", failure.reason),
            false => format!("no usable answer: {}", failure.reason),
        },
    );
    record.trouble = Some(failure);
    record
}

/// Ends a transaction that can never go on. A stored chain is kept here too, and so is
/// the reason for which a certificate was being refused.
fn fail_for_good(
    mut record: TransactionRecord,
    mut failure: Failure,
    now_ms: u64,
) -> TransactionRecord {
    if record.phase == Phase::Confirming && record.failure.is_none() {
        return issued(
            record,
            Confirmation::Unacknowledged,
            &failure.reason,
            now_ms,
        );
    }
    failure.orphan = ca_may_have_issued(&record);
    if !record.never_left() {
        failure.doubt(record.operation);
    }
    if let Some(refusal) = record.failure.take() {
        failure.reason.push_str("; ");
        failure.reason.push_str(&refusal.reason);
    }
    fail(record, failure, now_ms)
}

fn ca_may_have_issued(record: &TransactionRecord) -> bool {
    record.operation.enrolls() && !record.never_left()
}

/// Ends a transaction whose time or number of polls ran out, or whose configuration
/// changed. A stored chain is kept.
pub(crate) fn give_up(
    mut record: TransactionRecord,
    class: FailureClass,
    why: &str,
    advice: &str,
    now_ms: u64,
) -> TransactionRecord {
    if record.phase == Phase::Confirming && record.failure.is_none() {
        let text = match record.trouble.take() {
            Some(trouble) => format!("{why}; last: {}", trouble.reason),
            None => why.to_string(),
        };
        return issued(record, Confirmation::Unacknowledged, &text, now_ms);
    }
    let phase = record.phase;
    let orphan = ca_may_have_issued(&record);
    let mut reason = format!("{}: {why} (while {})", record.server, phase.name());
    if let Some(trouble) = record.trouble.take() {
        reason.push_str("; last: ");
        reason.push_str(&trouble.reason);
    }
    if let Some(refusal) = record.failure.take() {
        reason.push_str("; ");
        reason.push_str(&refusal.reason);
    }
    let fault = match class {
        FailureClass::Permanent => Fault::Configuration,
        _ => Fault::Peer,
    };
    let mut failure = Failure::new(class, fault, reason, advice);
    failure.orphan = orphan;
    if !record.never_left() {
        failure.doubt(record.operation);
    }
    fail(record, failure, now_ms)
}

fn single_response<'m, 'r>(
    plan: &Plan<'_>,
    record: &TransactionRecord,
    message: &'m CertRepMessage<'r>,
) -> Result<&'m CertResponse<'r>, &'static str> {
    let response = match message.responses.as_slice() {
        [response] => response,
        [first, ..] if Mutation::FirstOfManyResponses.is_on() => first,
        _ => return Err("the answer has not exactly one CertResponse (RFC 9483, 4.1.1)"),
    };
    // −1 answers a p10cr (RFC 9483, 4.1.4), but widespread CAs send 0.
    let expected: &[i64] = match (plan.enrollment.operation, record.cert_req_id) {
        (Operation::P10cr, _) => &[-1, 0],
        (_, _) => &[0],
    };
    if !expected.contains(&response.cert_req_id) {
        return Err("the answer is for another certReqId (RFC 9483, 4.1.1)");
    }
    Ok(response)
}

fn single_poll_rep<'m, 'r>(
    record: &TransactionRecord,
    entries: &'m [PollRep<'r>],
) -> Result<&'m PollRep<'r>, &'static str> {
    match entries {
        [entry] if Some(entry.cert_req_id) == record.cert_req_id => Ok(entry),
        [first, _, ..] if Mutation::FirstOfManyPollReps.is_on() => Ok(first),
        [_] => Err("the pollRep is for another certReqId (RFC 9483, 4.4)"),
        _ => Err("the pollRep has not exactly one entry (RFC 9483, 4.4)"),
    }
}

/// `before` is the record as it was before the answer, for one that cannot be used.
fn take_response(
    plan: &Plan<'_>,
    host: &dyn Host,
    before: TransactionRecord,
    mut record: TransactionRecord,
    message: &PkiMessage<'_>,
    response: &CertResponse<'_>,
    now_ms: u64,
) -> Result<TransactionRecord, Error> {
    let limits = &plan.enrollment.limits;
    let text = response
        .status
        .status_string
        .as_ref()
        .map(PkiFreeText::joined);
    match response.status.status {
        PkiStatus::Waiting => {
            record.phase = Phase::Polling;
            let id = match Mutation::ResponseWaitingPolledWithMinusOne.is_on() {
                true => -1,
                false => response.cert_req_id,
            };
            record.cert_req_id = Some(id);
            return Ok(wait(
                record,
                limits,
                None,
                &text.unwrap_or_default(),
                now_ms,
            ));
        }
        PkiStatus::Rejection => return Ok(refused(record, &response.status, now_ms)),
        _ => {}
    }
    let delivered = response
        .certified_key_pair
        .as_ref()
        .map(|pair| &pair.cert_or_enc_cert);
    let readable = match delivered {
        Some(CertOrEncCert::Certificate(der)) => {
            Certificate::from_der(der).map_err(|error| format!("its certificate: {error}"))
        }
        Some(CertOrEncCert::EncryptedCert(_)) => {
            Err("its certificate is encrypted, which was not asked for".into())
        }
        None => Err("it grants a certificate and brings none".into()),
    };
    let certificate = match readable {
        Ok(certificate) => certificate,
        Err(why) => {
            return Ok(unusable(before, limits, &why, now_ms));
        }
    };
    if Mutation::UnreadableExtraCertSinks.is_on() {
        let sunk = message
            .extra_certs
            .iter()
            .any(|der| Certificate::from_der(der).is_err());
        if sunk {
            let failure = Failure::new(FailureClass::Malformed, Fault::Peer, "extraCerts", "");
            let trouble = NoMessage {
                failure,
                retry_after_s: None,
                not_delivered: false,
            };
            return Ok(handle_trouble(record, limits, trouble, now_ms));
        }
    }
    let evidence = evidence(plan, message);
    // A CA that tells until when it waits for certConf wants one, whatever else it says.
    let confirm_until = message.header.confirm_wait_time();
    let granted_implicitly = plan.enrollment.implicit_confirm
        && message.header.implicit_confirm()
        && confirm_until.is_none();
    let status = response.status.status;
    record.cert_req_id = None;
    record.note_history(
        now_ms,
        format!(
            "{} with a certificate: {}",
            message.body.body_type().name(),
            shown(&certificate.subject.to_string())
        ),
    );
    let judged = match judge(plan, host, &certificate, &evidence, now_ms) {
        // The key is at the host before the chain is stored, or neither is.
        Ok((chain, caveat)) => key_generation::take(plan, host, response, &evidence, now_ms)?
            .map(|deviation| (chain, caveat.into_iter().chain(deviation)))
            .map_err(Judgement::Refused),
        Err(refusal) => Err(refusal),
    };
    let refusal = match judged {
        Ok((chain, caveat)) => {
            record.chain = chain.into_iter().map(ByteVec::from).collect();
            record.ca_pubs = evidence
                .ca_pubs
                .iter()
                .map(|ca| ByteVec::from(ca.raw.to_vec()))
                .collect();
            record.note = note(status, text.as_deref(), caveat);
            if granted_implicitly {
                return Ok(issued(record, Confirmation::Implicit, "", now_ms));
            }
            None
        }
        Err(Judgement::Noise(why)) => {
            let why = format!("its certificate: {why} among extraCerts, which nothing protects");
            return Ok(unusable(before, limits, &why, now_ms));
        }
        Err(Judgement::Refused(refusal)) => {
            record.failure = Some(Failure::new(
                FailureClass::Security,
                Fault::Peer,
                format!(
                    "{}: the certificate was refused: {}",
                    record.server, refusal.why
                ),
                "show this to the CA's operator; if the CA is right, correct the trusted \
                 certificates",
            ));
            if granted_implicitly {
                let mut failure = record.failure.take().unwrap_or_else(unknown_refusal);
                failure.orphan = true;
                return Ok(fail(record, failure, now_ms));
            }
            Some(PkiStatusInfo::rejection(refusal.fail_info, refusal.why))
        }
    };
    record.phase = Phase::Confirming;
    record.note_history(
        now_ms,
        match &refusal {
            None => match confirm_until {
                None => "chain validated and stored; confirming".into(),
                Some(until) => format!(
                    "chain validated and stored; confirming, for which the CA waits until {}",
                    until.rfc3339()
                ),
            },
            Some(_) => String::from("certificate refused; telling the CA"),
        },
    );
    request::confirm(
        plan,
        host,
        &mut record,
        now_ms,
        &cert_hash(&certificate),
        response.cert_req_id,
        refusal,
    )?;
    record.updated_ms = now_ms;
    Ok(record)
}

/// Takes an answer that is proven and brings nothing that can be used.
fn unusable(
    before: TransactionRecord,
    limits: &Limits,
    why: &str,
    now_ms: u64,
) -> TransactionRecord {
    let failure = Failure::new(
        FailureClass::Malformed,
        Fault::Peer,
        format!("{}: the answer cannot be used: {why}", before.server),
        "nothing was changed; the request is repeated; show this to the CA's operator",
    );
    let trouble = NoMessage {
        failure,
        retry_after_s: None,
        not_delivered: false,
    };
    handle_trouble(before, limits, trouble, now_ms)
}

/// Certificates that can be read: one that cannot, and is not needed, sinks nothing.
fn evidence<'r>(plan: &Plan<'_>, message: &PkiMessage<'r>) -> Evidence<'r> {
    let read = |ders: &[&'r [u8]]| -> Vec<Certificate<'r>> {
        ders.iter()
            .filter_map(|der| Certificate::from_der(der).ok())
            .collect()
    };
    // caPubs has no place in the answers to cr and kur (RFC 9483, 4.1.2 and 4.1.3).
    let ca_pubs = match (&message.body, plan.enrollment.operation) {
        (PkiBody::Ip(response), _) | (PkiBody::Cp(response), Operation::P10cr)
            if protection_kind(message) == ProtectionKind::Mac =>
        {
            read(&response.ca_pubs)
        }
        _ => Vec::new(),
    };
    Evidence {
        extra_certs: read(&message.extra_certs),
        ca_pubs,
    }
}

fn note(status: PkiStatus, text: Option<&str>, caveat: impl IntoIterator<Item = String>) -> String {
    let mut parts = Vec::new();
    if status != PkiStatus::Accepted {
        let words = text
            .map(|text| format!(": {}", shown(text)))
            .unwrap_or_default();
        parts.push(format!("the CA says {}{words}", status.name()));
    }
    parts.extend(caveat);
    parts.join("; ")
}

fn unknown_refusal() -> Failure {
    Failure::new(
        FailureClass::Security,
        Fault::Peer,
        "the certificate's signature algorithm is not supported",
        "ask the CA's operator for an algorithm of RFC 9481",
    )
}

fn error_status<'r>(content: &ErrorMsgContent<'r>) -> PkiStatusInfo<'r> {
    let mut status = content.status.clone();
    if let Some(details) = &content.error_details {
        let texts = status.status_string.get_or_insert_default();
        texts.0.extend(details.0.iter().cloned());
    }
    status
}

/// Waits as long as the CA asks, within the configured bounds (RFC 9483, 4.4).
fn wait(
    mut record: TransactionRecord,
    limits: &Limits,
    check_after_s: Option<i64>,
    reason: &str,
    now_ms: u64,
) -> TransactionRecord {
    let asked_ms = u64::try_from(check_after_s.unwrap_or(0))
        .unwrap_or(0)
        .saturating_mul(1000);
    let delay = match Mutation::CheckAfterUnbounded.is_on() {
        true => asked_ms,
        false => asked_ms.clamp(
            limits.minimum_poll_interval_ms,
            limits.maximum_poll_interval_ms,
        ),
    };
    record.pending = false;
    record.next_ms = Some(now_ms.saturating_add(delay));
    record.updated_ms = now_ms;
    let mut line = String::from("the CA says waiting");
    if let Some(seconds) = check_after_s {
        line.push_str(&format!(", checkAfter {seconds} s"));
    }
    if !reason.is_empty() {
        line.push_str(&format!(": {}", shown(reason)));
    }
    record.note_history(now_ms, line);
    record
}

fn refused(
    record: TransactionRecord,
    status: &PkiStatusInfo<'_>,
    now_ms: u64,
) -> TransactionRecord {
    let fail_info = status.fail_info.unwrap_or_default();
    // After a message that was sent more than once, a refusal of the repetition does not
    // tell what became of the first. And what is in use can only be our own transaction,
    // which something on the way has delivered twice: nobody else has these 128 bits.
    let in_doubt = record.deliveries > 1 || fail_info.intersects(FailInfo::TRANSACTION_ID_IN_USE);
    let revoked = record.operation == Operation::Rr && fail_info.intersects(FailInfo::CERT_REVOKED);
    let mut failure = Failure::new(
        FailureClass::Refused,
        Fault::Peer,
        format!(
            "{}: the CA refused: {}",
            record.server,
            shown(&status.summary())
        ),
        "",
    );
    failure.fail_info = fail_info.names().map(String::from).collect();
    failure.throttled = fail_info.intersects(FailInfo::SYSTEM_UNAVAIL);
    failure.orphan = in_doubt && record.operation.enrolls();
    failure.advice = String::from(if failure.orphan {
        "the CA may have issued a certificate that never arrived: look for the transactionID at \
         the CA and revoke it, then enroll anew"
    } else if revoked {
        "it is revoked already, by an earlier request or by somebody else: nothing is left to do"
    } else if failure.passes() {
        "begin anew after some time (RFC 9483, 3.6.4)"
    } else {
        "correct the request or ask the CA's operator, then begin anew"
    });
    if in_doubt && !revoked {
        failure.doubt(record.operation);
    }
    fail(record, failure, now_ms)
}

/// An authenticated error in answer to certConf. A validated chain is kept whatever it
/// says; certConfirmed says that the first certConf arrived.
fn confirmation_refused(
    mut record: TransactionRecord,
    content: &ErrorMsgContent<'_>,
    now_ms: u64,
) -> TransactionRecord {
    let status = error_status(content);
    let fail_info = status.fail_info.unwrap_or_default();
    if fail_info.intersects(FailInfo::CERT_CONFIRMED) && !Mutation::CertConfirmedIsRefusal.is_on() {
        return acknowledged(record, now_ms);
    }
    let words = shown(&status.summary());
    match record.failure.take() {
        Some(mut failure) => {
            failure
                .reason
                .push_str(&format!("; the CA did not take the refusal: {words}"));
            failure.orphan = true;
            fail(record, failure, now_ms)
        }
        None if Mutation::RefusedConfirmationDropsChain.is_on() => {
            record.chain.clear();
            let failure = Failure::new(FailureClass::Refused, Fault::Peer, words, "");
            fail(record, failure, now_ms)
        }
        None => {
            let why = format!("the CA refused the confirmation: {words}");
            issued(record, Confirmation::Unacknowledged, &why, now_ms)
        }
    }
}

fn acknowledged(mut record: TransactionRecord, now_ms: u64) -> TransactionRecord {
    match record.failure.take() {
        Some(failure) => {
            record.confirmation = Confirmation::Confirmed;
            fail(record, failure, now_ms)
        }
        None => issued(record, Confirmation::Confirmed, "", now_ms),
    }
}

fn issued(
    mut record: TransactionRecord,
    confirmation: Confirmation,
    caveat: &str,
    now_ms: u64,
) -> TransactionRecord {
    record.confirmation = confirmation;
    if !caveat.is_empty() {
        if !record.note.is_empty() {
            record.note.push_str("; ");
        }
        record.note.push_str(caveat);
    }
    record.note_history(
        now_ms,
        match confirmation {
            Confirmation::Implicit => "issued; the CA granted implicit confirmation".into(),
            Confirmation::Unacknowledged => {
                format!("issued, but never acknowledged by the CA: {caveat}")
            }
            _ => String::from("issued and confirmed"),
        },
    );
    ended(record, Phase::Issued, now_ms)
}

/// Ends a transaction that asked for something else than a certificate, and got it.
fn done(
    mut record: TransactionRecord,
    what: &str,
    note: String,
    information: Option<Vec<u8>>,
    now_ms: u64,
) -> TransactionRecord {
    record.note_history(
        now_ms,
        match note.as_str() {
            "" => String::from(what),
            note => format!("{what}; {note}"),
        },
    );
    record.note = note;
    record.information = information.map(ByteVec::from);
    ended(record, Phase::Done, now_ms)
}

fn fail(mut record: TransactionRecord, failure: Failure, now_ms: u64) -> TransactionRecord {
    record.note_history(now_ms, format!("failed: {}", failure.reason));
    record.failure = Some(failure);
    ended(record, Phase::Failed, now_ms)
}

/// What a finished transaction does not need any more is not kept.
fn ended(mut record: TransactionRecord, phase: Phase, now_ms: u64) -> TransactionRecord {
    record.phase = phase;
    record.pending = false;
    record.next_ms = None;
    record.cert_req_id = None;
    record.trouble = None;
    record.last_request = ByteVec::from(Vec::new());
    record.updated_ms = now_ms;
    record
}
