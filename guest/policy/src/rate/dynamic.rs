//! Which limit a principal has and whether it is enforced: from the configuration, and from what
//! operators set while it runs.

use alloc::borrow::ToOwned;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

use super::{Limit, Override, Principal, RateLimit};
use crate::limits::{MAX_CAPACITY, MAX_RATE_SECONDS, MAX_SHOWN};
use crate::time::SECOND_MS;

/// Whether a limit is enforced.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "kebab-case"))]
pub enum Mode {
    /// What is too much is refused.
    Enforced,
    /// What is too much is counted and let through.
    Learning,
}

/// What the store says about one principal at run time, as it stands there. Under
/// [`Principal::bucket_key`] lies its bucket, under the keys of [`Key`] the rest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Overrides<'a> {
    /// The value of `rateLimit:learning`.
    pub learning: Option<&'a str>,
    /// Whether the principal is a member of `rateLimit:enforcing`.
    pub enforcing: bool,
    /// Whether the principal is a member of `rateLimit:ignoring`.
    pub ignoring: bool,
    /// The value of `rateLimit:capacity:NAME`.
    pub capacity: Option<&'a str>,
    /// The value of `rateLimit:rateSeconds:NAME`.
    pub rate_seconds: Option<&'a str>,
}

/// A key of the configuration in the store. NAME is a principal as [`Principal`] displays it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Key {
    /// `rateLimit:learning`: `true` or `false`.
    Learning,
    /// `rateLimit:enforcing`: a set of names.
    Enforcing,
    /// `rateLimit:ignoring`: a set of names.
    Ignoring,
    /// `rateLimit:capacity:NAME`: a number of requests.
    Capacity(String),
    /// `rateLimit:rateSeconds:NAME`: a number of seconds.
    RateSeconds(String),
}

/// The limit of one principal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Resolved {
    /// The limit.
    pub limit: Limit,
    /// Whether it is enforced.
    pub mode: Mode,
    /// Where the mode comes from.
    pub source: Source,
    /// What is wrong with the settings that were looked at. Log each of them once in a while.
    pub warnings: Vec<Warning>,
}

/// Where a mode comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Source {
    /// A list in the store.
    DynamicList,
    /// A list in the configuration.
    StaticList,
    /// The flag in the store.
    DynamicFlag,
    /// The flag in the configuration.
    StaticFlag,
}

/// A setting that was not followed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Warning {
    /// The principal is in both lists: it is only learnt from.
    InBothLists {
        /// Who.
        principal: String,
        /// Where the lists are.
        source: Source,
    },
    /// A value that cannot be: the next source is asked.
    Garbage {
        /// The key.
        key: &'static str,
        /// The start of its value.
        value: String,
    },
    /// A client that named itself is listed as one to be ignored: the list is not followed.
    SelfNamedIgnored {
        /// The name.
        app: String,
    },
}

impl RateLimit {
    /// The limit of a principal and whether it is enforced.
    ///
    /// What the store says goes before the configuration, and a list before a flag: whoever is in
    /// a list of the store is not looked up in those of the configuration. In both lists of one
    /// source means learning. A client that named itself is never ignored on account of a list,
    /// since any client may use that name.
    pub fn resolve(&self, principal: &Principal, overrides: &Overrides<'_>) -> Resolved {
        let mut warnings = Vec::new();
        let (mode, source) = self.mode(principal, overrides, &mut warnings);
        let of = |entries: &[Override]| {
            entries
                .iter()
                .find(|entry| principal.is_meant_by(&entry.principal))
                .map(|entry| entry.value)
        };
        let capacity = overrides
            .capacity
            .and_then(|text| number("capacity", text, 0, MAX_CAPACITY, &mut warnings))
            .or_else(|| of(&self.capacity_by_principal))
            .unwrap_or(self.capacity);
        let seconds = overrides
            .rate_seconds
            .and_then(|text| number("rateSeconds", text, 1, MAX_RATE_SECONDS, &mut warnings))
            .or_else(|| of(&self.rate_seconds_by_principal))
            .unwrap_or(self.rate_seconds);
        Resolved {
            limit: Limit {
                algorithm: self.algorithm,
                capacity,
                rate_ms: u64::from(seconds) * SECOND_MS,
            },
            mode,
            source,
            warnings,
        }
    }

    fn mode(
        &self,
        principal: &Principal,
        overrides: &Overrides<'_>,
        warnings: &mut Vec<Warning>,
    ) -> (Mode, Source) {
        let listed = |names: &[String]| names.iter().any(|name| principal.is_meant_by(name));
        let lists = [
            (Source::DynamicList, overrides.enforcing, overrides.ignoring),
            (
                Source::StaticList,
                listed(&self.enforcing),
                listed(&self.ignoring),
            ),
        ];
        for (source, enforcing, ignoring) in lists {
            let ignoring = match principal {
                Principal::App(app) if ignoring => {
                    let app = app.clone();
                    warnings.push(Warning::SelfNamedIgnored { app });
                    false
                }
                _ => ignoring,
            };
            match (enforcing, ignoring) {
                (true, true) => {
                    let principal = alloc::format!("{principal}");
                    warnings.push(Warning::InBothLists { principal, source });
                    return (Mode::Learning, source);
                }
                (true, false) => return (Mode::Enforced, source),
                (false, true) => return (Mode::Learning, source),
                (false, false) => {}
            }
        }
        let flag = |learning| {
            if learning {
                Mode::Learning
            } else {
                Mode::Enforced
            }
        };
        match overrides.learning.map(|text| (text, text.trim())) {
            Some((_, text)) if text.eq_ignore_ascii_case("true") => {
                return (flag(true), Source::DynamicFlag);
            }
            Some((_, text)) if text.eq_ignore_ascii_case("false") => {
                return (flag(false), Source::DynamicFlag);
            }
            Some((text, _)) => warnings.push(garbage("learning", text)),
            None => {}
        }
        (flag(self.learning), Source::StaticFlag)
    }
}

impl Key {
    /// The key that a text of the store or of an API means, if it is one of the configuration.
    pub fn parse(text: &str) -> Option<Self> {
        let key = text.strip_prefix(PREFIX)?;
        let named = |prefix| {
            key.strip_prefix(prefix)
                .filter(|name| !name.is_empty())
                .map(ToOwned::to_owned)
        };
        match key {
            "learning" => Some(Self::Learning),
            "enforcing" => Some(Self::Enforcing),
            "ignoring" => Some(Self::Ignoring),
            _ => named("capacity:")
                .map(Self::Capacity)
                .or_else(|| named("rateSeconds:").map(Self::RateSeconds)),
        }
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Learning => write!(f, "{PREFIX}learning"),
            Self::Enforcing => write!(f, "{PREFIX}enforcing"),
            Self::Ignoring => write!(f, "{PREFIX}ignoring"),
            Self::Capacity(name) => write!(f, "{PREFIX}capacity:{name}"),
            Self::RateSeconds(name) => write!(f, "{PREFIX}rateSeconds:{name}"),
        }
    }
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::InBothLists { principal, source } => {
                let place = match source {
                    Source::DynamicList | Source::DynamicFlag => "of the store",
                    Source::StaticList | Source::StaticFlag => "of the configuration",
                };
                write!(
                    f,
                    "{principal} is in the lists enforcing and ignoring {place}: it is only learnt \
                     from; take it out of one"
                )
            }
            Self::Garbage { key, value } => write!(
                f,
                "{PREFIX}{key} cannot be {value:?}: it is not followed; set it anew or delete it"
            ),
            Self::SelfNamedIgnored { app } => write!(
                f,
                "app:{app} is in the list ignoring, but any client can call itself so: it is not \
                 followed; authenticate the client"
            ),
        }
    }
}

/// How every key of the limiter begins.
const PREFIX: &str = "rateLimit:";

fn number(
    key: &'static str,
    text: &str,
    least: u32,
    most: u32,
    warnings: &mut Vec<Warning>,
) -> Option<u32> {
    let digits = text.trim();
    // `parse` would take a plus sign.
    let is_number = digits.bytes().all(|octet| octet.is_ascii_digit());
    let number = is_number.then(|| digits.parse().ok()).flatten();
    let number = number.filter(|number| (least..=most).contains(number));
    if number.is_none() {
        warnings.push(garbage(key, text));
    }
    number
}

fn garbage(key: &'static str, value: &str) -> Warning {
    Warning::Garbage {
        key,
        value: value.chars().take(MAX_SHOWN).collect(),
    }
}
