//! Limits and quality of service, decided in the sandbox.

use crate::error::HostError;
use crate::gate::Gate;
use crate::resident::Resident;
use crate::wit::admission::{
    Admitted, Answer, Arrival, Caller, Candidate, Limit, Mode, Overrides, Placed, Promoted, Taken,
};
use crate::wit::policy::Mistake;

/// A rate limiter whose buckets lie in the memory of its own instance of the component.
///
/// If a call fails, the next one finds a new instance in which all buckets are full.
#[derive(Debug)]
pub struct Limiter(Resident);

impl Gate {
    /// A limiter from the JSON of the policy `rate_limit`.
    pub async fn limiter(&self, policy: &str) -> Result<Result<Limiter, Vec<Mistake>>, HostError> {
        let policy = policy.to_owned();
        let resident = self.resident(Box::new(move |store, gate| {
            let limiters = gate.abide_cmp_admission().limiter();
            limiters.call_create(store, &policy)
        }));
        Ok(resident.await?.map(Limiter))
    }

    /// Quality of service from the JSON of the policy `qos`.
    pub async fn quality(&self, policy: &str) -> Result<Result<Quality, Vec<Mistake>>, HostError> {
        let policy = policy.to_owned();
        let resident = self.resident(Box::new(move |store, gate| {
            let qualities = gate.abide_cmp_admission().quality();
            qualities.call_create(store, &policy)
        }));
        Ok(resident.await?.map(Quality))
    }
}

impl Limiter {
    /// What a caller is called: the name that its overrides are found under.
    pub async fn name(&self, caller: &Caller) -> Result<String, HostError> {
        self.0
            .call(|store, gate, limiter| {
                let limiters = gate.abide_cmp_admission().limiter();
                limiters.call_name(store, limiter, caller)
            })
            .await
    }

    /// Decides about one request, which takes `cost` if there is room.
    pub async fn admit(
        &self,
        caller: &Caller,
        overrides: Option<&Overrides>,
        cost: u32,
        now_ms: u64,
    ) -> Result<Answer, HostError> {
        self.0
            .call(|store, gate, limiter| {
                let limiters = gate.abide_cmp_admission().limiter();
                limiters.call_admit(store, limiter, caller, overrides, cost, now_ms)
            })
            .await
    }

    /// The bucket of a caller in a shared store, and the limit to take from it under.
    pub async fn place(
        &self,
        caller: &Caller,
        overrides: Option<&Overrides>,
        now_ms: u64,
    ) -> Result<Placed, HostError> {
        self.0
            .call(|store, gate, limiter| {
                let limiters = gate.abide_cmp_admission().limiter();
                limiters.call_place(store, limiter, caller, overrides, now_ms)
            })
            .await
    }

    /// Principals with a bucket of their own.
    pub async fn principals(&self) -> Result<u32, HostError> {
        self.0
            .call(|store, gate, limiter| {
                let limiters = gate.abide_cmp_admission().limiter();
                limiters.call_principals(store, limiter)
            })
            .await
    }

    /// Takes from the octets of a bucket in a shared store; `None` if they are no bucket.
    pub async fn take(
        &self,
        bucket: Option<&[u8]>,
        limit: Limit,
        cost: u32,
        now_ms: u64,
    ) -> Result<Option<(Vec<u8>, Taken)>, HostError> {
        self.0
            .call(|store, gate, _| {
                let admission = gate.abide_cmp_admission();
                admission.call_take(store, bucket, limit, cost, now_ms)
            })
            .await
    }

    /// The answer once a shared store has been asked: nothing, if it is away.
    pub async fn answer_of(
        &self,
        limit: Limit,
        mode: Mode,
        taken: Option<Taken>,
        now_ms: u64,
    ) -> Result<Answer, HostError> {
        self.0
            .call(|store, gate, _| {
                let admission = gate.abide_cmp_admission();
                admission.call_answer_of(store, limit, mode, taken, now_ms)
            })
            .await
    }

    /// The headers of a limited answer.
    pub async fn headers(
        &self,
        answer: Answer,
        now_ms: u64,
    ) -> Result<Vec<(String, String)>, HostError> {
        self.0
            .call(|store, gate, _| {
                let admission = gate.abide_cmp_admission();
                admission.call_headers(store, answer, now_ms)
            })
            .await
    }
}

/// Quality of service. It remembers whether the closed loop of a promotion is closed.
#[derive(Debug)]
pub struct Quality(Resident);

impl Quality {
    /// Whether a new order starts or waits, with so many active ones.
    pub async fn admit(
        &self,
        arrival: &Arrival,
        active: u64,
        now_ms: u64,
    ) -> Result<Admitted, HostError> {
        self.0
            .call(|store, gate, quality| {
                let qualities = gate.abide_cmp_admission().quality();
                qualities.call_admit(store, quality, arrival, active, now_ms)
            })
            .await
    }

    /// Chooses among the orders that wait.
    pub async fn promote(
        &self,
        candidates: &[Candidate],
        active_by_account: &[(String, u64)],
        active: u64,
        now_ms: u64,
    ) -> Result<Promoted, HostError> {
        self.0
            .call(|store, gate, quality| {
                let qualities = gate.abide_cmp_admission().quality();
                qualities.call_promote(
                    store,
                    quality,
                    candidates,
                    active_by_account,
                    active,
                    now_ms,
                )
            })
            .await
    }

    /// Why a service must not start with so many orders buffered.
    pub async fn stuck(&self, buffered: u64) -> Result<Option<String>, HostError> {
        self.0
            .call(|store, gate, quality| {
                let qualities = gate.abide_cmp_admission().quality();
                qualities.call_stuck(store, quality, buffered)
            })
            .await
    }
}
