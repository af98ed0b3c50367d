//! What a message is, who sent it, and whether it may pass. It is read in the sandbox alone.

use std::time::{SystemTime, UNIX_EPOCH};

use abide_host::wit::message::{
    Anchors, BodyType, DecodeError, Leniency, Options, Protection as Kind, Summary, Trust,
};
use abide_host::{Gate, HostError};
use zeroize::Zeroizing;

use crate::config::Protection;
use crate::limits;
use crate::refusal::{Reason, Refusal};

/// What the gateway knows to verify messages with.
#[derive(Default)]
pub(crate) struct Trusted {
    pub(crate) anchors: Vec<Vec<u8>>,
    pub(crate) untrusted: Vec<Vec<u8>>,
    /// By the senderKID that names them.
    pub(crate) secrets: Vec<(String, Zeroizing<Vec<u8>>)>,
    pub(crate) allow_sha1: bool,
}

impl Trusted {
    pub(crate) fn is_empty(&self) -> bool {
        self.anchors.is_empty() && self.secrets.is_empty()
    }

    pub(crate) fn secret_of(&self, reference: &[u8]) -> Option<&(String, Zeroizing<Vec<u8>>)> {
        self.secrets
            .iter()
            .find(|(known, _)| known.as_bytes() == reference)
    }
}

/// Secrets are not shown.
impl std::fmt::Debug for Trusted {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Trusted")
            .field("anchors", &self.anchors.len())
            .field("secrets", &self.secrets.len())
            .finish_non_exhaustive()
    }
}

/// Judges messages.
#[derive(Debug)]
pub(crate) struct Judge {
    gate: Gate,
    trusted: Trusted,
    protection: Protection,
    /// By the tag of the body.
    allowed: [bool; BODY_TYPES.len()],
}

/// Who protected a message: proved, or why not.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Proof {
    /// The name, in the key space of names that were proved.
    Proved(String),
    /// Nothing is trusted here that could verify it.
    Unknown,
    /// It was tried, and failed.
    Failed(String),
}

impl Judge {
    pub(crate) fn new(
        gate: Gate,
        trusted: Trusted,
        protection: Protection,
        allowed: &[String],
    ) -> Self {
        Judge {
            gate,
            trusted,
            protection,
            allowed: BODY_TYPES.map(|(_, name)| allowed.iter().any(|allowed| allowed == name)),
        }
    }

    /// Reads a message.
    pub(crate) async fn read(&self, message: &[u8]) -> Result<Result<Summary, Refusal>, HostError> {
        let read = self.gate.decode(message, Leniency::empty()).await?;
        Ok(read.map_err(|error| undecodable(&error)))
    }

    /// Verifies a message's protection with what is trusted here.
    pub(crate) async fn prove(
        &self,
        message: &[u8],
        summary: &Summary,
    ) -> Result<Proof, HostError> {
        let (trust, named) = match summary.protection {
            Kind::Signature if !self.trusted.anchors.is_empty() => {
                let anchors = Anchors {
                    certificates: self.trusted.anchors.clone(),
                    untrusted: self.trusted.untrusted.clone(),
                    at: seconds(),
                    role: None,
                };
                (Trust::Anchors(anchors), None)
            }
            Kind::Mac => {
                let reference = summary.sender_kid.as_deref().unwrap_or_default();
                let Some((name, secret)) = self.trusted.secret_of(reference) else {
                    return Ok(Proof::Unknown);
                };
                // A subject begins with the type of an attribute, never like this.
                let name = format!("ref:{name}");
                (Trust::Secret(secret.to_vec()), Some(name))
            }
            _ => return Ok(Proof::Unknown),
        };
        let options = Options {
            leniency: Leniency::empty(),
            allow_sha1: self.trusted.allow_sha1,
        };
        Ok(match self.gate.verify(message, &trust, options).await? {
            Ok(signer) => Proof::Proved(named.unwrap_or(signer.name)),
            Err(error) => Proof::Failed(why(&error)),
        })
    }

    /// Whether a message may pass.
    pub(crate) fn pass(&self, summary: &Summary, proof: &Proof) -> Result<(), Refusal> {
        if !self.allowed[summary.body as usize] {
            let text = format!(
                "this gateway passes no messages of the type {}",
                name(summary.body)
            );
            return Err(Refusal::new(Reason::BodyType, text));
        }
        if self.protection == Protection::Any {
            return Ok(());
        }
        if summary.protection == Kind::None {
            let text = "this gateway passes no message without protection: protect it by a \
                        shared secret or a signature";
            return Err(Refusal::new(Reason::Unprotected, text));
        }
        if self.protection == Protection::Required {
            return Ok(());
        }
        let why = match proof {
            Proof::Proved(_) => return Ok(()),
            Proof::Unknown => "its sender is not known here",
            Proof::Failed(why) => why,
        };
        let text = format!("this gateway cannot verify the protection of the message: {why}");
        Err(Refusal::new(Reason::Unverified, text))
    }
}

/// A name that a message claims: its sender, or else the reference of its secret, as one word.
pub(crate) fn claimed(summary: &Summary) -> Option<String> {
    let kid = || {
        let kid = summary.sender_kid.as_deref()?;
        let text = std::str::from_utf8(kid).ok()?;
        Some(text.to_owned())
    };
    let name = match summary.sender.as_str() {
        "" => kid()?,
        sender => sender.to_owned(),
    };
    let mut word = String::from(CLAIMED);
    for c in name.chars() {
        if word.len() >= limits::CLAIMED_NAME {
            break;
        }
        word.push(if c.is_ascii_graphic() { c } else { '+' });
    }
    (word.len() > CLAIMED.len()).then_some(word)
}

/// What a claimed sender begins with. A client that names itself in a header cannot take it.
pub(crate) const CLAIMED: &str = "sender:";

fn undecodable(error: &DecodeError) -> Refusal {
    let DecodeError {
        offset, path, rule, ..
    } = error;
    // The limits of the codec are on depth, counts and lengths.
    let reason = match rule.ends_with("are not accepted") {
        true => Reason::Bomb,
        false => Reason::Undecodable,
    };
    let place = match path.as_str() {
        "" => format!("octet {offset}"),
        path => format!("octet {offset}, {path}"),
    };
    let text = format!("this is no PKIMessage in DER: {place}: {rule}");
    Refusal::new(reason, text).with_fail_info(error.fail_info)
}

fn why(error: &abide_host::wit::message::VerifyError) -> String {
    use abide_host::wit::message::VerifyError;
    match error {
        VerifyError::Undecodable(error) => error.rule.clone(),
        VerifyError::Unprotected => "it is not protected".to_owned(),
        VerifyError::WrongKind => "it is protected in another way".to_owned(),
        VerifyError::Unsupported(why)
        | VerifyError::BadProtection(why)
        | VerifyError::Untrusted(why) => why.clone(),
    }
}

fn seconds() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| {
        i64::try_from(since.as_secs()).unwrap_or(i64::MAX)
    })
}

/// As the RFC spells it.
pub(crate) fn name(body: BodyType) -> &'static str {
    BODY_TYPES[body as usize].1
}

/// In the order of their tags (RFC 9810, 5.1.2).
const BODY_TYPES: [(BodyType, &str); 27] = [
    (BodyType::Ir, "ir"),
    (BodyType::Ip, "ip"),
    (BodyType::Cr, "cr"),
    (BodyType::Cp, "cp"),
    (BodyType::P10cr, "p10cr"),
    (BodyType::Popdecc, "popdecc"),
    (BodyType::Popdecr, "popdecr"),
    (BodyType::Kur, "kur"),
    (BodyType::Kup, "kup"),
    (BodyType::Krr, "krr"),
    (BodyType::Krp, "krp"),
    (BodyType::Rr, "rr"),
    (BodyType::Rp, "rp"),
    (BodyType::Ccr, "ccr"),
    (BodyType::Ccp, "ccp"),
    (BodyType::Ckuann, "ckuann"),
    (BodyType::Cann, "cann"),
    (BodyType::Rann, "rann"),
    (BodyType::Crlann, "crlann"),
    (BodyType::Pkiconf, "pkiconf"),
    (BodyType::Nested, "nested"),
    (BodyType::Genm, "genm"),
    (BodyType::Genp, "genp"),
    (BodyType::Error, "error"),
    (BodyType::CertConf, "certConf"),
    (BodyType::PollReq, "pollReq"),
    (BodyType::PollRep, "pollRep"),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_type_is_at_its_tag() {
        for (tag, (body, _)) in BODY_TYPES.into_iter().enumerate() {
            assert_eq!(body as usize, tag);
        }
    }
}
