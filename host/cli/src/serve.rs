//! `abide serve`: orders as a service.

use std::io::IsTerminal;
use std::path::PathBuf;

use abide_service::config::Mistake;
use abide_service::log::{self, Form};
use abide_service::{Service, StartError};
use clap::{Args, ValueEnum};
use tracing::level_filters::LevelFilter;

use crate::exit::{self, Exit, Stop};
use crate::interrupt::Interrupt;
use crate::output::{self, Format};

/// Obtain and renew certificates as a service, with an HTTP API.
#[derive(Args, Clone, Debug)]
#[command(after_help = exit::HELP)]
pub(crate) struct Serve {
    /// The configuration; `abide config schema` tells what may be in it
    #[arg(long, value_name = "FILE", default_value = "abide.toml")]
    config: PathBuf,
    #[command(flatten)]
    log: Log,
}

/// How a long-running command logs.
#[derive(Args, Clone, Copy, Debug)]
pub(crate) struct Log {
    /// The form of the log on the standard error
    #[arg(long, value_enum, default_value_t, value_name = "FORM")]
    log: LogForm,
    /// How much is logged
    #[arg(long, value_enum, default_value_t, value_name = "LEVEL")]
    log_level: LogLevel,
}

impl Log {
    /// From now on.
    pub(crate) fn start(self) {
        let form = match self.log {
            LogForm::Text => Form::Text,
            LogForm::Json => Form::Json,
        };
        let level = match self.log_level {
            LogLevel::Error => LevelFilter::ERROR,
            LogLevel::Warn => LevelFilter::WARN,
            LogLevel::Info => LevelFilter::INFO,
            LogLevel::Debug => LevelFilter::DEBUG,
        };
        log::start(form, level, std::io::stderr().is_terminal());
    }
}

/// The form of the log.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
enum LogForm {
    /// Lines for people
    #[default]
    Text,
    /// One JSON object on each line
    Json,
}

/// How much is logged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
enum LogLevel {
    /// Only what needs somebody
    Error,
    /// Also what may need somebody
    Warn,
    /// Also what happens to orders
    #[default]
    Info,
    /// Also each request and each message
    Debug,
}

/// Runs the command until it is told to stop.
pub(crate) async fn run(args: &Serve) -> Exit {
    args.log.start();
    // Heard from now on: whoever stops a service that just starts means it too.
    let mut interrupt = Interrupt::new();
    let service = tokio::select! {
        started = Service::start(&args.config) => match started {
            Ok(service) => service,
            Err(error) => return fail(error),
        },
        () = interrupt.caught() => return Exit::Done,
    };
    // A line that scripts can wait for.
    if let Err(stop) = output::print(&format!("{}\n", service.url())) {
        return output::fail(&stop, Format::Text);
    }
    service.run(interrupt.caught()).await;
    Exit::Done
}

fn fail(error: StartError) -> Exit {
    match error {
        StartError::Config(mistakes) => mistaken(&mistakes),
        other => output::fail(&Stop::host(other.to_string()), Format::Text),
    }
}

/// Names every mistake of a configuration.
pub(crate) fn mistaken(mistakes: &[Mistake]) -> Exit {
    for mistake in mistakes {
        output::say(&mistake.to_string());
    }
    let count = mistakes.len();
    let stop = Stop::usage(format!(
        "the configuration has {count} {}",
        if count == 1 { "mistake" } else { "mistakes" }
    ));
    output::fail(&stop, Format::Text)
}
