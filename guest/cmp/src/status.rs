//! PKIStatusInfo (RFC 9810, 5.2.3).

use alloc::borrow::Cow;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

use crate::der::{Reader, Writer, tag};
use crate::error::{Context, Error, Result, Rule};

/// The outcome of a request (RFC 9810, 5.2.3).
///
/// ```text
/// PKIStatus ::= INTEGER { accepted (0), grantedWithMods (1), rejection (2), waiting (3),
///     revocationWarning (4), revocationNotification (5), keyUpdateWarning (6) }
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names are those of the production above")]
pub enum PkiStatus {
    Accepted,
    GrantedWithMods,
    Rejection,
    Waiting,
    RevocationWarning,
    RevocationNotification,
    KeyUpdateWarning,
}

impl PkiStatus {
    const ALL: [(Self, &'static str); 7] = [
        (Self::Accepted, "accepted"),
        (Self::GrantedWithMods, "grantedWithMods"),
        (Self::Rejection, "rejection"),
        (Self::Waiting, "waiting"),
        (Self::RevocationWarning, "revocationWarning"),
        (Self::RevocationNotification, "revocationNotification"),
        (Self::KeyUpdateWarning, "keyUpdateWarning"),
    ];

    /// The name in the RFC.
    pub fn name(self) -> &'static str {
        Self::ALL[self as usize].1
    }

    /// Whether a certificate comes with this status.
    pub fn is_granted(self) -> bool {
        !matches!(self, Self::Rejection | Self::Waiting)
    }

    pub(crate) fn read(reader: &mut Reader<'_>) -> Result<Self> {
        let at = reader.clone();
        let number = reader.integer()?;
        let known = usize::try_from(number)
            .ok()
            .and_then(|number| Self::ALL.get(number));
        match known {
            Some(&(status, _)) => Ok(status),
            None => at.fault(Rule::Content("a PKIStatus outside 0 to 6")),
        }
    }
}

/// Reasons for a refusal, as a set of bit numbers (RFC 9810, 5.2.3).
///
/// ```text
/// PKIFailureInfo ::= BIT STRING { badAlg (0), …, duplicateCertReq (26) }
/// ```
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub struct FailInfo(u32);

macro_rules! fail_info {
    ($($constant:ident = $bit:literal, $name:literal;)+) => {
        impl FailInfo {
            $(
                #[doc = concat!("`", $name, "`, bit ", stringify!($bit), ".")]
                pub const $constant: Self = Self(1 << $bit);
            )+
            const NAMES: &'static [&'static str] = &[$($name),+];
        }
    };
}

fail_info! {
    BAD_ALG = 0, "badAlg";
    BAD_MESSAGE_CHECK = 1, "badMessageCheck";
    BAD_REQUEST = 2, "badRequest";
    BAD_TIME = 3, "badTime";
    BAD_CERT_ID = 4, "badCertId";
    BAD_DATA_FORMAT = 5, "badDataFormat";
    WRONG_AUTHORITY = 6, "wrongAuthority";
    INCORRECT_DATA = 7, "incorrectData";
    MISSING_TIME_STAMP = 8, "missingTimeStamp";
    BAD_POP = 9, "badPOP";
    CERT_REVOKED = 10, "certRevoked";
    CERT_CONFIRMED = 11, "certConfirmed";
    WRONG_INTEGRITY = 12, "wrongIntegrity";
    BAD_RECIPIENT_NONCE = 13, "badRecipientNonce";
    TIME_NOT_AVAILABLE = 14, "timeNotAvailable";
    UNACCEPTED_POLICY = 15, "unacceptedPolicy";
    UNACCEPTED_EXTENSION = 16, "unacceptedExtension";
    ADD_INFO_NOT_AVAILABLE = 17, "addInfoNotAvailable";
    BAD_SENDER_NONCE = 18, "badSenderNonce";
    BAD_CERT_TEMPLATE = 19, "badCertTemplate";
    SIGNER_NOT_TRUSTED = 20, "signerNotTrusted";
    TRANSACTION_ID_IN_USE = 21, "transactionIdInUse";
    UNSUPPORTED_VERSION = 22, "unsupportedVersion";
    NOT_AUTHORIZED = 23, "notAuthorized";
    SYSTEM_UNAVAIL = 24, "systemUnavail";
    SYSTEM_FAILURE = 25, "systemFailure";
    DUPLICATE_CERT_REQ = 26, "duplicateCertReq";
}

impl FailInfo {
    /// No bit.
    pub const NONE: Self = Self(0);

    /// From bit numbers; one above 26 names nothing, and there is no set with it.
    pub fn from_bits(bits: impl IntoIterator<Item = u8>) -> Option<Self> {
        bits.into_iter().try_fold(Self::default(), |set, bit| {
            Self::NAMES.get(usize::from(bit))?;
            Some(set.union(Self(1 << bit)))
        })
    }

    /// Whether any bit of `other` is set here.
    pub fn intersects(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }

    /// Whether no bit is set.
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Both sets together.
    #[must_use]
    pub const fn union(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// The numbers of the bits that are set, in ascending order.
    pub fn bits(self) -> impl Iterator<Item = u8> {
        (0..32).filter(move |bit| self.0 & (1 << bit) != 0)
    }

    /// The names of the bits that are set.
    pub fn names(self) -> impl Iterator<Item = &'static str> {
        self.bits().map(|bit| {
            Self::NAMES
                .get(usize::from(bit))
                .copied()
                .unwrap_or("unknown")
        })
    }

    fn read(reader: &mut Reader<'_>) -> Result<Option<Self>> {
        let Some(element) = reader.optional(tag::BIT_STRING)? else {
            return Ok(None);
        };
        let (unused, octets) = element.bits()?;
        // A named bit list ends with the last bit that is set (X.690, 11.2.2).
        if octets
            .last()
            .is_some_and(|last| last.trailing_zeros() != u32::from(unused))
        {
            let rule = Rule::NotDistinguished("a named bit list that ends with zeros");
            return Err(Error::new(element.offset, rule));
        }
        if octets.len() > 4 {
            let rule = Rule::Limit {
                what: "octets of failInfo",
                limit: 4,
            };
            return Err(Error::new(element.offset, rule));
        }
        let mut set = 0;
        for (index, octet) in octets.iter().enumerate() {
            set |= u32::from(octet.reverse_bits()) << (8 * index);
        }
        Ok(Some(Self(set)))
    }

    fn write(self, writer: &mut Writer) {
        let used = 32 - self.0.leading_zeros() as usize;
        let octets: Vec<u8> = self.0.to_le_bytes()[..used.div_ceil(8)]
            .iter()
            .map(|o| o.reverse_bits())
            .collect();
        let unused = (octets.len() * 8 - used) as u8;
        let mut value = alloc::vec![unused];
        value.extend_from_slice(&octets);
        writer.element(tag::BIT_STRING, &value);
    }
}

impl fmt::Debug for FailInfo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.names()).finish()
    }
}

/// Text for people (RFC 9810, 5.1.1): one or more UTF8Strings.
///
/// ```text
/// PKIFreeText ::= SEQUENCE SIZE (1..MAX) OF UTF8String
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PkiFreeText<'a>(pub Vec<Cow<'a, str>>);

impl<'a> PkiFreeText<'a> {
    /// A text of one string.
    pub fn new(text: impl Into<Cow<'a, str>>) -> Self {
        Self(alloc::vec![text.into()])
    }

    pub(crate) fn read(reader: &mut Reader<'a>) -> Result<Self> {
        let mut contents = reader.sequence()?;
        let texts = contents.collect(|reader| {
            Ok(Cow::Borrowed(
                reader.element(tag::UTF8_STRING, "a UTF8String")?.utf8()?,
            ))
        })?;
        if texts.is_empty() {
            return contents.fault(Rule::Content("a PKIFreeText without a text"));
        }
        Ok(Self(texts))
    }

    pub(crate) fn write(&self, writer: &mut Writer) {
        writer.sequence(|w| self.0.iter().for_each(|text| w.utf8(text)));
    }

    /// The strings, separated by semicolons.
    pub fn joined(&self) -> String {
        self.0.join("; ")
    }
}

/// Status, text and reasons (RFC 9810, 5.2.3).
///
/// ```text
/// PKIStatusInfo ::= SEQUENCE {
///     status        PKIStatus,
///     statusString  PKIFreeText     OPTIONAL,
///     failInfo      PKIFailureInfo  OPTIONAL }
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PkiStatusInfo<'a> {
    /// The outcome.
    pub status: PkiStatus,
    /// The peer's words.
    pub status_string: Option<PkiFreeText<'a>>,
    /// The reasons of a refusal.
    pub fail_info: Option<FailInfo>,
}

impl<'a> PkiStatusInfo<'a> {
    /// A bare status.
    pub fn new(status: PkiStatus) -> Self {
        Self {
            status,
            status_string: None,
            fail_info: None,
        }
    }

    /// A rejection with its reasons and a text.
    pub fn rejection(fail_info: FailInfo, text: impl Into<Cow<'a, str>>) -> Self {
        Self {
            status: PkiStatus::Rejection,
            status_string: Some(PkiFreeText::new(text)),
            fail_info: Some(fail_info),
        }
    }

    pub(crate) fn read(reader: &mut Reader<'a>) -> Result<Self> {
        let mut contents = reader.sequence()?;
        let status = PkiStatus::read(&mut contents).at("status")?;
        let status_string = match contents.peek() {
            Some(tag::SEQUENCE) => Some(PkiFreeText::read(&mut contents).at("statusString")?),
            _ => None,
        };
        let fail_info = FailInfo::read(&mut contents).at("failInfo")?;
        contents.finish()?;
        Ok(Self {
            status,
            status_string,
            fail_info,
        })
    }

    pub(crate) fn write(&self, writer: &mut Writer) {
        writer.sequence(|w| {
            w.integer(self.status as i64);
            if let Some(text) = &self.status_string {
                text.write(w);
            }
            if let Some(fail_info) = self.fail_info {
                fail_info.write(w);
            }
        });
    }

    /// One line for people, in the peer's words.
    pub fn summary(&self) -> String {
        let mut line = String::from(self.status.name());
        if let Some(fail_info) = self.fail_info.filter(|set| !set.is_empty()) {
            line.push_str(", ");
            line.push_str(&fail_info.names().collect::<Vec<_>>().join(" "));
        }
        if let Some(text) = &self.status_string {
            line.push_str(": ");
            line.push_str(&text.joined());
        }
        line
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fail_info_is_a_list_of_bit_numbers() {
        // Encoded by hand after X.690, 11.2.2.
        let vectors: [(FailInfo, &[u8]); 5] = [
            (FailInfo::BAD_ALG, &[0x03, 0x02, 0x07, 0x80]),
            (FailInfo::BAD_REQUEST, &[0x03, 0x02, 0x05, 0x20]),
            (
                FailInfo::TRANSACTION_ID_IN_USE,
                &[0x03, 0x04, 0x02, 0x00, 0x00, 0x04],
            ),
            (
                FailInfo::DUPLICATE_CERT_REQ,
                &[0x03, 0x05, 0x05, 0x00, 0x00, 0x00, 0x20],
            ),
            (
                FailInfo::BAD_ALG.union(FailInfo::BAD_POP),
                &[0x03, 0x03, 0x06, 0x80, 0x40],
            ),
        ];
        for (set, der) in vectors {
            assert_eq!(Writer::encode(|w| set.write(w)), der, "{set:?}");
            assert_eq!(FailInfo::read(&mut Reader::new(der)).unwrap(), Some(set));
        }
        assert_eq!(
            FailInfo::read(&mut Reader::new(&[3, 1, 0])).unwrap(),
            Some(FailInfo(0))
        );
    }
}
