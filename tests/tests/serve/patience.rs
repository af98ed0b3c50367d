//! Backoff on the real service, with the hours of cert-manager's examples as seconds.

use abide_tests::abide::MockCa;
use abide_tests::service::Service;
use serde_json::{Value, json};

use crate::{World, order, wish};

/// An hour is a second here; the retry budget is no part of these examples.
const HOURS_AS_SECONDS: &str = "[retry.issuance]\nbase_ms = 1000\ncap_ms = 32000\n\
     [scheduler]\nschedule_period_seconds = 1\n";

/// A CA that refuses everybody until it is replaced, and an order that has failed three times.
fn thrice_failed() -> (World, Service, String) {
    let world = World::new(&["--chaos", "1", "--fault", "transaction-id-in-use=1"]);
    let service = world.serve(HOURS_AS_SECONDS);
    let id = order(&service, &wish("device"));
    let failed = service.until(&id, "three failures", |order| {
        order["issuance_attempts"] == 3
    });
    assert_eq!(failed["state"], "ERROR");
    assert_eq!(wait_of(&failed), 4, "{failed:#}");
    (world, service, id)
}

/// The CA comes back at its place, and grants what it is asked for.
fn relent(world: &mut World) {
    let url = world.ca.url().to_owned();
    let address = url.split('/').nth(2).expect("an address");
    world.ca.kill();
    world.ca = MockCa::start(world.dir.path(), &["--listen", address]);
}

/// Seconds from the last failure to the next attempt.
fn wait_of(order: &Value) -> u64 {
    let seconds = |field: &str| -> u64 {
        let text = order[field].as_str().expect("a time");
        let part = |range: std::ops::Range<usize>| text[range].parse::<u64>().expect("a number");
        part(11..13) * 3600 + part(14..16) * 60 + part(17..19)
    };
    let day = 24 * 3600;
    (seconds("next_attempt_at") + day - seconds("last_failure_time")) % day
}

#[test]
fn a_forced_renewal_that_fails_goes_on_from_where_it_was() {
    let (_world, service, id) = thrice_failed();
    let renewed = service.post(&format!("/v1/orders/{id}/renew"), &json!({}));
    assert_eq!(renewed.status, 200, "{renewed:?}");
    assert_eq!(
        renewed.json()["issuance_attempts"],
        3,
        "only success clears it"
    );
    let failed = service.until(&id, "a fourth failure", |order| {
        order["issuance_attempts"] == 4
    });
    assert_eq!(wait_of(&failed), 8, "{failed:#}");
}

#[test]
fn a_success_clears_the_failures_whoever_brought_it_about() {
    for by_hand in [false, true] {
        let (mut world, service, id) = thrice_failed();
        relent(&mut world);
        if by_hand {
            let renewed = service.post(&format!("/v1/orders/{id}/renew"), &json!({}));
            assert_eq!(renewed.status, 200, "{renewed:?}");
        }
        let order = service.until_state(&id, "ACTIVE");
        let fields = ["issuance_attempts", "last_failure_time", "failure"];
        assert!(
            fields.iter().all(|field| order[field].is_null()),
            "{order:#}"
        );
        assert_eq!(world.issued(), 1);
    }
}
