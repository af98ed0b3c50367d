//! Quality of service on the real service: who starts, who waits, and who is let out.

use std::thread::sleep;
use std::time::{Duration, Instant};

use abide_tests::service::Service;
use serde_json::{Value, json};

use crate::{World, order, wish};

/// Nobody is let out for as long as a test takes.
const NO_PROMOTION: &str = "promotion = { promote_interval_ms = 3600000 }\n";

/// A CA that lets everybody wait: whatever was sent to it is under way for hours.
const SLOW: [&str; 4] = ["--poll-count", "3", "--check-after", "3000"];

fn count(service: &Service, state: &str) -> usize {
    let mut number = 0;
    let mut cursor = String::new();
    loop {
        let path = format!("/v1/orders?limit=200&state={state}{cursor}");
        let page = service.get(&path).json();
        number += page["items"].as_array().expect("orders").len();
        match page["next"].as_str() {
            Some(next) => cursor = format!("&cursor={next}"),
            None => return number,
        }
    }
}

fn until_count(service: &Service, state: &str, number: usize) {
    let deadline = Instant::now() + Duration::from_secs(120);
    while count(service, state) != number {
        assert!(
            Instant::now() < deadline,
            "{} are {state}, not {number}; it said:\n{}",
            count(service, state),
            service.said()
        );
        sleep(Duration::from_millis(100));
    }
}

fn lines(order: &Value) -> String {
    let history = order["history"].as_array().expect("a history");
    let texts = history.iter().filter_map(|line| line["text"].as_str());
    texts.collect::<Vec<_>>().join("\n")
}

fn has_task(service: &Service, id: &str) -> bool {
    let tasks = service.get("/v1/tasks?limit=200").json();
    let tasks = tasks["items"].as_array().expect("tasks").clone();
    tasks.iter().any(|task| task["order"] == id)
}

/// The document of the seed: "the high threshold of active executions before QoS will start
/// actuating", 100 by default.
#[test]
fn a_hundred_active_orders_are_not_too_many_and_one_more_is() {
    let world = World::new(&SLOW);
    let service = world.serve(&format!(
        "[qos]\nenabled = true\nlearning_mode = false\n{NO_PROMOTION}"
    ));
    for number in 0..100 {
        order(&service, &wish(&format!("device-{number}")));
    }
    until_count(&service, "RUNNING", 100);
    let id = order(&service, &wish("beside-a-hundred"));
    let started = service.until_state(&id, "RUNNING");
    assert!(
        lines(&started).contains("100 active orders are not above 100"),
        "{started:#}"
    );
    until_count(&service, "RUNNING", 101);
    let answer = service.post("/v1/orders", &wish("beside-a-hundred-and-one"));
    assert_eq!(answer.status, 201, "{answer:?}");
    let buffered = answer.json();
    assert_eq!(buffered["state"], "BUFFERED", "{buffered:#}");
    assert_eq!(buffered["next_attempt_at"], Value::Null);
    let id = buffered["id"].as_str().expect("an id");
    assert!(!has_task(&service, id));
    let lines = lines(&buffered);
    for text in ["naive votes BUFFER", "interactive votes ABSTAIN"] {
        assert!(lines.contains(text), "{text} is not in\n{lines}");
    }
    let metrics = service.get("/metrics").body;
    for line in [
        "qos_executions_buffered_total{learning=\"false\"} 1",
        "qos_executions_enqueued_total{learning=\"false\"} 101",
        "qos_buffering 1",
        "qos_actuator_elapsed_seconds_count 102",
    ] {
        let found = metrics.lines().any(|found| found == line);
        assert!(found, "{line} is not in\n{metrics}");
    }
    for part in ["policy=\"naive\"", "verdict=\"BUFFER\""] {
        assert!(service.said().contains(part), "{part}:\n{}", service.said());
    }
}

#[test]
fn the_kill_switch_buffers_all_but_what_a_person_waits_for() {
    let world = World::new(&[]);
    let config = |on: bool, learning: bool| {
        format!(
            "[qos]\nenabled = true\nlearning_mode = {learning}\n\
             supplier = {{ kill-switch = {{ enabled = {on} }} }}\n{NO_PROMOTION}"
        )
    };
    let service = world.serve(&config(false, false));
    let id = order(&service, &wish("off"));
    service.until_state(&id, "ACTIVE");
    service.stop();

    let service = world.serve(&config(true, false));
    let id = order(&service, &wish("on"));
    assert_eq!(
        service.get(&format!("/v1/orders/{id}")).json()["state"],
        "BUFFERED"
    );
    let mut forced = wish("forced");
    forced["origin"] = json!("ui");
    forced["by_hand"] = json!(true);
    let forced = order(&service, &forced);
    let forced = service.until_state(&forced, "ACTIVE");
    assert!(
        lines(&forced).contains("interactive votes ENQUEUE, forced"),
        "{forced:#}"
    );
    service.stop();

    let service = world.serve(&config(true, true));
    let learning = order(&service, &wish("learning"));
    let learning = service.until_state(&learning, "ACTIVE");
    assert!(
        lines(&learning).contains("would be buffered were this not learning mode"),
        "{learning:#}"
    );
    let metrics = service.get("/metrics").body;
    let line = "qos_executions_buffered_total{learning=\"true\"} 1";
    assert!(metrics.lines().any(|found| found == line), "{metrics}");
    // What was buffered before stays so: promotion is another matter.
    let before = service.get(&format!("/v1/orders/{id}")).json();
    assert_eq!(before["state"], "BUFFERED", "{before:#}");
    let canceled = service.post(&format!("/v1/orders/{id}/cancel"), &json!({}));
    assert_eq!(canceled.json()["state"], "CANCELED");
}

fn killed(size: u32, interval_ms: u32) -> String {
    format!(
        "[qos]\nenabled = true\nlearning_mode = false\n\
         supplier = {{ kill-switch = {{ enabled = true }} }}\n\
         [qos.promotion]\npromote_interval_ms = {interval_ms}\n\
         policies = [{{ naive = {{ size = {size} }} }}]\n"
    )
}

/// The ids of promoted orders, in the order in which they were.
fn promoted(said: &str) -> Vec<String> {
    let lines = said
        .lines()
        .filter_map(|line| line.split_once(" promoted order=\""));
    let ids = lines.filter_map(|(_, rest)| rest.split('"').next());
    ids.map(str::to_owned).collect()
}

#[test]
fn the_oldest_leave_first_however_many_come() {
    let world = World::new(&SLOW);
    let service = world.serve(&killed(1, 3_600_000));
    let old: Vec<String> = (0..100)
        .map(|number| order(&service, &wish(&format!("old-{number}"))))
        .collect();
    assert_eq!(count(&service, "BUFFERED"), 100);
    service.stop();

    let service = world.serve(&killed(1, 150));
    let deadline = Instant::now() + Duration::from_secs(120);
    let mut number = 0;
    while promoted(&service.said()).len() < 100 {
        // One new one for each that leaves.
        let left = promoted(&service.said()).len();
        while number < left {
            order(&service, &wish(&format!("new-{number}")));
            number += 1;
        }
        assert!(Instant::now() < deadline, "{}", service.said());
        sleep(Duration::from_millis(20));
    }
    assert_eq!(promoted(&service.said())[..100], old[..]);
    let first = service.get(&format!("/v1/orders/{}", old[0])).json();
    assert!(
        lines(&first).contains("promoted: naive: at most 1 in one look"),
        "{first:#}"
    );
}

#[test]
fn a_policy_that_is_off_releases_none() {
    let world = World::new(&[]);
    // Somebody must be able to release them one day, or the service does not start.
    let service = world.serve(
        "[qos]\nenabled = true\nlearning_mode = false\n\
         supplier = { kill-switch = { enabled = true } }\n\
         [qos.promotion]\npromote_interval_ms = 100\n\
         policies = [{ naive = { size = 0 } }, \
                     { longest-wait = { most_ms = 3600000, size = 1 } }]\n",
    );
    for number in 0..3 {
        order(&service, &wish(&format!("device-{number}")));
    }
    sleep(Duration::from_secs(2));
    assert_eq!(count(&service, "BUFFERED"), 3);
    assert_eq!(world.issued(), 0);
}

#[test]
fn nobody_is_buffered_for_ever() {
    let world = World::new(&[]);
    let refused = |more: &str, said: &str, code: i32| {
        std::fs::write(world.abide.path("abide.toml"), world.config(more)).expect("a file");
        let ended = world.abide.run(["serve"]);
        assert_eq!(ended.code, Some(code), "{ended:?}");
        assert!(ended.stderr.contains(said), "{said}: {ended:?}");
    };
    let off = "[qos.promotion]\nenabled = false\n";
    let never = "nothing would ever release them";
    let on = format!("[qos]\nenabled = true\nlearning_mode = false\n{off}");
    refused(&on, "nothing would ever release a buffered order", 2);
    let service = world.serve(&killed(1, 3_600_000));
    order(&service, &wish("device"));
    service.stop();
    // Quality of service is off, but somebody waits for the promoter.
    refused(off, never, 1);
    refused(off, "1 orders are buffered", 1);
}

/// The first order occupies the only hand of the worker, so that the second one is promoted and
/// not started when the worker dies.
#[test]
fn a_death_between_promotion_and_start_runs_it_once() {
    let world = World::new(&[]);
    let config = format!(
        "{}[scheduler]\nretry_lock_timeout_seconds = 4\nschedule_period_seconds = 1\n",
        killed(1, 300)
    );
    let config = world
        .config(&config)
        .replace("[service]\n", "[service]\nconcurrency = 1\n");
    let mut service = Service::start(&world.abide, &config);
    world.ca.suspend();
    let mut first = wish("first");
    first["origin"] = json!("ui");
    first["by_hand"] = json!(true);
    let first = order(&service, &first);
    service.wait_for("message-sent");
    let second = order(&service, &wish("second"));
    service.until_state(&second, "NOT_STARTED");
    assert!(has_task(&service, &second));
    service.kill();
    world.ca.resume();
    let service = Service::again(&world.abide);
    for id in [first, second] {
        service.until_state(&id, "ACTIVE");
    }
    assert_eq!(world.issued(), 2);
}
