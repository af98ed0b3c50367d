//! A CA, a proxy before it, and a client that gets killed.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use abide_cmp::BodyType;
use abide_tests::abide::{Abide, MockCa};
use abide_tests::pki::{KeyKind, Pki};
use abide_tests::process::{Ended, Process, succeed};
use abide_tests::proxy::Proxy;
use serde_json::Value;
use tempfile::TempDir;

/// What is asked for and how it is protected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Kind {
    pub(crate) command: &'static str,
    pub(crate) request: BodyType,
    pub(crate) signed: bool,
}

pub(crate) const P10CR: Kind = Kind {
    command: "p10cr",
    request: BodyType::P10cr,
    signed: false,
};
pub(crate) const P10CR_SIGNED: Kind = Kind {
    signed: true,
    ..P10CR
};
pub(crate) const IR: Kind = Kind {
    command: "ir",
    request: BodyType::Ir,
    signed: false,
};
pub(crate) const IR_SIGNED: Kind = Kind { signed: true, ..IR };

/// Everything of one test, in a folder of its own.
pub(crate) struct World {
    folder: TempDir,
    kind: Kind,
    /// The credential: `--ref` and `--secret`, or `--cert` and `--key`.
    pub(crate) credential: Vec<String>,
    /// Whatever else the client is told.
    pub(crate) more: Vec<String>,
    pub(crate) trusted: PathBuf,
    pub(crate) ca: MockCa,
    pub(crate) proxy: Proxy,
    client: Abide,
    pki: Pki,
}

impl World {
    pub(crate) fn new(kind: Kind, ca_options: &[&str]) -> Self {
        let folder = tempfile::tempdir().expect("a folder for the test");
        let dir = folder.path();
        let ca = MockCa::start(dir, ca_options);
        let pki = Pki::new(&dir.join("pki"), KeyKind::P256);
        pki.csr("device", &pki.key("device", KeyKind::P256), "/CN=device");
        let client = dir.join("client");
        fs::create_dir(&client).expect("a folder for the client");
        let mut world = Self {
            kind,
            credential: secret(MockCa::SECRET),
            more: Vec::new(),
            trusted: ca.root().to_owned(),
            proxy: Proxy::new(ca.url()),
            client: Abide::new(&client),
            ca,
            pki,
            folder,
        };
        if kind.signed {
            world.credential = world.certified();
        }
        world
    }

    /// The credential after a first enrollment, of which the proxy hears nothing.
    fn certified(&self) -> Vec<String> {
        let dir = self.folder.path().join("before");
        fs::create_dir(&dir).expect("a folder for the first enrollment");
        let first = Abide::new(&dir);
        let mut words = strings(&["--cmd", "ir", "--server", self.ca.url(), "--trusted"]);
        words.push(text(&self.trusted));
        words.extend(secret(MockCa::SECRET));
        words.extend(strings(&["--subject", "/CN=device", "--newkey", "own.key"]));
        words.extend(strings(&["--certout", "own.pem"]));
        let ended = first.enroll(words);
        assert_eq!(ended.code, Some(0), "{ended:?}");
        vec![
            "--cert".into(),
            text(&first.path("own.pem")),
            "--key".into(),
            text(&first.path("own.key")),
        ]
    }

    fn words(&self, resume: bool) -> Vec<String> {
        let mut words = strings(&["--cmd", self.kind.command, "--output", "json"]);
        words.extend(strings(&["--server", &self.proxy.url(), "--trusted"]));
        words.push(text(&self.trusted));
        words.extend(self.credential.clone());
        words.extend(self.more.clone());
        match self.kind.request {
            BodyType::P10cr => words.extend(["--csr".into(), text(&self.pki.path("device.csr"))]),
            _ => words.extend(strings(&["--subject", "/CN=device", "--newkey", "new.key"])),
        }
        words.extend(strings(&["--certout", "cert.pem"]));
        words.extend(strings(&["--chainout", "chain.pem"]));
        if resume {
            words.push("--resume".into());
        }
        words
    }

    /// Starts `abide enroll`.
    pub(crate) fn start(&self, resume: bool) -> Process {
        Process::start(&mut self.client.enroll_command(self.words(resume)))
    }

    /// Kills a client, and looks whether its store is whole.
    pub(crate) fn kill(&self, mut client: Process) {
        let status = client.kill();
        assert_eq!(
            std::os::unix::process::ExitStatusExt::signal(&status),
            Some(9),
            "it was still running: {}",
            client.said()
        );
        assert!(!self.client.path("cert.pem").exists());
        self.check_store();
    }

    /// On a copy: opening the store itself would tidy up what the crash left.
    fn check_store(&self) {
        let copy = tempfile::tempdir_in(self.folder.path()).expect("a folder for the copy");
        for name in ["store.db", "store.db-wal"] {
            let from = self.client.path(name);
            if from.exists() {
                fs::copy(&from, copy.path().join(name)).expect("a copy of the store");
            }
        }
        let store = rusqlite::Connection::open(copy.path().join("store.db")).expect("a store");
        let verdict: String = store
            .query_row("PRAGMA integrity_check", [], |row| row.get(0))
            .expect("a verdict");
        assert_eq!(verdict, "ok");
    }

    /// Goes on in a new process, to its end.
    pub(crate) fn resume(&self) -> Ended {
        self.start(true).end()
    }

    /// The only transaction in the client's store.
    pub(crate) fn transaction(&self) -> Value {
        let mut all = self.client.transactions();
        assert_eq!(all.len(), 1, "{all:?}");
        all.remove(0)
    }

    pub(crate) fn phase(&self) -> String {
        string(&self.transaction()["phase"])
    }

    /// What `abide transactions show` says of a transaction.
    pub(crate) fn shown(&self, id: &str) -> String {
        let mut command = self.client.command(["transactions", "show", id, "--store"]);
        succeed(command.arg(self.client.store()))
    }

    /// The entries of one kind in the CA's books that are of the transactionID that the
    /// proxy has seen. It has seen only one.
    pub(crate) fn booked(&self, event: &str) -> Vec<Value> {
        let id = self.only_id();
        let mut booked = self.ca.books();
        booked.retain(|entry| entry["event"] == event);
        // The first certificate of a signed enrollment is not of this order.
        let earlier = usize::from(self.kind.signed && matches!(event, "issued" | "confirmed"));
        let ours: Vec<Value> = booked
            .iter()
            .filter(|entry| entry["transactionID"] == *id)
            .cloned()
            .collect();
        assert_eq!(booked.len(), ours.len() + earlier, "{booked:?}");
        ours
    }

    pub(crate) fn only_id(&self) -> String {
        let ids = self.proxy.transaction_ids();
        assert_eq!(ids.len(), 1, "{:?}", self.proxy.summary());
        ids[0].clone()
    }

    /// The end that every killed enrollment must come to: one transactionID, one
    /// certificate, delivered, confirmed and known as issued.
    pub(crate) fn check_issued(&self, ended: &Ended) {
        assert_eq!(ended.code, Some(0), "{ended:?}");
        let told: Value = serde_json::from_str(&ended.stdout).expect("JSON");
        let id = self.only_id();
        assert_eq!(told["status"], "issued", "{told}");
        assert_eq!(told["transactionID"], *id, "{told}");
        assert_eq!(told["confirmation"], "confirmed", "{told}");

        let issued = self.booked("issued");
        assert_eq!(issued.len(), 1, "{issued:?}");
        assert_eq!(self.booked("confirmed").len(), 1);
        assert_eq!(self.fingerprint("cert.pem"), string(&issued[0]["sha256"]));
        assert_eq!(self.fingerprint("chain.pem"), string(&issued[0]["sha256"]));
        succeed(
            Command::new("openssl")
                .args(["verify", "-CAfile"])
                .arg(self.ca.root())
                .arg("-untrusted")
                .arg(self.client.path("chain.pem"))
                .arg(self.client.path("cert.pem")),
        );

        let stored = self.transaction();
        assert_eq!(stored["transactionID"], *id, "{stored}");
        assert_eq!(stored["phase"], "issued", "{stored}");
        let shown = self.shown(&id);
        let phase = shown.lines().find(|line| line.starts_with("phase "));
        assert!(
            phase.is_some_and(|line| line.ends_with(" issued")),
            "{shown}"
        );
    }

    /// The SHA-256 of the first certificate of a file, as openssl has it.
    fn fingerprint(&self, file: &str) -> String {
        let said = succeed(
            Command::new("openssl")
                .args(["x509", "-noout", "-fingerprint", "-sha256", "-in"])
                .arg(self.client.path(file)),
        );
        let (_, octets) = said.trim().split_once('=').expect("a fingerprint");
        octets.replace(':', "").to_lowercase()
    }

    /// What `abide transactions orphans` says.
    pub(crate) fn orphans(&self, output: &str) -> String {
        let words = ["transactions", "orphans", "--output", output, "--store"];
        succeed(self.client.command(words).arg(self.client.store()))
    }

    /// SHA-256 of the PKCS #10 request, as openssl has it.
    pub(crate) fn csr_digest(&self) -> String {
        let der = self.folder.path().join("device.csr.der");
        succeed(
            Command::new("openssl")
                .args(["req", "-outform", "DER", "-in"])
                .arg(self.pki.path("device.csr"))
                .arg("-out")
                .arg(&der),
        );
        let said = succeed(
            Command::new("openssl")
                .args(["dgst", "-sha256", "-r"])
                .arg(der),
        );
        let digest = said.split(' ').next().expect("a digest");
        digest.to_owned()
    }

    /// Copies these files of the client to another machine, and takes the first one away: the
    /// store under another name, in another folder.
    pub(crate) fn move_to(&mut self, name: &str, files: &[&str]) {
        let dir = self.folder.path().join(name);
        fs::create_dir(&dir).expect("a folder for the other machine");
        for file in files {
            fs::copy(self.client.path(file), dir.join(file)).expect("a copy");
        }
        fs::remove_dir_all(self.client.path("")).expect("the first machine is gone");
        self.client = Abide::new(&dir);
    }

    /// Another CA's root, and a copy of the right one.
    pub(crate) fn other_root(&self) -> PathBuf {
        self.pki.path("root.crt")
    }

    pub(crate) fn copied_root(&self) -> PathBuf {
        let copy = self.folder.path().join("copy of root.pem");
        fs::copy(self.ca.root(), &copy).expect("a copy of the root");
        copy
    }

    /// Removes what the client has delivered.
    pub(crate) fn forget_files(&self) {
        for name in ["cert.pem", "chain.pem"] {
            fs::remove_file(self.client.path(name)).expect("a delivered file");
        }
    }

    pub(crate) fn read(&self, file: &str) -> String {
        self.client.read(file)
    }
}

/// Words that use a shared secret.
pub(crate) fn secret(secret: &str) -> Vec<String> {
    let source = format!("pass:{secret}");
    strings(&["--ref", MockCa::REF, "--secret", &source])
}

pub(crate) fn string(value: &Value) -> String {
    value.as_str().expect("a JSON string").to_owned()
}

fn strings(words: &[&str]) -> Vec<String> {
    words.iter().map(|&word| word.to_owned()).collect()
}

fn text(path: &Path) -> String {
    path.to_str().expect("a path in UTF-8").to_owned()
}
