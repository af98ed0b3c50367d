//! When an order is attempted next: all rules together.
//!
//! The state lies on the order and is written together with whatever else the event changes.
//! Each function takes it by value and gives the new one with its decision, and the decision
//! carries the steps that led to it.
//!
//! | event | function |
//! |---|---|
//! | a transaction failed | [`RetryPolicy::failed`] |
//! | a certificate was issued | [`RetryPolicy::succeeded`] |
//! | somebody renews by hand | [`RetryPolicy::renewed_by_hand`] |
//! | the request changed in a way that matters | [`RetryPolicy::request_changed`] |
//! | the service starts | [`RetryPolicy::restarted`] |
//! | a request inside a transaction failed | [`RetryPolicy::resend`] |

use alloc::vec;
use alloc::vec::Vec;

use crate::backoff::{Decision as Due, Failures};
use crate::endpoint::Budget;
use crate::explain::{Rule, Step};
use crate::failure::Class;
use crate::hint::HintBounds;
use crate::limits::{MAX_ATTEMPTS, MAX_DELAY_MS, MAX_FORECAST};
use crate::mistake::{Check, Mistakes};
use crate::random::{self, Octets};
use crate::renewal::{ExpiryClamp, Renewal, Validity, Window};
use crate::strategy::{Jitter, Strategy};
use crate::success::SuccessGuard;
use crate::time::MINUTE_MS;

/// Everything that decides about the next attempt of an order. The defaults are those of the
/// parts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(default, deny_unknown_fields))]
pub struct RetryPolicy {
    /// Between failed issuances: an hour, doubling, at most 32 hours.
    pub issuance: Strategy,
    /// Between sendings of one request inside a transaction: five seconds, doubling, at most
    /// five minutes.
    pub transient: Strategy,
    /// For an endpoint that asks for less without saying how long: thirty seconds, doubling, at
    /// most an hour.
    pub throttled: Strategy,
    /// Failures in a row after which the order stops. Default: none, it goes on for ever.
    pub max_attempts: Option<u32>,
    /// Bounds on what a server may ask for: 1 s to 24 h.
    pub hints: HintBounds,
    /// Haste when the certificate in use nears its end: two attempts, a minute apart or more.
    pub expiry: ExpiryClamp,
    /// Retries of the fleet for one endpoint: 100, and one more every 6 s.
    pub budget: Budget,
    /// Successes of one order within a window: 50 in 24 h.
    pub success: SuccessGuard,
    /// When a certificate is renewed: after two thirds of its lifetime.
    pub renewal: Renewal,
    /// How overdue attempts are spread when the service starts.
    pub restart: Spread,
}

/// How overdue attempts are spread when the service starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(default, deny_unknown_fields))]
pub struct Spread {
    /// Time per overdue order, in milliseconds. Default 100 ms: ten orders a second.
    pub each_ms: u64,
    /// The longest span, in milliseconds, however many there are. Default 10 min.
    pub most_ms: u64,
}

/// What is stored on an order about its attempts.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(default, deny_unknown_fields))]
pub struct Attempts {
    /// Consecutive failed issuances: `issuance_attempts`. Absent when none.
    pub issuance_attempts: Option<i64>,
    /// When the last one failed, in milliseconds since the epoch. Absent when none.
    pub last_failure_ms: Option<u64>,
    /// The class of the last failure.
    pub last_class: Option<Class>,
    /// The delay that was chosen last, in milliseconds; decorrelated jitter grows from it.
    pub last_delay_ms: Option<u64>,
    /// When the next attempt may start, in milliseconds since the epoch. Absent when the order
    /// has stopped or was never attempted.
    pub next_attempt_ms: Option<u64>,
    /// The rule that decided about it last: its words are the order's one-line reason.
    pub because: Option<Rule>,
    /// Whether it has stopped for good: only a change or a renewal by hand goes on.
    pub stopped: bool,
    /// The latest successes, oldest first, for the success guard.
    pub successes_ms: Vec<u64>,
}

/// What failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Failure {
    /// Its class.
    pub class: Class,
    /// The wait in seconds that the server asked for: `Retry-After` or checkAfter.
    pub hint_s: Option<i64>,
    /// Until when its endpoint wants nothing: `not_before_ms` of
    /// [`crate::endpoint::EndpointState`], after it has heard of this failure. Zero if it does
    /// not matter.
    pub endpoint_not_before_ms: u64,
    /// The certificate that the order still has in use.
    pub in_use: Option<Validity>,
}

/// What was decided.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Decision {
    /// What comes next.
    pub next: Next,
    /// Whether somebody should be told at once.
    pub alarm: bool,
    /// How it came about, in order. The last step's `after_ms` is the time of [`Next::At`].
    pub steps: Vec<Step>,
}

/// What comes next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Next {
    /// An attempt, not before this time, in milliseconds since the epoch.
    At(u64),
    /// Nothing, until the order is changed or renewed by hand. Its state is ERROR.
    Stopped,
}

/// When a request is sent again inside its transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Resend {
    /// Not before this time, in milliseconds since the epoch.
    At(u64),
    /// The transaction's deadline comes first: the issuance has failed.
    TooLate,
}

impl Failure {
    /// A failure of a class, with nothing else to consider.
    pub fn of(class: Class) -> Self {
        Self {
            class,
            hint_s: None,
            endpoint_not_before_ms: 0,
            in_use: None,
        }
    }
}

impl Attempts {
    /// The failures as [`crate::backoff`] takes them.
    pub fn failures(&self) -> Failures {
        Failures {
            attempts: self.issuance_attempts,
            last_failure_ms: self.last_failure_ms,
        }
    }

    /// Whether the order may be attempted at `now_ms`: a look at the stored time, nothing else.
    pub fn due(&self, now_ms: u64) -> Option<Due> {
        if self.stopped {
            return None;
        }
        Some(match self.next_attempt_ms {
            Some(next) if next > now_ms => Due::WaitUntil(next),
            _ => Due::Due,
        })
    }
}

impl RetryPolicy {
    /// A transaction of the order failed at `now_ms`, for good.
    ///
    /// A failure that counts makes attempts one more and last_failure now. Throttling does
    /// neither: the endpoint counts it.
    pub fn failed(
        &self,
        mut state: Attempts,
        failure: Failure,
        now_ms: u64,
        random: Octets,
    ) -> (Attempts, Decision) {
        let class = failure.class;
        state.last_class = Some(class);
        if class.counts() {
            let before = state.issuance_attempts.unwrap_or(0).max(0);
            state.issuance_attempts = Some(before.saturating_add(1));
            state.last_failure_ms = Some(now_ms);
        }
        if let Some(rule) = self.stops(&state, class) {
            state.stopped = true;
            state.next_attempt_ms = None;
            state.because = Some(rule);
            return (state, Decision::stopped(rule, now_ms));
        }
        let mut plan = Plan::new(now_ms);
        if class.counts() {
            let delay = self.own_delay(&mut plan, &state, now_ms, random);
            state.last_delay_ms = Some(delay);
            self.hasten(&mut plan, &state, &failure, now_ms);
        }
        if let Some(asked_s) = failure.hint_s {
            let granted_ms = self.hints.grant(asked_s);
            plan.not_before(
                Rule::Hint {
                    asked_s,
                    granted_ms,
                },
                now_ms.saturating_add(granted_ms),
            );
        }
        plan.not_before(
            Rule::Throttled,
            failure
                .endpoint_not_before_ms
                .min(now_ms.saturating_add(self.longest_wait())),
        );
        if class == Class::Throttled {
            // Whoever waits for the same endpoint should not come back at the same moment.
            let tenth = (plan.at_ms - now_ms) / 10;
            let spread = random::between(random, plan.at_ms, plan.at_ms.saturating_add(tenth));
            plan.not_before(Rule::Jitter, spread);
        }
        plan.settle(&mut state);
        (state, plan.decide(class.alarms()))
    }

    /// A certificate was issued at `now_ms`. Only this clears the failures.
    pub fn succeeded(
        &self,
        state: Attempts,
        issued: Validity,
        window: Option<Window>,
        now_ms: u64,
        random: Octets,
    ) -> (Attempts, Decision) {
        let (successes_ms, tripped_until) = self.success.record(state.successes_ms, now_ms);
        let by_default = self.renewal.at(issued, None, random);
        let at_ms = self.renewal.at(issued, window, random);
        let mut plan = Plan::new(now_ms);
        plan.set(Rule::Renewal, by_default);
        if window.is_some() && at_ms != by_default {
            plan.set(Rule::RenewalWindow, at_ms);
        }
        if let Some(until) = tripped_until {
            let successes = successes_ms.len() as u32;
            plan.not_before(Rule::TooManySuccesses { successes }, until);
        }
        let mut state = Attempts {
            successes_ms,
            ..Attempts::default()
        };
        plan.settle(&mut state);
        (state, plan.decide(tripped_until.is_some()))
    }

    /// Somebody renews by hand: at once, and the count stays. If it fails, the count goes on from
    /// where it was.
    pub fn renewed_by_hand(&self, state: Attempts, now_ms: u64) -> (Attempts, Decision) {
        at_once(state, Rule::ByHand, now_ms)
    }

    /// Names, key, issuer, usages or validity of the request changed: at once, and the count
    /// stays.
    pub fn request_changed(&self, state: Attempts, now_ms: u64) -> (Attempts, Decision) {
        at_once(state, Rule::Changed, now_ms)
    }

    /// The service started at `now_ms`, with so many orders overdue.
    ///
    /// Nothing runs before its stored time; a wait without one is computed from the last
    /// failure. An overdue attempt is spread. A stored time that is further away than any wait
    /// may be, because the clock was set back or the policy became shorter, comes nearer. That
    /// holds for waits after failures: a renewal may be years away.
    pub fn restarted(
        &self,
        mut state: Attempts,
        overdue: u64,
        now_ms: u64,
        random: Octets,
    ) -> (Attempts, Decision) {
        if state.stopped {
            let decision = self.explain(&state, now_ms);
            return (state, decision);
        }
        let mut plan = Plan::new(now_ms);
        self.stored(&mut plan, &state, now_ms);
        if plan.at_ms <= now_ms {
            plan.set(Rule::Spread, self.restart.over(overdue, now_ms, random));
        }
        plan.settle(&mut state);
        (state, plan.decide(false))
    }

    /// Why the next attempt is when it is, from what is stored: the delay as the policy has it
    /// today, then the rule that decided last, with the difference that it made.
    pub fn explain(&self, state: &Attempts, now_ms: u64) -> Decision {
        if state.stopped {
            let rule = match state.last_class {
                Some(Class::Permanent) => Rule::Permanent,
                _ => Rule::MaxAttempts {
                    attempts: count(state),
                },
            };
            let since = state.last_failure_ms.unwrap_or(now_ms);
            return Decision::stopped(rule, since);
        }
        let mut plan = Plan::new(now_ms);
        self.stored(&mut plan, state, now_ms);
        plan.decide(false)
    }

    /// A request inside a transaction got no answer, or a passing one: when the same octets are
    /// sent again. `resends` counts those before, this failure included.
    pub fn resend(
        &self,
        resends: u32,
        hint_s: Option<i64>,
        deadline_ms: u64,
        now_ms: u64,
        random: Octets,
    ) -> Resend {
        let own = self.transient.delay(Some(resends.into()), None, random);
        let hint = hint_s.map_or(0, |seconds| self.hints.grant(seconds));
        let at_ms = now_ms.saturating_add(own.max(hint));
        if at_ms < deadline_ms {
            Resend::At(at_ms)
        } else {
            Resend::TooLate
        }
    }

    /// The next attempts of an order for as long as each of them fails, until `until_ms` and at
    /// most [`MAX_FORECAST`]: the earliest and the latest time of each that chance can bring
    /// about. For plots.
    pub fn forecast(
        &self,
        state: &Attempts,
        in_use: Option<Validity>,
        now_ms: u64,
        until_ms: u64,
    ) -> Vec<(u64, u64)> {
        if state.stopped {
            return Vec::new();
        }
        let failure = Failure {
            in_use,
            ..Failure::of(Class::Refused)
        };
        let path = |random| {
            let mut state = state.clone();
            let mut at_ms = state.next_attempt_ms.unwrap_or(now_ms).max(now_ms);
            let mut path = Vec::new();
            while at_ms <= until_ms && path.len() < MAX_FORECAST {
                path.push(at_ms);
                let (after, decision) = self.failed(state, failure, at_ms, random);
                let Next::At(next_ms) = decision.next else {
                    break;
                };
                state = after;
                // A jitter that allows no wait at all still leaves the scheduler's tick.
                at_ms = next_ms.max(at_ms.saturating_add(1));
            }
            path
        };
        let (earliest, latest) = (path([0; 8]), path([0xff; 8]));
        let bounded = latest.into_iter().chain(core::iter::repeat(until_ms));
        earliest.into_iter().zip(bounded).collect()
    }

    /// The longest wait that this policy can lead to after a failure, in milliseconds.
    pub fn longest_wait(&self) -> u64 {
        let of = |strategy: &Strategy| strategy.cap_ms.max(strategy.base_ms);
        of(&self.issuance)
            .max(of(&self.throttled))
            .max(self.hints.max_ms)
            .min(MAX_DELAY_MS)
    }

    fn stops(&self, state: &Attempts, class: Class) -> Option<Rule> {
        if class == Class::Permanent {
            return Some(Rule::Permanent);
        }
        let attempts = count(state);
        let most = self.max_attempts?;
        (class.counts() && attempts >= most).then_some(Rule::MaxAttempts { attempts })
    }

    fn own_delay(&self, plan: &mut Plan, state: &Attempts, from_ms: u64, random: Octets) -> u64 {
        let plain = self.issuance.plain(state.issuance_attempts);
        plan.set(
            Rule::Delay {
                attempts: count(state),
                class: state.last_class,
            },
            from_ms.saturating_add(plain),
        );
        let delay = self
            .issuance
            .delay(state.issuance_attempts, state.last_delay_ms, random);
        if self.issuance.jitter != Jitter::None {
            plan.set(Rule::Jitter, from_ms.saturating_add(delay));
        }
        delay
    }

    fn hasten(&self, plan: &mut Plan, state: &Attempts, failure: &Failure, now_ms: u64) {
        let Some(in_use) = failure.in_use else {
            return;
        };
        let next_attempts = state.issuance_attempts.map(|n| n.saturating_add(1));
        let hastened = self.expiry.hasten(
            in_use,
            now_ms,
            plan.at_ms - now_ms,
            self.issuance.plain(next_attempts),
            self.issuance.base_ms,
        );
        if let Some(wait_ms) = hastened {
            let not_after_ms = in_use.not_after_ms;
            plan.set(
                Rule::Expiry { not_after_ms },
                now_ms.saturating_add(wait_ms),
            );
        }
    }

    /// The next attempt as far as stored times say it.
    fn stored(&self, plan: &mut Plan, state: &Attempts, now_ms: u64) {
        if let Some(recorded_ms) = state.last_failure_ms {
            let failed_ms = recorded_ms.min(now_ms);
            if recorded_ms > now_ms {
                plan.set(Rule::ClockSetBack { recorded_ms }, now_ms);
            }
            let rule = match state.issuance_attempts {
                Some(attempts) if attempts > 0 => Rule::Delay {
                    attempts: count(state),
                    class: state.last_class,
                },
                _ => Rule::NoCount,
            };
            let plain = self.issuance.plain(state.issuance_attempts);
            let computed = failed_ms.saturating_add(plain);
            plan.set_from(rule, failed_ms, computed);
        } else if state.next_attempt_ms.is_none() {
            plan.set(Rule::NoFailure, now_ms);
        }
        if let Some(stored) = state.next_attempt_ms
            && stored != plan.at_ms
        {
            // The delay has had its say, with the numbers of today.
            let rule = state
                .because
                .filter(|rule| !matches!(rule, Rule::Delay { .. } | Rule::NoCount));
            plan.set(rule.unwrap_or(Rule::Stored), stored);
        }
        let has_failed = state.last_failure_ms.is_some() || state.last_class.is_some();
        let latest = now_ms.saturating_add(self.longest_wait());
        if has_failed && plan.at_ms > latest {
            plan.set(Rule::Longest, latest);
        }
    }
}

impl Spread {
    /// When one of so many overdue attempts runs.
    pub fn over(&self, overdue: u64, now_ms: u64, random: Octets) -> u64 {
        let most = self.most_ms.min(MAX_DELAY_MS);
        let span = self.each_ms.saturating_mul(overdue).min(most);
        random::between(random, now_ms, now_ms.saturating_add(span))
    }
}

impl Decision {
    fn stopped(rule: Rule, at_ms: u64) -> Self {
        Self {
            next: Next::Stopped,
            alarm: true,
            steps: vec![Step {
                rule,
                before_ms: at_ms,
                after_ms: at_ms,
            }],
        }
    }
}

/// The next attempt while rules are applied to it.
struct Plan {
    at_ms: u64,
    steps: Vec<Step>,
}

impl Plan {
    fn new(now_ms: u64) -> Self {
        Self {
            at_ms: now_ms,
            steps: Vec::new(),
        }
    }

    fn set(&mut self, rule: Rule, after_ms: u64) {
        self.set_from(rule, self.at_ms, after_ms);
    }

    fn set_from(&mut self, rule: Rule, before_ms: u64, after_ms: u64) {
        self.at_ms = after_ms;
        self.steps.push(Step {
            rule,
            before_ms,
            after_ms,
        });
    }

    /// A rule that can only make it later, and is silent if it does not.
    fn not_before(&mut self, rule: Rule, earliest_ms: u64) {
        if earliest_ms > self.at_ms {
            self.set(rule, earliest_ms);
        }
    }

    /// Writes the outcome into the state. A rule that only confirms a stored time does not
    /// replace the one that made it.
    fn settle(&self, state: &mut Attempts) {
        let confirmed = state.next_attempt_ms == Some(self.at_ms);
        state.next_attempt_ms = Some(self.at_ms);
        if let Some(step) = self.steps.last()
            && !(confirmed && state.because.is_some())
        {
            state.because = Some(step.rule);
        }
    }

    fn decide(self, alarm: bool) -> Decision {
        Decision {
            next: Next::At(self.at_ms),
            alarm,
            steps: self.steps,
        }
    }
}

fn at_once(mut state: Attempts, rule: Rule, now_ms: u64) -> (Attempts, Decision) {
    let before_ms = state.next_attempt_ms.unwrap_or(now_ms);
    state.stopped = false;
    let mut plan = Plan::new(now_ms);
    plan.set_from(rule, before_ms, now_ms);
    plan.settle(&mut state);
    (state, plan.decide(false))
}

fn count(state: &Attempts) -> u32 {
    let attempts = state.issuance_attempts.unwrap_or(0).max(0);
    u32::try_from(attempts).unwrap_or(u32::MAX)
}

impl Default for RetryPolicy {
    fn default() -> Self {
        Self {
            issuance: Strategy::default(),
            transient: Strategy::transient(),
            throttled: Strategy::throttled(),
            max_attempts: None,
            hints: HintBounds::default(),
            expiry: ExpiryClamp::default(),
            budget: Budget::default(),
            success: SuccessGuard::default(),
            renewal: Renewal::default(),
            restart: Spread::default(),
        }
    }
}

impl Default for Spread {
    fn default() -> Self {
        Self {
            each_ms: 100,
            most_ms: 10 * MINUTE_MS,
        }
    }
}

impl Check for RetryPolicy {
    fn check(&self, found: &mut Mistakes) {
        found.field("issuance", &self.issuance);
        found.field("transient", &self.transient);
        found.field("throttled", &self.throttled);
        if let Some(most) = self.max_attempts {
            found.range(
                "max_attempts",
                most.into(),
                1..=u64::from(MAX_ATTEMPTS),
                "attempts",
            );
        }
        found.field("hints", &self.hints);
        found.field("expiry", &self.expiry);
        found.field("budget", &self.budget);
        found.field("success", &self.success);
        found.field("renewal", &self.renewal);
        found.field("restart", &self.restart);
    }
}

impl Check for Spread {
    fn check(&self, found: &mut Mistakes) {
        found.range("each_ms", self.each_ms, 0..=MAX_DELAY_MS, "ms");
        found.range("most_ms", self.most_ms, 0..=MAX_DELAY_MS, "ms");
    }
}
