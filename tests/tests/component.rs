//! The security claim, read from the files themselves: what the components can reach.

use abide_host::components::{ENROLLER, GATE};
use wit_parser::decoding::{DecodedWasm, decode};
use wit_parser::{Resolve, WorldItem, WorldKey};

/// The names of what a component imports and exports, in order.
fn surface(component: &[u8]) -> (Vec<String>, Vec<String>) {
    let DecodedWasm::Component(resolve, world) = decode(component).expect("a component") else {
        panic!("a WIT package in place of a component");
    };
    let world = &resolve.worlds[world];
    let names = |items: Vec<(&WorldKey, &WorldItem)>| {
        let mut names: Vec<_> = items
            .iter()
            .map(|(key, item)| name(&resolve, key, item))
            .collect();
        names.sort();
        names
    };
    (
        names(world.imports.iter().collect()),
        names(world.exports.iter().collect()),
    )
}

fn name(resolve: &Resolve, key: &WorldKey, item: &WorldItem) -> String {
    match item {
        WorldItem::Interface { .. } => resolve.name_world_key(key),
        // Anything that is no interface would be a way around the list below.
        other => format!("{other:?}"),
    }
}

#[test]
fn the_gate_imports_nothing() {
    let (imports, exports) = surface(GATE);
    assert_eq!(imports, [""; 0]);
    assert_eq!(
        exports,
        ["abide:cmp/backoff@0.1.0", "abide:cmp/message@0.1.0"]
    );
}

#[test]
fn the_enroller_imports_six_interfaces_and_no_more() {
    let (imports, exports) = surface(ENROLLER);
    assert_eq!(
        imports,
        [
            "abide:cmp/keys@0.1.0",
            "abide:cmp/network@0.1.0",
            "abide:cmp/storage@0.1.0",
            "abide:cmp/telemetry@0.1.0",
            "wasi:clocks/wall-clock@0.2.3",
            "wasi:random/random@0.2.3",
        ]
    );
    assert_eq!(
        exports,
        ["abide:cmp/backoff@0.1.0", "abide:cmp/transactions@0.1.0"]
    );
}

#[tokio::test]
async fn the_calculator_in_the_sandbox_is_the_native_one() {
    use abide_host::wit::backoff::Exponential;
    let hour = 3_600_000;
    let runtime =
        abide_host::Runtime::new(abide_host::RuntimeConfig::default()).expect("a runtime");
    let gate = runtime.gate();
    // Base, factor in percent, cap, attempts, delay: by hand, in milliseconds.
    let table: [(u64, u32, u64, Option<i64>, u64); 9] = [
        (hour, 200, 32 * hour, None, hour),
        (hour, 200, 32 * hour, Some(-7), hour),
        (hour, 200, 32 * hour, Some(0), hour),
        (hour, 200, 32 * hour, Some(3), 4 * hour),
        (hour, 200, 32 * hour, Some(6), 32 * hour),
        (hour, 200, 32 * hour, Some(7), 32 * hour),
        (hour, 200, 32 * hour, Some(i64::from(u32::MAX)), 32 * hour),
        (1, 200, 1 << 40, Some(36), 1 << 35),
        (1, 200, 1 << 40, Some(64), 1 << 40),
    ];
    for (base_ms, factor_percent, cap_ms, attempts, expected) in table {
        let policy = Exponential {
            base_ms,
            factor_percent,
            cap_ms,
        };
        let delay = gate.delay(policy, attempts).await.expect("no trap");
        assert_eq!(delay.ok(), Some(expected), "{attempts:?}");
    }
}
