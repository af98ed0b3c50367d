//! What is asked of the gate in every language, and what it answers in Rust, spelled as the
//! scripts spell it: names as in WIT, octets in hexadecimal, `none` as null.

use std::fmt::{Debug, Write};
use std::fs;
use std::path::PathBuf;
use std::time::{SystemTime, UNIX_EPOCH};

use abide_host::Gate;
use abide_host::wit::message::{Anchors, DecodeError, Signer, Summary, Trust, VerifyError};
use serde_json::{Value, json};

/// Of the backoff policy: none, few, and beyond its cap. JSON in JavaScript goes to 2^53.
const ATTEMPTS: [Option<i64>; 4] = [None, Some(-7), Some(3), Some(1 << 53)];

/// The questions of one run.
pub(crate) struct Questions {
    pub(crate) messages: Vec<PathBuf>,
    pub(crate) secret: String,
    pub(crate) certificates: Vec<Vec<u8>>,
    pub(crate) at: i64,
}

impl Questions {
    /// For the scripts.
    pub(crate) fn json(&self) -> Value {
        json!({
            "attempts": ATTEMPTS,
            "messages": self.messages,
            "secret": self.secret,
            "anchors": {
                "certificates": self.certificates.iter().map(|der| hex(der)).collect::<Vec<_>>(),
                "at": self.at,
            },
        })
    }

    /// What the gate says here, each answer with what it is about.
    pub(crate) async fn answers(&self, gate: &Gate) -> Vec<(String, Value)> {
        let policy = gate.default_policy().await.expect("no trap");
        let mut answers = vec![(
            "default-policy".to_owned(),
            json!({
                "base-ms": policy.base_ms,
                "factor-percent": policy.factor_percent,
                "cap-ms": policy.cap_ms,
            }),
        )];
        for attempts in ATTEMPTS {
            let delay = gate.delay(policy, attempts).await.expect("no trap");
            let delay = delay.expect("the default policy is valid");
            answers.push((format!("delay after {attempts:?}"), json!({ "ok": delay })));
        }
        let trusts = [
            Trust::Secret(self.secret.clone().into_bytes()),
            Trust::Anchors(Anchors {
                certificates: self.certificates.clone(),
                at: self.at,
            }),
        ];
        for path in &self.messages {
            let message = fs::read(path).expect("a message");
            let mut verdicts = Vec::new();
            for trust in &trusts {
                let verdict = gate.verify(&message, trust).await.expect("no trap");
                verdicts.push(outcome(verdict, signer, verify_error));
            }
            let decoded = gate.decode(&message).await.expect("no trap");
            let described = gate.describe(&message).await.expect("no trap");
            let answer = json!({
                "decode": outcome(decoded, summary, decode_error),
                "describe": outcome(described, Value::from, decode_error),
                "verify": verdicts,
            });
            answers.push((path.display().to_string(), answer));
        }
        answers
    }
}

/// Seconds since the Unix epoch.
pub(crate) fn now() -> i64 {
    let since = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .expect("a clock past 1970");
    i64::try_from(since.as_secs()).expect("a clock before the year 292 billion")
}

fn outcome<T, E>(
    result: Result<T, E>,
    ok: impl FnOnce(T) -> Value,
    err: impl FnOnce(E) -> Value,
) -> Value {
    match result {
        Ok(value) => json!({ "ok": ok(value) }),
        Err(error) => json!({ "err": err(error) }),
    }
}

fn summary(summary: Summary) -> Value {
    let octets = |field: Option<Vec<u8>>| field.map(|octets| hex(&octets));
    json!({
        "pvno": summary.pvno,
        "body": case(&summary.body),
        "sender": summary.sender,
        "recipient": summary.recipient,
        "transaction-id": octets(summary.transaction_id),
        "sender-kid": octets(summary.sender_kid),
        "sender-nonce": octets(summary.sender_nonce),
        "recip-nonce": octets(summary.recip_nonce),
        "message-time": summary.message_time,
        "protection": case(&summary.protection),
        "protection-algorithm": summary.protection_algorithm,
        "extra-certs": summary.extra_certs,
        "implicit-confirm": summary.implicit_confirm,
    })
}

fn decode_error(error: DecodeError) -> Value {
    json!({
        "offset": error.offset,
        "path": error.path,
        "rule": error.rule,
        "fail-info": error.fail_info,
    })
}

fn signer(signer: Signer) -> Value {
    json!({
        "name": signer.name,
        "certificate": signer.certificate.map(|der| hex(&der)),
    })
}

fn verify_error(error: VerifyError) -> Value {
    match error {
        VerifyError::Undecodable(error) => json!({ "undecodable": decode_error(error) }),
        VerifyError::Unprotected => json!({ "unprotected": null }),
        VerifyError::WrongKind => json!({ "wrong-kind": null }),
        VerifyError::Unsupported(why) => json!({ "unsupported": why }),
        VerifyError::BadProtection(why) => json!({ "bad-protection": why }),
        VerifyError::Untrusted(why) => json!({ "untrusted": why }),
    }
}

fn hex(octets: &[u8]) -> String {
    octets.iter().fold(String::new(), |mut text, octet| {
        write!(text, "{octet:02x}").expect("a String takes everything");
        text
    })
}

/// The case of an enum by its name in WIT, from the one in Rust.
fn case(value: &impl Debug) -> String {
    let name = format!("{value:?}");
    let name = name.rsplit("::").next().unwrap_or_default();
    let mut kebab = String::new();
    for letter in name.chars() {
        if letter.is_uppercase() && !kebab.is_empty() {
            kebab.push('-');
        }
        kebab.push(letter.to_ascii_lowercase());
    }
    kebab
}
