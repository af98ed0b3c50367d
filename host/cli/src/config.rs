//! `abide config`: what is wrong with a configuration, and what may be in one.

use std::path::{Path, PathBuf};

use abide_service::config::{ImportError, Mistake, SCHEMA};
use clap::{Args, Subcommand};
use serde_json::{Value, json};

use crate::exit::{self, Exit, Stop};
use crate::output::{self, Format};
use crate::{files, services};

/// Look at the configuration of `abide serve`.
#[derive(Args, Clone, Debug)]
#[command(after_help = exit::HELP)]
pub(crate) struct Config {
    #[command(subcommand)]
    command: Command,
    /// The configuration
    #[arg(long, value_name = "FILE", default_value = "abide.toml", global = true)]
    config: PathBuf,
    /// The form of the result
    #[arg(long, value_enum, default_value_t, global = true)]
    output: Format,
}

#[derive(Subcommand, Clone, Debug)]
enum Command {
    /// Name every mistake with its line
    Check,
    /// The JSON schema of the file
    Schema,
    /// What the file says, as JSON; secrets on it are left out
    Show,
    /// Spinnaker's YAML as TOML for abide, with a comment on what could not be taken over
    Import {
        /// gate.yml, orca.yml, clouddriver.yml or a part of one
        #[arg(value_name = "FILE.yml")]
        file: PathBuf,
    },
}

/// Runs the command.
pub(crate) async fn run(args: &Config) -> Exit {
    let done = match &args.command {
        Command::Schema => output::print(SCHEMA).map(|()| Exit::Done),
        Command::Check => check(args).await,
        Command::Show => show(args).await,
        Command::Import { file } => import(file).await,
    };
    done.unwrap_or_else(|stop| output::fail(&stop, args.output))
}

async fn import(file: &Path) -> Result<Exit, Stop> {
    let bytes = files::read("the file", file)?;
    let text = String::from_utf8(bytes)
        .map_err(|_| Stop::usage(format!("{}: it is no UTF-8", file.display())))?;
    let gate = services::runtime(false)?.gate();
    match abide_service::config::import(&gate, &text).await {
        Ok(toml) => output::print(&toml).map(|()| Exit::Done),
        Err(ImportError::Sandbox(error)) => Err(Stop::host(error.to_string())),
        Err(error) => Err(Stop::usage(format!("{}: {error}", file.display()))),
    }
}

async fn check(args: &Config) -> Result<Exit, Stop> {
    let mut draft = abide_service::check(&args.config)
        .await
        .map_err(|error| Stop::host(error.to_string()))?;
    let warnings = draft.warnings().to_vec();
    let mistakes = draft.mistakes();
    let exit = match mistakes.is_empty() {
        true => Exit::Done,
        false => Exit::Usage,
    };
    match args.output {
        Format::Json => output::print_json(&json!({
            "status": if mistakes.is_empty() { "ok" } else { "error" },
            "exitCode": exit.code(),
            "mistakes": mistakes.iter().map(to_json).collect::<Vec<_>>(),
            "warnings": warnings.iter().map(to_json).collect::<Vec<_>>(),
        }))?,
        Format::Text if mistakes.is_empty() && warnings.is_empty() => {
            output::print(&format!("{}: nothing is wrong\n", args.config.display()))?;
        }
        Format::Text => {
            let mistakes = mistakes.iter().map(ToString::to_string);
            let warnings = warnings.iter().map(|found| format!("{found} (a warning)"));
            let lines: String = mistakes
                .chain(warnings)
                .map(|line| format!("{}\n", crate::text::printable(&line)))
                .collect();
            output::print(&lines)?;
        }
    }
    Ok(exit)
}

fn to_json(mistake: &Mistake) -> Value {
    json!({
        "file": mistake.file,
        "line": mistake.line,
        "column": mistake.column,
        "path": mistake.path,
        "problem": mistake.problem,
    })
}

async fn show(args: &Config) -> Result<Exit, Stop> {
    let mut draft = abide_service::check(&args.config)
        .await
        .map_err(|error| Stop::host(error.to_string()))?;
    if !draft.mistakes().is_empty() {
        return check(args).await;
    }
    let mut json = draft.json().clone();
    veil(&mut json);
    output::print_json(&json)?;
    Ok(Exit::Done)
}

/// A secret that stands in the file itself stays there.
fn veil(value: &mut Value) {
    match value {
        Value::String(text) if text.starts_with("pass:") => *text = "pass:…".to_owned(),
        Value::String(_) | Value::Null | Value::Bool(_) | Value::Number(_) => {}
        Value::Array(items) => items.iter_mut().for_each(veil),
        Value::Object(fields) => fields.values_mut().for_each(veil),
    }
}
