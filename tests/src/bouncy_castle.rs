//! The third implementation: programs of ours on Bouncy Castle, in `tests/peers/java`, among
//! them a CA.

use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, PoisonError};

use crate::abide::profile_folder;
use crate::base64;
use crate::pki::Pki;
use crate::process::{Process, succeed};

/// Where Debian's packages libbcpkix-java, libbcprov-java and libbcutil-java put their jars.
const JARS: &str =
    "/usr/share/java/bcpkix.jar:/usr/share/java/bcprov.jar:/usr/share/java/bcutil.jar";

/// The programs, compiled.
#[derive(Debug)]
pub struct BouncyCastle {
    classes: PathBuf,
}

impl BouncyCastle {
    /// Compiles all programs into the folder `classes`.
    ///
    /// # Panics
    ///
    /// When there is no Java compiler or no Bouncy Castle: `cargo xtask setup` installs both.
    pub fn compile(classes: &Path) -> Self {
        let mut command = Command::new("javac");
        command.args(["-encoding", "UTF-8", "-cp", JARS, "-d"]);
        succeed(command.arg(classes).args(sources()));
        Self {
            classes: classes.to_owned(),
        }
    }

    /// The programs, compiled once for all tests: beside the tests, under a name that changes
    /// with the sources.
    ///
    /// # Panics
    ///
    /// As [`Self::compile`].
    pub fn shared() -> Self {
        static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
        let _turn = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
        let mut hasher = DefaultHasher::new();
        for source in sources() {
            fs::read(source).expect("a program").hash(&mut hasher);
        }
        let folder = profile_folder();
        let classes = folder.join(format!("abide-test-java-{:016x}", hasher.finish()));
        if !classes.exists() {
            let fresh = tempfile::tempdir_in(folder).expect("a folder for classes");
            Self::compile(fresh.path());
            // Another test may have been faster, with the same result.
            let renamed = fs::rename(fresh.path(), &classes);
            assert!(renamed.is_ok() || classes.exists(), "{renamed:?}");
        }
        Self { classes }
    }

    /// A program, still without its arguments.
    pub fn program(&self, class: &str) -> Command {
        let mut command = Command::new("java");
        command
            .arg("-cp")
            .arg(format!("{}:{JARS}", self.classes.display()))
            .arg(class);
        command
    }
}

fn sources() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("peers/java");
    let mut sources: Vec<PathBuf> = folder
        .read_dir()
        .expect("the programs")
        .filter_map(|entry| {
            let path = entry.expect("a file").path();
            (path.extension()? == "java").then_some(path)
        })
        .collect();
    sources.sort();
    sources
}

/// The CA of `CmpServer.java` on a port of the loopback. It issues what it is asked for, in the
/// name of the PKI's sub CA, and keeps books.
#[derive(Debug)]
pub struct CmpServer {
    process: Process,
    origin: String,
    folder: PathBuf,
}

/// One line of the books.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// `issued`, `confirmed`, `rejected`, `revoked`, `revived`, `waiting`, or `early` for a
    /// poll before its time.
    pub event: String,
    /// In lowercase hexadecimal.
    pub transaction_id: String,
    /// As the RFC names the request.
    pub operation: String,
    /// In lowercase hexadecimal; empty when it is about no certificate.
    pub serial: String,
    /// The certificate that was issued, as DER.
    pub certificate: Vec<u8>,
}

impl CmpServer {
    /// The name of the client that it knows.
    pub const REF: &str = "client";
    /// The secret it shares with the client.
    pub const SECRET: &str = "a secret of sufficient length";

    /// Starts the CA of a PKI, with its books in `folder`, and waits until it listens. Books
    /// that are there are gone on with.
    pub fn start(pki: &Pki, folder: &Path) -> Self {
        Self::start_at(pki, folder, "0")
    }

    fn start_at(pki: &Pki, folder: &Path, port: &str) -> Self {
        let mut command = BouncyCastle::shared().program("CmpServer");
        command
            .args([pki.path(""), folder.to_owned()])
            .args([Self::REF, Self::SECRET, port]);
        let process = Process::start(&mut command);
        let origin = process.wait_for("URL", |line| {
            line.starts_with("http://").then(|| line.to_owned())
        });
        Self {
            process,
            origin,
            folder: folder.to_owned(),
        }
    }

    /// Where it is reached by those who want to be treated in a certain way, such as
    /// `polls=2/checkAfter=1`: see `CmpServer.java`.
    pub fn url(&self, behaviour: &str) -> String {
        match behaviour {
            "" => format!("{}pkix/", self.origin),
            some => format!("{}{some}/pkix/", self.origin),
        }
    }

    /// Its CRL, in PEM.
    pub fn crl(&self) -> PathBuf {
        self.folder.join("crl.pem")
    }

    /// What it has said.
    pub fn said(&self) -> String {
        self.process.said()
    }

    /// Ends it with SIGKILL and starts another one on its port, with its books.
    pub fn kill_and_start(&mut self, pki: &Pki) {
        self.process.kill();
        let port = self.origin.trim_end_matches('/').rsplit(':').next();
        *self = Self::start_at(pki, &self.folder.clone(), port.expect("a URL with a port"));
    }

    /// Its books, line by line.
    ///
    /// # Panics
    ///
    /// When a line is none.
    pub fn books(&self) -> Vec<Entry> {
        let text = fs::read_to_string(self.folder.join("books.tsv")).unwrap_or_default();
        let whole = text.lines().filter(|line| line.ends_with("\t."));
        whole
            .map(|line| {
                let fields: Vec<&str> = line.split('\t').collect();
                let &[event, id, operation, serial, _, certificate, _, _] = fields.as_slice()
                else {
                    panic!("no line of books: {line}")
                };
                Entry {
                    event: event.into(),
                    transaction_id: id.into(),
                    operation: operation.into(),
                    serial: serial.into(),
                    certificate: base64(certificate),
                }
            })
            .collect()
    }

    /// The lines of one event.
    pub fn booked(&self, event: &str) -> Vec<Entry> {
        let mut books = self.books();
        books.retain(|entry| entry.event == event);
        books
    }
}
