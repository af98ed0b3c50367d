//! Questions to the PKI and their answers (RFC 9483, 4.3).

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use abide_cmp::der::{Reader, Writer, tag};
use abide_cmp::protection::{Hash, Policy, SignatureAlgorithm, SignatureVerifier, Verdict};
use abide_cmp::{Certificate, InfoTypeAndValue, InfoValue, Name, PkiBody, Time, oid, path};

use crate::driver::Error;
use crate::enrollment::Information;

/// A question, read.
#[derive(Debug)]
pub(crate) struct InformationRequest {
    /// DER content of the infoType.
    info_type: Vec<u8>,
    /// DER.
    value: Option<Vec<u8>>,
    /// The infoType that answers it.
    expected: Vec<u8>,
    /// The root whose successor is asked for, DER.
    old_root: Option<Vec<u8>>,
}

impl InformationRequest {
    pub(crate) fn new(question: &Information) -> Result<Self, Error> {
        let plain = |info_type: oid::Oid<'_>, expected: oid::Oid<'_>, value| Self {
            info_type: info_type.content().to_vec(),
            value,
            expected: expected.content().to_vec(),
            old_root: None,
        };
        Ok(match question {
            Information::CaCerts => plain(oid::IT_CA_CERTS, oid::IT_CA_CERTS, None),
            Information::CertReqTemplate => {
                plain(oid::IT_CERT_REQ_TEMPLATE, oid::IT_CERT_REQ_TEMPLATE, None)
            }
            Information::RootCaUpdate(root) => {
                Certificate::from_der(root)
                    .map_err(|error| invalid(format!("the old root: {error}")))?;
                Self {
                    old_root: Some(root.clone()),
                    ..plain(
                        oid::IT_ROOT_CA_CERT,
                        oid::IT_ROOT_CA_KEY_UPDATE,
                        Some(root.clone()),
                    )
                }
            }
            Information::Crl(of) => plain(
                oid::IT_CRL_STATUS_LIST,
                oid::IT_CRLS,
                Some(crl_status_list(of)?),
            ),
            Information::Other(info_type, value) => {
                let content = oid::parse(info_type).ok_or_else(|| {
                    invalid(format!(
                        "'{}' is no object identifier",
                        info_type.escape_debug()
                    ))
                })?;
                if let Some(der) = value {
                    let mut reader = Reader::new(der);
                    reader
                        .any()
                        .and_then(|_| reader.finish())
                        .map_err(|error| invalid(format!("the value of the question: {error}")))?;
                }
                Self {
                    info_type: content.clone(),
                    value: value.clone(),
                    expected: content,
                    old_root: None,
                }
            }
        })
    }

    pub(crate) fn body(&self) -> PkiBody<'_> {
        let Some(info_type) = oid::Oid::from_content(&self.info_type) else {
            unreachable!("it was read from an object identifier")
        };
        PkiBody::Genm(alloc::vec![InfoTypeAndValue {
            info_type,
            value: self.value.as_deref(),
        }])
    }

    /// SHA-256 of what is asked for.
    pub(crate) fn digest(&self) -> Vec<u8> {
        let value = self.value.as_deref().unwrap_or_default();
        Hash::Sha256.digest(&[&self.info_type, value].concat())
    }

    /// Judges a genp; gives the DER of its InfoTypeAndValue, and a word where there is one
    /// to say.
    pub(crate) fn judge(
        &self,
        content: &[InfoTypeAndValue<'_>],
        now: Time,
        policy: Policy,
        verifier: &dyn SignatureVerifier,
    ) -> Result<(Vec<u8>, String), String> {
        let [answer] = content else {
            return Err("the genp has not exactly one InfoTypeAndValue (RFC 9483, 4.3)".into());
        };
        if answer.info_type.content() != self.expected {
            return Err(format!(
                "the genp answers with another infoType ({}) than was asked for (RFC 9483, 4.3)",
                answer.info_type
            ));
        }
        let value = answer
            .interpret()
            .map_err(|error| format!("the genp's infoValue: {error}"))?;
        match &value {
            InfoValue::Crls(list) if list.len() != 1 => {
                return Err("the genp has not exactly one CRL (RFC 9483, 4.3.4)".into());
            }
            InfoValue::CertReqTemplate { template, .. }
                if template
                    .others
                    .iter()
                    .any(|(number, _)| OF_THE_ISSUER.contains(number)) =>
            {
                return Err(
                    "the template has serialNumber, signingAlg, issuerUID or subjectUID \
                     (RFC 9483, 4.3.3)"
                        .into(),
                );
            }
            _ => {}
        }
        let note = match (&value, &self.old_root) {
            (InfoValue::Absent, _) => "the PKI has nothing to say to this",
            (InfoValue::RootCaKeyUpdate(update), Some(old)) => {
                successor(update, old, now, policy, verifier)?;
                "the new root is vouched for by the old one"
            }
            _ => "",
        };
        Ok((answer.to_der(), note.to_string()))
    }
}

/// serialNumber, signingAlg, issuerUID and subjectUID of a CertTemplate (RFC 4211, 5).
const OF_THE_ISSUER: [u8; 4] = [1, 2, 7, 8];

/// What the PKI says to a question.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// It has nothing to say.
    Absent,
    /// DER certificates.
    Certificates(Vec<Vec<u8>>),
    /// A root's successor, vouched for by the root.
    RootCaKeyUpdate {
        /// DER.
        new_with_new: Vec<u8>,
        /// DER.
        new_with_old: Vec<u8>,
        /// DER.
        old_with_new: Option<Vec<u8>>,
    },
    /// DER CertificateLists.
    Crls(Vec<Vec<u8>>),
    /// Of another type: the DER of the infoValue.
    Other(Vec<u8>),
}

impl Answer {
    /// From a stored InfoTypeAndValue, which was judged before it was stored.
    pub(crate) fn from_der(der: &[u8]) -> Self {
        let owned = |list: Vec<&[u8]>| list.into_iter().map(<[u8]>::to_vec).collect();
        let Ok(stored) = InfoTypeAndValue::from_der(der) else {
            return Self::Other(der.to_vec());
        };
        match stored.interpret() {
            Ok(InfoValue::Absent) => Self::Absent,
            Ok(InfoValue::Certificate(der)) => Self::Certificates(alloc::vec![der.to_vec()]),
            Ok(InfoValue::Certificates(list)) => Self::Certificates(owned(list)),
            Ok(InfoValue::Crls(list)) => Self::Crls(owned(list)),
            Ok(InfoValue::RootCaKeyUpdate(update)) => Self::RootCaKeyUpdate {
                new_with_new: update.new_with_new.to_vec(),
                new_with_old: update.new_with_old.unwrap_or_default().to_vec(),
                old_with_new: update.old_with_new.map(<[u8]>::to_vec),
            },
            _ => Self::Other(stored.value.unwrap_or_default().to_vec()),
        }
    }
}

fn invalid(why: String) -> Error {
    Error::Invalid(why)
}

/// A new root must be vouched for by the old one (RFC 9810, 4.4; RFC 9483, 4.3.2).
fn successor(
    update: &abide_cmp::RootCaKeyUpdateContent<'_>,
    old: &[u8],
    now: Time,
    policy: Policy,
    verifier: &dyn SignatureVerifier,
) -> Result<(), String> {
    let read = |what: &str, der| {
        Certificate::from_der(der).map_err(|error| format!("{what} of the root's update: {error}"))
    };
    let old = read("the old root", old)?;
    let new = read("newWithNew", update.new_with_new)?;
    let Some(with_old) = update.new_with_old else {
        return Err("the root's update lacks newWithOld (RFC 9483, 4.3.2)".into());
    };
    let with_old = read("newWithOld", with_old)?;
    if with_old.public_key.raw != new.public_key.raw {
        return Err("newWithOld is for another key than newWithNew (RFC 9483, 4.3.2)".into());
    }
    let trace = |what: &str, leaf: &Certificate<'_>, anchor: &Certificate<'_>| {
        path::build(
            leaf,
            &[],
            core::slice::from_ref(anchor),
            now,
            policy,
            verifier,
        )
        .map(|_| ())
        .map_err(|why| format!("{what} of the root's update: {why}"))
    };
    trace("newWithOld", &with_old, &old)?;
    let own = SignatureAlgorithm::from_identifier(&new.signature_algorithm, policy)
        .map(|algorithm| verifier.verify(algorithm, &new.public_key, new.tbs, new.signature));
    if own != Ok(Verdict::Valid) {
        return Err("newWithNew of the root's update is not signed by its own key".into());
    }
    match update.old_with_new {
        None => Ok(()),
        Some(der) => {
            let with_new = read("oldWithNew", der)?;
            if with_new.public_key.raw != old.public_key.raw {
                return Err("oldWithNew is for another key than the old root's".into());
            }
            trace("oldWithNew", &with_new, &new)
        }
    }
}

/// CRLStatus for the CRL that a certificate points to, or that succeeds a CRL at hand
/// (RFC 9483, 4.3.4): by distribution point where there is one, else by issuer.
fn crl_status_list(of: &[u8]) -> Result<Vec<u8>, Error> {
    let source = match (Certificate::from_der(of), CrlAtHand::from_der(of)) {
        (Ok(certificate), _) => CrlAtHand {
            point: certificate
                .extension(oid::CRL_DISTRIBUTION_POINTS)
                .and_then(|extension| first_point(extension.value)),
            issuer: certificate.issuer,
            this_update: None,
        },
        (_, Ok(crl)) => crl,
        (Err(error), Err(_)) => {
            return Err(invalid(format!(
                "neither a certificate nor a CRL to ask a CRL for: {error}"
            )));
        }
    };
    Ok(Writer::encode(|w| {
        w.sequence(|w| {
            w.sequence(|w| {
                match source.point {
                    // A CHOICE, hence under an EXPLICIT tag.
                    Some(name) => w.explicit(0, |w| w.raw(name)),
                    None => w.explicit(1, |w| {
                        w.sequence(|w| w.explicit(4, |w| w.raw(source.issuer.der())));
                    }),
                }
                if let Some(time) = source.this_update {
                    w.raw(time);
                }
            });
        });
    }))
}

/// What names a CRL and tells its age.
struct CrlAtHand<'a> {
    point: Option<&'a [u8]>,
    issuer: Name<'a>,
    /// Time, DER.
    this_update: Option<&'a [u8]>,
}

impl<'a> CrlAtHand<'a> {
    /// Reads a CertificateList (RFC 5280, 5.1) as far as that.
    fn from_der(der: &'a [u8]) -> abide_cmp::Result<Self> {
        let mut fields = Reader::new(der).sequence()?.sequence()?;
        fields.optional(tag::INTEGER)?;
        fields.sequence()?;
        let issuer = Name::from_der(fields.element(tag::SEQUENCE, "a Name")?.raw)?;
        let this_update = fields.any()?.raw;
        let mut point = None;
        while !fields.is_empty() {
            let field = fields.any()?;
            if field.tag == tag::constructed(0) {
                let mut extensions = field.contents().sequence()?;
                while !extensions.is_empty() {
                    let extension = abide_cmp::Extension::read(&mut extensions)?;
                    if extension.oid == oid::ISSUING_DISTRIBUTION_POINT {
                        point = point_name(extension.value);
                    }
                }
            }
        }
        Ok(Self {
            point,
            issuer,
            this_update: Some(this_update),
        })
    }
}

/// DistributionPointName of the first of the cRLDistributionPoints that has one.
fn first_point(value: &[u8]) -> Option<&[u8]> {
    let mut points = Reader::new(value).sequence().ok()?;
    while !points.is_empty() {
        let point = points.any().ok()?;
        if let Some(name) = point_name(point.raw) {
            return Some(name);
        }
    }
    None
}

/// `distributionPoint [0]` of a DistributionPoint or an IssuingDistributionPoint.
fn point_name(value: &[u8]) -> Option<&[u8]> {
    let mut fields = Reader::new(value).sequence().ok()?;
    let outer = fields.optional(tag::constructed(0)).ok()??;
    Some(outer.value)
}
