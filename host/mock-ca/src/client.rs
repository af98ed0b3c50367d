//! Who sends a request: the rules of RFC 9483, 3.1, 3.2 and 3.5 on its header and
//! protection.

use std::fmt;

use abide_cmp::protection::{
    Anchors, Hash, MacAlgorithm, Policy, ProtectionError, ProtectionKind, SoftwareVerifier,
    protection_kind, verify_mac, verify_signature,
};
use abide_cmp::{Certificate, FailInfo, PkiMessage, Time};

use crate::books::hex;
use crate::limits;
use crate::refusal::Refusal;

/// Who a client has proved to be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Client {
    /// Somebody who knows the shared secret, and the MAC they used.
    Secret { owf: Hash, mac: Hash },
    /// The holder of a certificate.
    Certificate {
        /// SHA-256 of the certificate.
        sha256: Vec<u8>,
        /// DER Name.
        issuer: Vec<u8>,
        /// In two's complement.
        serial: Vec<u8>,
        /// DER.
        certificate: Vec<u8>,
    },
}

/// The client's name in the books: all of one transaction must come from the same.
impl fmt::Display for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Secret { .. } => f.write_str("secret"),
            Self::Certificate { sha256, .. } => write!(f, "certificate {}", hex(sha256)),
        }
    }
}

/// What clients are compared with.
#[derive(Debug)]
pub(crate) struct Gate<'a> {
    /// The senderKID of who uses the secret.
    pub(crate) reference: &'a [u8],
    /// The secret.
    pub(crate) secret: &'a [u8],
    /// Certificates, as DER, that vouch for clients.
    pub(crate) trusted: Vec<&'a [u8]>,
}

impl Gate<'_> {
    /// Finds out who sent a message.
    pub(crate) fn admit(&self, message: &PkiMessage<'_>, now: Time) -> Result<Client, Refusal> {
        match protection_kind(message) {
            ProtectionKind::Mac => self.admit_secret(message),
            ProtectionKind::Signature => self.admit_certificate(message, now),
            ProtectionKind::None => Err(Refusal::new(
                FailInfo::BAD_MESSAGE_CHECK,
                "the request is not protected; use the shared secret or a certificate",
            )),
            ProtectionKind::Unknown => Err(Refusal::new(
                FailInfo::BAD_ALG,
                "the protection of the request is incomplete or of an unknown algorithm",
            )),
        }
    }

    fn admit_secret(&self, message: &PkiMessage<'_>) -> Result<Client, Refusal> {
        if message.header.sender_kid != Some(self.reference) {
            return Err(Refusal::new(
                FailInfo::BAD_MESSAGE_CHECK,
                match message.header.sender_kid {
                    Some(other) => format!(
                        "no secret is known under the reference '{}' (senderKID)",
                        other.escape_ascii()
                    ),
                    None => "the reference of the secret (senderKID) is missing".into(),
                },
            ));
        }
        let mut client = None;
        verify_mac::<ProtectionError>(message, Policy::default(), |algorithm, data| {
            if let MacAlgorithm::PasswordBased { owf, mac, .. } = *algorithm {
                client = Some(Client::Secret { owf, mac });
            }
            Ok(algorithm.compute(self.secret, data))
        })
        .map_err(not_authentic)?;
        client.ok_or_else(|| {
            Refusal::new(
                FailInfo::BAD_ALG,
                "this CA answers a password-based MAC only",
            )
        })
    }

    fn admit_certificate(&self, message: &PkiMessage<'_>, now: Time) -> Result<Client, Refusal> {
        let trusted: Vec<_> = self
            .trusted
            .iter()
            .filter_map(|der| Certificate::from_der(der).ok())
            .collect();
        let anchors = Anchors::new(&trusted, now);
        let signer =
            verify_signature(message, anchors, &SoftwareVerifier).map_err(not_authentic)?;
        let Some(certificate) = signer.path.first() else {
            return Err(Refusal::new(
                FailInfo::SIGNER_NOT_TRUSTED,
                "the signer of the request has no certificate",
            ));
        };
        Ok(Client::Certificate {
            sha256: Hash::Sha256.digest(certificate.raw),
            issuer: certificate.issuer.der().to_vec(),
            serial: certificate.serial.to_vec(),
            certificate: certificate.raw.to_vec(),
        })
    }
}

fn not_authentic(why: ProtectionError) -> Refusal {
    let fail_info = match why {
        ProtectionError::Unsupported(_) => FailInfo::BAD_ALG,
        ProtectionError::Untrusted(_) | ProtectionError::NoSignerCertificate { .. } => {
            FailInfo::BAD_MESSAGE_CHECK.union(FailInfo::SIGNER_NOT_TRUSTED)
        }
        _ => FailInfo::BAD_MESSAGE_CHECK,
    };
    Refusal::new(fail_info, why.to_string())
}

/// What every request must have in its header (RFC 9483, 3.5). Returns the transactionID.
pub(crate) fn check_header<'a>(message: &PkiMessage<'a>) -> Result<&'a [u8], Refusal> {
    let id = message.header.transaction_id.unwrap_or_default();
    if id.len() < limits::NONCE {
        return Err(Refusal::new(
            FailInfo::BAD_DATA_FORMAT,
            format!("the transactionID has {} octets instead of 16", id.len()),
        ));
    }
    let nonce = message.header.sender_nonce.unwrap_or_default();
    if nonce.len() < limits::NONCE {
        return Err(Refusal::new(
            FailInfo::BAD_SENDER_NONCE,
            format!("the senderNonce has {} octets instead of 16", nonce.len()),
        ));
    }
    Ok(id)
}
