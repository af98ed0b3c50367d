//! The security claim, read from the files themselves: what the components can reach.

use abide_cmp::der::{Writer, tag};
use abide_cmp::{AlgorithmIdentifier, oid};
use abide_host::components::{ENROLLER, GATE};
use abide_host::wit::message::{BodyType, Leniency, PkiStatus};
use wit_parser::decoding::{DecodedWasm, decode};
use wit_parser::{Resolve, WorldItem, WorldKey};

/// The names of what a component imports and exports, in order.
fn surface(component: &[u8]) -> (Vec<String>, Vec<String>) {
    let DecodedWasm::Component(resolve, world) = decode(component).expect("a component") else {
        panic!("a WIT package in place of a component");
    };
    let world = &resolve.worlds[world];
    let names = |items: Vec<(&WorldKey, &WorldItem)>| {
        let mut names: Vec<_> = items
            .iter()
            .map(|(key, item)| name(&resolve, key, item))
            .collect();
        names.sort();
        names
    };
    (
        names(world.imports.iter().collect()),
        names(world.exports.iter().collect()),
    )
}

fn name(resolve: &Resolve, key: &WorldKey, item: &WorldItem) -> String {
    match item {
        WorldItem::Interface { .. } => resolve.name_world_key(key),
        // Anything that is no interface would be a way around the list below.
        other => format!("{other:?}"),
    }
}

#[test]
fn the_gate_imports_nothing() {
    let (imports, exports) = surface(GATE);
    assert_eq!(imports, [""; 0]);
    assert_eq!(
        exports,
        [
            "abide:cmp/admission@0.1.0",
            "abide:cmp/backoff@0.1.0",
            "abide:cmp/message@0.1.0",
            "abide:cmp/placement@0.1.0",
            "abide:cmp/policy@0.1.0"
        ]
    );
}

#[test]
fn the_enroller_imports_six_interfaces_and_no_more() {
    let (imports, exports) = surface(ENROLLER);
    assert_eq!(
        imports,
        [
            "abide:cmp/keys@0.1.0",
            "abide:cmp/network@0.1.0",
            "abide:cmp/storage@0.1.0",
            "abide:cmp/telemetry@0.1.0",
            "wasi:clocks/wall-clock@0.2.3",
            "wasi:random/random@0.2.3",
        ]
    );
    assert_eq!(
        exports,
        [
            "abide:cmp/admission@0.1.0",
            "abide:cmp/backoff@0.1.0",
            "abide:cmp/orders@0.1.0",
            "abide:cmp/placement@0.1.0",
            "abide:cmp/policy@0.1.0",
            "abide:cmp/schedule@0.1.0",
            "abide:cmp/transactions@0.1.0",
            "abide:cmp/zombies@0.1.0"
        ]
    );
}

fn gate() -> abide_host::Gate {
    abide_host::Runtime::new(abide_host::RuntimeConfig::default())
        .expect("a runtime")
        .gate()
}

fn strict() -> Leniency {
    Leniency::empty()
}

/// A pkiConf from and to the NULL-DN, with more in its header.
fn pki_conf(more: &[u8]) -> Vec<u8> {
    Writer::encode(|w| {
        w.sequence(|w| {
            w.sequence(|w| {
                w.integer(2);
                w.raw(&[0xa4, 0x02, 0x30, 0x00, 0xa4, 0x02, 0x30, 0x00]);
                w.raw(more);
            });
            w.explicit(19, |w| w.element(tag::NULL, &[]));
        });
    })
}

/// protectionAlg of PBM with SHA-256 and the salt `salt`.
fn password_based_mac(iterations: i64) -> Vec<u8> {
    Writer::encode(|w| {
        w.sequence(|w| {
            w.oid(oid::PASSWORD_BASED_MAC);
            w.sequence(|w| {
                w.octet_string(b"salt");
                w.sequence(|w| w.oid(oid::SHA256));
                w.integer(iterations);
                w.sequence(|w| w.oid(oid::HMAC_SHA256));
            });
        });
    })
}

#[tokio::test]
async fn a_message_comes_apart_and_together_in_the_sandbox() {
    let gate = gate();
    // messageTime, transactionID, freeText.
    let mut more = vec![0xa0, 0x11, 0x18, 0x0f];
    more.extend(b"20240217171209Z");
    more.extend([
        0xa4, 0x03, 0x04, 0x01, 0x44, 0xa7, 0x05, 0x30, 0x03, 0x0c, 0x01, b'a',
    ]);
    let der = pki_conf(&more);
    let parts = gate
        .split(&der, strict())
        .await
        .expect("no trap")
        .expect("a message");
    assert_eq!(parts.header.pvno, 2);
    assert_eq!(parts.header.recipient, [0xa4, 0x02, 0x30, 0x00]);
    assert_eq!(
        parts.header.message_time.as_deref(),
        Some("20240217171209Z")
    );
    assert_eq!(parts.header.transaction_id.as_deref(), Some(&[0x44][..]));
    assert_eq!(parts.header.free_text, ["a"]);
    assert_eq!(parts.body.body, BodyType::Pkiconf);
    assert_eq!(parts.body.value, [0x05, 0x00]);
    assert_eq!(
        gate.encode(&parts)
            .await
            .expect("no trap")
            .expect("a message"),
        der
    );
    // Without protection and certificates the message is what would be protected.
    let protected = gate.protected_part(&der, strict()).await.expect("no trap");
    assert_eq!(protected.expect("a message"), der);

    let mut parts = parts;
    parts.header.pvno = 1;
    let error = gate
        .encode(&parts)
        .await
        .expect("no trap")
        .expect_err("pvno 1");
    assert_eq!(error.path, "header.pvno");
    // unsupportedVersion.
    assert_eq!(error.fail_info, Some(22));
}

#[tokio::test]
async fn each_leniency_is_its_own_switch_in_the_sandbox() {
    let gate = gate();
    let mut fraction = vec![0xa0, 0x14, 0x18, 0x12];
    fraction.extend(b"20240217171209.50Z");
    let switches = [
        (
            Leniency::NON_MINIMAL_LENGTHS,
            vec![0xa4, 0x81, 0x03, 0x04, 0x01, 0x44],
        ),
        (Leniency::FRACTIONAL_SECONDS, fraction),
        (Leniency::EMPTY_LISTS, vec![0xa8, 0x02, 0x30, 0x00]),
    ];
    for (switch, more) in switches {
        let der = pki_conf(&more);
        let others = Leniency::all() & !switch;
        let error = gate
            .decode(&der, others)
            .await
            .expect("no trap")
            .expect_err("a deviation");
        let summary = gate
            .decode(&der, switch)
            .await
            .expect("no trap")
            .expect("tolerated");
        let [toleration] = &summary.tolerated[..] else {
            panic!("{:?}", summary.tolerated)
        };
        assert_eq!(toleration.leniency, switch);
        assert_eq!(
            (toleration.offset, &toleration.path),
            (error.offset, &error.path)
        );
    }
}

/// 2^31 - 1 iterations keep a core busy for minutes: nobody may even get a summary to act on.
#[tokio::test]
async fn an_endless_derivation_is_refused_before_it_begins() {
    let gate = gate();
    let with = |iterations| {
        let algorithm = password_based_mac(iterations);
        pki_conf(&Writer::encode(|w| w.explicit(1, |w| w.raw(&algorithm))))
    };
    let summary = gate.decode(&with(500), strict()).await.expect("no trap");
    summary.expect("a message");
    let der = with(i64::from(i32::MAX));
    let error = gate
        .decode(&der, strict())
        .await
        .expect("no trap")
        .expect_err("too many");
    assert_eq!(error.path, "header.protectionAlg");
    assert!(error.rule.contains("2147483647"), "{}", error.rule);
    assert_eq!(der[error.offset as usize..][..2], [0x2a, 0x86]);
    // badAlg.
    assert_eq!(error.fail_info, Some(0));
}

#[tokio::test]
async fn what_a_gateway_answers_with() {
    let gate = gate();
    let text = ["no".to_owned()];
    let content = gate
        .error_content(PkiStatus::Rejection, &[5, 99], &text)
        .await;
    // rejection, a text, badDataFormat; put together by hand.
    let expected = [
        0x30, 0x0f, 0x30, 0x0d, 2, 1, 2, 0x30, 0x04, 0x0c, 0x02, b'n', b'o', 3, 2, 2, 0x04,
    ];
    assert_eq!(content.expect("no trap"), expected);
    let content = gate.error_content(PkiStatus::Waiting, &[], &[]).await;
    assert_eq!(content.expect("no trap"), [0x30, 0x05, 0x30, 0x03, 2, 1, 3]);

    // Python: k = sha256(b"secret" + b"salt"), 99 times more k = sha256(k), then
    // hmac.new(k, b"data", sha256).
    let expected = [
        0xce, 0xd5, 0x81, 0xce, 0x57, 0x4a, 0x20, 0x64, 0xa5, 0x26, 0x35, 0xe4, 0x8c, 0x14, 0x35,
        0xc7, 0x78, 0x10, 0xc8, 0xf7, 0x8e, 0x5e, 0xe8, 0xbf, 0xfe, 0x68, 0x73, 0xb6, 0xcd, 0x30,
        0xe0, 0xb4,
    ];
    let algorithm = password_based_mac(100);
    AlgorithmIdentifier::from_der(&algorithm).expect("an AlgorithmIdentifier");
    let mac = gate
        .mac(&algorithm, b"secret", b"data")
        .await
        .expect("no trap");
    assert_eq!(mac.expect("a MAC"), expected);
    gate.mac(&algorithm[1..], b"secret", b"data")
        .await
        .expect("no trap")
        .expect_err("no AlgorithmIdentifier");
}

#[tokio::test]
async fn the_calculator_in_the_sandbox_is_the_native_one() {
    use abide_host::wit::backoff::Exponential;
    let hour = 3_600_000;
    let gate = gate();
    // Base, factor in percent, cap, attempts, delay: by hand, in milliseconds.
    let table: [(u64, u32, u64, Option<i64>, u64); 9] = [
        (hour, 200, 32 * hour, None, hour),
        (hour, 200, 32 * hour, Some(-7), hour),
        (hour, 200, 32 * hour, Some(0), hour),
        (hour, 200, 32 * hour, Some(3), 4 * hour),
        (hour, 200, 32 * hour, Some(6), 32 * hour),
        (hour, 200, 32 * hour, Some(7), 32 * hour),
        (hour, 200, 32 * hour, Some(i64::from(u32::MAX)), 32 * hour),
        (1, 200, 1 << 40, Some(36), 1 << 35),
        (1, 200, 1 << 40, Some(64), 1 << 40),
    ];
    for (base_ms, factor_percent, cap_ms, attempts, expected) in table {
        let policy = Exponential {
            base_ms,
            factor_percent,
            cap_ms,
        };
        let delay = gate.delay(policy, attempts).await.expect("no trap");
        assert_eq!(delay.ok(), Some(expected), "{attempts:?}");
    }
}
