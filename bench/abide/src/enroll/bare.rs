//! What remains of an enrollment without abide: the same number of exchanges with the same CA, and
//! commits of the same size to an SQLite file of the same kind, in which all that wait share one
//! flush to the disk.

use std::sync::mpsc;
use std::thread;

use abide_host::wit::network::Request;
use abide_host::{HttpConfig, HttpNetwork, Network};
use rusqlite::{Connection, params};
use tokio::sync::oneshot;

use crate::Result;
use crate::world::{Tape, World};

/// Records of one commit, and who waits for them.
struct Job {
    number: i64,
    sizes: Vec<usize>,
    done: oneshot::Sender<()>,
}

pub(crate) struct Bare {
    http: HttpNetwork,
    url: String,
    tape: Tape,
    commits: mpsc::Sender<Job>,
}

impl Bare {
    pub(crate) fn new(world: &World, tape: Tape) -> Result<Self> {
        let connection = Connection::open(world.file("bare.db"))?;
        connection.query_row("PRAGMA journal_mode = WAL", [], |_| Ok(()))?;
        connection.execute_batch(
            "PRAGMA synchronous = FULL;
             CREATE TABLE record (number INTEGER, part INTEGER, body BLOB, UNIQUE (number, part))",
        )?;
        let (commits, jobs) = mpsc::channel();
        thread::spawn(move || write(connection, &jobs));
        Ok(Self {
            http: HttpNetwork::new(HttpConfig::default())?,
            url: world.url().to_owned(),
            tape,
            commits,
        })
    }

    /// Commits and exchanges in turn, as an enrollment has them. The CA issues for the first
    /// request, and answers the others, which are the same, as before.
    pub(crate) async fn run(&self, number: usize, request: &[u8]) -> Result<()> {
        let mut exchanges = 0..self.tape.exchanges();
        for sizes in &self.tape.commits {
            let (done, written) = oneshot::channel();
            self.commits.send(Job {
                number: i64::try_from(number)?,
                sizes: sizes.clone(),
                done,
            })?;
            written.await?;
            if exchanges.next().is_some() {
                let response = self
                    .http
                    .exchange(Request {
                        endpoint: self.url.clone(),
                        message: request.to_vec(),
                        timeout_ms: 600_000,
                        response_limit: 1 << 20,
                    })
                    .await
                    .map_err(|error| format!("{error:?}"))?;
                if response.status != 200 {
                    return Err(format!("status {}", response.status).into());
                }
            }
        }
        Ok(())
    }
}

/// All jobs that wait are one transaction.
fn write(mut connection: Connection, jobs: &mpsc::Receiver<Job>) -> Result<()> {
    while let Ok(first) = jobs.recv() {
        let together: Vec<Job> = std::iter::once(first).chain(jobs.try_iter()).collect();
        let transaction = connection.transaction()?;
        for job in &together {
            for (part, size) in (0_i64..).zip(&job.sizes) {
                transaction
                    .prepare_cached("INSERT OR REPLACE INTO record VALUES (?1, ?2, ?3)")?
                    .execute(params![job.number, part, vec![0x5a_u8; *size]])?;
            }
        }
        transaction.commit()?;
        for job in together {
            // Whoever has gone away waits no more.
            let _ = job.done.send(());
        }
    }
    Ok(())
}
