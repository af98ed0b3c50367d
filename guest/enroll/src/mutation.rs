//! The faults that CMP clients are known for, and some that this one might have, to be put
//! into the machine on purpose: a checker proves something only when it catches them. Compiled out unless the feature
//! `mutations` is on, which no build of the component turns on.

/// One fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
#[cfg_attr(
    not(feature = "mutations"),
    expect(unreachable_pub, reason = "exported under the feature only")
)]
pub enum Mutation {
    /// A lost certConf after a delayed enrollment is followed by a poll.
    ConfirmationResumedWithPoll = 1,
    /// certConfirmed is taken for a refusal of the confirmation.
    CertConfirmedIsRefusal = 2,
    /// An error in answer to certConf throws the chain away.
    RefusedConfirmationDropsChain = 3,
    /// An error with status waiting is polled for with the certReqId of the request.
    ErrorWaitingPolledWithZero = 4,
    /// Every refusal invites a new transaction.
    EveryRefusalPasses = 5,
    /// No refusal does.
    NoRefusalPasses = 6,
    /// checkAfter is taken as it comes.
    CheckAfterUnbounded = 7,
    /// Of several CertResponses the first is taken.
    FirstOfManyResponses = 8,
    /// Of several pollRep entries the first is taken.
    FirstOfManyPollReps = 9,
    /// An unreadable certificate that nobody needs sinks the answer.
    UnreadableExtraCertSinks = 10,
    /// An error is believed without protection.
    UnprotectedErrorBelieved = 11,
    /// An error is believed under another transactionID and nonce.
    MisaddressedErrorBelieved = 12,
    /// An answer with pvno 3 is not understood.
    Pvno3Refused = 13,
    /// A response with status waiting is polled for with −1.
    ResponseWaitingPolledWithMinusOne = 14,
    /// Nobody hears what an unproven refusal says.
    UnprovenWordsUntold = 15,
    /// Nobody hears why an answer could not be read.
    UnreadableAnswerUntold = 16,
    /// What the CA has said is dropped when somebody else has written meanwhile.
    LoserDropsTheAnswer = 17,
    /// Somebody who was too late begins all the same.
    LateBeginBegins = 18,
    /// Noise among extraCerts makes a good certificate a bad one.
    NoiseRefuses = 19,
    /// A refusal of a repeated rr is a refusal, whatever it says.
    RevokedAlreadyIsRefusal = 20,
    /// What a failed rr may have done is kept quiet.
    RevocationInDoubtUntold = 21,
}

impl Mutation {
    /// All of them.
    #[cfg(feature = "mutations")]
    pub const ALL: [Self; 21] = [
        Self::ConfirmationResumedWithPoll,
        Self::CertConfirmedIsRefusal,
        Self::RefusedConfirmationDropsChain,
        Self::ErrorWaitingPolledWithZero,
        Self::EveryRefusalPasses,
        Self::NoRefusalPasses,
        Self::CheckAfterUnbounded,
        Self::FirstOfManyResponses,
        Self::FirstOfManyPollReps,
        Self::UnreadableExtraCertSinks,
        Self::UnprotectedErrorBelieved,
        Self::MisaddressedErrorBelieved,
        Self::Pvno3Refused,
        Self::ResponseWaitingPolledWithMinusOne,
        Self::UnprovenWordsUntold,
        Self::UnreadableAnswerUntold,
        Self::LoserDropsTheAnswer,
        Self::LateBeginBegins,
        Self::NoiseRefuses,
        Self::RevokedAlreadyIsRefusal,
        Self::RevocationInDoubtUntold,
    ];

    /// Whether the machine has this fault now.
    #[cfg(not(feature = "mutations"))]
    pub(crate) const fn is_on(self) -> bool {
        false
    }

    /// Whether the machine has this fault now.
    #[cfg(feature = "mutations")]
    pub(crate) fn is_on(self) -> bool {
        SELECTED.load(core::sync::atomic::Ordering::Relaxed) == self as u8
    }

    /// Puts one fault into every transaction of this process, or none.
    #[cfg(feature = "mutations")]
    pub fn select(mutation: Option<Self>) {
        let selected = mutation.map_or(0, |mutation| mutation as u8);
        SELECTED.store(selected, core::sync::atomic::Ordering::Relaxed);
    }
}

#[cfg(feature = "mutations")]
static SELECTED: core::sync::atomic::AtomicU8 = core::sync::atomic::AtomicU8::new(0);
