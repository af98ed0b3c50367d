//! The judgement on a certificate that the CA sent.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use abide_cmp::path::{self, PathError};
use abide_cmp::{Certificate, FailInfo, Time};

use crate::host::{Host, HostVerifier};
use crate::mutation::Mutation;
use crate::plan::Plan;

/// Why the certificate is refused: for the CA as failInfo, for the person in words.
#[derive(Debug)]
pub(crate) struct Refusal {
    pub(crate) fail_info: FailInfo,
    pub(crate) why: String,
}

/// Why a certificate is not taken.
#[derive(Debug)]
pub(crate) enum Judgement {
    /// The CA is told so.
    Refused(Refusal),
    /// What came beside it made the search for its issuers too long. Nothing protects
    /// extraCerts (RFC 9810, 5.1), so that this says nothing about the certificate.
    Noise(PathError),
}

/// What the certificate is judged with.
pub(crate) struct Evidence<'r> {
    /// extraCerts of the message: help to find a path.
    pub(crate) extra_certs: Vec<Certificate<'r>>,
    /// caPubs, when they may be trusted: the message was protected by the shared secret
    /// (RFC 9810, 5.3.2).
    pub(crate) ca_pubs: Vec<Certificate<'r>>,
}

/// Judges the certificate: it certifies the requested key, is valid now, and falls under
/// a trust anchor. Returns the chain leaf first, without a self-signed root.
///
/// Where no anchor is configured and the CA sent none, the protection of the message is
/// all there is to go by; then the second value says that the chain was not verified.
pub(crate) fn judge<'r>(
    plan: &Plan<'_>,
    host: &dyn Host,
    certificate: &Certificate<'r>,
    evidence: &Evidence<'r>,
    now_ms: u64,
) -> Result<(Vec<Vec<u8>>, Option<String>), Judgement> {
    // A key that the PKI made is compared when it is taken out.
    if plan
        .public_key()
        .is_some_and(|key| key != certificate.public_key.raw)
    {
        return Err(Judgement::Refused(Refusal {
            fail_info: FailInfo::INCORRECT_DATA,
            why: "the certificate is for another key than the requested one".into(),
        }));
    }
    let now = Time::from_unix((now_ms / 1000) as i64);
    let mut anchors: Vec<Certificate<'_>> = plan.out_trusted.clone();
    if anchors.is_empty() {
        anchors.extend(plan.trusted.iter().cloned());
        anchors.extend(evidence.ca_pubs.iter().cloned());
    }
    // What was configured first: it shall not be crowded out.
    let mut candidates: Vec<Certificate<'_>> = plan.untrusted.clone();
    candidates.extend(evidence.extra_certs.iter().cloned());
    let crowded = candidates.len() > abide_cmp::limits::PATH_CANDIDATES;
    candidates.truncate(abide_cmp::limits::PATH_CANDIDATES);
    let verifier = HostVerifier(host);
    let policy = plan.policy();
    let mutated = Mutation::NoiseRefuses.is_on();
    let refuse = |error: PathError| match error {
        noise @ PathError::TooMuch(_) if !mutated => Judgement::Noise(noise),
        _ if crowded && !mutated => Judgement::Noise(PathError::TooMuch("certificates")),
        error => Judgement::Refused(Refusal {
            fail_info: FailInfo::SIGNER_NOT_TRUSTED,
            why: error.to_string(),
        }),
    };
    if !anchors.is_empty() {
        let path = path::build(certificate, &candidates, &anchors, now, policy, &verifier)
            .map_err(refuse)?;
        return Ok((without_root(&path), None));
    }
    // A path to a root that the CA sent along still orders the chain and shows that it
    // holds together; it just proves nothing about whom to trust.
    let roots: Vec<_> = candidates
        .iter()
        .filter(|certificate| certificate.is_self_issued())
        .cloned()
        .collect();
    let chain = match path::build(certificate, &candidates, &roots, now, policy, &verifier) {
        Ok(path) => without_root(&path),
        Err(error @ PathError::Validity { .. }) => return Err(refuse(error)),
        Err(_) => alloc::vec![certificate.raw.to_vec()],
    };
    let note = format!(
        "the chain was not verified: no trusted certificate was given (issuer '{}')",
        certificate.issuer
    );
    Ok((chain, Some(note)))
}

fn without_root(path: &[Certificate<'_>]) -> Vec<Vec<u8>> {
    path.iter()
        .enumerate()
        .filter(|(index, certificate)| *index == 0 || !certificate.is_self_issued())
        .map(|(_, certificate)| certificate.raw.to_vec())
        .collect()
}
