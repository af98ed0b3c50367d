//! The short version of `cargo xtask sim`: what every change must pass.

use std::thread::available_parallelism;

use abide_sim::fault::Fault;
use abide_sim::run::{Depth, Origin, Summary, exhaustive, report, seeds};
use abide_sim::scenario::Scenario;

fn threads() -> usize {
    available_parallelism().map_or(1, usize::from)
}

fn breaks_nothing(summary: &Summary, least: u64) {
    println!("{}", summary.line());
    if let Some((origin, violation)) = summary.violations.first() {
        panic!("{}", report(origin, violation));
    }
    assert!(summary.worlds >= least, "{} worlds", summary.worlds);
}

#[test]
fn random_worlds_break_no_rule() {
    let summary = seeds(0, 5_000, threads(), &|_| ());
    breaks_nothing(&summary, 5_000);
    // Not because nothing happens in them.
    assert!(summary.tally.faults > summary.worlds);
    assert!(summary.tally.orphans > 0 && summary.tally.failed > 0);
    assert!(summary.tally.served > summary.worlds * 9 / 10);
}

#[test]
fn a_crash_at_every_import_of_every_scenario_breaks_no_rule() {
    // 192 scenarios, each with thirty imports at least, and two crashes at each.
    breaks_nothing(
        &exhaustive(Depth::Crashes, threads(), &|_| ()),
        192 * 30 * 2,
    );
}

#[test]
fn every_fault_everywhere_in_the_commonest_scenarios_breaks_no_rule() {
    breaks_nothing(&exhaustive(Depth::CommonFaults, threads(), &|_| ()), 900);
}

#[test]
fn the_same_seed_is_the_same_world() {
    for seed in 0..50 {
        let [first, second] = [(); 2].map(|()| Origin::Seed(seed).tell().expect("no violation"));
        assert_eq!(first.1, second.1, "seed {seed}");
        assert!(first.1.len() > 20, "seed {seed}");
    }
}

#[test]
fn every_fault_is_found_by_its_name_and_strikes_somewhere() {
    for &fault in Fault::ALL {
        assert_eq!(Fault::named(fault.name()), Some(fault));
        let strikes = Scenario::COMMONEST.iter().any(|&scenario| {
            (0..80).any(|at| {
                let origin = Origin::Script(scenario, vec![(at, fault)]);
                origin.run(false).is_ok_and(|tally| tally.faults == 1)
            })
        });
        assert!(strikes, "{} strikes nowhere", fault.name());
    }
    let names = Scenario::all();
    assert_eq!(names.len(), 192);
    for scenario in names {
        assert_eq!(Scenario::named(&scenario.name()), Some(scenario));
    }
}
