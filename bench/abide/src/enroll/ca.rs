//! The other side, in processes of its own.

use std::env;
use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use crate::{Result, SILENCE};

/// `abide mock-ca`, until it is dropped.
pub(crate) struct MockCa {
    process: Process,
    root: PathBuf,
}

impl MockCa {
    /// Its clients are those whose certificates `root.crt` of the folder vouches for.
    pub(crate) fn start(abide: &Path, folder: &Path) -> Result<Self> {
        let dir = folder.join("ca");
        let mut command = Command::new(abide);
        command
            .args(["mock-ca", "--quiet", "--secret", "pass:not used", "--dir"])
            .arg(&dir)
            .arg("--trusted")
            .arg(folder.join("root.crt"));
        Ok(Self {
            process: Process::start(&mut command)?,
            root: dir.join("root.pem"),
        })
    }

    pub(crate) fn url(&self) -> &str {
        &self.process.url
    }

    /// PEM.
    pub(crate) fn root(&self) -> Result<String> {
        Ok(fs::read_to_string(&self.root)?)
    }
}

/// A server that takes requests and answers none, until it is dropped.
pub(crate) struct Silence(Process);

impl Silence {
    pub(crate) fn start() -> Result<Self> {
        Process::start(Command::new(env::current_exe()?).arg(SILENCE)).map(Self)
    }

    pub(crate) fn url(&self) -> &str {
        &self.0.url
    }
}

/// What the process of [`Silence`] does: its connections stay open as long as it lives.
pub(crate) fn silence() -> Result<()> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    println!("http://{}/pkix/", listener.local_addr()?);
    let mut connections = Vec::new();
    loop {
        connections.push(listener.accept()?.0);
    }
}

/// A server that says its URL in a line of its own.
struct Process {
    child: Child,
    url: String,
}

impl Process {
    fn start(command: &mut Command) -> Result<Self> {
        let child = command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()?;
        let mut process = Self {
            child,
            url: String::new(),
        };
        let mut output = BufReader::new(process.child.stdout.take().ok_or("it has no output")?);
        let mut line = String::new();
        while output.read_line(&mut line)? > 0 {
            if line.starts_with("http://") {
                process.url = line.trim_end().to_owned();
                // It would stand still with a full pipe.
                std::thread::spawn(move || output.read_to_end(&mut Vec::new()));
                return Ok(process);
            }
            line.clear();
        }
        Err("the server ended before it listened".into())
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // It may have ended by itself; then there is nothing to end.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
