//! What is known of a certificate that was issued and never arrived.

use abide_cmp::BodyType;
use abide_tests::proxy::{Stage, Treatment};
use serde_json::Value;

use crate::world::{P10CR, World, string};

/// The CA issues, and until the deadline nobody hears of it.
#[test]
fn an_answer_that_never_arrives_leaves_an_orphan_that_can_be_found() {
    let mut world = World::new(P10CR, &[]);
    world.more = ["--total-timeout", "2", "--msg-timeout", "1"]
        .map(String::from)
        .to_vec();
    world.proxy.treat(BodyType::P10cr, Treatment::HoldAnswer);
    let client = world.start(false);
    world.proxy.wait_for(BodyType::P10cr, Stage::Answered, 1);
    let ended = client.end();
    assert_eq!(ended.code, Some(3), "{ended:?}");
    let told: Value = serde_json::from_str(&ended.stdout).expect("JSON");
    assert_eq!(told["failureClass"], "expired", "{told}");
    assert_eq!(told["orphan"], true, "{told}");

    let issued = world.booked("issued");
    assert_eq!(issued.len(), 1);
    let orphans: Value = serde_json::from_str(&world.orphans("json")).expect("JSON");
    let [orphan] = orphans.as_array().expect("an array").as_slice() else {
        panic!("{orphans}")
    };
    assert_eq!(orphan["transactionID"], issued[0]["transactionID"]);
    assert_eq!(orphan["csrDigest"], *world.csr_digest());
    assert_eq!(orphan["server"], *world.proxy.url());
    assert_eq!(orphan["operation"], "p10cr");
    for time in ["started", "givenUp"] {
        assert!(orphan[time].is_string(), "{orphan}");
    }
    let reason = string(&orphan["failure"]["reason"]);
    assert!(reason.contains("the deadline has passed"), "{reason}");

    let table = world.orphans("text");
    for what in [&world.only_id(), &world.csr_digest()[..12], &reason] {
        assert!(table.contains(what), "{table}");
    }
    assert!(table.contains("1 orphan in 1 transaction"), "{table}");
}

#[test]
fn what_was_delivered_is_no_orphan() {
    let world = World::new(P10CR, &[]);
    world.check_issued(&world.start(false).end());
    assert_eq!(world.orphans("text"), "no orphan in 1 transaction\n");
    assert_eq!(world.orphans("json").trim(), "[]");
}
