//! The log: lines for a terminal, JSON for machines.

use abide_host::Telemetry;
use abide_host::wit::telemetry::{Event, Level};
use tracing::level_filters::LevelFilter;

/// How the log is written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Form {
    /// Lines for people.
    #[default]
    Text,
    /// One JSON object on each line.
    Json,
}

/// Writes the log of this process to its standard error from now on.
pub fn start(form: Form, level: LevelFilter, colours: bool) {
    let builder = tracing_subscriber::fmt()
        .with_max_level(level)
        .with_target(false)
        .with_ansi(colours)
        .with_writer(std::io::stderr);
    // A second log in one process is a mistake that costs nothing.
    let _ = match form {
        Form::Text => builder.try_init(),
        Form::Json => builder.json().flatten_event(true).try_init(),
    };
}

/// What the component tells, in the log of the service.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Log;

impl Telemetry for Log {
    fn emit(&self, event: Event) {
        let Event {
            name,
            text,
            transaction_id,
            ..
        } = &event;
        match event.level {
            Level::Debug => tracing::debug!(event = name, transaction = transaction_id, "{text}"),
            Level::Info => tracing::info!(event = name, transaction = transaction_id, "{text}"),
            Level::Warn => tracing::warn!(event = name, transaction = transaction_id, "{text}"),
            Level::Error => tracing::error!(event = name, transaction = transaction_id, "{text}"),
        }
    }
}
