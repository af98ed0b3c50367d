//! What a structure is, from its outermost tags alone.

use alloc::vec::Vec;

use crate::der::{Reader, tag};

/// A structure that can be described.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    PkiMessage,
    PkiMessages,
    Certificate,
    CertificationRequest,
    CertificateList,
    CertReqMessages,
    CertReqMsg,
    CertRequest,
    CertTemplate,
}

impl Kind {
    pub(super) const ALL: [Self; 9] = [
        Self::PkiMessage,
        Self::PkiMessages,
        Self::Certificate,
        Self::CertificationRequest,
        Self::CertificateList,
        Self::CertReqMessages,
        Self::CertReqMsg,
        Self::CertRequest,
        Self::CertTemplate,
    ];

    /// The name of the type in its RFC.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::PkiMessage => "PKIMessage",
            Self::PkiMessages => "PKIMessages",
            Self::Certificate => "Certificate",
            Self::CertificationRequest => "CertificationRequest",
            Self::CertificateList => "CertificateList",
            Self::CertReqMessages => "CertReqMessages",
            Self::CertReqMsg => "CertReqMsg",
            Self::CertRequest => "CertRequest",
            Self::CertTemplate => "CertTemplate",
        }
    }
}

/// Tags that are looked at in one structure. None of the outer ones that matter has more.
const TAGS: usize = 6;

/// Tells the type, if the tags of the three outermost levels leave no doubt.
///
/// | outermost fields | type |
/// |---|---|
/// | SEQUENCE that starts with INTEGER, context tag | PKIMessage: a header, a body |
/// | SEQUENCE of such | PKIMessages |
/// | SEQUENCE, SEQUENCE, BIT STRING | signed: see below |
/// | SEQUENCE that starts with INTEGER, SEQUENCE | CertReqMsg: a CertRequest |
/// | SEQUENCE of such | CertReqMessages |
/// | INTEGER, SEQUENCE, and nothing or a SEQUENCE | CertRequest |
/// | context tags in ascending order | CertTemplate |
///
/// What is signed is a Certificate where it starts with its version `[0]`; a CRL where a
/// Time comes third or fourth; a request where the attributes `[0]` or nothing come
/// fourth; else a Certificate of version 1.
pub(super) fn kind(input: &[u8]) -> Option<Kind> {
    let mut reader = Reader::judged(input);
    let outer = reader.any().ok().filter(|e| e.tag == tag::SEQUENCE)?;
    if !reader.is_empty() {
        return None;
    }
    let fields = fields(outer.contents());
    let tags: Vec<u8> = fields.iter().map(|(tag, _)| *tag).collect();
    let inner = |index: usize| -> Vec<(u8, Reader<'_>)> {
        let field = fields.get(index).filter(|(tag, _)| *tag == tag::SEQUENCE);
        field
            .map(|(_, contents)| self::fields(contents.clone()))
            .unwrap_or_default()
    };
    match tags[..] {
        [tag::SEQUENCE, tag::SEQUENCE, tag::BIT_STRING] => return Some(signed(&inner(0))),
        [tag::INTEGER, tag::SEQUENCE] | [tag::INTEGER, tag::SEQUENCE, tag::SEQUENCE] => {
            return Some(Kind::CertRequest);
        }
        [first, ..]
            if is_context(first) && tags.is_sorted() && tags.iter().all(|t| is_context(*t)) =>
        {
            return Some(Kind::CertTemplate);
        }
        _ => {}
    }
    let first = inner(0);
    if let Some(kind) = request_or_message(&first, &tags) {
        return Some(kind);
    }
    let innermost = match first.first() {
        Some((tag::SEQUENCE, contents)) => self::fields(contents.clone()),
        _ => return None,
    };
    let tags: Vec<u8> = first.iter().map(|(tag, _)| *tag).collect();
    match request_or_message(&innermost, &tags)? {
        Kind::PkiMessage => Some(Kind::PkiMessages),
        _ => Some(Kind::CertReqMessages),
    }
}

/// A CertReqMsg or PKIMessage with these tags, whose first field has these fields.
fn request_or_message(first: &[(u8, Reader<'_>)], tags: &[u8]) -> Option<Kind> {
    let [(tag::INTEGER, _), (second, _), ..] = first else {
        return None;
    };
    match tags {
        _ if *second == tag::SEQUENCE => Some(Kind::CertReqMsg),
        [_, body, ..] if is_context(*second) && is_context(*body) => Some(Kind::PkiMessage),
        _ => None,
    }
}

fn signed(fields: &[(u8, Reader<'_>)]) -> Kind {
    let is_time = |index: usize| {
        let tag = fields.get(index).map(|(tag, _)| *tag);
        matches!(tag, Some(tag::UTC_TIME | tag::GENERALIZED_TIME))
    };
    match fields.first().map(|(tag, _)| *tag) {
        Some(0xa0) => Kind::Certificate,
        _ if is_time(2) || is_time(3) => Kind::CertificateList,
        _ if matches!(fields.get(3), None | Some((0xa0, _))) => Kind::CertificationRequest,
        _ => Kind::Certificate,
    }
}

fn is_context(tag: u8) -> bool {
    tag & 0xc0 == 0x80
}

/// The first fields of a structure: their tags and contents, as far as they can be read.
fn fields<'a>(mut contents: Reader<'a>) -> Vec<(u8, Reader<'a>)> {
    let mut fields = Vec::new();
    while fields.len() < TAGS
        && let Ok(element) = contents.any()
    {
        fields.push((element.tag, element.contents()));
    }
    fields
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::der::Writer;

    fn sequence(contents: &[&[u8]]) -> Vec<u8> {
        Writer::encode(|w| w.sequence(|w| w.raw(&contents.concat())))
    }

    /// Tags put together by hand from the productions of RFC 9810, 4211, 5280 and 2986.
    #[test]
    fn tags_tell_the_type() {
        let integer: &[u8] = &[2, 1, 2];
        let empty: &[u8] = &[0x30, 0];
        let name: &[u8] = &[0xa4, 2, 0x30, 0];
        let bits: &[u8] = &[3, 1, 0];
        let time: &[u8] = &[0x17, 0];
        let header = sequence(&[integer, name, name]);
        let message = sequence(&[&header, &[0xb3, 2, 5, 0]]);
        let request = sequence(&[integer, empty]);
        let request_message = sequence(&[&request, &[0x80, 0]]);
        let signed = |tbs: &[&[u8]]| sequence(&[&sequence(tbs), empty, bits]);
        let cases = [
            (message.clone(), Kind::PkiMessage),
            (sequence(&[&message, &message]), Kind::PkiMessages),
            (request.clone(), Kind::CertRequest),
            (request_message.clone(), Kind::CertReqMsg),
            (sequence(&[&request_message]), Kind::CertReqMessages),
            (sequence(&[&[0xa5, 2, 0x30, 0]]), Kind::CertTemplate),
            (signed(&[&[0xa0, 3, 2, 1, 2], integer]), Kind::Certificate),
            (
                signed(&[integer, empty, empty, empty, empty, empty]),
                Kind::Certificate,
            ),
            (
                signed(&[integer, empty, empty, &[0xa0, 0]]),
                Kind::CertificationRequest,
            ),
            (
                signed(&[integer, empty, empty, time]),
                Kind::CertificateList,
            ),
            (signed(&[empty, empty, time]), Kind::CertificateList),
        ];
        for (der, expected) in cases {
            assert_eq!(kind(&der), Some(expected), "{der:02x?}");
        }
    }

    #[test]
    fn the_rest_stays_open() {
        for der in [
            &[0x30, 0][..],
            &[],
            &[0x31, 0],
            &[0x30, 2, 5, 0],
            &[0x30, 0x80, 0, 0],
            &[0x30, 2, 0xa0, 0, 0],
        ] {
            assert_eq!(kind(der), None, "{der:02x?}");
        }
    }
}
