//! `cargo xtask demo`: from a fresh clone to a story on the terminal.

use std::path::PathBuf;
use std::process::{Command, ExitCode};

use anyhow::Result;

use crate::setup;
use crate::shell::{cargo, run as run_command, step, target_dir};

/// Builds the program and hands over to `abide demo`, with what else was on the command line.
pub(crate) fn run(arguments: &[String]) -> Result<ExitCode> {
    step("looking for what the build needs");
    setup::for_building()?;
    crate::component::build_for_host()?;
    step("building abide; the first time compiles wasmtime (minutes)");
    build_program()?;
    step("abide demo");
    let status = crate::shell::status(Command::new(program()).arg("demo").args(arguments))?;
    // What went wrong is on the terminal already, in abide's own words.
    Ok(if status.success() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

/// Builds the program as a part of the whole workspace: with the features of its own package
/// alone, the tests would compile wasmtime a second time.
pub(crate) fn build_program() -> Result<()> {
    run_command(&mut cargo(["build", "--workspace", "--bin", "abide"]))
}

/// Where [`build_program`] puts it.
pub(crate) fn program() -> PathBuf {
    target_dir().join("debug/abide")
}
