//! `abide zombies`: orders of a running service that nobody works on any more.

use clap::{Args, Subcommand};
use serde_json::Value;

use crate::exit::{self, Exit, Stop};
use crate::orders::{text, with_distance};
use crate::output::{self, Format};
use crate::remote::{Remote, percent};
use crate::{table, when};

/// Find and bring back orders that need a task and have none.
#[derive(Args, Clone, Debug)]
#[command(after_help = exit::HELP)]
pub(crate) struct Zombies {
    #[command(subcommand)]
    command: Command,
    #[command(flatten)]
    remote: Remote,
    /// The form of the result
    #[arg(long, value_enum, default_value_t, global = true)]
    output: Format,
}

#[derive(Subcommand, Clone, Debug)]
enum Command {
    /// One line for each zombie
    List {
        /// At most so many
        #[arg(long, value_name = "N", default_value_t = 1000)]
        most: usize,
    },
    /// Say what would bring them back, or do it
    Hydrate(Hydrate),
}

/// Which, and whether.
#[derive(Args, Clone, Debug)]
struct Hydrate {
    /// One order
    #[arg(long, value_name = "ID", required_unless_present = "from")]
    order: Option<String>,
    /// Zombies that were accepted from this time on, as 2026-06-01T00:00:00Z
    #[arg(long, value_name = "TIME", requires = "to", conflicts_with = "order", value_parser = time)]
    from: Option<String>,
    /// Zombies that were accepted until this time; it belongs to the range
    #[arg(long, value_name = "TIME", requires = "from", value_parser = time)]
    to: Option<String>,
    /// Do it; without this it is only said what would be done
    #[arg(long)]
    apply: bool,
    /// Also an order that seems alive
    #[arg(long, requires = "order")]
    force: bool,
}

fn time(text: &str) -> Result<String, String> {
    match when::from_rfc3339(text) {
        Some(_) => Ok(text.to_owned()),
        None => Err("this is no time: give one in UTC, as 2026-06-01T00:00:00Z".to_owned()),
    }
}

/// Runs the command.
pub(crate) async fn run(args: &Zombies) -> Exit {
    match act(args).await {
        Ok(()) => Exit::Done,
        Err(stop) => output::fail(&stop, args.output),
    }
}

async fn act(args: &Zombies) -> Result<(), Stop> {
    let service = args.remote.connect()?;
    match &args.command {
        Command::List { most } => {
            let (zombies, more) = service.all("/v1/zombies?limit=200", *most).await?;
            if args.output == Format::Json {
                return output::print_json(&Value::Array(zombies));
            }
            output::print(&rows(&zombies, when::now_ms(), table::width()))?;
            if more {
                output::say(&format!("there are more than {most}: give --most"));
            }
            Ok(())
        }
        Command::Hydrate(hydrate) => {
            let plan = service.post(&hydrate.path(), None).await?;
            match args.output {
                Format::Json => output::print_json(&plan),
                Format::Text => output::print(&plan_text(&plan, when::now_ms())),
            }
        }
    }
}

impl Hydrate {
    fn path(&self) -> String {
        let which = match (&self.order, &self.from, &self.to) {
            (Some(order), _, _) => format!("executionId={}", percent(order)),
            (None, Some(from), Some(to)) => {
                format!("from={}&to={}", percent(from), percent(to))
            }
            // Not allowed by the command line; the service says so.
            (None, _, _) => String::new(),
        };
        let force = if self.force { "&force=true" } else { "" };
        let dry_run = !self.apply;
        format!("/v1/admin/queue/hydrate?{which}&dryRun={dry_run}{force}")
    }
}

fn rows(zombies: &[Value], now: u64, width: usize) -> String {
    if zombies.is_empty() {
        return "none\n".into();
    }
    let header = ["ORDER", "STATE", "ACCOUNT", "LAST PROGRESS", "REASON"];
    let mut rows = vec![header.map(String::from)];
    for zombie in zombies {
        rows.push([
            text(&zombie["order"]),
            text(&zombie["state"]),
            text(&zombie["account"]),
            with_distance(&zombie["last_progress"], now),
            text(&zombie["reason"]),
        ]);
    }
    let mut out = table::lines(&rows, width).join("\n");
    out.push('\n');
    out
}

/// The plan, or what was done.
fn plan_text(plan: &Value, now: u64) -> String {
    let mut out = String::new();
    let none = serde_json::Map::new();
    let executions = plan["executions"].as_object().unwrap_or(&none);
    if executions.is_empty() {
        out.push_str("nothing to hydrate\n");
    }
    for (id, execution) in executions {
        let verdict = match (
            execution["applied"] == true,
            execution["canApply"] == true,
            execution["refused"].as_str(),
        ) {
            (true, _, _) => "hydrated".to_owned(),
            (_, _, Some(why)) => format!("left alone: {why}"),
            (_, true, _) => "can be hydrated".to_owned(),
            _ => "cannot be hydrated: left as it is".to_owned(),
        };
        out.push_str(&format!("{}  {verdict}\n", crate::text::printable(id)));
        for action in execution["actions"].as_array().into_iter().flatten() {
            out.push_str(&format!("    {}\n", text(&action["description"])));
            if let Some(message) = action["message"].as_object() {
                let at = with_distance(&message["retryAt"], now);
                out.push_str(&format!("    task {} at {at}\n", text(&message["kind"])));
            }
            for (name, value) in action["context"].as_object().into_iter().flatten() {
                let name = crate::text::printable(name);
                out.push_str(&format!("    {name} {}\n", text(value)));
            }
        }
    }
    if plan["more"] == true {
        out.push_str("there are more: give the command again, or a smaller range\n");
    }
    if plan["dryRun"] == true && executions.values().any(|one| one["canApply"] == true) {
        out.push_str("nothing was done: give --apply to do it\n");
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_plan_says_what_it_would_do_and_that_it_did_not() {
        let plan = json!({
            "dryRun": true, "more": false, "executions": { "0190-a": {
                "startTime": 0, "canApply": true, "applied": false,
                "actions": [{
                    "description": "The CA asked to be polled: poll it",
                    "message": { "kind": "poll", "retryAt": "1970-01-01T01:00:00Z" },
                    "context": { "transactionID": "00ff" },
                }],
            } },
        });
        assert_eq!(
            plan_text(&plan, 0),
            "0190-a  can be hydrated\n    \
             The CA asked to be polled: poll it\n    \
             task poll at 1970-01-01T01:00:00Z (in 1 h)\n    \
             transactionID 00ff\n\
             nothing was done: give --apply to do it\n"
        );
    }

    #[test]
    fn a_range_is_part_of_the_path() {
        let hydrate = Hydrate {
            order: None,
            from: Some("2026-06-01T00:00:00Z".into()),
            to: Some("2026-06-02T00:00:00Z".into()),
            apply: true,
            force: false,
        };
        assert_eq!(
            hydrate.path(),
            "/v1/admin/queue/hydrate?from=2026-06-01T00%3A00%3A00Z&to=2026-06-02T00%3A00%3A00Z\
             &dryRun=false"
        );
    }
}
