//! Certificates and requests from files, PEM or DER, and PEM for files.

use std::path::Path;

use base64ct::{Base64, Encoding};

use super::InputError;
use super::der::{self, Kind};
use super::files;
use super::text::printable;

const BEGIN: &str = "-----BEGIN ";
const END: &str = "-----END ";
const DASHES: &str = "-----";
/// RFC 7468, 2: a generator wraps at exactly 64 characters.
const LINE: usize = 64;

/// One encapsulated value (RFC 7468).
#[derive(Debug, PartialEq, Eq)]
pub struct Block {
    /// Between BEGIN and the dashes.
    pub label: String,
    /// What the base64 says.
    pub der: Vec<u8>,
    /// Where it begins, counted from 1.
    pub line: usize,
}

/// Why a text is no PEM, and on which line, counted from 1.
#[derive(Debug, PartialEq, Eq)]
pub struct PemError {
    /// The line.
    pub line: usize,
    /// What is wrong on it.
    pub rule: String,
}

/// Whether this is meant to be PEM, intact or not.
pub fn looks_like_pem(input: &[u8]) -> bool {
    input
        .windows(BEGIN.len())
        .any(|window| window == BEGIN.as_bytes())
}

/// All blocks of a text. What stands between them is explanation and skipped.
pub fn blocks(input: &[u8]) -> Result<Vec<Block>, PemError> {
    let mut blocks = Vec::new();
    let mut open: Option<(String, usize, String)> = None;
    for (index, line) in input.split(|&byte| byte == b'\n').enumerate() {
        let number = index + 1;
        let fault = |rule: String| PemError { line: number, rule };
        let text = String::from_utf8_lossy(line);
        let text = text.trim();
        match &mut open {
            None => {
                if let Some(label) = enclosed(text, BEGIN) {
                    open = Some((label.into(), number, String::new()));
                } else if text.starts_with(BEGIN) {
                    return Err(fault("the BEGIN line does not end in five dashes".into()));
                }
            }
            Some((label, line, body)) if text.starts_with(END) => {
                if enclosed(text, END) != Some(label) {
                    return Err(fault(format!("the END line does not close {label:?}")));
                }
                let der = Base64::decode_vec(body).map_err(|_| {
                    fault(format!(
                        "the base64 of the block that begins on line {line} is cut off"
                    ))
                })?;
                blocks.push(Block {
                    label: std::mem::take(label),
                    der,
                    line: *line,
                });
                open = None;
            }
            Some((label, ..)) if text.starts_with(BEGIN) => {
                return Err(fault(format!("a block begins before {label:?} has ended")));
            }
            Some((_, _, body)) => {
                if text.contains(':') {
                    return Err(fault("the block carries headers: it is encrypted".into()));
                }
                if let Some(wrong) = text.chars().find(|&c| !is_base64(c)) {
                    return Err(fault(format!("{wrong:?} is no base64")));
                }
                body.push_str(text);
            }
        }
    }
    match open {
        Some((label, line, _)) => Err(PemError {
            line,
            rule: format!("the END line of {label:?} is missing"),
        }),
        None => Ok(blocks),
    }
}

/// The DER of a public key in a file, PEM or DER; none where it holds something else.
pub fn public_key(input: &[u8]) -> Option<Vec<u8>> {
    if der::kind(input) == Kind::PublicKey {
        return Some(input.to_vec());
    }
    let first = blocks(input).ok()?.into_iter().next()?;
    (der::kind(&first.der) == Kind::PublicKey).then_some(first.der)
}

fn enclosed<'a>(line: &'a str, start: &str) -> Option<&'a str> {
    line.strip_prefix(start)?.strip_suffix(DASHES)
}

fn is_base64(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '+' | '/' | '=')
}

/// One value as PEM.
pub fn encode(label: &str, der: &[u8]) -> String {
    let body = Base64::encode_string(der);
    let mut out = format!("{BEGIN}{label}{DASHES}\n");
    let mut rest = body.as_str();
    while !rest.is_empty() {
        let (line, after) = rest.split_at(rest.len().min(LINE));
        out.push_str(line);
        out.push('\n');
        rest = after;
    }
    out.push_str(&format!("{END}{label}{DASHES}\n"));
    out
}

/// Certificates as one PEM text.
pub fn encode_certificates(certificates: &[Vec<u8>]) -> String {
    certificates
        .iter()
        .map(|der| encode("CERTIFICATE", der))
        .collect()
}

/// The certificates of a file: one as DER, or one or more as PEM. Other PEM blocks
/// beside them are skipped, as openssl does.
pub fn certificates(option: &str, path: &Path) -> Result<Vec<Vec<u8>>, InputError> {
    values(
        option,
        path,
        Kind::Certificate,
        &["CERTIFICATE", "X509 CERTIFICATE"],
    )
}

/// The certificates of several files.
pub fn all_certificates<P: AsRef<Path>>(
    option: &str,
    paths: &[P],
) -> Result<Vec<Vec<u8>>, InputError> {
    let mut all = Vec::new();
    for path in paths {
        all.extend(certificates(option, path.as_ref())?);
    }
    Ok(all)
}

/// The one PKCS #10 request of a file.
pub fn request(option: &str, path: &Path) -> Result<Vec<u8>, InputError> {
    let labels = ["CERTIFICATE REQUEST", "NEW CERTIFICATE REQUEST"];
    let mut requests = values(option, path, Kind::Request, &labels)?;
    match (requests.pop(), requests.len()) {
        (Some(request), 0) => Ok(request),
        (_, more) => Err(InputError::given(format!(
            "{option} {}: holds {} requests where one is expected",
            path.display(),
            more + 1
        ))),
    }
}

/// The one CRL of a file. Whether it is one is for the component to say.
pub fn crl(option: &str, path: &Path) -> Result<Vec<u8>, InputError> {
    let input = files::read(option, path)?;
    if !looks_like_pem(&input) {
        return Ok(input);
    }
    let fault = |what: String| InputError::given(format!("{option} {}{what}", path.display()));
    let blocks = blocks(&input).map_err(|error| {
        fault(format!(
            ", line {}: the PEM cannot be read: {}",
            error.line, error.rule
        ))
    })?;
    let mut crls = blocks.into_iter().filter(|block| block.label == "X509 CRL");
    match (crls.next(), crls.next()) {
        (Some(crl), None) => Ok(crl.der),
        (None, _) => Err(fault(": holds no CRL".into())),
        (Some(_), Some(_)) => Err(fault(": holds several CRLs where one is expected".into())),
    }
}

fn values(
    option: &str,
    path: &Path,
    want: Kind,
    labels: &[&str],
) -> Result<Vec<Vec<u8>>, InputError> {
    let input = files::read(option, path)?;
    let fault = |what: String| InputError::given(format!("{option} {}{what}", path.display()));
    if !looks_like_pem(&input) {
        return match der::kind(&input) {
            kind if kind == want => Ok(vec![input]),
            Kind::Broken => Err(fault(format!(
                ": is neither PEM nor one DER value, where {} is expected",
                want.name()
            ))),
            kind => Err(fault(format!(
                ": holds {} where {} is expected",
                kind.name(),
                want.name()
            ))),
        };
    }
    let blocks = blocks(&input).map_err(|error| {
        fault(format!(
            ", line {}: the PEM cannot be read: {}",
            error.line, error.rule
        ))
    })?;
    let mut found = Vec::new();
    for block in blocks
        .iter()
        .filter(|block| labels.contains(&block.label.as_str()))
    {
        match der::kind(&block.der) {
            kind if kind == want => found.push(block.der.clone()),
            kind => {
                return Err(fault(format!(
                    ", line {}: the block {:?} holds {}",
                    block.line,
                    block.label,
                    kind.name()
                )));
            }
        }
    }
    match (found.is_empty(), blocks.first()) {
        (true, Some(other)) => Err(fault(format!(
            ", line {}: holds {} where {} is expected",
            other.line,
            printable(&other.label),
            want.name()
        ))),
        (true, None) => Err(fault(": holds no PEM block".into())),
        (false, _) => Ok(found),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::input::Fault;

    fn error(text: &str) -> (usize, String) {
        let error = blocks(text.as_bytes()).unwrap_err();
        (error.line, error.rule)
    }

    /// RFC 4648, 10: the base64 of "foobar" is Zm9vYmFy.
    #[test]
    fn blocks_are_read_with_their_lines() {
        let text = "Subject: x\r\n-----BEGIN A B-----\r\nZm9v\r\nYmFy\r\n-----END A B-----\r\n\
                    text\n-----BEGIN C-----\nZg==\n-----END C-----";
        let expected = [
            Block {
                label: "A B".into(),
                der: b"foobar".to_vec(),
                line: 2,
            },
            Block {
                label: "C".into(),
                der: b"f".to_vec(),
                line: 7,
            },
        ];
        assert_eq!(blocks(text.as_bytes()).unwrap(), expected);
    }

    #[test]
    fn faults_name_their_line() {
        assert_eq!(error("x\n-----BEGIN A-----\nZm9v\n").0, 2);
        assert_eq!(
            error("-----BEGIN A-----\nZm9v\nZm*v\n-----END A-----\n").0,
            3
        );
        assert_eq!(error("-----BEGIN A-----\nZm9v\n-----END B-----\n").0, 3);
        assert_eq!(error("-----BEGIN A-----\nZm9vY\n-----END A-----\n").0, 3);
        assert_eq!(error("-----BEGIN A----\n").0, 1);
        assert_eq!(error("-----BEGIN A-----\n-----BEGIN A-----\n").0, 2);
        let (line, rule) = error("-----BEGIN A-----\nProc-Type: 4,ENCRYPTED\n");
        assert_eq!((line, rule.contains("encrypted")), (2, true));
    }

    #[test]
    fn encoding_wraps_and_reads_back() {
        let der: Vec<u8> = (0..=200).collect();
        let text = encode("X", &der);
        assert!(text.lines().all(|line| line.len() <= 64), "{text}");
        assert_eq!(text.lines().nth(1).unwrap().len(), 64);
        assert_eq!(blocks(text.as_bytes()).unwrap()[0].der, der);
        assert_eq!(encode("X", &der[..48]).lines().count(), 3);
    }

    #[test]
    fn the_wrong_thing_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("root.pem");
        let cases: [(&[u8], &str); 5] = [
            (
                b"-----BEGIN PRIVATE KEY-----\nZg==\n-----END PRIVATE KEY-----\n",
                "holds PRIVATE KEY",
            ),
            (
                b"-----BEGIN CERTIFICATE-----\nZg==\n-----END CERTIFICATE-----\n",
                "no complete DER",
            ),
            (b"<html>", "neither PEM nor one DER"),
            (
                &[0x30, 0x07, 0x30, 0x00, 0x03, 0x03, 0x00, 0x01, 0x02],
                "holds a public key",
            ),
            (
                b"-----BEGIN CERTIFICATE-----\nZg==\n",
                "line 1: the PEM cannot be read",
            ),
        ];
        for (content, words) in cases {
            std::fs::write(&path, content).unwrap();
            let stop = certificates("--trusted", &path).unwrap_err();
            assert_eq!(stop.fault, Fault::Given);
            assert!(stop.message.contains(words), "{stop}");
            assert!(stop.message.contains("root.pem"), "{stop}");
        }
    }
}
