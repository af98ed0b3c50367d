//! Fields of a decoded message in the notation of the index.

use abide_cmp::{
    AttributeTypeAndValue, CertId, CertOrEncCert, CertRepMessage, CertReqMsg, CertResponse,
    Certificate, EncryptedKey, InfoTypeAndValue, InfoValue, PkiBody, PkiFreeText, PkiMessage,
    PkiStatusInfo, PopoPrivKey, ProofOfPossession, oid,
};
use sha2::{Digest, Sha256};

/// The value of a field, several joined by commas, lines by bars.
///
/// # Panics
///
/// For a name that no maker of the index uses.
pub(crate) fn fact(message: &PkiMessage<'_>, name: &str) -> String {
    let header = &message.header;
    let body = &message.body;
    match name {
        "pvno" => header.pvno.to_string(),
        "sender" => header.sender.to_string(),
        "recipient" => header.recipient.to_string(),
        "messageTime" => joined(header.message_time.map(|time| time.rfc3339())),
        "senderKID" => joined(header.sender_kid.map(hex)),
        "recipKID" => joined(header.recip_kid.map(hex)),
        "transactionID" => joined(header.transaction_id.map(hex)),
        "senderNonce" => joined(header.sender_nonce.map(hex)),
        "recipNonce" => joined(header.recip_nonce.map(hex)),
        "freeText" => joined(header.free_text.as_ref().map(lines)),
        "generalInfo" => types(&header.general_info),
        "implicitConfirm" => u8::from(header.implicit_confirm()).to_string(),
        "confirmWaitTime" => joined(header.confirm_wait_time().map(|time| time.rfc3339())),
        "certReqId" => joined(cert_req_ids(body)),
        "subject" => subject(body),
        "controls" => joined(controls(body).map(|control| last_arc(&control.oid.to_string()))),
        "oldCertID" => joined(controls(body).filter_map(old_cert_id)),
        "status" => distinct(statuses(body).iter().map(|s| s.status.name().to_owned())),
        "statusString" => joined(
            statuses(body)
                .iter()
                .filter_map(|s| Some(lines(s.status_string.as_ref()?))),
        ),
        "failInfo" => joined(
            statuses(body)
                .iter()
                .filter_map(|s| s.fail_info)
                .flat_map(|bits| bits.bits().map(|bit| bit.to_string()).collect::<Vec<_>>()),
        ),
        "caPubs" => joined(cert_rep(body).map(|content| content.ca_pubs.len().to_string())),
        "serial" => joined(serials(body)),
        "privateKey" => joined(keys(body, false).map(form)),
        "encryptedCert" => joined(keys(body, true).map(form)),
        "crlReason" => match body {
            PkiBody::Rr(details) => joined(
                details
                    .iter()
                    .flat_map(|d| &d.crl_entry_details)
                    .map(|extension| extension.value[2].to_string()),
            ),
            _ => String::new(),
        },
        "certHash" | "hashAlg" => match body {
            PkiBody::CertConf(statuses) => joined(statuses.iter().filter_map(|s| match name {
                "certHash" => Some(hex(s.cert_hash)),
                _ => Some(s.hash_alg.as_ref()?.oid.to_string()),
            })),
            _ => String::new(),
        },
        "checkAfter" | "reason" => match body {
            PkiBody::PollRep(entries) => joined(entries.iter().filter_map(|entry| match name {
                "checkAfter" => Some(entry.check_after.saturating().to_string()),
                _ => Some(lines(entry.reason.as_ref()?)),
            })),
            _ => String::new(),
        },
        "errorCode" | "errorDetails" => match body {
            PkiBody::Error(error) if name == "errorCode" => joined(error.error_code.map(hex)),
            PkiBody::Error(error) => joined(error.error_details.as_ref().map(lines)),
            _ => String::new(),
        },
        "willBeRevokedAt" | "badSinceDate" => match body {
            PkiBody::Rann(content) if name == "badSinceDate" => content.bad_since_date.rfc3339(),
            PkiBody::Rann(content) => content.will_be_revoked_at.rfc3339(),
            _ => String::new(),
        },
        "numbers" => match body {
            PkiBody::Popdecr(numbers) => joined(numbers.iter().map(|number| hex(number))),
            _ => String::new(),
        },
        "messages" => match body {
            PkiBody::Nested(messages) => messages.len().to_string(),
            _ => String::new(),
        },
        "infoTypes" => types(infos(body)),
        "kemCiphertextSha256" => joined(infos(body).iter().filter_map(|info| {
            match info.interpret().expect("a value of its type") {
                InfoValue::KemCiphertext { ciphertext, .. } => {
                    Some(hex(&Sha256::digest(ciphertext)))
                }
                _ => None,
            }
        })),
        _ => panic!("the index names an unknown field {name}"),
    }
}

/// The first proof of possession in the words of the index.
pub(crate) fn popo(body: &PkiBody<'_>) -> String {
    let Some(popo) = requests(body).iter().find_map(|r| r.popo.as_ref()) else {
        return "-".to_owned();
    };
    match popo {
        ProofOfPossession::Signature { input: Some(_), .. } => "signature poskInput".to_owned(),
        ProofOfPossession::KeyEncipherment(key) | ProofOfPossession::KeyAgreement(key) => {
            let choice = match key {
                PopoPrivKey::ThisMessage(_) => "thisMessage",
                PopoPrivKey::EncrCert => "encrCert",
                PopoPrivKey::ChallengeResp => "challengeResp",
                PopoPrivKey::DhMac(_) => "dhMAC",
                PopoPrivKey::AgreeMac(_) => "agreeMAC",
                PopoPrivKey::EncryptedKey(_) => "encryptedKey",
            };
            format!("{} {choice}", popo.name())
        }
        _ => popo.name().to_owned(),
    }
}

pub(crate) fn requests<'b, 'a>(body: &'b PkiBody<'a>) -> &'b [CertReqMsg<'a>] {
    match body {
        PkiBody::Ir(requests)
        | PkiBody::Cr(requests)
        | PkiBody::Kur(requests)
        | PkiBody::Krr(requests)
        | PkiBody::Ccr(requests) => requests,
        _ => &[],
    }
}

pub(crate) fn infos<'b, 'a>(body: &'b PkiBody<'a>) -> &'b [InfoTypeAndValue<'a>] {
    match body {
        PkiBody::Genm(infos) | PkiBody::Genp(infos) => infos,
        _ => &[],
    }
}

fn cert_rep<'b, 'a>(body: &'b PkiBody<'a>) -> Option<&'b CertRepMessage<'a>> {
    match body {
        PkiBody::Ip(content)
        | PkiBody::Cp(content)
        | PkiBody::Kup(content)
        | PkiBody::Ccp(content) => Some(content),
        _ => None,
    }
}

fn responses<'b, 'a>(body: &'b PkiBody<'a>) -> &'b [CertResponse<'a>] {
    cert_rep(body).map_or(&[], |content| &content.responses)
}

fn cert_req_ids(body: &PkiBody<'_>) -> Vec<String> {
    let ids: Vec<i64> = match body {
        PkiBody::CertConf(statuses) => statuses.iter().map(|s| s.cert_req_id).collect(),
        PkiBody::PollReq(ids) => ids.clone(),
        PkiBody::PollRep(entries) => entries.iter().map(|entry| entry.cert_req_id).collect(),
        _ => {
            let asked = requests(body).iter().map(|r| r.request.cert_req_id);
            asked
                .chain(responses(body).iter().map(|r| r.cert_req_id))
                .collect()
        }
    };
    ids.iter().map(i64::to_string).collect()
}

fn subject(body: &PkiBody<'_>) -> String {
    match body {
        PkiBody::P10cr(request) => request.subject.to_string(),
        _ => distinct(
            requests(body)
                .iter()
                .filter_map(|r| Some(r.request.template.subject.as_ref()?.to_string())),
        ),
    }
}

fn controls<'b, 'a>(body: &'b PkiBody<'a>) -> impl Iterator<Item = &'b AttributeTypeAndValue<'a>> {
    requests(body).iter().flat_map(|r| &r.request.controls)
}

fn old_cert_id(control: &AttributeTypeAndValue<'_>) -> Option<String> {
    (control.oid == oid::REG_CTRL_OLD_CERT_ID).then(|| {
        hex(CertId::from_der(control.value)
            .expect("a CertId")
            .serial_number)
    })
}

fn statuses<'a>(body: &PkiBody<'a>) -> Vec<PkiStatusInfo<'a>> {
    match body {
        PkiBody::Rp(content) => content.status.clone(),
        PkiBody::Krp(content) => vec![content.status.clone()],
        PkiBody::Error(error) => vec![error.status.clone()],
        PkiBody::Rann(content) => vec![PkiStatusInfo::new(content.status)],
        PkiBody::CertConf(statuses) => {
            let given = statuses.iter().filter_map(|s| s.status_info.clone());
            given.collect()
        }
        _ => responses(body).iter().map(|r| r.status.clone()).collect(),
    }
}

/// Of the certificates a body is about.
fn serials(body: &PkiBody<'_>) -> Vec<String> {
    let of = |der: &[u8]| hex(Certificate::from_der(der).expect("a certificate").serial);
    match body {
        PkiBody::Cann(der) => vec![of(der)],
        PkiBody::Krp(content) => content.new_sig_cert.iter().map(|der| of(der)).collect(),
        PkiBody::Rann(content) => vec![hex(content.cert_id.serial_number)],
        _ => responses(body)
            .iter()
            .filter_map(|r| match &r.certified_key_pair.as_ref()?.cert_or_enc_cert {
                CertOrEncCert::Certificate(der) => Some(of(der)),
                CertOrEncCert::EncryptedCert(_) => None,
            })
            .collect(),
    }
}

/// What is encrypted in the responses: certificates or private keys.
fn keys<'b, 'a>(
    body: &'b PkiBody<'a>,
    certificates: bool,
) -> impl Iterator<Item = &'b EncryptedKey<'a>> {
    responses(body).iter().filter_map(move |r| {
        let pair = r.certified_key_pair.as_ref()?;
        match &pair.cert_or_enc_cert {
            CertOrEncCert::EncryptedCert(certificate) if certificates => Some(certificate),
            _ if certificates => None,
            _ => pair.private_key.as_ref(),
        }
    })
}

fn form(key: &EncryptedKey<'_>) -> String {
    match key {
        EncryptedKey::EncryptedValue(_) => "encryptedValue".to_owned(),
        EncryptedKey::EnvelopedData(_) => "envelopedData".to_owned(),
    }
}

fn types(infos: &[InfoTypeAndValue<'_>]) -> String {
    joined(infos.iter().map(|info| info.info_type.to_string()))
}

fn lines(text: &PkiFreeText<'_>) -> String {
    text.0.join("|")
}

fn last_arc(oid: &str) -> String {
    oid.rsplit('.').next().unwrap_or_default().to_owned()
}

fn joined(values: impl IntoIterator<Item = String>) -> String {
    values.into_iter().collect::<Vec<_>>().join(",")
}

fn distinct(values: impl IntoIterator<Item = String>) -> String {
    let mut values: Vec<String> = values.into_iter().collect();
    values.dedup();
    values.join(",")
}

fn hex(octets: &[u8]) -> String {
    octets.iter().map(|octet| format!("{octet:02x}")).collect()
}
