//! Rules about requests for a certificate.

use super::body::one;
use super::header::is_key_wanted;
use super::protection::{has_mac, may_be_made_with, signer};
use super::{Findings, Names, laws};
use crate::body::{BodyType, PkiBody};
use crate::crmf::{CertId, CertReqMsg, CertTemplate};
use crate::message::PkiMessage;
use crate::name::Name;
use crate::oid;
use crate::popo::ProofOfPossession;
use crate::x509::{Certificate, CertificationRequest, Extension, PublicKeyInfo};

/// id-kp-cmcRA (RFC 6402, 2.10).
const CMC_RA: &[u8] = &[0x2b, 0x06, 0x01, 0x05, 0x05, 0x07, 0x03, 0x1c];

pub(super) fn check(
    message: &PkiMessage<'_>,
    requests: &[CertReqMsg<'_>],
    findings: &mut Findings,
) {
    let body = alloc::format!("body.{}", message.body.body_type().name());
    one(requests.len(), &laws::ONE_REQUEST, &body, findings);
    let signer = match has_mac(message) {
        true => None,
        false => signer(message, findings)
            .flatten()
            .map(|signer| signer.certificate),
    };
    for (index, request) in requests.iter().enumerate() {
        let path = alloc::format!("{body}[{index}]");
        let zero = request.request.cert_req_id == 0;
        let field = alloc::format!("{path}.certReq.certReqId");
        findings.unless(zero, &laws::REQUEST_ID, field);
        let field = alloc::format!("{path}.certReq.certTemplate");
        template(&request.request.template, &field, findings);
        let field = alloc::format!("{path}.popo");
        proof(request, signer.as_ref(), &field, findings);
    }
    if matches!(message.body, PkiBody::Kur(_)) {
        key_update(message, requests, signer.as_ref(), findings);
    }
}

pub(super) fn check_pkcs10(request: &CertificationRequest<'_>, findings: &mut Findings) {
    let path = alloc::format!("body.{}", BodyType::P10cr.name());
    let named = is_named(Some(&request.subject), &request.extensions);
    let field = alloc::format!("{path}.subject");
    findings.unless(named, &laws::P10CR_SUBJECT, field);
    let fits = may_be_made_with(request.signature_algorithm.oid, &request.public_key);
    let field = alloc::format!("{path}.signatureAlgorithm");
    findings.unless(fits, &laws::P10CR_ALGORITHM, field);
}

fn is_named(subject: Option<&Name<'_>>, extensions: &[Extension<'_>]) -> bool {
    match subject {
        None => false,
        Some(name) => !name.is_null() || extensions.iter().any(|e| e.oid == oid::SUBJECT_ALT_NAME),
    }
}

fn template(template: &CertTemplate<'_>, path: &str, findings: &mut Findings) {
    for (number, der) in &template.others {
        match number {
            0 => {
                let is_v3 = *der == [0x80, 1, 2];
                let field = alloc::format!("{path}.version");
                findings.unless(is_v3, &laws::TEMPLATE_VERSION, field);
            }
            1 | 2 | 7 | 8 => {
                let name = match number {
                    1 => "serialNumber",
                    2 => "signingAlg",
                    7 => "issuerUID",
                    _ => "subjectUID",
                };
                let field = alloc::format!("{path}.{name}");
                findings.add(&laws::TEMPLATE_FIELDS, field);
            }
            _ => {}
        }
    }
    let named = is_named(template.subject.as_ref(), &template.extensions);
    let field = alloc::format!("{path}.subject");
    findings.unless(named, &laws::TEMPLATE_SUBJECT, field);
}

fn proof(
    request: &CertReqMsg<'_>,
    signer: Option<&Certificate<'_>>,
    path: &str,
    findings: &mut Findings,
) {
    let public_key = request.request.template.public_key.as_deref();
    let wanted = is_key_wanted(public_key);
    let Some(popo) = &request.popo else {
        findings.unless(wanted, &laws::POPO_MISSING, path);
        return;
    };
    findings.unless(!wanted, &laws::POPO_NEEDLESS, path);
    let key = public_key.and_then(|der| PublicKeyInfo::from_der(der).ok());
    match popo {
        ProofOfPossession::Signature {
            input, algorithm, ..
        } => {
            let field = alloc::format!("{path}.signature.poposkInput");
            findings.unless(input.is_none(), &laws::POPO_INPUT, field);
            let fits = key.is_none_or(|key| may_be_made_with(algorithm.oid, &key));
            let field = alloc::format!("{path}.signature.algorithmIdentifier");
            findings.unless(fits, &laws::POPO_ALGORITHM, field);
        }
        ProofOfPossession::RaVerified => {
            let by_ra = signer.is_some_and(is_registration_authority);
            findings.unless(by_ra, &laws::POPO_RA_VERIFIED, path);
        }
        ProofOfPossession::KeyEncipherment(_) | ProofOfPossession::KeyAgreement(_) => {
            let signs = key.is_some_and(|key| can_sign(&key));
            findings.unless(!signs, &laws::POPO_SIGNATURE, path);
        }
    }
}

fn is_registration_authority(certificate: &Certificate<'_>) -> bool {
    let usage = certificate.extension(oid::EXTENDED_KEY_USAGE);
    usage.is_some_and(|usage| {
        let purposes = crate::der::Reader::judged(usage.value).sequence_of(crate::der::Reader::oid);
        purposes.is_ok_and(|purposes| purposes.iter().any(|oid| oid.content() == CMC_RA))
    })
}

/// Whether keys of this kind sign, whatever the certificate will say.
fn can_sign(key: &PublicKeyInfo<'_>) -> bool {
    [
        oid::RSA_ENCRYPTION,
        oid::RSA_PSS,
        oid::EC_PUBLIC_KEY,
        oid::ED25519,
        oid::ED448,
        oid::ML_DSA_44,
        oid::ML_DSA_65,
        oid::ML_DSA_87,
    ]
    .contains(&key.algorithm.oid)
}

fn key_update(
    message: &PkiMessage<'_>,
    requests: &[CertReqMsg<'_>],
    signer: Option<&Certificate<'_>>,
    findings: &mut Findings,
) {
    if has_mac(message) {
        findings.add(&laws::KUR_SIGNED, "header.protectionAlg");
    }
    for (index, request) in requests.iter().enumerate() {
        let path = alloc::format!("body.kur[{index}].certReq.controls");
        let controls = &request.request.controls;
        let old = controls.iter().find(|c| c.oid == oid::REG_CTRL_OLD_CERT_ID);
        let Some(old) = old else {
            findings.add(&laws::KUR_OLD_CERT_ID, path);
            continue;
        };
        // An RA that protects the message again is not the one whose certificate is updated.
        let (Ok(id), Some(signer)) = (CertId::from_der(old.value), signer) else {
            continue;
        };
        let issuer = id.issuer.directory();
        let same = id.serial_number == signer.serial
            && issuer
                .is_some_and(|name| findings.compare(name, &signer.issuer) != Some(Names::Other));
        let by_ra = is_registration_authority(signer);
        findings.unless(same || by_ra, &laws::KUR_OTHER_CERT, path);
    }
}
