//! Certificates on files and at hooks.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::{Duration, Instant};

use abide_tests::openssl::verify_chain;
use abide_tests::pki::openssl;
use abide_tests::process::{PATIENCE, succeed};
use serde_json::json;

use crate::{World, order, wish};

fn script(path: &Path, text: &str) {
    fs::write(path, format!("#!/bin/sh\n{text}\n")).expect("a script");
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).expect("a mode");
}

#[track_caller]
fn until(what: &str, holds: impl Fn() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !holds() {
        assert!(Instant::now() < deadline, "{what}: never");
        std::thread::sleep(Duration::from_millis(50));
    }
}

fn lines(path: &Path) -> Vec<String> {
    let text = fs::read_to_string(path).unwrap_or_default();
    text.lines().map(str::to_owned).collect()
}

#[test]
fn files_and_hook_get_each_certificate_once() {
    let world = World::new(&[]);
    script(
        &world.abide.path("hook.sh"),
        "cat > \"$0.chain\"; echo \"$1 $ABIDE_EVENT $ABIDE_ORDER $ABIDE_ACCOUNT $ABIDE_CERT_FILE \
         ${ABIDE_SECRET-unset}\" >> \"$0.log\"",
    );
    let service =
        world.serve("[delivery]\ndirectory = \"certs\"\nhook = [\"./hook.sh\", \"a word\"]\n");
    let mut wish = wish("device");
    wish["account"] = json!("shop");
    let id = order(&service, &wish);
    let delivered = service.until(&id, "delivery", |order| {
        order["delivery"]["state"] == "delivered"
    });
    assert_eq!(delivered["delivery"]["delivered"], 1);
    let folder = world.abide.path("certs").join(&id);
    let (cert, chain, key) = (
        folder.join("cert.pem"),
        folder.join("chain.pem"),
        folder.join("key.pem"),
    );
    verify_chain(&chain, world.ca.root());
    let mode = fs::metadata(&key).expect("a key").permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let of_key = succeed(openssl().args(["pkey", "-pubout", "-in"]).arg(&key));
    let of_cert = succeed(
        openssl()
            .args(["x509", "-noout", "-pubkey", "-in"])
            .arg(&cert),
    );
    assert_eq!(of_key, of_cert);
    let log = world.abide.path("hook.sh.log");
    let cert = cert.canonicalize().expect("a path");
    assert_eq!(
        lines(&log),
        [format!("a word issued {id} shop {} unset", cert.display())]
    );
    let given = fs::read_to_string(world.abide.path("hook.sh.chain")).expect("a chain");
    assert_eq!(given, fs::read_to_string(&chain).expect("a chain"));

    // A renewal.
    service.post(&format!("/v1/orders/{id}/renew"), &json!({}));
    service.until(&id, "another delivery", |order| {
        order["delivery"]["delivered"] == 2
    });
    let log = lines(&log);
    assert_eq!(log.len(), 2, "{log:?}");
    assert!(log[1].starts_with("a word renewed "), "{log:?}");
}

#[test]
fn a_hook_that_fails_is_seen_and_holds_nothing_up() {
    let world = World::new(&[]);
    script(
        &world.abide.path("hook.sh"),
        "echo 'no disk today' >&2; exit 3",
    );
    let service = world.serve("[delivery]\nhook = [\"./hook.sh\"]\n");
    let id = order(&service, &wish("device"));
    let failed = service.until(&id, "a failed delivery", |order| {
        order["delivery"]["state"] == "failed"
    });
    assert_eq!(failed["state"], "ACTIVE");
    let error = failed["delivery"]["error"].as_str().expect("an error");
    assert!(
        error.contains("no disk today") && error.contains('3'),
        "{error}"
    );
    assert!(failed["delivery"]["next_attempt_at"].is_string());
    let other = order(&service, &wish("another"));
    service.until_state(&other, "ACTIVE");
}

#[test]
fn a_hook_that_hangs_is_killed() {
    let world = World::new(&[]);
    script(&world.abide.path("hook.sh"), "exec sleep 1000");
    let service = world.serve("[delivery]\nhook = [\"./hook.sh\"]\nhook_timeout_seconds = 1\n");
    let id = order(&service, &wish("device"));
    let failed = service.until(&id, "a failed delivery", |order| {
        order["delivery"]["state"] == "failed"
    });
    let error = failed["delivery"]["error"].as_str().expect("an error");
    assert!(error.contains("killed after 1 s"), "{error}");
}

/// Whoever dies between the issuance and its delivery is followed by one that looks for what is
/// missing: here a service that had no delivery at all.
#[test]
fn what_was_never_delivered_is_found() {
    let world = World::new(&[]);
    let service = world.serve("");
    let id = order(&service, &wish("device"));
    service.until_state(&id, "ACTIVE");
    assert_eq!(service.stop().code, Some(0));
    let _service = world.serve("[delivery]\ndirectory = \"certs\"\n");
    let chain = world.abide.path("certs").join(&id).join("chain.pem");
    until("a delivery", || chain.is_file());
}
