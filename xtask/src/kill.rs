//! `cargo xtask kill`: clients killed at random moments, as many as wanted.

use std::process::ExitCode;

use anyhow::{Context, Result, bail};

use crate::shell::{cargo, status, step};
use crate::{demo, setup};

/// Orders at each CA.
const ROUNDS: u64 = 100;

pub(crate) fn run(arguments: &[String]) -> Result<ExitCode> {
    let options = Options::parse(arguments)?;
    setup::peers()?;
    step("building abide, which is to be killed");
    demo::build_program()?;
    let mut tests = cargo(["test", "--quiet", "--workspace", "--test", "kill_rounds"]);
    tests
        .args(["--", "--nocapture"])
        .env("CARGO_BIN_EXE_abide", demo::program())
        .env("ABIDE_KILL_ROUNDS", options.rounds.to_string());
    if let Some(seed) = options.seed {
        tests.env("ABIDE_KILL_SEED", seed.to_string());
    }
    Ok(match status(&mut tests)?.success() {
        true => ExitCode::SUCCESS,
        false => ExitCode::FAILURE,
    })
}

#[derive(Debug, PartialEq, Eq)]
struct Options {
    rounds: u64,
    seed: Option<u64>,
}

impl Options {
    fn parse(arguments: &[String]) -> Result<Self> {
        let mut options = Self {
            rounds: ROUNDS,
            seed: None,
        };
        let mut rest = arguments.iter();
        while let Some(argument) = rest.next() {
            let value = || rest.as_slice().first().context("a number is missing");
            let number = value().and_then(|text| {
                text.parse()
                    .with_context(|| format!("`{text}` is no number"))
            });
            match argument.as_str() {
                "--rounds" => options.rounds = number?,
                "--seed" => options.seed = Some(number?),
                other => bail!("`kill` takes no `{other}`; see `cargo xtask help`"),
            }
            rest.next();
        }
        Ok(options)
    }
}

#[cfg(test)]
mod tests {
    use super::Options;

    fn parse(line: &str) -> Option<Options> {
        let words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
        Options::parse(&words).ok()
    }

    #[test]
    fn rounds_and_seed_are_numbers() {
        let options = |rounds, seed| Some(Options { rounds, seed });
        assert_eq!(parse(""), options(100, None));
        assert_eq!(parse("--seed 7 --rounds 3"), options(3, Some(7)));
        for wrong in ["--rounds", "--seed x", "3", "--round 3"] {
            assert_eq!(parse(wrong), None, "{wrong}");
        }
    }
}
