//! Orders and their schedule: the other exports of the world `enroller`.

use std::fmt;
use std::sync::Arc;

use crate::enroller::EnrollerWorld;
use crate::error::OrderCallError;
use crate::pool::Pool;
use crate::wit::orders::{Admission, Explanation, Order, OrderFilter, Wish};
use crate::wit::schedule::{Batch, EndpointHealth, Issuer, Ran, Share, Task, Work};
use crate::wit::zombies::{Hydrated, Span, Zombie};

/// Runs one exported function of an interface on a pooled instance.
macro_rules! call {
    ($self:ident.$interface:ident.$function:ident($($argument:expr),*)) => {{
        let mut lease = $self.pool.lease().await?;
        let (store, enroller) = lease.parts();
        let result = enroller.$interface().$function(store, $($argument),*).await;
        lease.end(result)?
    }};
}

/// Wishes for certificates. See the WIT interface `orders`.
#[derive(Clone)]
pub struct Orders {
    pub(crate) pool: Arc<Pool<EnrollerWorld>>,
}

impl Orders {
    /// Accepts a wish with its first task, unless it is to wait; `false` when its order stood
    /// already.
    pub async fn create(
        &self,
        wish: &Wish,
        admission: Option<&Admission>,
    ) -> Result<(Order, bool), OrderCallError> {
        Ok(call!(self.abide_cmp_orders.call_create(wish, admission))?)
    }

    /// A buffered order starts; `false` when it is not buffered any more.
    pub async fn promote(&self, id: &str, why: &str) -> Result<(Order, bool), OrderCallError> {
        Ok(call!(self.abide_cmp_orders.call_promote(id, why))?)
    }

    /// One order by its id.
    pub async fn get(&self, id: &str) -> Result<Order, OrderCallError> {
        Ok(call!(self.abide_cmp_orders.call_get(id))?)
    }

    /// Some orders in the order of their ids, `limit` at most, after `cursor`; with the cursor of
    /// the next page, if there is one.
    pub async fn list(
        &self,
        filter: &OrderFilter,
        cursor: Option<&str>,
        limit: u32,
    ) -> Result<(Vec<Order>, Option<String>), OrderCallError> {
        Ok(call!(
            self.abide_cmp_orders.call_list(filter, cursor, limit)
        )?)
    }

    /// Another certificate at once; the count of failures stays.
    pub async fn renew(&self, id: &str, by: &str, policies: &str) -> Result<Order, OrderCallError> {
        Ok(call!(self.abide_cmp_orders.call_renew(id, by, policies))?)
    }

    /// Ends an order; its certificate stays.
    pub async fn cancel(&self, id: &str, by: &str, why: &str) -> Result<Order, OrderCallError> {
        Ok(call!(self.abide_cmp_orders.call_cancel(id, by, why))?)
    }

    /// Why the next attempt is when it is, and what would follow until `until_ms`.
    pub async fn explain(
        &self,
        id: &str,
        policies: &str,
        until_ms: u64,
    ) -> Result<Explanation, OrderCallError> {
        Ok(call!(
            self.abide_cmp_orders.call_explain(id, policies, until_ms)
        )?)
    }
}

/// The tasks of orders. See the WIT interface `schedule`.
#[derive(Clone)]
pub struct Schedule {
    pub(crate) pool: Arc<Pool<EnrollerWorld>>,
}

impl Schedule {
    /// Claims what is due, `free` at most; with a share only what is this worker's.
    pub async fn claim(
        &self,
        worker: &str,
        free: u32,
        started_ms: u64,
        policies: &str,
        share: Option<&Share>,
    ) -> Result<Batch, OrderCallError> {
        Ok(call!(
            self.abide_cmp_schedule
                .call_claim(worker, free, started_ms, policies, share)
        )?)
    }

    /// Does one task.
    pub async fn run(
        &self,
        work: &Work,
        issuer: Option<&Issuer>,
        policies: &str,
    ) -> Result<Ran, OrderCallError> {
        Ok(call!(
            self.abide_cmp_schedule.call_run(work, issuer, policies)
        )?)
    }

    /// Prolongs leases; returns those that are lost.
    pub async fn renew(&self, work: &[Work], policies: &str) -> Result<Vec<Work>, OrderCallError> {
        Ok(call!(self.abide_cmp_schedule.call_renew(work, policies))?)
    }

    /// Hands tasks back.
    pub async fn release(&self, work: &[Work]) -> Result<(), OrderCallError> {
        Ok(call!(self.abide_cmp_schedule.call_release(work))?)
    }

    /// Tasks, or dead letters, in the order of their orders' ids, `limit` at most, after
    /// `cursor`; with the cursor of the next page, if there is one.
    pub async fn tasks(
        &self,
        dead: bool,
        cursor: Option<&str>,
        limit: u32,
    ) -> Result<(Vec<Task>, Option<String>), OrderCallError> {
        Ok(call!(
            self.abide_cmp_schedule.call_tasks(dead, cursor, limit)
        )?)
    }

    /// A dead letter becomes a task again, due at once.
    pub async fn replay(&self, order: &str) -> Result<Task, OrderCallError> {
        Ok(call!(self.abide_cmp_schedule.call_replay(order))?)
    }

    /// How endpoints are, in the order of their URLs, `limit` at most, after `cursor`; with the
    /// cursor of the next page, if there is one.
    pub async fn endpoints(
        &self,
        policies: &str,
        cursor: Option<&str>,
        limit: u32,
    ) -> Result<(Vec<EndpointHealth>, Option<String>), OrderCallError> {
        Ok(call!(
            self.abide_cmp_schedule
                .call_endpoints(policies, cursor, limit)
        )?)
    }
}

/// Orders that nobody works on. See the WIT interface `zombies`.
#[derive(Clone)]
pub struct Zombies {
    pub(crate) pool: Arc<Pool<EnrollerWorld>>,
}

impl Zombies {
    /// Zombies among the next `limit` orders after `cursor`, with the cursor of the next page, if
    /// there is one.
    pub async fn find(
        &self,
        policies: &str,
        accepted: Option<Span>,
        cursor: Option<&str>,
        limit: u32,
    ) -> Result<(Vec<Zombie>, Option<String>), OrderCallError> {
        Ok(call!(
            self.abide_cmp_zombies
                .call_find(policies, accepted, cursor, limit)
        )?)
    }

    /// What would bring an order back, and unless it is a dry run, does it.
    pub async fn hydrate(
        &self,
        policies: &str,
        order: &str,
        dry_run: bool,
        force: bool,
        by: &str,
    ) -> Result<Hydrated, OrderCallError> {
        Ok(call!(
            self.abide_cmp_zombies
                .call_hydrate(policies, order, dry_run, force, by)
        )?)
    }

    /// Ends an order whatever holds it.
    pub async fn force_cancel(
        &self,
        order: &str,
        by: &str,
        why: &str,
    ) -> Result<Order, OrderCallError> {
        Ok(call!(
            self.abide_cmp_zombies.call_force_cancel(order, by, why)
        )?)
    }
}

impl fmt::Debug for Orders {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Orders").finish_non_exhaustive()
    }
}

impl fmt::Debug for Schedule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Schedule").finish_non_exhaustive()
    }
}

impl fmt::Debug for Zombies {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Zombies").finish_non_exhaustive()
    }
}
