//! What is to be shown, in whatever form people have it: DER, PEM, base64 or hexadecimal.

use std::io::Read;
use std::path::Path;

use base64ct::{Base64, Encoding};

use crate::exit::Stop;
use crate::files::{self, MAX_INPUT};
use crate::pem;
use crate::text::printable;

/// One structure to be shown.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Input {
    /// The file, and in a file of several PEM blocks the line and label of the block.
    pub(super) name: String,
    pub(super) der: Vec<u8>,
}

/// Whether this names the standard input.
pub(super) fn is_stdin(file: &Path) -> bool {
    file.as_os_str() == "-"
}

/// Reads all structures of a file.
pub(super) fn read(file: &Path) -> Result<Vec<Input>, Stop> {
    let (name, input) = if is_stdin(file) {
        ("the standard input".to_string(), read_stdin()?)
    } else {
        (file.display().to_string(), files::read("FILE", file)?)
    };
    decode(&name, input).map_err(|what| Stop::usage(format!("{name}: {what}")))
}

fn read_stdin() -> Result<Vec<u8>, Stop> {
    let mut input = Vec::new();
    std::io::stdin()
        .lock()
        .take(MAX_INPUT + 1)
        .read_to_end(&mut input)
        .map_err(|error| Stop::host(format!("stdin: cannot be read ({error})")))?;
    if input.is_empty() {
        return Err(Stop::usage("stdin: is empty"));
    }
    if input.len() as u64 > MAX_INPUT {
        return Err(Stop::usage(format!(
            "stdin: gives more than {MAX_INPUT} bytes"
        )));
    }
    Ok(input)
}

/// Undoes the text form, if it is one. What is no text form that abide knows goes
/// to the component as it is, which says where it stops being what it seems.
fn decode(name: &str, input: Vec<u8>) -> Result<Vec<Input>, String> {
    let alone = |der| {
        vec![Input {
            name: name.to_string(),
            der,
        }]
    };
    if pem::looks_like_pem(&input) {
        let mut blocks = pem::blocks(&input).map_err(|error| {
            format!(
                "line {}: the PEM cannot be read: {}",
                error.line, error.rule
            )
        })?;
        if blocks.len() == 1 {
            return Ok(alone(std::mem::take(&mut blocks[0].der)));
        }
        let inputs = blocks.into_iter().map(|block| Input {
            name: format!("{name}, line {}, {}", block.line, printable(&block.label)),
            der: block.der,
        });
        return Ok(inputs.collect());
    }
    let text: String = match std::str::from_utf8(&input) {
        Ok(text) => text.split_ascii_whitespace().collect(),
        Err(_) => return Ok(alone(input)),
    };
    let digits = text.replace(':', "");
    let digits = digits.strip_prefix("0x").unwrap_or(&digits);
    if let Some(bytes) = from_hex(digits) {
        return Ok(alone(bytes));
    }
    Ok(alone(
        Base64::decode_vec(&text)
            .ok()
            .filter(|bytes| !bytes.is_empty())
            .unwrap_or(input),
    ))
}

fn from_hex(digits: &str) -> Option<Vec<u8>> {
    if digits.is_empty() || !digits.len().is_multiple_of(2) {
        return None;
    }
    let nibble = |digit: u8| char::from(digit).to_digit(16);
    digits
        .as_bytes()
        .chunks_exact(2)
        .map(|pair| u8::try_from(nibble(pair[0])? << 4 | nibble(pair[1])?).ok())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(input: &[u8]) -> Vec<u8> {
        let mut inputs = decode("f", input.to_vec()).unwrap();
        assert_eq!(inputs.len(), 1);
        inputs.remove(0).der
    }

    /// RFC 4648, 10: the base64 of "foobar" is Zm9vYmFy.
    #[test]
    fn every_form_gives_the_bytes() {
        for text in [
            "Zm9v\nYmFy\n",
            "666f6f626172",
            "66:6F:6f:62:61:72\n",
            "0x666f 6f62 6172",
            "-----BEGIN CMP-----\nZm9vYmFy\n-----END CMP-----\n",
        ] {
            assert_eq!(one(text.as_bytes()), b"foobar", "{text}");
        }
    }

    #[test]
    fn each_block_has_its_place() {
        let text = "-----BEGIN A-----\nZm9v\n-----END A-----\nand\n\
                    -----BEGIN B-----\nYmFy\n-----END B-----\n";
        let inputs = decode("f", text.into()).unwrap();
        let found: Vec<_> = inputs.iter().map(|i| (&i.name[..], &i.der[..])).collect();
        assert_eq!(
            found,
            [("f, line 1, A", &b"foo"[..]), ("f, line 5, B", &b"bar"[..])]
        );
    }

    #[test]
    fn what_is_no_text_form_passes_unchanged() {
        for input in [&b"<html>hello</html>"[..], &[0x30, 0x03, 0x02, 0x01, 0xff]] {
            assert_eq!(one(input), input);
        }
    }

    #[test]
    fn broken_pem_is_said_to_be_broken() {
        let error = decode("f", b"-----BEGIN X-----\nZm9v\n".to_vec()).unwrap_err();
        assert!(error.contains("line 1"), "{error}");
    }
}
