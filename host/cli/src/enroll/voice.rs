//! What the person hears while an enrollment runs.

use std::sync::{Arc, Mutex, PoisonError};

use abide_host::wit::telemetry::{Event, Level};
use abide_host::wit::transactions::Waiting;

use super::args::Enroll;
use crate::output;
use crate::when;

/// Prints progress, and remembers the transactionID from the first moment it is
/// known: a command that is interrupted early can still name it.
#[derive(Clone, Debug)]
pub(crate) struct Voice {
    /// The lowest level that is printed.
    level: Option<Level>,
    transaction: Arc<Mutex<Option<String>>>,
}

/// Events of the component that the command reports in words of its own.
const TOLD_OTHERWISE: [&str; 3] = [
    "certificate-issued",
    "transaction-failed",
    "no-usable-answer",
];

impl Voice {
    pub(crate) fn new(args: &Enroll) -> Self {
        let level = match (args.quiet, args.verbose) {
            (true, _) => None,
            (false, true) => Some(Level::Debug),
            (false, false) => Some(Level::Info),
        };
        Self {
            level,
            transaction: Arc::default(),
        }
    }

    /// Takes an event of the component. Those that end or delay the enrollment are told at
    /// the end, or as the wait they cause: once is enough.
    pub(crate) fn event(&self, event: &Event) {
        self.transaction(&event.transaction_id);
        if TOLD_OTHERWISE.contains(&event.name.as_str()) && self.level != Some(Level::Debug) {
            return;
        }
        let rank = |level: Level| match level {
            Level::Debug => 0,
            Level::Info => 1,
            Level::Warn => 2,
            Level::Error => 3,
        };
        if self
            .level
            .is_some_and(|lowest| rank(event.level) >= rank(lowest))
        {
            output::say(&event.text);
        }
    }

    /// Prints a line of our own.
    pub(crate) fn line(&self, line: &str) {
        if self.level.is_some() {
            output::say(line);
        }
    }

    /// Tells until when is waited, and why.
    pub(crate) fn waiting(&self, waiting: &Waiting) {
        let what = if waiting.failure.is_some() {
            "try"
        } else {
            "poll"
        };
        self.line(&format!(
            "next {what} at {}, {}: {}",
            when::utc(waiting.until_ms),
            when::distance(when::now_ms(), waiting.until_ms),
            waiting.reason
        ));
    }

    /// Notes the transactionID, and prints it the first time.
    pub(crate) fn transaction(&self, id: &str) {
        let mut known = self
            .transaction
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        if !id.is_empty() && known.as_deref() != Some(id) {
            *known = Some(id.into());
            self.line(&format!("transaction {id}"));
        }
    }

    /// The transactionID, if one is known.
    pub(crate) fn known_transaction(&self) -> Option<String> {
        self.transaction
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }
}
