//! `cargo xtask test`: everything that must hold before a change goes in.

use std::process::{Command, ExitCode};

use anyhow::{Result, bail};

use crate::setup::{self, GUEST_TARGET};
use crate::shell::{cargo, run as run_command, status, step, succeeds};
use crate::{component, demo, fuzz};

/// Warnings are errors here, and only here: they do not interrupt work.
const NO_WARNINGS: [&str; 3] = ["--", "-D", "warnings"];

/// It is made for one target, of which it defines what elsewhere the standard library does.
const COMPONENT: &str = "abide-component";

/// With it, policies are read from configuration, which has tests of its own.
const CONFIGURATION: &str = "abide-policy/serde";

/// The last thing on the terminal is the test runner's own summary, also when a test has failed.
pub(crate) fn run(arguments: &[String]) -> Result<ExitCode> {
    let options = Options::parse(arguments)?;
    step("looking for what build and tests need");
    setup::for_building()?;
    setup::for_testing()?;
    component::build_for_host()?;
    component::build_for_tests()?;
    if !options.only_tests {
        setup::for_linting()?;
        lints()?;
    }
    // A filter means that one test is wanted.
    if !options.only_tests && options.for_runner.is_empty() {
        fuzz::for_tests()?;
    }
    tests(&options.for_runner)
}

#[derive(Debug, PartialEq, Eq)]
struct Options {
    only_tests: bool,
    for_runner: Vec<String>,
}

impl Options {
    fn parse(arguments: &[String]) -> Result<Self> {
        let mut only_tests = false;
        let mut rest = arguments.iter();
        while let Some(argument) = rest.next() {
            match argument.as_str() {
                "--only-tests" => only_tests = true,
                "--" => {
                    return Ok(Self {
                        only_tests,
                        for_runner: rest.cloned().collect(),
                    });
                }
                other => bail!("`test` takes no `{other}`; see `cargo xtask help`"),
            }
        }
        Ok(Self {
            only_tests,
            for_runner: Vec::new(),
        })
    }
}

fn lints() -> Result<()> {
    step("formatting");
    run_command(&mut cargo(["fmt", "--all", "--check"]))?;
    run_command(&mut cargo([
        "fmt",
        "--check",
        "--manifest-path",
        "fuzz/Cargo.toml",
    ]))?;
    step("lints");
    run_command(
        cargo([
            "clippy",
            "--workspace",
            "--exclude",
            COMPONENT,
            "--all-targets",
        ])
        .args(["--features", "xtask/component", "--features", CONFIGURATION])
        .args(NO_WARNINGS),
    )?;
    for world in ["gate", "verifier", "enroller"] {
        step(format!("lints of the component, world {world}"));
        run_command(
            cargo(["clippy", "--package", COMPONENT, "--target", GUEST_TARGET])
                .args(["--no-default-features", "--features", world])
                .args(NO_WARNINGS),
        )?;
    }
    step("documentation");
    run_command(&mut documentation(&["--workspace", "--exclude", COMPONENT]))?;
    run_command(&mut documentation(&[
        "--package",
        COMPONENT,
        "--target",
        GUEST_TARGET,
    ]))
}

fn documentation(what: &[&str]) -> Command {
    let mut command = cargo(["doc", "--no-deps"]);
    command.args(what).env("RUSTDOCFLAGS", "-D warnings");
    command
}

fn tests(for_runner: &[String]) -> Result<ExitCode> {
    step("building the tests, and abide, which they run as a process");
    // At once: alone, the program would need wasmtime without the features that the tests' own
    // dependencies add to the packages below it, and all of that would be compiled twice.
    run_command(
        cargo(["build", "--workspace", "--bin", "abide", "--tests"])
            .args(["--features", CONFIGURATION]),
    )?;
    let mut runner = if succeeds(&mut cargo(["nextest", "--version"])) {
        // nextest does not know documentation tests. A filter means that one test is wanted.
        if for_runner.is_empty() {
            step("documentation tests");
            run_command(
                cargo(["test", "--workspace", "--doc"]).args(["--features", CONFIGURATION]),
            )?;
        }
        step("tests (cargo nextest)");
        cargo(["nextest", "run", "--workspace", "--no-fail-fast"])
    } else {
        step("tests (cargo test)");
        cargo(["test", "--workspace", "--no-fail-fast"])
    };
    // Cargo names the program only to the tests of its own package.
    runner.env("CARGO_BIN_EXE_abide", demo::program());
    exit_code(runner.args(["--features", CONFIGURATION]).args(for_runner))
}

fn exit_code(runner: &mut Command) -> Result<ExitCode> {
    Ok(if status(runner)?.success() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

#[cfg(test)]
mod tests {
    use super::Options;

    fn parse(line: &str) -> Option<Options> {
        let words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
        Options::parse(&words).ok()
    }

    #[test]
    fn arguments_after_two_dashes_are_the_runners() {
        let options = |only_tests, runner: &[&str]| {
            Some(Options {
                only_tests,
                for_runner: runner.iter().map(|s| (*s).to_owned()).collect(),
            })
        };
        assert_eq!(parse(""), options(false, &[]));
        assert_eq!(parse("--only-tests"), options(true, &[]));
        assert_eq!(
            parse("-- backoff --only-tests"),
            options(false, &["backoff", "--only-tests"])
        );
        assert_eq!(
            parse("--only-tests -- -p abide"),
            options(true, &["-p", "abide"])
        );
        assert_eq!(parse("--only-test"), None);
        assert_eq!(parse("backoff"), None);
    }
}
