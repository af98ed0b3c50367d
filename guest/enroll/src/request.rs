//! The messages that are sent.

use alloc::vec::Vec;

use abide_cmp::der::{Writer, tag};
use abide_cmp::protection::{CertHash, Hash, MacAlgorithm, SignatureAlgorithm};
use abide_cmp::{
    AlgorithmIdentifier, AttributeTypeAndValue, CertId, CertReqMsg, CertRequest, CertStatus,
    Certificate, Draft, GeneralName, InfoTypeAndValue, Name, PVNO_3, PkiBody, PkiHeader,
    PkiStatusInfo, ProofOfPossession, PublicKeyInfo, Time, oid,
};
use minicbor::bytes::ByteVec;

use crate::driver::Error;
use crate::enrollment::{CertificateCredential, Credential, MacKind, Operation};
use crate::host::Host;
use crate::limits;
use crate::plan::{Plan, Request};
use crate::record::TransactionRecord;
use crate::registration;

/// Writes the first request into a record that is being made.
pub(crate) fn enroll(
    plan: &Plan<'_>,
    host: &dyn Host,
    record: &mut TransactionRecord,
    now_ms: u64,
) -> Result<(), Error> {
    // What the body borrows from.
    let (parameters, old);
    let body = match &plan.request {
        Request::Csr(csr) => PkiBody::P10cr(csr.clone()),
        Request::Template {
            key,
            public_key,
            generated,
            ..
        } => {
            let template = plan.template().unwrap_or_default();
            // The certificate that is updated, which also signs (RFC 9483, 4.1.3).
            old = match (plan.enrollment.operation, &plan.own) {
                (Operation::Kur, Some(own)) => Some(Writer::encode(|w| {
                    let issuer = GeneralName::Directory(own.issuer.clone());
                    let serial_number = own.serial;
                    CertId {
                        issuer,
                        serial_number,
                    }
                    .write(w);
                })),
                _ => None,
            };
            let old_cert_id = old.as_deref().map(|value| AttributeTypeAndValue {
                oid: oid::REG_CTRL_OLD_CERT_ID,
                value,
            });
            let mut message = CertReqMsg::new(CertRequest {
                cert_req_id: 0,
                template,
                controls: old_cert_id.into_iter().collect(),
            });
            message.popo = match public_key {
                // Who does not hold the key cannot prove it (RFC 9483, 4.1.6).
                _ if *generated => None,
                _ if registration::is_ra_verified(plan.enrollment) => {
                    Some(ProofOfPossession::RaVerified)
                }
                None => None,
                Some(public_key) => {
                    let invalid = |why: &dyn core::fmt::Display| {
                        Error::Invalid(alloc::format!("the new key: {why}"))
                    };
                    let public_key =
                        PublicKeyInfo::from_der(public_key).map_err(|error| invalid(&error))?;
                    let algorithm = SignatureAlgorithm::for_key(&public_key)
                        .map_err(|error| invalid(&error))?;
                    let signature = host
                        .sign(key, algorithm, &message.raw_request)
                        .map_err(|error| Error::Key(error.0))?;
                    parameters = algorithm.parameters();
                    Some(ProofOfPossession::Signature {
                        input: None,
                        algorithm: AlgorithmIdentifier {
                            oid: algorithm.oid(),
                            parameters: parameters.as_deref(),
                        },
                        signature: signature.into(),
                    })
                }
            };
            match plan.enrollment.operation {
                Operation::Cr => PkiBody::Cr(alloc::vec![message]),
                Operation::Kur => PkiBody::Kur(alloc::vec![message]),
                _ => PkiBody::Ir(alloc::vec![message]),
            }
        }
        Request::Revocation(request) => request.body(),
        Request::Information(request) => request.body(),
    };
    write(plan, host, record, now_ms, &body)?;
    record.request_nonce = record.last_nonce.clone();
    registration::wrap(plan, host, record, now_ms)
}

/// Writes a pollReq for the certReqId that the CA gave (RFC 9483, 4.4).
pub(crate) fn poll(
    plan: &Plan<'_>,
    host: &dyn Host,
    record: &mut TransactionRecord,
    now_ms: u64,
) -> Result<(), Error> {
    let id = record.cert_req_id.unwrap_or(-1);
    write(
        plan,
        host,
        record,
        now_ms,
        &PkiBody::PollReq(alloc::vec![id]),
    )
}

/// Writes the certConf that accepts or, with a reason, refuses a certificate.
pub(crate) fn confirm(
    plan: &Plan<'_>,
    host: &dyn Host,
    record: &mut TransactionRecord,
    now_ms: u64,
    cert_hash: &CertHash,
    cert_req_id: i64,
    refusal: Option<PkiStatusInfo<'_>>,
) -> Result<(), Error> {
    let status = CertStatus {
        cert_hash: &cert_hash.value,
        cert_req_id,
        status_info: refusal,
        hash_alg: cert_hash
            .needs_hash_alg
            .then(|| cert_hash.hash.identifier()),
    };
    write(
        plan,
        host,
        record,
        now_ms,
        &PkiBody::CertConf(alloc::vec![status]),
    )?;
    record.request_nonce = record.last_nonce.clone();
    Ok(())
}

/// Puts header, body and protection together and notes in the record what the answer
/// must fit.
fn write(
    plan: &Plan<'_>,
    host: &dyn Host,
    record: &mut TransactionRecord,
    now_ms: u64,
    body: &PkiBody<'_>,
) -> Result<(), Error> {
    let nonce = host.random(limits::NONCE);
    let sender = match (&plan.enrollment.credential, &plan.own) {
        // The name of the secret as commonName (RFC 9483, 3.1), where it is text.
        (Credential::Secret(secret), _) => match core::str::from_utf8(&secret.reference) {
            Ok(text) => Name::common_name(text),
            Err(_) => Name::NULL,
        },
        (_, Some(own)) => own.subject.clone(),
        (_, None) => Name::NULL,
    };
    let recipient = match record.peer_name.as_deref().map(|der| Name::from_der(der)) {
        Some(Ok(name)) => name,
        _ => plan.recipient.clone(),
    };
    let mut header = PkiHeader::new(
        GeneralName::Directory(sender),
        GeneralName::Directory(recipient),
    );
    if let Some(pvno) = record.pvno {
        header.pvno = pvno;
    }
    // hashAlg and EnvelopedData are newer than the version that is used otherwise, and who
    // expects an EnvelopedData says so from the first message on (RFC 9810, 7).
    let has_hash_alg = match body {
        PkiBody::CertConf(statuses) => statuses.iter().any(|status| status.hash_alg.is_some()),
        _ => false,
    };
    if has_hash_alg || plan.generates_key() {
        header.pvno = PVNO_3;
    }
    header.message_time = Some(Time::from_unix((now_ms / 1000) as i64));
    header.sender_kid = plan.sender_kid();
    header.transaction_id = Some(&record.transaction_id);
    header.sender_nonce = Some(&nonce);
    header.recip_nonce = record.recip_nonce.as_ref().map(|nonce| nonce.as_slice());
    let enrolls = matches!(
        body,
        PkiBody::Ir(_) | PkiBody::Cr(_) | PkiBody::P10cr(_) | PkiBody::Kur(_)
    );
    if plan.enrollment.implicit_confirm && enrolls {
        header.general_info.push(InfoTypeAndValue::IMPLICIT_CONFIRM);
    }
    // certProfile goes with requests for certificates and for their template
    // (RFC 9483, 3.1).
    let profile = Writer::encode(|w| {
        w.sequence(|w| w.element(tag::UTF8_STRING, plan.enrollment.profile.as_bytes()));
    });
    let asks = match body {
        PkiBody::Genm(infos) => infos
            .iter()
            .any(|info| info.info_type == oid::IT_CERT_REQ_TEMPLATE),
        _ => enrolls,
    };
    if asks && !plan.enrollment.profile.is_empty() {
        header.general_info.push(InfoTypeAndValue {
            info_type: oid::IT_CERT_PROFILE,
            value: Some(&profile),
        });
    }
    let message = protect(plan, host, header, body)?;
    record.last_request = ByteVec::from(message);
    record.last_nonce = ByteVec::from(nonce);
    record.pending = true;
    record.next_ms = None;
    record.resends = 0;
    Ok(())
}

fn protect(
    plan: &Plan<'_>,
    host: &dyn Host,
    header: PkiHeader<'_>,
    body: &PkiBody<'_>,
) -> Result<Vec<u8>, Error> {
    let (salt, parameters);
    let mut header = header;
    match &plan.enrollment.credential {
        Credential::Secret(secret) => {
            salt = host.random(limits::SALT);
            let iterations = secret.iterations;
            let algorithm = match secret.mac {
                MacKind::Pbm => MacAlgorithm::PasswordBased {
                    salt: &salt,
                    owf: Hash::Sha256,
                    iterations,
                    mac: Hash::Sha256,
                },
                MacKind::Pbmac1 => MacAlgorithm::Pbmac1 {
                    salt: &salt,
                    iterations,
                    key_length: limits::PBMAC1_KEY,
                    prf: Hash::Sha256,
                    mac: Hash::Sha256,
                },
            };
            parameters = algorithm.parameters();
            header.protection_alg = Some(AlgorithmIdentifier {
                oid: algorithm.oid(),
                parameters: Some(&parameters),
            });
            let draft = Draft::new(&header, body);
            let bits = host
                .mac(&secret.key, &algorithm, &draft.protected_part())
                .map_err(|error| Error::Key(error.0))?;
            Ok(draft.finish::<Vec<u8>>(Some(&bits), &[]))
        }
        Credential::Certificate(credential) => sign(credential, host, header, body),
    }
}

/// Signs a message with a certificate's key.
pub(crate) fn sign(
    credential: &CertificateCredential,
    host: &dyn Host,
    header: PkiHeader<'_>,
    body: &PkiBody<'_>,
) -> Result<Vec<u8>, Error> {
    let own = Certificate::from_der(&credential.certificate).ok();
    let algorithm = own.map(|own| SignatureAlgorithm::for_key(&own.public_key));
    let Some(Ok(algorithm)) = algorithm else {
        return Err(Error::Invalid("the own key cannot sign messages".into()));
    };
    let parameters = algorithm.parameters();
    let mut header = header;
    header.protection_alg = Some(AlgorithmIdentifier {
        oid: algorithm.oid(),
        parameters: parameters.as_deref(),
    });
    let draft = Draft::new(&header, body);
    let bits = host
        .sign(&credential.key, algorithm, &draft.protected_part())
        .map_err(|error| Error::Key(error.0))?;
    // The protection certificate first, then its chain (RFC 9483, 3.3).
    let extra_certs: Vec<&[u8]> = core::iter::once(credential.certificate.as_slice())
        .chain(credential.chain.iter().map(Vec::as_slice))
        .collect();
    Ok(draft.finish(Some(&bits), &extra_certs))
}
