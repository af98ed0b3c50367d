//! Instances of one component: made on demand, used by one call at a time, kept for the next.
//!
//! An instance goes back only after a call that returned. One that trapped, ran out of time or
//! memory, or whose caller went away in the middle of a call is dropped with its store.

use std::future::Future;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use tokio::sync::{OnceCell, Semaphore, SemaphorePermit};
use wasmtime::component::{Component, InstancePre, Linker};
use wasmtime::{PoolConcurrencyLimitError, ResourceLimiter, Store, Trap, UpdateDeadline};

use crate::engine::Shared;
use crate::error::{HostError, one_line};
use crate::limits;
use crate::ticker::Running;

/// A world of the package, as far as the pool has to know it.
pub(crate) trait World: 'static {
    /// For messages.
    const NAME: &'static str;
    /// Whether calls run on a fiber and can let others run in between.
    const YIELDS: bool;
    /// What the imports need.
    type State: Clone + Send + Sync;
    /// What a store holds for the imports.
    type Data: Send + 'static;
    /// The generated type for a component that is checked against the world.
    type Pre: Send + Sync;
    /// The generated type for an instance.
    type Bindings: Send + Sync;

    fn data(state: &Self::State) -> Self::Data;
    fn link(linker: &mut Linker<Guest<Self::Data>>) -> wasmtime::Result<()>;
    fn check(pre: InstancePre<Guest<Self::Data>>) -> wasmtime::Result<Self::Pre>;
    fn instantiate(
        pre: &Self::Pre,
        store: &mut Store<Guest<Self::Data>>,
    ) -> impl Future<Output = wasmtime::Result<Self::Bindings>> + Send;
}

/// What a store holds: the imports' state, and the meter.
pub(crate) struct Guest<D> {
    pub(crate) data: D,
    meter: Meter,
}

/// What the guest has used and what it may use.
struct Meter {
    memory_limit: usize,
    memory: usize,
    ticks_left: u64,
    verdict: Option<Verdict>,
}

/// Why the meter stopped a guest.
#[derive(Clone, Copy)]
enum Verdict {
    Deadline,
    Memory,
}

/// Instances of one component.
pub(crate) struct Pool<W: World> {
    shared: Arc<Shared>,
    component: Arc<Code>,
    state: W::State,
    checked: OnceCell<W::Pre>,
    idle: Mutex<Vec<Box<Instance<W>>>>,
    slots: Semaphore,
}

/// A component's bytes, and what became of them. Apart from the pool, because it is compiled to the
/// end even when the caller who began it has gone.
struct Code {
    bytes: Vec<u8>,
    compiled: OnceLock<Result<Component, HostError>>,
}

/// Boxed wherever it goes: it is large, and handed over twice per call.
pub(crate) struct Instance<W: World> {
    store: Store<Guest<W::Data>>,
    bindings: W::Bindings,
}

/// An instance for the time of one call.
pub(crate) struct Lease<'a, W: World> {
    pool: &'a Pool<W>,
    instance: Box<Instance<W>>,
    _running: Running<'a>,
    _slot: SemaphorePermit<'a>,
}

impl<W: World> Pool<W> {
    pub(crate) fn new(shared: Arc<Shared>, component: Vec<u8>, state: W::State) -> Self {
        let slots = Semaphore::new(shared.instances as usize);
        Pool {
            shared,
            component: Arc::new(Code {
                bytes: component,
                compiled: OnceLock::new(),
            }),
            state,
            checked: OnceCell::new(),
            idle: Mutex::new(Vec::new()),
            slots,
        }
    }

    /// Compiles the component, or takes it from the cache. The first call does it otherwise.
    pub(crate) async fn prepare(&self) -> Result<&W::Pre, HostError> {
        self.checked
            .get_or_try_init(|| async {
                let shared = self.shared.clone();
                let component = self.component.clone();
                let compiled = tokio::task::spawn_blocking(move || {
                    let compile = || {
                        Component::from_binary(&shared.engine, &component.bytes)
                            .map_err(|error| unusable::<W>(&format!("{error:#}")))
                    };
                    component.compiled.get_or_init(compile).clone()
                })
                .await
                .unwrap_or_else(|error| Err(unusable::<W>(&error.to_string())))?;
                let mut linker = Linker::new(&self.shared.engine);
                W::link(&mut linker)
                    .and_then(|()| linker.instantiate_pre(&compiled))
                    .and_then(W::check)
                    .map_err(|error| unusable::<W>(&format!("{error:#}")))
            })
            .await
    }

    /// An instance that is ready for a call.
    pub(crate) async fn lease(&self) -> Result<Lease<'_, W>, HostError> {
        let checked = match self.checked.get() {
            Some(checked) => checked,
            None => self.prepare().await?,
        };
        let slot = match self.slots.try_acquire() {
            Ok(slot) => slot,
            // Closed only when the pool is dropped, and then nobody waits.
            Err(_) => self
                .slots
                .acquire()
                .await
                .expect("the pool is not dropped while it is used"),
        };
        let running = self.running()?;
        let idle = lock(&self.idle).pop();
        let instance = match idle {
            Some(mut instance) => {
                self.wind_up(&mut instance.store);
                instance
            }
            None => self.instantiate(checked).await?,
        };
        Ok(Lease {
            pool: self,
            instance,
            _running: running,
            _slot: slot,
        })
    }

    /// An instance that nobody else uses, for as long as its owner wants it.
    pub(crate) async fn instance(&self) -> Result<Box<Instance<W>>, HostError> {
        let checked = self.prepare().await?;
        let _running = self.running()?;
        self.instantiate(checked).await
    }

    /// One call of an instance that is not leased. After a failure it is good for nothing.
    pub(crate) fn run<R>(
        &self,
        instance: &mut Instance<W>,
        call: impl FnOnce(&mut Store<Guest<W::Data>>, &W::Bindings) -> wasmtime::Result<R>,
    ) -> Result<R, HostError> {
        let _running = self.running()?;
        let Instance { store, bindings } = instance;
        self.wind_up(store);
        call(store, bindings).map_err(|error| self.judge(store.data(), error))
    }

    /// What a component is that does not keep to its own words.
    pub(crate) fn unusable(&self, reason: &str) -> HostError {
        unusable::<W>(reason)
    }

    /// Keeps the clock of deadlines running.
    fn running(&self) -> Result<Running<'_>, HostError> {
        self.shared.ticker.run().map_err(|error| HostError::Engine {
            reason: format!("no thread for the deadline of calls: {error}"),
        })
    }

    async fn instantiate(&self, checked: &W::Pre) -> Result<Box<Instance<W>>, HostError> {
        let mut store = self.store();
        self.wind_up(&mut store);
        match W::instantiate(checked, &mut store).await {
            Ok(bindings) => Ok(Box::new(Instance { store, bindings })),
            Err(error) if error.is::<Trap>() => Err(self.judge(store.data(), error)),
            // Nothing of the guest has run: it wants what this host does not give.
            Err(error) => Err(match self.judge(store.data(), error) {
                HostError::Trap { reason, .. } => unusable::<W>(&reason),
                error => error,
            }),
        }
    }

    fn store(&self) -> Store<Guest<W::Data>> {
        let mut store = Store::new(
            &self.shared.engine,
            Guest {
                data: W::data(&self.state),
                meter: Meter {
                    memory_limit: self.shared.memory_limit,
                    memory: 0,
                    ticks_left: 0,
                    verdict: None,
                },
            },
        );
        store.limiter(|guest| &mut guest.meter);
        store.epoch_deadline_callback(|mut store| Ok(store.data_mut().meter.tick(W::YIELDS)));
        store
    }

    /// Gives a store the whole budget of a call.
    fn wind_up(&self, store: &mut Store<Guest<W::Data>>) {
        store.set_epoch_deadline(1);
        store.data_mut().meter.ticks_left = ticks(self.shared.call_deadline);
    }

    /// What a failed call means.
    fn judge(&self, guest: &Guest<W::Data>, error: wasmtime::Error) -> HostError {
        let component = W::NAME;
        if let Some(Verdict::Memory) = guest.meter.verdict {
            return HostError::OutOfMemory {
                component,
                limit: self.shared.memory_limit,
            };
        }
        if let Some(Verdict::Deadline) = guest.meter.verdict {
            return HostError::Deadline {
                component,
                budget: self.shared.call_deadline,
            };
        }
        if error.is::<PoolConcurrencyLimitError>() {
            return HostError::Exhausted {
                component,
                instances: self.shared.slots,
            };
        }
        // The outer layers tell where in the machine code it happened, the trap tells what.
        let reason = match error.downcast_ref::<Trap>() {
            Some(trap) => trap.to_string(),
            None => format!("{error:#}"),
        };
        HostError::Trap {
            component,
            reason: one_line(&reason),
        }
    }
}

impl<W: World> Lease<'_, W> {
    /// What a call needs.
    pub(crate) fn parts(&mut self) -> (&mut Store<Guest<W::Data>>, &W::Bindings) {
        (&mut self.instance.store, &self.instance.bindings)
    }

    /// Ends the call. The instance is kept if it is still good.
    pub(crate) fn end<R>(self, result: wasmtime::Result<R>) -> Result<R, HostError> {
        let Lease { pool, instance, .. } = self;
        match result {
            Ok(result) => {
                // Linear memory never shrinks: an instance that once had to be large would keep
                // its pages, and come closer to its limit with every call.
                if instance.store.data().meter.memory <= pool.shared.memory_limit / 2 {
                    let mut idle = lock(&pool.idle);
                    if idle.len() < limits::IDLE_INSTANCES {
                        idle.push(instance);
                    }
                }
                Ok(result)
            }
            Err(error) => Err(pool.judge(instance.store.data(), error)),
        }
    }
}

impl Meter {
    fn tick(&mut self, yields: bool) -> UpdateDeadline {
        self.ticks_left = self.ticks_left.saturating_sub(1);
        if self.ticks_left == 0 {
            self.verdict = Some(Verdict::Deadline);
            UpdateDeadline::Interrupt
        } else if yields {
            // tokio's own way, which lets timers and sockets have their turn, not only other tasks.
            UpdateDeadline::YieldCustom(1, Box::pin(tokio::task::yield_now()))
        } else {
            UpdateDeadline::Continue(1)
        }
    }
}

impl ResourceLimiter for Meter {
    fn memory_growing(
        &mut self,
        _current: usize,
        desired: usize,
        _maximum: Option<usize>,
    ) -> wasmtime::Result<bool> {
        if desired > self.memory_limit {
            // Refusing would leave it to the guest's allocator how to fail: stopped here, the
            // caller learns why.
            self.verdict = Some(Verdict::Memory);
            wasmtime::bail!("memory limit reached");
        }
        self.memory = desired;
        Ok(true)
    }

    fn table_growing(
        &mut self,
        _current: usize,
        desired: usize,
        _maximum: Option<usize>,
    ) -> wasmtime::Result<bool> {
        Ok(desired <= limits::TABLE_ELEMENTS)
    }
}

/// Whole ticks in a duration; one more, because the first may come at once.
fn ticks(duration: Duration) -> u64 {
    let ticks = duration.as_nanos().div_ceil(limits::TICK.as_nanos());
    u64::try_from(ticks).unwrap_or(u64::MAX).saturating_add(1)
}

fn unusable<W: World>(reason: &str) -> HostError {
    HostError::Component {
        component: W::NAME,
        reason: one_line(reason),
    }
}

/// No code runs under the lock that could leave the list in a bad state.
fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
