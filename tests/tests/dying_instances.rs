//! An instance of the component dies in the middle of a transaction, or its caller does: the
//! error has a type, the next call gets a fresh instance, and the transaction goes on under its
//! transactionID to the only certificate there is.

use std::fs;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use abide_host::wit::network::{NetworkError, Request, Response};
use abide_host::wit::storage::{Change, Claim, Claims, Entry, Filter, Lease, Page, StorageError};
use abide_host::wit::transactions::{
    Credential, Deviations, Enrollment, Limits, MacKind, Operation, Outcome, Phase, SharedSecret,
    TransactionError, Want,
};
use abide_host::{
    CallError, Enroller, FileKeys, HostError, HttpConfig, HttpNetwork, Network, NoTelemetry,
    Runtime, RuntimeConfig, Services, SqliteStorage, Storage,
};
use abide_tests::abide::{MockCa, cache};
use abide_tests::pem_to_der;
use abide_tests::pki::{KeyKind, Pki};
use async_trait::async_trait;
use tempfile::TempDir;

/// Room for an ordinary message, not for the answer of [`Way::Huge`].
const MEMORY: usize = 8 << 20;

/// How an answer of the CA comes back.
#[derive(Clone, Copy, Debug)]
enum Way {
    Plain,
    /// It takes so long.
    Late(Duration),
    /// In its place so many octets.
    Huge(usize),
    /// Never.
    Lost,
    /// The host has a defect.
    Panic,
}

/// The way to the CA, which has every request whatever becomes of its answer.
struct Road {
    http: HttpNetwork,
    way: Mutex<Way>,
    answered: AtomicUsize,
}

#[async_trait]
impl Network for Road {
    async fn exchange(&self, request: Request) -> Result<Response, NetworkError> {
        let response = self.http.exchange(request).await?;
        self.answered.fetch_add(1, Ordering::SeqCst);
        let way = *self.way.lock().expect("the way");
        match way {
            Way::Plain => Ok(response),
            Way::Late(time) => {
                tokio::time::sleep(time).await;
                Ok(response)
            }
            Way::Huge(length) => Ok(Response {
                body: vec![0; length],
                ..response
            }),
            Way::Lost => std::future::pending().await,
            Way::Panic => panic!("a defect of the network"),
        }
    }
}

/// A disk that takes its time.
struct SlowStorage {
    disk: SqliteStorage,
    pause: Duration,
}

#[async_trait]
impl Storage for SlowStorage {
    async fn get(&self, kind: &str, id: &str) -> Result<Option<Entry>, StorageError> {
        tokio::time::sleep(self.pause).await;
        self.disk.get(kind, id).await
    }

    async fn commit(&self, changes: Vec<Change>) -> Result<Vec<u64>, StorageError> {
        tokio::time::sleep(self.pause).await;
        self.disk.commit(changes).await
    }

    async fn list(
        &self,
        filter: Filter,
        cursor: Option<String>,
        limit: u32,
    ) -> Result<Page, StorageError> {
        tokio::time::sleep(self.pause).await;
        self.disk.list(filter, cursor, limit).await
    }

    async fn claim_due(&self, claim: Claim) -> Result<Claims, StorageError> {
        tokio::time::sleep(self.pause).await;
        self.disk.claim_due(claim).await
    }

    async fn renew(&self, leases: Vec<Lease>, until_ms: u64) -> Result<Vec<Lease>, StorageError> {
        self.disk.renew(leases, until_ms).await
    }

    async fn release(&self, leases: Vec<Lease>) -> Result<(), StorageError> {
        self.disk.release(leases).await
    }

    async fn count_state(&self, kind: &str, state: &str, limit: u32) -> Result<u32, StorageError> {
        self.disk.count_state(kind, state, limit).await
    }

    async fn count(&self, kind: &str, now_ms: u64, limit: u32) -> Result<(u32, u32), StorageError> {
        self.disk.count(kind, now_ms, limit).await
    }
}

struct World {
    dir: TempDir,
    ca: MockCa,
    road: Arc<Road>,
    enrollment: Enrollment,
}

impl World {
    fn new(way: Way) -> Self {
        let dir = tempfile::tempdir().expect("a folder for a test");
        let ca = MockCa::start(dir.path(), &[]);
        let pki = Pki::new(&dir.path().join("pki"), KeyKind::P256);
        let csr = pki.csr("device", &pki.path("client.key"), "/CN=device");
        let der = |path: &std::path::Path| pem_to_der(&fs::read_to_string(path).expect("PEM"));
        let enrollment = Enrollment {
            order: "device".into(),
            account: String::new(),
            operation: Operation::P10cr,
            want: Want::Csr(der(&csr)),
            profile: String::new(),
            server: ca.url().into(),
            recipient: String::new(),
            credential: Credential::Secret(SharedSecret {
                reference: MockCa::REF.into(),
                key: "secret".into(),
                iterations: 500,
                mac: MacKind::Pbm,
            }),
            trusted: vec![der(ca.root())],
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
                request_timeout_ms: 60_000,
            },
            registration: None,
        };
        let road = Arc::new(Road {
            http: HttpNetwork::new(HttpConfig::default()).expect("a network"),
            way: Mutex::new(way),
            answered: AtomicUsize::new(0),
        });
        Self {
            dir,
            ca,
            road,
            enrollment,
        }
    }

    fn disk(&self) -> SqliteStorage {
        SqliteStorage::open(&self.dir.path().join("store.db")).expect("a store")
    }

    /// A sandbox with one place: who died must have left it.
    async fn enroller(&self, storage: Arc<dyn Storage>, deadline: Duration) -> Enroller {
        let mut keys = FileKeys::new();
        keys.add_secret("secret", MockCa::SECRET.as_bytes().to_vec().into());
        let mut config = RuntimeConfig::default();
        config.cache = Some(cache());
        config.memory_limit = MEMORY;
        config.call_deadline = deadline;
        config.instances = 1;
        let enroller = Runtime::new(config).expect("a runtime").enroller(Services {
            storage,
            network: self.road.clone(),
            keys: Arc::new(keys),
            telemetry: Arc::new(NoTelemetry),
        });
        enroller.prepare().await.expect("a component");
        enroller
    }

    fn goes_on(&self) {
        *self.road.way.lock().expect("the way") = Way::Plain;
    }

    /// The transaction that a call left behind when it died, for which the CA has issued.
    async fn open_transaction(&self, enroller: &Enroller) -> String {
        let (all, _) = enroller.list(None, 10).await.expect("a list");
        let [transaction] = all.as_slice() else {
            panic!("{all:?}")
        };
        assert_eq!(transaction.phase, Phase::Enrolling);
        let id = transaction.transaction_id.clone();
        assert_eq!(self.issued(), [id.as_str()]);
        id
    }

    /// The transactionID of each certificate.
    fn issued(&self) -> Vec<String> {
        let books = self.ca.books().into_iter();
        books
            .filter(|entry| entry["event"] == "issued")
            .map(|entry| entry["transactionID"].as_str().expect("an id").to_owned())
            .collect()
    }

    async fn ends_well(&self, enroller: &Enroller, id: &str) {
        let progress = enroller.resume(&self.enrollment).await.expect("progress");
        assert_eq!(progress.transaction_id, id);
        let Outcome::Issued(issued) = progress.outcome else {
            panic!("{progress:?}")
        };
        assert_eq!(issued.chain.len(), 1);
        assert_eq!(self.issued(), [id], "one certificate");
    }
}

const GENEROUS: Duration = Duration::from_secs(30);

/// The first look at the guest after the answer is one too many.
#[tokio::test]
async fn the_deadline_passes_in_the_middle_of_an_exchange() {
    let world = World::new(Way::Late(Duration::from_millis(200)));
    let storage = Arc::new(world.disk());
    let hasty = world.enroller(storage.clone(), Duration::ZERO).await;
    let expected = CallError::Host(HostError::Deadline {
        component: "enroller",
        budget: Duration::ZERO,
    });
    let error = hasty.begin(&world.enrollment).await;
    assert_eq!(error.expect_err("no time"), expected);
    // On a busy machine the guest may be stopped before it has sent anything.
    for _ in 0..1000 {
        if world.road.answered.load(Ordering::SeqCst) > 0 {
            break;
        }
        let error = match hasty.resume(&world.enrollment).await {
            Err(CallError::Transaction(TransactionError::NotFound)) => {
                hasty.begin(&world.enrollment).await
            }
            other => other,
        };
        assert_eq!(error.expect_err("no time"), expected);
    }
    let patient = world.enroller(storage, GENEROUS).await;
    let id = world.open_transaction(&patient).await;
    world.goes_on();
    world.ends_well(&patient, &id).await;
}

#[tokio::test]
async fn an_answer_takes_more_memory_than_there_is() {
    let world = World::new(Way::Huge(2 * MEMORY));
    let enroller = world.enroller(Arc::new(world.disk()), GENEROUS).await;
    let expected = HostError::OutOfMemory {
        component: "enroller",
        limit: MEMORY,
    };
    let error = enroller.begin(&world.enrollment).await;
    assert_eq!(
        error.expect_err("no room"),
        CallError::Host(expected.clone())
    );
    let id = world.open_transaction(&enroller).await;
    // As often as it happens.
    for _ in 0..3 {
        let error = enroller.resume(&world.enrollment).await;
        assert_eq!(
            error.expect_err("no room"),
            CallError::Host(expected.clone())
        );
    }
    world.goes_on();
    world.ends_well(&enroller, &id).await;
}

#[tokio::test]
async fn the_caller_goes_away_in_the_middle_of_an_exchange() {
    let world = World::new(Way::Lost);
    let enroller = world.enroller(Arc::new(world.disk()), GENEROUS).await;
    let call = enroller.begin(&world.enrollment);
    let asked = async {
        while world.road.answered.load(Ordering::SeqCst) == 0 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::select! {
        result = call => panic!("{result:?}"),
        () = asked => {}
    }
    let id = world.open_transaction(&enroller).await;
    world.goes_on();
    world.ends_well(&enroller, &id).await;
}

#[tokio::test]
async fn an_import_panics() {
    let world = World::new(Way::Panic);
    let enroller = world.enroller(Arc::new(world.disk()), GENEROUS).await;
    let (caller, enrollment) = (enroller.clone(), world.enrollment.clone());
    let call = tokio::spawn(async move { caller.begin(&enrollment).await });
    assert!(call.await.expect_err("a panic").is_panic());
    let id = world.open_transaction(&enroller).await;
    world.goes_on();
    world.ends_well(&enroller, &id).await;
}

/// Each import takes longer than the whole call may compute.
#[tokio::test]
async fn slow_imports_cost_no_computing_time() {
    let world = World::new(Way::Late(Duration::from_millis(400)));
    let pause = Duration::from_millis(400);
    let disk = world.disk();
    let storage = Arc::new(SlowStorage { disk, pause });
    let enroller = world.enroller(storage, Duration::from_millis(300)).await;
    let progress = enroller.begin(&world.enrollment).await.expect("progress");
    assert!(
        matches!(progress.outcome, Outcome::Issued(_)),
        "{progress:?}"
    );
    assert_eq!(world.issued(), [progress.transaction_id]);
}
