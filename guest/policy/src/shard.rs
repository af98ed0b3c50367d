//! Which worker looks after which account.
//!
//! The owner of an account follows from its name and the list of live workers alone: nobody
//! assigns anything. What needs care is a change of that list. Workers learn of it one after the
//! other, and for a while one may still act by the old list while another acts by the new one.
//! [`View`] prevents it: whoever has not looked at the list for [`Sharding::view_ms`] acts no
//! more, and whoever gains an account from a living worker waits that long first.

use alloc::string::String;
use alloc::vec::Vec;
use core::cmp::Ordering;
use core::fmt;

use crate::limits::{MAX_DELAY_MS, MAX_NAME, MAX_WORKERS};
use crate::mistake::{Check, Mistakes, Problem};
use crate::time::SECOND_MS;

/// The configuration of sharding, Spinnaker's `cache-sharding`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(default, deny_unknown_fields))]
pub struct Sharding {
    /// Whether accounts are divided at all. Default off: every worker serves every account.
    pub enabled: bool,
    /// How they are divided. Default [`Placement::Rendezvous`].
    pub placement: Placement,
    /// How often a worker says that it lives and looks at the list, in milliseconds. Default
    /// 30 s.
    pub heartbeat_ms: u64,
    /// How long a worker counts as alive without saying so, in milliseconds. Default 60 s.
    pub ttl_ms: u64,
}

/// How accounts are divided.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "kebab-case"))]
pub enum Placement {
    /// As Clouddriver has it: the hash of the account modulo the number of workers is the owner's
    /// position in the sorted list. A change of that number moves almost every account.
    Modulo,
    /// The worker with the highest weight for the account. One that joins takes its share from
    /// all the others, one that leaves gives up only its own.
    Rendezvous,
}

/// A worker that lives, as the shared store knows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Heartbeat<'a> {
    /// Its id.
    pub worker: &'a str,
    /// When it said so last, in milliseconds since the epoch, by the store's clock.
    pub at_ms: u64,
}

/// A list of live workers with its number: the shared record that all of them read. It is
/// replaced with compare-and-swap on the number.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Epoch {
    /// One more with each change.
    pub number: u64,
    /// The workers.
    pub workers: Vec<String>,
}

/// What one worker knows of the list: when it read it, and which lists others may still act by.
/// It lives in the worker's memory only, and all its times are by the worker's own clock, so that
/// clocks may differ as long as they run at about the same speed.
///
/// A heartbeat is one step: take the time, report alive, read the list. Where either of the two
/// fails, there was no heartbeat, or a worker that can read but not report would go on after it
/// was given up. A worker that leaves in good order stops acting before it takes itself off.
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct View {
    epoch: Epoch,
    /// When the heartbeat began that read the list last.
    read_ms: u64,
    /// Earlier lists, with the time when this worker first knew of a later one. `None` stands
    /// for lists that it never saw.
    past: Vec<(Option<Vec<String>>, u64)>,
}

/// Where an account stands with a worker.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Standing {
    /// It is this worker's.
    Owner,
    /// It is another's.
    NotOwner,
    /// It will be this worker's, once nobody acts by an older list, at this time.
    Waiting(u64),
}

/// Why nothing can be said.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ShardError {
    /// The list has no workers.
    NoWorkers,
    /// The own id is not in the list: the worker has to report itself alive, and act on nothing
    /// until it has read a list that knows it.
    UnknownWorker,
    /// The list was read too long ago: the worker has to stop acting until it has read it again.
    StaleView,
}

/// An account that changes hands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Move<'a> {
    /// The account.
    pub account: &'a str,
    /// Its owner so far.
    pub from: Option<&'a str>,
    /// Its owner then.
    pub to: Option<&'a str>,
}

/// Java's `String.hashCode`: a polynomial in 31 over the UTF-16 units, wrapping at 32 bits.
pub fn java_hash(text: &str) -> i32 {
    text.encode_utf16().fold(0_i32, |hash, unit| {
        hash.wrapping_mul(31).wrapping_add(i32::from(unit))
    })
}

impl Placement {
    /// The owner of an account among these workers; nobody if there are none. The order of the
    /// list does not matter.
    pub fn owner<'w, W: AsRef<str>>(self, account: &str, workers: &'w [W]) -> Option<&'w str> {
        match self {
            Self::Modulo => {
                let mut sorted: Vec<&str> = workers.iter().map(AsRef::as_ref).collect();
                sorted.sort_by(|a, b| as_java(a, b));
                sorted.dedup();
                let count = i64::try_from(sorted.len())
                    .ok()
                    .filter(|count| *count > 0)?;
                // The remainder truncates towards zero, as Java's does.
                let index = (i64::from(java_hash(account)) % count).unsigned_abs();
                sorted.get(index as usize).copied()
            }
            Self::Rendezvous => workers
                .iter()
                .map(AsRef::as_ref)
                .max_by_key(|worker| (weight(worker, account), *worker)),
        }
    }

    /// The accounts that change hands from one list of workers to another.
    pub fn moves<'a, W: AsRef<str>, X: AsRef<str>>(
        self,
        accounts: &[&'a str],
        before: &'a [W],
        after: &'a [X],
    ) -> Vec<Move<'a>> {
        accounts
            .iter()
            .map(|account| Move {
                account,
                from: self.owner(account, before),
                to: self.owner(account, after),
            })
            .filter(|moved| moved.from != moved.to)
            .collect()
    }

    /// How the choice for an account comes about: each worker with what speaks for it, the owner
    /// first. For [`Placement::Modulo`] that is the position, for [`Placement::Rendezvous`] the
    /// weight.
    pub fn explain<'w, W: AsRef<str>>(
        self,
        account: &str,
        workers: &'w [W],
    ) -> Vec<(&'w str, u64)> {
        let owner = self.owner(account, workers);
        let mut explained: Vec<(&str, u64)> = workers
            .iter()
            .map(|worker| (worker.as_ref(), weight(worker.as_ref(), account)))
            .collect();
        if self == Self::Modulo {
            explained.sort_by(|a, b| as_java(a.0, b.0));
            for (position, entry) in explained.iter_mut().enumerate() {
                entry.1 = position as u64;
            }
        } else {
            explained.sort_by_key(|(worker, weight)| core::cmp::Reverse((*weight, *worker)));
        }
        explained.sort_by_key(|(worker, _)| Some(*worker) != owner);
        explained
    }
}

impl Sharding {
    /// How long a worker may act by a list after it read it, in milliseconds: one and a half
    /// heartbeats, so that one late read does no harm. It is below the TTL, so that a worker that
    /// is given up has stopped by then.
    pub fn view_ms(&self) -> u64 {
        self.heartbeat_ms.min(MAX_DELAY_MS) * 3 / 2
    }

    /// The workers that live at `now_ms`, by the store's clock, sorted.
    pub fn live<'h>(&self, heartbeats: &[Heartbeat<'h>], now_ms: u64) -> Vec<&'h str> {
        let mut live: Vec<&str> = heartbeats
            .iter()
            .filter(|beat| now_ms.saturating_sub(beat.at_ms) < self.ttl_ms)
            .map(|beat| beat.worker)
            .collect();
        live.sort_unstable();
        live.dedup();
        live
    }

    /// The epoch that has to follow, if the live workers are not those of the current one.
    pub fn next_epoch(&self, current: &Epoch, live: &[&str]) -> Option<Epoch> {
        let mut known: Vec<&str> = current.workers.iter().map(String::as_str).collect();
        known.sort_unstable();
        known.dedup();
        (known != live).then(|| Epoch {
            number: current.number.saturating_add(1),
            workers: live.iter().map(|worker| String::from(*worker)).collect(),
        })
    }
}

impl View {
    /// What a worker knows that reads the list for the first time. Its heartbeat began at
    /// `started_ms`, and it had read the list at `now_ms`.
    ///
    /// It knows nothing of earlier lists, so that everything it owns has to wait.
    pub fn first(epoch: Epoch, started_ms: u64, now_ms: u64) -> Self {
        Self {
            epoch,
            read_ms: started_ms.min(now_ms),
            past: Vec::from([(None, now_ms)]),
        }
    }

    /// The same worker has read the list again. A list older than the known one changes nothing.
    pub fn read(mut self, policy: &Sharding, epoch: Epoch, started_ms: u64, now_ms: u64) -> Self {
        if epoch.number < self.epoch.number {
            return self;
        }
        // A clock that was set back starts all waits anew.
        if now_ms < self.read_ms {
            return Self::first(epoch, started_ms, now_ms);
        }
        self.read_ms = started_ms.min(now_ms).max(self.read_ms);
        if epoch.number > self.epoch.number {
            let is_next = epoch.number - self.epoch.number == 1;
            let before = core::mem::replace(&mut self.epoch, epoch);
            self.past.push((Some(before.workers), now_ms));
            if !is_next {
                self.past.push((None, now_ms));
            }
        }
        let view_ms = policy.view_ms();
        self.past
            .retain(|(_, until_ms)| now_ms < until_ms.saturating_add(view_ms));
        self
    }

    /// The list it knows.
    pub fn epoch(&self) -> &Epoch {
        &self.epoch
    }

    /// Whether a worker may act for an account at `now_ms`, by its own clock.
    ///
    /// It waits for others that may act by an older list: those that it knows to have owned the
    /// account and that still live, and where it does not know, anybody. One that is gone from
    /// the list was given up by its TTL, or left, and has stopped before.
    pub fn standing(
        &self,
        policy: &Sharding,
        own: &str,
        account: &str,
        now_ms: u64,
    ) -> Result<Standing, ShardError> {
        let workers = &self.epoch.workers;
        if workers.is_empty() {
            return Err(ShardError::NoWorkers);
        }
        if !workers.iter().any(|worker| worker == own) {
            return Err(ShardError::UnknownWorker);
        }
        let view_ms = policy.view_ms();
        if now_ms.abs_diff(self.read_ms) >= view_ms {
            return Err(ShardError::StaleView);
        }
        if policy.placement.owner(account, workers) != Some(own) {
            return Ok(Standing::NotOwner);
        }
        let until = self
            .past
            .iter()
            .filter(|(past, _)| {
                let Some(past) = past else {
                    return true;
                };
                policy
                    .placement
                    .owner(account, past)
                    .is_some_and(|other| other != own && workers.iter().any(|w| w == other))
            })
            .map(|(_, until_ms)| until_ms.saturating_add(view_ms))
            .max();
        Ok(match until {
            Some(until) if now_ms < until => Standing::Waiting(until),
            _ => Standing::Owner,
        })
    }
}

/// Strings as Java sorts them: by UTF-16 units.
fn as_java(a: &str, b: &str) -> Ordering {
    a.encode_utf16().cmp(b.encode_utf16())
}

/// What speaks for a worker: FNV-1a over its name, an octet that no name has, and the account,
/// with its bits mixed (MurmurHash3's finaliser), since FNV's high bits depend too little on the
/// last octets.
fn weight(worker: &str, account: &str) -> u64 {
    let octets = worker.bytes().chain([0xff]).chain(account.bytes());
    mix(octets.fold(0xcbf2_9ce4_8422_2325, |hash: u64, octet| {
        (hash ^ u64::from(octet)).wrapping_mul(0x0100_0000_01b3)
    }))
}

fn mix(mut bits: u64) -> u64 {
    bits = (bits ^ (bits >> 33)).wrapping_mul(0xff51_afd7_ed55_8ccd);
    bits = (bits ^ (bits >> 33)).wrapping_mul(0xc4ce_b9fe_1a85_ec53);
    bits ^ (bits >> 33)
}

impl fmt::Display for ShardError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NoWorkers => {
                "the list of workers is empty: nobody serves any account until one reports itself \
                 alive"
            }
            Self::UnknownWorker => {
                "this worker is not in the list of workers: it serves no account until its next \
                 heartbeat has put it there"
            }
            Self::StaleView => {
                "the list of workers was read too long ago: this worker serves no account until \
                 it can read the store again"
            }
        })
    }
}

impl core::error::Error for ShardError {}

impl Default for Sharding {
    fn default() -> Self {
        Self {
            enabled: false,
            placement: Placement::Rendezvous,
            heartbeat_ms: 30 * SECOND_MS,
            ttl_ms: 60 * SECOND_MS,
        }
    }
}

impl Check for Sharding {
    fn check(&self, found: &mut Mistakes) {
        found.range(
            "heartbeat_ms",
            self.heartbeat_ms,
            1..=MAX_DELAY_MS / 2,
            "ms",
        );
        found.range("ttl_ms", self.ttl_ms, 1..=MAX_DELAY_MS, "ms");
        let least = self.view_ms().saturating_add(1);
        found.at_least("ttl_ms", self.ttl_ms, "one and a half heartbeat_ms", least);
    }
}

impl Check for Epoch {
    fn check(&self, found: &mut Mistakes) {
        found.length("workers", self.workers.len(), MAX_WORKERS);
        for (index, worker) in self.workers.iter().enumerate() {
            let at = alloc::format!("workers[{index}]");
            if worker.is_empty() {
                found.report(&at, Problem::Empty);
            }
            found.length(&at, worker.len(), MAX_NAME);
        }
    }
}
