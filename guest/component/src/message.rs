use alloc::string::{String, ToString};
use alloc::vec::Vec;

use abide_cmp::protection::{
    self, Anchors, MacAlgorithm, Policy, ProtectionError, ProtectionKind, Unsupported,
    verify_kem_mac, verify_mac, verify_signature,
};
use abide_cmp::rules;
use abide_cmp::{
    AlgorithmIdentifier, Certificate, Deviation, Error, ErrorMsgContent, FailInfo, HeaderParts,
    PkiFreeText, PkiMessage, PkiStatusInfo, Time,
};

use crate::bindings::exports::abide::cmp::message as wit;
use crate::bindings::exports::abide::cmp::message::{
    BodyType, Content, DecodeError, Finding, Guest, Header, Leniency, Options, Parts, PkiStatus,
    Protection, Signer, Summary, Toleration, Trust, VerifyError, Weight,
};
use crate::{Component, verifier};

impl Guest for Component {
    fn decode(octets: Vec<u8>, leniency: Leniency) -> Result<Summary, DecodeError> {
        let tolerant = read(&octets, leniency)?;
        let message = &tolerant.value;
        let header = &message.header;
        check_limits(message, &octets)?;
        Ok(Summary {
            pvno: header.pvno,
            body: body_type(message.body.body_type()),
            sender: header.sender.to_string(),
            recipient: header.recipient.to_string(),
            transaction_id: owned(header.transaction_id),
            sender_kid: owned(header.sender_kid),
            sender_nonce: owned(header.sender_nonce),
            recip_nonce: owned(header.recip_nonce),
            message_time: header.message_time.map(Time::unix),
            protection: match protection::protection_kind(message) {
                ProtectionKind::None => Protection::None,
                ProtectionKind::Mac => Protection::Mac,
                ProtectionKind::Signature => Protection::Signature,
                ProtectionKind::Unknown => Protection::Unknown,
            },
            protection_algorithm: header.protection_alg.map(|alg| alg.oid.to_string()),
            extra_certs: message.extra_certs.len() as u32,
            implicit_confirm: header.implicit_confirm(),
            tolerated: tolerant.tolerations.into_iter().map(toleration).collect(),
        })
    }

    fn describe(input: Vec<u8>, leniency: Leniency) -> Result<String, DecodeError> {
        abide_cmp::describe(&input, switches(leniency)).map_err(decode_error)
    }

    fn check(message: Vec<u8>, leniency: Leniency) -> Result<Vec<Finding>, DecodeError> {
        let message = read(&message, leniency)?.value;
        let findings = rules::check(&message, switches(leniency));
        Ok(findings.iter().map(finding).collect())
    }

    fn verify(message: Vec<u8>, trust: Trust, options: Options) -> Result<Signer, VerifyError> {
        let message = read(&message, options.leniency)
            .map_err(VerifyError::Undecodable)?
            .value;
        let policy = Policy {
            allow_sha1: options.allow_sha1,
        };
        let by_secret = || Signer {
            name: message.header.sender.to_string(),
            certificate: None,
            path: Vec::new(),
            roles: Vec::new(),
        };
        let kind = protection::protection_kind(&message);
        match trust {
            Trust::Secret(_) | Trust::Kem(_) | Trust::Key(_)
                if kind == ProtectionKind::Signature =>
            {
                Err(VerifyError::WrongKind)
            }
            Trust::Anchors(_) if kind == ProtectionKind::Mac => Err(VerifyError::WrongKind),
            Trust::Secret(secret) => verify_mac(&message, policy, |mac, data| {
                Ok::<_, ProtectionError>(mac.compute(&secret, data))
            })
            .map(|()| by_secret())
            .map_err(verify_error),
            Trust::Kem(secret) => verify_kem_mac(&message, policy, |mac, data| {
                Ok::<_, ProtectionError>(mac.compute(&secret, data))
            })
            .map(|()| by_secret())
            .map_err(verify_error),
            Trust::Key(name) => verify_mac(&message, policy, |mac, data| {
                verifier::mac(&name, mac, data)
            })
            .map(|()| by_secret()),
            Trust::Anchors(anchors) => {
                let trusted = certificates(&anchors.certificates, "a trust anchor")?;
                let untrusted = certificates(&anchors.untrusted, "an untrusted certificate")?;
                let judged_by = Anchors {
                    untrusted: &untrusted,
                    role: anchors.role.map(role),
                    policy,
                    ..Anchors::new(&trusted, Time::from_unix(anchors.at))
                };
                let signer = verify_signature(&message, judged_by, &verifier::Verifier)
                    .map_err(verify_error)?;
                let certificate = signer.path.first();
                Ok(Signer {
                    name: certificate
                        .map(|c| c.subject.to_string())
                        .unwrap_or_default(),
                    certificate: certificate.map(|c| c.raw.to_vec()),
                    roles: signer.roles().into_iter().map(wit_role).collect(),
                    path: signer.path.iter().map(|c| c.raw.to_vec()).collect(),
                })
            }
        }
    }

    fn split(message: Vec<u8>, leniency: Leniency) -> Result<Parts, DecodeError> {
        let parts = abide_cmp::Parts::split(&message, switches(leniency))
            .map_err(decode_error)?
            .value;
        let header = parts.header;
        Ok(Parts {
            header: Header {
                pvno: header.pvno,
                sender: header.sender.to_vec(),
                recipient: header.recipient.to_vec(),
                message_time: header.message_time.map(str::to_string),
                protection_alg: owned(header.protection_alg),
                sender_kid: owned(header.sender_kid),
                recip_kid: owned(header.recip_kid),
                transaction_id: owned(header.transaction_id),
                sender_nonce: owned(header.sender_nonce),
                recip_nonce: owned(header.recip_nonce),
                free_text: header.free_text.into_iter().map(str::to_string).collect(),
                general_info: header
                    .general_info
                    .into_iter()
                    .map(<[u8]>::to_vec)
                    .collect(),
            },
            body: Content {
                body: body_type(parts.body),
                value: parts.content.to_vec(),
            },
            protection: owned(parts.protection),
            extra_certs: parts.extra_certs.into_iter().map(<[u8]>::to_vec).collect(),
        })
    }

    fn encode(parts: Parts) -> Result<Vec<u8>, DecodeError> {
        let header = &parts.header;
        let borrowed = abide_cmp::Parts {
            header: HeaderParts {
                pvno: header.pvno,
                sender: &header.sender,
                recipient: &header.recipient,
                message_time: header.message_time.as_deref(),
                protection_alg: header.protection_alg.as_deref(),
                sender_kid: header.sender_kid.as_deref(),
                recip_kid: header.recip_kid.as_deref(),
                transaction_id: header.transaction_id.as_deref(),
                sender_nonce: header.sender_nonce.as_deref(),
                recip_nonce: header.recip_nonce.as_deref(),
                free_text: header.free_text.iter().map(String::as_str).collect(),
                general_info: header.general_info.iter().map(Vec::as_slice).collect(),
            },
            body: cmp_body_type(parts.body.body),
            content: &parts.body.value,
            protection: parts.protection.as_deref(),
            extra_certs: parts.extra_certs.iter().map(Vec::as_slice).collect(),
        };
        borrowed.encode().map_err(decode_error)
    }

    fn protected_part(message: Vec<u8>, leniency: Leniency) -> Result<Vec<u8>, DecodeError> {
        Ok(read(&message, leniency)?.value.protected_part())
    }

    fn mac(algorithm: Vec<u8>, secret: Vec<u8>, data: Vec<u8>) -> Result<Vec<u8>, VerifyError> {
        let algorithm = AlgorithmIdentifier::from_der(&algorithm)
            .map_err(|e| VerifyError::Undecodable(decode_error(e)))?;
        let algorithm = MacAlgorithm::from_identifier(&algorithm, Policy::default())
            .map_err(|why| VerifyError::Unsupported(why.to_string()))?;
        Ok(algorithm.compute(&secret, &data))
    }

    fn error_content(status: PkiStatus, fail_info: Vec<u8>, text: Vec<String>) -> Vec<u8> {
        let reasons = fail_info
            .into_iter()
            .filter_map(|bit| FailInfo::from_bits([bit]))
            .fold(FailInfo::default(), FailInfo::union);
        let text = PkiFreeText(text.into_iter().map(Into::into).collect());
        ErrorMsgContent::new(PkiStatusInfo {
            status: pki_status(status),
            status_string: Some(text).filter(|text| !text.0.is_empty()),
            fail_info: Some(reasons).filter(|reasons| !reasons.is_empty()),
        })
        .to_der()
    }
}

fn certificates<'c>(ders: &'c [Vec<u8>], what: &str) -> Result<Vec<Certificate<'c>>, VerifyError> {
    ders.iter()
        .map(|der| Certificate::from_der(der))
        .collect::<Result<Vec<_>, _>>()
        .map_err(|error| VerifyError::Untrusted(alloc::format!("{what}: {error}")))
}

fn role(role: wit::Role) -> abide_cmp::Role {
    match role {
        wit::Role::CmcCa => abide_cmp::Role::CmcCa,
        wit::Role::CmcRa => abide_cmp::Role::CmcRa,
        wit::Role::CmKga => abide_cmp::Role::CmKga,
    }
}

fn wit_role(role: abide_cmp::Role) -> wit::Role {
    match role {
        abide_cmp::Role::CmcCa => wit::Role::CmcCa,
        abide_cmp::Role::CmcRa => wit::Role::CmcRa,
        abide_cmp::Role::CmKga => wit::Role::CmKga,
    }
}

impl From<ProtectionError> for VerifyError {
    fn from(error: ProtectionError) -> Self {
        verify_error(error)
    }
}

fn read(
    message: &[u8],
    leniency: Leniency,
) -> Result<abide_cmp::Tolerant<PkiMessage<'_>>, DecodeError> {
    PkiMessage::from_der_with(message, switches(leniency)).map_err(decode_error)
}

/// A gateway decides on the summary alone: a message that demands more computing than is
/// accepted must not get past it.
fn check_limits(message: &PkiMessage<'_>, octets: &[u8]) -> Result<(), DecodeError> {
    let Some(algorithm) = &message.header.protection_alg else {
        return Ok(());
    };
    match MacAlgorithm::from_identifier(algorithm, Policy::ALLOW_SHA1) {
        Err(why @ Unsupported::Limit { .. }) => {
            let at = algorithm.oid.content().as_ptr() as usize - octets.as_ptr() as usize;
            Err(DecodeError {
                offset: u32::try_from(at).unwrap_or(u32::MAX),
                path: String::from("header.protectionAlg"),
                rule: why.to_string(),
                fail_info: FailInfo::BAD_ALG.bits().next(),
            })
        }
        _ => Ok(()),
    }
}

fn owned(octets: Option<&[u8]>) -> Option<Vec<u8>> {
    octets.map(<[u8]>::to_vec)
}

fn switches(leniency: Leniency) -> abide_cmp::Leniency {
    abide_cmp::Leniency {
        non_minimal_lengths: leniency.contains(Leniency::NON_MINIMAL_LENGTHS),
        fractional_seconds: leniency.contains(Leniency::FRACTIONAL_SECONDS),
        explicit_ra_verified: leniency.contains(Leniency::EXPLICIT_RA_VERIFIED),
        empty_lists: leniency.contains(Leniency::EMPTY_LISTS),
    }
}

fn toleration(toleration: abide_cmp::Toleration) -> Toleration {
    Toleration {
        leniency: match toleration.which {
            Deviation::NonMinimalLength => Leniency::NON_MINIMAL_LENGTHS,
            Deviation::FractionalSeconds => Leniency::FRACTIONAL_SECONDS,
            Deviation::ExplicitRaVerified => Leniency::EXPLICIT_RA_VERIFIED,
            Deviation::EmptyList => Leniency::EMPTY_LISTS,
        },
        offset: u32::try_from(toleration.offset).unwrap_or(u32::MAX),
        path: toleration.path,
    }
}

fn finding(finding: &rules::Finding) -> Finding {
    let rule = finding.rule;
    Finding {
        rule: rule.text.to_string(),
        section: rule.section.to_string(),
        path: finding.path.clone(),
        weight: match rule.weight {
            rules::Weight::Violation => Weight::Violation,
            rules::Weight::Advice => Weight::Advice,
        },
        fail_info: rule.fail_info.bits().next(),
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
        ProtectionError::WrongKind => VerifyError::WrongKind,
        ProtectionError::Unprotected => VerifyError::Unprotected,
        ProtectionError::Unsupported(why) => VerifyError::Unsupported(why.to_string()),
        ProtectionError::WrongMac
        | ProtectionError::WrongSignature { .. }
        | ProtectionError::Incomplete => VerifyError::BadProtection(error.to_string()),
        other => VerifyError::Untrusted(other.to_string()),
    }
}

/// The alternatives of PKIBody, here and in the WIT.
macro_rules! body_types {
    ($($cmp:ident = $wit:ident),+ $(,)?) => {
        fn body_type(body_type: abide_cmp::BodyType) -> BodyType {
            match body_type {
                $(abide_cmp::BodyType::$cmp => BodyType::$wit,)+
            }
        }

        fn cmp_body_type(body_type: BodyType) -> abide_cmp::BodyType {
            match body_type {
                $(BodyType::$wit => abide_cmp::BodyType::$cmp,)+
            }
        }
    };
}

body_types! {
    Ir = Ir,
    Ip = Ip,
    Cr = Cr,
    Cp = Cp,
    P10cr = P10cr,
    Popdecc = Popdecc,
    Popdecr = Popdecr,
    Kur = Kur,
    Kup = Kup,
    Krr = Krr,
    Krp = Krp,
    Rr = Rr,
    Rp = Rp,
    Ccr = Ccr,
    Ccp = Ccp,
    Ckuann = Ckuann,
    Cann = Cann,
    Rann = Rann,
    Crlann = Crlann,
    PkiConf = Pkiconf,
    Nested = Nested,
    Genm = Genm,
    Genp = Genp,
    Error = Error,
    CertConf = CertConf,
    PollReq = PollReq,
    PollRep = PollRep,
}

fn pki_status(status: PkiStatus) -> abide_cmp::PkiStatus {
    use abide_cmp::PkiStatus as S;
    match status {
        PkiStatus::Accepted => S::Accepted,
        PkiStatus::GrantedWithMods => S::GrantedWithMods,
        PkiStatus::Rejection => S::Rejection,
        PkiStatus::Waiting => S::Waiting,
        PkiStatus::RevocationWarning => S::RevocationWarning,
        PkiStatus::RevocationNotification => S::RevocationNotification,
        PkiStatus::KeyUpdateWarning => S::KeyUpdateWarning,
    }
}
