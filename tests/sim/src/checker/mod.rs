//! What must hold in every state of the world, judged from outside: from what is durable
//! in the store, what goes over the wire, what the CA has in its books, and what the
//! machine tells. Nothing here asks the machine what it thinks it is doing.

use std::collections::{BTreeMap, BTreeSet};

use abide_cmp::{BodyType, Certificate, FailInfo, PkiMessage};
use abide_enroll::{
    Change, Confirmation, Event, FailureClass, Limits, Outcome, Phase, TransactionRecord,
};

use crate::ca::{Ca, Standing, Told};
use crate::call::{Returned, Verb};

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
    OneEach "one-each" "There are no more issued transactions than there were wishes."
    ChainKept "chain-kept" "A validated chain stays as it is for ever."
    EndIsEnd "end-is-end" "An ended transaction never changes."
    OnlyProof "only-proof" "No state follows from an answer that is not proven to be the CA's answer to this request."
    TakesTheAnswer "takes-the-answer" "A proven answer has the effect that RFC 9483 gives it, at once."
    OnlyGoodCertificates "only-good-certificates" "A certificate is stored only when it is for the wanted key, valid and under a trust anchor."
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
}

impl Evidence {
    pub(crate) fn nothing() -> Self {
        Self {
            weight: Weight::Nothing,
            told: Told::Nonsense,
            retry_after_s: None,
        }
    }
}

/// What a worker has done since its last commit.
#[derive(Clone, Debug, Default)]
pub(crate) struct Since {
    pub(crate) sent: bool,
    pub(crate) evidence: Option<Evidence>,
    /// When the evidence came, on the worker's clock.
    pub(crate) told_ms: u64,
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
    polls: u32,
    /// Attempts in a row that brought nothing, as the store has them.
    fruitless: u32,
    not_before_ms: u64,
    /// What the CA refused it for, when that was told once and without doubt.
    refused: Option<FailInfo>,
}

/// The judge.
pub(crate) struct Checker {
    limits: Limits,
    transactions: BTreeMap<Vec<u8>, Watched>,
    /// By order: the transaction it names and the number of begin calls.
    orders: Vec<(Option<Vec<u8>>, u32)>,
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
    pub(crate) fn new(orders: usize, limits: Limits) -> Self {
        Self {
            limits,
            transactions: BTreeMap::new(),
            orders: vec![(None, 0); orders],
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

    pub(crate) fn on_call(&mut self, order: usize, verb: Verb, worker: usize) {
        if verb == Verb::Begin {
            let ended = self.latest(order).filter(|record| !record.phase.is_open());
            let seen = ended.map(|record| record.transaction_id.to_vec());
            self.saw.insert(worker, seen);
            self.orders[order].1 += 1;
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
        for Change::Put(put) in changes {
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
                self.orders[order].0 = Some(named_transaction(&put.body));
                continue;
            }
            let entry = abide_enroll::Entry {
                envelope: envelope.clone(),
                version: 0,
                body: put.body.clone(),
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
            &self.limits,
        )?;
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
        let enrolls = matches!(body, BodyType::Ir | BodyType::Cr | BodyType::P10cr);
        if !self.transactions.contains_key(&id) {
            return breach(Invariant::StoredFirst, "an unknown transactionID");
        }
        if enrolls {
            self.old_ends_first(order, &id, when)?;
        }
        let clocks_differ = self.clocks_differ;
        let limits = self.limits;
        let watched = self.transactions.get_mut(&id).expect("it was just found");
        if !watched.stored.contains(octets) {
            return breach(Invariant::StoredFirst, format!("a {}", body.name()));
        }
        if enrolls && watched.request != octets {
            return breach(Invariant::OctetForOctet, format!("another {}", body.name()));
        }
        if since.sent {
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
        let declared = own.record.failure.as_ref().is_some_and(|f| f.orphan);
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
            self.orders[watched.order].0.as_deref() == Some(&watched.record.transaction_id[..]);
        named || !self.torn || !watched.sent.is_empty()
    }

    pub(crate) fn on_return(
        &mut self,
        verb: Verb,
        order: usize,
        returned: &Returned,
        known: Option<&(String, Vec<Vec<u8>>)>,
        traffic: bool,
        when: When,
    ) -> Checked {
        let latest = self.latest(order).map(TransactionRecord::id);
        if let (Verb::Resume, Some((id, chain))) = (verb, known)
            && latest.as_ref() == Some(id)
        {
            match returned {
                _ if traffic => return breach(Invariant::QuietWhenIssued, "it sent something"),
                Ok(progress) => match &progress.outcome {
                    Outcome::Issued(issued) if issued.chain == *chain => {}
                    other => return breach(Invariant::QuietWhenIssued, format!("{other:?}")),
                },
                Err(abide_enroll::Error::Storage(_)) => {}
                Err(error) => return breach(Invariant::QuietWhenIssued, format!("{error:?}")),
            }
        }
        let Ok(progress) = returned else {
            return Ok(());
        };
        let named = self.orders[order].0.as_deref();
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
            Outcome::Issued(_) | Outcome::Done(_) => {}
        }
        Ok(())
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
            issued[watched.order] += u32::from(watched.record.phase == Phase::Issued);
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
        let wishes = self.orders.iter().map(|(_, wishes)| *wishes);
        if issued
            .iter()
            .zip(wishes)
            .any(|(&issued, wishes)| issued > wishes)
        {
            return breach(Invariant::OneEach, "more certificates than wishes");
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

    /// The latest transaction of an order, as it is durable.
    pub(crate) fn latest(&self, order: usize) -> Option<&TransactionRecord> {
        let id = self.orders[order].0.as_ref()?;
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

/// Judges one step of one transaction.
fn follows(
    before: &TransactionRecord,
    after: &TransactionRecord,
    since: &Since,
    when: When,
    generation: u32,
    limits: &Limits,
) -> Checked {
    let refusing = before.failure.is_some();
    let class = after.failure.as_ref().map(|failure| failure.class);
    let out_of_time = when.now_ms >= before.deadline_ms || before.polls >= limits.maximum_polls;
    let edited = when.generation != generation;
    // Where no answer is needed: an end by time or by a new configuration.
    let given_up = match after.phase {
        Phase::Failed => match class {
            Some(FailureClass::Expired) => out_of_time,
            Some(FailureClass::Permanent) => edited,
            _ => false,
        },
        Phase::Issued => {
            after.confirmation == Confirmation::Unacknowledged && (out_of_time || edited)
        }
        _ => false,
    };
    if after.phase == Phase::Failed && after.failure.as_ref().is_none_or(|f| f.reason.is_empty()) {
        return breach(Invariant::SaysWhy, "no reason");
    }
    let Some(evidence) = &since.evidence else {
        if given_up {
            return Ok(());
        }
        if !after.phase.is_open() {
            return breach(
                Invariant::SaysWhy,
                format!("{:?} as {class:?}", after.phase),
            );
        }
        return match state(before) == state(after) {
            true => Ok(()),
            false => breach(
                Invariant::OnlyProof,
                format!("{:?} became {:?} by itself", before.phase, after.phase),
            ),
        };
    };
    let nothing = evidence.weight == Weight::Nothing || evidence.told == Told::Nonsense;
    if nothing {
        let pends = (before.pending, after.pending) == (true, true);
        return match pends && state(before) == state(after) {
            true => Ok(()),
            false => breach(
                Invariant::OnlyProof,
                format!("{:?} became {:?}", before.phase, after.phase),
            ),
        };
    }
    if evidence.weight == Weight::May {
        return Ok(());
    }
    let taken = match &evidence.told {
        Told::Waiting(id, _) => {
            let phase = match before.phase {
                Phase::Confirming => Phase::Confirming,
                _ => Phase::Polling,
            };
            // An error does not take the certReqId from those who are already polling.
            let id = before.cert_req_id.unwrap_or(*id);
            after.phase == phase && after.cert_req_id == Some(id) && !after.pending
        }
        Told::Granted {
            certificate,
            good: true,
            implicit,
        } => {
            let phase = match implicit {
                true => Phase::Issued,
                false => Phase::Confirming,
            };
            after.phase == phase
                && after.failure.is_none()
                && after
                    .chain
                    .first()
                    .is_some_and(|leaf| leaf[..] == certificate[..])
        }
        Told::Granted { implicit, .. } => {
            let phase = match implicit {
                true => Phase::Failed,
                false => Phase::Confirming,
            };
            after.phase == phase && class == Some(FailureClass::Security) && after.chain.is_empty()
        }
        Told::Refused(fail_info) => {
            let names = fail_info.names();
            after.phase == Phase::Failed
                && class == Some(FailureClass::Refused)
                && after
                    .failure
                    .as_ref()
                    .is_some_and(|f| names.eq(f.fail_info.iter()))
        }
        Told::Confirmed if refusing => {
            after.phase == Phase::Failed && class == Some(FailureClass::Security)
        }
        Told::Confirmed => {
            after.phase == Phase::Issued && after.confirmation == Confirmation::Confirmed
        }
        Told::ConfirmationRefused if refusing => after.phase == Phase::Failed,
        Told::ConfirmationRefused => {
            after.phase == Phase::Issued && after.confirmation == Confirmation::Unacknowledged
        }
        Told::Nonsense => true,
    };
    match taken {
        true => Ok(()),
        false => breach(
            Invariant::TakesTheAnswer,
            format!(
                "{:?} became {:?}, {:?}, after {:?}",
                before.phase, after.phase, after.confirmation, evidence.told
            ),
        ),
    }
}

/// Everything in a record that an answer could change.
fn state(record: &TransactionRecord) -> (Phase, Confirmation, Option<i64>, usize, bool) {
    (
        record.phase,
        record.confirmation,
        record.cert_req_id,
        record.chain.len(),
        record.failure.is_some(),
    )
}

/// RFC 9483, 3.6.4.
fn passes(fail_info: FailInfo) -> bool {
    [
        FailInfo::SYSTEM_UNAVAIL,
        FailInfo::SYSTEM_FAILURE,
        FailInfo::TRANSACTION_ID_IN_USE,
    ]
    .contains(&fail_info)
}

/// The transaction that a stored order names: schema 1, then an array that begins with it.
fn named_transaction(body: &[u8]) -> Vec<u8> {
    let mut decoder = minicbor::Decoder::new(body.get(1..).unwrap_or_default());
    let named = decoder.array().and_then(|_| decoder.bytes());
    named.map(<[u8]>::to_vec).unwrap_or_default()
}
