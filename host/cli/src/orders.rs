//! `abide orders`: orders of a running service.

use std::fmt::Write as _;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand, ValueEnum};
use serde_json::{Map, Value, json};

use crate::exit::{self, Exit, Stop};
use crate::interrupt::Interrupt;
use crate::output::{self, Format};
use crate::remote::{Remote, Service, percent};
use crate::text::printable;
use crate::{files, names, pem, table, when};

/// Between two looks of `watch`.
const LOOK: Duration = Duration::from_millis(500);

/// Ask a running service for certificates, and look at what it has.
#[derive(Args, Clone, Debug)]
#[command(after_help = exit::HELP)]
pub(crate) struct Orders {
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
    /// Ask for a certificate
    Create(Box<Create>),
    /// One line for each order
    List(List),
    /// One order with its history
    Show {
        /// The order
        id: String,
    },
    /// Another certificate at once
    Renew {
        /// The order
        id: String,
    },
    /// End an order; its certificate stays
    Cancel {
        /// The order
        id: String,
        /// One line for the history
        #[arg(
            long,
            value_name = "TEXT",
            default_value = "",
            hide_default_value = true
        )]
        why: String,
        /// Whatever holds it: its worker is stopped, and what the CA may still issue for it is a
        /// declared orphan
        #[arg(long)]
        force: bool,
    },
    /// Follow an order until it has its certificate, or fails
    Watch {
        /// The order
        id: String,
    },
    /// The newest certificate and its chain
    Certificate {
        /// The order
        id: String,
        /// Where it goes; the standard output when absent
        #[arg(long, value_name = "FILE")]
        chainout: Option<PathBuf>,
    },
}

/// A wish.
#[derive(Args, Clone, Debug)]
struct Create {
    /// The issuer by its name in the configuration; may be absent where there is only one
    #[arg(long, value_name = "NAME")]
    issuer: Option<String>,
    /// A PKCS #10 request, whose key stays with you
    #[arg(long, value_name = "FILE", conflicts_with_all = ["subject", "sans", "key_kind"])]
    csr: Option<PathBuf>,
    /// The subject as /CN=…/O=…, for a key that the service makes
    #[arg(long, value_name = "DN", value_parser = names::distinguished_name)]
    subject: Option<String>,
    /// Alternative names, separated by commas: DNS names, IP and mail addresses, URIs
    #[arg(long, value_name = "LIST")]
    sans: Option<String>,
    /// The kind of key that the service makes; ec-p256 when absent
    #[arg(long, value_enum, value_name = "KIND")]
    key_kind: Option<KeyKind>,
    /// Keep the key for all certificates of this order
    #[arg(long)]
    keep_key: bool,
    /// Do not renew the certificate
    #[arg(long)]
    once: bool,
    /// The idempotency key: the same wish under the same key is the same order
    #[arg(long, value_name = "KEY")]
    key: Option<String>,
    /// For whom it is
    #[arg(
        long,
        value_name = "NAME",
        default_value = "",
        hide_default_value = true
    )]
    account: String,
    /// What it is for
    #[arg(
        long,
        value_name = "NAME",
        default_value = "",
        hide_default_value = true
    )]
    application: String,
    /// Follow the order until it has its certificate, or fails
    #[arg(long)]
    wait: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
#[value(rename_all = "kebab-case")]
enum KeyKind {
    EcP256,
    EcP384,
    EcP521,
    #[value(name = "rsa2048")]
    Rsa2048,
    #[value(name = "rsa3072")]
    Rsa3072,
    #[value(name = "rsa4096")]
    Rsa4096,
    Ed25519,
}

/// Which orders.
#[derive(Args, Clone, Debug)]
struct List {
    /// Only those of this account
    #[arg(long, value_name = "NAME")]
    account: Option<String>,
    /// Only those in this state, such as ACTIVE
    #[arg(long, value_name = "STATE")]
    state: Option<String>,
    /// At most so many
    #[arg(long, value_name = "N", default_value_t = 1000)]
    most: usize,
}

/// Runs the command.
pub(crate) async fn run(args: &Orders) -> Exit {
    match act(args).await {
        Ok(exit) => exit,
        Err(stop) => output::fail(&stop, args.output),
    }
}

async fn act(args: &Orders) -> Result<Exit, Stop> {
    let service = args.remote.connect()?;
    let order = match &args.command {
        Command::Create(create) => {
            let order = service.post("/v1/orders", Some(&wish(create)?)).await?;
            if create.wait {
                let id = order["id"].as_str().unwrap_or_default().to_owned();
                return watch(&service, &id, args.output).await;
            }
            order
        }
        Command::List(list) => return show_list(&service, list, args.output).await,
        Command::Show { id } => service.get(&path(id, "")).await?,
        Command::Renew { id } => service.post(&path(id, "/renew"), None).await?,
        Command::Cancel {
            id,
            why,
            force: true,
        } => {
            let (id, why) = (percent(id), percent(why));
            let path = format!("/v1/admin/force-cancel?executionId={id}&reason={why}");
            service.put(&path).await?
        }
        Command::Cancel { id, why, .. } => {
            let body = json!({ "why": why });
            service.post(&path(id, "/cancel"), Some(&body)).await?
        }
        Command::Watch { id } => return watch(&service, id, args.output).await,
        Command::Certificate { id, chainout } => {
            let chain = service.text(&path(id, "/certificate")).await?;
            match chainout {
                Some(file) => files::replace("--chainout", file, chain.as_bytes())?,
                None => output::print(&chain)?,
            }
            return Ok(Exit::Done);
        }
    };
    match args.output {
        Format::Json => output::print_json(&order)?,
        Format::Text => output::print(&full(&order, when::now_ms()))?,
    }
    Ok(Exit::Done)
}

fn path(id: &str, rest: &str) -> String {
    format!("/v1/orders/{}{rest}", percent(id))
}

fn wish(create: &Create) -> Result<Value, Stop> {
    let mut wish = Map::new();
    let mut put = |name: &str, value: Option<Value>| {
        if let Some(value) = value {
            wish.insert(name.to_owned(), value);
        }
    };
    put("issuer", create.issuer.clone().map(Value::from));
    put("key", create.key.clone().map(Value::from));
    put("account", Some(create.account.clone().into()));
    put("application", Some(create.application.clone().into()));
    put("origin", Some("cli".into()));
    // Somebody sits there.
    put("by_hand", create.wait.then(|| true.into()));
    put("renews", Some((!create.once).into()));
    if let Some(file) = &create.csr {
        let csr = pem::encode("CERTIFICATE REQUEST", &pem::request("--csr", file)?);
        put("csr", Some(csr.into()));
        return Ok(Value::Object(wish));
    }
    let sans = create.sans.as_deref().map(names::alternative_names);
    let sans = sans
        .transpose()
        .map_err(|error| Stop::usage(format!("--sans: {error}")))?;
    if create.subject.is_none() && sans.is_none() {
        return Err(Stop::usage(
            "what is to be certified? Give --csr FILE, or --subject /CN=… or --sans LIST",
        ));
    }
    put("subject", create.subject.clone().map(Value::from));
    put("sans", sans.map(Value::from));
    put("rotate", Some((!create.keep_key).into()));
    let kind = create.key_kind.and_then(|kind| kind.to_possible_value());
    put("key_kind", kind.map(|kind| kind.get_name().into()));
    Ok(Value::Object(wish))
}

async fn show_list(service: &Service, list: &List, format: Format) -> Result<Exit, Stop> {
    let mut path = "/v1/orders?limit=200".to_owned();
    for (name, value) in [("account", &list.account), ("state", &list.state)] {
        if let Some(value) = value {
            path.push_str(&format!("&{name}={}", percent(value)));
        }
    }
    let (orders, more) = service.all(&path, list.most).await?;
    match format {
        Format::Json => output::print_json(&Value::Array(orders))?,
        Format::Text => {
            output::print(&rows(&orders, when::now_ms(), table::width()))?;
            if more {
                output::say(&format!("there are more than {}: give --most", list.most));
            }
        }
    }
    Ok(Exit::Done)
}

fn rows(orders: &[Value], now: u64, width: usize) -> String {
    if orders.is_empty() {
        return "no orders\n".into();
    }
    let header = ["ORDER", "STATE", "ISSUER", "ACCOUNT", "NEXT", "REASON"];
    let mut rows = vec![header.map(String::from)];
    for order in orders {
        let next = [&order["next_attempt_at"], &order["renewal_at"]]
            .into_iter()
            .find_map(|time| when::from_rfc3339(time.as_str()?));
        rows.push([
            text(&order["id"]),
            text(&order["state"]),
            text(&order["issuer"]),
            text(&order["account"]),
            next.map_or("-".into(), |at| when::distance(now, at)),
            text(&order["reason"]),
        ]);
    }
    let mut out = table::lines(&rows, width).join("\n");
    out.push('\n');
    out
}

/// A value as people read it, safe for a terminal.
pub(crate) fn text(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => printable(text),
        Value::Array(items) => {
            let items: Vec<String> = items.iter().map(text).collect();
            items.join(", ")
        }
        other => other.to_string(),
    }
}

/// A time with its distance; other values as they are.
pub(crate) fn with_distance(value: &Value, now: u64) -> String {
    let shown = text(value);
    match when::from_rfc3339(&shown) {
        Some(at) => format!("{shown} ({})", when::distance(now, at)),
        None => shown,
    }
}

fn full(order: &Value, now: u64) -> String {
    let mut out = String::new();
    let mut line = |name: &str, value: &Value| {
        let value = with_distance(value, now);
        if !value.is_empty() {
            writeln!(out, "{name:<20} {value}").expect("a String takes all");
        }
    };
    line("order", &order["id"]);
    for name in [
        "state",
        "reason",
        "issuer",
        "account",
        "application",
        "origin",
        "principal",
    ] {
        line(name, &order[name]);
    }
    for name in ["subject", "sans", "key_kind", "csr_sha256"] {
        line(name, &order["request"][name]);
    }
    for name in [
        "renews",
        "revision",
        "created",
        "updated",
        "issuance_attempts",
        "last_failure_time",
        "next_attempt_at",
        "renewal_at",
        "not_after",
        "certificate_sha256",
        "key_name",
        "transaction_id",
    ] {
        line(name, &order[name]);
    }
    for name in ["class", "reason", "advice", "fail_info"] {
        line(&format!("failure {name}"), &order["failure"][name]);
    }
    for name in ["state", "delivered", "error", "next_attempt_at"] {
        line(&format!("delivery {name}"), &order["delivery"][name]);
    }
    out.push_str("history\n");
    for entry in order["history"].as_array().into_iter().flatten() {
        writeln!(out, "  {}  {}", text(&entry["at"]), text(&entry["text"]))
            .expect("a String takes all");
    }
    out
}

/// Tells each change of an order until it has its certificate, or an attempt failed.
async fn watch(service: &Service, id: &str, format: Format) -> Result<Exit, Stop> {
    let mut interrupt = Interrupt::new();
    let mut revision = Value::Null;
    loop {
        let order = service.get(&path(id, "")).await?;
        if order["revision"] != revision {
            revision = order["revision"].clone();
            if format == Format::Text {
                output::print(&format!(
                    "{}  {:<11}  {}\n",
                    when::utc(when::now_ms()),
                    text(&order["state"]),
                    text(&order["reason"])
                ))?;
            }
        }
        let end = match order["state"].as_str() {
            Some("ACTIVE") => Some(Exit::Done),
            Some("ERROR") => Some(Exit::Refused),
            Some("CANCELED") => Some(Exit::Refused),
            _ => None,
        };
        if let Some(exit) = end {
            if format == Format::Json {
                output::print_json(&order)?;
            }
            return Ok(exit);
        }
        tokio::select! {
            () = tokio::time::sleep(LOOK) => {}
            () = interrupt.caught() => return Ok(Exit::Waiting),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_tells_times_as_distances() {
        let order = json!({
            "id": "0190-a", "state": "ERROR", "issuer": "test", "account": "",
            "next_attempt_at": "1970-01-01T03:12:00Z", "reason": "refused\u{1b}[2J",
        });
        let text = rows(&[order], 0, usize::MAX);
        assert!(text.contains("in 3 h 12 min"), "{text}");
        assert!(!text.contains('\u{1b}'), "{text}");
        assert_eq!(rows(&[], 0, 80), "no orders\n");
    }

    #[test]
    fn an_order_is_shown_with_its_history() {
        let order = json!({
            "id": "0190-a", "state": "ACTIVE", "not_after": "1970-01-02T00:00:00Z",
            "request": { "sans": ["DNS:a", "DNS:b"] },
            "history": [{ "at": "1970-01-01T00:00:00Z", "text": "accepted" }],
        });
        let text = full(&order, 0);
        assert!(
            text.contains("not_after            1970-01-02T00:00:00Z (in 1 d)\n"),
            "{text}"
        );
        assert!(text.contains("DNS:a, DNS:b"), "{text}");
        assert!(
            text.ends_with("  1970-01-01T00:00:00Z  accepted\n"),
            "{text}"
        );
    }
}
