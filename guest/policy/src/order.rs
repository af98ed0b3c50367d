//! The states of an order, and what each of them needs in order to get on.
//!
//! | abide | Barbican | Spinnaker | cert-manager | what it is |
//! |---|---|---|---|---|
//! | NOT_STARTED | PENDING | NOT_STARTED | Issuing is true | accepted, its first task is due |
//! | BUFFERED | PENDING | BUFFERED | – | waits for the promoter |
//! | RUNNING | PENDING | RUNNING | Issuing is true | a transaction is under way |
//! | ACTIVE | ACTIVE | SUCCEEDED | Ready is true | has its certificate; may be renewed later |
//! | ERROR | ERROR | TERMINAL | Issuing is false | the last issuance failed; may be tried later |
//! | CANCELED | – | CANCELED | – | nothing is done for it any more |

use core::fmt;

/// The state of an order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "SCREAMING_SNAKE_CASE"))]
pub enum OrderState {
    /// Accepted, and its first task is due.
    NotStarted,
    /// Waits for the promoter.
    Buffered,
    /// A transaction is under way.
    Running,
    /// Has its certificate.
    Active,
    /// Its last issuance failed.
    Error,
    /// Nothing is done for it any more.
    Canceled,
}

impl OrderState {
    /// All of them.
    pub const ALL: [Self; 6] = [
        Self::NotStarted,
        Self::Buffered,
        Self::Running,
        Self::Active,
        Self::Error,
        Self::Canceled,
    ];

    /// As it is stored and shown.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::NotStarted => "NOT_STARTED",
            Self::Buffered => "BUFFERED",
            Self::Running => "RUNNING",
            Self::Active => "ACTIVE",
            Self::Error => "ERROR",
            Self::Canceled => "CANCELED",
        }
    }

    /// The state that a word means.
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|state| state.as_str() == word)
    }

    /// Whether an order in this state must have a task, or it never gets on.
    ///
    /// `is_awaited` says that something is to come at a stored time: a renewal or another
    /// attempt. `is_promoted` says that somebody looks after buffered orders.
    pub fn needs_task(self, is_awaited: bool, is_promoted: bool) -> bool {
        match self {
            Self::NotStarted | Self::Running => true,
            Self::Buffered => !is_promoted,
            Self::Active | Self::Error => is_awaited,
            Self::Canceled => false,
        }
    }

    /// The state after a cancellation, and whether that changed anything. Its certificates stay;
    /// its tasks go.
    pub fn cancel(self) -> (Self, bool) {
        (Self::Canceled, self != Self::Canceled)
    }
}

impl fmt::Display for OrderState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
