//! CAs that are not there, and which one gets what.

use std::net::{Ipv4Addr, SocketAddr};
use std::thread::sleep;
use std::time::Duration;

use abide_tests::abide::Abide;
use abide_tests::canned::{Answer, Canned};
use abide_tests::gateway::{Ca, Gateway};
use tokio::net::TcpSocket;

use super::{World, ir, told, vector};

const SYSTEM_UNAVAIL: u8 = 24;
const SYSTEM_FAILURE: u8 = 25;

/// A port that is nobody else's, and refuses.
fn refusing() -> (TcpSocket, String) {
    let socket = TcpSocket::new_v4().expect("a socket");
    let loopback = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    socket.bind(loopback).expect("a free port");
    let url = format!("http://{}/pkix/", socket.local_addr().expect("its address"));
    (socket, url)
}

fn alone(upstreams: &[&str]) -> (tempfile::TempDir, Gateway) {
    let dir = tempfile::tempdir().expect("a folder for a test");
    let options = upstreams.iter().flat_map(|url| ["--upstream", url]);
    let options: Vec<&str> = options.collect();
    let gateway = Gateway::start(&Abide::new(dir.path()), &options);
    (dir, gateway)
}

#[test]
fn a_ca_that_is_not_there_is_named_and_left_alone() {
    let (_port, url) = refusing();
    let (_dir, gateway) = alone(&[&url]);
    for _ in 0..3 {
        let reply = gateway.post(&[], &ir());
        assert_eq!(reply.status, 502);
        let told = told(&reply);
        assert_eq!(told.bits, [SYSTEM_UNAVAIL]);
        assert!(told.text.contains("has not received"), "{told:?}");
    }
    // After three failures in a row it is left alone for a second.
    let reply = gateway.post(&[], &ir());
    assert_eq!(reply.status, 503);
    assert_eq!(reply.header("retry-after"), Some("1"));
    assert_eq!(told(&reply).bits, [SYSTEM_UNAVAIL]);
    let ready = gateway.admin("/readyz");
    assert_eq!(ready.status, 503);
    let said = String::from_utf8(ready.body).expect("text");
    assert!(said.contains(&url) && said.contains("refused"), "{said}");
    assert_eq!(gateway.admin("/healthz").status, 200);
    let up = format!("abide_gateway_upstream_up{{upstream=\"{url}\"}}");
    assert_eq!(gateway.metric(&up), 0.0);
    // Then one message tries, and the pause doubles.
    sleep(Duration::from_millis(1100));
    assert_eq!(gateway.post(&[], &ir()).status, 502);
    let reply = gateway.post(&[], &ir());
    assert_eq!(reply.status, 503);
    assert_eq!(reply.header("retry-after"), Some("2"));
}

#[test]
fn another_ca_gets_what_the_first_has_not_seen() {
    let world = World::new();
    let (port, url) = refusing();
    let (_dir, gateway) = alone(&[&url, &world.ca.url()]);
    for _ in 0..10 {
        assert_eq!(gateway.post(&[], &ir()).status, 200);
    }
    assert_eq!(world.ca.asked(), 10);
    let unreachable = format!(
        "abide_gateway_upstream_requests_total{{upstream=\"{url}\",outcome=\"unreachable\"}}"
    );
    assert_eq!(gateway.metric(&unreachable), 3.0);
    assert_eq!(gateway.admin("/readyz").status, 200);
    let line = gateway.logged("a message", |line| line["verdict"] == "forwarded");
    assert_eq!(line["upstream"], world.ca.url());
    drop(port);
}

/// Who has received a request may have issued a certificate: it is sent nowhere else.
#[test]
fn what_one_ca_may_have_seen_goes_to_no_other() {
    let world = World::new();
    let mute = Canned::start(Answer::Close);
    let (_dir, gateway) = alone(&[&mute.url(), &world.ca.url()]);
    let reply = gateway.post(&[], &ir());
    assert_eq!(reply.status, 504);
    let told = told(&reply);
    assert_eq!(told.bits, [SYSTEM_UNAVAIL]);
    assert!(told.text.contains("may have received"), "{told:?}");
    assert_eq!(mute.asked(), 1);
    assert_eq!(world.ca.asked(), 0);
}

#[test]
fn what_is_no_cmp_comes_from_no_ca() {
    for (status, length, expected, bit) in [
        ("200 OK", 100, 502, SYSTEM_FAILURE),
        ("503 Service Unavailable", 100, 503, SYSTEM_UNAVAIL),
    ] {
        let page = vec![b'x'; length];
        let ca = Ca::with(status, "text/html", &page, Duration::ZERO);
        let (_dir, gateway) = alone(&[&ca.url()]);
        let reply = gateway.post(&[], &ir());
        assert_eq!(reply.status, expected, "{reply:?}");
        let told = told(&reply);
        assert_eq!(told.bits, [bit]);
        assert!(told.text.contains("is no CMP"), "{told:?}");
    }
    // An error of the CA in CMP passes with its status.
    let error = vector("openssl-3.0-error-pbm-2-error");
    let ca = Ca::with(
        "400 Bad Request",
        "application/pkixcmp",
        &error,
        Duration::ZERO,
    );
    let (_dir, gateway) = alone(&[&ca.url()]);
    let reply = gateway.post(&[], &ir());
    assert_eq!((reply.status, reply.body), (400, error));
}

#[test]
fn answers_are_bounded_in_length_and_time() {
    let long = Ca::start(&vec![0x30; 5000], Duration::ZERO);
    let slow = Ca::start(&ir(), Duration::from_secs(3));
    for (url, status, words) in [
        (long.url(), 502, "more than 4096 octets"),
        (slow.url(), 504, "within 1 s"),
    ] {
        let dir = tempfile::tempdir().expect("a folder for a test");
        let text = format!(
            "[limits]\nresponse_bytes = 4096\nanswer_seconds = 1\n[[upstreams]]\nurl = \"{url}\"\n"
        );
        let gateway = Gateway::configured(&Abide::new(dir.path()), "", &text);
        let reply = gateway.post(&[], &ir());
        assert_eq!(reply.status, status, "{reply:?}");
        let told = told(&reply);
        assert!(told.text.contains(words), "{told:?}");
    }
}

/// Connections to a CA are kept, and one that it has closed meanwhile costs no request.
#[test]
fn connections_are_kept_and_replaced() {
    let world = World::new();
    let closing = Canned::start(Answer::http(
        "200 OK",
        "application/pkixcmp",
        &vector("openssl-3.0-ir-pbm-2-ip"),
    ));
    for url in [world.ca.url(), closing.url()] {
        let (_dir, gateway) = alone(&[&url]);
        let mut wire = gateway.wire();
        for _ in 0..20 {
            assert_eq!(wire.post(&[], &ir()).status, 200);
        }
    }
    assert_eq!(world.ca.asked(), 20);
    assert_eq!(world.ca.connections(), 1);
    assert_eq!(closing.asked(), 20);
}

#[test]
fn selectors_choose_the_ca() {
    let [by_label, by_type, default] = [(); 3].map(|()| {
        let answer = vector("openssl-3.0-ir-pbm-2-ip");
        Ca::start(&answer, Duration::ZERO)
    });
    let dir = tempfile::tempdir().expect("a folder for a test");
    let text = format!(
        "[[upstreams]]\nurl = \"{}\"\n\
         [[upstreams]]\nurl = \"{}\"\npriority = 10\nselector = {{ account = \"plant-.*\" }}\n\
         [[upstreams]]\nurl = \"{}\"\npriority = 5\nselector = {{ execution-type = [\"rr\"] }}\n",
        default.url(),
        by_label.url(),
        by_type.url()
    );
    let gateway = Gateway::configured(&Abide::new(dir.path()), "", &text);
    let ask = |path: &str, name: &str| {
        let body = vector(name);
        let request = abide_tests::gateway::Wire::request(&[], &body);
        let text = [
            format!("POST {path}").as_bytes(),
            &request["POST /pkix/".len()..],
        ]
        .concat();
        let mut wire = gateway.wire();
        wire.send(&text);
        assert_eq!(wire.reply().expect("an answer").status, 200);
        [&default, &by_label, &by_type].map(Ca::asked)
    };
    let (ir, rr) = ("openssl-3.0-ir-pbm-1-ir", "openssl-3.0-rr-rsa-1-rr");
    assert_eq!(ask("/.well-known/cmp", ir), [1, 0, 0]);
    assert_eq!(
        ask("/.well-known/cmp/p/plant-7/initialization", ir),
        [1, 1, 0]
    );
    assert_eq!(ask("/.well-known/cmp/p/Plant-7", rr), [1, 2, 0]);
    assert_eq!(ask("/.well-known/cmp/p/office", rr), [1, 2, 1]);
    assert_eq!(ask("/.well-known/cmp/p/office", ir), [2, 2, 1]);
}
