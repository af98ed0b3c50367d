//! The bounds of the service, each with the reason for the number.

use std::time::Duration;

/// Bytes of a configuration file: a thousand issuers fit many times over.
pub const CONFIG_FILE: usize = 1 << 20;

/// Bytes of a request's body. A hundred names and a request with the largest key take some ten
/// thousand.
pub const BODY: usize = 1 << 20;

/// Bytes of a PKCS #10 request. One with an ML-DSA key and a hundred names has some ten thousand.
pub const CSR: usize = 64 << 10;

/// Names in one certificate; CAs of the public web allow as many.
pub const SANS: usize = 100;

/// Bytes of one name. A DNS name has at most 253, a URI may be longer.
pub const SAN: usize = 512;

/// Bytes of a subject: some ten attributes with their values.
pub const SUBJECT: usize = 1024;

/// Bytes of the names that a client chooses: accounts, applications, origins, keys.
pub const NAME: usize = 128;

/// Bytes of a sentence by which somebody explains what they do.
pub const SENTENCE: usize = 512;

/// Entries on one page of a listing, if nothing is said.
pub const PAGE: u32 = 50;

/// The most entries on one page: each order brings its chain through the sandbox.
pub const MOST_PAGE: u32 = 200;

/// Bytes of a page's cursor: an id.
pub const CURSOR: usize = 256;

/// How far into the future an explanation looks, in milliseconds: ten days.
pub const FORECAST_MS: u64 = 10 * 24 * 3600 * 1000;

/// Connections at a time. Each holds some ten kibibytes; more wait until one is closed.
pub const CONNECTIONS: usize = 512;

/// How long a client may take for its headers: nobody occupies a connection without asking for
/// anything.
pub const HEADER_TIME: Duration = Duration::from_secs(10);

/// How long a TLS handshake may take.
pub const HANDSHAKE_TIME: Duration = Duration::from_secs(10);

/// How long one request may take, its body included. The longest wait is for a store that is
/// being written to by others.
pub const REQUEST_TIME: Duration = Duration::from_secs(30);

/// Bytes of all headers of a request.
pub const HEADERS: usize = 16 << 10;

/// Instances of the component that are kept from workers, so that the API answers while all
/// tasks wait for a CA.
pub const API_INSTANCES: u32 = 16;

/// Between two claims, so that a stream of single orders does not become a stream of single
/// claims.
pub const CLAIM_GAP: Duration = Duration::from_millis(20);

/// The longest a worker sleeps without a look, whatever the schedule says: a store that was
/// replaced under it is noticed.
pub const LONGEST_SLEEP: Duration = Duration::from_secs(60);

/// The first wait after the store failed, and the longest; it doubles in between.
pub const STORE_AWAY: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(30));

/// Deliveries in one claim.
pub const DELIVERIES: u32 = 16;

/// How long a claimed delivery is held, besides the time of its hook.
pub const DELIVERY_LEASE: Duration = Duration::from_secs(60);

/// The first wait after a delivery failed, and the longest; it doubles in between.
pub const DELIVERY_RETRY: (Duration, Duration) =
    (Duration::from_secs(10), Duration::from_secs(3600));

/// Bytes that are kept of what a hook says.
pub const HOOK_WORDS: usize = 1024;

/// Between two looks for certificates that were issued and never delivered, because the worker
/// died in between.
pub const RECONCILE: Duration = Duration::from_secs(600);

/// Between two searches for zombies, at least and at most: each reads every order.
pub const ZOMBIE_SEARCH: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(300));

/// Orders that one call hydrates; whoever has more calls again.
pub const HYDRATED: usize = 1000;

/// Records of a kind and orders of a state that an overview counts.
pub const COUNTED: u32 = 100_000;

/// Orders that are counted by state to decide about a new one; no threshold is higher.
pub const COUNTED_STATE: u32 = 1_000_001;

/// How long one look of the promoter may take before another worker does it: some hundred
/// commits.
pub const PROMOTION_LEASE: Duration = Duration::from_secs(10);

/// Buffered orders that one look of the promoter considers: the oldest ones.
pub const CANDIDATES: usize = 2000;

/// Orders that one look of the promoter starts at most, so that it is done within its lease.
pub const PROMOTED: usize = 500;

/// Between two looks at what operators set about limits: it is effective within a second.
pub const OVERRIDES_LOOK: Duration = Duration::from_millis(500);

/// How old a look may be that limits are enforced by: ten looks.
pub const OVERRIDES_AGE: Duration = Duration::from_secs(5);

/// Principals about whose limits operators set something.
pub const OVERRIDES: usize = 10_000;

/// Times that a setting is written because somebody else set it at the same time.
pub const OVERRIDES_RACES: u32 = 3;

/// Principals with metrics of their own; each is some lines for every scrape.
pub const METRIC_PRINCIPALS: usize = 1000;

/// Accounts that are remembered to be others'. With more of them some are found out again.
pub const FOREIGN_ACCOUNTS: usize = 100_000;

/// Times that the list of workers is read anew in one heartbeat because another worker changed it.
pub const EPOCH_RACES: u32 = 5;

/// Between two tries of a worker that may serve no account.
pub const NO_SHARE: Duration = Duration::from_secs(1);

/// The largest capacity that is set while the service runs, and the longest span in seconds: what
/// the component allows in a configuration.
pub const CAPACITY: u32 = 1_000_000;
/// See [`CAPACITY`].
pub const RATE_SECONDS: u32 = 86_400;
