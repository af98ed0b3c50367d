//! `cargo xtask bench schedule`: what sharing tasks costs. The measuring is done by
//! `bench/abide/src/schedule/`.

use std::fs;
use std::process::{Command, ExitCode};

use anyhow::Result;

use crate::setup;
use crate::shell::{run as run_command, step, target_dir};

pub(super) fn run() -> Result<ExitCode> {
    setup::peers()?;
    super::build()?;
    step("claiming and completing");
    let folder = target_dir().join("bench-schedule");
    if folder.exists() {
        fs::remove_dir_all(&folder)?;
    }
    fs::create_dir_all(&folder)?;
    run_command(Command::new(target_dir().join("release/bench-schedule")).arg(&folder))?;
    fs::remove_dir_all(&folder)?;
    Ok(ExitCode::SUCCESS)
}
