//! Hostile octets in the sandbox: whatever comes, the component answers. A trap would be a
//! panic in it, or more memory, stack or time than it may have.

use std::fs;
use std::path::Path;

use abide_host::wit::message::{Anchors, Leniency, Options, Trust};
use abide_host::{Gate, HostError, Runtime, RuntimeConfig};

#[path = "../../guest/cmp/tests/bounds/bombs.rs"]
#[allow(dead_code, reason = "the codec's own test uses the rest")]
mod bombs;

/// Altered messages that are tried.
const TRIALS: usize = 20_000;

/// Where the numbers start from that alter them.
const SEED: u64 = 0x9810_9483_9811_4210;

/// 2026-06-01T00:00:00Z, from `date -u -d 2026-06-01 +%s`.
const NOW: i64 = 1_780_272_000;

/// Xorshift64 (Marsaglia 2003, 3): the same numbers on every machine.
struct Numbers(u64);

impl Numbers {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn below(&mut self, end: usize) -> usize {
        (self.next() % end as u64) as usize
    }
}

/// One to four changes: a bit flipped, an octet set, octets left out, or octets of another
/// place put in.
fn altered(original: &[u8], numbers: &mut Numbers) -> Vec<u8> {
    let mut octets = original.to_vec();
    for _ in 0..=numbers.below(4) {
        if octets.is_empty() {
            octets.push(0x30);
        }
        let at = numbers.below(octets.len());
        let length = numbers.below(16).min(octets.len() - at);
        match numbers.below(4) {
            0 => octets[at] ^= 1 << numbers.below(8),
            1 => octets[at] = numbers.next() as u8,
            2 => drop(octets.drain(at..at + length)),
            _ => {
                let from = numbers.below(original.len());
                let end = (from + length).min(original.len());
                octets.splice(at..at, original[from..end].iter().copied());
            }
        }
    }
    octets
}

/// Messages to start from: our own vectors.
fn vectors() -> Vec<Vec<u8>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../guest/cmp/tests/vectors/messages");
    let entries = fs::read_dir(&folder).expect("the vectors");
    let mut paths: Vec<_> = entries
        .map(|entry| entry.expect("a vector").path())
        .collect();
    paths.sort();
    let read = |path| fs::read(path).expect("a readable vector");
    paths.into_iter().map(read).collect()
}

/// Everything that the gate does with a message.
async fn handle(gate: &Gate, message: &[u8], lenient: bool) -> Result<(), HostError> {
    let leniency = match lenient {
        true => Leniency::all(),
        false => Leniency::empty(),
    };
    let options = Options {
        leniency,
        allow_sha1: lenient,
    };
    let unknown = b"Moor gorse, nine geese and a bicycle".to_vec();
    let anchors = Anchors {
        certificates: Vec::new(),
        untrusted: Vec::new(),
        at: NOW,
        role: None,
    };
    let trusts = [
        Trust::Secret(unknown.clone()),
        Trust::Kem(unknown),
        Trust::Anchors(anchors),
    ];
    let decoded = gate.decode(message, leniency).await?;
    drop(gate.describe(message, leniency).await?);
    drop(gate.check(message, leniency).await?);
    if decoded.is_ok() {
        for trust in &trusts {
            let believed = gate.verify(message, trust, options).await?;
            assert!(believed.is_err(), "believed without a reason");
        }
        if let Ok(parts) = gate.split(message, leniency).await? {
            let whole = gate.encode(&parts).await?;
            assert!(lenient || whole.is_ok_and(|whole| whole == message));
        }
    }
    Ok(())
}

fn gate() -> Gate {
    Runtime::new(RuntimeConfig::default())
        .expect("a runtime")
        .gate()
}

#[tokio::test]
async fn altered_messages_do_not_trap() {
    let (gate, vectors) = (gate(), vectors());
    let mut numbers = Numbers(SEED);
    for trial in 0..TRIALS {
        let original = &vectors[trial % vectors.len()];
        let message = altered(original, &mut numbers);
        if let Err(trap) = handle(&gate, &message, trial % 2 == 1).await {
            panic!("trial {trial}: {trap}: {message:02x?}");
        }
    }
}

#[tokio::test]
async fn the_costliest_messages_do_not_trap() {
    let gate = gate();
    for (name, message) in [
        ("messages in messages", bombs::nested_shortest()),
        (
            "origPKIMessage in origPKIMessage",
            bombs::original_in_original(),
        ),
        ("SEQUENCE in SEQUENCE", bombs::deep_value()),
        ("algorithm in algorithm", bombs::deep_algorithm()),
        ("informations", bombs::many_infos()),
        ("requests", bombs::many_requests()),
        ("texts", bombs::many_texts()),
        ("a name of control characters", bombs::long_sender(0x07)),
        ("a text of control characters", bombs::long_text(0x07)),
        ("an INTEGER", bombs::long_integer()),
        ("an OID of short arcs", bombs::long_oid(0x01)),
        ("an OID with a long arc", bombs::long_oid(0x81)),
        ("a CRL", bombs::long_crl()),
    ] {
        if let Err(trap) = handle(&gate, &message, false).await {
            panic!("{name}: {trap}");
        }
    }
}
