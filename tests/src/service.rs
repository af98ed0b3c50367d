//! `abide serve` as a process, and a client that sends what it is told.

use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::thread::sleep;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::abide::Abide;
use crate::process::{Ended, PATIENCE, Process};

/// A running service. It is killed when this is dropped.
#[derive(Debug)]
pub struct Service {
    process: Process,
    address: String,
    token: Option<String>,
}

/// What the service answers.
#[derive(Clone, Debug)]
pub struct Answer {
    /// The HTTP status.
    pub status: u16,
    /// The status line and the headers.
    pub head: String,
    /// The body.
    pub body: String,
}

impl Answer {
    /// The body as JSON.
    ///
    /// # Panics
    ///
    /// When it is none.
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("{error} in {self:?}"))
    }

    /// The value of a header.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.head.lines().skip(1).find_map(|line| {
            let (found, value) = line.split_once(':')?;
            found.eq_ignore_ascii_case(name).then_some(value.trim())
        })
    }
}

impl Service {
    /// Writes the configuration `abide.toml` into the folder, which must say nothing of where to
    /// listen, starts the service, and waits until it listens.
    pub fn start(abide: &Abide, config: &str) -> Self {
        fs::write(abide.path("abide.toml"), config).expect("a configuration");
        Self::again(abide)
    }

    /// Starts the service with the configuration that is there.
    pub fn again(abide: &Abide) -> Self {
        let process = Process::start(&mut abide.command(["serve", "--log", "text"]));
        let address = process.wait_for("URL", |line| {
            line.strip_prefix("http://").map(str::to_owned)
        });
        Self {
            process,
            address,
            token: None,
        }
    }

    /// Calls with this bearer token from now on.
    pub fn with_token(mut self, token: &str) -> Self {
        self.token = Some(token.to_owned());
        self
    }

    /// Where it is, for commands.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// What it has said.
    pub fn said(&self) -> String {
        self.process.said()
    }

    /// Ends it with SIGKILL.
    pub fn kill(&mut self) {
        self.process.kill();
    }

    /// Asks it to end, and waits until it has.
    pub fn stop(self) -> Ended {
        self.process.terminate();
        self.process.end()
    }

    /// Asks it to end without waiting.
    pub fn terminate(&self) {
        self.process.terminate();
    }

    /// Lets it sleep, wherever it is.
    pub fn suspend(&self) {
        self.process.suspend();
    }

    /// Lets it go on.
    pub fn resume(&self) {
        self.process.resume();
    }

    /// Waits for a line of its log.
    pub fn wait_for(&self, text: &str) {
        self.process
            .wait_for(text, |line| line.contains(text).then_some(()));
    }

    /// GET.
    pub fn get(&self, path: &str) -> Answer {
        self.call("GET", path, &[], b"")
    }

    /// POST of JSON.
    pub fn post(&self, path: &str, body: &Value) -> Answer {
        let json = [("Content-Type", "application/json")];
        self.call("POST", path, &json, body.to_string().as_bytes())
    }

    /// Any request.
    ///
    /// # Panics
    ///
    /// When there is no answer.
    pub fn call(&self, method: &str, path: &str, headers: &[(&str, &str)], body: &[u8]) -> Answer {
        let mut head = format!(
            "{method} {path} HTTP/1.1\r\nConnection: close\r\nContent-Length: {}\r\n",
            body.len()
        );
        if !headers.iter().any(|(name, _)| *name == "Host") {
            head.push_str(&format!("Host: {}\r\n", self.address));
        }
        if let Some(token) = &self.token
            && !headers.iter().any(|(name, _)| *name == "Authorization")
        {
            head.push_str(&format!("Authorization: Bearer {token}\r\n"));
        }
        for (name, value) in headers {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
        head.push_str("\r\n");
        let mut stream = TcpStream::connect(&self.address)
            .unwrap_or_else(|error| panic!("{}: {error}; it said: {}", self.address, self.said()));
        stream
            .set_read_timeout(Some(PATIENCE))
            .expect("a timeout can be set");
        stream.write_all(head.as_bytes()).expect("a request");
        // Who refuses a body by its length may not read it.
        let _ = stream.write_all(body);
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer);
        let text = String::from_utf8_lossy(&answer);
        let (head, body) = text
            .split_once("\r\n\r\n")
            .unwrap_or_else(|| panic!("{method} {path}: no answer, but {text:?}"));
        let status = head.split(' ').nth(1).and_then(|word| word.parse().ok());
        Answer {
            status: status.unwrap_or_else(|| panic!("no status in {head:?}")),
            head: head.to_owned(),
            body: body.to_owned(),
        }
    }

    /// An order, once something holds of it.
    ///
    /// # Panics
    ///
    /// When it never does.
    pub fn until(&self, id: &str, what: &str, holds: impl Fn(&Value) -> bool) -> Value {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let order = self.get(&format!("/v1/orders/{id}")).json();
            if holds(&order) {
                return order;
            }
            assert!(
                Instant::now() < deadline,
                "{what}: never, but {order:#}; it said:\n{}",
                self.said()
            );
            sleep(Duration::from_millis(50));
        }
    }

    /// An order, once it is in a state.
    pub fn until_state(&self, id: &str, state: &str) -> Value {
        self.until(id, state, |order| order["state"] == state)
    }
}
