//! What is enrolled, and services that watch the clock.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use abide_host::wit::network::{NetworkError, Request, Response};
use abide_host::wit::storage::{Change, Claim, Claims, Entry, Filter, Lease, Page, StorageError};
use abide_host::wit::transactions::{
    CertificateCredential, Credential, Deviations, Enrollment, Limits, Operation, Want,
};
use abide_host::{
    Enroller, FileKeys, HttpConfig, HttpNetwork, Network, NoTelemetry, Runtime, RuntimeConfig,
    Services, SqliteStorage, Storage,
};
use async_trait::async_trait;
use rustls_pki_types::CertificateDer;
use rustls_pki_types::pem::PemObject;

use crate::{Result, issued};

/// The name of the client's key.
const KEY: &str = "client";

/// One CA and one client.
#[derive(Clone)]
pub(crate) struct World {
    folder: PathBuf,
    template: Enrollment,
}

impl World {
    /// `ca` is the CA's root in PEM.
    pub(crate) fn read(folder: &Path, url: &str, ca: &str) -> Result<Self> {
        let csr = fs::read(folder.join("new.csr"))?;
        let (_, csr) = <(rustls_pki_types::pem::SectionKind, Vec<u8>)>::from_pem_slice(&csr)
            .map_err(|why| format!("new.csr: {why}"))?;
        let certificate = CertificateDer::from_pem_file(folder.join("new.crt"))?;
        let root = CertificateDer::from_pem_slice(ca.as_bytes())?;
        let template = Enrollment {
            order: String::new(),
            account: String::new(),
            operation: Operation::P10cr,
            want: Want::Csr(csr),
            profile: String::new(),
            server: url.to_owned(),
            recipient: String::new(),
            credential: Credential::Certificate(CertificateCredential {
                certificate: certificate.to_vec(),
                chain: Vec::new(),
                key: KEY.to_owned(),
            }),
            trusted: vec![root.to_vec()],
            out_trusted: Vec::new(),
            untrusted: Vec::new(),
            implicit_confirm: false,
            allow_sha1: false,
            allow: Deviations::empty(),
            limits: Limits {
                maximum_duration_ms: 600_000,
                minimum_poll_interval_ms: 1000,
                maximum_poll_interval_ms: 60_000,
                maximum_polls: 10,
                request_timeout_ms: 600_000,
            },
            registration: None,
        };
        Ok(Self {
            folder: folder.to_owned(),
            template,
        })
    }

    /// The same at another server.
    pub(crate) fn at(&self, url: &str) -> Self {
        let mut other = self.clone();
        other.template.server = url.to_owned();
        other
    }

    pub(crate) fn url(&self) -> &str {
        &self.template.server
    }

    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    pub(crate) fn enrollment(&self, order: String) -> Enrollment {
        Enrollment {
            order,
            ..self.template.clone()
        }
    }

    pub(crate) fn road(&self) -> Result<Road> {
        Ok(Road {
            http: HttpNetwork::new(HttpConfig::default())?,
            waited: Waited::default(),
            under_way: AtomicUsize::new(0),
            stopped: None,
            seen: Mutex::new(Vec::new()),
        })
    }

    pub(crate) fn store(&self, name: &str) -> Result<Store> {
        Ok(Store {
            disk: SqliteStorage::open(&self.file(name))?,
            waited: Waited::default(),
            seen: Mutex::new(Vec::new()),
        })
    }

    pub(crate) async fn enroller(
        &self,
        storage: Arc<Store>,
        network: Arc<Road>,
        instances: usize,
    ) -> Result<Enroller> {
        let mut keys = FileKeys::new();
        keys.add_private_key(KEY, &fs::read(self.file("new.key"))?, None)?;
        let mut config = RuntimeConfig::default();
        config.cache = Some(self.file("cache"));
        config.instances = u32::try_from(instances)?;
        let enroller = Runtime::new(config)?.enroller(Services {
            storage,
            network,
            keys: Arc::new(keys),
            telemetry: Arc::new(NoTelemetry),
        });
        enroller.prepare().await?;
        Ok(enroller)
    }

    /// First requests of so many enrollments, none of which went out.
    pub(crate) async fn unsent_requests(
        &self,
        count: usize,
        instances: usize,
    ) -> Result<Vec<Vec<u8>>> {
        let mut road = self.road()?;
        road.stopped = Some(NetworkError::Unreachable("it stays at home".to_owned()));
        let (road, store) = (Arc::new(road), Arc::new(self.store("unsent.db")?));
        let enroller = self.enroller(store, road.clone(), instances).await?;
        for number in 0..count {
            // Its outcome is that the CA cannot be reached.
            enroller
                .begin(&self.enrollment(format!("unsent-{number}")))
                .await?;
        }
        let requests = std::mem::take(&mut *lock(&road.seen));
        Ok(requests)
    }

    /// What one enrollment writes and sends.
    pub(crate) async fn tape(&self) -> Result<Tape> {
        let (road, store) = (Arc::new(self.road()?), Arc::new(self.store("tape.db")?));
        let enroller = self.enroller(store.clone(), road.clone(), 1).await?;
        issued(&enroller, self, "tape".to_owned()).await?;
        let (commits, requests) = (lock(&store.seen).clone(), lock(&road.seen).len());
        Ok(Tape {
            commits,
            exchanges: requests,
        })
    }
}

/// What one enrollment writes and sends.
#[derive(Clone)]
pub(crate) struct Tape {
    /// The octets of each record of each commit.
    pub(crate) commits: Vec<Vec<usize>>,
    exchanges: usize,
}

impl Tape {
    pub(crate) fn commits(&self) -> usize {
        self.commits.len()
    }

    pub(crate) fn exchanges(&self) -> usize {
        self.exchanges
    }
}

/// Time spent waiting.
#[derive(Default)]
pub(crate) struct Waited(AtomicU64);

impl Waited {
    async fn on<T>(&self, work: impl Future<Output = T>) -> T {
        let start = Instant::now();
        let result = work.await;
        let nanos = u64::try_from(start.elapsed().as_nanos()).unwrap_or(u64::MAX);
        self.0.fetch_add(nanos, Ordering::Relaxed);
        result
    }

    pub(crate) fn get(&self) -> Duration {
        Duration::from_nanos(self.0.load(Ordering::Relaxed))
    }
}

/// The way to the CA.
pub(crate) struct Road {
    http: HttpNetwork,
    pub(crate) waited: Waited,
    /// Exchanges that have begun.
    pub(crate) under_way: AtomicUsize,
    /// What every exchange ends with, if none goes out.
    stopped: Option<NetworkError>,
    seen: Mutex<Vec<Vec<u8>>>,
}

#[async_trait]
impl Network for Road {
    async fn exchange(&self, request: Request) -> std::result::Result<Response, NetworkError> {
        self.under_way.fetch_add(1, Ordering::SeqCst);
        if let Some(error) = &self.stopped {
            lock(&self.seen).push(request.message);
            return Err(error.clone());
        }
        lock(&self.seen).push(Vec::new());
        self.waited.on(self.http.exchange(request)).await
    }
}

/// SQLite.
pub(crate) struct Store {
    disk: SqliteStorage,
    pub(crate) waited: Waited,
    seen: Mutex<Vec<Vec<usize>>>,
}

#[async_trait]
impl Storage for Store {
    async fn get(&self, kind: &str, id: &str) -> std::result::Result<Option<Entry>, StorageError> {
        self.waited.on(self.disk.get(kind, id)).await
    }

    async fn commit(&self, changes: Vec<Change>) -> std::result::Result<Vec<u64>, StorageError> {
        let sizes = changes.iter().map(|change| match change {
            Change::Put(put) => put.body.len(),
            Change::Delete(_) | Change::Guard(_) => 0,
        });
        lock(&self.seen).push(sizes.collect());
        self.waited.on(self.disk.commit(changes)).await
    }

    async fn list(
        &self,
        filter: Filter,
        cursor: Option<String>,
        limit: u32,
    ) -> std::result::Result<Page, StorageError> {
        self.waited.on(self.disk.list(filter, cursor, limit)).await
    }

    async fn claim_due(&self, claim: Claim) -> std::result::Result<Claims, StorageError> {
        self.waited.on(self.disk.claim_due(claim)).await
    }

    async fn renew(
        &self,
        leases: Vec<Lease>,
        until_ms: u64,
    ) -> std::result::Result<Vec<Lease>, StorageError> {
        self.waited.on(self.disk.renew(leases, until_ms)).await
    }

    async fn release(&self, leases: Vec<Lease>) -> std::result::Result<(), StorageError> {
        self.waited.on(self.disk.release(leases)).await
    }

    async fn count_state(
        &self,
        kind: &str,
        state: &str,
        limit: u32,
    ) -> std::result::Result<u32, StorageError> {
        self.waited
            .on(self.disk.count_state(kind, state, limit))
            .await
    }

    async fn count(
        &self,
        kind: &str,
        now_ms: u64,
        limit: u32,
    ) -> std::result::Result<(u32, u32), StorageError> {
        self.waited.on(self.disk.count(kind, now_ms, limit)).await
    }
}

/// Nothing fails while it is held.
fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
