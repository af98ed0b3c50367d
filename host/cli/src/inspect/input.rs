//! One message in whatever form people have it: DER, PEM, base64 or hexadecimal.

use std::io::Read;
use std::path::Path;

use base64ct::{Base64, Encoding};

use crate::exit::Stop;
use crate::files::{self, MAX_INPUT};
use crate::pem;

/// Reads the message.
pub(crate) fn read(file: &Path, from_stdin: bool) -> Result<Vec<u8>, Stop> {
    let (name, input) = if from_stdin {
        ("stdin".to_string(), read_stdin()?)
    } else {
        (
            format!("FILE {}", file.display()),
            files::read("FILE", file)?,
        )
    };
    decode(input).map_err(|what| Stop::usage(format!("{name}: {what}")))
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
/// to the component as it is, which says where it stops being a message.
fn decode(input: Vec<u8>) -> Result<Vec<u8>, String> {
    if pem::looks_like_pem(&input) {
        let mut blocks = pem::blocks(&input).map_err(|error| {
            format!(
                "line {}: the PEM cannot be read: {}",
                error.line, error.rule
            )
        })?;
        return match (blocks.pop(), blocks.len()) {
            (Some(block), 0) => Ok(block.der),
            (_, others) => Err(format!(
                "holds {} PEM blocks, one is shown at a time",
                others + 1
            )),
        };
    }
    let text: String = match std::str::from_utf8(&input) {
        Ok(text) => text.split_ascii_whitespace().collect(),
        Err(_) => return Ok(input),
    };
    let digits = text.replace(':', "");
    let digits = digits.strip_prefix("0x").unwrap_or(&digits);
    if let Some(bytes) = from_hex(digits) {
        return Ok(bytes);
    }
    Ok(Base64::decode_vec(&text)
        .ok()
        .filter(|bytes| !bytes.is_empty())
        .unwrap_or(input))
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
            assert_eq!(decode(text.into()).unwrap(), b"foobar", "{text}");
        }
    }

    #[test]
    fn what_is_no_text_form_passes_unchanged() {
        for input in [&b"<html>hello</html>"[..], &[0x30, 0x03, 0x02, 0x01, 0xff]] {
            assert_eq!(decode(input.into()).unwrap(), input);
        }
    }

    #[test]
    fn broken_pem_is_said_to_be_broken() {
        assert!(
            decode(b"-----BEGIN X-----\nZm9v\n".to_vec())
                .unwrap_err()
                .contains("line 1")
        );
    }
}
