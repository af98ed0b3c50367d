//! Several machines at one order.

use abide_sim::World;
use abide_sim::fault::{Fault, Place, Plan};
use abide_sim::run::Origin;
use abide_sim::scenario::{Scenario, Setting};

const NO_REPEATS: &str = "ir/secret/explicit/at-once/no-repeats";

fn scenario(name: &str) -> Scenario {
    Scenario::named(name).expect("a scenario")
}

/// Where faults can strike in a calm world.
fn places(scenario: Scenario) -> Vec<(u64, Place)> {
    let calm = World::new(
        &Setting::plain(scenario),
        Plan::Script(Vec::new()),
        fastrand::Rng::with_seed(0),
        false,
    );
    calm.survey().expect("a calm world")
}

/// While one machine has the CA's answer in its hands, another sends the request again, in
/// vain. The CA does not say twice what it said: the first machine must store it although
/// the second has written meanwhile.
#[test]
fn who_is_overtaken_by_a_repetition_still_stores_the_answer() {
    let scenario = scenario(NO_REPEATS);
    let places = places(scenario);
    let (sent, _) = places
        .iter()
        .find(|(_, place)| *place == Place::Exchange)
        .expect("the request");
    let mut met = 0;
    for second in sent + 2..sent + 40 {
        let faults = vec![
            (sent + 1, Fault::AnotherMachine),
            (second, Fault::RequestLost),
        ];
        let tally = Origin::Script(scenario, faults)
            .run(false)
            .expect("no violation");
        if tally.faults == 2 && tally.orphans == 0 {
            met += 1;
            assert_eq!(tally.served, 1, "at {second}: {tally:?}");
        }
    }
    assert!(met > 0, "the repetition was never lost");
}

/// Two machines decide upon the same: one begins, at whatever import the other comes in.
#[test]
fn whoever_begins_after_what_is_no_longer_the_last_begins_nothing() {
    for name in [
        NO_REPEATS,
        "p10cr/secret/explicit/at-once/repeats",
        "rr/certificate/no-conf/at-once/repeats",
    ] {
        let scenario = scenario(name);
        for (at, place) in places(scenario) {
            if place == Place::Import {
                let origin = Origin::Script(scenario, vec![(at, Fault::AnotherMachine)]);
                let tally = origin.run(false).expect("no violation");
                assert!(tally.served + tally.failed == 1, "{tally:?}");
            }
        }
    }
}
