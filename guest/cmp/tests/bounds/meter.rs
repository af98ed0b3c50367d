//! What a piece of work costs: memory on this thread's heap, the least time of a few rounds, and
//! no more stack than the sandbox has.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

/// Octets that may be in use at a time, whatever the input.
const MEMORY: usize = 64 << 20;

/// What is promised is 50 ms in an optimised build. Machines are shared and this build may
/// be a slow one.
const TIME: Duration = Duration::from_millis(500);

/// Octets of stack: a quarter of what a component has.
const STACK: usize = 256 << 10;

/// Runs the work on a small stack, prints what it costs and insists on the bounds.
pub(crate) fn measure(name: &str, work: impl Fn() + Send + Sync) {
    let work = &work;
    let (memory, time) = std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().stack_size(STACK);
        let running = thread.spawn_scoped(scope, || (memory(work), fastest(work)));
        running.expect("a thread").join().expect("no panic")
    });
    println!("{name}: {} KiB, {time:?}", memory >> 10);
    assert!(memory <= MEMORY, "{name}: {memory} octets");
    assert!(time <= TIME, "{name}: {time:?}");
}

/// The shortest of three times: what else runs on the machine only makes them longer.
pub(crate) fn fastest(work: &dyn Fn()) -> Duration {
    let time = || {
        let start = now();
        work();
        now() - start
    };
    let first = time();
    first.min(time()).min(time())
}

/// How long this thread has run on a processor, where Linux tells; else how long the process
/// has by the clock.
fn now() -> Duration {
    static START: OnceLock<Instant> = OnceLock::new();
    let start = START.get_or_init(Instant::now);
    // Giving way makes the kernel bring its count up to date.
    std::thread::yield_now();
    let used = std::fs::read_to_string("/proc/thread-self/schedstat").ok();
    let nanoseconds = used.and_then(|text| text.split(' ').next()?.parse().ok());
    nanoseconds.map_or_else(|| start.elapsed(), Duration::from_nanos)
}

fn memory(work: &dyn Fn()) -> usize {
    let before = LIVE.get();
    PEAK.set(before);
    work();
    usize::try_from(PEAK.get() - before).expect("a peak is not below its start")
}

/// The system's allocator, with a look at how much each thread has in use.
struct Counting;

#[global_allocator]
static ALLOCATOR: Counting = Counting;

thread_local! {
    static LIVE: Cell<isize> = const { Cell::new(0) };
    static PEAK: Cell<isize> = const { Cell::new(0) };
}

fn change(octets: isize) {
    // What a thread frees after its variables are gone is nobody's to count.
    let _ = LIVE.try_with(|live| {
        live.set(live.get() + octets);
        let _ = PEAK.try_with(|peak| peak.set(peak.get().max(live.get())));
    });
}

// SAFETY: every call is handed on to the system's allocator as it came.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        change(layout.size() as isize);
        // SAFETY: the caller keeps the contract of `GlobalAlloc::alloc`.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        change(-(layout.size() as isize));
        // SAFETY: `at` came from `alloc` above, with this layout.
        unsafe { System.dealloc(at, layout) }
    }
}
