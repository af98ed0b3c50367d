//! The world `verifier`: messages, verified with the host's keys.

use std::fmt;
use std::sync::Arc;

use wasmtime::component::{ComponentExportIndex, InstancePre, Linker, TypedFunc};
use wasmtime::{Store, format_err};

use crate::Keys;
use crate::ctx::HasKeys;
use crate::engine::Shared;
use crate::error::HostError;
use crate::pool::{Guest, Pool, World};
use crate::wit::keys;
use crate::wit::message::{Options, Signer, Trust, VerifyError};

/// Where its one function is in the component.
const INTERFACE: &str = "abide:cmp/message@0.1.0";
const FUNCTION: &str = "verify";

/// A verifier of messages in the sandbox whose arithmetic is done outside, by [`Keys`]. Clones
/// share its instances.
#[derive(Clone)]
pub struct Verifier {
    pool: Arc<Pool<VerifierWorld>>,
}

impl Verifier {
    pub(crate) fn new(shared: Arc<Shared>, component: Vec<u8>, keys: Arc<dyn Keys>) -> Self {
        Verifier {
            pool: Arc::new(Pool::new(shared, component, keys)),
        }
    }

    /// Compiles the component now instead of with the first call.
    pub async fn prepare(&self) -> Result<(), HostError> {
        self.pool.prepare().await.map(|_| ())
    }

    /// Verifies the protection of one DER PKIMessage.
    pub async fn verify(
        &self,
        message: &[u8],
        trust: &Trust,
        options: Options,
    ) -> Result<Result<Signer, VerifyError>, HostError> {
        let mut lease = self.pool.lease().await?;
        let (store, verify) = lease.parts();
        let given = (message.to_vec(), trust.clone(), options);
        let result = verify.call_async(store, given).await;
        lease.end(result.map(|(verdict,)| verdict))
    }
}

impl fmt::Debug for Verifier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Verifier").finish_non_exhaustive()
    }
}

/// The types of the world `gate`, so that both give the same.
type Verify = TypedFunc<(Vec<u8>, Trust, Options), (Result<Signer, VerifyError>,)>;

/// The world, for the pool.
pub(crate) struct VerifierWorld;

impl World for VerifierWorld {
    const NAME: &'static str = "verifier";
    const YIELDS: bool = true;
    type State = Arc<dyn Keys>;
    type Data = Arc<dyn Keys>;
    type Pre = (InstancePre<Guest<Self::Data>>, ComponentExportIndex);
    type Bindings = Verify;

    fn data(keys: &Arc<dyn Keys>) -> Arc<dyn Keys> {
        keys.clone()
    }

    fn link(linker: &mut Linker<Guest<Self::Data>>) -> wasmtime::Result<()> {
        keys::add_to_linker::<_, HasKeys>(linker, |guest: &mut Guest<Self::Data>| &mut guest.data)
    }

    fn check(pre: InstancePre<Guest<Self::Data>>) -> wasmtime::Result<Self::Pre> {
        let component = pre.component();
        let index = component
            .get_export_index(None, INTERFACE)
            .and_then(|interface| component.get_export_index(Some(&interface), FUNCTION))
            .ok_or_else(|| format_err!("it does not export {FUNCTION} of {INTERFACE}"))?;
        Ok((pre, index))
    }

    async fn instantiate(
        (pre, index): &Self::Pre,
        store: &mut Store<Guest<Self::Data>>,
    ) -> wasmtime::Result<Verify> {
        let instance = pre.instantiate_async(&mut *store).await?;
        instance.get_typed_func(store, index)
    }
}
