//! One wish for a certificate and everything that decides how it is asked for.

use alloc::string::String;
use alloc::vec::Vec;

use minicbor::{Decode, Encode};

use crate::deviations::Deviations;

/// What is asked of the CA (RFC 9483, 4.1 to 4.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode)]
#[cbor(index_only)]
pub enum Operation {
    /// First certificate of a new end entity, by CRMF.
    #[n(0)]
    Ir,
    /// A further certificate, by CRMF.
    #[n(1)]
    Cr,
    /// A certificate for a PKCS #10 request.
    #[n(2)]
    P10cr,
    /// A certificate in place of the one that signs the request, by CRMF.
    #[n(3)]
    Kur,
    /// A certificate is to be revoked, or a suspended one revived.
    #[n(4)]
    Rr,
    /// Information about the PKI.
    #[n(5)]
    Genm,
}

impl Operation {
    /// The name in the RFC.
    pub fn name(self) -> &'static str {
        match self {
            Self::Ir => "ir",
            Self::Cr => "cr",
            Self::P10cr => "p10cr",
            Self::Kur => "kur",
            Self::Rr => "rr",
            Self::Genm => "genm",
        }
    }

    /// Whether the CA issues something for it.
    pub fn enrolls(self) -> bool {
        !matches!(self, Self::Rr | Self::Genm)
    }
}

/// What is wanted.
#[derive(Clone, Debug)]
pub enum Want {
    /// A DER CertificationRequest, for p10cr.
    Csr(Vec<u8>),
    /// A subject and the key to be certified, for ir, cr and kur.
    Template(Template),
    /// A certificate and what is to become of it, for rr.
    Revocation(Revocation),
    /// A question, for genm.
    Information(Information),
    /// A subject, and a key that the PKI makes, for ir, cr and kur.
    Generated(Generated),
}

/// A certificate for a key pair that the PKI generates (RFC 9483, 4.1.6).
#[derive(Clone, Debug)]
pub struct Generated {
    /// What is wanted. Its key is the name under which the host keeps the private key when it
    /// comes.
    pub template: Template,
    /// The kind of key that is preferred: a DER AlgorithmIdentifier as of a
    /// SubjectPublicKeyInfo.
    pub algorithm: Option<Vec<u8>>,
}

/// How a registration authority asks for somebody else (RFC 9483, 5.2 and 5.3).
#[derive(Clone, Debug, Default)]
pub struct Registration {
    /// raVerified takes the place of a proof of possession, which the RA has verified; of the
    /// template's key the public half suffices (RFC 9483, 5.2.3.2).
    pub ra_verified: bool,
    /// Signs a nested message around the request (RFC 9483, 5.2.2.1).
    pub added_protection: Option<CertificateCredential>,
}

/// The fields of a CertTemplate (RFC 4211, 5).
#[derive(Clone, Debug)]
pub struct Template {
    /// The subject as text. Empty in a kur: that of the certificate that is updated.
    pub subject: String,
    /// Subject alternative names as text. None in a kur: those of the certificate that is
    /// updated.
    pub sans: Vec<String>,
    /// The name of the key at the host.
    pub key: String,
}

/// A certificate and what is to become of it (RFC 9483, 4.2).
#[derive(Clone, Debug)]
pub struct Revocation {
    /// Which one.
    pub certificate: Revoked,
    /// CRLReason (RFC 5280, 5.3.1); 8, removeFromCRL, revives a certificate that is on hold.
    pub reason: u8,
}

/// Names the certificate of a revocation.
#[derive(Clone, Debug)]
pub enum Revoked {
    /// DER.
    Certificate(Vec<u8>),
    /// By its issuer, as text, and its serial number, big-endian and unsigned.
    Number(String, Vec<u8>),
}

/// A question to the PKI (RFC 9483, 4.3).
#[derive(Clone, Debug)]
pub enum Information {
    /// CA certificates for building chains.
    CaCerts,
    /// The successor of this root, DER.
    RootCaUpdate(Vec<u8>),
    /// What a request should look like.
    CertReqTemplate,
    /// The CRL that this certificate points to, or the successor of this CRL; DER of either.
    Crl(Vec<u8>),
    /// Another type in dotted form, and its value: one DER element.
    Other(String, Option<Vec<u8>>),
}

/// How requests are protected.
#[derive(Clone, Debug)]
pub enum Credential {
    /// By a MAC with a shared secret.
    Secret(SharedSecret),
    /// By a signature.
    Certificate(CertificateCredential),
}

/// A shared secret at the host.
#[derive(Clone, Debug)]
pub struct SharedSecret {
    /// senderKID: the name under which the CA knows the secret.
    pub reference: Vec<u8>,
    /// The name of the secret at the host.
    pub key: String,
    /// Iterations of the one-way function.
    pub iterations: u32,
    /// How the MAC is made.
    pub mac: MacKind,
}

/// How a MAC is made of a shared secret. Answers may be protected in either way.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum MacKind {
    /// The password-based MAC (RFC 9481, 6.1.1), which every server knows.
    #[default]
    Pbm,
    /// PBMAC1 (RFC 9481, 6.1.2).
    Pbmac1,
}

/// A certificate whose private key is at the host.
#[derive(Clone, Debug)]
pub struct CertificateCredential {
    /// DER.
    pub certificate: Vec<u8>,
    /// Certificates that lead from it towards a root, DER.
    pub chain: Vec<Vec<u8>>,
    /// The name of the private key at the host.
    pub key: String,
}

/// Bounds on one transaction. All times in milliseconds.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// From the first request to the end.
    pub maximum_duration_ms: u64,
    /// The shortest time between two polls, whatever the CA says.
    pub minimum_poll_interval_ms: u64,
    /// The longest time between two polls, whatever the CA says.
    pub maximum_poll_interval_ms: u64,
    /// Polls before the transaction is given up.
    pub maximum_polls: u32,
    /// For one request and its answer.
    pub request_timeout_ms: u64,
}

/// One wish for a certificate and everything that decides how it is asked for.
#[derive(Clone, Debug)]
pub struct Enrollment {
    /// The order this serves.
    pub order: String,
    /// The account of the order; may be empty.
    pub account: String,
    /// What is asked of the CA.
    pub operation: Operation,
    /// What is wanted.
    pub want: Want,
    /// certProfile (RFC 9810, 5.1.1.4); empty for none.
    pub profile: String,
    /// The CMP endpoint's URL.
    pub server: String,
    /// The CA's name as text; empty when it is not known.
    pub recipient: String,
    /// How requests are protected.
    pub credential: Credential,
    /// DER certificates that may vouch for the signer of an answer.
    pub trusted: Vec<Vec<u8>>,
    /// DER certificates under which the new certificate must fall.
    pub out_trusted: Vec<Vec<u8>>,
    /// Certificates that help to build paths and are trusted for nothing, DER.
    pub untrusted: Vec<Vec<u8>>,
    /// Ask the CA to do without certConf.
    pub implicit_confirm: bool,
    /// Believe SHA-1 in signatures and in the derivation of MAC keys.
    pub allow_sha1: bool,
    /// What is accepted of the CA beyond the rules. It may change while the transaction is
    /// open: what a refused answer would have needed can be allowed, and it goes on.
    pub allow: Deviations,
    /// Bounds.
    pub limits: Limits,
    /// For a registration authority.
    pub registration: Option<Registration>,
}
