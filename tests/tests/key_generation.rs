//! Keys that the PKI makes, and what a registration authority does, from the command line to the
//! files, with `abide mock-ca` (RFC 9483, 4.1.6 and 5.2).

use std::os::unix::fs::PermissionsExt;

use abide_tests::abide::{Abide, MockCa};
use abide_tests::pki::{KeyKind, Pki, openssl};
use abide_tests::process::{Ended, succeed};

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
        Self { dir, ca, abide }
    }

    fn ask(&self, line: &str, more: &[&str]) -> Ended {
        let trusted = self.ca.root().display().to_string();
        let mut words = vec!["--server", self.ca.url(), "--trusted", &trusted];
        words.extend(line.split_whitespace());
        words.extend(more);
        self.abide.enroll(words)
    }

    fn done(&self, line: &str, more: &[&str]) -> Ended {
        let ended = self.ask(line, more);
        assert_eq!(ended.code, Some(0), "{ended:?}, the CA: {}", self.ca.said());
        ended
    }

    /// Asks with the shared secret.
    fn by_secret(&self, line: &str) -> Ended {
        let secret = format!("pass:{}", MockCa::SECRET);
        self.done(line, &["--ref", MockCa::REF, "--secret", &secret])
    }

    /// That OpenSSL reads the key, that it is that of the certificate, and that nobody else can
    /// read it.
    fn belong_together(&self, certificate: &str, key: &str, passphrase: &str) {
        let of_certificate = succeed(
            openssl()
                .args(["x509", "-noout", "-pubkey", "-in"])
                .arg(self.abide.path(certificate)),
        );
        let of_key = succeed(
            openssl()
                .args(["pkey", "-pubout", "-passin", passphrase, "-in"])
                .arg(self.abide.path(key)),
        );
        assert_eq!(of_certificate, of_key);
        let metadata = std::fs::metadata(self.abide.path(key)).expect("a key file");
        assert_eq!(metadata.permissions().mode() & 0o777, 0o600);
        succeed(
            openssl()
                .args(["verify", "-CAfile"])
                .arg(self.ca.root())
                .arg(self.abide.path(certificate)),
        );
    }

    fn issued(&self) -> usize {
        let books = self.ca.books();
        books.iter().filter(|l| l["event"] == "issued").count()
    }
}

#[test]
fn a_key_comes_by_password_by_agreement_and_by_transport() {
    let world = World::new(&["--poll-count", "1"]);
    world.by_secret(
        "--cmd ir --centralkeygen --newkeyout a.key --subject /CN=device --certout a.pem",
    );
    world.belong_together("a.pem", "a.key", "pass:");
    // The new key protects the next request, which is encrypted for it in turn.
    world.done(
        "--cmd cr --cert a.pem --key a.key --centralkeygen --newkeytype rsa --newkeyout b.key \
         --subject /CN=device --certout b.pem",
        &[],
    );
    world.belong_together("b.pem", "b.key", "pass:");
    world.done(
        "--cmd kur --cert b.pem --key b.key --centralkeygen --newkeytype P-521 --newkeyout c.key \
         --certout c.pem --implicit-confirm",
        &[],
    );
    world.belong_together("c.pem", "c.key", "pass:");
    world.done(
        "--cmd kur --cert c.pem --key c.key --popo -1 --centralkeygen --newkeytype P-384 \
         --newkeyout d.key --certout d.pem",
        &[],
    );
    world.belong_together("d.pem", "d.key", "pass:");
    assert_eq!(world.issued(), 4);
}

#[test]
fn a_key_file_is_encrypted_on_request_and_never_overwritten_by_chance() {
    let world = World::new(&[]);
    let line = "--cmd ir --centralkeygen --newkeyout a.key --newkeypass pass:opensesame \
                --subject /CN=device --certout a.pem";
    world.by_secret(line);
    world.belong_together("a.pem", "a.key", "pass:opensesame");
    let pem = world.abide.read("a.key");
    assert!(pem.starts_with("-----BEGIN ENCRYPTED PRIVATE KEY-----"));
    let secret = format!("pass:{}", MockCa::SECRET);
    let protected = ["--ref", MockCa::REF, "--secret", &secret];
    let again = world.ask(line, &protected);
    assert_eq!(again.code, Some(2), "{again:?}");
    assert!(again.stderr.contains("exists"), "{again:?}");
    // What is issued already is given out again without asking anybody.
    std::fs::remove_file(world.abide.path("a.pem")).expect("the certificate");
    world.by_secret(&format!("{line} --resume"));
    world.belong_together("a.pem", "a.key", "pass:opensesame");
    assert_eq!(world.issued(), 1);
    assert_eq!(world.abide.read("a.key"), pem);
}

#[test]
fn the_store_and_the_output_know_nothing_of_the_key() {
    let world = World::new(&[]);
    let ended = world.by_secret(
        "--cmd ir --centralkeygen --newkeyout a.key --subject /CN=device --certout a.pem --verbose",
    );
    let der = abide_tests::pem_to_der(&world.abide.read("a.key"));
    // An ECPrivateKey is 02 01 01 04 20 and the number (RFC 5915, 3).
    let head = [2, 1, 1, 4, 32];
    let at = der.windows(5).position(|w| w == head).expect("the number") + 5;
    let number = &der[at..at + 32];
    for file in std::fs::read_dir(world.dir.path()).expect("a folder") {
        let path = file.expect("a file").path();
        if path.is_file() && path.file_name() != Some("a.key".as_ref()) {
            let octets = std::fs::read(&path).expect("a file");
            assert!(!octets.windows(32).any(|w| w == number), "{path:?}");
        }
    }
    let hex: String = number.iter().map(|octet| format!("{octet:02x}")).collect();
    assert!(!ended.stderr.to_lowercase().contains(&hex));
}

#[test]
fn a_credential_that_nothing_can_be_encrypted_for_is_told_before_anything_is_sent() {
    let world = World::new(&[]);
    // Its keyUsage is digitalSignature alone.
    let pki = Pki::new(&world.dir.path().join("pki"), KeyKind::P256);
    let file = |name| pki.path(name).display().to_string();
    let (certificate, key) = (file("client.crt"), file("client.key"));
    let ended = world.ask(
        "--cmd cr --centralkeygen --newkeyout a.key --subject /CN=device",
        &["--cert", &certificate, "--key", &key],
    );
    assert_eq!(ended.code, Some(2), "{ended:?}");
    assert!(ended.stderr.contains("keyAgreement"), "{ended:?}");
    assert!(world.ca.books().is_empty());
}

/// An RA with a certificate of another PKI, which the CA knows or does not.
fn with_ra(known: bool) -> (World, Pki) {
    let dir = tempfile::tempdir().expect("a folder for a test");
    let pki = Pki::new(&dir.path().join("pki"), KeyKind::P256);
    let ra = pki.path("client.crt").display().to_string();
    let option = if known { "--ra" } else { "--trusted" };
    let ca = MockCa::start(dir.path(), &[option, &ra]);
    let abide = Abide::new(dir.path());
    (World { dir, ca, abide }, pki)
}

#[test]
fn an_ra_vouches_for_a_key_of_which_it_has_the_public_half() {
    let ask = |world: &World, pki: &Pki, popo: &str| {
        let key = pki.key("device", KeyKind::Rsa2048);
        succeed(
            openssl()
                .args(["pkey", "-pubout", "-in"])
                .arg(&key)
                .arg("-out")
                .arg(world.abide.path("device.pub")),
        );
        world.ask(
            "--cmd cr --cert pki/client.crt --key pki/client.key --newkey device.pub \
             --subject /CN=device --certout device.pem --popo",
            &[popo],
        )
    };
    let (world, pki) = with_ra(true);
    for popo in ["raVerified", "0"] {
        let ended = ask(&world, &pki, popo);
        assert_eq!(
            ended.code,
            Some(0),
            "{ended:?}, the CA: {}",
            world.ca.said()
        );
        world_key_is(&world, &pki);
    }
    // The same word of somebody else is worth nothing.
    let (world, pki) = with_ra(false);
    let ended = ask(&world, &pki, "raVerified");
    assert_eq!(ended.code, Some(3), "{ended:?}");
    assert!(ended.stderr.contains("badPOP"), "{ended:?}");
}

fn world_key_is(world: &World, pki: &Pki) {
    let certified = succeed(
        openssl()
            .args(["x509", "-noout", "-pubkey", "-in"])
            .arg(world.abide.path("device.pem")),
    );
    let own = succeed(
        openssl()
            .args(["pkey", "-pubout", "-in"])
            .arg(pki.path("device.key")),
    );
    assert_eq!(certified, own);
}

#[test]
fn an_ra_adds_its_protection_to_the_request_of_another() {
    let line = "--cmd ir --subject /CN=device --newkey device.key --certout device.pem \
                --ra-cert pki/client.crt --ra-key pki/client.key --ra-chain pki/sub.crt";
    let (world, _pki) = with_ra(true);
    world.by_secret(line);
    assert_eq!(world.issued(), 1);
    // A key for the device, whose request the RA approves.
    world.by_secret(
        "--cmd ir --centralkeygen --newkeyout made.key --subject /CN=device --certout made.pem \
         --ra-cert pki/client.crt --ra-key pki/client.key",
    );
    world.belong_together("made.pem", "made.key", "pass:");

    let (world, _pki) = with_ra(false);
    let secret = format!("pass:{}", MockCa::SECRET);
    let ended = world.ask(line, &["--ref", MockCa::REF, "--secret", &secret]);
    assert_eq!(ended.code, Some(3), "{ended:?}");
    assert!(ended.stderr.contains("notAuthorized"), "{ended:?}");
}
