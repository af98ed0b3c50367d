//! What the Lightweight Profile demands of an answer beyond its grammar, and what the answer
//! tells beside its business.

use alloc::format;
use alloc::string::{String, ToString};

use abide_cmp::rules::{self, Rule, laws};
use abide_cmp::{CertRepMessage, ErrorMsgContent, FailInfo, PkiBody, PkiMessage, Time};

use crate::limits;
use crate::plan::Plan;
use crate::record::{Phase, TransactionRecord};

/// An answer that breaks one of these contradicts itself, so that nobody can tell what the
/// CA has done. How many parts it has, and for what they are, is judged by the machine.
static DEMANDED: [&Rule; 7] = [
    &laws::RESPONSE_STATUS,
    &laws::FAIL_INFO_ON_SUCCESS,
    &laws::FAIL_INFO_ON_WAITING,
    &laws::CERTIFICATE_MISSING,
    &laws::CERTIFICATE_NEEDLESS,
    &laws::REVOCATION_FAIL_INFO,
    &laws::TEMPLATE_WITH_KEY,
];

/// Which rule the answer breaks, in words.
pub(crate) fn fault(plan: &Plan<'_>, message: &PkiMessage<'_>) -> Option<String> {
    let leniency = plan.enrollment.allow.leniency();
    let broken = rules::check_body(message, leniency)
        .into_iter()
        .find(|finding| DEMANDED.contains(&finding.rule));
    if let Some(broken) = broken {
        return Some(broken.to_string());
    }
    let (PkiBody::Ip(content) | PkiBody::Cp(content) | PkiBody::Kup(content)) = &message.body
    else {
        return None;
    };
    (brings_a_key(content) && !plan.generates_key())
        .then(|| "it brings a private key that was not asked for (RFC 9483, 4.1.1)".to_string())
}

fn brings_a_key(content: &CertRepMessage<'_>) -> bool {
    let mut pairs = content
        .responses
        .iter()
        .filter_map(|response| response.certified_key_pair.as_ref());
    pairs.any(|pair| pair.private_key.is_some())
}

/// Tells of a clock of the CA that is far from ours.
pub(crate) fn clock_skew(message_time: Option<Time>, now_ms: u64) -> Option<String> {
    let ahead = i128::from(message_time?.unix()) - i128::from(now_ms / 1000);
    let seconds = ahead.unsigned_abs();
    let way = if ahead > 0 { "ahead of" } else { "behind" };
    (seconds > limits::CLOCK_SKEW_S.into())
        .then(|| format!("the CA's clock is {seconds} s {way} ours"))
}

/// Whether the CA wants the first request in a newer version that is spoken here
/// (RFC 9810, 7), and was not given it yet. An older one is of no use: what can do with it is
/// in it already.
pub(crate) fn wants_newer(
    record: &TransactionRecord,
    pvno: u8,
    content: &ErrorMsgContent<'_>,
) -> bool {
    let asked = content
        .status
        .fail_info
        .is_some_and(|info| info.intersects(FailInfo::UNSUPPORTED_VERSION));
    let used = PkiMessage::from_der(&record.last_request).map(|request| request.header.pvno);
    asked
        && record.phase == Phase::Enrolling
        && record.pvno.is_none()
        && used.is_ok_and(|used| used < pvno)
}
