//! Whether a waiting transaction is worth this command's presence. The transaction
//! itself has its own bounds, kept by the component; here is only decided how long
//! one process stays.

use std::time::Duration;

use abide_host::wit::transactions::{FailureClass, Waiting};

use super::args::Times;
use crate::exit::Exit;

/// What to do about a waiting transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// Stay and call again.
    Stay,
    /// Leave the transaction open and end with this code.
    Leave(Exit),
}

/// The memory of one command: when the server was last known to work.
#[derive(Clone, Debug)]
pub(crate) struct Patience {
    unreachable: Duration,
    waiting: Option<Duration>,
    /// When the current run of passing failures began, from the start of the command.
    trouble_since: Option<Duration>,
}

impl Patience {
    pub(crate) fn new(times: &Times) -> Self {
        Self {
            unreachable: times.unreachable(),
            waiting: times.max_wait.map(Duration::from_secs),
            trouble_since: None,
        }
    }

    /// Judges an outcome `elapsed` after the start of the command, when the next
    /// step is due after `wait`. What cannot happen within a bound is not waited for.
    pub(crate) fn judge(
        &mut self,
        waiting: &Waiting,
        elapsed: Duration,
        wait: Duration,
    ) -> Verdict {
        let due = elapsed.saturating_add(wait);
        match &waiting.failure {
            None => {
                self.trouble_since = None;
                match self.waiting {
                    Some(bound) if due > bound => Verdict::Leave(Exit::Waiting),
                    _ => Verdict::Stay,
                }
            }
            Some(failure) if failure.class == FailureClass::Transient => {
                let since = *self.trouble_since.get_or_insert(elapsed);
                if due > since.saturating_add(self.unreachable) {
                    Verdict::Leave(Exit::of(failure))
                } else {
                    Verdict::Stay
                }
            }
            Some(failure) => Verdict::Leave(Exit::of(failure)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use abide_host::wit::transactions::{Failure, Fault};

    fn patience(unreachable: u64, waiting: Option<u64>) -> Patience {
        Patience {
            unreachable: Duration::from_secs(unreachable),
            waiting: waiting.map(Duration::from_secs),
            trouble_since: None,
        }
    }

    fn waiting(class: Option<FailureClass>) -> Waiting {
        let failure = class.map(|class| Failure {
            class,
            fault: Fault::Peer,
            reason: String::new(),
            advice: String::new(),
            fail_info: Vec::new(),
            orphan: false,
            throttled: false,
        });
        Waiting {
            until_ms: 0,
            reason: String::new(),
            failure,
        }
    }

    fn judge(patience: &mut Patience, class: Option<FailureClass>, at: u64, wait: u64) -> Verdict {
        patience.judge(
            &waiting(class),
            Duration::from_secs(at),
            Duration::from_secs(wait),
        )
    }

    #[test]
    fn a_waiting_ca_is_waited_for() {
        let mut endless = patience(15, None);
        assert_eq!(judge(&mut endless, None, 100_000, 300), Verdict::Stay);
        let mut bounded = patience(15, Some(20));
        assert_eq!(judge(&mut bounded, None, 0, 20), Verdict::Stay);
        assert_eq!(
            judge(&mut bounded, None, 15, 6),
            Verdict::Leave(Exit::Waiting)
        );
        assert_eq!(
            judge(&mut patience(15, Some(0)), None, 0, 1),
            Verdict::Leave(Exit::Waiting)
        );
    }

    #[test]
    fn an_unreachable_server_is_borne_from_its_first_failure() {
        let transient = Some(FailureClass::Transient);
        let mut patience = patience(15, None);
        assert_eq!(judge(&mut patience, transient, 100, 5), Verdict::Stay);
        assert_eq!(judge(&mut patience, transient, 105, 10), Verdict::Stay);
        assert_eq!(
            judge(&mut patience, transient, 115, 20),
            Verdict::Leave(Exit::Unreachable)
        );
    }

    #[test]
    fn an_answer_ends_the_trouble() {
        let transient = Some(FailureClass::Transient);
        let mut patience = patience(15, None);
        assert_eq!(judge(&mut patience, transient, 0, 15), Verdict::Stay);
        assert_eq!(judge(&mut patience, None, 15, 5), Verdict::Stay);
        assert_eq!(judge(&mut patience, transient, 20, 15), Verdict::Stay);
    }

    #[test]
    fn an_answer_not_to_be_believed_ends_the_command_at_once() {
        let mut patience = patience(15, None);
        for (class, exit) in [
            (FailureClass::Security, Exit::Untrusted),
            (FailureClass::Malformed, Exit::Unusable),
            (FailureClass::Refused, Exit::Refused),
        ] {
            assert_eq!(
                judge(&mut patience, Some(class), 0, 0),
                Verdict::Leave(exit)
            );
        }
    }
}
