//! The books of the CA: the file `books.jsonl` in its folder, one JSON object a line, to
//! which is only ever added.
//!
//! A line is on disk before the answer that it tells of leaves, so the books may know of
//! a certificate that the client did not get, but never the other way round. They are
//! also the CA's memory: with the answer in the line, issuing and remembering are one
//! write that happens or does not.

use std::fs::{File, OpenOptions};
use std::io::{BufRead, BufReader, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use base64ct::{Base64, Encoding};
use serde::{Deserialize, Serialize};

/// The name of the file in the CA's folder.
pub const FILE: &str = "books.jsonl";

/// One line of the books.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entry {
    /// When, after RFC 3339.
    pub time: String,
    /// The transactionID in hexadecimal; empty when the request had none.
    #[serde(rename = "transactionID")]
    pub transaction_id: String,
    /// What the transaction began with, such as `ir`. For a refusal, what was refused.
    pub operation: String,
    /// What happened.
    #[serde(flatten)]
    pub event: Event,
    /// What the CA itself needs to go on after a restart.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory: Option<Memory>,
}

/// What happened in a transaction.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(
    tag = "event",
    rename_all = "camelCase",
    rename_all_fields = "camelCase"
)]
#[non_exhaustive]
pub enum Event {
    /// The client was told to wait.
    Waiting {
        /// How many pollReq get a pollRep before the certificate comes.
        remaining: u32,
        /// The request, in base64.
        message: String,
    },
    /// The client asked and was told to ask again.
    Polled {
        /// How many pollReq still get a pollRep.
        remaining: u32,
        /// The time from which the next pollReq counts, in seconds since 1970.
        poll_at: i64,
    },
    /// A certificate was issued.
    Issued {
        /// Its subject.
        subject: String,
        /// Its serial number in hexadecimal.
        serial: String,
        /// Its SHA-256 in hexadecimal.
        sha256: String,
        /// Whether the confirmation was waived.
        implicit_confirm: bool,
    },
    /// The client confirmed the certificate.
    Confirmed,
    /// The client rejected the certificate.
    Rejected {
        /// In the client's words.
        reason: String,
    },
    /// A certificate was revoked.
    Revoked {
        /// Its serial number in hexadecimal.
        serial: String,
        /// CRLReason (RFC 5280, 5.3.1).
        reason: u8,
        /// Since when, in seconds since 1970.
        at: i64,
    },
    /// A certificate on hold is valid again.
    Revived {
        /// Its serial number in hexadecimal.
        serial: String,
    },
    /// A question was answered.
    Informed {
        /// Its infoType in dotted form.
        about: String,
    },
    /// A request was refused. Nothing changed.
    Refused {
        /// What the client was told.
        reason: String,
    },
}

/// What the CA remembers of a message and its answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Memory {
    /// Who the client is.
    pub client: String,
    /// The SHA-256 of the message, in hexadecimal.
    pub request: String,
    /// certReqId of the answer.
    pub cert_req_id: i64,
    /// The answer, in base64.
    pub answer: String,
}

/// The books of a folder, from the first line to the last. A folder without books has
/// nothing in them.
pub fn read(dir: &Path) -> anyhow::Result<Vec<Entry>> {
    let mut entries = Vec::new();
    let path = dir.join(FILE);
    if path.exists() {
        let mut file = File::open(&path).with_context(|| cannot(&path, "read"))?;
        scan(&path, &mut file, |entry| {
            entries.push(entry);
            Ok(())
        })?;
    }
    Ok(entries)
}

/// The books, open for writing by one CA.
#[derive(Debug)]
pub(crate) struct Books {
    file: File,
    path: PathBuf,
}

impl Books {
    /// Opens the books and hands every line to `each`.
    pub(crate) fn open(
        dir: &Path,
        each: impl FnMut(Entry) -> anyhow::Result<()>,
    ) -> anyhow::Result<Self> {
        let path = dir.join(FILE);
        let mut file = OpenOptions::new()
            .read(true)
            .append(true)
            .create(true)
            .open(&path)
            .with_context(|| cannot(&path, "opened"))?;
        if file.try_lock().is_err() {
            bail!(
                "{} is in use by another CA: stop it or name another folder",
                dir.display()
            );
        }
        let end = scan(&path, &mut file, each)?;
        // A crash may leave half a line, whose answer never left.
        file.set_len(end)
            .with_context(|| cannot(&path, "repaired"))?;
        Ok(Self { file, path })
    }

    /// Adds a line and sees it to the disk.
    pub(crate) fn add(&mut self, entry: &Entry) -> anyhow::Result<()> {
        let mut line = serde_json::to_vec(entry).context("a line for the books")?;
        line.push(b'\n');
        self.file
            .write_all(&line)
            .and_then(|()| self.file.sync_data())
            .with_context(|| cannot(&self.path, "written"))
    }
}

/// Reads whole lines and returns where the last one ends.
fn scan(
    path: &Path,
    file: &mut File,
    mut each: impl FnMut(Entry) -> anyhow::Result<()>,
) -> anyhow::Result<u64> {
    file.seek(SeekFrom::Start(0))
        .with_context(|| cannot(path, "read"))?;
    let mut reader = BufReader::new(file);
    let (mut end, mut number, mut line) = (0, 0, Vec::new());
    loop {
        line.clear();
        let length = reader
            .read_until(b'\n', &mut line)
            .with_context(|| cannot(path, "read"))?;
        if line.last() != Some(&b'\n') {
            return Ok(end);
        }
        end += length as u64;
        number += 1;
        serde_json::from_slice(&line)
            .map_err(anyhow::Error::from)
            .and_then(&mut each)
            .with_context(|| {
                format!("{}, line {number}, is not of a CA's books", path.display())
            })?;
    }
}

fn cannot(path: &Path, what: &str) -> String {
    format!("{} cannot be {what}", path.display())
}

pub(crate) fn hex(octets: &[u8]) -> String {
    octets.iter().map(|octet| format!("{octet:02x}")).collect()
}

pub(crate) fn from_hex(text: &str) -> anyhow::Result<Vec<u8>> {
    let digits: Option<Vec<u8>> = text
        .chars()
        .map(|digit| Some(digit.to_digit(16)? as u8))
        .collect();
    match digits {
        Some(digits) if digits.len().is_multiple_of(2) => Ok(digits
            .chunks_exact(2)
            .map(|pair| pair[0] << 4 | pair[1])
            .collect()),
        _ => bail!("damaged hexadecimal: {text:?}"),
    }
}

pub(crate) fn base64(octets: &[u8]) -> String {
    Base64::encode_string(octets)
}

pub(crate) fn from_base64(text: &str) -> anyhow::Result<Vec<u8>> {
    Base64::decode_vec(text).map_err(|error| anyhow::anyhow!("a damaged message: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(reason: &str) -> Entry {
        Entry {
            time: "2024-02-17T17:12:09Z".into(),
            transaction_id: "00".into(),
            operation: "ir".into(),
            event: Event::Refused {
                reason: reason.into(),
            },
            memory: None,
        }
    }

    #[test]
    fn half_a_line_is_forgotten_and_the_rest_is_kept() {
        let dir = tempfile::tempdir().unwrap();
        let mut books = Books::open(dir.path(), |_| Ok(())).unwrap();
        books.add(&entry("first")).unwrap();
        drop(books);
        let path = dir.path().join(FILE);
        let mut text = std::fs::read_to_string(&path).unwrap();
        text.push_str(r#"{"time":"2024-02-17T17:1"#);
        std::fs::write(&path, text).unwrap();

        let mut seen = Vec::new();
        let mut books = Books::open(dir.path(), |entry| {
            seen.push(entry);
            Ok(())
        })
        .unwrap();
        assert_eq!(seen, [entry("first")]);
        books.add(&entry("second")).unwrap();
        assert_eq!(read(dir.path()).unwrap(), [entry("first"), entry("second")]);
    }

    #[test]
    fn only_one_ca_writes() {
        let dir = tempfile::tempdir().unwrap();
        let books = Books::open(dir.path(), |_| Ok(())).unwrap();
        let error = Books::open(dir.path(), |_| Ok(())).unwrap_err();
        assert!(
            error.to_string().contains("in use by another CA"),
            "{error}"
        );
        drop(books);
        Books::open(dir.path(), |_| Ok(())).unwrap();
    }

    #[test]
    fn foreign_lines_are_named() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join(FILE), "{\"a\":1}\n").unwrap();
        let error = Books::open(dir.path(), |_| Ok(())).unwrap_err();
        assert!(error.to_string().contains("line 1"), "{error}");
    }
}
