//! What is wrong with a policy as data, each mistake under the path of its field.
//!
//! A policy comes from a file, an API or another language, so that it is plain data and may hold
//! anything. [`Check::mistakes`] finds everything that is wrong with it at once. The deciding
//! functions neither panic nor overflow on a policy with mistakes, but promise nothing else.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::fmt;
use core::ops::RangeInclusive;

/// One mistake.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mistake {
    /// The field, with dots between levels and the position in a list in brackets, counted from
    /// zero: `issuance.base_ms`, `endpoints[2].selector`.
    pub path: String,
    /// What is wrong with it.
    pub problem: Problem,
}

/// What is wrong with a value.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Problem {
    /// A number that is too small or too large.
    OutOfRange {
        /// What was given.
        given: u64,
        /// The smallest number allowed.
        least: u64,
        /// The largest number allowed.
        most: u64,
        /// Of what: `ms`, `percent`, `requests` …
        unit: &'static str,
    },
    /// A number that must not be below another one.
    Below {
        /// What was given.
        given: u64,
        /// The other field.
        other: &'static str,
        /// Its value.
        least: u64,
    },
    /// A number that must not reach another one.
    NotBelow {
        /// What was given.
        given: u64,
        /// The other field.
        other: &'static str,
        /// Its value.
        bound: u64,
    },
    /// A text, list or name that must hold something.
    Empty,
    /// A text that is too long, or a list with too many entries.
    TooLong {
        /// Its octets or entries.
        given: usize,
        /// As many as are allowed.
        most: usize,
    },
    /// The same thing named twice.
    Repeated(String),
    /// A regular expression that cannot be read, with the reason and the place.
    Pattern(String),
    /// Settings that do not go together; what to change.
    Conflict(&'static str),
}

impl fmt::Display for Mistake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.path, self.problem)
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::OutOfRange {
                given,
                least,
                most,
                unit,
            } => write!(f, "{given} {unit}: give {least} to {most}"),
            Self::Below {
                given,
                other,
                least,
            } => write!(f, "{given} is below {other}: give {least} or more"),
            Self::NotBelow {
                given,
                other,
                bound,
            } => write!(f, "{given} is not below {other}: give less than {bound}"),
            Self::Empty => write!(f, "is empty"),
            Self::TooLong { given, most } => write!(f, "{given} long: at most {most}"),
            Self::Repeated(what) => write!(f, "{what:?} is there twice"),
            Self::Pattern(why) => write!(f, "no regular expression: {why}"),
            Self::Conflict(what) => f.write_str(what),
        }
    }
}

impl core::error::Error for Mistake {}

/// Data that can be wrong.
pub trait Check {
    /// Reports every mistake in it to `found`.
    fn check(&self, found: &mut Mistakes);

    /// Every mistake in it, in the order of its fields.
    fn mistakes(&self) -> Vec<Mistake> {
        let mut found = Mistakes::default();
        self.check(&mut found);
        found.found
    }
}

/// Mistakes found so far, and the path of what is being looked at.
#[derive(Debug, Default)]
pub struct Mistakes {
    path: Vec<String>,
    found: Vec<Mistake>,
}

impl Mistakes {
    /// Records a problem with the field `name` of what is being looked at.
    pub fn report(&mut self, name: &str, problem: Problem) {
        let mut path = self.path.join(".");
        if !name.is_empty() {
            if !path.is_empty() {
                path.push('.');
            }
            path.push_str(name);
        }
        self.found.push(Mistake { path, problem });
    }

    /// The first mistake so far.
    pub fn first(&self) -> Option<&Mistake> {
        self.found.first()
    }

    /// Looks at the field `name`.
    pub fn field(&mut self, name: &str, value: &dyn Check) {
        self.path.push(name.to_string());
        value.check(self);
        self.path.pop();
    }

    /// Looks at each entry of the list `name`, and at its length.
    pub fn list<T: Check>(&mut self, name: &str, values: &[T], most: usize) {
        self.length(name, values.len(), most);
        for (index, value) in values.iter().enumerate() {
            self.field(&format!("{name}[{index}]"), value);
        }
    }

    /// The length of the text or list `name`.
    pub fn length(&mut self, name: &str, given: usize, most: usize) {
        if given > most {
            self.report(name, Problem::TooLong { given, most });
        }
    }

    /// A number that has to lie in a range.
    pub fn range(
        &mut self,
        name: &str,
        given: u64,
        range: RangeInclusive<u64>,
        unit: &'static str,
    ) {
        if !range.contains(&given) {
            self.report(
                name,
                Problem::OutOfRange {
                    given,
                    least: *range.start(),
                    most: *range.end(),
                    unit,
                },
            );
        }
    }

    /// A number that must not be below the field `other`.
    pub fn at_least(&mut self, name: &str, given: u64, other: &'static str, least: u64) {
        if given < least {
            self.report(
                name,
                Problem::Below {
                    given,
                    other,
                    least,
                },
            );
        }
    }
}
