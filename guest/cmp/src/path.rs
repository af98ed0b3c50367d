//! Certificate paths (RFC 5280, 6): from a certificate over candidates to a trust
//! anchor.

use alloc::vec::Vec;
use core::fmt;

use crate::der::{Reader, tag};
use crate::limits;
use crate::name::{GeneralName, Name, shortened};
use crate::oid;
use crate::protection::{Policy, SignatureAlgorithm, SignatureVerifier, Unsupported, Verdict};
use crate::time::Time;
use crate::x509::{Certificate, general_names};

/// Why there is no path. The most telling of the attempts is kept.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum PathError {
    /// No trust anchor was given.
    NoAnchors,
    /// Nothing among the certificates at hand issued this subject's certificate.
    NoIssuer {
        /// Whose certificate it is.
        subject: alloc::string::String,
        /// Who issued it.
        issuer: alloc::string::String,
    },
    /// A certificate is not valid yet or no longer.
    Validity {
        /// Whose certificate it is.
        subject: alloc::string::String,
        /// When it is valid, in words.
        span: alloc::string::String,
    },
    /// A certificate breaks a rule of RFC 5280.
    Rule {
        /// Whose certificate it is.
        subject: alloc::string::String,
        /// The rule.
        rule: &'static str,
    },
    /// The signature of a certificate cannot be checked.
    Unsupported {
        /// Whose certificate it is.
        subject: alloc::string::String,
        /// What about it is not accepted.
        why: Unsupported,
    },
    /// The search went beyond a bound of [`crate::limits`].
    TooMuch(&'static str),
}

impl PathError {
    fn rule(certificate: &Certificate<'_>, rule: &'static str) -> Self {
        Self::Rule {
            subject: shortened(&certificate.subject),
            rule,
        }
    }

    fn unsupported(certificate: &Certificate<'_>, why: Unsupported) -> Self {
        Self::Unsupported {
            subject: alloc::format!("{}", certificate.subject),
            why,
        }
    }

    /// A higher rank says more about what went wrong.
    fn rank(&self) -> u8 {
        match self {
            Self::NoAnchors | Self::NoIssuer { .. } => 0,
            Self::Rule { .. } | Self::Unsupported { .. } => 1,
            Self::Validity { .. } => 2,
            Self::TooMuch(_) => 3,
        }
    }
}

impl fmt::Display for PathError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoAnchors => f.write_str("there is no trusted certificate to compare with"),
            Self::NoIssuer { subject, issuer } => write!(
                f,
                "no certificate at hand issued that of '{subject}' (issuer '{issuer}')"
            ),
            Self::Validity { subject, span } => write!(f, "the certificate of '{subject}' {span}"),
            Self::Rule { subject, rule } => write!(f, "the certificate of '{subject}': {rule}"),
            Self::Unsupported { subject, why } => {
                write!(f, "the signature of the certificate of '{subject}': {why}")
            }
            Self::TooMuch(what) => write!(f, "too many {what} on the way to a trust anchor"),
        }
    }
}

impl core::error::Error for PathError {}

/// Seeks a path from `leaf` to one of `anchors` at time `now`, over `candidates` in any
/// order. Returns it leaf first, the anchor last. Candidates that cannot be read or do
/// not fit are passed over.
///
/// An anchor is trusted as it is: only its validity is judged, not its signature. A
/// `leaf` that is itself an anchor is a path of one.
pub fn build<'a>(
    leaf: &Certificate<'a>,
    candidates: &[Certificate<'a>],
    anchors: &[Certificate<'a>],
    now: Time,
    policy: Policy,
    verifier: &dyn SignatureVerifier,
) -> Result<Vec<Certificate<'a>>, PathError> {
    build_within(
        leaf,
        candidates,
        anchors,
        now,
        policy,
        verifier,
        &mut Budget::default(),
    )
}

/// Like [`build`], with what is left of a budget.
pub(crate) fn build_within<'a>(
    leaf: &Certificate<'a>,
    candidates: &[Certificate<'a>],
    anchors: &[Certificate<'a>],
    now: Time,
    policy: Policy,
    verifier: &dyn SignatureVerifier,
    budget: &mut Budget,
) -> Result<Vec<Certificate<'a>>, PathError> {
    if anchors.is_empty() {
        return Err(PathError::NoAnchors);
    }
    if candidates.len() > limits::PATH_CANDIDATES {
        return Err(PathError::TooMuch("candidates"));
    }
    check_leaf(leaf, now)?;
    let mut search = Search {
        candidates,
        anchors,
        now,
        policy,
        verifier,
        budget,
        path: alloc::vec![leaf.clone()],
    };
    if anchors.iter().any(|anchor| anchor.raw == leaf.raw) {
        return Ok(search.path);
    }
    search.extend()?;
    Ok(search.path)
}

/// What may still be done for one message. Every certificate in it comes from the peer, who
/// can make each fit each, so that the work is bounded as a whole.
pub(crate) struct Budget {
    signatures: usize,
    signed_octets: usize,
    name_octets: usize,
}

impl Default for Budget {
    fn default() -> Self {
        Self {
            signatures: limits::PATH_SIGNATURES,
            signed_octets: limits::SIGNED_OCTETS,
            name_octets: limits::NAME_OCTETS,
        }
    }
}

impl Budget {
    /// Pays for the verification of one signature over `data`.
    pub(crate) fn signature(&mut self, data: &[u8]) -> Result<(), PathError> {
        pay(&mut self.signatures, 1, "signatures")?;
        pay(&mut self.signed_octets, data.len(), "signed octets")
    }

    /// Pays for work on names.
    fn names(&mut self, octets: usize) -> Result<(), PathError> {
        pay(&mut self.name_octets, octets, "names")
    }

    /// Whether two names are the same.
    pub(crate) fn same_name(
        &mut self,
        left: &Name<'_>,
        right: &Name<'_>,
    ) -> Result<bool, PathError> {
        if left == right {
            return Ok(true);
        }
        self.names(left.der().len() + right.der().len())?;
        Ok(left.matches(right))
    }
}

fn pay(left: &mut usize, price: usize, what: &'static str) -> Result<(), PathError> {
    *left = left.checked_sub(price).ok_or(PathError::TooMuch(what))?;
    Ok(())
}

struct Search<'s, 'a> {
    candidates: &'s [Certificate<'a>],
    anchors: &'s [Certificate<'a>],
    now: Time,
    policy: Policy,
    verifier: &'s dyn SignatureVerifier,
    budget: &'s mut Budget,
    path: Vec<Certificate<'a>>,
}

impl<'a> Search<'_, 'a> {
    /// Completes the path from its last certificate on, depth first, anchors first.
    fn extend(&mut self) -> Result<(), PathError> {
        let Some(last) = self.path.last().cloned() else {
            return Err(PathError::TooMuch("steps back"));
        };
        let mut best = PathError::NoIssuer {
            subject: shortened(&last.subject),
            issuer: shortened(&last.issuer),
        };
        let (anchors, candidates) = (self.anchors, self.candidates);
        let sources = anchors
            .iter()
            .map(|c| (c, true))
            .chain(candidates.iter().map(|c| (c, false)));
        for (issuer, is_anchor) in sources {
            if self.path.iter().any(|c| c.raw == issuer.raw)
                || !identifiers_fit(issuer, &last)
                || !self.budget.same_name(&last.issuer, &issuer.subject)?
            {
                continue;
            }
            let step = self.step(&last, issuer, is_anchor);
            match step {
                Ok(()) => return Ok(()),
                Err(stop @ PathError::TooMuch(_)) => return Err(stop),
                Err(other) if other.rank() > best.rank() => best = other,
                Err(_) => {}
            }
        }
        Err(best)
    }

    fn step(
        &mut self,
        last: &Certificate<'a>,
        issuer: &Certificate<'a>,
        is_anchor: bool,
    ) -> Result<(), PathError> {
        if self.path.len() + 1 > limits::PATH_LENGTH {
            return Err(PathError::TooMuch("certificates"));
        }
        check_validity(issuer, self.now)?;
        if !is_anchor {
            check_critical(issuer)?;
        }
        self.check_issuer(issuer, is_anchor)?;
        self.budget.signature(last.tbs)?;
        let algorithm = SignatureAlgorithm::from_identifier(&last.signature_algorithm, self.policy)
            .map_err(|why| PathError::unsupported(last, why))?;
        match self
            .verifier
            .verify(algorithm, &issuer.public_key, last.tbs, last.signature)
        {
            Verdict::Valid => {}
            Verdict::Invalid => {
                return Err(PathError::rule(
                    last,
                    "its signature does not fit its issuer's key",
                ));
            }
            Verdict::Unsupported => {
                let why = Unsupported::signature(algorithm, &issuer.public_key);
                return Err(PathError::unsupported(last, why));
            }
        }
        self.path.push(issuer.clone());
        if is_anchor {
            return Ok(());
        }
        self.extend().inspect_err(|_| {
            self.path.pop();
        })
    }

    /// What RFC 5280, 6.1.4 asks of a certificate that issued the path so far.
    fn check_issuer(&mut self, issuer: &Certificate<'a>, is_anchor: bool) -> Result<(), PathError> {
        match basic_constraints(issuer) {
            Some((true, None)) => {}
            Some((true, Some(most))) => {
                let mut below = 0;
                for certificate in self.path.iter().skip(1) {
                    // Self-issued certificates do not count (RFC 5280, 6.1.4 (l)).
                    let self_issued = self
                        .budget
                        .same_name(&certificate.subject, &certificate.issuer)?;
                    below += u64::from(!self_issued);
                }
                if below > most {
                    return Err(PathError::rule(issuer, "its pathLenConstraint is exceeded"));
                }
            }
            // An anchor of version 1 has no extensions and is trusted by configuration.
            None if is_anchor && issuer.extensions.is_empty() => {}
            _ => {
                return Err(PathError::rule(
                    issuer,
                    "it is not that of a CA (basicConstraints)",
                ));
            }
        }
        if key_usage(issuer).is_some_and(|usage| usage & KEY_CERT_SIGN == 0) {
            return Err(PathError::rule(issuer, "its keyUsage lacks keyCertSign"));
        }
        if let Some(constraints) = issuer.extension(oid::NAME_CONSTRAINTS) {
            for (index, certificate) in self.path.iter().enumerate() {
                // A CA may certify a new key of its own (RFC 5280, 6.1.3 (b)).
                if index > 0 && certificate.is_self_issued() {
                    continue;
                }
                if !names_permitted(constraints.value, certificate, self.budget)? {
                    return Err(PathError::rule(
                        certificate,
                        "its name is outside the nameConstraints of its issuers",
                    ));
                }
            }
        }
        Ok(())
    }
}

fn identifiers_fit(issuer: &Certificate<'_>, subject: &Certificate<'_>) -> bool {
    match (
        subject.authority_key_identifier(),
        issuer.subject_key_identifier(),
    ) {
        (Some(wanted), Some(held)) => wanted == held,
        _ => true,
    }
}

fn check_leaf(leaf: &Certificate<'_>, now: Time) -> Result<(), PathError> {
    check_validity(leaf, now)?;
    check_critical(leaf)
}

fn check_validity(certificate: &Certificate<'_>, now: Time) -> Result<(), PathError> {
    let span = if now < certificate.not_before {
        alloc::format!(
            "is valid only from {} on (now: {})",
            certificate.not_before.rfc3339(),
            now.rfc3339()
        )
    } else if now > certificate.not_after {
        alloc::format!(
            "expired at {} (now: {})",
            certificate.not_after.rfc3339(),
            now.rfc3339()
        )
    } else {
        return Ok(());
    };
    Err(PathError::Validity {
        subject: shortened(&certificate.subject),
        span,
    })
}

/// A critical extension that is not understood makes a certificate unusable
/// (RFC 5280, 4.2).
fn check_critical(certificate: &Certificate<'_>) -> Result<(), PathError> {
    let understood = [
        oid::KEY_USAGE,
        oid::BASIC_CONSTRAINTS,
        oid::NAME_CONSTRAINTS,
        oid::SUBJECT_ALT_NAME,
        oid::EXTENDED_KEY_USAGE,
        // Policies restrict nothing as long as none is asked for (RFC 5280, 6.1.1 (c)).
        oid::CERTIFICATE_POLICIES,
        // Revocation is not judged here.
        oid::CRL_DISTRIBUTION_POINTS,
    ];
    let unknown = certificate
        .extensions
        .iter()
        .any(|extension| extension.critical && !understood.contains(&extension.oid));
    if unknown {
        return Err(PathError::rule(
            certificate,
            "it has a critical extension of unknown meaning",
        ));
    }
    Ok(())
}

/// digitalSignature of KeyUsage, as the first bit of the first octet.
const DIGITAL_SIGNATURE: u8 = 0x80;
/// keyEncipherment of KeyUsage: bit 2.
const KEY_ENCIPHERMENT: u8 = 0x20;
/// keyAgreement of KeyUsage: bit 4.
const KEY_AGREEMENT: u8 = 0x08;
/// keyCertSign of KeyUsage: bit 5.
const KEY_CERT_SIGN: u8 = 0x04;

/// The first eight bits of keyUsage (RFC 5280, 4.2.1.3).
fn key_usage(certificate: &Certificate<'_>) -> Option<u8> {
    let extension = certificate.extension(oid::KEY_USAGE)?;
    let bits = Reader::new(extension.value)
        .element(tag::BIT_STRING, "a BIT STRING")
        .ok();
    // A keyUsage that cannot be read allows nothing.
    Some(
        bits.and_then(|bits| bits.bits().ok())
            .and_then(|(_, bits)| bits.first().copied())
            .unwrap_or(0),
    )
}

/// Whether the key may sign messages: keyUsage is absent or has digitalSignature
/// (RFC 9483, 3.2).
pub fn may_sign_messages(certificate: &Certificate<'_>) -> bool {
    key_usage(certificate).is_none_or(|usage| usage & DIGITAL_SIGNATURE != 0)
}

/// Whether keys may be encrypted for the holder: keyUsage is absent or has keyEncipherment
/// (RFC 9483, 4.1.6.1).
pub fn may_encipher_keys(certificate: &Certificate<'_>) -> bool {
    key_usage(certificate).is_none_or(|usage| usage & KEY_ENCIPHERMENT != 0)
}

/// Whether the holder may agree on keys: keyUsage is absent or has keyAgreement
/// (RFC 9483, 4.1.6.2).
pub fn may_agree_on_keys(certificate: &Certificate<'_>) -> bool {
    key_usage(certificate).is_none_or(|usage| usage & KEY_AGREEMENT != 0)
}

/// Whether the key is that of a CA which says so in both places: cA, and keyCertSign in
/// keyUsage (RFC 5280, 4.2.1.3 and 4.2.1.9).
pub(crate) fn may_sign_certificates(certificate: &Certificate<'_>) -> bool {
    let is_ca = basic_constraints(certificate).is_some_and(|(is_ca, _)| is_ca);
    is_ca && key_usage(certificate).is_some_and(|usage| usage & KEY_CERT_SIGN != 0)
}

/// cA and pathLenConstraint of basicConstraints (RFC 5280, 4.2.1.9).
fn basic_constraints(certificate: &Certificate<'_>) -> Option<(bool, Option<u64>)> {
    let extension = certificate.extension(oid::BASIC_CONSTRAINTS)?;
    let mut fields = Reader::new(extension.value).sequence().ok()?;
    let is_ca = match fields.peek() {
        Some(tag::BOOLEAN) => fields.boolean().ok()?,
        _ => false,
    };
    let path_length = match fields.is_empty() {
        true => None,
        false => Some(u64::try_from(fields.integer().ok()?).ok()?),
    };
    Some((is_ca, path_length))
}

/// Whether every name of the certificate is allowed (RFC 5280, 4.2.1.10). A constraint
/// on a kind of name that is not understood, or cannot be read, forbids.
fn names_permitted(
    constraints: &[u8],
    certificate: &Certificate<'_>,
    budget: &mut Budget,
) -> Result<bool, PathError> {
    let Ok((permitted, excluded)) = read_constraints(constraints) else {
        return Ok(false);
    };
    let mut names = Vec::new();
    if !certificate.subject.is_null() {
        names.push(GeneralName::Directory(certificate.subject.clone()));
    }
    if let Some(san) = certificate.extension(oid::SUBJECT_ALT_NAME) {
        let Ok(others) = general_names(san.value) else {
            return Ok(false);
        };
        names.extend(others);
    }
    // Each name is compared with each subtree.
    let (bases, octets) = (permitted.len() + excluded.len(), constraints.len());
    let of_names: usize = names.iter().map(|name| name.der().len()).sum();
    budget.names(octets + of_names + bases * of_names + names.len() * octets)?;
    Ok(names.iter().all(|name| {
        let of_its_kind = || {
            permitted
                .iter()
                .filter(|base| kind_of(base) == kind_of(name))
        };
        let allowed = of_its_kind().next().is_none()
            || of_its_kind().any(|base| falls_under(name, base) == Some(true));
        let forbidden = excluded
            .iter()
            .filter(|base| kind_of(base) == kind_of(name))
            .any(|base| falls_under(name, base) != Some(false));
        allowed && !forbidden
    }))
}

type Subtrees<'a> = Vec<GeneralName<'a>>;

fn read_constraints(value: &[u8]) -> crate::error::Result<(Subtrees<'_>, Subtrees<'_>)> {
    let mut reader = Reader::new(value);
    let mut fields = reader.sequence()?;
    let mut subtrees = |number| -> crate::error::Result<Subtrees<'_>> {
        let Some(element) = fields.optional(tag::constructed(number))? else {
            return Ok(Vec::new());
        };
        element
            .contents()
            .collect(|reader| GeneralName::read(&mut reader.sequence()?))
    };
    Ok((subtrees(0)?, subtrees(1)?))
}

fn kind_of(name: &GeneralName<'_>) -> u8 {
    match name {
        GeneralName::Directory(_) => 4,
        GeneralName::Other(der) => der.first().map_or(0xff, |tag| tag & 0x1f),
    }
}

/// Whether a name lies in a subtree; none where its kind is not understood.
fn falls_under(name: &GeneralName<'_>, base: &GeneralName<'_>) -> Option<bool> {
    let (name, base) = match (name, base) {
        (GeneralName::Directory(name), GeneralName::Directory(base)) => {
            return Some(Name::is_within(name, base));
        }
        (GeneralName::Other(name), GeneralName::Other(base)) => {
            (Reader::new(name).any().ok()?, Reader::new(base).any().ok()?)
        }
        _ => return None,
    };
    match name.tag {
        0x82 => Some(host_within(name.value, base.value)),
        0x81 => {
            let (name, base) = (name.value, base.value);
            if base.contains(&b'@') {
                return Some(name.eq_ignore_ascii_case(base));
            }
            let at = name.iter().rposition(|octet| *octet == b'@')?;
            let host = &name[at + 1..];
            Some(if base.starts_with(b".") {
                above(host, base).is_some()
            } else {
                host.eq_ignore_ascii_case(base)
            })
        }
        0x87 => {
            let (address, mask) = base.value.split_at_checked(name.value.len())?;
            if mask.len() != address.len() {
                return None;
            }
            let inside = name
                .value
                .iter()
                .zip(address.iter().zip(mask))
                .all(|(octet, (address, mask))| octet & mask == address & mask);
            Some(inside)
        }
        _ => None,
    }
}

fn host_within(host: &[u8], base: &[u8]) -> bool {
    let below =
        |labels: &[u8]| labels.is_empty() || base.starts_with(b".") || labels.ends_with(b".");
    base.is_empty() || above(host, base).is_some_and(below)
}

/// What stands before `end` in a name that ends with it in either case.
fn above<'n>(name: &'n [u8], end: &[u8]) -> Option<&'n [u8]> {
    let (start, rest) = name.split_at_checked(name.len().checked_sub(end.len())?)?;
    rest.eq_ignore_ascii_case(end).then_some(start)
}
