//! A small CMP CA for trials on loopback (RFC 9810 under the rules of RFC 9483).
//!
//! It has a fresh root, says yes to whoever proves to know the shared secret or to hold
//! a certificate it issued before, and writes down everything it does in its
//! [books]. It can make its clients wait, and it can be as forgiving or as strict about
//! repeated requests as CAs in the field are. It is no part of what abide trusts: the
//! folder of the CA holds its private keys in clear, so nobody else should trust its
//! root either.
//!
//! * It answers ir, cr, p10cr, kur, rr, genm, certConf and pollReq. Everything else gets the
//!   protected error `badRequest`. kur and rr are signed by the certificate that they are about.
//! * Who sends no key in an ir, cr or kur gets one made by its key generation authority
//!   (RFC 9483, 4.1.6), encrypted for the secret or the certificate that protects the request.
//! * Registration authorities that it knows may say raVerified, and wrap a request in a nested
//!   message (RFC 9483, 5.2). Batches get an error.
//! * A request that is not authentic gets a *signed* error, whatever protected the
//!   request: who sends a wrong secret could not check a MAC with the right one, and
//!   would have material to guess the secret from.
//! * Every answer that changes something is in the books, on disk, before it leaves.
//!   From them a CA that is started again knows its transactions, so that a repeated
//!   request is still a repeated request. Only one thing is lost: when an older answer
//!   was sent again last, its nonce is no longer the one that the next pollReq or
//!   certConf may refer to.

mod authority;
pub mod books;
mod ca;
mod chaos;
mod client;
mod envelope;
mod files;
mod http;
mod issue;
mod key_generation;
mod limits;
mod random;
mod refusal;
mod register;
mod transactions;
mod wanted;
mod wire;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::{Context, bail};
use tokio::net::TcpListener;
use wire::{Scissors, Wires};

use ca::Ca;
use chaos::Weather;
pub use chaos::{Chaos, Fault, FaultRate, Rate};

/// How a CA behaves.
#[derive(Clone, Debug)]
pub struct Options {
    /// Where it listens: an address on loopback, whose port 0 picks a free one.
    pub listen: SocketAddr,
    /// The folder of its keys, certificates and books. It is made when it is absent.
    pub dir: PathBuf,
    /// The name under which clients know the shared secret: their senderKID.
    pub reference: Vec<u8>,
    /// The shared secret.
    pub secret: Vec<u8>,
    /// How many answers a request gets before the one with the certificate: the first
    /// says `waiting`, the others are pollRep.
    pub poll_count: u32,
    /// checkAfter of a pollRep, in seconds.
    pub check_after: u32,
    /// Whether implicit confirmation is granted to who asks for it.
    pub implicit_confirm: bool,
    /// What a request gets that was answered before.
    pub repeat: Repeat,
    /// The path of the CMP server; with and without its trailing slash.
    pub path: String,
    /// Certificates, as DER, that vouch for clients besides the CA's own root.
    pub trusted: Vec<Vec<u8>>,
    /// Certificates, as DER, of registration authorities: what they say of a proof of possession
    /// is believed, and requests come nested in a message of theirs.
    pub registration_authorities: Vec<Vec<u8>>,
    /// certReqId in the answer to a p10cr. RFC 9483, 4.1.4 asks for −1; Nokia's and
    /// EJBCA's servers send 0.
    pub p10cr_cert_req_id: i64,
    /// Faults on purpose.
    pub chaos: Option<Chaos>,
    /// Whether each request is a line on stderr.
    pub log: bool,
}

impl Options {
    /// A CA at `/pkix/` that grants at once and waits for the confirmation.
    pub fn new(
        listen: SocketAddr,
        dir: impl Into<PathBuf>,
        reference: impl Into<Vec<u8>>,
        secret: impl Into<Vec<u8>>,
    ) -> Self {
        Self {
            listen,
            dir: dir.into(),
            reference: reference.into(),
            secret: secret.into(),
            poll_count: 0,
            check_after: 1,
            implicit_confirm: false,
            repeat: Repeat::Replay,
            path: "/pkix/".into(),
            trusted: Vec::new(),
            registration_authorities: Vec::new(),
            p10cr_cert_req_id: -1,
            chaos: None,
            log: false,
        }
    }
}

/// What a request gets that was answered before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Repeat {
    /// A byte-for-byte repeat gets the same answer, byte for byte.
    Replay,
    /// The CA remembers transactions but not messages: a repeated ir, cr or p10cr gets
    /// the error `transactionIdInUse`, a repeated certConf `certConfirmed`, a repeated
    /// pollReq `badRecipientNonce`.
    Refuse,
}

/// A CA that listens and, once [served](Self::serve), answers.
#[derive(Debug)]
pub struct MockCa {
    listener: TcpListener,
    url: String,
    root_pem: String,
    log: bool,
    path: String,
    chaos: Option<Chaos>,
    desk: Arc<Desk>,
    closing: Closing,
}

/// The CA, as long as it is open.
type Desk = Mutex<Option<Ca>>;

impl MockCa {
    /// Opens the folder and the port.
    pub async fn bind(options: Options) -> anyhow::Result<Self> {
        if !options.listen.ip().is_loopback() {
            bail!(
                "a CA for trials listens on loopback only, and {} is not: use 127.0.0.1 or [::1]",
                options.listen.ip()
            );
        }
        if options.p10cr_cert_req_id < -1 {
            bail!(
                "certReqId {} for a p10cr is below −1",
                options.p10cr_cert_req_id
            );
        }
        http::check_path(&options.path)?;
        let ca = Ca::open(&options)?;
        let listener = TcpListener::bind(options.listen)
            .await
            .with_context(|| format!("cannot listen on {}", options.listen))?;
        let address = listener
            .local_addr()
            .context("the port that was opened has no address")?;
        let root_pem = ca.root_pem();
        let desk = Arc::new(Mutex::new(Some(ca)));
        Ok(Self {
            listener,
            url: format!("http://{address}{}", options.path),
            root_pem,
            log: options.log,
            path: options.path,
            chaos: options.chaos,
            closing: Closing(Arc::clone(&desk)),
            desk,
        })
    }

    /// Where clients find it.
    pub fn url(&self) -> String {
        self.url.clone()
    }

    /// Its root certificate, for clients to trust.
    pub fn root_pem(&self) -> String {
        self.root_pem.clone()
    }

    /// Answers until the future is dropped. Then nothing is answered any more, on
    /// connections that are still open neither, and the folder is free for another CA.
    pub async fn serve(self) -> anyhow::Result<()> {
        let Self {
            listener,
            log,
            path,
            chaos,
            desk,
            closing,
            ..
        } = self;
        let router = http::router(desk, &path, Weather::new(chaos), log);
        let service = router.into_make_service_with_connect_info::<Scissors>();
        let served = axum::serve(Wires(listener), service).await;
        drop(closing);
        served.context("the CA stopped listening")
    }
}

/// Closes the CA when it is no longer served: connections live in tasks of their own,
/// which would keep its folder occupied.
#[derive(Debug)]
struct Closing(Arc<Desk>);

impl Drop for Closing {
    fn drop(&mut self) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }
}
