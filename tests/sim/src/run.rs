//! Many worlds: one for every seed, or one for every place at which a fault can strike.

use std::fmt::Write as _;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use crate::checker::{Breach, Invariant};
use crate::fault::{Fault, Place, Plan};
use crate::scenario::{Repeats, Scenario, Setting};
use crate::world::{Tally, Violation, World};

/// Lines of a trace that a report shows.
const SHOWN_TRACE: usize = 80;
/// Violations after which no more worlds are begun.
const ENOUGH: usize = 5;

/// What a world follows from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origin {
    /// Everything from one seed.
    Seed(u64),
    /// One scenario, and these faults at these opportunities.
    Script(Scenario, Vec<(u64, Fault)>),
}

impl Origin {
    /// Lets this world run, and gives everything that happened when no rule was broken.
    pub fn tell(&self) -> Result<(Tally, Vec<String>), Violation> {
        self.world(true).tell()
    }

    /// Lets this world run.
    pub fn run(&self, trace: bool) -> Result<Tally, Violation> {
        self.world(trace).run()
    }

    /// This world, about to begin.
    pub fn world(&self, trace: bool) -> World {
        match self {
            Self::Seed(seed) => {
                let mut rng = fastrand::Rng::with_seed(*seed);
                let (setting, plan) = Setting::random(&mut rng);
                World::new(&setting, plan, rng, trace)
            }
            Self::Script(scenario, faults) => World::new(
                &Setting::plain(*scenario),
                Plan::Script(faults.clone()),
                fastrand::Rng::with_seed(0),
                trace,
            ),
        }
    }

    /// The command that lets this world run once more.
    pub fn command(&self) -> String {
        match self {
            Self::Seed(seed) => format!("cargo xtask sim --seed {seed}"),
            Self::Script(scenario, faults) => {
                let faults: Vec<String> = faults
                    .iter()
                    .map(|(at, fault)| format!("{at}={}", fault.name()))
                    .collect();
                let name = scenario.name();
                format!(
                    "cargo xtask sim --scenario {name} --at {}",
                    faults.join(",")
                )
            }
        }
    }
}

/// The story of a broken rule: what, where, how it came to it, and how to see it again.
pub fn report(origin: &Origin, violation: &Violation) -> String {
    let again = match origin.run(true) {
        Err(again) => again,
        Ok(_) => {
            return format!("{violation:?} did not happen again: the world is not deterministic");
        }
    };
    let mut text = String::new();
    let from = again.trace.len().saturating_sub(SHOWN_TRACE);
    for line in &again.trace[from..] {
        let _ = writeln!(text, "  {line}");
    }
    let Breach { invariant, what } = &violation.breach;
    let _ = writeln!(text, "{}: {what}", invariant.name());
    let _ = writeln!(text, "  the rule: {}", invariant.about());
    let _ = writeln!(text, "  at step {}", violation.step);
    if (again.step, &again.breach) != (violation.step, &violation.breach) {
        let _ = writeln!(
            text,
            "  but again at step {}: {:?}: the world is not deterministic",
            again.step, again.breach
        );
    }
    let _ = writeln!(text, "  again: {}", origin.command());
    text
}

/// What came of many worlds.
#[derive(Debug, Default)]
pub struct Summary {
    /// How many there were.
    pub worlds: u64,
    /// What became of them together.
    pub tally: Tally,
    /// How long it took.
    pub took: Duration,
    /// The rules that were broken, those of lower seeds first.
    pub violations: Vec<(Origin, Violation)>,
}

impl Summary {
    /// One line.
    pub fn line(&self) -> String {
        let seconds = self.took.as_secs_f64().max(1e-9);
        let tally = &self.tally;
        format!(
            "{} worlds in {seconds:.1} s: {:.0} worlds/s, {:.0} steps/s; {} faults, {} orders \
             served, {} ended otherwise and said why, {} orphans declared; {} violations",
            self.worlds,
            self.worlds as f64 / seconds,
            tally.steps as f64 / seconds,
            tally.faults,
            tally.served,
            tally.failed,
            tally.orphans,
            self.violations.len(),
        )
    }

    fn add(&mut self, other: Self) {
        self.worlds += other.worlds;
        self.tally.steps += other.tally.steps;
        self.tally.served += other.tally.served;
        self.tally.failed += other.tally.failed;
        self.tally.orphans += other.tally.orphans;
        self.tally.faults += other.tally.faults;
        self.violations.extend(other.violations);
    }

    fn enter(&mut self, origin: impl FnOnce() -> Origin, ended: Result<Tally, Violation>) {
        self.worlds += 1;
        match ended {
            Ok(tally) => self.add(Self {
                tally,
                ..Self::default()
            }),
            Err(violation) => self.violations.push((origin(), violation)),
        }
    }
}

/// Cuts work into pieces for all threads; stops when enough has gone wrong.
fn spread(
    threads: usize,
    pieces: usize,
    progress: &(dyn Fn(u64) + Sync),
    work: impl Fn(usize, &mut Summary) + Sync,
) -> Summary {
    let started = Instant::now();
    let (next, enough) = (AtomicUsize::new(0), AtomicBool::new(false));
    let (whole, worlds) = (Mutex::new(Summary::default()), AtomicU64::new(0));
    std::thread::scope(|scope| {
        for _ in 0..threads.max(1) {
            scope.spawn(|| {
                while !enough.load(Ordering::Relaxed) {
                    let piece = next.fetch_add(1, Ordering::Relaxed);
                    if piece >= pieces {
                        break;
                    }
                    let mut part = Summary::default();
                    work(piece, &mut part);
                    progress(worlds.fetch_add(part.worlds, Ordering::Relaxed) + part.worlds);
                    let mut whole = whole.lock().expect("no thread panics with the lock");
                    whole.add(part);
                    enough.fetch_or(whole.violations.len() >= ENOUGH, Ordering::Relaxed);
                }
            });
        }
    });
    let mut whole = whole.into_inner().expect("no thread panics with the lock");
    whole.took = started.elapsed();
    whole.violations.sort_by_key(|(origin, _)| match origin {
        Origin::Seed(seed) => *seed,
        Origin::Script(..) => 0,
    });
    whole
}

/// One world for each seed from `first` on.
pub fn seeds(first: u64, count: u64, threads: usize, progress: &(dyn Fn(u64) + Sync)) -> Summary {
    const PIECE: u64 = 256;
    let pieces = count.div_ceil(PIECE) as usize;
    spread(threads, pieces, progress, |piece, part| {
        let from = piece as u64 * PIECE;
        for offset in from..(from + PIECE).min(count) {
            let origin = Origin::Seed(first.wrapping_add(offset));
            let ended = origin.run(false);
            part.enter(|| origin, ended);
        }
    })
}

/// How much of everything.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Depth {
    /// In every scenario a crash before and after every import.
    Crashes,
    /// In the five commonest scenarios every fault at every place where it can strike.
    CommonFaults,
    /// The same in every scenario.
    Faults,
    /// In the five commonest scenarios a crash at every two imports.
    Pairs,
}

/// One world for each place, or pair of places, at which a fault can strike.
pub fn exhaustive(depth: Depth, threads: usize, progress: &(dyn Fn(u64) + Sync)) -> Summary {
    let scenarios = match depth {
        Depth::Crashes | Depth::Faults => Scenario::all(),
        Depth::CommonFaults | Depth::Pairs => Scenario::COMMONEST.to_vec(),
    };
    // Each piece takes every so-manieth place of one scenario.
    let stride = match depth {
        Depth::Pairs => 16,
        _ => 1,
    };
    spread(
        threads,
        scenarios.len() * stride,
        progress,
        |piece, part| {
            let scenario = scenarios[piece / stride];
            let calm = Origin::Script(scenario, Vec::new());
            let places = match calm.world(false).survey() {
                Ok(places) => places,
                Err(violation) => return part.enter(|| calm, Err(violation)),
            };
            for &(at, place) in places.iter().skip(piece % stride).step_by(stride) {
                match depth {
                    Depth::CommonFaults | Depth::Faults => {
                        let faults = Fault::ALL.iter().filter(|fault| fault.place() == place);
                        for &fault in faults {
                            script(scenario, vec![(at, fault)], part);
                        }
                    }
                    Depth::Crashes if place == Place::Import => {
                        for crash in CRASHES {
                            script(scenario, vec![(at, crash)], part);
                        }
                    }
                    Depth::Pairs if place == Place::Import => pairs(scenario, at, part),
                    Depth::Crashes | Depth::Pairs => {}
                }
            }
        },
    )
}

const CRASHES: [Fault; 2] = [Fault::CrashBefore, Fault::CrashAfter];

fn pairs(scenario: Scenario, first: u64, part: &mut Summary) {
    for fault in CRASHES {
        for second in first + 1.. {
            let struck =
                CRASHES.map(|again| script(scenario, vec![(first, fault), (second, again)], part));
            if struck == [false, false] {
                break;
            }
        }
    }
}

/// Lets one script run; tells whether all of its faults struck.
fn script(scenario: Scenario, faults: Vec<(u64, Fault)>, part: &mut Summary) -> bool {
    let origin = Origin::Script(scenario, faults);
    let ended = origin.world(false).run_script();
    let struck = ended.as_ref().is_ok_and(|(_, struck)| *struck);
    let Origin::Script(_, faults) = &origin else {
        return struck;
    };
    let crashes = faults
        .iter()
        .all(|(_, fault)| matches!(fault, Fault::CrashBefore | Fault::CrashAfter));
    let ended = match ended {
        // Where the CA repeats its answers, a crash costs nothing but time.
        Ok((tally, _)) if crashes && scenario.repeats == Repeats::Answered => {
            match (tally.served, tally.orphans) {
                (1, 0) => Ok(tally),
                _ => Err(Violation {
                    breach: Breach {
                        invariant: Invariant::Ends,
                        what: format!("a crash cost the result: {tally:?}"),
                    },
                    step: tally.steps,
                    trace: Vec::new(),
                }),
            }
        }
        Ok((tally, _)) => Ok(tally),
        Err(violation) => Err(violation),
    };
    part.enter(|| origin, ended);
    struck
}
