//! subjectAltName, made from text.

use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

use crate::der::Writer;

/// A subjectAltName made from text (RFC 5280, 4.2.1.6).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SubjectAltName(Vec<u8>);

impl SubjectAltName {
    /// From `DNS:…`, `IP:…`, `URI:…` and `email:…`; a bare word is a DNS name or an
    /// address.
    pub fn parse<T: AsRef<str>>(names: &[T]) -> Result<Self, SubjectAltNameError> {
        let parsed = names
            .iter()
            .map(|name| parse_san(name.as_ref()))
            .collect::<Result<Vec<_>, _>>()?;
        Ok(Self(Writer::encode(|w| {
            w.sequence(|w| {
                parsed
                    .iter()
                    .for_each(|(tag, value)| w.element(*tag, value))
            });
        })))
    }

    /// The extension value.
    pub fn der(&self) -> &[u8] {
        &self.0
    }
}

/// A name that cannot stand in a subjectAltName.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SubjectAltNameError(String);

impl fmt::Display for SubjectAltNameError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "'{}' is none of DNS:NAME, IP:ADDRESS, URI:URI, email:ADDRESS in ASCII",
            self.0
        )
    }
}

impl core::error::Error for SubjectAltNameError {}

fn parse_san(text: &str) -> Result<(u8, Vec<u8>), SubjectAltNameError> {
    let error = || SubjectAltNameError(text.into());
    let (kind, value) = match text.trim().split_once(':') {
        Some((kind @ ("DNS" | "dns" | "IP" | "ip" | "URI" | "uri" | "email"), value)) => {
            (kind, value)
        }
        _ if text.parse::<core::net::IpAddr>().is_ok() => ("IP", text.trim()),
        _ => ("DNS", text.trim()),
    };
    if value.is_empty() || !value.is_ascii() || (kind == "DNS" && value.contains([':', ' ', '/'])) {
        return Err(error());
    }
    match kind {
        "IP" | "ip" => match value.parse().map_err(|_| error())? {
            core::net::IpAddr::V4(address) => Ok((0x87, address.octets().to_vec())),
            core::net::IpAddr::V6(address) => Ok((0x87, address.octets().to_vec())),
        },
        "URI" | "uri" => Ok((0x86, value.as_bytes().to_vec())),
        "email" => Ok((0x81, value.as_bytes().to_vec())),
        _ => Ok((0x82, value.as_bytes().to_vec())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn subject_alt_names() {
        let san = SubjectAltName::parse(&["DNS:a.example", "IP:127.0.0.1", "::1"]).unwrap();
        // Put together by hand: dNSName [2], iPAddress [7] of 4 and of 16 octets.
        let mut expected = alloc::vec![0x30, 0x23, 0x82, 0x09];
        expected.extend_from_slice(b"a.example");
        expected.extend_from_slice(&[0x87, 0x04, 127, 0, 0, 1, 0x87, 0x10]);
        expected.extend_from_slice(&[0; 15]);
        expected.push(1);
        assert_eq!(san.der(), expected);
        for bad in ["IP:x", "", "DNS:", "DNS:ä.example", "foo:bar"] {
            assert!(SubjectAltName::parse(&[bad]).is_err(), "{bad}");
        }
    }
}
