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

/// Widest jitter, in percent of the delay to each side: the whole of it.
pub const MAX_JITTER_PERCENT: u32 = 100;

/// Most failures in a row a policy may count to before it stops. With any growth at all the cap
/// is reached long before; this only keeps slips of the keyboard out.
pub const MAX_ATTEMPTS: u32 = 1_000_000;

/// Most tokens in a retry budget: a fleet that needs more than a million retries at once has no
/// use for a budget. Twenty bits beside the 42 of a delay fit 64.
pub const MAX_BUDGET: u32 = 1_000_000;

/// Most successes within a window of the success guard, each of which is kept on the order with
/// eight octets.
pub const MAX_SUCCESSES: u32 = 1000;

/// Most attempts to be fitted in before a certificate ends. More would be a busy loop at the end
/// of every certificate.
pub const MAX_EXPIRY_TRIES: u32 = 10;

/// Largest number in a fraction of a lifetime.
pub const MAX_FRACTION: u64 = 1000;
