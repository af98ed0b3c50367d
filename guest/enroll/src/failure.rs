//! Why there is no certificate, who has to act, and what can be done.

use alloc::string::String;
use alloc::vec::Vec;

use abide_cmp::FailInfo;
use minicbor::{Decode, Encode};

use crate::enrollment::Operation;
use crate::mutation::Mutation;

/// Who has to act.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode)]
#[cbor(index_only)]
pub enum Fault {
    /// The CA, or something between it and us.
    #[n(0)]
    Peer,
    /// Whoever configured the enrollment.
    #[n(1)]
    Configuration,
    /// The host: store, keys, network.
    #[n(2)]
    Host,
    /// abide itself.
    #[n(3)]
    Internal,
}

/// What kind of failure it is, and with it when another try makes sense.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode)]
#[cbor(index_only)]
pub enum FailureClass {
    /// No connection, no answer, or a passing HTTP status: goes on by itself.
    #[n(0)]
    Transient,
    /// An authenticated refusal.
    #[n(1)]
    Refused,
    /// An answer that must not be believed.
    #[n(2)]
    Security,
    /// An answer that is no CMP answer to this request.
    #[n(3)]
    Malformed,
    /// Can never work as it is configured.
    #[n(4)]
    Permanent,
    /// The transaction's time or number of polls ran out.
    #[n(5)]
    Expired,
}

/// One failure.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct Failure {
    /// What kind it is.
    #[n(0)]
    pub class: FailureClass,
    /// Who has to act.
    #[n(1)]
    pub fault: Fault,
    /// One line: what happened, at which URL, in which phase.
    #[n(2)]
    pub reason: String,
    /// What the person can do.
    #[n(3)]
    pub advice: String,
    /// The names of the PKIFailureInfo bits that were received.
    #[n(4)]
    pub fail_info: Vec<String>,
    /// The CA may have issued a certificate that never arrived.
    #[n(5)]
    pub orphan: bool,
    /// The endpoint asks for less: HTTP 429 or 503, a passing status with `Retry-After`, or
    /// systemUnavail.
    #[n(6)]
    #[cbor(default)]
    pub throttled: bool,
}

impl Failure {
    /// Whether the CA's reason passes by itself, so that another transaction may be begun
    /// (RFC 9483, 3.6.4). Every other refusal wants a correction first.
    pub fn passes(&self) -> bool {
        let passing = FailInfo::TRANSACTION_ID_IN_USE
            .union(FailInfo::SYSTEM_UNAVAIL)
            .union(FailInfo::SYSTEM_FAILURE);
        let passes = passing
            .names()
            .any(|name| self.fail_info.iter().any(|received| received == name));
        let mutated = Mutation::EveryRefusalPasses.is_on();
        self.class == FailureClass::Refused
            && (passes || mutated)
            && !Mutation::NoRefusalPasses.is_on()
    }

    /// Says what is left open by a request that may have arrived. Of a certificate
    /// [`orphan`](Self::orphan) tells it.
    pub(crate) fn doubt(&mut self, operation: Operation) {
        if operation == Operation::Rr && !Mutation::RevocationInDoubtUntold.is_on() {
            self.advice = String::from(
                "the CA may have done it all the same: look at its CRL, or ask again, which does \
                 no harm",
            );
        }
    }

    pub(crate) fn new(
        class: FailureClass,
        fault: Fault,
        reason: impl Into<String>,
        advice: impl Into<String>,
    ) -> Self {
        Self {
            class,
            fault,
            reason: reason.into(),
            advice: advice.into(),
            fail_info: Vec::new(),
            orphan: false,
            throttled: false,
        }
    }
}
