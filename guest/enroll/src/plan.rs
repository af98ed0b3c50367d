//! An enrollment that was read and found to make sense, before anything is stored or
//! sent.

use alloc::borrow::Cow;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use abide_cmp::der::Writer;
use abide_cmp::protection::{Hash, Policy, SignatureAlgorithm, SignatureVerifier, Verdict};
use abide_cmp::{
    CertTemplate, Certificate, CertificationRequest, Extension, Name, PublicKeyInfo,
    SubjectAltName, oid,
};

use crate::driver::Error;
use crate::enrollment::{Credential, Enrollment, Generated, Limits, Operation, Template, Want};
use crate::host::{Host, HostVerifier};
use crate::information::InformationRequest;
use crate::key_generation;
use crate::limits;
use crate::registration;
use crate::revocation::RevocationRequest;

/// What is asked for, read.
#[derive(Debug)]
pub(crate) enum Request<'e> {
    /// p10cr.
    Csr(CertificationRequest<'e>),
    /// ir, cr and kur.
    Template {
        subject: Name<'e>,
        san: Option<SubjectAltName>,
        /// What a kur takes over from the certificate that it updates.
        carried: Vec<Extension<'e>>,
        /// The name of the key at the host.
        key: &'e str,
        /// What the template says of it: its SubjectPublicKeyInfo.
        public_key: Option<Vec<u8>>,
        /// Whether the PKI is to make the key, so that the template says nothing of it but, at
        /// most, of which kind it should be.
        generated: bool,
    },
    /// rr.
    Revocation(RevocationRequest),
    /// genm.
    Information(InformationRequest),
}

/// An enrollment, read.
#[derive(Debug)]
pub(crate) struct Plan<'e> {
    pub(crate) enrollment: &'e Enrollment,
    pub(crate) recipient: Name<'static>,
    pub(crate) request: Request<'e>,
    /// The certificate of a signature credential.
    pub(crate) own: Option<Certificate<'e>>,
    pub(crate) trusted: Vec<Certificate<'e>>,
    pub(crate) out_trusted: Vec<Certificate<'e>>,
    pub(crate) untrusted: Vec<Certificate<'e>>,
}

impl<'e> Plan<'e> {
    /// Reads an enrollment. Nothing has happened when this fails.
    pub(crate) fn new(enrollment: &'e Enrollment, host: &dyn Host) -> Result<Self, Error> {
        check_names(enrollment)?;
        check_limits(&enrollment.limits)?;
        let recipient = match enrollment.recipient.trim() {
            "" => Name::NULL,
            text => Name::parse(text).map_err(|error| invalid(format!("recipient: {error}")))?,
        };
        let trusted = certificates(&enrollment.trusted, "trusted certificate")?;
        let own = match &enrollment.credential {
            Credential::Secret(secret) => {
                use abide_cmp::limits::{IDENTIFIER, ITERATIONS, MIN_ITERATIONS};
                if !(MIN_ITERATIONS..=ITERATIONS).contains(&secret.iterations) {
                    return Err(invalid(format!(
                        "{} iterations for a MAC: {MIN_ITERATIONS} to {ITERATIONS} are possible",
                        secret.iterations
                    )));
                }
                if secret.reference.is_empty() || secret.reference.len() > IDENTIFIER {
                    return Err(invalid(format!(
                        "the reference of the secret has 1 to {IDENTIFIER} octets"
                    )));
                }
                None
            }
            Credential::Certificate(credential) => {
                if trusted.is_empty() {
                    return Err(invalid(
                        "signature protection needs a trusted certificate to check the answers \
                         against",
                    ));
                }
                let own = Certificate::from_der(&credential.certificate)
                    .map_err(|error| invalid(format!("the own certificate: {error}")))?;
                let key = host
                    .public_key(&credential.key)
                    .map_err(|e| Error::Key(e.0))?;
                if key != own.public_key.raw {
                    return Err(invalid(format!(
                        "the private key does not belong to the own certificate ('{}')",
                        own.subject
                    )));
                }
                Some(own)
            }
        };
        registration::check(enrollment, host)?;
        Ok(Self {
            enrollment,
            recipient,
            request: read_request(enrollment, own.as_ref(), host)?,
            own,
            trusted,
            out_trusted: certificates(&enrollment.out_trusted, "trusted certificate for output")?,
            untrusted: certificates(&enrollment.untrusted, "untrusted certificate")?,
        })
    }

    /// What is believed beyond the rule.
    pub(crate) fn policy(&self) -> Policy {
        Policy {
            allow_sha1: self.enrollment.allow_sha1,
        }
    }

    /// The key identifier under which requests are protected: the name of the secret, or that
    /// in the own certificate (RFC 9483, 3.1).
    pub(crate) fn sender_kid(&self) -> Option<&[u8]> {
        match (&self.enrollment.credential, &self.own) {
            (Credential::Secret(secret), _) => Some(&secret.reference),
            (_, Some(own)) => own.subject_key_identifier(),
            (_, None) => None,
        }
    }

    /// Whether the PKI is to make the key pair.
    pub(crate) fn generates_key(&self) -> bool {
        matches!(
            self.request,
            Request::Template {
                generated: true,
                ..
            }
        )
    }

    /// The key that is to be certified, where it is known before the certificate.
    pub(crate) fn public_key(&self) -> Option<&[u8]> {
        match &self.request {
            Request::Csr(csr) => Some(csr.public_key.raw),
            Request::Template {
                public_key,
                generated: false,
                ..
            } => public_key.as_deref(),
            Request::Template { .. } | Request::Revocation(_) | Request::Information(_) => None,
        }
    }

    /// The CertTemplate of ir, cr and kur.
    pub(crate) fn template(&self) -> Option<CertTemplate<'_>> {
        let Request::Template {
            subject,
            san,
            carried,
            public_key,
            ..
        } = &self.request
        else {
            return None;
        };
        let san = san.as_ref().map(|san| Extension {
            oid: oid::SUBJECT_ALT_NAME,
            // A certificate without a subject is identified by this (RFC 5280, 4.2.1.6).
            critical: subject.is_null(),
            value: san.der(),
        });
        Some(CertTemplate {
            subject: Some(subject.clone()),
            public_key: public_key.as_deref().map(Cow::Borrowed),
            extensions: san.into_iter().chain(carried.iter().copied()).collect(),
            ..CertTemplate::default()
        })
    }

    /// SHA-256 of what is asked for.
    pub(crate) fn csr_digest(&self) -> Vec<u8> {
        match &self.request {
            Request::Csr(csr) => Hash::Sha256.digest(csr.raw),
            Request::Template { .. } => {
                let mut writer = Writer::new();
                self.template().unwrap_or_default().write(&mut writer);
                if let (Operation::Kur, Some(own)) = (self.enrollment.operation, &self.own) {
                    writer.raw(own.raw);
                }
                Hash::Sha256.digest(&writer.finish())
            }
            Request::Revocation(request) => request.digest(),
            Request::Information(request) => request.digest(),
        }
    }

    /// SHA-256 of who is asked.
    pub(crate) fn issuer_digest(&self) -> Vec<u8> {
        let mut fields = Fields::default();
        fields.add(self.enrollment.operation.name().as_bytes());
        fields.add(self.enrollment.server.as_bytes());
        fields.add(self.recipient.der());
        if !self.enrollment.profile.is_empty() {
            fields.add(self.enrollment.profile.as_bytes());
        }
        fields.digest()
    }

    /// SHA-256 of the content of everything that decides what is believed and how
    /// requests are protected. A rewrite that changes nothing gives the same.
    pub(crate) fn configuration_digest(
        &self,
        host: &dyn Host,
        transaction_id: &[u8],
    ) -> Result<Vec<u8>, Error> {
        let mut fields = Fields::default();
        let key = match &self.enrollment.credential {
            Credential::Secret(secret) => {
                fields.add(b"secret");
                fields.add(&secret.reference);
                &secret.key
            }
            Credential::Certificate(credential) => {
                fields.add(b"certificate");
                fields.add(&credential.certificate);
                fields.add_set(&credential.chain);
                &credential.key
            }
        };
        let fingerprint = host
            .fingerprint(key, transaction_id)
            .map_err(|e| Error::Key(e.0))?;
        fields.add(&fingerprint);
        fields.add_set(&self.enrollment.trusted);
        fields.add_set(&self.enrollment.out_trusted);
        fields.add(&[u8::from(self.enrollment.implicit_confirm)]);
        fields.add(&[u8::from(self.enrollment.allow_sha1)]);
        if let Some(registration) = &self.enrollment.registration {
            registration.add_to(|field| fields.add(field));
        }
        Ok(fields.digest())
    }
}

/// Fields that are hashed with their lengths, so that no two sequences look alike.
#[derive(Default)]
struct Fields(Vec<u8>);

impl Fields {
    fn add(&mut self, field: &[u8]) {
        self.0
            .extend_from_slice(&(field.len() as u64).to_be_bytes());
        self.0.extend_from_slice(field);
    }

    /// Adds certificates whose order does not matter.
    fn add_set(&mut self, certificates: &[Vec<u8>]) {
        let mut sorted: Vec<_> = certificates.iter().collect();
        sorted.sort();
        sorted.dedup();
        self.add(&(sorted.len() as u64).to_be_bytes());
        sorted
            .into_iter()
            .for_each(|certificate| self.add(certificate));
    }

    fn digest(self) -> Vec<u8> {
        Hash::Sha256.digest(&self.0)
    }
}

pub(crate) fn invalid(why: impl Into<String>) -> Error {
    Error::Invalid(why.into())
}

fn check_names(enrollment: &Enrollment) -> Result<(), Error> {
    if enrollment.order.is_empty() || enrollment.order.len() > limits::NAME {
        return Err(invalid(format!(
            "an order's name has 1 to {} octets",
            limits::NAME
        )));
    }
    if enrollment.account.len() > limits::NAME {
        return Err(invalid(format!(
            "an account's name has at most {} octets",
            limits::NAME
        )));
    }
    if enrollment.profile.len() > limits::NAME {
        return Err(invalid(format!(
            "a certProfile has at most {} octets",
            limits::NAME
        )));
    }
    let scheme = ["http://", "https://"]
        .iter()
        .any(|s| enrollment.server.starts_with(s));
    if !scheme {
        return Err(invalid(format!(
            "the server '{}' is not an http:// or https:// URL",
            enrollment.server.escape_debug()
        )));
    }
    Ok(())
}

fn check_limits(given: &Limits) -> Result<(), Error> {
    let within = |what: &str, value: u64, most: u64| {
        if (1..=most).contains(&value) {
            return Ok(());
        }
        Err(invalid(format!(
            "{what} of {value} ms: 1 to {most} are possible"
        )))
    };
    within(
        "a maximum duration",
        given.maximum_duration_ms,
        limits::DURATION_MS,
    )?;
    within(
        "a request timeout",
        given.request_timeout_ms,
        limits::REQUEST_TIMEOUT_MS,
    )?;
    within(
        "a maximum poll interval",
        given.maximum_poll_interval_ms,
        limits::DURATION_MS,
    )?;
    within(
        "a minimum poll interval",
        given.minimum_poll_interval_ms,
        given.maximum_poll_interval_ms,
    )
}

fn certificates<'e>(ders: &'e [Vec<u8>], what: &str) -> Result<Vec<Certificate<'e>>, Error> {
    if ders.len() > abide_cmp::limits::PATH_CANDIDATES {
        let most = abide_cmp::limits::PATH_CANDIDATES;
        return Err(invalid(format!(
            "more than {most} of one kind of certificate ({what})"
        )));
    }
    ders.iter()
        .enumerate()
        .map(|(index, der)| {
            Certificate::from_der(der)
                .map_err(|error| invalid(format!("{what} {}: {error}", index + 1)))
        })
        .collect()
}

fn read_request<'e>(
    enrollment: &'e Enrollment,
    own: Option<&Certificate<'e>>,
    host: &dyn Host,
) -> Result<Request<'e>, Error> {
    match (&enrollment.want, enrollment.operation) {
        (Want::Csr(der), Operation::P10cr) => {
            let csr = CertificationRequest::from_der(der)
                .map_err(|error| invalid(format!("the CSR: {error}")))?;
            let algorithm =
                SignatureAlgorithm::from_identifier(&csr.signature_algorithm, Policy::default())
                    .map_err(|error| invalid(format!("the CSR: {error}")))?;
            let verdict =
                HostVerifier(host).verify(algorithm, &csr.public_key, csr.info, csr.signature);
            if verdict == Verdict::Unsupported {
                return Err(invalid("the CSR: its kind of key is not supported"));
            }
            if verdict == Verdict::Invalid {
                return Err(invalid(
                    "the CSR's signature does not fit its own key: it was changed after it was \
                     made, or made with another key",
                ));
            }
            Ok(Request::Csr(csr))
        }
        (Want::Template(template), Operation::Ir | Operation::Cr | Operation::Kur) => {
            read_template(enrollment, template, None, own, host)
        }
        (Want::Generated(wanted), Operation::Ir | Operation::Cr | Operation::Kur) => {
            read_template(enrollment, &wanted.template, Some(wanted), own, host)
        }
        (Want::Revocation(revocation), Operation::Rr) => {
            RevocationRequest::new(revocation).map(Request::Revocation)
        }
        (Want::Information(question), Operation::Genm) => {
            InformationRequest::new(question).map(Request::Information)
        }
        (_, Operation::P10cr) => Err(invalid("p10cr takes a CSR")),
        (_, Operation::Rr) => Err(invalid("rr takes a certificate to revoke")),
        (_, Operation::Genm) => Err(invalid("genm takes a question")),
        (_, operation) => Err(invalid(format!(
            "{} takes a subject and a key",
            operation.name()
        ))),
    }
}

fn read_template<'e>(
    enrollment: &'e Enrollment,
    template: &'e Template,
    generated: Option<&'e Generated>,
    own: Option<&Certificate<'e>>,
    host: &dyn Host,
) -> Result<Request<'e>, Error> {
    let old = match (enrollment.operation, own) {
        (Operation::Kur, None) => {
            return Err(invalid(
                "kur is signed by the certificate that it updates (RFC 9483, 4.1.3): \
                 give that and its key as the credential",
            ));
        }
        (Operation::Kur, old) => old,
        _ => None,
    };
    let subject = match (template.subject.trim(), old) {
        ("", Some(old)) => old.subject.clone(),
        (text, _) => Name::parse(text).map_err(|error| invalid(format!("subject: {error}")))?,
    };
    if template.sans.len() > limits::SANS {
        return Err(invalid(format!(
            "{} subject alternative names: at most {} are possible",
            template.sans.len(),
            limits::SANS
        )));
    }
    let san = match template.sans.as_slice() {
        [] => None,
        sans => Some(
            SubjectAltName::parse(sans)
                .map_err(|error| invalid(format!("subject alternative name: {error}")))?,
        ),
    };
    let carried = old.map_or_else(Vec::new, |old| carried(old, san.is_some()));
    if subject.is_null() && san.is_none() && !names_itself(&carried) {
        return Err(invalid("neither a subject nor a subject alternative name"));
    }
    let public_key = match generated {
        Some(generated) => {
            key_generation::check_recipient(own)?;
            key_generation::preference(generated)?
        }
        None => {
            let key = host
                .public_key(&template.key)
                .map_err(|e| Error::Key(e.0))?;
            let read = PublicKeyInfo::from_der(&key)
                .map_err(|error| invalid(format!("the new key: {error}")))?;
            // What an RA has verified may be the key of anything.
            if !registration::is_ra_verified(enrollment) {
                SignatureAlgorithm::for_key(&read)
                    .map_err(|error| invalid(format!("the new key: {error}")))?;
            }
            Some(key)
        }
    };
    Ok(Request::Template {
        subject,
        san,
        carried,
        key: &template.key,
        public_key,
        generated: generated.is_some(),
    })
}

/// The extensions that a new certificate inherits: all but those that belong to the old
/// key, to the issuer, or to the act of issuing.
fn carried<'e>(old: &Certificate<'e>, has_san: bool) -> Vec<Extension<'e>> {
    let not_ours = [
        oid::SUBJECT_KEY_IDENTIFIER,
        oid::AUTHORITY_KEY_IDENTIFIER,
        oid::ISSUER_ALT_NAME,
        oid::CRL_DISTRIBUTION_POINTS,
        oid::FRESHEST_CRL,
        oid::AUTHORITY_INFO_ACCESS,
        oid::SIGNED_CERTIFICATE_TIMESTAMPS,
    ];
    old.extensions
        .iter()
        .filter(|extension| !not_ours.contains(&extension.oid))
        .filter(|extension| !has_san || extension.oid != oid::SUBJECT_ALT_NAME)
        .copied()
        .collect()
}

fn names_itself(extensions: &[Extension<'_>]) -> bool {
    extensions
        .iter()
        .any(|extension| extension.oid == oid::SUBJECT_ALT_NAME)
}
