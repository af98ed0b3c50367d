//! Everything that changes records.

use std::collections::{BTreeMap, BTreeSet};

use futures_util::future::{join, join3, join4};
use tokio_postgres::types::ToSql;
use tokio_postgres::{Error, Row, Statement};

use super::{Failure, Session, at_once, entry};
use crate::limits::PAGE_BYTES;
use crate::storage::check::{self, Found, from_sql, to_sql};
use crate::wit::storage::{Change, Claim, Claimed, Claims, Holding, Lease, Put, StorageError};

/// In the order of the names, for all: so two commits never wait for each other.
const LOCK: &str = "
    SELECT r.kind, r.id, r.number, r.version, r.lease_token
    FROM abide.record AS r
    JOIN unnest($1::bytea[], $2::bytea[]) AS k (kind, id) ON r.kind = k.kind AND r.id = k.id
    ORDER BY r.kind, r.id
    FOR UPDATE OF r";

const UPDATE: &str = "
    UPDATE abide.record AS r
    SET version = nextval('abide.version'), owner = n.owner, account = n.account, state = n.state,
        due = n.due, updated = n.updated, body = n.body, claimable = n.due,
        lease_holder = NULL, lease_token = NULL, lease_until = NULL, lost = 0
    FROM unnest($1::bytea[], $2::bytea[], $3::bytea[], $4::bigint[], $5::bigint[], $6::bytea[],
        $7::bigint[]) AS n (owner, account, state, due, updated, body, number)
    WHERE r.number = n.number
    RETURNING r.kind, r.id, r.version";

/// In the order of the names as well: a new one waits for another commit that writes the same.
const INSERT: &str = "
    INSERT INTO abide.record
        (owner, account, state, due, updated, body, kind, id, claimable)
    SELECT n.owner, n.account, n.state, n.due, n.updated, n.body, n.kind, n.id, n.due
    FROM unnest($1::bytea[], $2::bytea[], $3::bytea[], $4::bigint[], $5::bigint[], $6::bytea[],
        $7::bytea[], $8::bytea[]) AS n (owner, account, state, due, updated, body, kind, id)
    ORDER BY n.kind, n.id
    RETURNING kind, id, version";

const DELETE: &str = "DELETE FROM abide.record WHERE number = ANY($1)";

/// Leaves out what others are just claiming or writing. The bodies are counted there, so that no
/// claim travels that does not fit.
const DUE: &str = "
    SELECT number, kind, id, owner, account, state, due, updated, version, lease_holder,
        lease_token, lease_until, lost, nextval('abide.fence') AS token, fits, body
    FROM (
        SELECT *, row_number() OVER turn = 1 OR sum(length(body)) OVER turn <= $4 AS fits
        FROM (
            SELECT * FROM abide.record
            WHERE kind = $1 AND claimable <= $2
                AND account NOT IN (SELECT unnest($5::bytea[]))
            ORDER BY claimable, id
            LIMIT $3
            FOR UPDATE SKIP LOCKED
        ) AS due
        WINDOW turn AS (ORDER BY claimable, id ROWS UNBOUNDED PRECEDING)
    ) AS counted
    WHERE fits
    ORDER BY claimable, id";

const MARK: &str = "
    UPDATE abide.record AS r
    SET lease_holder = $1, lease_token = n.token, lease_until = $2, claimable = $2, lost = n.lost
    FROM unnest($3::bigint[], $4::bigint[], $5::integer[]) AS n (number, token, lost)
    WHERE r.number = n.number";

/// Leaves out what was just claimed.
const NEXT: &str = "
    SELECT claimable FROM abide.record
    WHERE kind = $1 AND claimable IS NOT NULL
        AND (lease_token IS NULL OR lease_token < $2 OR lease_holder <> $3 OR lease_until <> $4)
        AND (claimable > $5 OR account NOT IN (SELECT unnest($6::bytea[])))
    ORDER BY claimable, id
    LIMIT 1";

const HELD: &str = "
    WHERE number = ANY (ARRAY(
        SELECT r.number FROM abide.record AS r
        JOIN unnest($1::bytea[], $2::bytea[], $3::bigint[]) AS k (kind, id, token)
            ON r.kind = k.kind AND r.id = k.id AND r.lease_token = k.token
        ORDER BY r.kind, r.id
        FOR UPDATE OF r))";

/// A name in the order of the locks.
pub(super) type Name<'a> = (&'a [u8], &'a [u8]);

pub(super) fn name(change: &Change) -> Name<'_> {
    let (kind, id) = check::record_of(change);
    (kind.as_bytes(), id.as_bytes())
}

pub(super) async fn commit(session: Session, changes: &[Change]) -> Result<Vec<u64>, Failure> {
    if let Some(versions) = at_once::commit(&session, changes).await? {
        session.settle();
        return Ok(versions);
    }
    let mut names: Vec<Name<'_>> = changes.iter().map(name).collect();
    names.sort_unstable();
    names.dedup();
    let (kinds, ids): (Vec<_>, Vec<_>) = names.into_iter().unzip();
    let lock = session.prepare_cached(LOCK).await?;
    let (begun, locked) = join(
        session.batch_execute("BEGIN"),
        session.query(&lock, &[&kinds, &ids]),
    )
    .await;
    begun?;
    let locked = locked?;
    let mut found = BTreeMap::new();
    let mut numbers = BTreeMap::new();
    for row in &locked {
        let name: Name<'_> = (row.try_get(0)?, row.try_get(1)?);
        numbers.insert(name, row.try_get::<_, i64>(2)?);
        let state = Found {
            version: from_sql(row.try_get(3)?),
            token: row.try_get::<_, Option<i64>>(4)?.map(from_sql),
        };
        found.insert(name, state);
    }
    let judgement = check::against(changes, |kind, id| {
        found.get(&(kind.as_bytes(), id.as_bytes())).copied()
    });
    if let Err(error) = judgement {
        session.batch_execute("ROLLBACK").await?;
        session.settle();
        return Err(Failure::Refused(error));
    }
    let written = write(&session, changes, &numbers).await?;
    session.settle();
    Ok(written)
}

/// Writes what is locked and commits, in one trip.
async fn write(
    session: &Session,
    changes: &[Change],
    numbers: &BTreeMap<Name<'_>, i64>,
) -> Result<Vec<u64>, Failure> {
    let (mut updated, mut inserted) = (Columns::default(), Columns::default());
    let (mut update_numbers, mut deleted) = (Vec::new(), Vec::new());
    for change in changes {
        let number = numbers.get(&name(change)).copied();
        match (change, number) {
            (Change::Put(put), Some(number)) => {
                updated.push(put);
                update_numbers.push(number);
            }
            (Change::Put(put), None) => inserted.push(put),
            (Change::Delete(_), Some(number)) => deleted.push(number),
            (Change::Delete(_) | Change::Guard(_), _) => {}
        }
    }
    let statements = (
        statement(session, UPDATE, !update_numbers.is_empty()).await?,
        statement(session, INSERT, !inserted.ids.is_empty()).await?,
        statement(session, DELETE, !deleted.is_empty()).await?,
    );
    let mut update_values = updated.values();
    update_values.push(&update_numbers);
    let mut insert_values = inserted.values();
    insert_values.extend(inserted.names());
    // If one of them fails, the server makes a rollback of the COMMIT.
    let (updates, inserts, deletes, done) = join4(
        query(session, statements.0.as_ref(), &update_values),
        query(session, statements.1.as_ref(), &insert_values),
        query(session, statements.2.as_ref(), &[&deleted]),
        session.batch_execute("COMMIT"),
    )
    .await;
    let (updates, inserts) = (updates?, inserts?);
    deletes?;
    done?;
    let mut versions = BTreeMap::new();
    for row in updates.iter().chain(&inserts) {
        let name: Name<'_> = (row.try_get(0)?, row.try_get(1)?);
        versions.insert(name, from_sql(row.try_get(2)?));
    }
    answer(changes, &versions)
}

/// What the caller of a commit is told of the versions that were written.
pub(super) fn answer(
    changes: &[Change],
    versions: &BTreeMap<Name<'_>, u64>,
) -> Result<Vec<u64>, Failure> {
    changes
        .iter()
        .map(|change| match change {
            Change::Put(_) => versions.get(&name(change)).copied().ok_or_else(|| {
                let (kind, id) = check::record_of(change);
                let why = format!(
                    "the server has not written {kind} {id}: is there a trigger on abide.record?"
                );
                Failure::Refused(StorageError::Unavailable(why))
            }),
            Change::Delete(_) | Change::Guard(_) => Ok(0),
        })
        .collect()
}

async fn statement(session: &Session, sql: &str, needed: bool) -> Result<Option<Statement>, Error> {
    Ok(match needed {
        true => Some(session.prepare_cached(sql).await?),
        false => None,
    })
}

async fn query(
    session: &Session,
    statement: Option<&Statement>,
    values: &[&(dyn ToSql + Sync)],
) -> Result<Vec<Row>, Error> {
    match statement {
        Some(statement) => session.query(statement, values).await,
        None => Ok(Vec::new()),
    }
}

/// Records turned into columns.
#[derive(Default)]
pub(super) struct Columns<'a> {
    kinds: Vec<&'a [u8]>,
    ids: Vec<&'a [u8]>,
    owners: Vec<&'a [u8]>,
    accounts: Vec<&'a [u8]>,
    states: Vec<&'a [u8]>,
    dues: Vec<Option<i64>>,
    updates: Vec<i64>,
    bodies: Vec<&'a [u8]>,
}

impl<'a> Columns<'a> {
    pub(super) fn push(&mut self, put: &'a Put) {
        let envelope = &put.envelope;
        self.kinds.push(envelope.kind.as_bytes());
        self.ids.push(envelope.id.as_bytes());
        self.owners.push(envelope.owner.as_bytes());
        self.accounts.push(envelope.account.as_bytes());
        self.states.push(envelope.state.as_bytes());
        self.dues.push(envelope.due_ms.map(to_sql));
        self.updates.push(to_sql(envelope.updated_ms));
        self.bodies.push(&put.body);
    }

    /// All but the names.
    pub(super) fn values(&self) -> Vec<&(dyn ToSql + Sync)> {
        vec![
            &self.owners,
            &self.accounts,
            &self.states,
            &self.dues,
            &self.updates,
            &self.bodies,
        ]
    }

    pub(super) fn names(&self) -> [&(dyn ToSql + Sync); 2] {
        [&self.kinds, &self.ids]
    }
}

pub(super) async fn claim(session: Session, claim: &Claim) -> Result<Claims, Failure> {
    let (kind, holder) = (claim.kind.as_bytes(), claim.holder.as_bytes());
    let (now, until) = (to_sql(claim.now_ms), to_sql(claim.until_ms));
    let limit = i64::from(claim.limit);
    let excluded: Vec<&[u8]> = claim.excluded.iter().map(String::as_bytes).collect();
    let bytes = i64::try_from(PAGE_BYTES).unwrap_or(i64::MAX);
    let due = session.prepare_cached(DUE).await?;
    let mark = session.prepare_cached(MARK).await?;
    let next = session.prepare_cached(NEXT).await?;
    let (begun, rows) = join(
        session.batch_execute("BEGIN"),
        session.query(&due, &[&kind, &now, &limit, &bytes, &excluded]),
    )
    .await;
    begun?;
    let rows = rows?;
    // Given out in any order, and put into that of the records.
    let mut tokens = Vec::with_capacity(rows.len());
    for row in &rows {
        tokens.push(row.try_get::<_, i64>("token")?);
    }
    tokens.sort_unstable();
    let (mut numbers, mut lost) = (Vec::new(), Vec::new());
    let mut claimed = Vec::with_capacity(rows.len());
    for (row, token) in rows.iter().zip(&tokens) {
        let mut entry = entry(row)?;
        let ended = i32::from(entry.lease.is_some());
        let lost_now = row.try_get::<_, i32>("lost")?.saturating_add(ended);
        numbers.push(row.try_get::<_, i64>("number")?);
        lost.push(lost_now);
        let token = from_sql(*token);
        entry.lease = Some(Holding {
            holder: claim.holder.clone(),
            token,
            until_ms: claim.until_ms,
        });
        claimed.push(Claimed {
            entry,
            token,
            lost: u32::try_from(lost_now).unwrap_or(0),
        });
    }
    let first = tokens.first().copied().unwrap_or(i64::MAX);
    let (marked, next, done) = join3(
        session.execute(&mark, &[&holder, &until, &numbers, &tokens, &lost]),
        session.query_opt(&next, &[&kind, &first, &holder, &until, &now, &excluded]),
        session.batch_execute("COMMIT"),
    )
    .await;
    marked?;
    let next = next?;
    done?;
    session.settle();
    let next_due_ms = match next {
        Some(row) => Some(from_sql(row.try_get(0)?)),
        None => None,
    };
    Ok(Claims {
        claimed,
        next_due_ms,
    })
}

/// Those that are lost.
pub(super) async fn renew(
    session: Session,
    leases: &[Lease],
    until_ms: u64,
) -> Result<Vec<Lease>, Failure> {
    let sql = format!(
        "UPDATE abide.record SET lease_until = $4, claimable = $4 {HELD}
        RETURNING kind, id, lease_token"
    );
    let statement = session.prepare_cached(&sql).await?;
    let (kinds, ids, tokens) = columns(leases);
    let rows = session
        .query(&statement, &[&kinds, &ids, &tokens, &to_sql(until_ms)])
        .await?;
    session.settle();
    let mut held = BTreeSet::new();
    for row in &rows {
        let token = from_sql(row.try_get(2)?);
        held.insert((row.try_get(0)?, row.try_get(1)?, token));
    }
    let is_lost =
        |lease: &&Lease| !held.contains(&(lease.kind.as_bytes(), lease.id.as_bytes(), lease.token));
    Ok(leases.iter().filter(is_lost).cloned().collect())
}

pub(super) async fn release(session: Session, leases: &[Lease]) -> Result<(), Failure> {
    let sql = format!(
        "UPDATE abide.record SET lease_holder = NULL, lease_token = NULL, lease_until = NULL,
            lost = 0, claimable = due {HELD}"
    );
    let statement = session.prepare_cached(&sql).await?;
    let (kinds, ids, tokens) = columns(leases);
    session
        .execute(&statement, &[&kinds, &ids, &tokens])
        .await?;
    session.settle();
    Ok(())
}

fn columns(leases: &[Lease]) -> (Vec<&[u8]>, Vec<&[u8]>, Vec<i64>) {
    let mut columns = (Vec::new(), Vec::new(), Vec::new());
    for lease in leases {
        columns.0.push(lease.kind.as_bytes());
        columns.1.push(lease.id.as_bytes());
        columns.2.push(to_sql(lease.token));
    }
    columns
}
