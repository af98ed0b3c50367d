//! Runs simulated worlds and tells what they broke.

use std::process::ExitCode;
use std::thread::available_parallelism;

use abide_sim::checker::Invariant;
use abide_sim::fault::Fault;
use abide_sim::run::{self, Depth, Origin, Summary};
use abide_sim::scenario::Scenario;
use anyhow::{Context, Result, bail};
use clap::Parser;

/// Simulated enrollments with faults, judged in every state.
#[derive(Debug, Parser)]
#[command(name = "cargo xtask sim")]
struct Options {
    /// How many random worlds, one for each seed.
    #[arg(long, default_value_t = 100_000)]
    seeds: u64,
    /// The first seed.
    #[arg(long, default_value_t = 0)]
    from: u64,
    /// One world by its seed, with everything that happens.
    #[arg(long)]
    seed: Option<u64>,
    /// Every fault at every import of every scenario, and a crash at every two imports of
    /// the five commonest.
    #[arg(long)]
    exhaustive: bool,
    /// One world of this scenario, with everything that happens.
    #[arg(long)]
    scenario: Option<String>,
    /// Faults of that world as NUMBER=FAULT, with commas between.
    #[arg(long, value_delimiter = ',', requires = "scenario")]
    at: Vec<String>,
    /// Worlds at a time.
    #[arg(long)]
    threads: Option<usize>,
    /// The faults there are.
    #[arg(long)]
    list_faults: bool,
    /// The rules that are checked.
    #[arg(long)]
    list_rules: bool,
    /// The scenarios there are.
    #[arg(long)]
    list_scenarios: bool,
}

fn main() -> Result<ExitCode> {
    let options = Options::parse();
    if options.list_faults {
        for fault in Fault::ALL {
            println!("{:<26}{}", fault.name(), fault.about().trim());
        }
        return Ok(ExitCode::SUCCESS);
    }
    if options.list_rules {
        for rule in Invariant::ALL {
            println!("{:<24}{}", rule.name(), rule.about().trim());
        }
        return Ok(ExitCode::SUCCESS);
    }
    if options.list_scenarios {
        for scenario in Scenario::all() {
            println!("{}", scenario.name());
        }
        return Ok(ExitCode::SUCCESS);
    }
    if let Some(origin) = one(&options)? {
        return Ok(tell(&origin));
    }
    let threads = options
        .threads
        .or_else(|| available_parallelism().ok().map(usize::from))
        .unwrap_or(1);
    let quiet = |_| ();
    if options.exhaustive {
        let scenarios = Scenario::all().len();
        println!("{scenarios} scenarios, every fault at every place:");
        let singles = run::exhaustive(Depth::Faults, threads, &quiet);
        let clean = finish(&singles);
        println!("the five commonest, a crash at every two imports:");
        let pairs = run::exhaustive(Depth::Pairs, threads, &quiet);
        let clean = finish(&pairs) && clean;
        println!(
            "{scenarios} scenarios, {} worlds, {} violations",
            singles.worlds + pairs.worlds,
            singles.violations.len() + pairs.violations.len()
        );
        return Ok(code(clean));
    }
    println!(
        "seeds {} and {} more, {threads} at a time:",
        options.from, options.seeds
    );
    let progress = |worlds| {
        if worlds % 102_400 == 0 {
            println!("  {worlds} worlds");
        }
    };
    let summary = run::seeds(options.from, options.seeds, threads, &progress);
    Ok(code(finish(&summary)))
}

fn one(options: &Options) -> Result<Option<Origin>> {
    if let Some(seed) = options.seed {
        return Ok(Some(Origin::Seed(seed)));
    }
    let Some(name) = &options.scenario else {
        return Ok(None);
    };
    let scenario = Scenario::named(name)
        .with_context(|| format!("no scenario '{name}'; see --list-scenarios"))?;
    let mut faults = Vec::new();
    for text in &options.at {
        let Some((at, name)) = text.split_once('=') else {
            bail!("'{text}' is not NUMBER=FAULT");
        };
        let at = at.parse().with_context(|| format!("'{at}' is no number"))?;
        let fault =
            Fault::named(name).with_context(|| format!("no fault '{name}'; see --list-faults"))?;
        faults.push((at, fault));
    }
    Ok(Some(Origin::Script(scenario, faults)))
}

/// One world, from its first step to its last.
fn tell(origin: &Origin) -> ExitCode {
    match origin.tell() {
        Ok((tally, trace)) => {
            trace.iter().for_each(|line| println!("  {line}"));
            println!("no rule is broken: {tally:?}");
            ExitCode::SUCCESS
        }
        Err(violation) => {
            print!("{}", run::report(origin, &violation));
            ExitCode::FAILURE
        }
    }
}

fn finish(summary: &Summary) -> bool {
    for (origin, violation) in &summary.violations {
        print!("{}", run::report(origin, violation));
    }
    println!("{}", summary.line());
    summary.violations.is_empty()
}

fn code(clean: bool) -> ExitCode {
    match clean {
        true => ExitCode::SUCCESS,
        false => ExitCode::FAILURE,
    }
}
