//! Every bound on what a peer can make this crate do, with the reason for the number.

/// The longest message that is decoded, in octets. Real messages with post-quantum
/// chains stay below 100 KiB; OpenSSL's client stops at 100 KiB.
pub const MESSAGE: usize = 1 << 20;

/// Deviations from DER that are listed with their places. A peer with another encoder may
/// deviate in every element; nobody reads more than these.
pub const TOLERATIONS: usize = 64;

/// Octets that are read again to list them: each listed deviation costs one more reading.
pub const REREAD: usize = 1 << 20;

/// Messages inside each other. An RA's batch of messages with added protection needs two
/// (RFC 9483, 5.2.2).
pub const NESTING: usize = 4;

/// The longest transactionID, nonce or key identifier, in octets. RFC 9483 asks for
/// 16 octets and peers send up to 64.
pub const IDENTIFIER: usize = 64;

/// The longest INTEGER whose value matters, in octets. Serial numbers have 20 at most
/// (RFC 5280, 4.1.2.2).
pub const INTEGER: usize = 32;

/// The longest OBJECT IDENTIFIER, in octets. The longest in use stay below 32, and those that
/// hold a UUID need 19.
pub const OID: usize = 128;

/// Elements of any SEQUENCE OF or SET OF. The longest seen in the field are extraCerts
/// with some ten certificates.
pub const ELEMENTS: usize = 256;

/// Extensions of one certificate or request. Real ones have some ten; each is compared with
/// all before it.
pub const EXTENSIONS: usize = 64;

/// Relative distinguished names in a Name.
pub const RDNS: usize = 64;

/// Attributes of one relative distinguished name: nearly always one. Two RDNs are compared
/// attribute by attribute in any order.
pub const RDN_ATTRIBUTES: usize = 16;

/// The longest string in a name that is read letter by letter, in octets; longer ones are
/// compared as they are, and shown in hexadecimal. RFC 5280, A.1 allows 64 characters in most attributes.
pub const NAME_TEXT: usize = 4096;

/// Iterations of a password-based one-way function that are carried out. OpenSSL
/// accepts up to 100 000; without a cap 2³¹ − 1 keep a core busy for minutes. Divided by
/// [`WIDE_HASH_COST`] for SHA-384 and SHA-512.
pub const ITERATIONS: u32 = 100_000;

/// How much longer a short input takes with SHA-384 and SHA-512 than with the others. It
/// divides the bounds on iterations, which are meant as time.
pub const WIDE_HASH_COST: u32 = 2;

/// Fewest iterations that are accepted: RFC 9810, 5.1.3.1 demands at least 100.
pub const MIN_ITERATIONS: u32 = 100;

/// Applications of PBKDF2's pseudorandom function that are carried out: iterations times
/// the blocks of the key. It costs two hashes, so that the bound is twice that of
/// [`ITERATIONS`] in time. RFC 9579 and its implementations use 2048 to 10 000. Divided by
/// [`WIDE_HASH_COST`] as well.
pub const PBKDF2_APPLICATIONS: u32 = 100_000;

/// The longest salt of a MAC, in octets.
pub const SALT: usize = 128;

/// The shortest MAC key that a peer may choose, in octets: RFC 9579, 5 demands 20. With
/// a key of one octet, anybody could forge a message by trying all 256.
pub const MAC_KEY_MIN: usize = 20;

/// The longest MAC key that is derived, in octets: a block of SHA-512, which is the
/// longest that HMAC uses as it is.
pub const MAC_KEY: usize = 128;

/// The longest kemContext, in octets. It is for the parameters of a KEM, of which none
/// has any today.
pub const KEM_CONTEXT: usize = 1024;

/// The longest salt of RSASSA-PSS, in octets. No key that is used has room for more.
pub const PSS_SALT: usize = RSA_MODULUS_BITS / 8;

/// Certificates that are considered while a path is built.
pub const PATH_CANDIDATES: usize = 64;

/// Certificates in a path, the trust anchor included.
pub const PATH_LENGTH: usize = 10;

/// Signatures that are verified for one message, while its signer and a path to an anchor are
/// sought. Cross-certified loops would otherwise make the search explode; a signer with a
/// handful of cross certificates needs ten.
pub const PATH_SIGNATURES: usize = 32;

/// Octets that are hashed for those signatures, so that the longest message is not hashed for
/// every certificate under its sender's name.
pub const SIGNED_OCTETS: usize = 4 << 20;

/// Octets of names that are looked at for the same purpose, counted once for each comparison.
/// A certificate with a hundred hosts under a hundred nameConstraints needs a fifth.
pub const NAME_OCTETS: usize = 2 << 20;

/// Characters of a name that an error message shows.
pub const SHOWN: usize = 256;

/// The largest RSA modulus that is used, in bits.
pub const RSA_MODULUS_BITS: usize = 8192;

/// The smallest public exponent of RSA: it is odd, and 1 would change nothing.
pub const RSA_EXPONENT_MIN: u64 = 3;

/// The largest public exponent of RSA. Nearly all are 65537; the time of a verification grows
/// with it, and other libraries have the same bound.
pub const RSA_EXPONENT: u64 = (1 << 33) - 1;

/// The smallest RSA modulus that is believed, in bits. RFC 9481, 7.1 counts less than
/// 2048 as too weak.
pub const RSA_MODULUS_MIN_BITS: usize = 2048;

/// The longest CRL that is described, in octets. Public CAs publish CRLs of several MiB.
pub const CRL: usize = 8 << 20;

/// Entries of a CRL that are described. All are read and counted; a million of them would
/// fill the memory that a component has.
pub const CRL_ENTRIES: usize = 256;

/// Messages inside a message that are described; the rest is shown as octets. Batches of an
/// RA have some ten, and 1 MiB of the smallest would be described as 30.
pub const DESCRIBED_MESSAGES: usize = 64;

/// Octets of names that are compared with each other while rules are checked. A sender of
/// half a mebioctet and the subjects of 256 certificates would take seconds.
pub const COMPARED_NAMES: usize = 256 << 10;

/// Rules broken by one message that are told. A message of two thousand faulty parts is no
/// clearer for the rest.
pub const FINDINGS: usize = 256;

/// Algorithms in the parameters of each other that are described. A MAC whose key is
/// derived by PBKDF2 with an HMAC has three.
pub const ALGORITHMS: usize = 4;

/// Elements of a structure that is described. Each gives some dozens of octets of JSON, and
/// takes several times as many until it is written. A message with a hundred certificates
/// has twelve thousand.
pub const DESCRIBED: usize = 1 << 15;
