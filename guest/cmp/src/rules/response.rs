//! Rules about responses to requests for a certificate.

use super::body::{fail_info, one};
use super::{Findings, laws};
use crate::body::PkiBody;
use crate::cert_rep::{CertOrEncCert, CertRepMessage, CertResponse};
use crate::encrypted::EncryptedKey;
use crate::message::PkiMessage;
use crate::oid;
use crate::status::PkiStatus;

pub(super) fn check(
    message: &PkiMessage<'_>,
    content: &CertRepMessage<'_>,
    findings: &mut Findings,
) {
    let body = alloc::format!("body.{}", message.body.body_type().name());
    let issued = content
        .responses
        .iter()
        .any(|response| response.certified_key_pair.is_some());
    if !content.ca_pubs.is_empty() {
        let path = alloc::format!("{body}.caPubs");
        let is_ip = matches!(message.body, PkiBody::Ip(_));
        findings.unless(is_ip, &laws::CA_PUBS_PLACE, &path);
        findings.unless(issued, &laws::CA_PUBS_ALONE, &path);
    }
    let path = alloc::format!("{body}.response");
    one(
        content.responses.len(),
        &laws::ONE_RESPONSE,
        &path,
        findings,
    );
    let is_cp = matches!(message.body, PkiBody::Cp(_));
    for (index, entry) in content.responses.iter().enumerate() {
        let id = entry.cert_req_id;
        let known = id == 0 || (id == -1 && is_cp);
        let path = alloc::format!("{path}[{index}]");
        findings.unless(
            known,
            &laws::RESPONSE_ID,
            alloc::format!("{path}.certReqId"),
        );
        response(entry, &path, findings);
    }
    if issued && message.extra_certs.is_empty() {
        findings.add(&laws::CHAIN_MISSING, "extraCerts");
    }
}

fn response(entry: &CertResponse<'_>, path: &str, findings: &mut Findings) {
    use PkiStatus::{Accepted, GrantedWithMods, Rejection, Waiting};
    let status = alloc::format!("{path}.status");
    let granted = matches!(entry.status.status, Accepted | GrantedWithMods);
    let denied = matches!(entry.status.status, Rejection | Waiting);
    let known = granted || denied;
    findings.unless(known, &laws::RESPONSE_STATUS, &status);
    fail_info(
        &entry.status,
        &laws::FAIL_INFO_ON_SUCCESS,
        &status,
        findings,
    );
    let path = alloc::format!("{path}.certifiedKeyPair");
    let Some(pair) = &entry.certified_key_pair else {
        findings.unless(!granted, &laws::CERTIFICATE_MISSING, path);
        return;
    };
    findings.unless(!denied, &laws::CERTIFICATE_NEEDLESS, &path);
    if let CertOrEncCert::EncryptedCert(_) = &pair.cert_or_enc_cert {
        let field = alloc::format!("{path}.certOrEncCert");
        findings.add(&laws::CERTIFICATE_ENCRYPTED, field);
    }
    let Some(key) = &pair.private_key else {
        return;
    };
    let wrapped = match key {
        EncryptedKey::EncryptedValue(_) => false,
        EncryptedKey::EnvelopedData(data) => {
            data.recipients.len() == 1 && data.content_type == oid::CMS_SIGNED_DATA
        }
    };
    let field = alloc::format!("{path}.privateKey");
    findings.unless(wrapped, &laws::PRIVATE_KEY_FORM, field);
}
