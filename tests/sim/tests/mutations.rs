//! A checker that catches nothing proves nothing: each fault that CMP clients are known
//! for is put into the machine, and a rule must break.

use abide_enroll::Mutation;
use abide_sim::checker::Invariant;
use abide_sim::fault::Fault;
use abide_sim::run::{self, Origin};
use abide_sim::scenario::Scenario;

/// Seeds in which the machine without a fault breaks no rule, and with one some.
const SEEDS: u64 = 3_000;
/// Imports of the longest of the commonest scenarios.
const IMPORTS: u64 = 100;

/// Another machine goes through a whole call at one import of the first.
fn races() -> impl Iterator<Item = Origin> {
    Scenario::COMMONEST.iter().flat_map(|&scenario| {
        (0..IMPORTS).map(move |at| Origin::Script(scenario, vec![(at, Fault::AnotherMachine)]))
    })
}

/// Which rules break, and the first world in which one does.
fn caught(mutation: Mutation) -> Option<(Origin, Invariant)> {
    Mutation::select(Some(mutation));
    let found = (0..SEEDS)
        .map(Origin::Seed)
        .chain(races())
        .find_map(|origin| {
            let violation = origin.run(false).err()?;
            let again = origin.run(true).expect_err("the same world once more");
            assert_eq!(again.step, violation.step, "it replays to the same step");
            assert_eq!(again.breach, violation.breach);
            assert!(run::report(&origin, &violation).contains(&origin.command()));
            Some((origin, violation.breach.invariant))
        });
    Mutation::select(None);
    found
}

/// The ten faults that other clients are known for, and what puts each into this machine.
const KNOWN: [(&str, &[Mutation]); 10] = {
    use Mutation::*;
    [
        (
            "after a delayed enrollment, a crash around certConf resumes with certConf",
            &[ConfirmationResumedWithPoll],
        ),
        (
            "certConfirmed in answer to a repeated certConf is success",
            &[CertConfirmedIsRefusal],
        ),
        (
            "a permanent error while confirming discards no validated chain",
            &[RefusedConfirmationDropsChain],
        ),
        (
            "error(waiting) is polled for with -1, a waiting response with the id it carried",
            &[
                ErrorWaitingPolledWithZero,
                ResponseWaitingPolledWithMinusOne,
            ],
        ),
        (
            "systemUnavail, systemFailure and transactionIdInUse are followed by a new \
             transaction, the others are not",
            &[EveryRefusalPasses, NoRefusalPasses],
        ),
        (
            "no checkAfter makes a busy loop or an age",
            &[CheckAfterUnbounded],
        ),
        (
            "a cp with two CertResponses and a pollRep with two entries change nothing",
            &[FirstOfManyResponses, FirstOfManyPollReps],
        ),
        (
            "one unreadable certificate that is not needed does not sink the answer",
            &[UnreadableExtraCertSinks],
        ),
        (
            "an unprotected or mis-addressed error changes no state, and its text is told",
            &[
                UnprotectedErrorBelieved,
                MisaddressedErrorBelieved,
                UnprovenWordsUntold,
            ],
        ),
        (
            "pvno 3 is understood, and pvno 1 is told",
            &[Pvno3Refused, UnreadableAnswerUntold],
        ),
    ]
};

/// Faults that this machine might have besides.
const OTHERS: [Mutation; 5] = [
    Mutation::LoserDropsTheAnswer,
    Mutation::LateBeginBegins,
    Mutation::NoiseRefuses,
    Mutation::RevokedAlreadyIsRefusal,
    Mutation::RevocationInDoubtUntold,
];

#[test]
fn each_of_the_ten_faults_has_its_mutation() {
    let ten = KNOWN.iter().flat_map(|(_, mutations)| mutations.iter());
    let listed: Vec<Mutation> = ten.chain(&OTHERS).copied().collect();
    for mutation in Mutation::ALL {
        let times = listed.iter().filter(|one| **one == mutation).count();
        assert_eq!(times, 1, "{mutation:?}");
    }
    assert!(KNOWN.iter().all(|(_, mutations)| !mutations.is_empty()));
}

/// One test, because a mutation is in every machine of this process.
#[test]
fn every_fault_that_is_put_into_the_machine_breaks_a_rule() {
    for mutation in Mutation::ALL {
        let expected = rules_against(mutation);
        let Some((origin, broken)) = caught(mutation) else {
            panic!("{mutation:?} went unnoticed in {SEEDS} worlds");
        };
        println!("{mutation:?}: {} by {origin:?}", broken.name());
        assert!(
            expected.contains(&broken),
            "{mutation:?} broke {} in {origin:?}",
            broken.name()
        );
    }
    for seed in 0..SEEDS / 10 {
        let ended = Origin::Seed(seed).run(false);
        assert!(ended.is_ok(), "without a fault: {ended:?}");
    }
}

/// What a fault would do to somebody, in the words of the checker.
fn rules_against(mutation: Mutation) -> &'static [Invariant] {
    use Invariant::*;
    match mutation {
        Mutation::ConfirmationResumedWithPoll => &[OnlyProof, InTurn],
        Mutation::CertConfirmedIsRefusal => &[TakesTheAnswer],
        Mutation::RefusedConfirmationDropsChain => &[ChainKept],
        Mutation::ErrorWaitingPolledWithZero | Mutation::ResponseWaitingPolledWithMinusOne => {
            &[TakesTheAnswer, InTurn]
        }
        Mutation::EveryRefusalPasses | Mutation::NoRefusalPasses => &[NoSecondTry],
        Mutation::CheckAfterUnbounded => &[NoHammering, BoundedWait],
        Mutation::FirstOfManyResponses
        | Mutation::UnprotectedErrorBelieved
        | Mutation::MisaddressedErrorBelieved => &[OnlyProof],
        Mutation::FirstOfManyPollReps => &[NoHammering, OnlyProof],
        Mutation::UnreadableExtraCertSinks
        | Mutation::Pvno3Refused
        | Mutation::NoiseRefuses
        | Mutation::RevokedAlreadyIsRefusal => &[TakesTheAnswer],
        Mutation::UnprovenWordsUntold | Mutation::UnreadableAnswerUntold => &[TellsTheOperator],
        Mutation::LoserDropsTheAnswer => &[TakesTheAnswer],
        Mutation::LateBeginBegins => &[OneEach],
        Mutation::RevocationInDoubtUntold => &[RevocationsAgree],
    }
}
