//! `abide transactions`: what the store knows.

mod orphans;

use std::fmt::Write as _;
use std::path::PathBuf;
use std::sync::Arc;

use abide_host::wit::transactions::Transaction;
use abide_host::{Enroller, FileKeys, HttpNetwork, NoTelemetry, Services};
use clap::{Args, Subcommand};
use serde_json::{Value, json};

use crate::exit::{self, Exit, Stop};
use crate::output::{self, Format};
use crate::text::printable;
use crate::{pem, services, table as tables, when, words};

/// Records in one call of the component: bounds the memory of the sandbox.
const PAGE: u32 = 100;
/// Hexadecimal digits of a transactionID in a table: enough to name it to `show`.
const SHORT_ID: usize = 12;
/// Letters of a server's URL in a table that fits a terminal.
const SHORT_SERVER: usize = 40;

/// Look at the transactions in the store.
#[derive(Args, Clone, Debug)]
#[command(after_help = exit::HELP)]
pub(crate) struct Transactions {
    #[command(subcommand)]
    command: Command,
    /// The store; $XDG_STATE_HOME/abide/abide.db when absent
    #[arg(long, value_name = "FILE", global = true)]
    store: Option<PathBuf>,
    /// The form of the result
    #[arg(long, value_enum, default_value_t, global = true)]
    output: Format,
    /// Keep no compiled code
    #[arg(long, global = true)]
    no_cache: bool,
}

#[derive(Subcommand, Clone, Debug)]
enum Command {
    /// One line for each transaction
    List,
    /// One transaction with its history
    Show {
        /// The transactionID in hexadecimal, or the beginning of it
        #[arg(value_name = "ID", value_parser = id)]
        id: String,
    },
    /// Those for which the CA may have issued a certificate that never arrived, with what its
    /// operator needs to find and revoke it
    Orphans,
}

fn chain_length(certificates: usize) -> String {
    match certificates {
        0 => "-".to_owned(),
        1 => "1 certificate".to_owned(),
        more => format!("{more} certificates"),
    }
}

fn id(text: &str) -> Result<String, String> {
    if text.is_empty() || !text.chars().all(|c| c.is_ascii_hexdigit()) {
        return Err("a transactionID is written in hexadecimal".into());
    }
    Ok(text.to_ascii_lowercase())
}

/// Runs the command.
pub(crate) async fn run(args: &Transactions) -> Exit {
    match look(args).await {
        Ok(()) => Exit::Done,
        Err(stop) => output::fail(&stop, args.output),
    }
}

async fn look(args: &Transactions) -> Result<(), Stop> {
    let mut all = Vec::new();
    if let Some(store) = services::look_at_store(args.store.as_deref())? {
        let runtime = services::runtime(args.no_cache)?;
        let enroller = runtime.enroller(Services {
            storage: Arc::new(store),
            network: Arc::new(network()?),
            keys: Arc::new(FileKeys::new()),
            telemetry: Arc::new(NoTelemetry),
        });
        all = read_all(&enroller).await?;
    }
    let now = when::now_ms();
    match &args.command {
        Command::List => {
            all.sort_by_key(|one| one.started_ms);
            match args.output {
                Format::Text => output::print(&table(&all, now)),
                Format::Json => output::print_json(&all.iter().map(to_json).collect()),
            }
        }
        Command::Show { id } => {
            let found = find(&all, id)?;
            match args.output {
                Format::Text => output::print(&full(found, now)),
                Format::Json => output::print_json(&to_json(found)),
            }
        }
        Command::Orphans => {
            let total = all.len();
            let orphans = orphans::among(all);
            match args.output {
                Format::Text => output::print(&orphans::table(&orphans, total)),
                Format::Json => output::print_json(&orphans.iter().map(orphans::to_json).collect()),
            }
        }
    }
}

/// Never used: looking at the store sends nothing.
fn network() -> Result<HttpNetwork, Stop> {
    services::network("http://localhost/", &[], None)
}

async fn read_all(enroller: &Enroller) -> Result<Vec<Transaction>, Stop> {
    let mut all = Vec::new();
    let mut cursor: Option<String> = None;
    loop {
        let (page, next) = enroller
            .list(cursor.as_deref(), PAGE)
            .await
            .map_err(|error| Stop::host(error.to_string()))?;
        all.extend(page);
        if next.is_none() || next == cursor {
            return Ok(all);
        }
        cursor = next;
    }
}

fn find<'a>(all: &'a [Transaction], prefix: &str) -> Result<&'a Transaction, Stop> {
    let matching: Vec<&Transaction> = all
        .iter()
        .filter(|one| one.transaction_id.starts_with(prefix))
        .collect();
    match matching[..] {
        [one] => Ok(one),
        [] => Err(Stop::usage(format!(
            "no transaction begins with {prefix}; abide transactions list shows them all"
        ))),
        [first, second, ..] => Err(Stop::usage(format!(
            "{} transactions begin with {prefix}, such as {} and {}; give more digits",
            matching.len(),
            first.transaction_id,
            second.transaction_id
        ))),
    }
}

fn table(all: &[Transaction], now: u64) -> String {
    if all.is_empty() {
        return "no transactions\n".into();
    }
    let header = [
        "TRANSACTION",
        "CMD",
        "PHASE",
        "STARTED",
        "NEXT",
        "POLLS",
        "SERVER",
    ];
    let mut rows = vec![header.map(String::from)];
    for one in all {
        rows.push([
            cut(&one.transaction_id, SHORT_ID),
            words::operation(one.operation).into(),
            words::phase(one.phase).into(),
            when::distance(now, one.started_ms),
            one.due_ms
                .map_or("-".into(), |due| when::distance(now, due)),
            one.polls.to_string(),
            cut(&printable(&one.server), SHORT_SERVER),
        ]);
    }
    let mut out = tables::lines(&rows, usize::MAX).join("\n");
    out.push('\n');
    let orphans = all.iter().filter(|one| orphans::is_one(one)).count();
    if orphans > 0 {
        writeln!(
            out,
            "{}: see abide transactions orphans",
            orphans::count(orphans)
        )
        .expect("a String takes all");
    }
    out
}

fn cut(text: &str, letters: usize) -> String {
    match text.char_indices().nth(letters) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.into(),
    }
}

fn full(one: &Transaction, now: u64) -> String {
    let time = |at| format!("{} ({})", when::utc(at), when::distance(now, at));
    let mut rows = vec![
        ("transactionID", one.transaction_id.clone()),
        ("order", one.order.clone()),
        ("account", one.account.clone()),
        ("operation", words::operation(one.operation).into()),
        ("server", one.server.clone()),
        ("phase", words::phase(one.phase).into()),
        ("confirmation", words::confirmation(one.confirmation).into()),
        ("started", time(one.started_ms)),
        ("updated", time(one.updated_ms)),
        ("deadline", time(one.deadline_ms)),
        ("next step", one.due_ms.map_or("none".into(), time)),
        ("polls", one.polls.to_string()),
        (
            "certReqId",
            one.cert_req_id.map_or("-".into(), |id| id.to_string()),
        ),
        ("csrDigest", one.csr_digest.clone()),
        ("issuerDigest", one.issuer_digest.clone()),
        ("configurationDigest", one.configuration_digest.clone()),
        ("chain", chain_length(one.chain.len())),
    ];
    if let Some(failure) = &one.failure {
        rows.push(("failure", words::failure_line(failure)));
        rows.push(("failure class", words::class(failure.class).into()));
    }
    let mut out = String::new();
    for (name, value) in rows {
        if !value.is_empty() {
            writeln!(out, "{name:<20} {}", printable(&value)).expect("a String takes all");
        }
    }
    out.push_str("history\n");
    for entry in &one.history {
        let at = when::utc(entry.at_ms);
        writeln!(out, "  {at}  {}", printable(&entry.text)).expect("a String takes all");
    }
    out
}

fn to_json(one: &Transaction) -> Value {
    let history: Vec<Value> = one
        .history
        .iter()
        .map(|entry| json!({ "at": when::utc(entry.at_ms), "text": entry.text }))
        .collect();
    json!({
        "transactionID": one.transaction_id,
        "order": one.order,
        "account": one.account,
        "operation": words::operation(one.operation),
        "server": one.server,
        "phase": words::phase(one.phase),
        "confirmation": words::confirmation(one.confirmation),
        "started": when::utc(one.started_ms),
        "updated": when::utc(one.updated_ms),
        "deadline": when::utc(one.deadline_ms),
        "nextAttempt": one.due_ms.map(when::utc),
        "polls": one.polls,
        "certReqId": one.cert_req_id,
        "csrDigest": one.csr_digest,
        "issuerDigest": one.issuer_digest,
        "configurationDigest": one.configuration_digest,
        "chain": pem::encode_certificates(&one.chain),
        "failure": one.failure.as_ref().map(words::failure_json),
        "history": history,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use abide_host::wit::transactions::{Confirmation, HistoryEntry, Operation, Phase};

    pub(super) fn transaction(id: &str) -> Transaction {
        Transaction {
            transaction_id: id.into(),
            order: "o".into(),
            account: String::new(),
            operation: Operation::P10cr,
            server: "http://127.0.0.1:8080/pkix/".into(),
            phase: Phase::Polling,
            started_ms: 1_000_000,
            deadline_ms: 2_000_000,
            updated_ms: 1_500_000,
            due_ms: Some(1_505_000),
            polls: 3,
            cert_req_id: Some(-1),
            csr_digest: "aa".into(),
            issuer_digest: "bb".into(),
            configuration_digest: "cc".into(),
            confirmation: Confirmation::Open,
            chain: Vec::new(),
            failure: None,
            history: vec![HistoryEntry {
                at_ms: 1_000_000,
                text: "began\x1b[2J".into(),
            }],
        }
    }

    #[test]
    fn a_prefix_must_be_unambiguous() {
        let all = [transaction("00aa"), transaction("00ab"), transaction("01")];
        assert_eq!(find(&all, "01").unwrap().transaction_id, "01");
        assert_eq!(find(&all, "00aa").unwrap().transaction_id, "00aa");
        assert!(
            find(&all, "00a")
                .unwrap_err()
                .message
                .contains("2 transactions")
        );
        assert!(
            find(&all, "ff")
                .unwrap_err()
                .message
                .contains("no transaction")
        );
        assert_eq!(id("00AA").as_deref(), Ok("00aa"));
        assert!(id("xyz").is_err());
    }

    #[test]
    fn the_table_is_aligned_and_relative_to_now() {
        let text = table(
            &[transaction("00112233445566778899aabbccddeeff")],
            1_500_000,
        );
        let expected = "\
TRANSACTION    CMD    PHASE    STARTED        NEXT    POLLS  SERVER
001122334455…  p10cr  polling  8 min 20 s ago  in 5 s  3      http://127.0.0.1:8080/pkix/
"
        .replace("STARTED        NEXT", "STARTED         NEXT");
        assert_eq!(text, expected);
        assert_eq!(table(&[], 0), "no transactions\n");
    }

    #[test]
    fn the_record_is_complete_and_safe_for_a_terminal() {
        let text = full(&transaction("00ff"), 1_500_000);
        assert!(
            text.contains("next step            1970-01-01T00:25:05Z (in 5 s)\n"),
            "{text}"
        );
        assert!(text.contains("certReqId            -1\n"), "{text}");
        assert!(
            text.ends_with("  1970-01-01T00:16:40Z  began\\u{1b}[2J\n"),
            "{text}"
        );
        assert!(!text.contains("account"), "{text}");
        assert_eq!(
            to_json(&transaction("00ff"))["nextAttempt"],
            "1970-01-01T00:25:05Z"
        );
    }
}
