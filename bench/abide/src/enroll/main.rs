//! What whole enrollments cost: `bench-enroll ABIDE FOLDER`, where ABIDE is the program, which is
//! also the CA, and FOLDER has `root.crt`, `new.crt`, `new.key` and `new.csr`.
//!
//! Every enrollment is a p10cr that is signed with ECDSA, explicitly confirmed, and durable at each
//! step in SQLite with `synchronous=FULL`. The CA is a process of its own on the same machine.

mod bare;
mod ca;
mod world;

use std::env;
use std::error::Error;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use abide_host::Enroller;
use cpu_time::ProcessTime;
use tokio::task::JoinSet;

use crate::ca::MockCa;
use crate::world::World;

pub(crate) type Result<T> = std::result::Result<T, Box<dyn Error + Send + Sync>>;

/// Enrollments one after the other.
const ALONE: usize = 200;

/// Enrollments in flight, of [`TOGETHER`] in all.
const IN_FLIGHT: usize = 64;

/// Long enough for some seconds.
const TOGETHER: usize = 1500;

/// Enrollments that wait for an answer at the same time.
const PARKED: usize = 2000;

/// How long it may take until all of them wait.
const PATIENCE: Duration = Duration::from_secs(120);

/// Answers nothing; see [`ca::silence`].
const SILENCE: &str = "silence";

fn main() -> Result<()> {
    let arguments: Vec<_> = env::args_os().skip(1).collect();
    match arguments.as_slice() {
        [what] if what == SILENCE => ca::silence(),
        [abide, folder] => tokio::runtime::Runtime::new()?
            .block_on(measure(PathBuf::from(abide), PathBuf::from(folder))),
        _ => Err("bench-enroll ABIDE FOLDER".into()),
    }
}

async fn measure(abide: PathBuf, folder: PathBuf) -> Result<()> {
    let ca = MockCa::start(&abide, &folder)?;
    let world = World::read(&folder, ca.url(), &ca.root()?)?;
    alone(&world).await?;
    together(&world).await?;
    parked(&world).await
}

/// Own work: the processor time of this process, in which neither the CA's work nor waiting for the
/// disk is contained, but the system's share in both is; and time on the wall without the imports
/// that wait.
async fn alone(world: &World) -> Result<()> {
    let (road, store) = (Arc::new(world.road()?), Arc::new(world.store("alone.db")?));
    let enroller = world.enroller(store.clone(), road.clone(), 1).await?;
    issued(&enroller, world, "warm".to_owned()).await?;
    let waited = store.waited.get() + road.waited.get();
    let (processor, wall) = (ProcessTime::now(), Instant::now());
    for number in 0..ALONE {
        issued(&enroller, world, format!("alone-{number}")).await?;
    }
    let (processor, wall) = (processor.elapsed(), wall.elapsed());
    let waited = store.waited.get() + road.waited.get() - waited;
    let each = |time: Duration| time.as_secs_f64() * 1000.0 / ALONE as f64;
    println!("one enrollment after the other, {ALONE} of them, each");
    println!("  from beginning to end          {:8.2} ms", each(wall));
    println!("  in network and store           {:8.2} ms", each(waited));
    println!(
        "  the rest of it                 {:8.2} ms",
        each(wall.saturating_sub(waited))
    );
    println!(
        "  processor time of the process  {:8.2} ms: all own work, HTTP and SQLite with it",
        each(processor)
    );
    Ok(())
}

/// The rate of many, and that of nothing but their exchanges and commits.
async fn together(world: &World) -> Result<()> {
    // Requests that no CA has seen, and what is to be written meanwhile.
    let requests = world.unsent_requests(TOGETHER, IN_FLIGHT).await?;
    let tape = world.tape().await?;
    let (road, store) = (
        Arc::new(world.road()?),
        Arc::new(world.store("together.db")?),
    );
    let enroller = world.enroller(store, road, IN_FLIGHT).await?;
    let processor = ProcessTime::now();
    let start = Instant::now();
    let here = world.clone();
    in_flight(move |number| {
        let (enroller, world) = (enroller.clone(), here.clone());
        async move { issued(&enroller, &world, format!("together-{number}")).await }
    })
    .await?;
    let ours = TOGETHER as f64 / start.elapsed().as_secs_f64();
    let processor = processor.elapsed().as_secs_f64() * 1000.0 / TOGETHER as f64;

    let bare = Arc::new(bare::Bare::new(world, tape.clone())?);
    let requests = Arc::new(requests);
    let start = Instant::now();
    in_flight(move |number| {
        let (bare, requests) = (bare.clone(), requests.clone());
        async move { bare.run(number, &requests[number]).await }
    })
    .await?;
    let theirs = TOGETHER as f64 / start.elapsed().as_secs_f64();
    println!("{IN_FLIGHT} in flight, {TOGETHER} in all, a second");
    println!(
        "  enrollments                    {ours:8.0}   ({processor:.2} ms of processor time each)"
    );
    println!(
        "  only {} exchanges and {} commits, grouped  {theirs:8.0}   ({:.0} %)",
        tape.exchanges(),
        tape.commits(),
        100.0 * ours / theirs
    );
    Ok(())
}

/// Memory of those that wait for the CA.
async fn parked(world: &World) -> Result<()> {
    let silence = ca::Silence::start()?;
    let world = world.at(silence.url());
    let (road, store) = (Arc::new(world.road()?), Arc::new(world.store("parked.db")?));
    let enroller = world.enroller(store, road.clone(), PARKED).await?;
    let before = resident()?;
    let mut waiting = JoinSet::new();
    for number in 0..PARKED {
        let (enroller, world) = (enroller.clone(), world.clone());
        waiting.spawn(async move { issued(&enroller, &world, format!("parked-{number}")).await });
    }
    let start = Instant::now();
    while road.under_way.load(Ordering::SeqCst) < PARKED {
        if let Some(ended) = waiting.try_join_next() {
            ended??;
            return Err("an enrollment ended without an answer".into());
        }
        if start.elapsed() > PATIENCE {
            return Err("not all enrollments have sent their request".into());
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    // Until what the last of them did has settled.
    tokio::time::sleep(Duration::from_millis(500)).await;
    let grown = resident()?.saturating_sub(before);
    println!("{PARKED} waiting for an answer");
    println!(
        "  memory of each                 {:8.0} KiB, its connection included",
        grown as f64 / 1024.0 / PARKED as f64
    );
    waiting.shutdown().await;
    Ok(())
}

/// One whole enrollment.
async fn issued(enroller: &Enroller, world: &World, order: String) -> Result<()> {
    use abide_host::wit::transactions::Outcome;

    let progress = enroller.begin(&world.enrollment(order)).await?;
    match progress.outcome {
        Outcome::Issued(_) => Ok(()),
        other => Err(format!("not issued: {other:?}").into()),
    }
}

/// Does [`TOGETHER`] of something, [`IN_FLIGHT`] at a time.
async fn in_flight<F>(work: impl Fn(usize) -> F + Clone + Send + 'static) -> Result<()>
where
    F: Future<Output = Result<()>> + Send + 'static,
{
    let next = Arc::new(AtomicUsize::new(0));
    let mut workers = JoinSet::new();
    for _ in 0..IN_FLIGHT {
        let (next, work) = (next.clone(), work.clone());
        workers.spawn(async move {
            loop {
                let number = next.fetch_add(1, Ordering::Relaxed);
                if number >= TOGETHER {
                    return Ok::<_, Box<dyn Error + Send + Sync>>(());
                }
                work(number).await?;
            }
        });
    }
    while let Some(ended) = workers.join_next().await {
        ended??;
    }
    Ok(())
}

/// Resident memory of this process in bytes (proc(5), statm: the second number, in pages).
fn resident() -> Result<u64> {
    const PAGE: u64 = 4096;
    let text = std::fs::read_to_string("/proc/self/statm")?;
    let pages = text.split_whitespace().nth(1).ok_or("no second number")?;
    Ok(pages.parse::<u64>()? * PAGE)
}
