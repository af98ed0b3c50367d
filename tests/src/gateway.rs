//! `abide gateway` as a process, a client that sends what it is told over one connection, and
//! what stands behind a gateway.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use serde_json::Value;
use tokio::net::TcpSocket;

use crate::abide::Abide;
use crate::process::{Ended, PATIENCE, Process};

/// A running gateway. It is killed when this is dropped.
#[derive(Debug)]
pub struct Gateway {
    process: Process,
    address: String,
    admin: String,
}

impl Gateway {
    /// Starts a gateway with these options on free ports, and waits until it listens.
    pub fn start(abide: &Abide, options: &[&str]) -> Self {
        let free = "127.0.0.1:0";
        let mut command = abide.command(["gateway", "--log", "json"]);
        command.args(["--listen", free, "--admin", free]);
        Self::run(Process::start(command.args(options)))
    }

    /// Writes the configuration `gateway.toml`, which must say nothing of `[gateway]` but what
    /// `gateway` has, and starts a gateway with it.
    pub fn configured(abide: &Abide, gateway: &str, rest: &str) -> Self {
        let text = format!(
            "[gateway]\nlisten = \"127.0.0.1:0\"\nadmin = \"127.0.0.1:0\"\n{gateway}\n{rest}"
        );
        std::fs::write(abide.path("gateway.toml"), text).expect("a configuration");
        let words = ["gateway", "--config", "gateway.toml", "--log", "json"];
        Self::run(Process::start(&mut abide.command(words)))
    }

    fn run(process: Process) -> Self {
        let address = process.wait_for("URL", |line| {
            let (scheme, address) = line.split_once("://")?;
            scheme.starts_with("http").then(|| address.to_owned())
        });
        let admin = process.wait_for("admin URL", |line| {
            line.strip_prefix("admin http://").map(str::to_owned)
        });
        Self {
            process,
            address,
            admin,
        }
    }

    /// Address and port.
    pub fn address(&self) -> SocketAddr {
        self.address.parse().expect("an address")
    }

    /// A connection to it.
    pub fn wire(&self) -> Wire {
        Wire::connect(self.address())
    }

    /// One message over a connection of its own.
    pub fn post(&self, headers: &[(&str, &str)], body: &[u8]) -> Reply {
        self.wire().post(headers, body)
    }

    /// GET at the admin address.
    pub fn admin(&self, path: &str) -> Reply {
        let mut wire = Wire::connect(self.admin.parse().expect("an address"));
        wire.send(format!("GET {path} HTTP/1.1\r\nHost: x\r\n\r\n").as_bytes());
        wire.reply().expect("an answer")
    }

    /// A number of /metrics; 0 where it was never counted.
    pub fn metric(&self, line: &str) -> f64 {
        let text = String::from_utf8(self.admin("/metrics").body).expect("text");
        let found = text
            .lines()
            .find_map(|found| found.strip_prefix(line)?.strip_prefix(' '));
        found.map_or(0.0, |number| number.parse().expect("a number"))
    }

    /// Waits until a number of /metrics is so large.
    ///
    /// # Panics
    ///
    /// When it never is.
    pub fn until_metric(&self, line: &str, least: f64) {
        let deadline = std::time::Instant::now() + PATIENCE;
        while self.metric(line) < least {
            assert!(
                std::time::Instant::now() < deadline,
                "{line} stays below {least}"
            );
            thread::sleep(Duration::from_millis(20));
        }
    }

    /// The lines of the access log so far.
    pub fn log(&self) -> Vec<Value> {
        self.process
            .said()
            .lines()
            .filter_map(|line| serde_json::from_str::<Value>(line).ok())
            .filter(|line| line["verdict"].is_string())
            .collect()
    }

    /// Waits for a line of the access log of which something holds.
    pub fn logged(&self, what: &str, holds: impl Fn(&Value) -> bool) -> Value {
        self.process.wait_for(what, |line| {
            let line: Value = serde_json::from_str(line).ok()?;
            (line["verdict"].is_string() && holds(&line)).then_some(line)
        })
    }

    /// The resident memory of the process, in KiB.
    pub fn memory_kib(&self) -> u64 {
        self.process.memory_kib()
    }

    /// What it has said.
    pub fn said(&self) -> String {
        self.process.said()
    }

    /// Asks it to end without waiting.
    pub fn terminate(&self) {
        self.process.terminate();
    }

    /// Waits until it has ended.
    pub fn end(self) -> Ended {
        self.process.end()
    }
}

/// A connection of a client.
#[derive(Debug)]
pub struct Wire(BufReader<TcpStream>);

/// What came back.
#[derive(Clone, Debug)]
pub struct Reply {
    /// The HTTP status.
    pub status: u16,
    /// The status line and the headers.
    pub head: String,
    /// The body.
    pub body: Vec<u8>,
}

impl Reply {
    /// The value of a header.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.head.lines().skip(1).find_map(|line| {
            let (found, value) = line.split_once(':')?;
            found.eq_ignore_ascii_case(name).then_some(value.trim())
        })
    }
}

impl Wire {
    /// A connection from any address.
    pub fn connect(address: SocketAddr) -> Self {
        Self::new(TcpStream::connect(address).expect("a connection"))
    }

    /// A connection from an address of the loopback, such as 127.0.0.2.
    pub fn from(own: [u8; 4], address: SocketAddr) -> Self {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_io()
            .build()
            .expect("a runtime");
        let stream = runtime.block_on(async {
            let socket = TcpSocket::new_v4()?;
            socket.bind(SocketAddr::from((Ipv4Addr::from(own), 0)))?;
            socket.connect(address).await?.into_std()
        });
        let stream = stream.expect("a connection");
        stream.set_nonblocking(false).expect("a blocking socket");
        Self::new(stream)
    }

    fn new(stream: TcpStream) -> Self {
        stream.set_read_timeout(Some(PATIENCE)).expect("a timeout");
        stream.set_nodelay(true).expect("an option");
        Self(BufReader::new(stream))
    }

    /// Writes octets, if the other end still takes them.
    pub fn send(&mut self, octets: &[u8]) -> bool {
        self.0.get_mut().write_all(octets).is_ok()
    }

    /// A request with a message.
    pub fn request(headers: &[(&str, &str)], body: &[u8]) -> Vec<u8> {
        let mut head = format!(
            "POST /pkix/ HTTP/1.1\r\nHost: gateway\r\nContent-Length: {}\r\n",
            body.len()
        );
        if !headers.iter().any(|(name, _)| *name == "Content-Type") {
            head.push_str("Content-Type: application/pkixcmp\r\n");
        }
        for (name, value) in headers {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
        head.push_str("\r\n");
        [head.as_bytes(), body].concat()
    }

    /// Sends a message, and waits for the answer.
    ///
    /// # Panics
    ///
    /// When there is none.
    pub fn post(&mut self, headers: &[(&str, &str)], body: &[u8]) -> Reply {
        self.send(&Self::request(headers, body));
        self.reply().expect("an answer")
    }

    /// The next answer; `None` when the connection ends instead.
    pub fn reply(&mut self) -> Option<Reply> {
        let (head, body) = read_message(&mut self.0).ok()?;
        let status = head.split(' ').nth(1)?.parse().ok()?;
        Some(Reply { status, head, body })
    }

    /// Waits until the other end closes.
    ///
    /// # Panics
    ///
    /// When it does not.
    pub fn until_closed(&mut self) {
        let mut rest = Vec::new();
        match self.0.read_to_end(&mut rest) {
            Ok(_) => {}
            Err(error) => assert_eq!(error.kind(), io::ErrorKind::ConnectionReset, "{error}"),
        }
    }
}

/// Head and body of one HTTP message with a Content-Length.
fn read_message(reader: &mut impl BufRead) -> io::Result<(String, Vec<u8>)> {
    let (mut head, mut length) = (String::new(), 0);
    loop {
        let start = head.len();
        if reader.read_line(&mut head)? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let line = head[start..].trim_end().to_ascii_lowercase();
        if line.is_empty() {
            break;
        }
        if let Some(value) = line.strip_prefix("content-length:") {
            length = value.trim().parse().map_err(io::Error::other)?;
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body)?;
    Ok((head, body))
}

/// A server on a free port of the loopback that does the same for every connection. Its thread
/// ends with it.
#[derive(Debug)]
struct Listening {
    address: SocketAddr,
    ending: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Listening {
    fn start(serve: impl Fn(TcpStream) + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a free port");
        let address = listener.local_addr().expect("its address");
        let ending = Arc::new(AtomicBool::new(false));
        let serve = Arc::new(serve);
        let thread = thread::spawn({
            let ending = Arc::clone(&ending);
            move || {
                for stream in listener.incoming() {
                    if ending.load(Ordering::SeqCst) {
                        return;
                    }
                    let serve = Arc::clone(&serve);
                    if let Ok(stream) = stream {
                        thread::spawn(move || serve(stream));
                    }
                }
            }
        });
        Self {
            address,
            ending,
            thread: Some(thread),
        }
    }
}

impl Drop for Listening {
    fn drop(&mut self) {
        self.ending.store(true, Ordering::SeqCst);
        // Wakes the thread, which waits for a client.
        let _ = TcpStream::connect(self.address);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Heads and bodies of requests.
pub type Seen = Vec<(String, Vec<u8>)>;

/// A server that keeps its connections, remembers every request and gives each the same answer.
#[derive(Debug)]
pub struct Ca {
    listening: Listening,
    seen: Arc<Mutex<Seen>>,
    connections: Arc<AtomicUsize>,
}

impl Ca {
    /// Starts one that answers with a CMP message, after a while.
    pub fn start(answer: &[u8], after: Duration) -> Self {
        Self::with("200 OK", "application/pkixcmp", answer, after)
    }

    /// Starts one that answers with anything.
    pub fn with(status: &str, content_type: &str, answer: &[u8], after: Duration) -> Self {
        let seen = Arc::new(Mutex::new(Vec::new()));
        let connections = Arc::new(AtomicUsize::new(0));
        let head = format!(
            "HTTP/1.1 {status}\r\nContent-Type: {content_type}\r\nContent-Length: {}\r\n\r\n",
            answer.len()
        );
        let answer = [head.as_bytes(), answer].concat();
        let listening = Listening::start({
            let (seen, connections) = (Arc::clone(&seen), Arc::clone(&connections));
            move |stream| {
                connections.fetch_add(1, Ordering::SeqCst);
                let mut reader = BufReader::new(stream);
                while let Ok(request) = read_message(&mut reader) {
                    lock(&seen).push(request);
                    thread::sleep(after);
                    if reader.get_mut().write_all(&answer).is_err() {
                        return;
                    }
                }
            }
        });
        Self {
            listening,
            seen,
            connections,
        }
    }

    /// Where it is reached.
    pub fn url(&self) -> String {
        format!("http://{}/pkix/", self.listening.address)
    }

    /// How many requests it has seen.
    pub fn asked(&self) -> usize {
        lock(&self.seen).len()
    }

    /// How many connections it has had.
    pub fn connections(&self) -> usize {
        self.connections.load(Ordering::SeqCst)
    }

    /// Heads and bodies of the requests.
    pub fn seen(&self) -> Seen {
        lock(&self.seen).clone()
    }
}

/// A wire-tap: octets pass as they are, in both directions, and are remembered.
#[derive(Debug)]
pub struct Tap {
    listening: Listening,
    heard: Arc<Mutex<Heard>>,
}

/// Per connection what each side has said.
type Heard = Vec<[Arc<Mutex<Vec<u8>>>; 2]>;

impl Tap {
    /// Before a server, whose URL is `http://ADDRESS/PATH`.
    pub fn before(address: SocketAddr) -> Self {
        let heard: Arc<Mutex<Heard>> = Arc::default();
        let listening = Listening::start({
            let heard = Arc::clone(&heard);
            move |client| {
                let Ok(server) = TcpStream::connect(address) else {
                    return;
                };
                let [asked, answered] = [Arc::default(), Arc::default()];
                lock(&heard).push([Arc::clone(&asked), Arc::clone(&answered)]);
                let there = (client.try_clone(), server.try_clone());
                let (Ok(from), Ok(to)) = there else { return };
                let back = thread::spawn(move || pass(&server, &client, &answered));
                pass(&from, &to, &asked);
                let _ = back.join();
            }
        });
        Self { listening, heard }
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.listening.address
    }

    /// The bodies of all requests and of all answers.
    pub fn bodies(&self) -> [Vec<Vec<u8>>; 2] {
        let heard = lock(&self.heard);
        [0, 1].map(|side| {
            let mut bodies = Vec::new();
            for connection in heard.iter() {
                let octets = lock(&connection[side]).clone();
                let mut reader = octets.as_slice();
                while let Ok((_, body)) = read_message(&mut reader) {
                    bodies.push(body);
                }
            }
            bodies
        })
    }
}

fn pass(mut from: &TcpStream, mut to: &TcpStream, heard: &Mutex<Vec<u8>>) {
    let mut octets = [0; 16 << 10];
    while let Ok(count @ 1..) = from.read(&mut octets) {
        lock(heard).extend_from_slice(&octets[..count]);
        if to.write_all(&octets[..count]).is_err() {
            break;
        }
    }
    let _ = to.shutdown(Shutdown::Write);
}
