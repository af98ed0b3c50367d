//! Bodies, one function for each structure.

use super::Scope;
use super::algorithm::algorithm;
use super::cms::enveloped_data;
use super::crl::any_crl;
use super::crmf::{cert_id, cert_template, encrypted_key, publication_info, request};
use super::extension::extension;
use super::info::info;
use super::message::{free_text, nested};
use super::node::{Node, hex, integer, list, object, optional, readable, text};
use super::x509::{any_certificate, certification_request};
use crate::announcement::{CaKeyUpdContent, RootCaKeyUpdateContent};
use crate::body::PkiBody;
use crate::cert_rep::{CertOrEncCert, CertResponse, CertifiedKeyPair};
use crate::confirm::{CertStatus, ErrorMsgContent, PollRep};
use crate::pop::Challenge;
use crate::status::PkiStatusInfo;

pub(super) fn body(body: &PkiBody<'_>, scope: Scope<'_>) -> Node {
    let name = body.body_type().name();
    let content = match body {
        PkiBody::Ir(requests)
        | PkiBody::Cr(requests)
        | PkiBody::Kur(requests)
        | PkiBody::Krr(requests)
        | PkiBody::Ccr(requests) => list(requests, request),
        PkiBody::Ip(response)
        | PkiBody::Cp(response)
        | PkiBody::Kup(response)
        | PkiBody::Ccp(response) => object([
            (
                "caPubs",
                list(&response.ca_pubs, |der| any_certificate(der, scope)),
            ),
            (
                "response",
                list(&response.responses, |one| cert_response(one, scope)),
            ),
        ]),
        PkiBody::P10cr(request) => certification_request(request),
        PkiBody::Popdecc(challenges) => list(challenges, challenge),
        PkiBody::Popdecr(numbers) => list(numbers, |number| integer(number)),
        PkiBody::Krp(content) => object([
            ("status", status(&content.status)),
            (
                "newSigCert",
                optional(content.new_sig_cert, |der| any_certificate(der, scope)),
            ),
            (
                "caCerts",
                list(&content.ca_certs, |der| any_certificate(der, scope)),
            ),
            (
                "keyPairHist",
                list(&content.key_pair_hist, |pair| {
                    certified_key_pair(pair, scope)
                }),
            ),
        ]),
        PkiBody::Rr(details) => list(details, |details| {
            object([
                ("certDetails", cert_template(&details.cert_details)),
                (
                    "crlEntryDetails",
                    list(&details.crl_entry_details, extension),
                ),
            ])
        }),
        PkiBody::Rp(content) => object([
            ("status", list(&content.status, status)),
            ("revCerts", list(&content.rev_certs, cert_id)),
            ("crls", list(&content.crls, |der| any_crl(der, scope))),
        ]),
        PkiBody::Ckuann(CaKeyUpdContent::V2 {
            old_with_new,
            new_with_old,
            new_with_new,
        }) => object([
            ("oldWithNew", any_certificate(old_with_new, scope)),
            ("newWithOld", any_certificate(new_with_old, scope)),
            ("newWithNew", any_certificate(new_with_new, scope)),
        ]),
        PkiBody::Ckuann(CaKeyUpdContent::V3(content)) => root_ca_key_update(content, scope),
        PkiBody::Cann(der) => any_certificate(der, scope),
        PkiBody::Rann(content) => object([
            ("status", text(content.status.name())),
            ("certId", cert_id(&content.cert_id)),
            (
                "willBeRevokedAt",
                text(content.will_be_revoked_at.rfc3339()),
            ),
            ("badSinceDate", text(content.bad_since_date.rfc3339())),
            ("crlDetails", list(&content.crl_details, extension)),
        ]),
        PkiBody::Crlann(crls) => list(crls, |der| any_crl(der, scope)),
        PkiBody::PkiConf => Node::Absent,
        PkiBody::Nested(messages) => list(messages, |der| nested(der, scope)),
        PkiBody::Genm(infos) | PkiBody::Genp(infos) => list(infos, |one| info(one, scope)),
        PkiBody::Error(content) => error(content),
        PkiBody::CertConf(statuses) => list(statuses, cert_status),
        PkiBody::PollReq(ids) => list(ids, |id| object([("certReqId", Node::Number(*id))])),
        PkiBody::PollRep(entries) => list(entries, poll_rep),
    };
    object([("type", text(name)), ("content", content)])
}

fn challenge(challenge: &Challenge<'_>) -> Node {
    object([
        ("owf", optional(challenge.owf.as_ref(), algorithm)),
        ("witness", hex(challenge.witness)),
        ("challenge", hex(challenge.challenge)),
        (
            "encryptedRand",
            optional(challenge.encrypted_rand.as_ref(), enveloped_data),
        ),
    ])
}

pub(super) fn root_ca_key_update(content: &RootCaKeyUpdateContent<'_>, scope: Scope<'_>) -> Node {
    let certificate = |der: &[u8]| any_certificate(der, scope);
    object([
        ("newWithNew", any_certificate(content.new_with_new, scope)),
        ("newWithOld", optional(content.new_with_old, certificate)),
        ("oldWithNew", optional(content.old_with_new, certificate)),
    ])
}

fn cert_response(response: &CertResponse<'_>, scope: Scope<'_>) -> Node {
    object([
        ("certReqId", Node::Number(response.cert_req_id)),
        ("status", status(&response.status)),
        (
            "certifiedKeyPair",
            optional(response.certified_key_pair.as_ref(), |pair| {
                certified_key_pair(pair, scope)
            }),
        ),
        (
            "rspInfo",
            // Like utf8Pairs (RFC 9810, 5.3.4), so text as a rule.
            optional(response.rsp_info, |octets| {
                readable(octets).map_or_else(|| hex(octets), text)
            }),
        ),
    ])
}

fn certified_key_pair(pair: &CertifiedKeyPair<'_>, scope: Scope<'_>) -> Node {
    let (clear, encrypted) = match &pair.cert_or_enc_cert {
        CertOrEncCert::Certificate(der) => (any_certificate(der, scope), Node::Absent),
        CertOrEncCert::EncryptedCert(key) => (Node::Absent, encrypted_key(key)),
    };
    object([
        ("certificate", clear),
        ("encryptedCert", encrypted),
        (
            "privateKey",
            optional(pair.private_key.as_ref(), encrypted_key),
        ),
        (
            "publicationInfo",
            optional(pair.publication_info, publication_info),
        ),
    ])
}

fn status(info: &PkiStatusInfo<'_>) -> Node {
    let fail_info: alloc::vec::Vec<_> = info
        .fail_info
        .into_iter()
        .flat_map(|set| set.names())
        .collect();
    object([
        ("status", text(info.status.name())),
        (
            "statusString",
            optional(info.status_string.as_ref(), free_text),
        ),
        ("failInfo", list(&fail_info, |name| text(name))),
    ])
}

fn cert_status(entry: &CertStatus<'_>) -> Node {
    object([
        ("certHash", hex(entry.cert_hash)),
        ("certReqId", Node::Number(entry.cert_req_id)),
        ("statusInfo", optional(entry.status_info.as_ref(), status)),
        ("hashAlg", optional(entry.hash_alg.as_ref(), algorithm)),
    ])
}

fn poll_rep(entry: &PollRep<'_>) -> Node {
    object([
        ("certReqId", Node::Number(entry.cert_req_id)),
        ("checkAfter", Node::Number(entry.check_after.saturating())),
        ("reason", optional(entry.reason.as_ref(), free_text)),
    ])
}

fn error(content: &ErrorMsgContent<'_>) -> Node {
    object([
        ("pKIStatusInfo", status(&content.status)),
        ("errorCode", optional(content.error_code, integer)),
        (
            "errorDetails",
            optional(content.error_details.as_ref(), free_text),
        ),
    ])
}
