//! The sections of the configuration as they are used.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use super::POLICIES;

/// A configuration. Sections that are absent have their defaults.
#[derive(Debug, Clone)]
pub struct Config {
    /// What paths are relative to.
    pub folder: PathBuf,
    /// `[service]`.
    pub service: ServiceSection,
    /// `[[tokens]]`.
    pub tokens: Vec<Token>,
    /// `[issuers.NAME]`.
    pub issuers: BTreeMap<String, Issuer>,
    /// `[delivery]`.
    pub delivery: Delivery,
    /// The sections of [`POLICIES`], for the component.
    pub policies: Map<String, Value>,
}

/// The service itself.
#[derive(Debug, Clone, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ServiceSection {
    /// Where the API listens.
    pub listen: String,
    /// `sqlite:PATH` or `postgres://…`.
    pub store: Option<String>,
    /// The folder of keys that are made here.
    pub keys: Option<PathBuf>,
    /// The folder of compiled code.
    pub cache: Option<PathBuf>,
    /// The name of this worker.
    pub worker: Option<String>,
    /// Tasks at work at a time.
    pub concurrency: u32,
    /// How long running tasks may go on at the end.
    pub drain_seconds: u64,
    /// HTTPS instead of HTTP.
    pub tls: Option<Tls>,
}

impl Default for ServiceSection {
    fn default() -> Self {
        ServiceSection {
            listen: "127.0.0.1:8443".to_owned(),
            store: None,
            keys: None,
            cache: None,
            worker: None,
            concurrency: 16,
            drain_seconds: 30,
            tls: None,
        }
    }
}

/// Where orders are kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Store {
    /// A file.
    Sqlite(PathBuf),
    /// A server.
    Postgres(String),
}

/// HTTPS.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Tls {
    /// The server's certificate and its chain.
    pub certificate: PathBuf,
    /// Its private key.
    pub key: PathBuf,
    /// Trust anchors for clients.
    #[serde(default)]
    pub client_ca: Vec<PathBuf>,
    /// What a client with a certificate may do.
    #[serde(default = "read_and_write")]
    pub client_rights: Vec<Right>,
}

fn read_and_write() -> Vec<Right> {
    vec![Right::Read, Right::Write]
}

/// What somebody may do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Right {
    /// Look.
    Read,
    /// Create, renew and cancel orders.
    Write,
    /// Replay dead letters.
    Admin,
}

/// A bearer token.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Token {
    /// The principal.
    pub name: String,
    /// SHA-256 of the token.
    pub sha256: Option<String>,
    /// A file with the token.
    pub file: Option<PathBuf>,
    /// What it may do.
    pub rights: Vec<Right>,
}

/// A CA.
#[derive(Debug, Clone, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[expect(
    missing_docs,
    reason = "the fields are those of the schema, which describes them"
)]
pub struct Issuer {
    pub server: String,
    pub endpoints: Vec<Value>,
    pub dynamic_endpoints: BTreeMap<String, String>,
    pub cmd: Command,
    pub updates: bool,
    pub recipient: String,
    pub profile: String,
    pub reference: Option<String>,
    pub secret: Option<String>,
    pub mac: Mac,
    pub pbm_iterations: u32,
    pub cert: Option<PathBuf>,
    pub key: Option<PathBuf>,
    pub keypass: Option<String>,
    pub extracerts: Vec<PathBuf>,
    pub trusted: Vec<PathBuf>,
    pub out_trusted: Vec<PathBuf>,
    pub untrusted: Vec<PathBuf>,
    pub allow_sha1: bool,
    pub allow: Vec<Allow>,
    pub implicit_confirm: bool,
    pub tls_trusted: Vec<PathBuf>,
    pub tls_cert: Option<PathBuf>,
    pub tls_key: Option<PathBuf>,
    pub ra_cert: Option<PathBuf>,
    pub ra_key: Option<PathBuf>,
    pub ra_chain: Vec<PathBuf>,
    pub total_timeout: u64,
    pub msg_timeout: u64,
    pub min_poll: u64,
    pub max_poll: u64,
    pub max_polls: u32,
}

impl Default for Issuer {
    fn default() -> Self {
        Issuer {
            server: String::new(),
            endpoints: Vec::new(),
            dynamic_endpoints: BTreeMap::new(),
            cmd: Command::Ir,
            updates: false,
            recipient: String::new(),
            profile: String::new(),
            reference: None,
            secret: None,
            mac: Mac::Pbm,
            pbm_iterations: 500,
            cert: None,
            key: None,
            keypass: None,
            extracerts: Vec::new(),
            trusted: Vec::new(),
            out_trusted: Vec::new(),
            untrusted: Vec::new(),
            allow_sha1: false,
            allow: Vec::new(),
            implicit_confirm: false,
            tls_trusted: Vec::new(),
            tls_cert: None,
            tls_key: None,
            ra_cert: None,
            ra_key: None,
            ra_chain: Vec::new(),
            // A CA whose operator approves requests by hand may take a working day.
            total_timeout: 24 * 3600,
            msg_timeout: 60,
            min_poll: 1,
            max_poll: 3600,
            max_polls: 10_000,
        }
    }
}

/// What is asked of a CA.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Command {
    /// First certificate of a new end entity.
    Ir,
    /// A further certificate.
    Cr,
}

/// How a MAC is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Mac {
    /// The password-based MAC.
    Pbm,
    /// PBMAC1.
    Pbmac1,
}

/// What a CA may do against the rules.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[expect(missing_docs, reason = "the names are those of `abide enroll --allow`")]
pub enum Allow {
    SignedAnswerToMac,
    CaWithoutDigitalSignature,
    SenderKidEchoed,
    FractionalSeconds,
    EmptyLists,
}

/// What happens with a new certificate.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Delivery {
    /// The folder of the orders' folders.
    pub directory: Option<PathBuf>,
    /// A command and its arguments.
    pub hook: Option<Vec<String>>,
    /// When the command is killed.
    pub hook_timeout_seconds: Option<u64>,
}

impl Config {
    /// Everything in a document that has the right form. What has not was reported before.
    pub(super) fn from_json(json: &Value, folder: PathBuf) -> Config {
        let issuers = json.get("issuers").and_then(Value::as_object);
        let policies = json.as_object().into_iter().flatten();
        Config {
            folder,
            service: section(json, "service"),
            tokens: section(json, "tokens"),
            issuers: issuers
                .into_iter()
                .flatten()
                .filter_map(|(name, issuer)| {
                    let issuer = serde_json::from_value(issuer.clone()).ok()?;
                    Some((name.clone(), issuer))
                })
                .collect(),
            delivery: section(json, "delivery"),
            policies: policies
                .filter(|(name, _)| POLICIES.contains(&name.as_str()))
                .map(|(name, section)| (name.clone(), section.clone()))
                .collect(),
        }
    }

    /// A path of the file as it is from here.
    pub fn path(&self, path: &Path) -> PathBuf {
        self.folder.join(path)
    }
}

fn section<T: DeserializeOwned + Default>(json: &Value, name: &str) -> T {
    json.get(name)
        .and_then(|section| serde_json::from_value(section.clone()).ok())
        .unwrap_or_default()
}
