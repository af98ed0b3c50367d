//! Decisions that follow from a number.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// A sequence of decisions: SplitMix64, which needs no more state than its seed.
#[derive(Clone, Debug)]
pub struct Seed(u64);

impl Seed {
    /// Begins a sequence.
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// A seed that nobody has had before.
    pub fn fresh() -> u64 {
        let since = SystemTime::now().duration_since(UNIX_EPOCH);
        let nanos = since.map_or(0, |since| since.as_nanos());
        Self(nanos as u64 ^ u64::from(std::process::id())).draw() >> 32
    }

    /// The next 64 bits.
    pub fn draw(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number below a bound.
    pub fn below(&mut self, bound: u64) -> u64 {
        self.draw() % bound
    }

    /// A time below a bound.
    pub fn time(&mut self, bound: Duration) -> Duration {
        let micros = u64::try_from(bound.as_micros()).unwrap_or(u64::MAX);
        Duration::from_micros(self.below(micros.max(1)))
    }

    /// One of several things.
    ///
    /// # Panics
    ///
    /// When there is none.
    pub fn one_of<T: Copy>(&mut self, things: &[T]) -> T {
        things[self.below(things.len() as u64) as usize]
    }

    /// A sequence of its own, for something that happens at the same time.
    pub fn fork(&mut self) -> Self {
        Self(self.draw())
    }
}
