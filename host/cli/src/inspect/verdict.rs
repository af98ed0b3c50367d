//! The judgement on a message: its protection, and the rules it breaks.

use std::path::PathBuf;

use abide_host::Gate;
use abide_host::wit::message::{
    Anchors, Finding, Leniency, Options, Role, Trust, VerifyError, Weight,
};
use clap::{Args, ValueEnum};
use serde_json::{Value, json};

use super::{host, not_readable};
use crate::exit::{Exit, Stop};
use crate::secret::Source;
use crate::{pem, when};

/// What the protection is verified against.
#[derive(Args, Clone, Debug)]
pub(super) struct Against {
    /// Verify the protection, with --secret or --trusted
    #[arg(long)]
    pub(super) verify: bool,
    /// The shared secret: pass:SECRET, env:VARIABLE, file:PATH (first line) or stdin
    #[arg(
        long,
        value_name = "SRC",
        requires = "verify",
        conflicts_with = "trusted"
    )]
    pub(super) secret: Option<Source>,
    /// Trust anchors for the signer
    #[arg(long, value_name = "FILE", requires = "verify")]
    trusted: Vec<PathBuf>,
    /// Certificates that help to find the signer's path and are not trusted
    #[arg(long, value_name = "FILE", requires = "trusted")]
    untrusted: Vec<PathBuf>,
    /// What the signer must be authorised to be, by its extKeyUsage
    #[arg(long, value_enum, requires = "trusted")]
    role: Option<RoleName>,
    /// Accept SHA-1 in signatures and in the derivation of keys
    #[arg(long, requires = "verify")]
    pub(super) allow_sha1: bool,
}

/// Authorities by the names of RFC 9810, 4.5.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum RoleName {
    /// id-kp-cmcCA
    #[value(name = "cmcCA")]
    CmcCa,
    /// id-kp-cmcRA
    #[value(name = "cmcRA")]
    CmcRa,
    /// id-kp-cmKGA
    #[value(name = "cmKGA")]
    CmKga,
}

impl Against {
    /// Reads secret and certificates, if there is to be a verdict.
    pub(super) fn trust(&self) -> Result<Option<Trust>, Stop> {
        match (&self.secret, &self.trusted[..], self.verify) {
            (Some(source), _, _) => Ok(Some(Trust::Secret(source.read("--secret")?.to_vec()))),
            (None, [], false) => Ok(None),
            (None, [], true) => Err(Stop::usage(
                "--verify needs --secret SRC or --trusted FILE to verify against",
            )),
            (None, files, _) => Ok(Some(Trust::Anchors(Anchors {
                certificates: pem::all_certificates("--trusted", files)?,
                untrusted: pem::all_certificates("--untrusted", &self.untrusted)?,
                role: self.role.map(|role| match role {
                    RoleName::CmcCa => Role::CmcCa,
                    RoleName::CmcRa => Role::CmcRa,
                    RoleName::CmKga => Role::CmKga,
                }),
                at: i64::try_from(when::now_ms() / 1000).unwrap_or(i64::MAX),
            }))),
        }
    }
}

/// Why a message is not to be believed.
pub(super) struct Refusal {
    pub(super) exit: Exit,
    pub(super) reason: String,
    /// The rule behind it.
    section: &'static str,
}

/// Who protected a message, as JSON, or why it is not to be believed.
pub(super) type Verdict = Result<Value, Refusal>;

/// Verifies the protection.
pub(super) async fn verify(
    gate: &Gate,
    message: &[u8],
    trust: &Trust,
    options: Options,
) -> Result<Verdict, Stop> {
    let verdict = gate.verify(message, trust, options).await.map_err(host)?;
    Ok(match verdict {
        Ok(signer) => Ok(json!({
            "valid": true,
            "signer": signer.name,
            "certificate": signer
                .certificate
                .as_ref()
                .map(|der| pem::encode("CERTIFICATE", der)),
            "roles": signer.roles.iter().map(role_name).collect::<Vec<_>>(),
        })),
        Err(error) => Err(refusal(&error)),
    })
}

fn role_name(role: &Role) -> &'static str {
    match role {
        Role::CmcCa => "cmcCA",
        Role::CmcRa => "cmcRA",
        Role::CmKga => "cmKGA",
    }
}

fn refusal(error: &VerifyError) -> Refusal {
    let (exit, reason, section) = match error {
        VerifyError::Undecodable(error) => (Exit::Unusable, not_readable(error), "RFC 9483, 3.5"),
        VerifyError::Unprotected => (
            Exit::Untrusted,
            "the message carries no protection: anybody may have written it".into(),
            "RFC 9483, 3.5",
        ),
        VerifyError::WrongKind => (
            Exit::Usage,
            "the message is protected in another way: --secret fits a MAC, --trusted a signature"
                .into(),
            "RFC 9483, 3.5",
        ),
        VerifyError::Unsupported(why) => (
            Exit::Untrusted,
            format!("not accepted: {why}"),
            "RFC 9810, 5.1.3",
        ),
        VerifyError::BadProtection(why) => (
            Exit::Untrusted,
            format!("the protection does not fit the message: {why}"),
            "RFC 9810, 5.1.3",
        ),
        VerifyError::Untrusted(why) => (
            Exit::Untrusted,
            format!("the signer is not trusted: {why}"),
            "RFC 9483, 3.5",
        ),
    };
    Refusal {
        exit,
        reason,
        section,
    }
}

/// A verdict as JSON.
pub(super) fn verification(verdict: &Verdict) -> Value {
    match verdict {
        Ok(signer) => signer.clone(),
        Err(refusal) => json!({
            "valid": false,
            "reason": refusal.reason,
            "section": refusal.section,
        }),
    }
}

/// The rules that a message breaks.
pub(super) async fn findings(
    gate: &Gate,
    message: &[u8],
    leniency: Leniency,
) -> Result<Vec<Finding>, Stop> {
    let findings = gate.check(message, leniency).await.map_err(host)?;
    findings.map_err(|error| {
        Stop::host(format!(
            "the component describes what it cannot check: {}",
            not_readable(&error)
        ))
    })
}

/// A finding as JSON; `within` is the path to its message.
pub(super) fn finding(finding: &Finding, within: &str) -> Value {
    let mut value = json!({
        "weight": match finding.weight {
            Weight::Violation => "violation",
            Weight::Advice => "advice",
        },
        "path": format!("{within}{}", finding.path),
        "rule": finding.rule,
        "section": finding.section,
    });
    let bit = finding
        .fail_info
        .and_then(|bit| FAIL_INFO.get(usize::from(bit)));
    if let (Some(name), Value::Object(members)) = (bit, &mut value) {
        members.insert("failInfo".into(), (*name).into());
    }
    value
}

/// PKIFailureInfo (RFC 9810, 5.2.3), by bit numbers.
const FAIL_INFO: [&str; 27] = [
    "badAlg",
    "badMessageCheck",
    "badRequest",
    "badTime",
    "badCertId",
    "badDataFormat",
    "wrongAuthority",
    "incorrectData",
    "missingTimeStamp",
    "badPOP",
    "certRevoked",
    "certConfirmed",
    "wrongIntegrity",
    "badRecipientNonce",
    "timeNotAvailable",
    "unacceptedPolicy",
    "unacceptedExtension",
    "addInfoNotAvailable",
    "badSenderNonce",
    "badCertTemplate",
    "signerNotTrusted",
    "transactionIdInUse",
    "unsupportedVersion",
    "notAuthorized",
    "systemUnavail",
    "systemFailure",
    "duplicateCertReq",
];
