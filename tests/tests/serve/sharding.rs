//! Accounts divided among services on one PostgreSQL.

use std::fs;
use std::thread::sleep;
use std::time::{Duration, Instant};

use abide_tests::abide::{Abide, MockCa};
use abide_tests::postgres::Postgres;
use abide_tests::service::Service;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::{World, order, wish};

/// As short as a loaded machine can bear.
const HEARTBEAT: Duration = Duration::from_millis(1200);
const TTL: Duration = Duration::from_millis(3000);

struct Fleet {
    dir: TempDir,
    ca: MockCa,
    database: Postgres,
}

impl Fleet {
    fn new() -> Self {
        let dir = tempfile::tempdir().expect("a folder for a test");
        let ca = MockCa::start(dir.path(), &[]);
        let database = Postgres::start();
        database.database("fleet");
        Self { dir, ca, database }
    }

    fn start(&self, worker: &str) -> Service {
        let home = self.dir.path().join(worker);
        fs::create_dir_all(&home).expect("a folder");
        let config = format!(
            "[service]\nlisten = \"127.0.0.1:0\"\nstore = \"{}\"\nkeys = \"{}\"\n\
             worker = \"{worker}\"\n\
             [issuers.test]\nserver = \"{}\"\nreference = \"{}\"\nsecret = \"pass:{}\"\n\
             trusted = [\"{}\"]\n\
             [scheduler]\nretry_lock_timeout_seconds = 4\nschedule_period_seconds = 1\n\
             [cache_sharding]\nenabled = true\nheartbeat_ms = {}\nttl_ms = {}\n",
            self.database.url("fleet"),
            self.dir.path().join("keys").display(),
            self.ca.url(),
            MockCa::REF,
            MockCa::SECRET,
            self.ca.root().display(),
            HEARTBEAT.as_millis(),
            TTL.as_millis(),
        );
        Service::start(&Abide::new(&home), &config)
    }
}

fn workers(service: &Service) -> Vec<String> {
    let list = service.get("/v1/shards").json();
    let workers = list["workers"].as_array().expect("workers");
    let names = workers
        .iter()
        .map(|it| it["worker"].as_str().expect("a name"));
    names.map(str::to_owned).collect()
}

/// Once the list is this one in the store, and every one of them has read it.
fn until_workers(service: &Service, names: &[&str]) {
    let deadline = Instant::now() + Duration::from_secs(60);
    let epoch = loop {
        let owner = service.get("/v1/shards/owner?account=x").json();
        let known = owner["because"].as_array().map_or(0, Vec::len);
        if known == names.len() && workers(service) == names {
            break owner["epoch"].as_u64().expect("a number");
        }
        assert!(Instant::now() < deadline, "{owner:#}\n{}", service.said());
        sleep(Duration::from_millis(50));
    };
    let line = format!("abide_shard_epoch {epoch}");
    while !service
        .get("/metrics")
        .body
        .lines()
        .any(|found| found == line)
    {
        assert!(Instant::now() < deadline, "{line}: {}", service.said());
        sleep(Duration::from_millis(50));
    }
}

fn owner(service: &Service, account: &str) -> String {
    let path = format!("/v1/shards/owner?account={account}");
    let owner = service.get(&path).json();
    owner["owner"].as_str().expect("an owner").to_owned()
}

fn order_of(service: &Service, account: &str, name: &str) -> String {
    let mut wish = wish(name);
    wish["account"] = json!(account);
    order(service, &wish)
}

#[test]
fn each_account_has_one_worker_and_a_crash_leaves_none_without() {
    let fleet = Fleet::new();
    let names = ["w0", "w1", "w2", "w3"];
    let mut services = names.map(|name| fleet.start(name));
    for service in &services {
        until_workers(service, &names);
    }
    let accounts: Vec<String> = (0..12).map(|number| format!("account-{number}")).collect();
    let orders: Vec<(String, String)> = accounts
        .iter()
        .flat_map(|account| [(account, "a"), (account, "b")])
        .map(|(account, suffix)| {
            let id = order_of(&services[0], account, &format!("{account}-{suffix}"));
            (account.clone(), id)
        })
        .collect();
    let mut owners = std::collections::BTreeSet::new();
    for (account, id) in &orders {
        services[0].until_state(id, "ACTIVE");
        let owner = owner(&services[0], account);
        let line = format!("order {id} (ACTIVE): issued");
        for (name, service) in names.iter().zip(&services) {
            let did = service.said().contains(&line);
            assert_eq!(
                did,
                *name == owner,
                "{account} is {owner}'s, and {name}: {did}"
            );
        }
        owners.insert(owner);
    }
    // Twelve accounts and four workers: one without any is as likely as 4 × 0.75^12, 13 %, and
    // two without are 1 in 700.
    assert!(owners.len() >= 3, "{owners:?}");

    // The owner of the first account dies. It is no worker of the test's questions.
    let account = &accounts[0];
    let dead = owner(&services[0], account);
    let victim = names
        .iter()
        .position(|name| *name == dead)
        .expect("a worker");
    services[victim].kill();
    let alive = (victim + 1) % names.len();
    let began = Instant::now();
    let id = order_of(&services[alive], account, "after-the-crash");
    services[alive].until_state(&id, "ACTIVE");
    let took = began.elapsed();
    // The last heartbeat may have come right before its death; then the task is looked for.
    let longest = TTL + HEARTBEAT + Duration::from_secs(4);
    assert!(took < longest, "{took:?}");
    let after = owner(&services[alive], account);
    assert_ne!(after, dead);
    let heir = names
        .iter()
        .position(|name| *name == after)
        .expect("a worker");
    let line = format!("order {id} (ACTIVE): issued");
    assert!(services[heir].said().contains(&line), "{after}");
}

#[test]
fn who_leaves_in_good_order_is_not_waited_for_and_who_joins_takes_its_share() {
    let fleet = Fleet::new();
    let first = fleet.start("w0");
    until_workers(&first, &["w0"]);
    let second = fleet.start("w1");
    until_workers(&first, &["w0", "w1"]);
    until_workers(&second, &["w0", "w1"]);
    let number = (0..100).find(|number| owner(&first, &format!("a{number}")) == "w1");
    let account = format!("a{}", number.expect("an account of the second worker"));
    let id = order_of(&first, &account, "of-the-second");
    first.until_state(&id, "ACTIVE");
    let line = format!("order {id} (ACTIVE): issued");
    assert!(second.said().contains(&line) && !first.said().contains(&line));
    assert_eq!(second.stop().code, Some(0));
    // It has taken itself off.
    assert_eq!(owner(&first, &account), "w0");
    let id = order_of(&first, &account, "of-the-first");
    first.until_state(&id, "ACTIVE");
    assert!(
        first
            .said()
            .contains(&format!("order {id} (ACTIVE): issued"))
    );
}

#[test]
fn accounts_are_not_divided_unless_somebody_wants_it() {
    let world = World::new(&[]);
    let service = world.serve("");
    let answer = service.get("/v1/shards");
    assert_eq!(answer.status, 404, "{answer:?}");
    let mut command = world.abide.command(["shards", "list"]);
    command.env("ABIDE_URL", service.url());
    let ended = abide_tests::process::Process::start(&mut command).end();
    assert_eq!(ended.code, Some(2), "{ended:?}");
    assert!(ended.stderr.contains("cache_sharding.enabled"), "{ended:?}");
}

#[test]
fn the_command_shows_workers_and_owners() {
    let world = World::new(&[]);
    let service =
        world.serve("[cache_sharding]\nenabled = true\nheartbeat_ms = 300\nttl_ms = 900\n");
    let run = |words: &[&str]| {
        let mut command = world.abide.command(words);
        command.env("ABIDE_URL", service.url());
        let ended = abide_tests::process::Process::start(&mut command).end();
        assert_eq!(ended.code, Some(0), "{ended:?}");
        ended.stdout
    };
    let deadline = Instant::now() + Duration::from_secs(20);
    while service.get("/v1/shards").json()["epoch"] == json!(0) {
        assert!(Instant::now() < deadline, "{}", service.said());
        sleep(Duration::from_millis(50));
    }
    let list: Value =
        serde_json::from_str(&run(&["shards", "list", "--output", "json"])).expect("JSON");
    let only = list["workers"][0]["worker"].as_str().expect("a worker");
    assert!(run(&["shards", "list"]).contains(only));
    let owner = run(&["shards", "owner", "--account", "prod"]);
    assert!(owner.starts_with(&format!("{only}\n")), "{owner}");
}
