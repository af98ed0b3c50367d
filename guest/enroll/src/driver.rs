//! Stores, then sends, then stores what came of it.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use abide_cmp::Certificate;
use minicbor::bytes::ByteVec;

use crate::enrollment::{Enrollment, Generated, Want};
use crate::failure::{Failure, FailureClass};
use crate::host::{Change, Event, Filter, Host, Level, NetworkError, Response, StorageError};
use crate::information::{Answer, InformationRequest};
use crate::limits;
use crate::machine::{give_up, handle_message, handle_trouble};
use crate::mutation::Mutation;
use crate::plan::Plan;
use crate::record::{
    Confirmation, ORDER, OrderRecord, Phase, TRANSACTION, TransactionRecord, Unreadable, hex,
};
use crate::registration;
use crate::reply;
use crate::request;
use crate::revocation::RevocationRequest;

/// Why a call did nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Error {
    /// The enrollment cannot be served as it is given.
    Invalid(String),
    /// The order has this open transaction.
    InProgress(String),
    /// There is nothing to resume.
    NotFound,
    /// Another process is at work on this transaction.
    Busy(String),
    /// The store.
    Storage(String),
    /// A key or secret.
    Key(String),
    /// A stored record cannot be read.
    Unreadable(String),
}

impl From<Unreadable> for Error {
    fn from(error: Unreadable) -> Self {
        Self::Unreadable(error.0)
    }
}

/// Where an enrollment stands.
#[derive(Clone, Debug)]
pub struct Progress {
    /// In hexadecimal.
    pub transaction_id: String,
    /// The phase.
    pub phase: Phase,
    /// What to do.
    pub outcome: Outcome,
}

/// What came of a call.
#[derive(Clone, Debug)]
pub enum Outcome {
    /// The certificate is there.
    Issued(Issued),
    /// Time must pass.
    Waiting(Waiting),
    /// There will be no certificate.
    Failed(Failure),
    /// Revoked, or answered.
    Done(Done),
}

/// What came of an rr or a genm.
#[derive(Clone, Debug)]
pub struct Done {
    /// What a genp says.
    pub answer: Option<Answer>,
    /// What the person should know; may be empty.
    pub note: String,
}

/// A certificate.
#[derive(Clone, Debug)]
pub struct Issued {
    /// DER, leaf first.
    pub chain: Vec<Vec<u8>>,
    /// DER, as the CA sent them in caPubs.
    pub ca_pubs: Vec<Vec<u8>>,
    /// How the CA took the confirmation.
    pub confirmation: Confirmation,
    /// What the person should know; may be empty.
    pub note: String,
}

/// Until when to wait, and why.
#[derive(Clone, Debug)]
pub struct Waiting {
    /// Milliseconds since the Unix epoch.
    pub until_ms: u64,
    /// One line.
    pub reason: String,
    /// The failure that is waited out.
    pub failure: Option<Failure>,
}

/// Begins a transaction for an order that has no open one. An open one whose
/// configuration is no longer the given one is ended first; one whose request certainly
/// never left is gone on with.
///
/// What has ended before counts for nothing here: of two callers who both saw an order
/// without a certificate, the one that comes after the other has ended begins once more.
/// Where several callers decide, [`begin_after`] keeps them apart.
pub fn begin(host: &dyn Host, enrollment: &Enrollment) -> Result<Progress, Error> {
    let plan = Plan::new(enrollment, host)?;
    begin_over(&plan, host, Session::load(host, &enrollment.order)?)
}

/// Like [`begin`], for a caller who decided because `last` was the last transaction of the
/// order, or because the order had none. Once the order has come further, nothing happens:
/// [`Error::InProgress`] names the open transaction that others began, [`Error::Busy`] one
/// that has ended since; [`Error::NotFound`] says that there is no `last`.
pub fn begin_after(
    host: &dyn Host,
    enrollment: &Enrollment,
    last: Option<&str>,
) -> Result<Progress, Error> {
    let plan = Plan::new(enrollment, host)?;
    let session = Session::load(host, &enrollment.order)?;
    let id = session.as_ref().map(|session| session.record.id());
    match (&session, id) {
        _ if Mutation::LateBeginBegins.is_on() => {}
        (Some(session), Some(id)) if last != Some(id.as_str()) => {
            return Err(match session.record.phase.is_open() {
                true => Error::InProgress(id),
                false => Error::Busy(id),
            });
        }
        (None, _) if last.is_some() => return Err(Error::NotFound),
        _ => {}
    }
    begin_over(&plan, host, session)
}

fn begin_over(
    plan: &Plan<'_>,
    host: &dyn Host,
    before: Option<Session<'_>>,
) -> Result<Progress, Error> {
    let mut order_version = None;
    if let Some(mut open) = before {
        if open.record.phase.is_open() {
            match changed(plan, host, &open.record)? {
                None if open.record.never_left() => return open.drive(plan, false),
                None => return Err(Error::InProgress(open.record.id())),
                Some(what) => open.end_changed(what)?,
            }
        }
        order_version = Some(open.order_version);
    }
    Session::create(plan, host, order_version)?.drive(plan, true)
}

/// Goes on with the open transaction of the order, or returns the stored chain of one
/// that is issued, without traffic and without touching a credential.
pub fn resume(host: &dyn Host, enrollment: &Enrollment) -> Result<Progress, Error> {
    go_on(host, enrollment).map(|(progress, _)| progress)
}

/// What [`resume`] does, and whether it ended the transaction because the enrollment is no
/// longer what it began with.
pub(crate) fn go_on(host: &dyn Host, enrollment: &Enrollment) -> Result<(Progress, bool), Error> {
    let mut session = Session::load(host, &enrollment.order)?.ok_or(Error::NotFound)?;
    match session.record.phase {
        Phase::Issued | Phase::Done if serves(&session.record, enrollment, host)? => {
            return Ok((session.progress(), false));
        }
        Phase::Issued | Phase::Done | Phase::Failed => return Err(Error::NotFound),
        Phase::Enrolling | Phase::Polling | Phase::Confirming => {}
    }
    let plan = Plan::new(enrollment, host)?;
    if let Some(what) = changed(&plan, host, &session.record)? {
        session.end_changed(what)?;
        return Ok((session.progress(), true));
    }
    session
        .drive(&plan, false)
        .map(|progress| (progress, false))
}

/// Where the last transaction of an order stands, without doing anything; none when the
/// order has had none.
pub(crate) fn last(host: &dyn Host, order: &str) -> Result<Option<Progress>, Error> {
    Ok(Session::load(host, order)?.map(Session::progress))
}

/// The open transaction of an order, ended for good, with what is to be written for that. A chain
/// that is stored is kept; what the CA may have issued is a declared orphan.
pub(crate) fn abandoned(
    host: &dyn Host,
    order: &str,
    why: &str,
) -> Result<Option<(Progress, Vec<Change>)>, Error> {
    let Some(mut session) = Session::load(host, order)? else {
        return Ok(None);
    };
    if !session.record.phase.is_open() {
        return Ok(None);
    }
    session.record = give_up(
        session.record,
        FailureClass::Permanent,
        why,
        "order anew if the certificate is still wanted",
        host.now_ms(),
    );
    let changes = session.changes();
    Ok(Some((session.progress(), changes)))
}

/// One transaction by its id in hexadecimal.
pub fn get(host: &dyn Host, transaction_id: &str) -> Result<TransactionRecord, Error> {
    let entry = host
        .load(TRANSACTION, transaction_id)
        .map_err(storage)?
        .ok_or(Error::NotFound)?;
    Ok(TransactionRecord::from_entry(&entry)?)
}

/// Some transactions in the order of their ids, and where the next ones begin.
pub fn list(
    host: &dyn Host,
    cursor: Option<&str>,
    limit: u32,
) -> Result<(Vec<TransactionRecord>, Option<String>), Error> {
    let filter = Filter {
        kind: TRANSACTION.into(),
        ..Filter::default()
    };
    let page = host
        .list(filter, cursor, limit.clamp(1, limits::PAGE))
        .map_err(storage)?;
    let records = page
        .entries
        .iter()
        .map(TransactionRecord::from_entry)
        .collect::<Result<Vec<_>, _>>()?;
    Ok((records, page.next))
}

fn storage(error: StorageError) -> Error {
    match error {
        StorageError::Conflict(what) | StorageError::Fenced(what) => Error::Busy(what),
        StorageError::Unavailable(why) => Error::Storage(why),
    }
}

/// What of the enrollment is no longer what the transaction began with.
fn changed(
    plan: &Plan<'_>,
    host: &dyn Host,
    record: &TransactionRecord,
) -> Result<Option<&'static str>, Error> {
    Ok(if plan.csr_digest() != record.csr_digest[..] {
        Some("the request")
    } else if plan.issuer_digest() != record.issuer_digest[..] {
        Some("the issuer")
    } else if plan.configuration_digest(host, &record.transaction_id)?
        != record.configuration_digest[..]
    {
        Some("a credential or a trusted certificate")
    } else {
        None
    })
}

/// Whether a stored result is for what is asked now.
fn serves(
    record: &TransactionRecord,
    enrollment: &Enrollment,
    host: &dyn Host,
) -> Result<bool, Error> {
    match &enrollment.want {
        Want::Csr(csr) => {
            let digest = abide_cmp::protection::Hash::Sha256.digest(csr);
            Ok(digest == record.csr_digest[..])
        }
        Want::Template(template) | Want::Generated(Generated { template, .. }) => {
            let key = host
                .public_key(&template.key)
                .map_err(|error| Error::Key(error.0))?;
            let leaf = record
                .chain
                .first()
                .and_then(|der| Certificate::from_der(der).ok());
            Ok(leaf.is_some_and(|leaf| leaf.public_key.raw == key))
        }
        Want::Revocation(revocation) => {
            Ok(RevocationRequest::new(revocation)?.digest() == record.csr_digest[..])
        }
        Want::Information(question) => {
            Ok(InformationRequest::new(question)?.digest() == record.csr_digest[..])
        }
    }
}

/// A transaction and its order with the versions under which they are stored.
struct Session<'h> {
    host: &'h dyn Host,
    record: TransactionRecord,
    version: u64,
    order: OrderRecord,
    order_version: u64,
}

impl<'h> Session<'h> {
    fn load(host: &'h dyn Host, order: &str) -> Result<Option<Self>, Error> {
        let Some(entry) = host.load(ORDER, order).map_err(storage)? else {
            return Ok(None);
        };
        let order_version = entry.version;
        let order = OrderRecord::from_entry(&entry)?;
        let id = hex(&order.transaction_id);
        let Some(entry) = host.load(TRANSACTION, &id).map_err(storage)? else {
            return Err(Error::Unreadable(format!(
                "the store lost the transaction {id}"
            )));
        };
        let record = TransactionRecord::from_entry(&entry)?;
        Ok(Some(Self {
            host,
            record,
            version: entry.version,
            order,
            order_version,
        }))
    }

    /// Makes the first request and stores it; nothing is sent yet.
    fn create(
        plan: &Plan<'_>,
        host: &'h dyn Host,
        order_version: Option<u64>,
    ) -> Result<Self, Error> {
        let enrollment = plan.enrollment;
        let now_ms = host.now_ms();
        let transaction_id = host.random(limits::TRANSACTION_ID);
        let configuration_digest = plan.configuration_digest(host, &transaction_id)?;
        let empty = || ByteVec::from(Vec::new());
        let mut record = TransactionRecord {
            transaction_id: ByteVec::from(transaction_id.clone()),
            order: enrollment.order.clone(),
            account: enrollment.account.clone(),
            operation: enrollment.operation,
            server: enrollment.server.clone(),
            phase: Phase::Enrolling,
            started_ms: now_ms,
            deadline_ms: now_ms.saturating_add(enrollment.limits.maximum_duration_ms),
            updated_ms: now_ms,
            csr_digest: ByteVec::from(plan.csr_digest()),
            issuer_digest: ByteVec::from(plan.issuer_digest()),
            configuration_digest: ByteVec::from(configuration_digest),
            last_request: empty(),
            pending: false,
            next_ms: None,
            last_nonce: empty(),
            request_nonce: empty(),
            recip_nonce: None,
            peer_name: None,
            cert_req_id: None,
            response_signer: None,
            polls: 0,
            resends: 0,
            maybe_delivered: true,
            chain: Vec::new(),
            ca_pubs: Vec::new(),
            confirmation: Confirmation::Open,
            note: String::new(),
            failure: None,
            trouble: None,
            history: Vec::new(),
            deliveries: 1,
            information: None,
            pvno: None,
            allowed: None,
        };
        request::enroll(plan, host, &mut record, now_ms)?;
        record.note_history(
            now_ms,
            format!(
                "{} made and stored for {}",
                enrollment.operation.name(),
                enrollment.server
            ),
        );
        let order = OrderRecord {
            transaction_id: ByteVec::from(transaction_id),
        };
        let versions = host
            .commit(alloc::vec![
                record.put(None),
                order.put(&record, order_version)
            ])
            .map_err(storage)?;
        let [version, order_version] = versions[..] else {
            return Err(Error::Storage(
                "the host did not tell the versions it wrote".into(),
            ));
        };
        Ok(Self {
            host,
            record,
            version,
            order,
            order_version,
        })
    }

    /// Stores the record; with it the order, when the transaction has come to an end.
    fn store(&mut self) -> Result<(), Error> {
        let versions = self.host.commit(self.changes()).map_err(storage)?;
        let Some(&version) = versions.first() else {
            return Err(Error::Storage(
                "the host did not tell the version it wrote".into(),
            ));
        };
        self.version = version;
        self.order_version = versions.get(1).copied().unwrap_or(self.order_version);
        Ok(())
    }

    /// What writes the record as it is now.
    fn changes(&self) -> Vec<Change> {
        let mut changes = alloc::vec![self.record.put(Some(self.version))];
        if !self.record.phase.is_open() {
            changes.push(self.order.put(&self.record, Some(self.order_version)));
        }
        changes
    }

    fn end_changed(&mut self, what: &str) -> Result<(), Error> {
        let record = give_up(
            self.record.clone(),
            FailureClass::Permanent,
            &format!("{what} is no longer what the transaction began with"),
            "enroll anew under the present configuration",
            self.host.now_ms(),
        );
        self.record = record;
        self.store()?;
        self.tell(Level::Warn, "transaction-ended", format!("{what} changed"));
        Ok(())
    }

    /// An answer that was refused may be good under what is allowed now: it is asked for at
    /// once.
    fn mind_what_is_allowed(&mut self, plan: &Plan<'_>) {
        use FailureClass::{Malformed, Security};
        let allowed = Some(plan.enrollment.allow.bits());
        let before = core::mem::replace(&mut self.record.allowed, allowed);
        let refused = self
            .record
            .trouble
            .as_ref()
            .is_some_and(|trouble| matches!(trouble.class, Security | Malformed));
        if refused && before.is_some() && before != allowed {
            self.record.next_ms = None;
        }
    }

    /// Does all that can be done now. `fresh` says that the last request was stored just
    /// now and never sent.
    fn drive(mut self, plan: &Plan<'_>, mut fresh: bool) -> Result<Progress, Error> {
        let limits = &plan.enrollment.limits;
        self.mind_what_is_allowed(plan);
        for _ in 0..limits::MESSAGES_PER_CALL {
            let now_ms = self.host.now_ms();
            if !self.record.phase.is_open() {
                break;
            }
            if now_ms >= self.record.deadline_ms {
                self.expire("the deadline has passed", now_ms)?;
                break;
            }
            if self.not_before(plan).is_some_and(|next| now_ms < next) {
                break;
            }
            if Mutation::ConfirmationResumedWithPoll.is_on()
                && !fresh
                && self.record.phase == Phase::Confirming
                && self.record.polls > 0
            {
                self.record.pending = false;
                self.record.cert_req_id = Some(0);
            }
            if !self.record.pending {
                if self.record.polls >= limits.maximum_polls {
                    self.expire(
                        &format!("{} polls brought no result", self.record.polls),
                        now_ms,
                    )?;
                    break;
                }
                request::poll(plan, self.host, &mut self.record, now_ms)?;
                self.record.polls += 1;
                self.record.deliveries = 1;
                self.record.updated_ms = now_ms;
                self.store()?;
                fresh = true;
            }
            fresh = self.exchange(plan, fresh)?;
        }
        Ok(self.progress())
    }

    /// Sends the last request and stores what comes of it. Returns whether the record
    /// now holds a new request that was never sent.
    fn exchange(&mut self, plan: &Plan<'_>, fresh: bool) -> Result<bool, Error> {
        let limits = &plan.enrollment.limits;
        let (certain_before, deliveries_before) = if fresh {
            (true, self.record.deliveries.saturating_sub(1))
        } else {
            // Written before it is sent again, so that of two processes that go on with
            // the same transaction only one does, and a crash from here on counts as a
            // delivery.
            let before = (!self.record.maybe_delivered, self.record.deliveries);
            self.record.maybe_delivered = true;
            self.record.deliveries += 1;
            self.record.updated_ms = self.host.now_ms();
            self.store()?;
            before
        };
        let again = if fresh { "" } else { " again, octet for octet" };
        let text = format!("{} to {}{again}", self.request_name(), self.record.server);
        self.tell(Level::Info, "message-sent", text);
        let sent = self.host.exchange(
            &self.record.server,
            &self.record.last_request,
            limits.request_timeout_ms,
            limits::RESPONSE,
        );
        let mut before = self.record.clone();
        let mut races = 0;
        loop {
            let (mut next, believed) =
                self.judge(plan, &sent, certain_before, deliveries_before)?;
            let new_request = next.pending && next.last_request != before.last_request;
            if new_request {
                next.maybe_delivered = true;
                next.deliveries = 1;
            }
            self.record = next;
            match self.store() {
                // Somebody else is at work on this transaction too. What the CA has said is
                // not lost over that: it may not say it twice.
                Err(Error::Busy(_))
                    if believed
                        && races < limits::RACES
                        && !Mutation::LoserDropsTheAnswer.is_on()
                        && self.still_awaits(&before)? =>
                {
                    before = self.record.clone();
                    races += 1;
                }
                stored => {
                    stored?;
                    self.tell_step(&before);
                    return Ok(new_request);
                }
            }
        }
    }

    /// What the record becomes by what came back, and whether that was an answer that may
    /// be believed. The last two tell what was known of deliveries before this one.
    fn judge(
        &self,
        plan: &Plan<'_>,
        sent: &Result<Response, NetworkError>,
        certain_before: bool,
        deliveries_before: u32,
    ) -> Result<(TransactionRecord, bool), Error> {
        let now_ms = self.host.now_ms();
        let mut record = self.record.clone();
        let received = match sent {
            Err(error) => Err(reply::network_failure(&record.server, error.clone())),
            Ok(response) => reply::message_in(plan, response)
                .map(|message| registration::unwrapped(plan, message)),
        };
        let trouble = match received {
            Err(trouble) => trouble,
            Ok(message) => match reply::check(plan, self.host, &record, &message, now_ms)? {
                Ok(signer) => {
                    let next = handle_message(plan, self.host, record, &message, signer, now_ms)?;
                    return Ok((next, true));
                }
                Err(failure) => reply::NoMessage {
                    failure,
                    retry_after_s: None,
                    not_delivered: false,
                },
            },
        };
        if trouble.not_delivered {
            record.maybe_delivered = !certain_before;
            record.deliveries = deliveries_before;
        }
        let limits = &plan.enrollment.limits;
        Ok((handle_trouble(record, limits, trouble, now_ms), false))
    }

    /// Reads the transaction anew after somebody else has written it. True when it still
    /// waits for the answer to the request of `sent`; otherwise nothing is changed.
    fn still_awaits(&mut self, sent: &TransactionRecord) -> Result<bool, Error> {
        let Some(entry) = self.host.load(TRANSACTION, &sent.id()).map_err(storage)? else {
            return Ok(false);
        };
        let record = TransactionRecord::from_entry(&entry)?;
        let awaits =
            record.phase.is_open() && record.pending && record.last_request == sent.last_request;
        if awaits {
            self.record = record;
            self.version = entry.version;
        }
        Ok(awaits)
    }

    fn expire(&mut self, why: &str, now_ms: u64) -> Result<(), Error> {
        let record = give_up(
            self.record.clone(),
            FailureClass::Expired,
            why,
            "ask the CA's operator what became of the transactionID, then enroll anew",
            now_ms,
        );
        self.record = record;
        self.store()?;
        self.tell(Level::Warn, "transaction-expired", why.to_string());
        Ok(())
    }

    /// When the next message may be sent. A clock that was set back must not make a wait
    /// longer than the longest one there is.
    fn not_before(&self, plan: &Plan<'_>) -> Option<u64> {
        let next = self.record.next_ms?;
        let longest = plan
            .enrollment
            .limits
            .maximum_poll_interval_ms
            .max(abide_policy::backoff::Exponential::transient().cap_ms());
        let latest = self.host.now_ms().saturating_add(longest);
        (next <= latest).then_some(next)
    }

    fn progress(self) -> Progress {
        let record = self.record;
        let owned = |list: Vec<ByteVec>| list.into_iter().map(Vec::from).collect();
        let transaction_id = record.id();
        let phase = record.phase;
        let outcome = match phase {
            Phase::Issued => Outcome::Issued(Issued {
                chain: owned(record.chain),
                ca_pubs: owned(record.ca_pubs),
                confirmation: record.confirmation,
                note: record.note,
            }),
            Phase::Done => Outcome::Done(Done {
                answer: record
                    .information
                    .as_deref()
                    .map(|der| Answer::from_der(der)),
                note: record.note,
            }),
            Phase::Failed => Outcome::Failed(
                record
                    .failure
                    .unwrap_or_else(|| unexplained(&transaction_id)),
            ),
            Phase::Enrolling | Phase::Polling | Phase::Confirming => {
                let reason = match (&record.trouble, record.history.last()) {
                    (Some(trouble), _) => trouble.reason.clone(),
                    (None, Some(last)) => last.text.clone(),
                    (None, None) => String::new(),
                };
                let until_ms = record.due_ms().unwrap_or(record.updated_ms);
                Outcome::Waiting(Waiting {
                    until_ms: until_ms.min(record.deadline_ms),
                    reason,
                    failure: record.trouble,
                })
            }
        };
        Progress {
            transaction_id,
            phase,
            outcome,
        }
    }

    /// What the stored request is, in the words of the RFC.
    fn request_name(&self) -> &'static str {
        match (self.record.cert_req_id, self.record.phase) {
            (Some(_), _) => "pollReq",
            (None, Phase::Confirming) => "certConf",
            (None, _) => self.record.operation.name(),
        }
    }

    fn tell_step(&self, before: &TransactionRecord) {
        let record = &self.record;
        let (level, name) = match (&record.trouble, record.phase) {
            (_, Phase::Failed) => (Level::Error, "transaction-failed"),
            (_, Phase::Issued) => (Level::Info, "certificate-issued"),
            (_, Phase::Done) => (Level::Info, "request-done"),
            (Some(_), _) => (Level::Warn, "no-usable-answer"),
            (None, Phase::Confirming) if before.phase != Phase::Confirming => {
                (Level::Info, "chain-stored")
            }
            (None, phase) if phase != before.phase => (Level::Debug, "phase-changed"),
            (None, _) => (Level::Debug, "still-waiting"),
        };
        let text = record
            .history
            .last()
            .map(|line| line.text.clone())
            .unwrap_or_default();
        self.tell(level, name, text);
    }

    fn tell(&self, level: Level, name: &'static str, text: String) {
        self.host.emit(Event {
            level,
            name,
            text,
            transaction_id: self.record.id(),
        });
    }
}

/// A Failed record has always a failure; a damaged one is told from a lost certificate.
fn unexplained(transaction_id: &str) -> Failure {
    Failure::new(
        FailureClass::Permanent,
        crate::failure::Fault::Internal,
        format!("the stored transaction {transaction_id} does not say why it failed"),
        "report this as a defect of abide",
    )
}
