//! The default store: one SQLite file.
//!
//! A commit is in an IMMEDIATE transaction, flushed before it returns, with others that are made at
//! the same time. What survives a death at any
//! point is the last commit that returned, and perhaps the one that was about to.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use rusqlite::{Connection, ErrorCode, OptionalExtension, Row, named_params, params};

use super::check::{self, Found, from_sql, to_sql};
use super::group::Writer;
use super::{OpenError, open};
use crate::wit::storage::{
    Change, Claim, Claimed, Claims, Entry, Envelope, Filter, Holding, Lease, Page, Put,
    StorageError,
};
use crate::{Storage, limits};

/// A store in a file. Several processes may use one file at the same time.
pub struct SqliteStorage {
    path: PathBuf,
    /// Nobody reads what another one is writing, and nobody who reads keeps a writer waiting.
    reader: Arc<Mutex<Connection>>,
    /// Absent when it was opened for reading only.
    writer: Option<Arc<Writer>>,
}

impl SqliteStorage {
    /// Opens the store, and makes it if the file does not exist or is empty.
    pub fn open(path: &Path) -> Result<Self, OpenError> {
        let writer = open::read_write(path)?;
        Ok(Self::new(path, open::beside(path)?, Some(writer)))
    }

    /// Opens an existing store for reading; a commit is refused.
    pub fn open_read_only(path: &Path) -> Result<Self, OpenError> {
        Ok(Self::new(path, open::read_only(path)?, None))
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    fn new(path: &Path, reader: Connection, writer: Option<Connection>) -> Self {
        SqliteStorage {
            path: path.to_owned(),
            reader: Arc::new(Mutex::new(reader)),
            writer: writer.map(|writer| Arc::new(Writer::new(writer))),
        }
    }

    /// Runs `work` in a transaction that is flushed before this returns.
    async fn change<R: Send + 'static>(
        &self,
        work: impl FnOnce(&Connection) -> Result<R, StorageError> + Send + 'static,
    ) -> Result<R, StorageError> {
        let Some(writer) = self.writer.clone() else {
            let why = format!("{}: it was opened for reading only", self.path.display());
            return Err(StorageError::Unavailable(why));
        };
        let answer = writer.queue(work);
        // A flush takes as long as the disk takes. What is queued is done even if the caller goes
        // away: others may have been put to the same flush.
        tokio::task::spawn_blocking(move || writer.work_off());
        let answer = answer.await;
        self.named(answer.unwrap_or_else(|_| {
            let why = "a change beside this one failed in a way that nobody foresaw";
            Err(StorageError::Unavailable(why.to_owned()))
        }))
    }

    /// Runs `work` where it may block.
    pub(super) async fn read<R: Send + 'static>(
        &self,
        work: impl FnOnce(&Connection) -> rusqlite::Result<R> + Send + 'static,
    ) -> Result<R, StorageError> {
        let connection = self.reader.clone();
        let result = tokio::task::spawn_blocking(move || {
            work(&connection.lock().unwrap_or_else(PoisonError::into_inner)).map_err(unavailable)
        })
        .await
        .unwrap_or_else(|error| Err(StorageError::Unavailable(error.to_string())));
        self.named(result)
    }

    /// With the name of the file, when that is what is wrong.
    fn named<R>(&self, result: Result<R, StorageError>) -> Result<R, StorageError> {
        result.map_err(|error| match error {
            StorageError::Unavailable(why) => {
                StorageError::Unavailable(format!("{}: {why}", self.path.display()))
            }
            error => error,
        })
    }
}

impl fmt::Debug for SqliteStorage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SqliteStorage")
            .field("path", &self.path)
            .field("writable", &self.writer.is_some())
            .finish_non_exhaustive()
    }
}

#[async_trait]
impl Storage for SqliteStorage {
    async fn get(&self, kind: &str, id: &str) -> Result<Option<Entry>, StorageError> {
        let (kind, id) = (kind.to_owned(), id.to_owned());
        self.read(move |connection| {
            connection
                .prepare_cached("SELECT * FROM record WHERE kind = ?1 AND id = ?2")?
                .query_row([kind, id], entry)
                .optional()
        })
        .await
    }

    async fn commit(&self, changes: Vec<Change>) -> Result<Vec<u64>, StorageError> {
        check::changes(&changes)?;
        self.change(move |transaction| commit(transaction, &changes))
            .await
    }

    async fn list(
        &self,
        filter: Filter,
        cursor: Option<String>,
        limit: u32,
    ) -> Result<Page, StorageError> {
        if limit == 0 {
            return Ok(Page {
                entries: Vec::new(),
                next: cursor,
            });
        }
        let limit = limit.min(limits::PAGE_RECORDS) as usize;
        self.read(move |connection| page(connection, &filter, cursor, limit))
            .await
    }

    async fn claim_due(&self, claim: Claim) -> Result<Claims, StorageError> {
        self.change(move |transaction| take(transaction, &claim).map_err(unavailable))
            .await
    }

    async fn renew(&self, leases: Vec<Lease>, until_ms: u64) -> Result<Vec<Lease>, StorageError> {
        self.change(move |transaction| {
            let mut lost = Vec::new();
            for lease in leases {
                let sql = "UPDATE record SET lease_until = ?4, claimable = ?4
                           WHERE kind = ?1 AND id = ?2 AND lease_token = ?3";
                let until = to_sql(until_ms);
                let held = transaction
                    .prepare_cached(sql)
                    .and_then(|mut statement| {
                        statement.execute(params![lease.kind, lease.id, to_sql(lease.token), until])
                    })
                    .map_err(unavailable)?;
                if held == 0 {
                    lost.push(lease);
                }
            }
            Ok(lost)
        })
        .await
    }

    async fn release(&self, leases: Vec<Lease>) -> Result<(), StorageError> {
        self.change(move |transaction| {
            for lease in leases {
                let sql = "UPDATE record SET lease_holder = NULL, lease_token = NULL,
                               lease_until = NULL, lost = 0, claimable = due
                           WHERE kind = ?1 AND id = ?2 AND lease_token = ?3";
                transaction
                    .prepare_cached(sql)
                    .and_then(|mut statement| {
                        statement.execute(params![lease.kind, lease.id, to_sql(lease.token)])
                    })
                    .map_err(unavailable)?;
            }
            Ok(())
        })
        .await
    }

    async fn count_state(&self, kind: &str, state: &str, limit: u32) -> Result<u32, StorageError> {
        let (kind, state) = (kind.to_owned(), state.to_owned());
        self.read(move |connection| {
            connection
                .prepare_cached(
                    "SELECT count(*) FROM
                        (SELECT 1 FROM record WHERE kind = ?1 AND state = ?2 LIMIT ?3)",
                )?
                .query_row(params![kind, state, limit], |row| row.get(0))
        })
        .await
    }

    async fn count(&self, kind: &str, now_ms: u64, limit: u32) -> Result<(u32, u32), StorageError> {
        let kind = kind.to_owned();
        self.read(move |connection| {
            connection
                .prepare_cached(
                    "SELECT
                        (SELECT count(*) FROM
                            (SELECT 1 FROM record WHERE kind = ?1 LIMIT ?3)),
                        (SELECT count(*) FROM
                            (SELECT 1 FROM record WHERE kind = ?1 AND claimable <= ?2
                             AND lease_token IS NULL LIMIT ?3))",
                )?
                .query_row(params![kind, to_sql(now_ms), limit], |row| {
                    Ok((row.get(0)?, row.get(1)?))
                })
        })
        .await
    }
}

fn commit(transaction: &Connection, changes: &[Change]) -> Result<Vec<u64>, StorageError> {
    let mut records = BTreeMap::new();
    for change in changes {
        let (kind, id) = check::record_of(change);
        if let Some(found) = found(transaction, kind, id).map_err(unavailable)? {
            records.insert((kind, id), found);
        }
    }
    check::against(changes, |kind, id| records.get(&(kind, id)).copied())?;
    changes
        .iter()
        .map(|change| match change {
            Change::Put(put) => write(transaction, put),
            Change::Delete(removal) => delete_version(transaction, removal.expected).map(|()| 0),
            Change::Guard(_) => Ok(0),
        })
        .collect::<rusqlite::Result<_>>()
        .map_err(unavailable)
}

/// Claims in the order of the index.
fn take(transaction: &Connection, claim: &Claim) -> rusqlite::Result<Claims> {
    let Claim {
        kind,
        holder,
        now_ms,
        until_ms,
        limit,
        excluded,
    } = claim;
    let excluded: BTreeSet<&[u8]> = excluded.iter().map(String::as_bytes).collect();
    let mut statement = transaction.prepare_cached(
        "SELECT * FROM record WHERE kind = ?1 AND claimable IS NOT NULL ORDER BY claimable, id",
    )?;
    let mut rows = statement.query([kind])?;
    let mut due = Vec::new();
    let mut next_due_ms = None;
    let mut bytes = 0;
    // The one after the last tells when to come again.
    while let Some(row) = rows.next()? {
        let at_ms = from_sql(row.get("claimable")?);
        if at_ms <= *now_ms
            && !excluded.is_empty()
            && excluded.contains(row.get_ref("account")?.as_bytes()?)
        {
            continue;
        }
        bytes += row.get_ref("body")?.as_blob().map_or(0, <[u8]>::len);
        let full = due.len() == *limit as usize || (bytes > limits::PAGE_BYTES && !due.is_empty());
        if at_ms > *now_ms || full {
            next_due_ms = Some(at_ms);
            break;
        }
        due.push((entry(row)?, row.get::<_, u32>("lost")?));
    }
    drop(rows);
    if due.is_empty() {
        return Ok(Claims {
            claimed: Vec::new(),
            next_due_ms,
        });
    }
    let last: i64 = transaction
        .prepare_cached("UPDATE fence SET token = token + ?1 RETURNING token")?
        .query_row([due.len() as i64], |row| row.get(0))?;
    let first = from_sql(last) + 1 - due.len() as u64;
    let mut mark = transaction.prepare_cached(
        "UPDATE record SET lease_holder = ?2, lease_token = ?3, lease_until = ?4, claimable = ?4,
            lost = ?5
         WHERE version = ?1",
    )?;
    let mut claimed = Vec::with_capacity(due.len());
    for (token, (mut entry, lost)) in (first..).zip(due) {
        let lost = lost.saturating_add(u32::from(entry.lease.is_some()));
        let version = to_sql(entry.version);
        mark.execute(params![
            version,
            holder,
            to_sql(token),
            to_sql(*until_ms),
            lost
        ])?;
        entry.lease = Some(Holding {
            holder: holder.clone(),
            token,
            until_ms: *until_ms,
        });
        claimed.push(Claimed { entry, token, lost });
    }
    Ok(Claims {
        claimed,
        next_due_ms,
    })
}

fn write(transaction: &Connection, put: &Put) -> rusqlite::Result<u64> {
    let Put {
        envelope,
        expected,
        body,
    } = put;
    // A new row instead of a changed one: its number is the new version.
    if let Some(expected) = *expected {
        delete_version(transaction, expected)?;
    }
    transaction
        .prepare_cached(
            "INSERT INTO record (kind, id, owner, account, state, due, updated, body, claimable)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?6)",
        )?
        .execute(params![
            envelope.kind,
            envelope.id,
            envelope.owner,
            envelope.account,
            envelope.state,
            envelope.due_ms.map(to_sql),
            to_sql(envelope.updated_ms),
            body,
        ])?;
    Ok(from_sql(transaction.last_insert_rowid()))
}

fn found(transaction: &Connection, kind: &str, id: &str) -> rusqlite::Result<Option<Found>> {
    transaction
        .prepare_cached("SELECT version, lease_token FROM record WHERE kind = ?1 AND id = ?2")?
        .query_row([kind, id], |row| {
            Ok(Found {
                version: row.get(0).map(from_sql)?,
                token: row.get::<_, Option<i64>>(1)?.map(from_sql),
            })
        })
        .optional()
}

fn delete_version(transaction: &Connection, version: u64) -> rusqlite::Result<()> {
    transaction
        .prepare_cached("DELETE FROM record WHERE version = ?1")?
        .execute([to_sql(version)])
        .map(|_| ())
}

fn page(
    connection: &Connection,
    filter: &Filter,
    cursor: Option<String>,
    limit: usize,
) -> rusqlite::Result<Page> {
    // Only the conditions that are asked for: with all of them in one text SQLite could not tell
    // which index helps.
    let mut sql = "SELECT * FROM record WHERE kind = :kind".to_owned();
    for (column, wanted) in [
        ("owner", &filter.owner),
        ("account", &filter.account),
        ("state", &filter.state),
    ] {
        let condition = match wanted {
            Some(_) => format!(" AND {column} = :{column}"),
            // Every parameter must occur.
            None => format!(" AND :{column} IS NULL"),
        };
        sql.push_str(&condition);
    }
    sql.push_str(match cursor {
        Some(_) => " AND id > :cursor",
        None => " AND :cursor IS NULL",
    });
    sql.push_str(" ORDER BY id");
    let mut statement = connection.prepare_cached(&sql)?;
    let mut rows = statement.query(named_params! {
        ":kind": filter.kind,
        ":owner": filter.owner,
        ":account": filter.account,
        ":state": filter.state,
        ":cursor": cursor,
    })?;
    let mut page = Page {
        entries: Vec::new(),
        next: None,
    };
    let mut bytes = 0;
    while let Some(row) = rows.next()? {
        let entry = entry(row)?;
        bytes += entry.body.len();
        let full = page.entries.len() == limit || bytes > limits::PAGE_BYTES;
        if full && let Some(last) = page.entries.last() {
            page.next = Some(last.envelope.id.clone());
            break;
        }
        page.entries.push(entry);
    }
    Ok(page)
}

fn entry(row: &Row<'_>) -> rusqlite::Result<Entry> {
    Ok(Entry {
        envelope: Envelope {
            kind: row.get("kind")?,
            id: row.get("id")?,
            owner: row.get("owner")?,
            account: row.get("account")?,
            state: row.get("state")?,
            due_ms: row.get::<_, Option<i64>>("due")?.map(from_sql),
            updated_ms: from_sql(row.get("updated")?),
        },
        version: from_sql(row.get("version")?),
        body: row.get("body")?,
        lease: holding(row)?,
    })
}

fn holding(row: &Row<'_>) -> rusqlite::Result<Option<Holding>> {
    row.get::<_, Option<i64>>("lease_token")?
        .map(|token| {
            Ok(Holding {
                holder: row.get("lease_holder")?,
                token: from_sql(token),
                until_ms: from_sql(row.get("lease_until")?),
            })
        })
        .transpose()
}

#[expect(clippy::needless_pass_by_value, reason = "for map_err")]
pub(super) fn unavailable(error: rusqlite::Error) -> StorageError {
    StorageError::Unavailable(explain(&error))
}

/// What SQLite reports, and what to do about the usual ones.
pub(super) fn explain(error: &rusqlite::Error) -> String {
    let advice = match error.sqlite_error_code() {
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => {
            "another process holds the store: end it or try again"
        }
        Some(ErrorCode::DiskFull) => "the disk is full: make room and try again",
        Some(ErrorCode::ReadOnly | ErrorCode::PermissionDenied | ErrorCode::CannotOpen) => {
            "the file and its directory must be writable for this user"
        }
        Some(ErrorCode::DatabaseCorrupt) => "the file is damaged: restore it from a backup",
        _ => return crate::error::chain(error),
    };
    format!("{} ({advice})", crate::error::chain(error))
}
