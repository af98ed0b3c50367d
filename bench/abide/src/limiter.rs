//! What one decision of the rate limiter costs: natively, through the component, and that of the
//! crate governor, in turns over the same principals.

use std::error::Error;
use std::hint::black_box;
use std::num::NonZeroU32;
use std::time::{Duration, Instant};

use abide_host::wit::admission::Caller;
use abide_host::{Limiter, Runtime, RuntimeConfig};
use abide_policy::rate::{Overrides, Principal, RateLimit, Table};
use governor::{DefaultKeyedRateLimiter, Quota, RateLimiter};

type Result<T> = std::result::Result<T, Box<dyn Error + Send + Sync>>;

/// Principals that ask in turn.
const PRINCIPALS: [usize; 2] = [1, 100_000];

/// Decisions of one turn.
const DECISIONS: usize = 300_000;

/// Turns of each.
const TURNS: usize = 7;

/// So much that nobody is refused: what is measured is the same for all.
const CAPACITY: u32 = 1_000_000;

/// The span of the capacity.
const SPAN: Duration = Duration::from_secs(10);

/// Some time, and how far apart decisions are.
const NOW_MS: u64 = 1_800_000_000_000;

fn main() -> Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().build()?;
    for principals in PRINCIPALS {
        let names: Vec<String> = (0..principals)
            .map(|number| format!("client-{number}"))
            .collect();
        let callers: Vec<Caller> = names
            .iter()
            .map(|name| Caller {
                authenticated: Some(name.clone()),
                app: None,
                address: None,
            })
            .collect();
        let mut native = Native::new();
        let sandbox = runtime.block_on(sandbox())?;
        let governor = governor();
        let mut times = [const { Vec::new() }; 3];
        // The first turn of each makes the buckets.
        for turn in 0..=TURNS {
            let turned = [
                timed(|at| native.decide(&names[at % principals], at)),
                runtime.block_on(through(&sandbox, &callers))?,
                timed(|at| {
                    black_box(governor.check_key(&names[at % principals]).is_ok());
                }),
            ];
            if turn > 0 {
                for (times, time) in times.iter_mut().zip(turned) {
                    times.push(time);
                }
            }
        }
        let [native, sandbox, governor] = times.map(|mut times| {
            times.sort_by(f64::total_cmp);
            times[TURNS / 2]
        });
        println!("one decision, {principals} principals");
        println!(
            "  native     {native:6.0} ns   {:.2} of governor",
            native / governor
        );
        println!(
            "  component  {sandbox:6.0} ns   {:.2} of native",
            sandbox / native
        );
        println!("  governor   {governor:6.0} ns");
    }
    Ok(())
}

/// Nanoseconds of one decision.
fn timed(mut decide: impl FnMut(usize)) -> f64 {
    let start = Instant::now();
    for at in 0..DECISIONS {
        decide(at);
    }
    each(start)
}

fn each(start: Instant) -> f64 {
    start.elapsed().as_secs_f64() * 1e9 / DECISIONS as f64
}

struct Native {
    config: RateLimit,
    table: Table,
}

impl Native {
    fn new() -> Self {
        Self {
            config: RateLimit {
                enabled: true,
                learning: false,
                capacity: CAPACITY,
                ..RateLimit::default()
            },
            table: Table::new(),
        }
    }

    fn decide(&mut self, name: &str, at: usize) {
        let principal = Principal::Authenticated(name.to_owned());
        let now_ms = NOW_MS + at as u64 / 1000;
        let answer = self.table.decide(
            &self.config,
            principal,
            &Overrides::default(),
            1,
            black_box(now_ms),
        );
        assert!(black_box(answer).outcome.goes_on());
    }
}

async fn sandbox() -> Result<Limiter> {
    let gate = Runtime::new(RuntimeConfig::default())?.gate();
    let policy = format!(r#"{{"enabled":true,"learning":false,"capacity":{CAPACITY}}}"#);
    let limiter = gate.limiter(&policy).await?;
    Ok(limiter.map_err(|mistakes| format!("{mistakes:?}"))?)
}

/// As [`timed`].
async fn through(limiter: &Limiter, callers: &[Caller]) -> Result<f64> {
    let start = Instant::now();
    for at in 0..DECISIONS {
        let now_ms = NOW_MS + at as u64 / 1000;
        let caller = &callers[at % callers.len()];
        black_box(limiter.admit(caller, None, 1, now_ms).await?);
    }
    Ok(each(start))
}

fn governor() -> DefaultKeyedRateLimiter<String> {
    let capacity = NonZeroU32::new(CAPACITY).unwrap_or(NonZeroU32::MIN);
    let quota = Quota::with_period(SPAN / CAPACITY).map_or(Quota::per_second(capacity), |quota| {
        quota.allow_burst(capacity)
    });
    RateLimiter::keyed(quota)
}
