//! What the fuzz targets share: bounds on what one input may cost, and the certificates that
//! lie in an input.

pub mod world;

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::{Duration, Instant};

use abide_cmp::der::Reader;
use abide_cmp::protection::{SignatureAlgorithm, SignatureVerifier, Verdict};
use abide_cmp::{Certificate, Leniency, PkiMessage, PublicKeyInfo, Time, limits};

/// Octets that one input may make the code allocate at a time.
pub const MEMORY: usize = 64 << 20;

/// How long one input may take: ten times what is promised, because the code is slowed down
/// by what measures its coverage, and machines are shared.
pub const TIME: Duration = Duration::from_millis(500);

/// 2026-06-01T00:00:00Z, from `date -u -d 2026-06-01 +%s`.
pub const NOW: Time = Time::from_unix(1_780_272_000);

/// Every deviation from DER that can be accepted.
pub const LENIENT: Leniency = Leniency {
    non_minimal_lengths: true,
    fractional_seconds: true,
    explicit_ra_verified: true,
    empty_lists: true,
};

/// Runs a target and panics if it was too costly. What is slow once may have been
/// interrupted; only what stays slow is a finding.
pub fn bounded(run: impl Fn()) {
    let before = LIVE.load(Relaxed);
    PEAK.store(before, Relaxed);
    let mut took = Duration::MAX;
    for _ in 0..3 {
        let start = now();
        run();
        took = took.min(now() - start);
        if took <= TIME {
            break;
        }
    }
    assert!(took <= TIME, "{took:?} for one input");
    let peak = PEAK.load(Relaxed) - before;
    assert!(peak <= MEMORY, "{peak} octets for one input");
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

/// The certificates of an input: extraCerts where it is a message, otherwise one after the
/// other. Unreadable ones are passed over.
pub fn certificates(data: &[u8]) -> Vec<Certificate<'_>> {
    let elements = match PkiMessage::from_der(data) {
        Ok(message) => message.extra_certs,
        Err(_) => {
            let mut reader = Reader::new(data);
            std::iter::from_fn(|| reader.any().ok().map(|element| element.raw))
                .take(limits::ELEMENTS)
                .collect()
        }
    };
    elements
        .into_iter()
        .filter_map(|der| Certificate::from_der(der).ok())
        .collect()
}

/// Judges without arithmetic, so that what lies behind a good signature is reached: a
/// signature is taken for valid unless it ends with an odd octet.
pub struct Credulous;

impl SignatureVerifier for Credulous {
    fn verify(
        &self,
        _: SignatureAlgorithm,
        _: &PublicKeyInfo<'_>,
        _: &[u8],
        signature: &[u8],
    ) -> Verdict {
        match signature.last() {
            Some(last) if last % 2 == 1 => Verdict::Invalid,
            _ => Verdict::Valid,
        }
    }
}

/// The system's allocator, with a look at how much is in use.
struct Counting;

static LIVE: AtomicUsize = AtomicUsize::new(0);
static PEAK: AtomicUsize = AtomicUsize::new(0);

#[global_allocator]
static ALLOCATOR: Counting = Counting;

fn grow(octets: usize) {
    let live = LIVE.fetch_add(octets, Relaxed) + octets;
    PEAK.fetch_max(live, Relaxed);
}

// SAFETY: every call is handed on to the system's allocator as it came.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        grow(layout.size());
        // SAFETY: the caller keeps the contract of `GlobalAlloc::alloc`.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        LIVE.fetch_sub(layout.size(), Relaxed);
        // SAFETY: `at` came from `alloc` above, with this layout.
        unsafe { System.dealloc(at, layout) }
    }
}
