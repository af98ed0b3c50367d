use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

use super::{MacAlgorithm, Policy, SignatureAlgorithm, SignatureVerifier, Unsupported, Verdict};
use crate::message::PkiMessage;
use crate::name::shortened;
use crate::path::{self, PathError};
use crate::time::Time;
use crate::x509::{Certificate, Role};

/// How a message says that it is protected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProtectionKind {
    /// Neither algorithm nor bits.
    None,
    /// By a shared secret.
    Mac,
    /// By a signature.
    Signature,
    /// By an algorithm that is not known.
    Unknown,
}

/// Tells the kind of protection from the header.
pub fn protection_kind(message: &PkiMessage<'_>) -> ProtectionKind {
    match &message.header.protection_alg {
        None if message.protection.is_none() => ProtectionKind::None,
        Some(algorithm) if MacAlgorithm::is_mac(algorithm) => ProtectionKind::Mac,
        Some(algorithm) => {
            match SignatureAlgorithm::from_identifier(algorithm, Policy::ALLOW_SHA1) {
                Err(Unsupported::Algorithm(_)) => ProtectionKind::Unknown,
                _ => ProtectionKind::Signature,
            }
        }
        None => ProtectionKind::Unknown,
    }
}

/// Why a message is not to be believed.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ProtectionError {
    /// It carries no protection.
    Unprotected,
    /// protectionAlg without bits, or bits without protectionAlg (RFC 9810, 5.1.3).
    Incomplete,
    /// The algorithm or its parameters are not accepted.
    Unsupported(Unsupported),
    /// A MAC with a shared secret where the secret of a KEM is at hand, or the other way
    /// round.
    WrongKind,
    /// The MAC does not fit: another secret, or a changed message.
    WrongMac,
    /// No certificate at hand can be that of the sender.
    NoSignerCertificate {
        /// The sender in the header.
        sender: String,
    },
    /// The signature does not fit the sender's certificate: a changed message, or another key.
    WrongSignature {
        /// The sender in the header.
        sender: String,
    },
    /// The signer's certificate cannot be traced to a trust anchor.
    Untrusted(PathError),
    /// The signer's key is not for signing messages (RFC 9483, 3.2).
    KeyUsage {
        /// The subject of the certificate.
        subject: String,
    },
    /// The signer's certificate does not give the role that is asked for (RFC 9810, 4.5).
    Role {
        /// The subject of the certificate.
        subject: String,
        /// The role.
        role: Role,
    },
}

impl fmt::Display for ProtectionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unprotected => f.write_str("the message is not protected"),
            Self::Incomplete => {
                f.write_str("the message has one of protectionAlg and protection without the other")
            }
            Self::Unsupported(why) => why.fmt(f),
            Self::WrongKind => f.write_str(
                "the MAC rests on another kind of secret than the one it is compared with",
            ),
            Self::WrongMac => f.write_str("the MAC does not fit the shared secret"),
            Self::NoSignerCertificate { sender } => {
                write!(
                    f,
                    "the message brings no certificate of its sender '{sender}'"
                )
            }
            Self::WrongSignature { sender } => {
                write!(
                    f,
                    "the signature does not fit the certificate of its sender '{sender}'"
                )
            }
            Self::Untrusted(why) => write!(f, "the signer is not trusted: {why}"),
            Self::KeyUsage { subject } => write!(
                f,
                "the signer's certificate ('{subject}') is not for signing: \
                 its keyUsage lacks digitalSignature"
            ),
            Self::Role { subject, role } => write!(
                f,
                "the signer's certificate ('{subject}') is not that of a {role}: \
                 its extKeyUsage lacks {}",
                role.name()
            ),
        }
    }
}

impl core::error::Error for ProtectionError {}

/// Checks protection by a MAC with a shared secret. `compute` returns the MAC under an algorithm over some
/// octets; it runs wherever the secret is kept. It is not called where the algorithm or
/// its parameters are not accepted.
pub fn verify_mac<E: From<ProtectionError>>(
    message: &PkiMessage<'_>,
    policy: Policy,
    compute: impl FnOnce(&MacAlgorithm<'_>, &[u8]) -> Result<Vec<u8>, E>,
) -> Result<(), E> {
    verify_mac_of(message, policy, false, compute)
}

/// Checks protection by a MAC with the shared secret of a KEM (RFC 9810, 5.1.3.4), as
/// [`verify_mac`] does. They are kept apart lest a password is taken for the secret of a
/// KEM, whose derivation is no obstacle to guessing.
pub fn verify_kem_mac<E: From<ProtectionError>>(
    message: &PkiMessage<'_>,
    policy: Policy,
    compute: impl FnOnce(&MacAlgorithm<'_>, &[u8]) -> Result<Vec<u8>, E>,
) -> Result<(), E> {
    verify_mac_of(message, policy, true, compute)
}

fn verify_mac_of<E: From<ProtectionError>>(
    message: &PkiMessage<'_>,
    policy: Policy,
    by_kem: bool,
    compute: impl FnOnce(&MacAlgorithm<'_>, &[u8]) -> Result<Vec<u8>, E>,
) -> Result<(), E> {
    let (Some(_), Some(bits)) = (&message.header.protection_alg, message.protection) else {
        return Err(missing(message).into());
    };
    let algorithm =
        MacAlgorithm::from_header(&message.header, policy).map_err(ProtectionError::Unsupported)?;
    if matches!(algorithm, MacAlgorithm::KemBased { .. }) != by_kem {
        return Err(ProtectionError::WrongKind.into());
    }
    let expected = compute(&algorithm, &message.protected_part())?;
    if super::constant_time_eq(&expected, bits) {
        Ok(())
    } else {
        Err(ProtectionError::WrongMac.into())
    }
}

/// What the signer of a message is compared with.
#[derive(Clone, Copy, Debug)]
pub struct Anchors<'s, 'a> {
    /// Certificates that are trusted to issue signers' certificates, or to sign.
    pub trusted: &'s [Certificate<'a>],
    /// Certificates that help to find a path and are trusted for nothing: those of the
    /// configuration, and the signer of an earlier message of the same transaction.
    pub untrusted: &'s [Certificate<'a>],
    /// The time of the judgement.
    pub now: Time,
    /// What the signer's certificate must authorise it to be (RFC 9810, 4.5); an anchor
    /// itself needs no such word.
    pub role: Option<Role>,
    /// What is accepted beyond the rule.
    pub policy: Policy,
    /// Accept the certificate of a CA whose keyUsage has keyCertSign and lacks
    /// digitalSignature, against RFC 9483, 3.2.
    pub ca_may_sign: bool,
    /// A senderKID that tells nothing of the signer: that of the request, which some peers
    /// echo. The signer is then found by its name.
    pub echoed_kid: Option<&'s [u8]>,
}

impl<'s, 'a> Anchors<'s, 'a> {
    /// These certificates and no other help, no role, and the strict policy.
    pub fn new(trusted: &'s [Certificate<'a>], now: Time) -> Self {
        Self {
            trusted,
            untrusted: &[],
            now,
            role: None,
            policy: Policy::default(),
            ca_may_sign: false,
            echoed_kid: None,
        }
    }
}

/// Who signed a message: the certificate and its path, leaf first.
#[derive(Clone, Debug)]
pub struct Signer<'a> {
    /// From the signer's certificate to the anchor.
    pub path: Vec<Certificate<'a>>,
}

impl<'a> Signer<'a> {
    /// The signer's certificate.
    pub fn certificate(&self) -> Option<&Certificate<'a>> {
        self.path.first()
    }

    /// What the certificate authorises the signer to be.
    pub fn roles(&self) -> Vec<Role> {
        self.certificate()
            .map(Certificate::roles)
            .unwrap_or_default()
    }
}

/// Checks protection by a signature (RFC 9483, 3.2, 3.3 and 3.5): the signer is found by
/// name and key identifier among extraCerts in any order and among the certificates at
/// hand, must be traceable to an anchor, and must be allowed to sign.
pub fn verify_signature<'a>(
    message: &PkiMessage<'a>,
    anchors: Anchors<'_, 'a>,
    verifier: &dyn SignatureVerifier,
) -> Result<Signer<'a>, ProtectionError> {
    let (Some(algorithm), Some(bits)) = (&message.header.protection_alg, message.protection) else {
        return Err(missing(message));
    };
    let algorithm = SignatureAlgorithm::from_identifier(algorithm, anchors.policy)
        .map_err(ProtectionError::Unsupported)?;
    // One that cannot be read is not the one: the message may still be good.
    let mut candidates: Vec<Certificate<'a>> = message
        .extra_certs
        .iter()
        .filter_map(|der| Certificate::from_der(der).ok())
        .collect();
    candidates.extend_from_slice(anchors.untrusted);
    candidates.truncate(crate::limits::PATH_CANDIDATES);

    let sender = shortened(&message.header.sender);
    let protected = message.protected_part();
    let mut failure = ProtectionError::NoSignerCertificate {
        sender: sender.clone(),
    };
    let mut budget = path::Budget::default();
    let sender_kid = message
        .header
        .sender_kid
        .filter(|kid| anchors.echoed_kid != Some(kid));
    for certificate in candidates.iter().chain(anchors.trusted) {
        let fits = may_be_sender(message, sender_kid, certificate, &mut budget);
        if !fits.map_err(ProtectionError::Untrusted)? {
            continue;
        }
        budget
            .signature(&protected)
            .map_err(ProtectionError::Untrusted)?;
        let verdict = verifier.verify(algorithm, &certificate.public_key, &protected, bits);
        if verdict != Verdict::Valid {
            if matches!(failure, ProtectionError::NoSignerCertificate { .. }) {
                failure = match verdict {
                    Verdict::Unsupported => {
                        let key = &certificate.public_key;
                        ProtectionError::Unsupported(Unsupported::signature(algorithm, key))
                    }
                    _ => ProtectionError::WrongSignature {
                        sender: sender.clone(),
                    },
                };
            }
            continue;
        }
        match path::build_within(
            certificate,
            &candidates,
            anchors.trusted,
            anchors.now,
            anchors.policy,
            verifier,
            &mut budget,
        ) {
            Ok(path) => {
                let subject = || shortened(&certificate.subject);
                let lacking = anchors
                    .role
                    .filter(|role| path.len() > 1 && !certificate.roles().contains(role));
                let may_sign = path::may_sign_messages(certificate)
                    || anchors.ca_may_sign && path::may_sign_certificates(certificate);
                failure = match lacking {
                    _ if !may_sign => ProtectionError::KeyUsage { subject: subject() },
                    Some(role) => ProtectionError::Role {
                        subject: subject(),
                        role,
                    },
                    None => return Ok(Signer { path }),
                };
            }
            Err(why @ PathError::TooMuch(_)) => return Err(ProtectionError::Untrusted(why)),
            Err(why) => failure = ProtectionError::Untrusted(why),
        }
    }
    Err(failure)
}

fn missing(message: &PkiMessage<'_>) -> ProtectionError {
    match (&message.header.protection_alg, message.protection) {
        (None, None) => ProtectionError::Unprotected,
        _ => ProtectionError::Incomplete,
    }
}

/// Whether a certificate can be that of the sender: subject and, where both sides name
/// one, key identifier agree (RFC 9483, 3.1). A NULL-DN is identified by senderKID alone.
fn may_be_sender(
    message: &PkiMessage<'_>,
    sender_kid: Option<&[u8]>,
    certificate: &Certificate<'_>,
    budget: &mut path::Budget,
) -> Result<bool, PathError> {
    let header = &message.header;
    let identifier_fits = match (sender_kid, certificate.subject_key_identifier()) {
        (Some(wanted), Some(held)) => wanted == held,
        _ => true,
    };
    let name_fits = match header.sender.directory() {
        Some(name) if name.is_null() => {
            let held = certificate.subject_key_identifier();
            sender_kid.is_some() && sender_kid == held
        }
        Some(name) if identifier_fits => {
            let subject = &certificate.subject;
            budget.same_name(name, subject)? || name.matches_reversed(subject)
        }
        _ => false,
    };
    Ok(identifier_fits && name_fits)
}
