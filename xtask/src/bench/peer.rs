//! The other side of the comparison: a throw-away PKI and OpenSSL's mock CMP server.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use anyhow::{Context, Result, bail};

use crate::shell::capture;

/// The CA, as both clients name it.
pub(super) const CA: &str = "/CN=bench-ca";

/// The subject of the one certificate that the server has to give.
pub(super) const SUBJECT: &str = "/CN=bench";

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

/// Keys and certificates in one folder: root, server, and new, the one that is given away.
pub(super) struct Pki {
    folder: PathBuf,
}

impl Pki {
    /// Makes the folder anew.
    pub(super) fn make(folder: &Path) -> Result<Self> {
        if folder.exists() {
            fs::remove_dir_all(folder)
                .with_context(|| format!("cannot empty {}", folder.display()))?;
        }
        fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
        let config = folder.join("pki.cnf");
        fs::write(&config, CONFIG).with_context(|| format!("cannot write {}", config.display()))?;
        let pki = Self {
            folder: folder.to_owned(),
        };
        pki.key("root")?;
        pki.openssl(
            "req -new -x509 -config pki.cnf -extensions ca -key root.key -subj /CN=bench-root \
             -days 2 -out root.crt",
        )?;
        pki.certificate("server", CA)?;
        pki.certificate("new", SUBJECT)?;
        Ok(pki)
    }

    fn key(&self, name: &str) -> Result<()> {
        self.openssl(&format!(
            "genpkey -algorithm EC -pkeyopt ec_paramgen_curve:P-256 -out {name}.key"
        ))
    }

    fn certificate(&self, name: &str, subject: &str) -> Result<()> {
        self.key(name)?;
        self.openssl(&format!(
            "req -new -config pki.cnf -key {name}.key -subj {subject} -out {name}.csr"
        ))?;
        self.openssl(&format!(
            "x509 -req -in {name}.csr -CA root.crt -CAkey root.key -CAcreateserial -days 1 \
             -extfile pki.cnf -extensions entity -out {name}.crt"
        ))
    }

    /// No argument has a space in it.
    fn openssl(&self, line: &str) -> Result<()> {
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
    /// Waits until the server listens, at a port of its own choice.
    pub(super) fn start(pki: &Pki) -> Result<Self> {
        let mut process = openssl(&pki.folder)
            .args([
                "cmp",
                "-config",
                "",
                "-port",
                "0",
                "-srv_ref",
                REF,
                "-srv_secret",
                SECRET,
            ])
            .args(["-srv_cert", "server.crt", "-srv_key", "server.key"])
            .args(["-srv_trusted", "root.crt", "-rsp_cert", "new.crt"])
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
