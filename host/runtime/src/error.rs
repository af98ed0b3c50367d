//! What can go wrong between the caller and the component.

use std::path::PathBuf;
use std::time::Duration;

use crate::wit::orders::OrderError;
use crate::wit::transactions::TransactionError;

/// The sandbox failed. Nothing is known of the call's effects but what is in the store; the
/// instance is gone and the next call gets a fresh one.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum HostError {
    /// There is no engine: this machine or this configuration does not carry it.
    #[error("the WebAssembly engine cannot be set up on this machine: {reason}")]
    Engine {
        /// The engine's own words.
        reason: String,
    },
    /// The component is damaged or does not fit this host.
    #[error(
        "the {component} component cannot be loaded: {reason}; use the component built with this program"
    )]
    Component {
        /// The world it was loaded for.
        component: &'static str,
        /// The engine's own words.
        reason: String,
    },
    /// Every slot for an instance is taken by other components.
    #[error(
        "no room for another {component} instance ({instances} are in use); raise the number of instances or use fewer components at a time"
    )]
    Exhausted {
        /// The world that was called.
        component: &'static str,
        /// Slots of the engine.
        instances: u32,
    },
    /// The component trapped: an error in it, not in its input.
    #[error(
        "the {component} component stopped: {reason}; this is an error in abide, please report it"
    )]
    Trap {
        /// The world that was called.
        component: &'static str,
        /// The trap in one line.
        reason: String,
    },
    /// The component computed for longer than it may.
    #[error("the {component} component was stopped after {} ms of computing", .budget.as_millis())]
    Deadline {
        /// The world that was called.
        component: &'static str,
        /// What it had.
        budget: Duration,
    },
    /// The component wanted more memory than it may have.
    #[error("the {component} component was stopped: it needs more than {limit} bytes of memory")]
    OutOfMemory {
        /// The world that was called.
        component: &'static str,
        /// What it had.
        limit: usize,
    },
}

/// A call to the enroller did nothing, or nothing is known of what it did.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CallError {
    /// The component's own answer.
    #[error("{}", transaction_error(.0))]
    Transaction(TransactionError),
    /// The sandbox failed.
    #[error(transparent)]
    Host(#[from] HostError),
}

impl From<TransactionError> for CallError {
    fn from(error: TransactionError) -> Self {
        CallError::Transaction(error)
    }
}

/// A call about orders or their tasks did nothing, or nothing is known of what it did.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum OrderCallError {
    /// The component's own answer.
    #[error("{}", order_error(.0))]
    Order(OrderError),
    /// The sandbox failed.
    #[error(transparent)]
    Host(#[from] HostError),
}

impl From<OrderError> for OrderCallError {
    fn from(error: OrderError) -> Self {
        OrderCallError::Order(error)
    }
}

/// Something works less well than it could.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Warning {
    /// Without the cache every start compiles the component again.
    #[error(
        "compiled code is not kept: {} {reason}; every start compiles the component again",
        .directory.display()
    )]
    CacheUnusable {
        /// The directory as configured.
        directory: PathBuf,
        /// Why it is not used.
        reason: String,
    },
    /// Instances are made one by one, which costs microseconds.
    #[error("instances are not pooled: {reason}")]
    PoolUnavailable {
        /// The engine's own words.
        reason: String,
    },
}

/// A one-line text for people.
fn transaction_error(error: &TransactionError) -> String {
    match error {
        TransactionError::Invalid(why) => format!("the request cannot be served: {why}"),
        TransactionError::InProgress(id) => {
            format!("transaction {id} of this order is still open: resume it")
        }
        TransactionError::NotFound => "there is no such transaction".to_owned(),
        TransactionError::Busy(what) => {
            format!("another process is at work on it ({what}): wait for it to end")
        }
        TransactionError::Storage(why) => format!("the store failed: {why}"),
        TransactionError::Key(why) => format!("the key cannot be used: {why}"),
        TransactionError::Unreadable(why) => format!("a stored record cannot be read: {why}"),
    }
}

/// A one-line text for people.
fn order_error(error: &OrderError) -> String {
    match error {
        OrderError::Invalid(why) => format!("it cannot be served: {why}"),
        OrderError::NotFound => "there is no such order".to_owned(),
        OrderError::KeyReused(id) => format!("the key stands for another wish: order {id}"),
        OrderError::State(why) => format!("its state does not allow it: {why}"),
        OrderError::Busy(what) => {
            format!("others are at work on it at the same time ({what}): try again")
        }
        OrderError::Storage(why) => format!("the store failed: {why}"),
        OrderError::Key(why) => format!("the key cannot be used: {why}"),
        OrderError::Unreadable(why) => format!("a stored record cannot be read: {why}"),
    }
}

/// The causes of an error in one line, outermost first.
pub(crate) fn chain(error: &(dyn std::error::Error + 'static)) -> String {
    let mut line = one_line(&error.to_string());
    let mut cause = error.source();
    while let Some(error) = cause {
        let text = one_line(&error.to_string());
        // Many wrappers repeat what they wrap.
        if !line.ends_with(&text) {
            line.push_str(": ");
            line.push_str(&text);
        }
        cause = error.source();
    }
    line
}

/// Replaces what would break a line or steer a terminal.
pub(crate) fn one_line(text: &str) -> String {
    text.chars()
        .map(|c| if c.is_control() { ' ' } else { c })
        .collect()
}
