//! Whatever is wrong is a problem of its kind, and nothing of it is stored.

use abide_tests::service::{Answer, Service};
use serde_json::{Value, json};

use crate::World;

const SQL: &str = "'; DROP TABLE record; --";

/// A problem as RFC 9457 has it.
#[track_caller]
fn assert_problem(answer: &Answer, status: u16, kind: &str) {
    assert_eq!(answer.status, status, "{answer:?}");
    assert_eq!(
        answer.header("content-type"),
        Some("application/problem+json")
    );
    let problem = answer.json();
    assert_eq!(
        problem["type"],
        format!("urn:abide:problem:{kind}"),
        "{problem}"
    );
    assert_eq!(problem["status"], status);
    for part in ["title", "detail", "action"] {
        assert!(
            problem[part].as_str().is_some_and(|text| !text.is_empty()),
            "{problem}"
        );
    }
}

fn raw(service: &Service, body: &[u8]) -> Answer {
    service.call(
        "POST",
        "/v1/orders",
        &[("Content-Type", "application/json")],
        body,
    )
}

#[test]
fn nothing_that_is_wrong_is_stored() {
    let world = World::new(&[]);
    let service = world.serve("");
    let good = || json!({ "subject": "/CN=device" });
    let with = |field: &str, value: Value| {
        let mut wish = good();
        wish[field] = value;
        service.post("/v1/orders", &wish)
    };

    // JSON.
    assert_problem(&raw(&service, b"{\"subject\": "), 400, "malformed");
    assert_problem(&raw(&service, b"\xff\xfe"), 400, "malformed");
    assert_problem(
        &service.call("POST", "/v1/orders", &[], b"{}"),
        415,
        "media-type",
    );
    assert_problem(&raw(&service, b"[]"), 422, "invalid");
    assert_problem(&with("subjekt", json!("/CN=a")), 422, "invalid");
    assert_problem(&with("renews", json!("yes")), 422, "invalid");
    assert_problem(&with("key_kind", json!("rsa512")), 422, "invalid");

    // Sizes.
    let csr = "A".repeat(1_000_000);
    assert_problem(
        &service.post("/v1/orders", &json!({ "csr": csr })),
        422,
        "invalid",
    );
    let csr = "A".repeat(2_000_000);
    assert_problem(
        &service.post("/v1/orders", &json!({ "csr": csr })),
        413,
        "too-large",
    );
    let sans: Vec<String> = (0..10_000).map(|n| format!("host-{n}.example")).collect();
    assert_problem(&with("sans", json!(sans)), 422, "invalid");
    let sans: Vec<String> = (0..101).map(|n| format!("host-{n}.example")).collect();
    assert_problem(&with("sans", json!(sans)), 422, "invalid");
    assert_problem(&with("account", json!("a".repeat(129))), 422, "invalid");
    let subject = format!("/CN={}", "a".repeat(1021));
    assert_problem(&with("subject", json!(subject)), 422, "invalid");

    // Meaning.
    assert_problem(&with("issuer", json!("nobody")), 422, "invalid");
    assert_problem(&service.post("/v1/orders", &json!({})), 422, "invalid");
    assert_problem(&with("csr", json!("AAAA")), 422, "invalid");
    assert_problem(
        &service.post("/v1/orders", &json!({ "csr": "AAAA" })),
        422,
        "invalid",
    );
    assert_problem(&with("key", json!("")), 422, "invalid");
    assert_problem(&with("subject", json!("device")), 422, "invalid");

    // SQL in every field.
    for field in [
        "key",
        "account",
        "application",
        "origin",
        "issuer",
        "subject",
        "csr",
        "key_kind",
    ] {
        assert_problem(&with(field, json!(SQL)), 422, "invalid");
    }
    assert_problem(&with("sans", json!([SQL])), 422, "invalid");
    let header = [
        ("Content-Type", "application/json"),
        ("Idempotency-Key", SQL),
    ];
    let body = good().to_string();
    let answer = service.call("POST", "/v1/orders", &header, body.as_bytes());
    assert_problem(&answer, 422, "invalid");
    let sql = "%27%3B%20DROP%20TABLE%20record%3B%20--";
    assert_problem(&service.get(&format!("/v1/orders/{sql}")), 404, "not-found");
    assert_problem(
        &service.get(&format!("/v1/transactions/{sql}")),
        404,
        "not-found",
    );
    for query in ["account", "state", "cursor", "limit", "unknown"] {
        let path = format!("/v1/orders?{query}={sql}");
        assert_problem(&service.get(&path), 422, "invalid");
    }
    assert_problem(&service.get("/v1/orders?limit=0"), 422, "invalid");
    assert_problem(&service.get("/v1/orders?limit=201"), 422, "invalid");

    // Places.
    assert_problem(&service.get("/v1/orders/0190"), 404, "not-found");
    assert_problem(&service.get("/v2"), 404, "not-found");
    assert_problem(
        &service.call("DELETE", "/v1/orders", &[], b""),
        405,
        "method-not-allowed",
    );
    let dead = service.post("/v1/dead-letters/0190/replay", &json!({}));
    assert_problem(&dead, 404, "not-found");

    for list in [
        "/v1/orders",
        "/v1/tasks",
        "/v1/transactions",
        "/v1/dead-letters",
    ] {
        assert_eq!(service.get(list).json()["items"], json!([]), "{list}");
    }
    assert_eq!(world.issued(), 0);
}
