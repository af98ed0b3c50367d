//! The result of an enrollment: files, lines and JSON.

use std::path::Path;

use abide_host::wit::transactions::{Done, Enrollment, Failure, Issued};
use serde_json::{Map, Value};

use super::args::Enroll;
use super::drive::{End, Report};
use super::question;
use crate::exit::{Exit, Stop};
use crate::output::{self, Format};
use crate::{files, pem, text, when, words};

/// Writes the files of an issued certificate, then the result, and says how the
/// program ends.
pub(crate) fn deliver(report: &Report, enrollment: &Enrollment, args: &Enroll) -> Exit {
    let written = match &report.end {
        End::Issued(issued) => write(issued, args),
        End::Done(Done {
            answer: Some(answer),
            ..
        }) => question::write(answer, args),
        _ => Ok(()),
    };
    let exit = match (&written, &report.end) {
        (Err(stop), _) => stop.exit,
        (Ok(()), End::Issued(_) | End::Done(_)) => Exit::Done,
        (Ok(()), End::Failed(failure)) => Exit::of(failure),
        (Ok(()), End::Left { exit, .. } | End::Error { exit, .. }) => *exit,
    };
    tell(report, written.as_ref().err(), args);
    let printed = match (args.output, &report.end) {
        (Format::Json, _) => output::print_json(&json(
            report,
            exit,
            written.as_ref().err(),
            enrollment,
            args,
        )),
        (Format::Text, End::Issued(issued)) if args.certout.is_none() => {
            output::print(&leaf(issued))
        }
        (
            Format::Text,
            End::Done(Done {
                answer: Some(answer),
                ..
            }),
        ) => output::print(&question::text(answer, args)),
        (Format::Text, _) => Ok(()),
    };
    match printed {
        Ok(()) => exit,
        Err(stop) => {
            output::say(&format!("abide: {stop}"));
            stop.exit
        }
    }
}

fn leaf(issued: &Issued) -> String {
    pem::encode_certificates(issued.chain.get(..1).unwrap_or_default())
}

/// Existing files are replaced only now, when there is something better.
fn write(issued: &Issued, args: &Enroll) -> Result<(), Stop> {
    // None sent is not the same as none to be trusted: what is there stays.
    if let Some(path) = args
        .cacertsout
        .as_ref()
        .filter(|_| !issued.ca_pubs.is_empty())
    {
        files::replace(
            "--cacertsout",
            path,
            pem::encode_certificates(&issued.ca_pubs).as_bytes(),
        )?;
    }
    if let Some(path) = &args.chainout {
        files::replace(
            "--chainout",
            path,
            pem::encode_certificates(&issued.chain).as_bytes(),
        )?;
    }
    // Last, because whoever watches for the certificate expects the rest to be there.
    if let Some(path) = &args.certout {
        files::replace("--certout", path, leaf(issued).as_bytes())?;
    }
    Ok(())
}

/// The lines for people, on the standard error.
fn tell(report: &Report, unwritten: Option<&Stop>, args: &Enroll) {
    let transaction = match &report.transaction_id {
        Some(id) => format!("transaction {id}"),
        None => "the transaction".into(),
    };
    match &report.end {
        End::Issued(issued) => {
            if !args.quiet {
                let confirmation = words::confirmation(issued.confirmation);
                output::say(&format!(
                    "issued: {transaction}, confirmation {confirmation}"
                ));
            }
            if args.cacertsout.is_some() && issued.ca_pubs.is_empty() && !args.quiet {
                output::say(
                    "note: nothing was written to --cacertsout: the CA sent no caPubs that the \
                     shared secret protects",
                );
            }
            if !issued.note.is_empty() {
                output::say(&format!("note: {}", issued.note));
            }
            if let Some(stop) = unwritten {
                output::say(&format!(
                    "abide: {stop}; the certificate is in the store, the same command with \
                     --resume writes it without asking the CA again"
                ));
            }
        }
        End::Done(done) => {
            if !args.quiet {
                output::say(&format!("done: {transaction}"));
            }
            if !done.note.is_empty() {
                output::say(&format!("note: {}", done.note));
            }
            if let Some(stop) = unwritten {
                output::say(&format!(
                    "abide: {stop}; the answer is in the store, the same command with --resume \
                     writes it without asking the CA again"
                ));
            }
        }
        End::Failed(failure) => output::say(&format!("abide: {}", words::failure_line(failure))),
        End::Error { reason, .. } => output::say(&format!("abide: {reason}")),
        End::Left {
            reason,
            failure,
            next_ms,
            ..
        } => {
            let what = failure.as_ref().map_or(reason.clone(), words::failure_line);
            let next = next_ms.map_or(String::new(), |at| {
                let distance = when::distance(when::now_ms(), at);
                format!(", the next step is due at {}, {distance}", when::utc(at))
            });
            output::say(&format!("abide: {what}; {transaction} stays open{next}"));
            output::say(&format!("go on with: {}", resume_command()));
        }
    }
}

/// This command line with `--resume`.
fn resume_command() -> String {
    let mut words: Vec<String> = std::env::args_os()
        .map(|word| word.to_string_lossy().into_owned())
        .collect();
    if !words.iter().any(|word| word == "--resume") {
        words.push("--resume".into());
    }
    text::command_line(words)
}

/// One object of the same shape for success and failure: what is not known is null.
fn json(
    report: &Report,
    exit: Exit,
    unwritten: Option<&Stop>,
    enrollment: &Enrollment,
    args: &Enroll,
) -> Value {
    let (status, issued, failure, next_ms, reason) = match &report.end {
        End::Issued(issued) => (
            "issued",
            Some(issued),
            None,
            None,
            unwritten.map(Stop::to_string),
        ),
        End::Done(_) => ("done", None, None, None, unwritten.map(Stop::to_string)),
        End::Failed(failure) => (
            "failed",
            None,
            Some(failure),
            None,
            Some(failure.reason.clone()),
        ),
        End::Left {
            reason,
            failure,
            next_ms,
            ..
        } => {
            let reason = failure.as_ref().map_or(reason, |failure| &failure.reason);
            (
                "waiting",
                None,
                failure.as_ref(),
                *next_ms,
                Some(reason.clone()),
            )
        }
        End::Error { reason, .. } => ("error", None, None, None, Some(reason.clone())),
    };
    let file = |path: &Option<std::path::PathBuf>| match issued {
        Some(_) => optional(
            path.as_deref()
                .map(|path: &Path| path.display().to_string()),
        ),
        None => Value::Null,
    };
    let done = match &report.end {
        End::Done(done) => Some(done),
        _ => None,
    };
    let answer = done.and_then(|done| done.answer.as_ref());
    let note = issued
        .map(|issued| &issued.note)
        .or(done.map(|done| &done.note));
    let members = [
        ("status", status.into()),
        ("exitCode", exit.code().into()),
        ("order", enrollment.order.clone().into()),
        ("account", enrollment.account.clone().into()),
        ("operation", words::operation(enrollment.operation).into()),
        ("server", enrollment.server.clone().into()),
        ("transactionID", optional(report.transaction_id.clone())),
        ("phase", optional(report.phase.map(words::phase))),
        (
            "confirmation",
            optional(issued.map(|issued| words::confirmation(issued.confirmation))),
        ),
        ("note", optional(note.cloned())),
        ("certificate", optional(issued.map(leaf))),
        (
            "chain",
            optional(issued.map(|issued| pem::encode_certificates(&issued.chain))),
        ),
        (
            "caPubs",
            optional(issued.map(|issued| pem::encode_certificates(&issued.ca_pubs))),
        ),
        ("certificateFile", file(&args.certout)),
        ("chainFile", file(&args.chainout)),
        ("caPubsFile", file(&args.cacertsout)),
        ("answer", optional(answer.map(question::json))),
        (
            "answerFile",
            optional(answer.and_then(|answer| question::file(answer, args))),
        ),
        ("reason", optional(reason)),
        (
            "advice",
            optional(failure.map(|failure| failure.advice.clone())),
        ),
        (
            "failureClass",
            optional(failure.map(|failure| words::class(failure.class))),
        ),
        (
            "fault",
            optional(failure.map(|failure| words::fault(failure.fault))),
        ),
        ("failInfo", fail_info(failure)),
        (
            "orphan",
            failure.is_some_and(|failure| failure.orphan).into(),
        ),
        ("nextAttempt", optional(next_ms.map(when::utc))),
    ];
    Value::Object(
        members
            .into_iter()
            .map(|(key, value)| (key.into(), value))
            .collect::<Map<_, _>>(),
    )
}

fn fail_info(failure: Option<&Failure>) -> Value {
    failure
        .map_or_else(Vec::new, |failure| failure.fail_info.clone())
        .into()
}

fn optional<T: Into<Value>>(value: Option<T>) -> Value {
    value.map_or(Value::Null, Into::into)
}

#[cfg(test)]
mod tests {
    use super::*;
    use abide_host::wit::transactions::{Confirmation, FailureClass, Fault, Phase};
    use clap::Parser;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        enroll: Enroll,
    }

    fn args(extra: &[&str]) -> Enroll {
        let words = ["abide", "--cmd", "p10cr", "--server", "ca", "--quiet"];
        Line::try_parse_from(words.iter().chain(extra))
            .unwrap()
            .enroll
    }

    fn issued() -> Issued {
        Issued {
            chain: vec![b"leaf".to_vec(), b"issuer".to_vec()],
            ca_pubs: vec![b"root".to_vec()],
            confirmation: Confirmation::Confirmed,
            note: String::new(),
        }
    }

    #[test]
    fn files_hold_leaf_chain_and_ca_certificates() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name).display().to_string();
        let (cert, chain, ca) = (path("cert"), path("chain"), path("ca"));
        let words = [
            "--certout",
            &cert,
            "--chainout",
            &chain,
            "--cacertsout",
            &ca,
        ];
        write(&issued(), &args(&words)).unwrap();
        let blocks = |path: &str| {
            let blocks = pem::blocks(&std::fs::read(path).unwrap()).unwrap();
            blocks
                .into_iter()
                .map(|block| block.der)
                .collect::<Vec<_>>()
        };
        assert_eq!(blocks(&cert), [b"leaf".to_vec()]);
        assert_eq!(blocks(&chain), [b"leaf".to_vec(), b"issuer".to_vec()]);
        assert_eq!(blocks(&ca), [b"root".to_vec()]);
    }

    #[test]
    fn ca_certificates_that_did_not_come_replace_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let ca = folder.path().join("ca");
        std::fs::write(&ca, "what was there").unwrap();
        let issued = Issued {
            ca_pubs: Vec::new(),
            ..issued()
        };
        write(&issued, &args(&["--cacertsout", &ca.display().to_string()])).unwrap();
        assert_eq!(std::fs::read_to_string(&ca).unwrap(), "what was there");
    }

    #[test]
    fn every_end_has_the_same_members() {
        let failure = Failure {
            class: FailureClass::Refused,
            fault: Fault::Peer,
            reason: "no".into(),
            advice: "ask".into(),
            fail_info: vec!["badPOP".into()],
            orphan: true,
            throttled: false,
        };
        let left = |failure| End::Left {
            exit: Exit::Waiting,
            reason: "patience".into(),
            failure,
            next_ms: Some(0),
        };
        let ends = [
            (End::Issued(issued()), Exit::Done, "issued"),
            (
                End::Done(Done {
                    answer: None,
                    note: String::new(),
                }),
                Exit::Done,
                "done",
            ),
            (End::Failed(failure.clone()), Exit::Refused, "failed"),
            (left(None), Exit::Waiting, "waiting"),
            (left(Some(failure)), Exit::Refused, "waiting"),
            (
                End::Error {
                    exit: Exit::Host,
                    reason: "disk".into(),
                },
                Exit::Host,
                "error",
            ),
        ];
        let enrollment = enrollment();
        let args = args(&[]);
        let mut shapes = Vec::new();
        for (end, exit, status) in ends {
            let report = Report {
                end,
                transaction_id: Some("00ff".into()),
                phase: Some(Phase::Enrolling),
            };
            let value = json(&report, exit, None, &enrollment, &args);
            assert_eq!(value["status"], status);
            assert_eq!(value["exitCode"], exit.code());
            assert_eq!(value["transactionID"], "00ff");
            shapes.push(
                value
                    .as_object()
                    .unwrap()
                    .keys()
                    .cloned()
                    .collect::<Vec<_>>(),
            );
        }
        assert!(shapes.windows(2).all(|pair| pair[0] == pair[1]));
    }

    fn enrollment() -> Enrollment {
        use abide_host::wit::transactions::{
            Credential, Deviations, Limits, MacKind, Operation, SharedSecret, Want,
        };
        Enrollment {
            order: "o".into(),
            account: String::new(),
            operation: Operation::P10cr,
            want: Want::Csr(Vec::new()),
            profile: String::new(),
            server: "http://ca/".into(),
            recipient: String::new(),
            credential: Credential::Secret(SharedSecret {
                reference: Vec::new(),
                key: "secret".into(),
                iterations: 500,
                mac: MacKind::Pbm,
            }),
            trusted: Vec::new(),
            out_trusted: Vec::new(),
            untrusted: Vec::new(),
            implicit_confirm: false,
            allow_sha1: false,
            allow: Deviations::empty(),
            limits: Limits {
                maximum_duration_ms: 1,
                minimum_poll_interval_ms: 1,
                maximum_poll_interval_ms: 1,
                maximum_polls: 1,
                request_timeout_ms: 1,
            },
            registration: None,
        }
    }
}
