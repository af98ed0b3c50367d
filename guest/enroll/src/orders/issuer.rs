//! From an order and its issuer to an enrollment.

use alloc::borrow::Cow;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use super::record::{Attempt, Order, Request};
use crate::deviations::Deviations;
use crate::enrollment::{
    CertificateCredential, Credential, Enrollment, Limits, Operation, Registration, Template, Want,
};

/// How an issuer is spoken to: an enrollment without its order.
#[derive(Clone, Debug)]
pub struct Issuer {
    /// For a request with a key of the host: ir or cr. A CSR is always a p10cr.
    pub operation: Operation,
    /// Whether a renewal with a key of the host is a kur under the certificate in use.
    pub updates: bool,
    /// certProfile; empty for none.
    pub profile: String,
    /// The URL of the CMP endpoint at which a transaction begins; empty when none of them is for
    /// this order.
    pub server: String,
    /// The URLs of all endpoints, if there are several.
    pub endpoints: Vec<String>,
    /// Why it is this endpoint, in one line; empty when there is but one.
    pub route: String,
    /// The CA's name as text; empty when it is not known.
    pub recipient: String,
    /// How requests are protected.
    pub credential: Credential,
    /// DER certificates that may vouch for the signer of an answer.
    pub trusted: Vec<Vec<u8>>,
    /// DER certificates under which the new certificate must fall.
    pub out_trusted: Vec<Vec<u8>>,
    /// Certificates that help to build paths, DER.
    pub untrusted: Vec<Vec<u8>>,
    /// Ask the CA to do without certConf.
    pub implicit_confirm: bool,
    /// Believe SHA-1.
    pub allow_sha1: bool,
    /// What is accepted of the CA beyond the rules.
    pub allow: Deviations,
    /// Bounds on each transaction.
    pub limits: Limits,
    /// For a registration authority.
    pub registration: Option<Registration>,
}

impl Issuer {
    /// The same issuer at the endpoint of an attempt that is under way: it is not left in the
    /// middle because another one would be chosen now. One that the issuer no longer has is left.
    pub(crate) fn at(&self, attempt: Option<&Attempt>) -> Cow<'_, Self> {
        match attempt.and_then(|attempt| attempt.server.as_ref()) {
            Some(server) if *server != self.server && self.endpoints.contains(server) => {
                Cow::Owned(Self {
                    server: server.clone(),
                    ..self.clone()
                })
            }
            _ => Cow::Borrowed(self),
        }
    }
}

/// The attempt that begins now.
pub(crate) fn attempt(order: &Order, issuer: &Issuer, now_ms: u64) -> Attempt {
    let server = (!issuer.endpoints.is_empty()).then(|| issuer.server.clone());
    let Request::Subject(subject) = &order.wish.request else {
        return Attempt {
            key: None,
            updates: false,
            server,
        };
    };
    let in_use = order
        .key_name
        .as_ref()
        .filter(|_| order.not_after_ms.is_some_and(|end| now_ms < end));
    let key = match &order.key_name {
        Some(name) if !subject.rotate => name.clone(),
        // The number of certificates tells the keys of one order apart. A failed attempt leaves
        // its key to the next one.
        _ => format!("{}-{}", order.id, order.issued + 1),
    };
    Attempt {
        key: Some(key),
        updates: issuer.updates && in_use.is_some(),
        server,
    }
}

/// What the transaction of an attempt is asked to do.
pub(crate) fn enrollment(order: &Order, attempt: &Attempt, issuer: &Issuer) -> Enrollment {
    let (operation, want) = match (&order.wish.request, &attempt.key) {
        (Request::Subject(subject), Some(key)) => {
            let operation = if attempt.updates {
                Operation::Kur
            } else {
                issuer.operation
            };
            let template = Template {
                subject: subject.subject.clone(),
                sans: subject.sans.clone(),
                key: key.clone(),
            };
            (operation, Want::Template(template))
        }
        (Request::Csr(csr), _) => (Operation::P10cr, Want::Csr(csr.to_vec())),
        (Request::Subject(_), None) => {
            unreachable!("an attempt for a subject names its key")
        }
    };
    let credential = match (&order.key_name, order.chain.split_first()) {
        (Some(key), Some((leaf, rest))) if attempt.updates => {
            Credential::Certificate(CertificateCredential {
                certificate: leaf.to_vec(),
                chain: rest.iter().map(|der| der.to_vec()).collect(),
                key: key.clone(),
            })
        }
        _ => issuer.credential.clone(),
    };
    Enrollment {
        order: order.id.clone(),
        account: order.wish.account.clone(),
        operation,
        want,
        profile: issuer.profile.clone(),
        server: issuer.server.clone(),
        recipient: issuer.recipient.clone(),
        credential,
        trusted: issuer.trusted.clone(),
        out_trusted: issuer.out_trusted.clone(),
        untrusted: issuer.untrusted.clone(),
        implicit_confirm: issuer.implicit_confirm,
        allow_sha1: issuer.allow_sha1,
        allow: issuer.allow,
        limits: issuer.limits,
        registration: issuer.registration.clone(),
    }
}
