//! Central key generation (RFC 9483, 4.1.6): what is asked for, and the way of the private key
//! from the answer to the host. In here it is in clear for the time of one call, and wiped.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use abide_cmp::cms::{CmsError, Envelope, Recipient, SignedData};
use abide_cmp::der::{Writer, tag};
use abide_cmp::protection::Anchors;
use abide_cmp::{
    AlgorithmIdentifier, CertOrEncCert, CertResponse, Certificate, EncryptedKey, FailInfo, Time,
    oid, path,
};
use zeroize::Zeroizing;

use crate::certificate::{Evidence, Refusal};
use crate::driver::Error;
use crate::enrollment::{Credential, Generated};
use crate::host::{HandlingError, Host, HostVerifier};
use crate::plan::{Plan, Request, invalid};

/// Checks that the PKI can encrypt for the credential, before there is a certificate whose key
/// nobody can read. A shared secret always will do.
pub(crate) fn check_recipient(own: Option<&Certificate<'_>>) -> Result<(), Error> {
    let Some(own) = own else { return Ok(()) };
    let (fits, usage) = match own.public_key.algorithm.oid {
        oid::RSA_ENCRYPTION => (path::may_encipher_keys(own), "keyEncipherment"),
        oid::EC_PUBLIC_KEY => (path::may_agree_on_keys(own), "keyAgreement"),
        _ => {
            return Err(invalid(
                "the PKI cannot encrypt a new key for the own certificate: its key must be RSA \
                 or of an elliptic curve (RFC 9483, 4.1.6); ask with another credential",
            ));
        }
    };
    match fits {
        true => Ok(()),
        false => Err(invalid(format!(
            "the PKI may not encrypt a new key for the own certificate ('{}'): its keyUsage lacks \
             {usage} (RFC 9483, 4.1.6); ask with another credential",
            own.subject
        ))),
    }
}

/// What the template says of the key: nothing, or a SubjectPublicKeyInfo of the preferred kind
/// with a BIT STRING of no length (RFC 9483, 4.1.6).
pub(crate) fn preference(wanted: &Generated) -> Result<Option<Vec<u8>>, Error> {
    let Some(der) = &wanted.algorithm else {
        return Ok(None);
    };
    AlgorithmIdentifier::from_der(der)
        .map_err(|error| invalid(format!("the preferred kind of key: {error}")))?;
    Ok(Some(Writer::encode(|w| {
        w.sequence(|w| {
            w.raw(der);
            w.bits(tag::BIT_STRING, &[]);
        });
    })))
}

/// Takes the private key out of an answer with a certificate that was found good, and gives it
/// to the host. What a person should know of how it came is returned; a refusal is told to the
/// CA. An error means that the host cannot keep it now: then nothing has changed, and the same
/// request brings the same answer again.
pub(crate) fn take(
    plan: &Plan<'_>,
    host: &dyn Host,
    response: &CertResponse<'_>,
    evidence: &Evidence<'_>,
    now_ms: u64,
) -> Result<Result<Option<String>, Refusal>, Error> {
    let Request::Template {
        key: name,
        generated: true,
        ..
    } = &plan.request
    else {
        return Ok(Ok(None));
    };
    match deliver(plan, host, name, response, evidence, now_ms) {
        Ok(deviation) => Ok(Ok(deviation)),
        Err(Trouble::Refused(refusal)) => Ok(Err(refusal)),
        Err(Trouble::Host(error)) => Err(error),
    }
}

enum Trouble {
    Refused(Refusal),
    Host(Error),
}

impl Trouble {
    /// What the host refuses is refused towards the CA; what it cannot do now is `unavailable`.
    fn of(error: HandlingError, unavailable: fn(String) -> Error) -> Self {
        match error {
            HandlingError::Refused(why) => Self::refused(FailInfo::INCORRECT_DATA, why),
            HandlingError::Unavailable(why) => Self::Host(unavailable(why)),
        }
    }

    fn refused(fail_info: FailInfo, why: impl core::fmt::Display) -> Self {
        let why = format!("the private key that came with it: {why}");
        Self::Refused(Refusal { fail_info, why })
    }
}

impl From<CmsError> for Trouble {
    fn from(error: CmsError) -> Self {
        Self::refused(error.fail_info(), error)
    }
}

fn deliver(
    plan: &Plan<'_>,
    host: &dyn Host,
    name: &str,
    response: &CertResponse<'_>,
    evidence: &Evidence<'_>,
    now_ms: u64,
) -> Result<Option<String>, Trouble> {
    let pair = response.certified_key_pair.as_ref();
    let (certificate, key) = match pair.map(|pair| (&pair.cert_or_enc_cert, &pair.private_key)) {
        Some((CertOrEncCert::Certificate(der), Some(key))) => (*der, key),
        _ => {
            return Err(Trouble::Refused(Refusal {
                fail_info: FailInfo::INCORRECT_DATA,
                why: "it came without the private key that the PKI was to make (RFC 9483, 4.1.6)"
                    .into(),
            }));
        }
    };
    let EncryptedKey::EnvelopedData(data) = key else {
        return Err(Trouble::refused(
            FailInfo::BAD_DATA_FORMAT,
            "it comes as an EncryptedValue, which does not tell who made it and is deprecated \
             (RFC 9810, 5.2.2); the PKI must send an EnvelopedData (RFC 9483, 4.1.6)",
        ));
    };
    let certificate = Certificate::from_der(certificate)
        .map_err(|error| Trouble::refused(FailInfo::BAD_DATA_FORMAT, error))?;
    let mut helpers: Vec<Certificate<'_>> = evidence.extra_certs.clone();
    helpers.extend(plan.untrusted.iter().cloned());
    let own = match &plan.enrollment.credential {
        Credential::Certificate(credential) => &credential.key,
        Credential::Secret(secret) => &secret.key,
    };
    let recipient = match &plan.own {
        Some(certificate) => Recipient::Certificate(certificate, &helpers),
        None => Recipient::Secret,
    };
    let envelope = Envelope::new(data, recipient, plan.policy())?;
    let signed = host.open(own, &envelope);
    let signed = Zeroizing::new(signed.map_err(|error| Trouble::of(error, Error::Key))?);
    let signed = SignedData::from_der(&signed)?;
    // With a shared secret caPubs may be trusted, and without any anchor the secret alone
    // authorises who made the key.
    let mut trusted: Vec<Certificate<'_>> = plan.trusted.clone();
    trusted.extend(evidence.ca_pubs.iter().cloned());
    let anchors = Anchors {
        untrusted: &helpers,
        policy: plan.policy(),
        ..Anchors::new(&trusted, Time::from_unix((now_ms / 1000) as i64))
    };
    let new = signed.verify(anchors, &HostVerifier(host))?;
    if !new.claims(&certificate.public_key) {
        return Err(Trouble::refused(
            FailInfo::INCORRECT_DATA,
            "it is not that of the certificate",
        ));
    }
    host.install(name, new.der, certificate.public_key.raw)
        .map_err(|error| Trouble::of(error, Error::Storage))?;
    Ok((!new.is_packaged()).then(|| {
        String::from(
            "the private key came without an AsymmetricKeyPackage around it (RFC 9483, 4.1.6), \
             and was taken nevertheless",
        )
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(der: &[u8]) -> Result<(), Error> {
        check_recipient(Some(&Certificate::from_der(der).expect("a certificate")))
    }

    /// The certificates are OpenSSL's: `guest/cmp/tests/cms/make.sh`.
    #[test]
    fn who_cannot_be_encrypted_for_is_told_before_anything_is_sent() {
        assert_eq!(check(include_bytes!("../../cmp/tests/cms/rsa.crt")), Ok(()));
        assert_eq!(check(include_bytes!("../../cmp/tests/cms/ec.crt")), Ok(()));
        assert_eq!(check_recipient(None), Ok(()));
        let signer = check(include_bytes!("../../cmp/tests/cms/signer.crt"));
        let Err(Error::Invalid(why)) = signer else {
            panic!("{signer:?}");
        };
        assert!(why.contains("lacks keyAgreement"), "{why}");
    }
}
