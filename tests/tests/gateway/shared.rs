//! Two gateways that count together on one Redis.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use abide_tests::gateway::Gateway;
use abide_tests::redis::Redis;

use super::{World, ir};

/// The clients at each gateway, and how often each of them asks.
const CLIENTS: usize = 10;
const EACH: usize = 50;

/// Slow machines are no reason to learn.
fn config(redis: &Redis, rate_limit: &str) -> (String, String) {
    (
        format!(
            "counters = \"{}\"\ncounters_patience_ms = 10000\n",
            redis.url()
        ),
        format!("[rate_limit]\nenabled = true\nlearning = false\n{rate_limit}\n"),
    )
}

#[test]
fn of_a_thousand_first_requests_at_once_a_hundred_pass() {
    let redis = Redis::start();
    let (gateway, rest) = config(&redis, "capacity = 100\nrate_seconds = 3600");
    let worlds = [World::new(), World::new()];
    let gateways: Vec<Gateway> = worlds
        .iter()
        .map(|world| world.configured(&gateway, &rest))
        .collect();
    let (passed, refused) = (AtomicUsize::new(0), AtomicUsize::new(0));
    thread::scope(|scope| {
        for client in 0..2 * CLIENTS {
            let gateway = &gateways[client % 2];
            let (passed, refused) = (&passed, &refused);
            scope.spawn(move || {
                let mut wire = gateway.wire();
                for _ in 0..EACH {
                    match wire.post(&[], &ir()).status {
                        200 => passed.fetch_add(1, Ordering::Relaxed),
                        429 => refused.fetch_add(1, Ordering::Relaxed),
                        other => panic!("{other}"),
                    };
                }
            });
        }
    });
    assert_eq!(passed.into_inner(), 100);
    assert_eq!(refused.into_inner(), 900);
    assert_eq!(
        worlds.iter().map(|world| world.ca.asked()).sum::<usize>(),
        100
    );
}

#[test]
fn redis_that_dies_under_load_refuses_nobody_and_enforces_again_when_it_is_back() {
    let mut redis = Redis::start();
    let (gateway, rest) = config(&redis, "capacity = 5\nrate_seconds = 3600");
    let world = World::new();
    let gateway = world.configured(&gateway, &rest);
    let mut wire = gateway.wire();
    for _ in 0..5 {
        assert_eq!(wire.post(&[], &ir()).status, 200);
    }
    assert_eq!(wire.post(&[], &ir()).status, 429);

    redis.kill();
    for _ in 0..50 {
        let reply = wire.post(&[], &ir());
        assert_eq!(reply.status, 200, "{reply:?}");
        assert_eq!(reply.header("x-ratelimit-learning"), Some("true"));
    }
    redis.start_again();
    let deadline = Instant::now() + Duration::from_secs(20);
    loop {
        let reply = wire.post(&[], &ir());
        if reply.header("x-ratelimit-learning") == Some("false") {
            break;
        }
        assert_eq!(reply.status, 200, "{reply:?}");
        assert!(Instant::now() < deadline, "{}", gateway.said());
        thread::sleep(Duration::from_millis(50));
    }
    // It has forgotten what was before, and counts anew.
    for _ in 1..5 {
        assert_eq!(wire.post(&[], &ir()).status, 200);
    }
    assert_eq!(wire.post(&[], &ir()).status, 429);
    let said = gateway.said();
    assert_eq!(
        said.matches("the store of the rate limit is away").count(),
        1,
        "{said}"
    );
    assert_eq!(
        said.matches("the store of the rate limit is back").count(),
        1,
        "{said}"
    );
}

#[test]
fn what_operators_set_in_redis_is_followed_at_once() {
    let redis = Redis::start();
    let (gateway, rest) = config(&redis, "capacity = 1\nrate_seconds = 3600");
    let world = World::new();
    let gateway = world.configured(&gateway, &rest);
    let mut wire = gateway.wire();
    assert_eq!(wire.post(&[], &ir()).status, 200);
    assert_eq!(wire.post(&[], &ir()).status, 429);
    redis.call(&["SET", "rateLimit:learning", "true"]);
    let reply = wire.post(&[], &ir());
    assert_eq!(reply.status, 200, "{reply:?}");
    assert_eq!(reply.header("x-ratelimit-learning"), Some("true"));
    redis.call(&["DEL", "rateLimit:learning"]);
    assert_eq!(wire.post(&[], &ir()).status, 429);
}

#[test]
fn an_address_that_is_none_is_a_mistake_with_its_line() {
    let world = World::new();
    std::fs::write(
        world.abide.path("gateway.toml"),
        "[gateway]\nlisten = \"127.0.0.1:0\"\ncounters = \"http://redis\"\n\
         [rate_limit]\nenabled = true\n[[upstreams]]\nurl = \"http://127.0.0.1:1/\"\n",
    )
    .expect("a configuration");
    let mut command = world.abide.command(["gateway", "--config", "gateway.toml"]);
    let ended = abide_tests::process::Process::start(&mut command).end();
    assert_eq!(ended.code, Some(2), "{ended:?}");
    let expected = "gateway.toml:3:12: gateway.counters: this is no address of counters";
    assert!(ended.stderr.contains(expected), "{ended:?}");
}
