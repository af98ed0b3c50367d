//! What every store refuses, so that no guest finds out which one it talks to.

use crate::limits;
use crate::wit::storage::{Change, Envelope, Put, StorageError};

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
        Change::Delete(_) => Ok(()),
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
        // SQLite counts in signed integers; this is 292 million years from now.
        if i64::try_from(time).is_err() {
            return Err(StorageError::Unavailable(format!(
                "the time {time} in the envelope of {} is out of range",
                name(kind, id)
            )));
        }
    }
    Ok(())
}

/// Another writer was faster.
pub(super) fn conflict(kind: &str, id: &str) -> StorageError {
    StorageError::Conflict(name(kind, id))
}

/// A record's name in an error, short whatever the guest came up with.
fn name(kind: &str, id: &str) -> String {
    let short = |text: &str| text[..text.floor_char_boundary(100)].to_owned();
    format!("{} {}", short(kind), short(id))
}
