//! Buckets in memory, with a bound on their number.

use alloc::collections::BTreeMap;

use super::{Answer, Bucket, Overrides, Principal, RateLimit};
use crate::limits::MAX_PRINCIPALS;
use crate::time::SECOND_MS;

/// The buckets of all principals, for a limiter that shares them with nobody.
///
/// Whoever has a full bucket is forgotten when room is needed, which changes nothing for him. If
/// nobody has, newcomers share: names that clients chose the bucket of anonymous, all others one
/// that is there for this.
#[derive(Debug, Default)]
pub struct Table {
    buckets: BTreeMap<Principal, Entry>,
    apps: u32,
    /// The bucket of those who found no room.
    overflow: Option<Bucket>,
    swept_ms: u64,
}

#[derive(Debug)]
struct Entry {
    bucket: Bucket,
    forget_at_ms: u64,
}

/// Whose bucket a principal is charged to.
#[derive(Debug, PartialEq, Eq)]
enum Place {
    Own,
    Anonymous,
    Overflow,
}

impl Table {
    /// An empty one.
    pub fn new() -> Self {
        Self::default()
    }

    /// Principals with a bucket of their own.
    pub fn len(&self) -> usize {
        self.buckets.len()
    }

    /// Whether nobody has a bucket.
    pub fn is_empty(&self) -> bool {
        self.buckets.is_empty()
    }

    /// Decides about one request of a principal.
    pub fn decide(
        &mut self,
        config: &RateLimit,
        principal: Principal,
        overrides: &Overrides<'_>,
        cost: u32,
        now_ms: u64,
    ) -> Answer {
        let placed = self.place(config, &principal, now_ms);
        let flag = Overrides {
            learning: overrides.learning,
            ..Overrides::default()
        };
        if placed == Place::Overflow {
            let resolved = config.resolve(&Principal::Anonymous, &flag);
            let (bucket, answer) = resolved.decide(self.overflow, cost, now_ms);
            self.overflow = Some(bucket);
            return answer;
        }
        let (principal, overrides) = match placed {
            Place::Own => (principal, overrides),
            _ => (Principal::Anonymous, &flag),
        };
        let resolved = config.resolve(&principal, overrides);
        let before = self.buckets.get(&principal).map(|entry| entry.bucket);
        let (bucket, answer) = resolved.decide(before, cost, now_ms);
        let forget_at_ms = bucket.forget_at(resolved.limit.rate_ms);
        let entry = Entry {
            bucket,
            forget_at_ms,
        };
        let is_app = matches!(principal, Principal::App(_));
        if self.buckets.insert(principal, entry).is_none() {
            self.apps += u32::from(is_app);
        }
        answer
    }

    fn place(&mut self, config: &RateLimit, principal: &Principal, now_ms: u64) -> Place {
        if self.buckets.contains_key(principal) {
            return Place::Own;
        }
        let most = config.most_principals.min(MAX_PRINCIPALS) as usize;
        let is_app = matches!(principal, Principal::App(_));
        let has_room = |table: &Self| {
            let of_its_kind = !is_app || table.apps < config.most_apps;
            of_its_kind && table.buckets.len() < most
        };
        if !has_room(self) {
            self.sweep(now_ms);
        }
        if has_room(self) {
            Place::Own
        } else if is_app || *principal == Principal::Anonymous {
            // Its bucket has a place beside the bound, or there would be none to share.
            Place::Anonymous
        } else {
            Place::Overflow
        }
    }

    /// Forgets full buckets, at most once a second: a flood of new names must not cost a walk
    /// through all the old ones each time.
    fn sweep(&mut self, now_ms: u64) {
        if now_ms >= self.swept_ms && now_ms - self.swept_ms < SECOND_MS {
            return;
        }
        self.swept_ms = now_ms;
        let apps = &mut self.apps;
        self.buckets.retain(|principal, entry| {
            let stays = entry.forget_at_ms > now_ms;
            if !stays && matches!(principal, Principal::App(_)) {
                *apps -= 1;
            }
            stays
        });
    }
}
