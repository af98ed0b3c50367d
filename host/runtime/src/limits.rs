//! The bounds of this host, each with the reason for the number. What a guest asks for is clamped
//! to them, what it hands over is refused beyond them.

use std::time::Duration;

/// Linear memory of one instance, unless configured otherwise. The component needs about one
/// mebibyte for an ordinary message; the rest is room for the largest answer and its copies.
pub const MEMORY: usize = 64 << 20;

/// Guest processor time of one call, unless configured otherwise. A verification takes
/// milliseconds; whatever computes for five seconds does not come back.
pub const CALL_DEADLINE: Duration = Duration::from_secs(5);

/// How often a running guest is looked at: the granularity of the deadline, and the longest time
/// a guest keeps an executor thread before it lets others run.
pub const TICK: Duration = Duration::from_millis(10);

/// How many ticks without any call the ticker goes on before it sleeps: a busy host does not wake
/// it for every call, an idle one does not pay for it.
pub const IDLE_TICKS: u32 = 100;

/// Calls that run at the same time, unless configured otherwise. An instance that waits for an
/// answer holds about 80 KiB, so this is a bound on memory, not on threads; reserving room for them
/// costs a starting process a millisecond per hundred.
pub const INSTANCES: u32 = 64;

/// Instances that live as long as what they remember: limiters, routers and the like.
pub const RESIDENT_INSTANCES: u32 = 64;

/// Instances that are kept ready between calls. More than an executor has threads is rarely of use.
pub const IDLE_INSTANCES: usize = 16;

/// Core modules in one component: the program and the two shims that tie its imports to it.
pub const CORE_INSTANCES_PER_COMPONENT: u32 = 4;

/// Tables in one component: that of the program and that of the shim.
pub const TABLES_PER_COMPONENT: u32 = 4;

/// Entries of one table. The program's functions that are called by address; it has some hundreds.
pub const TABLE_ELEMENTS: usize = 10_000;

/// Random bytes in one call: nonces and identifiers are 16 bytes long.
pub const RANDOM_BYTES: u64 = 4096;

/// Bytes of an event's text. Longer ones are cut: a log line, not a dump.
pub const EVENT_TEXT: usize = 4096;

/// Body of one record. A transaction with its chain, its last request and its history takes some
/// ten kibibytes; the largest CMP message that is accepted has to fit with room to spare.
pub const RECORD_BODY: usize = 1 << 20;

/// Bytes of each text in an envelope. Identifiers are hexadecimal digests, names of orders are
/// names of people and machines.
pub const ENVELOPE_TEXT: usize = 1024;

/// Changes in one commit: a hundred overdue tasks that are spread together, with the guards of
/// their leases, and room to spare.
pub const CHANGES: usize = 256;

/// Records in one claim: the longest batch that a policy may ask for.
pub const CLAIM_RECORDS: u32 = 1000;

/// Accounts that one claim leaves out. A fleet that shares out accounts has some thousands; of
/// more, tasks are claimed and handed back.
pub const CLAIM_EXCLUDED: usize = 100_000;

/// The longest lease, whatever the guest asks for: who is silent for a day is dead.
pub const LEASE_MS: u64 = 24 * 3600 * 1000;

/// Records that are counted at once. A count is for pacing and gauges, for which a million and
/// more are the same.
pub const COUNT_RECORDS: u32 = 1_000_000;

/// Records on one page of a listing.
pub const PAGE_RECORDS: u32 = 1000;

/// Bytes of the bodies on one page: it is copied into the guest's memory. A page always has room
/// for one record.
pub const PAGE_BYTES: usize = 8 << 20;

/// How long a write waits for another process that holds the store. A commit takes milliseconds;
/// who waits longer than this waits for somebody who hangs.
pub const STORE_BUSY: Duration = Duration::from_secs(10);

/// Between two tries at a store that others are just opening, which takes them milliseconds.
pub const STORE_RETRY: Duration = Duration::from_millis(2);

/// Commits that share one flush. More come with the next one: the first of them must not wait for
/// all the others.
pub const GROUP: usize = 256;

/// Connections to a database server, unless configured otherwise. One carries some thousand short
/// commits a second, and a server has a hundred of them for all its clients.
pub const STORE_CONNECTIONS: usize = 8;

/// How long a caller waits for a free one of them: longer than a slow commit, shorter than a lease.
pub const STORE_TURN: Duration = Duration::from_secs(20);

/// Time for the database server to answer one call of the store, with everything it has to do for
/// it. A claim of a thousand records takes some ten milliseconds.
pub const STORE_ANSWER: Duration = Duration::from_secs(20);

/// How long the server itself works on one statement: it gives up before we do, and says why.
pub const STORE_STATEMENT: Duration = Duration::from_secs(15);

/// How long the server keeps the locks of a client that fell silent in a transaction, and how long
/// data on the way to a server may stay unconfirmed.
pub const STORE_SILENCE: Duration = Duration::from_secs(30);

/// How often a transaction is tried that lost to another one by a deadlock or by a race for a new
/// record. Locks are taken in one order, so once is rare.
pub const STORE_TRIES: u32 = 8;

/// An answer's body, whatever the guest asks for: it is copied into the guest's memory.
pub const RESPONSE_BYTES: u32 = 16 << 20;

/// One exchange, whatever the guest asks for. Longer waits are what polling is for.
pub const EXCHANGE_TIME: Duration = Duration::from_secs(600);

/// Time for a connection to come about, TLS included. What takes longer is not there.
pub const CONNECT_TIME: Duration = Duration::from_secs(10);

/// Unused connections kept per endpoint: one client polls one CA over one connection.
pub const IDLE_CONNECTIONS: usize = 4;

/// Iterations of the one-way function of a password-based MAC: OpenSSL refuses more as well, and
/// a message must not cost its reader seconds.
pub const PBM_ITERATIONS: u32 = 100_000;

/// Iterations of PBKDF2 in PBMAC1: above what is recommended for passwords today, below a second.
pub const PBKDF2_ITERATIONS: u32 = 1_000_000;

/// Octets of a salt. RFC 9810, 5.1.3.1 recommends no less than 8; 16 are usual.
pub const SALT: usize = 256;

/// Octets of a key derived by PBKDF2: no HMAC uses more than a block of its hash, at most 144.
pub const DERIVED_KEY: u32 = 144;

/// Iterations above which a derivation is moved to a thread that may block.
pub const INLINE_ITERATIONS: u32 = 10_000;

/// Iterations of PBKDF2 for a secret's fingerprint. The fingerprint stands in the store beside a
/// request that is protected by the same secret with some hundred iterations of a hash: whoever
/// can read both would guess at the request, which is cheaper.
pub const FINGERPRINT_ITERATIONS: u32 = 1000;

/// Octets of a key file. An RSA key of 8192 bits in PEM has six and a half thousand.
pub const KEY_FILE: usize = 64 << 10;

/// Octets that go into the KDF of a key agreement besides the secret: an algorithm, a length and
/// a nonce as long as the peer likes, of which 64 are usual.
pub const KDF_INFO: usize = 1024;

/// Octets of a wrapped content-encryption key: the longest of AES has 32, and its wraps add at
/// most two blocks.
pub const WRAPPED_KEY: usize = 64;

/// Iterations of PBKDF2 for the passphrase of a key file that is written: what OWASP recommends
/// for HMAC with SHA-256, a fifth of a second.
pub const KEY_FILE_ITERATIONS: u32 = 600_000;

/// Octets of the name of a key that is made here: file names end at 255.
pub const KEY_NAME: usize = 200;

/// Made keys that are held in memory. One takes some kibibytes; the others are read again.
pub const MADE_KEYS: usize = 10_000;

/// How long a limiter waits for its store: longer than a store on the same network takes, shorter
/// than anybody notices.
pub const COUNTERS_PATIENCE: Duration = Duration::from_millis(100);

/// The first time in which a store that did not answer is not asked, and the longest; it doubles
/// in between.
pub const COUNTERS_AWAY: (Duration, Duration) =
    (Duration::from_millis(100), Duration::from_secs(1));

/// Tries against others who take from the same bucket, or change the same setting.
pub const COUNTERS_RACES: usize = 32;

/// Callers whose settings are remembered. Each takes some hundred octets.
pub const COUNTERS_BELIEVED: usize = 10_000;

/// How old the settings of a store of records may be: they are effective within a second.
pub const COUNTERS_SETTINGS_AGE: Duration = Duration::from_millis(500);

/// Between two searches for buckets of which nothing counts any longer.
pub const COUNTERS_SWEEP: Duration = Duration::from_secs(60);

/// Buckets that are forgotten at once.
pub const COUNTERS_SWEPT: u32 = 200;
