//! The WebAssembly engine and what it is configured with.

use std::fs;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use wasmtime::{
    Cache, CacheConfig, Config, Engine, InstanceAllocationStrategy, PoolingAllocationConfig,
};

use crate::components;
use crate::error::{HostError, Warning};
use crate::limits;
use crate::ticker::Ticker;
use crate::{Enroller, Gate, Keys, Services, Verifier};

/// How components are run.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct RuntimeConfig {
    /// A directory for compiled code. It is created when it is missing. Whoever can write there
    /// decides what this process executes, so it is used only when nobody else can.
    pub cache: Option<PathBuf>,
    /// Linear memory of one instance in bytes.
    pub memory_limit: usize,
    /// Processor time of one call. Waiting for the store, the network or a key does not count.
    pub call_deadline: Duration,
    /// Calls of one component that run at the same time; more wait for their turn.
    pub instances: u32,
}

impl Default for RuntimeConfig {
    fn default() -> Self {
        RuntimeConfig {
            cache: None,
            memory_limit: limits::MEMORY,
            call_deadline: limits::CALL_DEADLINE,
            instances: limits::INSTANCES,
        }
    }
}

/// The engine. One per process is enough; clones share it.
#[derive(Clone)]
pub struct Runtime {
    shared: Arc<Shared>,
    warnings: Arc<[Warning]>,
}

/// What every pool of instances needs of the runtime.
pub(crate) struct Shared {
    pub(crate) engine: Engine,
    pub(crate) ticker: Ticker,
    pub(crate) memory_limit: usize,
    pub(crate) call_deadline: Duration,
    pub(crate) instances: u32,
    /// Instances the engine has room for.
    pub(crate) slots: u32,
}

impl Runtime {
    /// Sets up the engine. Nothing is compiled yet.
    pub fn new(config: RuntimeConfig) -> Result<Runtime, HostError> {
        let mut warnings = Vec::new();
        let cache = config
            .cache
            .as_deref()
            .and_then(|directory| match open_cache(directory) {
                Ok(cache) => Some(cache),
                Err(reason) => {
                    warnings.push(Warning::CacheUnusable {
                        directory: directory.to_owned(),
                        reason,
                    });
                    None
                }
            });
        let instances = config.instances.max(1);
        // Three components, each with its own instances, and those that stay.
        let slots = instances
            .saturating_mul(3)
            .saturating_add(limits::RESIDENT_INSTANCES);
        let mut engine_config = engine_config();
        engine_config.cache(cache);
        engine_config.allocation_strategy(InstanceAllocationStrategy::Pooling(pooling(
            slots,
            config.memory_limit,
        )));
        let engine = match Engine::new(&engine_config) {
            Ok(engine) => engine,
            // The pool reserves a large range of addresses, which a limit on the process or the
            // machine may deny. Everything works without it.
            Err(reason) => {
                engine_config.allocation_strategy(InstanceAllocationStrategy::OnDemand);
                let engine = Engine::new(&engine_config).map_err(|error| HostError::Engine {
                    reason: format!("{error:#}"),
                })?;
                warnings.push(Warning::PoolUnavailable {
                    reason: format!("{reason:#}"),
                });
                engine
            }
        };
        Ok(Runtime {
            shared: Arc::new(Shared {
                ticker: Ticker::new(&engine),
                engine,
                memory_limit: config.memory_limit,
                call_deadline: config.call_deadline,
                instances,
                slots,
            }),
            warnings: warnings.into(),
        })
    }

    /// What works less well than it could, for whoever reads the log.
    pub fn warnings(&self) -> &[Warning] {
        &self.warnings
    }

    /// The component for messages and policies. The first call compiles it or takes it from the
    /// cache.
    pub fn gate(&self) -> Gate {
        self.gate_from(components::GATE.to_vec())
    }

    /// The same world from other bytes, such as the portable build.
    pub fn gate_from(&self, component: Vec<u8>) -> Gate {
        Gate::new(self.shared.clone(), component)
    }

    /// The component for whole enrollments. The first call compiles it or takes it from the
    /// cache.
    pub fn enroller(&self, services: Services) -> Enroller {
        self.enroller_from(components::ENROLLER.to_vec(), services)
    }

    /// The same world from other bytes, such as the portable build.
    pub fn enroller_from(&self, component: Vec<u8>, services: Services) -> Enroller {
        Enroller::new(self.shared.clone(), component, services)
    }

    /// A component of the world `verifier`, such as `cargo xtask component` builds; this crate
    /// carries none. The first call compiles it or takes it from the cache.
    pub fn verifier_from(&self, component: Vec<u8>, keys: Arc<dyn Keys>) -> Verifier {
        Verifier::new(self.shared.clone(), component, keys)
    }

    /// For embedders with linkers of their own.
    pub fn engine(&self) -> &Engine {
        &self.shared.engine
    }
}

impl std::fmt::Debug for Runtime {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Runtime")
            .field("memory_limit", &self.shared.memory_limit)
            .field("call_deadline", &self.shared.call_deadline)
            .field("instances", &self.shared.instances)
            .finish_non_exhaustive()
    }
}

fn engine_config() -> Config {
    let mut config = Config::new();
    config.concurrency_support(false);
    // The native-speed build of the component is made of it: 64-bit multiplications with all of
    // their result are what elliptic curves spend their time with.
    config.wasm_wide_arithmetic(true);
    config.epoch_interruption(true);
    // Both are for debuggers; without them there is less to read from the cache.
    config.generate_address_map(false);
    config.native_unwind_info(false);
    config
}

fn pooling(slots: u32, memory_limit: usize) -> PoolingAllocationConfig {
    let mut pool = PoolingAllocationConfig::default();
    pool.total_component_instances(slots)
        .total_core_instances(slots.saturating_mul(limits::CORE_INSTANCES_PER_COMPONENT))
        .total_memories(slots)
        .total_tables(slots.saturating_mul(limits::TABLES_PER_COMPONENT))
        .total_stacks(slots)
        .max_core_instances_per_component(limits::CORE_INSTANCES_PER_COMPONENT)
        .max_memories_per_component(1)
        .table_elements(limits::TABLE_ELEMENTS)
        .max_tables_per_component(limits::TABLES_PER_COMPONENT)
        .max_memory_size(memory_limit);
    pool
}

/// Opens the cache, or says in half a sentence about the directory why it stays closed.
fn open_cache(directory: &Path) -> Result<Cache, String> {
    let directory = std::path::absolute(directory).map_err(|e| format!("cannot be used: {e}"))?;
    fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(&directory)
        .map_err(|e| format!("cannot be created: {e}"))?;
    // The file tells both whether the directory can be written and who is writing.
    let probe = directory.join(format!("probe-{}", std::process::id()));
    let uid = fs::write(&probe, []).and_then(|()| fs::metadata(&probe));
    let uid = uid.map_err(|e| format!("cannot be written: {e}"))?.uid();
    fs::remove_file(&probe).map_err(|e| format!("cannot be written: {e}"))?;
    let about = fs::metadata(&directory).map_err(|e| format!("cannot be read: {e}"))?;
    if about.uid() != uid || about.mode() & 0o022 != 0 {
        return Err("can be written by others, who could plant code there".to_owned());
    }
    let mut config = CacheConfig::new();
    config.with_directory(&directory);
    Cache::new(config).map_err(|e| format!("cannot be used: {e:#}"))
}
