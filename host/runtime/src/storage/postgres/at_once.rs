//! A commit in one statement, for the usual case that all is as the caller has read it. When it is
//! not, nothing is written, and the longer way finds out what to say.

use std::collections::BTreeMap;

use tokio_postgres::types::ToSql;

use super::write::{Columns, Name, answer, name};
use super::{Failure, Session};
use crate::storage::check::{from_sql, to_sql};
use crate::wit::storage::Change;

/// Locks the records in the order of their names, judges, and writes only if each of `$5` records
/// is there as expected and no other one of them is.
const COMMIT: &str = "
    WITH locked AS MATERIALIZED (
        SELECT r.number, r.kind, r.id,
            (k.version IS NULL OR r.version = k.version)
                AND r.lease_token IS NOT DISTINCT FROM k.token AS good
        FROM abide.record AS r
        JOIN unnest($1::bytea[], $2::bytea[], $3::bigint[], $4::bigint[])
            AS k (kind, id, version, token) ON r.kind = k.kind AND r.id = k.id
        ORDER BY r.kind, r.id
        FOR UPDATE OF r
    ), verdict AS MATERIALIZED (
        SELECT count(*) = $5::bigint AND count(*) FILTER (WHERE good) = $5 AS good FROM locked
    ), updated AS (
        UPDATE abide.record AS r
        SET version = nextval('abide.version'), owner = n.owner, account = n.account,
            state = n.state, due = n.due, updated = n.updated, body = n.body, claimable = n.due,
            lease_holder = NULL, lease_token = NULL, lease_until = NULL, lost = 0
        FROM unnest($6::bytea[], $7::bytea[], $8::bytea[], $9::bigint[], $10::bigint[],
                $11::bytea[], $12::bytea[], $13::bytea[])
                AS n (owner, account, state, due, updated, body, kind, id)
            JOIN locked AS l ON l.kind = n.kind AND l.id = n.id, verdict AS v
        WHERE v.good AND r.number = l.number
        RETURNING r.kind, r.id, r.version
    ), inserted AS (
        INSERT INTO abide.record (owner, account, state, due, updated, body, kind, id, claimable)
        SELECT n.owner, n.account, n.state, n.due, n.updated, n.body, n.kind, n.id, n.due
        FROM unnest($14::bytea[], $15::bytea[], $16::bytea[], $17::bigint[], $18::bigint[],
                $19::bytea[], $20::bytea[], $21::bytea[])
                AS n (owner, account, state, due, updated, body, kind, id),
            verdict AS v
        WHERE v.good
        ORDER BY n.kind, n.id
        RETURNING kind, id, version
    ), deleted AS (
        DELETE FROM abide.record AS r
        USING unnest($22::bytea[], $23::bytea[]) AS n (kind, id)
            JOIN locked AS l ON l.kind = n.kind AND l.id = n.id, verdict AS v
        WHERE v.good AND r.number = l.number
    )
    SELECT kind, id, version FROM updated
    UNION ALL SELECT kind, id, version FROM inserted
    UNION ALL SELECT NULL, NULL, 0 FROM verdict WHERE good";

/// What must be found of a record.
#[derive(Default)]
struct Expected {
    /// Whether it must be there.
    there: bool,
    version: Option<i64>,
    token: Option<i64>,
    is_written: bool,
}

/// The new versions; `None` when not all was as expected, and nothing was written.
pub(super) async fn commit(
    session: &Session,
    changes: &[Change],
) -> Result<Option<Vec<u64>>, Failure> {
    let Some(expected) = expectations(changes) else {
        return Ok(None);
    };
    let (mut kinds, mut ids) = (Vec::new(), Vec::new());
    let (mut versions, mut tokens, mut there) = (Vec::new(), Vec::new(), 0i64);
    for ((kind, id), expected) in &expected {
        kinds.push(*kind);
        ids.push(*id);
        versions.push(expected.version);
        tokens.push(expected.token);
        there += i64::from(expected.there);
    }
    let (mut updated, mut inserted) = (Columns::default(), Columns::default());
    let (mut deleted_kinds, mut deleted_ids) = (Vec::new(), Vec::new());
    for change in changes {
        match change {
            Change::Put(put) if put.expected.is_some() => updated.push(put),
            Change::Put(put) => inserted.push(put),
            Change::Delete(_) => {
                let (kind, id) = name(change);
                deleted_kinds.push(kind);
                deleted_ids.push(id);
            }
            Change::Guard(_) => {}
        }
    }
    let mut values: Vec<&(dyn ToSql + Sync)> = vec![&kinds, &ids, &versions, &tokens, &there];
    values.extend(updated.values());
    values.extend(updated.names());
    values.extend(inserted.values());
    values.extend(inserted.names());
    values.extend([&deleted_kinds as &(dyn ToSql + Sync), &deleted_ids]);
    let statement = session.prepare_cached(COMMIT).await?;
    let rows = session.query(&statement, &values).await?;
    let mut written = BTreeMap::new();
    let mut is_good = false;
    for row in &rows {
        let version = from_sql(row.try_get(2)?);
        match (row.try_get(0)?, row.try_get(1)?) {
            (Some(kind), Some(id)) => {
                written.insert((kind, id), version);
            }
            _ => is_good = true,
        }
    }
    match is_good {
        true => answer(changes, &written).map(Some),
        false => Ok(None),
    }
}

/// By name; `None` when the changes contradict each other.
fn expectations(changes: &[Change]) -> Option<BTreeMap<Name<'_>, Expected>> {
    let mut all: BTreeMap<_, Expected> = BTreeMap::new();
    for change in changes {
        let expected = all.entry(name(change)).or_default();
        match change {
            Change::Guard(lease) => {
                let token = to_sql(lease.token);
                if expected.token.is_some_and(|other| other != token) {
                    return None;
                }
                expected.token = Some(token);
                expected.there = true;
            }
            Change::Put(_) | Change::Delete(_) if expected.is_written => return None,
            Change::Put(put) => {
                expected.is_written = true;
                expected.version = put.expected.map(to_sql);
                expected.there |= put.expected.is_some();
            }
            Change::Delete(removal) => {
                expected.is_written = true;
                expected.version = Some(to_sql(removal.expected));
                expected.there = true;
            }
        }
    }
    Some(all)
}
