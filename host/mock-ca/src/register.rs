//! The certificates that were issued and what became of them, as the books tell it.

use std::collections::{BTreeMap, BTreeSet};

use crate::books::{Entry, Event};

/// certificateHold of CRLReason (RFC 5280, 5.3.1), the only one that can be undone.
const HOLD: u8 = 6;

/// A certificate that must not be believed any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Revoked {
    /// CRLReason.
    pub(crate) reason: u8,
    /// Since when, in seconds since 1970.
    pub(crate) at: i64,
}

/// Serial numbers in hexadecimal, as the books write them.
#[derive(Debug, Default)]
pub(crate) struct Register {
    issued: BTreeSet<String>,
    revoked: BTreeMap<String, Revoked>,
    changes: u64,
}

impl Register {
    /// Makes the change that an entry tells of.
    pub(crate) fn apply(&mut self, entry: &Entry) {
        match &entry.event {
            Event::Issued { serial, .. } => {
                self.issued.insert(serial.clone());
            }
            Event::Revoked { serial, reason, at } => {
                let revoked = Revoked {
                    reason: *reason,
                    at: *at,
                };
                self.revoked.insert(serial.clone(), revoked);
                self.changes += 1;
            }
            Event::Revived { serial } => {
                self.revoked.remove(serial);
                self.changes += 1;
            }
            _ => {}
        }
    }

    /// Whether the CA issued it.
    pub(crate) fn has(&self, serial: &str) -> bool {
        self.issued.contains(serial)
    }

    /// Since when and why it is revoked, if it is.
    pub(crate) fn revoked(&self, serial: &str) -> Option<Revoked> {
        self.revoked.get(serial).copied()
    }

    /// All that are revoked.
    pub(crate) fn all(&self) -> impl Iterator<Item = (&str, Revoked)> {
        self.revoked
            .iter()
            .map(|(serial, revoked)| (serial.as_str(), *revoked))
    }

    /// Grows with every change, as cRLNumber must (RFC 5280, 5.2.3).
    pub(crate) fn changes(&self) -> u64 {
        self.changes
    }
}

impl Revoked {
    /// Whether it may come back.
    pub(crate) fn on_hold(self) -> bool {
        self.reason == HOLD
    }
}
