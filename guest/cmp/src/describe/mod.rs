//! Messages, certificates, requests and CRLs as JSON in the words of the RFCs.
//!
//! Describing shows and does not judge: what breaks the rules of its type is shown as
//! hexadecimal, and limits that protection keeps to are no reason to hide a number.

mod algorithm;
mod body;
mod cms;
mod crl;
mod crmf;
mod detect;
mod extension;
mod info;
mod message;
mod names;
mod node;
mod offsets;
mod size;
mod x509;

use alloc::string::String;
use core::cell::Cell;

use self::detect::Kind;
use self::node::{Node, list, object, text};
use crate::crmf::{CertReqMsg, CertTemplate};
use crate::der::Reader;
use crate::error::{Context, Error, Result, Rule};
use crate::leniency::{Leniency, Tolerant, Toleration, read_with};
use crate::limits;
use crate::message::{PkiMessage, read_nested};
use crate::x509::{Certificate, CertificationRequest};

/// Describes one DER structure as JSON: a PKIMessage, PKIMessages, a certificate, a
/// PKCS #10 request, a CRL, or a request in CRMF.
///
/// The member `type` names what it is: `PKIMessage`, `PKIMessages`, `Certificate`,
/// `CertificationRequest`, `CertificateList`, `CertReqMessages`, `CertReqMsg`,
/// `CertRequest` or `CertTemplate`. The outermost tags decide between them; where they do
/// not, each type is tried in this order and the first that can be read is it. What is none
/// of them fails as the type does that comes furthest.
///
/// More than [`limits::DESCRIBED`] elements are not described.
///
/// Members keep the order of the ASN.1; octets are lowercase hexadecimal, times are
/// RFC 3339. `tolerated` lists the deviations from DER that `leniency` accepted, `offsets`
/// the outer fields with their place in `input`, tag and length included.
pub fn describe(input: &[u8], leniency: Leniency) -> Result<String> {
    size::check(input)?;
    let scope = Scope {
        depth: 0,
        leniency,
        messages: &Cell::new(limits::DESCRIBED_MESSAGES),
    };
    let (kind, content) = match detect::kind(input) {
        Some(kind) => (kind, read(kind, input, scope)?),
        None => first_that_fits(input, scope)?,
    };
    let mut members = alloc::vec![("type", text(kind.name()))];
    match content.value {
        Node::Object(more) => members.extend(more),
        other => members.push(("content", other)),
    }
    if !content.tolerations.is_empty() {
        members.push(("tolerated", list(&content.tolerations, toleration)));
    }
    members.push(("offsets", offsets::offsets(kind, input)));
    Ok(serde_json::to_string(&Node::Object(members)).unwrap_or_default())
}

fn toleration(toleration: &Toleration) -> Node {
    object([
        ("leniency", text(toleration.which.name())),
        ("offset", offsets::number(toleration.offset)),
        ("path", text(&toleration.path)),
    ])
}

/// Where a structure stands: how many messages there are around it, what is accepted in
/// them, and how many more are described.
#[derive(Clone, Copy)]
struct Scope<'s> {
    depth: usize,
    leniency: Leniency,
    messages: &'s Cell<usize>,
}

impl Scope<'_> {
    /// Inside one more message, if that one is described.
    fn inside(self) -> Option<Self> {
        let left = self.messages.get().checked_sub(1)?;
        if self.depth == limits::NESTING {
            return None;
        }
        self.messages.set(left);
        Some(Self {
            depth: self.depth + 1,
            ..self
        })
    }
}

fn first_that_fits(input: &[u8], scope: Scope<'_>) -> Result<(Kind, Tolerant<Node>)> {
    let mut furthest: Option<Error> = None;
    for kind in Kind::ALL {
        match read(kind, input, scope) {
            Ok(content) => return Ok((kind, content)),
            Err(error) => {
                let further = |best: &Error| error.offset() > best.offset();
                if furthest.as_ref().is_none_or(further) {
                    furthest = Some(error);
                }
            }
        }
    }
    Err(furthest.unwrap_or_else(|| Error::new(0, Rule::Truncated)))
}

fn read(kind: Kind, input: &[u8], scope: Scope<'_>) -> Result<Tolerant<Node>> {
    let limit = match kind {
        Kind::CertificateList => limits::CRL,
        _ => limits::MESSAGE,
    };
    if input.len() > limit {
        let what = "octets of the input";
        return Err(Error::new(0, Rule::Limit { what, limit }));
    }
    read_with(input, scope.leniency, |reader| content(kind, reader, scope))
}

fn content(kind: Kind, reader: &mut Reader<'_>, scope: Scope<'_>) -> Result<Node> {
    Ok(match kind {
        Kind::PkiMessage => message::message(&PkiMessage::read(reader, 0)?, scope),
        Kind::PkiMessages => {
            let messages = read_nested(reader, 0).at("messages")?;
            let messages = list(&messages, |der| message::nested(der, scope));
            object([("messages", messages)])
        }
        Kind::Certificate => x509::certificate(&Certificate::read(reader).at("certificate")?),
        Kind::CertificationRequest => {
            let request = CertificationRequest::read(reader).at("certificationRequest")?;
            x509::certification_request(&request)
        }
        Kind::CertificateList => {
            crl::describe(&crl::CertificateList::read(reader).at("certificateList")?)
        }
        Kind::CertReqMessages => {
            let requests = reader.sequence_of(CertReqMsg::read).at("certReqMessages")?;
            // No field that could be taken as absent.
            if requests.is_empty() {
                return Err(Error::new(0, Rule::Missing("a CertReqMsg"))).at("certReqMessages");
            }
            object([("requests", list(&requests, crmf::request))])
        }
        Kind::CertReqMsg => crmf::request(&CertReqMsg::read(reader).at("certReqMsg")?),
        Kind::CertRequest => crmf::cert_request(&crmf::read_request(reader)?),
        Kind::CertTemplate => {
            let template = CertTemplate::read(reader).at("certTemplate")?;
            if template == CertTemplate::default() {
                let rule = Rule::Content("a CertTemplate without a field");
                return Err(Error::new(0, rule)).at("certTemplate");
            }
            crmf::cert_template(&template)
        }
    })
}
