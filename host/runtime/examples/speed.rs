//! Prints what the sandbox costs: the size of the components, a fresh instance, an empty call.
//!
//! Build it with optimisation: `cargo run --release -p abide-host --example speed`.

use std::hint::black_box;
use std::sync::Arc;
use std::time::{Duration, Instant};

use abide_host::components::{ENROLLER, GATE};
use abide_host::wit::backoff::Exponential;
use abide_host::{
    AbideView, Ctx, FileKeys, HttpConfig, HttpNetwork, MemoryStorage, NoTelemetry, Runtime,
    RuntimeConfig, Services, add_to_linker,
};
use wasmtime::component::{Component, InstancePre, Linker};
use wasmtime::{Engine, Store};

type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

/// Samples of each figure; the median of them is printed.
const SAMPLES: usize = 51;

/// Instances in a sample: long enough for the clock, short enough to see a hiccup as one sample.
const INSTANCES: u32 = 200;

/// Calls in a sample.
const CALLS: u32 = 20_000;

/// A component whose only function takes, does and gives nothing: what the engine itself costs.
const EMPTY: &str = r#"(component
    (core module $m (func (export "nothing")))
    (core instance $i (instantiate $m))
    (func (export "nothing") (canon lift (core func $i "nothing"))))"#;

/// Nothing here runs for long; a store without a deadline would stop at once.
const EPOCHS: u64 = u64::MAX / 2;

struct Data(Ctx);

impl AbideView for Data {
    fn abide(&mut self) -> &mut Ctx {
        &mut self.0
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<()> {
    let runtime = Runtime::new(RuntimeConfig::default())?;
    let services = Services {
        storage: Arc::new(MemoryStorage::new()),
        network: Arc::new(HttpNetwork::new(HttpConfig::default())?),
        keys: Arc::new(FileKeys::new()),
        telemetry: Arc::new(NoTelemetry),
    };
    let engine = runtime.engine();

    for (name, bytes) in [("gate", GATE), ("enroller", ENROLLER)] {
        println!(
            "component {name}, native-speed: {:.0} KiB",
            bytes.len() as f64 / 1024.0
        );
    }

    let gate = Linker::<()>::new(engine).instantiate_pre(&Component::from_binary(engine, GATE)?)?;
    figure("fresh instance of gate", INSTANCES, || {
        let mut store = store(engine, ());
        gate.instantiate(&mut store).map(drop)
    })?;

    let mut linker = Linker::new(engine);
    add_to_linker(&mut linker)?;
    let enroller = linker.instantiate_pre(&Component::from_binary(engine, ENROLLER)?)?;
    let mut samples = Vec::new();
    for _ in 0..SAMPLES {
        let start = Instant::now();
        for _ in 0..INSTANCES {
            let mut store = store(engine, Data(Ctx::new(services.clone())));
            enroller.instantiate_async(&mut store).await?;
        }
        samples.push(start.elapsed());
    }
    print("fresh instance of enroller", INSTANCES, samples);

    empty_call(engine)?;
    smallest_call(engine, &gate)?;

    let pooled = runtime.gate();
    pooled.prepare().await?;
    let mut samples = Vec::new();
    for _ in 0..SAMPLES {
        let start = Instant::now();
        for _ in 0..CALLS {
            black_box(pooled.default_policy().await?);
        }
        samples.push(start.elapsed());
    }
    print("the same through the pool", CALLS, samples);
    Ok(())
}

fn empty_call(engine: &Engine) -> Result<()> {
    let component = Component::new(engine, wat::parse_str(EMPTY)?)?;
    let mut store = store(engine, ());
    let instance = Linker::new(engine).instantiate(&mut store, &component)?;
    let function = instance.get_typed_func::<(), ()>(&mut store, "nothing")?;
    figure("empty call", CALLS, || function.call(&mut store, ()))
}

/// `default-policy` takes nothing and computes nothing, but gives a record.
fn smallest_call(engine: &Engine, gate: &InstancePre<()>) -> Result<()> {
    let mut store = store(engine, ());
    let instance = gate.instantiate(&mut store)?;
    let interface = instance
        .get_export_index(&mut store, None, "abide:cmp/backoff@0.1.0")
        .ok_or("gate does not export backoff")?;
    let function = instance
        .get_export_index(&mut store, Some(&interface), "default-policy")
        .ok_or("backoff has no default-policy")?;
    let function = instance.get_typed_func::<(), (Exponential,)>(&mut store, function)?;
    figure("smallest call of gate (a record out)", CALLS, || {
        function.call(&mut store, ()).map(|policy| {
            black_box(policy);
        })
    })
}

fn store<T: 'static>(engine: &Engine, data: T) -> Store<T> {
    let mut store = Store::new(engine, data);
    store.set_epoch_deadline(EPOCHS);
    store
}

fn figure(
    name: &str,
    repetitions: u32,
    mut action: impl FnMut() -> wasmtime::Result<()>,
) -> Result<()> {
    let mut samples = Vec::new();
    for _ in 0..SAMPLES {
        let start = Instant::now();
        for _ in 0..repetitions {
            action()?;
        }
        samples.push(start.elapsed());
    }
    print(name, repetitions, samples);
    Ok(())
}

fn print(name: &str, repetitions: u32, mut samples: Vec<Duration>) {
    samples.sort_unstable();
    let nanos = |sample: Duration| sample.as_nanos() / u128::from(repetitions);
    println!(
        "{name}: {} ns (fastest {} ns)",
        nanos(samples[SAMPLES / 2]),
        nanos(samples[0])
    );
}
