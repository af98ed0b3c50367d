//! The bounds of the gateway, each with the reason for the number. Those that operators may want
//! otherwise are defaults of the configuration.

use std::time::Duration;

/// Octets of a message on its way to a CA, unless configured otherwise. A request with an ML-DSA
/// key and its chain has some twenty thousand.
pub const BODY: usize = 64 << 10;

/// The most that may be configured for it: the codec reads no more.
pub const MOST_BODY: usize = 1 << 20;

/// Octets of an answer of a CA, unless configured otherwise: a chain, some CRLs in a genp. It is
/// held in memory until it is whole.
pub const RESPONSE: usize = 1 << 20;

/// Octets of the head of a request or an answer. Hyper wants 8 KiB at least, and reads a hundred
/// header fields at most.
pub const HEAD: usize = 16 << 10;

/// Time from the first octet of a request to the end of its head, unless configured otherwise.
pub const HEAD_TIME: u64 = 10;

/// Time for the body after that, unless configured otherwise: 64 KiB over the slowest modem.
pub const BODY_TIME: u64 = 15;

/// How long a connection may stay without a request, unless configured otherwise. Clients that
/// poll more seldom connect anew.
pub const IDLE_TIME: u64 = 60;

/// How long a client may take nothing of its answer.
pub const WRITE_TIME: Duration = Duration::from_secs(15);

/// How long a connection is still read from after it was closed here, and how many octets: who
/// sends more than was wanted should get the answer that says so.
pub const LINGER: (Duration, usize) = (Duration::from_secs(1), 1 << 20);

/// How long a TLS handshake may take.
pub const HANDSHAKE_TIME: Duration = Duration::from_secs(10);

/// Connections of clients at a time, unless configured otherwise. Each holds some twenty
/// kibioctets and a message; more wait in the kernel's queue.
pub const CONNECTIONS: u32 = 1024;

/// Connections from one address (one /64 of IPv6) at a time, unless configured otherwise: a
/// quarter of all, so that no single one locks the others out.
pub const CONNECTIONS_PER_ADDRESS: u32 = 256;

/// Requests on one connection, after which it is closed: who stays for ever is never balanced
/// over several gateways.
pub const REQUESTS_PER_CONNECTION: u64 = 100_000;

/// Time for a CA to answer, unless configured otherwise. Longer waits are what polling is for.
pub const ANSWER_TIME: u64 = 60;

/// Time for a connection to a CA to come about, TLS included.
pub const CONNECT_TIME: Duration = Duration::from_secs(5);

/// How long an unused connection to a CA is kept. Servers close theirs after five seconds and
/// more; a request on a connection that is just being closed would be lost.
pub const KEPT_TIME: Duration = Duration::from_secs(4);

/// Unused connections kept to each CA.
pub const KEPT: usize = 128;

/// Failures in a row after which an upstream is left alone, unless configured otherwise.
pub const FAILURES: u32 = 3;

/// For how long it is left alone at first, and at most; it doubles in between. In seconds.
pub const PAUSE: (u64, u64) = (1, 30);

/// Processor time of one call of the sandbox, unless configured otherwise, in milliseconds. The
/// costliest message of 1 MiB takes fifty.
pub const SANDBOX_TIME: u64 = 1000;

/// Memory of one instance, unless configured otherwise, in MiB.
pub const SANDBOX_MEMORY: u64 = 64;

/// Hops that are looked at in X-Forwarded-For, from the last on. Nobody has more proxies of
/// their own in a row.
pub const HOPS: usize = 16;

/// Principals with a label of their own in the metrics; all others together are `others`.
pub const LABELLED: usize = 100;

/// Octets of a name that a client claims and that is charged for its requests.
pub const CLAIMED_NAME: usize = 128;

/// Time for one request to the admin address, and its connections at a time: a scraper and a
/// probe, and somebody who looks.
pub const ADMIN: (Duration, usize) = (Duration::from_secs(10), 32);

/// After an error of accept(2), which is mostly a lack of descriptors.
pub const ACCEPT_GAP: Duration = Duration::from_millis(20);
