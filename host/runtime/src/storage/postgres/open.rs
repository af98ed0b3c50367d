//! Reaching the server, and the tables there.

use std::path::PathBuf;
use std::time::Duration;

use deadpool_postgres::{
    GenericClient, Hook, HookError, Manager, ManagerConfig, Object, Pool, RecyclingMethod, Runtime,
};
use tokio_postgres::Config;
use tokio_postgres::config::{Host, SslMode};
use tokio_postgres_rustls::MakeRustlsConnect;

use super::{PostgresConfig, explain, explain_pool};
use crate::error::chain;
use crate::limits;
use crate::network::tls;
use crate::storage::OpenError;

/// The migrations below, all of them.
const FORMAT: i32 = 1;

/// Only one program at a time makes or changes the tables: the key of PostgreSQL's advisory lock,
/// `ABIDE` in ASCII.
const LOCK: i64 = 0x41_42_49_44_45;

/// From each format to the next one, from nothing to the first in front. Once published, none of
/// them changes.
///
/// Names are octets: so they may hold every character, also the zero that PostgreSQL's text cannot,
/// and their order is that of the octets whatever the locale of the database. An index takes less
/// than 2704 octets, so of some names only the beginning is in it. `claimable` says from when on a
/// record can be claimed: its due, or the end of its lease.
const MIGRATIONS: [&str; 1] = ["
    CREATE TABLE abide.format (version integer NOT NULL);
    INSERT INTO abide.format VALUES (0);
    CREATE SEQUENCE abide.version;
    CREATE SEQUENCE abide.fence;
    CREATE TABLE abide.record (
        number  bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
        version bigint NOT NULL DEFAULT nextval('abide.version'),
        kind    bytea NOT NULL,
        id      bytea NOT NULL,
        owner   bytea NOT NULL,
        account bytea NOT NULL,
        state   bytea NOT NULL,
        due     bigint,
        updated bigint NOT NULL,
        body    bytea NOT NULL,
        lease_holder bytea,
        lease_token  bigint,
        lease_until  bigint,
        lost         integer NOT NULL DEFAULT 0,
        claimable    bigint
    );
    CREATE UNIQUE INDEX record_id ON abide.record (kind, id);
    CREATE INDEX record_owner ON abide.record (kind, substring(owner FROM 1 FOR 128), id);
    CREATE INDEX record_state ON abide.record (kind, substring(state FROM 1 FOR 128), id);
    CREATE INDEX record_claimable ON abide.record (kind, claimable, id)
        WHERE claimable IS NOT NULL;
    CREATE VIEW abide.readable AS
        SELECT encode(kind, 'escape') AS kind, encode(id, 'escape') AS id, version,
            encode(owner, 'escape') AS owner, encode(account, 'escape') AS account,
            encode(state, 'escape') AS state, due, updated, length(body) AS octets,
            encode(lease_holder, 'escape') AS lease_holder, lease_token, lease_until, lost
        FROM abide.record;
"];

/// What the configuration asks for, with bounds on everything that may take time.
pub(super) struct Target {
    config: Config,
    /// Without the password.
    pub(super) address: String,
}

impl Target {
    pub(super) fn new(url: &str) -> Result<Self, OpenError> {
        // A certificate is always verified, with its name: the strictest word means nothing more.
        let url = url.replace("sslmode=verify-full", "sslmode=require");
        let mut config: Config = url.parse().map_err(|error| OpenError::Unusable {
            path: PathBuf::from("postgresql://…"),
            reason: format!("the address is malformed: {}", chain(&error)),
        })?;
        if config.get_ssl_mode() == SslMode::Prefer {
            let mode = if is_here(&config) {
                SslMode::Disable
            } else {
                SslMode::Require
            };
            config.ssl_mode(mode);
        }
        if config.get_application_name().is_none() {
            config.application_name("abide");
        }
        if config.get_connect_timeout().is_none() {
            config.connect_timeout(limits::CONNECT_TIME);
        }
        config.tcp_user_timeout(limits::STORE_SILENCE);
        config.keepalives_idle(limits::STORE_SILENCE);
        let address = address(&config);
        Ok(Target { config, address })
    }

    /// Nothing is connected yet.
    pub(super) fn pool(&self, wanted: &PostgresConfig) -> Result<Pool, OpenError> {
        let tls = match self.config.get_ssl_mode() {
            SslMode::Disable => tls::none(),
            _ => tls::client(&wanted.trusted, wanted.identity.as_ref()),
        };
        let tls = tls.map_err(|error| self.unusable(chain(&error)))?;
        let manager = Manager::from_config(
            self.config.clone(),
            MakeRustlsConnect::new(tls),
            // A connection that the server has closed is seen without asking.
            ManagerConfig {
                recycling_method: RecyclingMethod::Fast,
            },
        );
        let session = session();
        Pool::builder(manager)
            .max_size(wanted.connections.max(1))
            .runtime(Runtime::Tokio1)
            .wait_timeout(Some(limits::STORE_TURN))
            .create_timeout(Some(limits::CONNECT_TIME + limits::STORE_ANSWER))
            .post_create(Hook::async_fn(move |client, _| {
                let session = session.clone();
                Box::pin(async move {
                    client
                        .batch_execute(&session)
                        .await
                        .map_err(HookError::Backend)
                })
            }))
            .build()
            .map_err(|error| self.unusable(chain(&error)))
    }

    /// Makes the tables, or brings older ones up to date, in one step. Who dies in it leaves what
    /// was there; who comes second waits and finds it made.
    pub(super) async fn initialise(&self, pool: &Pool) -> Result<(), OpenError> {
        let mut client = pool
            .get()
            .await
            .map_err(|error| self.unusable(explain_pool(&error)))?;
        if let Some(FORMAT) = self.format(&client).await? {
            return Ok(());
        }
        self.migrate(&mut client).await
    }

    async fn migrate(&self, client: &mut Object) -> Result<(), OpenError> {
        let sql = |error: tokio_postgres::Error| self.unusable(explain(&error));
        let transaction = client.transaction().await.map_err(sql)?;
        transaction
            .execute("SELECT pg_advisory_xact_lock($1)", &[&LOCK])
            .await
            .map_err(sql)?;
        let done = match self.format(&transaction).await? {
            Some(version) => usize::try_from(version).unwrap_or(0),
            None => 0,
        };
        if done == 0 {
            let made = "SELECT 1 FROM pg_namespace WHERE nspname = 'abide'";
            if transaction
                .query_opt(made, &[])
                .await
                .map_err(sql)?
                .is_none()
            {
                transaction
                    .batch_execute("CREATE SCHEMA abide")
                    .await
                    .map_err(sql)?;
            }
        }
        let script = MIGRATIONS[done.min(MIGRATIONS.len())..].concat();
        transaction
            .batch_execute(&format!(
                "{script}; UPDATE abide.format SET version = {FORMAT}"
            ))
            .await
            .map_err(sql)?;
        transaction.commit().await.map_err(sql)
    }

    /// Which format the tables have; `None` when there are none.
    async fn format(&self, client: &impl GenericClient) -> Result<Option<i32>, OpenError> {
        let sql = |error: tokio_postgres::Error| self.unusable(explain(&error));
        let path = PathBuf::from(&self.address);
        let tables = "SELECT count(*), count(*) FILTER (WHERE c.relname = 'format')
            FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
            WHERE n.nspname = 'abide'";
        let row = client.query_one(tables, &[]).await.map_err(sql)?;
        match (row.get::<_, i64>(0), row.get::<_, i64>(1)) {
            (0, _) => return Ok(None),
            (_, 0) => return Err(OpenError::Foreign { path }),
            _ => {}
        }
        let version: i32 = client
            .query_one("SELECT version FROM abide.format", &[])
            .await
            .map_err(sql)?
            .get(0);
        if version > FORMAT {
            return Err(OpenError::Newer {
                path,
                found: version.unsigned_abs(),
                known: FORMAT.unsigned_abs(),
            });
        }
        Ok(Some(version))
    }

    fn unusable(&self, reason: String) -> OpenError {
        OpenError::Unusable {
            path: PathBuf::from(&self.address),
            reason,
        }
    }
}

/// What every connection begins with. Each query has an index made for it, and a table that was
/// small when a query was planned may have grown: so nothing but indexes is planned with, once. Whatever
/// the server's own settings are, what was committed stays.
fn session() -> String {
    let milliseconds = |time: Duration| time.as_millis();
    format!(
        "SET default_transaction_isolation = 'read committed';
         SET client_min_messages = warning;
         SET statement_timeout = {};
         SET idle_in_transaction_session_timeout = {};
         SET enable_seqscan = off;
         SET enable_bitmapscan = off;
         SET enable_hashjoin = off;
         SET enable_mergejoin = off;
         SET plan_cache_mode = force_generic_plan;
         SET jit = off;
         SELECT set_config('synchronous_commit', 'on', false)
         WHERE current_setting('synchronous_commit') = 'off'",
        milliseconds(limits::STORE_STATEMENT),
        milliseconds(limits::STORE_SILENCE),
    )
}

/// Whether nothing leaves this machine.
fn is_here(config: &Config) -> bool {
    config.get_hosts().iter().all(|host| match host {
        Host::Unix(_) => true,
        Host::Tcp(name) => {
            name == "localhost"
                || name
                    .parse::<std::net::IpAddr>()
                    .is_ok_and(|ip| ip.is_loopback())
        }
    }) && config
        .get_hostaddrs()
        .iter()
        .all(|address| address.is_loopback())
}

fn address(config: &Config) -> String {
    let hosts: Vec<String> = config
        .get_hosts()
        .iter()
        .enumerate()
        .map(|(at, host)| {
            let ports = config.get_ports();
            let port = ports.get(at).or(ports.first()).copied().unwrap_or(5432);
            match host {
                Host::Tcp(name) => format!("{name}:{port}"),
                Host::Unix(path) => format!("{}:{port}", path.display()),
            }
        })
        .collect();
    let database = config
        .get_dbname()
        .or(config.get_user())
        .unwrap_or_default();
    format!("postgresql://{}/{database}", hosts.join(","))
}
