//! A CA on a free port, a folder for its client, and the client.

use std::fs;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};

use abide_mock_ca::books::{self, Entry, Event};
use abide_mock_ca::{MockCa, Options};
use tempfile::TempDir;
use tokio::runtime::Runtime;
use tokio::task::JoinHandle;

use crate::openssl;

pub(crate) const REFERENCE: &str = "device";
pub(crate) const SECRET: &str = "trial-secret";
/// The root certificate, seen from the folder of the client.
pub(crate) const ROOT: &str = "../ca/root.pem";

/// Words that use the right secret.
pub(crate) fn with_secret<'a>(words: &[&'a str]) -> Vec<&'a str> {
    [words, &["-ref", REFERENCE, "-secret", "pass:trial-secret"]].concat()
}

pub(crate) struct World {
    folder: TempDir,
    runtime: Runtime,
    options: Options,
    task: Option<JoinHandle<anyhow::Result<()>>>,
    url: String,
    root_pem: String,
}

impl World {
    /// A CA with options of the test, and a client with a key.
    pub(crate) fn new(choose: impl FnOnce(&mut Options)) -> Self {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("client")).unwrap();
        let listen = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        let mut options = Options::new(listen, folder.path().join("ca"), REFERENCE, SECRET);
        choose(&mut options);
        let runtime = Runtime::new().unwrap();
        let (url, root_pem) = Default::default();
        let mut world = Self {
            folder,
            runtime,
            options,
            task: None,
            url,
            root_pem,
        };
        world.start();
        world.make_key("new.key", "EC", "ec_paramgen_curve:P-256");
        world
    }

    /// Starts the CA, for the first time or again.
    pub(crate) fn start(&mut self) {
        let ca = self
            .runtime
            .block_on(MockCa::bind(self.options.clone()))
            .unwrap();
        (self.url, self.root_pem) = (ca.url(), ca.root_pem());
        self.task = Some(self.runtime.spawn(ca.serve()));
    }

    /// Stops the CA in the midst of whatever it does.
    pub(crate) fn stop(&mut self) {
        let task = self.task.take().unwrap();
        task.abort();
        assert!(self.runtime.block_on(task).unwrap_err().is_cancelled());
    }

    pub(crate) fn change(&mut self, change: impl FnOnce(&mut Options)) {
        self.stop();
        change(&mut self.options);
        self.start();
    }

    pub(crate) fn options(&self) -> Options {
        self.options.clone()
    }

    pub(crate) fn runtime(&self) -> &Runtime {
        &self.runtime
    }

    pub(crate) fn url(&self) -> &str {
        &self.url
    }

    pub(crate) fn root_pem(&self) -> &str {
        &self.root_pem
    }

    pub(crate) fn books(&self) -> Vec<Entry> {
        books::read(&self.ca_dir()).unwrap()
    }

    pub(crate) fn ca_dir(&self) -> PathBuf {
        self.options.dir.clone()
    }

    pub(crate) fn client_dir(&self) -> PathBuf {
        self.folder.path().join("client")
    }

    pub(crate) fn read(&self, name: &str) -> String {
        fs::read_to_string(self.client_dir().join(name)).unwrap()
    }

    pub(crate) fn bytes(&self, name: &str) -> Vec<u8> {
        fs::read(self.client_dir().join(name)).unwrap()
    }

    pub(crate) fn write(&self, name: &str, contents: impl AsRef<[u8]>) {
        fs::write(self.client_dir().join(name), contents).unwrap();
    }

    pub(crate) fn rename(&self, from: &str, to: &str) {
        fs::rename(self.client_dir().join(from), self.client_dir().join(to)).unwrap();
    }

    /// `openssl` with these words, which must succeed; what it prints.
    pub(crate) fn openssl(&self, words: &[&str]) -> String {
        openssl::run(&self.client_dir(), words)
            .unwrap_or_else(|said| panic!("openssl {} failed: {said}", words.join(" ")))
    }

    /// `openssl cmp` against the CA. The certificate is new.pem; messages are kept as
    /// req1.der, rsp1.der and so on.
    pub(crate) fn request(&self, words: &[&str]) -> Result<String, String> {
        let server = self.url.strip_prefix("http://").unwrap();
        openssl::cmp(&self.client_dir(), server, words)
    }

    pub(crate) fn make_key(&self, name: &str, algorithm: &str, parameter: &str) {
        let kind = ["-algorithm", algorithm, "-pkeyopt", parameter];
        self.openssl(&[&["genpkey", "-out", name][..], &kind].concat());
    }

    /// new.csr for new.key.
    pub(crate) fn make_csr(&self) {
        self.write("req.cnf", "[req]\ndistinguished_name = none\n[none]\n");
        self.openssl(&[
            "req",
            "-new",
            "-config",
            "req.cnf",
            "-key",
            "new.key",
            "-subj",
            "/CN=device-1",
            "-addext",
            "subjectAltName=DNS:device-1.example,IP:192.0.2.7",
            "-out",
            "new.csr",
        ]);
    }
}

/// What happened, in one word each after the kind of request.
pub(crate) fn events(entries: &[Entry]) -> Vec<String> {
    let word = |event: &Event| match event {
        Event::Waiting { .. } => "waiting",
        Event::Polled { .. } => "polled",
        Event::Issued { .. } => "issued",
        Event::Confirmed => "confirmed",
        Event::Rejected { .. } => "rejected",
        Event::Refused { .. } => "refused",
        _ => "something else",
    };
    entries
        .iter()
        .map(|entry| format!("{} {}", entry.operation, word(&entry.event)))
        .collect()
}

/// The reason of the last entry, which must be a refusal.
pub(crate) fn last_refusal(entries: &[Entry]) -> String {
    match entries.last().map(|entry| &entry.event) {
        Some(Event::Refused { reason }) => reason.clone(),
        other => panic!("not a refusal: {other:?}"),
    }
}

pub(crate) fn mode(path: &Path) -> u32 {
    use std::os::unix::fs::PermissionsExt;
    fs::metadata(path).unwrap().permissions().mode() & 0o777
}
