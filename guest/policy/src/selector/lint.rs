//! What is allowed in a routing configuration, but hardly meant.

use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

use super::{Entry, Router, Selector};

/// Something that is hardly meant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// The path of the entry in the configuration; empty if it is about all of them.
    pub path: String,
    /// What it is.
    pub fault: Fault,
}

/// What is hardly meant.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Fault {
    /// No order ever gets to the entry, because another one, considered earlier, takes whatever
    /// it would.
    Unreachable {
        /// The path of the other one.
        behind: String,
    },
    /// A pattern that matches nothing.
    Impossible {
        /// The pattern.
        pattern: String,
    },
    /// A blank at an end of a pattern, or beside a bar: it belongs to the value.
    Blank {
        /// The pattern.
        pattern: String,
    },
    /// An order that no selector matches is refused.
    NoDefault,
}

impl Router {
    /// Everything that is hardly meant, in the order in which entries are considered.
    ///
    /// What is found is so; what is not found may still be so, where a proof would take too long.
    pub fn lint(&self) -> Vec<Finding> {
        let mut findings = Vec::new();
        for (position, entry) in self.entries.iter().enumerate() {
            let mut report = |fault| {
                findings.push(Finding {
                    path: entry.path.clone(),
                    fault,
                });
            };
            for pattern in &entry.patterns {
                let text = pattern.text();
                if has_blank(text) {
                    report(Fault::Blank {
                        pattern: text.into(),
                    });
                }
                if pattern.is_impossible() {
                    report(Fault::Impossible {
                        pattern: text.into(),
                    });
                }
            }
            if entry.is_impossible() {
                continue;
            }
            let behind = self.entries[..position]
                .iter()
                .find(|earlier| earlier.covers(entry));
            if let Some(earlier) = behind {
                report(Fault::Unreachable {
                    behind: earlier.path.clone(),
                });
            }
        }
        let is_default = |entry: &Entry| entry.endpoint.selector == Selector::Default;
        if !self.entries.iter().any(is_default) {
            findings.push(Finding {
                path: String::new(),
                fault: Fault::NoDefault,
            });
        }
        findings
    }
}

impl Entry {
    /// It has patterns, and none of them matches anything.
    fn is_impossible(&self) -> bool {
        !self.patterns.is_empty() && self.patterns.iter().all(|pattern| pattern.is_impossible())
    }

    /// Whether it matches whatever the other one matches.
    fn covers(&self, other: &Self) -> bool {
        let all_in =
            |inner: &[String], outer: &[String]| inner.iter().all(|name| outer.contains(name));
        match (&self.endpoint.selector, &other.endpoint.selector) {
            (Selector::Default, _) => true,
            (Selector::Application(_), Selector::Application(_))
            | (Selector::Account(_), Selector::Account(_))
            | (Selector::User(_), Selector::User(_)) => other
                .patterns
                .iter()
                .all(|inner| self.patterns.iter().any(|outer| outer.covers(inner))),
            (Selector::CloudProvider(outer), Selector::CloudProvider(inner))
            | (Selector::ExecutionType(outer), Selector::ExecutionType(inner))
            | (Selector::Location(outer), Selector::Location(inner)) => all_in(inner, outer),
            (
                Selector::ExecutionType(outer),
                Selector::Origin {
                    execution_types, ..
                },
            ) => !execution_types.is_empty() && all_in(execution_types, outer),
            (
                Selector::Origin {
                    origin,
                    execution_types: outer,
                },
                Selector::Origin {
                    origin: other,
                    execution_types: inner,
                },
            ) => {
                let any = outer.is_empty();
                origin.eq_ignore_ascii_case(other)
                    && (any || (!inner.is_empty() && all_in(inner, outer)))
            }
            (Selector::UserOrigin(outer), Selector::UserOrigin(inner)) => {
                outer.eq_ignore_ascii_case(inner)
            }
            _ => false,
        }
    }
}

fn has_blank(pattern: &str) -> bool {
    let blank = |at: Option<char>| at.is_some_and(char::is_whitespace);
    pattern.split('|').any(|alternative| {
        blank(alternative.chars().next()) || blank(alternative.chars().next_back())
    })
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.path.is_empty() {
            write!(f, "{}: ", self.path)?;
        }
        self.fault.fmt(f)
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Fault::Unreachable { behind } => write!(
                f,
                "no order gets here, because {behind} is considered first and takes whatever \
                 this one would: give it a higher priority or remove it"
            ),
            Fault::Impossible { pattern } => write!(f, "{pattern:?} matches nothing at all"),
            Fault::Blank { pattern } => write!(
                f,
                "{pattern:?} has a blank at an end or beside a bar, and so must the value"
            ),
            Fault::NoDefault => write!(
                f,
                "there is no endpoint without a selector: an order that none matches is refused"
            ),
        }
    }
}
