//! Names on the command line: URLs, distinguished names, subject alternative names.
//! The component reads them for good; what cannot be meant is refused here, before
//! a store is opened.

use std::net::IpAddr;

/// Octets of a serial number (RFC 5280, 4.1.2.2).
const LONGEST_SERIAL: usize = 20;

/// A serial number, big-endian and unsigned.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Serial(pub Vec<u8>);

/// CRLReason (RFC 5280, 5.3.1); 7 is not used.
const REASONS: [(u8, &str); 10] = [
    (0, "unspecified"),
    (1, "keyCompromise"),
    (2, "cACompromise"),
    (3, "affiliationChanged"),
    (4, "superseded"),
    (5, "cessationOfOperation"),
    (6, "certificateHold"),
    (8, "removeFromCRL"),
    (9, "privilegeWithdrawn"),
    (10, "aACompromise"),
];

/// A CMP endpoint's URL. Without a scheme it is `http://`, as with openssl.
pub fn server_url(text: &str) -> Result<String, String> {
    let (scheme, rest) = match text.split_once("://") {
        Some((scheme, rest)) => (scheme.to_ascii_lowercase(), rest),
        None => ("http".into(), text),
    };
    if scheme != "http" && scheme != "https" {
        return Err(format!(
            "{scheme}:// is not spoken here; give an http:// or https:// URL"
        ));
    }
    if let Some(wrong) = rest.chars().find(|&c| c.is_whitespace() || c.is_control()) {
        return Err(format!("a URL cannot contain {wrong:?}"));
    }
    if rest.contains('#') {
        return Err("a fragment (#…) never reaches a server; leave it out".into());
    }
    let (authority, path) = match rest.find(['/', '?']) {
        Some(end) => rest.split_at(end),
        None => (rest, ""),
    };
    if authority.contains('@') {
        return Err("a user name in the URL is not supported; CMP authenticates messages".into());
    }
    check_authority(authority)?;
    let path = match path {
        "" => "/".into(),
        query if query.starts_with('?') => format!("/{query}"),
        path => path.to_string(),
    };
    Ok(format!("{scheme}://{authority}{path}"))
}

fn check_authority(authority: &str) -> Result<(), String> {
    let (host, port) = match authority.strip_prefix('[') {
        Some(rest) => {
            let (address, after) = rest
                .split_once(']')
                .ok_or("the IPv6 address is not closed by ]")?;
            address
                .parse::<std::net::Ipv6Addr>()
                .map_err(|_| format!("[{address}] is no IPv6 address"))?;
            let port = match after {
                "" => None,
                _ => Some(
                    after
                        .strip_prefix(':')
                        .ok_or("only a port may follow the ]")?,
                ),
            };
            (address, port)
        }
        None => match authority.split_once(':') {
            Some((host, port)) => (host, Some(port)),
            None => (authority, None),
        },
    };
    if host.is_empty() {
        return Err("the URL names no host".into());
    }
    match port.map(str::parse::<u16>) {
        None | Some(Ok(1..)) => Ok(()),
        Some(_) => Err(format!(
            "{:?} is no port (1 to 65535)",
            port.unwrap_or_default()
        )),
    }
}

/// Whether a URL from [`server_url`] leads to this machine only.
pub fn is_loopback(url: &str) -> bool {
    let authority = url.split_once("://").map_or(url, |(_, rest)| rest);
    let authority = authority.split(['/', '?']).next().unwrap_or_default();
    let host = match authority.strip_prefix('[') {
        Some(rest) => rest.split(']').next(),
        None => authority.split(':').next(),
    };
    let host = host.unwrap_or_default();
    host.eq_ignore_ascii_case("localhost")
        || host
            .parse::<IpAddr>()
            .is_ok_and(|address| address.is_loopback())
}

/// A positive serial number: decimal, or hexadecimal after `0x`.
pub fn serial_number(text: &str) -> Result<Serial, String> {
    let wrong = || format!("{text:?} is no serial number: decimal digits, or hexadecimal after 0x");
    let (digits, radix) = match text.strip_prefix("0x").or(text.strip_prefix("0X")) {
        Some(digits) => (digits, 16),
        None => (text, 10),
    };
    if digits.is_empty() {
        return Err(wrong());
    }
    let mut octets: Vec<u8> = Vec::new();
    for digit in digits.chars() {
        let mut carry = digit.to_digit(radix).ok_or_else(wrong)?;
        for octet in octets.iter_mut().rev() {
            let sum = u32::from(*octet) * radix + carry;
            *octet = (sum & 0xff) as u8;
            carry = sum >> 8;
        }
        if carry > 0 || octets.is_empty() {
            octets.insert(0, carry as u8);
        }
        if octets.len() > LONGEST_SERIAL {
            return Err(format!(
                "a serial number has at most {LONGEST_SERIAL} octets (RFC 5280, 4.1.2.2)"
            ));
        }
    }
    Ok(Serial(octets))
}

/// A CRLReason by its name in RFC 5280, 5.3.1, or by number.
pub fn revocation_reason(text: &str) -> Result<u8, String> {
    REASONS
        .iter()
        .find(|(number, name)| name.eq_ignore_ascii_case(text) || number.to_string() == text)
        .map(|&(number, _)| number)
        .ok_or_else(|| {
            let known: Vec<&str> = REASONS.iter().map(|&(_, name)| name).collect();
            format!("is none of {}", known.join(", "))
        })
}

/// A distinguished name as `/CN=…/O=…` or `CN=…,O=…`. `/` alone is the empty name.
pub fn distinguished_name(text: &str) -> Result<String, String> {
    let (separator, names) = match text.strip_prefix('/') {
        Some("") => return Ok(String::new()),
        Some(names) => ('/', names),
        None => (',', text),
    };
    for part in split_unescaped(names, separator) {
        let part = part.trim_start();
        let Some((name, value)) = part.split_once('=') else {
            return Err(format!(
                "{part:?} is no TYPE=value; write a name as /CN=…/O=…"
            ));
        };
        let plain = |c: char| c.is_ascii_alphanumeric() || c == '.' || c == '-';
        if name.is_empty() || !name.chars().all(plain) {
            return Err(format!(
                "{name:?} is no attribute type such as CN or 2.5.4.3"
            ));
        }
        if value.is_empty() {
            return Err(format!("{name} has no value"));
        }
    }
    Ok(text.into())
}

/// Splits at a separator that no backslash precedes.
fn split_unescaped(text: &str, separator: char) -> Vec<&str> {
    let (mut parts, mut start, mut escaped) = (Vec::new(), 0, false);
    for (index, c) in text.char_indices() {
        if c == separator && !escaped {
            parts.push(&text[start..index]);
            start = index + c.len_utf8();
        }
        escaped = c == '\\' && !escaped;
    }
    parts.push(&text[start..]);
    parts
}

/// A list of subject alternative names, separated by commas or blanks. A kind in
/// front (`DNS:`, `IP:`, `URI:`, `email:`) is optional, as with openssl.
pub fn alternative_names(text: &str) -> Result<Vec<String>, String> {
    text.split(|c: char| c == ',' || c.is_whitespace())
        .filter(|name| !name.is_empty())
        .map(alternative_name)
        .collect()
}

/// One subject alternative name, as [`alternative_names`] reads it, that has only the letters of
/// its kind: it comes from somebody else than the operator.
pub fn one_alternative_name(text: &str) -> Result<String, String> {
    if text.is_empty() {
        return Err("it is empty".to_owned());
    }
    let name = alternative_name(text)?;
    let (kind, value) = name.split_once(':').unwrap_or(("", &name));
    let allowed = match kind {
        "DNS" => "-._*",
        "email" => "@-._+",
        "URI" => ":/?#[]@!$&()*+,;=%-._~",
        _ => ":.",
    };
    match value
        .chars()
        .find(|&c| !c.is_ascii_alphanumeric() && !allowed.contains(c))
    {
        Some(wrong) => Err(format!(
            "{wrong:?} does not stand in a name of the kind {kind}"
        )),
        None => Ok(name),
    }
}

fn alternative_name(name: &str) -> Result<String, String> {
    const KINDS: [&str; 4] = ["DNS", "IP", "URI", "email"];
    if let Some((kind, value)) = name.split_once(':')
        && let Some(kind) = KINDS.iter().find(|known| known.eq_ignore_ascii_case(kind))
    {
        if value.is_empty() {
            return Err(format!("{kind}: names nothing"));
        }
        if *kind == "IP" && value.parse::<IpAddr>().is_err() {
            return Err(format!("{value:?} is no IP address"));
        }
        return Ok(format!("{kind}:{value}"));
    }
    let kind = if name.parse::<IpAddr>().is_ok() {
        "IP"
    } else if name.contains("://") {
        "URI"
    } else if name.contains('@') {
        "email"
    } else if name.contains(':') {
        "URI"
    } else {
        "DNS"
    };
    Ok(format!("{kind}:{name}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn serial_numbers_are_decimal_or_hexadecimal() {
        for (text, octets) in [
            ("0", &[0][..]),
            ("255", &[0xff]),
            ("256", &[1, 0]),
            ("0x0100", &[1, 0]),
            ("0xDEADbeef", &[0xde, 0xad, 0xbe, 0xef]),
            // 2^64, by hand.
            ("18446744073709551616", &[1, 0, 0, 0, 0, 0, 0, 0, 0]),
        ] {
            assert_eq!(serial_number(text).unwrap().0, octets, "{text}");
        }
        for text in ["", "0x", "12a", "-1", "0xg"] {
            assert!(serial_number(text).is_err(), "{text}");
        }
        assert!(serial_number(&format!("0x{}", "ff".repeat(21))).is_err());
    }

    #[test]
    fn reasons_are_names_or_numbers_and_seven_is_none() {
        assert_eq!(revocation_reason("keyCompromise"), Ok(1));
        assert_eq!(revocation_reason("KEYCOMPROMISE"), Ok(1));
        assert_eq!(revocation_reason("8"), Ok(8));
        assert!(revocation_reason("7").is_err());
        assert!(
            revocation_reason("hunger")
                .unwrap_err()
                .contains("superseded")
        );
    }

    #[test]
    fn urls_get_scheme_and_path() {
        let cases = [
            ("127.0.0.1:8080", "http://127.0.0.1:8080/"),
            ("ca.example/pkix/", "http://ca.example/pkix/"),
            ("http://127.0.0.1:1/pkix/", "http://127.0.0.1:1/pkix/"),
            ("HTTPS://[::1]:8443/x?y=1", "https://[::1]:8443/x?y=1"),
            ("https://ca.example?p", "https://ca.example/?p"),
        ];
        for (text, url) in cases {
            assert_eq!(server_url(text).as_deref(), Ok(url));
        }
    }

    #[test]
    fn impossible_urls_are_refused() {
        for text in [
            "",
            "http://",
            "ftp://ca",
            "coap://ca",
            "http://:80",
            "http://ca:0",
            "http://ca:65536",
            "http://ca:",
            "http://ca:http",
            "http://[::1",
            "http://[ca]/",
            "http://[::1]x",
            "http://u:p@ca/",
            "http://ca/#x",
            "http://ca/a b",
            "http://ca/\n",
        ] {
            assert!(server_url(text).is_err(), "{text:?}");
        }
    }

    #[test]
    fn loopback_is_recognised() {
        for url in [
            "http://127.0.0.1:8080/",
            "http://127.9.9.9/",
            "https://[::1]:1/x",
            "http://localhost/",
        ] {
            assert!(is_loopback(url), "{url}");
        }
        for url in [
            "http://ca.example/127.0.0.1",
            "http://10.0.0.1/",
            "http://localhost.example/",
        ] {
            assert!(!is_loopback(url), "{url}");
        }
    }

    #[test]
    fn names_in_both_spellings() {
        for text in [
            "/CN=a",
            "/CN=a/O=b c",
            "CN=a,O=b",
            "CN=a, 2.5.4.10=b",
            r"/CN=a\/b/O=c",
        ] {
            assert_eq!(distinguished_name(text).as_deref(), Ok(text));
        }
        assert_eq!(distinguished_name("/").as_deref(), Ok(""));
        for text in [
            "",
            "CN",
            "/CN",
            "/CN=",
            "/=a",
            "/CN=a//O=b",
            "/C N=a",
            "CN=a,,O=b",
            "/CN=a/",
        ] {
            assert!(distinguished_name(text).is_err(), "{text:?}");
        }
    }

    #[test]
    fn a_name_of_a_stranger_has_the_letters_of_its_kind() {
        for (text, name) in [
            ("*.a.example", "DNS:*.a.example"),
            ("_sip._tcp.a", "DNS:_sip._tcp.a"),
            ("::1", "IP:::1"),
            ("a.b+c@d.example", "email:a.b+c@d.example"),
            ("https://a/?b=c%20d", "URI:https://a/?b=c%20d"),
        ] {
            assert_eq!(one_alternative_name(text).as_deref(), Ok(name));
        }
        for text in [
            "'; DROP TABLE a; --",
            "a b",
            "DNS:a\"",
            "a,b",
            "a@b'",
            "URI:x y",
            "",
        ] {
            assert!(one_alternative_name(text).is_err(), "{text:?}");
        }
    }

    #[test]
    fn alternative_names_get_their_kind() {
        assert_eq!(
            alternative_names("a.example, 10.0.0.1 ::1,me@a.example https://a/ urn:x:y").unwrap(),
            [
                "DNS:a.example",
                "IP:10.0.0.1",
                "IP:::1",
                "email:me@a.example",
                "URI:https://a/",
                "URI:urn:x:y"
            ]
        );
        assert_eq!(
            alternative_names("dns:a,ip:::1,EMAIL:a@b,uri:x").unwrap(),
            ["DNS:a", "IP:::1", "email:a@b", "URI:x"]
        );
        assert!(alternative_names("").unwrap().is_empty());
        for text in ["IP:a", "DNS:", "a,IP:1.2.3"] {
            assert!(alternative_names(text).is_err(), "{text:?}");
        }
    }
}
