//! `abide store`: copies of the store for the day it is lost, and whether it is whole.
//!
//! A backup is a folder: `store.db`, and `keys` with the private keys that the service made. A
//! certificate whose key is lost is worth nothing, so one is not copied without the other.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use abide_host::wit::orders::OrderFilter;
use abide_host::wit::storage::{Filter, StorageError};
use abide_host::{
    Enroller, FileKeys, NoTelemetry, OrderCallError, Services, SqliteStorage, Storage,
};
use clap::{Args, Subcommand};
use serde_json::{Value, json};

use crate::exit::{self, Exit, Stop};
use crate::output::{self, Format};
use crate::text::printable;
use crate::{files, paths, services};

/// The parts of a backup.
const STORE: &str = "store.db";
const KEYS: &str = "keys";

/// Records in one page.
const PAGE: u32 = 200;

/// What is told of many findings.
const FINDINGS: usize = 20;

/// The families of records, as ARCHITECTURE has them.
const KINDS: [&str; 8] = [
    "transaction",
    "order",
    "standing-order",
    "task",
    "dead-letter",
    "client-key",
    "delivery",
    "endpoint",
];

/// Back up, restore and check the store of a service in a file. PostgreSQL has pg_dump for that.
#[derive(Args, Clone, Debug)]
#[command(after_help = exit::HELP)]
pub(crate) struct Store {
    #[command(subcommand)]
    command: Command,
    /// The store; $XDG_STATE_HOME/abide/abide.db when absent
    #[arg(long, value_name = "FILE", global = true)]
    store: Option<PathBuf>,
    /// The folder of the keys that the service made; `keys` beside the store when absent
    #[arg(long, value_name = "FOLDER", global = true)]
    keys: Option<PathBuf>,
    /// The form of the result
    #[arg(long, value_enum, default_value_t, global = true)]
    output: Format,
}

#[derive(Subcommand, Clone, Debug)]
enum Command {
    /// Copy the store and its keys, while the service goes on
    Backup {
        /// The folder that is made for the copy
        #[arg(long, value_name = "FOLDER")]
        to: PathBuf,
    },
    /// Make the store and its keys from a backup; there must be no store yet
    Restore {
        /// The backup
        #[arg(long, value_name = "FOLDER")]
        from: PathBuf,
    },
    /// Whether every record can be read, and every order is looked after
    Check,
}

/// Runs the command.
pub(crate) async fn run(args: &Store) -> Exit {
    match act(args).await {
        Ok(exit) => exit,
        Err(stop) => output::fail(&stop, args.output),
    }
}

async fn act(args: &Store) -> Result<Exit, Stop> {
    let store = match &args.store {
        Some(path) => path.clone(),
        None => paths::default_store()?,
    };
    let keys = match &args.keys {
        Some(folder) => folder.clone(),
        None => store.with_file_name(KEYS),
    };
    match &args.command {
        Command::Backup { to } => backup(&store, &keys, to, args.output).await,
        Command::Restore { from } => restore(&store, &keys, from, args.output).await,
        Command::Check => check(&store, &keys, args.output).await,
    }
}

async fn backup(store: &Path, keys: &Path, to: &Path, format: Format) -> Result<Exit, Stop> {
    let source = look_at(store)?;
    make_folder("--to", to)?;
    source.copy_to(&to.join(STORE)).await.map_err(storage)?;
    // After the store: a key is made before the order that has it is stored, so every order in
    // the copy finds its own.
    let copied = copy_keys(keys, &to.join(KEYS))?;
    let copy = look_at(&to.join(STORE))?;
    whole(&copy, &to.join(STORE)).await?;
    let orders = count(&copy, "standing-order").await?;
    tell(
        format,
        &json!({ "store": store, "backup": to, "orders": orders, "keys": copied }),
        &format!("{}: {orders} orders and {copied} keys\n", to.display()),
    )?;
    Ok(Exit::Done)
}

async fn restore(store: &Path, keys: &Path, from: &Path, format: Format) -> Result<Exit, Stop> {
    let copy = from.join(STORE);
    let source = look_at(&copy)?;
    whole(&source, &copy).await?;
    if store.exists() {
        return Err(Stop::usage(format!(
            "{} is there already: what it knows is newer than any backup; stop the service and \
             move it away if it is really lost",
            store.display()
        )));
    }
    if let Some(folder) = store.parent().filter(|f| !f.as_os_str().is_empty()) {
        make_folder("--store", folder)?;
    }
    let orders = count(&source, "standing-order").await?;
    // Keys first: a service that starts in between finds no store.
    let copied = copy_keys(&from.join(KEYS), keys)?;
    let unfinished = store.with_extension("restoring");
    match fs::remove_file(&unfinished) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            return Err(cannot(&unfinished, "be removed", &error));
        }
        _ => {}
    }
    source.copy_to(&unfinished).await.map_err(storage)?;
    fs::rename(&unfinished, store).map_err(|error| cannot(store, "be written", &error))?;
    let text = format!(
        "{}: {orders} orders and {copied} keys\nWhat happened after the backup is not in it: a \
         certificate that was issued since is asked for again under the transactionID of its \
         request, if that was stored, else anew.\nabide zombies list tells which orders lost \
         their tasks.\n",
        store.display()
    );
    let value = json!({ "backup": from, "store": store, "orders": orders, "keys": copied });
    tell(format, &value, &text)?;
    Ok(Exit::Done)
}

async fn check(store: &Path, keys: &Path, format: Format) -> Result<Exit, Stop> {
    let opened = Arc::new(look_at(store)?);
    let mut faults = opened.damage().await.map_err(storage)?;
    let mut counts = BTreeMap::new();
    for kind in KINDS {
        counts.insert(kind, states(&opened, kind).await?);
    }
    let enroller = services::runtime(false)?.enroller(Services {
        storage: opened.clone(),
        // Never used: looking at the store sends nothing.
        network: Arc::new(services::network("http://localhost/", &[], None)?),
        keys: Arc::new(FileKeys::new()),
        telemetry: Arc::new(NoTelemetry),
    });
    faults.extend(unreadable(&enroller, &opened).await?);
    let (zombies, missing) = looked_after(&enroller, keys).await?;
    faults.extend(missing);
    let sound = faults.is_empty();
    faults.truncate(FINDINGS);
    let text = report(store, &counts, &faults, &zombies);
    let value = json!({
        "store": store, "sound": sound, "records": counts, "faults": faults, "zombies": zombies,
    });
    tell(format, &value, &text)?;
    Ok(if sound { Exit::Done } else { Exit::Host })
}

fn report(
    store: &Path,
    counts: &BTreeMap<&str, BTreeMap<String, u64>>,
    faults: &[String],
    zombies: &[String],
) -> String {
    let mut text = String::new();
    for (kind, states) in counts.iter().filter(|(_, states)| !states.is_empty()) {
        let states: Vec<String> = states
            .iter()
            .map(|(state, count)| match state.as_str() {
                "" => count.to_string(),
                state => format!("{count} {}", printable(state)),
            })
            .collect();
        let _ = writeln!(text, "{kind}: {}", states.join(", "));
    }
    for fault in faults {
        let _ = writeln!(text, "fault: {}", printable(fault));
    }
    for zombie in zombies {
        let _ = writeln!(
            text,
            "zombie: {}; see abide zombies hydrate",
            printable(zombie)
        );
    }
    let verdict = match faults.is_empty() {
        true => "whole",
        false => "damaged: restore a backup, or report this as a defect of abide",
    };
    let _ = writeln!(text, "{}: {verdict}", store.display());
    text
}

/// Records that the component cannot read, by their names.
async fn unreadable(enroller: &Enroller, store: &SqliteStorage) -> Result<Vec<String>, Stop> {
    let orders = enroller.orders();
    let mut faults = Vec::new();
    for kind in ["transaction", "standing-order"] {
        let mut cursor = None;
        loop {
            let page = page(store, kind, cursor).await?;
            for entry in page.entries {
                let id = entry.envelope.id;
                let fault = match kind {
                    "transaction" => enroller.get(&id).await.err().map(|e| e.to_string()),
                    _ => orders.get(&id).await.err().map(|e| e.to_string()),
                };
                faults.extend(fault.map(|why| format!("{kind} {id}: {why}")));
            }
            cursor = page.next;
            if cursor.is_none() || faults.len() > FINDINGS {
                break;
            }
        }
    }
    Ok(faults)
}

/// Orders that lost their task, and certificates whose key is not there.
async fn looked_after(
    enroller: &Enroller,
    keys: &Path,
) -> Result<(Vec<String>, Vec<String>), Stop> {
    let failed = |error: OrderCallError| Stop::host(error.to_string());
    let (mut lost, mut faults, mut cursor) = (Vec::new(), Vec::new(), None::<String>);
    loop {
        let found = enroller
            .zombies()
            .find("{}", None, cursor.as_deref(), PAGE)
            .await;
        let (page, next) = found.map_err(failed)?;
        lost.extend(page.into_iter().map(|zombie| zombie.order));
        cursor = next;
        if cursor.is_none() {
            break;
        }
    }
    let filter = OrderFilter {
        account: None,
        state: None,
        principal: None,
    };
    loop {
        // What cannot be read is told elsewhere.
        let listed = enroller
            .orders()
            .list(&filter, cursor.as_deref(), PAGE)
            .await;
        let Ok((page, next)) = listed else {
            return Ok((lost, faults));
        };
        for order in page {
            if let Some(name) = &order.key_name
                && !keys.join(format!("{name}.pem")).exists()
            {
                faults.push(format!(
                    "standing-order {}: its key {name} is not in {}",
                    order.id,
                    keys.display()
                ));
            }
        }
        cursor = next;
        if cursor.is_none() {
            return Ok((lost, faults));
        }
    }
}

fn look_at(path: &Path) -> Result<SqliteStorage, Stop> {
    match services::look_at_store(Some(path))? {
        Some(store) => Ok(store),
        None => Err(Stop::usage(format!("{} is not there", path.display()))),
    }
}

async fn whole(store: &SqliteStorage, path: &Path) -> Result<(), Stop> {
    match store.damage().await.map_err(storage)?.first() {
        None => Ok(()),
        Some(damage) => Err(Stop::host(format!(
            "{} is damaged ({damage}): use another backup",
            path.display()
        ))),
    }
}

async fn page(
    store: &SqliteStorage,
    kind: &str,
    cursor: Option<String>,
) -> Result<abide_host::wit::storage::Page, Stop> {
    let filter = Filter {
        kind: kind.into(),
        owner: None,
        account: None,
        state: None,
    };
    store.list(filter, cursor, PAGE).await.map_err(storage)
}

/// Records of a kind by their states.
async fn states(store: &SqliteStorage, kind: &str) -> Result<BTreeMap<String, u64>, Stop> {
    let mut states = BTreeMap::new();
    let mut cursor = None;
    loop {
        let page = page(store, kind, cursor).await?;
        for entry in page.entries {
            *states.entry(entry.envelope.state).or_insert(0) += 1;
        }
        cursor = page.next;
        if cursor.is_none() {
            return Ok(states);
        }
    }
}

async fn count(store: &SqliteStorage, kind: &str) -> Result<u64, Stop> {
    Ok(states(store, kind).await?.values().sum())
}

/// Copies keys, and leaves those that are there already. Returns how many there are now.
fn copy_keys(from: &Path, to: &Path) -> Result<usize, Stop> {
    if !from.exists() {
        return Ok(0);
    }
    make_folder("--keys", to)?;
    let mut copied = 0;
    let entries = fs::read_dir(from).map_err(|error| cannot(from, "be read", &error))?;
    for entry in entries {
        let path = entry
            .map_err(|error| cannot(from, "be read", &error))?
            .path();
        let Some(name) = path
            .file_name()
            .filter(|_| path.extension() == Some("pem".as_ref()))
        else {
            continue;
        };
        let target = to.join(name);
        let key = zeroize::Zeroizing::new(files::read("--keys", &path)?);
        if target.exists() {
            let other = zeroize::Zeroizing::new(files::read("--keys", &target)?);
            if key != other {
                return Err(Stop::usage(format!(
                    "{} is there already and is another key: move it away",
                    target.display()
                )));
            }
        } else {
            files::create_private("--keys", &target, &key)?;
        }
        copied += 1;
    }
    Ok(copied)
}

fn make_folder(option: &str, folder: &Path) -> Result<(), Stop> {
    fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(folder)
        .map_err(|error| {
            Stop::usage(format!(
                "{option} {} cannot be made ({error})",
                folder.display()
            ))
        })
}

fn tell(format: Format, value: &Value, text: &str) -> Result<(), Stop> {
    match format {
        Format::Json => output::print_json(value),
        Format::Text => output::print(text),
    }
}

fn storage(error: StorageError) -> Stop {
    Stop::host(match error {
        StorageError::Unavailable(why) => format!("the store {why}"),
        error => format!("the store: {error:?}"),
    })
}

fn cannot(path: &Path, what: &str, error: &std::io::Error) -> Stop {
    Stop::host(format!("{} cannot {what} ({error})", path.display()))
}
