//! The OpenAPI document, held against the running service: each answer of a walk has the form
//! that the document gives to its status.

use std::collections::BTreeSet;

use abide_tests::service::{Answer, Service};
use boon::{Compiler, Schemas};
use serde_json::{Value, json};

use crate::{World, order, wish};

const PLACE: &str = "urn:abide:test:openapi";

struct Walk {
    service: Service,
    document: Value,
    seen: BTreeSet<(String, String, u16)>,
}

impl Walk {
    /// Sends a request, and compares its answer with the document.
    fn go(&mut self, method: &str, template: &str, path: &str, body: Option<&Value>) -> Answer {
        let answer = match body {
            Some(body) => {
                let json = [("Content-Type", "application/json")];
                self.service
                    .call(method, path, &json, body.to_string().as_bytes())
            }
            None => self.service.call(method, path, &[], b""),
        };
        self.compare(method, template, &answer);
        answer
    }

    fn compare(&mut self, method: &str, template: &str, answer: &Answer) {
        let operation = &self.document["paths"][template][method.to_lowercase()];
        let response = &operation["responses"][answer.status.to_string()];
        assert!(
            response.is_object(),
            "{method} {template}: {} is not documented",
            answer.status
        );
        let given = answer.header("content-type").expect("a media type");
        let essence = given.split(';').next().unwrap_or_default();
        let content = &response["content"][essence];
        assert!(
            content.is_object(),
            "{method} {template}: {essence} is not documented"
        );
        let pointer = format!(
            "/paths/{}/{}/responses/{}/content/{}/schema",
            escape(template),
            method.to_lowercase(),
            answer.status,
            escape(essence)
        );
        let value = match essence.ends_with("json") {
            true => answer.json(),
            false => Value::from(answer.body.clone()),
        };
        let mut schemas = Schemas::new();
        let mut compiler = Compiler::new();
        compiler
            .add_resource(PLACE, self.document.clone())
            .expect("a document");
        let index = compiler
            .compile(&format!("{PLACE}#{pointer}"), &mut schemas)
            .unwrap_or_else(|error| panic!("{pointer}: {error}"));
        if let Err(error) = schemas.validate(&value, index) {
            panic!(
                "{method} {template} {}: {error:#}\n{value:#}",
                answer.status
            );
        }
        self.seen
            .insert((method.to_owned(), template.to_owned(), answer.status));
    }
}

/// A part of a JSON pointer (RFC 6901, 3), in the fragment of a URL.
fn escape(part: &str) -> String {
    part.replace('~', "~0")
        .replace('/', "~1")
        .replace('{', "%7B")
        .replace('}', "%7D")
}

#[test]
fn every_answer_is_as_documented() {
    let world = World::new(&[]);
    let service = world.serve(
        "[delivery]\ndirectory = \"certs\"\n\
         [cache_sharding]\nenabled = true\nheartbeat_ms = 300\nttl_ms = 900\n\
         [rate_limit]\nenabled = true\n",
    );
    let document = service.get("/openapi.json").json();
    assert!(
        document["openapi"]
            .as_str()
            .is_some_and(|version| version.starts_with("3.1"))
    );
    let id = order(&service, &wish("device"));
    service.until(&id, "delivery", |order| {
        order["delivery"]["state"] == "delivered"
    });
    let mut walk = Walk {
        service,
        document,
        seen: BTreeSet::new(),
    };
    let mut keyed = wish("another");
    keyed["key"] = json!("k");
    walk.go("POST", "/v1/orders", "/v1/orders", Some(&keyed));
    walk.go("POST", "/v1/orders", "/v1/orders", Some(&keyed));
    keyed["subject"] = json!("/CN=third");
    walk.go("POST", "/v1/orders", "/v1/orders", Some(&keyed));
    walk.go(
        "POST",
        "/v1/orders",
        "/v1/orders",
        Some(&json!({ "csr": "AAAA" })),
    );
    walk.go("POST", "/v1/orders", "/v1/orders", None);
    let huge = json!({ "csr": "A".repeat(2 << 20) });
    walk.go("POST", "/v1/orders", "/v1/orders", Some(&huge));
    let json_type = [("Content-Type", "application/json")];
    let malformed = walk.service.call("POST", "/v1/orders", &json_type, b"{");
    walk.compare("POST", "/v1/orders", &malformed);

    walk.go("GET", "/v1/orders", "/v1/orders?state=ACTIVE&limit=1", None);
    walk.go("GET", "/v1/orders", "/v1/orders?limit=1000", None);
    let no = "/v1/orders/0190";
    for template in [
        "/v1/orders/{id}",
        "/v1/orders/{id}/certificate",
        "/v1/orders/{id}/explain",
    ] {
        walk.go("GET", template, &template.replace("{id}", &id), None);
        walk.go("GET", template, &template.replace("{id}", "0190"), None);
    }
    walk.go(
        "GET",
        "/v1/orders/{id}/explain",
        &format!("{no}/explain?hours=999"),
        None,
    );
    let renew = "/v1/orders/{id}/renew";
    walk.go("POST", renew, &renew.replace("{id}", &id), None);
    walk.go("POST", renew, &renew.replace("{id}", "0190"), None);
    walk.service.until_state(&id, "ACTIVE");
    let cancel = "/v1/orders/{id}/cancel";
    let mine = cancel.replace("{id}", &id);
    walk.go("POST", cancel, &mine, Some(&json!({ "why": "enough" })));
    walk.go("POST", cancel, &mine, Some(&json!({ "because": "enough" })));
    walk.go("POST", cancel, &cancel.replace("{id}", "0190"), None);
    walk.go("POST", renew, &renew.replace("{id}", &id), None);

    let hydrate = "/v1/admin/queue/hydrate";
    walk.go(
        "POST",
        hydrate,
        &format!("{hydrate}?executionId={id}"),
        None,
    );
    walk.go(
        "POST",
        hydrate,
        &format!("{hydrate}?executionId=0190"),
        None,
    );
    walk.go("POST", hydrate, &format!("{hydrate}?from=1&to=0"), None);
    let force = "/v1/admin/force-cancel";
    walk.go("PUT", force, &format!("{force}?executionId={id}"), None);
    walk.go("PUT", force, &format!("{force}?executionId=0190"), None);
    walk.go("PUT", force, force, None);

    for list in [
        "/v1/transactions",
        "/v1/tasks",
        "/v1/dead-letters",
        "/v1/zombies",
    ] {
        walk.go("GET", list, list, None);
        walk.go("GET", list, &format!("{list}?limit=0"), None);
    }
    let transactions = walk.service.get("/v1/transactions").json();
    let one = transactions["items"][0]["transaction_id"]
        .as_str()
        .expect("an id")
        .to_owned();
    walk.go(
        "GET",
        "/v1/transactions/{id}",
        &format!("/v1/transactions/{one}"),
        None,
    );
    walk.go(
        "GET",
        "/v1/transactions/{id}",
        "/v1/transactions/00ff",
        None,
    );
    let replay = "/v1/dead-letters/{order}/replay";
    walk.go("POST", replay, "/v1/dead-letters/0190/replay", None);
    walk.go("GET", "/v1/shards", "/v1/shards", None);
    let owner = "/v1/shards/owner";
    walk.go("GET", owner, "/v1/shards/owner?account=prod", None);
    walk.go("GET", owner, "/v1/shards/owner", None);
    walk.go("GET", "/v1/overview", "/v1/overview", None);
    limits(&mut walk);
    for probe in ["/healthz", "/readyz", "/metrics"] {
        walk.go("GET", probe, probe, None);
    }

    // No path is left out, and of each at least one success but for what needs a dead letter.
    let paths = walk.document["paths"].as_object().expect("paths");
    for (template, operations) in paths {
        for method in operations.as_object().expect("operations").keys() {
            let seen = walk.seen.iter().any(|(seen, at, status)| {
                seen.eq_ignore_ascii_case(method)
                    && at == template
                    && (*status < 300 || template == replay)
            });
            assert!(seen, "{method} {template} was not walked");
        }
    }
}

/// The API of limits, and a request that is one too many.
fn limits(walk: &mut Walk) {
    let all = "/v1/admin/rate-limit";
    let learning = "/v1/admin/rate-limit/learning";
    let principal = "/v1/admin/rate-limit/principals/{principal}";
    let one = "/v1/admin/rate-limit/principals/somebody";
    let enforcing = json!({ "enforcing": true, "capacity": 7, "rate_seconds": 60 });
    walk.go("GET", principal, one, None);
    walk.go("PUT", principal, one, Some(&enforcing));
    walk.go("PUT", principal, one, Some(&json!({ "rate_seconds": 0 })));
    walk.go("GET", principal, one, None);
    walk.go(
        "PUT",
        learning,
        learning,
        Some(&json!({ "learning": true })),
    );
    walk.go("GET", all, all, None);
    walk.go("DELETE", learning, learning, None);
    walk.go("DELETE", principal, one, None);
    let anonymous = "/v1/admin/rate-limit/principals/anonymous";
    let none = json!({ "enforcing": true, "capacity": 0 });
    walk.go("PUT", principal, anonymous, Some(&none));
    let refused = walk.go("GET", all, all, None);
    assert_eq!(refused.status, 429, "{refused:?}");
}

#[test]
fn prometheus_finds_what_happened() {
    let world = World::new(&[]);
    let service = world.serve("");
    let id = order(&service, &wish("device"));
    service.until_state(&id, "ACTIVE");
    let text = service.get("/metrics").body;
    for line in [
        "abide_orders{state=\"ACTIVE\"} 1",
        "abide_task_runs_total{kind=\"start\",outcome=\"issued\"} 1",
        "abide_transactions_total{outcome=\"issued\"} 1",
        "abide_orphans_total 0",
        "abide_task_run_seconds_count{kind=\"start\"} 1",
        "abide_http_requests_total{method=\"POST\",route=\"/v1/orders\",status=\"201\"} 1",
    ] {
        assert!(
            text.lines().any(|found| found == line),
            "{line} is not in\n{text}"
        );
    }
}
