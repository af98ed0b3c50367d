//! `abide serve` as its users meet it: a process, a TOML file, HTTP; the CAs are `abide mock-ca`
//! and the server of `openssl cmp`.

mod access;
mod backup;
mod bad_input;
mod commands;
mod config;
mod delivery;
mod document;
mod fleet;
mod life;
mod limits;
mod page;
mod patience;
mod quality;
mod selectors;
mod sharding;
mod storm;
mod zombies;

use std::fs;

use abide_tests::abide::{Abide, MockCa};
use abide_tests::service::Service;
use serde_json::{Value, json};

/// A CA, and a folder for a service.
struct World {
    dir: tempfile::TempDir,
    ca: MockCa,
    abide: Abide,
}

impl World {
    fn new(options: &[&str]) -> Self {
        let dir = tempfile::tempdir().expect("a folder for a test");
        let ca = MockCa::start(dir.path(), options);
        let abide = Abide::new(dir.path());
        fs::write(abide.path("secret.txt"), MockCa::SECRET).expect("a secret");
        Self { dir, ca, abide }
    }

    /// The ten lines of a newcomer, and more.
    fn config(&self, more: &str) -> String {
        format!(
            "[service]\nlisten = \"127.0.0.1:0\"\nstore = \"sqlite:abide.db\"\n\
             [issuers.test]\nserver = \"{}\"\nreference = \"{}\"\n\
             secret = \"file:secret.txt\"\ntrusted = [\"ca/root.pem\"]\n{more}",
            self.ca.url(),
            MockCa::REF
        )
    }

    fn serve(&self, more: &str) -> Service {
        Service::start(&self.abide, &self.config(more))
    }

    /// How many certificates the CA has issued.
    fn issued(&self) -> usize {
        self.ca
            .books()
            .iter()
            .filter(|line| line["event"] == "issued")
            .count()
    }
}

/// A wish for a certificate with a key of the service.
fn wish(name: &str) -> Value {
    json!({ "subject": format!("/CN={name}"), "sans": [format!("{name}.example")] })
}

/// Makes an order that must be new.
fn order(service: &Service, wish: &Value) -> String {
    let answer = service.post("/v1/orders", wish);
    assert_eq!(answer.status, 201, "{answer:?}");
    answer.json()["id"].as_str().expect("an id").to_owned()
}
