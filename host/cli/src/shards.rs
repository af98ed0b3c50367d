//! `abide shards`: which worker serves an account, and which endpoint an order goes to.

use std::path::PathBuf;

use abide_host::wit::placement::{Considered, Criteria};
use abide_service::config::Draft;
use clap::{Args, Subcommand};
use serde_json::{Value, json};

use crate::exit::{self, Exit, Stop};
use crate::orders::{text, with_distance};
use crate::output::{self, Format};
use crate::remote::{Remote, percent};
use crate::{services, table, when};

/// Look at how work is divided.
#[derive(Args, Clone, Debug)]
#[command(after_help = exit::HELP)]
pub(crate) struct Shards {
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
    /// The workers of a running service, among which accounts are divided
    List,
    /// The worker that serves an account, and why
    Owner {
        /// The account
        #[arg(long, value_name = "NAME")]
        account: String,
    },
    /// The endpoint of an order by a configuration, and why
    Route(Box<Route>),
}

/// What is known about an order.
#[derive(Args, Clone, Debug)]
struct Route {
    /// The configuration; only the endpoints of the issuer need be right
    #[arg(long, value_name = "FILE", default_value = "abide.toml")]
    config: PathBuf,
    /// The issuer
    #[arg(long, value_name = "NAME")]
    issuer: String,
    /// The account
    #[arg(long, value_name = "NAME")]
    account: Option<String>,
    /// The application
    #[arg(long, value_name = "NAME")]
    application: Option<String>,
    /// Who asks for it
    #[arg(long, value_name = "NAME")]
    user: Option<String>,
    /// The cloud provider
    #[arg(long, value_name = "NAME")]
    cloud_provider: Option<String>,
    /// The type of execution
    #[arg(long, value_name = "NAME")]
    execution_type: Option<String>,
    /// Where it comes from
    #[arg(long, value_name = "NAME")]
    origin: Option<String>,
    /// The location
    #[arg(long, value_name = "NAME")]
    location: Option<String>,
    /// Where the user's request came from; the origin when absent
    #[arg(long, value_name = "NAME")]
    user_origin: Option<String>,
}

/// Runs the command.
pub(crate) async fn run(args: &Shards) -> Exit {
    match act(args).await {
        Ok(exit) => exit,
        Err(stop) => output::fail(&stop, args.output),
    }
}

async fn act(args: &Shards) -> Result<Exit, Stop> {
    match &args.command {
        Command::List => {
            let list = args.remote.connect()?.get("/v1/shards").await?;
            show(args.output, &list, workers)?;
        }
        Command::Owner { account } => {
            let path = format!("/v1/shards/owner?account={}", percent(account));
            let owner = args.remote.connect()?.get(&path).await?;
            show(args.output, &owner, because)?;
        }
        Command::Route(given) => return route(given, args.output).await,
    }
    Ok(Exit::Done)
}

fn show(format: Format, answer: &Value, lines: fn(&Value) -> String) -> Result<(), Stop> {
    match format {
        Format::Json => output::print_json(answer),
        Format::Text => output::print(&lines(answer)),
    }
}

fn workers(list: &Value) -> String {
    let mut rows = vec![["WORKER".to_owned(), "HEARTBEAT".to_owned()]];
    for worker in list["workers"].as_array().into_iter().flatten() {
        rows.push([
            text(&worker["worker"]),
            with_distance(&worker["heartbeat"], when::now_ms()),
        ]);
    }
    let (placement, epoch) = (text(&list["placement"]), text(&list["epoch"]));
    format!(
        "{placement}, list number {epoch}\n{}\n",
        table::lines(&rows, table::width()).join("\n")
    )
}

fn because(owner: &Value) -> String {
    let mut rows = vec![["WORKER".to_owned(), "NUMBER".to_owned()]];
    for claim in owner["because"].as_array().into_iter().flatten() {
        rows.push([text(&claim["worker"]), text(&claim["number"])]);
    }
    let name = match owner["owner"].as_str() {
        Some(name) => crate::text::printable(name),
        None => "nobody: there are no workers".to_owned(),
    };
    format!(
        "{name}\nbecause, the owner first\n{}\n",
        table::lines(&rows, table::width()).join("\n")
    )
}

async fn route(given: &Route, format: Format) -> Result<Exit, Stop> {
    let draft = Draft::read(&given.config).await;
    let Some(routing) = draft.routing(&given.issuer) else {
        return Err(Stop::usage(format!(
            "{}: the issuer {:?} is not there or has no `endpoints`",
            given.config.display(),
            given.issuer
        )));
    };
    let host = |error: abide_host::HostError| Stop::host(error.to_string());
    let gate = services::runtime(false)?.gate();
    let router = gate.router(&routing).await.map_err(host)?;
    let router = router.map_err(|mistakes| {
        let lines = mistakes
            .iter()
            .map(|mistake| format!("{}: {}", mistake.path, mistake.problem));
        Stop::usage(lines.collect::<Vec<_>>().join("; "))
    })?;
    let criteria = Criteria {
        application: given.application.clone(),
        account: given.account.clone(),
        user: given.user.clone(),
        cloud_provider: given.cloud_provider.clone(),
        execution_type: given.execution_type.clone(),
        origin: given.origin.clone(),
        location: given.location.clone(),
        user_origin: given.user_origin.clone(),
    };
    let route = router.route(&criteria).await.map_err(host)?;
    let considered = router.explain(&criteria).await.map_err(host)?;
    match format {
        Format::Json => output::print_json(&json!({
            "url": route.as_ref().map(|route| &route.url),
            "entry": route.as_ref().map(|route| &route.entry),
            "why": route.as_ref().map(|route| &route.why),
            "considered": considered.iter().map(entry).collect::<Vec<_>>(),
        }))?,
        Format::Text => {
            let mut rows = vec![["MATCHES", "PRIORITY", "URL", "WHY"].map(String::from)];
            for entry in &considered {
                rows.push([
                    if entry.matches { "yes" } else { "no" }.to_owned(),
                    entry.priority.to_string(),
                    entry.url.clone(),
                    entry.why.clone(),
                ]);
            }
            let chosen = route.as_ref().map_or("none", |route| &route.url);
            output::print(&format!(
                "{chosen}\n{}\n",
                table::lines(&rows, table::width()).join("\n")
            ))?;
        }
    }
    match route {
        Some(_) => Ok(Exit::Done),
        None => Err(Stop::usage(
            "no endpoint matches, and there is no default: add an endpoint without a selector",
        )),
    }
}

fn entry(entry: &Considered) -> Value {
    json!({
        "url": entry.url,
        "entry": entry.entry,
        "priority": entry.priority,
        "matches": entry.matches,
        "why": entry.why,
    })
}
