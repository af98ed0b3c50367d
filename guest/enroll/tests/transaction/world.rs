//! The host of the small world.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, VecDeque};
use std::rc::Rc;

use abide_cmp::protection::{MacAlgorithm, SignatureAlgorithm, Verdict};
use abide_cmp::{BodyType, PkiMessage, cms};
use abide_enroll::{
    Change, Claim, Claimed, Claims, Credential, Deviations, Enrollment, Entry, Error, Event,
    Filter, HandlingError, Holding, Host, Issued, KeyError, KeyKind, Lease, Limits, NetworkError,
    Operation, Outcome, Page, Phase, Progress, Response, SharedSecret, StorageError, Template,
    TransactionRecord, Waiting, Want,
};
use p256::ecdsa::SigningKey;
use p256::ecdsa::signature::Signer;

use crate::ca::{Ca, REFERENCE, SECRET, csr, public_key};

/// 2026-06-01T00:00:00Z, from `date -u -d 2026-06-01 +%s`.
pub(crate) const START_MS: u64 = 1_780_272_000_000;
pub(crate) const SECOND: u64 = 1000;
pub(crate) const MINUTE: u64 = 60 * SECOND;
pub(crate) const HOUR: u64 = 60 * MINUTE;

pub(crate) const LIMITS: Limits = Limits {
    maximum_duration_ms: HOUR,
    minimum_poll_interval_ms: 10 * SECOND,
    maximum_poll_interval_ms: 4 * MINUTE,
    maximum_polls: 5,
    request_timeout_ms: 30 * SECOND,
};

/// What the network makes of one request.
pub(crate) type Fate = Box<dyn Fn(&Ca, &[u8]) -> Result<Response, NetworkError>>;

/// How a process dies: nothing is cleaned up, nobody is told.
pub(crate) struct Died;

pub(crate) struct World {
    pub(crate) ca: Ca,
    pub(crate) enrollment: Enrollment,
    pub(crate) now_ms: Cell<u64>,
    pub(crate) secret: RefCell<Vec<u8>>,
    pub(crate) store_fails: Rc<Cell<bool>>,
    /// What opening an envelope comes to.
    pub(crate) opens_to: RefCell<Result<Vec<u8>, HandlingError>>,
    /// What keeping a private key comes to.
    pub(crate) installs: RefCell<Result<(), HandlingError>>,
    /// The private key that is kept, with its public half, and how often it was.
    pub(crate) installed: RefCell<Option<(Vec<u8>, Vec<u8>)>>,
    /// How often a key or secret was used.
    pub(crate) key_uses: Cell<u32>,
    /// What becomes of the next requests; the ones after that reach the honest CA.
    fates: RefCell<VecDeque<Fate>>,
    /// Whether the CA is there at all.
    pub(crate) is_down: Cell<bool>,
    /// Whether the CA refuses whatever comes.
    pub(crate) refuses_all: Cell<bool>,
    sent: RefCell<Vec<Vec<u8>>>,
    key: SigningKey,
    store: RefCell<BTreeMap<(String, String), Entry>>,
    versions: Cell<u64>,
    tokens: Cell<u64>,
    /// Leases in a row that ended by time alone.
    lost: RefCell<BTreeMap<String, u32>>,
    randoms: Cell<u64>,
    /// What is drawn next in place of what the counter gives.
    pub(crate) draws: RefCell<VecDeque<Vec<u8>>>,
    /// The key that is to be certified, where it is not that of the requester.
    pub(crate) certified: RefCell<Option<Vec<u8>>>,
    /// Moments passed, two for each call: before it does anything and after.
    pub(crate) moments: Cell<u32>,
    /// The moment at which the process dies.
    pub(crate) dies_at: Cell<Option<u32>>,
}

impl World {
    pub(crate) fn new(operation: Operation) -> Self {
        let key = SigningKey::from_slice(&[5; 32]).expect("a private key");
        let ca = Ca::new(public_key(&key));
        let want = match operation {
            Operation::P10cr => Want::Csr(csr(&key)),
            _ => Want::Template(Template {
                subject: "CN=device".into(),
                sans: Vec::new(),
                key: "new".into(),
            }),
        };
        let enrollment = Enrollment {
            order: "web".into(),
            account: String::new(),
            operation,
            want,
            profile: String::new(),
            server: "http://ca.example/pkix/".into(),
            recipient: String::new(),
            credential: Credential::Secret(SharedSecret {
                reference: REFERENCE.to_vec(),
                key: "secret".into(),
                iterations: 100,
                mac: abide_enroll::MacKind::Pbm,
            }),
            trusted: vec![ca.root.clone()],
            out_trusted: Vec::new(),
            untrusted: Vec::new(),
            implicit_confirm: false,
            allow_sha1: false,
            allow: Deviations::NONE,
            limits: LIMITS,
            registration: None,
        };
        Self {
            ca,
            enrollment,
            now_ms: Cell::new(START_MS),
            secret: RefCell::new(SECRET.to_vec()),
            store_fails: Rc::default(),
            opens_to: RefCell::new(Err(HandlingError::Refused("nothing".into()))),
            installs: RefCell::new(Ok(())),
            installed: RefCell::default(),
            key_uses: Cell::new(0),
            fates: RefCell::default(),
            is_down: Cell::new(false),
            refuses_all: Cell::new(false),
            sent: RefCell::default(),
            key,
            store: RefCell::default(),
            versions: Cell::new(0),
            tokens: Cell::new(0),
            lost: RefCell::default(),
            randoms: Cell::new(0),
            draws: RefCell::default(),
            certified: RefCell::default(),
            moments: Cell::new(0),
            dies_at: Cell::new(None),
        }
    }

    /// Decides on one more of the next requests.
    pub(crate) fn next(
        &self,
        fate: impl Fn(&Ca, &[u8]) -> Result<Response, NetworkError> + 'static,
    ) {
        self.fates.borrow_mut().push_back(Box::new(fate));
    }

    /// One of the next requests reaches the CA or does not, and nothing comes back.
    pub(crate) fn next_is_lost(&self) {
        self.next(|_, _| Err(NetworkError::Timeout("nothing came".into())));
    }

    /// The honest CA has one of the next requests.
    pub(crate) fn next_is_answered(&self) {
        self.next_says(Ca::answer);
    }

    /// The answer to one of the next requests.
    pub(crate) fn next_says(&self, answer: impl Fn(&Ca, &[u8]) -> Vec<u8> + 'static) {
        self.next(move |ca, request| Ok(ok(answer(ca, request))));
    }

    pub(crate) fn begin(&self) -> Result<Progress, Error> {
        abide_enroll::begin(self, &self.enrollment)
    }

    pub(crate) fn resume(&self) -> Result<Progress, Error> {
        abide_enroll::resume(self, &self.enrollment)
    }

    /// Goes on when it is time, over and over.
    pub(crate) fn to_the_end(&self) -> Progress {
        for _ in 0..100 {
            let progress = self.resume().expect("a transaction to go on with");
            match &progress.outcome {
                Outcome::Waiting(waiting) => self.now_ms.set(waiting.until_ms),
                _ => return progress,
            }
        }
        panic!("no end: {:?}", self.record().history)
    }

    /// Lets the time pass until the next step is due, and takes it.
    pub(crate) fn step(&self) -> Progress {
        let due = self.record().due_ms().expect("an open transaction");
        self.now_ms.set(due);
        self.resume().expect("a transaction to go on with")
    }

    /// The only transaction in the store.
    pub(crate) fn record(&self) -> TransactionRecord {
        let (mut records, next) = abide_enroll::list(self, None, 10).expect("a listing");
        assert_eq!((records.len(), next), (1, None));
        records.remove(0)
    }

    pub(crate) fn sent(&self) -> Vec<Vec<u8>> {
        self.sent.borrow().clone()
    }

    pub(crate) fn sent_count(&self) -> usize {
        self.sent.borrow().len()
    }

    pub(crate) fn last_sent(&self) -> Vec<u8> {
        self.sent().pop().expect("a message")
    }

    /// What was sent, in the words of the RFC.
    pub(crate) fn sent_types(&self) -> Vec<&'static str> {
        self.sent()
            .iter()
            .map(|der| body_type(der).name())
            .collect()
    }

    /// One record as it is stored.
    pub(crate) fn stored_entry(&self, kind: &str, id: &str) -> Option<Entry> {
        let key = (kind.to_owned(), id.to_owned());
        self.store.borrow().get(&key).cloned()
    }

    /// How many records of a kind there are.
    pub(crate) fn count_of(&self, kind: &str) -> usize {
        let store = self.store.borrow();
        store.keys().filter(|(found, _)| found == kind).count()
    }

    /// When the next record of a kind is due.
    pub(crate) fn earliest_due(&self, kind: &str) -> Option<u64> {
        let store = self.store.borrow();
        let of_kind = store.values().filter(|e| e.envelope.kind == kind);
        of_kind.filter_map(|entry| entry.envelope.due_ms).min()
    }

    /// Damages a record.
    pub(crate) fn damage(&self, kind: &str, id: &str) {
        let key = (kind.to_owned(), id.to_owned());
        let mut store = self.store.borrow_mut();
        store.get_mut(&key).expect("a record").body.truncate(1);
    }

    /// Loses a record, as a store does that was restored or edited by hand.
    pub(crate) fn lose(&self, kind: &str, id: &str) {
        let key = (kind.to_owned(), id.to_owned());
        self.store.borrow_mut().remove(&key).expect("a record");
    }

    /// Puts a record under another id.
    pub(crate) fn rename(&self, kind: &str, from: &str, to: &str) {
        let mut store = self.store.borrow_mut();
        let mut entry = store
            .remove(&(kind.to_owned(), from.to_owned()))
            .expect("a record");
        entry.envelope.id = to.into();
        store.insert((kind.to_owned(), to.to_owned()), entry);
    }

    /// Everything in the store, one after the other.
    pub(crate) fn stored(&self) -> Vec<u8> {
        let store = self.store.borrow();
        store
            .values()
            .flat_map(|entry| entry.body.clone())
            .collect()
    }

    fn moment(&self) {
        let moment = self.moments.get();
        self.moments.set(moment + 1);
        if self.dies_at.get() == Some(moment) {
            std::panic::resume_unwind(Box::new(Died));
        }
    }

    /// A call of the host, which may die before and after it.
    fn call<T>(&self, work: impl FnOnce() -> T) -> T {
        self.moment();
        let done = work();
        self.moment();
        done
    }

    fn write(&self, changes: Vec<Change>) -> Result<Vec<u64>, StorageError> {
        if self.store_fails.get() {
            return Err(StorageError::Unavailable("the disk is full".into()));
        }
        let mut store = self.store.borrow_mut();
        let key = |put: &abide_enroll::Put| (put.envelope.kind.clone(), put.envelope.id.clone());
        let guarded = |kind: &str, id: &str, token| {
            changes.iter().any(|change| match change {
                Change::Guard(guard) => {
                    (&*guard.kind, &*guard.id, guard.token) == (kind, id, token)
                }
                _ => false,
            })
        };
        let check = |kind: &str, id: &str, expected: Option<u64>| {
            let found = store.get(&(kind.into(), id.into()));
            let lease = found.and_then(|entry| entry.lease.as_ref());
            match found.map(|entry| entry.version) == expected
                && lease.is_none_or(|lease| guarded(kind, id, lease.token))
            {
                true => Ok(()),
                false => Err(StorageError::Conflict(id.into())),
            }
        };
        for change in &changes {
            match change {
                Change::Put(put) => check(&put.envelope.kind, &put.envelope.id, put.expected)?,
                Change::Delete(gone) => check(&gone.kind, &gone.id, Some(gone.expected))?,
                Change::Guard(guard) => {
                    let found = store.get(&(guard.kind.clone(), guard.id.clone()));
                    let lease = found.and_then(|entry| entry.lease.as_ref());
                    if lease.map(|lease| lease.token) != Some(guard.token) {
                        return Err(StorageError::Fenced(guard.id.clone()));
                    }
                }
            }
        }
        let mut versions = Vec::new();
        for change in changes {
            match change {
                Change::Put(put) => {
                    self.versions.set(self.versions.get() + 1);
                    versions.push(self.versions.get());
                    let entry = Entry {
                        version: self.versions.get(),
                        envelope: put.envelope.clone(),
                        body: put.body.clone(),
                        lease: None,
                    };
                    self.lost.borrow_mut().remove(&put.envelope.id);
                    store.insert(key(&put), entry);
                }
                Change::Delete(gone) => {
                    versions.push(0);
                    store.remove(&(gone.kind, gone.id));
                }
                Change::Guard(_) => versions.push(0),
            }
        }
        Ok(versions)
    }

    fn take(&self, claim: &Claim) -> Claims {
        let mut store = self.store.borrow_mut();
        let due = |entry: &Entry| match &entry.lease {
            Some(lease) => Some(lease.until_ms),
            None => entry.envelope.due_ms,
        };
        let mut waiting: Vec<_> = store
            .iter_mut()
            .filter(|((kind, _), entry)| *kind == claim.kind && due(entry).is_some())
            .map(|(_, entry)| entry)
            .collect();
        waiting.sort_by_cached_key(|entry| (due(entry), entry.envelope.id.clone()));
        let mut claims = Claims::default();
        for entry in waiting {
            let is_due = due(entry) <= Some(claim.now_ms);
            if is_due && claim.excluded.contains(&entry.envelope.account) {
                continue;
            }
            if due(entry) > Some(claim.now_ms) || claims.claimed.len() == claim.limit as usize {
                claims.next_due_ms = due(entry);
                break;
            }
            let mut lost = self.lost.borrow_mut();
            let lost = lost.entry(entry.envelope.id.clone()).or_default();
            *lost += u32::from(entry.lease.is_some());
            self.tokens.set(self.tokens.get() + 1);
            entry.lease = Some(Holding {
                holder: claim.holder.clone(),
                token: self.tokens.get(),
                until_ms: claim.until_ms,
            });
            claims.claimed.push(Claimed {
                entry: entry.clone(),
                token: self.tokens.get(),
                lost: *lost,
            });
        }
        claims
    }

    fn transmit(&self, message: &[u8]) -> Result<Response, NetworkError> {
        self.sent.borrow_mut().push(message.to_vec());
        if self.is_down.get() {
            return Err(NetworkError::Unreachable("connection refused".into()));
        }
        if self.refuses_all.get() {
            return Ok(ok(self.ca.refuse(message)));
        }
        let fate = self.fates.borrow_mut().pop_front();
        match fate {
            Some(fate) => fate(&self.ca, message),
            None => Ok(ok(self.ca.answer(message))),
        }
    }
}

impl Host for World {
    fn now_ms(&self) -> u64 {
        self.call(|| self.now_ms.get())
    }

    fn random(&self, count: usize) -> Vec<u8> {
        let drawn = self.draws.borrow_mut().pop_front();
        self.call(|| {
            if let Some(drawn) = drawn {
                return drawn;
            }
            self.randoms.set(self.randoms.get() + 1);
            let mut octets = vec![0; count];
            octets[..8].copy_from_slice(&self.randoms.get().to_be_bytes());
            octets
        })
    }

    fn load(&self, kind: &str, id: &str) -> Result<Option<Entry>, StorageError> {
        let key = (kind.to_owned(), id.to_owned());
        self.call(|| Ok(self.store.borrow().get(&key).cloned()))
    }

    fn commit(&self, changes: Vec<Change>) -> Result<Vec<u64>, StorageError> {
        self.call(|| self.write(changes))
    }

    fn claim_due(&self, claim: Claim) -> Result<Claims, StorageError> {
        self.call(|| Ok(self.take(&claim)))
    }

    fn renew(&self, leases: Vec<Lease>, until_ms: u64) -> Result<Vec<Lease>, StorageError> {
        self.call(|| {
            let mut store = self.store.borrow_mut();
            let mut lost = Vec::new();
            for lease in leases {
                let found = store.get_mut(&(lease.kind.clone(), lease.id.clone()));
                match found.and_then(|entry| entry.lease.as_mut()) {
                    Some(held) if held.token == lease.token => held.until_ms = until_ms,
                    _ => lost.push(lease),
                }
            }
            Ok(lost)
        })
    }

    fn release(&self, leases: Vec<Lease>) -> Result<(), StorageError> {
        self.call(|| {
            let mut store = self.store.borrow_mut();
            for lease in leases {
                if let Some(entry) = store.get_mut(&(lease.kind, lease.id)) {
                    entry.lease.take_if(|held| held.token == lease.token);
                }
            }
            Ok(())
        })
    }

    fn count(&self, kind: &str, now_ms: u64, limit: u32) -> Result<(u32, u32), StorageError> {
        let store = self.store.borrow();
        let of_kind = store.values().filter(|e| e.envelope.kind == kind);
        let due = of_kind.clone().filter(|entry| {
            entry.lease.is_none() && entry.envelope.due_ms.is_some_and(|due| due <= now_ms)
        });
        let (all, due) = (of_kind.count() as u32, due.count() as u32);
        Ok((all.min(limit), due.min(limit)))
    }

    fn generate(&self, _: &str, _: KeyKind) -> Result<Vec<u8>, HandlingError> {
        self.call(|| Ok(public_key(&self.key)))
    }

    fn list(&self, filter: Filter, cursor: Option<&str>, limit: u32) -> Result<Page, StorageError> {
        let store = self.store.borrow();
        let mut wanted = store.values().filter(|entry| {
            entry.envelope.kind == filter.kind
                && filter
                    .state
                    .as_ref()
                    .is_none_or(|s| *s == entry.envelope.state)
                && cursor.is_none_or(|cursor| &*entry.envelope.id > cursor)
        });
        let entries: Vec<_> = wanted.by_ref().take(limit as usize).cloned().collect();
        let next = wanted.next().and(entries.last());
        let next = next.map(|last| last.envelope.id.clone());
        Ok(Page { entries, next })
    }

    fn exchange(
        &self,
        endpoint: &str,
        message: &[u8],
        timeout_ms: u64,
        _response_limit: u32,
    ) -> Result<Response, NetworkError> {
        assert_eq!(endpoint, self.enrollment.server);
        assert_eq!(timeout_ms, self.enrollment.limits.request_timeout_ms);
        self.call(|| self.transmit(message))
    }

    fn public_key(&self, _key: &str) -> Result<Vec<u8>, KeyError> {
        self.call(|| {
            let installed = self.installed.borrow().clone().map(|(_, public)| public);
            let certified = self.certified.borrow().clone();
            let known = installed.or(certified);
            Ok(known.unwrap_or_else(|| public_key(&self.key)))
        })
    }

    fn open(&self, key: &str, envelope: &cms::Envelope<'_>) -> Result<Vec<u8>, HandlingError> {
        assert_eq!(key, "secret");
        assert!(matches!(
            envelope.management,
            cms::KeyManagement::Password { .. }
        ));
        self.call(|| self.opens_to.borrow().clone())
    }

    fn install(&self, key: &str, private: &[u8], public: &[u8]) -> Result<(), HandlingError> {
        assert_eq!(key, "new");
        self.call(|| {
            self.installs.borrow().clone()?;
            *self.installed.borrow_mut() = Some((private.to_vec(), public.to_vec()));
            Ok(())
        })
    }

    fn sign(&self, _: &str, _: SignatureAlgorithm, data: &[u8]) -> Result<Vec<u8>, KeyError> {
        self.key_uses.set(self.key_uses.get() + 1);
        self.call(|| {
            let signature: p256::ecdsa::DerSignature = self.key.sign(data);
            Ok(signature.as_bytes().to_vec())
        })
    }

    fn mac(&self, _: &str, algorithm: &MacAlgorithm<'_>, data: &[u8]) -> Result<Vec<u8>, KeyError> {
        self.key_uses.set(self.key_uses.get() + 1);
        self.call(|| Ok(algorithm.compute(&self.secret.borrow(), data)))
    }

    fn verify(&self, _: SignatureAlgorithm, _: &[u8], _: &[u8], _: &[u8]) -> Verdict {
        self.call(|| Verdict::Unsupported)
    }

    fn fingerprint(&self, _key: &str, salt: &[u8]) -> Result<Vec<u8>, KeyError> {
        self.key_uses.set(self.key_uses.get() + 1);
        self.call(|| Ok([&self.secret.borrow(), salt].concat()))
    }

    fn emit(&self, _event: Event) {
        self.call(|| ());
    }
}

/// An HTTP answer with a message in it.
pub(crate) fn ok(body: Vec<u8>) -> Response {
    Response {
        status: 200,
        content_type: Some("application/pkixcmp".into()),
        retry_after: None,
        location: None,
        body,
    }
}

pub(crate) fn body_type(der: &[u8]) -> BodyType {
    let message = PkiMessage::from_der(der).expect("a PKIMessage");
    message.body.body_type()
}

pub(crate) fn issued(progress: Progress) -> Issued {
    assert_eq!(progress.phase, Phase::Issued, "{progress:?}");
    match progress.outcome {
        Outcome::Issued(issued) => issued,
        other => panic!("no certificate: {other:?}"),
    }
}

pub(crate) fn failed(progress: Progress) -> abide_enroll::Failure {
    assert_eq!(progress.phase, Phase::Failed, "{progress:?}");
    match progress.outcome {
        Outcome::Failed(failure) => failure,
        other => panic!("no failure: {other:?}"),
    }
}

pub(crate) fn waits(progress: Progress) -> Waiting {
    match progress.outcome {
        Outcome::Waiting(waiting) => waiting,
        other => panic!("no waiting: {other:?}"),
    }
}
