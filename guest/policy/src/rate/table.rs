//! Buckets in memory, with a bound on their number.

use alloc::borrow::ToOwned;
use alloc::collections::BTreeMap;
use alloc::string::{String, ToString};

use super::{Answer, Bucket, Overrides, Principal, RateLimit, Resolved, principal};
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

/// Whose bucket is charged.
#[derive(Debug, PartialEq, Eq)]
enum Whose {
    Own(Principal),
    /// That of anonymous, for a name that found no room.
    Anonymous,
    /// That of all others who found no room.
    Overflow,
}

impl Whose {
    /// The limit. What operators set about a principal is not for whoever shares its bucket.
    fn resolve(&self, config: &RateLimit, overrides: &Overrides<'_>) -> Resolved {
        match self {
            Self::Own(principal) => config.resolve(principal, overrides),
            Self::Anonymous | Self::Overflow => {
                let flag = Overrides {
                    learning: overrides.learning,
                    ..Overrides::default()
                };
                config.resolve(&Principal::Anonymous, &flag)
            }
        }
    }
}

impl Entry {
    fn new(bucket: Bucket, resolved: &Resolved) -> Self {
        Self {
            bucket,
            forget_at_ms: bucket.forget_at(resolved.limit.rate_ms),
        }
    }
}

/// A principal's place in a shared store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Placed {
    /// Whose bucket it is, as configuration and logs name it.
    pub name: String,
    /// The key of the bucket.
    pub key: String,
    /// The limit to take under.
    pub resolved: Resolved,
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
        let whose = self.whose(config, principal, now_ms);
        let resolved = whose.resolve(config, overrides);
        self.take(whose, &resolved, cost, now_ms)
    }

    /// Finds the bucket of a principal that lies in a shared store: its key, and the limit that
    /// the caller takes from it under. The own buckets count along, so that they know who may be
    /// forgotten.
    pub fn place(
        &mut self,
        config: &RateLimit,
        principal: Principal,
        overrides: &Overrides<'_>,
        now_ms: u64,
    ) -> Placed {
        let whose = self.whose(config, principal, now_ms);
        let resolved = whose.resolve(config, overrides);
        let (name, key) = match &whose {
            Whose::Own(principal) => (principal.to_string(), principal.bucket_key()),
            Whose::Anonymous => {
                let principal = Principal::Anonymous;
                (principal.to_string(), principal.bucket_key())
            }
            Whose::Overflow => (OVERFLOW.to_owned(), principal::overflow_key()),
        };
        self.take(whose, &resolved, 1, now_ms);
        Placed {
            name,
            key,
            resolved,
        }
    }

    fn take(&mut self, whose: Whose, resolved: &Resolved, cost: u32, now_ms: u64) -> Answer {
        let principal = match whose {
            Whose::Own(principal) => principal,
            Whose::Anonymous => Principal::Anonymous,
            Whose::Overflow => {
                let (bucket, answer) = resolved.decide(self.overflow, cost, now_ms);
                self.overflow = Some(bucket);
                return answer;
            }
        };
        if let Some(entry) = self.buckets.get_mut(&principal) {
            let (bucket, answer) = resolved.decide(Some(entry.bucket), cost, now_ms);
            *entry = Entry::new(bucket, resolved);
            return answer;
        }
        let (bucket, answer) = resolved.decide(None, cost, now_ms);
        self.apps += u32::from(matches!(principal, Principal::App(_)));
        self.buckets.insert(principal, Entry::new(bucket, resolved));
        answer
    }

    /// Whose bucket a principal is charged to.
    fn whose(&mut self, config: &RateLimit, principal: Principal, now_ms: u64) -> Whose {
        if self.buckets.contains_key(&principal) {
            return Whose::Own(principal);
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
            Whose::Own(principal)
        } else if principal == Principal::Anonymous {
            // It has a place beside the bound, or there would be none to share.
            Whose::Own(principal)
        } else if is_app {
            Whose::Anonymous
        } else {
            Whose::Overflow
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

/// How the bucket of those who found no room is called.
const OVERFLOW: &str = "(others)";
