//! Malformed, mis-ordered and hostile answers, where a corpus of them lies beside the project:
//! each gets a typed verdict, and none leaves a transaction stuck.
//!
//! They were made for one transactionID and one nonce, which the world draws here.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use abide_cmp::{CertOrEncCert, Certificate, PkiBody, PkiMessage};
use abide_enroll::{Confirmation, Credential, Failure, Operation, Outcome, Phase, Progress};

use super::peer;
use crate::faults::state;
use crate::world::{HOUR, World, waits};

/// The transactionID and the nonce of all of them.
const TRANSACTION_ID: [u8; 16] = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15];
const NONCE: [u8; 16] = [
    16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31,
];

/// 2026-12-01T00:00:00Z, from `date -u -d 2026-12-01 +%s`: the certificates are valid then.
const NOW_MS: u64 = 1_796_083_200_000;

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/corpus/odd")
}

/// Name, phase and expectation of each, as the index has them, with its octets; none where
/// there is no corpus.
fn corpus() -> BTreeMap<String, (String, String, Vec<u8>)> {
    let Ok(index) = fs::read_to_string(folder().join("INDEX.md")) else {
        return BTreeMap::new();
    };
    let lines = index.lines().filter_map(|line| {
        let columns: Vec<_> = line.split('|').map(str::trim).collect();
        let [_, name, phase, expected, _, _] = columns[..] else {
            return None;
        };
        ["accept", "reject", "accept-or-reject"]
            .contains(&expected)
            .then(|| {
                let octets = fs::read(folder().join(format!("{name}.der")));
                let octets = octets.unwrap_or_else(|error| panic!("{name}: {error}"));
                (name.into(), (phase.into(), expected.into(), octets))
            })
    });
    let corpus: BTreeMap<_, _> = lines.collect();
    assert!(corpus.len() > 90, "the index is read");
    corpus
}

/// What an answer did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Effect {
    /// It was believed and acted upon.
    Taken,
    /// Nothing has changed but what is told.
    Unchanged,
    /// The transaction has failed.
    Failed,
    /// The CA is told that its certificate is not taken.
    CertificateRefused,
    /// The certificate is kept, but nobody has acknowledged it.
    Unacknowledged,
}

/// A world in which a cr was answered so far that the next answer comes in this phase.
fn before(phase: Phase, control: &[u8], waiting: &[u8]) -> World {
    let mut world = peer::world(Operation::Cr);
    world.enrollment.trusted.clear();
    if let Credential::Secret(secret) = &mut world.enrollment.credential {
        secret.reference = b"client".to_vec();
    }
    world.secret.replace(b"sEcret-0123456789".to_vec());
    world.now_ms.set(NOW_MS);
    world.certified.replace(Some(certified_key(control)));
    // transactionID, then senderNonce and salt of each message.
    let draws = [TRANSACTION_ID, NONCE, [0; 16], NONCE, [1; 16]];
    world.draws.replace(draws.map(|draw| draw.to_vec()).into());
    let first = match phase {
        Phase::Polling => waiting,
        Phase::Confirming => control,
        _ => {
            world.next_is_lost();
            waits(world.begin().expect("a beginning"));
            return world;
        }
    }
    .to_vec();
    world.next_says(move |_, _| first.clone());
    world.next_is_lost();
    waits(world.begin().expect("a beginning"));
    if phase == Phase::Polling {
        waits(world.step());
    }
    world
}

/// The key of the certificate in a cp.
fn certified_key(cp: &[u8]) -> Vec<u8> {
    let message = PkiMessage::from_der(cp).expect("the control");
    let PkiBody::Cp(content) = &message.body else {
        panic!("the control is no cp");
    };
    let pair = content.responses[0].certified_key_pair.as_ref();
    match pair.map(|pair| &pair.cert_or_enc_cert) {
        Some(CertOrEncCert::Certificate(der)) => {
            let certificate = Certificate::from_der(der).expect("a certificate");
            certificate.public_key.raw.to_vec()
        }
        _ => panic!("the control has no certificate"),
    }
}

/// A failure says enough to a person, on one line.
fn is_telling(name: &str, failure: &Failure) {
    assert!(!failure.advice.is_empty(), "{name}: {failure:?}");
    let reason = &failure.reason;
    assert!(reason.len() < 2000, "{name}: {}", reason.len());
    assert!(!reason.chars().any(char::is_control), "{name}: {reason}");
}

/// Gives one answer, tells its effect, and lets the transaction come to its end without
/// another one.
fn effect(name: &str, world: &World, octets: &[u8]) -> Effect {
    let before = world.record();
    let octets = octets.to_vec();
    world.next_says(move |_, _| octets.clone());
    for _ in 0..50 {
        world.next_is_lost();
    }
    let progress = world.step();
    let after = world.record();
    let effect = match &progress.outcome {
        Outcome::Failed(failure) => {
            is_telling(name, failure);
            Effect::Failed
        }
        Outcome::Issued(issued) if issued.confirmation == Confirmation::Unacknowledged => {
            assert!(!issued.note.is_empty());
            Effect::Unacknowledged
        }
        Outcome::Issued(_) | Outcome::Done(_) => Effect::Taken,
        Outcome::Waiting(waiting) => {
            let changed = after.last_request != before.last_request || after.phase != before.phase;
            match (&waiting.failure, changed) {
                (Some(failure), false) => {
                    is_telling(name, failure);
                    assert_eq!(state(&after), state(&before), "{name}");
                    Effect::Unchanged
                }
                _ if after.phase == Phase::Confirming && after.failure.is_some() => {
                    Effect::CertificateRefused
                }
                _ => Effect::Taken,
            }
        }
    };
    ends(name, world, progress);
    effect
}

/// It goes on by itself until there is an end.
fn ends(name: &str, world: &World, mut progress: Progress) {
    let deadline = world.record().deadline_ms;
    for _ in 0..60 {
        let Outcome::Waiting(waiting) = &progress.outcome else {
            assert!(!world.record().phase.is_open(), "{name}");
            return;
        };
        assert!(waiting.until_ms > world.now_ms.get(), "{name}: it spins");
        assert!(waiting.until_ms <= deadline, "{name}");
        assert!(world.record().due_ms().is_some(), "{name} is stuck");
        world.now_ms.set(waiting.until_ms);
        progress = world.resume().expect("a transaction to go on with");
    }
    panic!("{name} does not end within {HOUR} ms");
}

#[test]
fn each_odd_answer_has_the_effect_that_the_index_asks_for() {
    let corpus = corpus();
    let (Some(control), Some(waiting)) =
        (corpus.get("ok_control"), corpus.get("ok_control_waiting"))
    else {
        return;
    };
    let mut wrong = Vec::new();
    for (name, (phase, expected, octets)) in &corpus {
        let phase = match phase.as_str() {
            "poll" => Phase::Polling,
            "conf" => Phase::Confirming,
            _ => Phase::Enrolling,
        };
        let world = before(phase, &control.2, &waiting.2);
        let effect = effect(name, &world, octets);
        let fits = match expected.as_str() {
            "accept" => effect == Effect::Taken,
            "reject" => effect != Effect::Taken,
            _ => true,
        };
        if !fits {
            wrong.push(format!("{name}: {expected}, but {effect:?}"));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// A good answer at another time is as odd as a bad one.
#[test]
fn no_odd_answer_leaves_a_transaction_stuck_whenever_it_comes() {
    let corpus = corpus();
    let (Some(control), Some(waiting)) =
        (corpus.get("ok_control"), corpus.get("ok_control_waiting"))
    else {
        return;
    };
    for (name, (_, _, octets)) in &corpus {
        for phase in [Phase::Enrolling, Phase::Polling, Phase::Confirming] {
            let world = before(phase, &control.2, &waiting.2);
            effect(name, &world, octets);
        }
    }
}
