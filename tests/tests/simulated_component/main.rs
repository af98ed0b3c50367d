//! The component in simulated worlds: `abide-sim` drives it in place of the native machine,
//! answers its imports, and kills it where it likes. The component must do what the native
//! machine does, import for import, so that what the simulator shows of the one holds for
//! the other.

mod convert;
mod machine;

use std::rc::Rc;

use abide_sim::fault::{Fault, Place};
use abide_sim::run::{Origin, report};
use abide_sim::scenario::Scenario;

use crate::machine::Component;

/// Seeds; `cargo xtask sim` runs them native by the hundred thousand.
const SEEDS: u64 = 300;

/// Lets a world run with both forms of the machine, and compares everything that happens.
fn same(origin: &Origin, component: &Rc<Component>) {
    let native = match origin.tell() {
        Ok(told) => told,
        Err(violation) => panic!("{}", report(origin, &violation)),
    };
    let machine = Rc::clone(component);
    let simulated = match origin.world(true).with(machine).tell() {
        Ok(told) => told,
        Err(violation) => panic!("in the component only: {violation:#?}"),
    };
    let differs = native
        .1
        .iter()
        .zip(&simulated.1)
        .find(|(left, right)| left != right);
    assert_eq!(differs, None, "native, component: {}", origin.command());
    assert_eq!(native.1.len(), simulated.1.len(), "{}", origin.command());
}

#[test]
fn the_component_does_what_the_native_machine_does_in_random_worlds() {
    let component = Rc::new(Component::new());
    for seed in 0..SEEDS {
        same(&Origin::Seed(seed), &component);
    }
}

#[test]
fn the_component_may_die_at_every_import_of_the_commonest_scenarios() {
    let component = Rc::new(Component::new());
    let mut worlds = 0;
    for scenario in Scenario::COMMONEST {
        let calm = Origin::Script(scenario, Vec::new()).world(false);
        let places = calm.with(component.clone()).survey().expect("a calm world");
        let imports = places.iter().filter(|(_, place)| *place == Place::Import);
        for &(at, _) in imports {
            for crash in [Fault::CrashBefore, Fault::CrashAfter] {
                same(&Origin::Script(scenario, vec![(at, crash)]), &component);
                worlds += 1;
            }
        }
    }
    // Each of the five has thirty imports at least.
    assert!(worlds >= 5 * 30 * 2, "{worlds} worlds");
}
