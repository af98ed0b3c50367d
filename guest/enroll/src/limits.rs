//! Bounds on one transaction, with the reason for each number.

/// Octets of a transactionID: 128 random bits (RFC 9483, 3.1).
pub const TRANSACTION_ID: usize = 16;

/// Octets of a senderNonce that is made here, and the fewest that a peer may send
/// (RFC 9483, 3.1 and 3.5).
pub const NONCE: usize = 16;

/// Octets of the salt of a MAC: RFC 9045, 3 recommends at least 16.
pub const SALT: usize = 16;

/// Octets of the key that PBMAC1 derives: a digest of its HMAC has as many (RFC 9481, 6.1.2).
pub const PBMAC1_KEY: usize = 32;

/// The longest answer that is accepted. It is the codec's bound, so that the host does
/// not read what the codec would refuse.
pub const RESPONSE: u32 = abide_cmp::limits::MESSAGE as u32;

/// Lines of history that are kept. The first ones tell how it began, the last ones what
/// is going on; what lies between is dropped, so that weeks of polling stay small.
pub const HISTORY: usize = 48;

/// Lines at the start of the history that are never dropped.
pub const HISTORY_HEAD: usize = 8;

/// The longest text of a peer that is kept, in characters.
pub const PEER_TEXT: usize = 400;

/// The longest order and account names, in octets.
pub const NAME: usize = 256;

/// Subject alternative names in one request. Public CAs stop at 100.
pub const SANS: usize = 250;

/// The longest duration of a transaction, in milliseconds: a year. Manual approval takes
/// weeks, not years.
pub const DURATION_MS: u64 = 366 * 24 * 3600 * 1000;

/// The longest wait for one answer, in milliseconds.
pub const REQUEST_TIMEOUT_MS: u64 = 3600 * 1000;

/// How far the CA's messageTime may be from our clock before the history tells it, in
/// seconds: five minutes, as Kerberos and others bear. It decides nothing, since nonces guard
/// against old answers, but explains certificates that are not valid yet.
pub const CLOCK_SKEW_S: u64 = 300;

/// Messages sent in one call. Every one but the last needs an answer that moves the
/// transaction on, and the longest chain of those is request, poll, confirmation, poll.
pub const MESSAGES_PER_CALL: usize = 8;

/// Times that a believed answer is put to a record that somebody else writes too. Each of
/// them writes once for each message, so that one more look is enough as a rule.
pub const RACES: u32 = 3;

/// Transactions in one page of a listing.
pub const PAGE: u32 = 500;

/// Octets of a serial number (RFC 5280, 4.1.2.2).
pub const SERIAL: usize = 20;

/// Octets of the PKCS #10 request of an order. One with a hundred names and a post-quantum key
/// has fewer.
pub const CSR: usize = 64 * 1024;

/// Octets of the subject of an order as text.
pub const SUBJECT: usize = 2048;

/// Octets of the policies that a caller gives.
pub const POLICIES: usize = 256 * 1024;

/// Times that the record of an endpoint is written anew because another worker was faster. All
/// workers that fail at once meet there.
pub const ENDPOINT_RACES: u32 = 16;

/// Overdue tasks that are counted before they are spread. Above that the longest spread is
/// reached with any sensible policy.
pub const OVERDUE: u32 = 100_000;

/// The longest name of a worker, in octets.
pub const WORKER: usize = 128;

/// Overdue tasks that are moved in one commit, each with the guard of its lease: a host takes
/// at least 256 changes.
pub const SPREAD: usize = 100;

/// Lines that quality of service adds to the history of an order: one for each policy of a chain,
/// which has at most 32, and one for what came of it.
pub const NOTES: usize = 40;

/// Octets of such a line. An origin or an account may be named in it.
pub const NOTE: usize = 1024;

/// Octets of what a worker knows of the list of workers: some lists of as many names as there may
/// be workers.
pub const VIEW: usize = 2 * 1024 * 1024;

/// Claims in one call while all that is claimed belongs to others. Each finds at least one account
/// that is not this worker's, and the next call goes on from there.
pub const SHARD_ROUNDS: u32 = 8;

/// The longest wait of a task that met too many others at the record of its endpoint, in
/// milliseconds: they are done within one.
pub const ENDPOINT_BUSY_MS: u64 = 1000;
