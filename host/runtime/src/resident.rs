//! An instance of the gate that lives as long as what it remembers.

use std::fmt;
use std::sync::Arc;

use tokio::sync::Mutex;
use wasmtime::Store;
use wasmtime::component::ResourceAny;

use crate::error::HostError;
use crate::gate::GateWorld;
use crate::pool::{Guest, Instance, Pool};
use crate::wit::gate::Gate as Bindings;
use crate::wit::policy::Mistake;

/// The store that a resource lives in.
pub(crate) type GateStore = Store<Guest<()>>;

/// Makes a resource, or says what is wrong with its configuration.
pub(crate) type Make = Box<
    dyn Fn(&mut GateStore, &Bindings) -> wasmtime::Result<Result<ResourceAny, Vec<Mistake>>>
        + Send
        + Sync,
>;

/// A resource of the component with the instance that it lives in.
///
/// Calls come one after the other. If one fails, the instance is replaced by a new one with the
/// next call, and what it remembered is gone.
pub(crate) struct Resident {
    pool: Arc<Pool<GateWorld>>,
    make: Make,
    place: Mutex<Option<Place>>,
}

struct Place {
    instance: Box<Instance<GateWorld>>,
    resource: ResourceAny,
}

impl Resident {
    pub(crate) async fn new(
        pool: Arc<Pool<GateWorld>>,
        make: Make,
    ) -> Result<Result<Self, Vec<Mistake>>, HostError> {
        let resident = Self {
            pool,
            make,
            place: Mutex::new(None),
        };
        Ok(match resident.settle().await? {
            Err(mistakes) => Err(mistakes),
            Ok(place) => {
                *resident.place.lock().await = Some(place);
                Ok(resident)
            }
        })
    }

    async fn settle(&self) -> Result<Result<Place, Vec<Mistake>>, HostError> {
        let mut instance = self.pool.instance().await?;
        let made = self.pool.run(&mut instance, &self.make)?;
        Ok(made.map(|resource| Place { instance, resource }))
    }

    /// Calls the resource.
    pub(crate) async fn call<T>(
        &self,
        call: impl FnOnce(&mut GateStore, &Bindings, ResourceAny) -> wasmtime::Result<T>,
    ) -> Result<T, HostError> {
        let mut place = self.place.lock().await;
        let settled = match place.take() {
            Some(settled) => settled,
            None => self
                .settle()
                .await?
                .map_err(|mistakes| self.pool.unusable(&format!("{mistakes:?}")))?,
        };
        let Place {
            mut instance,
            resource,
        } = settled;
        // It is put back only after a call that returned.
        let result = self.pool.run(&mut instance, |store, bindings| {
            call(store, bindings, resource)
        })?;
        *place = Some(Place { instance, resource });
        Ok(result)
    }
}

impl fmt::Debug for Resident {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Resident").finish_non_exhaustive()
    }
}
