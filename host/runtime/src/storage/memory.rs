//! A store that lives as long as the process: for simulations and trials.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::{Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;

use super::check;
use crate::wit::storage::{Change, Entry, Filter, Page, StorageError};
use crate::{Storage, limits};

/// A store in memory.
#[derive(Debug, Default)]
pub struct MemoryStorage {
    records: Mutex<Records>,
}

#[derive(Debug, Default, Clone)]
struct Records {
    /// By kind and id.
    entries: BTreeMap<(String, String), Entry>,
    /// The last version that was given out, to any record.
    version: u64,
}

impl MemoryStorage {
    /// An empty store.
    pub fn new() -> Self {
        Self::default()
    }

    fn lock(&self) -> MutexGuard<'_, Records> {
        self.records.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[async_trait]
impl Storage for MemoryStorage {
    async fn get(&self, kind: &str, id: &str) -> Result<Option<Entry>, StorageError> {
        let key = (kind.to_owned(), id.to_owned());
        Ok(self.lock().entries.get(&key).cloned())
    }

    async fn commit(&self, changes: Vec<Change>) -> Result<Vec<u64>, StorageError> {
        check::changes(&changes)?;
        let mut records = self.lock();
        let mut changed = records.clone();
        let versions = changes
            .into_iter()
            .map(|change| changed.apply(change))
            .collect::<Result<Vec<_>, _>>()?;
        *records = changed;
        Ok(versions)
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
        let start = match cursor {
            Some(id) => Bound::Excluded((filter.kind.clone(), id)),
            None => Bound::Included((filter.kind.clone(), String::new())),
        };
        let records = self.lock();
        let wanted = |entry: &&Entry| {
            let matches = |want: &Option<String>, have: &String| {
                want.as_ref().is_none_or(|want| want == have)
            };
            matches(&filter.owner, &entry.envelope.owner)
                && matches(&filter.account, &entry.envelope.account)
                && matches(&filter.state, &entry.envelope.state)
        };
        let mut found = records
            .entries
            .range((start, Bound::Unbounded))
            .take_while(|((kind, _), _)| *kind == filter.kind)
            .map(|(_, entry)| entry)
            .filter(wanted);
        let mut page = Page {
            entries: Vec::new(),
            next: None,
        };
        let mut bytes = 0;
        for entry in found.by_ref() {
            bytes += entry.body.len();
            let full = page.entries.len() == limit || bytes > limits::PAGE_BYTES;
            if full && let Some(last) = page.entries.last() {
                page.next = Some(last.envelope.id.clone());
                break;
            }
            page.entries.push(entry.clone());
        }
        Ok(page)
    }
}

impl Records {
    fn apply(&mut self, change: Change) -> Result<u64, StorageError> {
        match change {
            Change::Put(put) => {
                let key = (put.envelope.kind.clone(), put.envelope.id.clone());
                let found = self.entries.get(&key).map(|entry| entry.version);
                if found != put.expected {
                    return Err(check::conflict(&key.0, &key.1));
                }
                self.version += 1;
                let entry = Entry {
                    envelope: put.envelope,
                    version: self.version,
                    body: put.body,
                };
                self.entries.insert(key, entry);
                Ok(self.version)
            }
            Change::Delete(removal) => {
                let key = (removal.kind, removal.id);
                let found = self.entries.get(&key).map(|entry| entry.version);
                if found != Some(removal.expected) {
                    return Err(check::conflict(&key.0, &key.1));
                }
                self.entries.remove(&key);
                Ok(0)
            }
        }
    }
}
