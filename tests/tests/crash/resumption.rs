//! What `--resume` may do, and when it must not.

use abide_cmp::BodyType;
use abide_tests::process::{Ended, Process};
use abide_tests::proxy::{Stage, Treatment};
use serde_json::Value;

use crate::world::{IR, Kind, P10CR, World, secret, string};
use crate::{POLLING, twice_the_same, wait_between_polls};

/// A client that was killed between two polls.
fn killed_while_polling(kind: Kind) -> World {
    let world = World::new(kind, &POLLING);
    let client = world.start(false);
    wait_between_polls(&client);
    world.kill(client);
    world
}

fn told(ended: &Ended) -> Value {
    serde_json::from_str(&ended.stdout).unwrap_or_else(|error| panic!("{error} in {ended:?}"))
}

/// Nobody can tell what became of the first request, so it is not asked for again.
#[test]
fn a_refused_repetition_leaves_an_orphan_and_asks_for_nothing_new() {
    let world = World::new(P10CR, &["--repeat", "refuse"]);
    world.proxy.treat(BodyType::P10cr, Treatment::HoldAnswer);
    let client = world.start(false);
    world.proxy.wait_for(BodyType::P10cr, Stage::Answered, 1);
    world.kill(client);
    world.proxy.release();

    let ended = world.resume();
    assert_eq!(ended.code, Some(3), "{ended:?}");
    let told = told(&ended);
    assert_eq!(told["status"], "failed");
    assert_eq!(told["failureClass"], "refused");
    assert_eq!(told["orphan"], true);
    assert_eq!(told["failInfo"][0], "transactionIdInUse");
    twice_the_same(&world, BodyType::P10cr);
    assert_eq!(world.booked("issued").len(), 1);
    let stored = world.transaction();
    assert_eq!(stored["phase"], "failed");
    assert_eq!(stored["failure"]["orphan"], true);
    assert_eq!(stored["transactionID"], *world.only_id());
}

fn ends_before_another_message(world: &World) {
    let before = world.proxy.summary();
    let ended = world.resume();
    assert_eq!(ended.code, Some(2), "{ended:?}");
    let told = told(&ended);
    assert_eq!(told["status"], "failed");
    assert_eq!(told["failureClass"], "permanent");
    assert_eq!(told["orphan"], true, "the CA has the request: {told}");
    assert!(
        string(&told["reason"]).contains("a credential or a trusted certificate"),
        "{told}"
    );
    assert_eq!(world.proxy.summary(), before);
    assert_eq!(world.phase(), "failed");
}

#[test]
fn another_secret_ends_the_transaction_before_another_message() {
    let mut world = killed_while_polling(P10CR);
    world.credential = secret("not the one it began with");
    ends_before_another_message(&world);
}

#[test]
fn another_trusted_certificate_ends_the_transaction_before_another_message() {
    let mut world = killed_while_polling(IR);
    world.trusted = world.other_root();
    ends_before_another_message(&world);
}

#[test]
fn the_same_content_in_another_file_ends_nothing() {
    let mut world = killed_while_polling(IR);
    world.trusted = world.copied_root();
    let ended = world.resume();
    world.check_issued(&ended);
}

#[test]
fn an_issued_chain_is_returned_without_traffic_and_without_the_secret() {
    let mut world = World::new(P10CR, &[]);
    world.check_issued(&world.start(false).end());
    let chain = world.read("chain.pem");
    let traffic = world.proxy.summary();
    world.forget_files();
    world.ca.kill();
    world.proxy.close();

    world.credential = ["--ref", "4711", "--secret", "file:gone-with-the-disk"]
        .map(String::from)
        .to_vec();
    let ended = world.resume();
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert_eq!(told(&ended)["status"], "issued");
    assert_eq!(world.read("chain.pem"), chain);
    assert_eq!(world.proxy.summary(), traffic);
}

#[test]
fn without_resume_an_open_transaction_is_named_and_left_alone() {
    let world = killed_while_polling(IR);
    let before = (world.proxy.summary(), world.transaction());
    let ended = world.start(false).end();
    assert_eq!(ended.code, Some(6), "{ended:?}");
    let told = told(&ended);
    assert_eq!(told["status"], "waiting");
    assert!(string(&told["reason"]).contains(&world.only_id()), "{told}");
    assert!(ended.stderr.contains(&world.only_id()), "{ended:?}");
    assert!(ended.stderr.contains("--resume"), "{ended:?}");
    assert_eq!((world.proxy.summary(), world.transaction()), before);
}

/// Each has sent the request, which the proxy holds up, or has noticed the other before.
#[test]
fn two_processes_that_resume_at_once_make_one_certificate() {
    let world = World::new(P10CR, &[]);
    world.proxy.treat(BodyType::P10cr, Treatment::HoldRequest);
    let client = world.start(false);
    world.proxy.wait_for(BodyType::P10cr, Stage::Arrived, 1);
    world.kill(client);

    let both = [world.start(true), world.start(true)];
    for client in &both {
        // Its first line names the transaction, the next one tells what it does about it.
        client.wait_for("step or notice", |line| {
            (!line.starts_with("transaction ")).then_some(())
        });
    }
    // That of the killed process, and at least one more.
    world.proxy.wait_for(BodyType::P10cr, Stage::Arrived, 2);
    world.proxy.release();
    let ended = both.map(Process::end);
    let (issued, others): (Vec<_>, Vec<_>) = ended.iter().partition(|ended| ended.code == Some(0));
    assert!(!issued.is_empty(), "{ended:?}");
    for ended in issued {
        world.check_issued(ended);
    }
    for ended in others {
        assert_eq!(ended.code, Some(6), "{ended:?}");
        let told = told(ended);
        assert_eq!(told["status"], "waiting", "{told}");
        assert!(
            string(&told["reason"]).contains("another process is at work"),
            "{told}"
        );
    }
}

/// As a backup that is taken from a machine that is no more: the store with what its journal
/// had not yet taken over.
#[test]
fn a_store_that_was_copied_after_a_crash_goes_on_elsewhere() {
    let mut world = killed_while_polling(IR);
    let before = world.transaction();
    world.move_to("elsewhere", &["store.db", "store.db-wal", "new.key"]);
    world.check_issued(&world.resume());
    assert_eq!(world.transaction()["started"], before["started"]);
    assert_eq!(world.proxy.sent(BodyType::Ir).len(), 1);
}

/// A client that leaves in order leaves all in one file.
#[test]
fn one_file_is_enough_after_a_client_has_left() {
    let mut world = World::new(P10CR, &POLLING);
    world.more = ["--max-wait", "0"].map(String::from).to_vec();
    let ended = world.start(false).end();
    assert_eq!(ended.code, Some(6), "{ended:?}");
    world.more.clear();
    world.move_to("elsewhere", &["store.db"]);
    world.check_issued(&world.resume());
    assert_eq!(world.proxy.sent(BodyType::P10cr).len(), 1);
}
