//! Bodies, one function for each structure.

use alloc::vec::Vec;

use super::info::info;
use super::node::{Node, hex, list, object, optional, text};
use super::x509::{
    algorithm, attribute, cert_id, cert_template, certificate, certification_request,
    encrypted_key, enveloped_data, extension, general_name, public_key,
};
use super::{free_text, nested};
use crate::announcement::{CaKeyUpdContent, RootCaKeyUpdateContent};
use crate::body::PkiBody;
use crate::cert_rep::{CertOrEncCert, CertResponse, CertifiedKeyPair};
use crate::confirm::{CertStatus, ErrorMsgContent, PollRep};
use crate::crmf::CertReqMsg;
use crate::pop::Challenge;
use crate::popo::{PopoPrivKey, ProofOfPossession};
use crate::status::PkiStatusInfo;

pub(super) fn body(body: &PkiBody<'_>) -> Node {
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
            ("caPubs", list(&response.ca_pubs, |der| certificate(der))),
            ("response", list(&response.responses, cert_response)),
        ]),
        PkiBody::P10cr(request) => certification_request(request),
        PkiBody::Popdecc(challenges) => list(challenges, challenge),
        PkiBody::Popdecr(numbers) => list(numbers, |number| hex(number)),
        PkiBody::Krp(content) => object([
            ("status", status(&content.status)),
            ("newSigCert", optional(content.new_sig_cert, certificate)),
            ("caCerts", list(&content.ca_certs, |der| certificate(der))),
            (
                "keyPairHist",
                list(&content.key_pair_hist, certified_key_pair),
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
            ("crls", list(&content.crls, |der| hex(der))),
        ]),
        PkiBody::Ckuann(CaKeyUpdContent::V2 {
            old_with_new,
            new_with_old,
            new_with_new,
        }) => object([
            ("oldWithNew", certificate(old_with_new)),
            ("newWithOld", certificate(new_with_old)),
            ("newWithNew", certificate(new_with_new)),
        ]),
        PkiBody::Ckuann(CaKeyUpdContent::V3(content)) => root_ca_key_update(content),
        PkiBody::Cann(der) => certificate(der),
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
        PkiBody::Crlann(crls) => list(crls, |der| hex(der)),
        PkiBody::PkiConf => Node::Absent,
        PkiBody::Nested(messages) => list(messages, |der| nested(der)),
        PkiBody::Genm(infos) | PkiBody::Genp(infos) => list(infos, info),
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

pub(super) fn root_ca_key_update(content: &RootCaKeyUpdateContent<'_>) -> Node {
    object([
        ("newWithNew", certificate(content.new_with_new)),
        ("newWithOld", optional(content.new_with_old, certificate)),
        ("oldWithNew", optional(content.old_with_new, certificate)),
    ])
}

fn request(message: &CertReqMsg<'_>) -> Node {
    object([
        ("certReqId", Node::Number(message.request.cert_req_id)),
        ("certTemplate", cert_template(&message.request.template)),
        ("controls", list(&message.request.controls, attribute)),
        ("popo", optional(message.popo.as_ref(), popo)),
        ("regInfo", list(&message.reg_info, attribute)),
    ])
}

fn popo(popo: &ProofOfPossession<'_>) -> Node {
    let (input, algorithm_identifier, signature, key) = match popo {
        ProofOfPossession::RaVerified => (None, None, None, None),
        ProofOfPossession::Signature {
            input,
            algorithm,
            signature,
        } => (input.as_ref(), Some(algorithm), Some(signature), None),
        ProofOfPossession::KeyEncipherment(key) | ProofOfPossession::KeyAgreement(key) => {
            (None, None, None, Some(key))
        }
    };
    object([
        ("type", text(popo.name())),
        (
            "poposkInput",
            optional(input, |input| {
                object([
                    ("sender", optional(input.sender.as_ref(), general_name)),
                    ("publicKey", public_key(input.public_key.raw)),
                ])
            }),
        ),
        (
            "algorithmIdentifier",
            optional(algorithm_identifier, algorithm),
        ),
        ("signature", optional(signature, |signature| hex(signature))),
        ("privateKey", optional(key, private_key)),
    ])
}

fn private_key(key: &PopoPrivKey<'_>) -> Node {
    let (name, value) = match key {
        PopoPrivKey::ThisMessage(bits) => ("thisMessage", hex(bits)),
        PopoPrivKey::EncrCert => ("encrCert", Node::Absent),
        PopoPrivKey::ChallengeResp => ("challengeResp", Node::Absent),
        PopoPrivKey::DhMac(bits) => ("dhMAC", hex(bits)),
        PopoPrivKey::AgreeMac(contents) => ("agreeMAC", hex(contents)),
        PopoPrivKey::EncryptedKey(data) => ("encryptedKey", enveloped_data(data)),
    };
    object([("type", text(name)), ("value", value)])
}

fn cert_response(response: &CertResponse<'_>) -> Node {
    object([
        ("certReqId", Node::Number(response.cert_req_id)),
        ("status", status(&response.status)),
        (
            "certifiedKeyPair",
            optional(response.certified_key_pair.as_ref(), certified_key_pair),
        ),
        ("rspInfo", optional(response.rsp_info, hex)),
    ])
}

fn certified_key_pair(pair: &CertifiedKeyPair<'_>) -> Node {
    let (clear, encrypted) = match &pair.cert_or_enc_cert {
        CertOrEncCert::Certificate(der) => (certificate(der), Node::Absent),
        CertOrEncCert::EncryptedCert(key) => (Node::Absent, encrypted_key(key)),
    };
    object([
        ("certificate", clear),
        ("encryptedCert", encrypted),
        (
            "privateKey",
            optional(pair.private_key.as_ref(), encrypted_key),
        ),
        ("publicationInfo", optional(pair.publication_info, hex)),
    ])
}

fn status(info: &PkiStatusInfo<'_>) -> Node {
    let fail_info: Vec<_> = info
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
        ("errorCode", optional(content.error_code, hex)),
        (
            "errorDetails",
            optional(content.error_details.as_ref(), free_text),
        ),
    ])
}
