//! All policies of a service in one place, with the names of its configuration file.

use crate::mistake::{Check, Mistakes};
use crate::qos::Qos;
use crate::rate::RateLimit;
use crate::retry::RetryPolicy;
use crate::schedule::Scheduler;
use crate::shard::Sharding;
use crate::zombie::ZombieCheck;

/// All policies of a service. Endpoints and their selectors belong to each issuer:
/// [`crate::selector::Routing`].
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(default, deny_unknown_fields))]
pub struct Policies {
    /// Attempts of orders.
    pub retry: RetryPolicy,
    /// Workers and their tasks.
    pub scheduler: Scheduler,
    /// Whoever asks this service.
    pub rate_limit: RateLimit,
    /// What this service asks of each CMP endpoint. The principals are the endpoints' URLs.
    pub outgoing: RateLimit,
    /// How many orders run at once.
    pub qos: Qos,
    /// Which worker serves which account.
    pub cache_sharding: Sharding,
    /// Orders that nobody works on.
    pub zombie_check: ZombieCheck,
}

impl Check for Policies {
    fn check(&self, found: &mut Mistakes) {
        found.field("retry", &self.retry);
        found.field("scheduler", &self.scheduler);
        found.field("rate_limit", &self.rate_limit);
        found.field("outgoing", &self.outgoing);
        found.field("qos", &self.qos);
        found.field("cache_sharding", &self.cache_sharding);
        found.field("zombie_check", &self.zombie_check);
    }
}
