use alloc::collections::BTreeMap;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::cell::{Cell, RefCell};

use abide_policy::qos::{
    Arrival, Candidate, Criticality, Decided, PromotionState, Qos, Ruling, Verdict, Vote,
};
use abide_policy::rate::{
    Algorithm, Answer, Bucket, Limit, Mode, Outcome, Overrides, Principal, RateLimit, Resolved,
    Source, Table, Taken,
};

use crate::Component;
use crate::bindings::exports::abide::cmp::admission as wit;
use crate::policy::parsed;

impl wit::Guest for Component {
    type Limiter = Limiter;
    type Quality = Quality;

    fn take(
        bucket: Option<Vec<u8>>,
        limit: wit::Limit,
        cost: u32,
        now_ms: u64,
    ) -> Option<(Vec<u8>, wit::Taken)> {
        let bucket = match bucket {
            Some(octets) => Some(Bucket::decode(&octets).ok()?),
            None => None,
        };
        let limit = limit_of(limit);
        let (bucket, taken) = Bucket::take(bucket, limit, cost, now_ms);
        let taken = wit::Taken {
            admitted: taken.admitted,
            remaining: taken.remaining,
            reset_ms: taken.reset_ms,
            retry_at_ms: taken.retry_at_ms,
            forget_at_ms: bucket.forget_at(limit.rate_ms),
        };
        Some((bucket.encode(), taken))
    }

    fn answer_of(
        limit: wit::Limit,
        mode: wit::Mode,
        taken: Option<wit::Taken>,
        now_ms: u64,
    ) -> wit::Answer {
        let resolved = Resolved {
            limit: limit_of(limit),
            mode: mode_of(mode),
            // Nobody asks where it comes from.
            source: Source::StaticFlag,
            warnings: Vec::new(),
        };
        answer(match taken {
            None => resolved.without_store(now_ms),
            Some(taken) => resolved.answer(Taken {
                admitted: taken.admitted,
                remaining: taken.remaining,
                reset_ms: taken.reset_ms,
                retry_at_ms: taken.retry_at_ms,
            }),
        })
    }

    fn headers(answer: wit::Answer, now_ms: u64) -> Vec<(String, String)> {
        let answer = Answer {
            outcome: match answer.outcome {
                wit::Outcome::Admitted => Outcome::Admitted,
                wit::Outcome::WouldThrottle => Outcome::WouldThrottle,
                wit::Outcome::Throttled => Outcome::Throttled,
            },
            mode: mode_of(answer.mode),
            capacity: answer.capacity,
            remaining: answer.remaining,
            reset_ms: answer.reset_ms,
            retry_at_ms: answer.retry_at_ms,
        };
        let pairs = answer.headers(now_ms).pairs().into_iter();
        pairs
            .map(|(name, value)| (name.to_string(), value))
            .collect()
    }
}

/// The resource `limiter`.
pub(crate) struct Limiter {
    config: RateLimit,
    table: RefCell<Table>,
}

impl Limiter {
    fn principal(&self, caller: &wit::Caller) -> Principal {
        let address = caller.address.as_deref().and_then(|text| text.parse().ok());
        self.config.identify(
            caller.authenticated.as_deref(),
            caller.app.as_deref(),
            address,
        )
    }
}

impl wit::GuestLimiter for Limiter {
    fn create(policy: String) -> Result<wit::Limiter, Vec<wit::Mistake>> {
        let config: RateLimit = parsed(&policy)?;
        Ok(wit::Limiter::new(Self {
            config,
            table: RefCell::default(),
        }))
    }

    fn name(&self, caller: wit::Caller) -> String {
        self.principal(&caller).to_string()
    }

    fn admit(
        &self,
        caller: wit::Caller,
        overrides: Option<wit::Overrides>,
        cost: u32,
        now_ms: u64,
    ) -> wit::Answer {
        let principal = self.principal(&caller);
        let overrides = overrides.as_ref().map(overridden).unwrap_or_default();
        let mut table = self.table.borrow_mut();
        answer(table.decide(&self.config, principal, &overrides, cost, now_ms))
    }

    fn place(
        &self,
        caller: wit::Caller,
        overrides: Option<wit::Overrides>,
        now_ms: u64,
    ) -> wit::Placed {
        let principal = self.principal(&caller);
        let overrides = overrides.as_ref().map(overridden).unwrap_or_default();
        let mut table = self.table.borrow_mut();
        let placed = table.place(&self.config, principal, &overrides, now_ms);
        let limit = placed.resolved.limit;
        let warnings = placed.resolved.warnings.iter();
        wit::Placed {
            principal: placed.name,
            key: placed.key,
            limit: wit::Limit {
                algorithm: match limit.algorithm {
                    Algorithm::Window => wit::Algorithm::Window,
                    Algorithm::Gcra => wit::Algorithm::Gcra,
                },
                capacity: limit.capacity,
                rate_ms: limit.rate_ms,
            },
            mode: to_mode(placed.resolved.mode),
            warnings: warnings.map(ToString::to_string).collect(),
        }
    }

    fn principals(&self) -> u32 {
        u32::try_from(self.table.borrow().len()).unwrap_or(u32::MAX)
    }
}

/// The resource `quality`.
pub(crate) struct Quality {
    config: Qos,
    promotion: Cell<PromotionState>,
}

impl wit::GuestQuality for Quality {
    fn create(policy: String) -> Result<wit::Quality, Vec<wit::Mistake>> {
        let config: Qos = parsed(&policy)?;
        Ok(wit::Quality::new(Self {
            config,
            promotion: Cell::default(),
        }))
    }

    fn admit(&self, arrival: wit::Arrival, active: u64, now_ms: u64) -> wit::Admitted {
        let arrival = Arrival {
            origin: &arrival.origin,
            by_hand: arrival.by_hand,
            criticality: match arrival.criticality {
                wit::Criticality::Low => Criticality::Low,
                wit::Criticality::Medium => Criticality::Medium,
                wit::Criticality::High => Criticality::High,
            },
            not_after_ms: arrival.not_after_ms,
        };
        let admission = self.config.admit(&arrival, active, now_ms);
        wit::Admitted {
            buffered: admission.decided == Decided::Buffered,
            would_buffer: admission.would_be == Decided::Buffered,
            learning: admission.learning,
            reason: admission.reason,
            votes: admission.votes.into_iter().map(vote).collect(),
        }
    }

    fn promote(
        &self,
        candidates: Vec<wit::Candidate>,
        active_by_account: Vec<(String, u64)>,
        active: u64,
        now_ms: u64,
    ) -> wit::Promoted {
        let candidates: Vec<Candidate<'_>> = candidates
            .iter()
            .map(|candidate| Candidate {
                id: &candidate.id,
                account: &candidate.account,
                since_ms: candidate.since_ms,
            })
            .collect();
        let by_account: BTreeMap<&str, u64> = active_by_account
            .iter()
            .map(|(account, active)| (account.as_str(), *active))
            .collect();
        let promotion = &self.config.promotion;
        let (state, promoted) = promotion.promote(
            self.promotion.get(),
            &candidates,
            &by_account,
            active,
            now_ms,
        );
        self.promotion.set(state);
        wit::Promoted {
            // As many as were given, which a list of this interface can count.
            chosen: promoted.chosen.iter().map(|index| *index as u32).collect(),
            rulings: promoted.rulings.into_iter().map(ruling).collect(),
        }
    }

    fn stuck(&self, buffered: u64) -> Option<String> {
        self.config
            .stuck(buffered)
            .map(|problem| problem.to_string())
    }
}

fn vote(vote: Vote) -> wit::Vote {
    wit::Vote {
        policy: vote.policy,
        verdict: match vote.verdict {
            Verdict::Enqueue => wit::Verdict::Enqueue,
            Verdict::Buffer => wit::Verdict::Buffer,
            Verdict::Abstain => wit::Verdict::Abstain,
        },
        force: vote.force,
        reason: vote.reason,
    }
}

fn ruling(ruling: Ruling) -> wit::Ruling {
    wit::Ruling {
        policy: ruling.policy,
        left: ruling.left,
        reason: ruling.reason,
    }
}

fn overridden(given: &wit::Overrides) -> Overrides<'_> {
    Overrides {
        learning: given.learning.as_deref(),
        enforcing: given.enforcing,
        ignoring: given.ignoring,
        capacity: given.capacity.as_deref(),
        rate_seconds: given.rate_seconds.as_deref(),
    }
}

fn answer(answer: Answer) -> wit::Answer {
    wit::Answer {
        outcome: match answer.outcome {
            Outcome::Admitted => wit::Outcome::Admitted,
            Outcome::WouldThrottle => wit::Outcome::WouldThrottle,
            Outcome::Throttled => wit::Outcome::Throttled,
        },
        mode: to_mode(answer.mode),
        capacity: answer.capacity,
        remaining: answer.remaining,
        reset_ms: answer.reset_ms,
        retry_at_ms: answer.retry_at_ms,
    }
}

fn limit_of(limit: wit::Limit) -> Limit {
    Limit {
        algorithm: match limit.algorithm {
            wit::Algorithm::Window => Algorithm::Window,
            wit::Algorithm::Gcra => Algorithm::Gcra,
        },
        capacity: limit.capacity,
        rate_ms: limit.rate_ms,
    }
}

fn mode_of(mode: wit::Mode) -> Mode {
    match mode {
        wit::Mode::Enforced => Mode::Enforced,
        wit::Mode::Learning => Mode::Learning,
    }
}

fn to_mode(mode: Mode) -> wit::Mode {
    match mode {
        Mode::Enforced => wit::Mode::Enforced,
        Mode::Learning => wit::Mode::Learning,
    }
}
