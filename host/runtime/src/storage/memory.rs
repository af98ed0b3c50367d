//! A store that lives as long as the process: for simulations and trials.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;
use std::sync::{Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;

use super::check;
use crate::wit::storage::{
    Change, Claim, Claimed, Claims, Entry, Filter, Holding, Lease, Page, StorageError,
};
use crate::{Storage, limits};

/// A store in memory.
#[derive(Debug, Default)]
pub struct MemoryStorage {
    records: Mutex<Records>,
}

#[derive(Debug, Default)]
struct Records {
    /// By kind and id.
    entries: BTreeMap<(String, String), Record>,
    /// Kind, time and id of what can be claimed from that time on.
    claimable: BTreeSet<(String, u64, String)>,
    /// The last version that was given out, to any record.
    version: u64,
    /// The last fencing token that was given out, to any record.
    token: u64,
}

#[derive(Debug)]
struct Record {
    entry: Entry,
    /// Leases in a row that ended by time alone.
    lost: u32,
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
        Ok(self.lock().entries.get(&key).map(|it| it.entry.clone()))
    }

    async fn commit(&self, changes: Vec<Change>) -> Result<Vec<u64>, StorageError> {
        check::changes(&changes)?;
        let mut records = self.lock();
        records.check(&changes)?;
        Ok(changes
            .into_iter()
            .map(|change| records.apply(change))
            .collect())
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
            .map(|(_, record)| &record.entry)
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

    async fn claim_due(&self, claim: Claim) -> Result<Claims, StorageError> {
        let mut records = self.lock();
        let all = records
            .claimable
            .range((claim.kind.clone(), 0, String::new())..)
            .take_while(|(kind, ..)| *kind == claim.kind);
        let mut ids = Vec::new();
        let mut claims = Claims {
            claimed: Vec::new(),
            next_due_ms: None,
        };
        let excluded: BTreeSet<&str> = claim.excluded.iter().map(String::as_str).collect();
        let mut bytes = 0;
        for (_, due_ms, id) in all {
            let key = (claim.kind.clone(), id.clone());
            let found = records.entries.get(&key).map(|it| &it.entry);
            let account = found.map_or("", |entry| entry.envelope.account.as_str());
            if *due_ms <= claim.now_ms && excluded.contains(account) {
                continue;
            }
            bytes += found.map_or(0, |entry| entry.body.len());
            let full = bytes > limits::PAGE_BYTES && !ids.is_empty();
            if *due_ms > claim.now_ms || ids.len() == claim.limit as usize || full {
                claims.next_due_ms = Some(*due_ms);
                break;
            }
            ids.push(id.clone());
        }
        for id in ids {
            records.token += 1;
            let token = records.token;
            let key = (claim.kind.clone(), id);
            records.changing(&key, |record| {
                record.lost += u32::from(record.entry.lease.is_some());
                record.entry.lease = Some(Holding {
                    holder: claim.holder.clone(),
                    token,
                    until_ms: claim.until_ms,
                });
            });
            if let Some(record) = records.entries.get(&key) {
                claims.claimed.push(Claimed {
                    entry: record.entry.clone(),
                    token,
                    lost: record.lost,
                });
            }
        }
        Ok(claims)
    }

    async fn renew(&self, leases: Vec<Lease>, until_ms: u64) -> Result<Vec<Lease>, StorageError> {
        let mut records = self.lock();
        let (held, lost) = leases
            .into_iter()
            .partition::<Vec<_>, _>(|lease| records.holds(lease));
        for lease in held {
            records.changing(&(lease.kind, lease.id), |record| {
                if let Some(holding) = &mut record.entry.lease {
                    holding.until_ms = until_ms;
                }
            });
        }
        Ok(lost)
    }

    async fn release(&self, leases: Vec<Lease>) -> Result<(), StorageError> {
        let mut records = self.lock();
        for lease in leases {
            if records.holds(&lease) {
                records.changing(&(lease.kind, lease.id), |record| {
                    record.entry.lease = None;
                    record.lost = 0;
                });
            }
        }
        Ok(())
    }

    async fn count_state(&self, kind: &str, state: &str, limit: u32) -> Result<u32, StorageError> {
        let records = self.lock();
        let found = records
            .entries
            .range((kind.to_owned(), String::new())..)
            .take_while(|((found, _), _)| found == kind)
            .filter(|(_, record)| record.entry.envelope.state == state)
            .take(limit as usize)
            .count();
        Ok(u32::try_from(found).unwrap_or(u32::MAX))
    }

    async fn count(&self, kind: &str, now_ms: u64, limit: u32) -> Result<(u32, u32), StorageError> {
        let records = self.lock();
        let limit = limit as usize;
        let of_kind = records
            .entries
            .range((kind.to_owned(), String::new())..)
            .take_while(|((found, _), _)| found == kind)
            .map(|(_, record)| &record.entry);
        let due = of_kind.clone().filter(|entry| {
            let due_ms = entry.envelope.due_ms;
            entry.lease.is_none() && due_ms.is_some_and(|due_ms| due_ms <= now_ms)
        });
        let number = |count: usize| u32::try_from(count).unwrap_or(u32::MAX);
        Ok((
            number(of_kind.take(limit).count()),
            number(due.take(limit).count()),
        ))
    }
}

impl Records {
    /// Whether all changes can be made.
    fn check(&self, changes: &[Change]) -> Result<(), StorageError> {
        check::against(changes, |kind, id| {
            let found = self.entries.get(&(kind.to_owned(), id.to_owned()))?;
            Some(check::Found {
                version: found.entry.version,
                token: found.entry.lease.as_ref().map(|lease| lease.token),
            })
        })
    }

    fn apply(&mut self, change: Change) -> u64 {
        match change {
            Change::Put(put) => {
                self.version += 1;
                let key = (put.envelope.kind.clone(), put.envelope.id.clone());
                let entry = Entry {
                    envelope: put.envelope,
                    version: self.version,
                    body: put.body,
                    lease: None,
                };
                self.remove(&key);
                self.insert(key, Record { entry, lost: 0 });
                self.version
            }
            Change::Delete(removal) => {
                self.remove(&(removal.kind, removal.id));
                0
            }
            Change::Guard(_) => 0,
        }
    }

    fn holds(&self, lease: &Lease) -> bool {
        let key = (lease.kind.clone(), lease.id.clone());
        let found = self.entries.get(&key);
        found
            .and_then(|record| record.entry.lease.as_ref())
            .is_some_and(|held| held.token == lease.token)
    }

    /// Changes a record in place, and with it when it can be claimed.
    fn changing(&mut self, key: &(String, String), change: impl FnOnce(&mut Record)) {
        if let Some(mut record) = self.remove(key) {
            change(&mut record);
            self.insert(key.clone(), record);
        }
    }

    fn remove(&mut self, key: &(String, String)) -> Option<Record> {
        let record = self.entries.remove(key)?;
        if let Some(at_ms) = claimable(&record.entry) {
            self.claimable
                .remove(&(key.0.clone(), at_ms, key.1.clone()));
        }
        Some(record)
    }

    fn insert(&mut self, key: (String, String), record: Record) {
        if let Some(at_ms) = claimable(&record.entry) {
            self.claimable.insert((key.0.clone(), at_ms, key.1.clone()));
        }
        self.entries.insert(key, record);
    }
}

/// From when on a record can be claimed.
fn claimable(entry: &Entry) -> Option<u64> {
    match &entry.lease {
        Some(lease) => Some(lease.until_ms),
        None => entry.envelope.due_ms,
    }
}
