//! The bounds of every policy, with the reason for each number.

/// Longest delay a policy may ask for: 100 years of 365.25 days, in milliseconds.
///
/// Far beyond the life of any certificate, and below 2⁴², which leaves the fixed-point arithmetic
/// of [`crate::backoff`] room to multiply without overflow.
pub const MAX_DELAY_MS: u64 = 36_525 * 24 * 60 * 60 * 1000;

/// Shortest base delay: a policy without any delay would be a busy loop against a CA.
pub const MIN_BASE_MS: u64 = 1;

/// Smallest growth per failure, in percent: a constant delay. Below it delays would shrink.
pub const MIN_FACTOR_PERCENT: u32 = 100;

/// Largest growth per failure, in percent: a thousandfold takes one millisecond to 100 years in
/// five steps. More growth than that is a slip of the keyboard.
pub const MAX_FACTOR_PERCENT: u32 = 100_000;
