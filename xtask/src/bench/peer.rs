//! The other side of the comparison: a throw-away PKI and OpenSSL's mock CMP server.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use anyhow::{Context, Result, bail};

use crate::shell::capture;

/// The CA, as both clients name it.
pub(super) const CA: &str = "/O=benchmarks/CN=bench-ca";

/// The subject of the one certificate that the server has to give.
pub(super) const SUBJECT: &str = "/O=benchmarks/CN=bench";

/// The name of the shared secret.
pub(super) const REF: &str = "bench";

/// The shared secret, as both clients and the server take it.
pub(super) const SECRET: &str = "pass:benchmark";

/// Says what a certificate is for, independent of the machine's own configuration.
const CONFIG: &str = "\
[req]
distinguished_name = names
[names]
[ca]
basicConstraints = critical, CA:true
keyUsage = critical, keyCertSign, cRLSign
subjectKeyIdentifier = hash
[entity]
basicConstraints = critical, CA:false
keyUsage = critical, digitalSignature
subjectKeyIdentifier = hash
authorityKeyIdentifier = keyid
";

/// What the keys of a PKI are.
#[derive(Clone, Copy)]
pub(super) enum KeyKind {
    P256,
    Rsa2048,
}

/// Keys and certificates in one folder. The key of `NAME.crt` is `NAME.key`.
pub(super) struct Pki {
    folder: PathBuf,
    kind: KeyKind,
}

impl Pki {
    /// Makes the folder anew, with a root that has issued `server` and `new`, the certificate that
    /// is given away.
    pub(super) fn make(folder: &Path) -> Result<Self> {
        let pki = Self::with_root(folder, KeyKind::P256)?;
        pki.certificate("server", CA, "root", "entity")?;
        pki.certificate("new", SUBJECT, "root", "entity")?;
        Ok(pki)
    }

    /// The same with a CA in between, `sub`: the usual length of a path.
    pub(super) fn with_sub(folder: &Path, kind: KeyKind) -> Result<Self> {
        let pki = Self::with_root(folder, kind)?;
        pki.certificate("sub", "/O=benchmarks/CN=bench-sub", "root", "ca")?;
        pki.certificate("server", CA, "sub", "entity")?;
        pki.certificate("new", SUBJECT, "sub", "entity")?;
        Ok(pki)
    }

    fn with_root(folder: &Path, kind: KeyKind) -> Result<Self> {
        if folder.exists() {
            fs::remove_dir_all(folder)
                .with_context(|| format!("cannot empty {}", folder.display()))?;
        }
        fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
        let config = folder.join("pki.cnf");
        fs::write(&config, CONFIG).with_context(|| format!("cannot write {}", config.display()))?;
        let pki = Self {
            folder: folder.to_owned(),
            kind,
        };
        pki.key("root")?;
        pki.openssl(
            "req -new -x509 -config pki.cnf -extensions ca -key root.key -subj /O=benchmarks/CN=bench-root \
             -days 2 -out root.crt",
        )?;
        Ok(pki)
    }

    pub(super) fn folder(&self) -> &Path {
        &self.folder
    }

    fn key(&self, name: &str) -> Result<()> {
        let options = match self.kind {
            KeyKind::P256 => "EC -pkeyopt ec_paramgen_curve:P-256",
            KeyKind::Rsa2048 => "RSA -pkeyopt rsa_keygen_bits:2048",
        };
        self.openssl(&format!("genpkey -algorithm {options} -out {name}.key"))
    }

    fn certificate(&self, name: &str, subject: &str, issuer: &str, extensions: &str) -> Result<()> {
        self.key(name)?;
        self.openssl(&format!(
            "req -new -config pki.cnf -key {name}.key -subj {subject} -out {name}.csr"
        ))?;
        self.openssl(&format!(
            "x509 -req -in {name}.csr -CA {issuer}.crt -CAkey {issuer}.key -CAcreateserial \
             -days 1 -extfile pki.cnf -extensions {extensions} -out {name}.crt"
        ))
    }

    /// No argument has a space in it.
    pub(super) fn openssl(&self, line: &str) -> Result<()> {
        capture(openssl(&self.folder).args(line.split_whitespace())).map(drop)
    }
}

/// OpenSSL in a folder.
pub(super) fn openssl(folder: &Path) -> Command {
    let mut command = Command::new("openssl");
    command.current_dir(folder);
    command
}

/// Gives away the same certificate to everybody, and ends with this value.
pub(super) struct MockServer {
    process: Child,
    port: u16,
}

impl MockServer {
    /// Knows the client by a secret or by its certificate, and answers in the same way.
    pub(super) fn start(pki: &Pki) -> Result<Self> {
        Self::with(
            pki,
            &format!(
                "-srv_ref {REF} -srv_secret {SECRET} -srv_cert server.crt -srv_key server.key"
            ),
        )
    }

    /// Waits until the server listens, at a port of its own choice. No option has a space in it.
    pub(super) fn with(pki: &Pki, options: &str) -> Result<Self> {
        let mut process = openssl(&pki.folder)
            .args(["cmp", "-config", "", "-port", "0"])
            .args(["-srv_trusted", "root.crt", "-rsp_cert", "new.crt"])
            .args(options.split_whitespace())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .context("cannot start the mock server of `openssl cmp`")?;
        let output = process.stdout.take();
        let mut server = Self { process, port: 0 };
        let mut lines = BufReader::new(output.context("the mock server has no output")?).lines();
        for line in lines.by_ref() {
            if let Some(port) = accepting(&line?) {
                server.port = port;
                break;
            }
        }
        if server.port == 0 {
            bail!("the mock server of `openssl cmp` ended before it listened");
        }
        // It writes a line for every request and would stand still with a full pipe.
        std::thread::spawn(move || lines.for_each(drop));
        Ok(server)
    }

    /// Where it listens.
    pub(super) fn port(&self) -> u16 {
        self.port
    }
}

impl Drop for MockServer {
    fn drop(&mut self) {
        // It may have ended by itself; then there is nothing to end.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// The port of a line such as `ACCEPT [::]:33267 PID=17921`.
fn accepting(line: &str) -> Option<u16> {
    line.strip_prefix("ACCEPT ")?
        .split_whitespace()
        .next()?
        .rsplit(':')
        .next()?
        .parse()
        .ok()
}

#[cfg(test)]
mod tests {
    use super::accepting;

    #[test]
    fn the_port_is_found_as_openssl_prints_it() {
        assert_eq!(accepting("ACCEPT [::]:33267 PID=17921"), Some(33267));
        assert_eq!(accepting("ACCEPT 0.0.0.0:20000"), Some(20000));
        assert_eq!(
            accepting("cmp: Received request, 1st line: POST /pkix/ HTTP/1.0"),
            None
        );
    }
}
