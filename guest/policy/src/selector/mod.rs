//! Which CMP endpoint an order goes to, chosen by selectors as Spinnaker's services are.
//!
//! Each entry of the configuration has an endpoint, a priority and a selector. Among those whose
//! selector matches, the highest priority wins, and the first in the list among equals. An entry
//! without a selector matches everything: the default.
//!
//! [`Routing`] is the configuration as data, [`Router`] the same with its patterns compiled.

mod import;
mod lint;
mod pattern;

pub use import::{ClassConfig, ClassError};
pub use lint::{Fault, Finding};

use alloc::borrow::ToOwned;
use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::cmp::Reverse;
use core::fmt;

use crate::limits::{MAX_ENDPOINTS, MAX_LISTED, MAX_NAME, MAX_URL};
use crate::mistake::{Check, Mistake, Mistakes, Problem};
use pattern::Pattern;

/// The endpoints of an issuer.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(default, deny_unknown_fields))]
pub struct Routing {
    /// The entries; their order decides between equal priorities.
    pub endpoints: Vec<Endpoint>,
    /// User origin to URL: each is an entry with [`Selector::UserOrigin`] and priority 2, after
    /// the others.
    #[cfg_attr(feature = "serde", serde(alias = "dynamicEndpoints"))]
    pub dynamic_endpoints: BTreeMap<String, String>,
}

/// One entry.
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(deny_unknown_fields))]
pub struct Endpoint {
    /// Where it is.
    pub url: String,
    /// The highest wins. Default 1.
    #[cfg_attr(feature = "serde", serde(default = "lowest"))]
    pub priority: i32,
    /// What it is for. Default [`Selector::Default`].
    #[cfg_attr(feature = "serde", serde(default))]
    pub selector: Selector,
}

/// What an entry is for.
///
/// A pattern is a regular expression that has to match the whole value. Patterns for
/// applications and accounts make no difference between upper and lower case; those for users do,
/// as in kork. A selector does not match an order that lacks what it looks at.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "kebab-case"))]
pub enum Selector {
    /// Everything.
    #[default]
    Default,
    /// Applications that match this pattern.
    Application(String),
    /// Accounts that match this pattern.
    Account(String),
    /// Authenticated users that match one of these patterns.
    User(Vec<String>),
    /// One of these cloud providers.
    CloudProvider(Vec<String>),
    /// One of these types of execution.
    ExecutionType(Vec<String>),
    /// This origin, in any case of letters, with one of these types of execution.
    Origin {
        /// The origin.
        origin: String,
        /// The types; empty means any.
        #[cfg_attr(feature = "serde", serde(default))]
        execution_types: Vec<String>,
    },
    /// One of these locations.
    Location(Vec<String>),
    /// The origin of the user's request, in any case of letters.
    UserOrigin(String),
}

/// What is known about an order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Criteria<'a> {
    /// Its application.
    pub application: Option<&'a str>,
    /// Its account.
    pub account: Option<&'a str>,
    /// Who asked for it, authenticated.
    pub user: Option<&'a str>,
    /// The cloud provider it is for.
    pub cloud_provider: Option<&'a str>,
    /// Its type, such as `pipeline` or `orchestration`.
    pub execution_type: Option<&'a str>,
    /// Where it comes from.
    pub origin: Option<&'a str>,
    /// The location it is for.
    pub location: Option<&'a str>,
    /// Where the user's request came from; where it is not known, the origin stands for it.
    pub user_origin: Option<&'a str>,
}

/// The endpoints with their patterns compiled.
#[derive(Debug, Clone)]
pub struct Router {
    /// In the order in which they are considered.
    entries: Vec<Entry>,
}

#[derive(Debug, Clone)]
struct Entry {
    /// Its path in the configuration.
    path: String,
    endpoint: Endpoint,
    patterns: Vec<Pattern>,
}

/// Where an order goes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Route<'r> {
    /// The endpoint.
    pub url: &'r str,
    /// The path of the entry in the configuration.
    pub entry: &'r str,
    /// Why, for a person.
    pub why: String,
}

/// One entry that was considered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Considered<'r> {
    /// The endpoint.
    pub url: &'r str,
    /// The path of the entry in the configuration.
    pub entry: &'r str,
    /// Its priority.
    pub priority: i32,
    /// Whether it matches.
    pub matches: bool,
    /// Why or why not, for a person.
    pub why: String,
}

/// No entry matches, and there is no default.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NoRoute;

impl Routing {
    /// Compiles the patterns, or names everything that is wrong.
    pub fn compile(&self) -> Result<Router, Vec<Mistake>> {
        let mistakes = self.mistakes();
        if !mistakes.is_empty() {
            return Err(mistakes);
        }
        let listed = self
            .endpoints
            .iter()
            .enumerate()
            .map(|(index, endpoint)| (format!("endpoints[{index}]"), endpoint.clone()));
        let dynamic = self.dynamic_endpoints.iter().map(|(origin, url)| {
            let endpoint = Endpoint {
                url: url.clone(),
                priority: DYNAMIC_PRIORITY,
                selector: Selector::UserOrigin(origin.clone()),
            };
            (format!("dynamic_endpoints.{origin}"), endpoint)
        });
        let mut entries = Vec::new();
        for (path, endpoint) in listed.chain(dynamic) {
            let patterns = endpoint.selector.patterns();
            let compiled = patterns
                .iter()
                .map(|(_, text, cases)| Pattern::compile(text, *cases));
            let patterns = compiled.collect::<Result<_, _>>().map_err(|why| {
                Vec::from([Mistake {
                    path: path.clone(),
                    problem: Problem::Pattern(why),
                }])
            })?;
            entries.push(Entry {
                path,
                endpoint,
                patterns,
            });
        }
        // Stable, so that the list decides between equals.
        entries.sort_by_key(|entry| Reverse(entry.endpoint.priority));
        Ok(Router { entries })
    }
}

impl Router {
    /// Where an order goes.
    pub fn route(&self, criteria: &Criteria<'_>) -> Result<Route<'_>, NoRoute> {
        self.entries
            .iter()
            .find_map(|entry| {
                let (matches, why) = entry.judge(criteria);
                matches.then(|| Route {
                    url: &entry.endpoint.url,
                    entry: &entry.path,
                    why,
                })
            })
            .ok_or(NoRoute)
    }

    /// Every entry with its judgement, in the order in which they are considered. The first that
    /// matches is the route.
    pub fn explain(&self, criteria: &Criteria<'_>) -> Vec<Considered<'_>> {
        let judged = self.entries.iter().map(|entry| {
            let (matches, why) = entry.judge(criteria);
            Considered {
                url: &entry.endpoint.url,
                entry: &entry.path,
                priority: entry.endpoint.priority,
                matches,
                why,
            }
        });
        judged.collect()
    }
}

impl Entry {
    fn judge(&self, criteria: &Criteria<'_>) -> (bool, String) {
        let by_pattern = |what: &str, value: Option<&str>| {
            let Some(value) = value else {
                return (false, format!("the order has no {what}"));
            };
            let matching = self.patterns.iter().find(|pattern| pattern.matches(value));
            match matching {
                Some(pattern) => (
                    true,
                    format!("{what} {value:?} matches {:?}", pattern.text()),
                ),
                None => (false, format!("{what} {value:?} does not match")),
            }
        };
        let by_name = |what: &str, value: Option<&str>, names: &[String]| {
            let Some(value) = value else {
                return (false, format!("the order has no {what}"));
            };
            let matches = names.iter().any(|name| name == value);
            let verb = if matches { "is" } else { "is not" };
            (matches, format!("{what} {value:?} {verb} among them"))
        };
        let by_origin = |what: &str, value: Option<&str>, origin: &str| {
            let Some(value) = value else {
                return (false, format!("the order has no {what}"));
            };
            let matches = value.eq_ignore_ascii_case(origin);
            let verb = if matches { "is" } else { "is not" };
            (matches, format!("{what} {value:?} {verb} {origin:?}"))
        };
        match &self.endpoint.selector {
            Selector::Default => (true, "the default".to_owned()),
            Selector::Application(_) => by_pattern("application", criteria.application),
            Selector::Account(_) => by_pattern("account", criteria.account),
            Selector::User(_) => by_pattern("user", criteria.user),
            Selector::CloudProvider(names) => {
                by_name("cloud provider", criteria.cloud_provider, names)
            }
            Selector::ExecutionType(names) => {
                by_name("execution type", criteria.execution_type, names)
            }
            Selector::Location(names) => by_name("location", criteria.location, names),
            Selector::Origin {
                origin,
                execution_types,
            } => {
                let (matches, why) = by_origin("origin", criteria.origin, origin);
                if !matches || execution_types.is_empty() {
                    return (matches, why);
                }
                let (matches, type_why) =
                    by_name("execution type", criteria.execution_type, execution_types);
                (matches, format!("{why}, {type_why}"))
            }
            Selector::UserOrigin(origin) => {
                let value = criteria.user_origin.or(criteria.origin);
                by_origin("user origin", value, origin)
            }
        }
    }
}

impl Selector {
    /// Its patterns with their field, and whether upper and lower case are the same to them.
    fn patterns(&self) -> Vec<(String, &str, pattern::Case)> {
        match self {
            Self::Application(text) => {
                Vec::from([("application".to_owned(), text.as_str(), pattern::Case::Same)])
            }
            Self::Account(text) => {
                Vec::from([("account".to_owned(), text.as_str(), pattern::Case::Same)])
            }
            Self::User(texts) => texts
                .iter()
                .enumerate()
                .map(|(index, text)| {
                    (
                        format!("user[{index}]"),
                        text.as_str(),
                        pattern::Case::Different,
                    )
                })
                .collect(),
            _ => Vec::new(),
        }
    }

    /// The list of names it chooses from, with its field.
    fn names(&self) -> Option<(&'static str, &[String])> {
        match self {
            Self::User(names) => Some(("user", names)),
            Self::CloudProvider(names) => Some(("cloud-provider", names)),
            Self::ExecutionType(names) => Some(("execution-type", names)),
            Self::Location(names) => Some(("location", names)),
            _ => None,
        }
    }
}

impl Default for Endpoint {
    fn default() -> Self {
        Self {
            url: String::new(),
            priority: lowest(),
            selector: Selector::Default,
        }
    }
}

/// The priority of an entry that names none.
const fn lowest() -> i32 {
    1
}

/// The priority of a dynamic endpoint, as in Spinnaker's gate.
const DYNAMIC_PRIORITY: i32 = 2;

impl fmt::Display for NoRoute {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(
            "no endpoint matches the order and there is no default: add an endpoint without a \
             selector, or one that matches",
        )
    }
}

impl core::error::Error for NoRoute {}

impl Check for Routing {
    fn check(&self, found: &mut Mistakes) {
        found.list("endpoints", &self.endpoints, MAX_ENDPOINTS);
        found.length(
            "dynamic_endpoints",
            self.dynamic_endpoints.len(),
            MAX_ENDPOINTS,
        );
        for (origin, url) in &self.dynamic_endpoints {
            let at = format!("dynamic_endpoints.{origin}");
            if origin.is_empty() {
                found.report(&at, Problem::Empty);
            }
            check_url(found, &at, url);
        }
        if self.endpoints.is_empty() && self.dynamic_endpoints.is_empty() {
            found.report("endpoints", Problem::Empty);
        }
    }
}

impl Check for Endpoint {
    fn check(&self, found: &mut Mistakes) {
        check_url(found, "url", &self.url);
        found.field("selector", &self.selector);
    }
}

impl Check for Selector {
    fn check(&self, found: &mut Mistakes) {
        for (field, text, case) in self.patterns() {
            if let Err(why) = Pattern::compile(text, case) {
                found.report(&field, Problem::Pattern(why));
            }
        }
        if let Some((field, names)) = self.names() {
            found.length(field, names.len(), MAX_LISTED);
            if names.is_empty() {
                found.report(field, Problem::Empty);
            }
            for (index, name) in names.iter().enumerate() {
                check_name(found, &format!("{field}[{index}]"), name);
            }
        }
        match self {
            Self::Origin {
                origin,
                execution_types,
            } => {
                check_name(found, "origin.origin", origin);
                found.length("origin.execution_types", execution_types.len(), MAX_LISTED);
            }
            Self::UserOrigin(origin) => check_name(found, "user-origin", origin),
            _ => {}
        }
    }
}

fn check_url(found: &mut Mistakes, at: &str, url: &str) {
    found.length(at, url.len(), MAX_URL);
    let rest = url
        .strip_prefix("http://")
        .or_else(|| url.strip_prefix("https://"));
    let has_host = rest.is_some_and(|rest| !rest.is_empty() && !rest.starts_with('/'));
    if url.is_empty() {
        found.report(at, Problem::Empty);
    } else if !has_host || url.contains(char::is_whitespace) {
        found.report(
            at,
            Problem::Conflict("is no URL: give http://HOST or https://HOST"),
        );
    }
}

fn check_name(found: &mut Mistakes, at: &str, name: &str) {
    if name.is_empty() {
        found.report(at, Problem::Empty);
    }
    found.length(at, name.len(), MAX_NAME);
}
