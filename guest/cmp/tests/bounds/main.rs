//! What the costliest inputs cost. The promise, for any input of up to a mebioctet and an
//! optimised build, is 64 MiB of memory and 50 ms.

mod bombs;
mod meter;

use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use abide_cmp::der::tag;
use abide_cmp::protection::{
    self, Anchors, MacAlgorithm, Policy, ProtectionError, SignatureAlgorithm, SignatureVerifier,
    SoftwareVerifier, Verdict, verify_mac, verify_signature,
};
use abide_cmp::{
    Certificate, Draft, InfoTypeAndValue, Leniency, PkiBody, PkiMessage, PublicKeyInfo, Time,
    limits, oid, rules,
};
use bombs::*;
use meter::measure;

/// 2026-06-01T00:00:00Z, from `date -u -d 2026-06-01 +%s`.
const NOW: Time = Time::from_unix(1_780_272_000);

const LENIENT: Leniency = Leniency {
    non_minimal_lengths: true,
    fractional_seconds: true,
    explicit_ra_verified: true,
    empty_lists: true,
};

/// Everything that can be done with a message, one after the other.
fn all(name: &str, der: &[u8]) {
    assert!(der.len() <= limits::MESSAGE, "{name}: {} octets", der.len());
    assert!(
        der.len() > limits::MESSAGE / 4,
        "{name}: {} octets",
        der.len()
    );
    measure(&format!("{name}: decode"), || {
        drop(PkiMessage::from_der(der))
    });
    measure(&format!("{name}: round trip"), || {
        if let Ok(message) = PkiMessage::from_der(der) {
            let draft = Draft::new(&message.header, &message.body);
            assert!(draft.finish(message.protection, &message.extra_certs) == der);
        }
    });
    measure(&format!("{name}: interpret"), || {
        if let Ok(message) = PkiMessage::from_der(der) {
            interpret(&message);
        }
    });
    measure(&format!("{name}: tolerate"), || {
        drop(PkiMessage::from_der_with(der, LENIENT));
    });
    measure(&format!("{name}: rules"), || {
        if let Ok(message) = PkiMessage::from_der(der) {
            drop(rules::check(&message, Leniency::STRICT));
        }
    });
    #[cfg(feature = "describe")]
    measure(&format!("{name}: describe"), || {
        drop(abide_cmp::describe(der, Leniency::STRICT));
    });
    if let Ok(message) = PkiMessage::from_der(der)
        && message.header.protection_alg.is_some()
    {
        verified(name, &message);
    }
}

fn interpret(message: &PkiMessage<'_>) {
    let in_body = match &message.body {
        PkiBody::Genm(infos) | PkiBody::Genp(infos) => &infos[..],
        _ => &[],
    };
    let each = |info: &InfoTypeAndValue<'_>| drop(info.interpret());
    message.header.general_info.iter().for_each(each);
    in_body.iter().for_each(each);
}

fn verified(name: &str, message: &PkiMessage<'_>) {
    let last = message.extra_certs.last();
    let trusted: Vec<_> = last
        .and_then(|der| Certificate::from_der(der).ok())
        .into_iter()
        .collect();
    let anchors = Anchors::new(&trusted, NOW);
    measure(&format!("{name}: verify"), || {
        assert!(verify_signature(message, anchors, &SoftwareVerifier).is_err());
    });
    // As if the peer held every key: what lies behind a good signature counts as well.
    measure(&format!("{name}: verify, every signature good"), || {
        drop(verify_signature(message, anchors, &Credulous::new()));
    });
}

/// Takes every signature for good, so many and no more.
struct Credulous(AtomicUsize);

impl Credulous {
    fn new() -> Self {
        Self(AtomicUsize::new(0))
    }
}

impl SignatureVerifier for Credulous {
    fn verify(&self, _: SignatureAlgorithm, _: &PublicKeyInfo<'_>, _: &[u8], _: &[u8]) -> Verdict {
        let before = self.0.fetch_add(1, Relaxed);
        assert!(before < limits::PATH_SIGNATURES, "one signature more");
        Verdict::Valid
    }
}

#[test]
fn deep_nesting() {
    all("messages in messages", &nested_shortest());
    all("origPKIMessage in origPKIMessage", &original_in_original());
    all("SEQUENCE in SEQUENCE", &deep_value());
    all("algorithm in algorithm", &deep_algorithm());
}

#[test]
fn many_small_elements() {
    all("informations", &many_infos());
    all("requests", &many_requests());
    all("texts", &many_texts());
}

/// As much as is described of what is costliest to describe.
#[cfg(feature = "describe")]
#[test]
fn descriptions() {
    for (name, der) in [
        ("messages", described(&shortest())),
        ("informations", described(&infos())),
        ("requests", described(&requests())),
        ("texts", described(&texts())),
    ] {
        measure(&format!("{name}: describe"), || {
            let json = abide_cmp::describe(&der, Leniency::STRICT);
            assert!(json.is_ok(), "{name}: {json:?}");
        });
    }
}

/// As many copies of a message inside one as are described.
fn described(message: &[u8]) -> Vec<u8> {
    let of = |count: usize| nested(&nested(message, count), count);
    let accepted = |count: &usize| abide_cmp::describe(&of(*count), Leniency::STRICT).is_ok();
    let most = (1..=limits::ELEMENTS).take_while(accepted).last();
    of(most.expect("one of each is described"))
}

#[test]
fn long_values() {
    all("a text", &long_text(b'a'));
    all("a text of control characters", &long_text(0x07));
    all("a name of control characters", &long_sender(0x07));
    all("an INTEGER", &long_integer());
    all("an OID of short arcs", &long_oid(0x01));
    all("an OID with a long arc", &long_oid(0x81));
    all("a CRL", &long_crl());
}

/// A SubjectPublicKeyInfo of P-256 with the base point (SEC 2, 2.4.2).
fn p256() -> Vec<u8> {
    let mut key = vec![
        0x30, 0x59, 0x30, 0x13, 0x06, 0x07, 0x2a, 0x86, 0x48, 0xce, 0x3d, 0x02, 0x01, 0x06, 0x08,
        0x2a, 0x86, 0x48, 0xce, 0x3d, 0x03, 0x01, 0x07, 0x03, 0x42, 0x00, 0x04,
    ];
    key.extend_from_slice(&[
        0x6b, 0x17, 0xd1, 0xf2, 0xe1, 0x2c, 0x42, 0x47, 0xf8, 0xbc, 0xe6, 0xe5, 0x63, 0xa4, 0x40,
        0xf2, 0x77, 0x03, 0x7d, 0x81, 0x2d, 0xeb, 0x33, 0xa0, 0xf4, 0xa1, 0x39, 0x45, 0xd8, 0x98,
        0xc2, 0x96, 0x4f, 0xe3, 0x42, 0xe2, 0xfe, 0x1a, 0x7f, 0x9b, 0x8e, 0xe7, 0xeb, 0x4a, 0x7c,
        0x0f, 0x9e, 0x16, 0x2b, 0xce, 0x33, 0x57, 0x6b, 0x31, 0x5e, 0xce, 0xcb, 0xb6, 0x40, 0x68,
        0x37, 0xbf, 0x51, 0xf5,
    ]);
    key
}

/// An RSA key of the largest size with the largest exponent that RSA libraries take.
fn rsa() -> Vec<u8> {
    let mut modulus = vec![0xff; limits::RSA_MODULUS_BITS / 8];
    modulus.insert(0, 0);
    let exponent = [0x01, 0xff, 0xff, 0xff, 0xff];
    let key = sequence(&[element(2, &modulus), element(2, &exponent)].concat());
    let mut bits = vec![0];
    bits.extend(key);
    let algorithm = abide_cmp::AlgorithmIdentifier::with_null(oid::RSA_ENCRYPTION);
    sequence(&[identifier(algorithm.oid, true), element(3, &bits)].concat())
}

fn identifier(oid: oid::Oid<'_>, null: bool) -> Vec<u8> {
    let mut contents = element(6, oid.content());
    if null {
        contents.extend_from_slice(&[0x05, 0x00]);
    }
    sequence(&contents)
}

fn ecdsa() -> Vec<u8> {
    identifier(oid::ECDSA_SHA256, false)
}

/// An ECDSA signature with r and s of full length.
fn ecdsa_signature() -> Vec<u8> {
    let number = element(2, &[0x7f; 32]);
    sequence(&[number.clone(), number].concat())
}

/// Certificates of one name and key that may all have issued each other, and the message that
/// brings them, filled up.
fn of_one_name(
    subject: &[u8],
    key: &[u8],
    algorithm: &[u8],
    signature: &[u8],
    extensions: &[u8],
) -> Vec<u8> {
    let ca = extension(oid::BASIC_CONSTRAINTS, &[0x30, 0x03, 0x01, 0x01, 0xff]);
    let extensions = [&ca[..], extensions].concat();
    let of = |serial: usize, name: &[u8]| {
        certificate(&Parts {
            serial,
            issuer: name,
            subject: name,
            key,
            extensions: &extensions,
            algorithm,
            signature,
        })
    };
    // The last one is the anchor, to which no way leads.
    let stranger = of(0, &name(&attribute(tag::UTF8_STRING, b"stranger")));
    let mut certificates = Vec::new();
    for serial in 1..limits::ELEMENTS {
        let next = of(serial, subject);
        let length = certificates.len() + next.len() + stranger.len();
        if length > limits::MESSAGE - subject.len() - 4096 {
            break;
        }
        certificates.extend(next);
    }
    certificates.extend(stranger);
    let left = limits::MESSAGE - subject.len() - 4096 - certificates.len();
    signed(subject, algorithm, signature, &certificates, left)
}

#[test]
fn names() {
    let (key, algorithm, signature) = (p256(), ecdsa(), ecdsa_signature());
    let cn = |n: usize| attribute(tag::UTF8_STRING, &n.to_be_bytes()[5..]);
    let rdn = |order: &dyn Fn(usize) -> usize| -> Vec<u8> {
        let attributes = (0..limits::RDN_ATTRIBUTES).flat_map(|n| cn(order(n)));
        element(tag::SET, &attributes.collect::<Vec<_>>())
    };
    let wide = |order: &dyn Fn(usize) -> usize| sequence(&rdn(order).repeat(limits::RDNS));
    let one = |subject: &[u8]| {
        certificate(&Parts {
            serial: 1,
            issuer: subject,
            subject,
            key: &key,
            extensions: &[],
            algorithm: &algorithm,
            signature: &signature,
        })
    };
    // As many certificates as possible whose subject is the sender but for its last RDN.
    let sender = wide(&|n| n);
    let mut subject = rdn(&|n| limits::RDN_ATTRIBUTES - n).repeat(limits::RDNS - 1);
    subject.extend(rdn(&|n| n + 1));
    let room = limits::MESSAGE - sender.len() - 4096;
    let subjects = fill(&one(&sequence(&subject)), room, limits::ELEMENTS);
    all(
        "subjects that differ from a wide sender at last",
        &signed(&sender, &algorithm, &signature, &subjects, 0),
    );
    let bmp = |octet: u8| name(&attribute(tag::BMP_STRING, &[0x00, octet].repeat(2000)));
    let subjects = fill(&one(&bmp(b'A')), limits::MESSAGE - 16384, limits::ELEMENTS);
    all(
        "a long BMPString in either case",
        &signed(&bmp(b'a'), &algorithm, &signature, &subjects, 0),
    );
    let long = name(&attribute(tag::UTF8_STRING, &vec![b'a'; 900_000]));
    let short = name(&attribute(tag::UTF8_STRING, b"A"));
    let many: Vec<u8> = (0..limits::ELEMENTS)
        .flat_map(|serial| {
            certificate(&Parts {
                serial,
                issuer: &short,
                subject: &short,
                key: &key,
                extensions: &[],
                algorithm: &algorithm,
                signature: &signature,
            })
        })
        .collect();
    all(
        "a long sender against many subjects",
        &signed(&long, &algorithm, &signature, &many, 0),
    );
}

#[test]
fn signers_and_paths() {
    let subject = name(&attribute(tag::UTF8_STRING, b"CA"));
    all(
        "P-256 certificates of one name",
        &of_one_name(&subject, &p256(), &ecdsa(), &ecdsa_signature(), &[]),
    );
    all(
        "RSA certificates of one name",
        &of_one_name(
            &subject,
            &rsa(),
            &identifier(oid::RSA_SHA512, true),
            &vec![0x7f; limits::RSA_MODULUS_BITS / 8],
            &[],
        ),
    );
}

#[test]
fn extensions() {
    let subject = name(&attribute(tag::UTF8_STRING, b"CA"));
    let one_name = |extensions: &[u8]| {
        of_one_name(&subject, &p256(), &ecdsa(), &ecdsa_signature(), extensions)
    };
    // All different, so that each has to be compared with each.
    let different: Vec<u8> = (0..limits::EXTENSIONS - 1)
        .flat_map(|n| {
            let arc = [0x2a, 0x81 + (n / 128) as u8, (n % 128) as u8];
            sequence(&[element(6, &arc), element(4, &[])].concat())
        })
        .collect();
    all("many extensions", &one_name(&different));

    let hosts = |count: usize, length: usize| -> Vec<u8> {
        fill(&element(0x82, &vec![b'A'; length]), limits::MESSAGE, count)
    };
    let san = extension(oid::SUBJECT_ALT_NAME, &sequence(&hosts(256, 24)));
    let subtrees = fill(&sequence(&element(0x82, &[b'B'; 24])), limits::MESSAGE, 256);
    let excluded = sequence(&element(0xa1, &subtrees));
    let constraints = extension(oid::NAME_CONSTRAINTS, &excluded);
    all("nameConstraints", &one_name(&[san, constraints].concat()));

    let san = extension(oid::SUBJECT_ALT_NAME, &sequence(&hosts(256, 1800)));
    let subtrees = fill(&sequence(&element(0x82, &[b'B'; 1])), limits::MESSAGE, 256);
    let constraints = extension(oid::NAME_CONSTRAINTS, &sequence(&element(0xa1, &subtrees)));
    all(
        "nameConstraints on long names",
        &one_name(&[san, constraints].concat()),
    );

    let directory = element(0xa4, &name(&attribute(tag::UTF8_STRING, &[b'x'; 40])));
    let san = extension(
        oid::SUBJECT_ALT_NAME,
        &sequence(&fill(&directory, limits::MESSAGE, 256)),
    );
    let other = element(0xa4, &name(&attribute(tag::UTF8_STRING, &[b'y'; 40])));
    let subtrees = fill(&sequence(&other), limits::MESSAGE, 256);
    let constraints = extension(oid::NAME_CONSTRAINTS, &sequence(&element(0xa1, &subtrees)));
    all(
        "nameConstraints on directory names",
        &one_name(&[san, constraints].concat()),
    );

    let huge = extension(oid::SUBJECT_KEY_IDENTIFIER, &element(4, &vec![0; 500_000]));
    all("a huge extension", &one_name(&huge));
}

#[test]
fn derivation_of_a_key() {
    let hashes = |owf, hmac| Hashes { owf, hmac };
    for (name, hashes, blocks, cost) in [
        ("SHA-1", hashes(oid::SHA1, oid::HMAC_SHA1), 4, 1),
        ("SHA-256", hashes(oid::SHA256, oid::HMAC_SHA256), 2, 1),
        (
            "SHA-512",
            hashes(oid::SHA512, oid::HMAC_SHA512),
            1,
            limits::WIDE_HASH_COST,
        ),
    ] {
        let most = i64::from(limits::ITERATIONS / cost);
        refused(
            &format!("password-based, {name}"),
            &password_based(most, &hashes),
        );
        // As many iterations for a key of 64 octets as there may be.
        let most = i64::from(limits::PBKDF2_APPLICATIONS / cost) / blocks;
        refused(&format!("PBMAC1, {name}"), &pbmac1(most, 64, &hashes));
    }
}

/// Measures how long it takes to find that a MAC does not fit.
fn refused(name: &str, der: &[u8]) {
    let message = PkiMessage::from_der(der).expect("a message");
    measure(name, || {
        let compute = |algorithm: &MacAlgorithm<'_>, octets: &[u8]| {
            Ok::<_, ProtectionError>(algorithm.compute(b"secret", octets))
        };
        let outcome = verify_mac(&message, Policy::ALLOW_SHA1, compute);
        assert_eq!(outcome, Err(ProtectionError::WrongMac), "{name}");
    });
}

/// OpenSSL 3 and 4 hash for minutes here.
#[test]
fn a_small_bomb_is_refused_before_it_goes_off() {
    let hashes = Hashes {
        owf: oid::SHA256,
        hmac: oid::HMAC_SHA256,
    };
    let bomb = password_based(i64::from(i32::MAX), &hashes);
    assert_eq!(bomb.len(), 227);
    let message = PkiMessage::from_der(&bomb).expect("a message that can be read");
    let refused = || {
        let computed = |_: &MacAlgorithm<'_>, _: &[u8]| -> Result<_, ProtectionError> {
            panic!("something is derived")
        };
        verify_mac(&message, Policy::default(), computed)
    };
    match refused() {
        Err(ProtectionError::Unsupported(protection::Unsupported::Limit {
            asked, limit, ..
        })) => {
            assert_eq!((asked, limit), (2_147_483_647, 100_000));
        }
        other => panic!("{other:?}"),
    }
    let time = meter::fastest(&|| {
        let message = PkiMessage::from_der(&bomb);
        drop(message.map(|_| refused()));
    });
    println!("refused in {time:?}");
    assert!(time < std::time::Duration::from_millis(10), "{time:?}");
}
