//! The HTTP side, spoken by hand.

use std::io::{Read, Write};
use std::net::TcpStream;

use crate::wire;
use crate::world::{self, World};

pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) head: String,
    pub(crate) body: Vec<u8>,
}

/// One request on a connection of its own.
pub(crate) fn send(url: &str, method: &str, content_type: &str, body: &[u8]) -> Answer {
    let (authority, path) = url
        .strip_prefix("http://")
        .unwrap()
        .split_once('/')
        .unwrap();
    let head = format!(
        "{method} /{path} HTTP/1.1\r\nHost: {authority}\r\nContent-Type: {content_type}\r\n\
         Content-Length: {}\r\nConnection: close\r\n\r\n",
        body.len()
    );
    let mut stream = TcpStream::connect(authority).unwrap();
    stream.write_all(head.as_bytes()).unwrap();
    // A server may refuse by the head alone.
    let _ = stream.write_all(body);
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer);
    let end = answer
        .windows(4)
        .position(|four| four == b"\r\n\r\n")
        .unwrap();
    let head = String::from_utf8(answer[..end].to_vec())
        .unwrap()
        .to_lowercase();
    let status = head.split(' ').nth(1).unwrap().parse().unwrap();
    Answer {
        status,
        head,
        body: answer[end + 4..].to_vec(),
    }
}

/// Posts a CMP message and returns the answer.
pub(crate) fn post(world: &World, message: &[u8]) -> Vec<u8> {
    let answer = send(world.url(), "POST", "application/pkixcmp", message);
    assert_eq!(
        answer.status,
        200,
        "{}",
        String::from_utf8_lossy(&answer.body)
    );
    assert!(
        answer.head.contains("content-type: application/pkixcmp"),
        "{}",
        answer.head
    );
    answer.body
}

#[test]
fn what_is_not_a_posted_message() {
    let world = World::new(|_| ());
    let get = send(world.url(), "GET", "text/plain", b"");
    assert_eq!(get.status, 405);
    assert!(get.head.contains("allow: post"), "{}", get.head);
    assert_eq!(get.body.iter().filter(|&&octet| octet == b'\n').count(), 1);
    assert_eq!(
        send(world.url(), "POST", "text/html", b"<html>").status,
        415
    );
    let elsewhere = world.url().replace("pkix", "other");
    assert_eq!(
        send(&elsewhere, "POST", "application/pkixcmp", b"").status,
        404
    );
    // The decoder takes 1 MiB.
    let large = vec![0x30; (1 << 20) + 1];
    assert_eq!(
        send(world.url(), "POST", "application/pkixcmp", &large).status,
        413
    );
    assert_eq!(world.books(), []);
}

#[test]
fn garbage_gets_a_signed_error() {
    let world = World::new(|_| ());
    let bare = world.url().trim_end_matches('/');
    let answer = send(
        bare,
        "POST",
        "application/pkixcmp; charset=binary",
        b"garbage",
    );
    let message = wire::Message::read(&answer.body);
    assert_eq!(
        (message.kind, message.fail_info.as_str()),
        ("error", "badDataFormat")
    );
    assert!(wire::is_signed_by_ca(&world, &answer.body));
    assert!(world::last_refusal(&world.books()).starts_with("badDataFormat"));
}

#[test]
fn a_connection_is_kept_alive() {
    let world = World::new(|options| options.poll_count = 3);
    let (authority, _) = world
        .url()
        .strip_prefix("http://")
        .unwrap()
        .split_once('/')
        .unwrap();
    let mut stream = TcpStream::connect(authority).unwrap();
    let head = format!("GET /pkix/ HTTP/1.1\r\nHost: {authority}\r\n\r\n");
    for _ in 0..2 {
        stream.write_all(head.as_bytes()).unwrap();
        let mut octets = [0; 1024];
        let length = stream.read(&mut octets).unwrap();
        assert!(octets[..length].starts_with(b"HTTP/1.1 405"));
    }
}
