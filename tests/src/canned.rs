//! A server that gives every request the same answer, right or wrong.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::{self, JoinHandle};

/// What a request gets.
#[derive(Clone, Debug)]
pub enum Answer {
    /// These octets, after which the connection is closed.
    Octets(Vec<u8>),
    /// The end of the connection.
    Close,
    /// Nothing, as long as the client cares to wait.
    Silence,
}

impl Answer {
    /// An HTTP answer with a body.
    pub fn http(status: &str, content_type: &str, body: &[u8]) -> Self {
        let length = body.len();
        let head = format!(
            "HTTP/1.1 {status}\r\nContent-Type: {content_type}\r\nContent-Length: {length}\r\n\
             Connection: close\r\n\r\n"
        );
        Self::Octets([head.as_bytes(), body].concat())
    }
}

/// The server, on a free port of the loopback. Its thread ends with it.
#[derive(Debug)]
pub struct Canned {
    address: SocketAddr,
    asked: Arc<AtomicUsize>,
    ending: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Canned {
    /// Starts a server.
    pub fn start(answer: Answer) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a free port");
        let address = listener.local_addr().expect("its address");
        let asked = Arc::new(AtomicUsize::new(0));
        let ending = Arc::new(AtomicBool::new(false));
        let thread = thread::spawn({
            let (asked, ending) = (Arc::clone(&asked), Arc::clone(&ending));
            move || {
                for stream in listener.incoming() {
                    if ending.load(Ordering::SeqCst) {
                        return;
                    }
                    if let Ok(stream) = stream {
                        serve(stream, &answer, &asked);
                    }
                }
            }
        });
        Self {
            address,
            asked,
            ending,
            thread: Some(thread),
        }
    }

    /// Where it is reached.
    pub fn url(&self) -> String {
        format!("http://{}/pkix/", self.address)
    }

    /// How many requests have arrived whole.
    pub fn asked(&self) -> usize {
        self.asked.load(Ordering::SeqCst)
    }
}

impl Drop for Canned {
    fn drop(&mut self) {
        self.ending.store(true, Ordering::SeqCst);
        // Wakes the thread, which waits for a client.
        let _ = TcpStream::connect(self.address);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Errors are the client's: it may leave whenever it likes.
fn serve(stream: TcpStream, answer: &Answer, asked: &AtomicUsize) {
    let mut reader = BufReader::new(stream);
    if read_request(&mut reader).is_none() {
        return;
    }
    asked.fetch_add(1, Ordering::SeqCst);
    match answer {
        Answer::Octets(octets) => {
            let _ = reader.get_mut().write_all(octets);
        }
        Answer::Close => {}
        Answer::Silence => {
            let _ = reader.read(&mut [0]);
        }
    }
}

/// Takes a request off the wire. A connection that is closed with octets unread is reset,
/// and the answer may be lost with it.
fn read_request(reader: &mut impl BufRead) -> Option<()> {
    let mut length = 0;
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line).ok()? == 0 {
            return None;
        }
        let line = line.trim_end().to_ascii_lowercase();
        if line.is_empty() {
            break;
        }
        if let Some(value) = line.strip_prefix("content-length:") {
            length = value.trim().parse().ok()?;
        }
    }
    reader.read_exact(&mut vec![0; length]).ok()
}
