//! What is asked of the gate in every language, and what it answers in Rust, spelled as the
//! scripts spell it: names as in WIT, octets in hexadecimal, `none` as null.

use std::fmt::{Debug, Write};
use std::fs;
use std::path::PathBuf;
use std::time::{SystemTime, UNIX_EPOCH};

use abide_host::Gate;
use abide_host::wit::message::{
    Anchors, DecodeError, Finding, Header, Leniency, Options, Parts, PkiStatus, Signer, Summary,
    Toleration, Trust, VerifyError,
};
use serde_json::{Value, json};

/// Of the backoff policy: none, few, and beyond its cap. JSON in JavaScript goes to 2^53.
const ATTEMPTS: [Option<i64>; 4] = [None, Some(-7), Some(3), Some(1 << 53)];

/// The questions of one run.
pub(crate) struct Questions {
    pub(crate) messages: Vec<PathBuf>,
    pub(crate) secrets: Vec<String>,
    pub(crate) kem: Vec<u8>,
    pub(crate) certificates: Vec<Vec<u8>>,
    pub(crate) at: i64,
}

impl Questions {
    /// For the scripts.
    pub(crate) fn json(&self) -> Value {
        json!({
            "attempts": ATTEMPTS,
            "messages": self.messages,
            "secrets": self.secrets,
            "kem": hex(&self.kem),
            "anchors": {
                "certificates": list(self.certificates.clone(), |der| hex(&der).into()),
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
        let text = ["no", "nein"].map(str::to_owned);
        let content = gate.error_content(PkiStatus::Rejection, &[7, 2], &text);
        let content = content.await.expect("no trap");
        answers.push(("error-content".to_owned(), hex(&content).into()));
        for path in &self.messages {
            let message = fs::read(path).expect("a message");
            let answer = json!({
                "strict": self.read(gate, &message, Leniency::empty()).await,
                "lenient": self.read(gate, &message, Leniency::all()).await,
                "parts": self.taken_apart(gate, &message).await,
            });
            answers.push((path.display().to_string(), answer));
        }
        answers
    }

    async fn read(&self, gate: &Gate, message: &[u8], leniency: Leniency) -> Value {
        let decoded = gate.decode(message, leniency).await.expect("no trap");
        let described = gate.describe(message, leniency).await.expect("no trap");
        let checked = gate.check(message, leniency).await.expect("no trap");
        let secrets = self.secrets.iter().map(|secret| secret.clone().into());
        let anchors = Anchors {
            certificates: self.certificates.clone(),
            untrusted: Vec::new(),
            at: self.at,
            role: None,
        };
        let others = [Trust::Kem(self.kem.clone()), Trust::Anchors(anchors)];
        let trusts = secrets.map(Trust::Secret).chain(others);
        let mut verdicts = Vec::new();
        for trust in trusts {
            let options = Options {
                leniency,
                allow_sha1: leniency != Leniency::empty(),
            };
            let verdict = gate.verify(message, &trust, options).await;
            verdicts.push(outcome(verdict.expect("no trap"), signer, verify_error));
        }
        json!({
            "decode": outcome(decoded, summary, decode_error),
            "describe": outcome(described, Value::from, decode_error),
            "check": outcome(checked, |findings| list(findings, finding), decode_error),
            "verify": verdicts,
        })
    }

    async fn taken_apart(&self, gate: &Gate, message: &[u8]) -> Value {
        let strict = Leniency::empty();
        let split = match gate.split(message, strict).await.expect("no trap") {
            Ok(split) => split,
            Err(error) => return json!({ "split": { "err": decode_error(error) } }),
        };
        let encoded = gate.encode(&split).await.expect("no trap");
        let covered = gate.protected_part(message, strict).await.expect("no trap");
        let covered = covered.expect("what can be split has this part");
        let mac = match &split.header.protection_alg {
            None => Value::Null,
            Some(algorithm) => {
                let mac = gate
                    .mac(algorithm, self.secrets[0].as_bytes(), &covered)
                    .await;
                outcome(mac.expect("no trap"), |mac| hex(&mac).into(), verify_error)
            }
        };
        json!({
            "split": { "ok": parts(split) },
            "encode": outcome(encoded, |der| hex(&der).into(), decode_error),
            "protected-part": hex(&covered),
            "mac": mac,
        })
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
        "tolerated": list(summary.tolerated, toleration),
    })
}

fn finding(finding: Finding) -> Value {
    json!({
        "rule": finding.rule,
        "section": finding.section,
        "path": finding.path,
        "weight": case(&finding.weight),
        "fail-info": finding.fail_info,
    })
}

fn toleration(toleration: Toleration) -> Value {
    let names = [
        (Leniency::EMPTY_LISTS, "empty-lists"),
        (Leniency::EXPLICIT_RA_VERIFIED, "explicit-ra-verified"),
        (Leniency::FRACTIONAL_SECONDS, "fractional-seconds"),
        (Leniency::NON_MINIMAL_LENGTHS, "non-minimal-lengths"),
    ];
    let names = names
        .into_iter()
        .filter(|(flag, _)| toleration.leniency.contains(*flag));
    json!({
        "leniency": names.map(|(_, name)| name).collect::<Vec<_>>(),
        "offset": toleration.offset,
        "path": toleration.path,
    })
}

fn parts(parts: Parts) -> Value {
    json!({
        "header": header(parts.header),
        "body": { "body": case(&parts.body.body), "value": hex(&parts.body.value) },
        "protection": octets(parts.protection),
        "extra-certs": list(parts.extra_certs, |der| hex(&der).into()),
    })
}

fn header(header: Header) -> Value {
    json!({
        "pvno": header.pvno,
        "sender": hex(&header.sender),
        "recipient": hex(&header.recipient),
        "message-time": header.message_time,
        "protection-alg": octets(header.protection_alg),
        "sender-kid": octets(header.sender_kid),
        "recip-kid": octets(header.recip_kid),
        "transaction-id": octets(header.transaction_id),
        "sender-nonce": octets(header.sender_nonce),
        "recip-nonce": octets(header.recip_nonce),
        "free-text": header.free_text,
        "general-info": list(header.general_info, |der| hex(&der).into()),
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
        "certificate": octets(signer.certificate),
        "path": list(signer.path, |der| hex(&der).into()),
        "roles": list(signer.roles, |role| case(&role).into()),
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

fn list<T>(values: Vec<T>, value: impl Fn(T) -> Value) -> Value {
    values.into_iter().map(value).collect()
}

fn octets(field: Option<Vec<u8>>) -> Value {
    field.map(|octets| hex(&octets)).into()
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
