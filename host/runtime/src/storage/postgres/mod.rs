//! A store on a PostgreSQL server, for several hosts at once.
//!
//! A commit is one statement if all is as the caller has read it. If not, it is two trips: one that
//! locks the records it is about, in one order for all, and after the judgement one that writes and
//! commits. The server flushes before it answers.

mod at_once;
mod open;
mod write;

use std::fmt;
use std::future::Future;
use std::io;
use std::ops::Deref;
use std::time::Duration;

use async_trait::async_trait;
use deadpool_postgres::{Object, Pool, PoolError};
use tokio::time::{sleep, timeout};
use tokio_postgres::Row;
use tokio_postgres::error::SqlState;
use tokio_postgres::types::ToSql;

use self::open::Target;
use super::check::{self, from_sql, to_sql};
use super::open::OpenError;
use crate::error::chain;
use crate::limits::PAGE_BYTES;
use crate::network::tls::{Identity, TlsFile};
use crate::wit::storage::{
    Change, Claim, Claims, Entry, Envelope, Filter, Holding, Lease, Page, StorageError,
};
use crate::{Storage, limits};

/// How a server is reached.
#[derive(Clone)]
pub struct PostgresConfig {
    /// `postgresql://user:password@host:port/database?sslmode=…`, also with several hosts. TLS is
    /// `require`d if nothing is said and the server is on another machine; then its certificate and
    /// its name are verified, always.
    pub url: String,
    /// Connections at most; [`limits::STORE_CONNECTIONS`] is usual.
    pub connections: usize,
    /// The roots of the server's certificate; those of the machine when there are none.
    pub trusted: Vec<TlsFile>,
    /// For servers that ask for a certificate.
    pub identity: Option<Identity>,
}

impl PostgresConfig {
    /// What is usual.
    pub fn new(url: impl Into<String>) -> Self {
        PostgresConfig {
            url: url.into(),
            connections: limits::STORE_CONNECTIONS,
            trusted: Vec::new(),
            identity: None,
        }
    }
}

impl fmt::Debug for PostgresConfig {
    /// Without the address: a password is in it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PostgresConfig")
            .field("connections", &self.connections)
            .field("trusted", &self.trusted)
            .field("identity", &self.identity)
            .finish_non_exhaustive()
    }
}

/// A store in a database, in tables of its own under the schema `abide`. Several processes may use
/// one at the same time.
pub struct PostgresStorage {
    pool: Pool,
    address: String,
}

impl PostgresStorage {
    /// Connects, and makes the tables or brings them up to date.
    pub async fn open(config: &PostgresConfig) -> Result<Self, OpenError> {
        let target = Target::new(&config.url)?;
        let pool = target.pool(config)?;
        target.initialise(&pool).await?;
        Ok(PostgresStorage {
            pool,
            address: target.address,
        })
    }

    /// Where it is, without the password.
    pub fn address(&self) -> &str {
        &self.address
    }

    /// Runs `work` with a connection, again if another transaction got in its way.
    async fn run<R, F>(&self, work: impl Fn(Session) -> F + Send + Sync) -> Result<R, StorageError>
    where
        R: Send,
        F: Future<Output = Result<R, Failure>> + Send,
    {
        let mut tries = 1;
        loop {
            let client = self.pool.get().await;
            let client = client.map_err(|error| self.unavailable(&explain_pool(&error)))?;
            match timeout(limits::STORE_ANSWER, work(Session::new(client))).await {
                Ok(Ok(result)) => return Ok(result),
                Ok(Err(Failure::Refused(error))) => return Err(error),
                Ok(Err(Failure::Server(error)))
                    if is_passing(&error) && tries < limits::STORE_TRIES =>
                {
                    // Whoever was in the way gets done.
                    sleep(limits::STORE_RETRY * tries).await;
                    tries += 1;
                }
                Ok(Err(Failure::Server(error))) => return Err(self.unavailable(&explain(&error))),
                Err(_) => return Err(self.unavailable(&too_slow(limits::STORE_ANSWER))),
            }
        }
    }

    fn unavailable(&self, why: &str) -> StorageError {
        StorageError::Unavailable(format!("{}: {why}", self.address))
    }
}

impl fmt::Debug for PostgresStorage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PostgresStorage")
            .field("address", &self.address)
            .finish_non_exhaustive()
    }
}

/// Why something was not done.
enum Failure {
    /// By the rules of a store.
    Refused(StorageError),
    /// By the server, or because there is none.
    Server(tokio_postgres::Error),
}

impl From<tokio_postgres::Error> for Failure {
    fn from(error: tokio_postgres::Error) -> Self {
        Failure::Server(error)
    }
}

/// A connection that goes back to the others when what was begun on it is over. Else, be it that
/// the caller has gone away or that the server does not answer, it is closed, and the server rolls
/// back.
struct Session {
    client: Option<Object>,
}

impl Session {
    fn new(client: Object) -> Self {
        Session {
            client: Some(client),
        }
    }

    /// Nothing is open on it.
    fn settle(mut self) {
        self.client.take();
    }
}

impl Deref for Session {
    type Target = Object;

    fn deref(&self) -> &Object {
        match &self.client {
            Some(client) => client,
            None => unreachable!("only settling takes it, and that is the end"),
        }
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        if let Some(client) = self.client.take() {
            drop(Object::take(client));
        }
    }
}

/// What makes an entry, in every query alike.
const ENTRY: &str = "kind, id, owner, account, state, due, updated, version, body,
    lease_holder, lease_token, lease_until";

#[async_trait]
impl Storage for PostgresStorage {
    async fn get(&self, kind: &str, id: &str) -> Result<Option<Entry>, StorageError> {
        let sql = format!("SELECT {ENTRY} FROM abide.record WHERE kind = $1 AND id = $2");
        let sql = &sql;
        self.run(|session| async move {
            let statement = session.prepare_cached(sql).await?;
            let row = session
                .query_opt(&statement, &[&kind.as_bytes(), &id.as_bytes()])
                .await?;
            session.settle();
            Ok(row.as_ref().map(entry).transpose()?)
        })
        .await
    }

    async fn commit(&self, changes: Vec<Change>) -> Result<Vec<u64>, StorageError> {
        check::changes(&changes)?;
        if changes.is_empty() {
            return Ok(Vec::new());
        }
        let changes = &changes[..];
        self.run(|session| write::commit(session, changes)).await
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
        let (filter, cursor) = (&filter, cursor.as_deref());
        self.run(|session| page(session, filter, cursor, limit))
            .await
    }

    async fn claim_due(&self, claim: Claim) -> Result<Claims, StorageError> {
        let claim = &claim;
        self.run(|session| write::claim(session, claim)).await
    }

    async fn renew(&self, leases: Vec<Lease>, until_ms: u64) -> Result<Vec<Lease>, StorageError> {
        let leases = &leases[..];
        self.run(|session| write::renew(session, leases, until_ms))
            .await
    }

    async fn release(&self, leases: Vec<Lease>) -> Result<(), StorageError> {
        let leases = &leases[..];
        self.run(|session| write::release(session, leases)).await
    }

    async fn count_state(&self, kind: &str, state: &str, limit: u32) -> Result<u32, StorageError> {
        let sql = "SELECT count(*) FROM
            (SELECT FROM abide.record WHERE kind = $1 AND state = $2
             AND substring(state FROM 1 FOR 128) = substring($2 FROM 1 FOR 128) LIMIT $3) AS found";
        self.run(|session| async move {
            let statement = session.prepare_cached(sql).await?;
            let row = session
                .query_one(
                    &statement,
                    &[&kind.as_bytes(), &state.as_bytes(), &i64::from(limit)],
                )
                .await?;
            session.settle();
            Ok(u32::try_from(row.try_get::<_, i64>(0)?).unwrap_or(u32::MAX))
        })
        .await
    }

    async fn count(&self, kind: &str, now_ms: u64, limit: u32) -> Result<(u32, u32), StorageError> {
        let sql = "SELECT
            (SELECT count(*) FROM
                (SELECT FROM abide.record WHERE kind = $1 LIMIT $3) AS every),
            (SELECT count(*) FROM
                (SELECT FROM abide.record WHERE kind = $1 AND claimable <= $2
                 AND lease_token IS NULL LIMIT $3) AS due)";
        self.run(|session| async move {
            let statement = session.prepare_cached(sql).await?;
            let row = session
                .query_one(
                    &statement,
                    &[&kind.as_bytes(), &to_sql(now_ms), &i64::from(limit)],
                )
                .await?;
            session.settle();
            let number = |at: usize| -> Result<u32, tokio_postgres::Error> {
                Ok(u32::try_from(row.try_get::<_, i64>(at)?).unwrap_or(u32::MAX))
            };
            Ok((number(0)?, number(1)?))
        })
        .await
    }
}

async fn page(
    session: Session,
    filter: &Filter,
    cursor: Option<&str>,
    limit: usize,
) -> Result<Page, Failure> {
    let most = i64::try_from(limit + 1).unwrap_or(i64::MAX);
    let kind = filter.kind.as_bytes();
    let optional = [
        ("owner = ", filter.owner.as_deref()),
        ("account = ", filter.account.as_deref()),
        ("state = ", filter.state.as_deref()),
        ("id > ", cursor),
    ];
    let optional = optional.map(|(condition, value)| (condition, value.map(str::as_bytes)));
    let mut values: Vec<&(dyn ToSql + Sync)> = vec![&kind, &most];
    let mut conditions = String::new();
    for (condition, value) in &optional {
        let Some(value) = value else { continue };
        values.push(value);
        let place = values.len();
        conditions.push_str(&format!(" AND {condition}${place}"));
        // The index has the beginning.
        if let "owner = " | "state = " = *condition {
            let column = &condition[..5];
            conditions.push_str(&format!(
                " AND substring({column} FROM 1 FOR 128) = substring(${place} FROM 1 FOR 128)"
            ));
        }
    }
    // The bodies are counted there, so that no page travels that does not fit. The one after the
    // last, of which only the existence matters, has none.
    let sql = format!(
        "SELECT kind, id, owner, account, state, due, updated, version,
            lease_holder, lease_token, lease_until, fits, CASE WHEN fits THEN body END AS body
        FROM (
            SELECT *, row_number() OVER ids = 1 OR sum(length(body)) OVER ids <= {PAGE_BYTES} AS fits
            FROM (
                SELECT * FROM abide.record WHERE kind = $1{conditions} ORDER BY id LIMIT $2
            ) AS wanted
            WINDOW ids AS (ORDER BY id ROWS UNBOUNDED PRECEDING)
        ) AS counted ORDER BY id"
    );
    let statement = session.prepare_cached(&sql).await?;
    let rows = session.query(&statement, &values).await?;
    session.settle();
    let mut page = Page {
        entries: Vec::new(),
        next: None,
    };
    for row in &rows {
        if page.entries.len() == limit || !row.try_get::<_, bool>("fits")? {
            page.next = page
                .entries
                .last()
                .map(|last: &Entry| last.envelope.id.clone());
            break;
        }
        page.entries.push(entry(row)?);
    }
    Ok(page)
}

fn entry(row: &Row) -> Result<Entry, tokio_postgres::Error> {
    Ok(Entry {
        envelope: Envelope {
            kind: text(row, "kind")?,
            id: text(row, "id")?,
            owner: text(row, "owner")?,
            account: text(row, "account")?,
            state: text(row, "state")?,
            due_ms: row.try_get::<_, Option<i64>>("due")?.map(from_sql),
            updated_ms: from_sql(row.try_get("updated")?),
        },
        version: from_sql(row.try_get("version")?),
        body: row.try_get("body")?,
        lease: match row.try_get::<_, Option<i64>>("lease_token")? {
            None => None,
            Some(token) => Some(Holding {
                holder: text(row, "lease_holder")?,
                token: from_sql(token),
                until_ms: from_sql(row.try_get("lease_until")?),
            }),
        },
    })
}

/// Only UTF-8 was ever written.
fn text(row: &Row, column: &str) -> Result<String, tokio_postgres::Error> {
    let octets: &[u8] = row.try_get(column)?;
    Ok(String::from_utf8_lossy(octets).into_owned())
}

/// Whether the same is likely to succeed at once: another transaction was in the way.
fn is_passing(error: &tokio_postgres::Error) -> bool {
    error.code().is_some_and(|code| {
        [
            SqlState::T_R_SERIALIZATION_FAILURE,
            SqlState::T_R_DEADLOCK_DETECTED,
            SqlState::UNIQUE_VIOLATION,
        ]
        .contains(code)
    })
}

fn too_slow(time: Duration) -> String {
    format!(
        "no answer within {} s (is the server overloaded, or the network broken?)",
        time.as_secs()
    )
}

/// What the server reports, and what to do about the usual ones.
fn explain(error: &tokio_postgres::Error) -> String {
    let advice = match error.code() {
        Some(code) => match code.code() {
            "57P01" | "57P02" | "57P03" => "the server is stopping or starting: try again",
            "53300" => {
                "the server has no connection left: raise its max_connections, or ask for fewer"
            }
            "53100" => "the disk of the server is full: make room and try again",
            "25006" => "this server may only be read: name the primary one",
            "28P01" | "28000" => "look at the user and the password in the address",
            "3D000" => "create the database, or name another one",
            "42501" => "the user needs CREATE on the database once, and its tables always",
            "57014" => "the server took too long; is it overloaded?",
            _ => return chain(error),
        },
        None if error.is_closed() || is_connection(error) => {
            "the server is not there or has gone: a commit under way was kept as a whole or not at all; try again"
        }
        None => return chain(error),
    };
    format!("{} ({advice})", chain(error))
}

/// Whether the connection failed, and not what was said over it.
fn is_connection(error: &tokio_postgres::Error) -> bool {
    let mut cause = std::error::Error::source(error);
    while let Some(error) = cause {
        if let Some(error) = error.downcast_ref::<io::Error>() {
            return error.kind() != io::ErrorKind::InvalidData;
        }
        cause = error.source();
    }
    false
}

fn explain_pool(error: &PoolError) -> String {
    match error {
        PoolError::Backend(error) => explain(error),
        PoolError::Timeout(deadpool_postgres::TimeoutType::Wait) => format!(
            "no connection became free within {} s: allow more of them",
            limits::STORE_TURN.as_secs()
        ),
        PoolError::Timeout(_) => too_slow(limits::CONNECT_TIME),
        error => chain(error),
    }
}
