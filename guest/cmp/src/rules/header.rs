//! Rules about the header, and about pvno, which depends on the body.

use super::{Findings, announces, laws, opens};
use crate::announcement::CaKeyUpdContent;
use crate::body::{BodyType, PkiBody};
use crate::cert_rep::{CertOrEncCert, CertifiedKeyPair};
use crate::der::Reader;
use crate::encrypted::EncryptedKey;
use crate::general_info::InfoValue;
use crate::header::{PVNO_2, PkiHeader};
use crate::message::PkiMessage;
use crate::oid;
use crate::popo::{PopoPrivKey, ProofOfPossession};
use crate::status::PkiStatus;
use crate::x509::PublicKeyInfo;

/// Octets of 128 bits.
const BITS_128: usize = 16;

pub(super) fn check(message: &PkiMessage<'_>, findings: &mut Findings) {
    let header = &message.header;
    let body = message.body.body_type();
    version(message, findings);
    if header.sender.is_null() && header.sender_kid.is_none() {
        findings.add(&laws::SENDER_UNNAMED, "header.sender");
    }
    if !announces(body) {
        identifiers(header, body, findings);
    }
    general_info(message, findings);
}

fn version(message: &PkiMessage<'_>, findings: &mut Findings) {
    let needed = needs_version_3(&message.body);
    if message.header.pvno == PVNO_2 {
        findings.unless(!needed, &laws::PVNO_TOO_LOW, "header.pvno");
    } else if opens(message.body.body_type()) && !expects_version_3(message) {
        findings.unless(needed, &laws::PVNO_TOO_HIGH, "header.pvno");
    }
}

fn needs_version_3(body: &PkiBody<'_>) -> bool {
    let enveloped = |key: &EncryptedKey<'_>| matches!(key, EncryptedKey::EnvelopedData(_));
    let pair_needs = |pair: &CertifiedKeyPair<'_>| {
        let certificate = match &pair.cert_or_enc_cert {
            CertOrEncCert::Certificate(_) => false,
            CertOrEncCert::EncryptedCert(key) => enveloped(key),
        };
        certificate || pair.private_key.as_ref().is_some_and(enveloped)
    };
    match body {
        PkiBody::Ir(requests)
        | PkiBody::Cr(requests)
        | PkiBody::Kur(requests)
        | PkiBody::Krr(requests)
        | PkiBody::Ccr(requests) => requests.iter().any(|request| {
            matches!(
                request.popo,
                Some(
                    ProofOfPossession::KeyEncipherment(
                        PopoPrivKey::AgreeMac(_) | PopoPrivKey::EncryptedKey(_)
                    ) | ProofOfPossession::KeyAgreement(
                        PopoPrivKey::AgreeMac(_) | PopoPrivKey::EncryptedKey(_)
                    )
                )
            )
        }),
        PkiBody::Ip(content)
        | PkiBody::Cp(content)
        | PkiBody::Kup(content)
        | PkiBody::Ccp(content) => content
            .responses
            .iter()
            .filter_map(|response| response.certified_key_pair.as_ref())
            .any(pair_needs),
        PkiBody::Krp(content) => content.key_pair_hist.iter().any(pair_needs),
        PkiBody::Popdecc(challenges) => challenges.iter().any(|c| c.encrypted_rand.is_some()),
        PkiBody::CertConf(statuses) => statuses.iter().any(|status| status.hash_alg.is_some()),
        PkiBody::Ckuann(content) => matches!(content, CaKeyUpdContent::V3(_)),
        _ => false,
    }
}

/// Whether the response may need version 3: for a key that the CA is to make, for a
/// certificate that comes encrypted, or for anything that a general message asks for.
fn expects_version_3(message: &PkiMessage<'_>) -> bool {
    let (PkiBody::Ir(requests) | PkiBody::Cr(requests) | PkiBody::Kur(requests)) = &message.body
    else {
        return !matches!(message.body, PkiBody::P10cr(_) | PkiBody::Rr(_));
    };
    requests.iter().any(|request| {
        let signs = matches!(
            request.popo,
            Some(ProofOfPossession::Signature { .. } | ProofOfPossession::RaVerified)
        );
        !signs || is_key_wanted(request.request.template.public_key.as_deref())
    })
}

/// Whether a CertTemplate with this publicKey asks for central key generation
/// (RFC 9483, 4.1.6).
pub(super) fn is_key_wanted(public_key: Option<&[u8]>) -> bool {
    match public_key.map(PublicKeyInfo::from_der) {
        None => true,
        Some(Ok(key)) => key.key.is_empty(),
        Some(Err(_)) => false,
    }
}

fn identifiers(header: &PkiHeader<'_>, body: BodyType, findings: &mut Findings) {
    match header.transaction_id {
        None => findings.add(&laws::TRANSACTION_ID_MISSING, "header.transactionID"),
        Some(id) => findings.unless(
            id.len() == BITS_128 || !opens(body),
            &laws::TRANSACTION_ID_LENGTH,
            "header.transactionID",
        ),
    }
    match header.sender_nonce {
        None => findings.add(&laws::SENDER_NONCE_MISSING, "header.senderNonce"),
        Some(nonce) => findings.unless(
            nonce.len() >= BITS_128,
            &laws::SENDER_NONCE_SHORT,
            "header.senderNonce",
        ),
    }
    let field = "header.recipNonce";
    // A message with a KEM-based MAC may follow the genm that asked for the ciphertext, and
    // nested messages repeat what is inside them (RFC 9483, 5.2.2.1).
    let kem = header
        .protection_alg
        .is_some_and(|a| a.oid == oid::KEM_BASED_MAC);
    match header.recip_nonce {
        _ if body == BodyType::Nested => {}
        None => findings.unless(opens(body), &laws::RECIP_NONCE_MISSING, field),
        Some(_) => findings.unless(!opens(body) || kem, &laws::RECIP_NONCE_EARLY, field),
    }
}

fn general_info(message: &PkiMessage<'_>, findings: &mut Findings) {
    use BodyType::{Cp, Cr, Ip, Ir, Kup, Kur, Nested, P10cr};
    let header = &message.header;
    let body = message.body.body_type();
    let has = |wanted| header.general_info.iter().any(|i| i.info_type == wanted);
    for (index, info) in header.general_info.iter().enumerate() {
        let path = alloc::format!("header.generalInfo[{index}]");
        let value = info
            .interpret_with(findings.leniency)
            .map(|value| value.value);
        match info.info_type {
            oid::IT_IMPLICIT_CONFIRM => {
                let null = matches!(value, Ok(InfoValue::ImplicitConfirm));
                findings.unless(null, &laws::IMPLICIT_CONFIRM_VALUE, &path);
                let placed = matches!(body, Ir | Cr | Kur | P10cr | Ip | Cp | Kup);
                findings.unless(placed, &laws::IMPLICIT_CONFIRM_PLACE, &path);
            }
            oid::IT_CONFIRM_WAIT_TIME => {
                let time = matches!(value, Ok(InfoValue::ConfirmWaitTime(_)));
                findings.unless(time, &laws::CONFIRM_WAIT_TIME_VALUE, &path);
                let implicit = has(oid::IT_IMPLICIT_CONFIRM);
                findings.unless(!implicit, &laws::CONFIRM_WAIT_TIME_IMPLICIT, &path);
                let timed = header.message_time.is_some();
                findings.unless(timed, &laws::MESSAGE_TIME_MISSING, "header.messageTime");
            }
            oid::IT_CERT_PROFILE => {
                let one = matches!(&value, Ok(InfoValue::Texts(names)) if names.0.len() == 1);
                findings.unless(one, &laws::CERT_PROFILE_VALUE, &path);
                let placed = match &message.body {
                    PkiBody::Genm(infos) => infos
                        .iter()
                        .any(|info| info.info_type == oid::IT_CERT_REQ_TEMPLATE),
                    _ => matches!(body, Ir | Cr | Kur | P10cr),
                };
                findings.unless(placed, &laws::CERT_PROFILE_PLACE, &path);
            }
            oid::IT_ORIG_PKI_MESSAGE if body != Nested => {
                let one = Reader::judged(info.value.unwrap_or_default())
                    .sequence()
                    .and_then(|mut messages| messages.any().map(|_| messages.is_empty()));
                findings.unless(one.unwrap_or(false), &laws::ORIG_PKI_MESSAGE, &path);
            }
            _ => {}
        }
    }
    let (PkiBody::Ip(content) | PkiBody::Cp(content) | PkiBody::Kup(content)) = &message.body
    else {
        return;
    };
    let granted = |status| matches!(status, PkiStatus::Accepted | PkiStatus::GrantedWithMods);
    let issued = content.responses.iter().any(|r| granted(r.status.status));
    if issued && !has(oid::IT_IMPLICIT_CONFIRM) && !has(oid::IT_CONFIRM_WAIT_TIME) {
        findings.add(&laws::CONFIRM_WAIT_TIME_MISSING, "header.generalInfo");
    }
}
