//! One call of the machine, which stops at every import and goes on with an answer.
//!
//! Whoever drives it sees what it asks of its host as a value, decides, and may also drop
//! it there: that is a process that dies. The native machine runs on a stack of its own;
//! others come by the trait [`Machine`].

use std::cell::RefCell;
use std::rc::Rc;

use abide_cmp::protection::{MacAlgorithm, SignatureAlgorithm, Verdict};
use abide_enroll::{
    Change, Enrollment, Entry, Error, Event, Filter, Host, KeyError, NetworkError, Page, Progress,
    Response, StorageError,
};
use corosensei::stack::DefaultStack;
use corosensei::{Coroutine, CoroutineResult, Yielder};

/// What the machine asks of its host.
#[derive(Clone, Debug)]
#[expect(missing_docs, reason = "the methods of abide_enroll::Host")]
pub enum Import {
    Now,
    Random(usize),
    Load {
        kind: String,
        id: String,
    },
    Commit(Vec<Change>),
    Exchange {
        endpoint: String,
        message: Vec<u8>,
        timeout_ms: u64,
    },
    PublicKey(String),
    Sign {
        key: String,
        data: Vec<u8>,
    },
    Mac {
        key: String,
        /// DER of the algorithm's parameters.
        parameters: Vec<u8>,
        data: Vec<u8>,
    },
    Verify {
        public_key: Vec<u8>,
        data: Vec<u8>,
        signature: Vec<u8>,
    },
    Fingerprint {
        key: String,
        salt: Vec<u8>,
    },
    Emit(Event),
}

impl Import {
    /// One word.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Now => "now",
            Self::Random(_) => "random",
            Self::Load { .. } => "load",
            Self::Commit(_) => "commit",
            Self::Exchange { .. } => "exchange",
            Self::PublicKey(_) => "public-key",
            Self::Sign { .. } => "sign",
            Self::Mac { .. } => "mac",
            Self::Verify { .. } => "verify",
            Self::Fingerprint { .. } => "fingerprint",
            Self::Emit(_) => "emit",
        }
    }
}

/// What the host answers.
#[derive(Debug)]
#[expect(
    missing_docs,
    reason = "the results of the methods of abide_enroll::Host"
)]
pub enum Answer {
    Now(u64),
    Octets(Vec<u8>),
    Key(Result<Vec<u8>, KeyError>),
    Entry(Result<Option<Entry>, StorageError>),
    Versions(Result<Vec<u64>, StorageError>),
    Response(Result<Response, NetworkError>),
    Verdict(Verdict),
    Done,
}

/// What a call comes to.
pub type Returned = Result<Progress, Error>;

/// What the machine is asked to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verb {
    /// [`abide_enroll::begin`].
    Begin,
    /// [`abide_enroll::begin_after`] this transaction.
    BeginAfter(Option<String>),
    /// [`abide_enroll::resume`].
    Resume,
}

/// Where a call stands.
#[derive(Debug)]
pub enum Step {
    /// It waits for the answer to an import.
    Asks(Import),
    /// It is over.
    Returns(Returned),
}

/// A form of the machine.
pub trait Machine {
    /// Starts a call, up to its first import.
    fn start(&self, verb: &Verb, enrollment: Rc<Enrollment>) -> (Box<dyn Call>, Step);
}

/// A call under way. Dropping it is the death of its process.
pub trait Call {
    /// Answers the import it waits for, and goes on to the next one.
    fn go_on(&mut self, answer: Answer) -> Step;
}

/// The machine as it is compiled into this program.
#[derive(Clone, Copy, Debug)]
pub struct Native;

impl Machine for Native {
    fn start(&self, verb: &Verb, enrollment: Rc<Enrollment>) -> (Box<dyn Call>, Step) {
        let stack = STACKS
            .with_borrow_mut(Vec::pop)
            .unwrap_or_else(|| DefaultStack::new(1 << 20).expect("a megabyte of address space"));
        let verb = verb.clone();
        let coroutine = Coroutine::with_stack(stack, move |yielder: &Yielder<_, _>, _| {
            let port = Port(yielder);
            match verb {
                Verb::Begin => abide_enroll::begin(&port, &enrollment),
                Verb::BeginAfter(last) => {
                    abide_enroll::begin_after(&port, &enrollment, last.as_deref())
                }
                Verb::Resume => abide_enroll::resume(&port, &enrollment),
            }
        });
        let mut call = NativeCall {
            coroutine: Some(coroutine),
        };
        let step = call.go_on(Answer::Done);
        (Box::new(call), step)
    }
}

struct NativeCall {
    // None only while it is dropped.
    coroutine: Option<Coroutine<Answer, Import, Returned>>,
}

thread_local! {
    /// Stacks of calls that are over, for those to come.
    static STACKS: RefCell<Vec<DefaultStack>> = const { RefCell::new(Vec::new()) };
}

impl Call for NativeCall {
    fn go_on(&mut self, answer: Answer) -> Step {
        let coroutine = self.coroutine.as_mut().expect("a call that is not dropped");
        match coroutine.resume(answer) {
            CoroutineResult::Yield(import) => Step::Asks(import),
            CoroutineResult::Return(returned) => Step::Returns(returned),
        }
    }
}

impl Drop for NativeCall {
    fn drop(&mut self) {
        if let Some(mut coroutine) = self.coroutine.take() {
            coroutine.force_unwind();
            STACKS.with_borrow_mut(|stacks| stacks.push(coroutine.into_stack()));
        }
    }
}

/// The host as the machine sees it.
struct Port<'y>(&'y Yielder<Answer, Import>);

impl Port<'_> {
    fn key(&self, import: Import) -> Result<Vec<u8>, KeyError> {
        match self.0.suspend(import) {
            Answer::Key(octets) => octets,
            other => unreachable!("{other:?} comes from no key"),
        }
    }
}

impl Host for Port<'_> {
    fn now_ms(&self) -> u64 {
        match self.0.suspend(Import::Now) {
            Answer::Now(now_ms) => now_ms,
            other => unreachable!("{other:?} is no time"),
        }
    }

    fn random(&self, count: usize) -> Vec<u8> {
        match self.0.suspend(Import::Random(count)) {
            Answer::Octets(octets) => octets,
            other => unreachable!("{other:?} is no octets"),
        }
    }

    fn load(&self, kind: &str, id: &str) -> Result<Option<Entry>, StorageError> {
        let import = Import::Load {
            kind: kind.to_owned(),
            id: id.to_owned(),
        };
        match self.0.suspend(import) {
            Answer::Entry(entry) => entry,
            other => unreachable!("{other:?} is no entry"),
        }
    }

    fn commit(&self, changes: Vec<Change>) -> Result<Vec<u64>, StorageError> {
        match self.0.suspend(Import::Commit(changes)) {
            Answer::Versions(versions) => versions,
            other => unreachable!("{other:?} is no versions"),
        }
    }

    fn list(&self, _: Filter, _: Option<&str>, _: u32) -> Result<Page, StorageError> {
        unreachable!("neither begin nor resume lists anything")
    }

    fn exchange(
        &self,
        endpoint: &str,
        message: &[u8],
        timeout_ms: u64,
        _response_limit: u32,
    ) -> Result<Response, NetworkError> {
        let import = Import::Exchange {
            endpoint: endpoint.to_owned(),
            message: message.to_vec(),
            timeout_ms,
        };
        match self.0.suspend(import) {
            Answer::Response(response) => response,
            other => unreachable!("{other:?} is no response"),
        }
    }

    fn public_key(&self, key: &str) -> Result<Vec<u8>, KeyError> {
        self.key(Import::PublicKey(key.to_owned()))
    }

    fn sign(&self, key: &str, _: SignatureAlgorithm, data: &[u8]) -> Result<Vec<u8>, KeyError> {
        self.key(Import::Sign {
            key: key.to_owned(),
            data: data.to_vec(),
        })
    }

    fn mac(
        &self,
        key: &str,
        algorithm: &MacAlgorithm<'_>,
        data: &[u8],
    ) -> Result<Vec<u8>, KeyError> {
        self.key(Import::Mac {
            key: key.to_owned(),
            parameters: algorithm.parameters(),
            data: data.to_vec(),
        })
    }

    fn verify(
        &self,
        _: SignatureAlgorithm,
        public_key: &[u8],
        data: &[u8],
        signature: &[u8],
    ) -> Verdict {
        let import = Import::Verify {
            public_key: public_key.to_vec(),
            data: data.to_vec(),
            signature: signature.to_vec(),
        };
        match self.0.suspend(import) {
            Answer::Verdict(verdict) => verdict,
            other => unreachable!("{other:?} is no verdict"),
        }
    }

    fn fingerprint(&self, key: &str, salt: &[u8]) -> Result<Vec<u8>, KeyError> {
        self.key(Import::Fingerprint {
            key: key.to_owned(),
            salt: salt.to_vec(),
        })
    }

    fn emit(&self, event: Event) {
        self.0.suspend(Import::Emit(event));
    }
}
