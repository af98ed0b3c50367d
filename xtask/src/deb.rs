//! `cargo xtask deb`: the Debian package, with the manual and the completions that the program
//! itself writes.

use std::fs::{self, File};
use std::process::{Command, ExitCode};

use anyhow::{Context, Result};

use crate::setup;
use crate::shell::{cargo, run as run_command, step, succeeds, target_dir};

/// The tool that makes the package.
const TOOL: &str = "cargo-deb";

/// Runs the command.
pub(crate) fn run() -> Result<ExitCode> {
    setup::for_building()?;
    if !succeeds(&mut cargo(["deb", "--version"])) {
        step(format!("installing {TOOL}"));
        run_command(&mut cargo(["install", "--locked", "--quiet", TOOL]))?;
    }
    step("building abide");
    run_command(&mut cargo([
        "build",
        "--release",
        "--locked",
        "--bin",
        "abide",
    ]))?;
    let program = target_dir().join("release/abide");
    let manual = target_dir().join("man");
    fs::create_dir_all(&manual)?;
    run_command(Command::new(&program).args(["manual", "--to"]).arg(&manual))?;
    let folder = target_dir().join("completions");
    fs::create_dir_all(&folder)?;
    for (shell, file) in [("bash", "abide.bash"), ("zsh", "_abide")] {
        let path = folder.join(file);
        let out = File::create(&path).with_context(|| path.display().to_string())?;
        run_command(
            Command::new(&program)
                .args(["completions", shell])
                .stdout(out),
        )?;
    }
    step("making the package");
    run_command(&mut cargo([
        "deb",
        "--no-build",
        "--locked",
        "--package",
        "abide",
    ]))?;
    Ok(ExitCode::SUCCESS)
}
