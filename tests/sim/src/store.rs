//! A store in memory: versions that only grow, compare and swap, all or nothing.

use std::collections::BTreeMap;

use abide_enroll::{Change, Entry, Put, StorageError};

#[derive(Default)]
pub(crate) struct Store {
    records: BTreeMap<(String, String), Entry>,
    version: u64,
}

impl Store {
    pub(crate) fn load(&self, kind: &str, id: &str) -> Option<Entry> {
        self.records.get(&(kind.to_owned(), id.to_owned())).cloned()
    }

    /// Writes all changes or says which one was too late.
    pub(crate) fn commit(&mut self, changes: &[Change]) -> Result<Vec<u64>, StorageError> {
        let key = |put: &Put| (put.envelope.kind.clone(), put.envelope.id.clone());
        let puts = || changes.iter().map(put);
        for put in puts() {
            if self.records.get(&key(put)).map(|entry| entry.version) != put.expected {
                return Err(StorageError::Conflict(put.envelope.id.clone()));
            }
        }
        let mut versions = Vec::with_capacity(changes.len());
        for put in puts() {
            self.version += 1;
            versions.push(self.version);
            let entry = Entry {
                envelope: put.envelope.clone(),
                version: self.version,
                body: put.body.clone(),
                lease: None,
            };
            self.records.insert(key(put), entry);
        }
        Ok(versions)
    }
}

/// A single enrollment writes records and does nothing else.
pub(crate) fn put(change: &Change) -> &Put {
    match change {
        Change::Put(put) => put,
        Change::Delete(_) | Change::Guard(_) => {
            unreachable!("an enrollment deletes nothing and has no lease")
        }
    }
}
