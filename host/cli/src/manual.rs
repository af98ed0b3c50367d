//! `abide manual` and `abide completions`: what a package installs beside the program.

use std::path::{Path, PathBuf};

use clap::{Args, CommandFactory};
use clap_complete::Shell;

use crate::exit::{Exit, Stop};
use crate::output::{self, Format};
use crate::{Cli, files};

/// Write the manual pages, one for each command.
#[derive(Args, Clone, Debug)]
pub(crate) struct Manual {
    /// The folder that they go to
    #[arg(long, value_name = "FOLDER")]
    to: PathBuf,
}

/// Write the completions for a shell to the standard output.
#[derive(Args, Clone, Debug)]
pub(crate) struct Completions {
    /// The shell
    #[arg(value_enum)]
    shell: Shell,
}

/// Runs `abide manual`.
pub(crate) fn manual(args: &Manual) -> Exit {
    let mut command = Cli::command().disable_help_subcommand(true);
    command.build();
    match pages(&command, &args.to) {
        Ok(()) => Exit::Done,
        Err(stop) => output::fail(&stop, Format::Text),
    }
}

/// Runs `abide completions`.
pub(crate) fn completions(args: &Completions) -> Exit {
    let mut text = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "abide", &mut text);
    match output::print(&String::from_utf8_lossy(&text)) {
        Ok(()) => Exit::Done,
        Err(stop) => output::fail(&stop, Format::Text),
    }
}

/// The page of a command and those of its own commands, such as abide-orders-list.1.
fn pages(command: &clap::Command, to: &Path) -> Result<(), Stop> {
    let name = command
        .get_display_name()
        .unwrap_or_else(|| command.get_name());
    let mut page = Vec::new();
    clap_mangen::Man::new(command.clone())
        .render(&mut page)
        .map_err(|error| Stop::host(format!("{name} cannot be described ({error})")))?;
    files::replace("--to", &to.join(format!("{name}.1")), &page)?;
    command
        .get_subcommands()
        .try_for_each(|below| pages(below, to))
}
