//! The component as a form of the machine: a call is a future that nobody but the
//! simulator polls, and every import waits in it for the simulator's answer.

use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Waker};

use abide_enroll::{Enrollment, KeyError};
use abide_host::components::ENROLLER;
use abide_host::wit::transactions::{self, Progress, TransactionError};
use abide_host::wit::{keys, network, storage, telemetry};
use abide_sim::call::{Answer, Call, Import, Machine, Returned, Step, Verb};
use wasmtime::component::{
    Component as Compiled, ComponentType, HasData, InstancePre, Linker, Lower,
};
use wasmtime::{Config, Engine, Store};

use crate::convert;

/// Instructions of one call, about: a call that goes round in circles ends by this.
const FUEL: u64 = 1_000_000_000;

/// The component, compiled and linked.
pub(crate) struct Component {
    engine: Engine,
    linked: InstancePre<Port>,
}

impl Component {
    pub(crate) fn new() -> Self {
        let mut config = Config::new();
        config.concurrency_support(false);
        config.wasm_wide_arithmetic(true);
        config.consume_fuel(true);
        let engine = Engine::new(&config).expect("an engine");
        let compiled = Compiled::from_binary(&engine, ENROLLER).expect("the component");
        let mut linker = Linker::new(&engine);
        link(&mut linker).expect("six imports");
        let linked = linker.instantiate_pre(&compiled).expect("six imports");
        Self { engine, linked }
    }
}

impl Machine for Component {
    fn start(&self, verb: &Verb, enrollment: Rc<Enrollment>) -> (Box<dyn Call>, Step) {
        let slot = Arc::new(Mutex::new(Slot::default()));
        let mut store = Store::new(&self.engine, Port(slot.clone()));
        store.set_fuel(FUEL).expect("fuel is consumed");
        let given = convert::to_enrollment(&enrollment);
        let call = whole(self.linked.clone(), store, verb.clone(), given);
        let mut call = UnderWay {
            future: Box::pin(call),
            slot,
        };
        let step = call.step();
        (Box::new(call), step)
    }
}

/// Instantiates the component and calls it once.
async fn whole(
    linked: InstancePre<Port>,
    mut store: Store<Port>,
    verb: Verb,
    given: transactions::Enrollment,
) -> wasmtime::Result<Returned> {
    type Result_ = (Result<Progress, TransactionError>,);
    let instance = linked.instantiate_async(&mut store).await?;
    let (name, last) = match verb {
        Verb::Begin => ("begin", None),
        Verb::Resume => ("resume", None),
        Verb::BeginAfter(last) => ("begin-after", Some(last)),
    };
    let interface = instance
        .get_export_index(&mut store, None, "abide:cmp/transactions@0.1.0")
        .expect("the interface");
    let index = instance
        .get_export_index(&mut store, Some(&interface), name)
        .expect("its function");
    let (returned,) = match last {
        None => {
            let function = instance
                .get_typed_func::<(&transactions::Enrollment,), Result_>(&mut store, index)?;
            function.call_async(&mut store, (&given,)).await?
        }
        Some(last) => {
            let function = instance
                .get_typed_func::<(&transactions::Enrollment, Option<&str>), Result_>(
                    &mut store, index,
                )?;
            let arguments = (&given, last.as_deref());
            function.call_async(&mut store, arguments).await?
        }
    };
    Ok(returned
        .map(convert::from_progress)
        .map_err(convert::from_error))
}

/// A call of the component.
struct UnderWay {
    future: Pin<Box<dyn Future<Output = wasmtime::Result<Returned>>>>,
    slot: Arc<Mutex<Slot>>,
}

impl UnderWay {
    fn step(&mut self) -> Step {
        let mut context = Context::from_waker(Waker::noop());
        loop {
            match self.future.as_mut().poll(&mut context) {
                Poll::Ready(returned) => {
                    return Step::Returns(returned.expect("the component does not trap"));
                }
                Poll::Pending => {
                    if let Some(import) = lock(&self.slot).asked.take() {
                        return Step::Asks(import);
                    }
                }
            }
        }
    }
}

impl Call for UnderWay {
    fn go_on(&mut self, answer: Answer) -> Step {
        lock(&self.slot).answer = Some(answer);
        self.step()
    }
}

/// What is asked, and then answered.
#[derive(Default)]
struct Slot {
    asked: Option<Import>,
    answer: Option<Answer>,
}

fn lock(slot: &Mutex<Slot>) -> std::sync::MutexGuard<'_, Slot> {
    slot.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Asks, then waits.
struct Asking {
    slot: Arc<Mutex<Slot>>,
    import: Option<Import>,
}

impl Future for Asking {
    type Output = Answer;

    fn poll(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Answer> {
        let import = self.import.take();
        let mut slot = lock(&self.slot);
        if import.is_some() {
            slot.asked = import;
            return Poll::Pending;
        }
        match slot.answer.take() {
            Some(answer) => Poll::Ready(answer),
            None => Poll::Pending,
        }
    }
}

/// The host as the component sees it.
struct Port(Arc<Mutex<Slot>>);

impl Port {
    fn ask(&self, import: Import) -> Asking {
        Asking {
            slot: self.0.clone(),
            import: Some(import),
        }
    }

    async fn key(&self, import: Import) -> wasmtime::Result<Result<Vec<u8>, keys::KeyError>> {
        match self.ask(import).await {
            Answer::Key(octets) => {
                Ok(octets.map_err(|KeyError(why)| keys::KeyError::Unavailable(why)))
            }
            other => unreachable!("{other:?} comes from no key"),
        }
    }
}

impl HasData for Port {
    type Data<'a> = &'a mut Port;
}

#[derive(Clone, Copy, ComponentType, Lower)]
#[component(record)]
struct Datetime {
    seconds: u64,
    nanoseconds: u32,
}

/// The six imports. The three that never wait at a real host wait here too.
fn link(linker: &mut Linker<Port>) -> wasmtime::Result<()> {
    storage::add_to_linker::<Port, Port>(linker, |port| port)?;
    network::add_to_linker::<Port, Port>(linker, |port| port)?;
    keys::add_to_linker::<Port, Port>(linker, |port| port)?;
    linker
        .instance("abide:cmp/telemetry@0.1.0")?
        .func_wrap_async("emit", |store, (event,): (telemetry::Event,)| {
            let asking = store.data().ask(Import::Emit(convert::from_event(event)));
            Box::new(async move {
                asking.await;
                Ok(())
            })
        })?;
    linker
        .instance("wasi:clocks/wall-clock@0.2.3")?
        .func_wrap_async("now", |store, (): ()| {
            let asking = store.data().ask(Import::Now);
            Box::new(async move {
                let Answer::Now(now_ms) = asking.await else {
                    unreachable!("a clock tells the time");
                };
                Ok((Datetime {
                    seconds: now_ms / 1000,
                    nanoseconds: (now_ms % 1000) as u32 * 1_000_000,
                },))
            })
        })?;
    linker
        .instance("wasi:random/random@0.2.3")?
        .func_wrap_async("get-random-bytes", |store, (count,): (u64,)| {
            let asking = store.data().ask(Import::Random(count as usize));
            Box::new(async move {
                let Answer::Octets(octets) = asking.await else {
                    unreachable!("randomness is octets");
                };
                Ok((octets,))
            })
        })
}

impl storage::Host for Port {
    async fn get(
        &mut self,
        kind: String,
        id: String,
    ) -> wasmtime::Result<Result<Option<storage::Entry>, storage::StorageError>> {
        let Answer::Entry(entry) = self.ask(Import::Load { kind, id }).await else {
            unreachable!("a store gives entries");
        };
        Ok(entry
            .map(|entry| entry.map(convert::to_entry))
            .map_err(convert::to_storage_error))
    }

    async fn commit(
        &mut self,
        changes: Vec<storage::Change>,
    ) -> wasmtime::Result<Result<Vec<u64>, storage::StorageError>> {
        let changes = changes.into_iter().map(convert::from_change).collect();
        let Answer::Versions(versions) = self.ask(Import::Commit(changes)).await else {
            unreachable!("a store gives versions");
        };
        Ok(versions.map_err(convert::to_storage_error))
    }

    async fn list(
        &mut self,
        _: storage::Filter,
        _: Option<String>,
        _: u32,
    ) -> wasmtime::Result<Result<storage::Page, storage::StorageError>> {
        unreachable!("neither begin nor resume lists anything")
    }

    async fn claim_due(
        &mut self,
        _: storage::Claim,
    ) -> wasmtime::Result<Result<storage::Claims, storage::StorageError>> {
        unreachable!("neither begin nor resume claims anything")
    }

    async fn renew(
        &mut self,
        _: Vec<storage::Lease>,
        _: u64,
    ) -> wasmtime::Result<Result<Vec<storage::Lease>, storage::StorageError>> {
        unreachable!("neither begin nor resume has a lease")
    }

    async fn release(
        &mut self,
        _: Vec<storage::Lease>,
    ) -> wasmtime::Result<Result<(), storage::StorageError>> {
        unreachable!("neither begin nor resume has a lease")
    }

    async fn count(
        &mut self,
        _: String,
        _: u64,
        _: u32,
    ) -> wasmtime::Result<Result<(u32, u32), storage::StorageError>> {
        unreachable!("neither begin nor resume counts anything")
    }
}

impl network::Host for Port {
    async fn exchange(
        &mut self,
        request: network::Request,
    ) -> wasmtime::Result<Result<network::Response, network::NetworkError>> {
        let import = Import::Exchange {
            endpoint: request.endpoint,
            message: request.message,
            timeout_ms: request.timeout_ms,
        };
        let Answer::Response(response) = self.ask(import).await else {
            unreachable!("an exchange gives a response");
        };
        Ok(response
            .map(convert::to_response)
            .map_err(convert::to_network_error))
    }
}

impl keys::Host for Port {
    async fn public_key(
        &mut self,
        key: String,
    ) -> wasmtime::Result<Result<Vec<u8>, keys::KeyError>> {
        self.key(Import::PublicKey(key)).await
    }

    async fn sign(
        &mut self,
        key: String,
        _: keys::SignatureAlgorithm,
        data: Vec<u8>,
    ) -> wasmtime::Result<Result<Vec<u8>, keys::KeyError>> {
        self.key(Import::Sign { key, data }).await
    }

    async fn mac(
        &mut self,
        key: String,
        algorithm: keys::MacAlgorithm,
        data: Vec<u8>,
    ) -> wasmtime::Result<Result<Vec<u8>, keys::KeyError>> {
        let parameters = convert::mac_parameters(&algorithm);
        let import = Import::Mac {
            key,
            parameters,
            data,
        };
        self.key(import).await
    }

    async fn verify(
        &mut self,
        _: keys::SignatureAlgorithm,
        public_key: Vec<u8>,
        data: Vec<u8>,
        signature: Vec<u8>,
    ) -> wasmtime::Result<keys::Verdict> {
        let import = Import::Verify {
            public_key,
            data,
            signature,
        };
        let Answer::Verdict(verdict) = self.ask(import).await else {
            unreachable!("a verifier gives a verdict");
        };
        Ok(convert::to_verdict(verdict))
    }

    async fn fingerprint(
        &mut self,
        key: String,
        salt: Vec<u8>,
    ) -> wasmtime::Result<Result<Vec<u8>, keys::KeyError>> {
        self.key(Import::Fingerprint { key, salt }).await
    }

    async fn open(
        &mut self,
        key: String,
        _: keys::Enveloped,
    ) -> wasmtime::Result<Result<Vec<u8>, keys::HandlingError>> {
        unreachable!("no simulated CA makes keys, and {key} opens none")
    }

    async fn install(
        &mut self,
        key: String,
        _: Vec<u8>,
        _: Vec<u8>,
    ) -> wasmtime::Result<Result<(), keys::HandlingError>> {
        unreachable!("no simulated CA makes keys, and {key} is none")
    }

    async fn generate(
        &mut self,
        key: String,
        _: keys::KeyKind,
    ) -> wasmtime::Result<Result<Vec<u8>, keys::HandlingError>> {
        unreachable!("an enrollment makes no keys, such as {key}")
    }
}
