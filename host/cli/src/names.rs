//! Names on the command line: URLs, distinguished names, subject alternative names.
//! The component reads them for good; what cannot be meant is refused here, before
//! a store is opened.

use std::net::IpAddr;

/// A CMP endpoint's URL. Without a scheme it is `http://`, as with openssl.
pub(crate) fn server_url(text: &str) -> Result<String, String> {
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
pub(crate) fn is_loopback(url: &str) -> bool {
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

/// A distinguished name as `/CN=…/O=…` or `CN=…,O=…`. `/` alone is the empty name.
pub(crate) fn distinguished_name(text: &str) -> Result<String, String> {
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
pub(crate) fn alternative_names(text: &str) -> Result<Vec<String>, String> {
    text.split(|c: char| c == ',' || c.is_whitespace())
        .filter(|name| !name.is_empty())
        .map(alternative_name)
        .collect()
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
