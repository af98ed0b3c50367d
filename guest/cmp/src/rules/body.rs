//! Rules about bodies; those of requests and responses for certificates in files of their
//! own.

use super::protection::has_mac;
use super::{Findings, Rule, laws, request, response};
use crate::body::PkiBody;
use crate::confirm::{CertStatus, ErrorMsgContent, PollRep};
use crate::general_info::{InfoTypeAndValue, InfoValue};
use crate::message::PkiMessage;
use crate::oid;
use crate::protection::Hash;
use crate::revocation::{RevDetails, RevRepContent};
use crate::status::{PkiStatus, PkiStatusInfo};

/// id-ce-cRLReasons.
const REASON_CODE: &[u8] = &[0x55, 0x1d, 0x15];

pub(super) fn check(message: &PkiMessage<'_>, findings: &mut Findings) {
    match &message.body {
        PkiBody::Ir(requests) | PkiBody::Cr(requests) | PkiBody::Kur(requests) => {
            request::check(message, requests, findings);
        }
        PkiBody::P10cr(request) => request::check_pkcs10(request, findings),
        PkiBody::Ip(content) | PkiBody::Cp(content) | PkiBody::Kup(content) => {
            response::check(message, content, findings);
        }
        PkiBody::CertConf(statuses) => cert_conf(statuses, findings),
        PkiBody::Rr(details) => revocation(message, details, findings),
        PkiBody::Rp(content) => revocation_response(content, findings),
        PkiBody::Genm(infos) => {
            one(infos.len(), &laws::ONE_INFO, "body.genm", findings);
            infos.iter().enumerate().for_each(|(index, info)| {
                let path = alloc::format!("body.genm[{index}]");
                general_message(info, &path, findings);
            });
        }
        PkiBody::Genp(infos) => {
            one(infos.len(), &laws::ONE_INFO, "body.genp", findings);
            infos.iter().enumerate().for_each(|(index, info)| {
                let path = alloc::format!("body.genp[{index}]");
                general_response(info, &path, findings);
            });
        }
        PkiBody::Error(content) => error(content, findings),
        PkiBody::PollReq(ids) => {
            one(ids.len(), &laws::ONE_POLL, "body.pollReq", findings);
            ids.iter().enumerate().for_each(|(index, id)| {
                let path = alloc::format!("body.pollReq[{index}].certReqId");
                findings.unless(matches!(id, -1 | 0), &laws::POLL_ID, path);
            });
        }
        PkiBody::PollRep(entries) => poll_response(entries, findings),
        _ => {}
    }
}

/// Notes a list that has not exactly one element.
pub(super) fn one(count: usize, rule: &'static Rule, path: &str, findings: &mut Findings) {
    findings.unless(count == 1, rule, path);
}

/// Notes failInfo where the status allows none.
pub(super) fn fail_info(
    status: &PkiStatusInfo<'_>,
    on_success: &'static Rule,
    path: &str,
    findings: &mut Findings,
) {
    if status.fail_info.is_none() {
        return;
    }
    let path = alloc::format!("{path}.failInfo");
    match status.status {
        PkiStatus::Accepted | PkiStatus::GrantedWithMods => findings.add(on_success, path),
        PkiStatus::Waiting => findings.add(&laws::FAIL_INFO_ON_WAITING, path),
        _ => {}
    }
}

fn cert_conf(statuses: &[CertStatus<'_>], findings: &mut Findings) {
    one(
        statuses.len(),
        &laws::ONE_CERT_STATUS,
        "body.certConf",
        findings,
    );
    for (index, entry) in statuses.iter().enumerate() {
        let path = alloc::format!("body.certConf[{index}]");
        let field = |name| alloc::format!("{path}.{name}");
        let known = matches!(entry.cert_req_id, -1 | 0);
        findings.unless(known, &laws::CERT_STATUS_ID, field("certReqId"));
        if let Some(info) = &entry.status_info {
            let known = matches!(info.status, PkiStatus::Accepted | PkiStatus::Rejection);
            findings.unless(known, &laws::CERT_STATUS_STATUS, field("statusInfo.status"));
            let path = field("statusInfo");
            fail_info(info, &laws::CERT_STATUS_FAIL_INFO, &path, findings);
        }
        let hash = entry.hash_alg.and_then(|alg| Hash::from_oid(alg.oid));
        if let Some(hash) = hash {
            let fits = entry.cert_hash.len() == hash.output_length();
            findings.unless(fits, &laws::CERT_HASH_LENGTH, field("certHash"));
        }
    }
}

fn revocation(message: &PkiMessage<'_>, details: &[RevDetails<'_>], findings: &mut Findings) {
    one(details.len(), &laws::ONE_REVOCATION, "body.rr", findings);
    if has_mac(message) {
        findings.add(&laws::REVOCATION_SIGNED, "header.protectionAlg");
    }
    for (index, details) in details.iter().enumerate() {
        let path = alloc::format!("body.rr[{index}]");
        let template = &details.cert_details;
        let serial = template.others.iter().any(|(number, _)| *number == 1);
        let named = serial && template.issuer.is_some();
        let field = alloc::format!("{path}.certDetails");
        findings.unless(named, &laws::REVOCATION_NAME, field);
        let reasons = &details.crl_entry_details;
        let is_reason = reasons.len() == 1 && reasons[0].oid.content() == REASON_CODE;
        let field = alloc::format!("{path}.crlEntryDetails");
        findings.unless(is_reason, &laws::REVOCATION_REASON, field);
    }
}

fn revocation_response(content: &RevRepContent<'_>, findings: &mut Findings) {
    let count = content.status.len();
    one(
        count,
        &laws::ONE_REVOCATION_STATUS,
        "body.rp.status",
        findings,
    );
    for (index, status) in content.status.iter().enumerate() {
        let path = alloc::format!("body.rp.status[{index}]");
        let known = matches!(status.status, PkiStatus::Accepted | PkiStatus::Rejection);
        findings.unless(known, &laws::REVOCATION_STATUS, &path);
        fail_info(status, &laws::REVOCATION_FAIL_INFO, &path, findings);
    }
}

fn general_message(info: &InfoTypeAndValue<'_>, path: &str, findings: &mut Findings) {
    let path = alloc::format!("{path}.infoValue");
    match info.info_type {
        oid::IT_CA_CERTS | oid::IT_CERT_REQ_TEMPLATE => {
            findings.unless(info.value.is_none(), &laws::GENM_VALUE_NEEDLESS, path);
        }
        oid::IT_CRL_STATUS_LIST => {
            let value = info
                .interpret_with(findings.leniency)
                .map(|value| value.value);
            let one = matches!(&value, Ok(InfoValue::CrlStatusList(list)) if list.len() == 1);
            findings.unless(one, &laws::GENM_VALUE_MISSING, path);
        }
        _ => {}
    }
}

fn general_response(info: &InfoTypeAndValue<'_>, path: &str, findings: &mut Findings) {
    let value = info.interpret_with(findings.leniency);
    if let Ok(InfoValue::CertReqTemplate { template, .. }) = value.map(|value| value.value) {
        let path = alloc::format!("{path}.infoValue.certTemplate.publicKey");
        let absent = template.public_key.is_none();
        findings.unless(absent, &laws::TEMPLATE_WITH_KEY, path);
    }
}

fn error(content: &ErrorMsgContent<'_>, findings: &mut Findings) {
    let path = "body.error.pKIStatusInfo";
    let status = content.status.status;
    let known = matches!(status, PkiStatus::Rejection | PkiStatus::Waiting);
    let field = alloc::format!("{path}.status");
    findings.unless(known, &laws::ERROR_STATUS, field);
    if known {
        fail_info(&content.status, &laws::FAIL_INFO_ON_SUCCESS, path, findings);
    }
}

fn poll_response(entries: &[PollRep<'_>], findings: &mut Findings) {
    one(entries.len(), &laws::ONE_POLL, "body.pollRep", findings);
    for (index, entry) in entries.iter().enumerate() {
        let path = alloc::format!("body.pollRep[{index}]");
        let id = matches!(entry.cert_req_id, -1 | 0);
        findings.unless(id, &laws::POLL_ID, alloc::format!("{path}.certReqId"));
        let time = entry.check_after.saturating() >= 0;
        let field = alloc::format!("{path}.checkAfter");
        findings.unless(time, &laws::CHECK_AFTER, field);
    }
}
