//! Limits on requests, at the real service.

use std::fs;
use std::thread::sleep;
use std::time::{Duration, Instant};

use abide_tests::service::{Answer, Service};
use serde_json::json;

use crate::{World, order, wish};

const HEADERS: [&str; 4] = [
    "x-ratelimit-capacity",
    "x-ratelimit-remaining",
    "x-ratelimit-reset",
    "x-ratelimit-learning",
];

/// Tokens of these names, which may all; the token of NAME is NAME-token.
fn tokens(world: &World, names: &[&str]) -> String {
    let mut config = String::new();
    for name in names {
        let file = format!("{name}.txt");
        fs::write(world.abide.path(&file), format!("{name}-token")).expect("a token");
        config.push_str(&format!(
            "[[tokens]]\nname = \"{name}\"\nfile = \"{file}\"\n\
             rights = [\"read\", \"write\", \"admin\"]\n"
        ));
    }
    config
}

fn ask(service: &Service, name: &str) -> Answer {
    let token = format!("Bearer {name}-token");
    service.call("GET", "/v1/tasks", &[("Authorization", &token)], b"")
}

fn put(service: &Service, path: &str, body: &serde_json::Value) -> Answer {
    let headers = [
        ("Authorization", "Bearer boss-token"),
        ("Content-Type", "application/json"),
    ];
    let path = format!("/v1/admin/rate-limit/{path}");
    service.call("PUT", &path, &headers, body.to_string().as_bytes())
}

/// Whether the third of two allowed requests is refused, and what is told about it.
fn is_enforced(service: &Service, name: &str) -> bool {
    let answers = [(); 3].map(|()| ask(service, name));
    let [first, second, third] = &answers;
    assert_eq!((first.status, second.status), (200, 200), "{answers:?}");
    assert_eq!(first.header("x-ratelimit-capacity"), Some("2"));
    assert_eq!(first.header("x-ratelimit-remaining"), Some("1"));
    assert_eq!(second.header("x-ratelimit-remaining"), Some("0"));
    let enforced = third.status == 429;
    assert!(enforced || third.status == 200, "{third:?}");
    for answer in &answers {
        let learning = (!enforced).to_string();
        assert_eq!(answer.header("x-ratelimit-learning"), Some(&*learning));
    }
    enforced
}

/// The lists of the seed's document: in enforcing, in ignoring, in both; whoever is in none goes
/// by the flag, and whoever is in both is only learnt from.
const LISTS: [(&str, bool, bool); 4] = [
    ("none", false, false),
    ("enforced", true, false),
    ("ignored", false, true),
    ("both", true, true),
];

fn expected(learning: bool, enforcing: bool, ignoring: bool) -> bool {
    match (enforcing, ignoring) {
        (true, false) => true,
        (_, true) => false,
        (false, false) => !learning,
    }
}

#[test]
fn the_matrix_of_learning_by_the_configuration() {
    for learning in [true, false] {
        let world = World::new(&[]);
        let service = world.serve(&format!(
            "{}[rate_limit]\nenabled = true\nlearning = {learning}\ncapacity = 2\n\
             rate_seconds = 600\nenforcing = [\"enforced\", \"both\"]\n\
             ignoring = [\"ignored\", \"both\"]\n",
            tokens(&world, &LISTS.map(|(name, ..)| name))
        ));
        for (name, enforcing, ignoring) in LISTS {
            assert_eq!(
                is_enforced(&service, name),
                expected(learning, enforcing, ignoring),
                "learning = {learning}, {name}"
            );
        }
        assert!(
            service.said().contains("is also in enforcing"),
            "{}",
            service.said()
        );
    }
}

#[test]
fn the_matrix_of_learning_as_it_is_set_while_the_service_runs() {
    let world = World::new(&[]);
    let names: Vec<String> = [true, false]
        .iter()
        .flat_map(|learning| LISTS.map(|(name, ..)| format!("{name}-{learning}")))
        .collect();
    let mut all: Vec<&str> = names.iter().map(String::as_str).collect();
    all.push("boss");
    // The configuration says the opposite of what is set.
    let service = world.serve(&format!(
        "{}[rate_limit]\nenabled = true\ncapacity = 1000\nrate_seconds = 600\n",
        tokens(&world, &all)
    ));
    for learning in [true, false] {
        let flag = put(&service, "learning", &json!({ "learning": learning }));
        assert_eq!(flag.status, 200, "{flag:?}");
        assert_eq!(flag.json()["learning"], learning);
        for (name, enforcing, ignoring) in LISTS {
            let name = format!("{name}-{learning}");
            let set = json!({ "enforcing": enforcing, "ignoring": ignoring, "capacity": 2 });
            let set = put(&service, &format!("principals/{name}"), &set);
            assert_eq!(set.status, 200, "{set:?}");
            assert_eq!(set.json()["by"], "boss");
            assert_eq!(
                is_enforced(&service, &name),
                expected(learning, enforcing, ignoring),
                "learning = {learning}, {name}"
            );
        }
    }
    // Taken away, the configuration holds again.
    let boss = [("Authorization", "Bearer boss-token")];
    let one = "/v1/admin/rate-limit/principals/none-false";
    assert_eq!(ask(&service, "none-false").status, 429);
    assert_eq!(service.call("GET", one, &boss, b"").json()["capacity"], 2);
    assert_eq!(service.call("DELETE", one, &boss, b"").status, 200);
    assert_eq!(service.call("GET", one, &boss, b"").status, 404);
    let again = ask(&service, "none-false");
    assert_eq!(again.header("x-ratelimit-capacity"), Some("1000"));
}

#[test]
fn what_is_set_holds_in_every_worker_within_a_second() {
    let world = World::new(&[]);
    let first = world.serve(&format!(
        "{}[rate_limit]\nenabled = true\n",
        tokens(&world, &["boss", "client"])
    ));
    let second = Service::again(&world.abide);
    let learning = |service: &Service| {
        let answer = ask(service, "client");
        answer.header("x-ratelimit-learning") == Some("true")
    };
    assert!(learning(&first) && learning(&second));
    let set = put(&first, "principals/client", &json!({ "enforcing": true }));
    assert_eq!(set.status, 200, "{set:?}");
    let began = Instant::now();
    assert!(!learning(&first), "at once where it was set");
    while learning(&second) {
        assert!(began.elapsed() < Duration::from_secs(1), "not in a second");
        sleep(Duration::from_millis(50));
    }
    // Who may not set limits does not.
    let nobody = [("Content-Type", "application/json")];
    let path = "/v1/admin/rate-limit/learning";
    let answer = second.call("PUT", path, &nobody, b"{\"learning\": true}");
    assert_eq!(answer.status, 401, "{answer:?}");
}

/// Seconds of an HTTP date within its day.
fn seconds(date: &str) -> u64 {
    let time = date.split(' ').nth(4).unwrap_or_else(|| panic!("{date}"));
    let parts = time.split(':').map(|part| part.parse::<u64>().expect(date));
    parts.fold(0, |all, part| all * 60 + part)
}

#[test]
fn every_answer_tells_what_is_left() {
    let world = World::new(&[]);
    let service = world.serve(
        "[rate_limit]\nenabled = true\nlearning = false\ncapacity = 6\nrate_seconds = 600\n",
    );
    let id = order(&service, &wish("device"));
    let answers = [
        service.get(&format!("/v1/orders/{id}")),
        service.get("/v1/orders/0190"),
        service.get("/v1/orders?limit=0"),
        service.call("PATCH", "/v1/orders", &[], b""),
        service.get("/nowhere"),
        service.get("/v1/orders"),
    ];
    let statuses: Vec<u16> = answers.iter().map(|answer| answer.status).collect();
    assert_eq!(statuses, [200, 404, 422, 405, 404, 429]);
    for answer in &answers {
        for name in HEADERS {
            assert!(answer.header(name).is_some(), "{name}: {answer:?}");
        }
        let date = |name: &str| seconds(answer.header(name).expect("a date"));
        let until = (date("x-ratelimit-reset") + 86_400 - date("date")) % 86_400;
        // A cell is free at most a sixteenth of the span later than it could be.
        assert!((1..=638).contains(&until), "{until} s: {answer:?}");
    }
    let [.., refused] = &answers;
    let problem = refused.json();
    assert_eq!(
        refused.header("content-type"),
        Some("application/problem+json")
    );
    assert_eq!(problem["type"], "urn:abide:problem:too-many");
    let wait = refused.header("retry-after").expect("a time");
    // All six were taken just now, and each is free one span later, or a sixteenth after that.
    assert!(
        (590..=638).contains(&wait.parse::<u64>().expect("seconds")),
        "{wait}"
    );
    assert_eq!(refused.header("x-ratelimit-remaining"), Some("0"));

    // Whoever looks after the service is never shut out.
    for probe in ["/healthz", "/readyz", "/metrics"] {
        assert_eq!(service.get(probe).status, 200);
    }
    let metrics = service.get("/metrics").body;
    for line in [
        "ratelimit_throttling_total 1",
        "ratelimit_throttling_learning_total 0",
        "ratelimit_principal_throttled_total{principal=\"anonymous\"} 1",
        "ratelimit_principal_remaining{principal=\"anonymous\"} 0",
    ] {
        let found = metrics.lines().any(|found| found == line);
        assert!(found, "{line} is not in\n{metrics}");
    }
}

#[test]
fn a_name_that_a_client_gives_itself_is_no_way_out() {
    let world = World::new(&[]);
    let service = world.serve(&format!(
        "{}[rate_limit]\nenabled = true\nlearning = false\ncapacity = 2\nrate_seconds = 600\n\
         ignoring = [\"bob\"]\n",
        tokens(&world, &["bob", "boss"])
    ));
    for app in ["learning", "enforcing", "capacity:bob", "bob", "boss"] {
        let ask = || {
            service
                .call("GET", "/v1/orders", &[("X-RateLimit-App", app)], b"")
                .status
        };
        assert_eq!([ask(), ask(), ask()], [401, 401, 429], "{app}");
    }
    // Nobody else is affected.
    let bob = ask(&service, "bob");
    assert_eq!(bob.header("x-ratelimit-remaining"), Some("1"), "{bob:?}");
    assert_eq!(bob.header("x-ratelimit-learning"), Some("true"));
    let boss = ask(&service, "boss");
    assert_eq!(boss.header("x-ratelimit-remaining"), Some("1"), "{boss:?}");
    // A name that is none is nobody's.
    let long = "a".repeat(8 << 10);
    let answer = service.call("GET", "/v1/orders", &[("X-RateLimit-App", &long)], b"");
    assert_eq!(
        answer.header("x-ratelimit-remaining"),
        Some("1"),
        "{answer:?}"
    );
    let answer = service.get("/v1/orders");
    assert_eq!(
        answer.header("x-ratelimit-remaining"),
        Some("0"),
        "{answer:?}"
    );
    let refused = put(&service, "principals/app:x", &json!({ "ignoring": true }));
    assert_eq!(refused.status, 422, "{refused:?}");
}

/// Two messages a second, and each order takes two: its request and its confirmation.
#[test]
fn what_is_sent_to_an_endpoint_is_limited() {
    let world = World::new(&[]);
    let service = world.serve(
        "[outgoing]\nenabled = true\nlearning = false\ncapacity = 2\nrate_seconds = 1\n\
         [scheduler]\nschedule_period_seconds = 1\n",
    );
    let began = Instant::now();
    let ids: Vec<String> = (0..4)
        .map(|number| order(&service, &wish(&format!("device-{number}"))))
        .collect();
    let mut postponed = 0;
    for id in &ids {
        let order = service.until_state(id, "ACTIVE");
        assert_eq!(order["issuance_attempts"], serde_json::Value::Null);
        let history = order["history"].to_string();
        let why = "the limit of 2 messages in 1 s to its endpoint is reached";
        postponed += usize::from(history.contains(why));
    }
    // The first takes what is there, the others a second each.
    assert!(
        began.elapsed() >= Duration::from_secs(3),
        "{:?}",
        began.elapsed()
    );
    assert!(postponed >= 3, "{postponed} were postponed");
    assert_eq!(world.issued(), 4);
}
