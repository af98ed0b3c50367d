//! The clock that guests are measured with.
//!
//! A guest's budget counts ticks of the engine's epoch that pass while it computes; one that waits
//! for the network spends at most one. The thread that ticks is started by the first call and
//! sleeps when there is nothing to measure.

use std::io;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::thread::{self, Thread};

use wasmtime::{Engine, EngineWeak};

use crate::limits;

/// Ticks an engine's epoch while calls are running.
pub(crate) struct Ticker {
    shared: Arc<Shared>,
    thread: OnceLock<Thread>,
    starting: Mutex<()>,
}

struct Shared {
    calls: AtomicUsize,
    asleep: AtomicBool,
    stopped: AtomicBool,
    engine: EngineWeak,
}

/// A call that is being measured.
pub(crate) struct Running<'a>(&'a Shared);

impl Ticker {
    pub(crate) fn new(engine: &Engine) -> Self {
        Ticker {
            shared: Arc::new(Shared {
                calls: AtomicUsize::new(0),
                asleep: AtomicBool::new(false),
                stopped: AtomicBool::new(false),
                engine: engine.weak(),
            }),
            thread: OnceLock::new(),
            starting: Mutex::new(()),
        }
    }

    /// Measures until the returned value is dropped. Without a thread there is no deadline, and
    /// without a deadline no guest may run.
    pub(crate) fn run(&self) -> io::Result<Running<'_>> {
        let thread = match self.thread.get() {
            Some(thread) => thread,
            None => self.start()?,
        };
        self.shared.calls.fetch_add(1, Ordering::SeqCst);
        if self.shared.asleep.load(Ordering::SeqCst) {
            thread.unpark();
        }
        Ok(Running(&self.shared))
    }

    fn start(&self) -> io::Result<&Thread> {
        let _alone = self.starting.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(thread) = self.thread.get() {
            return Ok(thread);
        }
        let shared = self.shared.clone();
        let handle = thread::Builder::new()
            .name("abide-ticker".to_owned())
            .spawn(move || shared.tick())?;
        Ok(self.thread.get_or_init(|| handle.thread().clone()))
    }
}

impl Drop for Ticker {
    fn drop(&mut self) {
        self.shared.stopped.store(true, Ordering::SeqCst);
        if let Some(thread) = self.thread.get() {
            thread.unpark();
        }
    }
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        self.0.calls.fetch_sub(1, Ordering::SeqCst);
    }
}

impl Shared {
    fn tick(&self) {
        let mut idle = 0;
        while !self.stopped.load(Ordering::SeqCst) {
            thread::sleep(limits::TICK);
            if let Some(engine) = self.engine.upgrade() {
                engine.increment_epoch();
            }
            idle = match self.calls.load(Ordering::SeqCst) {
                0 => idle + 1,
                _ => 0,
            };
            if idle > limits::IDLE_TICKS {
                self.sleep();
                idle = 0;
            }
        }
    }

    fn sleep(&self) {
        self.asleep.store(true, Ordering::SeqCst);
        // A call that began before the flag was set wakes nobody, so the count is looked at after
        // it. A wake-up that comes between the look and the sleep is kept for the sleep.
        while self.calls.load(Ordering::SeqCst) == 0 && !self.stopped.load(Ordering::SeqCst) {
            thread::park();
        }
        self.asleep.store(false, Ordering::SeqCst);
    }
}
