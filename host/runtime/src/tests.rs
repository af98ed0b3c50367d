//! The sandbox holds: guests that loop, trap, devour memory or ask for too much end in typed
//! errors, and the next call works. The guests are written by hand for that.

use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use async_trait::async_trait;
use wit_component::{ComponentEncoder, StringEncoding};

use crate::wit::backoff::{Decision, Exponential, Failures};
use crate::wit::message::{Leniency, Options, Trust, VerifyError};
use crate::wit::network::{NetworkError, Request, Response};
use crate::wit::telemetry::Event;
use crate::wit::transactions::{
    CertificateCredential, Credential, Deviations, Enrollment, Limits, Operation, TransactionError,
    Want,
};
use crate::{
    CallError, Enroller, FileKeys, Gate, HostError, MemoryStorage, Network, NoTelemetry, Runtime,
    RuntimeConfig, Services, Warning,
};

const MESSAGE: &[u8] = b"whatever";

fn strict() -> Leniency {
    Leniency::empty()
}

fn options() -> Options {
    Options {
        leniency: strict(),
        allow_sha1: false,
    }
}

/// A core module in text form as a component of a world.
fn component(world: &str, text: &str) -> Vec<u8> {
    let mut module = wat::parse_str(text).unwrap();
    let mut resolve = wit_parser::Resolve::default();
    let wit = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../wit");
    let (package, _) = resolve.push_path(wit).unwrap();
    let world = resolve.select_world(&[package], Some(world)).unwrap();
    wit_component::embed_component_metadata(&mut module, &resolve, world, StringEncoding::UTF8)
        .unwrap();
    ComponentEncoder::default()
        .module(&module)
        .unwrap()
        .encode()
        .unwrap()
}

fn config() -> RuntimeConfig {
    RuntimeConfig {
        memory_limit: 8 << 20,
        call_deadline: Duration::from_millis(50),
        instances: 4,
        ..RuntimeConfig::default()
    }
}

fn gate(config: RuntimeConfig) -> Gate {
    let runtime = Runtime::new(config).unwrap();
    assert_eq!(runtime.warnings(), []);
    runtime.gate_from(component("gate", include_str!("tests/gate.wat")))
}

/// An hour, doubling, at most 32 hours: the data in the module.
async fn assert_works(gate: &Gate) {
    let policy = gate.default_policy().await.unwrap();
    let expected = Exponential {
        base_ms: 3_600_000,
        factor_percent: 200,
        cap_ms: 115_200_000,
    };
    assert_eq!(policy, expected);
}

#[tokio::test]
async fn an_endless_loop_ends_at_the_deadline() {
    let gate = gate(config());
    let begin = Instant::now();
    let budget = Duration::from_millis(50);
    let expected = HostError::Deadline {
        component: "gate",
        budget,
    };
    assert_eq!(gate.decode(MESSAGE, strict()).await.unwrap_err(), expected);
    assert!(begin.elapsed() >= budget);
    assert_works(&gate).await;
}

#[tokio::test]
async fn a_greedy_guest_ends_at_the_memory_limit() {
    let gate = gate(config());
    let expected = HostError::OutOfMemory {
        component: "gate",
        limit: 8 << 20,
    };
    assert_eq!(
        gate.describe(MESSAGE, strict()).await.unwrap_err(),
        expected
    );
    assert_works(&gate).await;
}

#[tokio::test]
async fn a_trap_is_an_error_and_the_instance_is_replaced() {
    let gate = gate(config());
    let trust = Trust::Secret(Vec::new());
    for _ in 0..20 {
        let error = gate.verify(MESSAGE, &trust, options()).await.unwrap_err();
        let HostError::Trap { component, reason } = error else {
            panic!("{error}")
        };
        assert_eq!(component, "gate");
        assert!(reason.contains("unreachable"), "{reason}");
    }
    assert_works(&gate).await;
}

#[tokio::test]
async fn an_answer_outside_of_memory_is_an_error() {
    let gate = gate(config());
    let policy = gate.default_policy().await.unwrap();
    let error = gate.delay(policy, Some(1)).await.unwrap_err();
    assert!(matches!(error, HostError::Trap { .. }), "{error:?}");
    assert_works(&gate).await;
}

#[tokio::test]
async fn what_is_no_component_is_refused() {
    let runtime = Runtime::new(config()).unwrap();
    let error = runtime.gate_from(b"MZ".to_vec()).default_policy().await;
    assert!(
        matches!(error, Err(HostError::Component { .. })),
        "{error:?}"
    );
    // A component of another world lacks the exports.
    let other = component("enroller", include_str!("tests/enroller.wat"));
    let error = runtime.gate_from(other).default_policy().await;
    assert!(
        matches!(error, Err(HostError::Component { .. })),
        "{error:?}"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn more_calls_than_instances_wait_for_their_turn() {
    let gate = gate(config());
    let calls: Vec<_> = (0..100)
        .map(|_| {
            let gate = gate.clone();
            tokio::spawn(async move { assert_works(&gate).await })
        })
        .collect();
    for call in calls {
        call.await.unwrap();
    }
}

#[tokio::test]
async fn compiled_code_is_kept_in_a_directory_of_ones_own() {
    let directory = tempfile::tempdir().unwrap();
    let cache = directory.path().join("deep").join("cache");
    let with_cache = || RuntimeConfig {
        cache: Some(cache.clone()),
        ..config()
    };
    assert_works(&gate(with_cache())).await;
    use std::os::unix::fs::PermissionsExt;
    let mode = |mode| std::fs::Permissions::from_mode(mode);
    let found = std::fs::metadata(&cache).unwrap().permissions().mode();
    assert_eq!(found & 0o777, 0o700);
    assert!(std::fs::read_dir(&cache).unwrap().next().is_some());

    std::fs::set_permissions(&cache, mode(0o777)).unwrap();
    let runtime = Runtime::new(with_cache()).unwrap();
    assert!(
        matches!(runtime.warnings(), [Warning::CacheUnusable { .. }]),
        "{:?}",
        runtime.warnings()
    );
    std::fs::set_permissions(&cache, mode(0o700)).unwrap();

    let file = directory.path().join("file");
    std::fs::write(&file, "in the way").unwrap();
    let runtime = Runtime::new(RuntimeConfig {
        cache: Some(file),
        ..config()
    })
    .unwrap();
    assert_eq!(runtime.warnings().len(), 1);
}

/// One hour, doubling, at most 32 hours, in milliseconds.
#[tokio::test]
async fn the_gate_that_is_carried_along_works() {
    let gate = Runtime::new(RuntimeConfig::default()).unwrap().gate();
    assert_works(&gate).await;
    let policy = gate.default_policy().await.unwrap();
    for (attempts, expected) in [(1, 3_600_000), (2, 7_200_000), (6, 115_200_000)] {
        let delay = gate.delay(policy, Some(attempts)).await.unwrap();
        assert_eq!(delay, Ok(expected));
    }
    let failures = Failures {
        attempts: Some(1),
        last_failure_ms: Some(1_000_000),
    };
    let next = gate
        .next_attempt(policy, failures, 1_000_000)
        .await
        .unwrap();
    assert_eq!(next, Ok(Decision::WaitUntil(4_600_000)));
    let error = gate.decode(b"<html>", strict()).await.unwrap().unwrap_err();
    assert_eq!(error.offset, 0);
    let error = gate
        .describe(b"<html>", strict())
        .await
        .unwrap()
        .unwrap_err();
    assert_eq!(error.offset, 0);
    let trust = Trust::Secret(b"secret".to_vec());
    let error = gate
        .verify(b"<html>", &trust, options())
        .await
        .unwrap()
        .unwrap_err();
    assert!(matches!(error, VerifyError::Undecodable(_)), "{error:?}");
}

#[tokio::test]
async fn the_enroller_that_is_carried_along_works() {
    let services = Services {
        storage: Arc::new(MemoryStorage::new()),
        network: Arc::new(SlowNetwork::default()),
        keys: Arc::new(FileKeys::new()),
        telemetry: Arc::new(NoTelemetry),
    };
    let runtime = Runtime::new(RuntimeConfig::default()).unwrap();
    let enroller = runtime.enroller(services);
    assert_eq!(enroller.list(None, 10).await.unwrap(), (Vec::new(), None));
    let error = enroller.get(&"00".repeat(16)).await.unwrap_err();
    assert_eq!(error, CallError::Transaction(TransactionError::NotFound));
}

/// Takes its time, and remembers what it was asked.
#[derive(Default)]
struct SlowNetwork {
    asked: Mutex<Vec<(u64, u32)>>,
}

#[async_trait]
impl Network for SlowNetwork {
    async fn exchange(&self, request: Request) -> Result<Response, NetworkError> {
        let asked = (request.timeout_ms, request.response_limit);
        self.asked.lock().unwrap().push(asked);
        tokio::time::sleep(Duration::from_millis(300)).await;
        Err(NetworkError::Unreachable(request.endpoint))
    }
}

type Events = Arc<Mutex<Vec<Event>>>;

fn enroller() -> (Enroller, Arc<SlowNetwork>, Events) {
    let network = Arc::new(SlowNetwork::default());
    let events = Events::default();
    let heard = events.clone();
    let services = Services {
        storage: Arc::new(MemoryStorage::new()),
        network: network.clone(),
        keys: Arc::new(FileKeys::new()),
        telemetry: Arc::new(move |event| heard.lock().unwrap().push(event)),
    };
    let component = component("enroller", include_str!("tests/enroller.wat"));
    let runtime = Runtime::new(config()).unwrap();
    (runtime.enroller_from(component, services), network, events)
}

fn enrollment() -> Enrollment {
    Enrollment {
        order: "order".to_owned(),
        account: String::new(),
        operation: Operation::P10cr,
        want: Want::Csr(vec![0x30, 0x00]),
        profile: String::new(),
        server: "http://ca.example/".to_owned(),
        recipient: String::new(),
        credential: Credential::Certificate(CertificateCredential {
            certificate: Vec::new(),
            chain: Vec::new(),
            key: "key".to_owned(),
        }),
        trusted: Vec::new(),
        out_trusted: Vec::new(),
        untrusted: Vec::new(),
        implicit_confirm: false,
        allow_sha1: false,
        allow: Deviations::empty(),
        limits: Limits {
            maximum_duration_ms: 1,
            minimum_poll_interval_ms: 1,
            maximum_poll_interval_ms: 1,
            maximum_polls: 1,
            request_timeout_ms: 1,
        },
        registration: None,
    }
}

#[tokio::test]
async fn waiting_is_not_computing_and_numbers_are_clamped() {
    let (enroller, network, _) = enroller();
    // Six times the deadline passes in the host.
    let error = enroller.resume(&enrollment()).await.unwrap_err();
    assert_eq!(error, CallError::Transaction(TransactionError::NotFound));
    // 600 seconds and 16 MiB, not what the guest said.
    assert_eq!(*network.asked.lock().unwrap(), [(600_000, 16_777_216)]);
}

#[tokio::test]
async fn a_call_that_is_given_up_leaves_nothing_behind() {
    let (enroller, network, _) = enroller();
    enroller.prepare().await.unwrap();
    for _ in 0..10 {
        let enrollment = enrollment();
        let call = enroller.resume(&enrollment);
        let given_up = tokio::time::timeout(Duration::from_millis(20), call).await;
        assert!(given_up.is_err());
    }
    assert_eq!(network.asked.lock().unwrap().len(), 10);
    let error = enroller.get("00").await.unwrap_err();
    assert_eq!(error, CallError::Transaction(TransactionError::NotFound));
}

#[tokio::test]
async fn a_computing_guest_lets_others_run_and_ends() {
    let (enroller, ..) = enroller();
    enroller.prepare().await.unwrap();
    let turns = Arc::new(AtomicU32::new(0));
    let counted = turns.clone();
    let call = tokio::spawn(async move { enroller.list(None, 10).await });
    let other = tokio::spawn(async move {
        loop {
            counted.fetch_add(1, Ordering::Relaxed);
            tokio::task::yield_now().await;
        }
    });
    let error = call.await.unwrap().unwrap_err();
    assert!(
        matches!(error, CallError::Host(HostError::Deadline { .. })),
        "{error:?}"
    );
    // On one thread: five ticks make a deadline, and with each the guest lets the other run. It
    // would have had one turn at most otherwise.
    other.abort();
    assert!(turns.load(Ordering::Relaxed) >= 3);
}

#[tokio::test]
async fn events_arrive_in_one_line_and_too_much_randomness_is_a_trap() {
    let (enroller, _, events) = enroller();
    let error = enroller.begin(&enrollment()).await.unwrap_err();
    let CallError::Host(HostError::Trap { reason, .. }) = &error else {
        panic!("{error:?}")
    };
    assert!(reason.contains("1000000 random bytes"), "{reason}");
    let error = enroller.get("00").await.unwrap_err();
    assert_eq!(error, CallError::Transaction(TransactionError::NotFound));
    let events = events.lock().unwrap();
    let [event] = events.as_slice() else {
        panic!("{events:?}")
    };
    assert_eq!(
        (event.name.as_str(), event.text.as_str()),
        ("begun", "begun or not")
    );
}
