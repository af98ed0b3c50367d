//! A store that is lost, and what a backup brings back.

use std::fs;

use abide_tests::process::{Ended, Process};
use abide_tests::service::Service;
use rusqlite::Connection;
use serde_json::Value;

use crate::{World, order, wish, zombies};

fn run(world: &World, words: &[&str]) -> Ended {
    Process::start(&mut world.abide.command(words)).end()
}

fn json(world: &World, words: &[&str]) -> Value {
    let ended = run(world, &[words, &["--output", "json"]].concat());
    assert_eq!(ended.code, Some(0), "{words:?}: {ended:?}");
    serde_json::from_str(&ended.stdout).unwrap_or_else(|error| panic!("{error} in {ended:?}"))
}

#[test]
fn a_lost_store_comes_back_from_its_backup_and_goes_on() {
    let world = World::new(&["--poll-count", "1", "--check-after", "2"]);
    let mut service = world.serve("");
    let done = order(&service, &wish("done"));
    service.until_state(&done, "ACTIVE");
    let open = order(&service, &wish("open"));
    zombies::until_polling(&world, &service, &open);

    // While the service works.
    let made = json(
        &world,
        &["store", "backup", "--store", "abide.db", "--to", "copy"],
    );
    assert_eq!(made["orders"], 2);
    assert_eq!(made["keys"], 2);
    service.kill();
    for file in ["abide.db", "abide.db-wal", "abide.db-shm"] {
        let _ = fs::remove_file(world.abide.path(file));
    }
    fs::remove_dir_all(world.abide.path("keys")).expect("the keys");

    let restore = ["store", "restore", "--store", "abide.db", "--from", "copy"];
    let restored = json(&world, &restore);
    assert_eq!(restored["orders"], 2);
    let refused = run(&world, &restore);
    assert_eq!(refused.code, Some(2), "{refused:?}");
    assert!(refused.stderr.contains("is there already"), "{refused:?}");

    let checked = json(&world, &["store", "check", "--store", "abide.db"]);
    assert_eq!(checked["sound"], true, "{checked:#}");
    assert_eq!(checked["records"]["standing-order"]["ACTIVE"], 1);
    assert_eq!(checked["records"]["task"]["resume"], 1);

    // The transaction that was under way goes on, and nothing is asked for twice.
    let service = Service::again(&world.abide);
    service.until_state(&open, "ACTIVE");
    assert_eq!(world.issued(), 2);
    let state = service.get(&format!("/v1/orders/{done}")).json()["state"].clone();
    assert_eq!(state, "ACTIVE");
}

#[test]
fn what_is_damaged_is_told_and_not_restored() {
    let world = World::new(&[]);
    let service = world.serve("");
    let id = order(&service, &wish("device"));
    service.until_state(&id, "ACTIVE");
    assert_eq!(service.stop().code, Some(0));
    json(
        &world,
        &["store", "backup", "--store", "abide.db", "--to", "copy"],
    );

    // A record that nobody can read, and a key that is gone.
    let store = Connection::open(world.abide.path("abide.db")).expect("the store");
    let sql = "UPDATE record SET body = x'01ff' WHERE kind = 'transaction'";
    assert_eq!(store.execute(sql, []), Ok(1));
    drop(store);
    fs::remove_dir_all(world.abide.path("keys")).expect("the keys");
    let check = run(&world, &["store", "check", "--store", "abide.db"]);
    assert_eq!(check.code, Some(1), "{check:?}");
    assert!(check.stdout.contains("fault: transaction "), "{check:?}");
    assert!(check.stdout.contains("its key "), "{check:?}");

    // A copy with a hole in it.
    let copy = world.abide.path("copy/store.db");
    let mut octets = fs::read(&copy).expect("the copy");
    for octet in &mut octets[4096..] {
        *octet = 0x5a;
    }
    fs::write(&copy, octets).expect("a damaged copy");
    let restore = run(
        &world,
        &["store", "restore", "--store", "new.db", "--from", "copy"],
    );
    assert_eq!(restore.code, Some(1), "{restore:?}");
    assert!(!world.abide.path("new.db").exists());
}
