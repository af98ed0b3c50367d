//! What must hold in every state of the world, judged from outside: from what is durable
//! in the store, what goes over the wire, what the CA has in its books, and what the
//! machine tells. Nothing here asks the machine what it thinks it is doing.

mod step;

use std::collections::{BTreeMap, BTreeSet};

use abide_cmp::{BodyType, Certificate, FailInfo, PkiMessage};
use abide_enroll::{
    Answer, Change, Confirmation, Event, FailureClass, Limits, Operation, Outcome, Phase,
    TransactionRecord,
};

use crate::ca::{Ca, Standing, Told};
use crate::call::{Returned, Verb};
use crate::store::put;
use step::{follows, passes};

macro_rules! invariants {
    ($($variant:ident $name:literal $doc:literal)*) => {
        /// One rule.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub enum Invariant {
            $(#[doc = $doc] $variant,)*
        }

        impl Invariant {
            /// All of them.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)*];

            /// Its name in a report.
            pub fn name(self) -> &'static str {
                match self { $(Self::$variant => $name,)* }
            }

            /// The rule in a sentence.
            pub fn about(self) -> &'static str {
                match self { $(Self::$variant => $doc,)* }
            }
        }
    };
}

invariants! {
    OneLiveTransaction "one-live-transaction" "An order has at most one open transaction."
    OldEndsFirst "old-ends-first" "No request leaves under a new transactionID while another transaction of its order is open."
    StoredFirst "stored-first" "What is sent is durable in the store, as it is sent."
    OctetForOctet "octet-for-octet" "Under one transactionID one request and one certConf leave, and every repetition is the same octet for octet."
    BooksBalance "books-balance" "Every certificate at the CA is a stored chain, a declared orphan, taken back, or still on its way."
    OneEach "one-each" "There are no more transactions with a good end than there were decisions to begin one."
    ChainKept "chain-kept" "A validated chain stays as it is for ever."
    EndIsEnd "end-is-end" "An ended transaction never changes."
    OnlyProof "only-proof" "No state follows from an answer that is not proven to be the CA's answer to this request."
    TakesTheAnswer "takes-the-answer" "A proven answer has the effect that RFC 9483 gives it, at once."
    OnlyGoodCertificates "only-good-certificates" "A certificate is stored only when it is for the wanted key, valid and under a trust anchor."
    RevocationsAgree "revocations-agree" "A revocation is told as done only when the CA has done it; and one that the CA has done is never told as failed without a word that it may have been done."
    TellsTheOperator "tells-the-operator" "What an unproven refusal says, or why an answer cannot be read, is told, the former as unauthenticated."
    InTurn "in-turn" "What the CA receives fits what it said before."
    NoHammering "no-hammering" "No message goes out before the time that policy, checkAfter and Retry-After give it, and no more polls than allowed."
    BoundedWait "bounded-wait" "No wait is longer than policy allows, nor beyond the deadline."
    NoSecretTold "no-secret-told" "No secret is in a record or an event."
    SaysWhy "says-why" "A transaction that fails says why, and that is the reason; one that is issued without acknowledgement too."
    NoSecondTry "no-second-try" "After systemUnavail, systemFailure and transactionIdInUse another transaction may follow; after no other refusal (RFC 9483, 3.6.4)."
    QuietWhenIssued "quiet-when-issued" "Asking for a certificate that is there gives the stored chain without traffic."
    StaysSmall "stays-small" "What is kept of an open transaction is at most 16 KiB."
    Ends "ends" "With faults ended and time given, every order is issued or its failure says why not."
    NoPanic "no-panic" "The machine never panics."
}

/// The largest record of an open transaction.
const SMALL: usize = 16 * 1024;
/// Between transmissions of the same octets: five seconds, doubling, at most five minutes.
const FIRST_REPEAT_MS: u64 = 5_000;
const LAST_REPEAT_MS: u64 = 300_000;

/// A rule that does not hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Breach {
    /// Which one.
    pub invariant: Invariant,
    /// What happened.
    pub what: String,
}

impl Breach {
    pub(crate) fn new(invariant: Invariant, what: impl Into<String>) -> Self {
        Self {
            invariant,
            what: what.into(),
        }
    }
}

type Checked = Result<(), Breach>;

fn breach(invariant: Invariant, what: impl Into<String>) -> Checked {
    Err(Breach::new(invariant, what))
}

/// How far what a client received obliges it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Weight {
    /// Proven, and the answer to what was sent: it must have its effect.
    Must,
    /// Proven, but old or damaged in parts that nothing protects: it may.
    May,
    /// It must have none.
    Nothing,
}

/// What came back from one exchange.
#[derive(Clone, Debug)]
pub(crate) struct Evidence {
    pub(crate) weight: Weight,
    pub(crate) told: Told,
    pub(crate) retry_after_s: Option<u64>,
    /// Whether the request may have arrived.
    pub(crate) arrived: bool,
    /// What the operator must be told all the same.
    pub(crate) words: &'static [&'static str],
}

impl Evidence {
    pub(crate) fn nothing() -> Self {
        Self {
            weight: Weight::Nothing,
            told: Told::Nonsense,
            retry_after_s: None,
            arrived: true,
            words: &[],
        }
    }
}

/// What a worker has done since its last commit.
#[derive(Clone, Debug, Default)]
pub(crate) struct Since {
    pub(crate) sent: Option<Vec<u8>>,
    /// Whether the call has sent anything, be it before that commit.
    pub(crate) traffic: bool,
    /// Commits that others were faster with.
    pub(crate) conflicts: u32,
    pub(crate) evidence: Option<Evidence>,
    /// When the evidence came, on the worker's clock.
    pub(crate) told_ms: u64,
}

/// What a transaction that ended well has brought.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Got {
    /// A certificate and its issuers.
    Chain(Vec<Vec<u8>>),
    /// What a genp says; nothing after an rr.
    Answer(Option<Answer>),
}

impl Got {
    pub(crate) fn of(outcome: &Outcome) -> Option<Self> {
        match outcome {
            Outcome::Issued(issued) => Some(Self::Chain(issued.chain.clone())),
            Outcome::Done(done) => Some(Self::Answer(done.answer.clone())),
            Outcome::Waiting(_) | Outcome::Failed(_) => None,
        }
    }
}

/// The circumstances of a commit or a message.
#[derive(Clone, Copy)]
pub(crate) struct When {
    /// On the worker's own clock.
    pub(crate) now_ms: u64,
    /// The configuration of the order, counted.
    pub(crate) generation: u32,
    pub(crate) worker: usize,
}

/// One transaction as it is durable.
struct Watched {
    order: usize,
    record: TransactionRecord,
    generation: u32,
    /// Who wrote last.
    writer: usize,
    /// The transaction after which this one was begun.
    after: Option<Vec<u8>>,
    /// Every request that was ever durable.
    stored: BTreeSet<Vec<u8>>,
    request: Vec<u8>,
    sent: BTreeSet<Vec<u8>>,
    /// Copies of the last message that may have arrived.
    copies: u32,
    polls: u32,
    /// Attempts in a row that brought nothing, as the store has them.
    fruitless: u32,
    not_before_ms: u64,
    /// What the CA refused it for, when that was told once and without doubt.
    refused: Option<FailInfo>,
}

/// An order.
#[derive(Clone, Default)]
struct Wish {
    /// The transaction that it names.
    named: Option<Vec<u8>>,
    /// Calls to begin without a condition.
    begins: u32,
    /// The transactions after which one was to begin.
    after: BTreeSet<Option<String>>,
}

/// The judge.
pub(crate) struct Checker {
    limits: Limits,
    /// What every question is answered with.
    answer: Option<Answer>,
    transactions: BTreeMap<Vec<u8>, Watched>,
    orders: Vec<Wish>,
    /// The ended transaction that the order named when a worker was last told to begin.
    saw: BTreeMap<usize, Option<Vec<u8>>>,
    secrets: Vec<Vec<u8>>,
    /// Clocks have been touched: times cannot be compared.
    pub(crate) clocks_differ: bool,
    /// The store has broken its promise.
    pub(crate) torn: bool,
    dirty: bool,
}

impl Checker {
    pub(crate) fn new(orders: usize, limits: Limits, answer: Option<Answer>) -> Self {
        Self {
            limits,
            answer,
            transactions: BTreeMap::new(),
            orders: vec![Wish::default(); orders],
            saw: BTreeMap::new(),
            secrets: Vec::new(),
            clocks_differ: false,
            torn: false,
            dirty: false,
        }
    }

    /// A secret from now on.
    pub(crate) fn keep_secret(&mut self, secret: Vec<u8>) {
        self.secrets.push(secret);
    }

    pub(crate) fn on_call(&mut self, order: usize, verb: &Verb, worker: usize) {
        if *verb == Verb::Resume {
            return;
        }
        let ended = self.latest(order).filter(|record| !record.phase.is_open());
        let seen = ended.map(|record| record.transaction_id.to_vec());
        self.saw.insert(worker, seen);
        let wish = &mut self.orders[order];
        match verb {
            Verb::BeginAfter(last) => {
                wish.after.insert(last.clone());
            }
            _ => wish.begins += 1,
        }
    }

    pub(crate) fn on_event(&self, event: &Event) -> Checked {
        self.tells_nothing(event.text.as_bytes())?;
        self.tells_nothing(event.transaction_id.as_bytes())
    }

    fn tells_nothing(&self, octets: &[u8]) -> Checked {
        for secret in &self.secrets {
            let first = secret[0];
            let mut from = 0;
            while let Some(at) = octets[from..].iter().position(|&octet| octet == first) {
                if octets[from + at..].starts_with(secret) {
                    return breach(Invariant::NoSecretTold, "a secret in the clear");
                }
                from += at + 1;
            }
        }
        Ok(())
    }

    /// What became durable, in the order it was written.
    pub(crate) fn on_commit(
        &mut self,
        order: usize,
        changes: &[Change],
        since: &Since,
        when: When,
    ) -> Checked {
        for put in changes.iter().map(put) {
            self.tells_nothing(&put.body)?;
            let envelope = &put.envelope;
            for text in [
                &envelope.id,
                &envelope.owner,
                &envelope.account,
                &envelope.state,
            ] {
                self.tells_nothing(text.as_bytes())?;
            }
            self.dirty = true;
            if envelope.kind == "order" {
                self.orders[order].named = Some(named_transaction(&put.body));
                continue;
            }
            let entry = abide_enroll::Entry {
                envelope: envelope.clone(),
                version: 0,
                body: put.body.clone(),
                lease: None,
            };
            let record = TransactionRecord::read(&entry)
                .map_err(|error| Breach::new(Invariant::StoredFirst, format!("{error:?}")))?;
            if record.phase.is_open() && put.body.len() > SMALL {
                return breach(Invariant::StaysSmall, format!("{} octets", put.body.len()));
            }
            self.on_record(order, record, since, when)?;
        }
        Ok(())
    }

    fn on_record(
        &mut self,
        order: usize,
        record: TransactionRecord,
        since: &Since,
        when: When,
    ) -> Checked {
        let id = record.transaction_id.to_vec();
        let Some(watched) = self.transactions.get_mut(&id) else {
            let request = record.last_request.to_vec();
            let watched = Watched {
                order,
                generation: when.generation,
                writer: when.worker,
                after: self.saw.get(&when.worker).cloned().flatten(),
                stored: BTreeSet::from([request.clone()]),
                request,
                record,
                sent: BTreeSet::new(),
                copies: 0,
                polls: 0,
                fruitless: 0,
                not_before_ms: 0,
                refused: None,
            };
            self.transactions.insert(id, watched);
            return Ok(());
        };
        let before = &watched.record;
        if !before.phase.is_open() {
            return breach(
                Invariant::EndIsEnd,
                format!("{:?} became {:?}", before.phase, record.phase),
            );
        }
        if !before.chain.is_empty()
            && (record.chain != before.chain || record.phase == Phase::Failed)
        {
            return breach(Invariant::ChainKept, "a stored chain was lost");
        }
        follows(
            before,
            &record,
            since,
            when,
            watched.generation,
            watched.copies,
            &self.limits,
        )?;
        if since
            .evidence
            .as_ref()
            .is_some_and(|evidence| !evidence.arrived)
        {
            watched.copies = watched.copies.saturating_sub(1);
        }
        watched.note_pace(&record, since, &self.limits);
        if let Some(Evidence {
            weight: Weight::Must,
            told: Told::Refused(fail_info),
            ..
        }) = since.evidence
        {
            watched.refused = Some(fail_info);
        }
        if !record.last_request.is_empty() {
            watched.stored.insert(record.last_request.to_vec());
        }
        watched.writer = when.worker;
        watched.record = record;
        Ok(())
    }

    /// A message is about to leave.
    pub(crate) fn on_send(
        &mut self,
        order: usize,
        octets: &[u8],
        since: &Since,
        when: When,
    ) -> Checked {
        let message = PkiMessage::from_der(octets)
            .map_err(|error| Breach::new(Invariant::InTurn, error.to_string()))?;
        let id = message.header.transaction_id.unwrap_or_default().to_vec();
        let body = message.body.body_type();
        let begins = !matches!(body, BodyType::PollReq | BodyType::CertConf);
        if !self.transactions.contains_key(&id) {
            return breach(Invariant::StoredFirst, "an unknown transactionID");
        }
        if begins {
            self.old_ends_first(order, &id, when)?;
        }
        let clocks_differ = self.clocks_differ;
        let limits = self.limits;
        let watched = self.transactions.get_mut(&id).expect("it was just found");
        if !watched.stored.contains(octets) {
            return breach(Invariant::StoredFirst, format!("a {}", body.name()));
        }
        if begins && watched.request != octets {
            return breach(Invariant::OctetForOctet, format!("another {}", body.name()));
        }
        if since.sent.is_some() {
            return breach(
                Invariant::NoHammering,
                "two messages without a write between",
            );
        }
        // Who was overtaken between write and message cannot know it.
        let paced = !clocks_differ && watched.writer == when.worker;
        if paced && when.now_ms < watched.not_before_ms {
            let early = watched.not_before_ms - when.now_ms;
            return breach(
                Invariant::NoHammering,
                format!("a {} {early} ms early", body.name()),
            );
        }
        let first = watched.sent.insert(octets.to_vec());
        watched.copies = if first { 1 } else { watched.copies + 1 };
        if first && body == BodyType::PollReq {
            watched.polls += 1;
            if watched.polls > limits.maximum_polls {
                return breach(Invariant::NoHammering, format!("{} polls", watched.polls));
            }
        }
        Ok(())
    }

    fn old_ends_first(&self, order: usize, id: &[u8], when: When) -> Checked {
        let Some(own) = self.transactions.get(id) else {
            return Ok(());
        };
        // Who was overtaken between write and message begins nothing: its transaction has
        // been ended, and declared an orphan, by somebody else.
        let declared = match own.record.operation {
            Operation::Genm => true,
            Operation::Rr => tells_of_doubt(&own.record),
            _ => own.record.failure.as_ref().is_some_and(|f| f.orphan),
        };
        if !own.sent.is_empty() || (!own.record.phase.is_open() && declared) {
            return Ok(());
        }
        let others = self
            .transactions
            .iter()
            .filter(|(other, watched)| other.as_slice() != id && watched.order == order);
        for (other_id, other) in others {
            if other.record.phase.is_open() && self.counts(other) {
                return breach(Invariant::OldEndsFirst, "the old one is open");
            }
            let failure = other.record.failure.as_ref();
            if let Some(fail_info) = other.refused
                && own.after.as_ref() == Some(other_id)
                && other.record.phase == Phase::Failed
                && failure.is_some_and(|failure| !failure.orphan)
                && other.generation == when.generation
                && !passes(fail_info)
            {
                return breach(
                    Invariant::NoSecondTry,
                    format!("refused for {:?}", fail_info.names().collect::<Vec<_>>()),
                );
            }
        }
        Ok(())
    }

    /// A transaction whose creation was torn in two, and which no order names, was never
    /// begun.
    fn counts(&self, watched: &Watched) -> bool {
        let named =
            self.orders[watched.order].named.as_deref() == Some(&watched.record.transaction_id[..]);
        named || !self.torn || !watched.sent.is_empty()
    }

    pub(crate) fn on_return(
        &mut self,
        verb: &Verb,
        order: usize,
        returned: &Returned,
        known: Option<&(String, Got)>,
        since: &Since,
        when: When,
    ) -> Checked {
        self.loses_no_answer(order, returned, since)?;
        let latest = self.latest(order).map(TransactionRecord::id);
        if let (Verb::Resume, Some((id, got))) = (verb, known)
            && latest.as_ref() == Some(id)
        {
            match returned {
                _ if since.traffic => {
                    return breach(Invariant::QuietWhenIssued, "it sent something");
                }
                Ok(progress) => {
                    if Got::of(&progress.outcome).as_ref() != Some(got) {
                        let what = format!("{:?}", progress.outcome);
                        return breach(Invariant::QuietWhenIssued, what);
                    }
                }
                Err(abide_enroll::Error::Storage(_) | abide_enroll::Error::Key(_)) => {}
                Err(error) => return breach(Invariant::QuietWhenIssued, format!("{error:?}")),
            }
        }
        let Ok(progress) = returned else {
            return Ok(());
        };
        let named = self.orders[order].named.as_deref();
        let Some(watched) = named.and_then(|id| self.transactions.get(id)) else {
            return Ok(());
        };
        match &progress.outcome {
            Outcome::Waiting(waiting) => {
                let longest = self.limits.maximum_poll_interval_ms.max(LAST_REPEAT_MS);
                if !self.clocks_differ && waiting.until_ms > when.now_ms + longest {
                    return breach(
                        Invariant::BoundedWait,
                        format!("{} ms", waiting.until_ms - when.now_ms),
                    );
                }
                if waiting.reason.is_empty() {
                    return breach(Invariant::SaysWhy, "a wait without a reason");
                }
            }
            Outcome::Failed(failure) => {
                if let Some(fail_info) = watched.refused
                    && watched.record.id() == progress.transaction_id
                    && failure.class == FailureClass::Refused
                    && failure.passes() != passes(fail_info)
                {
                    return breach(
                        Invariant::NoSecondTry,
                        format!("{:?} is taken wrongly", failure.fail_info),
                    );
                }
            }
            Outcome::Done(done) if done.answer != self.answer => {
                return breach(Invariant::TakesTheAnswer, format!("{:?}", done.answer));
            }
            Outcome::Issued(_) | Outcome::Done(_) => {}
        }
        Ok(())
    }

    /// What the CA has said must not be lost because others were at work too, as long as
    /// nothing else came of their work.
    fn loses_no_answer(&self, order: usize, returned: &Returned, since: &Since) -> Checked {
        let latest = self.latest(order);
        let (Err(abide_enroll::Error::Busy(_)), Some(record)) = (returned, latest) else {
            return Ok(());
        };
        let proven = since.evidence.as_ref().is_some_and(|evidence| {
            evidence.weight == Weight::Must && evidence.told != Told::Nonsense
        });
        let awaited = record.phase.is_open()
            && record.pending
            && since.sent.as_deref() == Some(&record.last_request[..]);
        match proven && awaited && since.conflicts <= abide_enroll::limits::RACES {
            true => breach(
                Invariant::TakesTheAnswer,
                "an answer was dropped for others",
            ),
            false => Ok(()),
        }
    }

    /// What can only be seen of the whole.
    pub(crate) fn on_state(&mut self, ca: &mut Ca) -> Checked {
        if !std::mem::take(&mut self.dirty) & !std::mem::take(&mut ca.dirty) {
            return Ok(());
        }
        let mut open = vec![0; self.orders.len()];
        let mut issued = vec![0; self.orders.len()];
        for watched in self.transactions.values() {
            let counts = watched.record.phase.is_open() && self.counts(watched);
            open[watched.order] += u32::from(counts);
            let good = matches!(watched.record.phase, Phase::Issued | Phase::Done);
            issued[watched.order] += u32::from(good);
            let revoked = ca.held[watched.order].by.is_some();
            if watched.record.phase == Phase::Done
                && watched.record.operation == Operation::Rr
                && !revoked
            {
                return breach(Invariant::RevocationsAgree, "told as done, and was not");
            }
            if let Some(leaf) = watched.record.chain.first() {
                let good = ca
                    .books
                    .get(&watched.record.transaction_id[..])
                    .is_some_and(|case| {
                        let issued = case.certificate.as_ref();
                        issued.is_some_and(|issued| issued.good && issued.der == leaf[..])
                    });
                if !good {
                    return breach(
                        Invariant::OnlyGoodCertificates,
                        format!(
                            "stored: {:?}",
                            Certificate::from_der(leaf).map(|c| c.not_after)
                        ),
                    );
                }
            }
        }
        if open.iter().any(|&count| count > 1) {
            return breach(Invariant::OneLiveTransaction, "there are two");
        }
        let wishes = self
            .orders
            .iter()
            .map(|wish| wish.begins + wish.after.len() as u32);
        if issued
            .iter()
            .zip(wishes)
            .any(|(&issued, wishes)| issued > wishes)
        {
            return breach(Invariant::OneEach, "more good ends than decisions");
        }
        for by in ca.held.iter().filter_map(|held| held.by.as_ref()) {
            let record = self.transactions.get(by).map(|watched| &watched.record);
            let told = record.is_some_and(|record| match record.phase {
                Phase::Failed => tells_of_doubt(record),
                _ => true,
            });
            if !told {
                let failure = record.and_then(|record| record.failure.as_ref());
                return breach(
                    Invariant::RevocationsAgree,
                    format!("done, and told as failed: {failure:?}"),
                );
            }
        }
        for (id, case, certificate) in ca.standing() {
            let Some(watched) = self.transactions.get(id) else {
                return breach(Invariant::BooksBalance, "issued for nobody");
            };
            let record = &watched.record;
            let accounted = match record.phase {
                Phase::Enrolling | Phase::Polling | Phase::Confirming => true,
                Phase::Issued => record
                    .chain
                    .first()
                    .is_some_and(|c| c[..] == certificate.der),
                Phase::Failed => record
                    .failure
                    .as_ref()
                    .is_some_and(|failure| failure.orphan),
                // No certificate was asked for.
                Phase::Done => false,
            };
            if !accounted {
                return breach(
                    Invariant::BooksBalance,
                    format!(
                        "order {}: {:?}, but the CA has a certificate: {:?}",
                        case.order, record.phase, record.failure
                    ),
                );
            }
            if record.confirmation == Confirmation::Confirmed
                && record.phase == Phase::Issued
                && certificate.standing == Standing::Out
            {
                return breach(Invariant::OnlyProof, "confirmed, but not at the CA");
            }
        }
        Ok(())
    }

    /// What the latest transaction of an order has brought, as it is durable.
    pub(crate) fn got(&self, order: usize) -> Option<(String, Got)> {
        let record = self.latest(order)?;
        let got = match record.phase {
            Phase::Issued => Got::Chain(record.chain.iter().map(|der| der.to_vec()).collect()),
            Phase::Done => Got::Answer(self.answer.clone()),
            _ => return None,
        };
        Some((record.id(), got))
    }

    /// The latest transaction of an order, as it is durable.
    pub(crate) fn latest(&self, order: usize) -> Option<&TransactionRecord> {
        let id = self.orders[order].named.as_ref()?;
        Some(&self.transactions.get(id)?.record)
    }
}

impl Watched {
    /// When the next message may leave, from what is known now.
    fn note_pace(&mut self, record: &TransactionRecord, since: &Since, limits: &Limits) {
        let Some(evidence) = &since.evidence else {
            return;
        };
        let polls = |seconds: i64| {
            let least = limits.minimum_poll_interval_ms;
            let asked = u64::try_from(seconds).unwrap_or(0).saturating_mul(1000);
            asked.clamp(least, limits.maximum_poll_interval_ms)
        };
        let moved = record.phase != self.record.phase || record.pending != self.record.pending;
        match (&evidence.told, evidence.weight) {
            (Told::Waiting(_, check_after), Weight::Must) => {
                self.fruitless = 0;
                self.not_before_ms = since.told_ms + polls(check_after.unwrap_or(0));
            }
            (_, Weight::Must) if evidence.told != Told::Nonsense => {
                self.fruitless = 0;
                self.not_before_ms = 0;
            }
            (_, Weight::May) => {
                self.fruitless = match moved {
                    true => 0,
                    false => self.fruitless,
                };
                self.not_before_ms = 0;
            }
            _ => {
                self.fruitless += 1;
                let own = FIRST_REPEAT_MS << (self.fruitless - 1).min(10);
                let asked = evidence
                    .retry_after_s
                    .map_or(0, |seconds| polls(seconds as i64));
                self.not_before_ms = since.told_ms + own.min(LAST_REPEAT_MS).max(asked);
            }
        }
    }
}

/// Whether a failed rr says that the CA may have done, or has done, what it asked for.
fn tells_of_doubt(record: &TransactionRecord) -> bool {
    record.failure.as_ref().is_some_and(|failure| {
        failure.advice.contains("may have done it") || failure.advice.contains("revoked already")
    })
}

/// The transaction that a stored order names: schema 1, then an array that begins with it.
fn named_transaction(body: &[u8]) -> Vec<u8> {
    let mut decoder = minicbor::Decoder::new(body.get(1..).unwrap_or_default());
    let named = decoder.array().and_then(|_| decoder.bytes());
    named.map(<[u8]>::to_vec).unwrap_or_default()
}
