//! The program `abide` as a process.
//!
//! Cargo tells only the tests of a program's own package where the program is. Here it is
//! the file that the variable `CARGO_BIN_EXE_abide` names, for runners that have built it
//! already; without the variable each test process has cargo build it first, which takes
//! a moment when there is nothing to do, and nobody tests yesterday's program.

use std::env;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use serde_json::Value;

use crate::process::{Ended, Process, succeed};

/// The built program.
///
/// # Panics
///
/// When it is not there and cannot be built.
pub fn program() -> &'static Path {
    static PROGRAM: OnceLock<PathBuf> = OnceLock::new();
    PROGRAM.get_or_init(|| {
        let program = match env::var_os("CARGO_BIN_EXE_abide") {
            Some(program) => PathBuf::from(program),
            None => build(),
        };
        assert!(
            program.is_file(),
            "{} is not there: `cargo build --package abide` makes it",
            program.display()
        );
        program
    })
}

/// Builds the program in the profile of this test, which lies beside it.
fn build() -> PathBuf {
    let folder = profile_folder();
    let name = folder
        .file_name()
        .and_then(OsStr::to_str)
        .unwrap_or_default();
    let profile = if name == "debug" { "dev" } else { name };
    // Not bounded in time: a compiler takes minutes, and waits for other compilers.
    let status = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        // As a part of the workspace: with other features wasmtime is compiled again.
        .args(["build", "--quiet", "--workspace", "--bin", "abide"])
        .args(["--profile", profile])
        .status()
        .unwrap_or_else(|error| panic!("cargo cannot be started to build abide: {error}"));
    assert!(status.success(), "abide cannot be built");
    folder.join("abide")
}

/// The folder of the profile: tests are in its `deps`.
pub(crate) fn profile_folder() -> PathBuf {
    let test = env::current_exe().expect("a test knows its own path");
    test.ancestors()
        .nth(2)
        .expect("a test lies in a folder of cargo's")
        .to_owned()
}

/// The folder of compiled code, which all tests share and which is kept between runs.
pub fn cache() -> PathBuf {
    profile_folder().join("abide-test-cache")
}

/// A folder in which the program runs: it has a store there, and everything else that it
/// finds by itself.
#[derive(Clone, Debug)]
pub struct Abide {
    dir: PathBuf,
}

impl Abide {
    /// A user of the program whose files are in `dir`.
    pub fn new(dir: &Path) -> Self {
        Self {
            dir: dir.to_owned(),
        }
    }

    /// The path of a file in the folder, whether it is there or not.
    pub fn path(&self, file: &str) -> PathBuf {
        self.dir.join(file)
    }

    /// The text of a file in the folder.
    pub fn read(&self, file: &str) -> String {
        let path = self.path(file);
        std::fs::read_to_string(&path)
            .unwrap_or_else(|error| panic!("{} cannot be read: {error}", path.display()))
    }

    /// The store.
    pub fn store(&self) -> PathBuf {
        self.path("store.db")
    }

    /// The program with arguments, in the folder, knowing nothing of the machine's user.
    pub fn command<W: AsRef<OsStr>>(&self, words: impl IntoIterator<Item = W>) -> Command {
        let mut command = Command::new(program());
        command
            .args(words)
            .current_dir(&self.dir)
            .env("HOME", &self.dir)
            .env_remove("XDG_STATE_HOME")
            .env_remove("XDG_CACHE_HOME")
            .env("ABIDE_CACHE_DIR", cache());
        command
    }

    /// Runs the program to its end.
    pub fn run<W: AsRef<OsStr>>(&self, words: impl IntoIterator<Item = W>) -> Ended {
        Process::start(&mut self.command(words)).end()
    }

    /// Runs `abide enroll` with the store of this folder to its end.
    pub fn enroll<W: AsRef<OsStr>>(&self, words: impl IntoIterator<Item = W>) -> Ended {
        Process::start(&mut self.enroll_command(words)).end()
    }

    /// `abide enroll` with the store of this folder, to be started.
    pub fn enroll_command<W: AsRef<OsStr>>(&self, words: impl IntoIterator<Item = W>) -> Command {
        let mut command = self.command(["enroll", "--store"]);
        command.arg(self.store()).args(words);
        command
    }

    /// What `abide transactions list` knows of the store.
    ///
    /// # Panics
    ///
    /// When it knows nothing.
    pub fn transactions(&self) -> Vec<Value> {
        let mut command = self.command(["transactions", "list", "--output", "json", "--store"]);
        let text = succeed(command.arg(self.store()));
        serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error} in {text}"))
    }
}

/// `abide mock-ca` on a free port of the loopback.
#[derive(Debug)]
pub struct MockCa {
    process: Process,
    url: String,
    root: PathBuf,
}

impl MockCa {
    /// The name of the client that it knows.
    pub const REF: &str = "client";
    /// The secret it shares with the client.
    pub const SECRET: &str = "a secret of sufficient length";

    /// Starts a CA in the subfolder `ca` of a folder and waits until it listens.
    pub fn start(dir: &Path, options: &[&str]) -> Self {
        let ca = dir.join("ca");
        let mut command = Abide::new(dir).command(["mock-ca", "--dir"]);
        command.arg(&ca).args(["--ref", Self::REF, "--secret"]);
        command.arg(format!("pass:{}", Self::SECRET)).args(options);
        let process = Process::start(&mut command);
        let url = process.wait_for("URL", |line| {
            line.starts_with("http://").then(|| line.to_owned())
        });
        Self {
            process,
            url,
            root: ca.join("root.pem"),
        }
    }

    /// Where it is reached.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// The file of its root certificate.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// What it has said.
    pub fn said(&self) -> String {
        self.process.said()
    }

    /// Ends it with SIGKILL.
    pub fn kill(&mut self) {
        self.process.kill();
    }

    /// Lets it sleep, wherever it is.
    pub fn suspend(&self) {
        self.process.suspend();
    }

    /// Lets it go on.
    pub fn resume(&self) {
        self.process.resume();
    }

    /// Its books, line by line. A CA that was never asked for anything has none.
    ///
    /// # Panics
    ///
    /// When a line is no JSON.
    pub fn books(&self) -> Vec<Value> {
        let path = self.root.with_file_name("books.jsonl");
        let text = std::fs::read_to_string(path).unwrap_or_default();
        text.lines()
            .map(|line| serde_json::from_str(line).unwrap_or_else(|e| panic!("{e} in {line}")))
            .collect()
    }
}
