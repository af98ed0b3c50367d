//! `cargo xtask demo`: from a fresh clone to a story on the terminal.

use std::process::ExitCode;

use anyhow::Result;

use crate::setup;
use crate::shell::{cargo, run as run_command, step};

/// Builds the program and hands over to `abide demo`, with what else was on the command line.
pub(crate) fn run(arguments: &[String]) -> Result<ExitCode> {
    step("looking for what the build needs");
    setup::for_building()?;
    crate::component::build_for_host()?;
    step("building abide; the first time compiles wasmtime (minutes)");
    run_command(&mut cargo(["build", "--package", "abide"]))?;
    step("abide demo");
    let status = crate::shell::status(
        cargo(["run", "--quiet", "--package", "abide", "--", "demo"]).args(arguments),
    )?;
    // What went wrong is on the terminal already, in abide's own words.
    Ok(if status.success() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}
