//! `abide gateway` as clients, CAs and operators meet it: a process between real sockets. The
//! clients are `openssl cmp` and octets by hand.

mod access;
mod bad_input;
mod config;
mod limits;
mod openssl;
mod shared;
mod slow;
mod upstreams;

use std::fs;
use std::path::Path;
use std::time::Duration;

use abide_cmp::{BodyType, PkiBody, PkiMessage};
use abide_tests::abide::Abide;
use abide_tests::gateway::{Ca, Gateway, Reply};

/// A folder for a gateway, and a CA that answers everything with the same message.
struct World {
    _dir: tempfile::TempDir,
    abide: Abide,
    ca: Ca,
}

impl World {
    fn new() -> Self {
        Self::slow(Duration::ZERO)
    }

    /// With a CA that thinks for a while.
    fn slow(after: Duration) -> Self {
        let dir = tempfile::tempdir().expect("a folder for a test");
        let abide = Abide::new(dir.path());
        let ca = Ca::start(&vector("openssl-3.0-ir-pbm-2-ip"), after);
        Self {
            _dir: dir,
            abide,
            ca,
        }
    }

    /// A gateway before the CA.
    fn gateway(&self, options: &[&str]) -> Gateway {
        let url = self.ca.url();
        let options = [&["--upstream", &url], options].concat();
        Gateway::start(&self.abide, &options)
    }

    /// The same from a configuration.
    fn configured(&self, gateway: &str, rest: &str) -> Gateway {
        let rest = format!("{rest}\n[[upstreams]]\nurl = \"{}\"\n", self.ca.url());
        Gateway::configured(&self.abide, gateway, &rest)
    }
}

/// A message of another implementation.
fn vector(name: &str) -> Vec<u8> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../guest/cmp/tests/vectors/messages");
    fs::read(folder.join(format!("{name}.der"))).expect("a vector")
}

/// A request of `openssl cmp` under a MAC.
fn ir() -> Vec<u8> {
    vector("openssl-3.0-ir-pbm-1-ir")
}

/// What a CMP error says: the bits of its failInfo, and its text.
#[derive(Debug, PartialEq, Eq)]
struct Told {
    bits: Vec<u8>,
    text: String,
    transaction_id: Option<Vec<u8>>,
    recip_nonce: Option<Vec<u8>>,
}

/// Reads the CMP error of an answer.
#[track_caller]
fn told(reply: &Reply) -> Told {
    assert_eq!(
        reply.header("content-type"),
        Some("application/pkixcmp"),
        "{reply:?}"
    );
    let message = PkiMessage::from_der(&reply.body).expect("a CMP message");
    assert_eq!(message.body.body_type(), BodyType::Error);
    let PkiBody::Error(error) = &message.body else {
        panic!("no error: {message:?}");
    };
    let status = &error.status;
    let bits = status.fail_info.map(|info| info.bits().collect());
    let text = status.status_string.as_ref().map(|text| text.joined());
    Told {
        bits: bits.unwrap_or_default(),
        text: text.unwrap_or_default(),
        transaction_id: message.header.transaction_id.map(<[u8]>::to_vec),
        recip_nonce: message.header.recip_nonce.map(<[u8]>::to_vec),
    }
}
