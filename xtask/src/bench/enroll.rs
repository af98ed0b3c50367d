//! `cargo xtask bench enroll`: what whole enrollments cost, alone, together and waiting. The
//! measuring is done by `bench/abide/src/enroll/`.

use std::process::{Command, ExitCode};

use anyhow::Result;

use super::peer::Pki;
use crate::setup;
use crate::shell::{capture, step, target_dir};

pub(super) fn run() -> Result<ExitCode> {
    setup::peers()?;
    super::build()?;
    step("enrolling");
    let folder = target_dir().join("bench-enroll");
    Pki::make(&folder)?;
    let programs = target_dir().join("release");
    let mut bench = Command::new(programs.join("bench-enroll"));
    print!(
        "{}",
        capture(bench.arg(programs.join("abide")).arg(&folder))?
    );
    Ok(ExitCode::SUCCESS)
}
