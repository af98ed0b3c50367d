//! What a client asks for, and whether it proves that it holds the key.

use abide_cmp::der::Writer;
use abide_cmp::protection::{
    Policy, SignatureAlgorithm, SignatureVerifier, SoftwareVerifier, Verdict,
};
use abide_cmp::{
    AlgorithmIdentifier, CertReqMsg, CertificationRequest, Extension, FailInfo, Name, PkiBody,
    ProofOfPossession, PublicKeyInfo, oid,
};
use x509_cert::der::Decode;
use x509_cert::ext::pkix::SubjectAltName;

use crate::refusal::Refusal;

/// The certificate that a client wants and may have.
#[derive(Clone, Debug)]
pub(crate) struct Wanted {
    /// Its subject.
    pub(crate) subject: Name<'static>,
    /// Its further names.
    pub(crate) names: Option<SubjectAltName>,
    /// Its key.
    pub(crate) key: WantedKey,
    /// Whether it asked for more than these, which this CA decides by itself.
    pub(crate) modified: bool,
}

/// The key that is to be certified.
#[derive(Clone, Debug)]
pub(crate) enum WantedKey {
    /// DER SubjectPublicKeyInfo.
    Given(Vec<u8>),
    /// One that is still to be made, of the kind of a DER AlgorithmIdentifier if there is one.
    Generated(Option<Vec<u8>>),
}

impl Wanted {
    /// Reads an ir, cr, kur or p10cr and checks its proof of possession; a registration
    /// authority may have done that.
    pub(crate) fn read(body: &PkiBody<'_>, by_ra: bool) -> Result<Self, Refusal> {
        match body {
            PkiBody::Ir(requests) | PkiBody::Cr(requests) | PkiBody::Kur(requests) => {
                match requests.as_slice() {
                    [request] => Self::from_crmf(request, by_ra),
                    _ => Err(Refusal::new(
                        FailInfo::BAD_REQUEST,
                        format!(
                            "the message asks for {} certificates; ask for one (RFC 9483, 4.1.1)",
                            requests.len()
                        ),
                    )),
                }
            }
            PkiBody::P10cr(request) => Self::from_pkcs10(request),
            other => Err(Refusal::new(
                FailInfo::BAD_REQUEST,
                format!("'{}' asks for no certificate", other.body_type().name()),
            )),
        }
    }

    fn from_crmf(message: &CertReqMsg<'_>, by_ra: bool) -> Result<Self, Refusal> {
        let request = &message.request;
        if request.cert_req_id != 0 {
            return Err(Refusal::new(
                FailInfo::BAD_REQUEST,
                format!(
                    "certReqId is {} instead of 0 (RFC 9483, 4.1.1)",
                    request.cert_req_id
                ),
            ));
        }
        let template = &request.template;
        let Some(subject) = &template.subject else {
            return Err(bad_template(
                "the certTemplate has no subject (RFC 9483, 4.1.1)",
            ));
        };
        let modified = !template.others.is_empty();
        let key = template.public_key.as_deref().map(public_key).transpose()?;
        let key = match key {
            Some(key) if !key.key.is_empty() => key,
            preferred => {
                if message.popo.is_some() {
                    return Err(Refusal::new(
                        FailInfo::BAD_POP,
                        "a key that is still to be made cannot be proved (RFC 9483, 4.1.6)",
                    ));
                }
                let preferred = preferred.map(|key| identifier(&key.algorithm));
                let key = WantedKey::Generated(preferred);
                return Self::granted(subject, &template.extensions, key, modified);
            }
        };
        match &message.popo {
            Some(ProofOfPossession::Signature {
                input: None,
                algorithm,
                signature,
            }) => {
                prove(algorithm, &key, &message.raw_request, signature)?;
            }
            Some(ProofOfPossession::RaVerified) if by_ra => {}
            Some(ProofOfPossession::RaVerified) => {
                return Err(Refusal::new(
                    FailInfo::BAD_POP,
                    "raVerified is for registration authorities; sign the certReq",
                ));
            }
            Some(_) => {
                return Err(Refusal::new(
                    FailInfo::BAD_POP,
                    "only a signature over the certReq proves possession here",
                ));
            }
            None => {
                return Err(Refusal::new(
                    FailInfo::BAD_POP,
                    "the request does not prove possession of the key; sign the certReq",
                ));
            }
        }
        let key = WantedKey::Given(key.raw.to_vec());
        Self::granted(subject, &template.extensions, key, modified)
    }

    fn from_pkcs10(request: &CertificationRequest<'_>) -> Result<Self, Refusal> {
        let key = public_key(request.public_key.raw)?;
        prove(
            &request.signature_algorithm,
            &key,
            request.info,
            request.signature,
        )?;
        let key = WantedKey::Given(key.raw.to_vec());
        Self::granted(&request.subject, &request.extensions, key, false)
    }

    fn granted(
        subject: &Name<'_>,
        extensions: &[Extension<'_>],
        key: WantedKey,
        modified: bool,
    ) -> Result<Self, Refusal> {
        let names = extensions
            .iter()
            .find(|extension| extension.oid == oid::SUBJECT_ALT_NAME);
        let names = match names {
            None => None,
            Some(names) => Some(
                SubjectAltName::from_der(names.value)
                    .map_err(|_| bad_template("the subjectAltName cannot be read"))?,
            ),
        };
        if subject.is_null() && names.as_ref().is_none_or(|names| names.0.is_empty()) {
            return Err(bad_template(
                "neither a subject nor a subjectAltName is asked for",
            ));
        }
        let others = extensions
            .iter()
            .any(|extension| extension.oid != oid::SUBJECT_ALT_NAME);
        Ok(Self {
            subject: subject.clone().into_owned(),
            names,
            key,
            modified: modified || others,
        })
    }
}

fn identifier(algorithm: &AlgorithmIdentifier<'_>) -> Vec<u8> {
    Writer::encode(|w| {
        w.sequence(|w| {
            w.oid(algorithm.oid);
            if let Some(parameters) = algorithm.parameters {
                w.raw(parameters);
            }
        });
    })
}

fn public_key(der: &[u8]) -> Result<PublicKeyInfo<'_>, Refusal> {
    PublicKeyInfo::from_der(der)
        .map_err(|error| bad_template(&format!("the publicKey cannot be read: {error}")))
}

fn prove(
    algorithm: &AlgorithmIdentifier<'_>,
    key: &PublicKeyInfo<'_>,
    data: &[u8],
    signature: &[u8],
) -> Result<(), Refusal> {
    let algorithm = SignatureAlgorithm::from_identifier(algorithm, Policy::default())
        .map_err(|why| Refusal::new(FailInfo::BAD_ALG, format!("proof of possession: {why}")))?;
    match SoftwareVerifier.verify(algorithm, key, data, signature) {
        Verdict::Valid => Ok(()),
        Verdict::Invalid => Err(Refusal::new(
            FailInfo::BAD_POP,
            "the signature of the request does not fit the public key in it",
        )),
        Verdict::Unsupported => Err(Refusal::new(
            FailInfo::BAD_ALG,
            "this CA does not know this kind of public key; use RSA, a NIST curve, Ed25519 or ML-DSA",
        )),
    }
}

fn bad_template(text: &str) -> Refusal {
    Refusal::new(FailInfo::BAD_CERT_TEMPLATE, text)
}
