//! Limits that several processes share: the same in memory, in a file, on PostgreSQL and on Redis.
//!
//! Expected values are those of the runbook of Spinnaker, or worked out by hand.

use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use abide_host::counters::{
    Counters, RedisCounters, Setting, SharedLimiter, StoredCounters, Turned,
};
use abide_host::wit::admission::{Caller, Mode, Outcome};
use abide_host::{
    Gate, Limiter, MemoryStorage, PostgresConfig, PostgresStorage, Runtime, RuntimeConfig,
    SqliteStorage,
};
use abide_tests::postgres::Postgres;
use abide_tests::redis::Redis;

/// No test is about a slow machine.
const PATIENT: Duration = Duration::from_secs(20);

/// An hour, so that no test is about the time it takes.
const ENFORCED: &str = r#"{"enabled":true,"learning":false,"capacity":100,"rate_seconds":3600}"#;

fn gate() -> Gate {
    Runtime::new(RuntimeConfig::default())
        .expect("a runtime")
        .gate()
}

async fn limiter(gate: &Gate, policy: &str) -> Arc<Limiter> {
    let limiter = gate.limiter(policy).await.expect("a sandbox");
    Arc::new(limiter.expect("a policy without mistakes"))
}

fn caller(name: &str) -> Caller {
    Caller {
        authenticated: Some(name.to_owned()),
        app: None,
        address: None,
    }
}

fn now_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    u64::try_from(since.expect("after 1970").as_millis()).expect("a time")
}

/// Every kind of store, one after the other, with what keeps it alive.
async fn each(policy: &str, trial: impl AsyncFn(&str, SharedLimiter)) {
    let gate = gate();
    let shared = async |counters: Arc<dyn Counters>| {
        SharedLimiter::new(limiter(&gate, policy).await, counters, PATIENT)
    };
    let memory = Arc::new(MemoryStorage::new());
    let counters = StoredCounters::new(memory, limiter(&gate, policy).await);
    trial("memory", shared(Arc::new(counters)).await).await;

    let dir = tempfile::tempdir().expect("a folder");
    let file = SqliteStorage::open(&dir.path().join("counters.db")).expect("a store");
    let counters = StoredCounters::new(Arc::new(file), limiter(&gate, policy).await);
    trial("sqlite", shared(Arc::new(counters)).await).await;

    let postgres = Postgres::start();
    let config = PostgresConfig::new(postgres.database("counters"));
    let storage = PostgresStorage::open(&config).await.expect("a store");
    let counters = StoredCounters::new(Arc::new(storage), limiter(&gate, policy).await);
    trial("postgres", shared(Arc::new(counters)).await).await;

    let redis = Redis::start();
    let counters = RedisCounters::new(&redis.url()).expect("an address");
    trial("redis", shared(Arc::new(counters)).await).await;
}

#[tokio::test]
async fn a_window_admits_its_capacity_and_says_when_it_ends() {
    let policy = r#"{"enabled":true,"learning":false,"capacity":3,"rate_seconds":3600,
                     "algorithm":"window"}"#;
    each(policy, async |store, limiter| {
        let start = now_ms();
        for left in [2, 1, 0] {
            let done = limiter
                .admit(&caller("bob"), 1, start)
                .await
                .expect("a decision");
            assert_eq!(done.answer.outcome, Outcome::Admitted, "{store}");
            assert_eq!(done.answer.remaining, left, "{store}");
            assert!(done.is_shared, "{store}");
            // It opened with the first request, which a server with its own clock saw later.
            let reset = done.answer.reset_ms - start;
            assert!((3_540_000..=3_600_000).contains(&reset), "{store}: {reset}");
        }
        let refused = limiter
            .admit(&caller("bob"), 1, start)
            .await
            .expect("a decision");
        assert_eq!(refused.answer.outcome, Outcome::Throttled, "{store}");
        assert_eq!(
            refused.answer.retry_at_ms,
            Some(refused.answer.reset_ms),
            "{store}"
        );
        let names: Vec<_> = refused
            .headers
            .iter()
            .map(|(name, _)| name.as_str())
            .collect();
        assert!(
            names
                .iter()
                .any(|name| name.eq_ignore_ascii_case("retry-after")),
            "{store}: {names:?}"
        );
        let other = limiter
            .admit(&caller("alice"), 1, start)
            .await
            .expect("a decision");
        assert_eq!(other.answer.outcome, Outcome::Admitted, "{store}");
    })
    .await;
}

/// Cells are counted in sixteenths of the span: a span of 16 s has slots of a second, and a cell is
/// free 17 slots after the start of the one in which it was taken.
#[tokio::test]
async fn cells_are_free_one_span_later() {
    let policy = r#"{"enabled":true,"learning":false,"capacity":5,"rate_seconds":16,
                     "algorithm":"gcra"}"#;
    each(policy, async |store, limiter| {
        let start = now_ms();
        let done = limiter
            .admit(&caller("bob"), 4, start)
            .await
            .expect("a decision");
        assert_eq!(done.answer.remaining, 1, "{store}");
        // What is refused takes nothing.
        for _ in 0..3 {
            let refused = limiter
                .admit(&caller("bob"), 2, start)
                .await
                .expect("a decision");
            assert_eq!(refused.answer.outcome, Outcome::Throttled, "{store}");
            let retry = refused.answer.retry_at_ms.expect("a time") - start;
            assert!((10_000..=17_000).contains(&retry), "{store}: {retry}");
        }
        let last = limiter
            .admit(&caller("bob"), 1, start)
            .await
            .expect("a decision");
        assert_eq!(last.answer.outcome, Outcome::Admitted, "{store}");
        assert_eq!(last.answer.remaining, 0, "{store}");
    })
    .await;
}

/// As the runbook of Spinnaker has it, and who is in both sets is not enforced.
#[tokio::test]
async fn the_learning_matrix_as_it_is_set_while_limiters_run() {
    let policy = r#"{"enabled":true,"learning":true,"capacity":1000,"rate_seconds":3600}"#;
    each(policy, async |store, limiter| {
        let counters = limiter.counters().clone();
        for global in [false, true] {
            counters
                .set(&Setting::Learning(global.to_string()))
                .await
                .expect("a store");
            for (enforcing, ignoring, enforced) in [
                (false, false, !global),
                (true, false, true),
                (false, true, false),
                (true, true, false),
            ] {
                let name = format!("m-{global}-{enforcing}-{ignoring}");
                if enforcing {
                    let setting = Setting::Enforcing(name.clone());
                    counters.set(&setting).await.expect("a store");
                }
                if ignoring {
                    let setting = Setting::Ignoring(name.clone());
                    counters.set(&setting).await.expect("a store");
                }
                let expected = if enforced {
                    Mode::Enforced
                } else {
                    Mode::Learning
                };
                let done = limiter.admit(&caller(&name), 1, now_ms()).await;
                let mode = done.expect("a decision").answer.mode;
                assert_eq!(mode, expected, "{store}: {name}");
            }
        }
        // Whoever has a capacity of his own; and rubbish is told and not followed.
        counters
            .set(&Setting::Capacity("bob".into(), "7".into()))
            .await
            .expect("a store");
        let done = limiter
            .admit(&caller("bob"), 1, now_ms())
            .await
            .expect("a decision");
        assert_eq!(done.answer.capacity, 7, "{store}");
        counters
            .set(&Setting::Capacity("bob".into(), "many".into()))
            .await
            .expect("a store");
        tokio::time::sleep(Duration::from_millis(600)).await;
        let done = limiter
            .admit(&caller("bob"), 1, now_ms())
            .await
            .expect("a decision");
        assert_eq!(done.answer.capacity, 1000, "{store}");
        assert_eq!(done.warnings.len(), 1, "{store}: {:?}", done.warnings);
        let all = counters.settings().await.expect("a store");
        assert!(
            all.contains(&Setting::Capacity("bob".into(), "many".into())),
            "{store}: {all:?}"
        );
        counters
            .unset(&Setting::Capacity("bob".into(), String::new()))
            .await
            .expect("a store");
        let done = limiter
            .admit(&caller("bob"), 1, now_ms())
            .await
            .expect("a decision");
        assert_eq!(done.warnings, [""; 0], "{store}");
    })
    .await;
}

/// Two limiters on one store, 1 000 first requests of one caller at the same time, capacity 100.
async fn exactly_a_hundred(store: &str, limiters: [Arc<SharedLimiter>; 2]) {
    let mut tasks = tokio::task::JoinSet::new();
    for number in 0..1000 {
        let limiter = limiters[number % 2].clone();
        tasks.spawn(async move {
            let done = limiter
                .admit(&caller("bob"), 1, now_ms())
                .await
                .expect("a decision");
            assert!(done.is_shared);
            done.answer.outcome == Outcome::Admitted
        });
    }
    let outcomes = tasks.join_all().await;
    let admitted = outcomes.into_iter().filter(|admitted| *admitted).count();
    assert_eq!(admitted, 100, "{store}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_thousand_at_once_over_two_limiters_on_one_redis() {
    let gate = gate();
    let redis = Redis::start();
    let mut both = Vec::new();
    for _ in 0..2 {
        let counters = RedisCounters::new(&redis.url()).expect("an address");
        let limiter = limiter(&gate, ENFORCED).await;
        both.push(Arc::new(SharedLimiter::new(
            limiter,
            Arc::new(counters),
            PATIENT,
        )));
    }
    let both: [_; 2] = both.try_into().expect("two");
    // The first one brings the script.
    let first = both[0].admit(&caller("alice"), 1, now_ms()).await;
    assert!(first.expect("a decision").is_shared);
    redis.call(&["CONFIG", "RESETSTAT"]);
    exactly_a_hundred("redis", both).await;
    // One trip for each.
    let stats = redis.call(&["INFO", "commandstats"]);
    let calls = |command: &str| -> u64 {
        let line = stats.lines().find(|line| line.starts_with(command));
        line.and_then(|line| line.split("calls=").nth(1)?.split(',').next()?.parse().ok())
            .unwrap_or(0)
    };
    assert_eq!(calls("cmdstat_evalsha:"), 1000, "{stats}");
    assert_eq!(calls("cmdstat_eval:"), 0, "{stats}");
    // It is forgotten by itself.
    let keys = redis.call(&["KEYS", "*"]);
    let bucket = keys
        .lines()
        .find(|line| line.contains("bob"))
        .expect("a bucket");
    let ttl = redis.call(&["PTTL", bucket]);
    assert!(ttl.starts_with(':') && !ttl.starts_with(":-"), "{ttl}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_thousand_at_once_over_two_limiters_on_one_postgres() {
    let gate = gate();
    let postgres = Postgres::start();
    let database = postgres.database("counters");
    let mut both = Vec::new();
    for _ in 0..2 {
        let config = PostgresConfig::new(&*database);
        let storage = PostgresStorage::open(&config).await.expect("a store");
        let counters = StoredCounters::new(Arc::new(storage), limiter(&gate, ENFORCED).await);
        let limiter = limiter(&gate, ENFORCED).await;
        both.push(Arc::new(SharedLimiter::new(
            limiter,
            Arc::new(counters),
            PATIENT,
        )));
    }
    let both: [_; 2] = both.try_into().expect("two");
    exactly_a_hundred("postgres", both).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_store_that_dies_is_no_reason_to_refuse_and_is_asked_again_when_it_is_back() {
    let gate = gate();
    let mut redis = Redis::start();
    let counters = RedisCounters::new(&redis.url()).expect("an address");
    let limiter = limiter(&gate, ENFORCED).await;
    let limiter = SharedLimiter::new(limiter, Arc::new(counters), Duration::from_secs(2));
    for _ in 0..100 {
        let done = limiter
            .admit(&caller("bob"), 1, now_ms())
            .await
            .expect("a decision");
        assert_eq!(done.answer.outcome, Outcome::Admitted);
    }
    let done = limiter
        .admit(&caller("bob"), 1, now_ms())
        .await
        .expect("a decision");
    assert_eq!(done.answer.outcome, Outcome::Throttled);

    redis.kill();
    let mut turned = Vec::new();
    let start = Instant::now();
    for _ in 0..300 {
        let done = limiter
            .admit(&caller("bob"), 1, now_ms())
            .await
            .expect("a decision");
        assert_ne!(done.answer.outcome, Outcome::Throttled, "nothing is known");
        assert_eq!(done.answer.mode, Mode::Learning);
        assert!(!done.is_shared);
        turned.extend(done.turned);
    }
    // Said once; and only some of them waited for the answer that never came.
    assert!(matches!(turned[..], [Turned::Away(_)]), "{turned:?}");
    assert!(limiter.away().is_some());
    println!("300 decisions without a store in {:?}", start.elapsed());

    redis.start_again();
    let deadline = Instant::now() + Duration::from_secs(20);
    loop {
        let done = limiter
            .admit(&caller("bob"), 1, now_ms())
            .await
            .expect("a decision");
        if done.is_shared {
            assert_eq!(done.turned, Some(Turned::Back));
            assert_eq!(done.answer.mode, Mode::Enforced);
            break;
        }
        assert!(Instant::now() < deadline, "{:?}", limiter.away());
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    // What it had counted is gone with it; what comes now is counted and enforced.
    let mut admitted = 1;
    while limiter
        .admit(&caller("bob"), 1, now_ms())
        .await
        .expect("a decision")
        .answer
        .outcome
        == Outcome::Admitted
    {
        admitted += 1;
    }
    assert_eq!(admitted, 100);
}

/// The keys as the runbook sets them, by hand.
#[tokio::test]
async fn the_keys_of_the_runbook_are_followed_at_once() {
    let gate = gate();
    let redis = Redis::start();
    let counters = RedisCounters::new(&redis.url()).expect("an address");
    let policy = r#"{"enabled":true,"learning":true,"capacity":60,"rate_seconds":10}"#;
    let limiter = SharedLimiter::new(limiter(&gate, policy).await, Arc::new(counters), PATIENT);
    let answer = async |name: &str| {
        let done = limiter.admit(&caller(name), 1, now_ms()).await;
        done.expect("a decision").answer
    };
    assert_eq!(answer("bob").await.mode, Mode::Learning);
    redis.call(&["SET", "rateLimit:learning", "false"]);
    assert_eq!(answer("bob").await.mode, Mode::Enforced);
    redis.call(&["SADD", "rateLimit:ignoring", "bob"]);
    assert_eq!(answer("bob").await.mode, Mode::Learning);
    redis.call(&["SET", "rateLimit:capacity:bob", "500"]);
    assert_eq!(answer("bob").await.capacity, 500);
    redis.call(&["SET", "rateLimit:rateSeconds:bob", "3600"]);
    let reset = answer("bob").await.reset_ms - now_ms();
    assert!(reset > 3_000_000, "{reset}");
    // A key of the wrong type is not followed.
    redis.call(&["DEL", "rateLimit:capacity:bob"]);
    redis.call(&["LPUSH", "rateLimit:capacity:bob", "1"]);
    assert_eq!(answer("bob").await.capacity, 60);
    // Nor does rubbish in a bucket harm.
    let keys = redis.call(&["KEYS", "*bucket*"]);
    assert_eq!(answer("alice").await.capacity, 60, "{keys}");
}
