//! Several services that share one PostgreSQL, and what is done to them.
//!
//! `ABIDE_FLEET_ORDERS` is the number of orders, `ABIDE_FLEET_SEED` what their fate follows from.
//! When exactly a process is killed depends on the machine too.

use std::collections::BTreeSet;
use std::env;
use std::fs;
use std::thread::sleep;
use std::time::{Duration, Instant};

use abide_tests::abide::{Abide, MockCa};
use abide_tests::postgres::Postgres;
use abide_tests::seed::Seed;
use abide_tests::service::Service;
use serde_json::Value;
use tempfile::TempDir;

use crate::{order, wish};

/// Orders, unless told otherwise: as many as CI has patience for.
const ORDERS: u64 = 120;
/// Services at one store.
const WORKERS: usize = 4;
/// Leases are as short as a configuration may have them and a loaded machine can bear.
const LEASE: Duration = Duration::from_secs(4);
/// For everything to come to an end.
const LONGEST: Duration = Duration::from_secs(600);

/// A CA, a database, and a folder for each service. Their keys are in one folder.
struct Fleet {
    dir: TempDir,
    ca: MockCa,
    database: Postgres,
}

impl Fleet {
    fn new(options: &[&str]) -> Self {
        let dir = tempfile::tempdir().expect("a folder for a test");
        let ca = MockCa::start(dir.path(), options);
        let database = Postgres::start();
        database.database("fleet");
        Self { dir, ca, database }
    }

    fn home(&self, worker: usize) -> Abide {
        let home = self.dir.path().join(format!("w{worker}"));
        fs::create_dir_all(&home).expect("a folder");
        Abide::new(&home)
    }

    fn start(&self, worker: usize) -> Service {
        let config = format!(
            "[service]\nlisten = \"127.0.0.1:0\"\nstore = \"{}\"\nkeys = \"{}\"\n\
             worker = \"w{worker}\"\n\
             [issuers.test]\nserver = \"{}\"\nreference = \"{}\"\nsecret = \"pass:{}\"\n\
             trusted = [\"{}\"]\n\
             [scheduler]\nretry_lock_timeout_seconds = {}\nschedule_period_seconds = 1\n",
            self.database.url("fleet"),
            self.dir.path().join("keys").display(),
            self.ca.url(),
            MockCa::REF,
            MockCa::SECRET,
            self.ca.root().display(),
            LEASE.as_secs(),
        );
        Service::start(&self.home(worker), &config)
    }

    /// The subjects of what the CA has issued.
    fn issued(&self) -> Vec<String> {
        let issued = |line: &Value| line["event"] == "issued";
        let books = self.ca.books();
        let subjects = books.iter().filter(|line| issued(line));
        subjects.map(|line| line["subject"].to_string()).collect()
    }

    /// In the words of the store itself.
    fn count(&self, kind: &str, state: &str) -> u64 {
        let sql = format!(
            "SELECT count(*) FROM abide.record WHERE kind = '{kind}' AND state LIKE '{state}'"
        );
        let text = self.database.sql("fleet", &sql);
        text.trim().parse().expect("a number")
    }
}

fn number(variable: &str) -> Option<u64> {
    let text = env::var(variable).ok()?;
    Some(text.parse().expect("a number"))
}

#[test]
fn whoever_dies_every_order_is_issued_once() {
    // Each order is polled for, so that it is under way for some seconds.
    let mut fleet = Fleet::new(&["--poll-count", "3", "--check-after", "1"]);
    let orders = number("ABIDE_FLEET_ORDERS").unwrap_or(ORDERS);
    let seed = number("ABIDE_FLEET_SEED").unwrap_or_else(Seed::fresh);
    println!("{orders} orders with ABIDE_FLEET_SEED={seed}");
    let mut seed = Seed::new(seed);
    let mut workers: Vec<_> = (0..WORKERS).map(|worker| fleet.start(worker)).collect();
    for number in 0..orders {
        order(&workers[0], &wish(&format!("device-{number}")));
    }
    let deadline = Instant::now() + LONGEST;
    let (mut kills, mut restarted) = (0, false);
    loop {
        let active = fleet.count("standing-order", "ACTIVE");
        if active == orders {
            break;
        }
        let said: Vec<_> = workers.iter().map(Service::said).collect();
        assert!(
            Instant::now() < deadline,
            "{active} of {orders} after {kills} kills; they said:\n{}",
            said.join("\n")
        );
        // Not for ever: each that dies holds its tasks for as long as its leases.
        if kills < 12 {
            sleep(seed.time(Duration::from_millis(1500)));
            let victim = seed.below(WORKERS as u64) as usize;
            workers[victim].kill();
            if kills == 3 {
                fleet.database.stop();
                sleep(seed.time(Duration::from_secs(2)));
                fleet.database.start_again();
                restarted = true;
            }
            workers[victim] = fleet.start(victim);
            kills += 1;
        } else {
            sleep(Duration::from_millis(500));
        }
    }
    assert!(restarted, "after {kills} kills all was done");
    println!("{kills} kills, and the database restarted");
    let issued = fleet.issued();
    let subjects: BTreeSet<_> = issued.iter().collect();
    assert_eq!(
        issued.len() as u64,
        orders,
        "as many certificates as orders"
    );
    assert_eq!(subjects.len() as u64, orders, "one for each");
    assert_eq!(fleet.count("dead-letter", "%"), 0);
    assert_eq!(
        fleet.count("task", "renew"),
        orders,
        "each has its next step"
    );
    assert_eq!(fleet.count("transaction", "issued"), orders);
}

#[test]
fn who_wakes_up_after_its_lease_writes_nothing() {
    let fleet = Fleet::new(&[]);
    let first = fleet.start(0);
    // The CA sleeps, so that the first one has sent its request and waits.
    fleet.ca.suspend();
    let id = order(&first, &wish("device"));
    first.wait_for("message-sent");
    first.suspend();
    let second = fleet.start(1);
    sleep(LEASE);
    second.wait_for("message-sent");
    fleet.ca.resume();
    second.until_state(&id, "ACTIVE");
    let before = second.get(&format!("/v1/orders/{id}")).body;
    first.resume();
    first.wait_for("another worker");
    assert_eq!(second.get(&format!("/v1/orders/{id}")).body, before);
    assert_eq!(fleet.issued().len(), 1);
}
