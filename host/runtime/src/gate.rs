//! The world `gate`: messages and policies, without any power.

use std::fmt;
use std::sync::Arc;

use wasmtime::Store;
use wasmtime::component::{InstancePre, Linker};

use crate::engine::Shared;
use crate::error::HostError;
use crate::pool::{Guest, Pool, World};
use crate::resident::{GateStore, Make, Resident};
use crate::wit::backoff::{Decision, Exponential, Failures, PolicyError};
use crate::wit::gate::{Gate as Bindings, GatePre};
use crate::wit::message::{
    DecodeError, Finding, Leniency, Options, Parts, PkiStatus, Signer, Summary, Trust, VerifyError,
};
use crate::wit::policy::Mistake;

/// A decoder and verifier of messages in the sandbox. Clones share its instances.
///
/// Calls never wait for anything outside, so they run on the caller's thread to their end; the
/// runtime's call deadline bounds how long that can be.
#[derive(Clone)]
pub struct Gate {
    pool: Arc<Pool<GateWorld>>,
}

/// Runs one exported function on a pooled instance.
macro_rules! call {
    ($self:ident.$interface:ident.$function:ident($($argument:expr),*)) => {{
        let mut lease = $self.pool.lease().await?;
        let (store, gate) = lease.parts();
        let result = gate.$interface().$function(store, $($argument),*);
        lease.end(result)
    }};
}

impl Gate {
    pub(crate) fn new(shared: Arc<Shared>, component: Vec<u8>) -> Self {
        Gate {
            pool: Arc::new(Pool::new(shared, component, ())),
        }
    }

    /// An instance of its own for a resource.
    pub(crate) async fn resident(
        &self,
        make: Make,
    ) -> Result<Result<Resident, Vec<Mistake>>, HostError> {
        Resident::new(self.pool.clone(), make).await
    }

    /// One call of a pooled instance.
    pub(crate) async fn call<T>(
        &self,
        call: impl FnOnce(&mut GateStore, &Bindings) -> wasmtime::Result<T>,
    ) -> Result<T, HostError> {
        let mut lease = self.pool.lease().await?;
        let (store, gate) = lease.parts();
        let result = call(store, gate);
        lease.end(result)
    }

    /// Compiles the component now instead of with the first call.
    pub async fn prepare(&self) -> Result<(), HostError> {
        self.pool.prepare().await.map(|_| ())
    }

    /// Decodes one DER PKIMessage to its header and kind.
    pub async fn decode(
        &self,
        message: &[u8],
        leniency: Leniency,
    ) -> Result<Result<Summary, DecodeError>, HostError> {
        call!(self.abide_cmp_message.call_decode(message, leniency))
    }

    /// Describes DER as JSON: a message, certificate, request or CRL.
    pub async fn describe(
        &self,
        input: &[u8],
        leniency: Leniency,
    ) -> Result<Result<String, DecodeError>, HostError> {
        call!(self.abide_cmp_message.call_describe(input, leniency))
    }

    /// The rules that one DER PKIMessage breaks.
    pub async fn check(
        &self,
        message: &[u8],
        leniency: Leniency,
    ) -> Result<Result<Vec<Finding>, DecodeError>, HostError> {
        call!(self.abide_cmp_message.call_check(message, leniency))
    }

    /// Verifies the protection of one DER PKIMessage.
    pub async fn verify(
        &self,
        message: &[u8],
        trust: &Trust,
        options: Options,
    ) -> Result<Result<Signer, VerifyError>, HostError> {
        call!(self.abide_cmp_message.call_verify(message, trust, options))
    }

    /// Takes one DER PKIMessage apart.
    pub async fn split(
        &self,
        message: &[u8],
        leniency: Leniency,
    ) -> Result<Result<Parts, DecodeError>, HostError> {
        call!(self.abide_cmp_message.call_split(message, leniency))
    }

    /// Everything that is wrong with policies in JSON.
    pub async fn check_policies(&self, policies: &str) -> Result<Vec<Mistake>, HostError> {
        call!(self.abide_cmp_policy.call_check(policies))
    }

    /// Policies in JSON with every default written out, or everything that is wrong with them.
    pub async fn complete_policies(
        &self,
        policies: &str,
    ) -> Result<Result<String, Vec<Mistake>>, HostError> {
        call!(self.abide_cmp_policy.call_complete(policies))
    }

    /// Puts a PKIMessage together in DER.
    pub async fn encode(&self, parts: &Parts) -> Result<Result<Vec<u8>, DecodeError>, HostError> {
        call!(self.abide_cmp_message.call_encode(parts))
    }

    /// What the protection of one DER PKIMessage covers.
    pub async fn protected_part(
        &self,
        message: &[u8],
        leniency: Leniency,
    ) -> Result<Result<Vec<u8>, DecodeError>, HostError> {
        call!(
            self.abide_cmp_message
                .call_protected_part(message, leniency)
        )
    }

    /// The MAC over `data` under a DER AlgorithmIdentifier.
    pub async fn mac(
        &self,
        algorithm: &[u8],
        secret: &[u8],
        data: &[u8],
    ) -> Result<Result<Vec<u8>, VerifyError>, HostError> {
        call!(self.abide_cmp_message.call_mac(algorithm, secret, data))
    }

    /// A DER ErrorMsgContent; `fail_info` holds bit numbers.
    pub async fn error_content(
        &self,
        status: PkiStatus,
        fail_info: &[u8],
        text: &[String],
    ) -> Result<Vec<u8>, HostError> {
        call!(
            self.abide_cmp_message
                .call_error_content(status, fail_info, text)
        )
    }

    /// cert-manager's policy: one hour, doubling, at most 32 hours.
    pub async fn default_policy(&self) -> Result<Exponential, HostError> {
        call!(self.abide_cmp_backoff.call_default_policy())
    }

    /// The delay in milliseconds after `attempts` consecutive failures.
    pub async fn delay(
        &self,
        policy: Exponential,
        attempts: Option<i64>,
    ) -> Result<Result<u64, PolicyError>, HostError> {
        call!(self.abide_cmp_backoff.call_delay(policy, attempts))
    }

    /// Whether the next attempt is due at `now_ms`.
    pub async fn next_attempt(
        &self,
        policy: Exponential,
        failures: Failures,
        now_ms: u64,
    ) -> Result<Result<Decision, PolicyError>, HostError> {
        call!(
            self.abide_cmp_backoff
                .call_next_attempt(policy, failures, now_ms)
        )
    }
}

impl fmt::Debug for Gate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Gate").finish_non_exhaustive()
    }
}

/// The world, for the pool.
pub(crate) struct GateWorld;

impl World for GateWorld {
    const NAME: &'static str = "gate";
    // Nothing is imported, so there is nothing to wait for, and a call on the caller's own stack
    // takes half the time of one on a fiber.
    const YIELDS: bool = false;
    type State = ();
    type Data = ();
    type Pre = GatePre<Guest<()>>;
    type Bindings = Bindings;

    fn data(_: &()) {}

    fn link(_: &mut Linker<Guest<()>>) -> wasmtime::Result<()> {
        Ok(())
    }

    fn check(pre: InstancePre<Guest<()>>) -> wasmtime::Result<Self::Pre> {
        GatePre::new(pre)
    }

    async fn instantiate(
        pre: &Self::Pre,
        store: &mut Store<Guest<()>>,
    ) -> wasmtime::Result<Bindings> {
        pre.instantiate(store)
    }
}
