//! Clients that take their time, and clients that do not wait.

use std::thread::sleep;
use std::time::{Duration, Instant};

use abide_tests::gateway::Wire;
use abide_tests::process::Ended;

use super::{World, ir, told, vector};

const BAD_REQUEST: u8 = 2;

#[test]
fn slow_heads_and_bodies_are_cut_and_others_are_served() {
    let world = World::new();
    let limits = "[limits]\nhead_seconds = 1\nbody_seconds = 1\nidle_seconds = 2\n";
    let gateway = world.configured("", limits);
    let message = ir();
    let began = Instant::now();
    let mut silent = gateway.wire();
    let mut heads: Vec<Wire> = (0..20).map(|_| gateway.wire()).collect();
    let mut bodies: Vec<Wire> = (0..20).map(|_| gateway.wire()).collect();
    let request = Wire::request(&[], &message);
    for wire in &mut heads {
        wire.send(b"POST / HTTP/1.1\r\nX-Slow");
    }
    for wire in &mut bodies {
        wire.send(&request[..request.len() - 10]);
    }
    let mut quick = gateway.wire();
    while began.elapsed() < Duration::from_millis(1500) {
        for wire in &mut heads {
            wire.send(b"l");
        }
        let asked = Instant::now();
        assert_eq!(quick.post(&[], &message).status, 200);
        assert!(asked.elapsed() < Duration::from_millis(900));
        sleep(Duration::from_millis(100));
    }
    for wire in &mut heads {
        wire.until_closed();
    }
    for wire in &mut bodies {
        let reply = wire.reply().expect("an answer");
        assert_eq!(reply.status, 408);
        assert_eq!(told(&reply).bits, [BAD_REQUEST]);
        wire.until_closed();
    }
    silent.until_closed();
    assert!(began.elapsed() < Duration::from_secs(20));
    for (line, count) in [
        ("connections_cut_total{reason=\"slow-head\"}", 20.0),
        ("connections_cut_total{reason=\"idle\"}", 1.0),
        ("refused_total{reason=\"slow-body\"}", 20.0),
    ] {
        gateway.until_metric(&format!("abide_gateway_{line}"), count);
    }
    // All that is left is who still asks.
    gateway.until_metric("abide_gateway_connections_cut_total{reason=\"idle\"}", 2.0);
    assert_eq!(gateway.metric("abide_gateway_connections"), 0.0);
}

#[test]
fn one_address_cannot_have_all_connections() {
    let world = World::new();
    let limits = "[limits]\nconnections = 8\nconnections_per_address = 4\n";
    let gateway = world.configured("", limits);
    let message = ir();
    let mut held: Vec<Wire> = (0..4).map(|_| gateway.wire()).collect();
    for wire in &mut held {
        assert_eq!(wire.post(&[], &message).status, 200);
    }
    for _ in 0..20 {
        gateway.wire().until_closed();
    }
    gateway.until_metric(
        "abide_gateway_connections_cut_total{reason=\"per-address\"}",
        20.0,
    );
    let mut neighbour = Wire::from([127, 0, 0, 2], gateway.address());
    assert_eq!(neighbour.post(&[], &message).status, 200);
    drop(held.pop());
    let deadline = Instant::now() + Duration::from_secs(20);
    loop {
        let mut wire = gateway.wire();
        wire.send(&Wire::request(&[], &message));
        if wire.reply().is_some() {
            break;
        }
        assert!(Instant::now() < deadline, "a place never comes back");
    }
}

/// Requests without waiting for answers are served one after the other.
#[test]
fn pipelining_is_bounded_and_counted() {
    let world = World::new();
    let gateway = world.gateway(&[]);
    let message = ir();
    let mut wire = gateway.wire();
    let requests = Wire::request(&[], &message).repeat(50);
    wire.send(&requests);
    for _ in 0..50 {
        let reply = wire.reply().expect("an answer");
        assert_eq!(reply.body, vector("openssl-3.0-ir-pbm-2-ip"));
    }
    assert_eq!(world.ca.asked(), 50);
    let pipelined = gateway.metric("abide_gateway_pipelined_total");
    assert!((1.0..50.0).contains(&pipelined), "{pipelined}");
}

/// What is under way ends, nothing new begins.
#[test]
fn sigterm_lets_running_requests_end() {
    let world = World::slow(Duration::from_secs(2));
    let gateway = world.gateway(&[]);
    let mut idle = gateway.wire();
    let mut busy = gateway.wire();
    busy.send(&Wire::request(&[], &ir()));
    while world.ca.asked() == 0 {
        sleep(Duration::from_millis(10));
    }
    gateway.terminate();
    assert_eq!(busy.reply().expect("an answer").status, 200);
    busy.until_closed();
    idle.until_closed();
    let Ended { code, stderr, .. } = gateway.end();
    assert_eq!(code, Some(0), "{stderr}");
    assert!(stderr.contains("stopping"), "{stderr}");
}
