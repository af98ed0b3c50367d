//! `abide enroll` killed with SIGKILL wherever it matters, and started again with
//! `--resume`: never a second transactionID, never a second certificate, and the chain
//! delivered.

mod orphans;
mod resumption;
mod world;

use abide_cmp::BodyType;
use abide_tests::process::Process;
use abide_tests::proxy::{Stage, Treatment};
use serde_json::Value;

use world::{IR, IR_SIGNED, Kind, P10CR, P10CR_SIGNED, World};

/// It makes every client wait and then asks once more for patience, long enough for a
/// client to be killed in between.
const POLLING: [&str; 4] = ["--poll-count", "2", "--check-after", "2"];

/// Nothing was delivered, yet the request that goes out at last is the stored one.
fn before_the_first_send(kind: Kind) {
    let world = World::new(kind, &[]);
    world.proxy.close();
    let client = world.start(false);
    wait_for_next(&client, "try");
    world.kill(client);
    assert_eq!(world.phase(), "enrolling");
    assert!(world.proxy.seen().is_empty());
    let issued = |entry: &&Value| entry["event"] == "issued";
    let before = usize::from(kind.signed);
    assert_eq!(world.ca.books().iter().filter(issued).count(), before);

    let stored = world.transaction();
    world.proxy.open();
    let ended = world.resume();
    world.check_issued(&ended);
    assert_eq!(stored["transactionID"], *world.only_id());
    assert_eq!(world.proxy.sent(kind.request).len(), 1);
}

/// The CA has issued and the answer is lost: the same octets fetch the same certificate.
fn after_the_send(kind: Kind) {
    let world = World::new(kind, &[]);
    world.proxy.treat(kind.request, Treatment::HoldAnswer);
    let client = world.start(false);
    world.proxy.wait_for(kind.request, Stage::Answered, 1);
    world.kill(client);
    assert_eq!(world.booked("issued").len(), 1);
    assert_eq!(world.phase(), "enrolling");

    world.proxy.release();
    let ended = world.resume();
    world.check_issued(&ended);
    twice_the_same(&world, kind.request);
}

/// Between two polls: the next process waits and polls, it does not enroll again.
fn while_polling(kind: Kind) {
    let world = World::new(kind, &POLLING);
    let client = world.start(false);
    wait_between_polls(&client);
    world.kill(client);
    assert_eq!(world.phase(), "polling");
    assert!(world.booked("issued").is_empty());
    let polls = world.proxy.sent(BodyType::PollReq).len();

    let ended = world.resume();
    world.check_issued(&ended);
    assert_eq!(world.proxy.sent(kind.request).len(), 1);
    assert!(world.proxy.sent(BodyType::PollReq).len() > polls);
}

/// The certificate is stored, the CA does not know that it arrived.
fn before_cert_conf(kind: Kind) {
    let world = World::new(kind, &[]);
    world.proxy.treat(kind.request, Treatment::PassAndClose);
    let client = world.start(false);
    wait_for_next(&client, "try");
    world.kill(client);
    assert_eq!(world.phase(), "confirming");
    assert!(world.proxy.sent(BodyType::CertConf).is_empty());

    world.proxy.open();
    let ended = world.resume();
    world.check_issued(&ended);
    assert_eq!(world.proxy.sent(kind.request).len(), 1);
    assert_eq!(world.proxy.sent(BodyType::CertConf).len(), 1);
}

/// The CA has the certConf, its pkiConf is lost: the same octets are sent once more.
fn before_pki_conf(kind: Kind) {
    let world = World::new(kind, &[]);
    before_pki_conf_at(&world, kind);
}

/// The same, at a CA that answers the second certConf with certConfirmed.
fn before_pki_conf_at_a_strict_ca(kind: Kind) {
    let world = World::new(kind, &["--repeat", "refuse"]);
    before_pki_conf_at(&world, kind);
}

fn before_pki_conf_at(world: &World, kind: Kind) {
    world.proxy.treat(BodyType::CertConf, Treatment::HoldAnswer);
    let client = world.start(false);
    world.proxy.wait_for(BodyType::CertConf, Stage::Answered, 1);
    world.kill(client);
    assert_eq!(world.phase(), "confirming");

    world.proxy.release();
    let ended = world.resume();
    world.check_issued(&ended);
    assert_eq!(world.proxy.sent(kind.request).len(), 1);
    twice_the_same(world, BodyType::CertConf);
}

/// A request that got lost on the way is sent again by the same process.
fn a_lost_request(kind: Kind) {
    let world = World::new(kind, &[]);
    world.proxy.treat(kind.request, Treatment::Swallow);
    let client = world.start(false);
    world.proxy.wait_for(kind.request, Stage::Lost, 1);
    world.proxy.release();
    world.check_issued(&client.end());
    twice_the_same(&world, kind.request);
}

fn twice_the_same(world: &World, body_type: BodyType) {
    let sent = world.proxy.sent(body_type);
    assert_eq!(sent.len(), 2, "{:?}", world.proxy.summary());
    assert!(sent[0] == sent[1], "the repeated request is another one");
}

fn wait_for_next(client: &Process, what: &str) {
    let beginning = format!("next {what} at ");
    client.wait_for(&beginning, |line| {
        line.starts_with(&beginning).then_some(())
    });
}

/// Only a pollRep names a checkAfter, so at least one poll was made.
fn wait_between_polls(client: &Process) {
    client.wait_for("wait between two polls", |line| {
        (line.starts_with("next poll at ") && line.contains("checkAfter")).then_some(())
    });
}

macro_rules! at_every_point {
    ($($name:ident: $kind:ident;)+) => {
        $(mod $name {
            use super::$kind as KIND;

            #[test]
            fn killed_before_the_first_send() {
                super::before_the_first_send(KIND);
            }

            #[test]
            fn killed_after_the_send_and_before_the_answer() {
                super::after_the_send(KIND);
            }

            #[test]
            fn killed_while_polling() {
                super::while_polling(KIND);
            }

            #[test]
            fn killed_after_the_certificate_is_stored_and_before_cert_conf() {
                super::before_cert_conf(KIND);
            }

            #[test]
            fn killed_after_cert_conf_and_before_pki_conf() {
                super::before_pki_conf(KIND);
            }

            #[test]
            fn killed_after_cert_conf_at_a_ca_that_refuses_repetitions() {
                super::before_pki_conf_at_a_strict_ca(KIND);
            }

            #[test]
            fn a_request_that_is_lost_is_repeated_octet_for_octet() {
                super::a_lost_request(KIND);
            }
        })+
    };
}

at_every_point! {
    p10cr_by_secret: P10CR;
    p10cr_by_signature: P10CR_SIGNED;
    ir_by_secret: IR;
    ir_by_signature: IR_SIGNED;
}
