//! A throw-away PKI, made by the `openssl` program: keys and certificates in a test
//! are another implementation's.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::process::succeed;

/// The two sections without which `openssl req` does nothing, and the extensions of
/// each kind of certificate.
const CONFIG: &str = "\
[req]
distinguished_name = none
[none]
[ca]
basicConstraints = critical, CA:TRUE
keyUsage = critical, keyCertSign, cRLSign
subjectKeyIdentifier = hash
authorityKeyIdentifier = keyid
[end]
basicConstraints = CA:FALSE
keyUsage = critical, digitalSignature
subjectKeyIdentifier = hash
authorityKeyIdentifier = keyid
";

/// The algorithms of keys, and with them of signatures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyKind {
    /// ECDSA on the curve P-256.
    P256,
    /// ECDSA on the curve P-384.
    P384,
    /// RSA with 2048 bits.
    Rsa2048,
}

impl KeyKind {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::P256, Self::P384, Self::Rsa2048];

    fn options(self) -> [&'static str; 4] {
        match self {
            Self::P256 => ["-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-256"],
            Self::P384 => ["-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-384"],
            Self::Rsa2048 => ["-algorithm", "RSA", "-pkeyopt", "rsa_keygen_bits:2048"],
        }
    }
}

/// A folder with `root.crt`, `sub.crt` issued by it, and issued by that `server.crt` and
/// `client.crt`; the key of `NAME.crt` is `NAME.key`.
#[derive(Debug)]
pub struct Pki {
    dir: PathBuf,
    kind: KeyKind,
}

impl Pki {
    /// Makes the PKI in the new folder `dir`, all its keys of one kind.
    ///
    /// # Panics
    ///
    /// When there is no `openssl`.
    pub fn new(dir: &Path, kind: KeyKind) -> Self {
        fs::create_dir_all(dir).expect("a folder for the PKI");
        fs::write(dir.join("openssl.cnf"), CONFIG).expect("a configuration for openssl");
        let pki = Self {
            dir: dir.to_owned(),
            kind,
        };
        pki.root("root", "/O=abide tests/CN=Root");
        let csr = pki.csr("sub", &pki.key("sub", kind), "/O=abide tests/CN=Sub CA");
        pki.sign("sub", &csr, "root", "ca");
        for (name, subject) in [
            ("server", "/O=abide tests/CN=Server"),
            ("client", "/O=abide tests/CN=Client"),
        ] {
            pki.issue_for_key(name, &pki.key(name, kind), subject);
        }
        pki
    }

    /// The path of a file in the PKI's folder, whether it is there or not.
    pub fn path(&self, file: &str) -> PathBuf {
        self.dir.join(file)
    }

    /// Makes a self-signed CA certificate `NAME.crt` with its key, related to nothing else.
    pub fn root(&self, name: &str, subject: &str) -> PathBuf {
        let key = self.key(name, self.kind);
        let certificate = self.path(&format!("{name}.crt"));
        succeed(
            self.openssl("req")
                .args(["-new", "-x509", "-days", "30", "-subj", subject])
                .args(["-extensions", "ca", "-config"])
                .arg(self.path("openssl.cnf"))
                .arg("-key")
                .arg(key)
                .arg("-out")
                .arg(&certificate),
        );
        certificate
    }

    /// Makes the private key `NAME.key`.
    pub fn key(&self, name: &str, kind: KeyKind) -> PathBuf {
        let key = self.path(&format!("{name}.key"));
        succeed(
            self.openssl("genpkey")
                .args(kind.options())
                .arg("-out")
                .arg(&key),
        );
        key
    }

    /// Makes the PKCS #10 request `NAME.csr` with a key.
    pub fn csr(&self, name: &str, key: &Path, subject: &str) -> PathBuf {
        let csr = self.path(&format!("{name}.csr"));
        succeed(
            self.openssl("req")
                .args(["-new", "-subj", subject, "-config"])
                .arg(self.path("openssl.cnf"))
                .arg("-key")
                .arg(key)
                .arg("-out")
                .arg(&csr),
        );
        csr
    }

    /// The sub CA issues the end entity certificate `NAME.crt` for a request.
    pub fn issue(&self, name: &str, csr: &Path) -> PathBuf {
        self.sign(name, csr, "sub", "end")
    }

    /// The sub CA issues `NAME.crt` for a key, by way of a request `NAME.csr`.
    pub fn issue_for_key(&self, name: &str, key: &Path, subject: &str) -> PathBuf {
        self.issue(name, &self.csr(name, key, subject))
    }

    /// A command of openssl that has found no configuration but what it is given.
    fn openssl(&self, command: &str) -> Command {
        let mut openssl = openssl();
        openssl.arg(command).current_dir(&self.dir);
        openssl
    }

    fn sign(&self, name: &str, csr: &Path, issuer: &str, extensions: &str) -> PathBuf {
        let certificate = self.path(&format!("{name}.crt"));
        succeed(
            self.openssl("x509")
                .args(["-req", "-days", "30", "-extensions", extensions, "-extfile"])
                .arg(self.path("openssl.cnf"))
                .arg("-in")
                .arg(csr)
                .arg("-CA")
                .arg(self.path(&format!("{issuer}.crt")))
                .arg("-CAkey")
                .arg(self.path(&format!("{issuer}.key")))
                .arg("-out")
                .arg(&certificate),
        );
        certificate
    }
}

/// The program `openssl`, deaf to the configuration of the machine.
pub fn openssl() -> Command {
    let mut command = Command::new("openssl");
    command.env("OPENSSL_CONF", "/dev/null");
    command
}
