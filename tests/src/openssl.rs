//! The other implementation: `openssl cmp` as a server, as a client, and `openssl` as
//! the judge of certificates.

use std::ffi::OsStr;
use std::fs;
use std::path::Path;
use std::process::Command;

use crate::pki::{Pki, openssl};
use crate::process::{Ended, Process, succeed};

/// How the server of `openssl cmp` protects its answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protection {
    /// With the password-based MAC.
    Pbm,
    /// With a signature by `server.key`; `server.crt` and its issuer are sent along.
    Signature,
}

/// The mock server of `openssl cmp` on a free port. Whatever it is asked for, the
/// certificate it sends is `new.crt`.
#[derive(Debug)]
pub struct CmpServer {
    process: Process,
    url: String,
}

impl CmpServer {
    /// The name of the client that it knows.
    pub const REF: &str = "client";
    /// The secret it shares with the client.
    pub const SECRET: &str = "a secret of sufficient length";

    /// Starts a server with a PKI, which must have a certificate `new.crt`, and waits
    /// until it listens.
    pub fn start<W: AsRef<OsStr>>(pki: &Pki, protection: Protection, options: &[W]) -> Self {
        let mut command = cmp(pki);
        command
            .args(["-port", "0", "-srv_trusted", "root.crt"])
            .args(["-srv_untrusted", "sub.crt", "-rsp_cert", "new.crt"])
            .args(["-rsp_extracerts", "sub.crt", "-rsp_capubs", "root.crt"]);
        match protection {
            Protection::Pbm => command
                .args(["-srv_ref", "server", "-srv_secret"])
                .arg(format!("pass:{}", Self::SECRET)),
            Protection::Signature => {
                command.args(["-srv_cert", "server.crt", "-srv_key", "server.key"])
            }
        };
        let process = Process::start(command.args(options));
        let port: u16 = process.wait_for("port", |line| {
            let address = line.strip_prefix("ACCEPT ")?.split(' ').next()?;
            address.rsplit(':').next()?.parse().ok()
        });
        Self {
            process,
            url: format!("http://127.0.0.1:{port}/pkix/"),
        }
    }

    /// Where it is reached.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Waits until its log tells of something.
    ///
    /// # Panics
    ///
    /// When it never does.
    pub fn wait_for(&self, text: &str) {
        self.process
            .wait_for(text, |line| line.contains(text).then_some(()));
    }

    /// Its log so far.
    pub fn said(&self) -> String {
        self.process.said()
    }
}

/// Runs the client of `openssl cmp` to its end, in the folder of a PKI.
pub fn cmp_client<W: AsRef<OsStr>>(pki: &Pki, options: impl IntoIterator<Item = W>) -> Ended {
    Process::start(cmp(pki).arg("-batch").args(options)).end()
}

fn cmp(pki: &Pki) -> Command {
    let mut command = openssl();
    command
        .current_dir(pki.path(""))
        .args(["cmp", "-config", ""]);
    command
}

/// Lets `openssl verify` judge the first certificate of a chain file, with the others
/// as its helpers.
///
/// # Panics
///
/// When it does not lead to the root.
pub fn verify_chain(chain: &Path, root: &Path) {
    succeed(
        openssl()
            .args(["verify", "-x509_strict", "-CAfile"])
            .arg(root)
            .arg("-untrusted")
            .arg(chain)
            .arg(chain),
    );
}

/// The certificates of a PEM file as DER.
///
/// # Panics
///
/// When the file is not there.
pub fn certificates(path: &Path) -> Vec<Vec<u8>> {
    let pem = fs::read_to_string(path)
        .unwrap_or_else(|error| panic!("{} cannot be read: {error}", path.display()));
    let begin = "-----BEGIN CERTIFICATE-----";
    pem.match_indices(begin)
        .map(|(at, _)| crate::pem_to_der(&pem[at..]))
        .collect()
}

/// `openssl` in a folder of its own, for what tests do by the dozen.
#[derive(Debug)]
pub struct Tool(tempfile::TempDir);

impl Default for Tool {
    fn default() -> Self {
        Self::new()
    }
}

impl Tool {
    /// Makes the folder.
    ///
    /// # Panics
    ///
    /// When there is no room for one.
    pub fn new() -> Self {
        Self(tempfile::tempdir().expect("a folder for openssl"))
    }

    /// Runs a command line that needs no quoting, and insists that it succeeds.
    ///
    /// # Panics
    ///
    /// When it does not.
    pub fn run(&self, line: &str) {
        succeed(
            openssl()
                .args(line.split_whitespace())
                .current_dir(self.0.path()),
        );
    }

    /// A file of the folder.
    ///
    /// # Panics
    ///
    /// When there is none of that name.
    pub fn read(&self, name: &str) -> Vec<u8> {
        fs::read(self.0.path().join(name)).expect("a file of openssl")
    }

    /// Writes a file into the folder.
    ///
    /// # Panics
    ///
    /// When that fails.
    pub fn write(&self, name: &str, contents: &[u8]) {
        fs::write(self.0.path().join(name), contents).expect("a file for openssl");
    }
}
