//! Messages of other implementations, where a corpus of them lies beside the project:
//! each is read, written back octet for octet, and its protection checked.

use std::fs;
use std::path::{Path, PathBuf};

use abide_cmp::der::Writer;
use abide_cmp::protection::{
    self, Anchors, Policy, ProtectionError, ProtectionKind, SoftwareVerifier,
};
use abide_cmp::{
    Certificate, CertificationRequest, Draft, Leniency, Parts, PkiMessage, Rule, Time,
};

/// Where other implementations' messages lie.
fn corpus() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared/corpus")
}

/// Files of a folder and the folders in it, by the ending of their names; none where there is
/// no corpus.
fn files(folder: &str, ending: &str) -> Vec<(PathBuf, Vec<u8>)> {
    let mut found = Vec::new();
    let mut folders = vec![corpus().join(folder)];
    while let Some(folder) = folders.pop() {
        let Ok(entries) = fs::read_dir(folder) else {
            continue;
        };
        for entry in entries {
            let path = entry.expect("a readable corpus").path();
            if path.is_dir() {
                folders.push(path);
            } else if path
                .extension()
                .is_some_and(|extension| extension == ending)
            {
                let octets = fs::read(&path).expect("a readable file");
                found.push((path, octets));
            }
        }
    }
    found.sort();
    found
}

fn messages(peer: &str) -> Vec<(PathBuf, Vec<u8>)> {
    files(peer, "der")
}

/// Reads a message, writes it anew from its fields and from its parts: the same octets.
fn comes_back(name: &str, octets: &[u8]) {
    let message = match PkiMessage::from_der(octets) {
        Ok(message) => message,
        Err(error) => panic!("{name}: {error}"),
    };
    let draft = Draft::new(&message.header, &message.body);
    let written = draft.finish(message.protection, &message.extra_certs);
    assert!(written == octets, "{name} changed when written back");
    let parts = Parts::split(octets, Leniency::STRICT).expect("read before");
    assert_eq!(parts.tolerations, [], "{name}");
    let encoded = parts.value.encode().expect("strict parts");
    assert!(encoded == octets, "{name} changed when put together");
}

#[test]
fn every_message_is_read_and_written_back() {
    let folders = [
        ("openssl30", "der", 188),
        ("openssl40", "der", 314),
        ("bc172", "der", 235),
        ("siemens-mockca", "der", 78),
        ("siemens-ra", "der", 92),
        ("lightweightcmpra-messageflows", "PKI", 36),
    ];
    for (peer, ending, least) in folders {
        let found = files(peer, ending);
        assert!(
            found.is_empty() || found.len() >= least,
            "{peer}: {}",
            found.len()
        );
        for (path, octets) in found {
            comes_back(&path.display().to_string(), &octets);
        }
    }
}

/// OpenSSL's own test data has a message whose extraCerts are an empty list.
#[test]
fn test_data_of_openssl() {
    let empty_lists = Leniency {
        empty_lists: true,
        ..Leniency::STRICT
    };
    for (path, octets) in messages("openssl-65-test_cmp") {
        let name = path.display().to_string();
        if path.ends_with("pkcs10.der") {
            CertificationRequest::from_der(&octets).expect("a PKCS #10 request");
        } else if path.ends_with("IR_protected.der") {
            let error = PkiMessage::from_der(&octets).expect_err("an empty list");
            assert_eq!(
                (error.path().as_str(), error.rule()),
                ("extraCerts", &Rule::EmptyList)
            );
            let read = PkiMessage::from_der_with(&octets, empty_lists).expect("tolerated");
            assert_eq!(read.tolerations.len(), 1, "{name}");
        } else {
            comes_back(&name, &octets);
        }
    }
}

/// Test data of the cmpv2 and crmf crates: messages, and fragments that want a message around
/// them.
#[test]
fn test_data_of_rustcrypto() {
    let sequence = |parts: &[&[u8]]| {
        Writer::encode(|w| w.sequence(|w| parts.iter().for_each(|part| w.raw(part))))
    };
    // pvno 2 and twice the NULL-DN.
    let header = [
        0x30, 0x0b, 0x02, 0x01, 0x02, 0xa4, 0x02, 0x30, 0x00, 0xa4, 0x02, 0x30, 0x00,
    ];
    let pki_conf = [0xb3, 0x02, 0x05, 0x00];
    for (path, octets) in files("rustcrypto-cmpv2", "bin") {
        let name = path.display().to_string();
        let message = match () {
            () if name.ends_with("_header_01.bin") => sequence(&[&octets, &pki_conf]),
            () if name.ends_with("_body_01.bin") => sequence(&[&header, &octets]),
            () => octets,
        };
        comes_back(&name, &message);
    }
    for (path, octets) in files("rustcrypto-crmf", "bin") {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let requests = match &*name {
            "certreqmsgs.bin" => octets,
            "certreqmsg.bin" => sequence(&[&octets]),
            "certrequest.bin" => sequence(&[&sequence(&[&octets])]),
            "certtemplate.bin" => {
                sequence(&[&sequence(&[&sequence(&[&[0x02, 0x01, 0x00], &octets])])])
            }
            other => panic!("{other} is new"),
        };
        let body = Writer::encode(|w| w.explicit(0, |w| w.raw(&requests)));
        comes_back(&name, &sequence(&[&header, &body]));
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
        ("len_short", ""),
        ("empty_input", ""),
        ("only_30", ""),
        ("only_3000", "header"),
        ("body_missing", "body"),
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
        ("sender_missing", "header.recipient"),
        ("tid_65", "header.transactionID"),
        ("tid_dup", "header"),
        ("tid_dup_differs", "header"),
        ("time_fraction0", "header.messageTime"),
        ("time_month13", "header.messageTime"),
        ("time_leap", "header.messageTime"),
        ("time_utctime", "header.messageTime"),
        ("freetext_badutf8", "header.freeText"),
        ("freetext_printable", "header.freeText"),
        ("geninfo_empty", "header.generalInfo"),
        ("geninfo_oid_pad", "header.generalInfo"),
        ("geninfo_oid_empty", "header.generalInfo"),
        ("pbm_salt_1mb", ""),
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
    let Ok(index) = fs::read_to_string(corpus().join("odd/INDEX.md")) else {
        return;
    };
    let mut listed = 0;
    for line in index.lines() {
        let columns: Vec<_> = line.split('|').map(str::trim).collect();
        let [
            _,
            name,
            _,
            expected @ ("accept" | "reject" | "accept-or-reject"),
            _,
            _,
        ] = columns[..]
        else {
            continue;
        };
        listed += 1;
        let file = format!("{name}.der");
        let (_, octets) = found
            .iter()
            .find(|(path, _)| path.ends_with(&file))
            .unwrap_or_else(|| panic!("{name} is not in the corpus"));
        let Some((_, field)) = faults.iter().find(|(fault, _)| *fault == name) else {
            comes_back(name, octets);
            continue;
        };
        assert_ne!(expected, "accept", "{name}");
        let error = PkiMessage::from_der(octets).expect_err(name);
        assert!(error.path().starts_with(field), "{name}: {error}");
        let text = error.to_string();
        assert!(
            error.offset() <= octets.len() && text.len() < 400,
            "{name}: {text}"
        );
    }
    assert_eq!(listed, found.len());
    assert!(faults.len() < listed);
}

/// Whether a message was made to be wrong about its secret.
fn is_foreign(name: &str) -> bool {
    ["wrong_secret", "badsecret", "badmac"]
        .iter()
        .any(|f| name.contains(f))
}

#[test]
fn macs_fit_the_secret_and_no_other() {
    let secrets: [(&str, &[u8], usize); 5] = [
        ("openssl30", b"sEcret-0123456789", 100),
        ("openssl40", b"sEcret-0123456789", 150),
        ("bc172", b"sEcret-0123456789", 140),
        ("siemens-mockca", b"SiemensIT", 30),
        ("siemens-ra", b"Password", 24),
    ];
    for (peer, secret, least) in secrets {
        let found = messages(peer);
        let mut checked = 0;
        for (path, octets) in &found {
            let Ok(message) = PkiMessage::from_der(octets) else {
                continue;
            };
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            if protection::protection_kind(&message) != ProtectionKind::Mac || is_foreign(&name) {
                continue;
            }
            let check = |secret: &[u8]| {
                protection::verify_mac(&message, Policy::default(), |mac, data| {
                    Ok::<_, ProtectionError>(mac.compute(secret, data))
                })
            };
            if let Err(error) = check(secret) {
                panic!("{peer} {name}: {error}");
            }
            checked += 1;
            assert_eq!(check(b"another"), Err(ProtectionError::WrongMac), "{name}");
        }
        assert!(
            found.is_empty() || checked >= least,
            "{peer}: only {checked} MACs were checked"
        );
    }
}

/// The certificates of a PEM file, as DER.
fn certificates(path: &Path) -> Vec<Vec<u8>> {
    let pem = fs::read_to_string(path).expect("a readable certificate");
    pem.split_inclusive("-----END CERTIFICATE-----")
        .filter(|part| part.contains("-----BEGIN CERTIFICATE-----"))
        .map(abide_tests::pem_to_der)
        .collect()
}

#[test]
fn signatures_are_traced_to_the_root() {
    let pki = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared/corpus/pki");
    if !pki.exists() {
        return;
    }
    // The roots of all peers. What each signs with is in its name.
    let roots: Vec<_> = [
        "root.crt",
        "root_mldsa44.crt",
        "root_mldsa65.crt",
        "root_mldsa87.crt",
        "hans_ex.crt",
        "mock_pq_ex.crt",
    ]
    .iter()
    .flat_map(|name| certificates(&pki.join(name)))
    .collect();
    let trusted: Vec<_> = roots
        .iter()
        .filter_map(|der| Certificate::from_der(der).ok())
        .filter(Certificate::is_self_issued)
        .collect();
    // All peers ran in the days after the project's own root was made.
    let a_day_later = trusted[0].not_before.unix() + 86_400;
    let mut odd = Vec::new();
    for (peer, least) in [
        ("openssl30", 70),
        ("openssl40", 138),
        ("bc172", 70),
        ("siemens-mockca", 38),
        ("siemens-ra", 60),
    ] {
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
            let anchors = Anchors::new(&trusted, Time::from_unix(a_day_later));
            match protection::verify_signature(&message, anchors, &SoftwareVerifier) {
                Ok(_) => checked += 1,
                // It signs with its CA certificate, whose keyUsage lacks digitalSignature.
                Err(ProtectionError::KeyUsage { .. }) if peer == "siemens-mockca" => checked += 1,
                // Its roots are not at hand; the signature is judged before the path.
                Err(ProtectionError::Untrusted(_)) if peer == "siemens-ra" => checked += 1,
                // A signer of another root on purpose, and what is not supported.
                Err(_)
                    if ["ir_ec_untrusted_srv.1", "ir_ed448"]
                        .iter()
                        .any(|odd| name.starts_with(odd)) => {}
                Err(error) => odd.push(format!("{peer} {name}: {error}")),
            }
        }
        assert!(
            found.is_empty() || checked >= least,
            "{peer}: only {checked} were checked: {odd:#?}"
        );
    }
    assert!(odd.is_empty(), "{odd:#?}");
}
