//! Many orders at once that all want something: what a CA sees of them, and who gets his turn.
//!
//! `ABIDE_STORM_ORDERS` is the number of orders.

use std::collections::{BTreeMap, BTreeSet};
use std::env;
use std::path::PathBuf;
use std::thread::sleep;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use abide_tests::abide::MockCa;
use abide_tests::proxy::{Proxy, Seen};
use abide_tests::service::Service;
use rusqlite::Connection;
use serde_json::Value;

use crate::{World, order, wish};

/// Orders, unless told otherwise.
const ORDERS: u64 = 150;
/// Retries that the fleet may send at once, and how often another one.
const CAPACITY: u64 = 20;
const REFILL: Duration = Duration::from_millis(500);
/// Tasks that are no use to anybody, of each kind.
const ODD: usize = 5;
/// The scheduler's period unless configured otherwise.
const PERIOD: Duration = Duration::from_secs(60);

fn orders() -> u64 {
    env::var("ABIDE_STORM_ORDERS").map_or(ORDERS, |text| text.parse().expect("a number"))
}

fn store(world: &World) -> Connection {
    let path: PathBuf = world.abide.path("abide.db");
    Connection::open(path).expect("the store")
}

fn since_epoch(time: SystemTime) -> u64 {
    let since = time.duration_since(UNIX_EPOCH).expect("after 1970");
    u64::try_from(since.as_millis()).expect("a time")
}

/// Names and numbers of records.
fn pairs(store: &Connection, sql: &str) -> BTreeMap<String, u64> {
    let mut statement = store.prepare(sql).expect("SQL");
    let rows = statement
        .query_map([], |row| Ok((row.get(0)?, row.get::<_, i64>(1)?)))
        .expect("rows");
    rows.map(|row| row.map(|(name, number)| (name, number.unsigned_abs())))
        .collect::<Result<_, _>>()
        .expect("names and numbers")
}

/// All orders, page by page.
fn listed(service: &Service) -> Vec<Value> {
    let mut all = Vec::new();
    let mut path = "/v1/orders?limit=100".to_owned();
    loop {
        let page = service.get(&path).json();
        all.extend(page["items"].as_array().expect("orders").iter().cloned());
        let Some(next) = page["next"].as_str() else {
            return all;
        };
        path = format!("/v1/orders?limit=100&cursor={next}");
    }
}

/// The first message of each transaction.
fn firsts(seen: &[Seen]) -> BTreeMap<String, SystemTime> {
    let mut firsts = BTreeMap::new();
    for message in seen {
        firsts
            .entry(message.transaction_id.clone())
            .or_insert(message.at);
    }
    firsts
}

#[test]
fn failing_orders_keep_to_their_times_and_the_fleet_to_its_budget() {
    let orders = orders();
    // Whatever is asked, it is refused.
    let world = World::new(&["--chaos", "1", "--fault", "transaction-id-in-use=1"]);
    let proxy = Proxy::new(world.ca.url());
    // All have failed once before the first of them comes again.
    let base = Duration::from_secs(4) + Duration::from_millis(15) * u32::try_from(orders).unwrap();
    let config = format!(
        "[service]\nlisten = \"127.0.0.1:0\"\nstore = \"sqlite:abide.db\"\n\
         [issuers.test]\nserver = \"{}\"\nreference = \"{}\"\nsecret = \"file:secret.txt\"\n\
         trusted = [\"ca/root.pem\"]\n\
         [retry.issuance]\nbase_ms = {}\ncap_ms = {}\n\
         [retry.budget]\ncapacity = {CAPACITY}\nrefill_ms = {}\nspread_ms = 500\nspread_cap_ms = 2000\n\
         [scheduler]\nschedule_period_seconds = 1\n",
        proxy.url(),
        MockCa::REF,
        base.as_millis(),
        base.as_millis() * 2,
        REFILL.as_millis(),
    );
    let mut service = Service::start(&world.abide, &config);
    for number in 0..orders {
        order(&service, &wish(&format!("device-{number}")));
    }
    // Until some have tried again, and others wait for the budget.
    let deadline = Instant::now() + base + Duration::from_secs(120);
    while (firsts(&proxy.seen()).len() as u64) < orders + CAPACITY {
        assert!(Instant::now() < deadline, "{}", service.said());
        sleep(Duration::from_millis(100));
    }
    service.kill();
    let before = store(&world);
    let due = pairs(
        &before,
        "SELECT id, due FROM record WHERE kind = 'task' AND due IS NOT NULL",
    );
    assert_eq!(due.len() as u64, orders, "each has its next task");
    let old = firsts(&proxy.seen());
    let open = pairs(
        &before,
        "SELECT id, 0 FROM record WHERE kind = 'transaction' AND due IS NOT NULL",
    );
    drop(before);

    // Most of them are overdue by then.
    sleep(base + Duration::from_secs(1));
    let service = Service::again(&world.abide);
    service.wait_for("overdue tasks are spread");
    let enough = orders + CAPACITY + 3 * CAPACITY;
    let deadline = Instant::now() + Duration::from_secs(180);
    while (firsts(&proxy.seen()).len() as u64) < enough {
        assert!(Instant::now() < deadline, "{}", service.said());
        sleep(Duration::from_millis(100));
    }
    // What is under way comes to its end.
    assert_eq!(service.stop().code, Some(0));
    let service = Service::again(&world.abide);
    let attempts: u64 = listed(&service)
        .iter()
        .map(|order| order["issuance_attempts"].as_u64().expect("a count"))
        .sum();
    assert_eq!(service.stop().code, Some(0));

    let seen = proxy.seen();
    let firsts = firsts(&seen);
    let after = store(&world);
    let known = pairs(
        &after,
        "SELECT id, 0 FROM record WHERE kind = 'transaction'",
    );
    let sent: BTreeSet<_> = firsts.keys().collect();
    assert!(sent.iter().all(|id| known.contains_key(*id)), "a stranger");
    // The last service may have begun another one, which its stop has let end.
    let recorded = attempts..=attempts + CAPACITY;
    assert!(
        recorded.contains(&(firsts.len() as u64)),
        "{} transactions for {attempts} failures",
        firsts.len()
    );

    // A first attempt takes nothing of the budget, a retry does.
    let mut times: Vec<u64> = firsts.values().map(|at| since_epoch(*at)).collect();
    times.sort_unstable();
    let refill_ms = u64::try_from(REFILL.as_millis()).unwrap();
    for (index, time) in times
        .iter()
        .enumerate()
        .skip(usize::try_from(orders).unwrap())
    {
        let retries = index as u64 + 1 - orders;
        let allowed = CAPACITY + (time - times[0]) / refill_ms;
        assert!(retries <= allowed, "{retries} retries, {allowed} allowed");
    }

    // Nothing ran before the time that was stored for it when the first service died.
    let owners: BTreeMap<String, String> = {
        let sql = "SELECT id, owner FROM record WHERE kind = 'transaction'";
        let mut statement = after.prepare(sql).expect("SQL");
        let rows = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?)));
        rows.expect("rows")
            .collect::<Result<_, _>>()
            .expect("names")
    };
    let mut later = 0;
    for (id, at) in &firsts {
        if old.contains_key(id) || open.contains_key(id) {
            continue;
        }
        later += 1;
        let stored = due[&owners[id]];
        assert!(
            since_epoch(*at) >= stored,
            "{id} at {at:?}, not at {stored}"
        );
    }
    println!(
        "{orders} orders, {} transactions, {later} of them later",
        firsts.len()
    );
    assert!(later > 0);
}

#[test]
fn odd_tasks_hold_nobody_up() {
    let orders = usize::try_from(orders()).unwrap();
    let world = World::new(&[]);
    let proxy = Proxy::new(world.ca.url());
    // Nobody gets anything yet.
    proxy.close();
    let config = format!(
        "[service]\nlisten = \"127.0.0.1:0\"\nstore = \"sqlite:abide.db\"\n\
         [issuers.test]\nserver = \"{}\"\nreference = \"{}\"\nsecret = \"file:secret.txt\"\n\
         trusted = [\"ca/root.pem\"]\n\
         [scheduler]\nschedule_period_seconds = {}\n",
        proxy.url(),
        MockCa::REF,
        PERIOD.as_secs(),
    );
    let mut service = Service::start(&world.abide, &config);
    let ids: Vec<_> = (0..orders)
        .map(|number| order(&service, &wish(&format!("device-{number}"))))
        .collect();
    let deadline = Instant::now() + Duration::from_secs(120);
    let waiting = "SELECT id, due FROM record WHERE kind = 'task' AND state = 'resume'";
    while pairs(&store(&world), waiting).len() < orders {
        assert!(Instant::now() < deadline, "{}", service.said());
        sleep(Duration::from_millis(100));
    }
    service.kill();

    // All are due by the same time, and so are a few that nobody can read; others in ten years.
    let (poison, rest) = ids.split_at(ODD);
    let (distant, due) = rest.split_at(ODD);
    let now = since_epoch(SystemTime::now());
    let later = now + 10 * 365 * 24 * 3600 * 1000;
    let by_hand = store(&world);
    let set = |ids: &[String], what: &str, time: u64| {
        let time = i64::try_from(time).expect("a time");
        for id in ids {
            let sql = format!(
                "UPDATE record SET due = ?1, claimable = ?1, lease_holder = NULL, \
                 lease_token = NULL, lease_until = NULL{what} WHERE kind = 'task' AND id = ?2"
            );
            let changed = by_hand.execute(&sql, rusqlite::params![time, id]);
            assert_eq!(changed, Ok(1));
        }
    };
    set(poison, ", body = x'00ff'", now);
    set(distant, "", later);
    set(due, "", now);
    drop(by_hand);

    proxy.open();
    let start = Instant::now();
    let service = Service::again(&world.abide);
    let active = "SELECT id, 0 FROM record WHERE kind = 'standing-order' AND state = 'ACTIVE'";
    while pairs(&store(&world), active).len() < due.len() {
        assert!(start.elapsed() < PERIOD, "{}", service.said());
        sleep(Duration::from_millis(100));
    }
    println!("{} orders in {:.1?}", due.len(), start.elapsed());
    let active = pairs(&store(&world), active);
    assert!(due.iter().all(|id| active.contains_key(id)));
    let tasks = pairs(
        &store(&world),
        "SELECT id, due FROM record WHERE kind = 'task'",
    );
    assert!(distant.iter().all(|id| tasks[id] == later));
    // What nobody can read is put aside, and said.
    let dead = pairs(
        &store(&world),
        "SELECT id, 0 FROM record WHERE kind = 'dead-letter'",
    );
    assert!(
        poison.iter().all(|id| dead.contains_key(id)),
        "{}",
        service.said()
    );
}
