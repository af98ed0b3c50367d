//! How the program ends: its exit codes, and the one line that explains them.

use std::fmt;

use abide_host::wit::transactions::{Failure, FailureClass, Fault};
use abide_service::input::{Fault as Whose, InputError};

/// The exit codes, as the help of every command prints them.
pub(crate) const HELP: &str = "\
Exit codes:
  0  done: the certificate is issued and written, revoked, or the answer is there
  1  fault of this host: the store, a file that cannot be written, abide itself
  2  bad usage, or an input file that cannot be used
  3  the CA refused, or the transaction failed or ran out of time
  4  the server cannot be reached; the transaction stays open
  5  the answer is not trusted: protection, signer, secret or certificate
  6  still waiting: the transaction is open, go on with --resume
  7  the server's answer is no usable CMP: HTML, a redirect, not DER, too large";

/// An exit code with its meaning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Exit {
    /// What was asked for is done.
    Done = 0,
    /// The store, a file, or abide itself.
    Host = 1,
    /// The command line or an input file; the code clap uses too.
    Usage = 2,
    /// An authenticated refusal, or a transaction that has ended without a certificate.
    Refused = 3,
    /// No connection, no answer, or a passing fault of the server.
    Unreachable = 4,
    /// An answer that must not be believed.
    Untrusted = 5,
    /// The transaction is open and nothing is wrong.
    Waiting = 6,
    /// An answer that is no CMP answer.
    Unusable = 7,
}

impl Exit {
    /// The number the shell sees.
    pub(crate) fn code(self) -> u8 {
        self as u8
    }

    /// What a failure of a transaction means for the exit code.
    pub(crate) fn of(failure: &Failure) -> Self {
        match (failure.class, failure.fault) {
            (FailureClass::Security, _) => Self::Untrusted,
            (FailureClass::Malformed, _) => Self::Unusable,
            (FailureClass::Transient, _) => Self::Unreachable,
            (FailureClass::Permanent, Fault::Configuration) => Self::Usage,
            (FailureClass::Permanent, Fault::Host | Fault::Internal) => Self::Host,
            (FailureClass::Permanent, Fault::Peer)
            | (FailureClass::Refused | FailureClass::Expired, _) => Self::Refused,
        }
    }
}

/// Why a command ends early: one line for people and the code for scripts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Stop {
    pub(crate) exit: Exit,
    pub(crate) message: String,
}

impl Stop {
    /// The command line or an input file is at fault.
    pub(crate) fn usage(message: impl Into<String>) -> Self {
        Self {
            exit: Exit::Usage,
            message: message.into(),
        }
    }

    /// This host is at fault.
    pub(crate) fn host(message: impl Into<String>) -> Self {
        Self {
            exit: Exit::Host,
            message: message.into(),
        }
    }
}

impl From<InputError> for Stop {
    fn from(error: InputError) -> Self {
        match error.fault {
            Whose::Given => Stop::usage(error.message),
            Whose::Host => Stop::host(error.message),
        }
    }
}

impl fmt::Display for Stop {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn failure(class: FailureClass, fault: Fault) -> Failure {
        Failure {
            class,
            fault,
            reason: String::new(),
            advice: String::new(),
            fail_info: Vec::new(),
            orphan: false,
            throttled: false,
        }
    }

    #[test]
    fn every_class_has_its_code() {
        let cases = [
            (FailureClass::Transient, Fault::Peer, 4),
            (FailureClass::Refused, Fault::Peer, 3),
            (FailureClass::Expired, Fault::Peer, 3),
            (FailureClass::Permanent, Fault::Peer, 3),
            (FailureClass::Permanent, Fault::Configuration, 2),
            (FailureClass::Permanent, Fault::Host, 1),
            (FailureClass::Permanent, Fault::Internal, 1),
            (FailureClass::Security, Fault::Peer, 5),
            (FailureClass::Security, Fault::Configuration, 5),
            (FailureClass::Malformed, Fault::Peer, 7),
        ];
        for (class, fault, code) in cases {
            assert_eq!(
                Exit::of(&failure(class, fault)).code(),
                code,
                "{class:?} {fault:?}"
            );
        }
    }

    #[test]
    fn the_help_explains_every_code() {
        for exit in [
            Exit::Done,
            Exit::Host,
            Exit::Usage,
            Exit::Refused,
            Exit::Unreachable,
            Exit::Untrusted,
            Exit::Waiting,
            Exit::Unusable,
        ] {
            assert!(HELP.contains(&format!("\n  {}  ", exit.code())), "{exit:?}");
        }
    }
}
