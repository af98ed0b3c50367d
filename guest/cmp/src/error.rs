//! What is wrong with a message, and where.

use alloc::vec::Vec;
use core::fmt;

use crate::leniency::Deviation;
use crate::status::FailInfo;

/// The result of reading.
pub type Result<T, E = Error> = core::result::Result<T, E>;

/// A fault in a message: the octet, the field and the rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    offset: usize,
    path: Vec<&'static str>,
    rule: Rule,
}

impl Error {
    /// A fault at `offset` octets from the start of the input.
    pub fn new(offset: usize, rule: Rule) -> Self {
        Self {
            offset,
            path: Vec::new(),
            rule,
        }
    }

    /// Octets from the start of the input.
    pub fn offset(&self) -> usize {
        self.offset
    }

    /// The rule that was broken.
    pub fn rule(&self) -> &Rule {
        &self.rule
    }

    /// The field in the words of the RFC, such as `header.transactionID`; empty for
    /// the outermost structure.
    pub fn path(&self) -> alloc::string::String {
        let mut path = alloc::string::String::new();
        for part in self.path.iter().rev() {
            if !path.is_empty() {
                path.push('.');
            }
            path.push_str(part);
        }
        path
    }

    /// The PKIFailureInfo bit that answers this fault (RFC 9483, 3.5).
    pub fn fail_info(&self) -> FailInfo {
        match self.rule {
            Rule::Version(_) => FailInfo::UNSUPPORTED_VERSION,
            _ => FailInfo::BAD_DATA_FORMAT,
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "octet {}", self.offset)?;
        if !self.path.is_empty() {
            write!(f, ", {}", self.path())?;
        }
        write!(f, ": {}", self.rule)
    }
}

impl core::error::Error for Error {}

/// The rule a message breaks.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Rule {
    /// The input ends before the element does.
    Truncated,
    /// Octets follow where the structure has ended.
    TrailingOctets,
    /// Another element was expected.
    UnexpectedTag {
        /// What belongs here.
        expected: &'static str,
        /// The identifier octet that came.
        found: u8,
    },
    /// An element is missing at the end of its structure.
    Missing(&'static str),
    /// A tag number above 30, which CMP does not use.
    HighTagNumber,
    /// An indefinite length: BER, not DER (X.690, 10.1).
    IndefiniteLength,
    /// A length in more octets than needed (X.690, 10.1).
    LengthNotMinimal,
    /// A fraction of a second that has no place here (X.690, 11.7.3; RFC 5280, 4.1.2.5.2).
    FractionalSeconds(&'static str),
    /// raVerified with an EXPLICIT tag (RFC 4211, 4).
    ExplicitRaVerified,
    /// A SEQUENCE SIZE (1..MAX) that is empty.
    EmptyList,
    /// A value outside the distinguished encoding of its type.
    NotDistinguished(&'static str),
    /// More or longer than this crate accepts.
    Limit {
        /// What there is too much of.
        what: &'static str,
        /// The bound from [`crate::limits`].
        limit: usize,
    },
    /// A protocol version that is not spoken (RFC 9810, 7).
    Version(i64),
    /// A rule of the protocol about the content, in words.
    Content(&'static str),
}

impl Rule {
    /// The switch under which a breach of this rule is accepted, if it has one.
    pub fn deviation(&self) -> Option<Deviation> {
        match self {
            Self::LengthNotMinimal => Some(Deviation::NonMinimalLength),
            Self::FractionalSeconds(_) => Some(Deviation::FractionalSeconds),
            Self::ExplicitRaVerified => Some(Deviation::ExplicitRaVerified),
            Self::EmptyList => Some(Deviation::EmptyList),
            _ => None,
        }
    }
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Truncated => f.write_str("the input ends inside this element"),
            Self::TrailingOctets => f.write_str("octets follow after the end"),
            Self::UnexpectedTag { expected, found } => {
                write!(f, "expected {expected}, found tag {found:#04x}")
            }
            Self::Missing(what) => write!(f, "{what} is missing"),
            Self::HighTagNumber => f.write_str("a tag number above 30"),
            Self::IndefiniteLength => f.write_str("an indefinite length is not DER"),
            Self::LengthNotMinimal => f.write_str("a length in more octets than needed is not DER"),
            Self::FractionalSeconds(what) => f.write_str(what),
            Self::ExplicitRaVerified => {
                f.write_str("raVerified with an EXPLICIT tag: RFC 4211 has IMPLICIT tags")
            }
            Self::EmptyList => f.write_str("an empty SEQUENCE SIZE (1..MAX)"),
            Self::NotDistinguished(what) => write!(f, "not DER: {what}"),
            Self::Limit { what, limit } => write!(f, "{what}: more than {limit} are not accepted"),
            Self::Version(pvno) => write!(f, "pvno {pvno} is not supported (2 and 3 are)"),
            Self::Content(rule) => f.write_str(rule),
        }
    }
}

/// Names the field in which a fault lies.
pub trait Context {
    /// Puts `field` in front of the path of an error.
    #[must_use]
    fn at(self, field: &'static str) -> Self;
}

impl<T> Context for Result<T> {
    fn at(self, field: &'static str) -> Self {
        self.map_err(|mut error| {
            error.path.push(field);
            error
        })
    }
}
