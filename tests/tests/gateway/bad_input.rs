//! What must never reach a CA, and what its sender is told.

use std::thread;
use std::time::{Duration, Instant};

use abide_tests::gateway::Wire;

use super::{World, ir, told, vector};

#[path = "../../../guest/cmp/tests/bounds/bombs.rs"]
#[allow(dead_code, reason = "the codec's own test uses the rest")]
mod bombs;

/// PKIFailureInfo (RFC 9810, 5.2.3).
const BAD_MESSAGE_CHECK: u8 = 1;
const BAD_REQUEST: u8 = 2;
const BAD_DATA_FORMAT: u8 = 5;
const SYSTEM_FAILURE: u8 = 25;

/// What is no PKIMessage in DER, by X.690 alone.
fn malformed() -> Vec<Vec<u8>> {
    let whole = ir();
    let mut all = vec![
        Vec::new(),
        b"<html><body>not found</body></html>".to_vec(),
        b"{\"transactionID\": \"00\"}".to_vec(),
        b"-----BEGIN CERTIFICATE-----\n".to_vec(),
        vec![0; 1000],
        vec![0xff; 1000],
        // A SEQUENCE of indefinite length, of nothing, and one inside the other 20 000 times.
        vec![0x30, 0x80, 0x00, 0x00],
        vec![0x30, 0x00],
        [0x30, 0x80].repeat(20_000),
        // Octets after the end.
        [&whole[..], &[0x00]].concat(),
        [&whole[..], &whole[..]].concat(),
        // A SET, a high tag number, a length of five octets.
        [&[0x31], &whole[1..]].concat(),
        [&[0x3f, 0x30], &whole[1..]].concat(),
        [&[0x30, 0x85, 0x00, 0x00, 0x00], &whole[1..]].concat(),
    ];
    // The message ends in the middle, at places all over it.
    let cuts = 50 - all.len();
    all.extend((1..=cuts).map(|part| whole[..whole.len() * part / (cuts + 1)].to_vec()));
    assert_eq!(all.len(), 50);
    all
}

#[test]
fn fifty_malformed_bodies_never_reach_the_ca() {
    let world = World::new();
    let gateway = world.gateway(&[]);
    let mut wire = gateway.wire();
    for (index, body) in malformed().into_iter().enumerate() {
        let reply = wire.post(&[], &body);
        // RFC 9811, 3.1: the request of HTTP was successful.
        assert_eq!(reply.status, 200, "{index}: {reply:?}");
        let told = told(&reply);
        assert_eq!(told.bits, [BAD_DATA_FORMAT], "{index}: {told:?}");
        assert!(told.text.contains("no PKIMessage"), "{index}: {told:?}");
    }
    assert_eq!(world.ca.asked(), 0);
    let undecodable = gateway.metric("abide_gateway_refused_total{reason=\"undecodable\"}");
    let bombs = gateway.metric("abide_gateway_refused_total{reason=\"bomb\"}");
    assert_eq!(undecodable + bombs, 50.0);
    // Others go on, also on the same connection.
    let reply = wire.post(&[], &ir());
    assert_eq!(reply.body, vector("openssl-3.0-ir-pbm-2-ip"));
    assert_eq!(world.ca.asked(), 1);
    gateway.logged("the refusal", |line| {
        line["reason"] == "undecodable" && line["policy"] == "decode" && line["status"] == 200
    });
}

#[test]
fn an_error_belongs_to_the_transaction_of_a_broken_message() {
    let world = World::new();
    let gateway = world.gateway(&[]);
    let whole = ir();
    let message = abide_cmp::PkiMessage::from_der(&whole).expect("a message");
    let transaction = message.header.transaction_id.map(<[u8]>::to_vec);
    let nonce = message.header.sender_nonce.map(<[u8]>::to_vec);
    assert!(transaction.is_some() && nonce.is_some());
    // The header is whole, the body ends early.
    let told = told(&gateway.post(&[], &whole[..whole.len() - 40]));
    assert_eq!(told.bits, [BAD_DATA_FORMAT]);
    assert_eq!(told.transaction_id, transaction);
    assert_eq!(told.recip_nonce, nonce);
    assert_eq!(world.ca.asked(), 0);
}

#[test]
fn what_http_has_against_a_request_is_told_in_both() {
    let world = World::new();
    let gateway = world.gateway(&["--body-limit", "1024"]);
    let message = ir();
    assert!(message.len() < 1024, "{}", message.len());
    let long = vec![0x30; 1025];
    let chunked = "Host: x\r\nContent-Type: application/pkixcmp\r\nTransfer-Encoding: chunked\r\n";
    let chunks = [
        format!("POST / HTTP/1.1\r\n{chunked}\r\n400\r\n").into_bytes(),
        vec![0x30; 1024],
        b"\r\n400\r\n".to_vec(),
        vec![0x30; 1024],
    ];
    let cases = [
        ("method", b"GET / HTTP/1.1\r\nHost: x\r\n\r\n".to_vec(), 405),
        (
            "content-type",
            Wire::request(&[("Content-Type", "application/json")], &message),
            415,
        ),
        (
            "content-encoding",
            Wire::request(&[("Content-Encoding", "gzip")], &message),
            415,
        ),
        ("oversize", Wire::request(&[], &long), 413),
        ("oversize", chunks.concat(), 413),
        (
            "bad-chunking",
            format!("POST / HTTP/1.1\r\n{chunked}\r\nno number\r\n").into_bytes(),
            400,
        ),
        (
            "bad-chunking",
            format!("POST / HTTP/1.1\r\n{chunked}\r\nfffffffffffffffff\r\n").into_bytes(),
            400,
        ),
    ];
    for (reason, octets, status) in cases {
        let line = format!("abide_gateway_refused_total{{reason=\"{reason}\"}}");
        let before = gateway.metric(&line);
        let mut wire = gateway.wire();
        wire.send(&octets);
        let reply = wire
            .reply()
            .unwrap_or_else(|| panic!("{reason}: no answer"));
        assert_eq!(reply.status, status, "{reason}: {reply:?}");
        let bit = match reason {
            "bad-chunking" => BAD_DATA_FORMAT,
            _ => BAD_REQUEST,
        };
        assert_eq!(told(&reply).bits, [bit], "{reason}");
        assert_eq!(gateway.metric(&line), before + 1.0, "{reason}");
        // Nobody can tell where the next request would begin.
        wire.until_closed();
    }
    assert_eq!(world.ca.asked(), 0);
    // A body in chunks that are well is a body.
    let mut wire = gateway.wire();
    let (one, other) = message.split_at(100);
    let head = format!("POST / HTTP/1.1\r\n{chunked}\r\n64\r\n");
    let size = format!("\r\n{:x}\r\n", other.len());
    wire.send(
        &[
            head.as_bytes(),
            one,
            size.as_bytes(),
            other,
            b"\r\n0\r\n\r\n",
        ]
        .concat(),
    );
    assert_eq!(wire.reply().expect("an answer").status, 200);
    assert_eq!(world.ca.seen()[0].1, message);
}

/// What is no HTTP at all has no answer in CMP: the connection ends.
#[test]
fn what_is_no_http_ends_the_connection() {
    let world = World::new();
    let gateway = world.gateway(&[]);
    let both = "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: gzip\r\n\
                Content-Type: application/pkixcmp\r\n\r\n";
    for octets in [
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03".to_vec(),
        b"POST /\xff\x00 HTTP/1.1\r\n\r\n".to_vec(),
        both.as_bytes().to_vec(),
        [&b"POST / HTTP/1.1\r\n"[..], &b"X: y\r\n".repeat(2000)].concat(),
        b"POST / HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n".to_vec(),
    ] {
        let mut wire = gateway.wire();
        wire.send(&octets);
        wire.until_closed();
    }
    gateway.until_metric(
        "abide_gateway_connections_cut_total{reason=\"bad-head\"}",
        4.0,
    );
    assert_eq!(world.ca.asked(), 0);
    assert_eq!(gateway.post(&[], &ir()).status, 200);
}

#[test]
fn bombs_cost_little_and_nobody_else() {
    let world = World::new();
    let body = "[limits]\nbody_bytes = 1048576\n";
    let gateway = world.configured("", body);
    // Messages in messages, more than the codec follows.
    let deep = (0..8).fold(bombs::shortest(), |inner, _| bombs::nested(&inner, 1));
    let all = [
        deep,
        bombs::nested_shortest(),
        bombs::original_in_original(),
        bombs::deep_value(),
        bombs::many_infos(),
        bombs::many_requests(),
        bombs::many_texts(),
        bombs::long_sender(0x07),
    ];
    let message = ir();
    thread::scope(|scope| {
        for bomb in &all {
            scope.spawn(|| {
                for _ in 0..3 {
                    let reply = gateway.post(&[], bomb);
                    assert_eq!(reply.status, 200);
                }
            });
        }
        let mut wire = gateway.wire();
        for _ in 0..20 {
            let began = Instant::now();
            assert_eq!(wire.post(&[], &message).status, 200);
            assert!(began.elapsed() < Duration::from_secs(10));
        }
    });
    let bombs = gateway.metric("abide_gateway_refused_total{reason=\"bomb\"}");
    assert!(bombs >= 3.0, "{bombs}");
    assert!(gateway.memory_kib() < 700 << 10, "{}", gateway.memory_kib());
}

/// A component that may have less memory than a message needs stops in the middle of a call.
#[test]
fn a_sandbox_that_stops_is_replaced() {
    let world = World::new();
    let small = "[limits]\nbody_bytes = 1048576\n[sandbox]\nmemory_mib = 2\n";
    let gateway = world.configured("", small);
    let bomb = bombs::many_requests();
    let mut wire = gateway.wire();
    for round in 1..=3 {
        let reply = wire.post(&[], &bomb);
        assert_eq!(reply.status, 500, "{reply:?}");
        assert_eq!(told(&reply).bits, [SYSTEM_FAILURE]);
        let failures = "abide_gateway_sandbox_failures_total{reason=\"memory\"}";
        assert_eq!(gateway.metric(failures), f64::from(round));
        let reply = wire.post(&[], &ir());
        assert_eq!(reply.body, vector("openssl-3.0-ir-pbm-2-ip"));
    }
    assert_eq!(world.ca.asked(), 3);
}

#[test]
fn types_and_protection_that_are_not_allowed_are_refused() {
    let world = World::new();
    let gateway = world.gateway(&["--require-protection", "--allow", "ir,certConf"]);
    let mut wire = gateway.wire();
    for (name, bit, words) in [
        ("openssl-3.0-rr-rsa-1-rr", BAD_REQUEST, "of the type rr"),
        ("openssl-3.0-ir-pbm-2-ip", BAD_REQUEST, "of the type ip"),
        (
            "openssl-3.0-ir-unprotected-1-ir",
            BAD_MESSAGE_CHECK,
            "without protection",
        ),
    ] {
        let octets = vector(name);
        let message = abide_cmp::PkiMessage::from_der(&octets).expect("a message");
        let reply = wire.post(&[], &octets);
        assert_eq!(reply.status, 200, "{name}");
        let told = told(&reply);
        assert_eq!(told.bits, [bit], "{name}");
        assert!(told.text.contains(words), "{name}: {told:?}");
        assert_eq!(
            told.transaction_id.as_deref(),
            message.header.transaction_id
        );
        assert_eq!(told.recip_nonce.as_deref(), message.header.sender_nonce);
    }
    assert_eq!(world.ca.asked(), 0);
    assert_eq!(wire.post(&[], &ir()).status, 200);
    assert_eq!(world.ca.asked(), 1);
}

/// For who wants a refusal to be one of HTTP, too.
#[test]
fn the_status_of_refusals_can_be_that_of_an_error() {
    let world = World::new();
    let gateway = world.configured("error_status = \"client-error\"\nallowed = [\"ir\"]", "");
    assert_eq!(gateway.post(&[], b"x").status, 400);
    let reply = gateway.post(&[], &vector("openssl-3.0-rr-rsa-1-rr"));
    assert_eq!(reply.status, 403);
    assert_eq!(told(&reply).bits, [BAD_REQUEST]);
}
