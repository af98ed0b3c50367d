//! The rules of CMP that one message alone can keep or break.
//!
//! The decoder refuses what is no PKIMessage. Beyond that, RFC 9810, the Lightweight
//! Profile (RFC 9483), RFC 9481 and RFC 4211 ask for more than a grammar can say. What needs
//! other messages (an echoed nonce), a clock or a trust anchor is not judged here.

mod body;
mod header;
pub mod laws;
mod protection;
mod request;
mod response;
#[cfg(test)]
mod tests;

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

pub use self::laws::ALL;
use crate::body::{BodyType, PkiBody};
use crate::leniency::Leniency;
use crate::limits;
use crate::message::PkiMessage;
use crate::name::Name;
use crate::status::FailInfo;

/// How much a rule asks (RFC 2119).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Weight {
    /// MUST, MUST NOT, REQUIRED, PROHIBITED: who breaks it is at fault.
    Violation,
    /// SHOULD, RECOMMENDED, or a MUST with an exception that one message cannot show.
    Advice,
}

/// A rule of an RFC.
#[derive(Debug, PartialEq, Eq)]
pub struct Rule {
    /// What it asks for, in one sentence.
    pub text: &'static str,
    /// Where it stands, such as `RFC 9483, 3.5`.
    pub section: &'static str,
    /// How much it asks.
    pub weight: Weight,
    /// The PKIFailureInfo bit that tells a sender of its breach; empty where none fits.
    pub fail_info: FailInfo,
}

/// A rule that a message breaks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// The rule.
    pub rule: &'static Rule,
    /// The field in the words of the RFC, such as `body.ip.response[0].status.failInfo`.
    pub path: String,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let rule = self.rule;
        write!(f, "{}: {} ({})", self.path, rule.text, rule.section)
    }
}

/// The rules that a message breaks, in the order of its fields; with those of messages
/// inside it, as deep as they are read. At most [`limits::FINDINGS`].
///
/// `leniency` is what the message was read with: certificates and values inside it are
/// read with it too.
pub fn check(message: &PkiMessage<'_>, leniency: Leniency) -> Vec<Finding> {
    let mut findings = Findings::new(leniency);
    check_message(message, &mut findings, 0);
    findings.list
}

/// The rules that the body alone breaks, as [`check`] tells them. Messages inside it are not
/// looked at.
pub fn check_body(message: &PkiMessage<'_>, leniency: Leniency) -> Vec<Finding> {
    let mut findings = Findings::new(leniency);
    body::check(message, &mut findings);
    findings.list
}

fn check_message(message: &PkiMessage<'_>, findings: &mut Findings, depth: usize) {
    header::check(message, findings);
    body::check(message, findings);
    protection::check(message, findings);
    let PkiBody::Nested(messages) = &message.body else {
        return;
    };
    if depth == limits::NESTING {
        return;
    }
    for (index, der) in messages.iter().enumerate() {
        // No more would be told.
        if findings.list.len() == limits::FINDINGS {
            return;
        }
        let Ok(inner) = PkiMessage::from_der_with(der, findings.leniency) else {
            continue;
        };
        let outer = findings.prefix.clone();
        findings.prefix = format!("{outer}body.nested[{index}].");
        check_message(&inner.value, findings, depth + 1);
        findings.prefix = outer;
    }
}

/// How two names relate. Some peers turn the order of the RDNs round.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Names {
    Same,
    Reversed,
    Other,
}

/// Collects findings.
struct Findings {
    list: Vec<Finding>,
    /// The path to the message that is looked at.
    prefix: String,
    leniency: Leniency,
    /// Octets of names that may still be compared.
    names_left: usize,
}

impl Findings {
    fn new(leniency: Leniency) -> Self {
        Self {
            list: Vec::new(),
            prefix: String::new(),
            leniency,
            names_left: limits::COMPARED_NAMES,
        }
    }

    /// Notes that the field breaks the rule.
    fn add(&mut self, rule: &'static Rule, path: impl fmt::Display) {
        if self.list.len() < limits::FINDINGS {
            let path = format!("{}{path}", self.prefix);
            self.list.push(Finding { rule, path });
        }
    }

    /// Whether two names are the same, and if not, whether one is the other in reverse; none
    /// where [`limits::COMPARED_NAMES`] is used up.
    fn compare(&mut self, left: &Name<'_>, right: &Name<'_>) -> Option<Names> {
        if left == right {
            return Some(Names::Same);
        }
        let octets = left.der().len() + right.der().len();
        self.names_left = self.names_left.checked_sub(octets)?;
        Some(if left.matches(right) {
            Names::Same
        } else if left.matches_reversed(right) {
            Names::Reversed
        } else {
            Names::Other
        })
    }

    /// Notes it unless `kept`.
    fn unless(&mut self, kept: bool, rule: &'static Rule, path: impl fmt::Display) {
        if !kept {
            self.add(rule, path);
        }
    }
}

/// Whether this body opens a transaction.
fn opens(body: BodyType) -> bool {
    use BodyType::{Ccr, Cr, Genm, Ir, Krr, Kur, P10cr, Rr};
    matches!(body, Ir | Cr | P10cr | Kur | Krr | Rr | Ccr | Genm)
}

/// Whether this body is an announcement, which belongs to no transaction.
fn announces(body: BodyType) -> bool {
    use BodyType::{Cann, Ckuann, Crlann, Rann};
    matches!(body, Ckuann | Cann | Rann | Crlann)
}
