//! Rules about protection, its algorithm and the certificates beside it.

use alloc::vec::Vec;

use super::{Findings, Names, announces, laws, opens};
use crate::body::{BodyType, PkiBody};
use crate::der::{Reader, tag};
use crate::header::PkiHeader;
use crate::message::PkiMessage;
use crate::name::Name;
use crate::oid::{self, Oid};
use crate::path::may_sign_messages;
use crate::protection::{Hash, MacAlgorithm};
use crate::status::PkiStatus;
use crate::x509::{AlgorithmIdentifier, Certificate, PublicKeyInfo};

/// RFC 9481, 7 counts less than 112 bits of security as too little, which is what an RSA key
/// of 2048 bits has.
const RSA_OCTETS: usize = 256;
const PBM_SALT: usize = 8;
const PBM_ITERATIONS: i64 = 100;
const PBM_ITERATIONS_ADVICE: i64 = 10_000;

pub(super) fn check(message: &PkiMessage<'_>, findings: &mut Findings) {
    let body = message.body.body_type();
    match (&message.header.protection_alg, message.protection) {
        (None, None) if announces(body) => {}
        (None, None) if body == BodyType::Error => {
            findings.add(&laws::UNPROTECTED_ERROR, "protection");
        }
        (None, None) => findings.add(&laws::UNPROTECTED, "protection"),
        (Some(_), None) => findings.add(&laws::ALGORITHM_ALONE, "header.protectionAlg"),
        (None, Some(_)) => findings.add(&laws::PROTECTION_ALONE, "header.protectionAlg"),
        (Some(algorithm), Some(_)) if MacAlgorithm::is_mac(algorithm) => {
            mac(&message.header, algorithm, findings);
        }
        (Some(algorithm), Some(_)) => signature(message, algorithm, findings),
    }
}

fn mac(header: &PkiHeader<'_>, algorithm: &AlgorithmIdentifier<'_>, findings: &mut Findings) {
    if algorithm.oid == oid::PASSWORD_BASED_MAC {
        password_based_mac(algorithm, findings);
    }
    if [oid::KEM_BASED_MAC, oid::DH_BASED_MAC].contains(&algorithm.oid) {
        // These have no shared secret with a name.
        return;
    }
    let common_name = header.sender.directory().and_then(common_name);
    findings.unless(common_name.is_some(), &laws::SENDER_OF_MAC, "header.sender");
    match (header.sender_kid, common_name) {
        (None, _) => findings.add(&laws::SENDER_KID_OF_MAC, "header.senderKID"),
        (Some(kid), Some(name)) => {
            findings.unless(kid == name, &laws::SENDER_KID_OF_MAC, "header.senderKID");
        }
        (Some(_), None) => {}
    }
}

/// The octets of the last commonName.
fn common_name(name: &Name<'_>) -> Option<Vec<u8>> {
    let mut rdns = Reader::judged(name.der()).sequence().ok()?;
    let mut found = None;
    while let Ok(rdn) = rdns.any() {
        let mut attributes = rdn.contents();
        while let Ok(mut attribute) = attributes.sequence() {
            if attribute.oid().ok()? == oid::AT_COMMON_NAME {
                found = Some(attribute.any().ok()?.value.to_vec());
            }
        }
    }
    found
}

fn password_based_mac(algorithm: &AlgorithmIdentifier<'_>, findings: &mut Findings) {
    const FIELD: &str = "header.protectionAlg";
    let read = || {
        let mut reader = Reader::judged(algorithm.parameters?);
        let mut fields = reader.sequence().ok()?;
        let salt = fields.octet_string().ok()?.value.len();
        let owf = AlgorithmIdentifier::read(&mut fields).ok()?;
        let count = fields.element(tag::INTEGER, "an INTEGER").ok()?;
        // A count that does not fit is too large, not too small.
        let iterations = match count.big_integer().ok()? {
            [first, ..] if first & 0x80 != 0 => -1,
            _ => count.integer().unwrap_or(i64::MAX),
        };
        let mac = AlgorithmIdentifier::read(&mut fields).ok()?;
        fields.is_empty().then_some((salt, owf, iterations, mac))
    };
    let Some((salt, owf, iterations, mac)) = read() else {
        findings.add(&laws::PBM_PARAMETERS, FIELD);
        return;
    };
    findings.unless(salt >= PBM_SALT, &laws::PBM_SALT, FIELD);
    let advised = iterations >= PBM_ITERATIONS_ADVICE;
    if iterations < PBM_ITERATIONS {
        findings.add(&laws::PBM_ITERATIONS_FEW, FIELD);
    } else {
        findings.unless(advised, &laws::PBM_ITERATIONS_ADVICE, FIELD);
    }
    let old = Hash::from_oid(owf.oid) == Some(Hash::Sha1)
        || Hash::from_hmac_oid(mac.oid) == Some(Hash::Sha1);
    findings.unless(!old, &laws::PBM_HASH, FIELD);
}

fn signature(
    message: &PkiMessage<'_>,
    algorithm: &AlgorithmIdentifier<'_>,
    findings: &mut Findings,
) {
    let weak = [oid::RSA_SHA1, oid::ECDSA_SHA1].contains(&algorithm.oid)
        || is_old_signature(algorithm.oid);
    findings.unless(!weak, &laws::WEAK_SIGNATURE, "header.protectionAlg");
    let header = &message.header;
    if message.extra_certs.is_empty() {
        if must_bring_certificate(message) {
            findings.add(&laws::EXTRA_CERTS_MISSING, "extraCerts");
        }
        if header.sender_kid.is_none() {
            findings.add(&laws::SENDER_KID_MISSING, "header.senderKID");
        }
        return;
    }
    let Some(found) = signer(message, findings) else {
        return;
    };
    let Some(Signer {
        index,
        certificate: signer,
        subject,
    }) = found
    else {
        findings.add(&laws::SIGNER_MISSING, "extraCerts");
        return;
    };
    let path = alloc::format!("extraCerts[{index}]");
    findings.unless(index == 0, &laws::SIGNER_NOT_FIRST, &path);
    let named = subject == Names::Same;
    findings.unless(named, &laws::SENDER_NOT_SUBJECT, "header.sender");
    let field = "header.senderKID";
    match (header.sender_kid, signer.subject_key_identifier()) {
        (None, Some(_)) => findings.add(&laws::SENDER_KID_ABSENT, field),
        (None, None) => findings.add(&laws::SENDER_KID_MISSING, field),
        (Some(kid), Some(held)) => findings.unless(kid == held, &laws::SENDER_KID_OTHER, field),
        (Some(_), None) => {}
    }
    findings.unless(may_sign_messages(&signer), &laws::SIGNER_KEY_USAGE, &path);
    let fits = may_be_made_with(algorithm.oid, &signer.public_key);
    findings.unless(fits, &laws::SIGNER_KEY, "header.protectionAlg");
    findings.unless(!is_short(&signer.public_key), &laws::SIGNER_KEY_WEAK, &path);
}

/// md5WithRSAEncryption and DSA, whose names nothing else in this crate needs.
fn is_old_signature(oid: Oid<'_>) -> bool {
    const OLD: [&[u8]; 3] = [
        &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x01, 0x04],
        &[0x2a, 0x86, 0x48, 0xce, 0x38, 0x04, 0x01],
        &[0x2a, 0x86, 0x48, 0xce, 0x38, 0x04, 0x03],
    ];
    OLD.contains(&oid.content())
}

/// Whether this message cannot leave extraCerts out (RFC 9483, 3.3, 3.6.4 and 4.4).
fn must_bring_certificate(message: &PkiMessage<'_>) -> bool {
    use BodyType::{CertConf, Error, PkiConf, PollRep, PollReq};
    let waits = match &message.body {
        PkiBody::Ip(content) | PkiBody::Cp(content) | PkiBody::Kup(content) => content
            .responses
            .iter()
            .any(|response| response.status.status == PkiStatus::Waiting),
        _ => false,
    };
    let body = message.body.body_type();
    !waits && !matches!(body, CertConf | PkiConf | PollReq | PollRep | Error)
}

/// The certificate that protects a message, as far as its names tell.
pub(super) struct Signer<'a> {
    /// Its place in extraCerts.
    index: usize,
    pub(super) certificate: Certificate<'a>,
    /// How its subject relates to the sender.
    subject: Names,
}

/// The certificate in extraCerts that sender and senderKID mean: by both, else by the key
/// identifier, else by the name, in either order of its RDNs. The outer none says that the
/// names are too long to be compared.
pub(super) fn signer<'a>(
    message: &PkiMessage<'a>,
    findings: &mut Findings,
) -> Option<Option<Signer<'a>>> {
    let header = &message.header;
    let mut best: Option<(u8, Signer<'a>)> = None;
    for (index, der) in message.extra_certs.iter().enumerate() {
        let Ok(read) = Certificate::from_der_with(der, findings.leniency) else {
            continue;
        };
        let certificate = read.value;
        let subject = match header.sender.directory() {
            Some(sender) => findings.compare(sender, &certificate.subject)?,
            None => Names::Other,
        };
        let by_key = header.sender_kid.is_some()
            && header.sender_kid == certificate.subject_key_identifier();
        let rank = match (by_key, subject != Names::Other) {
            (true, true) => 3,
            (true, false) => 2,
            (false, true) => 1,
            (false, false) => continue,
        };
        if best.as_ref().is_none_or(|(other, _)| rank > *other) {
            let signer = Signer {
                index,
                certificate,
                subject,
            };
            best = Some((rank, signer));
        }
    }
    Some(best.map(|(_, signer)| signer))
}

/// Whether a signature under this algorithm can come from this kind of key; true where the
/// algorithm is not known.
pub(super) fn may_be_made_with(algorithm: Oid<'_>, key: &PublicKeyInfo<'_>) -> bool {
    let kind = key.algorithm.oid;
    match algorithm {
        oid::RSA_SHA1 | oid::RSA_SHA224 | oid::RSA_SHA256 | oid::RSA_SHA384 | oid::RSA_SHA512 => {
            kind == oid::RSA_ENCRYPTION
        }
        oid::RSA_PSS => kind == oid::RSA_ENCRYPTION || kind == oid::RSA_PSS,
        oid::ECDSA_SHA1
        | oid::ECDSA_SHA224
        | oid::ECDSA_SHA256
        | oid::ECDSA_SHA384
        | oid::ECDSA_SHA512 => kind == oid::EC_PUBLIC_KEY,
        oid::ED25519 | oid::ED448 | oid::ML_DSA_44 | oid::ML_DSA_65 | oid::ML_DSA_87 => {
            kind == algorithm
        }
        _ => true,
    }
}

fn is_short(key: &PublicKeyInfo<'_>) -> bool {
    if key.algorithm.oid != oid::RSA_ENCRYPTION {
        return false;
    }
    let modulus = Reader::judged(key.key).sequence().and_then(|mut f| f.any());
    modulus.is_ok_and(|modulus| match modulus.value {
        [0, rest @ ..] => rest.len() < RSA_OCTETS,
        all => all.len() < RSA_OCTETS,
    })
}

/// Whether a transaction that this body opens must be signed, and is protected by a MAC.
pub(super) fn has_mac(message: &PkiMessage<'_>) -> bool {
    let algorithm = message.header.protection_alg.as_ref();
    opens(message.body.body_type()) && algorithm.is_some_and(MacAlgorithm::is_mac)
}
