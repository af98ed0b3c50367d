//! What sharing tasks costs: `bench-schedule FOLDER`, where FOLDER is for the SQLite files.
//!
//! A task is a record of the size that the scheduler stores. Claiming is one call of the store, for
//! as many as a policy may ask for at most. Completing is what a worker does with each task that it
//! holds: a commit that writes the task with its next time, under the guard of its lease. A worker
//! does one thing after the other, over one connection.

mod plain;

use std::env;
use std::error::Error;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

use abide_host::wit::storage::{Change, Claim, Claimed, Envelope, Lease, Put};
use abide_host::{PostgresConfig, PostgresStorage, SqliteStorage, Storage};
use abide_tests::postgres::Postgres;
use tokio::task::JoinSet;

use crate::plain::Plain;

pub(crate) type Result<T> = std::result::Result<T, Box<dyn Error + Send + Sync>>;

/// Some time; nothing here looks at a clock.
const NOW_MS: u64 = 1_800_000_000_000;

/// The longest batch that a policy may ask for.
const DUE: u64 = 1000;

/// Claims of [`DUE`] that are measured at each size.
const CLAIMS: u64 = 7;

/// Tasks in the store.
const SIZES: [u64; 2] = [10_000, 1_000_000];

/// Tasks in one commit while a store is filled.
const FILL: u64 = 250;

/// Tasks that workers share, and how many each of them claims at once.
const SHARED: u64 = 4000;
const BATCH: u32 = 50;

/// Workers beside the one that they are compared with.
const WORKERS: usize = 4;

/// Turns in which abide and the plain loop alternate.
const TURNS: usize = 3;

/// As long as a stored task.
const BODY: usize = 120;

fn main() -> Result<()> {
    let arguments: Vec<_> = env::args_os().skip(1).collect();
    let [folder] = arguments.as_slice() else {
        return Err("bench-schedule FOLDER".into());
    };
    tokio::runtime::Runtime::new()?.block_on(measure(PathBuf::from(folder)))
}

async fn measure(folder: PathBuf) -> Result<()> {
    let mut medians = Vec::new();
    for size in SIZES {
        let store = SqliteStorage::open(&folder.join(format!("tasks-{size}.db")))?;
        medians.push(claims("SQLite", &store, size).await?);
    }
    ratio(&medians);
    let mut medians = Vec::new();
    for size in SIZES {
        let server = Postgres::start();
        let store = open(&server).await?;
        medians.push(claims("PostgreSQL", &store, size).await?);
    }
    ratio(&medians);
    shared().await
}

async fn open(server: &Postgres) -> Result<PostgresStorage> {
    let config = PostgresConfig {
        connections: 1,
        ..PostgresConfig::new(server.url("postgres"))
    };
    Ok(PostgresStorage::open(&config).await?)
}

fn ratio(medians: &[f64]) {
    println!(
        "  a hundred times the tasks: {:.2} times the time",
        medians[1] / medians[0]
    );
}

/// Median of the time for claiming [`DUE`] tasks, in milliseconds.
async fn claims(name: &str, store: &dyn Storage, size: u64) -> Result<f64> {
    fill(store, size, DUE * CLAIMS).await?;
    let mut times = Vec::new();
    for _ in 0..CLAIMS {
        let start = Instant::now();
        let claimed = claim(store, "bench", u32::try_from(DUE)?).await?;
        times.push(start.elapsed().as_secs_f64() * 1000.0);
        if claimed.len() as u64 != DUE {
            return Err(format!("{} tasks claimed instead of {DUE}", claimed.len()).into());
        }
    }
    times.sort_by(f64::total_cmp);
    let median = times[times.len() / 2];
    println!(
        "{name:<10} claiming {DUE} due of {size:>7} tasks  {median:6.1} ms   ({:.1} to {:.1})",
        times[0],
        times[times.len() - 1]
    );
    Ok(median)
}

/// Tasks of which the first `due` are due, and all others later than anybody asks.
async fn fill(store: &dyn Storage, size: u64, due: u64) -> Result<()> {
    for first in (0..size).step_by(usize::try_from(FILL)?) {
        let changes = (first..size.min(first + FILL)).map(|number| {
            // Spread over the ids, as the ids of orders are.
            let id = format!("{:016x}", number.wrapping_mul(0x9e37_79b9_7f4a_7c15));
            let due_ms = if number < due {
                NOW_MS - due + number
            } else {
                NOW_MS + 1000 * number
            };
            Change::Put(Put {
                envelope: envelope(id, due_ms),
                expected: None,
                body: vec![7; BODY],
            })
        });
        store.commit(changes.collect()).await?;
    }
    Ok(())
}

fn envelope(id: String, due_ms: u64) -> Envelope {
    Envelope {
        kind: "task".to_owned(),
        owner: id.clone(),
        id,
        account: "prod".to_owned(),
        state: "retry".to_owned(),
        due_ms: Some(due_ms),
        updated_ms: NOW_MS,
    }
}

async fn claim(store: &dyn Storage, holder: &str, limit: u32) -> Result<Vec<Claimed>> {
    let claim = Claim {
        kind: "task".to_owned(),
        holder: holder.to_owned(),
        now_ms: NOW_MS,
        until_ms: NOW_MS + 60_000,
        limit,
        excluded: Vec::new(),
    };
    Ok(store.claim_due(claim).await?.claimed)
}

/// The rates of one worker and of several, and those of a plain loop, in turns.
async fn shared() -> Result<()> {
    let mut rates = vec![[0.0; 4]; TURNS];
    for turn in &mut rates {
        // A server of its own for each, so that none finds the remains of another.
        *turn = [
            ours(1).await?,
            ours(WORKERS).await?,
            theirs(1).await?,
            theirs(WORKERS).await?,
        ];
    }
    let median = |column: usize| {
        let mut values: Vec<f64> = rates.iter().map(|turn| turn[column]).collect();
        values.sort_by(f64::total_cmp);
        values[values.len() / 2]
    };
    let [one, several, plain_one, plain_several] = [0, 1, 2, 3].map(median);
    println!("PostgreSQL claiming {BATCH} and completing each, {SHARED} tasks, a second");
    println!(
        "  one worker                     {one:7.0}   plain SKIP LOCKED {plain_one:7.0}   ({:.0} %)",
        100.0 * one / plain_one
    );
    println!(
        "  {WORKERS} workers                      {several:7.0}   plain SKIP LOCKED {plain_several:7.0}   ({:.0} %)",
        100.0 * several / plain_several
    );
    println!(
        "  {WORKERS} workers against one          {:7.2}   plain SKIP LOCKED {:7.2}",
        several / one,
        plain_several / plain_one
    );
    Ok(())
}

async fn ours(workers: usize) -> Result<f64> {
    let server = Postgres::start();
    fill(&open(&server).await?, SHARED, SHARED).await?;
    let mut stores = Vec::new();
    for _ in 0..workers {
        stores.push(Arc::new(open(&server).await?));
    }
    let start = Instant::now();
    let mut running = JoinSet::new();
    for (number, store) in stores.into_iter().enumerate() {
        running.spawn(async move { work(&*store, &format!("worker-{number}")).await });
    }
    finished(running, start).await
}

async fn theirs(workers: usize) -> Result<f64> {
    let server = Postgres::start();
    Plain::fill(&server.url("postgres"), SHARED, BODY).await?;
    let mut loops = Vec::new();
    for _ in 0..workers {
        loops.push(Plain::open(&server.url("postgres")).await?);
    }
    let start = Instant::now();
    let mut running = JoinSet::new();
    for (number, plain) in loops.into_iter().enumerate() {
        running.spawn(async move { plain.work(&format!("worker-{number}"), BATCH).await });
    }
    finished(running, start).await
}

/// The rate, if everything was done once.
async fn finished(mut running: JoinSet<Result<u64>>, start: Instant) -> Result<f64> {
    let mut done = 0;
    while let Some(worker) = running.join_next().await {
        done += worker??;
    }
    if done != SHARED {
        return Err(format!("{done} tasks completed instead of {SHARED}").into());
    }
    Ok(SHARED as f64 / start.elapsed().as_secs_f64())
}

/// Claims and completes until nothing is due; gives how many it completed.
async fn work(store: &dyn Storage, name: &str) -> Result<u64> {
    let mut done = 0;
    loop {
        let claimed = claim(store, name, BATCH).await?;
        if claimed.is_empty() {
            return Ok(done);
        }
        for task in claimed {
            let Envelope { kind, id, .. } = task.entry.envelope;
            let guard = Lease {
                kind,
                id: id.clone(),
                token: task.token,
            };
            let put = Put {
                envelope: envelope(id, NOW_MS + 3_600_000),
                expected: Some(task.entry.version),
                body: task.entry.body,
            };
            store
                .commit(vec![Change::Guard(guard), Change::Put(put)])
                .await?;
            done += 1;
        }
    }
}
