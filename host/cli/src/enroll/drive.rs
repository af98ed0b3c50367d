//! The loop around the component: call, wait until the time it names, call again.

use std::time::{Duration, Instant};

use abide_host::wit::transactions::{
    Done, Enrollment, Failure, Issued, Outcome, Phase, Progress, TransactionError, Waiting,
};
use abide_host::{CallError, Enroller};

use super::args::Enroll;
use super::patience::{Patience, Verdict};
use super::voice::Voice;
use crate::exit::Exit;
use crate::interrupt::Interrupt;
use crate::when;

/// The longest sleep between two looks at the wall clock: a machine that was
/// suspended or whose clock was set notices within this time.
const LOOK: Duration = Duration::from_secs(1);

/// How an enrollment ended for this command.
#[derive(Debug)]
pub(crate) enum End {
    /// There is a certificate.
    Issued(Issued),
    /// Revoked, or answered.
    Done(Done),
    /// The transaction is over without what was asked for.
    Failed(Failure),
    /// The transaction is open, this command leaves.
    Left {
        /// How the command ends.
        exit: Exit,
        /// Why.
        reason: String,
        /// The failure that is being waited out.
        failure: Option<Failure>,
        /// When the next step is due, in milliseconds since the Unix epoch.
        next_ms: Option<u64>,
    },
    /// Nothing was done, or nothing is known of what was done.
    Error {
        /// How the command ends.
        exit: Exit,
        /// Why, and what to do.
        reason: String,
    },
}

/// The end, and the last that was heard of the transaction.
#[derive(Debug)]
pub(crate) struct Report {
    pub(crate) end: End,
    pub(crate) transaction_id: Option<String>,
    pub(crate) phase: Option<Phase>,
}

/// What the store alone decides: the chain of an order that is issued, or the end of a
/// transaction whose issuer or request was changed. Nothing is sent and no credential read; a
/// transaction that goes on needs one, and is left to [`drive`].
pub(crate) async fn recorded(enroller: &Enroller, enrollment: &Enrollment) -> Option<Report> {
    let progress = enroller.resume(enrollment).await.ok()?;
    let end = match progress.outcome {
        Outcome::Issued(issued) => End::Issued(issued),
        Outcome::Done(done) => End::Done(done),
        Outcome::Failed(failure) => End::Failed(failure),
        Outcome::Waiting(_) => return None,
    };
    Some(Report {
        end,
        transaction_id: Some(progress.transaction_id),
        phase: Some(progress.phase),
    })
}

/// Drives one enrollment until it ends, or until this command has no reason to stay.
pub(crate) async fn drive(
    enroller: &Enroller,
    enrollment: &Enrollment,
    args: &Enroll,
    voice: &Voice,
) -> Report {
    let mut interrupt = Interrupt::new();
    let mut patience = Patience::new(&args.times);
    let start = Instant::now();
    let mut phase = None;
    let mut called = tokio::select! {
        called = first(enroller, enrollment, args.resume, voice) => Some(called),
        () = interrupt.caught() => None,
    };
    let end = loop {
        let Some(result) = called.take() else {
            break interrupted(None);
        };
        let progress = match result {
            Ok(progress) => progress,
            Err(error) => break call_error(&error, args, voice.known_transaction().is_some()),
        };
        voice.transaction(&progress.transaction_id);
        phase = Some(progress.phase);
        let waiting = match progress.outcome {
            Outcome::Issued(issued) => break End::Issued(issued),
            Outcome::Done(done) => break End::Done(done),
            Outcome::Failed(failure) => break End::Failed(failure),
            Outcome::Waiting(waiting) => waiting,
        };
        let wait = Duration::from_millis(waiting.until_ms.saturating_sub(when::now_ms()));
        if let Verdict::Leave(exit) = patience.judge(&waiting, start.elapsed(), wait) {
            break left(exit, waiting);
        }
        voice.waiting(&waiting);
        tokio::select! {
            () = until(waiting.until_ms, wait) => {}
            () = interrupt.caught() => break interrupted(Some(waiting)),
        }
        called = tokio::select! {
            called = enroller.resume(enrollment) => Some(called),
            () = interrupt.caught() => None,
        };
    };
    Report {
        end,
        transaction_id: voice.known_transaction(),
        phase,
    }
}

async fn first(
    enroller: &Enroller,
    enrollment: &Enrollment,
    resume: bool,
    voice: &Voice,
) -> Result<Progress, CallError> {
    if resume {
        match enroller.resume(enrollment).await {
            Err(CallError::Transaction(TransactionError::NotFound)) => {
                voice.line("there is no open transaction to go on with: beginning one");
            }
            other => return other,
        }
    }
    enroller.begin(enrollment).await
}

/// Sleeps until the wall clock has reached a time. A clock that is set back does
/// not prolong the wait beyond what it was at first.
async fn until(at_ms: u64, longest: Duration) {
    let start = Instant::now();
    loop {
        let left = Duration::from_millis(at_ms.saturating_sub(when::now_ms()))
            .min(longest.saturating_sub(start.elapsed()));
        if left.is_zero() {
            return;
        }
        tokio::time::sleep(left.min(LOOK)).await;
    }
}

fn left(exit: Exit, waiting: Waiting) -> End {
    End::Left {
        exit,
        reason: waiting.reason,
        failure: waiting.failure,
        next_ms: Some(waiting.until_ms),
    }
}

fn interrupted(waiting: Option<Waiting>) -> End {
    End::Left {
        exit: Exit::Waiting,
        reason: "stopped by a signal".into(),
        failure: None,
        next_ms: waiting.map(|waiting| waiting.until_ms),
    }
}

/// `known` says that there is a transaction to go on with.
fn call_error(error: &CallError, args: &Enroll, known: bool) -> End {
    let left = |exit, reason| End::Left {
        exit,
        reason,
        failure: None,
        next_ms: None,
    };
    let open = |reason: String| left(Exit::Waiting, reason);
    let (exit, reason) = match error {
        // What died was an instance of the component: what it had done is in the store.
        CallError::Host(died) if known => return left(Exit::Host, died.to_string()),
        CallError::Transaction(TransactionError::InProgress(id)) => {
            return open(format!("transaction {id} of this wish is open already"));
        }
        CallError::Transaction(TransactionError::Busy(what)) => {
            return open(format!(
                "another process is at work on this transaction ({what})"
            ));
        }
        CallError::Transaction(TransactionError::Invalid(why)) => {
            let inputs = inputs(args);
            (
                Exit::Usage,
                format!("{inputs}{why}; nothing was sent, correct it and try again"),
            )
        }
        CallError::Transaction(TransactionError::Key(why)) => (
            Exit::Usage,
            format!("{}the key cannot be used: {why}", inputs(args)),
        ),
        other => (Exit::Host, other.to_string()),
    };
    End::Error { exit, reason }
}

/// The files a rejected enrollment was made of: the component has seen only their
/// content.
fn inputs(args: &Enroll) -> String {
    let files = [
        ("--csr", &args.csr),
        ("--cert", &args.cert),
        ("--newkey", &args.newkey),
        ("--oldcert", &args.revocation.oldcert),
        ("--oldwithold", &args.question.oldwithold),
        ("--oldcrl", &args.question.oldcrl),
        ("--crlcert", &args.question.crlcert),
    ];
    let named: Vec<String> = files
        .iter()
        .filter_map(|(option, path)| Some(format!("{option} {}", path.as_ref()?.display())))
        .collect();
    match named[..] {
        [] => String::new(),
        _ => format!("{}: ", named.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_transaction_outlives_an_instance_of_the_component() {
        #[derive(clap::Parser)]
        struct Line {
            #[command(flatten)]
            enroll: Enroll,
        }
        let words = ["abide", "--cmd", "ir", "--server", "ca"];
        let args = <Line as clap::Parser>::parse_from(words).enroll;
        let died = CallError::Host(abide_host::HostError::Deadline {
            component: "enroller",
            budget: Duration::from_millis(1),
        });
        let end = call_error(&died, &args, true);
        assert!(
            matches!(
                end,
                End::Left {
                    exit: Exit::Host,
                    ..
                }
            ),
            "{end:?}"
        );
        let end = call_error(&died, &args, false);
        assert!(matches!(end, End::Error { .. }), "{end:?}");
    }

    #[tokio::test]
    async fn a_past_time_is_not_waited_for() {
        const SOON: Duration = Duration::from_secs(5);
        let hour = Duration::from_secs(3600);
        tokio::time::timeout(SOON, until(0, hour))
            .await
            .expect("the time is past");
        let far = when::now_ms() + 3_600_000;
        tokio::time::timeout(SOON, until(far, Duration::ZERO))
            .await
            .expect("no time is left");
    }
}
