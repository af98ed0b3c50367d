//! A Redis server of a test's own: Debian's program, in a temporary folder, on a free port of the
//! loopback.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::Command;
use std::thread::sleep;
use std::time::{Duration, Instant};

use tempfile::TempDir;

use crate::process::{PATIENCE, Process};

/// A running server. It is killed when this is dropped.
#[derive(Debug)]
pub struct Redis {
    folder: TempDir,
    port: u16,
    process: Option<Process>,
}

impl Redis {
    /// Starts an empty one.
    ///
    /// # Panics
    ///
    /// When there is no Redis on this machine.
    pub fn start() -> Self {
        let free = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let port = free.local_addr().expect("an address").port();
        drop(free);
        let mut server = Self {
            folder: tempfile::tempdir().expect("a temporary folder"),
            port,
            process: None,
        };
        server.start_again();
        server
    }

    /// Starts it after [`kill`](Self::kill), empty, at the same port.
    ///
    /// # Panics
    ///
    /// When it does not answer.
    pub fn start_again(&mut self) {
        let mut command = Command::new("redis-server");
        command
            .args(["--bind", "127.0.0.1", "--save", "", "--appendonly", "no"])
            .args(["--port", &self.port.to_string(), "--dir"])
            .arg(self.folder.path());
        self.process = Some(Process::start(&mut command));
        let deadline = Instant::now() + PATIENCE;
        while !self.answers() {
            assert!(Instant::now() < deadline, "redis-server does not answer");
            sleep(Duration::from_millis(20));
        }
    }

    /// Ends it with SIGKILL.
    pub fn kill(&mut self) {
        if let Some(mut process) = self.process.take() {
            process.kill();
        }
    }

    /// Where it is.
    pub fn url(&self) -> String {
        format!("redis://127.0.0.1:{}", self.port)
    }

    /// Any command, by a connection of its own; the raw answer.
    ///
    /// # Panics
    ///
    /// When there is no server.
    pub fn call(&self, words: &[&str]) -> String {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).expect("a server");
        stream.set_read_timeout(Some(PATIENCE)).expect("a wait");
        let mut request = format!("*{}\r\n", words.len());
        for word in words {
            request.push_str(&format!("${}\r\n{word}\r\n", word.len()));
        }
        // After QUIT the server ends the connection, and with it the answer.
        request.push_str("*1\r\n$4\r\nQUIT\r\n");
        stream.write_all(request.as_bytes()).expect("a connection");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).expect("an answer");
        answer
    }

    fn answers(&self) -> bool {
        TcpStream::connect(("127.0.0.1", self.port)).is_ok()
    }
}
