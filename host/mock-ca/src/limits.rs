//! Every bound of the CA, with the reason for the number.

use std::time::Duration;

/// The longest request body, in octets: what the decoder accepts at most.
pub(crate) const REQUEST: usize = abide_cmp::limits::MESSAGE;

/// Transactions that are remembered. A trial has tens, a load test thousands; each
/// takes a few KiB.
pub(crate) const TRANSACTIONS: usize = 4096;

/// Octets of messages that are remembered over all transactions.
pub(crate) const REMEMBERED_OCTETS: usize = 64 << 20;

/// Answers that are remembered within one transaction: the first and the latest. A
/// client repeats its last message; more are for duplicates that the network delays.
pub(crate) const REMEMBERED_ANSWERS: usize = 8;

/// Iterations of the password-based MAC of an answer: enough to be realistic, and below
/// the 2047 that some peers accept at most.
pub(crate) const MAC_ITERATIONS: u32 = 1000;

/// Iterations of PBKDF2 before a private key is wrapped for who knows the secret: OpenSSL's
/// default, and as much as a trial needs.
pub(crate) const PASSWORD_ITERATIONS: u32 = 10_000;

/// Octets of a nonce or salt (RFC 9483, 3.1 asks for 128 bits).
pub(crate) const NONCE: usize = 16;

/// Octets of a serial number: beyond guessing, and below the 20 of RFC 5280, 4.1.2.2.
pub(crate) const SERIAL: usize = 16;

/// How often a random number is drawn until it is a private key. One in 2³² is not.
pub(crate) const KEY_DRAWS: usize = 8;

const DAY: u64 = 24 * 60 * 60;

/// Validity of the root and of the CMP signer: ten years, longer than any trial.
pub(crate) const CA_VALIDITY: Duration = Duration::from_secs(3650 * DAY);

/// Validity of an issued certificate: short enough for renewal to be worth trying.
pub(crate) const VALIDITY: Duration = Duration::from_secs(90 * DAY);

/// Seconds until the next CRL: as long as a certificate may be used without looking again.
pub(crate) const CRL_VALIDITY: i64 = 7 * 24 * 60 * 60;

/// How late a late answer is: longer than a client would wait for a packet to be sent again, and
/// shorter than it waits for an answer.
pub(crate) const LATE: Duration = Duration::from_secs(2);

/// Retry-After of a server that is overloaded on purpose, in seconds.
pub(crate) const RETRY_AFTER: &str = "1";

/// Octets of the transactionID that a line of the log shows: enough to tell apart.
pub(crate) const LOGGED_ID: usize = 4;
