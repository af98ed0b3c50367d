//! Why the gateway answers by itself, and with which CMP error.

use std::time::Duration;

use abide_host::Gate;
use abide_host::wit::message::{BodyType, Content, Header, Leniency, Parts, PkiStatus};
use bytes::Bytes;
use hyper::StatusCode;
use rustls::crypto::SecureRandom;

/// What was wrong, for metrics, logs and the choice of the answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reason {
    Method,
    ContentType,
    ContentEncoding,
    Oversize,
    BadChunking,
    SlowBody,
    Aborted,
    Undecodable,
    Bomb,
    Unprotected,
    Unverified,
    BodyType,
    Throttled,
    NoRoute,
    Unavailable,
    Unreachable,
    Unanswered,
    Unusable,
    Sandbox,
}

/// PKIFailureInfo (RFC 9810, 5.2.3).
mod bit {
    pub(super) const BAD_MESSAGE_CHECK: u8 = 1;
    pub(super) const BAD_REQUEST: u8 = 2;
    pub(super) const BAD_DATA_FORMAT: u8 = 5;
    pub(super) const SYSTEM_UNAVAIL: u8 = 24;
    pub(super) const SYSTEM_FAILURE: u8 = 25;
}

impl Reason {
    /// As metrics and logs name it.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Method => "method",
            Self::ContentType => "content-type",
            Self::ContentEncoding => "content-encoding",
            Self::Oversize => "oversize",
            Self::BadChunking => "bad-chunking",
            Self::SlowBody => "slow-body",
            Self::Aborted => "aborted",
            Self::Undecodable => "undecodable",
            Self::Bomb => "bomb",
            Self::Unprotected => "unprotected",
            Self::Unverified => "unverified",
            Self::BodyType => "body-type",
            Self::Throttled => "throttled",
            Self::NoRoute => "no-route",
            Self::Unavailable => "upstream-unavailable",
            Self::Unreachable => "upstream-unreachable",
            Self::Unanswered => "upstream-unanswered",
            Self::Unusable => "upstream-unusable",
            Self::Sandbox => "sandbox",
        }
    }

    /// The policy that decided.
    pub(crate) fn policy(self) -> &'static str {
        match self {
            Self::Method | Self::ContentType | Self::ContentEncoding | Self::BadChunking => "http",
            Self::Oversize | Self::SlowBody | Self::Aborted => "limits",
            Self::Undecodable | Self::Bomb | Self::Sandbox => "decode",
            Self::Unprotected | Self::Unverified => "protection",
            Self::BodyType => "allowed",
            Self::Throttled => "rate_limit",
            Self::NoRoute => "routing",
            Self::Unavailable | Self::Unreachable | Self::Unanswered | Self::Unusable => "upstream",
        }
    }

    /// What came of the request.
    pub(crate) fn verdict(self) -> &'static str {
        match self {
            Self::Throttled => "throttled",
            Self::NoRoute
            | Self::Unavailable
            | Self::Unreachable
            | Self::Unanswered
            | Self::Unusable
            | Self::Sandbox => "failed",
            _ => "refused",
        }
    }

    /// The HTTP status. HTTP has nothing against a message whose content is refused: it was
    /// received, and is answered (RFC 9811, 3.1). Older clients, OpenSSL before 3.4 among them,
    /// read no CMP in an answer that is not 200.
    fn status(self, strict: bool) -> StatusCode {
        match self {
            Self::Method => StatusCode::METHOD_NOT_ALLOWED,
            Self::ContentType | Self::ContentEncoding => StatusCode::UNSUPPORTED_MEDIA_TYPE,
            Self::Oversize => StatusCode::PAYLOAD_TOO_LARGE,
            Self::BadChunking | Self::Aborted => StatusCode::BAD_REQUEST,
            Self::SlowBody => StatusCode::REQUEST_TIMEOUT,
            Self::Throttled => StatusCode::TOO_MANY_REQUESTS,
            Self::NoRoute | Self::Unavailable => StatusCode::SERVICE_UNAVAILABLE,
            Self::Unreachable | Self::Unusable => StatusCode::BAD_GATEWAY,
            Self::Unanswered => StatusCode::GATEWAY_TIMEOUT,
            Self::Sandbox => StatusCode::INTERNAL_SERVER_ERROR,
            _ if !strict => StatusCode::OK,
            Self::Undecodable | Self::Bomb => StatusCode::BAD_REQUEST,
            Self::Unprotected | Self::Unverified | Self::BodyType => StatusCode::FORBIDDEN,
        }
    }

    fn fail_info(self) -> u8 {
        match self {
            Self::Undecodable | Self::Bomb | Self::BadChunking => bit::BAD_DATA_FORMAT,
            Self::Unprotected | Self::Unverified => bit::BAD_MESSAGE_CHECK,
            Self::Throttled
            | Self::NoRoute
            | Self::Unavailable
            | Self::Unreachable
            | Self::Unanswered => bit::SYSTEM_UNAVAIL,
            Self::Unusable | Self::Sandbox => bit::SYSTEM_FAILURE,
            _ => bit::BAD_REQUEST,
        }
    }

    /// Whether the rest of the connection cannot be used: nobody knows where the next request
    /// begins, or would have to read what is refused to find out.
    pub(crate) fn closes(self) -> bool {
        matches!(
            self,
            Self::Method
                | Self::ContentType
                | Self::ContentEncoding
                | Self::Oversize
                | Self::BadChunking
                | Self::SlowBody
                | Self::Aborted
        )
    }
}

/// A request that is answered here.
#[derive(Debug)]
pub(crate) struct Refusal {
    pub(crate) reason: Reason,
    /// One line for the client: what happened, whose fault it is, what to do.
    pub(crate) text: String,
    /// When it may come again.
    pub(crate) retry_after: Option<Duration>,
    fail_info: Option<u8>,
}

impl Refusal {
    pub(crate) fn new(reason: Reason, text: impl Into<String>) -> Self {
        Refusal {
            reason,
            text: text.into(),
            retry_after: None,
            fail_info: None,
        }
    }

    /// With another bit than the reason usually has.
    pub(crate) fn with_fail_info(mut self, bit: Option<u8>) -> Self {
        self.fail_info = bit;
        self
    }

    pub(crate) fn after(mut self, wait: Option<Duration>) -> Self {
        self.retry_after = wait;
        self
    }

    pub(crate) fn status(&self, strict: bool) -> StatusCode {
        self.reason.status(strict)
    }
}

/// NULL-DN: a directoryName without anything in it, as a GeneralName (RFC 9810, 5.1.1).
const NULL_DN: [u8; 4] = [0xa4, 0x02, 0x30, 0x00];

/// Makes errors in CMP.
#[derive(Debug)]
pub(crate) struct Errors {
    gate: Gate,
    random: &'static dyn SecureRandom,
    /// For the case that the sandbox itself fails.
    spare: Bytes,
}

impl Errors {
    /// Fails where the sandbox does.
    pub(crate) async fn new(gate: Gate) -> Result<Self, abide_host::HostError> {
        let mut errors = Errors {
            gate,
            random: rustls::crypto::aws_lc_rs::default_provider().secure_random,
            spare: Bytes::new(),
        };
        let refusal = Refusal::new(Reason::Sandbox, "the gateway cannot read messages");
        errors.spare = errors.make(&refusal, None).await?.unwrap_or_default();
        Ok(errors)
    }

    /// The PKIMessage that answers a request, as far as the request can be read.
    pub(crate) async fn answer(&self, refusal: &Refusal, request: Option<&[u8]>) -> Bytes {
        match self.make(refusal, request).await {
            Ok(Some(message)) => message,
            _ => self.spare.clone(),
        }
    }

    async fn make(
        &self,
        refusal: &Refusal,
        request: Option<&[u8]>,
    ) -> Result<Option<Bytes>, abide_host::HostError> {
        let asked = match request {
            // A message that broke the sandbox is not shown to it again.
            Some(request) if refusal.reason != Reason::Sandbox => self.header(request).await?,
            _ => None,
        };
        let bits = [refusal
            .fail_info
            .unwrap_or_else(|| refusal.reason.fail_info())];
        let text = [refusal.text.clone()];
        let content = self
            .gate
            .error_content(PkiStatus::Rejection, &bits, &text)
            .await?;
        let parts = Parts {
            header: self.header_of_answer(asked),
            body: Content {
                body: BodyType::Error,
                value: content,
            },
            protection: None,
            extra_certs: Vec::new(),
        };
        Ok(self.gate.encode(&parts).await?.ok().map(Bytes::from))
    }

    fn header_of_answer(&self, asked: Option<Header>) -> Header {
        let mut nonce = vec![0; 16];
        // Without chance the field is left out.
        let nonce = self.random.fill(&mut nonce).is_ok().then_some(nonce);
        let (pvno, sender, recipient, transaction_id, recip_nonce) = match asked {
            Some(asked) => (
                asked.pvno,
                asked.recipient,
                asked.sender,
                asked.transaction_id,
                asked.sender_nonce,
            ),
            None => (2, NULL_DN.to_vec(), NULL_DN.to_vec(), None, None),
        };
        Header {
            pvno,
            sender,
            recipient,
            message_time: None,
            protection_alg: None,
            sender_kid: None,
            recip_kid: None,
            transaction_id,
            sender_nonce: nonce,
            recip_nonce,
            free_text: Vec::new(),
            general_info: Vec::new(),
        }
    }

    /// The header of a request: of the whole message, or, where that cannot be read, of a message
    /// that has nothing but this header.
    async fn header(&self, request: &[u8]) -> Result<Option<Header>, abide_host::HostError> {
        let lenient = Leniency::all();
        if let Ok(parts) = self.gate.split(request, lenient).await? {
            return Ok(Some(parts.header));
        }
        let Some(header) = first_element(request).and_then(|whole| element(whole.content)) else {
            return Ok(None);
        };
        for rest in [&PKICONF[..], &PKICONF_PROTECTED[..]] {
            let alone = sequence(header.whole, rest);
            if let Ok(parts) = self.gate.split(&alone, lenient).await? {
                return Ok(Some(parts.header));
            }
        }
        Ok(None)
    }
}

/// The shortest PKIBody: pkiconf [19] NULL.
const PKICONF: [u8; 4] = [0xb3, 0x02, 0x05, 0x00];

/// The same, followed by a protection [0] BIT STRING of one octet, for headers that promise one.
const PKICONF_PROTECTED: [u8; 10] = [0xb3, 0x02, 0x05, 0x00, 0xa0, 0x04, 0x03, 0x02, 0x00, 0x00];

/// Tag and length of a SEQUENCE were read here, and nothing else: what is in it is for the
/// sandbox.
#[derive(Debug, PartialEq, Eq)]
struct Element<'a> {
    whole: &'a [u8],
    content: &'a [u8],
}

/// The SEQUENCE at the start of some octets, which must be whole.
fn element(octets: &[u8]) -> Option<Element<'_>> {
    let (start, length) = head(octets)?;
    let end = start.checked_add(length)?;
    Some(Element {
        whole: octets.get(..end)?,
        content: octets.get(start..end)?,
    })
}

/// The same, where the end may be missing or wrong.
fn first_element(octets: &[u8]) -> Option<Element<'_>> {
    let (start, _) = head(octets)?;
    Some(Element {
        whole: octets,
        content: octets.get(start..)?,
    })
}

/// Where the content of a SEQUENCE begins, and how long it says it is.
fn head(octets: &[u8]) -> Option<(usize, usize)> {
    match *octets {
        [0x30, length @ ..=0x7f, ..] => Some((2, length.into())),
        [0x30, 0x81, length, ..] => Some((3, length.into())),
        [0x30, 0x82, high, low, ..] => Some((4, u16::from_be_bytes([high, low]).into())),
        [0x30, 0x83, a, b, c, ..] => {
            let length = u32::from_be_bytes([0, a, b, c]);
            Some((5, usize::try_from(length).ok()?))
        }
        _ => None,
    }
}

/// A SEQUENCE of two runs of octets.
fn sequence(one: &[u8], other: &[u8]) -> Vec<u8> {
    let length = one.len() + other.len();
    let mut octets = vec![0x30];
    match u32::try_from(length).unwrap_or(u32::MAX).to_be_bytes() {
        [0, 0, 0, low @ ..=0x7f] => octets.push(low),
        [0, 0, 0, low] => octets.extend([0x81, low]),
        [0, 0, high, low] => octets.extend([0x82, high, low]),
        [_, a, b, c] => octets.extend([0x83, a, b, c]),
    }
    octets.extend_from_slice(one);
    octets.extend_from_slice(other);
    octets
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Lengths as X.690, 8.1.3 writes them, by hand.
    #[test]
    fn lengths_are_written_and_read() {
        for (length, start) in [
            (3, vec![0x30, 0x03]),
            (127, vec![0x30, 0x7f]),
            (128, vec![0x30, 0x81, 0x80]),
            (256, vec![0x30, 0x82, 0x01, 0x00]),
            (65_536, vec![0x30, 0x83, 0x01, 0x00, 0x00]),
        ] {
            let content = vec![7; length];
            let made = sequence(&content[1..], &content[..1]);
            assert_eq!(made[..start.len()], start);
            let read = element(&made).expect("an element");
            assert_eq!(read.content, content);
            assert_eq!(read.whole, made);
        }
    }

    #[test]
    fn what_is_no_whole_sequence_has_no_header() {
        for octets in [
            &[][..],
            &[0x30],
            &[0x30, 0x80],
            &[0x30, 0x02, 0x00],
            &[0x31, 0x00],
            &[0x30, 0x84, 0xff, 0xff, 0xff, 0xff],
            &[0x30, 0x83, 0xff, 0xff, 0xff, 0x00],
        ] {
            assert_eq!(element(octets), None, "{octets:02x?}");
        }
    }
}
