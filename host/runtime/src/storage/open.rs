//! Opening a store without harming what is not one.
//!
//! SQLite recovers, converts and initialises whatever it opens, so a file is looked at before
//! SQLite sees it: the header of a database says whose it is. Only a file that is ours, or new, is
//! handed over.

use std::fs::{self, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Instant;

use rusqlite::{Connection, OpenFlags, Transaction, TransactionBehavior};

use crate::limits;

/// `ABID`: marks a database as a store of abide (SQLite's `PRAGMA application_id`).
const APPLICATION_ID: i32 = i32::from_be_bytes(*b"ABID");

/// The schema below (SQLite's `PRAGMA user_version`).
const SCHEMA_VERSION: i32 = 2;

/// What a database begins with (SQLite file format, 1.3).
const MAGIC: &[u8; 16] = b"SQLite format 3\0";

/// The length of a database's header, and where the two numbers stand in it.
const HEADER: usize = 100;
const USER_VERSION_AT: usize = 60;
const APPLICATION_ID_AT: usize = 68;

/// One table for every kind of record. The version is the row's number: AUTOINCREMENT never gives
/// one out twice, not even after a delete, so a version names one state of one record for good.
///
/// `claimable` says from when on a record can be claimed: its due, or the end of its lease. So a
/// claim is one range of one index, however many records there are. `fence` has the last token.
const SCHEMA: &str = "
    CREATE TABLE record (
        version INTEGER PRIMARY KEY AUTOINCREMENT,
        kind    TEXT NOT NULL,
        id      TEXT NOT NULL,
        owner   TEXT NOT NULL,
        account TEXT NOT NULL,
        state   TEXT NOT NULL,
        due     INTEGER,
        updated INTEGER NOT NULL,
        body    BLOB NOT NULL,
        lease_holder TEXT,
        lease_token  INTEGER,
        lease_until  INTEGER,
        lost         INTEGER NOT NULL DEFAULT 0,
        claimable    INTEGER
    ) STRICT;
    CREATE UNIQUE INDEX record_id ON record (kind, id);
    CREATE INDEX record_owner ON record (kind, owner, id);
    CREATE INDEX record_state ON record (kind, state, id);
    CREATE INDEX record_claimable ON record (kind, claimable, id) WHERE claimable IS NOT NULL;
    CREATE TABLE fence (token INTEGER NOT NULL) STRICT;
    INSERT INTO fence VALUES (0);
";

/// From each format to the next one, the first to the second in front. Once published, none of
/// them changes.
const MIGRATIONS: [&str; 1] = ["
    ALTER TABLE record ADD COLUMN lease_holder TEXT;
    ALTER TABLE record ADD COLUMN lease_token INTEGER;
    ALTER TABLE record ADD COLUMN lease_until INTEGER;
    ALTER TABLE record ADD COLUMN lost INTEGER NOT NULL DEFAULT 0;
    ALTER TABLE record ADD COLUMN claimable INTEGER;
    UPDATE record SET claimable = due;
    DROP INDEX record_due;
    CREATE INDEX record_claimable ON record (kind, claimable, id) WHERE claimable IS NOT NULL;
    CREATE TABLE fence (token INTEGER NOT NULL) STRICT;
    INSERT INTO fence VALUES (0);
"];

/// A store of the first format that is only read, as today's queries want it: nothing in it was
/// ever claimed. SQLite looks for a name among the temporary ones first.
const AS_OF_TODAY: &str = "
    CREATE TEMP VIEW record AS
    SELECT *, NULL AS lease_holder, NULL AS lease_token, NULL AS lease_until, 0 AS lost,
        due AS claimable
    FROM main.record
";

/// Why a store was not opened. Nothing was written to it. Its path is that of its file, or the
/// address on its server, without the password.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum OpenError {
    /// There is no file.
    #[error("{} does not exist: nothing has been stored there yet, or the store is elsewhere", .path.display())]
    Missing {
        /// The store.
        path: PathBuf,
    },
    /// The file is something else.
    #[error("{} is not a store: it is no SQLite database; name another file", .path.display())]
    NotADatabase {
        /// The file.
        path: PathBuf,
    },
    /// The database belongs to another program.
    #[error("{} is not a store of abide: it is a database of another program; name another file", .path.display())]
    Foreign {
        /// The file.
        path: PathBuf,
    },
    /// A newer abide has written it.
    #[error(
        "{} was written by a newer version of abide (format {found}, this program knows {known}): use that version",
        .path.display()
    )]
    Newer {
        /// The store.
        path: PathBuf,
        /// Its format.
        found: u32,
        /// The newest format of this program.
        known: u32,
    },
    /// The directory cannot be made.
    #[error("{} cannot be created: {reason}", .path.display())]
    Directory {
        /// The directory.
        path: PathBuf,
        /// The system's words.
        reason: String,
    },
    /// The file cannot be used now.
    #[error("{} cannot be opened: {reason}", .path.display())]
    Unusable {
        /// The store.
        path: PathBuf,
        /// SQLite's or the system's words.
        reason: String,
    },
}

/// Opens a store for reading and writing, and makes it if there is none.
pub(super) fn read_write(path: &Path) -> Result<Connection, OpenError> {
    create_directory(path)?;
    let created = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(path);
    match created {
        Ok(_) => {}
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => inspect(path)?,
        Err(error) => return Err(unusable(path, &error)),
    }
    let connection = connect(path, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
    let sql = |error: rusqlite::Error| sql_error(path, &error);
    initialise(&connection, path)?;
    use_log(&connection).map_err(sql)?;
    // A commit that has returned survives a power cut.
    connection
        .execute_batch("PRAGMA synchronous = FULL")
        .map_err(sql)?;
    Ok(connection)
}

/// Opens an existing store for reading.
pub(super) fn read_only(path: &Path) -> Result<Connection, OpenError> {
    inspect(path)?;
    let connection = connect(path, OpenFlags::SQLITE_OPEN_READ_ONLY)?;
    let format = {
        let transaction = begin(&connection, path, TransactionBehavior::Deferred)?;
        format(&transaction, path)?
    };
    match format {
        Format::Ours(SCHEMA_VERSION) => Ok(connection),
        Format::Ours(_) => {
            let sql = |error: rusqlite::Error| sql_error(path, &error);
            connection.execute_batch(AS_OF_TODAY).map_err(sql)?;
            Ok(connection)
        }
        Format::Empty => Err(OpenError::Missing {
            path: path.to_owned(),
        }),
    }
}

/// Opens a store once more that [`read_write`] has opened, to read beside the one who writes.
pub(super) fn beside(path: &Path) -> Result<Connection, OpenError> {
    let connection = connect(path, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
    connection
        .execute_batch("PRAGMA query_only = ON")
        .map_err(|error| sql_error(path, &error))?;
    Ok(connection)
}

fn connect(path: &Path, mode: OpenFlags) -> Result<Connection, OpenError> {
    // One connection is used by one thread at a time, so SQLite need not lock for itself.
    let flags = mode | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let sql = |error: rusqlite::Error| sql_error(path, &error);
    let connection = Connection::open_with_flags(path, flags).map_err(sql)?;
    connection.busy_timeout(limits::STORE_BUSY).map_err(sql)?;
    Ok(connection)
}

/// Makes the schema, or brings an older one up to date, in one step. Who dies in it leaves the file
/// as it was or a journal, and the next opening begins again; who comes second waits and finds it
/// made.
fn initialise(connection: &Connection, path: &Path) -> Result<(), OpenError> {
    let found = {
        let transaction = begin(connection, path, TransactionBehavior::Deferred)?;
        format(&transaction, path)?
    };
    if let Format::Ours(SCHEMA_VERSION) = found {
        return Ok(());
    }
    let sql = |error: rusqlite::Error| sql_error(path, &error);
    let transaction = begin(connection, path, TransactionBehavior::Immediate)?;
    let script = match format(&transaction, path)? {
        // Both numbers belong into the file itself before it becomes a write-ahead log's: that is
        // where `inspect` looks for them.
        Format::Empty => format!("PRAGMA application_id = {APPLICATION_ID}; {SCHEMA}"),
        Format::Ours(version) => {
            let done = usize::try_from(version - 1).unwrap_or(0);
            MIGRATIONS[done.min(MIGRATIONS.len())..].concat()
        }
    };
    transaction
        .execute_batch(&format!("{script}; PRAGMA user_version = {SCHEMA_VERSION}"))
        .map_err(sql)?;
    transaction.commit().map_err(sql)
}

fn begin<'a>(
    connection: &'a Connection,
    path: &Path,
    behavior: TransactionBehavior,
) -> Result<Transaction<'a>, OpenError> {
    Transaction::new_unchecked(connection, behavior).map_err(|error| sql_error(path, &error))
}

/// Switches to a write-ahead log: readers beside a writer, and one flush per commit. Where a file
/// system cannot do it, SQLite stays with its older journal, which is as safe.
fn use_log(connection: &Connection) -> rusqlite::Result<()> {
    let begin = Instant::now();
    loop {
        let result = connection.query_row("PRAGMA journal_mode = WAL", [], |_| Ok(()));
        // The switch wants the file for itself and does not wait for others to leave it, the busy
        // timeout notwithstanding. They leave it soon; once one has switched, it is switched.
        let busy = result.as_ref().is_err_and(|error| {
            error.sqlite_error_code() == Some(rusqlite::ErrorCode::DatabaseBusy)
        });
        if !busy || begin.elapsed() > limits::STORE_BUSY {
            return result;
        }
        thread::sleep(limits::STORE_RETRY);
    }
}

enum Format {
    /// Of this version.
    Ours(i32),
    Empty,
}

/// What SQLite sees, the write-ahead log included. All of it in one transaction: between two looks
/// another process may make the schema.
fn format(transaction: &Transaction<'_>, path: &Path) -> Result<Format, OpenError> {
    let number = |pragma: &str| {
        transaction
            .query_row(pragma, [], |row| row.get::<_, i32>(0))
            .map_err(|error| sql_error(path, &error))
    };
    // First, because it is what holds the file in place; the others only look at its header.
    let tables = number("SELECT count(*) FROM sqlite_schema")?;
    let application = number("PRAGMA application_id")?;
    let version = number("PRAGMA user_version")?;
    if application == 0 && version == 0 && tables == 0 {
        return Ok(Format::Empty);
    }
    judge(path, application, version).map(|()| Format::Ours(version))
}

/// What the file says of itself, without SQLite.
fn inspect(path: &Path) -> Result<(), OpenError> {
    let not_a_database = || OpenError::NotADatabase {
        path: path.to_owned(),
    };
    let about = fs::metadata(path).map_err(|error| unusable(path, &error))?;
    if !about.is_file() {
        return Err(not_a_database());
    }
    // A death while the file was made: SQLite rolls it back, and `format` judges what is left.
    let mut journal = path.as_os_str().to_owned();
    journal.push("-journal");
    if about.len() == 0 || fs::metadata(journal).is_ok_and(|journal| journal.len() > 0) {
        return Ok(());
    }
    let mut header = [0; HEADER];
    let mut file = fs::File::open(path).map_err(|error| unusable(path, &error))?;
    match file.read_exact(&mut header) {
        Ok(()) if header.starts_with(MAGIC) => {}
        Ok(()) => return Err(not_a_database()),
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Err(not_a_database()),
        Err(error) => return Err(unusable(path, &error)),
    }
    let number = |at: usize| i32::from_be_bytes([0, 1, 2, 3].map(|i| header[at + i]));
    judge(path, number(APPLICATION_ID_AT), number(USER_VERSION_AT))
}

fn judge(path: &Path, application: i32, version: i32) -> Result<(), OpenError> {
    let path = path.to_owned();
    if application != APPLICATION_ID || version < 1 {
        return Err(OpenError::Foreign { path });
    }
    if version > SCHEMA_VERSION {
        return Err(OpenError::Newer {
            path,
            found: version.unsigned_abs(),
            known: SCHEMA_VERSION.unsigned_abs(),
        });
    }
    Ok(())
}

fn create_directory(path: &Path) -> Result<(), OpenError> {
    let Some(directory) = path
        .parent()
        .filter(|parent| !parent.as_os_str().is_empty())
    else {
        return Ok(());
    };
    fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(directory)
        .map_err(|error| OpenError::Directory {
            path: directory.to_owned(),
            reason: error.to_string(),
        })
}

fn unusable(path: &Path, error: &io::Error) -> OpenError {
    let path = path.to_owned();
    match error.kind() {
        io::ErrorKind::NotFound => OpenError::Missing { path },
        _ => OpenError::Unusable {
            path,
            reason: error.to_string(),
        },
    }
}

fn sql_error(path: &Path, error: &rusqlite::Error) -> OpenError {
    let path = path.to_owned();
    match error.sqlite_error_code() {
        Some(rusqlite::ErrorCode::NotADatabase) => OpenError::NotADatabase { path },
        _ => OpenError::Unusable {
            path,
            reason: super::sqlite::explain(error),
        },
    }
}
