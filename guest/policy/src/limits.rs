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

/// Widest dither of the scheduler's period, in percent to each side. At 100 it could be zero.
pub const MAX_DITHER_PERCENT: u32 = 90;

/// Most tasks in one claim: what one worker can get through within a lease of a minute, and few
/// enough that the others find something too.
pub const MAX_BATCH: u32 = 1000;

/// Most failures of a task before it is a dead letter.
pub const MAX_RETRIES: u32 = 1000;

/// Largest capacity of a rate limit. A million requests in a second is more than a worker
/// serves, and seventeen such counts fit 32 bits.
pub const MAX_CAPACITY: u32 = 1_000_000;

/// Longest span of a rate limit, in seconds: a day.
pub const MAX_RATE_SECONDS: u32 = 86_400;

/// Most principals with a bucket of their own, each of which takes about 300 octets of memory.
pub const MAX_PRINCIPALS: u32 = 1_000_000;

/// Most entries in a list of principals in the configuration. Each request looks through them.
pub const MAX_LISTED: usize = 1000;

/// Longest name of a principal, in octets. Subjects of certificates are seldom longer than 200.
pub const MAX_NAME: usize = 512;

/// Longest name a client may give itself, in octets.
pub const MAX_APP: usize = 128;

/// Characters of a wrong value that are shown.
pub const MAX_SHOWN: usize = 40;

/// Most active orders, or orders in one promotion, that a policy may name.
pub const MAX_ACTIVE: u32 = 1_000_000;

/// Most policies in a chain.
pub const MAX_CHAIN: usize = 32;

/// Most workers that share accounts. Each account is weighed against each of them.
pub const MAX_WORKERS: usize = 1000;

/// Most endpoints of one issuer.
pub const MAX_ENDPOINTS: usize = 200;

/// Longest URL, in octets.
pub const MAX_URL: usize = 2048;

/// Longest pattern, in octets.
pub const MAX_PATTERN: usize = 1024;

/// Most octets of memory that a compiled pattern may take: repetitions of repetitions grow
/// beyond all bounds otherwise.
pub const MAX_PATTERN_MEMORY: usize = 256 * 1024;

/// Deepest nesting of a pattern, since it is read by recursion.
pub const MAX_PATTERN_NESTING: u32 = 50;

/// Most pairs of state sets that a proof about two patterns looks at: a few milliseconds of work.
pub const MAX_PROOF: usize = 500;

/// Most attempts in a forecast: more than fit into a picture.
pub const MAX_FORECAST: usize = 1000;
