//! Messages of other implementations, where a corpus of them lies beside the project:
//! each is read, written back octet for octet, and its protection checked.

use std::fs;
use std::path::{Path, PathBuf};

use abide_cmp::protection::{self, Anchors, ProtectionError, ProtectionKind, SoftwareVerifier};
use abide_cmp::{Certificate, Draft, PkiMessage, Time};

/// Messages in the corpus, if there is one: `.der` files in the folders of real peers.
fn messages(peer: &str) -> Vec<(PathBuf, Vec<u8>)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../shared/corpus")
        .join(peer);
    let Ok(entries) = fs::read_dir(folder) else {
        return Vec::new();
    };
    let mut found: Vec<_> = entries
        .map(|entry| entry.expect("a readable corpus").path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "der"))
        .map(|path| {
            let octets = fs::read(&path).expect("a readable message");
            (path, octets)
        })
        .collect();
    found.sort();
    found
}

#[test]
fn every_message_is_read_and_written_back() {
    for peer in [
        "openssl30",
        "openssl40",
        "bc172",
        "siemens-mockca",
        "siemens-ra",
    ] {
        for (path, octets) in messages(peer) {
            let message = match PkiMessage::from_der(&octets) {
                Ok(message) => message,
                Err(error) => panic!("{}: {error}", path.display()),
            };
            let written = Draft::new(&message.header, &message.body)
                .finish(message.protection, &message.extra_certs);
            assert!(
                written == octets,
                "{} changed when written back",
                path.display()
            );
        }
    }
}

#[test]
fn macs_fit_the_secret_and_no_other() {
    let secrets: [(&str, &[u8]); 2] = [
        ("openssl30", b"sEcret-0123456789"),
        ("bc172", b"sEcret-0123456789"),
    ];
    for (peer, secret) in secrets {
        let found = messages(peer);
        let mut checked = 0;
        for (path, octets) in &found {
            let Ok(message) = PkiMessage::from_der(octets) else {
                continue;
            };
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            let foreign = ["wrong_secret", "badsecret", "badmac"]
                .iter()
                .any(|f| name.contains(f));
            if protection::protection_kind(&message) != ProtectionKind::Mac || foreign {
                continue;
            }
            let check = |secret: &[u8]| {
                protection::verify_mac(&message, |mac, data| {
                    Ok::<_, ProtectionError>(mac.compute(secret, data))
                })
            };
            match check(secret) {
                Ok(()) => checked += 1,
                Err(ProtectionError::Unsupported(_)) => continue,
                Err(error) => panic!("{name}: {error}"),
            }
            assert_eq!(check(b"another"), Err(ProtectionError::WrongMac), "{name}");
        }
        assert!(
            found.is_empty() || checked > 20,
            "{peer}: only {checked} MACs were checked"
        );
    }
}

#[test]
fn signatures_are_traced_to_the_root() {
    let pki = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared/corpus/pki");
    let Ok(pem) = fs::read_to_string(pki.join("root.crt")) else {
        return;
    };
    let root = abide_tests::pem_to_der(&pem);
    let trusted = [Certificate::from_der(&root).expect("the root")];
    let a_day_later = trusted[0].not_before.unix() + 86_400;
    for (peer, least) in [("openssl30", 70), ("openssl40", 110)] {
        let found = messages(peer);
        let mut checked = 0;
        for (path, octets) in &found {
            let Ok(message) = PkiMessage::from_der(octets) else {
                continue;
            };
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            if protection::protection_kind(&message) != ProtectionKind::Signature {
                continue;
            }
            let now = Time::from_unix(a_day_later);
            let anchors = Anchors {
                trusted: &trusted,
                untrusted: &[],
                now,
            };
            match protection::verify_signature(&message, anchors, &SoftwareVerifier) {
                Ok(_) => checked += 1,
                // Its client had only another root, so that it sent no chain.
                Err(ProtectionError::Untrusted(_)) if name.starts_with("ir_ec_untrusted_srv.1") => {
                }
                Err(ProtectionError::Unsupported(_)) if name.starts_with("ir_p521") => {}
                Err(error) => panic!("{name}: {error}"),
            }
        }
        assert!(
            found.is_empty() || checked >= least,
            "{peer}: only {checked} were checked"
        );
    }
}
