//! What every store refuses, so that no guest finds out which one it talks to.

use std::collections::BTreeSet;

use crate::limits;
use crate::wit::storage::{Change, Envelope, Lease, Put, StorageError};

/// Whether the changes are of a size and a shape that can be kept.
pub(super) fn changes(changes: &[Change]) -> Result<(), StorageError> {
    if changes.len() > limits::CHANGES {
        return Err(StorageError::Unavailable(format!(
            "{} changes in one commit, at most {} are accepted",
            changes.len(),
            limits::CHANGES
        )));
    }
    changes.iter().try_for_each(|change| match change {
        Change::Put(put) => record(put),
        Change::Delete(_) | Change::Guard(_) => Ok(()),
    })
}

/// The kind and the id of the record that a change is about.
pub(super) fn record_of(change: &Change) -> (&str, &str) {
    match change {
        Change::Put(put) => (&put.envelope.kind, &put.envelope.id),
        Change::Delete(removal) => (&removal.kind, &removal.id),
        Change::Guard(lease) => (&lease.kind, &lease.id),
    }
}

/// A record as far as a write has to know it.
#[derive(Clone, Copy)]
pub(super) struct Found {
    pub(super) version: u64,
    /// Of its lease.
    pub(super) token: Option<u64>,
}

/// Whether all changes can be made to the records that `find` finds by kind and id, before any
/// of them is.
pub(super) fn against(
    changes: &[Change],
    find: impl Fn(&str, &str) -> Option<Found>,
) -> Result<(), StorageError> {
    // Guards first: whoever lost a lease mostly lost a race for a record too, and the lease is
    // what it has to hear of.
    for change in changes {
        if let Change::Guard(lease) = change
            && find(&lease.kind, &lease.id).is_none_or(|found| found.token != Some(lease.token))
        {
            return Err(fenced(lease));
        }
    }
    // A record is written once in a commit, or it is refused: what an earlier change of the same
    // commit makes of it, nobody has read.
    let mut written = BTreeSet::new();
    for change in changes {
        let expected = match change {
            Change::Put(put) => put.expected,
            Change::Delete(removal) => Some(removal.expected),
            Change::Guard(_) => continue,
        };
        let (kind, id) = record_of(change);
        let found = find(kind, id);
        let held = found.as_ref().and_then(|found| found.token);
        let is_free = held.is_none_or(|token| is_guarded(changes, kind, id, token));
        if found.map(|found| found.version) != expected || !is_free || !written.insert((kind, id)) {
            return Err(conflict(kind, id));
        }
    }
    Ok(())
}

/// Whether a commit has the guard of this lease, so that it may write the record.
fn is_guarded(changes: &[Change], kind: &str, id: &str, token: u64) -> bool {
    changes.iter().any(|change| match change {
        Change::Guard(lease) => lease.token == token && lease.kind == kind && lease.id == id,
        Change::Put(_) | Change::Delete(_) => false,
    })
}

fn record(put: &Put) -> Result<(), StorageError> {
    if put.body.len() > limits::RECORD_BODY {
        return Err(StorageError::TooLarge(limits::RECORD_BODY as u64));
    }
    let Envelope {
        kind,
        id,
        owner,
        account,
        state,
        due_ms,
        updated_ms,
    } = &put.envelope;
    for text in [kind, id, owner, account, state] {
        if text.len() > limits::ENVELOPE_TEXT {
            return Err(StorageError::Unavailable(format!(
                "a name in the envelope of {} has {} bytes, at most {} are accepted",
                name(kind, id),
                text.len(),
                limits::ENVELOPE_TEXT
            )));
        }
    }
    for time in [due_ms.unwrap_or(0), *updated_ms] {
        // Databases count in signed integers; this is 292 million years from now.
        if i64::try_from(time).is_err() {
            return Err(StorageError::Unavailable(format!(
                "the time {time} in the envelope of {} is out of range",
                name(kind, id)
            )));
        }
    }
    Ok(())
}

/// Nothing above the largest signed integer gets past the check; a version that does belongs to no
/// record.
pub(super) fn to_sql(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

/// Nothing negative was ever written.
pub(super) fn from_sql(number: i64) -> u64 {
    u64::try_from(number).unwrap_or(0)
}

/// Another writer was faster.
fn conflict(kind: &str, id: &str) -> StorageError {
    StorageError::Conflict(name(kind, id))
}

/// The lease is over.
fn fenced(lease: &Lease) -> StorageError {
    StorageError::Fenced(name(&lease.kind, &lease.id))
}

/// A record's name in an error, short whatever the guest came up with.
fn name(kind: &str, id: &str) -> String {
    let short = |text: &str| text[..text.floor_char_boundary(100)].to_owned();
    format!("{} {}", short(kind), short(id))
}
