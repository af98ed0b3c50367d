//! What one writes for oneself: a table of tasks, `FOR UPDATE SKIP LOCKED`, a lease and an update.

use tokio_postgres::{Client, NoTls};

use crate::Result;

/// The shape that such tables have; the index leaves out what is done.
const TABLE: &str = "
    CREATE TABLE task (
        id text PRIMARY KEY,
        state text NOT NULL,
        due bigint,
        holder text,
        token bigint,
        until bigint,
        body bytea NOT NULL
    );
    CREATE INDEX task_due ON task (due) WHERE due IS NOT NULL;
    CREATE SEQUENCE fence;";

const CLAIM: &str = "
    UPDATE task SET holder = $1, token = nextval('fence'), until = 60000
    WHERE id IN (
        SELECT id FROM task WHERE due <= 0 AND until IS NULL
        ORDER BY due, id LIMIT $2 FOR UPDATE SKIP LOCKED)
    RETURNING id, token, body";

const COMPLETE: &str = "
    UPDATE task SET state = 'retry', due = 3600000, holder = NULL, until = NULL, body = $3
    WHERE id = $1 AND token = $2";

/// A worker's connection.
pub(crate) struct Plain(Client);

impl Plain {
    pub(crate) async fn open(url: &str) -> Result<Self> {
        let (client, connection) = tokio_postgres::connect(url, NoTls).await?;
        tokio::spawn(connection);
        Ok(Self(client))
    }

    /// Makes the table, with tasks that are all due.
    pub(crate) async fn fill(url: &str, tasks: u64, body: usize) -> Result<()> {
        let Self(client) = Self::open(url).await?;
        client.batch_execute(TABLE).await?;
        let insert = "
            INSERT INTO task (id, state, due, body)
            SELECT md5(n::text), 'retry', -n, convert_to(repeat('7', $2), 'UTF8')
            FROM generate_series(1, $1::bigint) AS n";
        let (tasks, body) = (i64::try_from(tasks)?, i32::try_from(body)?);
        client.execute(insert, &[&tasks, &body]).await?;
        Ok(())
    }

    /// Claims and completes until nothing is due; gives how many it completed.
    pub(crate) async fn work(self, name: &str, batch: u32) -> Result<u64> {
        let Self(client) = self;
        let claim = client.prepare(CLAIM).await?;
        let complete = client.prepare(COMPLETE).await?;
        let mut done = 0;
        loop {
            let rows = client.query(&claim, &[&name, &i64::from(batch)]).await?;
            if rows.is_empty() {
                return Ok(done);
            }
            for row in rows {
                let (id, token): (&str, i64) = (row.try_get(0)?, row.try_get(1)?);
                let body: &[u8] = row.try_get(2)?;
                done += client.execute(&complete, &[&id, &token, &body]).await?;
            }
        }
    }
}
