//! A TCP proxy on loopback on which nobody can rely: by a seed it delays messages, drops them,
//! and cuts connections in the middle of one. It keeps books of what reached the CA and of
//! what the CA said to it, whether or not the client ever heard.

use std::fmt;
use std::net::SocketAddr;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use abide_cmp::{BodyType, CertOrEncCert, PkiBody, PkiMessage};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::Runtime;

use crate::seed::Seed;

/// The longest that a message is delayed.
const DELAY: Duration = Duration::from_millis(300);
/// For the CA's answer: it may share its machine with a compiler.
const PATIENCE: Duration = Duration::from_secs(60);
/// Messages in a row that do not arrive. The pauses between two tries double with each: after
/// five of them a client has waited for two and a half minutes, after seven for more than ten.
const MOST_LOSSES: u32 = 5;

/// What happens to one message of either direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    Passes,
    Delayed(Duration),
    Dropped,
    CutInTheMiddle,
}

impl Fate {
    /// Of a hundred messages 86 arrive in the end, so that of a hundred requests 74 are heard of
    /// again: the pauses between two tries grow with each one in a row that fails.
    fn draw(seed: &mut Seed) -> Self {
        match seed.below(100) {
            0..70 => Self::Passes,
            70..86 => Self::Delayed(seed.time(DELAY)),
            86..95 => Self::Dropped,
            _ => Self::CutInTheMiddle,
        }
    }
}

/// A request that has reached the CA, and its answer.
#[derive(Clone)]
pub struct Exchange {
    /// What the client said.
    pub body_type: BodyType,
    /// In lowercase hexadecimal.
    pub transaction_id: String,
    /// The request, octet for octet.
    pub octets: Vec<u8>,
    /// What the CA said; absent when it said nothing.
    pub answer: Option<BodyType>,
    /// The certificate in the answer, as DER.
    pub certificate: Option<Vec<u8>>,
}

/// Without the octets, which nobody reads.
impl fmt::Debug for Exchange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let answer = self.answer.map_or("nothing", BodyType::name);
        write!(
            f,
            "{} {} got {answer}",
            self.transaction_id,
            self.body_type.name()
        )
    }
}

/// The proxy. It ends with this value.
#[derive(Debug)]
pub struct Weather {
    shared: Arc<Shared>,
    address: SocketAddr,
    path: String,
    _runtime: Runtime,
}

#[derive(Debug)]
struct Shared {
    upstream: SocketAddr,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug)]
struct State {
    seed: Seed,
    /// Messages in a row that did not arrive.
    losses: u32,
    /// Requests that have come from the client, whatever became of them.
    arrived: usize,
    exchanges: Vec<Exchange>,
    faults: Vec<String>,
}

impl Weather {
    /// A proxy on a free port before the CA at `upstream`, an `http://` URL.
    ///
    /// # Panics
    ///
    /// When there is no port.
    pub fn new(upstream: &str, seed: Seed) -> Self {
        let rest = upstream.strip_prefix("http://").expect("an http:// URL");
        let (authority, path) = rest.split_once('/').expect("a URL with a path");
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()
            .expect("a runtime");
        let listener = runtime
            .block_on(TcpListener::bind(("127.0.0.1", 0)))
            .expect("a free port");
        let address = listener.local_addr().expect("the address of a socket");
        let shared = Arc::new(Shared {
            upstream: authority.parse().expect("an address and a port"),
            state: Mutex::new(State {
                seed,
                losses: 0,
                arrived: 0,
                exchanges: Vec::new(),
                faults: Vec::new(),
            }),
            changed: Condvar::new(),
        });
        let accepting = Arc::clone(&shared);
        runtime.spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                let shared = Arc::clone(&accepting);
                tokio::spawn(async move {
                    if let Err(fault) = serve(client, &shared).await {
                        shared.lock().faults.push(fault);
                    }
                });
            }
        });
        Self {
            shared,
            address,
            path: format!("/{path}"),
            _runtime: runtime,
        }
    }

    /// The URL for the client.
    pub fn url(&self) -> String {
        format!("http://{}{}", self.address, self.path)
    }

    /// How many requests have come from the client.
    pub fn arrived(&self) -> usize {
        self.shared.lock().arrived
    }

    /// Waits until so many requests have come, though not for ever.
    pub fn wait_for(&self, arrived: usize, patience: Duration) {
        let deadline = Instant::now() + patience;
        let mut state = self.shared.lock();
        while state.arrived < arrived {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return;
            }
            state = self
                .shared
                .changed
                .wait_timeout(state, left)
                .unwrap_or_else(PoisonError::into_inner)
                .0;
        }
    }

    /// Every request that has reached the CA.
    ///
    /// # Panics
    ///
    /// When the proxy itself could not do its work.
    pub fn exchanges(&self) -> Vec<Exchange> {
        let state = self.shared.lock();
        assert_eq!(state.faults, [""; 0], "the proxy failed");
        state.exchanges.clone()
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn fate(&self) -> Fate {
        let mut state = self.lock();
        match Fate::draw(&mut state.seed) {
            Fate::Dropped | Fate::CutInTheMiddle if state.losses == MOST_LOSSES => Fate::Passes,
            fate @ (Fate::Dropped | Fate::CutInTheMiddle) => {
                state.losses += 1;
                fate
            }
            fate => fate,
        }
    }
}

/// Serves a connection to its end. The way to the CA lives as long: some servers keep what they
/// know of a transaction with it. That a client dies is no fault, whenever it happens.
async fn serve(client: TcpStream, shared: &Shared) -> Result<(), String> {
    let _ = client.set_nodelay(true);
    let mut client = BufReader::new(client);
    let mut upstream: Option<BufReader<TcpStream>> = None;
    while let Some(request) = read_message(&mut client).await {
        shared.lock().arrived += 1;
        shared.changed.notify_all();
        let fate = shared.fate();
        match fate {
            Fate::Dropped => return Ok(()),
            Fate::Delayed(time) => tokio::time::sleep(time).await,
            Fate::Passes | Fate::CutInTheMiddle => {}
        }
        let ca = match &mut upstream {
            Some(open) => open,
            none => {
                let stream = TcpStream::connect(shared.upstream)
                    .await
                    .map_err(|error| format!("the CA at {}: {error}", shared.upstream))?;
                let _ = stream.set_nodelay(true);
                none.insert(BufReader::new(stream))
            }
        };
        if fate == Fate::CutInTheMiddle {
            let _ = ca
                .write_all(&request.octets[..request.octets.len() / 2])
                .await;
            return Ok(());
        }
        let number = note(shared, &request)?;
        // A CA that has closed the connection meanwhile has not got this.
        let _ = ca.write_all(&request.octets).await;
        let answer = tokio::time::timeout(PATIENCE, read_message(ca))
            .await
            .map_err(|_| format!("the CA at {} is silent", shared.upstream))?;
        let Some(answer) = answer else {
            return Ok(());
        };
        note_answer(shared, number, &answer);
        match shared.fate() {
            Fate::Dropped => return Ok(()),
            Fate::CutInTheMiddle => {
                let half = &answer.octets[..answer.octets.len() / 2];
                let _ = client.write_all(half).await;
                return Ok(());
            }
            Fate::Delayed(time) => tokio::time::sleep(time).await,
            Fate::Passes => {}
        }
        if client.write_all(&answer.octets).await.is_err() {
            return Ok(());
        }
        shared.lock().losses = 0;
    }
    Ok(())
}

fn note(shared: &Shared, request: &Http) -> Result<usize, String> {
    let octets = request.body();
    let message = PkiMessage::from_der(octets)
        .map_err(|error| format!("a request is no PKIMessage: {error}"))?;
    let id = message.header.transaction_id.unwrap_or_default();
    let mut state = shared.lock();
    state.exchanges.push(Exchange {
        body_type: message.body.body_type(),
        transaction_id: id.iter().map(|octet| format!("{octet:02x}")).collect(),
        octets: octets.to_vec(),
        answer: None,
        certificate: None,
    });
    Ok(state.exchanges.len() - 1)
}

fn note_answer(shared: &Shared, number: usize, answer: &Http) {
    let Ok(message) = PkiMessage::from_der(answer.body()) else {
        return;
    };
    let delivered = match &message.body {
        PkiBody::Ip(content) | PkiBody::Cp(content) | PkiBody::Kup(content) => content
            .responses
            .first()
            .and_then(|response| response.certified_key_pair.as_ref()),
        _ => None,
    };
    let certificate = match delivered.map(|pair| &pair.cert_or_enc_cert) {
        Some(CertOrEncCert::Certificate(der)) => Some(der.to_vec()),
        _ => None,
    };
    let exchange = &mut shared.lock().exchanges[number];
    exchange.answer = Some(message.body.body_type());
    exchange.certificate = certificate;
}

/// An HTTP message as it came.
struct Http {
    octets: Vec<u8>,
    head: usize,
}

impl Http {
    fn body(&self) -> &[u8] {
        &self.octets[self.head..]
    }
}

/// None at the end of the connection, wherever that is.
async fn read_message(reader: &mut BufReader<TcpStream>) -> Option<Http> {
    let mut octets = Vec::new();
    let mut length: Option<usize> = None;
    loop {
        let begin = octets.len();
        if reader.read_until(b'\n', &mut octets).await.ok()? == 0 {
            return None;
        }
        let line = String::from_utf8_lossy(&octets[begin..]).to_ascii_lowercase();
        if line.trim_end().is_empty() {
            break;
        }
        if let Some(value) = line.strip_prefix("content-length:") {
            length = value.trim().parse().ok();
        }
    }
    let head = octets.len();
    match length {
        Some(length) => {
            octets.resize(head + length, 0);
            reader.read_exact(&mut octets[head..]).await.ok()?;
        }
        // Without a length the end of the connection is the end of the message.
        None => {
            reader.read_to_end(&mut octets).await.ok()?;
        }
    }
    Some(Http { octets, head })
}
