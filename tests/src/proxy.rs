//! A man in the middle on loopback: it passes HTTP between a client and a CA, knows which
//! CMP message goes by, and does to it what a test tells.
//!
//! One request a connection: the answer says `connection: close`, so a client has to
//! connect again for its next message, and whether it can is the test's choice too.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant, SystemTime};

use abide_cmp::{BodyType, PkiMessage};
use tokio::net::TcpSocket;

/// Generous, because a loaded machine compiles the component before anything is sent.
const PATIENCE: Duration = Duration::from_secs(120);

/// What happens to a request of some type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Treatment {
    /// It goes to the CA, and the answer to the client.
    Pass,
    /// It waits here, unknown to the CA, until [`Proxy::release`].
    HoldRequest,
    /// The CA has it and has answered; the answer waits here until [`Proxy::release`].
    HoldAnswer,
    /// The client gets the answer, and whoever connects after that is refused.
    PassAndClose,
    /// It never reaches the CA, and the client's connection ends without an answer.
    Swallow,
}

/// How far a request has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Stage {
    /// It is here.
    Arrived,
    /// The CA has answered it.
    Answered,
    /// The answer was written to the client, which may be dead.
    Returned,
    /// It was swallowed, or the proxy ended while it was held.
    Lost,
}

/// A request that came by.
#[derive(Clone, Debug)]
pub struct Seen {
    /// When it arrived.
    pub at: SystemTime,
    /// What the client said.
    pub body_type: BodyType,
    /// In lowercase hexadecimal.
    pub transaction_id: String,
    /// The message, octet for octet.
    pub octets: Vec<u8>,
    /// How far it has come.
    pub stage: Stage,
}

/// The proxy. It lives on threads that end with it.
#[derive(Debug)]
pub struct Proxy {
    shared: Arc<Shared>,
}

impl Proxy {
    /// A proxy on a free port before the CA at `upstream`, an `http://` URL.
    pub fn new(upstream: &str) -> Self {
        let rest = upstream.strip_prefix("http://").expect("an http:// URL");
        let (authority, path) = rest.split_once('/').expect("a URL with a path");
        let reserved = TcpSocket::new_v4().expect("a socket");
        reserved.set_reuseaddr(true).expect("SO_REUSEADDR");
        reserved
            .bind(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)))
            .expect("a free port");
        let address = reserved.local_addr().expect("the address of a socket");
        let shared = Arc::new(Shared {
            address,
            upstream: authority.parse().expect("an address and a port"),
            path: format!("/{path}"),
            state: Mutex::default(),
            changed: Condvar::new(),
            listening: Mutex::default(),
            _reserved: reserved,
        });
        let proxy = Self { shared };
        proxy.open();
        proxy
    }

    /// The URL for the client.
    pub fn url(&self) -> String {
        format!("http://{}{}", self.shared.address, self.shared.path)
    }

    /// From now on requests of this type are treated like this.
    pub fn treat(&self, body_type: BodyType, treatment: Treatment) {
        let mut state = self.shared.lock();
        state.treatments.retain(|&(known, _)| known != body_type);
        state.treatments.push((body_type, treatment));
    }

    /// From now on every request passes, and what is held goes on.
    pub fn release(&self) {
        let mut state = self.shared.lock();
        state.treatments.clear();
        state.releases += 1;
        self.shared.changed.notify_all();
    }

    /// Listens again.
    pub fn open(&self) {
        let mut listening = self.shared.listening();
        if listening.is_none() {
            let listener = TcpListener::bind(self.shared.address).expect("the reserved port");
            let shared = Arc::clone(&self.shared);
            *listening = Some(std::thread::spawn(move || accept(&listener, &shared)));
        }
    }

    /// Whoever connects from now on is refused.
    pub fn close(&self) {
        self.shared.close();
    }

    /// All requests so far.
    pub fn seen(&self) -> Vec<Seen> {
        let state = self.shared.lock();
        state.check();
        state.seen.clone()
    }

    /// The messages of one type.
    pub fn sent(&self, body_type: BodyType) -> Vec<Vec<u8>> {
        self.seen()
            .into_iter()
            .filter(|seen| seen.body_type == body_type)
            .map(|seen| seen.octets)
            .collect()
    }

    /// Each transactionID that ever came by, once.
    pub fn transaction_ids(&self) -> Vec<String> {
        let mut ids: Vec<_> = self
            .seen()
            .into_iter()
            .map(|seen| seen.transaction_id)
            .collect();
        ids.sort();
        ids.dedup();
        ids
    }

    /// Waits until `count` requests of a type have come to a stage or further.
    pub fn wait_for(&self, body_type: BodyType, stage: Stage, count: usize) {
        let what = format!("{count} × {} {stage:?}", body_type.name());
        let there = self.wait_until(|seen| {
            let that_far = |seen: &&Seen| seen.body_type == body_type && seen.stage >= stage;
            seen.iter().filter(that_far).count() >= count
        });
        assert!(there, "the proxy waited for {what}: {:?}", self.summary());
    }

    fn wait_until(&self, condition: impl Fn(&[Seen]) -> bool) -> bool {
        let deadline = Instant::now() + PATIENCE;
        let mut state = self.shared.lock();
        loop {
            state.check();
            if condition(&state.seen) {
                return true;
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return false;
            }
            state = self
                .shared
                .changed
                .wait_timeout(state, left)
                .unwrap_or_else(PoisonError::into_inner)
                .0;
        }
    }

    /// One word for each request and how far it came.
    pub fn summary(&self) -> Vec<String> {
        let state = self.shared.lock();
        let line = |seen: &Seen| format!("{} {:?}", seen.body_type.name(), seen.stage);
        state.seen.iter().map(line).collect()
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.shared.close();
        self.shared.lock().ended = true;
        self.shared.changed.notify_all();
    }
}

#[derive(Debug)]
struct Shared {
    address: SocketAddr,
    upstream: SocketAddr,
    path: String,
    state: Mutex<State>,
    changed: Condvar,
    /// The thread that accepts, while the port is open.
    listening: Mutex<Option<JoinHandle<()>>>,
    /// Bound and never listening: while the port is closed nobody else gets it.
    _reserved: TcpSocket,
}

#[derive(Debug, Default)]
struct State {
    treatments: Vec<(BodyType, Treatment)>,
    seen: Vec<Seen>,
    /// What the proxy itself could not do: a defect of the test or of the CA.
    faults: Vec<String>,
    releases: u64,
    closing: bool,
    ended: bool,
}

impl State {
    fn check(&self) {
        assert!(
            self.faults.is_empty(),
            "the proxy failed: {:?}",
            self.faults
        );
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn listening(&self) -> MutexGuard<'_, Option<JoinHandle<()>>> {
        self.listening
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns when the listener is gone.
    fn close(&self) {
        let mut listening = self.listening();
        let Some(thread) = listening.take() else {
            return;
        };
        self.lock().closing = true;
        // Wakes the thread that accepts; it is the last that does so.
        drop(TcpStream::connect(self.address));
        thread.join().expect("the listener ends");
        self.lock().closing = false;
    }

    fn reached(&self, index: usize, stage: Stage) {
        self.lock().seen[index].stage = stage;
        self.changed.notify_all();
    }

    /// Waits for a release after the first `releases`; false when the proxy ends before it.
    fn hold(&self, releases: u64) -> bool {
        let mut state = self.lock();
        while state.releases == releases && !state.ended {
            state = self
                .changed
                .wait(state)
                .unwrap_or_else(PoisonError::into_inner);
        }
        !state.ended
    }
}

fn accept(listener: &TcpListener, shared: &Arc<Shared>) {
    for client in listener.incoming() {
        if shared.lock().closing {
            return;
        }
        let Ok(client) = client else { continue };
        let shared = Arc::clone(shared);
        std::thread::spawn(move || {
            if let Err(fault) = serve(&client, &shared) {
                shared.lock().faults.push(fault);
                shared.changed.notify_all();
            }
        });
    }
}

/// Serves one request. That the client dies is no fault, whenever it happens.
fn serve(client: &TcpStream, shared: &Shared) -> Result<(), String> {
    let Ok((content_type, octets)) = read_request(client) else {
        return Ok(());
    };
    let message = PkiMessage::from_der(&octets)
        .map_err(|error| format!("a request is no PKIMessage: {error}"))?;
    let body_type = message.body.body_type();
    let seen = Seen {
        at: SystemTime::now(),
        body_type,
        transaction_id: hex(message.header.transaction_id.unwrap_or_default()),
        octets: octets.clone(),
        stage: Stage::Arrived,
    };
    // The number of releases as well: one that comes before this thread gets to hold
    // counts.
    let (index, treatment, releases) = {
        let mut state = shared.lock();
        state.seen.push(seen);
        let told = state
            .treatments
            .iter()
            .find(|&&(known, _)| known == body_type)
            .map(|&(_, treatment)| treatment);
        let treatment = told.unwrap_or(Treatment::Pass);
        (state.seen.len() - 1, treatment, state.releases)
    };
    shared.changed.notify_all();
    if treatment == Treatment::Swallow
        || (treatment == Treatment::HoldRequest && !shared.hold(releases))
    {
        shared.reached(index, Stage::Lost);
        return Ok(());
    }
    let answer = forward(shared, &content_type, &octets)
        .map_err(|error| format!("the CA at {}: {error}", shared.upstream))?;
    shared.reached(index, Stage::Answered);
    match treatment {
        Treatment::HoldAnswer if !shared.hold(releases) => {
            shared.reached(index, Stage::Lost);
            return Ok(());
        }
        // Before the client has the answer, because it may be quick.
        Treatment::PassAndClose => shared.close(),
        _ => {}
    }
    let mut client = client;
    let _ = client.write_all(&answer);
    shared.reached(index, Stage::Returned);
    Ok(())
}

/// The content type and the body of a request.
fn read_request(client: &TcpStream) -> io::Result<(String, Vec<u8>)> {
    let mut reader = BufReader::new(client);
    let (mut content_type, mut length) = (String::new(), 0);
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line)? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let line = line.trim_end();
        if line.is_empty() {
            break;
        }
        match line.split_once(':') {
            Some((name, value)) if name.eq_ignore_ascii_case("content-length") => {
                length = value.trim().parse().map_err(io::Error::other)?;
            }
            Some((name, value)) if name.eq_ignore_ascii_case("content-type") => {
                content_type = value.trim().into();
            }
            _ => {}
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body)?;
    Ok((content_type, body))
}

/// The CA's whole HTTP answer.
fn forward(shared: &Shared, content_type: &str, octets: &[u8]) -> io::Result<Vec<u8>> {
    let mut ca = TcpStream::connect(shared.upstream)?;
    ca.set_read_timeout(Some(PATIENCE))?;
    let head = format!(
        "POST {} HTTP/1.1\r\nhost: {}\r\ncontent-type: {content_type}\r\n\
         content-length: {}\r\nconnection: close\r\n\r\n",
        shared.path,
        shared.upstream,
        octets.len()
    );
    ca.write_all(&[head.as_bytes(), octets].concat())?;
    let mut answer = Vec::new();
    ca.read_to_end(&mut answer)?;
    if answer.is_empty() {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    Ok(answer)
}

fn hex(octets: &[u8]) -> String {
    octets.iter().map(|octet| format!("{octet:02x}")).collect()
}
