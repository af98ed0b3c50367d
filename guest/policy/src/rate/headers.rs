//! What a limited answer tells its client.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use super::{Answer, Mode, Outcome};
use crate::time::{HttpDate, SECOND_MS};

/// The headers of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Headers {
    /// `X-RateLimit-Capacity`: requests allowed within the span.
    pub capacity: u32,
    /// `X-RateLimit-Remaining`: requests left.
    pub remaining: u32,
    /// `X-RateLimit-Reset`: when the bucket is full again, later than the answer's `Date`.
    pub reset: HttpDate,
    /// `X-RateLimit-Learning`: whether the limit is not enforced.
    pub learning: bool,
    /// `Retry-After`, in seconds, at least one: on 429 only.
    pub retry_after_s: Option<u64>,
}

impl Answer {
    /// The headers, for an answer whose `Date` is made from the same `now_ms`.
    ///
    /// Dates of HTTP have whole seconds, and `Date` is rounded down: everything here is rounded
    /// up, so that whoever comes back when he is told finds room.
    pub fn headers(&self, now_ms: u64) -> Headers {
        let date_s = now_ms / SECOND_MS;
        let reset_s = self.reset_ms.div_ceil(SECOND_MS).max(date_s + 1);
        let retry_after_s = self
            .retry_at_ms
            .filter(|_| self.outcome == Outcome::Throttled)
            .map(|at| at.saturating_sub(now_ms).div_ceil(SECOND_MS).max(1));
        Headers {
            capacity: self.capacity,
            remaining: self.remaining,
            reset: HttpDate(reset_s.saturating_mul(SECOND_MS)),
            learning: self.mode == Mode::Learning,
            retry_after_s,
        }
    }
}

impl Headers {
    /// Names and values as they go over the wire.
    pub fn pairs(&self) -> Vec<(&'static str, String)> {
        let mut pairs = Vec::from([
            ("X-RateLimit-Capacity", format!("{}", self.capacity)),
            ("X-RateLimit-Remaining", format!("{}", self.remaining)),
            ("X-RateLimit-Reset", self.reset.to_string()),
            ("X-RateLimit-Learning", format!("{}", self.learning)),
        ]);
        if let Some(seconds) = self.retry_after_s {
            pairs.push(("Retry-After", format!("{seconds}")));
        }
        pairs
    }
}
