//! `abide tasks`: what a running service is to do, and what it has given up.

use clap::{Args, Subcommand};
use serde_json::Value;

use crate::exit::{self, Exit, Stop};
use crate::orders::{text, with_distance};
use crate::output::{self, Format};
use crate::remote::{Remote, percent};
use crate::{table, when};

/// Look at the tasks of a running service.
#[derive(Args, Clone, Debug)]
#[command(after_help = exit::HELP)]
pub(crate) struct Tasks {
    #[command(subcommand)]
    command: Command,
    #[command(flatten)]
    remote: Remote,
    /// The form of the result
    #[arg(long, value_enum, default_value_t, global = true)]
    output: Format,
    /// At most so many
    #[arg(long, value_name = "N", default_value_t = 1000, global = true)]
    most: usize,
}

#[derive(Subcommand, Clone, Debug)]
enum Command {
    /// One line for each task
    List,
    /// One line for each dead letter: a task that failed too often
    Dead,
    /// Make a dead letter a task again, due at once
    Replay {
        /// The order
        order: String,
    },
}

/// Runs the command.
pub(crate) async fn run(args: &Tasks) -> Exit {
    match act(args).await {
        Ok(()) => Exit::Done,
        Err(stop) => output::fail(&stop, args.output),
    }
}

async fn act(args: &Tasks) -> Result<(), Stop> {
    let service = args.remote.connect()?;
    let path = match &args.command {
        Command::List => "/v1/tasks?limit=200",
        Command::Dead => "/v1/dead-letters?limit=200",
        Command::Replay { order } => {
            let path = format!("/v1/dead-letters/{}/replay", percent(order));
            let task = service.post(&path, None).await?;
            return match args.output {
                Format::Json => output::print_json(&task),
                Format::Text => output::print(&rows(&[task], when::now_ms(), table::width())),
            };
        }
    };
    let (tasks, more) = service.all(path, args.most).await?;
    match args.output {
        Format::Json => output::print_json(&Value::Array(tasks)),
        Format::Text => {
            output::print(&rows(&tasks, when::now_ms(), table::width()))?;
            if more {
                output::say(&format!("there are more than {}: give --most", args.most));
            }
            Ok(())
        }
    }
}

fn rows(tasks: &[Value], now: u64, width: usize) -> String {
    if tasks.is_empty() {
        return "none\n".into();
    }
    let header = ["ORDER", "KIND", "DUE", "FAILED", "HELD BY", "REASON"];
    let mut rows = vec![header.map(String::from)];
    for task in tasks {
        let due = with_distance(&task["due"], now);
        rows.push([
            text(&task["order"]),
            text(&task["kind"]),
            due,
            text(&task["retry_count"]),
            text(&task["holder"]),
            text(&task["reason"]),
        ]);
    }
    let mut out = table::lines(&rows, width).join("\n");
    out.push('\n');
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_task_tells_when_it_is_due() {
        let task = json!({
            "order": "0190-a", "kind": "retry", "due": "1970-01-01T01:00:00Z",
            "retry_count": 2, "holder": null, "reason": "",
        });
        let text = rows(&[task], 0, usize::MAX);
        assert!(text.contains("1970-01-01T01:00:00Z (in 1 h)"), "{text}");
        assert_eq!(rows(&[], 0, 80), "none\n");
    }
}
