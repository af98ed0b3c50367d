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

/// The index of the odd messages says which of them a strict client refuses. Of those, these
/// break a rule of the encoding and cannot be read at all; what is wrong with the others is
/// for the transaction to notice.
#[test]
fn odd_messages_are_refused_at_the_faulty_field() {
    let faults = [
        ("trail_in_outer_seq", ""),
        ("trail_in_header", "header"),
        ("len_nonminimal_header", "header"),
        ("indef_header", "header"),
        ("len_overflow_4", ""),
        ("empty_input", ""),
        ("only_30", ""),
        ("only_3000", "header"),
        ("body_implicit", "body.cp"),
        ("tid_explicit_primitive", "header"),
        ("body_tag_27", "body"),
        ("body_tag_31", "body"),
        ("body_two_inside", "body.cp"),
        ("nested_1000", "body.nested"),
        ("deep_seq_100k", ""),
        ("pvno_neg1", "header.pvno"),
        ("pvno_0", "header.pvno"),
        ("pvno_1", "header.pvno"),
        ("pvno_4", "header.pvno"),
        ("pvno_2p63", "header.pvno"),
        ("pvno_2p32p2", "header.pvno"),
        ("pvno_nonmin", "header.pvno"),
        ("tid_65", "header.transactionID"),
        ("tid_dup", "header"),
        ("tid_dup_differs", "header"),
        ("time_fraction0", "header.messageTime"),
        ("time_month13", "header.messageTime"),
        ("time_utctime", "header.messageTime"),
        ("freetext_badutf8", "header.freeText"),
        ("freetext_printable", "header.freeText"),
        ("geninfo_empty", "header.generalInfo"),
        ("geninfo_oid_pad", "header.generalInfo"),
        ("geninfo_oid_empty", "header.generalInfo"),
        ("prot_unused7", "protection"),
        ("status_7", "body.cp.response.status.status"),
        ("failinfo_trailzero", "body.cp.response.status.failInfo"),
        ("failinfo_unused_set", "body.cp.response.status.failInfo"),
        ("reqid_2p64", "body.cp.response.certReqId"),
        ("cert_trailing", "body.cp.response.certifiedKeyPair"),
        ("certorenc_2", "body.cp.response.certifiedKeyPair"),
        ("extracerts_garbage", "extraCerts"),
        ("poll_checkafter_2kbit", "body.pollRep.checkAfter"),
        ("poll_no_checkafter", "body.pollRep.checkAfter"),
        ("conf_nonnull", "body.pkiconf"),
        ("conf_null_len1", "body.pkiconf"),
        ("conf_empty", "body.pkiconf"),
        ("err_empty", "body.error.pKIStatusInfo"),
    ];
    let found = messages("odd");
    for (name, field) in faults {
        let Some((_, octets)) = found
            .iter()
            .find(|(path, _)| path.ends_with(format!("{name}.der")))
        else {
            assert!(found.is_empty(), "{name} is not in the corpus");
            continue;
        };
        let error = PkiMessage::from_der(octets).expect_err(name);
        assert!(error.path().starts_with(field), "{name}: {error}");
        let text = error.to_string();
        assert!(
            error.offset() <= octets.len() && text.len() < 400,
            "{name}: {text}"
        );
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
