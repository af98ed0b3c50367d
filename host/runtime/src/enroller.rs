//! The world `enroller`: whole enrollments, with the power of [`Services`].

use std::fmt;
use std::sync::Arc;

use wasmtime::Store;
use wasmtime::component::{InstancePre, Linker};

use crate::Services;
use crate::ctx::{AbideView, Ctx, add_to_linker};
use crate::engine::Shared;
use crate::error::{CallError, HostError};
use crate::orders::{Orders, Schedule, Zombies};
use crate::pool::{Guest, Pool, World};
use crate::wit::enroller::{Enroller as Bindings, EnrollerPre};
use crate::wit::transactions::{Enrollment, Progress, Transaction};

/// Enrollments in the sandbox. Clones share its instances.
///
/// After a [`HostError`] the store tells what happened: everything a call does is stored before it
/// is sent, so [`Enroller::resume`] goes on where the instance died.
#[derive(Clone)]
pub struct Enroller {
    pool: Arc<Pool<EnrollerWorld>>,
}

/// Runs one exported function on a pooled instance.
macro_rules! call {
    ($self:ident.$function:ident($($argument:expr),*)) => {{
        let mut lease = $self.pool.lease().await?;
        let (store, enroller) = lease.parts();
        let result = enroller
            .abide_cmp_transactions()
            .$function(store, $($argument),*)
            .await;
        Ok(lease.end(result)??)
    }};
}

impl Enroller {
    pub(crate) fn new(shared: Arc<Shared>, component: Vec<u8>, services: Services) -> Self {
        Enroller {
            pool: Arc::new(Pool::new(shared, component, services)),
        }
    }

    /// Compiles the component now instead of with the first call.
    pub async fn prepare(&self) -> Result<(), HostError> {
        self.pool.prepare().await.map(|_| ())
    }

    /// Orders, on the same instances.
    pub fn orders(&self) -> Orders {
        let pool = self.pool.clone();
        Orders { pool }
    }

    /// The tasks of orders, on the same instances.
    pub fn schedule(&self) -> Schedule {
        let pool = self.pool.clone();
        Schedule { pool }
    }

    /// Orders that nobody works on, on the same instances.
    pub fn zombies(&self) -> Zombies {
        let pool = self.pool.clone();
        Zombies { pool }
    }

    /// Begins a transaction for an order that has no open one.
    pub async fn begin(&self, enrollment: &Enrollment) -> Result<Progress, CallError> {
        call!(self.call_begin(enrollment))
    }

    /// Begins a transaction for an order whose last one is still `last`, or that still has none.
    pub async fn begin_after(
        &self,
        enrollment: &Enrollment,
        last: Option<&str>,
    ) -> Result<Progress, CallError> {
        call!(self.call_begin_after(enrollment, last))
    }

    /// Goes on with the open transaction of the order.
    pub async fn resume(&self, enrollment: &Enrollment) -> Result<Progress, CallError> {
        call!(self.call_resume(enrollment))
    }

    /// One transaction by its id in hexadecimal.
    pub async fn get(&self, transaction_id: &str) -> Result<Transaction, CallError> {
        call!(self.call_get(transaction_id))
    }

    /// The stored transactions in the order of their ids, `limit` at most, after `cursor`; with
    /// the cursor of the next page, if there is one.
    pub async fn list(
        &self,
        cursor: Option<&str>,
        limit: u32,
    ) -> Result<(Vec<Transaction>, Option<String>), CallError> {
        call!(self.call_list(cursor, limit))
    }
}

impl fmt::Debug for Enroller {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Enroller").finish_non_exhaustive()
    }
}

impl AbideView for Guest<Ctx> {
    fn abide(&mut self) -> &mut Ctx {
        &mut self.data
    }
}

/// The world, for the pool.
pub(crate) struct EnrollerWorld;

impl World for EnrollerWorld {
    const NAME: &'static str = "enroller";
    const YIELDS: bool = true;
    type State = Services;
    type Data = Ctx;
    type Pre = EnrollerPre<Guest<Ctx>>;
    type Bindings = Bindings;

    fn data(services: &Services) -> Ctx {
        Ctx::new(services.clone())
    }

    fn link(linker: &mut Linker<Guest<Ctx>>) -> wasmtime::Result<()> {
        add_to_linker(linker)
    }

    fn check(pre: InstancePre<Guest<Ctx>>) -> wasmtime::Result<Self::Pre> {
        EnrollerPre::new(pre)
    }

    async fn instantiate(
        pre: &Self::Pre,
        store: &mut Store<Guest<Ctx>>,
    ) -> wasmtime::Result<Bindings> {
        pre.instantiate_async(store).await
    }
}
