//! Regular expressions that match whole values in linear time, and what can be proved of them.

use alloc::collections::BTreeSet;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use regex_automata::nfa::thompson::{NFA, State, WhichCaptures, pikevm::PikeVM};
use regex_automata::util::look::Look;
use regex_automata::util::primitives::StateID;
use regex_automata::util::syntax;
use regex_automata::{Anchored, Input};
use regex_syntax::hir::{self, Hir};

use crate::limits::{MAX_PATTERN, MAX_PATTERN_MEMORY, MAX_PATTERN_NESTING, MAX_PROOF};

/// Whether upper and lower case are the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Case {
    Same,
    Different,
}

/// A compiled pattern.
#[derive(Debug, Clone)]
pub(super) struct Pattern {
    text: String,
    machine: PikeVM,
}

impl Pattern {
    /// Compiles a pattern, or says in one line what is wrong with it.
    pub(super) fn compile(text: &str, case: Case) -> Result<Self, String> {
        if text.len() > MAX_PATTERN {
            return Err(format!("longer than {MAX_PATTERN} octets"));
        }
        let settings = syntax::Config::new()
            .case_insensitive(case == Case::Same)
            .nest_limit(MAX_PATTERN_NESTING);
        let parsed = syntax::parse_with(text, &settings).map_err(|error| match error {
            regex_syntax::Error::Parse(error) => {
                format!("{} at octet {}", error.kind(), error.span().start.offset)
            }
            regex_syntax::Error::Translate(error) => {
                format!("{} at octet {}", error.kind(), error.span().start.offset)
            }
            other => other.to_string(),
        })?;
        // A match of the whole value is one that starts where the search is anchored and is
        // followed by the end.
        let whole = Hir::concat(Vec::from([parsed, Hir::look(hir::Look::End)]));
        let automaton = NFA::compiler()
            .configure(
                NFA::config()
                    .which_captures(WhichCaptures::None)
                    .nfa_size_limit(Some(MAX_PATTERN_MEMORY)),
            )
            .build_from_hir(&whole)
            .map_err(|_| format!("it needs more than {MAX_PATTERN_MEMORY} octets of memory"))?;
        let machine = PikeVM::new_from_nfa(automaton).map_err(|error| error.to_string())?;
        Ok(Self {
            text: text.to_string(),
            machine,
        })
    }

    /// As it was written.
    pub(super) fn text(&self) -> &str {
        &self.text
    }

    /// Whether the whole value matches.
    pub(super) fn matches(&self, value: &str) -> bool {
        let input = Input::new(value).anchored(Anchored::Yes);
        let mut cache = self.machine.create_cache();
        self.machine.is_match(&mut cache, input)
    }

    /// Whether no value at all matches; false where that could not be proved.
    pub(super) fn is_impossible(&self) -> bool {
        included(self.machine.get_nfa(), None)
    }

    /// Whether every value that `other` matches is matched by this one; false where that could
    /// not be proved.
    pub(super) fn covers(&self, other: &Self) -> bool {
        included(other.machine.get_nfa(), Some(self.machine.get_nfa()))
    }
}

/// The states of an automaton after the same octets, before what needs no octet is followed.
type States = BTreeSet<StateID>;

/// Whether every value of `inner` is one of `outer`, of which there are none without it.
///
/// Both automata run side by side over every octet, and each pair of state sets is looked at
/// once. A proof that would take too many of them is given up, and so is one about assertions
/// other than start and end.
fn included(inner: &NFA, outer: Option<&NFA>) -> bool {
    let provable = |nfa: &NFA| {
        let mut looks = nfa.look_set_any().iter();
        looks.all(|look| matches!(look, Look::Start | Look::End))
    };
    if !provable(inner) || !outer.is_none_or(provable) {
        return false;
    }
    let octets = boundaries(inner, outer);
    let initial = |nfa: &NFA| States::from([nfa.start_anchored()]);
    let start = (initial(inner), outer.map(initial).unwrap_or_default(), true);
    let mut seen = BTreeSet::from([start.clone()]);
    let mut pending = Vec::from([start]);
    while let Some((of_inner, of_outer, at_start)) = pending.pop() {
        let inner_accepts = accepts(inner, &of_inner, at_start);
        let outer_accepts = outer.is_some_and(|nfa| accepts(nfa, &of_outer, at_start));
        if inner_accepts && !outer_accepts {
            return false;
        }
        for octet in &octets {
            let next = step(inner, &of_inner, at_start, *octet);
            if next.is_empty() {
                continue;
            }
            let beside = outer.map(|nfa| step(nfa, &of_outer, at_start, *octet));
            let pair = (next, beside.unwrap_or_default(), false);
            if !seen.contains(&pair) {
                if seen.len() >= MAX_PROOF {
                    return false;
                }
                seen.insert(pair.clone());
                pending.push(pair);
            }
        }
    }
    true
}

/// One octet for each range of octets that neither automaton tells apart.
fn boundaries(inner: &NFA, outer: Option<&NFA>) -> Vec<u8> {
    let of = |nfa: &NFA| -> Vec<u8> {
        let classes = nfa.byte_classes();
        (0..=u8::MAX)
            .filter(|octet| *octet == 0 || classes.get(*octet) != classes.get(octet - 1))
            .collect()
    };
    let mut octets = of(inner);
    octets.extend(outer.map(of).unwrap_or_default());
    octets.sort_unstable();
    octets.dedup();
    octets
}

fn accepts(nfa: &NFA, states: &States, at_start: bool) -> bool {
    let mut accepted = false;
    follow(nfa, states, at_start, true, |state| {
        accepted |= matches!(state, State::Match { .. });
    });
    accepted
}

fn step(nfa: &NFA, states: &States, at_start: bool, octet: u8) -> States {
    let mut next = States::new();
    follow(nfa, states, at_start, false, |state| match state {
        State::ByteRange { trans } if trans.matches_byte(octet) => {
            next.insert(trans.next);
        }
        State::Sparse(transitions) => next.extend(transitions.matches_byte(octet)),
        State::Dense(transitions) => next.extend(transitions.matches_byte(octet)),
        _ => {}
    });
    next
}

/// Visits every state that can be reached without an octet.
fn follow(nfa: &NFA, states: &States, at_start: bool, at_end: bool, mut visit: impl FnMut(&State)) {
    let mut seen = States::new();
    let mut pending: Vec<StateID> = states.iter().copied().collect();
    while let Some(id) = pending.pop() {
        if !seen.insert(id) {
            continue;
        }
        let state = nfa.state(id);
        visit(state);
        match state {
            State::Look { look, next } => {
                let holds = match look {
                    Look::Start => at_start,
                    Look::End => at_end,
                    _ => false,
                };
                pending.extend(holds.then_some(*next));
            }
            State::Union { alternates } => pending.extend(alternates.iter().copied()),
            State::BinaryUnion { alt1, alt2 } => pending.extend([*alt1, *alt2]),
            State::Capture { next, .. } => pending.push(*next),
            _ => {}
        }
    }
}
