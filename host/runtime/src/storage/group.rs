//! One flush for all who commit at the same time.
//!
//! A flush takes the disk far longer than the changes take SQLite. Whoever gets at the connection
//! first does what all have queued up meanwhile, in one transaction; the others find it done. A
//! caller that is alone waits for nobody.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};

use rusqlite::{Connection, Transaction, TransactionBehavior};
use tokio::sync::oneshot::{self, Receiver, Sender};

use super::sqlite::unavailable;
use crate::limits;
use crate::wit::storage::StorageError;

/// The connection that writes, and who waits for it.
pub(super) struct Writer {
    connection: Mutex<Connection>,
    queue: Mutex<VecDeque<Box<dyn Job>>>,
}

/// What one caller wants.
trait Job: Send {
    /// Does it; whether it is to be kept.
    fn run(&mut self, connection: &Connection) -> bool;

    /// Answers the caller, after the flush or why there was none.
    fn answer(self: Box<Self>, flushed: &Result<(), StorageError>);
}

struct Call<W, R> {
    work: Option<W>,
    result: Option<Result<R, StorageError>>,
    caller: Sender<Result<R, StorageError>>,
}

impl<W, R> Job for Call<W, R>
where
    W: FnOnce(&Connection) -> Result<R, StorageError> + Send,
    R: Send,
{
    fn run(&mut self, connection: &Connection) -> bool {
        self.result = self.work.take().map(|work| work(connection));
        matches!(self.result, Some(Ok(_)))
    }

    fn answer(self: Box<Self>, flushed: &Result<(), StorageError>) {
        let answer = match (self.result, flushed) {
            (Some(Err(error)), _) => Err(error),
            (_, Err(error)) => Err(error.clone()),
            (Some(Ok(result)), Ok(())) => Ok(result),
            // It was never done, so there was no flush either.
            (None, Ok(())) => return,
        };
        // A caller that has gone away is told nothing.
        let _ = self.caller.send(answer);
    }
}

impl Writer {
    pub(super) fn new(connection: Connection) -> Self {
        Writer {
            connection: Mutex::new(connection),
            queue: Mutex::default(),
        }
    }

    /// Queues work, which [`work_off`](Self::work_off) does. The answer comes after the flush.
    pub(super) fn queue<R: Send + 'static>(
        &self,
        work: impl FnOnce(&Connection) -> Result<R, StorageError> + Send + 'static,
    ) -> Receiver<Result<R, StorageError>> {
        let (caller, answer) = oneshot::channel();
        self.waiting().push_back(Box::new(Call {
            work: Some(work),
            result: None,
            caller,
        }));
        answer
    }

    /// Does what is queued, unless somebody has. Called once for each piece of work, it leaves
    /// nothing undone. Blocks.
    pub(super) fn work_off(&self) {
        // A panic in between has rolled back, like any error.
        let connection = self
            .connection
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let mut jobs: Vec<_> = {
            let mut queue = self.waiting();
            let some = queue.len().min(limits::GROUP);
            queue.drain(..some).collect()
        };
        if jobs.is_empty() {
            return;
        }
        let flushed = together(&connection, &mut jobs);
        drop(connection);
        for job in jobs {
            job.answer(&flushed);
        }
    }

    fn waiting(&self) -> MutexGuard<'_, VecDeque<Box<dyn Job>>> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn together(connection: &Connection, jobs: &mut [Box<dyn Job>]) -> Result<(), StorageError> {
    let transaction = Transaction::new_unchecked(connection, TransactionBehavior::Immediate)
        .map_err(unavailable)?;
    if let [job] = jobs {
        return match job.run(&transaction) {
            true => transaction.commit().map_err(unavailable),
            // Dropped, it rolls back.
            false => Ok(()),
        };
    }
    let run = |sql: &str| {
        let mut statement = transaction.prepare_cached(sql)?;
        statement.execute([]).map(|_| ())
    };
    for job in jobs {
        run("SAVEPOINT job").map_err(unavailable)?;
        if !job.run(&transaction) {
            // A full disk and its like end all of it, and not only the last part.
            if transaction.is_autocommit() {
                let why = "a change beside this one failed, and with it all of them: try again";
                return Err(StorageError::Unavailable(why.to_owned()));
            }
            run("ROLLBACK TO job").map_err(unavailable)?;
        }
        run("RELEASE job").map_err(unavailable)?;
    }
    transaction.commit().map_err(unavailable)
}
