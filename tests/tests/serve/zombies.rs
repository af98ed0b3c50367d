//! Tasks that are deleted by hand, as the runbook's zombies come about; and orders that are ended
//! by force.

use std::thread::sleep;
use std::time::Duration;

use abide_tests::process::{Ended, Process};
use abide_tests::service::Service;
use rusqlite::Connection;
use serde_json::{Value, json};

use crate::{World, order, wish};

pub(crate) const CUTOFF: &str = "[zombie_check]\ncutoff_ms = 2000\n";

fn store(world: &World) -> Connection {
    let store = Connection::open(world.abide.path("abide.db")).expect("a store");
    store.busy_timeout(Duration::from_secs(10)).expect("a wait");
    store
}

/// Everything that is stored of a kind.
fn stored(world: &World, kind: &str) -> Vec<(String, Vec<u8>)> {
    let store = store(world);
    let mut rows = store
        .prepare("SELECT id, body FROM record WHERE kind = ?1 ORDER BY id")
        .expect("a table");
    let rows = rows
        .query_map([kind], |row| Ok((row.get(0)?, row.get(1)?)))
        .expect("rows");
    rows.collect::<Result<_, _>>().expect("rows")
}

pub(crate) fn lose_task(world: &World, id: &str) {
    let gone = store(world).execute(
        "DELETE FROM record WHERE kind = 'task' AND id = ?1 AND lease_token IS NULL",
        [id],
    );
    assert_eq!(gone, Ok(1));
}

/// Waits until an order waits for the CA and nobody holds its task.
pub(crate) fn until_polling(world: &World, service: &Service, id: &str) {
    service.until(id, "polling", |order| {
        order["state"] == "RUNNING" && order["next_attempt_at"].is_string()
    });
    let idle = "SELECT count(*) FROM record WHERE kind = 'task' AND id = ?1 AND state = 'resume' \
                AND lease_token IS NULL";
    for _ in 0..100 {
        let found: i64 = store(world)
            .query_row(idle, [id], |row| row.get(0))
            .expect("a count");
        if found == 1 {
            return;
        }
        sleep(Duration::from_millis(50));
    }
    panic!("it never waited: {}", service.said());
}

fn run(world: &World, service: &Service, words: &[&str]) -> Ended {
    let mut command = world.abide.command(words);
    command.env("ABIDE_URL", service.url());
    let ended = Process::start(&mut command).end();
    assert_eq!(ended.code, Some(0), "{words:?}: {ended:?}");
    ended
}

fn gauge(service: &Service) -> String {
    let text = service.get("/metrics").body;
    let line = text.lines().find(|line| line.starts_with("abide_zombies "));
    line.expect("the gauge").to_owned()
}

#[test]
fn a_task_deleted_by_hand_is_found_counted_listed_and_brought_back() {
    let world = World::new(&["--poll-count", "1", "--check-after", "5"]);
    let service = world.serve(CUTOFF);
    let id = order(&service, &wish("device"));
    until_polling(&world, &service, &id);
    let transaction = service.get("/v1/transactions").json()["items"][0]["transaction_id"].clone();
    lose_task(&world, &id);
    service.wait_for(&format!("Found zombie id={id}"));
    assert_eq!(gauge(&service), "abide_zombies 1");
    let text = service.get("/metrics").body;
    assert!(text.contains("abide_zombies_found_total 1"), "{text}");
    let listed = run(&world, &service, &["zombies", "list"]).stdout;
    assert!(
        listed.contains(&id) && listed.contains("RUNNING"),
        "{listed}"
    );

    // A dry run changes nothing.
    let before = (stored(&world, "standing-order"), stored(&world, "task"));
    let words = ["zombies", "hydrate", "--order", &id, "--output", "json"];
    let plan: Value = serde_json::from_str(&run(&world, &service, &words).stdout).expect("a plan");
    let after = (stored(&world, "standing-order"), stored(&world, "task"));
    assert_eq!(before, after);
    assert_eq!(plan["dryRun"], true);
    let planned = &plan["executions"][&id];
    assert_eq!(planned["canApply"], true);
    assert_eq!(planned["applied"], false);
    assert_eq!(planned["actions"][0]["message"]["kind"], "poll");
    assert_eq!(
        planned["actions"][0]["context"]["transactionID"],
        transaction
    );

    // What is applied is what was planned; the time of a poll that is overdue moves with now.
    let words = [&words[..], &["--apply"]].concat();
    let done: Value =
        serde_json::from_str(&run(&world, &service, &words).stdout).expect("what was done");
    let applied = &done["executions"][&id];
    assert_eq!(applied["applied"], true);
    let without_time = |one: &Value| {
        let mut actions = one["actions"].clone();
        actions[0]["message"]["retryAt"] = json!(null);
        actions
    };
    assert_eq!(without_time(applied), without_time(planned));
    // Applied twice runs once.
    let again: Value =
        serde_json::from_str(&run(&world, &service, &words).stdout).expect("an answer");
    assert_eq!(again["executions"][&id]["applied"], false);
    service.until_state(&id, "ACTIVE");
    assert_eq!(world.issued(), 1);
    let transactions = service.get("/v1/transactions").json();
    assert_eq!(transactions["items"].as_array().map(Vec::len), Some(1));
    assert_eq!(transactions["items"][0]["transaction_id"], transaction);
}

#[test]
fn a_range_hydrates_the_zombies_in_it() {
    let world = World::new(&["--poll-count", "1", "--check-after", "5"]);
    let service = world.serve(CUTOFF);
    let ids: Vec<_> = (0..3)
        .map(|n| order(&service, &wish(&format!("device{n}"))))
        .collect();
    for id in &ids {
        until_polling(&world, &service, id);
    }
    lose_task(&world, &ids[0]);
    lose_task(&world, &ids[2]);
    for id in [&ids[0], &ids[2]] {
        service.wait_for(&format!("Found zombie id={id}"));
    }
    let words = [
        "zombies",
        "hydrate",
        "--from",
        "2026-01-01T00:00:00Z",
        "--to",
        "2099-01-01T00:00:00Z",
    ];
    let plan = run(&world, &service, &words).stdout;
    assert!(plan.contains(&ids[0]) && plan.contains(&ids[2]), "{plan}");
    assert!(!plan.contains(&ids[1]), "{plan}");
    assert!(plan.contains("nothing was done: give --apply"), "{plan}");
    run(&world, &service, &[&words[..], &["--apply"]].concat());
    for id in &ids {
        service.until_state(id, "ACTIVE");
    }
    assert_eq!(world.issued(), 3);
}

#[test]
fn force_ends_an_order_for_good_also_when_the_service_is_killed_right_after() {
    let world = World::new(&["--poll-count", "1", "--check-after", "5"]);
    let mut service = world.serve("");
    let id = order(&service, &wish("device"));
    until_polling(&world, &service, &id);
    let path = format!("/v1/admin/force-cancel?executionId={id}&reason=stuck");
    let canceled = service.call("PUT", &path, &[], b"");
    assert_eq!(canceled.status, 200, "{canceled:?}");
    service.kill();
    let canceled = canceled.json();
    assert_eq!(canceled["state"], "CANCELED");
    assert_eq!(canceled["reason"], "canceled by force by local: stuck");

    let service = Service::again(&world.abide);
    let found = service.get(&format!("/v1/orders/{id}")).json();
    assert_eq!(found["state"], "CANCELED");
    assert_eq!(stored(&world, "task"), []);
    let transactions = service.get("/v1/transactions").json();
    assert_eq!(transactions["items"][0]["phase"], "failed");
    assert_eq!(transactions["items"][0]["failure"]["orphan"], true);
    let words = ["orders", "cancel", &id, "--force", "--output", "json"];
    let again: Value =
        serde_json::from_str(&run(&world, &service, &words).stdout).expect("an order");
    assert_eq!(again["revision"], found["revision"]);
    // The next one is served.
    let next = order(&service, &wish("next"));
    service.until_state(&next, "ACTIVE");
}

#[test]
fn what_is_asked_wrongly_is_refused() {
    let world = World::new(&[]);
    let service = world.serve("");
    let id = order(&service, &wish("device"));
    service.until_state(&id, "ACTIVE");
    let hydrate = "/v1/admin/queue/hydrate";
    for (query, status) in [
        ("", 422),
        ("?executionId=x&from=0&to=1", 422),
        ("?from=0", 422),
        ("?from=2&to=1", 422),
        ("?from=x&to=y", 422),
        ("?from=0&to=1&force=true", 422),
        ("?executionId=0190&dryRun=perhaps", 422),
        ("?executionId=0190&dry_run=false", 422),
        ("?executionId=0190", 404),
    ] {
        let answer = service.call("POST", &format!("{hydrate}{query}"), &[], b"");
        assert_eq!(answer.status, status, "{query}: {answer:?}");
        assert!(answer.json()["action"].is_string(), "{answer:?}");
    }
    let force = "/v1/admin/force-cancel";
    for (query, status) in [("", 422), ("?executionId=0190", 404)] {
        let answer = service.call("PUT", &format!("{force}{query}"), &[], b"");
        assert_eq!(answer.status, status, "{query}: {answer:?}");
    }
    assert_eq!(
        service.get(&format!("/v1/orders/{id}")).json()["state"],
        "ACTIVE"
    );
}
