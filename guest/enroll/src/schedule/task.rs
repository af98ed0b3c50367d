//! What is stored of a task.

use alloc::string::String;

use minicbor::bytes::ByteVec;
use minicbor::{Decode, Encode};

use crate::host::{Change, Entry, Envelope, Holding, Put};
use crate::orders::Order;
use crate::record::{Unreadable, decode, encode};

/// The family of tasks. A task has the id of its order, so that there is one at most.
pub(crate) const TASK: &str = "task";
/// The family of tasks that failed too often.
pub(crate) const DEAD_LETTER: &str = "dead-letter";

/// What a task does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode)]
#[cbor(index_only)]
pub enum TaskKind {
    /// A first attempt.
    #[n(0)]
    Start,
    /// Another attempt after one that failed.
    #[n(1)]
    Retry,
    /// A certificate that nears its end is followed by another one.
    #[n(2)]
    Renew,
    /// A transaction goes on.
    #[n(3)]
    Resume,
}

impl TaskKind {
    /// One lowercase word.
    pub fn name(self) -> &'static str {
        match self {
            Self::Start => "start",
            Self::Retry => "retry",
            Self::Renew => "renew",
            Self::Resume => "resume",
        }
    }
}

/// The body of a task.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub(crate) struct TaskRecord {
    #[n(0)]
    pub(crate) kind: TaskKind,
    #[n(1)]
    pub(crate) issuer: String,
    /// How often it failed for reasons of our own.
    #[n(2)]
    pub(crate) retry_count: u32,
    /// How often its endpoint had no retry for it.
    #[n(3)]
    pub(crate) refusals: u32,
    /// Why it failed last.
    #[n(4)]
    pub(crate) reason: String,
}

impl TaskRecord {
    pub(crate) fn new(kind: TaskKind, issuer: &str) -> Self {
        Self {
            kind,
            issuer: issuer.into(),
            retry_count: 0,
            refusals: 0,
            reason: String::new(),
        }
    }

    pub(crate) fn put(
        &self,
        order: &Order,
        due_ms: u64,
        expected: Option<u64>,
        now_ms: u64,
    ) -> Change {
        self.put_for(&order.id, &order.wish.account, due_ms, expected, now_ms)
    }

    pub(crate) fn put_for(
        &self,
        order: &str,
        account: &str,
        due_ms: u64,
        expected: Option<u64>,
        now_ms: u64,
    ) -> Change {
        Change::Put(Put {
            envelope: Envelope {
                kind: TASK.into(),
                id: order.into(),
                owner: order.into(),
                account: account.into(),
                state: self.kind.name().into(),
                due_ms: Some(due_ms),
                updated_ms: now_ms,
            },
            expected,
            body: encode(self),
        })
    }

    pub(crate) fn read(entry: &Entry) -> Result<Self, Unreadable> {
        decode(&entry.body, entry)
    }
}

/// The body of a dead letter.
#[derive(Clone, Debug, Encode, Decode)]
pub(crate) struct DeadLetter {
    /// The body of the task as it was, readable or not.
    #[n(0)]
    pub(crate) task: ByteVec,
    /// Why it is one.
    #[n(1)]
    pub(crate) reason: String,
}

impl DeadLetter {
    pub(crate) fn put(&self, task: &Envelope, expected: Option<u64>, now_ms: u64) -> Change {
        Change::Put(Put {
            envelope: Envelope {
                kind: DEAD_LETTER.into(),
                due_ms: None,
                updated_ms: now_ms,
                ..task.clone()
            },
            expected,
            body: encode(self),
        })
    }

    pub(crate) fn read(entry: &Entry) -> Result<Self, Unreadable> {
        decode(&entry.body, entry)
    }

    /// The task that it was.
    pub(crate) fn task(&self, entry: &Entry) -> Result<TaskRecord, Unreadable> {
        decode(&self.task, entry)
    }
}

/// A task or a dead letter, for people.
#[derive(Clone, Debug)]
pub struct Task {
    /// Its order.
    pub order: String,
    /// The issuer of its order; empty when it cannot be read.
    pub issuer: String,
    /// The account of its order.
    pub account: String,
    /// What it does.
    pub kind: TaskKind,
    /// When it is due; none for a dead letter.
    pub due_ms: Option<u64>,
    /// How often it failed for reasons of our own.
    pub retry_count: u32,
    /// Who holds it.
    pub holder: Option<Holding>,
    /// Why it is a dead letter, or failed last.
    pub reason: String,
}

impl Task {
    /// Also one that cannot be read: people have to see it.
    pub(crate) fn of(entry: Entry) -> Self {
        let dead = (entry.envelope.kind == DEAD_LETTER).then(|| DeadLetter::read(&entry));
        let (record, reason) = match dead {
            Some(Ok(dead)) => (dead.task(&entry), Some(dead.reason)),
            Some(Err(error)) => (Err(error.clone()), Some(error.0)),
            None => (TaskRecord::read(&entry), None),
        };
        let record = record.unwrap_or_else(|error| TaskRecord {
            reason: error.0,
            ..TaskRecord::new(kind_of(&entry.envelope.state), "")
        });
        Self {
            order: entry.envelope.id,
            issuer: record.issuer,
            account: entry.envelope.account,
            kind: record.kind,
            due_ms: entry.envelope.due_ms,
            retry_count: record.retry_count,
            holder: entry.lease,
            reason: reason.unwrap_or(record.reason),
        }
    }
}

/// What the envelope of a task says that it does.
pub(crate) fn kind_of(state: &str) -> TaskKind {
    [TaskKind::Start, TaskKind::Retry, TaskKind::Renew]
        .into_iter()
        .find(|kind| kind.name() == state)
        // Going on is what never enrolls anew.
        .unwrap_or(TaskKind::Resume)
}

/// The dead letter of a task.
pub(crate) fn dead(entry: &Entry, reason: String) -> DeadLetter {
    DeadLetter {
        task: ByteVec::from(entry.body.clone()),
        reason,
    }
}
