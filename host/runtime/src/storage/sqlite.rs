//! The default store: one SQLite file.
//!
//! A commit is one IMMEDIATE transaction, flushed before it returns. What survives a death at any
//! point is the last commit that returned, and perhaps the one that was about to.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use rusqlite::{
    Connection, ErrorCode, OptionalExtension, Row, Transaction, TransactionBehavior, named_params,
    params,
};

use super::{OpenError, check, open};
use crate::wit::storage::{Change, Entry, Envelope, Filter, Page, Put, Removal, StorageError};
use crate::{Storage, limits};

/// A store in a file. Several processes may use one file at the same time.
pub struct SqliteStorage {
    path: PathBuf,
    connection: Arc<Mutex<Connection>>,
    writable: bool,
}

impl SqliteStorage {
    /// Opens the store, and makes it if the file does not exist or is empty.
    pub fn open(path: &Path) -> Result<Self, OpenError> {
        Ok(Self::new(path, open::read_write(path)?, true))
    }

    /// Opens an existing store for reading; a commit is refused.
    pub fn open_read_only(path: &Path) -> Result<Self, OpenError> {
        Ok(Self::new(path, open::read_only(path)?, false))
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    fn new(path: &Path, connection: Connection, writable: bool) -> Self {
        SqliteStorage {
            path: path.to_owned(),
            connection: Arc::new(Mutex::new(connection)),
            writable,
        }
    }

    /// Runs `work` where it may block: a flush takes as long as the disk takes.
    async fn run<R: Send + 'static>(
        &self,
        work: impl FnOnce(&Connection) -> Result<R, StorageError> + Send + 'static,
    ) -> Result<R, StorageError> {
        let connection = self.connection.clone();
        tokio::task::spawn_blocking(move || {
            // A panic in between has rolled back, like any error.
            work(&connection.lock().unwrap_or_else(PoisonError::into_inner))
        })
        .await
        .unwrap_or_else(|error| Err(StorageError::Unavailable(error.to_string())))
        .map_err(|error| match error {
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
            .field("writable", &self.writable)
            .finish_non_exhaustive()
    }
}

#[async_trait]
impl Storage for SqliteStorage {
    async fn get(&self, kind: &str, id: &str) -> Result<Option<Entry>, StorageError> {
        let (kind, id) = (kind.to_owned(), id.to_owned());
        self.run(move |connection| {
            connection
                .prepare_cached("SELECT * FROM record WHERE kind = ?1 AND id = ?2")
                .and_then(|mut statement| statement.query_row([kind, id], entry).optional())
                .map_err(unavailable)
        })
        .await
    }

    async fn commit(&self, changes: Vec<Change>) -> Result<Vec<u64>, StorageError> {
        check::changes(&changes)?;
        if !self.writable {
            let why = format!("{}: it was opened for reading only", self.path.display());
            return Err(StorageError::Unavailable(why));
        }
        self.run(move |connection| {
            let transaction =
                Transaction::new_unchecked(connection, TransactionBehavior::Immediate)
                    .map_err(unavailable)?;
            let versions = changes
                .into_iter()
                .map(|change| match change {
                    Change::Put(put) => write(&transaction, put),
                    Change::Delete(removal) => remove(&transaction, &removal).map(|()| 0),
                })
                .collect::<Result<Vec<_>, _>>()?;
            transaction.commit().map_err(unavailable)?;
            Ok(versions)
        })
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
        self.run(move |connection| page(connection, &filter, cursor, limit).map_err(unavailable))
            .await
    }
}

fn write(transaction: &Transaction<'_>, put: Put) -> Result<u64, StorageError> {
    let Put {
        envelope,
        expected,
        body,
    } = put;
    if version(transaction, &envelope.kind, &envelope.id)? != expected {
        return Err(check::conflict(&envelope.kind, &envelope.id));
    }
    // A new row instead of a changed one: its number is the new version.
    if let Some(expected) = expected {
        delete_version(transaction, expected)?;
    }
    transaction
        .prepare_cached(
            "INSERT INTO record (kind, id, owner, account, state, due, updated, body)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)",
        )
        .and_then(|mut statement| {
            statement.execute(params![
                envelope.kind,
                envelope.id,
                envelope.owner,
                envelope.account,
                envelope.state,
                envelope.due_ms.map(to_sql),
                to_sql(envelope.updated_ms),
                body,
            ])
        })
        .map_err(unavailable)?;
    Ok(from_sql(transaction.last_insert_rowid()))
}

fn remove(transaction: &Transaction<'_>, removal: &Removal) -> Result<(), StorageError> {
    if version(transaction, &removal.kind, &removal.id)? != Some(removal.expected) {
        return Err(check::conflict(&removal.kind, &removal.id));
    }
    delete_version(transaction, removal.expected)
}

fn version(
    transaction: &Transaction<'_>,
    kind: &str,
    id: &str,
) -> Result<Option<u64>, StorageError> {
    transaction
        .prepare_cached("SELECT version FROM record WHERE kind = ?1 AND id = ?2")
        .and_then(|mut statement| {
            statement
                .query_row([kind, id], |row| row.get(0).map(from_sql))
                .optional()
        })
        .map_err(unavailable)
}

fn delete_version(transaction: &Transaction<'_>, version: u64) -> Result<(), StorageError> {
    transaction
        .prepare_cached("DELETE FROM record WHERE version = ?1")
        .and_then(|mut statement| statement.execute([to_sql(version)]))
        .map(|_| ())
        .map_err(unavailable)
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
    })
}

/// Nothing above the largest signed integer gets past the check; a version that does belongs to no
/// record.
fn to_sql(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

/// Nothing negative was ever written.
fn from_sql(number: i64) -> u64 {
    u64::try_from(number).unwrap_or(0)
}

#[expect(clippy::needless_pass_by_value, reason = "for map_err")]
fn unavailable(error: rusqlite::Error) -> StorageError {
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
