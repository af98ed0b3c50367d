//! Limits on requests: the headers, and names that clients choose for themselves.

use std::thread;
use std::time::{SystemTime, UNIX_EPOCH};

use abide_tests::gateway::{Reply, Wire};

use super::{World, ir, told};

const SYSTEM_UNAVAIL: u8 = 24;

/// The seconds since the epoch of a date of HTTP, by `date`.
fn seconds(date: &str) -> u64 {
    let mut command = std::process::Command::new("date");
    let text = abide_tests::process::succeed(command.args(["-u", "-d", date, "+%s"]));
    text.trim().parse().expect("a number")
}

/// The headers that go onto every answer.
#[track_caller]
fn check_headers(reply: &Reply, capacity: &str, learning: &str) {
    assert_eq!(
        reply.header("x-ratelimit-capacity"),
        Some(capacity),
        "{reply:?}"
    );
    assert_eq!(
        reply.header("x-ratelimit-learning"),
        Some(learning),
        "{reply:?}"
    );
    let remaining = reply.header("x-ratelimit-remaining").expect("a number");
    assert!(remaining.parse::<u32>().is_ok(), "{remaining}");
    let reset = seconds(reply.header("x-ratelimit-reset").expect("a date"));
    let date = seconds(reply.header("date").expect("a date"));
    assert!(reset > date, "{reply:?}");
    let now = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .expect("a time");
    assert!(date.abs_diff(now.as_secs()) < 60);
}

#[test]
fn who_asks_too_often_is_told_so_in_http_and_in_cmp() {
    let world = World::new();
    let gateway = world.gateway(&["--rate-limit", "3/60", "--by-address"]);
    let mut wire = gateway.wire();
    for _ in 0..3 {
        let reply = wire.post(&[], &ir());
        assert_eq!(reply.status, 200);
        check_headers(&reply, "3", "false");
        assert_eq!(reply.header("retry-after"), None);
    }
    let message = ir();
    let asked = abide_cmp::PkiMessage::from_der(&message).expect("a message");
    let reply = wire.post(&[], &message);
    assert_eq!(reply.status, 429);
    check_headers(&reply, "3", "false");
    // Never more than three in any sixty seconds: about that much later.
    let after: u32 = reply
        .header("retry-after")
        .expect("a time")
        .parse()
        .expect("seconds");
    assert!((50..=70).contains(&after), "{after}");
    let error = told(&reply);
    assert_eq!(error.bits, [SYSTEM_UNAVAIL]);
    assert!(error.text.contains("too many requests"), "{error:?}");
    assert_eq!(error.transaction_id.as_deref(), asked.header.transaction_id);
    assert_eq!(world.ca.asked(), 3);
    assert_eq!(gateway.metric("ratelimit_throttling_total"), 1.0);
    let line = gateway.logged("the refusal", |line| line["verdict"] == "throttled");
    assert_eq!(line["policy"], "rate_limit");
    assert_eq!(line["type"], "ir");
}

/// Also on what is refused for another reason, which is charged like the rest.
#[test]
fn every_answer_has_the_headers() {
    let world = World::new();
    let gateway = world.gateway(&["--rate-limit", "4/60", "--by-address", "--allow", "cr"]);
    for (headers, body) in [
        (&[("Content-Type", "text/plain")][..], ir()),
        (&[], b"nonsense".to_vec()),
        (&[], ir()),
        (&[], vec![0x30; 70_000]),
        (&[], b"nonsense".to_vec()),
    ] {
        let reply = gateway.post(headers, &body);
        check_headers(&reply, "4", "false");
    }
    // Four of them had no sender but their address.
    let reply = gateway.post(&[], b"nonsense");
    assert_eq!(reply.status, 429, "{reply:?}");
    assert_eq!(world.ca.asked(), 0);
}

#[test]
fn learning_counts_and_lets_pass() {
    let world = World::new();
    let gateway = world.gateway(&["--rate-limit", "2/60", "--learning"]);
    for _ in 0..5 {
        let reply = gateway.post(&[], &ir());
        assert_eq!(reply.status, 200);
        check_headers(&reply, "2", "true");
    }
    assert_eq!(world.ca.asked(), 5);
    assert_eq!(gateway.metric("ratelimit_throttling_total"), 0.0);
    assert_eq!(gateway.metric("ratelimit_throttling_learning_total"), 3.0);
}

/// A client calls itself like a setting, like somebody else, or like nothing that can be: it
/// sets nothing, and takes nothing of anybody.
#[test]
fn a_name_that_a_client_chooses_has_no_power() {
    let world = World::new();
    let gateway = world.gateway(&["--rate-limit", "2/600", "--by-address"]);
    let long = "x".repeat(12 << 10);
    let names = [
        "learning",
        "enforcing",
        "ignoring",
        "capacity:bob",
        "rateLimit:capacity:bob",
        "principal:bob",
        "sender:O=abide+tests,CN=new",
        "address:127.0.0.3",
        "anonymous",
        "others",
        "\u{e4}",
        &long,
    ];
    for name in names {
        let app = [("X-RateLimit-App", name)];
        let mut wire = gateway.wire();
        let statuses: Vec<u16> = (0..4)
            .map(|_| wire.post(&app, b"nonsense").status)
            .collect();
        // As a name of its own it has two, and else it is its address, which has two for all.
        let passed = statuses.iter().filter(|status| **status == 200).count();
        assert!(passed <= 2, "{name:.40}: {statuses:?}");
        let reply = wire.post(&app, b"nonsense");
        check_headers(&reply, "2", "false");
        assert_eq!(reply.status, 429, "{name:.40}");
    }
    // 64 KiB are no head of a request.
    let mut wire = gateway.wire();
    let huge = "x".repeat(64 << 10);
    wire.send(&Wire::request(&[("X-RateLimit-App", &huge)], &ir()));
    wire.until_closed();
    // Nobody else has lost anything: who is known by a sender, and who is known by an address.
    let mut sender = gateway.wire();
    assert_eq!(sender.post(&[], &ir()).status, 200);
    let mut other = Wire::from([127, 0, 0, 3], gateway.address());
    let reply = other.post(&[], b"nonsense");
    assert_eq!(reply.header("x-ratelimit-remaining"), Some("1"));
}

#[test]
fn a_hundred_thousand_names_take_bounded_memory_and_nobodys_place() {
    const CLIENTS: u32 = 8;
    const EACH: u32 = 12_500;
    let world = World::new();
    let options = [
        "--rate-limit",
        "10/600",
        "--by-address",
        "--log-level",
        "warn",
        // They are refused before they get to the CA, which is not on trial.
        "--allow",
        "cr",
    ];
    let gateway = world.gateway(&options);
    let message = ir();
    gateway.post(&[], &message);
    let before = gateway.memory_kib();
    thread::scope(|scope| {
        for client in 0..CLIENTS {
            let (gateway, message) = (&gateway, &message);
            scope.spawn(move || {
                let mut wire = gateway.wire();
                for number in 0..EACH {
                    let name = format!("name-{client}-{number}");
                    let reply = wire.post(&[("X-RateLimit-App", &name)], message);
                    assert!(matches!(reply.status, 200 | 429), "{reply:?}");
                }
            });
        }
    });
    let grown = gateway.memory_kib().saturating_sub(before);
    assert!(grown < 64 << 10, "{grown} KiB more");
    // The first thousand have a bucket of their own, the others share one.
    let throttled = gateway.metric("ratelimit_throttling_total");
    let all = f64::from(CLIENTS * EACH);
    assert!(throttled > all - 1000.0 - 1000.0, "{throttled} of {all}");
    let mut other = Wire::from([127, 0, 0, 4], gateway.address());
    let reply = other.post(&[], b"nonsense");
    assert_eq!(reply.status, 200, "{reply:?}");
    assert_eq!(reply.header("x-ratelimit-remaining"), Some("9"));
}
