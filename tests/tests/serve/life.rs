//! The life of an order: made, served, renewed, canceled, over the death of its service.

use std::fs;
use std::time::{Duration, Instant};

use abide_tests::abide::Abide;
use abide_tests::openssl::{CmpServer, Protection, verify_chain};
use abide_tests::pki::{KeyKind, Pki};
use abide_tests::service::Service;
use serde_json::json;

use crate::{World, order, wish};

#[test]
fn a_first_certificate_by_http() {
    let world = World::new(&[]);
    let service = world.serve("");
    let id = order(&service, &wish("device"));
    let done = service.until_state(&id, "ACTIVE");
    assert_eq!(done["issuance_attempts"], json!(null));
    assert_eq!(done["principal"], "local");
    assert!(done["not_after"].is_string() && done["renewal_at"].is_string());

    let chain = service.get(&format!("/v1/orders/{id}/certificate"));
    assert_eq!(chain.status, 200);
    let media_type = chain.header("content-type").expect("a media type");
    assert_eq!(media_type, "application/pem-certificate-chain");
    let file = world.abide.path("chain.pem");
    fs::write(&file, &chain.body).expect("a file");
    verify_chain(&file, world.ca.root());
    assert_eq!(world.issued(), 1);
}

#[test]
fn a_request_of_the_client_at_openssls_server() {
    let dir = tempfile::tempdir().expect("a folder");
    let pki = Pki::new(&dir.path().join("pki"), KeyKind::P256);
    let key = pki.key("new", KeyKind::P256);
    let csr = pki.csr("new", &key, "/CN=new");
    pki.issue("new", &csr);
    let server = CmpServer::start::<&str>(&pki, Protection::Pbm, &[]);
    let abide = Abide::new(dir.path());
    fs::write(abide.path("secret.txt"), CmpServer::SECRET).expect("a secret");
    let service = Service::start(
        &abide,
        &format!(
            "[service]\nlisten = \"127.0.0.1:0\"\nstore = \"sqlite:abide.db\"\n\
             [issuers.openssl]\nserver = \"{}\"\nreference = \"{}\"\n\
             secret = \"file:secret.txt\"\ntrusted = [\"pki/root.crt\"]\n",
            server.url(),
            CmpServer::REF
        ),
    );
    let pem = fs::read_to_string(&csr).expect("a request");
    let id = order(&service, &json!({ "csr": pem }));
    service.until_state(&id, "ACTIVE");
    let chain = service.get(&format!("/v1/orders/{id}/certificate")).body;
    let file = abide.path("chain.pem");
    fs::write(&file, chain).expect("a file");
    verify_chain(&file, &pki.path("root.crt"));
}

#[test]
fn the_same_wish_under_the_same_key_is_one_order() {
    let world = World::new(&[]);
    let service = world.serve("");
    let json_type = ("Content-Type", "application/json");
    let body = wish("device").to_string();
    let with_key = [json_type, ("Idempotency-Key", "k-1")];
    let first = service.call("POST", "/v1/orders", &with_key, body.as_bytes());
    assert_eq!(first.status, 201, "{first:?}");
    let id = first.json()["id"].clone();
    let location = format!("/v1/orders/{}", id.as_str().expect("an id"));
    assert_eq!(first.header("location"), Some(&*location));

    let mut again = wish("device");
    again["key"] = json!("k-1");
    let second = service.post("/v1/orders", &again);
    assert_eq!((second.status, &second.json()["id"]), (200, &id));

    let mut other = wish("another");
    other["key"] = json!("k-1");
    let third = service.post("/v1/orders", &other);
    assert_eq!(third.status, 409, "{third:?}");
    assert_eq!(third.json()["type"], "urn:abide:problem:key-reused");
    let orders = service.get("/v1/orders").json();
    assert_eq!(orders["items"].as_array().map(Vec::len), Some(1));
}

#[test]
fn a_renewal_by_hand_brings_another_certificate() {
    let world = World::new(&[]);
    let service = world.serve("");
    let id = order(&service, &wish("device"));
    let first = service.until_state(&id, "ACTIVE");
    let answer = service.post(&format!("/v1/orders/{id}/renew"), &json!({}));
    assert_eq!(answer.status, 200, "{answer:?}");
    let second = service.until(&id, "another certificate", |order| {
        order["state"] == "ACTIVE" && order["certificate_sha256"] != first["certificate_sha256"]
    });
    // A new key with each certificate.
    assert_ne!(second["key_name"], first["key_name"]);
    assert_eq!(world.issued(), 2);
}

#[test]
fn a_canceled_order_keeps_its_certificate_and_asks_for_no_other() {
    let world = World::new(&[]);
    let service = world.serve("");
    let id = order(&service, &wish("device"));
    service.until_state(&id, "ACTIVE");
    let path = format!("/v1/orders/{id}/cancel");
    let answer = service.post(&path, &json!({ "why": "the device is gone" }));
    let canceled = answer.json();
    assert_eq!(
        (answer.status, &canceled["state"]),
        (200, &json!("CANCELED"))
    );
    let why = canceled["reason"].as_str().expect("a reason");
    assert!(why.contains("the device is gone"), "{why}");
    assert_eq!(service.call("POST", &path, &[], b"").status, 200);
    let renewed = service.post(&format!("/v1/orders/{id}/renew"), &json!({}));
    assert_eq!(renewed.status, 409, "{renewed:?}");
    assert_eq!(
        service.get(&format!("/v1/orders/{id}/certificate")).status,
        200
    );
    let tasks = service.get("/v1/tasks").json();
    assert_eq!(tasks["items"], json!([]));
}

#[test]
fn a_service_that_was_killed_goes_on_where_it_stopped() {
    let world = World::new(&["--poll-count", "3", "--check-after", "1"]);
    let config = "[scheduler]\nretry_lock_timeout_seconds = 3\n";
    let mut service = world.serve(config);
    let id = order(&service, &wish("device"));
    service.until_state(&id, "RUNNING");
    service.kill();
    let service = Service::again(&world.abide);
    service.until_state(&id, "ACTIVE");
    let transactions = service.get("/v1/transactions").json();
    assert_eq!(transactions["items"].as_array().map(Vec::len), Some(1));
    assert_eq!(world.issued(), 1);
}

/// The CA makes the client poll: the stop comes while the order waits.
#[test]
fn a_service_that_is_stopped_ends_what_runs_and_hands_back_the_rest() {
    let world = World::new(&["--poll-count", "20", "--check-after", "1"]);
    let service = world.serve("");
    let id = order(&service, &wish("device"));
    service.until_state(&id, "RUNNING");
    let began = Instant::now();
    let ended = service.stop();
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert!(began.elapsed() < Duration::from_secs(10), "{ended:?}");
    assert!(ended.stderr.contains("stopped"), "{ended:?}");

    // Nobody holds it, so that the next one need not wait for the end of a lease.
    let service = Service::again(&world.abide);
    let tasks = service.get("/v1/tasks").json();
    assert_eq!(tasks["items"][0]["order"], *id);
    service.until(&id, "progress", |order| order["state"] == "RUNNING");
}

/// What the CA does not grant is tried again when the policy says so, and the user sees when.
#[test]
fn a_failure_tells_when_the_next_attempt_is() {
    let mut world = World::new(&[]);
    world.ca.kill();
    let service = world.serve("[retry.issuance]\nbase_ms = 3600000\n");
    let id = order(&service, &wish("device"));
    let waiting = service.until(&id, "a reason", |order| {
        order["next_attempt_at"].is_string() && order["state"] != "NOT_STARTED"
    });
    assert_ne!(waiting["reason"], "accepted", "{waiting:#}");
    let explained = service.get(&format!("/v1/orders/{id}/explain"));
    assert_eq!(explained.status, 200, "{explained:?}");
    let none = service.get(&format!("/v1/orders/{id}/certificate"));
    assert_eq!(none.status, 404);
    assert!(
        none.json()["action"]
            .as_str()
            .is_some_and(|what| !what.is_empty())
    );
}
