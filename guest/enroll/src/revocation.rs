//! Revoking a certificate, or reviving one that is on hold (RFC 9483, 4.2).

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use abide_cmp::der::{Writer, tag};
use abide_cmp::protection::Hash;
use abide_cmp::{
    CertTemplate, Certificate, Extension, FailInfo, GeneralName, Name, PkiBody, PkiStatus,
    PkiStatusInfo, RevDetails, RevRepContent, oid,
};

use crate::driver::Error;
use crate::enrollment::{Revocation, Revoked};
use crate::limits;
use crate::mutation::Mutation;

/// What is asked for, read.
#[derive(Debug)]
pub(crate) struct RevocationRequest {
    issuer: Name<'static>,
    /// INTEGER under the tag of CertTemplate's serialNumber.
    serial: Vec<u8>,
    /// CRLReason as an ENUMERATED.
    reason: Vec<u8>,
    revives: bool,
}

/// What the CA did.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// It is done; the text says more where there is more to say.
    Done(String),
    /// It was refused.
    Refused,
    /// The answer cannot be that to this request.
    Unusable(&'static str),
}

impl RevocationRequest {
    pub(crate) fn new(revocation: &Revocation) -> Result<Self, Error> {
        let invalid = |why| Err(Error::Invalid(why));
        let (issuer, number) = match &revocation.certificate {
            Revoked::Certificate(der) => match Certificate::from_der(der) {
                Ok(certificate) => (
                    certificate.issuer.clone().into_owned(),
                    certificate.serial.to_vec(),
                ),
                Err(error) => return invalid(format!("the certificate to revoke: {error}")),
            },
            Revoked::Number(issuer, serial) => {
                if serial.is_empty() || serial.len() > limits::SERIAL {
                    return invalid(format!(
                        "a serial number has 1 to {} octets (RFC 5280, 4.1.2.2)",
                        limits::SERIAL
                    ));
                }
                match Name::parse(issuer) {
                    Ok(issuer) if !issuer.is_null() => (issuer, integer(serial)),
                    Ok(_) => return invalid("a serial number goes with its issuer".into()),
                    Err(error) => return invalid(format!("issuer: {error}")),
                }
            }
        };
        // 7 is not used (RFC 5280, 5.3.1).
        if !matches!(revocation.reason, 0..=6 | 8..=10) {
            return invalid(format!(
                "{} is no CRLReason: 0 to 6 and 8 to 10 are (RFC 5280, 5.3.1)",
                revocation.reason
            ));
        }
        Ok(Self {
            issuer,
            serial: Writer::encode(|w| w.element(tag::primitive(1), &number)),
            reason: Writer::encode(|w| w.element(tag::ENUMERATED, &[revocation.reason])),
            revives: revocation.reason == REMOVE_FROM_CRL,
        })
    }

    pub(crate) fn body(&self) -> PkiBody<'_> {
        PkiBody::Rr(alloc::vec![RevDetails {
            cert_details: CertTemplate {
                issuer: Some(self.issuer.clone()),
                others: alloc::vec![(1, self.serial.as_slice())],
                ..CertTemplate::default()
            },
            crl_entry_details: alloc::vec![Extension {
                oid: oid::CRL_REASON,
                critical: false,
                value: &self.reason,
            }],
        }])
    }

    /// Judges an rp. `repeated` says that the request was sent more than once: then
    /// certRevoked tells that the first one did its work.
    pub(crate) fn judge(&self, content: &RevRepContent<'_>, repeated: bool) -> Verdict {
        let [status] = content.status.as_slice() else {
            return Verdict::Unusable("the rp has not exactly one status (RFC 9483, 4.2)");
        };
        if let Some(named) = content.rev_certs.first() {
            let ours = content.rev_certs.len() == 1
                && named.serial_number == &self.serial[2..]
                && matches!(&named.issuer, GeneralName::Directory(name)
                    if name.matches(&self.issuer) || name.matches_reversed(&self.issuer));
            if !ours {
                return Verdict::Unusable("the rp is about another certificate (RFC 9483, 4.2)");
            }
        }
        match status.status {
            PkiStatus::Accepted => Verdict::Done(String::new()),
            PkiStatus::Rejection => match self.done_before(status, repeated) {
                Some(note) => Verdict::Done(note.into()),
                None => Verdict::Refused,
            },
            PkiStatus::Waiting => {
                Verdict::Unusable("an rp cannot wait; error does that (RFC 9483, 4.4)")
            }
            PkiStatus::KeyUpdateWarning => {
                Verdict::Unusable("the rp speaks of a key update (RFC 9483, 4.2)")
            }
            other => Verdict::Done(format!("the CA says {}", other.name())),
        }
    }

    /// Whether a refusal says that an earlier copy of the request did its work. Some CAs
    /// say it in an rp, some in an error.
    pub(crate) fn done_before(
        &self,
        status: &PkiStatusInfo<'_>,
        repeated: bool,
    ) -> Option<&'static str> {
        let already = status
            .fail_info
            .is_some_and(|info| info.intersects(FailInfo::CERT_REVOKED));
        let mutated = Mutation::RevokedAlreadyIsRefusal.is_on();
        (already && repeated && !self.revives && !mutated).then_some(
            "the CA says that it is revoked already: an earlier copy of this request arrived",
        )
    }

    /// SHA-256 of what is asked for.
    pub(crate) fn digest(&self) -> Vec<u8> {
        Hash::Sha256.digest(&[self.issuer.der(), &self.serial, &self.reason].concat())
    }

    /// What was done, in words.
    pub(crate) fn done(&self) -> &'static str {
        if self.revives { "revived" } else { "revoked" }
    }
}

/// removeFromCRL of CRLReason (RFC 5280, 5.3.1).
const REMOVE_FROM_CRL: u8 = 8;

/// The content of an INTEGER from an unsigned number.
fn integer(unsigned: &[u8]) -> Vec<u8> {
    let digits = unsigned
        .iter()
        .position(|&octet| octet != 0)
        .map_or(&[0][..], |first| &unsigned[first..]);
    let mut content = Vec::with_capacity(digits.len() + 1);
    if digits[0] & 0x80 != 0 {
        content.push(0);
    }
    content.extend_from_slice(digits);
    content
}

#[cfg(test)]
mod tests {
    use super::*;

    fn number(serial: &[u8], reason: u8) -> Result<RevocationRequest, Error> {
        RevocationRequest::new(&Revocation {
            certificate: Revoked::Number("CN=CA".into(), serial.to_vec()),
            reason,
        })
    }

    #[test]
    fn serial_numbers_are_positive_and_minimal() {
        // X.690, 8.3.
        for (unsigned, tagged) in [
            (&[0x01][..], &[0x81, 0x01, 0x01][..]),
            (&[0x80], &[0x81, 0x02, 0x00, 0x80]),
            (&[0x00, 0x00, 0x7f], &[0x81, 0x01, 0x7f]),
            (&[0x00], &[0x81, 0x01, 0x00]),
        ] {
            assert_eq!(number(unsigned, 0).unwrap().serial, tagged);
        }
        assert!(number(&[], 0).is_err());
        assert!(number(&[1; 21], 0).is_err());
    }

    #[test]
    fn reason_seven_does_not_exist() {
        for reason in [7, 11, 255] {
            assert!(number(&[1], reason).is_err());
        }
        assert!(number(&[1], 8).unwrap().revives);
    }
}
