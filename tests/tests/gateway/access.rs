//! Who a message comes from.

use abide_tests::abide::Abide;
use abide_tests::gateway::{Ca, Gateway, Wire};
use abide_tests::openssl::cmp_client;
use abide_tests::pki::{KeyKind, Pki};
use abide_tests::process::Ended;
use std::time::Duration;

use super::{World, ir, vector};

/// A client with a certificate is known by its subject, and nobody else gets in.
#[test]
fn mutual_tls_tells_who_it_is() {
    let dir = tempfile::tempdir().expect("a folder for a test");
    let pki = Pki::new(&dir.path().join("pki"), KeyKind::P256);
    let ca = Ca::start(&vector("openssl-3.0-ir-pbm-2-ip"), Duration::ZERO);
    let key = pki.key("gate", KeyKind::P256);
    let csr = pki.csr("gate", &key, "/CN=127.0.0.1");
    pki.issue("gate", &csr);
    let file = |name: &str| pki.path(name).display().to_string();
    let chain = file("chain.pem");
    let pems = ["gate.crt", "sub.crt"].map(|name| std::fs::read(pki.path(name)).expect("a PEM"));
    std::fs::write(&chain, pems.concat()).expect("a chain");
    let url = ca.url();
    let (key, issuer) = (file("gate.key"), file("sub.crt"));
    let options = [
        ["--upstream", &url],
        ["--tls-cert", &chain],
        ["--tls-key", &key],
        ["--tls-client-ca", &issuer],
        ["--rate-limit", "100/60"],
    ];
    let options = [&options.concat()[..], &["--tls-client-required"]].concat();
    let gateway = Gateway::start(&Abide::new(dir.path()), &options);
    let server = format!("https://{}/pkix/", gateway.address());
    let genm = |extra: &[&str]| -> Ended {
        let words = [
            &["-cmd", "genm", "-server", &server, "-recipient", "/CN=any"],
            &["-ref", "client", "-secret", "pass:secret"][..],
            &["-tls_used"],
            extra,
        ];
        cmp_client(&pki, words.concat())
    };
    // The answer is a canned one, which no client believes.
    let client = ["-tls_cert", "client.crt", "-tls_key", "client.key"];
    let ended = genm(&client);
    assert_eq!(ca.asked(), 1, "{ended:?}\n{}", gateway.said());
    let line = gateway.logged("a message", |line| line["type"] == "genm");
    assert_eq!(line["principal"], "CN=Client,O=abide tests");
    // Without a certificate there is no conversation.
    genm(&[]);
    assert_eq!(ca.asked(), 1);
    gateway.until_metric("abide_gateway_connections_cut_total{reason=\"tls\"}", 1.0);
    let mut plain = gateway.wire();
    plain.send(&Wire::request(&[], &ir()));
    plain.until_closed();
    assert_eq!(ca.asked(), 1);
}

/// The last hop that is trusted says who the client is. From others the header is made up.
#[test]
fn forwarded_for_counts_from_trusted_hops_only() {
    let world = World::new();
    let gateway = world.gateway(&[
        "--rate-limit",
        "1/600",
        "--by-address",
        "--trusted-hop",
        "127.0.0.2",
        "--trusted-hop",
        "10.0.0.0/8",
    ]);
    // Nonsense has no sender, so its address is all that is known.
    let ask = |own: [u8; 4], forwarded: &str| {
        let mut wire = Wire::from(own, gateway.address());
        wire.post(&[("X-Forwarded-For", forwarded)], b"nonsense")
            .status
    };
    let hop = [127, 0, 0, 2];
    assert_eq!(ask(hop, "203.0.113.1"), 200);
    assert_eq!(ask(hop, "203.0.113.1"), 429);
    assert_eq!(ask(hop, "203.0.113.2"), 200);
    // The first address is the client's own invention.
    assert_eq!(ask(hop, "203.0.113.7, 203.0.113.2"), 429);
    assert_eq!(ask(hop, "203.0.113.3, 10.1.2.3"), 200);
    assert_eq!(ask(hop, "203.0.113.3"), 429);
    // Nobody else is believed.
    let other = [127, 0, 0, 3];
    assert_eq!(ask(other, "203.0.113.4"), 200);
    assert_eq!(ask(other, "203.0.113.5"), 429);
    // And the CA is told by whom the gateway was asked.
    let app = ("X-RateLimit-App", "x");
    let mut wire = Wire::from(other, gateway.address());
    let forwarded = ("X-Forwarded-For", "203.0.113.4");
    assert_eq!(wire.post(&[forwarded, app], &ir()).status, 200);
    let (head, body) = world.ca.seen().remove(0);
    assert_eq!(body, ir());
    let head = head.to_ascii_lowercase();
    assert!(head.contains("x-forwarded-for: 127.0.0.3\r\n"), "{head}");
    assert!(!head.contains("203.0.113"), "{head}");
    assert!(!head.contains("ratelimit"), "{head}");
}

/// A proved sender has a bucket that nobody reaches who only claims to be him.
#[test]
fn a_claimed_sender_is_not_a_proved_one() {
    let world = World::new();
    let limit =
        "[rate_limit]\nenabled = true\nlearning = false\ncapacity = 1\nrate_seconds = 600\n";
    let gateway = world.configured("", limit);
    let message = ir();
    assert_eq!(gateway.post(&[], &message).status, 200);
    assert_eq!(gateway.post(&[], &message).status, 429);
    let line = gateway.logged("the refusal", |line| line["status"] == 429);
    let principal = line["principal"].as_str().expect("a name");
    assert!(principal.starts_with("app:sender:"), "{principal}");
    // The header cannot take that name.
    let name = principal.strip_prefix("app:").unwrap_or_default();
    let reply = gateway.post(&[("X-RateLimit-App", name)], b"nonsense");
    assert_eq!(reply.header("x-ratelimit-remaining"), Some("0"));
    assert_eq!(reply.status, 200, "it is anonymous, who had not asked yet");
}
