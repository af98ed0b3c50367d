//! The two streams: results go to the standard output, progress and errors to the
//! standard error. Nothing here panics when a reader has gone away.

use std::io::Write;

use clap::ValueEnum;
use serde_json::{Map, Value};

use crate::exit::{Exit, Stop};
use crate::text::printable;

/// The form of a result.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// For people
    #[default]
    Text,
    /// One JSON object
    Json,
}

/// Writes a result. Whoever asked for it and cannot be told must learn so from
/// the exit code.
pub(crate) fn print(text: &str) -> Result<(), Stop> {
    let mut out = std::io::stdout().lock();
    out.write_all(text.as_bytes())
        .and_then(|()| out.flush())
        .map_err(|error| Stop::host(format!("the result cannot be written to stdout ({error})")))
}

/// Writes a JSON value as a result.
pub(crate) fn print_json(value: &Value) -> Result<(), Stop> {
    print(&format!("{value:#}\n"))
}

/// Writes one line of progress. It helps a person and nothing depends on it.
pub(crate) fn say(line: &str) {
    let _ = writeln!(std::io::stderr().lock(), "{}", printable(line));
}

/// Reports why a command has ended, in the form that was asked for.
pub(crate) fn fail(stop: &Stop, format: Format) -> Exit {
    say(&format!("abide: {stop}"));
    if format == Format::Json {
        let mut object = Map::new();
        object.insert("status".into(), "error".into());
        object.insert("exitCode".into(), stop.exit.code().into());
        object.insert("reason".into(), stop.message.clone().into());
        if let Err(silent) = print_json(&Value::Object(object)) {
            return silent.exit;
        }
    }
    stop.exit
}
