use alloc::string::ToString;
use alloc::vec::Vec;

use abide_cmp::protection::{
    self, Anchors, ProtectionError, ProtectionKind, SoftwareVerifier, verify_mac, verify_signature,
};
use abide_cmp::{Certificate, Error, PkiMessage, Time};

use crate::Component;
use crate::bindings::exports::abide::cmp::message::{
    BodyType, DecodeError, Guest, Protection, Signer, Summary, Trust, VerifyError,
};

impl Guest for Component {
    fn decode(message: Vec<u8>) -> Result<Summary, DecodeError> {
        let message = PkiMessage::from_der(&message).map_err(decode_error)?;
        let header = &message.header;
        let octets = |field: Option<&[u8]>| field.map(<[u8]>::to_vec);
        Ok(Summary {
            pvno: header.pvno,
            body: body_type(message.body.body_type()),
            sender: header.sender.to_string(),
            recipient: header.recipient.to_string(),
            transaction_id: octets(header.transaction_id),
            sender_kid: octets(header.sender_kid),
            sender_nonce: octets(header.sender_nonce),
            recip_nonce: octets(header.recip_nonce),
            message_time: header.message_time.map(Time::unix),
            protection: match protection::protection_kind(&message) {
                ProtectionKind::None => Protection::None,
                ProtectionKind::Mac => Protection::Mac,
                ProtectionKind::Signature => Protection::Signature,
                ProtectionKind::Unknown => Protection::Unknown,
            },
            protection_algorithm: header.protection_alg.map(|alg| alg.oid.to_string()),
            extra_certs: message.extra_certs.len() as u32,
            implicit_confirm: header.implicit_confirm(),
        })
    }

    fn describe(message: Vec<u8>) -> Result<alloc::string::String, DecodeError> {
        abide_cmp::describe(&message).map_err(decode_error)
    }

    fn verify(message: Vec<u8>, trust: Trust) -> Result<Signer, VerifyError> {
        let message = PkiMessage::from_der(&message)
            .map_err(|e| VerifyError::Undecodable(decode_error(e)))?;
        let kind = protection::protection_kind(&message);
        match trust {
            Trust::Secret(_) if kind == ProtectionKind::Signature => Err(VerifyError::WrongKind),
            Trust::Anchors(_) if kind == ProtectionKind::Mac => Err(VerifyError::WrongKind),
            Trust::Secret(secret) => {
                verify_mac(&message, |mac, data| {
                    Ok::<_, ProtectionError>(mac.compute(&secret, data))
                })
                .map_err(verify_error)?;
                Ok(Signer {
                    name: message.header.sender.to_string(),
                    certificate: None,
                })
            }
            Trust::Anchors(anchors) => {
                let trusted = anchors
                    .certificates
                    .iter()
                    .map(|der| Certificate::from_der(der))
                    .collect::<Result<Vec<_>, _>>()
                    .map_err(|e| VerifyError::Untrusted(alloc::format!("a trust anchor: {e}")))?;
                let anchors = Anchors {
                    trusted: &trusted,
                    untrusted: &[],
                    now: Time::from_unix(anchors.at),
                };
                let signer =
                    verify_signature(&message, anchors, &SoftwareVerifier).map_err(verify_error)?;
                let certificate = signer.path.first();
                Ok(Signer {
                    name: certificate
                        .map(|c| c.subject.to_string())
                        .unwrap_or_default(),
                    certificate: certificate.map(|c| c.raw.to_vec()),
                })
            }
        }
    }
}

fn decode_error(error: Error) -> DecodeError {
    DecodeError {
        offset: u32::try_from(error.offset()).unwrap_or(u32::MAX),
        path: error.path(),
        rule: error.rule().to_string(),
        fail_info: error.fail_info().bits().next(),
    }
}

fn verify_error(error: ProtectionError) -> VerifyError {
    match error {
        ProtectionError::Unprotected => VerifyError::Unprotected,
        ProtectionError::Unsupported(why) => VerifyError::Unsupported(why.to_string()),
        ProtectionError::WrongMac
        | ProtectionError::WrongSignature { .. }
        | ProtectionError::Incomplete => VerifyError::BadProtection(error.to_string()),
        other => VerifyError::Untrusted(other.to_string()),
    }
}

fn body_type(body_type: abide_cmp::BodyType) -> BodyType {
    use abide_cmp::BodyType as B;
    match body_type {
        B::Ir => BodyType::Ir,
        B::Ip => BodyType::Ip,
        B::Cr => BodyType::Cr,
        B::Cp => BodyType::Cp,
        B::P10cr => BodyType::P10cr,
        B::Popdecc => BodyType::Popdecc,
        B::Popdecr => BodyType::Popdecr,
        B::Kur => BodyType::Kur,
        B::Kup => BodyType::Kup,
        B::Krr => BodyType::Krr,
        B::Krp => BodyType::Krp,
        B::Rr => BodyType::Rr,
        B::Rp => BodyType::Rp,
        B::Ccr => BodyType::Ccr,
        B::Ccp => BodyType::Ccp,
        B::Ckuann => BodyType::Ckuann,
        B::Cann => BodyType::Cann,
        B::Rann => BodyType::Rann,
        B::Crlann => BodyType::Crlann,
        B::PkiConf => BodyType::Pkiconf,
        B::Nested => BodyType::Nested,
        B::Genm => BodyType::Genm,
        B::Genp => BodyType::Genp,
        B::Error => BodyType::Error,
        B::CertConf => BodyType::CertConf,
        B::PollReq => BodyType::PollReq,
        B::PollRep => BodyType::PollRep,
    }
}
