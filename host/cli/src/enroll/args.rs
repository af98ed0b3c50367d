//! The command line of `abide enroll`: the options of `openssl cmp` where it has them.

use std::path::PathBuf;
use std::time::Duration;

use abide_host::wit::transactions::Deviations;
use clap::{Args, ValueEnum};

use crate::exit;
use crate::names::{self, Serial};
use crate::output::Format;
use crate::secret::Source;

/// Ten years in seconds: a longer time is a slip of the finger.
const LONGEST: u64 = 10 * 366 * 24 * 3600;

/// Obtain, renew or revoke one certificate over CMP, or ask the PKI for information.
#[derive(Args, Clone, Debug)]
#[command(after_help = exit::HELP)]
pub(crate) struct Enroll {
    /// What is asked for: ir and cr for a key and a subject, p10cr for a PKCS #10 request, kur to
    /// renew --cert, rr to revoke, genm for information
    #[arg(long, value_enum)]
    pub(crate) cmd: Cmd,
    /// The CMP endpoint; http:// when no scheme is given
    #[arg(long, value_name = "URL", value_parser = names::server_url)]
    pub(crate) server: String,
    /// The CA's distinguished name, as /CN=…/O=…
    #[arg(long, value_name = "DN", value_parser = names::distinguished_name)]
    pub(crate) recipient: Option<String>,

    /// The name under which the CA knows the shared secret
    #[arg(long = "ref", value_name = "REF", help_heading = "Protection")]
    pub(crate) reference: Option<String>,
    /// The shared secret: pass:SECRET, env:VARIABLE, file:PATH (first line) or stdin
    #[arg(long, value_name = "SRC", help_heading = "Protection")]
    pub(crate) secret: Option<Source>,
    /// How a MAC is made of the shared secret; answers may be protected in either way
    #[arg(
        long,
        value_enum,
        default_value_t,
        value_name = "MAC",
        help_heading = "Protection"
    )]
    pub(crate) mac: Mac,
    /// Iterations of the MAC's one-way function
    #[arg(long, value_name = "N", default_value_t = 500, help_heading = "Protection",
          value_parser = clap::value_parser!(u32).range(100..=100_000))]
    pub(crate) pbm_iterations: u32,
    /// The certificate that signs requests; further certificates of the file are its chain
    #[arg(
        long,
        value_name = "FILE",
        help_heading = "Protection",
        requires = "key"
    )]
    pub(crate) cert: Option<PathBuf>,
    /// The private key of --cert
    #[arg(long, value_name = "FILE", help_heading = "Protection")]
    pub(crate) key: Option<PathBuf>,
    /// The passphrase of --key and --newkey, given like --secret
    #[arg(long, value_name = "SRC", help_heading = "Protection")]
    pub(crate) keypass: Option<Source>,
    /// Certificates that lead from --cert towards a root
    #[arg(long, value_name = "FILE", num_args = 1.., help_heading = "Protection")]
    pub(crate) extracerts: Vec<PathBuf>,

    /// Trust anchors for the CA's messages
    #[arg(long, value_name = "FILE", num_args = 1.., help_heading = "Trust")]
    pub(crate) trusted: Vec<PathBuf>,
    /// Trust anchors for the new certificate; those of --trusted when absent
    #[arg(long, value_name = "FILE", num_args = 1.., help_heading = "Trust")]
    pub(crate) out_trusted: Vec<PathBuf>,
    /// Certificates that help to build paths and are not trusted
    #[arg(long, value_name = "FILE", num_args = 1.., help_heading = "Trust")]
    pub(crate) untrusted: Vec<PathBuf>,
    /// Believe SHA-1 in signatures and MACs, for a CA that knows nothing else
    #[arg(long, help_heading = "Trust")]
    pub(crate) allow_sha1: bool,
    /// Accept what this CA does against the rules; several with commas
    #[arg(
        long,
        value_name = "NAME",
        value_enum,
        value_delimiter = ',',
        help_heading = "Trust"
    )]
    pub(crate) allow: Vec<Allowed>,
    /// Trust anchors for an https server; the system's when absent
    #[arg(long, value_name = "FILE", num_args = 1.., help_heading = "Trust")]
    pub(crate) tls_trusted: Vec<PathBuf>,
    /// The certificate shown to an https server
    #[arg(
        long,
        value_name = "FILE",
        requires = "tls_key",
        help_heading = "Trust"
    )]
    pub(crate) tls_cert: Option<PathBuf>,
    /// The private key of --tls-cert
    #[arg(
        long,
        value_name = "FILE",
        requires = "tls_cert",
        help_heading = "Trust"
    )]
    pub(crate) tls_key: Option<PathBuf>,

    /// The PKCS #10 request, for p10cr
    #[arg(long, value_name = "FILE", help_heading = "The certificate")]
    pub(crate) csr: Option<PathBuf>,
    /// The subject, as /CN=…/O=…, for ir and cr; for kur that of --cert when absent
    #[arg(long, value_name = "DN", value_parser = names::distinguished_name,
          help_heading = "The certificate")]
    pub(crate) subject: Option<String>,
    /// Alternative names, separated by commas: DNS names, IP and mail addresses, URIs
    #[arg(long, value_name = "LIST", help_heading = "The certificate")]
    pub(crate) sans: Option<String>,
    /// The key to be certified; a P-256 key is made there when the file is absent. For kur the
    /// key of --cert is certified again when this option is absent. With --popo raVerified a
    /// public key will do
    #[arg(long, value_name = "FILE", help_heading = "The certificate")]
    pub(crate) newkey: Option<PathBuf>,
    /// Let the PKI make the key; it comes encrypted with the certificate, for the shared secret
    /// or the certificate that protects the request
    #[arg(
        long,
        help_heading = "The certificate",
        requires = "newkeyout",
        conflicts_with = "newkey"
    )]
    pub(crate) centralkeygen: bool,
    /// The kind of key that the PKI should make; it decides when absent
    #[arg(
        long,
        value_enum,
        value_name = "TYPE",
        help_heading = "The certificate",
        requires = "centralkeygen"
    )]
    pub(crate) newkeytype: Option<KeyType>,
    /// Where the private key goes that the PKI makes
    #[arg(
        long,
        value_name = "FILE",
        help_heading = "The certificate",
        requires = "centralkeygen"
    )]
    pub(crate) newkeyout: Option<PathBuf>,
    /// The passphrase that encrypts --newkeyout, given like --secret
    #[arg(
        long,
        value_name = "SRC",
        help_heading = "The certificate",
        requires = "newkeyout"
    )]
    pub(crate) newkeypass: Option<Source>,
    /// How the possession of the key is proved
    #[arg(long, value_enum, value_name = "METHOD", default_value_t = Popo::Signature,
          help_heading = "The certificate", allow_negative_numbers = true)]
    pub(crate) popo: Popo,
    /// Ask the CA to do without a confirmation
    #[arg(long, help_heading = "The certificate")]
    pub(crate) implicit_confirm: bool,

    /// The certificate profile that is asked for by name
    #[arg(
        long,
        value_name = "NAME",
        default_value = "",
        hide_default_value = true,
        help_heading = "The certificate"
    )]
    pub(crate) profile: String,

    #[command(flatten)]
    pub(crate) authority: AuthorityArgs,
    #[command(flatten)]
    pub(crate) revocation: RevocationArgs,
    #[command(flatten)]
    pub(crate) question: Question,

    /// Where the certificate goes; the standard output when absent
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub(crate) certout: Option<PathBuf>,
    /// Where the certificate and its chain go, leaf first
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub(crate) chainout: Option<PathBuf>,
    /// Where the CA certificates go that the CA sent along (caPubs), or that a genm brought
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub(crate) cacertsout: Option<PathBuf>,
    /// The form of the result
    #[arg(long, value_enum, default_value_t, help_heading = "Output")]
    pub(crate) output: Format,
    /// Show every step
    #[arg(long, short, help_heading = "Output", conflicts_with = "quiet")]
    pub(crate) verbose: bool,
    /// Show no progress
    #[arg(long, short, help_heading = "Output")]
    pub(crate) quiet: bool,

    /// The store; $XDG_STATE_HOME/abide/abide.db when absent
    #[arg(long, value_name = "FILE", help_heading = "Transaction")]
    pub(crate) store: Option<PathBuf>,
    /// Go on with the open transaction, or begin one when there is none
    #[arg(long, help_heading = "Transaction")]
    pub(crate) resume: bool,
    /// The name of this wish in the store; derived from the request when absent
    #[arg(long, value_name = "NAME", help_heading = "Transaction")]
    pub(crate) order: Option<String>,
    /// The account the order is kept for
    #[arg(
        long,
        value_name = "NAME",
        default_value = "",
        hide_default_value = true,
        help_heading = "Transaction"
    )]
    pub(crate) account: String,
    /// Keep no compiled code
    #[arg(long, help_heading = "Transaction")]
    pub(crate) no_cache: bool,

    #[command(flatten)]
    pub(crate) times: Times,
}

/// How the possession of a key is proved: by the names of the RFC or openssl's numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Popo {
    /// Not at all: the PKI makes the key
    #[value(name = "none", alias = "-1")]
    None,
    /// The registration authority that asks has verified it
    #[value(name = "raVerified", alias = "0")]
    RaVerified,
    /// By a signature
    #[value(name = "signature", alias = "1")]
    Signature,
}

/// The kind of a key that the PKI makes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum KeyType {
    /// RSA, of a length that the PKI chooses
    Rsa,
    /// Elliptic curve P-256
    #[value(name = "P-256")]
    P256,
    /// Elliptic curve P-384
    #[value(name = "P-384")]
    P384,
    /// Elliptic curve P-521
    #[value(name = "P-521")]
    P521,
    /// Ed25519
    Ed25519,
}

/// The protection that a registration authority adds to a request.
#[derive(Args, Clone, Debug)]
pub(crate) struct AuthorityArgs {
    /// The RA's certificate: the request is wrapped in a nested message that it signs; further
    /// certificates of the file are its chain
    #[arg(
        long,
        value_name = "FILE",
        help_heading = "Registration authority",
        requires = "ra_key"
    )]
    pub(crate) ra_cert: Option<PathBuf>,
    /// The private key of --ra-cert
    #[arg(
        long,
        value_name = "FILE",
        help_heading = "Registration authority",
        requires = "ra_cert"
    )]
    pub(crate) ra_key: Option<PathBuf>,
    /// Certificates that lead from --ra-cert towards a root
    #[arg(long, value_name = "FILE", num_args = 1.., help_heading = "Registration authority",
          requires = "ra_cert")]
    pub(crate) ra_chain: Vec<PathBuf>,
}

/// What is revoked, and why.
#[derive(Args, Clone, Debug)]
pub(crate) struct RevocationArgs {
    /// The certificate to revoke; that of --cert when absent
    #[arg(long, value_name = "FILE", help_heading = "Revocation",
          conflicts_with_all = ["issuer", "serial"])]
    pub(crate) oldcert: Option<PathBuf>,
    /// The issuer of the certificate to revoke, as /CN=…/O=…
    #[arg(long, value_name = "DN", value_parser = names::distinguished_name,
          help_heading = "Revocation", requires = "serial")]
    pub(crate) issuer: Option<String>,
    /// The serial number of the certificate to revoke: decimal, or hexadecimal after 0x
    #[arg(long, value_name = "N", value_parser = names::serial_number,
          help_heading = "Revocation", requires = "issuer")]
    pub(crate) serial: Option<Serial>,
    /// The reason by name, such as keyCompromise, or number; removeFromCRL revives a certificate
    /// that is on hold
    #[arg(long, value_name = "REASON", default_value = "unspecified",
          value_parser = names::revocation_reason, help_heading = "Revocation")]
    pub(crate) revreason: u8,
}

/// What a genm asks, and where its answer goes.
#[derive(Args, Clone, Debug)]
pub(crate) struct Question {
    /// caCerts, rootCaCert, certReqTemplate, crlStatusList, or an object identifier
    #[arg(long, value_name = "TYPE", help_heading = "Information")]
    pub(crate) infotype: Option<String>,
    /// The root whose successor is asked for, with rootCaCert
    #[arg(long, value_name = "FILE", help_heading = "Information")]
    pub(crate) oldwithold: Option<PathBuf>,
    /// The CRL whose successor is asked for, with crlStatusList
    #[arg(
        long,
        value_name = "FILE",
        help_heading = "Information",
        conflicts_with = "crlcert"
    )]
    pub(crate) oldcrl: Option<PathBuf>,
    /// The certificate whose CRL is asked for, with crlStatusList
    #[arg(long, value_name = "FILE", help_heading = "Information")]
    pub(crate) crlcert: Option<PathBuf>,
    /// Where a new root goes
    #[arg(long, value_name = "FILE", help_heading = "Information")]
    pub(crate) newwithnew: Option<PathBuf>,
    /// Where the new root's key under the old one goes
    #[arg(long, value_name = "FILE", help_heading = "Information")]
    pub(crate) newwithold: Option<PathBuf>,
    /// Where the old root's key under the new one goes
    #[arg(long, value_name = "FILE", help_heading = "Information")]
    pub(crate) oldwithnew: Option<PathBuf>,
    /// Where a CRL goes
    #[arg(long, value_name = "FILE", help_heading = "Information")]
    pub(crate) crlout: Option<PathBuf>,
    /// Where an answer of another type goes, certReqTemplate among them: the DER of its value
    #[arg(long, value_name = "FILE", help_heading = "Information")]
    pub(crate) valueout: Option<PathBuf>,
}

/// Times in seconds, and the number of polls.
#[derive(Args, Clone, Debug)]
pub(crate) struct Times {
    /// The time for the whole transaction, restarts included
    #[arg(long, value_name = "S", default_value_t = 600, value_parser = seconds(1),
          help_heading = "Times, in seconds")]
    pub(crate) total_timeout: u64,
    /// The time for one request and its answer
    #[arg(long, value_name = "S", default_value_t = 60, value_parser = seconds(1),
          help_heading = "Times, in seconds")]
    pub(crate) msg_timeout: u64,
    /// The shortest time between polls, whatever the CA says
    #[arg(long, value_name = "S", default_value_t = 1, value_parser = seconds(1),
          help_heading = "Times, in seconds")]
    pub(crate) min_poll: u64,
    /// The longest time between polls, whatever the CA says
    #[arg(long, value_name = "S", default_value_t = 300, value_parser = seconds(1),
          help_heading = "Times, in seconds")]
    pub(crate) max_poll: u64,
    /// The number of polls after which the transaction fails
    #[arg(long, value_name = "N", default_value_t = 60, help_heading = "Times, in seconds",
          value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) max_polls: u32,
    /// How long this command keeps trying when the server cannot be reached; the
    /// transaction stays open
    #[arg(long, value_name = "S", default_value_t = 15, value_parser = seconds(0),
          help_heading = "Times, in seconds")]
    pub(crate) unreachable_timeout: u64,
    /// How long this command stays while the CA says waiting; until the end of the
    /// transaction when absent
    #[arg(long, value_name = "S", value_parser = seconds(0), help_heading = "Times, in seconds")]
    pub(crate) max_wait: Option<u64>,
}

impl Times {
    /// How long an unreachable server is borne.
    pub(crate) fn unreachable(&self) -> Duration {
        Duration::from_secs(self.unreachable_timeout)
    }
}

fn seconds(least: u64) -> clap::builder::RangedU64ValueParser<u64> {
    clap::value_parser!(u64).range(least..=LONGEST)
}

/// What a CA does against the rules.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Allowed {
    /// It signs its answers to requests under a shared secret, as EJBCA does by default
    SignedAnswerToMac,
    /// It signs with a CA certificate whose keyUsage lacks digitalSignature, as NCM and Insta do
    CaWithoutDigitalSignature,
    /// It sends our senderKID back in place of its own
    SenderKidEchoed,
    /// Fractions of a second that end with zeros
    FractionalSeconds,
    /// Optional lists without an element
    EmptyLists,
}

impl From<Allowed> for Deviations {
    fn from(allowed: Allowed) -> Self {
        match allowed {
            Allowed::SignedAnswerToMac => Deviations::SIGNED_ANSWER_TO_MAC,
            Allowed::CaWithoutDigitalSignature => Deviations::CA_WITHOUT_DIGITAL_SIGNATURE,
            Allowed::SenderKidEchoed => Deviations::SENDER_KID_ECHOED,
            Allowed::FractionalSeconds => Deviations::FRACTIONAL_SECONDS,
            Allowed::EmptyLists => Deviations::EMPTY_LISTS,
        }
    }
}

/// How a MAC is made of a shared secret.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Mac {
    /// The password-based MAC, which every server knows
    #[default]
    Pbm,
    /// PBMAC1, with PBKDF2 and HMAC-SHA-256
    Pbmac1,
}

/// What is asked of the CA.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Cmd {
    /// First certificate of a new end entity
    Ir,
    /// A further certificate
    Cr,
    /// A certificate for a PKCS #10 request
    P10cr,
    /// A certificate in place of --cert
    Kur,
    /// Revoke a certificate, or revive one that is on hold
    Rr,
    /// Ask for information
    Genm,
}
