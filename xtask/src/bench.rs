//! `cargo xtask bench`: figures, never verdicts. A machine under load must not fail a build.

mod contender;
mod enroll;
mod files;
mod gateway;
mod messages;
mod peer;
mod processes;
mod schedule;

use std::process::{Command, ExitCode};

use anyhow::{Result, bail};

use crate::setup;
use crate::shell::{cargo, run as run_command, step, target_dir};

/// More would only test patience.
const MAX_ROUNDS: usize = 10_001;

/// `cargo xtask bench`, and `messages`, `enroll`, `schedule`, `limiter` or `gateway` after it.
pub(crate) fn run(arguments: &[String]) -> Result<ExitCode> {
    match arguments.split_first() {
        Some((what, rest)) if what == "messages" => messages::run(rounds(rest)?),
        Some((what, [])) if what == "enroll" => enroll::run(),
        Some((what, [])) if what == "schedule" => schedule::run(),
        Some((what, [])) if what == "limiter" => limiter(),
        Some((what, [])) if what == "gateway" => gateway::run(),
        _ => processes::run(rounds(arguments)?),
    }
}

/// The measuring is done by `bench/abide/src/limiter.rs`.
fn limiter() -> Result<ExitCode> {
    build()?;
    step("deciding");
    run_command(&mut Command::new(
        target_dir().join("release/bench-limiter"),
    ))?;
    Ok(ExitCode::SUCCESS)
}

/// What was asked for, if anything was.
fn rounds(arguments: &[String]) -> Result<Option<usize>> {
    match arguments {
        [] => Ok(None),
        [flag, number] if flag == "--rounds" => match number.parse() {
            Ok(rounds) if (1..=MAX_ROUNDS).contains(&rounds) => Ok(Some(rounds)),
            _ => bail!("--rounds {number}: give a number from 1 to {MAX_ROUNDS}"),
        },
        _ => bail!(
            "`bench` takes `enroll`, `schedule`, `limiter`, `gateway`, or `messages` and --rounds N, and nothing else; see `cargo xtask help`"
        ),
    }
}

/// Builds everything that stands on wasmtime at once: apart, each would need it with different
/// features, and that takes minutes every time.
fn build() -> Result<()> {
    setup::for_building()?;
    step("building abide with optimisation; the first time takes minutes");
    run_command(cargo(["build", "--release", "--workspace"]).args([
        "--bin",
        "abide",
        "--bin",
        "bench-native",
        "--bin",
        "bench-sandbox",
        "--bin",
        "bench-enroll",
        "--bin",
        "bench-schedule",
        "--bin",
        "bench-limiter",
        "--example",
        "speed",
    ]))
}

#[cfg(test)]
mod tests {
    use super::rounds;

    #[test]
    fn the_number_of_rounds_is_bounded() {
        let parse = |words: &[&str]| {
            let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
            rounds(&words).ok()
        };
        assert_eq!(parse(&[]), Some(None));
        assert_eq!(parse(&["--rounds", "5"]), Some(Some(5)));
        for wrong in ["0", "-1", "10002", "many"] {
            assert_eq!(parse(&["--rounds", wrong]), None, "{wrong}");
        }
        assert_eq!(parse(&["--rounds"]), None);
        assert_eq!(parse(&["5"]), None);
    }
}
