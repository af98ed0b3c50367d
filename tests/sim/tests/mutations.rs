//! A checker that catches nothing proves nothing: each fault that CMP clients are known
//! for is put into the machine, and a rule must break.

use abide_enroll::Mutation;
use abide_sim::checker::Invariant;
use abide_sim::run::{self, Origin};

/// Seeds in which the machine without a fault breaks no rule, and with one some.
const SEEDS: u64 = 3_000;

/// Which rules break, and the first world in which one does.
fn caught(mutation: Mutation) -> Option<(Origin, Invariant)> {
    Mutation::select(Some(mutation));
    let found = (0..SEEDS).map(Origin::Seed).find_map(|origin| {
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

/// One test, because a mutation is in every machine of this process.
#[test]
fn every_known_fault_of_other_clients_breaks_a_rule() {
    use Invariant::{
        BoundedWait, ChainKept, InTurn, NoHammering, NoSecondTry, OnlyProof, TakesTheAnswer,
    };
    for mutation in Mutation::ALL {
        // What the fault would do to somebody, in the words of the checker.
        let expected: &[Invariant] = match mutation {
            Mutation::ConfirmationResumedWithPoll => &[OnlyProof, InTurn],
            Mutation::CertConfirmedIsRefusal => &[TakesTheAnswer],
            Mutation::RefusedConfirmationDropsChain => &[ChainKept],
            Mutation::ErrorWaitingPolledWithZero => &[TakesTheAnswer, InTurn],
            Mutation::EveryRefusalPasses | Mutation::NoRefusalPasses => &[NoSecondTry],
            Mutation::CheckAfterUnbounded => &[NoHammering, BoundedWait],
            Mutation::FirstOfManyResponses
            | Mutation::UnprotectedErrorBelieved
            | Mutation::MisaddressedErrorBelieved => &[OnlyProof],
            Mutation::FirstOfManyPollReps => &[NoHammering, OnlyProof],
            Mutation::UnreadableExtraCertSinks | Mutation::Pvno3Refused => &[TakesTheAnswer],
        };
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
