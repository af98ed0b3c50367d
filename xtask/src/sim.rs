//! `cargo xtask sim`: simulated worlds, as many as wanted.

use std::process::ExitCode;

use anyhow::Result;

use crate::shell::{cargo, status, step};

/// The dev profile is as fast here as release, is mostly built already, and stops at every
/// arithmetic overflow.
pub(crate) fn run(arguments: &[String]) -> Result<ExitCode> {
    step("building the simulator");
    let mut simulator = cargo(["run", "--quiet", "--package", "abide-sim", "--"]);
    Ok(match status(simulator.args(arguments))?.success() {
        true => ExitCode::SUCCESS,
        false => ExitCode::FAILURE,
    })
}
