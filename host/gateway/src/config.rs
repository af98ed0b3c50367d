//! The configuration: a TOML file, or the options of the command as the same. Every mistake is
//! named with its place.

use std::net::{SocketAddr, ToSocketAddrs};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use abide_host::network::{Identity, TlsFile, tls_client};
use abide_host::{Gate, HostError};
use abide_service::config::{Document, Mistake, Tls, against_schema, read_text};
use abide_service::input::secret::Source;
use abide_service::input::{InputError, files, names, pem};
use abide_service::tls;
use serde::Deserialize;
use serde_json::{Map, Value};
use zeroize::Zeroizing;

use crate::hops::Hops;
use crate::judge::{Judge, Trusted};
use crate::limiter::Limiting;
use crate::limits;
use crate::upstream::{self, Upstreams};
use crate::watch;

/// The JSON schema of the configuration (draft 2020-12).
pub const SCHEMA: &str = include_str!("../../../docs/gateway.schema.json");

/// What messages must be protected with.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Protection {
    /// Anything or nothing.
    #[default]
    Any,
    /// Something.
    Required,
    /// Something that the gateway can verify.
    Verified,
}

/// The whole file.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Given {
    gateway: Section,
    limits: Bounds,
    trust: Trust,
    health: Health,
    sandbox: Sandbox,
    upstreams: Vec<Upstream>,
    rate_limit: Option<Map<String, Value>>,
}

/// `[gateway]`.
#[derive(Debug, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Section {
    listen: String,
    admin: Option<String>,
    protection: Protection,
    allowed: Vec<String>,
    error_status: ErrorStatus,
    counters: Option<String>,
    counters_patience_ms: Option<u64>,
    trusted_hops: Vec<String>,
    drain_seconds: u64,
    cache: Option<PathBuf>,
    tls: Option<Server>,
}

/// Whether a message that is refused is a success of HTTP.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum ErrorStatus {
    #[default]
    Ok,
    ClientError,
}

/// `[gateway.tls]`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Server {
    certificate: PathBuf,
    key: PathBuf,
    #[serde(default)]
    client_ca: Vec<PathBuf>,
    #[serde(default)]
    client_certificate: ClientCertificate,
}

/// What is asked of clients.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum ClientCertificate {
    #[default]
    Optional,
    Required,
}

/// `[limits]`.
#[derive(Debug, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Bounds {
    body_bytes: usize,
    response_bytes: usize,
    head_seconds: u64,
    body_seconds: u64,
    idle_seconds: u64,
    answer_seconds: u64,
    connections: u32,
    connections_per_address: u32,
}

/// `[trust]`.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Trust {
    certificates: Vec<PathBuf>,
    untrusted: Vec<PathBuf>,
    secrets: Vec<Secret>,
    allow_sha1: bool,
}

/// `[[trust.secrets]]`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Secret {
    reference: String,
    secret: String,
}

/// `[health]`.
#[derive(Debug, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Health {
    failures: u32,
    pause_seconds: u64,
    longest_pause_seconds: u64,
}

/// `[sandbox]`.
#[derive(Debug, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Sandbox {
    deadline_ms: u64,
    memory_mib: u64,
}

/// `[[upstreams]]`.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Upstream {
    pub(crate) url: String,
    #[serde(default = "one")]
    pub(crate) priority: i32,
    #[serde(default = "everything")]
    pub(crate) selector: Value,
    #[serde(default)]
    tls_trusted: Vec<PathBuf>,
    tls_cert: Option<PathBuf>,
    tls_key: Option<PathBuf>,
}

fn one() -> i32 {
    1
}

fn everything() -> Value {
    Value::from("default")
}

impl Default for Section {
    fn default() -> Self {
        let allowed = [
            "ir", "cr", "p10cr", "kur", "krr", "ccr", "rr", "genm", "popdecr", "certConf",
            "pollReq", "error", "nested",
        ];
        Section {
            listen: "127.0.0.1:8080".to_owned(),
            admin: None,
            protection: Protection::default(),
            allowed: allowed.map(str::to_owned).to_vec(),
            error_status: ErrorStatus::default(),
            counters: None,
            counters_patience_ms: None,
            trusted_hops: Vec::new(),
            drain_seconds: 30,
            cache: None,
            tls: None,
        }
    }
}

impl Default for Bounds {
    fn default() -> Self {
        Bounds {
            body_bytes: limits::BODY,
            response_bytes: limits::RESPONSE,
            head_seconds: limits::HEAD_TIME,
            body_seconds: limits::BODY_TIME,
            idle_seconds: limits::IDLE_TIME,
            answer_seconds: limits::ANSWER_TIME,
            connections: limits::CONNECTIONS,
            connections_per_address: limits::CONNECTIONS_PER_ADDRESS,
        }
    }
}

impl Default for Health {
    fn default() -> Self {
        Health {
            failures: limits::FAILURES,
            pause_seconds: limits::PAUSE.0,
            longest_pause_seconds: limits::PAUSE.1,
        }
    }
}

impl Default for Sandbox {
    fn default() -> Self {
        Sandbox {
            deadline_ms: limits::SANDBOX_TIME,
            memory_mib: limits::SANDBOX_MEMORY,
        }
    }
}

/// A configuration as a gateway uses it.
pub(crate) struct Ready {
    pub(crate) listen: SocketAddr,
    pub(crate) admin: Option<SocketAddr>,
    pub(crate) tls: Option<Arc<rustls::ServerConfig>>,
    pub(crate) hops: Hops,
    pub(crate) judge: Judge,
    pub(crate) limiting: Limiting,
    pub(crate) upstreams: Upstreams,
    pub(crate) bounds: ReadyBounds,
    pub(crate) strict_status: bool,
    pub(crate) drain: Duration,
}

/// `[limits]`, in units of their own.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ReadyBounds {
    pub(crate) body: usize,
    pub(crate) response: usize,
    pub(crate) body_time: Duration,
    pub(crate) answer_time: Duration,
    pub(crate) patience: watch::Patience,
    pub(crate) connections: u32,
    pub(crate) connections_per_address: u32,
}

/// A configuration that was read, with everything that is wrong with it so far.
pub struct Draft {
    document: Document,
    given: Given,
    folder: PathBuf,
    mistakes: Vec<Mistake>,
}

impl Draft {
    /// Reads a file.
    pub fn read(path: &Path) -> Draft {
        let name = path.display().to_string();
        let folder = path.parent().map(Path::to_owned).unwrap_or_default();
        match read_text(path) {
            Ok(text) => Draft::parse(&name, folder, &text),
            Err(problem) => {
                let mut draft = Draft::parse(&name, folder, "");
                draft.mistakes = vec![Mistake::of_file(&name, problem)];
                draft
            }
        }
    }

    /// Reads a text; `folder` is what its paths are relative to.
    pub fn parse(name: &str, folder: PathBuf, text: &str) -> Draft {
        let (document, mut mistakes) = Document::parse(name, text);
        let mut given = Given::default();
        if document.is_whole() {
            mistakes = against_schema(&document, SCHEMA);
            match serde_json::from_value(document.json().clone()) {
                Ok(read) => given = read,
                Err(error) if mistakes.is_empty() => {
                    mistakes.push(document.mistake("", error.to_string()));
                }
                Err(_) => {}
            }
        }
        Draft {
            document,
            given,
            folder,
            mistakes,
        }
    }

    /// The folder of compiled code, if it was named.
    pub(crate) fn cache(&self) -> Option<PathBuf> {
        let cache = self.given.gateway.cache.as_ref()?;
        Some(self.folder.join(cache))
    }

    /// Time and memory of the sandbox: milliseconds and octets.
    pub(crate) fn sandbox(&self) -> (u64, usize) {
        let Sandbox {
            deadline_ms,
            memory_mib,
        } = self.given.sandbox;
        let octets = usize::try_from(memory_mib << 20).unwrap_or(usize::MAX);
        (deadline_ms, octets)
    }

    fn wrong(&mut self, path: &str, problem: impl Into<String>) {
        let found = self.document.mistake(path, problem.into());
        self.mistakes.push(found);
    }

    fn take<T>(&mut self, path: &str, read: Result<T, InputError>) -> Option<T> {
        read.map_err(|error| self.wrong(path, error.message)).ok()
    }

    fn certificates(&mut self, path: &str, files: &[PathBuf]) -> Vec<Vec<u8>> {
        let mut all = Vec::new();
        for (index, file) in files.iter().enumerate() {
            let read = pem::certificates("the file", &self.folder.join(file));
            all.extend(
                self.take(&format!("{path}[{index}]"), read)
                    .into_iter()
                    .flatten(),
            );
        }
        all
    }

    /// Everything that the configuration names is read and judged. The mistakes are in the order
    /// of the file.
    pub(crate) async fn finish(
        mut self,
        gate: &Gate,
    ) -> Result<Result<Ready, Vec<Mistake>>, HostError> {
        let ready = match self.mistakes.is_empty() {
            true => self.ready(gate).await?,
            false => None,
        };
        self.mistakes.sort_by_key(Mistake::place);
        Ok(match ready {
            Some(ready) if self.mistakes.is_empty() => Ok(ready),
            _ => Err(self.mistakes),
        })
    }

    async fn ready(&mut self, gate: &Gate) -> Result<Option<Ready>, HostError> {
        let given = std::mem::take(&mut self.given);
        let listen = self.address("gateway.listen", &given.gateway.listen);
        let admin = given.gateway.admin.as_deref();
        let admin = admin.map(|text| self.address("gateway.admin", text));
        let tls = given.gateway.tls.as_ref().map(|given| self.server(given));
        let hops = Hops::parse(&given.gateway.trusted_hops).map_err(|(index, problem)| {
            self.wrong(&format!("gateway.trusted_hops[{index}]"), problem);
        });
        let trusted = self.trusted(given.trust);
        if given.gateway.protection == Protection::Verified && trusted.is_empty() {
            self.wrong(
                "gateway.protection",
                "nothing can be verified: give `trust.certificates` or `trust.secrets`",
            );
        }
        let judge = Judge::new(
            gate.clone(),
            trusted,
            given.gateway.protection,
            &given.gateway.allowed,
        );
        let limiting = Limiting::new(gate, given.rate_limit.as_ref()).await?;
        let limiting = match (
            self.judged(limiting, "rate_limit."),
            &given.gateway.counters,
        ) {
            (Some(limiting), Some(address)) => {
                let patience = given.gateway.counters_patience_ms;
                let patience = patience.map(Duration::from_millis);
                match limiting.sharing(address, patience).await {
                    Ok(limiting) => Some(limiting),
                    Err(error) => {
                        self.wrong("gateway.counters", error.to_string());
                        None
                    }
                }
            }
            (limiting, _) => limiting,
        };
        let upstreams = self
            .upstreams(gate, &given.upstreams, &given.health)
            .await?;
        let bounds = given.limits.ready();
        let (Some(listen), Ok(hops), Some(limiting), Some(upstreams)) =
            (listen, hops, limiting, upstreams)
        else {
            return Ok(None);
        };
        Ok(Some(Ready {
            listen,
            admin: admin.flatten(),
            tls: tls.flatten(),
            hops,
            judge,
            limiting,
            upstreams,
            bounds,
            strict_status: given.gateway.error_status == ErrorStatus::ClientError,
            drain: Duration::from_secs(given.gateway.drain_seconds),
        }))
    }

    /// What the component made of a section, or its mistakes, whose paths lack a beginning.
    fn judged<T>(
        &mut self,
        judged: Result<T, Vec<abide_host::wit::policy::Mistake>>,
        section: &str,
    ) -> Option<T> {
        match judged {
            Ok(made) => Some(made),
            Err(mistakes) => {
                for mistake in mistakes {
                    self.wrong(&format!("{section}{}", mistake.path), mistake.problem);
                }
                None
            }
        }
    }

    fn address(&mut self, path: &str, text: &str) -> Option<SocketAddr> {
        let address = text.to_socket_addrs().ok().and_then(|mut all| all.next());
        if address.is_none() {
            let problem = format!("{text:?} is no address with a port, such as 127.0.0.1:8080");
            self.wrong(path, problem);
        }
        address
    }

    fn server(&mut self, given: &Server) -> Option<Arc<rustls::ServerConfig>> {
        let clients = match given.client_certificate {
            ClientCertificate::Optional => tls::Clients::MayShowOne,
            ClientCertificate::Required => tls::Clients::MustShowOne,
        };
        if clients == tls::Clients::MustShowOne && given.client_ca.is_empty() {
            self.wrong(
                "gateway.tls.client_certificate",
                "without `client_ca` no certificate can be judged",
            );
        }
        let files = Tls {
            certificate: given.certificate.clone(),
            key: given.key.clone(),
            client_ca: given.client_ca.clone(),
            client_rights: Vec::new(),
        };
        tls::server(&self.folder, &files, clients)
            .map_err(|(field, problem)| self.wrong(&format!("gateway.tls{field}"), problem))
            .ok()
    }

    fn trusted(&mut self, given: Trust) -> Trusted {
        let anchors = self.certificates("trust.certificates", &given.certificates);
        let untrusted = self.certificates("trust.untrusted", &given.untrusted);
        let mut trusted = Trusted {
            anchors,
            untrusted,
            secrets: Vec::new(),
            allow_sha1: given.allow_sha1,
        };
        for (index, secret) in given.secrets.into_iter().enumerate() {
            let at = format!("trust.secrets[{index}]");
            let Ok(source) = secret.secret.parse::<Source>();
            let source = match source {
                Source::File(path) => Source::File(self.folder.join(path)),
                other => other,
            };
            let read = source.read("the secret");
            if trusted.secret_of(secret.reference.as_bytes()).is_some() {
                self.wrong(
                    &format!("{at}.reference"),
                    format!("{:?} is there twice", secret.reference),
                );
            }
            if let Some(octets) = self.take(&format!("{at}.secret"), read) {
                trusted.secrets.push((secret.reference, octets));
            }
        }
        trusted
    }

    async fn upstreams(
        &mut self,
        gate: &Gate,
        given: &[Upstream],
        health: &Health,
    ) -> Result<Option<Upstreams>, HostError> {
        let patience = upstream::Patience {
            failures: health.failures,
            first_pause: Duration::from_secs(health.pause_seconds),
            longest_pause: Duration::from_secs(health.longest_pause_seconds),
        };
        if health.longest_pause_seconds < health.pause_seconds {
            self.wrong(
                "health.longest_pause_seconds",
                "is shorter than `pause_seconds`",
            );
        }
        let mut all = Vec::new();
        for (index, one) in given.iter().enumerate() {
            let at = format!("upstreams[{index}]");
            let tls = self.client(&at, one);
            let url = match names::server_url(&one.url) {
                Ok(url) => url,
                Err(problem) => {
                    self.wrong(&format!("{at}.url"), problem);
                    continue;
                }
            };
            let one = Upstream { url, ..one.clone() };
            match upstream::Upstream::new(&one, tls, patience) {
                Some(upstream) => all.push(Arc::new(upstream)),
                None => self.wrong(&format!("{at}.url"), "is no URL of a CMP server"),
            }
        }
        if all.len() < given.len() {
            return Ok(None);
        }
        let made = Upstreams::new(gate, given, all).await?;
        Ok(self.judged(made, ""))
    }

    /// The TLS of one upstream, where its URL wants it.
    fn client(&mut self, at: &str, given: &Upstream) -> Option<Arc<rustls::ClientConfig>> {
        let secure = given.url.starts_with("https://");
        let files = !given.tls_trusted.is_empty() || given.tls_cert.is_some();
        if !secure {
            if files {
                self.wrong(
                    &format!("{at}.url"),
                    "`tls_…` files need an https:// server",
                );
            }
            return None;
        }
        let mut trusted = Vec::new();
        for (index, file) in given.tls_trusted.iter().enumerate() {
            let read = tls_file(&self.folder.join(file));
            trusted.extend(self.take(&format!("{at}.tls_trusted[{index}]"), read));
        }
        let identity = match (&given.tls_cert, &given.tls_key) {
            (Some(certificate), Some(key)) => {
                let read = tls_file(&self.folder.join(certificate));
                let certificate = self.take(&format!("{at}.tls_cert"), read)?;
                let path = self.folder.join(key);
                let read = files::read("the file", &path).map(Zeroizing::new);
                let contents = self.take(&format!("{at}.tls_key"), read)?;
                let name = path.display().to_string();
                Some(Identity {
                    certificate,
                    key: TlsFile { name, contents },
                })
            }
            (None, None) => None,
            (Some(_), None) => {
                self.wrong(&format!("{at}.tls_cert"), "goes with `tls_key`");
                None
            }
            (None, Some(_)) => {
                self.wrong(&format!("{at}.tls_key"), "goes with `tls_cert`");
                None
            }
        };
        match tls_client(&trusted, identity.as_ref()) {
            Ok(mut config) => {
                config.alpn_protocols = vec![b"http/1.1".to_vec()];
                Some(Arc::new(config))
            }
            Err(error) => {
                self.wrong(at, error.to_string());
                None
            }
        }
    }
}

impl Bounds {
    fn ready(&self) -> ReadyBounds {
        ReadyBounds {
            body: self.body_bytes.min(limits::MOST_BODY),
            response: self.response_bytes,
            body_time: Duration::from_secs(self.body_seconds),
            answer_time: Duration::from_secs(self.answer_seconds),
            patience: watch::Patience {
                idle: Duration::from_secs(self.idle_seconds),
                head: Duration::from_secs(self.head_seconds),
                write: limits::WRITE_TIME,
            },
            connections: self.connections,
            connections_per_address: self.connections_per_address,
        }
    }
}

/// Read here, because the errors of this reader name the line.
fn tls_file(path: &Path) -> Result<TlsFile, InputError> {
    let certificates = pem::certificates("the file", path)?;
    Ok(TlsFile {
        name: path.display().to_string(),
        contents: Zeroizing::new(pem::encode_certificates(&certificates).into_bytes()),
    })
}
