//! Distinguished names and general names (RFC 5280, 4.1.2.4 and 4.2.1.6).

use alloc::borrow::Cow;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt::{self, Write as _};

use crate::der::{Element, Reader, Writer, tag};
use crate::error::{Context, Result, Rule};
use crate::limits;
use crate::oid::{self, Oid};

/// A distinguished name, kept as its DER.
#[derive(Clone, PartialEq, Eq)]
pub struct Name<'a>(Cow<'a, [u8]>);

/// One attribute of a name.
struct Attribute<'a> {
    oid: Oid<'a>,
    value: Element<'a>,
}

impl Name<'static> {
    /// The NULL-DN, for an unknown name (RFC 9810, 5.1.1).
    pub const NULL: Self = Name(Cow::Borrowed(&[0x30, 0x00]));

    /// Reads `/CN=…/O=…` as `openssl cmp` takes it, or `CN=…,O=…`. The order is kept:
    /// the first attribute comes first in the message. `+` joins attributes into one
    /// RDN; a backslash takes the next character as it is.
    pub fn parse(text: &str) -> Result<Self, NameError> {
        let (separator, body) = match text.strip_prefix('/') {
            Some(body) => ('/', body),
            None => (',', text),
        };
        if body.trim().is_empty() {
            return if separator == '/' {
                Ok(Self::NULL)
            } else {
                Err(NameError::Empty)
            };
        }
        let mut rdns: Vec<Vec<Vec<u8>>> = Vec::new();
        let mut joined = false;
        for (part, ending) in split_escaped(body, separator) {
            if part.is_empty() && ending.is_none() && separator == '/' {
                break;
            }
            let attribute = parse_attribute(&part)?;
            match rdns.last_mut().filter(|_| joined) {
                Some(rdn) => rdn.push(attribute),
                None => rdns.push(alloc::vec![attribute]),
            }
            joined = ending == Some('+');
        }
        if rdns.len() > limits::RDNS {
            return Err(NameError::TooLong);
        }
        let der = Writer::encode(|w| {
            w.sequence(|w| {
                for mut rdn in rdns {
                    // SET OF in DER is sorted (X.690, 11.6).
                    rdn.sort();
                    w.nested(tag::SET, |w| {
                        rdn.iter().for_each(|attribute| w.raw(attribute))
                    });
                }
            });
        });
        Ok(Name(Cow::Owned(der)))
    }

    /// A name of a single commonName.
    pub fn common_name(text: &str) -> Self {
        let der = Writer::encode(|w| {
            w.sequence(|w| w.nested(tag::SET, |w| w.raw(&attribute(oid::AT_COMMON_NAME, text))));
        });
        Name(Cow::Owned(der))
    }
}

impl<'a> Name<'a> {
    /// Reads a Name and checks its structure.
    pub(crate) fn read(reader: &mut Reader<'a>) -> Result<Self> {
        let element = reader.element(tag::SEQUENCE, "a Name")?;
        check(&element)?;
        Ok(Self(Cow::Borrowed(element.raw)))
    }

    /// Reads one Name and nothing after it.
    pub fn from_der(der: &'a [u8]) -> Result<Self> {
        let mut reader = Reader::new(der);
        let name = Self::read(&mut reader)?;
        reader.finish()?;
        Ok(name)
    }

    /// The DER of the name.
    pub fn der(&self) -> &[u8] {
        &self.0
    }

    /// Whether there is no attribute in it.
    pub fn is_null(&self) -> bool {
        *self.0 == [0x30, 0x00]
    }

    /// A name that owns its octets.
    pub fn into_owned(self) -> Name<'static> {
        Name(Cow::Owned(self.0.into_owned()))
    }

    /// Whether both are the same name after RFC 5280, 7.1: attribute by attribute, with
    /// case and runs of spaces folded in strings.
    pub fn matches(&self, other: &Name<'_>) -> bool {
        self.0 == other.0 || same_rdns(self.rdns().iter(), other.rdns().iter())
    }

    /// Whether both are the same name when one is read backwards. Some CAs answer with
    /// the RDNs of the request in reverse order.
    pub fn matches_reversed(&self, other: &Name<'_>) -> bool {
        same_rdns(self.rdns().iter(), other.rdns().iter().rev())
    }

    /// Whether `base` is this name or an ancestor of it in the directory.
    pub(crate) fn is_within(&self, base: &Name<'_>) -> bool {
        let (own, base) = (self.rdns(), base.rdns());
        own.len() >= base.len() && same_rdns(own[..base.len()].iter(), base.iter())
    }

    /// The attributes, by RDN. The structure was checked when the name was read.
    fn rdns(&self) -> Vec<Vec<Attribute<'_>>> {
        let mut rdns = Vec::new();
        let Ok(mut sequence) = Reader::judged(&self.0).sequence() else {
            return rdns;
        };
        while let Ok(set) = sequence.any() {
            let mut contents = set.contents();
            let mut rdn = Vec::new();
            while let Ok(attribute) = read_attribute(&mut contents) {
                rdn.push(attribute);
            }
            rdns.push(rdn);
        }
        rdns
    }
}

impl fmt::Display for Name<'_> {
    /// As `CN=…,O=…` in the order of the message; control characters are escaped.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, rdn) in self.rdns().iter().enumerate() {
            for (inner, attribute) in rdn.iter().enumerate() {
                match (index, inner) {
                    (0, 0) => {}
                    (_, 0) => f.write_char(',')?,
                    _ => f.write_char('+')?,
                }
                match attribute.oid.name() {
                    Some(name) => f.write_str(name)?,
                    None => write!(f, "{}", attribute.oid)?,
                }
                f.write_char('=')?;
                write_escaped(f, &text_of(&attribute.value))?;
            }
        }
        Ok(())
    }
}

impl fmt::Debug for Name<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Name({self})")
    }
}

/// Why a name cannot be read from text.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum NameError {
    /// There is nothing in it.
    Empty,
    /// More RDNs than [`limits::RDNS`].
    TooLong,
    /// A part without `=`.
    NoEquals(String),
    /// An attribute type that is neither known nor dotted.
    UnknownAttribute(String),
}

impl fmt::Display for NameError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Empty => f.write_str("the name is empty (write / for the NULL-DN)"),
            Self::TooLong => write!(f, "the name has more than {} parts", limits::RDNS),
            Self::NoEquals(part) => {
                write!(
                    f,
                    "'{part}' is not of the form TYPE=VALUE, as in /CN=device/O=Example"
                )
            }
            Self::UnknownAttribute(name) => {
                write!(
                    f,
                    "'{name}' is no known attribute type (CN, O, OU, C, L, ST, DC, UID, …)"
                )
            }
        }
    }
}

impl core::error::Error for NameError {}

/// A general name (RFC 5280, 4.2.1.6).
///
/// ```text
/// GeneralName ::= CHOICE {
///     otherName [0], rfc822Name [1] IA5String, dNSName [2] IA5String, x400Address [3],
///     directoryName [4] Name, ediPartyName [5], uniformResourceIdentifier [6] IA5String,
///     iPAddress [7] OCTET STRING, registeredID [8] OBJECT IDENTIFIER }
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum GeneralName<'a> {
    /// A distinguished name, the kind that CMP uses for people and CAs.
    Directory(Name<'a>),
    /// Any other kind, as one DER element.
    Other(&'a [u8]),
}

impl<'a> GeneralName<'a> {
    pub(crate) fn read(reader: &mut Reader<'a>) -> Result<Self> {
        match reader.peek() {
            Some(0xa4) => {
                let name = reader.explicit(4, Name::read)?;
                Ok(Self::Directory(name.unwrap_or(Name::NULL)))
            }
            Some(found @ (0xa0..=0xa5 | 0x80..=0x88)) => {
                let element = reader.any()?;
                let text = matches!(found, 0x81 | 0x82 | 0x86);
                if text && !element.value.is_ascii() {
                    return reader.fault(Rule::Content("an IA5String beyond ASCII"));
                }
                if found == 0xa0 {
                    // SEQUENCE { type-id OBJECT IDENTIFIER, value [0] } under an IMPLICIT tag:
                    // without a look inside, messageTime passes for a name.
                    let mut fields = element.contents();
                    fields.oid().at("otherName")?;
                    if fields.explicit(0, Reader::any).at("otherName")?.is_none() {
                        return fields.fault(Rule::Missing("a value")).at("otherName");
                    }
                    fields.finish().at("otherName")?;
                }
                Ok(Self::Other(element.raw))
            }
            Some(found) => reader.fault(Rule::UnexpectedTag {
                expected: "a GeneralName",
                found,
            }),
            None => reader.fault(Rule::Missing("a GeneralName")),
        }
    }

    pub(crate) fn write(&self, writer: &mut Writer) {
        match self {
            Self::Directory(name) => writer.explicit(4, |w| w.raw(name.der())),
            Self::Other(der) => writer.raw(der),
        }
    }

    /// The name's DER, without the tag of a directoryName.
    pub(crate) fn der(&self) -> &[u8] {
        match self {
            Self::Directory(name) => name.der(),
            Self::Other(der) => der,
        }
    }

    /// The distinguished name, if it is one.
    pub fn directory(&self) -> Option<&Name<'a>> {
        match self {
            Self::Directory(name) => Some(name),
            Self::Other(_) => None,
        }
    }

    /// Whether it is the NULL-DN, which says that the name is not known.
    pub fn is_null(&self) -> bool {
        self.directory().is_some_and(Name::is_null)
    }
}

impl fmt::Display for GeneralName<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let der = match self {
            Self::Directory(name) => return fmt::Display::fmt(name, f),
            Self::Other(der) => der,
        };
        let Ok(element) = Reader::judged(der).any() else {
            return Ok(());
        };
        match element.tag {
            0x81 | 0x82 | 0x86 => {
                f.write_str(match element.tag {
                    0x81 => "email:",
                    0x82 => "DNS:",
                    _ => "URI:",
                })?;
                match element.value.len() {
                    ..=limits::NAME_TEXT => {
                        write_escaped(f, &String::from_utf8_lossy(element.value))
                    }
                    _ => f.write_str(&hexadecimal(&element)),
                }
            }
            0x87 => match <[u8; 4]>::try_from(element.value) {
                Ok(four) => write!(f, "IP:{}", core::net::Ipv4Addr::from(four)),
                Err(_) => match <[u8; 16]>::try_from(element.value) {
                    Ok(sixteen) => write!(f, "IP:{}", core::net::Ipv6Addr::from(sixteen)),
                    Err(_) => f.write_str("IP:malformed"),
                },
            },
            0x88 => match Oid::from_content(element.value) {
                Some(oid) => write!(f, "RID:{oid}"),
                None => f.write_str("RID:malformed"),
            },
            0xa0 => f.write_str("otherName"),
            0xa3 => f.write_str("x400Address"),
            _ => f.write_str("ediPartyName"),
        }
    }
}

/// A name for the eyes of people, cut off where it is longer than they would read.
pub(crate) fn shortened(name: &impl fmt::Display) -> String {
    /// Takes so many characters and no more.
    struct Cut(String, usize);

    impl fmt::Write for Cut {
        fn write_str(&mut self, text: &str) -> fmt::Result {
            for c in text.chars() {
                self.1 = self.1.checked_sub(1).ok_or(fmt::Error)?;
                self.0.push(c);
            }
            Ok(())
        }
    }

    let mut cut = Cut(String::new(), limits::SHOWN);
    if write!(cut, "{name}").is_err() {
        cut.0.push('…');
    }
    cut.0
}

fn check(name: &Element<'_>) -> Result<()> {
    let mut sequence = name.contents();
    let mut rdns = 0;
    while !sequence.is_empty() {
        let mut rdn = sequence
            .element(tag::SET, "a RelativeDistinguishedName")?
            .contents();
        if rdn.is_empty() {
            return rdn.fault(Rule::Content("an RDN without an attribute"));
        }
        rdns += 1;
        if rdns > limits::RDNS {
            return rdn.fault(Rule::Limit {
                what: "RDNs",
                limit: limits::RDNS,
            });
        }
        let mut attributes = 0;
        while !rdn.is_empty() {
            attributes += 1;
            if attributes > limits::RDN_ATTRIBUTES {
                return rdn.fault(Rule::Limit {
                    what: "attributes of an RDN",
                    limit: limits::RDN_ATTRIBUTES,
                });
            }
            read_attribute(&mut rdn)?;
        }
    }
    Ok(())
}

fn read_attribute<'a>(reader: &mut Reader<'a>) -> Result<Attribute<'a>> {
    let mut contents = reader.sequence()?;
    let oid = contents.oid()?;
    let value = contents.any()?;
    contents.finish()?;
    Ok(Attribute { oid, value })
}

fn same_rdns<'x>(
    mut left: impl Iterator<Item = &'x Vec<Attribute<'x>>>,
    mut right: impl Iterator<Item = &'x Vec<Attribute<'x>>>,
) -> bool {
    loop {
        match (left.next(), right.next()) {
            (None, None) => return true,
            (Some(left), Some(right)) => {
                // An attribute that occurs twice on one side must not hide one on the other.
                let within = |inner: &[Attribute<'_>], outer: &[Attribute<'_>]| {
                    let in_outer = |i| outer.iter().any(|o| same_attribute(i, o));
                    inner.iter().all(in_outer)
                };
                let same = left.len() == right.len() && within(left, right) && within(right, left);
                if !same {
                    return false;
                }
            }
            _ => return false,
        }
    }
}

fn same_attribute(left: &Attribute<'_>, right: &Attribute<'_>) -> bool {
    left.oid == right.oid
        && (left.value.raw == right.value.raw || same_text(&left.value, &right.value))
}

/// Whether both are the same text, folded. What cannot be read as text is not: two strings
/// that are broken in the same places may still differ there.
fn same_text(left: &Element<'_>, right: &Element<'_>) -> bool {
    match (exact_text(left), exact_text(right)) {
        (Some(left), Some(right)) => folded(&left).eq(folded(&right)),
        _ => false,
    }
}

/// The text of a string of reasonable length, with nothing replaced in it.
fn exact_text<'a>(value: &Element<'a>) -> Option<Cow<'a, str>> {
    if !is_text(value.tag) || value.value.len() > limits::NAME_TEXT {
        return None;
    }
    if value.tag != tag::BMP_STRING {
        return core::str::from_utf8(value.value).ok().map(Cow::Borrowed);
    }
    let (pairs, rest) = value.value.as_chunks::<2>();
    let units = pairs.iter().map(|pair| u16::from_be_bytes(*pair));
    let text: Result<String, _> = char::decode_utf16(units).collect();
    text.ok().filter(|_| rest.is_empty()).map(Cow::Owned)
}

fn is_text(tag: u8) -> bool {
    matches!(
        tag,
        tag::UTF8_STRING
            | tag::PRINTABLE_STRING
            | tag::TELETEX_STRING
            | tag::IA5_STRING
            | tag::BMP_STRING
    )
}

fn text_of<'a>(value: &Element<'a>) -> Cow<'a, str> {
    if value.value.len() > limits::NAME_TEXT {
        return hexadecimal(value);
    }
    if value.tag == tag::BMP_STRING {
        let units = value
            .value
            .chunks_exact(2)
            .map(|pair| u16::from_be_bytes([pair[0], pair[1]]));
        return char::decode_utf16(units)
            .map(|c| c.unwrap_or(char::REPLACEMENT_CHARACTER))
            .collect();
    }
    if is_text(value.tag) {
        return String::from_utf8_lossy(value.value);
    }
    hexadecimal(value)
}

/// RFC 4514, 2.4: what is no string, or none to be read, is shown as the hexadecimal of its
/// encoding.
fn hexadecimal<'a>(value: &Element<'a>) -> Cow<'a, str> {
    let mut hex = String::from("#");
    push_hex(&mut hex, value.raw);
    Cow::Owned(hex)
}

/// Adds octets in lowercase hexadecimal. Digit by digit, because there can be millions.
pub(crate) fn push_hex(text: &mut String, octets: &[u8]) {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    text.reserve(octets.len() * 2);
    for octet in octets {
        text.push(char::from(DIGITS[usize::from(octet >> 4)]));
        text.push(char::from(DIGITS[usize::from(octet & 0x0f)]));
    }
}

/// In lower case, with single spaces, character by character: a comparison ends at the first
/// difference.
fn folded(text: &str) -> impl Iterator<Item = char> {
    let words = text.split_whitespace().enumerate();
    words
        .flat_map(|(index, word)| {
            let space = (index > 0).then_some(' ');
            space.into_iter().chain(word.chars())
        })
        .flat_map(char::to_lowercase)
        // A sigma at the end of a word is one in lower case.
        .map(|c| if c == 'ς' { 'σ' } else { c })
}

fn write_escaped(f: &mut fmt::Formatter<'_>, text: &str) -> fmt::Result {
    for c in text.chars() {
        match c {
            ',' | '+' | '\\' => write!(f, "\\{c}")?,
            c if c.is_control() => c.escape_unicode().try_for_each(|c| f.write_char(c))?,
            c => f.write_char(c)?,
        }
    }
    Ok(())
}

/// Splits at unescaped separators and pluses; each part comes with what ended it.
fn split_escaped(text: &str, separator: char) -> Vec<(String, Option<char>)> {
    let mut parts = Vec::new();
    let mut part = String::new();
    let mut characters = text.chars();
    while let Some(c) = characters.next() {
        match c {
            '\\' => part.extend(characters.next()),
            '+' => parts.push((core::mem::take(&mut part), Some('+'))),
            c if c == separator => parts.push((core::mem::take(&mut part), Some(separator))),
            c => part.push(c),
        }
    }
    parts.push((part, None));
    parts
}

fn parse_attribute(part: &str) -> Result<Vec<u8>, NameError> {
    let Some((kind, value)) = part.split_once('=') else {
        return Err(NameError::NoEquals(part.into()));
    };
    let kind = kind.trim();
    let known = ATTRIBUTES
        .iter()
        .find(|(name, _)| name.eq_ignore_ascii_case(kind));
    match known {
        Some(&(_, oid)) => Ok(attribute(oid, value.trim())),
        None => match dotted(kind) {
            Some(content) => {
                let oid = Oid::from_content(&content);
                oid.map(|oid| attribute(oid, value.trim()))
                    .ok_or_else(|| NameError::UnknownAttribute(kind.into()))
            }
            None => Err(NameError::UnknownAttribute(kind.into())),
        },
    }
}

/// An AttributeTypeAndValue. RFC 5280 wants UTF8String, but PrintableString for the
/// country and serial number and IA5String for mail addresses and domain components.
fn attribute(oid: Oid<'_>, value: &str) -> Vec<u8> {
    let string = match oid {
        oid::AT_COUNTRY | oid::AT_SERIAL_NUMBER | oid::AT_DN_QUALIFIER => tag::PRINTABLE_STRING,
        oid::AT_EMAIL | oid::AT_DOMAIN_COMPONENT => tag::IA5_STRING,
        _ => tag::UTF8_STRING,
    };
    Writer::encode(|w| {
        w.sequence(|w| {
            w.oid(oid);
            w.element(string, value.as_bytes());
        });
    })
}

fn dotted(text: &str) -> Option<Vec<u8>> {
    let arcs: Vec<u64> = text
        .split('.')
        .map(|arc| arc.parse().ok())
        .collect::<Option<_>>()?;
    let [first, second, rest @ ..] = arcs.as_slice() else {
        return None;
    };
    if *first > 2 || (*first < 2 && *second >= 40) {
        return None;
    }
    let mut content = Vec::new();
    for arc in core::iter::once(first * 40 + second.checked_add(0)?).chain(rest.iter().copied()) {
        let septets = (64 - arc.leading_zeros()).div_ceil(7).max(1);
        for index in (0..septets).rev() {
            let more = if index > 0 { 0x80 } else { 0 };
            content.push(more | ((arc >> (7 * index)) & 0x7f) as u8);
        }
    }
    Some(content)
}

/// The short and long names under which people write attribute types.
const ATTRIBUTES: &[(&str, Oid<'static>)] = &[
    ("CN", oid::AT_COMMON_NAME),
    ("commonName", oid::AT_COMMON_NAME),
    ("SN", oid::AT_SURNAME),
    ("surname", oid::AT_SURNAME),
    ("serialNumber", oid::AT_SERIAL_NUMBER),
    ("C", oid::AT_COUNTRY),
    ("countryName", oid::AT_COUNTRY),
    ("L", oid::AT_LOCALITY),
    ("localityName", oid::AT_LOCALITY),
    ("ST", oid::AT_STATE),
    ("S", oid::AT_STATE),
    ("stateOrProvinceName", oid::AT_STATE),
    ("street", oid::AT_STREET),
    ("O", oid::AT_ORGANIZATION),
    ("organizationName", oid::AT_ORGANIZATION),
    ("OU", oid::AT_ORGANIZATIONAL_UNIT),
    ("organizationalUnitName", oid::AT_ORGANIZATIONAL_UNIT),
    ("title", oid::AT_TITLE),
    ("GN", oid::AT_GIVEN_NAME),
    ("givenName", oid::AT_GIVEN_NAME),
    ("initials", oid::AT_INITIALS),
    ("dnQualifier", oid::AT_DN_QUALIFIER),
    ("pseudonym", oid::AT_PSEUDONYM),
    ("organizationIdentifier", oid::AT_ORGANIZATION_IDENTIFIER),
    ("UID", oid::AT_USER_ID),
    ("userId", oid::AT_USER_ID),
    ("DC", oid::AT_DOMAIN_COMPONENT),
    ("domainComponent", oid::AT_DOMAIN_COMPONENT),
    ("emailAddress", oid::AT_EMAIL),
    ("E", oid::AT_EMAIL),
];

#[cfg(test)]
mod tests {
    use alloc::string::ToString;

    use super::*;

    fn hex(octets: &[u8]) -> String {
        octets.iter().map(|o| alloc::format!("{o:02x}")).collect()
    }

    #[test]
    fn parsed_names_are_those_of_openssl() {
        // `openssl req -new -subj … -utf8` with string_mask utf8only, subject by asn1parse.
        assert_eq!(
            hex(Name::parse("/CN=dev/O=Ex Co").unwrap().der()),
            "301e310c300a06035504030c03646576310e300c060355040a0c05457820436f"
        );
        assert_eq!(
            hex(Name::parse("/C=DE").unwrap().der()),
            "300d310b3009060355040613024445"
        );
        assert_eq!(
            Name::parse("CN=dev,O=Ex Co").unwrap(),
            Name::parse("/CN=dev/O=Ex Co").unwrap()
        );
        assert_eq!(Name::parse("/").unwrap(), Name::NULL);
    }

    #[test]
    fn text_comes_back() {
        for text in [
            "CN=dev,O=Ex Co",
            "CN=a+UID=b,DC=x",
            "CN=a\\,b",
            "2.5.4.99=x",
        ] {
            assert_eq!(Name::parse(text).unwrap().to_string(), text);
        }
        assert_eq!(Name::parse("/CN=a\\/b").unwrap().to_string(), "CN=a/b");
        assert_eq!(
            Name::parse("/CN=\u{1b}[31m").unwrap().to_string(),
            "CN=\\u{1b}[31m"
        );
    }

    #[test]
    fn malformed_text_is_named() {
        assert_eq!(Name::parse(""), Err(NameError::Empty));
        assert_eq!(Name::parse("/dev"), Err(NameError::NoEquals("dev".into())));
        assert_eq!(
            Name::parse("/XX=1"),
            Err(NameError::UnknownAttribute("XX".into()))
        );
    }

    #[test]
    fn comparison_folds_case_spaces_and_string_types() {
        let utf8 = Name::parse("/CN=My  Device").unwrap();
        let mut printable = Name::parse("/CN=my device").unwrap().der().to_vec();
        let at = printable
            .iter()
            .rposition(|&o| o == tag::UTF8_STRING)
            .unwrap();
        printable[at] = tag::PRINTABLE_STRING;
        assert!(utf8.matches(&Name::from_der(&printable).unwrap()));
        assert!(!utf8.matches(&Name::parse("/CN=mydevice").unwrap()));
        assert!(!utf8.matches(&Name::parse("/O=My Device").unwrap()));
        let (ab, ba) = (
            Name::parse("/CN=a/O=b").unwrap(),
            Name::parse("/O=B/CN=A").unwrap(),
        );
        assert!(!ab.matches(&ba));
        assert!(ab.matches_reversed(&ba));
        assert!(ab.is_within(&Name::parse("/CN=a").unwrap()));
        assert!(!ab.is_within(&Name::parse("/O=b").unwrap()));
        let (upper, lower) = (Name::parse("/O=ΟΔΟΣ"), Name::parse("/O=οδος"));
        assert!(upper.unwrap().matches(&lower.unwrap()));
    }

    fn of_one_rdn(attributes: &[&[u8]]) -> Name<'static> {
        let der =
            Writer::encode(|w| w.sequence(|w| w.nested(tag::SET, |w| w.raw(&attributes.concat()))));
        Name::from_der(&der).unwrap().into_owned()
    }

    /// Neither is UTF-8, and what replaces the broken octets is the same in both.
    #[test]
    fn broken_text_is_compared_octet_by_octet() {
        let latin1 = |octets: &[u8]| {
            of_one_rdn(&[&Writer::encode(|w| {
                w.sequence(|w| {
                    w.oid(oid::AT_COMMON_NAME);
                    w.element(tag::TELETEX_STRING, octets);
                });
            })])
        };
        let (umlaut, accent) = (latin1(b"M\xfcller"), latin1(b"M\xe9ller"));
        assert!(umlaut.matches(&umlaut.clone()));
        assert!(!umlaut.matches(&accent));
    }

    #[test]
    fn a_repeated_attribute_stands_for_no_other() {
        let [a, b] = ["a", "b"].map(|text| attribute(oid::AT_COMMON_NAME, text));
        let (twice, both) = (of_one_rdn(&[&a, &a]), of_one_rdn(&[&a, &b]));
        assert!(!twice.matches(&both));
        assert!(!both.matches(&twice));
    }
}
